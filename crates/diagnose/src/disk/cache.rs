//! Disk figures that come from a cache.

use super::points::{DiskPoint, again, disk, name, points, speed_keys};
use crate::words::{capital, clipped, duration_us, figure, percent, shell};
use crate::{Evidence, Rule};
use machine::disk::Block;
use model::vocabulary::disk as ids;
use model::{Effect, Finding};

pub const PAGE_CACHE: Rule = Rule {
    id: ids::rule::DISK_PAGE_CACHE,
    title: "A cache answered instead of the disk",
    topic: "page cache",
    meaning: "The page cache answers reads from memory and takes writes at once, so a disk seems up to ten \
        times faster. Most published disk figures that are too good come from this. A guest cannot see the \
        caches of its host.",
    action: "For the disk's own speed use direct I/O on a filesystem that supports it, or --device. See it: \
        assay run --only disk.random --new",
    when: "The disk moved less than 90 % of a benchmark's bytes. Or random direct reads of a spinning disk \
        take less than 1 ms in the median. Or a loop device without direct I/O lies below the filesystem.",
    how: "The device's own counters (device_share) are read before and after. The missing 10 % cover I/O \
        under way at either end. Figures of direct I/O are rejected then; they stand for the device. \
        Buffered figures are the cache's by nature and only carry the cause. Half a turn takes 2 ms at \
        15,000 turns per minute, so a cache of the disk or its controller answered. All I/O through a loop \
        device without direct I/O passes the page cache of its file, whatever the device's counters show.",
    calm: "page cache bypassed",
    looked_at: "device counters",
    source: file!(),
    check,
};

/// The least share of our bytes that the device must have moved.
const MIN_DEVICE_SHARE: f64 = 0.9;
/// A disk that turns cannot be this fast, us.
const MIN_SPINNING_US: f64 = 1000.0;

fn check(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let transfers: Vec<&DiskPoint> = points.iter().filter(|point| point.is_transfer()).collect();
    let spins = disk(evidence).and_then(|disk| disk.is_solid()) == Some(false);
    let looked = transfers.iter().any(|point| point.median(ids::metric::DEVICE_SHARE).is_some());
    let mut findings = Vec::new();
    for buffered in [false, true] {
        let missed = transfers.iter().copied().filter(|point| {
            point.buffered() == buffered
                && point.has(ids::metric::DEVICE_SHARE, |share| share < MIN_DEVICE_SHARE)
        });
        findings.extend(not_moved(&missed.collect::<Vec<_>>(), buffered));
    }
    findings.extend(through_loop(evidence, &transfers));
    if spins {
        findings.extend(faster_than_half_a_turn(evidence, &transfers));
    }
    (looked || spins || !findings.is_empty()).then_some(findings)
}

/// Random direct reads that are faster than half a turn of a disk that turns.
fn faster_than_half_a_turn(evidence: &Evidence, transfers: &[&DiskPoint]) -> Option<Finding> {
    let fast = transfers.iter().copied().filter(|point| {
        let is_random = point.bench() == ids::RANDOM && point.op() == "read" && !point.buffered();
        is_random && point.has(ids::metric::LATENCY_P50, |p50| p50 < MIN_SPINNING_US)
    });
    let fast: Vec<&DiskPoint> = fast.collect();
    let first = fast.first()?;
    let headline = format!(
        "{} answers random reads in {}, faster than it turns. A cache of its own answers.",
        capital(&name(evidence)),
        duration_us(first.median(ids::metric::LATENCY_P50).unwrap_or(0.0))
    );
    Some(
        Finding::warning(PAGE_CACHE.id, headline)
            .cause("The disk or its controller has a cache, and the file is small enough for it.")
            .facts(fast.iter().take(5).filter_map(|point| {
                point.fact(&point.words(), ids::metric::LATENCY_P50, |us| figure(us, "us"))
            }))
            .confirm(format!("{} --profile full", again(first.case)))
            .advice("Measure in a directory with more free space: files grow with it.")
            .explains(speed_keys(&fast)),
    )
}

/// A loop device that reads and writes its file through the page cache.
fn through_loop(evidence: &Evidence, transfers: &[&DiskPoint]) -> Option<Finding> {
    let buffers = |block: &&Block| block.backing_file.is_some() && block.direct_io == Some(false);
    let block = disk(evidence)?.stack.iter().find(buffers)?;
    let direct: Vec<&DiskPoint> = transfers.iter().copied().filter(|point| !point.buffered()).collect();
    let first = direct.first()?;
    let headline =
        format!("Loop device {} reads its file through the page cache. Figures are the cache's.", block.name);
    Some(
        Finding::warning(PAGE_CACHE.id, headline)
            .cause("Direct I/O to it skips only its own cache, not that of its file.")
            .fact("direct I/O of the loop device", "off", format!("/sys/block/{}/loop/dio", block.name))
            .fact(
                "its file",
                clipped(block.backing_file.as_deref().unwrap_or("")),
                format!("/sys/block/{}/loop/backing_file", block.name),
            )
            .confirm(format!("losetup --list /dev/{}; {}", shell(&block.name), again(first.case)))
            .advice(
                "Switch it on (`losetup --direct-io=on`), or measure in the directory of the file itself.",
            )
            .explains(speed_keys(&direct)),
    )
}

fn not_moved(points: &[&DiskPoint], buffered: bool) -> Option<Finding> {
    let share = |point: &DiskPoint| point.median(ids::metric::DEVICE_SHARE).unwrap_or(1.0);
    let worst = points.iter().min_by(|one, other| share(one).total_cmp(&share(other)))?;
    let (moved, kind) = (percent(worst.median(ids::metric::DEVICE_SHARE)?), worst.kind());
    let (draft, advice, effect) = if buffered {
        (
            Finding::note(
                PAGE_CACHE.id,
                format!(
                    "The disk moved {moved} of the bytes of a {kind}. Buffered figures are the page cache's."
                ),
            )
            .cause(
                "Buffered reads of recent data are copies in memory; buffered writes reach the disk later.",
            ),
            "For the disk's own speed use the direct figures.",
            Effect::Explains,
        )
    } else {
        (
            Finding::problem(
                PAGE_CACHE.id,
                format!("The disk moved only {moved} of the bytes of a {kind}. A cache moved the rest."),
            )
            .cause("A filesystem or a layer below it answered from memory, despite direct I/O."),
            "Do not use these figures. Use a filesystem that supports O_DIRECT, or --device.",
            Effect::Rejects,
        )
    };
    let unit = worst.judged(worst.rate_metric()).map_or("", |judged| &judged.series.metric.unit);
    let of_bytes = |share: f64| format!("the device moved {} of the bytes", percent(share));
    let shares = points.iter().take(5);
    Some(
        draft
            .facts(shares.filter_map(|point| point.fact(&point.words(), ids::metric::DEVICE_SHARE, of_bytes)))
            .facts(worst.fact("measured", worst.rate_metric(), |value| figure(value, unit)))
            .confirm(format!("cat /proc/diskstats; {}; cat /proc/diskstats", again(worst.case)))
            .advice(advice)
            .affects(effect, speed_keys(points)),
    )
}
