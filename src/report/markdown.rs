//! Blocks as Markdown, for issues, pull requests and chats.

use std::fmt::Write;

use super::block::{Block, Cell, Mark, Report, Table};
use super::plain::plain;
use crate::model::{Finding, Severity};

/// Longest single text of the machine's own that is shown.
const LONGEST: usize = 500;

/// The report as GitHub-flavoured Markdown. Long tables and charts' data are folded.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "# {}\n\n{}  \n{}\n",
        safe(&report.title),
        safe(&report.machine),
        safe(&report.subtitle)
    );
    for check in &report.checks {
        let mark = match check.mark {
            Mark::Good => "✓",
            Mark::Care => "!",
            Mark::Bad => "✗",
            Mark::Note => "·",
        };
        let _ = writeln!(out, "- {mark} {}", safe(&check.text));
    }
    for section in &report.sections {
        let _ = writeln!(out, "\n## {}\n", safe(&section.title));
        if !section.about.is_empty() {
            let _ = writeln!(out, "{}\n", safe(&section.about));
        }
        for block in &section.blocks {
            write_block(&mut out, block);
        }
    }
    out
}

fn write_block(out: &mut String, block: &Block) {
    match block {
        Block::Prose(text) => {
            let _ = writeln!(out, "{}\n", safe(text));
        }
        Block::Findings(findings) if findings.is_empty() => out.push_str("No rule found anything.\n\n"),
        Block::Findings(findings) => findings.iter().for_each(|finding| write_finding(out, finding)),
        Block::Table(table) => write_table(out, table, ""),
        Block::Chart(chart) => {
            let _ = writeln!(out, "**{}** {}\n", safe(&chart.title), safe(&chart.about));
            if let Some(map) = chart.map() {
                write_table(out, &map.table(), "");
                let _ = writeln!(out, "{}\n", safe(&map.legend(["★", "·", "○", "–"])));
            }
            if let Some(summary) = &chart.summary {
                write_table(out, summary, "");
            }
            write_table(out, &chart.data, "data");
        }
        Block::Facts(facts) => {
            for (label, value) in facts {
                let _ = writeln!(out, "- {}: {}", safe(label), safe(value));
            }
            out.push('\n');
        }
        Block::Preformatted(text) => {
            let lines = text.lines().map(|line| format!("    {}\n", plain(line, LONGEST)));
            out.extend(lines);
            out.push('\n');
        }
        // The same machine stands as text in its own section.
        Block::Boxes(_) => {}
        Block::Tiles(tiles) => {
            let lines = tiles.lines(LONGEST / 4);
            out.extend(lines.iter().map(|line| format!("    {}\n", plain(line, LONGEST))));
            out.push('\n');
        }
    }
}

fn write_finding(out: &mut String, finding: &Finding) {
    let mark = match finding.severity {
        Severity::Problem => "✗",
        Severity::Warning => "!",
        Severity::Note => "·",
    };
    let _ = writeln!(out, "**{mark} {}** (`{}`)\n", safe(&finding.headline), code(&finding.rule));
    let _ = writeln!(out, "{}\n", safe(&finding.cause));
    for fact in &finding.facts {
        let _ = writeln!(out, "- {}: {} (`{}`)", safe(&fact.label), safe(&fact.value), code(&fact.source));
    }
    let _ = writeln!(out, "\nConfirm: `{}`", code(&finding.confirm));
    if !finding.advice.is_empty() {
        let _ = writeln!(out, "  \n{}", safe(&finding.advice));
    }
    out.push('\n');
}

fn write_table(out: &mut String, table: &Table, summary: &str) {
    if table.rows.is_empty() {
        return;
    }
    let folded = table.folded || !summary.is_empty();
    if folded {
        let _ = writeln!(out, "<details><summary>{summary} ({} rows)</summary>\n", table.rows.len());
    }
    let titles: Vec<String> = table.columns.iter().map(|column| safe(&column.title)).collect();
    let rules: Vec<&str> =
        table.columns.iter().map(|column| if column.right { "---:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n| {} |", titles.join(" | "), rules.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push_str(if folded { "\n</details>\n\n" } else { "\n" });
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Heading(text) => format!("**{}**", safe(text)),
        Cell::Text(text) | Cell::Number(text) => safe(text),
        Cell::Code(text) => format!("`{}`", code_cell(text)),
        Cell::Verdict(verdict) => match verdict.reason.as_str() {
            "" => verdict.kind.words().to_string(),
            reason => format!("{}: {}", verdict.kind.words(), safe(reason)),
        },
        Cell::Distribution(values) => super::text::sparkline(values, true),
        Cell::Empty => String::new(),
    }
}

/// Visible, on one line, and without any mark that Markdown or HTML would act on.
fn safe(text: &str) -> String {
    let mut shown = String::new();
    for c in plain(text, LONGEST).chars() {
        match c {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                shown.push('\\');
                shown.push(c);
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Inside backticks only a backtick could end it.
fn code(text: &str) -> String {
    plain(text, LONGEST).replace('`', "'")
}

/// The same in a table, where a bar would end the cell.
fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_a_table() {
        use crate::report::map::tests::{chart, hackbench, hostile, row};
        let shown = |map| {
            let mut out = String::new();
            write_block(&mut out, &chart(map).into());
            out
        };
        let text = shown(hackbench());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2],
            "| wake-up granularity, ms ↓, min granularity, ms → | 1 | 2 | 4 | 8 | 12 | 16 | 20 | 30 |"
        );
        assert_eq!(
            lines[5],
            "| 8 | +32.7 A | +7.4 A | -6.9 B | -20.0 B | -17.3 B | -28.6 ★ C | -24.7 C | -23.8 C |"
        );
        assert!(lines[4].ends_with("| -22.4 C | – |"), "{text}");
        assert!(
            lines[10]
                .starts_with("time over that of the default setting, %; A fall; B ragged; C flat; ★ best;")
        );
        let mut one = row(&[Some(1.0), Some(2.0)]);
        one.default = Some([0.0, 0.0]);
        assert!(shown(one).contains("| m | 1 | 2 |\n| --- | ---: | ---: |\n|  | +1.0 ○ | +2.0 |"));
        let text = shown(hostile());
        assert!(!text.contains(['<', '\x1b', '\u{202e}']), "{text}");
    }

    #[test]
    fn nothing_hostile_survives() {
        let hostile = "<script>alert(1)</script> [x](javascript:y) | `code` \x1b[31m *bold*";
        let shown = safe(hostile);
        assert!(!shown.contains('<') && !shown.contains('\x1b'), "{shown}");
        assert!(
            shown.contains("\\[x\\]") && shown.contains("\\|") && shown.contains("\\`code\\`"),
            "{shown}"
        );
        assert_eq!((code("a`b|c"), code_cell("a`b|c")), ("a'b|c".to_string(), "a'b\\|c".to_string()));
    }
}
