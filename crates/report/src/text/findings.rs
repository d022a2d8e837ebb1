//! Findings and checks as lines of a first screen.

use super::screen::{left, shown};
use super::{LONGEST, Style, paint};
use crate::plain::{lines, plain};
use crate::screen::{FindingLine, Screen, Tone};
use model::Severity;

/// Findings on it, where there is no problem among them and where there is.
const FINDINGS: usize = 5;
const WITH_PROBLEMS: usize = 7;

/// The mark of a finding.
fn mark(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Problem => ("✗", Tone::Bad),
        Severity::Warning => ("!", Tone::Care),
        Severity::Note => ("·", Tone::Dim),
    }
}

/// The gravest findings, in at most `most` lines; the others are counted.
pub(super) fn findings(screen: &Screen, most: usize, style: Style) -> Vec<String> {
    let problems = screen.count(Severity::Problem) > 0;
    let usual = if problems { WITH_PROBLEMS } else { FINDINGS };
    let limit = if most == usize::MAX { usize::MAX } else { usual };
    let wide = topic_width(&screen.findings);
    let mut all: Vec<String> = Vec::new();
    for (at, line) in screen.findings.iter().enumerate() {
        let own = finding(line, wide, style);
        let left = screen.findings.len() - at;
        if at == limit || (all.len() + own.len() + usize::from(left > 1) > most && at > 0) {
            // Where no checks were made, the long form has them.
            let checked = !screen.passed.is_empty() || !screen.not_applicable.is_empty();
            let option = if checked { "--checks" } else { "--all" };
            all.push(paint(&format!("    {left} more: {option} lists them"), Tone::Dim, style));
            break;
        }
        all.extend(own);
    }
    all
}

/// Columns of the topics of these findings, with two blanks behind the longest.
pub fn topic_width(findings: &[FindingLine]) -> usize {
    const USUAL: usize = 12;
    let longest = findings.iter().map(|line| line.topic.chars().count()).max().unwrap_or(0);
    USUAL.max(longest + 2)
}

/// A finding in lines; its topic fills `wide` columns.
pub fn finding(line: &FindingLine, wide: usize, style: Style) -> Vec<String> {
    let (sign, tone) = mark(line.severity);
    let topic = shown(&plain(line.topic, 24), style);
    let room = style.width.saturating_sub(4 + wide).max(20);
    let text = plain(&line.text, LONGEST);
    let stop = if text.ends_with(['.', '!', '?', ':', '…']) { "" } else { "." };
    let told = match line.more_words() {
        more if more.is_empty() => format!("{text}{stop}"),
        more => format!("{text}{stop} ({more})"),
    };
    let mut text = lines(&shown(&told, style), room);
    if line.severity == Severity::Problem && !line.advice.is_empty() {
        text.extend(lines(&shown(&plain(&line.advice, LONGEST), style), room));
    }
    let strong = if line.severity == Severity::Note { Tone::Dim } else { Tone::Strong };
    text.iter()
        .enumerate()
        .map(|(at, text)| match at {
            0 => {
                let sign = paint(&shown(sign, style), tone, style);
                format!("  {sign} {}{text}", paint(&left(&topic, wide), strong, style))
            }
            _ => format!("    {}{text}", " ".repeat(wide)),
        })
        .collect()
}

/// Every check, one line each: what was found, then what was looked at and found in order.
pub(super) fn checks(screen: &Screen, style: Style) -> Vec<String> {
    let mut all = Vec::new();
    let wide = topic_width(&screen.findings);
    let found = screen.findings.iter().flat_map(|line| {
        let mut text = finding(line, wide, style);
        let last = text.last().map_or(0, |line| line.chars().count());
        let rule = paint(&line.rule, Tone::Dim, style);
        match text.last_mut() {
            Some(end) if last + 2 + line.rule.chars().count() <= style.width => *end += &format!("  {rule}"),
            _ => text.push(format!("{}{rule}", " ".repeat(4 + wide))),
        }
        text
    });
    all.extend(found);
    let passed = &screen.passed;
    let text = passed.iter().map(|check| check.text.chars().count()).max().unwrap_or(0);
    let looked = passed.iter().map(|check| check.looked_at.chars().count()).max().unwrap_or(0);
    let rule = passed.iter().map(|check| check.rule.chars().count()).max().unwrap_or(0);
    let with_looked = 4 + text + 2 + looked + 2 + rule <= style.width;
    let with_rule = 4 + text + 2 + rule <= style.width;
    for check in passed {
        let sign = paint(&shown("✓", style), Tone::Good, style);
        let middle = if with_looked {
            paint(&left(&shown(&check.looked_at, style), looked + 2), Tone::Dim, style)
        } else {
            String::new()
        };
        if with_rule {
            let text = left(&shown(&check.text, style), text + 2);
            let line = format!("  {sign} {text}{middle}{}", paint(&check.rule, Tone::Dim, style));
            all.push(line.trim_end().to_string());
            continue;
        }
        // A rule's name has no room beside its check.
        let text = lines(&shown(&check.text, style), style.width.saturating_sub(4));
        let begun = |at: usize| if at == 0 { format!("  {sign} ") } else { " ".repeat(4) };
        all.extend(text.iter().enumerate().map(|(at, line)| format!("{}{line}", begun(at))));
    }
    if !screen.not_applicable.is_empty() {
        let text = format!("not tested: {}", screen.not_applicable.join(", "));
        all.push(String::new());
        all.extend(
            lines(&text, style.width.saturating_sub(2))
                .iter()
                .map(|line| paint(&format!("  {line}"), Tone::Dim, style)),
        );
    }
    all
}
