//! What a report consists of before it is drawn: blocks that are independent of benchmarks, for
//! renderers that need nothing else.

mod table;

pub use table::{Cell, Column, Table};
pub(crate) use table::{column, columns, right};

use super::figure_rows::FigureRow;
use super::screen::{Screen, Tone};
use model::{Better, Finding, Verdict, letters};

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// `HOST: what was done`, for the page's title.
    pub title: String,
    /// The host in one line.
    pub machine: String,
    /// Profile, date, duration, version.
    pub subtitle: String,
    /// The conditions that measuring met, the good ones too.
    pub checks: Vec<Check>,
    pub sections: Vec<Section>,
    /// What stands first; `None` of what has no first screen yet.
    pub screen: Option<Screen>,
    /// Of a conclusion that stands without a first screen.
    pub tone: Tone,
    /// The JSON contract of this very report, to be embedded and read back.
    pub json: String,
}

impl Report {
    /// A text without those sentences that the verdict of the first screen has already.
    pub fn without_sentences_of_the_screen(&self, text: &str) -> String {
        let sentences = self.screen.iter().flat_map(|screen| &screen.sentences);
        let rest = sentences.fold(text.to_string(), |text, sentence| text.replacen(sentence.as_str(), "", 1));
        rest.trim().to_string()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMark {
    Good,
    Care,
    Bad,
    /// Worth knowing, and no fault.
    Note,
}

/// One condition: `✓ idle 98.9 %`, `! SMT siblings hidden`.
#[derive(Clone, Debug)]
pub struct Check {
    pub mark: CheckMark,
    pub text: String,
}

/// The id of what a study comes to, which stands first.
pub const CONCLUSION: &str = "conclusion";

/// The ids of the sections of findings and of results, which need no title in a terminal.
pub const FINDINGS: &str = "findings";
/// The host as text.
pub const MACHINE: &str = "machine";
/// How it was measured.
pub const METHOD: &str = "method";
pub const RESULTS: &str = "results";

/// A titled part; `id` is its anchor.
#[derive(Clone, Debug)]
pub struct Section {
    pub id: String,
    pub title: String,
    /// A sentence below the title; may be empty.
    pub about: String,
    pub blocks: Vec<Block>,
    /// Only in the page and in Markdown: too long for a terminal.
    pub long: bool,
}

impl Section {
    pub fn new(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id: id.into(), title: title.into(), about: String::new(), blocks, long: false }
    }

    pub fn about(self, about: impl Into<String>) -> Section {
        Section { about: about.into(), ..self }
    }

    /// Only for the page and Markdown.
    pub fn long(self) -> Section {
        Section { long: true, ..self }
    }

    /// Its paragraphs.
    pub fn prose(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Prose(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Nothing where it has no blocks.
    pub fn unless_empty(self) -> Option<Section> {
        Some(self).filter(|section| !section.blocks.is_empty())
    }
}

#[derive(Clone, Debug)]
pub enum Block {
    Prose(String),
    Findings(Vec<Finding>),
    /// Figures of a run in rows, by group.
    Figures(Vec<FigureRow>),
    Table(Table),
    Chart(Box<Chart>),
    /// Label and value, one a line.
    Facts(Vec<(String, String)>),
    /// Text whose columns matter: drawings, commands.
    Preformatted(String),
    /// The host as nested boxes, for renderers that draw better than text.
    Boxes(Vec<BoxNode>),
    /// Things in a row, each painted by the group that it belongs to.
    Tiles(Tiles),
}

/// Things side by side (CPUs), a row for each way of grouping them.
#[derive(Clone, Debug, Default)]
pub struct Tiles {
    /// What the columns are: `CPU`.
    pub of: String,
    pub columns: Vec<String>,
    /// Label, and the number of the group of each column; `None` where it is unknown.
    pub rows: Vec<(String, Vec<Option<usize>>)>,
}

impl Tiles {
    /// Groups as letters: A to Z, AA, AB, and so on.
    pub fn letters(group: Option<usize>) -> String {
        group.map_or("·".into(), letters)
    }

    /// Lines of text no wider than this, in blocks below each other where the columns do not fit.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let label = self
            .rows
            .iter()
            .map(|(label, _)| label.chars().count())
            .chain([self.of.len()])
            .max()
            .unwrap_or(0);
        let letters =
            self.rows.iter().flat_map(|(_, groups)| groups.iter().map(|group| Tiles::letters(*group)));
        let each =
            self.columns.iter().cloned().chain(letters).map(|text| text.chars().count()).max().unwrap_or(1);
        let fit = (width.saturating_sub(label + 2) / (each + 1)).max(1);
        let mut lines = Vec::new();
        for from in (0..self.columns.len()).step_by(fit) {
            let to = self.columns.len().min(from + fit);
            let line = |name: &str, cells: Vec<String>| {
                let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>each$}")).collect();
                format!("{name:label$}  {}", cells.join(" "))
            };
            lines.push(line(&self.of, self.columns[from..to].to_vec()));
            for (name, groups) in &self.rows {
                let cell = |at: usize| Tiles::letters(groups.get(at).copied().flatten());
                lines.push(line(name, (from..to).map(cell).collect()));
            }
        }
        lines
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Block {
        Block::Chart(Box::new(chart))
    }
}

/// A box with boxes inside: package, node, cache, core, CPU.
#[derive(Clone, Debug)]
pub struct BoxNode {
    pub label: String,
    /// `package`, `node`, `l3`, `l2`, `core`, `cpu`, `memory`, `offline`.
    pub kind: &'static str,
    pub inside: Vec<BoxNode>,
    /// This many boxes alike, of which this is one.
    pub alike: usize,
}

/// A chart with the data it shows, so that nothing is lost where charts cannot be drawn.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Anchor, unique in the report.
    pub id: String,
    pub title: String,
    pub about: String,
    pub kind: ChartKind,
    /// What the drawing comes to, short enough to stand open beside it.
    pub summary: Option<Table>,
    pub data: Table,
}

impl Chart {
    pub fn new(id: impl Into<String>, title: impl Into<String>, kind: ChartKind, data: Table) -> Chart {
        let (id, title) = (id.into(), title.into());
        Chart { id, title, about: String::new(), kind, summary: None, data }
    }

