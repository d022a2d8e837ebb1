//! Benchmarks of several tasks by where the tasks sit: a row each, a column a placement; and what a
//! wake-up consists of.

use std::collections::{BTreeMap, HashMap};

use super::figures::median_words;
use super::names::{case_words, label, placement_legend, placement_words};
use super::smt::is_variant;
use super::unixbench;
use super::{column, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::figure;
use model::vocabulary::MetricId;
use model::vocabulary::ipc as ids;
use model::{Beside, Case, VerdictKind};
use stats::analysis::Judged;

/// Fewer stand in the table of results just as well.
const MIN_ROWS: usize = 2;

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let mut blocks = Vec::new();
    blocks.extend(matrix(diagnosis).map(Block::Table));
    let wakes = wakes(diagnosis);
    let mut names: Vec<&str> = diagnosis
        .series
        .iter()
        .filter(|judged| meets(&judged.series.case))
        .map(|judged| judged.series.case.placement.name.as_ref())
        .collect();
    names.sort_by_key(|name| rank(name));
    if !wakes.is_empty() {
        blocks.push(Block::Table(parts(&wakes)));
        blocks.push(Block::Preformatted(time_line(&wakes)));
    }
    Section::new("placement-matrix", "By placement", blocks)
        .about(
            format!(
                "Figures of one benchmark by the placement of its tasks, and the parts of a wake-up. A higher score is not a \
                 better host: the woken task may wait.{}",
                placement_legend(names)
            ),
        )
        .unless_empty()
}

/// The columns: free first, then from near to far. Other placements are no pair's.
const PLACES: [&str; 10] = [
    "free",
    "same-cpu",
    "smt-sibling",
    "same-cluster",
    "same-llc",
    "other-llc",
    "other-node",
    "other-package",
    "other-cpu",
    "spread",
];

fn rank(name: &str) -> usize {
    PLACES.iter().position(|place| *place == name).unwrap_or(PLACES.len())
}

/// Whether tasks of a case meet each other: two of them at least, alone on the host.
fn meets(case: &Case) -> bool {
    case.placement.seats.len() > 1
        && case.placement.beside == Beside::Idle
        && !is_variant(case)
        && !unixbench::is_own(case)
        && rank(&case.placement.name) < PLACES.len()
}

fn matrix(diagnosis: &Diagnosis) -> Option<Table> {
    // A row for each benchmark, its parameters and its first point.
    let mut rows: Vec<(&model::Params, Vec<&Judged>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for judged in diagnosis.series.iter().filter(|judged| judged.series.metric.headline) {
        let series = &judged.series;
        if !meets(&series.case) || judged.analysis.figure().is_none() {
            continue;
        }
        let mut case = series.case.clone();
        case.placement.name = "".into();
        let place = *places.entry(format!("{}#{}", case.key(), series.metric.name)).or_insert_with(|| {
            rows.push((&series.point, Vec::new()));
            rows.len() - 1
        });
        let (first, row) = &mut rows[place];
        if **first == series.point {
            row.push(judged);
        }
    }
    rows.retain(|(_, row)| row.len() > 1);
    let mut names: Vec<&str> = rows
        .iter()
        .flat_map(|(_, row)| row.iter().map(|one| one.series.case.placement.name.as_ref()))
        .collect();
    names.sort_by_key(|name| (rank(name), *name));
    names.dedup();
    let cells = |row: &[&Judged]| -> Vec<Cell> {
        let first = row.first().map_or(String::new(), |judged| label(diagnosis, judged));
        let place = |name: &&str| {
            let own = row.iter().find(|judged| judged.series.case.placement.name == **name);
            own.map_or(Cell::Empty, |judged| number(value(judged)))
        };
        [text(first)].into_iter().chain(names.iter().map(place)).collect()
    };
    (rows.len() >= MIN_ROWS).then(|| {
        Table::new(
            [column("benchmark")]
                .into_iter()
                .chain(names.iter().map(|name| right(placement_words(name))))
                .collect(),
            rows.iter().map(|(_, row)| cells(row)),
        )
    })
}

/// The median, in brackets if it is rejected.
fn value(judged: &Judged) -> String {
    let value = median_words(judged);
    match judged.analysis.verdict.kind {
        VerdictKind::Rejected => format!("({value})"),
        _ => value,
    }
}

/// What is known of the wake-ups of a case.
struct WakeUp<'a> {
    case: &'a Case,
    name: String,
    /// p50, p99, jitter, waking, waiting, switching, us; voluntary and involuntary switches a
    /// round.
    values: [Option<f64>; 8],
}

const WAKE: [MetricId; 8] = [
    ids::metric::WAKEUP_P50,
    ids::metric::WAKEUP_P99,
    ids::metric::WAKEUP_JITTER,
    ids::metric::WAKING,
    ids::metric::WAITING,
    ids::metric::SWITCHING,
    ids::metric::VOLUNTARY,
    ids::metric::INVOLUNTARY,
];

