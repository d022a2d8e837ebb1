//! Experiments that measure what the methods are claimed to do, on noise whose truth is known.
//!
//! The tests below run them small and check them against the bounds; `make prove` runs them large
//! and writes the tables of docs/results, which state the same bounds.

mod advised;
mod chunks;
mod clocks;
mod comparing;
mod coverage;
mod crossings;
mod factorials;
mod ladders;
mod limits;
mod neighbours;
mod paths;
mod pauses;
mod quads;
mod regions;
mod slow_memory;
mod smt;
mod stopping;
mod sweeps;
#[cfg(test)]
mod tests;
mod topologies;
mod verdicts;

pub use advised::{AdvisedOf, Advising, advised};
pub use chunks::{Limits, Maps, Memory, WEATHERS, Weather, limits, maps, smooth_maps};
pub use clocks::{ClockRead, Clocked, clocked, gate_opens};
pub use comparing::{
    Contrasted, EqualArms, Levels, Runs, contrasted, different_by_processes, equal_arms,
    equal_arms_while_drifting,
};
pub use coverage::{
    Coverage, FewProcesses, coverage, coverage_while_wandering, few_processes, pooled_coverage,
    true_icc_below_bound,
};
pub use crossings::{Crossed, Passes, crossed};
pub use factorials::{Knobs, SharedOut, shared_out};
pub use ladders::{CLAIMS, Ladders, ladders};
pub use limits::{Decided, Stop, at_limit};
pub use neighbours::{Alone, Neighbour, beside};
pub use paths::{Found, PLANTED, paths};
pub use pauses::{Attributed, TROUBLES, Trouble as PauseTrouble, attributed};
pub use quads::{InTurn, disturbed, in_turn};
pub use regions::{Farther, Host, Named, NeighbourCounts, alike, farther, heard, planted};
pub use slow_memory::{PROMISED, Studied, Study, following, swinging};
pub use smt::{CHARGING, Charging, Cores, TASKS, Tasks, cores};
pub use stopping::{Looked, Stopped, looking_after_every_visit, stopping, stopping_greedily};
pub use sweeps::{Drift, Planted, Sweep, Swept, swept};
pub use topologies::{Guest, Kind, Outcomes, grouped, paired};
pub use verdicts::{ANY_PRECISION, Trouble, Verdicts, explained_by_luck, judged, verdicts};

use std::fmt;
use std::ops::Add;

use fastrand::Rng;

use stats::noise::{Inside, Noise, nested};
use stats::order::median;

