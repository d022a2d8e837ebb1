//! Frequency scaling and idle states.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use model::{CpuSet, Snapshot};

use super::cpuid;
use super::text::{CPUS, folder};
use super::topology::Cpus;

/// How the CPUs' clocks are driven.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Frequency {
    pub driver: Option<String>,
    /// Governors in use, with the CPUs that each governs.
    pub governors: BTreeMap<String, CpuSet>,
    /// Lowest and highest frequency that policy allows now.
    pub min_khz: Option<u64>,
    pub max_khz: Option<u64>,
    /// Highest frequency that the hardware offers.
    pub hardware_max_khz: Option<u64>,
    /// Nominal frequency, where firmware or the model name gives it; the lowest where kinds of core
    /// differ.
    pub base_khz: Option<u64>,
    /// The bus clock that cores multiply, where it is known: 100 MHz on Intel's since Sandy Bridge.
    pub bus_khz: Option<u64>,
    /// Whether turbo may be used.
    pub turbo: Option<bool>,
    pub energy_preferences: BTreeMap<String, CpuSet>,
}

/// An idle state that the kernel may put CPUs into.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct IdleState {
    pub name: String,
    pub latency_us: Option<u64>,
    pub residency_us: Option<u64>,
    /// Whether it is switched off on the first CPU that has it.
    pub disabled: Option<bool>,
    /// CPUs that have it: kinds of core differ.
    pub cpus: CpuSet,
}

pub(super) fn parse(snapshot: &Snapshot, cpus: &Cpus) -> Frequency {
    let mut frequency = Frequency::default();
    for (place, governed) in policies(snapshot, &cpus.online) {
        let text = |file: &str| snapshot.text(&format!("{place}/{file}")).filter(|text| !text.is_empty());
        let khz = |file: &str| text(file)?.parse::<u64>().ok().filter(|khz| *khz > 0);
        if frequency.driver.is_none() {
            frequency.driver = text("scaling_driver").map(str::to_string);
        }
        let named = [
            (&mut frequency.governors, "scaling_governor"),
            (&mut frequency.energy_preferences, "energy_performance_preference"),
        ];
        for (map, file) in named {
            if let Some(name) = text(file) {
                let known = map.entry(name.to_string()).or_default();
                governed.iter().for_each(|cpu| known.insert(cpu));
            }
        }
        frequency.min_khz = least(frequency.min_khz, khz("scaling_min_freq"));
        frequency.base_khz = least(frequency.base_khz, khz("base_frequency"));
        frequency.max_khz = frequency.max_khz.max(khz("scaling_max_freq"));
        frequency.hardware_max_khz = frequency.hardware_max_khz.max(khz("cpuinfo_max_freq"));
    }
    let base_khz = frequency.base_khz.or_else(|| nominal_khz(cpus.model.as_deref()?));
    frequency.base_khz = base_khz.or_else(|| cpuid::base_khz(snapshot));
    frequency.bus_khz = bus_khz(cpus);
    frequency.turbo = turbo(snapshot);
    frequency
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// Policy folders with the online CPUs that each governs: `cpufreq/policyN` since 4.2,
/// `cpuN/cpufreq` before.
fn policies(snapshot: &Snapshot, online: &CpuSet) -> Vec<(String, CpuSet)> {
    let own = |place: String, number: u32| {
        let affected = snapshot.text(&format!("{place}/affected_cpus")).map(spaced);
        let governed = affected.unwrap_or_else(|| CpuSet::one(number)).intersection(online);
        (place, governed)
    };
    let mut policies: Vec<(String, CpuSet)> = snapshot
        .numbered(&format!("{CPUS}/cpufreq"), "policy")
        .into_iter()
        .map(|number| own(format!("{CPUS}/cpufreq/policy{number}"), number))
        .collect();
    if policies.is_empty() {
        policies = online.iter().map(|cpu| own(format!("{CPUS}/cpu{cpu}/cpufreq"), cpu)).collect();
    }
    policies.retain(|(_, governed)| !governed.is_empty());
    policies
}

/// CPU numbers with spaces between, as cpufreq writes them.
fn spaced(text: &str) -> CpuSet {
    text.split_whitespace().filter_map(|word| CpuSet::parse_list(word)?.first()).collect()
}

/// `... @ 2.33GHz` at the end of a model name.
fn nominal_khz(model: &str) -> Option<u64> {
    let (_, told) = model.rsplit_once('@')?;
    let told = told.trim();
    let (number, scale) = match told.strip_suffix("GHz") {
        Some(number) => (number, 1e6),
        None => (told.strip_suffix("MHz")?, 1e3),
    };
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number > 0.0 && number < 1e4).then(|| (number * scale).round() as u64)
}

/// Sandy Bridge was the first with AVX and the first with a bus of 100 MHz.
fn bus_khz(cpus: &Cpus) -> Option<u64> {
    let intel = cpus.vendor.as_deref() == Some("GenuineIntel");
    (intel && cpus.flags.iter().any(|flag| flag == "avx")).then_some(100_000)
}

