//! Series keys taken apart: a mapping names its target as reports and people do, by the key.

use std::collections::BTreeMap;

use model::{Beside, Case, Pages, Params, Placement, Value};

/// What a key says.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed {
    pub case: Case,
    pub point: Params,
    pub metric: String,
}

/// A key of the form
/// `bench@placement+pages+beside?param=value&…!knob=value&…/point=value&…#metric`; `None` where it
/// has another form. The placement has a name and no seats: where it was is not known.
pub fn keyed(key: &str) -> Option<Keyed> {
    let (rest, metric) = key.split_once('#')?;
    let (rest, point) = rest.split_once('/').unwrap_or((rest, ""));
    let (rest, knobs) = rest.split_once('!').unwrap_or((rest, ""));
    let (rest, params) = rest.split_once('?').unwrap_or((rest, ""));
    let (bench, place) = rest.split_once('@')?;
    let mut words = place.split('+');
    let name = words.next()?;
    let (mut pages, mut beside) = (Pages::AsGiven, Beside::Idle);
    for word in words {
        match word {
            "huge-pages" => pages = Pages::Huge,
            "base-pages" => pages = Pages::Base,
            // The words of a key are the names of the kinds.
            other => {
                let kind = other.strip_prefix("beside-").unwrap_or(other);
                beside = serde_json::from_value(kind.into()).ok()?;
            }
        }
    }
    let case = Case {
        bench: bench.to_string().into(),
        placement: Placement { pages, beside, ..Placement::named(name.to_string()) },
        params: values(params)?,
        knobs: pairs(knobs)?.into_iter().collect(),
        inputs: BTreeMap::new(),
    };
    Some(Keyed { case, point: values(point)?, metric: metric.to_string() })
}

fn values(text: &str) -> Option<Params> {
    let value = |text: String| text.parse().map_or(Value::Text(text), Value::Int);
    Some(pairs(text)?.into_iter().map(|(name, text)| (name, value(text))).collect())
}

fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').and_then(|(name, text)| Some((name.to_string(), unescaped(text)?))))
        .collect()
}

/// `%2f` and its like are the characters that have a meaning in keys.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut whole = parts.next()?.to_string();
    for part in parts {
        let code = u32::from_str_radix(part.get(..2)?, 16).ok()?;
        whole.push(char::from_u32(code)?);
        whole.push_str(part.get(2..)?);
    }
    Some(whole)
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
            "memory.latency@one-cpu+huge-pages+beside-same-work?k=4&order=a%2fb%23c!slice_ns=3000000/bytes=1#x",
        ] {
            let keyed = keyed(key).expect("a key");
            assert_eq!(keyed.case.series_key(&keyed.point, &keyed.metric), key);
        }
        for wrong in ["", "a#b", "a@b", "a@b+c#d", "a@b?c#d", "a@b?c=%2#d", "a@b?c=%zz#d"] {
            assert_eq!(keyed(wrong), None, "{wrong}");
        }
    }
}
