//! Busy neighbours: as invented runs have them, costing nothing, and on a host without SMT.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::{findings, recorded, series};

/// The table of one call on a server with SMT that can be switched, or cannot.
fn table(control: &str) -> Edit {
    table_of("syscall.getpid", control)
}

/// The table of these benchmarks.
fn table_of(only: &str, control: &str) -> Edit {
    let tree = server();
    tree.file("/sys/devices/system/cpu/smt/control", control);
    let words = format!("--quick --only {only} --pretend 7 --root {}", tree.root().display());
    Edit::of_verb(&["smt", "table"], &words)
}

/// Divides the times of calls by `factor`, in the cases that `of` selects.
fn faster(run: &mut Edit, of: impl Fn(&Value) -> bool, factor: f64) {
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let planned = visit["case"].as_u64().expect("a case") as usize;
        if !of(&plan[planned]["case"]) {
            return;
        }
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            // A price is given as it is, and no count of work in a time.
            let is_price = samples["metrics"][0] == "per_gb";
            scale(samples, if is_price { 1.0 / factor } else { factor });
        }
    });
}

/// A study of load on the recorded host of two cores, where two do `times` times the work of one at
/// the same CPU%.
fn two_cores(times: f64) -> Edit {
    let mut run = Edit::of_verb(&["smt"], &format!("--quick --kind loop --pretend 7 --from {}", recorded()));
    // Whatever was invented.
    let invented = run.diagnosed();
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let place = &plan[visit["case"].as_u64().expect("a case") as usize]["case"]["placement"]["name"];
        let place = place.as_str().expect("a name").to_string();
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            let metric = samples["metrics"][0].as_str().expect("a name").to_string();
            let level = samples["point"]["level"].as_u64().expect("a level");
            let (work, cpu) = if place == "one-cpu" { (1.0, 100.0) } else { (times, 200.0) };
            let wanted = level as f64 / 7.0 * if metric == "cpu" { cpu } else { work };
            if !["cpu", "performance"].contains(&metric.as_str()) {
                continue;
            }
            let key = format!("smt.load@{place}?kind=loop&levels=7/level={level}#{metric}");
            let factor = wanted / series(&invented, &key)["median"].as_f64().expect("a median");
            scale(samples, factor);
        }
    });
    run
}

/// Multiplies what a sample counted: a column, or one number for all windows.
fn scale(samples: &mut Value, factor: f64) {
    let times = |work: &mut Value| *work = json!(work.as_f64().expect("a number") * factor);
    match samples["work"].as_array_mut() {
        Some(column) => column.iter_mut().for_each(times),
        None => times(&mut samples["work"]),
    }
}

pub fn threads_that_share_a_core() -> Vec<Case> {
    let tree = server();
    let words = format!("--quick --kind loop --pretend 7 --root {}", tree.root().display());
    let siblings = Edit::of_verb(&["smt"], &words).diagnosed();
    let headline = |results: &Value| findings(results, "smt-capacity")[0]["headline"].to_string();
    assert!(headline(&siblings).contains("The second thread of a core adds"), "{}", headline(&siblings));
    let hidden = two_cores(1.2).diagnosed();
    assert!(headline(&hidden).contains("reports them as two cores"), "{}", headline(&hidden));
    // Two cores whose second adds four fifths: that is no hidden sibling, and CPU% does not show
    // how much is used.
    let off = two_cores(1.8).diagnosed();
    let said = headline(&off);
    assert!(
        said.contains("Two cores do 1.") && said.contains("At 50 % CPU the cores are 56 % full."),
        "{said}"
    );
    vec![
        case("siblings that are told", siblings),
        case("two CPUs that are no two cores", hidden),
        case("two cores of which CPU% tells too little", off),
    ]
}

