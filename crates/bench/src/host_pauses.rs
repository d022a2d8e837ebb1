//! Pauses of every CPU at once: spinning clocks that note when they were kept from running.

use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, View, check_answer, point};
use crate::row::{fact, quantile_us, value};
use model::vocabulary::MetricId;
use model::vocabulary::host as ids;
use model::{Better, Case, Covariates, CpuSet, Form, Metric, Packed, Params};
use std::path::Path;
use std::rc::Rc;
use sys::counters::{CpuTime, CpuTimes, ticks_per_second};
use sys::crew::{Body, Team};

mod watcher;

use watcher::{Board, Counts, CpuPauses, Watcher};

const fn share(name: MetricId, title: &'static str) -> Metric {
    Metric::new(name, title, "%", Better::Lower, Form::Value)
}

const fn gap(name: MetricId, title: &'static str, q: f64) -> Metric {
    quantile_us(name, title, q).aside()
}

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PAUSES,
    title: "CPU pauses",
    about: "How long each CPU stops running Assay's process, and whether other tasks or the host took the time. A \
            process on every CPU reads the clock continuously.",
    reading: "`withheld` near 0 is good: the host did not take CPU time. Above 0.5 % in a guest, the host ran other \
              work on this core. Bare metal shows gaps of 1–10 µs at each tick; rare gaps of 100–400 µs on all CPUs \
              are firmware interrupts (SMI). CPUs that never run at once share one. CPUs that stop together are a \
              guest paused by a quota, migration or snapshot. `by_tasks` is other work on this host.",
    method: "Each process notes gaps above 3 µs between two clock readings. At gaps of 20 µs and more it reads its \
             run-queue delay (/proc/self/schedstat), else its involuntary switches. A gap in which it waited for its \
             CPU is another task of this system. `withheld` is the share of time in gaps of 100 µs and more in which \
             it did not wait. `by_tasks` is the share in which it waited, `paused` all gaps. Gaps of 20 µs and more \
             are kept with their time (`pause`). Steal and interrupt time come from /proc/stat. At the end each \
             process times its core clock (`clock`) as cpu.clock does.",
    source: file!(),
    metrics: &[
        share(ids::metric::WITHHELD, "withheld by the host"),
        share(ids::metric::BY_TASKS, "taken by other tasks").aside(),
        share(ids::metric::PAUSED, "in all pauses").aside(),
        value(ids::metric::LONGEST, "longest pause by the host", "us", Better::Lower),
        value(ids::metric::RATE, "pauses by the host", "1/s", Better::Lower),
        gap(ids::metric::GAP_P50, "pause, median", 0.5),
        gap(ids::metric::GAP_P99, "pause, 99th percentile", 0.99),
        gap(ids::metric::GAP_P999, "pause, 99.9th percentile", 0.999),
        gap(ids::metric::GAP_MAX, "pause, longest", 1.0),
        value(ids::metric::CLOCK, "core clock with all CPUs busy", "GHz", Better::Higher),
        share(ids::metric::STOLEN, "steal, as the kernel reports").aside(),
        share(ids::metric::INTERRUPTS, "in interrupts, as the kernel reports").aside(),
        fact(ids::metric::WATCHED, "time watched", "s"),
        Metric::new(ids::metric::PAUSE, "length of each pause", "us", Better::Lower, Form::Value).detail(),
    ],
    params: &[Param::cpu(ids::param::CPU, "CPU that was watched")],
    view: &View::Table,
    from: Depth::Full,
    hidden: true,
    budget_s: Some(180.0),
    cases,
    points,
    run,
}];

/// From here on no tick and no usual interrupt takes as long, ns.
const LONG_NS: f64 = 100e3;
/// A pause is a task's where the process waited for at least this part of it.
const WAITED: f64 = 0.5;

/// A pass lasts 500 of the profile's samples, within these bounds, ns.
const WINDOWS: f64 = 500.0;
const MIN_NS: f64 = 50e6;
const MAX_NS: f64 = 3e9;

fn watch_ns(window_ns: f64) -> f64 {
    (WINDOWS * window_ns).clamp(MIN_NS, MAX_NS)
}

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placement = scope.placements.all("watcher");
    let cpus = placement.seats.len();
    if cpus == 0 {
        return vec![Candidate::unmet(bench.id, "all", "no usable CPU found".to_string())];
    }
    let seconds = 0.1 + cpus as f64 * 1e-3 + watch_ns(scope.windows.window_ns) / 1e9;
    vec![Candidate::new(bench.id, placement, 100, seconds).memory(Board::bytes(cpus))]
}

fn points(case: &Case) -> Vec<Params> {
    cpus(case).map(at).collect()
}

/// The CPU of each seat.
fn cpus(case: &Case) -> impl Iterator<Item = u32> + '_ {
    case.placement.seats.iter().filter_map(|seat| seat.cpus.first())
}

