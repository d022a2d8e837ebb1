//! Guarded commands: what moves their result from run to run, and what their placement makes of it.

use super::words::{capital, clipped, figure, percent, shown};
use super::{Evidence, Rule};
use model::vocabulary::MetricId;
use model::vocabulary::guard as ids;
use model::{Better, Effect, Fact, Finding, Run, Severity, VerdictKind};
use stats::analysis::Judged;
use stats::multiple::holm;
use stats::order::{coefficient_of_variation, mean, median};
use stats::ranks::{Correlation, spearman};
use stats::series::Process;

mod again;
use again::again;

pub const RULES: &[Rule] = &[SWINGS, PLACED];

/// Fewer runs have no interval, and nothing is said of them.
const RUNS_MIN: usize = 6;

const SWINGS: Rule = Rule {
    id: ids::rule::SWINGING_COMMAND,
    title: "A command's result swings from run to run",
    topic: "guard",
    about: "The same program on the same machine, and another result each time. What was noted beside each run is compared \
            with the results: where its tasks were, the clock, stolen time, what others did, switches and faults. What goes \
            with the result need not be its cause, but it is where to look first.",
    method: "Fires from 6 runs on where the coefficient of variation over runs exceeds 3 % or the runs have several \
             values. A companion is told where Spearman's rank correlation over the runs is 0.6 or more with p < 0.05 after \
             Holm's correction for all that was compared; with 6 runs only a nearly perfect order reaches that. Switches, \
             faults and waiting must go with it as counts, per second and (of a rate) for each piece of work, since a longer run has \
             more of each and a faster one more a second; where the clock, stolen time, others or its tasks' places go with it as well, those are named first.",
    calm: "the command's result is steady",
    looked_at: "its runs",
    source: file!(),
    check: swings,
};

/// Spread that is nothing to explain.
const STEADY: f64 = 0.03;
const RHO_MIN: f64 = 0.6;
const P_MAX: f64 = 0.05;

/// Headline series of guarded commands with enough runs. Of two at once only their ratio counts,
/// whatever moves both.
fn results<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a Judged> {
    evidence.series.iter().filter(|judged| {
        let series = &judged.series;
        series.case.bench == ids::COMMAND
            && series.metric.headline
            && series.point.is_empty()
            && judged.analysis.estimate.is_some()
            && series.processes.len() >= RUNS_MIN
    })
}

fn values(judged: &Judged) -> Vec<f64> {
    judged.series.processes.iter().map(value).collect()
}

fn value(process: &Process) -> f64 {
    median(&process.values).unwrap_or(f64::NAN)
}

/// Another metric of the same case in the same runs; no number where a run has none.
fn beside<'a>(
    evidence: &Evidence<'a>,
    judged: &Judged,
    metric: MetricId,
    class: Option<&str>,
) -> Option<(&'a Judged, Vec<f64>)> {
    let found = evidence.series.iter().find(|other| {
        let point = other.series.point.get(ids::param::CLASS).and_then(|value| value.text());
        other.series.planned == judged.series.planned && other.series.metric.name == metric && point == class
    })?;
    let of = |run: &Process| {
        let same = found.series.processes.iter().find(|other| other.order == run.order);
        same.map_or(f64::NAN, value)
    };
    Some((found, judged.series.processes.iter().map(of).collect()))
}

/// What was noted beside each run.
struct Companion {
    words: &'static str,
    /// Where it stands.
    source: String,
    /// Its value in each run; a count has its rate as well, and its number for each piece of work
    /// where the result is a rate. What a run has more of only because it is longer, or does more,
    /// goes with the result in one of them only.
    readings: Vec<Vec<f64>>,
    /// Comes from outside the program's own work.
    outside: bool,
}

impl Companion {
    /// The rank correlation of each reading with the results; `None` where it was not noted, or
    /// never changed.
    fn each_with(&self, values: &[f64]) -> Option<Vec<Correlation>> {
        self.readings.iter().map(|beside| spearman(values, beside)).collect()
    }

