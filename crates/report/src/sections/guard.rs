//! What was seen around the runs of a guarded command: a row a placement.

use super::{column, number, pairs, right, text};
use crate::block::{Block, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::{clipped, figure, percent};
use model::Case;
use model::vocabulary::MetricId;
use model::vocabulary::guard as ids;
use stats::analysis::Judged;
use stats::order::Interval;
use stats::quads::{By, Versus};

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let is_result =
        |judged: &&Judged| judged.series.case.bench == ids::COMMAND && judged.series.metric.headline;
    let results: Vec<&Judged> = diagnosis
        .series
        .iter()
        .filter(is_result)
        .filter(|judged| judged.analysis.figure().is_some())
        .collect();
    let first = results.first()?;
    let mut commands: Vec<(String, String)> = Vec::new();
    for judged in &results {
        let named = (name(&judged.series.case), words(&judged.series.case));
        if !commands.contains(&named) {
            commands.push(named);
        }
    }
    let rows = results.iter().map(|judged| {
        let estimate = judged.analysis.figure();
        let of = |metric: MetricId, class: Option<&str>| {
            let series = diagnosis.series.iter().find(|other| {
                let point = other.series.point.get(ids::param::CLASS).and_then(|value| value.text());
                other.series.planned == judged.series.planned
                    && other.series.metric.name == metric
                    && point == class
            });
            series.and_then(|series| series.analysis.figure()).map(|estimate| estimate.median)
        };
        let amount = |metric: MetricId| of(metric, None).map_or("–".to_string(), |value| figure(value, ""));
        let plain = |metric: MetricId| number(amount(metric));
        let share = |value: Option<f64>| number(value.map_or("–".to_string(), percent));
        let switches = match (of(ids::metric::VOLUNTARY, None), of(ids::metric::INVOLUNTARY, None)) {
            (Some(own), Some(forced)) => format!("{} + {}", figure(own, ""), figure(forced, "")),
            _ => "–".to_string(),
        };
        let cpu = of(ids::metric::CPU_USER, None)
            .zip(of(ids::metric::CPU_SYSTEM, None))
            .map(|(user, system)| user + system);
        let mut row = vec![text(judged.series.case.placement.name.to_string())];
        if commands.len() > 1 {
            row.insert(0, text(name(&judged.series.case)));
        }
        row.extend([
            share(estimate.and_then(|estimate| estimate.cv)),
            plain(ids::metric::WALL),
            number(cpu.map_or("–".to_string(), |cpu| figure(cpu, ""))),
            number(switches),
            plain(ids::metric::MIGRATIONS),
            plain(ids::metric::WAIT),
            plain(ids::metric::FAULTS),
            number(match of(ids::metric::PINNED, None) {
                Some(pinned) => format!("{}, {} pinned", amount(ids::metric::TASKS), figure(pinned, "")),
                None => amount(ids::metric::TASKS),
            }),
            number(of(ids::metric::OCCUPANCY, Some("same-cpu")).map_or("–".to_string(), |share| {
                format!("{} of {} looks", percent(share), amount(ids::metric::LOOKS))
            })),
            share(of(ids::metric::WATCH_CPU, None)),
        ]);
        row
    });
    let rows = rows.collect();
    let mut columns = vec![
        column("placement"),
        right("spread"),
        right("wall, s"),
        right("CPU, s"),
        right("switches (own + forced)"),
        right("migrations"),
        right("waited, s"),
        right("faults"),
        right("tasks"),
        right("on one CPU"),
        right("watching"),
    ];
    if commands.len() > 1 {
        columns.insert(0, column("command"));
    }
    let title = diagnosis.run.header.catalogue.iter().find(|title| title.id == first.series.case.bench);
    let told_apart = diagnosis.versus().map(|found| Block::Prose(versus_words(&found)));
    Some(Section {
        id: "guarded".into(),
        title: "Guarded command".into(),
        about: title.map_or(String::new(), |title| title.reading.to_string()),
        blocks: told_apart
            .into_iter()
            .chain([
                Block::Table(pairs(["name", "command"], commands)),
                Block::Table(Table { columns, rows, folded: false }),
            ])
            .collect(),
        long: false,
    })
}

/// What running two commands in turn came to, B being the second.
fn versus_words(found: &Versus) -> String {
    let by = |(difference, interval): (f64, Option<Interval>)| match interval {
        Some(Interval { low, high }) => {
            format!("{:.3} ({:.3} to {:.3})", difference.exp(), low.exp(), high.exp())
        }
        None => format!("{:.3}", difference.exp()),
    };
    let said = match (found.interval, found.same_within()) {
        (None, _) => "too few runs to tell B from A".to_string(),
        (Some(interval), _) if found.differs() => {
            let (low, high) = (interval.low.abs(), interval.high.abs());
            let word = if found.difference > 0.0 { "slower" } else { "faster" };
            format!(
                "B is {word} by {} to {}",
                percent(low.min(high).exp_m1()),
                percent(low.max(high).exp_m1())
            )
        }
        (Some(_), Some(margin)) => format!("the same within {}", percent(margin)),
        (Some(interval), None) => {
            format!("cannot tell: at most {} apart", percent(interval.high.max(-interval.low).exp_m1()))
        }
    };
    let unit = match found.by {
        By::Time => "in time",
        By::Cycles => "in core cycles",
    };
    let mut words = format!("{said}, {unit}, over {} quads of runs in turn.", found.quads);
    words.push_str(&format!(" B's time over A's as they ran: {}.", by(found.in_time)));
    if let Some(in_cycles) = found.in_cycles {
        words.push_str(&format!(" In cycles: {}.", by(in_cycles)));
    }
    if let Some(apart) = found.clock_effect {
        words.push_str(&format!(
            " The core ran {} {} under B: that is part of the difference.",
            percent(apart.abs().exp_m1()),
            if apart > 0.0 { "faster" } else { "slower" }
        ));
    }
    words
}

fn name(case: &Case) -> String {
    case.params.get(ids::param::COMMAND).map_or(String::new(), |value| clipped(&value.to_string()))
}

/// The command as it was given.
fn words(case: &Case) -> String {
    let words = case.inputs.get("words").and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    clipped(&words.unwrap_or_default().join(" "))
}
