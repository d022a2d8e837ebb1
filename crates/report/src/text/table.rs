//! Tables in a terminal: aligned columns, as wide as it is.

use std::fmt::Write;

use super::{LONGEST, Style, Tone, paint};
use crate::block::{Cell, Table};
use crate::plain::{key_lines, lines, plain, spelled_out, words};
use model::VerdictKind;

/// On narrower lines a picture of the distribution gives its room to the words of the verdict.
const ROOM_FOR_PICTURES: usize = 110;

/// Columns that a table's last and first column keep on a narrow terminal: a verdict's word, and
/// most of a name.
const MIN_LAST: usize = 12;
const MIN_NAME: usize = 24;

/// Lines of a cell at most; a longer one makes a block of its row.
const LINES: usize = 4;

/// A line of cells, not more than there are columns.
type Row = Vec<(String, Tone)>;

/// Columns two spaces apart; the last one takes what is left of the line, and what does not fit
/// stands on further lines: nothing is cut inside an interval or a command. Where the line is too
/// short for the columns, their titles are broken into lines; where it still is, or a cell would
/// take more than four lines, each row stands as a block of its own.
pub fn render(table: &Table, style: Style) -> String {
    let (titles, rows, right, laid) = columns_of(table, style);
    laid.unwrap_or_else(|| rows.iter().map(|row| record(&titles, row, &right, style)).collect())
}

/// The same in columns alone: where the line is too short for them or their titles, the last ones
/// are left out.
pub fn in_columns(table: &Table, style: Style) -> String {
    let mut table = table.clone();
    loop {
        let (.., laid) = columns_of(&table, style);
        if let Some(laid) = laid.filter(|laid| !laid.contains('…')) {
            return laid;
        }
        table.columns.pop();
        for row in &mut table.rows {
            row.truncate(table.columns.len());
        }
        if table.columns.is_empty() {
            return String::new();
        }
    }
}

/// Titles and cells as they are shown, which columns stand right, and all laid out in columns where
/// they fit.
fn columns_of(table: &Table, style: Style) -> (Row, Vec<Row>, Vec<bool>, Option<String>) {
    if table.rows.is_empty() {
        return (Row::new(), Vec::new(), Vec::new(), Some(String::new()));
    }
    let picture = |at: usize| table.rows.iter().any(|row| matches!(row.get(at), Some(Cell::Distribution(_))));
    let columns: Vec<usize> =
        (0..table.columns.len()).filter(|at| style.width >= ROOM_FOR_PICTURES || !picture(*at)).collect();
    let titles: Row = columns.iter().map(|at| (plain(&table.columns[*at].title, 60), Tone::Dim)).collect();
    let cells = |row: &Vec<Cell>| {
        let own = columns.iter().take_while(|at| **at < row.len());
        own.map(|at| shown(&row[*at], style)).collect::<Row>()
    };
    let rows: Vec<Row> = table.rows.iter().map(cells).collect();
    let right: Vec<bool> = columns.iter().map(|at| table.columns[*at].right).collect();
    let verdict = |row: usize, at: usize| matches!(table.rows[row].get(columns[at]), Some(Cell::Verdict(_)));
    let laid = |head: Vec<Row>| laid(&head, &rows, &right, &verdict, style);
    let bare = vec![titles.clone()];
    let wide = fits(&widths(&bare, &rows), style).then(|| laid(bare)).flatten();
    let all = wide.or_else(|| laid(broken(&titles, &rows)));
    (titles, rows, right, all)
}

