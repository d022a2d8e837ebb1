//! Is the yield of second threads found again, and does the interval of used cores contain the
//! truth? On made-up machines: each CPU's every millisecond is known, and what the kernel counts of
//! it.

use fastrand::Rng;

use super::Rate;
use stats::bootstrap::Resampling;
use stats::noise::{exponential, normal};
use stats::order::Interval;
use stats::smt::{
    Bounds, CoreUse, Counting, Curve, Pass, Point, Sentence, Used, Window, Yield, YieldPass, clocked_up_to,
    estimate_yield, spread_first, used,
};

/// Where tasks go when they wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// To a core with no busy sibling first.
    SpreadFirst,
    /// To a core with a busy sibling first.
    PackFirst,
    /// One for each CPU, pinned.
    Pinned,
    /// Siblings always busy at the same time.
    Together,
    /// Siblings never busy at the same time.
    Turns,
}

pub const TASKS: [Tasks; 5] =
    [Tasks::SpreadFirst, Tasks::PackFirst, Tasks::Pinned, Tasks::Together, Tasks::Turns];

/// How the kernel charges busy time, before it cuts it down to units of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charging {
    Exactly,
    /// The kernel samples at every tick of this many ms and charges the whole tick.
    EveryMs(u64),
}

/// As kernels are built: full accounting (1000 Hz is the same here), and ticks at 250 and 100 Hz.
pub const CHARGING: [Charging; 3] = [Charging::Exactly, Charging::EveryMs(4), Charging::EveryMs(10)];

/// A host and what goes on there.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub cores: usize,
    /// Work per second of both siblings over that of one.
    pub s: f64,
    /// Clock with hardly a core busy over the clock with all.
    pub turbo: f64,
    /// Relative noise of one measured performance.
    pub noise: f64,
    pub tasks: Tasks,
    pub charging: Charging,
    /// Share of time in which a task alone would be busy, mean work of its batches, ms, all alike?
    duty: f64,
    batch_ms: f64,
    regular: bool,
}

/// Passes of the study.
const PASSES: usize = 9;
const LEVELS: u32 = 7;
/// Length of a recording, ms, and time between two readings.
const RECORDED_MS: usize = 5000;
const LOOK_MS: usize = 20;
/// /proc/stat counts in these.
const UNIT_MS: u64 = 10;

impl Machine {
    pub fn draw(rng: &mut Rng, tasks: Tasks, charging: Charging) -> Machine {
        Machine {
            cores: rng.usize(2..=64),
            s: 1.0 + rng.f64(),
            turbo: 1.0 + 0.15 * rng.f64(),
            noise: 0.005 + 0.045 * rng.f64(),
            tasks,
            charging,
            duty: 0.03 + 0.95 * rng.f64(),
            // From 2 ms to a second, evenly by logarithm.
            batch_ms: 2.0 * 500f64.powf(rng.f64()),
            regular: rng.bool(),
        }
    }

    fn clock(&self, busy_cores: usize) -> f64 {
        self.turbo - (self.turbo - 1.0) * busy_cores as f64 / self.cores as f64
    }

    fn length(&self, mean: f64, rng: &mut Rng) -> f64 {
        if self.regular { mean * (1.0 + 0.02 * normal(rng)) } else { mean * exponential(rng) }
    }

    /// What goes on, a bit for every CPU and millisecond; siblings are bits 2c and 2c + 1.
    fn trace(&self, milliseconds: usize, rng: &mut Rng) -> Vec<u128> {
        let cpus = 2 * self.cores;
        let tasks = match self.tasks {
            Tasks::Pinned => cpus,
            Tasks::Together | Tasks::Turns => self.cores,
            _ => rng.usize(1..=cpus + cpus / 2),
        };
        let sleep_ms = self.batch_ms * (1.0 / self.duty - 1.0);
        // Work left of each that is awake, or sleep left; where it runs.
        let mut work: Vec<f64> = vec![0.0; tasks];
        let mut sleep: Vec<f64> = (0..tasks).map(|_| rng.f64() * (self.batch_ms + sleep_ms)).collect();
        let mut seat: Vec<Option<usize>> = vec![None; tasks];
        let mut trace = Vec::with_capacity(milliseconds);
        let mut busy: u128 = 0;
        for _ in 0..milliseconds {
            for task in 0..tasks {
                if seat[task].is_none() && work[task] <= 0.0 {
                    sleep[task] -= 1.0;
                    if sleep[task] <= 0.0 {
                        work[task] = self.length(self.batch_ms, rng).max(1.0);
                    }
                }
                if seat[task].is_none() && work[task] > 0.0 {
                    seat[task] = self.seat(task, busy, rng);
                    busy |= seat[task].map_or(0, |cpu| 1 << cpu);
                }
            }
            let now = match self.tasks {
                Tasks::Together => busy | busy << 1,
                // The other sibling works exactly while the first does not.
                Tasks::Turns => busy | (!busy & evens(cpus)) << 1,
                _ => busy,
            };
            trace.push(now);
            let clock = self.clock(self.busy_cores(now));
            for task in 0..tasks {
                let Some(cpu) = seat[task] else { continue };
                let shared = now >> (cpu ^ 1) & 1 == 1;
                work[task] -= clock * if shared { self.s / 2.0 } else { 1.0 };
                if work[task] <= 0.0 {
                    busy &= !(1 << cpu);
                    seat[task] = None;
                    sleep[task] = self.length(sleep_ms, rng);
                }
            }
        }
        trace
    }

