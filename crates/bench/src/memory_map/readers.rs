//! Tasks that take chunks of memory together and read them together.
//!
//! A chunk is made of a part a task, which that task maps, writes and reads itself: first touch
//! goes on all cores at once, and since everybody takes the same chunk at the same time, it lies
//! together.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::bail;

use super::probes::{Probe, Prober};

use super::ChunkPages;
use crate::memory::{huge_share, remote_share, resident, write, written};
use crate::{Sampler, check_answer, places};
use kernels::{Op, Stream, streams};
use model::{Case, CpuSet, PagePlaces, Pages};
use snapshot::group_folders;
use sys::counters::{AvailableMemory, frames};
use sys::crew::{Body, Team, wall_ns};
use sys::mapping::Mapping;

/// One task and its parts of all chunks.
struct Reader {
    part: u64,
    pages: Pages,
    /// The pages of a chunk, where others are usual.
    chosen: Rc<dyn Fn(u64, Pages) -> ChunkPages>,
    nodes: CpuSet,
    parts: Vec<Rc<Mapping>>,
    /// The prober on the first seat, and its last result.
    prober: Option<Prober>,
    seen: Rc<RefCell<Option<Probe>>>,
    stream: Stream,
    /// The chunk that was last read beyond what is counted.
    beyond: usize,
    /// Physical blocks of the part that was asked about last.
    blocks: Vec<u32>,
    /// Where some pages of each part lay when it was taken; none where that is hidden.
    lay: Vec<Vec<Option<u64>>>,
}

/// What stands in the words of a chunk: all different, in different chunks too, so that no two
/// pages are alike.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const SALT: u64 = 0xd6e8_feb8_6659_fd93;

pub(crate) fn word(chunk: usize, index: usize) -> u64 {
    (index as u64 + 1).wrapping_mul(STEP).wrapping_add((chunk as u64).wrapping_mul(SALT))
}

/// Sum of the first `bytes` of a part.
pub(super) fn sum(chunk: usize, bytes: u64) -> u64 {
    let words = u128::from(bytes / 8);
    let steps = ((words * (words + 1) / 2) as u64).wrapping_mul(STEP);
    steps.wrapping_add((words as u64).wrapping_mul((chunk as u64).wrapping_mul(SALT)))
}

/// What members are asked for: in the highest byte of a round's argument; below it a number of 24
/// bits, and the chunk.
const TAKE: u64 = 1;
const READ: u64 = 2;
const FRAME: u64 = 3;
const HUGE: u64 = 4;
const REMOTE: u64 = 5;
const RESIDENT: u64 = 6;
const BLOCKS: u64 = 7;
const LOOK: u64 = 8;
const MOVED: u64 = 9;
const GIVE_BACK: u64 = 10;
const WRITE: u64 = 11;

/// The share read beyond a chunk is given in these parts of one.
const FINE: f64 = 4096.0;
/// Shares are answered in millionths; this value means unknown.
const MILLION: f64 = 1e6;
const UNKNOWN: u64 = u64::MAX;
/// Physical addresses are sent in units of this many bytes: 32 bits reach to 256 TiB.
const PLACE: u64 = 64 << 10;
/// Pages of each task's part of a chunk whose physical place is looked up.
const LOOKS: usize = 16;
/// Chunks checked for huge pages and for their node.
const LOOKED_AT: usize = 16;

fn order(what: u64, number: u64, chunk: u64) -> u64 {
    what << 56 | number << 32 | chunk
}

fn understood(order: u64) -> (u64, u64, usize) {
    (order >> 56, order >> 32 & 0xff_ffff, (order & 0xffff_ffff) as usize)
}