    /// The rank correlation with the results, the weakest one where there are several readings;
    /// where they disagree none, which is a comparison all the same.
    fn with(&self, values: &[f64]) -> Option<Correlation> {
        let all = self.each_with(values)?;
        let agree = all.iter().all(|one| one.rho > 0.0) || all.iter().all(|one| one.rho < 0.0);
        let weakest = all.into_iter().max_by(|one, other| one.p.total_cmp(&other.p))?;
        Some(if agree { weakest } else { Correlation { rho: 0.0, p: 1.0, ..weakest } })
    }
}

fn companions(evidence: &Evidence, judged: &Judged) -> Vec<Companion> {
    let outside = |words: &'static str, source: String, reading: Vec<f64>| Companion {
        words,
        source,
        readings: vec![reading],
        outside: true,
    };
    let runs = &judged.series.processes;
    let mut all = Vec::new();
    if let Some((series, shares)) = beside(evidence, judged, ids::metric::OCCUPANCY, Some("same-cpu")) {
        all.push(outside("share of pairs of tasks on one CPU", series.series.key.clone(), shares));
    }
    let noted = |name: &str| -> Vec<f64> {
        let of = |run: &Process| {
            run.beside.iter().find(|one| one.name == name).and_then(|one| median(&one.values))
        };
        runs.iter().map(|run| of(run).unwrap_or(f64::NAN)).collect()
    };
    all.push(outside("core clock after the run", judged.series.key.clone(), noted("clock_ghz")));
    let condition = |of: &dyn Fn(&Process) -> Option<f64>| -> Vec<f64> {
        runs.iter().map(|run| of(run).unwrap_or(f64::NAN)).collect()
    };
    let counters = || "/proc/stat over each run".to_string();
    all.push(outside("stolen time", counters(), condition(&|run| run.conditions.steal())));
    all.push(outside("load of others", counters(), condition(&|run| run.conditions.background())));
    let Some((_, walls)) = beside(evidence, judged, ids::metric::WALL, None) else { return all };
    for (words, metric) in [
        ("number of involuntary switches", ids::metric::INVOLUNTARY),
        ("number of page faults", ids::metric::FAULTS),
        ("number of migrations", ids::metric::MIGRATIONS),
        ("time that its tasks waited for a CPU", ids::metric::WAIT),
    ] {
        if let Some((series, counts)) = beside(evidence, judged, metric, None) {
            let per =
                |amounts: &[f64]| counts.iter().zip(amounts).map(|(count, amount)| count / amount).collect();
            let mut readings: Vec<Vec<f64>> = vec![per(&walls)];
            // A program that runs for so long does more in a better run, and counts more: what each
            // piece of work had.
            if judged.series.metric.better == Better::Higher {
                let works: Vec<f64> =
                    values(judged).iter().zip(&walls).map(|(value, wall)| value * wall).collect();
                readings.push(per(&works));
            }
            readings.push(counts);
            let source = series.series.key.clone();
            all.push(Companion { words, source, readings, outside: false });
        }
    }
    all
}

fn swings(evidence: &Evidence) -> Option<Vec<Finding>> {
    results(evidence).next()?;
    Some(results(evidence).filter_map(|judged| swinging(evidence, judged)).collect())
}

