//! Whether a sweep can detect the requested effect, decided for all cells together.

use stats::core_bound::run_clock;
use stats::series::series;
use stats::sweep::grid_data::detectable_so_far;

use super::Loop;

impl Loop<'_, '_> {
    /// All cells continue until the requested effect would be detected, of each knob in each
    /// metric; only failing cells end earlier.
    pub(super) fn check_sweep_effect(&mut self, runnable: &[usize]) {
        let hopeless: Vec<bool> = runnable.iter().map(|case| self.gives_nothing(*case)).collect();
        let enough = runnable.iter().zip(&hopeless).all(|(case, gone)| *gone || self.has_enough(*case));
        let seen = enough && self.effect_is_detectable();
        for (case, hopeless) in runnable.iter().zip(hopeless) {
            // Once detectable, no further check is needed.
            self.finished[*case] |= hopeless || seen;
        }
    }

    fn effect_is_detectable(&mut self) -> bool {
        let header = self.session.header;
        let Some((sweep, effect)) = header.sweep.as_ref().and_then(|sweep| Some((sweep, sweep.effect?)))
        else {
            return false;
        };
        let passes = self.run.visits.iter().map(|visit| visit.pass as usize + 1).max().unwrap_or(0);
        if !self.ending.is_due(passes) {
            return false;
        }
        let all = series(&self.run);
        let machine = self.watch.machine();
        let seen = seen_so_far(sweep, &all, (run_clock(&all, machine), machine), header.seed);
        // If there is no effect to estimate (all cells but one fail), more passes do not help.
        let largest = seen.iter().copied().reduce(f64::max).unwrap_or(0.0);
        self.ending.check(passes, largest, effect.ln_1p())
    }
}
