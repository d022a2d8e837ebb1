//! Everything that is known of a series, from its values alone: number, behaviour, outliers,
//! verdict.

use std::borrow::Cow;

use super::behaviour::{Behaviour, DRIFT_P, behaviour};
use super::contingency::association;
use super::core_bound::{AtClock, Common, RunClock, at_clock, is_core_bound, run_clock};
use super::estimate::{Estimate, estimate};
use super::guarded::GUARDED;
use super::modes::{Modality, Modes, left_free};
use super::multiple::holm;
use super::order::{Interval, median};
use super::outliers::{Attribution, Covariate, attribute, correlations, outliers};
use super::ranks::{Correlation, kruskal_wallis, spearman};
use super::series::{Process, Series, series};
use super::verdict::{Judgement, judge};
use machine::Machine;
use model::{Grade, Reason, Run, Verdict, VerdictKind};

/// Confidence of the interval that is reported.
pub const CONFIDENCE: f64 = 0.95;

/// A label goes with modes where this adjusted p is not exceeded.
pub const CAUSE_P: f64 = 0.01;

/// A series with its analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub series: Series,
    pub analysis: Analysis,
}

impl Judged {
    /// The measured median, whatever its verdict.
    pub fn median(&self) -> Option<f64> {
        Some(self.analysis.estimate.as_ref()?.median)
    }

    pub fn interval(&self) -> Option<Interval> {
        self.analysis.estimate.as_ref()?.interval
    }
}

/// All series of a run with their analyses.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedRun {
    /// `None` if no core-bound series has readings of the core clock.
    pub clock: Option<RunClock>,
    pub series: Vec<Judged>,
}

/// What the values of a series say. Behaviour, outliers and correlations are normalised to the
/// run's common core clock if that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Without normalisation to a clock; `None` if nothing was measured.
    pub estimate: Option<Estimate>,
    /// Normalised to the core clock of the run; only of core-bound series.
    pub at_clock: Option<AtClock>,
    pub behaviour: Option<Behaviour>,
    /// A label that differs between the modes, if there are several.
    pub mode_cause: Option<Cause>,
    /// Outliers among windows (against their process's median), and among processes.
    pub windows: Attribution,
    pub processes: Attribution,
    /// The estimate without explained outliers, where these may be left out.
    pub without_explained: Option<Estimate>,
    /// What the process medians are correlated with.
    pub correlations: Vec<(Cow<'static, str>, Correlation)>,
    /// Correlation of the values with their place in the order of visits.
    pub position: Option<Correlation>,
    /// p that the case visited before has no influence (Kruskal-Wallis).
    pub predecessor_p: Option<f64>,
    /// Windows that were marked as warm-up and not counted.
    pub warm_up: usize,
    pub verdict: Verdict,
    /// Additional processes needed for the requested precision, if more would help.
    pub more_needed: Option<usize>,
}

/// A label or quantity that differs between modes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    pub name: Cow<'static, str>,
    /// After Holm's adjustment over all that was tried.
    pub p: f64,
}

/// All series of a run with their analyses, in the order of [`series`], at the precision that the
/// run was asked for; those that are bound by the core at the clock of the run.
pub fn judge_run(run: &Run, machine: &Machine) -> JudgedRun {
    let all = series(run);
    let clock = run_clock(&all, machine);
    let common = clock.and_then(|clock| clock.common());
    let judged = |series: Series| {
        let common = common.filter(|_| is_core_bound(&series, machine));
        let analysis = analyse(&series, run.header.precision, run.header.seed, common);
        Judged { series, analysis }
    };
    JudgedRun { clock, series: all.into_iter().map(judged).collect() }
}

