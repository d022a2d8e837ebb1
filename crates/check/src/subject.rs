//! What is judged: a host's facts, figures and findings, from a run file or from a summary of one.

use std::collections::BTreeMap;

use diagnose::Diagnosis;
use diagnose::bottom_line::KeyReading;
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use model::{Better, Finding, Summary, SummaryFinding, SummarySeries, VerdictKind, unit_factor};
use stats::analysis::Judged;

use super::among::PeerResult;

/// Facts of a host that its run file has and its summary lacks.
pub const OF_RUN_FILES: [&str; 2] = ["dimm_verdict", "whole"];

/// A figure as it was measured.
#[derive(Clone, Debug)]
pub struct Figure {
    pub key: String,
    /// What people call it.
    pub label: String,
    pub unit: String,
    pub value: Option<f64>,
    pub low_high: Option<[f64; 2]>,
    pub verdict: VerdictKind,
    /// Why the verdict is no better one; may be empty.
    pub reason: String,
    pub better: Option<Better>,
    pub headline: bool,
}

/// A run beside the reference of its spec.
#[derive(Clone, Debug, Default)]
pub struct ReferenceRatios {
    pub ratios: Vec<Ratio>,
    /// Keys of figures that cannot be compared, and why.
    pub refused: Vec<(String, String)>,
    /// The reference contains the run itself: it is no evidence that they are equal.
    pub same_run: bool,
}

/// A figure as a multiple of the reference's.
#[derive(Clone, Debug)]
pub struct Ratio {
    pub key: String,
    /// What both are, in words: `132 ns; the reference has 105 ns`.
    pub figures: String,
    pub value: f64,
    pub low_high: Option<[f64; 2]>,
    pub better: Better,
}

/// A run, as far as a spec can ask of it.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    pub host: String,
    /// Of `--label`.
    pub labels: BTreeMap<String, String>,
    /// The version that measured it.
    pub assay: String,
    /// The file that it was read from.
    pub file: String,
    pub started: String,
    pub profile: String,
    pub facts: Vec<(String, String)>,
    pub figures: Vec<Figure>,
    /// Of each key figure that was tried its name and the figure.
    pub key_figures: Vec<(&'static str, Figure)>,
    pub readings: Option<Vec<KeyReading>>,
    pub findings: Vec<SummaryFinding>,
    /// With the series that they concern; of a summary none.
    pub causes: Vec<Finding>,
    /// Number of series that the summary had no room for.
    pub left_out: u32,
    pub invented: bool,
    /// No number in it may be used.
    pub nothing_valid: bool,
    /// The run did not end by itself, or its end is missing.
    pub unfinished: bool,
    /// Lines of its file that cannot be read, as sentences.
    pub damage: Vec<String>,
    /// Beside the reference of its spec, where that names one.
    pub against: Option<ReferenceRatios>,
    /// Beside its peers, where its spec asks for them.
    pub among: Option<PeerResult>,
}

impl Subject {
    /// All of a run; `label` says what people call a series.
    pub fn of_run(
        diagnosis: &Diagnosis,
        readings: Vec<KeyReading>,
        file: &str,
        label: impl Fn(&Judged) -> String,
    ) -> Subject {
        let figure = |judged: &Judged| {
            let estimate = judged.analysis.figure();
            Figure {
                key: judged.series.key.clone(),
                label: label(judged),
                unit: judged.series.metric.unit.to_string(),
                value: estimate.map(|estimate| estimate.median),
                low_high: estimate.and_then(|one| one.interval).map(|one| [one.low, one.high]),
                verdict: judged.analysis.verdict.kind,
                reason: judged.analysis.verdict.reason.clone(),
                better: Some(judged.series.metric.better),
                headline: judged.series.metric.headline,
            }
        };
        let figures: Vec<Figure> = diagnosis.series.iter().map(figure).collect();
        let key_figures = readings.iter().map(|own| {
            let measured = &own.measured;
            let series = measured.key.as_ref().and_then(|key| figures.iter().find(|one| one.key == *key));
            let one = Figure {
                key: measured.key.clone().unwrap_or_default(),
                label: measured.figure.label.to_string(),
                unit: measured.figure.unit.to_string(),
                value: measured.value,
                low_high: measured.low_high,
                verdict: measured.verdict,
                reason: series.map_or(String::new(), |one| one.reason.clone()),
                better: None,
                headline: true,
            };
            (measured.figure.name, one)
        });
        let key_figures = key_figures.collect();
        let summary = diagnosis.summary();
        let mut facts = [summary.make_up, summary.settings].concat();
        facts.extend(of_run_file(diagnosis));
        Subject {
            host: summary.host,
            labels: summary.labels,
            assay: summary.assay,
            file: file.to_string(),
            started: summary.started,
            profile: summary.profile,
            facts,
            figures,
            key_figures,
            readings: Some(readings),
            findings: summary.findings,
            causes: diagnosis.findings.clone(),
            left_out: 0,
            invented: summary.pretended,
            nothing_valid: !diagnosis.has_usable_numbers(),
            unfinished: diagnosis.run.summary.is_none(),
            damage: diagnosis.run.damage.clone(),
            against: None,
            among: None,
        }
    }

