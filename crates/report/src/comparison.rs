//! Comparisons as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use compare::{
    Answer, Compared, Comparison, Component, Difference, GroupAnswer, MAX_ROWS, OverlaidCurves, Pooled,
    Refused, Relation, Row, RowOutcome,
};
use model::{Finding, SCHEMA};
use stats::smt::Curve;

/// What `assay compare --json` gives: B against A, and each further result against A.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    pub a: Side,
    #[serde(flatten)]
    pub of_b: ComparedPair,
    /// The other results, each compared with A.
    pub further: Vec<ComparedPair>,
}

/// One result compared with A.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "OfOne")]
pub struct ComparedPair {
    pub b: Side,
    pub verdict: OutputAnswer,
    /// The rows of the first screen, in its order.
    pub key_figures: Vec<OutputRow>,
    /// The largest share within which metrics are called the same.
    pub margin: f64,
    pub environment_differences: Vec<Difference>,
    /// Settings that only one of the two reports.
    pub environment_untold: Vec<String>,
    /// What is to be known before anything is read.
    pub warnings: Vec<String>,
    /// What the rows of the two say against each other.
    pub findings: Vec<Finding>,
    /// Rules whose problems and warnings only A has; `assay explain RULE` says more.
    pub rules_only_in_a: Vec<String>,
    pub rules_only_in_b: Vec<String>,
    /// The clock to which the metrics marked `scaled` were brought, GHz; null where none was.
    pub common_clock_ghz: Option<f64>,
    /// Over all headline metrics with a better side, each part of the host counting once; above
    /// 1 is better.
    pub index: Option<Pooled>,
    pub components: Vec<Component>,
    pub metrics: Vec<Compared>,
    /// What both have and must not be compared.
    pub refused: Vec<Refused>,
    /// Work over CPU%: the curves of both on one another.
    pub curves: Vec<Curves>,
    /// Series with a value that the other result does not have.
    pub only_in_a: usize,
    pub only_in_b: usize,
}

/// What the comparison comes to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputAnswer {
    /// `B is slower`, `B is as fast as A`, `Cannot tell`, `No conclusion`.
    pub word: String,
    pub sentences: Vec<String>,
    /// Figures that both have, and those of them that count in the index.
    pub both: usize,
    pub counted: usize,
    /// Over each group of figures; above 1 is better for B.
    pub groups: Vec<OutputGroup>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputGroup {
    pub group: String,
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    pub verdict: Option<Relation>,
}

/// A figure of the first screen.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRow {
    /// The short name of a key figure; null of a figure that was added because it differs or would
    /// mislead.
    pub name: Option<String>,
    pub group: String,
    pub key: String,
    /// Of both values.
    pub unit: String,
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// B ÷ A, turned so that above 1 is better; null where it is not counted.
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// Null where it is not counted.
    pub verdict: Option<Relation>,
    /// Why it is not counted; else empty.
    pub left_out: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Side {
    pub host: String,
    pub file: String,
    /// Runs that it consists of.
    pub runs: usize,
}

/// Two curves of the same work over CPU%.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Curves {
    pub title: String,
    pub unit: String,
    pub placement_a: String,
    pub placement_b: String,
    /// The clock that both were scaled to, GHz; null where one is not known.
    pub clock_ghz: Option<f64>,
    /// The clocks at which A and B were measured, GHz.
    pub measured_ghz: [Option<f64>; 2],
    /// CPU% (0..1) and work of each level.
    pub a: Vec<[f64; 2]>,
    pub b: Vec<[f64; 2]>,
    /// CPU% (0..1) at which one overtakes the other.
    pub crossings: Vec<f64>,
    /// 95 % interval of each; null where there is none.
    pub crossings_ci95: Vec<Option<[f64; 2]>>,
    pub words: String,
    /// The clocks of both, and where the curves cross as they were measured.
    pub clock_words: String,
}

