//! The proof that a folder is ours with all that is in it, without which nothing of it is removed.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::marker::{self, Marker, Name};
use super::{content_of, names_in};
use crate::counters;

/// Deeper than any program of ours makes folders.
const DEEPEST: usize = 32;

/// Something that is provably ours.
#[derive(Debug)]
pub struct Found {
    name: CString,
    number: u64,
    /// What is in it, where it is a folder.
    inside: Option<Vec<Found>>,
}

/// Opens what has this name in a folder, and nothing that lies behind a link or on another mount.
pub fn enter(folder: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(&folder, name, flags, Mode::empty(), within) {
        // Before Linux 5.6, or under a filter that does not know it.
        Err(Errno::NOSYS | Errno::PERM) => enter_by_mounts(folder, name, flags),
        opened => opened,
    }
}

/// The same without openat2: opened, and left again where it is on another mount.
fn enter_by_mounts(folder: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let opened = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    let device = |stat: Stat| stat.st_dev;
    let same_device = rustix::fs::fstat(&folder).map(device)? == rustix::fs::fstat(&opened).map(device)?;
    let (above, here) = (counters::mount_of(folder.as_fd()), counters::mount_of(opened.as_fd()));
    match same_device && above.is_some() && above == here {
        true => Ok(opened),
        false => Err(Errno::XDEV),
    }
}

fn shown(name: &CStr) -> String {
    name.to_string_lossy().into_owned()
}

/// What is in a folder besides its marker, if all of it is ours; else what is not, in words.
pub fn inspect(folder: &OwnedFd, marker: &Marker) -> Result<Vec<Found>, String> {
    inspect_below(folder, marker, "", 0)
}

fn inspect_below(folder: &OwnedFd, marker: &Marker, top: &str, depth: usize) -> Result<Vec<Found>, String> {
    let names = names_in(folder).map_err(|error| format!("it cannot be listed ({error})"))?;
    let others = names.into_iter().filter(|name| depth > 0 || name.as_c_str() != marker::NAME);
    others.map(|name| entry(folder, name, marker, top, depth)).collect()
}

/// `top`: which of the owner's folders this is below, so many folders deep.
fn entry(folder: &OwnedFd, name: CString, marker: &Marker, top: &str, depth: usize) -> Result<Found, String> {
    let told = shown(&name);
    let opened = enter(folder, &name, OFlags::PATH).map_err(|error| match error {
        Errno::XDEV => format!("{told} in it is on another mount"),
        error => format!("{told} in it cannot be looked at ({error})"),
    })?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| format!("{told} in it: {error}"))?;
    if stat.st_uid != marker.user {
        return Err(format!("{told} in it belongs to user {}", stat.st_uid));
    }
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some('/'),
        FileType::Fifo if depth == 0 => Some('|'),
        FileType::Symlink if depth == 0 => Some('@'),
        _ => return Err(format!("{told} in it is no plain file")),
    };
    let declared = match depth {
        0 => marker.declares(&told, kind),
        1 => marker.declares_inside(top, &told),
        _ => true,
    };
    if !declared {
        return Err(format!("{told} in it is nothing that assay makes there"));
    }
    let number = stat.st_ino;
    if kind != Some('/') {
        return match stat.st_nlink {
            1 => Ok(Found { name, number, inside: None }),
            _ => Err(format!("{told} in it has other names, too (hard links)")),
        };
    }
    if depth == DEEPEST {
        return Err(format!("{told} in it is deeper than assay makes folders"));
    }
    let inner = folder_of(folder, &name, number).map_err(|error| format!("{told} in it: {error}"))?;
    let top = if depth == 0 { told.as_str() } else { top };
    Ok(Found { inside: Some(inspect_below(&inner, marker, top, depth + 1)?), name, number })
}

