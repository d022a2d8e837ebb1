//! Seeded fake samples for every benchmark, so that the whole pipeline can be run and compared byte by byte.
//!
//! A series' level comes from its name, each process shifts it a little, each window scatters around it; `free`
//! placements hop between two levels. Nothing here looks at the machine.

use std::f64::consts::TAU;
use std::io::Write;

use super::{Benchmark, Line, Order};
use crate::model::{Covariates, Form, Histogram, Metric, Packed, Params, ProcessFacts, Samples, fingerprint};

/// Relative spread between processes and between windows of one process.
const BETWEEN: f64 = 0.004;
const WITHIN: f64 = 0.006;
const PRETENDED_GHZ: f64 = 3.0;

/// What a child would have said.
fn lines(bench: &Benchmark, order: &Order, seed: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    for point in (bench.points)(&order.case) {
        for metric in bench.metrics {
            lines.push(Line::Samples(Box::new(samples(order, &point, metric, seed))));
        }
    }
    lines.push(Line::Process(ProcessFacts {
        huge_share: bench.id.starts_with("memory.").then_some(1.0),
        variant: Some("pretended".to_string()),
        ..ProcessFacts::default()
    }));
    lines.push(Line::Done(None));
    lines
}

/// Says it.
pub fn write(bench: &Benchmark, order: &Order, seed: u64, out: &mut dyn Write) -> anyhow::Result<()> {
    for line in lines(bench, order, seed) {
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(())
}

fn samples(order: &Order, point: &Params, metric: &Metric, seed: u64) -> Samples {
    let key = order.case.series_key(point, &metric.name);
    let mut level_random = fastrand::Rng::with_seed(mix(&key, seed));
    let mut random = fastrand::Rng::with_seed(mix(&key, seed ^ order.seed));
    let level = level(metric, point, &mut level_random);
    let mut process_level = level * (BETWEEN * normal(&mut random)).exp();
    let free = order.case.placement.name == "free";
    if free && random.f64() < 0.5 {
        process_level *= 0.4;
    }
    let windows = order.windows.warm_up + order.windows.count;
    let ns = order.windows.window_ns;
    let values: Vec<f64> =
        (0..windows).map(|_| process_level * (WITHIN * normal(&mut random)).exp()).collect();
    let mut histograms = Vec::new();
    let work: Vec<f64> = match metric.form {
        Form::WorkPerTime { scale } => values.iter().map(|value| value * ns / scale).collect(),
        Form::TimePerWork { scale } => values.iter().map(|value| ns * scale / value).collect(),
        Form::CyclesPerWork => values.iter().map(|value| ns * PRETENDED_GHZ / value).collect(),
        Form::Value => values.iter().map(|value| value.min(1.0)).collect(),
        Form::Quantile { scale, .. } => {
            histograms = values.iter().map(|value| spread(value / scale)).collect();
            values.iter().map(|_| 1000.0).collect()
        }
    };
    Samples {
        point: point.clone(),
        metrics: vec![metric.name.to_string()],
        warm_up: order.windows.warm_up,
        work: Packed::pack(work),
        ns: vec![ns; windows],
        beside: Covariates {
            involuntary: Some(Packed::Same(0.0)),
            clock_ghz: Some(Packed::Same(PRETENDED_GHZ)),
            ..Covariates::default()
        },
        histograms,
        linearity: Some(0.001),
    }
}

/// A plausible level: latencies climb with the block's size, everything else is a number drawn once for the series.
fn level(metric: &Metric, point: &Params, random: &mut fastrand::Rng) -> f64 {
    let drawn = (random.f64() * 3.0).exp();
    if metric.unit == "GHz" {
        return PRETENDED_GHZ;
    }
    match (metric.form, point.get("bytes").and_then(|bytes| bytes.number())) {
        (Form::TimePerWork { .. }, Some(bytes)) => match bytes {
            b if b <= 32e3 => 1.4,
            b if b <= 1e6 => 4.5,
            b if b <= 33e6 => 20.0,
            _ => 95.0,
        },
        (Form::WorkPerTime { .. }, Some(bytes)) => 200.0 / (1.0 + bytes / 1e6).sqrt(),
        (Form::WorkPerTime { scale }, None) if scale >= 1e6 => 1e4 * drawn,
        (Form::Value, _) => 0.5,
        _ => drawn,
    }
}

/// A histogram whose every value is near `ns`.
fn spread(ns: f64) -> Histogram {
    let at = |factor: f64| (ns * factor) as u64;
    Histogram { ns: vec![at(0.9), at(1.0), at(1.1)], count: vec![300, 699, 1] }
}

fn mix(key: &str, seed: u64) -> u64 {
    fingerprint(&format!("{key} {seed}"))
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (radius, angle) = (random.f64().max(f64::MIN_POSITIVE), random.f64());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}
