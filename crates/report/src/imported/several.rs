//! Several imported results on one screen: a line each, or where they are repetitions of one
//! measurement its figures with n and spread.

use std::collections::BTreeMap;

use super::rows::{named, range, shown_in, values, wording};
use super::{counts, has_value};
use crate::block::{Cell, Table, column, right};
use crate::imported::UNNAMED;
use crate::text::numbers::bare;
use import::repeats::Repeats;
use import::{Figure, Imported, names, uncounted, whole};
use model::percent;
use stats::analysis::CONFIDENCE;
use stats::estimate::interval_of_median;
use stats::order::median;

/// What of a result's make-up says when it ran, and nothing of what was measured.
const DATES: [&str; 2] = ["ran", "tested"];

/// Fewer are before and after.
const MIN_REPETITIONS: usize = 3;

/// A file's folder, and its name without the number of a repetition: `out-run3.txt` is `out-.txt`.
/// Other numbers may be a host's, a kernel's or an address.
fn called(path: &str) -> (&str, String) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    (folder, uncounted(name))
}

/// Whether all are the same tool's results of one host in the same settings: repetitions. Files
/// that are called otherwise may be of different hosts.
pub fn are_repetitions(paths: &[&str], all: &[&Imported]) -> bool {
    if paths.iter().any(|path| called(path) != called(paths[0])) {
        return false;
    }
    let told = |one: &Imported| -> BTreeMap<String, String> {
        let own = one.make_up.iter().filter(|(label, _)| !DATES.contains(&label.as_str()));
        own.cloned().collect()
    };
    let keys = |one: &Imported| -> Vec<String> {
        one.figures
            .iter()
            .filter(|figure| has_value(figure))
            .map(|figure| figure.judged.series.key.clone())
            .collect()
    };
    let [first, others @ ..] = all else { return false };
    let is_same = |other: &&Imported| {
        (first.format, &first.host, told(first)) == (other.format, &other.host, told(other))
            && keys(first) == keys(other)
    };
    all.len() >= MIN_REPETITIONS && !keys(first).is_empty() && others.iter().all(is_same)
}

/// Figures over repetitions: how many values, their median, its interval, and the ends.
pub fn repetitions(all: &[&Imported]) -> Table {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for figure in all.iter().flat_map(|one| &one.figures).filter(|figure| has_value(figure)) {
        found.entry(&figure.judged.series.key).or_default().extend(values(figure));
    }
    let row = |(name, figure): (String, &Figure)| {
        let series = &figure.judged.series;
        let own = found.get(series.key.as_str()).map(Vec::as_slice).unwrap_or_default();
        let (unit, factor) = unit_of(figure);
        let shown = |value: f64| bare(value * factor);
        let ends = |[low, high]: [f64; 2]| format!("{}–{}", shown(low), shown(high));
        let interval = interval_of_median(own, CONFIDENCE).map(|one| [one.low, one.high]);
        let middle = median(own).map(|middle| format!("{} {unit}", shown(middle)).trim_end().to_string());
        vec![
            Cell::Text(name),
            Cell::Number(own.len().to_string()),
            middle.map_or(Cell::Empty, Cell::Number),
            interval.map_or(Cell::Empty, |interval| Cell::Number(ends(interval))),
            range(own).map_or(Cell::Empty, |range| Cell::Number(ends(range))),
        ]
    };
    let mut columns =
        vec![column("figure"), right("n"), right("median"), right("95 %"), right("smallest to largest")];
    let mut rows: Vec<Vec<Cell>> =
        all.first().map(|one| named(one).into_iter().map(row).collect()).unwrap_or_default();
    // Fewer than five values have no interval.
    const INTERVAL: usize = 3;
    if rows.iter().all(|row| matches!(row[INTERVAL], Cell::Empty)) {
        columns.remove(INTERVAL);
        rows.iter_mut().for_each(|row| drop(row.remove(INTERVAL)));
    }
    crate::sections::shortened(Table::new(columns, rows))
}

/// The unit as screens write it, and how many of it one of the figure's own is.
fn unit_of(figure: &Figure) -> (String, f64) {
    let (unit, factor) = shown_in(figure);
    (unit.replace("us", "µs"), factor)
}

/// A line each result.
pub fn beside(all: &[&Imported]) -> Table {
    let row = |(one, name): (&Imported, String)| {
        let counts = counts(std::iter::once(one));
        let first = one.figures.iter().find(|figure| has_value(figure));
        let value = first.and_then(|figure| Some((figure, figure.judged.analysis.estimate.as_ref()?)));
        let value = value.map_or(Cell::Empty, |(figure, found)| {
            let (unit, factor) = unit_of(figure);
            let text = format!("{} {} {unit}", wording(figure), bare(found.median * factor));
            Cell::Text(text.trim_end().to_string())
        });
        vec![
            Cell::Text(shown_name(one, &name)),
            Cell::Text(one.format.word().to_string()),
            Cell::Number(counts.with.to_string()),
            Cell::Number(counts.without.to_string()),
            value,
        ]
    };
    let columns =
        vec![column("result"), column("format"), right("figures"), right("left out"), column("first figure")];
    let named = all.iter().copied().zip(names(all));
    crate::sections::shortened(Table::new(columns, named.map(row)))
}

/// What a result is called; one without a name is unnamed.
fn shown_name(one: &Imported, name: &str) -> String {
    match name.strip_prefix(UNNAMED) {
        Some(rest) if one.host == UNNAMED => format!("unnamed{rest}"),
        _ => name.to_string(),
    }
}

/// Runs of one host beside each other.
pub fn repeated(group: &Repeats) -> Table {
    let row = |row: &import::repeats::Row| {
        vec![
            Cell::Text(row.title.clone()),
            Cell::Number(row.values.len().to_string()),
            Cell::Number(bare(row.median)),
            Cell::Number(percent(row.apart)),
        ]
    };
    let columns = vec![
        column(&format!("runs of {}", whole(&group.host))),
        right("runs"),
        right("median"),
        right("apart"),
    ];
    crate::sections::shortened(Table::new(columns, group.rows.iter().map(row)))
}
