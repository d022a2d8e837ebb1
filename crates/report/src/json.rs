//! The machine-readable contract: what `--json`, `report.json` and the page's embedded data hold.

pub(crate) mod bottom_line;

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison;
use crate::notes::{Note, notes};
use crate::plain::hidden;
use crate::scores;
use crate::screen::Screen;
use crate::sections::screen;
use crate::{host, memory_map, rate_memory, regions, swept};
use compare::Comparison;
use diagnose::Diagnosis;
use diagnose::reference::References;
use model::{Better, Finding, Grade, Params, Reason, SCHEMA, VerdictKind};
use stats::analysis::Judged;
use stats::estimate::Estimate;
use stats::quads::{Basis, Versus};
use stats::series::Series;

/// A run's results. Names change only with `schema`; readers must accept fields that they do not
/// know.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    pub host: String,
    /// Of `--label`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// UTC, RFC 3339.
    pub started: String,
    pub profile: String,
    /// From the run's start to the end of its last visit, s.
    pub elapsed_s: f64,
    /// Whether the run came to its end by itself.
    pub complete: bool,
    /// Samples were invented (`--pretend`).
    pub pretended: bool,
    pub machine: machine::Summary,
    /// What makes hosts peers: label and value.
    pub make_up: Vec<(String, String)>,
    /// What the run comes to.
    pub verdict: bottom_line::OutputVerdict,
    /// A grade for each group of key figures that was measured.
    pub cards: Vec<bottom_line::OutputCard>,
    /// The figures of the first screen.
    pub key_figures: Vec<bottom_line::OutputKeyFigure>,
    pub series: Vec<OutputSeries>,
    /// Two guarded commands that ran alternately or at once (`assay guard --vs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<OutputVersus>,
    /// The UnixBench index, one for each number of copies; only where the run has something of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<scores::OutputIndex>,
    /// What a sweep over knobs comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<swept::OutputSweep>,
    /// Maps of memory, one a node; only where the run has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_maps: Vec<memory_map::OutputMap>,
    /// Regions of memory that were looked at, a case each; only where the run has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_regions: Vec<regions::OutputRegions>,
    /// What a guest gets of its host (`assay host`); only where the run watched its CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_share: Option<host::OutputHost>,
    /// What components of a rate suite are bound by; only where the run has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_bounds: Vec<rate_memory::OutputBound>,
    /// Components of a rate suite joined with the map of memory behind it; only where the run has
    /// both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_memory: Vec<rate_memory::OutputPlaced>,
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// Rules that looked and found nothing.
    pub rules_clean: Vec<String>,
    /// Rules that did not apply here because the data that they need are missing.
    pub rules_not_applicable: Vec<String>,
    /// Lines of the run file that could not be read.
    pub damage: Vec<String>,
    /// How many of its visits were used, where a run has more than an analysis needs or memory
    /// holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<String>,
    /// What benchmarks remarked about their own visits, each remark once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Older results beside this one, each compared with it: A is the older.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<comparison::Output>,
}

/// One metric at one point of one case.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputSeries {
    /// `bench@placement?param=value/point=value#metric`.
    pub key: String,
    pub case: String,
    pub bench: String,
    pub placement: String,
    /// Parameters of the case and of the point together.
    pub params: Params,
    pub metric: String,
    pub unit: String,
    pub better: Better,
    /// What its benchmark is about; the others ride along.
    #[serde(default)]
    pub headline: bool,
    /// Median of the process medians as it ran; null where there is no value.
    pub median: Option<f64>,
    /// 95 % interval of the median; null where too few values stand behind it.
    pub ci95: Option<[f64; 2]>,
    /// The number at one core clock of the run, which is what screens show and the verdict is
    /// about; only of series whose time is a count of core cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_clock: Option<OutputAtClock>,
    /// Beside a number at a clock: how it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_it_ran: Option<OutputAsItRan>,
    /// How many values the median counts: processes, or windows where these may stand for them.
    pub n: usize,
    /// Coefficient of variation of what was counted, a share.
    pub cv: Option<f64>,
    pub verdict: VerdictKind,
    /// How well the number is known: A within the precision asked, B rough, C wide, U not at all.
    #[serde(default)]
    pub grade: Grade,
    /// Why the verdict is what it is; empty for `trusted`.
    pub reason: String,
    /// Processes still missing for the precision asked, where more would help.
    pub more_needed: Option<usize>,
    /// Share of the variance that lies between processes (intraclass correlation).
    pub icc: Option<f64>,
    /// Every counted value: one list a process, in visiting order; null where a window gave no
    /// finite number.
    pub values: Vec<Vec<Option<f64>>>,
    /// The core clock beside each process, the median over its windows, GHz; empty where none was
    /// read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks_ghz: Vec<Option<f64>>,
    /// Why visits did not count.
    pub failures: Vec<String>,
}

