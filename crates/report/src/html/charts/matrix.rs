//! A matrix as a heat map, in topology order first: the order of CPU numbers hides the blocks.

use plotly::common::{HoverInfo, Marker, MarkerSymbol, Mode, Title};
use plotly::layout::{Annotation, Axis, AxisRange, AxisType, HoverMode, Margin};
use plotly::{HeatMap, Scatter, Trace};

use super::theme::{axis, color_bar, font, layout, note, viridis};
use super::ticks::{figure, rounded};
use super::{Order, Shape, Spec};
use crate::block::Side;
use crate::html::text::{label, template_label};
use crate::plain::plain;

/// More rows than this are drawn as groups: a screen has no more pixels, and a browser no more
/// patience.
const MOST: usize = 256;

/// Up to this many rows and columns each cell has room for its number.
const MOST_WITH_NUMBERS: usize = 12;

pub fn spec(unit: &str, sides: [&Side; 2], values: &[Vec<Option<f64>>], rejected: &[[usize; 2]]) -> Spec {
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
    let drawn = [orders[0].y.len(), orders[0].x.len()];
    let grouped = groups.iter().any(|group| *group > 1);
    let mut notes = Vec::new();
    if grouped {
        notes.push(format!(
            "{} rows are drawn as {} groups of up to {} neighbours, each cell the median of its group.",
            counts[0], drawn[0], groups[0]
        ));
        if !rejected.is_empty() {
            notes.push(format!("{} rejected cells are left out.", rejected.len()));
        }
    }
    let mut cells: Vec<f64> = orders[0].z.iter().flatten().flatten().copied().collect();
    cells.sort_by(f64::total_cmp);
    let (low, high) = colour_range(&cells);
    if cells.last().is_some_and(|largest| *largest > high) {
        let unit = plain(unit, 24);
        notes.push(format!("The colours end at {} {unit}: 99 % of the cells are below.", figure(high)));
    }
    let map = HeatMap::new(Vec::<String>::new(), Vec::<String>::new(), Vec::<Vec<f64>>::new())
        .color_scale(viridis())
        .zmin(low)
        .zmax(high)
        .color_bar(color_bar(unit))
        .hover_on_gaps(false)
        .hover_template(format!("%{{y}} → %{{x}}: %{{z}} {}<extra></extra>", template_label(unit, 24)))
        .hover_info(HoverInfo::All);
    let top_down = AxisRange::new(drawn[0] as f64 - 0.5, -0.5);
    let left_right = AxisRange::new(-0.5, drawn[1] as f64 - 0.5);
    let numbers = match drawn.iter().all(|count| *count <= MOST_WITH_NUMBERS) {
        true => numbers(&orders[0], low, high),
        false => Vec::new(),
    };
    let narrow_numbers = if drawn[1] <= MOST_WITH_NUMBERS / 2 { numbers.clone() } else { Vec::new() };
    let layout = layout(HoverMode::Closest)
        .margin(Margin::new().left(8).right(8).top(8).bottom(8).pad(2))
        .x_axis(categories(&sides[1].title).range(left_right))
        .y_axis(categories(&sides[0].title).range(top_down))
        .annotations(numbers);
    let mut data: Vec<Box<dyn Trace>> = vec![map];
    if !grouped && !rejected.is_empty() {
        data.push(crosses(sides, rejected, drawn));
    }
    Spec {
        data,
        layout,
        narrow: Some(serde_json::json!({
            "annotations": narrow_numbers, "xaxis": { "nticks": 8 }, "yaxis": { "nticks": 8 }
        })),
        orders,
        shape: Shape::Square(180 + 80 * drawn[1].max(drawn[0])),
        notes,
    }
}

/// The value of each cell, in a colour that can be read on the cell's own.
fn numbers(order: &Order, low: f64, high: f64) -> Vec<Annotation> {
    let cells = order.y.iter().zip(&order.z).flat_map(|(y, row)| {
        order.x.iter().zip(row).filter_map(move |(x, value)| Some((x.clone(), y.clone(), (*value)?)))
    });
    let number = |(x, y, value): (String, String, f64)| {
        let colour = if (value - low) / (high - low) > 0.55 { "#10141c" } else { "#ffffff" };
        note(&model::figure(value, ""), colour).x(x).y(y).font(font(12).color(colour))
    };
    cells.map(number).collect()
}

/// A cross on each cell whose value is not to be believed; names of rows and columns place them in
/// every order.
fn crosses(sides: [&Side; 2], rejected: &[[usize; 2]], drawn: [usize; 2]) -> Box<dyn Trace> {
    let own = |at: usize| {
        let rows: Vec<usize> = (0..drawn[at]).collect();
        group_labels(&sides[at].labels, &rows.chunks(1).collect::<Vec<_>>())
    };
    let names = [own(0), own(1)];
    let inside = rejected.iter().filter(|[row, column]| *row < drawn[0] && *column < drawn[1]);
    let (y, x): (Vec<String>, Vec<String>) =
        inside.map(|[row, column]| (names[0][*row].clone(), names[1][*column].clone())).unzip();
    let said = y.iter().zip(&x).map(|(y, x)| format!("{y} → {x}: rejected")).collect();
    let size = (260 / drawn[0].max(drawn[1]).max(1)).clamp(3, 16);
    Scatter::new(x, y)
        .mode(Mode::Markers)
        .marker(Marker::new().symbol(MarkerSymbol::X).size(size).color("$bad"))
        .text_array(said)
        .hover_info(HoverInfo::Text)
        .show_legend(false)
}

