//! A sheet as series: SPEC's own result of each component, its iterations, their times.

use super::score::{bench, indices, selected};
use super::suites::{Year, shared};
use super::{Cell, QUOTED, Row, Sheet, Tune};
use crate::builder::{Builder, Meaning};
use crate::{Imported, keyed};
use model::Better;

/// What is said of every result.
const GENERAL: &str = "SPEC scores a component by its median iteration, of two by the slower; compilers, flags and copies are the tester's choice";

/// What ride along: SPEC's score is the headline of a component.
const ASIDE: [&str; 3] = ["rate", "ratio", "time"];

pub(super) fn imported(sheet: Sheet) -> Imported {
    let format = match sheet.year {
        Year::Cpu2006 => super::FORMAT_2006,
        Year::Cpu2017 => super::FORMAT,
    };
    let mut builder = Builder::new(format, &sheet.host);
    let tested = [("suite", sheet.suite.as_str()), ("ran", sheet.ran.as_str())];
    for (label, value) in
        sheet.facts.iter().map(|(label, value)| (label.as_str(), value.as_str())).chain(tested)
    {
        builder.fact(label, value);
    }
    builder.remarks.push(GENERAL.to_string());
    builder.remarks.extend(sheet.remarks.iter().cloned());
    if sheet.left_out > 0 {
        builder.remarks.push(format!("{} rows were left out: every suite has fewer", sheet.left_out));
    }
    let names = names(&sheet);
    let mut copies_differ = Vec::new();
    for tune in Tune::BOTH {
        let run = |row: &Row| !row.cells[tune as usize].is_empty() && row.cells[tune as usize].status != "NR";
        if !sheet.rows.iter().any(run) {
            continue;
        }
        for name in &names {
            component(&mut builder, &sheet, tune, name, &mut copies_differ);
        }
        note_copies(&mut builder, &sheet, tune);
    }
    if !copies_differ.is_empty() {
        let quoted = copies_differ[..copies_differ.len().min(QUOTED)].join(", ");
        builder
            .remarks
            .push(format!("iterations of one component ran with different numbers of copies: {quoted}"));
    }
    let (indices, findings) = indices(&sheet);
    for (tune, index) in &indices {
        if !index.remark.is_empty() {
            builder.remarks.push(format!("{}: {}", index.title, index.remark));
        }
        let Some(meaning) = meaning(&shared(&index.title), "", *tune, "score", &index.title, "") else {
            continue;
        };
        match index
            .score
            .filter(|_| index.remark.is_empty())
            // Rows that are not all of the suite's come to no headline of it.
            .or(index.recomputed.filter(|_| index.score.is_none() && !index.partial))
        {
            Some(score) => builder.value(meaning, score),
            None => builder.missing(meaning, index.remark.clone()),
        }
    }
    let index = indices.into_iter().map(|(_, index)| index).collect();
    let mut imported = Imported { index, findings, ..builder.finish() };
    for figure in &mut imported.figures {
        let metric = &mut figure.judged.series.metric;
        metric.headline = !ASIDE.contains(&metric.name.as_ref());
    }
    let metrics = imported.catalogue.iter_mut().flat_map(|title| &mut title.metrics);
    metrics.for_each(|metric| metric.headline = !ASIDE.contains(&metric.name.as_ref()));
    imported
}

/// The components, in the file's order.
fn names(sheet: &Sheet) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in &sheet.rows {
        if !names.contains(&row.name) {
            names.push(row.name.clone());
        }
    }
    names
}

