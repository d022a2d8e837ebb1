//! Work over CPU%, of two machines on one another.

use super::{left, right};
use crate::block::{Axis, Block, Callout, Cell, Chart, ChartKind, Line, LinePoint, Scale, Section, Table};
use compare::{Comparison, Overlaid};
use model::{figure, percent};

pub fn section(one: &Comparison, letter: &str) -> Section {
    let charts = one.curves.iter().enumerate();
    let charts = charts.flat_map(|(index, overlaid)| {
        [false, true].map(|each| Block::from(chart(one, overlaid, letter, (index, each))))
    });
    Section {
        id: format!("curves-{}", letter.to_lowercase()),
        title: format!("Work over CPU%, {letter} on A"),
        about: "The same work at the same CPU%: who does more there has more left than CPU% says, or a faster core. Lines are never \
                drawn beyond what was measured."
            .into(),
        blocks: charts.collect(),
        long: false,
    }
}

/// Work over CPU%, or `each`: the work for each percent of it.
fn chart(one: &Comparison, overlaid: &Overlaid, letter: &str, (index, each): (usize, bool)) -> Chart {
    let names = ["A", letter].map(str::to_string);
    let called =
        |side: usize| format!("{} {}, {}", names[side], one.names[side][0], overlaid.placements[side]);
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
    let clock = overlaid.clock_ghz.map_or(String::new(), |ghz| format!(" Both scaled to {ghz:.2} GHz."));
    let columns =
        vec![left("result"), right("CPU%"), right("work"), right("attainment: work for each % of CPU")];
    Chart {
        id: format!(
            "chart-curves-{}-{index}{}",
            letter.to_lowercase(),
            if each { "-attainment" } else { "" }
        ),
        title: format!(
            "{}{}: {}",
            if each { "Attainment, " } else { "" },
            overlaid.title,
            overlaid.placements.join(" and ")
        ),
        about: match each {
            true => format!("Work for each percent of CPU: flat where CPU% tells the truth.{clock}"),
            false => format!("{}{clock}", overlaid.words(letter)),
        },
        kind: ChartKind::Lines {
            x: Axis { title: "CPU% of the placement's CPUs".into(), scale: Scale::Linear },
            y: Axis {
                title: format!("work{}, {}", if each { " for each %" } else { "" }, overlaid.unit),
                scale: Scale::Linear,
            },
            lines,
            marks: Vec::new(),
            callouts: callouts.collect(),
        },
        summary: None,
        data: Table { columns, rows, folded: true },
    }
}
