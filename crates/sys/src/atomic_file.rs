//! A file that appears in its place complete or not at all, even if its writer is killed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::scratch::Scratch;

/// Name of the file in a scratch directory.
const TEMPORARY: &str = "whole";
/// The same name declared as a link (see [`Scratch::new`]).
const TEMPORARY_LINK: &str = "whole@";

/// Permissions before the user's umask.
const PERMISSIONS: Mode = Mode::from_raw_mode(0o666);

/// A file under construction: without a name, or in a scratch directory.
pub struct AtomicFile {
    directory: PathBuf,
    folder: OwnedFd,
    name: OsString,
    file: OwnedFd,
    scratch: Option<Scratch>,
}

impl AtomicFile {
    /// Creates the file for this path; an existing file stays there until [`AtomicFile::put`].
    pub fn for_path(path: &Path) -> anyhow::Result<AtomicFile> {
        AtomicFile::with(path, nameless)
    }

    fn with(path: &Path, nameless: fn(&OwnedFd) -> Option<OwnedFd>) -> anyhow::Result<AtomicFile> {
        let (directory, folder, name) = place(path)?;
        let (file, scratch) = match nameless(&folder) {
            Some(file) => (file, None),
            None => {
                let scratch = Scratch::new(directory, &[TEMPORARY])?;
                (create(&scratch)?, Some(scratch))
            }
        };
        Ok(AtomicFile { directory: directory.to_path_buf(), folder, name, file, scratch })
    }

    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Gives the file its name. If the name exists: replaces it with `replace` (a link itself, not
    /// its target), else returns false.
    pub fn put(&self, replace: bool) -> anyhow::Result<bool> {
        let made;
        let scratch = match &self.scratch {
            Some(scratch) => scratch,
            None => match link(&self.file, &self.folder, &self.name) {
                // linkat cannot replace, renameat can: the file gets another name first.
                Err(Errno::EXIST) if replace => {
                    made = Scratch::new(&self.directory, &[TEMPORARY])?;
                    link(&self.file, made.folder(), OsStr::new(TEMPORARY))?;
                    &made
                }
                Err(Errno::EXIST) => return Ok(false),
                linked => return Ok(linked.map(|()| true)?),
            },
        };
        move_into_place(scratch, &self.folder, &self.name, replace)
    }
}

/// Moves the finished file of a scratch directory to its place; false if the name exists and
/// `replace` is false.
fn move_into_place(scratch: &Scratch, folder: &OwnedFd, name: &OsStr, replace: bool) -> anyhow::Result<bool> {
    if replace {
        rustix::fs::renameat(scratch.folder(), TEMPORARY, folder, name)?;
        return Ok(true);
    }
    match move_unless_taken(scratch.folder(), OsStr::new(TEMPORARY), folder, name) {
        Err(Errno::EXIST) => Ok(false),
        put => Ok(put.map(|()| true)?),
    }
}

fn move_unless_taken(from: &OwnedFd, old: &OsStr, folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(from, old, folder, name, RenameFlags::NOREPLACE) {
        // Some filesystems (network filesystems) lack NOREPLACE, but linkat never replaces.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(from, old, folder, name, AtFlags::empty())
            .and_then(|()| rustix::fs::unlinkat(from, old, AtFlags::empty())),
        renamed => renamed,
    }
}

/// The outcome of [`put_link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    Created,
    /// The name exists and was not replaced.
    NameTaken,
    /// The filesystem has no symbolic links.
    Unsupported,
}

/// Creates a symbolic link to a name in the same folder. If `path` exists, `replace` replaces it (a
/// link itself, not its target).
pub fn put_link(path: &Path, target: &OsStr, replace: bool) -> anyhow::Result<LinkOutcome> {
    let (directory, folder, name) = place(path)?;
    let scratch = Scratch::new(directory, &[TEMPORARY_LINK])?;
    match rustix::fs::symlinkat(target, scratch.folder(), TEMPORARY) {
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => return Ok(LinkOutcome::Unsupported),
        made => made?,
    }
    let created = move_into_place(&scratch, &folder, &name, replace)?;
    Ok(if created { LinkOutcome::Created } else { LinkOutcome::NameTaken })
}

/// Gives a file another name in its folder; false if that name exists.
pub fn rename(path: &Path, name: &OsStr) -> anyhow::Result<bool> {
    let (_, folder, old) = place(path)?;
    match move_unless_taken(&folder, &old, &folder, name) {
        Err(Errno::EXIST) => Ok(false),
        renamed => Ok(renamed.map(|()| true)?),
    }
}

/// The folder of a path, as a path and opened, and the file's name in it.
fn place(path: &Path) -> anyhow::Result<(&Path, OwnedFd, OsString)> {
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(OsStr::to_owned);
    let name = name.with_context(|| format!("{} does not name a file", path.display()))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((directory, rustix::fs::open(directory, flags, Mode::empty())?, name))
}

/// A file in this directory without a name; the kernel removes it when it is closed.
pub fn unnamed(directory: &Path) -> anyhow::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file),
        // Dropping the scratch directory removes the name at once.
        Err(_) => Ok(create(&Scratch::new(directory, &[TEMPORARY])?)?),
    }
}