/// Opens a folder in a folder, if it is still the same one.
fn folder_of(above: &OwnedFd, name: &CStr, number: u64) -> rustix::io::Result<OwnedFd> {
    let folder = enter(above, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    match rustix::fs::fstat(&folder)?.st_ino == number {
        true => Ok(folder),
        false => Err(Errno::STALE),
    }
}

/// The marker of a folder that has this name, if it proves that the folder is ours; else why it
/// does not.
pub fn marker_of(folder: &OwnedFd, name: Name) -> Result<Marker, String> {
    const NONE: &str = "no marker in it shows that assay made it";
    let opened =
        enter(folder, marker::NAME, OFlags::RDONLY | OFlags::NONBLOCK).map_err(|error| match error {
            Errno::NOENT => NONE.to_string(),
            error => format!("its marker cannot be read ({error})"),
        })?;
    let unread = |error: Errno| format!("its marker cannot be read ({error})");
    let (stat, own) =
        (rustix::fs::fstat(&opened).map_err(unread)?, rustix::fs::fstat(folder).map_err(unread)?);
    let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
    if !plain || stat.st_uid != own.st_uid || stat.st_size as usize > marker::MOST {
        return Err("its marker is none that assay wrote".to_string());
    }
    let text = content_of(&opened).map_err(unread)?;
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let marker = Marker::parse(text).ok_or("its marker cannot be understood")?;
    let same = (marker.name, marker.user) == (name, own.st_uid);
    match same && marker.folder == (own.st_dev, own.st_ino) {
        true => Ok(marker),
        false => {
            Err("its marker was written for another folder: it is a copy, or its disk has another number"
                .into())
        }
    }
}

/// Whether a folder was left between its making and its marker: nothing is in it, or the marker's
/// empty file alone.
pub fn is_unborn(folder: &OwnedFd) -> bool {
    let Ok(names) = names_in(folder) else { return false };
    let empty = |name: &CString| {
        let stat = rustix::fs::statat(folder, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        let plain = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        name.as_c_str() == marker::NAME
            && stat.is_ok_and(|stat| plain(&stat) && stat.st_size == 0 && stat.st_nlink == 1)
    };
    names.iter().all(empty)
}

/// Removes a folder of ours with what was found in it: the marker last, so that whatever is cut off
/// can be gone on with.
pub fn remove(parent: &OwnedFd, name: Name, folder: &OwnedFd, found: &[Found]) -> Result<(), String> {
    let name = name.text();
    let failed = |error: Errno| format!("it cannot be removed ({error})");
    let number = |stat: Stat| (stat.st_dev, stat.st_ino);
    let there = rustix::fs::statat(parent, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
    if there.map(number).map_err(failed)? != rustix::fs::fstat(folder).map(number).map_err(failed)? {
        return Err("another folder has its name by now".to_string());
    }
    clear(folder, found)?;
    let rest = names_in(folder).map_err(|error| format!("it cannot be listed ({error})"))?;
    if let Some(other) = rest.iter().find(|name| name.as_c_str() != marker::NAME) {
        return Err(format!("{} came into it meanwhile", shown(other)));
    }
    if !rest.is_empty() {
        rustix::fs::unlinkat(folder, marker::NAME, AtFlags::empty()).map_err(failed)?;
    }
    rustix::fs::unlinkat(parent, name.as_str(), AtFlags::REMOVEDIR).map_err(failed)
}

fn clear(folder: &OwnedFd, found: &[Found]) -> Result<(), String> {
    for one in found {
        let told = || shown(&one.name);
        let flags = match &one.inside {
            None => AtFlags::empty(),
            Some(inside) => {
                let inner = folder_of(folder, &one.name, one.number);
                clear(&inner.map_err(|error| format!("{} in it: {error}", told()))?, inside)?;
                AtFlags::REMOVEDIR
            }
        };
        let stat = rustix::fs::statat(folder, one.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        let same = |stat: &Stat| stat.st_ino == one.number && (one.inside.is_some() || stat.st_nlink == 1);
        match stat {
            Err(Errno::NOENT) => continue,
            Ok(stat) if same(&stat) => {}
            _ => return Err(format!("{} in it was changed meanwhile", told())),
        }
        match rustix::fs::unlinkat(folder, one.name.as_c_str(), flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(format!("{} in it cannot be removed ({error})", told())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_openat2_mounts_are_told_apart_by_their_numbers() {
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
