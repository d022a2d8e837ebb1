//! Memory mappings of this process with chosen pages and NUMA nodes, and where their pages lie.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use model::{CpuSet, Pages};

/// Huge pages have 2 MiB on x86, and on arm64 with base pages of 4 KiB. Aligning to it costs only
/// address space.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A mapping, unmapped on drop; by [`Mapping::private`] and [`Mapping::shared`] it is aligned to 2
/// MiB.
pub struct Mapping {
    base: NonNull<u8>,
    base_len: usize,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory that only this value owns; all access goes through &self or
// &mut self.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` zeroed bytes (rounded up to whole words) for this process alone, with the
    /// requested pages, bound to `nodes` (unless empty). Touches no page.
    pub fn private(len: usize, pages: Pages, nodes: &CpuSet) -> io::Result<Mapping> {
        let mapping = Mapping::map(len, MapFlags::PRIVATE | MapFlags::NORESERVE)?;
        let advice = match pages {
            Pages::AsGiven => None,
            Pages::Huge => Some(Advice::LinuxHugepage),
            Pages::Base => Some(Advice::LinuxNoHugepage),
        };
        if let Some(advice) = advice {
            // EINVAL from a kernel without huge pages is no error here: their share is read later.
            // SAFETY: the range is this mapping's; these advices never change its content.
            let _ = unsafe { rustix::mm::madvise(mapping.start.as_ptr().cast(), mapping.len, advice) };
        }
        if !nodes.is_empty() {
            bind(&mapping, nodes)?;
        }
        Ok(mapping)
    }

    /// Maps `len` bytes (a multiple of 2 MiB) from the system's pool of huge pages (hugetlbfs), on
    /// the nodes that have them; an error if the pool has too few.
    pub fn of_pool(len: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        // SAFETY: as in `plain`. Without NORESERVE the kernel reserves the pages now, so no later
        // touch can fail.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        Mapping::of_range(start, len)
    }

    /// Maps `len` bytes that this process shares with children forked later.
    pub fn shared(len: usize) -> io::Result<Mapping> {
        Mapping::map(len, MapFlags::SHARED)
    }

    /// Maps `len` bytes (whole pages) by a single call, aligned to pages only; with `populate` the
    /// kernel allocates all pages before it returns.
    pub fn plain(len: usize, populate: bool) -> io::Result<Mapping> {
        let flags = if populate { MapFlags::PRIVATE | MapFlags::POPULATE } else { MapFlags::PRIVATE };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping at an address that the kernel chooses overlaps nothing.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        Mapping::of_range(start, len)
    }

