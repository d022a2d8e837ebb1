//! What `assay run --json` printed, or saved as `report.json`, as one side of a comparison. It has
//! no conditions of single visits; values, clocks, verdicts and findings it has.

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::arm::{flaws, identity};
use super::{AtOneClock, ComparisonSide, Member};
use import::keyed;
use model::{Better, Finding, Form, Grade, Metric, SCHEMA, Summary, SummarySeries, Verdict, VerdictKind};
use stats::order::{Interval, median};

/// The part of the contract that a comparison needs.
#[derive(Deserialize)]
struct Saved {
    host: String,
    started: String,
    #[serde(default)]
    profile: String,
    #[serde(default)]
    assay: String,
    #[serde(default)]
    pretended: bool,
    #[serde(default = "yes")]
    complete: bool,
    #[serde(default)]
    damage: Vec<String>,
    #[serde(default)]
    make_up: Vec<(String, String)>,
    series: Vec<Series>,
    #[serde(default)]
    findings: Vec<Finding>,
}

/// Nothing said is nothing wrong.
fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Series {
    key: String,
    unit: String,
    better: Better,
    /// Reports of the first versions do not record it.
    headline: Option<bool>,
    median: Option<f64>,
    ci95: Option<[f64; 2]>,
    #[serde(default)]
    n: usize,
    verdict: VerdictKind,
    /// Reports of the first version do not record it.
    grade: Option<Grade>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    values: Vec<Vec<Option<f64>>>,
    #[serde(default)]
    clocks_ghz: Vec<Option<f64>>,
    at_clock: Option<AtOneClock>,
}

impl ComparisonSide {
    /// A run's results as JSON. An error says why they are none.
    pub fn saved(json: serde_json::Value, file: &str) -> anyhow::Result<ComparisonSide> {
        let schema = json.get("schema").and_then(serde_json::Value::as_u64);
        let schema =
            schema.context("it is JSON, but not the output of `assay run --json`: it has no schema")?;
        ensure!(
            schema <= u64::from(SCHEMA),
            "it was written by a newer Assay (schema {schema}, this one reads up to {SCHEMA}): use that version"
        );
        let saved: Saved =
            serde_json::from_value(json).context("it is JSON, but not the output of `assay run --json`")?;
        Ok(saved.arm(file))
    }

    /// A run by its summary, which has values and their intervals.
    pub fn summarised(summary: Summary, file: &str) -> ComparisonSide {
        let series = |one: SummarySeries| Series {
            key: one.key,
            unit: one.unit,
            better: one.better.unwrap_or(Better::Neither),
            headline: Some(!one.aside),
            median: one.median,
            ci95: one.ci95,
            n: one.n as usize,
            verdict: one.verdict,
            grade: None,
            reason: String::new(),
            values: Vec::new(),
            clocks_ghz: Vec::new(),
            at_clock: None,
        };
        let saved = Saved {
            host: summary.host,
            started: summary.started,
            profile: summary.profile,
            assay: summary.assay,
            pretended: summary.pretended,
            complete: true,
            damage: Vec::new(),
            make_up: summary.make_up.into_iter().chain(summary.settings).collect(),
            series: summary.series.into_iter().map(series).collect(),
            findings: Vec::new(),
        };
        ComparisonSide { rules: None, ..saved.arm(file) }
    }
}

impl Saved {
    fn arm(self, file: &str) -> ComparisonSide {
        let saved = self;
        let mut environment = saved.make_up;
        for (label, value) in [("profile", &saved.profile), ("assay", &saved.assay)] {
            if !value.is_empty() {
                environment.push((label.to_string(), value.clone()));
            }
        }
        let knows_headlines = saved.series.iter().all(|series| series.headline.is_some());
        let members: Vec<Member> = saved.series.into_iter().filter_map(member).collect();
        let mut arm = ComparisonSide {
            identities: identity(&saved.host, &saved.started, file),
            started: vec![saved.started.clone()],
            flaws: flaws(file, saved.complete, &saved.damage),
            host: saved.host,
            file: file.to_string(),
            imported: false,
            pretended: saved.pretended,
            runs: 1,
            clock_source: None,
            knows_headlines,
            environment,
            members,
            views: None,
            llc_bytes: None,
            rules: None,
        };
        arm.blame(&saved.findings);
        arm
    }
}

/// The precision of quick runs, by which a report that has no grades is graded.
const QUICK: f64 = 0.03;

fn member(series: Series) -> Option<Member> {
    let keyed = keyed(&series.key)?;
    let processes = series.values.iter().map(|values| values.iter().flatten().copied().collect::<Vec<f64>>());
    let medians: Vec<f64> = processes.filter_map(|values| median(&values)).collect();
    let clock = |at: usize| series.clocks_ghz.get(at).copied().flatten().unwrap_or(f64::NAN);
    let clocks = (0..medians.len()).map(clock).collect();
    // The contract does not say how a value came about: it is the value.
    let metric = Metric {
        name: keyed.metric.clone().into(),
        title: keyed.metric.clone().into(),
        unit: series.unit.into(),
        better: series.better,
        form: Form::Value,
        headline: series.headline.unwrap_or(false),
        detail: false,
    };
    let half = series
        .ci95
        .zip(series.median)
        .and_then(|([low, high], median)| Interval { low, high }.relative_half_width(median));
    let grade = series.grade.unwrap_or_else(|| Grade::of(series.verdict, half, QUICK));
    Some(Member {
        title: format!("{}: {}", keyed.case.bench, keyed.metric),
        metric,
        counts: vec![medians.len()],
        at_clock: series
            .at_clock
            .filter(|_| !medians.is_empty())
            .map(|at_clock| AtOneClock::new(at_clock.ghz, at_clock.medians)),
        case: keyed.case,
        point: keyed.point,
        clocks,
        given_interval: series.ci95.filter(|_| medians.is_empty()).map(|interval| (interval, series.n)),
        medians,
        median: series.median.unwrap_or(f64::NAN),
        verdict: Verdict { grade, ..Verdict::new(series.verdict, series.reason) },
        disturbed: Vec::new(),
        rejected_by: None,
        note: String::new(),
        key: series.key,
    })
}
