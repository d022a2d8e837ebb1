//! Address translation: what a load costs when every one is on another page.

use super::memory::{note_memory, resident};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{latency_ns, log_curve};
use kernels::Chain;
use model::vocabulary::memory as ids;
use model::{Case, Pages, Params};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::TLB,
    title: "Address translation",
    about: "Cost of address translation, from loads spread over many base pages (layout=spread) and the same number \
            of lines side by side (layout=packed).",
    reading: "The difference of the curves is the cost. They part where the first-level TLB ends (64–96 pages on \
              most cores) and again where the second does (1024–3072). Beyond, each load walks the page table. \
              Programs with random access to more than pages × page size gain from huge pages. In a guest a walk \
              crosses two page tables.",
    method: "Loads are dependent and in random order. spread uses one cache line of each page, at changing places, \
             so that the cache's sets fill evenly. Both layouts touch equally many lines. The chain is checked to \
             close.",
    source: file!(),
    metrics: &[latency_ns(ids::metric::LATENCY, "latency")],
    params: &[
        Param::choice(
            ids::param::LAYOUT,
            "one line in each page, or as many lines side by side",
            &["spread", "packed"],
        ),
        Param::int(ids::param::PAGES, "number of pages or lines", 2..=1 << 20),
    ],
    view: &log_curve(ids::param::PAGES),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const LINE_WORDS: usize = 8;
/// Beyond the second level of every TLB that was built.
const PAGES_MOST: u64 = 16 << 10;
const LONG_ENOUGH_NS: f64 = 2e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let placement = placement.pages(Pages::Base);
    let candidate = |layout: &str| {
        let windows = scope.windows.no_longer_than(LONG_ENOUGH_NS);
        let candidate =
            Candidate::new(bench.id, placement.clone(), 61, scope.seconds(counts().len(), windows, 0.1));
        let page = rustix::param::page_size() as u64;
        let bytes = if layout == "spread" { PAGES_MOST * page } else { PAGES_MOST * LINE_WORDS as u64 * 8 };
        candidate.param(ids::param::LAYOUT, layout).memory(bytes)
    };
    vec![candidate("spread"), candidate("packed")]
}

/// From 8 pages in powers of two with one step between.
fn counts() -> Vec<u64> {
    let powers = std::iter::successors(Some(8u64), |pages| Some(pages * 2)).take_while(|n| *n < PAGES_MOST);
    powers.flat_map(|pages| [pages, pages / 2 * 3]).chain([PAGES_MOST]).collect()
}

fn points(_: &Case) -> Vec<Params> {
    counts().into_iter().map(|pages| point(ids::param::PAGES, pages)).collect()
}

/// Where the loads go, in units of lines: page by page, each at another line of its page; or line
/// by line.
fn lines(pages: u64, spread: bool, page_bytes: usize) -> Vec<u32> {
    let lines_a_page = (page_bytes / LINE_WORDS / 8) as u64;
    let line = |page: u64| if spread { page * lines_a_page + page % lines_a_page } else { page };
    (0..pages).map(|page| line(page) as u32).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let page = rustix::param::page_size();
    let spread = case.params.get(ids::param::LAYOUT).and_then(|layout| layout.text()) == Some("spread");
    let bytes = PAGES_MOST * if spread { page as u64 } else { LINE_WORDS as u64 * 8 };
    let nodes = case.placement.seats.first().map_or_else(Default::default, |seat| seat.mem_nodes.clone());
    let mut memory = resident(bytes, case.placement.pages, &nodes, |index| index as u64)?;
    note_memory(sampler, &memory, &nodes);
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS);
    for pages in counts() {
        let mut order = lines(pages, spread, page);
        fastrand::Rng::with_seed(sampler.seed() ^ pages).shuffle(&mut order);
        let mut chain = Chain::through(memory.words_mut(), LINE_WORDS, &order);
        let rounds = if pages.is_multiple_of(Chain::UNROLL) { 1 } else { Chain::UNROLL };
        chain.walk(pages * rounds);
        check_answer(chain.at_start(), || format!("a chain through {pages} pages did not close"))?;
        let at = Point::new(ids::metric::LATENCY, Chain::UNROLL as f64)
            .at(point(ids::param::PAGES, pages))
            .stretch(stretch);
        sampler.time(at, |n| chain.walk(n * Chain::UNROLL))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_lines_use_every_page_once_and_all_places_alike() {
        let spread = lines(128, true, 4096);
        let pages: Vec<u32> = spread.iter().map(|line| line / 64).collect();
        assert_eq!(pages, (0..128).collect::<Vec<u32>>());
        assert!((0..64).all(|place| spread.iter().filter(|line| *line % 64 == place).count() == 2));
        assert_eq!(lines(5, false, 4096), [0, 1, 2, 3, 4]);
        assert_eq!(counts()[..5], [8, 12, 16, 24, 32]);
    }
}
