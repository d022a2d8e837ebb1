//! What people look at first: which series stand for all in the table of results.

use std::collections::BTreeMap;

use super::levels::{level, levels};
use super::names::{Subject, case_label, label, traits};
use super::smt::{self, capacity};
use super::{matrix, memory_map, rate, trade, unixbench};
use crate::block::Table;
use diagnose::Diagnosis;
use model::vocabulary::memory;
use model::{Better, Pages, Title, VerdictKind, View};
use stats::analysis::Judged;

/// A curve's cases together have no more rows than this, if that can be.
const MAX_ROWS: usize = 18;

/// A row of the table of results.
pub struct Shown<'a> {
    pub judged: &'a Judged,
    pub label: String,
    /// Where it was measured; of a pair how far the two are apart.
    pub place: String,
}

impl<'a> Shown<'a> {
    fn new(judged: &'a Judged, label: String) -> Shown<'a> {
        Shown { judged, label, place: judged.series.case.placement.name.to_string() }
    }
}

/// Every headline series of a table, of curves and trades some points, of large matrices some
/// pairs; small matrices as tables of their own.
pub fn first(diagnosis: &Diagnosis) -> (Vec<Shown<'_>>, Vec<Table>) {
    let mut benches: Vec<(&str, Vec<&Judged>)> = Vec::new();
    for judged in measured(diagnosis) {
        let bench = judged.series.case.bench.as_ref();
        match benches.iter_mut().find(|(other, _)| *other == bench) {
            Some((_, list)) => list.push(judged),
            None => benches.push((bench, vec![judged])),
        }
    }
    let (mut shown, mut tables) = (Vec::new(), Vec::new());
    for (bench, list) in benches {
        let title = diagnosis.run.header.catalogue.iter().find(|title| title.id == bench);
        match title.map(|title| (title, &title.view)) {
            Some((_, View::Curve { x, .. })) => shown.extend(curve(diagnosis, &list, x)),
            Some((title, View::Trade { x, .. })) => shown.extend(trade_ends(diagnosis, title, &list, x)),
            Some((title, View::Matrix { row, column })) => {
                for grid in matrix::grids(diagnosis, title, [row, column]) {
                    if grid.is_small() {
                        tables.push(grid.table(&title.title))
                    } else {
                        shown.extend(matrix::summary(diagnosis, &grid).into_iter().map(
                            |(judged, label, apart)| {
                                let shown = Shown::new(judged, label);
                                Shown { place: apart.unwrap_or(shown.place), ..shown }
                            },
                        ))
                    }
                }
            }
            Some((_, View::Wide | View::Table)) | None => {
                shown.extend(list.iter().map(|judged| Shown::new(judged, label(diagnosis, judged))));
            }
        }
    }
    (shown, tables)
}

/// Headline series that were not skipped, in the order of the plan; those of variants, of UnixBench
/// and the cells of studies have tables of their own.
fn measured(diagnosis: &Diagnosis) -> impl Iterator<Item = &Judged> {
    let skipped = |judged: &Judged| judged.analysis.verdict.kind == VerdictKind::Skipped;
    let variant = |judged: &Judged| {
        let case = &judged.series.case;
        smt::is_variant(case)
            || unixbench::is_own(case)
            || capacity::is_own(case)
            || memory_map::is_own(case)
            || rate::is_own(case)
    };
    let header = &diagnosis.run.header;
    let cells = header.sweep.is_some() || header.factors.is_some();
    let shown = move |judged: &&Judged| {
        judged.series.metric.headline && !skipped(judged) && !variant(judged) && !cells
    };
    diagnosis.series.iter().filter(shown)
}

/// By case, in the order of the plan; points in their order.
fn by_case<'a>(list: &[&'a Judged]) -> Vec<Vec<&'a Judged>> {
    let mut cases: BTreeMap<(usize, &str), Vec<&Judged>> = BTreeMap::new();
    for judged in list {
        cases.entry((judged.series.planned, judged.series.metric.name.as_ref())).or_default().push(judged);
    }
    cases.into_values().collect()
}

