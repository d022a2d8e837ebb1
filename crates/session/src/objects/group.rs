//! A control group around the programs of one visit, so that every process in it can be ended.
//!
//! It has no controllers and sets no limits: the programs run as they would without it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use machine::cgroup_folder;

/// Where a group can be made: the folder of this process's group, in version 2, or in version 1
/// that of the freezer.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub folder: PathBuf,
    pub version: u32,
}

/// Prefix of Assay's groups, before a mark of 32 hexadecimal digits.
const BEGIN: &str = "assay-";
/// Files with limits, which a program in a child group would not see.
const LIMITS: [&str; 3] = ["cpu.max", "memory.max", "memory.high"];
/// How long killed processes may take to end.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);

fn text(folder: &Path, name: &str) -> io::Result<String> {
    fs::read_to_string(folder.join(name)).map(|text| text.trim().to_string())
}

impl Place {
    /// Where this process can make a group; the error has every reason why it cannot.
    pub fn find() -> Result<Place, String> {
        let mut why = Vec::new();
        for place in [2, 1].into_iter().filter_map(Place::own) {
            match place.unfit() {
                None => return Ok(place),
                Some(unfit) => why.push(format!("{} {unfit}", place.folder.display())),
            }
        }
        if why.is_empty() {
            why.push("no hierarchy of control groups is mounted here".to_string());
        }
        Err(why.join("; "))
    }

    /// The group of this process, whether usable or not.
    fn own(version: u32) -> Option<Place> {
        let of = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let controller = if version == 2 { "" } else { "freezer" };
        let folder = cgroup_folder(&of("cgroup"), &of("mountinfo"), version, controller)?;
        Some(Place { folder: folder.into(), version })
    }

    fn unfit(&self) -> Option<String> {
        let folder = &self.folder;
        let inside = |text: String| text.lines().any(|line| line.parse() == Ok(std::process::id()));
        if !text(folder, "cgroup.procs").is_ok_and(inside) {
            return Some("is not the control group of this process".to_string());
        }
        if self.version == 1 {
            return (text(folder, "freezer.state").is_ok_and(|state| state != "THAWED"))
                .then(|| "is frozen".to_string());
        }
        if !text(folder, "cgroup.subtree_control").is_ok_and(|list| list.is_empty()) {
            return Some("hands controllers to the groups below it".to_string());
        }
        if text(folder, "cgroup.type").is_ok_and(|kind| kind != "domain") {
            return Some("is threaded".to_string());
        }
        let limited =
            LIMITS.iter().find(|name| text(folder, name).is_ok_and(|text| !text.starts_with("max")));
        limited.map(|name| format!("has a limit ({name}) that programs in a child group would not see"))
    }

    pub fn named(&self, nonce: &str) -> PathBuf {
        self.folder.join(format!("{BEGIN}{nonce}"))
    }
}

/// Makes the group's folder and returns its inode.
pub fn make(folder: &Path) -> io::Result<u64> {
    fs::create_dir(folder)?;
    // Otherwise the kernel accounts waiting once more at every task switch.
    let _ = fs::write(folder.join("cgroup.pressure"), "0");
    Ok(fs::metadata(folder)?.ino())
}

/// Moves a single-threaded process into it.
pub fn enter(folder: &Path, pid: u32) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), pid.to_string())
}

/// An open group of Assay's: operations cannot hit a successor of the same name.
struct Group {
    above: OwnedFd,
    own: OwnedFd,
    name: OsString,
}

fn foreign(why: &str) -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, why)
}

impl Group {
    /// Opens a group of a journal, which may name any folder: only a control group with an Assay
    /// name is accepted.
    fn open(folder: &Path, version: u32) -> io::Result<Group> {
        let is_ours = |name: &str| {
            name.strip_prefix(BEGIN).is_some_and(|nonce| {
                nonce.len() == 32 && nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            })
        };
        let name =
            folder.file_name().filter(|name| folder.is_absolute() && name.to_str().is_some_and(is_ours));
        let (Some(name), Some(above)) = (name, folder.parent()) else {
            return Err(foreign("its name is not one that Assay gives"));
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let or_foreign = |opened| match opened {
            Err(Errno::LOOP | Errno::NOTDIR) => Err(foreign("it is not a folder, or behind a link")),
            opened => Ok(opened?),
        };
        let above = or_foreign(rustix::fs::open(above, flags, Mode::empty()))?;
        let own = or_foreign(rustix::fs::openat(&above, name, flags, Mode::empty()))?;
        let kind = if version == 2 { V2 } else { V1 };
        for folder in [&above, &own] {
            if rustix::fs::fstatfs(folder)?.f_type as u64 != kind {
                return Err(foreign("it is not a control group of that version"));
            }
        }
        Ok(Group { above, own, name: name.to_os_string() })
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.own)?.st_ino)
    }

    /// The path of the open folder.
    fn inside(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.own.as_raw_fd()).into()
    }

    fn remove(&self) -> io::Result<()> {
        below(&self.inside()).iter().try_for_each(|folder| remove(folder))?;
        Ok(rustix::fs::unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR)?)
    }
}

/// Kills the processes of a group and removes it; returns their number. `inode` is that of its
/// folder; if none was noted, it was empty. It is an error if the group is not Assay's or has been
/// replaced.
pub fn end(folder: &Path, version: u32, inode: Option<u64>) -> io::Result<usize> {
    let group = match Group::open(folder, version) {
        Err(error) if error.kind() == ErrorKind::NotFound => return gone(folder).map(|()| 0),
        group => group?,
    };
    match inode {
        None => return group.remove().map(|()| 0),
        Some(inode) if inode != group.inode()? => {
            return Err(foreign("it is another group of the same name"));
        }
        Some(_) => {}
    }
    let inside = group.inside();
    let (limit, mut killed) = (Instant::now() + MAX_EXIT_WAIT, 0);
    loop {
        let members = members(&inside);
        killed = killed.max(members.len());
        if !members.is_empty() {
            kill(&inside, version, &members)?;
        }
        match group.remove() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(killed),
            Err(error) if error.kind() != ErrorKind::ResourceBusy || Instant::now() > limit => {
                return Err(error);
            }
            Err(_) => std::thread::sleep(POLL),
            Ok(()) => return Ok(killed),
        }
    }
}

