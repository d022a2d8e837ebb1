//! Seeded fake samples for every benchmark, so that the whole pipeline can be run and compared byte
//! by byte.
//!
//! A series' level comes from its name, each process shifts it a little, each sample scatters
//! around it; `free` placements move between two levels. Nothing here reads the host.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::io::Write;

use super::{Benchmark, Line, Order};
use model::vocabulary::{MetricId, ParamId};
use model::vocabulary::{cpu, disk, file, host, memory, memory_map};
use model::{
    Beside, Better, Case, Covariates, Form, Histogram, Metric, Moves, Packed, Params, ProcessFacts, Samples,
    fingerprint,
};

/// Relative spread between processes and between samples of one process.
const BETWEEN: f64 = 0.004;
const WITHIN: f64 = 0.006;
const PRETENDED_GHZ: f64 = 3.0;

/// What a child would have said.
fn lines(bench: &Benchmark, order: &Order, seed: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    for point in (bench.points)(&order.case) {
        for metric in bench.metrics.iter().filter(|metric| is_there(bench, &point, metric)) {
            lines.push(Line::Samples(Box::new(samples(order, &point, metric, seed))));
        }
    }
    lines.push(Line::Process(Box::new(ProcessFacts {
        huge_share: bench.id.starts_with("memory.").then_some(1.0),
        remote_share: bench.id.starts_with("memory.").then_some(0.0),
        variant: Some("pretended".to_string()),
        moves: looks_at_regions(&bench.id).then(still),
        ..ProcessFacts::default()
    })));
    lines.push(Line::Done(None));
    lines
}

/// A map of memory has figures of its chunks, and the typical one once; translation is what an
/// order within a spread saves.
fn is_there(bench: &Benchmark, point: &Params, metric: &Metric) -> bool {
    if metric.name == memory::metric::TRANSLATION {
        return point.contains_key(memory::param::WITHIN);
    }
    // What a whole wake-up comes to stands at no step.
    if bench.id == cpu::FREQUENCY_RAMP {
        return metric.name == cpu::metric::CLOCK;
    }
    !looks_at_regions(&bench.id)
        || (metric.name != memory_map::metric::TYPICAL) == point.contains_key(memory_map::param::CHUNK)
            && metric.form != Form::Value
}

fn looks_at_regions(bench: &str) -> bool {
    [memory_map::MAP, memory_map::REGIONS].iter().any(|id| *id == bench)
}

