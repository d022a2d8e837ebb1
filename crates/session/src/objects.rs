//! What a visit makes in the kernel that would outlive us: known to a journal before it exists, and
//! ended however the session ends.
//!
//! These are all kinds: System V semaphores, the programs of others with whatever they start, and a
//! job on another's cluster. Everything else goes with the last process that has it open, and our
//! own processes die with each other. A visit's end is the end of what it was lent; after kill -9
//! of the session a watchdog does it, else the next measurement or `assay restore`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use bench::Leaves;
use knobs::watchdog::Watchdog;
use knobs::{Knobs, start_of};
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
use journal::{Held, Journal};

/// One thing that may be there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// The visit's own process, which makes all others of these.
    Visit { pid: u32, start_ticks: u64 },
    SystemVSemaphores {
        key: i32,
        count: u32,
        maker: u32,
        /// The inode of the IPC namespace that the key belongs to.
        namespace: u64,
        /// Seconds of the wall clock between which it was made.
        from_s: i64,
        until_s: i64,
    },
    /// With all that is in it. No inode: it may not be there yet, and nobody is in it.
    ControlGroup { folder: PathBuf, version: u32, inode: Option<u64> },
    /// All that have this in their environment as [`MARK`], and what these have started.
    Processes { mark: String },
    /// A job of this number and its program, on the Flink cluster whose JobManager is at this REST
    /// address.
    Job { address: String, job: String },
}

/// A session's side: what its visits are lent, and what is still there of it.
pub struct Keep {
    state: RefCell<State>,
}

struct State {
    knobs: Knobs,
    journal: Journal,
    held: Option<Held>,
    watchdog: Option<Watchdog>,
    place: Result<Place, String>,
}

/// What one visit was lent.
pub struct Loan<'k> {
    keep: &'k Keep,
    /// Where it may make a set of semaphores, where it wants one.
    pub key: Option<SharedKey>,
    /// What its programs carry in their environment, where it has some.
    pub mark: Option<String>,
    /// The number of its job, where it has one on another's cluster.
    pub job: Option<String>,
}

/// Between a visit's time limit and the moment at which it is surely over.
const AFTER: Duration = Duration::from_secs(60);

impl Keep {
    /// One that has lent nothing yet; its journal is where that of the knobs is.
    pub fn of(knobs: &Knobs) -> Keep {
        let state = State {
            knobs: knobs.clone(),
            journal: Journal::own(),
            held: None,
            watchdog: None,
            place: Err("no program is supervised".to_string()),
        };
        Keep { state: RefCell::new(state) }
    }

    /// Before the first visit of a plan that needs it: what will be missing, in sentences. `places`
    /// are the folders in which its visits make some of their own.
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

    /// What a visit needs that lasts no longer than `limit`; all of it stands in the journal.
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
                // Without a journal there is the watchdog, which `prepare` has told of.
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

    /// Ends all that is there; what is not as it should be, in sentences.
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

impl Drop for Keep {
    fn drop(&mut self) {
        self.take_back();
        let state = self.state.get_mut();
        if state.journal.objects.is_empty() {
            // One that stays says that nothing is left.
            let _ = state.held.take().map(Held::remove);
        }
    }
}

impl Loan<'_> {
    /// Told of the visit's process before that does anything: it goes into its group, and into the
    /// journal.
    pub fn started(&self, pid: u32) {
        let state = &mut *self.keep.state.borrow_mut();
        if state.journal.is_empty() {
            return;
        }
        let visit = start_of(pid).map(|start_ticks| Object::Visit { pid, start_ticks });
        state.journal.objects.splice(0..0, visit);
        let unmade = |object: &&mut Object| matches!(object, Object::ControlGroup { inode: None, .. });
        if let Some(Object::ControlGroup { folder, inode, .. }) =
            state.journal.objects.iter_mut().find(unmade)
        {
            let folder = folder.clone();
            let made = group::make(&folder).map(|made| *inode = Some(made));
            // In the journal before anybody is in it.
            let _ = state.note();
            if let Err(error) = made.and_then(|()| group::enter(&folder, pid)) {
                // The mark is what is left, for the visits that follow, too.
                state.place = Err(format!("{}: {error}", folder.display()));
            }
            return;
        }
        let _ = state.note();
    }

    /// The visit is over: what is not as it should be, in sentences.
    pub fn end(self) -> Vec<String> {
        self.keep.take_back()
    }
}

impl State {
    /// A key that is free, with all by which its set will be known; why there is none, where it
    /// could not be noted.
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
        let until_s = from_s + (limit + AFTER).as_secs() as i64;
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

    /// The journal says what is there from now on, and a watchdog is beside us and told of it, too:
    /// somebody may remove the journal.
    fn note(&mut self) -> Result<(), String> {
        let written = self.write().map_err(|error| {
            let folder = self.knobs.folder().display();
            format!("cannot write a journal of kernel objects in {folder} ({error})")
        });
        if self.watchdog.as_mut().is_none_or(|watchdog| !watchdog.lives()) {
            self.watchdog = self.knobs.watchdog();
        }
        if let (Some(watchdog), Ok(text)) = (&mut self.watchdog, serde_json::to_string(&self.journal)) {
            watchdog.tell(&text);
        }
        written
    }

    fn write(&mut self) -> io::Result<()> {
        // Held on to also where it cannot be written: nobody else may end what it names.
        if let Some(held) = self.held.as_ref().filter(|held| held.is_there()) {
            return held.write(&self.journal);
        }
        let held = Held::create(self.knobs.folder())?;
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

/// What a session told its watchdog last, ended.
pub fn clear_told(told: &str) -> Cleared {
    let mut cleared = Cleared::default();
    if let Some(mut journal) = told.lines().rev().find_map(|line| Journal::of_text(line).ok()?) {
        cleared.all(&mut journal);
    }
    cleared
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
