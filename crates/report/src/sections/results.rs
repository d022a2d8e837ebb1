//! Every figure by group: each with its placement, interval, samples and reading.

use super::figures::{as_it_ran, common_time_unit, median_words, medians, width_words};
use super::levels::contradicted;
use super::names::{case_words, label, placement_words, title_of};
use super::shown::{self, Shown};
use super::smt::{self, capacity};
use super::{columns, number, text};
use super::{memory_map, rate, screen};
use crate::block::{Block, Cell, RESULTS, Section, Table};
use crate::figure_rows::{FigureRow, is_odd};
use diagnose::Diagnosis;
use diagnose::key_figures::Group;
use diagnose::reference::References;
use diagnose::words::percent;
use model::{Case, Grade, Verdict, VerdictKind, View, unit_factor};
use stats::analysis::Judged;
use stats::clock::Gate;
use stats::core_bound::RunClock;

/// Every figure by group, with what is read of it. What could not be measured here is said below.
pub fn section(diagnosis: &Diagnosis, references: &References, units: &[String]) -> Option<Section> {
    let (shown, tables) = shown::first(diagnosis);
    let rows = rows(diagnosis, &shown, references, units);
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Figures(rows));
    }
    blocks.extend(tables.into_iter().map(Block::Table));
    if !shown.is_empty() {
        let known = known_words(diagnosis);
        blocks.extend((!known.is_empty()).then_some(Block::Prose(known)));
        let levels = contradicted(diagnosis).join(", ");
        let named =
            format!("Blocks are named by the level that answered: {levels}, others as the kernel reports.");
        blocks.extend((!levels.is_empty()).then_some(Block::Prose(named)));
    }
    let skipped = not_measured(diagnosis);
    if !skipped.is_empty() {
        blocks.push(Block::Prose(format!("Not tested: {skipped}")));
    }
    Section::new(RESULTS, "Results", blocks).unless_empty()
}

/// The rows by group, in the order of screens; within one in that of the plan.
fn rows(diagnosis: &Diagnosis, shown: &[Shown], references: &References, units: &[String]) -> Vec<FigureRow> {
    let class = references.class_of(&diagnosis.machine);
    let mut ordered: Vec<&Shown> = shown.iter().collect();
    ordered.sort_by_key(|shown| Group::of_bench(&shown.judged.series.case.bench));
    let bench = |shown: &&Shown| shown.judged.series.case.bench.split('.').next().unwrap_or("").to_string();
    let parts = ordered.chunk_by(|one, other| bench(one) == bench(other));
    let of_part = |part: &[&Shown]| {
        let times = match Group::of_bench(&part[0].judged.series.case.bench) {
            Group::Cpu | Group::Memory => "ns",
            _ => "µs",
        };
        let same = part.chunk_by(|one, other| one.judged.series.case.bench == other.judged.series.case.bench);
        let rows = same.flat_map(|same| {
            let common = common_time_unit(same.iter().map(|shown| shown.judged));
            // What takes longer has a unit of its own.
            let times = match common {
                "ms" | "s" => common,
                _ if times == "µs" && same.iter().any(|shown| ns(shown.judged) < SHORT_NS) => "ns",
                "µs" if times == "ns" && same.iter().all(|shown| ns(shown.judged) >= LONG_NS) => common,
                _ => times,
            };
            same.iter().map(move |shown| (shown, times))
        });
        let row = |(shown, times): (&&Shown, &str)| figure_row(diagnosis, shown, times);
        rows.map(row).collect::<Vec<_>>()
    };
    let mut rows: Vec<FigureRow> = parts.flat_map(of_part).collect();
    for (row, shown) in rows.iter_mut().zip(&ordered) {
        screen::read(&mut row.row, shown.judged, references, &class);
        screen::in_units(&mut row.row, units);
    }
    rows
}

/// From this time on figures in ns are shown in µs, and below it the other way.
const LONG_NS: f64 = 1e3;
const SHORT_NS: f64 = 10.0;

/// A time in ns; not a number of all else.
fn ns(judged: &Judged) -> f64 {
    let factor = unit_factor(&judged.series.metric.unit, "ns");
    factor.zip(judged.analysis.figure()).map_or(f64::NAN, |(ns, figure)| figure.median * ns)
}

