//! A run checked against a spec: a row for each demand, and the verdict.

use diagnose::words::capital;
use std::collections::BTreeMap;

use anyhow::Context;
use diagnose::reference::Word;
use model::vocabulary::host::rule::BACKGROUND_LOAD;
use model::{Finding, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use super::among::not_slower;
use super::caveat::{Caveat, none_found};
use super::demand::{Demand, demand};
use super::figures::{key_figure, series};
use super::limit::DemandStatus;
use super::spec::{FactDemand, Spec};
use super::subject::{OF_RUN_FILES, Subject};
use diagnose::key_figures::KEY_FIGURES;

/// What a run comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Accept,
    Reject,
    CannotTell,
    /// The spec cannot judge the run: too old, another profile, invented samples.
    #[default]
    NotUsable,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Accept => "ACCEPT",
            Verdict::Reject => "REJECT",
            Verdict::CannotTell => "UNDECIDED",
            Verdict::NotUsable => "NOT USABLE",
        }
    }

    /// Of several runs: one rejected host rejects all; what cannot be judged comes before what is
    /// undecided.
    pub fn of_all(outcomes: &[Outcome]) -> Verdict {
        let order = [Verdict::Reject, Verdict::NotUsable, Verdict::CannotTell];
        let is = |verdict: &Verdict| outcomes.iter().any(|one| one.verdict == *verdict);
        order.into_iter().find(is).unwrap_or(Verdict::Accept)
    }

    /// 0 accepted, 1 rejected, 3 not usable, 4 undecided.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Accept => 0,
            Verdict::Reject => 1,
            Verdict::NotUsable => 3,
            Verdict::CannotTell => 4,
        }
    }
}

/// What files for other programs contain about a run beside its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Background {
    /// The version that measured it.
    pub assay: String,
    pub cpu_model: String,
    pub kernel: String,
    /// Findings of each severity, in the order of [`Severity::ALL`].
    pub findings: [usize; 3],
    /// No number in it may be used, or there is no run.
    pub nothing_measured: bool,
    /// Seconds after 1970.
    pub started_s: Option<f64>,
    /// How old a run its spec takes, s.
    pub max_age_s: Option<f64>,
}

impl Background {
    fn of(subject: &Subject, spec: Option<&Spec>) -> Background {
        let fact = |name: &str| subject.fact(name).unwrap_or_default().to_string();
        let count = |severity| subject.findings.iter().filter(|own| own.severity == severity).count();
        Background {
            assay: subject.assay.clone(),
            cpu_model: fact("cpu_model"),
            kernel: fact("kernel"),
            findings: Severity::ALL.map(count),
            nothing_measured: subject.nothing_valid,
            started_s: subject.started_s(),
            max_age_s: spec.and_then(|spec| spec.run.max_age_s),
        }
    }
}

/// A run by a spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    pub host: String,
    /// What its owner calls it by (`--label`).
    pub labels: BTreeMap<String, String>,
    pub file: String,
    /// What the host is, in parts: `2 × Intel Xeon Gold 6338`, `64 cores`, `256 GiB`.
    pub about: Vec<String>,
    pub spec: String,
    pub started: String,
    pub profile: String,
    pub verdict: Verdict,
    /// At most two, one if nothing was measured validly, and one a caveat.
    pub sentences: Vec<String>,
    pub demands: Vec<Demand>,
    /// What `within` counts from, as the spec names it; empty where it names nothing.
    pub reference: String,
    /// Why it says less than it seems to.
    pub caveats: Vec<Caveat>,
    /// Lines of the run's file that cannot be read, as sentences.
    pub damage: Vec<String>,
    #[serde(skip)]
    pub background: Background,
}

impl Outcome {
    /// Of a run that cannot be read: it is none that passes.
    pub fn unreadable(file: &str, why: &str, spec: &str) -> Outcome {
        Outcome {
            host: file.to_string(),
            file: file.to_string(),
            spec: spec.to_string(),
            sentences: vec![format!("The run cannot be read: {}.", why.trim_end_matches('.'))],
            background: Background { nothing_measured: true, ..Background::default() },
            ..Outcome::default()
        }
    }

    /// Of a run that is judged by none of several specs, as none or more than one fits its host.
    pub fn without_spec(subject: &Subject, why: &str) -> Outcome {
        Outcome {
            host: subject.host.clone(),
            labels: subject.labels.clone(),
            about: subject.about(),
            started: subject.started.clone(),
            profile: subject.profile.clone(),
            background: Background::of(subject, None),
            sentences: vec![format!("{}.", capital(why))],
            caveats: Caveat::of(subject),
            damage: subject.damage.clone(),
            ..Outcome::unreadable(&subject.file, why, "")
        }
    }

