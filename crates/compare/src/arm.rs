//! One side of a comparison: its environment and its series, whether it was measured, saved as a
//! report or imported.

use std::collections::{BTreeMap, BTreeSet};

use super::environment::{self, CLOCK, OR};
use super::unixbench;
use diagnose::Diagnosis;
use diagnose::views::Views;
use diagnose::words::foreign_name;
use import::{Figure, Imported};
use model::vocabulary::ipc::metric::OCCUPANCY;
use model::vocabulary::{RuleId, host as ids};
use model::{Case, Effect, Finding, Metric, Params, Severity, Title, Verdict, VerdictKind};
use serde::Deserialize;
use stats::Judged;
use stats::core_bound::rescale;
use stats::order::median;

/// A result: of one run, or of several runs of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonSide {
    pub host: String,
    /// Where it was read from.
    pub file: String,
    pub imported: bool,
    /// Its samples were invented.
    pub pretended: bool,
    /// Runs that it consists of.
    pub runs: usize,
    /// Of each of its runs what is equal for one and the same, however it was saved, with the file
    /// it was read from; empty if unknown.
    pub identities: BTreeMap<String, String>,
    /// When its runs began: UTC, RFC 3339.
    pub started: Vec<String>,
    /// What is wrong with the files themselves, as sentences: cut off, or damaged.
    pub flaws: Vec<String>,
    /// The clock that timed it, where that is known.
    pub clock_source: Option<String>,
    /// Whether it marks its main figures.
    pub knows_headlines: bool,
    /// What is known of the circumstances: label and value. A value that ends in `…` was cut off.
    pub environment: Vec<(String, String)>,
    pub members: Vec<Member>,
    /// Its CPUs and caches, reported and measured, if it is a run.
    pub views: Option<Views>,
    /// What all last-level caches of the host hold together; `None` where that is not known.
    pub llc_bytes: Option<u64>,
    /// Rules of its problems and warnings; `None` where a summary or a foreign file has none.
    pub rules: Option<BTreeSet<String>>,
}

/// One series of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub key: String,
    pub case: Case,
    pub point: Params,
    pub metric: Metric,
    /// The benchmark in words, and the metric where it has several.
    pub title: String,
    /// How many processes each of the runs gave that have its values.
    pub counts: Vec<usize>,
    /// A median for each process, in visiting order, run after run.
    pub medians: Vec<f64>,
    /// The core clock beside each of them, GHz; not finite where it is not known.
    pub clocks: Vec<f64>,
    /// What they are at one clock, of a core-bound series that was brought to one.
    pub at_clock: Option<AtOneClock>,
    /// The series' number; not finite where there is none.
    pub median: f64,
    /// Its interval and what it counts, for a result that keeps no single values.
    pub given_interval: Option<([f64; 2], usize)>,
    pub verdict: Verdict,
    /// Rules by which something outside disturbed it.
    pub disturbed: Vec<String>,
    /// The rule that rejected it, where one did.
    pub rejected_by: Option<String>,
    /// How its meaning differs from the key's.
    pub note: String,
}

/// A core-bound series at one clock.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AtOneClock {
    pub ghz: f64,
    /// A median for each process that counts there, run after run.
    pub medians: Vec<f64>,
    /// How many of them each run gave.
    #[serde(skip)]
    pub counts: Vec<usize>,
}

/// Rules of what others did to the host meanwhile: with one of them against one arm, a
/// difference is no property of what was compared.
const OUTSIDE: [RuleId; 6] = [
    ids::rule::BACKGROUND_LOAD,
    ids::rule::HIGHER_PRIORITY,
    ids::rule::MEMORY_PRESSURE,
    ids::rule::CPU_QUOTA,
    ids::rule::STEAL,
    ids::rule::SWAPPING,
];

