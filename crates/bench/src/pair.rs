//! Two processes that hand each other a token, whatever carries it and wherever they sit: round
//! trips, wake-up latency, which CPUs a free pair was on.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::occupancy::{self, CpuNote, OCCUPANCY};
use super::{Benchmark, Candidate, Depth, Metric, Point, Sampler, Scope, Windows, check_answer};
use crate::placement::Distance;
use crate::row::{note, quantile_us, value};
use model::vocabulary::MetricId;
use model::vocabulary::ipc as ids;
use model::{Better, Case, Params, Placement};
use sys::affinity;
use sys::clock::Clock;
use sys::counters::{TaskCounters, TaskTotals};
use sys::crew::fork_on;
use sys::process::Child;
use sys::shared::{SharedWords, WORDS_PER_LINE};
use sys::ticks::Ticks;

pub mod channel;
pub mod lines;
mod wakes;

pub use wakes::wake_ups;

/// One side of what carries the token. Calls may end with `Interrupted` without having done
/// anything, and are repeated.
pub trait End {
    /// Called once by the partner's process, before the first token.
    fn enter(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn send(&mut self, token: u64) -> io::Result<()>;
    /// Waits for the other side's token.
    fn receive(&mut self) -> io::Result<u64>;
}

pub const ROLES: [&str; 2] = ["ping", "pong"];

/// Samples of a pinned pair: a thousand round trips on one CPU, some thirty where each must wake an
/// idle CPU, ns.
pub const WINDOW_NS: f64 = 2e6;
/// A free pair changes its placement every few ms: samples of many changes.
const FREE_WINDOW_NS: f64 = 20e6;

/// The stretch with which samples are `window_ns` long, or those of a free pair if that is longer;
/// deep profiles get no longer ones, but more passes.
pub fn stretch(windows: Windows, placement: &Placement, window_ns: f64) -> f64 {
    let free = placement.name == "free";
    (if free { FREE_WINDOW_NS.max(window_ns) } else { window_ns }) / windows.window_ns
}

/// A pair on two CPUs begins on one, where the fork left it; then waking the other CPU takes longer
/// and longer over some tens of ms (seen on a guest; the cause is unknown). What is compared begins
/// after that, ns.
pub const SETTLE_NS: f64 = 30e6;

/// Further figures of a pair.
pub const WAKEUP_P50: Metric = wakeup(ids::metric::WAKEUP_P50, "wake-up latency, median", 0.5);
pub const WAKEUP_P99: Metric = wakeup(ids::metric::WAKEUP_P99, "wake-up latency, 99th percentile", 0.99);
pub const WAKEUP_JITTER: Metric =
    aside(ids::metric::WAKEUP_JITTER, "wake-up latency, p99 above median", "us");
/// A wake-up's three parts, means: see [`Pair::wake_ups`].
pub const WAKING: Metric = aside(ids::metric::WAKING, "the waker's call", "us");
pub const WAITING: Metric = aside(ids::metric::WAITING, "runnable, not yet running", "us");
pub const SWITCHING: Metric = aside(ids::metric::SWITCHING, "rest of the wake-up", "us");
pub const VOLUNTARY: Metric = aside(ids::metric::VOLUNTARY, "voluntary switches in a round", "");
pub const INVOLUNTARY: Metric = aside(ids::metric::INVOLUNTARY, "involuntary switches in a round", "");
pub const MIGRATIONS: Metric = aside(ids::metric::MIGRATIONS, "migrations in a round", "1/s");
pub const AFFINE: Metric = note(ids::metric::AFFINE, "share of wake-ups that considered the waker's CPU", "");

/// The metrics of a row that measures a pair: its headline, then all that stands with it.
pub const fn metrics(headline: Metric) -> [Metric; 12] {
    [
        headline,
        WAKEUP_P50,
        WAKEUP_P99,
        WAKEUP_JITTER,
        WAKING,
        WAITING,
        SWITCHING,
        VOLUNTARY,
        INVOLUNTARY,
        OCCUPANCY,
        MIGRATIONS,
        AFFINE,
    ]
}

const fn aside(name: MetricId, title: &'static str, unit: &'static str) -> Metric {
    value(name, title, unit, Better::Lower)
}

const fn wakeup(name: MetricId, title: &'static str, q: f64) -> Metric {
    quantile_us(name, title, q).aside()
}

/// Where a pair may sit here, or the name of a placement and why it cannot be had: on one CPU and
/// on the nearest two for the quick profile, at every distance that this host has and free for
/// the others. `ipc.pipe-pingpong` lists what is lacking one by one.
pub fn placements(scope: &Scope) -> Vec<Result<Placement, (&'static str, String)>> {
    let mut placements = Vec::new();
    let (mut apart, mut lack) = (0, None);
    for (distance, placement) in scope.placements.pairs(ROLES) {
        match placement {
            Ok(placement) if distance == Distance::SameCpu => placements.push(Ok(placement)),
            Ok(placement) => {
                apart += 1;
                if apart == 1 || scope.depth > Depth::Quick {
                    placements.push(Ok(placement));
                }
            }
            Err(why) if distance == Distance::SameCpu => placements.push(Err((distance.name(), why))),
            Err(why) => lack = lack.or(Some(why)),
        }
    }
    if let (0, Some(why)) = (apart, lack) {
        placements.push(Err((Distance::OtherCpu.name(), why)));
    }
    if scope.depth > Depth::Quick {
        placements.push(scope.placements.free(&ROLES).map_err(|why| ("free", why)));
    }
    placements
}

/// Whether both tasks have the same single CPU.
pub fn on_one_cpu(placement: &Placement) -> bool {
    placement.name == Distance::SameCpu.name()
}

/// How long a pair settles before its first sample, s.
pub fn settling_s(placement: &Placement) -> f64 {
    if on_one_cpu(placement) { 0.0 } else { SETTLE_NS / 1e9 }
}

/// Candidates of a row whose passes have this many points, with samples of this length.
pub fn candidates(bench: &Benchmark, scope: &Scope, points: usize, window_ns: f64) -> Vec<Candidate> {
    let candidate = |placement: Placement| {
        let free = placement.name == "free";
        let priority = if scope.depth == Depth::Quick { 70 } else { 55 + 10 * u32::from(!free) };
        // Two processes to start; wake-ups, where they are taken.
        let windows = (scope.windows.count + scope.windows.warm_up) as f64;
        let setup_s = 1e-3 + settling_s(&placement) + windows * WAKEUPS_NS / 1e9;
        let stretch = stretch(scope.windows, &placement, window_ns);
        let mut candidate =
            Candidate::new(bench.id, placement, priority, scope.seconds(points, stretch, setup_s));
        occupancy::tell(&mut candidate.case, scope.placements);
        candidate
    };
    let unmet = |(name, why)| Candidate::unmet(bench.id, name, why);
    placements(scope).into_iter().map(|placement| placement.map_or_else(unmet, candidate)).collect()
}

/// Samples that take the wake-up latency, ns.
pub const WAKEUPS_NS: f64 = 2e6;

/// How a pass measures its pair.
pub struct PairPlan {
    pub metric: MetricId,
    pub stretch: f64,
    /// Length of the samples that take the wake-up latency, ns; 0 for pairs that never sleep.
    pub wakeup_ns: f64,
}

/// One pass: times round trips and notes where they took place, then the wake-ups of the partner.
pub fn visit<E: End>(
    case: &Case,
    sampler: &mut Sampler,
    play: PairPlan,
    make: impl FnOnce() -> anyhow::Result<[E; 2]>,
) -> anyhow::Result<()> {
    let mut pair = Pair::start(&case.placement, sampler.clock(), make)?;
    pair.spot.watch(case);
    pair.settle(&case.placement)?;
    let at = Params::new();
    let notes = pair.spot.notes(&at);
    let before = pair.account();
    let trip_ns =
        sampler.time_noting(Point::new(play.metric, 1.0).stretch(play.stretch), &notes, |trips| {
            pair.window(trips)
        })?;
    let told = pair.account().since(&before);
    told.emit(sampler, &at, case.placement.is_free())?;
    if play.wakeup_ns > 0.0 {
        pair.emit_wake_ups(sampler, at, play.wakeup_ns / trip_ns)?;
    }
    pair.stop()
}

/// What the scheduler counted for both tasks, over how many rounds and how long.
#[derive(Clone, Copy)]
pub struct SwitchCounts {
    pub totals: TaskTotals,
    pub rounds: f64,
    pub ns: f64,
}

impl SwitchCounts {
    pub fn since(&self, earlier: &SwitchCounts) -> SwitchCounts {
        let totals = self.totals.since(earlier.totals);
        SwitchCounts { totals, rounds: self.rounds - earlier.rounds, ns: self.ns - earlier.ns }
    }

