//! What a guest really gets, row by row: for the first screen and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

mod at_rest;
mod backing;
mod metal;
mod prices;

use crate::screen::{RowReading, Tone};
use diagnose::words::counted;
use diagnose::{Diagnosis, Pauses, milliseconds};
use model::vocabulary::{BenchId, MetricId, cpu, host, kernel, memory_map};
use model::{figure, percent};
use prices::{idle, ipis, timer_writes};
use stats::analysis::Judged;
use stats::order::{Interval, median};
use stats::pauses::{Answer, CpuTime, Doubt, FLOOR, PairAnswer, least_seen};

/// What a guest gets of its host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputHost {
    /// Whether this is a guest; null where nothing says so.
    pub guest: Option<bool>,
    pub rows: Vec<HostRow>,
    pub cpus: Vec<OutputCpu>,
    /// Pairs that take turns or stop together.
    pub pairs: Vec<OutputPair>,
    /// Pauses that all CPUs had at once; null where there were none.
    pub stops: Option<OutputStops>,
    /// Cache and memory that others used while Assay was idle; null if not watched.
    pub at_rest: Option<at_rest::OutputAtRest>,
    /// Pauses of 4 ms for less than this share of the time would not have been seen, 0..1.
    pub least_seen: f64,
}

/// A row of the page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostRow {
    pub what: &'static str,
    pub grade: RowGrade,
    /// The grade in a word or two.
    pub word: String,
    pub reading: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Grade")]
pub enum RowGrade {
    Good,
    Poor,
    CannotTell,
    NotMeasured,
    /// A fact that is neither.
    Fact,
}

