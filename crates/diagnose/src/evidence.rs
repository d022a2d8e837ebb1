//! All that rules may read, with the queries that several of them need.

use super::key_figures::{KeyFigure, of_key};
use super::tracks::{clocks_of, is_clock};
use super::words::{clipped, placement};
use machine::Machine;
use model::vocabulary::cpu as ids;
use model::vocabulary::{BenchId, MetricId};
use model::{Case, Conditions, Planned, Run, Visit};
use stats::analysis::Judged;
use stats::core_bound::RunClock;

/// Values outside of these are damaged and left out: no counter grows that far in a run (30,000
/// years, exabytes of pages), and no process starts that fast.
const MAX_CONDITION: f64 = 1e15;
const MIN_WALL_MS: f64 = 1e-3;

/// A run, the host that it describes, and every series with the verdict that its numbers alone
/// give it.
pub struct Evidence<'a> {
    pub run: &'a Run,
    pub machine: &'a Machine,
    /// The core clock of the run; `None` if unknown.
    pub clock: Option<RunClock>,
    pub series: &'a [Judged],
}

/// Conditions of several passes together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Wall time of the passes that knew the value, ms.
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
    pub fn new(
        run: &'a Run,
        machine: &'a Machine,
        clock: Option<RunClock>,
        series: &'a [Judged],
    ) -> Evidence<'a> {
        Evidence { run, machine, clock, series }
    }

    /// Passes that ran, with a result or without.
    pub fn visits(&self) -> impl Iterator<Item = &'a Visit> {
        self.run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0)
    }

    pub fn visits_of(&self, case: u32) -> impl Iterator<Item = &'a Visit> {
        self.visits().filter(move |visit| visit.case == case)
    }

    /// Planned cases that ran at least once, with their index.
    pub fn cases(&self) -> impl Iterator<Item = (u32, &'a Planned)> {
        let plan = &self.run.header.plan;
        plan.iter()
            .enumerate()
            .map(|(index, planned)| (index as u32, planned))
            .filter(|(index, _)| self.visits_of(*index).next().is_some())
    }

    /// A condition summed over passes; `None` where no pass knew it.
    pub fn total(
        visits: impl Iterator<Item = &'a Visit>,
        value: impl Fn(&Conditions) -> Option<f64>,
    ) -> Option<Total> {
        let known = |visit: &Visit| {
            let (wall_ms, value) = (visit.conditions.wall_ms, value(&visit.conditions)?);
            let possible = (MIN_WALL_MS..=MAX_CONDITION).contains(&wall_ms) && value.abs() <= MAX_CONDITION;
            possible.then_some((wall_ms, value))
        };
        visits.filter_map(known).fold(None, |total: Option<Total>, (wall_ms, value)| {
            let total = total.unwrap_or_default();
            Some(Total { wall_ms: total.wall_ms + wall_ms, value: total.value + value })
        })
    }

    /// Series of a case.
    pub fn series_of(&self, case: u32) -> impl Iterator<Item = &'a Judged> {
        self.series.iter().filter(move |judged| judged.series.planned == case as usize)
    }

    /// Keys of all series of a case.
    pub fn keys_of(&self, case: u32) -> Vec<String> {
        self.series_of(case).map(|judged| judged.series.key.clone()).collect()
    }

    /// Keys of all series of the cases whose passes had more of a condition than this, per ms.
    pub fn keys_above(&self, rate: f64, value: fn(&Conditions) -> Option<f64>) -> Vec<String> {
        let total = |case| Evidence::total(self.visits_of(case), value);
        let above = self.cases().filter(|(case, _)| total(*case).is_some_and(|total| total.rate() > rate));
        above.flat_map(|(case, _)| self.keys_of(case)).collect()
    }

    /// The series of one benchmark, placement and metric, at its only point.
    pub fn find(&self, bench: BenchId, placement: &str, metric: MetricId) -> Option<&'a Judged> {
        self.series.iter().find(|judged| {
            let series = &judged.series;
            series.case.bench == bench
                && series.case.placement.name == placement
                && series.metric.name == metric
        })
    }

    /// A benchmark's title, by the run's own catalogue.
    pub fn title(&self, bench: &str) -> String {
        let title = self.run.header.catalogue.iter().find(|title| title.id == bench);
        title.map_or(bench.to_string(), |title| title.title.to_string())
    }

    /// What a case is called in a sentence: by the one key figure that it gives, else by its
    /// benchmark's title and where its tasks were.
    pub fn name(&self, case: &Case) -> String {
        let key = case.key();
        let own = self.series.iter().filter(|judged| judged.series.case.key() == key);
        let mut figures: Vec<&KeyFigure> = own.filter_map(|judged| of_key(&judged.series.key)).collect();
        figures.dedup_by_key(|figure| figure.name);
        if let [figure] = figures.as_slice() {
            return figure.alone.to_string();
        }
        let title = clipped(&self.title(&case.bench));
        match case.placement.name.as_ref() {
            "free" | "one-cpu" | "" => title,
            place => format!("{title} {}", self.place(place)),
        }
    }

    /// Where a placement puts its tasks; only "two CPUs" on a host with one last-level cache.
    pub fn place<'n>(&self, name: &'n str) -> &'n str {
        let caches = &self.machine.caches;
        let last = caches.iter().map(|cache| cache.level).max();
        let several = caches.iter().filter(|cache| Some(cache.level) == last).count() > 1;
        if name == "same-llc" && !several { "on two CPUs" } else { placement(name) }
    }

    /// The same as a label: `one CPU`, `two CPUs`, `free`.
    pub fn place_label<'n>(&self, name: &'n str) -> &'n str {
        if name == "free" { name } else { self.place(name).trim_start_matches("on ") }
    }

    /// The measured core clock, GHz: the median of the clock benchmark, else of the readings after
    /// all samples.
    pub fn core_clock_ghz(&self) -> Option<f64> {
        let measured = self.find(ids::CLOCK, "one-cpu", ids::metric::CLOCK).and_then(Judged::median);
        let measured = measured.filter(is_clock);
        measured.or_else(|| stats::order::median(&self.clocks_ghz()))
    }

    /// The core clock after every sample of every pass, GHz; impossible values are left out.
    pub fn clocks_ghz(&self) -> Vec<f64> {
        self.visits().flat_map(clocks_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ProcessFacts;

    #[test]
    fn damaged_counters_are_left_out_of_totals() {
        let visit = |wall_ms: f64, pages: f64| Visit {
            order: 0,
            case: 0,
            pass: 0,
            at_ms: 0.0,
            conditions: Conditions { wall_ms, swapped_pages: Some(pages), ..Conditions::default() },
            process: ProcessFacts::default(),
            samples: Vec::new(),
            reason: None,
        };
        let visits = [visit(10.0, 2.0), visit(10.0, f64::MAX), visit(5e-324, 1.0), visit(f64::MAX, 1.0)];
        let total = Evidence::total(visits.iter(), |c| c.swapped_pages);
        assert_eq!(total, Some(Total { wall_ms: 10.0, value: 2.0 }));
        assert_eq!(Evidence::total(visits[1..].iter(), |c| c.swapped_pages), None);
    }
}
