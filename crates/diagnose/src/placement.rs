//! Scores that depend on where the tasks land.

use super::mechanism::mechanism;
use super::mix::{Index, MIN_ALONE_WINDOWS, Mix, Part, mix};
use super::words::{capital, clipped, figure, listed, percent, shell, shown};
use super::{Evidence, Rule};
use model::vocabulary as ids;
use model::vocabulary::MetricId;
use model::{Beside, Better, Fact, Finding, Form, Severity, VerdictKind};
use stats::analysis::Judged;

pub const RULES: &[Rule] = &[FREE];

const FREE: Rule = Rule {
    id: ids::host::rule::FREE_PLACEMENT,
    title: "A score that depends on where the scheduler put its tasks",
    topic: "placement",
    meaning: "Two tasks that wake each other are fast on one CPU and slow on two. If they are left to the scheduler, the score shows \
             its choice, not the hardware. A guest that hides its shared L3 can beat its own host this way.",
    action: "Compare hosts by the pinned figures: one CPU with one CPU, two CPUs with two CPUs. See it: assay run --only \
             ipc.pipe-pingpong --new",
    when: "Pinned placements of one benchmark differ by more than 1.5 times. One finding is a warning (ipc.pipe-pingpong, else \
             the largest difference), others are notes.",
    how: "Every few rounds Assay notes where the two tasks are. Each placement's share, times the time of tasks pinned there, \
             gives an expected time. Within 10 % of the mean of all free samples it explains the score. Otherwise samples at one \
             placement alone (95 % of their rounds, three or more) show what free tasks add there. The rest is the cost of \
             moving. The wake-up latency of the woken task stands with each placement. With several points of a benchmark the \
             finding gives the figures of the first. UnixBench's pipe-based context switching is measured free, and a scheduler \
             that keeps both tasks on one CPU delays the woken one.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: free,
};

/// Placements that differ by less do not make a free score misleading.
const MISLEADING: f64 = 1.5;
/// A mix that comes within this share of the free time explains it.
const EXPLAINED: f64 = 0.10;

fn free(evidence: &Evidence) -> Option<Vec<Finding>> {
    let free: Vec<&Judged> = evidence
        .series
        .iter()
        .filter(|judged| {
            judged.series.case.placement.name == "free"
                && judged.series.metric.headline
                && judged.series.case.bench != ids::guard::COMMAND
                && judged.analysis.estimate.is_some()
        })
        .collect();
    if free.is_empty() {
        return None;
    }
    let index = Index::of(evidence);
    // A benchmark's first point stands for its further ones.
    let mut findings: Vec<(&str, f64, Finding)> = Vec::new();
    for judged in free {
        let Some((ratio, finding)) = finding(evidence, &index, judged) else { continue };
        let bench = judged.series.case.bench.as_ref();
        match findings.iter_mut().find(|(other, ..)| *other == bench) {
            Some((_, _, first)) => first.series.extend(finding.series),
            None => findings.push((bench, ratio, finding)),
        }
    }
    // The one that shows it best stays a warning; the others repeat it.
    findings.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
    let chief = findings.iter().position(|(bench, ..)| *bench == ids::ipc::PIPE_PINGPONG).unwrap_or(0);
    let kept = findings.into_iter().enumerate().map(|(at, (_, _, mut finding))| {
        finding.severity = if at == chief { Severity::Warning } else { Severity::Note };
        finding
    });
    Some(kept.collect())
}

/// Withdraws a finding whose pinned figures other findings rejected: their ratio means nothing.
pub fn withdraw_rejected(findings: &mut Vec<Finding>, series: &[Judged]) {
    let is_rejected = |fact: &Fact| {
        series.iter().any(|judged| {
            judged.series.key == fact.source && judged.analysis.verdict.kind == VerdictKind::Rejected
        })
    };
    findings.retain(|finding| {
        let mut pinned = finding.facts.iter().filter(|fact| !finding.series.contains(&fact.source));
        finding.rule != FREE.id || !pinned.any(is_rejected)
    });
}

