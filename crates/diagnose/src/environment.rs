//! What disturbed the run: other work, steal, CPU quotas, swapping.

use super::paused::Paused;
use super::words::{capital, counted, percent, uncapital};
use super::{Evidence, Rule, others};
use model::vocabulary::host as ids;
use model::{Case, Conditions, Effect, Fact, Finding, Planned, Severity, Visit};
use stats::analysis::Judged;

pub const RULES: &[Rule] = &[BACKGROUND, STEAL, QUOTA, SWAP];

const BACKGROUND: Rule = Rule {
    id: ids::rule::BACKGROUND_LOAD,
    title: "Other processes used the CPUs",
    topic: "other work",
    meaning: "Other work took cycles, caches and memory bandwidth while Assay measured, so figures may be \
        too slow. The finding names the busiest processes.",
    action: "Stop the other work, or wait for it with --wait-idle, and measure again. See it: top -b -n 1 | \
        head -15",
    when: "Other processes used more than 5 % of one CPU over the run (or 0.5 % of all, on large hosts). Or \
        they used 10 % of a benchmark's CPUs. In a finding, figures carry the cause from 5 % of their \
        benchmark's CPUs on, and are rejected from 20 % on.",
    how: "Other work is the busy time of the CPUs less the CPU time of Assay's own processes, pass by pass. \
        The kernel counts in ticks of 10 ms, so shares below four standard errors of such ticks do not \
        count. Benchmarks that ran for less than 0.3 s in all are not judged alone. Disk, file and network \
        benchmarks are judged only in runs of nothing else, since the kernel's workers act for them. Where a \
        CPU quota pauses Assay, the limits are 0.1 CPU higher, for a tick in each of its periods. Processes \
        are listed between passes while other work runs.",
    calm: "other work: none seen",
    looked_at: "/proc/stat",
    source: file!(),
    check: background,
};

/// Other work's share of a case's CPUs from which its figures carry a cause, and from which they
/// are rejected.
pub(super) const MIN_EXPLAINED_SHARE: f64 = 0.05;
pub(super) const MIN_REJECTED_SHARE: f64 = 0.20;
/// Shorter totals are dominated by the 10 ms tick.
pub(super) const MIN_JUDGED_MS: f64 = 300.0;

/// Standard deviation of the error in one pass's count of a CPU's time, ms: up to a tick of 10 ms
/// at either end, uniformly distributed.
const TICK_ERROR_MS: f64 = 4.1;
/// Standard errors beyond which even the worst case of a run is no error of ticks.
const MIN_STANDARD_ERRORS: f64 = 4.0;

/// The smallest share of these passes' time on `cpus` CPUs that ticks alone cannot explain.
fn smallest_certain_share<'a>(visits: impl Iterator<Item = &'a Visit>, cpus: f64) -> f64 {
    let (mut count, mut wall_ms) = (0.0, 0.0);
    for visit in visits {
        count += 1.0;
        wall_ms += visit.conditions.wall_ms;
    }
    MIN_STANDARD_ERRORS * TICK_ERROR_MS * f64::sqrt(count * cpus) / (wall_ms * cpus)
}

/// The error of ticks in passes that a quota paused, CPUs. The quota pauses Assay at the same point
/// of each of its periods (usually 100 ms), so an error of up to one tick (10 ms) does not average
/// out. Half of that was seen.
fn tick_error<'a>(visits: impl Iterator<Item = &'a Visit>) -> f64 {
    match Evidence::total(visits, |c| c.throttled_ms) {
        Some(throttled) if throttled.rate() > 0.01 => 0.1,
        _ => 0.0,
    }
}

/// Whether kernel workers do a part of a case's work: their CPU time is no sign of other work.
fn uses_kernel_workers(evidence: &Evidence, case: u32) -> bool {
    let planned = evidence.run.header.plan.get(case as usize);
    let group = planned.and_then(|planned| planned.case.bench.split('.').next());
    matches!(group, Some("disk" | "file" | "network"))
}

