//! Blocks as a terminal shows them: short sections only, aligned columns, marks beside colours.

use std::fmt::Write;

use anstyle::{AnsiColor, Color};

use super::block::{Block, Cell, Check, FINDINGS, Mark, RESULTS, Report, Section, Table};
use super::plain::{lines, plain};
pub use super::text_machine::Style;
use crate::model::{Finding, Severity, VerdictKind};

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Default, PartialEq)]
enum Tone {
    #[default]
    Plain,
    Strong,
    Dim,
    Good,
    Care,
    Bad,
    Picture,
}

/// Longest single text of the machine's own that is shown.
const LONGEST: usize = 300;

/// The report as text for a terminal of `style.width` columns.
pub fn render(report: &Report, style: Style) -> String {
    let mut out = heading(report, style);
    // On a terminal the last lines are read first: findings stand below the numbers.
    let mut sections: Vec<&Section> = report.sections.iter().filter(|section| !section.long).collect();
    sections.sort_by_key(|section| section.id == FINDINGS);
    for section in sections {
        let blocks: Vec<String> = section.blocks.iter().map(|block| self::block(block, style)).collect();
        if blocks.iter().all(String::is_empty) {
            continue;
        }
        out.push('\n');
        // Findings and the main table speak for themselves.
        if section.id != FINDINGS && section.id != RESULTS {
            out.push_str(&wrapped(&plain(&section.title, LONGEST), 2, Tone::Strong, style));
        }
        for (index, (block, shown)) in section.blocks.iter().zip(&blocks).enumerate() {
            if index > 0 && matches!(block, Block::Table(_)) && !shown.is_empty() {
                out.push('\n');
            }
            out.push_str(shown);
        }
    }
    out
}

/// The machine in a line, and the conditions.
pub fn heading(report: &Report, style: Style) -> String {
    let mut out = String::new();
    let (machine, subtitle) = (plain(&report.machine, LONGEST), plain(&report.subtitle, LONGEST));
    let one_line = machine.chars().count() + 2 + subtitle.chars().count() <= style.width;
    match one_line {
        // Writing to a string cannot fail.
        true => {
            let (machine, subtitle) =
                (paint(&machine, Tone::Strong, style), paint(&subtitle, Tone::Dim, style));
            let _ = writeln!(out, "{machine}  {subtitle}");
        }
        false => {
            out.push_str(&wrapped(&machine, 0, Tone::Strong, style));
            out.push_str(&wrapped(&subtitle, 0, Tone::Dim, style));
        }
    }
    out.push_str(&checks(&report.checks, style));
    out
}

fn checks(checks: &[Check], style: Style) -> String {
    let mut out = String::new();
    let mut column = 0;
    for check in checks {
        let (mark, tone) = match (check.mark, style.unicode) {
            (Mark::Good, true) => ("✓", Tone::Good),
            (Mark::Good, false) => ("+", Tone::Good),
            (Mark::Care, _) => ("!", Tone::Care),
            (Mark::Bad, true) => ("✗", Tone::Bad),
            (Mark::Bad, false) => ("x", Tone::Bad),
            (Mark::Unknown, _) => ("?", Tone::Dim),
        };
        let text = plain(&check.text, LONGEST);
        let width = 2 + text.chars().count() + 2;
        if column == 0 || column + width > style.width {
            out.push_str(if column == 0 { "  check  " } else { "\n         " });
            column = 9;
        }
        let _ = write!(out, "{} {text}  ", paint(mark, tone, style));
        column += width;
    }
    if !checks.is_empty() {
        out.push('\n');
    }
    out
}

fn block(block: &Block, style: Style) -> String {
    match block {
        Block::Prose(text) => wrapped(&plain(text, 4 * LONGEST), 2, Tone::Plain, style),
        Block::Findings(findings) => findings.iter().map(|finding| self::finding(finding, style)).collect(),
        Block::Table(table) => self::table(table, style),
        Block::Chart(chart) => self::table(chart.summary.as_ref().unwrap_or(&chart.data), style),
        Block::Facts(facts) => {
            let width = facts.iter().map(|(label, _)| plain(label, 60).chars().count()).max().unwrap_or(0);
            let line = |(label, value): &(String, String)| {
                let label = paint(&format!("{:width$}", plain(label, 60)), Tone::Dim, style);
                format!("  {label}  {}\n", plain(value, LONGEST))
            };
            facts.iter().map(line).collect()
        }
        Block::Preformatted(text) => {
            text.lines().map(|line| format!("  {}\n", plain(line, LONGEST))).collect()
        }
        Block::Boxes(_) => String::new(),
    }
}

