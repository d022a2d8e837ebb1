//! Outcomes for other programs: metrics of Prometheus, and rows for spreadsheets.

use std::collections::BTreeMap;

use anyhow::Context;
use check::{Demand, DemandStatus, Outcome, Verdict};
use model::pattern::KeyParts;
use model::{Severity, unit_factor};

use crate::csv::{harmless, words};
use crate::prometheus::Exposition;

/// A family of metrics in a base unit: the unit that it takes, how many base units that has, its
/// name and its help text.
struct Family {
    unit: &'static str,
    base: f64,
    name: &'static str,
    help: &'static str,
}

const fn family(unit: &'static str, base: f64, name: &'static str, help: &'static str) -> Family {
    Family { unit, base, name, help }
}

const FAMILIES: [Family; 7] = [
    family("s", 1.0, "assay_time_seconds", "Figures that a spec limits: times."),
    family("kB/s", 1e3, "assay_throughput_bytes_per_second", "Figures that a spec limits: data per second."),
    family("1/s", 1.0, "assay_rate_per_second", "Figures that a spec limits: operations per second."),
    family("MHz", 1e6, "assay_frequency_hertz", "Figures that a spec limits: clocks."),
    family("B", 1.0, "assay_size_bytes", "Figures that a spec limits: sizes."),
    family("cycles", 1.0, "assay_cycles", "Figures that a spec limits: cycles of the core clock."),
    family("×", 1.0, "assay_ratio", "Figures that a spec limits: multiples of the reference or shares."),
];

/// A figure in its family's base unit.
fn based(demand: &Demand, family: &Family) -> Option<f64> {
    let share = if demand.unit == "%" && family.unit == "×" { Some(0.01) } else { None };
    let factor = share.or_else(|| unit_factor(&demand.unit, family.unit))?;
    Some(demand.value? * factor * family.base)
}

/// A label of a metric, with its value.
type Label = (&'static str, String);

/// What outcomes come to, for the textfile collector of a node exporter. What was rejected as a
/// figure is not in it.
pub fn prometheus(outcomes: &[Outcome]) -> String {
    let mut all = Exposition::default();
    let host = |one: &Outcome| ("host", one.host.clone());
    let of_spec = |one: &Outcome, value: f64| (vec![("spec", one.spec.clone()), host(one)], value);
    let is = |one: &Outcome, verdicts: &[Verdict]| if verdicts.contains(&one.verdict) { 1.0 } else { 0.0 };
    let decided = outcomes.iter().filter(|one| is(one, &[Verdict::Accept, Verdict::Reject]) > 0.0);
    all.gauge(
        "assay_check_passed",
        "1: the spec accepts the host's run, 0: it rejects it. An undecided run has no sample.",
        decided.map(|one| of_spec(one, is(one, &[Verdict::Accept]))),
    );
    all.gauge(
        "assay_check_undecided",
        "1: the run decides nothing, or the spec cannot judge it. 0: it is accepted or rejected.",
        outcomes.iter().map(|one| of_spec(one, is(one, &[Verdict::CannotTell, Verdict::NotUsable]))),
    );
    all.gauge(
        "assay_check_demands",
        "Demands of the spec by result.",
        outcomes.iter().flat_map(|one| {
            [DemandStatus::Met, DemandStatus::Missed, DemandStatus::Undecided].map(|standing| {
                let (mut labels, value) = of_spec(one, one.count(standing) as f64);
                labels.push(("standing", words(&standing)));
                (labels, value)
            })
        }),
    );
    all.gauge(
        "assay_run_timestamp_seconds",
        "Start time of the checked run.",
        outcomes.iter().filter_map(|one| Some((vec![host(one)], one.background.started_s?))),
    );
    // What could not be read has no findings, and no host.
    let read = || outcomes.iter().filter(|one| !one.background.assay.is_empty());
    all.gauge(
        "assay_run_info",
        "The checked run: profile, version of Assay, processor, kernel, label_NAME for each label.",
        read().map(|one| {
            let own = &one.background;
            let info: [Label; 4] = [
                ("profile", one.profile.clone()),
                ("version", own.assay.clone()),
                ("cpu_model", own.cpu_model.clone()),
                ("kernel", own.kernel.clone()),
            ];
            let info = info.into_iter().chain([host(one)]).map(|(name, value)| (name.to_string(), value));
            (info.chain(owned(&one.labels)).collect::<Vec<_>>(), 1.0)
        }),
    );
    all.gauge(
        "assay_findings",
        "Findings of the checked run.",
        read().flat_map(|one| {
            let counts = Severity::ALL.into_iter().zip(one.background.findings);
            counts.map(|(severity, count)| {
                (vec![("severity", severity.word().to_string()), host(one)], count as f64)
            })
        }),
    );
    for family in &FAMILIES {
        let figures = outcomes.iter().flat_map(|one| one.demands.iter().map(move |demand| (one, demand)));
        let samples = figures.filter_map(|(one, demand)| {
            let series = demand.series.as_ref()?;
            Some((labels_of(one, demand, series), based(demand, family)?))
        });
        all.gauge(family.name, family.help, samples);
    }
    all.text()
}

/// What the host's owner calls it by, for the one metric that others are joined with: on each, all
/// series would be new ones wherever a label changes. Names begin as kube-state-metrics has them,
/// so that none is one of ours.
fn owned(labels: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, value) in labels {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name = format!("label_{}", name.chars().map(plain).collect::<String>());
        // `rack-row` and `rack.row` are two labels.
        while all.iter().any(|(known, _)| *known == name) {
            name.push('_');
        }
        all.push((name, value.clone()));
    }
    all
}

