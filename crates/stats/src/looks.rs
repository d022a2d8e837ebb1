//! Looks at a core beside windows: for how many threads it fetches. A look is the cycles of the core clock that a round of a
//! loop of taken branches takes: about one where the core fetches for one thread, twice that where it fetches for two in turn.

use super::order::{finite, quantile};
use super::series::Series;

/// A look this many times the lowest twentieth is shared.
const APART: f64 = 1.5;
/// What a core takes that fetches for one thread: outside of it the core was never alone, or fetches otherwise.
const ALONE_CYCLES: std::ops::RangeInclusive<f64> = 0.2..=1.6;
const LEAST: usize = 40;

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

/// Tells looks at shared cores from those at cores of one thread. `None` below 40 looks, or where the lowest are not what a core
/// takes alone.
pub fn shared(looks: &[f64]) -> Option<Shared> {
    let looks = finite(looks);
    let lowest = quantile(&looks, 0.05).filter(|lowest| ALONE_CYCLES.contains(lowest))?;
    let from_cycles = APART * lowest;
    let above = looks.iter().filter(|cycles| **cycles >= from_cycles).count();
    (looks.len() >= LEAST).then(|| Shared { from_cycles, share: above as f64 / looks.len() as f64 })
}

/// All looks of a run at cores on which nothing else of ours ran: beside the windows of series whose work shares one CPU.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
