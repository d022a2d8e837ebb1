//! Arrays in separate mappings, fresh from the kernel: the data of one copy of a benchmark.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use anyhow::Context;

use super::mapping::Mapping;
use super::steps::Steps;
use model::{CpuSet, Pages};

mod sealed {
    /// Numbers for which every bit pattern is valid.
    pub trait Plain: Copy + 'static {}
    impl Plain for u8 {}
    impl Plain for u32 {}
    impl Plain for u64 {}
    impl Plain for f64 {}
}

/// An array in a mapping of its own, initially zero, unmapped on drop.
pub struct Block<T: sealed::Plain> {
    mapping: Mapping,
    count: usize,
    element: PhantomData<T>,
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

/// Allocates the arrays of one copy of a benchmark.
pub struct Arena {
    /// Bytes that the copy may use for arrays that grow with it.
    pub bytes: u64,
    pages: Pages,
    nodes: CpuSet,
    /// Address and length (bytes) of every array so far, to look up its pages and nodes.
    pub taken: Vec<(usize, usize)>,
    /// Progress of the work on these arrays.
    pub steps: Steps,
}

/// Huge pages cannot back smaller arrays.
const HUGE_PAGE_BYTES: usize = 2 << 20;

impl Arena {
    /// Arrays on the kernel's default pages, on the node that touches them first.
    pub fn new(bytes: u64) -> Arena {
        Arena::on(bytes, Pages::AsGiven, CpuSet::default())
    }

    /// Arrays on these pages, bound to these nodes (if empty: on the node that touches them first).
    pub fn on(bytes: u64, pages: Pages, nodes: CpuSet) -> Arena {
        Arena { bytes, pages, nodes, taken: Vec::new(), steps: Steps::default() }
    }

    fn block<T: sealed::Plain>(&mut self, count: usize) -> anyhow::Result<Block<T>> {
        let len = count.max(1).checked_mul(size_of::<T>());
        let len = len.with_context(|| format!("an array of {count} elements exceeds the address space"))?;
        let pages = if len < HUGE_PAGE_BYTES { Pages::AsGiven } else { self.pages };
        let mapping = Mapping::private(len, pages, &self.nodes)
            .with_context(|| format!("cannot map an array of {len} bytes"))?;
        self.taken.push((mapping.as_ptr().addr(), len));
        Ok(Block { mapping, count, element: PhantomData })
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
    fn arrays_are_zero_separate_and_listed() {
        let mut arena = Arena::on(1 << 20, Pages::Huge, CpuSet::default());
        let mut one = arena.f64s(1000).expect("memory");
        let two = arena.u32s(3 << 20).expect("memory");
        let none = arena.bytes(0).expect("memory");
        assert!(one.iter().all(|value| *value == 0.0) && two.iter().all(|value| *value == 0));
        assert!(none.is_empty() && one.len() == 1000 && two.len() == 3 << 20);
        one[999] = 2.5;
        assert_eq!(one.iter().sum::<f64>(), 2.5);
        assert_eq!(arena.taken[0], (one.as_ptr().addr(), 8000));
        assert_eq!(arena.taken.len(), 3);
        assert!(arena.u64s(usize::MAX).is_err());
    }
}
