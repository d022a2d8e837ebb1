//! One host's runs in the order of time: where each figure stepped from one level to another, and
//! what is known to have changed between the runs there.
//!
//! Runs are one series where profile, model of the CPU and CPUs are the same; the newest run says
//! which is looked at. A figure has a step where its level shifted (`stats::shifts`) by 2 % or more
//! and by more than its usual interval, and where the false ones among all such steps stay below
//! 1 %. What only the last run or two show is never a step: more runs confirm it or do not.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::changes::measured_alike;
use super::environment::{CLOCK, value_alike};
use super::peers::HostResult;
use super::peers::fleet::better_of;
use model::Better;
use stats::multiple::benjamini_hochberg;
use stats::order::median;
use stats::shifts::{self, MIN_VALUES, departure, shifts};

/// Runs of one series that are looked at, the newest: a year of daily ones.
pub const MAX_RUNS: usize = 400;

/// A smaller shift is none, however sure it is.
pub const MIN_SHIFT: f64 = 0.02;

/// Share of false ones that is accepted among all steps.
pub const FALSE_STEPS: f64 = 0.01;

/// Runs of one series that a step needs.
pub const MIN_RUNS: usize = MIN_VALUES;

/// Drives the permutations that propose steps.
const SEED: u64 = 1;

/// The history of one host.
#[derive(Clone, Debug, Default)]
pub struct Trend {
    pub host: String,
    /// The runs of the series, the oldest first.
    pub runs: Vec<HostResult>,
    /// Older ones of the series, which are not looked at.
    pub older: usize,
    /// Other runs of the host, by what makes them another series: `profile full`.
    pub apart: BTreeMap<String, usize>,
    /// Figures that their benchmarks are about.
    pub figures: Vec<Figure>,
    /// Runs that were given twice.
    pub twice: usize,
}

/// A figure over the runs.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    pub key: String,
    pub unit: String,
    /// `None`: neither side is the better one.
    pub higher_is_better: Option<bool>,
    /// In the order of time.
    pub points: Vec<Point>,
    /// Values of versions that measured it in another way, which are left out.
    pub measured_otherwise: usize,
    pub steps: Vec<Step>,
    /// What only the last run or two show.
    pub last: Option<Last>,
}

/// A figure in a run.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Its place among the runs.
    pub run: usize,
    pub value: f64,
    pub ci95: Option<[f64; 2]>,
}

/// A step between two levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Places of the last run before it and the first run after it.
    pub between: [usize; 2],
    /// Levels before and after.
    pub before: f64,
    pub after: f64,
    pub p: f64,
    /// Whether it is one to the worse; `None` of a figure that has no better side.
    pub worse: Option<bool>,
    /// A later step took it back.
    pub undone: bool,
}

impl Step {
    pub fn relative(&self) -> f64 {
        self.after / self.before - 1.0
    }

    /// To the worse, and not taken back.
    pub fn counts(&self) -> bool {
        self.worse == Some(true) && !self.undone
    }
}

/// How far the last run or two lie from the level before them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Last {
    /// 1 or 2.
    pub runs: usize,
    pub before: f64,
    pub after: f64,
    pub worse: Option<bool>,
}

impl Last {
    pub fn relative(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// What the runs come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A figure stepped to the worse, and has not come back.
    Worse,
    /// Steps to the better, and none to the worse.
    Better,
    /// No step, but the last run or two lie off.
    Confirm,
    Steady,
    /// No figure has runs enough.
    CannotTell,
}

/// Something that differs between two runs, as their summaries report it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OutputChanged")]
pub struct Changed {
    /// As in a summary: `kernel`, `bios`; `boot` of a restart.
    pub label: String,
    pub before: String,
    pub after: String,
}

/// Why there is no trend: the runs are of none or of several hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(pub Vec<String>);

/// The trend of a host; of the only one where none is named. `profile` chooses the series where the
/// newest run's is not meant.
pub fn trend(
    all: Vec<HostResult>,
    host: Option<&str>,
    profile: Option<&str>,
) -> std::result::Result<Trend, Hosts> {
    let hosts: BTreeSet<&str> = all.iter().map(|run| run.host.as_str()).collect();
    let host = match (host, hosts.iter().next()) {
        (Some(host), _) if hosts.contains(host) => host.to_string(),
        (None, Some(only)) if hosts.len() == 1 => only.to_string(),
        _ => return Err(Hosts(hosts.into_iter().map(str::to_string).collect())),
    };
    let mut runs: Vec<HostResult> = all.into_iter().filter(|run| run.host == host).collect();
    runs.sort_by(|a, b| (&a.started, &a.file).cmp(&(&b.started, &b.file)));
    let mut trend = Trend { host, ..Trend::default() };
    let given = runs.len();
    // Invented runs all begin at one time: they are one only with the same numbers.
    runs.dedup_by(|a, b| a.started == b.started && a.series == b.series);
    trend.twice = given - runs.len();
    let Some(newest) = runs.iter().rfind(|run| profile.is_none_or(|own| run.profile == own)).cloned() else {
        for run in &runs {
            *trend.apart.entry(format!("profile {}", run.profile)).or_default() += 1;
        }
        return Ok(trend);
    };
    for run in runs {
        match another_series(&run, &newest) {
            Some(why) => *trend.apart.entry(why).or_default() += 1,
            None => trend.runs.push(run),
        }
    }
    trend.older = trend.runs.len().saturating_sub(MAX_RUNS);
    trend.runs.drain(..trend.older);
    trend.figures = figures(&trend.runs);
    judge(&mut trend.figures);
    Ok(trend)
}

/// What makes a run part of another series than the newest, if anything does.
fn another_series(run: &HostResult, newest: &HostResult) -> Option<String> {
    if run.pretended != newest.pretended {
        return Some(if run.pretended { "invented samples" } else { "measured samples" }.to_string());
    }
    if run.profile != newest.profile {
        return Some(format!("profile {}", if run.profile.is_empty() { "unknown" } else { &run.profile }));
    }
    // Summaries of the first versions do not record on which CPUs they ran.
    ["cpu_model", "cpus", "allowed_cpus"].iter().find_map(|label| {
        let (own, its) = (fact(run, label)?, fact(newest, label)?);
        (own != its).then(|| match *label {
            "cpu_model" => own.to_string(),
            "cpus" => format!("{own} CPUs"),
            _ => format!("CPUs {own}"),
        })
    })
}

pub fn fact<'a>(run: &'a HostResult, label: &str) -> Option<&'a str> {
    run.make_up.iter().find(|(own, _)| own == label).map(|(_, value)| value.as_str())
}

