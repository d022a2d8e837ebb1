//! The table of numbers: each with its placement, interval, distribution and verdict.

use super::figures::{as_it_ran, common_time_unit, median_with_times_in, medians, width_with_times_in};
use super::levels::contradicted;
use super::names::{case_words, label, title_of};
use super::shown::{self, Shown};
use super::smt::{self, capacity};
use super::{column, number, right, text};
use super::{memory_map, rate};
use crate::block::{Block, Cell, RESULTS, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::percent;
use model::{Case, Grade, Verdict, VerdictKind, View};
use stats::analysis::Judged;
use stats::clock::Gate;
use stats::core_bound::RunClock;

/// What people look at first. What could not be measured here is said below.
pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let (shown, tables) = shown::first(diagnosis);
    let rows = grouped(&shown);
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let known = known_words(diagnosis);
        blocks.extend((!known.is_empty()).then_some(Block::Prose(known)));
        let levels = contradicted(diagnosis).join(", ");
        let named =
            format!("blocks are named by the level that holds them: {levels}, others by the kernel's word");
        blocks.extend((!levels.is_empty()).then_some(Block::Prose(named)));
        blocks.push(Block::Table(Table { columns: columns(), rows, folded: false }));
    }
    blocks.extend(tables.into_iter().map(Block::Table));
    let skipped = not_measured(diagnosis);
    if !skipped.is_empty() {
        blocks.push(Block::Prose(format!("not measured here: {skipped}")));
    }
    (!blocks.is_empty()).then(|| Section {
        id: RESULTS.into(),
        title: "Results".into(),
        about: String::new(),
        blocks,
        long: false,
    })
}

/// How well the headline figures are known: `92 of 164 figures trusted (85 at 3.76 GHz; the clock
/// moved by 26 %), ...`.
fn known_words(diagnosis: &Diagnosis) -> String {
    let measured = |judged: &&Judged| judged.series.metric.headline && judged.analysis.estimate.is_some();
    let grades: Vec<&Verdict> =
        diagnosis.series.iter().filter(measured).map(|judged| &judged.analysis.verdict).collect();
    let of = |grade: Grade| grades.iter().filter(move |verdict| verdict.grade == grade);
    if grades.len() < 2 {
        return String::new();
    }
    let at_clock = of(Grade::A).filter(|verdict| verdict.at_clock).count();
    let moved = |clock: &RunClock| match percent(clock.moved_by()) {
        _ if clock.moved_by() < MOVED => String::new(),
        by => format!("; the clock moved by {by}"),
    };
    let clock = diagnosis.clock.as_ref().map_or(String::new(), |clock| match clock.gate {
        Gate::Closed(pooled) => format!(
            "; none at a clock: time goes with the clock by {:.2} ± {:.2}, where -1 ± 0.1 would show that it does",
            pooled.slope, pooled.standard_error
        ),
        _ if at_clock == 0 => String::new(),
        _ => format!(" ({at_clock} at {:.2} GHz{})", clock.ghz, moved(clock)),
    });
    let [trusted, rough, wide, unknown] = Grade::ALL.map(|grade| of(grade).count());
    let precision = diagnosis.run.header.precision;
    format!(
        "{trusted} of {} figures trusted within ±{}{clock}; {rough} rough (within ±{}), {wide} wide, {unknown} unknown.",
        grades.len(),
        percent(precision),
        percent(model::rough(precision)),
    )
}

/// A clock that moved by less is not worth a word.
const MOVED: f64 = 0.01;

/// From so many rows on they stand under the names of their groups (which `--only` takes, too).
const MANY_ROWS: usize = 30;

fn grouped(shown: &[Shown]) -> Vec<Vec<Cell>> {
    let group = |shown: &Shown| shown.judged.series.case.bench.split('.').next().unwrap_or("").to_string();
    let parts = shown.chunk_by(|one, other| group(one) == group(other));
    let headed = shown.len() >= MANY_ROWS && parts.clone().count() > 1;
    let unit = |part: &[Shown]| common_time_unit(part.iter().map(|shown| shown.judged));
    let whole = unit(shown);
    let part = |part: &[Shown]| {
        let heading = headed.then(|| vec![Cell::Heading(group(&part[0]))]);
        let times = if headed { unit(part) } else { whole };
        heading.into_iter().chain(part.iter().map(|shown| row(shown, times))).collect::<Vec<_>>()
    };
    parts.flat_map(part).collect()
}

