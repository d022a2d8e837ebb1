//! Figures gathered, then judged: what a file says twice of one host are two measurements of one
//! series.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Figure, Format, Imported, Keyed, MAX_FIGURES};
use model::{Better, Form, Metric, Title, View};
use stats::{Judged, Series, analyse};

/// The first word for one, the second for several: `is`, `are`.
pub fn number<'w>(count: usize, one: &'w str, several: &'w str) -> &'w str {
    if count == 1 { one } else { several }
}

/// The remark on lines that were not read.
pub fn unread(count: usize, first: &str) -> String {
    format!("{count} of its lines {} not read; the first: {first:?}", number(count, "is", "are"))
}

/// How a figure is to be understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    pub keyed: Keyed,
    /// What the other tool calls it.
    pub wording: String,
    pub unit: Cow<'static, str>,
    pub better: Better,
    pub note: String,
}

impl Meaning {
    /// By a key that is written out; `None` where it is none.
    pub fn of(key: &str, wording: &str, unit: &'static str, better: Better) -> Option<Meaning> {
        let (keyed, wording) = (super::keyed(key)?, wording.to_string());
        Some(Meaning { keyed, wording, unit: unit.into(), better, note: String::new() })
    }

    pub fn noted(self, note: &str) -> Meaning {
        Meaning { note: note.to_string(), ..self }
    }
}

/// More repetitions of one figure are a mistake or an attack, and take long to be judged.
const MAX_VALUES: usize = 2_000;

/// Collects the figures of one host.
pub struct Builder {
    pub format: Format,
    pub host: String,
    pub make_up: Vec<(String, String)>,
    pub remarks: Vec<String>,
    found: Vec<Found>,
    places: BTreeMap<String, usize>,
    left_out: usize,
}

struct Found {
    meaning: Meaning,
    values: Vec<f64>,
    /// Why there is none.
    missing: Option<String>,
}

impl Builder {
    pub fn new(format: Format, host: &str) -> Builder {
        let host = if host.is_empty() { "unknown" } else { host };
        Builder {
            format,
            host: host.to_string(),
            make_up: Vec::new(),
            remarks: Vec::new(),
            found: Vec::new(),
            places: BTreeMap::new(),
            left_out: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Notes a fact of the host; the first value of a label counts.
    pub fn fact(&mut self, label: &str, value: &str) {
        let value = value.trim();
        if !value.is_empty() && !self.make_up.iter().any(|(known, _)| known == label) {
            self.make_up.push((label.to_string(), value.chars().take(200).collect()));
        }
    }

    pub fn value(&mut self, meaning: Meaning, value: f64) {
        if !value.is_finite() || value < 0.0 {
            return self.missing(meaning, "the value in the file is negative or not finite".to_string());
        }
        if let Some(found) = self.place(meaning) {
            found.values.push(value);
        }
    }

    pub fn missing(&mut self, meaning: Meaning, why: String) {
        if let Some(found) = self.place(meaning) {
            found.missing.get_or_insert(why);
        }
    }

    fn place(&mut self, meaning: Meaning) -> Option<&mut Found> {
        let key = meaning.keyed.case.series_key(&meaning.keyed.point, &meaning.keyed.metric);
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.found.len() >= MAX_FIGURES => {
                self.left_out += 1;
                return None;
            }
            None => {
                self.places.insert(key, self.found.len());
                self.found.push(Found { meaning, values: Vec::new(), missing: None });
                self.found.len() - 1
            }
        };
        let found = self.found.get_mut(place)?;
        if found.values.len() >= MAX_VALUES {
            self.left_out += 1;
            return None;
        }
        Some(found)
    }

    pub fn finish(self) -> Imported {
        let Builder { format, host, make_up, mut remarks, found, left_out, .. } = self;
        if left_out > 0 {
            remarks.push(format!(
                "{left_out} figures were left out: the file has more than {MAX_FIGURES}, or {MAX_VALUES} of one"
            ));
        }
        let mut catalogue: Vec<Title> = Vec::new();
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut figures = Vec::new();
        for Found { meaning, values, missing } in found {
            let Keyed { case, point, metric: name } = meaning.keyed;
            let metric = Metric {
                name: name.into(),
                title: meaning.wording.clone().into(),
                unit: meaning.unit,
                better: meaning.better,
                form: Form::Value,
                headline: true,
                detail: false,
            };
            let place = *known.entry(case.bench.to_string()).or_insert_with(|| {
                catalogue.push(title(&case.bench, &meaning.wording, format));
                catalogue.len() - 1
            });
            let metrics = &mut catalogue[place].metrics;
            if !metrics.iter().any(|other| other.name == metric.name) {
                metrics.push(metric.clone());
            }
            let unmet = missing.filter(|_| values.is_empty());
            let series = Series::imported(&case, point, metric, &values, unmet);
            let analysis = analyse(&series, PRECISION, 0, None);
            let (judged, note) = (Judged { series, analysis }, meaning.note);
            figures.push(Figure { judged, wording: meaning.wording, note });
        }
        Imported {
            format,
            host,
            make_up,
            catalogue,
            figures,
            index: Vec::new(),
            remarks,
            refused: 0,
            findings: Vec::new(),
        }
    }
}

/// The precision by which repeated figures are judged, as a run's own.
const PRECISION: f64 = 0.01;

fn title(bench: &str, wording: &str, format: Format) -> Title {
    Title {
        id: bench.to_string().into(),
        title: wording.to_string().into(),
        about: format!("Read from {format}.").into(),
        reading: "".into(),
        metrics: Vec::new(),
        view: View::Table,
    }
}
