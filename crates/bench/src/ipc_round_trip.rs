//! Round trips of a token between two processes, by everything that Linux offers to carry it or to
//! say that it is there.

use super::leaves::key_of;
use super::occupancy::{CLASS, OCCUPANCY};
use super::pair::{self, PairPlan, channel, lines};
use super::{Benchmark, Candidate, Depth, Metric, Sampler, Scope};
use crate::placement::Distance;
use crate::row::latency_us;
use model::Case;
use model::vocabulary::ipc as ids;

/// What all rows share: a full round trip in µs on every placement of a pair, and the wake-up
/// figures of pairs that sleep.
const ROUND_TRIP: Benchmark = Benchmark {
    source: file!(),
    metrics: &pair::metrics(ROUND_TRIP_US),
    params: &[CLASS],
    cases: one_cpu_first,
    ..Benchmark::PINNED
};

const ROUND_TRIP_US: Metric = latency_us(ids::metric::LATENCY, "round trip");

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::PIPE,
        title: "Pipe round trip",
        about: "Time of a round trip between two processes over two pipes. It consists of two messages, two wake-ups \
                and two switches.",
        reading: "Lower is better: 2–5 µs on one CPU for four system calls and two switches. Two CPUs take 4 µs if \
                  the idle CPU polls, 10–20 if an interrupt wakes it. A guest whose hypervisor must restart idle \
                  CPUs takes 50–100.",
        method: "A token of 8 bytes is passed, as in lmbench's lat_pipe. The partner adds one to each token, and the \
                 count is checked. It is the same exchange as ipc.pipe-pingpong, as a latency and with samples of \
                 the usual length.",
        cases: near_too,
        run: |case, sampler| play(case, sampler, channel::pipes),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::FIFO,
        title: "FIFO round trip",
        about: "Time of a round trip between two processes over two named pipes (FIFOs), with two wake-ups and two \
                switches.",
        reading: "Lower is better, within a few per cent of ipc.pipe. An open FIFO is a pipe, but each write also \
                  updates its inode's times. A larger difference comes from the filesystem or is noise.",
        method: "As ipc.pipe. The FIFOs are made in TMPDIR and unlinked at once (lmbench's lat_fifo). Two messages, \
                 two wake-ups and two switches; the count is checked.",
        run: |case, sampler| play(case, sampler, channel::fifos),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::UNIX_STREAM,
        title: "Unix stream socket round trip",
        about: "Time of a round trip between two processes over connected Unix stream sockets. It consists of two \
                messages, two wake-ups and two switches.",
        reading: "Lower is better: 3–7 µs on one CPU, 30–60 % above a pipe. Each message is allocated as a socket \
                  buffer and charged to its sender. On two CPUs the wake-up hides the difference.",
        method: "A token of 8 bytes is passed by read and write (lmbench's lat_unix). The partner adds one to each \
                 token, and the count is checked.",
        run: |case, sampler| play(case, sampler, channel::unix_streams),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::UNIX_DATAGRAM,
        title: "Unix datagram socket round trip",
        about: "Time of a round trip between two processes over connected Unix datagram sockets, which keep the \
                borders of messages.",
        reading: "Lower is better: within a few per cent of ipc.unix-stream. No byte stream must be kept together, \
                  but the queue is checked for overrun.",
        method: "As ipc.unix-stream. Two messages, two wake-ups and two switches; the count is checked. lmbench has \
                 no such row.",
        run: |case, sampler| play(case, sampler, channel::unix_datagrams),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::TCP,
        title: "TCP round trip over loopback",
        about: "Time of a round trip between two processes over a TCP connection on 127.0.0.1. No network card takes \
                part.",
        reading: "Lower is better: 8–20 µs on one CPU. Firewall rules (netfilter, conntrack), security modules and \
                  packet filters on loopback add to every message and are the usual reason for more. For a real \
                  network use `assay serve` on another host.",
        method: "A token of 8 bytes is passed with TCP_NODELAY (lmbench's lat_tcp). Two messages, two wake-ups, two \
                 switches, and twice the network stack with its soft interrupt. The count is checked.",
        cases: near_too,
        run: |case, sampler| play(case, sampler, channel::tcp),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::UDP,
        title: "UDP round trip over loopback",
        about: "Time of a round trip between two processes over connected UDP sockets on 127.0.0.1. No network card \
                takes part.",
        reading: "Lower is better: 6–15 µs on one CPU, 10–30 % below TCP. Firewall rules and conntrack on loopback \
                  add to both.",
        method: "As ipc.tcp, with 8 bytes in a datagram (lmbench's lat_udp). Two messages, two wake-ups and two \
                 switches; the count is checked. A lost datagram ends the pass.",
        run: |case, sampler| play(case, sampler, channel::udp),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::EVENTFD,
        title: "Eventfd round trip",
        about: "Time of a round trip between two processes that wake each other through two event counters \
                (eventfd).",
        reading: "Lower is better: a little below a pipe, with the same wake-up and switch but no buffer. It is the \
                  cost of waking and switching through a file descriptor.",
        method: "The counters carry the token as their count. Two writes, two reads, two wake-ups and two switches; \
                 the count is checked. lmbench has no such row.",
        run: |case, sampler| play(case, sampler, channel::events),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::FUTEX,
        title: "Futex round trip",
        about: "Time of a round trip between two processes that wake each other through futexes. Contended mutexes \
                and condition variables come down to this.",
        reading: "Lower is better: 1.5–4 µs on one CPU, the minimum cost of sleeping and waking. On two CPUs the \
                  wake-up decides, as for the pipe.",
        method: "The token is in shared memory. A process checks it once and then sleeps in FUTEX_WAIT, without \
                 spinning; a check that finds it saves one call. Two wakes, two waits and two switches; the count is \
                 checked. lmbench has no such row.",
        cases: near_too,
        run: |case, sampler| play(case, sampler, lines::futexes),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::SYSV_SEMAPHORE,
        title: "System V semaphore round trip",
        about: "Time of a round trip between two processes that signal each other through a set of two System V \
                semaphores.",
        reading: "Lower is better: 2–5 µs on one CPU. Some databases wait this way. It is well above ipc.futex, \
                  because each operation looks up the set and takes its lock.",
        method: "The token is in shared memory; one semop gives and one takes. Four calls, two wake-ups and two \
                 switches; the count is checked. lmbench's lat_sem reports half of its loop, so compare it with half \
                 of this figure. The set is made in a private IPC namespace, which ends with the process. If that is \
                 refused, its key is first written to a journal for clean-up.",
        run: |case, sampler| play(case, sampler, || lines::system_v(&key_of(case))),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::POSIX_SEMAPHORE,
        title: "POSIX semaphore round trip",
        about: "Time of a round trip between two processes that signal each other through two POSIX semaphores in \
                shared memory.",
        reading: "Lower is better: a little above ipc.futex. A semaphore is a futex with a count in front, and only \
                  its slow path is taken here.",
        method: "The semaphores are sem_t, with the C library's code. Two posts, two waits and two switches; the \
                 count is checked. lmbench has no such row.",
        run: |case, sampler| play(case, sampler, lines::posix),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::FCNTL_LOCK,
        title: "Record lock round trip",
        about: "Time of a round trip between two processes through POSIX record locks (fcntl F_SETLKW) on a file in \
                memory.",
        reading: "Lower is better: 3–8 µs on one CPU. All record locks of the system share few kernel locks, so \
                  their other users slow it down. Network filesystems would take a hundred times as long.",
        method: "The process with the turn holds two of three bytes and releases the one that the other awaits. With \
                 two bytes it could retake its own lock before the other wakes up. Four calls, two wake-ups and two \
                 switches; the count is checked. lmbench's lat_fcntl uses locks of two files and lets a process \
                 retake its own. On one CPU it switches only 0.4 times, so do not compare the two.",
        run: |case, sampler| play(case, sampler, lines::records),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::SHARED_MEMORY,
        title: "Shared memory round trip, spinning",
        about: "Time of a round trip between two processes that spin on shared memory, without system call, sleep or \
                switch.",
        reading: "Lower is better: 100–300 ns between cores of one cache, 300–700 between packages, about 50 between \
                  SMT siblings. What the other rows take above this is waking and switching. A free pair on one CPU \
                  waits for the end of a time slice, which takes milliseconds.",
        method: "Each process reads its line until the token is there. Two lines change hands, each with the token \
                 and its number; the count is checked. lmbench has no such row. memory.core-to-core measures the \
                 bare line, one way.",
        metrics: &[
            ROUND_TRIP_US,
            pair::VOLUNTARY,
            pair::INVOLUNTARY,
            OCCUPANCY,
            pair::MIGRATIONS,
            pair::AFFINE,
        ],
        cases: apart_only,
        run: |case, sampler| pair::visit(case, sampler, told(case, sampler, 0.0), lines::spinners),
        ..ROUND_TRIP
    },
];

