//! What used CPU and disk: the load generator, other I/O, and queue depth without a gain.

use std::collections::BTreeMap;

use super::points::{DiskPoint, again, device, disk, highest, name, points, speed_keys};
use crate::words::{duration_us, figure, percent};
use crate::{Evidence, Rule};
use model::vocabulary::disk as ids;
use model::{Fact, Finding};

pub const GENERATOR_BOUND: Rule = Rule {
    id: ids::rule::DISK_GENERATOR_BOUND,
    title: "The CPU limits a disk figure",
    topic: "disk CPU",
    meaning: "From some 100,000 I/Os per second on, one CPU cannot submit more. The figure is then the \
        CPU's, and the disk may do several times as much with more jobs.",
    action: "Treat the figure as a lower bound. Use a job on each core (profile full), or larger blocks, \
        which cost less CPU per byte. See it: assay run --only disk.random --profile full",
    when: "The load generator used 90 % of its CPUs' time or more, in a benchmark that bypasses the page \
        cache.",
    how: "generator_busy is all its user and system time. Interrupts and other work take the rest, so it \
        never reaches 100 %. Where more jobs did at least 1.1 times as much, the finding gives that as \
        proof. It also gives the time spent waiting for a CPU from 10 % on. Buffered benchmarks copy with \
        the CPU and polled ones wait with it, so neither is judged.",
    calm: "disk load generator had CPU left",
    looked_at: "its CPU time",
    source: file!(),
    check: generator_bound,
};

/// The share of its CPUs' time from which a generator has none left.
pub const MIN_BUSY: f64 = 0.9;
const MIN_JOBS_GAIN: f64 = 1.1;
const MIN_WAIT_SHARE: f64 = 0.1;

fn generator_bound(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let judged = points.iter().filter(|point| {
        let is_direct = point.is_transfer() && !point.is_paced() && !point.buffered();
        is_direct
            && point.text(ids::param::ENGINE) != Some("polled")
            && point.median(ids::metric::GENERATOR_BUSY).is_some()
    });
    let judged: Vec<&DiskPoint> = judged.collect();
    if judged.is_empty() {
        return None;
    }
    let is_busy = |point: &&DiskPoint| point.has(ids::metric::GENERATOR_BUSY, |busy| busy >= MIN_BUSY);
    let busy: Vec<&DiskPoint> = judged.iter().copied().filter(is_busy).collect();
    let Some(worst) = highest(&busy, ids::metric::GENERATOR_BUSY) else { return Some(Vec::new()) };
    let mut cause = "The load generator spent all its CPU time on I/O calls.".to_string();
    let more = more_jobs(&judged, worst);
    if let Some(more) = &more {
        let (jobs, times) = (more.point.jobs(), more.times);
        cause = format!("{jobs} jobs did {times:.1} times as much, so the disk can do more.");
    }
    let waited = waited(evidence, worst).filter(|share| *share >= MIN_WAIT_SHARE);
    if waited.is_some() {
        cause.push_str(" It also waited for a CPU that ran other work.");
    }
    let headline = format!(
        "The load of a {} kept its CPUs {} busy. The disk may do more.",
        worst.kind(),
        percent(worst.median(ids::metric::GENERATOR_BUSY)?)
    );
    Some(vec![
        Finding::warning(GENERATOR_BOUND.id, headline)
            .cause(cause)
            .facts(busy.iter().take(4).filter_map(|point| {
                let label = format!("CPU time of its CPUs in {}", point.words());
                point.fact(&label, ids::metric::GENERATOR_BUSY, percent)
            }))
            .facts(worst.fact("CPU time per I/O", ids::metric::CPU_PER_IO, |us| figure(us, "us")))
            .facts(more.map(|more| {
                let key = more.point.key(more.point.rate_metric());
                Fact::new(format!("with {} jobs", more.point.jobs()), figure(more.rate, "1/s"), key)
            }))
            .facts(
                waited.map(|share| {
                    Fact::new("waited for a CPU", percent(share), worst.key(worst.rate_metric()))
                }),
            )
            .confirm(format!("{} --profile full", again(worst.case)))
            .advice("Treat it as a lower bound. The full profile has a job on each core.")
            .explains(speed_keys(&busy)),
    ])
}

/// The same row with more jobs, which did more.
struct MoreJobs<'p, 'a> {
    point: &'p DiskPoint<'a>,
    rate: f64,
    times: f64,
}

