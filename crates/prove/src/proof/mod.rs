//! Experiments that measure what the methods are claimed to do, on noise whose truth is known.
//!
//! The tests below run them small and hold them against the bounds; `make prove` runs them large
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
pub use regions::{Farther, Heard, Host, Named, alike, farther, heard, planted};
pub use slow_memory::{PROMISED, Studied, Study, following, swinging};
pub use smt::{CHARGING, Charging, Cores, TASKS, Tasks, cores};
pub use stopping::{Looked, Stopped, looking_after_every_visit, stopping, stopping_greedily};
pub use sweeps::{Drift, Planted, Sweep, Swept, swept};
pub use topologies::{Guest, Kind, Told, grouped, paired};
pub use verdicts::{ANY_PRECISION, Trouble, Verdicts, explained_by_luck, judged, verdicts};

use std::fmt;
use std::ops::Add;

use fastrand::Rng;

use stats::noise::{Inside, Noise, nested};
use stats::order::median;

/// Least coverage of a nominal 95 % interval, of all intervals given.
pub const COVERAGE_LEAST: f64 = 0.935;
/// Most simulated machines of which anything wrong is said about who keeps their CPUs from running
/// and which stop in turn or together ...
pub const PAUSES_WRONG_MOST: f64 = 0.05;
/// ... and least share of their CPUs, and of pairs that take turns or stop together, that are named
/// right.
pub const PAUSES_RIGHT_LEAST: f64 = 0.95;
/// Least share of cases in which the upper bound of the intraclass correlation, nominal 95 %, is
/// not below the true one.
pub const ICC_BOUND_LEAST: f64 = 0.935;
/// Least coverage of a nominal 95 % interval of 5 to 14 processes, against the median of the
/// distribution of process medians.
pub const GUARDED_COVERAGE_LEAST: f64 = 0.94;
/// The same, where a look after every visit, from 5 processes to 20, stops at the first narrow
/// interval.
pub const LOOKED_COVERAGE_LEAST: f64 = 0.93;
/// Least share of causes of slow memory right above their limits that are named, and most that are
/// named where there is another one or none.
pub const REGION_NAMED_LEAST: f64 = 0.95;
pub const REGION_FALSE_MOST: f64 = 0.01;
/// Neighbours planted for less than half of the limit may be named so often: a host has its own.
pub const NEIGHBOUR_FALSE_MOST: f64 = 0.05;
/// Most figures exactly at their limit that end beyond it, and most that end within it, where they
/// are visited until that is decided firmly or 30 or 80 processes are there.
pub const LIMIT_WRONG_MOST: f64 = 0.03;
/// Least coverage of the figure that is given of a series that the catalogue rightly calls
/// core-bound, at the clock or as it ran ...
pub const CLOCK_COVERAGE_LEAST: f64 = 0.94;
/// ... and of one whose time follows the clock by a half or three quarters only.
pub const CLOCK_WRONG_COVERAGE_LEAST: f64 = 0.91;
/// Most series that are brought to a clock although their time does not follow it, of five
/// processes ...
pub const CLOCK_FALSE_MOST_5: f64 = 0.12;
/// ... and of seven or more.
pub const CLOCK_FALSE_MOST_7: f64 = 0.05;
/// Least coverage of the figure of windows alone, of the time that the work takes alone, where
/// another thread of the core stays for ten windows or more.
pub const ALONE_COVERAGE_LEAST: f64 = 0.94;
/// Least runs of 40 core-bound series whose gate opens for the right clock ...
pub const GATE_OPEN_LEAST: f64 = 0.99;
/// ... and most for another CPU's clock, or for one that follows half of the time.
pub const GATE_WRONG_MOST: f64 = 0.01;
/// Most intervals that are given and wrong where windows stand in for fewer than five processes, of
/// all series.
pub const WINDOWS_WRONG_MOST: f64 = 0.02;
/// Least share of clean series that are called trusted, where the precision is met.
pub const TRUSTED_LEAST: f64 = 0.95;
/// The same with a real slow tail (one value in ten is slower), whose slow values may count as a
/// mode.
pub const TRUSTED_LEAST_SLOW_TAIL: f64 = 0.85;
/// Most clean series that one test of drift, nominal 1 %, calls moving.
pub const DRIFT_FALSE_MOST: f64 = 0.02;
/// Most series without an effect in which another test finds one, nominal 5 %.
pub const OTHER_FALSE_MOST: f64 = 0.065;
/// Most series of independent values in which a period is found.
pub const PERIOD_FALSE_MOST: f64 = 0.01;
/// Most series in which outliers without a cause are explained by one of eight unrelated
/// covariates.
pub const EXPLAINED_FALSE_MOST: f64 = 0.05;
/// Most unimodal series that the mode rule suspects below 40 values ...
pub const MODES_SUSPECTED_FALSE_MOST: f64 = 0.02;
/// ... and calls multimodal from 40 on.
pub const MODES_FALSE_MOST: f64 = 0.005;
/// Least coverage of the 95 % interval that is reported after the stop rule ended the measurement.
pub const STOPPED_COVERAGE_LEAST: f64 = 0.935;
/// Most clean series that are called drifting or multimodal in the end, after all looks of the stop
/// rule.
pub const STOPPED_FALSE_MOST: f64 = 0.05;
/// Most series given up as out of reach whose precision is in reach.
pub const HOPELESS_FALSE_MOST: f64 = 0.05;
/// Most comparisons of equal arms whose 95 % interval excludes 1, or whose test has p < 0.05.
pub const SELF_DIFFERENT_MOST: f64 = 0.065;
/// Most pairs of equal runs, their levels as far apart as is known of their family, that are called
/// different ...
pub const EQUAL_RUNS_DIFFERENT_MOST: f64 = 0.06;
/// ... most where they flicker instead, so that runs lie about as far apart as processes ...
pub const FLICKER_DIFFERENT_MOST: f64 = 0.10;
/// ... and least coverage of the 95 % interval of their difference.
pub const CONTRAST_COVERAGE_LEAST: f64 = 0.94;
/// Most pairs of equal commands, run in turn, that are called different.
pub const IN_TURN_DIFFERENT_MOST: f64 = 0.06;
/// Least pairs of which one takes 2 % longer that are told apart, where time goes with the clock.
pub const IN_TURN_FOUND_LEAST: f64 = 0.95;
/// Most pairs of equal commands, run at once where others disturb both, that are called different
/// ...
pub const AT_ONCE_DIFFERENT_MOST: f64 = 0.06;
/// ... least pairs of which one takes 2 % longer that are told apart ...
pub const AT_ONCE_FOUND_LEAST: f64 = 0.95;
/// ... and least coverage of the interval of their difference.
pub const AT_ONCE_COVERAGE_LEAST: f64 = 0.94;
/// Most ladders whose last cache is read off so that its true size does not agree, at one point an
/// octave ...
pub const LADDER_FALSE_MOST: f64 = 0.03;
/// ... and at two or more.
pub const FINE_LADDER_FALSE_MOST: f64 = 0.01;
/// Least ladders on which a claim of four times or a quarter of the last cache's size is found to
/// be wrong.
pub const LADDER_FOURFOLD_LEAST: f64 = 0.95;
/// Most machines of whose CPUs something wrong is claimed: groups by transfers of lines, or
/// siblings by slowdown.
pub const TOPOLOGY_WRONG_MOST: f64 = 0.01;
/// Least SMT machines whose second thread's yield is found within 5 %, of nine passes with 0.5 to 5
/// % of noise.
pub const YIELD_NEAR_LEAST: f64 = 0.95;
/// Least SMT machines whose used share lies in the interval, nominal 95 %.
pub const USED_COVERAGE_LEAST: f64 = 0.95;
/// Least coverage of the 95 % interval of the gap between attainment and CPU%.
pub const GAP_COVERAGE_LEAST: f64 = 0.93;
/// Least sentences on used share and growth, as they are printed, whose intervals hold the truth.
pub const SENTENCE_COVERAGE_LEAST: f64 = 0.95;
/// Least coverage of the 95 % intervals of where two machines' curves cross.
pub const CROSSING_COVERAGE_LEAST: f64 = 0.94;