/// The finding about one free series, with the ratio of its pinned ones.
fn finding<'a>(evidence: &Evidence<'a>, index: &Index<'a>, free: &'a Judged) -> Option<(f64, Finding)> {
    let metric = &free.series.metric;
    let free_value = free.median()?;
    let with_value = |other: &&'a Judged| Some((*other, other.median()?));
    let mut pinned: Vec<(&Judged, f64)> = index.pinned(free).iter().filter_map(with_value).collect();
    pinned.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((slowest, low), (fastest, high)) = (pinned.first()?, pinned.last()?);
    let ratio = high / low;
    // A value of 0 has no ratio: with such a value nothing can be separated.
    if !ratio.is_finite() || ratio < MISLEADING {
        return None;
    }
    let mix = mix(index, free);
    let mut facts = Vec::new();
    for (judged, value) in &pinned {
        let label = evidence.place_label(&judged.series.case.placement.name);
        facts.push(Fact::new(label, figure(*value, &metric.unit), &judged.series.key));
        facts.extend(response(evidence, index, judged));
    }
    facts.push(Fact::new("free", figure(free_value, &metric.unit), &free.series.key));
    facts.extend(response(evidence, index, free));
    let mut cause = Vec::new();
    match &mix {
        Some(mix) => {
            facts.extend(mix_facts(evidence, mix));
            cause.push(mix_words(evidence, mix));
            let decided = mechanism(evidence, index, mix);
            facts.extend(decided.facts);
            cause.push(decided.words);
        }
        None => {
            let distance = |value: f64| (value / free_value).ln().abs();
            let (near, _) =
                pinned.iter().min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)))?;
            cause.extend(as_mix(evidence, free, slowest, fastest));
            cause.push(format!(
                "The run did not record where the free tasks ran. Their figure is nearest to that {}.",
                place_words(evidence, near)
            ));
        }
    }
    let (awake, idle) = idle(evidence, index, &pinned);
    facts.extend(awake);
    cause.extend(match metric.better {
        Better::Lower => other_side(evidence, index, slowest, fastest),
        _ => other_side(evidence, index, fastest, slowest),
    });
    cause.extend(idle);
    let places: Vec<&str> = pinned.iter().map(|(judged, _)| place_words(evidence, judged)).collect();
    let finding = Finding::note(FREE.id, headline(evidence, free, [(slowest, *low), (fastest, *high)]))
        .cause(cause.join(" "))
        .facts(facts)
        .confirm(format!("assay run --only {} --profile standard --new", shell(&free.series.case.bench)))
        .advice(format!(
            "Compare hosts by the pinned figures, each with the same placement: {}.",
            places.join(", ")
        ))
        .explains([&free.series.key]);
    Some((ratio, finding))
}

/// The value as every screen shows it: at the run's clock if it is given so.
fn quoted(judged: &Judged, measured: f64) -> f64 {
    judged.analysis.figure().map_or(measured, |figure| figure.median)
}

/// The better of the two first.
fn headline(evidence: &Evidence, free: &Judged, mut ends: [(&Judged, f64); 2]) -> String {
    let metric = &free.series.metric;
    let does = match metric.better {
        Better::Lower => "takes",
        _ => {
            ends.reverse();
            "runs at"
        }
    };
    let [(better, one), (worse, other)] = ends;
    let (there, elsewhere) = (place_words(evidence, better), place_words(evidence, worse));
    // `on one CPU` and `on two`: the noun stands once.
    let elsewhere = match there.ends_with(" CPU") {
        true => elsewhere.strip_suffix(" CPUs").unwrap_or(elsewhere),
        false => elsewhere,
    };
    format!(
        "{} {does} {} {there}, {} {elsewhere}. Never quote one alone.",
        capital(&clipped(&evidence.title(&free.series.case.bench))),
        shown(quoted(better, one), &metric.unit),
        shown(quoted(worse, other), &metric.unit)
    )
}

/// What share of round trips at the faster of two placements, the others at the slower one, would
/// take as long as the free score: its value, and the least and most that the intervals of all
/// three allow. `None` outside of both.
fn share_of_faster(free: &Judged, slowest: &Judged, fastest: &Judged) -> Option<(f64, [f64; 2])> {
    let ends = |judged: &Judged| {
        let estimate = judged.analysis.estimate.as_ref()?;
        let [low, high] = estimate.interval.map_or([estimate.median; 2], |own| [own.low, own.high]);
        let time = |value: f64| match judged.series.metric.better {
            Better::Lower => value,
            _ => 1.0 / value,
        };
        let (one, other) = (time(low), time(high));
        Some([time(estimate.median), one.min(other), one.max(other)])
    };
    let [free, slow, fast] = [ends(free)?, ends(slowest)?, ends(fastest)?];
    let share = |free: f64, slow: f64, fast: f64| (slow - free) / (slow - fast);
    let at = share(free[0], slow[0], fast[0]);
    let bound = |free: f64, slow: f64, fast: f64| {
        if slow > fast { share(free, slow, fast).clamp(0.0, 1.0) } else { 0.5 }
    };
    let corners = (1..3)
        .flat_map(|free_end| (1..3).flat_map(move |slow| (1..3).map(move |fast| (free_end, slow, fast))));
    let all: Vec<f64> = corners.map(|(a, b, c)| bound(free[a], slow[b], fast[c])).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (BARELY_OUTSIDE.contains(&at) && at.is_finite()).then_some((at.clamp(0.0, 1.0), [low, high]))
}

