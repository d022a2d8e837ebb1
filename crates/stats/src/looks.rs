//! Looks at a core beside windows: for how many threads it fetches. A look is the cycles of the
//! core clock that a round of a loop of taken branches takes: about one where the core fetches for
//! one thread, twice that where it fetches for two in turn.

use super::order::{finite, quantile};
use super::outliers::Covariate;
use super::series::{Process, Series};

/// A look this many times the lowest twentieth is shared.
const APART: f64 = 1.5;
/// What a core takes that fetches for one thread: outside of it the core was never alone, or
/// fetches otherwise.
const ALONE_CYCLES: std::ops::RangeInclusive<f64> = 0.2..=1.6;
const LEAST: usize = 40;
/// The column in which samples have a look at the core after each window.
const COLUMN: &str = "fetch_cycles";

/// What looks at cores tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    /// From so many cycles on a look is one at a shared core.
    pub from_cycles: f64,
    /// Part of all looks that are, 0 to 1.
    pub share: f64,
}

impl Shared {
    pub fn holds(self, cycles: f64) -> bool {
        cycles >= self.from_cycles
    }
}

/// Tells looks at shared cores from those at cores of one thread. `None` below 40 looks, or where
/// the lowest are not what a core takes alone.
pub fn shared(looks: &[f64]) -> Option<Shared> {
    let looks = finite(looks);
    let lowest = quantile(&looks, 0.05).filter(|lowest| ALONE_CYCLES.contains(lowest))?;
    let from_cycles = APART * lowest;
    let above = looks.iter().filter(|cycles| **cycles >= from_cycles).count();
    (looks.len() >= LEAST).then(|| Shared { from_cycles, share: above as f64 / looks.len() as f64 })
}

/// All looks of a run at cores on which nothing else of ours ran: beside the windows of series
/// whose work shares one CPU.
pub fn of_run<'s>(series: impl Iterator<Item = &'s Series>) -> Vec<f64> {
    let alone = series.filter(|series| series.case.placement.is_of_one_cpu());
    finite(
        &alone
            .flat_map(|series| &series.processes)
            .filter_map(|process| process.looks())
            .collect::<Vec<_>>()
            .concat(),
    )
}

impl Process {
    /// The look at the core after each of its counted windows, cycles; `None` where nobody looked.
    pub fn looks(&self) -> Option<&[f64]> {
        self.column(COLUMN)
    }

    /// Itself with no other windows than those whose core fetched for one thread at both ends, as
    /// far as somebody looked; `None` without any.
    pub fn alone(&self, shared: Shared) -> Option<Process> {
        let looks = self.looks().unwrap_or_default();
        let beside = |window: usize| looks.get(window).is_some_and(|cycles| shared.holds(*cycles));
        let alone = |window: usize| !beside(window) && !window.checked_sub(1).is_some_and(beside);
        let kept: Vec<bool> = (0..self.values.len()).map(alone).collect();
        let only = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect()
        };
        let beside = self.beside.iter();
        let beside =
            beside.map(|column| Covariate { name: column.name.clone(), values: only(&column.values) });
        let process = Process { values: only(&self.values), beside: beside.collect(), ..self.clone() };
        (!process.values.is_empty()).then_some(process)
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::series;
    use super::*;
    use testkit::{run, samples, visit};

    #[test]
    fn looks_at_shared_cores_are_counted() {
        let looks: Vec<f64> =
            (0..100).map(|n| if n % 4 == 0 { 2.05 } else { 1.0 + f64::from(n) * 1e-3 }).collect();
        let found = shared(&looks).expect("enough looks");
        assert_eq!(found.share, 0.25);
        assert!(found.holds(2.0) && !found.holds(1.3));
        assert_eq!(shared(&looks[..LEAST - 1]), None, "too few");
        assert_eq!(shared(&[2.05; 100]), None, "never alone");
        assert_eq!(shared(&[f64::NAN; 100]), None);
    }

    #[test]
    fn windows_beside_another_thread_are_told_from_those_alone() {
        let mut four = samples("rate", 0, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        four.beside.fetch_cycles = Some(model::Packed::Each(vec![1.0, 2.0, 1.0, 1.0, f64::NAN]));
        four.beside.clock_ghz = Some(model::Packed::Each(vec![3.0, 3.1, 3.2, 3.3, 3.4]));
        let process = series(&run(1, vec![visit(0, 0, 0, vec![four])])).remove(0).processes.remove(0);
        let shared = |from_cycles: f64| Shared { from_cycles, share: 0.2 };
        // The second was beside one at its end, the third at its begin.
        let alone = process.alone(shared(1.5)).expect("three windows");
        assert_eq!(
            (alone.values.as_slice(), alone.clocks()),
            (&[1.0, 4.0, 5.0][..], Some(&[3.0, 3.3, 3.4][..]))
        );
        assert_eq!(process.alone(shared(9.0)).as_ref().map(|all| &all.values), Some(&process.values));
        let unlooked = Process { beside: Vec::new(), ..process.clone() };
        assert_eq!(unlooked.alone(shared(1.5)), Some(unlooked.clone()), "as in files of before");
        assert_eq!(Process { values: vec![2.0], ..process }.alone(shared(0.5)), None);
    }
}
