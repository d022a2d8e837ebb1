//! Where the response falls, is ragged or flat.
//!
//! A line of cells is cut where its description is shortest: what a piece's kind leaves unexplained
//! (squares in units of the cells' own errors) and a price for all that the kind leaves free and
//! for each cut, in the same units. A flat piece has one level, of which one cell may be odd; a
//! falling one has levels in one direction; a ragged one any.

use super::{Level, Shape};

mod areas;

/// What the response does in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Changes steeply in one direction, better or worse.
    Fall,
    /// Ups and downs beyond the noise.
    Ragged,
    /// No step that can be distinguished from noise.
    Flat,
}

/// Where a fall goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Direction {
    /// 0: along the columns' knob (within a row); 1: along the rows' knob.
    pub axis: u8,
    /// The metric's value rises towards larger settings; whether that is better is the metric's to
    /// say.
    pub rises: bool,
}

/// Connected cells of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub kind: Kind,
    /// Of a fall.
    pub direction: Option<Direction>,
    /// Rising.
    pub cells: Vec<usize>,
}

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub kind: Kind,
    /// First and last place in the line.
    pub from: usize,
    pub to: usize,
    /// Of a fall: whether the value rises along the line.
    pub rises: Option<bool>,
}

/// Two cells nearer than about three times this (as logarithms) are never a step, however small the
/// noise.
const MIN_STEP_LN: f64 = 0.005;
/// Prices, in squares of errors: of a piece with its level, of each further level of a fall and of
/// a ragged piece, of an odd cell, of a fall of two cells only. Chosen on simulated sweeps (seed
/// 7).
const PIECE: f64 = 7.0;
const FALLING: f64 = 3.0;
const FREE: f64 = 5.5;
const ODD: f64 = 20.0;
const SHORT: f64 = 7.0;
/// A change of which more than this share comes in one step is no fall.
const AT_ONCE: f64 = 0.9;

/// The pieces of a curve, or of a row or column of a map. Cells without observations are passed
/// over: they lie in the piece around them. Empty where no cell has observations.
pub fn segments(line: &[Option<Level>]) -> Vec<Segment> {
    cut(&line.iter().copied().map(known).collect::<Vec<Known>>())
}

/// A cell's level and variance, with the least step in it.
type Known = Option<(f64, f64)>;

fn known(level: Option<Level>) -> Known {
    level.map(|level| (level.ln, level.error.powi(2) + MIN_STEP_LN * MIN_STEP_LN))
}

/// The cheapest way to cut a line.
fn cut(line: &[Known]) -> Vec<Segment> {
    let places: Vec<usize> = (0..line.len()).filter(|place| line[*place].is_some()).collect();
    let own: Vec<(f64, f64)> = line.iter().copied().flatten().collect();
    let n = places.len();
    let least = 2.min(n);
    // Cheapest price of the first cells up to here, and the last piece of it.
    let mut cheapest: Vec<(f64, usize, Kind, Option<bool>)> =
        vec![(f64::INFINITY, 0, Kind::Flat, None); n + 1];
    cheapest[0].0 = 0.0;
    for to in least.max(1)..=n {
        for from in 0..=to - least.max(1) {
            let before = cheapest[from].0;
            if before.is_infinite() {
                continue;
            }
            for (price, kind, rises) in prices(&own[from..to]) {
                if before + price < cheapest[to].0 {
                    cheapest[to] = (before + price, from, kind, rises);
                }
            }
        }
    }
    let mut pieces = Vec::new();
    let mut to = n;
    while to > 0 {
        let (_, from, kind, rises) = cheapest[to];
        pieces.push(Segment { kind, from: places[from], to: places[to - 1], rises });
        to = from;
    }
    pieces.reverse();
    // What lies between two pieces without observations belongs to the first.
    for index in 1..pieces.len() {
        pieces[index - 1].to = pieces[index].from - 1;
    }
    pieces
}