/// Scores this little outside of both placements are those of the nearer one.
const BARELY_OUTSIDE: std::ops::RangeInclusive<f64> = -0.02..=1.02;

/// The free score as a mix of its ends, in words.
fn as_mix(evidence: &Evidence, free: &Judged, slowest: &Judged, fastest: &Judged) -> Option<String> {
    let (slowest, fastest) = match free.series.metric.better {
        Better::Lower => (fastest, slowest),
        _ => (slowest, fastest),
    };
    let (share, [low, high]) = share_of_faster(free, slowest, fastest)?;
    Some(format!(
        "The score equals {:.0} % ({:.0}–{:.0} %) of the round trips {} and the rest {}.",
        100.0 * share,
        100.0 * low,
        100.0 * high,
        place_words(evidence, fastest),
        place_words(evidence, slowest)
    ))
}

/// Where a series' tasks were, as a sentence says it.
fn place_words<'j>(evidence: &Evidence, judged: &'j Judged) -> &'j str {
    evidence.place(&judged.series.case.placement.name)
}

/// What the woken task sees of a placement: how long until it runs.
fn response(evidence: &Evidence, index: &Index, judged: &Judged) -> Option<Fact> {
    let measured = |metric: MetricId| {
        let key = judged.series.case.series_key(&judged.series.point, &metric);
        let found = index.at(&key)?;
        Some((found, found.median()?))
    };
    let ((p50, half), (_, late)) =
        (measured(ids::ipc::metric::WAKEUP_P50)?, measured(ids::ipc::metric::WAKEUP_P99)?);
    let unit = &p50.series.metric.unit;
    let jitter = measured(ids::ipc::metric::WAKEUP_JITTER)
        .map_or(String::new(), |(_, jitter)| format!(", jitter {}", figure(jitter, unit)));
    let words = format!("p50 {}, p99 {}{jitter}", figure(half, unit), figure(late, unit));
    let place = evidence.place_label(&judged.series.case.placement.name);
    Some(Fact::new(format!("{place}, wake-up latency"), words, &p50.series.key))
}

/// The shares, the expected figure, and the rest.
fn mix_facts(evidence: &Evidence, mix: &Mix) -> Vec<Fact> {
    let unit = &mix.free.series.metric.unit;
    let value = |ns: f64| figure(mix.value(ns), unit);
    let mut facts = Vec::new();
    for part in &mix.parts {
        let words = format!("{} of the rounds", percent(part.share));
        let label = format!("free, {}", evidence.place_label(&part.class));
        facts.push(Fact::new(label, words, &part.series.series.key));
    }
    if let Some(expected) = mix.expected_ns() {
        facts.push(Fact::new("predicted from the pinned figures", value(expected), &mix.free.series.key));
    }
    let label = format!("free, mean of {} samples", mix.windows);
    facts.push(Fact::new(label, value(mix.free_ns), &mix.free.series.key));
    for part in mix.parts.iter().filter(|part| part.alone >= MIN_ALONE_WINDOWS) {
        let Some(ns) = part.alone_ns else { continue };
        let label = format!("free, {} samples only {}", part.alone, evidence.place(&part.class));
        facts.push(Fact::new(label, value(ns), &mix.free.series.key));
    }
    facts
}

