//! Others that the scheduler prefers to us.

use super::environment::{MIN_EXPLAINED_SHARE, MIN_JUDGED_MS, MIN_REJECTED_SHARE, graded};
use super::others::{by_process, fact, standing};
use super::words::{clipped, percent};
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{CpuSet, Fact, Finding, Neighbour, Packed, Visit};

pub const RULES: &[Rule] = &[HIGHER_PRIORITY];

const HIGHER_PRIORITY: Rule = Rule {
    id: ids::rule::HIGHER_PRIORITY,
    title: "A task of higher priority used the measured CPU",
    topic: "priority",
    meaning: "A real-time task (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE) runs as long as it wants, and one with negative nice longer \
             than its share. Everything else on that CPU waits. Latencies then show its bursts, not this host.",
    action: "Stop that task or move it to another CPU (taskset -p), and measure again. See it: ps -eLo \
             pid,cls,rtprio,ni,psr,pcpu,comm --sort=-pcpu",
    when: "Such a task took 5 % or more of the time of a benchmark's CPUs. From 20 % on its figures are rejected.",
    how: "The share is the smaller of two counts: the CPU time of such processes, and the kernel's count of other work on these \
             CPUs. Processes are looked at between passes after which other work had a notable part of a CPU, at most four times \
             per second, and matched by the CPU that they last ran on. Where none can be seen (a container), a benchmark is \
             rejected if its task waited more than half of its windows for a CPU that other work used, 20 ms and more at a time. \
             Fair turns last 3 to 4 ms per competitor, so it would take five of them on this CPU. A benchmark that its cgroup's \
             quota throttled belongs to cpu-quota.",
    calm: "",
    looked_at: "/proc",
    source: file!(),
    check: higher_priority,
};

/// Share of its windows that a task waits, and the mean length of a wait, that no fair neighbour
/// causes.
const WAITED: f64 = 0.5;
const STRETCH_MS: f64 = 20.0;
/// A fair neighbour's turn at most.
const TURN_MS: f64 = 10.0;
/// A quota that held a case back for more than this explains its waiting.
const THROTTLED: f64 = 0.01;

/// What held a case's CPUs.
struct Held {
    share: f64,
    case: String,
    by: Vec<(Neighbour, f64)>,
    waited: Option<Waited>,
}

fn higher_priority(evidence: &Evidence) -> Option<Vec<Finding>> {
    Evidence::total(evidence.visits(), |c| c.others_on_seats_ms)?;
    let (mut told, mut rejected, mut worst) = (Vec::new(), Vec::new(), None::<Held>);
    for (case, planned) in evidence.cases() {
        let seats = planned.case.placement.busy_cpus();
        let Some(held) = held(evidence, case, &seats) else { continue };
        match held.share {
            share if share >= MIN_REJECTED_SHARE => rejected.extend(evidence.keys_of(case)),
            _ => told.extend(evidence.keys_of(case)),
        }
        if worst.as_ref().is_none_or(|worst| held.share > worst.share) {
            worst = Some(held);
        }
    }
    let Some(worst) = worst else { return Some(Vec::new()) };
    let who = match worst.by.first() {
        Some((first, _)) => format!("Task {} ({})", clipped(&first.name), standing(first)),
        None => "A task outside this container".to_string(),
    };
    let held = format!("{} of its CPUs' time", percent(worst.share));
    let headline = format!("{who} took {} of the measured CPU", percent(worst.share));
    let finding = Finding::warning(HIGHER_PRIORITY.id, headline)
        .cause("The scheduler runs this task before Assay's and as long as it wants, so samples contain its bursts.")
        .facts(worst.by.iter().take(3).map(|(neighbour, cpus)| fact(neighbour, *cpus)))
        .fact("taken in the worst benchmark", held, &worst.case)
        .facts(worst.waited.as_ref().map(|waited| {
            let value = format!("{} of the time, {:.1} ms at a time", percent(waited.share), waited.stretch_ms);
            Fact::new("waited for a CPU", value, "/proc/self/schedstat with the samples")
        }))
        .confirm("ps -eLo pid,tid,cls,rtprio,ni,psr,pcpu,comm --sort=-pcpu | head -15")
        .advice("Stop that task or move it to another CPU (taskset -p), and measure again.");
    Some(graded(evidence, told, rejected, finding))
}