fn swinging(evidence: &Evidence, judged: &Judged) -> Option<Finding> {
    let (series, values) = (&judged.series, values(judged));
    let cv = coefficient_of_variation(&values)?;
    let several = judged.analysis.verdict.kind == VerdictKind::Multimodal;
    if cv.is_nan() || (cv <= STEADY && !several) {
        return None;
    }
    let mut all = companions(evidence, judged);
    all.retain(|one| one.each_with(&values).is_some());
    let compared: Vec<&str> = all.iter().map(|one| one.words).collect();
    let mut found: Vec<(Companion, Correlation)> =
        all.into_iter().filter_map(|one| one.with(&values).map(|with| (one, with))).collect();
    let adjusted = holm(&found.iter().map(|(_, with)| with.p).collect::<Vec<f64>>());
    found.iter_mut().zip(adjusted).for_each(|((_, with), p)| with.p = p);
    found.retain(|(_, with)| with.rho.abs() >= RHO_MIN && with.p < P_MAX);
    // What came from outside is rather a cause than what the program itself did.
    found.sort_by(|(one, with), (other, with_other)| {
        other.outside.cmp(&one.outside).then(with_other.rho.abs().total_cmp(&with.rho.abs()))
    });
    let unit = &series.metric.unit;
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    let mut facts = vec![
        Fact::new("least of the runs", figure(least, unit), &series.key),
        Fact::new("most of the runs", figure(most, unit), &series.key),
        Fact::new(
            "coefficient of variation",
            format!("{} over {} runs", percent(cv), values.len()),
            &series.key,
        ),
    ];
    facts.extend(found.iter().map(|(Companion { words, source, .. }, with)| {
        let goes = if with.rho > 0.0 { "rises with the result" } else { "falls as the result rises" };
        Fact::new(
            *words,
            format!("{goes}: rank correlation {:.2}, p {:.2}, n {}", with.rho, with.p, with.n),
            source,
        )
    }));
    let name = clipped(&evidence.title(&series.case.bench));
    let cause = match found.first() {
        Some((Companion { words, .. }, with)) => format!(
            "Over the runs it {} with the {words} (rank correlation {:.2}, n {}). That is where to look first; it is no \
             proof of a cause.",
            if with.rho > 0.0 { "rises" } else { "falls" },
            with.rho,
            with.n
        ),
        None => {
            let compared = match compared.is_empty() {
                true => "nothing else changed that was noted".to_string(),
                false => format!("compared were {}", compared.join(", ")),
            };
            format!(
                "Nothing that was noted beside the {} runs goes with it; {compared}. What the program itself gets anew at \
                 each start (addresses, pages, input) was not looked at.",
                values.len()
            )
        }
    };
    Some(Finding {
        rule: SWINGS.id.into(),
        severity: Severity::Warning,
        headline: format!(
            "{} varies from {} to {} over {} runs {}. A single run says little.",
            capital(&name),
            shown(least, unit),
            shown(most, unit),
            values.len(),
            evidence.place(&series.case.placement.name)
        ),
        cause,
        facts,
        confirm: again(&series.case.inputs, ""),
        advice:
            "Compare its placements, which separates the scheduler's choice from the rest, and use more runs."
                .into(),
        effect: if found.is_empty() { Effect::None } else { Effect::Explains },
        series: vec![series.key.clone()],
    })
}

/// A guarded command is measured again by its own verb, whatever rule asks for it.
pub fn confirm_by_verb(run: &Run, findings: &mut [Finding]) {
    let Some(planned) = run.header.plan.iter().find(|planned| planned.case.bench == ids::COMMAND) else {
        return;
    };
    for finding in
        findings.iter_mut().filter(|finding| finding.confirm.starts_with("assay run --only guard."))
    {
        finding.confirm = again(&planned.case.inputs, "--new ");
    }
}

const PLACED: Rule = Rule {
    id: ids::rule::COMMAND_PLACEMENT,
    title: "A command's result depends on where its tasks are",
    topic: "placement",
    about: "Held on one CPU and spread over all, the same program gives results far apart. Either it needs more than one CPU, \
            which is no fault, or its tasks wait for each other, and it matters where they are. Where the free result lies \
            away from the better pinned one, the scheduler's choice decides: such a result says more of placement than of \
            the CPU's speed, and changes with the kernel, the topology that a guest is shown and the load of the moment.",
    method: "Fires where the medians of same-cpu and spread, 6 runs each or more, differ by 1.5 times or more. Where same-cpu is \
             the worse one and its CPU time was 0.9 of its wall time or more (median over runs), the program needs more than \
             one CPU. Of the scheduler it speaks where the free median lies more than 10 % away from the better pinned one; \
             without that it is a note. With x the share of pairs of busy tasks on one CPU: p = (x free - x spread) / (x \
             same-cpu - x spread), kept within 0 and 1, is the share of the looks that found two busy tasks in which free \
             tasks were together. Looks are evenly spread over time, so rates mix: expected = p rate(same-cpu) + (1 - p) \
             rate(spread), of means over runs; a time is the reciprocal of a rate. Within 10 % the free result is called \
             explained, else the rest is said. Needs x to differ by 0.5 between the pinned placements.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: placed,
};

