//! Runs of one case whose values are given, for benchmarks that need more than a test can have.

use serde_json::{Value, json};

use super::edited::Edit;

/// A metric as a catalogue describes it.
pub fn metric(name: &str, unit: &str, form: Value) -> Value {
    json!({"name": name, "title": name, "unit": unit, "better": "higher", "form": form, "headline": true})
}

pub fn bandwidth() -> Value {
    metric("bandwidth", "GB/s", json!({"work-per-time": {"scale": 1.0}}))
}

pub fn cycles() -> Value {
    metric("cycles", "cycles", json!("cycles-per-work"))
}

/// A run of ten visits to one case of this benchmark, every point with values that scatter by
/// `spread` around its own; on the recorded host.
pub fn crafted(bench: &str, params: Value, metric: Value, points: &[(Value, f64)], spread: f64) -> Edit {
    crafted_in(Edit::invented("selftest.steady"), bench, params, metric, |_| points.to_vec(), spread)
}

/// The same in place of a run's only case, with points that may differ from visit to visit.
pub fn crafted_in(
    mut run: Edit,
    bench: &str,
    params: Value,
    metric: Value,
    points: impl Fn(usize) -> Vec<(Value, f64)>,
    spread: f64,
) -> Edit {
    run.repeated(10, spread, |_| 1.0);
    let header = run.header();
    (header["plan"][0]["case"]["bench"], header["plan"][0]["case"]["params"]) = (json!(bench), params);
    let title = &mut header["catalogue"][0];
    (title["id"], title["metrics"]) = (json!(bench), json!([metric]));
    let by_cycles = metric["form"] == "cycles-per-work";
    let by_time = metric["form"]["time-per-work"].is_object();
    run.each(|number, visit| {
        let steady = visit["samples"][0].clone();
        let points = points(number);
        let at = points.iter().enumerate().map(|(index, (point, value))| {
            let mut samples = steady.clone();
            (samples["point"], samples["metrics"]) = (point.clone(), json!([metric["name"]]));
            let works = samples["work"].as_array_mut().expect("a column");
            // Each point scatters in its own way.
            works.rotate_left(index % 3);
            for work in works {
                // Around 1e6 in a window of 2 ms.
                let scattered = work.as_f64().expect("a number") / 1e6;
                *work = match () {
                    () if by_cycles => json!(2e6 * 3.0 / (value * scattered)),
                    () if by_time => json!(2e6 / (value * scattered)),
                    () => json!(2e6 * value * scattered),
                };
            }
            samples["beside"]["clock_ghz"] = json!(3.0);
            samples
        });
        visit["samples"] = at.collect();
    });
    run
}
