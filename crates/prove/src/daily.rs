//! A host that is checked every day: how often a healthy one would be drained by chance, and how
//! soon a slow one is.
//!
//! Noise is that of three real quick runs of one guest on a shared host (two a minute apart, the
//! first half an hour before): processes differ by 4 % (median), runs a minute apart by little
//! more than that brings about, and runs half an hour apart by a level that all figures share (5 %)
//! and one of each figure (1.1 times what its processes differ by). Of a host of one's own all
//! of that is a quarter. Hosts differ by 0.5 % in all figures and 1 % in each.

use crate::proof::over;
use crate::proof::sums;
use fastrand::Rng;

use crate::proof::Rate;
use check::{APART_S, Figure, Outcome, Spec, Subject, Verdict, WITHIN_S, check, confirmed, derived};
use diagnose::key_figures::{Group, KEY_FIGURES, KeyFigure};
use model::{Better, VerdictKind};
use stats::estimate::estimate;
use stats::noise::{Inside, Noise, nested, normal};

/// Passes of a series in a quick run.
const PROCESSES: usize = 7;

/// Runs of other hosts that the spec is derived from, and the margin that it takes by default.
const REFERENCE: usize = 20;
const MARGIN: f64 = 0.05;

const DAY_S: f64 = 86400.0;

/// When a host that was rejected is measured again, s.
const LATER_S: f64 = APART_S + 300.0;

const HOST: f64 = 0.005;
const FIGURE: f64 = 0.01;

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub name: &'static str,
    /// By how much its processes differ, by figure in turns.
    processes: [f64; 5],
    /// The level that all figures of a time share, and that of each, in what processes differ by.
    shared: f64,
    own: f64,
}

/// The guest of the three runs: the quantiles of its figures' coefficients of variation.
pub const GUEST: Place = Place {
    name: "a guest on a shared machine",
    processes: [0.027, 0.032, 0.041, 0.084, 0.138],
    shared: 0.05,
    own: 1.1,
};

pub const OWN: Place = Place {
    name: "a machine of one's own",
    processes: [0.007, 0.008, 0.01, 0.021, 0.035],
    shared: 0.0125,
    own: 1.1,
};

/// A host, by the level of each of its figures.
struct Host {
    levels: Vec<f64>,
}

/// The levels of a time, by figure.
type Time = Vec<f64>;

fn figures() -> impl Iterator<Item = (usize, &'static KeyFigure)> {
    KEY_FIGURES.iter().filter(|figure| !figure.is_size() && !figure.between_hosts).enumerate()
}

impl Place {
    fn host(&self, rng: &mut Rng) -> Host {
        let all = HOST * normal(rng);
        Host { levels: figures().map(|_| all + FIGURE * normal(rng)).collect() }
    }

    fn processes(&self, at: usize) -> f64 {
        self.processes[at % self.processes.len()]
    }

    fn time(&self, rng: &mut Rng) -> Time {
        let all = self.shared * normal(rng);
        figures().map(|(at, _)| all + self.own * self.processes(at) * normal(rng)).collect()
    }