fn curves(one: &OverlaidCurves) -> Curves {
    let points =
        |curve: &Curve| curve.points().iter().map(|point| [point.share, point.performance]).collect();
    let crossing = || one.crossing.iter().flat_map(|found| &found.at);
    Curves {
        title: one.title.clone(),
        unit: one.unit.clone(),
        placement_a: one.placements[0].clone(),
        placement_b: one.placements[1].clone(),
        clock_ghz: one.clock_ghz,
        a: points(&one.curves[0]),
        b: points(&one.curves[1]),
        measured_ghz: one.measured_ghz,
        crossings: crossing().map(|cross| cross.share).collect(),
        crossings_ci95: crossing().map(|cross| cross.interval.map(|at| [at.low, at.high])).collect(),
        words: one.words("B"),
        clock_words: one.clock_words("B"),
    }
}

/// The first comparison with the others behind it; all have the same A.
pub fn outputs(comparisons: &[Comparison]) -> Option<Output> {
    let (first, others) = comparisons.split_first()?;
    Some(Output { further: others.iter().map(of_one).collect(), ..output(first) })
}

pub fn output(comparison: &Comparison) -> Output {
    Output {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        a: side(comparison, 0),
        of_b: of_one(comparison),
        further: Vec::new(),
    }
}

fn side(comparison: &Comparison, which: usize) -> Side {
    let [host, file] = &comparison.names[which];
    Side { host: host.clone(), file: file.clone(), runs: comparison.runs[which] }
}

fn of_one(comparison: &Comparison) -> ComparedPair {
    let answer = comparison.answer("B", MAX_ROWS);
    ComparedPair {
        b: side(comparison, 1),
        key_figures: answer.groups.iter().flat_map(|group| group.rows.iter().map(row)).collect(),
        verdict: said(answer),
        margin: comparison.margin,
        environment_differences: comparison.environment.clone(),
        environment_untold: comparison.untold.clone(),
        warnings: comparison.warnings.clone(),
        findings: comparison.findings.clone(),
        rules_only_in_a: comparison.rules_alone[0].clone(),
        rules_only_in_b: comparison.rules_alone[1].clone(),
        common_clock_ghz: comparison.common_clock_ghz,
        index: comparison.index.clone(),
        components: comparison.components.clone(),
        metrics: comparison.metrics.clone(),
        refused: comparison.refused.clone(),
        curves: comparison.curves.iter().map(curves).collect(),
        only_in_a: comparison.alone[0],
        only_in_b: comparison.alone[1],
    }
}

fn said(answer: Answer) -> OutputAnswer {
    let group = |group: GroupAnswer| OutputGroup {
        group: group.group.word().to_string(),
        ratio: group.pooled.as_ref().map(|pooled| pooled.ratio),
        ci95: group.pooled.as_ref().map(|pooled| pooled.ci95),
        verdict: group.said.map(|(word, _)| word),
    };
    OutputAnswer {
        word: answer.word,
        sentences: answer.sentences,
        both: answer.both,
        counted: answer.counted,
        groups: answer.groups.into_iter().map(group).collect(),
    }
}

fn row(row: &Row) -> OutputRow {
    let [a, b] = row.values.map(|value| Some(value).filter(|value| value.is_finite()));
    OutputRow {
        name: row.figure.map(|figure| figure.name.to_string()),
        group: row.group.word().to_string(),
        key: row.key.clone(),
        // Programs read the units that series have.
        unit: row.unit.replace('µ', "u"),
        a,
        b,
        ratio: row.ratio,
        ci95: row.ci95,
        verdict: row.word(),
        left_out: match &row.said {
            RowOutcome::Counted(..) => String::new(),
            RowOutcome::Left(factor, reason) => format!("{factor}: {reason}"),
        },
    }
}

/// A ratio with its interval: `1.23 (1.20 to 1.26)`.
pub fn ratio_words(ratio: f64, ci95: Option<[f64; 2]>) -> String {
    match ci95 {
        Some([low, high]) => format!("{ratio:.3} ({low:.3}–{high:.3})"),
        None => format!("{ratio:.3}"),
    }
}