/// A number at a core clock.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputAtClock {
    pub ghz: f64,
    pub median: f64,
    pub ci95: Option<[f64; 2]>,
    /// Of each process, in visiting order: what the interval rests on.
    pub medians: Vec<f64>,
    /// The share of a shift to another clock by which the number may be off.
    pub slack: f64,
    /// Of ln(time) on ln(clock) over its processes, with its standard error; null where the clock
    /// stood.
    pub slope: Option<f64>,
    pub slope_se: Option<f64>,
    /// What had another thread on its core, and is not counted here.
    #[serde(default)]
    pub left_out: OutputLeftOut,
}

/// Windows, and processes of which no window is counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OutputLeftOut {
    pub windows: usize,
    pub processes: usize,
}

/// A number as it ran, whatever the clock was.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputAsItRan {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub ci95: Option<[f64; 2]>,
}

/// Ratios of B's time to A's (of a rate its inverse), B being the command of `--vs`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputVersus {
    pub quads: usize,
    /// They ran at once on two CPUs (`--duet`), so that times hold only beside each other; a quad
    /// is then two rounds, between which they swap the CPUs.
    #[serde(default)]
    pub at_once: bool,
    /// What decides: `time` or `cycles`.
    pub by: String,
    pub ratio: f64,
    /// Null with too few quads.
    pub ci95: Option<[f64; 2]>,
    pub differs: bool,
    /// The smallest share of 1, 2, 5 and 10 % within which the two are the same; null where they
    /// are not.
    pub same_within: Option<f64>,
    pub ratio_in_time: f64,
    /// Null where the clock of an execution is not known.
    pub ratio_in_cycles: Option<f64>,
    /// B's core clock over A's, where the two differ in it.
    pub clock_ratio: Option<f64>,
}

fn versus(found: &Versus) -> OutputVersus {
    OutputVersus {
        quads: found.quads,
        at_once: found.at_once,
        by: match found.by {
            Basis::Time => "time".to_string(),
            Basis::Cycles => "cycles".to_string(),
        },
        ratio: found.difference.exp(),
        ci95: found.interval.map(|interval| [interval.low.exp(), interval.high.exp()]),
        differs: found.differs(),
        same_within: found.same_within(),
        ratio_in_time: found.in_time.0.exp(),
        ratio_in_cycles: found.in_cycles.map(|(difference, _)| difference.exp()),
        clock_ratio: found.clock_effect.map(f64::exp),
    }
}

/// A file that was given and is not counted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "OutputLeftOut")]
pub struct LeftOutFile {
    pub file: String,
    pub why: String,
}

pub fn left_out_files(files: &[(String, String)]) -> Vec<LeftOutFile> {
    files.iter().map(|(file, why)| LeftOutFile { file: file.clone(), why: why.clone() }).collect()
}

/// The results of a diagnosed run.
pub fn output(diagnosis: &Diagnosis, references: &References) -> Output {
    output_with(diagnosis, &[], references, &screen::screen(diagnosis, references, &[]))
}

/// The same with older results beside it.
pub fn output_beside(diagnosis: &Diagnosis, older: &[Comparison], references: &References) -> Output {
    output_with(diagnosis, older, references, &screen::screen(diagnosis, references, &[]))
}

/// The same with its first screen, in whatever units that is.
pub(crate) fn output_with(
    diagnosis: &Diagnosis,
    older: &[Comparison],
    references: &References,
    screen: &Screen,
) -> Output {
    let header = &diagnosis.run.header;
    let (verdict, cards, key_figures) = bottom_line::output(diagnosis, references, screen);
    Output {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        host: header.host.clone(),
        labels: header.labels.clone(),
        started: header.started.clone(),
        profile: header.profile.clone(),
        elapsed_s: diagnosis.elapsed_s(),
        complete: diagnosis.run.summary.is_some(),
        pretended: header.pretend.is_some(),
        machine: diagnosis.machine.summary(),
        make_up: diagnosis.make_up(),
        verdict,
        cards,
        key_figures,
        series: diagnosis.series.iter().map(series).collect(),
        versus: diagnosis.versus().as_ref().map(versus),
        index: scores::output(&diagnosis.series),
        sweep: swept::output(diagnosis),
        memory_maps: memory_map::output(diagnosis),
        memory_regions: regions::output(diagnosis),
        guest_share: host::output(diagnosis),
        rate_bounds: rate_memory::bounds(diagnosis),
        rate_memory: rate_memory::output(diagnosis),
        findings: diagnosis.findings.clone(),
        rules_clean: diagnosis.clean.iter().map(|rule| rule.id.to_string()).collect(),
        rules_not_applicable: diagnosis.not_applicable.iter().map(|rule| rule.id.to_string()).collect(),
        damage: diagnosis.run.damage.clone(),
        thinned: diagnosis.run.thinned.as_ref().map(|thinned| thinned.words()),
        notes: notes(diagnosis),
        beside: older.iter().map(comparison::output).collect(),
    }
}

