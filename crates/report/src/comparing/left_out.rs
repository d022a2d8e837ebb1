//! What a comparison leaves out, with both values and the reason.

use diagnose::words::counted;
use std::collections::BTreeMap;

use super::{names, screen::values};
use crate::plain::{lines, plain};
use crate::text::{Style, Tone, paint, wrapped};
use compare::{Comparison, Refused, Row};

/// Each reason with its figures, the most frequent reason first.
pub fn text(found: &[Comparison], letters: &[String], style: Style) -> String {
    let mut out = String::new();
    for (one, letter) in found.iter().zip(letters) {
        if found.len() > 1 {
            out.push_str(&format!("\n{}\n", paint(&format!("  {letter}"), Tone::Strong, style)));
        }
        let reasons = by_reason(one);
        if reasons.is_empty() && one.alone == [0, 0] {
            out.push_str(&wrapped("Nothing is left out.", 2, Tone::Plain, style));
        }
        for ((factor, reason), figures) in reasons {
            let many = counted(figures.len(), "value");
            out.push('\n');
            let many = if factor == "value" { many } else { format!("{many} ({factor})") };
            let head = plain(&format!("{many}: {reason}"), 600);
            out.push_str(&wrapped(&head, 2, Tone::Strong, style));
            figures.iter().for_each(|figure| out.push_str(&line(figure, style)));
        }
        for (side, own) in [(0, "A"), (1, letter.as_str())] {
            let Some(text) = alone(one, side, own) else { continue };
            out.push('\n');
            out.push_str(&wrapped(&plain(&text, LONGEST), 2, Tone::Plain, style));
        }
    }
    out.push('\n');
    out
}

/// Names of figures that stand in one list, and its longest text.
const NAMES: usize = 40;
const LONGEST: usize = 4000;

/// What only one side has, by name.
fn alone(one: &Comparison, side: usize, letter: &str) -> Option<String> {
    let names = &one.names_alone[side];
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more names"),
    };
    let count = Some(one.alone[side]).filter(|count| *count > 0)?;
    let names = names[..names.len().min(NAMES)].join("; ");
    Some(format!("Only in {letter}: {} ({names}{more}).", counted(count, "value")))
}

/// The refused of a comparison by what is said of them, the most frequent first.
fn by_reason(one: &Comparison) -> Vec<((&str, &str), Vec<&Refused>)> {
    let mut reasons: BTreeMap<(&str, &str), Vec<&Refused>> = BTreeMap::new();
    for refused in &one.refused {
        reasons.entry((&refused.factor, &refused.reason)).or_default().push(refused);
    }
    let mut reasons: Vec<((&str, &str), Vec<&Refused>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.len()));
    reasons
}

fn line(refused: &Refused, style: Style) -> String {
    let row = Row::left(refused);
    let [a, b] = values(row.values);
    let label = names::whole(&row.title, &row.key);
    let cells = format!("A {a:>7}  B {b:>7} {}", row.unit);
    let room = style.width.saturating_sub(4 + 2 + 28).max(20);
    let mut parts = lines(&plain(&label, 300), room);
    let last = parts.pop().unwrap_or_default();
    let above: String = parts.iter().map(|part| format!("    {part}\n")).collect();
    format!("{above}    {last:room$}  {}\n", cells.trim_end())
}
