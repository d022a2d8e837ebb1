//! `--device`: a whole block device instead of files, and its confirmation.

use super::output::eprint_line;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use bench::{Candidate, DEVICE, DEVICE_BYTES, DEVICE_MEDIUM, DEVICE_NUMBER, DEVICE_WRITE, not_on_a_device};
use diagnose::words;
use model::Planned;
use snapshot::disk::{self, Subject};
use snapshot::in_use::{self, Backing, KernelQueries, Node};
use sys::{loop_device, medium};

/// The subject under which help has the options of disk rows.
pub const DISK: &str = "Disk";

#[derive(clap::Args, Default)]
#[command(next_help_heading = DISK)]
pub struct DeviceArgs {
    /// Block device to read instead of test files (asks first)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["dir", "pretend"])]
    device: Option<PathBuf>,
    /// Write to the device too: DESTROYS all data on it
    #[arg(long, requires = "device")]
    device_write: bool,
    /// Answer to the question of --device, without a terminal
    #[arg(long, value_name = "TEXT", requires = "device")]
    confirm: Option<String>,
}

/// A device that the user named and that may be measured.
#[derive(Debug)]
pub struct Device {
    path: PathBuf,
    node: Node,
    write: bool,
    held: Option<OpenDevice>,
}

/// The device when the user confirmed it, kept open for the session: `losetup --detach` takes
/// effect after the last close. Exclusive opens by visits still work.
#[derive(Debug)]
struct OpenDevice {
    _open: OwnedFd,
    /// Each visit compares it with its own.
    medium: String,
}

/// How long a killed process may keep a device open.
const DYING: Duration = Duration::from_secs(1);

impl DeviceArgs {
    /// The device to measure, if there is one: checked, and confirmed unless this is a dry run.
    /// Errors are of usage.
    pub fn settle(&self, dry_run: bool) -> anyhow::Result<Option<Device>> {
        let Some(path) = &self.device else { return Ok(None) };
        let mut device = Device { write: self.device_write, ..Device::look(path)? };
        device.hold()?;
        device.may_be_opened_soon()?;
        if !dry_run {
            device.confirmed(self.confirm.as_deref())?;
        }
        Ok(Some(device))
    }

    pub fn any(&self) -> bool {
        self.device.is_some()
    }
}

impl Device {
    /// What is at a path, without opening it.
    pub fn look(path: &Path) -> anyhow::Result<Device> {
        match in_use::node(path) {
            Ok(node) => Ok(Device { path: path.to_path_buf(), node, write: false, held: None }),
            Err(why) => bail!("{why}"),
        }
    }

    /// Whether the user allowed to overwrite it.
    pub fn is_written_to(&self) -> bool {
        self.write
    }

    /// The description of the run's disk.
    pub fn described(&self, root: &Path) -> String {
        disk::describe(
            root,
            &Subject::Device { path: &self.path.to_string_lossy(), number: &self.node.number },
        )
    }

    /// Opens it for the whole session and checks again, as it cannot be replaced from now on.
    fn hold(&mut self) -> anyhow::Result<()> {
        let open = self.open(OFlags::RDONLY)?;
        self.held = Some(OpenDevice { medium: medium::of(&open), _open: open });
        self.node = Device::look(&self.path)?.node;
        Ok(())
    }

    /// Whether it can be opened now or soon: a killed visit keeps it open until its last transfers
    /// end.
    fn may_be_opened_soon(&self) -> anyhow::Result<()> {
        let end = Instant::now() + DYING;
        loop {
            match self.may_be_opened() {
                Err(_) if self.write && Instant::now() < end => std::thread::sleep(DYING / 10),
                looked => return looked,
            }
        }
    }

    /// Whether it can be opened as measuring does, without harm to others.
    fn may_be_opened(&self) -> anyhow::Result<()> {
        let shown = self.path.display();
        let mut flags = OFlags::RDONLY;
        if self.write {
            if self.node.read_only {
                bail!("{shown} is read-only");
            }
            let asked = KernelQueries { backing: &|name| backing(&node_of(name)), claimed: &is_claimed };
            let users = in_use::users(Path::new("/"), &self.node.name, &asked);
            if !users.is_empty() {
                bail!("{shown} is in use and will not be written: {}", users.join("; "));
            }
            // An exclusive open fails if another process has claimed it, and changes nothing.
            flags = OFlags::RDWR | OFlags::EXCL;
        }
        self.open(flags).map(drop)
    }

    fn open(&self, flags: OFlags) -> anyhow::Result<OwnedFd> {
        let shown = self.path.display();
        match rustix::fs::open(&self.path, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(open) => Ok(open),
            Err(Errno::BUSY) => {
                bail!("{shown} is in use and will not be written: another process has opened it exclusively")
            }
            Err(Errno::ACCESS | Errno::PERM) => {
                bail!("{shown} cannot be opened: be root, or in its group")
            }
            Err(errno) => bail!("{shown} cannot be opened: {}", std::io::Error::from(errno)),
        }
    }

    /// What must be typed.
    fn password(&self) -> String {
        if self.write { format!("erase {}", self.node.name) } else { self.node.name.clone() }
    }

