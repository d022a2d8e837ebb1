//! Bytes a second from one process to another, by message size, and what of it is the copying of
//! the data itself.

use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;

use anyhow::Context;
use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use super::occupancy::{CLASS, CpuNote, OCCUPANCY};
use super::pair::{self, Watch, again, channel};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{gb_per_s, log_curve, note, value};
use model::vocabulary::BenchId;
use model::vocabulary::ipc as ids;
use model::{Better, Case, Params, Placement};

/// What all rows share.
const BANDWIDTH: Benchmark = Benchmark {
    source: file!(),
    metrics: &[
        gb_per_s(ids::metric::BANDWIDTH, "bandwidth"),
        gb_per_s(ids::metric::COPY, "copying in and out").aside(),
        note(ids::metric::COPY_SHARE, "share of time spent copying", ""),
        value(ids::metric::NET, "bandwidth without copying", "GB/s", Better::Higher),
        OCCUPANCY,
    ],
    params: &[Param::bytes(ids::param::MESSAGE, "message size, bytes", 64..=1 << 20), CLASS],
    view: &log_curve(ids::param::MESSAGE),
    cases,
    points,
    ..Benchmark::PINNED
};

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::PIPE_BANDWIDTH,
        title: "Pipe bandwidth",
        about: "Bandwidth of messages from one process to another through a pipe, by message size. `net` leaves out \
                the kernel's copying of the data.",
        reading: "More is better. 64 KiB messages reach 2–6 GB/s on one CPU. Two CPUs give more or less, because \
                  data changes caches and a full or empty pipe costs a wake-up. Small messages are limited by system \
                  calls (64 bytes: 0.1–0.3 GB/s). `net` holds calls, page handling and switches.",
        method: "One process writes without end, another reads each message whole, as lmbench's bw_pipe does with 64 \
                 KB. Time is taken at the reader, with the pipe as full at the end as at the start. Every byte is \
                 counted. Each message has its number at its head and at a moving offset; checking both takes 10 ns. \
                 The kernel copies every byte in and out again. `copy` times memcpy of such messages into a 64 KiB \
                 buffer and out of it in the same process. On one CPU `copy_share` is its share of the time, and \
                 `net` the bandwidth without it. It is an estimate above a share of 10 % and left out above 90 %. On \
                 two CPUs both copies overlap, so neither is given.",
        run: |case, sampler| run(case, sampler, pipe),
        ..BANDWIDTH
    },
    Benchmark {
        id: ids::UNIX_BANDWIDTH,
        title: "Unix stream socket bandwidth",
        about: "Bandwidth of messages from one process to another through a pair of Unix stream sockets. `net` \
                leaves out the copying of the data.",
        reading: "More is better: 2–8 GB/s with 64 KiB messages. The buffer is about 200 KB (net.core.wmem_default), \
                  so tasks on one CPU switch rarely. Data beyond the size of L2 goes through the last-level cache. \
                  Small messages are slower than through a pipe, since each is its own socket buffer.",
        method: "As ipc.pipe-bandwidth, with the system's default buffers (lmbench's bw_unix). Every byte is \
                 counted, and each message's number is checked at its head and at a moving offset.",
        run: |case, sampler| run(case, sampler, unix),
        ..BANDWIDTH
    },
    Benchmark {
        id: ids::TCP_BANDWIDTH,
        title: "TCP bandwidth over loopback",
        about: "Bandwidth of messages from one process to another over a TCP connection on 127.0.0.1. No network \
                card takes part.",
        reading: "More is better: 1.5–6 GB/s with 64 KiB messages. Segments of 64 KB go through the stack, and \
                  acknowledgements return the same way. Firewall rules, conntrack and packet filters on loopback \
                  cost time for each segment. Interrupt work on the sender's CPU is part of the figure.",
        method: "As ipc.pipe-bandwidth. Socket buffers of 1 MiB are requested, as lmbench's bw_tcp does; \
                 net.core.rmem_max and wmem_max limit them. Small messages are gathered (no TCP_NODELAY). Every byte \
                 is counted, and each message's number is checked at its head and at a moving offset.",
        run: |case, sampler| run(case, sampler, tcp),
        ..BANDWIDTH
    },
];

/// lmbench's message, and the only one of the quick profile and of free pairs.
const USUAL: u64 = 64 << 10;
const SIZES: [u64; 4] = [64, 4096, USUAL, 1 << 20];

/// A sample must be many times what the buffers hold, and those of TCP hold most, ns.
fn window_ns(bench: Option<BenchId>) -> f64 {
    if bench == Some(ids::TCP_BANDWIDTH) { 8e6 } else { 4e6 }
}

/// Copies repeat within microseconds.
const COPY_NS: f64 = 1e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let swept = |placement: &Placement| scope.depth > Depth::Quick && placement.name != "free";
    let text = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let mut candidates = pair::candidates(bench, scope, 1, window_ns(Some(bench.id)) + COPY_NS);
    for candidate in &mut candidates {
        let sizes: &[u64] = if swept(&candidate.case.placement) { &SIZES } else { &[USUAL] };
        candidate.seconds *= sizes.len() as f64;
        candidate.memory_bytes = 8 << 20;
        candidate.case.inputs.insert("messages".into(), text(sizes));
    }
    candidates
}