    /// A run of a host at a time; memory is slower by the fault.
    fn run(&self, host: &Host, time: &Time, fault: f64, rng: &mut Rng) -> Subject {
        let figure = |(at, figure): (usize, &'static KeyFigure)| {
            let higher = figure.unit.ends_with("/s") || figure.unit.ends_with("Hz");
            let slow = if figure.group == Group::Memory { (1.0 - fault).ln() } else { 0.0 };
            let level = host.levels[at] + time[at] + slow;
            let middle = 100.0 * if higher { level.exp() } else { (-level).exp() };
            let noise = Noise::Lognormal { cv: self.processes(at) };
            let values = nested(noise, Inside::Independent, PROCESSES, 1, rng);
            let found = estimate(&values, 0.95)?;
            let scaled = |value: f64| value / noise.median() * middle;
            let interval = found.interval?;
            let own = Figure {
                key: format!("{}@one-cpu#value", figure.name),
                label: figure.alone.to_string(),
                unit: figure.unit.to_string(),
                value: Some(scaled(found.median)),
                low_high: Some([scaled(interval.low), scaled(interval.high)]),
                verdict: VerdictKind::Trusted,
                reason: String::new(),
                better: Some(if higher { Better::Higher } else { Better::Lower }),
                headline: true,
            };
            Some((figure.name, own))
        };
        let key_figures: Vec<(&'static str, Figure)> = figures().filter_map(figure).collect();
        let figures = key_figures.iter().map(|(_, figure)| figure.clone()).collect();
        Subject { host: "host".to_string(), key_figures, figures, ..Subject::default() }
    }

    /// The spec of twenty healthy hosts, each measured once.
    fn spec(&self, rng: &mut Rng) -> Spec {
        let runs: Vec<Subject> = (0..REFERENCE)
            .map(|number| {
                let (host, time) = (self.host(rng), self.time(rng));
                let own = self.run(&host, &time, 0.0, rng);
                Subject { host: format!("h{number}"), file: format!("h{number}"), ..own }
            })
            .collect();
        let text = derived(&runs, MARGIN).expect("twenty runs give a spec");
        Spec::read(&text).expect("what is derived can be read")
    }
}

/// What happened in these years of one host each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Years in which it was rejected by one run.
    pub once: Rate,
    /// Years in which it was rejected by `check --confirmed`.
    pub confirmed: Rate,
    /// Days on which no rejection and no acceptance was possible.
    pub undecided: Rate,
    /// Runs that were made since one before was rejected and not confirmed.
    pub again: usize,
}

sums!(Seen: once, confirmed, undecided, again);

/// A host that is checked every day, and again half an hour after a run that was rejected and is
/// not confirmed.
struct Watched {
    place: Place,
    host: Host,
    fault: f64,
    spec: Spec,
    /// Outcomes of its runs, the oldest first.
    outcomes: Vec<Outcome>,
}

impl Watched {
    /// The outcome of a run `at_s` seconds after the beginning.
    fn look(&mut self, at_s: f64, rng: &mut Rng) -> Outcome {
        let time = self.place.time(rng);
        let run = self.place.run(&self.host, &time, self.fault, rng);
        let mut outcome = check(&self.spec, &run, 0.0).expect("a derived spec can be held against a run");
        outcome.background.started_s = Some(at_s);
        self.outcomes.push(outcome.clone());
        outcome
    }

    /// The verdict of a run alone and with those before it.
    fn verdicts(&self, outcome: &Outcome) -> [Verdict; 2] {
        let earlier = self.outcomes.iter().rev().skip(1).cloned();
        [outcome.verdict, confirmed(outcome.clone(), earlier).verdict]
    }
}

/// Hosts that are each measured on this many days; every one has a spec of other hosts.
pub fn daily(place: Place, fault: f64, hosts: usize, days: usize, seed: u64) -> Seen {
    over(hosts, seed, |_, rng, seen: &mut Seen| {
        let spec = place.spec(rng);
        let host = place.host(rng);
        let mut watched = Watched { place, host, fault, spec, outcomes: Vec::new() };
        let [mut once, mut twice] = [false; 2];
        for day in 0..days {
            let mut at_s = DAY_S * day as f64;
            let mut outcome = watched.look(at_s, rng);
            seen.undecided.count(outcome.verdict == Verdict::CannotTell);
            loop {
                let [alone, all] = watched.verdicts(&outcome);
                once |= alone == Verdict::Reject;
                twice |= all == Verdict::Reject;
                if alone != Verdict::Reject || all == Verdict::Reject {
                    break;
                }
                at_s += LATER_S;
                outcome = watched.look(at_s, rng);
                seen.again += 1;
            }
            watched.outcomes.retain(|one| one.background.started_s.is_some_and(|own| at_s - own <= WITHIN_S));
        }
        seen.once.count(once);
        seen.confirmed.count(twice);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow host is found either way; a healthy one is rejected now and then by one run, and
    /// hardly by all that confirm it.
    #[test]
    fn runs_at_other_times_keep_healthy_hosts() {
        let slow = daily(OWN, 0.2, 4, 7, 1);
        assert_eq!((slow.once.hits, slow.confirmed.hits), (4, 4), "{slow:?}");
        let healthy = daily(GUEST, 0.0, 12, 60, 2);
        assert!(healthy.once.hits > healthy.confirmed.hits && healthy.again > 0, "{healthy:?}");
    }
}