    /// The host, and in brackets what is to be known of its run.
    pub fn named(&self) -> String {
        let caveats: Vec<&str> = self.caveats.iter().map(|caveat| caveat.words()).collect();
        if caveats.is_empty() { self.host.clone() } else { format!("{} ({})", self.host, caveats.join(", ")) }
    }

    /// Keys of the series whose further visits may decide a demand.
    pub fn open_series(&self) -> Vec<String> {
        self.demands.iter().map(|demand| demand.open.clone()).filter(|key| !key.is_empty()).collect()
    }

    pub fn count(&self, standing: DemandStatus) -> usize {
        self.demands.iter().filter(|demand| demand.standing == standing).count()
    }
}

/// What a run comes to by a spec, `now_s` seconds after 1970. An error is one of the spec: a unit
/// that a series does not have.
pub fn check(spec: &Spec, subject: &Subject, now_s: f64) -> anyhow::Result<Outcome> {
    let mut demands: Vec<Demand> =
        spec.facts.iter().map(|(name, asked)| fact(name, asked, subject)).collect();
    for (name, limit) in &spec.limits.0 {
        demands.push(key_figure(name, limit, subject).with_context(|| format!("[limits] {name}"))?);
    }
    for (at, limit) in spec.limit.iter().enumerate() {
        demands.extend(series(limit, subject).with_context(|| format!("[[limit]] {}", at + 1))?);
    }
    demands.extend(spec.reading.map(|asked| readings(asked.at_least, subject)));
    demands.extend(spec.peers.iter().map(|_| not_slower(subject)));
    demands.extend(findings(spec, subject, now_s).into_iter().map(|own| none_found(own, subject)));
    demands.iter_mut().for_each(|demand| demand.confirm = with_needs(&demand.confirm, subject));
    let is_other_machine =
        demands.iter().any(|demand| demand.group == MACHINE && demand.standing == DemandStatus::Missed);
    let unusable = match nothing_valid(subject) {
        // What a host is needs no figure: one without half its modules is another.
        Some(why) if !is_other_machine => Some(why),
        _ => refused(spec, subject, now_s),
    };
    let has = |standing| demands.iter().any(|demand| demand.standing == standing);
    let verdict = match () {
        () if unusable.is_some() => Verdict::NotUsable,
        () if has(DemandStatus::Missed) => Verdict::Reject,
        () if has(DemandStatus::Met) && !has(DemandStatus::Undecided) => Verdict::Accept,
        () => Verdict::CannotTell,
    };
    let caveats = Caveat::of(subject);
    let mut sentences = match unusable {
        Some(why) => vec![why],
        None => sentences(&demands, subject).into_iter().chain(nothing_valid(subject)).collect(),
    };
    sentences.extend(caveats.iter().map(|caveat| caveat.sentence(subject)));
    Ok(Outcome {
        host: subject.host.clone(),
        labels: subject.labels.clone(),
        file: subject.file.clone(),
        about: subject.about(),
        spec: spec.name.clone(),
        started: subject.started.clone(),
        profile: subject.profile.clone(),
        verdict,
        sentences,
        demands,
        reference: spec.reference_name().to_string(),
        caveats,
        damage: subject.damage.clone(),
        background: Background::of(subject, Some(spec)),
    })
}

/// What would decide a demand, with all that it needs: another host, one that does nothing else.
fn with_needs(confirm: &str, subject: &Subject) -> String {
    let Some(bench) = confirm.strip_prefix("assay run") else { return confirm.to_string() };
    let network = if bench.starts_with(" --only network.") { " --to HOST" } else { "" };
    let busy = subject.findings.iter().any(|finding| finding.rule == BACKGROUND_LOAD.as_str());
    let own = confirm.replace(" --profile", &format!("{network} --profile"));
    format!("{own}{}", if busy { " --wait-idle" } else { "" })
}

/// Why no figure of the run can be judged.
fn nothing_valid(subject: &Subject) -> Option<String> {
    let problem = subject.findings.iter().find(|finding| finding.severity == Severity::Problem);
    let why = problem.map_or("measure again", |finding| finding.headline.trim_end_matches('.'));
    subject.nothing_valid.then(|| format!("The run has no valid figure: {why}."))
}

