//! Scores that depend on where the tasks land.

use super::words::{figure, percent, shell};
use super::{Evidence, Rule};
use crate::model::{Effect, Fact, Finding, Severity};
use crate::stats::analysis::Judged;

pub const RULES: &[Rule] = &[FREE];

const FREE: Rule = Rule {
    id: "free-placement",
    title: "A free score is a mix of placements",
    about: "Two tasks that wake each other cost very differently on one CPU and on two. Left free, the scheduler's \
            choice decides the score, so it changes with the kernel, the topology shown to a guest and the load of the \
            moment, while the hardware stays the same. UnixBench's pipe-based context switching is measured this way: a \
            small guest whose host hides its shared cache can beat its own host.",
    method: "Fires when pinned placements of the same benchmark differ by more than 1.5 times (at several points: once, with the \
             figures of the first). Beside the free score \
             stands, where it was sampled, the share of looks that found both tasks on one CPU.",
    calm: "",
    source: file!(),
    check: free,
};

/// Placements that differ by less do not make a free score misleading.
const MISLEADING: f64 = 1.5;

fn free(evidence: &Evidence) -> Option<Vec<Finding>> {
    let free: Vec<&Judged> = evidence
        .series
        .iter()
        .filter(|judged| {
            judged.series.case.placement.name == "free"
                && judged.series.metric.headline
                && judged.analysis.estimate.is_some()
        })
        .collect();
    if free.is_empty() {
        return None;
    }
    // A benchmark's first point stands for its further ones.
    let mut findings: Vec<(&str, Finding)> = Vec::new();
    for judged in free {
        let Some(finding) = finding(evidence, judged) else { continue };
        let bench = judged.series.case.bench.as_ref();
        match findings.iter_mut().find(|(other, _)| *other == bench) {
            Some((_, first)) => first.series.extend(finding.series),
            None => findings.push((bench, finding)),
        }
    }
    Some(findings.into_iter().map(|(_, finding)| finding).collect())
}

fn finding(evidence: &Evidence, free: &Judged) -> Option<Finding> {
    let metric = &free.series.metric;
    let free_value = free.analysis.estimate.as_ref()?.median;
    let mut pinned: Vec<(&Judged, f64)> = evidence
        .series
        .iter()
        .filter(|other| {
            other.series.case.bench == free.series.case.bench
                && other.series.metric.name == metric.name
                && other.series.case.placement.name != "free"
                && other.series.params() == free.series.params()
        })
        .filter_map(|other| Some((other, other.analysis.estimate.as_ref()?.median)))
        .collect();
    pinned.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((slowest, low), (fastest, high)) = (pinned.first()?, pinned.last()?);
    let ratio = high / low;
    if ratio.is_nan() || ratio < MISLEADING {
        return None;
    }
    let together = evidence.series.iter().find(|other| {
        other.series.planned == free.series.planned
            && other.series.point == free.series.point
            && other.series.metric.name == "same_cpu_share"
    });
    let share = together.and_then(|judged| judged.analysis.estimate.as_ref()).map(|estimate| estimate.median);
    let nearest = pinned.iter().min_by(|one, other| {
        let distance = |value: f64| (value / free_value).ln().abs();
        distance(one.1).total_cmp(&distance(other.1))
    })?;
    let mut facts = Vec::new();
    for (judged, value) in &pinned {
        let placement = judged.series.case.placement.name.as_ref();
        facts.push(Fact::new(placement, figure(*value, &metric.unit), &judged.series.key));
        // The other side of the score, where it was measured.
        let late = evidence.find(&judged.series.case.bench, placement, "wakeup_p99");
        if let Some((late, estimate)) = late.and_then(|late| Some((late, late.analysis.estimate.as_ref()?))) {
            let label = format!("{placement}, wake-up latency p99");
            facts.push(Fact::new(label, figure(estimate.median, &late.series.metric.unit), &late.series.key));
        }
    }
    facts.push(Fact::new("free", figure(free_value, &metric.unit), &free.series.key));
    if let (Some(share), Some(judged)) = (share, together) {
        let label = "free, both on one CPU";
        facts.push(Fact::new(label, format!("{} of the looks at both", percent(share)), &judged.series.key));
    }
    Some(Finding {
        rule: FREE.id.into(),
        severity: Severity::Warning,
        headline: format!(
            "{} is {} on {} and {} on {}: {ratio:.1} times apart, and free it was {}",
            evidence.title(&free.series.case.bench),
            figure(*high, &metric.unit),
            fastest.series.case.placement.name,
            figure(*low, &metric.unit),
            slowest.series.case.placement.name,
            figure(free_value, &metric.unit)
        ),
        cause: format!(
            "The free score is the scheduler's choice, not the CPU's speed: it lies nearest to {}.{} A higher score need \
             not be the better system: on one CPU a woken task waits until its waker sleeps.",
            nearest.0.series.case.placement.name,
            share.map_or(String::new(), |share| format!(
                " Both tasks were on one CPU in {} of the looks at them.",
                percent(share)
            ))
        ),
        facts,
        confirm: format!("assay run --only {} --profile standard", shell(&free.series.case.bench)),
        advice: "Compare machines by the pinned figures, each with its own kind.".into(),
        series: vec![free.series.key.clone()],
        effect: Effect::Explains,
    })
}
