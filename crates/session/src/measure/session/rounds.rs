//! After the first passes: rounds of visits to the cases that gain most from them.

use bench::narrowed;
use model::run_file::Writer;
use model::{Params, fingerprint, rough};
use stats::quads::versus;
use stats::series::series;
use stats::spend::{PrecisionTargets, VisitGoals, VisitPart, worthwhile};

use super::{Ended, Loop, Progress};
use crate::plan;

/// Seconds of visits per round, after which the choice is made again.
const ROUND_S: f64 = 4.0;

impl Loop<'_, '_> {
    /// Rounds until the budget ends or no case gains from more visits.
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
                let text = "finished early: more passes would not make another figure precise enough";
                self.note("early", text, writer)?;
                return Ok(Ended::Complete);
            }
            let first_of_pass = self.run.visits.len();
            let round = self.round(gaining, pass);
            if round.is_empty() {
                return Ok(Ended::Budget);
            }
            for (case, points) in round {
                if let Some(ended) = self.visit_in_time(case, &points, pass, writer, progress)? {
                    return Ok(ended);
                }
            }
            self.after_pass(first_of_pass, writer, progress)?;
        }
        Ok(Ended::Complete)
    }

    /// For two alternating commands: whether the quads so far are enough for both.
    pub(super) fn difference_is_known(&self, case: usize) -> bool {
        let place = &self.plan()[case].case.placement.name;
        let all = series(&self.run);
        let mut arms =
            all.iter().filter(|series| series.metric.headline && series.case.placement.name == *place);
        let found = arms.next().zip(arms.next()).and_then(|(a, b)| versus(a, b));
        // Whole quads only, so that no arm is ahead.
        let passes = self.of_case(case).map(|visit| visit.pass + 1).max().unwrap_or(0);
        passes.is_multiple_of(2) && found.is_some_and(|found| found.is_enough())
    }

    /// What gains from another visit, most first.
    fn gaining(&self) -> Vec<Part> {
        let profile = self.session.profile;
        let asked = PrecisionTargets {
            trusted: profile.precision,
            rough: rough(profile.precision),
            most: profile.passes_max as usize,
        };
        let all = series(&self.run);
        let divisible = |case: usize| {
            let case = &self.plan()[case].case;
            self.points_of(case)
                .first()
                .is_some_and(|point| narrowed(case, std::slice::from_ref(point)).is_some())
        };
        let machine = self.watch.machine();
        let first = (self.session.undecided)(&self.run);
        let wanted = VisitGoals { asked, first: &first };
        let found = worthwhile(&all, machine, &wanted, |case| self.visit_seconds(case), divisible);
        found.into_iter().filter(|part| !self.finished[part.case]).collect()
    }

    /// The first of these that fit into a round and the budget, in random order: cases with the
    /// points to visit (none: all). At least one, if the budget has room.
    fn round(&self, gaining: Vec<Part>, pass: u32) -> Vec<(usize, Vec<Params>)> {
        let mut round: Vec<(usize, Vec<Params>)> = Vec::new();
        let (mut seconds, left) = (0.0, self.left_s());
        for part in gaining {
            let place = round.iter().position(|(case, _)| *case == part.case);
            let more_s = match (place, &part.point) {
                (_, None) => self.visit_seconds(part.case),
                (None, Some(_)) => self.part_seconds(part.case, 1),
                (Some(at), Some(_)) => {
                    let points = round[at].1.len();
                    self.part_seconds(part.case, points + 1) - self.part_seconds(part.case, points)
                }
            };
            let pretended = self.session.header.pretend.is_some();
            let fits = pretended || seconds + more_s <= left;
            if !fits || (!round.is_empty() && seconds + more_s > ROUND_S) {
                continue;
            }
            seconds += more_s;
            match place {
                Some(at) => round[at].1.extend(part.point),
                None => round.push((part.case, part.point.into_iter().collect())),
            }
        }
        let seed = self.session.header.seed ^ fingerprint(&format!("round {pass}"));
        let order = plan::orders(&(0..round.len()).collect::<Vec<usize>>(), 1, seed).concat();
        order.into_iter().map(|at| round[at].clone()).collect()
    }
}
