//! Whether a sweep has seen enough: its question is asked of all cells together.

use stats::core_bound::run_clock;
use stats::series::series;
use stats::sweep::grid_data::detectable_so_far;

use super::Loop;

impl Loop<'_, '_> {
    /// Cells go on together until the effect that the sweep asks for would be seen, of each knob in
    /// each metric; only those that give nothing end before.
    pub(super) fn look_whether_it_is_seen(&mut self, runnable: &[usize]) {
        let hopeless: Vec<bool> = runnable.iter().map(|case| self.gives_nothing(*case)).collect();
        let enough = runnable.iter().zip(&hopeless).all(|(case, gone)| *gone || self.has_enough(*case));
        let seen = enough && self.sees_what_is_asked();
        for (case, hopeless) in runnable.iter().zip(hopeless) {
            // Once seen, nothing is looked at again.
            self.finished[*case] |= hopeless || seen;
        }
    }

    fn sees_what_is_asked(&mut self) -> bool {
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
        let seen = detectable_so_far(sweep, &all, (run_clock(&all, machine), machine), header.seed);
        // Where nothing can be asked (all cells but one fail), more passes change nothing.
        let largest = seen.iter().copied().reduce(f64::max).unwrap_or(0.0);
        self.ending.check(passes, largest, effect.ln_1p())
    }
}
