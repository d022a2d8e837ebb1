//! A private directory for the files of one visit, gone with it: removed on drop, or by the next start after a kill.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

/// Every private directory's name begins so.
const PREFIX: &str = "assay-files-";
/// The name of one in which programs make folders of their own: it goes with all that is in it.
const TREE: &str = "assay-tree-";

/// An empty directory of our own. Its lock tells others that its owner lives, on whichever side of a namespace.
pub struct Scratch {
    parent: OwnedFd,
    name: String,
    folder: OwnedFd,
    path: PathBuf,
}

fn open_folder(at: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

fn open_parent(parent: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

impl Scratch {
    /// Makes one in `parent`, after removing those that killed owners left there.
    pub fn new(parent: &Path) -> anyhow::Result<Scratch> {
        Scratch::named(parent, PREFIX)
    }

    /// The same for programs that make folders of their own in it.
    pub fn tree(parent: &Path) -> anyhow::Result<Scratch> {
        Scratch::named(parent, TREE)
    }

    fn named(parent: &Path, prefix: &str) -> anyhow::Result<Scratch> {
        sweep(parent);
        let at =
            open_parent(parent).with_context(|| format!("cannot open the directory {}", parent.display()))?;
        for _ in 0..16 {
            let name = format!("{prefix}{}-{:08x}", std::process::id(), fastrand::u32(..));
            match rustix::fs::mkdirat(&at, name.as_str(), Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made.with_context(|| format!("cannot make a directory in {}", parent.display()))?,
            }
            let Ok(folder) = open_folder(&at, &name) else { continue };
            let locked = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            // Somebody's sweep may have come between making and locking.
            let there = rustix::fs::fstat(&folder).is_ok_and(|stat| stat.st_nlink > 0);
            if locked && there {
                let path = parent.join(&name);
                return Ok(Scratch { parent: at, name, folder, path });
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
        let failed = || format!("cannot write {}", self.path.join(name).display());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR);
        let file = file.with_context(failed)?;
        let mut rest = content;
        while !rest.is_empty() {
            let wrote = rustix::io::write(&file, rest).with_context(failed)?;
            rest = &rest[wrote..];
        }
        Ok(())
    }

    /// Makes a folder in it.
    pub fn make_folder(&self, name: &str) -> anyhow::Result<()> {
        rustix::fs::mkdirat(&self.folder, name, Mode::RWXU)
            .with_context(|| format!("cannot make {}", self.path.join(name).display()))
    }

    /// A file in it that programs go on writing at its end.
    pub fn log(&self, name: &str) -> anyhow::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot write {}", self.path.join(name).display()))
    }

    /// The end of a file in it, so many bytes at most; empty where there is none.
    pub fn tail(&self, name: &str, most: u64) -> Vec<u8> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
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
        let file = rustix::fs::openat(&self.folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let content = file.and_then(|file| content_of(&file)).with_context(failed)?;
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()).with_context(failed)?;
        Ok(content)
    }

    /// Files in it.
    pub fn count(&self) -> anyhow::Result<usize> {
        let names = names_in(&self.folder);
        Ok(names.with_context(|| format!("cannot list {}", self.path.display()))?.len())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.parent, &self.name, &self.folder);
    }
}

fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX) || name.starts_with(TREE)
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

/// What lies in a folder, itself and its parent left out.
fn names_in(folder: &OwnedFd) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let own = |name: &CString| name.as_bytes() == b"." || name.as_bytes() == b"..";
    let entries = rustix::fs::Dir::read_from(folder)?.collect::<rustix::io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| (entry.file_name().to_owned(), entry.file_type()));
    Ok(names.filter(|(name, _)| !own(name)).collect())
}

/// Removes a folder with its files. A folder inside is none of ours, and keeps it there, unless it is in a tree.
fn remove(parent: &OwnedFd, name: &str, folder: &OwnedFd) {
    match name.starts_with(TREE) {
        true => empty(folder, DEEPEST),
        false => empty(folder, 0),
    }
    let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Deeper than any program of ours makes folders.
const DEEPEST: usize = 32;

/// Removes what is in a folder, so many folders deep; links are not followed.
fn empty(folder: &OwnedFd, deep: usize) {
    for (name, _) in names_in(folder).unwrap_or_default() {
        let removed = rustix::fs::unlinkat(folder, name.as_c_str(), AtFlags::empty());
        let Some(name) = name.to_str().ok().filter(|_| deep > 0 && removed.is_err()) else { continue };
        if let Ok(inner) = open_folder(folder, name) {
            empty(&inner, deep - 1);
        }
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR);
    }
}

