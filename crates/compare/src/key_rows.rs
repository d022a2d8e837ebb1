//! The rows of a comparison's first screen: key figures that both results have, counted or not, and
//! where these leave room, what differs most.

use std::collections::{BTreeMap, BTreeSet};

use super::components::counts;
use super::{Compared, Comparison, Refused, Relation};
use diagnose::key_figures::{Group, KEY_FIGURES, KeyFigure, of_key};
use diagnose::words::share_unit;
use model::pattern::KeyParts;
use model::{Better, Grade, unit_factor};

/// One figure of two results.
#[derive(Clone, Debug)]
pub struct Row {
    /// The key figure that it is, if it is one.
    pub figure: Option<&'static KeyFigure>,
    pub group: Group,
    /// The key in B.
    pub key: String,
    /// The benchmark in words.
    pub title: String,
    pub unit: String,
    /// In `unit`; not finite where there is none.
    pub values: [f64; 2],
    /// Turned so that above 1 is better for B, where the figure has a better side; `None` where it
    /// is not counted.
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// Nothing but its interval is known of it.
    pub wide: bool,
    pub said: RowOutcome,
}

/// What is said of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum RowOutcome {
    /// The word, and the words around it: `slower by 8–12 %`.
    Counted(Relation, String),
    /// The factor that forbids it, and the reason.
    Left(String, String),
}

impl Compared {
    /// The ratio and its interval as every screen shows them: turned so that above 1 is better, and
    /// as they are of a figure that has no better side.
    pub fn shown_ratio(&self) -> (f64, Option<[f64; 2]>) {
        self.turned().map_or((self.ratio, self.ci95), |(ratio, interval)| {
            (ratio, interval.map(|interval| [interval.low, interval.high]))
        })
    }
}

impl Row {
    pub fn word(&self) -> Option<Relation> {
        match &self.said {
            RowOutcome::Counted(word, _) => Some(*word),
            RowOutcome::Left(..) => None,
        }
    }

    pub fn is_different(&self) -> bool {
        self.word().is_some_and(Relation::is_different)
    }

