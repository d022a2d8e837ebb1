//! Tail probabilities and quantiles of the normal, t, F, chi-square and binomial distributions, and
//! the one way in which a permutation test gets its p. Nothing here panics: what is undefined is
//! `None`.

use fastrand::Rng;
use statrs::function::{beta, erf, gamma};

/// P(Z > z) of the standard normal distribution.
pub fn normal_above(z: f64) -> f64 {
    if z.is_nan() { 1.0 } else { 0.5 * erf::erfc(z / std::f64::consts::SQRT_2) }
}

/// Two-sided p of a standard normal statistic; 1 for one that is not a number.
pub fn normal_two_sided(z: f64) -> f64 {
    (2.0 * normal_above(z.abs())).min(1.0)
}

/// Quantile of the standard normal distribution; `None` outside 0 < p < 1.
pub fn normal_quantile(p: f64) -> Option<f64> {
    (p > 0.0 && p < 1.0).then(|| -std::f64::consts::SQRT_2 * erf::erfc_inv(2.0 * p))
}

/// Two-sided p of Student's t with `freedom` > 0 degrees; 1 for a statistic that is not a number.
pub fn t_two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    beta::beta_reg(freedom / 2.0, 0.5, (freedom / (freedom + t * t)).clamp(0.0, 1.0))
}

/// The t that |T| exceeds with probability `1 - confidence`; `None` outside 0 < confidence < 1,
/// freedom > 0.
pub fn t_quantile(confidence: f64, freedom: f64) -> Option<f64> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let y = beta_quantile(freedom / 2.0, 0.5, 1.0 - confidence)?;
    let t = (freedom * (1.0 - y) / y).sqrt();
    t.is_finite().then_some(t)
}

/// Quantile `p` of F with (`above`, `below`) degrees of freedom; `None` outside 0 < p < 1 or for no
/// freedom.
pub fn f_quantile(p: f64, above: f64, below: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let z = beta_quantile(above / 2.0, below / 2.0, p)?;
    let f = below * z / (above * (1.0 - z));
    (f.is_finite() && f > 0.0).then_some(f)
}

/// Quantile of the beta distribution by bisection: slow (some µs), but it ends for every input,
/// which the library's own search did not.
fn beta_quantile(a: f64, b: f64, p: f64) -> Option<f64> {
    if !(a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()) {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if high - low <= 1e-14 * middle {
            break;
        }
        if beta::beta_reg(a, b, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((low + high) / 2.0)
}

/// P(X > x) of chi-square with `freedom` > 0 degrees; 1 where undefined.
pub fn chi_square_above(x: f64, freedom: f64) -> f64 {
    if x.is_nan() || x <= 0.0 || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if x.is_infinite() {
        return 0.0;
    }
    gamma::gamma_ur(freedom / 2.0, x / 2.0)
}

/// ln of the binomial coefficient; minus infinity where k > n.
pub fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    let ln_factorial = |n: u64| gamma::ln_gamma(n as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Two-sided p of the sign test: `successes` of `n` fair coins (Dixon & Mood 1946); 1 for n = 0.
pub fn sign_test(successes: usize, n: usize) -> f64 {
    let extreme = successes.max(n.saturating_sub(successes));
    if successes > n {
        return 1.0;
    }
    let ln_half = n as f64 * std::f64::consts::LN_2;
    let tail: f64 = (extreme..=n).map(|k| (ln_choose(n as u64, k as u64) - ln_half).exp()).sum();
    (2.0 * tail).min(1.0)
}

/// p of a permutation test, of which `exceeds` makes one permutation and reports whether its
/// statistic is at least the observed one. Stops early once 20 did (Besag & Clifford 1991: p is
/// valid either way), so that data without an effect costs about 40 permutations; else `most` are
/// made.
pub fn permutation_p(most: usize, seed: u64, mut exceeds: impl FnMut(&mut Rng) -> bool) -> f64 {
    const ENOUGH: usize = 20;
    let mut rng = Rng::with_seed(seed);
    let mut exceeded = 0;
    for made in 1..=most {
        exceeded += usize::from(exceeds(&mut rng));
        if exceeded == ENOUGH {
            return ENOUGH as f64 / made as f64;
        }
    }
    (exceeded + 1) as f64 / (most + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 1e-8, "{got} is not {expected}");
    }

    /// References: scipy 1.17.1 (`stats.f.ppf`, `t.ppf`, `t.sf`, `norm.ppf`, `chi2.sf`,
    /// `binomtest`).
    #[test]
    fn quantiles_and_tails() {
        for (p, above, below, f) in [
            (0.05, 5.0, 114.0, 0.22726240835751618),
            (0.05, 1.0, 2000.0, 0.003933127025073969),
            (0.05, 2.0, 57.0, 0.05133948002183918),
            (0.01, 39.0, 760.0, 0.5438696458240947),
            (0.95, 3.0, 7.0, 4.346831399907814),
            (0.05, 2.0, 4.0, 0.0519567041703082),
        ] {
            near(f_quantile(p, above, below).expect("defined"), f);
        }
        for (confidence, freedom, t) in [
            (0.95, 1.0, 12.706204736174694),
            (0.95, 5.0, 2.5705818356363146),
            (0.99, 29.0, 2.756385903670605),
            (0.8, 2.0, 1.8856180831641272),
            (0.95, 1000.0, 1.9623390808264083),
        ] {
            near(t_quantile(confidence, freedom).expect("defined"), t);
        }
        near(t_two_sided(2.0, 5.0), 0.10193947882985835);
        near(t_two_sided(-1.3, 9.0), 0.22590637267304933);
        near(t_two_sided(4.5, 3.0), 0.0204904123444534);
        near(normal_quantile(0.975).expect("defined"), 1.959963984540054);
        near(normal_quantile(0.0001).expect("defined"), -3.7190164854556804);
        near(chi_square_above(3.84, 1.0), 0.05004352124870519);
        near(chi_square_above(10.0, 4.0), 0.04042768199451279);
        near(normal_two_sided(1.959963984540054), 0.05);
    }

    #[test]
    fn sign_tests() {
        near(sign_test(6, 6), 2.0 / 64.0);
        near(sign_test(1, 8), 2.0 * 9.0 / 256.0);
        assert_eq!(sign_test(4, 8), 1.0);
        assert_eq!(sign_test(0, 0), 1.0);
        assert_eq!(sign_test(3, 2), 1.0);
    }

    #[test]
    fn undefined_is_not_a_panic() {
        for bad in [f64::NAN, -1.0, 0.0, 1.0, 2.0, f64::INFINITY] {
            let _ = (
                normal_quantile(bad),
                t_quantile(bad, 5.0),
                t_quantile(0.95, bad),
                f_quantile(bad, bad, bad),
            );
            let _ = (t_two_sided(bad, bad), chi_square_above(bad, bad), normal_two_sided(bad));
        }
        assert_eq!(t_two_sided(f64::NAN, 3.0), 1.0);
        assert_eq!(ln_choose(2, 3), f64::NEG_INFINITY);
    }

    #[test]
    fn a_permutation_test_ends_early_only_without_effect() {
        let mut made = 0;
        let p = permutation_p(999, 1, |rng| {
            made += 1;
            rng.f64() < 0.5
        });
        assert!(made < 80 && (0.3..0.7).contains(&p), "{made} made, p = {p}");
        assert_eq!(permutation_p(999, 1, |_| false), 0.001);
    }
}
