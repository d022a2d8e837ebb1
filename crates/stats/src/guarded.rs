//! The interval of few processes: Student's t on the logarithms, stretched to inner order
//! statistics.
//!
//! The exact interval of a median needs six processes and is the whole range up to eight. This one
//! speaks from five on and is a quarter narrower at seven. What it pays is the promise for any
//! distribution: below fifteen processes its coverage was simulated (`prove`, table "guarded"), not
//! proved. The t is taken at 97 % and the interval called one of 95 %: the difference pays for
//! skew, for few processes and for a look after every visit; the order statistics keep two modes
//! inside.

use super::order::{Interval, mean, sorted, variance};

/// The counts of processes that it is for.
pub const GUARDED: std::ops::RangeInclusive<usize> = 5..=14;

/// For each n of [`GUARDED`] Student's t with n - 1 degrees of freedom at 98.5 % (both sides: 97 %)
/// and at 96 % (92 %), and twice the rank of the inner order statistic: half ranks are the middle
/// of two.
const TABLE: [(f64, f64, usize); 10] = [
    (3.2976, 2.3329, 4),
    (3.0029, 2.1910, 4),
    (2.8289, 2.1043, 4),
    (2.7146, 2.0460, 4),
    (2.6338, 2.0042, 5),
    (2.5738, 1.9727, 6),
    (2.5275, 1.9481, 6),
    (2.4907, 1.9284, 7),
    (2.4607, 1.9123, 8),
    (2.4358, 1.8989, 8),
];

/// `assay explain interval`.
pub fn explained() -> Vec<(&'static str, String)> {
    let (first, last) = (GUARDED.start(), GUARDED.end());
    vec![
        (
            "What it means",
            "The ± of a figure is its 95 % interval. In simulations, at least 94 of 100 such \
             intervals contain the true median of the run. It covers the scatter inside one run. Another run on \
             another day may differ: assay compare judges that."
                .to_string(),
        ),
        (
            "What to do with it",
            "Two figures differ if their intervals do not touch. If they overlap, let assay compare decide. A \
             wide interval needs more passes: --profile standard."
                .to_string(),
        ),
        (
            "How it is computed",
            format!(
                "A pass is one process and gives one value, the median of its samples; samples of one process \
                 are not independent. With {first}–{last} passes the interval is Student's t on the logarithms. It is \
                 taken at 97 %, to allow for skew and few passes, and stretched to inner order statistics so that two \
                 modes stay inside. From {} passes on it comes from order statistics and assumes no distribution. Below {first} there is none.",
                last + 1
            ),
        ),
        (
            "What is behind it",
            "Simulations tested its coverage with skewed, heavy-tailed, two-valued and autocorrelated noise: \
             docs/method/statistics.md. A core-bound figure is given at one core clock of the run; its interval \
             includes that step."
                .to_string(),
        ),
    ]
}

/// By how many standard deviations of ln(value) the interval reaches to either side with `n`
/// processes: t / sqrt(n) of [`GUARDED`]; the normal approximation of the exact interval's width
/// above; `None` below.
pub fn reach(n: usize) -> Option<f64> {
    let factor = match n {
        n if GUARDED.contains(&n) => TABLE[n - GUARDED.start()].0,
        n if n > *GUARDED.end() => 2.456,
        _ => return None,
    };
    Some(factor / (n as f64).sqrt())
}

/// The interval around ln of the median of `logarithms`, one a process, that are worth as many
/// processes as there are: `[min(x̄ - h, x_(k)), max(x̄ + h, x_(n+1-k))]` with `h = t s / sqrt(n)`.
/// `None` outside [`GUARDED`].
pub fn guarded(logarithms: &[f64]) -> Option<Interval> {
    with_t(logarithms, |(reported, _, _)| reported)
}

/// The same with t at 92 %: for two one-sided tests at 5 %, by which two medians are called the
/// same.
pub fn guarded_for_sameness(logarithms: &[f64]) -> Option<Interval> {
    with_t(logarithms, |(_, sameness, _)| sameness)
}

fn with_t(logarithms: &[f64], t: impl Fn((f64, f64, usize)) -> f64) -> Option<Interval> {
    let rising = sorted(logarithms);
    let n = rising.len();
    if !GUARDED.contains(&n) {
        return None;
    }
    let row = TABLE[n - GUARDED.start()];
    let half = t(row) / (n as f64).sqrt() * variance(&rising)?.sqrt();
    let centre = mean(&rising)?;
    let twice_rank = row.2;
    let inner = |from_below: bool| {
        let at = |rank: usize| if from_below { rising[rank - 1] } else { rising[n - rank] };
        (at(twice_rank / 2) + at(twice_rank.div_ceil(2))) / 2.0
    };
    Some(Interval { low: inner(true).min(centre - half), high: inner(false).max(centre + half) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Interval {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let found = guarded(&logarithms).expect("enough");
        Interval { low: found.low.exp(), high: found.high.exp() }
    }

    #[track_caller]
    fn near(found: Interval, low: f64, high: f64) {
        assert!((found.low - low).abs() < 5e-4 && (found.high - high).abs() < 5e-4, "{found:?}");
    }

    #[test]
    fn the_values_of_the_method() {
        near(of(&[50.0, 51.0, 50.5, 49.8, 52.0, 50.2, 50.9]), 49.832, 51.428);
        near(of(&[60.1, 59.8, 54.0, 52.6, 60.4, 54.3, 59.9]), 53.578, 61.085);
    }

    #[test]
    fn it_speaks_of_five_to_fourteen() {
        for n in 0..20 {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i) / 100.0).collect();
            let found = guarded(&values);
            assert_eq!(found.is_some(), (5..=14).contains(&n), "{n}");
            let middle = f64::from(n - 1) / 200.0;
            assert!(found.is_none_or(|interval| interval.contains(middle)), "{n}: {found:?}");
        }
    }

    /// Two modes, three processes to four: t alone would leave out neither, the inner order
    /// statistics hold both.
    #[test]
    fn two_modes_stay_inside() {
        let found = guarded(&[0.0, 0.001, 0.002, 0.1, 0.101, 0.102, 0.103]).expect("enough");
        assert!(found.low <= 0.001 && found.high >= 0.102, "{found:?}");
    }
}
