//! Context switches: a ring of processes, each with a working set of its own.

use anyhow::bail;

use super::memory::cache_ladder;
use super::occupancy::{self, CLASS, OCCUPANCY, Occupancy};
use super::pair;
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::placement::{Distance, awake};
use crate::row::{curve, latency_us, note, value};
use model::vocabulary::sched as ids;
use model::{Better, Case, Params, Placement};
use sys::clock::{self, Clock};
use sys::token::{receive, send};

mod ring;

use ring::Ring;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::CONTEXT_SWITCH,
    title: "Context switch",
    about: "Time of one hop of a token around a ring of processes. Each process first adds up its own block. \
            `switch` leaves out pipe and block.",
    reading: "Lower is better: 1–3 µs on one CPU without a block, a third to two thirds of it system calls. lmbench \
              subtracts pipe and data, so its figures are smaller. `refill` is near 0 while all blocks fit a cache, \
              10–30 ns a KiB from the next level, 50–150 from memory. Two CPUs take 2–10 × as long, guests 50 µs if \
              the CPU was idle. Mitigations, cgroup depth and the number of runnable tasks add to it.",
    method: "Each hop is a write that wakes, the switch, a read, and the block. The block has kb KiB in 4 KiB pages \
             and is read in vectors of 16 bytes. Two parts are measured on the first process's CPU while the others \
             sleep. `pipe` is one process sending itself the token, `data` the block in a warm cache. On one CPU \
             `overhead` is their share of a hop. Below 10 % `switch` is the hop less its parts; above, that would be \
             mostly error. `refill` is what a hop takes longer than one without block plus the warm block, for each \
             KiB. With two processes wake-ups are measured with a pair in the same seats (see ipc.pipe-pingpong), on \
             two CPUs also with both awake. The order, every sum and the number of switches are checked.",
    source: file!(),
    metrics: &[
        latency_us(ids::metric::LATENCY, "hop, with pipe and data"),
        latency_us(ids::metric::PIPE, "pipe alone, without a switch").aside(),
        latency_us(ids::metric::DATA, "block alone, in a warm cache").aside(),
        note(ids::metric::OVERHEAD, "share of pipe and data in a hop", ""),
        value(ids::metric::SWITCH, "hop less pipe and data", "us", Better::Lower),
        value(ids::metric::REFILL, "cache refill for each KiB", "ns", Better::Lower),
        note(ids::metric::SWITCHES, "switches of the first process in each lap", ""),
        OCCUPANCY,
        pair::WAKEUP_P50,
        pair::WAKEUP_P99,
        pair::WAKEUP_JITTER,
        pair::WAKING,
        pair::WAITING,
        pair::SWITCHING,
        pair::VOLUNTARY,
        pair::INVOLUNTARY,
        pair::MIGRATIONS,
        pair::AFFINE,
    ],
    params: &[
        Param::int(ids::param::PROCESSES, "processes in the ring", 2..=1024),
        Param::int(ids::param::KB, "block of each process, KiB", 0..=1 << 24),
        CLASS,
    ],
    view: &curve(ids::param::KB),
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const ROLES: [&str; 2] = ["member", "next"];

/// A sample of 2 ms holds a thousand hops on one CPU; wake-ups of other CPUs take longer, and the
/// scheduler moves free processes every few ms.
const LONG_ENOUGH_NS: f64 = 2e6;
const STRETCH_APART: f64 = 5.0;

/// A difference is a result only while what is taken away is less than this share of it.
const RESOLVABLE: f64 = 0.1;

