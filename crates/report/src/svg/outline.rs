//! Lines around the regions of a map, along the edges of their cells, each with the letter of its
//! region.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::canvas::{Anchor, Canvas, INK, PAPER, measured, short};
use super::layout::Layout;
use crate::block::{Map, MapRegion};
use crate::map::{KIND, NAME};
use crate::plain::plain;

/// A corner of cells: column and line, counted from the upper left.
type Corner = [usize; 2];

pub fn draw(canvas: &mut Canvas, map: &Map, layout: &Layout) {
    let paths: Vec<String> = map.regions.iter().map(|region| path(map, layout, region)).collect();
    // A light line below a dark one is seen on any colour.
    let (ink, paper) = ((INK.0, INK.1, 2.0), (PAPER.0, PAPER.1, 4.6));
    for (class, colour, width) in [paper, ink] {
        for path in paths.iter().filter(|path| !path.is_empty()) {
            canvas.raw(&format!(
                "<path d=\"{path}\" class=\"{class} line\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"{width}\" stroke-linejoin=\"round\"/>\n"
            ));
        }
    }
    for region in &map.regions {
        for part in parts(map, region) {
            tag(canvas, map, layout, region, &part);
        }
    }
}

/// The region's cells on the map as column and line from the upper left.
fn squares(map: &Map, region: &MapRegion) -> BTreeSet<Corner> {
    let (rows, columns) = (map.rows(), map.columns());
    let inside = region.cells.iter().filter(|[row, column]| *row < rows && *column < columns);
    inside.map(|[row, column]| [*column, rows - 1 - row]).collect()
}

/// The edges that have the region on one side only, as closed lines.
fn loops(squares: &BTreeSet<Corner>) -> Vec<Vec<Corner>> {
    let has = |column: Option<usize>, line: Option<usize>| {
        column.zip(line).is_some_and(|(column, line)| squares.contains(&[column, line]))
    };
    // Each edge from its corner, with the region at its right hand.
    let mut edges: BTreeMap<Corner, Vec<Corner>> = BTreeMap::new();
    for &[column, line] in squares {
        let (right, below) = (column + 1, line + 1);
        let mut edge = |from: Corner, to: Corner, inner: bool| {
            if !inner {
                edges.entry(from).or_default().push(to);
            }
        };
        edge([column, line], [right, line], has(Some(column), line.checked_sub(1)));
        edge([right, line], [right, below], has(Some(right), Some(line)));
        edge([right, below], [column, below], has(Some(column), Some(below)));
        edge([column, below], [column, line], has(column.checked_sub(1), Some(line)));
    }
    let mut loops = Vec::new();
    while let Some(start) = edges.keys().next().copied() {
        let mut corners = vec![start];
        let mut at = start;
        while let Some(nexts) = edges.get_mut(&at) {
            // Where two cells touch at a corner the line stays with its own cell: it turns right.
            let right =
                |next: &Corner| corners.len() > 1 && turns_right(corners[corners.len() - 2], at, *next);
            let chosen = nexts.iter().position(right).unwrap_or(0);
            let next = nexts.swap_remove(chosen);
            if nexts.is_empty() {
                edges.remove(&at);
            }
            if next == start {
                break;
            }
            corners.push(next);
            at = next;
        }
        loops.push(corners);
    }
    loops
}

fn turns_right(before: Corner, at: Corner, next: Corner) -> bool {
    let step = |from: Corner, to: Corner| [0, 1].map(|axis| to[axis] as i64 - from[axis] as i64);
    let ([x1, y1], [x2, y2]) = (step(before, at), step(at, next));
    x1 * y2 - y1 * x2 > 0
}

