//! A private directory for the files of one visit, gone with it: removed on drop, or by the next
//! start after a kill.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::path::Arg;

use super::random::random;
use marker::{Marker, Name, Named};

mod marker;
mod proof;

/// An empty directory of our own. Its lock tells others that its owner lives, on whichever side of
/// a namespace.
pub struct Scratch {
    parent: OwnedFd,
    name: Name,
    folder: OwnedFd,
    path: PathBuf,
}

fn open_parent(parent: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Whoever has not named a directory is told who did.
fn cannot_open(directory: &Path) -> String {
    let temporary = directory == std::env::temp_dir();
    match std::env::var_os("TMPDIR").filter(|_| temporary) {
        Some(named) => format!(
            "cannot open the directory {named:?} that TMPDIR names: set TMPDIR to one that is there (benchmarks of files and disks also \
             take --dir)"
        ),
        None => format!("cannot open the directory {}: name one that is there", directory.display()),
    }
}

/// Opens a directory by its name in another one, itself and no link to it.
fn open_folder(at: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    proof::enter(at, name, OFlags::RDONLY | OFlags::DIRECTORY)
}

impl Scratch {
    /// Makes one in `parent`, after removing those that killed owners left there. `holds`: the
    /// names of all that the owner will put in, in which `#` stands for digits; a FIFO's ends with
    /// `|`, and with `/` that of a folder, which programs fill as they like, or with names that
    /// begin as is said (`tmp/flink-*`). What has another name is none of ours, and keeps the
    /// directory there.
    pub fn new(parent: &Path, holds: &[&str]) -> anyhow::Result<Scratch> {
        sweep(parent);
        let at = open_parent(parent).with_context(|| cannot_open(parent))?;
        for _ in 0..16 {
            let nonce = random().context("the kernel gives no random numbers")?;
            let name = Name { process: std::process::id(), nonce: u64::from_ne_bytes(nonce) };
            let text = name.text();
            match rustix::fs::mkdirat(&at, text.as_str(), Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made.with_context(|| format!("cannot make a directory in {}", parent.display()))?,
            }
            let own = CString::new(text.as_str()).context("a name without zeros")?;
            let locked = open_folder(&at, &own).and_then(|folder| {
                rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
                Ok((rustix::fs::fstat(&folder)?, folder))
            });
            match locked {
                Ok((stat, folder)) if stat.st_nlink > 0 => {
                    let marker = Marker::own(name, &stat, holds);
                    let scratch = Scratch { parent: at, name, folder, path: parent.join(&text) };
                    // One that is written by half goes with the folder: nothing else is in it.
                    let written = put_into(&scratch.folder, marker::NAME, marker.text().as_bytes());
                    if let Err(error) = written {
                        let _ = rustix::fs::unlinkat(&scratch.folder, marker::NAME, AtFlags::empty());
                        return Err(error).with_context(|| format!("cannot write into {}", parent.display()));
                    }
                    return Ok(scratch);
                }
                // Somebody's sweep came between making and locking.
                _ => _ = rustix::fs::unlinkat(&at, text.as_str(), AtFlags::REMOVEDIR),
            }
        }
        bail!("cannot make a directory of our own in {}: it is taken away each time", parent.display())
    }

    /// The directory, for opening files by name.
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that an ordinary user may still write here.
    pub fn free_bytes(&self) -> anyhow::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.folder)
            .with_context(|| format!("cannot tell how much room there is in {}", self.path.display()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Puts a file of this content into it.
    pub fn put(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        put_into(&self.folder, name, content)
            .with_context(|| format!("cannot write {}", self.path.join(name).display()))
    }

    /// Makes a folder in it.
    pub fn make_folder(&self, name: &str) -> anyhow::Result<()> {
        rustix::fs::mkdirat(&self.folder, name, Mode::RWXU)
            .with_context(|| format!("cannot make {}", self.path.join(name).display()))
    }

    /// A file in it that programs go on writing at its end.
    pub fn log(&self, name: &str) -> anyhow::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot write {}", self.path.join(name).display()))
    }

    /// The end of a file in it, so many bytes at most; empty where there is none.
    pub fn tail(&self, name: &str, most: u64) -> Vec<u8> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.folder, name, flags, Mode::empty()) else {
            return Vec::new();
        };
        let size = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_size as u64);
        let _ = rustix::fs::seek(&file, SeekFrom::Start(size.saturating_sub(most)));
        content_of(&file).unwrap_or_default()
    }

    /// Takes a file out of it: its content.
    pub fn take(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let failed = || format!("cannot read {}", self.path.join(name).display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty());
        let content = file.and_then(|file| content_of(&file)).with_context(failed)?;
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()).with_context(failed)?;
        Ok(content)
    }

    /// Files in it besides its marker.
    pub fn count(&self) -> anyhow::Result<usize> {
        let names = names_in(&self.folder).with_context(|| format!("cannot list {}", self.path.display()))?;
        Ok(names.iter().filter(|name| name.as_c_str() != marker::NAME).count())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is named by the next sweep.
        let _ = end(&self.parent, self.name, &self.folder);
        let _ = rustix::fs::flock(&self.folder, FlockOperation::Unlock);
    }
}

