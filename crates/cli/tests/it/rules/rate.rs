//! Rate suites: runs that differ and how, as invented suites have them after a change.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::findings;

/// Components of which two hang on memory and three do not.
const COMPONENTS: &str = "bwaves,lbm,chess,digest,molecules";
const MEMORY: [&str; 2] = ["rate.bwaves", "rate.lbm"];
/// The published runs of bwaves on a wrongly filled host, and after the move, percent of the
/// mean of 16.
const WRONG: [f64; 5] = [92.0, 92.0, 111.0, 107.0, 98.0];
const MOVED: [f64; 5] = [99.88, 99.88, 100.46, 99.88, 99.88];

/// A suite on the clean server, two pieces of work in each of five processes: every component at
/// 100, what is on memory in this order; pieces of a process lie `scatter` apart.
fn suite(of_memory: &[f64], of_caches: &[f64], scatter: f64) -> Edit {
    let tree = server();
    let root = tree.root().display();
    let mut run =
        Edit::of_verb(&["rate"], &format!("--quick --component {COMPONENTS} --pretend 7 --root {root}"));
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let bench = plan[visit["case"].as_u64().expect("a case") as usize]["case"]["bench"].clone();
        let pass = visit["pass"].as_u64().expect("a pass") as usize;
        let runs = if MEMORY.iter().any(|own| bench == *own) { of_memory } else { of_caches };
        let level = runs[pass % runs.len()];
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["rate"]) || samples["metrics"] == json!(["ratio"]) {
                samples["work"] = json!([1e6 * level, 1e6 * level * (1.0 + scatter)]);
                samples["ns"] = json!([1e9, 1e9]);
                samples["beside"] = json!({});
                samples["warm_up"] = json!(0);
            }
        }
    });
    // Only whole rounds of the sequence.
    let passes = of_memory.len();
    run.keep_visits(|visit| visit["pass"].as_u64().is_some_and(|pass| (pass as usize) < passes));
    run
}

fn text(found: &Value) -> String {
    found.to_string()
}