    pub fn about(self, about: impl Into<String>) -> Chart {
        Chart { about: about.into(), ..self }
    }

    pub fn summary(self, summary: Table) -> Chart {
        Chart { summary: Some(summary), ..self }
    }
}

#[derive(Clone, Debug)]
pub enum ChartKind {
    Lines {
        x: Axis,
        y: Axis,
        lines: Vec<Line>,
        /// Vertical dashed lines: cache sizes that the kernel claims.
        marks: Vec<(f64, String)>,
        /// Points that have a name: a knee.
        callouts: Vec<Callout>,
    },
    /// One strip a series: every sample as a dot relative to the series' median, median and
    /// interval as bars.
    Strips { strips: Vec<Strip> },
    /// Bars with intervals, one a label.
    Bars { y: Axis, bars: Vec<Bar> },
    /// A matrix in two orders of its rows and columns.
    Matrix {
        unit: String,
        rows: Side,
        columns: Side,
        /// A row of cells for each label of `rows`; `None` where nothing was measured.
        values: Vec<Vec<Option<f64>>>,
        /// Row and column of cells whose value is rejected.
        rejected: Vec<[usize; 2]>,
    },
    /// A benchmark over the settings of one or two knobs.
    Map(Map),
    /// Ratios with their intervals, one a row, beside what they are of.
    Forest(Forest),
}

impl ChartKind {
    /// Lines without marks or names.
    pub fn lines(x: Axis, y: Axis, lines: Vec<Line>) -> ChartKind {
        ChartKind::Lines { x, y, lines, marks: Vec::new(), callouts: Vec::new() }
    }
}

/// What a comparison's ratios are drawn from.
#[derive(Clone, Debug)]
pub struct Forest {
    /// What the results are called in its columns: `A` and `B`.
    pub names: [String; 2],
    pub rows: Vec<ForestRow>,
    /// The right end of the logarithmic axis; the left one is its inverse.
    pub end: f64,
    /// The share within which a ratio is drawn as the same.
    pub band: f64,
}

#[derive(Clone, Debug)]
pub struct ForestRow {
    pub label: String,
    /// A group of figures, drawn as a diamond.
    pub group: bool,
    pub values: [String; 2],
    pub unit: String,
    /// Above 1 is better; `None` where it is not counted.
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// Nothing but its interval is known.
    pub wide: bool,
    pub word: String,
    pub side: ForestSide,
    /// What stands in the place of a point.
    pub note: String,
}

/// What a row of a forest plot says, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForestSide {
    Faster,
    Slower,
    /// The same, or undecided.
    Neither,
    LeftOut,
}