fn categories(title: &str) -> Axis {
    let axis = axis().type_(AxisType::Category).show_grid(false).n_ticks(16);
    match title {
        "" => axis,
        title => axis.title(Title::with_text(label(title, 60)).font(font(12).color("$muted"))),
    }
}

/// Whether `order` names each of `count` rows once.
fn is_order(order: &[usize], count: usize) -> bool {
    let mut seen = vec![false; count];
    order.len() == count && order.iter().all(|row| *row < count && !std::mem::replace(&mut seen[*row], true))
}

fn ordered(
    name: &'static str,
    sides: [&Side; 2],
    values: &[Vec<Option<f64>>],
    orders: &[Vec<usize>; 2],
    groups: [usize; 2],
) -> Order {
    let [rows, columns] = [0, 1].map(|at| orders[at].chunks(groups[at]).collect::<Vec<&[usize]>>());
    let cell =
        |row: usize, column: usize| values[row].get(column).copied().flatten().filter(|v| v.is_finite());
    let row = |rows: &&[usize]| {
        let each = |columns: &&[usize]| {
            let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)));
            median(pairs.filter_map(|(row, column)| cell(row, column)).collect()).map(rounded)
        };
        columns.iter().map(each).collect()
    };
    Order {
        name,
        x: group_labels(&sides[1].labels, &columns),
        y: group_labels(&sides[0].labels, &rows),
        z: rows.iter().map(row).collect(),
    }
}

/// A name for each group; names are made different because plotly takes equal ones for one row.
fn group_labels(labels: &[String], groups: &[&[usize]]) -> Vec<String> {
    let name = |row: &usize| label(&labels[*row], 24);
    let mut seen = std::collections::BTreeSet::new();
    let named = groups.iter().enumerate().map(|(place, rows)| {
        let named = match rows {
            [first, .., last] => format!("{}…{}", name(first), name(last)),
            _ => rows.iter().map(name).collect(),
        };
        let named =
            if seen.contains(&named) || named.is_empty() { format!("{named} #{place}") } else { named };
        seen.insert(named.clone());
        named
    });
    named.collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn square(count: usize, value: impl Fn(usize, usize) -> f64) -> (Side, Vec<Vec<Option<f64>>>) {
        let labels = (0..count).map(|cpu| cpu.to_string()).collect();
        let row = |row: usize| (0..count).map(|column| (row != column).then(|| value(row, column))).collect();
        (Side { labels, ..Side::default() }, (0..count).map(row).collect())
    }

    #[test]
    fn topology_order_comes_first() {
        let (side, values) = square(4, |row, column| (row * 10 + column) as f64);
        let ordered = |order: &[usize]| {
            let side = Side { topology_order: order.to_vec(), ..side.clone() };
            super::spec("ns", [&side, &side], &values, &[])
        };
        let spec = ordered(&[0, 2, 1, 3]);
        assert_eq!(spec.orders[0].y, ["0", "2", "1", "3"]);
        assert_eq!(spec.orders[0].z[1], [Some(20.0), None, Some(21.0), Some(23.0)]);
        assert_eq!(spec.orders[1].x, ["0", "1", "2", "3"]);
        // A broken order is not used.
        assert_eq!(ordered(&[0, 0, 1, 3]).orders.len(), 1);
        assert_eq!(ordered(&[0, 1, 2, 3]).orders.len(), 1);
    }

    #[test]
    fn rows_and_columns_may_differ() {
        let side = |labels: &[&str], title: &str| Side {
            title: title.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            topology_order: Vec::new(),
        };
        let (rows, columns) = (side(&["a", "b"], "CPUs of"), side(&["a", "b", "c"], "memory of"));
        let values = vec![vec![Some(90.0), Some(140.0), None], vec![Some(141.0), None, Some(250.0)]];
        let spec = spec("ns", [&rows, &columns], &values, &[[1, 1]]);
        assert_eq!((spec.orders.len(), spec.orders[0].z.len(), spec.orders[0].z[0].len()), (1, 2, 3));
        let json = serde_json::to_value(&spec).expect("serialises");
        assert_eq!(json["layout"]["xaxis"]["title"]["text"], "memory of");
        assert_eq!(json["data"][1]["x"], serde_json::json!(["b"]));
        assert_eq!(
            json["layout"]["annotations"].as_array().map(Vec::len),
            Some(4),
            "a number for each value"
        );
        assert_eq!(json["layout"]["annotations"][3]["font"]["color"], "#10141c", "dark on bright");
    }

    #[test]
    fn large_matrices_are_grouped() {
        let (mut side, values) = square(512, |row, column| if row / 2 == column / 2 { 1.0 } else { 5.0 });
        side.topology_order = (0..512).rev().collect();
        let spec = spec("ns", [&side, &side], &values, &[[0, 1]]);
        assert_eq!(spec.orders[0].y.len(), 256);
        assert_eq!(spec.orders[0].y[0], "511…510");
        assert_eq!(spec.orders[0].z[0][0], Some(1.0));
        assert_eq!(spec.orders[0].z[0][1], Some(5.0));
        assert!(spec.notes[0].contains("256 groups of up to 2"));
        assert!(spec.notes[1].contains("1 rejected"), "{:?}", spec.notes);
    }

    #[test]
    fn one_far_cell_does_not_take_all_colours() {
        let (side, values) =
            square(20, |row, column| if (row, column) == (0, 1) { 9000.0 } else { 100.0 + row as f64 });
        let spec = spec("n<s", [&side, &side], &values, &[]);
        assert_eq!(spec.notes, ["The colours end at 119 n<s: 99 % of the cells are below."]);
        assert_eq!(group_labels(&["a".to_owned(), "a".to_owned()], &[&[0], &[1]]), ["a", "a #1"]);
    }
}
