//! How far a number can be trusted: verdicts, findings, facts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands before the CPUs that a visit's wrong answer points at, in its reason.
pub const SUSPECT: &str = "suspected faulty core: CPU ";

/// The kinds of verdict; the JSON contract names them so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    Trusted,
    /// Believable, and what moved it is known.
    TrustedWithCause,
    /// Too few or too wide samples for the precision asked.
    Imprecise,
    /// Several values, not one.
    Multimodal,
    /// Still moving when measuring ended.
    Drifting,
    /// Not to be trusted.
    Rejected,
    /// Not measured.
    Skipped,
    /// Imported: no one watched while it was measured.
    Unverified,
}

impl VerdictKind {
    pub fn words(self) -> &'static str {
        match self {
            VerdictKind::Trusted => "trusted",
            VerdictKind::TrustedWithCause => "trusted, with cause",
            VerdictKind::Imprecise => "imprecise",
            VerdictKind::Multimodal => "multimodal",
            VerdictKind::Drifting => "drifting",
            VerdictKind::Rejected => "rejected",
            VerdictKind::Skipped => "skipped",
            VerdictKind::Unverified => "unverified",
        }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Whether a number can be trusted, and why (not). No number is shown without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub kind: VerdictKind,
    /// How well the number is known.
    #[serde(default)]
    pub grade: Grade,
    /// The number is that at the clock of its run.
    #[serde(default)]
    pub at_clock: bool,
    /// One sentence without a full stop; empty for `trusted`.
    pub reason: String,
}

impl Verdict {
    pub fn new(kind: VerdictKind, reason: impl Into<String>) -> Verdict {
        let grade = Grade::of(kind, None, 0.0);
        Verdict { kind, grade, at_clock: false, reason: reason.into() }
    }

    pub fn trusted() -> Verdict {
        Verdict::new(VerdictKind::Trusted, "")
    }

    /// The kind as people read it, with what the grade adds: `trusted at a clock`, `rough`, `wide`.
    pub fn words(&self) -> &'static str {
        match (self.kind, self.grade) {
            (VerdictKind::Trusted, _) if self.at_clock => "trusted at a clock",
            (VerdictKind::Imprecise, Grade::B | Grade::C) => self.grade.word(),
            _ => self.kind.words(),
        }
    }

    /// Whether the number may be used at all.
    pub fn usable(&self) -> bool {
        !matches!(self.kind, VerdictKind::Rejected | VerdictKind::Skipped)
    }
}

/// How well a figure is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Grade {
    /// Within the precision that was asked for: good for everything.
    A,
    /// Rough: within [`rough`]. Good for comparisons and the index; no finding below 20 % rests on
    /// it.
    B,
    /// Wide: an interval, and nothing better.
    C,
    /// Unknown: no interval, several values, still moving, rejected or not measured.
    #[default]
    U,
}

/// Relative half-width up to which a figure counts as rough, by the precision that was asked for:
/// 10 % where that was 3 %, as in the quick profile, 5 % where it was finer.
pub fn rough(precision: f64) -> f64 {
    let usual = if precision < 0.03 { 0.05 } else { 0.10 };
    f64::max(usual, precision)
}

impl Grade {
    pub const ALL: [Grade; 4] = [Grade::A, Grade::B, Grade::C, Grade::U];

    /// Of a figure with this relative half-width of its interval. What was imported no one watched:
    /// it is rough at best.
    pub fn of(verdict: VerdictKind, half_width: Option<f64>, precision: f64) -> Grade {
        match (verdict, half_width) {
            (VerdictKind::Trusted | VerdictKind::TrustedWithCause, _) => Grade::A,
            (VerdictKind::Imprecise | VerdictKind::Unverified, Some(half)) if half <= rough(precision) => {
                Grade::B
            }
            (VerdictKind::Imprecise | VerdictKind::Unverified, Some(_)) => Grade::C,
            _ => Grade::U,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Grade::A => "trusted",
            Grade::B => "rough",
            Grade::C => "wide",
            Grade::U => "unknown",
        }
    }
}

/// How grave a finding is; `--fail-on` compares them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Some numbers must be read with care.
    Warning,
    /// Some numbers are wrong or misleading, or the host is faulty.
    Problem,
}

impl Severity {
    pub const ALL: [Severity; 3] = [Severity::Note, Severity::Warning, Severity::Problem];

    pub const fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

impl std::str::FromStr for Severity {
    type Err = String;

    fn from_str(text: &str) -> Result<Severity, String> {
        let found = Severity::ALL.into_iter().find(|severity| severity.word() == text);
        found.ok_or_else(|| "severities are note, warning and problem".to_string())
    }
}

/// What a finding does to the verdicts of the series it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    #[default]
    None,
    /// It says what moved them: a trusted number becomes trusted with cause, modes and drift get
    /// their cause.
    Explains,
    /// They are not to be trusted.
    Rejects,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    pub label: String,
    /// The value with its unit, as people read it.
    pub value: String,
    /// What it rests on: a series key, a snapshot path, `visits` or a literature source.
    pub source: String,
}

impl Fact {
    pub fn new(label: impl Into<String>, value: impl fmt::Display, source: impl Into<String>) -> Fact {
        Fact { label: label.into(), value: value.to_string(), source: source.into() }
    }
}

