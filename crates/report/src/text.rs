//! Renders a report for a terminal: short sections only, aligned columns, symbols as well as
//! colours.

mod figures;
pub mod findings;
mod map;
pub mod numbers;
mod picture;
pub mod screen;
mod table;

use std::fmt::Write;

use anstyle::{AnsiColor, Color};

use super::block::{Block, Check, CheckMark, FINDINGS, RESULTS, Report, Section};
use super::plain::{lines, plain};
pub(crate) use super::screen::Tone;
pub use super::text_machine::Style;
use model::{Finding, Severity};
pub use table::{BINS, blocks, sparkline};

/// How much of a result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The answer and the most important lines.
    First,
    /// Everything, each line with its reason and its key.
    All,
    /// The answer only.
    Quiet,
}

/// Longest text that is shown of what a host reports, such as its name: it may be anything.
const LONGEST: usize = 300;
/// The same of a label or of the name of a rule.
const LONGEST_LABEL: usize = 60;
/// A text is never wrapped to fewer columns, whatever the terminal's width.
const MIN_COLUMNS: usize = 20;
/// Columns before the text of a block, and before what belongs to a line above.
const INDENT: usize = 2;
const INNER_INDENT: usize = 4;

/// Longest command or paragraph: longer than any that Assay writes, so that none is cut.
const LONGEST_OWN: usize = 20_000;

/// The report as text for a terminal of `style.width` columns.
pub fn render(report: &Report, style: Style) -> String {
    heading(report, style) + &details(report, false, style)
}

/// What stands below the heading; `with_keys`: each figure with its key.
pub fn details(report: &Report, with_keys: bool, style: Style) -> String {
    let mut out = String::new();
    // On a terminal the last lines are read first: findings stand below the numbers.
    let mut sections: Vec<&Section> = report.sections.iter().filter(|section| !section.long).collect();
    sections.sort_by_key(|section| section.id == FINDINGS);
    for section in sections {
        let rendered = |block: &Block| match block {
            Block::Prose(text) => {
                let text = report.without_sentences_of_the_screen(text);
                render_block(&Block::Prose(text), with_keys, style)
            }
            block => render_block(block, with_keys, style),
        };
        let texts: Vec<String> = section.blocks.iter().map(rendered).collect();
        if texts.iter().all(String::is_empty) {
            continue;
        }
        out.push('\n');
        // Findings and the main table speak for themselves.
        if section.id != FINDINGS && section.id != RESULTS {
            out.push_str(&wrapped(&plain(&section.title, LONGEST), INDENT, Tone::Strong, style));
        }
        for (index, (block, text)) in section.blocks.iter().zip(&texts).enumerate() {
            if index > 0 && matches!(block, Block::Table(_)) && !text.is_empty() {
                out.push('\n');
            }
            out.push_str(text);
        }
    }
    out
}

/// The host in a line, and the conditions.
pub fn heading(report: &Report, style: Style) -> String {
    let mut out = String::new();
    let (machine, subtitle) = (plain(&report.machine, LONGEST), plain(&report.subtitle, LONGEST));
    if machine.chars().count() + "  ".len() + subtitle.chars().count() <= style.width {
        let (machine, subtitle) = (paint(&machine, Tone::Strong, style), paint(&subtitle, Tone::Dim, style));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{machine}  {subtitle}");
    } else {
        out.push_str(&wrapped(&machine, 0, Tone::Strong, style));
        out.push_str(&wrapped(&subtitle, 0, Tone::Dim, style));
    }
    out.push_str(&checks(&report.checks, style));
    out
}

fn checks(checks: &[Check], style: Style) -> String {
    /// Columns before the first check of a line.
    const MARGIN: usize = "  check  ".len();
    /// The mark with a blank, and the blanks after a check.
    const MARK_COLUMNS: usize = 2;
    const GAP: usize = 2;
    let mut out = String::new();
    let mut column = 0;
    for check in checks {
        let (mark, tone) = match (check.mark, style.unicode) {
            (CheckMark::Good, true) => ("✓", Tone::Good),
            (CheckMark::Good, false) => ("+", Tone::Good),
            (CheckMark::Care, _) => ("!", Tone::Care),
            (CheckMark::Bad, true) => ("✗", Tone::Bad),
            (CheckMark::Bad, false) => ("x", Tone::Bad),
            (CheckMark::Note, true) => ("·", Tone::Dim),
            (CheckMark::Note, false) => ("-", Tone::Dim),
        };
        let text = plain(&check.text, LONGEST);
        let columns = style.width.saturating_sub(MARGIN + MARK_COLUMNS + GAP).max(MIN_COLUMNS);
        for (line, text) in lines(&text, columns).iter().enumerate() {
            let width = MARK_COLUMNS + text.chars().count() + GAP;
            // A check that is too long for one line has lines of its own.
            if column == 0 {
                out.push_str("  check  ");
                column = MARGIN;
            } else if line > 0 || column + width > style.width {
                let _ = write!(out, "\n{}", " ".repeat(MARGIN));
                column = MARGIN;
            }
            let mark = if line == 0 { paint(mark, tone, style) } else { " ".to_string() };
            let _ = write!(out, "{mark} {text}  ");
            column += width;
        }
    }
    if !checks.is_empty() {
        out.push('\n');
    }
    out
}