/// Titles and rows in columns; `None` where they do not fit. `verdict` is true for the places (row,
/// column) of cells that contain a verdict.
fn laid(
    head: &[Row],
    rows: &[Row],
    right: &[bool],
    verdict: &dyn Fn(usize, usize) -> bool,
    style: Style,
) -> Option<String> {
    let mut widths = widths(head, rows);
    if let Some((last, [name, others @ ..])) = widths.split_last_mut() {
        // The last column keeps room for a word, at the cost of names that are very long.
        let room = style.width.saturating_sub(4 + taken(others) + MIN_LAST.min(*last));
        *name = (*name).min(room.max(MIN_NAME));
    }
    if !fits(&widths, style) {
        return None;
    }
    if let Some((last, before)) = widths.split_last_mut() {
        *last = (*last).min(left(before, style));
    }
    let mut out: String = head.iter().map(|row| line(row, &widths, right, style)).collect();
    for (number, row) in rows.iter().enumerate() {
        let mut cells: Vec<Vec<String>> = Vec::new();
        for (at, (text, _)) in row.iter().enumerate() {
            let width = width_of(row, at, &widths, style);
            let cell = if verdict(number, at) { clauses(text, width) } else { on_lines(text, width) };
            let too_long = |line: &String| line.chars().count() > width;
            if cell.len() > LINES || cell.iter().any(too_long) {
                return None;
            }
            cells.push(cell);
        }
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0).max(1) {
            let parts = cells
                .iter()
                .zip(row)
                .map(|(cell, (_, tone))| (cell.get(at).cloned().unwrap_or_default(), *tone));
            out.push_str(&line(&parts.collect(), &widths, right, style));
        }
    }
    Some(out)
}

/// What a cell of a row may take: its column, or what is left of the line where it ends a short
/// row.
fn width_of(row: &Row, at: usize, widths: &[usize], style: Style) -> usize {
    let stretched = at + 1 == row.len() && row.len() < widths.len();
    if stretched { left(&widths[..at], style) } else { widths[at] }
}

/// A text as it is where it fits, else its words on lines; a key that is longer than a line is
/// broken behind its parts.
fn on_lines(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_string()];
    }
    let whole = |line: &String| line.chars().count() <= width || line.contains(' ');
    let broken = |line: String| if whole(&line) { vec![line] } else { key_lines(&line, width) };
    lines(text, width).into_iter().flat_map(broken).collect()
}

/// A verdict as it is where it fits. How well a figure is known stands in its interval, too, and
/// what was skipped in its reason's first clause: there the words behind are left out. All else
/// stands on lines.
fn clauses(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_string()];
    }
    let words = words(text);
    let first = |count: usize| {
        words[..count.min(words.len())].join(" ").trim_end_matches([',', ';', ':']).to_string()
    };
    match words.get(1).map(|word| word.trim_end_matches(':')) {
        Some("rough" | "wide" | "imprecise" | "skipped") => {
            let ends = |at: &usize| words[*at - 1].ends_with([',', ';', ':']);
            let fits = |text: &String| text.chars().count() <= width;
            let mut shorter = (2..words.len()).rev().filter(ends).map(first);
            vec![shorter.find(fits).unwrap_or_else(|| first(2))]
        }
        _ => on_lines(text, width),
    }
}

/// The widest cell of each column; the last cell of a short row is no column's.
fn widths(head: &[Row], rows: &[Row]) -> Vec<usize> {
    let mut widths = vec![0; head[0].len()];
    for row in head.iter().chain(rows) {
        let own = if row.len() < widths.len() { row.len().saturating_sub(1) } else { row.len() };
        for (width, (text, _)) in widths.iter_mut().zip(&row[..own]) {
            *width = (*width).max(text.chars().count());
        }
    }
    widths
}

fn taken(columns: &[usize]) -> usize {
    columns.iter().map(|width| width + 2).sum()
}

/// What is left of a line of the terminal behind these columns.
fn left(columns: &[usize], style: Style) -> usize {
    style.width.saturating_sub(2 + taken(columns)).max(MIN_LAST)
}

/// Whether the last column has room for a word.
fn fits(widths: &[usize], style: Style) -> bool {
    widths.split_last().is_none_or(|(last, before)| 2 + taken(before) + MIN_LAST.min(*last) <= style.width)
}

