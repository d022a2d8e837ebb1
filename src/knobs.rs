//! Kernel knobs: one name each, the file of the running kernel behind it, and the promise that whatever is turned is
//! turned back.
//!
//! A change stands in a journal on the disk before it is made. It is undone when the session ends in whatever way, by
//! `assay restore`, and by the next measurement after a session that was killed; in the same boot only, and only where
//! the value is still ours. To add a knob, add its row to [`KNOBS`].

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::sys::affinity;

mod journal;
pub mod profile;

use journal::{Entry, Journal, Lock, Store};

/// A knob: its name here, and where Linux keeps it.
pub struct Knob {
    pub name: &'static str,
    pub about: &'static str,
    pub file: &'static str,
    /// The values that it can be set to.
    pub values: &'static [&'static str],
    /// The file lists all values and puts the current one into brackets: `always [madvise] never`.
    pub bracketed: bool,
}

pub const KNOBS: &[Knob] = &[
    Knob {
        name: "smt",
        about: "the second threads of all cores, online or not",
        file: "/sys/devices/system/cpu/smt/control",
        values: &["on", "off"],
        bracketed: false,
    },
    Knob {
        name: "thp",
        about: "transparent huge pages: for all memory, for what asks by madvise, for none",
        file: "/sys/kernel/mm/transparent_hugepage/enabled",
        values: &["always", "madvise", "never"],
        bracketed: true,
    },
    Knob {
        name: "autogroup",
        about: "a share of the CPUs for each session instead of each task",
        file: "/proc/sys/kernel/sched_autogroup_enabled",
        values: &["0", "1"],
        bracketed: false,
    },
];

pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

fn known(name: &str) -> anyhow::Result<&'static Knob> {
    find(name).with_context(|| {
        let names: Vec<&str> = KNOBS.iter().map(|knob| knob.name).collect();
        format!("no knob is called {name:?}; there are {}", names.join(", "))
    })
}

impl Knob {
    fn value_in(&self, text: &str) -> Option<String> {
        let text = text.trim();
        match self.bracketed {
            true => text.split_ascii_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')),
            false => Some(text),
        }
        .map(str::to_string)
    }
}

/// Names the folder of the journal, for tests and for systems whose usual place cannot be written.
const STATE_VARIABLE: &str = "ASSAY_STATE";
const CPUS: &str = "/sys/devices/system/cpu";
/// CPUs cannot be switched while the kernel suspends or replugs others, and a lock's last holder may be about to go: tried
/// again this often, this far apart.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Where root's sessions keep their journal.
fn of_system(root: &Path) -> PathBuf {
    root.join("var/lib/assay")
}

/// The knobs of the machine below a root folder, with the place of their journal.
#[derive(Clone, Debug)]
pub struct Knobs {
    root: PathBuf,
    store: Store,
}

impl Knobs {
    /// `root`: `/`, or the folder of a tree that stands for a machine, which keeps its own journal.
    pub fn of(root: &Path) -> Knobs {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let users = || {
            let home = || variable("HOME").map(|home| home.join(".local/state"));
            variable("XDG_STATE_HOME").or_else(home).map(|folder| folder.join("assay"))
        };
        let usual = || match rustix::process::geteuid().is_root() || root != Path::new("/") {
            true => of_system(root),
            false => users().unwrap_or_else(|| of_system(root)),
        };
        Knobs { root: root.to_path_buf(), store: Store(variable(STATE_VARIABLE).unwrap_or_else(usual)) }
    }

    /// The journal of root's sessions, where it is another one than ours and notes changed knobs.
    fn of_root(&self) -> Option<PathBuf> {
        let of_root = Store(of_system(&self.root));
        (of_root.0 != self.store.0 && of_root.file().exists()).then(|| of_root.file())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    fn text(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.path(file)).map(|text| text.trim().to_string())
    }

    fn boot_id(&self) -> Option<String> {
        self.text("/proc/sys/kernel/random/boot_id").ok()
    }

    /// What a knob is set to.
    pub fn value(&self, knob: &Knob) -> io::Result<String> {
        let text = self.text(knob.file)?;
        knob.value_in(&text)
            .ok_or_else(|| io::Error::other(format!("{} holds {text:?}, which names no value", knob.file)))
    }

