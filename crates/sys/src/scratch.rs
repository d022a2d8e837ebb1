//! A private directory for the files of one visit: removed on drop, or after a kill by the next
//! start.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::path::Arg;

use super::random::random;
use marker::{Marker, Name, NameForm};

mod marker;
mod proof;

/// A directory made by this process. While its owner lives it is locked; other processes see the
/// lock from any namespace.
pub struct Scratch {
    parent: OwnedFd,
    name: Name,
    folder: OwnedFd,
    path: PathBuf,
}

fn open_parent(parent: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// The error text names TMPDIR if the user gave no directory.
fn cannot_open(directory: &Path) -> String {
    let is_default = directory == std::env::temp_dir();
    match std::env::var_os("TMPDIR").filter(|_| is_default) {
        Some(named) => format!(
            "cannot open the directory {named:?} that TMPDIR names: set TMPDIR to an existing directory (file and disk \
             benchmarks also take --dir)"
        ),
        None => format!("cannot open the directory {}: name an existing one", directory.display()),
    }
}

/// Opens a directory in another one by name; never follows a link.
fn open_folder(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    proof::enter(parent, name, OFlags::RDONLY | OFlags::DIRECTORY)
}

impl Scratch {
    /// Makes one in `parent`, after removing those that killed owners left there. `holds` declares
    /// every name that the owner will create; `#` stands for digits, `|` ends a FIFO's name, `/` a
    /// folder's (any content, or only `tmp/flink-*`). Other names prevent the removal.
    pub fn new(parent: &Path, holds: &[&str]) -> anyhow::Result<Scratch> {
        sweep(parent);
        let parent_folder = open_parent(parent).with_context(|| cannot_open(parent))?;
        for _ in 0..16 {
            let nonce = random().context("the kernel provides no random numbers (getrandom)")?;
            let name = Name { process: std::process::id(), nonce: u64::from_ne_bytes(nonce) };
            let text = name.text();
            match rustix::fs::mkdirat(&parent_folder, text.as_str(), Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made.with_context(|| format!("cannot make a directory in {}", parent.display()))?,
            }
            let c_name = CString::new(text.as_str()).context("a name without zeros")?;
            let locked = open_folder(&parent_folder, &c_name).and_then(|folder| {
                rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
                Ok((rustix::fs::fstat(&folder)?, folder))
            });
            match locked {
                Ok((stat, folder)) if stat.st_nlink > 0 => {
                    let marker = Marker::of_this_process(name, &stat, holds);
                    let scratch = Scratch { parent: parent_folder, name, folder, path: parent.join(&text) };
                    // Dropping `scratch` removes the folder, which must not hold half a marker.
                    let written = put_into(&scratch.folder, marker::NAME, marker.text().as_bytes());
                    if let Err(error) = written {
                        let _ = rustix::fs::unlinkat(&scratch.folder, marker::NAME, AtFlags::empty());
                        return Err(error).with_context(|| format!("cannot write into {}", parent.display()));
                    }
                    return Ok(scratch);
                }
                // The sweep of another process removed it between making and locking.
                _ => _ = rustix::fs::unlinkat(&parent_folder, text.as_str(), AtFlags::REMOVEDIR),
            }
        }
        bail!("cannot make a directory in {}: another process removes it each time", parent.display())
    }

    /// The directory, for opening files by name.
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that an unprivileged user may still write here.
    pub fn free_bytes(&self) -> anyhow::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.folder)
            .with_context(|| format!("cannot read the free space of {}", self.path.display()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Creates a file with this content in it.
    pub fn put(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        put_into(&self.folder, name, content)
            .with_context(|| format!("cannot write {}", self.path.join(name).display()))
    }

    /// Makes a folder in it.
    pub fn make_folder(&self, name: &str) -> anyhow::Result<()> {
        rustix::fs::mkdirat(&self.folder, name, Mode::RWXU)
            .with_context(|| format!("cannot make {}", self.path.join(name).display()))
    }

    /// Creates a file in it for programs that append to it.
    pub fn log(&self, name: &str) -> anyhow::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot write {}", self.path.join(name).display()))
    }

    /// The last `max_bytes` bytes of a file in it; empty if the file is absent.
    pub fn tail(&self, name: &str, max_bytes: u64) -> Vec<u8> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.folder, name, flags, Mode::empty()) else {
            return Vec::new();
        };
        let size = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_size as u64);
        let _ = rustix::fs::seek(&file, SeekFrom::Start(size.saturating_sub(max_bytes)));
        content_of(&file).unwrap_or_default()
    }

    /// Reads and removes a file in it; returns its content.
    pub fn take(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let failed = || format!("cannot read {}", self.path.join(name).display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty());
        let content = file.and_then(|file| content_of(&file)).with_context(failed)?;
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()).with_context(failed)?;
        Ok(content)
    }

    /// Number of files in it, without its marker.
    pub fn count(&self) -> anyhow::Result<usize> {
        let names = names_in(&self.folder).with_context(|| format!("cannot list {}", self.path.display()))?;
        Ok(names.iter().filter(|name| name.as_c_str() != marker::NAME).count())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next sweep reports what cannot be removed.
        let _ = remove_if_ours(&self.parent, self.name, &self.folder);
        let _ = rustix::fs::flock(&self.folder, FlockOperation::Unlock);
    }
}

