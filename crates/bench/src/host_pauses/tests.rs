//! Every CPU is watched, and other tasks are distinguished from the host.

use super::*;
use crate::rehearsal::{cases as planned, visit_all};
use model::Samples;
use std::time::Duration;
use testkit::host::{RealTime, skipped};

fn values(samples: &[Samples], cpu: u32, metric: MetricId) -> Vec<f64> {
    let own = |one: &&Samples| one.point == at(cpu) && one.metrics.iter().any(|name| metric == *name);
    samples.iter().filter(own).flat_map(|one| one.values(Form::Value)).collect()
}

#[test]
fn every_cpu_is_watched_and_its_pauses_lie_in_the_time_watched() {
    for case in planned(ids::PAUSES, Depth::Full) {
        let samples = visit_all(&case);
        for cpu in cpus(&case) {
            let [watched] = values(&samples, cpu, ids::metric::WATCHED)[..] else { panic!("CPU {cpu}") };
            let [paused] = values(&samples, cpu, ids::metric::PAUSED)[..] else { panic!("CPU {cpu}") };
            assert!((0.0..=100.0).contains(&paused), "{paused} %");
            let [ghz] = values(&samples, cpu, ids::metric::CLOCK)[..] else { panic!("CPU {cpu}") };
            assert!(ghz.is_finite() && ghz > 0.0, "{ghz} GHz");
            for kept in
                samples.iter().filter(|one| one.point == at(cpu) && one.metrics == [ids::metric::PAUSE])
            {
                assert!(kept.ns.iter().sum::<f64>() <= watched * 1e9 * (1.0 + 1e-9));
                let longer =
                    |at: usize| kept.work.get(at).is_some_and(|us| us * 1e3 <= kept.ns[at] * (1.0 + 1e-9));
                assert!((0..kept.len()).all(longer), "a pause is a part of its window");
            }
        }
    }
}

/// A real-time task that takes one CPU for 2 ms of every 10.
#[test]
fn a_task_of_this_system_that_takes_a_cpu_is_not_the_host() {
    let case = planned(ids::PAUSES, Depth::Full).remove(0);
    let taken = cpus(&case).last().expect("a CPU");
    let neighbour = match RealTime::on(taken, Duration::from_millis(2), Duration::from_millis(8)) {
        Ok(neighbour) => neighbour,
        Err(why) => return skipped("a_task_of_this_system_that_takes_a_cpu_is_not_the_host", why),
    };
    let mut told = Vec::new();
    // A shared host may withhold more than the neighbour takes, for a while.
    for _ in 0..20 {
        let samples = visit_all(&case);
        let of = |metric| values(&samples, taken, metric).iter().sum::<f64>();
        let (by_tasks, withheld) = (of(ids::metric::BY_TASKS), of(ids::metric::WITHHELD));
        if by_tasks > 10.0 && withheld < by_tasks / 4.0 {
            drop(neighbour);
            return;
        }
        told.push((by_tasks, withheld));
    }
    panic!("a fifth of CPU {taken} was taken by a task; by tasks and withheld, %: {told:?}");
}
