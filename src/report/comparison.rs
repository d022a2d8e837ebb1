//! A comparison as a report of its own and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::block::{Block, Cell, Check, Column, Mark, RESULTS, Report, Section, Table};
use crate::compare::{Compared, Comparison, Difference, Refused, Word};
use crate::model::{SCHEMA, figure};

/// What `assay compare --json` gives.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    pub a: Side,
    pub b: Side,
    /// Share within which metrics count as the same.
    pub margin: f64,
    pub environment_differences: Vec<Difference>,
    /// What only one of the two tells of its environment.
    pub environment_untold: Vec<String>,
    pub metrics: Vec<Metric>,
    /// What both have and must not be compared.
    pub refused: Vec<Refused>,
    /// Series with a value that the other result does not have.
    pub only_in_a: usize,
    pub only_in_b: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Side {
    pub host: String,
    pub file: String,
}

/// One metric that both have.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Metric {
    /// In B.
    pub key: String,
    /// In A, where it is another.
    pub key_a: String,
    pub title: String,
    pub unit: String,
    /// Medians, both in `unit`.
    pub a: f64,
    pub b: f64,
    /// B/A.
    pub ratio: f64,
    /// 95 % interval of the ratio; null where too little is known.
    pub ci95: Option<[f64; 2]>,
    pub verdict: Word,
    /// The verdict with what belongs to it.
    pub words: String,
    pub note: String,
}

pub fn output(comparison: &Comparison) -> Output {
    let side = |[host, file]: &[String; 2]| Side { host: host.clone(), file: file.clone() };
    Output {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        a: side(&comparison.names[0]),
        b: side(&comparison.names[1]),
        margin: comparison.margin,
        environment_differences: comparison.environment.clone(),
        environment_untold: comparison.untold.clone(),
        metrics: comparison.metrics.iter().map(metric).collect(),
        refused: comparison.refused.clone(),
        only_in_a: comparison.alone[0],
        only_in_b: comparison.alone[1],
    }
}

fn metric(one: &Compared) -> Metric {
    Metric {
        key: one.key.clone(),
        key_a: one.key_a.clone(),
        title: one.title.clone(),
        unit: one.unit.clone(),
        a: one.a,
        b: one.b,
        ratio: one.ratio,
        ci95: one.ci95,
        verdict: one.word,
        words: one.words.clone(),
        note: one.note.clone(),
    }
}

/// A ratio with its interval: `1.23 (1.20 to 1.26)`.
pub fn ratio_words(one: &Compared) -> String {
    match one.ci95 {
        Some([low, high]) => format!("{:.3} ({low:.3} to {high:.3})", one.ratio),
        None => format!("{:.3}", one.ratio),
    }
}

/// The comparison as sections: environments first.
pub fn report(comparison: &Comparison) -> Report {
    let column = |title: &str, right: bool| Column { title: title.to_string(), right };
    let left = |title: &str| column(title, false);
    let section = |id: &str, title: &str, about: String, blocks: Vec<Block>| Section {
        id: id.into(),
        title: title.into(),
        about,
        blocks,
        long: false,
    };
    let table =
        |columns: Vec<Column>, rows: Vec<Vec<Cell>>| Block::Table(Table { columns, rows, folded: false });
    let [a, b] = &comparison.names;
    let mut environment = vec![match comparison.environment.is_empty() {
        true => Block::Prose("Nothing that both tell of their environments differs.".into()),
        false => table(
            vec![left("environment"), left("A"), left("B")],
            comparison
                .environment
                .iter()
                .map(|one| [&one.label, &one.a, &one.b].map(|text| Cell::Text(text.clone())).to_vec())
                .collect(),
        ),
    }];
    if !comparison.untold.is_empty() {
        environment
            .push(Block::Prose(format!("Only one of the two tells: {}.", comparison.untold.join(", "))));
    }
    let row = |one: &Compared| {
        vec![
            Cell::Text(one.title.clone()),
            Cell::Number(figure(one.a, &one.unit)),
            Cell::Number(figure(one.b, &one.unit)),
            Cell::Number(ratio_words(one)),
            Cell::Text(one.words.clone()),
            Cell::Code(one.key.clone()),
            Cell::Text(one.note.clone()),
        ]
    };
    let metrics = vec![table(
        vec![
            left("metric"),
            column("A", true),
            column("B", true),
            column("B/A (95 %)", true),
            left("B is"),
            left("series"),
            left("note"),
        ],
        comparison.metrics.iter().map(row).collect(),
    )];
    let refusal = |one: &Refused| {
        let words = format!("{}: {}", one.factor, one.reason);
        vec![Cell::Code(one.key.clone()), Cell::Number(one.a.clone()), Cell::Text(words)]
    };
    let refused = vec![table(
        vec![left("not compared"), column("A", true), left("because of the")],
        comparison.refused.iter().map(refusal).collect(),
    )];
    let mut sections = vec![
        section("environment", "Environment", String::new(), environment),
        section(RESULTS, "Metrics", "Ratios of B to A, with their intervals.".into(), metrics),
    ];
    if !comparison.refused.is_empty() {
        sections.push(section("refused", "Refused", String::new(), refused));
    }
    let counted = [
        Word::Faster,
        Word::Slower,
        Word::Higher,
        Word::Lower,
        Word::Same,
        Word::Inconclusive,
        Word::Unverified,
    ];
    let counted = counted.iter().filter_map(|word| {
        let many = comparison.metrics.iter().filter(|one| one.word == *word).count();
        (many > 0).then(|| format!("{many} {}", word.word()))
    });
    let counted: Vec<String> = counted.collect();
    let counted = if counted.is_empty() { "nothing to compare".to_string() } else { counted.join(", ") };
    let [only_a, only_b] = comparison.alone;
    let mut checks = Vec::new();
    if !comparison.environment.is_empty() {
        let text = match comparison.environment.len() {
            1 => "the environments differ in one thing".to_string(),
            many => format!("the environments differ in {many} things"),
        };
        checks.push(Check { mark: Mark::Care, text });
    }
    Report {
        title: format!("{} against {}", b[0], a[0]),
        machine: format!("A {} ({})   B {} ({})", a[0], a[1], b[0], b[1]),
        subtitle: format!(
            "{counted}; {} refused; {only_a} only in A, {only_b} only in B",
            comparison.refused.len()
        ),
        checks,
        sections,
        json: String::new(),
    }
}
