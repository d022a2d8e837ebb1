//! Detects whether a core was shared with an SMT sibling, by a probe after each window. A probe is
//! the core cycles that a round of a loop of taken branches takes: about one if the core fetches
//! for one thread, about two if it alternates between two threads.

use super::order::{finite, quantile};
use super::outliers::Covariate;
use super::series::{Process, Series};

/// From this many times the 5th percentile of all probes on, a core was shared.
const SHARED_RATIO: f64 = 1.5;
/// Cycles of a core with one thread. If the 5th percentile lies outside, the core was never alone
/// or fetches differently.
const ALONE_CYCLES: std::ops::RangeInclusive<f64> = 0.2..=1.6;
const MIN_PROBES: usize = 40;
/// The column of samples with the probe after each window.
const PROBE_COLUMN: &str = "fetch_cycles";

/// How a run's probes separate shared cores from others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreSharing {
    /// A core with this many cycles or more was shared.
    pub from_cycles: f64,
    /// Share of all probes on shared cores, 0 to 1.
    pub share: f64,
}

impl CoreSharing {
    pub fn is_shared(self, cycles: f64) -> bool {
        cycles >= self.from_cycles
    }
}

/// The threshold that separates shared cores from others. `None` below 40 probes, or if the lowest
/// are not those of a core with one thread.
pub fn shared(probes: &[f64]) -> Option<CoreSharing> {
    let probes = finite(probes);
    let lowest = quantile(&probes, 0.05).filter(|lowest| ALONE_CYCLES.contains(lowest))?;
    let from_cycles = SHARED_RATIO * lowest;
    let above = probes.iter().filter(|cycles| **cycles >= from_cycles).count();
    (probes.len() >= MIN_PROBES)
        .then(|| CoreSharing { from_cycles, share: above as f64 / probes.len() as f64 })
}

/// The probes of a run while Assay ran nothing else on the core: those of series whose work shares
/// one CPU.
pub fn of_run<'s>(series: impl Iterator<Item = &'s Series>) -> Vec<f64> {
    let alone = series.filter(|series| series.case.placement.is_of_one_cpu());
    finite(
        &alone
            .flat_map(|series| &series.processes)
            .filter_map(|process| process.probes())
            .collect::<Vec<_>>()
            .concat(),
    )
}

impl Process {
    /// Cycles of the probe after each counted window; `None` if none was taken.
    pub fn probes(&self) -> Option<&[f64]> {
        self.column(PROBE_COLUMN)
    }

    /// A copy with only the windows whose core was not shared at start and end; windows without a
    /// probe are kept. `None` if no window is left.
    pub fn alone(&self, shared: CoreSharing) -> Option<Process> {
        let probes = self.probes().unwrap_or_default();
        let is_shared = |window: usize| probes.get(window).is_some_and(|cycles| shared.is_shared(*cycles));
        let alone = |window: usize| !is_shared(window) && !window.checked_sub(1).is_some_and(is_shared);
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
        let probes: Vec<f64> =
            (0..100).map(|n| if n % 4 == 0 { 2.05 } else { 1.0 + f64::from(n) * 1e-3 }).collect();
        let found = shared(&probes).expect("enough probes");
        assert_eq!(found.share, 0.25);
        assert!(found.is_shared(2.0) && !found.is_shared(1.3));
        assert_eq!(shared(&probes[..MIN_PROBES - 1]), None, "too few");
        assert_eq!(shared(&[2.05; 100]), None, "never alone");
        assert_eq!(shared(&[f64::NAN; 100]), None);
    }

    #[test]
    fn windows_beside_another_thread_are_told_from_those_alone() {
        let mut four = samples("rate", 0, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        four.beside.fetch_cycles = Some(model::Packed::Each(vec![1.0, 2.0, 1.0, 1.0, f64::NAN]));
        four.beside.clock_ghz = Some(model::Packed::Each(vec![3.0, 3.1, 3.2, 3.3, 3.4]));
        let process = series(&run(1, vec![visit(0, 0, 0, vec![four])])).remove(0).processes.remove(0);
        let shared = |from_cycles: f64| CoreSharing { from_cycles, share: 0.2 };
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
