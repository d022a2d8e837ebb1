//! Ten whole runs of the baseline and of each peer, interleaved: how much does each figure vary
//! from run to run?
//!
//! A run of Assay's is `assay run --quick` over the groups of the baseline, as a user would start
//! it; a run of a peer is each of its tests once, pinned. The coefficient of variation of each
//! figure over the ten runs stands in the table, and the median of each tool's in the last lines.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::system::{bogo, full_command, microseconds, on_path};
use super::{Bench, number_after, number_before, said_by};

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
    print(&figures);
    print_twins(&figures);
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

fn print(figures: &Figures) {
    println!("\n| tool | figure | runs | median | CV over whole runs |\n|---|---|---:|---:|---:|");
    let mut by_tool: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut too_few = 0;
    for ((tool, name), values) in figures {
        let Some(cv) = coefficient_of_variation(values) else {
            too_few += 1;
            continue;
        };
        let median = stats::order::median(values).unwrap_or(f64::NAN);
        println!("| {tool} | {name} | {} | {median:.4} | {:.1} % |", values.len(), cv * 100.0);
        by_tool.entry(tool).or_default().push(cv);
        let group = name.split('.').next().unwrap_or_default();
        if tool == "assay" && !ALONE.contains(&group) {
            by_tool.entry("assay, the groups that peers have").or_default().push(cv);
        }
    }
    println!("\nLeft out: {too_few} figures that fewer than {} of {RUNS} runs had.", RUNS / 2);
    println!(
        "\n| tool | figures | median CV | figures under 2 % | figures over 10 % |\n|---|---:|---:|---:|---:|"
    );
    for (tool, cvs) in by_tool {
        let median = stats::order::median(&cvs).unwrap_or(f64::NAN);
        let count = |wanted: &dyn Fn(f64) -> bool| cvs.iter().filter(|cv| wanted(**cv)).count();
        println!(
            "| {tool} | {} | {:.1} % | {} | {} |",
            cvs.len(),
            median * 100.0,
            count(&|cv| cv < 0.02),
            count(&|cv| cv > 0.1)
        );
    }
}

/// The figures that both a peer and Assay have.
fn print_twins(figures: &Figures) {
    println!(
        "\n| peer | figures that both have | median CV, peer | median CV, Assay | ours lower in |\n|---|---:|---:|---:|---:|"
    );
    let mut by_tool: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for Test { tool, name, series, .. } in TESTS {
        let cv = |tool: &str, name: &str| {
            coefficient_of_variation(figures.get(&(tool.to_string(), name.to_string()))?)
        };
        if let (Some(theirs), Some(own)) = (cv(tool, name), cv("assay", series)) {
            by_tool.entry(tool).or_default().push([theirs, own]);
        }
    }
    for (tool, pairs) in by_tool {
        let median = |of: usize| {
            let cvs: Vec<f64> = pairs.iter().map(|pair| pair[of]).collect();
            stats::order::median(&cvs).unwrap_or(f64::NAN) * 100.0
        };
        let lower = pairs.iter().filter(|[theirs, own]| own < theirs).count();
        println!("| {tool} | {} | {:.1} % | {:.1} % | {lower} |", pairs.len(), median(0), median(1));
    }
}
