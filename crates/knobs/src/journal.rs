//! The journal of changed settings, written to disk before each change, so that a later process
//! can restore them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One knob that was changed, or is about to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub knob: String,
    /// Below the root that the journal names.
    pub file: String,
    /// The value before Assay's first change.
    pub before: String,
    /// The last value that Assay set and the next one: a crash may leave either.
    #[serde(rename = "ours")]
    pub assay_values: Vec<String>,
}

/// Who changed what in which boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    pub schema: u32,
    #[serde(default)]
    pub boot_id: Option<String>,
    pub root: PathBuf,
    pub pid: u32,
    /// Start time of that process in clock ticks since boot: process numbers are reused.
    #[serde(default)]
    pub start_ticks: Option<u64>,
    pub entries: Vec<Entry>,
}

const SCHEMA: u32 = 1;
/// Larger than the journal of every setting of thousands of CPUs.
const MAX_BYTES: u64 = 16 << 20;

impl Journal {
    /// An empty journal of this process.
    pub fn new(root: &Path, boot_id: Option<String>) -> Journal {
        let pid = std::process::id();
        let start_ticks = start_ticks_of(pid);
        Journal { schema: SCHEMA, boot_id, root: root.to_path_buf(), pid, start_ticks, entries: Vec::new() }
    }

    /// Parses a journal for this root and boot. Blanks, which a power cut leaves, have no entries.
    /// Nor has another version's journal of another boot: the reboot undid its changes.
    fn of_text(text: &str, root: &Path, boot_id: Option<String>) -> Result<Journal, String> {
        let ended = |boot_id, pid| Journal { boot_id, pid, start_ticks: None, ..Journal::new(root, None) };
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        if text.is_empty() {
            return Ok(ended(boot_id, 0));
        }
        let unreadable = |error: serde_json::Error| {
            format!("cannot be parsed ({error}): restore by setter the settings that it names, and remove it")
        };
        let value: Value = serde_json::from_str(text).map_err(unreadable)?;
        let found = match Journal::deserialize(&value) {
            Ok(journal) if journal.schema > SCHEMA => {
                Err("is from a newer version of assay: use that to restore".to_string())
            }
            found => found.map_err(unreadable),
        };
        let noted = value["boot_id"].as_str().map(str::to_string);
        let is_over = noted.is_some() && boot_id.is_some() && noted != boot_id;
        let is_of_this_root = value["root"].as_str().is_some_and(|path| Path::new(path) == root);
        match found {
            Err(_) if is_over && is_of_this_root => {
                Ok(ended(noted, value["pid"].as_u64().map_or(0, |pid| pid as u32)))
            }
            found => found,
        }
    }

    /// Whether the process that wrote it still runs.
    pub fn owner_lives(&self) -> bool {
        self.start_ticks.is_some() && start_ticks_of(self.pid) == self.start_ticks
    }
}

/// Start time of a running process in clock ticks since boot; `None` if it has ended or is a
/// zombie.
pub fn start_ticks_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain anything.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (state != "Z" && state != "X").then(|| fields.nth(18)?.parse().ok()).flatten()
}

/// Opens a plain file of this user with one link, and follows no symbolic link.
fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(careful.bits() as i32).open(path)?;
    let found = file.metadata()?;
    let euid = rustix::process::geteuid().as_raw();
    if found.is_file() && found.uid() == euid && found.nlink() == 1 {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a plain file of this user with one link: check it, and remove it"))
    }
}

/// Makes the folder of journals, accessible to its user only.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The folder of the journal and of the lock for changing settings.
#[derive(Clone, Debug)]
pub struct Store(pub PathBuf);

/// Held by the one process that may change settings; the kernel frees it when the process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Store {
    pub fn file(&self) -> PathBuf {
        self.0.join("knobs.json")
    }

    /// The lock; `None` while another process has it.
    pub fn lock(&self) -> anyhow::Result<Option<Lock>> {
        let path = self.0.join("knobs.lock");
        let open =
            || open_own(OpenOptions::new().create(true).truncate(false).write(true).mode(0o600), &path);
        make_folder(&self.0).with_context(|| format!("cannot make the folder {}", self.0.display()))?;
        let file = open().with_context(|| format!("cannot open {}", path.display()))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
    }

    /// The journal for this root and boot, if there is one.
    pub fn read(&self, root: &Path, boot_id: Option<String>) -> anyhow::Result<Option<Journal>> {
        let path = self.file();
        let open_to_others = |file: &File| Ok::<bool, io::Error>(file.metadata()?.mode() & 0o022 != 0);
        let read = |file: File| match file.metadata()?.len() {
            _ if open_to_others(&file)? => Err(io::Error::other(
                "users other than its owner may write to it: check it, restore by setter what is Assay's, and \
                  remove it",
            )),
            bytes if bytes > MAX_BYTES => Err(io::Error::other(format!(
                "it has {bytes} bytes, more than Assay's limit of {MAX_BYTES}: restore by setter the settings \
                  that it names, and remove it"
            ))),
            _ => io::read_to_string(file.take(MAX_BYTES)),
        };
        let text = match open_own(OpenOptions::new().read(true), &path).and_then(read) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot read the journal of settings {}", path.display()));
            }
        };
        match Journal::of_text(&text, root, boot_id) {
            Ok(journal) => Ok(Some(journal)),
            Err(why) => bail!("the journal of settings {} {why}", path.display()),
        }
    }

    /// Replaces the journal and syncs it to disk. Without entries it is removed, with any
    /// half-written successor.
    pub fn write(&self, journal: &Journal) -> anyhow::Result<()> {
        let path = self.file();
        let fresh = self.0.join("knobs.json.new");
        let remove = |file: &Path| match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let replace = || -> io::Result<()> {
            if journal.entries.is_empty() {
                remove(&path)?;
                remove(&fresh)?;
                return self.sync();
            }
            // Removes a link instead of writing to its target.
            remove(&fresh)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
            file.write_all(&serde_json::to_vec_pretty(journal)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&fresh, &path)?;
            self.sync()
        };
        replace().with_context(|| format!("cannot write the journal of settings {}", path.display()))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}