fn sizes_of(case: &Case) -> Vec<u64> {
    let text = case.inputs.get("messages").map_or("", String::as_str);
    text.split(',').filter_map(|size| size.parse().ok()).collect()
}

fn points(case: &Case) -> Vec<Params> {
    sizes_of(case).into_iter().map(|bytes| point(ids::param::MESSAGE, bytes)).collect()
}

/// Its reading and its writing end.
type Ends = (OwnedFd, OwnedFd);

fn pipe() -> anyhow::Result<Ends> {
    rustix::pipe::pipe().context("cannot make a pipe")
}

fn unix() -> anyhow::Result<Ends> {
    channel::unix_pair(SocketType::STREAM)
}

fn tcp() -> anyhow::Result<Ends> {
    const BUFFER: usize = 1 << 20;
    channel::tcp_pair(|socket| {
        set_socket_send_buffer_size(socket, BUFFER)?;
        set_socket_recv_buffer_size(socket, BUFFER)
    })
}

fn run(case: &Case, sampler: &mut Sampler, make: fn() -> anyhow::Result<Ends>) -> anyhow::Result<()> {
    let clock = sampler.clock();
    let together = pair::on_one_cpu(&case.placement);
    let stretch = pair::stretch(sampler.windows(), &case.placement, window_ns(case.id()));
    let mut random = fastrand::Rng::with_seed(sampler.seed());
    for bytes in sizes_of(case) {
        let at = |metric| Point::new(metric, bytes as f64).at(point(ids::param::MESSAGE, bytes));
        let mut flow = Flow::start(&case.placement, make()?, bytes, 0..)?;
        flow.spot.watch(case);
        let notes = flow.spot.notes(&point(ids::param::MESSAGE, bytes));
        let gross_ns =
            sampler.time_noting(at(ids::metric::BANDWIDTH).stretch(stretch), &notes, |messages| {
                // What waited in the buffers has gone before the clock is read, and the sender is
                // at it again; a length of chance, or the samples would all begin and end at the
                // same place between two switches.
                flow.receive(lead_in(bytes) + random.u64(..lead_in(bytes)))?;
                flow.spot.take();
                let begin = clock.now();
                flow.receive(messages)?;
                Ok((clock.now() - begin, flow.spot.take()))
            })?;
        let mut copier = Copier::new(bytes);
        let short = sampler.windows().no_longer_than(COPY_NS);
        let copy_ns = sampler.time(at(ids::metric::COPY).stretch(short), |messages| copier.copy(messages))?;
        copier.check()?;
        if together {
            let share = copy_ns / gross_ns;
            sampler.value(point(ids::param::MESSAGE, bytes), ids::metric::COPY_SHARE, share, 0.0)?;
            if share <= RESOLVABLE {
                sampler.value(
                    point(ids::param::MESSAGE, bytes),
                    ids::metric::NET,
                    1.0 / (gross_ns - copy_ns),
                    0.0,
                )?;
            }
        }
        flow.stop()?;
    }
    Ok(())
}

/// Where copying takes more of the time than this, the rest is within the scatter of both.
const RESOLVABLE: f64 = 0.9;

/// As many messages as buffers may hold: half a megabyte, or a thousand that are too small to fill
/// anything.
fn lead_in(bytes: u64) -> u64 {
    (512 << 10) / bytes.max(512) + 1
}

