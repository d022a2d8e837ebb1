//! What is known of the circumstances of a result, and in what those of two differ.

use std::collections::BTreeMap;

use super::{ComparisonSide, Difference};
use diagnose::{Diagnosis, words};
use machine::{Machine, nexmark};
use model::vocabulary::cpu as ids;
use model::{Conditions, Snapshot, figure};
use stats::order::median;

/// The label of the core clock: measured by a run, or reported by a foreign file.
pub(super) const CLOCK: &str = "core_clock";

/// Clocks further apart than this share are different.
const SAME_CLOCK: f64 = 0.01;

/// Shares of the host's time further apart than this are different.
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
    for (label, value) in settings(&header.snapshot) {
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

/// Settings of memory and processors, as label and file.
const SETTINGS: [(&str, &str); 4] = [
    ("transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("defragmentation_for_huge_pages", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ("same_page_merging", "/sys/kernel/mm/ksm/run"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
];

/// Folders in which each file is a setting: it is called `vm.swappiness`, `sched.base_slice_ns`.
const FOLDERS: [(&str, &str); 4] = [
    ("/proc/sys/kernel", "kernel."),
    ("/proc/sys/vm", "vm."),
    ("/proc/sys/net", "net."),
    (SCHEDULER, "sched."),
];
const SCHEDULER: &str = "/sys/kernel/debug/sched";

/// Files of these folders that say what a host is, or follow from its memory and its boot.
const NO_SETTINGS: [&str; 10] = [
    "kernel.arch",
    "kernel.hostname",
    "kernel.osrelease",
    "kernel.perf_event_mlock_kb",
    "kernel.pid_max",
    "kernel.random.",
    "kernel.tainted",
    "kernel.threads-max",
    "sched.domains.",
    "vm.min_free_kbytes",
];

/// The settings of the kernel that the snapshot has, each with its value; of a choice only what is
/// chosen.
fn settings(snapshot: &Snapshot) -> Vec<(String, String)> {
    let value = |path: &str| {
        let text = snapshot.text(path)?;
        Some(machine::chosen(text).unwrap_or_else(|| words::clipped(text)))
    };
    let named = SETTINGS.iter().filter_map(|(label, file)| Some((label.to_string(), value(file)?)));
    let in_folders = FOLDERS.iter().flat_map(|(folder, prefix)| {
        snapshot.below(folder).filter_map(move |(path, _)| {
            let label = format!("{prefix}{}", path[folder.len() + 1..].replace('/', "."));
            let is_setting = !NO_SETTINGS.iter().any(|other| label.starts_with(other));
            is_setting.then(|| Some((label, value(path)?)))?
        })
    });
    named.chain(in_folders).collect()
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
            // There are dozens of these, and foreign files report none.
            _ => {
                let label = match () {
                    () if label.starts_with("mitigation_") => "mitigations",
                    () if label.contains('.') || SETTINGS.iter().any(|(setting, _)| setting == label) => {
                        "kernel settings"
                    }
                    () => label,
                };
                if !untold.iter().any(|known: &String| known == label) {
                    untold.push(label.to_string());
                }
            }
        }
    }
    (different, untold)
}

/// Between the values that the runs of one arm report, where they differ.
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::Entry;

    #[test]
    fn kernel_settings_are_part_of_an_environment() {
        let files = [
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
            ("/sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
            ("/sys/kernel/debug/sched/domains/cpu0/domain0/name", "MC\n"),
            ("/proc/sys/vm/swappiness", "60\n"),
            ("/proc/sys/net/ipv4/tcp_congestion_control", "bbr\n"),
            ("/proc/sys/kernel/random/boot_id", "dddef965-7845-43be-b4e6-0c6ea29f61f8\n"),
            ("/proc/sys/kernel/hostname", "db7\n"),
            ("/proc/sys/kernel/randomize_va_space", "2\n"),
        ];
        let entries = files.map(|(path, text)| (path.to_string(), Entry::Text(text.to_string())));
        let found = settings(&Snapshot { entries: entries.into() });
        let expected = [
            ("transparent_huge_pages", "never"),
            ("kernel.randomize_va_space", "2"),
            ("vm.swappiness", "60"),
            ("net.ipv4.tcp_congestion_control", "bbr"),
            ("sched.base_slice_ns", "2800000"),
        ];
        assert_eq!(found, expected.map(|(label, value)| (label.to_string(), value.to_string())));
    }
}
