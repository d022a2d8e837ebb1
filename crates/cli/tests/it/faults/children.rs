//! A visit's process that dies, hangs, lies or eats all memory costs its own visit, never a
//! neighbour's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use model::{Reason, Visit};
use rustix::process::Signal;
use serde_json::Value;

use crate::host::{Group, nothing_left_running, skipped, unique};
use crate::runs::{
    end, findings, is_tidy, page_is_whole, quiet_tree, read, results, run_file, run_into, series, start,
    visits_so_far,
};

/// What became of a fault beside a healthy case, in one real run.
struct Outcome {
    results: Value,
    visits: Vec<Visit>,
}

impl Outcome {
    /// Visits of the faulty case, and of the healthy one.
    fn of(&self, fault: bool) -> Vec<&Visit> {
        let case = u32::from(fault);
        self.visits.iter().filter(|visit| visit.case == case).collect()
    }

    fn reasons(&self) -> Vec<&Reason> {
        self.of(true).iter().filter_map(|visit| visit.reason.as_ref()).collect()
    }

    fn faulty(&self) -> &Value {
        series(&self.results, "selftest.")
    }
}

/// Runs a planted fault together with the core's clock; all that must hold whatever the fault is is
/// checked here.
fn beside_a_healthy_case(fault: &str, dir: &Path) -> Outcome {
    // On a busy host a healthy visit takes long, too: where nothing hangs no limit is near.
    let limit = if fault == "selftest.hang" { 6 } else { 60 };
    let tree = quiet_tree();
    let mark = unique();
    let words =
        format!("--quick --only {fault} --only cpu.clock --visit-limit {limit}s --force --budget 30s");
    let mut command = run_into(dir, &words);
    let ended = end(command.arg("--root").arg(tree.root()).env("ASSAY_TEST", &mark));
    // Others may make this host's numbers scatter; they cannot make them disappear.
    ended.measured().says(&[fault, "saved"]);
    nothing_left_running(&mark);
    is_tidy(dir);
    page_is_whole(dir);
    let run = read(&run_file(dir));
    assert!(run.summary.is_some() && run.damage.is_empty(), "{:?}", run.damage);
    let outcome = Outcome { results: results(dir), visits: run.visits };
    let healthy = series(&outcome.results, "cpu.clock@one-cpu#clock");
    assert!(healthy["n"].as_u64() >= Some(5) && healthy["median"].as_f64() > Some(0.1), "{healthy}");
    assert_eq!(healthy["failures"], serde_json::json!([]));
    assert!(outcome.of(false).iter().all(|visit| visit.reason.is_none()));
    let faulty = outcome.faulty();
    assert!(faulty["median"].is_null() && faulty["verdict"] == "rejected", "{faulty}");
    outcome
}

fn fails(fault: &str, words: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let outcome = beside_a_healthy_case(fault, dir.path());
    // It is tried three times, then left alone.
    assert_eq!(outcome.of(true).len(), 3);
    for reason in outcome.reasons() {
        assert!(matches!(reason, Reason::Failed(why) if why.contains(words)), "{reason:?}");
    }
    let found = findings(&outcome.results, "failed-case");
    assert_eq!(found.len(), 1);
    assert!(found[0]["cause"].as_str().is_some_and(|cause| cause.contains(words)), "{}", found[0]);
    let reason = outcome.faulty()["reason"].as_str().expect("a reason").to_string();
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn work_of_one_cpu_never_was_on_another() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only syscall.getpid,vm.mprotect --force --budget 8s";
    end(&mut run_into(dir.path(), words)).measured();
    let visits = read(&run_file(dir.path())).visits;
    let moved: Vec<u64> = visits.iter().filter_map(|visit| visit.process.migrations).collect();
    if moved.is_empty() {
        return skipped("work_of_one_cpu_never_was_on_another", "this kernel tells no migrations");
    }
    assert!(moved.iter().all(|times| *times == 0), "{moved:?}");
}

#[test]
fn a_child_that_crashes() {
    fails("selftest.crash", "died of signal 6");
}

#[test]
fn a_child_with_a_fault_of_ours() {
    fails("selftest.fault", "this is a bug in Assay: planted (crates/bench/src/selftest.rs");
}

#[test]
fn a_child_without_memory() {
    fails("selftest.no-memory", "out of memory: cannot allocate 4611686018427387904 bytes");
}

#[test]
fn a_child_that_is_killed() {
    fails("selftest.killed", "it was killed");
}

#[test]
fn a_child_that_talks_garbage() {
    fails("selftest.garbage", "not a sample line");
}

#[test]
fn a_child_that_talks_without_end() {
    fails("selftest.flood", "sent too much output");
}

#[test]
fn a_child_that_hangs_is_ended_and_not_tried_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let outcome = beside_a_healthy_case("selftest.hang", dir.path());
    let hung = outcome.of(true);
    assert_eq!(hung.len(), 1);
    assert!(matches!(&hung[0].reason, Some(Reason::TimedOut(why)) if why.contains("6 s")), "{:?}", hung[0]);
    assert!(hung[0].conditions.wall_ms >= 6000.0, "{:?}", hung[0].conditions);
    assert!(outcome.faulty()["reason"].as_str().is_some_and(|reason| reason.contains("killed after 6 s")));
    assert_eq!(findings(&outcome.results, "failed-case").len(), 1);
}

