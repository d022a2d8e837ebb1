//! Tasks that waited for a CPU that was idle: the effect of a CPU quota, also of one in a control
//! group that is not visible from here.

use std::collections::BTreeSet;

use super::Evidence;
use super::environment::MIN_JUDGED_MS;
use model::{Beside, Placement};

/// The pauses of a case, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paused {
    /// Wall time of samples in which the measuring task never slept.
    pub awake_ms: f64,
    /// Pauses by run queue: wall time less CPU time, less the time in the run queue.
    by_queue_ms: f64,
    /// Pauses by other work: wall time less CPU time, less the time that other work had of the
    /// CPUs. Needed as Linux counts pauses by quota as time in the run queue.
    by_others_ms: f64,
}

/// Smaller shares of the awake time may be unseen interrupts.
const MIN_SHARE_BY_QUEUE: f64 = 0.05;
/// Larger, as the kernel counts other work in ticks, which short tasks escape.
const MIN_SHARE_BY_OTHERS: f64 = 0.20;

impl Paused {
    /// The pauses, ms, if they exceed the errors of the counters.
    pub fn significant_ms(self) -> Option<f64> {
        let methods = [(self.by_queue_ms, MIN_SHARE_BY_QUEUE), (self.by_others_ms, MIN_SHARE_BY_OTHERS)];
        let found = methods.into_iter().find(|(ms, min)| *ms >= min * self.awake_ms);
        found.map(|(ms, _)| ms).filter(|_| self.awake_ms >= MIN_JUDGED_MS)
    }

    /// The pauses of a case's passes; `None` if they were not counted, or if its tasks share a CPU.
    pub fn of(evidence: &Evidence, case: u32) -> Option<Paused> {
        let planned = evidence.run.header.plan.get(case as usize)?;
        if !each_has_a_cpu(&planned.case.placement) {
            return None;
        }
        let mut all = Paused::default();
        for visit in evidence.visits_of(case) {
            let (process, conditions) = (&visit.process, &visit.conditions);
            let (Some(awake_ms), Some(off_cpu_ms)) = (process.awake_ms, process.off_cpu_ms) else { continue };
            if !(0.0..MAX_AWAKE_MS).contains(&awake_ms) || !(0.0..=awake_ms).contains(&off_cpu_ms) {
                continue;
            }
            // Time of interrupts and of the hypervisor belongs to no task.
            let lost_ms = conditions.steal_ms.unwrap_or(0.0) + conditions.irq_ms.unwrap_or(0.0);
            let left_ms = |taken_ms: Option<f64>| {
                let taken_ms = taken_ms.filter(|ms| ms.is_finite())?.max(0.0);
                Some((off_cpu_ms - taken_ms - lost_ms.max(0.0)).max(0.0))
            };
            all.awake_ms += awake_ms;
            all.by_queue_ms += left_ms(process.queued_ms).unwrap_or(0.0);
            all.by_others_ms += left_ms(conditions.others_on_seats_ms).unwrap_or(0.0);
        }
        (all.awake_ms > 0.0).then_some(all)
    }
}

/// A month: a longer pass is a damaged number.
const MAX_AWAKE_MS: f64 = 2.6e9;

/// Whether each task of a placement has a CPU of its own, and Assay runs nothing on its siblings.
fn each_has_a_cpu(placement: &Placement) -> bool {
    let mut taken = BTreeSet::new();
    placement.beside == Beside::Idle
        && !placement.seats.is_empty()
        && placement.seats.iter().all(|seat| {
            let own = seat.cpus.first().filter(|_| seat.cpus.len() == 1 && seat.host.is_none());
            own.is_some_and(|cpu| taken.insert(cpu))
        })
}
