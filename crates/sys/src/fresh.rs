//! A file that appears in its place whole or not at all, whatever ends its writer.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::scratch::Scratch;

/// What the file is called in a directory of our own.
const WHOLE: &str = "whole";
/// The same as a link, by the words of a marker.
const LINK: &str = "whole@";

/// Open to all that the user's umask lets.
const OPEN: Mode = Mode::from_raw_mode(0o666);

/// A file that has no name yet or one in a directory of our own, which goes with us or with the
/// next sweep.
pub struct Fresh {
    directory: PathBuf,
    folder: OwnedFd,
    name: OsString,
    file: OwnedFd,
    own: Option<Scratch>,
}

impl Fresh {
    /// One for this place. What is there stays until [`Fresh::put`].
    pub fn beside(path: &Path) -> anyhow::Result<Fresh> {
        Fresh::with(path, nameless)
    }

    fn with(path: &Path, nameless: fn(&OwnedFd) -> Option<OwnedFd>) -> anyhow::Result<Fresh> {
        let (directory, folder, name) = place(path)?;
        let (file, own) = match nameless(&folder) {
            Some(file) => (file, None),
            None => {
                let own = Scratch::new(directory, &[WHOLE])?;
                (create(&own)?, Some(own))
            }
        };
        Ok(Fresh { directory: directory.to_path_buf(), folder, name, file, own })
    }

    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Puts it there; false where something has the name. With `replace` that, a link itself and
    /// not what it points to, has it no more.
    pub fn put(&self, replace: bool) -> anyhow::Result<bool> {
        let made;
        let own = match &self.own {
            Some(own) => own,
            None => match link(&self.file, &self.folder, &self.name) {
                // A link cannot replace: a second name is needed for an instant.
                Err(Errno::EXIST) if replace => {
                    made = Scratch::new(&self.directory, &[WHOLE])?;
                    link(&self.file, made.folder(), OsStr::new(WHOLE))?;
                    &made
                }
                Err(Errno::EXIST) => return Ok(false),
                linked => return Ok(linked.map(|()| true)?),
            },
        };
        move_whole(own, &self.folder, &self.name, replace)
    }
}

/// Moves what is whole in a directory of our own to its place; false where something has the name
/// and is not to be replaced.
fn move_whole(own: &Scratch, folder: &OwnedFd, name: &OsStr, replace: bool) -> anyhow::Result<bool> {
    if replace {
        rustix::fs::renameat(own.folder(), WHOLE, folder, name)?;
        return Ok(true);
    }
    match move_unless_taken(own.folder(), OsStr::new(WHOLE), folder, name) {
        Err(Errno::EXIST) => Ok(false),
        put => Ok(put.map(|()| true)?),
    }
}

fn move_unless_taken(from: &OwnedFd, old: &OsStr, folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(from, old, folder, name, RenameFlags::NOREPLACE) {
        // Some filesystems, as those of networks, can only give it a second name.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(from, old, folder, name, AtFlags::empty())
            .and_then(|()| rustix::fs::unlinkat(from, old, AtFlags::empty())),
        renamed => renamed,
    }
}

/// What became of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    Put,
    /// Something has the name, and was not to be replaced.
    Taken,
    /// The filesystem has no such links.
    Impossible,
}

/// Puts a link there that leads to a name of the same folder; with `replace` what has the name, a
/// link itself and not what it points to, has it no more.
pub fn put_link(path: &Path, target: &OsStr, replace: bool) -> anyhow::Result<Linked> {
    let (directory, folder, name) = place(path)?;
    let own = Scratch::new(directory, &[LINK])?;
    match rustix::fs::symlinkat(target, own.folder(), WHOLE) {
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => return Ok(Linked::Impossible),
        made => made?,
    }
    Ok(if move_whole(&own, &folder, &name, replace)? { Linked::Put } else { Linked::Taken })
}

/// Gives a file another name in its folder; false where something has it.
pub fn rename(path: &Path, name: &OsStr) -> anyhow::Result<bool> {
    let (_, folder, old) = place(path)?;
    match move_unless_taken(&folder, &old, &folder, name) {
        Err(Errno::EXIST) => Ok(false),
        renamed => Ok(renamed.map(|()| true)?),
    }
}

