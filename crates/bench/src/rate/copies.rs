//! Copies of a component side by side: made, started together, timed, and each one's answer
//! checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::{ALLOCATIONS, FLIPPED, ITERATIONS, nodes, number, planted, progress};
use crate::memory::huge_share_of;
use crate::places;
use crate::sampler::whole::Piece;
use crate::{Plant, Point, Sampler, WrongAnswer, median, point};
use kernels::rate::{Component, STANDARD_BYTES};
use model::vocabulary::MetricId;
use model::vocabulary::rate as ids;
use model::{Case, CpuSet, PagePlaces, Params, Progress, SUSPECT, Value};
use sys::block::Arena;
use sys::counters::{frames_hidden, free_blocks};
use sys::crew::{Body, Lap, Team, wall_ns};

/// A piece of work in large memory takes minutes; the pass's own limit ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(3600);

// What the leader asks of every copy.
const ITERATE: u64 = 0;
const ANSWER: u64 = 1;
const UNITS: u64 = 2;
const BYTES: u64 = 3;
/// Share of the arrays on huge pages, in millionths; `u64::MAX` if unknown.
const HUGE: u64 = 4;
/// Physical blocks of its pages, some at a time: the round stands in the upper half.
const PLACES: u64 = 5;
/// When a step of its last piece ended, ns since that began: which step stands in the upper half.
const STEP: u64 = 6;
const UPPER: u32 = 32;
/// Pages whose place is looked up: of all copies together, and of each at least.
const LOOKS: usize = 4096;
const LOOKS_OF_A_COPY: usize = 64;

/// Beginning of the remark that the physical pages of a pass are unknown.
pub const HIDDEN: &str = "physical addresses need root";

/// A copy's answer where its own mathematics do not hold.
const BROKEN: u64 = 0;

pub fn run(component: &'static Component, case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let (allocations, iterations) = (number(case, ALLOCATIONS, 1), number(case, ITERATIONS, 1));
    let mib = case.params.get(ids::param::MIB).and_then(Value::int).unwrap_or((STANDARD_BYTES >> 20) as i64);
    let room = (mib.max(1) as u64) << 20;
    let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
    let mut visit = Visit {
        component,
        case,
        seats: &seats,
        room,
        clock: sampler.clock(),
        slow: planted::planted(case)?.map(|plant| (plant, planted::slow_share(sampler.seed()))),
        flipped: case.inputs.get(FLIPPED).and_then(|text| text.parse().ok()),
        begin: std::time::Instant::now(),
        copies: None,
        ballot: Ballot::new(&seats, known(component, room)),
        seen: Observed::default(),
    };
    let at = Point::new(ids::metric::RATE, 1.0).times(ids::metric::RATIO, 1.0 / component.reference);
    let pieces = (allocations * iterations) as usize;
    sampler.whole_pieces(at, &[ids::metric::COPY_SPREAD, ids::metric::SLOWEST_CPU], pieces, |piece| {
        if (piece as u64).is_multiple_of(iterations) {
            visit.allocate()?;
        }
        visit.piece(piece == 0)
    })?;
    visit.seen.emit(sampler)?;
    visit.ballot.verdict().map_err(|what| WrongAnswer(what).into())
}

/// A pass under way.
struct Visit<'a> {
    component: &'static Component,
    case: &'a Case,
    seats: &'a [CpuSet],
    /// Memory of a copy, bytes.
    room: u64,
    clock: sys::clock::Clock,
    slow: Option<(Plant, f64)>,
    /// The copy whose answers are spoilt, in tests.
    flipped: Option<usize>,
    begin: std::time::Instant,
    copies: Option<Copies>,
    ballot: Ballot<'a>,
    seen: Observed,
}

/// Copies in memory that they have allocated.
struct Copies {
    team: Team,
    /// Work of a piece.
    units: f64,
    places_known: bool,
}

/// Figures of a pass other than the rate of all copies.
#[derive(Default)]
struct Observed {
    /// Work and time of the pieces on each node.
    of_nodes: BTreeMap<u32, (Vec<f64>, Vec<f64>)>,
    notes: Vec<(MetricId, Params, f64)>,
    bytes: u64,
    huge_share: Option<f64>,
    places: Vec<PagePlaces>,
    progress: Vec<Progress>,
}

