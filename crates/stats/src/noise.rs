//! Noise whose truth is known: what every claim about a method is measured on.
//!
//! All of it is relative noise around the value 1, so that a true median, a true ratio and a true
//! number of modes exist, and all of it comes from a seed.

use fastrand::Rng;

/// How one independent value is made, as a factor around 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// `exp(cv z)`, z standard normal.
    Lognormal { cv: f64 },
    /// `1 + share * e`, e exponential with mean 1: a floor that is only ever added to, as with most
    /// timings.
    FloorExponential { share: f64 },
    /// `1 / (1 + share * e)`: the same timing, read as a rate.
    CeilingExponential { share: f64 },
    /// `1 + scale * t`, t Student's with 3 degrees of freedom: heavy on both sides.
    Student3 { scale: f64 },
    /// `exp(cv z)`, and one value in ten slower by a further exponential share with mean `slow`.
    SlowTail { cv: f64, slow: f64 },
    /// `exp(cv z)`, times `ratio` for a share `minority` of the values: two true modes.
    TwoModes { cv: f64, ratio: f64, minority: f64 },
    /// `exp(cv z)`, times 1, `ratio` or `ratio²` with equal chances: three true modes.
    ThreeModes { cv: f64, ratio: f64 },
}

impl Noise {
    pub fn draw(self, rng: &mut Rng) -> f64 {
        let around = self.around_a_mode(rng);
        around * self.mode(rng)
    }

    /// A value but for the mode that it belongs to.
    fn around_a_mode(self, rng: &mut Rng) -> f64 {
        match self {
            Noise::Lognormal { cv } | Noise::TwoModes { cv, .. } | Noise::ThreeModes { cv, .. } => {
                (cv * normal(rng)).exp()
            }
            Noise::FloorExponential { share } => 1.0 + share * exponential(rng),
            Noise::CeilingExponential { share } => 1.0 / (1.0 + share * exponential(rng)),
            Noise::Student3 { scale } => {
                let chi_square: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                1.0 + scale * normal(rng) / (chi_square / 3.0).sqrt()
            }
            Noise::SlowTail { cv, slow } => {
                let value = (cv * normal(rng)).exp();
                if rng.f64() < 0.1 { value * (1.0 + slow * exponential(rng)) } else { value }
            }
        }
    }

    /// The level of a mode; 1 of noise with one mode, for which nothing is drawn.
    fn mode(self, rng: &mut Rng) -> f64 {
        match self {
            Noise::TwoModes { ratio, minority, .. } => ratio.powi(i32::from(rng.f64() < minority)),
            Noise::ThreeModes { ratio, .. } => ratio.powi(rng.i32(0..3)),
            _ => 1.0,
        }
    }

    fn has_modes(self) -> bool {
        matches!(self, Noise::TwoModes { .. } | Noise::ThreeModes { .. })
    }

    /// A process of windows that share `icc` of the variance of their logarithm: each is the sum of
    /// a draw of the process and one of the window, weighted by √icc and √(1 - icc). A mode belongs
    /// to the whole process with probability `icc`, else to the window.
    fn shared(self, icc: f64, windows: usize, rng: &mut Rng) -> Vec<f64> {
        // Student's t with a scale of 2 % reaches below zero once in 100,000 draws, where there is
        // no logarithm.
        let drawn = |rng: &mut Rng| self.around_a_mode(rng).max(0.01).ln();
        let (between, within) = (icc.sqrt(), (1.0 - icc).sqrt());
        let own = between * drawn(rng);
        let mode = (self.has_modes() && rng.f64() < icc).then(|| self.mode(rng));
        let window = |rng: &mut Rng| {
            let around = (own + within * drawn(rng)).exp();
            around * mode.unwrap_or_else(|| self.mode(rng))
        };
        (0..windows).map(|_| window(rng)).collect()
    }

    pub fn series(self, n: usize, rng: &mut Rng) -> Vec<f64> {
        (0..n).map(|_| self.draw(rng)).collect()
    }

    /// The distribution's own median.
    pub fn median(self) -> f64 {
        let half = std::f64::consts::LN_2;
        match self {
            Noise::FloorExponential { share } => 1.0 + share * half,
            Noise::CeilingExponential { share } => 1.0 / (1.0 + share * half),
            Noise::SlowTail { cv, slow } => bisect(|x| slow_tail_below(x, cv, slow) < 0.5, 0.5, 2.0),
            Noise::TwoModes { cv, ratio, minority } => {
                let parts = [(1.0 - minority, 1.0), (minority, ratio)];
                bisect(|x| lognormals_below(x, cv, &parts) < 0.5, 0.5 * ratio.min(1.0), 2.0 * ratio.max(1.0))
            }
            Noise::ThreeModes { cv, ratio } => {
                let parts = [1.0, ratio, ratio * ratio].map(|level| (1.0 / 3.0, level));
                bisect(
                    |x| lognormals_below(x, cv, &parts) < 0.5,
                    0.5 * ratio.min(1.0).powi(2),
                    2.0 * ratio.max(1.0).powi(2),
                )
            }
            Noise::Lognormal { .. } | Noise::Student3 { .. } => 1.0,
        }
    }
}

