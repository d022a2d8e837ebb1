//! A run in the form of lmbench's summary: its tables, filled from our series, blank where a cell
//! was not measured or must not be used.

use std::fmt::Write;

use super::plain::plain;
use diagnose::Diagnosis;
use import::lmbench::{CellContent, Column, HOST, SYSTEM, TABLES, Unit, find, has_unknown_size, numbers};
use import::{Keyed, keyed};
use model::vocabulary::{MetricId, sched as ids};
use model::{Pages, Params, Value};
use stats::Judged;

/// The summary. Tables without a single figure are left out, as lmbench does.
pub fn render(diagnosis: &Diagnosis) -> String {
    let header = &diagnosis.run.header;
    let mut out = format!(
        "\n                 L M B E N C H  3 . 0   S U M M A R Y\n                 ------------------------------------\n\
         \t\t (filled by Assay {} from its own benchmarks, not by lmbench)\n\n",
        env!("CARGO_PKG_VERSION")
    );
    let (mut empty, mut pinned): (Vec<&str>, Vec<&str>) = Default::default();
    for table in TABLES {
        let cells: Vec<String> = table.columns.iter().map(|column| cell(diagnosis, column)).collect();
        pinned.extend(table.columns.iter().zip(&cells).filter_map(|(column, cell)| match column.holds {
            CellContent::Figure(name) if cell.trim().is_empty() && only_pinned(diagnosis, name) => Some(name),
            _ => None,
        }));
        let figures = table.columns.iter().zip(&cells);
        let mut figures = figures.filter(|(column, _)| matches!(column.holds, CellContent::Figure(_)));
        if figures.all(|(_, cell)| cell.trim().is_empty()) {
            empty.push(table.title);
            continue;
        }
        // Rows are split by characters, so no character may hide or be wide: a host may call itself
        // anything.
        let ascii = |text: &str, width: usize| -> String {
            let safe = plain(text, 200).replace(|c: char| !c.is_ascii_graphic(), "_");
            safe.chars().take(width).collect()
        };
        let release = diagnosis.machine.kernel.release.as_deref().unwrap_or_default();
        let system = format!("Linux {}", ascii(release, SYSTEM));
        let system: String = system.trim_end().chars().take(SYSTEM).collect();
        let _ = write!(out, "{}\n{:<HOST$} {system:>SYSTEM$} ", table.heading, ascii(&header.host, HOST));
        for (column, cell) in table.columns.iter().zip(&cells) {
            let _ = write!(out, "{}{cell}", " ".repeat(column.gap));
        }
        out.truncate(out.trim_end().len());
        out.push_str("\n\n");
    }
    if !empty.is_empty() {
        let _ = writeln!(out, "(without tables that would be empty: {})", empty.join(", "));
    }
    if !pinned.is_empty() {
        let _ = writeln!(
            out,
            "(blank: measured on pinned CPUs only; lmbench leaves its tasks to the scheduler. Deeper profiles, or --only with their group, measure both: {})",
            pinned.join(", ")
        );
    }
    out
}

fn cell(diagnosis: &Diagnosis, column: &Column) -> String {
    let value = match column.holds {
        CellContent::Figure("null I/O") => {
            let mean = value(diagnosis, "read").zip(value(diagnosis, "write"));
            mean.map(|(read, write)| (read + write) / 2.0)
        }
        CellContent::Figure(name) => value(diagnosis, name),
        CellContent::Fact("2p/0K again") => value(diagnosis, "2p/0K"),
        CellContent::Fact("mhz") => {
            let clock = diagnosis
                .series
                .iter()
                .find(|judged| judged.series.case.bench == model::vocabulary::cpu::CLOCK);
            let clock = clock.and_then(|judged| judged.analysis.estimate.as_ref());
            let text = clock.map(|estimate| format!("{:.0}", estimate.median * 1e3)).unwrap_or_default();
            return format!("{text:>width$}", width = column.width);
        }
        CellContent::Fact("system") => {
            let text = diagnosis.machine.cpus.architecture.as_deref().map(|name| format!("{name}-Linux"));
            let text = plain(&text.unwrap_or_default(), 23).replace(|c: char| !c.is_ascii_graphic(), "_");
            return format!("{text:>width$}", width = column.width);
        }
        CellContent::Fact("copies") => return format!("{:>width$}", 1, width = column.width),
        CellContent::Fact(_) => None,
    };
    numbers::write(value.unwrap_or(0.0), column.digits, column.width)
}

