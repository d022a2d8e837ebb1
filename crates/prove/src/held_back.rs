//! Memory of this guest that its host has put farther than most, kept away from trials: what they
//! name of it would be neither planted nor wrong.
//!
//! It is found by a way of its own: nearly all free memory is taken, huge page by huge page, each
//! is timed by flushed loads, and what is not far is given back.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use kernels::{LINE_BYTES, Ring};
use model::{CpuSet, Pages};
use stats::order::median;
use sys::counters::AvailableMemory;
use sys::mapping::Mapping;

const HUGE_PAGE: usize = 2 << 20;
/// What stays free, bytes.
const LEFT: u64 = 768 << 20;
/// Loads of one pass over a huge page, and passes.
const LOADS: usize = 256;
const PASSES: usize = 3;
/// Times the median level from which on a page is held back.
const FAR: f64 = 1.12;

/// Pages that are held until this is dropped.
pub struct HeldBack {
    _pages: Vec<Rc<Mapping>>,
    words: String,
}

impl HeldBack {
    pub fn new() -> HeldBack {
        let free = AvailableMemory::open(Path::new("/"), None, &[]).bytes().unwrap_or(0);
        let wanted = free.saturating_sub(LEFT) as usize / HUGE_PAGE;
        let mut pages: Vec<(Rc<Mapping>, f64)> = Vec::with_capacity(wanted);
        while pages.len() < wanted {
            let Ok(mut page) = Mapping::private(HUGE_PAGE, Pages::Huge, &CpuSet::default()) else { break };
            page.write_each(8, HUGE_PAGE / 8, 1);
            pages.push((Rc::new(page), f64::INFINITY));
        }
        // What disturbs one pass is over in the next.
        for pass in 0..PASSES {
            for (page, level) in &mut pages {
                *level = level.min(load_ns(page, pass as u64));
            }
        }
        let of = pages.len();
        let level = median(&pages.iter().map(|(_, ns)| *ns).collect::<Vec<f64>>()).unwrap_or(f64::INFINITY);
        pages.retain(|(_, ns)| *ns > FAR * level);
        let times = median(&pages.iter().map(|(_, ns)| ns / level).collect::<Vec<f64>>());
        let words = match times {
            Some(times) => format!(
                "{} of {of} blocks of 2 MiB of this guest took {times:.2} times as long per load ({:.0} ns) and were held back from the trials.\n\n",
                pages.len(),
                times * level
            ),
            None => {
                format!("Of {of} blocks of 2 MiB of this guest none took {FAR} times as long per load.\n\n")
            }
        };
        eprint!("{words}");
        HeldBack { _pages: pages.into_iter().map(|(page, _)| page).collect(), words }
    }

    /// How much was held back, as a paragraph.
    pub fn words(&self) -> &str {
        &self.words
    }
}

/// What a load of a huge page takes from memory, ns.
fn load_ns(page: &Rc<Mapping>, seed: u64) -> f64 {
    let mut lines: Vec<u32> = (0..(HUGE_PAGE / LINE_BYTES) as u32).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut lines);
    lines.truncate(LOADS);
    let mut ring = Ring::in_order(Rc::clone(page), lines, 0);
    ring.flush();
    let begin = Instant::now();
    ring.walk(LOADS as u64);
    begin.elapsed().as_secs_f64() * 1e9 / LOADS as f64
}
