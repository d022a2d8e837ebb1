//! Round trips of a token between two processes, by everything that Linux offers to carry it or to
//! say that it is there.

use super::leaves::key_of;
use super::occupancy::{CLASS, OCCUPANCY};
use super::pair::{self, Play, channel, lines};
use super::{Benchmark, Candidate, Depth, Metric, Sampler, Scope};
use crate::placement::Distance;
use crate::row::latency_us;
use model::Case;
use model::vocabulary::ipc as ids;

/// What all rows share: a full round trip in us on every placement of a pair, and what sleeping
/// pairs tell besides.
const ROUND_TRIP: Benchmark = Benchmark {
    source: file!(),
    metrics: &[
        ROUND_TRIP_US,
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
    cases: one_cpu_first,
    ..Benchmark::PINNED
};

const ROUND_TRIP_US: Metric = latency_us(ids::metric::LATENCY, "full round trip");

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::PIPE,
        title: "Pipe round trip",
        about: "Two processes pass a token of 8 bytes to and fro over two pipes. The figure is a full round trip: two messages, \
                two wake-ups and two switches, as lmbench's lat_pipe counts. The partner adds one to each token, and the count \
                is checked. The game is that of ipc.pipe-pingpong, told as a latency and in windows of the usual length.",
        reading: "2 to 5 µs on one CPU: four system calls and two switches. On two CPUs 4 µs where the idle CPU polls, 10 to 20 \
                  where it is woken by an interrupt, 50 to 100 in a guest whose idle CPUs the hypervisor has to start again. \
                  The base of every ring of processes (lmbench's lat_ctx takes this off).",
        cases: near_too,
        run: |case, sampler| play(case, sampler, channel::pipes),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::FIFO,
        title: "FIFO round trip",
        about: "As ipc.pipe, over two named pipes (FIFOs) made in TMPDIR and unlinked at once. A full round trip, as lmbench's \
                lat_fifo counts: two messages, two wake-ups, two switches; the partner adds one to each token and the count is \
                checked.",
        reading: "The same as ipc.pipe within some per cent: once open, a FIFO is a pipe, but the kernel updates the times of its \
                  inode at every write. A larger difference is the file system's, or noise.",
        run: |case, sampler| play(case, sampler, channel::fifos),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::UNIX_STREAM,
        title: "Unix stream socket round trip",
        about: "Two processes pass a token of 8 bytes to and fro over a pair of connected Unix stream sockets by read and write. \
                A full round trip, as lmbench's lat_unix counts: two messages, two wake-ups, two switches; the partner adds one \
                to each token and the count is checked.",
        reading: "3 to 7 µs on one CPU, some 30 to 60 % above a pipe: each message is allocated as a socket buffer and charged to \
                  its sender. On two CPUs the wake-up hides the difference.",
        run: |case, sampler| play(case, sampler, channel::unix_streams),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::UNIX_DATAGRAM,
        title: "Unix datagram socket round trip",
        about: "As ipc.unix-stream, by a pair of Unix datagram sockets: a message is a message, with its borders. A full round \
                trip: two messages, two wake-ups, two switches; the partner adds one to each token and the count is checked. \
                lmbench has no such row.",
        reading: "Near ipc.unix-stream, a few per cent to either side: no byte stream to keep together, but a queue to guard \
                  against being overrun.",
        run: |case, sampler| play(case, sampler, channel::unix_datagrams),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::TCP,
        title: "TCP round trip over loopback",
        about: "Two processes pass a token of 8 bytes to and fro over a TCP connection on 127.0.0.1 with TCP_NODELAY. A full round \
                trip, as lmbench's lat_tcp counts: two messages, two wake-ups, two switches, and twice the whole network stack \
                with its soft interrupt, all in the kernel: no network card takes part. The partner adds one to each token and \
                the count is checked.",
        reading: "8 to 20 µs on one CPU; firewall rules (netfilter, conntrack), security modules and packet filters on loopback add \
                  to every message and are the usual reason for more. What a real network adds is for two hosts to show.",
        cases: near_too,
        run: |case, sampler| play(case, sampler, channel::tcp),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::UDP,
        title: "UDP round trip over loopback",
        about: "As ipc.tcp by connected UDP sockets on 127.0.0.1, 8 bytes a datagram. A full round trip, as lmbench's lat_udp \
                counts: two messages, two wake-ups, two switches, twice the stack without TCP's bookkeeping. The partner adds one \
                to each token and the count is checked; a datagram that is lost ends the visit.",
        reading: "6 to 15 µs on one CPU, 10 to 30 % below TCP. Firewall rules and conntrack on loopback add to both.",
        run: |case, sampler| play(case, sampler, channel::udp),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::EVENTFD,
        title: "Eventfd round trip",
        about: "Two processes wake each other by two event counters (eventfd), which carry the token as their count. A full round \
                trip: two writes, two reads, two wake-ups, two switches; the partner adds one to each token and the count is \
                checked. lmbench has no such row.",
        reading: "A little below a pipe: no buffer to manage, the same wake-up and switch. What is left of it is the price of \
                  waking and switching by a file descriptor.",
        run: |case, sampler| play(case, sampler, channel::events),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::FUTEX,
        title: "Futex round trip",
        about: "Two processes pass a token in shared memory and wake each other by FUTEX_WAKE; who waits looks once and sleeps by \
                FUTEX_WAIT, without spinning. A full round trip: two wakes, two waits, two switches; the partner adds one to each \
                token and the count is checked. It is what contended mutexes and condition variables come down to. lmbench has \
                no such row.",
        reading: "1.5 to 4 µs on one CPU: the least that sleeping and waking cost. On two CPUs the wake-up decides, as for the \
                  pipe; a look that finds the token before the sleep saves one system call now and then.",
        cases: near_too,
        run: |case, sampler| play(case, sampler, lines::futexes),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::SYSV_SEMAPHORE,
        title: "System V semaphore round trip",
        about: "Two processes pass a token in shared memory and tell each other by a set of two System V semaphores, one semop to \
                give and one to take. A full round trip: four calls, two wake-ups, two switches; the partner adds one to each token \
                and the count is checked. lmbench's lat_sem takes and gives in one call and reports half its loop, that is one \
                hand-over: compare it with half of this figure. The set lives in an IPC namespace of its own where the kernel \
                allows it, so that it goes with the process; elsewhere under a key that a journal holds before.",
        reading: "2 to 5 µs on one CPU. Databases wait for each other so. Well above ipc.futex: each operation looks the set up and \
                  takes its lock.",
        run: |case, sampler| play(case, sampler, || lines::system_v(&key_of(case))),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::POSIX_SEMAPHORE,
        title: "POSIX semaphore round trip",
        about: "Two processes pass a token in shared memory and tell each other by two POSIX semaphores (sem_t in shared memory, the \
                C library's own code). A full round trip: two posts, two waits, two switches; the partner adds one to each token \
                and the count is checked. lmbench has no such row.",
        reading: "That of ipc.futex and a little more: a semaphore is a futex with a count in front, and only its slow path is \
                  taken here.",
        run: |case, sampler| play(case, sampler, lines::posix),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::FCNTL_LOCK,
        title: "Record lock round trip",
        about: "Two processes hand each other the turn by POSIX record locks (fcntl F_SETLKW) on single bytes of a file in memory: who \
                has the turn holds two of three bytes and gives back the one that the other waits for. With two bytes it could \
                take its own lock again before the other has woken up. A full round trip: four calls, two wake-ups, two switches; \
                the partner adds one to each token and the count is checked. lmbench's lat_fcntl makes as many calls for what it counts \
                as one, but on the locks of two files, where nobody is held back from taking his own again: on one CPU it switches \
                0.4 times (perf stat -e context-switches) where this switches twice, and is not to be compared.",
        reading: "3 to 8 µs on one CPU; all locks of the system stand under few kernel locks, so other users of record locks show \
                  here. Over network file systems it would be a hundred times as much.",
        run: |case, sampler| play(case, sampler, lines::records),
        ..ROUND_TRIP
    },
    Benchmark {
        id: ids::SHARED_MEMORY,
        title: "Shared memory round trip, spinning",
        about: "Two processes pass a token in shared memory, each looking at its line until the token is there: no system call, no \
                sleep, no switch. A full round trip: two lines change hands, each with the token and its number. The partner adds \
                one to each token and the count is checked. lmbench has no such row; memory.core-to-core has the bare line, one \
                way.",
        reading: "100 to 300 ns between cores of one cache, 300 to 700 between packages, some 50 between SMT siblings: what waking \
                  and switching cost is all the rest of the other rows. A free pair that the scheduler puts on one CPU waits for \
                  the end of a time slice, milliseconds.",
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
            let why = "two spinners on one CPU would wait for the end of each other's time slice";
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

fn told(case: &Case, sampler: &Sampler, wakeup_ns: f64) -> Play {
    let stretch = pair::stretch(sampler.windows(), &case.placement, pair::WINDOW_NS);
    Play { metric: ids::metric::LATENCY, stretch, wakeup_ns }
}
