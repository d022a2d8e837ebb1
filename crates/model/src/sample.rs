//! Timed windows, kept raw and in columns.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::vocabulary::MetricId;
use super::{Form, PagePlaces, Params, Progress};

/// A column of numbers, one a window; a column that is the same throughout is written once.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Packed {
    Same(f64),
    Each(Vec<f64>),
}

/// Read as it comes: what serde derives keeps every number four times as large first.
impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Packed, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Packed;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or a list of numbers")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Packed, E> {
                Ok(Packed::Same(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Packed, E> {
                Ok(Packed::Same(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Packed, E> {
                Ok(Packed::Same(value as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Packed, A::Error> {
                let mut values = Vec::with_capacity(list.size_hint().unwrap_or(0).min(64));
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                values.shrink_to_fit();
                Ok(Packed::Each(values))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl Packed {
    pub fn pack(values: Vec<f64>) -> Packed {
        match values.first() {
            Some(first) if values.iter().all(|value| value == first) => Packed::Same(*first),
            _ => Packed::Each(values),
        }
    }

    pub fn get(&self, index: usize) -> Option<f64> {
        match self {
            Packed::Same(value) => Some(*value),
            Packed::Each(values) => values.get(index).copied(),
        }
    }
}

/// What moved while a window ran: one column a covariate, absent where it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Covariates {
    /// CPU at the window's start and end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_start: Option<Packed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_end: Option<Packed>,
    /// Voluntary and involuntary context switches of the measuring task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary: Option<Packed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<Packed>,
    /// Page faults: minor and major together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Packed>,
    /// Time spent runnable but waiting for a CPU, ns (schedstat run delay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<Packed>,
    /// The measured CPU's stolen time in the window, ms (10 ms steps), where the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ms: Option<Packed>,
    /// Core clock right after the window, GHz, from a short dependent chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<Packed>,
    /// Core cycles a round of a short loop of taken branches right after the window: about 1 where
    /// the core fetches for one thread alone, 2 where another thread of the core is busy, also one
    /// that a hypervisor does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_cycles: Option<Packed>,
}

impl Covariates {
    /// A covariate as people call it, by its name here or in an analysis.
    pub fn words(name: &str) -> String {
        match name {
            "clock_ghz" => "core clock".to_string(),
            "fetch_cycles" => "share of the core that another thread takes".to_string(),
            "wait_ns" => "time the task waited for a CPU".to_string(),
            "involuntary" => "involuntary context switches".to_string(),
            "voluntary" => "voluntary context switches".to_string(),
            "faults" => "page faults".to_string(),
            "steal_ms" | "steal time" => "steal time".to_string(),
            "cpu_start" | "cpu_end" => "CPU".to_string(),
            "background" => "CPU time of other processes".to_string(),
            other => other.replace('_', " "),
        }
    }

    /// Name and column of every covariate that was recorded.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, &Packed)> {
        [
            ("cpu_start", &self.cpu_start),
            ("cpu_end", &self.cpu_end),
            ("voluntary", &self.voluntary),
            ("involuntary", &self.involuntary),
            ("faults", &self.faults),
            ("wait_ns", &self.wait_ns),
            ("steal_ms", &self.steal_ms),
            ("clock_ghz", &self.clock_ghz),
            ("fetch_cycles", &self.fetch_cycles),
        ]
        .into_iter()
        .filter_map(|(name, column)| Some((name, column.as_ref()?)))
    }
}

/// This many latencies must lie beyond a quantile for it to be reported.
pub const BEYOND: f64 = 10.0;

/// Whether this many latencies back the quantile `q`, 0 to 1.
pub fn backs(total: u64, q: f64) -> bool {
    // Shares like 1 - 0.999 are not exact: 10 of 10,000 must count as 10.
    (1.0 - q) * total as f64 >= BEYOND - 1e-6
}

/// A histogram of nanoseconds: rising values with their counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    pub ns: Vec<u64>,
    pub count: Vec<u64>,
}

impl Histogram {
    /// All entries; a damaged file may claim more than can be counted.
    pub fn total(&self) -> u64 {
        self.count.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The smallest recorded value at or below which a share `q` of all entries lies.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let wanted = (q * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        for (ns, count) in self.ns.iter().zip(&self.count) {
            seen = seen.saturating_add(*count);
            if seen >= wanted {
                return Some(*ns as f64);
            }
        }
        None
    }
}

/// The windows of one point of one visit, in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub point: Params,
    /// Names of the metrics that these windows carry (several read one histogram).
    pub metrics: Vec<String>,
    /// The first `warm_up` windows warmed caches, predictors and pages: marked, kept, not counted.
    #[serde(default)]
    pub warm_up: usize,
    /// Work done in each window, in the metric's own unit of work (bytes, operations, cycles).
    pub work: Packed,
    /// Length of each window, ns. Its length is the number of windows.
    pub ns: Vec<f64>,
    #[serde(default)]
    pub beside: Covariates,
    /// One histogram a window, for metrics that are quantiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// Relative deviation from linearity that calibration met: `|t(2n) / 2t(n) - 1|`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linearity: Option<f64>,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// The same windows for another metric, whose work is `factor` times as much.
    pub fn times(&self, metric: MetricId, factor: f64) -> Samples {
        let work = match &self.work {
            Packed::Same(work) => Packed::Same(work * factor),
            Packed::Each(works) => Packed::Each(works.iter().map(|work| work * factor).collect()),
        };
        Samples { metrics: vec![metric.to_string()], work, ..self.clone() }
    }

    /// The metric's value in each window. A window whose numbers make none gives no finite one:
    /// zero or negative time (a clock that ran backwards), zero work in a latency, no histogram.
    pub fn values(&self, form: Form) -> Vec<f64> {
        let amount = |value: f64| if value < 0.0 { f64::NAN } else { value };
        (0..self.len())
            .map(|index| {
                let (work, ns) = (self.work.get(index).unwrap_or(f64::NAN), self.ns[index]);
                match form {
                    Form::WorkPerTime { scale } => amount(work) / amount(ns) * scale,
                    Form::TimePerWork { scale } => amount(ns) / amount(work) * scale,
                    Form::CyclesPerWork => {
                        let clock = self.beside.clock_ghz.as_ref().and_then(|clock| clock.get(index));
                        amount(ns) * amount(clock.unwrap_or(f64::NAN)) / amount(work)
                    }
                    Form::Value => work,
                    Form::Quantile { q, scale } => {
                        let quantile = self.histograms.get(index).and_then(|h| h.quantile(q));
                        quantile.map_or(f64::NAN, |ns| ns * scale)
                    }
                }
            })
            .collect()
    }
}

/// What a whole visit's process met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessFacts {
    /// Share of the measured memory that huge pages backed, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_share: Option<f64>,
    /// Bytes of memory under measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Share of the measured memory that was resident when measuring began, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_share: Option<f64>,
    /// Share of the measured memory that lies on other NUMA nodes than it was meant for, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_share: Option<f64>,
    /// Wall time of the windows in which the measuring process never went to sleep, ms, and for how
    /// much of it that had no CPU: others had it, or a CPU quota stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_cpu_ms: Option<f64>,
    /// Of that, the time in the run queue, in which Linux counts pauses by a quota, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<f64>,
    /// CPU migrations of the measuring task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// The kernel variant that ran (`avx512`, `avx2`, `sse2`, `neon`, `portable`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Where the measured memory lies physically: an entry for each set of arrays of a rate
    /// component, or for each chunk of a map of memory. Empty where the kernel hides addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PagePlaces>,
    /// What moved memory of the host meanwhile; absent where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// How the copies of a rate component went on, an entry for each piece of work; empty of those
    /// that note no steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<Progress>,
    /// Remarks of the benchmark itself about this visit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What moved memory of the whole host, by the kernel's names of its counters (/proc/vmstat, and
/// `ksm_pages_sharing`); a name that is missing is not counted here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moves {
    /// While memory was taken.
    pub taking: BTreeMap<String, f64>,
    /// While it was looked at.
    pub looking: BTreeMap<String, f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_histogram() {
        let histogram = Histogram { ns: vec![10, 20, 100], count: vec![50, 49, 1] };
        assert_eq!(histogram.quantile(0.5), Some(10.0));
        assert_eq!(histogram.quantile(0.51), Some(20.0));
        assert_eq!(histogram.quantile(0.99), Some(20.0));
        assert_eq!(histogram.quantile(1.0), Some(100.0));
        assert_eq!(Histogram::default().quantile(0.5), None);
        let endless = Histogram { ns: vec![1, 2], count: vec![u64::MAX, u64::MAX] };
        assert_eq!((endless.total(), endless.quantile(0.5)), (u64::MAX, Some(1.0)));
    }

    #[test]
    fn a_column_that_never_changes_is_written_once() {
        let samples = Samples {
            point: Params::new(),
            metrics: vec!["rate".into()],
            warm_up: 0,
            work: Packed::pack(vec![1000.0, 1000.0]),
            ns: vec![500.0, 250.0],
            beside: Covariates::default(),
            histograms: vec![],
            linearity: None,
        };
        assert_eq!(samples.work, Packed::Same(1000.0));
        assert_eq!(samples.values(Form::WorkPerTime { scale: 1.0 }), vec![2.0, 4.0]);
        assert_eq!(samples.values(Form::TimePerWork { scale: 1.0 }), vec![0.5, 0.25]);
        assert_eq!(Packed::pack(vec![1.0, 2.0]), Packed::Each(vec![1.0, 2.0]));
        // No clock runs backwards and no work is undone: such windows give nothing to believe.
        let backwards = Samples { ns: vec![-500.0, 0.0], ..samples };
        for form in [Form::WorkPerTime { scale: 1.0 }, Form::TimePerWork { scale: 1.0 }] {
            assert!(!backwards.values(form)[0].is_finite());
        }
        assert!(!backwards.values(Form::WorkPerTime { scale: 1.0 })[1].is_finite());
    }
}
