//! The hand that turns knobs during a session, and turns them back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};

use super::journal::{Entry, Journal, Lock};
use super::watchdog::Watchdog;
use super::{Knobs, Located, task};
use sys::affinity;

/// Turns knobs, and turns all of them back when dropped.
pub struct KnobSetter {
    pub(super) state: Arc<Mutex<State>>,
}

pub(super) struct State {
    knobs: Knobs,
    /// From the first change on.
    pub(super) held: Option<(Lock, Journal, Option<Watchdog>)>,
    /// The CPUs that this process might use before the first change: those that go offline are not
    /// always given back.
    affinity: Option<model::CpuSet>,
}

/// Turns the knobs of a [`KnobSetter`] back from another thread, right before the process ends.
#[derive(Clone)]
pub struct EmergencyRestore {
    state: Arc<Mutex<State>>,
}

impl KnobSetter {
    /// One that has turned none yet.
    pub fn on(knobs: Knobs) -> KnobSetter {
        let state = State { knobs, held: None, affinity: None };
        KnobSetter { state: Arc::new(Mutex::new(state)) }
    }

    /// Sets exactly these knobs and puts back all others that were turned before. Says what
    /// changed, a sentence each.
    pub fn set(&self, wanted: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        lock(&self.state).set(wanted)
    }

    /// Puts everything back; an error names what could not be.
    pub fn put_back(&self) -> anyhow::Result<Vec<String>> {
        lock(&self.state).put_back(|_| true)
    }

    pub fn last(&self) -> EmergencyRestore {
        EmergencyRestore { state: Arc::clone(&self.state) }
    }
}

impl EmergencyRestore {
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

impl Drop for KnobSetter {
    fn drop(&mut self) {
        // What could not be put back stands in the journal, for the next run or `assay restore`.
        let _ = self.put_back();
    }
}

/// A thread that panicked left the state as the journal says.
pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn set(&mut self, wanted: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        let mut said = self.put_back(|entry| !wanted.contains_key(&entry.knob))?;
        for (name, value) in wanted.iter().filter(|(name, _)| !task::is_one(name)) {
            let knob = self.knobs.locate(name).map_err(anyhow::Error::msg)?;
            if knob.files.len() > 1 && value.contains('+') {
                // Files that differed are what they were once they are put back, and in no other
                // way.
                said.extend(self.put_back(|entry| entry.knob == *name)?);
                match self.knobs.value(&knob) {
                    Ok(now) if now == *value => continue,
                    now => bail!(
                        "{name} is {} and cannot be set to {value}: a mixed value can only be \
                      restored",
                        now.unwrap_or_default()
                    ),
                }
            }
            for file in &knob.files {
                said.extend(self.turn(&knob, file, value)?);
            }
        }
        self.own_affinity();
        Ok(said)
    }

    /// Turns one file of a knob, after it stands in the journal.
    fn turn(&mut self, knob: &Located, file: &str, value: &str) -> anyhow::Result<Option<String>> {
        let read = |knobs: &Knobs| {
            knobs.value_of(file, &knob.form).with_context(|| {
                format!(
                    "cannot read {file}: does this kernel \
              have it?"
                )
            })
        };
        let name = &knob.name;
        if self.held.is_none() {
            if read(&self.knobs)? == value {
                return Ok(None);
            }
            self.hold()?;
        }
        let current = read(&self.knobs)?;
        let entries = self.held.iter().flat_map(|(_, journal, _)| &journal.entries);
        // Features of the scheduler share a file: an entry is one knob's.
        match entries.clone().find(|entry| entry.file == file && entry.knob == *name) {
            Some(entry) if current != entry.before && !entry.ours.contains(&current) => {
                bail!("another program set {name} to {current} meanwhile")
            }
            _ if current == value => return Ok(None),
            Some(_) => {}
            None => {
                if let Some(why) = self.knobs.unmet(name, value) {
                    bail!("cannot set {name} to {value}: {why}");
                }
            }
        }
        self.journal(name, file, &current, vec![current.clone(), value.to_string()])?;
        self.knobs
            .write(file, &knob.form, value)
            .with_context(|| format!("cannot write {value} to {file}"))?;
        let now = read(&self.knobs)?;
        if now != value {
            // The kernel made something else of it: that is ours too.
            self.journal(name, file, &current, vec![current.clone(), value.to_string(), now.clone()])?;
            bail!("{name} was set to {value} and is {now}");
        }
        Ok(Some(format!("{name} from {current} to {value}")))
    }

    /// Becomes the one that may change knobs.
    pub(super) fn hold(&mut self) -> anyhow::Result<()> {
        let lock = match self.knobs.claim()? {
            Ok((lock, _)) => lock,
            Err(owner) => bail!("{owner}: wait for its end"),
        };
        self.affinity = affinity::allowed().ok().filter(|_| self.knobs.root == Path::new("/"));
        let watchdog = self.knobs.watchdog();
        self.held = Some((lock, Journal::own(&self.knobs.root, self.knobs.boot_id()), watchdog));
        Ok(())
    }

    /// Notes a change that is about to be made: from now on these values are ours.
    pub(super) fn journal(
        &mut self,
        knob: &str,
        file: &str,
        current: &str,
        ours: Vec<String>,
    ) -> anyhow::Result<()> {
        let Some((_, journal, _)) = &mut self.held else { return Ok(()) };
        match journal.entries.iter_mut().find(|entry| entry.file == file && entry.knob == knob) {
            Some(entry) => entry.ours = ours,
            None => journal.entries.push(Entry {
                knob: knob.to_string(),
                file: file.to_string(),
                before: current.to_string(),
                ours,
            }),
        }
        self.knobs.store.write(journal).context("nothing was changed")
    }

    /// Puts back the knobs that `which` names; the last of them frees the lock.
    fn put_back(&mut self, which: impl Fn(&Entry) -> bool) -> anyhow::Result<Vec<String>> {
        let Some((_, journal, _)) = &mut self.held else { return Ok(Vec::new()) };
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
            failed => bail!("{}; `assay restore` tries again", failed.join("; ")),
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
