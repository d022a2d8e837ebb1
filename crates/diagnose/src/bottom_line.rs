//! The bottom line of a run: one verdict of two to four words, and at most three sentences that say
//! what decides it, what was clean and how well the figures are known.

use std::cmp::Ordering;

use super::Diagnosis;
use super::finding_lines::{FindingLine, screen_order};
use super::key_figures::{self, Measured};
use super::reference::{HostClass, Reading, References, Word};
use super::words::{capital, listed, number_word, percent};
use model::vocabulary::RuleId;
use model::vocabulary::host::rule as rules;
use model::{Finding, Grade, Severity, VerdictKind};
use stats::analysis::Judged;

/// What a run comes to, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunVerdict {
    /// An answer was wrong, or measuring was too disturbed.
    NotValid,
    /// A problem was found, or a key figure is certainly bad.
    Faulty,
    /// There is a warning, a key figure is certainly slow, or too little is known well.
    UsableWithCaution,
    /// Nothing was found, and figures are as they are on such hosts.
    Healthy,
    /// Nothing was found, and no reference says what such hosts reach.
    NoFaultFound,
}

impl RunVerdict {
    pub fn words(self) -> &'static str {
        match self {
            RunVerdict::NotValid => "NOT VALID",
            RunVerdict::Faulty => "FAULTY",
            RunVerdict::UsableWithCaution => "USABLE WITH CAUTION",
            RunVerdict::Healthy => "HEALTHY",
            RunVerdict::NoFaultFound => "NO FAULT FOUND",
        }
    }
}

/// A verdict with its sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct BottomLine {
    pub verdict: RunVerdict,
    pub sentences: Vec<String>,
}

/// A key figure and how good it is.
#[derive(Clone, Debug)]
pub struct KeyReading {
    pub measured: Measured,
    /// `None` without a reference for this kind of host.
    pub reading: Option<Reading>,
    /// There is an interval, its better end has the same reading or a worse one, and the reference
    /// is of this very class of hosts.
    pub certain: bool,
    /// The same by a wider class of hosts: it decides no verdict.
    looks: bool,
}

impl KeyReading {
    /// Rejected by a finding, or better than anything real.
    pub fn is_rejected(&self) -> bool {
        self.measured.verdict == VerdictKind::Rejected || self.is_too_good()
    }

    fn is_too_good(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.word == Word::TooGoodToBeTrue)
    }

    /// How good it is for certain; `None` of what is good or not known for certain.
    fn certainly(&self) -> Option<Word> {
        let word = self.reading.as_ref().filter(|_| self.certain).map(|reading| reading.word);
        word.filter(|word| *word <= Word::Bad)
    }

    /// Whether it is slow or bad by a wider class of hosts.
    fn looks_slow(&self) -> bool {
        self.looks && self.reading.as_ref().is_some_and(|own| matches!(own.word, Word::Slow | Word::Bad))
    }

    /// A cache of which one task can use more than the kernel reports, beyond what reading it off a
    /// curve errs by.
    pub fn is_large(&self) -> bool {
        const BEYOND: f64 = 1.25;
        let low = self.measured.low_high.map(|[low, _]| low);
        self.measured.figure.is_size()
            && self.measured.reported.zip(low).is_some_and(|(reported, low)| low > BEYOND * reported)
    }

    /// A cache of which one task can use less than the kernel reports.
    pub fn is_small(&self) -> bool {
        let high = self.measured.low_high.map(|[_, high]| high);
        self.measured.figure.is_size()
            && self.measured.reported.zip(high).is_some_and(|(reported, high)| high < reported)
    }
}

/// The findings of a run as lines, those first that touch the most key figures.
pub fn finding_lines(diagnosis: &Diagnosis, figures: &[KeyReading]) -> Vec<FindingLine> {
    let touches = |finding: &Finding| {
        let touched =
            |own: &&KeyReading| own.measured.key.as_ref().is_some_and(|key| finding.series.contains(key));
        figures.iter().filter(touched).count()
    };
    let mut lines = screen_order(&diagnosis.findings, touches);
    if let Some(line) = too_good(figures) {
        let graver = lines.iter().take_while(|own| own.severity > line.severity).count();
        lines.insert(graver, line);
    }
    lines
}

