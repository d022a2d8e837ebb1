//! Physical addresses of this process's memory (`/proc/self/pagemap`).

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::mapping::Mapping;

// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst): the page is in memory; the number of
// its frame.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// The physical page frames (in units of the base page) of up to `max_pages` evenly spaced pages of
/// a mapping; `None` for a page that is not in memory. Since Linux 4.0 reading the numbers needs
/// CAP_SYS_ADMIN; the error says if it or the file is missing.
pub fn frames(memory: &Mapping, max_pages: usize) -> Result<Vec<Option<u64>>, String> {
    frames_at((memory.as_ptr() as usize, memory.len()), max_pages)
}

/// The same for a range of this process (address, bytes).
pub fn frames_at((start, len): (usize, usize), max_pages: usize) -> Result<Vec<Option<u64>>, String> {
    let file = File::open("/proc/self/pagemap").map_err(|error| format!("/proc/self/pagemap: {error}"))?;
    let page = rustix::param::page_size();
    let pages = len.div_ceil(page);
    let count = max_pages.min(pages);
    let entry = |index: usize| -> Result<u64, String> {
        let address = start + pages * index / count.max(1) * page;
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, (address / page * 8) as u64)
            .map_err(|error| format!("/proc/self/pagemap: {error}"))?;
        Ok(u64::from_ne_bytes(bytes))
    };
    let entries: Vec<u64> = (0..count).map(entry).collect::<Result<_, String>>()?;
    let frame = |entry: &u64| Some(entry & FRAME).filter(|frame| entry & PRESENT != 0 && *frame != 0);
    let frames: Vec<Option<u64>> = entries.iter().map(frame).collect();
    let hidden = entries.iter().any(|entry| entry & PRESENT != 0) && frames.iter().all(Option::is_none);
    if hidden { Err("/proc/self/pagemap shows frame numbers only to root".to_string()) } else { Ok(frames) }
}

/// Why frame numbers are hidden from this process; `None` if it may read them.
pub fn frames_hidden() -> Option<String> {
    let on_stack = 0u8;
    frames_at((std::ptr::from_ref(&on_stack).addr(), 1), 1).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuSet, Pages};

    #[test]
    fn hidden_frames_are_hidden_for_all_memory() {
        let mut memory = Mapping::private(1 << 20, Pages::Base, &CpuSet::default()).expect("1 MiB");
        memory.words_mut().fill(1);
        assert_eq!(frames_hidden().is_some(), frames(&memory, 4).is_err());
    }

    #[test]
    fn frames_of_touched_pages_or_a_reason() {
        let mut memory = Mapping::private(4 << 20, Pages::Base, &CpuSet::default()).expect("4 MiB");
        if let Ok(untouched) = frames(&memory, 4) {
            assert_eq!(untouched, [None; 4]);
        }
        memory.words_mut().fill(1);
        match frames(&memory, 16) {
            Ok(found) => {
                assert_eq!(found.len(), 16);
                let mut known: Vec<u64> = found.into_iter().flatten().collect();
                assert_eq!(known.len(), 16);
                known.sort_unstable();
                known.dedup();
                assert_eq!(known.len(), 16, "two pages in one frame");
            }
            Err(why) => assert!(why.contains("pagemap"), "{why}"),
        }
    }
}
