//! What is known of the visits of a large run that were read and not kept.

use std::collections::BTreeMap;

use super::{Visit, measured_ms};

/// Where a visit stood in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub order: u32,
    pub pass: u32,
    pub case: u32,
}

impl Place {
    pub fn of(visit: &Visit) -> Place {
        Place { order: visit.order, pass: visit.pass, case: visit.case }
    }
}

/// Visits of one case that were counted and not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Those with samples that count.
    pub good: usize,
    /// Those with another reason than that they were skipped.
    pub failed: usize,
    /// Of these, wrong answers.
    pub wrong: usize,
}

/// A run of which more visits were read than are kept: drawn evenly over the run, of each case and
/// outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Thinned {
    /// All visits of the file, in their order.
    pub places: Vec<Place>,
    /// How many are kept.
    pub kept: usize,
    /// By case.
    pub left_out: BTreeMap<u32, LeftOut>,
    /// From the run's start to the end of its last visit, ms.
    pub measured_ms: f64,
}

impl Thinned {
    /// What a report says about it.
    pub fn words(&self) -> String {
        format!(
            "{} of {} passes were used, drawn evenly over the run: {} benchmarks have more passes than the \
             analysis needs; all failed passes count",
            self.kept,
            self.places.len(),
            self.left_out.len()
        )
    }
}

/// The visits that a run has so far, for the process that resumes it.
#[derive(Debug, Default)]
pub struct Earlier {
    pub visits: Vec<Visit>,
    pub thinned: Option<Thinned>,
}

impl Earlier {
    /// From the run's start to the end of its last visit, ms.
    pub fn measured_ms(&self) -> f64 {
        self.thinned.as_ref().map_or_else(|| measured_ms(&self.visits), |thinned| thinned.measured_ms)
    }

    /// The order of the next visit.
    pub fn next_order(&self) -> u32 {
        let kept = self.visits.iter().map(|visit| visit.order);
        let all = self.thinned.iter().flat_map(|thinned| &thinned.places).map(|place| place.order);
        kept.chain(all).max().map_or(0, |last| last.saturating_add(1))
    }
}
