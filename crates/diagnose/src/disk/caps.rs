//! Limits on a disk's speed that a control group or a provider sets.

use super::points::{DiskPoint, again, disk, points, speed_keys};
use crate::words::{bytes, capital, figure, percent};
use crate::{Evidence, Rule};
use machine::disk::Throttle;
use model::vocabulary::disk as ids;
use model::{Fact, Finding};

pub const THROTTLED: Rule = Rule {
    id: ids::rule::DISK_THROTTLED,
    title: "A limit caps the disk's speed",
    topic: "disk limit",
    meaning: "A limit of a control group (io.max, blkio.throttle) or of the provider caps the disk, whatever \
        it could do. The figure shows that limit, and latency at depth is the throttle's queue.",
    action: "Look up the limits of the instance and of the volume; both apply. To measure the disk itself, \
        lift the control group's limit. See it: assay run --only disk.random --profile full",
    when: "A rate lies within 5 % of a limit of Assay's control group. Or rates at different block sizes or \
        depths agree within 1 % on a round number, where nothing else limits them.",
    how: "The kernel counts exactly over seconds, but the ends of a sample are not exact, hence 5 %. Round \
        numbers: 1, 1.2, 1.25, 1.5, 1.6, 2, 2.4, 2.5, 3, 3.2, 4, 4.8, 5, 6, 6.4, 7.5, 8 with any power of \
        ten, of operations, bytes or MiB. Two points of one operation must agree, with blocks or depths at \
        least twofold apart and each with a spread under 2 %. At another block size the other quantity must \
        be at least 1.2 times as much: operations are capped while more bytes pass, or the reverse. A rate \
        within 10 % of the known link, or of a load generator whose CPUs are busy, does not count.",
    calm: "no disk I/O limit reached",
    looked_at: "io.max and rates",
    source: file!(),
    check,
};

const LIMIT_TOLERANCE: f64 = 0.05;
const ROUND_TOLERANCE: f64 = 0.01;
const MAX_CV: f64 = 0.02;
const MIN_OTHER_GAIN: f64 = 1.2;
const ROUND_DIGITS: [f64; 17] =
    [1.0, 1.2, 1.25, 1.5, 1.6, 2.0, 2.4, 2.5, 3.0, 3.2, 4.0, 4.8, 5.0, 6.0, 6.4, 7.5, 8.0];

