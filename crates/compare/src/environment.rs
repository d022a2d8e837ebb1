//! What is known of the circumstances of a result, and in what those of two differ.

use std::collections::BTreeMap;

use super::{ComparisonSide, Difference};
use diagnose::{Diagnosis, words};
use machine::{Machine, nexmark};
use model::vocabulary::cpu as ids;
use model::{Conditions, figure};
use stats::order::median;

/// The label of the core clock: measured by a run, or reported by a foreign file.
pub(super) const CLOCK: &str = "core_clock";

/// Clocks further apart than this share are different.
const SAME_CLOCK: f64 = 0.01;

/// Shares of the machine's time further apart than this are different.
const SAME_SHARE: f64 = 0.05;

/// What makes hosts peers, and what else moves numbers: policies of the clock, mitigations, what
/// ran beside.
pub(super) fn environment(diagnosis: &Diagnosis) -> Vec<(String, String)> {
    let (machine, header): (&Machine, _) = (&diagnosis.machine, &diagnosis.run.header);
    let mut all = diagnosis.make_up();
    let mut add = |label: &str, value: String| {
        if !value.is_empty() {
            all.push((label.to_string(), value));
        }
    };
    let keys =
        |map: &BTreeMap<String, model::CpuSet>| map.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let khz = |khz: Option<u64>| khz.map(|khz| format!("{} MHz", khz / 1000)).unwrap_or_default();
    add("governor", keys(&machine.frequency.governors));
    add("highest_frequency", khz(machine.frequency.max_khz));
    add(
        "turbo",
        machine.frequency.turbo.map(|on| if on { "on" } else { "off" }.to_string()).unwrap_or_default(),
    );
    add("preemption", machine.kernel.preemption.clone().unwrap_or_default());
    add("clock_source", header.clock.source.clone());
    add("container", machine.container.as_ref().map(|own| own.kind.word().to_string()).unwrap_or_default());
    add("allowed_cpus", header.allowed_cpus.to_string());
    add("profile", header.profile.clone());
    add("assay", header.assay.clone());
    for (name, state) in &machine.kernel.mitigations {
        add(&format!("mitigation_{name}"), state.clone());
    }
    for (label, value) in words::disk_settings(&diagnosis.run, machine) {
        add(&label, value);
    }
    for (name, value) in nexmark::parse(&header.snapshot) {
        add(&format!("flink_{name}"), value);
    }
    let clock = diagnosis.series.iter().find(|judged| {
        judged.series.case.bench == ids::CLOCK
            && judged.series.metric.unit == "GHz"
            && judged.series.metric.headline
    });
    if let Some(estimate) = clock.and_then(|judged| judged.analysis.estimate.as_ref()) {
        add(CLOCK, format!("{:.0} MHz", estimate.median * 1e3));
    }
    let shares = |read: fn(&Conditions) -> Option<f64>| -> Vec<f64> {
        diagnosis.run.visits.iter().filter_map(|visit| read(&visit.conditions)).collect()
    };
    for (label, values) in
        [("background", shares(Conditions::background)), ("steal", shares(Conditions::steal))]
    {
        if let Some(share) = median(&values) {
            add(label, format!("{} %", figure(share * 100.0, "")));
        }
    }
    all
}

/// What differs, and what only one of the two reports.
pub fn differences(a: &ComparisonSide, b: &ComparisonSide) -> (Vec<Difference>, Vec<String>) {
    let find = |arm: &ComparisonSide, label: &str| {
        arm.environment.iter().find(|(known, _)| known == label).map(|(_, value)| value.clone())
    };
    let labels = a.environment.iter().map(|(label, _)| label);
    let more = b.environment.iter().map(|(label, _)| label).filter(|label| find(a, label).is_none());
    let (mut different, mut untold) = (Vec::new(), Vec::new());
    for label in labels.chain(more) {
        match (find(a, label), find(b, label)) {
            (Some(of_a), Some(of_b)) if !alike(label, &of_a, &of_b) => {
                different.push(Difference { label: label.clone(), a: of_a, b: of_b });
            }
            (Some(_), Some(_)) => {}
            // There are a dozen of these, and foreign files tell of none.
            _ => {
                let label = if label.starts_with("mitigation_") { "mitigations" } else { label };
                if !untold.iter().any(|known: &String| known == label) {
                    untold.push(label.to_string());
                }
            }
        }
    }
    (different, untold)
}

/// Between what the runs of one arm tell, where that differs.
pub(super) const OR: &str = " | ";

/// Whether each value of one side has an equal among those of the other.
fn alike(label: &str, a: &str, b: &str) -> bool {
    let among = |one: &str, all: &str| all.split(OR).any(|other| value_alike(label, one, other));
    a.split(OR).all(|one| among(one, b)) && b.split(OR).all(|one| among(one, a))
}

pub(super) fn value_alike(label: &str, a: &str, b: &str) -> bool {
    let number = |text: &str| text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
    if let (Some(x), Some(y)) = (number(a), number(b)) {
        match label {
            CLOCK => return (x - y).abs() <= SAME_CLOCK * x.abs().max(y.abs()),
            "background" | "steal" => return (x - y).abs() <= SAME_SHARE * 100.0,
            _ => {}
        }
    }
    // A text that was cut off agrees with all that begin so.
    let begins = |cut: &str, whole: &str| {
        cut.strip_suffix('…').is_some_and(|begin| whole.trim_end_matches('…').starts_with(begin))
    };
    a == b || begins(a, b) || begins(b, a)
}
