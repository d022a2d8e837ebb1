//! Series that are not one steady value.

use std::collections::BTreeMap;

use super::words::{figure, shell};
use super::{Evidence, Rule};
use crate::model::{Effect, Fact, Finding, Severity, VerdictKind};
use crate::stats::analysis::Judged;
use crate::stats::behaviour::Drift;

pub const RULES: &[Rule] = &[DRIFT, MODES];

const DRIFT: Rule = Rule {
    id: "drift",
    title: "Values were still moving",
    about: "A series that rises, falls or steps while it is measured has no one value: its median depends on when \
            measuring began and ended. Temperatures, power budgets, growing files, other guests and caches that fill \
            do that.",
    method: "Mann-Kendall's test with the Theil-Sen slope over the processes in visiting order, change points by \
             E-divisive means with a permutation test, and the order of windows inside processes; each at p < 0.01 and \
             only if the change exceeds 1 % and the interval's half-width. A run has dozens of series, so one that moves a \
             little is expected by chance: the finding needs a change of 5 %, or two headline series of one benchmark. \
             METHODOLOGY.md has the measured error rates.",
    calm: "",
    source: file!(),
    check: |evidence| {
        grouped(
            evidence,
            VerdictKind::Drifting,
            &DRIFT,
            "moved while it was measured",
            "Something that changes slowly \
             moved these values: heat, power budgets, other guests or load.",
        )
    },
};

const MODES: Rule = Rule {
    id: "modes",
    title: "Several values instead of one",
    about: "A series that jumps between two levels is shown as both, never as their mean. What a process gets once and \
            keeps (physical pages, a CPU, an address layout) shows as levels between processes; what comes and goes \
            (a clock, a neighbour) as levels inside them.",
    method: "Six conditions together on the logarithms of the process medians: separation D > 3, BIC gain against one \
             Gaussian and against one skewed distribution, ratio above 1.03, at least 10 % and three values on each \
             side, and a valley between them below 0.3 of the lower peak. Below 40 processes modes are only suspected, \
             unless a cause goes with them. METHODOLOGY.md has the measured error rates.",
    calm: "",
    source: file!(),
    check: |evidence| {
        grouped(
            evidence,
            VerdictKind::Multimodal,
            &MODES,
            "has several values",
            "Each process got one of several levels: \
             look at what a process gets at its start, such as pages, CPU or layout.",
        )
    },
};

/// One finding for each benchmark that has series of this verdict.
fn grouped(
    evidence: &Evidence,
    kind: VerdictKind,
    rule: &Rule,
    what: &str,
    cause: &str,
) -> Option<Vec<Finding>> {
    let mut benches: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
    let concerned = |judged: &&Judged| judged.analysis.verdict.kind == kind && judged.series.metric.headline;
    for judged in evidence.series.iter().filter(concerned) {
        benches.entry(judged.series.case.bench.as_ref()).or_default().push(judged);
    }
    let judgeable = evidence.series.iter().any(|judged| judged.analysis.estimate.is_some());
    benches.retain(|_, series| series.len() > 1 || series.iter().any(|judged| moves_much(judged)));
    judgeable.then(|| {
        let found = benches.into_iter().map(|(bench, series)| {
            let of = evidence.series.iter().filter(|judged| judged.series.case.bench == bench).count();
            let headline = match series.as_slice() {
                [one] => format!("{} {what}: {}", one.series.key, one.analysis.verdict.reason),
                several => format!("{bench} {what} in {} of {of} series", several.len()),
            };
            Finding {
                rule: rule.id.into(),
                severity: Severity::Warning,
                headline,
                cause: cause.to_string(),
                facts: series.iter().take(8).map(|judged| fact(judged)).collect(),
                confirm: format!("assay run --only {} --profile standard --new", shell(bench)),
                advice: "Measure again at another time, and longer: --profile full confirms or clears it."
                    .into(),
                series: series.iter().map(|judged| judged.series.key.clone()).collect(),
                // The verdict says it already.
                effect: Effect::None,
            }
        });
        found.collect()
    })
}

/// A drift that chance alone hardly gives to one series of many; modes are proven severely enough by themselves.
fn moves_much(judged: &Judged) -> bool {
    const MUCH: f64 = 0.05;
    match judged.analysis.behaviour.as_ref().and_then(|behaviour| behaviour.drift.as_ref()) {
        None => true,
        Some(Drift::Trend(trend)) => trend.relative_change.abs() >= MUCH,
        Some(Drift::Inside(inside)) => inside.relative_change.abs() >= MUCH,
        Some(Drift::Steps(steps)) => steps.iter().any(|step| (step.after / step.before).ln().abs() >= MUCH),
        Some(Drift::Dependent { .. }) => false,
    }
}

fn fact(judged: &Judged) -> Fact {
    let median =
        judged.analysis.estimate.as_ref().map(|estimate| figure(estimate.median, &judged.series.metric.unit));
    let label = format!("median {}", median.unwrap_or_default());
    Fact::new(label, &judged.analysis.verdict.reason, &judged.series.key)
}