impl Reader {
    fn does(&mut self, ordered: u64) -> u64 {
        match understood(ordered) {
            (TAKE, _, chunk) => u64::from(self.take(chunk)),
            (READ, beyond, chunk) => u64::from(self.read(chunk, beyond as f64 / FINE)),
            (FRAME, looks, chunk) => self.frame(chunk, looks),
            (BLOCKS, round, chunk) => self.blocks(chunk, round as usize),
            (LOOK, _, chunk) => u64::from(self.look(chunk)),
            (MOVED, _, chunk) => self.moved(chunk).map_or(UNKNOWN, |share| (share * MILLION) as u64),
            (GIVE_BACK, _, chunk) => u64::from(self.part(chunk).is_some_and(|part| part.give_back().is_ok())),
            (WRITE, _, chunk) => {
                let written = self.part(chunk).map(|part| write(part, |index| word(chunk, index)));
                u64::from(written.is_some())
            }
            (HUGE, ..) => self.share(huge_share),
            (REMOTE, ..) => self.share(|memory| remote_share(memory, &self.nodes)),
            (RESIDENT, ..) => {
                let shares = self.parts.iter().map(|part| part.resident_share().unwrap_or(1.0));
                (shares.fold(1.0, f64::min) * MILLION) as u64
            }
            _ => 0,
        }
    }

    fn take(&mut self, chunk: usize) -> bool {
        let fill = |index| word(chunk, index);
        let taken = match (self.chosen)(chunk as u64, self.pages) {
            ChunkPages::Of(pages) => resident(self.part, pages, &self.nodes, fill),
            ChunkPages::Pool => Mapping::of_pool(self.part as usize)
                .map_err(anyhow::Error::from)
                .and_then(|memory| written(memory, fill)),
        };
        taken.is_ok_and(|part| {
            self.lay.push(frames(&part, LOOKS).unwrap_or_default());
            self.parts.push(Rc::new(part));
            self.parts.len() == chunk + 1
        })
    }

    fn part(&mut self, chunk: usize) -> Option<&mut Mapping> {
        self.parts.get_mut(chunk).and_then(Rc::get_mut)
    }

    /// The share of a part's pages that no longer lie where they were taken.
    fn moved(&self, chunk: usize) -> Option<f64> {
        let now = frames(self.parts.get(chunk)?, LOOKS).ok()?;
        let lay = self.lay.get(chunk).filter(|lay| !lay.is_empty())?;
        let moved = lay.iter().zip(&now).filter(|(then, now)| then != now).count();
        Some(moved as f64 / lay.len() as f64)
    }

    /// Only the first seat probes, the others wait.
    fn look(&mut self, chunk: usize) -> bool {
        let Some(prober) = &mut self.prober else { return true };
        let seen = self.parts.get_mut(chunk).and_then(|part| prober.look(chunk, part));
        let is_right = seen.is_some();
        *self.seen.borrow_mut() = seen;
        is_right
    }

    /// Reads the part of a chunk, and `beyond` times as much again of others: of all of them one
    /// after the other, since a few that are read more often would stay in a cache.
    fn read(&mut self, chunk: usize, beyond: f64) -> bool {
        let mut right = self.pass(chunk, self.part);
        let mut left = (beyond * self.part as f64) as u64 / 512 * 512;
        while left > 0 && self.parts.len() > 1 {
            self.beyond = (self.beyond + 1) % self.parts.len();
            if self.beyond != chunk {
                let bytes = left.min(self.part);
                right &= self.pass(self.beyond, bytes);
                left -= bytes;
            }
        }
        right
    }

    fn pass(&mut self, chunk: usize, bytes: u64) -> bool {
        let Some(part) = self.parts.get_mut(chunk).and_then(Rc::get_mut) else { return false };
        self.stream.run(&mut part.words_mut()[..bytes as usize / 8], 1, 0) == sum(chunk, bytes)
    }

    /// Where a part lies physically, by `looks` of its pages: the lowest and the highest place in
    /// units of 64 KiB, in the upper and the lower half of a word; [`UNKNOWN`] where that is
    /// hidden.
    fn frame(&self, chunk: usize, looks: u64) -> u64 {
        let found = self.parts.get(chunk).and_then(|part| frames(part, looks as usize).ok());
        let page = rustix::param::page_size() as u64;
        let places = || found.iter().flatten().flatten().map(|frame| frame * page / PLACE);
        match (places().min(), places().max()) {
            (Some(low), Some(high)) => low << 32 | high & 0xffff_ffff,
            _ => UNKNOWN,
        }
    }

    /// Physical blocks of a part, some at a time.
    fn blocks(&mut self, chunk: usize, round: usize) -> u64 {
        if round == 0 {
            let range = self.parts.get(chunk).map(|part| (part.as_ptr().addr(), part.len()));
            self.blocks = places::blocks(range.as_slice(), LOOKS);
        }
        places::word(&self.blocks, round)
    }