    /// Why a knob cannot be set to this value on this machine by this user; `None`: it can.
    pub fn unmet(&self, name: &str, value: &str) -> Option<String> {
        let knob = match known(name) {
            Ok(knob) => knob,
            Err(error) => return Some(error.to_string()),
        };
        if !knob.values.contains(&value) {
            return Some(format!("{name} takes {}, not {value:?}", knob.values.join(", ")));
        }
        let current = match self.value(knob) {
            Ok(current) => current,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Some(format!("this kernel has no {}", knob.file));
            }
            Err(error) => return Some(format!("{} cannot be read: {error}", knob.file)),
        };
        self.unmet_smt(knob, &current).or_else(|| {
            let opened = fs::OpenOptions::new().write(true).open(self.path(knob.file));
            match opened.err()?.kind() {
                ErrorKind::PermissionDenied => Some(format!("only root may write {}", knob.file)),
                ErrorKind::ReadOnlyFilesystem => Some(format!("{} is read-only here", knob.file)),
                other => Some(format!("{} cannot be written: {other}", knob.file)),
            }
        })
    }

    fn unmet_smt(&self, knob: &Knob, current: &str) -> Option<String> {
        let said = |why: &str| Some(format!("{why} ({} is {current})", knob.file));
        match (knob.name, current) {
            ("smt", "notsupported") => said("this machine has no SMT"),
            ("smt", "notimplemented") => said("this kernel cannot switch SMT on this architecture"),
            ("smt", "forceoff") => said("SMT was switched off for good at boot"),
            ("smt", "on") => {
                // Switching SMT on again would bring all of them online.
                let list = |name: &str| self.text(&format!("{CPUS}/{name}")).ok();
                let (online, present) = (list("online"), list("present"));
                (online != present && online.is_some() && present.is_some()).then(|| {
                    format!(
                        "some CPUs are offline by hand (online {}, present {}), and switching SMT would not keep them so",
                        online.unwrap_or_default(),
                        present.unwrap_or_default()
                    )
                })
            }
            _ => None,
        }
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.path(file);
        if self.root != Path::new("/") {
            // A kernel's file takes a value whole or not at all. A synthetic tree's is replaced whole, so that a kill
            // never leaves it empty.
            fs::metadata(&path)?;
            let fresh = path.with_extension("assay-new");
            fs::write(&fresh, value)?;
            return fs::rename(&fresh, &path);
        }
        let mut tries = 0;
        loop {
            let opened = fs::OpenOptions::new().write(true).open(&path);
            match opened.and_then(|mut open| io::Write::write_all(&mut open, value.as_bytes())) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                result => return result,
            }
        }
    }

    /// Puts back what a session that is gone has left changed; says in sentences what it did, nothing where nothing was
    /// left. An error: a session that lives has knobs changed, or something could not be put back.
    pub fn put_back_what_was_left(&self) -> anyhow::Result<Vec<String>> {
        if let Some(journal) = self.of_root() {
            bail!(
                "root's journal {} notes kernel knobs that a session has changed: as root, `assay restore` puts back what \
                 none that lives needs",
                journal.display()
            );
        }
        if self.store.read()?.is_none() {
            return Ok(Vec::new());
        }
        match self.claim()? {
            Ok((_lock, said)) => Ok(said),
            Err(owner) => bail!("{owner}: they stay so until it ends"),
        }
    }

    /// The lock, after everything that was left has been put back; or who has it.
    fn claim(&self) -> anyhow::Result<Result<(Lock, Vec<String>), String>> {
        let owner = |journal: Option<&Journal>| match journal {
            Some(journal) => format!("process {} of assay has kernel knobs changed", journal.pid),
            None => "another assay is changing kernel knobs".to_string(),
        };
        let mut tries = 0;
        let lock = loop {
            if let Some(lock) = self.store.lock()? {
                break lock;
            }
            // A child of a session that was just killed may hold its lock until it is gone too.
            let journal = self.store.read().ok().flatten();
            if tries == TRIES || journal.as_ref().is_some_and(Journal::owner_lives) {
                return Ok(Err(owner(journal.as_ref())));
            }
            tries += 1;
            std::thread::sleep(BETWEEN_TRIES);
        };
        let Some(mut journal) = self.store.read()? else { return Ok(Ok((lock, Vec::new()))) };
        if journal.owner_lives() && journal.pid != std::process::id() {
            return Ok(Err(owner(Some(&journal))));
        }
        if journal.root != self.root {
            bail!(
                "the journal of knobs {} is of the tree {}, not of {}",
                self.store.file().display(),
                journal.root.display(),
                self.root.display()
            );
        }
        let mut said = Vec::new();
        if journal.boot_id != self.boot_id() {
            let names: Vec<&str> = journal.entries.iter().map(|entry| entry.knob.as_str()).collect();
            said.push(format!(
                "process {} left {} changed in an earlier boot, which ended with it: nothing to put back",
                journal.pid,
                names.join(", ")
            ));
            journal.entries.clear();
        }
        journal.entries.retain(|entry| {
            let (done, words) = self.undo(entry);
            said.extend(words);
            !done
        });
        self.store.write(&journal)?;
        if !journal.entries.is_empty() {
            bail!("{}", said.join("; "));
        }
        Ok(Ok((lock, said)))
    }

    /// Undoes one change. Whether nothing is left to do, and what was done in words.
    fn undo(&self, entry: &Entry) -> (bool, Option<String>) {
        let Entry { knob, file, before, ours } = entry;
        let Some(row) = find(knob).filter(|row| row.file == file) else {
            return (
                false,
                Some(format!("no knob {knob} of {file} is known here; put {before} back by hand")),
            );
        };
        let current = match self.value(row) {
            Ok(current) => current,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return (true, Some(format!("{file} is gone, with nothing to put back")));
            }
            Err(error) => return (false, Some(format!("{file} cannot be read ({error})"))),
        };
        if current == *before {
            return (true, None);
        }
        if !ours.contains(&current) {
            let words = format!(
                "{knob} is {current}: neither what it was ({before}) nor what assay set ({}). Somebody else changed it \
                 since, and it stays so",
                ours.join(", ")
            );
            return (true, Some(words));
        }
        match self.write(file, before).and_then(|()| self.value(row)) {
            Ok(now) if now == *before => (true, Some(format!("{knob} is {before} again (was {current})"))),
            Ok(now) => (false, Some(format!("{knob} was set to {before} and is {now}"))),
            Err(error) => (false, Some(format!("{file} cannot be set back to {before}: {error}"))),
        }
    }

    /// A hand on the knobs, which has turned none yet.
    pub fn hand(&self) -> Hand {
        let state = State { knobs: self.clone(), held: None, affinity: None };
        Hand { state: Arc::new(Mutex::new(state)) }
    }
}

