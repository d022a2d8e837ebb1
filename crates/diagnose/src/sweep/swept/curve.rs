//! Curves of one knob with the other one fixed: their regions, and why they are so.

use super::{Facet, MetricGrid, words};
use model::{Sweep, percent};
use stats::sweep::{Kind, Segment, segments};

/// A line of the grid.
pub struct Curve {
    /// 0: along the columns' knob.
    pub axis: usize,
    /// The fixed value of the other one, where there is one.
    pub across: usize,
    pub cells: Vec<usize>,
    /// In the order of the line, numbered from 1: letters are regions of the map.
    pub pieces: Vec<Piece>,
}

/// A region of a curve.
pub struct Piece {
    pub segment: Segment,
    pub number: usize,
    /// `1, min_granularity 1 ms to 4 ms: wall time falls by 38 %: preemption is too frequent; ...`
    pub text: String,
}

/// Curves over each knob whose values are three numbers or more, with the other knob at the value
/// that is advised, or that was there; none where the knobs do not matter.
pub fn curves(sweep: &Sweep, facet: &Facet, charted: &MetricGrid) -> Vec<Curve> {
    let axes = 0..sweep.axes.len();
    let numbers = |axis: &usize| sweep.axes[*axis].numbers().is_some_and(|numbers| numbers.len() > 2);
    let advised = facet.advice.both.or(facet.advice.target).or(facet.advice.response);
    let [columns, rows] = sweep.shape();
    let at =
        advised.map(|advised| advised.cell).or(Some(charted.control).filter(|cell| *cell < charted.cells));
    let at = at.unwrap_or(rows / 2 * columns + columns / 2);
    let curve = |axis: usize| {
        let (across, along) = if axis == 0 { (at / columns, columns) } else { (at % columns, rows) };
        let cell = |along: usize| match axis {
            0 => across * columns + along,
            _ => along * columns + across,
        };
        let cells: Vec<usize> = (0..along).map(cell).collect();
        let levels: Vec<_> = cells.iter().map(|cell| charted.surface.levels[*cell]).collect();
        let pieces = segments(&levels).into_iter().enumerate().map(|(index, segment)| {
            let own = &cells[segment.from..=segment.to];
            let number = index + 1;
            let text =
                format!("{number}, {}: {}", along_words(sweep, axis, segment), what(charted, segment, own));
            Piece { segment, number, text }
        });
        Curve { axis, across, pieces: pieces.collect(), cells }
    };
    match charted.surface.matters.yes {
        true => axes.filter(numbers).map(curve).collect(),
        false => Vec::new(),
    }
}

fn along_words(sweep: &Sweep, axis: usize, segment: Segment) -> String {
    let axis = &sweep.axes[axis];
    let value = |place: usize| words::value(axis, &axis.values[place]);
    match segment.from == segment.to {
        true => value(segment.from),
        false => format!("{} to {}", value(segment.from), value(segment.to)),
    }
}

/// What the metric does there, and why.
fn what(charted: &MetricGrid, segment: Segment, cells: &[usize]) -> String {
    let ratios: Vec<f64> = cells.iter().filter_map(|cell| charted.ratio(*cell)).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    let title = &charted.metric.title;
    let what = match (segment.kind, segment.rises) {
        (Kind::Fall, Some(true)) => format!("{title} rises by {}", percent(high / low - 1.0)),
        (Kind::Fall, _) => format!("{title} falls by {}", percent(1.0 - low / high)),
        (Kind::Ragged, _) => {
            format!("{title} is ragged, {} from lowest to highest", percent(high / low - 1.0))
        }
        (Kind::Flat, _) => {
            let ends = [low, high].map(words::change);
            let range = if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" to ") };
            format!("{title} is flat ({range}, against the setting before)")
        }
    };
    match words::why(charted, segment.kind, cells) {
        why if why.is_empty() => what,
        why => format!("{what}; {why}"),
    }
}
