//! Kernel settings (knobs): one name each, the file of the running kernel behind it, and the
//! promise that every change is restored.
//!
//! A change is in a journal on disk before it is made. It is undone when the session ends, by a
//! watchdog process after a kill, by `assay restore`, or by the next run: in the same boot only,
//! and only if the value is still Assay's. Knobs are rows of [`table`].
//!
//! Invariant: each change is in the journal first, and is restored.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;

mod exclusive;
mod journal;
pub mod profile;
mod setter;
pub mod table;
pub mod task;
pub mod watchdog;

pub use exclusive::SweepLock;
use journal::{Entry, Journal, Lock, Store};
pub use journal::{make_folder, start_ticks_of};
pub use setter::{EmergencyRestore, KnobSetter};
use table::{Form, Named};

/// Names the folder of the journal, for tests and for systems whose usual place cannot be written.
const STATE_VARIABLE: &str = "ASSAY_STATE";
const CPUS: &str = "/sys/devices/system/cpu";
/// Attempts to write or lock: the kernel refuses to switch CPUs while it suspends or replugs
/// others, and a lock's last holder may be about to end.
const TRIES: u32 = 20;
const TRIES_AFTER_A_KILL: u32 = 300;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// The folder of the journal of root's sessions.
fn system_folder(root: &Path) -> PathBuf {
    root.join("var/lib/assay")
}

/// The settings of the system below a root folder, with the place of their journal.
#[derive(Clone, Debug)]
pub struct Knobs {
    root: PathBuf,
    store: Store,
    /// The program of watchdogs; `None`: no watchdog.
    watchdog: Option<PathBuf>,
}

/// A setting with its files on this kernel.
#[derive(Clone, Debug)]
pub struct Located {
    name: String,
    files: Vec<String>,
    form: Form,
}

impl Located {
    /// The first of its files, to show.
    pub fn place(&self) -> &str {
        self.files.first().map_or("", String::as_str)
    }
}

impl Knobs {
    /// `root`: `/`, or the folder of a synthetic tree, which has its own journal.
    pub fn of(root: &Path) -> Knobs {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let users = || {
            let home = || variable("HOME").map(|home| home.join(".local/state"));
            variable("XDG_STATE_HOME").or_else(home).map(|folder| folder.join("assay"))
        };
        let usual = || {
            if rustix::process::geteuid().is_root() || root != Path::new("/") {
                system_folder(root)
            } else {
                users().unwrap_or_else(|| system_folder(root))
            }
        };
        let store = Store(variable(STATE_VARIABLE).unwrap_or_else(usual));
        Knobs { root: root.to_path_buf(), store, watchdog: None }
    }

    /// The same, with a watchdog for each session.
    pub fn watched(self) -> Knobs {
        Knobs { watchdog: watchdog::program(), ..self }
    }

    /// Where the journals are.
    pub fn folder(&self) -> &Path {
        &self.store.0
    }

    /// A watchdog of this process, if one is wanted and can be started.
    pub fn watchdog(&self) -> Option<watchdog::Watchdog> {
        let program = self.watchdog.as_ref()?;
        watchdog::Watchdog::start(program, &self.root, &self.store.0)
    }

    /// The journal of root's sessions, if it exists and is not this user's.
    fn journal_of_root(&self) -> Option<PathBuf> {
        let of_root = Store(system_folder(&self.root));
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

    /// The files of a setting on this kernel; an error says why it has none, and what to use
    /// instead.
    pub fn locate(&self, name: &str) -> Result<Located, String> {
        let named = Named::of(name).ok_or_else(|| unknown(name))?;
        let kernel = self.text("/proc/sys/kernel/osrelease").ok();
        let version = kernel.as_deref().and_then(table::version);
        let kernel = kernel.map_or("this kernel".to_string(), |release| format!("this kernel ({release})"));
        let places = named.places();
        if places.is_empty() {
            return Err(format!("{name} belongs to the benchmark's own tasks: there is no file for it"));
        }
        let mut closed = None;
        for (pattern, form, _) in &places {
            let files = table::files(&self.root, pattern);
            match files.first().map(|first| self.text(first)) {
                Some(Ok(text)) if form.value_in(&text).is_some() => {
                    return Ok(Located { name: name.to_string(), files, form: form.clone() });
                }
                Some(Ok(_)) => closed = Some(format!("{} does not name it", files[0])),
                Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                    closed = Some(format!(
                        "{} cannot be read: {error}{}",
                        files[0],
                        self.why_closed(&files[0], &error)
                    ));
                }
                _ => {}
            }
        }
        if let Some(why) = closed {
            return Err(why);
        }
        let lacks = format!("{kernel} has no {name}");
        if let Named::Row(row) = &named
            && version.is_some_and(|version| !row.is_of(version))
        {
            return Err(format!("{lacks}; {}", row.instead));
        }
        let looked: Vec<&str> = places.iter().map(|(pattern, ..)| pattern.as_str()).collect();
        let debugfs = if looked.iter().any(|file| table::is_debugfs(file)) && !self.has_debugfs() {
            "; debugfs is not mounted at /sys/kernel/debug (as root: mount -t debugfs none /sys/kernel/debug)"
        } else {
            ""
        };
        let instead = match &named {
            Named::Row(row) if !row.instead.is_empty() && row.from.is_none() && row.until.is_none() => {
                format!("; {}", row.instead)
            }
            _ => String::new(),
        };
        Err(format!("{lacks}: there is no {}{debugfs}{instead}", looked.join(" and no ")))
    }

