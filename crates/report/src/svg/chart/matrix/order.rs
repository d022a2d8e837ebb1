//! Rows and columns of a matrix in one order, neighbours joined into groups where they are many.

use crate::block::Side;
use crate::plain::plain;

/// The matrix in one order.
pub struct Ordered {
    pub name: &'static str,
    /// Labels of the columns and of the rows.
    pub x: Vec<String>,
    pub y: Vec<String>,
    pub z: Vec<Vec<Option<f64>>>,
    /// Which row of the whole stands at each place, and which column.
    pub at: [Vec<usize>; 2],
}

/// Whether `order` names each of `count` rows once.
pub fn is_order(order: &[usize], count: usize) -> bool {
    let mut seen = vec![false; count];
    order.len() == count && order.iter().all(|row| *row < count && !std::mem::replace(&mut seen[*row], true))
}

pub fn ordered(
    name: &'static str,
    sides: [&Side; 2],
    values: &[Vec<Option<f64>>],
    orders: &[Vec<usize>; 2],
    groups: [usize; 2],
) -> Ordered {
    let [rows, columns] = [0, 1].map(|at| orders[at].chunks(groups[at]).collect::<Vec<&[usize]>>());
    let cell =
        |row: usize, column: usize| values[row].get(column).copied().flatten().filter(|v| v.is_finite());
    let row = |rows: &&[usize]| {
        let each = |columns: &&[usize]| {
            let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)));
            median(pairs.filter_map(|(row, column)| cell(row, column)).collect())
        };
        columns.iter().map(each).collect()
    };
    Ordered {
        name,
        x: group_labels(&sides[1].labels, &columns),
        y: group_labels(&sides[0].labels, &rows),
        z: rows.iter().map(row).collect(),
        at: orders.clone(),
    }
}

/// A name for each group: `0…3`.
fn group_labels(labels: &[String], groups: &[&[usize]]) -> Vec<String> {
    let name = |row: &usize| plain(&labels[*row], 24);
    let named = groups.iter().map(|rows| match rows {
        [first, .., last] => format!("{}…{}", name(first), name(last)),
        _ => rows.iter().map(name).collect(),
    });
    named.collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(values[middle - 1] / 2.0 + values[middle] / 2.0),
    }
}
