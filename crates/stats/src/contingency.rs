//! Do two labellings of the same values go together? Fisher's exact test, chi-square by permutation
//! above 2 x
//! 2.

use super::tails::{ln_choose, permutation_p};

/// A 2 x 2 table of counts: rows are with and without the first property, columns with and without
/// the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    pub both: usize,
    pub first_only: usize,
    pub second_only: usize,
    pub neither: usize,
}

impl Table {
    /// Counts pairs; the longer list's rest is left out.
    pub fn count(first: &[bool], second: &[bool]) -> Table {
        let mut table = Table { both: 0, first_only: 0, second_only: 0, neither: 0 };
        for pair in first.iter().zip(second) {
            match pair {
                (true, true) => table.both += 1,
                (true, false) => table.first_only += 1,
                (false, true) => table.second_only += 1,
                (false, false) => table.neither += 1,
            }
        }
        table
    }

    /// P(both = x) for every x that the margins allow, lowest first, with that lowest x.
    pub(super) fn probabilities(&self) -> (usize, Vec<f64>) {
        let first = (self.both + self.first_only) as u64;
        let second = (self.both + self.second_only) as u64;
        let all = first + (self.second_only + self.neither) as u64;
        let lowest = (first + second).saturating_sub(all);
        let ln_all = ln_choose(all, second);
        let at = |x: u64| (ln_choose(first, x) + ln_choose(all - first, second - x) - ln_all).exp();
        (lowest as usize, (lowest..=first.min(second)).map(at).collect())
    }

    /// Two-sided p of Fisher's exact test: all tables with these margins that are no likelier than
    /// this one.
    pub fn fisher(&self) -> f64 {
        let (lowest, probabilities) = self.probabilities();
        let observed = probabilities.get(self.both - lowest).copied().unwrap_or(1.0);
        let unlikely = probabilities.iter().filter(|&&p| p <= observed * (1.0 + 1e-7));
        unlikely.sum::<f64>().min(1.0)
    }

    /// One-sided p that the two properties come together no more often than chance brings about.
    pub fn fisher_together(&self) -> f64 {
        let (lowest, probabilities) = self.probabilities();
        probabilities.iter().skip(self.both - lowest).sum::<f64>().min(1.0)
    }
}

/// p that two labellings of the same things are independent: Fisher's exact test where both have
/// two labels, else Pearson's chi-square judged by up to 9999 permutations from the seed. `None`
/// where a labelling has one label only or the lists differ in length.
pub fn association<A: Ord, B: Ord>(first: &[A], second: &[B], seed: u64) -> Option<f64> {
    let ((first, rows), (mut second, columns)) = (numbered(first), numbered(second));
    if first.len() != second.len() || rows < 2 || columns < 2 {
        return None;
    }
    if rows == 2 && columns == 2 {
        let flags = |labels: &[usize]| -> Vec<bool> { labels.iter().map(|&label| label == 1).collect() };
        return Some(Table::count(&flags(&first), &flags(&second)).fisher());
    }
    // With fixed margins, Pearson's statistic rises with sum(observed² / expected) alone.
    let totals = |labels: &[usize], kinds: usize| -> Vec<f64> {
        let mut totals = vec![0.0; kinds];
        labels.iter().for_each(|&label| totals[label] += 1.0);
        totals
    };
    let (row_totals, column_totals) = (totals(&first, rows), totals(&second, columns));
    let statistic = |second: &[usize]| -> f64 {
        let mut counts = vec![0.0; rows * columns];
        first.iter().zip(second).for_each(|(&row, &column)| counts[row * columns + column] += 1.0);
        let cell = |(index, count): (usize, &f64)| {
            count * count / (row_totals[index / columns] * column_totals[index % columns])
        };
        counts.iter().enumerate().map(cell).sum()
    };
    let observed = statistic(&second);
    Some(permutation_p(9999, seed, |rng| {
        rng.shuffle(&mut second);
        statistic(&second) >= observed * (1.0 - 1e-9)
    }))
}

/// Labels as numbers from 0 in their order, and how many differ.
fn numbered<L: Ord>(labels: &[L]) -> (Vec<usize>, usize) {
    let mut kinds: Vec<&L> = labels.iter().collect();
    kinds.sort_unstable();
    kinds.dedup();
    (labels.iter().map(|label| kinds.partition_point(|kind| *kind < label)).collect(), kinds.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// References: scipy 1.17.1 `fisher_exact`.
    #[test]
    fn fisher_references() {
        for (both, first_only, second_only, neither, two_sided, greater) in [
            (8, 2, 1, 5, 0.034965034965034975, 0.024475524475524483),
            (3, 0, 0, 3, 0.10000000000000002, 0.05000000000000001),
            (10, 20, 30, 40, 0.5044757698516285, 0.8676419647894413),
            (0, 7, 9, 2, 0.002262443438914028, 1.0),
            (2, 1, 0, 97, 0.0006060606060606062, 0.0006060606060606061),
        ] {
            let table = Table { both, first_only, second_only, neither };
            assert!((table.fisher() - two_sided).abs() < 1e-9, "{table:?}: {}", table.fisher());
            assert!(
                (table.fisher_together() - greater).abs() < 1e-9,
                "{table:?}: {}",
                table.fisher_together()
            );
        }
        let empty = Table { both: 0, first_only: 0, second_only: 0, neither: 0 };
        assert_eq!((empty.fisher(), empty.fisher_together()), (1.0, 1.0));
    }

    #[test]
    fn associations() {
        let modes = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1];
        assert_eq!(association(&modes, &["a"; 10], 1), None);
        assert_eq!(association(&modes, &modes[1..], 1), None);
        // Perfectly together: 2 of choose(10, 4) = 210 tables are as unlikely (the other needs
        // equal margins).
        let p =
            association(&modes, &["a", "a", "a", "a", "b", "b", "b", "b", "b", "b"], 1).expect("two labels");
        assert!((p - 1.0 / 210.0).abs() < 1e-9, "{p}");
        let cpus = [0, 0, 1, 1, 2, 2, 3, 3, 2, 3];
        let p = association(&modes, &cpus, 1).expect("four labels");
        // Exactly 1 of the 210 choices gives CPUs 0 and 1 to mode 0, 5 more give any other two
        // whole pairs of CPUs.
        assert!(p < 0.05, "{p}");
        let mixed = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0];
        assert!(association(&modes, &mixed, 1).expect("three labels") > 0.1);
    }
}