/// A kernel that moves no page.
fn still() -> Moves {
    let counts: BTreeMap<String, f64> =
        ["pgmigrate_success", "compact_success"].map(|name| (name.to_string(), 0.0)).into();
    Moves { taking: counts.clone(), looking: counts }
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
    // In company a case is the same case, and slower.
    let mut alone = order.case.clone();
    (alone.placement.beside, alone.knobs) = (Beside::Idle, Default::default());
    let mut level_random = fastrand::Rng::with_seed(mix(&alone.series_key(point, &metric.name), seed));
    let mut random = fastrand::Rng::with_seed(mix(&key, seed ^ order.seed));
    let slower = match (order.case.placement.beside, metric.better) {
        (Beside::Idle, _) | (_, Better::Neither) => 1.0,
        (_, Better::Lower) => slower(order.case.placement.beside),
        (_, Better::Higher) => 1.0 / slower(order.case.placement.beside),
    };
    let level = slower * level(&order.case, metric, point, &mut level_random);
    let mut process_level = level * (BETWEEN * normal(&mut random)).exp();
    let free = order.case.placement.name == "free";
    if free && random.f64() < 0.5 {
        process_level *= 0.4;
    }
    let at_rest = order.case.bench == host::NEIGHBOURS;
    let (warm_up, windows) = match at_rest {
        true => (0, LOOKS_AT_REST),
        false => (order.windows.warm_up, order.windows.warm_up + order.windows.count),
    };
    let ns = order.windows.window_ns;
    let mut values: Vec<f64> =
        (0..windows).map(|_| process_level * (WITHIN * normal(&mut random)).exp()).collect();
    // Values that are an order, not a level: when probes began, and the working sets of each round.
    let counted: Option<fn(usize) -> f64> = match at_rest {
        true if metric.name == host::metric::MOMENT => Some(|look| look as f64 * LOOK_EVERY_MS),
        true if metric.name == host::metric::SIZE => Some(|look| (1 << (look % SIZES)) as f64),
        _ => None,
    };
    if let Some(counted) = counted {
        values = (0..windows).map(counted).collect();
    }
    let mut histograms = Vec::new();
    let work: Vec<f64> = match metric.form {
        Form::WorkPerTime { scale } => values.iter().map(|value| value * ns / scale).collect(),
        Form::TimePerWork { scale } => values.iter().map(|value| ns * scale / value).collect(),
        Form::CyclesPerWork => values.iter().map(|value| ns * PRETENDED_GHZ / value).collect(),
        // Shares end at 1.
        Form::Value if metric.unit.is_empty() => values.iter().map(|value| value.min(1.0)).collect(),
        Form::Value => values,
        Form::Quantile { scale, .. } => {
            histograms = values.iter().map(|value| spread(value / scale)).collect();
            values.iter().map(|_| 1000.0).collect()
        }
    };
    Samples {
        point: point.clone(),
        metrics: vec![metric.name.to_string()],
        warm_up,
        work: Packed::pack(work),
        ns: vec![ns; windows],
        beside: Covariates {
            involuntary: Some(Packed::Same(0.0)),
            clock_ghz: Some(Packed::Same(PRETENDED_GHZ)),
            fetch_cycles: Some(Packed::Same(1.0)),
            ..Covariates::default()
        },
        histograms,
        linearity: Some(0.001),
    }
}

/// How many times longer work takes with a busy sibling.
fn slower(beside: Beside) -> f64 {
    match beside {
        Beside::Idle => 1.0,
        Beside::Spinner => 1.3,
        // No CPU has to wake from idle.
        Beside::Awake => 0.5,
        Beside::SameWork | Beside::Stream => 1.5,
    }
}

/// A plausible level: curves have the shape of a healthy host's, everything else is a number
/// drawn once for the series.
fn level(case: &Case, metric: &Metric, point: &Params, random: &mut fastrand::Rng) -> f64 {
    let drawn = (random.f64() * 3.0).exp();
    if metric.unit == "GHz" {
        return PRETENDED_GHZ;
    }
    if case.bench == host::NEIGHBOURS {
        return match metric.unit.as_ref() {
            "ns" => MEMORY_NS,
            "GB/s" => 11.0,
            "MiB" if metric.name == host::metric::CACHE => 24.0,
            _ => drawn,
        };
    }
    // The device moves what it is asked for.
    if metric.name == disk::metric::DEVICE_SHARE {
        return 1.0;
    }
    let text = |name: ParamId| case.params.get(name).and_then(|value| value.text());
    let at = |name: ParamId| point.get(name).and_then(|value| value.number());
    if metric.name == memory::metric::TRANSLATION {
        return TRANSLATION_NS;
    }
    if let Some(cycles) = text(memory::param::SOURCE).and_then(cycles_from) {
        return if metric.form == Form::CyclesPerWork { cycles } else { cycles / PRETENDED_GHZ };
    }
    match metric.form {
        Form::TimePerWork { .. } => {
            if let Some(bytes) = at(memory::param::BYTES) {
                return latency_of_block(case, bytes);
            }
            let others = [
                at(memory::param::PAGES)
                    .map(|pages| latency_of_pages(pages, text(memory::param::LAYOUT) == Some("spread"))),
                at(memory::param::OFFSET)
                    .map(|offset| if offset < 64.0 { MEMORY_NS / 2.0 + 0.7 } else { MEMORY_NS }),
                at(memory_map::param::CHUNK).map(|_| level_of_region(metric)),
                at(memory::param::CHAINS).map(|chains| MEMORY_NS / chains.min(12.0)),
                at(memory::param::PAUSE)
                    .map(|pause| MEMORY_NS * (1.0 + 0.1 * load(pause) + 1.5 * load(pause).powi(8))),
            ];
            others.into_iter().flatten().next().unwrap_or(drawn)
        }
        Form::WorkPerTime { scale } => {
            let others = [
                // Files: out of the cache a disk's, else a copy's.
                text(file::param::CACHE).filter(|_| case.bench.starts_with("file.")).map(cached),
                at(memory::param::BYTES).map(|bytes| 200.0 / (1.0 + bytes / 1e6).sqrt()),
                at(memory::param::PAUSE).map(|pause| 18.0 * load(pause)),
                // All cores alike.
                at(memory::param::CPU).map(|_| 180.0),
                // A map of one speed; pages in order are fetched ahead.
                looks_at_regions(&case.bench).then_some(if metric.name == memory_map::metric::STREAM {
                    46.0
                } else {
                    40.0
                }),
                (scale >= 1e6).then_some(1e4 * drawn),
            ];
            others.into_iter().flatten().next().unwrap_or(drawn)
        }
        Form::Value if metric.name == memory_map::metric::HUGE_PAGE_NEAR => MEMORY_NS,
        Form::Value => 0.5,
        _ => drawn,
    }
}

