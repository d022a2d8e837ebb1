//! What would outlive the program, and does not: System V semaphores, guarded programs and jobs on
//! another's cluster, whatever ends the session, its visit and its watchdog.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::runs::{Ended, Running, end, start};
use testkit::killing::children_of;

mod jobs;
mod journals;
mod programs;
mod semaphores;

/// No fact is waited for longer.
const PATIENCE: Duration = Duration::from_secs(300);

#[track_caller]
fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !seen() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where a session of a test keeps its journals.
struct State(TempDir);

impl State {
    fn new() -> State {
        State(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).expect("a folder").flatten();
        let names = entries.map(|entry| entry.path());
        names.filter(|path| path.to_string_lossy().contains("/objects-")).collect()
    }

    /// All objects of one kind that stand in a journal now.
    fn objects(&self, kind: &str) -> Vec<Value> {
        let texts = self.journals().into_iter().filter_map(|path| fs::read_to_string(path).ok());
        let journals = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
        let all = journals.flat_map(|journal| journal["objects"].as_array().cloned().unwrap_or_default());
        all.filter_map(|object| object.get(kind).cloned()).collect()
    }

    fn restore(&self) -> Ended {
        end(crate::assay().arg("restore").env("ASSAY_STATE", self.path()))
    }

    /// The next start of anything that measures.
    fn next_start(&self) -> Ended {
        let out = tempfile::tempdir().expect("a folder");
        let words = "--quick --force --only selftest.steady --budget 1s";
        end(crate::runs::run_into(out.path(), words).env("ASSAY_STATE", self.path()))
    }
}

fn kill(pid: Pid, signal: Signal) {
    // It may just have ended by itself.
    let _ = kill_process(pid, signal);
}

/// The visits that a session has at this moment, with those that they keep, and its watchdogs.
fn visits(session: &Running) -> Vec<Pid> {
    let mut visits = children_of(session.child.id(), "case");
    visits.extend(kept(session));
    visits
}

/// The processes that run programs of others, each below its keeper.
fn kept(session: &Running) -> Vec<Pid> {
    let keepers = children_of(session.child.id(), "case");
    keepers.iter().flat_map(|keeper| children_of(keeper.as_raw_pid() as u32, "case")).collect()
}

fn watchdogs(session: &Running) -> Vec<Pid> {
    children_of(session.child.id(), "--watch")
}

/// Who of a session is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victims {
    Session,
    Visit,
    /// Of a visit that runs programs of others: the process that does, and the one that keeps it.
    Kept,
    Keeper,
    /// The session and all of its visit.
    Both,
    /// These and the watchdog.
    All,
}

impl Victims {
    /// In one go: none of them can do anything in between.
    fn kill(self, session: &Running) {
        let own = Pid::from_child(&session.child);
        kill(own, Signal::STOP);
        let mut pids = match self {
            Victims::Session => Vec::new(),
            Victims::Kept => kept(session),
            Victims::Keeper => children_of(session.child.id(), "case"),
            _ => visits(session),
        };
        if self == Victims::All {
            pids.extend(watchdogs(session));
        }
        pids.iter().for_each(|pid| kill(*pid, Signal::STOP));
        pids.iter().for_each(|pid| kill(*pid, Signal::KILL));
        let lives = matches!(self, Victims::Visit | Victims::Kept | Victims::Keeper);
        kill(own, if lives { Signal::CONT } else { Signal::KILL });
    }
}

/// The command, which may not have a namespace of its own, as in most containers.
fn without_namespaces(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // The number of the system call is the first word of what a filter sees.
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_unshare as u32, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, refused, 0, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the filter and the program that names it live here; the kernel copies both.
        let installed = unsafe {
            // A hang-up that is ignored, as below nohup, stays ignored.
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if installed { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec the child makes three system calls: no memory, no lock.
    unsafe { command.pre_exec(install) }
}

/// A session that runs until it is ended.
fn run(only: &str, words: &str, state: &State, out: &Path) -> Command {
    let mut command = crate::runs::run_into(out, &format!("--force --new --only {only} {words}"));
    command.env("ASSAY_STATE", state.path());
    command
}