/// Removes an unused folder if everything in it is provably Assay's; the error says why it stays.
fn remove_if_ours(parent: &OwnedFd, name: Name, folder: &OwnedFd) -> Result<(), String> {
    proof::remove(parent, name, folder, &inspect(name, folder)?)
}

fn inspect(name: Name, folder: &OwnedFd) -> Result<Vec<proof::Entry>, String> {
    if proof::has_no_marker_yet(folder) {
        return Ok(Vec::new());
    }
    proof::inspect(folder, &proof::marker_of(folder, name)?)
}

/// The content of a file.
pub fn content(file: &Path) -> rustix::io::Result<Vec<u8>> {
    content_of(&rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The content of an open file from its current position on.
pub(super) fn content_of(file: &OwnedFd) -> rustix::io::Result<Vec<u8>> {
    let (mut content, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match rustix::io::read(file, &mut piece)? {
            0 => return Ok(content),
            count => content.extend(&piece[..count]),
        }
    }
}

/// Creates a file with this content in a folder, in one write if the system permits it.
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

/// Names in a folder, without `.` and `..`.
fn names_in(folder: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let entries = rustix::fs::Dir::read_from(folder)?.collect::<rustix::io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| entry.file_name().to_owned());
    Ok(names.filter(|name| name.as_c_str() != c"." && name.as_c_str() != c"..").collect())
}

/// A folder of this user that is named like Assay's and whose owner has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    /// Why it stays; `None` if it is provably Assay's and was (or would be) removed.
    pub stays: Option<String>,
}

/// Removes folders that killed owners left in `parent`, if they are provably Assay's; returns all
/// that were found.
pub fn sweep(parent: &Path) -> Vec<Leftover> {
    for_each_leftover(parent, FlockOperation::NonBlockingLockExclusive, remove_if_ours)
}

/// The folders that [`sweep`] would find in `parent`; changes nothing.
pub fn leftovers(parent: &Path) -> Vec<Leftover> {
    for_each_leftover(parent, FlockOperation::NonBlockingLockShared, |_, name, folder| {
        inspect(name, folder).map(drop)
    })
}

/// Called with the parent folder, the name and the folder; an error says why the folder stays.
type Action = fn(&OwnedFd, Name, &OwnedFd) -> Result<(), String>;

fn for_each_leftover(parent: &Path, lock: FlockOperation, action: Action) -> Vec<Leftover> {
    let Ok(parent_folder) = open_parent(parent) else { return Vec::new() };
    let mut names = names_in(&parent_folder).unwrap_or_default();
    names.sort();
    let leftover = |name: CString| {
        let text = name.to_str().ok()?;
        let form = marker::form_of_name(text)?;
        let path = parent.join(text);
        let folder = match open_folder(&parent_folder, &name) {
            Ok(folder) => folder,
            Err(Errno::XDEV) => {
                return Some(Leftover { path, stays: Some("it is a mount point".into()) });
            }
            // A link, a file, another user's folder, or already removed.
            Err(_) => return None,
        };
        let user = rustix::fs::fstat(&folder).ok()?.st_uid;
        let ours = user == rustix::process::geteuid().as_raw();
        (ours && rustix::fs::flock(&folder, lock).is_ok()).then_some(())?;
        let stays = match form {
            NameForm::WithMarker(name) => action(&parent_folder, name, &folder).err(),
            NameForm::Version010 => Some("assay 0.1.0 made such folders without a marker".into()),
        };
        // Closing does not unlock while a process forked meanwhile still has the folder open.
        let _ = rustix::fs::flock(&folder, FlockOperation::Unlock);
        Some(Leftover { path, stays })
    };
    names.into_iter().filter_map(leftover).collect()
}

/// Path, filesystem, device and free bytes of a directory, as lines of the snapshot entry
/// `probe:directory` (read by `machine::directory`).
pub fn probe(directory: &Path) -> anyhow::Result<String> {
    let folder = open_parent(directory).with_context(|| cannot_open(directory))?;
    let kind = rustix::fs::fstatfs(&folder)
        .with_context(|| format!("cannot read the filesystem type of {}", directory.display()))?;
    let space = rustix::fs::fstatvfs(&folder)
        .with_context(|| format!("cannot read the free space of {}", directory.display()))?;
    let device = rustix::fs::fstat(&folder).map(|stat| stat.st_dev).unwrap_or_default();
    Ok(format!(
        "path {}\nmagic {:#x}\ndevice {}:{}\nfree_bytes {}\n",
        directory.display(),
        kind.f_type as u32,
        rustix::fs::major(device),
        rustix::fs::minor(device),
        space.f_bavail.saturating_mul(space.f_frsize)
    ))
}

/// Why the filesystem of a directory cannot open files with O_DIRECT; `None` if it can or if that
/// is unknown.
pub fn direct_refused(directory: &Path) -> Option<String> {
    // A file without a name: the kernel removes it when it is closed.
    let open_with = |extra: OFlags| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | extra;
        rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)
    };
    match (open_with(OFlags::empty()), open_with(OFlags::DIRECT)) {
        (Ok(_), Err(error)) => Some(std::io::Error::from(error).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
