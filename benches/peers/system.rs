//! System calls and switches, beside perf bench.

use super::{Bench, Ours, Peer, Row, Rows, Wanted, number_before};

pub fn rows(bench: &Bench) -> Rows {
    let row = |name: &str, id: &str, placement: &str, metric, scale, peer: &[&str], value, unit, wanted| {
        let case = bench.case(id, |case| case.placement.name == placement).ok_or(name.to_string())?;
        let cpu = bench.first_cpu().to_string();
        let arguments = peer.iter().map(|argument| argument.replace("{}", &cpu)).collect();
        let ours = Ours { case: bench.on_first_cpu(case), metric };
        Ok(Row { name: name.into(), unit, ours, scale, peer: Peer::Program(arguments, value), wanted })
    };
    vec![
        row(
            "system call (perf bench syscall basic)",
            "syscall.getpid",
            "one-cpu",
            "latency",
            1.0,
            &["taskset", "-c", "{}", "perf", "bench", "syscall", "basic", "-l", "2000000"],
            |text| Some(number_before(text, "usecs/op")? * 1e3),
            "ns",
            // A system call has no faster or slower way: the same is what is wanted.
            Wanted::Within(0.05),
        ),
        row(
            "pipe ping-pong on one CPU, round trips (perf bench sched pipe)",
            "ipc.pipe-pingpong",
            "same-cpu",
            "round_trips",
            1.0,
            &["taskset", "-c", "{}", "perf", "bench", "sched", "pipe", "-l", "50000"],
            |text| number_before(text, "ops/sec"),
            "1/s",
            Wanted::AtLeast(1.0),
        ),
    ]
}
