//! The first screen in JSON: verdict, cards, key figures with their readings.

use schemars::JsonSchema;
use serde::Serialize;

use crate::screen::Screen;
use diagnose::Diagnosis;
use diagnose::bottom_line::{KeyReading, key_readings};
use diagnose::reference::{Reading, References};
use model::{Grade, VerdictKind};

/// The verdict over a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputVerdict {
    /// `HEALTHY`, `USABLE WITH CAUTION`, `FAULTY`, `NOT VALID` or `NO FAULT FOUND`; of a study what
    /// it comes to: `A SECOND THREAD ADDS 27 %`.
    pub word: String,
    /// At most three: what decides it, what was clean, how well the figures are known.
    pub sentences: Vec<String>,
}

/// A group of key figures; its reading is that of its worst figure that is certain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputCard {
    /// `CPU`, `memory`, `OS`, `disk`, `network` or `stability`.
    pub group: String,
    /// The name of the key figure that decides it; null of stability, and where nothing was tested.
    pub key_figure: Option<String>,
    /// As words: `slow`, `small`; null without a reference for anything in it.
    pub reading: Option<String>,
}

/// A key figure by its short name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputKeyFigure {
    /// `dram-latency`.
    pub name: String,
    pub group: String,
    /// As screens name it.
    pub label: String,
    /// The series it is; null of what was read off a curve.
    pub key: Option<String>,
    /// Null of a rejected one.
    pub value: Option<f64>,
    pub unit: String,
    /// 95 % interval; an end that was not seen is null.
    pub ci95: Option<[Option<f64>; 2]>,
    /// What the kernel reports of the same, in the same unit.
    pub reported: Option<f64>,
    pub verdict: VerdictKind,
    pub grade: Grade,
    /// Null without a reference for this class of hosts.
    pub reading: Option<Reading>,
    /// The better end of the interval has the same reading or a worse one, by a reference of this
    /// very class.
    pub certain: bool,
}

impl OutputVerdict {
    pub fn of(screen: &Screen) -> OutputVerdict {
        OutputVerdict { word: screen.word.clone(), sentences: screen.sentences.clone() }
    }
}

/// Verdict, cards and key figures of a run.
pub fn output(
    diagnosis: &Diagnosis,
    references: &References,
    screen: &Screen,
) -> (OutputVerdict, Vec<OutputCard>, Vec<OutputKeyFigure>) {
    let readings = key_readings(diagnosis, references);
    let verdict = OutputVerdict::of(screen);
    let cards = screen.cards.iter().map(|card| OutputCard {
        group: card.group.into(),
        key_figure: card.row.as_ref().and_then(|row| row.name).map(str::to_string),
        reading: card.reading.as_ref().map(|reading| reading.word.clone()),
    });
    (verdict, cards.collect(), readings.into_iter().map(key_figure).collect())
}

fn key_figure(own: KeyReading) -> OutputKeyFigure {
    let figure = own.measured.figure;
    let finite = |end: f64| Some(end).filter(|end| end.is_finite());
    OutputKeyFigure {
        name: figure.name.into(),
        group: figure.group.word().into(),
        label: figure.alone.into(),
        key: own.measured.key,
        value: own.measured.value,
        unit: figure.unit.replace('µ', "u"),
        ci95: own.measured.low_high.map(|ends| ends.map(finite)),
        reported: own.measured.reported,
        verdict: own.measured.verdict,
        grade: own.measured.grade,
        reading: own.reading,
        certain: own.certain,
    }
}