    /// B ÷ A of the values as they stand, turned: of a row that is not counted, too.
    pub fn raw_ratio(&self) -> Option<f64> {
        self.ratio
            .or_else(|| Some(self.values[1] / self.values[0]))
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    pub fn counted(one: &Compared) -> Row {
        let figure = of_key(&one.key);
        let (unit, scale) = shown_unit(figure, &one.key, &one.unit, one.a.max(one.b));
        let (ratio, ci95) = one.shown_ratio();
        Row {
            figure,
            group: group(figure, &one.bench),
            key: one.key.clone(),
            title: one.title.clone(),
            unit,
            values: [one.a, one.b].map(|value| value * scale),
            ratio: Some(ratio),
            ci95,
            wide: one.grade == Grade::C,
            said: RowOutcome::Counted(one.word, one.words.clone()),
        }
    }

    pub fn left(one: &Refused) -> Row {
        let figure = of_key(&one.key_b);
        let largest = one.values[0].max(one.values[1]);
        let (unit, scale) = shown_unit(figure, &one.key_b, &one.unit, largest);
        Row {
            figure,
            group: group(figure, KeyParts::of(&one.key_b).bench),
            key: one.key_b.clone(),
            title: one.title.clone(),
            unit,
            values: one.values.map(|value| value * scale),
            ratio: None,
            ci95: None,
            wide: false,
            said: RowOutcome::Left(one.factor.clone(), one.reason.clone()),
        }
    }
}

fn group(figure: Option<&KeyFigure>, bench: &str) -> Group {
    figure.map_or_else(|| Group::of_bench(bench), |figure| figure.group)
}

/// The unit that a figure is shown in, and how many of it one of `unit` is.
fn shown_unit(figure: Option<&KeyFigure>, key: &str, unit: &str, largest: f64) -> (String, f64) {
    if let Some((figure, scale)) = figure.and_then(|figure| Some((figure, unit_factor(unit, figure.unit)?))) {
        return (figure.unit.to_string(), scale);
    }
    let metric = key.rsplit_once('#').map_or("", |(_, metric)| metric);
    if let Some((unit, scale)) = share_unit(metric, unit) {
        return (unit.to_string(), scale);
    }
    match unit {
        "1/s" if largest >= 1e6 => ("M/s".to_string(), 1e-6),
        "1/s" if largest >= 1e4 => ("k/s".to_string(), 1e-3),
        "1/s" => ("/s".to_string(), 1.0),
        "us" => ("µs".to_string(), 1.0),
        other => (other.to_string(), 1.0),
    }
}

/// A figure that is not counted and yet differs by this factor would mislead readers of the values.
pub const MISLEADS: f64 = 1.5;

/// Placements of which both ends are on one host.
const LOCAL: [&str; 9] = [
    "free",
    "one-cpu",
    "same-cpu",
    "smt-sibling",
    "same-cluster",
    "same-llc",
    "other-llc",
    "other-node",
    "other-package",
];

/// Whether one end of what a key names is on another host.
pub fn between_hosts(key: &str) -> bool {
    !LOCAL.contains(&KeyParts::of(key).placement)
}

/// The rows in the order of the screen, up to a limit: those that differ stay where there are
/// more.
pub fn rows(comparison: &Comparison, most: usize) -> Vec<Row> {
    let (metrics, refused) = (&comparison.metrics, &comparison.refused);
    let key_row = |figure: &KeyFigure| {
        let fits = |key: &str| !figure.between_hosts || between_hosts(key);
        let counted = metrics.iter().filter(|one| fits(&one.key));
        let left = refused.iter().filter(|one| fits(&one.key_b));
        figure
            .find(counted, |one| &one.key)
            .map(Row::counted)
            .or_else(|| figure.find(left, |one| &one.key_b).map(Row::left))
    };
    let mut rows: Vec<Row> = KEY_FIGURES.iter().filter_map(key_row).collect();
    let is_new = |rows: &[Row], key: &str| rows.iter().all(|row| row.key != key);
    // Figures that nothing counts and that would mislead, one of a benchmark.
    let misleading = refused.iter().filter(|one| one.headline && one.conditions).map(Row::left);
    let misleading =
        misleading.filter(|row| row.raw_ratio().is_some_and(|ratio| ratio.ln().abs() > MISLEADS.ln()));
    for row in misleading {
        let bench = |key: &str| KeyParts::of(key).bench.to_string();
        if rows.len() < most && rows.iter().all(|other| bench(&other.key) != bench(&row.key)) {
            rows.push(row);
        }
    }
    let apart = |row: &Row| row.raw_ratio().map_or(0.0, |ratio| ratio.ln().abs());
    let imports = comparison.imported;
    let mut others: Vec<Row> = metrics
        .iter()
        .filter(|one| one.headline && one.better != Better::Neither)
        .filter(|one| one.word.is_different() && counts(one) || imports || rows.is_empty())
        .map(Row::counted)
        .filter(|row| is_new(&rows, &row.key))
        .collect();
    others.sort_by(|one, other| apart(other).total_cmp(&apart(one)));
    // One of a benchmark: a ladder's other points say the same. Rows of imports are all different.
    let mut named: BTreeSet<(String, String)> = BTreeSet::new();
    others.retain(|row| {
        let parts = KeyParts::of(&row.key);
        imports || named.insert((parts.bench.to_string(), parts.placement.to_string()))
    });
    rows.extend(others.into_iter().take(most.saturating_sub(rows.len())));
    if rows.len() > most {
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.sort_by_key(|place| !rows[*place].is_different());
        let kept = &places[..most];
        rows =
            (0..rows.len()).filter(|place| kept.contains(place)).map(|place| rows[place].clone()).collect();
    }
    // Key figures before what was added, each in its order.
    rows.sort_by_key(|row| (row.group, row.figure.is_none()));
    rows
}

/// The same of everything that both have, by group.
pub fn all_rows(comparison: &Comparison) -> Vec<Row> {
    let counted = comparison.metrics.iter().map(Row::counted);
    let mut rows: Vec<Row> = counted.chain(comparison.refused.iter().map(Row::left)).collect();
    rows.sort_by_key(|row| row.group);
    // The points of one benchmark that a key figure is one of are called by what they are.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().filter_map(|row| row.figure).for_each(|figure| *counts.entry(figure.name).or_default() += 1);
    rows.iter_mut().for_each(|row| row.figure = row.figure.filter(|figure| counts[figure.name] == 1));
    rows
}