fn curve<'a>(diagnosis: &Diagnosis, list: &[&'a Judged], x: &str) -> Vec<Shown<'a>> {
    let cases = by_case(list);
    match Subject::of(x) {
        Subject::Bytes => {
            let rows = of_levels(diagnosis, &cases, x).into_iter();
            rows.map(|judged| Shown::new(judged, label(diagnosis, judged))).collect()
        }
        // Few, and the usual size is in the middle.
        Subject::Message => {
            cases.iter().flatten().map(|judged| Shown::new(judged, label(diagnosis, judged))).collect()
        }
        Subject::Cpu => cases.iter().flat_map(|case| slowest_and_fastest(diagnosis, case)).collect(),
        _ => {
            let ends = cases.iter().flat_map(|case| ends(case));
            ends.map(|judged| Shown::new(judged, label(diagnosis, judged))).collect()
        }
    }
}

/// The first and the last of a case's points.
fn ends<'a>(case: &[&'a Judged]) -> Vec<&'a Judged> {
    match case {
        [first, .., last] => vec![first, last],
        few => few.to_vec(),
    }
}

fn better_first(list: &[&Judged]) -> Vec<usize> {
    let median = |at: usize| list[at].analysis.figure().map(|estimate| estimate.median);
    let mut order: Vec<usize> = (0..list.len()).filter(|at| median(*at).is_some()).collect();
    order.sort_by(|one, other| {
        let (one, other) = (median(*one).unwrap_or(f64::NAN), median(*other).unwrap_or(f64::NAN));
        match list[0].series.metric.better {
            Better::Lower => one.total_cmp(&other),
            Better::Higher | Better::Neither => other.total_cmp(&one),
        }
    });
    order
}

fn slowest_and_fastest<'a>(diagnosis: &Diagnosis, case: &[&'a Judged]) -> Vec<Shown<'a>> {
    let called = |at: usize, word: &str| {
        let label = label(diagnosis, case[at]);
        Shown::new(case[at], format!("{label} ({word})"))
    };
    match better_first(case)[..] {
        // What may be equal is not called slow or fast.
        [fastest, .., slowest] if !overlap(case[slowest], case[fastest]) => {
            vec![called(slowest, "slowest"), called(fastest, "fastest")]
        }
        [fastest, .., slowest] => {
            let ends = [case[slowest.min(fastest)], case[slowest.max(fastest)]];
            ends.into_iter().map(|judged| Shown::new(judged, label(diagnosis, judged))).collect()
        }
        _ => case.iter().map(|judged| Shown::new(judged, label(diagnosis, judged))).collect(),
    }
}

/// Whether the intervals of two figures overlap, or one of them has none.
fn overlap(one: &Judged, other: &Judged) -> bool {
    let interval = |judged: &Judged| judged.analysis.figure().and_then(|figure| figure.interval);
    let Some((one, other)) = interval(one).zip(interval(other)) else { return true };
    one.low <= other.high && other.low <= one.high
}

