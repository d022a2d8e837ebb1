//! The tables on what pauses CPUs: simulated machines, and real-time tasks on this one.

use std::time::Duration;

use prove::proof::{Attributed, PAUSES_RIGHT_LEAST, PAUSES_WRONG_MOST, Rate, TROUBLES, attributed};
use serde_json::Value;
use stats::order::median;
use testkit::host::RealTime;

use super::regions_planted::{progress, results, trials};
use super::statistics::{at_least, at_most, row, titled};
use super::{Section, measured, table};

pub const SECTIONS: &[Section] = &[
    Section { name: "pauses", title: "Who pauses CPUs", run: tables },
    Section { name: "pauses-planted", title: "Real-time tasks that take a CPU, planted", run: planted },
];

/// Machines of each kind.
const MACHINES: usize = 500;

fn tables() -> String {
    let told = measured(&TROUBLES, |trouble| attributed(*trouble, MACHINES, 11));
    let rate = |rate: Rate| if rate.of > 0 { rate.to_string() } else { "–".to_string() };
    let row = |(trouble, told): (&prove::proof::PauseTrouble, &Attributed)| {
        vec![
            trouble.words().to_string(),
            rate(told.right),
            rate(told.pairs),
            rate(told.wrong),
            rate(told.machines_wrong),
        ]
    };
    let rows = TROUBLES.iter().zip(&told).map(row);
    let all = |of: fn(&Attributed) -> Rate| -> Vec<Rate> { told.iter().map(of).collect() };
    [
        titled("machine | CPUs named right | pairs named right | wrong claims | machines with one", rows),
        at_least("CPUs named right", &all(|told| told.right), PAUSES_RIGHT_LEAST),
        at_least("Pairs named right", &all(|told| told.pairs), PAUSES_RIGHT_LEAST),
        at_most("Machines with a wrong claim", &all(|told| told.machines_wrong), PAUSES_WRONG_MOST),
    ]
    .concat()
}

/// What a planted task takes: ms, and the period in ms.
const NAPS_MS: [(u64, u64); 2] = [(2, 10), (12, 40)];

/// Watches of all CPUs while a SCHED_FIFO task takes the last one for a part of the time. It counts
/// as found if its share is attributed to tasks, within a quarter, and not as withheld by the host
/// beyond what the CPU lost in the watch without a task just before.
fn planted() -> String {
    let Some(cpu) = testkit::host::allowed_cpus().iter().last() else { return String::new() };
    let trials = trials();
    let mut told: [(Rate, Rate, Vec<f64>); NAPS_MS.len()] = Default::default();
    for trial in 0..trials {
        let Some((_, before)) = watch(cpu) else { continue };
        for ((busy, every), (right, wrong, shares)) in NAPS_MS.iter().zip(&mut told) {
            let task =
                match RealTime::on(cpu, Duration::from_millis(*busy), Duration::from_millis(every - busy)) {
                    Ok(task) => task,
                    Err(why) => return format!("Not planted: {why}\n"),
                };
            let seen = watch(cpu);
            drop(task);
            let Some((by_tasks, withheld)) = seen else { continue };
            let share = *busy as f64 / *every as f64;
            right.count((by_tasks / share - 1.0).abs() <= NEARLY);
            wrong.count(withheld > before.max(CHANCE) + NEARLY * share);
            shares.push(by_tasks);
        }
        progress(trial, trials);
    }
    let row = |((busy, every), (right, wrong, shares)): (&(u64, u64), &(Rate, Rate, Vec<f64>))| {
        let middle = median(shares).map_or("–".to_string(), |share| format!("{:.1} %", share * 100.0));
        row![format!("{busy} ms of every {every}"), right.of, middle, right, wrong]
    };
    [
        table(
            &["task", "trials", "attributed to tasks, median", "within a quarter", "attributed to the host"],
            &NAPS_MS.iter().zip(&told).map(row).collect::<Vec<_>>(),
        ),
        at_least(
            "Planted tasks found",
            &told.iter().map(|told| told.0).collect::<Vec<_>>(),
            PAUSES_RIGHT_LEAST,
        ),
        at_most(
            "Planted tasks attributed to the host",
            &told.iter().map(|told| told.1).collect::<Vec<_>>(),
            PAUSES_WRONG_MOST,
        ),
    ]
    .concat()
}

/// A planted share may be wrong by this part of it; what a host withholds changes as much from
/// watch to watch.
const NEARLY: f64 = 0.25;
const CHANCE: f64 = 0.02;

/// Shares of a CPU's time that tasks took and that the host withheld, in a watch of some seconds.
fn watch(cpu: u32) -> Option<(f64, f64)> {
    let seen = results(&["run", "--only", "host.pauses", "--quick", "--budget", "7s"])?;
    let own = seen["guest_share"]["cpus"].as_array()?.iter().find(|own| own["cpu"] == cpu)?;
    let share = |name: &str| Value::as_f64(&own[name]);
    Some((share("by_tasks")?, share("withheld")?))
}
