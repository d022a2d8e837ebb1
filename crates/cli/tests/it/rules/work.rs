//! Two CPUs against one, by the work between two messages: lines that cross and lines that do not.

use serde_json::json;

use super::edited::Edit;
use super::{Case, case};
use crate::runs::findings;

/// Rounds of these lengths, ns, by placement and work.
fn rounds(what: &str, length: impl Fn(&str, f64) -> f64) -> Case {
    let mut run = Edit::invented("ipc.pipe-work");
    let plan = run.header()["plan"].clone();
    run.each(|number, visit| {
        let at = visit["case"].as_u64().expect("a case") as usize;
        let place = plan[at]["case"]["placement"]["name"].as_str().expect("a name").to_string();
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            let Some(work) = samples["point"]["work_ns"].as_f64() else { continue };
            if samples["metrics"] != json!(["latency"]) {
                continue;
            }
            let ns: Vec<f64> = serde_json::from_value(samples["ns"].clone()).expect("a column");
            let scatter = |window: usize| 1.0 + 0.01 * ((number * 7 + window * 3) % 5) as f64;
            let done = |window: usize| ns[window] / (length(&place, work) * scatter(window));
            samples["work"] = json!((0..ns.len()).map(done).collect::<Vec<f64>>());
        }
    });
    case(what, run.diagnosed())
}

/// One CPU works twice as much; two pay 30 us for waking each other: they win beyond 30 us less the
/// 4 us of one.
fn crossing(place: &str, work: f64) -> f64 {
    match place {
        "same-cpu" => 4e3 + 2.0 * work,
        _ => 30e3 + work,
    }
}

pub fn work_from_which_two_win() -> Vec<Case> {
    let crossed = rounds("lines that cross at 26 us", crossing);
    let found = findings(&crossed.results, "two-cpus-win");
    assert_eq!(found.len(), 1);
    let headline = found[0]["headline"].as_str().expect("a headline");
    let us: f64 = headline
        .split("from ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|number| number.parse().ok())
        .expect("a number of us");
    // Interpolated between 20 and 50 us.
    assert!((22.0..32.0).contains(&us), "{headline}");
    vec![crossed]
}

pub fn work_that_never_decides() -> Vec<Case> {
    vec![
        rounds("one CPU always faster", |place, work| if place == "same-cpu" { work } else { 2.0 * work }),
        rounds("two CPUs always faster", |place, work| if place == "same-cpu" { 3.0 * work } else { work }),
        rounds("all alike", |_, work| 5e3 + work),
    ]
}
