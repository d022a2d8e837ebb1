//! Does the figure at a clock contain the truth, and is a wrong clock noticed?
//!
//! The clock is the one of a recorded guest: three plateaus, which a process takes as a whole.

use fastrand::Rng;

use super::{Rate, Shape, over};
use stats::clock::{Gate, ProcessMedians, Slope, brought, gate, slope};
use stats::guarded::guarded;
use stats::noise::{Inside, Noise, normal};
use stats::order::{Interval, median};

/// GHz, and the share of processes that run at it.
const PLATEAUS: [(f64, f64); 3] = [(3.57, 0.6), (3.96, 0.25), (4.07, 0.15)];
/// Standard deviations of ln(clock) around its plateau, and of a reading around the clock.
const WANDER: f64 = 0.002;
const READING_ERROR: f64 = 0.001;
/// A clock that changes within a sample slips past this share of readings, by up to this to either
/// side.
const SLIPS: f64 = 0.1;
const SLIP_MOST: f64 = 0.015;

/// GHz, the clock at which figures are given.
const RUN_CLOCK: f64 = PLATEAUS[0].0;

/// GHz, one of the plateaus by its share.
pub(super) fn plateau(rng: &mut Rng) -> f64 {
    let mut left = rng.f64();
    let below = |(_, share): &&(f64, f64)| {
        left -= share;
        left < 0.0
    };
    PLATEAUS.iter().find(below).unwrap_or(&PLATEAUS[0]).0
}

/// ln(GHz) of a process.
fn clock(rng: &mut Rng) -> f64 {
    plateau(rng).ln() + WANDER * normal(rng)
}

/// What is read of it.
fn reading(clock: f64, rng: &mut Rng) -> f64 {
    let slip = if rng.f64() < SLIPS { SLIP_MOST * (2.0 * rng.f64() - 1.0) } else { 0.0 };
    clock + READING_ERROR * normal(rng) + slip
}

/// What became of series that the catalogue calls core-bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clocked {
    /// Of all series, those brought to the clock.
    pub adjusted: Rate,
    /// Of all series, those whose figure contains its own truth: the time at the clock, or as the
    /// series ran after a veto.
    pub covered: Rate,
    /// Mean half-widths of ln(time): at the clock, of series brought to it; as it ran, of all.
    pub half_at_clock: f64,
    pub half_as_it_ran: f64,
}

/// Series whose ln(time) goes with ln(clock) by `slope`: -1 where time is a count of cycles.
pub fn clocked(noise: Noise, slope: f64, processes: usize, trials: usize, seed: u64) -> Clocked {
    let mut rng = Rng::with_seed(seed);
    let shape = Shape { noise, inside: Inside::Shared { icc: 0.5 }, processes, windows: 5 };
    let (at_the_clock, as_it_ran) = truths(shape, slope, &mut rng);
    let mut found = Clocked::default();
    let half = |low: f64, high: f64| (high - low) / 2.0;
    for _ in 0..trials {
        let series = run(shape, slope, &mut rng);
        let times: Vec<f64> = series.iter().map(|seen| seen.time).collect();
        let Some(raw) = guarded(&times) else { continue };
        found.half_as_it_ran += half(raw.low, raw.high) / trials as f64;
        let adjusted = brought(&series, RUN_CLOCK).and_then(Result::ok).and_then(|brought| {
            let cycles = guarded(&series.iter().map(|seen| seen.cycles).collect::<Vec<f64>>())?;
            let at = |cycles: f64| cycles - RUN_CLOCK.ln();
            Some(Interval { low: at(cycles.low) - brought.wider, high: at(cycles.high) + brought.wider })
        });
        found.adjusted.count(adjusted.is_some());
        found.covered.count(match adjusted {
            Some(interval) => interval.contains(at_the_clock),
            None => raw.contains(as_it_ran),
        });
        if let Some(Interval { low, high }) = adjusted {
            found.half_at_clock += half(low, high);
        }
    }
    found.half_at_clock /= found.adjusted.hits as f64;
    found
}

/// The true ln(time) at the clock, and the median of its distribution as it runs; of 40,000
/// processes.
fn truths(shape: Shape, slope: f64, rng: &mut Rng) -> (f64, f64) {
    let noise: Vec<f64> = shape.process_medians(40_000, rng).iter().map(|time| time.ln()).collect();
    let times: Vec<f64> = noise.iter().map(|noise| noise + slope * clock(rng)).collect();
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    (middle(&noise) + slope * RUN_CLOCK.ln(), middle(&times))
}

fn run(shape: Shape, slope: f64, rng: &mut Rng) -> Vec<ProcessMedians> {
    let noise = shape.process_medians(shape.processes, rng);
    let one = |noise: &f64| {
        let ran_at = clock(rng);
        let (time, clock) = (noise.ln() + slope * ran_at, reading(ran_at, rng));
        ProcessMedians { time, clock, cycles: time + clock }
    };
    noise.iter().map(one).collect()
}

/// Whose clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRead {
    Own,
    /// The process's own in half of the processes, else another CPU's.
    OwnHalfOfTheTime,
    AnotherCpus,
}

/// How often the gate of a run opens: 40 core-bound series of seven processes, 1 % of noise.
pub fn gate_opens(read: ClockRead, trials: usize, seed: u64) -> Rate {
    over(trials, seed, |_, rng, opens: &mut Rate| {
        let slopes: Vec<Slope> = (0..40).filter_map(|_| slope(&seen_by(read, rng))).collect();
        opens.count(matches!(gate(&slopes), Gate::Open(_)));
    })
}

fn seen_by(read: ClockRead, rng: &mut Rng) -> Vec<ProcessMedians> {
    let one = |_| {
        let ran_at = clock(rng);
        let own = match read {
            ClockRead::Own => true,
            ClockRead::OwnHalfOfTheTime => rng.bool(),
            ClockRead::AnotherCpus => false,
        };
        let read_at = if own { ran_at } else { clock(rng) };
        let (time, clock) = (0.01 * normal(rng) - ran_at, reading(read_at, rng));
        ProcessMedians { time, clock, cycles: time + clock }
    };
    (0..7).map(one).collect()
}