    /// The CPU that a task wakes on; `None` while all are busy.
    fn seat(&self, task: usize, busy: u128, rng: &mut Rng) -> Option<usize> {
        let cpus = 2 * self.cores;
        let idle = |cpu: &usize| busy >> cpu & 1 == 0;
        let sibling_idle = |cpu: usize| busy >> (cpu ^ 1) & 1 == 0;
        match self.tasks {
            Tasks::Pinned => Some(task),
            Tasks::Together | Tasks::Turns => Some(2 * task),
            Tasks::SpreadFirst => {
                let from = rng.usize(..cpus);
                let all = || (0..cpus).map(|i| (from + i) % cpus).filter(idle);
                all().find(|cpu| sibling_idle(*cpu)).or_else(|| all().next())
            }
            Tasks::PackFirst => {
                let all = || (0..cpus).filter(idle);
                all().find(|cpu| !sibling_idle(*cpu)).or_else(|| all().next())
            }
        }
    }

    fn busy_cores(&self, busy: u128) -> usize {
        ((busy | busy >> 1) & evens(2 * self.cores)).count_ones() as usize
    }

    /// Work done over the work that all siblings of all cores would have done.
    fn used(&self, trace: &[u128]) -> f64 {
        let work = |busy: &u128| {
            let cores = self.busy_cores(*busy);
            let both = (busy & busy >> 1 & evens(2 * self.cores)).count_ones() as usize;
            self.clock(cores) * ((cores - both) as f64 + self.s * both as f64)
        };
        let done: f64 = trace.iter().map(work).sum();
        done / (trace.len() as f64 * self.cores as f64 * self.s)
    }

    /// What successive readings of /proc/stat show of each core.
    fn recorded(&self, trace: &[u128], rng: &mut Rng) -> Vec<Vec<Window>> {
        let cpus = 2 * self.cores;
        let mut charged: Vec<u64> = (0..cpus).map(|_| rng.u64(..UNIT_MS)).collect();
        let mut read: Vec<u64> = charged.iter().map(|ms| ms / UNIT_MS).collect();
        let mut windows = vec![Vec::new(); self.cores];
        let (offset, mut last, mut next) = (rng.u64(..10), 0, LOOK_MS);
        for (ms, busy) in trace.iter().enumerate() {
            let charge = match self.charging {
                Charging::Exactly => 1,
                Charging::EveryMs(tick) if (ms as u64 + offset).is_multiple_of(tick) => tick,
                Charging::EveryMs(_) => 0,
            };
            for (cpu, charged) in charged.iter_mut().enumerate() {
                *charged += if busy >> cpu & 1 == 1 { charge } else { 0 };
            }
            if ms + 1 == next || ms + 1 == trace.len() {
                let seconds = (ms + 1 - last) as f64 / 1e3;
                let mut share = |cpu: usize| {
                    let now = charged[cpu] / UNIT_MS;
                    let units = now - std::mem::replace(&mut read[cpu], now);
                    (units * UNIT_MS) as f64 / 1e3 / seconds
                };
                for (core, windows) in windows.iter_mut().enumerate() {
                    windows.push(Window { seconds, busy: vec![share(2 * core), share(2 * core + 1)] });
                }
                // A sleep lasts a little longer than asked for.
                (last, next) = (ms + 1, ms + 1 + LOOK_MS + rng.usize(..=2));
            }
        }
        windows
    }