/// Other work's share of a case's CPU time; `None` if ticks alone may explain it.
fn share_of_others(evidence: &Evidence, case: u32, planned: &Planned) -> Option<f64> {
    let seats = planned.case.placement.busy_cpus().len() as f64;
    let total = Evidence::total(evidence.visits_of(case), |c| c.others_on_seats_ms)?;
    let judged = total.wall_ms >= MIN_JUDGED_MS && seats > 0.0;
    let share = total.rate() / seats - tick_error(evidence.visits_of(case));
    (judged && share >= smallest_certain_share(evidence.visits_of(case), seats)).then_some(share)
}

/// Whether other work took enough of a case's CPU time to reject its figures.
pub(super) fn is_disturbed(evidence: &Evidence, case: u32) -> bool {
    let planned = evidence.run.header.plan.get(case as usize);
    let share = planned.and_then(|planned| share_of_others(evidence, case, planned));
    share.is_some_and(|share| share >= MIN_REJECTED_SHARE)
}

fn background(evidence: &Evidence) -> Option<Vec<Finding>> {
    let only_with_workers = evidence.cases().all(|(case, _)| uses_kernel_workers(evidence, case));
    let judged = |case: u32| only_with_workers || !uses_kernel_workers(evidence, case);
    let visits = || evidence.visits().filter(|visit| judged(visit.case));
    let all = Evidence::total(visits(), |c| Some(c.busy_ms? - c.own_ms?))?;
    let cpus = f64::from(evidence.visits().map(|visit| visit.conditions.cpus).max()?);
    let (mut explained, mut rejected, mut worst) = (Vec::new(), Vec::new(), None::<(f64, &Case)>);
    for (case, planned) in evidence.cases().filter(|(case, _)| judged(*case)) {
        let Some(share) = share_of_others(evidence, case, planned) else { continue };
        match share {
            share if share >= MIN_REJECTED_SHARE => rejected.extend(evidence.keys_of(case)),
            share if share >= MIN_EXPLAINED_SHARE => explained.extend(evidence.keys_of(case)),
            _ => {}
        }
        if worst.as_ref().is_none_or(|(most, _)| share > *most) {
            worst = Some((share, &planned.case));
        }
    }
    let certain_cpus = cpus * smallest_certain_share(visits(), cpus);
    let quiet = (0.05f64.max(0.005 * cpus) + tick_error(visits())).max(certain_cpus);
    let loud = all.rate() > quiet || worst.as_ref().is_some_and(|(share, _)| *share > 0.1);
    if !loud {
        return Some(Vec::new());
    }
    let worst = worst.as_ref();
    let finding = Finding::warning(
        BACKGROUND.id,
        match worst.filter(|_| all.rate() <= quiet) {
            Some((share, case)) => {
                let name = uncapital(&evidence.name(case));
                format!("Other processes took {} of the CPU during {name}", percent(*share))
            }
            None => {
                let share = percent(all.rate() / cpus);
                format!("Other processes took {share} of the CPU time of the run")
            }
        },
    )
    .cause("Other work ran at the same time and competed for cores, caches and memory.")
    .fact("CPU time of other work", cpus_seen(all.rate()), "/proc/stat over these passes")
    .fact("passes", visits().count(), "run file")
    .facts(worst.map(|(share, case)| {
        let value = format!("{} of its CPUs' time went to other processes", percent(*share));
        Fact::new("worst benchmark", value, case.key())
    }))
    .facts(others::busiest(evidence))
    .confirm("top -b -n 1 | head -15")
    .advice("Stop the other work, or wait for it with --wait-idle, and measure again.");
    Some(graded(evidence, explained, rejected, finding))
}

/// CPUs' worth of work. The counters of busy time and of Assay's own time are read one after the
/// other, so their difference may be below zero: then none was seen.
pub fn cpus_seen(cpus: f64) -> String {
    if cpus < MIN_SEEN_CPUS { "none seen".to_string() } else { format!("{cpus:.2} CPUs") }
}

/// Less is an error of the kernel's ticks.
const MIN_SEEN_CPUS: f64 = 0.005;

