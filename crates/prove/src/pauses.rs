//! Two sections of `docs/results`: how often pauses of CPUs are attributed to their cause, on
//! simulated hosts, and on this one with real-time tasks planted.

use std::time::Duration;

use prove::proof::{
    Attributed, PAUSES_RIGHT_LEAST, PAUSES_WRONG_MOST, PauseTrouble, Rate, TROUBLES, attributed,
};
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

/// Simulated hosts of each kind: a kind is the one trouble that its hosts have.
const MACHINES: usize = 500;
const SEED: u64 = 11;

fn tables() -> String {
    let results = measured(&TROUBLES, |trouble| attributed(*trouble, MACHINES, SEED));
    let rate = |rate: Rate| if rate.of > 0 { rate.to_string() } else { "–".to_string() };
    let row = |(trouble, result): (&PauseTrouble, &Attributed)| {
        vec![
            trouble.words().to_string(),
            rate(result.right),
            rate(result.pairs),
            rate(result.wrong),
            rate(result.machines_wrong),
        ]
    };
    let rows = TROUBLES.iter().zip(&results).map(row);
    let rates = |part: fn(&Attributed) -> Rate| -> Vec<Rate> { results.iter().map(part).collect() };
    [
        // Pairs are two CPUs that alternate on one of the host's, or stop together.
        titled("machine | CPUs named right | pairs named right | wrong claims | machines with one", rows),
        at_least("CPUs named right", &rates(|result| result.right), PAUSES_RIGHT_LEAST),
        at_least("Pairs named right", &rates(|result| result.pairs), PAUSES_RIGHT_LEAST),
        at_most("Machines with a wrong claim", &rates(|result| result.machines_wrong), PAUSES_WRONG_MOST),
    ]
    .concat()
}

/// A task that takes a CPU for a part of each period.
struct PlantedTask {
    busy_ms: u64,
    period_ms: u64,
}

const PLANTED_TASKS: [PlantedTask; 2] =
    [PlantedTask { busy_ms: 2, period_ms: 10 }, PlantedTask { busy_ms: 12, period_ms: 40 }];

/// What was attributed while one of them ran, over all trials.
#[derive(Default)]
struct PlantedResult {
    /// The share attributed to tasks is right within [`TOLERANCE`].
    found: Rate,
    /// The share attributed to the host is larger than without the task, beyond its noise.
    blamed_host: Rate,
    /// Shares attributed to tasks.
    shares: Vec<f64>,
}

/// An attributed share may differ from the planted one by this part of it.
const TOLERANCE: f64 = 0.25;
/// What a host withholds changes by this share of the time from one run to the next.
const HOST_NOISE: f64 = 0.02;

/// Measures the pauses of all CPUs while a SCHED_FIFO task takes the last one for a part of the
/// time, and right before without a task.
fn planted() -> String {
    let Some(cpu) = testkit::host::allowed_cpus().iter().last() else { return String::new() };
    let trials = trials();
    let mut results: [PlantedResult; PLANTED_TASKS.len()] = Default::default();
    for trial in 0..trials {
        let Some(without_task) = measure_pauses(cpu) else { continue };
        for (PlantedTask { busy_ms, period_ms }, result) in PLANTED_TASKS.iter().zip(&mut results) {
            let (busy, idle) = (Duration::from_millis(*busy_ms), Duration::from_millis(period_ms - busy_ms));
            let task = match RealTime::on(cpu, busy, idle) {
                Ok(task) => task,
                Err(why) => return format!("Not planted: {why}\n"),
            };
            let with_task = measure_pauses(cpu);
            drop(task);
            let Some(with_task) = with_task else { continue };
            let planted = *busy_ms as f64 / *period_ms as f64;
            result.found.count((with_task.by_tasks / planted - 1.0).abs() <= TOLERANCE);
            let usual = without_task.withheld.max(HOST_NOISE);
            result.blamed_host.count(with_task.withheld > usual + TOLERANCE * planted);
            result.shares.push(with_task.by_tasks);
        }
        progress(trial, trials);
    }
    let row = |(task, result): (&PlantedTask, &PlantedResult)| {
        let middle =
            median(&result.shares).map_or("–".to_string(), |share| format!("{:.1} %", share * 100.0));
        row![
            format!("{} ms of every {}", task.busy_ms, task.period_ms),
            result.found.of,
            middle,
            result.found,
            result.blamed_host
        ]
    };
    let rates = |part: fn(&PlantedResult) -> Rate| -> Vec<Rate> { results.iter().map(part).collect() };
    [
        table(
            &["task", "trials", "attributed to tasks, median", "within a quarter", "attributed to the host"],
            &PLANTED_TASKS.iter().zip(&results).map(row).collect::<Vec<_>>(),
        ),
        at_least("Planted tasks found", &rates(|result| result.found), PAUSES_RIGHT_LEAST),
        at_most(
            "Planted tasks attributed to the host",
            &rates(|result| result.blamed_host),
            PAUSES_WRONG_MOST,
        ),
    ]
    .concat()
}

/// Shares of a CPU's time.
struct PauseShares {
    by_tasks: f64,
    withheld: f64,
}

/// Runs the benchmark of pauses by this program, for some seconds.
fn measure_pauses(cpu: u32) -> Option<PauseShares> {
    let run = results(&["run", "--only", "host.pauses", "--quick", "--budget", "7s"])?;
    let of_cpu = run["guest_share"]["cpus"].as_array()?.iter().find(|found| found["cpu"] == cpu)?;
    let share = |name: &str| Value::as_f64(&of_cpu[name]);
    Some(PauseShares { by_tasks: share("by_tasks")?, withheld: share("withheld")? })
}
