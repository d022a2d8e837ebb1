//! Speeds that do not last.

use super::points::{DiskPoint, again, disk, points};
use crate::words::{bytes, figure, percent};
use crate::{Evidence, Rule};
use model::vocabulary::disk as ids;
use model::{Finding, Visit};
use stats::change::{Change, Sensitivity, changes};
use stats::drift::trend;
use stats::order::median;

pub const NOT_STEADY: Rule = Rule {
    id: ids::rule::DISK_NOT_STEADY,
    title: "The disk's speed does not last",
    topic: "disk speed",
    meaning: "Flash has a fast cache of cells, cloud volumes have burst credits, and controllers have \
        memory. When that is used up, the speed falls to what the disk can keep. Short tests see only the \
        first part.",
    action: "Plan long writes with the lower level. If the speed still changes at the end, measure longer \
        (--io-time 5m). See it: assay run --only disk.sustained --profile full",
    when: "The speed of disk.sustained falls by 10 % or more and stays low in at least half of the passes. \
        Or it still changes by more than 5 % in the second half of most passes.",
    how: "Change points (E-divisive with merging, p below 0.001) of each pass's periods in order; a pass \
        needs ten periods. One pass is enough if all before it kept the first level and all after it the \
        second. The finding gives the bytes written before the fall. The trend is by Mann and Kendall, p \
        below 0.01. It is a cause, since the median mixes both levels. A disk that was just erased is faster \
        than it will be, for the same reason.",
    calm: "long disk writes keep their speed",
    looked_at: "a long write",
    source: file!(),
    check,
};

const MIN_FALL: f64 = 0.10;
const MAX_TREND: f64 = 0.05;
const MIN_PERIODS: usize = 10;

/// The periods of one process: bandwidth, GB/s, and how many bytes each wrote.
struct Line {
    values: Vec<f64>,
    bytes: Vec<f64>,
}

fn check(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let mut findings = Vec::new();
    let mut looked = false;
    for point in points.iter().filter(|point| point.bench() == ids::SUSTAINED) {
        let lines: Vec<Line> = evidence
            .visits_of(point.index)
            .filter_map(|visit| line(visit, point))
            .filter(|line| line.values.len() >= MIN_PERIODS)
            .collect();
        looked |= !lines.is_empty();
        findings.extend(fallen(evidence, point, &lines).or_else(|| moving(point, &lines)));
    }
    looked.then_some(findings)
}

fn line(visit: &Visit, point: &DiskPoint) -> Option<Line> {
    let series = &point.judged(ids::metric::BANDWIDTH)?.series;
    if visit.reason.is_some() {
        return None;
    }
    let own = visit.samples.iter().filter(|samples| {
        samples.point == series.point && samples.metrics.iter().any(|name| *name == series.metric.name)
    });
    let mut line = Line { values: Vec::new(), bytes: Vec::new() };
    for samples in own {
        let all = samples.values(series.metric.form).into_iter().zip(&samples.ns).skip(samples.warm_up);
        for (value, ns) in all.filter(|(value, ns)| value.is_finite() && ns.is_finite()) {
            line.values.push(value);
            line.bytes.push(value * ns);
        }
    }
    Some(line)
}

/// The last step down of a line that is not followed by one up to where it was.
fn step(line: &Line) -> Option<Change> {
    let sensitivity = Sensitivity { least: MIN_FALL, ..Sensitivity::default() };
    let all = changes(&line.values, sensitivity, 1);
    let first = all.iter().find(|change| change.relative() <= -MIN_FALL)?;
    let last = all.last()?;
    (last.after <= first.before * (1.0 - MIN_FALL)).then_some(Change { after: last.after, ..*first })
}