impl ComparisonSide {
    /// A run.
    pub fn measured(diagnosis: &Diagnosis, file: &str) -> ComparisonSide {
        let header = &diagnosis.run.header;
        let titles: BTreeMap<&str, &Title> =
            header.catalogue.iter().map(|title| (title.id.as_ref(), title)).collect();
        let title = |judged: &Judged| match titles.get(judged.series.case.bench.as_ref()) {
            Some(title) => whole_title(title, Some(&judged.series.metric)),
            None => judged.series.case.bench.to_string(),
        };
        let mut arm = ComparisonSide {
            host: header.host.clone(),
            file: file.to_string(),
            imported: false,
            pretended: header.pretend.is_some(),
            runs: 1,
            identities: identity(&header.host, &header.started, file),
            started: vec![header.started.clone()],
            flaws: flaws(file, diagnosis.run.summary.is_some(), &diagnosis.run.damage),
            clock_source: Some(header.clock.source.clone()),
            knows_headlines: true,
            environment: environment::environment(diagnosis),
            members: diagnosis.series.iter().map(|judged| member(judged, title(judged), "")).collect(),
            views: diagnosis.views(),
            llc_bytes: diagnosis.machine.llc_bytes(),
            rules: None,
        };
        arm.flaws.extend(diagnosis.run.thinned.iter().map(|thinned| format!("{file}: {}", thinned.words())));
        arm.blame(&diagnosis.findings);
        arm.members.extend(unixbench::indices(diagnosis, &arm.members));
        arm
    }

    /// A foreign result.
    pub fn imported(imported: &Imported, file: &str) -> ComparisonSide {
        let told = |(label, value): &(String, String)| match label.as_str() {
            "mhz" => (CLOCK.to_string(), format!("{value} MHz")),
            _ => (label.clone(), value.clone()),
        };
        let figures = imported.figures.iter();
        let title = |one: &Figure| foreign_name(&one.wording, &one.judged.series.metric.name);
        // Dates identify a result and do not describe the host.
        let dates = ["ran", "tested"];
        let ran = imported.make_up.iter().find(|(label, _)| label == "ran");
        ComparisonSide {
            host: imported.host.clone(),
            file: file.to_string(),
            imported: true,
            pretended: false,
            runs: 1,
            identities: ran.map_or_else(BTreeMap::new, |(_, ran)| identity(&imported.host, ran, file)),
            started: Vec::new(),
            flaws: Vec::new(),
            clock_source: None,
            knows_headlines: imported.figures.iter().any(|figure| !figure.judged.series.metric.headline),
            environment: imported
                .make_up
                .iter()
                .filter(|(label, _)| !dates.contains(&label.as_str()))
                .map(told)
                .collect(),
            members: figures
                .map(|one| member(&one.judged, title(one), &one.note).of_faulty(imported))
                .collect(),
            views: None,
            llc_bytes: None,
            rules: None,
        }
    }

    /// Notes its rules, and by series which findings are against it.
    pub(super) fn blame(&mut self, findings: &[Finding]) {
        let grave = findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        self.rules = Some(grave.map(|finding| finding.rule.clone()).collect());
        let mut of_key: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
        for finding in findings.iter().filter(|finding| finding.effect != Effect::None) {
            for key in &finding.series {
                of_key.entry(key).or_default().push(finding);
            }
        }
        for member in &mut self.members {
            let against = of_key.get(member.key.as_str()).map(Vec::as_slice).unwrap_or_default();
            let outside = against.iter().map(|finding| &finding.rule);
            member.disturbed =
                outside.filter(|rule| OUTSIDE.iter().any(|own| **rule == *own)).cloned().collect();
            member.disturbed.dedup();
            let rejecting = against.iter().filter(|finding| finding.effect == Effect::Rejects);
            member.rejected_by = rejecting.map(|finding| finding.rule.clone()).next();
        }
    }

