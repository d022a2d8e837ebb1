//! Sweeps over the knobs of made trees: what is turned when, what stands in the run file, and every
//! way to end early.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use model::Run;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{GRANULARITY, WAKE_UP, interruptible, journal_is_there, kernel, sweep_below, text};
use crate::host::wrapped;
use crate::runs::{
    Running, end, findings, is_tidy, page_is_whole, read, results, run_file, start, visits_so_far,
};
use crate::synthetic::Tree;
use testkit::killing::children_of;

const BEFORE: &str = "3000000";

fn machine() -> Tree {
    let tree = kernel("6.1.0-test");
    tree.file(GRANULARITY, BEFORE).file(WAKE_UP, "4000000");
    tree
}

/// Ten cells, of which one is what was there.
const TEN: &str = "selftest.steady --quick --effect 1000 --knob min_granularity_ns=1ms..10ms:10";
/// Five cells of which any effect would be seen: the fewest passes are made, which takes seconds.
const LONG: &str = "selftest.modes --quick --effect 1000 --knob min_granularity_ns=1ms..5ms:5";

/// The value of the axis that each visit was made at, pass by pass, and that the events say was
/// turned last.
fn visited(out: &Path) -> BTreeMap<u64, Vec<(String, String)>> {
    let lines = fs::read_to_string(run_file(out)).expect("a run file");
    let (mut turned, mut passes) = (BEFORE.to_string(), BTreeMap::<u64, Vec<_>>::new());
    let mut plan: Vec<String> = Vec::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(header) = line.get("header") {
            let cases = header["plan"].as_array().expect("a plan").iter();
            let value =
                |planned: &Value| planned["case"]["knobs"]["min_granularity_ns"].as_str().map(str::to_string);
            plan = cases.filter_map(value).collect();
        }
        if let Some(event) = line.get("event").filter(|event| event["kind"] == "knob") {
            let text = event["text"].as_str().expect("words");
            if let Some((_, to)) = text.split_once(" to ").filter(|_| text.contains("from")) {
                turned = to.to_string();
            }
        }
        if let Some(visit) = line.get("visit") {
            let wanted = plan[visit["case"].as_u64().expect("a case") as usize].clone();
            let pass = visit["pass"].as_u64().expect("a pass");
            passes.entry(pass).or_default().push((wanted, turned.clone()));
        }
    }
    passes
}

#[test]
fn every_cell_is_turned_to_in_an_order_of_its_own_around_the_control() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let mut running = start(&mut sweep_below(&tree, out.path(), TEN));
    // Seen from outside: every value is there once.
    let mut seen = BTreeSet::new();
    running.until("all ten values in the tree's file", |_| {
        seen.extend(
            fs::read_to_string(tree.root().join(&GRANULARITY[1..])).map(|text| text.trim().to_string()),
        );
        (1..=10).all(|ms| seen.contains(&format!("{ms}000000")))
    });
    running.end().sane();
    assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
    assert_eq!(text(&tree, WAKE_UP), "4000000", "no knob but the one");
    let run = read(&run_file(out.path()));
    let sweep = run.header.sweep.as_ref().expect("a layout");
    assert_eq!((sweep.axes.len(), sweep.shape(), sweep.facets.len()), (1, [10, 1], 0));
    assert_eq!(
        (sweep.axes[0].name.as_str(), sweep.axes[0].before.as_deref()),
        ("min_granularity_ns", Some(BEFORE))
    );
    assert_eq!(sweep.axes[0].values[..2], ["1000000", "2000000"]);
    assert_eq!((sweep.target.metric.as_str(), sweep.every), ("speed", 8));
    let control: Vec<u32> = sweep.control.clone();
    assert_eq!(control.len(), 1);
    assert_eq!(run.header.plan[control[0] as usize].case.knobs["min_granularity_ns"], BEFORE);
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits);
    // From the fifth pass on cells may have enough.
    let mut passes = visited(out.path());
    passes.retain(|pass, _| *pass < 4);
    assert_eq!(passes.len(), 4, "{passes:?}");
    for (pass, visits) in &passes {
        assert!(visits.iter().all(|(wanted, turned)| wanted == turned), "pass {pass}: {visits:?}");
        // Before the first eight other cells and before the ninth, and nowhere else.
        let places: Vec<usize> = (0..visits.len()).filter(|place| visits[*place].0 == BEFORE).collect();
        assert_eq!((places.as_slice(), visits.len()), (&[0, 9][..], 11), "pass {pass}: {visits:?}");
        let cells: BTreeSet<&String> = visits.iter().map(|(wanted, _)| wanted).collect();
        assert_eq!(cells.len(), 10, "pass {pass}");
    }
    let orders: BTreeSet<&Vec<(String, String)>> = passes.values().collect();
    assert_eq!(orders.len(), passes.len(), "each pass has an order of its own: {orders:?}");
    let page = fs::read_to_string(out.path().join("report.html")).expect("a page");
    assert!(page.contains("min_granularity_ns"));
    page_is_whole(out.path());
    is_tidy(out.path());
}

