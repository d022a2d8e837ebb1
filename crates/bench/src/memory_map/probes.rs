//! What a region of memory costs one CPU: loads that hop from page to page against loads that stay,
//! and pages read in an order that hops against one that does not.
//!
//! All lines are flushed before, so that every load comes from memory. Loads that hop read each
//! page once: a translation that a TLB keeps is of no use to them. Loads over scattered pages come
//! back to pages that lie as far apart, few enough for the second level of a TLB: rows of the DRAM
//! are met as seldom, only translations are there. Loads that are near stay on as many pages as the
//! first level holds. Hopping less scattered is translation and nothing else; hopping less near is
//! its price, with what rows save at most.

use std::rc::Rc;

use anyhow::Context;

use super::readers::{sum, word};
use kernels::{LINE_BYTES, Ring, Stream};
use model::{CpuSet, Pages};
use sys::clock::Clock;
use sys::mapping::Mapping;

/// A TLB's second level and what surrounds it would cover a part of fewer pages.
const MIN_PAGES: usize = 1024;
/// Loads of each walk.
const LOADS: usize = 4096;
/// Pages that come back: every second level of a TLB since 2011 holds these.
const SCATTERED: usize = 512;
/// And every first level these.
const NEAR: usize = 48;
/// Lines of a page that walks use: 256 bytes apart, as prefetchers fetch pairs of lines.
const SPOTS: usize = 16;
const SPOT_LINES: usize = 4;
/// Pages that a stream reads, and pages of a group in the order that does not hop.
const STREAMED: usize = 1024;
const GROUP: usize = 64;
/// What is read to push out translations and page tables; where memory is short as many pages as
/// are more than any TLB holds (Zen 5: 4096).
const FILLER_BYTES: u64 = 64 << 20;
const FILLER_PAGES: u64 = 6144;
/// A load that took longer than this times the median was interrupted, and counts as that.
const INTERRUPTED: f64 = 4.0;
const HUGE_PAGE: usize = 2 << 20;
/// Loads of one walk before the next one goes on.
const TURN: usize = 128;

/// Lines left in the last level, the bytes that hold them, and the bytes whose reading pushes them
/// out of a second level.
const KEPT_LINES: usize = 1024;
const KEPT_BYTES: usize = 1 << 20;
const PUSHING_BYTES: usize = 4 << 20;
/// How long others may use the cache meanwhile: 10 GB/s of them fill 2.5 MB.
const PAUSE_NS: f64 = 0.25e6;
/// Lines of each page of a working set that are looked up, the first of them uncounted.
const VISITS: usize = 8;
/// A load came from a cache if it took less than this share of one from memory.
const FROM_CACHE: f64 = 0.5;

/// Lines in their order, and whether a load of each counts.
type Walk = Vec<(u32, bool)>;

/// What one probe of a region gives.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// When it began, ns of the clock.
    pub at_ns: f64,
    /// Loads and what they took together, ns: hopping, over scattered pages, near.
    pub loads: [f64; 3],
    pub loads_ns: [f64; 3],
    /// What reading these bytes took, ns: pages one after the other, in groups, hopping.
    pub streams_ns: [f64; 3],
    pub stream_bytes: f64,
    /// Share of lines that were still in a cache after others had [`PAUSE_NS`] for it, 0..1.
    pub kept: f64,
    /// Sum and number of hopping loads of each huge page of the part, and of near ones.
    pub huge: Vec<[f64; 2]>,
    pub huge_near: Vec<[f64; 2]>,
}

/// The results of one probe of memory while Assay does nothing else.
#[derive(Clone, Copy, Debug)]
pub struct IdleProbe {
    /// When it began, ns of the clock.
    pub at_ns: f64,
    /// Latency of a load on few pages, ns.
    pub near_ns: f64,
    /// What reading these bytes took, ns.
    pub stream_ns: f64,
    pub stream_bytes: f64,
    /// Share of a working set's lines that are in a cache [`PAUSE_NS`] after it was read, 0..1.
    pub kept: f64,
}

fn mean_ns(timed: Vec<(u32, f64)>) -> f64 {
    timed.iter().map(|(_, ns)| ns).sum::<f64>() / timed.len() as f64
}

/// Sum and number of the loads, ns, of each of the first huge pages.
fn by_huge_page(timed: &[(u32, f64)], pages: usize) -> Vec<[f64; 2]> {
    let mut all = vec![[0.0; 2]; pages];
    for (line, ns) in timed {
        if let Some([sum, count]) = all.get_mut(*line as usize * LINE_BYTES / HUGE_PAGE) {
            (*sum, *count) = (*sum + ns, *count + 1.0);
        }
    }
    all
}

