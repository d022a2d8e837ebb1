//! Every figure by group, as a terminal shows it: what the line is too short for are first the
//! samples, then the passes, then what is typical; names that are too long have lines of their own.

use super::super::plain::{key_lines, lines, plain};
use super::numbers::three;
use super::screen::{left, reading_words, right};
use super::table::sparkline;
use super::{LONGEST, Style, Tone, paint};
use crate::figure_rows::FigureRow;

/// Decimals of a value, with the point.
const DECIMALS: usize = 4;

/// A name keeps at least as many columns, where the line has room for more than the value.
const MIN_NAME: usize = 24;

/// What a key is indented by.
const KEY: usize = 8;

/// Bars of a picture of samples.
const BARS: usize = 6;

struct Columns {
    name: usize,
    /// Before the decimal point.
    whole: usize,
    /// Of the unit and what is behind it; a wide interval takes what its unit leaves.
    spread: usize,
    /// 0: left out.
    passes: usize,
    samples: usize,
    typical: usize,
    reading: usize,
}

impl Columns {
    fn of(rows: &[FigureRow], width: usize) -> Columns {
        let longest = rows.iter().map(|row| 2 + row.name().chars().count()).max().unwrap_or(0);
        let [whole, spread, reading] = match width {
            96.. => [6, 15, 16],
            60.. => [5, 14, 10],
            _ => [5, 7, 10],
        };
        let typical = rows.iter().map(|row| row.row.typical.chars().count()).max().unwrap_or(0);
        let mut left = width.saturating_sub(4 + whole + DECIMALS + 1 + spread + 2 + reading);
        let mut optional = |columns: usize| {
            let fits = left >= MIN_NAME + columns;
            left -= if fits { columns } else { 0 };
            if fits { columns } else { 0 }
        };
        let typical = if typical == 0 { 0 } else { optional(2 + typical.max(7)) };
        let passes = optional(4);
        let samples = if passes == 0 { 0 } else { optional(2 + BARS) };
        Columns { name: left.min(longest.max(MIN_NAME)), whole, spread, passes, samples, typical, reading }
    }
}