/// Placements that differ by less do not make a free score misleading.
const MISLEADING: f64 = 1.5;
const TOLD_APART: f64 = 0.5;
/// A program that takes this share of its one CPU could use another.
const SATURATED: f64 = 0.9;
/// A free result this near to the better pinned one, or to the mix of both, is explained by it.
const EXPLAINED: f64 = 0.10;

fn placed(evidence: &Evidence) -> Option<Vec<Finding>> {
    let at = |free: &Judged, name: &str| {
        results(evidence).find(|other| {
            other.series.case.placement.name == name && other.series.case.params == free.series.case.params
        })
    };
    let mut any = false;
    let mut findings = Vec::new();
    for free in results(evidence).filter(|judged| judged.series.case.placement.name == "free") {
        let (Some(same), Some(spread)) = (at(free, "same-cpu"), at(free, "spread")) else { continue };
        any = true;
        findings.extend(depending(evidence, free, same, spread));
    }
    any.then_some(findings)
}

/// The mean over runs of the result as a rate: of times their reciprocals.
fn rate(judged: &Judged) -> Option<f64> {
    let rates: Vec<f64> = match judged.series.metric.better {
        Better::Lower => values(judged).iter().map(|value| 1.0 / value).collect(),
        Better::Higher | Better::Neither => values(judged),
    };
    mean(&rates).filter(|rate| rate.is_finite() && *rate > 0.0)
}