/// A sweep that is being measured, in the middle of its first passes, with a knob turned just now.
fn in_the_middle(tree: &Tree, out: &Path) -> Running {
    let mut running = start(&mut interruptible(sweep_below(tree, out, LONG)));
    running.until("three visits", |_| visits_so_far(out) >= 3);
    running.until("a knob turned", |_| text(tree, GRANULARITY) != BEFORE);
    running
}

#[test]
fn ctrl_c_restores_keeps_and_the_same_command_goes_on() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let mut kept = Vec::new();
    for signal in [Signal::INT, Signal::TERM] {
        let running = in_the_middle(&tree, out.path());
        running.signal(signal);
        running.end().expect(130).says(&["interrupted; the same command resumes"]);
        assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
        page_is_whole(out.path());
        let run = read(&run_file(out.path()));
        assert!(run.summary.is_none() && run.visits.len() >= 3);
        assert_eq!(run.visits[..kept.len()], kept);
        kept = run.visits;
    }
    end(&mut sweep_below(&tree, out.path(), LONG)).sane().says(&["resuming "]);
    let run = read(&run_file(out.path()));
    assert_eq!(run.visits[..kept.len()], kept);
    is_whole(&run);
    assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
}

/// Complete, each cell but the control once a pass: four passes to the first look, a fifth to the
/// second, which must agree with it.
fn is_whole(run: &Run) {
    assert!(run.summary.is_some() && run.damage.is_empty(), "{:?}", run.damage);
    let control = &run.header.sweep.as_ref().expect("a layout").control;
    let mut visited = BTreeSet::new();
    for visit in run.visits.iter().filter(|visit| !control.contains(&visit.case)) {
        assert!(visited.insert((visit.case, visit.pass)), "{} twice in pass {}", visit.case, visit.pass);
        assert_eq!(visit.reason, None);
    }
    assert_eq!(visited.len(), (run.header.plan.len() - control.len()) * 5);
}

#[test]
fn two_sweeps_at_once_and_a_session_that_has_knobs_turned() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let running = in_the_middle(&tree, out.path());
    let beside = tempfile::tempdir().expect("a folder");
    let second =
        end(&mut sweep_below(&tree, beside.path(), "selftest.steady --knob policy=other,batch --quick"));
    second.expect(3).says(&["another sweep runs on this host: wait for its end"]);
    // Planning and inventing measure nothing.
    end(&mut sweep_below(&tree, beside.path(), &format!("{TEN} --dry-run"))).expect(0);
    running.signal(Signal::INT);
    running.end().expect(130);
    assert_eq!(fs::read_dir(beside.path()).expect("a folder").count(), 0);

    // A table has SMT switched off: a sweep does not begin over its journal.
    tree.file("/sys/devices/system/cpu/smt/control", "on");
    let mut table = crate::assay();
    table.args("smt table --quick --force --new --only selftest.modes --budget 60s".split_whitespace());
    let mut table = start(table.arg("--root").arg(tree.root()).arg("--out").arg(beside.path()));
    table.until("SMT switched off", |_| text(&tree, "/sys/devices/system/cpu/smt/control") == "off");
    let ended = end(&mut sweep_below(&tree, out.path(), LONG));
    ended.expect(3).says(&[
        "cannot start the sweep",
        "of assay has changed kernel settings",
        "until it ends",
    ]);
    table.signal(Signal::TERM);
    table.end().expect(130);
    assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
}