/// Of regions that cost the same, ns: a few of translation more where loads hop.
fn level_of_region(metric: &Metric) -> f64 {
    let is = |name: MetricId| metric.name == name;
    match is(memory_map::metric::FIRST_TOUCH) || is(memory_map::metric::SECOND_TOUCH) {
        true => TOUCH_NS,
        false if is(memory_map::metric::HOPPING) => MEMORY_NS + 3.0,
        false => MEMORY_NS,
    }
}

/// Probes of a pass while nothing else runs, and ms from one to the next.
const LOOKS_AT_REST: usize = 49;
const LOOK_EVERY_MS: f64 = 75.0;
const SIZES: usize = 7;

/// GB/s of a file.
fn cached(cache: &str) -> f64 {
    if cache == "cold" { 1.2 } else { 7.0 }
}

const MEMORY_NS: f64 = 95.0;
/// The first write of a page, whose memory the host had already.
const TOUCH_NS: f64 = 500.0;
/// As on huge pages.
const TRANSLATION_NS: f64 = 1.0;

/// Caches as servers have them; the last one, whatever its size, is a good half of the largest
/// block.
fn latency_of_block(case: &Case, bytes: f64) -> f64 {
    let sizes = case.inputs.get("bytes").map_or("", String::as_str).split(',');
    let largest = sizes.filter_map(|size| size.parse().ok()).fold(bytes, f64::max);
    match bytes {
        b if b <= 49152.0 => 1.4,
        b if b <= f64::from(2 << 20) => 4.5,
        b if b <= largest / 1.9 => 20.0,
        _ => MEMORY_NS,
    }
}

/// 64 and 1536 translations at hand.
fn latency_of_pages(pages: f64, spread: bool) -> f64 {
    match pages {
        pages if !spread || pages <= 64.0 => 1.4,
        pages if pages <= 1536.0 => 3.7,
        _ => 12.0,
    }
}

/// Share of the full load that pauses leave.
fn load(pause: f64) -> f64 {
    1.0 / (1.0 + pause / 60.0)
}

/// Core cycles of a load from there.
fn cycles_from(source: &str) -> Option<f64> {
    Some(match source {
        "l1" => 5.0,
        "l2" => 14.0,
        "l3" => 60.0,
        "core-shared" => 150.0,
        "core-modified" => 180.0,
        "dram" => MEMORY_NS * PRETENDED_GHZ,
        "l3-remote" => 350.0,
        "dram-remote" => 480.0,
        _ => return None,
    })
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
