//! The tables on other work that uses memory intermittently: maps while a thread of Assay does so,
//! whose effect is measured by other loads around each map, and longer loads in the probes of real
//! maps.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use diagnose::regions::moments;
use fastrand::Rng;
use kernels::{Chain, LINE_BYTES, Op, Ring, streams, walk_together};
use model::{CpuSet, Pages, run_file};
use prove::proof::{NEIGHBOUR_FALSE_MOST, REGION_NAMED_LEAST, Rate};
use serde_json::Value;
use stats::order::median;
use stats::regions::{Cause, Moment, neighbour};
use sys::mapping::Mapping;

use super::Section;
use super::detection::run_file_of;
use super::held_back::HeldBack;
use super::regions_planted::{causes, folder, map, of_host, own_causes, progress, trials};
use super::statistics::{at_least, at_most, titled};

pub const SECTIONS: &[Section] = &[
    Section { name: "neighbours-planted", title: "Neighbours in memory, planted", run: beside },
    Section { name: "neighbours-in-looks", title: "Neighbours planted in real looks", run: in_looks },
];

/// What a neighbour does with memory.
#[derive(Clone, Copy)]
enum Use {
    Write,
    Chase,
}

/// A thread of this process that uses memory intermittently.
struct Neighbour {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    const BYTES: usize = 256 << 20;
    const PIECE: usize = 1 << 20;
    const CHAINS: usize = 12;

    /// Begins its first turn before this returns.
    fn on(cpu: u32, what: Use, busy_s: f64, idle_s: f64) -> Neighbour {
        let over = Arc::new(AtomicBool::new(false));
        let (flag, began) = (Arc::clone(&over), Arc::new(AtomicBool::new(false)));
        let ready = Arc::clone(&began);
        let thread = std::thread::spawn(move || {
            sys::affinity::pin(&CpuSet::one(cpu)).expect("a CPU that may be used");
            let mut memory =
                Mapping::private(Self::BYTES, Pages::Huge, &CpuSet::default()).expect("256 MiB of memory");
            let stream = |op: Op, memory: &mut Mapping| {
                let words = memory.words_mut().chunks_mut(Self::PIECE / 8);
                words.for_each(|piece| _ = streams(op)[0].run(piece, 1, 1));
            };
            stream(Op::Write, &mut memory);
            match what {
                Use::Write => {
                    ready.store(true, Ordering::Release);
                    by_turns(&flag, busy_s, idle_s, || stream(Op::WriteNt, &mut memory));
                }
                Use::Chase => {
                    let mut chains = Chain::random_parts(memory.words_mut(), LINE_BYTES, Self::CHAINS, 1);
                    ready.store(true, Ordering::Release);
                    by_turns(&flag, busy_s, idle_s, || walk_together(&mut chains, 10_000));
                }
            }
        });
        while !began.load(Ordering::Acquire) && !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Neighbour { over, thread: Some(thread) }
    }
}

