//! The points of disk rows, each with all that was measured there.

use std::collections::BTreeMap;

use crate::Evidence;
use crate::words::{bytes, shell};
use machine::Disk;
use model::vocabulary::disk as ids;
use model::vocabulary::{MetricId, ParamId};
use model::{Case, Fact, Params};
use stats::analysis::Judged;
use stats::order::median;

/// Rows about the disk, by the beginning of their names.
const GROUP: &str = "disk.";

/// One point of one case of a disk row.
pub struct DiskPoint<'a> {
    pub index: u32,
    pub case: &'a Case,
    pub params: Params,
    series: Vec<&'a Judged>,
}

/// All points of disk rows that gave numbers, in the order of the plan; `None` where there are
/// none.
pub fn points<'a>(evidence: &Evidence<'a>) -> Option<Vec<DiskPoint<'a>>> {
    let mut found: BTreeMap<(usize, String), DiskPoint> = BTreeMap::new();
    for judged in evidence.series.iter().filter(|judged| judged.series.case.bench.starts_with(GROUP)) {
        if judged.analysis.estimate.is_none() {
            continue;
        }
        let series = &judged.series;
        let place = (series.planned, format!("{:?}", series.point));
        let point = || DiskPoint {
            index: series.planned as u32,
            case: &series.case,
            params: series.params(),
            series: Vec::new(),
        };
        found.entry(place).or_insert_with(point).series.push(judged);
    }
    let points: Vec<DiskPoint> = found.into_values().collect();
    (!points.is_empty()).then_some(points)
}

impl<'a> DiskPoint<'a> {
    pub fn judged(&self, metric: MetricId) -> Option<&'a Judged> {
        self.series.iter().copied().find(|judged| judged.series.metric.name == metric)
    }

    /// The median of a metric, where it is a number that can be.
    pub fn median(&self, metric: MetricId) -> Option<f64> {
        let median = self.judged(metric)?.median()?;
        (median.is_finite() && median >= 0.0).then_some(median)
    }

    /// What at least half of its passes reached, of two or more: the lower one of the middle two.
    pub fn usual(&self, metric: MetricId) -> Option<f64> {
        let visits = self.judged(metric)?.series.processes.iter();
        let mut values: Vec<f64> = visits.filter_map(|visit| median(&visit.values)).collect();
        values.sort_by(f64::total_cmp);
        (values.len() >= 2).then(|| values[(values.len() - 1) / 2]).filter(|value| *value >= 0.0)
    }

    /// Whether the median of a metric passes this test.
    pub fn has(&self, metric: MetricId, test: impl Fn(f64) -> bool) -> bool {
        self.median(metric).is_some_and(test)
    }

    pub fn key(&self, metric: MetricId) -> String {
        self.judged(metric).map_or_else(|| self.case.key(), |judged| judged.series.key.clone())
    }

    /// A fact that is the median of one of its metrics.
    pub fn fact(&self, label: &str, metric: MetricId, shown: impl Fn(f64) -> String) -> Option<Fact> {
        Some(Fact::new(label, shown(self.median(metric)?), self.key(metric)))
    }

    pub fn bench(&self) -> &'a str {
        &self.case.bench
    }

    pub fn text(&self, name: ParamId) -> Option<&str> {
        self.params.get(name)?.text()
    }

    pub fn number(&self, name: ParamId) -> Option<f64> {
        self.params.get(name)?.number().filter(|number| *number > 0.0)
    }

    /// `read`, `write` or `mixed`; the default of benchmarks that do only one of them.
    pub fn op(&self) -> &str {
        self.text(ids::param::OP).unwrap_or(match self.case.id() {
            Some(ids::SUSTAINED) => "write",
            Some(ids::VERIFY) => "verify",
            _ => "read",
        })
    }

    /// Whether it goes through the page cache.
    pub fn buffered(&self) -> bool {
        self.text(ids::param::CACHE) == Some("buffered")
    }

    /// Whether it moves data that the device is to move as well.
    pub fn is_transfer(&self) -> bool {
        matches!(self.case.id(), Some(ids::SEQUENTIAL | ids::RANDOM | ids::PACED | ids::SUSTAINED))
    }

    pub fn is_paced(&self) -> bool {
        self.bench() == ids::PACED
    }

    /// Number of processes at once.
    pub fn jobs(&self) -> usize {
        self.case.placement.seats.len().max(1)
    }

    /// Operations per second: measured, or bandwidth over block size.
    pub fn iops(&self) -> Option<f64> {
        let measured = self.median(ids::metric::IOPS).or_else(|| self.median(ids::metric::ACHIEVED));
        measured
            .or_else(|| Some(self.median(ids::metric::BANDWIDTH)? * 1e9 / self.number(ids::param::BLOCK)?))
            .filter(|rate| *rate > 0.0)
    }

    /// GB/s: measured, or operations times block size.
    pub fn bandwidth(&self) -> Option<f64> {
        let measured = self.median(ids::metric::BANDWIDTH);
        measured
            .or_else(|| Some(self.iops()? * self.number(ids::param::BLOCK)? / 1e9))
            .filter(|rate| *rate > 0.0)
    }

    /// The metric of its rate.
    pub fn rate_metric(&self) -> MetricId {
        [ids::metric::IOPS, ids::metric::BANDWIDTH, ids::metric::ACHIEVED]
            .into_iter()
            .find(|name| self.judged(*name).is_some())
            .unwrap_or(ids::metric::IOPS)
    }

    /// Keys of all series of its speed; a limit explains all of them.
    pub fn speed_keys(&self) -> Vec<String> {
        let aside = [
            ids::metric::GENERATOR_BUSY,
            ids::metric::DEVICE_SHARE,
            ids::metric::DEVICE_BUSY,
            ids::metric::IN_FLIGHT,
            ids::metric::CPU_PER_IO,
        ];
        let speeds =
            self.series.iter().filter(|judged| !aside.iter().any(|own| judged.series.metric.name == *own));
        speeds.map(|judged| judged.series.key.clone()).collect()
    }

    /// `random read`, `buffered sequential write`, `fdatasync`.
    pub fn kind(&self) -> String {
        let row = self.bench().strip_prefix(GROUP).unwrap_or(self.bench());
        let buffered = if self.buffered() { "buffered " } else { "" };
        match self.op() {
            op @ ("read" | "write" | "mixed") => format!("{buffered}{row} {op}"),
            op => format!("{buffered}{op}"),
        }
    }

    /// `random read of 4 KiB, depth 32, 2 jobs`.
    pub fn words(&self) -> String {
        let row = self.bench().strip_prefix(GROUP).unwrap_or(self.bench());
        let mut said = format!("{row} {}", self.op());
        if let Some(block) = self.number(ids::param::BLOCK) {
            said.push_str(&format!(" of {}", bytes(block)));
        }
        if let Some(depth) = self.number(ids::param::DEPTH) {
            said.push_str(&format!(", depth {depth}"));
        }
        if self.buffered() {
            said.push_str(", buffered");
        }
        match self.jobs() {
            1 => said,
            jobs => format!("{said}, {jobs} jobs"),
        }
    }

    /// The parameters of its case and point, all or without one, to find its neighbours along it.
    pub fn but(&self, name: Option<ParamId>) -> String {
        let others: Vec<String> = self
            .params
            .iter()
            .filter(|(own, _)| name.is_none_or(|name| **own != *name))
            .map(|(own, value)| format!("{own}={value}"))
            .collect();
        format!("{} {}", self.bench(), others.join(" "))
    }
}

