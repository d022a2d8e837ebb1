//! From what is known of a series to one word and one sentence: whether its number can be trusted.
//!
//! What the environment did, and what rules find out, is added later by others; this is what the
//! values say.

use super::behaviour::{Behaviour, Drift};
use super::change::Change;
use super::estimate::{Estimate, Unit, least_processes};
use super::modes::{CONFIRMING_MODES, Modality, Modes};
use super::outliers::Attribution;
use super::stop::runs_needed;
use model::{Covariates, Verdict, VerdictKind, counted, figure, percent};

/// All that a verdict rests on.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'a> {
    pub estimate: &'a Estimate,
    pub behaviour: &'a Behaviour,
    /// Relative half-width asked of the reported interval: 0.01 = ±1 %.
    pub precision: f64,
    /// Unit of the values, as `GB/s`; may be empty.
    pub unit: &'a str,
    /// A label that goes with the modes (`cpu`, `huge pages`), where one does.
    pub mode_cause: Option<&'a str>,
    /// Outliers with what explains them, and the estimate without the explained ones.
    pub without_explained: Option<(&'a Attribution, &'a Estimate)>,
}

/// The verdict, and how many more processes would be needed where that would help.
pub fn judge(judgement: &Judgement) -> (Verdict, Option<usize>) {
    let Judgement { estimate, behaviour, .. } = judgement;
    if let Some(drift) = &behaviour.drift {
        return (Verdict::new(VerdictKind::Drifting, drift_words(drift, judgement)), None);
    }
    if let Some(verdict) = judge_modes(judgement) {
        return verdict;
    }
    let half = estimate.relative_half_width();
    if half.is_some_and(|half| half <= judgement.precision) {
        return (Verdict::trusted(), None);
    }
    if let Some(verdict) = judge_without_explained(judgement) {
        return (verdict, None);
    }
    let more = more_needed(judgement);
    let reason = match half {
        _ if estimate.interval.is_none() => no_interval_words(estimate),
        None => "the median is zero, so its interval has no relative width".to_string(),
        Some(half) => {
            let (got, asked) = (percent(half), percent(judgement.precision));
            let more = counted(more.unwrap_or(0), "more pass");
            format!("±{got} from {}; ±{asked} needs about {more}", number_of(estimate))
        }
    };
    (Verdict::new(VerdictKind::Imprecise, reason), more)
}

fn judge_modes(judgement: &Judgement) -> Option<(Verdict, Option<usize>)> {
    let behaviour = judgement.behaviour;
    let n = judgement.estimate.processes;
    let words = |modes: &Modes| modes_words(modes, judgement.unit);
    let certain = |modes: &Modes, what: &str| {
        let cause = judgement
            .mode_cause
            .map(|cause| format!("; related to the {}", Covariates::words(cause)))
            .unwrap_or_default();
        (Verdict::new(VerdictKind::Multimodal, format!("{}{what}{cause}", words(modes))), None)
    };
    match (&behaviour.modality, &behaviour.modes_inside) {
        (Modality::Several(modes), _) => Some(certain(modes, "")),
        (Modality::Suspected(modes), _) if judgement.mode_cause.is_some() => Some(certain(modes, "")),
        (_, Some(modes)) => Some(certain(modes, " inside single passes")),
        (Modality::Suspected(modes), None) => {
            let more = CONFIRMING_MODES.saturating_sub(n).max(1);
            let reason = format!("perhaps {}; {} decide", words(modes), counted(more, "more pass"));
            Some((Verdict::new(VerdictKind::Imprecise, reason), Some(more)))
        }
        (Modality::One | Modality::Unknown, None) => {
            let modes = behaviour.modes_left_free.as_ref()?;
            Some(certain(modes, " in samples of tasks left to the scheduler"))
        }
    }
}

/// Trusted after all, where explained outliers alone made the interval too wide.
fn judge_without_explained(judgement: &Judgement) -> Option<Verdict> {
    let (attribution, without) = judgement.without_explained?;
    let first = attribution.explanations.first().filter(|_| attribution.may_leave_out())?;
    let half = without.relative_half_width().filter(|half| *half <= judgement.precision)?;
    let explained = attribution.explained.iter().filter(|&&explained| explained).count();
    let reason = format!(
        "{explained} of {} explained, mostly by {}; without them {} ±{}",
        counted(attribution.outliers(), "outlier"),
        Covariates::words(&first.covariate),
        figure(without.median, judgement.unit),
        percent(half),
    );
    Some(Verdict::new(VerdictKind::TrustedWithCause, reason))
}