    /// The mean of a share over chunks that are evenly spread.
    fn share(&self, of: impl Fn(&Mapping) -> Option<f64>) -> u64 {
        let step = self.parts.len().div_ceil(LOOKED_AT).max(1);
        let shares: Option<Vec<f64>> = self.parts.iter().step_by(step).map(|part| of(part)).collect();
        match shares.filter(|shares| !shares.is_empty()) {
            Some(shares) => (shares.iter().sum::<f64>() / shares.len() as f64 * MILLION) as u64,
            None => UNKNOWN,
        }
    }
}

/// All readers of a node.
pub struct Readers {
    team: Team,
    seats: Vec<CpuSet>,
    chunk: u64,
    taken: u64,
    room: AvailableMemory,
    /// Bytes that must stay free.
    reserve: u64,
    remarks: Vec<String>,
    variant: &'static str,
    seen: Rc<RefCell<Option<Probe>>>,
    /// What the first touch of each chunk took, ns.
    touched_ns: Vec<f64>,
}

impl Readers {
    /// Seats everybody.
    pub fn start(
        case: &Case,
        chunk: u64,
        reserve: u64,
        pages: impl Fn(u64, Pages) -> ChunkPages + 'static,
        sampler: &Sampler,
    ) -> anyhow::Result<Readers> {
        let placement = &case.placement;
        let seats: Vec<CpuSet> = placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
        let part = chunk / seats.len().max(1) as u64;
        // The widest is the first; there is always the portable one.
        let stream = streams(Op::Read)[0];
        let seen = Rc::new(RefCell::new(None));
        let pages: Rc<dyn Fn(u64, Pages) -> ChunkPages> = Rc::new(pages);
        let (clock, seed) = (sampler.clock(), sampler.seed());
        let filler = super::number(case, super::FILLER).unwrap_or(0);
        let build = |index: usize| -> anyhow::Result<Body> {
            let nodes = placement.seats[index].mem_nodes.clone();
            let prober =
                if index == 0 { Prober::of(part, filler, &nodes, stream, clock, seed)? } else { None };
            let mut reader = Reader {
                part,
                pages: placement.pages,
                chosen: Rc::clone(&pages),
                nodes,
                parts: Vec::new(),
                prober,
                seen: Rc::clone(&seen),
                stream,
                beyond: 0,
                blocks: Vec::new(),
                lay: Vec::new(),
            };
            Ok(Box::new(move |order| reader.does(order)))
        };
        let node = placement.seats.first().and_then(|seat| seat.mem_nodes.first());
        let [_, folders] = group_folders(Path::new("/"));
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        Ok(Readers {
            team: Team::start(&seats, clock, build)?,
            seats,
            chunk,
            taken: 0,
            room: AvailableMemory::open(Path::new("/"), node, &folders),
            reserve,
            remarks: Vec::new(),
            variant: stream.name,
            seen,
            touched_ns: Vec::new(),
        })
    }

    pub fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    /// Takes up to this many chunks while enough memory is left; returns how many.
    pub fn take(&mut self, chunks: u64) -> anyhow::Result<u64> {
        while self.taken < chunks {
            if self.room.bytes().is_some_and(|left| left < self.reserve.saturating_add(self.chunk)) {
                self.remark(format!("memory ran short: only {} of {chunks} chunks were taken", self.taken));
                break;
            }
            let laps = self.team.round(order(TAKE, 0, self.taken))?;
            if laps.iter().any(|lap| lap.answer != 1) {
                bail!("chunk {} could not be taken or did not stay in memory", self.taken);
            }
            self.touched_ns.push(wall_ns(&laps));
            self.taken += 1;
        }
        Ok(self.taken)
    }

    /// Whether others have taken half of what was to stay free.
    pub fn is_short(&mut self) -> bool {
        self.room.bytes().is_some_and(|left| left < self.reserve / 2)
    }

    /// Everybody reads a chunk once, and `beyond` times as much again that is not counted: from the
    /// first start to the last end, ns.
    pub fn read(&mut self, chunk: u64, beyond: f64) -> anyhow::Result<f64> {
        let laps = self.team.round(order(READ, (beyond * FINE).round() as u64, chunk))?;
        for (lap, cpus) in laps.iter().zip(&self.seats) {
            check_answer(lap.answer == 1, || format!("CPU {cpus} read chunk {chunk} with a wrong sum"))?;
        }
        Ok(wall_ns(&laps))
    }