/// The same row again, on the same disk.
pub fn again(case: &Case) -> String {
    let input = |name: &str| case.inputs.get(name).map(|value| shell(value));
    let mut command = format!("assay run --only {}", shell(&case.bench));
    match (input("device"), input("dir")) {
        (Some(device), _) => command.push_str(&format!(" --device {device}")),
        (None, Some(dir)) => command.push_str(&format!(" --dir {dir}")),
        (None, None) => {}
    }
    command
}

/// The disk that these points were measured on, if it is described.
pub fn disk<'a>(evidence: &Evidence<'a>) -> Option<&'a Disk> {
    evidence.machine.disk.as_ref()
}

/// What it is called in a sentence.
pub fn name(evidence: &Evidence) -> String {
    disk(evidence).map_or("the disk".to_string(), |disk| super::super::words::clipped(&disk.name()))
}

/// The kernel's name of the one device below, for commands; the directory's own filesystem where
/// there is none.
pub fn device(evidence: &Evidence) -> Option<String> {
    let disk = disk(evidence)?;
    Some(shell(&disk.only().or_else(|| disk.top())?.name))
}

/// Keys of all series of the speed of these points.
pub fn speed_keys(points: &[&DiskPoint]) -> Vec<String> {
    points.iter().flat_map(|point| point.speed_keys()).collect()
}

/// Of these points the one with the highest median of a metric; those without it count as 0.
pub fn highest<'p, 'a>(points: &[&'p DiskPoint<'a>], metric: MetricId) -> Option<&'p DiskPoint<'a>> {
    let value = |point: &DiskPoint| point.median(metric).unwrap_or(0.0);
    points.iter().copied().max_by(|one, other| value(one).total_cmp(&value(other)))
}
