//! What a fleet keeps of a host, small: equal words stand once for all hosts, and so does the list
//! of the metrics that a result has. A value takes sixteen bytes.

use std::collections::HashSet;
use std::sync::Arc;

/// A label and its value.
pub type LabelValue = Arc<(String, String)>;

/// Labels with their values, by label: a host's make-up, or what its owner calls it by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSet(Box<[LabelValue]>);

impl LabelSet {
    pub fn get(&self, label: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|word| word.0.as_str().cmp(label)).ok()?;
        Some(&self.0[place].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|word| (word.0.as_str(), word.1.as_str()))
    }
}

/// A value as a logarithm, turned so that more is better, with the better end of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    pub metric: u32,
    pub ln: f64,
    /// The better end of its 95 % interval; the value itself where it has none.
    pub best: f64,
    /// Half-width of the interval, as a share; 0 where it has none.
    pub half: f64,
}

/// A value as it is kept: how far its interval reaches needs fewer digits than it does.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StoredValue {
    ln: f64,
    rise: f32,
    half: f32,
}

/// The values of a result, by metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    /// Places of the metrics, rising; the same list for all results that have the same ones.
    metrics: Arc<[u32]>,
    kept: Box<[StoredValue]>,
}

impl Values {
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        self.between(0, u32::MAX)
    }

    /// Those of the metrics from one place to before another.
    pub fn between(&self, from: u32, to: u32) -> impl Iterator<Item = Value> {
        let first = self.metrics.partition_point(|metric| *metric < from);
        let all = self.metrics[first..].iter().zip(&self.kept[first..]);
        all.take_while(move |(metric, _)| **metric < to).map(|(metric, kept)| Value {
            metric: *metric,
            ln: kept.ln,
            best: kept.ln + f64::from(kept.rise),
            half: f64::from(kept.half),
        })
    }

    pub fn of(&self, metric: u32) -> Option<Value> {
        self.between(metric, metric.saturating_add(1)).next()
    }

    /// Whether two results hold the very same numbers.
    pub fn same(&self, other: &Values) -> bool {
        self.metrics == other.metrics && self.bits().eq(other.bits())
    }

    /// The numbers alone, for a checksum.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.kept.iter().map(|kept| kept.ln.to_bits())
    }

    pub fn metrics(&self) -> &Arc<[u32]> {
        &self.metrics
    }
}

/// What stands once for all hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    words: HashSet<LabelValue>,
    metrics: HashSet<Arc<[u32]>>,
}

impl Shared {
    /// The later value of a repeated label counts.
    pub fn words(&mut self, told: impl IntoIterator<Item = (String, String)>) -> LabelSet {
        let mut found: Vec<LabelValue> = Vec::new();
        for pair in told {
            let word = match self.words.get(&pair) {
                Some(known) => Arc::clone(known),
                None => {
                    let word = Arc::new(pair);
                    self.words.insert(Arc::clone(&word));
                    word
                }
            };
            match found.binary_search_by(|known| known.0.cmp(&word.0)) {
                Ok(place) => found[place] = word,
                Err(place) => found.insert(place, word),
            }
        }
        LabelSet(found.into_boxed_slice())
    }

    /// The first value of a repeated metric counts.
    pub fn values(&mut self, mut all: Vec<Value>) -> Values {
        all.sort_by_key(|value| value.metric);
        all.dedup_by_key(|value| value.metric);
        let metrics: Vec<u32> = all.iter().map(|value| value.metric).collect();
        let metrics = match self.metrics.get(metrics.as_slice()) {
            Some(known) => Arc::clone(known),
            None => {
                let own: Arc<[u32]> = metrics.into();
                self.metrics.insert(Arc::clone(&own));
                own
            }
        };
        let kept = |value: &Value| StoredValue {
            ln: value.ln,
            rise: (value.best - value.ln) as f32,
            half: value.half as f32,
        };
        Values { metrics, kept: all.iter().map(kept).collect() }
    }
}