    /// Switches a round; of tasks that may move also how often they did, and how many wake-ups
    /// considered it.
    pub fn emit(&self, sampler: &mut Sampler, at: &Params, free: bool) -> anyhow::Result<()> {
        let TaskTotals { migrations, voluntary, involuntary, wakeups, affine_attempts, .. } = self.totals;
        let mut told = vec![
            (ids::metric::VOLUNTARY, voluntary.map(|count| count / self.rounds)),
            (ids::metric::INVOLUNTARY, involuntary.map(|count| count / self.rounds)),
        ];
        if free {
            told.push((ids::metric::MIGRATIONS, migrations.map(|count| count / (self.ns / 1e9))));
            let woken = wakeups.filter(|wakeups| *wakeups > 0.0);
            told.push((ids::metric::AFFINE, woken.and_then(|woken| Some(affine_attempts? / woken))));
        }
        for (metric, value) in told {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                sampler.value(at.clone(), metric, value, self.ns)?;
            }
        }
        Ok(())
    }
}

/// Both note their CPU once in this many round trips: often enough to see a free pair move, and 20
/// ns twice in 8 × 2 µs cost only 0.25 %.
const LOOK_EVERY: u64 = 8;

/// Round trips whose wake-up latency is taken in one sample.
const STAMPS: usize = 2048;

