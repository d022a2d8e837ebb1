//! What a run means: evidence in, findings out, verdicts adjusted by what was found.
//!
//! To add a rule: write it into the file of its subject (or `SUBJECT.rs` with `pub const RULES:
//! &[Rule]` and that file's line in [`rules!`]). A rule is data and a pure function; its text is
//! what `assay explain ID` prints.
//!
//! Invariant: pure: never does I/O and never sees a live host.

#![forbid(unsafe_code)]

use machine::Machine;
use model::vocabulary::RuleId;
use model::vocabulary::guard::COMMAND;
use model::vocabulary::selftest::PLANTED;
use model::{Effect, Finding, Run, Verdict, VerdictKind};
use stats::analysis::{Judged, JudgedRun};
use stats::clusters::Clusters;
use stats::core_bound::RunClock;
use stats::quads::{Versus, versus};
use stats::siblings::Siblings;

pub mod at_rest;
pub mod bottom_line;
pub mod bound;
mod chunks;
pub mod distances;
pub mod escalation;
mod evidence;
pub mod finding_lines;
pub mod key_figures;
pub mod ladder;
mod mechanism;
pub mod memory_map;
mod mix;
pub mod moved;
pub mod neighbours;
mod others;
mod paused;
pub mod placed;
pub mod readiness;
pub mod readings;
pub mod reference;
pub mod regions;
pub mod shares;
pub mod suite;
mod summary;
pub mod tracks;
pub mod views;
pub mod words;

pub use evidence::Evidence;
pub use frequency_ramp::Wake;
pub use host_pauses::{Pauses, milliseconds};
use ladder::MeasuredCache;
pub use smt::{capacity, pays};
pub use sweep::swept;

/// Declares the modules and lists their rules, in the order in which findings of equal severity are
/// shown.
macro_rules! rules {
    ($($module:ident)+) => {
        $(mod $module;)+
        const FILES: &[&[Rule]] = &[$($module::RULES),+];
    };
}

rules! {
    answers
    ceiling
    placement
    unixbench
    work
    environment
    sandbox
    misplaced
    priority
    pressure
    clock
    shared_core
    slow_clock
    frequency_ramp
    memory
    translation
    memory_speeds
    memory_regions
    dimms
    caches
    cores
    loaded
    numa
    noise
    smt
    rate
    rate_slow_memory
    guard
    disk
    numa_rules
    sweep
    profile
    topology
    host_pauses
    network
}

/// One thing that can be found out.
pub struct Rule {
    pub id: RuleId,
    pub title: &'static str,
    /// What its findings are about, in one or two words of at most 12 columns; several may share
    /// one.
    pub topic: &'static str,
    /// What its findings mean for the reader: present tense, one idea per sentence.
    pub meaning: &'static str,
    /// What the reader should do: imperatives, a command where there is one.
    pub action: &'static str,
    /// The condition under which it appears, with the thresholds.
    pub when: &'static str,
    /// How the condition is computed, and the reasons or sources of its thresholds; may be empty.
    pub how: &'static str,
    /// What is in order if it finds nothing, in three to six words with their scope; empty: not
    /// shown.
    pub calm: &'static str,
    /// The source that it reads, in at most 18 columns: a file of the kernel or a measurement; may
    /// be empty.
    pub looked_at: &'static str,
    /// The source file: `file!()`.
    pub source: &'static str,
    /// `None`: it does not apply, because what it needs is not known. An empty list: it applies and
    /// found nothing.
    pub check: fn(&Evidence) -> Option<Vec<Finding>>,
}

/// All rules.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    FILES.iter().flat_map(|rules| rules.iter())
}

/// The topic of a rule's findings, by its id.
pub fn topic(rule_id: &str) -> Option<&'static str> {
    rules().find(|rule| rule.id == rule_id).map(|rule| rule.topic)
}

/// An evaluated run.
pub struct Diagnosis {
    pub run: Run,
    pub machine: Machine,
    /// The core clock of the run; `None` if unknown.
    pub clock: Option<RunClock>,
    pub series: Vec<Judged>,
    /// Caches whose size on the latency ladder contradicts the kernel.
    pub measured_caches: Vec<MeasuredCache>,
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// Rules that applied and found nothing.
    pub clean: Vec<&'static Rule>,
    /// Rules that did not apply.
    pub not_applicable: Vec<&'static Rule>,
}

