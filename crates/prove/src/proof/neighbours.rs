//! Does the figure of samples that had their core for themselves hold what the work takes alone?
//!
//! Another thread comes to the core and goes again, at random and whatever is measured. A sample
//! takes longer by the share of its time that the other was there; a probe is at the sample's end.

use fastrand::Rng;

use super::Rate;
use model::{Better, Form, Metric};
use stats::core_bound::{Common, at_clock};
use stats::core_sharing::core_sharing;
use stats::guarded::guarded;
use stats::noise::normal;
use stats::order::{Interval, median};
use stats::outliers::Covariate;
use stats::series::Process;

const WINDOWS: usize = 16;
/// Standard deviations of ln(time), over processes and inside them.
const NOISE: f64 = 0.01;
/// A sample that shares its core throughout takes this many times as long.
const PRICE: f64 = 1.4;
/// Probes, cycles: alone, with another thread, and one in a hundred that was interrupted.
const LOOK_ALONE: f64 = 1.0;
const LOOK_BESIDE: f64 = 2.05;
const INTERRUPTED: f64 = 0.01;
const GHZ: f64 = 3.0;
/// Other processes of the run, which show the probe of an unshared core.
const OTHERS: usize = 40;

/// How the other thread comes and goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Part of the time in which it is there.
    pub share: f64,
    /// How long the shorter of its two states lasts in the mean, samples.
    pub lasts: f64,
}

/// Outcomes of series with such a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alone {
    /// Series with a figure of samples alone; the others are left as they ran.
    pub given: Rate,
    /// Of these figures, those whose interval holds what the work takes alone.
    pub covered: Rate,
    /// Mean half-widths of ln(time): of these figures, and of all series as they ran.
    pub half_alone: f64,
    pub half_as_it_ran: f64,
}

pub fn beside(neighbour: Neighbour, processes: usize, trials: usize, seed: u64) -> Alone {
    let mut rng = Rng::with_seed(seed);
    let metric = Metric {
        name: "latency".into(),
        title: "latency".into(),
        unit: "ns".into(),
        better: Better::Lower,
        form: Form::Value,
        headline: true,
        detail: false,
    };
    let mut told = Alone::default();
    for _ in 0..trials {
        let all: Vec<Process> = (0..OTHERS).map(|_| process(neighbour, &mut rng)).collect();
        let looks: Vec<f64> = all.iter().filter_map(|process| process.probes()).flatten().copied().collect();
        let own: Vec<&Process> = all.iter().take(processes).collect();
        let half = |Interval { low, high }: Interval| (high.ln() - low.ln()) / 2.0;
        let medians: Vec<f64> = own.iter().filter_map(|process| median(&process.values)).collect();
        if let Some(ran) = guarded(&medians.iter().map(|value| value.ln()).collect::<Vec<f64>>()) {
            told.half_as_it_ran += (ran.high - ran.low) / 2.0 / trials as f64;
        }
        let common = Common { ghz: GHZ, core_sharing: core_sharing(&looks) };
        let found = at_clock(&own, &metric, common).and_then(|(found, _)| found.estimate.interval);
        told.given.count(found.is_some());
        if let Some(interval) = found {
            told.covered.count(interval.contains(1.0));
            told.half_alone += half(interval);
        }
    }
    told.half_alone /= told.given.hits as f64;
    told
}

fn process(neighbour: Neighbour, rng: &mut Rng) -> Process {
    let Neighbour { share, lasts } = neighbour;
    let [alone, there] = if share < 0.5 {
        [lasts * (1.0 - share) / share, lasts]
    } else {
        [lasts, lasts * share / (1.0 - share)]
    };
    let level = NOISE * normal(rng);
    let mut is_there = rng.f64() < share;
    let mut left = 0.0;
    let (mut values, mut looks) = (Vec::new(), Vec::new());
    for _ in 0..WINDOWS {
        let (mut at, mut beside) = (0.0, 0.0);
        while at < 1.0 {
            if left <= 0.0 {
                left = -(1.0 - rng.f64()).ln() * if is_there { there } else { alone };
            }
            let step = left.min(1.0 - at);
            beside += if is_there { step } else { 0.0 };
            at += step;
            left -= step;
            if left <= 0.0 {
                is_there = !is_there;
            }
        }
        values.push((level + NOISE * normal(rng)).exp() * (1.0 + (PRICE - 1.0) * beside));
        looks.push(if is_there || rng.f64() < INTERRUPTED { LOOK_BESIDE } else { LOOK_ALONE });
    }
    let column = |name: &'static str, values: Vec<f64>| Covariate { name: name.into(), values };
    let clock = column("clock_ghz", vec![GHZ; WINDOWS]);
    Process { values, covariates: vec![clock, column("fetch_cycles", looks)], ..Process::default() }
}

#[cfg(test)]
mod tests {
    use super::super::ALONE_COVERAGE_LEAST;
    use super::*;

    #[test]
    fn figures_of_windows_alone_hold_what_the_work_takes_alone() {
        for share in [0.05, 0.3] {
            for lasts in [10.0, 1000.0] {
                let found = beside(Neighbour { share, lasts }, 7, 400, 31);
                assert!(found.given.share() > 0.5, "{share} {lasts}: {found:?}");
                assert!(found.covered.share() >= ALONE_COVERAGE_LEAST, "{share} {lasts}: {found:?}");
            }
        }
        // What it is for: as they ran they are wide by the neighbour.
        let found = beside(Neighbour { share: 0.3, lasts: 100.0 }, 7, 200, 32);
        assert!(found.half_alone < found.half_as_it_ran / 4.0, "{found:?}");
    }
}
