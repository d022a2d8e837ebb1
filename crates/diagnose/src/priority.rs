//! Tasks that the scheduler prefers to Assay's.

use super::environment::{MIN_EXPLAINED_SHARE, MIN_JUDGED_MS, MIN_REJECTED_SHARE, graded};
use super::others::{by_process, fact, policy_and_priority};
use super::words::{clipped, percent};
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{CpuSet, Fact, Finding, Neighbour, Packed, Visit};

pub const RULES: &[Rule] = &[HIGHER_PRIORITY];

const HIGHER_PRIORITY: Rule = Rule {
    id: ids::rule::HIGHER_PRIORITY,
    title: "A task of higher priority used the measured CPU",
    topic: "priority",
    meaning: "A real-time task (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE) runs until it sleeps, and one with negative nice longer \
             than its share. Everything else on that CPU waits. Latencies then show its bursts, not this host.",
    action: "Stop that task or move it to another CPU (taskset -p), and measure again. See it: ps -eLo \
             pid,cls,rtprio,ni,psr,pcpu,comm --sort=-pcpu",
    when: "Such a task took 5 % or more of the time of a benchmark's CPUs. From 20 % on its figures are rejected.",
    how: "The share is the smaller of two counts: the CPU time of such processes, and the kernel's count of other work on these \
             CPUs. Processes are read after passes in which other work had a notable part of a CPU, at most four times per \
             second. They count by the CPU that they last ran on. Where none can be seen (a container), waiting decides. A \
             benchmark is rejected if its task waited 20 ms or more at a time, in over half of the time of its samples. Fair \
             turns last 3–4 ms per competitor, so that takes five of them on this CPU. A benchmark that its cgroup's quota \
             throttled belongs to cpu-quota.",
    calm: "",
    looked_at: "/proc",
    source: file!(),
    check: higher_priority,
};

/// A longer share of its samples that a task waits, and a longer mean wait, than fair scheduling
/// with an ordinary task causes.
const WAITED: f64 = 0.5;
const STRETCH_MS: f64 = 20.0;
/// The longest time slice of an ordinary task.
const MAX_SLICE_MS: f64 = 10.0;
/// A larger share of throttling by a quota explains the waiting.
const THROTTLED: f64 = 0.01;

/// The use of a case's CPUs by tasks of higher priority.
struct PriorityUse {
    /// Of the time of the case's CPUs, 0..1.
    share: f64,
    case: String,
    /// The tasks with the CPUs that each used; empty if they are not visible.
    by: Vec<(Neighbour, f64)>,
    waits: Option<Waits>,
}

fn higher_priority(evidence: &Evidence) -> Option<Vec<Finding>> {
    Evidence::total(evidence.visits(), |c| c.others_on_seats_ms)?;
    let (mut explained, mut rejected, mut worst) = (Vec::new(), Vec::new(), None::<PriorityUse>);
    for (case, planned) in evidence.cases() {
        let seats = planned.case.placement.busy_cpus();
        let Some(found) = priority_use(evidence, case, &seats) else { continue };
        match found.share {
            share if share >= MIN_REJECTED_SHARE => rejected.extend(evidence.keys_of(case)),
            _ => explained.extend(evidence.keys_of(case)),
        }
        if worst.as_ref().is_none_or(|worst| found.share > worst.share) {
            worst = Some(found);
        }
    }
    let Some(worst) = worst else { return Some(Vec::new()) };
    let who = match worst.by.first() {
        Some((first, _)) => format!("Task {} ({})", clipped(&first.name), policy_and_priority(first)),
        None => "A task outside this container".to_string(),
    };
    let held = format!("{} of its CPUs' time", percent(worst.share));
    let headline = format!("{who} took {} of the measured CPU", percent(worst.share));
    let finding = Finding::warning(HIGHER_PRIORITY.id, headline)
        .cause("The scheduler runs this task before Assay's until it sleeps, so samples contain its bursts.")
        .facts(worst.by.iter().take(3).map(|(neighbour, cpus)| fact(neighbour, *cpus)))
        .fact("taken in the worst benchmark", held, &worst.case)
        .facts(worst.waits.as_ref().map(|waits| {
            let value = format!("{} of the time, {:.1} ms at a time", percent(waits.share), waits.stretch_ms);
            Fact::new("waited for a CPU", value, "/proc/self/schedstat with the samples")
        }))
        .confirm("ps -eLo pid,tid,cls,rtprio,ni,psr,pcpu,comm --sort=-pcpu | head -15")
        .advice("Stop that task or move it to another CPU (taskset -p), and measure again.");
    Some(graded(evidence, explained, rejected, finding))
}

