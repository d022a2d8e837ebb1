//! Changes settings during a session, and restores them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};

use super::journal::{Entry, Journal, Lock};
use super::watchdog::Watchdog;
use super::{Knobs, Located, task};
use sys::affinity;

/// Changes settings, and restores all of them when dropped.
pub struct KnobSetter {
    pub(super) state: Arc<Mutex<State>>,
}

pub(super) struct State {
    knobs: Knobs,
    /// From the first change on.
    pub(super) changes: Option<Changes>,
    /// Affinity of this process before the first change. A setting can take CPUs offline, and the
    /// kernel does not always give them back when they are online again.
    affinity: Option<model::CpuSet>,
}

/// The right to change settings, with the journal of the changes.
pub(super) struct Changes {
    _lock: Lock,
    pub(super) journal: Journal,
    _watchdog: Option<Watchdog>,
}

/// Restores the settings of a [`KnobSetter`] from another thread, right before the process ends.
#[derive(Clone)]
pub struct EmergencyRestore {
    state: Arc<Mutex<State>>,
}

impl KnobSetter {
    /// A setter that has changed nothing yet.
    pub fn new(knobs: Knobs) -> KnobSetter {
        let state = State { knobs, changes: None, affinity: None };
        KnobSetter { state: Arc::new(Mutex::new(state)) }
    }

    /// Sets exactly these knobs and restores all others that it changed before. Returns each change
    /// as a phrase.
    pub fn set(&self, wanted: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        lock_state(&self.state).set(wanted)
    }

    /// Restores everything; an error names what could not be restored.
    pub fn restore(&self) -> anyhow::Result<Vec<String>> {
        lock_state(&self.state).restore(|_| true)
    }

    pub fn emergency_restore(&self) -> EmergencyRestore {
        EmergencyRestore { state: Arc::clone(&self.state) }
    }
}

impl EmergencyRestore {
    /// Restores everything and ends the process. It keeps the state locked, so that no other thread
    /// can change a setting before the end.
    pub fn restore_and_exit(&self, code: i32) -> ! {
        let mut state = lock_state(&self.state);
        // The journal keeps what could not be restored.
        let _ = state.restore(|_| true);
        std::process::exit(code)
    }

    /// Restores everything, unless a change is in progress.
    pub fn try_restore(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            let _ = state.restore(|_| true);
        }
    }
}

impl Drop for KnobSetter {
    fn drop(&mut self) {
        // The journal keeps what could not be restored, for the next run or `assay restore`.
        let _ = self.restore();
    }
}

