//! The regions of a map, from the pieces of its rows and columns.
//!
//! Lines alone know little: a row of six cells with two flat ones at its end is cheapest as one
//! fall, and a flat row does not know that the next one is flat as well but lower. So the ends of
//! falls are looked at over all their lines together, and where lines beside each other are cut at
//! the same place that is a border.

use super::{Direction, Kind, Known, Region, cut};
use crate::sweep::Shape;

/// What a cell is called.
type Label = (Kind, Option<Direction>);

/// Least cells of a region.
const MIN_CELLS: usize = 3;
/// A step, over all lines together, that is unknown from none: errors.
const STEP_ERRORS: f64 = 2.0;

/// The pieces of all lines along an axis, by cell.
#[derive(Clone)]
struct Along {
    label: Label,
    /// Mean step of the cell's piece.
    step: f64,
    /// The next cell of the line is of another flat piece, as this one is of a flat piece.
    border: bool,
}

/// The regions, in the order of their first cells.
pub fn regions(shape: Shape, grid: Vec<Known>) -> Vec<Region> {
    let along = [0, 1].map(|axis| along(shape, &grid, axis));
    let labels = (0..shape.cells()).map(|cell| grid[cell].map(|_| first(&along, cell))).collect();
    let borders = along.each_ref().map(|lines| lines.iter().map(|cell| cell.border).collect());
    let mut map = Map { shape, grid, labels, borders };
    map.close_borders();
    map.trim_falls(&along);
    map.calm();
    map.regions()
}

/// What a cell is called by its row and its column; where both move, by the one that moves more.
fn first(along: &[Vec<Along>; 2], cell: usize) -> Label {
    let [across, down] = [&along[0][cell], &along[1][cell]];
    match (across.label.0, down.label.0) {
        (Kind::Flat, _) => down.label,
        (_, Kind::Flat) => across.label,
        _ if across.step >= down.step => across.label,
        _ => down.label,
    }
}

fn along(shape: Shape, grid: &[Known], axis: u8) -> Vec<Along> {
    let mut found = vec![Along { label: (Kind::Flat, None), step: 0.0, border: false }; shape.cells()];
    let (lines, length) = lines(shape, axis);
    for line in 0..lines {
        let cells: Vec<usize> = (0..length).map(|place| at(shape, axis, line, place)).collect();
        let known: Vec<Known> = cells.iter().map(|cell| grid[*cell]).collect();
        let pieces = cut(&known);
        for piece in &pieces {
            let levels: Vec<f64> =
                known[piece.from..=piece.to].iter().flatten().map(|(level, _)| *level).collect();
            let steps = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs());
            let step = steps.sum::<f64>() / (levels.len().max(2) - 1) as f64;
            let label = (piece.kind, piece.rises.map(|rises| Direction { axis, rises }));
            for cell in &cells[piece.from..=piece.to] {
                found[*cell] = Along { label, step, border: false };
            }
        }
        for pair in pieces.windows(2) {
            found[cells[pair[0].to]].border = pair[0].kind == Kind::Flat && pair[1].kind == Kind::Flat;
        }
    }
    found
}

/// Lines along an axis, and cells of each.
fn lines(shape: Shape, axis: u8) -> (usize, usize) {
    if axis == 0 { (shape.rows, shape.columns) } else { (shape.columns, shape.rows) }
}

/// A place of a line.
fn at(shape: Shape, axis: u8, line: usize, place: usize) -> usize {
    if axis == 0 { line * shape.columns + place } else { place * shape.columns + line }
}

/// The line that a cell is on, and its place there.
fn on(shape: Shape, axis: u8, cell: usize) -> (usize, usize) {
    let (row, column) = (cell / shape.columns, cell % shape.columns);
    if axis == 0 { (row, column) } else { (column, row) }
}

/// A map of labels.
struct Map {
    shape: Shape,
    grid: Vec<Known>,
    labels: Vec<Option<Label>>,
    /// Of each axis: no area goes on from this cell to the next of its line.
    borders: [Vec<bool>; 2],
}

impl Map {
    /// The cells beside one, and whether a border lies between.
    fn beside(&self, cell: usize) -> impl Iterator<Item = (usize, bool)> + use<> {
        let Shape { columns, rows } = self.shape;
        let (row, column) = (cell / columns, cell % columns);
        let [across, down] = &self.borders;
        let near = [
            (row > 0).then(|| (cell - columns, down[cell - columns])),
            (column > 0).then(|| (cell - 1, across[cell - 1])),
            (column + 1 < columns).then(|| (cell + 1, across[cell])),
            (row + 1 < rows).then(|| (cell + columns, down[cell])),
        ];
        near.into_iter().flatten()
    }

    /// A single line that has no border where those on both its sides have one has it, too: noise
    /// has closed the gap.
    fn close_borders(&mut self) {
        for axis in [0, 1] {
            let (lines, length) = lines(self.shape, axis);
            let own = self.borders[usize::from(axis)].clone();
            for place in 0..length.saturating_sub(1) {
                for line in 0..lines {
                    let has = |line: usize| own[at(self.shape, axis, line, place)];
                    let before = line.checked_sub(1).map(has);
                    let after = (line + 1 < lines).then(|| has(line + 1));
                    // At the map's edge there is one neighbour, which says too little alone.
                    if before == Some(true) && after == Some(true) {
                        self.borders[usize::from(axis)][at(self.shape, axis, line, place)] = true;
                    }
                }
            }
        }
    }