    /// Maps `len` bytes (whole pages) between two inaccessible pages, so that the kernel keeps it
    /// as a separate area (VMA) whatever its protection: never merged with another, never split.
    pub fn guarded(len: usize) -> io::Result<Mapping> {
        let page = rustix::param::page_size();
        let base_len = len.checked_add(2 * page).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: as in `plain`.
        let base = unsafe {
            let flags = MapFlags::PRIVATE;
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), base_len, ProtFlags::empty(), flags)?
        };
        let mut mapping = Mapping::of_range(base, base_len)?;
        // SAFETY: one page behind the start of a mapping that is two pages longer than `len`.
        mapping.start = unsafe { mapping.base.add(page) };
        mapping.len = len;
        mapping.set_writable(true)?;
        Ok(mapping)
    }

    /// Maps the first `len` bytes of a file (whole pages); writes stay in this mapping. The file
    /// must be Assay's and must not change meanwhile.
    pub fn of_file(file: impl AsFd, len: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `plain`.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE, file, 0)? };
        Mapping::of_range(start, len)
    }

    /// Takes ownership of a mapped range, all of which is to be used.
    fn of_range(start: *mut std::ffi::c_void, len: usize) -> io::Result<Mapping> {
        let start =
            NonNull::new(start.cast::<u8>()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Mapping { base: start, base_len: len, start, len })
    }

    fn map(len: usize, flags: MapFlags) -> io::Result<Mapping> {
        let len = len.max(8).next_multiple_of(8);
        let base_len =
            len.checked_add(HUGE_PAGE_BYTES).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: a fresh anonymous mapping at an address that the kernel chooses overlaps nothing.
        let base = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), base_len, protection, flags)?
        };
        let base =
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let skip = base.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: skip < HUGE_PAGE_BYTES and len + HUGE_PAGE_BYTES bytes were mapped.
        let start = unsafe { base.add(skip) };
        Ok(Mapping { base, base_len, start, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn words(&self) -> &[u64] {
        // SAFETY: start is page-aligned, len bytes are mapped and initialised, and &self forbids
        // writing meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / 8) }
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `words`; &mut self makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / 8) }
    }

    /// The memory as bytes, for system calls that fill it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `words_mut`; every byte is initialised, and words accept all byte values.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// The start address, for the benchmark kernels.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Unmaps it and returns the error, which dropping ignores.
    pub fn unmap(self) -> io::Result<()> {
        let mapping = std::mem::ManuallyDrop::new(self);
        // SAFETY: as in `drop`, which will not run.
        unsafe { rustix::mm::munmap(mapping.base.as_ptr().cast(), mapping.base_len) }.map_err(io::Error::from)
    }

    /// Whether the whole range of addresses is mapped in this process; `start` is page-aligned.
    pub fn is_at(start: usize, len: usize) -> bool {
        let pages = len.div_ceil(rustix::param::page_size());
        let mut map = vec![0u8; pages];
        // SAFETY: mincore accepts any addresses and does not access them; the vector has one byte
        // per page.
        unsafe { libc::mincore(start as *mut _, len, map.as_mut_ptr().cast()) == 0 }
    }

    /// Makes the mapping writable or read-only; a write to read-only memory raises SIGSEGV.
    pub fn set_writable(&mut self, writable: bool) -> io::Result<()> {
        let protection =
            if writable { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::READ };
        // SAFETY: the range is this mapping's, and &mut self excludes other references to it.
        unsafe { rustix::mm::mprotect(self.start.as_ptr().cast(), self.len, protection) }
            .map_err(io::Error::from)
    }

    /// Returns all its pages to the kernel (`MADV_DONTNEED`): the next touch of each finds zeros or
    /// the file's content.
    pub fn give_back(&mut self) -> io::Result<()> {
        // SAFETY: the range is this mapping's and private, and &mut self excludes other references
        // while its content changes.
        unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxDontNeed) }
            .map_err(io::Error::from)
    }

    /// Writes `word` to the first word of each of the first `count` units of `unit` bytes (pages,
    /// usually), in order.
    pub fn write_each(&mut self, unit: usize, count: usize, word: u64) {
        assert!(count == 0 || (unit.is_multiple_of(8) && unit >= 8 && count <= self.len / unit));
        for index in 0..count {
            // SAFETY: inside the mapping by the check above, aligned to 8 bytes, borrowed
            // exclusively.
            unsafe { self.start.as_ptr().add(index * unit).cast::<u64>().write_volatile(word) };
        }
    }

    /// The wrapping sum of the words at byte `offset` in each of the first `count` units of `unit`
    /// bytes.
    pub fn sum_each(&self, unit: usize, count: usize, offset: usize) -> u64 {
        assert!(
            count == 0
                || (unit.is_multiple_of(8)
                    && offset.is_multiple_of(8)
                    && offset < unit
                    && count <= self.len / unit)
        );
        let word = |index: usize| {
            // SAFETY: inside the mapping by the check above, aligned to 8 bytes, readable memory.
            unsafe { self.start.as_ptr().add(index * unit + offset).cast::<u64>().read_volatile() }
        };
        (0..count).fold(0, |sum, index| sum.wrapping_add(word(index)))
    }

    /// Share of the mapping's pages that are in memory now, 0..1.
    pub fn resident_share(&self) -> io::Result<f64> {
        let page = rustix::param::page_size();
        let pages = self.len.div_ceil(page);
        let mut map = vec![0u8; pages];
        // SAFETY: start is page-aligned, the range is mapped, and the vector has one byte per page.
        let result = unsafe { libc::mincore(self.start.as_ptr().cast(), self.len, map.as_mut_ptr().cast()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(map.iter().filter(|byte| **byte & 1 == 1).count() as f64 / pages as f64)
    }

    /// The NUMA nodes of up to `max_pages` pages, evenly spread over the mapping (`move_pages`
    /// without target nodes). Pages that are not in memory are left out.
    pub fn nodes_of_pages(&self, max_pages: usize) -> io::Result<Vec<u32>> {
        let page = rustix::param::page_size();
        let pages = self.len.div_ceil(page);
        let count = max_pages.clamp(1, pages);
        let address = |index: usize| self.start.as_ptr().wrapping_add(pages * index / count * page);
        let addresses: Vec<*mut u8> = (0..count).map(address).collect();
        let mut nodes = vec![-1i32; count];
        // SAFETY: both vectors have `count` entries; without target nodes the call only fills
        // `nodes`.
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                count,
                addresses.as_ptr(),
                std::ptr::null::<i32>(),
                nodes.as_mut_ptr(),
                0,
            )
        };
        match result {
            0.. => Ok(nodes.into_iter().filter_map(|node| u32::try_from(node).ok()).collect()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped; no reference into it can outlive self.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.base_len) };
    }
}

