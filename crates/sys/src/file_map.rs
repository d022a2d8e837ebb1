//! Files in memory: mapped as words, and their share in the page cache.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::fs::Advice;
use rustix::mm::{MapFlags, ProtFlags};

/// The first `len` bytes of a file, mapped privately: reads use the pages of the page cache.
/// Unmapped on drop.
///
/// No process may shorten the file meanwhile: reading behind its end raises SIGBUS.
pub struct FileMap {
    start: NonNull<u8>,
    len: usize,
}

impl FileMap {
    /// Maps without reading.
    pub fn new(file: impl AsFd, len: usize) -> io::Result<FileMap> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address that the kernel chooses overlaps nothing.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE, file, 0)? };
        let start =
            NonNull::new(start.cast::<u8>()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(FileMap { start, len })
    }

    /// The file's words. Writing changes this process's copy only.
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: page-aligned, len bytes are mapped for reading and writing, and &mut self makes
        // the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / 8) }
    }

    /// Share of the file's pages that are in the page cache now, 0..1. The kernel answers correctly
    /// only for the owner of the file.
    pub fn cached_share(&self) -> io::Result<f64> {
        let pages = self.len.div_ceil(rustix::param::page_size());
        let mut map = vec![0u8; pages];
        // SAFETY: this mapping owns the page-aligned range, and the vector has one byte per page.
        let result = unsafe { libc::mincore(self.start.as_ptr().cast(), self.len, map.as_mut_ptr().cast()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(map.iter().filter(|byte| **byte & 1 == 1).count() as f64 / pages.max(1) as f64)
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: exactly the range mapped by `new`; no reference into it can outlive self.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Share of a file's first `len` bytes that are in the page cache, 0..1.
pub fn cached_share(file: impl AsFd, len: usize) -> io::Result<f64> {
    FileMap::new(file, len)?.cached_share()
}

/// Asks the kernel to drop a file's pages that are clean and not mapped.
pub fn drop_cached(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}