/// Removes a folder of this name, which nobody else uses, if all of it is provably ours; else why
/// it stays.
fn end(parent: &OwnedFd, name: Name, folder: &OwnedFd) -> Result<(), String> {
    let found = match proof::is_unborn(folder) {
        true => Vec::new(),
        false => proof::inspect(folder, &proof::marker_of(folder, name)?)?,
    };
    proof::remove(parent, name, folder, &found)
}

/// What a file holds.
pub fn content(file: &Path) -> rustix::io::Result<Vec<u8>> {
    content_of(&rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// All that an open file holds from where it stands.
pub(super) fn content_of(file: &OwnedFd) -> rustix::io::Result<Vec<u8>> {
    let (mut content, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match rustix::io::read(file, &mut piece)? {
            0 => return Ok(content),
            count => content.extend(&piece[..count]),
        }
    }
}

/// Makes a file of this content in a folder, in one write where the system allows it.
fn put_into(folder: &OwnedFd, name: impl Arg, content: &[u8]) -> rustix::io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut rest = content;
    while !rest.is_empty() {
        let wrote = rustix::io::write(&file, rest)?;
        rest = &rest[wrote..];
    }
    Ok(())
}

/// What lies in a folder, itself and its parent left out.
fn names_in(folder: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let entries = rustix::fs::Dir::read_from(folder)?.collect::<rustix::io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| entry.file_name().to_owned());
    Ok(names.filter(|name| name.as_c_str() != c"." && name.as_c_str() != c"..").collect())
}

/// A folder of this user with a name like ours, whose owner is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    /// Why it stays where it is; nothing where it is provably ours, and goes.
    pub stays: Option<String>,
}

/// Removes what killed owners left in `parent` as far as it is provably ours; all that was found
/// there.
pub fn sweep(parent: &Path) -> Vec<Leftover> {
    look_through(parent, FlockOperation::NonBlockingLockExclusive, end)
}

/// What [`sweep`] would find in `parent`; nothing is done to it.
pub fn leftovers(parent: &Path) -> Vec<Leftover> {
    look_through(parent, FlockOperation::NonBlockingLockShared, |_, name, folder| {
        match proof::is_unborn(folder) {
            true => Ok(()),
            false => proof::inspect(folder, &proof::marker_of(folder, name)?).map(drop),
        }
    })
}

type Deed = fn(&OwnedFd, Name, &OwnedFd) -> Result<(), String>;

fn look_through(parent: &Path, lock: FlockOperation, deed: Deed) -> Vec<Leftover> {
    let Ok(at) = open_parent(parent) else { return Vec::new() };
    let mut names = names_in(&at).unwrap_or_default();
    names.sort();
    let leftover = |name: CString| {
        let text = name.to_str().ok()?;
        let told = marker::told_by(text)?;
        let path = parent.join(text);
        let folder = match open_folder(&at, &name) {
            Ok(folder) => folder,
            Err(Errno::XDEV) => {
                return Some(Leftover { path, stays: Some("it is a mount of its own".into()) });
            }
            // A link, a file, another user's, or gone by now.
            Err(_) => return None,
        };
        let user = rustix::fs::fstat(&folder).ok()?.st_uid;
        let ours = user == rustix::process::geteuid().as_raw();
        (ours && rustix::fs::flock(&folder, lock).is_ok()).then_some(())?;
        let stays = match told {
            Named::Ours(name) => deed(&at, name, &folder).err(),
            Named::Older => {
                Some("version 0.1.0 of assay made such folders, and put nothing in that shows it".into())
            }
        };
        // Closing lets go only when no process that was forked meanwhile has it open, too.
        let _ = rustix::fs::flock(&folder, FlockOperation::Unlock);
        Some(Leftover { path, stays })
    };
    names.into_iter().filter_map(leftover).collect()
}

/// What a process needs to know of a directory that files are to be written to: its real path and
/// its filesystem, as the lines of the entry `probe:directory` (see `machine::directory`).
pub fn probe(directory: &Path) -> anyhow::Result<String> {
    let folder = open_parent(directory).with_context(|| cannot_open(directory))?;
    let kind = rustix::fs::fstatfs(&folder)
        .with_context(|| format!("cannot tell the filesystem of {}", directory.display()))?;
    let room = rustix::fs::fstatvfs(&folder)
        .with_context(|| format!("cannot tell how much room there is in {}", directory.display()))?;
    let device = rustix::fs::fstat(&folder).map(|stat| stat.st_dev).unwrap_or_default();
    Ok(format!(
        "path {}\nmagic {:#x}\ndevice {}:{}\nfree_bytes {}\n",
        directory.display(),
        kind.f_type as u32,
        rustix::fs::major(device),
        rustix::fs::minor(device),
        room.f_bavail.saturating_mul(room.f_frsize)
    ))
}

/// Why a directory's filesystem cannot open files with O_DIRECT; nothing where it can, or where
/// that is unknown.
pub fn direct_refused(directory: &Path) -> Option<String> {
    // A file without a name, which is gone as soon as it is closed.
    let with = |extra: OFlags| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | extra;
        rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)
    };
    match (with(OFlags::empty()), with(OFlags::DIRECT)) {
        (Ok(_), Err(error)) => Some(std::io::Error::from(error).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
