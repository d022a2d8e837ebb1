//! The proof that Assay made a folder and everything in it. Without it nothing is removed.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::marker::{self, Marker, Name};
use super::{content_of, names_in};
use crate::counters;

/// No program that Assay starts nests folders deeper.
const MAX_DEPTH: usize = 32;

/// A file or folder that is provably Assay's.
#[derive(Debug)]
pub struct Entry {
    name: CString,
    inode: u64,
    /// The content of a folder.
    inside: Option<Vec<Entry>>,
}

/// Opens a name in a folder; follows no link and crosses no mount.
pub fn enter(folder: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(&folder, name, flags, Mode::empty(), within) {
        // Before Linux 5.6, or a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => enter_by_mounts(folder, name, flags),
        opened => opened,
    }
}

/// The same without openat2: opens the name, then fails with XDEV if it lies on another mount.
fn enter_by_mounts(folder: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let opened = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    let device = |stat: Stat| stat.st_dev;
    let same_device = rustix::fs::fstat(&folder).map(device)? == rustix::fs::fstat(&opened).map(device)?;
    let (above, here) = (counters::mount_of(folder.as_fd()), counters::mount_of(opened.as_fd()));
    if same_device && above.is_some() && above == here { Ok(opened) } else { Err(Errno::XDEV) }
}

fn shown(name: &CStr) -> String {
    name.to_string_lossy().into_owned()
}

/// The entries of a folder without its marker, if all are Assay's; the error names one that is not.
pub fn inspect(folder: &OwnedFd, marker: &Marker) -> Result<Vec<Entry>, String> {
    inspect_below(folder, marker, "", 0)
}

fn inspect_below(folder: &OwnedFd, marker: &Marker, top: &str, depth: usize) -> Result<Vec<Entry>, String> {
    let names = names_in(folder).map_err(|error| format!("it cannot be listed ({error})"))?;
    let others = names.into_iter().filter(|name| depth > 0 || name.as_c_str() != marker::NAME);
    others.map(|name| entry(folder, name, marker, top, depth)).collect()
}

/// Checks one name. `top`: the folder of the scratch directory that contains it; `depth`: folders
/// between the scratch directory and it.
fn entry(folder: &OwnedFd, name: CString, marker: &Marker, top: &str, depth: usize) -> Result<Entry, String> {
    let text = shown(&name);
    let opened = enter(folder, &name, OFlags::PATH).map_err(|error| match error {
        Errno::XDEV => format!("{text} in it is on another mount"),
        error => format!("{text} in it cannot be opened ({error})"),
    })?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| format!("{text} in it: {error}"))?;
    if stat.st_uid != marker.user {
        return Err(format!("{text} in it belongs to user {}", stat.st_uid));
    }
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some('/'),
        FileType::Fifo if depth == 0 => Some('|'),
        FileType::Symlink if depth == 0 => Some('@'),
        _ => return Err(format!("{text} in it is not a regular file")),
    };
    let declared = match depth {
        0 => marker.declares(&text, kind),
        1 => marker.declares_inside(top, &text),
        _ => true,
    };
    if !declared {
        return Err(format!("{text} in it is no file that assay makes there"));
    }
    let inode = stat.st_ino;
    if kind != Some('/') {
        return match stat.st_nlink {
            1 => Ok(Entry { name, inode, inside: None }),
            _ => Err(format!("{text} in it has other hard links")),
        };
    }
    if depth == MAX_DEPTH {
        return Err(format!("{text} in it is deeper than assay makes folders"));
    }
    let inner = open_same_folder(folder, &name, inode).map_err(|error| format!("{text} in it: {error}"))?;
    let top = if depth == 0 { text.as_str() } else { top };
    Ok(Entry { inside: Some(inspect_below(&inner, marker, top, depth + 1)?), name, inode })
}

