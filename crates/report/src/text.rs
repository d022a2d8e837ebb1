//! Blocks as a terminal shows them: short sections only, aligned columns, marks beside colours.

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
    First,
    /// Everything, each line with its reason and its key.
    All,
    Quiet,
}

/// Longest single text of the machine's own that is shown.
const LONGEST: usize = 300;

/// Longest command to copy: longer than any that Assay writes, so that none is cut.
const LONGEST_COMMAND: usize = 20_000;

/// The report as text for a terminal of `style.width` columns.
pub fn render(report: &Report, style: Style) -> String {
    heading(report, style) + &details(report, false, style)
}

/// What stands below the heading; with the keys of figures if they are wanted.
pub fn details(report: &Report, keys: bool, style: Style) -> String {
    let mut out = String::new();
    // On a terminal the last lines are read first: findings stand below the numbers.
    let mut sections: Vec<&Section> = report.sections.iter().filter(|section| !section.long).collect();
    sections.sort_by_key(|section| section.id == FINDINGS);
    for section in sections {
        let shown = |block: &Block| match block {
            Block::Prose(text) => self::block(&Block::Prose(report.unsaid(text)), keys, style),
            block => self::block(block, keys, style),
        };
        let blocks: Vec<String> = section.blocks.iter().map(shown).collect();
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
    /// Columns before the first check of a line.
    const MARGIN: usize = 9;
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
        let room = style.width.saturating_sub(MARGIN + 4).max(20);
        // What is longer than a line stands on several of its own.
        for (at, text) in lines(&text, room).iter().enumerate() {
            let width = 2 + text.chars().count() + 2;
            if column == 0 || at > 0 || column + width > style.width {
                let begin = if column == 0 { "  check" } else { "\n" };
                let indent = if column == 0 { MARGIN - begin.len() } else { MARGIN };
                let _ = write!(out, "{begin}{:indent$}", "");
                column = MARGIN;
            }
            let mark = if at == 0 { paint(mark, tone, style) } else { " ".to_string() };
            let _ = write!(out, "{mark} {text}  ");
            column += width;
        }
    }
    if !checks.is_empty() {
        out.push('\n');
    }
    out
}

fn block(block: &Block, keys: bool, style: Style) -> String {
    match block {
        Block::Figures(rows) => figures::render(rows, keys, style),
        Block::Prose(text) => wrapped(&plain(text, 4 * LONGEST), 2, Tone::Plain, style),
        Block::Findings(list) => findings(list, style),
        Block::Table(table) => table::render(table, style),
        Block::Chart(chart) if chart.map().is_some() => map::render(chart, style),
        Block::Chart(chart) => table::render(chart.summary.as_ref().unwrap_or(&chart.data), style),
        Block::Facts(facts) => {
            let width = facts.iter().map(|(label, _)| plain(label, 60).chars().count()).max().unwrap_or(0);
            let line = |(label, value): &(String, String)| {
                let (label, value) = (plain(label, 60), plain(value, LONGEST));
                let beside = lines(&value, style.width.saturating_sub(width + 4));
                let fits = beside.iter().all(|line| width + 4 + line.chars().count() <= style.width);
                let name = paint(&format!("{label:width$}"), Tone::Dim, style);
                if fits {
                    format!("  {name}  {}\n", beside.join(&format!("\n{:1$}", "", width + 4)))
                } else {
                    format!("  {name}\n{}", wrapped(&value, 4, Tone::Plain, style))
                }
            };
            facts.iter().map(line).collect()
        }
        Block::Preformatted(text) => text
            .lines()
            .map(|line| format!("  {}", plain(line, LONGEST)).trim_end().to_string() + "\n")
            .collect(),
        Block::Boxes(_) => String::new(),
        Block::Tiles(tiles) => {
            let lines = tiles.lines(style.width.saturating_sub(2));
            lines.iter().map(|line| format!("  {}\n", plain(line, LONGEST))).collect()
        }
    }
}

/// Notes of one rule that a terminal shows; the page shows all.
const NOTES_OF_A_RULE: usize = 2;

fn findings(list: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for (at, one) in list.iter().enumerate() {
        let note = |other: &&Finding| other.severity == Severity::Note && other.rule == one.rule;
        let before = list[..at].iter().filter(note).count();
        if one.severity > Severity::Note || before < NOTES_OF_A_RULE {
            out.push_str(&finding(one, style));
        } else if !list[at + 1..].iter().any(|other| note(&other)) {
            let rule = plain(&one.rule, 60);
            let more = before + 1 - NOTES_OF_A_RULE;
            let text = format!("{more} more of {rule}: in the page and in --json");
            out.push_str(&wrapped(&text, 4, Tone::Dim, style));
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
    let headline = wrapped(&headline, 4, tone, style);
    // The mark stands in the first line's margin.
    let _ = write!(out, "  {} {}", paint(mark, tone, style), headline.trim_start());
    out.push_str(&wrapped(&plain(&finding.cause, 3 * LONGEST), 4, Tone::Plain, style));
    let (confirm, rule) = (plain(&finding.confirm, LONGEST_COMMAND), plain(&finding.rule, 60));
    let explain = format!("assay explain {rule}");
    let one_line = 4 + 7 + confirm.chars().count() + 4 + 7 + explain.chars().count() <= style.width;
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
    let room = style.width.saturating_sub(indent).max(20);
    lines(text, room)
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
