//! Many tests at once: p values corrected for their number.

/// Holm's step-down adjustment (1979): rejecting where the result is at most alpha keeps the chance
/// of *any* false rejection at alpha. In the order given; a p that is not a number counts as 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = rising(p);
    let mut adjusted = vec![1.0; p.len()];
    let mut highest = 0.0_f64;
    for (done, &index) in order.iter().enumerate() {
        highest = highest.max((p.len() - done) as f64 * clean(p[index])).min(1.0);
        adjusted[index] = highest;
    }
    adjusted
}

/// Benjamini and Hochberg's adjustment (1995): rejecting where the result is at most q keeps the
/// expected share of false ones among all rejections at q. In the order given; a p that is not a
/// number counts as 1.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    benjamini_hochberg_among(p, p.len())
}

/// The same of those p among this many tests that are not 1.
pub fn benjamini_hochberg_among(p: &[f64], tests: usize) -> Vec<f64> {
    let order = rising(p);
    let tests = tests.max(p.len()) as f64;
    let mut adjusted = vec![1.0; p.len()];
    let mut lowest = 1.0_f64;
    for (done, &index) in order.iter().enumerate().rev() {
        lowest = lowest.min(tests / (done + 1) as f64 * clean(p[index]));
        adjusted[index] = lowest;
    }
    adjusted
}

fn clean(p: f64) -> f64 {
    if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }
}

fn rising(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| clean(p[a]).total_cmp(&clean(p[b])));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?} is not {expected:?}");
    }

    /// By hand; the second also scipy 1.17.1 `false_discovery_control`.
    #[test]
    fn adjustments() {
        let p = [0.01, 0.04, 0.03, 0.005];
        near(&holm(&p), &[0.03, 0.06, 0.06, 0.02]);
        near(&benjamini_hochberg(&p), &[0.02, 0.04, 0.04, 0.02]);
        near(&holm(&[f64::NAN, 0.2]), &[1.0, 0.4]);
        near(&holm(&[]), &[]);
        near(&benjamini_hochberg(&[f64::NAN]), &[1.0]);
        let among = benjamini_hochberg(&[0.01, 0.004, 0.03, 1.0, 1.0, 1.0]);
        near(&benjamini_hochberg_among(&[0.01, 0.004, 0.03], 6), &among[..3]);
    }
}
