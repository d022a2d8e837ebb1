//! Core to core: a cache line handed to and fro between every two CPUs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::tournament::{self as pairs, Pair};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, median};
use crate::row::{latency_ns, matrix};
use model::vocabulary::memory as ids;
use model::{Case, CpuSet, Params};
use sys::clock::Clock;
use sys::crew::{Lines, Partner, Wait};
use sys::shared::SharedWords;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::CORE_TO_CORE,
    title: "Core to core",
    about: "Time for one cache line to go from one CPU to another. It is half of a round trip between two spinning \
            processes.",
    reading: "Lower is better. SMT siblings take 5–15 ns, a cluster or shared L3 20–70, large meshes up to 90. \
              Other L3s of a package take 80–150, other packages 120–300. Pairs below 20 ns that the kernel does not \
              report as siblings share a core, as in some guests. A slow row or column is a core with a low clock or other \
              work. Memory next to `from` is faster if `from` is near.",
    method: "Each process waits for the number that it expects and stores the next, with plain loads and stores and \
             no pause. Each ordered pair has its own line, which `from` touches first, so it lies on that node. The \
             count is checked on both sides after each sample. All pairs are measured up to 64 CPUs (16 in the quick \
             profile). Above, 24 (8) pairs of each distance are measured, or all with --all-pairs. Pairs run one at \
             a time, unless a trial shows that others change no pair by more than 5 %. The notes of a pass name \
             which.",
    source: file!(),
    metrics: &[latency_ns(ids::metric::LATENCY, "one-way latency")],
    params: &[
        Param::cpu(ids::param::FROM, "CPU that starts, with the line in its node's memory"),
        Param::cpu(ids::param::TO, "CPU that answers"),
    ],
    view: &matrix(ids::param::FROM, ids::param::TO),
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

/// Up to this many CPUs every pair is measured (unless all are asked for), and pairs of each
/// distance above.
const fn extent(depth: Depth) -> (usize, usize) {
    match depth {
        Depth::Quick => (16, 8),
        Depth::Standard | Depth::Full => (64, 24),
    }
}

/// A sample has a thousand round trips or more; longer ones would only cost time on large hosts,
/// ns.
const WINDOW_NS: f64 = 250e3;
/// Waking and warming up two processes and reading their answers, ns; for every sample.
const WAKE_NS: f64 = 200e3;
/// Samples that the trial with several pairs takes, about.
const TRIAL_WINDOWS: f64 = 100.0;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placement = scope.placements.all("player");
    let cpus = placement.cpus();
    match cpus.len() {
        0 => return vec![Candidate::unmet(bench.id, "all", "no usable CPU found".to_string())],
        1 => {
            let why = format!("needs two usable CPUs; only {cpus} found");
            return vec![Candidate::unmet(bench.id, "all", why)];
        }
        _ => {}
    }
    let (whole, each) = extent(scope.depth);
    let sampled = (cpus.len() > whole && !scope.all).then(|| pairs::sample(scope.placements, each));
    let count = sampled.as_ref().map_or(cpus.len() * (cpus.len() - 1) / 2, Vec::len);
    let players = cpus.len().min(2 * count) as f64;
    // One at a time, as the worst case.
    let stretch = scope.windows.no_longer_than(WINDOW_NS) * (1.0 + WAKE_NS / WINDOW_NS);
    let seconds =
        scope.seconds(2 * count, stretch, players * 0.5e-3 + TRIAL_WINDOWS * (WINDOW_NS + WAKE_NS) / 1e9);
    let mut candidate = Candidate::new(bench.id, placement, 84, seconds);
    if let Some(pairs) = sampled {
        candidate.case.inputs.insert("pairs".into(), pairs::to_text(&pairs));
    }
    vec![candidate.memory(2 * count as u64 * APART_BYTES + players as u64 * PAGE_BYTES)]
}

fn pairs_of(case: &Case) -> Vec<Pair> {
    match case.inputs.get("pairs") {
        Some(text) => pairs::from_text(text),
        None => pairs::every(&case.placement.cpus()),
    }
}

/// The rounds of a case, each in both orders.
fn rounds_of(case: &Case) -> Vec<Vec<Pair>> {
    let there = pairs::rounds(&pairs_of(case));
    let back = |round: &Vec<Pair>| round.iter().map(|(low, high)| (*high, *low)).collect();
    there.into_iter().flat_map(|round| [back(&round), round].into_iter().rev()).collect()
}

fn points(case: &Case) -> Vec<Params> {
    rounds_of(case).into_iter().flatten().map(at).collect()
}

fn at((from, to): Pair) -> Params {
    Params::from([(ids::param::FROM, u64::from(from).into()), (ids::param::TO, u64::from(to).into())])
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let rounds = rounds_of(case);
    let stretch = sampler.windows().no_longer_than(WINDOW_NS);
    let mut hall = Players::open(&rounds, sampler.clock())?;
    let company = hall.bears_company(&rounds)?;
    sampler.facts().notes.push(company.to_string());
    for round in &rounds {
        let at_once = if company.bearable() { round.len() } else { 1 };
        for group in round.chunks(at_once) {
            let games = group.iter().map(|pair| {
                // An iteration is a set of round trips of two ways each.
                Point::new(ids::metric::LATENCY, (2 * SET) as f64).at(at(*pair)).stretch(stretch)
            });
            sampler.time_each(games.collect(), |sets| hall.play(group, sets * SET))?;
        }
    }
    Ok(())
}

