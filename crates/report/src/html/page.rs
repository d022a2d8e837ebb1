//! The page's parts as the template wants them.

use diagnose::words::counted;
use std::borrow::Cow;

use askama::Template;

use super::header::{Header, header};
use super::item::Item;
use super::packed::{self, Packed};
use super::text::filters;
use super::topics::{Part, Topic, parts};
use super::{EARLY, SCRIPT, STYLE, policy, verdict};
use crate::block::{Block, CheckMark, FINDINGS, Report};
use crate::screen::Screen;
use model::Severity;

#[derive(Template)]
#[template(path = "report.html", whitespace = "minimize")]
pub struct Page<'a> {
    report: &'a Report,
    groups: Vec<Group<'a>>,
    policy: String,
}

/// A titled part of the page, with an entry in the sidebar.
struct Group<'a> {
    id: Cow<'a, str>,
    title: Cow<'a, str>,
    about: &'a str,
    /// Beside the title: `4 warnings, 2 notes`.
    hint: String,
    /// In the sidebar: `4 + 2`, and its class.
    count: (String, &'static str),
    /// The subject, for sections of a run; other ones stand open.
    topic: Option<Topic>,
    folds: Vec<Fold<'a>>,
}

/// What opens at a press.
struct Fold<'a> {
    id: Cow<'a, str>,
    title: Cow<'a, str>,
    about: &'a str,
    /// How much is in it.
    hint: String,
    open: bool,
    items: Vec<Item<'a>>,
}

impl<'a> Page<'a> {
    pub fn new(report: &'a Report) -> Page<'a> {
        let (grouped, alone): (Vec<Part>, Vec<Part>) =
            parts(report).into_iter().partition(|part| part.topic.is_some());
        let mut groups: Vec<Group> =
            alone.into_iter().map(|part| Group::alone(part, report.screen.as_ref())).collect();
        let mut grouped = grouped.into_iter().peekable();
        for topic in Topic::ALL {
            let mut own: Vec<Part> = Vec::new();
            while let Some(part) = grouped.next_if(|part| part.topic == Some(topic)) {
                own.push(part);
            }
            let stands = match topic {
                Topic::Checks => !report.checks.is_empty(),
                Topic::Raw => !report.json.is_empty(),
                _ => false,
            };
            if stands || !own.is_empty() {
                groups.push(Group::of(topic, own));
            }
        }
        Page { report, groups, policy: policy() }
    }

    fn header(&self) -> Header<'a> {
        header(self.report)
    }

    /// Whether there are tables of figures, whose signs need words.
    fn has_figures(&self) -> bool {
        let blocks = self.report.sections.iter().flat_map(|section| &section.blocks);
        blocks.into_iter().any(|block| matches!(block, Block::Figures(_)))
    }

    /// How many conditions were found in order.
    fn passed(&self) -> usize {
        self.report.checks.iter().filter(|check| check.mark == CheckMark::Good).count()
    }

