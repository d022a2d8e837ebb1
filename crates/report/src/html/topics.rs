//! The order of the page: sections of a run stand under the subject that they are about, and tables
//! of figures are divided among the subjects. Sections of studies and comparisons stand alone.

use std::borrow::Cow;

use crate::block::{Block, CONCLUSION, Chart, ChartKind, RESULTS, Report, Section, Table};
use crate::figure_rows::FigureRow;

/// A subject of a run, in the page's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Charts,
    Cpu,
    Memory,
    Os,
    Disk,
    Network,
    Stability,
    Checks,
    Host,
    Raw,
}

impl Topic {
    pub const ALL: [Topic; 10] = [
        Topic::Charts,
        Topic::Cpu,
        Topic::Memory,
        Topic::Os,
        Topic::Disk,
        Topic::Network,
        Topic::Stability,
        Topic::Checks,
        Topic::Host,
        Topic::Raw,
    ];

    /// Anchor and title.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Topic::Charts => ("charts", "Charts"),
            Topic::Cpu => ("cpu", "CPU"),
            Topic::Memory => ("memory", "Memory"),
            Topic::Os => ("os", "OS"),
            Topic::Disk => ("disk", "Disk"),
            Topic::Network => ("network", "Network"),
            Topic::Stability => ("stability", "Stability"),
            Topic::Checks => ("checks", "Checks"),
            Topic::Host => ("host", "Host"),
            Topic::Raw => ("raw-data", "Raw data"),
        }
    }

    /// Whether nothing of it is open at first.
    pub fn folded(self) -> bool {
        self >= Topic::Checks
    }

    /// The subject of a group of benchmarks (`syscall`), with the title of its figures.
    fn of_group(group: &str) -> Option<(Topic, &'static str)> {
        Some(match group {
            "cpu" => (Topic::Cpu, "Clock and arithmetic"),
            "memory" => (Topic::Memory, "Latency and bandwidth"),
            "syscall" => (Topic::Os, "System calls"),
            "signal" => (Topic::Os, "Signals"),
            "vm" => (Topic::Os, "Page faults and mappings"),
            "process" => (Topic::Os, "Processes and threads"),
            "timer" => (Topic::Os, "Timers"),
            "lock" => (Topic::Os, "Locks"),
            "ipc" => (Topic::Os, "Communication between tasks"),
            "sched" => (Topic::Os, "Scheduler"),
            "file" => (Topic::Disk, "Files, through the page cache"),
            "disk" => (Topic::Disk, "Disk"),
            "network" => (Topic::Network, "Network"),
            _ => return None,
        })
    }

    /// The subject of a section; `None` for one that stands alone.
    fn of_section(id: &str) -> Option<Topic> {
        Some(match id {
            "topology" => Topic::Cpu,
            "readings" => Topic::Memory,
            "latencies" | "placement-matrix" | "placements" => Topic::Os,
            "samples" | "observed" | "observed-lines" => Topic::Stability,
            "conditions" | "notes" => Topic::Checks,
            "machine" => Topic::Host,
            "method" | "raw" => Topic::Raw,
            // Studies, which have pages of their own.
            "memory-map" => return None,
            _ => Topic::of_group(id.split_once('-')?.0)?.0,
        })
    }
}

/// Charts that stand before all tables: they show what the answer depends on.
const KEY_CHARTS: [&str; 4] = [
    "chart-memory-latency",
    "chart-memory-core-to-core",
    "placements-ipc-pipe-pingpong-round_trips",
    "observed-clock",
];

/// A matrix of fewer rows has no shape to show.
const MIN_MATRIX: usize = 4;

fn is_key(chart: &Chart) -> bool {
    let shows = match &chart.kind {
        ChartKind::Matrix { rows, .. } => rows.labels.len() >= MIN_MATRIX,
        _ => true,
    };
    shows && KEY_CHARTS.contains(&chart.id.as_str())
}

/// A section or a part of one, under its subject.
pub struct Part<'a> {
    pub topic: Option<Topic>,
    pub id: Cow<'a, str>,
    pub title: Cow<'a, str>,
    pub about: &'a str,
    pub blocks: Vec<Cow<'a, Block>>,
}

