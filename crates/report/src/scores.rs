//! The UnixBench index of a run as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use stats::Judged;
use stats::unixbench::{Form, Scores, as_unixbench, scores, usable};

/// The tests and the index with one number of copies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputIndex {
    pub copies: i64,
    /// Context switching wherever the scheduler puts its two tasks, as UnixBench takes it.
    pub classic: OutputScore,
    /// Context switching on one CPU.
    pub pinned: OutputScore,
    /// Context switching on the two nearest CPUs.
    pub two_cpus: OutputScore,
    /// The tests in their classic form.
    pub tests: Vec<OutputTest>,
}

/// One form of the index.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputScore {
    /// Null where a test is missing or has no usable number.
    pub score: Option<f64>,
    /// By the delta method; null where a test has no interval.
    pub ci95: Option<[f64; 2]>,
    /// The lowest and the highest that leaving one test out gives.
    pub without_one: Option<[f64; 2]>,
    /// Where the two tasks of context switching were; null where they were nowhere.
    pub placement: Option<String>,
    /// Why there is no score; empty where there is one.
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputTest {
    pub title: String,
    pub bench: String,
    pub unit: String,
    pub baseline: f64,
    /// The median of processes; null where it may not be used.
    pub result: Option<f64>,
    pub index: Option<f64>,
    /// What UnixBench would print: the geometric mean without the worst third of the processes.
    pub as_unixbench: Option<f64>,
}

/// One for each number of copies; none where the run has nothing of UnixBench.
pub fn output(series: &[Judged]) -> Vec<OutputIndex> {
    scores(series).iter().map(one).collect()
}

fn one(scores: &Scores) -> OutputIndex {
    let form = |form: Form| {
        let found = scores.index(form);
        let ends = |interval: Option<stats::Interval>| interval.map(|own| [own.low, own.high]);
        let placement = scores.context(form).map(|judged| judged.series.case.placement.name.to_string());
        match found {
            Ok(found) => OutputScore {
                score: Some(found.value),
                ci95: ends(found.interval),
                without_one: ends(found.without_one),
                placement,
                reason: String::new(),
            },
            Err(reason) => OutputScore { score: None, ci95: None, without_one: None, placement, reason },
        }
    };
    let test = |(test, judged): (&stats::unixbench::Test, &Judged)| OutputTest {
        title: test.title.to_string(),
        bench: test.bench(),
        unit: test.unit.to_string(),
        baseline: test.baseline,
        result: usable(judged),
        index: usable(judged).map(|score| test.index(score)),
        as_unixbench: as_unixbench(judged).map(|own| own.score),
    };
    OutputIndex {
        copies: scores.copies,
        classic: form(Form::Classic),
        pinned: form(Form::Pinned),
        two_cpus: form(Form::TwoCpus),
        tests: scores.tests().map(test).collect(),
    }
}
