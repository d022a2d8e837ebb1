//! What will disturb a measurement on this host, before anything is measured: one line each, the
//! most severe first.

use super::finding_lines::FindingLine;
use super::words::{bytes, capital, clipped, counted, listed};
use super::{clock, dimms, disk, sandbox};
use machine::{Enclosure, Hypervisor, Machine};
use model::Severity;
use model::vocabulary::RuleId;
use model::vocabulary::disk::rule as disk_rules;
use model::vocabulary::host::rule as rules;

/// Whether a host is ready for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing that a measurement depends on is known.
    CannotTell,
    /// A limit or a fault that every figure would show.
    NotReady,
    /// Something disturbs some of the figures.
    WithCare,
    /// Nothing disturbs.
    Ready,
}

impl Readiness {
    pub fn words(self) -> &'static str {
        match self {
            Readiness::CannotTell => "CANNOT TELL",
            Readiness::NotReady => "NOT READY TO MEASURE",
            Readiness::WithCare => "MEASURE WITH CARE",
            Readiness::Ready => "READY TO MEASURE",
        }
    }

    /// By the most severe line of a host.
    pub fn of(machine: &Machine, lines: &[FindingLine]) -> Readiness {
        match lines.iter().map(|line| line.severity).max() {
            // The sources may be of two hosts.
            _ if machine.archive.as_ref().is_some_and(|archive| !archive.in_doubt.is_empty()) => {
                Readiness::CannotTell
            }
            // A known problem counts even if the rest is unknown.
            Some(Severity::Problem) => Readiness::NotReady,
            Some(Severity::Warning) => Readiness::WithCare,
            _ if machine.cpus.online.is_empty() => Readiness::CannotTell,
            _ => Readiness::Ready,
        }
    }
}

/// A larger load average, as a share of the CPUs, disturbs.
const BUSY: f64 = 0.2;

/// A larger share of the time in which tasks waited for memory or I/O disturbs, %.
const WAITING: f64 = 1.0;

/// A larger share of the time in which tasks waited for a CPU contradicts a load average of 0, %;
/// the start of this program causes less.
const WAITING_FOR_CPU: f64 = 20.0;

/// An idle state with this exit latency (µs) delays every wake-up.
const DEEP_US: u64 = 100;

/// All that disturbs, the most severe first.
pub fn lines(machine: &Machine) -> Vec<FindingLine> {
    let mut all = sources(machine);
    let found = [
        quota(machine),
        busy(machine),
        unseen(machine),
        pressure(machine),
        affinity(machine),
        memory_limit(machine),
        modules(machine),
        governor(machine),
        clock_cap(machine),
        clock_source(machine),
        turbo(machine),
        balancing(machine),
        disk_limits(machine),
        disk_space(machine),
        disk_in_memory(machine),
        swap(machine),
        contradictions(machine),
        enclosures(machine),
        container(machine),
        guest(machine),
        threads(machine),
        mitigations(machine),
        sleeping(machine),
        offline(machine),
    ];
    all.extend(found.into_iter().flatten());
    all.sort_by_key(|line| std::cmp::Reverse(line.severity));
    all
}

/// The most common disturbances that were checked and not found.
pub fn clean(machine: &Machine) -> Vec<&'static str> {
    // Control groups above may be invisible and have limits.
    let limits = !machine.limits.versions.is_empty() && machine.limits.groups_above != Some(true);
    // A load of 0 proves nothing if counters stand still or tasks wait.
    let load = &machine.load;
    let waits = load.psi_cpu.is_some_and(|share| share > WAITING_FOR_CPU);
    let others = load.average.is_some() && load.counters_keep_time != Some(false) && !waits;
    let is_known = [
        (limits && quota(machine).is_none(), "no CPU quota"),
        (others && busy(machine).is_none(), "no other work"),
        (limits && memory_limit(machine).is_none(), "no memory limit"),
        (machine.memory.swap_free_bytes.is_some() && swap(machine).is_none(), "no swap in use"),
    ];
    is_known.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect()
}

