//! Single latencies as a histogram.

use anyhow::Context;
use hdrhistogram::Histogram as Buckets;

use crate::model::Histogram;

/// One nanosecond to an hour in three digits: finer than any latency repeats.
pub fn histogram(latencies_ns: impl Iterator<Item = u64>) -> anyhow::Result<Histogram> {
    let mut buckets =
        Buckets::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).context("cannot make a histogram")?;
    for ns in latencies_ns {
        buckets.saturating_record(ns);
    }
    let recorded = buckets.iter_recorded();
    let (ns, count) = recorded.map(|value| (value.value_iterated_to(), value.count_at_value())).unzip();
    Ok(Histogram { ns, count })
}