    /// Each core's mean clock while any sibling is busy, within 0.5 % as a cycle counter has it.
    fn clocks(&self, trace: &[u128], rng: &mut Rng) -> Vec<Bounds> {
        (0..self.cores)
            .map(|core| {
                let (mut sum, mut ms) = (0.0, 0.0);
                for busy in trace.iter().filter(|busy| *busy >> (2 * core) & 3 != 0) {
                    sum += self.clock(self.busy_cores(*busy));
                    ms += 1.0;
                }
                let clock = if ms > 0.0 { sum / ms } else { 1.0 } * (1.0 + 0.005 * (2.0 * rng.f64() - 1.0));
                Bounds { lo: clock * 0.99, mid: clock, hi: clock * 1.01 }
            })
            .collect()
    }

    /// The study on one core: each pass's performance with one sibling and both at full load.
    fn passes(&self, rng: &mut Rng) -> Vec<YieldPass> {
        let clock = self.clock(1);
        (0..PASSES)
            .map(|_| {
                let mut measured = |truth: f64| truth * (self.noise * normal(rng)).exp();
                let one = measured(clock);
                let both = measured(clock * self.s);
                let all = (measured(self.cores as f64 * self.s), self.cores);
                YieldPass { one, both, clock_one: None, clock_both: None, all: Some(all) }
            })
            .collect()
    }

    /// The study's curve of both siblings: fixed batches and sleeps, as they are and as measured.
    fn curves(&self, rng: &mut Rng) -> Option<(Curve, Curve)> {
        let (mut truth, mut measured) = (Vec::new(), Vec::new());
        for level in 1..=LEVELS {
            let pair = Machine {
                cores: 1,
                turbo: 1.0,
                tasks: Tasks::Pinned,
                duty: f64::from(level) / f64::from(LEVELS),
                batch_ms: 20.0,
                regular: true,
                ..*self
            };
            let trace = pair.trace(2000, rng);
            let busy: u32 = trace.iter().map(|busy| busy.count_ones()).sum();
            let (share, performance) = (f64::from(busy) / 4000.0, pair.used(&trace));
            truth.push(Point::known(share, performance, None)?);
            let pass = |_| Pass { share, performance: performance * (self.noise * normal(rng)).exp() };
            measured.push(Point::of((0..PASSES).map(pass).collect())?);
        }
        Some((Curve::of(truth)?, Curve::of(measured)?))
    }

    /// The study on one core as its report reads it: one sibling at all levels, and both at full
    /// load. Work goes with the time at work, which differs from pass to pass by 1 %.
    fn core(&self, rng: &mut Rng) -> Option<Curve> {
        let mut level = |duty: f64, siblings: f64, work: f64| {
            let mut pass = |_| {
                let busy = (duty * (0.01 * normal(rng)).exp()).min(1.0);
                let noise = (self.noise * normal(rng)).exp();
                Pass { share: siblings / 2.0 * busy, performance: work * busy * noise }
            };
            Point::of((0..PASSES).map(&mut pass).collect())
        };
        let mut points: Vec<Point> =
            (1..=LEVELS).filter_map(|of| level(f64::from(of) / f64::from(LEVELS), 1.0, 1.0)).collect();
        points.extend(level(1.0, 2.0, self.s));
        Curve::of(points)
    }
}

/// CPU% at which the study's sentences are read.
const SAID: [f64; 6] = [0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Whether a printed sentence contains the truth in both intervals, of used share and of growth.
fn holds(sentence: Option<Sentence>, truth: f64) -> bool {
    let ends = |words: &str| -> Option<[f64; 2]> {
        let (_, between) = words.split_once('(')?;
        let number = |word: &str| word.parse::<f64>().ok();
        let mut ends = between.trim_end_matches(')').split([' ', '–']).filter_map(number);
        Some([ends.next()?, ends.next().unwrap_or(f64::INFINITY)])
    };
    let inside = |words: String, value: f64| {
        ends(&words).is_some_and(|[low, high]| low <= value + 1e-9 && value <= high + 1e-9)
    };
    sentence.is_some_and(|said| {
        inside(said.used_words(), 100.0 * truth) && inside(said.growth_words(), 1.0 / truth)
    })
}

/// Every even bit below `bits`.
fn evens(bits: usize) -> u128 {
    (u128::MAX / 3) & (u128::MAX >> (128 - bits))
}

/// What many hosts gave.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    /// Relative error of the yield, of each host; and whether it is within 5 %.
    pub errors: Vec<f64>,
    pub within: Rate,
    /// The yield's own interval holds it; nominal 95 %.
    pub yield_held: Rate,
    /// U's interval holds the work done: with clocks measured; with the highest one known only; and
    /// where there is turbo of which nothing is known.
    pub used_held: Rate,
    pub turbo_held: Rate,
    pub unclocked_held: Rate,
    /// The same from the whole recording's shares, and from windows with counts taken as exact.
    pub whole_held: Rate,
    pub naive_held: Rate,
    /// Half widths of U's interval: of windows, and of the whole recording's shares alone.
    pub widths: Vec<f64>,
    pub whole_widths: Vec<f64>,
    /// Error of U's middle, and of CPU% taken for U.
    pub middles: Vec<f64>,
    pub cpu_percent: Vec<f64>,
    /// The gap's interval holds the true gap; nominal 95 %.
    pub gap_held: Rate,
    /// The printed sentences contain the truth: those of the study's core, and that of a recording.
    pub study_said: Rate,
    pub recording_said: Rate,
}