fn line(severity: Severity, topic: &'static str, rule: Option<RuleId>, text: String) -> FindingLine {
    let rule = rule.map_or(String::new(), |rule| rule.to_string());
    FindingLine { severity, topic, text, rule, advice: String::new(), more: 0 }
}

fn cpus(machine: &Machine) -> f64 {
    machine.cpus.online.len() as f64
}

fn quota(machine: &Machine) -> Option<FindingLine> {
    let quota = machine.limits.cpu_quota.filter(|quota| *quota < cpus(machine))?;
    let text =
        format!("The CPU quota is {quota:.2} of {} CPUs: the kernel will throttle tasks.", cpus(machine));
    let advice = "Raise cpu.max of this control group, or measure outside of it.".to_string();
    Some(FindingLine { advice, ..line(Severity::Problem, "CPU quota", Some(rules::CPU_QUOTA), text) })
}

fn busy(machine: &Machine) -> Option<FindingLine> {
    let load = machine.load.average?[0];
    (cpus(machine) > 0.0 && load > BUSY * cpus(machine)).then(|| {
        let text = format!(
            "The load is {load:.2} on {}. Stop other work before measuring.",
            counted(cpus(machine) as usize, "CPU")
        );
        line(Severity::Warning, "other work", Some(rules::BACKGROUND_LOAD), text)
    })
}

/// Other work is invisible.
fn unseen(machine: &Machine) -> Option<FindingLine> {
    (machine.load.counters_keep_time == Some(false)).then(|| {
        let text = "Other work is invisible here: the counters of /proc/stat stand still.";
        line(Severity::Warning, "other work", Some(rules::BACKGROUND_LOAD), text.to_string())
    })
}

fn pressure(machine: &Machine) -> Option<FindingLine> {
    let waited = |share: Option<f64>| share.filter(|share| *share > WAITING);
    let (share, what, rule) = match (waited(machine.load.psi_memory), waited(machine.load.psi_io)) {
        (Some(share), _) => (share, "memory", Some(rules::MEMORY_PRESSURE)),
        (None, Some(share)) => (share, "I/O", None),
        (None, None) => return None,
    };
    let text = format!("Tasks waited for {what} in {share:.1} % of the last seconds. Find out which.");
    Some(line(Severity::Warning, if rule.is_some() { "memory short" } else { "disk traffic" }, rule, text))
}

fn affinity(machine: &Machine) -> Option<FindingLine> {
    let (allowed, online) = (&machine.cpus.allowed, &machine.cpus.online);
    (!allowed.is_empty() && allowed != online).then(|| {
        let text = format!(
            "Assay may use only {} of {} CPUs. Figures of all CPUs mean only those.",
            allowed.len(),
            online.len()
        );
        line(Severity::Warning, "affinity", None, text)
    })
}

fn memory_limit(machine: &Machine) -> Option<FindingLine> {
    let (limit, total) = (machine.limits.memory_bytes?, machine.memory.total_bytes?);
    (limit < total).then(|| {
        let text = format!(
            "The control group may use {} of {} of memory. Large blocks may not fit.",
            bytes(limit as f64),
            bytes(total as f64)
        );
        line(Severity::Warning, "memory limit", None, text)
    })
}

/// The most severe finding of the rule on memory modules.
fn modules(machine: &Machine) -> Option<FindingLine> {
    let found = dimms::found(machine)?;
    let gravest = found.iter().max_by_key(|finding| finding.severity)?;
    let text = gravest.headline.clone();
    let own = line(gravest.severity, "modules", Some(rules::DIMM_POPULATION), text);
    Some(FindingLine { advice: gravest.advice.clone(), more: found.len() - 1, ..own })
}