fn by_turns(over: &AtomicBool, busy_s: f64, idle_s: f64, mut work: impl FnMut()) {
    let turn = |seconds: f64, work: &mut dyn FnMut()| {
        let begin = Instant::now();
        while begin.elapsed().as_secs_f64() < seconds && !over.load(Ordering::Relaxed) {
            work();
        }
    };
    while !over.load(Ordering::Relaxed) {
        turn(busy_s, &mut work);
        turn(idle_s, &mut || std::thread::sleep(Duration::from_millis(5)));
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What a neighbour does for how long of every two and a half seconds.
const NEIGHBOURS: [(Use, f64, &str); 3] = [
    (Use::Write, 1.0, "writes past the caches, 40 % of the time"),
    (Use::Write, 0.2, "writes past the caches, 8 % of the time"),
    (Use::Chase, 1.0, "follows 12 chains at once, 40 % of the time"),
];
/// Those that work long enough to be named.
const LONG: [usize; 2] = [0, 2];
const CYCLE_S: f64 = 2.5;
/// A map of this size had 18–23 half seconds of probes, of which sixteen are needed.
const BESIDE: &str = "3G";
/// Loads that take this many times as long before and after a map are a plant above the limit of
/// 1.2; below the other they do not count as disturbed.
const PLANTED: f64 = 1.25;
const NO_EFFECT: f64 = 1.1;
/// If no kind has an effect, this many trials show that none is named.
const FEWER: usize = 10;

/// What was reported with one kind of other work.
#[derive(Default)]
struct MapOutcomes {
    effects: Vec<f64>,
    /// Named, cannot tell, none: with loads that are longer before and after the map ...
    planted: [Rate; 3],
    /// ... and named where they are not.
    none: Rate,
    wrong: Rate,
}

impl MapOutcomes {
    /// Counts what a map says, before and after which loads took this many times as long.
    fn count(&mut self, seen: &Value, before: f64, after: f64, own: &[Cause]) {
        let says = &seen["neighbour"]["says"];
        self.effects.extend([before, after]);
        if before.min(after) >= PLANTED {
            let all = self.planted.iter_mut().zip(["named", "cannot_tell", "quiet"]);
            all.for_each(|(count, word)| count.count(*says == word));
        } else if before.max(after) < NO_EFFECT {
            self.none.count(*says == "named");
        }
        let other = causes(seen).iter().any(|cause| !own.contains(cause));
        self.wrong.count(seen["far_times"].is_number() || other);
    }
}

/// Maps while another CPU works, kinds alternately. What it does to loads is the host's: how much
/// one CPU can take, and whether both run where they share it. So it is measured before and after
/// each map by loads of another kind.
fn beside() -> String {
    let cpus: Vec<u32> = testkit::host::allowed_cpus().iter().collect();
    let [first, .., last] = cpus[..] else { return "A neighbour needs a second CPU.\n".to_string() };
    let held_back = HeldBack::new();
    let own = own_causes();
    let strongest = NEIGHBOURS.iter().map(|(what, ..)| effect(first, last, *what)).fold(1.0, f64::max);
    let trials = if strongest < NO_EFFECT { trials().div_ceil(FEWER) } else { trials() };
    let mut told: [MapOutcomes; NEIGHBOURS.len()] = Default::default();
    for trial in 0..trials {
        for ((what, busy_s, _), told) in NEIGHBOURS.iter().zip(&mut told) {
            let before = effect(first, last, *what);
            let neighbour = Neighbour::on(last, *what, *busy_s, CYCLE_S - busy_s);
            let seen = map(BESIDE, "");
            drop(neighbour);
            let after = effect(first, last, *what);
            if let Some(seen) = seen {
                told.count(&seen, before, after, &own);
            }
        }
        progress(trial, trials);
    }
    let rows = NEIGHBOURS.iter().zip(&told).map(|((.., words), told)| {
        let effect = median(&told.effects).map_or("–".to_string(), |times| format!("{times:.2}"));
        let [named, cannot_tell, quiet] = told.planted;
        let cells = [named, cannot_tell, quiet, told.none, told.wrong].map(|rate| match rate.of {
            0 => "–".to_string(),
            of => format!("{rate} of {of}"),
        });
        [words.to_string(), effect].into_iter().chain(cells).collect()
    });
    let above: Vec<Rate> =
        LONG.iter().map(|kind| told[*kind].planted[0]).filter(|named| named.of > 0).collect();
    let named = match above[..] {
        [] => format!(
            "\nOn this host one CPU makes loads of another {strongest:.2} times as long at most: no neighbour above the limit can be planted here.\n"
        ),
        _ => at_least(
            "Neighbours that make loads longer for 40 % of the time named",
            &above,
            REGION_NAMED_LEAST,
        ),
    };
    let false_ones: Vec<Rate> =
        told.iter().map(|told| told.none).chain([told[1].planted[0]]).filter(|rate| rate.of > 0).collect();
    [
        of_host(&held_back, &own),
        titled(
            "neighbour | times as long, loads before and after | named, where 1.25 times or more | cannot \
         tell | quiet | named, where less than 1.1 times | a cause beside it",
            rows,
        ),
        named,
        "\n".to_string(),
        at_most(
            "Neighbours named that work for 8 % of the time, or without an effect",
            &false_ones,
            NEIGHBOUR_FALSE_MOST,
        ),
    ]
    .concat()
}

/// How many times longer a flushed load of one CPU takes while another CPU works: the median over a
/// few rounds.
fn effect(on: u32, beside: u32, what: Use) -> f64 {
    const TURNS: usize = 3;
    let times: Vec<f64> = (0..TURNS)
        .map(|turn| {
            let quiet = load_ns(on, turn as u64);
            let _neighbour = Neighbour::on(beside, what, f64::INFINITY, 0.0);
            load_ns(on, turn as u64) / quiet
        })
        .collect();
    median(&times).unwrap_or(f64::NAN)
}

/// What a flushed load takes, ns: the median of 64 passes over 2048 lines, each anywhere in its
/// part of 64 MiB.
fn load_ns(cpu: u32, seed: u64) -> f64 {
    const BYTES: usize = 64 << 20;
    const LOADS: usize = 2048;
    const PASSES: usize = 64;
    let timed = move || {
        sys::affinity::pin(&CpuSet::one(cpu)).expect("a CPU that may be used");
        let mut memory = Mapping::private(BYTES, Pages::Huge, &CpuSet::default()).expect("64 MiB of memory");
        memory.write_each(8, BYTES / 8, 1);
        let memory = Rc::new(memory);
        let mut rng = Rng::with_seed(seed);
        let passes: Vec<f64> = (0..PASSES)
            .map(|_| {
                let stripe = (BYTES / LINE_BYTES / LOADS) as u32;
                let mut lines: Vec<u32> =
                    (0..LOADS as u32).map(|at| at * stripe + rng.u32(0..stripe)).collect();
                rng.shuffle(&mut lines);
                let mut ring = Ring::in_order(Rc::clone(&memory), lines, 0);
                ring.flush();
                let begin = Instant::now();
                ring.walk(LOADS as u64);
                begin.elapsed().as_secs_f64() * 1e9 / LOADS as f64
            })
            .collect();
        median(&passes).unwrap_or(f64::NAN)
    };
    std::thread::spawn(timed).join().expect("a thread that times loads")
}

/// What is planted in probes: times as long, share of the time, and s from one round to the next.
const IN_LOOKS: [(f64, f64, f64); 8] = [
    (1.0, 0.0, 1.0),
    (1.6, 0.08, 2.5),
    (1.1, 0.4, 2.5),
    (1.3, 0.3, 1.0),
    (1.3, 0.3, 2.5),
    (1.3, 0.4, 2.5),
    (1.3, 0.3, 4.0),
    (1.6, 0.4, 2.5),
];
/// Those that are not to be named, and those that are; loads below the limit have no bound.
const BELOW: std::ops::Range<usize> = 0..2;
const ABOVE: std::ops::Range<usize> = 3..8;
/// A map's probes are used this often, each time with rounds that begin elsewhere.
const TIMES_EACH: usize = 4;

/// Probes of real maps, with loads made longer intermittently: noise, gaps and order in time are
/// those of this host, where a second CPU may do too little.
fn in_looks() -> String {
    let trials = trials();
    let mut maps: Vec<Vec<Vec<Moment>>> = Vec::new();
    let mut tries = 0;
    while maps.len() < trials.div_ceil(TIMES_EACH) && tries < 2 * trials {
        tries += 1;
        let seen = map(BESIDE, "");
        let run = seen.and_then(|_| run_file::read(&run_file_of(&folder()).ok()?).ok());
        maps.extend(run.map(|run| run.visits.iter().map(moments).collect()));
    }
    let mut rng = Rng::with_seed(1);
    let mut told = [[Rate::default(); 3]; IN_LOOKS.len()];
    let mut halves: Vec<f64> = Vec::new();
    for trial in 0..maps.len() * TIMES_EACH {
        for ((times, share, cycle_s), told) in IN_LOOKS.iter().zip(&mut told) {
            let begin_s = rng.f64() * cycle_s;
            let longer = |look: &Moment| {
                let is_there = (look.at_s + begin_s).rem_euclid(*cycle_s) < share * cycle_s;
                Moment { load_ns: look.load_ns * if is_there { *times } else { 1.0 }, ..*look }
            };
            let visits: Vec<Vec<Moment>> =
                maps[trial / TIMES_EACH].iter().map(|own| own.iter().map(longer).collect()).collect();
            let found = neighbour(&visits);
            halves.extend(found.as_ref().map(|found| found.blocks.len() as f64));
            let (named, quiet) =
                found.as_ref().map_or((false, false), |found| (found.is_named(), found.is_quiet()));
            let all = told.iter_mut().zip([named, !named && !quiet, quiet]);
            all.for_each(|(count, says)| count.count(says));
        }
    }
    let rows = IN_LOOKS.iter().zip(&told).map(|((times, share, cycle_s), told)| {
        let what = if *share > 0.0 {
            format!("{times} times as long for {:.0} % of every {cycle_s} s", share * 100.0)
        } else {
            "nothing".to_string()
        };
        [what, told[0].of.to_string()].into_iter().chain(told.iter().map(Rate::to_string)).collect()
    });
    let named: Vec<Rate> = told.iter().map(|told| told[0]).collect();
    [
        format!(
            "Looks of {} maps of 3 GiB, {:.0} half seconds each in the median.\n\n",
            maps.len(),
            median(&halves).unwrap_or(0.0)
        ),
        titled("planted in their loads | trials | named | cannot tell | quiet", rows),
        at_least("Neighbours above the limits named", &named[ABOVE], REGION_NAMED_LEAST),
        "\n".to_string(),
        at_most("Neighbours named that are not there, or for 8 %", &named[BELOW], NEIGHBOUR_FALSE_MOST),
    ]
    .concat()
}
