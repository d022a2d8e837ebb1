//! `assay host` itself: a short run of this machine, a task that takes a CPU, and mistakes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::host::{RealTime, skipped};
use crate::runs::{end, results};

fn host(dir: &Path, words: &str) -> Command {
    let mut command = crate::assay();
    command.arg("host").arg("--out").arg(dir).args(["--force", "--quick"]).args(words.split_whitespace());
    command
}

fn rows(results: &Value) -> Vec<(String, String)> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_string();
    let rows = results["guest_share"]["rows"].as_array().expect("rows").iter();
    rows.map(|row| (text(row, "what"), text(row, "grade"))).collect()
}

/// A real-time task that takes one CPU for 2 ms of every 10 is a task of this system.
#[test]
fn a_task_that_takes_a_cpu_is_named_and_every_row_has_a_grade() {
    let taken = sys::affinity::allowed().expect("affinity").iter().last().expect("a CPU");
    let neighbour = match RealTime::on(taken, Duration::from_millis(2), Duration::from_millis(8)) {
        Ok(neighbour) => neighbour,
        Err(why) => return skipped("a_task_that_takes_a_cpu_is_named_and_every_row_has_a_grade", why),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let ended = end(&mut host(dir.path(), "--budget 8s"));
    drop(neighbour);
    assert!(ended.sane().code == 0 || ended.code == 3, "{ended:?}");
    let results = results(dir.path());
    let share = &results["guest_share"];
    let cpu = share["cpus"].as_array().expect("CPUs").iter().find(|cpu| cpu["cpu"] == taken).expect("it");
    let (by_tasks, withheld) = (cpu["by_tasks"].as_f64(), cpu["withheld"].as_f64());
    assert!(by_tasks > Some(0.1) && withheld < by_tasks, "a fifth of CPU {taken} was taken: {share}");
    let rows = rows(&results);
    let names: Vec<&str> = rows.iter().map(|(what, _)| what.as_str()).collect();
    for what in
        ["CPUs", "clock", "cache share", "memory pages", "node", "interference", "timers", "IPIs", "idle"]
    {
        assert!(names.contains(&what), "{what}: {names:?}");
    }
    assert!(rows.contains(&("cache share".into(), "not_measured".into())), "{rows:?}");
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let ended = end(&mut host(dir.path(), "--only memory"));
    ended.expect(2);
    assert!(ended.err.contains("measures its own benchmarks"), "{ended:?}");
}
