//! The figures of one test. What its keys, wordings and notes share is said once; what each metric
//! is stands in a table of the format.

use crate::builder::{Builder, Meaning};
use crate::faults::short;
use crate::keyed;
use crate::percentiles::percentile_of;
use model::{Better, Params, Value};

/// Figures of one kind that are kept of a test: statistics of one series take time that grows with
/// the square of its values.
pub const MAX_EACH: usize = 200;

/// What a number is.
#[derive(Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub unit: &'static str,
    pub better: Better,
    /// Why it is not strictly what its name means.
    note: &'static str,
}

/// A row of a table of metrics. Percentiles have the row of their stem.
pub const fn metric(name: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric { name, unit, better, note: "" }
}

impl Metric {
    pub const fn noted(self, note: &'static str) -> Metric {
        Metric { note, ..self }
    }
}

/// Takes the figures of one test.
pub struct Figures<'b> {
    builder: &'b mut Builder,
    metrics: &'static [Metric],
    /// The program, or its test, in front of each wording.
    pub named: String,
    pub bench: String,
    pub params: Params,
    pub point: Params,
    /// What is said of a figure whose metric has no note.
    pub note: String,
    /// Wordings have the name of the metric as it is.
    pub is_named: bool,
}

impl<'b> Figures<'b> {
    pub fn new(
        builder: &'b mut Builder,
        metrics: &'static [Metric],
        named: impl Into<String>,
        bench: impl Into<String>,
    ) -> Figures<'b> {
        Figures {
            builder,
            metrics,
            named: named.into(),
            bench: bench.into(),
            params: Params::new(),
            point: Params::new(),
            note: String::new(),
            is_named: false,
        }
    }

    /// A size or a count along which figures are a curve, where it is known.
    pub fn point(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.point.set(name, Value::Int(value));
        }
    }

    /// What was met and is no figure.
    pub fn remark(&mut self, text: String) {
        self.builder.remarks.push(text);
    }

    /// A figure with a note of its own behind that of all.
    pub fn put_noted(&mut self, name: &str, note: &str, value: Result<f64, String>) {
        let all = self.note.clone();
        let notes = [all.as_str(), note].into_iter().filter(|note| !note.is_empty());
        self.note = notes.collect::<Vec<_>>().join("; ");
        self.put(name, value);
        self.note = all;
    }

    /// A figure, or why there is none.
    pub fn put(&mut self, name: &str, value: Result<f64, String>) {
        let stem = percentile_of(name).map_or(name, |(stem, _)| stem);
        let row = self.metrics.iter().find(|metric| metric.name == stem);
        let keyed = keyed(&format!("{}@free#{name}", self.bench));
        let (Some(row), Some(mut keyed)) = (row, keyed) else { return };
        keyed.case.params = self.params.clone();
        keyed.point = self.point.clone();
        let note = if row.note.is_empty() { self.note.clone() } else { row.note.to_string() };
        let words = if self.is_named { name.to_string() } else { name.replace('_', " ") };
        let wording = format!("{} {words}", self.named);
        let meaning = Meaning { keyed, wording, unit: row.unit.into(), better: row.better, note };
        match value {
            Ok(value) => self.builder.value(meaning, value),
            Err(why) => self.builder.missing(meaning, why),
        }
    }

    /// A figure that a run may print.
    pub fn some(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.put(name, Ok(value));
        }
    }

    /// What parts of a test came to; one part is the whole.
    pub fn each(&mut self, name: &str, values: &[f64]) {
        for value in values.iter().take(MAX_EACH).filter(|_| values.len() > 1) {
            self.put(name, Ok(*value));
        }
    }

    /// What a test moved in a second.
    pub fn moved(&mut self, name: &str, rate: f64) {
        if rate > 0.0 {
            self.put(name, Ok(rate))
        } else {
            self.put(name, Err("it prints 0: no data arrived".to_string()))
        }
    }

    /// The test did not come to a result.
    pub fn unfinished(&mut self, name: &str, said: Option<&str>) {
        self.put(name, Err(unfinished(said)));
    }
}

/// Why a test that began has no figure, by what the program said last.
pub fn unfinished(said: Option<&str>) -> String {
    let why = said.unwrap_or("the run, or the text, ended before a result");
    format!("started, no test finished: {}", short(why))
}
