//! Arrays in mappings of their own: what a copy of a benchmark works on, fresh from the kernel each
//! time.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use anyhow::Context;

use super::mapping::Mapping;
use super::steps::Steps;
use model::{CpuSet, Pages};

mod sealed {
    /// Numbers of which every pattern of bits is one.
    pub trait Plain: Copy + 'static {}
    impl Plain for u8 {}
    impl Plain for u32 {}
    impl Plain for u64 {}
    impl Plain for f64 {}
}

/// An array in memory of its own, zeroed at first, given back to the kernel when dropped.
pub struct Block<T: sealed::Plain> {
    mapping: Mapping,
    count: usize,
    of: PhantomData<T>,
}

impl<T: sealed::Plain> Deref for Block<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds at least `count` of T, is aligned to 2 MiB and zeroed; any bits
        // are a T; and &self forbids writing meanwhile.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().cast(), self.count) }
    }
}

impl<T: sealed::Plain> DerefMut for Block<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and &mut self makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.as_ptr().cast_mut().cast(), self.count) }
    }
}

/// Where a copy's arrays come from, and how many bytes they may take.
pub struct Room {
    pub bytes: u64,
    pages: Pages,
    nodes: CpuSet,
    /// Address and length of every array so far, for those who ask where it lies.
    pub taken: Vec<(usize, usize)>,
    /// Where work on these arrays notes its progress.
    pub steps: Steps,
}

/// Smaller arrays cannot be backed by huge pages.
const HUGE_PAGE: usize = 2 << 20;

impl Room {
    /// Arrays on the pages that the kernel gives, wherever they are first touched.
    pub fn new(bytes: u64) -> Room {
        Room::on(bytes, Pages::AsGiven, CpuSet::default())
    }

    /// Arrays on these pages, bound to these nodes (none: wherever they are first touched).
    pub fn on(bytes: u64, pages: Pages, nodes: CpuSet) -> Room {
        Room { bytes, pages, nodes, taken: Vec::new(), steps: Steps::default() }
    }

    fn block<T: sealed::Plain>(&mut self, count: usize) -> anyhow::Result<Block<T>> {
        let len = count.max(1).checked_mul(size_of::<T>()).context("an array beyond all memory")?;
        let pages = if len < HUGE_PAGE { Pages::AsGiven } else { self.pages };
        let mapping = Mapping::private(len, pages, &self.nodes)
            .with_context(|| format!("cannot map an array of {len} bytes"))?;
        self.taken.push((mapping.as_ptr().addr(), len));
        Ok(Block { mapping, count, of: PhantomData })
    }

    pub fn f64s(&mut self, count: usize) -> anyhow::Result<Block<f64>> {
        self.block(count)
    }

    pub fn u64s(&mut self, count: usize) -> anyhow::Result<Block<u64>> {
        self.block(count)
    }

    pub fn u32s(&mut self, count: usize) -> anyhow::Result<Block<u32>> {
        self.block(count)
    }

    pub fn bytes(&mut self, count: usize) -> anyhow::Result<Block<u8>> {
        self.block(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_zero_their_own_and_noted() {
        let mut room = Room::on(1 << 20, Pages::Huge, CpuSet::default());
        let mut one = room.f64s(1000).expect("memory");
        let two = room.u32s(3 << 20).expect("memory");
        let none = room.bytes(0).expect("memory");
        assert!(one.iter().all(|value| *value == 0.0) && two.iter().all(|value| *value == 0));
        assert!(none.is_empty() && one.len() == 1000 && two.len() == 3 << 20);
        one[999] = 2.5;
        assert_eq!(one.iter().sum::<f64>(), 2.5);
        assert_eq!(room.taken[0], (one.as_ptr().addr(), 8000));
        assert_eq!(room.taken.len(), 3);
        assert!(room.u64s(usize::MAX).is_err());
    }
}
