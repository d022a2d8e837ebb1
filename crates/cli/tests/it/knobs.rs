//! Kernel knobs below a made tree, turned by the real program: put back however it ends.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::runs::{Running, end, quiet_tree, read, run_file, start};
use crate::synthetic::Tree;
use testkit::killing::children_of;

const CONTROL: &str = "sys/devices/system/cpu/smt/control";
const JOURNAL: &str = "var/lib/assay/knobs.json";

/// A host whose SMT can be switched, and whose processes are this one's.
fn machine() -> Tree {
    let tree = quiet_tree();
    tree.file("/sys/devices/system/cpu/smt/control", "on");
    tree.file("/proc/sys/kernel/random/boot_id", "0-boot");
    tree
}

fn control(tree: &Tree) -> String {
    fs::read_to_string(tree.root().join(CONTROL)).expect("it is there").trim().to_string()
}

fn changed(tree: &Tree) -> bool {
    tree.root().join(JOURNAL).exists()
}

fn table(tree: &Tree, out: &Path, only: &str, budget: &str) -> Command {
    let mut command = crate::assay();
    command.args("smt table --quick --force --new".split_whitespace());
    command.args(["--only", only, "--budget", budget]);
    command.arg("--root").arg(tree.root()).arg("--out").arg(out);
    command
}

fn restore(tree: &Tree) -> Command {
    let mut command = crate::assay();
    command.arg("restore").arg("--root").arg(tree.root());
    command
}

/// A table that is being measured, with SMT switched off just now. It never becomes precise, so
/// that it goes on for all its passes.
fn switched_off(tree: &Tree, out: &Path) -> Running {
    let mut running = start(&mut table(tree, out, "selftest.modes", "60s"));
    running.until("SMT switched off", |_| control(tree) == "off");
    running
}

#[test]
fn a_run_switches_measures_and_switches_back() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    end(&mut table(&tree, out.path(), "selftest.steady", "6s")).sane();
    assert_eq!((control(&tree).as_str(), changed(&tree)), ("on", false));
    let run = read(&run_file(out.path()));
    let texts: Vec<&str> =
        run.events.iter().filter(|event| event.kind == "knob").map(|event| event.text.as_ref()).collect();
    let switched = texts.iter().filter(|text| **text == "smt from on to off").count();
    let back = texts.iter().filter(|text| **text == "smt is on again (was off)").count();
    assert!(switched > 0 && switched == back && switched + back == texts.len(), "{texts:?}");
    let off = |visit: &&model::Visit| {
        !run.header.plan[visit.case as usize].case.knobs.is_empty() && visit.conditions.wall_ms > 0.0
    };
    let visits: Vec<_> = run.visits.iter().filter(off).collect();
    assert!(!visits.is_empty() && visits.iter().all(|visit| visit.reason.is_none()), "{visits:?}");
    // Two settings take turns ABBA: one switch a pass at most, and the one at the end; the time may
    // be over between the switch of a further pass and its first visit.
    let passes = run.visits.iter().map(|visit| visit.pass + 1).max().expect("visits") as usize;
    assert!(texts.len() <= passes + 2, "{} changes in {passes} passes", texts.len());
}

