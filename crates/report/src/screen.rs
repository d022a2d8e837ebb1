//! The first screen: an answer in ten seconds. A host line, a verdict with at most three sentences,
//! key figures with their readings, findings of a line each, two closing lines.

use super::block::Block;
pub use diagnose::finding_lines::FindingLine;
use diagnose::words::counted;
use model::Severity;

/// What a piece of a screen is, for its colour; every colour has a sign beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    Dim,
    Good,
    Care,
    Bad,
    Picture,
}

/// The first screen of anything that was judged.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    /// Host, what it is, how long it took; where the line is too short, `spare` parts are left out
    /// from the right.
    pub host: Vec<HostPart>,
    /// What makes the run no measurement, or not a whole one: `INVENTED SAMPLES (--pretend 7)`.
    pub notices: Vec<String>,
    pub word: String,
    pub tone: Tone,
    /// At most three sentences.
    pub sentences: Vec<String>,
    pub rows: Vec<Row>,
    /// What stands below the rows, under a group's name: `network`, `not tested: ...`.
    pub remarks: Vec<(String, String)>,
    /// What a study shows in place of key figures: one table or picture.
    pub blocks: Vec<Block>,
    /// What can be done with the result now, in parts of one line; RUN is its run file.
    pub next: Vec<String>,
    pub findings: Vec<FindingLine>,
    /// What was looked at and found in order, or could not be looked at.
    pub passed: Vec<PassedCheck>,
    pub not_applicable: Vec<String>,
    /// How many figures there are in all.
    pub figures: usize,
    /// A card for each group that was tested, and for stability.
    pub cards: Vec<Card>,
}

/// A part of the host line.
#[derive(Clone, Debug)]
pub struct HostPart {
    pub text: String,
    /// A shorter form of the same; may be empty.
    pub short: String,
    pub spare: bool,
}

impl HostPart {
    pub fn needed(text: impl Into<String>) -> HostPart {
        HostPart { text: text.into(), short: String::new(), spare: false }
    }

    pub fn spare(text: impl Into<String>) -> HostPart {
        HostPart { text: text.into(), short: String::new(), spare: true }
    }
}

/// A figure of the table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Of a key figure, what people call it by: `dram-latency`.
    pub name: Option<&'static str>,
    /// The series it is; `None` of what was read off a curve.
    pub key: Option<String>,
    pub group: &'static str,
    pub label: String,
    /// The label where no column of groups stands before it.
    pub alone: String,
    /// `None`: rejected.
    pub value: Option<f64>,
    pub low_high: Option<[f64; 2]>,
    pub unit: String,
    /// The band of the class as words: `102–139`.
    pub typical: String,
    /// Its ends, in the row's unit; an end that it does not have is `None`.
    pub band: [Option<f64>; 2],
    pub reading: RowReading,
}

/// How good a figure is, in a sign, a word and what is to be added.
#[derive(Clone, Debug, PartialEq)]
pub struct RowReading {
    pub sign: char,
    pub word: String,
    pub tone: Tone,
    /// The band is that of a wider class.
    pub wide: bool,
    /// What stands behind it where there is room: `a cache?`.
    pub extra: String,
}

impl RowReading {
    /// Whether there is nothing to say but that no reference applies.
    pub fn is_without(&self) -> bool {
        *self == RowReading::default()
    }

    /// Sign and words on one line: `● normal ~ a cache?`.
    pub fn words(&self) -> String {
        let wide = if self.wide { " ~" } else { "" };
        let extra = if self.extra.is_empty() { String::new() } else { format!(" {}", self.extra) };
        match (self.sign, self.extra.as_str()) {
            // Without a reference there is room for what else is known.
            ('–', extra) if !extra.is_empty() => format!("– {extra}"),
            (sign, _) => format!("{sign} {}{wide}{extra}", self.word),
        }
    }
}

impl Default for RowReading {
    fn default() -> RowReading {
        RowReading {
            sign: '–',
            word: "no reference".into(),
            tone: Tone::Dim,
            wide: false,
            extra: String::new(),
        }
    }
}

/// A check that found nothing.
#[derive(Clone, Debug)]
pub struct PassedCheck {
    pub text: String,
    /// Where it looked; may be empty.
    pub looked_at: String,
    pub rule: String,
}

/// A group's grade: that of its worst key figure that is certain.
#[derive(Clone, Debug)]
pub struct Card {
    pub group: &'static str,
    /// The figure that set the grade, or the first one of the group; `None` where nothing of it was
    /// tested.
    pub row: Option<Row>,
    /// `None`: no figure of the group has a reference that makes it certain.
    pub reading: Option<RowReading>,
}

impl Screen {
    /// How many findings of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|line| line.severity == severity).count()
    }

    /// How many findings of each severity there are, the gravest first: `1 problem`.
    pub fn counts(&self) -> Vec<String> {
        let found = Severity::ALL.iter().rev().filter(|severity| self.count(**severity) > 0);
        found.map(|severity| counted(self.count(*severity), severity.word())).collect()
    }

    /// The command that explains the gravest finding of a rule; empty where there is none.
    pub fn explain(&self) -> String {
        let rule = self.findings.iter().map(|line| &line.rule).find(|rule| !rule.is_empty());
        rule.map_or(String::new(), |rule| format!("assay explain {rule}"))
    }
}
