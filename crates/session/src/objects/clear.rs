//! Cleanup: ends the objects of a journal if they are provably Assay's, else leaves and names them.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::journal::{Journal, JournalFile, LockedJournal, all_in};
use super::namespaces::{namespace, own_namespace, process_in, sees_all};
use super::{Object, group, programs};
use bench::JobManager;
use sys::scratch::{self, Leftover};
use sys::semaphore;

/// The result of a cleanup, in sentences.
#[derive(Debug, Default)]
pub struct Cleared {
    /// What was done, and what was left because it is not Assay's.
    pub said: Vec<String>,
    /// What is Assay's and could not be ended: it stays in its journal.
    pub failed: Vec<String>,
}

/// How long another cleanup may take.
const MAX_OTHER_WAIT: Duration = Duration::from_secs(15);
/// How long a visit without a parent may take to end its processes.
const MAX_VISIT_WAIT: Duration = Duration::from_secs(10);
/// Wall-clock seconds are noted as integers, and the kernel's may lag behind.
const SECOND: i64 = 1;

/// Ends what ended sessions left.
pub fn clear(folder: &Path) -> Cleared {
    let mut cleared = Cleared::default();
    let end = Instant::now() + MAX_OTHER_WAIT;
    loop {
        let mut others = 0;
        for found in all_in(folder) {
            match found {
                JournalFile::Free(held, text) => cleared.journal(held, &text),
                // Its owner has ended, so another process is cleaning up.
                JournalFile::Taken(text) => {
                    let is_left = |one: Option<Journal>| one.is_some_and(|one| !one.owner_lives());
                    others += usize::from(Journal::of_text(&text).is_ok_and(is_left));
                }
            }
        }
        if others == 0 {
            return cleared;
        }
        if Instant::now() > end {
            cleared.failed.push(format!("the journals in {} are locked", folder.display()));
            return cleared;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether this process has a journal there.
pub fn has_journal_of(folder: &Path, pid: u32) -> bool {
    all_in(folder).into_iter().any(|found| {
        let (JournalFile::Free(_, text) | JournalFile::Taken(text)) = found;
        Journal::of_text(&text).is_ok_and(|journal| journal.is_some_and(|journal| journal.pid == pid))
    })
}

impl Cleared {
    fn journal(&mut self, held: LockedJournal, text: &str) {
        let path = held.path().display().to_string();
        let mut journal = match Journal::of_text(text) {
            Ok(Some(journal)) => journal,
            Ok(None) => {
                // Its session was killed before writing, the host lost power, or its boot is over.
                self.failed.extend(held.remove().err().map(|error| format!("{path}: {error}")));
                return;
            }
            Err(error) => {
                self.failed.push(format!(
                    "cannot parse the journal of kernel objects {path} ({error}): end by hand what it \
                      names, and remove it"
                ));
                return;
            }
        };
        let before = self.failed.len();
        self.all(&mut journal);
        let kept = if journal.is_empty() { held.remove() } else { held.write(&journal) };
        self.failed.extend(kept.err().map(|error| format!("the journal of kernel objects {path}: {error}")));
        if self.failed.len() > before {
            self.failed.push(format!("they stay in the journal {path}"));
        }
    }

    /// Ends what an ended session left; failures stay in its journal.
    pub fn all(&mut self, journal: &mut Journal) {
        let who = format!("process {} of assay left", journal.pid);
        let elsewhere = journal.namespace.filter(|other| namespace("self", "pid") != Some(*other));
        journal.objects.retain(|object| match object.end_from(elsewhere, MAX_VISIT_WAIT) {
            Ended::Nothing => false,
            Ended::Done(words) => {
                self.said.push(format!("{who} {words}"));
                false
            }
            Ended::Foreign(words) => {
                self.said.push(words);
                false
            }
            Ended::Failed(words) => {
                self.failed.push(format!("{who} {words}"));
                true
            }
        });
        // Processes that use them have ended.
        if journal.objects.is_empty() {
            let all = std::mem::take(&mut journal.places);
            for Leftover { path, stays } in all.iter().flat_map(|place| scratch::sweep(place)) {
                self.said.push(match stays {
                    None => format!("{who} the folder {path:?}: removed"),
                    Some(why) => format!("the folder {path:?} stays, because {}", why.escape_debug()),
                });
            }
        }
    }
}

/// The fate of one object.
pub(super) enum Ended {
    /// It does not exist, or is empty.
    Nothing,
    Done(String),
    /// It is not Assay's, and stays.
    Foreign(String),
    /// It is Assay's, and could not be ended.
    Failed(String),
}

impl Object {
    /// The same, if its process numbers belong to another PID namespace.
    fn end_from(&self, elsewhere: Option<u64>, patience: Duration) -> Ended {
        let is_of_processes =
            matches!(self, Object::Visit { .. } | Object::Processes { .. } | Object::ControlGroup { .. });
        let Some(other) = elsewhere.filter(|_| is_of_processes) else { return self.end(patience) };
        match (self, process_in("pid", other)) {
            (_, Some(pid)) => Ended::Failed(format!(
                "processes in another PID namespace: `nsenter -t {pid} -p -m assay restore` ends them"
            )),
            // The first PID namespace sees all processes, and none is in the other one.
            (Object::ControlGroup { .. }, None) if sees_all() => self.end(patience),
            (_, None) if sees_all() => Ended::Nothing,
            (_, None) => Ended::Failed(
                "processes in another PID namespace: run `assay restore` there or on the host; if that \
                  namespace is gone, remove the journal"
                    .to_string(),
            ),
        }
    }

    /// `patience`: how long a live visit may take to end by itself.
    pub(super) fn end(&self, patience: Duration) -> Ended {
        match self {
            Object::Visit { pid, start_ticks } => {
                programs::end_visit(*pid, *start_ticks, patience);
                Ended::Nothing
            }
            Object::Processes { mark } => match programs::end_marked(mark) {
                Ok(0) => Ended::Nothing,
                Ok(ended) => Ended::Done(format!("{ended} processes of a guarded program: killed")),
                Err(error) => Ended::Failed(format!("processes of a guarded program ({error})")),
            },
            Object::ControlGroup { folder, version, inode } => {
                let shown = folder.display();
                match group::end(folder, *version, *inode) {
                    Ok(0) => Ended::Nothing,
                    Ok(killed) => Ended::Done(format!(
                        "{killed} processes in the control group {shown}: killed, and the group removed"
                    )),
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        Ended::Foreign(format!("the control group {shown} stays: {error}"))
                    }
                    Err(error) => Ended::Failed(format!("the control group {shown} ({error})")),
                }
            }
            Object::SystemVSemaphores { .. } => self.end_set(),
            Object::Job { address, job } => {
                let shown = format!("the job {job} and its program on the Flink cluster at {address}");
                match JobManager::at(address).withdraw(job) {
                    Ok(false) => Ended::Nothing,
                    Ok(true) => Ended::Done(format!("{shown}: cancelled, and the program removed")),
                    Err(error) => Ended::Failed(format!("{shown} ({error:#})")),
                }
            }
        }
    }

    fn end_set(&self) -> Ended {
        let Object::SystemVSemaphores { key, count, maker, namespace, from_s, until_s } = self else {
            return Ended::Nothing;
        };
        let set = format!("System V semaphores with the key 0x{key:08x}");
        if own_namespace() != Some(*namespace) {
            // A namespace without processes is gone, with its objects.
            return match process_in("ipc", *namespace) {
                None => Ended::Nothing,
                Some(pid) => Ended::Failed(format!(
                    "{set} in another IPC namespace: `nsenter -t {pid} -i assay restore` removes them"
                )),
            };
        }
        let found = match semaphore::ExistingSet::with_key(*key) {
            Ok(None) => return Ended::Nothing,
            Ok(Some(found)) => found,
            Err(error) => return Ended::Foreign(format!("{set} belong to another user and stay ({error})")),
        };
        let in_time = |at: i64| (from_s - SECOND..=until_s + SECOND).contains(&at);
        let ours = found.maker_uid == *maker
            && found.count == u64::from(*count)
            && in_time(found.changed_s)
            && (found.used_s == 0 || found.used_s >= from_s - SECOND);
        if !ours {
            return Ended::Foreign(format!(
                "{set} are not the set that Assay made (user {}, {} in the set, made or changed at {} s): \
                  they stay",
                found.maker_uid, found.count, found.changed_s
            ));
        }
        match found.remove() {
            Ok(()) => Ended::Done(format!("{set}: removed")),
            Err(error) => Ended::Failed(format!("{set} ({error})")),
        }
    }
}
