//! Free scores, with invented round trips.

use serde_json::{Value, json};

use super::edited::Edit;
use super::{Case, case};
use crate::runs::findings;

const PING_PONG: &str = "ipc.pipe-pingpong";

/// Round trips with this many times the work on a free placement and on pinned ones, by number.
fn round_trips(free: f64, pinned: impl Fn(usize) -> f64) -> Case {
    case(format!("a free score of {free}"), with_round_trips(free, pinned).diagnosed())
}

fn with_round_trips(free: f64, pinned: impl Fn(usize) -> f64) -> Edit {
    let mut run = Edit::invented(PING_PONG);
    let plan = run.header()["plan"].as_array().expect("a list").clone();
    assert!(plan.iter().any(|planned| planned["case"]["placement"]["name"] == "free"));
    let factor = |case: usize| match plan[case]["case"]["placement"]["name"].as_str() {
        Some("free") => free,
        _ => pinned(case),
    };
    run.each(|number, visit| {
        let case = visit["case"].as_u64().expect("a number") as usize;
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["round_trips"]) {
                let windows = samples["ns"].as_array().expect("a column").len();
                let work = |window: usize| {
                    100.0 * factor(case) * (1.0 + 0.002 * ((number * 7 + window * 3) % 5) as f64)
                };
                samples["work"] = json!((0..windows).map(work).collect::<Vec<f64>>());
            }
        }
    });
    run
}

/// Other work on its CPUs made the pinned figures worthless, so their ratio is not reported.
#[test]
fn rejected_figures_are_not_compared() {
    let mut run = with_round_trips(2.0, |case| if case % 2 == 0 { 1.0 } else { 4.0 });
    assert_eq!(findings(&run.diagnosed(), "free-placement").len(), 1);
    run.conditions(|_, conditions| {
        let wall = conditions["wall_ms"].as_f64().expect("a number");
        conditions["busy_ms"] = json!(2.0 * wall);
        conditions["others_on_seats_ms"] = json!(wall);
    });
    let loaded = run.diagnosed();
    assert_eq!(findings(&loaded, "background-load").len(), 1);
    assert_eq!(findings(&loaded, "free-placement"), Vec::<&Value>::new());
}

/// Round trips of which free tasks spent these shares on one CPU, window by window: each as long as
/// the pinned ones there (1 and 10 us), times `slower`.
fn mixed(shares: &[f64], slower: f64) -> Value {
    let mut run = Edit::invented(PING_PONG);
    let plan = run.header()["plan"].as_array().expect("a list").clone();
    let there = plan.iter().filter(|planned| planned["unmet"].is_null());
    let mut names = there.map(|planned| planned["case"]["placement"]["name"].as_str().expect("a name"));
    let other = names.rfind(|name| !matches!(*name, "free" | "same-cpu")).expect("two CPUs");
    let pinned_ns = |place: &str| if place == "same-cpu" { 1e3 } else { 1e4 };
    run.each(|_, visit| {
        let at = visit["case"].as_u64().expect("a number") as usize;
        let place = plan[at]["case"]["placement"]["name"].as_str().expect("a name").to_string();
        let samples = visit["samples"].as_array_mut().expect("samples");
        let own = samples.iter_mut().find(|one| one["metrics"] == json!(["round_trips"])).expect("trips");
        let ns: Vec<f64> = serde_json::from_value(own["ns"].clone()).expect("a column");
        let share = |window: usize| shares[window % shares.len()];
        let each_ns = |window: usize| match place.as_str() {
            "free" => slower * (share(window) * 1e3 + (1.0 - share(window)) * 1e4),
            place => pinned_ns(place),
        };
        let column = |value: &dyn Fn(usize) -> f64| json!((0..ns.len()).map(value).collect::<Vec<f64>>());
        own["work"] = column(&|window| ns[window] / each_ns(window));
        if place == "free" {
            let mut noted = own.clone();
            (noted["metrics"], noted["work"]) = (json!(["occupancy"]), column(&share));
            noted["point"] = json!({"class": "same-cpu"});
            let mut rest = noted.clone();
            rest["work"] = column(&|window| 1.0 - share(window));
            rest["point"] = json!({"class": other});
            samples.extend([noted, rest]);
        }
    });
    run.diagnosed()
}

/// The first finding's cause, and its facts by label.
fn told(results: &Value) -> (String, Vec<(String, String)>) {
    let finding = findings(results, "free-placement")[0];
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    let facts = finding["facts"].as_array().expect("facts").iter();
    (text(&finding["cause"]), facts.map(|fact| (text(&fact["label"]), text(&fact["value"]))).collect())
}

