//! Which visits of a run are kept: all, unless there are more than analyses need or memory holds;
//! then some of each case and outcome, drawn evenly over the run.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::limits::Limits;
use crate::{LeftOut, Packed, Place, Reason, Run, Samples, Thinned, Visit, measured_ms};

/// Visits by case and outcome, so that a single wrong answer among a million visits is never lost.
pub(super) struct Keep {
    groups: HashMap<(u32, Outcome), Group>,
    places: Vec<Place>,
    measured_ms: f64,
    weight: u64,
    seed: u64,
    each: usize,
    memory: [(u64, usize); 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Good,
    Failed,
    WrongAnswer,
    TimedOut,
    Skipped,
    Invalid,
}

#[derive(Default)]
struct Group {
    /// One of every 2^level is kept.
    level: u32,
    seen: u64,
    kept: Vec<Kept>,
}

struct Kept {
    /// Among the visits of its group, from 0.
    number: u64,
    /// In the file.
    place: usize,
    weight: u64,
    visit: Visit,
}

/// There is no room for the visits, however few are kept of each case.
pub(super) struct NoRoom;

impl Keep {
    pub(super) fn new(seed: u64, limits: &Limits) -> Keep {
        Keep {
            groups: HashMap::new(),
            places: Vec::new(),
            measured_ms: 0.0,
            weight: 0,
            seed,
            each: limits.visits_each,
            memory: limits.memory,
        }
    }

    /// How many visits there were.
    pub(super) fn seen(&self) -> usize {
        self.places.len()
    }

    /// Of how many cases.
    pub(super) fn cases(&self) -> usize {
        self.groups.keys().map(|(case, _)| case).collect::<HashSet<&u32>>().len()
    }

    pub(super) fn add(&mut self, visit: Visit) -> Result<(), NoRoom> {
        let place = self.places.len();
        self.places.push(Place::of(&visit));
        self.measured_ms = self.measured_ms.max(measured_ms(std::slice::from_ref(&visit)));
        let seed = self.seed ^ u64::from(visit.case).rotate_left(32);
        let group = self.groups.entry((visit.case, outcome(&visit))).or_default();
        let number = group.seen;
        group.seen += 1;
        if !drawn(seed, number, group.level) {
            return Ok(());
        }
        let weight = weight(&visit);
        self.weight += weight;
        group.kept.push(Kept { number, place, weight, visit });
        if group.kept.len() > self.each {
            self.weight -= group.halve(seed);
        }
        self.make_room()
    }

    /// Where visits take more memory than they may, halves the longest groups until a quarter is
    /// free again.
    fn make_room(&mut self) -> Result<(), NoRoom> {
        for (most, least) in self.memory {
            if self.weight <= most {
                return Ok(());
            }
            while self.weight > most / 4 * 3 {
                let longest = self.groups.values().map(|group| group.kept.len()).max().unwrap_or(0);
                if longest <= least {
                    break;
                }
                let seed = self.seed;
                for ((case, _), group) in &mut self.groups {
                    if group.kept.len() > least.max(longest / 2) {
                        self.weight -= group.halve(seed ^ u64::from(*case).rotate_left(32));
                    }
                }
            }
        }
        if self.weight <= self.memory[1].0 { Ok(()) } else { Err(NoRoom) }
    }

    /// Hands the run what was kept, in the file's order.
    pub(super) fn give(self, run: &mut Run) {
        let mut left_out: BTreeMap<u32, LeftOut> = BTreeMap::new();
        let mut kept: Vec<Kept> = Vec::new();
        for ((case, outcome), group) in self.groups {
            let gone = group.seen as usize - group.kept.len();
            if gone > 0 {
                let of_case = left_out.entry(case).or_default();
                match outcome {
                    Outcome::Good => of_case.good += gone,
                    Outcome::Skipped => {}
                    Outcome::WrongAnswer => {
                        (of_case.failed, of_case.wrong) = (of_case.failed + gone, of_case.wrong + gone)
                    }
                    Outcome::Failed | Outcome::TimedOut | Outcome::Invalid => of_case.failed += gone,
                }
            }
            kept.extend(group.kept);
        }
        kept.sort_unstable_by_key(|kept| kept.place);
        run.visits = kept.into_iter().map(|kept| kept.visit).collect();
        if run.visits.len() < self.places.len() {
            let (mut places, kept, measured_ms) = (self.places, run.visits.len(), self.measured_ms);
            places.sort_unstable();
            run.thinned = Some(Thinned { places, kept, left_out, measured_ms });
        }
    }
}

impl Group {
    /// Keeps one of each two neighbours, which one is drawn; gives the weight that is free now.
    fn halve(&mut self, seed: u64) -> u64 {
        self.level += 1;
        let level = self.level;
        let weight = |kept: &[Kept]| kept.iter().map(|kept| kept.weight).sum::<u64>();
        let before = weight(&self.kept);
        self.kept.retain(|kept| drawn(seed, kept.number, level));
        self.kept.shrink_to_fit();
        before - weight(&self.kept)
    }
}

fn outcome(visit: &Visit) -> Outcome {
    match &visit.reason {
        None => Outcome::Good,
        Some(Reason::Failed(_)) => Outcome::Failed,
        Some(Reason::WrongAnswer(_)) => Outcome::WrongAnswer,
        Some(Reason::TimedOut(_)) => Outcome::TimedOut,
        Some(Reason::Skipped(_)) => Outcome::Skipped,
        Some(Reason::Invalid(_)) => Outcome::Invalid,
    }
}

/// Whether a number is the one that is drawn of its block of 2^level numbers. Each of a block is as
/// likely as the others; one that is drawn of a block is drawn of all smaller ones around it, so
/// that blocks can be joined later. (Every second one would see one direction only of passes that
/// go there and back.)
fn drawn(seed: u64, number: u64, level: u32) -> bool {
    (0..level).all(|bit| {
        let half = (number >> bit) & 1;
        half == mixed(seed ^ mixed((number >> bit >> 1) ^ (u64::from(bit) << 56))) & 1
    })
}

/// SplitMix64's finisher.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Bytes that a visit and the processes of its series take, roughly: by what was seen of runs with
/// small and large visits.
fn weight(visit: &Visit) -> u64 {
    let column = |column: &Packed| match column {
        Packed::Same(_) => 0,
        Packed::Each(values) => 8 * values.len() as u64,
    };
    let of = |samples: &Samples| {
        let (windows, metrics) = (samples.len() as u64, samples.metrics.len() as u64);
        let columns = samples.beside.columns().count() as u64;
        let own: u64 =
            column(&samples.work) + samples.beside.columns().map(|(_, packed)| column(packed)).sum::<u64>();
        let histograms: u64 =
            samples.histograms.iter().map(|histogram| 64 + 16 * histogram.ns.len() as u64).sum();
        1200 + own + histograms + 8 * windows + metrics * (1300 + windows * 8 * (columns + 2))
    };
    let notes: usize = visit.process.notes.iter().map(|note| 24 + note.len()).sum();
    let reason = visit.reason.as_ref().map_or(0, |reason| reason.text().len());
    let neighbours = visit.conditions.neighbours.as_ref().map_or(0, |all| 128 * all.len());
    1200 + (notes + 3 * reason + neighbours) as u64 + visit.samples.iter().map(of).sum::<u64>()
}