fn at(cpu: u32) -> Params {
    point(ids::param::CPU, u64::from(cpu))
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
    let board = Rc::new(Board::new(seats.len())?);
    let clock = sampler.clock();
    let build = |seat: usize| -> anyhow::Result<Body> {
        let mut watcher = Watcher::new(Rc::clone(&board), seat, clock);
        Ok(Box::new(move |ns| watcher.watch(ns as f64)))
    };
    let mut team = Team::start(&seats, clock, build)?;
    let mut times = CpuTimes::open(Path::new("/"));
    let before = times.of_each_cpu();
    let laps = team.round(watch_ns(sampler.windows().window_ns) as u64)?;
    let after = times.of_each_cpu();
    // Of all CPUs the same moment, from which their pauses are counted.
    let origin = laps.iter().map(|lap| lap.start_ns).fold(f64::INFINITY, f64::min);
    for (seat, (cpu, lap)) in cpus(case).zip(&laps).enumerate() {
        let seen = board.seen(seat);
        let Counts { gaps, paused_ns, lost, .. } = seen.counts;
        let ns = lap.end_ns - origin;
        check_answer(lap.answer == gaps && paused_ns <= ns, || {
            let (all, us) = (lap.answer, paused_ns / 1e3);
            format!("CPU {cpu}: {gaps} of {all} gaps were kept, {us:.0} µs in {ns:.0} ns")
        })?;
        if lost > 0 {
            let remark = format!("CPU {cpu}: its last {lost} pauses were counted but not kept");
            sampler.facts().notes.push(remark);
        }
        emit(sampler, cpu, origin, ns, seen)?;
        emit_counts(sampler, cpu, (&before, &after), ns)?;
    }
    Ok(())
}

fn emit(sampler: &mut Sampler, cpu: u32, origin: f64, ns: f64, seen: CpuPauses) -> anyhow::Result<()> {
    let (mut withheld, mut by_tasks, mut longest, mut count) = (0.0, 0.0, 0.0_f64, 0.0);
    for pause in &seen.pauses {
        if pause.waited_ns >= WAITED * pause.length_ns {
            by_tasks += pause.length_ns;
        } else if pause.length_ns >= LONG_NS {
            withheld += pause.length_ns;
            longest = longest.max(pause.length_ns);
            count += 1.0;
        }
    }
    for (metric, value) in [
        (ids::metric::WITHHELD, 100.0 * withheld / ns),
        (ids::metric::BY_TASKS, 100.0 * by_tasks / ns),
        (ids::metric::PAUSED, 100.0 * seen.counts.paused_ns / ns),
        (ids::metric::LONGEST, longest / 1e3),
        (ids::metric::RATE, count / (ns / 1e9)),
        (ids::metric::WATCHED, ns / 1e9),
        (ids::metric::CLOCK, seen.counts.clock_ghz),
    ] {
        sampler.value(at(cpu), metric, value, ns)?;
    }
    if seen.histogram.total() > 0 {
        let quantiles =
            [ids::metric::GAP_P50, ids::metric::GAP_P99, ids::metric::GAP_P999, ids::metric::GAP_MAX];
        sampler.histogram_at(at(cpu), &quantiles, seen.histogram, ns)?;
    }
    if seen.pauses.is_empty() {
        return Ok(());
    }
    let mut from = origin;
    let mut spans = Vec::with_capacity(seen.pauses.len());
    for pause in &seen.pauses {
        let end = pause.begin_ns + pause.length_ns;
        spans.push(end - from);
        from = end;
    }
    let waited = seen.pauses.iter().map(|pause| pause.waited_ns).collect();
    let lengths = seen.pauses.iter().map(|pause| pause.length_ns / 1e3).collect();
    let beside = Covariates { wait_ns: Some(Packed::pack(waited)), ..Covariates::default() };
    sampler.windows_beside(at(cpu), ids::metric::PAUSE, (lengths, spans), beside)
}

/// What the kernel counted for this CPU in the same time, where it counts.
fn emit_counts(
    sampler: &mut Sampler,
    cpu: u32,
    (before, after): (&[CpuTime], &[CpuTime]),
    ns: f64,
) -> anyhow::Result<()> {
    let own = |times: &[CpuTime]| times.iter().find(|time| time.cpu == cpu).copied();
    let (Some(before), Some(after)) = (own(before), own(after)) else { return Ok(()) };
    // A sandbox's counters stand still, and count nothing.
    if after.all() <= before.all() {
        return Ok(());
    }
    let percent =
        |now: u64, then: u64| 100.0 * now.saturating_sub(then) as f64 / ticks_per_second() / (ns / 1e9);
    // Where a host hides stolen time, none was ever counted.
    if after.steal > 0 {
        sampler.value(at(cpu), ids::metric::STOLEN, percent(after.steal, before.steal), ns)?;
    }
    sampler.value(at(cpu), ids::metric::INTERRUPTS, percent(after.interrupts, before.interrupts), ns)
}

#[cfg(test)]
mod tests;