    /// What a summary keeps of a run.
    pub fn of_summary(summary: &Summary, file: &str) -> Subject {
        let figures = summary.series.iter().map(|one| Figure {
            key: one.key.clone(),
            label: one.key.clone(),
            unit: one.unit.clone(),
            value: one.median,
            low_high: one.ci95,
            verdict: one.verdict,
            reason: String::new(),
            better: one.better,
            headline: !one.aside,
        });
        let figures: Vec<Figure> = figures.collect();
        let named = |figure: &'static KeyFigure| {
            let own = figure.find(figures.iter(), |one| &one.key)?;
            let factor = unit_factor(&own.unit, figure.unit)?;
            let one = Figure {
                label: figure.label.to_string(),
                unit: figure.unit.to_string(),
                value: own.value.map(|value| value * factor),
                low_high: own.low_high.map(|ends| ends.map(|end| end * factor)),
                ..own.clone()
            };
            Some((figure.name, one)).filter(|_| !figure.between_hosts)
        };
        Subject {
            host: summary.host.clone(),
            labels: summary.labels.clone(),
            assay: summary.assay.clone(),
            file: file.to_string(),
            started: summary.started.clone(),
            profile: summary.profile.clone(),
            facts: [summary.make_up.clone(), summary.settings.clone()].concat(),
            key_figures: KEY_FIGURES.iter().filter_map(named).collect(),
            figures,
            readings: None,
            findings: summary.findings.clone(),
            causes: Vec::new(),
            left_out: summary.series_left_out,
            invented: summary.pretended,
            nothing_valid: summary.series_left_out == 0 && !summary.series.iter().any(is_usable),
            unfinished: false,
            damage: Vec::new(),
            against: None,
            among: None,
        }
    }

    /// When it began, in seconds after 1970.
    pub(super) fn started_s(&self) -> Option<f64> {
        let started: jiff::Timestamp = self.started.parse().ok()?;
        Some(started.as_second() as f64)
    }

    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// What the host is, by its facts.
    pub(super) fn about(&self) -> Vec<String> {
        let count = |name: &str, what: &str| match self.fact(name)? {
            "1" => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let model = self.fact("cpu_model").map(|model| match self.fact("packages") {
            None | Some("1") => model.to_string(),
            Some(packages) => format!("{packages} × {model}"),
        });
        let memory = self.fact("memory_gib").map(|gib| format!("{gib} GiB"));
        let kernel = self.fact("kernel").map(|kernel| format!("Linux {kernel}"));
        [model, count("cores", "core"), memory, kernel].into_iter().flatten().collect()
    }
}

/// Whether the number of a series may be used at all.
fn is_usable(one: &SummarySeries) -> bool {
    one.median.is_some() && !matches!(one.verdict, VerdictKind::Rejected | VerdictKind::Skipped)
}

/// Facts that need the whole run file, by the names of [`OF_RUN_FILES`].
fn of_run_file(diagnosis: &Diagnosis) -> Vec<(String, String)> {
    let machine = &diagnosis.machine;
    let allowed = &diagnosis.run.header.allowed_cpus;
    let all = machine.cpus.online.len();
    let whole = match machine.limits.cpu_quota {
        Some(quota) if quota < all as f64 => "off",
        _ if allowed.len() < all => "off",
        _ => "on",
    };
    let modules = machine.population.dimm_verdict.map(|verdict| verdict.words().replace(' ', "_"));
    let values = [modules, (all > 0).then(|| whole.to_string())];
    let named = OF_RUN_FILES.iter().zip(values);
    named.filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}
