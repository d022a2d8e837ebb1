//! Single latencies as a histogram.

use super::Sampler;
use model::vocabulary::MetricId;
use model::vocabulary::network::metric::{
    LATENCY_MAX, LATENCY_P50, LATENCY_P90, LATENCY_P99, LATENCY_P999, LATENCY_P9999,
};
use model::{Covariates, Histogram, Packed, Params, Samples, backs};

/// The percentiles of rows with single latencies, by their metrics' names.
const QUANTILES: [(MetricId, f64); 5] = [
    (LATENCY_P50, 0.5),
    (LATENCY_P90, 0.9),
    (LATENCY_P99, 0.99),
    (LATENCY_P999, 0.999),
    (LATENCY_P9999, 0.9999),
];

/// The quantiles that this many latencies support, and the longest.
pub fn backed(total: u64) -> Vec<MetricId> {
    let enough = |(_, q): &&(MetricId, f64)| backs(total, *q);
    QUANTILES.iter().filter(enough).map(|(name, _)| *name).chain([LATENCY_MAX]).collect()
}

impl Sampler<'_> {
    /// Emits one histogram of latencies, of a sample that the caller timed itself, with what moved
    /// meanwhile.
    pub fn histogram_beside(
        &mut self,
        metrics: &[MetricId],
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
        metrics: &[MetricId],
        histogram: Histogram,
        ns: f64,
    ) -> anyhow::Result<()> {
        self.histogram_of(point, metrics, histogram, ns, Covariates::default())
    }

    fn histogram_of(
        &mut self,
        point: Params,
        metrics: &[MetricId],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_ten_latencies_beyond_them() {
        assert_eq!(backed(19), [LATENCY_MAX]);
        assert_eq!(backed(20), ["latency_p50", "latency_max"]);
        assert_eq!(backed(999), ["latency_p50", "latency_p90", "latency_max"]);
        assert_eq!(backed(1000).len(), 4);
        assert_eq!(backed(9_999).len(), 4);
        assert_eq!(backed(10_000)[3], "latency_p999");
        assert!(!backed(99_999).contains(&LATENCY_P9999));
        assert_eq!(backed(100_000)[4..], ["latency_p9999", "latency_max"]);
    }
}
