//! What all copies did over the time of a piece of work, from when each of their equal steps ended.

use model::Progress;
use sys::crew::Team;

/// Equal spans that a piece is cut into: no finer than what its steps can show.
const SPANS: usize = 20;

/// Asks each copy when its steps ended, ns since it began (`u64::MAX` beyond its last): a row a
/// copy.
pub fn steps(team: &mut Team, question: impl Fn(usize) -> u64) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for at in 0.. {
        let laps = team.round(question(at))?;
        rows.resize(laps.len(), Vec::new());
        let mut more = false;
        for (row, lap) in rows.iter_mut().zip(&laps).filter(|(_, lap)| lap.answer != u64::MAX) {
            row.push(lap.answer as f64);
            more = true;
        }
        if !more {
            break;
        }
    }
    Ok(rows)
}

/// The work of all copies in equal spans of a piece that began `start_s` after the first one: each
/// copy does `units` in equal steps, evenly within a step. `None` where a copy notes fewer than two
/// steps.
pub fn progress(rows: &[Vec<f64>], units: f64, start_s: f64) -> Option<Progress> {
    let least = rows.iter().map(Vec::len).min().filter(|steps| *steps >= 2)?;
    let end = rows.iter().filter_map(|row| row.last()).copied().reduce(f64::max).filter(|end| *end > 0.0)?;
    let spans = least.min(SPANS);
    let span_ns = end / spans as f64;
    let work = |span: usize| -> f64 {
        let (from, to) = (span as f64 * span_ns, (span + 1) as f64 * span_ns);
        rows.iter().map(|row| units * (done(row, to) - done(row, from))).sum()
    };
    // Units / ns are thousands of millions a second.
    let rates = (0..spans).map(|span| work(span) / span_ns * 1e3).collect();
    Some(Progress { start_s, span_s: span_ns / 1e9, rates })
}

/// Share (0..1) of its piece that a copy has done after this many ns.
fn done(ended: &[f64], ns: f64) -> f64 {
    let whole = ended.partition_point(|end| *end <= ns);
    let Some(next) = ended.get(whole) else { return 1.0 };
    let begin = if whole > 0 { ended[whole - 1] } else { 0.0 };
    let part = if *next > begin { (ns - begin) / (next - begin) } else { 0.0 };
    (whole as f64 + part.clamp(0.0, 1.0)) / ended.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_all_copies_over_time() {
        // One copy twice as fast in its second half, one that is steady.
        let rows = [vec![20.0, 40.0, 50.0, 60.0], vec![15.0, 30.0, 45.0, 60.0]];
        let found = progress(&rows, 120.0, 2.0).expect("steps");
        assert_eq!((found.start_s, found.rates.len()), (2.0, 4));
        assert!((found.span_s - 15e-9).abs() < 1e-15);
        // In all: 240 units in 60 ns.
        let sum: f64 = found.rates.iter().sum();
        assert!((sum * 15.0 / 1e3 - 240.0).abs() < 1e-9, "{found:?}");
        assert!(found.rates[3] > 1.3 * found.rates[0], "{found:?}");
        assert_eq!(progress(&[vec![10.0]], 1.0, 0.0), None, "a piece of one step shows nothing");
        assert_eq!(progress(&[vec![1.0, 2.0], vec![]], 1.0, 0.0), None);
    }
}