/// What the pair shares: whether pong is ready, and the latencies that it saw.
struct Table {
    words: SharedWords,
}

impl Table {
    fn new() -> io::Result<Table> {
        Ok(Table { words: SharedWords::new(2 * WORDS_PER_LINE + STAMPS)? })
    }

    fn ready(&self) -> &AtomicU64 {
        self.words.word(0)
    }

    /// Above 0: tokens are clock readings, whose age pong notes from index 0 on whenever this
    /// number changes.
    fn stamped(&self) -> &AtomicU64 {
        self.words.word(WORDS_PER_LINE)
    }

    fn age(&self, index: usize) -> &AtomicU64 {
        self.words.word(2 * WORDS_PER_LINE + index % STAMPS)
    }
}

/// The partner's process, and the tick that ends every wait for it: nothing that it may do, dying
/// included, makes us wait for ever.
pub struct Watch {
    child: Child,
    _ticks: Ticks,
}

/// Four in a second: nothing that a sample could notice.
const TICK: Duration = Duration::from_millis(250);
/// A partner silent for this many ticks has stopped; hypervisors steal CPUs for less.
const PATIENCE_TICKS: u32 = 40;
const PATIENCE: Duration = Duration::from_secs(10);

impl Watch {
    pub fn over(child: Child) -> anyhow::Result<Watch> {
        Ok(Watch { child, _ticks: Ticks::start(TICK).context("cannot start a timer")? })
    }