/// The figures of all runs, by their keys.
fn figures(runs: &[HostResult]) -> Vec<Figure> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<Figure> = Vec::new();
    // The newest run says in what order and in what unit.
    for (run, recorded) in runs.iter().enumerate().rev() {
        for one in recorded.series.iter().filter(|one| one.headline && is_value(one.median)) {
            let place = *places.entry(&one.key).or_insert_with(|| {
                let higher = match one.better.or_else(|| better_of(&one.unit)) {
                    Some(Better::Higher) => Some(true),
                    Some(Better::Lower) => Some(false),
                    Some(Better::Neither) | None => None,
                };
                all.push(Figure {
                    key: one.key.clone(),
                    unit: one.unit.clone(),
                    higher_is_better: higher,
                    ..Figure::default()
                });
                all.len() - 1
            });
            let figure = &mut all[place];
            let newer = figure.points.last().map_or(&recorded.assay, |point| &runs[point.run].assay);
            match one.unit == figure.unit
                && figure.measured_otherwise == 0
                && measured_alike(newer, &recorded.assay, &one.key)
            {
                true => figure.points.push(Point { run, value: one.median, ci95: one.ci95 }),
                false => figure.measured_otherwise += 1,
            }
        }
    }
    all.iter_mut().for_each(|figure| figure.points.reverse());
    all
}