/// Why the run is none that the spec asks for.
fn refused(spec: &Spec, subject: &Subject, now_s: f64) -> Option<String> {
    const DAY: f64 = 86400.0;
    let profiles = &spec.run.profile;
    if !profiles.is_empty() && !profiles.contains(&subject.profile) {
        let asked = profiles.join(" or ");
        return Some(format!("The run's profile is {}; the spec asks for {asked}.", subject.profile));
    }
    let most = spec.run.max_age_s?;
    match subject.started_s() {
        Some(started) => {
            let age = now_s - started;
            if age < -DAY {
                return Some(format!(
                    "The run starts {:.1} days in the future. Correct the clock of this host or the run's host, and measure again.",
                    -age / DAY
                ));
            }
            (age > most).then(|| {
                format!(
                    "The run is {:.1} days old; the spec asks for at most {:.1}. Measure again.",
                    age / DAY,
                    most / DAY
                )
            })
        }
        None => Some("The run has no start time, and the spec asks for its age.".to_string()),
    }
}

/// What demands of facts are grouped under.
pub const MACHINE: &str = "machine";

/// What people call a fact; others by their own names.
const LABELS: [(&str, &str); 7] = [
    ("cpu_model", "CPU model"),
    ("cpus", "CPUs"),
    ("memory_gib", "memory, GiB (rounded)"),
    ("numa_nodes", "NUMA nodes"),
    ("dimm_verdict", "memory modules"),
    ("whole", "whole host"),
    ("threads_per_core", "threads per core"),
];

fn fact(name: &str, asked: &FactDemand, subject: &Subject) -> Demand {
    let label = LABELS.iter().find(|(own, _)| *own == name).map(|(_, label)| label.to_string());
    let label = label.unwrap_or_else(|| name.replace('_', " "));
    let own = demand(MACHINE, label, name, asked.words());
    let Some(value) = subject.fact(name) else {
        let why = match OF_RUN_FILES.contains(&name) {
            true if subject.readings.is_none() => {
                "the summary does not hold it: check the run file".to_string()
            }
            true => "the run does not report it".to_string(),
            false => {
                let names = subject.facts.iter().map(|(name, _)| name.as_str());
                format!("the run does not report it{}", model::did_you_mean(name, names))
            }
        };
        return Demand { why, ..own };
    };
    let standing = match asked.holds(value) {
        Some(true) => DemandStatus::Met,
        Some(false) => DemandStatus::Missed,
        None => DemandStatus::Undecided,
    };
    let why = if standing == DemandStatus::Undecided { "not a number" } else { "" };
    Demand { measured: value.to_string(), standing, why: why.into(), ..own }
}

fn readings(at_least: Word, subject: &Subject) -> Demand {
    let words = match at_least {
        Word::Fast => "fast",
        Word::Normal => "at least normal",
        _ => "at least slow",
    };
    let own = demand("readings", "all key figures", "reading", words.to_string());
    let Some(readings) = &subject.readings else {
        return Demand { why: "the summary has no readings: check the run file".into(), ..own };
    };
    let worse: Vec<_> =
        readings.iter().filter(|own| own.reading.as_ref().is_some_and(|one| one.word > at_least)).collect();
    let certain = worse.iter().any(|own| own.certain);
    let names: Vec<String> = worse.iter().take(3).map(|own| own.measured.figure.alone.to_string()).collect();
    let graded = readings.iter().filter(|own| own.reading.is_some()).count();
    let standing = match () {
        () if graded == 0 => DemandStatus::Undecided,
        () if certain => DemandStatus::Missed,
        () if worse.is_empty() => DemandStatus::Met,
        () => DemandStatus::Undecided,
    };
    let measured = match (graded, worse.len()) {
        (0, _) => String::new(),
        (_, 0) => format!("all {graded} are"),
        (_, count) => format!(
            "worse: {}{}",
            names.join(", "),
            if count > 3 { format!(" and {} more", count - 3) } else { String::new() }
        ),
    };
    let why = match standing {
        DemandStatus::Undecided if graded == 0 => "no reference for this host: see --reference",
        DemandStatus::Undecided => "not certain",
        _ => "",
    };
    Demand { measured, standing, why: why.into(), ..own }
}

