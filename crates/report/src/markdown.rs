//! Blocks as Markdown, for issues, pull requests and chats.

use std::fmt::Write;

use super::block::{Block, Cell, CheckMark, MACHINE, METHOD, Report, Section, Table};
use super::figure_rows;
use super::plain::plain;
use model::{Finding, Severity};

/// Longest single text of the host's own that is shown.
const LONGEST: usize = 500;

/// Rows of a chart's data that are shown.
const FEW_ROWS: usize = 20;

/// The report as GitHub-flavoured Markdown, short enough for a comment. Long tables are folded; raw
/// data are left out.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "# {}\n\n{}  \n{}\n",
        safe(&report.title),
        line(&report.machine),
        line(&report.subtitle)
    );
    for check in &report.checks {
        let mark = match check.mark {
            CheckMark::Good => "✓",
            CheckMark::Care => "!",
            CheckMark::Bad => "✗",
            CheckMark::Note => "·",
        };
        let _ = writeln!(out, "- {mark} {}", safe(&check.text));
    }
    let (left_out, kept): (Vec<&Section>, Vec<&Section>) =
        report.sections.iter().partition(|section| is_left_out(section));
    for section in kept {
        let _ = writeln!(out, "\n## {}\n", safe(&section.title));
        if !section.about.is_empty() {
            let _ = writeln!(out, "{}\n", line(&section.about));
        }
        for block in &section.blocks {
            write_block(&mut out, block);
        }
    }
    if !left_out.is_empty() {
        let titles: Vec<String> = left_out.iter().map(|section| safe(&section.title)).collect();
        let _ = writeln!(out, "\nLeft out here, and in the page, JSON and CSV: {}.", titles.join(", "));
    }
    out
}

/// What is too long for a comment: raw data, and the method, which is the same for all runs.
fn is_left_out(section: &Section) -> bool {
    (section.long && section.id != MACHINE) || section.id == METHOD
}

fn write_block(out: &mut String, block: &Block) {
    match block {
        Block::Prose(text) => {
            let _ = writeln!(out, "{}\n", line(text));
        }
        Block::Findings(findings) if findings.is_empty() => out.push_str("No findings.\n\n"),
        Block::Findings(findings) => findings.iter().for_each(|finding| write_finding(out, finding)),
        Block::Table(table) => write_table(out, table, ""),
        Block::Figures(rows) => write_table(out, &figure_rows::table(rows), ""),
        Block::Chart(chart) => {
            let _ = writeln!(out, "**{}** {}\n", safe(&chart.title), safe(&chart.about));
            if let Some(map) = chart.map() {
                write_table(out, &map.table(), "");
                let _ = writeln!(out, "{}\n", line(&map.legend(["★", "·", "○", "–"])));
            }
            if let Some(summary) = &chart.summary {
                write_table(out, summary, "");
            }
            // A chart with neither has nothing but its data.
            if chart.summary.is_none() && chart.map().is_none() && chart.data.rows.len() <= FEW_ROWS {
                write_table(out, &chart.data, "data");
            }
        }
        Block::Facts(facts) => {
            for (label, value) in facts {
                let _ = writeln!(out, "- {}: {}", line(label), safe(value));
            }
            out.push('\n');
        }
        Block::Preformatted(text) => write_lines(out, text.lines()),
        // The same host stands as text in its own section.
        Block::Boxes(_) => {}
        Block::Tiles(tiles) => write_lines(out, tiles.lines(LONGEST / 4).iter().map(String::as_str)),
    }
}

/// Lines whose columns matter.
fn write_lines<'l>(out: &mut String, lines: impl Iterator<Item = &'l str>) {
    let lines: Vec<String> = lines.map(|line| plain(line, LONGEST)).collect();
    let foreign = lines.iter().any(|line| line.contains(MARKUP) || line.contains("```"));
    let (begin, end) = if foreign { ("<pre>", "</pre>") } else { ("```", "```") };
    let _ = writeln!(out, "{begin}");
    for line in &lines {
        let _ = writeln!(out, "{}", if foreign { entities(line) } else { line.clone() });
    }
    let _ = writeln!(out, "{end}\n");
}

