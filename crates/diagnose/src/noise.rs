//! Figures that drift or have several modes.

use std::collections::BTreeMap;

use super::words::{capital, figure, percent, shell, shown};
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{Covariates, Fact, Finding, VerdictKind};
use stats::analysis::Judged;
use stats::behaviour::{DRIFT_P, Drift};

pub const RULES: &[Rule] = &[DRIFT, MODES];

const DRIFT: Rule = Rule {
    id: ids::rule::DRIFT,
    title: "Figures that changed while they were measured",
    topic: "drift",
    meaning: "A figure that rises, falls or steps during the run has no single value. Its median depends on when the run started. \
             Heat, power limits, growing files, other guests and filling caches do this.",
    action: "Measure again at another time, with more passes. See it: assay run --only BENCHMARK --profile full --new",
    when: "A figure changed by 5 % or more, and by more than chance moves any figure of a run. Or more figures changed than \
             chance gives once in a hundred runs, at least two.",
    how: "Three tests, each at p < 0.01. Mann-Kendall with the Theil-Sen slope over passes in their order; change points by \
             E-divisive means with permutations; the order of samples inside passes. A change must exceed 1 % and half the \
             interval. A run has hundreds of figures, so some move by chance: the 5 % need a p that holds for all figures of the \
             run (Bonferroni), and chance moves one figure in fifty. docs/method/verdicts.md has the measured error rates.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: |evidence| {
        of_kind(
            evidence,
            VerdictKind::Drifting,
            &DRIFT,
            "Something slow changed these figures: heat, power limits, other guests or load.",
        )
    },
};

const MODES: Rule = Rule {
    id: ids::rule::MODES,
    title: "Several values instead of one",
    topic: "two values",
    meaning: "The figure jumps between levels. Assay shows each level, never their mean. Levels between passes come from what a \
             pass keeps: pages, CPU, address layout. Levels inside a pass come from what changes: the clock, other work.",
    action: "Quote every level. Look at what a pass gets at its start: pages, CPU, address layout. See it: assay run --only \
             BENCHMARK --profile full --new",
    when: "The medians of the passes form two groups: ratio above 1.03, and at least 10 % and three values on each side. Below 40 \
             passes levels are only suspected, unless a cause goes with them.",
    how: "The same conditions hold on logarithms. Also: separation D > 3, a better BIC than one Gaussian and than one skewed \
             distribution, and a valley below 0.3 of the lower peak. docs/method/verdicts.md has the measured error rates.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: |evidence| {
        of_kind(
            evidence,
            VerdictKind::Multimodal,
            &MODES,
            "Each pass got one of several levels. Look at what a pass gets at its start: pages, CPU, address layout.",
        )
    },
};

/// One finding for all headline series with this verdict: one cause changes many of them.
fn of_kind(evidence: &Evidence, kind: VerdictKind, rule: &Rule, cause: &str) -> Option<Vec<Finding>> {
    let headline = || evidence.series.iter().filter(|judged| judged.series.metric.headline);
    let measured = headline().filter(|judged| judged.analysis.estimate.is_some()).count();
    let mut found: Vec<&Judged> = headline()
        .filter(|judged| judged.analysis.verdict.kind == kind && !is_of_placement(evidence, judged))
        .collect();
    if measured == 0 {
        return None;
    }
    if found.is_empty()
        || (found.len() < more_than_chance(measured)
            && !found.iter().any(|judged| changes_clearly(judged, measured)))
    {
        return Some(Vec::new());
    }
    found.sort_by(|one, other| change(other).total_cmp(&change(one)));
    let headline = match kind {
        VerdictKind::Multimodal => modes_headline(evidence, &found, measured),
        _ => drift_headline(evidence, &found, measured),
    };
    let mut cause = cause.to_string();
    if let Some((covariate, count)) = companion(&found) {
        cause = match found.len() {
            1 => format!("{cause} The figure follows the {covariate}."),
            many => format!("{cause} {count} of {many} figures follow the {covariate}."),
        };
    }
    let mut benches: Vec<&str> = found.iter().map(|judged| judged.series.case.bench.as_ref()).collect();
    benches.sort_unstable();
    benches.dedup();
    Some(vec![
        Finding::warning(rule.id, headline)
            .cause(cause)
            .facts(found.iter().take(8).map(|judged| fact(judged)))
            .confirm(format!("assay run --only {} --profile full --new", shell(&benches.join(","))))
            .advice("Measure again at another time: the longer full profile confirms or clears it.")
            .concerns(found.iter().map(|judged| judged.series.key.clone())),
    ])
}

/// Whether free placement explains the modes: two kinds of samples, and pinned figures of the same
/// benchmark. The rule on free placement names them.
fn is_of_placement(evidence: &Evidence, judged: &Judged) -> bool {
    let bench = &judged.series.case.bench;
    let pinned = |other: &Judged| other.series.case.bench == *bench && !other.series.case.placement.is_free();
    let behaviour = judged.analysis.behaviour.as_ref();
    behaviour.is_some_and(|behaviour| behaviour.modes_left_free.is_some())
        && evidence.series.iter().any(pinned)
}