#[test]
fn signals_put_back_and_kill_leaves_a_journal() {
    let tree = machine();
    let out = || tempfile::tempdir().expect("a folder");
    let dir = out();
    let running = switched_off(&tree, dir.path());
    running.signal(Signal::TERM);
    running.end().expect(130);
    assert_eq!((control(&tree).as_str(), changed(&tree)), ("on", false));
    // Two in a row: the second one ends it at once.
    let dir = out();
    let running = switched_off(&tree, dir.path());
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(600));
    // It may have ended by the first one already.
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_raw(running.child.id() as i32).expect("a process"),
        Signal::INT,
    );
    running.end().expect(130);
    assert_eq!((control(&tree).as_str(), changed(&tree)), ("on", false));
    // Killed at whatever moment: the journal is there as long as the change is.
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..10 {
        let dir = out();
        let running = switched_off(&tree, dir.path());
        std::thread::sleep(Duration::from_millis(random.u64(0..400)));
        running.signal(Signal::KILL);
        running.end();
        // The journal first: the watchdog may put back and remove it between the two checks, and
        // nothing switches off again.
        assert!(changed(&tree) || control(&tree) == "on", "round {round}");
        match round % 2 {
            0 => {
                end(&mut restore(&tree)).expect(0).sane();
            }
            _ => {
                let dir = out();
                let mut run = crate::assay();
                run.args([
                    "run",
                    "--quick",
                    "--force",
                    "--only",
                    "selftest.steady",
                    "--budget",
                    "1s",
                    "--root",
                ]);
                end(run.arg(tree.root()).arg("--out").arg(dir.path())).sane();
            }
        }
        assert_eq!((control(&tree).as_str(), changed(&tree)), ("on", false), "round {round}");
    }
    let nothing = end(&mut restore(&tree));
    assert_eq!(
        nothing.expect(0).out,
        "nothing is left: no changed setting, kernel object, program or folder\n"
    );
}

#[test]
fn another_boot_and_another_hand_are_left_alone() {
    let tree = machine();
    for (file, text, said) in [
        ("/proc/sys/kernel/random/boot_id", "1-boot", "an earlier boot"),
        ("/sys/devices/system/cpu/smt/control", "forceoff", "Another program changed it"),
    ] {
        tree.file("/sys/devices/system/cpu/smt/control", "on");
        let dir = tempfile::tempdir().expect("a folder");
        let running = switched_off(&tree, dir.path());
        killed_with_its_watchdog(running);
        tree.file("/sys/devices/system/cpu/smt/control", "off");
        tree.file(file, text);
        let before = control(&tree);
        let ended = end(&mut restore(&tree));
        // A kill right after the switch back has left nothing to restore.
        assert!(ended.expect(0).out.contains(said) || ended.out.contains("nothing is left"), "{}", ended.out);
        assert_eq!((control(&tree), changed(&tree)), (before, false));
    }
}

/// Stopped first, so that its watchdog is gone before it: the settings stay changed.
fn killed_with_its_watchdog(running: Running) {
    running.signal(Signal::STOP);
    for watchdog in children_of(running.child.id(), "--watch") {
        rustix::process::kill_process(watchdog, Signal::KILL).expect("it is there");
    }
    running.signal(Signal::KILL);
    running.end();
}

#[test]
fn a_user_is_told_what_root_has_left() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    killed_with_its_watchdog(switched_off(&tree, out.path()));
    let left = changed(&tree);
    let other = tempfile::tempdir().expect("a folder");
    let ended = end(restore(&tree).env("ASSAY_STATE", other.path()));
    match left {
        true => ended.expect(3).says(&["root's journal", "`assay restore` as root"]),
        false => ended.expect(0),
    };
    end(&mut restore(&tree)).expect(0);
    assert_eq!((control(&tree).as_str(), changed(&tree)), ("on", false));
}

#[test]
fn one_session_at_a_time() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let mut first = switched_off(&tree, out.path());
    let ended = end(&mut restore(&tree));
    ended.expect(3).says(&["of assay has changed kernel settings"]);
    let beside = tempfile::tempdir().expect("a folder");
    let second = end(&mut table(&tree, beside.path(), "selftest.steady", "3s"));
    second.sane();
    assert!(second.err.contains("has changed kernel settings"), "{}", second.err);
    let run = read(&run_file(beside.path()));
    let planned = |visit: &model::Visit| &run.header.plan[visit.case as usize].case;
    assert!(run.visits.iter().any(|visit| planned(visit).knobs.is_empty() && visit.reason.is_none()));
    first.until("SMT switched off once more", |_| control(&tree) == "off");
    first.signal(Signal::TERM);
    first.end().expect(130);
    assert_eq!((control(&tree).as_str(), changed(&tree)), ("on", false));
}
