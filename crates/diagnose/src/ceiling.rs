//! Figures above a physical limit.

use std::collections::HashMap;

use super::network::link_ceiling;
use super::words::{bytes, capital, figure, shell, shown};
use super::{Evidence, Rule};
use model::vocabulary as ids;
use model::{Finding, FindingDraft, Form, Samples, Visit};
use stats::analysis::Judged;
use stats::series::Series;

pub const RULES: &[Rule] = &[CEILING];

const CEILING: Rule = Rule {
    id: ids::host::rule::ABOVE_CEILING,
    title: "A figure is above a physical limit",
    topic: "limits",
    meaning: "No host can reach this figure, so the measurement is wrong, however often it repeats. Typical \
        reasons are a block that stayed in a cache, bytes that never moved, or a clock that stood still.",
    action: "Do not use the figure. Measure it again; if it repeats, report a bug with the run file. See it: \
        assay run --only BENCHMARK --new",
    when: "The figure is above the limit of the core, the memory channels, the disk's link or the network's \
        link. Or one of its samples has no work, or a length that no clock can time. The figure is rejected.",
    how: "Core: 128 bytes per cycle and task (two 64-byte loads, the widest core built), and at most 16 loads \
        or operations per cycle. The clock is the measured one, or the higher one read beside samples, times \
        1.25 for turbo. Memory: blocks beyond the last-level cache \
        against rate × width of all channels, if module names or EDAC show them, else of all modules. \
        Traffic on the bus is an estimate and is not judged. Disk, past the page cache: the link carries the \
        bytes, or the operations times their size. A cold file: that link (NVMe or SATA, on bare metal), or \
        the speed at which one task of the run read memory. A warm file beyond the caches: 1.25 times that \
        speed. A cold file with neither a known link nor memory.bandwidth cannot be judged, so the check \
        does not count as passed. Samples: some work, no shorter than the clock's step, no longer than their \
        pass.",
    calm: "no figure above a physical limit",
    looked_at: "all figures",
    source: file!(),
    check: ceiling,
};

/// Two 64-byte loads per cycle: Intel since Skylake-SP with AVX-512, AMD since Zen 5; ARM's widest
/// moves less.
const BYTES_PER_CYCLE: f64 = 128.0;
/// No core built retires more operations in one cycle.
const OPERATIONS_PER_CYCLE: f64 = 16.0;
/// The measured clock has its own error, and turbo may rise while something else is measured.
const ALLOWANCE: f64 = 1.25;
/// Assumed where no clock was measured: above any core that was ever sold.
const MAX_GHZ: f64 = 10.0;

fn ceiling(evidence: &Evidence) -> Option<Vec<Finding>> {
    let ghz = highest_clock_ghz(evidence);
    let measured = Measured::of(evidence);
    let mut findings: Vec<Finding> = Vec::new();
    let mut unlimited = false;
    for judged in evidence.series {
        let Some(estimate) = &judged.analysis.estimate else { continue };
        if let Some(finding) = impossible_window(evidence, &measured, judged) {
            findings.push(finding);
            continue;
        }
        let (of_disk, of_file) = (disk_ceiling(evidence, judged), file_ceiling(evidence, judged));
        unlimited |= of_disk.is_none() && of_file.is_none() && is_cold_file(judged);
        let (of_core, of_memory) = (core_ceiling(evidence, judged, ghz), memory_ceiling(evidence, judged));
        let limits = [of_core, of_memory, of_disk, of_file, link_ceiling(evidence, judged)];
        let form = judged.series.metric.form;
        let exceeded =
            |limit: &PhysicalLimit| limit.value.is_finite() && beyond(form, estimate.median, limit.value);
        let Some(limit) = limits.into_iter().flatten().find(exceeded) else { continue };
        let unit = &judged.series.metric.unit;
        let what = format!("shows {} (limit {})", shown(estimate.median, unit), shown(limit.value, unit));
        let draft = impossible(evidence, judged, &what)
            .cause(limit.cause)
            .fact("measured", figure(estimate.median, unit), &judged.series.key)
            .fact("limit", figure(limit.value, unit), limit.source);
        findings.push(reject(draft, judged, WRONG_BENCHMARK));
    }
    // Without a known link and memory in the same run a cold file may have been warm: then the
    // check has not passed.
    (!unlimited || !findings.is_empty()).then_some(findings)
}