#[test]
fn a_free_score_is_explained_by_its_mix() {
    // Of five counted windows two on one CPU, each with ten times as many rounds: 20 of 23.
    let results = mixed(&[1.0, 0.0], 1.0);
    let (cause, facts) = told(&results);
    assert!(cause.contains("on one CPU for 87 % of the rounds and on two CPUs for 13 %"), "{cause}");
    assert!(cause.contains("That mix predicts") && cause.contains(", within 0"), "{cause}");
    let windows = facts.iter().filter(|(label, _)| label.contains(" samples only ")).count();
    assert_eq!(windows, 2, "{facts:?}");
    let (cause, _) = told(&mixed(&[1.0], 1.0));
    assert!(cause.contains("The pinned figure on one CPU explains"), "{cause}");
}

#[test]
fn what_a_mix_does_not_explain_is_shared_out() {
    let (cause, _) = told(&mixed(&[1.0, 0.0], 1.5));
    assert!(cause.contains("took 50 % longer") && cause.contains("+50 %"), "{cause}");
    // Never at one distance alone.
    let (cause, _) = told(&mixed(&[0.5], 1.5));
    assert!(cause.contains("cannot be split"), "{cause}");
}

/// Context switching of one copy with these indices by placement.
fn context_switching(free: f64, same_cpu: f64, two_cpus: f64) -> Value {
    let mut run = Edit::invented("unixbench.context1");
    let plan = run.header()["plan"].as_array().expect("a list").clone();
    run.each(|number, visit| {
        let case = &plan[visit["case"].as_u64().expect("a number") as usize]["case"];
        let index = match case["placement"]["name"].as_str() {
            Some("free") => free,
            Some("same-cpu") => same_cpu,
            _ => two_cpus,
        };
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["score"]) {
                // 400 round trips a second are an index of 1.
                let ns: Vec<f64> = serde_json::from_value(samples["ns"].clone()).expect("a column");
                let scatter = |window: usize| 1.0 + 0.002 * ((number * 7 + window * 3) % 5) as f64;
                let work = ns.iter().enumerate().map(|(at, ns)| index * 400.0 * ns / 1e9 * scatter(at));
                samples["work"] = json!(work.collect::<Vec<f64>>());
            }
        }
    });
    run.diagnosed()
}

/// The three guests of the published table: the one that scores 589 keeps its tasks on one CPU, the
/// others on two.
#[test]
fn the_guests_of_the_story_are_placements() {
    let test = "the_guests_of_the_story_are_placements";
    let file = testkit::root().join("../shared/spec/data/context_switch_placement.csv");
    let Ok(text) = std::fs::read_to_string(file) else {
        return crate::host::skipped(test, "the published tables are not beside this clone");
    };
    let index = |machine: &str, placement: &str| {
        let line = format!("{machine},{placement},");
        let found = text.lines().find_map(|own| own.strip_prefix(&line)).expect("a row");
        found.parse::<f64>().expect("a number")
    };
    for (guest, least, most) in [("vm_a", 0, 2), ("vm_b", 88, 92), ("vm_c", 0, 2)] {
        let of = |placement: &str| index(guest, placement);
        let (cause, _) = told(&context_switching(of("free"), of("same_cpu"), of("two_cpus")));
        let share = cause.split("score equals ").nth(1).and_then(|rest| rest.split(' ').next());
        let share: i32 = share.and_then(|share| share.parse().ok()).expect("a share");
        assert!((least..=most).contains(&share), "{guest}: {cause}");
        let nearest = if guest == "vm_b" { "on one CPU" } else { "on two CPUs" };
        assert!(cause.contains("round trips on one CPU"), "{cause}");
        assert!(cause.contains(&format!("nearest to that {nearest}")), "{guest}: {cause}");
    }
}

pub fn a_free_score_between_unequal_placements() -> Vec<Case> {
    let mixed = round_trips(2.0, |case| if case % 2 == 0 { 1.0 } else { 4.0 });
    let found = findings(&mixed.results, "free-placement");
    assert_eq!(found.len(), 1);
    // Both pinned figures and the free one are facts; only the free one is misleading.
    let labels: Vec<&str> =
        found[0]["facts"].as_array().expect("facts").iter().filter_map(|f| f["label"].as_str()).collect();
    assert!(labels.contains(&"free") && labels.len() >= 3, "{labels:?}");
    let named = found[0]["series"].as_array().expect("keys");
    assert!(named.len() == 1 && named[0].as_str().is_some_and(|key| key.contains("@free")), "{named:?}");
    vec![mixed]
}

pub fn placements_that_are_alike() -> Vec<Case> {
    vec![
        round_trips(1.0, |_| 1.0),
        // Not far enough apart to mislead.
        round_trips(1.2, |case| if case % 2 == 0 { 1.0 } else { 1.3 }),
    ]
}