    /// Asks, on a terminal; elsewhere the answer must have been given.
    fn confirmed(&self, given: Option<&str>) -> anyhow::Result<()> {
        let wanted = self.password();
        let parts = match self.node.partitions.len() {
            0 => String::new(),
            _ => format!(", with partitions {}", self.node.partitions.join(", ")),
        };
        let what = format!(
            "{} is {}, {}{parts}",
            self.path.display(),
            self.node.name,
            words::bytes(self.node.bytes as f64)
        );
        let danger = if self.write {
            "Measuring OVERWRITES IT: all data on it will be lost."
        } else {
            "It is only read, but its users will be slowed down."
        };
        if let Some(given) = given {
            if given == wanted {
                return Ok(());
            }
            bail!("{what}. {danger} --confirm is {given:?} instead of {wanted:?}: nothing was done");
        }
        if !std::io::stdin().is_terminal() {
            bail!("{what}. {danger} There is no terminal to ask on: to go ahead, add --confirm '{wanted}'");
        }
        eprint_line(&format!("  {what}. {danger}\n  Type `{wanted}` to continue:"));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.is_ok() && answer.trim() == wanted {
            Ok(())
        } else {
            bail!("the answer was not {wanted:?}: nothing was done")
        }
    }

    /// The candidates of disk rows on this device instead of in a directory.
    pub fn supply(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        for candidate in candidates.iter_mut().filter(|one| one.case.bench.starts_with("disk.")) {
            let case = &mut candidate.case;
            case.inputs.remove("dir");
            case.inputs.remove("filesystem");
            case.inputs.insert(DEVICE.into(), self.path.to_string_lossy().into_owned());
            case.inputs.insert(DEVICE_NUMBER.into(), self.node.number.clone());
            case.inputs.insert(DEVICE_BYTES.into(), self.node.bytes.to_string());
            let medium = self.held.as_ref().map(|held| held.medium.clone());
            case.inputs.insert(DEVICE_MEDIUM.into(), medium.unwrap_or_default());
            if self.write {
                case.inputs.insert(DEVICE_WRITE.into(), "yes".into());
            }
            let why = not_on_a_device(case, self.write);
            candidate.unmet = candidate.unmet.take().or(why);
        }
        candidates
    }
}

/// Where a device of this name of the kernel's is opened.
fn node_of(name: &str) -> PathBuf {
    Path::new("/dev").join(name.replace('!', "/"))
}

/// The backing file of a loop device, if it has one.
fn backing(device: &Path) -> Option<Backing> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = rustix::fs::open(device, flags, Mode::empty()).ok()?;
    let below = loop_device::backing(&open).ok()?;
    let file = [below.device, below.inode];
    Some(Backing { file, special: below.special_device, offset: below.offset, limit: below.size_limit })
}

/// Whether an exclusive open fails because another process has it.
fn is_claimed(name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    matches!(rustix::fs::open(node_of(name), flags, Mode::empty()), Err(Errno::BUSY))
}

/// Whether an interrupted run may be resumed by a command with plan `new`: a confirmation holds for
/// the device, medium and permission to write that it named, so both must agree in path, number,
/// size, medium and permission, and writing is confirmed in every run.
pub fn may_go_on(old: &[Planned], new: &[Planned]) -> bool {
    let (old, new) = (confirmed(old), confirmed(new));
    old == new && old.iter().all(|[.., write]| write.is_none())
}

/// The confirmed facts of a plan's raw devices: path, number, bytes, medium, permission to write.
fn confirmed(plan: &[Planned]) -> BTreeSet<[Option<&str>; 5]> {
    let raw = plan.iter().map(|planned| &planned.case.inputs).filter(|inputs| inputs.contains_key(DEVICE));
    let names = [DEVICE, DEVICE_NUMBER, DEVICE_BYTES, DEVICE_MEDIUM, DEVICE_WRITE];
    raw.map(|inputs| names.map(|name| inputs.get(name).map(String::as_str))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(path: &str, number: &str, bytes: u64, write: bool) -> Vec<Planned> {
        plan_on("medium 7", path, number, bytes, write)
    }

    use model::vocabulary::disk as ids;

    fn plan_on(medium: &str, path: &str, number: &str, bytes: u64, write: bool) -> Vec<Planned> {
        let (name, number) = ("vdb".to_string(), number.to_string());
        let node = Node { name, number, bytes, read_only: false, partitions: Vec::new() };
        let open = rustix::fs::open("/", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("a folder");
        let held = Some(OpenDevice { _open: open, medium: medium.into() });
        let device = Device { path: path.into(), node, write, held };
        let planned = |candidate: Candidate| {
            let Candidate { case, priority, seconds, memory_bytes, unmet, .. } = candidate;
            Planned { case, priority, seconds, memory_bytes, unmet }
        };
        let candidates = [ids::RANDOM, ids::METADATA];
        let candidates = candidates.map(|id| Candidate::unmet(id, "one-cpu", "not here".into()));
        device.supply(candidates.into()).into_iter().map(planned).collect()
    }

    #[test]
    fn an_answer_holds_for_one_device_and_for_what_was_asked() {
        let (read, write) = (plan("/dev/vdb", "254:16", 512, false), plan("/dev/vdb", "254:16", 512, true));
        assert!(may_go_on(&read, &read) && may_go_on(&[], &[]));
        for (old, new) in [(&read, &write), (&write, &read), (&write, &write)] {
            assert!(!may_go_on(old, new));
        }
        for other in [
            plan("/dev/vdc", "254:16", 512, false),
            plan("/dev/vdb", "254:32", 512, false),
            plan("/dev/vdb", "254:16", 1024, false),
            plan_on("medium 8", "/dev/vdb", "254:16", 512, false),
            Vec::new(),
        ] {
            assert!(!may_go_on(&read, &other) && !may_go_on(&other, &read));
        }
    }
}
