//! Conditions while the run measured.

use super::{column, number, right, text};
use crate::block::{Axis, Block, Chart, ChartKind, Line, LinePoint, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::{figure, percent};
use model::{Conditions, Visit};

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let visits: Vec<&Visit> =
        diagnosis.run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0).collect();
    if visits.is_empty() {
        return None;
    }
    let part_only = diagnosis.machine.limits.groups_above == Some(true);
    let mut blocks = vec![Block::Table(totals(&visits, part_only))];
    blocks.extend(time_line(diagnosis, &visits).map(Block::from));
    let events: Vec<Vec<_>> = diagnosis
        .run
        .events
        .iter()
        .map(|event| {
            let seconds = if event.at_ms < 1e9 {
                format!("{:.1} s", event.at_ms / 1e3)
            } else {
                figure(event.at_ms / 1e3, "s")
            };
            vec![number(seconds), text(event.kind.to_string()), text(event.text.clone())]
        })
        .collect();
    if !events.is_empty() {
        blocks.push(Block::Table(Table::new(vec![right("at"), column("event"), column("what")], events)));
    }
    Some(
        Section::new("conditions", "Conditions", blocks)
            .about(
                "The kernel's counters over all passes, read right before and after \
                 one.",
            )
            .long(),
    )
}

/// Less is an error of the kernel's ticks.
const LEAST_SEEN_CPUS: f64 = 5e-4;

const THROTTLED: &str = "throttled by a quota";

/// `part_only`: quotas of control groups above are not seen.
fn totals(visits: &[&Visit], part_only: bool) -> Table {
    type Part = fn(&Conditions) -> Option<f64>;
    let parts: [(&str, &str, Part); 9] = [
        ("CPU time of other work", "CPUs", |c| Some(c.busy_ms? - c.own_ms?)),
        ("CPU time of Assay", "CPUs", |c| c.own_ms),
        ("steal", "CPUs", |c| c.steal_ms),
        ("interrupts", "CPUs", |c| c.irq_ms),
        (THROTTLED, "of the time", |c| c.throttled_ms),
        ("some task waited for memory", "of the time", |c| c.psi_memory_ms),
        ("some task waited for I/O", "of the time", |c| c.psi_io_ms),
        ("pages swapped", "pages", |c| c.swapped_pages),
        ("thermal throttle events", "events", |c| c.thermal_throttles),
    ];
    let rows = parts.into_iter().map(|(label, unit, part)| {
        let known: Vec<(f64, f64)> = visits
            .iter()
            .filter_map(|visit| Some((visit.conditions.wall_ms, part(&visit.conditions)?)))
            .collect();
        let (wall, total) = known.iter().fold((0.0, 0.0), |sum, (wall, value)| (sum.0 + wall, sum.1 + value));
        let value = match (known.is_empty(), unit) {
            (true, _) => "not reported".to_string(),
            _ if label == THROTTLED && part_only && total == 0.0 => "groups above unseen".to_string(),
            // Busy time and our own are read one after the other: a difference may be below zero.
            (_, "CPUs") if total / wall < LEAST_SEEN_CPUS => "none seen".to_string(),
            (_, "CPUs") => format!("{:.3} CPUs", total / wall),
            (_, "of the time") => format!("{} of the time", percent(total / wall)),
            (_, unit) => format!("{total:.0} {unit}"),
        };
        vec![text(label), number(value)]
    });
    Table::new(vec![column("over all passes"), right("amount")], rows)
}

fn time_line(diagnosis: &Diagnosis, visits: &[&Visit]) -> Option<Chart> {
    type Part = fn(&Conditions) -> Option<f64>;
    let parts: [(&str, Part); 2] = [
        ("other work", |c| Some(c.background()? * f64::from(c.cpus))),
        ("steal", |c| Some(c.steal()? * f64::from(c.cpus))),
    ];
    let mut lines: Vec<Line> = parts
        .into_iter()
        .map(|(name, part)| Line {
            name: name.to_string(),
            points: visits
                .iter()
                .filter_map(|visit| {
                    let y = part(&visit.conditions)?.max(0.0);
                    Some(LinePoint::at(visit.at_ms / 1e3, y))
                })
                .collect(),
            joined: true,
        })
        .collect();
    for line in diagnosis.run.time_lines.iter().filter(|line| line.subject.is_empty()) {
        let points = line.at_ms.iter().zip(&line.value);
        lines.push(Line {
            name: format!("{} before measuring", line.name),
            points: points.map(|(at, y)| LinePoint::at(at / 1e3, *y)).collect(),
            joined: true,
        });
    }
    lines.retain(|line| !line.points.is_empty());
    if lines.is_empty() {
        return None;
    }
    let rows = lines.iter().flat_map(|line| {
        let cells = |point: &LinePoint| {
            vec![
                text(line.name.clone()),
                number(format!("{:.1}", point.x)),
                number(format!("{:.3}", point.y)),
            ]
        };
        line.points.iter().map(cells)
    });
    let data = Table::new(vec![column("line"), right("at, s"), right("CPUs")], rows).folded();
    Some(
        Chart::new(
            "time-line",
            "Other work on this host",
            ChartKind::lines(Axis::linear("time, s"), Axis::linear("CPUs"), lines),
            data,
        )
        .about("One point per pass, in CPUs. The kernel counts in ticks of 10 ms, so short passes scatter."),
    )
}