fn finding(finding: &Finding, style: Style) -> String {
    let (mark, tone) = match (finding.severity, style.unicode) {
        (Severity::Problem, true) => ("✗", Tone::Bad),
        (Severity::Problem, false) => ("x", Tone::Bad),
        (Severity::Warning, _) => ("!", Tone::Care),
        (Severity::Note, true) => ("·", Tone::Dim),
        (Severity::Note, false) => ("-", Tone::Dim),
    };
    let mut out = String::new();
    let headline = plain(&finding.headline, LONGEST);
    let headline = wrapped(&headline, 4, tone, style);
    // The mark stands in the first line's margin.
    let _ = write!(out, "  {} {}", paint(mark, tone, style), headline.trim_start());
    out.push_str(&wrapped(&plain(&finding.cause, 2 * LONGEST), 4, Tone::Plain, style));
    let (confirm, rule) = (plain(&finding.confirm, LONGEST), plain(&finding.rule, 60));
    let explain = format!("assay explain {rule}");
    let one_line = 4 + 8 + confirm.chars().count() + 4 + 8 + explain.chars().count() <= style.width;
    let between = if one_line { "    " } else { "\n    " };
    // Commands are not wrapped: whoever copies one wants it whole. Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "    {} {confirm}{between}{} {explain}",
        paint("confirm", Tone::Dim, style),
        paint("explain", Tone::Dim, style)
    );
    out
}

/// On narrower lines a picture of the distribution gives its room to the words of the verdict.
const ROOM_FOR_PICTURES: usize = 110;

/// Columns that a table's last and first column keep on a narrow terminal: a verdict's word, and most of a name.
const LEAST_LAST: usize = 12;
const LEAST_NAME: usize = 24;