fn more_jobs<'p, 'a>(points: &[&'p DiskPoint<'a>], worst: &DiskPoint) -> Option<MoreJobs<'p, 'a>> {
    let one = worst.iops()?;
    let same = |other: &&&DiskPoint| other.but(None) == worst.but(None) && other.jobs() > worst.jobs();
    points.iter().filter(same).find_map(|point| {
        let rate = point.iops().filter(|rate| *rate >= MIN_JOBS_GAIN * one)?;
        Some(MoreJobs { point, rate, times: rate / one })
    })
}

/// Share of the samples' time that the load generator waited for a CPU; `None` if not recorded.
fn waited(evidence: &Evidence, point: &DiskPoint) -> Option<f64> {
    let series = &point.judged(point.rate_metric())?.series;
    let (mut waited, mut all) = (0.0, 0.0);
    for visit in evidence.visits_of(point.index).filter(|visit| visit.reason.is_none()) {
        for samples in visit.samples.iter().filter(|samples| samples.point == series.point) {
            let Some(column) = &samples.beside.wait_ns else { continue };
            for (window, ns) in samples.ns.iter().enumerate() {
                waited += column.get(window).unwrap_or(0.0);
                all += ns;
            }
        }
    }
    (all > 0.0).then_some(waited / all).filter(|share| (0.0..=1.0).contains(share))
}

pub const OTHERS: Rule = Rule {
    id: ids::rule::DISK_OTHERS,
    title: "Other I/O used the disk",
    topic: "disk traffic",
    meaning: "Other I/O on the same device takes its share of bandwidth, and adds even more latency. Figures \
        of the disk may be too slow.",
    action: "Measure again when the device is idle (its counters stand still), or treat the figures as those \
        of a shared disk. See it: cat /sys/class/block/DEVICE/stat",
    when: "The device moved over 1.1 times the bytes of a direct read, or over 1.25 times those of a direct \
        write. The excess is at least 1 MB/s.",
    how: "The device's own counters include all I/O. Writes have the higher limit because journals and \
        metadata are written too. They are not judged where layers write copies (RAID, several devices below \
        one). Benchmarks at a fixed rate count too: their device is idle enough to show other I/O well.",
    calm: "no foreign disk traffic",
    looked_at: "device counters",
    source: file!(),
    check: others,
};

const MAX_READ_SHARE: f64 = 1.1;
const MAX_WRITTEN_SHARE: f64 = 1.25;
const MIN_EXCESS_GB_PER_S: f64 = 1e-3;

fn others(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let copies = disk(evidence).is_some_and(|disk| disk.stack.iter().any(|block| block.below.len() > 1));
    let is_judged = |point: &&DiskPoint| {
        let op = point.op();
        point.is_transfer()
            && !point.buffered()
            && point.median(ids::metric::DEVICE_SHARE).is_some()
            && (op == "read" || op == "write" && !copies)
    };
    let judged: Vec<&DiskPoint> = points.iter().filter(is_judged).collect();
    if judged.is_empty() {
        return None;
    }
    let besides = |point: &DiskPoint| {
        let (share, own) = (point.median(ids::metric::DEVICE_SHARE)?, point.bandwidth()?);
        let limit = if point.op() == "read" { MAX_READ_SHARE } else { MAX_WRITTEN_SHARE };
        let more = (share - 1.0) * own;
        (share > limit && more >= MIN_EXCESS_GB_PER_S).then_some(more)
    };
    let met: Vec<(&DiskPoint, f64)> =
        judged.into_iter().filter_map(|point| Some((point, besides(point)?))).collect();
    let Some((worst, more)) = met.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Some(Vec::new());
    };
    let stalled = Evidence::total(evidence.visits_of(worst.index), |conditions| conditions.psi_io_ms);
    let device = device(evidence).unwrap_or_else(|| "DEVICE".into());
    let headline = format!(
        "Other I/O moved {} during a {}. Figures of the disk may be too slow.",
        figure(more * 1e3, "MB/s"),
        worst.kind()
    );
    Some(vec![Finding::warning(OTHERS.id, headline)
        .cause("Other processes, background work, a rebuild or another guest used the device.")
        .facts(met.iter().take(5).map(|(point, more)| {
            let own = figure(point.bandwidth().unwrap_or(0.0) * 1e3, "MB/s");
            let amount = format!("{} besides Assay's {own}", figure(more * 1e3, "MB/s"));
            Fact::new(point.words(), amount, point.key(ids::metric::DEVICE_SHARE))
        }))
        .facts(stalled.map(|total| {
            Fact::new("some task waited for I/O", percent(total.rate()), "/proc/pressure/io over these passes")
        }))
        .confirm(format!("cat /sys/class/block/{device}/stat; sleep 5; cat /sys/class/block/{device}/stat; grep . /proc/[0-9]*/io"))
        .advice("Measure again when the device is idle: its counters stand still.")
        .explains(met.iter().flat_map(|(point, _)| point.speed_keys()))])
}

