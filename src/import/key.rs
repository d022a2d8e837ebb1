//! Series keys taken apart: a mapping names its target as reports and people do, by the key.

use std::collections::BTreeMap;

use crate::model::{Beside, Case, Pages, Params, Placement, Value};

/// What a key says.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed {
    pub case: Case,
    pub point: Params,
    pub metric: String,
}

/// A key of the form `bench@placement+pages?param=value&…/point=value&…#metric`, without escapes and knobs, as mappings
/// write it; `None` where it has another form. The placement has a name and no seats: where it was is not known.
pub fn keyed(key: &str) -> Option<Keyed> {
    let (rest, metric) = key.split_once('#')?;
    let (rest, point) = rest.split_once('/').unwrap_or((rest, ""));
    let (rest, params) = rest.split_once('?').unwrap_or((rest, ""));
    let (bench, place) = rest.split_once('@')?;
    let (name, pages) = match place.split_once('+') {
        None => (place, Pages::AsGiven),
        Some((name, "huge-pages")) => (name, Pages::Huge),
        Some((name, "base-pages")) => (name, Pages::Base),
        Some(_) => return None,
    };
    let case = Case {
        bench: bench.to_string().into(),
        placement: Placement {
            name: name.to_string().into(),
            seats: Vec::new(),
            pages,
            beside: Beside::Idle,
            neighbours: Default::default(),
        },
        params: values(params)?,
        knobs: BTreeMap::new(),
        inputs: BTreeMap::new(),
    };
    Some(Keyed { case, point: values(point)?, metric: metric.to_string() })
}

fn values(text: &str) -> Option<Params> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let value = |text: &str| text.parse().map_or_else(|_| Value::Text(text.to_string()), Value::Int);
    pairs.map(|pair| pair.split_once('=').map(|(name, text)| (name.to_string(), value(text)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        for key in [
            "syscall.getpid@one-cpu#latency",
            "memory.latency@one-cpu+huge-pages?order=stride&stride=128/bytes=1024#latency",
            "sched.context-switch@free/kb=16&processes=2#latency",
        ] {
            let keyed = keyed(key).expect("a key");
            assert_eq!(keyed.case.series_key(&keyed.point, &keyed.metric), key);
        }
        for wrong in ["", "a#b", "a@b", "a@b+c#d", "a@b?c#d"] {
            assert_eq!(keyed(wrong), None, "{wrong}");
        }
    }
}
