//! What was seen around the runs of a guarded command: a row a placement.

use super::figures::cv_in_words;
use super::names::placement_words;
use super::{column, number, pairs, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::{clipped, figure, percent};
use model::vocabulary::MetricId;
use model::vocabulary::guard as ids;
use stats::analysis::Judged;
use stats::order::Interval;
use stats::quads::{Basis, Versus};
use stats::series::Series;

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let results = results(diagnosis);
    let first = results.first()?;
    let mut commands: Vec<(String, String)> = Vec::new();
    for judged in &results {
        let named = (name(&judged.series), words(&judged.series));
        if !commands.contains(&named) {
            commands.push(named);
        }
    }
    let several = commands.len() > 1;
    let rows = results.iter().map(|judged| {
        let command = several.then(|| text(name(&judged.series)));
        command.into_iter().chain(seen_around(diagnosis, judged)).collect()
    });
    let columns = several
        .then(|| column("command"))
        .into_iter()
        .chain(COLUMNS.map(|(title, is_number)| if is_number { right(title) } else { column(title) }));
    let table = Table::new(columns.collect(), rows);
    let title = diagnosis.run.header.catalogue.iter().find(|title| title.id == first.series.case.bench);
    let comparison = diagnosis.versus().map(|found| Block::Prose(versus(diagnosis, &found, &results)));
    let tables = [pairs(["name", "command"], commands), table].map(Block::Table);
    let blocks = comparison.into_iter().chain(tables).collect();
    let about = title.map_or("", |title| &*title.reading);
    Some(Section::new("guarded", "Guarded command", blocks).about(about))
}

/// Titles of the columns, and whether they hold numbers.
const COLUMNS: [(&str, bool); 11] = [
    ("placement", false),
    ("spread", true),
    ("wall, s", true),
    ("CPU, s", true),
    ("switches (own + forced)", true),
    ("migrations", true),
    ("waited, s", true),
    ("faults", true),
    ("tasks", true),
    ("on one CPU", true),
    ("watching", true),
];

/// A placement's cells.
fn seen_around(diagnosis: &Diagnosis, judged: &Judged) -> [Cell; COLUMNS.len()] {
    let none = || "–".to_string();
    let of = |metric: MetricId| beside(diagnosis, judged, metric, None);
    let amount = |metric: MetricId| of(metric).map_or_else(none, |value| figure(value, ""));
    let plain = |metric: MetricId| number(amount(metric));
    let switches = match (of(ids::metric::VOLUNTARY), of(ids::metric::INVOLUNTARY)) {
        (Some(own), Some(forced)) => format!("{} + {}", figure(own, ""), figure(forced, "")),
        _ => none(),
    };
    let cpu = of(ids::metric::CPU_USER).zip(of(ids::metric::CPU_SYSTEM));
    let tasks = match of(ids::metric::PINNED) {
        Some(pinned) => format!("{}, {} pinned", amount(ids::metric::TASKS), figure(pinned, "")),
        None => amount(ids::metric::TASKS),
    };
    let on_one_cpu = beside(diagnosis, judged, ids::metric::OCCUPANCY, Some("same-cpu"));
    let looks = |share| format!("{} of {} probes", percent(share), amount(ids::metric::LOOKS));
    [
        text(placement_words(&judged.series.case.placement.name)),
        number(cv_in_words(judged).unwrap_or_else(none)),
        plain(ids::metric::WALL),
        number(cpu.map_or_else(none, |(user, system)| figure(user + system, ""))),
        number(switches),
        plain(ids::metric::MIGRATIONS),
        plain(ids::metric::WAIT),
        plain(ids::metric::FAULTS),
        number(tasks),
        number(on_one_cpu.map_or_else(none, looks)),
        number(of(ids::metric::WATCH_CPU).map_or_else(none, percent)),
    ]
}

/// How two commands compare that ran alternately or at once.
fn versus(diagnosis: &Diagnosis, found: &Versus, results: &[&Judged]) -> String {
    let Some(first) = results.first() else { return String::new() };
    let mut words = versus_words(found, &first.series);
    if let (true, [a, b]) = (found.at_once, results) {
        let overlap = |judged: &&Judged| judged.series.metric.name == ids::metric::OVERLAP;
        let overlap = diagnosis.series.iter().find(overlap).and_then(|judged| judged.analysis.figure());
        let of = |arm: &Judged, metric: MetricId| beside(diagnosis, arm, metric, None);
        let looks = [a, b].map(|arm| of(arm, ids::metric::LOOKS).zip(of(arm, ids::metric::WALL)));
        words.push_str(&duet_notes(overlap.map(|figure| figure.median), looks));
    }
    words
}

/// The result of each command in each placement, where it is known.
pub fn results(diagnosis: &Diagnosis) -> Vec<&Judged> {
    let is_result =
        |judged: &&Judged| judged.series.case.bench == ids::COMMAND && judged.series.metric.headline;
    let results = diagnosis.series.iter().filter(is_result);
    results.filter(|judged| judged.analysis.figure().is_some()).collect()
}

