//! Where everything of a map's picture stands.

use super::bar;
use super::canvas::measured;
use super::legend::Legend;
use crate::block::Map;
use crate::map::{LABEL, TITLE};
use crate::plain::plain;

/// The room of all columns, from which a cell's width follows, and its limits.
const ROOM: f64 = 860.0;
const NARROWEST: f64 = 40.0;
const WIDEST: f64 = 92.0;

pub struct Layout {
    pub width: f64,
    pub height: f64,
    /// The upper left corner of all cells.
    pub origin: [f64; 2],
    /// Width and height of one.
    pub cell: [f64; 2],
    /// Where the middle of a number is below the upper edge of its cell: marks stand above it.
    pub middle: f64,
    /// Decimals and size of the numbers; `None` where they do not fit.
    pub numbers: Option<(usize, f64)>,
    /// Labels of the columns are too long to stand side by side.
    pub slanted: bool,
    /// The right end of the columns' title.
    pub x_title: [f64; 2],
    pub legend: Legend,
    rows: usize,
}

impl Layout {
    pub fn new(map: &Map) -> Layout {
        let (columns, rows) = (map.columns(), map.rows());
        let most = (ROOM / columns.max(1) as f64).clamp(NARROWEST, WIDEST);
        let numbers = numbers(map, most - 10.0);
        let widest = numbers.map_or(0.0, |(_, _, widest)| widest + 12.0);
        let cell_width = widest.max(if columns <= 6 { 72.0 } else { 54.0 }).min(most);
        let cell_height = match rows {
            0..=6 => 42.0,
            7..=12 => 36.0,
            _ => 32.0,
        };
        let marked = !map.regions.is_empty() || !map.best.is_empty() || map.own().is_some();

        let label = |text: &String| measured(&plain(text, LABEL), 12.0);
        let longest = |labels: &[String]| labels.iter().map(label).fold(0.0, f64::max);
        let long = longest(&map.x.labels);
        let slanted = long + 8.0 > cell_width;
        // A slanted label reaches to the left of its column as far as below it.
        let lean = if slanted { long * 0.71 } else { 0.0 };
        let labels = map.y.as_ref().map_or(0.0, |side| longest(&side.labels) + 10.0);
        let over = if slanted { lean - cell_width / 2.0 - 5.0 } else { (long - cell_width) / 2.0 };
        let left = labels.max(over).max(1.0).ceil();
        let top = bar::HEIGHT + if map.y.is_some() { 34.0 } else { 14.0 };
        let plot = [cell_width * columns as f64, cell_height * rows as f64];
        let below = top + plot[1] + if slanted { lean + 24.0 } else { 22.0 };

        let title = measured(&plain(&map.x.title, TITLE), 12.0) + 22.0;
        let y_title = map.y.as_ref().map_or(0.0, |side| measured(&plain(&side.title, TITLE), 12.0) + 22.0);
        let right = (left + plot[0]).max(title);
        let width = (right + 4.0).max(y_title).max(bar::width(map)).ceil();
        let mut legend = Legend::new(map, width.max(460.0));
        legend.top = below + 34.0;
        Layout {
            width: width.max(legend.width),
            height: (legend.top + legend.height()).ceil(),
            origin: [left, top],
            cell: [cell_width, cell_height],
            middle: cell_height / 2.0 + if marked { 5.0 } else { 0.0 },
            numbers: numbers.map(|(digits, size, _)| (digits, size)),
            slanted,
            x_title: [right, below + 16.0],
            legend,
            rows,
        }
    }

    /// The upper left corner of a cell: row 0 is the lowest.
    pub fn corner(&self, [row, column]: [usize; 2]) -> [f64; 2] {
        [
            self.origin[0] + self.cell[0] * column as f64,
            self.origin[1] + self.cell[1] * (self.rows.saturating_sub(row + 1)) as f64,
        ]
    }

    /// A place in cells, x first: whole numbers are the middles of cells.
    pub fn place(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [
            self.origin[0] + self.cell[0] * (x + 0.5),
            self.origin[1] + self.cell[1] * (self.rows as f64 - 0.5 - y),
        ]
    }
}

/// Decimals, size and width of the numbers: as exact as fits into the given pixels.
fn numbers(map: &Map, room: f64) -> Option<(usize, f64, f64)> {
    let widest = |digits: usize, size: f64| {
        let texts = map.sorted().into_iter().map(|value| map.number(value, digits));
        texts.map(|text| measured(&text.replace('-', "\u{2212}"), size)).fold(0.0, f64::max)
    };
    for size in [12.0, 10.5] {
        for digits in map.digits() {
            let widest = widest(*digits, size);
            if widest <= room {
                return Some((*digits, size, widest));
            }
        }
    }
    None
}