/// Titles on several lines, none longer than its column's cells or its longest word.
fn broken(titles: &Row, rows: &[Row]) -> Vec<Row> {
    let bare = vec![(String::new(), Tone::Dim); titles.len()];
    let columns: Vec<Vec<String>> = titles
        .iter()
        .zip(widths(&[bare], rows))
        .map(|((title, _), cells)| {
            let word = title.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
            lines(title, cells.max(word))
        })
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| -> Row {
        // The last line of each stands above the cells.
        let word = |lines: &Vec<String>| (at + lines.len()).checked_sub(height).map(|own| lines[own].clone());
        columns.iter().map(|lines| (word(lines).unwrap_or_default(), Tone::Dim)).collect()
    };
    (0..height.max(1)).map(row).collect()
}

fn line(row: &Row, widths: &[usize], right: &[bool], style: Style) -> String {
    let mut line = String::from("  ");
    for (place, (text, tone)) in row.iter().enumerate() {
        let stretched = place + 1 == row.len() && row.len() < widths.len();
        let width = width_of(row, place, widths, style);
        // Longer is only a single word, such as a key or a title.
        let text = plain(text, width);
        let pad = " ".repeat(width - text.chars().count());
        let painted = paint(&text, *tone, style);
        // Writing to a string cannot fail.
        let _ = if right[place] && !stretched {
            write!(line, "{pad}{painted}  ")
        } else {
            write!(line, "{painted}{pad}  ")
        };
    }
    format!("{}\n", line.trim_end())
}

/// A row as a block: what it is in one line, then a line for each of its figures.
fn record(titles: &Row, row: &Row, right: &[bool], style: Style) -> String {
    // The last cell of a short row says why there are no figures.
    let names =
        if row.len() < titles.len() { row.len() } else { right.iter().take_while(|right| !**right).count() };
    let name: Vec<&str> = row[..names].iter().map(|(text, _)| text.as_str()).collect();
    let name = on_lines(name.join("  ").trim_end(), style.width.saturating_sub(2));
    let mut out: String =
        name.iter().map(|line| format!("  {}\n", paint(line, Tone::Strong, style))).collect();
    let figures = || titles.iter().zip(row).skip(names).filter(|(_, (text, _))| !text.is_empty());
    let width = figures().map(|((title, _), _)| title.chars().count()).max().unwrap_or(0);
    for ((title, _), (text, tone)) in figures() {
        let room = style.width.saturating_sub(width + 6).max(MIN_LAST);
        for (at, text) in on_lines(text, room).iter().enumerate() {
            let title = if at == 0 { title.as_str() } else { "" };
            let (title, text) =
                (paint(&format!("{title:width$}"), Tone::Dim, style), paint(text, *tone, style));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "    {title}  {text}");
        }
    }
    out
}

fn shown(cell: &Cell, style: Style) -> (String, Tone) {
    match cell {
        Cell::Heading(text) => (plain(text, LONGEST), Tone::Strong),
        // A command stands at the end of a text, and whole.
        Cell::Text(text) | Cell::Number(text) | Cell::Code(text) | Cell::Keyed { name: text, .. } => {
            let text = plain(text, 4 * LONGEST);
            // Signs that need more than one letter take their columns before these are laid out.
            (if style.unicode { text } else { spelled_out(&text) }, Tone::Plain)
        }
        Cell::Verdict(verdict) => {
            let (mark, tone) = verdict_mark(verdict.kind, style.unicode);
            let words = verdict.words();
            let text = match verdict.reason.as_str() {
                "" => format!("{mark} {words}"),
                // The finding that is the cause says the rest: its name is not to be cut away.
                reason if verdict.kind == VerdictKind::TrustedWithCause => {
                    let cause = reason.split(": ").next().unwrap_or_default();
                    format!("{mark} trusted: {}", plain(cause, LONGEST))
                }
                reason => format!("{mark} {words}: {}", plain(reason, LONGEST)),
            };
            (text, tone)
        }
        Cell::Distribution(values) => (sparkline(values, BINS, style.unicode), Tone::Picture),
        Cell::Reading { reading, .. } => (reading.words(), reading.tone),
        Cell::Empty => (String::new(), Tone::Plain),
    }
}

