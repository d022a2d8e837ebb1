//! Building blocks of benchmark declarations: parameters, metrics and views.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use model::vocabulary::{MetricId, ParamId};
use model::{Better, Form, Metric, View};

/// A declared parameter.
pub struct Param {
    pub name: ParamId,
    pub about: &'static str,
    pub range: Range,
}

pub enum Range {
    Int {
        min: i64,
        max: i64,
    },
    Bytes {
        min: i64,
        max: i64,
    },
    Choice(&'static [&'static str]),
    /// Any text.
    Word,
}

impl Param {
    /// A whole number.
    pub const fn int(name: ParamId, about: &'static str, range: RangeInclusive<i64>) -> Param {
        Param { name, about, range: Range::Int { min: *range.start(), max: *range.end() } }
    }

    /// A number of bytes.
    pub const fn bytes(name: ParamId, about: &'static str, range: RangeInclusive<i64>) -> Param {
        Param { name, about, range: Range::Bytes { min: *range.start(), max: *range.end() } }
    }

    /// The number of a CPU.
    pub const fn cpu(name: ParamId, about: &'static str) -> Param {
        Param::int(name, about, 0..=1 << 20)
    }

    pub const fn choice(name: ParamId, about: &'static str, choices: &'static [&'static str]) -> Param {
        Param { name, about, range: Range::Choice(choices) }
    }

    pub const fn word(name: ParamId, about: &'static str) -> Param {
        Param { name, about, range: Range::Word }
    }
}

impl Range {
    pub fn holds(&self, value: &model::Value) -> bool {
        match self {
            Range::Int { min, max } | Range::Bytes { min, max } => {
                value.int().is_some_and(|value| (*min..=*max).contains(&value))
            }
            Range::Choice(choices) => value.text().is_some_and(|text| choices.contains(&text)),
            Range::Word => value.text().is_some(),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Int { min, max } => write!(f, "{}–{}", grouped(*min), grouped(*max)),
            Range::Bytes { min, max } => write!(f, "{}–{}", size(*min), size(*max)),
            Range::Choice(choices) => f.write_str(&choices.join(", ")),
            Range::Word => f.write_str("any word"),
        }
    }
}

/// A number with commas between thousands: `1,048,576`.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// Bytes in the largest unit that divides them: `512 B`, `64 TiB`.
fn size(bytes: i64) -> String {
    let power = bytes.max(1).trailing_zeros() / 10;
    format!("{} {}", bytes >> (10 * power), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][power as usize])
}

/// A time for each piece of work, in nanoseconds.
pub const fn latency_ns(name: MetricId, title: &'static str) -> Metric {
    Metric::new(name, title, "ns", Better::Lower, Form::TimePerWork { scale: 1.0 })
}

/// The same in microseconds.
pub const fn latency_us(name: MetricId, title: &'static str) -> Metric {
    Metric::new(name, title, "us", Better::Lower, Form::TimePerWork { scale: 1e-3 })
}

/// A quantile of the samples' histograms, in microseconds.
pub const fn quantile_us(name: MetricId, title: &'static str, q: f64) -> Metric {
    Metric::new(name, title, "us", Better::Lower, Form::Quantile { q, scale: 1e-3 })
}

/// Operations a second; the samples' work counts operations.
pub const fn per_second(name: MetricId, title: &'static str) -> Metric {
    Metric::new(name, title, "1/s", Better::Higher, Form::WorkPerTime { scale: 1e9 })
}

/// A bandwidth; the samples' work counts bytes.
pub const fn gb_per_s(name: MetricId, title: &'static str) -> Metric {
    Metric::new(name, title, "GB/s", Better::Higher, Form::WorkPerTime { scale: 1.0 })
}

/// A clock; the samples' work counts cycles.
pub const fn ghz(name: MetricId, title: &'static str) -> Metric {
    Metric::new(name, title, "GHz", Better::Higher, Form::WorkPerTime { scale: 1.0 })
}

/// A value that is not the headline.
pub const fn value(name: MetricId, title: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric::new(name, title, unit, better, Form::Value).aside()
}

/// A value that is not the headline and neither good nor bad.
pub const fn note(name: MetricId, title: &'static str, unit: &'static str) -> Metric {
    value(name, title, unit, Better::Neither)
}

/// A figure for rules and for readers who ask for more.
pub const fn fact(name: MetricId, title: &'static str, unit: &'static str) -> Metric {
    note(name, title, unit).detail()
}

/// A curve over a parameter on a linear axis.
pub const fn curve(x: ParamId) -> View {
    View::Curve { x: Cow::Borrowed(x.as_str()), log: false }
}

/// A curve with logarithmic axes.
pub const fn log_curve(x: ParamId) -> View {
    View::Curve { x: Cow::Borrowed(x.as_str()), log: true }
}

pub const fn matrix(row: ParamId, column: ParamId) -> View {
    View::Matrix { row: Cow::Borrowed(row.as_str()), column: Cow::Borrowed(column.as_str()) }
}

/// One metric over another.
pub const fn trade(x: MetricId, y: MetricId) -> View {
    View::Trade { x: Cow::Borrowed(x.as_str()), y: Cow::Borrowed(y.as_str()) }
}
