//! Quantities over the time of a run, from the observer and from the passes.

use std::collections::BTreeMap;

use model::{Run, Visit};
use stats::order::median;

/// One quantity over the time of a run, or why it is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    pub subject: String,
    pub name: String,
    pub unit: String,
    /// Time in ms and value; both finite.
    pub points: Vec<(f64, f64)>,
    pub missing: Option<String>,
}

impl Track {
    /// Least, median and largest value.
    pub fn range(&self) -> Option<[f64; 3]> {
        let values: Vec<f64> = self.points.iter().map(|(_, value)| *value).collect();
        let middle = median(&values)?;
        Some([values.iter().copied().fold(f64::INFINITY, f64::min), middle, self.highest()?])
    }

    pub fn highest(&self) -> Option<f64> {
        self.points.iter().map(|(_, value)| *value).reduce(f64::max)
    }
}

/// The observer never writes more lines.
const MAX_LINES: usize = 200;

/// The observer's lines in the order of their first piece, the pieces of each joined.
pub fn observed(run: &Run) -> Vec<Track> {
    let mut tracks: Vec<Track> = Vec::new();
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in run.time_lines.iter().filter(|line| !line.subject.is_empty()) {
        let key = (line.subject.as_ref(), line.name.as_ref());
        if !known.contains_key(&key) && tracks.len() == MAX_LINES {
            continue;
        }
        let at = *known.entry(key).or_insert_with(|| {
            tracks.push(Track {
                subject: line.subject.to_string(),
                name: line.name.to_string(),
                unit: line.unit.to_string(),
                points: Vec::new(),
                missing: line.missing.clone(),
            });
            tracks.len() - 1
        });
        let points = line.at_ms.iter().copied().zip(line.value.iter().copied());
        tracks[at].points.extend(points.filter(|(at, value)| at.is_finite() && value.is_finite()));
    }
    tracks
}

/// Start (ms) and core clock (GHz) of each pass with a known clock: the median over its samples.
pub fn visit_clocks(run: &Run) -> Vec<(f64, f64)> {
    let clock = |visit: &Visit| Some((visit.at_ms, median(&clocks_of(visit))?));
    run.visits.iter().filter_map(clock).filter(|(at, _)| at.is_finite()).collect()
}

/// Whether a core could run at this clock: 1 MHz to 100 GHz.
pub fn is_clock(ghz: &f64) -> bool {
    (1e-3..=100.0).contains(ghz)
}

/// The core clock of every sample of a pass, GHz; impossible values are left out.
pub fn clocks_of(visit: &Visit) -> Vec<f64> {
    let columns =
        visit.samples.iter().filter_map(|samples| Some((samples.len(), samples.beside.clock_ghz.as_ref()?)));
    columns
        .flat_map(|(windows, column)| (0..windows).filter_map(|index| column.get(index)))
        .filter(is_clock)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Packed, TimeLine};
    use testkit::{run, samples, visit};

    fn line(subject: &'static str, at_ms: &[f64], value: &[f64]) -> TimeLine {
        TimeLine {
            subject: subject.into(),
            name: "x".into(),
            unit: "GHz".into(),
            at_ms: at_ms.to_vec(),
            value: value.to_vec(),
            missing: None,
        }
    }

    #[test]
    fn pieces_of_a_line_belong_together() {
        let mut run = run(1, Vec::new());
        run.time_lines = vec![
            line("", &[1.0], &[9.0]),
            line("clock", &[1.0, 2.0], &[3.0, f64::NAN]),
            line("idle", &[1.0], &[0.5]),
            line("clock", &[3.0, 4.0, 5.0], &[1.0, 2.0]),
        ];
        let tracks = observed(&run);
        assert_eq!(tracks.len(), 2);
        assert_eq!(tracks[0].points, [(1.0, 3.0), (3.0, 1.0), (4.0, 2.0)]);
        assert_eq!(tracks[0].range(), Some([1.0, 2.0, 3.0]));
    }

    #[test]
    fn a_visits_clock_is_the_median_beside_its_windows() {
        let mut noted = samples("rate", 0, &[1.0; 4]);
        noted.beside.clock_ghz = Some(Packed::Each(vec![3.0, 2.0, 1e9, 2.5]));
        let run = run(1, vec![visit(0, 0, 0, vec![noted]), visit(1, 0, 0, vec![samples("rate", 0, &[1.0])])]);
        assert_eq!(visit_clocks(&run), [(0.0, 2.5)]);
    }
}