/// Most memories of one speed that are said to have several.
pub const MAP_FALSE_MOST: f64 = 0.001;
/// Least memories with a second speed of 1.33 or more in a tenth to a half of them in which it is
/// found, 2 % of noise, unless others come in bursts.
pub const MAP_FOUND_LEAST: f64 = 0.98;
/// Least memories in which a second speed at the limit that their map before stated, nominal 95 %,
/// is found.
pub const MAP_LIMIT_LEAST: f64 = 0.9;

/// Least runs on memory with a slow quarter (a third slower and more, 1 % of noise) that their page
/// samples and the map predict within 3 % ...
pub const PREDICTED_LEAST: f64 = 0.95;
/// ... least studies whose runs are said to follow their memory where they do ...
pub const FOLLOWS_FOUND_LEAST: f64 = 0.9;
/// ... and most where something else moves them, nominal 5 %.
pub const FOLLOWS_FALSE_MOST: f64 = 0.05;

/// Most flat sweeps whose knobs are reported to matter, nominal 5 %.
pub const SWEEP_FALSE_MOST: f64 = 0.065;
/// Most sweeps of two knobs in which a question has an answer that was not planted, nominal 5 % ...
pub const SWEEP_INVENTED_MOST: f64 = 0.055;
/// ... and least in which a main effect of 5 % or a trend of 8 % is told, with 8 % of noise and 12
/// passes a cell.
pub const SWEEP_FOUND_LEAST: f64 = 0.9;
/// Least coverage of the 95 % intervals of a sweep's cells.
pub const SWEEP_COVERAGE_LEAST: f64 = 0.935;
/// Least sweeps in which the true best cell is among those called best, nominal 95 %; hardest where
/// all are equal.
pub const SWEEP_BEST_LEAST: f64 = 0.925;
/// Least planted cells in a region of the planted kind, where noise is 1 %, or 3 % with eight
/// passes.
pub const SWEEP_KINDS_LEAST: f64 = 0.95;
/// The gain of the planted compromise: a share of the time.
pub const PLANTED_GAIN: f64 = 0.06;
/// Least sweeps with 8 % of noise, measured until 5 % would be seen, that name a planted compromise
/// by its region ...
pub const ADVICE_FOUND_LEAST: f64 = 0.9;
/// ... and most in which nothing is planted that advise anything.
pub const ADVICE_INVENTED_MOST: f64 = 0.05;
/// Least coverage of the 95 % intervals of a shared-out difference, from six passes.
pub const FACTORIAL_COVERAGE_LEAST: f64 = 0.935;
/// Most differences shared out in which a knob without effect is called strong, nominal 5 %, from
/// six passes.
pub const STRONG_FALSE_MOST: f64 = 0.05;

