//! Two processes that play ping-pong over two pipes, wherever they may sit.

use super::occupancy::{self, CLASS};
use super::pair::{self, PairPlan, ROLES, channel};
use super::{Benchmark, Candidate, Depth, Sampler, Scope};
use crate::placement::{Distance, awake};
use crate::row::per_second;
use model::vocabulary::ipc as ids;
use model::{Case, Placement};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PIPE_PINGPONG,
    title: "Pipe ping-pong",
    about: "Rate at which two processes pass a token over two pipes, for each placement. Each write wakes the \
            partner, each read sleeps until the token returns.",
    reading: "A pinned figure is the kernel's cost of a wake-up and a switch at that distance. The free figure is a \
              mix of the pinned ones and shows the scheduler's choice. Never compare hosts by it. A higher score is \
              not a better host. On one CPU the woken task must wait until its waker sleeps, which the wake-up \
              latency shows.",
    method: "The token has 8 bytes, as in UnixBench's pipe-based context switching. The partner adds one each time, \
             and the count is checked. Occupancy is the share of rounds at each distance, read every 8 rounds. On \
             two CPUs a second measurement keeps both awake with a task of lowest priority (SCHED_IDLE). It leaves \
             out waking an idle CPU. Wake-up latency runs from before the send until the woken task has the token. \
             `waking` is the waker's call, `waiting` the kernel's run delay. `switching` is the rest: the interrupt, \
             the way out of idle, the switch, and the return. Kernels before 6.0 queue the task on the other CPU \
             themselves within one cache; leaving idle then counts as waiting.",
    source: file!(),
    metrics: &pair::metrics(per_second(ids::metric::ROUND_TRIPS, "round trips a second")),
    params: &[CLASS],
    cases,
    run,
    ..Benchmark::PINNED
}];

/// A round trip takes 2–100 µs; a sample has many.
const WINDOW_NS: f64 = 4e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let candidate = |placement: Placement| {
        let seconds = scope.seconds(
            2,
            pair::stretch(scope.windows, &placement, WINDOW_NS),
            pair::settling_s(&placement),
        );
        let mut candidate = Candidate::new(bench.id, placement, 85, seconds);
        occupancy::tell(&mut candidate.case, scope.placements);
        candidate
    };
    let mut candidates = vec![match scope.placements.free(&ROLES) {
        Ok(free) => candidate(free),
        Err(why) => return vec![Candidate::unmet(bench.id, "free", why)],
    }];
    let pairs = scope.placements.pairs(ROLES);
    // `other-cpu` stands for unknown distances; its absence is not reported.
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
    let play = PairPlan { metric: ids::metric::ROUND_TRIPS, stretch, wakeup_ns: 4e6 };
    pair::visit(case, sampler, play, channel::pipes)
}