/// Analyses one series. `precision` is the relative half-width asked of the interval (0.01 = ±1 %);
/// the seed drives permutations, and equal input gives equal output. `common` is the
/// clock to which a core-bound series is normalised.
pub fn analyse(series: &Series, precision: f64, seed: u64, common: Option<Common>) -> Analysis {
    let as_it_ran: Vec<&Process> =
        series.processes.iter().filter(|process| !process.values.is_empty()).collect();
    let windows = |processes: &[&Process]| -> Vec<Vec<f64>> {
        processes.iter().map(|process| process.values.clone()).collect()
    };
    let warm_up = series.processes.iter().map(|process| process.warm_up.len()).sum();
    let unusable = unusable(series);
    let Some(ran) = estimate(&windows(&as_it_ran), CONFIDENCE).filter(|_| unusable.is_none()) else {
        let none = || Verdict::new(VerdictKind::Rejected, "no value was measured");
        return Analysis::nothing(unusable.unwrap_or_else(none), warm_up);
    };
    let (at_clock, at_one_clock) =
        common.and_then(|common| at_clock(&as_it_ran, &series.metric, common)).unzip();
    let processes: Vec<&Process> = match &at_one_clock {
        Some(processes) => processes.iter().collect(),
        None => as_it_ran,
    };
    let values = windows(&processes);
    let estimate = at_clock.as_ref().map_or(&ran, |at_clock: &AtClock| &at_clock.estimate);
    let mut behaviour = behaviour(&values, estimate, DRIFT_P, seed);
    if series.case.placement.is_free() && behaviour.modes().is_none() {
        behaviour.modes_left_free = left_free(&values, series.metric.better);
    }
    let medians: Vec<f64> = values.iter().filter_map(|windows| median(windows)).collect();
    let covariates = process_covariates(&processes);
    let mode_cause = behaviour.modality.modes().and_then(|modes| cause(modes, &processes, &covariates, seed));
    let windows = attribute_windows(&processes);
    // Each process is its own stratum.
    let own_strata: Vec<usize> = (0..medians.len()).collect();
    let of_processes = attribute(&outliers(&medians), &own_strata, &covariates);
    let without_explained = estimate_without(&values, &windows, &of_processes);
    let explaining = if of_processes.may_leave_out() { &of_processes } else { &windows };
    let judgement = Judgement {
        estimate,
        behaviour: &behaviour,
        precision,
        unit: &series.metric.unit,
        mode_cause: mode_cause.as_ref().map(|cause| cause.name.as_ref()),
        without_explained: without_explained.as_ref().map(|without| (explaining, without)),
    };
    let (verdict, more_needed) = judge(&judgement);
    let verdict = if series.imported { unverified(verdict) } else { verdict };
    let (verdict, more_needed) = match series.pooled {
        Some(visits) => (together(verdict, visits, medians.len()), None),
        None => (verdict, more_needed),
    };
    let grade = match Grade::of(verdict.kind, estimate.relative_half_width(), precision) {
        // A possibly bimodal series gets at most C, even with a narrow interval.
        Grade::B if matches!(behaviour.modality, Modality::Suspected(_)) => Grade::C,
        grade => grade,
    };
    let verdict = Verdict { grade, at_clock: at_clock.is_some(), ..verdict };
    let positions: Vec<f64> = processes.iter().map(|process| f64::from(process.position)).collect();
    Analysis {
        correlations: correlations(&medians, &covariates),
        position: spearman(&positions, &medians),
        predecessor_p: predecessor_p(&processes, &medians, seed),
        estimate: Some(ran),
        at_clock,
        behaviour: Some(behaviour),
        mode_cause,
        windows,
        processes: of_processes,
        without_explained,
        warm_up,
        verdict,
        more_needed,
    }
}

impl Analysis {
    /// The number that is shown: at the clock of the run where that is known, else as it ran.
    pub fn figure(&self) -> Option<&Estimate> {
        self.at_clock.as_ref().map(|at_clock| &at_clock.estimate).or(self.estimate.as_ref())
    }

    fn nothing(verdict: Verdict, warm_up: usize) -> Analysis {
        Analysis {
            estimate: None,
            at_clock: None,
            behaviour: None,
            mode_cause: None,
            windows: Attribution::default(),
            processes: Attribution::default(),
            without_explained: None,
            correlations: Vec::new(),
            position: None,
            predecessor_p: None,
            warm_up,
            verdict,
            more_needed: None,
        }
    }
}

