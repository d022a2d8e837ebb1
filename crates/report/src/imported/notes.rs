//! The lines below an imported result's figures: what was found, what was left out and why, and
//! what is to be known of the tool and the file.

use std::collections::BTreeSet;

use super::has_value;
use crate::screen::FindingLine;
use diagnose::words::{capital, counted};
use import::{Figure, Imported, topic};
use model::{Finding, Severity};

/// Lines at most.
const FINDINGS: usize = 5;

pub fn topic_of(finding: &Finding) -> Option<&'static str> {
    topic(&finding.rule).or_else(|| diagnose::topic(&finding.rule))
}

/// The lines of several results, those of one kind once.
pub fn findings(results: &[(String, Imported)], found: &[Finding]) -> Vec<FindingLine> {
    let note = |topic: &'static str, text: String, more: usize| FindingLine {
        severity: Severity::Note,
        topic,
        text,
        rule: String::new(),
        advice: String::new(),
        more,
    };
    let mut all: Vec<FindingLine> = Vec::new();
    for finding in found {
        match all.iter_mut().find(|line| line.rule == finding.rule) {
            Some(line) => line.more += 1,
            None => all.push(FindingLine {
                severity: finding.severity,
                topic: topic_of(finding).unwrap_or("file"),
                text: format!("{}.", finding.headline.trim_end_matches('.')),
                rule: finding.rule.clone(),
                // Some headlines end with what to do.
                advice: if finding.headline.contains(finding.advice.trim_end_matches('.')) {
                    String::new()
                } else {
                    finding.advice.clone()
                },
                more: 0,
            }),
        }
    }
    all.sort_by_key(|line| std::cmp::Reverse(line.severity));
    let figures = || results.iter().flat_map(|(_, one)| &one.figures);
    let left_out = left_out(figures());
    let lines = left_out.iter().map(|(reason, count)| {
        note("left out", format!("{}: {}", counted(*count, "figure"), sentence(&shortened(reason))), 0)
    });
    all.extend(lines);
    // What a format always says comes first in a file, and once where several have it. Remarks that
    // differ in their numbers alone have one line.
    let mut said: BTreeSet<String> = BTreeSet::new();
    for (one, (at, remark)) in
        results.iter().flat_map(|(_, one)| one.remarks.iter().enumerate().map(move |remark| (one, remark)))
    {
        let text = clause(remark).trim_end_matches('.');
        let is_known = |(reason, _): &(String, usize)| text.ends_with(reason.trim_end_matches('.'));
        if at > 0 && left_out.iter().any(is_known) {
            continue;
        }
        let text = sentence(&shortened(&uncut(&of_the_tool(text, one, at == 0))));
        if !said.insert(text.clone()) {
            continue;
        }
        let topic = if at == 0 { "tool" } else { "file" };
        let is_alike = |line: &&mut FindingLine| line.topic == topic && masked(&line.text) == masked(&text);
        match all.iter_mut().filter(|line| line.rule.is_empty()).find(is_alike) {
            Some(line) => line.more += 1,
            None => all.push(note(topic, text, 0)),
        }
    }
    all.truncate(FINDINGS);
    all
}

/// A remark that begins with a capital, unless it begins with the name of its tool, which keeps the
/// form that it has.
fn of_the_tool(text: &str, one: &Imported, is_of_tool: bool) -> String {
    let first = text.split([' ', '\'']).next().unwrap_or_default();
    let is_name = is_of_tool && !["a", "an", "the", "what", "all", "each"].contains(&first);
    let is_name = is_name || one.format.word().split(' ').any(|word| word == first);
    if is_name { text.to_string() } else { capital(text) }
}

/// Ended with a full stop, where nothing ends it.
fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    if text.ends_with(['?', '!']) { text.to_string() } else { format!("{text}.") }
}

/// Of a longer list in a long text only the first part is shown.
const PARTS: usize = 6;
const LONG: usize = 120;
const KEPT: usize = 3;
/// Words of a part: what has more is no list, but a sentence with commas.
const WORDS: usize = 6;

/// A text with a long list cut to its first parts: `no row of A, B, C and 7 more`.
fn shortened(text: &str) -> String {
    let parts: Vec<&str> = text.split(", ").collect();
    let is_part = |part: &&str| part.split(' ').count() <= WORDS;
    if text.chars().count() < LONG || parts.len() < PARTS || !parts[1..].iter().all(is_part) {
        return text.to_string();
    }
    format!("{} and {} more", parts[..KEPT].join(", "), parts.len() - KEPT)
}

fn masked(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

fn uncut(text: &str) -> String {
    text.replace('…', "...")
}

/// Figures without a value by the reason: those whose reasons differ in their numbers alone are
/// counted together. The commonest first.
fn left_out<'a>(figures: impl Iterator<Item = &'a Figure>) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, String, usize)> = Vec::new();
    for figure in figures.filter(|figure| !has_value(figure)) {
        let whole = figure.judged.analysis.verdict.reason.as_str();
        let reason = head(whole, &[": ", " (", "; "]);
        // `bind: Address in use`: one word is what failed, and not why.
        let reason = if reason.contains(' ') { reason } else { head(whole, &[" (", "; "]) };
        let masked = masked(reason);
        match reasons.iter_mut().find(|(known, ..)| *known == masked) {
            Some((.., count)) => *count += 1,
            None => reasons.push((masked, uncut(reason), 1)),
        }
    }
    reasons.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    reasons.into_iter().map(|(_, reason, count)| (reason, count)).collect()
}

/// A text up to the first of some marks.
fn head<'a>(text: &'a str, marks: &[&str]) -> &'a str {
    let end = marks.iter().filter_map(|mark| text.find(mark)).min();
    &text[..end.unwrap_or(text.len())]
}

/// A text up to its first semicolon that stands in no quotes.
fn clause(text: &str) -> &str {
    let ends = text.match_indices("; ").map(|(at, _)| at);
    let mut open = ends.filter(|at| text[..*at].matches('"').count().is_multiple_of(2));
    &text[..open.next().unwrap_or(text.len())]
}

pub fn first_sentence(text: &str) -> Option<String> {
    let first = head(text, &[". "]).trim_end_matches('.');
    (!first.is_empty()).then(|| format!("{first}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_by_their_kind() {
        assert_eq!(head("the cell is empty: lmbench had no value", &[": ", " ("]), "the cell is empty");
        assert_eq!(head("nothing", &[": "]), "nothing");
        assert_eq!(first_sentence("One. Two."), Some("One.".to_string()));
        assert_eq!(first_sentence(""), None);
    }

    #[test]
    fn remarks_are_cut_where_they_may_be() {
        assert_eq!(clause("it says \"a; b\"; then more"), "it says \"a; b\"");
        assert_eq!(sentence("no figures: why?"), "no figures: why?");
        let list = (1..=9).map(|at| format!("a test of number {at}")).collect::<Vec<_>>().join(", ");
        let cut = shortened(&format!("no row of {list}"));
        assert!(cut.ends_with("a test of number 3 and 6 more"), "{cut}");
        assert_eq!(shortened("a, b, c, d, e, f, g, h"), "a, b, c, d, e, f, g, h");
        assert_eq!(masked("busy for 61 % of the time"), masked("busy for 5.5 % of the time"));
    }
}
