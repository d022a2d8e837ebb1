//! All that rules may look at, with the look-ups that several of them need.

use crate::machine::Machine;
use crate::model::{Conditions, Planned, Run, Visit};
use crate::stats::analysis::Judged;

/// A run, the machine that it describes, and every series with the verdict that its numbers alone give it.
pub struct Evidence<'a> {
    pub run: &'a Run,
    pub machine: &'a Machine,
    pub series: &'a [Judged],
}

/// Conditions of several visits together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Wall time of the visits that knew the value, ms.
    pub wall_ms: f64,
    pub value: f64,
}

impl Total {
    /// The value per wall time.
    pub fn rate(&self) -> f64 {
        if self.wall_ms > 0.0 { self.value / self.wall_ms } else { 0.0 }
    }
}

impl<'a> Evidence<'a> {
    pub fn new(run: &'a Run, machine: &'a Machine, series: &'a [Judged]) -> Evidence<'a> {
        Evidence { run, machine, series }
    }

    /// Visits that ran, whatever came of them.
    pub fn visits(&self) -> impl Iterator<Item = &'a Visit> {
        self.run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0)
    }

    pub fn visits_of(&self, case: u32) -> impl Iterator<Item = &'a Visit> {
        self.visits().filter(move |visit| visit.case == case)
    }

    /// Planned cases that ran at least once, with their index.
    pub fn cases(&self) -> impl Iterator<Item = (u32, &'a Planned)> {
        let plan = &self.run.header.plan;
        plan.iter().enumerate().map(|(index, planned)| (index as u32, planned)).filter(|(index, _)| {
            self.visits_of(*index).next().is_some()
        })
    }

    /// A condition summed over visits; `None` where no visit knew it.
    pub fn total(
        visits: impl Iterator<Item = &'a Visit>,
        value: impl Fn(&Conditions) -> Option<f64>,
    ) -> Option<Total> {
        visits.filter_map(|visit| Some((visit.conditions.wall_ms, value(&visit.conditions)?))).fold(
            None,
            |total: Option<Total>, (wall_ms, value)| {
                let total = total.unwrap_or_default();
                Some(Total { wall_ms: total.wall_ms + wall_ms, value: total.value + value })
            },
        )
    }

    /// Series of a case.
    pub fn series_of(&self, case: u32) -> impl Iterator<Item = &'a Judged> {
        self.series.iter().filter(move |judged| judged.series.planned == case as usize)
    }

    /// Keys of all series of a case.
    pub fn keys_of(&self, case: u32) -> Vec<String> {
        self.series_of(case).map(|judged| judged.series.key.clone()).collect()
    }

    /// The series of one benchmark, placement and metric, at its only point.
    pub fn find(&self, bench: &str, placement: &str, metric: &str) -> Option<&'a Judged> {
        self.series.iter().find(|judged| {
            let series = &judged.series;
            series.case.bench == bench && series.case.placement.name == placement && series.metric.name == metric
        })
    }

    /// The measured core clock, GHz: the median of the clock benchmark, else of what was noted beside all windows.
    pub fn core_clock_ghz(&self) -> Option<f64> {
        let measured = self.find("cpu.clock", "one-cpu", "clock").and_then(|judged| judged.analysis.estimate.as_ref());
        measured.map(|estimate| estimate.median).or_else(|| crate::stats::order::median(&self.clocks_ghz()))
    }

    /// The core clock beside every window of every visit, GHz.
    pub fn clocks_ghz(&self) -> Vec<f64> {
        let samples = self.visits().flat_map(|visit| &visit.samples);
        samples
            .filter_map(|samples| Some((samples.len(), samples.beside.clock_ghz.as_ref()?)))
            .flat_map(|(windows, column)| (0..windows).filter_map(|index| column.get(index)))
            .filter(|ghz| ghz.is_finite() && *ghz > 0.0)
            .collect()
    }
}
