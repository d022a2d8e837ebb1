//! Scores of many copies against one.

use serde_json::json;

use super::edited::Edit;
use super::{Case, case};

/// Context switching whose copies together do `times` times the work of one.
fn scaling(times: f64) -> Case {
    let mut run = Edit::invented("unixbench.context1");
    let plan = run.header()["plan"].as_array().expect("a list").clone();
    run.each(|number, visit| {
        let case = &plan[visit["case"].as_u64().expect("a number") as usize]["case"];
        let factor = if case["params"]["copies"] == json!(1) { 1.0 } else { times };
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["score"]) {
                let windows = samples["ns"].as_array().expect("a column").len();
                let scatter = |window: usize| 1.0 + 0.002 * ((number * 7 + window * 3) % 5) as f64;
                samples["work"] =
                    json!((0..windows).map(|at| 100.0 * factor * scatter(at)).collect::<Vec<f64>>());
            }
        }
    });
    case(format!("{times} times with two copies"), run.diagnosed())
}

pub fn many_copies_that_one_contradicts() -> Vec<Case> {
    vec![scaling(2.5), scaling(8.0)]
}

pub fn copies_that_scale_as_they_can() -> Vec<Case> {
    vec![scaling(1.0), scaling(2.0), scaling(2.1)]
}