/// Something that a rule found out: never without a fact, always with a command that confirms it.
/// A rule writes one as `Finding::warning(RULE, headline).cause(..).fact(..).confirm(..)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule's id; `assay explain ID` has more.
    pub rule: String,
    pub severity: Severity,
    /// One line: subject, verb, number. A second sentence says what that means for the reader.
    pub headline: String,
    /// Why, in a sentence or two.
    pub cause: String,
    pub facts: Vec<Fact>,
    /// A command that the user can run to see it for themselves.
    pub confirm: String,
    /// What to do about it.
    #[serde(default)]
    pub advice: String,
    /// Keys of the series that it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    #[serde(default)]
    pub effect: Effect,
}

impl Finding {
    pub fn note(rule: impl Into<String>, headline: impl Into<String>) -> FindingDraft {
        Finding::of(rule, Severity::Note, headline)
    }

    pub fn warning(rule: impl Into<String>, headline: impl Into<String>) -> FindingDraft {
        Finding::of(rule, Severity::Warning, headline)
    }

    pub fn problem(rule: impl Into<String>, headline: impl Into<String>) -> FindingDraft {
        Finding::of(rule, Severity::Problem, headline)
    }

    /// Begins a finding whose severity depends on what was found.
    pub fn of(rule: impl Into<String>, severity: Severity, headline: impl Into<String>) -> FindingDraft {
        FindingDraft(Finding {
            rule: rule.into(),
            severity,
            headline: headline.into(),
            cause: String::new(),
            facts: Vec::new(),
            confirm: String::new(),
            advice: String::new(),
            series: Vec::new(),
            effect: Effect::None,
        })
    }

    pub fn advice(mut self, advice: impl Into<String>) -> Finding {
        self.advice = advice.into();
        self
    }

    /// Concerns the series with these keys, and leaves their verdicts alone.
    pub fn concerns<Key: Into<String>>(self, keys: impl IntoIterator<Item = Key>) -> Finding {
        self.affects(Effect::None, keys)
    }

    /// Says what moved the series with these keys.
    pub fn explains<Key: Into<String>>(self, keys: impl IntoIterator<Item = Key>) -> Finding {
        self.affects(Effect::Explains, keys)
    }

    /// Rejects the series with these keys.
    pub fn rejects<Key: Into<String>>(self, keys: impl IntoIterator<Item = Key>) -> Finding {
        self.affects(Effect::Rejects, keys)
    }

    pub fn affects<Key: Into<String>>(
        mut self,
        effect: Effect,
        keys: impl IntoIterator<Item = Key>,
    ) -> Finding {
        self.effect = effect;
        self.series = keys.into_iter().map(Key::into).collect();
        self
    }

    /// What the verdict of a series that it concerns quotes: the first sentence, as the second is
    /// about all of them.
    pub fn reason(&self) -> String {
        let first = self.headline.split(". ").next().unwrap_or_default();
        format!("{}: {}", self.rule, first.trim_end_matches('.'))
    }
}

/// A finding that lacks the command that confirms it; [`FindingDraft::confirm`] completes it.
#[must_use]
pub struct FindingDraft(Finding);

impl FindingDraft {
    pub fn cause(mut self, cause: impl Into<String>) -> FindingDraft {
        self.0.cause = cause.into();
        self
    }

    pub fn fact(self, label: impl Into<String>, value: impl fmt::Display, source: impl Into<String>) -> Self {
        self.facts([Fact::new(label, value, source)])
    }

    pub fn facts(mut self, facts: impl IntoIterator<Item = Fact>) -> FindingDraft {
        self.0.facts.extend(facts);
        self
    }

    /// Completes it with a command that the user can run to see it for themselves.
    pub fn confirm(mut self, command: impl Into<String>) -> Finding {
        self.0.confirm = command.into();
        self.0
    }

    /// Completes it where reading the imported file again confirms it: the report names the file.
    pub fn confirm_by_import(self) -> Finding {
        self.confirm("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_keeps_what_its_rule_says() {
        let draft = Finding::warning("rule", "CPU 7 is slow. Look at it.").cause("It is hot.");
        let finding = draft
            .fact("clock", "2.1 GHz", "cpu.clock")
            .facts(None::<Fact>)
            .confirm("assay run")
            .advice("Cool it.")
            .explains(["a#x", "b#x"]);
        assert_eq!(finding.facts, [Fact::new("clock", "2.1 GHz", "cpu.clock")]);
        assert_eq!((finding.severity, finding.effect), (Severity::Warning, Effect::Explains));
        assert_eq!(finding.series, ["a#x", "b#x"]);
        assert_eq!(finding.reason(), "rule: CPU 7 is slow");
        let texts = [finding.cause, finding.confirm, finding.advice];
        assert_eq!(texts, ["It is hot.", "assay run", "Cool it."]);
    }

    #[test]
    fn a_finding_without_more_explains_nothing() {
        let finding = Finding::note("rule", "Nothing").fact("a", 1, "b").confirm_by_import();
        assert_eq!((finding.effect, finding.series.len()), (Effect::None, 0));
        assert_eq!((finding.confirm.as_str(), finding.advice.as_str()), ("", ""));
    }
}