/// After a panic the state is still that of the journal.
pub(super) fn lock_state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn set(&mut self, wanted: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        let mut changed = self.restore(|entry| !wanted.contains_key(&entry.knob))?;
        // Each case applies task settings to its own processes ([`task::apply`]).
        for (name, value) in wanted.iter().filter(|(name, _)| !task::is_task_knob(name)) {
            let knob = self.knobs.locate(name).map_err(anyhow::Error::msg)?;
            if knob.files.len() > 1 && value.contains('+') {
                // A mixed value (files that differ) can only be restored, not set.
                changed.extend(self.restore(|entry| entry.knob == *name)?);
                let now = self.knobs.value(&knob).with_context(|| format!("cannot read {name}"))?;
                if now == *value {
                    continue;
                }
                bail!("{name} is {now} and cannot be set to {value}: a mixed value can only be restored");
            }
            for file in &knob.files {
                changed.extend(self.change(&knob, file, value)?);
            }
        }
        // A change may have put CPUs online again.
        self.restore_affinity();
        Ok(changed)
    }

    /// Changes one file of a knob, after noting it in the journal.
    fn change(&mut self, knob: &Located, file: &str, value: &str) -> anyhow::Result<Option<String>> {
        let read = |knobs: &Knobs| {
            knobs
                .value_of(file, &knob.form)
                .with_context(|| format!("cannot read {file}: does this kernel have it?"))
        };
        let name = &knob.name;
        if self.changes.is_none() {
            if read(&self.knobs)? == value {
                return Ok(None);
            }
            self.acquire()?;
        }
        let current = read(&self.knobs)?;
        let entries = self.changes.iter().flat_map(|changes| &changes.journal.entries);
        // Features of the scheduler share a file, so an entry is matched by knob as well.
        match entries.clone().find(|entry| entry.file == file && entry.knob == *name) {
            // Changed before, and the value is neither the old one nor one of Assay's.
            Some(entry) if current != entry.before && !entry.assay_values.contains(&current) => {
                bail!("another program set {name} to {current} meanwhile")
            }
            // Nothing to do.
            _ if current == value => return Ok(None),
            // Changed before, and now to a further value.
            Some(_) => {}
            // The first change.
            None => {
                if let Some(why) = self.knobs.unmet(name, value) {
                    bail!("cannot set {name} to {value}: {why}");
                }
            }
        }
        self.note_change(name, file, &current, vec![current.clone(), value.to_string()])?;
        self.knobs
            .write(file, &knob.form, value)
            .with_context(|| format!("cannot write {value} to {file}"))?;
        let now = read(&self.knobs)?;
        if now != value {
            // The kernel changed the value: that counts as Assay's, too.
            self.note_change(name, file, &current, vec![current.clone(), value.to_string(), now.clone()])?;
            bail!("{name} was set to {value} and is {now}");
        }
        Ok(Some(format!("{name} from {current} to {value}")))
    }

    /// Acquires the right to change settings.
    pub(super) fn acquire(&mut self) -> anyhow::Result<()> {
        let lock = match self.knobs.claim()? {
            Ok((lock, _)) => lock,
            Err(owner) => bail!("{owner}: wait for its end"),
        };
        // In another tree (in tests) settings are plain files that change no CPUs.
        let is_this_host = self.knobs.root == Path::new("/");
        self.affinity = affinity::allowed().ok().filter(|_| is_this_host);
        let watchdog = self.knobs.watchdog();
        let journal = Journal::new(&self.knobs.root, self.knobs.boot_id());
        self.changes = Some(Changes { _lock: lock, journal, _watchdog: watchdog });
        Ok(())
    }

    /// Notes the next change in the journal: from now on these values count as Assay's. `current`
    /// is the value to restore if this is the first change.
    pub(super) fn note_change(
        &mut self,
        knob: &str,
        file: &str,
        current: &str,
        assay_values: Vec<String>,
    ) -> anyhow::Result<()> {
        let Some(Changes { journal, .. }) = &mut self.changes else { return Ok(()) };
        match journal.entries.iter_mut().find(|entry| entry.file == file && entry.knob == knob) {
            Some(entry) => entry.assay_values = assay_values,
            None => journal.entries.push(Entry {
                knob: knob.to_string(),
                file: file.to_string(),
                before: current.to_string(),
                assay_values,
            }),
        }
        self.knobs.store.write(journal).context("the change was not noted")
    }

    /// Restores the entries that `which` selects; the last one frees the lock.
    fn restore(&mut self, which: impl Fn(&Entry) -> bool) -> anyhow::Result<Vec<String>> {
        let Some(Changes { journal, .. }) = &mut self.changes else { return Ok(Vec::new()) };
        let (mut restored, mut failed) = (Vec::new(), Vec::new());
        let had = journal.entries.len();
        journal.entries.retain(|entry| {
            if !which(entry) {
                return true;
            }
            let (is_done, sentence) = self.knobs.restore_entry(entry);
            if is_done {
                restored.extend(sentence);
            } else {
                failed.extend(sentence);
            }
            !is_done
        });
        if journal.entries.len() < had {
            let written = self.knobs.store.write(journal);
            failed.extend(written.err().map(|error| format!("cannot rewrite the journal: {error:#}")));
        }
        if journal.entries.is_empty() {
            self.restore_affinity();
            self.changes = None;
        }
        match failed.as_slice() {
            [] => Ok(restored),
            failed => bail!("{}; `assay restore` tries again", failed.join("; ")),
        }
    }

    /// Allows this process the CPUs that it had before the first change ([`State::affinity`]).
    fn restore_affinity(&self) {
        let Some(before) = &self.affinity else { return };
        if affinity::allowed().is_ok_and(|now| now != *before) {
            // If the control group lost them, too, this fails; each pass that needs such a CPU then
            // reports it.
            let _ = affinity::pin(before);
        }
    }
}