/// The price of a piece as each kind.
fn prices(own: &[(f64, f64)]) -> [(f64, Kind, Option<bool>); 4] {
    let more = own.len().saturating_sub(1) as f64;
    let down: Vec<(f64, f64)> = own.iter().map(|(level, variance)| (-level, *variance)).collect();
    // A single step is hardly a fall, and ups and downs take three cells.
    let (short, ragged) = match own.len() {
        0..3 => (SHORT, f64::INFINITY),
        _ if one_step(own) => (f64::INFINITY, 0.0),
        _ => (0.0, 0.0),
    };
    [
        (PIECE + flat(own), Kind::Flat, None),
        (PIECE + short + rising(own) + FALLING * more, Kind::Fall, Some(true)),
        (PIECE + short + rising(&down) + FALLING * more, Kind::Fall, Some(false)),
        (PIECE + ragged + FREE * more, Kind::Ragged, None),
    ]
}

/// Whether nearly all of the change comes at once: a step between flat pieces, or an odd cell, is
/// no fall.
fn one_step(own: &[(f64, f64)]) -> bool {
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return false };
    let largest = own.windows(2).map(|pair| (pair[1].0 - pair[0].0).abs()).fold(0.0, f64::max);
    largest > AT_ONCE * (last.0 - first.0).abs()
}

/// Squares around the common level; one cell inside a piece of four or more may be odd.
fn flat(own: &[(f64, f64)]) -> f64 {
    let squares = |without: Option<usize>| -> f64 {
        let kept =
            || own.iter().enumerate().filter(|(place, _)| Some(*place) != without).map(|(_, cell)| *cell);
        let weight: f64 = kept().map(|(_, variance)| 1.0 / variance).sum();
        let level: f64 = kept().map(|(level, variance)| level / variance).sum::<f64>() / weight;
        kept().map(|(value, variance)| (value - level).powi(2) / variance).sum()
    };
    let whole = if own.is_empty() { 0.0 } else { squares(None) };
    if own.len() < 4 || whole <= ODD {
        return whole;
    }
    (1..own.len() - 1).map(|odd| squares(Some(odd)) + ODD).fold(whole, f64::min)
}

/// Squares around the nearest levels that never go down (pool adjacent violators, Ayer et al.
/// 1955).
fn rising(own: &[(f64, f64)]) -> f64 {
    // Blocks: weight, weighted sum, weighted sum of squares.
    let mut blocks: Vec<(f64, f64, f64)> = Vec::with_capacity(own.len());
    for (level, variance) in own {
        let mut block = (1.0 / variance, level / variance, level * level / variance);
        while let Some(last) = blocks.last().filter(|last| last.1 / last.0 >= block.1 / block.0).copied() {
            block = (block.0 + last.0, block.1 + last.1, block.2 + last.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.iter().map(|(weight, sum, squares)| (squares - sum * sum / weight).max(0.0)).sum()
}

/// All known cells as one flat region.
pub fn one_flat(grid: &[Option<Level>]) -> Vec<Region> {
    let cells = (0..grid.len()).filter(|cell| grid[*cell].is_some()).collect();
    vec![Region { kind: Kind::Flat, direction: None, cells }]
}

/// The regions of a curve or a map, in the order of their first cells.
pub fn regions(shape: Shape, grid: &[Option<Level>]) -> Vec<Region> {
    if shape.rows <= 1 || shape.columns <= 1 {
        let axis = u8::from(shape.columns <= 1 && shape.rows > 1);
        let region = |piece: Segment| Region {
            kind: piece.kind,
            direction: piece.rises.map(|rises| Direction { axis, rises }),
            cells: (piece.from..=piece.to).filter(|cell| grid[*cell].is_some()).collect(),
        };
        return segments(grid).into_iter().map(region).collect();
    }
    areas::regions(shape, grid.iter().copied().map(known).collect())
}