/// Why the series has no number, or one that must not be used; `None`: its values decide.
fn unusable(series: &Series) -> Option<Verdict> {
    let rejected = |reason: String| Some(Verdict::new(VerdictKind::Rejected, reason));
    let (skipped, failed): (Vec<&Reason>, Vec<&Reason>) = series
        .missing
        .iter()
        .map(|missing| &missing.reason)
        .partition(|reason| matches!(reason, Reason::Skipped(_)));
    let left_out = series.left_out;
    let counted = series.processes.len() + left_out.good;
    let failures = failed.len() + left_out.failed;
    let visits = counted + failures;
    let wrong: Vec<&&Reason> =
        failed.iter().filter(|reason| matches!(reason, Reason::WrongAnswer(_))).collect();
    if let Some(first) = wrong.first() {
        return rejected(format!(
            "{} of {visits} passes computed a wrong answer: {}",
            wrong.len() + left_out.wrong,
            first.text()
        ));
    }
    if let Some(fault) = &series.fault {
        return rejected(fault.clone());
    }
    if let Some(first) = failed.first().filter(|_| failures > counted) {
        return rejected(format!("{failures} of {visits} passes failed: {}", first.text()));
    }
    // A case that was left out before it had enough processes was not measured.
    let left_out = skipped.first().filter(|_| series.processes.len() < *GUARDED.start());
    if series.processes.is_empty() || left_out.is_some() {
        let reason = skipped.first().map(|reason| reason.text()).or(series.unmet.as_deref());
        return Some(Verdict::new(
            VerdictKind::Skipped,
            reason.unwrap_or("the run ended before its first pass"),
        ));
    }
    None
}

fn unverified(verdict: Verdict) -> Verdict {
    let mut reason = "imported: Assay did not measure it".to_string();
    if verdict.kind != VerdictKind::Trusted {
        reason.push_str(&format!("; its values are {}: {}", verdict.kind, verdict.reason));
    }
    Verdict::new(VerdictKind::Unverified, reason)
}

/// The verdict over values that pool several visits each: "processes" are groups of visits there.
fn together(verdict: Verdict, visits: usize, groups: usize) -> Verdict {
    let mut reason = match groups {
        1 => format!("one value, from the latencies of {visits} passes together"),
        _ => format!("latencies of {visits} passes in {groups} groups, which count as passes"),
    };
    // One value has no interval; how many more processes would do is not asked, as visits grow into
    // groups.
    if groups > 1 && verdict.kind != VerdictKind::Trusted {
        reason.push_str(&format!(": {}", verdict.reason));
    }
    Verdict::new(verdict.kind, reason)
}

/// Covariates of whole processes: host counters (shares of their time, or counts), their own facts,
/// and the medians of what was recorded with their windows.
fn process_covariates(processes: &[&Process]) -> Vec<Covariate> {
    type Read = fn(&Process) -> Option<f64>;
    fn share(process: &Process, part: Option<f64>) -> Option<f64> {
        Some(part? / process.conditions.wall_ms).filter(|share| share.is_finite())
    }
    let reads: [(&'static str, Read); 14] = [
        ("background", |p| p.conditions.background()),
        ("steal", |p| p.conditions.steal()),
        ("others on its CPUs", |p| share(p, p.conditions.others_on_seats_ms)),
        ("interrupts", |p| share(p, p.conditions.irq_ms)),
        ("CPU pressure", |p| share(p, p.conditions.psi_cpu_ms)),
        ("memory pressure", |p| share(p, p.conditions.psi_memory_ms)),
        ("I/O pressure", |p| share(p, p.conditions.psi_io_ms)),
        ("CPU quota", |p| share(p, p.conditions.throttled_ms)),
        ("swapping", |p| p.conditions.swapped_pages),
        ("NUMA balancing", |p| p.conditions.numa_migrated_pages),
        ("thermal throttling", |p| p.conditions.thermal_throttles),
        ("huge pages", |p| p.facts.huge_share),
        ("resident memory", |p| p.facts.resident_share),
        ("migrations", |p| p.facts.migrations.map(|migrations| migrations as f64)),
    ];
    let mut covariates: Vec<Covariate> = Vec::new();
    for (name, read) in reads {
        let values = processes.iter().map(|process| read(process).unwrap_or(f64::NAN)).collect();
        covariates.push(Covariate { name: name.into(), values });
    }
    for name in names_of_covariates(processes) {
        let of = |process: &&Process| {
            let column = process.beside.iter().find(|covariate| covariate.name == name);
            column.and_then(|covariate| median(&covariate.values)).unwrap_or(f64::NAN)
        };
        covariates.push(Covariate { values: processes.iter().map(of).collect(), name });
    }
    // What never varies explains nothing, and would only cost power in the adjustment for many
    // tests.
    covariates.retain(|covariate| varies(&covariate.values));
    covariates
}

fn names_of_covariates(processes: &[&Process]) -> Vec<Cow<'static, str>> {
    let mut names: Vec<Cow<'static, str>> = Vec::new();
    for covariate in processes.iter().flat_map(|process| &process.beside) {
        if !names.contains(&covariate.name) {
            names.push(covariate.name.clone());
        }
    }
    names
}