/// Least experiments in which the planted limit of a transfer is named, of nine rounds with 3 % of
/// noise ...
pub const BOTTLENECK_FOUND_LEAST: f64 = 0.95;
/// ... and most in which another one is.
pub const BOTTLENECK_WRONG_MOST: f64 = 0.01;
/// Least transfers between namespaces whose planted limit is named.
pub const BOTTLENECK_PLANTED_LEAST: f64 = 0.95;

/// All bounds by name, as docs/results states them.
pub const BOUNDS: &[(&str, f64)] = &[
    ("COVERAGE_LEAST", COVERAGE_LEAST),
    ("ICC_BOUND_LEAST", ICC_BOUND_LEAST),
    ("GUARDED_COVERAGE_LEAST", GUARDED_COVERAGE_LEAST),
    ("LOOKED_COVERAGE_LEAST", LOOKED_COVERAGE_LEAST),
    ("LIMIT_WRONG_MOST", LIMIT_WRONG_MOST),
    ("CLOCK_COVERAGE_LEAST", CLOCK_COVERAGE_LEAST),
    ("CLOCK_WRONG_COVERAGE_LEAST", CLOCK_WRONG_COVERAGE_LEAST),
    ("CLOCK_FALSE_MOST_5", CLOCK_FALSE_MOST_5),
    ("CLOCK_FALSE_MOST_7", CLOCK_FALSE_MOST_7),
    ("ALONE_COVERAGE_LEAST", ALONE_COVERAGE_LEAST),
    ("GATE_OPEN_LEAST", GATE_OPEN_LEAST),
    ("GATE_WRONG_MOST", GATE_WRONG_MOST),
    ("WINDOWS_WRONG_MOST", WINDOWS_WRONG_MOST),
    ("TRUSTED_LEAST", TRUSTED_LEAST),
    ("TRUSTED_LEAST_SLOW_TAIL", TRUSTED_LEAST_SLOW_TAIL),
    ("DRIFT_FALSE_MOST", DRIFT_FALSE_MOST),
    ("OTHER_FALSE_MOST", OTHER_FALSE_MOST),
    ("PERIOD_FALSE_MOST", PERIOD_FALSE_MOST),
    ("EXPLAINED_FALSE_MOST", EXPLAINED_FALSE_MOST),
    ("MODES_SUSPECTED_FALSE_MOST", MODES_SUSPECTED_FALSE_MOST),
    ("MODES_FALSE_MOST", MODES_FALSE_MOST),
    ("STOPPED_COVERAGE_LEAST", STOPPED_COVERAGE_LEAST),
    ("STOPPED_FALSE_MOST", STOPPED_FALSE_MOST),
    ("HOPELESS_FALSE_MOST", HOPELESS_FALSE_MOST),
    ("SELF_DIFFERENT_MOST", SELF_DIFFERENT_MOST),
    ("EQUAL_RUNS_DIFFERENT_MOST", EQUAL_RUNS_DIFFERENT_MOST),
    ("FLICKER_DIFFERENT_MOST", FLICKER_DIFFERENT_MOST),
    ("CONTRAST_COVERAGE_LEAST", CONTRAST_COVERAGE_LEAST),
    ("IN_TURN_DIFFERENT_MOST", IN_TURN_DIFFERENT_MOST),
    ("IN_TURN_FOUND_LEAST", IN_TURN_FOUND_LEAST),
    ("AT_ONCE_DIFFERENT_MOST", AT_ONCE_DIFFERENT_MOST),
    ("AT_ONCE_FOUND_LEAST", AT_ONCE_FOUND_LEAST),
    ("AT_ONCE_COVERAGE_LEAST", AT_ONCE_COVERAGE_LEAST),
    ("LADDER_FALSE_MOST", LADDER_FALSE_MOST),
    ("FINE_LADDER_FALSE_MOST", FINE_LADDER_FALSE_MOST),
    ("LADDER_FOURFOLD_LEAST", LADDER_FOURFOLD_LEAST),
    ("YIELD_NEAR_LEAST", YIELD_NEAR_LEAST),
    ("USED_COVERAGE_LEAST", USED_COVERAGE_LEAST),
    ("GAP_COVERAGE_LEAST", GAP_COVERAGE_LEAST),
    ("SENTENCE_COVERAGE_LEAST", SENTENCE_COVERAGE_LEAST),
    ("CROSSING_COVERAGE_LEAST", CROSSING_COVERAGE_LEAST),
    ("MAP_FALSE_MOST", MAP_FALSE_MOST),
    ("MAP_FOUND_LEAST", MAP_FOUND_LEAST),
    ("MAP_LIMIT_LEAST", MAP_LIMIT_LEAST),
    ("PREDICTED_LEAST", PREDICTED_LEAST),
    ("FOLLOWS_FOUND_LEAST", FOLLOWS_FOUND_LEAST),
    ("FOLLOWS_FALSE_MOST", FOLLOWS_FALSE_MOST),
    ("SWEEP_FALSE_MOST", SWEEP_FALSE_MOST),
    ("SWEEP_INVENTED_MOST", SWEEP_INVENTED_MOST),
    ("SWEEP_FOUND_LEAST", SWEEP_FOUND_LEAST),
    ("SWEEP_COVERAGE_LEAST", SWEEP_COVERAGE_LEAST),
    ("SWEEP_BEST_LEAST", SWEEP_BEST_LEAST),
    ("SWEEP_KINDS_LEAST", SWEEP_KINDS_LEAST),
    ("ADVICE_FOUND_LEAST", ADVICE_FOUND_LEAST),
    ("ADVICE_INVENTED_MOST", ADVICE_INVENTED_MOST),
    ("FACTORIAL_COVERAGE_LEAST", FACTORIAL_COVERAGE_LEAST),
    ("STRONG_FALSE_MOST", STRONG_FALSE_MOST),
    ("BOTTLENECK_FOUND_LEAST", BOTTLENECK_FOUND_LEAST),
    ("BOTTLENECK_WRONG_MOST", BOTTLENECK_WRONG_MOST),
    ("BOTTLENECK_PLANTED_LEAST", BOTTLENECK_PLANTED_LEAST),
    ("PAUSES_WRONG_MOST", PAUSES_WRONG_MOST),
    ("PAUSES_RIGHT_LEAST", PAUSES_RIGHT_LEAST),
    ("REGION_NAMED_LEAST", REGION_NAMED_LEAST),
    ("REGION_FALSE_MOST", REGION_FALSE_MOST),
    ("NEIGHBOUR_FALSE_MOST", NEIGHBOUR_FALSE_MOST),
    ("TOPOLOGY_WRONG_MOST", TOPOLOGY_WRONG_MOST),
];

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

/// What so many trials come to, each with its number and random numbers that go on from the seed.
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

/// What a simulated series looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub noise: Noise,
    pub inside: Inside,
    pub processes: usize,
    pub windows: usize,
}

impl Shape {
    /// Independent windows.
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
    /// several windows that is not the median of the noise.
    pub fn true_median(self) -> f64 {
        median(&self.process_medians(40_000, &mut Rng::with_seed(1))).unwrap_or(f64::NAN)
    }
}