/// Further bytes that probes need if `total` may be taken in all; `None` if that is too little for
/// probes.
pub fn filler_bytes(total: u64) -> Option<u64> {
    let least = FILLER_PAGES * rustix::param::page_size() as u64;
    let most = FILLER_BYTES.max(least);
    [most, least]
        .into_iter()
        .find(|filler| total / 8 >= *filler || *filler == least && total / 4 * 3 >= least)
}

/// Whether a region's part of `part` bytes is large enough for a probe.
pub fn can_look(part: u64) -> bool {
    let page = rustix::param::page_size();
    part / page as u64 >= MIN_PAGES as u64 && page / LINE_BYTES >= SPOTS * SPOT_LINES
}

pub struct Prober {
    clock: Clock,
    /// What two readings of the clock one after the other take, ns.
    reading_ns: f64,
    page: usize,
    /// What is read to push out translations and lines; `None` where nothing needs it.
    filler: Option<Mapping>,
    stream: Stream,
    rng: fastrand::Rng,
}

impl Prober {
    /// A prober of regions; `None` if their parts are too small.
    pub fn of(
        part: u64,
        filler: u64,
        nodes: &CpuSet,
        stream: Stream,
        clock: Clock,
        seed: u64,
    ) -> anyhow::Result<Option<Prober>> {
        let Some(mut prober) = Prober::at_rest(part, stream, clock, seed) else { return Ok(None) };
        let mut filler =
            Mapping::private(filler as usize, Pages::Base, nodes).context("cannot map memory")?;
        filler.write_each(prober.page, filler.len() / prober.page, 1);
        prober.filler = Some(filler);
        Ok(Some(prober))
    }

    /// A prober for an idle host that disturbs little.
    pub fn at_rest(part: u64, stream: Stream, clock: Clock, seed: u64) -> Option<Prober> {
        let readings = (0..LOADS).map(|_| {
            let begin = clock.now();
            clock.now() - begin
        });
        let reading_ns = crate::median(readings.collect());
        let (page, rng) = (rustix::param::page_size(), fastrand::Rng::with_seed(seed));
        can_look(part).then_some(Prober { clock, reading_ns, page, filler: None, stream, rng })
    }

    /// Probes a part of a chunk once, and leaves its words unchanged. `None`: it read wrong words.
    pub fn look(&mut self, chunk: usize, part: &mut Rc<Mapping>) -> Option<Probe> {
        let pages = part.len() / self.page;
        let mut probe = Probe { at_ns: self.clock.now(), ..Probe::default() };
        let apart = self.shuffled(pages);
        let (scattered, near) = apart.split_at(SCATTERED);
        let walks = [
            self.hopping(pages),
            self.coming_back(scattered, SCATTERED, LOADS / SCATTERED),
            self.coming_back(near, NEAR, SPOTS),
        ];
        let timed = self.walk(chunk, part, &walks)?;
        [probe.huge, probe.huge_near] =
            [&timed[0], &timed[2]].map(|timed| by_huge_page(timed, part.len() / HUGE_PAGE));
        probe.loads = timed.each_ref().map(|own| own.len() as f64);
        probe.loads_ns = timed.map(|own| own.iter().map(|(_, ns)| ns).sum());
        let orders = self.orders(pages);
        probe.stream_bytes = (orders[0].len() * self.page) as f64;
        probe.streams_ns = self.read(chunk, part, &orders)?;
        probe.kept = self.kept(chunk, part, probe.loads_ns[2] / probe.loads[2])?;
        Some(probe)
    }