/// One finding for the rejected series and one for those that only carry the cause; the latter also
/// if both lists are empty, since the disturbance was there.
pub(super) fn graded(
    evidence: &Evidence,
    explained: Vec<String>,
    rejected: Vec<String>,
    finding: Finding,
) -> Vec<Finding> {
    // Screens count headline figures; what else those passes gave goes with them.
    let figures = |keys: &[String]| -> Vec<&Judged> {
        let is_figure =
            |judged: &&Judged| judged.series.metric.headline && judged.analysis.estimate.is_some();
        evidence.series.iter().filter(is_figure).filter(|judged| keys.contains(&judged.series.key)).collect()
    };
    // A figure that the headline names is named once.
    let name = |judged: &Judged| {
        let name = evidence.name(&judged.series.case);
        let is_named = finding.headline.contains(&uncapital(&name));
        if is_named { "Its figure".to_string() } else { capital(&name) }
    };
    let graded_as = |severity, effect, keys: Vec<String>, [does, many_do]: [&str; 2]| {
        let ending = match figures(&keys)[..] {
            [] => String::new(),
            [one] => format!(". {} {does}.", name(one)),
            ref all => format!(". {} {many_do}.", counted(all.len(), "figure")),
        };
        let mut finding = finding.clone().affects(effect, keys);
        finding.severity = severity;
        finding.headline.push_str(&ending);
        finding
    };
    let mut findings = Vec::new();
    if !rejected.is_empty() {
        let words = ["does not count", "do not count"];
        findings.push(graded_as(Severity::Problem, Effect::Rejects, rejected, words));
    }
    if !explained.is_empty() || findings.is_empty() {
        findings.push(graded_as(Severity::Warning, Effect::Explains, explained, ["may be too slow"; 2]));
    }
    findings
}

const STEAL: Rule = Rule {
    id: ids::rule::STEAL,
    title: "The host took CPU time (steal)",
    topic: "steal",
    meaning: "Steal is time in which the guest had work and the host ran something else on its core. Figures \
        from such moments measure the host's other guests.",
    action: "Measure at another hour or on a dedicated host, or ask the provider for pinned CPUs. See it: \
        vmstat 1 10 (column st)",
    when: "Steal is above 0.5 % of the run's CPU time, or above 2 % in one benchmark. Above 2 % its figures \
        carry the cause, above 10 % they are rejected.",
    how: "The rule does not apply where no steal was counted since the guest's start. A host that hides \
        steal looks the same, and then only the spread shows it.",
    calm: "steal: at most 0.5 %",
    looked_at: "/proc/stat",
    source: file!(),
    check: steal,
};

fn steal(evidence: &Evidence) -> Option<Vec<Finding>> {
    let stolen = |c: &Conditions| Some(c.steal_ms? / f64::from(c.cpus.max(1)));
    let all = Evidence::total(evidence.visits(), stolen)?;
    let (mut explained, mut rejected, mut worst) = (Vec::new(), Vec::new(), None::<(f64, &Case)>);
    for (case, planned) in evidence.cases() {
        let total = Evidence::total(evidence.visits_of(case), stolen);
        let Some(total) = total.filter(|total| total.wall_ms >= MIN_JUDGED_MS) else { continue };
        let (rate, keys) = (total.rate(), evidence.keys_of(case));
        if rate <= 0.02 || keys.is_empty() {
            continue;
        }
        if rate > 0.10 { &mut rejected } else { &mut explained }.extend(keys);
        if worst.is_none_or(|(most, _)| rate > most) {
            worst = Some((rate, &planned.case));
        }
    }
    let headline = match worst {
        None if all.rate() <= 0.005 => return Some(Vec::new()),
        Some((rate, case)) if all.rate() <= 0.005 => {
            let name = uncapital(&evidence.name(case));
            format!("The host took {} of the CPU during {name}", percent(rate))
        }
        _ => format!("The host took {} of the CPU time (steal)", percent(all.rate())),
    };
    let finding = Finding::warning(STEAL.id, headline)
        .cause("This guest shares its cores with other guests. While one of them runs, this one waits.")
        .fact("steal", format!("{:.0} ms per CPU", all.value), "/proc/stat over all passes")
        .fact("of", format!("{:.0} ms", all.wall_ms), "run time of all passes")
        .confirm("vmstat 1 10    # column st")
        .advice("Measure at another hour or on a dedicated host, or ask the provider for pinned CPUs.");
    Some(graded(evidence, explained, rejected, finding))
}

