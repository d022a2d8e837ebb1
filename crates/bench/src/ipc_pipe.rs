//! Two processes that play ping-pong over two pipes, wherever they may sit.

use super::occupancy::{self, CLASS, OCCUPANCY};
use super::pair::{self, Play, ROLES, channel};
use super::{Benchmark, Candidate, Depth, Sampler, Scope};
use crate::placement::{Distance, awake};
use crate::row::per_second;
use model::vocabulary::ipc as ids;
use model::{Case, Placement};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PIPE_PINGPONG,
    title: "Pipe ping-pong",
    about: "Two processes pass one token of 8 bytes to and fro over two pipes (the shape of UnixBench's pipe-based \
            context switching): each write wakes the partner, each read sleeps until the token is back. The partner \
            adds one to the token each time and the count is checked. Measured with both on one CPU, pinned to two \
            CPUs at each distance that this machine has, and free to run where the scheduler puts them; for the free \
            pair occupancy says which share of the rounds it spent at which distance, looked at every 8 rounds and counted \
            window by window. On two CPUs it is measured a second time with both kept awake by a spinner of the lowest \
            priority (SCHED_IDLE): what is left out then is waking a CPU from idle. A wake-up's latency (from before the \
            sending until the woken task has the token) stands in three parts: waking, the waker in its call; waiting, \
            runnable and not running by the kernel's count (run delay); switching, the rest: the interrupt to another CPU, \
            its way out of idle, the switch, the way back to the task. Where the waker itself puts the task on the other \
            CPU's queue, as kernels before 6.0 do within one cache, the way out of idle counts as waiting.",
    reading: "A placement's figure is the kernel's cost of a wake-up and a switch there. The free figure is a mix of \
              the pinned ones and says more of the scheduler's choice than of the CPU: never compare machines by it. \
              The high score may be the worse system: on one CPU the woken task waits for its waker to go to sleep, \
              which the wake-up latency beside it shows for tasks that do more than pass a token.",
    source: file!(),
    metrics: &[
        per_second(ids::metric::ROUND_TRIPS, "round trips a second"),
        pair::WAKEUP_P50,
        pair::WAKEUP_P99,
        pair::WAKEUP_JITTER,
        pair::WAKING,
        pair::WAITING,
        pair::SWITCHING,
        pair::VOLUNTARY,
        pair::INVOLUNTARY,
        OCCUPANCY,
        pair::MIGRATIONS,
        pair::AFFINE,
    ],
    params: &[CLASS],
    cases,
    run,
    ..Benchmark::PINNED
}];

/// A round trip takes 2 to 100 µs: windows of many.
const WINDOW_NS: f64 = 4e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let candidate = |placement: Placement| {
        let seconds = scope.seconds(
            2,
            pair::stretch(scope.windows, &placement, WINDOW_NS),
            pair::settling_s(&placement),
        );
        let mut candidate = Candidate::new(bench.id, placement, 85, seconds);
        occupancy::tell(&mut candidate.case, scope.floor);
        candidate
    };
    let mut candidates = vec![match scope.floor.free(&ROLES) {
        Ok(free) => candidate(free),
        Err(why) => return vec![Candidate::unmet(bench.id, "free", why)],
    }];
    let pairs = scope.floor.pairs(ROLES);
    // `other-cpu` stands in where the kernel tells nothing; missing it is no lack.
    let wanted = pairs.into_iter().filter(|(distance, pair)| *distance != Distance::OtherCpu || pair.is_ok());
    for (distance, pair) in wanted {
        match pair {
            Ok(placement) => {
                let apart = distance != Distance::SameCpu && scope.depth > Depth::Quick;
                candidates.extend(apart.then(|| Candidate { priority: 66, ..candidate(awake(&placement)) }));
                candidates.push(candidate(placement));
            }
            Err(why) => candidates.push(Candidate::unmet(bench.id, distance.name(), why)),
        }
    }
    candidates
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let stretch = pair::stretch(sampler.windows(), &case.placement, WINDOW_NS);
    let play = Play { metric: ids::metric::ROUND_TRIPS, stretch, wakeup_ns: 4e6 };
    pair::visit(case, sampler, play, channel::pipes)
}
