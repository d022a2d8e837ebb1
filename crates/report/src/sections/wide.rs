//! A row a case, a column a metric.

use std::collections::BTreeMap;

use super::figures::value_in_unit;
use super::names::{Trait, case_words, placement_words, traits};
use super::{column, number, right, text};
use crate::block::{Block, Cell, Column, Section, Table};
use diagnose::Diagnosis;
use model::{Case, Metric, Params, Planned, Title, Verdict, VerdictKind, unit_words};
use stats::analysis::Judged;

pub fn section(diagnosis: &Diagnosis, title: &Title) -> Option<Section> {
    Some(
        Section::new(
            title.id.replace('.', "-"),
            &*title.title,
            vec![Block::Table(Table { folded: true, ..table(diagnosis, title, &shown(title))? })],
        )
        .about(&*title.reading)
        .long(),
    )
}

/// A row for each case and point, a column for each of these metrics.
pub fn table(diagnosis: &Diagnosis, title: &Title, metrics: &[&Metric]) -> Option<Table> {
    let plan = &diagnosis.run.header.plan;
    let own: Vec<usize> = (0..plan.len()).filter(|at| plan[*at].case.bench == title.id).collect();
    let mut measured: BTreeMap<usize, Vec<&Judged>> = BTreeMap::new();
    for judged in diagnosis.series.iter().filter(|judged| judged.series.case.bench == title.id) {
        measured.entry(judged.series.planned).or_default().push(judged);
    }
    // Rows by what is measured, each with its placements together, in the order of the plan.
    let mut kinds: Vec<String> = Vec::new();
    let mut rows: Vec<(usize, usize, Vec<Vec<Cell>>)> = Vec::new();
    let mut absent: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in own {
        let case = &plan[at].case;
        let words = case_words(diagnosis, case);
        let kind = kinds.iter().position(|kind| *kind == words).unwrap_or_else(|| {
            kinds.push(words.clone());
            kinds.len() - 1
        });
        if plan[at].unmet.is_some() {
            absent.entry(kind).or_default().push(at);
            continue;
        }
        let series = measured.get(&at).map(Vec::as_slice).unwrap_or_default();
        rows.push((kind, at, case_rows(title, metrics, case, &words, series)));
    }
    // What is not here stands last of its kind.
    for (kind, cases) in absent {
        let cases: Vec<&Planned> = cases.into_iter().map(|at| &plan[at]).collect();
        rows.push((kind, plan.len(), absent_rows(title, &kinds[kind], &cases)));
    }
    rows.sort_by_key(|(kind, at, _)| (*kind, *at));
    let rows: Vec<Vec<Cell>> = rows.into_iter().flat_map(|(_, _, rows)| rows).collect();
    (!rows.is_empty()).then(|| Table::new(columns(diagnosis, title, metrics), rows))
}

/// What a wide table has a column for.
pub fn shown(title: &Title) -> Vec<&Metric> {
    title.metrics.iter().filter(|metric| !metric.detail).collect()
}

fn columns(diagnosis: &Diagnosis, title: &Title, metrics: &[&Metric]) -> Vec<Column> {
    let own =
        diagnosis.run.header.plan.iter().map(|planned| &planned.case).filter(|case| case.bench == title.id);
    let mut names: Vec<String> = own
        .flat_map(traits)
        .filter(|Trait { name, words, .. }| !words.is_empty() && !name.starts_with('+'))
        .map(|one| one.name)
        .collect();
    names.sort();
    names.dedup();
    let first = if let [name] = names.as_slice() { name } else { "case" };
    let metrics = metrics.iter().map(|metric| right(&titled(metric)));
    [column(first), column("placement")].into_iter().chain(metrics).chain([column("verdict")]).collect()
}

