//! The verdict of a run and its first sentence: each word from a run in which just that is so.

use serde_json::{Value, json};

use super::edited::Edit;
use crate::runs::findings;

const FIGURES: &str =
    "cpu.clock,memory.data-source,syscall.getpid,sched.context-switch,vm.page-fault,process.exec";

/// A quiet run of key figures, its cases at these places changed.
fn run(change: impl Fn(&mut Value), cases: &[&str]) -> Value {
    let mut run = Edit::invented(FIGURES);
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let bench = &plan[visit["case"].as_u64().expect("a case") as usize]["case"]["bench"];
        if cases.is_empty() || cases.iter().any(|case| bench == case) {
            change(&mut visit["conditions"]);
        }
    });
    run.diagnosed()
}

#[track_caller]
fn assert_said(results: &Value, word: &str, said: &str) {
    let verdict = &results["verdict"];
    assert_eq!(verdict["word"], word, "{verdict:#}");
    assert!(verdict["sentences"].to_string().contains(said), "{verdict:#}");
}

fn busy(share: f64) -> impl Fn(&mut Value) {
    move |conditions| {
        conditions["busy_ms"] = json!(100.0 + 100.0 * share);
        conditions["others_on_seats_ms"] = json!(100.0 * share);
    }
}

#[test]
fn other_work_is_no_fault_of_the_host() {
    let results = run(busy(0.5), &["syscall.getpid"]);
    assert_said(&results, "FAULTY", "The host was busy with other work");
    assert_said(&results, "FAULTY", "--wait-idle");
    // Figures are counted as the screen counts them.
    let figures = results["series"].as_array().expect("series").iter();
    let rejected = figures.filter(|one| one["headline"] == true && one["verdict"] == "rejected").count();
    let headline = findings(&results, "background-load")[0]["headline"].to_string();
    let words = match rejected {
        1 => "system call. Its figure does not count.".to_string(),
        _ => format!(" {rejected} figures do not count."),
    };
    assert!(headline.contains(&words), "{headline}");
}

#[test]
fn of_what_is_not_valid_nobody_says_how_well_it_is_known() {
    let results = run(busy(0.5), &[]);
    assert_said(&results, "NOT VALID", "other work disturbed the measuring");
    assert!(!results["verdict"]["sentences"].to_string().contains("enough to"), "{}", results["verdict"]);
}

#[test]
fn what_the_host_lacks_is_a_fault() {
    let steal = |conditions: &mut Value| conditions["steal_ms"] = json!(60.0);
    assert_said(&run(steal, &["syscall.getpid"]), "FAULTY", "One fault holds this host back: steal.");
}

#[test]
fn a_quiet_run_has_no_fault() {
    let results = run(|_| (), &[]);
    let word = results["verdict"]["word"].as_str().expect("a word");
    assert!(!["FAULTY", "NOT VALID"].contains(&word), "{}", results["verdict"]);
}

#[test]
fn what_looks_slow_by_a_wider_class_is_said_and_decides_nothing() {
    let mut run = Edit::invented(FIGURES);
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        if plan[visit["case"].as_u64().expect("a case") as usize]["case"]["bench"] != "vm.page-fault" {
            return;
        }
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            let longer = |ns: &Value| json!(ns.as_f64().expect("a time") * 20.0);
            samples["ns"] = samples["ns"].as_array().expect("a column").iter().map(longer).collect();
        }
    });
    let results = run.diagnosed();
    let word = results["verdict"]["word"].as_str().expect("a word");
    assert_ne!(word, "FAULTY", "{}", results["verdict"]);
    assert_said(&results, word, "page fault look slow compared with a wider class of hosts");
}
