//! Two processes that play ping-pong over two pipes, wherever they may sit.

use super::pair::{self, Play, ROLES, channel};
use super::{Benchmark, Candidate, Depth, Sampler, Scope, View, single_point};
use crate::model::{Better, Case, Form, Metric, Placement};
use crate::placement::Distance;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "ipc.pipe-pingpong",
    title: "Pipe ping-pong",
    about: "Two processes pass one token of 8 bytes to and fro over two pipes (the shape of UnixBench's pipe-based \
            context switching): each write wakes the partner, each read sleeps until the token is back. The partner \
            adds one to the token each time and the count is checked. Measured with both on one CPU, pinned to two \
            CPUs at each distance that this machine has, and free to run where the scheduler puts them; for the free \
            pair the share of round trips with both on one CPU is sampled.",
    reading: "A placement's figure is the kernel's cost of a wake-up and a switch there. The free figure is a mix of \
              the pinned ones and says more of the scheduler's choice than of the CPU: never compare machines by it. \
              The high score may be the worse system: on one CPU the woken task waits for its waker to go to sleep, \
              which the wake-up latency beside it shows for tasks that do more than pass a token.",
    source: file!(),
    metrics: &[
        Metric::new(
            "round_trips",
            "round trips a second",
            "1/s",
            Better::Higher,
            Form::WorkPerTime { scale: 1e9 },
        ),
        pair::WAKEUP_P50,
        pair::WAKEUP_P99,
        pair::SAME_CPU_SHARE,
    ],
    params: &[],
    view: &View::Table,
    from: Depth::Quick,
    hidden: false,
    cases,
    points: single_point,
    run,
}];

/// A round trip takes 2 to 100 µs: windows of many.
const WINDOW_NS: f64 = 4e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let candidate = |placement: Placement| {
        let seconds = scope.seconds(2, pair::stretch(scope.windows, &placement, WINDOW_NS), 0.0);
        Candidate::new(bench.id, placement, 85, seconds)
    };
    let mut candidates = vec![match scope.floor.free(&ROLES) {
        Ok(free) => candidate(free),
        Err(why) => return vec![Candidate::unmet(bench.id, "free", why)],
    }];
    let pairs = scope.floor.pairs(ROLES);
    // `other-cpu` stands in where the kernel tells nothing; missing it is no lack.
    let wanted = pairs.into_iter().filter(|(distance, pair)| *distance != Distance::OtherCpu || pair.is_ok());
    candidates.extend(wanted.map(|(distance, pair)| match pair {
        Ok(placement) => candidate(placement),
        Err(why) => Candidate::unmet(bench.id, distance.name(), why),
    }));
    candidates
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let stretch = pair::stretch(sampler.windows(), &case.placement, WINDOW_NS);
    let play = Play { metric: "round_trips", stretch, wakeup_ns: 4e6 };
    pair::visit(case, sampler, play, channel::pipes)
}
