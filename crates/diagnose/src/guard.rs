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
use stats::series::{Process, Series};

mod again;
use again::again;

pub const RULES: &[Rule] = &[SWINGS, PLACED];

/// Fewer runs have no interval and are not judged.
const MIN_RUNS: usize = 6;

const SWINGS: Rule = Rule {
    id: ids::rule::SWINGING_COMMAND,
    title: "A command's result varies from run to run",
    topic: "guard",
    meaning: "The same program on the same host gives another result each time. The finding names what \
        changes together with the result. That need not be the cause, but it is where to look first.",
    action: "Compare placements, which separates the scheduler's choice from the rest, and use more runs. \
        See it: assay guard --runs 20 --placements free,same-cpu,spread -- COMMAND",
    when: "The coefficient of variation over 6 runs or more exceeds 3 %, or the runs have several values.",
    how: "Compared are the places of its tasks, the clock, steal, other work, switches and faults. One is \
        named where Spearman's rank correlation is 0.6 or more with p < 0.05 after Holm's correction. With 6 \
        runs only a nearly perfect order reaches that. A longer run has more switches, faults and waiting, \
        and a faster one more per second. These must follow the result as counts, per second and (of a rate) \
        for each piece of work. The clock, steal, other work and places are named first.",
    calm: "the command's result is steady",
    looked_at: "its runs",
    source: file!(),
    check: swings,
};

/// Spread that is nothing to explain.
const MAX_STEADY_CV: f64 = 0.03;
const MIN_RHO: f64 = 0.6;
const MAX_P: f64 = 0.05;

/// Headline series of guarded commands with enough runs. Of two at once only their ratio counts,
/// whatever moves both.
fn results<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a Judged> {
    evidence.series.iter().filter(|judged| {
        let series = &judged.series;
        series.case.bench == ids::COMMAND
            && series.metric.headline
            && series.point.is_empty()
            && judged.analysis.estimate.is_some()
            && series.processes.len() >= MIN_RUNS
    })
}

fn values(judged: &Judged) -> Vec<f64> {
    judged.series.processes.iter().map(value).collect()
}

fn value(process: &Process) -> f64 {
    median(&process.values).unwrap_or(f64::NAN)
}

/// Another metric of the same case in the same runs; no number where a run has none.
fn companion<'a>(
    evidence: &Evidence<'a>,
    judged: &Judged,
    metric: MetricId,
    class: Option<&str>,
) -> Option<(&'a Judged, Vec<f64>)> {
    let found = evidence.series.iter().find(|other| {
        other.series.planned == judged.series.planned
            && other.series.metric.name == metric
            && other.series.text(ids::param::CLASS) == class
    })?;
    let in_run = |run: &Process| {
        let same = found.series.processes.iter().find(|other| other.order == run.order);
        same.map_or(f64::NAN, value)
    };
    Some((found, judged.series.processes.iter().map(in_run).collect()))
}

/// A quantity that was recorded in each run.
struct RecordedInRuns {
    words: &'static str,
    /// Its series key or kernel file.
    source: String,
    /// Its value in each run; a count has its rate as well, and its number for each piece of work
    /// where the result is a rate. What a run has more of only because it is longer, or does more,
    /// goes with the result in one of them only.
    readings: Vec<Vec<f64>>,
    /// Comes from outside the program's own work.
    outside: bool,
}