impl Visit<'_> {
    /// Starts copies that allocate their memory.
    fn allocate(&mut self) -> anyhow::Result<()> {
        // The last copies give their memory back before the next ask for theirs.
        drop(self.copies.take());
        for (at, share) in huge_free(self.case) {
            self.seen.notes.push((ids::metric::HUGE_FREE, at, share));
        }
        let mut team = start(self.component, self.case, self.seats, self.room, self.clock, self.slow)?;
        self.seen.note_memory(&mut team)?;
        let units = ask(&mut team, UNITS)?[0] as f64;
        self.copies = Some(Copies { team, units, places_known: false });
        Ok(())
    }

    /// Lets all copies do a piece of work.
    fn piece(&mut self, is_first: bool) -> anyhow::Result<Piece> {
        let Some(Copies { team, units, places_known }) = &mut self.copies else {
            anyhow::bail!("no copy was started")
        };
        let start_s = self.begin.elapsed().as_secs_f64();
        let laps = team.round(ITERATE)?;
        let steps = progress::steps(team, |at| STEP | (at as u64) << UPPER)?;
        self.seen.progress.extend(progress::progress(&steps, *units, start_s));
        let mut answers = ask(team, ANSWER)?;
        if !std::mem::replace(places_known, true)
            && let Some(own) = places(team, self.seats.len(), self.slow)?
        {
            let gib = own.middle_gib().map(|gib| (ids::metric::PHYSICAL, Params::new(), gib));
            self.seen.notes.extend(gib);
            self.seen.places.push(own);
        }
        if is_first {
            // By now every array was touched.
            self.seen.note_memory(team)?;
        }
        if let Some(answer) = self.flipped.and_then(|copy| answers.get_mut(copy)) {
            *answer ^= 1 << 17;
        }
        self.ballot.cast(&answers);
        self.seen.note_nodes(self.case, &laps, *units);
        let (spread, slowest) = spread(&laps);
        let cpu = self.seats[slowest].first().map_or(f64::NAN, f64::from);
        Ok(Piece { work: *units * laps.len() as f64, ns: wall_ns(&laps), notes: vec![spread, cpu] })
    }
}

impl Observed {
    /// What the copies' memory is.
    fn note_memory(&mut self, team: &mut Team) -> anyhow::Result<()> {
        self.bytes = ask(team, BYTES)?.iter().sum();
        let huge = ask(team, HUGE)?.into_iter().filter(|share| *share != u64::MAX).min();
        self.huge_share = huge.map(|share| share as f64 / 1e6);
        Ok(())
    }

    /// Work and time of the copies on each node.
    fn note_nodes(&mut self, case: &Case, laps: &[Lap], units: f64) {
        for node in nodes(case) {
            let there = |index: &usize| case.placement.seats[*index].mem_nodes.contains(node);
            let own: Vec<Lap> = (0..laps.len()).filter(there).map(|index| laps[index]).collect();
            let (work, ns) = self.of_nodes.entry(node).or_default();
            work.push(units * own.len() as f64);
            ns.push(wall_ns(&own));
        }
    }

    fn emit(self, sampler: &mut Sampler) -> anyhow::Result<()> {
        let Observed { of_nodes, mut notes, bytes, huge_share, places, progress } = self;
        for (node, windows) in of_nodes {
            sampler.windows_timed(point(ids::param::NODE, u64::from(node)), ids::metric::RATE, windows, 0)?;
        }
        // A sample for each set of arrays.
        while let Some((metric, at, _)) = notes.first().cloned() {
            let (own, others): (Vec<_>, Vec<_>) =
                notes.into_iter().partition(|(name, point, _)| *name == metric && *point == at);
            let values: Vec<f64> = own.into_iter().map(|(.., value)| value).collect();
            let ns = vec![1.0; values.len()];
            sampler.windows_timed(at, metric, (values, ns), 0)?;
            notes = others;
        }
        let process = sampler.facts();
        (process.memory_bytes, process.huge_share) = (Some(bytes), huge_share);
        let hidden = frames_hidden().filter(|_| places.is_empty());
        process.notes.extend(hidden.map(|why| format!("{HIDDEN}: {why}")));
        (process.places, process.progress) = (places, progress);
        Ok(())
    }
}

/// Where the pages of all copies lie physically; `None` where the kernel hides it.
fn places(team: &mut Team, copies: usize, slow: Option<(Plant, f64)>) -> anyhow::Result<Option<PagePlaces>> {
    match slow {
        Some((plant, share)) => Ok(Some(planted::places(&plant, share))),
        None => places::ask(team, looks(copies), |round| PLACES | (round as u64) << UPPER),
    }
}

