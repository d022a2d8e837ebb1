//! A matrix as a heat map, in topology order first: the order of CPU numbers hides the blocks.

mod order;

use std::fmt::Write;

use super::ticks::figure;
use super::{Drawing, Order, across, bitmap, safe};
use crate::block::Side;
use crate::map::{ink, viridis};
use crate::plain::plain;
use crate::svg::canvas::{measured, short};
use order::{Ordered, is_order, ordered};

/// More rows than this are drawn as groups: a screen has no more pixels.
const MOST: usize = 256;
/// Up to so many cells each is an element that names its value.
const MOST_NAMED: usize = 600;
/// Up to this many rows and columns each cell has room for its number.
const MOST_WITH_NUMBERS: usize = 12;
/// Labels along a side.
const MOST_LABELS: usize = 16;

pub fn drawing(
    unit: &str,
    sides: [&Side; 2],
    values: &[Vec<Option<f64>>],
    rejected: &[[usize; 2]],
) -> Drawing {
    let counts = [sides[0].labels.len().min(values.len()), sides[1].labels.len()];
    let groups = counts.map(|count| count.div_ceil(MOST).max(1));
    let by_number = counts.map(|count| (0..count).collect::<Vec<usize>>());
    let by_topology = [0, 1].map(|at| {
        let order = &sides[at].topology_order;
        if is_order(order, counts[at]) { order.clone() } else { by_number[at].clone() }
    });
    let mut orders = Vec::new();
    if by_topology != by_number {
        orders.push(ordered("by topology", sides, values, &by_topology, groups));
    }
    orders.push(ordered("by number", sides, values, &by_number, groups));
    let grouped = groups.iter().any(|group| *group > 1);
    let mut notes = Vec::new();
    if grouped {
        notes.push(format!(
            "{} rows are drawn as {} groups of up to {} neighbours. Each cell is the median of its group.",
            counts[0],
            orders[0].y.len(),
            groups[0]
        ));
        if !rejected.is_empty() {
            notes.push(format!("{} rejected cells are left out.", rejected.len()));
        }
    }
    let mut cells: Vec<f64> = orders[0].z.iter().flatten().flatten().copied().collect();
    cells.sort_by(f64::total_cmp);
    let range = colour_range(&cells);
    if cells.last().is_some_and(|largest| *largest > range.1) {
        let unit = plain(unit, 24);
        notes.push(format!("The colours end at {} {unit}: 99 % of the cells are below.", figure(range.1)));
    }
    let crossed = if grouped { &[] } else { rejected };
    let drawn =
        orders.iter().map(|order| Order { name: order.name, html: html(order, sides, unit, range, crossed) });
    Drawing { orders: drawn.collect(), key: key(range, unit, !crossed.is_empty(), &orders[0]), notes }
}

/// From the smallest cell to the largest, or to the 99th percentile where a few far ones would take
/// all the colours.
fn colour_range(sorted: &[f64]) -> (f64, f64) {
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else { return (0.0, 1.0) };
    let most = sorted[(sorted.len() - 1) * 99 / 100];
    let high =
        if sorted.len() >= 100 && high - low > 1.5 * (most - low) && most > *low { most } else { *high };
    (*low, if high > *low { high } else { low + 1.0 })
}

/// 0 for the darkest colour, 1 for the brightest.
fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    let share = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn html(
    order: &Ordered,
    sides: [&Side; 2],
    unit: &str,
    range: (f64, f64),
    rejected: &[[usize; 2]],
) -> String {
    let (rows, columns) = (order.y.len(), order.x.len());
    if rows == 0 || columns == 0 {
        return String::new();
    }
    let left = order.y.iter().map(|label| measured(label, 12.0)).fold(0.0, f64::max) + 12.0;
    // A side of a cell: 56 pixels, fewer where there are many.
    let side = (460.0 / rows.max(columns) as f64).min(56.0);
    let mut out = format!(
        "<div class=\"heat\" style=\"--left:{}px;--wide:{}px;--shape:{columns}/{rows}\">",
        short(left.min(130.0).ceil()),
        short((side * columns as f64 * if columns < rows { 1.4 } else { 1.0 }).max(120.0).ceil())
    );
    labels(&mut out, order, sides);
    let _ = write!(
        out,
        "<svg class=\"cells\" viewBox=\"0 0 {columns} {rows}\" preserveAspectRatio=\"none\" role=\"group\" aria-label=\"heat map\">"
    );
    match rows * columns <= MOST_NAMED {
        true => named(&mut out, order, unit, range),
        false => painted(&mut out, order, range),
    }
    crosses(&mut out, order, rejected);
    out.push_str("</svg>");
    if rows.max(columns) <= MOST_WITH_NUMBERS {
        numbers(&mut out, order, range);
    }
    out.push_str("</div>");
    out
}