/// What the report of the run that was diagnosed last concludes, on one line.
/// The verdict's sentences, and what stands behind them.
fn conclusion(run: &Edit) -> String {
    let shown = run.shown();
    let (first, after) = shown.split_once("\n\n  component").expect("a table below the verdict");
    let (_, after) = after.split_once("  Conclusion\n").unwrap_or_default();
    let (rest, _) = after.split_once("\n\n").unwrap_or_default();
    [first, rest].concat().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn runs_that_lie_apart() -> Vec<Case> {
    let mut edit = suite(&WRONG, &MOVED, 0.001);
    let swinging = edit.diagnosed();
    let found = findings(&swinging, "rate-runs-apart")[0];
    assert!(text(found).contains("low low high high mid"), "{found:#}");
    assert!(text(found).contains("CV 7.8 % (5.2–25)"), "{found:#}");
    let said = conclusion(&edit);
    for part in [
        "lie 21 % apart, CV 7.8 % (5.2–25): low low high high mid; those of",
        "Only components whose data fill memory move (",
        " hold still), in the order in which memory of two speeds is handed out after a boot (noise gives it to 1.0 % of series).",
        "Test whether runs follow their memory: `assay rate --with-map`, as root.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Where what stays small swings as well it is not memory, whatever the order.
    edit = suite(&WRONG, &WRONG, 0.001);
    let all = edit.diagnosed();
    let said = conclusion(&edit);
    assert!(said.contains("Not memory alone: "), "{said}");
    assert!(!said.contains("two speeds") && !text(&all).contains("share of slow memory"), "{said}");
    assert_eq!(found["severity"], "warning");
    assert!(found["confirm"].as_str().is_some_and(|words| words.contains("--footprint")), "{found:#}");
    let noisy = suite(&WRONG, &MOVED, 0.1).diagnosed();
    assert_eq!(findings(&noisy, "rate-runs-apart")[0]["severity"], "note");
    // Each session by itself is steady, and they lie apart.
    let mut sessions = suite(&MOVED, &MOVED, 0.001);
    let key = "rate.bwaves@one-per-core+huge-pages?mib=256#rate";
    let past = |day: u32, boot: &str, median: f64| {
        json!({"started": format!("2026-01-0{day}T00:00:00Z"), "boot_id": boot, "uptime_s": 60.0,
               "medians": {key: median}})
        .to_string()
    };
    // 1e6 × 100 units in a second are 100 M/s.
    let lines = [past(1, "a", 99.0), past(2, "b", 80.0), past(3, "b", 101.0)].join("\n");
    sessions.header()["snapshot"]["probe:rate-history"] = lines.into();
    let sessions = sessions.diagnosed();
    let found = findings(&sessions, "rate-runs-apart")[0];
    assert!(text(found).contains("runs of bwaves in this folder"), "{found:#}");
    vec![
        case("the published swing", swinging),
        case("runs no further apart than their pieces", noisy),
        case("sessions of other days", sessions),
    ]
}

pub fn runs_that_repeat() -> Vec<Case> {
    vec![case("the published runs after the move", suite(&MOVED, &MOVED, 0.001).diagnosed())]
}

pub fn speeds_that_runs_keep() -> Vec<Case> {
    let kept = suite(&WRONG, &MOVED, 0.001).diagnosed();
    let found = text(findings(&kept, "rate-settled-at-start")[0]);
    assert!(found.contains("between passes") && found.contains("1.00, 1.00, 0.00, 0.18, 0.64"), "{found}");
    vec![case("pieces that agree in runs that do not", kept)]
}

pub fn speeds_that_no_run_keeps() -> Vec<Case> {
    vec![
        case("pieces that lie as far apart as runs", suite(&WRONG, &MOVED, 0.2).diagnosed()),
        case("runs that repeat", suite(&MOVED, &MOVED, 0.001).diagnosed()),
    ]
}

pub fn memory_that_moves_alone() -> Vec<Case> {
    let memory = suite(&WRONG, &MOVED, 0.001).diagnosed();
    let found = text(findings(&memory, "rate-memory-moves")[0]);
    assert!(found.contains("Memory is the cause") && found.contains("assay memmap"), "{found}");
    vec![case("memory alone", memory)]
}

pub fn everything_that_moves() -> Vec<Case> {
    vec![
        case("everything together", suite(&WRONG, &WRONG, 0.001).diagnosed()),
        case("nothing", suite(&MOVED, &MOVED, 0.001).diagnosed()),
    ]
}

/// A suite of little memory a copy, on the clean server with large caches.
fn footprint(mib: u32) -> Value {
    let tree = server();
    for cpu in 0..16 {
        tree.file(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/size"), "131072K");
    }
    let root = tree.root().display();
    let words = format!("--quick --component bwaves --footprint {mib}M --pretend 7 --root {root}");
    Edit::of_verb(&["rate"], &words).diagnosed()
}

pub fn footprints_inside_caches() -> Vec<Case> {
    vec![case("as much memory as cache", footprint(64))]
}

pub fn footprints_beyond_caches() -> Vec<Case> {
    vec![case("a hundred times the caches", footprint(16384))]
}

/// Shares of slow memory, half again as slow, that make the published runs.
const SHARES: [f64; 5] = [0.46, 0.46, 0.04, 0.12, 0.31];

/// A suite with a map behind it: the first quarter of each node's chunks is slow (unless the map is
/// even), and bwaves ran at these rates with these shares of its pages there.
fn mapped(rates: &[f64], shares: &[f64], even: bool) -> Edit {
    let tree = server();
    let root = tree.root().display();
    let words = format!("--quick --component bwaves --with-map --map-max 8G --pretend 7 --root {root}");
    let mut run = Edit::of_verb(&["rate"], &words);
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let case = &plan[visit["case"].as_u64().expect("a case") as usize]["case"];
        if case["bench"] == "memory.map" {
            return map_of(case, visit, even);
        }
        let pass = visit["pass"].as_u64().expect("a pass") as usize;
        let (rate, share) = (rates[pass % rates.len()], shares[pass % shares.len()]);
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["rate"]) {
                samples["work"] = json!([1e6 * rate, 1.001e6 * rate]);
                samples["ns"] = json!([1e9, 1e9]);
                samples["beside"] = json!({});
                samples["warm_up"] = json!(0);
            }
        }
        let slow = (share * 1000.0) as u32;
        visit["process"]["places"] = json!([{"blocks": [2, 20], "pages": [slow, 1000 - slow]}]);
    });
    run.keep_visits(|visit| {
        let map = plan[visit["case"].as_u64().expect("a case") as usize]["case"]["bench"] == "memory.map";
        map || visit["pass"].as_u64().is_some_and(|pass| (pass as usize) < rates.len())
    });
    run
}

/// Chunk n of node 0 lies in block n.
fn map_of(case: &Value, visit: &mut Value, even: bool) {
    let number = |name: &str| case["inputs"][name].as_str().and_then(|text| text.parse::<u64>().ok());
    let (chunks, node) = (number("chunks").expect("chunks"), case["params"]["node"].as_u64().unwrap_or(0));
    for samples in visit["samples"].as_array_mut().into_iter().flatten() {
        let Some(chunk) = samples["point"]["chunk"].as_u64() else { continue };
        let rate = if chunk < chunks / 4 && !even { 20.0 } else { 30.0 };
        // Invented samples have as many windows as the profile, and a map has its rounds.
        let windows = 10;
        samples["beside"] = json!({});
        samples["warm_up"] = json!(1);
        let work = |window: u64| rate * (1.0 + 0.001 * ((chunk * 7 + window * 5) % 11) as f64);
        samples["work"] = (0..windows).map(work).collect();
        samples["ns"] = (0..windows).map(|_| 1.0).collect();
    }
    let places = |chunk: u64| json!({"blocks": [1000 * node + chunk], "pages": [16]});
    visit["process"]["places"] = (0..chunks).map(places).collect();
}

