//! The page's parts as the template wants them.

use askama::Template;

use super::boxes::BoxView;
use super::charts::{self, Order, Spec};
use super::table::TableView;
use super::text::{ScriptText, filters};
use super::{EARLY, JSON_BEGIN, SCRIPT, SCRIPT_END, STYLE, policy, verdict};
use crate::block::{Block, BoxNode, Chart, ChartKind, Report, Section, Table, Tiles};
use crate::svg;
use model::Finding;

/// Pixels that a picture has on half of a wide page.
const HALF: f64 = 560.0;

/// Colours of groups in the style sheet; the letters tell further ones apart.
const TILE_COLOURS: usize = 8;

#[derive(Template)]
#[template(path = "report.html", whitespace = "minimize")]
pub struct Page<'a> {
    report: &'a Report,
    sections: Vec<SectionView<'a>>,
    policy: String,
    library: &'a str,
}

/// A section whose blocks know their place.
struct SectionView<'a> {
    section: &'a Section,
    blocks: Vec<BlockView<'a>>,
}

struct BlockView<'a> {
    block: &'a Block,
    /// Takes a line of its own; else two stand side by side.
    wide: bool,
}

struct ChartView<'a> {
    chart: &'a Chart,
    /// One drawing, or several below each other.
    specs: Vec<Spec>,
}

impl<'a> Page<'a> {
    pub fn new(report: &'a Report, library: &'a str) -> Page<'a> {
        let sections: Vec<SectionView> = report.sections.iter().map(SectionView::new).collect();
        Page { report, sections, policy: policy(library), library }
    }

    /// The style sheet, scripts and JSON: not machine text, or already escaped for where it stands.
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
        JSON_BEGIN
    }

    fn json_end(&self) -> &'static str {
        SCRIPT_END
    }

    fn json(&self) -> ScriptText<'_> {
        ScriptText(&self.report.json)
    }

    fn kibibytes(&self) -> usize {
        self.report.json.len().div_ceil(1024)
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

impl<'a> SectionView<'a> {
    fn new(section: &'a Section) -> SectionView<'a> {
        let blocks = &section.blocks;
        let small = |index: usize| match blocks.get(index) {
            Some(Block::Chart(chart)) => match &chart.kind {
                ChartKind::Matrix { .. } => true,
                ChartKind::Map(map) => svg::width(map) <= HALF,
                _ => false,
            },
            _ => false,
        };
        let mut views: Vec<BlockView> = Vec::with_capacity(blocks.len());
        while views.len() < blocks.len() {
            let index = views.len();
            let pair = small(index) && small(index + 1);
            for block in &blocks[index..index + 1 + usize::from(pair)] {
                views.push(BlockView { block, wide: !pair });
            }
        }
        SectionView { section, blocks: views }
    }
}

impl<'a> BlockView<'a> {
    fn chart(&self, chart: &'a Chart) -> ChartView<'a> {
        ChartView { chart, specs: charts::specs(&chart.kind) }
    }

    fn table(&self, table: &'a Table) -> TableView<'a> {
        TableView::new(table)
    }

    fn boxes(&self, node: &'a BoxNode) -> BoxView<'a> {
        BoxView { node }
    }

    /// A class of the style sheet, and the words, of a group's number.
    fn tile(&self, group: &Option<usize>) -> String {
        group.map_or(String::new(), |group| format!("t{}", group % TILE_COLOURS))
    }

    fn letters(&self, group: &Option<usize>) -> String {
        Tiles::letters(*group)
    }

    fn paragraphs<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty())
    }

    fn words<'t>(&self, command: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        command.split(' ').filter(|word| !word.is_empty()).take(200)
    }

    fn rows(&self, table: &Table) -> String {
        let count = table.rows.len();
        format!("{count} row{}", if count == 1 { "" } else { "s" })
    }

    /// The gravest first.
    fn gravest_first<'t>(&self, findings: &'t [Finding]) -> Vec<&'t Finding> {
        let mut sorted: Vec<&Finding> = findings.iter().collect();
        sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        sorted
    }
}

impl ChartView<'_> {
    fn summary(&self) -> Option<TableView<'_>> {
        self.chart.summary.as_ref().map(TableView::new)
    }

    fn table(&self) -> TableView<'_> {
        TableView::new(&self.chart.data)
    }

    /// A picture that needs no script.
    fn picture(&self) -> Option<String> {
        match &self.chart.kind {
            ChartKind::Map(map) => Some(svg::map(map, svg::Theme::Page)),
            ChartKind::Forest(forest) => Some(svg::forest(forest)),
            _ => None,
        }
    }

    fn notes(&self) -> impl Iterator<Item = &String> {
        self.specs.iter().flat_map(|spec| &spec.notes)
    }

    /// Leaves room beside it on a line of its own.
    fn square(&self) -> bool {
        self.specs.iter().any(Spec::is_square)
    }

    fn orders(&self) -> &[Order] {
        self.specs.first().map_or(&[], |spec| &spec.orders)
    }

    /// What the signs of a strip mean; the other charts explain themselves or have a legend.
    fn strips(&self) -> bool {
        matches!(self.chart.kind, ChartKind::Strips { .. })
    }

    /// Whether samples stand at the edge of the drawing because they lie beyond it.
    fn far(&self) -> bool {
        matches!(&self.chart.kind, ChartKind::Strips { strips } if charts::strips::any_beyond(strips))
    }

    fn warm_ups(&self) -> bool {
        match &self.chart.kind {
            ChartKind::Strips { strips } => {
                strips.iter().any(|strip| strip.dots.iter().any(|dot| dot.warm_up))
            }
            _ => false,
        }
    }
}
