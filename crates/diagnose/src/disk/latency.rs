//! Latencies with a long tail, and syncs that are too fast to be true.

use super::points::{DiskPoint, again, device, disk, points};
use crate::words::{capital, duration_us, figure, shell};
use crate::{Evidence, Rule};
use machine::disk::{Block, Disk};
use model::vocabulary::MetricId;
use model::vocabulary::disk as ids;
use model::{Fact, Finding, Severity};

pub const TAIL: Rule = Rule {
    id: ids::rule::DISK_LATENCY_TAIL,
    title: "One I/O in 1,000 takes far longer than the median",
    topic: "disk latency",
    meaning: "A median hides the slowest requests. They come from a flush of the write cache, a journal \
        commit, flash that cleans up, or a busy host. Work that waits for many I/Os waits for the slowest.",
    action: "Plan with the percentile. Look for other I/O, and try another I/O scheduler, a lower \
        vm.dirty_bytes or a journal on another disk. See it: assay run --only disk.random --new",
    when: "The 99.9th percentile is at least 5 ms and 20 times the median, or the longest I/O took half a \
        second.",
    how: "A percentile needs ten I/Os beyond it. It counts if at least half of two or more passes reach it, \
        since one bad pass is no tail. A spinning disk has a 99.9th percentile near 10 times its median by \
        queueing alone. Buffered figures count too: their stalls are the kernel's write-back.",
    calm: "disk latency without a long tail",
    looked_at: "percentiles",
    source: file!(),
    check: tail,
};

const MIN_TAIL_RATIO: f64 = 20.0;
const MIN_TAIL_US: f64 = 5_000.0;
const MIN_STALL_US: f64 = 500_000.0;

/// What makes a tail a long one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tail {
    Thousandth(f64),
    Longest(f64),
}

impl Tail {
    fn of(point: &DiskPoint) -> Option<Tail> {
        let (p50, p999) = (point.median(ids::metric::LATENCY_P50)?, point.usual(ids::metric::LATENCY_P999));
        let longest =
            point.median(ids::metric::LATENCY_MAX).filter(|max| *max >= MIN_STALL_US).map(Tail::Longest);
        // A stall of half a second is the graver one, whatever a thousandth takes.
        longest.or(p999.filter(|us| *us >= MIN_TAIL_RATIO * p50 && *us >= MIN_TAIL_US).map(Tail::Thousandth))
    }

    fn us(self) -> f64 {
        match self {
            Tail::Thousandth(us) | Tail::Longest(us) => us,
        }
    }

    fn metric(self) -> MetricId {
        match self {
            Tail::Thousandth(_) => ids::metric::LATENCY_P999,
            Tail::Longest(_) => ids::metric::LATENCY_MAX,
        }
    }

    fn words(self, kind: &str) -> String {
        match self {
            Tail::Thousandth(_) => format!("One {kind} in 1,000"),
            Tail::Longest(_) => format!("The longest {kind} of a pass"),
        }
    }
}

fn tail(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let with_percentiles = points.iter().filter(|point| {
        let has_tail = point.median(ids::metric::LATENCY_P999).or(point.median(ids::metric::LATENCY_MAX));
        point.bench() != ids::TRIM
            && point.has(ids::metric::LATENCY_P50, |p50| p50 > 0.0)
            && has_tail.is_some()
    });
    let with_percentiles: Vec<&DiskPoint> = with_percentiles.collect();
    if with_percentiles.is_empty() {
        return None;
    }
    let slow: Vec<(&DiskPoint, Tail)> =
        with_percentiles.iter().filter_map(|point| Some((*point, Tail::of(point)?))).collect();
    let us = |(_, slow): &&(&DiskPoint, Tail)| slow.us();
    let Some((worst, how)) = slow.iter().max_by(|one, other| us(one).total_cmp(&us(other))) else {
        return Some(Vec::new());
    };
    let device = device(evidence).unwrap_or_else(|| "DEVICE".into());
    let (kind, longest) = (how.words(&worst.kind()), duration_us(how.us()));
    let median = duration_us(worst.median(ids::metric::LATENCY_P50).unwrap_or(0.0));
    let headline = format!("{kind} takes {longest}, the median {median}. Plan with the tail.");
    Some(vec![
        Finding::note(TAIL.id, headline)
            .cause(if slow.iter().any(|(point, _)| point.op() != "read") {
                "Writes wait when a write cache or a journal is flushed, or flash cleans up."
            } else {
                "Reads wait for other writes, for flash that cleans up, or for the host."
            })
            .facts(
                slow.iter().take(5).map(|(point, how)| {
                    Fact::new(point.words(), percentiles(point), point.key(how.metric()))
                }),
            )
            .confirm(format!("{}; cat /sys/class/block/{device}/stat", again(worst.case)))
            .advice("Look for other I/O; try another I/O scheduler or a lower vm.dirty_bytes."),
    ])
}

/// `median 80.0 us, 99.9 % 5000 us`, as far as they are known.
fn percentiles(point: &DiskPoint) -> String {
    let parts = [
        ("median", ids::metric::LATENCY_P50),
        ("99 %", ids::metric::LATENCY_P99),
        ("99.9 %", ids::metric::LATENCY_P999),
        ("longest", ids::metric::LATENCY_MAX),
    ];
    let known = parts.into_iter().filter_map(|(label, metric)| {
        let us = point.usual(metric).or_else(|| point.median(metric))?;
        Some(format!("{label} {}", figure(us, "us")))
    });
    known.collect::<Vec<String>>().join(", ")
}