pub fn runs_that_follow_slow_memory() -> Vec<Case> {
    let follows = mapped(&WRONG, &SHARES, false).diagnosed();
    let found = findings(&follows, "rate-slow-memory")[0];
    let headline = found["headline"].as_str().expect("text");
    assert!(headline.starts_with("Runs of bwaves follow their share of slow memory within "), "{headline}");
    assert!(text(found).contains("(p 0.0"), "{found:#}");
    let row = &follows["rate_memory"][0];
    assert_eq!((&row["component"], &row["follows"]), (&json!("bwaves"), &json!("memory")));
    let ratio =
        |at: usize| row["measured"][at].as_f64().expect("one") / row["predicted"][at].as_f64().expect("one");
    assert!((0..5).all(|at| (ratio(at) - 1.0).abs() < 0.03), "{row:#}");
    // The same swing where all runs have the same share: something else moves them.
    let other = mapped(&WRONG, &[0.25], false).diagnosed();
    let found = findings(&other, "rate-slow-memory")[0];
    let headline = found["headline"].as_str().expect("text");
    assert!(
        headline.starts_with("Slow memory does not explain the ±9.5 % between runs of bwaves"),
        "{headline}"
    );
    vec![case("the published swing, with its shares", follows), case("a swing without shares", other)]
}

pub fn runs_that_are_alike_on_slow_memory() -> Vec<Case> {
    vec![
        case("runs alike, whatever they got", mapped(&MOVED, &[0.25], false).diagnosed()),
        case("runs alike on memory of one speed", mapped(&MOVED, &SHARES, true).diagnosed()),
    ]
}

/// What three components are bound by, whose rates are these: of all copies over as many times one
/// alone, and of one copy beside streams over it alone.
fn bounds(bwaves: f64, graph: [f64; 2]) -> Vec<(String, String)> {
    let tree = server();
    let root = tree.root().display();
    let words =
        format!("--quick --component bwaves,graph,molecules --footprint 16G --pretend 7 --root {root}");
    let mut run = Edit::of_verb(&["rate"], &words);
    let plan = run.header()["plan"].clone();
    run.each(|number, visit| {
        let case = &plan[visit["case"].as_u64().expect("a case") as usize]["case"];
        let copies = case["placement"]["seats"].as_array().map_or(0, Vec::len) as f64;
        let [kept, beside] = match case["bench"].as_str() {
            Some("rate.bwaves") => [bwaves, 1.0],
            Some("rate.graph") => graph,
            _ => [0.99, 0.98],
        };
        let rate = match case["inputs"]["experiment"].as_str() {
            None => copies * kept,
            Some("alone") => 1.0,
            Some(_) => beside,
        };
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["rate"]) {
                let rate = 1e6 * rate * (1.0 + 0.001 * (number % 3) as f64);
                samples["work"] = json!([rate, rate]);
                samples["ns"] = json!([1e9, 1e9]);
                samples["beside"] = json!({});
                samples["warm_up"] = json!(0);
            }
        }
    });
    let found = run.diagnosed();
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let rows = found["rate_bounds"].as_array().expect("a list");
    rows.iter().map(|row| (text(&row["bound"]), text(&row["words"]))).collect()
}

#[test]
fn bound_by_memory_is_said_by_experiment_only() {
    let words = |found: &[(String, String)]| found.iter().map(|(bound, _)| bound.clone()).collect::<Vec<_>>();
    let found = bounds(0.5, [0.99, 0.6]);
    assert_eq!(words(&found), ["memory", "memory"], "{found:?}");
    assert_eq!(found[0].1, "memory: each of 8 copies runs at 50 % of one alone, 99 % in caches");
    assert_eq!(found[1].1, "memory: one copy with streams on other CPUs keeps 60 %, 98 % in caches");
    let found = bounds(0.99, [0.99, 0.97]);
    assert_eq!(words(&found), ["not_memory", "not_memory"], "{found:?}");
    let found = bounds(0.9, [0.99, 0.9]);
    assert_eq!(words(&found), ["unknown", "unknown"], "{found:?}");
    assert!(
        found[0].1.contains("too close to decide (`assay rate --component bwaves,molecules"),
        "{found:?}"
    );
    // Data that fit in caches: whatever the copies lose.
    let inside = footprint(64);
    assert_eq!(inside["rate_bounds"][0]["bound"], "caches");
}