fn looks(copies: usize) -> usize {
    (LOOKS / copies.max(1)).max(LOOKS_OF_A_COPY)
}

/// What every copy answers to a question.
fn ask(team: &mut Team, what: u64) -> anyhow::Result<Vec<u64>> {
    Ok(team.round(what)?.iter().map(|lap| lap.answer).collect())
}

/// The stored answer, where there is one for such a room.
fn known(component: &Component, room: u64) -> Option<u64> {
    (room == STANDARD_BYTES || !component.character.fills_memory()).then_some(component.expected_checksum)
}

fn start(
    component: &'static Component,
    case: &Case,
    seats: &[CpuSet],
    bytes: u64,
    clock: sys::clock::Clock,
    slow: Option<(Plant, f64)>,
) -> anyhow::Result<Team> {
    let pages = case.placement.pages;
    let looks = looks(seats.len());
    let longer = slow.map_or(0.0, |(plant, share)| planted::extra(&plant, share));
    Team::start_patient(seats, clock, PATIENCE, |index| -> anyhow::Result<Body> {
        let mut room = Arena::on(bytes, pages, case.placement.seats[index].mem_nodes.clone());
        let mut work = (component.make)(&mut room)?;
        let mut blocks: Vec<u32> = Vec::new();
        Ok(Box::new(move |asked| match asked & u64::from(u32::MAX) {
            ITERATE => {
                let begin_ns = clock.now();
                room.steps.begin();
                work.iterate();
                let end_ns = clock.now() + longer * (clock.now() - begin_ns);
                while longer > 0.0 && clock.now() < end_ns {
                    std::hint::spin_loop();
                }
                0
            }
            ANSWER => work.verify().unwrap_or(BROKEN),
            UNITS => work.units(),
            BYTES => work.bytes(),
            PLACES => {
                let round = (asked >> UPPER) as usize;
                if round == 0 {
                    blocks = places::blocks(&room.taken, looks);
                }
                places::word(&blocks, round)
            }
            STEP => room.steps.ended_ns((asked >> UPPER) as usize).map_or(u64::MAX, |ns| ns as u64),
            _ => huge_share_of(&room.taken).map_or(u64::MAX, |share| (share * 1e6) as u64),
        }))
    })
}

/// By how many percent the slowest copy took longer than the median one, and which it is.
fn spread(laps: &[Lap]) -> (f64, usize) {
    let took: Vec<f64> = laps.iter().map(|lap| lap.end_ns - lap.start_ns).collect();
    let slowest = (0..took.len()).max_by(|one, other| took[*one].total_cmp(&took[*other])).unwrap_or(0);
    let middle = median(took.clone());
    (100.0 * (took.get(slowest).copied().unwrap_or(middle) / middle - 1.0), slowest)
}

/// Share of the free memory that lies in blocks of 2 MiB or more, percent: of the whole, and of
/// each node of the copies where these are several.
fn huge_free(case: &Case) -> Vec<(Params, f64)> {
    let wanted = nodes(case);
    let free = free_blocks(Path::new("/"));
    let share = |of: &dyn Fn(u32) -> bool| {
        let own = free.iter().filter(|(node, _)| of(**node));
        let (huge, all) =
            own.fold((0.0, 0.0), |(huge, all), (_, free)| (huge + free.huge_bytes, all + free.bytes));
        (all > 0.0).then(|| 100.0 * huge / all)
    };
    let whole = share(&|_| true).map(|share| (Params::new(), share));
    let each = wanted
        .iter()
        .filter_map(|node| Some((point(ids::param::NODE, u64::from(*node)), share(&|id| id == *node)?)));
    whole.into_iter().chain(each).collect()
}

/// What copies answered, and who is in the minority.
struct Ballot<'a> {
    seats: &'a [CpuSet],
    known: Option<u64>,
    /// Answers of each copy, in the order in which it gave them.
    cast: Vec<Vec<u64>>,
}

