//! The running kernel: version, command line, preemption, mitigations, clock source.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

use super::cpuinfo::CpuInfo;
use super::domains::{self, Domain};
use super::text::{CPUS, chosen, field, words};

/// The running kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Kernel {
    /// `6.1.0-13-amd64`
    pub release: Option<String>,
    /// The whole line of /proc/version: compiler, build number, date.
    pub version: Option<String>,
    pub command_line: Option<String>,
    /// `none`, `voluntary`, `full`, `lazy`, `rt`: from debugfs, the command line or the version
    /// string, where one of them has it.
    pub preemption: Option<String>,
    /// Vulnerability to the kernel's words about it.
    pub mitigations: BTreeMap<String, String>,
    /// Scheduler domains of each CPU, smallest first, where debugfs or procfs lets us read them.
    pub domains: BTreeMap<u32, Vec<Domain>>,
    /// Scheduler features that are on (`NO_` marks those that are off), where debugfs lets us read
    /// them.
    pub scheduler_features: Vec<String>,
    pub perf_event_paranoid: Option<i64>,
    /// Whether pressure stall information is kept.
    pub psi: Option<bool>,
    pub autogroup: Option<bool>,
    /// Base slice of the reading task, ns (`se.slice` of /proc/self/sched).
    pub slice_ns: Option<u64>,
}

/// The clock behind the kernel's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Clocksource {
    pub current: Option<String>,
    pub available: Vec<String>,
    /// Whether /proc/cpuinfo says that the x86 counter runs at one rate in all power states; `None`
    /// elsewhere.
    pub tsc_invariant: Option<bool>,
}

pub(super) fn parse(snapshot: &Snapshot) -> Kernel {
    let version = words(snapshot, "/proc/version");
    let release = words(snapshot, "/proc/sys/kernel/osrelease").or_else(|| {
        let rest = version.as_deref()?.strip_prefix("Linux version ")?;
        rest.split_whitespace().next().map(str::to_string)
    });
    let command_line = words(snapshot, "/proc/cmdline");
    let vulnerabilities = format!("{CPUS}/vulnerabilities");
    let mitigation = |name: &str| {
        let said = words(snapshot, &format!("{vulnerabilities}/{name}"))?;
        Some((name.to_string(), said))
    };
    let features = snapshot.text("/sys/kernel/debug/sched/features").unwrap_or("");
    let pressure = snapshot.below("/proc/pressure").next().is_some();
    Kernel {
        preemption: preemption(snapshot, version.as_deref(), command_line.as_deref()),
        mitigations: snapshot.children(&vulnerabilities).into_iter().filter_map(mitigation).collect(),
        domains: domains::parse(snapshot),
        scheduler_features: features.split_whitespace().map(str::to_string).collect(),
        perf_event_paranoid: snapshot.number("/proc/sys/kernel/perf_event_paranoid"),
        // A captured tree without the folder need not come from a kernel without it.
        psi: pressure.then_some(true),
        autogroup: snapshot.number::<u32>("/proc/sys/kernel/sched_autogroup_enabled").map(|on| on != 0),
        slice_ns: snapshot.text("/proc/self/sched").and_then(|text| field(text, "se.slice")?.parse().ok()),
        release,
        version,
        command_line,
    }
}

/// `PREEMPT_DYNAMIC` kernels choose at boot: debugfs shows it, or the command line; without either
/// it is unknown, as it is between `none` and `voluntary`, which leave no mark in the version
/// string.
fn preemption(snapshot: &Snapshot, version: Option<&str>, command_line: Option<&str>) -> Option<String> {
    if let Some(text) = snapshot.text("/sys/kernel/debug/sched/preempt") {
        let told = match (text.find('('), text.find(')')) {
            (Some(start), Some(end)) if start < end => Some(text[start + 1..end].to_string()),
            _ => chosen(text),
        };
        if told.is_some() {
            return told;
        }
    }
    let words: Vec<&str> = version?.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    if has("PREEMPT_RT") || has("PREEMPT_RT,") {
        return Some("rt".to_string());
    }
    if has("PREEMPT_DYNAMIC") {
        let asked =
            command_line?.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back()?;
        return matches!(asked, "none" | "voluntary" | "full" | "lazy").then(|| asked.to_string());
    }
    has("PREEMPT").then(|| "full".to_string())
}

pub(super) fn clocksource(snapshot: &Snapshot, info: &CpuInfo) -> Clocksource {
    let file = |name: &str| {
        snapshot.text(&format!("/sys/devices/system/clocksource/clocksource0/{name}_clocksource"))
    };
    let invariant = |flags: Vec<&str>| flags.contains(&"constant_tsc") && flags.contains(&"nonstop_tsc");
    Clocksource {
        current: file("current").filter(|text| !text.is_empty()).map(str::to_string),
        available: file("available").unwrap_or("").split_whitespace().map(str::to_string).collect(),
        tsc_invariant: info.x86_flags().map(invariant),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn preemption_of(version: &str, command_line: &str, debug: Option<&str>) -> Option<String> {
        let version = format!("Linux version 6.1 (x) #1 {version}");
        let mut files = vec![("/proc/version", version.as_str()), ("/proc/cmdline", command_line)];
        files.extend(debug.map(|text| ("/sys/kernel/debug/sched/preempt", text)));
        parse(&tree(&files)).preemption
    }

    #[test]
    fn preemption_is_told_or_unknown() {
        assert_eq!(preemption_of("SMP PREEMPT_DYNAMIC Debian", "quiet", None), None);
        assert_eq!(
            preemption_of("SMP PREEMPT_DYNAMIC", "preempt=voluntary", None).as_deref(),
            Some("voluntary")
        );
        let debug = Some("none voluntary (full) lazy\n");
        assert_eq!(preemption_of("SMP PREEMPT_DYNAMIC", "", debug).as_deref(), Some("full"));
        assert_eq!(preemption_of("SMP PREEMPT Sun", "", None).as_deref(), Some("full"));
        assert_eq!(preemption_of("SMP PREEMPT_RT Sun", "", None).as_deref(), Some("rt"));
        assert_eq!(preemption_of("SMP Wed", "", None), None);
    }

    #[test]
    fn release_from_the_version_line() {
        let kernel = parse(&tree(&[("/proc/version", "Linux version 3.10.0-1160.el7.x86_64 (x@y) #1 SMP")]));
        assert_eq!(kernel.release.as_deref(), Some("3.10.0-1160.el7.x86_64"));
        assert_eq!(parse(&tree(&[])), Kernel::default());
    }
}