const QUOTA: Rule = Rule {
    id: ids::rule::CPU_QUOTA,
    title: "A CPU quota throttled the run",
    topic: "CPU quota",
    meaning: "A container may have less CPU time than CPUs. When a period's quota is used up, all its tasks \
        stop until the next period. Throughput shows the quota, and latencies show the pause.",
    action: "Measure outside the container, or raise the quota (cpu.max, cpu.cfs_quota_us). See it: cat \
        /proc/self/cgroup /sys/fs/cgroup/cpu.stat",
    when: "The control group was throttled during passes, or its quota is below the usable CPUs. Or tasks \
        stood still as under a hidden quota. Benchmarks throttled for more than 1 % of their time, or that \
        stood still, are rejected.",
    how: "Sources: cpu.max and cpu.stat. Groups above a control-group namespace or outside the mounted part \
        are hidden; there only tasks that stood still show a quota. A task stood still if 5 % of its time is \
        neither CPU time, run-queue delay, interrupts nor steal. Only samples count (0.3 s or more) in which \
        it never slept and shared its CPU with no other task of the benchmark. Linux counts such pauses as \
        run-queue delay (seen up to 6.18). So 20 % that is neither CPU time, other work, interrupts nor \
        steal counts too.",
    calm: "no CPU quota",
    looked_at: "cpu.max, cpu.stat",
    source: file!(),
    check: quota,
};

fn quota(evidence: &Evidence) -> Option<Vec<Finding>> {
    let limits = &evidence.machine.limits;
    let throttled = Evidence::total(evidence.visits(), |c| c.throttled_ms);
    let is_reported = throttled.is_some() || limits.cpu_quota.is_some();
    let cpus = evidence.run.header.allowed_cpus.len() as f64;
    let short = limits.cpu_quota.filter(|quota| *quota < cpus);
    let paused = throttled.filter(|total| total.value > 0.0);
    if short.is_none() && paused.is_none() {
        // A quota may bind us from where it is not seen.
        return if is_reported && limits.groups_above != Some(true) {
            Some(Vec::new())
        } else {
            unseen_quota(evidence).map(|finding| vec![finding])
        };
    }
    let rejected = evidence.keys_above(0.01, |c| c.throttled_ms);
    let at = limits.cpu_quota_at.clone().unwrap_or_else(|| "cgroup".into());
    let headline = match (short, paused) {
        (Some(quota), Some(total)) => {
            let stopped = stopped(total.rate(), cpus);
            format!("A quota of {quota:.2} of {cpus:.0} CPUs stopped {stopped}. Raise the quota.")
        }
        (Some(quota), None) => {
            format!(
                "A quota allows {quota:.2} of {cpus:.0} CPUs. Figures of all CPUs are those of the quota."
            )
        }
        (None, total) => {
            let stopped = stopped(total.map_or(0.0, |total| total.rate()), cpus);
            format!("A CPU quota stopped {stopped}. Raise the quota.")
        }
    };
    let (severity, effect) = if rejected.is_empty() {
        (Severity::Warning, Effect::None)
    } else {
        (Severity::Problem, Effect::Rejects)
    };
    Some(vec![
        Finding::of(QUOTA.id, severity, headline)
            .cause("Assay runs in a control group with a CPU quota. Figures measure the quota, not the host.")
            .facts(
                limits.cpu_quota.map(|quota| Fact::new("quota", format!("{quota:.2} CPUs of {cpus:.0}"), at)),
            )
            .facts(throttled.map(|total| {
                Fact::new("throttled", format!("{:.0} ms", total.value), "cpu.stat over all passes")
            }))
            .confirm(
                "cat /proc/self/cgroup; cat /sys/fs/cgroup/*/cpu.stat /sys/fs/cgroup/cpu.stat 2>/dev/null",
            )
            .advice(
                "Measure outside the container, or raise the quota (cpu.max, cpu.cfs_quota_us) meanwhile.",
            )
            .affects(effect, rejected),
    ])
}

/// What a quota stopped, by the throttled time over the time of the passes. The kernel adds the
/// time of each CPU on which tasks were stopped, so that it may be more than all the time.
fn stopped(rate: f64, cpus: f64) -> String {
    if rate > 1.0 {
        format!("the tasks of {:.1} CPUs on average", rate.min(cpus.max(1.0)))
    } else {
        format!("all tasks for {} of the time", percent(rate))
    }
}

