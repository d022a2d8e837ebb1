//! Rectangles of neighbouring cells that differ from all others (a scan statistic, as Kulldorff
//! 1997): what knobs do is seldom done to one cell, and seldom to all.

use super::Shape;

/// The rectangles that are looked at.
pub struct Scan {
    shape: Shape,
    /// First row, end of rows, first column, end of columns; and one over the standard error of its
    /// sum, for observations of variance 1.
    rectangles: Vec<([usize; 4], f64)>,
}

impl Scan {
    /// Of this many observations in each cell. Sides of 1, 2, 3, 4, 6, 9, 13, ... cells, or all; at
    /// most half of all observations.
    pub fn of(shape: Shape, counts: &[f64]) -> Scan {
        let mut scan = Scan { shape, rectangles: Vec::new() };
        let observations = corners(shape, counts);
        let all: f64 = counts.iter().sum();
        for (rows, columns) in pairs(&sides(shape.rows), &sides(shape.columns)) {
            for row in 0..=shape.rows - rows {
                for column in 0..=shape.columns - columns {
                    let own = [row, row + rows, column, column + columns];
                    let n = sum(shape, &observations, &own);
                    if n > 0.0 && n <= all / 2.0 {
                        scan.rectangles.push((own, 1.0 / (n * (1.0 - n / all)).sqrt()));
                    }
                }
            }
        }
        scan
    }

    /// How far the sum over the rectangle that lies furthest is from zero, in standard errors.
    pub fn most(&self, sums: &[f64]) -> f64 {
        let corners = self::corners(self.shape, sums);
        let far = |(own, scale): &([usize; 4], f64)| sum(self.shape, &corners, own).abs() * scale;
        self.rectangles.iter().map(far).fold(0.0, f64::max)
    }
}

/// Sums over all cells above and left of each corner.
pub fn corners(shape: Shape, cells: &[f64]) -> Vec<f64> {
    let width = shape.columns + 1;
    let mut corners = vec![0.0; width * (shape.rows + 1)];
    for row in 0..shape.rows {
        let mut line = 0.0;
        for column in 0..shape.columns {
            line += cells.get(row * shape.columns + column).copied().unwrap_or(0.0);
            corners[(row + 1) * width + column + 1] = corners[row * width + column + 1] + line;
        }
    }
    corners
}

/// Over a rectangle: its first row, the row after its last, and the same of columns.
pub fn sum(shape: Shape, corners: &[f64], [top, bottom, left, right]: &[usize; 4]) -> f64 {
    let width = shape.columns + 1;
    let at = |row: &usize, column: &usize| corners[row * width + column];
    at(bottom, right) - at(top, right) - at(bottom, left) + at(top, left)
}

/// Each half as long again as the one before, and all.
pub fn sides(all: usize) -> Vec<usize> {
    let longer = |side: &usize| Some((side + 1).max(side * 3 / 2));
    std::iter::successors(Some(1), longer).take_while(|side| *side < all).chain([all]).collect()
}

fn pairs(rows: &[usize], columns: &[usize]) -> Vec<(usize, usize)> {
    rows.iter().flat_map(|row| columns.iter().map(|column| (*row, *column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rectangle_that_differs_is_found() {
        let shape = Shape { columns: 5, rows: 2 };
        let scan = Scan::of(shape, &[4.0; 10]);
        // Four observations each of two cells: 8 of 40.
        let mut sums = [-1.0; 10];
        (sums[7], sums[8]) = (4.0, 4.0);
        assert!((scan.most(&sums) - 8.0 / f64::sqrt(8.0 * 0.8)).abs() < 1e-12);
        // A row is as far below zero as the other one is above.
        let rows = [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0];
        assert!((scan.most(&rows) - 5.0 / f64::sqrt(20.0 * 0.5)).abs() < 1e-12);
        assert_eq!(scan.most(&[0.0; 10]), 0.0);
    }

    #[test]
    fn no_cell_without_looks_is_looked_at() {
        let scan = Scan::of(Shape { columns: 3, rows: 1 }, &[4.0, 0.0, 4.0]);
        assert!((scan.most(&[2.0, 0.0, -2.0]) - 2.0 / f64::sqrt(4.0 * 0.5)).abs() < 1e-12);
        assert_eq!(Scan::of(Shape { columns: 1, rows: 1 }, &[4.0]).most(&[3.0]), 0.0);
        assert_eq!(sides(7), [1, 2, 3, 4, 6, 7]);
    }
}