    fn shuffled(&mut self, pages: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..pages as u32).collect();
        self.rng.shuffle(&mut all);
        all
    }

    /// A line of a page. Walks at the same time use pairs of lines of their own.
    fn line(&self, page: u32, spot: usize, pair: usize) -> u32 {
        page * (self.page / LINE_BYTES) as u32 + (spot % SPOTS * SPOT_LINES + 2 * pair) as u32
    }

    /// Lines, and whether a load of each counts.
    fn hopping(&mut self, pages: usize) -> Walk {
        let mut all = self.shuffled(pages);
        all.truncate(LOADS);
        all.iter().map(|page| (self.line(*page, *page as usize * 7, 0), true)).collect()
    }

    /// Sets of pages, each read `visits` times; the first time does not count.
    fn coming_back(&mut self, pages: &[u32], set: usize, visits: usize) -> Walk {
        let mut walk = Vec::with_capacity(LOADS);
        for own in pages.chunks_exact(set).take(LOADS / (set * visits)) {
            // An odd step meets another line of the page each time.
            let line = |page: &u32, visit: usize| self.line(*page, *page as usize * 7 + visit * 5, 1);
            walk.extend(own.iter().map(|page| (line(page, 0), false)));
            let mut rest: Walk =
                (1..visits).flat_map(|visit| own.iter().map(move |page| (line(page, visit), true))).collect();
            self.rng.shuffle(&mut rest);
            walk.append(&mut rest);
        }
        walk
    }

    /// Different pages in three orders: one after the other, in groups, and in any order.
    fn orders(&mut self, pages: usize) -> [Vec<u32>; 3] {
        let count = STREAMED.min(pages / 4) / GROUP;
        let group = |group: usize| (group * GROUP) as u32..((group + 1) * GROUP) as u32;
        let first = self.rng.usize(0..=pages / GROUP - count);
        let in_order = (first..first + count).flat_map(group).collect();
        let mut others: Vec<usize> =
            (0..pages / GROUP).filter(|at| !(first..first + count).contains(at)).collect();
        self.rng.shuffle(&mut others);
        let in_groups = others[..count].iter().flat_map(|at| {
            let mut own: Vec<u32> = group(*at).collect();
            self.rng.shuffle(&mut own);
            own
        });
        let in_groups = in_groups.collect();
        let mut any: Vec<u32> = others[count..].iter().copied().flat_map(group).collect();
        self.rng.shuffle(&mut any);
        any.truncate(count * GROUP);
        [in_order, in_groups, any]
    }

    /// Reads as much as pushes page tables out of most caches, as the data of a large program does,
    /// and with it more pages than a TLB holds.
    fn forget_translations(&self) {
        self.push(usize::MAX, 0);
    }

    /// Reads this many bytes of other lines, or all there are.
    fn push(&self, bytes: usize, behind: usize) {
        let sum =
            |filler: &Mapping| filler.sum_each(LINE_BYTES, bytes.min(filler.len()) / LINE_BYTES, behind);
        std::hint::black_box(self.filler.as_ref().map(sum));
    }

    /// The loads of walks that count, each with its line and latency, ns. The walks go on in turns,
    /// so that what a host does meanwhile meets all of them.
    fn walk<const N: usize>(
        &mut self,
        chunk: usize,
        part: &mut Rc<Mapping>,
        walks: &[Walk; N],
    ) -> Option<[Vec<(u32, f64)>; N]> {
        let mut rings = walks
            .each_ref()
            .map(|walk| Ring::in_order(Rc::clone(part), walk.iter().map(|(line, _)| *line).collect(), 0));
        rings.iter().for_each(Ring::flush);
        self.forget_translations();
        let mut timed = walks.each_ref().map(|walk| Vec::with_capacity(walk.len()));
        let mut left = walks.each_ref().map(|walk| walk.as_slice());
        while left.iter().any(|own| !own.is_empty()) {
            for ((ring, own), timed) in rings.iter_mut().zip(&mut left).zip(&mut timed) {
                let begins = own.iter().take_while(|(_, counts)| !counts).count();
                let (turn, rest) = own.split_at((begins + TURN).min(own.len()));
                for (_, counts) in turn {
                    let begin = self.clock.now();
                    let line = ring.step();
                    let ns = self.clock.now() - begin - self.reading_ns;
                    if *counts {
                        timed.push((line, ns));
                    }
                }
                *own = rest;
            }
        }
        let ended_correctly = rings.iter().all(Ring::ended_correctly);
        drop(rings);
        self.restore(chunk, part, walks.iter().flatten().map(|(line, _)| *line))?;
        for timed in &mut timed {
            let most = INTERRUPTED * crate::median(timed.iter().map(|(_, ns)| *ns).collect());
            timed.iter_mut().for_each(|(_, ns)| *ns = ns.min(most));
        }
        ended_correctly.then_some(timed)
    }

    /// The share of lines that are still in a cache after a pause, where a load from memory takes
    /// `memory_ns`: what is missing others have pushed out.
    fn kept(&mut self, chunk: usize, part: &mut Rc<Mapping>, memory_ns: f64) -> Option<f64> {
        let mut lines: Vec<u32> = (0..(KEPT_BYTES / LINE_BYTES) as u32).collect();
        self.rng.shuffle(&mut lines);
        lines.truncate(KEPT_LINES);
        let walk: Walk = lines.into_iter().map(|line| (line, true)).collect();
        self.left(chunk, part, &walk, memory_ns, |prober, _| prober.push(PUSHING_BYTES, 8))
    }

    /// The share of a walk's lines that are in a cache after `fill` and a pause, where a load from
    /// memory takes `memory_ns`.
    fn left(
        &mut self,
        chunk: usize,
        part: &mut Rc<Mapping>,
        walk: &Walk,
        memory_ns: f64,
        fill: impl FnOnce(&Prober, &Mapping),
    ) -> Option<f64> {
        let mut ring = Ring::in_order(Rc::clone(part), walk.iter().map(|(line, _)| *line).collect(), 0);
        fill(self, part);
        let begin = self.clock.now();
        while self.clock.now() - begin < PAUSE_NS {}
        let most = FROM_CACHE * memory_ns + self.reading_ns;
        let (mut kept, mut all) = (0usize, 0usize);
        for (_, counts) in walk {
            let begin = self.clock.now();
            ring.step();
            let is_kept = self.clock.now() - begin < most;
            kept += usize::from(*counts && is_kept);
            all += usize::from(*counts);
        }
        let ended_correctly = ring.ended_correctly();
        drop(ring);
        self.restore(chunk, part, walk.iter().map(|(line, _)| *line))?;
        ended_correctly.then(|| kept as f64 / all as f64)
    }

    /// Probes memory while Assay does nothing else, and how much cache its first `bytes` get. The
    /// words are those of the first chunk and stay unchanged. `None`: it read wrong words.
    pub fn rest(&mut self, memory: &mut Rc<Mapping>, bytes: usize) -> Option<IdleProbe> {
        let at_ns = self.clock.now();
        let pages = memory.len() / self.page;
        let apart = self.shuffled(pages);
        let near = self.coming_back(&apart, NEAR, SPOTS);
        let [near_ns] = self.walk(0, memory, &[near])?.map(mean_ns);
        let [in_order, ..] = self.orders(pages);
        let stream_bytes = (in_order.len() * self.page) as f64;
        let [stream_ns] = self.read(0, memory, &[in_order])?;
        let walk = self.spread(bytes / self.page);
        let kept = self.left(0, memory, &walk, near_ns, |_, memory| {
            std::hint::black_box(memory.sum_each(LINE_BYTES, bytes / LINE_BYTES, 0));
        })?;
        Some(IdleProbe { at_ns, near_ns, stream_ns, stream_bytes, kept })
    }

    /// Lines of pages that are spread evenly, some of each page: its first load brings the
    /// translation.
    fn spread(&mut self, pages: usize) -> Walk {
        let sampled = (LOADS / VISITS).min(pages);
        let any = |part: usize| self.rng.usize(part * pages / sampled..(part + 1) * pages / sampled) as u32;
        let mut all: Vec<u32> = (0..sampled).map(any).collect();
        self.rng.shuffle(&mut all);
        self.coming_back(&all, NEAR.min(sampled), VISITS)
    }

    /// Writes the words that walks overwrote as they were.
    fn restore(&self, chunk: usize, part: &mut Rc<Mapping>, lines: impl Iterator<Item = u32>) -> Option<()> {
        let memory = Rc::get_mut(part)?.words_mut();
        for line in lines {
            let first = line as usize * LINE_BYTES / 8;
            (first..first + 2).for_each(|at| memory[at] = word(chunk, at));
        }
        Some(())
    }

    /// Time to read pages from memory in several orders, ns; groups of the orders alternate.
    fn read<const N: usize>(
        &mut self,
        chunk: usize,
        part: &mut Rc<Mapping>,
        orders: &[Vec<u32>; N],
    ) -> Option<[f64; N]> {
        let (lines, words) = ((self.page / LINE_BYTES) as u32, self.page / 8);
        for order in orders {
            Ring::flush_lines(part, order.iter().flat_map(|page| page * lines..(page + 1) * lines));
        }
        self.forget_translations();
        let mut ns = [0.0; N];
        let (mut read, mut expected) = (0u64, 0u64);
        for first in (0..orders[0].len()).step_by(GROUP) {
            for (order, ns) in orders.iter().zip(&mut ns) {
                let group = &order[first..(first + GROUP).min(order.len())];
                let memory = Rc::get_mut(part)?.words_mut();
                let begin = self.clock.now();
                for page in group {
                    let own = *page as usize * words;
                    read = read.wrapping_add(self.stream.run(&mut memory[own..own + words], 1, 0));
                }
                *ns += self.clock.now() - begin;
                for page in group {
                    let from = u64::from(*page) * self.page as u64;
                    let to = from + self.page as u64;
                    expected = expected.wrapping_add(sum(chunk, to)).wrapping_sub(sum(chunk, from));
                }
            }
        }
        (read == expected).then_some(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::{Op, streams};

    fn prober(part: u64) -> Option<Prober> {
        let clock = Clock::from_run(&sys::clock::calibrate(true));
        Prober::of(part, 24 << 20, &CpuSet::default(), streams(Op::Read)[0], clock, 3).expect("memory")
    }

    #[test]
    fn walks_use_lines_once_and_pages_as_often_as_they_should() {
        let mut prober = prober(16 << 20).expect("pages");
        let pages: Vec<u32> = (0..1024).collect();
        let walks = [
            (prober.hopping(4096), 1, 1),
            (prober.coming_back(&pages, SCATTERED, 8), 8, 7),
            (prober.coming_back(&pages, NEAR, SPOTS), SPOTS, SPOTS - 1),
        ];
        for (walk, visits, counted) in walks {
            let mut lines: Vec<u32> = walk.iter().map(|(line, _)| *line).collect();
            lines.sort_unstable();
            let all = lines.len();
            lines.dedup();
            assert_eq!(lines.len(), all, "a line twice");
            let lines_a_page = (prober.page / LINE_BYTES) as u32;
            for page in lines.iter().map(|line| line / lines_a_page) {
                let own = walk.iter().filter(|(line, _)| line / lines_a_page == page);
                assert_eq!(own.clone().count(), visits);
                assert_eq!(own.filter(|(_, counts)| *counts).count(), counted);
            }
        }
        let mut all = prober.orders(4096).concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3 * STREAMED);
    }

    #[test]
    fn a_look_leaves_what_it_read_and_finds_damage() {
        assert!(prober(1 << 20).is_none(), "too few pages");
        let mut prober = prober(8 << 20).expect("pages");
        let mut part = Mapping::private(8 << 20, Pages::Huge, &CpuSet::default()).expect("8 MiB");
        part.words_mut().iter_mut().enumerate().for_each(|(at, own)| *own = word(5, at));
        let mut part = Rc::new(part);
        for _ in 0..3 {
            let probe = prober.look(5, &mut part).expect("right answers");
            for (own, loads) in [(&probe.huge, probe.loads[0]), (&probe.huge_near, probe.loads[2])] {
                assert_eq!(own.len(), 4);
                assert_eq!(own.iter().map(|[_, count]| count).sum::<f64>(), loads);
            }
            assert!(probe.loads_ns.iter().chain(&probe.streams_ns).all(|ns| *ns > 0.0), "{probe:?}");
            // Not every clock can time a sample as short as one load.
            assert!(probe.loads.iter().all(|loads| *loads >= 1024.0), "{probe:?}");
        }
        let words = Rc::get_mut(&mut part).expect("alone").words_mut();
        assert!(words.iter().enumerate().all(|(at, own)| *own == word(5, at)));
        words.iter_mut().for_each(|own| *own = own.wrapping_add(1));
        assert!(prober.look(5, &mut part).is_none());
    }

    #[test]
    fn a_look_at_rest_leaves_what_it_read_and_finds_damage() {
        let mut prober = prober(8 << 20).expect("pages");
        let mut memory = Mapping::private(8 << 20, Pages::Huge, &CpuSet::default()).expect("8 MiB");
        memory.words_mut().iter_mut().enumerate().for_each(|(at, own)| *own = word(0, at));
        let mut memory = Rc::new(memory);
        for bytes in [1 << 20, 2 << 20, 8 << 20] {
            let rest = prober.rest(&mut memory, bytes).expect("right answers");
            assert!(rest.near_ns > 0.0 && rest.stream_ns > 0.0 && rest.stream_bytes > 0.0, "{rest:?}");
            assert!((0.0..=1.0).contains(&rest.kept), "{rest:?}");
        }
        let words = Rc::get_mut(&mut memory).expect("alone").words_mut();
        assert!(words.iter().enumerate().all(|(at, own)| *own == word(0, at)));
        words.iter_mut().for_each(|own| *own = own.wrapping_add(1));
        assert!(prober.rest(&mut memory, 1 << 20).is_none());
    }
}