/// Turns knobs, and turns all of them back when dropped.
pub struct Hand {
    state: Arc<Mutex<State>>,
}

struct State {
    knobs: Knobs,
    /// From the first change on.
    held: Option<(Lock, Journal)>,
    /// The CPUs that this process might use before the first change: those that go offline are not always given back.
    affinity: Option<crate::model::CpuSet>,
}

/// Turns the knobs of a [`Hand`] back from another thread, right before the process ends.
#[derive(Clone)]
pub struct LastHand {
    state: Arc<Mutex<State>>,
}

impl Hand {
    /// Sets exactly these knobs and puts back all others that were turned before. Says what changed, a sentence each.
    pub fn set(&self, wanted: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        lock(&self.state).set(wanted)
    }

    /// Puts everything back; an error names what could not be.
    pub fn put_back(&self) -> anyhow::Result<Vec<String>> {
        lock(&self.state).put_back(|_| true)
    }

    pub fn last(&self) -> LastHand {
        LastHand { state: Arc::clone(&self.state) }
    }
}

impl LastHand {
    /// Puts everything back and ends the process, in one: nothing is turned in between.
    pub fn put_back_and_exit(&self, code: i32) -> ! {
        let mut state = lock(&self.state);
        // What could not be put back stands in the journal.
        let _ = state.put_back(|_| true);
        std::process::exit(code)
    }

    /// Puts everything back unless a knob is being turned at this very moment.
    pub fn try_put_back(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            let _ = state.put_back(|_| true);
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // What could not be put back stands in the journal, for the next run or `assay restore`.
        let _ = self.put_back();
    }
}