/// `Pipe ping-pong: smt-sibling (no two usable CPUs are SMT siblings), ...`, each name once. Wide
/// tables say it in rows of their own.
fn not_measured(diagnosis: &Diagnosis) -> String {
    let elsewhere = |case: &Case| {
        smt::is_variant(case) || capacity::is_own(case) || memory_map::is_own(case) || rate::is_own(case)
    };
    let shown = |judged: &&Judged| judged.series.metric.headline && !elsewhere(&judged.series.case);
    let headline = diagnosis.series.iter().filter(shown);
    let is_skipped = |judged: &&Judged| judged.analysis.verdict.kind == VerdictKind::Skipped;
    let is_wide = |case: &Case| title_of(diagnosis, case).is_some_and(|title| title.view == View::Wide);
    let mut names: Vec<(String, Vec<String>)> = Vec::new();
    for judged in headline.clone().filter(is_skipped).filter(|judged| !is_wide(&judged.series.case)) {
        let case = &judged.series.case;
        let reason = judged.analysis.verdict.reason.as_str();
        // A placement with other cases that were measured, or that lack something else, does not
        // stand for this one.
        let same = |other: &&Judged| {
            let there = &other.series.case;
            there.bench == case.bench && there.placement.name == case.placement.name
        };
        let alone = headline
            .clone()
            .filter(same)
            .all(|other| is_skipped(&other) && other.analysis.verdict.reason == reason);
        let words = case_words(diagnosis, case);
        let why = match (alone, words.as_str()) {
            (true, _) | (false, "") => format!("{} ({reason})", case.placement.name),
            (false, words) => format!("{words} at {} ({reason})", case.placement.name),
        };
        let name = title_of(diagnosis, case).map_or(case.bench.to_string(), |title| title.title.to_string());
        match names.iter_mut().find(|(other, _)| *other == name) {
            Some((_, list)) if list.contains(&why) => {}
            Some((_, list)) => list.push(why),
            None => names.push((name, vec![why])),
        }
    }
    let words = names.iter().map(|(name, list)| format!("{name}: {}", list.join(", ")));
    words.collect::<Vec<_>>().join("; ")
}

/// More rows than this no page and no reader can bear.
const MOST_SERIES: usize = 2000;

/// Every series there is, folded and without pictures of its samples: these are in the JSON.
pub fn raw(diagnosis: &Diagnosis) -> Section {
    let mut columns = columns();
    columns.insert(0, column("series"));
    columns.insert(6, right("as it ran"));
    columns.remove(7);
    let rows = diagnosis.series.iter().take(MOST_SERIES).map(|judged| {
        let place = judged.series.case.placement.name.to_string();
        let mut row =
            row(&Shown { judged, label: label(diagnosis, judged), place }, &judged.series.metric.unit);
        row[0] = text(label(diagnosis, judged));
        row.insert(0, Cell::Code(judged.series.key.clone()));
        row.insert(6, number(as_it_ran(judged)));
        row.remove(7);
        row
    });
    let first = match diagnosis.series.len() {
        all if all > MOST_SERIES => {
            format!("The first {MOST_SERIES} of {all} series by their keys; all of them, and the samples,")
        }
        _ => "Every series by its key. The samples themselves".to_string(),
    };
    Section {
        id: "raw".into(),
        title: "All series".into(),
        about: format!("{first} stand in the run file, and in this page as JSON (element assay-report)."),
        blocks: vec![Block::Table(Table { columns, rows: rows.collect(), folded: true })],
        long: true,
    }
}

fn columns() -> Vec<crate::block::Column> {
    vec![
        column("test"),
        column("placement"),
        right("n"),
        right("median"),
        right("95 %"),
        column("distribution"),
        column("verdict"),
    ]
}

/// `times`: the unit of times.
fn row(Shown { judged, label, place }: &Shown, times: &str) -> Vec<Cell> {
    let analysis = &judged.analysis;
    let estimate = analysis.figure();
    vec![
        Cell::Keyed { name: label.clone(), key: judged.series.key.clone() },
        text(place.clone()),
        number(estimate.map_or(String::new(), |estimate| estimate.n.to_string())),
        number(median_with_times_in(judged, times)),
        number(width_with_times_in(judged, times)),
        Cell::Distribution(medians(judged)),
        Cell::Verdict(analysis.verdict.clone()),
    ]
}