/// A line of the key figures that are better than anything real.
fn too_good(figures: &[KeyReading]) -> Option<FindingLine> {
    let names = figures.iter().filter(|own| own.is_too_good()).map(|own| own.measured.figure.alone);
    too_good_line(&names.collect::<Vec<_>>(), Severity::Warning)
}

/// A line of figures that are better than anything real; `None` of none.
pub fn too_good_line(names: &[&str], severity: Severity) -> Option<FindingLine> {
    let are = match names.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    Some(FindingLine {
        severity,
        topic: "odd figure",
        text: format!(
            "{} {are} better than any real host of its kind: a cache, a clock or the reference is wrong.",
            capital(&listed(names))
        ),
        rule: REFERENCES.to_string(),
        advice: "Do not use it: measure it again with larger sizes, or see `assay explain references`."
            .into(),
        more: 0,
    })
}

/// What `assay explain` calls the readings.
const REFERENCES: &str = "references";

/// The key figures of a run with their readings.
pub fn key_readings(diagnosis: &Diagnosis, references: &References) -> Vec<KeyReading> {
    let class = references.class_of(&diagnosis.machine);
    key_figures::measured(diagnosis).into_iter().map(|own| key_reading(own, references, &class)).collect()
}

fn key_reading(measured: Measured, references: &References, class: &HostClass) -> KeyReading {
    let unit = measured.figure.unit;
    let reading = |value: f64, interval: Option<[f64; 2]>| {
        references.reading(class, measured.key.as_deref()?, value, interval, unit)
    };
    let own = measured.value.and_then(|value| reading(value, measured.low_high));
    let steady = own.as_ref().is_some_and(|own| {
        let ends = measured.low_high.into_iter().flatten().filter(|end| end.is_finite());
        let better = ends.filter_map(|end| reading(end, None)).map(|reading| reading.word).min();
        measured.low_high.is_some() && better.is_none_or(|better| better >= own.word)
    });
    let certain = steady && own.as_ref().is_some_and(Reading::is_certain);
    let looks = steady && own.as_ref().is_some_and(|own| own.wide && own.unsure.is_none());
    KeyReading { measured, reading: own, certain, looks }
}

/// What a run comes to.
pub fn bottom_line(diagnosis: &Diagnosis, figures: &[KeyReading]) -> BottomLine {
    let verdict = verdict(diagnosis, figures);
    // How certain the figures of an invalid run are does not matter.
    let known = known(diagnosis).filter(|_| verdict != RunVerdict::NotValid);
    let sentences = [Some(decides(diagnosis, figures, verdict)), clean(diagnosis), known];
    BottomLine { verdict, sentences: sentences.into_iter().flatten().collect() }
}

fn verdict(diagnosis: &Diagnosis, figures: &[KeyReading]) -> RunVerdict {
    let rejected = figures.iter().filter(|figure| figure.is_rejected()).count();
    let gravest = diagnosis.findings.iter().map(|finding| finding.severity).max();
    let worst = figures.iter().filter_map(KeyReading::certainly).max();
    let wrong = found(diagnosis, rules::WRONG_ANSWER);
    match () {
        () if wrong || 2 * rejected > figures.len() || !diagnosis.has_usable_numbers() => {
            RunVerdict::NotValid
        }
        () if gravest == Some(Severity::Problem) || worst == Some(Word::Bad) => RunVerdict::Faulty,
        () if gravest == Some(Severity::Warning)
            || worst == Some(Word::Slow)
            || figures.iter().any(KeyReading::is_too_good)
            || is_vague(diagnosis) =>
        {
            RunVerdict::UsableWithCaution
        }
        () if figures.iter().any(|figure| figure.reading.is_some()) => RunVerdict::Healthy,
        () => RunVerdict::NoFaultFound,
    }
}