/// Round trips of a set: few enough to calibrate with, enough to be in the middle of.
const SET: u64 = 64;
/// Round trips before the clock is read: both have arrived, and the line is where it will be.
const WARM_UP: u64 = 32;

/// Lines of different pairs are this far apart: no prefetcher and no longer line brings one with
/// the other.
const APART_BYTES: u64 = 256;
const APART_WORDS: usize = APART_BYTES as usize / 8;
/// The largest base page: what one CPU touches first shares no page with another's.
const PAGE_BYTES: u64 = 64 << 10;
const PAGE_WORDS: usize = PAGE_BYTES as usize / 8;

/// Where all games are played: the players, one process a CPU, asleep unless they play; their lines
/// and results.
struct Players {
    players: BTreeMap<u32, Partner>,
    tables: BTreeMap<Pair, PairLine>,
    results: Lines,
}

/// One ordered pair's line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PairLine {
    number: u64,
    /// Index of its word in the memory of all lines.
    word: usize,
    /// What both must have counted so far.
    count: u64,
}

/// Asks a player whether it is ready.
const READY: u64 = u64::MAX;
/// Bits of an order that are the round trips; the table's number stands above.
const TRIPS_BITS: u32 = 36;

impl Players {
    fn open(rounds: &[Vec<Pair>], clock: Clock) -> anyhow::Result<Players> {
        let (tables, words) = lay_out(rounds);
        let lines = SharedWords::new(words)?;
        let cpus: CpuSet = tables.keys().map(|(from, _)| *from).collect();
        let results = Lines::new(cpus.last().unwrap_or(0) as usize + 1)?;
        let mut players = BTreeMap::new();
        for cpu in cpus.iter() {
            let build = || {
                let mut games: BTreeMap<u64, Player> = BTreeMap::new();
                for ((from, to), table) in &tables {
                    let line = lines.word(table.word);
                    if *from == cpu {
                        // First touched here, before any player starts.
                        line.store(0, Ordering::Release);
                    }
                    if *from == cpu || *to == cpu {
                        games.insert(table.number, Player { line, begins: *from == cpu, count: 0 });
                    }
                }
                let ns = &results[cpu as usize];
                Ok(move |order: u64| match games.get_mut(&(order >> TRIPS_BITS)) {
                    Some(game) => Ok(game.play(order & ((1 << TRIPS_BITS) - 1), clock, ns)),
                    None => Ok(READY),
                })
            };
            players.insert(cpu, Partner::start(&CpuSet::one(cpu), Wait::Sleep, build)?);
        }
        let mut hall = Players { players, tables, results };
        // All at once, for they have memory to touch.
        hall.players.values_mut().for_each(|player| player.give_order(READY));
        for player in hall.players.values_mut() {
            player.answer()?;
        }
        Ok(hall)
    }

    /// Plays `trips` round trips of each pair, all pairs at once; returns how long each took, ns.
    fn play(&mut self, pairs: &[Pair], trips: u64) -> anyhow::Result<Vec<f64>> {
        let trips = trips.min((1 << TRIPS_BITS) - 1 - WARM_UP);
        for (from, to) in pairs {
            let table = self.tables.get_mut(&(*from, *to)).context("the case has no list of pairs")?;
            table.count += 2 * (trips + WARM_UP);
            let order = table.number << TRIPS_BITS | trips;
            for cpu in [to, from] {
                self.player(*cpu)?.give_order(order);
            }
        }
        let mut took = Vec::with_capacity(pairs.len());
        for pair @ (from, to) in pairs {
            let counted = [self.player(*from)?.answer()?, self.player(*to)?.answer()?];
            let expected = self.tables[pair].count;
            check_answer(counted == [expected; 2], || {
                let [one, other] = counted;
                format!("CPUs {from} and {to} counted to {one} and {other}, not {expected}")
            })?;
            let ns = self.results[*from as usize].load(Ordering::Acquire);
            took.push(f64::from_bits(ns));
        }
        Ok(took)
    }

    fn player(&mut self, cpu: u32) -> anyhow::Result<&mut Partner> {
        self.players.get_mut(&cpu).with_context(|| format!("no process runs on CPU {cpu}"))
    }