/// A demand for each rule that may find nothing, and one for the rest.
fn findings(spec: &Spec, subject: &Subject, now_s: f64) -> Vec<Demand> {
    let asked = &spec.findings;
    let is_allowed =
        |rule: &str| asked.allow.iter().any(|allowed| allowed.rule == rule && is_valid(allowed, now_s));
    let topic = |rule: &str| diagnose::topic(rule).map_or_else(|| rule.to_string(), str::to_string);
    let none_of = asked.none_of.iter().map(|rule| {
        let found = subject.findings.iter().find(|finding| finding.rule == *rule);
        let standing = if found.is_some() { DemandStatus::Missed } else { DemandStatus::Met };
        let measured = found.map_or("none".to_string(), |finding| finding.severity.word().to_string());
        let why = found.map_or(String::new(), |finding| finding.headline.clone());
        Demand { standing, measured, why, ..demand("findings", topic(rule), rule, "none".into()) }
    });
    let mut all: Vec<Demand> = none_of.collect();
    if let Some(severity) = asked.fail_at {
        let words = match severity {
            Severity::Note => "none at all",
            Severity::Warning => "no warning or problem",
            Severity::Problem => "no problem",
        };
        let grave = subject
            .findings
            .iter()
            .filter(|finding| finding.severity >= severity && !is_allowed(&finding.rule));
        let mut topics: Vec<String> = grave.map(|finding| topic(&finding.rule)).collect();
        topics.dedup();
        let standing = if topics.is_empty() { DemandStatus::Met } else { DemandStatus::Missed };
        let measured = match topics.len() {
            0 => "none".to_string(),
            count if count > 3 => format!("{} and {} more", topics[..3].join(", "), count - 3),
            _ => topics.join(", "),
        };
        all.push(Demand { standing, measured, ..demand("findings", "findings", "fail_at", words.into()) });
    }
    all
}

/// Whether a finding is still put up with.
fn is_valid(allowed: &super::spec::Allowed, now_s: f64) -> bool {
    let Some(until) = &allowed.until else { return true };
    let Ok(now) = jiff::Timestamp::from_second(now_s as i64) else { return false };
    let Ok(last) = until.to_string().get(..10).unwrap_or_default().parse::<jiff::civil::Date>() else {
        return false;
    };
    now.to_zoned(jiff::tz::TimeZone::UTC).date() <= last
}

/// How many demands are met; what explains the missed ones.
fn sentences(demands: &[Demand], subject: &Subject) -> Vec<String> {
    std::iter::once(counted(demands)).chain(explains(demands, subject)).collect()
}

/// How many demands are met, missed and undecided.
pub fn counted(demands: &[Demand]) -> String {
    let count = |standing| demands.iter().filter(|demand| demand.standing == standing).count();
    let (missed, undecided, met) =
        (count(DemandStatus::Missed), count(DemandStatus::Undecided), count(DemandStatus::Met));
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    let asked = met + missed + undecided;
    match (missed, undecided) {
        (0, 0) if asked == 0 => match demands.len() {
            0 => "No demand could be judged.".to_string(),
            1 => "The one demand is optional, and its figure was not measured.".to_string(),
            all => format!("None of {all} demands could be judged: all are optional and were not measured."),
        },
        (0, 0) if asked == 1 => "The one demand is met.".to_string(),
        (0, 0) => format!("All {asked} demands are met."),
        (_, 0) if asked == 1 => "The one demand is missed.".to_string(),
        _ if asked == 1 => "The one demand is undecided.".to_string(),
        _ => {
            let part =
                |count: usize, word: &str| (count > 0).then(|| format!("{count} {} {word}", is(count)));
            let first =
                |count: usize, word: &str| Some(format!("{count} of {asked} demands {} {word}", is(count)));
            let parts = match missed {
                0 => [first(undecided, "undecided"), part(met, "met"), Some("none is missed".to_string())],
                _ => [first(missed, "missed"), part(met, "met"), part(undecided, "undecided")],
            };
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ") + "."
        }
    }
}

/// The finding that touches the most missed demands, with what to do about it.
fn explains(demands: &[Demand], subject: &Subject) -> Option<String> {
    let key = |demand: &Demand| {
        let figure = KEY_FIGURES.iter().find(|own| own.name == demand.key);
        let own = figure.and_then(|own| subject.key_figures.iter().find(|(name, _)| *name == own.name));
        own.map_or(demand.key.clone(), |(_, figure)| figure.key.clone())
    };
    let missed = || demands.iter().filter(|demand| demand.standing == DemandStatus::Missed);
    let touched = |finding: &Finding| {
        missed().filter(|demand| finding.rule == demand.key || finding.series.contains(&key(demand))).count()
    };
    let grave = subject.causes.iter().filter(|finding| finding.severity >= Severity::Warning);
    // Of equals the first, which is the gravest.
    let (touched, finding) =
        grave.rev().map(|finding| (touched(finding), finding)).max_by_key(|(touched, _)| *touched)?;
    let headline = finding.headline.trim_end_matches('.');
    (touched > 0).then(|| match missed().count() {
        1 => format!("One finding explains it: {headline}."),
        all if all == touched => format!("One finding explains all: {headline}."),
        _ => format!("One finding explains {touched} of them: {headline}."),
    })
}