/// Names the figure with the largest change, if that has a size.
fn drift_headline(evidence: &Evidence, found: &[&Judged], measured: usize) -> String {
    let most = found.first().map(|judged| (evidence.name(&judged.series.case), change(judged)));
    match (most, found.len()) {
        (Some((name, share)), 1) if share > 0.0 => {
            format!("{} changed by {} while measured. Measure again.", capital(&name), percent(share))
        }
        (Some((name, share)), many) if share > 0.0 => {
            format!(
                "{many} of {measured} figures changed while measured, {name} by {}. Measure again.",
                percent(share)
            )
        }
        (most, many) => {
            let name = most.map_or(String::new(), |(name, _)| format!(", such as {name}"));
            format!("{many} of {measured} figures changed while measured{name}. Measure again.")
        }
    }
}

/// Names a single figure with its values; of several the one with the largest ratio of modes.
fn modes_headline(evidence: &Evidence, found: &[&Judged], measured: usize) -> String {
    let modes = |judged: &Judged| judged.analysis.behaviour.as_ref().and_then(|own| own.modes().cloned());
    let known = found.iter().filter_map(|judged| Some((*judged, modes(judged)?)));
    let most = known.max_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio));
    match (most, found.len()) {
        (Some((judged, modes)), 1) => {
            let unit = &judged.series.metric.unit;
            let values: Vec<String> = modes.modes.iter().map(|mode| shown(mode.median, unit)).collect();
            let name = capital(&evidence.name(&judged.series.case));
            format!("{name} has the values {}. Quote all of them, not their mean.", values.join(" and "))
        }
        (Some((judged, modes)), many) => format!(
            "{many} of {measured} figures have two values or more, {} {:.2} × apart. Quote all of them.",
            evidence.name(&judged.series.case),
            modes.ratio
        ),
        (None, many) => format!("{many} of {measured} figures have two values or more. Quote all of them."),
    }
}

/// The covariate that follows most of these series, and how many it follows.
fn companion(found: &[&Judged]) -> Option<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for judged in found {
        let cause = judged.analysis.mode_cause.as_ref().map(|cause| cause.name.as_ref());
        let companion = || judged.analysis.correlations.first().map(|(name, _)| name.as_ref());
        if let Some(name) = cause.or_else(companion) {
            *counts.entry(name).or_default() += 1;
        }
    }
    let (name, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some((Covariates::words(name), count))
}

/// The share of steady series that the tests call moving (docs/method/verdicts.md has measured
/// ones).
const MOVES_BY_CHANCE: f64 = 0.02;

/// The number of moving series, of `measured`, that chance reaches in less than one run of a
/// hundred; at least two.
fn more_than_chance(measured: usize) -> usize {
    let (p, n) = (MOVES_BY_CHANCE, measured as f64);
    // Binomial: the chance of exactly k, and of k and fewer.
    let (mut exactly, mut k) = ((n * (1.0 - p).ln()).exp(), 0);
    if exactly < 1e-200 {
        // For large counts the normal distribution is as good.
        return (n * p + 2.33 * (n * p).sqrt()).ceil() as usize;
    }
    let mut up_to = exactly;
    while up_to < 0.99 && k < measured {
        exactly *= (n - k as f64) / (k as f64 + 1.0) * p / (1.0 - p);
        (up_to, k) = (up_to + exactly, k + 1);
    }
    (k + 1).max(2)
}

/// Whether a drift is larger than chance gives to one of `measured` series. Modes pass: their own
/// test is strict enough.
fn changes_clearly(judged: &Judged, measured: usize) -> bool {
    const CLEAR_CHANGE: f64 = 0.05;
    let Some(drift) = judged.analysis.behaviour.as_ref().and_then(|behaviour| behaviour.drift.as_ref())
    else {
        return true;
    };
    change(judged) >= CLEAR_CHANGE && p_of(drift) <= DRIFT_P / measured as f64
}

/// The p-value of a drift; of several steps the smallest. Dependence of neighbours has none: 1.
fn p_of(drift: &Drift) -> f64 {
    match drift {
        Drift::Trend(trend) => trend.p,
        Drift::Inside(inside) => inside.p,
        Drift::Steps(steps) => steps.iter().map(|step| step.p).fold(1.0, f64::min),
        Drift::Dependent { .. } => 1.0,
    }
}

/// The change as a share; 0 if it has no size.
fn change(judged: &Judged) -> f64 {
    match judged.analysis.behaviour.as_ref().and_then(|behaviour| behaviour.drift.as_ref()) {
        Some(Drift::Trend(trend)) => trend.relative_change.abs(),
        Some(Drift::Inside(inside)) => inside.relative_change.abs(),
        Some(Drift::Steps(steps)) => {
            let sizes = steps.iter().map(|step| (step.after / step.before).ln().abs());
            sizes.fold(0.0, f64::max)
        }
        Some(Drift::Dependent { .. }) | None => 0.0,
    }
}

fn fact(judged: &Judged) -> Fact {
    let median =
        judged.analysis.estimate.as_ref().map(|estimate| figure(estimate.median, &judged.series.metric.unit));
    let label = format!("median {}", median.unwrap_or_default());
    Fact::new(label, &judged.analysis.verdict.reason, &judged.series.key)
}

#[cfg(test)]
mod tests {
    use super::more_than_chance;

    #[test]
    fn more_series_move_by_chance_where_there_are_more() {
        assert_eq!([1, 5, 60, 350].map(more_than_chance), [2, 2, 5, 15]);
        assert_eq!([30_000, 1_000_000].map(more_than_chance), [658, 20_330]);
    }
}
