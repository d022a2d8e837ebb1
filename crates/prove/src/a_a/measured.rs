//! A run as a side of comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bench::NOT_SLOWED;
use compare::{Comparison, ComparisonSide, Options, compare};
use model::run_file;
use model::vocabulary::selftest::PLANTED;
use stats::core_bound::is_core_bound;

/// Findings that name what came from outside.
const OUTSIDE: [&str; 2] = ["background-load", "steal"];

pub struct Measured {
    pub started: String,
    arm: ComparisonSide,
    /// Keys of the headline series that this host can have, and whether each is bound by the
    /// core of one CPU.
    pub headlines: BTreeMap<String, bool>,
    /// By which share it was slowed, and the keys of the series that were.
    pub share: Option<f64>,
    pub slowed: BTreeSet<String>,
    /// Headline series by grade: A, and A or B.
    pub grades: [usize; 2],
    /// From its start to the end of its last pass, s.
    pub seconds: f64,
    /// No finding names what came from outside.
    pub quiet: bool,
}

impl Measured {
    pub fn read(file: &Path) -> Result<Measured, String> {
        let shown = file.display().to_string();
        let run = run_file::read(file).map_err(|error| format!("{shown}: {error:#}"))?;
        let diagnosis = diagnose::diagnose(run);
        let plan = &diagnosis.run.header.plan;
        let share_of = |case: &model::Case| case.inputs.get(PLANTED)?.parse::<f64>().ok();
        let notes = diagnosis.run.visits.iter().flat_map(|visit| &visit.process.notes);
        let left: BTreeSet<&str> = notes.filter_map(|note| note.strip_prefix(NOT_SLOWED)).collect();
        let planted: BTreeSet<String> = plan
            .iter()
            .filter(|planned| share_of(&planned.case).is_some())
            .map(|one| one.case.key())
            .collect();
        let slowed = diagnosis.series.iter().map(|judged| &judged.series);
        let slowed =
            slowed.filter(|series| planted.contains(&series.case.key()) && !left.contains(&*series.key));
        // What this host cannot have is nothing of a run; what its budget cut is.
        let impossible: BTreeSet<String> = plan
            .iter()
            .filter(|planned| planned.unmet.as_deref().is_some_and(|why| !why.starts_with("budget")))
            .map(|planned| planned.case.key())
            .collect();
        let headlines = diagnosis.series.iter().filter(|judged| {
            judged.series.metric.headline && !impossible.contains(&judged.series.case.key())
        });
        let grade = |least: model::Grade| {
            headlines.clone().filter(|judged| judged.analysis.verdict.grade <= least).count()
        };
        let loud = diagnosis.findings.iter().any(|finding| OUTSIDE.contains(&&*finding.rule));
        Ok(Measured {
            started: diagnosis.run.header.started.clone(),
            share: plan.iter().filter_map(|planned| share_of(&planned.case)).reduce(f64::max),
            slowed: slowed.map(|series| series.key.clone()).collect(),
            grades: [grade(model::Grade::A), grade(model::Grade::B)],
            seconds: diagnosis.elapsed_s(),
            quiet: !loud,
            headlines: headlines
                .map(|judged| (judged.series.key.clone(), is_core_bound(&judged.series, &diagnosis.machine)))
                .collect(),
            arm: ComparisonSide::measured(&diagnosis, &shown),
        })
    }
}

/// B against A, as `assay compare A B`, with `--history` where some is given.
pub fn compared(a: &Measured, b: &Measured, history: Option<ComparisonSide>) -> Comparison {
    of_arms(&a.arm, &b.arm, history)
}

pub fn of_arms(a: &ComparisonSide, b: &ComparisonSide, history: Option<ComparisonSide>) -> Comparison {
    compare(a, b, &Options { history, ..Options::default() })
}

/// Several runs as one side.
pub fn side<'a>(runs: impl Iterator<Item = &'a Measured>) -> Result<ComparisonSide, String> {
    ComparisonSide::of_runs(runs.map(|run| run.arm.clone()).collect(), "several runs")
}
