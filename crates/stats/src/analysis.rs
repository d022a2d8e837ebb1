//! Analyses each series of a run: estimate, behaviour over time, modes, outliers, verdict, grade.
//! Looks at the series alone: its values, and the clocks, labels and covariates recorded with them.
//!
//! Words: a *visit* is one child process that measures a case once; printed texts call it a pass. A
//! series has a [`Process`] for each visit with values, or for each group of visits if one visit
//! has too few latencies for a quantile ([`Series::pooled`]).

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
    /// Outliers among windows, relative to their process's median.
    pub window_outliers: Attribution,
    /// Outliers among the process medians.
    pub process_outliers: Attribution,
    /// The estimate without explained outliers, where these may be left out.
    pub without_explained: Option<Estimate>,
    /// What the process medians are correlated with.
    pub correlations: Vec<(Cow<'static, str>, Correlation)>,
    /// Correlation of the process medians with their place in the order of visits.
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

/// Analyses all series of a run, in the order of [`series`], for the precision that the run was
/// asked for. Normalises core-bound series to the run's core clock.
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
    // The estimate of the values as measured.
    let with_values: Vec<&Process> =
        series.processes.iter().filter(|process| !process.values.is_empty()).collect();
    let warm_up = series.processes.iter().map(|process| process.warm_up.len()).sum();
    let unusable = unusable(series);
    let measured = estimate(&windows_of(&with_values), CONFIDENCE).filter(|_| unusable.is_none());
    let Some(as_measured) = measured else {
        let no_value = || Verdict::new(VerdictKind::Rejected, "no value was measured");
        return Analysis::nothing(unusable.unwrap_or_else(no_value), warm_up);
    };

    // The same at the common clock, for core-bound series: all that follows then uses these values.
    let (at_clock, normalised) =
        common.and_then(|common| at_clock(&with_values, &series.metric, common)).unzip();
    let processes: Vec<&Process> = normalised.as_ref().map_or(with_values, |all| all.iter().collect());
    let values = windows_of(&processes);
    let figure = at_clock.as_ref().map_or(&as_measured, |at_clock: &AtClock| &at_clock.estimate);

    // Behaviour over time, modes and their cause.
    let mut behaviour = behaviour(&values, figure, DRIFT_P, seed);
    if series.case.placement.is_free() && behaviour.modes().is_none() {
        behaviour.modes_left_free = left_free(&values, series.metric.better);
    }
    let medians: Vec<f64> = values.iter().filter_map(|windows| median(windows)).collect();
    let covariates = process_covariates(&processes);
    let modes = behaviour.modality.modes();
    let mode_cause = modes.and_then(|modes| cause(modes, &processes, &covariates, seed));

    // Outliers, and the estimate without those that a covariate explains.
    let window_outliers = attribute_windows(&processes);
    // Each process is its own stratum.
    let strata: Vec<usize> = (0..medians.len()).collect();
    let process_outliers = attribute(&outliers(&medians), &strata, &covariates);
    let without_explained = estimate_without(&values, &window_outliers, &process_outliers);

    let judgement = Judgement {
        estimate: figure,
        behaviour: &behaviour,
        precision,
        unit: &series.metric.unit,
        mode_cause: mode_cause.as_ref().map(|cause| cause.name.as_ref()),
        without_explained: without_explained.as_ref().map(|without| {
            // The verdict has one explanation: that of slow processes comes before that of windows.
            let of_processes = process_outliers.may_leave_out();
            (if of_processes { &process_outliers } else { &window_outliers }, without)
        }),
    };
    let (verdict, more_needed) = final_verdict(series, &judgement, medians.len());
    let positions: Vec<f64> = processes.iter().map(|process| f64::from(process.position)).collect();
    Analysis {
        correlations: correlations(&medians, &covariates),
        position: spearman(&positions, &medians),
        predecessor_p: predecessor_p(&processes, &medians, seed),
        verdict: Verdict { at_clock: at_clock.is_some(), ..verdict },
        estimate: Some(as_measured),
        at_clock,
        behaviour: Some(behaviour),
        mode_cause,
        window_outliers,
        process_outliers,
        without_explained,
        warm_up,
        more_needed,
    }
}

fn windows_of(processes: &[&Process]) -> Vec<Vec<f64>> {
    processes.iter().map(|process| process.values.clone()).collect()
}

/// The verdict with its grade, and how many more processes would help. Imported and pooled series
/// have verdicts of their own.
fn final_verdict(series: &Series, judgement: &Judgement, values: usize) -> (Verdict, Option<usize>) {
    let (verdict, more_needed) = judge(judgement);
    let verdict = if series.imported { unverified(verdict) } else { verdict };
    let (verdict, more_needed) = match series.pooled {
        // Further visits may enlarge the groups and add none, so how many would help is unknown.
        Some(visits) => (pooled_verdict(verdict, visits, values), None),
        None => (verdict, more_needed),
    };
    let half_width = judgement.estimate.relative_half_width();
    let grade = match Grade::of(verdict.kind, half_width, judgement.precision) {
        // A possibly bimodal series gets at most C, even with a narrow interval.
        Grade::B if matches!(judgement.behaviour.modality, Modality::Suspected(_)) => Grade::C,
        grade => grade,
    };
    (Verdict { grade, ..verdict }, more_needed)
}