/// Credits or a cache that one process used up and that were not back for those after it: its step,
/// and the bytes that were written before it, those of the processes before included.
fn spent_at_once(lines: &[Line]) -> Option<(Change, f64)> {
    let (at, change) = lines.iter().enumerate().find_map(|(at, line)| Some((at, step(line)?)))?;
    let between = (change.before + change.after) / 2.0;
    let level = |line: &Line| median(&line.values);
    let (before, after) = (&lines[..at], &lines[at + 1..]);
    let kept = before.iter().filter_map(level).all(|level| level > between)
        && after.iter().filter_map(level).all(|level| level < between)
        && !after.is_empty();
    let written = before.iter().flat_map(|line| &line.bytes).sum::<f64>()
        + lines[at].bytes.iter().take(change.at).sum::<f64>();
    kept.then_some((change, written))
}

fn fallen(evidence: &Evidence, point: &DiskPoint, lines: &[Line]) -> Option<Finding> {
    let steps: Vec<(Change, f64)> = lines
        .iter()
        .filter_map(|line| {
            let change = step(line)?;
            Some((change, line.bytes[..change.at.min(line.bytes.len())].iter().sum::<f64>()))
        })
        .collect();
    let steps =
        if steps.is_empty() || 2 * steps.len() < lines.len() { vec![spent_at_once(lines)?] } else { steps };
    let shown = steps.len();
    let median_of = |value: fn(&(Change, f64)) -> f64| median(&steps.iter().map(value).collect::<Vec<f64>>());
    let (before, after, written) =
        (median_of(|step| step.0.before)?, median_of(|step| step.0.after)?, median_of(|step| step.1)?);
    let disk = disk(evidence);
    let cause = match (disk.and_then(|disk| disk.is_virtual()), disk.and_then(|disk| disk.is_solid())) {
        (Some(true), _) => "The virtual disk has spent its burst credits, or the host's cache is full.",
        (_, Some(true)) => {
            "The flash has filled the cells of its fast cache (SLC), and now writes slow ones."
        }
        (_, Some(false)) => "A cache in front of a spinning disk is full: its own, or a controller's.",
        _ => "A cache is full, or burst credits are spent.",
    };
    let key = point.key(ids::metric::BANDWIDTH);
    let less = percent(1.0 - after / before);
    let [first, then] = [before, after].map(|speed| figure(speed, "GB/s"));
    let written = bytes(written);
    let headline = format!("Writes fall from {first} to {then} after {written}. Plan with {then}.");
    Some(
        Finding::warning(NOT_STEADY.id, headline)
            .cause(cause)
            .fact("first", first, &key)
            .fact("then", format!("{then}, {less} less"), &key)
            .fact("written before", written, &key)
            .fact("passes that show it", format!("{shown} of {}", lines.len()), &key)
            .confirm(format!("{} --profile full", again(point.case)))
            .advice(format!("Plan long writes with {then}. Shorter benchmarks show the first level."))
            .explains([&key]),
    )
}

fn moving(point: &DiskPoint, lines: &[Line]) -> Option<Finding> {
    let trends: Vec<f64> = lines
        .iter()
        .filter_map(|line| {
            let trend = trend(&line.values[line.values.len() / 2..])?;
            (trend.p < 0.01 && trend.relative_change.abs() > MAX_TREND).then_some(trend.relative_change)
        })
        .collect();
    let (down, up) = (
        trends.iter().filter(|change| **change < 0.0).count(),
        trends.iter().filter(|change| **change > 0.0).count(),
    );
    if 2 * down.max(up) <= lines.len() {
        return None;
    }
    let change = median(&trends)?;
    let key = point.key(ids::metric::BANDWIDTH);
    let word = if change < 0.0 { "falling" } else { "rising" };
    let headline = format!(
        "Write speed was still {word} at the end, by {} in the second half. Measure longer.",
        percent(change.abs())
    );
    Some(
        Finding::warning(NOT_STEADY.id, headline)
            .cause("The disk had not reached the speed that it can keep.")
            .fact("change in the second half", format!("{:+.1} %", change * 100.0), &key)
            .fact("passes that show it", format!("{} of {}", down.max(up), lines.len()), &key)
            .confirm(format!("{} --profile full", again(point.case)))
            .advice("Do not take the median for a steady speed. Measure longer (--io-time 5m).")
            .explains([&key]),
    )
}