/// Every placement of a pair; the nearest two CPUs are for the quick profile as well.
fn near_too(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    pair::candidates(bench, scope, 1, pair::WINDOW_NS)
}

/// As [`near_too`], but the quick profile has one CPU only.
fn one_cpu_first(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let quick = scope.depth == Depth::Quick;
    let first = |candidate: &Candidate| !quick || candidate.case.placement.name == Distance::SameCpu.name();
    near_too(bench, scope).into_iter().filter(first).collect()
}

/// As [`near_too`], for pairs that must not share a CPU.
fn apart_only(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let apart = |candidate: Candidate| match pair::on_one_cpu(&candidate.case.placement) {
        true => {
            let why = "two spinning tasks need two CPUs";
            Candidate::unmet(bench.id, Distance::SameCpu.name(), why.to_string())
        }
        false => candidate,
    };
    near_too(bench, scope).into_iter().map(apart).collect()
}

fn play<E: pair::End>(
    case: &Case,
    sampler: &mut Sampler,
    make: impl FnOnce() -> anyhow::Result<[E; 2]>,
) -> anyhow::Result<()> {
    pair::visit(case, sampler, told(case, sampler, pair::WAKEUPS_NS), make)
}

fn told(case: &Case, sampler: &Sampler, wakeup_ns: f64) -> PairPlan {
    let stretch = pair::stretch(sampler.windows(), &case.placement, pair::WINDOW_NS);
    PairPlan { metric: ids::metric::LATENCY, stretch, wakeup_ns }
}