fn write_finding(out: &mut String, finding: &Finding) {
    let mark = match finding.severity {
        Severity::Problem => "✗",
        Severity::Warning => "!",
        Severity::Note => "·",
    };
    let _ = writeln!(out, "**{mark} {}** ({})\n", safe(&finding.headline), code(&finding.rule));
    let _ = writeln!(out, "{}\n", line(&finding.cause));
    for fact in &finding.facts {
        let _ = writeln!(out, "- {}: {} ({})", line(&fact.label), safe(&fact.value), code(&fact.source));
    }
    let _ = writeln!(out, "\nConfirm: {}", code(&finding.confirm));
    if !finding.advice.is_empty() {
        let _ = writeln!(out, "  \n{}", line(&finding.advice));
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
        Cell::Text(text) | Cell::Number(text) | Cell::Keyed { name: text, .. } => safe(text),
        Cell::Code(text) => code(text),
        Cell::Verdict(verdict) => match verdict.reason.as_str() {
            "" => verdict.words().to_string(),
            reason => format!("{}: {}", verdict.words(), safe(reason)),
        },
        Cell::Reading { reading, why, .. } if why.is_empty() => safe(&reading.words()),
        Cell::Reading { reading, why, .. } => format!("{}: {}", safe(&reading.words()), safe(why)),
        Cell::Distribution(values) => super::text::sparkline(values, super::text::BINS, true),
        Cell::Empty => String::new(),
    }
}

/// The characters of HTML markup. Foreign text keeps none of them, not even within backticks:
/// programs that read Markdown as HTML act on a tag there, too.
const MARKUP: [char; 3] = ['<', '>', '&'];

fn entities(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Visible, on one line, without any mark that Markdown or HTML would act on, and without bare
/// links and mentions.
fn safe(text: &str) -> String {
    let (mut shown, mut before) = (String::new(), ' ');
    for c in entities(&plain(text, LONGEST)).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$') {
            shown.push('\\');
        }
        match c {
            '@' if !before.is_alphanumeric() => shown.push_str("&#64;"),
            _ => shown.push(c),
        }
        before = c;
    }
    shown.replace("://", "&#58;//").replace("www.", "www&#46;")
}

/// The same where a line begins: what would make it an item of a list, a rule or a heading does
/// not.
fn line(text: &str) -> String {
    let shown = safe(text);
    let shown = shown.trim_start();
    let digits = shown.chars().take_while(char::is_ascii_digit).count();
    let (number, rest) = shown.split_at(digits);
    let marks = if number.is_empty() { ['-', '+', '='].as_slice() } else { &['.', ')'] };
    if rest.starts_with(marks) { format!("{number}\\{rest}") } else { shown.to_string() }
}