fn render_block(block: &Block, with_keys: bool, style: Style) -> String {
    match block {
        Block::Figures(rows) => figures::render(rows, with_keys, style),
        Block::Prose(text) => wrapped(&plain(text, LONGEST_OWN), INDENT, Tone::Plain, style),
        Block::Findings(list) => findings(list, style),
        Block::Table(table) => table::render(table, style),
        Block::Chart(chart) if chart.map().is_some() => map::render(chart, style),
        Block::Chart(chart) => table::render(chart.summary.as_ref().unwrap_or(&chart.data), style),
        Block::Facts(facts) => {
            let label_columns = |(label, _): &(String, String)| plain(label, LONGEST_LABEL).chars().count();
            let width = facts.iter().map(label_columns).max().unwrap_or(0);
            // Values stand in a column after the labels, with two blanks before and after these.
            let value_column = width + 4;
            let line = |(label, value): &(String, String)| {
                let (label, value) = (plain(label, LONGEST_LABEL), plain(value, LONGEST));
                let value_lines = lines(&value, style.width.saturating_sub(value_column));
                let fits = value_lines.iter().all(|line| value_column + line.chars().count() <= style.width);
                let label = paint(&format!("{label:width$}"), Tone::Dim, style);
                if fits {
                    let next_line = format!("\n{}", " ".repeat(value_column));
                    format!("  {label}  {}\n", value_lines.join(&next_line))
                } else {
                    format!("  {label}\n{}", wrapped(&value, INNER_INDENT, Tone::Plain, style))
                }
            };
            facts.iter().map(line).collect()
        }
        Block::Preformatted(text) => text
            .lines()
            .map(|line| format!("  {}", plain(line, LONGEST)).trim_end().to_string() + "\n")
            .collect(),
        // Drawn on the page only.
        Block::Boxes(_) => String::new(),
        Block::Tiles(tiles) => {
            let lines = tiles.lines(style.width.saturating_sub(INDENT));
            lines.iter().map(|line| format!("  {}\n", plain(line, LONGEST))).collect()
        }
    }
}

/// Notes of one rule that a terminal shows; the HTML page shows all.
const NOTES_PER_RULE: usize = 2;

fn findings(list: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for (index, one) in list.iter().enumerate() {
        let is_note_of_rule = |other: &&Finding| other.severity == Severity::Note && other.rule == one.rule;
        let notes_before = list[..index].iter().filter(is_note_of_rule).count();
        let is_last_note = !list[index + 1..].iter().any(|other| is_note_of_rule(&other));
        if one.severity > Severity::Note || notes_before < NOTES_PER_RULE {
            out.push_str(&finding(one, style));
        } else if is_last_note {
            let rule = plain(&one.rule, LONGEST_LABEL);
            let more = notes_before + 1 - NOTES_PER_RULE;
            let text = format!("{more} more of {rule}: in the page and in --json");
            out.push_str(&wrapped(&text, INNER_INDENT, Tone::Dim, style));
        }
    }
    out
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
    let headline = wrapped(&headline, INNER_INDENT, tone, style);
    // The mark stands in the first line's margin.
    let _ = write!(out, "  {} {}", paint(mark, tone, style), headline.trim_start());
    out.push_str(&wrapped(&plain(&finding.cause, 3 * LONGEST), INNER_INDENT, Tone::Plain, style));
    let (confirm, rule) = (plain(&finding.confirm, LONGEST_OWN), plain(&finding.rule, LONGEST_LABEL));
    let explain = format!("assay explain {rule}");
    // Before each command stand four blanks and its label.
    let label_columns = "    check: ".len() + "    more:  ".len();
    let one_line = label_columns + confirm.chars().count() + explain.chars().count() <= style.width;
    let between = if one_line { "    " } else { "\n    " };
    // Commands are not wrapped, so that users can copy them. Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "    {} {confirm}{between}{}  {explain}",
        paint("check:", Tone::Dim, style),
        paint("more:", Tone::Dim, style)
    );
    out
}

pub(crate) fn wrapped(text: &str, indent: usize, tone: Tone, style: Style) -> String {
    let columns = style.width.saturating_sub(indent).max(MIN_COLUMNS);
    lines(text, columns)
        .iter()
        .map(|line| format!("{}{}\n", " ".repeat(indent), paint(line, tone, style)))
        .collect()
}

pub(crate) fn paint(text: &str, tone: Tone, style: Style) -> String {
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

    #[test]
    fn checks_stay_inside_the_line_and_commands_stay_whole() {
        let long = "12 of 40 visits were left out: the run was thinned to 90 s, and rare cases came first";
        let check = |text: &str| Check { mark: CheckMark::Note, text: text.into() };
        let command = format!("assay rate --component {} --footprint 256M", "bwaves,".repeat(80));
        let finding = Finding::warning("rate-runs-apart", "runs lie apart")
            .cause("")
            .facts(Vec::new())
            .confirm(command.clone());
        for width in [40, 60, 80, 100, 120] {
            let style = Style { color: false, unicode: true, width };
            let text = checks(&[check("steady clock"), check(long), check("no swapping")], style);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "·").collect();
            assert_eq!(words.join(" "), format!("check steady clock {long} no swapping"));
            assert!(self::finding(&finding, style).contains(&command));
        }
    }
}