impl Analysis {
    /// The estimate that is shown: at the clock of the run if that is known, else as measured.
    pub fn figure(&self) -> Option<&Estimate> {
        self.at_clock.as_ref().map(|at_clock| &at_clock.estimate).or(self.estimate.as_ref())
    }

    fn nothing(verdict: Verdict, warm_up: usize) -> Analysis {
        Analysis {
            estimate: None,
            at_clock: None,
            behaviour: None,
            mode_cause: None,
            window_outliers: Attribution::default(),
            process_outliers: Attribution::default(),
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

/// The verdict on a series without an estimate, or with one that must not be used; `None`: its
/// values decide.
fn unusable(series: &Series) -> Option<Verdict> {
    let rejected = |reason: String| Some(Verdict::new(VerdictKind::Rejected, reason));
    let (skipped, failed): (Vec<&Reason>, Vec<&Reason>) = series
        .missing
        .iter()
        .map(|missing| &missing.reason)
        .partition(|reason| matches!(reason, Reason::Skipped(_)));
    // A long run file is read in part: visits that were not kept are only counted.
    let not_kept = series.left_out;
    let good_visits = series.processes.len() + not_kept.good;
    let failed_visits = failed.len() + not_kept.failed;
    let visits = good_visits + failed_visits;
    let wrong: Vec<&&Reason> =
        failed.iter().filter(|reason| matches!(reason, Reason::WrongAnswer(_))).collect();
    if let Some(first) = wrong.first() {
        return rejected(format!(
            "{} of {visits} passes computed a wrong answer: {}",
            wrong.len() + not_kept.wrong,
            first.text()
        ));
    }
    if let Some(fault) = &series.fault {
        return rejected(fault.clone());
    }
    if let Some(first) = failed.first().filter(|_| failed_visits > good_visits) {
        return rejected(format!("{failed_visits} of {visits} passes failed: {}", first.text()));
    }
    // A case whose visits were skipped before they gave an interval counts as skipped.
    let has_interval = series.processes.len() >= *GUARDED.start();
    if series.processes.is_empty() || (!has_interval && !skipped.is_empty()) {
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

/// The verdict over values that pool the latencies of several visits each; the groups of visits
/// were judged as processes.
fn pooled_verdict(verdict: Verdict, visits: usize, groups: usize) -> Verdict {
    let mut reason = match groups {
        1 => format!("one value, from the latencies of {visits} passes together"),
        _ => format!("latencies of {visits} passes in {groups} groups, which count as passes"),
    };
    // That one value has no interval needs no words.
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
        let median_of = |process: &&Process| process.column(&name).and_then(median).unwrap_or(f64::NAN);
        covariates.push(Covariate { values: processes.iter().map(median_of).collect(), name });
    }
    // What never varies explains nothing, and would only cost power in the adjustment for many
    // tests.
    covariates.retain(|covariate| varies(&covariate.values));
    covariates
}

fn names_of_covariates(processes: &[&Process]) -> Vec<Cow<'static, str>> {
    let mut names: Vec<Cow<'static, str>> = Vec::new();
    for covariate in processes.iter().flat_map(|process| &process.covariates) {
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
    let (mut relative, mut strata) = (Vec::new(), Vec::new());
    for (number, process) in processes.iter().enumerate() {
        let centre = median(&process.values).unwrap_or(0.0);
        let to_centre = |value: &f64| if centre != 0.0 { value / centre } else { *value };
        relative.extend(process.values.iter().map(to_centre));
        strata.resize(relative.len(), number);
    }
    let columns = names_of_covariates(processes).into_iter().map(|name| {
        let column_of = |process: &&Process| -> Vec<f64> {
            process.column(&name).map_or_else(|| vec![f64::NAN; process.values.len()], <[f64]>::to_vec)
        };
        Covariate { values: processes.iter().flat_map(column_of).collect(), name }
    });
    let covariates: Vec<Covariate> = columns.filter(|covariate| varies(&covariate.values)).collect();
    attribute(&outliers(&relative), &strata, &covariates)
}

/// The estimate without the outliers that are explained, where they may be left out.
fn estimate_without(values: &[Vec<f64>], windows: &Attribution, processes: &Attribution) -> Option<Estimate> {
    let (leave_windows, leave_processes) = (windows.may_leave_out(), processes.may_leave_out());
    if !leave_windows && !leave_processes {
        return None;
    }
    // One flag per window of all processes: take a process's flags even if it is left out itself.
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
            let members =
                covariate.values.iter().zip(&modes.membership).filter(|(_, member)| **member == mode);
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