fn is_value(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn judge(figures: &mut [Figure]) {
    let values = |figure: &Figure| figure.points.iter().map(|point| point.value).collect::<Vec<f64>>();
    let all: Vec<(Vec<f64>, f64)> = figures.iter().map(|one| (values(one), one.least())).collect();
    let found: Vec<Vec<shifts::Shift>> =
        all.iter().map(|(values, least)| shifts(values, *least, SEED)).collect();
    // A figure without a step was looked at, too.
    let mut tests: Vec<(usize, Option<usize>, f64)> = Vec::new();
    for (place, own) in found.iter().enumerate().filter(|(place, _)| figures[*place].is_judged()) {
        tests.extend(own.iter().map(|shift| (place, Some(shift.at), shift.p)));
        tests.extend(own.is_empty().then_some((place, None, 1.0)));
    }
    let adjusted = benjamini_hochberg(&tests.iter().map(|(_, _, p)| *p).collect::<Vec<f64>>());
    let mut lasts: Vec<(usize, shifts::Departure)> = Vec::new();
    for (place, figure) in figures.iter_mut().enumerate().filter(|(_, figure)| figure.is_judged()) {
        let (values, least) = &all[place];
        let sure = tests.iter().zip(&adjusted).filter(|((own, ..), p)| *own == place && **p <= FALSE_STEPS);
        let cuts: Vec<usize> = sure.filter_map(|((_, at, _), _)| *at).collect();
        let shifts = shifts::standing(values, cuts, |shift| shift.relative().abs() >= *least);
        let stretch = shifts.last().map_or(0, |shift| shift.at);
        figure.steps = shifts.iter().map(|shift| figure.step(shift)).collect();
        figure.take_back(*least);
        let away = departure(&values[stretch..]).filter(|last| last.relative().abs() >= *least);
        // What is not far enough away was looked at, too.
        let none = shifts::Departure { newest: 0, before: 1.0, after: 1.0, p: 1.0 };
        lasts.push((place, away.unwrap_or(none)));
    }
    let adjusted = benjamini_hochberg(&lasts.iter().map(|(_, last)| last.p).collect::<Vec<f64>>());
    for ((place, last), _) in lasts.iter().zip(adjusted).filter(|(_, p)| *p <= FALSE_STEPS) {
        let figure = &mut figures[*place];
        let worse = figure.worse(last.before, last.after);
        figure.last = Some(Last { runs: last.newest, before: last.before, after: last.after, worse });
    }
}

impl Figure {
    /// Whether it has runs enough to show a step.
    pub fn is_judged(&self) -> bool {
        self.points.len() >= MIN_RUNS
    }

    /// The least shift that is a step: its usual interval hides smaller ones.
    fn least(&self) -> f64 {
        let half = |point: &Point| {
            let [low, high] = point.ci95.filter(|[low, high]| low.is_finite() && high.is_finite())?;
            Some((high - low).abs() / 2.0 / point.value)
        };
        let halves: Vec<f64> = self.points.iter().filter_map(half).collect();
        median(&halves).unwrap_or(0.0).max(MIN_SHIFT)
    }

    fn worse(&self, before: f64, after: f64) -> Option<bool> {
        self.higher_is_better.map(|higher| (after < before) == higher)
    }

    fn step(&self, shift: &shifts::Shift) -> Step {
        Step {
            between: [self.points[shift.at - 1].run, self.points[shift.at].run],
            before: shift.before,
            after: shift.after,
            p: shift.p,
            worse: self.worse(shift.before, shift.after),
            undone: false,
        }
    }

    /// Marks the steps before which the level was no better than the last one is.
    fn take_back(&mut self, least: f64) {
        let Some(level) = self.steps.last().map(|step| step.after) else { return };
        let higher = self.higher_is_better;
        for step in &mut self.steps {
            let away = level / step.before - 1.0;
            let still = match higher {
                // The same side as the step went to.
                _ if (away < 0.0) != (step.relative() < 0.0) => false,
                _ => away.abs() >= least,
            };
            step.undone = !still;
        }
        // What only took back an earlier step is no change either.
        for at in 1..self.steps.len() {
            let (earlier, own) = self.steps.split_at(at);
            let took_back = |step: &Step| step.undone && (own[0].after / step.before - 1.0).abs() < least;
            self.steps[at].undone = own[0].undone || earlier.iter().any(took_back);
        }
    }

    /// The last step to the worse that has not been taken back, else the last other one.
    pub fn standing(&self) -> Option<&Step> {
        let worse = self.steps.iter().rfind(|step| step.counts());
        worse.or_else(|| self.steps.iter().rfind(|step| !step.undone))
    }
}

impl Trend {
    pub fn verdict(&self) -> Verdict {
        let standing = || self.figures.iter().filter_map(Figure::standing);
        match () {
            () if self.judged() == 0 => Verdict::CannotTell,
            () if self.figures.iter().flat_map(|figure| &figure.steps).any(Step::counts) => Verdict::Worse,
            () if self.figures.iter().any(|figure| figure.last.is_some()) => Verdict::Confirm,
            () if standing().any(|step| step.worse == Some(false)) => Verdict::Better,
            () => Verdict::Steady,
        }
    }

    /// How many figures have runs enough.
    pub fn judged(&self) -> usize {
        self.figures.iter().filter(|figure| figure.is_judged()).count()
    }

    /// What is known to have changed between the two runs of a step, what moves figures most often
    /// first.
    pub fn changed(&self, [before, after]: [usize; 2]) -> Vec<Changed> {
        match (self.runs.get(before), self.runs.get(after)) {
            (Some(before), Some(after)) => changed(before, after),
            _ => Vec::new(),
        }
    }
}

/// Labels in the order in which changes are shown; others follow.
const FIRST: [&str; 6] = ["assay", "kernel", "microcode", "bios", "governor", "mitigation_"];

/// What a run measured of itself is no cause.
const MEASURED: [&str; 4] = [CLOCK, "background", "steal", "profile"];

fn changed(before: &HostResult, after: &HostResult) -> Vec<Changed> {
    let mut all: Vec<(usize, Changed)> = Vec::new();
    let mut add = |rank: usize, label: &str, of: [&str; 2]| {
        let [before, after] = of.map(str::to_string);
        all.push((rank, Changed { label: label.to_string(), before, after }));
    };
    let rank = |label: &str| FIRST.iter().position(|first| label.starts_with(first));
    if before.assay != after.assay {
        add(0, "assay", [&before.assay, &after.assay]);
    }
    for (label, value) in after.make_up.iter().filter(|(label, _)| !MEASURED.contains(&label.as_str())) {
        let known = fact(before, label).filter(|own| label != "assay" && !value_alike(label, own, value));
        if let Some(own) = known {
            add(rank(label).unwrap_or(FIRST.len() + 2), label, [own, value]);
        }
    }
    if let (Some(one), Some(other)) = (&before.boot_id, &after.boot_id)
        && one != other
    {
        add(FIRST.len(), "boot", [one, other]);
    }
    let labels: BTreeSet<&String> = before.labels.keys().chain(after.labels.keys()).collect();
    for label in labels {
        let of = [before, after].map(|run| run.labels.get(label).map_or("none", String::as_str));
        if of[0] != of[1] {
            add(FIRST.len() + 1, &format!("label {label}"), of);
        }
    }
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, changed)| changed).collect()
}

#[cfg(test)]
mod tests;