/// Rows at the left, columns below.
fn labels(out: &mut String, order: &Ordered, sides: [&Side; 2]) {
    let middle = |at: usize, count: usize| across((at as f64 + 0.5) / count as f64);
    let every = |count: usize| count.div_ceil(MOST_LABELS).max(1);
    out.push_str("<svg class=\"plot down\" aria-hidden=\"true\">");
    for (at, label) in order.y.iter().enumerate().step_by(every(order.y.len())) {
        let y = middle(at, order.y.len());
        let _ = write!(
            out,
            "<text x=\"100%\" y=\"{y}\" dx=\"-6\" dy=\"4\" text-anchor=\"end\">{}</text>",
            safe(label, 18)
        );
    }
    out.push_str("</svg><svg class=\"plot right\" aria-hidden=\"true\">");
    // A label takes the room of as many columns as it needs.
    let widest = order.x.iter().map(|label| measured(label, 12.0)).fold(0.0, f64::max) + 8.0;
    for (class, width) in [("w", 440.0), ("n", 250.0)] {
        let fit = (width / widest.max(1.0)).floor().max(1.0) as usize;
        let step = order.x.len().div_ceil(fit.min(MOST_LABELS)).max(1);
        let _ = write!(out, "<g class=\"{class}\">");
        for (at, label) in order.x.iter().enumerate().step_by(step) {
            let x = middle(at, order.x.len());
            let _ = write!(out, "<text x=\"{x}\" y=\"15\" text-anchor=\"middle\">{}</text>", safe(label, 18));
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    let [down, right] = [0, 1].map(|at| safe(&sides[at].title, 60));
    if !down.is_empty() || !right.is_empty() {
        let _ = write!(out, "<p class=\"sides\">{down} \u{2193} {right} \u{2192}</p>");
    }
}

/// Each cell an element with its value for the pointer.
fn named(out: &mut String, order: &Ordered, unit: &str, range: (f64, f64)) {
    let unit = safe(unit, 24);
    for (y, (row, label)) in order.z.iter().zip(&order.y).enumerate() {
        for (x, (value, column)) in row.iter().zip(&order.x).enumerate() {
            let Some(value) = value else { continue };
            let colour = hex(viridis(share(*value, range)));
            let _ = write!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"1\" height=\"1\" fill=\"{colour}\"><title>{} → {}: {} {unit}</title></rect>",
                safe(label, 24),
                safe(column, 24),
                figure(*value)
            );
        }
    }
}

/// All cells as one picture.
fn painted(out: &mut String, order: &Ordered, range: (f64, f64)) {
    let steps = f64::from(bitmap::GAP - 1);
    let index =
        |value: &Option<f64>| value.map_or(bitmap::GAP, |value| (share(value, range) * steps).round() as u8);
    let rows: Vec<Vec<u8>> = order.z.iter().map(|row| row.iter().map(index).collect()).collect();
    let palette = |index: u8| match index {
        bitmap::GAP => [0x9a, 0xa3, 0xb2],
        index => viridis(f64::from(index) / steps),
    };
    let _ = write!(
        out,
        "<image width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" href=\"{}\"/>",
        order.x.len(),
        order.y.len(),
        bitmap::address(&rows, palette)
    );
}

/// A cross on each cell whose value is not to be believed.
fn crosses(out: &mut String, order: &Ordered, rejected: &[[usize; 2]]) {
    let place = |at: usize, of: usize| order.at[at].iter().position(|index| *index == of);
    let mut path = String::new();
    for [row, column] in rejected {
        if let (Some(y), Some(x)) = (place(0, *row), place(1, *column)) {
            let _ = write!(path, "M{x}.2 {y}.2l.6 .6m0 -.6l-.6 .6");
        }
    }
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"cross\" d=\"{path}\"><title>rejected</title></path>");
    }
}

/// The value of each cell, in a colour that can be read on the cell's own.
fn numbers(out: &mut String, order: &Ordered, range: (f64, f64)) {
    let few = order.x.len() <= MOST_WITH_NUMBERS / 2;
    let _ = write!(out, "<svg class=\"plot over{}\" aria-hidden=\"true\">", if few { "" } else { " w" });
    for (y, row) in order.z.iter().enumerate() {
        for (x, value) in row.iter().enumerate() {
            let Some(value) = value else { continue };
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{}\" dy=\"4\" text-anchor=\"middle\" style=\"fill:{}\">{}</text>",
                across((x as f64 + 0.5) / order.x.len() as f64),
                across((y as f64 + 0.5) / order.y.len() as f64),
                ink(viridis(share(*value, range))),
                safe(&model::figure(*value, ""), 16)
            );
        }
    }
    out.push_str("</svg>");
}

/// What the colours mean.
fn key(range: (f64, f64), unit: &str, crossed: bool, order: &Ordered) -> String {
    if order.z.iter().flatten().flatten().next().is_none() {
        return String::new();
    }
    let (low, high, unit) = (figure(range.0), figure(range.1), safe(unit, 24));
    let cross = if crossed { "<span><i class=\"k-cross\">×</i>rejected</span>" } else { "" };
    format!("<span>{low}<i class=\"k-viridis\"></i>{high} {unit}</span>{cross}")
}
