//! The tables of a trend: first and last value, change and a line over the runs for each figure; of
//! few runs the values by date.

use super::{Row, Shown, signed};
use crate::plain::{key_lines, lines, plain};
use crate::screen::Tone;
use crate::text::numbers::three;
use crate::text::screen::shown;
use crate::text::{Style, blocks, paint};
use compare::moment;
use compare::trend::{Figure, Trend};
use stats::order::median;

/// No name is longer on a screen.
const LONGEST: usize = 400;

/// Columns of a line; those of 0 are left out.
struct Columns {
    group: usize,
    label: usize,
    value: usize,
    first: bool,
    change: bool,
    unit: usize,
    line: usize,
}

impl Columns {
    fn of(width: usize) -> Columns {
        let all = Columns { group: 10, label: 25, value: 8, first: true, change: true, unit: 7, line: 15 };
        match width {
            width if width >= 96 => Columns { line: 15 + (width - 96).min(30), ..all },
            width if width >= 80 => Columns { group: 0, value: 7, line: 11, ..all },
            width if width >= 60 => Columns { group: 0, value: 7, first: false, unit: 6, line: 0, ..all },
            width => {
                let label = width.saturating_sub(2 + 7 + 1 + 7 + 2 + 10).max(8);
                Columns { group: 0, label, value: 7, first: false, change: false, line: 0, ..all }
            }
        }
    }
}

/// A row a figure.
pub fn over_runs(trend: &Trend, rows: &[Row], most: usize, how: Shown, style: Style) -> Vec<String> {
    let columns = Columns::of(style.width);
    let mut head =
        format!("  {:group$}{:label$}", "", "figure", group = columns.group, label = columns.label);
    let value = columns.value;
    if columns.first {
        head += &format!("{:>value$}", "first");
    }
    head += &format!("{:>value$} {:unit$}", "last", "", unit = columns.unit);
    if columns.change {
        head += &format!("{:>7}", "change");
    }
    if columns.line > 0 {
        head += &format!("  {:line$}", "runs", line = columns.line);
    }
    let mut all = vec![paint(format!("{head}  step").trim_end(), Tone::Dim, style)];
    let mut group = "";
    for row in kept(rows, most) {
        let own = row.known.map_or("", |figure| figure.group.word());
        let named = if own == group || columns.group == 0 { "" } else { own };
        all.extend(line(trend, row, named, how, &columns, style));
        group = own;
    }
    all.extend(more(rows, most, style));
    all
}

/// Rows that have something to say stay longest; each in its place.
fn kept<'a, 'b>(rows: &'b [Row<'a>], most: usize) -> Vec<&'b Row<'a>> {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    let says = |row: &Row| row.figure.standing().is_some() || row.figure.last.is_some();
    places.sort_by_key(|place| !says(&rows[*place]));
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|place| &rows[place]).collect()
}

fn more(rows: &[Row], most: usize, style: Style) -> Option<String> {
    let left = rows.len().saturating_sub(most);
    (left > 0).then(|| paint(&format!("  {left} more: --all"), Tone::Dim, style))
}

/// The lines of a name; a key without a short name is broken at its parts.
fn name(row: &Row, width: usize, style: Style) -> Vec<String> {
    let text = plain(&row.label, LONGEST);
    if row.label == row.figure.key { key_lines(&text, width) } else { lines(&shown(&text, style), width) }
}

fn line(trend: &Trend, row: &Row, group: &str, how: Shown, columns: &Columns, style: Style) -> Vec<String> {
    let figure = row.figure;
    // In a list of all names are long, and numbers stand below them.
    let wide = how == Shown::All && row.known.is_none();
    let room = if wide { style.width - 2 - columns.group } else { columns.label - 1 };
    let mut labels = name(row, room, style);
    let label = if wide { String::new() } else { labels.pop().unwrap_or_default() };
    let indent = |group: &str| format!("  {group:own$}", own = columns.group);
    let mut all: Vec<String> = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        all.push(format!("{}{label}", indent(if at == 0 { group } else { "" })));
    }
    let group = if all.is_empty() { group } else { "" };
    let of = |point: Option<&compare::trend::Point>| {
        point.map_or(String::new(), |own| three(own.value * row.scale))
    };
    let (first, last) = (figure.points.first(), figure.points.last());
    let mut text = format!("{}{label:own$}", indent(group), own = columns.label);
    let value = columns.value;
    if columns.first {
        text += &format!("{:>value$}", of(first));
    }
    let unit = shown(&row.unit, style);
    text += &format!("{:>value$} ", of(last));
    text += &paint(&format!("{unit:own$}", own = columns.unit), Tone::Dim, style);
    if columns.change {
        let change = first.zip(last).filter(|_| figure.points.len() > 1);
        let change = change.map_or(String::new(), |(first, last)| signed(last.value / first.value - 1.0));
        text += &format!("{change:>7}");
    }
    if columns.line > 0 {
        let drawn = over(figure, trend.runs.len(), columns.line, style.unicode);
        text += "  ";
        text += &paint(&format!("{drawn:own$}", own = columns.line), Tone::Picture, style);
    }
    let (words, tone) = standing(trend, figure);
    text += "  ";
    text += &paint(&shown(&words, style), tone, style);
    all.push(text.trim_end().to_string());
    all
}