/// A thread that panicked left the state as the journal says.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn set(&mut self, wanted: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        let mut said = self.put_back(|entry| !wanted.contains_key(&entry.knob))?;
        for (name, value) in wanted {
            said.extend(self.turn(known(name)?, value)?);
        }
        self.own_affinity();
        Ok(said)
    }

    /// Turns one knob, after it stands in the journal.
    fn turn(&mut self, knob: &'static Knob, value: &str) -> anyhow::Result<Option<String>> {
        let read = |knobs: &Knobs| {
            knobs.value(knob).with_context(|| format!("cannot read {}: is the knob here?", knob.file))
        };
        if self.held.is_none() {
            if read(&self.knobs)? == value {
                return Ok(None);
            }
            self.hold()?;
        }
        let current = read(&self.knobs)?;
        let entry = self.held.iter().flat_map(|(_, journal)| &journal.entries).find(|e| e.knob == knob.name);
        match entry {
            Some(entry) if current != entry.before && !entry.ours.contains(&current) => {
                bail!("somebody else set {} to {current} meanwhile", knob.name)
            }
            _ if current == value => return Ok(None),
            Some(_) => {}
            None => {
                if let Some(why) = self.knobs.unmet(knob.name, value) {
                    bail!("cannot set {} to {value}: {why}", knob.name);
                }
            }
        }
        self.journal(knob, value, &current)?;
        self.knobs
            .write(knob.file, value)
            .with_context(|| format!("cannot write {value} to {}", knob.file))?;
        let now = read(&self.knobs)?;
        if now != value {
            bail!("{} was set to {value} and is {now}", knob.name);
        }
        Ok(Some(format!("{} from {current} to {value}", knob.name)))
    }

    /// Becomes the one that may change knobs.
    fn hold(&mut self) -> anyhow::Result<()> {
        let lock = match self.knobs.claim()? {
            Ok((lock, _)) => lock,
            Err(owner) => bail!("{owner}: only one may at a time"),
        };
        self.affinity = affinity::allowed().ok().filter(|_| self.knobs.root == Path::new("/"));
        self.held = Some((lock, Journal::own(&self.knobs.root, self.knobs.boot_id())));
        Ok(())
    }

    /// Notes a change that is about to be made.
    fn journal(&mut self, knob: &'static Knob, value: &str, current: &str) -> anyhow::Result<()> {
        let Some((_, journal)) = &mut self.held else { return Ok(()) };
        match journal.entries.iter_mut().find(|entry| entry.knob == knob.name) {
            Some(entry) => entry.ours = vec![current.to_string(), value.to_string()],
            None => journal.entries.push(Entry {
                knob: knob.name.to_string(),
                file: knob.file.to_string(),
                before: current.to_string(),
                ours: vec![value.to_string()],
            }),
        }
        self.knobs.store.write(journal).context("nothing was changed")
    }

    /// Puts back the knobs that `which` names; the last of them frees the lock.
    fn put_back(&mut self, which: impl Fn(&Entry) -> bool) -> anyhow::Result<Vec<String>> {
        let Some((_, journal)) = &mut self.held else { return Ok(Vec::new()) };
        let (mut said, mut failed) = (Vec::new(), Vec::new());
        let had = journal.entries.len();
        journal.entries.retain(|entry| {
            if !which(entry) {
                return true;
            }
            let (done, words) = self.knobs.undo(entry);
            if done { &mut said } else { &mut failed }.extend(words);
            !done
        });
        if journal.entries.len() < had {
            self.knobs.store.write(journal)?;
        }
        if journal.entries.is_empty() {
            self.own_affinity();
            self.held = None;
        }
        match failed.as_slice() {
            [] => Ok(said),
            failed => bail!("{}; `assay restore` tries it again", failed.join("; ")),
        }
    }

    /// CPUs that were offline are not always given back to a process that might use them before.
    fn own_affinity(&self) {
        let Some(before) = &self.affinity else { return };
        if affinity::allowed().is_ok_and(|now| now != *before) {
            // Where the control group has lost them too, visits that need them say so.
            let _ = affinity::pin(before);
        }
    }
}

#[cfg(test)]
mod tests;