/// The wake-ups of the benchmark that was measured in most placements.
fn wakes(diagnosis: &Diagnosis) -> Vec<WakeUp<'_>> {
    let mut cases: BTreeMap<usize, &Case> = BTreeMap::new();
    for judged in &diagnosis.series {
        let series = &judged.series;
        let told = series.metric.name == ids::metric::WAKING && judged.analysis.figure().is_some();
        if told && !is_variant(&series.case) {
            cases.entry(series.planned).or_insert(&series.case);
        }
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    cases.values().for_each(|case| *counts.entry(case.bench.as_ref()).or_default() += 1);
    // Of equally many the first of the plan.
    let Some(most) = counts.values().copied().max() else { return Vec::new() };
    let bench =
        cases.values().find(|case| counts[case.bench.as_ref()] == most).map(|case| case.bench.clone());
    let mut cases: Vec<&Case> =
        cases.into_values().filter(|case| Some(&case.bench) == bench.as_ref()).collect();
    let told =
        diagnosis.series.iter().filter(|judged| WAKE.iter().any(|own| judged.series.metric.name == *own));
    let by_case: HashMap<(String, &str), &Judged> =
        told.map(|judged| ((judged.series.case.key(), judged.series.metric.name.as_ref()), judged)).collect();
    cases.sort_by_key(|case| (rank(&case.placement.name), case.placement.beside != Beside::Idle));
    let wake = |case: &&'_ Case| {
        let value = |metric: MetricId| {
            let judged = by_case.get(&(case.key(), metric.as_str()))?;
            Some(judged.analysis.figure()?.median)
        };
        WAKE.map(value)
    };
    let name = |case: &Case| match case_words(diagnosis, case).as_str() {
        "" => placement_words(&case.placement.name).to_string(),
        words => format!("{}, {words}", placement_words(&case.placement.name)),
    };
    cases.iter().map(|case| WakeUp { case, name: name(case), values: wake(case) }).collect()
}

fn parts(wakes: &[WakeUp]) -> Table {
    let titles = [
        "wake-up p50, µs",
        "p99",
        "jitter",
        "waking",
        "waiting",
        "switching",
        "voluntary/round",
        "involuntary",
    ];
    let row = |wake: &WakeUp| -> Vec<Cell> {
        let cell = |value: &Option<f64>| value.map_or(Cell::Empty, |value| number(figure(value, "")));
        [text(wake.name.clone())].into_iter().chain(wake.values.iter().map(cell)).collect()
    };
    let first = wakes.first().map_or("placement", |wake| wake.case.bench.as_ref());
    Table::new([column(first)].into_iter().chain(titles.map(right)).collect(), wakes.iter().map(row))
}

/// Columns of the longest time line.
const WIDTH: f64 = 30.0;

/// A wake-up's parts one after the other, all lines to one scale.
fn time_line(wakes: &[WakeUp]) -> String {
    let of = |wake: &WakeUp| -> Option<[f64; 3]> {
        let [.., waking, waiting, switching, _, _] = wake.values;
        Some([waking?, waiting?, switching?])
    };
    let whole = |parts: [f64; 3]| parts.iter().sum::<f64>();
    let longest = wakes.iter().filter_map(of).map(whole).fold(0.0, f64::max);
    let name_width = wakes.iter().map(|wake| wake.name.chars().count()).max().unwrap_or(0);
    let mut lines = vec![format!(
        "wake-up: waking ▓  waiting ░  switching █   up to {}\n(waking includes the switch if the woken task preempts)",
        figure(longest, "us")
    )];
    for wake in wakes {
        let Some(parts) = of(wake).filter(|_| longest > 0.0) else { continue };
        // Rounded where parts meet, so that lines of equal sums are equally long.
        let mut end = 0.0;
        let mut drawn = 0;
        let mut line = String::new();
        for (part, mark) in parts.into_iter().zip(['▓', '░', '█']) {
            end += part;
            let until = (end / longest * WIDTH).round() as usize;
            line.extend(std::iter::repeat_n(mark, until.saturating_sub(drawn)));
            drawn = drawn.max(until);
        }
        lines.push(format!("{:name_width$}  {line} {}", wake.name, figure(whole(parts), "us")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(case: &Case, values: [f64; 3]) -> WakeUp<'_> {
        let [waking, waiting, switching] = values.map(Some);
        let values = [None, None, None, waking, waiting, switching, None, None];
        WakeUp { case, name: case.placement.name.to_string(), values }
    }

    #[test]
    fn time_lines_are_to_scale() {
        let case = super::super::made::case("same-cpu", &[]);
        let drawn = time_line(&[wake(&case, [1.0, 1.0, 1.0]), wake(&case, [0.0, 5.0, 1.0])]);
        let marks = |line: usize, mark: char| {
            drawn.lines().nth(line).map(|line| line.chars().filter(|own| *own == mark).count())
        };
        assert_eq!([marks(2, '▓'), marks(2, '░'), marks(2, '█')], [Some(5); 3], "{drawn}");
        assert_eq!([marks(3, '▓'), marks(3, '░'), marks(3, '█')], [Some(0), Some(25), Some(5)], "{drawn}");
    }

    #[test]
    fn columns_go_from_near_to_far() {
        let mut names = ["spread", "other-package", "same-llc", "free", "same-cpu"];
        names.sort_by_key(|name| rank(name));
        assert_eq!(names, ["free", "same-cpu", "same-llc", "other-package", "spread"]);
    }
}
