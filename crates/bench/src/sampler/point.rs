//! What samples measure, and how long they are.

use model::Params;
use model::vocabulary::MetricId;

/// The point and metric of samples.
pub struct Point {
    pub params: Params,
    pub metric: MetricId,
    /// Further metrics that read the same samples (the same latency in cycles).
    pub also: &'static [MetricId],
    /// A metric of the same samples whose work is this many times as much (bytes on the bus).
    pub times: Option<(MetricId, f64)>,
    /// Work of one iteration, in the metric's unit of work.
    pub work: f64,
    /// Sample length in units of the usual one: slow or ragged operations need longer samples.
    pub stretch: f64,
}

impl Point {
    pub fn new(metric: MetricId, work: f64) -> Point {
        Point { params: Params::new(), metric, also: &[], times: None, work, stretch: 1.0 }
    }

    pub fn also(mut self, metrics: &'static [MetricId]) -> Point {
        self.also = metrics;
        self
    }

    pub fn times(mut self, metric: MetricId, factor: f64) -> Point {
        self.times = Some((metric, factor));
        self
    }

    pub(super) fn metrics(&self) -> Vec<String> {
        [self.metric].iter().chain(self.also).map(|metric| metric.to_string()).collect()
    }

    pub fn at(mut self, params: Params) -> Point {
        self.params = params;
        self
    }

    pub fn stretch(mut self, stretch: f64) -> Point {
        self.stretch = stretch;
        self
    }
}
