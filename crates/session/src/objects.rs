//! Kernel objects that would outlive a visit: noted in a journal before they exist, and ended
//! however the session ends.
//!
//! They are System V semaphores, the user's programs with their children, and a job on another's
//! cluster. All else ends with the last process that has it open. A visit's objects end with it;
//! after kill -9 a watchdog ends them, else the next run or `assay restore`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use bench::Leaves;
use knobs::watchdog::Watchdog;
use knobs::{Knobs, start_ticks_of};
use sys::random::random;
use sys::semaphore::{self, SharedKey};

mod clear;
mod group;
mod journal;
mod namespaces;
mod programs;

pub use clear::{Cleared, clear, has_journal_of};
pub use programs::MARK;

use clear::Ended;
use group::Place;
use journal::{Journal, LockedJournal};

/// One object that may exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// The visit's process, which makes all others.
    Visit { pid: u32, start_ticks: u64 },
    SystemVSemaphores {
        key: i32,
        count: u32,
        maker: u32,
        /// The inode of the IPC namespace that the key belongs to.
        namespace: u64,
        /// Wall-clock seconds between which it was made.
        from_s: i64,
        until_s: i64,
    },
    /// With its processes. No inode: it may not exist yet, and is empty.
    ControlGroup { folder: PathBuf, version: u32, inode: Option<u64> },
    /// Processes with this value of [`MARK`] in their environment, and their children.
    Processes { mark: String },
    /// A job and its program on the Flink cluster whose JobManager has this REST address.
    Job { address: String, job: String },
}

/// The session's objects: what visits may make, and what still exists of it.
pub struct ObjectKeeper {
    state: RefCell<State>,
}

struct State {
    knobs: Knobs,
    journal: Journal,
    held: Option<LockedJournal>,
    watchdog: Option<Watchdog>,
    place: Result<Place, String>,
}

/// The objects that one visit may make.
pub struct Loan<'k> {
    keep: &'k ObjectKeeper,
    /// Key for a set of semaphores, if it needs one.
    pub key: Option<SharedKey>,
    /// Mark in the environment of its programs, if it has some.
    pub mark: Option<String>,
    /// Number of its job on another's cluster, if it has one.
    pub job: Option<String>,
}

/// Time after a visit's limit at which it is surely over.
const KEY_MARGIN: Duration = Duration::from_secs(60);

impl ObjectKeeper {
    /// Without objects yet; its journal is next to that of the knobs.
    pub fn of(knobs: &Knobs) -> ObjectKeeper {
        let state = State {
            knobs: knobs.clone(),
            journal: Journal::own(),
            held: None,
            watchdog: None,
            place: Err("no program is supervised".to_string()),
        };
        ObjectKeeper { state: RefCell::new(state) }
    }

    /// Prepares for a plan, before its first visit; returns what will be missing, in sentences.
    /// `places` are the folders in which visits make their own.
    pub fn prepare(&self, all: impl Iterator<Item = Leaves>, places: BTreeSet<PathBuf>) -> Vec<String> {
        let all: Vec<Leaves> = all.collect();
        let state = &mut *self.state.borrow_mut();
        let mut said = Vec::new();
        if all.is_empty() && places.is_empty() {
            return said;
        }
        state.journal.places = places;
        if let (Err(why), false) = (state.note(), all.is_empty()) {
            said.push(format!(
                "{why}: System V semaphores need their own namespace, and only this process and its \
                  watchdog can end programs and jobs"
            ));
        }
        if all.contains(&Leaves::Programs) {
            state.place = Place::find();
        }
        said
    }

    /// Grants what a visit needs for at most `limit`, and notes it in the journal.
    pub fn lend(&self, leaves: Option<Leaves>, limit: Duration) -> anyhow::Result<Loan<'_>> {
        let mut loan = Loan { keep: self, key: None, mark: None, job: None };
        let state = &mut *self.state.borrow_mut();
        match leaves {
            None => {}
            Some(Leaves::Semaphores(count)) => loan.key = Some(state.key(count, limit)?),
            Some(Leaves::Programs) => {
                let mark = hex(&random::<16>()?);
                if let Ok(place) = &state.place {
                    let (folder, version) = (place.named(&mark), place.version);
                    state.journal.objects.push(Object::ControlGroup { folder, version, inode: None });
                }
                state.journal.objects.push(Object::Processes { mark: mark.clone() });
                // Without a journal the watchdog ends it: `prepare` sent it the list.
                let _ = state.note();
                loan.mark = Some(mark);
            }
            Some(Leaves::Job(address)) => {
                let job = hex(&random::<16>()?);
                state.journal.objects.push(Object::Job { address, job: job.clone() });
                let _ = state.note();
                loan.job = Some(job);
            }
        }
        Ok(loan)
    }

    /// Ends all objects; returns what failed, in sentences.
    fn take_back(&self) -> Vec<String> {
        let state = &mut *self.state.borrow_mut();
        let mut said = Vec::new();
        if state.journal.objects.is_empty() {
            return said;
        }
        state.journal.objects.retain(|object| match object.end(Duration::ZERO) {
            Ended::Nothing | Ended::Done(_) => false,
            Ended::Foreign(words) => {
                said.push(words);
                false
            }
            Ended::Failed(words) => {
                said.push(format!("a pass left {words}; `assay restore` tries again"));
                true
            }
        });
        let _ = state.note();
        said
    }
}

