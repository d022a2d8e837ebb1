//! What a number means: the catalogue that a run file carries, so that reports need no registry.

use std::borrow::Cow;

use crate::vocabulary::MetricId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    Higher,
    Lower,
    /// A fact with no better side (a share, a clock).
    Neither,
}

/// How a metric's value comes from a sample's work and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `work / ns * scale`: bandwidth (bytes/ns = GB/s), rates, clocks (cycles/ns = GHz).
    WorkPerTime { scale: f64 },
    /// `ns / work * scale`: latency.
    TimePerWork { scale: f64 },
    /// `ns * clock / work`: latency in core cycles, by the core clock that was measured right after
    /// the same window.
    CyclesPerWork,
    /// The sample's work is the value itself (a share, a count).
    Value,
    /// Quantile `q` (0..1) of the sample's histogram of nanoseconds, times `scale`.
    Quantile { q: f64, scale: f64 },
}

/// One measured quantity of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    pub name: Cow<'static, str>,
    pub title: Cow<'static, str>,
    /// The unit of the value: `GB/s` (10^9 bytes), `ns`, `1/s`, `GHz`, `%`.
    pub unit: Cow<'static, str>,
    pub better: Better,
    pub form: Form,
    /// The stop rule looks at headline metrics only; the others ride along.
    #[serde(default)]
    pub headline: bool,
    /// Left out of wide tables: evidence for rules and for closer reading. Files and the table of
    /// all series have it.
    #[serde(default)]
    pub detail: bool,
}

impl Metric {
    /// A headline metric.
    pub const fn new(
        name: MetricId,
        title: &'static str,
        unit: &'static str,
        better: Better,
        form: Form,
    ) -> Metric {
        Metric {
            name: Cow::Borrowed(name.as_str()),
            title: Cow::Borrowed(title),
            unit: Cow::Borrowed(unit),
            better,
            form,
            headline: true,
            detail: false,
        }
    }

    /// The same metric, riding along.
    pub const fn aside(mut self) -> Metric {
        self.headline = false;
        self
    }

    /// The same metric, riding along where only files and the table of all series show it.
    pub const fn detail(mut self) -> Metric {
        self.headline = false;
        self.detail = true;
        self
    }
}

/// How a benchmark's points are shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// A row a series.
    Table,
    /// A curve over one point parameter; `log`: both axes logarithmic, ticks as powers of two for
    /// bytes.
    Curve { x: Cow<'static, str>, log: bool },
    /// A matrix over two parameters, of the cases or of their points.
    Matrix { row: Cow<'static, str>, column: Cow<'static, str> },
    /// A row a case, a column a metric; cases that are impossible here have a row that says why.
    Wide,
    /// One metric over another, a line a case through its points in their order.
    Trade { x: Cow<'static, str>, y: Cow<'static, str> },
}

/// A benchmark as the run file's catalogue describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Title {
    pub id: Cow<'static, str>,
    pub title: Cow<'static, str>,
    /// What it measures, and how.
    pub about: Cow<'static, str>,
    /// How to read the number and what moves it.
    pub reading: Cow<'static, str>,
    pub metrics: Vec<Metric>,
    pub view: View,
}