/// What a metric is called, and its unit where its name does not say it: `latency, µs`.
pub fn titled(metric: &Metric) -> String {
    let (title, unit) = (metric.title.as_ref(), unit_words(&metric.unit));
    let says_rate =
        unit == "1/s" && (title == "IOPS" || title.ends_with(" a second") || title.ends_with(" per second"));
    if title.starts_with(unit) || says_rate { title.to_string() } else { format!("{title}, {unit}") }
}

/// One row for all that this host does not have of a kind, and one for what there was no time or
/// memory for.
fn absent_rows(title: &Title, words: &str, cases: &[&Planned]) -> Vec<Vec<Cell>> {
    let is_cut = |why: &str| why.starts_with("budget") || why.starts_with("memory:");
    let (mut cut, mut lacking) = (Vec::new(), Vec::new());
    for planned in cases {
        let why = planned.unmet.as_deref().unwrap_or_default();
        if is_cut(why) { &mut cut } else { &mut lacking }.push((planned.case.placement.name.as_ref(), why));
    }
    let name = if words.is_empty() { title.title.as_ref() } else { words };
    let row = |what: &str, group: &[(&str, &str)]| {
        let placement = match group {
            [(placement, _)] => placement_words(placement).to_string(),
            several => format!("{} others", several.len()),
        };
        let mut reasons: Vec<&str> = Vec::new();
        group.iter().for_each(|(_, why)| reasons.extend((!reasons.contains(why)).then_some(*why)));
        vec![text(name), text(placement), text(format!("{what}: {}", reasons.join("; ")))]
    };
    let groups = [("not tested", lacking), ("not measured", cut)];
    groups.iter().filter(|(_, group)| !group.is_empty()).map(|(what, group)| row(what, group)).collect()
}

/// A row for each point of a case, of which there is usually one.
fn case_rows(
    title: &Title,
    metrics: &[&Metric],
    case: &Case,
    words: &str,
    series: &[&Judged],
) -> Vec<Vec<Cell>> {
    let begin = |more: &str| {
        let name = if words.is_empty() { title.title.as_ref() } else { words };
        let name = if more.is_empty() { name.to_string() } else { format!("{name}, {more}") };
        vec![text(name), text(placement_words(&case.placement.name))]
    };
    let mut points: Vec<&Params> = Vec::new();
    for judged in series {
        if !points.contains(&&judged.series.point) {
            points.push(&judged.series.point);
        }
    }
    let row = |point: &Params| {
        let at = |metric: &&Metric| {
            series
                .iter()
                .find(|judged| judged.series.point == *point && judged.series.metric.name == metric.name)
        };
        let mut row = begin(&super::names::point_words(point));
        row.extend(metrics.iter().map(|metric| at(metric).map_or(Cell::Empty, |judged| value(judged))));
        // A row is as good as what it is about; what rides along (a difference, a share) shows its
        // own interval.
        let there = || metrics.iter().filter_map(at);
        let headline = there().any(|judged| judged.series.metric.headline);
        let about = there().filter(|judged| judged.series.metric.headline || !headline);
        let verdicts: Vec<&Verdict> = about.map(|judged| &judged.analysis.verdict).collect();
        // Of equally grave ones that of the first metric.
        let gravest = verdicts.into_iter().rev().max_by_key(|verdict| weight(verdict));
        row.push(gravest.cloned().map_or(Cell::Empty, Cell::Verdict));
        row
    };
    points.into_iter().map(row).collect()
}

/// The median and its interval without a unit, which stands above.
fn value(judged: &Judged) -> Cell {
    judged.analysis.figure().map_or(Cell::Empty, |_| number(value_in_unit(judged, "")))
}