/// Whose figure it is, what the spec calls it, and the parts of its series.
fn labels_of(outcome: &Outcome, demand: &Demand, series: &str) -> Vec<Label> {
    let parts = KeyParts::of(series);
    let place = [&[parts.placement][..], &parts.with].concat().join("+");
    let params: Vec<String> = parts.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        ("host", outcome.host.clone()),
        ("figure", demand.key.clone()),
        ("bench", parts.bench.to_string()),
        ("placement", place),
        ("params", params.join(",")),
        ("metric", parts.metric.to_string()),
    ]
}

/// Columns of [`rows`].
const ROWS: [&str; 19] = [
    "kind", "host", "labels", "file", "started", "profile", "spec", "verdict", "group", "demand", "key",
    "asked", "measured", "value", "low", "high", "unit", "standing", "why",
];

/// A row for each demand; and one of the kind `host` for a host that cannot be judged, with the
/// reason.
pub fn rows(outcomes: &[Outcome], out: &mut dyn std::io::Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(ROWS).context("cannot write CSV")?;
    for one in outcomes {
        let labels: Vec<String> = one.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let own = [&one.host, &labels.join(" "), &one.file, &one.started, &one.profile, &one.spec];
        let own: Vec<String> =
            own.into_iter().map(|text| harmless(text)).chain([words(&one.verdict)]).collect();
        let mut row = |kind: &str, cells: [String; 11]| {
            let all = std::iter::once(kind).chain(own.iter().chain(&cells).map(String::as_str));
            writer.write_record(all).context("cannot write CSV")
        };
        if one.verdict == Verdict::NotUsable {
            let mut cells: [String; 11] = Default::default();
            cells[10] = harmless(&one.sentences.join(" "));
            row("host", cells)?;
        }
        for demand in &one.demands {
            let told = [&demand.group, demand.alone(), &demand.key, &demand.asked, &demand.measured];
            let [group, label, key, asked, measured] = told.map(harmless);
            let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let [low, high] = [0, 1].map(|end| number(demand.low_high.map(|ends| ends[end])));
            let standing = words(&demand.standing);
            let [unit, why] = [&demand.unit, &demand.why].map(|text| harmless(text));
            row(
                "demand",
                [group, label, key, asked, measured, number(demand.value), low, high, unit, standing, why],
            )?;
        }
    }
    writer.flush().context("cannot write CSV")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_an_owner_have_names_that_a_metric_takes_each_its_own() {
        let names = ["rack", "rack.row", "rack-row", "9th", "größe"];
        let labels = names.map(|name| (name.to_string(), format!("of {name}"))).into();
        let pair = |name: &str, of: &str| (name.to_string(), format!("of {of}"));
        let expected = [
            pair("label_9th", "9th"),
            pair("label_gr__e", "größe"),
            pair("label_rack", "rack"),
            pair("label_rack_row", "rack-row"),
            pair("label_rack_row_", "rack.row"),
        ];
        assert_eq!(owned(&labels), expected);
    }
}