/// Figures that were measured, each with half its interval as a share.
fn half_widths(diagnosis: &Diagnosis) -> Vec<(Grade, Option<f64>)> {
    let measured = |judged: &&Judged| judged.series.metric.headline && judged.analysis.estimate.is_some();
    let width = |judged: &Judged| {
        let width = judged.analysis.figure().and_then(|estimate| estimate.relative_half_width());
        (judged.analysis.verdict.grade, width)
    };
    diagnosis.series.iter().filter(measured).map(width).collect()
}

/// Whether fewer than half of the figures are graded A or B.
fn is_vague(diagnosis: &Diagnosis) -> bool {
    let all = half_widths(diagnosis);
    2 * all.iter().filter(|(grade, _)| *grade <= Grade::B).count() < all.len()
}

/// What decides the verdict.
fn decides(diagnosis: &Diagnosis, figures: &[KeyReading], verdict: RunVerdict) -> String {
    let lines = finding_lines(diagnosis, figures);
    let topics = |severity: Severity| {
        let mut topics: Vec<&str> = Vec::new();
        for line in lines.iter().filter(|line| line.severity == severity) {
            if !topics.contains(&line.topic) {
                topics.push(line.topic);
            }
        }
        topics
    };
    match verdict {
        RunVerdict::NotValid => not_valid(diagnosis, figures),
        RunVerdict::Faulty => {
            let problems = topics(Severity::Problem);
            let faults = match problems.len() {
                0 => bad_words(figures, Word::Bad).map_or(String::new(), |bad| format!("{bad}.")),
                _ if only_other_work(diagnosis) => {
                    return format!(
                        "The host was busy with other work, so that figures may be too slow. {}",
                        again(diagnosis)
                    );
                }
                1 => format!("One fault holds this host back: {}.", problems[0]),
                count => {
                    let many = capital(&number_word(count));
                    format!("{many} faults hold this host back: {}.", listed(&problems))
                }
            };
            format!("{faults} Do not accept or compare it before this is mended.")
        }
        RunVerdict::UsableWithCaution => {
            let slow = bad_words(figures, Word::Slow).or_else(|| looks_slow(figures));
            let warnings = topics(Severity::Warning);
            match (slow, warnings.as_slice()) {
                (Some(slow), []) => format!("{slow}."),
                (Some(slow), warnings) => format!("{slow}; read with care: {}.", listed(warnings)),
                (None, []) if figures.iter().any(KeyReading::is_small) => {
                    "One task gets less of the last-level cache than the kernel reports.".into()
                }
                (None, []) => {
                    "Nothing was found, but fewer than half of the figures are certain (grade A or \
                               B)."
                    .into()
                }
                (None, warnings) => format!("Read it with care: {}.", listed(warnings)),
            }
        }
        RunVerdict::Healthy => match looks_slow(figures) {
            Some(looks) => format!("No check failed. {looks}."),
            None => "No check failed, and no key figure is slow for this kind of host.".into(),
        },
        RunVerdict::NoFaultFound => "No check failed. No reference says what such a host reaches.".into(),
    }
}

/// What to do about other work.
fn again(diagnosis: &Diagnosis) -> String {
    let quick = if diagnosis.run.header.profile == "quick" { " --quick" } else { "" };
    format!("Measure again on a quiet host: assay run{quick} --wait-idle.")
}

fn found(diagnosis: &Diagnosis, rule: RuleId) -> bool {
    diagnosis.findings.iter().any(|finding| rule == finding.rule)
}

/// Whether other work explains all problems: then the host itself is not at fault.
fn only_other_work(diagnosis: &Diagnosis) -> bool {
    let mut problems = diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Problem);
    problems.all(|finding| rules::BACKGROUND_LOAD == finding.rule)
}

fn not_valid(diagnosis: &Diagnosis, figures: &[KeyReading]) -> String {
    let wrong = found(diagnosis, rules::WRONG_ANSWER);
    let rejected = figures.iter().filter(|figure| figure.is_rejected()).count();
    if wrong {
        return "A benchmark computed a wrong answer: suspect the core or the memory first.".into();
    }
    if rejected > 0 {
        let what = format!("{rejected} of {} key figures were rejected", figures.len());
        return if found(diagnosis, rules::BACKGROUND_LOAD) {
            format!("{what}: other work disturbed the measuring. {}", again(diagnosis))
        } else {
            format!("{what}: measuring was too disturbed.")
        };
    }
    match unmet(diagnosis) {
        Some(why) => format!("Nothing could be measured: {why}."),
        None => "Nothing could be measured validly.".into(),
    }
}