/// Processes that are missing: by the spread of the processes, or by the width of the interval
/// where that says that there are enough already.
fn more_needed(judgement: &Judgement) -> Option<usize> {
    let estimate = judgement.estimate;
    let least = least_processes(estimate.confidence);
    let by_spread = match estimate.unit {
        Unit::Processes => runs_needed(estimate.cv_robust?, judgement.precision, estimate.confidence),
        Unit::Windows => least,
    };
    let by_width = estimate
        .relative_half_width()
        .map_or(0.0, |half| estimate.processes as f64 * (half / judgement.precision).powi(2));
    let by_width = if by_width < 1e9 { by_width.ceil() as usize } else { usize::MAX };
    let needed = if by_spread > estimate.processes { by_spread } else { by_width };
    Some(needed.max(least).max(estimate.processes + 1) - estimate.processes)
}

fn no_interval_words(estimate: &Estimate) -> String {
    let least = least_processes(estimate.confidence);
    let verb = if estimate.processes == 1 { "gives" } else { "give" };
    let more = counted(least.saturating_sub(estimate.processes).max(1), "more pass");
    format!("{} {verb} no interval: it needs at least {more}", counted(estimate.processes, "pass"))
}

fn drift_words(drift: &Drift, judgement: &Judgement) -> String {
    let (n, unit) = (judgement.estimate.processes, judgement.unit);
    let moves = |change: f64| {
        format!("{} by {}", if change > 0.0 { "rises" } else { "falls" }, percent(change.abs()))
    };
    match drift {
        Drift::Trend(trend) => {
            format!("{} over {} of the run", moves(trend.relative_change), counted(n, "pass"))
        }
        Drift::Inside(inside) => {
            format!("{} from the first sample of a pass to the last", moves(inside.relative_change))
        }
        Drift::Steps(steps) => {
            let step = |change: &Change| {
                let (before, after) = (figure(change.before, unit), figure(change.after, unit));
                format!("from {before} to {after} at pass {} of {n}", change.at + 1)
            };
            format!("steps {}", steps.iter().map(step).collect::<Vec<String>>().join(", then "))
        }
        Drift::Dependent { worth: independent } => {
            let independent = worth(*independent);
            format!("{} resemble their neighbours and count as {independent}", counted(n, "pass"))
        }
    }
}

fn modes_words(modes: &Modes, unit: &str) -> String {
    let mode = |mode: &super::modes::Mode| format!("{} ({})", figure(mode.median, unit), percent(mode.share));
    let list: Vec<String> = modes.modes.iter().map(mode).collect();
    let ratio = if modes.ratio.is_finite() { format!(", ratio {:.2}", modes.ratio) } else { String::new() };
    format!("{} values, {}{ratio}", modes.modes.len(), list.join(" and "))
}

fn number_of(estimate: &Estimate) -> String {
    match estimate.unit {
        Unit::Processes => counted(estimate.n, "pass"),
        Unit::Windows => {
            format!("{} of {}", counted(estimate.n, "sample"), counted(estimate.processes, "pass"))
        }
    }
}