pub const UNSAFE_FAST: Rule = Rule {
    id: ids::rule::DISK_UNSAFE_FAST,
    title: "fsync is faster than the disk can write",
    topic: "fsync",
    meaning: "fsync returns sooner than the medium can have the data, so a power cut may lose it. Barriers \
        are off, a host keeps the data in its memory, or a volatile cache ignores the flush. Databases are \
        then as fast as they are unsafe.",
    action: "Do not rely on it for data that must survive, nor compare it with disks that flush. Mount with \
        barriers, and have the host flush (cache=none or directsync). See it: assay run --only disk.sync \
        --new",
    when: "The median of disk.sync is below 20 µs on a disk with a volatile write cache. Or it is below 1 ms \
        on a spinning disk, or on a mount without barriers.",
    how: "A flush takes a round trip to the device and a write of flash, 20 µs at least. Half a turn takes 2 \
        ms at 15,000 turns per minute. A cache is volatile where the kernel's write_cache is `write back`. \
        Disks with `write through` (a capacitor, or no cache) may be that fast. Of a spinning disk all \
        devices must report it. Without barriers means mounted with nobarrier or barrier=0. Filesystems in \
        memory are left out.",
    calm: "fsync reaches the disk",
    looked_at: "fsync times",
    source: file!(),
    check: unsafe_fast,
};

const MIN_FLUSH_US: f64 = 20.0;
const MIN_SPINNING_US: f64 = 1000.0;

fn unsafe_fast(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let disk = disk(evidence).filter(|disk| !disk.is_memory())?;
    let syncs: Vec<&DiskPoint> = points
        .iter()
        .filter(|point| point.bench() == ids::SYNC && point.median(ids::metric::LATENCY_P50).is_some())
        .collect();
    if syncs.is_empty() || disk.leaves().next().is_none() {
        return None;
    }
    let flush = Flush::of(disk);
    let Some(limit) = flush.min_us() else { return Some(Vec::new()) };
    let fast = syncs.into_iter().filter(|point| point.has(ids::metric::LATENCY_P50, |p50| p50 < limit));
    let fast: Vec<&DiskPoint> = fast.collect();
    let Some(first) = fast.first() else { return Some(Vec::new()) };
    let (call, what) = (capital(first.op_of_sync()), if flush.spins { "a spinning disk" } else { "a flush" });
    let median = duration_us(first.median(ids::metric::LATENCY_P50).unwrap_or(0.0));
    let headline =
        format!("{call} takes {median}, less than {what} can take. A power cut may lose synced data.");
    let mut confirm = again(first.case);
    if let Some(point) = &disk.mount_point {
        let point = shell(point);
        confirm = format!("grep -F ' {} ' /proc/self/mountinfo; {confirm}", point.trim_matches('\''));
    }
    let (severity, cause) = flush.cause();
    Some(vec![
        Finding::of(UNSAFE_FAST.id, severity, headline)
            .cause(cause)
            .facts(fast.iter().filter_map(|point| {
                point.fact(&point.words(), ids::metric::LATENCY_P50, |us| figure(us, "us"))
            }))
            .facts(flush.facts())
            .confirm(confirm)
            .advice(
                "Do not rely on it for data that must survive. Mount with barriers; have the host flush \
                 (cache=none).",
            )
            .explains(fast.iter().map(|point| point.key(ids::metric::LATENCY_P50))),
    ])
}

/// What a disk does with a flush.
struct Flush<'a> {
    disk: &'a Disk,
    /// The layer that reports a volatile write cache.
    volatile: Option<&'a Block>,
    spins: bool,
    /// The filesystem never asks for one.
    off: bool,
}

impl<'a> Flush<'a> {
    fn of(disk: &'a Disk) -> Flush<'a> {
        Flush {
            disk,
            volatile: disk.leaves().find(|leaf| leaf.write_cache.as_deref() == Some("write back")),
            spins: disk.is_solid() == Some(false),
            off: disk.has_option("nobarrier") || disk.options.iter().any(|option| option == "barrier=0"),
        }
    }

    /// Below this no sync can have reached the medium; `None` where any time is possible.
    fn min_us(&self) -> Option<f64> {
        // A controller with a battery or a capacitor may answer sooner.
        let safe = self.disk.leaves().all(|leaf| leaf.write_cache.as_deref() == Some("write through"));
        match self.volatile {
            _ if self.spins && !safe || self.off => Some(MIN_SPINNING_US),
            Some(_) => Some(MIN_FLUSH_US),
            None => None,
        }
    }

    fn cause(&self) -> (Severity, &'static str) {
        if self.off {
            (
                Severity::Problem,
                "The filesystem is mounted without barriers: it never asks the disk to flush.",
            )
        } else if self.disk.is_virtual() == Some(true) {
            (Severity::Warning, "The host answers a flush from its own memory, or a layer ignores it.")
        } else if self.spins {
            (Severity::Problem, "The disk or its controller keeps the data in memory.")
        } else {
            (Severity::Warning, "Its cache is volatile, and no flash can be written that fast.")
        }
    }

    fn facts(&self) -> impl Iterator<Item = Fact> {
        let cache = self.volatile.map(|leaf| {
            let file = format!("/sys/class/block/{}/queue/write_cache", leaf.name);
            Fact::new(format!("write cache of {}", leaf.name), "write back (volatile)", file)
        });
        let options = Fact::new("mounted with", self.disk.options.join(","), "/proc/self/mountinfo");
        cache.into_iter().chain(Some(options).filter(|_| self.off))
    }
}

impl DiskPoint<'_> {
    /// The call that was timed.
    fn op_of_sync(&self) -> &str {
        self.text(ids::param::OP).unwrap_or("fsync")
    }
}
