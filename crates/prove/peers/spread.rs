//! Ten whole runs of the baseline and of each peer, interleaved: how much does each figure vary
//! from run to run?
//!
//! A run of Assay's is `assay run --quick` over the groups of the baseline, as a user would start
//! it; a run of a peer is each of its tests once, pinned. The coefficient of variation of each
//! figure over the ten runs stands in the table, and the median of each tool's in the last lines.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use stats::order::median;

use super::system::{bogo, full_command, microseconds, on_path};
use super::{Bench, number_after, number_before, put_table, said_by};

pub const NAME: &str = "spread of ten whole runs";
const RUNS: usize = 10;
/// The whole baseline.
const GROUPS: &str = "syscall,signal,process,vm,timer,lock,ipc,sched,file,cpu";
/// Of these the peers have nothing.
const ALONE: [&str; 4] = ["timer", "lock", "file", "cpu"];
const BUDGET: &str = "60s";

/// One test of a peer.
struct Test {
    tool: &'static str,
    name: &'static str,
    command: &'static str,
    /// Its figure, from the output.
    figure: fn(&str) -> Option<f64>,
    /// Assay's series of the same quantity, or nearly; empty: none. Other series are not compared,
    /// because a host affects them differently.
    series: &'static str,
}

const fn test(
    tool: &'static str,
    name: &'static str,
    command: &'static str,
    figure: fn(&str) -> Option<f64>,
    series: &'static str,
) -> Test {
    Test { tool, name, command, figure, series }
}