impl Ballot<'_> {
    fn new(seats: &[CpuSet], known: Option<u64>) -> Ballot<'_> {
        Ballot { seats, known, cast: vec![Vec::new(); seats.len()] }
    }

    fn cast(&mut self, answers: &[u64]) {
        self.cast.iter_mut().zip(answers).for_each(|(own, answer)| own.push(*answer));
    }

    /// What is right: the stored answer, else what more than half of all answers are.
    fn right(&self) -> Option<u64> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        self.cast.iter().flatten().filter(|answer| **answer != BROKEN).for_each(|answer| {
            *counts.entry(*answer).or_default() += 1;
        });
        let all: usize = self.cast.iter().map(Vec::len).sum();
        let majority = counts.into_iter().find(|(_, count)| 2 * count > all).map(|(answer, _)| answer);
        self.known.or(majority)
    }

    /// Which copies computed something else, with their CPUs.
    fn verdict(&self) -> Result<(), String> {
        let right = self.right();
        let wrong = |answers: &[u64]| answers.iter().filter(|answer| Some(**answer) != right).count();
        let faulty: Vec<(usize, usize)> = self
            .cast
            .iter()
            .enumerate()
            .map(|(copy, answers)| (copy, wrong(answers)))
            .filter(|(_, wrong)| *wrong > 0)
            .collect();
        if faulty.is_empty() {
            return Ok(());
        }
        let copies = self.cast.len();
        let names: Vec<String> = faulty
            .iter()
            .take(8)
            .map(|(copy, wrong)| {
                let all = self.cast[*copy].len();
                format!("copy {copy} on CPU {}: {wrong} of {all} answers", self.seats[*copy])
            })
            .collect();
        let first = self.cast[faulty[0].0].iter().find(|answer| Some(**answer) != right).copied();
        let what = match (first, right) {
            (Some(BROKEN), _) => "its result contradicts the problem's mathematics".to_string(),
            (Some(other), Some(right)) if self.known.is_some() => {
                format!("checksum {other:016x} instead of {right:016x} on every CPU")
            }
            (Some(other), Some(right)) => {
                format!("checksum {other:016x} instead of the others' {right:016x}")
            }
            _ => "at most half of the answers agree".to_string(),
        };
        // If all are wrong, or the wrong ones are unknown, no core stands out.
        let suspects = match (right, faulty.as_slice()) {
            (Some(_), some) if some.len() < copies => {
                let cpus: CpuSet = some.iter().flat_map(|(copy, _)| self.seats[*copy].iter()).collect();
                format!("; {SUSPECT}{cpus}")
            }
            _ => String::new(),
        };
        Err(format!("{}: {what}{suspects}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats() -> Vec<CpuSet> {
        (4..8).map(CpuSet::one).collect()
    }

    fn verdict(known: Option<u64>, rounds: &[[u64; 4]]) -> Result<(), String> {
        let seats = seats();
        let mut ballot = Ballot::new(&seats, known);
        rounds.iter().for_each(|answers| ballot.cast(answers));
        ballot.verdict()
    }

    #[test]
    fn the_minority_is_suspected() {
        assert_eq!(verdict(None, &[[7; 4], [7; 4]]), Ok(()));
        let one = verdict(None, &[[7; 4], [7, 7, 9, 7]]).expect_err("copy 2");
        assert!(
            one.contains("copy 2 on CPU 6: 1 of 2 answers") && one.ends_with(&format!("{SUSPECT}6")),
            "{one}"
        );
        let torn = verdict(None, &[[7, 7, 9, 9]]).expect_err("nobody knows");
        assert!(!torn.contains(SUSPECT), "{torn}");
        let broken = verdict(None, &[[7, BROKEN, 7, 7]]).expect_err("copy 1");
        assert!(broken.contains("mathematics") && broken.ends_with(&format!("{SUSPECT}5")), "{broken}");
    }

    #[test]
    fn a_stored_answer_beats_any_majority() {
        assert_eq!(verdict(Some(7), &[[7; 4]]), Ok(()));
        let most = verdict(Some(7), &[[9, 9, 9, 7]]).expect_err("three are wrong");
        assert!(most.ends_with(&format!("{SUSPECT}4-6")), "{most}");
        let all = verdict(Some(7), &[[9; 4]]).expect_err("all are wrong");
        assert!(!all.contains(SUSPECT), "{all}");
    }

    #[test]
    fn the_slowest_copy_and_the_wall() {
        let lap = |start_ns: f64, end_ns: f64| Lap { start_ns, end_ns, answer: 0 };
        let laps = [lap(0.0, 10.0), lap(1.0, 11.0), lap(1.0, 16.0)];
        assert_eq!(wall_ns(&laps), 16.0);
        let (percent, slowest) = spread(&laps);
        assert_eq!((percent.round(), slowest), (50.0, 2));
    }
}