/// Where a CPU's time went.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputCpu {
    pub cpu: u32,
    pub answer: OutputAnswer,
    pub seconds: f64,
    /// Shares, 0..1, the first with its 95 % interval.
    pub withheld: f64,
    pub withheld_ci95: [f64; 2],
    pub by_tasks: f64,
    /// As the kernel counts; null where it does not.
    pub stolen: Option<f64>,
    pub pauses: usize,
    pub longest_ms: f64,
    /// While all CPUs were busy, by chains of dependent additions; null where it was not measured.
    pub clock_ghz: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputAnswer {
    Whole,
    Withheld,
    CannotTell,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputPair {
    pub cpus: [u32; 2],
    pub answer: OutputPairAnswer,
    /// Share of the time in which both are paused, and what chance gives.
    pub both: f64,
    pub by_chance: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputPairAnswer {
    TakeTurns,
    StopTogether,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputStops {
    pub count: usize,
    pub share: f64,
    pub longest_ms: f64,
}

/// `None` of a run without pauses.
pub fn output(diagnosis: &Diagnosis) -> Option<OutputHost> {
    let pauses = diagnosis.pauses()?;
    let answer = |cpu: &CpuTime| match cpu.answer {
        Answer::Whole => OutputAnswer::Whole,
        Answer::Withheld => OutputAnswer::Withheld,
        Answer::CannotTell(_) => OutputAnswer::CannotTell,
    };
    let clocks = clocks(diagnosis);
    let cpu = |cpu: &CpuTime| OutputCpu {
        cpu: cpu.cpu,
        answer: answer(cpu),
        seconds: cpu.seconds,
        withheld: cpu.withheld,
        withheld_ci95: [cpu.interval.low, cpu.interval.high],
        by_tasks: cpu.by_tasks,
        stolen: cpu.stolen,
        pauses: cpu.count,
        longest_ms: cpu.longest / 1e6,
        clock_ghz: clocks.iter().find(|clock| clock.cpu == cpu.cpu).map(|clock| clock.ghz),
    };
    let pairs = [
        (PairAnswer::TakeTurns, OutputPairAnswer::TakeTurns),
        (PairAnswer::StopTogether, OutputPairAnswer::StopTogether),
    ];
    let pairs = pairs.into_iter().flat_map(|(wanted, answer)| {
        pauses.pairs_that(wanted).into_iter().map(move |pair| OutputPair {
            cpus: pair.cpus,
            answer,
            both: pair.both,
            by_chance: pair.chance,
        })
    });
    Some(OutputHost {
        guest: pauses.guest,
        rows: rows(diagnosis, &pauses),
        cpus: pauses.found.cpus.iter().map(cpu).collect(),
        pairs: pairs.collect(),
        stops: pauses.found.stops.map(|stops| OutputStops {
            count: stops.count,
            share: stops.share,
            longest_ms: stops.longest / 1e6,
        }),
        at_rest: at_rest::output(diagnosis),
        least_seen: unseen(&pauses),
    })
}

/// The share below which pauses would not have been seen on the CPU that was watched least.
pub fn unseen(pauses: &Pauses) -> f64 {
    least_seen(pauses.found.cpus.iter().map(|cpu| cpu.seconds).fold(f64::INFINITY, f64::min))
}

impl HostRow {
    fn new(what: &'static str, grade: RowGrade, word: &str, reading: impl Into<String>) -> HostRow {
        HostRow { what, grade, word: word.to_string(), reading: reading.into() }
    }

    fn not_measured(what: &'static str, reading: impl Into<String>) -> HostRow {
        HostRow::new(what, RowGrade::NotMeasured, "not measured", reading)
    }

    fn cannot_tell(what: &'static str, reading: impl Into<String>) -> HostRow {
        HostRow::new(what, RowGrade::CannotTell, "cannot tell", reading)
    }

    /// A row of a benchmark without a figure: what that needs, what measures it, or that it was
    /// seen too seldom.
    fn missing(what: &'static str, diagnosis: &Diagnosis, bench: BenchId) -> HostRow {
        let mut cases = diagnosis.run.header.plan.iter().filter(|planned| planned.case.bench == bench);
        let reading = match cases.next() {
            None => format!("assay run --only {bench}"),
            Some(planned) => planned.unmet.clone().unwrap_or_else(|| "too few passes".to_string()),
        };
        HostRow::not_measured(what, reading)
    }

    pub fn shown(&self) -> RowReading {
        let (sign, tone) = match self.grade {
            RowGrade::Good => ('●', Tone::Good),
            RowGrade::Poor => ('▼', Tone::Care),
            RowGrade::CannotTell => ('?', Tone::Dim),
            RowGrade::NotMeasured | RowGrade::Fact => ('–', Tone::Dim),
        };
        RowReading { sign, word: self.word.clone(), tone, wide: false, extra: String::new() }
    }
}

/// Every row, in the order of the page.
pub fn rows(diagnosis: &Diagnosis, pauses: &Pauses) -> Vec<HostRow> {
    let seen = |row: HostRow, benches: &[BenchId]| unless_disturbed(diagnosis, row, benches);
    let [pages, parts] = backing::rows(diagnosis);
    let [cache, bandwidth, interference] = at_rest::rows(diagnosis).map(|row| seen(row, &[host::NEIGHBOURS]));
    let layout = match pauses.guest {
        Some(false) => {
            let [interleave, sub_numa, prefetchers] = metal::rows(diagnosis);
            vec![interleave, sub_numa, seen(prefetchers, &[memory_map::REGIONS])]
        }
        _ => vec![node(diagnosis)],
    };
    let above = [
        cpus(pauses),
        stops(pauses),
        seen(siblings(diagnosis), &[cpu::PAIR_SLOWDOWN]),
        tasks(pauses),
        seen(clock(diagnosis), &[cpu::CLOCK]),
        seen(clocksource(diagnosis), &[kernel::SYSCALL_CLOCK_GETTIME]),
        cache,
        pages,
        parts,
    ];
    let below = [
        bandwidth,
        interference,
        seen(timers(diagnosis), &[kernel::TIMER_TIMERFD]),
        seen(ipis(diagnosis, pauses), &[host::IPI]),
        seen(timer_writes(diagnosis, pauses), &[host::TIMER]),
        seen(idle(diagnosis), &[host::IDLE]),
    ];
    above.into_iter().chain(layout).chain(below).collect()
}

/// A row whose figures were disturbed has no grade.
fn unless_disturbed(diagnosis: &Diagnosis, row: HostRow, benches: &[BenchId]) -> HostRow {
    let disturbed = |judged: &Judged| {
        let (series, analysis) = (&judged.series, &judged.analysis);
        let is_one = benches.iter().any(|bench| series.case.bench == *bench) && series.metric.headline;
        is_one && analysis.estimate.is_some() && !analysis.verdict.usable()
    };
    if row.grade != RowGrade::NotMeasured && diagnosis.series.iter().any(disturbed) {
        return HostRow { grade: RowGrade::CannotTell, word: "disturbed".into(), ..row };
    }
    row
}

/// The CPU from which most is withheld, and of equal ones that in doubt.
fn worst(pauses: &Pauses) -> Option<&CpuTime> {
    pauses.found.cpus.iter().max_by(|one, other| one.withheld.total_cmp(&other.withheld))
}

/// `0.21 % (0.12–0.30) of CPU 1`.
fn share_words(cpu: &CpuTime) -> String {
    if cpu.count == 0 {
        return format!("no pause in {:.0} s; < {}", cpu.seconds, percent(cpu.interval.high));
    }
    format!(
        "CPU {} paused {} (up to {}), at most {}",
        cpu.cpu,
        percent(cpu.withheld),
        percent(cpu.interval.high),
        milliseconds(cpu.longest)
    )
}

fn cpus(pauses: &Pauses) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("CPUs", grade, word, reading);
    let Some(worst) = worst(pauses) else { return HostRow::not_measured("CPUs", "no CPU was watched") };
    let doubt = pauses.found.cpus.iter().find_map(|cpu| match cpu.answer {
        Answer::CannotTell(doubt) => Some((cpu, doubt)),
        _ => None,
    });
    match (pauses.withheld().len(), doubt) {
        (0, None) => row(RowGrade::Good, "whole", share_words(worst)),
        (0, Some((cpu, doubt))) => HostRow::cannot_tell("CPUs", doubt_words(cpu, doubt)),
        // Metal has no host: firmware, or an interrupt that takes long.
        _ if pauses.guest != Some(true) => row(RowGrade::Poor, "interrupted", share_words(worst)),
        _ => row(RowGrade::Poor, "preempted", share_words(worst)),
    }
}

pub fn doubt_words(cpu: &CpuTime, doubt: Doubt) -> String {
    match doubt {
        Doubt::FewVisits => format!("too few passes ({:.0} s of CPU {})", cpu.seconds, cpu.cpu),
        Doubt::NoQueue => "this kernel keeps no run-queue delay".to_string(),
        Doubt::AtFloor => {
            let [low, high] = [cpu.interval.low, cpu.interval.high].map(percent);
            format!("CPU {} paused {low}–{high}; whole is below {}", cpu.cpu, percent(FLOOR))
        }
        Doubt::Interrupts => format!("interrupts explain as much of CPU {}", cpu.cpu),
        Doubt::Throttled => "a CPU quota of this system limits it".to_string(),
    }
}

fn stops(pauses: &Pauses) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("stops", grade, word, reading);
    let pairs = |answer| pauses.pairs_that(answer);
    let first = |answer| pairs(answer).first().map(|pair| pair.cpus);
    if pauses.found.cpus.len() < 2 {
        return HostRow::new("stops", RowGrade::Fact, "one CPU", "no other CPU to compare with");
    }
    if let Some([one, other]) = first(PairAnswer::TakeTurns) {
        let more = pairs(PairAnswer::TakeTurns).len();
        return row(
            RowGrade::Poor,
            "alternately",
            format!("CPUs {one} and {other} share a CPU ({})", counted(more, "pair")),
        );
    }
    if let (Some([one, other]), stops) = (first(PairAnswer::StopTogether), pauses.found.stops) {
        let all = stops.filter(|stops| stops.count > 1).map(|stops| {
            format!(
                "all CPUs at once, {}, at most {}",
                counted(stops.count, "time"),
                milliseconds(stops.longest)
            )
        });
        let words = all.unwrap_or_else(|| format!("CPUs {one} and {other} stop and resume together"));
        return row(RowGrade::Poor, "together", words);
    }
    if pairs(PairAnswer::Apart).is_empty() {
        return HostRow::cannot_tell("stops", "too few pauses to compare".to_string());
    }
    row(RowGrade::Fact, "independent", "no two CPUs stop alternately or together".to_string())
}

fn siblings(diagnosis: &Diagnosis) -> HostRow {
    let Some((found, _)) = diagnosis.shared_cores() else {
        return HostRow::missing("siblings", diagnosis, cpu::PAIR_SLOWDOWN);
    };
    let row = |grade, word: &str, reading: String| HostRow::new("siblings", grade, word, reading);
    let most = found.siblings.iter().max_by(|one, other| one.1.total_cmp(other.1));
    match (most, found.open.is_empty()) {
        (Some(((one, other), times)), _) => {
            row(RowGrade::Fact, "siblings", format!("CPUs {one} and {other}: {times:.2} × slower together"))
        }
        (None, true) if !found.apart.is_empty() => {
            let slowest = found.apart.values().copied().fold(1.0, f64::max);
            row(RowGrade::Good, "whole cores", format!("together at most {slowest:.2} × slower"))
        }
        _ => HostRow::cannot_tell("siblings", "too few passes, or all slow".to_string()),
    }
}

fn tasks(pauses: &Pauses) -> HostRow {
    let most = pauses.found.cpus.iter().max_by(|one, other| one.by_tasks.total_cmp(&other.by_tasks));
    let Some(most) = most else { return HostRow::not_measured("other tasks", "no CPU was watched") };
    let (grade, word) =
        if most.by_tasks > 0.01 { (RowGrade::Poor, "busy") } else { (RowGrade::Good, "quiet") };
    let steal = match pauses.found.cpus.iter().filter_map(|cpu| cpu.stolen).reduce(f64::max) {
        _ if pauses.guest == Some(false) => String::new(),
        Some(stolen) => format!("; steal {}", percent(stolen)),
        None => "; steal not counted".to_string(),
    };
    let reading = format!("{} of CPU {}{steal}", percent(most.by_tasks), most.cpu);
    HostRow::new("other tasks", grade, word, reading)
}

/// A figure of the run, and its unit.
fn value(
    diagnosis: &Diagnosis,
    bench: BenchId,
    metric: MetricId,
    is_it: impl Fn(&Judged) -> bool,
) -> Option<(f64, String)> {
    let own = |judged: &&Judged| {
        let series = &judged.series;
        series.case.bench == bench && series.metric.name == metric && is_it(judged)
    };
    let judged = diagnosis.series.iter().find(own)?;
    Some((judged.analysis.figure()?.median, judged.series.metric.unit.to_string()))
}

const CLOCK_ROW: &str = host::metric::CLOCK.as_str();
/// CPUs whose clocks differ by more than this do not have one: short chains err by a percent.
const CLOCKS_ALIKE: f64 = 0.03;
/// CPUs that are named one by one.
const MAX_NAMED_CLOCKS: usize = 4;

/// The clock of a CPU while all are busy.
struct CpuClock {
    cpu: u32,
    ghz: f64,
    interval: Option<Interval>,
}

fn clocks(diagnosis: &Diagnosis) -> Vec<CpuClock> {
    let own = diagnosis.series.iter().filter(|judged| {
        judged.series.case.bench == host::PAUSES && judged.series.metric.name == host::metric::CLOCK
    });
    let read = |judged: &Judged| {
        let cpu = u32::try_from(judged.series.point.get(host::param::CPU)?.int()?).ok()?;
        let estimate = judged.analysis.figure()?;
        Some(CpuClock { cpu, ghz: estimate.median, interval: estimate.interval })
    };
    let mut all: Vec<CpuClock> = own.filter_map(read).filter(|clock| clock.ghz > 0.0).collect();
    all.sort_by_key(|clock| clock.cpu);
    all
}

fn clock(diagnosis: &Diagnosis) -> HostRow {
    let all = clocks(diagnosis);
    match value(diagnosis, cpu::CLOCK, cpu::metric::CLOCK, |_| true) {
        _ if !all.is_empty() => of_clocks(&all),
        Some((ghz, unit)) => HostRow::new(CLOCK_ROW, RowGrade::Fact, "one core", figure(ghz, &unit)),
        None => HostRow::missing(CLOCK_ROW, diagnosis, cpu::CLOCK),
    }
}

fn of_clocks(all: &[CpuClock]) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new(CLOCK_ROW, grade, word, reading);
    let by_ghz = |one: &&CpuClock, other: &&CpuClock| one.ghz.total_cmp(&other.ghz);
    let (Some(least), Some(most)) = (all.iter().min_by(by_ghz), all.iter().max_by(by_ghz)) else {
        return HostRow::not_measured(CLOCK_ROW, "no CPU was watched");
    };
    let apart = most.ghz / least.ghz - 1.0;
    let typical = median(&all.iter().map(|clock| clock.ghz).collect::<Vec<f64>>()).unwrap_or(most.ghz);
    if all.len() == 1 {
        return row(RowGrade::Fact, "one CPU", figure(typical, "GHz"));
    }
    if apart <= CLOCKS_ALIKE {
        let (ghz, cpus) = (figure(typical, "GHz"), counted(all.len(), "CPU"));
        return row(RowGrade::Good, "alike", format!("{ghz} on {cpus}, {} apart", percent(apart)));
    }
    let named = |clock: &CpuClock| format!("CPU {} {}", clock.cpu, figure(clock.ghz, ""));
    let reading = if all.len() <= MAX_NAMED_CLOCKS {
        format!("{} GHz", all.iter().map(named).collect::<Vec<String>>().join(", "))
    } else {
        format!("{} – {} GHz, median {}", named(least), named(most), figure(typical, ""))
    };
    match (least.interval, most.interval) {
        (Some(low), Some(high)) if low.high < high.low => row(RowGrade::Poor, "unequal", reading),
        _ => HostRow::cannot_tell(CLOCK_ROW, reading),
    }
}