/// The figure by our own series, in lmbench's unit.
fn value(diagnosis: &Diagnosis, name: &str) -> Option<f64> {
    let figure = find(name)?;
    let told = keyed(figure.key)?;
    series(diagnosis, &told, figure.unit).or_else(|| hop_less_parts(diagnosis, &told, figure.unit))
}

/// lmbench takes pipe and data off a hop however large they are.
fn hop_less_parts(diagnosis: &Diagnosis, switch: &Keyed, unit: Unit) -> Option<f64> {
    let nothing = Params::from([(ids::param::KB, Value::Int(0))]);
    let part = |metric: MetricId, point: &Params| {
        let told = Keyed { metric: metric.to_string(), point: point.clone(), case: switch.case.clone() };
        series(diagnosis, &told, unit)
    };
    if switch.metric != ids::metric::SWITCH {
        return None;
    }
    let data = if switch.point == nothing { 0.0 } else { part(ids::metric::DATA, &switch.point)? };
    let rest = part(ids::metric::LATENCY, &switch.point)? - part(ids::metric::PIPE, &nothing)? - data;
    (rest > 0.0).then_some(rest)
}

/// Whether a figure that is missing was measured pinned: lmbench's run where the scheduler likes,
/// so it does not stand in.
fn only_pinned(diagnosis: &Diagnosis, name: &str) -> bool {
    let Some((figure, told)) = find(name).and_then(|figure| Some((figure, keyed(figure.key)?))) else {
        return false;
    };
    let measured_free = diagnosis.series.iter().any(|judged| {
        let case = &judged.series.case;
        let same = case.bench == told.case.bench && case.params == told.case.params;
        same && case.placement.name == "free" && judged.analysis.estimate.is_some()
    });
    told.case.placement.name == "free"
        && !measured_free
        && ["one-cpu", "same-cpu"].into_iter().any(|place| {
            let mut pinned = told.clone();
            pinned.case.placement.name = place.into();
            series(diagnosis, &pinned, figure.unit)
                .or_else(|| hop_less_parts(diagnosis, &pinned, figure.unit))
                .is_some()
        })
}

/// What a series that means the same has, in lmbench's unit.
fn series(diagnosis: &Diagnosis, told: &Keyed, unit: Unit) -> Option<f64> {
    let largest = told.point.iter().find(|(_, value)| has_unknown_size(value)).map(|(name, _)| name.as_str());
    let fits = |judged: &&Judged| {
        let (series, verdict) = (&judged.series, &judged.analysis.verdict);
        let case = &series.case;
        let of_case = case.bench == told.case.bench
            && case.placement.name == told.case.placement.name
            && case.params == told.case.params
            && case.knobs.is_empty()
            && case.placement.beside == told.case.placement.beside
            && series.metric.name == told.metric;
        of_case
            && verdict.usable()
            && judged.analysis.estimate.is_some()
            && (largest.is_some() || series.point == told.point)
    };
    // lmbench does not ask for huge pages.
    let rank = |judged: &&Judged| match judged.series.case.placement.pages {
        Pages::AsGiven => 0,
        Pages::Base => 1,
        Pages::Huge => 2,
    };
    let size = |judged: &&Judged| judged.series.point.named(largest?).and_then(|size| size.int());
    let found = diagnosis
        .series
        .iter()
        .filter(fits)
        .min_by_key(|judged| (rank(judged), std::cmp::Reverse(size(judged))))?;
    let median = found.analysis.estimate.as_ref()?.median;
    unit.theirs(median * compare::unit_scale(found.series.metric.unit.as_ref(), unit.name())?)
}