fn worth(independent: f64) -> String {
    counted(independent.floor().max(1.0) as usize, "independent one")
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::behaviour::{DRIFT_P, behaviour};
    use super::super::estimate::estimate;
    use super::super::noise::Noise;
    use super::super::outliers::{Covariate, attribute, outliers};
    use super::*;

    fn verdict(processes: &[Vec<f64>], precision: f64, cause: Option<&str>) -> (String, Option<usize>) {
        let estimate = estimate(processes, 0.95).expect("values");
        let behaviour = behaviour(processes, &estimate, DRIFT_P, 1);
        let judgement = Judgement {
            estimate: &estimate,
            behaviour: &behaviour,
            precision,
            unit: "GB/s",
            mode_cause: cause,
            without_explained: None,
        };
        let (verdict, more) = judge(&judgement);
        (format!("{}: {}", verdict.kind, verdict.reason), more)
    }

    fn one_window_each(values: impl IntoIterator<Item = f64>) -> Vec<Vec<f64>> {
        values.into_iter().map(|value| vec![value]).collect()
    }

    fn draw(noise: Noise, n: usize, seed: u64) -> Vec<Vec<f64>> {
        one_window_each(noise.series(n, &mut Rng::with_seed(seed)))
    }

    #[test]
    fn precise_enough_or_how_many_more() {
        let processes = draw(Noise::Lognormal { cv: 0.02 }, 20, 30);
        assert_eq!(verdict(&processes, 0.02, None), ("trusted: ".to_string(), None));
        let (words, more) = verdict(&processes, 0.005, None);
        let more = more.expect("more would help");
        assert!((30..160).contains(&more), "{words}");
        assert!(words.starts_with("imprecise: ±") && words.ends_with(&format!("about {more} more passes")));
        assert!(words.contains(" from 20 passes; ±0.50 % needs "), "{words}");
    }

    #[test]
    fn too_few_processes() {
        let (words, more) = verdict(&one_window_each([1.0, 1.1, 1.0]), 0.02, None);
        assert_eq!(words, "imprecise: 3 passes give no interval: it needs at least 2 more passes");
        assert_eq!(more, Some(2));
        let (words, _) = verdict(&one_window_each([1.0]), 0.02, None);
        assert_eq!(words, "imprecise: 1 pass gives no interval: it needs at least 4 more passes");
        let (words, more) = verdict(&one_window_each([-1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), 0.02, None);
        assert_eq!(words, "imprecise: the median is zero, so its interval has no relative width");
        assert_eq!(more, None);
        assert_eq!(verdict(&one_window_each([0.0; 6]), 0.02, None).0, "trusted: ");
    }

    #[test]
    fn modes_are_told() {
        let four_two = |n: i32| one_window_each((0..n).map(|i| if i * 7 % 10 < 4 { 111.0 } else { 92.0 }));
        assert_eq!(
            verdict(&four_two(40), 0.5, None).0,
            "multimodal: 2 values, 92.0 GB/s (60 %) and 111 GB/s (40 %), ratio 1.21"
        );
        let (words, more) = verdict(&four_two(20), 0.5, None);
        assert_eq!(
            words,
            "imprecise: perhaps 2 values, 92.0 GB/s (60 %) and 111 GB/s (40 %), ratio 1.21; \
             36 more passes decide"
        );
        assert_eq!(more, Some(36));
        let words = verdict(&four_two(20), 0.5, Some("CPU")).0;
        assert!(
            words.starts_with("multimodal: ") && words.ends_with("ratio 1.21; related to the CPU"),
            "{words}"
        );
        let switching: Vec<Vec<f64>> = (0..6)
            .map(|seed| draw(Noise::TwoModes { cv: 0.01, ratio: 1.2, minority: 0.5 }, 30, seed).concat())
            .collect();
        let words = verdict(&switching, 0.5, None).0;
        assert!(words.starts_with("multimodal: ") && words.ends_with(" inside single passes"), "{words}");
    }

    #[test]
    fn drift_is_told() {
        let rising = one_window_each((0..20).map(|i| 100.0 + f64::from(i)));
        assert_eq!(verdict(&rising, 0.5, None).0, "drifting: rises by 18 % over 20 passes of the run");
        let step =
            one_window_each((0..20).map(|i| if i < 8 { 104.0 } else { 96.0 } + f64::from(i % 3) / 10.0));
        assert_eq!(verdict(&step, 0.5, None).0, "drifting: steps from 104 GB/s to 96.1 GB/s at pass 9 of 20");
        let inside = vec![(0..10).map(|i| 100.0 - f64::from(i)).collect::<Vec<f64>>(); 8];
        assert_eq!(
            verdict(&inside, 0.5, None).0,
            "drifting: falls by 10 % from the first sample of a pass to the last"
        );
    }

    #[test]
    fn explained_outliers_do_not_condemn() {
        let mut values = Noise::Lognormal { cv: 0.002 }.series(20, &mut Rng::with_seed(31));
        let mut stolen = vec![0.0; 20];
        for index in [3, 11] {
            values[index] *= 1.5;
            stolen[index] = 40.0;
        }
        let alone: Vec<usize> = (0..20).collect();
        let stolen = [Covariate { name: "steal".into(), values: stolen }];
        let attribution = attribute(&outliers(&values), &alone, &stolen);
        let processes = one_window_each(values.iter().copied());
        let all = estimate(&processes, 0.95).expect("values");
        let kept = one_window_each(values.iter().copied().filter(|value| *value < 1.2));
        let without = estimate(&kept, 0.95).expect("values");
        let behaviour = behaviour(&processes, &all, DRIFT_P, 1);
        // A precision between the two half-widths.
        let (wide, narrow) = (all.relative_half_width(), without.relative_half_width());
        let precision = (wide.expect("n = 20") + narrow.expect("n = 18")) / 2.0;
        let judgement = Judgement {
            estimate: &all,
            behaviour: &behaviour,
            precision,
            unit: "",
            mode_cause: None,
            without_explained: Some((&attribution, &without)),
        };
        assert!(wide > narrow);
        let (verdict, _) = judge(&judgement);
        assert_eq!(verdict.kind, VerdictKind::TrustedWithCause, "{verdict:?}");
        let words = "2 of 2 outliers explained, mostly by steal; without them ";
        assert!(verdict.reason.starts_with(words), "{}", verdict.reason);
    }
}