#[test]
fn what_a_killed_session_left_is_not_taken_for_what_was_there() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let running = in_the_middle(&tree, out.path());
    // Stopped first, so that no further watchdog appears between the two kills.
    running.signal(Signal::STOP);
    for watchdog in children_of(running.child.id(), "--watch") {
        kill_process(watchdog, Signal::KILL).expect("it is there");
    }
    running.signal(Signal::KILL);
    running.end();
    let left = text(&tree, GRANULARITY);
    assert!(left == BEFORE || journal_is_there(&tree), "{left}");
    let ended = end(&mut sweep_below(&tree, out.path(), LONG));
    // The same run goes on: what was there before is the same as then.
    ended.sane().says(&["resuming "]);
    if left != BEFORE {
        ended.says(&[&format!("min_granularity_ns is {BEFORE} again (was {left})")]);
    }
    let run = read(&run_file(out.path()));
    assert_eq!(run.header.sweep.as_ref().and_then(|sweep| sweep.axes[0].before.as_deref()), Some(BEFORE));
    is_whole(&run);
    assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
}

#[test]
fn a_stopped_watchdog_holds_nobody_up() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let running = in_the_middle(&tree, out.path());
    let watchdogs: Vec<Pid> = children_of(running.child.id(), "--watch");
    assert_eq!(watchdogs.len(), 1, "one session has one");
    kill_process(watchdogs[0], Signal::STOP).expect("it is there");
    running.signal(Signal::INT);
    running.end().expect(130);
    assert!(rustix::process::test_kill_process(watchdogs[0]).is_err(), "it stays stopped for ever");
    assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
}

#[test]
fn a_knob_that_vanishes_fails_its_cells_and_nothing_else() {
    // On a busy host the sweep may be over before the file is gone: then once more.
    let vanished = || {
        let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
        let running = in_the_middle(&tree, out.path());
        fs::remove_file(tree.root().join(&GRANULARITY[1..])).expect("it was there");
        running.end().sane();
        let run = read(&run_file(out.path()));
        let failed = run.visits.iter().filter_map(|visit| visit.reason.as_ref());
        let failed: Vec<String> = failed.map(|reason| format!("{reason:?}")).collect();
        (!failed.is_empty()).then_some((tree, out, run, failed))
    };
    let found = (0..5).find_map(|_| vanished());
    let (tree, out, run, failed) = found.expect("in one of five sweeps cells were left");
    assert!(failed.iter().all(|why| why.contains("min_granularity_ns")), "{failed:?}");
    assert!(run.summary.is_some() && run.visits.iter().filter(|visit| visit.reason.is_none()).count() >= 3);
    page_is_whole(out.path());
    let results = results(out.path());
    assert_eq!(results["complete"], true);
    for finding in findings(&results, "failed-case") {
        let headline = finding["headline"].as_str().expect("words");
        // `Hackbench failed in 3 of 5 passes.`, or `in all 5 passes`.
        let numbers: Vec<usize> = headline.split(' ').filter_map(|word| word.parse().ok()).collect();
        let (failed, of) = match numbers.as_slice() {
            [failed, of, ..] if headline.contains(" of ") => (*failed, *of),
            [all, ..] => (*all, *all),
            [] => (0, 0),
        };
        assert!(failed > 0 && failed <= of, "{headline}");
    }
    let mut restore = crate::assay();
    end(restore.arg("restore").arg("--root").arg(tree.root())).expect(0).sane();
    assert!(!journal_is_there(&tree));
}