impl Drop for ObjectKeeper {
    fn drop(&mut self) {
        self.take_back();
        let state = self.state.get_mut();
        if state.journal.objects.is_empty() {
            // A journal that stays is empty.
            let _ = state.held.take().map(LockedJournal::remove);
        }
    }
}

impl Loan<'_> {
    /// Notes the visit's process before it starts work, and moves it into its group.
    pub fn started(&self, pid: u32) {
        let state = &mut *self.keep.state.borrow_mut();
        if state.journal.is_empty() {
            return;
        }
        let visit = start_ticks_of(pid).map(|start_ticks| Object::Visit { pid, start_ticks });
        state.journal.objects.splice(0..0, visit);
        let unmade = |object: &&mut Object| matches!(object, Object::ControlGroup { inode: None, .. });
        if let Some(Object::ControlGroup { folder, inode, .. }) =
            state.journal.objects.iter_mut().find(unmade)
        {
            let folder = folder.clone();
            let made = group::make(&folder).map(|made| *inode = Some(made));
            // Noted in the journal before a process is in it.
            let _ = state.note();
            if let Err(error) = made.and_then(|()| group::enter(&folder, pid)) {
                // Without a group only the mark is left, for later visits, too.
                state.place = Err(format!("{}: {error}", folder.display()));
            }
            return;
        }
        let _ = state.note();
    }

    /// Ends the visit's objects; returns what failed, in sentences.
    pub fn end(self) -> Vec<String> {
        self.keep.take_back()
    }
}

impl State {
    /// A free key, with what identifies its set; an error if it cannot be noted.
    fn key(&mut self, count: u32, limit: Duration) -> anyhow::Result<SharedKey> {
        let Some(namespace) = namespaces::own_namespace() else {
            return Ok(Err("cannot identify this process's IPC namespace".to_string()));
        };
        let key = loop {
            let key = (u32::from_ne_bytes(random()?) >> 1) as i32;
            match semaphore::ExistingSet::with_key(key) {
                Ok(None) if key != 0 => break key,
                Ok(_) => {}
                Err(error) => return Ok(Err(format!("cannot check whether a key is free ({error})"))),
            }
        };
        let from_s = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() as i64;
        let until_s = from_s + (limit + KEY_MARGIN).as_secs() as i64;
        let maker = rustix::process::geteuid().as_raw();
        let set = Object::SystemVSemaphores { key, count, maker, namespace, from_s, until_s };
        self.journal.objects.push(set);
        Ok(match self.note() {
            Ok(()) => Ok(key),
            Err(why) => {
                self.journal.objects.pop();
                Err(why)
            }
        })
    }

    /// Writes the journal and sends it to the watchdog, too, in case someone removes the file.
    fn note(&mut self) -> Result<(), String> {
        let written = self.write().map_err(|error| {
            let folder = self.knobs.folder().display();
            format!("cannot write a journal of kernel objects in {folder} ({error})")
        });
        if self.watchdog.as_mut().is_none_or(|watchdog| !watchdog.lives()) {
            self.watchdog = self.knobs.watchdog();
        }
        if let (Some(watchdog), Ok(text)) = (&mut self.watchdog, serde_json::to_string(&self.journal)) {
            watchdog.send(&text);
        }
        written
    }

    fn write(&mut self) -> io::Result<()> {
        // Locked even if it cannot be written, so that no other process ends its objects.
        if let Some(held) = self.held.as_ref().filter(|held| held.is_there()) {
            return held.write(&self.journal);
        }
        let held = LockedJournal::create(self.knobs.folder())?;
        match held.write(&self.journal) {
            Ok(()) => {
                self.held = Some(held);
                Ok(())
            }
            Err(error) => {
                let _ = held.remove();
                Err(error)
            }
        }
    }
}

/// Ends what a session sent to its watchdog last.
pub fn clear_received(told: &str) -> Cleared {
    let mut cleared = Cleared::default();
    if let Some(mut journal) = told.lines().rev().find_map(|line| Journal::of_text(line).ok()?) {
        cleared.all(&mut journal);
    }
    cleared
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
