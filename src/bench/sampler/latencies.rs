//! Single latencies as a histogram.

use anyhow::Context;
use hdrhistogram::Histogram as Buckets;

use super::Sampler;
use crate::model::{Covariates, Histogram, Packed, Params, Samples};

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

impl Sampler<'_> {
    /// Emits one histogram of latencies, of a window that the caller timed itself, with what moved meanwhile.
    pub fn histogram_beside(
        &mut self,
        metrics: &[&str],
        histogram: Histogram,
        ns: f64,
        beside: Covariates,
    ) -> anyhow::Result<()> {
        self.histogram_of(Params::new(), metrics, histogram, ns, beside)
    }

    /// The same at a point.
    pub fn histogram_at(
        &mut self,
        point: Params,
        metrics: &[&str],
        histogram: Histogram,
        ns: f64,
    ) -> anyhow::Result<()> {
        self.histogram_of(point, metrics, histogram, ns, Covariates::default())
    }

    fn histogram_of(
        &mut self,
        point: Params,
        metrics: &[&str],
        histogram: Histogram,
        ns: f64,
        beside: Covariates,
    ) -> anyhow::Result<()> {
        self.emit(Samples {
            point,
            metrics: metrics.iter().map(|metric| metric.to_string()).collect(),
            warm_up: 0,
            work: Packed::Same(histogram.total() as f64),
            ns: vec![ns],
            beside,
            histograms: vec![histogram],
            linearity: None,
        })
    }
}
