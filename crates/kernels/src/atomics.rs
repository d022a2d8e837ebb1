//! Atomic additions to a word that others may add to at the same time.
//!
//! These are Rust's atomics, as programs use them. On x86-64 the compiler (rustc 1.95) makes `lock
//! xadd` and `lock cmpxchg` with a count, a compare and a jump. On arm64 it makes `ldadd` and `cas`
//! (in a library function that tests for them, unless the target has them). The other instructions
//! execute in parallel with an atomic operation of 5 ns or more.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds 1 by fetch-and-add until the word has reached `target`; returns the number of additions.
#[inline(never)]
pub fn add_until(word: &AtomicU64, target: u64) -> u64 {
    let mut added = 0;
    loop {
        added += 1;
        if word.fetch_add(1, Ordering::SeqCst) + 1 >= target {
            return added;
        }
    }
}

/// Adds 1 by compare-and-swap until the word has reached `target`; returns the number of successes.
#[inline(never)]
pub fn swap_until(word: &AtomicU64, target: u64) -> u64 {
    let mut swapped = 0;
    let mut seen = word.load(Ordering::Relaxed);
    while seen < target {
        match word.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => {
                swapped += 1;
                seen += 1;
            }
            Err(other) => seen = other,
        }
    }
    swapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_among_several() {
        for until in [add_until, swap_until] {
            let word = AtomicU64::new(0);
            assert_eq!(until(&word, 1000), 1000);
            let counts: Vec<u64> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| until(&word, 100_000))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            let reached = word.load(Ordering::Relaxed);
            assert_eq!(counts.iter().sum::<u64>() + 1000, reached);
            assert!((100_000..100_004).contains(&reached), "each may add one too many: {reached}");
        }
    }
}