/// The parts of the page: those that stand alone first, then by subject.
pub fn parts(report: &Report) -> Vec<Part<'_>> {
    // The conclusion stands above all parts where no first screen does.
    let shown = |section: &&Section| report.screen.is_some() || section.id != CONCLUSION;
    let mut parts: Vec<Part> =
        report.sections.iter().filter(shown).flat_map(|section| divided(section, report)).collect();
    // Figures of a subject before the sections that say more about some of them.
    parts.sort_by_key(|part| (part.topic, part.topic.is_some() && !part.id.starts_with(RESULTS)));
    let order = |part: &Part| match &part.blocks[..] {
        [block] => match block.as_ref() {
            Block::Chart(chart) => KEY_CHARTS.iter().position(|id| *id == chart.id),
            _ => None,
        },
        _ => None,
    };
    let charts = parts.iter().filter(|part| part.topic == Some(Topic::Charts)).count();
    let begin = parts.iter().position(|part| part.topic == Some(Topic::Charts)).unwrap_or(0);
    parts[begin..begin + charts].sort_by_key(order);
    parts
}

fn divided<'a>(section: &'a Section, report: &'a Report) -> Vec<Part<'a>> {
    if section.id == RESULTS {
        return results(section, &report.sections);
    }
    let topic = Topic::of_section(&section.id);
    let mut rest: Vec<Cow<Block>> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    for block in &section.blocks {
        match block {
            Block::Chart(chart) if topic.is_some() && is_key(chart) => parts.push(Part {
                topic: Some(Topic::Charts),
                id: Cow::Owned(format!("{}-key", chart.id)),
                title: Cow::Borrowed(&chart.title),
                about: "",
                blocks: vec![Cow::Borrowed(block)],
            }),
            // The verdict stands above on the same page.
            Block::Prose(text) => match report.without_sentences_of_the_screen(text) {
                left if left == text.trim() => rest.push(Cow::Borrowed(block)),
                left if left.is_empty() => {}
                left => rest.push(Cow::Owned(Block::Prose(left))),
            },
            block => rest.push(Cow::Borrowed(block)),
        }
    }
    if topic.is_some() {
        // Charts before tables; what stands first introduces them.
        let after = rest.iter().position(|block| matches!(block.as_ref(), Block::Table(_))).unwrap_or(0);
        rest[after..].sort_by_key(|block| !matches!(block.as_ref(), Block::Chart(_)));
    }
    if !rest.is_empty() || section.blocks.is_empty() {
        parts.push(Part {
            topic,
            id: Cow::Borrowed(&section.id),
            title: Cow::Borrowed(&section.title),
            about: &section.about,
            blocks: rest,
        });
    }
    parts
}

/// The figures, divided by their groups, and the tables beside them; what has no subject
/// stands alone.
fn results<'a>(section: &'a Section, all: &'a [Section]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut rest: Vec<Cow<Block>> = Vec::new();
    for block in &section.blocks {
        let left = match block {
            Block::Figures(rows) => {
                let groups: Vec<&[FigureRow]> =
                    rows.chunk_by(|one, other| one.bench == other.bench).collect();
                for group in groups {
                    let Some((topic, title)) = Topic::of_group(&group[0].bench) else {
                        rest.push(Cow::Owned(Block::Figures(group.to_vec())));
                        continue;
                    };
                    parts.push(Part {
                        topic: Some(topic),
                        id: Cow::Owned(format!("{RESULTS}-{}", group[0].bench)),
                        title: Cow::Borrowed(title),
                        about: "",
                        blocks: vec![Cow::Owned(Block::Figures(group.to_vec()))],
                    });
                }
                continue;
            }
            Block::Table(left) => left,
            block => {
                rest.push(Cow::Borrowed(block));
                continue;
            }
        };
        match beside(left, all).filter(|_| !parts.is_empty()) {
            Some(same) => parts.push(Part {
                topic: Topic::of_section(&same.id),
                id: Cow::Owned(format!("{RESULTS}-{}", same.id)),
                title: Cow::Owned(format!("{} as a table", same.title)),
                about: "",
                blocks: vec![Cow::Borrowed(block)],
            }),
            None => rest.push(Cow::Borrowed(block)),
        }
    }
    // Words about figures that all stand elsewhere.
    let words = !parts.is_empty() && rest.iter().all(|block| matches!(block.as_ref(), Block::Prose(_)));
    if !rest.is_empty() {
        let title = if words { "How well the figures are known" } else { section.title.as_str() };
        parts.push(Part {
            topic: words.then_some(Topic::Stability),
            id: Cow::Borrowed(RESULTS),
            title: Cow::Borrowed(title),
            about: &section.about,
            blocks: rest,
        });
    }
    parts
}