    pub fn touched_ns(&self) -> &[f64] {
        &self.touched_ns
    }

    /// Share of the pages of each chunk, of those whose places were noted, that no longer lie where
    /// they were taken; `None` where places are hidden.
    pub fn moved(&mut self) -> anyhow::Result<Option<Vec<f64>>> {
        let mut shares = Vec::new();
        for chunk in 0..self.taken {
            let laps = self.team.round(order(MOVED, 0, chunk))?;
            let known: Vec<u64> = laps.iter().map(|lap| lap.answer).filter(|own| *own != UNKNOWN).collect();
            if known.is_empty() {
                return Ok(None);
            }
            shares.push(known.iter().sum::<u64>() as f64 / MILLION / known.len() as f64);
        }
        Ok(Some(shares))
    }

    /// Gives a chunk's memory back to the kernel and touches it again: what that touch took, ns;
    /// `None` where it cannot be given back (pages of a pool before Linux 5.18).
    pub fn touch_again(&mut self, chunk: u64) -> anyhow::Result<Option<f64>> {
        let given = self.team.round(order(GIVE_BACK, 0, chunk))?;
        let laps = self.team.round(order(WRITE, 0, chunk))?;
        let is_done = given.iter().chain(&laps).all(|lap| lap.answer == 1);
        Ok(is_done.then(|| wall_ns(&laps)))
    }

    /// What the first seat sees of a chunk alone; `None` where parts of chunks are too small.
    pub fn look(&mut self, chunk: u64) -> anyhow::Result<Option<Probe>> {
        let laps = self.team.round(order(LOOK, 0, chunk))?;
        check_answer(laps.iter().all(|lap| lap.answer == 1), || {
            format!("a probe of chunk {chunk} gave a wrong sum")
        })?;
        Ok(self.seen.borrow_mut().take())
    }

    /// Middle and spread of the physical addresses of each chunk, GiB, by some pages of each task's
    /// part: the median of the middles of the parts, and from the lowest page to the highest;
    /// `None`, with a remark, where they are hidden.
    pub fn physical(&mut self) -> anyhow::Result<Option<Vec<[f64; 2]>>> {
        let gib = |place: u64| place as f64 * PLACE as f64 / f64::from(1 << 30);
        let mut places = Vec::new();
        for chunk in 0..self.taken {
            let laps = self.team.round(order(FRAME, LOOKS as u64, chunk))?;
            let known = laps.iter().map(|lap| lap.answer).filter(|answer| *answer != UNKNOWN);
            let ends: Vec<[f64; 2]> = known.map(|ends| [gib(ends >> 32), gib(ends & 0xffff_ffff)]).collect();
            if ends.is_empty() {
                self.remark("physical addresses need root".to_string());
                return Ok(None);
            }
            let low = ends.iter().map(|[low, _]| *low).fold(f64::INFINITY, f64::min);
            let high = ends.iter().map(|[_, high]| *high).fold(f64::NEG_INFINITY, f64::max);
            let middles = ends.iter().map(|[low, high]| (low + high) / 2.0).collect();
            places.push([crate::median(middles), high - low]);
        }
        Ok(Some(places))
    }

    /// The physical blocks of each chunk's pages; empty where they are hidden.
    pub fn places(&mut self) -> anyhow::Result<Vec<PagePlaces>> {
        let mut all = Vec::new();
        for chunk in 0..self.taken {
            let Some(own) = places::ask(&mut self.team, LOOKS, |round| order(BLOCKS, round as u64, chunk))?
            else {
                return Ok(Vec::new());
            };
            all.push(own);
        }
        Ok(all)
    }

