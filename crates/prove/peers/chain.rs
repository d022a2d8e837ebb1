//! A chain of dependent loads that shares nothing with Assay's kernels but the memory under it:
//! numbers instead of pointers, in the order of a linear congruential generator, walked by plain
//! Rust.

use model::{CpuSet, Pages};
use sys::affinity;
use sys::clock::Clock;
use sys::mapping::Mapping;

const LINE_WORDS: usize = 8;

/// Loads of a walk, at least: some ms in any level.
const LOADS: usize = 1 << 20;

/// Latency of a load in a block of `bytes` (rounded down to a power of two) on a CPU, ns: the
/// median of five walks.
pub fn latency_ns(bytes: u64, cpu: u32, clock: Clock) -> Result<f64, String> {
    let before = affinity::allowed().map_err(|error| error.to_string())?;
    affinity::pin(&CpuSet::one(cpu)).map_err(|error| error.to_string())?;
    let lines = 1usize << (bytes / 64).ilog2();
    let mut memory = Mapping::private(lines * 64, Pages::Huge, &CpuSet::default())
        .map_err(|error| format!("no memory: {error}"))?;
    let words = memory.words_mut();
    // x → 5x + c (c odd) modulo a power of two passes every number once (Hull and Dobell); the
    // multiplication scatters neighbours, an odd factor on top of it breaks up the low bits' short
    // periods.
    let scattered = |x: usize| x.wrapping_mul(0x9e37_79b1) & (lines - 1);
    let mut x = 0usize;
    for _ in 0..lines {
        let next = (x.wrapping_mul(5).wrapping_add(0x2545_f491)) & (lines - 1);
        words[scattered(x) * LINE_WORDS] = (scattered(next) * LINE_WORDS) as u64;
        x = next;
    }
    let words = &*words;
    let loads = LOADS.max(lines);
    let mut at = 0u64;
    let mut walk = |loads: usize| {
        for _ in 0..loads / 16 {
            for _ in 0..16 {
                at = words[at as usize];
            }
        }
        std::hint::black_box(at);
    };
    walk(lines.max(1 << 16));
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let begin = clock.now();
            walk(loads / 16);
            (clock.now() - begin) / (loads / 256 * 16) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    affinity::pin(&before).map_err(|error| error.to_string())?;
    Ok(times[2])
}