#[rustfmt::skip]
const TESTS: &[Test] = &[
    test("perf bench", "syscall basic", "perf bench syscall basic -l 2000000", |text| number_before(text, "usecs/op"), "syscall.getpid@one-cpu#latency"),
    test("perf bench", "sched pipe", "perf bench sched pipe -l 50000", |text| number_before(text, "usecs/op"), "ipc.pipe-pingpong@same-cpu#round_trips"),
    test("perf bench", "sched messaging", "perf bench sched messaging -g 2 -l 200", |text| number_after(text, "Total time:"), ""),
    test("perf bench", "futex hash", "perf bench futex hash -t 1 -r 1", |text| number_after(text, "Averaged "), ""),
    test("perf bench", "epoll wait", "perf bench epoll wait -t 1 -r 1", |text| number_after(text, "Averaged "), ""),
    test("perf bench", "mem memcpy", "perf bench mem memcpy -s 1MB -l 1000 -f default", |text| number_before(text, "GB/sec"), ""),
    test("stress-ng", "null", "stress-ng --null 1 -t 1 --metrics-brief", bogo, "syscall.write@one-cpu#latency"),
    test("stress-ng", "zero", "stress-ng --zero 1 -t 1 --metrics-brief", bogo, "syscall.read@one-cpu#latency"),
    test("stress-ng", "kill", "stress-ng --kill 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "sigsegv", "stress-ng --sigsegv 1 -t 1 --metrics-brief", bogo, "signal.protection-fault@one-cpu#latency"),
    test("stress-ng", "fork", "stress-ng --fork 1 -t 1 --metrics-brief", bogo, "process.fork@one-cpu+base-pages/resident_mb=0#latency"),
    test("stress-ng", "vfork", "stress-ng --vfork 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "pthread", "stress-ng --pthread 1 -t 1 --metrics-brief", bogo, "process.thread@one-cpu#latency"),
    test("stress-ng", "pipe", "stress-ng --pipe 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "fifo", "stress-ng --fifo 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "eventfd", "stress-ng --eventfd 1 -t 1 --metrics-brief", bogo, "ipc.eventfd@same-cpu#latency"),
    test("stress-ng", "futex", "stress-ng --futex 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "sem-sysv", "stress-ng --sem-sysv 1 -t 1 --metrics-brief", bogo, "ipc.sysv-semaphore@same-cpu#latency"),
    test("stress-ng", "switch", "stress-ng --switch 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "poll", "stress-ng --poll 1 -t 1 --metrics-brief", bogo, ""),
    test("stress-ng", "open", "stress-ng --open 1 -t 1 --metrics-brief", bogo, ""),
    test("lmbench", "null", "lat_syscall null", microseconds, "syscall.getpid@one-cpu#latency"),
    test("lmbench", "read", "lat_syscall read", microseconds, "syscall.read@one-cpu#latency"),
    test("lmbench", "write", "lat_syscall write", microseconds, "syscall.write@one-cpu#latency"),
    test("lmbench", "stat", "lat_syscall stat /tmp", microseconds, "syscall.stat@one-cpu#latency"),
    test("lmbench", "fstat", "lat_syscall fstat /etc/passwd", microseconds, "syscall.fstat@one-cpu#latency"),
    test("lmbench", "open", "lat_syscall open /etc/passwd", microseconds, "syscall.open-close@one-cpu#latency"),
    test("lmbench", "select 100", "lat_select -n 100 file", microseconds, "syscall.select@one-cpu/fds=100#latency"),
    test("lmbench", "signal install", "lat_sig install", microseconds, "signal.handler@one-cpu#install"),
    test("lmbench", "signal catch", "lat_sig catch", microseconds, "signal.handler@one-cpu#latency"),
    test("lmbench", "pipe", "lat_pipe", microseconds, "ipc.pipe-pingpong@same-cpu#round_trips"),
    test("lmbench", "unix", "lat_unix", microseconds, "ipc.unix-stream@same-cpu#latency"),
    test("lmbench", "fork", "lat_proc fork", microseconds, "process.fork@one-cpu+base-pages/resident_mb=0#latency"),
    test("lmbench", "exec", "lat_proc exec", microseconds, "process.exec@one-cpu/program=minimal#latency"),
    test("lmbench", "shell", "lat_proc shell", microseconds, "process.shell@one-cpu/program=minimal#latency"),
    test("lmbench", "pipe bandwidth", "bw_pipe", |text| number_before(text, "MB/sec"), "ipc.pipe-bandwidth@same-cpu/message=65536#bandwidth"),
    test("lmbench", "unix bandwidth", "bw_unix", |text| number_before(text, "MB/sec"), "ipc.unix-bandwidth@same-cpu/message=65536#bandwidth"),
];

/// Figures of each tool and test, one a run.
type Figures = BTreeMap<(String, String), Vec<f64>>;

pub fn table(bench: &Bench) {
    let program_of = |test: &Test| test.command.split(' ').next().unwrap_or_default().to_string();
    let tests: Vec<&Test> = TESTS.iter().filter(|test| on_path(&program_of(test))).collect();
    let cpu = bench.first_cpu();
    let mut figures = Figures::new();
    let begin = Instant::now();
    for run in 0..RUNS {
        // Assay is first in every second run only.
        if run % 2 == 0 {
            ours(&mut figures);
        }
        for Test { tool, name, command, figure, .. } in &tests {
            let text = said_by(&full_command(command, cpu)).unwrap_or_default();
            if let Some(value) = figure(&text) {
                figures.entry((tool.to_string(), name.to_string())).or_default().push(value);
            }
        }
        if run % 2 == 1 {
            ours(&mut figures);
        }
    }
    println!("{}", each(&figures));
    put_table("bench:spread", &format!("{}\n{}", by_tool(&figures), twins(&figures)), begin);
}

/// One run of Assay's; a figure for each series that has a number whatever its verdict.
fn ours(figures: &mut Figures) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let mut command = Command::new(testkit::program());
    command
        .args(["run", "--quick", "--force", "--json", "--budget", BUDGET, "--only", GROUPS, "--out"])
        .arg(folder.path());
    let Ok(output) = command.output() else { return };
    let run: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    for series in run["series"].as_array().into_iter().flatten() {
        // A series without a better side is a fact, not a figure.
        let is_figure = series["better"] != "neither";
        if let (Some(key), Some(median), true) =
            (series["key"].as_str(), series["median"].as_f64(), is_figure)
        {
            figures.entry(("assay".to_string(), key.to_string())).or_default().push(median);
        }
    }
}

/// Standard deviation over mean.
fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= RUNS / 2 && mean > 0.0).then(|| (squares / (values.len() - 1) as f64).sqrt() / mean)
}

/// A line for each figure.
fn each(figures: &Figures) -> String {
    let mut table =
        "| tool | figure | runs | median | CV over whole runs |\n|---|---|---:|---:|---:|\n".to_string();
    for ((tool, name), values) in figures {
        if let (Some(cv), Some(median)) = (coefficient_of_variation(values), median(values)) {
            let (runs, cv) = (values.len(), cv * 100.0);
            table += &format!("| {tool} | {name} | {runs} | {median:.4} | {cv:.1} % |\n");
        }
    }
    table
}

/// A line for each tool.
fn by_tool(figures: &Figures) -> String {
    let mut tools: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for ((tool, name), values) in figures {
        let Some(cv) = coefficient_of_variation(values) else { continue };
        tools.entry(tool).or_default().push(cv);
        let group = name.split('.').next().unwrap_or_default();
        if tool == "assay" && !ALONE.contains(&group) {
            tools.entry("assay, the groups that peers have").or_default().push(cv);
        }
    }
    let mut table = "| tool | figures | median CV | figures under 2 % | figures over 10 % |\n\
                     |---|---:|---:|---:|---:|\n"
        .to_string();
    for (tool, cvs) in tools {
        let median = median(&cvs).unwrap_or(f64::NAN) * 100.0;
        let (steady, unsteady) =
            (cvs.iter().filter(|cv| **cv < 0.02).count(), cvs.iter().filter(|cv| **cv > 0.1).count());
        table += &format!("| {tool} | {} | {median:.1} % | {steady} | {unsteady} |\n", cvs.len());
    }
    let too_few = figures.values().filter(|values| coefficient_of_variation(values).is_none()).count();
    table + &format!("\nLeft out: {too_few} figures that fewer than {} of {RUNS} runs had.\n", RUNS / 2)
}

/// The figures that both a peer and Assay have.
fn twins(figures: &Figures) -> String {
    let mut tools: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for Test { tool, name, series, .. } in TESTS {
        let cv = |tool: &str, name: &str| {
            coefficient_of_variation(figures.get(&(tool.to_string(), name.to_string()))?)
        };
        if let (Some(theirs), Some(own)) = (cv(tool, name), cv("assay", series)) {
            tools.entry(tool).or_default().push([theirs, own]);
        }
    }
    let mut table =
        "| peer | figures that both have | median CV, peer | median CV, Assay | ours lower in |\n\
                     |---|---:|---:|---:|---:|\n"
            .to_string();
    for (tool, pairs) in tools {
        let [theirs, own] = [0, 1].map(|side| {
            let cvs: Vec<f64> = pairs.iter().map(|pair| pair[side]).collect();
            median(&cvs).unwrap_or(f64::NAN) * 100.0
        });
        let lower = pairs.iter().filter(|[theirs, own]| own < theirs).count();
        table += &format!("| {tool} | {} | {theirs:.1} % | {own:.1} % | {lower} |\n", pairs.len());
    }
    table
}