/// JSON for people to read too. What a terminal would obey (C1 controls) or hide (overrides of the
/// writing direction) is escaped as well; such characters stand in strings only.
pub fn pretty(value: &impl Serialize) -> anyhow::Result<String> {
    let mut text = Vec::new();
    write_pretty(value, &mut text)?;
    String::from_utf8(text).context("cannot write JSON")
}

/// The same as it is made: the whole of it may be too large to be held.
pub fn write_pretty(value: &impl Serialize, mut out: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(Harmless(&mut out), value).context("cannot write JSON")?;
    out.write_all(b"\n").context("cannot write JSON")
}

/// Escapes what is not to reach a terminal. Whole characters come to it at a time.
struct Harmless<W>(W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(part).map_err(io::Error::other)?;
        let harms = |c: char| c != '\n' && (c.is_control() || hidden(c));
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| harms(*c)) {
            self.0.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                self.0.write_all(format!("\\u{unit:04x}").as_bytes())?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// JSON has no infinity and no NaN.
fn known(values: Vec<f64>) -> Vec<Option<f64>> {
    values.into_iter().map(|value| Some(value).filter(|value| value.is_finite())).collect()
}

fn clocks_ghz(series: &Series) -> Vec<Option<f64>> {
    let clocks: Vec<f64> = series.processes.iter().map(|process| process.clock_ghz()).collect();
    if clocks.iter().any(|clock| clock.is_finite()) { known(clocks) } else { Vec::new() }
}

fn ci95(estimate: &Estimate) -> Option<[f64; 2]> {
    estimate.interval.map(|interval| [interval.low, interval.high])
}

/// One series as the contract has it.
pub fn series(judged: &Judged) -> OutputSeries {
    let (series, analysis) = (&judged.series, &judged.analysis);
    let estimate = analysis.estimate.as_ref();
    let failed = |reason: &Reason| (!matches!(reason, Reason::Skipped(_))).then(|| reason.text().to_string());
    OutputSeries {
        key: series.key.clone(),
        case: series.case.key(),
        bench: series.case.bench.to_string(),
        placement: series.case.placement.name.to_string(),
        params: series.params(),
        metric: series.metric.name.to_string(),
        unit: series.metric.unit.to_string(),
        better: series.metric.better,
        headline: series.metric.headline,
        median: estimate.map(|estimate| estimate.median),
        ci95: estimate.and_then(ci95),
        at_clock: analysis.at_clock.as_ref().map(|at_clock| OutputAtClock {
            ghz: at_clock.ghz,
            median: at_clock.estimate.median,
            ci95: ci95(&at_clock.estimate),
            medians: at_clock.medians.clone(),
            slack: at_clock.brought.slack,
            slope: at_clock.brought.slope.map(|slope| slope.slope),
            slope_se: at_clock.brought.slope.map(|slope| slope.standard_error),
            left_out: OutputLeftOut {
                windows: at_clock.left_out.windows,
                processes: at_clock.left_out.processes,
            },
        }),
        as_it_ran: analysis.at_clock.as_ref().and(estimate).map(|ran| OutputAsItRan {
            median: ran.median,
            least: ran.least,
            most: ran.most,
            ci95: ci95(ran),
        }),
        n: estimate.map_or(0, |estimate| estimate.n),
        cv: estimate.and_then(|estimate| estimate.cv),
        verdict: analysis.verdict.kind,
        grade: analysis.verdict.grade,
        reason: analysis.verdict.reason.clone(),
        more_needed: analysis.more_needed,
        icc: estimate.and_then(|estimate| estimate.icc).map(|icc| icc.value),
        values: series.values().into_iter().map(known).collect(),
        clocks_ghz: clocks_ghz(series),
        failures: series.missing.iter().filter_map(|missing| failed(&missing.reason)).collect(),
    }
}