/// Binds a mapping's future pages to NUMA nodes (`mbind`, `MPOL_BIND`).
fn bind(mapping: &Mapping, nodes: &CpuSet) -> io::Result<()> {
    const MPOL_BIND: libc::c_ulong = 2;
    let words = nodes.last().map_or(1, |last| last as usize / 64 + 1);
    let mut mask = vec![0u64; words];
    for node in nodes.iter() {
        mask[node as usize / 64] |= 1 << (node % 64);
    }
    // SAFETY: the range is the mapping's and page-aligned; the kernel reads words * 64 bits of the
    // mask (it expects their number plus one).
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.start.as_ptr(),
            mapping.len,
            MPOL_BIND,
            mask.as_ptr(),
            words * 64 + 1,
            0,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_resident_once_touched() {
        let mut mapping = Mapping::private(4 << 20, Pages::Base, &CpuSet::default()).expect("4 MiB");
        assert_eq!(mapping.as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        assert_eq!(mapping.resident_share().expect("mincore"), 0.0);
        assert!(mapping.words().iter().step_by(512).all(|word| *word == 0));
        mapping.words_mut().fill(7);
        assert_eq!(mapping.resident_share().expect("mincore"), 1.0);
        assert_eq!(mapping.words().iter().sum::<u64>(), 7 * (4 << 20) / 8);
        // A sandbox may forbid the call; otherwise it reports every page that was touched.
        if let Ok(nodes) = mapping.nodes_of_pages(100) {
            assert_eq!(nodes.len(), 100);
        }
    }

    #[test]
    fn returned_pages_are_zero_again() {
        let page = rustix::param::page_size();
        let mut anonymous = Mapping::plain(8 * page, false).expect("8 pages");
        assert_eq!(anonymous.resident_share().expect("mincore"), 0.0);
        anonymous.write_each(page, 8, 3);
        assert_eq!((anonymous.sum_each(page, 8, 0), anonymous.sum_each(page, 8, 8)), (24, 0));
        anonymous.give_back().expect("returned");
        assert_eq!(anonymous.sum_each(page, 8, 0), 0);
        anonymous.unmap().expect("unmapped");
        let populated = Mapping::plain(8 * page, true).expect("8 pages");
        assert_eq!(populated.resident_share().expect("mincore"), 1.0);
    }

    #[test]
    fn writes_to_a_mapping_do_not_reach_the_file() {
        use std::io::Write;
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&5u64.to_ne_bytes().repeat(page / 4)).expect("two pages");
        let mut mapping = Mapping::of_file(&file, 2 * page).expect("two pages");
        assert_eq!(mapping.sum_each(page, 2, 8), 10);
        mapping.write_each(page, 2, 7);
        assert_eq!(mapping.sum_each(page, 2, 0), 14);
        mapping.give_back().expect("returned");
        assert_eq!(mapping.sum_each(page, 2, 0), 10);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Mapping::guarded(usize::MAX - 100).is_err());
        assert!(Mapping::plain(0, false).is_err());
        assert!(Mapping::private(usize::MAX - 100, Pages::AsGiven, &CpuSet::default()).is_err());
    }
}