/// Median over the runs of another metric of the same command.
fn beside(diagnosis: &Diagnosis, of: &Judged, metric: MetricId, class: Option<&str>) -> Option<f64> {
    let mut point = of.series.point.clone();
    class.into_iter().for_each(|class| point.insert(ids::param::CLASS, class));
    let found = diagnosis.series.iter().find(|other| {
        other.series.planned == of.series.planned
            && other.series.metric.name == metric
            && other.series.point == point
    });
    Some(found?.analysis.figure()?.median)
}

/// Both must have run for this share of the longer run, and a command may have had several tasks at
/// work for this share of its own: else it is said.
const TOGETHER: f64 = 0.8;
const SEVERAL: f64 = 0.1;
/// The interval between two looks at the tasks of a command, s.
const LOOK_S: f64 = 0.01;

/// What of two commands at once must be known beside their ratio: from the share of the longer run
/// in which both ran, and looks at each that found several of its tasks at work, with its wall
/// time, s.
fn duet_notes(together: Option<f64>, looks: [Option<(f64, f64)>; 2]) -> String {
    let mut notes = match together {
        Some(share) if share < TOGETHER => format!(
            " Note: both ran at once for only {} of the longer run; disturbances in the rest do not cancel.",
            percent(share)
        ),
        Some(share) => format!(" Both ran at once for {} of the longer run.", percent(share)),
        None => String::new(),
    };
    for (arm, looks) in ["A", "B"].iter().zip(looks) {
        if looks.is_some_and(|(looks, wall)| looks * LOOK_S > SEVERAL * wall) {
            notes.push_str(&format!(
                " Note: {arm} had several tasks at work at a time, which took turns on its one CPU: with more CPUs it may compare \
                 otherwise."
            ));
        }
    }
    notes + " Compare the times in the tables with each other only, not with other runs."
}

/// The result of two commands that ran alternately or at once, B being the second. `series` is
/// one of its series and has the placement.
pub fn versus_words(found: &Versus, series: &Series) -> String {
    let by = |(difference, interval): (f64, Option<Interval>)| match interval {
        Some(Interval { low, high }) => {
            format!("{:.3} ({:.3}–{:.3})", difference.exp(), low.exp(), high.exp())
        }
        None => format!("{:.3}", difference.exp()),
    };
    let said = match (found.interval, found.same_within()) {
        (None, _) => "Too few runs to compare B with A".to_string(),
        (Some(interval), _) if found.differs() => {
            let (low, high) = (interval.low.abs(), interval.high.abs());
            let word = if found.difference > 0.0 { "slower" } else { "faster" };
            let [least, most] = [low.min(high), low.max(high)].map(|end| percent(end.exp_m1()));
            if least == most {
                format!("B is {least} {word}")
            } else {
                format!("B is {}–{most} {word}", least.trim_end_matches(" %"))
            }
        }
        (Some(_), Some(margin)) => format!("The same within {}", percent(margin)),
        (Some(interval), None) => {
            format!("Cannot tell: at most {} apart", percent(interval.high.max(-interval.low).exp_m1()))
        }
    };
    let unit = match found.by {
        Basis::Time => "in time",
        Basis::Cycles => "in core cycles",
    };
    let cpus: Vec<String> = series.case.placement.cpus().iter().map(|cpu| cpu.to_string()).collect();
    let mut words = if found.at_once {
        format!(
            "{said}, measured at once on CPUs {}, over {} swapped pairs.",
            cpus.join(" and "),
            found.quads
        )
    } else {
        format!("{said}, {unit}, over {} alternating quads of runs.", found.quads)
    };
    words.push_str(&format!(" B's time over A's, as measured: {}.", by(found.in_time)));
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

pub fn name(series: &Series) -> String {
    series.params().get(ids::param::COMMAND).map_or(String::new(), |value| clipped(&value.to_string()))
}

/// The command as it was given.
fn words(series: &Series) -> String {
    let inputs = &series.case.inputs;
    // Of two at once the second has words of its own.
    let at_once = series.point.get(ids::param::COMMAND).and_then(|name| name.text());
    let second = at_once.is_some_and(|name| name.starts_with("B-"));
    let words = inputs.get(if second { "rival" } else { "words" });
    let words = words.and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    clipped(&words.unwrap_or_default().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_duet_leaves_in_doubt_is_noted() {
        let calm = duet_notes(Some(0.95), [Some((0.0, 1.0)), Some((9.0, 1.0))]);
        assert!(
            calm.starts_with(" Both ran at once for 95 % of the longer run.") && !calm.contains("Note"),
            "{calm}"
        );
        assert!(calm.ends_with("not with other runs."), "{calm}");
        let doubtful = duet_notes(Some(0.5), [None, Some((11.0, 1.0))]);
        assert!(doubtful.contains("Note: both ran at once for only 50 % of the longer run"), "{doubtful}");
        assert!(doubtful.contains("Note: B had several tasks") && !doubtful.contains("A had"), "{doubtful}");
    }
}
