//! Latencies as counts in buckets, cheap to record: 128 to an octave of nanoseconds, so that no
//! bucket is wider than 0.8 %. All percentiles come from these, with this error at most.

use std::sync::atomic::Ordering;

use model::Histogram;
use sys::crew::{Record, Slots};

const BITS: u32 = 7;
const SUB: u64 = 1 << BITS;
/// Latencies up to 2^42 ns (73 minutes); what is longer counts as that.
const OCTAVES: u64 = 42 - BITS as u64 + 1;

const COUNTS: usize = (OCTAVES * SUB) as usize;

pub struct Buckets {
    counts: Vec<u64>,
    longest: u64,
}

fn index(ns: u64) -> usize {
    let ns = ns.min((1 << 42) - 1);
    if ns < SUB {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - BITS;
    (u64::from(shift) * SUB + (ns >> shift)) as usize
}

/// The largest latency of a bucket, ns.
fn upper(index: usize) -> u64 {
    let index = index as u64;
    match index < 2 * SUB {
        true => index,
        false => {
            let shift = index / SUB - 1;
            ((index % SUB + SUB + 1) << shift) - 1
        }
    }
}

impl Buckets {
    pub fn new() -> Buckets {
        Buckets { counts: vec![0; COUNTS], longest: 0 }
    }

    #[inline]
    pub fn record(&mut self, ns: f64) {
        // A clock that stepped back makes zero.
        self.record_ns(ns as u64);
    }

    #[inline]
    pub fn record_ns(&mut self, ns: u64) {
        self.counts[index(ns)] += 1;
        self.longest = self.longest.max(ns);
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.longest = 0;
    }

    /// Adds the latencies of another one.
    pub fn add(&mut self, other: &Buckets) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        self.longest = self.longest.max(other.longest);
    }

    /// Adds these latencies to buckets that several processes fill at once.
    pub fn add_to(&self, shared: &Slots<Buckets>) {
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            shared.word(0, index).fetch_add(*count, Ordering::Relaxed);
        }
        shared.word(0, COUNTS).fetch_max(self.longest, Ordering::Relaxed);
    }

    /// The values are upper bounds of buckets; the longest latency is exact.
    pub fn histogram(&self) -> Histogram {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let (ns, count) = filled.map(|(index, count)| (upper(index).min(self.longest), *count)).unzip();
        Histogram { ns, count }
    }
}

impl Record for Buckets {
    const WORDS: usize = COUNTS + 1;

    fn words(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().copied().chain([self.longest])
    }

    fn from_words(mut next: impl FnMut() -> u64) -> Buckets {
        Buckets { counts: (0..COUNTS).map(|_| next()).collect(), longest: next() }
    }
}

/// Single latencies as a histogram.
pub fn histogram(latencies_ns: impl IntoIterator<Item = u64>) -> Histogram {
    let mut buckets = Buckets::new();
    latencies_ns.into_iter().for_each(|ns| buckets.record_ns(ns));
    buckets.histogram()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_in_order_and_without_gaps() {
        for index_of in 1..COUNTS {
            let (below, last) = (upper(index_of - 1), upper(index_of));
            assert!(below < last, "{index_of}");
            assert_eq!((index(below + 1), index(last)), (index_of, index_of));
            assert!((last - below) as f64 <= 1.0_f64.max(last as f64 / 127.0), "{index_of}");
        }
        assert_eq!(index(u64::MAX), COUNTS - 1);
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_truth_and_the_longest_is_exact() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut all: Vec<f64> = (0..100_000).map(|_| 1e4 * (8.0 * random.f64()).exp()).collect();
        let (mut one, mut other) = (Buckets::new(), Buckets::new());
        for (number, ns) in all.iter().enumerate() {
            if number % 3 == 0 { one.record(*ns) } else { other.record(*ns) }
        }
        one.add(&other);
        let histogram = one.histogram();
        assert_eq!(histogram.total(), 100_000);
        all.sort_by(f64::total_cmp);
        for q in [0.5, 0.9, 0.99, 0.999, 0.9999] {
            let truth = all[(q * 1e5) as usize - 1];
            let told = histogram.quantile(q).expect("there are some");
            assert!((truth.floor()..=truth * 1.008 + 1.0).contains(&told), "{q}: {told} of {truth}");
        }
        assert_eq!(histogram.quantile(1.0), all.last().map(|longest| longest.floor()));
        one.clear();
        assert_eq!(one.histogram(), Histogram::default());
        one.record(-5.0);
        assert_eq!(one.histogram(), Histogram { ns: vec![0], count: vec![1] });
    }

    #[test]
    fn latencies_that_several_processes_counted_are_added_up() {
        let shared = Slots::new(1, 1).expect("shared memory");
        for latencies in [[5, 5, 1000], [5, 70_000, 1000]] {
            let mut buckets = Buckets::new();
            latencies.into_iter().for_each(|ns| buckets.record_ns(ns));
            buckets.add_to(&shared);
        }
        let all = shared.get(0, 0).histogram();
        assert_eq!(all, histogram([5, 5, 1000, 5, 70_000, 1000]));
        assert_eq!((all.ns[0], all.ns[2], all.count), (5, 70_000, vec![3, 2, 1]));
    }
}
