//! The figures of one imported result on its first screen: which, under which names, in which
//! units.

use std::collections::{BTreeMap, BTreeSet};

use super::{has_value, read_in};
use crate::plain;
use crate::screen::Row;
use crate::sections::screen::{bare_row, read};
use diagnose::key_figures::{Group, KEY_FIGURES, KeyFigure};
use diagnose::reference::{HostClass, References};
use diagnose::words::{bytes as bytes_words, foreign_name};
use import::{Figure, Imported};
use machine::Machine;
use model::Snapshot;
use model::vocabulary::memory::param::BYTES;
use model::vocabulary::unixbench::param::COPIES;

/// Lines of figures at most.
const ROWS: usize = 16;

/// Columns of a figure's name beside what is typical, and where nothing is.
const NAME: usize = 24;
const LONG_NAME: usize = 36;

/// Behind the reading of a figure that Assay measures in another way.
pub const DIFFERS: &str = "differs";

/// A figure that is shown, with the key figure that it is and its name.
struct Chosen<'a> {
    key: Option<&'static KeyFigure>,
    figure: &'a Figure,
    name: String,
    /// What distinguishes a key figure from others of its name: `, engine psync`.
    behind: String,
}

/// As many figures of a result as a screen has room for.
pub fn rows(one: &Imported, references: &References) -> Vec<Row> {
    let class = class_of(one, references);
    let row = |chosen: Chosen| row(&chosen, references, &class);
    let mut rows: Vec<Row> = chosen(one).into_iter().map(row).collect();
    let is_bare = rows.iter().all(|row| row.typical.is_empty());
    let width = if is_bare { LONG_NAME } else { NAME };
    // A name that is longer than its column takes lines of its own.
    let mut lines = 0;
    let fits = |row: &&Row| {
        lines += plain::lines(&row.alone, width).len().max(1);
        lines <= ROWS
    };
    let kept = rows.iter().take_while(fits).count();
    rows.truncate(kept);
    rows.sort_by_key(|row| Group::ALL.iter().position(|group| group.word() == row.group));
    rows
}

/// The same without references: names and figures, for a table of several results.
pub fn named(one: &Imported) -> Vec<(String, &Figure)> {
    chosen(one).into_iter().map(|chosen| (chosen.name, chosen.figure)).collect()
}

fn row(chosen: &Chosen, references: &References, class: &HostClass) -> Row {
    let (figure, series) = (chosen.figure, &chosen.figure.judged.series);
    let unit = chosen.key.map_or(series.metric.unit.as_ref(), |key| key.unit);
    let label =
        chosen.key.map_or_else(|| chosen.name.clone(), |key| format!("{}{}", key.label, chosen.behind));
    let mut row = bare_row(&figure.judged, label, unit);
    read(&mut row, &figure.judged, references, class);
    if let Some(key) = chosen.key {
        (row.name, row.group, row.alone) = (Some(key.name), key.group.word(), chosen.name.clone());
    }
    if series.case.bench.starts_with("speccpu.") {
        // What a whole program does belongs to no part of a host.
        row.group = "";
    }
    let values = values(figure);
    if let (None, Some(_), 2.., Some(range)) = (row.low_high, row.value, values.len(), range(&values)) {
        let own = figure.judged.analysis.figure().map(|own| own.median);
        let factor = row.value.zip(own).map_or(1.0, |(shown, own)| shown / own);
        row.low_high =
            Some(range.map(|end| end * factor)).filter(|ends| ends.iter().all(|end| end.is_finite()));
    }
    // A key figure, and what stands beside a reference, has its unit on every screen.
    if let (None, true, (unit, factor)) = (chosen.key, row.typical.is_empty(), shown_in(figure)) {
        row.value = row.value.map(|value| value * factor);
        row.low_high = row.low_high.map(|ends| ends.map(|end| end * factor));
        row.unit = unit.replace("us", "µs");
    }
    if row.reading.extra.is_empty() {
        let count = (values.len() > 1).then(|| format!("n {}", values.len()));
        let differs = (!figure.note.is_empty()).then(|| DIFFERS.to_string());
        row.reading.extra = [differs, count].into_iter().flatten().collect::<Vec<_>>().join(", ");
    }
    row
}

