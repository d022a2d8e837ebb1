//! After the first passes: rounds of visits to the cases that gain most from them.

use model::run_file::Writer;
use model::{fingerprint, rough};
use stats::series::series;
use stats::spend::{Asked, worthwhile};

use super::{Ended, Loop, Progress};
use crate::plan;

/// Seconds of visits in a round; then all is looked at again.
const ROUND_S: f64 = 4.0;

impl Loop<'_, '_> {
    /// Rounds until the budget is over or nothing gains from more visits.
    pub(super) fn rounds(
        &mut self,
        runnable: &[usize],
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Ended> {
        let highest = self.run.visits.iter().map(|visit| visit.pass + 1).max().unwrap_or(0);
        for pass in highest.max(self.session.profile.passes_min).. {
            for case in runnable {
                self.finished[*case] |= self.is_finished(*case);
            }
            let gaining = self.gaining();
            if gaining.is_empty() {
                let text = "finished early: more visits would bring no further figure within what is asked";
                self.note("early", text, writer)?;
                return Ok(Ended::Complete);
            }
            let first_of_pass = self.run.visits.len();
            let round = self.round(&gaining, pass);
            if round.is_empty() {
                return Ok(Ended::Budget);
            }
            for case in round {
                if let Some(ended) = self.visit_in_time(case, pass, writer, progress)? {
                    return Ok(ended);
                }
            }
            self.after_pass(first_of_pass, writer, progress)?;
        }
        Ok(Ended::Complete)
    }

    /// The cases that gain from another visit, the most worthwhile first.
    fn gaining(&self) -> Vec<usize> {
        let profile = self.session.profile;
        let asked = Asked {
            trusted: profile.precision,
            rough: rough(profile.precision),
            most: profile.passes_max as usize,
        };
        let all = series(&self.run);
        let found = worthwhile(&all, self.watch.machine(), &asked, |case| self.visit_seconds(case));
        found.into_iter().filter(|case| !self.finished[*case]).collect()
    }

    /// Of these the first that fit into a round and into the budget, in a random order; one at least, if the budget has room.
    fn round(&self, gaining: &[usize], pass: u32) -> Vec<usize> {
        let mut round = Vec::new();
        let mut seconds = 0.0;
        for case in gaining.iter().copied().filter(|case| !self.over_budget(*case)) {
            let visit_s = self.visit_seconds(case);
            if round.is_empty() || seconds + visit_s <= ROUND_S {
                round.push(case);
                seconds += visit_s;
            }
        }
        let seed = self.session.header.seed ^ fingerprint(&format!("round {pass}"));
        plan::orders(&round, 1, seed).concat()
    }
}