/// Constants that docs/results states by name, and their table `BOUNDS`.
macro_rules! bounds {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)+) => {
        $($(#[$doc])* pub const $name: f64 = $value;)+

        /// All bounds by name, as docs/results states them.
        pub const BOUNDS: &[(&str, f64)] = &[$((stringify!($name), $name)),+];
    };
}
pub(crate) use bounds;

bounds! {
    /// Least coverage of a nominal 95 % interval, of all intervals given.
    COVERAGE_LEAST = 0.935;
    /// Most simulated hosts with a wrong report about what pauses their CPUs, or which pause
    /// alternately or together ...
    PAUSES_WRONG_MOST = 0.05;
    /// ... and least share of CPUs and pairs that are reported correctly.
    PAUSES_RIGHT_LEAST = 0.95;
    /// Least share of cases in which the upper bound of the intraclass correlation, nominal 95 %,
    /// is not below the true value.
    ICC_BOUND_LEAST = 0.935;
    /// Least coverage of a nominal 95 % interval of 5 to 14 processes, against the median of the
    /// distribution of process medians.
    GUARDED_COVERAGE_LEAST = 0.94;
    /// The same if a check after every pass, from 5 processes to 20, stops at the first narrow
    /// interval.
    LOOKED_COVERAGE_LEAST = 0.93;
    /// Least share of causes of slow memory just above their limits that are named ...
    REGION_NAMED_LEAST = 0.95;
    REGION_FALSE_MOST = 0.01;
    /// Most neighbours below half of the limit that may be named: a host has its own.
    NEIGHBOUR_FALSE_MOST = 0.05;
    /// Most figures exactly at their limit that end on either side, if passes continue until that
    /// is decided firmly or 30 or 80 processes are reached.
    LIMIT_WRONG_MOST = 0.03;
    /// Least coverage of the figure of a series that is rightly called core-bound, at the clock or
    /// as it ran ...
    CLOCK_COVERAGE_LEAST = 0.94;
    /// ... and of one whose time follows the clock by only a half or three quarters.
    CLOCK_WRONG_COVERAGE_LEAST = 0.91;
    /// Most series that are normalised to a clock although their time does not follow it, of five
    /// processes ...
    CLOCK_FALSE_MOST_5 = 0.12;
    /// ... and of seven or more.
    CLOCK_FALSE_MOST_7 = 0.05;
    /// Least coverage of the figure from unshared samples, if another thread of the core stays for
    /// ten samples or more.
    ALONE_COVERAGE_LEAST = 0.94;
    /// Least runs of 40 core-bound series that are normalised by the right clock ...
    GATE_OPEN_LEAST = 0.99;
    /// ... and most by another CPU's clock, or one that follows half of the time.
    GATE_WRONG_MOST = 0.01;
    /// Most series with a wrong interval if samples replace fewer than five processes.
    WINDOWS_WRONG_MOST = 0.02;
    /// Least share of clean series that are called trusted, where the precision is met.
    TRUSTED_LEAST = 0.95;
    /// The same with a real slow tail (one value in ten is slower), whose slow values may count as
    /// a mode.
    TRUSTED_LEAST_SLOW_TAIL = 0.85;
    /// Most clean series that one test of drift, nominal 1 %, calls moving.
    DRIFT_FALSE_MOST = 0.02;
    /// Most series without an effect in which another test finds one, nominal 5 %.
    OTHER_FALSE_MOST = 0.065;
    /// Most series of independent values in which a period is found.
    PERIOD_FALSE_MOST = 0.01;
    /// Most series whose random outliers are attributed to one of eight unrelated covariates.
    EXPLAINED_FALSE_MOST = 0.05;
    /// Most unimodal series that the mode rule suspects below 40 values ...
    MODES_SUSPECTED_FALSE_MOST = 0.02;
    /// ... and calls multimodal from 40 on.
    MODES_FALSE_MOST = 0.005;
    /// Least coverage of the 95 % interval that is reported after the stop rule ended the
    /// measurement.
    STOPPED_COVERAGE_LEAST = 0.935;
    /// Most clean series that are called drifting or multimodal in the end, after all checks of the
    /// stop rule.
    STOPPED_FALSE_MOST = 0.05;
    /// Most series given up as out of reach whose precision is in reach.
    HOPELESS_FALSE_MOST = 0.05;
    /// Most comparisons of equal arms whose 95 % interval excludes 1, or whose test has p < 0.05.
    SELF_DIFFERENT_MOST = 0.065;
    /// Most pairs of equal runs, with the known spread of levels of their family, that are called
    /// different ...
    EQUAL_RUNS_DIFFERENT_MOST = 0.06;
    /// ... most if they flicker instead, so that runs differ about as much as processes ...
    FLICKER_DIFFERENT_MOST = 0.10;
    /// ... and least coverage of the 95 % interval of their difference.
    CONTRAST_COVERAGE_LEAST = 0.94;
    /// Most pairs of equal commands, run alternately, that are called different.
    IN_TURN_DIFFERENT_MOST = 0.06;
    /// Least pairs with a difference of 2 % that are found different, if time follows the clock.
    IN_TURN_FOUND_LEAST = 0.95;
    /// Most pairs of equal commands, run at once with other work, that are called different ...
    AT_ONCE_DIFFERENT_MOST = 0.06;
    /// ... least pairs with a difference of 2 % that are found different ...
    AT_ONCE_FOUND_LEAST = 0.95;
    /// ... and least coverage of the interval of their difference.
    AT_ONCE_COVERAGE_LEAST = 0.94;
    /// Most ladders whose last cache is measured inconsistently with its true size, at one point
    /// per octave ...
    LADDER_FALSE_MOST = 0.03;
    /// ... and at two or more.
    FINE_LADDER_FALSE_MOST = 0.01;
    /// Least ladders on which a claim of four times or a quarter of the last cache's size is
    /// refuted.
    LADDER_FOURFOLD_LEAST = 0.95;
    /// Most hosts with a wrong report about their CPUs: groups by line transfers, or siblings by
    /// slowdown.
    TOPOLOGY_WRONG_MOST = 0.01;
    /// Least SMT hosts whose second thread's yield is found within 5 %, of nine passes with 0.5
    /// to 5 % of noise.
    YIELD_NEAR_LEAST = 0.95;
    /// Least SMT hosts whose used share is in the interval, nominal 95 %.
    USED_COVERAGE_LEAST = 0.95;
    /// Least coverage of the 95 % interval of the gap between attainment and CPU%.
    GAP_COVERAGE_LEAST = 0.93;
    /// Least printed sentences on used share and growth whose intervals contain the truth.
    SENTENCE_COVERAGE_LEAST = 0.95;
    /// Least coverage of the 95 % intervals of the crossing of two hosts' curves.
    CROSSING_COVERAGE_LEAST = 0.94;
    /// Most memories of one speed that are reported to have several.
    MAP_FALSE_MOST = 0.001;
    /// Least memories with a second speed of 1.33 or more in a tenth to a half of them in which it
    /// is found, with 2 % of noise and no bursts of other work.
    MAP_FOUND_LEAST = 0.98;
    /// Least memories in which a second speed at the limit that an earlier map stated, nominal 95
    /// %, is found.
    MAP_LIMIT_LEAST = 0.9;
    /// Least runs on memory with a slow quarter (at least a third slower, 1 % of noise) that page
    /// samples and map predict within 3 % ...
    PREDICTED_LEAST = 0.95;
    /// ... least studies whose runs follow their memory and are reported to ...
    FOLLOWS_FOUND_LEAST = 0.9;
    /// ... and most that vary for another reason, nominal 5 %.
    FOLLOWS_FALSE_MOST = 0.05;
    /// Most flat sweeps whose knobs are reported to matter, nominal 5 %.
    SWEEP_FALSE_MOST = 0.065;
    /// Most sweeps of two knobs with an effect that was not planted, nominal 5 % ...
    SWEEP_INVENTED_MOST = 0.055;
    /// ... and least in which a main effect of 5 % or a trend of 8 % is found, with 8 % of noise
    /// and 12 passes a cell.
    SWEEP_FOUND_LEAST = 0.9;
    /// Least coverage of the 95 % intervals of a sweep's cells.
    SWEEP_COVERAGE_LEAST = 0.935;
    /// Least sweeps in which the true best cell is among those called best, nominal 95 %; hardest
    /// if all are equal.
    SWEEP_BEST_LEAST = 0.925;
    /// Least planted cells in a region of the planted kind, with 1 % of noise, or 3 % and eight
    /// passes.
    SWEEP_KINDS_LEAST = 0.95;
    /// Least sweeps with 8 % of noise, measured until 5 % would be detected, that name a planted
    /// compromise by its region ...
    ADVICE_FOUND_LEAST = 0.9;
    /// ... and most without a planted one that advise anything.
    ADVICE_INVENTED_MOST = 0.05;
    /// Least coverage of the 95 % intervals of an attributed difference, from six passes.
    FACTORIAL_COVERAGE_LEAST = 0.935;
    /// Most attributed differences in which a knob without effect is called strong, nominal 5 %,
    /// from six passes.
    STRONG_FALSE_MOST = 0.05;
    /// Least experiments in which the planted limit of a transfer is named, of nine rounds with 3 %
    /// of noise ...
    BOTTLENECK_FOUND_LEAST = 0.95;
    /// ... and most in which another one is.
    BOTTLENECK_WRONG_MOST = 0.01;
    /// Least transfers between namespaces whose planted limit is named.
    BOTTLENECK_PLANTED_LEAST = 0.95;
}

/// The gain of the planted compromise: a share of the time.
pub const PLANTED_GAIN: f64 = 0.06;

/// Gives a type of counts `and`, which adds two of them field by field.
macro_rules! sums {
    ($name:ident: $($field:ident),+) => {
        impl $name {
            /// Both together.
            pub fn and(self, other: $name) -> $name {
                $name { $($field: self.$field + other.$field),+ }
            }
        }
    };
}
pub(crate) use sums;

/// The sum of this number of trials, each with its number and random numbers from the seed.
pub(crate) fn over<T: Default>(
    trials: usize,
    seed: u64,
    mut trial: impl FnMut(usize, &mut Rng, &mut T),
) -> T {
    let (mut rng, mut found) = (Rng::with_seed(seed), T::default());
    (0..trials).for_each(|number| trial(number, &mut rng, &mut found));
    found
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub hits: usize,
    pub of: usize,
}

impl Rate {
    pub fn count(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.of += 1;
    }

    /// Both together.
    pub fn and(self, other: Rate) -> Rate {
        Rate { hits: self.hits + other.hits, of: self.of + other.of }
    }

    /// 0..1; NaN of nothing.
    pub fn share(self) -> f64 {
        self.hits as f64 / self.of as f64
    }
}

impl Add for Rate {
    type Output = Rate;

    fn add(self, other: Rate) -> Rate {
        self.and(other)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            0 => f.write_str("–"),
            _ => write!(f, "{:.1} %", 100.0 * self.share()),
        }
    }
}

