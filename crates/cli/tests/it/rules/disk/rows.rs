//! Runs of disk rows with given figures, on a disk with a given description.

use serde_json::{Value, json};

use super::super::edited::Edit;

/// What a row measured at one point: metrics with a value each, or with one for each window.
pub type Figures<'a> = &'a [(&'a str, &'a [f64])];

/// A case of a disk row: its parameters, its jobs, its points.
pub struct Row<'a> {
    pub bench: &'a str,
    pub params: Value,
    pub jobs: usize,
    pub points: Vec<(Value, Figures<'a>)>,
}

pub fn row<'a>(bench: &'a str, params: Value, points: Vec<(Value, Figures<'a>)>) -> Row<'a> {
    Row { bench, params, jobs: 1, points }
}

pub fn direct(op: &str) -> Value {
    json!({"op": op, "cache": "direct"})
}

pub fn at(block: u64, depth: u64) -> Value {
    json!({"block": block, "depth": depth})
}

pub const METRICS: [(&str, &str); 15] = [
    ("bandwidth", "GB/s"),
    ("iops", "1/s"),
    ("achieved", "1/s"),
    ("rate", "1/s"),
    ("latency_p50", "us"),
    ("latency_p90", "us"),
    ("latency_p99", "us"),
    ("latency_p999", "us"),
    ("latency_p9999", "us"),
    ("latency_max", "us"),
    ("cpu_per_io", "us"),
    ("generator_busy", ""),
    ("device_share", ""),
    ("in_flight", ""),
    ("device_busy", ""),
];

/// Ten visits to each row, on this disk.
pub fn run_of(mut run: Edit, disk: &str, rows: &[Row]) -> Edit {
    run.repeated(10 * rows.len(), 0.001, |_| 1.0);
    let header = run.header();
    let planned = header["plan"][0].clone();
    let title = header["catalogue"][0].clone();
    header["snapshot"]["probe:disk"] = json!(disk);
    let plan = rows.iter().map(|row| {
        let mut planned = planned.clone();
        let case = &mut planned["case"];
        (case["bench"], case["params"]) = (json!(row.bench), row.params.clone());
        if row.jobs > 1 {
            let seat = case["placement"]["seats"][0].clone();
            case["placement"]["name"] = json!("one-per-core");
            case["placement"]["seats"] = json!(vec![seat; row.jobs]);
        }
        planned
    });
    header["plan"] = plan.collect();
    let mut names: Vec<&str> = rows.iter().map(|row| row.bench).collect();
    names.sort_unstable();
    names.dedup();
    let metrics = METRICS.map(|(name, unit)| {
        let headline = ["bandwidth", "iops", "rate"].contains(&name);
        json!({"name": name, "title": name, "unit": unit, "better": "neither", "form": "value", "headline": headline})
    });
    let titles = names.iter().map(|name| {
        let mut title = title.clone();
        (title["id"], title["metrics"]) = (json!(name), json!(metrics));
        title
    });
    header["catalogue"] = titles.collect();
    let mut random = fastrand::Rng::with_seed(3);
    run.each(|number, visit| {
        let index = number % rows.len();
        let steady = visit["samples"][0].clone();
        visit["case"] = json!(index);
        visit["pass"] = json!(number / rows.len());
        let figures = rows[index]
            .points
            .iter()
            .flat_map(|(point, figures)| figures.iter().map(move |figure| (point, figure)));
        let samples = figures.map(|(point, (metric, values))| {
            let mut samples = steady.clone();
            (samples["point"], samples["metrics"]) = (point.clone(), json!([metric]));
            let mut windows: Vec<f64> = match values {
                [one] => vec![*one; 8],
                each => each.to_vec(),
            };
            windows.iter_mut().for_each(|value| *value *= 1.0 + 0.001 * (random.f64() - 0.5));
            samples["ns"] = json!(vec![1e9; windows.len()]);
            (samples["work"], samples["warm_up"], samples["beside"]) = (json!(windows), json!(0), json!({}));
            samples
        });
        visit["samples"] = samples.collect();
    });
    run
}
