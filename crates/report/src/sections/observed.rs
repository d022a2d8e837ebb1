//! Clocks, idle states, temperatures and voltages over the time of a run: a table,
//! charts for the page.

use super::{column, number, right, text};
use crate::block::{Axis, Block, Cell, Chart, ChartKind, Line, LinePoint, Section, Table};
use diagnose::Diagnosis;
use diagnose::tracks::{self, Track};
use diagnose::words::{figure, percent};
use model::TimeLine;
use stats::order::median;

/// A chart has no use for more points of a line: longer ones are shown by medians of neighbours.
const POINTS: usize = 400;

/// The subjects in their order, with the text below each chart.
const SUBJECTS: [(&str, &str, &str, &str); 6] = [
    (
        TimeLine::CLOCK,
        "Core clock",
        "Measured with a chain of additions right after each sample: a median per pass. \
                 The other lines are as the kernel reports.",
        "GHz",
    ),
    (TimeLine::MULTIPLIER, "Multiplier", "Core clock by bus clock.", ""),
    (
        TimeLine::IDLE,
        "Idle states",
        "Share of time that CPUs spent in each state, as the kernel counts it when a state ends. The rest is running \
         time.",
        "share of the time",
    ),
    (TimeLine::TEMPERATURE, "Temperature", "The processor's own sensors.", "°C"),
    (TimeLine::VOLTAGE, "Core voltage", "", "V"),
    (TimeLine::TRAFFIC, "Memory traffic", "Traffic between each last-level cache and memory.", "GB/s"),
];

/// A line each in the terminal too: least, median and largest, or why the host does not report it.
pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let tracks = tracks(diagnosis);
    let rows: Vec<Vec<Cell>> = tracks.iter().filter_map(row).collect();
    let missing = tracks.iter().filter(|track| track.points.is_empty()).filter_map(|track| {
        let why = track.missing.as_ref()?.replace(": ", ", ");
        Some(format!("{}, {} ({why})", track.subject, track.name))
    });
    let missing: Vec<String> = missing.collect();
    let missing =
        (!missing.is_empty()).then(|| Block::Prose(format!("Not available: {}.", missing.join("; "))));
    let columns = vec![column("what"), right("least"), right("median"), right("most"), right("points")];
    let table = (!rows.is_empty()).then_some(Block::Table(Table::new(columns, rows)));
    let blocks: Vec<Block> = table.into_iter().chain(missing).collect();
    Section::new("observed", "Clock, idle and temperature", blocks)
        .about("Read at most twice per second while measuring, from a CPU that did not measure.")
        .unless_empty()
}

/// The same as time lines.
pub fn charts(diagnosis: &Diagnosis) -> Option<Section> {
    let tracks = tracks(diagnosis);
    let blocks: Vec<Block> =
        SUBJECTS.iter().filter_map(|subject| Some(Block::from(chart(*subject, &tracks)?))).collect();
    (!blocks.is_empty())
        .then(|| Section::new("observed-lines", "Clock, idle and temperature over the run", blocks).long())
}

/// What was observed and what follows from it, by subject.
fn tracks(diagnosis: &Diagnosis) -> Vec<Track> {
    let clocks = tracks::visit_clocks(&diagnosis.run);
    let mut all = Vec::new();
    let own = |subject: &str, name: &str, unit: &str, factor: f64| Track {
        subject: subject.into(),
        name: name.into(),
        unit: unit.into(),
        points: clocks.iter().map(|(at, ghz)| (*at, ghz * factor)).collect(),
        missing: None,
    };
    if !clocks.is_empty() {
        all.push(own(TimeLine::CLOCK, "measured with the samples", "GHz", 1.0));
        if let Some(khz) = diagnosis.machine.frequency.bus_khz {
            let name = format!("measured clock over a bus of {:.0} MHz", khz as f64 / 1e3);
            all.push(own(TimeLine::MULTIPLIER, &name, "", 1e6 / khz as f64));
        }
    }
    all.extend(tracks::observed(&diagnosis.run));
    let place = |track: &Track| SUBJECTS.iter().position(|(subject, ..)| *subject == track.subject);
    // The critical temperature is a constant beside its sensor's line, and what a newer version saw
    // is its own affair.
    let mut placed: Vec<(usize, Track)> =
        all.into_iter().filter_map(|track| Some((place(&track)?, track))).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed
        .into_iter()
        .map(|(_, track)| track)
        .filter(|track| track.range().is_some() || track.missing.is_some())
        .collect()
}