/// The index of the second word of a message that holds its number.
fn mark(number: u64, words: usize) -> usize {
    1 + (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % (words - 1)
}

/// Messages that come without end; this is the receiver's side.
struct Flow {
    reads: OwnedFd,
    sender: Watch,
    message: Vec<u8>,
    next: u64,
    spot: CpuNote,
}

/// Messages after which both sides note their CPU: every 8 KiB at least, and at most once a
/// message.
fn look_every(bytes: u64) -> u64 {
    (8 << 10) / bytes.clamp(64, 8 << 10)
}

impl Flow {
    /// Seats the caller first, who receives. `numbers`: what the messages are numbered by.
    fn start(
        placement: &Placement,
        (reads, writes): Ends,
        bytes: u64,
        numbers: impl Iterator<Item = u64>,
    ) -> anyhow::Result<Flow> {
        let spot = CpuNote::new().context("cannot map shared memory")?;
        let (reads, sender) =
            pair::fork_beside(placement, (reads, writes), |writes| send_all(&writes, bytes, numbers, &spot))?;
        Ok(Flow { reads, sender, message: vec![0; bytes as usize], next: 0, spot })
    }

    /// Reads this many messages whole and checks the numbers of each.
    fn receive(&mut self, messages: u64) -> anyhow::Result<()> {
        let Flow { reads, sender, message, next, spot } = self;
        for _ in 0..messages {
            let mut got = 0;
            while got < message.len() {
                let read = || -> io::Result<usize> { Ok(rustix::io::read(&*reads, &mut message[got..])?) };
                match sender.patiently("hear from", read)? {
                    0 => anyhow::bail!("the partner ended after {next} messages"),
                    bytes => got += bytes,
                }
            }
            let words = message.as_chunks::<8>().0;
            let numbers = [0, mark(*next, words.len())].map(|at| u64::from_ne_bytes(words[at]));
            if numbers != [*next; 2] {
                check_answer(false, || format!("message {next} holds {numbers:?} instead of its number"))?;
            }
            *next += 1;
            if next.is_multiple_of(look_every(message.len() as u64)) {
                spot.look();
            }
        }
        Ok(())
    }

    /// Closes; the sender must then leave content.
    fn stop(self) -> anyhow::Result<()> {
        drop(self.reads);
        self.sender.finish()
    }
}

/// The sender's side: sends until the reader closes.
fn send_all(
    writes: &OwnedFd,
    bytes: u64,
    numbers: impl Iterator<Item = u64>,
    spot: &CpuNote,
) -> anyhow::Result<()> {
    let mut message = vec![0u8; bytes as usize];
    for number in numbers {
        if number.is_multiple_of(look_every(bytes)) {
            spot.note();
        }
        let words = message.as_chunks_mut::<8>().0;
        for at in [0, mark(number, words.len())] {
            words[at] = number.to_ne_bytes();
        }
        let mut sent = 0;
        while sent < message.len() {
            match again(|| Ok(rustix::io::write(writes, &message[sent..])?)) {
                Ok(bytes) => sent += bytes,
                Err(error) if gone(&error) => return Ok(()),
                Err(error) => return Err(error).context("cannot write to the partner"),
            }
        }
    }
    Ok(())
}

fn gone(error: &io::Error) -> bool {
    [Errno::PIPE, Errno::CONNRESET].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// What the kernel does to the data and nothing else: into a buffer of a pipe's size, and out
/// again.
struct Copier {
    from: Vec<u8>,
    buffer: Vec<u8>,
    to: Vec<u8>,
    at: usize,
}

const BUFFER_BYTES: usize = 64 << 10;

impl Copier {
    fn new(bytes: u64) -> Copier {
        let from = (0..bytes).map(|at| (at % 251) as u8).collect();
        Copier { from, buffer: vec![1; BUFFER_BYTES], to: vec![1; bytes as usize], at: 0 }
    }

    fn copy(&mut self, messages: u64) {
        let bytes = self.from.len();
        for _ in 0..messages {
            let mut done = 0;
            while done < bytes {
                let end = done + (bytes - done).min(BUFFER_BYTES);
                if self.at + (end - done) > BUFFER_BYTES {
                    self.at = 0;
                }
                let between = &mut self.buffer[self.at..self.at + (end - done)];
                between.copy_from_slice(black_box(&self.from[done..end]));
                self.to[done..end].copy_from_slice(black_box(between));
                self.at += end - done;
                done = end;
            }
            black_box(&mut self.to);
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        check_answer(self.to == self.from, || "a copy of a message differs from the message".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;
    use crate::pair::tests::free;
    use testkit::alone;

    #[test]
    fn every_message_arrives_whole_in_every_size() {
        alone(|| {
            for make in [pipe, unix, tcp] {
                for bytes in SIZES {
                    let mut flow = Flow::start(&free(), make().expect("ends"), bytes, 0..).expect("a sender");
                    flow.receive(20).and_then(|()| flow.receive(lead_in(bytes))).expect("messages");
                    assert_eq!(flow.next, 20 + lead_in(bytes));
                    flow.stop().expect("the sender leaves when nobody reads");
                }
            }
        });
    }

    #[test]
    fn a_message_that_is_missing_or_stale_is_a_wrong_answer() {
        alone(|| {
            for wrong in [|number: u64| number + u64::from(number > 4), |number: u64| number.min(4)] {
                let numbers = (0..).map(wrong);
                let mut flow = Flow::start(&free(), pipe().expect("ends"), 4096, numbers).expect("a sender");
                flow.receive(5).expect("the first five are right");
                let error = flow.receive(1).expect_err("the sixth is not");
                assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error:#}");
            }
        });
    }

    #[test]
    fn a_sender_that_ends_is_an_error() {
        alone(|| {
            for make in [pipe, unix, tcp] {
                let mut flow = Flow::start(&free(), make().expect("ends"), 512, 0..7).expect("a sender");
                let error = flow.receive(8).expect_err("seven came").to_string();
                assert!(error.contains("ended after 7 messages"), "{error}");
            }
        });
    }

    #[test]
    fn copies_are_copies() {
        for bytes in SIZES {
            let mut copier = Copier::new(bytes);
            assert!(copier.check().is_err());
            copier.copy(3);
            copier.check().expect("equal");
        }
    }
}
