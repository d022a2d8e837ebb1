//! Marks on a map's cells: the best, what is as good, the host's own setting.

use super::canvas::Canvas;
use super::layout::Layout;
use super::signs::{dot, ring, star};
use crate::block::Map;
use crate::map::CellMark;

/// From a cell's upper edge to the middle of its marks.
const BAND: f64 = 9.0;

pub fn draw(canvas: &mut Canvas, map: &Map, layout: &Layout) {
    for cell in map.cells() {
        let [x, y] = layout.corner(cell);
        let at = [x + layout.cell[0] - 9.5, y + BAND];
        match map.mark(cell) {
            Some(CellMark::Best) => star(canvas, at),
            Some(CellMark::AsGood) => dot(canvas, at),
            None => {}
        }
    }
    let Some(own) = map.own() else { return };
    let [x, y] = layout.place(own);
    let height = layout.cell[1];
    let y = match own[1].fract() == 0.0 {
        // In a row of cells it stands where marks do.
        true => y - height / 2.0 + BAND,
        // Between two it keeps off the numbers of the cell that it is drawn on.
        false => {
            let row = layout.origin[1] + ((y - layout.origin[1]) / height).floor() * height;
            let below = y - row;
            let (from, to) = (layout.middle - 12.0, height - 1.0);
            if below > from && below < to {
                row + if below - from < to - below { from } else { to }
            } else {
                y
            }
        }
    };
    ring(canvas, [x, y]);
}