/// Removes what killed owners left in `parent`: directories of this user with our name whose lock nobody holds.
pub fn sweep(parent: &Path) {
    let Ok(at) = open_parent(parent) else { return };
    for (name, kind) in names_in(&at).unwrap_or_default() {
        let Some(name) = name.to_str().ok().filter(|name| is_ours(name)) else { continue };
        if !matches!(kind, FileType::Directory | FileType::Unknown) {
            continue;
        }
        let Ok(folder) = open_folder(&at, name) else { continue };
        let ours =
            rustix::fs::fstat(&folder).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        if ours && rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&at, name, &folder);
        }
    }
}

/// What a process needs to know of a directory that files are to be written to: its real path and its filesystem, as
/// the lines of the entry `probe:directory` (see `machine::directory`).
pub fn probe(directory: &Path) -> anyhow::Result<String> {
    let folder = open_parent(directory)
        .with_context(|| format!("cannot open the directory {}", directory.display()))?;
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

/// Why a directory's filesystem cannot open files with O_DIRECT; nothing where it can, or where that is unknown.
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
mod tests {
    use super::*;

    fn touch(scratch: &Scratch, name: &str) {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(scratch.folder(), name, flags, Mode::RUSR).expect("a file");
    }

    #[test]
    fn a_directory_goes_with_its_owner_and_only_then() {
        let parent = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(parent.path()).expect("a directory");
        touch(&scratch, "one");
        touch(&scratch, "two");
        assert_eq!(scratch.count().expect("readable"), 2);
        sweep(parent.path());
        assert_eq!(scratch.count().expect("readable"), 2, "its owner lives");
        assert!(scratch.free_bytes().expect("known") > 0);
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_put_in_can_be_taken_out_once() {
        let parent = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(parent.path()).expect("a directory");
        let content: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
        scratch.put("one", &content).expect("room");
        assert!(scratch.put("one", b"again").is_err(), "there is one of this name");
        assert_eq!(scratch.take("one").expect("it is there"), content);
        assert!(scratch.take("one").is_err());
        assert_eq!(scratch.count().expect("readable"), 0);
    }

    #[test]
    fn what_a_killed_owner_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let left = parent.path().join(format!("{PREFIX}1-0"));
        let foreign = parent.path().join("other-files-1");
        let file = parent.path().join(format!("{PREFIX}a-file"));
        for folder in [&left, &foreign] {
            std::fs::create_dir(folder).expect("a folder");
            std::fs::write(folder.join("data"), "x").expect("a file");
        }
        std::fs::write(&file, "x").expect("a file");
        let scratch = Scratch::new(parent.path()).expect("a directory");
        assert!(!left.exists() && foreign.join("data").exists() && file.exists());
        drop(scratch);
        assert!(Scratch::new(&parent.path().join("missing")).is_err());
    }

    #[test]
    fn a_tree_goes_with_all_that_is_in_it_and_no_further() {
        let parent = tempfile::tempdir().expect("a folder");
        let kept = parent.path().join("kept");
        std::fs::create_dir(&kept).expect("a folder");
        std::fs::write(kept.join("data"), "x").expect("a file");
        let grow = |path: &Path| {
            std::fs::create_dir_all(path.join("a/b")).expect("folders");
            std::fs::write(path.join("a/b/c"), "x").expect("a file");
            std::os::unix::fs::symlink(&kept, path.join("a/link")).expect("a link");
        };
        let left = parent.path().join(format!("{TREE}1-0"));
        std::fs::create_dir(&left).expect("a folder");
        grow(&left);
        let tree = Scratch::tree(parent.path()).expect("a directory");
        assert!(!left.exists(), "its owner was killed");
        tree.make_folder("tmp").expect("a folder");
        grow(&tree.path().join("tmp"));
        for text in ["first ", "second"] {
            rustix::io::write(tree.log("log").expect("a log"), text.as_bytes()).expect("written");
        }
        assert_eq!((tree.tail("log", 6), tree.tail("none", 6)), (b"second".to_vec(), Vec::new()));
        let path = tree.path().to_path_buf();
        drop(tree);
        assert!(!path.exists() && kept.join("data").exists());
    }

    #[test]
    fn a_directory_is_described() {
        let parent = tempfile::tempdir().expect("a folder");
        let text = probe(parent.path()).expect("described");
        for word in ["path ", "magic 0x", "device ", "free_bytes "] {
            assert!(text.lines().any(|line| line.starts_with(word)), "{text}");
        }
        assert!(probe(Path::new("/nonexistent")).is_err());
    }
}