/// How often `test` says yes to series made by `draw`.
pub fn rate<T>(
    trials: usize,
    seed: u64,
    draw: impl Fn(&mut Rng) -> T,
    test: impl Fn(&T, u64) -> bool,
) -> Rate {
    over(trials, seed, |trial, rng, rate: &mut Rate| {
        rate.count(test(&draw(rng), trial as u64));
    })
}

/// The shape of a simulated series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub noise: Noise,
    pub inside: Inside,
    pub processes: usize,
    pub windows: usize,
}

impl Shape {
    /// Independent samples.
    pub fn plain(noise: Noise, processes: usize, windows: usize) -> Shape {
        Shape { noise, inside: Inside::Independent, processes, windows }
    }

    /// Log-normal noise of which a share belongs to the process.
    pub fn shared(cv: f64, icc: f64, processes: usize, windows: usize) -> Shape {
        Shape { noise: Noise::Lognormal { cv }, inside: Inside::Shared { icc }, processes, windows }
    }

    pub fn draw(self, rng: &mut Rng) -> Vec<Vec<f64>> {
        nested(self.noise, self.inside, self.processes, self.windows, rng)
    }

    /// Medians of `count` processes.
    pub fn process_medians(self, count: usize, rng: &mut Rng) -> Vec<f64> {
        (0..count).filter_map(|_| median(&Shape { processes: 1, ..self }.draw(rng).concat())).collect()
    }

    /// The median of the distribution of process medians, of 40,000 of them. With skewed noise and
    /// several samples that is not the median of the noise.
    pub fn true_median(self) -> f64 {
        median(&self.process_medians(40_000, &mut Rng::with_seed(1))).unwrap_or(f64::NAN)
    }
}