/// The figures, group by group; with the key of each below it where `keys` are wanted.
pub fn render(rows: &[FigureRow], keys: bool, style: Style) -> String {
    let columns = Columns::of(rows, style.width);
    let mut all: Vec<String> = Vec::new();
    for group in rows.chunk_by(|one, other| one.row.group == other.row.group) {
        if !all.is_empty() {
            all.push(String::new());
        }
        all.push(head(group[0].row.group, &columns, style));
        for same in group.chunk_by(|one, other| one.title == other.title) {
            // Figures of one benchmark stand below its name.
            let below = same.len() > 1;
            if below {
                all.extend(
                    lines(&signs(&same[0].title, style), style.width - 4)
                        .iter()
                        .map(|line| format!("    {line}")),
                );
            }
            let elsewhere = same.iter().any(|row| row.place != same[0].place);
            for row in same {
                all.extend(figure(row, below, elsewhere, &columns, style));
                if keys {
                    all.extend(key(row.row.key.as_deref().unwrap_or_default(), KEY, style));
                }
            }
        }
    }
    all.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn signs(text: &str, style: Style) -> String {
    let text = plain(text, LONGEST);
    if style.unicode { text } else { crate::plain::spelled_out(&text) }
}

fn head(group: &str, columns: &Columns, style: Style) -> String {
    let point = 4 + columns.name + columns.whole;
    let mut head = left(&format!("  {group}"), point.saturating_sub(2)) + "value";
    head = left(&head, point + DECIMALS + 1);
    let spread = if columns.spread > 7 { signs("±", style) } else { String::new() };
    head += &right(&spread, columns.spread);
    if columns.passes > 0 {
        head += &right("n", columns.passes);
    }
    if columns.samples > 0 {
        head += &format!("  {}", left("samples", columns.samples - 2));
    }
    if columns.typical > 0 {
        head += &format!("  {}", left("typical", columns.typical - 2));
    }
    let group = format!("  {}", paint(group, Tone::Strong, style));
    let rest = head.chars().skip(2 + group_width(&head)).collect::<String>();
    format!("{group}{}", paint(&format!("{rest}  reading"), Tone::Dim, style))
}

/// The columns of the group's name at the beginning of a heading.
fn group_width(head: &str) -> usize {
    head.trim_start().split(' ').next().map_or(0, |group| group.chars().count())
}

fn figure(row: &FigureRow, below: bool, elsewhere: bool, columns: &Columns, style: Style) -> Vec<String> {
    let dim = |text: &str| paint(text, Tone::Dim, style);
    let (indent, mut name) = if below { (6, row.detail.clone()) } else { (4, row.name()) };
    if elsewhere || name.is_empty() {
        let place = row.place.as_str();
        name = if name.is_empty() { place.to_string() } else { format!("{name}, {place}") };
    }
    let mut names = lines(&signs(&name, style), (4 + columns.name).saturating_sub(indent + 1));
    let last = names.pop().unwrap_or_default();
    let mut all: Vec<String> = names.iter().map(|name| format!("{:indent$}{name}", "")).collect();
    let value = row.row.value.map_or(String::new(), three);
    let (whole, decimals) = value.split_at(value.find('.').unwrap_or(value.len()));
    // A name or a number that is too long takes from the next column what it needs.
    let begin = left(&format!("{:indent$}{last}", ""), 4 + columns.name);
    let mut line = format!("{begin}{}{} ", right(whole, columns.whole), left(decimals, DECIMALS));
    let over = line.chars().count().saturating_sub(4 + columns.name + columns.whole + DECIMALS + 1);
    let unit = row.row.value.map_or(String::new(), |_| signs(&row.row.unit, style));
    let spread = if columns.spread > 7 { signs(&row.spread(), style) } else { String::new() };
    let room = columns.spread.saturating_sub(over + unit.chars().count());
    line += &dim(&format!("{unit}{}", right(&spread, room)));
    if columns.passes > 0 {
        let passes = if row.passes == 0 { String::new() } else { row.passes.to_string() };
        line += &dim(&right(&passes, columns.passes));
    }
    if columns.samples > 0 {
        let bars = sparkline(&row.samples, BARS, style.unicode);
        line += &format!("  {}", paint(&left(&bars, columns.samples - 2), Tone::Picture, style));
    }
    if columns.typical > 0 {
        line += &dim(&format!("  {}", left(&signs(&row.row.typical, style), columns.typical - 2)));
    }
    line += &format!("  {}", reading_words(&row.row.reading, columns.reading, style));
    all.push(line);
    if row.row.value.is_none() && !row.why.is_empty() {
        let why = lines(&signs(&row.why, style), style.width.saturating_sub(8));
        all.extend(why.iter().map(|line| dim(&format!("        {line}"))));
    }
    all
}

/// A key whole, on as many lines as it takes.
pub(super) fn key(key: &str, indent: usize, style: Style) -> Vec<String> {
    let lines = key_lines(&plain(key, 4 * LONGEST), style.width.saturating_sub(indent));
    lines.iter().map(|line| paint(&format!("{:indent$}{line}", ""), Tone::Dim, style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::{Row, RowReading};

    fn figure(detail: &str, value: Option<f64>) -> FigureRow {
        let row = Row {
            key: Some("memory.bandwidth@all+huge-pages?op=read/bytes=33554432#bandwidth".into()),
            group: "memory",
            value,
            low_high: value.map(|value| [0.9 * value, 1.1 * value]),
            unit: "GB/s".into(),
            typical: "20–40".into(),
            reading: RowReading { sign: '●', word: "normal".into(), wide: true, ..RowReading::default() },
            ..Row::default()
        };
        FigureRow {
            row,
            title: "Memory bandwidth".into(),
            detail: detail.into(),
            place: "all CPUs".into(),
            passes: 7,
            samples: vec![1.0, 2.0, 2.0, 3.0],
            why: "other processes took 31 % of the CPU while it ran".into(),
            ..FigureRow::default()
        }
    }

    fn shown(width: usize) -> String {
        let rows = [figure("read, 32 MiB (memory)", Some(21.06)), figure("write, 32 MiB (memory)", None)];
        render(&rows, true, Style { color: false, unicode: true, width })
    }

    #[test]
    fn columns_are_lost_from_samples_to_typical() {
        let has = |width: usize| {
            let text = shown(width);
            ["samples", " n ", "typical", "±"].map(|title| text.lines().next().unwrap_or("").contains(title))
        };
        assert_eq!(has(140), [true, true, true, true]);
        assert_eq!(has(100), [true, true, true, true]);
        assert_eq!(has(84), [false, true, true, true]);
        assert_eq!(has(76), [false, false, true, true]);
        assert_eq!(has(60), [false, false, false, true]);
        assert_eq!(has(50), [false, false, false, false]);
    }

    #[test]
    fn nothing_is_cut_and_no_line_too_long() {
        for width in [40, 60, 80, 100, 140] {
            let text = shown(width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("took 31 % of the CPU while it ran"), "{width}:\n{text}");
            assert!(words.replace(' ', "").contains("?op=read/bytes=33554432#bandwidth"), "{width}:\n{text}");
            assert!(!text.contains('…'), "{width}:\n{text}");
        }
    }
}
