//! A control group around the programs of one visit: whoever is in it can be ended, whatever he did to get away.
//!
//! It has no controllers and sets no limits: the programs run as they would without it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::machine::cgroup_folder;

/// Where a group can be made: the folder of our own one, in version 2, or in version 1 that of the freezer.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub folder: PathBuf,
    pub version: u32,
}

/// Files that tell a program of limits: in a group below ours it would look for them and find none.
const LIMITS: [&str; 3] = ["cpu.max", "memory.max", "memory.high"];
/// How long killed processes may take to leave.
const LEAVE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(1);

fn text(folder: &Path, name: &str) -> io::Result<String> {
    fs::read_to_string(folder.join(name)).map(|text| text.trim().to_string())
}

impl Place {
    /// Where this process can make a group; every reason why it cannot.
    pub fn find() -> Result<Place, String> {
        let of = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let (memberships, mounts) = (of("cgroup"), of("mountinfo"));
        let mut why = Vec::new();
        for (version, controller) in [(2, ""), (1, "freezer")] {
            let Some(folder) = cgroup_folder(&memberships, &mounts, version, controller) else { continue };
            let place = Place { folder: folder.into(), version };
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

    fn unfit(&self) -> Option<String> {
        let folder = &self.folder;
        let inside = |text: String| text.lines().any(|line| line.parse() == Ok(std::process::id()));
        if !text(folder, "cgroup.procs").is_ok_and(inside) {
            return Some("is not the group of this process".to_string());
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
        limited.map(|name| format!("has a limit ({name}) that programs in a group below it would not see"))
    }

    pub fn named(&self, nonce: &str) -> PathBuf {
        self.folder.join(format!("assay-{nonce}"))
    }
}

/// Makes the group's folder; its inode.
pub fn make(folder: &Path) -> io::Result<u64> {
    fs::create_dir(folder)?;
    // Else the kernel keeps one more account of waiting at every switch of a task in it.
    let _ = fs::write(folder.join("cgroup.pressure"), "0");
    Ok(fs::metadata(folder)?.ino())
}

/// Moves a process of one thread into it.
pub fn enter(folder: &Path, pid: u32) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), pid.to_string())
}

/// Ends all that is in a group, and the group: how many were killed. `inode` is that of its folder, where that was noted;
/// where it was not, nobody had been let in. Another group of that name is left alone, which is an error.
pub fn end(folder: &Path, version: u32, inode: Option<u64>) -> io::Result<usize> {
    let found = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return gone(folder).map(|()| 0),
        found => found?,
    };
    match inode {
        None => return fs::remove_dir(folder).map(|()| 0),
        Some(inode) if inode != found.ino() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "it is another group of the same name"));
        }
        Some(_) => {}
    }
    let (limit, mut killed) = (Instant::now() + LEAVE, 0);
    loop {
        let members = members(folder);
        killed = killed.max(members.len());
        if !members.is_empty() {
            kill(folder, version, &members)?;
        }
        match remove(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(killed),
            Err(error) if error.kind() != ErrorKind::ResourceBusy || Instant::now() > limit => {
                return Err(error);
            }
            Err(_) => std::thread::sleep(LOOK),
            Ok(()) => return Ok(killed),
        }
    }
}

/// A folder that is not there is gone only where its hierarchy can be seen.
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
        return Ok(());
    }
    // Nobody can be born meanwhile, nor die so that his number is given to another.
    let (file, on, off) =
        if version == 2 { ("cgroup.freeze", "1", "0") } else { ("freezer.state", "FROZEN", "THAWED") };
    let file = folder.join(file);
    fs::write(&file, on)?;
    for pid in members {
        // Already gone is as good as killed.
        let _ = rustix::process::kill_process(*pid, Signal::KILL);
    }
    fs::write(&file, off)
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect()
}

/// Who is in it, and in the groups that those made below it.
fn members(folder: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let own = text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
    own.chain(below(folder).iter().flat_map(|folder| members(folder))).collect()
}

fn remove(folder: &Path) -> io::Result<()> {
    below(folder).iter().try_for_each(|folder| remove(folder))?;
    fs::remove_dir(folder)
}