/// Below, a few ns of error of a hop would be a large error of each KiB.
const MIN_REFILL_KB: u64 = 16;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mut pairs = Vec::new();
    let mut candidates = Vec::new();
    for (distance, pair) in scope.placements.pairs(ROLES) {
        match pair {
            Ok(pair) => pairs.push(pair),
            Err(why) if scope.depth > Depth::Quick && distance != Distance::OtherCpu => {
                candidates.push(Candidate::unmet(bench.id, distance.name(), why));
            }
            Err(_) => {}
        }
    }
    let counts: &[usize] = match scope.depth {
        Depth::Quick => &[2, 8],
        Depth::Standard => &[2, 4, 8, 16, 32, 64],
        Depth::Full => &[2, 4, 8, 16, 24, 32, 48, 64, 96, 128],
    };
    let few: &[usize] = if scope.depth == Depth::Full { counts } else { &[2, 8] };
    let ring =
        |seats: &Placement, count: usize, priority: u32| candidate(bench, scope, seats, count, priority);
    let mut rings = Vec::new();
    if let Some(same) = pairs.iter().find(|pair| pair.name == Distance::SameCpu.name()) {
        rings.extend(counts.iter().map(|count| ring(same, *count, if *count <= 8 { 80 } else { 60 })));
    }
    if scope.depth > Depth::Quick {
        let all = Placement { name: "spread".into(), ..scope.placements.all(ROLES[0]) };
        let spread = Some(all).filter(|all| all.seats.len() > 2);
        let apart = pairs.iter().filter(|pair| pair.name != Distance::SameCpu.name());
        rings.extend(apart.clone().map(|pair| ring(&awake(pair), 2, 62)));
        let free = scope.placements.free(&ROLES).ok();
        for seats in apart.chain(&spread).chain(&free) {
            rings.extend(few.iter().map(|count| ring(seats, *count, if *count == 2 { 78 } else { 50 })));
        }
    }
    rings.extend(candidates);
    if rings.is_empty() {
        return vec![Candidate::unmet(bench.id, "same-cpu", "no usable CPU found".to_string())];
    }
    rings
}

/// A ring of `count` processes that sit round and round on a placement's seats.
fn candidate(bench: &Benchmark, scope: &Scope, seats: &Placement, count: usize, priority: u32) -> Candidate {
    let round = seats.seats.iter().cycle().take(count).cloned();
    let placement = Placement { seats: round.collect(), ..seats.clone() };
    let sizes = sizes(scope, &placement, count as u64);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    // A fork and its end; writing a block's pages for the first time.
    let windows = (scope.windows.count + scope.windows.warm_up + 5) as f64;
    let wake_ups_s = if count == 2 { settling_s(&placement) + windows * pair::WAKEUPS_NS / 1e9 } else { 0.0 };
    let setup_s = count as f64 * (0.6e-3 + largest as f64 * 0.3e-6) + settling_s(&placement) + wake_ups_s;
    let stretch = stretch(scope.windows.no_longer_than(LONG_ENOUGH_NS), &placement);
    let seconds = sizes.iter().map(|kb| {
        // A sample is at least one lap; the block alone takes a sample too.
        let lap_s = count as f64 * (3e-6 + *kb as f64 * 60e-9);
        windows * ((stretch * scope.windows.window_ns / 1e9).max(lap_s) + LONG_ENOUGH_NS / 1e9)
    });
    let mut candidate = Candidate::new(bench.id, placement, priority, scope.seconds(0, 0.0, setup_s));
    occupancy::tell(&mut candidate.case, scope.placements);
    candidate.seconds += seconds.sum::<f64>();
    candidate.case.inputs.insert(ids::param::KB.into(), super::memory::sizes_input(&sizes));
    candidate.memory(count as u64 * (largest << 10)).param(ids::param::PROCESSES, count as u64)
}