/// A system call reads the clock at least this many times slower than the vDSO.
const BY_KERNEL: f64 = 1.5;

fn clocksource(diagnosis: &Diagnosis) -> HostRow {
    let name = diagnosis.machine.clock.current.clone().unwrap_or_else(|| "unknown".to_string());
    let way = |wanted: &'static str| {
        move |judged: &Judged| {
            judged.series.point.get(kernel::param::WAY).and_then(|way| way.text()) == Some(wanted)
        }
    };
    let read = |wanted| value(diagnosis, kernel::SYSCALL_CLOCK_GETTIME, kernel::metric::LATENCY, way(wanted));
    let (Some((vdso, unit)), Some((by_kernel, _))) = (read("vdso"), read("kernel")) else {
        return HostRow::new("clocksource", RowGrade::Fact, &name, "as the kernel reports");
    };
    let reading = format!("{name}, {}; system call {}", figure(vdso, &unit), figure(by_kernel, &unit));
    let (grade, word) = if by_kernel >= BY_KERNEL * vdso {
        (RowGrade::Good, "direct")
    } else {
        (RowGrade::Poor, "system call")
    };
    HostRow::new("clocksource", grade, word, reading)
}

fn node(diagnosis: &Diagnosis) -> HostRow {
    let nodes = diagnosis.machine.nodes.len().max(1);
    HostRow::new("node", RowGrade::Fact, &counted(nodes, "node"), "as the host reports")
}