fn verdict_mark(kind: VerdictKind, unicode: bool) -> (&'static str, Tone) {
    match (kind, unicode) {
        (VerdictKind::Trusted | VerdictKind::TrustedWithCause, true) => ("✓", Tone::Good),
        (VerdictKind::Trusted | VerdictKind::TrustedWithCause, false) => ("+", Tone::Good),
        (VerdictKind::Imprecise | VerdictKind::Multimodal | VerdictKind::Drifting, _) => ("!", Tone::Care),
        (VerdictKind::Rejected, true) => ("✗", Tone::Bad),
        (VerdictKind::Rejected, false) => ("x", Tone::Bad),
        (VerdictKind::Skipped | VerdictKind::Unverified, _) => ("-", Tone::Dim),
    }
}

/// Bins of a table's sparklines.
pub const BINS: usize = 12;

const LEVELS: [[char; 8]; 2] =
    [['.', ':', '-', '=', '+', '*', '#', '@'], ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']];

/// Values in their order, a block each; a gap where one is missing. What differs by less than
/// `least_range` (a share of the largest) from end to end does not look like more.
pub fn blocks(values: &[Option<f64>], least_range: f64, unicode: bool) -> String {
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let range = (high - low).max(least_range * high);
    let floor = (low + high - range) / 2.0;
    let levels = LEVELS[usize::from(unicode)];
    let level = |value: f64| {
        levels[((value - floor) / range * levels.len() as f64).clamp(0.0, levels.len() as f64 - 1.0) as usize]
    };
    values.iter().map(|value| value.map_or(' ', level)).collect()
}

/// A histogram of values from the least to the largest in `bins` bins, as a line of blocks; empty
/// unless at least two values differ.
pub fn sparkline(values: &[f64], bins: usize, unicode: bool) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if finite.len() < 2 || most <= least {
        return String::new();
    }
    let mut counts = vec![0usize; bins];
    for value in &finite {
        let bin = ((value - least) / (most - least) * bins as f64) as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    let highest = counts.iter().copied().max().unwrap_or(1);
    let levels = LEVELS[usize::from(unicode)];
    let level = |count: &usize| match count {
        0 => ' ',
        count => levels[(count * levels.len()).div_ceil(highest).clamp(1, levels.len()) - 1],
    };
    counts.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Column;
    use model::Verdict;

    const PLAIN: Style = Style { color: false, unicode: true, width: 60 };

    #[test]
    fn a_cause_stands_whole_and_a_width_is_left_to_its_column() {
        let cause = "✗ rejected: the CPU quota stopped it for 31 % of the time";
        assert_eq!(clauses(cause, 30).join(" "), cause);
        assert_eq!(
            clauses("! wide: perhaps 2 values, ±41 % at 95 % with 20 processes", 26),
            ["! wide: perhaps 2 values"]
        );
        assert_eq!(clauses("! rough: ±6.0 % at 95 % with 7 processes", 12), ["! rough"]);
        assert_eq!(
            clauses("- skipped: the cell is empty: lmbench had no value", 30),
            ["- skipped: the cell is empty"]
        );
    }

    #[test]
    fn tables_align_and_stay_inside_the_line() {
        let column = |title: &str, right| Column { title: title.into(), right };
        let table = Table::new(
            vec![column("test", false), column("median", true), column("verdict", false)],
            vec![
                vec![
                    Cell::Text("pipe".into()),
                    Cell::Number("1.5 us".into()),
                    Cell::Verdict(Verdict::trusted()),
                ],
                vec![
                    Cell::Text("a\x1b[31mb".into()),
                    Cell::Number("120 ns".into()),
                    Cell::Verdict(Verdict::new(VerdictKind::Rejected, "x".repeat(80))),
                ],
            ],
        );
        let text = super::render(&table, PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(!text.contains('\x1b') && text.contains("\\x1b[31m"), "{text}");
        assert!(text.starts_with("  test"), "{text}");
    }

    #[test]
    fn wide_tables_break_their_titles_and_then_their_rows() {
        let column = |title: &str, right| Column { title: title.into(), right };
        let table = Table::new(
            vec![
                column("policy", false),
                column("late, 99th percentile, us", true),
                column("late, worst of a visit, us", true),
                column("verdict", false),
            ],
            vec![
                vec![
                    Cell::Text("fifo".into()),
                    Cell::Number("83.6".into()),
                    Cell::Empty,
                    Cell::Verdict(Verdict::trusted()),
                ],
                vec![Cell::Text("idle".into()), Cell::Text("not on this machine".into())],
            ],
        );
        let at = |width| super::render(&table, Style { width, ..PLAIN });
        assert!(at(80).starts_with("  policy  late, 99th percentile, us  late, worst of"), "{}", at(80));
        assert_eq!(
            at(50),
            concat!(
                "                        late,\n",
                "                        worst\n",
                "           late, 99th    of a\n",
                "          percentile,  visit,\n",
                "  policy           us      us  verdict\n",
                "  fifo           83.6          ✓ trusted\n",
                "  idle    not on this machine\n",
            )
        );
        assert_eq!(
            at(30),
            "  fifo\n    late, 99th percentile, us  83.6\n    verdict                    ✓ trusted\n  idle  not on this machine\n"
        );
    }

    /// Intervals and commands stand whole at every width; what does not fit takes further lines, or
    /// the row a block.
    #[test]
    fn no_interval_and_no_command_is_cut() {
        let column = |title: &str, right| Column { title: title.into(), right };
        let interval = "slice 1 ms: 61 % less to 58 % less; 91 % more to 92 % more; than 3 ms";
        let command = "`assay rate --component bwaves,molecules --footprint 256M --budget 15m`";
        let reason = "±8.3 % from 10 passes; ±6 % needs about 20 more passes";
        let row = |text: &str| {
            vec![
                Cell::Text("a component with quite a name".into()),
                Cell::Number("2.11–2.48 M/s".into()),
                Cell::Text(text.into()),
            ]
        };
        let table = |rows| {
            Table::new(
                vec![column("component", false), column("rate", true), column("bound by", false)],
                rows,
            )
        };
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for width in [40, 60, 80, 100, 120, 200] {
            let style = Style { width, ..PLAIN };
            // Alone, so that every line of the second column is its own.
            let text = super::render(&table(vec![row(interval)]), style);
            let own = |at: &str| text.lines().any(|line| line.contains(at));
            for part in interval.split("; ").flat_map(|part| part.split(' ')) {
                assert!(own(part), "{part} at {width}:\n{text}");
            }
            assert!(!text.contains('…') && text.lines().all(|line| line.chars().count() <= width), "{text}");
            let text = super::render(&table(vec![row(&format!("unknown: not tested ({command})"))]), style);
            assert!(own_line(&text, command), "{width}:\n{text}");
            let mut verdict = row("");
            verdict[2] = Cell::Verdict(Verdict::new(
                VerdictKind::TrustedWithCause,
                "block-inside-cache: The largest block (24 MiB) is 1.8 times the L3 (13.5 MiB)",
            ));
            let text = squeezed(&super::render(&table(vec![verdict.clone()]), style));
            assert!(width < 80 || text.contains("trusted: block-inside-cache"), "{width}: {text}");
            verdict[2] = Cell::Verdict(Verdict::new(VerdictKind::Imprecise, reason));
            let text = squeezed(&super::render(&table(vec![verdict]), style));
            // Whole, or without it.
            assert_eq!(text.contains("±8.3 %"), text.contains("±8.3 % from 10 passes"), "{text}");
        }
    }

    fn own_line(text: &str, command: &str) -> bool {
        text.lines().any(|line| line.contains(command))
    }

    #[test]
    fn sparklines_show_two_modes() {
        let values: Vec<f64> =
            (0..40).map(|i| if i % 4 == 0 { 1.0 } else { 2.0 } + f64::from(i) * 1e-4).collect();
        let line = sparkline(&values, BINS, true);
        assert_eq!(line.chars().count(), BINS);
        assert!(line.trim_start_matches(|c| c != ' ').starts_with("  "), "a valley: {line:?}");
        assert_eq!(sparkline(&[1.0, 1.0], BINS, true), "");
        assert_eq!(sparkline(&[f64::NAN], BINS, true), "");
    }
}