/// A missing folder proves the end of the group only if its hierarchy is mounted.
fn gone(folder: &Path) -> io::Result<()> {
    let above = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statfs(above)?.f_type as u64 {
        V1 | V2 => Ok(()),
        _ => Err(io::Error::new(ErrorKind::NotFound, "its hierarchy is not mounted here")),
    }
}

const V1: u64 = 0x0027_e0eb;
const V2: u64 = 0x6367_7270;

fn kill(folder: &Path, version: u32, members: &[Pid]) -> io::Result<()> {
    if version == 2 && fs::write(folder.join("cgroup.kill"), "1").is_ok() {
        Ok(())
    } else {
        kill_frozen(folder, version, members)
    }
}

/// For version 1 and older kernels.
fn kill_frozen(folder: &Path, version: u32, members: &[Pid]) -> io::Result<()> {
    // While frozen, no process can start, or end and have its number reused.
    let (name, on, off) =
        if version == 2 { ("cgroup.freeze", "1", "0") } else { ("freezer.state", "FROZEN", "THAWED") };
    fs::write(folder.join(name), on)?;
    for pid in members {
        // Already ended is fine.
        let _ = rustix::process::kill_process(*pid, Signal::KILL);
    }
    thaw(folder, name, off)
}

/// Includes child groups that the programs may have frozen: in version 1, frozen processes do not
/// die.
fn thaw(folder: &Path, file: &str, off: &str) -> io::Result<()> {
    fs::write(folder.join(file), off)?;
    below(folder).iter().try_for_each(|folder| thaw(folder, file, off))
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect()
}

/// The processes in it and in its child groups.
fn members(folder: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let own = text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
    own.chain(below(folder).iter().flat_map(|folder| members(folder))).collect()
}

fn remove(folder: &Path) -> io::Result<()> {
    below(folder).iter().try_for_each(|folder| remove(folder))?;
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A shell in the group, with children that do what they can to get away.
    fn stubborn(folder: &Path) -> Child {
        let script = "echo $$ >\"$0/cgroup.procs\" && trap '' TERM && { (setsid sleep 300 &); \
                      mkdir \"$0/below\" && sh -c 'echo $$ >\"$0/below/cgroup.procs\"; sleep 300' \"$0\" & \
                      while :; do sleep 0.01 & sleep 0.01; done; }";
        let mut shell = Command::new("/bin/sh");
        let child = shell.args(["-c", script]).arg(folder).spawn().expect("a shell");
        let end = Instant::now() + Duration::from_secs(20);
        // Three stay, others come and go.
        while members(folder).len() < 3 || members(&folder.join("below")).is_empty() {
            assert!(Instant::now() < end, "{:?}", members(folder));
            std::thread::sleep(POLL);
        }
        child
    }

    #[test]
    fn nobody_gets_out_of_a_group_of_either_version() {
        for place in [2, 1].into_iter().filter_map(Place::own).filter(|place| place.unfit().is_none()) {
            let folder = place.named(&format!("{:032x}", fastrand::u128(..)));
            let Ok(inode) = make(&folder) else { continue };
            let mut child = stubborn(&folder);
            assert_eq!(
                end(&folder, place.version, Some(inode + 1)).expect_err("another one").kind(),
                ErrorKind::AlreadyExists
            );
            assert!(members(&folder).len() >= 3);
            let limit = Instant::now() + MAX_EXIT_WAIT;
            while !members(&folder).is_empty() && Instant::now() < limit {
                // Where the file is there this is the way of older kernels.
                kill_frozen(&folder, place.version, &members(&folder)).expect("killed");
            }
            let _ = child.wait();
            assert_eq!(end(&folder, place.version, Some(inode)).expect("removed"), 0);
            let inode = make(&folder).expect("made anew");
            let mut child = stubborn(&folder);
            // The program may have frozen a part of itself.
            let (name, on) =
                if place.version == 2 { ("cgroup.freeze", "1") } else { ("freezer.state", "FROZEN") };
            fs::write(folder.join("below").join(name), on).expect("frozen");
            // Only its parent can wait for it, which is this process.
            let waiting = std::thread::spawn(move || child.wait());
            assert!(end(&folder, place.version, Some(inode)).expect("ended") >= 3);
            assert!(!folder.exists() && waiting.join().expect("waited").is_ok());
            assert_eq!(end(&folder, place.version, Some(inode)).expect("gone already"), 0);
            make(&folder).expect("made, and nobody let in");
            assert_eq!(end(&folder, place.version, None).expect("removed"), 0);
            let other = place.named("of-somebody");
            let inode = make(&other).expect("a group that is not called as ours are");
            for inode in [None, Some(inode)] {
                let left = end(&other, place.version, inode).expect_err("left").kind();
                assert_eq!(left, ErrorKind::AlreadyExists);
            }
            fs::remove_dir(&other).expect("it was left");
        }
        let absent = std::env::temp_dir().join(format!("{BEGIN}{:032x}", fastrand::u128(..)));
        assert_eq!(
            end(&absent, 2, Some(1)).expect_err("what lies elsewhere tells nothing").kind(),
            ErrorKind::NotFound
        );
    }
}