/// The core clock that no sample exceeded by much, GHz. A limit may not rest on a clock that other
/// work made look slow, so the clocks that were read beside the samples count, too.
fn highest_clock_ghz(evidence: &Evidence) -> Option<f64> {
    let beside_samples = stats::order::quantile(&evidence.clocks_ghz(), 0.95);
    evidence.core_clock_ghz().into_iter().chain(beside_samples).reduce(f64::max)
}

/// Why a user should report it.
const WRONG_BENCHMARK: &str = ": the benchmark is wrong on this host.";

fn impossible(evidence: &Evidence, judged: &Judged, what: &str) -> FindingDraft {
    let whose = capital(&evidence.name(&judged.series.case));
    Finding::problem(CEILING.id, format!("{whose} {what}. Do not use this figure."))
}

fn reject(draft: FindingDraft, judged: &Judged, why_report: &str) -> Finding {
    draft
        .confirm(format!("assay run --only {}", shell(&judged.series.case.bench)))
        .advice(format!("Do not use this figure. If it repeats, report a bug{why_report}"))
        .rejects([&judged.series.key])
}

/// A sample that no clock can have timed: shorter than the clock's step, or longer than the pass
/// around it.
fn impossible_window(evidence: &Evidence, measured: &Measured, judged: &Judged) -> Option<Finding> {
    let series = &judged.series;
    if matches!(series.metric.form, Form::Value | Form::Quantile { .. }) {
        return None;
    }
    let step_ns = evidence.run.header.clock.resolution_ns;
    // A network sample may be empty: a throttled receiver takes nothing for a while.
    let idle = idle_window(evidence, measured, judged).filter(|_| !series.case.bench.starts_with("network."));
    if idle.is_some() {
        return idle;
    }
    let (_, ns, visit) = measured.windows(series).find(|(_, ns, visit)| {
        let visit_ns = visit.conditions.wall_ms * 1e6;
        *ns < step_ns || *ns > visit_ns
    })?;
    let what = format!("has a sample of {}, which no clock can time", figure(ns, "ns"));
    let draft = impossible(evidence, judged, &what)
        .cause("The clock stood still or jumped during the sample, or the file was damaged.")
        .fact("sample", figure(ns, "ns"), &series.key)
        .fact("step of the clock", figure(step_ns, "ns"), "run header")
        .fact("its pass", figure(visit.conditions.wall_ms, "ms"), format!("pass {}", visit.order));
    Some(reject(draft, judged, ", with the clock that the run's header names."))
}

/// What every pass that counts measured, by the key of its series.
struct Measured<'a>(HashMap<String, Vec<(&'a Visit, &'a Samples)>>);