/// This many hosts of each kind.
pub fn cores(tasks: Tasks, charging: Charging, trials: usize, seed: u64) -> Cores {
    let mut rng = Rng::with_seed(seed);
    let mut seen = Cores::default();
    for trial in 0..trials {
        let machine = Machine::draw(&mut rng, tasks, charging);
        let Some(found) = estimate_yield(&machine.passes(&mut rng)) else { continue };
        let s = found.throughput.value;
        let error = s.mid / machine.s - 1.0;
        seen.errors.push(error);
        seen.within.count(error.abs() <= 0.05);
        seen.yield_held.count(s.lo <= machine.s && machine.s <= s.hi);
        recording(&machine, s, &mut rng, &mut seen);
        let core = machine.core(&mut rng);
        for says in SAID {
            let said = core.as_ref().and_then(|core| core.sentence(says));
            seen.study_said.count(holds(said, spread_first(says, machine.s, 2, 1.0)));
        }
        if let Some((truth, measured)) = machine.curves(&mut rng) {
            let plan = Resampling { resamples: 499, ..Resampling::new(0.95, trial as u64) };
            let (truth, told) = (truth.gap(plan), measured.gap(plan));
            let held = truth.zip(told).and_then(|(truth, told)| Some(told.interval?.contains(truth.gap)));
            seen.gap_held.count(held.unwrap_or(false));
        }
    }
    seen
}

fn recording(machine: &Machine, s: Yield, rng: &mut Rng, seen: &mut Cores) {
    let trace = machine.trace(RECORDED_MS, rng);
    let truth = machine.used(&trace);
    let windows = machine.recorded(&trace, rng);
    let clocks = machine.clocks(&trace, rng);
    let ticks = Counting::Ticks(UNIT_MS as f64 / 1e3);
    let read = |counting: Counting, joined: bool| -> Option<Vec<CoreUse>> {
        let core = |(windows, clock): (&Vec<Window>, &Bounds)| {
            let windows = if joined { vec![whole(windows)] } else { windows.clone() };
            Some(CoreUse::of_windows(&windows, counting)?.at_clock(*clock))
        };
        windows.iter().zip(&clocks).map(core).collect()
    };
    let judge = |cores: Option<Vec<CoreUse>>| used(&cores?, s);
    let contains = |told: &Option<Used>| told.is_some_and(|told| told.used.contains(truth));
    let cores = read(ticks, false);
    let mut unclocked = cores.clone().unwrap_or_default();
    clocked_up_to(&mut unclocked, machine.turbo);
    seen.turbo_held.count(contains(&used(&unclocked, s)));
    clocked_up_to(&mut unclocked, 1.0);
    seen.unclocked_held.count(contains(&used(&unclocked, s)));
    let told = judge(cores);
    seen.used_held.count(contains(&told));
    let said = told.and_then(|told| {
        let Bounds { lo, mid, hi } = told.used;
        Sentence::of(told.naive, mid, Some(Interval { low: lo, high: hi }))
    });
    seen.recording_said.count(holds(said, truth));
    seen.naive_held.count(contains(&judge(read(Counting::Exactly, false))));
    let alone = judge(read(ticks, true));
    seen.whole_held.count(contains(&alone));
    let width = |told: Used| (told.used.hi - told.used.lo) / 2.0;
    seen.widths.extend(told.map(width));
    seen.whole_widths.extend(alone.map(width));
    seen.middles.extend(told.map(|told| told.used.mid - truth));
    seen.cpu_percent.extend(told.map(|told| told.naive - truth));
}

fn whole(windows: &[Window]) -> Window {
    let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
    let share =
        |i: usize| windows.iter().map(|window| window.seconds * window.busy[i]).sum::<f64>() / seconds;
    Window { seconds, busy: vec![share(0), share(1)] }
}