/// How grave a verdict is: the gravest of a row stands at its end.
pub fn weight(verdict: &Verdict) -> u32 {
    match verdict.kind {
        VerdictKind::Trusted => 0,
        VerdictKind::TrustedWithCause => 1,
        VerdictKind::Skipped => 2,
        VerdictKind::Unverified => 3,
        VerdictKind::Imprecise => 4,
        VerdictKind::Drifting => 5,
        VerdictKind::Multimodal => 6,
        VerdictKind::Rejected => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of, tables, texts};
    use super::*;
    use model::{Better, Form, Value, View};

    fn sources() -> Diagnosis {
        let cycles = Metric::new(
            model::vocabulary::cpu::metric::CYCLES,
            "cycles of a load",
            "cycles",
            Better::Lower,
            Form::Value,
        )
        .aside();
        let source = |placement, name: &str| case(placement, &[("source", Value::from(name))]);
        let values = |ns: f64| [("latency", ns), ("cycles", 3.0 * ns)];
        // Rows differ in their pages, and are not named by them.
        let mut dram = source("one-cpu", "dram");
        dram.placement.pages = model::Pages::AsGiven;
        Made::new(View::Wide, vec![latency(), cycles])
            .case(source("one-cpu", "l1"), &[(of(&[]), &values(1.5))])
            .case(source("same-llc", "core-shared"), &[(of(&[]), &values(50.0))])
            .case(dram, &[(of(&[]), &values(90.0))])
            .unmet(source("smt-sibling", "core-shared"), "no two usable CPUs are SMT siblings")
            .diagnosed(machine(2))
    }

    #[test]
    fn a_row_a_case_and_a_column_a_metric() {
        let diagnosis = sources();
        let section = section(&diagnosis, &diagnosis.run.header.catalogue[0]).expect("a section");
        assert!(section.long, "terminals show its figures among all others");
        let table = tables(&section)[0];
        let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["source", "placement", "latency of a load, ns", "cycles of a load", "verdict"]);
        let rows = texts(table);
        let names: Vec<[&str; 2]> = rows.iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
        let wanted = [
            ["l1", "one CPU"],
            ["core-shared", "two CPUs"],
            ["core-shared", "siblings"],
            ["dram", "one CPU"],
        ];
        assert_eq!(names, wanted, "what belongs together stands together");
        assert_eq!(rows[2][2..], ["not tested: no two usable CPUs are SMT siblings"]);
        let absent = absent_rows(
            &diagnosis.run.header.catalogue[0],
            "core-shared",
            &[
                &unmet("smt-sibling", "no siblings"),
                &unmet("other-node", "one node"),
                &unmet("free", "budget: no time"),
            ],
        );
        let words: Vec<String> =
            absent.iter().map(|row| row.iter().map(words_of).collect::<Vec<_>>().join("|")).collect();
        assert_eq!(
            words,
            [
                "core-shared|2 others|not tested: no siblings; one node",
                "core-shared|free|not measured: budget: no time"
            ]
        );
        assert!(rows[0][2].starts_with("1.50 (") && rows[0][3].starts_with("4.50 ("), "{rows:?}");
    }

    fn unmet(placement: &'static str, why: &str) -> Planned {
        let case = case(placement, &[("source", Value::from("core-shared"))]);
        Planned { case, priority: 0, seconds: 0.0, memory_bytes: 0, unmet: Some(why.to_string()) }
    }

    fn words_of(cell: &Cell) -> &str {
        match cell {
            Cell::Text(text) => text,
            _ => "",
        }
    }

    #[test]
    fn columns_say_what_they_hold_and_in_what_unit() {
        let titled = |title: &'static str, unit: &'static str| {
            let name = model::vocabulary::cpu::metric::CYCLES;
            titled(&Metric::new(name, title, unit, Better::Lower, Form::Value))
        };
        assert_eq!(titled("round trip", "us"), "round trip, µs");
        assert_eq!(titled("IOPS", "1/s"), "IOPS");
        assert_eq!(titled("packets sent again", "1/s"), "packets sent again, 1/s");
        assert_eq!(titled("CPU busy here", ""), "CPU busy here");
        assert_eq!(titled("cycles of a load", "cycles"), "cycles of a load");
    }
}
