//! What moved a map's memory while it was taken and measured, and the cost of first touching it.
//!
//! The kernel's counters are read before, when all is taken, and at the end. Where pages lie is
//! compared with where they were taken. Then some chunks are given back and touched again: the
//! guest's kernel does the same work as the first time, the host has the memory already.

use std::path::Path;

use super::readers::Readers;
use super::{MIB, Metric, Params, Sampler, ids, point, regions};
use crate::row::{latency_ns, note};
use model::Moves;
use sys::counters::{MovedMemory, MovedMemoryReading};

pub(super) const MOVED: Metric = note(ids::metric::MOVED, "pages of a chunk that changed place", "");
pub(super) const FIRST_TOUCH: Metric = latency_ns(ids::metric::FIRST_TOUCH, "first write to a page").aside();
pub(super) const SECOND_TOUCH: Metric =
    latency_ns(ids::metric::SECOND_TOUCH, "first write to a page just freed").aside();

/// Most chunks that are touched again, and most bytes of them; two are in any case.
const AGAIN: u64 = 16;
const AGAIN_BYTES: u64 = 1024 * MIB;

pub(super) struct Watch {
    counters: MovedMemory,
    begin: MovedMemoryReading,
    taken: MovedMemoryReading,
}

/// Which pages moved, and how long touching them took.
pub(super) struct TouchResult {
    moved: Option<Vec<f64>>,
    first_ns: Vec<f64>,
    /// Chunk, and what touching it again took.
    second_ns: Vec<(u64, f64)>,
}

impl Watch {
    pub fn begin() -> Watch {
        let mut counters = MovedMemory::open(Path::new("/"));
        let begin = counters.read();
        Watch { counters, taken: begin.clone(), begin }
    }

    pub fn taken(&mut self) {
        self.taken = self.counters.read();
    }

    /// After the last probe: where pages lie now, and the cost of touching some chunks again.
    pub fn end(
        mut self,
        readers: &mut Readers,
        bytes: u64,
        sampler: &mut Sampler,
    ) -> anyhow::Result<TouchResult> {
        let end = self.counters.read();
        sampler.facts().moves =
            Some(Moves { taking: self.taken.since(&self.begin), looking: end.since(&self.taken) });
        let moved = readers.moved()?;
        let first_ns = readers.touched_ns().to_vec();
        let mut second_ns = Vec::new();
        // Who is short of memory would get it now.
        if !readers.is_short() {
            for chunk in again(first_ns.len() as u64, bytes) {
                second_ns.extend(readers.touch_again(chunk)?.map(|ns| (chunk, ns)));
            }
        }
        Ok(TouchResult { moved, first_ns, second_ns })
    }
}

/// Chunks to touch again, evenly spread.
fn again(chunks: u64, bytes: u64) -> impl Iterator<Item = u64> {
    let count = (AGAIN_BYTES / bytes.max(1)).clamp(2, AGAIN).min(chunks);
    (0..count).map(move |at| at * chunks / count)
}

impl TouchResult {
    pub fn emit(self, sampler: &mut Sampler, bytes: u64) -> anyhow::Result<()> {
        let pages = bytes as f64 / rustix::param::page_size() as f64;
        let first = self.first_ns.into_iter().enumerate();
        let first = first.map(|(chunk, ns)| (ids::metric::FIRST_TOUCH, chunk as u64, ns));
        let second = self.second_ns.into_iter().map(|(chunk, ns)| (ids::metric::SECOND_TOUCH, chunk, ns));
        for (metric, chunk, ns) in first.chain(second) {
            let at = point(ids::param::CHUNK, chunk);
            sampler.windows_timed(at, metric, (vec![pages], vec![ns]), 0)?;
        }
        regions::list(sampler, Params::new(), ids::metric::MOVED, self.moved.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_chunks_are_touched_again_evenly() {
        assert!(again(8, 64 * MIB).eq(0..8));
        assert!(again(64, 256 * MIB).eq([0, 16, 32, 48]));
        assert!(again(512, 4096 * MIB).eq([0, 256]), "two at least");
        assert!(again(1, MIB).eq([0]));
        assert_eq!(again(512, MIB).count(), AGAIN as usize);
    }
}
