//! Work over CPU%, of two hosts on one another.

use super::{column, right};
use crate::block::{Axis, Block, Callout, Cell, Chart, ChartKind, Line, LinePoint, Section, Table};
use crate::comparison::ratio_words;
use crate::sections::names::placement_words;
use compare::{Comparison, OverlaidCurves};
use model::{figure, percent};

pub fn section(one: &Comparison, letter: &str) -> Section {
    let charts = one.curves.iter().enumerate();
    let charts = charts.flat_map(|(index, overlaid)| {
        let drawn = [false, true].map(|each| Block::from(chart(one, overlaid, letter, (index, each))));
        let placed = placements(overlaid);
        let said = format!(
            "{}, {placed}. {} {}",
            overlaid.title,
            overlaid.words(letter),
            overlaid.clock_words(letter)
        );
        std::iter::once(Block::Prose(said)).chain(drawn)
    });
    Section::new(
        format!("curves-{}", letter.to_lowercase()),
        format!("Work over CPU%, {letter} on A"),
        charts.collect(),
    )
    .about(
        "The same work at the same CPU%. The host that does more has more headroom than CPU% shows, or a \
                 faster core. Lines end where the measurement ends.",
    )
}

/// Where both were measured, in full.
fn placements(overlaid: &OverlaidCurves) -> String {
    let [a, b] = overlaid.placements.each_ref().map(|name| diagnose::words::placement(name));
    if a == b { a.to_string() } else { format!("{a} and {b}") }
}

/// Work over CPU%, or `each`: the work for each percent of it.
fn chart(one: &Comparison, overlaid: &OverlaidCurves, letter: &str, (index, each): (usize, bool)) -> Chart {
    let names = ["A", letter].map(str::to_string);
    let called = |side: usize| {
        format!("{} {}, {}", names[side], one.names[side][0], placement_words(&overlaid.placements[side]))
    };
    let mut rows = Vec::new();
    let lines: Vec<Line> = overlaid
        .curves
        .iter()
        .enumerate()
        .map(|(side, curve)| {
            let attainment = curve.per_percent();
            let points = curve.points().iter().zip(attainment).map(|(point, (_, attained))| {
                let scale = if each { 0.01 / point.share } else { 1.0 };
                rows.push(vec![
                    Cell::Text(called(side)),
                    Cell::Number(percent(point.share)),
                    Cell::Number(figure(point.performance, &overlaid.unit)),
                    Cell::Number(figure(attained, &overlaid.unit)),
                ]);
                LinePoint {
                    x: point.share * 100.0,
                    y: point.performance * scale,
                    low_high: point.interval.map(|between| [between.low * scale, between.high * scale]),
                    hollow: false,
                }
            });
            Line { name: called(side), points: points.collect(), joined: true }
        })
        .collect();
    let crossings = overlaid.crossing.iter().flat_map(|found| &found.at);
    let callouts = crossings.filter(|_| !each).map(|cross| Callout {
        x: cross.share * 100.0,
        y: cross.performance,
        text: format!("cross at {}", percent(cross.share)),
        line: 0,
    });
    let clock = match overlaid.clock_ghz {
        Some(ghz) => format!(" Both at {ghz:.2} GHz."),
        None => String::new(),
    };
    let columns =
        vec![column("result"), right("CPU%"), right("work"), right("attainment: work per % of CPU")];
    Chart::new(
        format!("chart-curves-{}-{index}{}", letter.to_lowercase(), if each { "-attainment" } else { "" }),
        format!("{}{}: {}", if each { "Attainment, " } else { "" }, overlaid.title, placements(overlaid)),
        ChartKind::Lines {
            x: Axis::linear("CPU% of the placement's CPUs"),
            y: Axis::linear(format!("work{}, {}", if each { " per %" } else { "" }, overlaid.unit)),
            lines,
            marks: Vec::new(),
            callouts: callouts.collect(),
        },
        Table::new(columns, rows).folded(),
    )
    .about(if each {
        format!("Work per percent of CPU: flat if CPU% matches the work done.{clock}")
    } else {
        format!("{}{clock}", overlaid.words(letter))
    })
    .summary(side_by_side(overlaid, letter, each))
}

/// CPU% at which both are set side by side, 0..1.
const AT: [f64; 6] = [0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Work of both at the same CPU%, as far as both were measured, or `each`: for each percent of CPU.
/// The ratio is the same.
fn side_by_side(overlaid: &OverlaidCurves, letter: &str, each: bool) -> Table {
    let row = |share: &f64| {
        let (ratio, bounds) = overlaid.ratio(*share)?;
        let percents = if each { 100.0 * share } else { 1.0 };
        let work = |side: usize| {
            let work = overlaid.curves[side].performance(*share)?;
            Some(Cell::Number(figure(work / percents, &overlaid.unit)))
        };
        Some(vec![
            Cell::Number(percent(*share)),
            work(0)?,
            work(1)?,
            Cell::Number(ratio_words(ratio, bounds)),
        ])
    };
    let what = if each { "work per %" } else { "work" };
    let columns = vec![
        right("CPU%"),
        right(&format!("{what}, A")),
        right(&format!("{what}, {letter}")),
        right(&format!("{letter}/A (95 %)")),
    ];
    Table::new(columns, AT.iter().filter_map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use compare::{ComparisonSide, Options, compare};
    use diagnose::diagnose;
    use testkit::capacity::made;

    #[test]
    fn a_comparison_says_where_curves_cross_and_sets_attainment_side_by_side() {
        let arm = |s: f64, smt: bool, file: &str| ComparisonSide::measured(&diagnose(made(s, smt)), file);
        let found = compare(&arm(1.25, true, "a"), &arm(2.0, false, "b"), &Options::default());
        let section = section(&found, "B");
        let said: Vec<&str> = section.prose().collect();
        assert_eq!(said.len(), found.curves.len());
        assert!(
            said[1].contains(
                "on two threads of one core and on two CPUs that share an L3. They do not cross: B does more"
            ),
            "{said:?}"
        );
        assert!(said[1].contains("work is as measured"), "{said:?}");
        let charts: Vec<&Chart> = section
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Chart(chart) => Some(&**chart),
                _ => None,
            })
            .collect();
        assert_eq!(charts[3].id, "chart-curves-b-1-attainment");
        let rows = &charts[3].summary.as_ref().expect("side by side").rows;
        let cells: Vec<String> = rows
            .iter()
            .flatten()
            .filter_map(|cell| match cell {
                Cell::Number(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        // Two cores at half load do half of 200; two siblings whose second yields a quarter do 0.65
        // of 125.
        let half = cells.iter().position(|cell| cell == "50 %").expect("half load");
        assert!(cells[half + 2].starts_with("2.0") && cells[half + 3].starts_with("1.2"), "{cells:?}");
        assert!(cells[half + 3].contains("–"), "{cells:?}");
    }
}