impl Cores {
    /// Both together.
    pub fn and(mut self, other: Cores) -> Cores {
        self.errors.extend(other.errors);
        self.widths.extend(other.widths);
        self.whole_widths.extend(other.whole_widths);
        self.middles.extend(other.middles);
        self.cpu_percent.extend(other.cpu_percent);
        Cores {
            within: self.within.and(other.within),
            yield_held: self.yield_held.and(other.yield_held),
            used_held: self.used_held.and(other.used_held),
            turbo_held: self.turbo_held.and(other.turbo_held),
            unclocked_held: self.unclocked_held.and(other.unclocked_held),
            whole_held: self.whole_held.and(other.whole_held),
            naive_held: self.naive_held.and(other.naive_held),
            gap_held: self.gap_held.and(other.gap_held),
            study_said: self.study_said.and(other.study_said),
            recording_said: self.recording_said.and(other.recording_said),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GAP_COVERAGE_LEAST, SENTENCE_COVERAGE_LEAST, USED_COVERAGE_LEAST, YIELD_NEAR_LEAST};
    use super::*;

    /// A tenth of what `make prove` does.
    #[test]
    fn yields_are_found_and_intervals_hold() {
        let mut all = Cores::default();
        for (seed, charging) in CHARGING.into_iter().enumerate() {
            for tasks in TASKS {
                let seen = cores(tasks, charging, 12, seed as u64);
                assert!(
                    seen.used_held.hits >= 11 && seen.turbo_held.hits >= 11,
                    "{charging:?} {tasks:?}: {seen:?}"
                );
                all = all.and(seen);
            }
        }
        // The chance of few hosts: two standard errors.
        let least = |bound: f64| bound - 2.0 * (bound * (1.0 - bound) / all.errors.len() as f64).sqrt();
        assert_eq!(all.errors.len(), 180);
        assert!(all.within.share() >= least(YIELD_NEAR_LEAST), "{}", all.within);
        assert!(all.yield_held.share() >= least(0.95), "{}", all.yield_held);
        assert!(all.used_held.share() >= USED_COVERAGE_LEAST, "{}", all.used_held);
        assert!(all.turbo_held.share() >= USED_COVERAGE_LEAST, "{}", all.turbo_held);
        assert!(all.gap_held.share() >= least(GAP_COVERAGE_LEAST), "{}", all.gap_held);
        assert!(all.study_said.share() >= least(SENTENCE_COVERAGE_LEAST), "{}", all.study_said);
        assert!(all.recording_said.share() >= SENTENCE_COVERAGE_LEAST, "{}", all.recording_said);
        // Without the widening intervals miss, and without the readings they are wider.
        assert!(all.naive_held.share() < 0.93, "{}", all.naive_held);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!(mean(&all.widths) < 0.9 * mean(&all.whole_widths));
        assert!(mean(&all.middles).abs() < 0.02 && mean(&all.cpu_percent) < -0.04);
    }

    #[test]
    fn the_simulated_machine_is_what_it_says() {
        let mut rng = Rng::with_seed(8);
        let machine = |tasks| Machine {
            cores: 3,
            turbo: 1.0,
            duty: 0.5,
            ..Machine::draw(&mut Rng::with_seed(1), tasks, Charging::Exactly)
        };
        let both = |busy: &u128| busy & busy >> 1 & evens(6);
        let turns = machine(Tasks::Turns).trace(2000, &mut rng);
        assert!(turns.iter().all(|busy| both(busy) == 0 && machine(Tasks::Turns).busy_cores(*busy) == 3));
        let together = machine(Tasks::Together);
        let trace = together.trace(2000, &mut rng);
        assert!(trace.iter().all(|busy| both(busy) == busy & evens(6)));
        let share = trace.iter().map(|busy| f64::from(busy.count_ones())).sum::<f64>() / (6.0 * 2000.0);
        assert!((together.used(&trace) - share).abs() < 1e-9, "always together: U is u");
        // One task on each core is all there is until more tasks than cores are awake.
        let spread = machine(Tasks::SpreadFirst).trace(2000, &mut rng);
        let packed = machine(Tasks::PackFirst).trace(2000, &mut rng);
        let lonely = |busy: &u128| 2 * machine(Tasks::Turns).busy_cores(*busy) > busy.count_ones() as usize;
        assert!(
            spread
                .iter()
                .all(|busy| both(busy) == 0 || machine(Tasks::Turns).busy_cores(*busy) == 3 || lonely(busy))
        );
        assert!(packed.iter().any(|busy| both(busy) != 0));
    }
}