/// Why most of what was wanted is not possible here.
fn unmet(diagnosis: &Diagnosis) -> Option<&str> {
    let reasons = || diagnosis.run.header.plan.iter().filter_map(|planned| planned.unmet.as_deref());
    reasons().max_by_key(|reason| reasons().filter(|other| other == reason).count())
}

/// `Memory latency and fork and exec are slow for this kind of host`, of figures for which that is
/// certain.
fn bad_words(figures: &[KeyReading], word: Word) -> Option<String> {
    let adjective = if word == Word::Bad { "far too slow" } else { "slow" };
    let certain = figures.iter().filter(|figure| figure.certainly() == Some(word));
    named(certain, ["is", "are"], &format!("{adjective} for this kind of host"))
}

/// `Memory latency and page fault look slow compared with a wider class of hosts`.
fn looks_slow(figures: &[KeyReading]) -> Option<String> {
    let slow = figures.iter().filter(|figure| figure.looks_slow());
    named(slow, ["looks", "look"], "slow compared with a wider class of hosts")
}

/// A sentence about figures by their names; `None` without figures.
fn named<'a>(
    figures: impl Iterator<Item = &'a KeyReading>,
    [one, many]: [&str; 2],
    said: &str,
) -> Option<String> {
    // In a sentence the part of a name behind its comma is left out.
    let name = |figure: &'a KeyReading| figure.measured.figure.alone.split(',').next().unwrap_or_default();
    let mut names: Vec<&str> = figures.map(name).collect();
    names.dedup();
    let verb = if names.len() == 1 { one } else { many };
    (!names.is_empty()).then(|| format!("{} {verb} {said}", capital(&listed(&names))))
}

/// The passed checks of what disturbs figures most often.
pub fn clean(diagnosis: &Diagnosis) -> Option<String> {
    const LOOKED: [(RuleId, &str); 4] = [
        (rules::STEAL, "no steal"),
        (rules::CPU_QUOTA, "no CPU quota"),
        (rules::SWAPPING, "no swapping"),
        (rules::BACKGROUND_LOAD, "no other work"),
    ];
    let is_clean = |id: RuleId| diagnosis.clean.iter().any(|rule| rule.id == id);
    let parts: Vec<&str> = LOOKED.iter().filter(|(id, _)| is_clean(*id)).map(|(_, words)| *words).collect();
    match (is_clean(rules::WRONG_ANSWER), parts.len()) {
        (true, 0) => Some("Every answer was right.".into()),
        (true, _) => Some(format!("Every answer was right; {}.", parts.join(", "))),
        (false, 0) => None,
        (false, _) => Some(format!("{}.", capital(&parts.join(", ")))),
    }
}

/// Two hosts are compared by figures that are known as well as this.
const MAX_HALF_WIDTH_TO_COMPARE: f64 = 0.03;

/// How well the figures are known, and which comparisons that allows.
fn known(diagnosis: &Diagnosis) -> Option<String> {
    let mut widths: Vec<f64> = half_widths(diagnosis).iter().map(|(_, width)| width.unwrap_or(1.0)).collect();
    if widths.len() < 2 {
        return None;
    }
    widths.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    let median = widths[(widths.len() - 1) / 2];
    Some(match median {
        width if width >= 1.0 => "Most figures are too uncertain: measure longer.".into(),
        width if width <= MAX_HALF_WIDTH_TO_COMPARE => {
            format!(
                "Half of the figures are known to ±{} or better: enough to compare hosts.",
                percent(width)
            )
        }
        width => format!(
            "Half of the figures are known to ±{} or better: enough to read, not to compare hosts{}.",
            percent(width),
            if diagnosis.run.header.profile == "quick" { " (assay run: 10 min)" } else { "" }
        ),
    })
}
