//! A matrix as a heat map, in topology order first: the order of CPU numbers hides the blocks.

use plotly::HeatMap;
use plotly::common::HoverInfo;
use plotly::layout::{Axis, AxisRange, AxisType, HoverMode, Margin};

use super::theme::{axis, color_bar, layout, viridis};
use super::ticks::{figure, rounded};
use super::{Order, Shape, Spec};
use crate::report::html::text::{label, template_label};
use crate::report::plain::plain;

/// More rows than this are drawn as groups: a screen has no more pixels, and a browser no more patience.
const MOST: usize = 256;

pub fn spec(unit: &str, labels: &[String], values: &[Vec<Option<f64>>], topology_order: &[usize]) -> Spec {
    let count = labels.len().min(values.len());
    let os_order: Vec<usize> = (0..count).collect();
    let mut orders = Vec::new();
    let group = count.div_ceil(MOST).max(1);
    if is_order(topology_order, count) && topology_order != os_order {
        orders.push(ordered("by topology", labels, values, topology_order, group));
    }
    orders.push(ordered("by number", labels, values, &os_order, group));
    let mut notes = Vec::new();
    if group > 1 {
        notes.push(format!(
            "{count} rows are drawn as {} groups of up to {group} neighbours, each cell the median of its group.",
            orders[0].labels.len()
        ));
    }
    let mut cells: Vec<f64> =
        orders.iter().take(1).flat_map(|order| order.z.iter().flatten().flatten().copied()).collect();
    cells.sort_by(f64::total_cmp);
    let (low, high) = colour_range(&cells);
    if cells.last().is_some_and(|largest| *largest > high) {
        let unit = plain(unit, 24);
        notes.push(format!("The colours end at {} {unit}: 99 % of the cells are below.", figure(high)));
    }
    let shown = orders[0].labels.len();
    let map = HeatMap::new(Vec::<String>::new(), Vec::<String>::new(), Vec::<Vec<f64>>::new())
        .color_scale(viridis())
        .zmin(low)
        .zmax(high)
        .color_bar(color_bar(unit))
        .hover_on_gaps(false)
        .hover_template(format!("%{{y}} → %{{x}}: %{{z}} {}<extra></extra>", template_label(unit, 24)))
        .hover_info(HoverInfo::All);
    let top_down = AxisRange::new(shown as f64 - 0.5, -0.5);
    let left_right = AxisRange::new(-0.5, shown as f64 - 0.5);
    let layout = layout(HoverMode::Closest)
        .margin(Margin::new().left(8).right(8).top(8).bottom(8).pad(2))
        .x_axis(categories().range(left_right))
        .y_axis(categories().range(top_down));
    Spec {
        data: vec![map],
        layout,
        narrow: Some(serde_json::json!({ "xaxis": { "nticks": 8 }, "yaxis": { "nticks": 8 } })),
        orders,
        shape: Shape::Square,
        notes,
    }
}

fn categories() -> Axis {
    axis().type_(AxisType::Category).show_grid(false).n_ticks(16)
}

/// Whether `order` names each of `count` rows once.
fn is_order(order: &[usize], count: usize) -> bool {
    let mut seen = vec![false; count];
    order.len() == count && order.iter().all(|row| *row < count && !std::mem::replace(&mut seen[*row], true))
}

fn ordered(
    name: &'static str,
    labels: &[String],
    values: &[Vec<Option<f64>>],
    order: &[usize],
    group: usize,
) -> Order {
    let groups: Vec<&[usize]> = order.chunks(group).collect();
    let cell =
        |row: usize, column: usize| values[row].get(column).copied().flatten().filter(|v| v.is_finite());
    let row = |rows: &&[usize]| {
        let each = |columns: &&[usize]| {
            let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)));
            median(pairs.filter_map(|(row, column)| cell(row, column)).collect()).map(rounded)
        };
        groups.iter().map(each).collect()
    };
    Order { name, labels: group_labels(labels, &groups), z: groups.iter().map(row).collect() }
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

/// From the smallest cell to the largest, or to the 99th percentile where a few far ones would take all the colours.
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

    fn square(count: usize, value: impl Fn(usize, usize) -> f64) -> (Vec<String>, Vec<Vec<Option<f64>>>) {
        let labels = (0..count).map(|cpu| cpu.to_string()).collect();
        let row = |row: usize| (0..count).map(|column| (row != column).then(|| value(row, column))).collect();
        (labels, (0..count).map(row).collect())
    }

    #[test]
    fn topology_order_comes_first() {
        let (labels, values) = square(4, |row, column| (row * 10 + column) as f64);
        let spec = spec("ns", &labels, &values, &[0, 2, 1, 3]);
        assert_eq!(spec.orders[0].labels, ["0", "2", "1", "3"]);
        assert_eq!(spec.orders[0].z[1], [Some(20.0), None, Some(21.0), Some(23.0)]);
        assert_eq!(spec.orders[1].labels, ["0", "1", "2", "3"]);
        // A broken order is not used.
        assert_eq!(super::spec("ns", &labels, &values, &[0, 0, 1, 3]).orders.len(), 1);
        assert_eq!(super::spec("ns", &labels, &values, &[0, 1, 2, 3]).orders.len(), 1);
    }

    #[test]
    fn large_matrices_are_grouped() {
        let (labels, values) = square(512, |row, column| if row / 2 == column / 2 { 1.0 } else { 5.0 });
        let order: Vec<usize> = (0..512).rev().collect();
        let spec = spec("ns", &labels, &values, &order);
        assert_eq!(spec.orders[0].labels.len(), 256);
        assert_eq!(spec.orders[0].labels[0], "511…510");
        assert_eq!(spec.orders[0].z[0][0], Some(1.0));
        assert_eq!(spec.orders[0].z[0][1], Some(5.0));
        assert!(spec.notes[0].contains("256 groups of up to 2"));
    }

    #[test]
    fn one_far_cell_does_not_take_all_colours() {
        let (labels, values) =
            square(20, |row, column| if (row, column) == (0, 1) { 9000.0 } else { 100.0 + row as f64 });
        let spec = spec("n<s", &labels, &values, &[]);
        assert_eq!(spec.notes, ["The colours end at 119 n<s: 99 % of the cells are below."]);
        assert_eq!(group_labels(&["a".to_owned(), "a".to_owned()], &[&[0], &[1]]), ["a", "a #1"]);
    }
}