/// From a run to what it means. Pure: the same run gives the same diagnosis on any host.
pub fn diagnose(run: Run) -> Diagnosis {
    let machine = Machine::from(&run.header.snapshot);
    let JudgedRun { clock, mut series } = stats::analysis::judge_run(&run, &machine);
    let (mut findings, mut clean, mut not_applicable) = (Vec::new(), Vec::new(), Vec::new());
    let nothing_ran = run.visits.is_empty();
    for rule in rules() {
        // Each rule sees the verdicts that the numbers alone gave, whatever other rules found.
        match (rule.check)(&Evidence::new(&run, &machine, clock, &series)) {
            None => not_applicable.push(rule),
            // Without measurements no check can pass.
            Some(found) if found.is_empty() && nothing_ran => not_applicable.push(rule),
            Some(found) if found.is_empty() => clean.push(rule),
            Some(found) => findings.extend(found),
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    guard::confirm_by_verb(&run, &mut findings);
    for finding in &findings {
        for judged in series.iter_mut().filter(|judged| finding.series.contains(&judged.series.key)) {
            judged.analysis.verdict = adjusted(&judged.analysis.verdict, finding);
        }
    }
    placement::withdraw_rejected(&mut findings, &series);
    // By verdicts as they now are: a ladder that was rejected names nothing.
    let measured_caches = ladder::measured_caches(&Evidence::new(&run, &machine, clock, &series));
    Diagnosis { run, machine, clock, series, measured_caches, findings, clean, not_applicable }
}

/// A verdict after a finding that concerns its series.
fn adjusted(verdict: &Verdict, finding: &Finding) -> Verdict {
    let because = finding.reason();
    let with_cause = || match verdict.reason.as_str() {
        "" => because.clone(),
        reason => format!("{reason}; {because}"),
    };
    match (finding.effect, verdict.kind) {
        (Effect::None, _) | (_, VerdictKind::Skipped | VerdictKind::Unverified) => verdict.clone(),
        // What rejected it first (no pass gave a number) is not hidden by what else is wrong.
        (Effect::Rejects, VerdictKind::Rejected) => Verdict::new(VerdictKind::Rejected, with_cause()),
        (Effect::Rejects, _) => Verdict::new(VerdictKind::Rejected, because),
        (Effect::Explains, VerdictKind::Trusted) => {
            Verdict { kind: VerdictKind::TrustedWithCause, reason: because, ..verdict.clone() }
        }
        (Effect::Explains, _) => Verdict { reason: with_cause(), ..verdict.clone() },
    }
}

impl Diagnosis {
    fn evidence(&self) -> Evidence<'_> {
        Evidence::new(&self.run, &self.machine, self.clock, &self.series)
    }

    /// What the curves show, with what the kernel reports.
    pub fn readings(&self) -> Vec<readings::CurveReading> {
        readings::readings(&self.evidence())
    }

    /// Spread of the core clock as a share of its median, from the 5th to the 95th percentile of
    /// the readings after samples; `None` if there are too few.
    pub fn clock_movement(&self) -> Option<f64> {
        clock::movement(&self.evidence()).map(|[low, middle, high]| (high - low) / middle)
    }

    /// The core clock after each length of idling, shortest first; empty where none was measured.
    pub fn wakes(&self) -> Vec<Wake> {
        frequency_ramp::wakes(&self.evidence())
    }

    /// Groups of CPUs by transfers of lines, with the case's key; `None` where none were measured.
    pub fn groups(&self) -> Option<(Clusters, String)> {
        distances::groups(&self.evidence())
    }

    /// CPUs and caches, reported and measured; `None` if the host reports no CPU.
    pub fn views(&self) -> Option<views::Views> {
        views::views(self)
    }

    /// Pairs of CPUs that drive each other's data out of a cache, or do not.
    pub fn contention(&self) -> Vec<distances::Contention> {
        distances::contention(&self.evidence())
    }

    /// CPUs that share a core by slowdown, with the case's key; `None` where none were measured.
    pub fn shared_cores(&self) -> Option<(Siblings, String)> {
        distances::shared_cores(&self.evidence())
    }

    /// The second of two guarded commands compared with the first, which ran alternately at one
    /// placement or at once; `None` for any other run.
    pub fn versus(&self) -> Option<Versus> {
        let result = |judged: &&Judged| judged.series.case.bench == COMMAND && judged.series.metric.headline;
        let both: Vec<&Judged> = self.series.iter().filter(result).collect();
        let [a, b] = both.as_slice() else { return None };
        let one_place = a.series.case.placement.name == b.series.case.placement.name;
        if one_place { versus(&a.series, &b.series) } else { None }
    }

    /// The evaluated factorial experiment of the run; `None` for any other run.
    pub fn profile_effects(&self) -> Option<shares::EvaluatedProfile<'_>> {
        shares::evaluated_profile(&self.run, &self.series)
    }

    /// The evaluated sweep of the run; `None` for any other run.
    pub fn swept(&self) -> Option<swept::EvaluatedSweep<'_>> {
        swept::evaluate_sweep(&self.evidence())
    }

    /// From the run's start to the end of its last pass, s.
    pub fn elapsed_s(&self) -> f64 {
        self.run.measured_ms() / 1e3
    }

    /// What makes two hosts peers, as label and value; a run that was slowed on purpose has no
    /// peers.
    pub fn make_up(&self) -> Vec<(String, String)> {
        let planted = self.planted().map(|words| (PLANTED.to_string(), words));
        words::make_up(&self.machine).into_iter().chain(planted).collect()
    }

    /// By how much its cases were slowed on purpose, in words; `None` of a measurement.
    pub fn planted(&self) -> Option<String> {
        let shares = self.run.header.plan.iter().filter_map(|planned| planned.case.inputs.get(PLANTED));
        let shares: Vec<f64> = shares.filter_map(|share| share.parse().ok()).collect();
        let most = shares.iter().copied().reduce(f64::max)?;
        let percent = (1000.0 * most).round() / 10.0;
        Some(format!("{percent} % more work than reported in {}", words::counted(shares.len(), "benchmark")))
    }

    /// Whether any figure is usable. Of two commands at once it is their ratio: a disturbance hit
    /// both.
    pub fn has_usable_numbers(&self) -> bool {
        self.series
            .iter()
            .any(|judged| judged.analysis.estimate.is_some() && judged.analysis.verdict.usable())
            || self.versus().is_some_and(|found| found.at_once && found.interval.is_some())
    }
}
