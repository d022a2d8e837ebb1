//! What fits into the remaining time.

use std::time::Duration;

use model::run_file::Writer;
use model::{Case, Params, Reason, Visit};
use stats::spend::part_s;
use stats::stop;

use super::Loop;
use crate::plan::Until;

impl Loop<'_, '_> {
    /// Whether a visit of these points of a case (none: all) would end after the budget.
    pub(super) fn over_budget(&self, case: usize, points: &[Params]) -> bool {
        let visit_s = match points.len() {
            0 => self.visit_seconds(case),
            some => self.part_seconds(case, some),
        };
        self.session.header.pretend.is_none() && visit_s > self.left_s()
    }

    /// Seconds of a visit of this case: as seen in the first passes, which visit all points, or as
    /// estimated.
    pub(super) fn visit_seconds(&self, case: usize) -> f64 {
        let whole = |visit: &&Visit| {
            self.session.profile.until != Until::Rounds || visit.pass < self.session.profile.passes_min
        };
        let seen: Vec<f64> =
            self.of_case(case).filter(whole).map(|visit| visit.conditions.wall_ms / 1e3).collect();
        match seen.len() {
            0 => self.plan()[case].seconds,
            n => seen.iter().sum::<f64>() / n as f64,
        }
    }

    /// The same for this number of points.
    pub(super) fn part_seconds(&self, case: usize, points: usize) -> f64 {
        part_s(self.visit_seconds(case), points, self.points_of(&self.plan()[case].case).len())
    }

    pub(super) fn points_of(&self, case: &Case) -> Vec<Params> {
        bench::find(&case.bench).map(|bench| (bench.points)(case)).unwrap_or_default()
    }

    /// Estimated number of visits in all, and remaining time: every unfinished case up to the next
    /// stop decision or the end of the passes, then what fits into the budget.
    pub(super) fn outlook(&self) -> (usize, Duration) {
        let profile = self.session.profile;
        let (mut visits, mut seconds) = (self.run.visits.len(), 0.0);
        for case in 0..self.plan().len() {
            if self.finished[case] || self.plan()[case].unmet.is_some() {
                continue;
            }
            let have = self.of_case(case).count();
            let wanted = match profile.until {
                _ if self.is_last(case) => 1,
                Until::Rounds => profile.passes_min as usize,
                Until::Looks => stop::next_look(have).min(profile.passes_max as usize),
                Until::Seen => {
                    let least = profile.passes_min as usize;
                    have.max(self.ending.wanted()).clamp(least, (profile.passes_max as usize).max(least))
                }
                Until::Quads => have.max(profile.passes_min as usize),
            };
            let more = wanted.saturating_sub(have);
            visits += more;
            seconds += more as f64 * self.visit_seconds(case);
        }
        let left = self.left_s();
        if profile.until == Until::Rounds && seconds == 0.0 {
            let spent: f64 = self.run.visits.iter().map(|visit| visit.conditions.wall_ms / 1e3).sum();
            let mean = spent / visits.max(1) as f64;
            visits += if mean > 0.0 { (left.max(0.0) / mean) as usize } else { 0 };
            seconds = left;
        }
        (visits, Duration::from_secs_f64(seconds.min(left).max(0.0)))
    }

    /// Remaining seconds of the budget.
    pub(super) fn left_s(&self) -> f64 {
        self.session.header.budget_s + self.waited.as_secs_f64() - self.begin.elapsed().as_secs_f64()
    }

    /// Leaves out the least important cases until the others get the passes that an interval needs,
    /// at the observed speed, and records the reason.
    pub(super) fn make_room(
        &mut self,
        runnable: &[usize],
        pass: u32,
        writer: &mut Writer,
    ) -> anyhow::Result<()> {
        let least = self.session.profile.passes_min as usize;
        if self.session.header.pretend.is_some() {
            return Ok(());
        }
        let needs = |this: &Self, case: usize| {
            least.saturating_sub(this.of_case(case).count()) as f64 * this.visit_seconds(case)
        };
        let mut due: Vec<usize> = runnable.iter().copied().filter(|case| !self.finished[*case]).collect();
        due.sort_by_key(|case| std::cmp::Reverse(self.plan()[*case].priority));
        let mut wanted: f64 = due.iter().map(|case| needs(self, *case)).sum();
        // Unvisited cases have estimates only, by which the plan was cut already.
        while wanted > self.left_s()
            && due.len() > 1
            && let Some(case) = due.pop()
        {
            let (visits, s) = (self.of_case(case).count(), needs(self, case));
            if visits == 0 || visits >= least {
                continue;
            }
            wanted -= s;
            self.finished[case] = true;
            let reason = format!("budget: no time was left for more than {visits} of {least} passes");
            let visit = self.visit_without_samples(case, pass, Reason::Skipped(reason));
            self.keep(visit, writer)?;
        }
        Ok(())
    }
}
