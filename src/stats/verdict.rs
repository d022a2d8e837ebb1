//! From what is known of a series to one word and one sentence: whether its number can be believed.
//!
//! What the environment did, and what rules find out, is added later by others; this is what the values say.

use super::behaviour::{Behaviour, Drift};
use super::change::Change;
use super::estimate::{Estimate, Unit};
use super::modes::{CONFIRMING_MODES, Modality, Modes};
use super::order::median_ranks;
use super::outliers::Attribution;
use super::stop::runs_needed;
use crate::model::{Verdict, VerdictKind};

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
            let counted = counted(estimate);
            let more = count(more.unwrap_or(0), "more process");
            format!("±{got} at {} with {counted}, ±{asked} asked: about {more} needed", percent(estimate.confidence))
        }
    };
    (Verdict::new(VerdictKind::Imprecise, reason), more)
}

fn judge_modes(judgement: &Judgement) -> Option<(Verdict, Option<usize>)> {
    let behaviour = judgement.behaviour;
    let n = judgement.estimate.processes;
    let words = |modes: &Modes| modes_words(modes, judgement.unit);
    let certain = |modes: &Modes, what: &str| {
        let cause = judgement.mode_cause.map(|cause| format!("; the {cause} goes with it")).unwrap_or_default();
        (Verdict::new(VerdictKind::Multimodal, format!("{}{what}{cause}", words(modes))), None)
    };
    match (&behaviour.modality, &behaviour.modes_inside) {
        (Modality::Several(modes), _) => Some(certain(modes, "")),
        (Modality::Suspected(modes), _) if judgement.mode_cause.is_some() => Some(certain(modes, "")),
        (_, Some(modes)) => Some(certain(modes, " inside single processes")),
        (Modality::Suspected(modes), None) => {
            let more = CONFIRMING_MODES.saturating_sub(n).max(1);
            let reason = format!("perhaps {}: {} would tell", words(modes), count(more, "more process"));
            Some((Verdict::new(VerdictKind::Imprecise, reason), Some(more)))
        }
        (Modality::One | Modality::Unknown, None) => None,
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
        count(attribution.outliers(), "outlier"),
        first.covariate,
        figure(without.median, judgement.unit),
        percent(half),
    );
    Some(Verdict::new(VerdictKind::TrustedWithCause, reason))
}

/// Processes that are missing: by the spread of the processes, or by the width of the interval where that says that
/// there are enough already.
fn more_needed(judgement: &Judgement) -> Option<usize> {
    let estimate = judgement.estimate;
    let least = (1..=64).find(|&n| median_ranks(n, estimate.confidence).is_some())?;
    let by_spread = match estimate.unit {
        Unit::Processes => runs_needed(estimate.cv_robust?, judgement.precision, estimate.confidence),
        Unit::Windows => least,
    };
    let by_width = estimate.relative_half_width().map_or(0.0, |half| {
        estimate.processes as f64 * (half / judgement.precision).powi(2)
    });
    let by_width = if by_width < 1e9 { by_width.ceil() as usize } else { usize::MAX };
    let needed = if by_spread > estimate.processes { by_spread } else { by_width };
    Some(needed.max(least).max(estimate.processes + 1) - estimate.processes)
}

fn no_interval_words(estimate: &Estimate) -> String {
    let least = (1..=64).find(|&n| median_ranks(n, estimate.confidence).is_some()).unwrap_or(64);
    let counted = count(estimate.processes, "process");
    if estimate.processes < least {
        let verb = if estimate.processes == 1 { "gives" } else { "give" };
        let more = count(least - estimate.processes, "more process");
        return format!("{counted} {verb} no interval of the median: at least {more} needed");
    }
    format!("{counted} resemble their neighbours and are worth {}: too few for an interval", worth(estimate.worth))
}

fn drift_words(drift: &Drift, judgement: &Judgement) -> String {
    let (n, unit) = (judgement.estimate.processes, judgement.unit);
    let moves = |change: f64| format!("{} by {}", if change > 0.0 { "rises" } else { "falls" }, percent(change.abs()));
    match drift {
        Drift::Trend(trend) => format!("{} over {} in visiting order", moves(trend.relative_change), count(n, "process")),
        Drift::Inside(inside) => {
            format!("{} from the first window to the last inside its processes", moves(inside.relative_change))
        }
        Drift::Steps(steps) => {
            let step = |change: &Change| {
                let (before, after) = (figure(change.before, unit), figure(change.after, unit));
                format!("from {before} to {after} at process {} of {n}", change.at + 1)
            };
            format!("steps {}", steps.iter().map(step).collect::<Vec<String>>().join(", then "))
        }
        Drift::Dependent { worth: independent } => {
            let independent = worth(*independent);
            format!("{} resemble their neighbours and are worth {independent}", count(n, "process"))
        }
    }
}

fn modes_words(modes: &Modes, unit: &str) -> String {
    let mode = |mode: &super::modes::Mode| format!("{} ({})", figure(mode.median, unit), percent(mode.share));
    let list: Vec<String> = modes.modes.iter().map(mode).collect();
    let ratio = if modes.ratio.is_finite() { format!(", ratio {:.2}", modes.ratio) } else { String::new() };
    format!("{} values, not one: {}{ratio}", modes.modes.len(), list.join(" and "))
}

fn counted(estimate: &Estimate) -> String {
    match estimate.unit {
        Unit::Processes => count(estimate.n, "process"),
        Unit::Windows => format!("{} of {}", count(estimate.n, "window"), count(estimate.processes, "process")),
    }
}

fn worth(independent: f64) -> String {
    count(independent.floor().max(1.0) as usize, "independent one")
}

/// `1 process`, `2 processes`.
fn count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n if noun.ends_with('s') => format!("{n} {noun}es"),
        n => format!("{n} {noun}s"),
    }
}

/// Three significant digits and the unit.
fn figure(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        size if size > 0.0 && size.is_finite() => (2 - size.log10().floor() as i32).clamp(0, 12) as usize,
        _ => 0,
    };
    let space = if unit.is_empty() { "" } else { " " };
    match value.abs() {
        size if size > 0.0 && !(1e-9..1e15).contains(&size) => format!("{value:.2e}{space}{unit}"),
        _ => format!("{value:.digits$}{space}{unit}"),
    }
}

/// A share as per cent with two significant digits.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        size if size >= 9.95 => format!("{value:.0} %"),
        size if size >= 0.995 => format!("{value:.1} %"),
        _ => format!("{value:.2} %"),
    }
}