#[test]
fn a_sweep_in_which_all_fails_has_no_map_and_says_how_to_try_a_cell_again() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let words = "selftest.crash --quick --knob min_granularity_ns=1ms,9ms";
    end(&mut sweep_below(&tree, out.path(), words)).sane();
    let results = results(out.path());
    let failed = findings(&results, "failed-case");
    let confirm: BTreeSet<&str> = failed.iter().filter_map(|finding| finding["confirm"].as_str()).collect();
    let of = |value: &str| format!("assay sweep selftest.crash --knob 'min_granularity_ns={value}'");
    assert_eq!(
        confirm,
        BTreeSet::from([of("1000000"), of(BEFORE), of("9000000")].each_ref().map(String::as_str))
    );
    let page = fs::read_to_string(out.path().join("report.html")).expect("a page");
    assert!(
        page.contains("There is no map: it needs the setting before and one cell, each with two good passes")
    );
    page_is_whole(out.path());
    // What is advised is a sweep of that cell.
    let advised = of("1000000").replace('\'', "");
    let advised = advised.strip_prefix("assay sweep ").expect("a command");
    let again = tempfile::tempdir().expect("a folder");
    end(&mut sweep_below(&tree, again.path(), &format!("{advised} --quick"))).sane();
    let plan = read(&run_file(again.path())).header.plan;
    assert!(plan.iter().any(|planned| planned.case.knobs["min_granularity_ns"] == "1000000"), "{plan:?}");
}

#[test]
fn what_somebody_else_sets_meanwhile_stays_and_is_said() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let running = in_the_middle(&tree, out.path());
    tree.file(GRANULARITY, "7777777");
    let ended = running.end();
    ended.sane();
    let run = read(&run_file(out.path()));
    let told = run
        .events
        .iter()
        .any(|event| event.text.contains("another program set min_granularity_ns to 7777777"));
    // A change between Assay's last look and its own write cannot be seen.
    assert!(told || text(&tree, GRANULARITY) == BEFORE, "{:?}", run.events);
    if told {
        assert_eq!(text(&tree, GRANULARITY), "7777777");
    }
    assert!(!journal_is_there(&tree) && run.summary.is_some());
}

#[test]
fn a_closed_standard_input_and_a_full_screen_of_nothing() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let words = "selftest.steady --quick --knob min_granularity_ns=1ms,3ms --budget 4s";
    let closed =
        wrapped(&["sh", "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-"], &sweep_below(&tree, out.path(), words));
    let ended = end(&mut { closed });
    // Its words are lost; what it measured is not.
    assert!(ended.code < 4, "{ended:?}");
    assert!(read(&run_file(out.path())).summary.is_some());
    assert_eq!((text(&tree, GRANULARITY).as_str(), journal_is_there(&tree)), (BEFORE, false));
}

#[test]
fn two_features_share_a_file_and_both_come_back() {
    const FEATURES: &str = "/sys/kernel/debug/sched/features";
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let before = "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY START_DEBIT";
    tree.file(FEATURES, before);
    let words = "selftest.steady --quick --knob feature.NEXT_BUDDY=on,off --knob feature.START_DEBIT=on,off --budget 8s";
    let mut running = start(&mut sweep_below(&tree, out.path(), words));
    running.until("the setting farthest from what was there", |_| {
        text(&tree, FEATURES) == "GENTLE_FAIR_SLEEPERS NEXT_BUDDY NO_START_DEBIT"
    });
    running.end().sane();
    assert_eq!((text(&tree, FEATURES).as_str(), journal_is_there(&tree)), (before, false));
    let run = read(&run_file(out.path()));
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits);
}