fn row(track: &Track) -> Option<Vec<Cell>> {
    let value = |value: f64| match track.unit.as_str() {
        "share of the time" => number(percent(value)),
        unit => number(figure(value, unit)),
    };
    let [least, middle, most] = track.range()?.map(value);
    let what = text(format!("{}, {}", track.subject, track.name));
    Some(vec![what, least, middle, most, number(track.points.len().to_string())])
}

fn chart((subject, title, about, unit): (&str, &str, &str, &str), tracks: &[Track]) -> Option<Chart> {
    let limits = tracks.iter().filter(|track| track.subject == subject && !track.points.is_empty());
    let lines: Vec<Line> = limits
        .map(|track| Line {
            name: track.name.clone(),
            points: thinned(&track.points).into_iter().map(|(at, y)| LinePoint::at(at / 1e3, y)).collect(),
            joined: true,
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let rows = lines.iter().flat_map(|line| {
        let cells = |point: &LinePoint| {
            vec![text(line.name.clone()), number(format!("{:.1}", point.x)), number(figure(point.y, ""))]
        };
        line.points.iter().map(cells)
    });
    let value = if unit.is_empty() { title } else { unit };
    let data = Table::new(vec![column("line"), right("at, s"), right(value)], rows).folded();
    Some(
        Chart::new(
            format!("observed-{}", subject.replace(' ', "-")),
            title,
            ChartKind::lines(Axis::linear("time, s"), Axis::linear(value), lines),
            data,
        )
        .about(about),
    )
}

/// Medians of neighbouring points where there are more than a chart can show.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let together = points.len().div_ceil(POINTS).max(1);
    let middle = |chunk: &[(f64, f64)]| {
        let values: Vec<f64> = chunk.iter().map(|(_, value)| *value).collect();
        Some((chunk.first()?.0, median(&values)?))
    };
    points.chunks(together).filter_map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of, texts};
    use super::*;
    use model::View;

    fn line(subject: &'static str, name: &'static str, unit: &'static str, value: &[f64]) -> TimeLine {
        let at_ms = (0..value.len()).map(|at| at as f64 * 500.0).collect();
        TimeLine {
            subject: subject.into(),
            name: name.into(),
            unit: unit.into(),
            at_ms,
            value: value.to_vec(),
            missing: None,
        }
    }

    #[test]
    fn a_row_each_and_a_chart_a_subject() {
        let mut diagnosis = Made::new(View::Table, vec![latency()])
            .case(case("one-cpu", &[]), &[(of(&[]), &[("latency", 1.0)])])
            .diagnosed(machine(2));
        assert!(section(&diagnosis).is_none() && charts(&diagnosis).is_none(), "nothing was observed");
        let missing = TimeLine { missing: Some("no cpuidle".into()), ..line("idle", "residency", "", &[]) };
        diagnosis.run.time_lines = vec![
            line("", "background", "CPUs", &[0.1]),
            line("temperature", "coretemp Core 0", "°C", &[62.0, 73.0]),
            line("critical temperature", "coretemp Core 0", "°C", &[100.0]),
            line("clock", "by cpufreq, measured CPU", "GHz", &[1.37, 3.0, 2.99]),
            missing,
            line("clock", "by cpufreq, measured CPU", "GHz", &[3.05]),
            line("something newer", "x", "", &[1.0]),
        ];
        let section = section(&diagnosis).expect("a section");
        let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
        let wanted = [
            ["clock, by cpufreq, measured CPU", "1.37 GHz", "3.00 GHz", "3.05 GHz", "4"].as_slice(),
            ["temperature, coretemp Core 0", "62.0 °C", "67.5 °C", "73.0 °C", "2"].as_slice(),
        ];
        assert_eq!(texts(table), wanted);
        let Block::Prose(missing) = &section.blocks[1] else { panic!("a sentence") };
        assert_eq!(missing, "Not available: idle, residency (no cpuidle).");
        let lines = charts(&diagnosis).expect("charts");
        assert_eq!(lines.blocks.len(), 2);
    }

    #[test]
    fn long_lines_are_thinned_and_keep_their_shape() {
        let points: Vec<(f64, f64)> = (0..5000).map(|at| (f64::from(at), f64::from(at / 100))).collect();
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS && thin.len() > POINTS / 2);
        assert_eq!((thin[0].1, thin[thin.len() - 1].1), (0.0, 49.0));
    }
}
