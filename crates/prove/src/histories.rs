//! What steps are worth, on histories whose truth is known: how often a steady figure has one, how
//! often a planted one is found.
//!
//! A host has 60 figures. Runs differ by 1 % (standard deviation) in each of them, and a value has
//! an interval of ±0.5 %.

use fastrand::Rng;

use crate::proof::{Rate, bounds};
use compare::peers::fleet::{HostResult, Series};
use compare::trend::{Trend, trend};
use model::Better;
use stats::noise::normal;

bounds! {
    /// Most steady figures that have a step, where runs differ by normal noise.
    STEPS_FALSE_MOST = 0.001;
    /// The same where one run in ten is 10 % off.
    STEPS_SPIKES_MOST = 0.006;
    /// Least steps of 10 % in one figure of a host that are found within a run of their place, from
    /// ten runs on ...
    STEPS_TENTH_LEAST = 0.9;
    /// ... and of 5 %, from twenty runs on.
    STEPS_TWENTIETH_LEAST = 0.9;
}

const FIGURES: usize = 60;
const SPREAD: f64 = 0.01;
const HALF: f64 = 0.005;

/// How runs of one level differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Between {
    Normal,
    /// One figure in ten is 10 % off because of other work.
    Spikes,
    /// What one run is off by, the next keeps this share of.
    Wandering(f64),
}

/// A step in the first figure: by this share, this many runs before the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planted {
    pub share: f64,
    pub runs_ago: usize,
}

/// What was seen in simulated histories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Figures without a planted step that have one.
    pub false_steps: Rate,
    /// Hosts with such a figure.
    pub false_hosts: Rate,
    /// Planted steps that were found within a run of their place.
    pub found: Rate,
}

/// Hosts with this many runs.
pub fn histories(runs: usize, between: Between, planted: Option<Planted>, hosts: usize, seed: u64) -> Seen {
    let mut rng = Rng::with_seed(seed);
    let mut seen = Seen::default();
    for _ in 0..hosts {
        let trend = history(runs, between, planted, &mut rng);
        let mut any = false;
        for (place, figure) in trend.figures.iter().enumerate() {
            if let (0, Some(planted)) = (place, planted) {
                let at = runs - planted.runs_ago;
                seen.found.count(figure.steps.iter().any(|step| step.between[1].abs_diff(at) <= 1));
                continue;
            }
            seen.false_steps.count(!figure.steps.is_empty());
            any |= !figure.steps.is_empty();
        }
        seen.false_hosts.count(any);
    }
    seen
}

fn history(runs: usize, between: Between, planted: Option<Planted>, rng: &mut Rng) -> Trend {
    let mut off = [0.0; FIGURES];
    let mut run = |at: usize| {
        let series = (0..FIGURES).map(|place| {
            off[place] = match between {
                Between::Normal => SPREAD * normal(rng),
                Between::Spikes => SPREAD * normal(rng) + if rng.u8(0..10) == 0 { 0.1 } else { 0.0 },
                Between::Wandering(kept) => {
                    kept * off[place] + (1.0 - kept * kept).sqrt() * SPREAD * normal(rng)
                }
            };
            let level = match planted {
                Some(planted) if place == 0 && at + planted.runs_ago >= runs => 1.0 + planted.share,
                _ => 1.0,
            };
            let median = 100.0 * level * off[place].exp();
            Series {
                key: format!("test.{place}@one-cpu#latency"),
                unit: "ns".to_string(),
                better: Some(Better::Lower),
                headline: true,
                median,
                ci95: Some([median * (1.0 - HALF), median * (1.0 + HALF)]),
            }
        });
        HostResult {
            host: "h".into(),
            started: format!("{at:04}"),
            series: series.collect(),
            ..HostResult::default()
        }
    };
    let all: Vec<HostResult> = (0..runs).map(&mut run).collect();
    trend(all, None, None).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed bound is a changed promise.
    #[test]
    fn the_texts_state_these_bounds() {
        crate::texts_state(BOUNDS);
    }

    #[test]
    fn steady_figures_seldom_have_a_step() {
        for (runs, hosts) in [(8, 60), (20, 40), (40, 20)] {
            for (between, most) in [(Between::Normal, STEPS_FALSE_MOST), (Between::Spikes, STEPS_SPIKES_MOST)]
            {
                let seen = histories(runs, between, None, hosts, 1);
                assert!(seen.false_steps.share() <= most, "{runs} {between:?}: {seen:?}");
            }
        }
    }

    #[test]
    fn planted_steps_are_found_and_more_surely_in_longer_histories() {
        let found = |runs: usize, share: f64, runs_ago: usize| {
            histories(runs, Between::Normal, Some(Planted { share, runs_ago }), 40, 2).found.share()
        };
        assert!(found(10, 0.10, 5) >= STEPS_TENTH_LEAST && found(20, 0.10, 3) >= STEPS_TENTH_LEAST);
        assert!(found(20, 0.05, 10) >= STEPS_TWENTIETH_LEAST);
        assert!(found(40, 0.03, 20) > found(12, 0.03, 6));
    }
}