fn component(builder: &mut Builder, sheet: &Sheet, tune: Tune, name: &str, copies_differ: &mut Vec<String>) {
    let cell = |row: &Row| -> Cell { row.cells[tune as usize].clone() };
    let of_name = |row: &&Row| row.name == name;
    let full: Vec<Cell> =
        sheet.rows.iter().filter(|row| !row.selected_table).filter(of_name).map(cell).collect();
    let chosen = selected(sheet).into_iter().find(of_name).map(cell);
    let counted = |one: &&Cell| one.succeeded() && one.rate.is_some();
    let copies: Vec<u32> = full.iter().filter(counted).filter_map(|one| one.copies).collect();
    if copies.windows(2).any(|pair| pair[0] != pair[1]) {
        copies_differ.push(format!("{name} ({})", tune.word()));
    }
    let what = if sheet.speed { "threads" } else { "copies" };
    let note = chosen.as_ref().and_then(|one| one.copies).or(copies.first().copied());
    let note = note.map_or(String::new(), |copies| format!("{copies} {what}"));
    let title = |metric: &str| format!("{name} {}{metric}", tune.word());
    let rate = if sheet.speed { "ratio" } else { "rate" };
    // A component of CPU2017 has another name in each suite.
    let suite = match (sheet.year, sheet.speed) {
        (Year::Cpu2017, _) => "",
        (Year::Cpu2006, true) => "suite=speed&",
        (Year::Cpu2006, false) => "suite=rate&",
    };

    if let Some(meaning) = meaning(name, suite, tune, "score", &title(""), &note) {
        match chosen.as_ref().filter(counted).and_then(|one| one.rate) {
            Some(value) => builder.value(meaning, value),
            None => builder.missing(meaning, why(&full, chosen.as_ref())),
        }
    }
    let iterations = full.iter().filter(counted).count();
    let of = format!("{note}{}{iterations} iterations", if note.is_empty() { "" } else { ", " });
    for one in full.iter().filter(counted) {
        if let (Some(meaning), Some(value)) =
            (meaning(name, suite, tune, rate, &title(", iterations"), &of), one.rate)
        {
            builder.value(meaning, value);
        }
    }
    // That of another size of work has no ratio.
    for one in full.iter().filter(counted) {
        if let (Some(meaning), Some(value)) =
            (meaning(name, suite, tune, "time", &title(", run time"), &of), one.time)
        {
            builder.value(meaning, value);
        }
    }
}

/// Why a component has no result, in words: what its iterations or its selected row say.
fn why(full: &[Cell], chosen: Option<&Cell>) -> String {
    if let Some(text) = full.iter().chain(chosen).find_map(|cell| cell.unread.as_ref()) {
        return if text.contains(',') {
            format!("{text:?} has a comma: decimal or thousands, which the file does not show")
        } else {
            format!("{text:?} is not a number")
        };
    }
    if full.iter().any(|cell| cell.succeeded() && cell.time.is_some() && cell.rate.is_none()) {
        return "it ran, but SPEC's tools give no ratio: its work was not the reference's".to_string();
    }
    // The selected row of what failed says NR alone: its iterations know more.
    let status = full
        .iter()
        .chain(chosen)
        .map(|cell| cell.status.as_str())
        .find(|status| !matches!(*status, "S" | "*" | ""));
    match status {
        Some("CE") => "status CE: it could not be built".to_string(),
        Some("RE") => "status RE: it failed while it ran".to_string(),
        Some("VE") => "status VE: its answer was wrong".to_string(),
        Some("NR") => "status NR: it was not run".to_string(),
        Some("NC") => "status NC: SPEC found that it breaks the rules".to_string(),
        Some(status) => format!("status {status}: SPEC's tools give no result"),
        None if full.is_empty() && chosen.is_none() => "the file has no row of it".to_string(),
        None => "no row of it is the selected one: the file was cut off, or edited".to_string(),
    }
}

/// How many copies or threads the results are of, where all are alike.
fn note_copies(builder: &mut Builder, sheet: &Sheet, tune: Tune) {
    let counts: Vec<u32> =
        selected(sheet).into_iter().filter_map(|row| row.cells[tune as usize].copies).collect();
    if let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) {
        let range = if least == most { least.to_string() } else { format!("{least}–{most}") };
        let what = if sheet.speed { "threads" } else { "copies" };
        builder.fact(&format!("{}_{what}", tune.word()), &range);
    }
}

/// A figure of SPEC's in our words.
fn meaning(name: &str, suite: &str, tune: Tune, metric: &str, wording: &str, note: &str) -> Option<Meaning> {
    let (unit, better) = if metric == "time" { ("s", Better::Lower) } else { ("", Better::Higher) };
    Some(Meaning {
        keyed: keyed(&format!("{}@free?{suite}tune={}#{metric}", bench(name), tune.word()))?,
        wording: wording.to_string(),
        unit: unit.into(),
        better,
        note: note.to_string(),
    })
}