/// What a benchmark gives over a grid of settings. Cells are named by row and column.
#[derive(Clone, Debug)]
pub struct Map {
    /// What the colours mean: `time over that of the default setting`.
    pub title: String,
    /// The unit of the values as they stand in the cells: `%`, `s`, `1/s`.
    pub unit: String,
    /// Columns from the left.
    pub x: MapSide,
    /// Rows from below, as on a chart; `None` where only one knob was turned: a single row.
    pub y: Option<MapSide>,
    /// A row of cells for each label of `y`, the lowest first; `None` where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
    /// The colours diverge around this value (0 for changes against the default); without it they
    /// go from low to high.
    pub around: Option<f64>,
    pub better: Better,
    pub regions: Vec<MapRegion>,
    /// The best first, then all that are as good within the noise.
    pub best: Vec<[usize; 2]>,
    /// Where the host's own setting lies, `x` first, in cells: between two of them it has a
    /// fraction. `None` where it is off the grid.
    pub default: Option<[f64; 2]>,
}

/// One knob of a map.
#[derive(Clone, Debug, Default)]
pub struct MapSide {
    pub title: String,
    pub labels: Vec<String>,
}

/// Cells of a map that behave alike.
#[derive(Clone, Debug)]
pub struct MapRegion {
    /// `A`.
    pub name: String,
    /// How it behaves: `fall`, `ragged`, `flat`.
    pub kind: String,
    pub cells: Vec<[usize; 2]>,
}

/// What stands along one side of a matrix.
#[derive(Clone, Debug, Default)]
pub struct Side {
    pub title: String,
    pub labels: Vec<String>,
    /// Indices of the labels in topology order.
    pub topology_order: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct Axis {
    pub title: String,
    pub scale: Scale,
}

impl Axis {
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), scale: Scale::Linear }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
    /// Logarithmic with ticks at powers of two.
    Powers,
    /// The same in KiB and MiB.
    Bytes,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    pub points: Vec<LinePoint>,
    /// Whether a line goes through the points.
    pub joined: bool,
}

/// A point of a chart with its name.
#[derive(Clone, Debug)]
pub struct Callout {
    pub x: f64,
    pub y: f64,
    pub text: String,
    /// The line that it lies on, for its colour.
    pub line: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct LinePoint {
    pub x: f64,
    pub y: f64,
    /// Interval of `y`, where there is one.
    pub low_high: Option<[f64; 2]>,
    /// Rejected: shown as a hollow mark, and no line goes through it.
    pub hollow: bool,
}

impl LinePoint {
    /// One without an interval.
    pub fn at(x: f64, y: f64) -> LinePoint {
        LinePoint { x, y, low_high: None, hollow: false }
    }
}

#[derive(Clone, Debug)]
pub struct Strip {
    pub label: String,
    /// The median with its unit, and the spread, to stand at the strip's right end.
    pub figure: String,
    /// Relative to the median, 1.0 = the median.
    pub dots: Vec<Dot>,
    /// The interval of the median, relative to it as the dots are.
    pub low_high: Option<[f64; 2]>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug)]
pub struct Dot {
    pub relative: f64,
    /// Marked, not counted.
    pub warm_up: bool,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub label: String,
    pub value: f64,
    pub low_high: Option<[f64; 2]>,
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_as_lines() {
        assert_eq!(
            [0, 25, 26, 52, 701, 702].map(|group| Tiles::letters(Some(group))),
            ["A", "Z", "AA", "BA", "ZZ", "AAA"]
        );
        let tiles = Tiles {
            of: "CPU".into(),
            columns: ["0", "1", "10"].map(String::from).to_vec(),
            rows: vec![("core".into(), vec![Some(0), Some(1), None])],
        };
        assert_eq!(tiles.lines(80), ["CPU    0  1 10", "core   A  B  ·"]);
        assert_eq!(tiles.lines(12), ["CPU    0  1", "core   A  B", "CPU   10", "core   ·"]);
    }
}
