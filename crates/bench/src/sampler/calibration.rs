//! How many iterations a sample has, and whether twice the work takes twice the time.

use anyhow::bail;

use super::{Body, STEPS};
use crate::Depth;

/// Calibration never tries more often than this; ×8 each, so 24 tries reach 2^64 iterations.
const CALIBRATION_TRIES: usize = 24;
/// A sample of at least this share of the wanted length will do.
const LONG_ENOUGH: f64 = 0.9;
/// Growth while far off, and the aim of a step in proportion: 5 % more, so that it need not fall
/// short.
const GROWTH: u64 = 8;
const AIM: f64 = 1.05;

/// `assay explain calibration`, as docs/method/measuring.md has it.
pub fn explained() -> Vec<(&'static str, String)> {
    let ms = |depth: Depth| depth.windows().window_ns / 1e6;
    let [quick, standard, full] = Depth::ALL.map(ms);
    vec![
        (
            "What it is for",
            format!(
                "One operation is shorter than a step of the clock, so a sample times many of them. It lasts {quick}, {standard} or {full} ms (quick, standard, full) and at least {STEPS} steps of the clock. Reading the clock is then an error of at most 0.1 %."
            ),
        ),
        (
            "How the count is found",
            format!(
                "It starts with 1 iteration. While a try takes less than 1/{GROWTH} of a sample, the count grows {GROWTH} times. Then it grows in proportion to the time, aiming {:.0} % higher. {:.0} % of a sample is enough. A long enough try is repeated, because an interrupt can lengthen one try. After {CALIBRATION_TRIES} tries it ends with an error.",
                (AIM - 1.0) * 100.0,
                LONG_ENOUGH * 100.0
            ),
        ),
        (
            "What checks it",
            format!(
                "Twice the work must take twice the time. |t(2n) / 2 t(n) - 1| is stored with the samples: one try if it is below {} %, else the better of two. The report shows the largest. Every pass calibrates again.",
                LINEAR * 100.0
            ),
        ),
    ]
}

/// Iterations that fill a sample. Bounded in tries; grows while far off, then in proportion (as
/// lmbench does).
pub fn calibrate(window_ns: f64, body: Body) -> anyhow::Result<u64> {
    let mut iterations = 1u64;
    let mut longest: f64 = 0.0;
    for _ in 0..CALIBRATION_TRIES {
        let mut ns = body(iterations)?;
        if ns >= window_ns * LONG_ENOUGH {
            // Another task or an interrupt makes one try long, hardly two: samples of a few
            // iterations would follow.
            ns = ns.min(body(iterations)?);
        }
        longest = longest.max(ns);
        if ns >= window_ns * LONG_ENOUGH {
            // One iteration may be far longer than a sample; more never are, by the proportional
            // step below.
            return Ok(scaled(iterations, window_ns / ns).max(1));
        }
        iterations = match ns > window_ns / GROWTH as f64 {
            true => scaled(iterations, AIM * window_ns / ns).max(iterations + 1),
            false => iterations.saturating_mul(GROWTH),
        };
    }
    bail!(
        "up to {iterations} iterations did not fill a sample of {window_ns:.0} ns (the longest took {longest:.0} ns)"
    )
}

fn scaled(iterations: u64, factor: f64) -> u64 {
    (iterations as f64 * factor).min(u64::MAX as f64 / 16.0) as u64
}

/// Below this residual one check is enough.
const LINEAR: f64 = 0.005;

/// `|t(2n) / 2 t(n) - 1|`, the smaller of up to two tries: twice the work must take twice the time,
/// or something else than the work was timed.
pub fn linearity(iterations: u64, body: Body) -> anyhow::Result<f64> {
    let half = iterations.div_ceil(2);
    let mut best = 1.0f64;
    for _ in 0..2 {
        let (short, long) = (body(half)?, body(half * 2)?);
        if short > 0.0 {
            best = best.min((long / (2.0 * short) - 1.0).abs());
        }
        if best <= LINEAR {
            break;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body whose iterations take `ns_each` by a clock that we make up.
    fn body(ns_each: f64) -> impl FnMut(u64) -> anyhow::Result<f64> {
        move |iterations| Ok(iterations as f64 * ns_each)
    }

    #[test]
    fn calibration_fills_the_window() {
        for ns_each in [0.01, 0.3, 5.0, 70_000.0, 1.9e6] {
            let iterations = calibrate(2e6, &mut body(ns_each)).expect("calibrates");
            let window = iterations as f64 * ns_each;
            assert!((0.85 * 2e6..2e6 * 1.05).contains(&window), "{ns_each}: {window}");
        }
        assert_eq!(calibrate(2e6, &mut body(1e9)).expect("one is enough"), 1);
    }

    #[test]
    fn a_try_that_was_interrupted_does_not_end_calibration() {
        for interrupted in 1..12 {
            let mut calls = 0;
            let iterations = calibrate(2e6, &mut |iterations| {
                calls += 1;
                Ok(iterations as f64 * 5.0 + if calls == interrupted { 4e6 } else { 0.0 })
            });
            let window = iterations.expect("calibrates") as f64 * 5.0;
            assert!((0.85 * 2e6..2e6 * 1.05).contains(&window), "call {interrupted}: {window}");
        }
    }

    #[test]
    fn a_clock_that_stands_still_ends_calibration_with_an_error() {
        let mut calls = 0;
        let error = calibrate(1e6, &mut |_| {
            calls += 1;
            Ok(0.0)
        });
        assert!(error.expect_err("nothing moves").to_string().contains("did not fill a sample"));
        assert_eq!(calls, CALIBRATION_TRIES);
    }

    #[test]
    fn a_fixed_cost_shows_in_the_linearity() {
        let residual = linearity(100, &mut body(10.0)).expect("timed");
        assert!(residual < 1e-9);
        let fixed = linearity(100, &mut |iterations| Ok(1000.0 + iterations as f64 * 10.0)).expect("timed");
        assert!(fixed > 0.2, "{fixed}");
    }
}
