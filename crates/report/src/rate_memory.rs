//! What components of a rate suite are bound by, and runs and where their memory lay, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use diagnose::Diagnosis;
use diagnose::bound::Bound;
use diagnose::placed::{Placed, placed};
use diagnose::suite::{Part, suite};
use stats::places::Follows;

/// A component whose data fill memory, joined with the map of memory in the same run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputPlaced {
    pub component: String,
    /// `memory`: shares of slow memory predict the runs; `in_part`; `not`; `steady`: the runs are
    /// alike. Null where runs and map could not be joined.
    pub follows: Option<&'static str>,
    /// Why they could not be joined; null where they were.
    pub why: Option<String>,
    /// A sentence on it; null where they could not be joined.
    pub words: Option<String>,
    /// Share of slow memory of each run, 0..1.
    pub slow_shares: Vec<f64>,
    /// Rates of the runs in their order, M/s, and what all others predict of each.
    pub measured: Vec<f64>,
    pub predicted: Vec<f64>,
    /// Pearson's correlation of the time that a run's memory takes with its time; null where one
    /// does not vary.
    pub correlation: Option<f64>,
    /// The largest distance of a measured rate from its prediction, relative.
    pub left: Option<f64>,
}

/// What a component whose data fill memory is bound by, as experiments of this run show it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputBound {
    pub component: String,
    /// `memory`, `not_memory`, `caches` (its data are below twice the last-level caches) or
    /// `unknown`.
    pub bound: &'static str,
    /// The same with the experiment, or why it is not known and the command that settles it.
    pub words: String,
}

/// Empty of runs without a suite.
pub fn bounds(diagnosis: &Diagnosis) -> Vec<OutputBound> {
    let Some(suite) = suite(&diagnosis.run, &diagnosis.series) else { return Vec::new() };
    let memory = suite.parts.iter().filter(|part| part.is_memory());
    let output = |part: &Part| {
        let bound = suite.bound(part, &diagnosis.machine);
        let word = match bound {
            Bound::Memory(_) => "memory",
            Bound::Free(_) => "not_memory",
            Bound::Caches(_) => "caches",
            Bound::Unknown { .. } => "unknown",
        };
        OutputBound { component: part.name().to_string(), bound: word, words: bound.words() }
    };
    memory.map(output).collect()
}

/// Empty of runs without a suite or without a map.
pub fn output(diagnosis: &Diagnosis) -> Vec<OutputPlaced> {
    let Some(suite) = suite(&diagnosis.run, &diagnosis.series) else { return Vec::new() };
    let found = placed(&diagnosis.run, &diagnosis.machine, &suite).unwrap_or_default();
    found.iter().map(output_of).collect()
}

fn output_of(found: &Placed) -> OutputPlaced {
    let joined = found.joined.as_ref().ok();
    let word = |follows: Follows| match follows {
        Follows::Steady => "steady",
        Follows::Memory => "memory",
        Follows::Partly => "in_part",
        Follows::Not => "not",
    };
    OutputPlaced {
        component: found.part.name().to_string(),
        follows: found.follows().map(word),
        why: found.joined.as_ref().err().cloned(),
        words: found.words(),
        slow_shares: joined.map_or_else(Vec::new, |joined| joined.lay.iter().map(|lay| lay.slow).collect()),
        measured: joined.map_or_else(Vec::new, |joined| joined.measured.clone()),
        predicted: joined.map_or_else(Vec::new, |joined| joined.predicted.clone()),
        correlation: joined.and_then(|joined| joined.correlation).map(|[r, _]| r),
        left: joined.map(|joined| joined.left),
    }
}
