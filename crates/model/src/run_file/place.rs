//! Where a run file stands. The file and its folder are held by descriptors; the path is what
//! people know, and only looked at.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::EXTENSION;
use super::written::Written;

/// A run file that is held open, and the path by which it was opened.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    folder: Arc<OwnedFd>,
    file: File,
}

impl Place {
    /// A new file `STEM.assay.jsonl` of a folder; a name that is taken, by whatever, gets `-2`.
    /// `None`: a thousand are.
    pub fn create(folder: &Arc<OwnedFd>, path: &Path, stem: &str) -> io::Result<Option<Place>> {
        let flags = OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CLOEXEC;
        for attempt in 1..1000 {
            let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let name = format!("{stem}{suffix}{EXTENSION}");
            match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => {
                    let place =
                        Place { path: path.join(&name), folder: Arc::clone(folder), file: File::from(file) };
                    place.lock()?;
                    return Ok(Some(place));
                }
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// A file of a folder that is to be gone on with.
    pub fn open(folder: &Arc<OwnedFd>, path: &Path) -> Result<Place, NotResumable> {
        let name = path.file_name().ok_or(NotResumable::Failed)?;
        // Looked at first: opening a device may do something, and a file of others' may not be
        // opened at all.
        ours(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)?;
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        ours(&rustix::fs::fstat(&file)?)?;
        let (folder, file) = (Arc::clone(folder), File::from(file));
        let place = Place { path: path.to_path_buf(), folder, file };
        place.lock()?;
        Ok(place)
    }

    /// Takes the lock that says "I am writing this". Children do not inherit it (their copy is
    /// closed when they start), and it ends with the process, however that ends.
    fn lock(&self) -> io::Result<()> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(io::Error::other("another process is writing it")),
            // A file system without locks (some network mounts): as safe as it can be.
            _ => Ok(()),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// What became of the file: its path no longer leads to it, or it does not hold as many bytes
    /// as were written. `None`: nothing. Costs two system calls, and opens nothing.
    pub fn lost(&self, written: u64) -> Option<String> {
        let Ok(held) = rustix::fs::fstat(&self.file) else { return None };
        let why = match rustix::fs::lstat(&self.path) {
            Ok(found) if is_same(&found, &held) => return disturbed(held.st_size as u64, written),
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_symlink() => {
                "replaced by a link".to_string()
            }
            Ok(_) => "replaced by something else".to_string(),
            Err(Errno::NOENT | Errno::NOTDIR) if held.st_nlink == 0 => "removed".to_string(),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => "it or its folder was moved".to_string(),
            Err(error) => format!("not accessible: {}", io::Error::from(error)),
        };
        Some(format!("is no longer in its place ({why})"))
    }

    /// All that it holds, from its start, whatever became of its path.
    pub fn whole(&self) -> impl Read + '_ {
        FromBegin { file: &self.file, at: 0 }
    }

    /// Asks the kernel to bring all of it to the disk.
    pub fn sync(&self) {
        // A file system that cannot sync (some FUSE mounts) keeps its lines as safe as it can.
        let _ = self.file.sync_data();
    }

    /// The same for its name.
    pub fn sync_name(&self) {
        let _ = rustix::fs::fsync(&self.folder);
    }

    /// Takes its name away, where that still is this file's.
    pub fn remove(&self) {
        let Some(name) = self.path.file_name() else { return };
        let found = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        if let (Ok(found), Ok(held)) = (found, rustix::fs::fstat(&self.file))
            && is_same(&found, &held)
        {
            let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
        }
    }

    /// A new file of the same name with all that was written, in the first of these folders that
    /// can take one: the run's own first, which is made again where it is gone. An error says why
    /// none could.
    pub(super) fn again(&self, written: &Written, own: &Path, others: &[PathBuf]) -> Result<Place, String> {
        let mut why = Vec::new();
        for (folder, path) in std::iter::once((self.own_folder(own), own))
            .chain(others.iter().map(|path| (open_folder(path), path.as_path())))
        {
            match folder.and_then(|folder| self.again_in(written, &Arc::new(folder), path)) {
                Ok(place) => return Ok(place),
                Err(error) => why.push(format!("{}: {error}", path.display())),
            }
        }
        Err(why.join("; "))
    }

    /// The folder that the path of `--out` leads to now, if it is the one that is held, or may
    /// stand in for it.
    fn own_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        std::fs::create_dir_all(path)?;
        let folder = open_folder(path)?;
        let (found, held) = (rustix::fs::fstat(&folder)?, rustix::fs::fstat(&self.folder)?);
        if is_same(&found, &held) {
            return Ok(folder);
        }
        let named = rustix::fs::lstat(path)?;
        if !is_same(&named, &found) {
            return Err(io::Error::other("a link to another place replaced it"));
        }
        if found.st_uid == rustix::process::geteuid().as_raw() {
            Ok(folder)
        } else {
            Err(io::Error::other("a folder of another user replaced it"))
        }
    }

    fn again_in(&self, written: &Written, folder: &Arc<OwnedFd>, path: &Path) -> io::Result<Place> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let place = Place::create(folder, path, name.trim_end_matches(EXTENSION))?;
        let place = place.ok_or_else(|| io::Error::other("a thousand files with this name exist"))?;
        let filled = io::copy(&mut written.whole(), &mut place.file()).and_then(|_| place.file.sync_all());
        match filled {
            Ok(()) => {
                place.sync_name();
                Ok(place)
            }
            Err(error) => {
                place.remove();
                Err(error)
            }
        }
    }
}

/// What others did to a file that does not hold as many bytes as were written.
fn disturbed(held: u64, written: u64) -> Option<String> {
    match held.cmp(&written) {
        Ordering::Equal => None,
        Ordering::Less => {
            Some(format!("was truncated by another program (it has {held} of the {written} bytes written)"))
        }
        Ordering::Greater => Some(format!(
            "was changed by another program (it has {held} bytes, and this run wrote {written})"
        )),
    }
}

/// Opens a folder, which may be named by a link.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Why a file is not gone on with.
pub enum NotResumable {
    /// Someone else could have put it there, redirect it or change it.
    Unsafe(String),
    Failed,
}

impl<E: Into<io::Error>> From<E> for NotResumable {
    fn from(_: E) -> NotResumable {
        NotResumable::Failed
    }
}

/// Only a plain file of this user that has one name is written to.
fn ours(found: &Stat) -> Result<(), NotResumable> {
    let euid = rustix::process::geteuid().as_raw();
    let why = match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => "it is a symbolic link".to_string(),
        FileType::RegularFile if found.st_uid != euid => {
            format!("it belongs to user {}, not to {euid} (this process)", found.st_uid)
        }
        FileType::RegularFile if found.st_nlink != 1 => {
            format!("it has {} names (hard links)", found.st_nlink)
        }
        FileType::RegularFile => return Ok(()),
        _ => "it is not a regular file".to_string(),
    };
    Err(NotResumable::Unsafe(why))
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Reads a file from its start, even if another process moves its offset.
struct FromBegin<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FromBegin<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