/// Who or what held the CPUs of a case that nobody should have held; `None`: nothing did that can
/// be told from others' ordinary work.
fn held(evidence: &Evidence, case: u32, seats: &CpuSet) -> Option<Held> {
    let used = Evidence::total(evidence.visits_of(case), |c| c.others_on_seats_ms)?;
    if used.wall_ms < MIN_JUDGED_MS || seats.is_empty() {
        return None;
    }
    let others = used.rate() / seats.len() as f64;
    let waited = waited(evidence.visits_of(case));
    let on_seats = |(neighbour, _): &(Neighbour, f64)| {
        neighbour.goes_first() && neighbour.cpu.is_some_and(|cpu| seats.contains(cpu))
    };
    // Looked at after some visits only: where none was this case's, those of the whole run tell who
    // was there.
    let mut by: Vec<(Neighbour, f64)> = by_process(evidence.visits_of(case)).unwrap_or_default();
    if by.is_empty() {
        by = by_process(evidence.visits()).unwrap_or_default();
    }
    let looked = evidence.visits().any(|visit| visit.conditions.neighbours.is_some());
    let nobody_seen = looked && by.is_empty();
    by.retain(on_seats);
    let name = evidence.run.header.plan[case as usize].case.key();
    let by_them = by.iter().map(|(_, cpus)| cpus).sum::<f64>() / seats.len() as f64;
    let share = others.min(by_them);
    if share >= MIN_EXPLAINED_SHARE {
        return Some(Held { share, case: name, by, waited });
    }
    let throttled = Evidence::total(evidence.visits_of(case), |c| c.throttled_ms);
    let by_quota = throttled.is_some_and(|total| total.rate() > THROTTLED);
    let long = |waited: &Waited| {
        let fair_ms = TURN_MS * waited.share / (1.0 - waited.share).max(1e-3);
        waited.share > WAITED && waited.stretch_ms >= STRETCH_MS.max(fair_ms)
    };
    match waited {
        Some(waited) if long(&waited) && !by_quota && nobody_seen && others >= MIN_REJECTED_SHARE => {
            Some(Held { share: others, case: name, by: Vec::new(), waited: Some(waited) })
        }
        _ => None,
    }
}

/// How the task of a case waited for its CPU inside the counted windows.
struct Waited {
    /// Of the windows' time.
    share: f64,
    /// Mean length of a wait: each begins with the task being pushed off its CPU.
    stretch_ms: f64,
}

fn waited<'a>(visits: impl Iterator<Item = &'a Visit>) -> Option<Waited> {
    let (mut wait_ns, mut ns, mut pushed) = (0.0, 0.0, 0.0);
    for samples in visits.flat_map(|visit| &visit.samples) {
        let columns = samples.beside.wait_ns.as_ref().zip(samples.beside.involuntary.as_ref());
        let Some((waits, switches)) = columns else { continue };
        let at = |column: &Packed, index: usize| {
            column.get(index).filter(|value| value.is_finite() && *value >= 0.0)
        };
        for index in samples.warm_up.min(samples.len())..samples.len() {
            let Some((wait, switched)) = at(waits, index).zip(at(switches, index)) else { continue };
            if samples.ns[index] > 0.0 {
                (wait_ns, ns, pushed) = (wait_ns + wait, ns + samples.ns[index], pushed + switched);
            }
        }
    }
    (ns > 0.0 && pushed > 0.0)
        .then(|| Waited { share: (wait_ns / ns).min(1.0), stretch_ms: wait_ns / pushed / 1e6 })
}
