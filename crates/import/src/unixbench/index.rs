//! The index of a section, computed again from its own rows.

use super::lines::Row;
use crate::{Index, IndexRow};
use stats::index::geometric_mean;
use stats::unixbench::{self, INDEX, SCALE, TESTS};

/// Half of the last digit that is printed.
const ROUNDING: f64 = 0.05;

/// An index as it stands in a section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub title: String,
    pub partial: bool,
    pub rows: Vec<Row>,
    pub score: Option<f64>,
}

impl Table {
    /// The printed index and that of its rows. `score_of` gives the score on the section's own line
    /// of a test.
    pub fn index(&self, copies: Option<u32>, score_of: impl Fn(&str) -> Option<f64>) -> Index {
        let mut remarks: Vec<String> = Vec::new();
        let mut tests = Vec::new();
        for row in &self.rows {
            tests.push(IndexRow {
                title: row.title.clone(),
                bench: unixbench::titled(&row.title).map(unixbench::Test::bench).unwrap_or_default(),
                baseline: row.baseline,
                result: row.result,
                printed: row.index,
                recomputed: row
                    .baseline
                    .filter(|baseline| *baseline > 0.0)
                    .map(|base| row.result / base * SCALE),
            });
            remarks.extend(wrong(row, score_of(&row.title)));
        }
        let complete = self.title != INDEX || missing(&tests).is_empty();
        if !complete {
            remarks.push(format!("no row of {}", missing(&tests).join(", ")));
        }
        let indices: Option<Vec<f64>> = tests.iter().map(|test| test.recomputed).collect();
        let recomputed = indices
            .filter(|_| complete || self.partial)
            .and_then(|indices| geometric_mean(&indices))
            .filter(|score| score.is_finite());
        match (self.score, recomputed) {
            (Some(printed), Some(found)) if (printed - found).abs() > self.tolerance(found) => {
                remarks.push(format!("it prints the score {printed:.1}, and its rows give {found:.1}"));
            }
            (Some(_), None) => remarks.push("its score cannot be recomputed from its rows".to_string()),
            (None, _) => remarks.push("it prints no score: the file ends before, or was cut".to_string()),
            _ => {}
        }
        if self.partial {
            remarks.push(format!("a partial index, of {} of {} tests", tests.len(), TESTS.len()));
        }
        Index {
            title: self.title.clone(),
            copies,
            partial: self.partial || !complete,
            score: self.score,
            recomputed,
            tests,
            remark: remarks.join("; "),
        }
    }

    /// How far a score may be from what rounded rows give.
    fn tolerance(&self, score: f64) -> f64 {
        let shares: f64 = self.rows.iter().map(|row| ROUNDING / row.result.max(ROUNDING)).sum();
        ROUNDING * 1.01 + score * shares / self.rows.len().max(1) as f64
    }
}

/// Tests of the system index that have no row.
fn missing(tests: &[IndexRow]) -> Vec<&'static str> {
    let absent = |test: &&unixbench::Test| !tests.iter().any(|row| row.title == test.title);
    TESTS.iter().filter(absent).map(|test| test.title).collect()
}

/// What in a row disagrees: with itself, with the classic baseline, with the line of its test.
fn wrong(row: &Row, own: Option<f64>) -> Option<String> {
    let (baseline, index) = (row.baseline?, row.index?);
    let title = &row.title;
    if let Some(own) = own.filter(|own| (own - row.result).abs() > ROUNDING) {
        return Some(format!("{title} has {own:.1} in its own line and {:.1} in the index", row.result));
    }
    if let Some(test) = unixbench::titled(title).filter(|test| (test.baseline - baseline).abs() > ROUNDING) {
        return Some(format!("{title} has the baseline {baseline:.1}, not {:.1}", test.baseline));
    }
    let expected = row.result / baseline * SCALE;
    let rounding = ROUNDING * (1.01 + SCALE / baseline);
    let agrees = (expected - index).abs() <= rounding;
    (!agrees).then(|| format!("{title} has the index {index:.1}, but its row gives {expected:.1}"))
}
