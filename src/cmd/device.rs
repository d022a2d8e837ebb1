//! `--device`: a whole block device instead of files in a directory, and the question that stands before it.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::bail;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::output;
use crate::bench::{Candidate, DEVICE, DEVICE_WRITE, not_on_a_device};
use crate::diagnose::words;
use crate::machine::snapshot::disk::{self, Subject};
use crate::machine::snapshot::in_use::{self, Node};

#[derive(clap::Args, Default)]
pub struct DeviceArgs {
    /// Read this block device itself instead of files of our own (with --only disk); asks for its name before it begins
    #[arg(long, value_name = "PATH", conflicts_with_all = ["dir", "pretend"])]
    device: Option<PathBuf>,
    /// Also write to the device: DESTROYS all that is on it; refused while anybody uses it
    #[arg(long, requires = "device")]
    device_write: bool,
    /// The answer to the question that --device asks, where no terminal is there to ask on
    #[arg(long, value_name = "TEXT", requires = "device")]
    confirm: Option<String>,
}

/// A device that the user named and that may be measured.
#[derive(Clone, Debug)]
pub struct Device {
    path: PathBuf,
    node: Node,
    write: bool,
}

impl DeviceArgs {
    /// The device that is to be measured, if one is: looked at, and confirmed unless nothing is going to be done. An error
    /// is one of usage.
    pub fn settle(&self, dry_run: bool) -> anyhow::Result<Option<Device>> {
        let Some(path) = &self.device else { return Ok(None) };
        let device = Device { write: self.device_write, ..Device::look(path)? };
        device.may_be_opened()?;
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
            Ok(node) => Ok(Device { path: path.to_path_buf(), node, write: false }),
            Err(why) => bail!("{why}"),
        }
    }

    /// The description of the run's disk.
    pub fn described(&self, root: &Path) -> String {
        disk::describe(
            root,
            &Subject::Device { path: &self.path.to_string_lossy(), number: &self.node.number },
        )
    }

    /// Whether it can be opened in the way that measuring will, and whether that would harm anybody.
    fn may_be_opened(&self) -> anyhow::Result<()> {
        let shown = self.path.display();
        let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if self.write {
            if self.node.read_only {
                bail!("{shown} is read-only: it cannot be written to");
            }
            let users = in_use::users(&self.node);
            if !users.is_empty() {
                bail!("{shown} is in use, and nothing will be written to it: {}", users.join("; "));
            }
            // Opening so fails where anybody else has claimed it, and changes nothing.
            flags = OFlags::RDWR | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
        }
        match rustix::fs::open(&self.path, flags, Mode::empty()) {
            Ok(_) => Ok(()),
            Err(Errno::BUSY) => {
                bail!(
                    "{shown} is in use, and nothing will be written to it: somebody has opened it for himself alone"
                )
            }
            Err(Errno::ACCESS | Errno::PERM) => {
                bail!("{shown} cannot be opened: that needs root, or the group that owns it")
            }
            Err(errno) => bail!("{shown} cannot be opened: {}", std::io::Error::from(errno)),
        }
    }

    /// What must be typed.
    fn password(&self) -> String {
        match self.write {
            true => format!("erase {}", self.node.name),
            false => self.node.name.clone(),
        }
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
        let danger = match self.write {
            true => "Measuring WRITES ALL OVER IT: everything on it will be lost.",
            false => "It will only be read; but whoever uses it will be slowed down meanwhile.",
        };
        if let Some(given) = given {
            if given == wanted {
                return Ok(());
            }
            bail!("{what}. {danger} --confirm says {given:?}, and not {wanted:?}: nothing was done");
        }
        if !std::io::stdin().is_terminal() {
            bail!(
                "{what}. {danger} No terminal is here to ask on: if that is meant, add --confirm '{wanted}'"
            );
        }
        output::tell(&format!("  {what}. {danger}\n  Type `{wanted}` to go on:"));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        match read.is_ok() && answer.trim() == wanted {
            true => Ok(()),
            false => bail!("that was not {wanted:?}: nothing was done"),
        }
    }

    /// The candidates of disk rows on this device instead of in a directory.
    pub fn supply(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        for candidate in candidates.iter_mut().filter(|one| one.case.bench.starts_with("disk.")) {
            let case = &mut candidate.case;
            case.inputs.remove("dir");
            case.inputs.remove("filesystem");
            case.inputs.insert(DEVICE.into(), self.path.to_string_lossy().into_owned());
            if self.write {
                case.inputs.insert(DEVICE_WRITE.into(), "yes".into());
            }
            let why = not_on_a_device(case, self.write);
            candidate.unmet = candidate.unmet.take().or(why);
        }
        candidates
    }
}