impl RecordedInRuns {
    /// The rank correlation of each reading with the results; `None` where it was not noted, or
    /// never changed.
    fn each_with(&self, values: &[f64]) -> Option<Vec<Correlation>> {
        self.readings.iter().map(|companion| spearman(values, companion)).collect()
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

fn companions(evidence: &Evidence, judged: &Judged) -> Vec<RecordedInRuns> {
    let outside = |words: &'static str, source: String, reading: Vec<f64>| RecordedInRuns {
        words,
        source,
        readings: vec![reading],
        outside: true,
    };
    let runs = &judged.series.processes;
    let mut all = Vec::new();
    if let Some((series, shares)) = companion(evidence, judged, ids::metric::OCCUPANCY, Some("same-cpu")) {
        all.push(outside("share of pairs of tasks on one CPU", series.series.key.clone(), shares));
    }
    let recorded = |name: &str| -> Vec<f64> {
        let of = |run: &Process| {
            run.covariates.iter().find(|one| one.name == name).and_then(|one| median(&one.values))
        };
        runs.iter().map(|run| of(run).unwrap_or(f64::NAN)).collect()
    };
    all.push(outside("core clock after the run", judged.series.key.clone(), recorded("clock_ghz")));
    let condition = |of: &dyn Fn(&Process) -> Option<f64>| -> Vec<f64> {
        runs.iter().map(|run| of(run).unwrap_or(f64::NAN)).collect()
    };
    let counters = || "/proc/stat over each run".to_string();
    all.push(outside("steal", counters(), condition(&|run| run.conditions.steal())));
    all.push(outside("load of other work", counters(), condition(&|run| run.conditions.background())));
    let Some((_, walls)) = companion(evidence, judged, ids::metric::WALL, None) else { return all };
    for (words, metric) in [
        ("number of involuntary switches", ids::metric::INVOLUNTARY),
        ("number of page faults", ids::metric::FAULTS),
        ("number of migrations", ids::metric::MIGRATIONS),
        ("time that its tasks waited for a CPU", ids::metric::WAIT),
    ] {
        if let Some((series, counts)) = companion(evidence, judged, metric, None) {
            let per =
                |amounts: &[f64]| counts.iter().zip(amounts).map(|(count, amount)| count / amount).collect();
            let mut readings: Vec<Vec<f64>> = vec![per(&walls)];
            // A program that runs for a fixed time does more in a better run, and counts more:
            // compare the count for each piece of work.
            if judged.series.metric.better == Better::Higher {
                let works: Vec<f64> =
                    values(judged).iter().zip(&walls).map(|(value, wall)| value * wall).collect();
                readings.push(per(&works));
            }
            readings.push(counts);
            let source = series.series.key.clone();
            all.push(RecordedInRuns { words, source, readings, outside: false });
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
    if cv.is_nan() || (cv <= MAX_STEADY_CV && !several) {
        return None;
    }
    let compared = compared(evidence, judged, &values);
    let followers = followers(&compared, &values);
    let unit = &series.metric.unit;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let runs = values.len();
    let name = capital(&clipped(&evidence.title(&series.case.bench)));
    let (low, high, place) =
        (shown(least, unit), shown(most, unit), evidence.place(&series.case.placement.name));
    let headline =
        format!("{name} varies from {low} to {high} over {runs} runs {place}. A single run says little.");
    Some(
        Finding::warning(SWINGS.id, headline)
            .cause(match followers.first() {
                Some(first) => first.words(),
                None => no_follower(&compared, runs),
            })
            .fact("least of the runs", figure(least, unit), &series.key)
            .fact("most of the runs", figure(most, unit), &series.key)
            .fact("coefficient of variation", format!("{} over {runs} runs", percent(cv)), &series.key)
            .facts(followers.iter().map(Follower::fact))
            .confirm(again(&series.case.inputs, ""))
            .advice("Compare its placements to separate the scheduler's choice, and use more runs.")
            .affects(if followers.is_empty() { Effect::None } else { Effect::Explains }, [&series.key]),
    )
}

/// What was recorded in each run and changed from run to run.
fn compared(evidence: &Evidence, judged: &Judged, values: &[f64]) -> Vec<RecordedInRuns> {
    let mut all = companions(evidence, judged);
    all.retain(|one| one.each_with(values).is_some());
    all
}

/// A companion that goes with the result, and how closely.
struct Follower<'a> {
    companion: &'a RecordedInRuns,
    with: Correlation,
}

impl Follower<'_> {
    fn words(&self) -> String {
        let Follower { companion, with } = self;
        format!(
            "It {} with the {} (rank correlation {:.2}, n {}). Look there first; it is no proof.",
            if with.rho > 0.0 { "rises" } else { "falls" },
            companion.words,
            with.rho,
            with.n
        )
    }

    fn fact(&self) -> Fact {
        let with = &self.with;
        let goes = if with.rho > 0.0 { "rises with the result" } else { "falls as the result rises" };
        let value = format!("{goes}: rank correlation {:.2}, p {:.2}, n {}", with.rho, with.p, with.n);
        Fact::new(self.companion.words, value, &self.companion.source)
    }
}

/// The companions that go with the result after Holm's correction, the likeliest cause first: what
/// comes from outside before what the program does.
fn followers<'a>(compared: &'a [RecordedInRuns], values: &[f64]) -> Vec<Follower<'a>> {
    let with = |companion: &'a RecordedInRuns| Some(Follower { companion, with: companion.with(values)? });
    let mut found: Vec<Follower> = compared.iter().filter_map(with).collect();
    let adjusted = holm(&found.iter().map(|one| one.with.p).collect::<Vec<f64>>());
    found.iter_mut().zip(adjusted).for_each(|(one, p)| one.with.p = p);
    found.retain(|one| one.with.rho.abs() >= MIN_RHO && one.with.p < MAX_P);
    found.sort_by(|one, other| {
        let outside = other.companion.outside.cmp(&one.companion.outside);
        outside.then(other.with.rho.abs().total_cmp(&one.with.rho.abs()))
    });
    found
}

