//! By which engine a case asks for its I/O, and for how long its points count, where the user or
//! this host has a say.

use super::cases::{PACED_LEAST, PACED_S, POINTS, SECONDS, STRETCH, SUSTAINED_S, points_input, shapes};
use crate::{Candidate, Scope};
use model::vocabulary::disk as ids;
use model::vocabulary::{BenchId, ParamId};

/// Rows whose I/O is asked for by an engine of choice, for as long as is wanted.
pub const ASKING: [BenchId; 4] = [ids::SEQUENTIAL, ids::RANDOM, ids::PACED, ids::SUSTAINED];

/// What this host has of engines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Engines {
    /// Why there is no io_uring.
    pub refused: Option<String>,
    /// The device has queues that can be polled.
    pub pollable: bool,
}

impl Engines {
    /// Gives a candidate the engine that is wanted (`uring`, `polled`, `psync`), else the one that
    /// exists. Engines other than plain io_uring are named in the case, so their series have their
    /// own keys. `false`: the candidate cannot be measured.
    pub fn give(&self, candidate: &mut Candidate, wanted: Option<&str>) -> bool {
        let params = &candidate.case.params;
        let text = |name: ParamId| params.get(name).and_then(|value| value.text().map(str::to_string));
        let (own, buffered) =
            (text(ids::param::ENGINE), text(ids::param::CACHE).as_deref() == Some("buffered"));
        match (wanted, own.as_deref()) {
            // The profile's own comparison of engines.
            (None, Some("polled")) => self.unmet(candidate, "polled"),
            (None, Some(_)) => {}
            (None, None) if self.refused.is_some() => blocking(candidate),
            (None, None) => {}
            (Some("uring"), None) => self.unmet(candidate, "uring"),
            (Some("psync"), None) => blocking(candidate),
            (Some("polled"), None) if !buffered => {
                candidate.case.params.insert(ids::param::ENGINE, "polled");
                self.unmet(candidate, "polled");
            }
            (Some(wanted), Some(own)) if wanted == own => self.unmet(candidate, own),
            // Another engine's, or polling what goes through the page cache, which has nothing to
            // poll.
            _ => return false,
        }
        true
    }

    fn unmet(&self, candidate: &mut Candidate, engine: &str) {
        let refused = self.refused.as_ref().filter(|_| engine != "psync");
        let why = match (refused, engine) {
            (Some(why), _) => Some(format!("not available here: io_uring is refused ({why})")),
            (None, "polled") if !self.pollable => {
                Some("the block device has no polled queues (io_poll is 0)".to_string())
            }
            _ => None,
        };
        candidate.unmet = candidate.unmet.take().or(why);
    }
}

/// By pread and pwrite: one I/O at a time of each job.
fn blocking(candidate: &mut Candidate) {
    let case = &mut candidate.case;
    case.params.insert(ids::param::ENGINE, "psync");
    if case.bench == ids::PACED {
        // It has no depth to miss: what falls due waits.
        return;
    }
    let before = shapes(case);
    let mut own = before.clone();
    own.iter_mut().for_each(|shape| shape.depth = 1);
    own.dedup();
    if !own.is_empty() {
        candidate.seconds *= own.len() as f64 / before.len() as f64;
        case.inputs.insert(POINTS.into(), points_input(&own));
    }
}

/// Sets the counted seconds of a candidate's points, and notes them in its case: another time is
/// another measurement.
pub fn with_time(candidate: &mut Candidate, seconds: u64, scope: &Scope) {
    let windows = (scope.windows.count + scope.windows.warm_up) as f64;
    let wanted = seconds as f64;
    let (usual, wanted) = match candidate.case.id() {
        Some(ids::SUSTAINED) => (SUSTAINED_S, wanted),
        Some(ids::PACED) => {
            let rate =
                candidate.case.params.get(ids::param::RATE).and_then(|value| value.number()).unwrap_or(1.0);
            let length = |wanted: f64| wanted.max(PACED_LEAST as f64 / rate);
            (length(PACED_S), length(wanted))
        }
        _ => (
            windows * STRETCH * scope.windows.window_ns / 1e9,
            wanted * windows / scope.windows.count.max(1) as f64,
        ),
    };
    let points = shapes(&candidate.case).len() as f64;
    candidate.seconds = (candidate.seconds + points * (wanted - usual)).max(0.0);
    candidate.case.params.insert(SECONDS, seconds);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(params: &[(ParamId, &str)]) -> Candidate {
        let mut candidate = Candidate::unmet(ids::RANDOM, "one-cpu", String::new());
        candidate.unmet = None;
        candidate.seconds = 1.0;
        candidate.case.inputs.insert(POINTS.into(), "4096x1,4096x32,65536x4".into());
        params.iter().fold(candidate, |candidate, (name, value)| candidate.param(*name, *value))
    }

    const REFUSED: &str = "switched off";

    fn engines(refused: bool, pollable: bool) -> Engines {
        Engines { refused: refused.then(|| REFUSED.to_string()), pollable }
    }

    /// What becomes of a case: its engine and points, or why it is none.
    fn given(engines: &Engines, params: &[(ParamId, &str)], wanted: Option<&str>) -> Option<String> {
        let mut candidate = candidate(params);
        engines.give(&mut candidate, wanted).then(|| match &candidate.unmet {
            Some(why) => why.clone(),
            None => {
                let engine = candidate.case.params.get(ids::param::ENGINE).and_then(|value| value.text());
                format!("{} {}", engine.unwrap_or("usual"), candidate.case.inputs[POINTS])
            }
        })
    }

    #[test]
    fn without_io_uring_a_case_says_that_it_is_another() {
        let usual = given(&engines(false, true), &[], None);
        assert_eq!(usual.as_deref(), Some("usual 4096x1,4096x32,65536x4"));
        let without = engines(true, true);
        assert_eq!(given(&without, &[], None).as_deref(), Some("psync 4096x1,65536x1"));
        let polled = given(&without, &[(ids::param::ENGINE, "polled")], None).expect("offered with a reason");
        assert!(polled.contains(REFUSED), "{polled}");
        assert_eq!(
            given(&without, &[(ids::param::ENGINE, "psync")], None).as_deref(),
            Some("psync 4096x1,4096x32,65536x4")
        );
    }

    #[test]
    fn a_wish_takes_the_place_of_all_other_engines() {
        let all = engines(false, true);
        assert_eq!(given(&all, &[], Some("psync")).as_deref(), Some("psync 4096x1,65536x1"));
        assert_eq!(given(&all, &[], Some("polled")).as_deref(), Some("polled 4096x1,4096x32,65536x4"));
        assert_eq!(given(&all, &[(ids::param::CACHE, "buffered")], Some("polled")), None);
        for (own, wanted) in
            [("psync", "uring"), ("polled", "uring"), ("polled", "psync"), ("psync", "polled")]
        {
            assert_eq!(given(&all, &[(ids::param::ENGINE, own)], Some(wanted)), None, "{own} {wanted}");
        }
        let stuck = given(&engines(false, false), &[], Some("polled")).expect("offered with a reason");
        assert!(stuck.contains("io_poll"), "{stuck}");
        let refused = given(&engines(true, true), &[], Some("uring")).expect("offered with a reason");
        assert!(refused.contains(REFUSED), "{refused}");
    }
}