    /// The style sheet, scripts and JSON: not host text, or without any character of markup.
    fn style(&self) -> &'static str {
        STYLE
    }

    fn early(&self) -> &'static str {
        EARLY
    }

    fn script(&self) -> &'static str {
        SCRIPT
    }

    fn json_begin(&self) -> &'static str {
        packed::BEGIN
    }

    fn json_end(&self) -> &'static str {
        packed::END
    }

    fn json(&self) -> Packed<'_> {
        Packed(&self.report.json)
    }

    fn kibibytes(&self) -> usize {
        self.report.json.len().div_ceil(1024)
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

impl<'a> Group<'a> {
    fn alone(part: Part<'a>, screen: Option<&Screen>) -> Group<'a> {
        let (hint, count) =
            if part.id == FINDINGS { findings(&part.blocks, screen) } else { Default::default() };
        let items = Item::all(part.blocks, false);
        let fold = Fold {
            id: Cow::Borrowed(""),
            title: Cow::Borrowed(""),
            about: "",
            hint: String::new(),
            open: true,
            items,
        };
        let Part { id, title, about, .. } = part;
        Group { id, title, about, hint, count, topic: None, folds: vec![fold] }
    }

    fn of(topic: Topic, parts: Vec<Part<'a>>) -> Group<'a> {
        let (id, title) = topic.names();
        let folds = match topic {
            Topic::Charts => {
                let blocks = parts.into_iter().flat_map(|part| part.blocks).collect();
                vec![Fold {
                    id: Cow::Borrowed(""),
                    title: Cow::Borrowed(""),
                    about: "",
                    hint: String::new(),
                    open: true,
                    items: Item::key_charts(blocks),
                }]
            }
            _ => {
                let fold = |(place, part): (usize, Part<'a>)| {
                    let hint = size(&part.blocks);
                    let open = place == 0 && !topic.folded();
                    let Part { id, title, about, .. } = part;
                    Fold { id, title, about, hint, open, items: Item::all(part.blocks, true) }
                };
                parts.into_iter().enumerate().map(fold).collect()
            }
        };
        Group {
            id: Cow::Borrowed(id),
            title: Cow::Borrowed(title),
            about: "",
            hint: String::new(),
            count: Default::default(),
            topic: Some(topic),
            folds,
        }
    }

    fn is(&self, id: &str) -> bool {
        self.topic.is_some_and(|topic| topic.names().0 == id)
    }

    /// Whether its parts fold; else they stand as they are.
    fn has_folds(&self) -> bool {
        self.topic.is_some_and(|topic| topic != Topic::Charts)
    }
}

/// `12 figures` or `3 charts`.
fn size(blocks: &[Cow<Block>]) -> String {
    let count = |of: fn(&Block) -> usize| blocks.iter().map(|block| of(block)).sum::<usize>();
    let rows = count(|block| match block {
        Block::Table(table) => table.rows.len(),
        Block::Figures(rows) => rows.len(),
        _ => 0,
    });
    let charts = count(|block| usize::from(matches!(block, Block::Chart(_))));
    let both = [(charts, "chart"), (rows, "row")].into_iter().filter(|(count, _)| *count > 0);
    both.map(|(count, one)| counted(count, one)).collect::<Vec<_>>().join(", ")
}

/// `1 problem, 4 warnings, 2 notes`, as the first screen counts them, and `5 + 2` for the sidebar.
fn findings(blocks: &[Cow<Block>], screen: Option<&Screen>) -> (String, (String, &'static str)) {
    let all = || {
        blocks.iter().flat_map(|block| match block.as_ref() {
            Block::Findings(findings) => findings.as_slice(),
            _ => &[],
        })
    };
    let count = |severity: Severity| match screen {
        Some(screen) => screen.count(severity),
        None => all().filter(|finding| finding.severity == severity).count(),
    };
    let counts = [Severity::Problem, Severity::Warning, Severity::Note].map(|own| (own, count(own)));
    let words = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| counted(*count, verdict::severity(*severity).1));
    let mut words = words.collect::<Vec<_>>().join(", ");
    // Findings of one cause share a line of the first screen.
    if counts.iter().map(|(_, count)| count).sum::<usize>() < all().count() {
        words.push_str(&format!(" in {} findings", all().count()));
    }
    let [problems, warnings, notes] = counts.map(|(_, count)| count);
    let class = if problems > 0 { "bad" } else { "care" };
    let short = match (problems + warnings, notes) {
        (0, 0) => (String::new(), ""),
        (0, notes) => (notes.to_string(), ""),
        (graver, 0) => (graver.to_string(), class),
        (graver, notes) => (format!("{graver} + {notes}"), class),
    };
    (words, short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::finding_lines::screen_order;
    use model::Finding;

    #[test]
    fn findings_are_counted_as_the_first_screen_counts_them() {
        let found = [("a", Severity::Problem), ("a", Severity::Problem), ("b", Severity::Note)]
            .map(|(rule, severity)| Finding::of(rule, severity, "1 fault").confirm("true"));
        let screen = Screen { findings: screen_order(&found, |_| 0), ..Screen::default() };
        let blocks = [Cow::Owned(Block::Findings(found.to_vec()))];
        let (words, (short, _)) = findings(&blocks, Some(&screen));
        assert_eq!((words.as_str(), short.as_str()), ("1 problem, 1 note in 3 findings", "1 + 1"));
        assert_eq!(findings(&blocks, None).0, "2 problems, 1 note");
    }
}