fn no_follower(compared: &[RecordedInRuns], runs: usize) -> String {
    let names: Vec<&str> = compared.iter().map(|one| one.words).collect();
    let compared = if names.is_empty() {
        "nothing else that was recorded changed".to_string()
    } else {
        format!("compared were {}", names.join(", "))
    };
    format!("Nothing that was recorded with the {runs} runs follows it; {compared}.")
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
    title: "A command's result depends on placement",
    topic: "placement",
    meaning: "The program gives different results on one CPU and spread over all. It needs more than one \
        CPU, or its tasks wait for each other. If the scheduler chooses, the result may show that choice and \
        not the CPU's speed.",
    action: "Compare hosts by the pinned results, each with its own kind. See it: assay guard --runs 20 \
        --placements free,same-cpu,spread -- COMMAND",
    when: "The medians on one CPU and spread over all differ by 1.5 times or more, from 6 runs each. A \
        warning if the result left to the scheduler is over 10 % off the better one, else a note.",
    how: "The program needs more than one CPU where one CPU is worse and its CPU time is 90 % of its wall \
        time or more. x is the share of pairs of busy tasks that are on one CPU. p = (x free − x spread) / \
        (x one CPU − x spread), within 0–1. Readings are evenly spread over time, so rates mix: expected \
        rate = p × rate on one CPU + (1 − p) × rate spread. Rates are means over runs; a time is the \
        reciprocal of a rate. Within 10 % the mix explains the free result, else the finding gives the rest. \
        x must differ by 0.5 between the pinned placements.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: placed,
};

/// Placements that differ by less do not make a free score misleading.
const MIN_RATIO: f64 = 1.5;
const MIN_SEPARATION: f64 = 0.5;
/// A program that takes this share of its one CPU could use another.
const MIN_SATURATION: f64 = 0.9;
/// A free result this near to the better pinned one, or to the mix of both, is explained by it.
const MAX_UNEXPLAINED: f64 = 0.10;

fn placed(evidence: &Evidence) -> Option<Vec<Finding>> {
    let result_at = |free: &Judged, name: &str| {
        results(evidence).find(|other| {
            other.series.case.placement.name == name && other.series.case.params == free.series.case.params
        })
    };
    let mut any = false;
    let mut findings = Vec::new();
    for free in results(evidence).filter(|judged| judged.series.case.placement.name == "free") {
        let (Some(same), Some(spread)) = (result_at(free, "same-cpu"), result_at(free, "spread")) else {
            continue;
        };
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

/// The median result at one placement.
struct PlacedResult<'a> {
    name: &'static str,
    judged: &'a Judged,
    median: f64,
}

impl<'a> PlacedResult<'a> {
    fn of(name: &'static str, judged: &'a Judged) -> Option<PlacedResult<'a>> {
        Some(PlacedResult { name, judged, median: judged.median()? })
    }

    /// The result, and how the runs used CPUs.
    fn facts(&self, evidence: &Evidence) -> Vec<Fact> {
        let (name, series) = (evidence.place_label(self.name), &self.judged.series);
        let median = figure(self.median, &series.metric.unit);
        let value = format!("{median} (median of {} runs)", series.processes.len());
        let mut facts = vec![Fact::new(name, value, &series.key)];
        let used = cpus_used(evidence, self.judged);
        facts.extend(used.map(|used| Fact::new(format!("{name}, CPUs used"), figure(used, ""), &series.key)));
        let together = together(evidence, self.judged);
        facts.extend(together.map(|(share, key)| {
            Fact::new(format!("{name}, pairs of tasks on one CPU"), percent(share), key)
        }));
        facts
    }
}