fn varies(values: &[f64]) -> bool {
    let mut known = values.iter().filter(|value| value.is_finite());
    let first = known.next();
    known.any(|value| Some(value) != first)
}

/// Outliers among windows, each relative to its own process's median: a slow process does not count
/// as many outliers.
fn attribute_windows(processes: &[&Process]) -> Attribution {
    let (mut residuals, mut strata) = (Vec::new(), Vec::new());
    for (number, process) in processes.iter().enumerate() {
        let centre = median(&process.values).unwrap_or(0.0);
        let residual = |value: &f64| if centre != 0.0 { value / centre } else { *value };
        residuals.extend(process.values.iter().map(residual));
        strata.resize(residuals.len(), number);
    }
    let columns = names_of_covariates(processes).into_iter().map(|name| {
        let of = |process: &&Process| -> Vec<f64> {
            let column = process.beside.iter().find(|covariate| covariate.name == name);
            column.map_or_else(|| vec![f64::NAN; process.values.len()], |covariate| covariate.values.clone())
        };
        Covariate { values: processes.iter().flat_map(of).collect(), name }
    });
    let covariates: Vec<Covariate> = columns.filter(|covariate| varies(&covariate.values)).collect();
    attribute(&outliers(&residuals), &strata, &covariates)
}

/// The estimate without the outliers that are explained, where they may be left out.
fn estimate_without(values: &[Vec<f64>], windows: &Attribution, processes: &Attribution) -> Option<Estimate> {
    let (leave_windows, leave_processes) = (windows.may_leave_out(), processes.may_leave_out());
    if !leave_windows && !leave_processes {
        return None;
    }
    let mut flags = windows.explained.iter();
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for (number, process) in values.iter().enumerate() {
        let explained: Vec<bool> = flags.by_ref().take(process.len()).copied().collect();
        if leave_processes && processes.explained.get(number) == Some(&true) {
            continue;
        }
        let windows = process.iter().zip(explained).filter(|(_, explained)| !(leave_windows && *explained));
        kept.push(windows.map(|(value, _)| *value).collect());
    }
    estimate(&kept, CONFIDENCE)
}

/// What differs between the modes: the CPU, the kernel variant, or a covariate of the processes.
fn cause(modes: &Modes, processes: &[&Process], covariates: &[Covariate], seed: u64) -> Option<Cause> {
    if modes.membership.len() != processes.len() {
        return None;
    }
    let mut tried: Vec<(Cow<'static, str>, f64)> = Vec::new();
    let cpus: Vec<Option<u32>> = processes.iter().map(|process| process.cpu).collect();
    let variants: Vec<Option<&str>> =
        processes.iter().map(|process| process.facts.variant.as_deref()).collect();
    tried.extend(association(&modes.membership, &cpus, seed).map(|p| ("CPU".into(), p)));
    tried.extend(association(&modes.membership, &variants, seed).map(|p| ("kernel variant".into(), p)));
    for covariate in covariates {
        let of_mode = |mode: usize| -> Vec<f64> {
            let members = covariate.values.iter().zip(&modes.membership).filter(|(_, own)| **own == mode);
            members.map(|(value, _)| *value).collect()
        };
        let groups: Vec<Vec<f64>> = (0..modes.modes.len()).map(of_mode).collect();
        tried.extend(kruskal_wallis(&groups, seed).map(|p| (covariate.name.clone(), p)));
    }
    let adjusted = holm(&tried.iter().map(|(_, p)| *p).collect::<Vec<f64>>());
    let causes = tried.into_iter().zip(adjusted).map(|((name, _), p)| Cause { name, p });
    causes.filter(|cause| cause.p < CAUSE_P).min_by(|a, b| a.p.total_cmp(&b.p))
}

fn predecessor_p(processes: &[&Process], medians: &[f64], seed: u64) -> Option<f64> {
    let mut groups: std::collections::BTreeMap<u32, Vec<f64>> = Default::default();
    for (process, median) in processes.iter().zip(medians) {
        if let Some(predecessor) = process.predecessor {
            groups.entry(predecessor).or_default().push(*median);
        }
    }
    kruskal_wallis(&groups.into_values().collect::<Vec<Vec<f64>>>(), seed)
}

#[cfg(test)]
mod tests;