/// The section of a subject that shows the same as this table: `Core to core, ns`.
fn beside<'a>(table: &Table, all: &'a [Section]) -> Option<&'a Section> {
    let name = table.columns.first()?.title.split(',').next()?;
    all.iter().find(|section| section.title == name && Topic::of_section(&section.id).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Cell, Column, Table};
    use crate::screen::Screen;

    fn section(id: &str, title: &str, blocks: Vec<Block>) -> Section {
        Section::new(id, title, blocks)
    }

    fn table(first: &str, rows: Vec<Cell>) -> Block {
        let columns = vec![Column { title: first.into(), right: false }];
        Block::Table(Table::new(columns, rows.into_iter().map(|cell| vec![cell])))
    }

    #[test]
    fn figures_stand_under_their_subjects() {
        let row = |text: &str| Cell::Text(text.into());
        let figures = ["cpu", "syscall", "syscall"]
            .map(|bench| FigureRow { bench: bench.into(), ..FigureRow::default() });
        let figures = Block::Figures(figures.to_vec());
        let matrix = table("Core to core, ns", vec![row("CPU 0")]);
        let words = Block::Prose("90 of 100 figures trusted".into());
        let report = Report {
            sections: vec![
                section(RESULTS, "Results", vec![words, figures, matrix]),
                section("memory-core-to-core", "Core to core", vec![table("x", vec![row("a")])]),
                section("smt", "SMT", vec![Block::Prose("a study".into())]),
            ],
            ..Report::default()
        };
        let parts = parts(&report);
        let shown: Vec<(Option<Topic>, &str)> =
            parts.iter().map(|part| (part.topic, part.id.as_ref())).collect();
        let wanted = [
            (None, "smt"),
            (Some(Topic::Cpu), "results-cpu"),
            (Some(Topic::Memory), "results-memory-core-to-core"),
            (Some(Topic::Memory), "memory-core-to-core"),
            (Some(Topic::Os), "results-syscall"),
            (Some(Topic::Stability), RESULTS),
        ];
        assert_eq!(shown, wanted);
        let rows = parts[4].blocks.iter().map(|block| match block.as_ref() {
            Block::Figures(rows) => rows.len(),
            _ => 0,
        });
        assert_eq!(rows.sum::<usize>(), 2);
    }

    #[test]
    fn what_the_verdict_says_is_not_said_again() {
        let said = "A second thread adds 25 %.".to_string();
        let screen = Screen { sentences: vec![said.clone()], ..Screen::default() };
        let with = |texts: &[&str]| {
            let blocks = texts.iter().map(|text| Block::Prose(text.to_string())).collect();
            let sections = vec![section(CONCLUSION, "Conclusion", blocks)];
            let report = Report { sections, screen: Some(screen.clone()), ..Report::default() };
            let prose = |block: &Cow<Block>| match block.as_ref() {
                Block::Prose(text) => text.clone(),
                _ => String::new(),
            };
            parts(&report).iter().map(|part| part.blocks.iter().map(prose).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(with(&[&said]), [[""; 0]; 0]);
        assert_eq!(with(&[&format!("{said} It can grow.")]), [["It can grow."]]);
        assert_eq!(with(&["It can grow."]), [["It can grow."]]);
    }

    #[test]
    fn figures_without_groups_stand_alone() {
        let report = Report {
            sections: vec![section(RESULTS, "Results", vec![table("test", vec![Cell::Text("a".into())])])],
            ..Report::default()
        };
        assert_eq!(parts(&report).iter().map(|part| part.topic).collect::<Vec<_>>(), [None]);
    }
}