fn depending(evidence: &Evidence, free: &Judged, same: &Judged, spread: &Judged) -> Option<Finding> {
    let metric = &free.series.metric;
    let free = PlacedResult::of("free", free)?;
    let same = PlacedResult::of("same-cpu", same)?;
    let spread = PlacedResult::of("spread", spread)?;
    let ratio = (same.median / spread.median).max(spread.median / same.median);
    if !ratio.is_finite() || ratio < MIN_RATIO {
        return None;
    }
    let same_is_worse = (same.median > spread.median) == (metric.better == Better::Lower);
    let better = if same_is_worse { &spread } else { &same };
    let used_of_one =
        cpus_used(evidence, same.judged).filter(|used| same_is_worse && *used >= MIN_SATURATION);
    let off = (free.median / better.median - 1.0).abs();
    let chosen = off > MAX_UNEXPLAINED;
    let name = capital(&clipped(&evidence.title(&free.judged.series.case.bench)));
    let figures = format!(
        "{} on one CPU, {} spread over all CPUs",
        shown(same.median, &metric.unit),
        shown(spread.median, &metric.unit)
    );
    let (headline, mut cause) = match used_of_one {
        Some(used) => (
            format!("{name} needs more than 1 CPU: {figures}"),
            format!("On one CPU it used {} of it: it needs more than one CPU.", percent(used)),
        ),
        None => (
            format!("{name} gives {figures}. Never quote one alone."),
            "Its tasks gain or lose by being on one CPU.".to_string(),
        ),
    };
    let mut facts: Vec<Fact> = [&free, &same, &spread].iter().flat_map(|at| at.facts(evidence)).collect();
    if chosen {
        cause.push_str(&format!(
            " Left to the scheduler it is {} off the better result ({}): the scheduler's choice.",
            percent(off),
            evidence.place(better.name)
        ));
        match PlacementMix::of(evidence, free.judged, same.judged, spread.judged) {
            Some(mix) => {
                cause.push_str(&mix.words(&metric.unit));
                facts.extend(mix.facts(&free.judged.series));
            }
            None => cause.push_str(" Its tasks' places do not separate the placements here."),
        }
    } else {
        let place = evidence.place(better.name);
        cause.push_str(&format!(" Unpinned it is within {} of the result {place}.", percent(off)));
    }
    let severity = if chosen { Severity::Warning } else { Severity::Note };
    Some(
        Finding::of(PLACED.id, severity, headline)
            .cause(cause)
            .facts(facts)
            .confirm(again(&free.judged.series.case.inputs, "--new "))
            .advice(match (chosen, used_of_one) {
                (false, Some(_)) => {
                    "Compare hosts by the result left to the scheduler or spread over all CPUs."
                }
                _ => "Compare hosts by the pinned results, each with its own kind.",
            })
            .explains([&free.judged.series.key]),
    )
}

/// The mean share of readings in which a pair of busy tasks was on one CPU, with its key.
fn together<'a>(evidence: &Evidence<'a>, judged: &Judged) -> Option<(f64, &'a str)> {
    let (series, shares) = companion(evidence, judged, ids::metric::OCCUPANCY, Some("same-cpu"))?;
    Some((mean(&shares)?, &series.series.key))
}

/// CPUs that the program kept busy, 0 and more: the median over runs of its CPU time by its wall
/// time.
fn cpus_used(evidence: &Evidence, judged: &Judged) -> Option<f64> {
    let [user, system, wall] = [ids::metric::CPU_USER, ids::metric::CPU_SYSTEM, ids::metric::WALL]
        .map(|metric| companion(evidence, judged, metric, None));
    let (user, system, wall) = (user?.1, system?.1, wall?.1);
    let used = user.iter().zip(&system).zip(&wall).map(|((user, system), wall)| (user + system) / wall);
    median(&used.filter(|used| used.is_finite()).collect::<Vec<f64>>())
}

/// The free result as a mix of the pinned ones: means over runs, as results.
struct PlacementMix {
    /// The share of readings in which free tasks were on one CPU.
    together: f64,
    /// The result expected of that share.
    expected: f64,
    measured: f64,
}

impl PlacementMix {
    fn of(evidence: &Evidence, free: &Judged, same: &Judged, spread: &Judged) -> Option<PlacementMix> {
        let share = |judged: &Judged| Some(together(evidence, judged)?.0);
        let (x, x_same, x_spread) = (share(free)?, share(same)?, share(spread)?);
        let apart = x_same - x_spread;
        if apart.is_nan() || apart < MIN_SEPARATION {
            return None;
        }
        let together = ((x - x_spread) / apart).clamp(0.0, 1.0);
        let expected = together * rate(same)? + (1.0 - together) * rate(spread)?;
        let measured = rate(free)?;
        Some(match free.series.metric.better {
            Better::Lower => PlacementMix { together, expected: 1.0 / expected, measured: 1.0 / measured },
            Better::Higher | Better::Neither => PlacementMix { together, expected, measured },
        })
    }

    fn rest(&self) -> f64 {
        self.measured / self.expected - 1.0
    }

    fn words(&self, unit: &str) -> String {
        let rest = self.rest();
        let explained = if rest.abs() <= MAX_UNEXPLAINED {
            format!("explained within {}", percent(rest.abs()))
        } else {
            format!("{} remain unexplained", percent(rest))
        };
        format!(
            " Left to the scheduler, two busy tasks shared a CPU in {} of the readings. That mix predicts {}; \
             {} was measured ({explained}).",
            percent(self.together),
            figure(self.expected, unit),
            figure(self.measured, unit),
        )
    }

    fn facts(&self, free: &Series) -> [Fact; 2] {
        let expected = figure(self.expected, &free.metric.unit);
        [
            Fact::new("expected of the mix", expected, &free.key),
            Fact::new("unexplained rest", percent(self.rest()), &free.key),
        ]
    }
}