pub const DEPTH_USELESS: Rule = Rule {
    id: ids::rule::DISK_DEPTH_USELESS,
    title: "A deeper queue adds latency but no IOPS",
    topic: "queue depth",
    meaning: "More I/Os in flight help until everything below is busy. Beyond that each I/O only waits in a \
        queue. The figure at the deepest point is no better, and its latency is the queue's.",
    action: "Use the smallest depth that gives the full rate, and quote the latency at that depth. See it: \
        assay run --only disk.random --profile full",
    when: "From some depth on, no depth at least twice as deep gives 5 % more. The median latency grows by \
        at least half of what the depth does.",
    how: "Compared are the depths of one benchmark and block size. By Little's law the number in flight is \
        rate × latency, so at an equal rate latency grows with depth. If in_flight (what the device had) is \
        below 60 % of the depth, the queue is in front of the device.",
    calm: "a deeper disk queue adds IOPS",
    looked_at: "rate by depth",
    source: file!(),
    check: depth_useless,
};

const MIN_DEPTH_GAIN: f64 = 1.05;
const MIN_DEPTH_RATIO: f64 = 2.0;

fn depth_useless(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let mut rows: BTreeMap<String, Vec<&DiskPoint>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.is_transfer() && !point.is_paced() && !point.buffered()) {
        let known = point.number(ids::param::DEPTH).is_some()
            && point.iops().is_some()
            && point.median(ids::metric::LATENCY_P50).is_some();
        if known {
            rows.entry(format!("{} {}", point.index, point.but(Some(ids::param::DEPTH))))
                .or_default()
                .push(point);
        }
    }
    rows.retain(|_, row| row.len() >= 2);
    if rows.is_empty() {
        return None;
    }
    let findings = rows.into_values().filter_map(|mut row| {
        row.sort_by(|one, other| {
            one.number(ids::param::DEPTH)
                .unwrap_or(0.0)
                .total_cmp(&other.number(ids::param::DEPTH).unwrap_or(0.0))
        });
        useless(evidence, &row)
    });
    Some(findings.collect())
}

fn useless(evidence: &Evidence, row: &[&DiskPoint]) -> Option<Finding> {
    let measured = |point: &DiskPoint| {
        Some((point.number(ids::param::DEPTH)?, point.iops()?, point.median(ids::metric::LATENCY_P50)?))
    };
    let at = row.iter().position(|point| {
        let Some((depth, rate, latency)) = measured(point) else { return false };
        let deeper: Vec<_> = row
            .iter()
            .filter_map(|other| measured(other))
            .filter(|other| other.0 >= MIN_DEPTH_RATIO * depth)
            .collect();
        let waits = |other: &(f64, f64, f64)| other.2 / latency >= 0.5 * other.0 / depth;
        !deeper.is_empty() && deeper.iter().all(|other| other.1 < MIN_DEPTH_GAIN * rate && waits(other))
    })?;
    let (enough, deepest) = (row[at], row.last()?);
    let ((depth, rate, latency), (most, at_most, waited)) = (measured(enough)?, measured(deepest)?);
    let at_depth = |(point, depth, rate, latency): (&DiskPoint, f64, f64, f64)| {
        let text = format!("{} at {} in the median", figure(rate, "I/Os per second"), figure(latency, "us"));
        Fact::new(format!("depth {depth}"), text, point.key(ids::metric::LATENCY_P50))
    };
    let before = deepest.has(ids::metric::IN_FLIGHT, |count| count < 0.6 * most * deepest.jobs() as f64);
    let (op, long, short) = (enough.op(), duration_us(waited), duration_us(latency));
    let headline =
        format!("A queue of {most} instead of {depth} adds no {op}s, but takes {long} instead of {short}");
    Some(
        Finding::note(DEPTH_USELESS.id, headline)
            .cause(if before {
                "The queue is in front of the device: a scheduler, a throttle or the generator."
            } else {
                "The I/Os waited in the device's own queue: it does no more at once."
            })
            .facts([(enough, depth, rate, latency), (deepest, most, at_most, waited)].map(at_depth))
            .facts(deepest.fact("in flight at the device", ids::metric::IN_FLIGHT, |count| {
                format!("{count:.1} of {most}")
            }))
            .confirm(format!("{} --profile full", again(enough.case)))
            .advice(format!(
                "Use a depth of {depth} on {} with such blocks, and quote the latency at that depth.",
                name(evidence)
            )),
    )
}
