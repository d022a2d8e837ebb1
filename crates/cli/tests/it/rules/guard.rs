//! Guarded commands with invented runs.

use serde_json::json;

use super::edited::Edit;
use super::{Case, case};
use crate::runs::{findings, recorded};

/// Runs of a command under all three placements: the result of each, and the share of pairs of
/// tasks on one CPU, by placement and number of the run.
fn guarded(what: &str, metric: &str, run: impl Fn(&str, usize) -> (f64, f64)) -> Case {
    guarded_using(what, metric, 0.5, run)
}

/// The same of a program that takes this share of one CPU.
fn guarded_using(what: &str, metric: &str, used: f64, run: impl Fn(&str, usize) -> (f64, f64)) -> Case {
    let words = format!(
        "--quick --pretend 7 --from {} --placements free,same-cpu,spread --metric {metric}=x -- /bin/sh",
        recorded()
    );
    let mut edit = Edit::of_verb(&["guard"], &words);
    let plan = edit.header()["plan"].as_array().expect("a list").clone();
    assert_eq!(plan.len(), 3);
    edit.each(|_, visit| {
        let planned = &plan[visit["case"].as_u64().expect("a number") as usize];
        let place = planned["case"]["placement"]["name"].as_str().expect("a name");
        let (value, share) = run(place, visit["pass"].as_u64().expect("a number") as usize);
        let samples = visit["samples"].as_array_mut().expect("samples");
        let mut occupancy = samples[0].clone();
        samples.retain(|one| one["metrics"] != json!(["occupancy"]));
        for one in samples.iter_mut().filter(|one| one["metrics"] == json!(["result"])) {
            one["work"] = json!(value);
        }
        for one in samples.iter_mut() {
            for (name, work) in [("wall", 1.0), ("cpu_user", used / 2.0), ("cpu_system", used / 2.0)] {
                if one["metrics"] == json!([name]) {
                    one["work"] = json!(work);
                }
            }
        }
        samples.retain(|one| one["metrics"] != json!(["faults"]));
        occupancy["metrics"] = json!(["occupancy"]);
        occupancy["point"] = json!({"class": "same-cpu"});
        occupancy["work"] = json!(share);
        samples.push(occupancy);
    });
    case(what, edit.diagnosed())
}

/// A little noise that follows nothing.
fn noise(run: usize) -> f64 {
    1.0 + 0.002 * ((run * 7 + 3) % 5) as f64
}

/// Free results of a program whose tasks were together for these shares of its time.
fn mixed(place: &str, run: usize) -> (f64, f64) {
    let share = [0.1, 0.9, 0.3, 0.7, 0.5, 0.2, 0.8, 0.4, 0.6, 0.55][run % 10];
    match place {
        "same-cpu" => (100.0 * noise(run), 1.0),
        "spread" => (10.0 * noise(run), 0.0),
        _ => (10.0 + 90.0 * share, share),
    }
}

pub fn results_that_swing() -> Vec<Case> {
    let swinging = guarded("a result that goes with its placement", "rate", mixed);
    let found = findings(&swinging.results, "swinging-command");
    assert_eq!(found.len(), 1, "only the free one swings: {found:?}");
    let cause = found[0]["cause"].as_str().expect("a cause");
    assert!(cause.contains("rises with the share of pairs of tasks on one CPU"), "{cause}");
    let alone = guarded("a result that goes with nothing", "rate", |_, run| {
        let value = [100.0, 130.0, 90.0, 125.0, 95.0, 110.0, 140.0, 85.0, 105.0, 120.0][run % 10];
        (value, 1.0)
    });
    let found = findings(&alone.results, "swinging-command");
    let cause = found[0]["cause"].as_str().expect("a cause");
    assert!(cause.contains("Nothing that was recorded"), "{cause}");
    assert!(cause.contains("number of migrations"), "{cause}");
    assert!(
        !cause.contains("faults") && !cause.contains("share of pairs"),
        "never noted, or never changed: {cause}"
    );
    vec![swinging, alone]
}

pub fn results_that_stand() -> Vec<Case> {
    vec![guarded("steady results", "rate", |_, run| (50.0 * noise(run), 0.5))]
}

pub fn placements_that_decide() -> Vec<Case> {
    let rates = guarded("a rate", "rate", mixed);
    // The reciprocals: a time of fixed work.
    let times = guarded("a time", "time", |place, run| {
        let (rate, share) = mixed(place, run);
        (1000.0 / rate, share)
    });
    for case in [&rates, &times] {
        let found = findings(&case.results, "command-placement");
        assert_eq!(found.len(), 1);
        let facts = found[0]["facts"].as_array().expect("facts");
        let rest = facts.iter().find(|fact| fact["label"] == "unexplained rest").expect("a rest");
        let rest: f64 =
            rest["value"].as_str().and_then(|text| text.split(' ').next()?.parse().ok()).expect("a number");
        assert!(rest.abs() < 1.0, "{}: {rest} % remain of an exact mix", case.what);
        assert!(findings(&case.results, "free-placement").is_empty(), "said once");
        assert_eq!(found[0]["severity"], "warning");
        let cause = found[0]["cause"].as_str().expect("a cause");
        assert!(cause.contains("the scheduler's choice") && cause.contains("explained within"), "{cause}");
        assert!(cause.contains("two busy tasks shared a CPU in"), "{cause}");
        let confirm = found[0]["confirm"].as_str().expect("a command");
        assert!(confirm.contains("=x' --better="), "{confirm}");
    }
    // Two tasks that work on their own: one CPU is half of what they can use.
    let needs = |what: &str, free: f64| {
        guarded_using(what, "rate", 0.99, move |place, run| match place {
            "same-cpu" => (50.0 * noise(run), 1.0),
            "spread" => (100.0 * noise(run), 0.0),
            _ => (free * noise(run), 0.0),
        })
    };
    let (well, badly) = (needs("two CPUs, well placed", 98.0), needs("two CPUs, badly placed", 70.0));
    for (case, severity) in [(&well, "note"), (&badly, "warning")] {
        let found = findings(&case.results, "command-placement");
        let headline = found[0]["headline"].as_str().expect("a headline");
        assert!(headline.contains("needs more than 1 CPU: 50"), "{headline}");
        assert_eq!(found[0]["severity"], severity, "{}", case.what);
        let cause = found[0]["cause"].as_str().expect("a cause");
        assert_eq!(cause.contains("scheduler"), severity == "warning", "{cause}");
        assert_eq!(cause.contains("remain unexplained"), severity == "warning", "{cause}");
    }
    vec![rates, times, well, badly]
}

pub fn placements_that_do_not() -> Vec<Case> {
    vec![guarded("placements that are alike", "rate", |place, run| {
        let share = if place == "spread" { 0.0 } else { 1.0 };
        (50.0 * noise(run) * if place == "spread" { 1.2 } else { 1.0 }, share)
    })]
}