fn create(scratch: &Scratch) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(scratch.folder(), TEMPORARY, flags, PERMISSIONS)
}

/// A file without a name that can get one later; `None` if the filesystem has none (O_TMPFILE) or
/// /proc is missing.
fn nameless(folder: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, c".", flags, PERMISSIONS).ok()?;
    rustix::fs::statat(CWD, handle(&file), AtFlags::empty()).is_ok().then_some(file)
}

/// The path of an open file below /proc, valid even if its own names change.
pub fn handle(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Whether a directory lies in /dev, /proc or /sys, where only the kernel makes files (except
/// /dev/shm).
pub fn is_kernel_directory(directory: &Path) -> bool {
    let Ok(place) = directory.canonicalize() else { return false };
    ["/dev", "/proc", "/sys"].iter().any(|tree| place.starts_with(tree)) && !place.starts_with("/dev/shm")
}

/// Whether a path is a link to an open file (such as /dev/stdout or /proc/self/fd/3), also through
/// further links.
pub fn links_to_open_file(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let (Ok(target), Some(above)) = (path.read_link(), path.parent()) else { return false };
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if rustix::fs::statfs(above).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC) {
            return true;
        }
        path = above.join(target);
    }
    false
}

/// The kernel follows no more links either.
const MAX_LINKS: usize = 40;

fn link(file: &OwnedFd, folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::linkat(CWD, handle(file), folder, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Seek, Write};

    fn write(path: &Path, text: &str, nameless: fn(&OwnedFd) -> Option<OwnedFd>) -> anyhow::Result<()> {
        let file = AtomicFile::with(path, nameless)?;
        rustix::io::write(file.file(), text.as_bytes())?;
        let exists = path.symlink_metadata().is_ok();
        assert!(!exists || !file.put(false)?, "nothing is replaced without `replace`");
        assert!(file.put(exists)?);
        Ok(())
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_unnamed_file_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = |_: &Path| Ok(create(&Scratch::new(folder.path(), &[TEMPORARY])?)?);
        for make in [&unnamed as &dyn Fn(&Path) -> anyhow::Result<OwnedFd>, &named] {
            let mut file = fs::File::from(make(folder.path()).expect("made"));
            file.write_all(b"some").expect("written");
            file.rewind().expect("at its start");
            assert_eq!(std::io::read_to_string(&file).expect("read"), "some");
            assert!(names(folder.path()).is_empty());
        }
    }

    #[test]
    fn a_link_is_created_and_replaced_only_on_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let put =
            |target: &str, replace| put_link(&path("newest"), OsStr::new(target), replace).expect("a link");
        fs::write(path("one"), "1").expect("a file");
        fs::write(path("two"), "2").expect("a file");
        assert_eq!(put("one", false), LinkOutcome::Created);
        assert_eq!(put("two", false), LinkOutcome::NameTaken);
        assert_eq!(fs::read_to_string(path("newest")).expect("a file"), "1");
        assert_eq!(put("two", true), LinkOutcome::Created);
        assert_eq!(fs::read_to_string(path("newest")).expect("a file"), "2");
        assert!(!rename(&path("one"), OsStr::new("two")).expect("checked"));
        assert!(rename(&path("one"), OsStr::new("three")).expect("renamed"));
        assert_eq!(names(folder.path()), ["newest", "three", "two"]);
    }

    #[test]
    fn a_file_is_put_and_replaced_with_and_without_scratch() {
        for nameless in [nameless, |_: &OwnedFd| None] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("report");
            for text in ["first, which is longer", "second"] {
                write(&path, text, nameless).expect("written");
                assert_eq!(fs::read_to_string(&path).expect("a file"), text);
                assert_eq!(names(folder.path()), ["report"]);
            }
            drop(AtomicFile::with(&path, nameless).expect("a file"));
            assert_eq!(
                (names(folder.path()), fs::read(&path).expect("a file")),
                (vec!["report".into()], b"second".to_vec())
            );
            // A link is replaced, its target stays.
            let (link, target) = (folder.path().join("link"), folder.path().join("target"));
            fs::write(&target, "mine").expect("a file");
            std::os::unix::fs::symlink(&target, &link).expect("a link");
            write(&link, "ours", nameless).expect("written");
            assert!(!link.is_symlink());
            let texts = [&link, &target].map(|path| fs::read_to_string(path).expect("a file"));
            assert_eq!(texts, ["ours", "mine"]);
            // A folder is not replaced.
            fs::create_dir(folder.path().join("folder")).expect("a folder");
            assert!(write(&folder.path().join("folder"), "x", nameless).is_err());
            assert_eq!(names(folder.path()), ["folder", "link", "report", "target"]);
        }
        assert!(unnamed(Path::new("/nonexistent")).is_err());
        assert!(AtomicFile::for_path(Path::new("/nonexistent/report")).is_err());
        assert!(AtomicFile::for_path(Path::new("..")).is_err());
    }
}