    fn has_debugfs(&self) -> bool {
        fs::read_dir(self.path("/sys/kernel/debug")).is_ok_and(|mut folder| folder.next().is_some())
    }

    fn why_closed(&self, file: &str, error: &io::Error) -> &'static str {
        let root = rustix::process::geteuid().is_root();
        match (table::is_debugfs(file), error.kind() == ErrorKind::PermissionDenied, root) {
            (true, true, true) => " (debugfs is closed on this kernel, by lockdown or the hypervisor)",
            (_, true, false) => " (needs root)",
            _ => "",
        }
    }

    /// What a knob is set to: of several files, what all of them hold.
    pub fn value(&self, knob: &Located) -> io::Result<String> {
        let mut all: Vec<String> = Vec::new();
        for file in &knob.files {
            let value = self.value_of(file, &knob.form)?;
            if !all.contains(&value) {
                all.push(value);
            }
        }
        Ok(all.join("+"))
    }

    fn value_of(&self, file: &str, form: &Form) -> io::Result<String> {
        let text = self.text(file)?;
        form.value_in(&text)
            .ok_or_else(|| io::Error::other(format!("{file} contains {text:?}, which marks no value")))
    }

    /// The present value of a kernel or task setting; an error says why it is unknown.
    pub fn current(&self, name: &str) -> Result<String, String> {
        if task::is_task_knob(name) {
            return task::value(name);
        }
        let located = self.locate(name)?;
        self.value(&located).map_err(|error| format!("{} cannot be read: {error}", located.place()))
    }

    /// Why this user cannot set this value on this host; `None` if that is possible.
    pub fn unmet(&self, name: &str, value: &str) -> Option<String> {
        let Some(named) = Named::of(name) else { return Some(unknown(name)) };
        if let Err(why) = named.values().canonical(name, value) {
            return Some(why);
        }
        if named.is_of_tasks() {
            return task::unmet(name, value);
        }
        let located = match self.locate(name) {
            Ok(located) => located,
            Err(why) => return Some(why),
        };
        let current = match self.value(&located) {
            Ok(current) => current,
            Err(error) => return Some(format!("{} cannot be read: {error}", located.place())),
        };
        self.unmet_smt(&located, &current).or_else(|| self.unwritable(&located))
    }

    /// Why this user cannot write a setting; `None` if that is possible.
    pub fn unwritable(&self, knob: &Located) -> Option<String> {
        knob.files.iter().find_map(|file| {
            let opened = fs::OpenOptions::new().write(true).open(self.path(file));
            match opened.err()?.kind() {
                ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
                    Some(format!("{file} cannot be written, not even by root"))
                }
                ErrorKind::PermissionDenied => Some(format!("writing {file} needs root")),
                ErrorKind::ReadOnlyFilesystem => Some(format!("{file} is read-only here")),
                other => Some(format!("{file} cannot be written: {other}")),
            }
        })
    }

    fn unmet_smt(&self, knob: &Located, current: &str) -> Option<String> {
        let said = |why: &str| Some(format!("{why} ({} is {current})", knob.place()));
        match (knob.name.as_str(), current) {
            ("smt", "notsupported") => said("this host has no SMT"),
            ("smt", "notimplemented") => said("this kernel cannot switch SMT on this architecture"),
            ("smt", "forceoff") => said("SMT was switched off for good at boot"),
            ("smt", "on") => {
                // Switching SMT on again would bring all of them online.
                let list = |name: &str| self.text(&format!("{CPUS}/{name}")).ok();
                let (online, present) = (list("online"), list("present"));
                (online != present && online.is_some() && present.is_some()).then(|| {
                    format!(
                        "some CPUs were taken offline (online {}, present {}), and switching SMT would \
                          bring them back",
                        online.unwrap_or_default(),
                        present.unwrap_or_default()
                    )
                })
            }
            _ => None,
        }
    }

    fn write(&self, file: &str, form: &Form, value: &str) -> io::Result<()> {
        let path = self.path(file);
        if self.root != Path::new("/") {
            // The kernel takes a value atomically. A file of a synthetic tree is replaced, so that
            // a kill never leaves it empty.
            let before = fs::read_to_string(&path)?;
            let fresh = path.with_extension("assay-new");
            fs::write(&fresh, form.text_after(&before, value))?;
            return fs::rename(&fresh, &path);
        }
        let mut tries = 0;
        loop {
            let opened = fs::OpenOptions::new().write(true).open(&path);
            match opened.and_then(|mut open| io::Write::write_all(&mut open, form.written(value).as_bytes()))
            {
                Err(error) if error.kind() == ErrorKind::ResourceBusy && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                result => return result,
            }
        }
    }

    /// Restores what an ended session left changed, and returns a sentence per setting. It is an
    /// error if a live session has settings changed, or something could not be restored.
    pub fn restore_what_was_left(&self) -> anyhow::Result<Vec<String>> {
        if let Some(journal) = self.journal_of_root() {
            bail!(
                "root's journal {} lists settings that a session changed: run `assay restore` as root",
                journal.display()
            );
        }
        if self.journal()?.is_none() {
            return Ok(Vec::new());
        }
        match self.claim()? {
            Ok((_lock, said)) => Ok(said),
            Err(owner) => bail!("{owner}: they stay changed until it ends"),
        }
    }

    /// The journal, if there is one.
    fn journal(&self) -> anyhow::Result<Option<Journal>> {
        self.store.read(&self.root, self.boot_id())
    }

    /// Takes the lock and restores what an ended session left; or says which process has the lock.
    fn claim(&self) -> anyhow::Result<Result<(Lock, Vec<String>), String>> {
        let owner = |journal: Option<&Journal>| match journal {
            Some(journal) => format!("process {} of assay has changed kernel settings", journal.pid),
            None => "another assay is changing kernel settings".to_string(),
        };
        let mut tries = 0;
        let lock = loop {
            if let Some(lock) = self.store.lock()? {
                break lock;
            }
            // A child of a killed session may hold the lock until it ends, and the watchdog until
            // everything is restored.
            let journal = self.journal().ok().flatten().filter(|journal| !journal.entries.is_empty());
            let max_tries = if journal.is_some() { TRIES_AFTER_A_KILL } else { TRIES };
            if tries >= max_tries || journal.as_ref().is_some_and(Journal::owner_lives) {
                return Ok(Err(owner(journal.as_ref())));
            }
            tries += 1;
            std::thread::sleep(BETWEEN_TRIES);
        };
        let Some(mut journal) = self.journal()? else { return Ok(Ok((lock, Vec::new()))) };
        if journal.owner_lives() && journal.pid != std::process::id() {
            return Ok(Err(owner(Some(&journal))));
        }
        if journal.root != self.root {
            bail!(
                "the journal of settings {} is for the tree {}, not {}",
                self.store.file().display(),
                journal.root.display(),
                self.root.display()
            );
        }
        let mut said = Vec::new();
        if journal.boot_id != self.boot_id() {
            let names: Vec<&str> = journal.entries.iter().map(|entry| entry.knob.as_str()).collect();
            let names = if names.is_empty() { "kernel settings".to_string() } else { names.join(", ") };
            said.push(format!(
                "process {} left {names} changed in an earlier boot: the reboot reset them",
                journal.pid
            ));
            journal.entries.clear();
        }
        journal.entries.retain(|entry| {
            let (is_done, sentence) = self.restore_entry(entry);
            said.extend(sentence);
            !is_done
        });
        let written = self.store.write(&journal);
        if written.is_err() || !journal.entries.is_empty() {
            said.extend(written.err().map(|error| format!("cannot rewrite the journal: {error:#}")));
            bail!("{}", said.join("; "));
        }
        Ok(Ok((lock, said)))
    }

    /// Restores one setting. Returns whether nothing is left to do, and a sentence about it.
    fn restore_entry(&self, entry: &Entry) -> (bool, Option<String>) {
        let Entry { knob, file, before, assay_values } = entry;
        let Some(form) = Named::of(knob).and_then(|named| named.form_of(file)) else {
            return (
                false,
                Some(format!("the setting {knob} of {file} is unknown here: restore {before} by setter")),
            );
        };
        let current = match self.value_of(file, &form) {
            Ok(current) => current,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return (true, Some(format!("{file} is gone: nothing to restore")));
            }
            Err(error) => return (false, Some(format!("{file} cannot be read ({error})"))),
        };
        if current == *before {
            return (true, None);
        }
        if !assay_values.contains(&current) {
            let words = format!(
                "{knob} is {current}: neither its old value ({before}) nor Assay's ({}). Another program \
                  changed it, and it stays so",
                assay_values.join(", ")
            );
            return (true, Some(words));
        }
        match self.write(file, &form, before).and_then(|()| self.value_of(file, &form)) {
            Ok(now) if now == *before => (true, Some(format!("{knob} is {before} again (was {current})"))),
            Ok(now) => (false, Some(format!("{knob} was set to {before} and is {now}"))),
            Err(error) => (false, Some(format!("cannot restore {file} to {before}: {error}"))),
        }
    }

    /// A setter that has changed nothing yet.
    pub fn setter(&self) -> KnobSetter {
        KnobSetter::new(self.clone())
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = table::KNOBS.iter().map(|knob| knob.name).collect();
    format!(
        "no setting is called {name:?}{}; there are {}, feature.NAME for scheduler features, and sysctls by \
          name",
        model::did_you_mean(name, names.iter().copied()),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests;
