//! Where a curve that rose slowly begins to rise fast: latency over load has such a point.

/// A knee must lie at least this far below the chord, as a share of the whole rise: noise on a
/// straight line stays above.
const MIN_DEPTH: f64 = 0.25;

/// A curve that rises by less than this share of where it began is flat: noise of 3 % at both ends
/// stays below.
const MIN_RISE: f64 = 0.25;

/// The index of the knee: of all points the one farthest below the chord from the first to the last
/// by x, with both axes scaled to 0..1. `None` for curves that are flat, straight, or bent upwards.
pub fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let finite = |index: &usize| points[*index].0.is_finite() && points[*index].1.is_finite();
    let mut order: Vec<usize> = (0..points.len()).filter(finite).collect();
    order.sort_by(|one, other| points[*one].0.total_cmp(&points[*other].0));
    let (first, last) = (points[*order.first()?], points[*order.last()?]);
    let (width, rise) = (last.0 - first.0, last.1 - first.1);
    let ys = || order.iter().map(|index| points[*index].1);
    let height = ys().fold(f64::NEG_INFINITY, f64::max) - ys().fold(f64::INFINITY, f64::min);
    if !(width > 0.0 && rise > MIN_RISE * first.1.abs() && width.is_finite() && height.is_finite()) {
        return None;
    }
    // Below the chord the vertical distance and that at a right angle to it are largest at the same
    // point.
    let depth = |index: usize| {
        let (x, y) = points[index];
        (first.1 + rise * ((x - first.0) / width) - y) / height
    };
    let deepest = order.into_iter().max_by(|one, other| depth(*one).total_cmp(&depth(*other)))?;
    (depth(deepest) >= MIN_DEPTH).then_some(deepest)
}

#[cfg(test)]
mod tests {
    use super::super::noise::Noise;
    use super::*;

    fn sampled(count: usize, curve: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..count).map(|index| index as f64 / (count - 1) as f64).map(|x| (x, curve(x))).collect()
    }

    /// Flat to 0.7, then ten times as steep as anything before.
    fn bent(x: f64) -> f64 {
        100.0 + 20.0 * x + if x > 0.7 { 1000.0 * (x - 0.7) } else { 0.0 }
    }

    #[test]
    fn known_curves_have_their_known_knee() {
        // 1 / (1 - x) up to 0.95 has the slope of its chord (20) where 1 - x is the root of 1/20:
        // at 0.776.
        let queue = sampled(96, |x| 1.0 / (1.0 - 0.95 * x));
        let found = knee(&queue).expect("a knee");
        assert!((queue[found].0 * 0.95 - 0.776).abs() < 0.006, "{:?}", queue[found]);
        let points = sampled(11, bent);
        assert_eq!(knee(&points), Some(7));
        // Order and scale decide nothing.
        let scaled: Vec<(f64, f64)> = points.iter().rev().map(|(x, y)| (300.0 * x, y / 100.0)).collect();
        assert_eq!(knee(&scaled), Some(3));
        // Neither do points without a value.
        let holed: Vec<(f64, f64)> =
            [(0.5, f64::NAN), (f64::INFINITY, 1.0)].into_iter().chain(points).collect();
        assert_eq!(knee(&holed), Some(9));
    }

    #[test]
    fn a_wall_has_its_knee_at_its_foot() {
        // Overloaded memory moves less than at its best, while its latency still grows.
        let points = [
            (1.0, 100.0),
            (10.0, 104.0),
            (20.0, 115.0),
            (23.0, 140.0),
            (25.0, 300.0),
            (24.5, 500.0),
            (24.8, 420.0),
        ];
        assert_eq!(knee(&points), Some(3));
    }

    #[test]
    fn flat_and_straight_and_falling_curves_have_none() {
        assert_eq!(knee(&sampled(12, |_| 5.0)), None);
        assert_eq!(knee(&sampled(12, |x| 5.0 + 50.0 * x)), None);
        assert_eq!(knee(&sampled(12, |x| 5.0 - x * x)), None);
        assert_eq!(knee(&sampled(12, f64::sqrt)), None, "saturating: above its chord");
        let few = [(1.0, 1.0), (2.0, 2.0)];
        for count in 0..=2 {
            assert_eq!(knee(&few[..count]), None);
        }
        assert_eq!(knee(&[(1.0, 1.0), (1.0, 2.0), (1.0, 9.0)]), None, "no width");
    }

    #[test]
    fn noise_neither_makes_a_knee_nor_hides_one() {
        let noise = Noise::Lognormal { cv: 0.03 };
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let mut noisy = |curve: fn(f64) -> f64| {
                sampled(15, curve).into_iter().map(|(x, y)| (x, y * noise.draw(&mut rng))).collect::<Vec<_>>()
            };
            assert_eq!(knee(&noisy(|_| 100.0)), None);
            assert_eq!(knee(&noisy(|x| 100.0 + 100.0 * x)), None);
            let at = knee(&noisy(bent)).expect("a knee");
            assert!((9..=10).contains(&at), "{at}");
        }
    }
}