/// KiB of each process, to beyond its L2 where the ring's blocks fit the plan's memory.
fn sizes(scope: &Scope, placement: &Placement, count: u64) -> Vec<u64> {
    /// All blocks of a ring together: a lap through more takes longer than its samples should.
    const MAX_IN_TIME_KB: u64 = 128 << 10;
    // Where a hop goes to another CPU it is the wake-up that counts.
    let one_cpu = placement.cpus().len() == 1;
    let mut sizes = match scope.depth {
        Depth::Quick => vec![0, 16, 64],
        Depth::Standard if !one_cpu => vec![0, 16, 64],
        Depth::Standard => vec![0, 4, 16, 64, 256, 1024],
        Depth::Full => vec![0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    };
    let l2 = cache_ladder(scope.machine, placement)[1] >> 10;
    let beyond = l2.saturating_mul(2).min(1 << 20).next_power_of_two();
    if sizes.contains(&1024) && beyond > 1024 {
        sizes.push(beyond);
    }
    let in_time = if scope.depth == Depth::Full { u64::MAX } else { MAX_IN_TIME_KB };
    let most = (scope.memory_bytes >> 10).min(in_time) / count;
    sizes.retain(|kb| *kb <= most);
    sizes
}

/// Length of a ring's samples in units of the usual one.
fn stretch(usual: f64, placement: &Placement) -> f64 {
    if placement.cpus().len() > 1 { usual * STRETCH_APART } else { usual }
}

fn sizes_of(case: &Case) -> Vec<u64> {
    let list = case.inputs.get(&*ids::param::KB).map_or("", String::as_str);
    list.split(',').filter_map(|size| size.parse().ok()).collect()
}

fn points(case: &Case) -> Vec<Params> {
    sizes_of(case).into_iter().map(|kb| point(ids::param::KB, kb)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let (sizes, seats) = (sizes_of(case), &case.placement.seats);
    if seats.len() < 2 {
        bail!("a ring needs two CPUs, not {}", seats.len());
    }
    let most_bytes = sizes.iter().copied().max().unwrap_or(0) << 10;
    let mut seen = Occupancy::of(case);
    let mut ring = Ring::start(seats, most_bytes)?;
    settle(case, sampler.clock(), &mut ring)?;
    let (mut pipe_ns, mut bare_hop_ns) = (0.0, 0.0);
    for kb in sizes {
        let (hop_ns, least_ns) = hops(case, sampler, &mut ring, seen.as_mut(), kb)?;
        let mut data_ns = 0.0;
        if kb == 0 {
            (pipe_ns, bare_hop_ns) = (pipe_alone(sampler)?, hop_ns);
        } else {
            data_ns = block_alone(sampler, &mut ring, kb)?;
        }
        // Both parts are those of one CPU; a hop to another one has nothing to do with them.
        if !on_one_cpu(case) {
            continue;
        }
        sampler.value(point(ids::param::KB, kb), ids::metric::OVERHEAD, (pipe_ns + data_ns) / hop_ns, 0.0)?;
        // By the fastest sample: a disturbed hop is long, and would resolve what no quiet one can.
        if pipe_ns + data_ns < RESOLVABLE * least_ns {
            sampler.value(
                point(ids::param::KB, kb),
                ids::metric::SWITCH,
                (hop_ns - pipe_ns - data_ns) / 1e3,
                0.0,
            )?;
        }
        if kb >= MIN_REFILL_KB {
            let refill = (hop_ns - data_ns - bare_hop_ns) / kb as f64;
            sampler.value(point(ids::param::KB, kb), ids::metric::REFILL, refill, 0.0)?;
        }
    }
    let switches = ring.stop()?;
    check_answer(!on_one_cpu(case) || switches >= 1.0, || {
        format!("on one CPU the processes switched {switches:.3} times in each hop, not once")
    })?;
    match case.placement.seats.len() {
        2 => pair::wake_ups(case, sampler, point(ids::param::KB, 0u64)),
        _ => Ok(()),
    }
}

/// Plays until what begins with the first hops is over; see [`pair::SETTLE_NS`].
fn settle(case: &Case, clock: Clock, ring: &mut Ring) -> anyhow::Result<()> {
    let end = clock.now() + 1e9 * settling_s(&case.placement);
    while clock.now() < end {
        ring.play(4, 0)?;
    }
    // Observations until now belong to no sample.
    if let Some(mut seen) = Occupancy::of(case) {
        ring.looks_into(&mut seen);
    }
    Ok(())
}

fn settling_s(placement: &Placement) -> f64 {
    if placement.cpus().len() > 1 { pair::SETTLE_NS / 1e9 } else { 0.0 }
}

/// Every process on the same single CPU.
fn on_one_cpu(case: &Case) -> bool {
    case.placement.cpus().len() == 1
}

/// The token's way round: ns a hop, the median of all samples and that of the fastest.
fn hops(
    case: &Case,
    sampler: &mut Sampler,
    ring: &mut Ring,
    mut seen: Option<&mut Occupancy>,
    kb: u64,
) -> anyhow::Result<(f64, f64)> {
    let clock = sampler.clock();
    let stretch = stretch(sampler.windows().no_longer_than(LONG_ENOUGH_NS), &case.placement);
    let hops = case.placement.seats.len() as f64;
    let (mut laps_in_all, mut switches, mut least_ns) = (0, 0, f64::INFINITY);
    let notes = seen.as_deref().map_or_else(Vec::new, |seen| seen.notes(&point(ids::param::KB, kb)));
    let at = Point::new(ids::metric::LATENCY, hops).at(point(ids::param::KB, kb)).stretch(stretch);
    let hop_ns = sampler.time_noting(at, &notes, |laps| {
        let before = clock::own_usage()?.switches();
        let begin = clock.now();
        ring.play(laps, kb << 10)?;
        let ns = clock.now() - begin;
        switches += clock::own_usage()?.switches() - before;
        laps_in_all += laps;
        least_ns = least_ns.min(ns / (laps as f64 * hops));
        let shares = seen.as_deref_mut().map_or_else(Vec::new, |seen| {
            ring.looks_into(seen);
            seen.take()
        });
        Ok((ns, shares))
    })?;
    let switches = switches as f64 / laps_in_all.max(1) as f64;
    check_answer(!on_one_cpu(case) || switches >= 1.0, || {
        format!("on one CPU the first process switched only {switches:.3} times in each lap")
    })?;
    sampler.value(point(ids::param::KB, kb), ids::metric::SWITCHES, switches, 0.0)?;
    Ok((hop_ns, least_ns))
}

/// What the pipe costs by itself: this process writes the token and reads it back, ns.
fn pipe_alone(sampler: &mut Sampler) -> anyhow::Result<f64> {
    use std::os::fd::AsFd;
    let clock = sampler.clock();
    let (from, to) = rustix::pipe::pipe()?;
    let mut token = 0;
    let at = Point::new(ids::metric::PIPE, 1.0).at(point(ids::param::KB, 0u64));
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS / 2.0);
    sampler.time_by(at.stretch(stretch), |times| {
        let begin = clock.now();
        for _ in 0..times {
            send(to.as_fd(), token)?;
            let back = receive(from.as_fd())?;
            check_answer(back == token, || format!("token {token} came back as {back}"))?;
            token += 1;
        }
        Ok(clock.now() - begin)
    })
}

/// Time of the block by itself, in a cache that no other task fills, ns.
fn block_alone(sampler: &mut Sampler, ring: &mut Ring, kb: u64) -> anyhow::Result<f64> {
    let clock = sampler.clock();
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS / 2.0);
    sampler.time_by(
        Point::new(ids::metric::DATA, 1.0).at(point(ids::param::KB, kb)).stretch(stretch),
        |times| {
            let begin = clock.now();
            ring.touch(times, kb << 10)?;
            Ok(clock.now() - begin)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placements;
    use machine::Machine;

    fn planned(cpus: u32, depth: Depth, memory_bytes: u64) -> Vec<Candidate> {
        let mut machine = Machine::default();
        machine.cpus.online = (0..cpus).collect();
        let placements = Placements::of(&machine);
        let windows = depth.windows();
        cases(
            &BENCHMARKS[0],
            &Scope { machine: &machine, placements: &placements, depth, memory_bytes, windows, all: false },
        )
    }

    fn keys(candidates: &[Candidate]) -> Vec<String> {
        let met = candidates.iter().filter(|candidate| candidate.unmet.is_none());
        met.map(|candidate| candidate.case.key()).collect()
    }

    #[test]
    fn rings_sit_round_and_round_and_fit_the_memory() {
        let quick = planned(4, Depth::Quick, 1 << 30);
        assert_eq!(
            keys(&quick),
            ["sched.context-switch@same-cpu?processes=2", "sched.context-switch@same-cpu?processes=8"]
        );
        assert!(quick.iter().all(|ring| ring.case.placement.cpus().len() == 1));
        assert!(quick.iter().map(|ring| ring.seconds).sum::<f64>() < 0.5, "quick stays cheap");
        let standard = planned(4, Depth::Standard, 64 << 20);
        let spread =
            standard.iter().find(|ring| ring.case.placement.name == "spread" && ring.memory_bytes > 0);
        let on = |ring: &Candidate| -> Vec<u32> {
            ring.case.placement.seats.iter().filter_map(|seat| seat.cpus.first()).collect()
        };
        assert_eq!(spread.map(on), Some(vec![0, 1]));
        let eight = standard.iter().rfind(|ring| ring.case.placement.name == "spread");
        assert_eq!(eight.map(on), Some(vec![0, 1, 2, 3, 0, 1, 2, 3]));
        for ring in &standard {
            assert!(ring.memory_bytes <= 64 << 20, "{}", ring.case.key());
        }
        let two = planned(2, Depth::Standard, 1 << 30);
        for placement in ["same-cpu", "other-cpu", "free"] {
            let key = format!("sched.context-switch@{placement}?processes=2");
            assert!(keys(&two).contains(&key), "{key}");
        }
        assert!(planned(0, Depth::Quick, 1 << 30)[0].unmet.is_some());
    }
}