    /// Its series that have a value and are results.
    pub fn valued(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.median.is_finite() && !member.tells_occupancy())
    }

    /// What each of its runs has of a member's series, a value a process; `scaled`: at that
    /// member's clock.
    pub(super) fn runs_of(&self, member: &Member, scaled: bool) -> Vec<Vec<f64>> {
        let Some(own) = self.valued().find(|own| own.key == member.key) else { return Vec::new() };
        let at_clock = own.at_clock.as_ref().zip(member.at_clock.as_ref()).filter(|_| scaled);
        let (mut values, counts) = match at_clock {
            Some((own, of)) => (own.at(&member.metric, of.ghz), &own.counts),
            None if scaled => return Vec::new(),
            None => (own.medians.clone(), &own.counts),
        };
        let run = |count: &usize| values.drain(..(*count).min(values.len())).collect::<Vec<f64>>();
        counts.iter().map(run).filter(|run| run.len() > 1).collect()
    }

    /// Names benchmarks by their entries in a catalogue, for a result that brought none.
    pub fn titled(mut self, catalogue: &[Title]) -> ComparisonSide {
        for member in &mut self.members {
            if let Some(title) = catalogue.iter().find(|title| title.id == member.case.bench) {
                let metric = title.metrics.iter().find(|metric| metric.name == member.metric.name);
                member.title = whole_title(title, metric);
            }
        }
        self
    }

    /// How many runs both hold. Invented runs all begin at one time on hosts of one name: they are
    /// the same only with the same numbers on the same host.
    pub fn shared_runs(&self, other: &ComparisonSide) -> usize {
        let equal_numbers = |one: &Member| {
            let same = |own: &&Member| own.key == one.key && own.metric.name == one.metric.name;
            let Some(own) = other.members.iter().find(same) else { return true };
            let (few, many) = if own.medians.len() < one.medians.len() { (own, one) } else { (one, own) };
            few.medians.iter().all(|value| many.medians.contains(value))
        };
        let equal_setting = |(label, value): &(String, String)| {
            other.environment.iter().all(|(own, theirs)| own != label || value == theirs)
        };
        let invented = self.pretended && other.pretended;
        if invented && !(self.members.iter().all(equal_numbers) && self.environment.iter().all(equal_setting))
        {
            return 0;
        }
        self.identities.keys().filter(|run| other.identities.contains_key(*run)).count()
    }

    /// Several runs of one host as one arm: what each counted of a series stands side by side. An
    /// error says which two cannot belong together.
    pub fn of_runs(runs: Vec<ComparisonSide>, file: &str) -> Result<ComparisonSide, String> {
        let mut runs = runs.into_iter();
        let mut whole = runs.next().ok_or("there is no run")?;
        for run in runs {
            if (&run.host, run.pretended) != (&whole.host, whole.pretended) {
                return Err(format!("{} is of {}, {} of {}", whole.file, whole.host, run.file, run.host));
            }
            let known = run.identities.keys().find_map(|identity| whole.identities.get(identity));
            if let Some(known) = known.filter(|_| run.shared_runs(&whole) > 0) {
                return Err(format!("{} is the same run as {known}", run.file));
            }
            whole.take(run);
        }
        whole.file = file.to_string();
        Ok(whole)
    }

    fn take(&mut self, run: ComparisonSide) {
        self.runs += run.runs;
        self.identities.extend(run.identities);
        self.started.extend(run.started);
        self.flaws.extend(run.flaws);
        self.rules = self.rules.take().zip(run.rules).map(|(own, more)| &own | &more);
        for (label, value) in run.environment {
            match self.environment.iter_mut().find(|(known, _)| *known == label) {
                Some((_, known)) if known.split(OR).any(|known| *known == value) => {}
                Some((_, known)) => known.push_str(&format!("{OR}{value}")),
                None => self.environment.push((label, value)),
            }
        }
        let places: BTreeMap<String, usize> =
            self.members.iter().enumerate().map(|(place, member)| (member.key.clone(), place)).collect();
        for member in run.members {
            match places.get(&member.key).and_then(|place| self.members.get_mut(*place)) {
                Some(known) => known.take(member),
                None => self.members.push(member),
            }
        }
    }
}

impl AtOneClock {
    /// Of one run.
    pub fn new(ghz: f64, medians: Vec<f64>) -> AtOneClock {
        AtOneClock { ghz, counts: vec![medians.len()], medians }
    }

    /// At another clock.
    pub fn at(&self, metric: &Metric, ghz: f64) -> Vec<f64> {
        let at = |value: &f64| rescale(metric, *value, self.ghz, ghz).unwrap_or(f64::NAN);
        self.medians.iter().map(at).collect()
    }
}