impl<'a> Measured<'a> {
    fn of(evidence: &Evidence<'a>) -> Measured<'a> {
        let mut by_key: HashMap<String, Vec<(&Visit, &Samples)>> = HashMap::new();
        for visit in evidence.visits().filter(|visit| visit.reason.is_none()) {
            let case = &evidence.run.header.plan[visit.case as usize].case;
            for samples in &visit.samples {
                for metric in &samples.metrics {
                    by_key.entry(case.series_key(&samples.point, metric)).or_default().push((visit, samples));
                }
            }
        }
        Measured(by_key)
    }

    /// Work, nanoseconds and pass of every sample of a series that counts.
    fn windows(&self, series: &Series) -> impl Iterator<Item = (f64, f64, &'a Visit)> {
        let own = self.0.get(&series.key).into_iter().flatten();
        own.flat_map(|(visit, samples)| {
            (samples.warm_up..samples.len())
                .filter_map(move |window| Some((samples.work.get(window)?, *samples.ns.get(window)?, *visit)))
        })
    }
}

/// A sample without work: it gives neither a speed nor a latency.
fn idle_window(evidence: &Evidence, measured: &Measured, judged: &Judged) -> Option<Finding> {
    let (_, _, visit) = measured.windows(&judged.series).find(|(work, ..)| *work <= 0.0)?;
    let draft = impossible(evidence, judged, "has a sample with 0 units of work")
        .cause("Every sample has whole iterations: its report is wrong, or the file was damaged.")
        .fact("work of the sample", 0, format!("pass {}", visit.order));
    Some(reject(draft, judged, WRONG_BENCHMARK))
}

fn beyond(form: Form, value: f64, limit: f64) -> bool {
    match form {
        Form::TimePerWork { .. } | Form::CyclesPerWork | Form::Quantile { .. } => value < limit,
        Form::WorkPerTime { .. } => value > limit,
        Form::Value => false,
    }
}

/// The highest possible value of a figure in its own unit (the lowest of a time), why, and where
/// that is known from.
pub struct PhysicalLimit {
    pub value: f64,
    pub cause: String,
    pub source: String,
}

impl PhysicalLimit {
    pub fn new(value: f64, cause: impl Into<String>, source: impl Into<String>) -> PhysicalLimit {
        PhysicalLimit { value, cause: cause.into(), source: source.into() }
    }
}

/// The most that a core can do, in the metric's own unit.
fn core_ceiling(evidence: &Evidence, judged: &Judged, ghz: Option<f64>) -> Option<PhysicalLimit> {
    let source = match ghz {
        Some(ghz) => format!("core clock of {ghz:.2} GHz, 1.25 times"),
        None => "no clock measured: 10 GHz assumed".to_string(),
    };
    let ghz = ghz.unwrap_or(MAX_GHZ / ALLOWANCE) * ALLOWANCE;
    let planned = &evidence.run.header.plan[judged.series.planned];
    let tasks = planned.case.placement.seats.len().max(1) as f64;
    let metric = &judged.series.metric;
    let operations = format!("No core completes more than {OPERATIONS_PER_CYCLE} operations in a cycle.");
    let (value, cause) = match (metric.form, metric.unit.as_ref()) {
        (Form::WorkPerTime { .. }, "GHz") => {
            return Some(PhysicalLimit::new(
                MAX_GHZ,
                "No core runs at such a clock.",
                "no core was ever sold above it",
            ));
        }
        (Form::WorkPerTime { scale }, "GB/s" | "Gbit/s") => (
            BYTES_PER_CYCLE * ghz * tasks * scale,
            format!("No core loads more than {BYTES_PER_CYCLE} bytes in a cycle; {tasks} tasks ran."),
        ),
        (Form::WorkPerTime { scale }, _) => (OPERATIONS_PER_CYCLE * ghz * tasks * scale, operations),
        (Form::TimePerWork { scale }, _) => (scale / (OPERATIONS_PER_CYCLE * ghz), operations),
        (Form::CyclesPerWork, _) => (1.0 / OPERATIONS_PER_CYCLE, operations),
        (Form::Quantile { .. } | Form::Value, _) => return None,
    };
    Some(PhysicalLimit::new(value, cause, source))
}

/// What the memory could deliver to blocks that do not fit the caches: all channels where they are
/// known, else all modules together, which is more than the truth where several share a channel.
fn memory_ceiling(evidence: &Evidence, judged: &Judged) -> Option<PhysicalLimit> {
    let planned = &evidence.run.header.plan[judged.series.planned];
    let tasks = planned.case.placement.seats.len().max(1) as f64;
    let block = judged.series.number(ids::memory::param::BYTES)?;
    // Traffic on the bus is an estimate from what the program moved.
    if judged.series.metric.unit != "GB/s" || judged.series.metric.name == ids::memory::metric::BUS_TRAFFIC {
        return None;
    }
    let caches = &evidence.machine.caches;
    let last_level = caches.iter().map(|cache| cache.level).max()?;
    let last = caches.iter().filter(|cache| cache.level == last_level);
    let cached: f64 = last.map(|cache| cache.size_bytes.unwrap_or(0) as f64).sum();
    if block * tasks < 2.0 * cached {
        return None;
    }
    let fits = format!("a block of {} does not fit the caches", bytes(block));
    let dimms = &evidence.machine.dimms;
    if let Some(channels) = machine::channels(dimms, &evidence.run.header.snapshot) {
        let why =
            format!("The {} populated memory channels together carry no more, and {fits}.", channels.count);
        return Some(PhysicalLimit::new(channels.gb_per_s, why, channels.source));
    }
    let populated = dimms.iter().filter(|dimm| dimm.is_memory());
    let modules: Option<Vec<f64>> = populated.map(machine::module_gb_per_s).collect();
    let modules = modules.filter(|modules| !modules.is_empty())?;
    let why = format!(
        "All {} memory modules together carry no more (less where two share a channel), and {fits}.",
        modules.len()
    );
    Some(PhysicalLimit::new(modules.iter().sum(), why, "SMBIOS type 17"))
}

fn is_cold_file(judged: &Judged) -> bool {
    let series = &judged.series;
    let is_cold = series.text(ids::file::param::CACHE) == Some("cold");
    is_cold && series.case.bench.starts_with("file.") && series.metric.unit == "GB/s"
}

/// A row about the disk that goes past the page cache, by what it moves.
fn is_direct_row(judged: &Judged) -> bool {
    let series = &judged.series;
    let buffered = series.text(ids::file::param::CACHE) == Some("buffered");
    let moves =
        [ids::disk::metric::BANDWIDTH, ids::disk::metric::IOPS].iter().any(|own| series.metric.name == *own);
    series.case.bench.starts_with("disk.") && moves && !buffered
}

/// The limit of the disk's link, for cold files and direct benchmarks. `None` in a guest, whose
/// hypervisor invents links.
fn disk_ceiling(evidence: &Evidence, judged: &Judged) -> Option<PhysicalLimit> {
    let machine = evidence.machine;
    let direct = is_direct_row(judged);
    if !(direct || is_cold_file(judged)) || matches!(machine.hypervisor, machine::Hypervisor::Guest(_)) {
        return None;
    }
    let of_disk = machine.disk.as_ref().and_then(|disk| Some((&disk.path, disk.link.as_ref()?)));
    let of_directory = machine.directory.as_ref().and_then(|place| Some((&place.path, place.link.as_ref()?)));
    let (path, link) = of_disk.or(of_directory)?;
    let most = if judged.series.metric.name == ids::disk::metric::IOPS {
        let block = judged.series.number(ids::disk::param::BLOCK).filter(|block| *block > 0.0)?;
        link.gb_per_s * 1e9 / block
    } else {
        link.gb_per_s
    };
    let what = if direct { "the data" } else { "the file" };
    let why = format!(
        "The link of {path}'s disk ({}) carries no more: {what} was in a cache of the kernel or the \
         controller.",
        link.name
    );
    Some(PhysicalLimit::new(most, why, "/sys/dev/block"))
}

/// The rate at which one task of the run read memory. All bytes of a file from a disk pass through
/// memory; of one in the page cache those that do not fit the CPU's own caches.
fn file_ceiling(evidence: &Evidence, judged: &Judged) -> Option<PhysicalLimit> {
    let series = &judged.series;
    if !series.case.bench.starts_with("file.") || series.metric.unit != "GB/s" {
        return None;
    }
    let block = |of: &Judged| of.series.number(ids::memory::param::BYTES);
    let reads = evidence.series.iter().filter(|other| {
        let case = &other.series.case;
        case.bench == ids::memory::BANDWIDTH
            && case.placement.name == "one-cpu"
            && other.series.metric.name == ids::memory::metric::BANDWIDTH
            && other.series.text(ids::memory::param::OP) == Some("read")
            && other.analysis.estimate.is_some()
    });
    let memory = reads
        .max_by(|one, other| block(one).partial_cmp(&block(other)).unwrap_or(std::cmp::Ordering::Equal))?;
    let read = memory.median()?;
    let (most, cause) = match series.text(ids::file::param::CACHE) {
        Some("cold") => {
            (read, "One task of this run read memory no faster: the file was in a cache, not on the disk.")
        }
        _ if block(judged)? >= block(memory)? => (
            read * ALLOWANCE,
            "One task of this run read memory no faster, and the file fits no cache of the CPU.",
        ),
        _ => return None,
    };
    Some(PhysicalLimit::new(most, cause, memory.series.key.clone()))
}