fn check(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let rows: Vec<&DiskPoint> = points
        .iter()
        .filter(|point| {
            point.is_transfer() && !point.is_paced() && !point.buffered() && point.op() != "mixed"
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let throttles = disk(evidence).map_or(&[][..], |disk| &disk.throttles);
    let mut findings: Vec<Finding> = Vec::new();
    for throttle in throttles {
        findings.extend(by_group(&rows, throttle));
    }
    for op in ["read", "write"].iter().filter(|op| !throttles.iter().any(|throttle| throttle.op == **op)) {
        let of: Vec<&DiskPoint> = rows
            .iter()
            .copied()
            .filter(|point| point.op() == *op && has_no_other_limit(evidence, point))
            .collect();
        // A cap of bytes may give round operations at one block size by chance, so only the
        // first cap counts.
        let found = capped(&of, Quantity::Operations).or_else(|| capped(&of, Quantity::Bytes));
        findings.extend(found);
    }
    Some(findings)
}

fn by_group(rows: &[&DiskPoint], throttle: &Throttle) -> Option<Finding> {
    let quantity = if throttle.of == "bytes" { Quantity::Bytes } else { Quantity::Operations };
    let near = |point: &&&DiskPoint| {
        let rate = quantity.of(point);
        point.op() == throttle.op
            && rate.is_some_and(|rate| (rate / throttle.per_s - 1.0).abs() <= LIMIT_TOLERANCE)
    };
    let limited: Vec<&DiskPoint> = rows.iter().filter(near).copied().collect();
    let first = limited.first()?;
    let limit = quantity.shown(throttle.per_s);
    let headline = format!("A control group limits {}s to {limit}. The disk may do more.", throttle.op);
    Some(
        Finding::warning(THROTTLED.id, headline)
            .cause(format!(
                "{} allows Assay's control group no more {} per second.",
                throttle.at, throttle.of
            ))
            .fact(format!("limit of {}", throttle.device), &limit, &throttle.at)
            .facts(limited.iter().take(5).map(|point| rate_fact(point, quantity)))
            .confirm(format!("{}; {}", confirm(&throttle.at), again(first.case)))
            .advice("Programs in the group get this. To measure the disk, run outside or raise the limit.")
            .explains(speed_keys(&limited)),
    )
}

/// Shows a limit's file, or all of its name where the folder's own is blanked.
fn confirm(at: &str) -> String {
    match at.rsplit_once('/').filter(|(folder, _)| folder.contains('*')) {
        Some((_, name)) => {
            format!("grep -r . /sys/fs/cgroup --include={}", crate::words::shell(name))
        }
        None => format!("cat {}", crate::words::shell(at)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Operations,
    Bytes,
}

impl Quantity {
    /// Its rate at a point, per second.
    fn of(self, point: &DiskPoint) -> Option<f64> {
        match self {
            Quantity::Operations => point.iops(),
            Quantity::Bytes => point.bandwidth().map(|gb| gb * 1e9),
        }
    }

    fn other(self) -> Quantity {
        match self {
            Quantity::Operations => Quantity::Bytes,
            Quantity::Bytes => Quantity::Operations,
        }
    }

    fn shown(self, per_s: f64) -> String {
        match self {
            Quantity::Operations => format!("{per_s:.0} operations per second"),
            Quantity::Bytes if per_s >= 1e9 => figure(per_s / 1e9, "GB/s"),
            Quantity::Bytes => figure(per_s / 1e6, "MB/s"),
        }
    }

    /// The round number that this rate is, if it is one.
    fn round(self, per_s: f64) -> Option<f64> {
        let scales: &[f64] = match self {
            Quantity::Operations => &[1.0],
            Quantity::Bytes => &[1.0, 1_048_576.0],
        };
        let near = |scale: f64| {
            let value = per_s / scale;
            let power = 10f64.powf(value.log10().floor());
            let round = ROUND_DIGITS.iter().map(|digits| digits * power).chain([10.0 * power]);
            let best = round.min_by(|one, other| (one - value).abs().total_cmp(&(other - value).abs()))?;
            ((value / best - 1.0).abs() <= ROUND_TOLERANCE).then_some(best * scale)
        };
        scales.iter().copied().filter(|_| per_s.is_finite() && per_s > 0.0).find_map(near)
    }
}

fn rate_fact(point: &DiskPoint, quantity: Quantity) -> Fact {
    let shown = quantity.of(point).map_or(String::new(), |rate| quantity.shown(rate));
    Fact::new(point.words(), shown, point.key(point.rate_metric()))
}

/// Whether neither the link nor the load generator explains its rate.
fn has_no_other_limit(evidence: &Evidence, point: &DiskPoint) -> bool {
    let link = disk(evidence).and_then(|disk| disk.link.as_ref());
    let near_link =
        link.is_some_and(|link| point.bandwidth().is_some_and(|rate| rate >= 0.9 * link.gb_per_s));
    !near_link && point.median(ids::metric::GENERATOR_BUSY).is_none_or(|busy| busy < super::load::MIN_BUSY)
}

fn capped(rows: &[&DiskPoint], quantity: Quantity) -> Option<Finding> {
    let steady = |point: &&&DiskPoint| {
        let judged = point.judged(point.rate_metric());
        let cv = judged.and_then(|judged| judged.analysis.estimate.as_ref()?.cv);
        cv.is_some_and(|cv| cv < MAX_CV)
    };
    let rates: Vec<(&DiskPoint, f64)> =
        rows.iter().filter(steady).filter_map(|point| Some((*point, quantity.of(point)?))).collect();
    let apart = |one: &DiskPoint, other: &DiskPoint| {
        [ids::param::BLOCK, ids::param::DEPTH].iter().any(|name| {
            match (one.number(*name), other.number(*name)) {
                (Some(one), Some(other)) => one.max(other) >= 2.0 * one.min(other),
                _ => false,
            }
        })
    };
    let alike = |one: f64, other: f64| (one / other - 1.0).abs() <= ROUND_TOLERANCE;
    let best = rates.iter().filter_map(|(point, rate)| {
        let round = quantity.round(*rate)?;
        let limited: Vec<&DiskPoint> =
            rates.iter().filter(|(_, own)| alike(*own, *rate)).map(|(own, _)| *own).collect();
        let several = limited.iter().any(|other| apart(point, other));
        // Nothing goes beyond it, and what goes with it can be more elsewhere.
        let most = rows.iter().filter_map(|other| quantity.of(other)).fold(0.0, f64::max);
        let with = limited.iter().filter_map(|own| quantity.other().of(own)).reduce(f64::min)?;
        let most_other = rows.iter().filter_map(|other| quantity.other().of(other)).fold(0.0, f64::max);
        (several && most <= rate * (1.0 + 2.0 * ROUND_TOLERANCE) && most_other >= MIN_OTHER_GAIN * with)
            .then_some((limited, round, most_other))
    });
    let (limited, round, most_other) = best.max_by_key(|(limited, ..)| limited.len())?;
    let first = limited.first()?;
    let limit = quantity.shown(round);
    let elsewhere = quantity.other().shown(most_other);
    let headline = format!(
        "{}s stop at {limit} at every block size. The provider may cap the disk.",
        capital(first.op())
    );
    Some(
        Finding::warning(THROTTLED.id, headline)
            .cause(format!(
                "{} points agree within {} on a round number, with blocks of {}. No limit of Assay's control \
             group explains it.",
                limited.len(),
                percent(ROUND_TOLERANCE),
                blocks(&limited)
            ))
            .facts(limited.iter().take(6).map(|point| rate_fact(point, quantity)))
            .fact("at another block size", elsewhere, points_source(rows, quantity.other()))
            .confirm(format!("{} --profile full", again(first.case)))
            .advice("Look up the limits of the instance and of the volume; both apply.")
            .explains(speed_keys(&limited)),
    )
}

fn points_source(rows: &[&DiskPoint], quantity: Quantity) -> String {
    let rate = |point: &&&DiskPoint| quantity.of(point).unwrap_or(0.0);
    let best = rows.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)));
    best.map_or("the run's points".into(), |point| point.key(point.rate_metric()))
}

fn blocks(points: &[&DiskPoint]) -> String {
    let sizes = || points.iter().filter_map(|point| point.number(ids::param::BLOCK));
    let (least, most) = (sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    if most > 0.0 { format!("{}–{}", bytes(least), bytes(most)) } else { "one size".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers() {
        for (rate, round) in [(3004.0, 3000.0), (15_950.0, 16_000.0), (99_500.0, 100_000.0), (1000.0, 1000.0)]
        {
            assert_eq!(Quantity::Operations.round(rate), Some(round), "{rate}");
        }
        for rate in [3100.0, 17_350.0, 0.0, f64::NAN, f64::INFINITY, -3000.0] {
            assert_eq!(Quantity::Operations.round(rate), None, "{rate}");
        }
        assert_eq!(Quantity::Bytes.round(125.2 * 1_048_576.0), Some(125.0 * 1_048_576.0));
        assert_eq!(Quantity::Bytes.round(124.9e6), Some(125e6));
    }
}