/// A path's folder, opened, and its name there.
fn place(path: &Path) -> anyhow::Result<(&Path, OwnedFd, OsString)> {
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(OsStr::to_owned).context("this names no file")?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((directory, rustix::fs::open(directory, flags, Mode::empty())?, name))
}

/// A file in this directory that nobody finds and that goes with us.
pub fn unnamed(directory: &Path) -> anyhow::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file),
        // The directory of our own takes its name with it.
        Err(_) => Ok(create(&Scratch::new(directory, &[WHOLE])?)?),
    }
}

fn create(own: &Scratch) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(own.folder(), WHOLE, flags, OPEN)
}

/// A file without a name that can be given one later; nothing where the filesystem or this process
/// cannot do that.
fn nameless(folder: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, c".", flags, OPEN).ok()?;
    rustix::fs::statat(CWD, handle(&file), AtFlags::empty()).is_ok().then_some(file)
}

/// The kernel's name of an open file, which means that file whatever becomes of its own names.
pub fn handle(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Whether a file here would be among those that the kernel makes.
pub fn is_of_the_kernel(directory: &Path) -> bool {
    let Ok(place) = directory.canonicalize() else { return false };
    ["/dev", "/proc", "/sys"].iter().any(|tree| place.starts_with(tree)) && !place.starts_with("/dev/shm")
}

/// Whether a path is the kernel's link to an open file, or a link to such a one.
pub fn is_given_open(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let (Ok(target), Some(above)) = (path.read_link(), path.parent()) else { return false };
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if rustix::fs::statfs(above).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC) {
            return true;
        }
        path = above.join(target);
    }
    false
}

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

fn link(file: &OwnedFd, folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::linkat(CWD, handle(file), folder, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Seek, Write};

    fn write(path: &Path, text: &str, nameless: fn(&OwnedFd) -> Option<OwnedFd>) -> anyhow::Result<()> {
        let fresh = Fresh::with(path, nameless)?;
        rustix::io::write(fresh.file(), text.as_bytes())?;
        let is_there = path.symlink_metadata().is_ok();
        assert!(!is_there || !fresh.put(false)?, "nothing is replaced unasked");
        assert!(fresh.put(is_there)?);
        Ok(())
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_unnamed_file_is_written_and_read_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = |_: &Path| Ok(create(&Scratch::new(folder.path(), &[WHOLE])?)?);
        for make in [&unnamed as &dyn Fn(&Path) -> anyhow::Result<OwnedFd>, &named] {
            let mut file = fs::File::from(make(folder.path()).expect("made"));
            file.write_all(b"some").expect("written");
            file.rewind().expect("at its begin");
            assert_eq!(std::io::read_to_string(&file).expect("read"), "some");
            assert!(names(folder.path()).is_empty());
        }
    }

    #[test]
    fn a_link_is_put_and_replaced_and_a_name_that_is_taken_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let put =
            |target: &str, replace| put_link(&path("newest"), OsStr::new(target), replace).expect("a link");
        fs::write(path("one"), "1").expect("a file");
        fs::write(path("two"), "2").expect("a file");
        assert_eq!(put("one", false), Linked::Put);
        assert_eq!(put("two", false), Linked::Taken);
        assert_eq!(fs::read_to_string(path("newest")).expect("a file"), "1");
        assert_eq!(put("two", true), Linked::Put);
        assert_eq!(fs::read_to_string(path("newest")).expect("a file"), "2");
        assert!(!rename(&path("one"), OsStr::new("two")).expect("asked"));
        assert!(rename(&path("one"), OsStr::new("three")).expect("renamed"));
        assert_eq!(names(folder.path()), ["newest", "three", "two"]);
    }

    #[test]
    fn a_file_is_put_and_replaced_with_and_without_a_name() {
        for nameless in [nameless, |_: &OwnedFd| None] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("report");
            for text in ["first, which is longer", "second"] {
                write(&path, text, nameless).expect("written");
                assert_eq!(fs::read_to_string(&path).expect("a file"), text);
                assert_eq!(names(folder.path()), ["report"]);
            }
            drop(Fresh::with(&path, nameless).expect("begun"));
            assert_eq!(
                (names(folder.path()), fs::read(&path).expect("a file")),
                (vec!["report".into()], b"second".to_vec())
            );
            // A link goes, and what it points to stays.
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
        assert!(Fresh::beside(Path::new("/nonexistent/report")).is_err());
        assert!(Fresh::beside(Path::new("..")).is_err());
    }
}