fn governor(machine: &Machine) -> Option<FindingLine> {
    const LATE: [&str; 3] = ["ondemand", "conservative", "schedutil"];
    let frequency = &machine.frequency;
    let is_slow = |name: &str| {
        LATE.contains(&name) || clock::LOW_CLOCK_GOVERNORS.contains(&name) && !clock::is_dynamic(frequency)
    };
    let (name, of) = frequency.governors.iter().find(|(name, _)| is_slow(name))?;
    let text = format!(
        "Governor {name} sets the clock of {}. Use performance to measure.",
        counted(of.len(), "CPU")
    );
    Some(line(Severity::Warning, "governor", Some(rules::SLOW_GOVERNOR), text))
}

fn clock_cap(machine: &Machine) -> Option<FindingLine> {
    let (now, hardware) = (machine.frequency.max_khz?, machine.frequency.hardware_max_khz?);
    (now < hardware).then(|| {
        let ghz = |khz: u64| khz as f64 / 1e6;
        let text = format!(
            "The clock is limited to {:.2} GHz of {:.2} GHz. Lift scaling_max_freq.",
            ghz(now),
            ghz(hardware)
        );
        line(Severity::Warning, "clock", Some(rules::SLOW_CLOCK), text)
    })
}

fn clock_source(machine: &Machine) -> Option<FindingLine> {
    let current = machine.clock.current.as_deref()?;
    clock::SLOW_SOURCES.contains(&current).then(|| {
        let text = format!("The kernel reads the time from {current}: every reading is slow.");
        line(Severity::Warning, "clock source", Some(rules::UNSTABLE_CLOCKSOURCE), text)
    })
}

fn turbo(machine: &Machine) -> Option<FindingLine> {
    let (rule, text) = if machine.frequency.turbo? {
        (rules::MOVING_CLOCK, "Turbo is on: the clock changes with heat and with the number of busy cores.")
    } else {
        (rules::TURBO_OFF, "Turbo is off: figures are those of the nominal clock.")
    };
    Some(line(Severity::Note, "turbo", Some(rule), text.to_string()))
}

fn balancing(machine: &Machine) -> Option<FindingLine> {
    (machine.memory.numa_balancing == Some(true) && machine.nodes.len() > 1).then(|| {
        let text = format!(
            "NUMA balancing is on: the kernel moves pages between {} nodes while tasks run.",
            machine.nodes.len()
        );
        line(Severity::Note, "NUMA", Some(rules::NUMA_BALANCING), text)
    })
}

fn disk_limits(machine: &Machine) -> Option<FindingLine> {
    let throttles = &machine.disk.as_ref()?.throttles;
    (!throttles.is_empty()).then(|| {
        let text = format!(
            "The control group has {} for the disk: its figures are those of the limit.",
            counted(throttles.len(), "limit")
        );
        line(Severity::Warning, "disk limit", Some(disk_rules::DISK_THROTTLED), text)
    })
}

fn disk_space(machine: &Machine) -> Option<FindingLine> {
    let share = machine.disk.as_ref()?.used_share().filter(|share| *share >= disk::MAX_USED_SHARE)?;
    let text =
        format!("The filesystem is {:.0} % full: writes are slower than on an empty one.", 100.0 * share);
    Some(line(Severity::Warning, "disk space", Some(disk_rules::DISK_NEARLY_FULL), text))
}

fn disk_in_memory(machine: &Machine) -> Option<FindingLine> {
    let disk = machine.disk.as_ref().filter(|disk| disk.is_memory())?;
    let text = format!("{} is in memory, so no disk is measured there. Name one with --dir.", disk.path);
    Some(line(Severity::Warning, "disk", None, text))
}

fn swap(machine: &Machine) -> Option<FindingLine> {
    let memory = &machine.memory;
    let used = memory.swap_total_bytes?.checked_sub(memory.swap_free_bytes?).filter(|used| *used > 0)?;
    let text = format!("{} of swap is in use: pages may come back from the disk.", bytes(used as f64));
    Some(line(Severity::Note, "swapping", Some(rules::SWAPPING), text))
}

