//! Latencies of messages, counted in buckets: a receiver may not keep millions of numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Histogram;
use sys::shared::SharedWords;

/// Bytes at a message's beginning that hold when it was sent.
pub const STAMP: usize = 8;

/// Buckets an octave: 3 % wide.
const FINE: u32 = 5;
/// From 1 ns on; the last octave holds all that is above 2^40 ns, 18 minutes.
const OCTAVES: usize = 36;
pub const BUCKETS: usize = OCTAVES << FINE;

/// One receiver's own counts.
pub struct Counts(Vec<u32>);

impl Counts {
    pub fn new() -> Counts {
        Counts(vec![0; BUCKETS])
    }

    pub fn count(&mut self, ns: u64) {
        if let Some(count) = self.0.get_mut(bucket(ns)) {
            *count += 1;
        }
    }

    /// Adds them to those that all share, from this word on.
    pub fn add_to(&self, words: &SharedWords, first: usize) {
        for (index, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            words.word(first + index).fetch_add(u64::from(*count), Ordering::Relaxed);
        }
    }
}

/// What all have counted.
pub fn histogram(words: &SharedWords, first: usize) -> Histogram {
    let count = |index: usize| AtomicU64::load(words.word(first + index), Ordering::Relaxed);
    let counted = (0..BUCKETS).map(|index| (upper(index), count(index))).filter(|(_, count)| *count > 0);
    let (ns, count) = counted.unzip();
    Histogram { ns, count }
}

/// Below 32 ns a bucket each; then 32 an octave.
fn bucket(ns: u64) -> usize {
    let octave = ns.max(1).ilog2();
    match octave < FINE {
        true => ns as usize,
        false => {
            let within = (ns >> (octave - FINE)) as usize - (1 << FINE);
            (((octave - FINE + 1) as usize) << FINE).saturating_add(within).min(BUCKETS - 1)
        }
    }
}

/// The largest latency that belongs into a bucket, ns.
fn upper(bucket: usize) -> u64 {
    let (octave, within) = ((bucket >> FINE) as u32, (bucket & ((1 << FINE) - 1)) as u64);
    match octave {
        0 => within,
        octave => (((1 << FINE) + within + 1) << (octave - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_belongs_into_them() {
        for ns in (0..100_000)
            .chain((17..40).flat_map(|octave| [(1u64 << octave) - 1, 1 << octave, (1 << octave) + 12_345]))
        {
            let index = bucket(ns);
            assert!(index < BUCKETS && upper(index) >= ns, "{ns} in {index}: {}", upper(index));
            assert!(index == 0 || upper(index - 1) < ns, "{ns} belongs below {index}");
            assert!(upper(index) as f64 <= ns as f64 * 1.04 + 1.0, "{ns}: {}", upper(index));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_several_counted_is_added_up() {
        let words = SharedWords::new(BUCKETS + 3).expect("shared memory");
        for latencies in [[5, 5, 1000], [5, 70_000, 1000]] {
            let mut counts = Counts::new();
            latencies.into_iter().for_each(|ns| counts.count(ns));
            counts.add_to(&words, 3);
        }
        let all = histogram(&words, 3);
        assert_eq!((all.total(), all.count), (6, vec![3, 2, 1]));
        assert_eq!(all.ns[0], 5);
        assert!((1000..1040).contains(&all.ns[1]) && (70_000..73_000).contains(&all.ns[2]));
    }
}
