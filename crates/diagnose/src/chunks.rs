//! What a pass noted of chunks or regions of memory, and lists that it noted once.

use model::vocabulary::memory_map as ids;
use model::vocabulary::{MetricId, ParamId};
use model::{Form, Params, Value, Visit};

/// A CPU, node or chunk number among parameters; `None` if absent or negative.
pub(super) fn index(params: &Params, name: ParamId) -> Option<u32> {
    params.get(name).and_then(Value::int).and_then(|number| u32::try_from(number).ok())
}

/// The counted values of each chunk that has some.
pub(super) fn chunk_values(visit: &Visit, metric: MetricId, form: Form) -> Vec<(usize, Vec<f64>)> {
    let mut all: Vec<(usize, Vec<f64>)> = Vec::new();
    for samples in visit.samples.iter().filter(|samples| samples.metrics == [metric]) {
        let Some(chunk) = index(&samples.point, ids::param::CHUNK) else { continue };
        all.push((chunk as usize, samples.values(form).get(samples.warm_up..).unwrap_or_default().to_vec()));
    }
    all.sort_by_key(|(chunk, _)| *chunk);
    all
}

/// The same where all have some.
pub(super) fn by_chunk(visit: &Visit, metric: MetricId, form: Form) -> Vec<Vec<f64>> {
    chunk_values(visit, metric, form).into_iter().map(|(_, values)| values).collect()
}

pub(super) const LATENCY: Form = Form::TimePerWork { scale: 1.0 };
pub(super) const BANDWIDTH: Form = Form::WorkPerTime { scale: 1.0 };

/// A list that a pass noted once.
pub(super) fn list(visit: &Visit, metric: MetricId) -> Vec<f64> {
    listed(visit, metric, Form::Value)
}

/// The same of samples of another form.
pub(super) fn listed(visit: &Visit, metric: MetricId, form: Form) -> Vec<f64> {
    let own =
        visit.samples.iter().find(|samples| samples.metrics == [metric] && samples.point == Params::new());
    own.map_or(Vec::new(), |samples| samples.values(form))
}