/// Which placement the score equals, and how much of it that explains.
fn mix_words(evidence: &Evidence, mix: &Mix) -> String {
    let share = |part: &Part| format!("{} for {}", evidence.place(&part.class), percent(part.share));
    let mut shares: Vec<String> = mix.parts.iter().map(share).collect();
    if let Some(first) = shares.first_mut() {
        first.push_str(" of the rounds");
    }
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    let ran = format!("The scheduler kept the tasks {}.", listed(&shares));
    let (Some(expected), Some(rest)) = (mix.expected_ns(), mix.rest()) else {
        return format!("{ran} Not all of these placements were measured pinned.");
    };
    let unit = &mix.free.series.metric.unit;
    let predicted = figure(mix.value(expected), unit);
    let off = percent((rest - 1.0).abs());
    let measured = figure(mix.value(mix.free_ns), unit);
    // Tables show the median, which may be another figure.
    let median = mix.free.median().map(|own| figure(quoted(mix.free, own), unit));
    let median = median.filter(|own| *own != measured);
    let median = median.map_or(String::new(), |own| format!(" (median {own})"));
    if (rest - 1.0).abs() <= EXPLAINED {
        return match mix.parts.as_slice() {
            [only] | [only, ..] if only.share > 0.99 => format!(
                "{ran} The pinned figure {} explains the mean of all samples, {measured}, within {off}.",
                evidence.place(&only.class)
            ),
            _ => format!(
                "{ran} That mix predicts {predicted}; the mean of all samples is {measured}{median}, within {off}."
            ),
        };
    }
    let way = if rest > 1.0 { "longer" } else { "less" };
    let begin = format!(
        "{ran} That mix predicts {predicted}. The mean of all samples, {measured}{median}, took {off} {way}."
    );
    let Some(alone) = mix.expected_alone_ns() else {
        return format!("{begin} No sample was at one placement alone, so the rest cannot be split.");
    };
    let signed = |share: f64| format!("{}{}", if share < 0.0 { "-" } else { "+" }, percent(share.abs()));
    let changing = match mix.free_ns / alone - 1.0 {
        share if share > 0.0 => format!("{} comes from changing places", signed(share)),
        share => format!("changing places adds nothing visible ({})", signed(share)),
    };
    format!(
        "{begin} Of that, {} is the difference of free and pinned tasks at one placement, and {changing}.",
        signed(alone / expected - 1.0)
    )
}

/// What waking a CPU from idle costs: the same two CPUs kept awake, as facts, and in words for the
/// first of them.
fn idle(evidence: &Evidence, index: &Index, pinned: &[(&Judged, f64)]) -> (Vec<Fact>, Option<String>) {
    let (mut facts, mut words) = (Vec::new(), None);
    for (asleep, value) in pinned {
        let mut awake = asleep.series.case.clone();
        awake.placement.beside = Beside::Awake;
        let key = awake.series_key(&asleep.series.point, &asleep.series.metric.name);
        let Some(judged) = index.at(&key) else { continue };
        let Some(estimate) = &judged.analysis.estimate else { continue };
        let place = evidence.place_label(&judged.series.case.placement.name);
        let (unit, label) = (&judged.series.metric.unit, format!("{place}, CPUs kept awake"));
        facts.push(Fact::new(label, figure(estimate.median, unit), &key));
        let times = match judged.series.metric.form {
            Form::WorkPerTime { .. } => value / estimate.median,
            _ => estimate.median / value,
        };
        if times < 1.0 && words.is_none() {
            words = Some(format!(
                "Waking from idle takes {} of a round {}. With the CPUs kept awake the figure is {}.",
                percent(1.0 - times),
                place_words(evidence, judged),
                figure(estimate.median, unit)
            ));
        }
    }
    (facts, words)
}

/// The high score, and what the woken task pays for it.
fn other_side(evidence: &Evidence, index: &Index, fastest: &Judged, slowest: &Judged) -> Option<String> {
    let p99 = |of: &Judged| {
        let key = of.series.case.series_key(&of.series.point, &ids::ipc::metric::WAKEUP_P99);
        let judged = index.at(&key)?;
        Some((judged.median()?, judged.series.metric.unit.to_string()))
    };
    let general =
        "A higher score is not a better host: on one CPU the woken task must wait until its waker sleeps.";
    Some(match (p99(fastest), p99(slowest)) {
        (Some((fast, unit)), Some((slow, _))) => format!(
            "{general} Here wakers sleep at once, and it runs after {} (p99) {} and {} {}.",
            figure(fast, &unit),
            place_words(evidence, fastest),
            figure(slow, &unit),
            place_words(evidence, slowest)
        ),
        _ => general.to_string(),
    })
}
