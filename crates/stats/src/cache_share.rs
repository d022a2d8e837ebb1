//! How much of a shared cache is ours, and how far that moves while it is watched.

use super::order::{Interval, median, quantile};

/// Result of the rounds of a watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheShare {
    pub rounds: usize,
    /// The median round.
    pub mib: f64,
    /// From the 5th to the 95th percentile of the rounds: its scatter, no interval of the median.
    pub range: Interval,
    /// The largest working set stayed nearly whole: it may be any amount more.
    pub is_more: bool,
}

/// Rounds below which nothing is said: a 95th percentile needs them.
pub const MIN_ROUNDS: usize = 15;
/// A working set stayed whole if this much of it did.
const WHOLE: f64 = 0.9;
/// A share moves where the upper end of its range is this many times the lower.
const MOVES: f64 = 2.0;

impl CacheShare {
    /// Others come and go in it.
    pub fn moves(&self) -> bool {
        self.range.high > MOVES * self.range.low
    }
}

/// Reads what each round found, MiB, where the largest working set had `largest`; `None` where
/// there are too few rounds.
pub fn cache_share(rounds: &[f64], largest: f64) -> Option<CacheShare> {
    let known: Vec<f64> = rounds.iter().copied().filter(|mib| mib.is_finite() && *mib >= 0.0).collect();
    if known.len() < MIN_ROUNDS {
        return None;
    }
    let mib = median(&known)?;
    let range = Interval { low: quantile(&known, 0.05)?, high: quantile(&known, 0.95)? };
    Some(CacheShare { rounds: known.len(), mib, range, is_more: mib >= WHOLE * largest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// A minute of rounds, in which others take `taken` MiB of 16 for a share of the time.
    fn minute(share: f64, taken: f64) -> Vec<f64> {
        let mut rng = Rng::with_seed(3);
        let round = |at: usize| {
            let is_taken = (at as f64 / 20.0).fract() < share;
            let ours = if is_taken { 16.0 - taken } else { 16.0 };
            ours * (0.97 + 0.06 * rng.f64())
        };
        (0..120).map(round).collect()
    }

    #[test]
    fn what_is_ours_and_how_it_scatters() {
        let still = cache_share(&minute(0.0, 0.0), 64.0).expect("rounds");
        assert!((still.mib - 16.0).abs() < 0.3 && !still.moves() && !still.is_more, "{still:?}");
        assert!(still.range.low > 15.4 && still.range.high < 16.6, "{still:?}");
        let now_and_then = cache_share(&minute(0.3, 12.0), 64.0).expect("rounds");
        assert!((now_and_then.mib - 16.0).abs() < 0.6 && now_and_then.moves(), "{now_and_then:?}");
        assert!((now_and_then.range.low - 4.0).abs() < 0.3, "{now_and_then:?}");
        let mostly = cache_share(&minute(0.8, 12.0), 64.0).expect("rounds");
        assert!((mostly.mib - 4.0).abs() < 0.3 && mostly.moves(), "{mostly:?}");
        let always = cache_share(&minute(1.0, 12.0), 64.0).expect("rounds");
        assert!(!always.moves(), "{always:?}");
    }

    #[test]
    fn a_working_set_that_stays_is_a_least_and_few_rounds_say_nothing() {
        assert!(cache_share(&minute(0.0, 0.0), 16.0).expect("rounds").is_more);
        assert_eq!(cache_share(&minute(0.0, 0.0)[..MIN_ROUNDS - 1], 64.0), None);
        let unknown = [vec![f64::NAN; 40], vec![8.0; MIN_ROUNDS]].concat();
        assert_eq!(cache_share(&unknown, 64.0).expect("rounds").rounds, MIN_ROUNDS);
    }
}