fn turbo(snapshot: &Snapshot) -> Option<bool> {
    let file = |path: &str| snapshot.number::<u32>(&format!("{CPUS}/{path}"));
    let allowed = file("intel_pstate/no_turbo").map(|off| off == 0);
    let allowed = allowed.or_else(|| file("cpufreq/boost").map(|on| on != 0));
    allowed.or_else(|| file("cpufreq/policy0/cpb").or_else(|| file("cpu0/cpufreq/cpb")).map(|on| on != 0))
}

/// Idle states by first CPU that has them and by number there; CPUs with states of the same name
/// and figures share an entry.
pub(super) fn idle_states(snapshot: &Snapshot, online: &CpuSet) -> Vec<IdleState> {
    let mut states: Vec<IdleState> = Vec::new();
    let mut read: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for cpu in online.iter() {
        let place = format!("{CPUS}/cpu{cpu}/cpuidle");
        let place = folder(snapshot, &place).to_string();
        if !read.contains_key(&place) {
            let numbers = snapshot.numbered(&place, "state");
            let found =
                numbers.iter().filter_map(|number| idle_state(snapshot, &format!("{place}/state{number}")));
            let mut indexes = Vec::new();
            for state in found {
                let same =
                    |known: &IdleState| IdleState { cpus: CpuSet::default(), ..known.clone() } == state;
                indexes.push(states.iter().position(same).unwrap_or_else(|| {
                    states.push(state.clone());
                    states.len() - 1
                }));
            }
            read.insert(place.clone(), indexes);
        }
        for index in read.get(&place).into_iter().flatten() {
            states[*index].cpus.insert(cpu);
        }
    }
    states
}

fn idle_state(snapshot: &Snapshot, place: &str) -> Option<IdleState> {
    let number = |file: &str| snapshot.number::<u64>(&format!("{place}/{file}"));
    Some(IdleState {
        name: snapshot.text(&format!("{place}/name"))?.to_string(),
        latency_us: number("latency"),
        residency_us: number("residency"),
        disabled: number("disable").map(|bits| bits != 0),
        cpus: CpuSet::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn policies_old_and_new() {
        let cpus = Cpus { online: (0..4).collect(), ..Cpus::default() };
        let snapshot = tree(&[
            ("/sys/devices/system/cpu/cpufreq/policy0/affected_cpus", "0 1"),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "acpi-cpufreq"),
            ("/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "3000000"),
            ("/sys/devices/system/cpu/cpufreq/policy2/affected_cpus", "2"),
            ("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "powersave"),
            ("/sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq", "2000000"),
            ("/sys/devices/system/cpu/cpufreq/boost", "0"),
        ]);
        let frequency = parse(&snapshot, &cpus);
        assert_eq!(frequency.driver.as_deref(), Some("acpi-cpufreq"));
        assert_eq!(frequency.governors["performance"].to_string(), "0-1");
        assert_eq!(frequency.governors["powersave"].to_string(), "2");
        assert_eq!((frequency.max_khz, frequency.turbo), (Some(3_000_000), Some(false)));

        let old = tree(&[("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "ondemand")]);
        assert_eq!(parse(&old, &cpus).governors["ondemand"].to_string(), "3");
    }

    #[test]
    fn nominal_frequency_of_a_model_name() {
        assert_eq!(nominal_khz("Intel(R) Xeon(R) CPU           E5345  @ 2.33GHz"), Some(2_330_000));
        assert_eq!(nominal_khz("Intel(R) Pentium(R) III CPU @ 933MHz"), Some(933_000));
        for text in ["AMD EPYC 7451 24-Core Processor", "x @ yGHz", "x @ -1GHz", "x @ infGHz", "@"] {
            assert_eq!(nominal_khz(text), None, "{text:?}");
        }
    }

    #[test]
    fn idle_states_shared_by_links() {
        let state = |cpu: u32, file: &str| format!("{CPUS}/cpu{cpu}/cpuidle/state0/{file}");
        let (name, latency, other) = (state(0, "name"), state(0, "latency"), state(2, "name"));
        let mut snapshot = tree(&[(&name, "C1"), (&latency, "2"), (&other, "C1E")]);
        let link = model::Entry::Link(format!("{CPUS}/cpu0/cpuidle"));
        snapshot.entries.insert(format!("{CPUS}/cpu1/cpuidle"), link);
        let states = idle_states(&snapshot, &(0..3).collect());
        let seen: Vec<(&str, String)> =
            states.iter().map(|s| (s.name.as_str(), s.cpus.to_string())).collect();
        assert_eq!(seen, [("C1", "0-1".to_string()), ("C1E", "2".to_string())]);
        assert_eq!((states[0].latency_us, states[0].disabled), (Some(2), None));
    }
}