pub fn cores_that_share_nothing() -> Vec<Case> {
    let straight = two_cores(2.0);
    let results = straight.diagnosed();
    // The check and the sentence beside it say the same.
    let shown = straight.shown();
    let checks = straight.checks();
    assert!(checks.contains("CPU% of two cores within 3 points"), "{checks}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("CPU% says 50, one of two cores busy: 50 % ("), "{words}");
    assert!(words.contains("Capacity at 100 %: 2.00 M/s ("), "{words}");
    vec![case("two cores", results)]
}

fn beside(what: &'static str) -> impl Fn(&Value) -> bool {
    move |case| case["placement"]["beside"] == what
}

pub fn neighbours_that_cost() -> Vec<Case> {
    let siblings = table("on").diagnosed();
    let found = findings(&siblings, "smt-cost")[0];
    let headline = found["headline"].as_str().expect("a text");
    assert!(headline.starts_with("A busy SMT sibling makes system call take up to 1.5"), "{headline}");
    let cause = found["cause"].as_str().expect("a text");
    assert!(cause.contains("single-process calls are unaffected, as expected"), "{cause}");
    let unswitched = table("notsupported").diagnosed();
    let cause = findings(&unswitched, "smt-cost")[0]["cause"].as_str().expect("a text");
    assert!(cause.contains("could not be switched off"), "{cause}");
    let mut merely_on = quiet();
    faster(&mut merely_on, |case| case["knobs"]["smt"] == "off", 1.1);
    vec![
        case("busy siblings", siblings),
        case("busy siblings, and no switch", unswitched),
        case("SMT that costs while it is merely on", merely_on.diagnosed()),
    ]
}

fn quiet() -> Edit {
    let mut run = table("on");
    faster(&mut run, beside("same-work"), 1.5);
    faster(&mut run, beside("spinner"), 1.3);
    run
}

pub fn neighbours_that_cost_nothing() -> Vec<Case> {
    vec![case("neighbours that nobody notices", quiet().diagnosed())]
}

/// What the finding reports about the published expectation when these benchmarks are faster with
/// SMT off.
fn expectation_where(faster_off: &[&str]) -> String {
    let mut run = table_of("syscall,process.spawn", "on");
    faster(
        &mut run,
        |case| case["knobs"]["smt"] == "off" && faster_off.iter().any(|bench| case["bench"] == *bench),
        1.1,
    );
    let results = run.diagnosed();
    findings(&results, "smt-cost")[0]["cause"].as_str().expect("a text").to_string()
}

#[test]
fn one_call_of_many_that_pays_is_chance() {
    let single = |text: &str| text.contains("single-process calls are unaffected, as expected");
    let (none, one) = (expectation_where(&[]), expectation_where(&["syscall.getpid"]));
    assert!(single(&none) && none.contains("(0 of "), "{none}");
    assert!(single(&one) && one.contains("(1 of "), "{one}");
    let some = expectation_where(&[
        "syscall.getpid",
        "syscall.read",
        "syscall.write",
        "syscall.stat",
        "syscall.fstat",
    ]);
    assert!(some.contains("some single-process calls pay, against the expectation"), "{some}");
    assert!(none.contains("those of several processes do not pay, against the expectation"), "{none}");
}

/// What the table ends with, where these benchmarks (the beginnings of their ids) take 3 % less
/// with SMT off.
fn what_pays(control: &str, dearer: &[&str]) -> String {
    let only = ["syscall.getpid,syscall.stat", &dearer.join(",")].join(",");
    let mut run = table_of(&only, control);
    let pays = |case: &Value| {
        case["bench"].as_str().is_some_and(|bench| dearer.iter().any(|own| bench.starts_with(own)))
    };
    faster(&mut run, |case| case["knobs"]["smt"] == "off" && pays(case), 1.03);
    let results = run.diagnosed();
    let facts = findings(&results, "smt-cost")[0]["facts"].as_array().expect("facts").clone();
    let words = facts.iter().find(|fact| fact["label"] == "what pays").expect("a conclusion");
    let words = words["value"].as_str().expect("a text").to_string();
    let shown = run.shown();
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(&words), "{words}\n{shown}");
    words
}

#[test]
fn the_table_ends_with_what_pays() {
    let switched = what_pays("on", &["ipc.pipe"]);
    assert!(switched.starts_with("With SMT on: single-process calls the same (within "), "{switched}");
    for words in ["pipe 3 % (", ") slower", "two threads on one core do 1.3", "off pays for pipe"] {
        assert!(switched.contains(words), "{words:?} is missing: {switched}");
    }
    let unswitched = what_pays("notsupported", &["ipc.pipe"]);
    assert!(
        unswitched.starts_with("SMT was not switched off here: an idle sibling stands for off"),
        "{unswitched}"
    );
    for words in ["single-process calls 1.", "pipe 1.", "as long", "two threads on one core do 1.3"] {
        assert!(unswitched.contains(words), "{words:?} is missing: {unswitched}");
    }
    assert!(!unswitched.contains("With SMT on"), "{unswitched}");
}

#[test]
fn fork_and_exit_pay_by_themselves_and_with_pipes() {
    let alone = what_pays("on", &["process.fork"]);
    for words in ["single-process calls the same (", ", fork+exit 3 % (", "off pays for fork+exit below that"]
    {
        assert!(alone.contains(words), "{words:?} is missing: {alone}");
    }
    assert!(!alone.contains("pipe") && !alone.contains("other calls"), "{alone}");
    let both = what_pays("on", &["ipc.pipe", "process.fork"]);
    for words in ["pipe and fork+exit 3 % (", "off pays for pipe and fork+exit below that"] {
        assert!(both.contains(words), "{words:?} is missing: {both}");
    }
    // Starting a program is neither.
    let others = what_pays("on", &["process.fork", "process.spawn"]);
    for words in ["fork+exit 3 % (", "other calls of several processes 3 % ("] {
        assert!(others.contains(words), "{words:?} is missing: {others}");
    }
    let unswitched = what_pays("notsupported", &["process.fork"]);
    assert!(unswitched.contains("fork+exit 1.") && unswitched.contains(" as long"), "{unswitched}");
}
