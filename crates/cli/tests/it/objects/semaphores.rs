//! Sets of System V semaphores under a filter that refuses namespaces of one's own.

use std::fs;

use rustix::process::Signal;

use super::*;
use crate::host::skipped;
use crate::runs::{read, run_file};

const ROW: &str = "ipc.sysv-semaphore";

/// The keys of all sets in this IPC namespace.
fn keys() -> Vec<i32> {
    let text = fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// A foreign set of semaphores, removed when this is dropped.
struct Foreign(i32, i32);

impl Foreign {
    fn new(key: i32, count: i32) -> Foreign {
        // SAFETY: no memory arguments.
        let id = unsafe { libc::semget(key, count, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        Foreign(key, id)
    }

    fn is_there(&self) -> bool {
        keys().contains(&self.0)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: no memory arguments; the set is this test's.
        unsafe { libc::semctl(self.1, 0, libc::IPC_RMID) };
    }
}

fn journaled(state: &State) -> Option<i32> {
    let sets = state.objects("system_v_semaphores");
    sets.first().and_then(|set| set["key"].as_i64()).map(|key| key as i32)
}

/// A session in a visit whose set is there, and the set's key.
fn with_a_set(state: &State, out: &Path) -> (Running, i32) {
    let mut command = run(ROW, "--profile full --budget 5m", state, out);
    let mut session = start(without_namespaces(&mut command));
    let mut key = 0;
    session.until("a set", |_| {
        key = journaled(state).unwrap_or(0);
        key != 0 && keys().contains(&key)
    });
    (session, key)
}

fn can(test: &str) -> bool {
    let version = end(without_namespaces(crate::assay().arg("--version")));
    let can = version.code == 0 && Path::new("/proc/sysvipc/sem").exists();
    if !can {
        skipped(test, "no filter of system calls can be set, or no System V semaphores are here");
    }
    can
}

fn gone(state: &State, key: i32) {
    until("no set and no journal", || !keys().contains(&key) && state.journals().is_empty());
}

#[test]
fn a_set_goes_however_its_run_ends() {
    if !can("a_set_goes_however_its_run_ends") {
        return;
    }
    let foreign = Foreign::new(0x0a55_0001 ^ (std::process::id() << 8) as i32, 2);
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (session, key) = with_a_set(&state, out.path());
        session.signal(signal);
        session.end().expect(130).sane();
        // The session itself has done it: nothing has to be waited for.
        assert!(!keys().contains(&key) && state.journals().is_empty(), "after {signal:?}");
    }
    // A second one ends it at once.
    let (session, key) = with_a_set(&state, out.path());
    let visit = visits(&session);
    visit.iter().for_each(|pid| kill(*pid, Signal::STOP));
    session.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(600));
    session.signal(Signal::TERM);
    session.end().expect(130);
    gone(&state, key);
    for victims in [Victims::Session, Victims::Both] {
        let (session, key) = with_a_set(&state, out.path());
        victims.kill(&session);
        session.end();
        gone(&state, key);
    }
    // A visit alone: its session goes on with another one, and another key.
    let (mut session, key) = with_a_set(&state, out.path());
    Victims::Visit.kill(&session);
    session.until("another visit", |_| {
        journaled(&state).is_some_and(|other| other != key && keys().contains(&other))
    });
    assert!(!keys().contains(&key));
    let key = journaled(&state).expect("a set");
    session.signal(Signal::INT);
    session.end().expect(130);
    gone(&state, key);
    assert!(foreign.is_there(), "a set of the same maker is left alone");
}

#[test]
fn a_set_that_all_have_left_is_removed_later_if_it_is_ours() {
    if !can("a_set_that_all_have_left_is_removed_later_if_it_is_ours") {
        return;
    }
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let left = || {
        // A visit may just be over when it is to be killed.
        for _ in 0..20 {
            let (session, _) = with_a_set(&state, out.path());
            Victims::All.kill(&session);
            session.end();
            if let Some(key) = journaled(&state).filter(|key| keys().contains(key)) {
                assert_eq!(state.journals().len(), 1);
                return key;
            }
            state.restore().expect(0);
        }
        panic!("no kill in 20 left a set");
    };
    let key = left();
    let said = state.restore();
    let words = format!("System V semaphores with the key 0x{key:08x}: removed");
    assert!(said.expect(0).out.contains(&words), "{}", said.out);
    assert!(!keys().contains(&key) && state.journals().is_empty());

    let key = left();
    state.next_start().says(&[": removed"]);
    assert!(!keys().contains(&key) && state.journals().is_empty());

    // In its place is one that was made at another time, or of another size.
    for (from, count) in [(-100_000, 2), (0, 3)] {
        let key = left();
        let journal = state.journals().remove(0);
        let mut told: Value =
            serde_json::from_str(&fs::read_to_string(&journal).expect("text")).expect("JSON");
        for object in told["objects"].as_array_mut().expect("a list") {
            let Some(set) = object.get_mut("system_v_semaphores") else { continue };
            for second in ["from_s", "until_s"] {
                set[second] = (set[second].as_i64().expect("seconds") + from).into();
            }
        }
        remove(key);
        let foreign = Foreign::new(key, count);
        fs::write(&journal, told.to_string()).expect("written");
        let said = state.restore();
        assert!(said.expect(0).out.contains("they stay"), "{}", said.out);
        assert!(foreign.is_there() && state.journals().is_empty());
    }
    let nothing = state.restore();
    assert!(nothing.expect(0).out.contains("nothing is left: "), "{}", nothing.out);
}

fn remove(key: i32) {
    // SAFETY: no memory arguments.
    let id = unsafe { libc::semget(key, 0, 0) };
    drop(Foreign(key, id));
}

#[test]
fn without_a_journal_no_set_is_made_that_could_stay() {
    if !can("without_a_journal_no_set_is_made_that_could_stay") {
        return;
    }
    let (file, out) =
        (tempfile::NamedTempFile::new().expect("a file"), tempfile::tempdir().expect("a folder"));
    let state = file.path().join("no-folder");
    let mut command = crate::runs::run_into(out.path(), &format!("--quick --force --new --only {ROW}"));
    let ended = end(without_namespaces(command.env("ASSAY_STATE", &state)));
    ended.expect(3).says(&["cannot write a journal of kernel objects in"]);
    let run = read(&run_file(out.path()));
    let why: Vec<&str> = run.visits.iter().filter_map(|visit| Some(visit.reason.as_ref()?.text())).collect();
    assert!(!why.is_empty() && why.len() == run.visits.len(), "{why:?}");
    for why in why {
        assert!(
            why.contains("refuses a private IPC namespace")
                && why.contains("cannot write a journal of kernel objects"),
            "{why}"
        );
    }
}

#[test]
fn several_runs_at_a_time_keep_to_their_own() {
    if !can("several_runs_at_a_time_keep_to_their_own") {
        return;
    }
    let state = State::new();
    let outs = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let (first, first_key) = with_a_set(&state, outs[0].path());
    let mut second = run(ROW, "--profile full --budget 5m", &state, outs[1].path());
    let mut second = start(without_namespaces(&mut second));
    second.until("two journals", |_| state.objects("system_v_semaphores").len() == 2);
    // Clearing up leaves both sets alone, and the watchdog of one run leaves the other run's alone.
    state.restore().expect(0);
    Victims::Both.kill(&first);
    first.end();
    until("the first one's set and journal gone", || {
        !keys().contains(&first_key) && state.journals().len() == 1
    });
    second.until("a set", |_| journaled(&state).is_some_and(|key| keys().contains(&key)));
    second.signal(Signal::INT);
    second.end().expect(130);
    until("no journal", || state.journals().is_empty());
}