/// The use of a case's CPUs by tasks of higher priority; `None` if nothing exceeds ordinary other
/// work.
fn priority_use(evidence: &Evidence, case: u32, seats: &CpuSet) -> Option<PriorityUse> {
    let used = Evidence::total(evidence.visits_of(case), |c| c.others_on_seats_ms)?;
    if used.wall_ms < MIN_JUDGED_MS || seats.is_empty() {
        return None;
    }
    let others = used.rate() / seats.len() as f64;
    let waits = waits(evidence.visits_of(case));
    let on_seats = |(neighbour, _): &(Neighbour, f64)| {
        neighbour.goes_first() && neighbour.cpu.is_some_and(|cpu| seats.contains(cpu))
    };
    // Processes are observed after some passes only. If none belongs to this case, those of the
    // whole run count.
    let mut by: Vec<(Neighbour, f64)> = by_process(evidence.visits_of(case)).unwrap_or_default();
    if by.is_empty() {
        by = by_process(evidence.visits()).unwrap_or_default();
    }
    let observed = evidence.visits().any(|visit| visit.conditions.neighbours.is_some());
    let none_visible = observed && by.is_empty();
    by.retain(on_seats);
    let name = evidence.run.header.plan[case as usize].case.key();
    let by_them = by.iter().map(|(_, cpus)| cpus).sum::<f64>() / seats.len() as f64;
    let share = others.min(by_them);
    if share >= MIN_EXPLAINED_SHARE {
        return Some(PriorityUse { share, case: name, by, waits });
    }
    let throttled = Evidence::total(evidence.visits_of(case), |c| c.throttled_ms);
    let by_quota = throttled.is_some_and(|total| total.rate() > THROTTLED);
    let long = |waits: &Waits| {
        let fair_ms = MAX_SLICE_MS * waits.share / (1.0 - waits.share).max(1e-3);
        waits.share > WAITED && waits.stretch_ms >= STRETCH_MS.max(fair_ms)
    };
    match waits {
        Some(waits) if long(&waits) && !by_quota && none_visible && others >= MIN_REJECTED_SHARE => {
            Some(PriorityUse { share: others, case: name, by: Vec::new(), waits: Some(waits) })
        }
        _ => None,
    }
}

/// The waits of a case's task for its CPU inside the counted samples.
struct Waits {
    /// Of the samples' time, 0..1.
    share: f64,
    /// Mean length of a wait, ms: each starts with an involuntary switch.
    stretch_ms: f64,
}

fn waits<'a>(visits: impl Iterator<Item = &'a Visit>) -> Option<Waits> {
    let (mut wait_ns, mut ns, mut preempted) = (0.0, 0.0, 0.0);
    for samples in visits.flat_map(|visit| &visit.samples) {
        let columns = samples.beside.wait_ns.as_ref().zip(samples.beside.involuntary.as_ref());
        let Some((waits, switches)) = columns else { continue };
        let at = |column: &Packed, index: usize| {
            column.get(index).filter(|value| value.is_finite() && *value >= 0.0)
        };
        for index in samples.warm_up.min(samples.len())..samples.len() {
            let Some((wait, switched)) = at(waits, index).zip(at(switches, index)) else { continue };
            if samples.ns[index] > 0.0 {
                (wait_ns, ns, preempted) = (wait_ns + wait, ns + samples.ns[index], preempted + switched);
            }
        }
    }
    (ns > 0.0 && preempted > 0.0)
        .then(|| Waits { share: (wait_ns / ns).min(1.0), stretch_ms: wait_ns / preempted / 1e6 })
}
