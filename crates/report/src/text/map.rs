//! Maps in a terminal: a grid of numbers, coloured where colours are allowed, with a letter for
//! each region.

use std::fmt::Write;

use anstyle::{Ansi256Color, Color};

use super::{LONGEST, Style, Tone, paint, table, wrapped};
use crate::block::{Chart, Map};
use crate::map::{CellMark, LABEL, NAME, Shades, TITLE};
use crate::plain::plain;

/// A column's label is cut here where it is all that makes the column wide.
const MIN_LABEL: usize = 8;

/// The chart's title, the grid in as many blocks of columns as the line asks for, and what its
/// signs mean.
pub fn render(chart: &Chart, style: Style) -> String {
    let Some(map) = chart.map() else { return String::new() };
    let mut out = wrapped(&plain(&chart.title, LONGEST), 2, Tone::Strong, style);
    let grid = Grid::new(map, style);
    for columns in grid.blocks() {
        grid.block(&mut out, &columns);
    }
    out.push_str(&wrapped(&map.legend(signs(style)), 2, Tone::Dim, style));
    if let Some(summary) = &chart.summary {
        out.push('\n');
        out.push_str(&table::render(summary, style));
    }
    out
}

/// The best, as good, the host's own setting, a gap.
fn signs(style: Style) -> [&'static str; 4] {
    if style.unicode { ["*", "·", "o", "–"] } else { ["*", ".", "o", "-"] }
}

struct Grid<'a> {
    map: &'a Map,
    style: Style,
    shades: Shades,
    digits: usize,
    /// Columns of the terminal for a row's label and for a cell.
    label: usize,
    cell: usize,
}

impl<'a> Grid<'a> {
    fn new(map: &'a Map, style: Style) -> Grid<'a> {
        let labels = map.y.iter().flat_map(|side| &side.labels);
        let label = labels.map(|label| plain(label, LABEL).chars().count()).max().unwrap_or(0);
        let mut grid = Grid { map, style, shades: Shades::of(map), digits: 0, label, cell: 0 };
        // As many decimals as let all columns stand side by side.
        for digits in map.digits() {
            grid.digits = *digits;
            grid.cell = grid.widest();
            if grid.room() >= map.columns() {
                break;
            }
        }
        grid
    }

    fn widest(&self) -> usize {
        let texts = self.map.cells().map(|cell| self.text(cell).chars().count()).max().unwrap_or(1);
        let labels = self.map.x.labels.iter().map(|label| plain(label, LABEL).chars().count()).max();
        texts.max(labels.unwrap_or(0).min(MIN_LABEL))
    }

    /// How many columns a line holds.
    fn room(&self) -> usize {
        (self.style.width.saturating_sub(2 + self.label + 2) / (self.cell + 1)).max(1)
    }

    fn blocks(&self) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.map.columns()).collect();
        all.chunks(self.room()).map(<[usize]>::to_vec).collect()
    }

    fn block(&self, out: &mut String, columns: &[usize]) {
        let (label, cell) = (self.label, self.cell);
        if let Some(side) = &self.map.y {
            let title = plain(&side.title, TITLE.min(self.style.width.saturating_sub(2)));
            out.push_str(&wrapped(&title, 2, Tone::Dim, self.style));
        }
        for row in (0..self.map.rows()).rev() {
            let name = self.map.y.as_ref().and_then(|side| side.labels.get(row));
            let name = name.map_or(String::new(), |name| plain(name, LABEL));
            let name = paint(&format!("{name:>label$}"), Tone::Dim, self.style);
            let mut line = format!("  {name}  ");
            for column in columns {
                let text = format!("{:>cell$}", self.text([row, *column]));
                line.push_str(&self.painted(&text, [row, *column]));
                line.push(' ');
            }
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let names = columns.iter().map(|column| {
            let name = self.map.x.labels.get(*column).map_or(String::new(), |name| plain(name, cell));
            format!("{name:>cell$}")
        });
        let line = format!("  {:label$}  {}", "", names.collect::<Vec<_>>().join(" "));
        let _ = writeln!(out, "{}", paint(line.trim_end(), Tone::Dim, self.style));
        let title = plain(&self.map.x.title, TITLE);
        out.push_str(&wrapped(&title, 2 + label + 2, Tone::Dim, self.style));
    }

    /// The number, a column for each kind of mark that the map has, and the letter of the region.
    fn text(&self, cell: [usize; 2]) -> String {
        let (map, [best, as_good, own, gap]) = (self.map, signs(self.style));
        let mut text = map.value(cell).map_or(gap.to_string(), |value| map.number(value, self.digits));
        if map.has(CellMark::Best) {
            text.push_str(match map.mark(cell) {
                Some(CellMark::Best) => best,
                Some(CellMark::AsGood) => as_good,
                None => " ",
            });
        }
        if let Some(own_cell) = map.own_cell() {
            text.push_str(if own_cell == cell { own } else { " " });
        }
        let name = |at: usize| plain(&map.regions[at].name, NAME);
        let longest = map.region_words().iter().map(|(at, _)| name(*at).chars().count()).max().unwrap_or(0);
        if longest > 0 {
            let name = map.region(cell).map_or(String::new(), name);
            // A column of marks keeps the letter off the number.
            let marked = map.has(CellMark::Best) || map.own_cell().is_some();
            let between = if marked { "" } else { " " };
            text = format!("{text}{between}{name:longest$}");
        }
        text
    }

    fn painted(&self, text: &str, cell: [usize; 2]) -> String {
        let Some(value) = self.map.value(cell).filter(|_| self.style.color) else { return text.to_string() };
        let (ground, ink) = nearest(self.shades.colour(value).light);
        let colour = |index: u8| Some(Color::Ansi256(Ansi256Color(index)));
        let look = anstyle::Style::new().bg_color(colour(ground)).fg_color(colour(ink));
        format!("{look}{text}{look:#}")
    }
}

