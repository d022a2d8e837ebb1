//! Invented memory of two speeds, for tests: each process draws a share of slow pages, reports them
//! in the blocks that the memory map calls slow, and works longer to match.

use crate::memory_map::Plant;
use model::{Case, PagePlaces};

/// The input that holds a [`Plant`] in a suite's cases and in the map behind them.
pub const PLANT_PLACES: &str = "plant_places";
/// Blocks of the memory that is made up.
const BLOCKS: u32 = 64;

/// Made-up memory of a case; `None` where none was asked for.
pub fn planted(case: &Case) -> anyhow::Result<Option<Plant>> {
    let text = case.inputs.get(PLANT_PLACES);
    text.map(|text| Plant::parse(text)).transpose().map_err(anyhow::Error::msg)
}

/// Slow blocks are the first.
fn slow_blocks(plant: &Plant) -> u32 {
    ((plant.share * f64::from(BLOCKS)) as u32).clamp(1, BLOCKS - 1)
}

/// Which share of a process's pages is slow, 0..1.
pub fn slow_share(seed: u64) -> f64 {
    fastrand::Rng::with_seed(seed ^ 0x51).f64()
}

/// By how much longer it works, 0 and more.
pub fn extra(plant: &Plant, share: f64) -> f64 {
    share * (plant.ratio - 1.0)
}

/// Where its pages would lie.
pub fn places(plant: &Plant, share: f64) -> PagePlaces {
    const PAGES: u32 = 4096;
    let slow = slow_blocks(plant);
    let many = (share * f64::from(PAGES)).round() as u32;
    PagePlaces::count((0..PAGES).map(|page| match page < many {
        true => page % slow,
        false => slow + page % (BLOCKS - slow),
    }))
}

/// Where the chunks of a map would lie, a block each, slow ones in the slow blocks.
pub fn chunk_places(plant: &Plant, slow_chunks: &std::ops::Range<u64>, chunks: u64) -> Vec<PagePlaces> {
    let slow = slow_blocks(plant);
    let block = |chunk: u64| {
        let (at, of, from, blocks) = match slow_chunks.contains(&chunk) {
            true => (chunk - slow_chunks.start, slow_chunks.end - slow_chunks.start, 0, slow),
            false => {
                let before = chunk.min(slow_chunks.start) + chunk.saturating_sub(slow_chunks.end);
                (before, chunks - (slow_chunks.end - slow_chunks.start), slow, BLOCKS - slow)
            }
        };
        from + (at * u64::from(blocks) / of.max(1)) as u32
    };
    (0..chunks).map(|chunk| PagePlaces::count([block(chunk)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_pages_lie_where_slow_chunks_do() {
        let plant = Plant { share: 0.25, ratio: 3.0, pages: None };
        let half = places(&plant, 0.5);
        let slow: u32 = half.iter().filter(|(block, _)| *block < 16).map(|(_, pages)| pages).sum();
        assert_eq!((half.total(), slow, extra(&plant, 0.5)), (4096, 2048, 1.0));
        let chunks = chunk_places(&plant, &(32..64), 128);
        let blocks: Vec<u32> = chunks.iter().map(|one| one.blocks[0]).collect();
        assert!(blocks[32..64].iter().all(|block| *block < 16), "{blocks:?}");
        assert!(blocks[..32].iter().chain(&blocks[64..]).all(|block| (16..64).contains(block)), "{blocks:?}");
        assert_eq!((blocks[0], blocks[127]), (16, 63));
    }
}