    /// Notes what the memory was, and that it still is: pages that went to swap make all that was
    /// read worthless.
    pub fn end(mut self, sampler: &mut Sampler) -> anyhow::Result<()> {
        let mut shares = |what: u64| -> anyhow::Result<Vec<f64>> {
            let laps = self.team.round(order(what, 0, 0))?;
            let known = laps.iter().map(|lap| lap.answer).filter(|share| *share != UNKNOWN);
            Ok(known.map(|share| share as f64 / MILLION).collect())
        };
        let (huge, remote, there) = (shares(HUGE)?, shares(REMOTE)?, shares(RESIDENT)?);
        let mean =
            |shares: &[f64]| (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        let facts = sampler.facts();
        facts.memory_bytes = Some(self.taken * self.chunk);
        facts.huge_share = mean(&huge);
        facts.remote_share = remote.iter().copied().reduce(f64::max);
        facts.resident_share = there.iter().copied().reduce(f64::min);
        facts.variant = Some(self.variant.to_string());
        facts.notes.append(&mut self.remarks);
        let there = facts.resident_share.unwrap_or(1.0);
        if there < 1.0 {
            bail!(
                "only {:.1} % of the memory was resident at the end: the rest was swapped out",
                there * 100.0
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> Reader {
        let (part, nodes) = (128 << 10, CpuSet::default());
        Reader {
            part,
            pages: Pages::AsGiven,
            chosen: Rc::new(|_, usual| ChunkPages::Of(usual)),
            nodes,
            parts: Vec::new(),
            prober: None,
            seen: Rc::default(),
            stream: streams(Op::Read)[0],
            beyond: 0,
            blocks: Vec::new(),
            lay: Vec::new(),
        }
    }

    #[test]
    fn memory_is_given_back_and_touched_again() {
        let mut reader = reader();
        assert_eq!([0, 1].map(|chunk| reader.does(order(TAKE, 0, chunk))), [1; 2]);
        let moved = |reader: &mut Reader| reader.does(order(MOVED, 0, 1));
        let hidden = moved(&mut reader) == UNKNOWN;
        assert!(hidden || moved(&mut reader) == 0, "nobody moved it");
        assert_eq!(reader.does(order(GIVE_BACK, 0, 1)), 1);
        assert_eq!(reader.does(order(READ, 0, 1)), 0, "it is gone");
        assert!(hidden || moved(&mut reader) > 500_000, "most pages lie nowhere now, or in the one of zeros");
        assert_eq!([WRITE, READ].map(|what| reader.does(order(what, 0, 1))), [1; 2]);
        assert_eq!([GIVE_BACK, WRITE].map(|what| reader.does(order(what, 0, 2))), [0; 2], "no such chunk");
    }

    #[test]
    fn chunks_are_read_whole_and_damage_is_found() {
        let mut reader = reader();
        assert_eq!([0, 1, 2].map(|chunk| reader.does(order(TAKE, 0, chunk))), [1; 3]);
        assert_eq!([0, 1, 2].map(|chunk| reader.does(order(READ, 0, chunk))), [1; 3]);
        // A third of another chunk, more than one, and more than all others together.
        let beyond = [1365, 6000, 20000].map(|beyond| (reader.does(order(READ, beyond, 2)), reader.beyond));
        assert_eq!(beyond, [(1, 1), (1, 1), (1, 0)], "the others in turn, without the chunk itself");
        Rc::get_mut(&mut reader.parts[1]).expect("alone").words_mut()[77] ^= 1 << 40;
        assert_eq!([0, 1, 2].map(|chunk| reader.does(order(READ, 0, chunk))), [1, 0, 1]);
        assert_eq!(reader.does(order(READ, 8192, 0)), 0, "what is read beyond is checked as well");
        assert_eq!(reader.does(order(READ, 0, 3)), 0, "no such chunk");
        assert_eq!(reader.does(order(RESIDENT, 0, 0)), 1_000_000);
        // Root sees the address of a part; one that was not taken has none.
        let place = reader.does(order(FRAME, 16, 0));
        assert!(place == UNKNOWN || place >> 32 <= place & 0xffff_ffff, "{place:x}");
        assert_eq!(reader.does(order(FRAME, 16, 3)), UNKNOWN);
    }

    #[test]
    fn no_two_chunks_hold_the_same() {
        assert_ne!(word(0, 512), word(1, 512));
        let all = (0..1024).fold(0u64, |all, index| all.wrapping_add(word(3, index)));
        assert_eq!(sum(3, 8192), all);
        assert_eq!(understood(order(FRAME, 16, 511)), (FRAME, 16, 511));
    }
}