/// The colour of a terminal's cube or grey ramp that is nearest, and the one to write on it.
fn nearest(colour: [u8; 3]) -> (u8, u8) {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let cube =
        (0..216_u8).map(|at| (16 + at, [at / 36, at / 6 % 6, at % 6].map(|part| STEPS[usize::from(part)])));
    let greys = (0..24_u8).map(|at| (232 + at, [8 + 10 * at; 3]));
    let far = |own: &[u8; 3]| -> u32 {
        own.iter().zip(colour).map(|(own, wanted)| u32::from(own.abs_diff(wanted)).pow(2)).sum()
    };
    let found = cube.chain(greys).min_by_key(|(_, own)| far(own));
    let (index, own) = found.unwrap_or((16, [0; 3]));
    (index, if crate::map::ink(own) == "#ffffff" { 231 } else { 16 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::map::tests::{chart, hackbench, hostile, row, sized};

    const PLAIN: Style = Style { color: false, unicode: true, width: 80 };

    fn visible(text: &str) -> String {
        let colours = regex::Regex::new("\x1b\\[[0-9;]*m").expect("a pattern");
        colours.replace_all(text, "").into_owned()
    }

    #[test]
    fn a_map_reads_without_colours() {
        let shown = super::render(&chart(hackbench()), PLAIN);
        assert_eq!(shown, include_str!("map.txt"), "\n{shown}");
        let mut one = row(&[Some(-12.3), Some(0.0), None]);
        (one.default, one.best) = (Some([1.0, 0.0]), vec![[0, 0], [0, 1]]);
        let shown = super::render(&chart(one.clone()), PLAIN);
        assert_eq!(
            shown,
            "  Hackbench\n    -12.3*    0.0·o     –\n          1       2       3\n    m\n  time, %; * best; · as good as \
             the best; – not measured; o the setting before\n"
        );
        let ascii = super::render(&chart(one), Style { unicode: false, ..PLAIN });
        assert!(ascii.is_ascii(), "{ascii}");
    }

    #[test]
    fn colours_change_no_text() {
        let plain = super::render(&chart(hackbench()), PLAIN);
        let painted = super::render(&chart(hackbench()), Style { color: true, ..PLAIN });
        let bare = visible(&painted);
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&bare), trimmed(&plain));
        let grounds: std::collections::BTreeSet<&str> =
            painted.split("48;5;").skip(1).map(|rest| rest.split('m').next().unwrap_or("")).collect();
        assert!(grounds.len() >= 5, "{grounds:?}");
    }

    #[test]
    fn narrow_terminals_drop_decimals_and_then_split_the_columns() {
        let at = |width| super::render(&chart(hackbench()), Style { width, ..PLAIN });
        assert!(
            at(80).contains("+42.0 A") && at(68).contains("+42 A") && !at(68).contains("+42.0"),
            "{}",
            at(68)
        );
        assert_eq!(at(68).matches("min granularity, ms\n").count(), 1);
        let narrow = at(40);
        assert_eq!(narrow.matches("    min granularity, ms\n").count(), 2, "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn hostile_texts_are_shown() {
        let shown = super::render(&chart(hostile()), PLAIN);
        assert!(!shown.contains('\x1b') && shown.contains("<script>"), "{shown}");
    }

    #[test]
    fn the_nearest_colour_is_found() {
        assert_eq!(nearest([255, 255, 255]), (231, 16));
        assert_eq!(nearest([0, 95, 175]), (25, 231));
        assert_eq!(nearest([128, 128, 129]), (244, 16));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Each cell has its number, and no line is longer than the terminal.
        #[test]
        fn any_size_fits(columns in 1..=20_usize, rows in 1..=20_usize, width in 40..160_usize, power in -4..6_i32,
                         changes: bool, color: bool) {
            let map = sized(columns, rows, "v", 10_f64.powi(power), changes.then_some(0.0));
            let measured = map.sorted().len();
            let shown = visible(&super::render(&chart(map), Style { color, unicode: true, width }));
            for line in shown.lines() {
                prop_assert!(line.chars().count() <= width, "{:?}", line);
            }
            let numbers = shown
                .lines()
                .flat_map(|line| line.split_whitespace())
                .filter(|word| word.contains(|c: char| c.is_ascii_digit()) && !word.starts_with('v'))
                .count();
            prop_assert!(numbers >= measured, "{} of {}\n{}", numbers, measured, shown);
        }
    }
}