    /// Calls until it is not interrupted; gives up when the partner has ended or does not answer
    /// for too long.
    pub fn patiently<T>(&mut self, what: &str, mut call: impl FnMut() -> io::Result<T>) -> anyhow::Result<T> {
        let mut ticks = 0;
        loop {
            match call() {
                Ok(done) => return Ok(done),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("cannot {what} the partner")),
            }
            if let Some(status) = self.child.ended()? {
                bail!("the partner ended ({status})");
            }
            ticks += 1;
            if ticks > PATIENCE_TICKS {
                bail!("cannot {what} the partner: no answer within {PATIENCE:?}");
            }
        }
    }

    /// Waits until the partner has set a shared word.
    pub fn until_set(&mut self, word: &AtomicU64) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        while word.load(Ordering::Acquire) == 0 {
            if let Some(status) = self.child.ended()? {
                bail!("the partner ended ({status}) before it was ready");
            }
            if Instant::now() > end {
                bail!("the partner was not ready within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// Waits for the partner to end by itself, and checks its exit status.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let status = self.child.wait(PATIENCE).context("while the partner ends")?;
        check_answer(status.success(), || format!("the partner ended with {status}"))
    }
}

/// Forks a partner on the second seat, seats the caller on the first. The partner drops `ours`,
/// runs `work` with `theirs`; the caller keeps `ours` alone, so that either side notices when the
/// other closes.
pub fn fork_beside<Ours, Theirs>(
    placement: &Placement,
    ends: (Ours, Theirs),
    work: impl FnOnce(Theirs) -> anyhow::Result<()>,
) -> anyhow::Result<(Ours, Watch)> {
    let [first, second] = placement.seats.as_slice() else {
        bail!("a pair needs two CPUs, not {}", placement.seats.len());
    };
    let (ours, theirs) = ends;
    let (mut ours, mut theirs) = (Some(ours), Some(theirs));
    let child = fork_on(&second.cpus, || {
        // Only the child comes here, with a copy of both.
        drop(ours.take());
        work(theirs.take().context("the partner's end of the channel was already used")?)
    })
    .context("cannot fork the partner")?;
    drop(theirs);
    affinity::pin(&first.cpus).with_context(|| format!("cannot pin to CPUs {}", first.cpus))?;
    let ours = ours.context("the caller's end of the channel was already used")?;
    Ok((ours, Watch::over(child)?))
}

/// Ping's side of the pair; pong is a forked child.
pub struct Pair<E> {
    end: E,
    table: Table,
    /// Where both are.
    pub spot: CpuNote,
    pong: Watch,
    clock: Clock,
    token: u64,
    /// The scheduler's account of both.
    counters: [TaskCounters; 2],
    stamped_windows: u64,
}

/// The token that ends the game. Counting from 0 never comes near it, clock readings neither; a
/// carrier may need a number above it.
const STOP: u64 = u64::MAX - 2;

impl<E: End> Pair<E> {
    /// Makes both ends, forks pong, seats both and waits until pong is ready.
    pub fn start(
        placement: &Placement,
        clock: Clock,
        make: impl FnOnce() -> anyhow::Result<[E; 2]>,
    ) -> anyhow::Result<Pair<E>> {
        let [ours, theirs] = make()?;
        let (table, spot) = (Table::new()?, CpuNote::new()?);
        let (end, mut pong) =
            fork_beside(placement, (ours, theirs), |mut end| be_pong(&mut end, &table, &spot, clock))?;
        pong.until_set(table.ready())?;
        let counters = [std::process::id(), pong.child.id()].map(TaskCounters::of);
        Ok(Pair { end, table, spot, pong, clock, token: 0, counters, stamped_windows: 0 })
    }

    /// The scheduler's account of both tasks so far.
    fn account(&mut self) -> SwitchCounts {
        let [ping, pong] = &mut self.counters;
        SwitchCounts {
            totals: ping.read().plus(pong.read()),
            rounds: self.token as f64,
            ns: self.clock.now(),
        }
    }

    /// Plays until what begins with the first round trips is over; see [`SETTLE_NS`].
    pub fn settle(&mut self, placement: &Placement) -> anyhow::Result<()> {
        let end = self.clock.now() + 1e9 * settling_s(placement);
        while self.clock.now() < end {
            self.play(2 * LOOK_EVERY)?;
        }
        self.spot.take();
        Ok(())
    }

    /// Plays `trips` round trips: their time, ns, and the share of them at each distance that is
    /// counted.
    pub fn window(&mut self, trips: u64) -> anyhow::Result<(f64, Vec<f64>)> {
        let ns = self.play(trips)?;
        Ok((ns, self.spot.take()))
    }

    /// Sends a token and waits for the answer.
    fn trip(&mut self, token: u64) -> anyhow::Result<u64> {
        self.pong.patiently("send a token to", || self.end.send(token))?;
        self.pong.patiently("hear from", || self.end.receive())
    }

    /// Plays `trips` round trips; returns how long they took, ns.
    pub fn play(&mut self, trips: u64) -> anyhow::Result<f64> {
        let begin = self.clock.now();
        for _ in 0..trips {
            let answer = self.trip(self.token)?;
            if answer != self.token + 1 {
                check_answer(false, || format!("token {} came back as {answer}", self.token))?;
            }
            self.token = answer;
            if self.token.is_multiple_of(LOOK_EVERY) {
                self.spot.look();
            }
        }
        Ok(self.clock.now() - begin)
    }

    /// Ends the game; the partner must leave content.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.pong.patiently("stop", || self.end.send(STOP))?;
        self.pong.finish()
    }
}

/// Pong's side: adds one to each token and sends it back.
fn be_pong(end: &mut impl End, table: &Table, spot: &CpuNote, clock: Clock) -> anyhow::Result<()> {
    end.enter()?;
    table.ready().store(1, Ordering::Release);
    let (mut window, mut stamps) = (0, 0);
    loop {
        let token = again(|| end.receive())?;
        if token == STOP {
            return Ok(());
        }
        let stamped = table.stamped().load(Ordering::Acquire);
        if stamped > 0 {
            stamps = if stamped == window { stamps + 1 } else { 0 };
            let age = (clock.now() - f64::from_bits(token)).max(0.0);
            table.age(stamps).store(age as u64, Ordering::Release);
        }
        window = stamped;
        // Ping notes both CPUs after the answers that are multiples of LOOK_EVERY.
        if (token + 1) % LOOK_EVERY == 0 {
            spot.note();
        }
        again(|| end.send(token + 1))?;
    }
}

/// Repeats an interrupted call; for partners, which die with the process that they wait for.
pub fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
pub mod tests;
