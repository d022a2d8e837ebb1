//! A file in memory: mapped, read as words, and asked how much of it the page cache holds.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::fs::Advice;
use rustix::mm::{MapFlags, ProtFlags};

/// The first `len` bytes of a file, mapped privately: reading goes to the page cache's own pages.
/// Unmapped on drop.
///
/// The file must be one that nobody shortens meanwhile: reading behind its end is a signal.
pub struct FileMap {
    start: NonNull<u8>,
    len: usize,
}

impl FileMap {
    /// Maps; nothing is read yet.
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

    /// Share of the file's pages that the page cache holds now, 0..1. Only the owner of a file is
    /// told the truth.
    pub fn cached_share(&self) -> io::Result<f64> {
        let pages = self.len.div_ceil(rustix::param::page_size());
        let mut map = vec![0u8; pages];
        // SAFETY: the range is ours and page-aligned, and the vector holds one byte a page.
        let result = unsafe { libc::mincore(self.start.as_ptr().cast(), self.len, map.as_mut_ptr().cast()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(map.iter().filter(|byte| **byte & 1 == 1).count() as f64 / pages.max(1) as f64)
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: exactly the range that new() got; no reference into it can outlive self.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Share of a file's first `len` bytes that the page cache holds, 0..1.
pub fn cached_share(file: impl AsFd, len: usize) -> io::Result<f64> {
    FileMap::new(file, len)?.cached_share()
}

/// Asks the kernel to drop a file's clean pages that nobody has mapped.
pub fn drop_cached(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}