/// Opens a folder in a folder; fails with STALE if another one has taken its name.
fn open_same_folder(above: &OwnedFd, name: &CStr, inode: u64) -> rustix::io::Result<OwnedFd> {
    let folder = enter(above, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    if rustix::fs::fstat(&folder)?.st_ino == inode { Ok(folder) } else { Err(Errno::STALE) }
}

/// The marker of a folder with this name; the error says why it proves nothing.
pub fn marker_of(folder: &OwnedFd, name: Name) -> Result<Marker, String> {
    let unreadable = |error: Errno| format!("its marker cannot be read ({error})");
    let opened =
        enter(folder, marker::NAME, OFlags::RDONLY | OFlags::NONBLOCK).map_err(|error| match error {
            Errno::NOENT => "it contains no marker of assay".to_string(),
            error => unreadable(error),
        })?;
    let stat = rustix::fs::fstat(&opened).map_err(unreadable)?;
    let folder_stat = rustix::fs::fstat(folder).map_err(unreadable)?;
    let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
    if !plain || stat.st_uid != folder_stat.st_uid || stat.st_size as usize > marker::MAX_BYTES {
        return Err("assay did not write its marker".to_string());
    }
    let text = content_of(&opened).map_err(unreadable)?;
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let marker = Marker::parse(text).ok_or("its marker is not in assay's format")?;
    if (marker.name, marker.user) != (name, folder_stat.st_uid)
        || marker.folder != (folder_stat.st_dev, folder_stat.st_ino)
    {
        return Err(
            "its marker was written for another folder: it is a copy, or its disk changed its number"
                .to_string(),
        );
    }
    Ok(marker)
}

/// Whether the owner was killed before it wrote the marker: the folder is empty, or contains only
/// an empty marker file.
pub fn has_no_marker_yet(folder: &OwnedFd) -> bool {
    let Ok(names) = names_in(folder) else { return false };
    let empty = |name: &CString| {
        let stat = rustix::fs::statat(folder, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        let plain = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        name.as_c_str() == marker::NAME
            && stat.is_ok_and(|stat| plain(&stat) && stat.st_size == 0 && stat.st_nlink == 1)
    };
    names.iter().all(empty)
}

/// Removes a folder with these entries; the marker goes last, so an interrupted removal can be
/// continued.
pub fn remove(parent: &OwnedFd, name: Name, folder: &OwnedFd, entries: &[Entry]) -> Result<(), String> {
    let name = name.text();
    let failed = |error: Errno| format!("it cannot be removed ({error})");
    let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
    let named = rustix::fs::statat(parent, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
    if named.map(identity).map_err(failed)? != rustix::fs::fstat(folder).map(identity).map_err(failed)? {
        return Err("another folder has taken its name".to_string());
    }
    remove_entries(folder, entries)?;
    let rest = names_in(folder).map_err(|error| format!("it cannot be listed ({error})"))?;
    if let Some(other) = rest.iter().find(|name| name.as_c_str() != marker::NAME) {
        return Err(format!("another process put {} into it meanwhile", shown(other)));
    }
    if !rest.is_empty() {
        rustix::fs::unlinkat(folder, marker::NAME, AtFlags::empty()).map_err(failed)?;
    }
    rustix::fs::unlinkat(parent, name.as_str(), AtFlags::REMOVEDIR).map_err(failed)
}

fn remove_entries(folder: &OwnedFd, entries: &[Entry]) -> Result<(), String> {
    for Entry { name, inode, inside } in entries {
        let text = || shown(name);
        let flags = match inside {
            None => AtFlags::empty(),
            Some(inside) => {
                let inner = open_same_folder(folder, name, *inode);
                remove_entries(&inner.map_err(|error| format!("{} in it: {error}", text()))?, inside)?;
                AtFlags::REMOVEDIR
            }
        };
        let stat = rustix::fs::statat(folder, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        let same = |stat: &Stat| stat.st_ino == *inode && (inside.is_some() || stat.st_nlink == 1);
        match stat {
            Err(Errno::NOENT) => continue,
            Ok(stat) if same(&stat) => {}
            _ => return Err(format!("{} in it was changed meanwhile", text())),
        }
        match rustix::fs::unlinkat(folder, name.as_c_str(), flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(format!("{} in it cannot be removed ({error})", text())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_openat2_the_mount_number_shows_another_mount() {
        let root =
            rustix::fs::open("/", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("a folder");
        let into = |name| enter_by_mounts(&root, name, OFlags::PATH | OFlags::NOFOLLOW);
        assert_eq!(into(c"proc").map(drop), Err(Errno::XDEV));
        let parent = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(parent.path().join("inner")).expect("a folder");
        let parent = rustix::fs::open(parent.path(), OFlags::RDONLY, Mode::empty()).expect("a folder");
        assert!(enter_by_mounts(&parent, c"inner", OFlags::PATH).is_ok());
    }
}