/// The last step that stands: sign and day.
fn standing(trend: &Trend, figure: &Figure) -> (String, Tone) {
    let day = |run: usize| {
        let run = trend.runs.get(run)?;
        Some(moment(&run.started)?[0].clone())
    };
    match (figure.standing(), figure.last) {
        (_, Some(_)) => ("? confirm".to_string(), Tone::Care),
        (Some(step), None) => {
            let (sign, tone) = match step.worse {
                Some(true) => ("▼", Tone::Bad),
                Some(false) => ("▲", Tone::Good),
                None => ("●", Tone::Care),
            };
            (format!("{sign} {}", day(step.between[1]).unwrap_or_default()), tone)
        }
        (None, None) if !figure.is_judged() => ("– few runs".to_string(), Tone::Dim),
        (None, None) => ("● steady".to_string(), Tone::Plain),
    }
}

/// Values from the first run to the last as a line of blocks: the median of the runs in each
/// column. What differs by less than 4 % from end to end does not look like more.
fn over(figure: &Figure, runs: usize, columns: usize, unicode: bool) -> String {
    const MIN_RANGE: f64 = 0.04;
    let columns = columns.min(runs.max(1));
    let mut parts: Vec<Vec<f64>> = vec![Vec::new(); columns];
    for point in &figure.points {
        let place = point.run * columns / runs.max(1);
        if let Some(part) = parts.get_mut(place) {
            part.push(point.value);
        }
    }
    let values: Vec<Option<f64>> = parts.iter().map(|part| median(part)).collect();
    blocks(&values, MIN_RANGE, unicode)
}

/// The newest values of each figure by date, as many as fit.
pub fn by_date(trend: &Trend, rows: &[Row], most: usize, style: Style) -> Vec<String> {
    if trend.runs.is_empty() || rows.is_empty() {
        return Vec::new();
    }
    const VALUE: usize = 8;
    let (label, unit) = (25.min(style.width / 2), 7);
    let fit = (style.width.saturating_sub(2 + label + unit) / VALUE).max(1);
    let first = trend.runs.len().saturating_sub(fit);
    let when: Vec<[String; 2]> =
        trend.runs[first..].iter().map(|run| moment(&run.started).unwrap_or_default()).collect();
    // Runs of one day show their time.
    let one_day = when.iter().all(|at| at[0] == when[0][0]);
    let mut head = format!("  {:label$}{:unit$}", "figure", "");
    for [day, time] in &when {
        head += &format!("{:>VALUE$}", if one_day { time } else { day });
    }
    let mut all = vec![paint(head.trim_end(), Tone::Dim, style)];
    for row in kept(rows, most) {
        let mut labels = name(row, label - 1, style);
        let last = labels.pop().unwrap_or_default();
        all.extend(labels.iter().map(|text| format!("  {text}")));
        let mut text = format!("  {last:label$}");
        text += &paint(&format!("{:unit$}", shown(&row.unit, style)), Tone::Dim, style);
        for run in first..trend.runs.len() {
            let point = row.figure.points.iter().find(|point| point.run == run);
            text +=
                &format!("{:>VALUE$}", point.map_or(String::new(), |point| three(point.value * row.scale)));
        }
        all.push(text.trim_end().to_string());
    }
    all.extend(more(rows, most, style));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use compare::trend::Point;

    #[test]
    fn a_line_shows_where_values_rise_and_noise_looks_flat() {
        let of = |values: &[f64], columns: usize, unicode: bool| {
            let points =
                values.iter().enumerate().map(|(run, value)| Point { run, value: *value, ci95: None });
            let figure = Figure { points: points.collect(), ..Figure::default() };
            over(&figure, values.len(), columns, unicode)
        };
        assert_eq!(of(&[1.0, 1.0, 2.0, 2.0], 10, true), "▁▁██");
        assert_eq!(of(&[1.0, 1.0, 2.0, 2.0], 2, false), ".@");
        let noise = of(&[100.0, 100.2, 99.9, 100.1], 10, true);
        assert!(noise.chars().all(|c| "▄▅".contains(c)), "{noise}");
        assert_eq!(of(&[], 10, true).trim(), "");
    }
}