/// Columns two spaces apart; the last one takes what is left of the line and is cut there.
fn table(table: &Table, style: Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let picture = |at: usize| table.rows.iter().any(|row| matches!(row.get(at), Some(Cell::Distribution(_))));
    let shown_columns: Vec<usize> =
        (0..table.columns.len()).filter(|at| style.width >= ROOM_FOR_PICTURES || !picture(*at)).collect();
    let titles: Vec<(String, Tone)> =
        shown_columns.iter().map(|at| (plain(&table.columns[*at].title, 60), Tone::Dim)).collect();
    let cells = |row: &Vec<Cell>| {
        let own = shown_columns.iter().take_while(|at| **at < row.len());
        own.map(|at| shown(&row[*at], style)).collect::<Vec<(String, Tone)>>()
    };
    let rows: Vec<Vec<(String, Tone)>> =
        std::iter::once(titles).chain(table.rows.iter().map(cells)).collect();
    let mut widths = vec![0; shown_columns.len()];
    for row in &rows {
        // The last cell of a short row is no column's.
        let own = if row.len() < shown_columns.len() { row.len().saturating_sub(1) } else { row.len() };
        for (width, (text, _)) in widths.iter_mut().zip(&row[..own]) {
            *width = (*width).max(text.chars().count());
        }
    }
    // What is left of a line of the terminal from a column on.
    let taken = |columns: &[usize]| columns.iter().map(|width| width + 2).sum::<usize>();
    let left = |columns: &[usize]| style.width.saturating_sub(2 + taken(columns)).max(LEAST_LAST);
    if let Some((last, before)) = widths.split_last_mut() {
        // The last column keeps room for a word, at the cost of names that are very long.
        if let Some((name, others)) = before.split_first_mut() {
            let room = style.width.saturating_sub(4 + taken(others) + LEAST_LAST.min(*last));
            *name = (*name).min(room.max(LEAST_NAME));
        }
        *last = (*last).min(left(before));
    }
    let line = |cells: &Vec<(String, Tone)>| {
        let mut line = String::from("  ");
        for (place, (text, tone)) in cells.iter().enumerate() {
            let stretched = place + 1 == cells.len() && cells.len() < widths.len();
            let width = if stretched { left(&widths[..place]) } else { widths[place] };
            let text = plain(text, width);
            let pad = " ".repeat(width - text.chars().count());
            let painted = paint(&text, *tone, style);
            // Writing to a string cannot fail.
            let _ = match table.columns[shown_columns[place]].right && !stretched {
                true => write!(line, "{pad}{painted}  "),
                false => write!(line, "{painted}{pad}  "),
            };
        }
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

fn shown(cell: &Cell, style: Style) -> (String, Tone) {
    match cell {
        Cell::Heading(text) => (plain(text, LONGEST), Tone::Strong),
        Cell::Text(text) | Cell::Number(text) | Cell::Code(text) => (plain(text, LONGEST), Tone::Plain),
        Cell::Verdict(verdict) => {
            let (mark, tone) = verdict_mark(verdict.kind, style.unicode);
            let words = verdict.kind.words();
            let text = match verdict.reason.as_str() {
                "" => format!("{mark} {words}"),
                reason => format!("{mark} {words}: {}", plain(reason, LONGEST)),
            };
            (text, tone)
        }
        Cell::Distribution(values) => (sparkline(values, style.unicode), Tone::Picture),
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

/// Bins of a sparkline.
const BINS: usize = 12;

/// A histogram of values from the least to the largest, as a line of blocks; nothing for fewer than two values.
pub fn sparkline(values: &[f64], unicode: bool) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if finite.len() < 2 || most <= least {
        return String::new();
    }
    let mut bins = [0usize; BINS];
    for value in &finite {
        let bin = ((value - least) / (most - least) * BINS as f64) as usize;
        bins[bin.min(BINS - 1)] += 1;
    }
    let highest = bins.iter().copied().max().unwrap_or(1);
    let levels: &[char] = match unicode {
        true => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        false => &['.', ':', '-', '=', '+', '*', '#', '@'],
    };
    let level = |count: &usize| match count {
        0 => ' ',
        count => levels[(count * levels.len()).div_ceil(highest).clamp(1, levels.len()) - 1],
    };
    bins.iter().map(level).collect()
}

fn wrapped(text: &str, indent: usize, tone: Tone, style: Style) -> String {
    let room = style.width.saturating_sub(indent).max(20);
    lines(text, room)
        .iter()
        .map(|line| format!("{}{}\n", " ".repeat(indent), paint(line, tone, style)))
        .collect()
}

fn paint(text: &str, tone: Tone, style: Style) -> String {
    if !style.color || text.is_empty() || tone == Tone::Plain {
        return text.to_string();
    }
    let plain = anstyle::Style::new();
    let colored = |color: AnsiColor| plain.fg_color(Some(Color::Ansi(color)));
    let look = match tone {
        Tone::Plain => plain,
        Tone::Strong => plain.bold(),
        Tone::Dim => plain.dimmed(),
        Tone::Good => colored(AnsiColor::Green),
        Tone::Care => colored(AnsiColor::Yellow),
        Tone::Bad => colored(AnsiColor::Red).bold(),
        Tone::Picture => colored(AnsiColor::Blue),
    };
    format!("{look}{text}{look:#}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;
    use crate::report::block::Column;

    const PLAIN: Style = Style { color: false, unicode: true, width: 60 };

    #[test]
    fn tables_align_and_stay_inside_the_line() {
        let column = |title: &str, right| Column { title: title.into(), right };
        let table = Table {
            columns: vec![column("test", false), column("median", true), column("verdict", false)],
            rows: vec![
                vec![
                    Cell::Text("pipe".into()),
                    Cell::Number("1.5 us".into()),
                    Cell::Verdict(Verdict::trusted()),
                ],
                vec![
                    Cell::Text("a\x1b[31mb".into()),
                    Cell::Number("120 ns".into()),
                    Cell::Verdict(Verdict::new(VerdictKind::Rejected, "x".repeat(200))),
                ],
            ],
            folded: false,
        };
        let text = self::table(&table, PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(!text.contains('\x1b') && text.contains("\\x1b[31m"), "{text}");
        assert!(text.starts_with("  test"), "{text}");
    }

    #[test]
    fn sparklines_show_two_modes() {
        let values: Vec<f64> =
            (0..40).map(|i| if i % 4 == 0 { 1.0 } else { 2.0 } + f64::from(i) * 1e-4).collect();
        let line = sparkline(&values, true);
        assert_eq!(line.chars().count(), BINS);
        assert!(line.trim_start_matches(|c| c != ' ').starts_with("  "), "a valley: {line:?}");
        assert_eq!(sparkline(&[1.0, 1.0], true), "");
        assert_eq!(sparkline(&[f64::NAN], true), "");
    }
}