fn timers(diagnosis: &Diagnosis) -> HostRow {
    let late = |metric| value(diagnosis, kernel::TIMER_TIMERFD, metric, |_| true);
    let (Some((median, unit)), Some((tail, _))) =
        (late(kernel::metric::LATENESS_P50), late(kernel::metric::LATENESS_P99))
    else {
        return HostRow::missing("timers", diagnosis, kernel::TIMER_TIMERFD);
    };
    let reading = format!("late by {}, p99 {}", figure(median, &unit), figure(tail, &unit));
    let (grade, word) =
        if tail <= MAX_LATE_US { (RowGrade::Good, "in time") } else { (RowGrade::Poor, "late") };
    HostRow::new("timers", grade, word, reading)
}

/// Timers of idle CPUs are no later than this for 99 of 100 on a host with time, us.
const MAX_LATE_US: f64 = 200.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_alike_unequal_or_cannot_be_told() {
        let told = |ghz: &[f64], half: f64| {
            let clock = |(cpu, ghz): (usize, &f64)| CpuClock {
                cpu: cpu as u32,
                ghz: *ghz,
                interval: Some(Interval { low: ghz - half, high: ghz + half }),
            };
            let row = of_clocks(&ghz.iter().enumerate().map(clock).collect::<Vec<CpuClock>>());
            (row.grade, row.reading)
        };
        assert_eq!(told(&[3.0, 3.03], 0.01), (RowGrade::Good, "3.01 GHz on 2 CPUs, 1.0 % apart".to_string()));
        assert_eq!(told(&[3.0, 2.4], 0.01), (RowGrade::Poor, "CPU 0 3.00, CPU 1 2.40 GHz".to_string()));
        assert_eq!(told(&[3.0, 2.4], 0.4).0, RowGrade::CannotTell);
        let many = told(&[3.0, 3.0, 2.1, 3.0, 3.2, 3.0], 0.01);
        assert_eq!(many.1, "CPU 2 2.10 – CPU 4 3.20 GHz, median 3.00");
        assert_eq!(told(&[3.0], 0.01).0, RowGrade::Fact);
    }
}