/// A quota that shows by nothing but its pauses.
fn unseen_quota(evidence: &Evidence) -> Option<Finding> {
    let known = |(case, _): (u32, &Planned)| {
        let paused = Paused::of(evidence, case)?;
        Some((case, paused.significant_ms()?, paused.awake_ms))
    };
    let stopped: Vec<(u32, f64, f64)> = evidence.cases().filter_map(known).collect();
    let (paused_ms, awake_ms) =
        stopped.iter().fold((0.0, 0.0), |(paused, awake), one| (paused + one.1, awake + one.2));
    if stopped.is_empty() {
        return None;
    }
    let seen = match evidence.machine.limits.groups_above {
        Some(true) => "control groups above this namespace are not visible",
        _ => "no control group is visible",
    };
    let headline = format!(
        "Tasks stood still for {} of the time, as under a CPU quota that is not visible here",
        percent(paused_ms / awake_ms)
    );
    Some(
        Finding::problem(QUOTA.id, headline)
            .cause("They did not sleep and shared no CPU: a quota of a group above stops them.")
            .fact("paused", format!("{paused_ms:.0} ms"), "wall time less CPU time and other work")
            .fact("of", format!("{awake_ms:.0} ms"), "samples without sleep")
            .fact("quotas", seen, "/proc/self/cgroup, /proc/self/ns/cgroup")
            .confirm("cat /proc/self/cgroup    # then on the host cpu.stat of all groups above it")
            .advice("Raise the quota of the container, pod or slice on its host, or measure outside.")
            .rejects(stopped.iter().flat_map(|(case, ..)| evidence.keys_of(*case))),
    )
}

const SWAP: Rule = Rule {
    id: ids::rule::SWAPPING,
    title: "The kernel swapped during the run",
    topic: "swapping",
    meaning: "A page that returns from swap costs a disk access instead of a memory access, 1,000–1,000,000 \
        times as much. What is measured then is not memory.",
    action: "Free memory or stop what uses it, and measure again. See it: vmstat 1 10 (columns si and so)",
    when: "The host's counters of swapped pages grew during passes. Benchmarks with more than 1 page per \
        second carry the cause.",
    how: "Source: /proc/vmstat, pages swapped in and out, over the whole host.",
    calm: "swapping: 0 pages",
    looked_at: "/proc/vmstat",
    source: file!(),
    check: swap,
};

fn swap(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = Evidence::total(evidence.visits(), |c| c.swapped_pages)?;
    if all.value <= 0.0 {
        return Some(Vec::new());
    }
    let headline = format!(
        "The kernel swapped {} during the run. Free memory, and measure again.",
        counted(all.value as usize, "page")
    );
    Some(vec![
        Finding::warning(SWAP.id, headline)
            .cause("The host has less free memory than its work needs.")
            .fact("pages in and out", format!("{:.0}", all.value), "/proc/vmstat over all passes")
            .fact(
                "available memory at the start",
                evidence
                    .machine
                    .memory
                    .available_bytes
                    .map_or("unknown".to_string(), |bytes| super::words::bytes(bytes as f64)),
                "/proc/meminfo",
            )
            .confirm("vmstat 1 10    # columns si and so")
            .advice("Free memory or stop what uses it, and measure again.")
            .explains(evidence.keys_above(1e-3, |c| c.swapped_pages)),
    ])
}

#[cfg(test)]
mod tests {
    use super::stopped;

    #[test]
    fn throttled_time_of_several_cpus_is_no_share_of_the_time() {
        assert_eq!(stopped(0.84, 2.0), "all tasks for 84 % of the time");
        assert_eq!(stopped(1.0, 2.0), "all tasks for 100 % of the time");
        assert_eq!(stopped(1.32, 2.0), "the tasks of 1.3 CPUs on average");
        assert_eq!(stopped(2.31, 2.0), "the tasks of 2.0 CPUs on average");
        assert_eq!(stopped(5.5, 64.0), "the tasks of 5.5 CPUs on average");
    }
}