fn depending(evidence: &Evidence, free: &Judged, same: &Judged, spread: &Judged) -> Option<Finding> {
    let unit = &free.series.metric.unit;
    let median_of = |judged: &Judged| judged.analysis.estimate.as_ref().map(|estimate| estimate.median);
    let [of_free, of_same, of_spread] = [free, same, spread].map(median_of);
    let (of_free, of_same, of_spread) = (of_free?, of_same?, of_spread?);
    let ratio = (of_same / of_spread).max(of_spread / of_same);
    if !ratio.is_finite() || ratio < MISLEADING {
        return None;
    }
    let lower = free.series.metric.better == Better::Lower;
    let same_is_worse = (of_same > of_spread) == lower;
    let (better, of_better) = if same_is_worse { ("spread", of_spread) } else { ("same-cpu", of_same) };
    let used_of_one = cpus_used(evidence, same).filter(|used| same_is_worse && *used >= SATURATED);
    let off = (of_free / of_better - 1.0).abs();
    let chosen = off > EXPLAINED;
    let mut facts = Vec::new();
    for (name, judged, value) in
        [("free", free, of_free), ("same-cpu", same, of_same), ("spread", spread, of_spread)]
    {
        let runs = judged.series.processes.len();
        let key = &judged.series.key;
        facts.push(Fact::new(name, format!("{} (median of {runs} runs)", figure(value, unit)), key));
        if let Some(used) = cpus_used(evidence, judged) {
            facts.push(Fact::new(format!("{name}, CPUs used"), figure(used, ""), key));
        }
        if let Some((series, shares)) = beside(evidence, judged, ids::metric::OCCUPANCY, Some("same-cpu"))
            && let Some(share) = mean(&shares)
        {
            let label = format!("{name}, pairs of tasks on one CPU");
            facts.push(Fact::new(label, percent(share), &series.series.key));
        }
    }
    let mut cause = match used_of_one {
        Some(used) => format!("On one CPU it used {} of it: it needs more than one CPU.", percent(used)),
        None => "Its tasks gain or lose by being on one CPU.".to_string(),
    };
    cause.push_str(&match chosen {
        true => format!(
            " Free, it lies {} away from the better result, {better}: that is the scheduler's choice, not the CPU's speed.",
            percent(off)
        ),
        false => format!(" Free, it is as good as {better} within {}.", percent(off)),
    });
    match mix(evidence, free, same, spread).filter(|_| chosen) {
        Some((p, expected, measured)) => {
            let rest = measured / expected - 1.0;
            let explained = match rest.abs() <= EXPLAINED {
                true => format!("explained within {}", percent(rest.abs())),
                false => format!("{} remain unexplained", percent(rest)),
            };
            cause.push_str(&format!(
                " Free, its tasks were together in {} of the looks that found two busy tasks (mean of all runs); of the pinned \
                 results that makes {}, the mean of the free runs is {}: {explained}.",
                percent(p),
                figure(expected, unit),
                figure(measured, unit),
            ));
            facts.push(Fact::new("expected of the mix", figure(expected, unit), &free.series.key));
            facts.push(Fact::new("unexplained rest", percent(rest), &free.series.key));
        }
        None if chosen => cause.push_str(
            " Where its tasks were does not tell the placements apart here, so the free result is not taken apart.",
        ),
        None => {}
    }
    let name = clipped(&evidence.title(&free.series.case.bench));
    let figures =
        format!("{} on one CPU, {} spread over all CPUs", shown(of_same, unit), shown(of_spread, unit));
    let headline = match used_of_one {
        Some(_) => format!("{} needs more than 1 CPU: {figures}", capital(&name)),
        None => format!("{} gives {figures}. Never quote one alone.", capital(&name)),
    };
    let advice = match (chosen, used_of_one) {
        (false, Some(_)) => "Compare machines by the free or the spread result.",
        _ => {
            "Compare machines by the pinned results, each with its own kind. The higher one need not be the better system: on \
             one CPU a woken task waits until its waker sleeps."
        }
    };
    Some(Finding {
        rule: PLACED.id.into(),
        severity: if chosen { Severity::Warning } else { Severity::Note },
        headline,
        cause,
        facts,
        confirm: again(&free.series.case.inputs, "--new "),
        advice: advice.into(),
        series: vec![free.series.key.clone()],
        effect: Effect::Explains,
    })
}

/// CPUs that the program kept busy, 0 and more: the median over runs of its CPU time by its wall
/// time.
fn cpus_used(evidence: &Evidence, judged: &Judged) -> Option<f64> {
    let [user, system, wall] = [ids::metric::CPU_USER, ids::metric::CPU_SYSTEM, ids::metric::WALL]
        .map(|metric| beside(evidence, judged, metric, None));
    let (user, system, wall) = (user?.1, system?.1, wall?.1);
    let used = user.iter().zip(&system).zip(&wall).map(|((user, system), wall)| (user + system) / wall);
    median(&used.filter(|used| used.is_finite()).collect::<Vec<f64>>())
}

/// The share of looks in which free tasks were together, the result expected of that, and the
/// measured one: means over runs, as results.
fn mix(evidence: &Evidence, free: &Judged, same: &Judged, spread: &Judged) -> Option<(f64, f64, f64)> {
    let share =
        |judged: &Judged| mean(&beside(evidence, judged, ids::metric::OCCUPANCY, Some("same-cpu"))?.1);
    let (x, x_same, x_spread) = (share(free)?, share(same)?, share(spread)?);
    let apart = x_same - x_spread;
    if apart.is_nan() || apart < TOLD_APART {
        return None;
    }
    let p = ((x - x_spread) / apart).clamp(0.0, 1.0);
    let expected = p * rate(same)? + (1.0 - p) * rate(spread)?;
    let measured = rate(free)?;
    Some(match free.series.metric.better {
        Better::Lower => (p, 1.0 / expected, 1.0 / measured),
        Better::Higher | Better::Neither => (p, expected, measured),
    })
}
