//! Percentiles: names of their metrics, and the observations that one needs.

/// Why a percentile has no value: fewer than ten observations lie beyond it. `None` if there are
/// enough, or their number is unknown.
pub fn too_few_beyond(percent: f64, observations: Option<f64>, printed: &str) -> Option<String> {
    let n = observations?;
    // A percentile of 99.9 is 99.90000000000001 to the processor.
    let beyond = n * percent.min(100.0 - percent).max(0.0) / 100.0 + 1e-6;
    (beyond < 10.0).then(|| {
        format!(
            "fewer than 10 observations beyond the percentile ({beyond:.1} of {n}): the printed {printed} is an extreme value"
        )
    })
}

/// A percentile's metric: `latency_p50`, `latency_p999` for 99.9.
pub fn percentile_name(stem: &str, percent: &str) -> Option<String> {
    let value: f64 = percent.parse().ok()?;
    let plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !plain || value <= 0.0 || value >= 100.0 {
        return None;
    }
    let digits =
        if percent.contains('.') { percent.trim_end_matches('0').trim_end_matches('.') } else { percent };
    // Two digits before the point if any follow it: 2.5 is `025`, not `25`.
    let pad = if digits.find('.') == Some(1) { "0" } else { "" };
    Some(format!("{stem}_p{pad}{}", digits.replace('.', "")))
}

/// The stem of a percentile's metric, and the percentile.
pub fn percentile_of(metric: &str) -> Option<(&str, f64)> {
    let (stem, digits) = metric.rsplit_once("_p")?;
    let (whole, decimals) = digits.split_at_checked(2).unwrap_or((digits, ""));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Some((stem, format!("{whole}.{decimals}0").parse().ok()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_names_of_their_own() {
        let name = |percent| percentile_name("latency", percent);
        assert_eq!(name("50.000000").as_deref(), Some("latency_p50"));
        assert_eq!(name("99.99").as_deref(), Some("latency_p9999"));
        assert_eq!(name("99.950000").as_deref(), Some("latency_p9995"));
        assert_eq!(name("10").as_deref(), Some("latency_p10"));
        assert_eq!(name("1.00").as_deref(), Some("latency_p1"));
        assert_eq!(name("2.5").as_deref(), Some("latency_p025"));
        for percent in ["1", "2.5", "0.1", "25", "50", "99", "99.9", "99.99"] {
            let metric = name(percent).expect(percent);
            assert_eq!(percentile_of(&metric), percent.parse().ok().map(|at| ("latency", at)), "{percent}");
        }
        assert_eq!(
            (percentile_of("latency_max"), percentile_of("latency_p"), percentile_of("a_ping")),
            (None, None, None)
        );
        assert_eq!((name("0.00"), name("100"), name("nan"), name("")), (None, None, None, None));
    }

    #[test]
    fn ten_observations_must_lie_beyond_a_percentile() {
        assert!(too_few_beyond(99.999, Some(8711.0), "414 us").expect("too few").contains("(0.1 of 8711)"));
        assert_eq!(too_few_beyond(99.9, Some(10_000.0), ""), None);
        assert!(too_few_beyond(99.9, Some(9_999.0), "").is_some());
        assert!(too_few_beyond(1.0, Some(500.0), "").is_some());
        assert_eq!(too_few_beyond(50.0, None, ""), None);
    }
}
