//! The journal of one session: kernel objects that it has made or is about to make.
//!
//! Each session has one file and keeps it locked; the kernel frees the lock when the session dies.
//! It is not synced, because the objects end with the boot.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;
use knobs::{make_folder, start_ticks_of};
use sys::random::random;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    pub schema: u32,
    pub boot_id: String,
    pub pid: u32,
    /// Start time of that process in clock ticks since boot: process numbers are reused.
    pub start_ticks: Option<u64>,
    /// Inode of the PID namespace of its process numbers.
    #[serde(default)]
    pub namespace: Option<u64>,
    pub objects: Vec<Object>,
    /// Folders in which its visits make their own.
    #[serde(default)]
    pub places: BTreeSet<PathBuf>,
}

const SCHEMA: u32 = 1;
const BEGIN: &str = "objects-";
const END: &str = ".json";
/// Longest journal: a visit has few objects.
const MAX_BYTES: u64 = 64 << 10;

/// The boot id of the running kernel.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map_or_else(|_| "unknown".to_string(), |text| text.trim().to_string())
}

impl Journal {
    /// An empty journal of this process.
    pub fn own() -> Journal {
        let pid = std::process::id();
        let start_ticks = start_ticks_of(pid);
        let (objects, places) = (Vec::new(), BTreeSet::new());
        let namespace = super::namespaces::namespace("self", "pid");
        Journal { schema: SCHEMA, boot_id: boot_id(), pid, start_ticks, namespace, objects, places }
    }

    /// Whether no object can exist.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.places.is_empty()
    }

    /// Parses a journal; `None` if nothing can exist any more, as after a power cut. Of another
    /// boot, only folders and jobs on other hosts are kept.
    pub fn of_text(text: &str) -> Result<Option<Journal>, String> {
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        if text.is_empty() {
            return Ok(None);
        }
        let told = |error: serde_json::Error| error.to_string();
        let mut value: Value = serde_json::from_str(text).map_err(told)?;
        let is_of_another_boot = value["boot_id"].as_str().is_some_and(|boot| boot != boot_id());
        let has_places = value["places"].as_array().is_some_and(|places| !places.is_empty());
        let objects = value.get_mut("objects").and_then(Value::as_array_mut);
        if let Some(objects) = objects.filter(|_| is_of_another_boot) {
            objects.retain(|object| object.get("job").is_some());
            if objects.is_empty() && !has_places {
                return Ok(None);
            }
        }
        if value["schema"].as_u64().is_some_and(|schema| schema > u64::from(SCHEMA)) {
            return Err("it is from a newer version of assay".to_string());
        }
        serde_json::from_value(value).map(Some).map_err(told)
    }

    /// Whether the process that wrote it still runs.
    pub fn owner_lives(&self) -> bool {
        self.start_ticks.is_some() && start_ticks_of(self.pid) == self.start_ticks
    }
}

/// A journal's file, locked by its writer or by a cleanup.
#[derive(Debug)]
pub struct LockedJournal {
    file: File,
    path: PathBuf,
}

/// A file in the folder of journals.
pub enum JournalFile {
    /// Locked by this process now.
    Free(LockedJournal, String),
    /// Locked by another process, with its text.
    Taken(String),
}

impl LockedJournal {
    /// A new, empty file.
    pub fn create(folder: &Path) -> io::Result<LockedJournal> {
        make_folder(folder)?;
        loop {
            let number = u64::from_ne_bytes(random()?);
            let path = folder.join(format!("{BEGIN}{number:016x}{END}"));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            let file = match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let held = LockedJournal { file, path };
            // A cleanup may have removed it meanwhile.
            if held.lock()? && held.is_there() {
                return Ok(held);
            }
        }
    }

    fn lock(&self) -> io::Result<bool> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether its name still leads to this file.
    pub fn is_there(&self) -> bool {
        let named = fs::symlink_metadata(&self.path).ok();
        let held = self.file.metadata().ok();
        named.zip(held).is_some_and(|(named, held)| (named.dev(), named.ino()) == (held.dev(), held.ino()))
    }

    /// Replaces the content in one write, so that a kill leaves the old or the new one.
    pub fn write(&self, journal: &Journal) -> io::Result<()> {
        let mut text = serde_json::to_string(journal)?;
        let before = self.file.metadata()?.len() as usize;
        while text.len() + 1 < before {
            text.push(' ');
        }
        text.push('\n');
        match self.file.write_at(text.as_bytes(), 0)? {
            wrote if wrote == text.len() => Ok(()),
            _ => Err(ErrorKind::StorageFull.into()),
        }
    }

    /// Removes the file, if its name still leads to it.
    pub fn remove(self) -> io::Result<()> {
        if self.is_there() { fs::remove_file(&self.path) } else { Ok(()) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The journals of this user that lie in a folder.
pub fn all_in(folder: &Path) -> Vec<JournalFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| found(&entry.path())).collect()
}

fn found(path: &Path) -> Option<JournalFile> {
    let number = path.file_name()?.to_str()?.strip_prefix(BEGIN)?.strip_suffix(END)?;
    if number.len() != 16 || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).ok()?;
    let told = file.metadata().ok()?;
    // Files that another user owns or may write are ignored.
    let ours = told.is_file()
        && told.mode() & 0o022 == 0
        && told.uid() == rustix::process::geteuid().as_raw()
        && told.nlink() == 1
        && told.len() <= MAX_BYTES;
    if !ours {
        return None;
    }
    let held = LockedJournal { file, path: path.to_path_buf() };
    let free = held.lock().ok()?;
    let mut bytes = Vec::new();
    (&held.file).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match free {
        true if !held.is_there() => None,
        true => Some(JournalFile::Free(held, text)),
        false => Some(JournalFile::Taken(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_held_by_one_and_read_by_all() {
        testkit::alone(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let held = LockedJournal::create(folder.path()).expect("a file");
            let mut journal = Journal::own();
            journal.objects = vec![Object::Processes { mark: "m".repeat(200) }];
            held.write(&journal).expect("written");
            journal.objects.clear();
            held.write(&journal).expect("a shorter one over it");
            let Some(JournalFile::Taken(text)) = all_in(folder.path()).pop() else { panic!("it is held") };
            assert_eq!(Journal::of_text(&text), Ok(Some(journal.clone())));
            assert!(journal.owner_lives());
            let path = held.path().to_path_buf();
            drop(held);
            let Some(JournalFile::Free(held, _)) = all_in(folder.path()).pop() else {
                panic!("nobody holds it")
            };
            // Another file of its name is not removed.
            fs::rename(&path, folder.path().join("moved")).expect("moved");
            fs::write(&path, "mine").expect("a file");
            held.remove().expect("nothing to remove");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), "mine");
        });
    }

    #[test]
    fn links_and_strange_names_are_no_journals() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().join("real");
        fs::write(&real, "{}").expect("a file");
        std::os::unix::fs::symlink(&real, folder.path().join("objects-0123456789abcdef.json"))
            .expect("a link");
        fs::hard_link(&real, folder.path().join("objects-0123456789abcdee.json")).expect("a link");
        for name in ["objects-1.json", "objects-0123456789abcdxf.json", "knobs.json"] {
            fs::write(folder.path().join(name), "{}").expect("a file");
        }
        assert!(all_in(folder.path()).is_empty());
        assert!(Journal::of_text("{").is_err());
    }
}