fn contradictions(machine: &Machine) -> Option<FindingLine> {
    let first = clipped(machine.remarks.first()?);
    let text = format!("{}.", capital(first.trim_end_matches('.')));
    let more = machine.remarks.len() - 1;
    Some(FindingLine { more, ..line(Severity::Note, "kernel files", None, text) })
}

/// Contradictions between the sources of an archive.
fn sources(machine: &Machine) -> Vec<FindingLine> {
    let Some(archive) = &machine.archive else { return Vec::new() };
    let is_problem = |text: &str| {
        archive.in_doubt.iter().any(|what| text.starts_with(&format!("the sources differ in {what}:")))
    };
    let one = |text: &String| {
        let severity = if is_problem(text) { Severity::Problem } else { Severity::Note };
        line(severity, "sources", None, format!("{}.", capital(text)))
    };
    archive.contradictions.iter().map(one).collect()
}

/// The enclosure that changes figures, or else the innermost.
fn enclosures(machine: &Machine) -> Option<FindingLine> {
    let all: Vec<&Enclosure> = machine.around().collect();
    let gravest = all.iter().find(|enclosure| enclosure.changes_figures);
    let (severity, rule) = match gravest {
        Some(_) => (Severity::Warning, Some(rules::SANDBOXED)),
        None => (Severity::Note, None),
    };
    let text = gravest.or(all.first())?.reading.clone();
    Some(FindingLine { more: all.len() - 1, ..line(severity, "sandbox", rule, text) })
}

fn container(machine: &Machine) -> Option<FindingLine> {
    let text = format!("{}.", sandbox::restriction(machine)?);
    Some(line(Severity::Note, "container", Some(rules::RESTRICTED_CONTAINER), text))
}

fn guest(machine: &Machine) -> Option<FindingLine> {
    let Hypervisor::Guest(_) = &machine.hypervisor else { return None };
    let text = "This is a guest: the host may take CPU time (steal), and reported caches may be wrong.";
    Some(line(Severity::Note, "guest", Some(rules::STEAL), text.to_string()))
}

fn threads(machine: &Machine) -> Option<FindingLine> {
    let most = machine.cpus.cores.as_ref()?.iter().map(|core| core.cpus.len()).max()?;
    (most > 1).then(|| {
        let text = format!("A core has {most} threads: work on one slows figures of another.");
        line(Severity::Note, "SMT", Some(rules::SHARED_CORE), text)
    })
}

fn mitigations(machine: &Machine) -> Option<FindingLine> {
    let reported = &machine.kernel.mitigations;
    let open: Vec<&str> = reported
        .iter()
        .filter(|(_, answer)| answer.starts_with("Vulnerable"))
        .map(|(name, _)| name.as_str())
        .collect();
    (!open.is_empty()).then(|| {
        let text = format!("Not mitigated: {}. A kernel with mitigations is slower.", listed(&open));
        line(Severity::Note, "mitigations", None, text)
    })
}

fn sleeping(machine: &Machine) -> Option<FindingLine> {
    let used = machine.idle_states.iter().filter(|state| state.disabled != Some(true));
    let deepest =
        used.max_by_key(|state| state.latency_us).filter(|state| state.latency_us >= Some(DEEP_US))?;
    let text = format!(
        "Leaving idle state {} takes {} µs: wake-ups after a pause are that late.",
        deepest.name, deepest.latency_us?
    );
    Some(line(Severity::Note, "idle states", Some(rules::CLOCK_AFTER_IDLE), text))
}

fn offline(machine: &Machine) -> Option<FindingLine> {
    let count = machine.cpus.offline.len();
    let are = if count == 1 { "is" } else { "are" };
    let text = format!("{} {are} offline.", counted(count, "CPU"));
    (count > 0).then(|| line(Severity::Note, "offline", None, text))
}

#[cfg(test)]
mod tests;
