//! Detects whether a core was shared with an SMT sibling, by a probe after each window. A probe is
//! the core cycles that a round of a loop of taken branches takes: about one if the core fetches
//! for one thread, about two if it alternates between two threads.

use super::order::{finite, quantile};
use super::outliers::Covariate;
use super::series::{Process, Series};

/// A core was shared if a probe took at least this many times the 5th percentile of all probes:
/// halfway between one thread and two.
const SHARED_RATIO: f64 = 1.5;
/// Cycles of a core with one thread; one that fetches several branches per cycle takes fewer than
/// one. If the 5th percentile lies outside, the core was never alone or fetches differently.
const ALONE_CYCLES: std::ops::RangeInclusive<f64> = 0.2..=1.6;
const MIN_PROBES: usize = 40;
/// The column of samples with the probe after each window.
const PROBE_COLUMN: &str = "fetch_cycles";

/// How a run's probes separate shared cores from others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreSharing {
    /// A core with this many cycles or more was shared.
    pub threshold_cycles: f64,
    /// Part of all probes that were on a shared core, 0 to 1.
    pub shared_part: f64,
}

impl CoreSharing {
    pub fn is_shared(self, cycles: f64) -> bool {
        cycles >= self.threshold_cycles
    }
}

/// The threshold that separates shared cores from others. `None` below 40 probes, or if the lowest
/// are not those of a core with one thread.
pub fn core_sharing(probes: &[f64]) -> Option<CoreSharing> {
    let probes = finite(probes);
    let lowest = quantile(&probes, 0.05).filter(|lowest| ALONE_CYCLES.contains(lowest))?;
    let threshold_cycles = SHARED_RATIO * lowest;
    let shared = probes.iter().filter(|cycles| **cycles >= threshold_cycles).count();
    (probes.len() >= MIN_PROBES)
        .then(|| CoreSharing { threshold_cycles, shared_part: shared as f64 / probes.len() as f64 })
}

/// The probes of a run while Assay ran nothing else on the core: those of series whose tasks are
/// all on one CPU.
pub fn probes_of_run<'s>(series: impl Iterator<Item = &'s Series>) -> Vec<f64> {
    let on_one_cpu = series.filter(|series| series.case.placement.is_of_one_cpu());
    finite(
        &on_one_cpu
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

    /// A copy with only the windows whose core was shared neither at their end (the probe after the
    /// window) nor at their start (the probe after the window before). Windows without a probe are
    /// kept. `None` if no window is left.
    pub fn without_shared_windows(&self, sharing: CoreSharing) -> Option<Process> {
        let probes = self.probes().unwrap_or_default();
        let ends_shared = |window: usize| probes.get(window).is_some_and(|cycles| sharing.is_shared(*cycles));
        let is_alone =
            |window: usize| !ends_shared(window) && !window.checked_sub(1).is_some_and(ends_shared);
        let kept: Vec<bool> = (0..self.values.len()).map(is_alone).collect();
        let only_kept = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect()
        };
        let column =
            |column: &Covariate| Covariate { name: column.name.clone(), values: only_kept(&column.values) };
        let process = Process {
            values: only_kept(&self.values),
            covariates: self.covariates.iter().map(column).collect(),
            ..self.clone()
        };
        (!process.values.is_empty()).then_some(process)
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::series;
    use super::*;
    use testkit::{run, samples, visit};

    #[test]
    fn probes_on_shared_cores_are_counted() {
        let probes: Vec<f64> =
            (0..100).map(|n| if n % 4 == 0 { 2.05 } else { 1.0 + f64::from(n) * 1e-3 }).collect();
        let found = core_sharing(&probes).expect("enough probes");
        assert_eq!(found.shared_part, 0.25);
        assert!(found.is_shared(2.0) && !found.is_shared(1.3));
        assert_eq!(core_sharing(&probes[..MIN_PROBES - 1]), None, "too few");
        assert_eq!(core_sharing(&[2.05; 100]), None, "never alone");
        assert_eq!(core_sharing(&[f64::NAN; 100]), None);
    }

    #[test]
    fn windows_on_a_shared_core_are_left_out() {
        let mut windows = samples("rate", 0, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        windows.beside.fetch_cycles = Some(model::Packed::Each(vec![1.0, 2.0, 1.0, 1.0, f64::NAN]));
        windows.beside.clock_ghz = Some(model::Packed::Each(vec![3.0, 3.1, 3.2, 3.3, 3.4]));
        let process = series(&run(1, vec![visit(0, 0, 0, vec![windows])])).remove(0).processes.remove(0);
        let above = |threshold_cycles: f64| CoreSharing { threshold_cycles, shared_part: 0.2 };
        // The second window ended on a shared core, so the third started on one.
        let alone = process.without_shared_windows(above(1.5)).expect("three windows");
        assert_eq!(
            (alone.values.as_slice(), alone.clocks()),
            (&[1.0, 4.0, 5.0][..], Some(&[3.0, 3.3, 3.4][..]))
        );
        assert_eq!(
            process.without_shared_windows(above(9.0)).as_ref().map(|all| &all.values),
            Some(&process.values)
        );
        let unprobed = Process { covariates: Vec::new(), ..process.clone() };
        assert_eq!(
            unprobed.without_shared_windows(above(1.5)),
            Some(unprobed.clone()),
            "old run files have no probes"
        );
        assert_eq!(Process { values: vec![2.0], ..process }.without_shared_windows(above(0.5)), None);
    }
}
