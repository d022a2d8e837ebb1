//! Where measured memory lies physically, and how work on it went on, in a form that is small
//! enough for a run file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sampled pages of measured memory, counted by the physical block that each lies in. Block numbers
/// start at physical address 0 and show only how the host's memory was handed out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PagePlaces {
    /// Numbers of blocks of [`PagePlaces::BLOCK_BYTES`], ascending.
    pub blocks: Vec<u32>,
    /// Sampled pages in each of these blocks.
    pub pages: Vec<u32>,
}

impl PagePlaces {
    /// 64 MiB, the smallest chunk of a map of memory.
    pub const BLOCK_BYTES: u64 = 64 << 20;

    /// Counts pages by the numbers of their blocks, which come in any order.
    pub fn count(blocks: impl IntoIterator<Item = u32>) -> PagePlaces {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for block in blocks {
            *counts.entry(block).or_default() += 1;
        }
        let (blocks, pages) = counts.into_iter().unzip();
        PagePlaces { blocks, pages }
    }

    /// Block and pages in it.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks.iter().copied().zip(self.pages.iter().copied())
    }

    /// Sampled pages in all blocks.
    pub fn total(&self) -> u64 {
        self.pages.iter().map(|pages| u64::from(*pages)).sum()
    }

    /// Physical address of the middle page, GiB, to a block; `None` without pages.
    pub fn middle_gib(&self) -> Option<f64> {
        let half = self.total().div_ceil(2);
        let mut below = 0;
        let (block, _) = self.iter().find(|(_, pages)| {
            below += u64::from(*pages);
            below >= half
        })?;
        Some((f64::from(block) + 0.5) * Self::BLOCK_BYTES as f64 / f64::from(1 << 30))
    }
}

/// What all copies of a component did in equal spans of a piece of work, from their own steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// When the piece began, s since the first piece of the visit did.
    pub start_s: f64,
    /// Length of a span, s.
    pub span_s: f64,
    /// Work of all copies in each span, M units/s.
    pub rates: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_block() {
        let places = PagePlaces::count([7, 3, 7, 7, 100]);
        assert_eq!((places.blocks.as_slice(), places.pages.as_slice()), (&[3, 7, 100][..], &[1, 3, 1][..]));
        assert_eq!(places.total(), 5);
        assert_eq!(places.middle_gib(), Some(7.5 / 16.0));
        assert_eq!(PagePlaces::default().middle_gib(), None);
        // A damaged file may have fewer counts than blocks: the rest is passed over.
        let torn = PagePlaces { blocks: vec![1, 2], pages: vec![4] };
        assert_eq!(torn.iter().collect::<Vec<_>>(), [(1, 4)]);
    }
}