/// How windows of one process hang together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inside {
    /// Windows are draws of the noise; processes do not differ.
    Independent,
    /// A share `icc` of the variance of the logarithm belongs to the process, and of modes that
    /// probability.
    Shared { icc: f64 },
    /// Log-normal only: first-order autoregressive windows with coefficient `phi`, processes
    /// independent.
    Autoregressive { phi: f64 },
}

/// `processes` lists of `windows` values each.
pub fn nested(
    noise: Noise,
    inside: Inside,
    processes: usize,
    windows: usize,
    rng: &mut Rng,
) -> Vec<Vec<f64>> {
    let cv = match noise {
        Noise::Lognormal { cv } => cv,
        _ => 0.0,
    };
    (0..processes)
        .map(|_| match inside {
            Inside::Independent => noise.series(windows, rng),
            Inside::Shared { icc } => noise.shared(icc, windows, rng),
            Inside::Autoregressive { phi } => {
                autoregressive(windows, phi, rng).iter().map(|z| (cv * z).exp()).collect()
            }
        })
        .collect()
}

/// A stationary first-order autoregressive series with standard normal margins.
pub fn autoregressive(n: usize, phi: f64, rng: &mut Rng) -> Vec<f64> {
    let fresh = (1.0 - phi * phi).max(0.0).sqrt();
    let mut state = normal(rng);
    (0..n)
        .map(|index| {
            if index > 0 {
                state = phi * state + fresh * normal(rng);
            }
            state
        })
        .collect()
}

/// A standard normal value (Box & Muller 1958).
pub fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// An exponential value with mean 1.
pub fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.f64()).ln()
}

/// P(slow-tail value <= x), by integrating the normal part over the tail's factor.
fn slow_tail_below(x: f64, cv: f64, slow: f64) -> f64 {
    let below = |x: f64| 1.0 - super::tails::normal_above(x.ln() / cv);
    const STEPS: usize = 2000;
    // Midpoints of equal slices of the exponential's probability.
    let slices = (0..STEPS).map(|step| -(1.0 - (step as f64 + 0.5) / STEPS as f64).ln());
    let tail: f64 = slices.map(|e| below(x / (1.0 + slow * e))).sum::<f64>() / STEPS as f64;
    0.9 * below(x) + 0.1 * tail
}

/// P(value <= x) of log-normal parts, each a share and a level.
fn lognormals_below(x: f64, cv: f64, parts: &[(f64, f64)]) -> f64 {
    parts.iter().map(|(share, level)| share * (1.0 - super::tails::normal_above((x / level).ln() / cv))).sum()
}

/// Where `low_side` turns false between `low` and `high`.
fn bisect(low_side: impl Fn(f64) -> bool, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if low_side(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::nested::intraclass;
    use super::super::order::{mean, median, variance};
    use super::*;

    #[test]
    fn medians_are_true() {
        let mut rng = Rng::with_seed(1);
        for noise in [
            Noise::Lognormal { cv: 0.03 },
            Noise::FloorExponential { share: 0.03 },
            Noise::CeilingExponential { share: 0.03 },
            Noise::Student3 { scale: 0.01 },
            Noise::SlowTail { cv: 0.01, slow: 0.1 },
            Noise::TwoModes { cv: 0.01, ratio: 1.1, minority: 0.3 },
            Noise::ThreeModes { cv: 0.01, ratio: 1.1 },
        ] {
            let got = median(&noise.series(200_000, &mut rng)).expect("values");
            assert!((got - noise.median()).abs() < 3e-4, "{noise:?}: {got} is not {}", noise.median());
        }
    }

    #[test]
    fn nested_noise_has_its_icc() {
        let mut rng = Rng::with_seed(2);
        let floor = Noise::FloorExponential { share: 0.03 };
        let modes = Noise::TwoModes { cv: 0.01, ratio: 1.1, minority: 0.3 };
        for noise in [Noise::Lognormal { cv: 0.02 }, floor, modes] {
            for icc in [0.0, 0.3, 0.8] {
                let groups = nested(noise, Inside::Shared { icc }, 4000, 5, &mut rng);
                let got = intraclass(&groups).expect("groups").value;
                assert!((got - icc).abs() < 0.03, "{noise:?} {icc}: {got}");
            }
        }
    }

    #[test]
    fn autoregressive_series_are_stationary() {
        let mut rng = Rng::with_seed(3);
        let series = autoregressive(200_000, 0.9, &mut rng);
        let lagged: f64 = series.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 199_999.0;
        assert!((variance(&series).expect("values") - 1.0).abs() < 0.05);
        assert!((lagged - 0.9).abs() < 0.05);
        assert!(mean(&series).expect("values").abs() < 0.05);
    }
}