    /// What lies flat at either end of a fall, over all its lines together, is not part of it.
    fn trim_falls(&mut self, along: &[Vec<Along>; 2]) {
        for area in self.areas() {
            let Some((Kind::Fall, Some(Direction { axis, .. }))) = self.labels[area[0]] else { continue };
            let (_, length) = lines(self.shape, axis);
            let mut bands: Vec<Vec<usize>> = vec![Vec::new(); length];
            area.iter().for_each(|cell| bands[on(self.shape, axis, *cell).1].push(*cell));
            bands.retain(|band| !band.is_empty());
            let other = &along[usize::from(1 - axis)];
            for from_start in [false, true] {
                let flat = self.flat_bands(&bands, axis, from_start);
                // A fall has two bands at least, the last of which may be of the level that it
                // falls to.
                let cut = if flat >= 2 && bands.len() - flat < 2 { flat - 1 } else { flat };
                if flat < 2 || bands.len() < cut + 2 {
                    continue;
                }
                let ended: Vec<Vec<usize>> = if from_start {
                    bands.drain(..cut).collect()
                } else {
                    bands.split_off(bands.len() - cut)
                };
                ended.iter().flatten().for_each(|cell| self.labels[*cell] = Some(other[*cell].label));
            }
        }
    }

    /// How many bands at an end of a fall are level: neither a step between two nor all of them
    /// together are distinguished from none. 1 where the last step is reported.
    fn flat_bands(&self, bands: &[Vec<usize>], axis: u8, from_start: bool) -> usize {
        let band = |index: usize| &bands[if from_start { index } else { bands.len() - 1 - index }];
        let none = |one: usize, other: usize| {
            self.step(band(one), band(other), axis)
                .is_some_and(|(step, error)| step.abs() <= STEP_ERRORS * error)
        };
        let mut flat = 1;
        while flat < bands.len() && none(flat - 1, flat) && none(0, flat) {
            flat += 1;
        }
        flat
    }

    /// The mean step between two bands, over the lines that both have, and its error.
    fn step(&self, one: &[usize], other: &[usize], axis: u8) -> Option<(f64, f64)> {
        let line = |cell: usize| on(self.shape, axis, cell).0;
        let (mut n, mut sum, mut variance) = (0.0, 0.0, 0.0);
        for cell in one {
            let Some(beside) = other.iter().find(|beside| line(**beside) == line(*cell)) else { continue };
            let (Some(from), Some(to)) = (self.grid[*cell], self.grid[*beside]) else { continue };
            n += 1.0;
            sum += to.0 - from.0;
            variance += to.1 + from.1;
        }
        (n > 0.0).then(|| (sum / n, variance.sqrt() / n))
    }

    /// Areas too small for a region become part of the one that most of their edges lead to, the
    /// smallest first.
    fn calm(&mut self) {
        for _ in 0..self.labels.len() {
            let areas = self.areas();
            let mut small: Vec<&Vec<usize>> = areas.iter().filter(|area| area.len() < MIN_CELLS).collect();
            small.sort_by_key(|area| area.len());
            let Some((area, into)) = small.iter().find_map(|area| Some((*area, self.around(area, &areas)?)))
            else {
                return;
            };
            for cell in area {
                self.labels[*cell] = self.labels[into[0]];
                self.open_borders(*cell, area, into);
            }
        }
    }

    /// Takes away the borders between a cell and the areas that it now belongs to.
    fn open_borders(&mut self, cell: usize, area: &[usize], into: &[usize]) {
        let near: Vec<usize> = self.beside(cell).map(|(near, _)| near).collect();
        for near in near.into_iter().filter(|near| area.contains(near) || into.contains(near)) {
            let (low, high) = (cell.min(near), cell.max(near));
            let axis = usize::from(high - low != 1 || self.shape.columns == 1);
            self.borders[axis][low] = false;
        }
    }

    /// The area that most edges of one lead to.
    fn around<'a>(&self, area: &[usize], areas: &'a [Vec<usize>]) -> Option<&'a Vec<usize>> {
        let edges = |other: &[usize]| {
            let near = area.iter().flat_map(|cell| self.beside(*cell));
            near.filter(|(near, _)| other.contains(near)).count()
        };
        let others = areas.iter().filter(|other| other.first() != area.first());
        let each = others.map(|other| (edges(other), other)).filter(|(n, _)| *n > 0);
        let rank = |other: &Vec<usize>| (std::cmp::Reverse(self.labels[other[0]]), other.len());
        each.max_by_key(|(n, other)| (*n, rank(other))).map(|(_, other)| other)
    }

    /// Connected cells with equal labels and no border between, each rising, in the order of their
    /// first cells.
    fn areas(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.labels.len()];
        let mut areas = Vec::new();
        for start in 0..self.labels.len() {
            let Some(label) = self.labels[start].filter(|_| !seen[start]) else { continue };
            seen[start] = true;
            let mut area = vec![start];
            let mut next = 0;
            while let Some(cell) = area.get(next).copied() {
                next += 1;
                for (near, border) in self.beside(cell) {
                    let border = border && label.0 == Kind::Flat;
                    if !seen[near] && !border && self.labels[near] == Some(label) {
                        seen[near] = true;
                        area.push(near);
                    }
                }
            }
            area.sort_unstable();
            areas.push(area);
        }
        areas
    }

    fn regions(&self) -> Vec<Region> {
        let region = |cells: Vec<usize>| {
            let (kind, direction) = self.labels[*cells.first()?]?;
            Some(Region { kind, direction, cells })
        };
        self.areas().into_iter().filter_map(region).collect()
    }
}