fn path(map: &Map, layout: &Layout, region: &MapRegion) -> String {
    let mut path = String::new();
    for corners in loops(&squares(map, region)) {
        let count = corners.len();
        let bends = |at: &usize| {
            let (before, after) = (corners[(at + count - 1) % count], corners[(at + 1) % count]);
            before[0] != after[0] && before[1] != after[1]
        };
        for (index, at) in (0..count).filter(bends).enumerate() {
            let [x, y] =
                [0, 1].map(|axis| layout.origin[axis] + layout.cell[axis] * corners[at][axis] as f64);
            // Writing to a string cannot fail.
            let _ = write!(path, "{}{} {}", if index == 0 { 'M' } else { 'L' }, short(x), short(y));
        }
        path.push('Z');
    }
    path
}

/// The region's cells as row and column, in parts that hang together, each from its upper left
/// cell.
fn parts(map: &Map, region: &MapRegion) -> Vec<Vec<[usize; 2]>> {
    let mut left = squares(map, region);
    let mut parts = Vec::new();
    for first in map.cells() {
        let square = |[row, column]: [usize; 2]| [column, map.rows() - 1 - row];
        if !left.remove(&square(first)) {
            continue;
        }
        let mut part = vec![first];
        let mut seen = 0;
        while let Some(&[row, column]) = part.get(seen) {
            seen += 1;
            let near = [
                [row + 1, column],
                [row, column + 1],
                [row.wrapping_sub(1), column],
                [row, column.wrapping_sub(1)],
            ];
            let on_map =
                near.into_iter().filter(|[row, column]| *row < map.rows() && *column < map.columns());
            part.extend(on_map.filter(|cell| left.remove(&square(*cell))));
        }
        parts.push(part);
    }
    parts
}

/// The letter in the part's upper left corner, with the kind where there is room for it and no mark
/// in the way.
fn tag(canvas: &mut Canvas, map: &Map, layout: &Layout, region: &MapRegion, part: &[[usize; 2]]) {
    let Some(&[row, column]) = part.first() else { return };
    let name = plain(&region.name, NAME);
    let long = format!("{name} {}", plain(&region.kind, KIND));
    let run = (column..map.columns()).take_while(|at| part.contains(&[row, *at])).count();
    let room = run as f64 * layout.cell[0] - 24.0;
    let width = |text: &str| (measured(text, 10.0) + 7.0).max(13.0);
    let spanned = (width(&long) / layout.cell[0]).ceil() as usize;
    let free = (column..column + spanned).all(|at| map.mark([row, at]).is_none());
    let own = map.own().is_some_and(|[_, y]| (y - row as f64).abs() < 1.0);
    let text = if width(&long) <= room && free && !own { long.trim_end() } else { name.as_str() };
    let [x, y] = layout.corner([row, column]).map(|at| at + 1.0);
    let (wide, (class, fill)) = (short(width(text)), INK);
    canvas.raw(&format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{wide}\" height=\"13\" rx=\"2\" class=\"{class}\" fill=\"{fill}\"/>",
        short(x - 1.0),
        short(y - 1.0)
    ));
    canvas.text([x - 1.0 + width(text) / 2.0, y + 9.0], Anchor::Middle, 10.0, PAPER, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cells: &[Corner]) -> BTreeSet<Corner> {
        cells.iter().copied().collect()
    }

    #[test]
    fn lines_go_round_cells_holes_and_corners() {
        assert_eq!(loops(&set(&[[0, 0]])), [[[0, 0], [1, 0], [1, 1], [0, 1]]]);
        assert!(loops(&set(&[])).is_empty());
        // Two cells that touch at a corner have a line each.
        assert_eq!(loops(&set(&[[0, 0], [1, 1]])).len(), 2);
        assert_eq!(loops(&set(&[[1, 0], [0, 1]])).len(), 2);
        let ring: Vec<Corner> =
            (0..9).map(|at| [at % 3, at / 3]).filter(|corner| *corner != [1, 1]).collect();
        let ring = loops(&set(&ring));
        assert_eq!(ring.iter().map(Vec::len).collect::<Vec<_>>(), [12, 4]);
    }
}
