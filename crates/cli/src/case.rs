//! `assay case` (started by a run): one pass. Reads an order on standard input and writes sample
//! lines on standard output, so a developer can also start it under `perf` or a debugger.

use super::output::eprint_line;
use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::{Context, ensure};

use bench::{self, Benchmark, Leaves, Neighbours, Order, Sampler, leaves};
use knobs::task;
use sys::{affinity, counters, process};

/// An order is a case: a few KiB, on a host of thousands of CPUs a few hundred.
const MAX_ORDER_BYTES: u64 = 16 << 20;

pub fn run() -> anyhow::Result<ExitCode> {
    // The process ends with its parent, so that nothing is left running.
    if let Some(parent) = rustix::process::getppid() {
        process::die_with_parent(parent).context("cannot tie this process to its parent")?;
    }
    counters::be_first_to_die();
    process::set_process_name(c"assay");
    let mut text = String::new();
    std::io::stdin().take(MAX_ORDER_BYTES).read_to_string(&mut text).context("cannot read the order")?;
    ensure!(!text.trim().is_empty(), "no order on standard input; `assay run --dry-run --json` lists orders");
    let order: Order = serde_json::from_str(&text).context("cannot parse the order on standard input")?;
    // The session may have ended before the kernel tied this process to it.
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid().unsigned_abs());
    ensure!(order.parent.is_none() || order.parent == parent, "the parent process of this pass has ended");
    let benchmark = bench::find(&order.case.bench)
        .with_context(|| format!("no benchmark is called {:?}", order.case.bench))?;

    let mut out = std::io::stdout().lock();
    if let Some(seed) = order.pretend {
        return bench::pretend::write(benchmark, &order, seed, &mut out).map(|()| ExitCode::SUCCESS);
    }
    if leaves(&order.case) == Some(Leaves::Programs) {
        drop(out);
        return keep(benchmark, &order);
    }
    match Neighbours::start(benchmark, &order)? {
        None => visit(benchmark, &order, &mut out)?,
        Some(neighbours) => neighbours.attend(|| match visit(benchmark, &order, &mut out) {
            Ok(()) => 0,
            Err(_) => 1,
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A visit that runs programs of others: in a child, and this process sees to it that they end.
fn keep(benchmark: &Benchmark, order: &Order) -> anyhow::Result<ExitCode> {
    ensure!(
        counters::descendants(std::process::id()).is_empty(),
        "this process has children from before it became assay, and they would be killed with it: start it \
          without them"
    );
    // It is small, and must outlive them.
    counters::die_as_the_parent_does();
    let visit = || {
        counters::be_first_to_die();
        match visit(benchmark, order, &mut std::io::stdout().lock()) {
            Ok(()) => 0,
            Err(error) => {
                eprint_line(&format!("assay: {error:#}"));
                1
            }
        }
    };
    process::run_supervised(visit)
        .map(process::exit_like)
        .context("cannot supervise the process of this pass")
}

/// Runs the benchmark and sends its lines.
fn visit(benchmark: &Benchmark, order: &Order, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut sampler = Sampler::new(order, out);
    let placed = seat(order).and_then(|()| task::apply(&order.case.knobs));
    let result = placed.and_then(|()| (benchmark.run)(&order.case, &mut sampler));
    sampler.facts().migrations = counters::own_migrations();
    sampler.finish(result.err().map(bench::reason))
}

/// The first seat is this process's own, unless it is another host's.
fn seat(order: &Order) -> anyhow::Result<()> {
    let first = order.case.placement.seats.first();
    let Some(seat) = first.filter(|seat| seat.host.is_none()) else { return Ok(()) };
    affinity::pin(&seat.cpus).with_context(|| format!("cannot pin to CPUs {}", seat.cpus))
}
