//! Tasks that wanted a CPU, had none, and nobody else had it: what a CPU quota does, also one of a
//! control group that is not seen from here.

use std::collections::BTreeSet;

use super::Evidence;
use super::environment::MIN_JUDGED_MS;
use model::{Beside, Placement};

/// Pauses of a case or a run, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paused {
    /// Wall time of windows in which the measuring task never slept.
    pub awake_ms: f64,
    /// Of that: wall time less CPU time, less the time in the run queue.
    by_queue_ms: f64,
    /// The same less what others had of its CPUs: Linux counts pauses as time in the run queue.
    by_others_ms: f64,
}

/// A quota leaves at least so large a share; less may be what interrupts took unseen.
const LEAST_BY_QUEUE: f64 = 0.05;
/// The kernel counts the time of others in ticks, which short tasks escape.
const LEAST_BY_OTHERS: f64 = 0.20;

impl Paused {
    /// The pauses, ms, if they are more than errors of the counters.
    pub fn told_ms(self) -> Option<f64> {
        let ways = [(self.by_queue_ms, LEAST_BY_QUEUE), (self.by_others_ms, LEAST_BY_OTHERS)];
        let told = ways.into_iter().find(|(ms, least)| *ms >= least * self.awake_ms);
        told.map(|(ms, _)| ms).filter(|_| self.awake_ms >= MIN_JUDGED_MS)
    }

    /// The pauses of a case's visits; `None` where they are not known, or where its own tasks may
    /// have the CPU in turn.
    pub fn of(evidence: &Evidence, case: u32) -> Option<Paused> {
        let planned = evidence.run.header.plan.get(case as usize)?;
        if !each_has_a_cpu(&planned.case.placement) {
            return None;
        }
        let mut all = Paused::default();
        for visit in evidence.visits_of(case) {
            let (process, conditions) = (&visit.process, &visit.conditions);
            let (Some(awake_ms), Some(off_cpu_ms)) = (process.awake_ms, process.off_cpu_ms) else { continue };
            if !(0.0..LARGEST_MS).contains(&awake_ms) || !(0.0..=awake_ms).contains(&off_cpu_ms) {
                continue;
            }
            // No task has the time of interrupts and of a hypervisor.
            let nobodys_ms = conditions.steal_ms.unwrap_or(0.0) + conditions.irq_ms.unwrap_or(0.0);
            let left_ms = |taken_ms: Option<f64>| {
                let taken_ms = taken_ms.filter(|ms| ms.is_finite())?.max(0.0);
                Some((off_cpu_ms - taken_ms - nobodys_ms.max(0.0)).max(0.0))
            };
            all.awake_ms += awake_ms;
            all.by_queue_ms += left_ms(process.queued_ms).unwrap_or(0.0);
            all.by_others_ms += left_ms(conditions.others_on_seats_ms).unwrap_or(0.0);
        }
        (all.awake_ms > 0.0).then_some(all)
    }
}

/// No visit takes so long (a month): what is beyond is a damaged number.
const LARGEST_MS: f64 = 2.6e9;

/// Whether each task of a placement has a CPU of its own, with nobody of ours beside.
fn each_has_a_cpu(placement: &Placement) -> bool {
    let mut taken = BTreeSet::new();
    placement.beside == Beside::Idle
        && !placement.seats.is_empty()
        && placement.seats.iter().all(|seat| {
            let own = seat.cpus.first().filter(|_| seat.cpus.len() == 1 && seat.host.is_none());
            own.is_some_and(|cpu| taken.insert(cpu))
        })
}
