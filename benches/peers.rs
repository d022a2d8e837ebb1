//! `make bench`: our figures beside those of other people's tools, on this machine, interleaved.
//!
//! A row runs our benchmark and the peer's turn by turn (ABBA), until the interval of their ratio is within ±3 % or its
//! time ends; beside it stands the peer against itself, which shows what this machine's noise alone makes of two equal
//! things. Peers come from the distribution (Debian: linux-perf); a row whose peer is not installed says so.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use assay::bench::{self, Depth, Order, Scope, Windows};
use assay::kernels;
use assay::machine::{Machine, snapshot};
use assay::measure::child;
use assay::model::{Case, Form, RunClock};
use assay::placement::Floor;
use assay::stats::compare::paired_ratio;
use assay::stats::order::median;
use assay::sys::clock;

/// One comparison: both sides in the same unit, pinned to the same CPU.
struct Row {
    name: &'static str,
    bench: &'static str,
    placement: &'static str,
    /// Program and arguments; `{}` is the CPU.
    peer: &'static [&'static str],
    /// From the peer's output to a value in the unit of ours.
    value: fn(&str) -> Option<f64>,
    /// From our metric's value to the peer's unit.
    ours: fn(f64) -> f64,
}

const ROWS: &[Row] = &[
    Row {
        name: "system call, ns (perf bench syscall basic)",
        bench: "syscall.getpid",
        placement: "one-cpu",
        peer: &["taskset", "-c", "{}", "perf", "bench", "syscall", "basic", "-l", "2000000"],
        value: |text| Some(number_before(text, "usecs/op")? * 1e3),
        ours: |ns| ns,
    },
    Row {
        name: "pipe ping-pong on one CPU, round trips/s (perf bench sched pipe)",
        bench: "ipc.pipe-pingpong",
        placement: "same-cpu",
        peer: &["taskset", "-c", "{}", "perf", "bench", "sched", "pipe", "-l", "50000"],
        value: |text| number_before(text, "ops/sec"),
        ours: |rate| rate,
    },
];

/// Each row's time at most, and the half-width of the ratio's interval at which it ends.
const ROW_LIMIT: Duration = Duration::from_secs(60);
const NARROW: f64 = 0.03;
const PAIRS_MIN: usize = 10;

fn number_before(text: &str, unit: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(unit))?;
    line.split(unit).next()?.split_whitespace().next_back()?.replace(',', "").parse().ok()
}

fn main() {
    // `cargo test --benches` asks for nothing to be measured.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let machine = Machine::from(&snapshot::read(Path::new("/")));
    let floor = Floor::of(&machine);
    let current = machine.clock.current.as_deref();
    let run_clock = clock::calibrate(current.is_some_and(|source| kernels::CLOCK_SOURCES.contains(&source)));
    println!("| what | ours | peer | ours / peer (95 %) | peer / itself (95 %) | pairs |");
    println!("|---|---:|---:|---:|---:|---:|");
    for row in ROWS {
        match compare(row, &machine, &floor, &run_clock) {
            Ok(line) => println!("{line}"),
            Err(why) => println!("| {} | – | – | not compared: {why} | – | – |", row.name),
        }
    }
}

fn compare(row: &Row, machine: &Machine, floor: &Floor, run_clock: &RunClock) -> Result<String, String> {
    let windows = Windows { window_ns: 10e6, count: 5, warm_up: 1, limit_s: 5.0 };
    let scope = Scope { machine, floor, depth: Depth::Quick, memory_bytes: 256 << 20, windows, all: false };
    let bench = bench::find(row.bench).ok_or("no such benchmark")?;
    let mut candidates = (bench.cases)(bench, &scope).into_iter();
    let found = candidates.find(|candidate| candidate.case.placement.name == row.placement);
    let case =
        found.filter(|candidate| candidate.unmet.is_none()).ok_or("not possible on this machine")?.case;
    let cpu = case.placement.cpus().to_string();
    let (mut ours, mut peers, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    loop {
        // ABBA: drift hits both alike.
        match ours.len() % 2 {
            0 => {
                ours.push(own(row, &case, windows, run_clock)?);
                peers.push(peer(row, &cpu)?);
                again.push(peer(row, &cpu)?);
            }
            _ => {
                again.push(peer(row, &cpu)?);
                peers.push(peer(row, &cpu)?);
                ours.push(own(row, &case, windows, run_clock)?);
            }
        }
        if ours.len() < PAIRS_MIN {
            continue;
        }
        let ratio = paired_ratio(&peers, &ours, 0.95).ok_or("no ratio")?;
        let control = paired_ratio(&peers, &again, 0.95).ok_or("no ratio")?;
        let narrow = ratio.interval.is_some_and(|interval| interval.half_width() / ratio.ratio <= NARROW);
        if narrow || begin.elapsed() > ROW_LIMIT {
            let words = |ratio: &assay::stats::compare::Ratio| match ratio.interval {
                Some(interval) => format!("{:.3} ({:.3} to {:.3})", ratio.ratio, interval.low, interval.high),
                None => format!("{:.3}", ratio.ratio),
            };
            return Ok(format!(
                "| {} | {:.4} | {:.4} | {} | {} | {} |",
                row.name,
                median(&ours).unwrap_or(f64::NAN),
                median(&peers).unwrap_or(f64::NAN),
                words(&ratio),
                words(&control),
                ours.len()
            ));
        }
    }
}

/// One visit of ours: the median of its windows, in the peer's unit.
fn own(row: &Row, case: &Case, windows: Windows, run_clock: &RunClock) -> Result<f64, String> {
    let order =
        Order { case: case.clone(), windows, clock: run_clock.clone(), seed: 1, pass: 0, pretend: None };
    let program = Path::new(env!("CARGO_BIN_EXE_assay"));
    let heard =
        child::visit(program, &order, Duration::from_secs(30), &|| false).map_err(|e| format!("{e:#}"))?;
    let bench = bench::find(row.bench).ok_or("no such benchmark")?;
    let metric = bench.metrics.iter().find(|metric| metric.headline).ok_or("no headline metric")?;
    let samples =
        heard.samples.iter().find(|samples| samples.metrics.iter().any(|name| *name == metric.name));
    let form: Form = metric.form;
    let values = samples.map(|samples| samples.values(form).split_off(samples.warm_up));
    let value = values.and_then(|values| median(&values)).ok_or("our benchmark gave no value")?;
    Ok((row.ours)(value))
}

fn peer(row: &Row, cpu: &str) -> Result<f64, String> {
    let arguments: Vec<String> = row.peer.iter().map(|argument| argument.replace("{}", cpu)).collect();
    let output = Command::new(&arguments[0])
        .args(&arguments[1..])
        .output()
        .map_err(|error| format!("{} cannot be started ({error})", arguments[0]))?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (row.value)(&text)
        .ok_or_else(|| format!("{:?} gave no figure: is it installed?", row.peer[3..5].join(" ")))
}