/// Bandwidths of which a small one is shown in the next smaller unit: it keeps three digits.
const SMALLER: [(&str, &str); 2] = [("GB/s", "MB/s"), ("Gbit/s", "Mbit/s")];
const SMALL: f64 = 0.1;

/// The unit that a first screen shows a figure in, and how many of it one of its own is.
pub fn shown_in(figure: &Figure) -> (&str, f64) {
    let (unit, factor) = read_in(figure);
    let median = figure.judged.analysis.estimate.as_ref().map_or(0.0, |found| found.median);
    match SMALLER.iter().find(|(larger, _)| median > 0.0 && median < SMALL && *larger == unit) {
        Some((_, smaller)) => (smaller, 1e3),
        None => (unit, factor),
    }
}

/// All values of a figure.
pub fn values(figure: &Figure) -> Vec<f64> {
    figure.judged.series.values().concat()
}

/// The smallest and the largest of several.
pub fn range(values: &[f64]) -> Option<[f64; 2]> {
    let least = values.iter().copied().reduce(f64::min)?;
    Some([least, values.iter().copied().reduce(f64::max)?])
}

/// Key figures first, then what means the same here, then the rest, as many as there are rows; each
/// by its group, in the file's order.
fn chosen(one: &Imported) -> Vec<Chosen<'_>> {
    let figures = || one.figures.iter().filter(|figure| has_value(figure));
    let found = KEY_FIGURES.iter().filter_map(|key| {
        let series = key.find(figures(), |figure| &figure.judged.series.key)?;
        Some((series.judged.series.key.as_str(), key))
    });
    let found: Vec<(&str, &KeyFigure)> = found.collect();
    let key_of = |figure: &Figure| {
        found.iter().find(|(series, _)| *series == figure.judged.series.key).map(|(_, key)| *key)
    };
    let mut chosen: Vec<(Option<&KeyFigure>, &Figure)> =
        figures().map(|figure| (key_of(figure), figure)).collect();
    let used: BTreeSet<&str> =
        chosen.iter().filter(|(key, _)| key.is_some()).map(|(_, figure)| figure.wording.as_str()).collect();
    // Of several that have one name the first stands for all, of its curve the last point: what is
    // shown of one benchmark is of one case.
    let mut stands: BTreeMap<&str, &Figure> = BTreeMap::new();
    for figure in figures() {
        let place = stands.entry(figure.wording.as_str()).or_insert(figure);
        if size_of(figure).is_some() && of_one_curve(place, figure) {
            *place = figure;
        }
    }
    let several = |figure: &Figure| {
        let same = |other: &&Figure| other.wording == figure.wording && of_one_curve(other, figure);
        figures().filter(same).filter(|other| size_of(other).is_some()).count() > 1
    };
    let apart = |figure: &Figure| {
        let others =
            figures().filter(|other| other.wording == figure.wording && !of_one_curve(other, figure));
        others.map(|other| what_differs(figure, other)).max_by_key(String::len).unwrap_or_default()
    };
    let name = |figure: &Figure| {
        let size = size_of(figure).filter(|_| several(figure)).map(bytes_words);
        let parts = [wording(figure), apart(figure), size.unwrap_or_default()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    chosen.retain(|(key, figure)| {
        if key.is_none() && is_one_of_many(figure) {
            return false;
        }
        let wording = figure.wording.as_str();
        let key_of = |figure: &&Figure| figure.judged.series.key.clone();
        let stands_for_all = stands.get(wording).map(key_of) == Some(key_of(figure));
        key.is_some() || stands_for_all && !used.contains(wording)
    });
    chosen.sort_by_key(|(key, figure)| (key.is_none(), weight(figure), !figure.note.is_empty()));
    let named = chosen.into_iter().take(ROWS).map(|(key, figure)| {
        // Several of one key figure, such as fio's engines, need distinct names too.
        let behind = key.map_or(String::new(), |_| apart(figure));
        let behind = if behind.is_empty() { behind } else { format!(", {behind}") };
        let name = key.map_or_else(|| name(figure), |key| format!("{}{behind}", key.alone));
        Chosen { key, figure, name, behind }
    });
    named.collect()
}

/// What the other tool calls a figure, in words.
pub fn wording(figure: &Figure) -> String {
    foreign_name(&figure.wording, &figure.judged.series.metric.name)
}

/// Whether two figures are of one case, and at other sizes at most.
fn of_one_curve(one: &Figure, other: &Figure) -> bool {
    let bare = |figure: &Figure| {
        let series = &figure.judged.series;
        let mut point = series.point.clone();
        point.remove(BYTES);
        series.case.series_key(&point, "")
    };
    bare(one) == bare(other)
}

/// What distinguishes a figure from another of the same name: parameters that only it has, or that
/// have another value. The number of copies is left out.
fn what_differs(figure: &Figure, other: &Figure) -> String {
    let [own, theirs] = [figure, other].map(|one| &one.judged.series);
    let is_other = |name: &str, value: &model::Value| theirs.case.params.named(name) != Some(value);
    own.case
        .params
        .iter()
        .filter(|(name, value)| *name != COPIES.as_str() && is_other(name, value))
        .map(|(name, value)| setting(name, &value.to_string()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A parameter in words. Of some the value says what it is.
fn setting(name: &str, value: &str) -> String {
    match (name, value) {
        ("cores", "single") => "one core".to_string(),
        ("cores", "multi") => "all cores".to_string(),
        ("direction" | "way" | "protocol" | "transport" | "op" | "operation", value) => value.to_string(),
        (name, value) => format!("{} {value}", name.replace('_', " ")),
    }
}

/// How much a figure matters: a score or a median, then its tail, then what stands behind it.
fn weight(figure: &Figure) -> usize {
    let metric = &figure.judged.series.metric;
    match metric.name.as_ref() {
        "latency_p99" => 1,
        "iterations" => 2,
        "time" if figure.judged.series.case.bench.starts_with("speccpu.") => 2,
        _ if !metric.headline => 2,
        _ => 0,
    }
}

/// Whether it is a percentile that says little beside the median and the tail.
fn is_one_of_many(figure: &Figure) -> bool {
    let percentile = figure.judged.series.metric.name.rsplit_once("_p").map(|(_, percent)| percent);
    percentile
        .is_some_and(|percent| percent.parse::<u32>().is_ok() && !["50", "99", "999"].contains(&percent))
}

/// The size that a point of a curve is of.
fn size_of(figure: &Figure) -> Option<f64> {
    figure.judged.series.point.get(BYTES)?.number()
}

/// The class of the processor that the file names: its generation if known.
fn class_of(one: &Imported, references: &References) -> HostClass {
    let mut machine = Machine::from(&Snapshot::default());
    let said = |labels: &[&str]| {
        let found = one.make_up.iter().find(|(label, _)| labels.contains(&label.as_str()));
        found.map(|(_, value)| value.clone())
    };
    machine.cpus.model = said(&["cpu_model"]);
    let name = machine.cpus.model.as_deref().unwrap_or_default();
    machine.cpus.vendor = match () {
        () if name.contains("Intel") => Some("GenuineIntel".to_string()),
        () if name.contains("AMD") => Some("AuthenticAMD".to_string()),
        () => None,
    };
    let system = said(&["architecture", "machine", "system"]).unwrap_or_default();
    let known = ["x86_64", "aarch64"].into_iter().find(|known| system.contains(known));
    machine.cpus.architecture = known.map(str::to_string);
    references.class_of(&machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_words() {
        assert_eq!(setting("way", "send"), "send");
        assert_eq!(setting("cores", "single"), "one core");
        assert_eq!(setting("element_bytes", "4"), "element bytes 4");
    }
}