/// `times`: the unit of times.
fn figure_row(diagnosis: &Diagnosis, shown: &Shown, times: &str) -> FigureRow {
    let Shown { judged, label, place } = shown;
    let (series, analysis) = (&judged.series, &judged.analysis);
    let title = title_of(diagnosis, &series.case).map_or(series.case.bench.as_ref(), |title| &title.title);
    let detail = label.strip_prefix(title).unwrap_or(label).trim_start_matches([',', ':', ' ']);
    let median = analysis.figure().map_or(0.0, |figure| figure.median);
    let unit = unit_of(&series.metric.unit, median, times);
    FigureRow {
        row: screen::bare_row(judged, label.clone(), unit),
        bench: series.case.bench.split('.').next().unwrap_or("").to_string(),
        title: title.to_string(),
        detail: detail.to_string(),
        place: placement_words(place).to_string(),
        passes: analysis.figure().map_or(0, |estimate| estimate.n),
        samples: medians(judged),
        why: if analysis.verdict.kind == VerdictKind::Imprecise {
            String::new()
        } else {
            analysis.verdict.reason.clone()
        },
        is_odd: is_odd(analysis.verdict.kind),
    }
}

/// The unit of a screen: times in this one, rates in thousands and millions from some on.
fn unit_of<'u>(unit: &'u str, value: f64, times: &'u str) -> &'u str {
    match unit {
        "1/s" if value >= 1e7 => "M/s",
        "1/s" if value >= 1e4 => "k/s",
        unit if unit_factor(unit, "ns").is_some() => times,
        unit => unit,
    }
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
            "; none scaled to one clock: time follows the clock with exponent {:.2} ± {:.2}, -1 ± 0.1 is needed",
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
    let mut names: Vec<(String, Vec<[String; 2]>)> = Vec::new();
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
        let place = placement_words(&case.placement.name);
        let what = match (alone, words.as_str()) {
            (true, _) | (false, "") => place.to_string(),
            (false, words) => format!("{words}, {place}"),
        };
        let why = [what, reason.to_string()];
        let name = title_of(diagnosis, case).map_or(case.bench.to_string(), |title| title.title.to_string());
        match names.iter_mut().find(|(other, _)| *other == name) {
            Some((_, list)) if list.contains(&why) => {}
            Some((_, list)) => list.push(why),
            None => names.push((name, vec![why])),
        }
    }
    let words = names.iter().map(|(name, list)| format!("{name}: {}", with_reasons(list)));
    words.collect::<Vec<_>>().join("; ")
}

/// Each reason once, behind the last of those in a row that it holds for.
fn with_reasons(list: &[[String; 2]]) -> String {
    let same = list.chunk_by(|one, other| one[1] == other[1]);
    let words = same.map(|same| {
        let what: Vec<&str> = same.iter().map(|[what, _]| what.as_str()).collect();
        let reason = same[0][1].strip_prefix("budget: ").unwrap_or(&same[0][1]);
        format!("{} ({reason})", what.join(", "))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// More rows than this no page and no reader can bear.
const MAX_SERIES: usize = 2000;

/// Every series there is, folded and without pictures of its samples: these are in the JSON.
pub fn raw(diagnosis: &Diagnosis) -> Section {
    let columns = columns("key | figure | placement | n: | median: | 95 %: | as measured: | verdict");
    let rows = diagnosis.series.iter().take(MAX_SERIES).map(|judged| {
        let analysis = &judged.analysis;
        vec![
            Cell::Code(judged.series.key.clone()),
            text(label(diagnosis, judged)),
            text(placement_words(&judged.series.case.placement.name)),
            number(analysis.figure().map_or(String::new(), |estimate| estimate.n.to_string())),
            number(median_words(judged)),
            number(width_words(judged)),
            number(as_it_ran(judged)),
            Cell::Verdict(analysis.verdict.clone()),
        ]
    });
    let first = match diagnosis.series.len() {
        all if all > MAX_SERIES => {
            format!("The first {MAX_SERIES} figures of {all}, by key. All figures and their samples")
        }
        _ => "Every figure by its key. The samples".to_string(),
    };
    Section::new("raw", "All figures", vec![Block::Table(Table::new(columns, rows).folded())])
        .about(format!(
            "{first} are in the run file, and in this page as JSON (element assay-report, \
                 compressed)."
        ))
        .long()
}