    /// Measures a few pairs of the fullest round alone and together with that whole round.
    fn bears_company(&mut self, rounds: &[Vec<Pair>]) -> anyhow::Result<Interference> {
        let fullest = rounds.iter().max_by_key(|round| round.len()).map_or(&[][..], Vec::as_slice);
        if fullest.len() < 2 {
            return Ok(Interference { others: 0, changed: 0.0 });
        }
        let step = fullest.len().div_ceil(TRIED);
        let mut company = Interference { others: fullest.len() - 1, changed: f64::INFINITY };
        // Twice, for something else may disturb as well.
        for _ in 0..2 {
            let mut alone = Vec::new();
            for pair in fullest.iter().step_by(step) {
                alone.push(median_of(TRIES, || Ok(self.play(&[*pair], TRIAL_TRIPS)?[0]))?);
            }
            let mut together = vec![Vec::new(); fullest.len()];
            for _ in 0..TRIES {
                let took = self.play(fullest, TRIAL_TRIPS)?;
                together.iter_mut().zip(took).for_each(|(all, ns)| all.push(ns));
            }
            let together = together.into_iter().step_by(step).map(median);
            let changes =
                alone.into_iter().zip(together).map(|(alone, together)| (together / alone - 1.0).abs());
            company.changed = company.changed.min(changes.fold(0.0, f64::max));
            if company.bearable() {
                break;
            }
        }
        Ok(company)
    }
}

/// Pairs that are tried alone and in company, tries of each, and round trips of a try.
const TRIED: usize = 6;
const TRIES: usize = 5;
const TRIAL_TRIPS: u64 = 2000;

/// What the company of other pairs did to the pair that it changed most.
#[derive(Clone, Copy, Debug)]
struct Interference {
    others: usize,
    changed: f64,
}

/// A pair that differs by more in company is measured alone, and so are all.
const BEARABLE: f64 = 0.05;

impl Interference {
    fn bearable(&self) -> bool {
        self.changed <= BEARABLE
    }
}

impl std::fmt::Display for Interference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Interference { others, changed } = self;
        let changed = changed * 100.0;
        match (others, self.bearable()) {
            (0, _) => write!(f, "pairs ran one at a time: no two pairs are disjoint"),
            (_, true) => {
                write!(
                    f,
                    "disjoint pairs ran at once: {others} others changed a pair by at most {changed:.1} %"
                )
            }
            (_, false) => {
                write!(f, "pairs ran one at a time: {others} others changed a pair by {changed:.1} %")
            }
        }
    }
}

fn median_of(tries: usize, mut value: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    Ok(median((0..tries).map(|_| value()).collect::<anyhow::Result<_>>()?))
}

/// A line for each ordered pair, those of one `from` side by side on pages of their own; and the
/// words of all.
fn lay_out(rounds: &[Vec<Pair>]) -> (BTreeMap<Pair, PairLine>, usize) {
    let pairs: std::collections::BTreeSet<Pair> = rounds.iter().flatten().copied().collect();
    let (mut tables, mut next, mut last_from) = (BTreeMap::new(), 0usize, None);
    for (pair, number) in pairs.into_iter().zip(0..) {
        // In the order of `from`.
        if last_from.replace(pair.0) != Some(pair.0) {
            next = next.next_multiple_of(PAGE_WORDS);
        }
        tables.insert(pair, PairLine { number, word: next, count: 0 });
        next += APART_WORDS;
    }
    (tables, next.max(APART_WORDS))
}

/// One player's side of a pair.
struct Player<'a> {
    line: &'a AtomicU64,
    begins: bool,
    count: u64,
}

impl Player<'_> {
    /// Plays the warm-up and `trips` round trips; who begins notes how long they took. Returns what
    /// it counted to.
    fn play(&mut self, trips: u64, clock: Clock, ns: &AtomicU64) -> u64 {
        let mut whole = self.trips(WARM_UP);
        let begin = clock.now();
        whole = whole && self.trips(trips);
        if self.begins && whole {
            ns.store((clock.now() - begin).to_bits(), Ordering::Release);
        }
        match whole {
            true => self.count,
            false => self.line.load(Ordering::Acquire),
        }
    }

    fn trips(&mut self, trips: u64) -> bool {
        for _ in 0..trips {
            if self.begins {
                self.line.store(self.count + 1, Ordering::Release);
                if !await_count(self.line, self.count + 2) {
                    return false;
                }
            } else {
                if !await_count(self.line, self.count + 1) {
                    return false;
                }
                self.line.store(self.count + 2, Ordering::Release);
            }
            self.count += 2;
        }
        true
    }
}

/// A number that has not come by then was lost. A hypervisor that steals a CPU gives it back
/// sooner.
const LOST: Duration = Duration::from_secs(10);

/// Spins until the line holds `count`. No pause: it takes up to 140 cycles, as long as what is
/// measured.
#[inline]
fn await_count(line: &AtomicU64, count: u64) -> bool {
    if line.load(Ordering::Acquire) == count {
        return true;
    }
    let mut since = None;
    loop {
        for _ in 0..1 << 20 {
            if line.load(Ordering::Acquire) == count {
                return true;
            }
        }
        // Reached after a millisecond of waiting: both were at it from the start, or one is not
        // running.
        if since.get_or_insert_with(Instant::now).elapsed() > LOST {
            return false;
        }
    }
}

#[cfg(test)]
mod tests;