/// As a host would read it. Within backticks neither a backslash nor an entity means anything:
/// what needs one goes without them.
fn code(text: &str) -> String {
    let text = plain(text, LONGEST);
    if text.trim().is_empty() || text.contains(MARKUP) || text.contains(['`', '|']) {
        format!("<code>{}</code>", safe(&text))
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_a_table() {
        use crate::map::tests::{chart, hackbench, hostile, row};
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

    /// A Markdown that is HTML with some marks is harmless where no tag is another's.
    fn only_own_tags(text: &str) {
        let own =
            ["<details>", "<summary>", "</summary>", "</details>", "<code>", "</code>", "<pre>", "</pre>"];
        for (at, _) in text.match_indices('<') {
            assert!(own.iter().any(|tag| text[at..].starts_with(tag)), "{}", &text[at..]);
        }
        for (at, _) in text.match_indices('&') {
            assert!(
                ["&amp;", "&lt;", "&gt;", "&#64;", "&#58;", "&#46;"]
                    .iter()
                    .any(|one| text[at..].starts_with(one)),
                "{}",
                &text[at..]
            );
        }
    }

    const HOSTILE: [&str; 12] = [
        "<script>alert(1)</script>",
        "`<img src=x onerror=alert(1)>`",
        "a | <b> | c ```",
        "``` <iframe src=//x>",
        "&lt;script&gt; & &#60;b>",
        "[x](javascript:alert(1)) ![y](https://x/y.png) <javascript:alert(1)>",
        "\\<b>\\`<i>`",
        "    <pre> ~~~ $\\href{javascript:x}{y}$",
        "- <li>",
        "12) # <h1>\n\n<script>\r</code></pre></details>",
        "-->]]><!-- \x1b[31m *bold* \u{202e}",
        "",
    ];

    #[test]
    fn nothing_hostile_survives() {
        use crate::block::{Check, Column, Section};
        for hostile in HOSTILE {
            let finding = Finding::problem(hostile, hostile)
                .cause(hostile)
                .facts([model::Fact { label: hostile.into(), value: hostile.into(), source: hostile.into() }])
                .confirm(hostile)
                .advice(hostile);
            let cells =
                [Cell::Heading, Cell::Text, Cell::Number, Cell::Code].map(|of| of(hostile.to_string()));
            let columns = cells.iter().map(|_| Column { title: hostile.into(), right: true }).collect();
            let table = Table::new(columns, vec![cells.to_vec()]).folded();
            let mut rows = String::new();
            write_table(&mut rows, &table, "");
            let facts = Block::Facts(vec![(hostile.into(), hostile.into())]);
            let lines = Block::Preformatted(format!("{hostile}\n\n    {hostile}"));
            let blocks = vec![
                Block::Findings(vec![finding]),
                facts,
                lines,
                Block::Table(table),
                Block::Prose(hostile.into()),
                Block::Chart(Box::new(crate::map::tests::chart(crate::map::tests::hostile()))),
            ];
            let (id, title, about) = (hostile.to_string(), hostile.to_string(), hostile.to_string());
            let report = Report {
                title: hostile.into(),
                machine: hostile.into(),
                subtitle: hostile.into(),
                checks: vec![Check { mark: CheckMark::Bad, text: hostile.into() }],
                sections: vec![Section::new(id, title, blocks).about(about)],
                ..Report::default()
            };
            let text = render(&report);
            only_own_tags(&text);
            assert!(!text.contains(['\x1b', '\u{202e}', '\r']), "{text}");
            // Outside of <pre> and of a fence no mark of theirs begins anything.
            assert_eq!(text.matches("```").count() % 2, 0, "{text}");
            // Four cells in every row.
            for row in rows.lines().filter(|line| line.starts_with('|')) {
                assert_eq!(row.matches('|').count() - row.matches("\\|").count(), 5, "{row}");
            }
        }
    }

    #[test]
    fn code_stays_readable() {
        assert_eq!(code("perf stat -e cycles"), "`perf stat -e cycles`");
        assert_eq!(code("a | b && c > `d`"), "<code>a \\| b &amp;&amp; c &gt; \\`d\\`</code>");
        assert_eq!(code(""), "<code></code>");
        assert_eq!(
            (line("- a"), line("3) b"), line("3 c")),
            ("\\- a".into(), "3\\) b".into(), "3 c".to_string())
        );
        assert_eq!(safe("a_b ~c~ $d$"), "a\\_b \\~c\\~ \\$d\\$");
        assert_eq!(safe("cpu.clock@one-cpu, 3:4"), "cpu.clock@one-cpu, 3:4");
        assert_eq!(
            safe("@all (@a) https://x.example www.x.example"),
            "&#64;all (&#64;a) https&#58;//x.example www&#46;x.example"
        );
    }
}