#[test]
fn a_child_is_charged_little_of_the_time_in_which_tasks_wait_for_a_cpu() {
    let dir = tempfile::tempdir().expect("a folder");
    let tree = quiet_tree();
    let total = |us: u64| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us:020}\n");
    tree.bytes("/proc/pressure/cpu", total(0).as_bytes());
    let pressure = File::options().write(true).open(tree.root().join("proc/pressure/cpu")).expect("a file");
    let words = "--quick --only selftest.hang --visit-limit 1s --force";
    let mut running = start(run_into(dir.path(), words).arg("--root").arg(tree.root()));
    // The total grows faster than time, so tasks seem to wait always, unless this test has to wait.
    let (mut us, mut last, mut longest_wait) = (0, Instant::now(), Duration::ZERO);
    running.until("the end of the visit", |_| {
        us += 3_600_000_000;
        pressure.write_all_at(total(us).as_bytes(), 0).expect("written in place");
        longest_wait = longest_wait.max(last.elapsed());
        last = Instant::now();
        visits_so_far(dir.path()) > 0
    });
    running.end().sane();
    let visits = read(&run_file(dir.path())).visits;
    let Some(Reason::TimedOut(why)) = &visits[0].reason else { panic!("{:?}", visits[0].reason) };
    let begin = "killed after 1 s and ";
    let waited =
        why.strip_prefix(begin).and_then(|rest| rest.split_once(" s in which tasks waited for a CPU"));
    let waited = waited.and_then(|(seconds, _)| seconds.parse::<u64>().ok());
    assert!(waited >= Some(7) || longest_wait > Duration::from_millis(500), "{why} ({longest_wait:?})");
    assert!(visits[0].conditions.wall_ms >= 1000.0 * (1 + waited.unwrap_or(0)) as f64, "{:?}", visits[0]);
}

#[test]
fn a_child_that_computes_wrongly() {
    let dir = tempfile::tempdir().expect("a folder");
    let outcome = beside_a_healthy_case("selftest.wrong-answer", dir.path());
    assert!(outcome.reasons().iter().all(|reason| matches!(reason, Reason::WrongAnswer(_))));
    // The samples are kept for inspection, and not counted.
    assert!(outcome.of(true).iter().all(|visit| !visit.samples.is_empty()));
    let found = findings(&outcome.results, "wrong-answer");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["severity"], "problem");
    assert!(found[0]["facts"][0]["value"].as_str().is_some_and(|fact| fact.contains("two and two")));
    assert!(findings(&outcome.results, "failed-case").is_empty());
}

#[test]
fn a_child_that_takes_all_memory() {
    let test = "a_child_that_takes_all_memory";
    let group = match Group::new("memory", &[("memory.limit_in_bytes", &(96 << 20))]) {
        Ok(group) => group,
        Err(why) => return skipped(test, why),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only selftest.memory --only cpu.clock --visit-limit 20s --force --budget 60s";
    let ended = end(&mut group.inside(&run_into(dir.path(), words)));
    ended.says(&["selftest.memory", "saved"]);
    let outcome = Outcome { results: results(dir.path()), visits: read(&run_file(dir.path())).visits };
    assert!(series(&outcome.results, "cpu.clock")["n"].as_u64() >= Some(5));
    // The child went, not the run: it offers itself to the kernel first.
    assert!(!outcome.reasons().is_empty());
    for reason in outcome.reasons() {
        assert!(matches!(reason, Reason::Failed(why) if why.contains("out of memory")), "{reason:?}");
    }
    let killed = group.get("memory.oom_control");
    let kills = killed.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse::<usize>().ok());
    assert!(kills.is_none_or(|kills| kills == outcome.reasons().len()), "{killed}");
}

#[test]
fn a_run_that_was_stopped_goes_on_without_blaming_its_child() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only selftest.steady --visit-limit 4s --force";
    let mut running = start(&mut run_into(dir.path(), words));
    running.until("a second visit", |_| visits_so_far(dir.path()) > 1);
    // As Ctrl-Z does, for longer than a visit may take.
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(5500));
    running.signal(Signal::CONT);
    running.end().sane();
    let run = read(&run_file(dir.path()));
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits);
    assert!(run.summary.is_some());
}

#[test]
fn another_binary_in_its_place_does_not_measure_the_rest() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("assay");
    let copy = || std::fs::copy(testkit::program(), &program).expect("a copy");
    copy();
    let out = dir.path().join("out");
    let mut run = std::process::Command::new(&program);
    let words = "run --quick --only selftest.steady --force --out";
    run.args(words.split(' ')).arg(&out).env("LANG", "C.UTF-8");
    let mut running = start(&mut run);
    running.until("a first visit", |_| visits_so_far(&out) > 0);
    // What `cargo build` and package managers do: a new file of the same name. This one measures
    // nothing.
    std::fs::remove_file(&program).expect("removed");
    std::fs::copy("/bin/false", &program).expect("a program");
    running.end().sane();
    let run = read(&run_file(&out));
    assert!(run.visits.len() >= 5, "{}", run.visits.len());
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits.last());
}