/// Of a curve over sizes the largest block that fits half of each level, and the largest of all.
/// Where many cases would make that many rows, fewer levels; then all levels of the first case
/// only, and the largest block of the others.
fn of_levels<'a>(diagnosis: &Diagnosis, cases: &[Vec<&'a Judged>], x: &str) -> Vec<&'a Judged> {
    let levels = |case: &[&'a Judged], which: fn(&str) -> bool| -> Vec<&'a Judged> {
        let size = |judged: &&Judged| judged.series.point.named(x).and_then(|value| value.number());
        let cpu = case.first().and_then(|judged| judged.series.case.placement.cpus().first());
        let points = || case.iter().filter_map(size);
        let mut inner = 0.0;
        let inside = levels(diagnosis, cpu).into_iter().map(|level| {
            let (from, to) = (std::mem::replace(&mut inner, level.size.at), level.size.at / 2.0);
            let own = points().filter(|point| *point > from && *point <= to);
            (level.name, own.fold(f64::NEG_INFINITY, f64::max))
        });
        let inside = inside.filter(|(name, _)| which(name)).map(|(_, point)| point);
        let wanted: Vec<f64> = inside.chain([points().fold(f64::NEG_INFINITY, f64::max)]).collect();
        // What has no size (a case of which every visit failed) is shown as it is.
        let shown = |judged: &&&Judged| {
            size(judged)
                .is_none_or(|size| wanted.contains(&size) && !stands_by_source(diagnosis, judged, size))
        };
        case.iter().filter(shown).copied().collect()
    };
    let each =
        |which: fn(&str) -> bool| cases.iter().flat_map(|case| levels(case, which)).collect::<Vec<_>>();
    for which in [|_: &str| true, |name: &str| name.starts_with("L1") || name.starts_with("L2")] {
        let rows = each(which);
        if rows.len() <= MAX_ROWS || cases.len() == 1 {
            return rows;
        }
    }
    let Some((first, others)) = cases.split_first() else { return Vec::new() };
    let largest: Vec<&Judged> = others.iter().flat_map(|case| levels(case, |_| false)).collect();
    let mut rows = levels(first, |_| true);
    if rows.len() + largest.len() <= MAX_ROWS {
        rows.extend(largest);
        return rows;
    }
    // One case for each cache or node of a large host: the slowest and the fastest are enough.
    let mut families: Vec<(String, Vec<&Judged>)> = Vec::new();
    for judged in largest {
        let case = &judged.series.case;
        let alike: Vec<String> =
            traits(case).into_iter().map(|one| if one.number { one.name } else { one.words }).collect();
        let family = format!("{} {alike:?}", case.placement.name);
        match families.iter_mut().find(|(other, _)| *other == family) {
            Some((_, list)) => list.push(judged),
            None => families.push((family, vec![judged])),
        }
    }
    for (_, family) in families {
        match better_first(&family)[..] {
            [fastest, _, .., slowest] => rows.extend([family[slowest], family[fastest]]),
            _ => rows.extend(family),
        }
    }
    rows
}

/// Whether the latency of a level stands in the table of latencies by source: one quantity has one
/// row.
fn stands_by_source(diagnosis: &Diagnosis, judged: &Judged, size: f64) -> bool {
    let case = &judged.series.case;
    let plain = case.bench == memory::LATENCY
        && case.placement.pages == Pages::Huge
        && case.params.len() == 1
        && case.params.get(memory::param::ORDER).and_then(|order| order.text()) == Some("random");
    let source = match level(diagnosis, case.placement.cpus().first(), size).as_str() {
        "memory" => "dram".to_string(),
        name => name.trim_end_matches('d').to_lowercase(),
    };
    let is_row = |other: &Judged| {
        let there = &other.series.case;
        there.bench == memory::DATA_SOURCE
            && there.placement.name == case.placement.name
            && there.params.get(memory::param::SOURCE).and_then(|own| own.text()) == Some(&source)
            && other.series.point.is_empty()
            && other.analysis.estimate.is_some()
            && other.analysis.verdict.usable()
    };
    plain && diagnosis.series.iter().any(is_row)
}

/// Of each case what it is nearly idle and fully loaded, called by where it then is.
fn trade_ends<'a>(diagnosis: &'a Diagnosis, title: &Title, list: &[&'a Judged], x: &str) -> Vec<Shown<'a>> {
    let beside = trade::OtherMetrics::of(diagnosis, title, x);
    let rows = by_case(list).into_iter().flat_map(|case| ends(&case));
    let called = |judged: &'a Judged| {
        let at = beside.words(judged).map(|words| format!("{}, at {words}", case_label(diagnosis, judged)));
        Shown::new(judged, at.unwrap_or_else(|| label(diagnosis, judged)))
    };
    rows.map(called).collect()
}