impl Member {
    /// The same of a file that has a problem: its tool reports failed or wrong work, or the file
    /// contradicts itself. Such a figure is compared with nothing. SPEC's findings concern its
    /// rules for publishing, and not each figure.
    fn of_faulty(mut self, imported: &Imported) -> Member {
        let is_against = |one: &&Finding| one.severity == Severity::Problem;
        let fault = imported.findings.iter().find(is_against);
        if let Some(fault) = fault.filter(|_| !imported.format.word().starts_with("SPEC")) {
            let what = import::topic(&fault.rule).unwrap_or(&fault.rule);
            self.verdict.kind = VerdictKind::Rejected;
            self.verdict.reason = format!("the file has a problem ({what}): see `assay import`");
            self.rejected_by = Some(fault.rule.clone());
        }
        self
    }

    /// Runs that gave its values.
    pub fn runs(&self) -> usize {
        self.counts.len()
    }

    /// Whether it says where the tasks of its case were.
    pub fn tells_occupancy(&self) -> bool {
        self.metric.name == OCCUPANCY
    }

    /// What another run has of the same series; a rejected one counts only where all are.
    fn take(&mut self, other: Member) {
        let unusable = |member: &Member| !member.verdict.usable() || !member.median.is_finite();
        match (unusable(self), unusable(&other)) {
            (_, true) => {}
            (true, false) => *self = other,
            (false, false) => {
                self.at_clock = self.at_clock.take().zip(other.at_clock).map(|(own, other)| {
                    let medians = [own.medians.clone(), other.at(&self.metric, own.ghz)].concat();
                    AtOneClock { ghz: own.ghz, medians, counts: [own.counts, other.counts].concat() }
                });
                self.counts.extend(other.counts);
                self.medians.extend(other.medians);
                self.clocks.extend(other.clocks);
                self.median = median(&self.medians).unwrap_or(self.median);
                self.disturbed.extend(other.disturbed);
                self.disturbed.sort();
                self.disturbed.dedup();
                // Together they are known as well as the best of them; of equally good ones a cause
                // is not lost.
                let (own, theirs) = (self.verdict.grade, other.verdict.grade);
                if theirs < own || (theirs == own && self.verdict.kind == VerdictKind::Trusted) {
                    self.verdict = other.verdict;
                }
            }
        }
    }
}

/// What identifies a run, with its file.
pub(super) fn identity(host: &str, started: &str, file: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(format!("{host} {started}"), file.to_string())])
}

/// What is wrong with the file of a run that came to its end (`complete`) or did not.
pub(super) fn flaws(file: &str, complete: bool, damage: &[String]) -> Vec<String> {
    let torn = format!("the run in {file} is incomplete: parts of it are missing");
    let lines = |first: &String| match damage.len() {
        1 => format!("{file} is damaged: {first}"),
        count => format!("{file} is damaged in {count} places, the first: {first}"),
    };
    (!complete).then_some(torn).into_iter().chain(damage.first().map(lines)).collect()
}

/// What a figure is called: its benchmark, and the metric where it is not the benchmark's first.
fn whole_title(title: &Title, metric: Option<&Metric>) -> String {
    match metric.filter(|metric| title.metrics.first().is_some_and(|first| first.name != metric.name)) {
        Some(metric) => format!("{}: {}", title.title, metric.title),
        None => title.title.to_string(),
    }
}

/// The benchmark in the name of a figure.
pub(super) fn benchmark(title: &str) -> &str {
    title.split(": ").next().unwrap_or(title)
}

fn member(judged: &Judged, title: String, note: &str) -> Member {
    let (series, analysis) = (&judged.series, &judged.analysis);
    let counted = series.processes.iter().filter_map(|process| Some((median(&process.values)?, process)));
    let (medians, clocks): (Vec<f64>, Vec<f64>) =
        counted.map(|(value, process)| (value, process.clock_ghz())).unzip();
    Member {
        key: series.key.clone(),
        case: series.case.clone(),
        point: series.point.clone(),
        metric: series.metric.clone(),
        title,
        counts: vec![medians.len()],
        medians,
        clocks,
        at_clock: analysis.at_clock.as_ref().map(|found| AtOneClock::new(found.ghz, found.medians.clone())),
        median: analysis.estimate.as_ref().map_or(f64::NAN, |estimate| estimate.median),
        given_interval: None,
        verdict: analysis.verdict.clone(),
        disturbed: Vec::new(),
        rejected_by: None,
        note: note.to_string(),
    }
}
