//! One block of a section.

use diagnose::words::counted;
use std::borrow::Cow;

use askama::Template;

use super::boxes::BoxView;
use super::table::TableView;
use super::text::filters;
use super::verdict;
use crate::block::{Block, BoxNode, Chart, ChartKind, Table, Tiles};
use crate::figure_rows::{self, FigureRow};
use crate::svg;
use crate::svg::chart::{Drawing, drawing};
use model::Finding;

/// Pixels that a picture has on half of a page.
const HALF: f64 = 440.0;

/// Colours of groups in the style sheet; beyond these, only the letters distinguish groups.
const TILE_COLOURS: usize = 8;

/// What ends earlier is an abbreviation or says too little.
const SHORT: usize = 20;

/// A longer table is folded, and so is a shorter one that is not the first of its section.
const LONG_TABLE: usize = 60;
const LONG_NEXT: usize = 12;

/// A block that knows its place.
pub struct Item<'a> {
    block: Cow<'a, Block>,
    /// Takes half a line; two of these stand side by side.
    half: bool,
    /// A table that is shut at first.
    folded: bool,
}

impl<'a> Item<'a> {
    /// `inside` a fold everything is open: it was opened to be read.
    pub fn all(blocks: Vec<Cow<'a, Block>>, inside: bool) -> Vec<Item<'a>> {
        let small: Vec<bool> = blocks.iter().map(|block| is_small(block)).collect();
        let mut halves = vec![false; blocks.len()];
        let mut at = 0;
        while at + 1 < blocks.len() {
            let pair = small[at] && small[at + 1];
            halves[at] |= pair;
            halves[at + 1] = pair;
            at += if pair { 2 } else { 1 };
        }
        let mut tables = 0;
        let item = |(block, half): (Cow<'a, Block>, bool)| {
            let folded = match block.as_ref() {
                Block::Table(table) => {
                    tables += 1;
                    let most = if tables > 1 { LONG_NEXT } else { LONG_TABLE };
                    table.folded || (!inside && table.rows.len() > most)
                }
                _ => false,
            };
            Item { block, half, folded }
        };
        blocks.into_iter().zip(halves).map(item).collect()
    }

    /// The first over the whole width, the others in pairs.
    pub fn key_charts(blocks: Vec<Cow<'a, Block>>) -> Vec<Item<'a>> {
        let whole = usize::from(blocks.len() % 2 == 1);
        let item = |(at, block)| Item { block, half: at >= whole, folded: false };
        blocks.into_iter().enumerate().map(item).collect()
    }

    fn view(&self) -> ItemView<'_> {
        ItemView { block: &self.block, half: self.half, folded: self.folded }
    }
}

fn is_small(block: &Block) -> bool {
    match block {
        Block::Chart(chart) => match &chart.kind {
            ChartKind::Matrix { .. } => true,
            ChartKind::Bars { bars, .. } => bars.len() <= 6,
            ChartKind::Map(map) => svg::width(map) <= HALF,
            _ => false,
        },
        _ => false,
    }
}

impl std::fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

/// The first sentence and the rest.
pub fn first_sentence(text: &str) -> (&str, &str) {
    let ends = text.match_indices('.').map(|(at, _)| at + 1);
    let whole = |at: &usize| {
        let mut after = text[*at..].chars();
        after.next() == Some(' ') && after.next().is_some_and(char::is_uppercase)
    };
    ends.filter(|at| *at > SHORT).find(whole).map_or((text, ""), |at| (&text[..at], text[at..].trim_start()))
}

#[derive(Template)]
#[template(path = "report/item.html", whitespace = "minimize")]
pub struct ItemView<'a> {
    block: &'a Block,
    half: bool,
    folded: bool,
}

struct ChartView<'a> {
    chart: &'a Chart,
    drawing: Drawing,
}

impl<'a> ItemView<'a> {
    fn chart(&self, chart: &'a Chart) -> ChartView<'a> {
        ChartView { chart, drawing: drawing(&chart.kind) }
    }

    fn figures(&self, rows: &[FigureRow]) -> Table {
        figure_rows::table(rows)
    }

    fn table<'t>(&self, table: &'t Table) -> TableView<'t> {
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

    fn first<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        first_sentence(text)
    }

    fn words<'t>(&self, command: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        command.split(' ').filter(|word| !word.is_empty()).take(200)
    }

    fn rows(&self, table: &Table) -> String {
        counted(table.rows.len(), "row")
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

    /// A map or a forest plot.
    fn picture(&self) -> Option<String> {
        match &self.chart.kind {
            ChartKind::Map(map) => Some(svg::map(map, svg::Theme::Page)),
            ChartKind::Forest(forest) => Some(svg::forest(forest)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Axis, Bar};
    use model::Verdict;

    #[test]
    fn a_finding_shows_its_first_sentence() {
        let view = ItemView { block: &Block::Prose(String::new()), half: false, folded: false };
        let said = view.first("The clock moved, e.g. by 14.5 % of all. Measure again. Or not.");
        assert_eq!(said, ("The clock moved, e.g. by 14.5 % of all.", "Measure again. Or not."));
        assert_eq!(view.first("One sentence, no more."), ("One sentence, no more.", ""));
        assert_eq!(view.first(""), ("", ""));
    }

    #[test]
    fn small_charts_stand_in_pairs() {
        let bars = |count: usize| {
            let bar = Bar { label: "a".into(), value: 1.0, low_high: None, verdict: Verdict::trusted() };
            let y = Axis::linear("");
            let kind = ChartKind::Bars { y, bars: vec![bar; count] };
            let (id, title, about) = ("c", "C", "");
            Cow::Owned(Block::from(Chart::new(id, title, kind, Table::default()).about(about)))
        };
        let halves = |counts: &[usize]| {
            let items = Item::all(counts.iter().map(|count| bars(*count)).collect(), false);
            items.iter().map(|item| item.half).collect::<Vec<bool>>()
        };
        assert_eq!(halves(&[2, 2]), [true, true]);
        assert_eq!(halves(&[2, 2, 2]), [true, true, false]);
        assert_eq!(halves(&[2, 9, 2]), [false, false, false]);
        assert_eq!(halves(&[2, 2, 2, 2, 9]), [true, true, true, true, false]);
    }
}
