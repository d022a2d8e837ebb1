//! Slowed on purpose (`assay run --planted 10`): timed loops do this share more work than they
//! report, so that `prove a-a` can count which real differences `assay compare` finds. What no loop
//! times, or only one that cannot be lengthened by this share, stays unchanged, and the pass's
//! notes say so.

use std::collections::BTreeSet;

use model::vocabulary::selftest::PLANTED;
use model::{Case, Params, Samples};

use super::{Body, Sampler};

/// What a note begins with; the series' key follows.
pub const NOT_SLOWED: &str = "not slowed: ";

/// A loop of few iterations gets as many as the share needs, unless its samples would be this many
/// times as long.
const LONGER_AT_MOST: f64 = 20.0;

/// Extra iterations from which on rounding them does not matter: the share is right within a
/// twentieth.
const EXACT: f64 = 10.0;

pub struct Planted {
    case: Case,
    share: f64,
    slowed: BTreeSet<String>,
}

impl Planted {
    /// `None` unless the case is to be slowed.
    pub fn of(case: &Case) -> Option<Planted> {
        let share: f64 = case.inputs.get(PLANTED)?.parse().ok()?;
        Some(Planted { case: case.clone(), share, slowed: BTreeSet::new() })
    }

    /// For a loop that fills a sample with this many iterations: the iterations that each sample
    /// reports, and the share that it does beyond them (0 if it cannot be slowed). `metrics` are
    /// those of its samples.
    pub fn slow(
        &mut self,
        params: &Params,
        metrics: &[String],
        iterations: u64,
        (window_ns, body): (f64, Body),
    ) -> anyhow::Result<(u64, f64)> {
        let reported = reported(iterations, self.share);
        let longer = reported as f64 / iterations as f64;
        if longer > 1.0 && body(iterations)? * longer > LONGER_AT_MOST * window_ns {
            return Ok((iterations, 0.0));
        }
        self.slowed.extend(metrics.iter().map(|metric| self.case.series_key(params, metric)));
        Ok((reported, self.share))
    }

    /// What is to be noted of samples: which of their series were not slowed.
    pub fn remarks(&self, samples: &Samples) -> Vec<String> {
        let keys = samples.metrics.iter().map(|metric| self.case.series_key(&samples.point, metric));
        keys.filter(|key| !self.slowed.contains(key)).map(|key| format!("{NOT_SLOWED}{key}")).collect()
    }
}

impl Sampler<'_> {
    /// How many iterations a sample reports, and the share that it does beyond them: none, but for
    /// what is slowed on purpose.
    pub(super) fn slowed(
        &mut self,
        params: &Params,
        metrics: Vec<String>,
        iterations: u64,
        window: (f64, Body),
    ) -> anyhow::Result<(u64, f64)> {
        match &mut self.planted {
            Some(planted) => planted.slow(params, &metrics, iterations, window),
            None => Ok((iterations, 0.0)),
        }
    }
}

/// The least number of iterations from `iterations` on of which the share is a whole number, or
/// nearly.
fn reported(iterations: u64, share: f64) -> u64 {
    let step = (1.0 / share).round().max(1.0) as u64;
    match iterations as f64 * share >= EXACT {
        true => iterations,
        false => iterations.div_ceil(step) * step,
    }
}

/// The iterations that run for this many reported ones.
pub fn done(reported: u64, share: f64) -> u64 {
    reported + (reported as f64 * share).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, rehearsal};
    use model::Form;
    use model::vocabulary::selftest::metric::{CYCLES, INSTRUCTIONS, SPEED};

    #[test]
    fn loops_take_longer_than_what_they_report_and_what_is_no_such_loop_says_so() {
        let mut case = rehearsal::nothing();
        case.inputs.insert(PLANTED.to_string(), "0.1".to_string());
        let mut notes = Vec::new();
        let samples = rehearsal::with_sampler_of(&case, |sampler| {
            sampler.time_by(Point::new(SPEED, 1.0), |n| Ok(n as f64 * 5.0))?;
            // One of these takes longer than ten of its samples may.
            sampler.time_by(Point::new(CYCLES, 1.0), |n| Ok(n as f64 * 1e9))?;
            sampler.value(Params::new(), INSTRUCTIONS, 7.0, 1.0)?;
            notes.clone_from(&sampler.facts().notes);
            Ok(())
        });
        let samples = samples.expect("sampled");
        let values = |at: usize| samples[at].values(Form::TimePerWork { scale: 1.0 });
        assert!(values(0).iter().all(|ns| (ns / 5.5 - 1.0).abs() < 1e-3), "{:?}", values(0));
        assert!(values(1).iter().all(|ns| *ns == 1e9), "{:?}", values(1));
        let named = |metric| format!("{NOT_SLOWED}{}", case.series_key(&Params::new(), metric));
        assert_eq!(notes, [named(&CYCLES), named(&INSTRUCTIONS)]);
    }

    #[test]
    fn the_share_is_done_whatever_the_number_of_iterations() {
        for share in [0.05, 0.1, 0.25] {
            for iterations in [1, 2, 3, 7, 19, 20, 21, 99, 1000, 123_456_789] {
                let reported = reported(iterations, share);
                assert!(reported >= iterations);
                let extra = done(reported, share) as f64 / reported as f64 - 1.0;
                assert!((extra / share - 1.0).abs() <= 0.051, "{iterations} at {share}: {extra}");
            }
        }
        assert_eq!(done(7, 0.0), 7);
    }
}
