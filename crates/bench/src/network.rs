//! The network: bandwidth and latency between two ends, over TCP and UDP, and by experiment what
//! limits it.
//!
//! Every pass is a client. Its other end is `assay serve` on another host (`--to`), or a process
//! that the pass forks on its second seat: the same code, reached over loopback. Both ends count
//! their CPU time, waits and drops, and the client receives the other end's counts after a
//! transfer.

use super::{Benchmark, Depth, Param, View, point};
use crate::row::per_second;
use model::vocabulary::network as ids;
use model::{Case, Metric, Params};

mod bottleneck;
mod client;
mod conduct;
mod door;
mod link;
pub mod messages;
mod metrics;
mod offer;
mod requests;
pub mod seats;
mod sequence;
pub mod serve;
mod session;
mod streams;
mod transfers;
mod trips;
mod way;
mod window_schedule;
pub mod wire;
mod workers;

pub use client::remote_description;
pub use conduct::Place;
use metrics::*;
use offer::cases;
pub use offer::{Overrides, network_cases};

pub const GROUP: &str = "network";

const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";
const MESSAGES: &str = "messages";

const RATE: Metric = per_second(ids::metric::RATE, "completed");

const DIRECTION: Param =
    Param::choice(ids::param::DIRECTION, "direction, as this end sees it", &["send", "receive", "both"]);
const CONGESTION: Param = Param::word(ids::param::CONGESTION, "congestion control, if not the system's");
const PACED: Param = Param::int(ids::param::RATE, "pacing rate of each direction, Mbit/s", 1..=10_000_000);
const STREAMS: Param = Param::int(
    ids::param::STREAMS,
    "connections at once (TCP: one task for each CPU; UDP: one for each stream)",
    1..=128,
);
const BYTES: Param = Param::bytes(ids::param::BYTES, "message size, bytes", 16..=1 << 20);
const DEPTH: Param = Param::int(ids::param::DEPTH, "requests in flight", 1..=1024);
const PROTOCOL: Param = Param::choice(ids::param::PROTOCOL, "what carries the messages", &["tcp", "udp"]);
const ARM: Param = Param::choice(ids::param::ARM, "what the experiment changes", &ARMS);

/// The input that holds the other end's address, `HOST:PORT`; without it the pass forks its own
/// other end.
pub const TO: &str = "to";

/// Connections of the arm with more of them, for each of the plain one.
const MORE_STREAMS: u32 = 4;

/// The arms of the experiment, in the order in which a round begins.
pub const ARMS: [&str; 11] = [
    "plain",
    "slowed-sender",
    "slowed-receiver",
    "more-streams",
    "large-window",
    "small-window",
    "small-messages",
    "half-rate",
    "nine-tenths",
    "udp-over",
    "start",
];

const ROW: Benchmark =
    Benchmark { source: file!(), view: &View::Wide, from: Depth::Standard, cases, ..Benchmark::PINNED };

const OF_TCP: &[Metric] = beside_transfer![BANDWIDTH];
const OF_UDP: &[Metric] = beside_transfer![BANDWIDTH, SENT, LOSS, REORDERED, DUPLICATED];
const OF_BOTTLENECK: &[Metric] =
    beside_transfer![BANDWIDTH, SENT, LOSS, REORDERED, DUPLICATED, LATER, GROWTH];
const OF_TRIPS: &[Metric] =
    &[P50, P90, P99, P999, P9999, MAX, JITTER, LOSS, LOCAL_BUSY, REMOTE_BUSY, LOCAL_WAIT, REMOTE_WAIT];
const OF_REQUESTS: &[Metric] =
    &[RATE, ASIDE_P50, P90, P99, P999, P9999, MAX, LOCAL_BUSY, REMOTE_BUSY, LOCAL_WAIT, REMOTE_WAIT];
const OF_LOADED: &[Metric] = beside_transfer![P50, P90, P99, P999, P9999, MAX, JITTER, IDLE_P50, LOAD];

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::TCP,
        title: "TCP bandwidth",
        about: "Bandwidth of TCP connections, one way or both ways. Without --to the other end is a process on this \
                host, over loopback; with --to it is `assay serve` on another host.",
        reading: "More is better. A link reaches 94–97 % of its speed with an MTU of 1500. Below, network.bottleneck \
                  names the limit. local_busy or remote_busy near 1 means that a CPU is the limit, not the link. One \
                  stream uses one CPU at each end, so more streams may be faster. Loopback reaches 20–80 Gbit/s on \
                  two CPUs, half on one; no network card is tested.",
        method: "As iperf3 does, messages go from and into buffers that stay in the cache. Each connection has its \
                 own CPU at each end, nearest to the card first, while there are cores. Connections that share a CPU \
                 share a task. Over loopback all connections use one CPU at each end. Time and bytes are the \
                 receiver's, in samples after the start. Every byte sent must arrive, and the pattern is compared at \
                 one place of each read. CPU time, softirq share, waits for a CPU and drops of both ends are \
                 recorded. The sender's TCP state is recorded too.",
        metrics: OF_TCP,
        params: &[DIRECTION, CONGESTION, PACED, STREAMS, BYTES],
        from: Depth::Quick,
        points: transfer_points,
        run: transfers::run,
        ..ROW
    },
    Benchmark {
        id: ids::UDP,
        title: "UDP bandwidth and loss",
        about: "Bandwidth of UDP messages that arrive, and the share that is lost, reordered or duplicated. Without \
                --to it is loopback only.",
        reading: "UDP has no flow control: a sender faster than receiver or link loses the rest. Loss is a fault of \
                  the link only if it stays with --rate well below its speed. A message fills one packet (1472 bytes \
                  of 1500 over IPv4); a longer one is lost with any of its fragments. Reordering comes from several \
                  queues or paths. remote_drops and local_drops count losses at the receiver's socket.",
        method: "One task for each stream sends numbered messages as fast as it can, or at --rate. It uses sendmmsg \
                 with segmentation offload if the kernel has it. One task for each stream receives with recvmmsg. \
                 The numbers show which messages were lost, late or doubled. The bandwidth is what arrived; what was \
                 sent is recorded too. The server sends only to an address that the session has proved. IPv6 \
                 messages have 1452 bytes.",
        metrics: OF_UDP,
        params: &[DIRECTION, PACED, STREAMS, BYTES],
        points: transfer_points,
        run: transfers::run,
        ..ROW
    },
    Benchmark {
        id: ids::ROUND_TRIP,
        title: "Round trip",
        about: "Time for a message of 64 bytes to reach the other end and come back, one at a time. Without --to it \
                is loopback only.",
        reading: "Lower is better. Loopback takes 8–30 µs on two CPUs, mostly waking two idle CPUs, less on one. A \
                  switch in one room takes 20–60 µs; 100 km of fibre add 1 ms. A p99 far above the median means \
                  moderated interrupts, deep idle states or other load at the receiver. Jitter is the mean \
                  difference of successive round trips.",
        method: "Ping-pong as in sockperf and netperf: blocking calls, TCP_NODELAY, a pinned task at each end. Each \
                 round trip is timed, and all of a pass go into one histogram. A percentile is given if at least ten \
                 round trips lie beyond it. Each answer must be the message that was sent. A UDP message without \
                 answer for half a second is lost.",
        metrics: OF_TRIPS,
        params: &[PROTOCOL, CONGESTION],
        view: &View::Wide,
        from: Depth::Quick,
        run: trips::round_trip,
        ..ROW
    },
    Benchmark {
        id: ids::CONNECT,
        title: "TCP connections",
        about: "Rate of opening TCP connections, one after another, each until its first byte arrives. Without --to \
                it is loopback only.",
        reading: "More is better: 20–60 thousand a second over loopback. Over a network each takes two round trips, \
                  so one task reaches at most 1 / (2 × round trip). A rate far below that is due to connection \
                  tracking, firewall rules or security modules.",
        method: "Each connection is opened, accepted, gets one byte from the other end and is closed by reset. None \
                 stays in TIME_WAIT, so no port is used up. A connection counts, and is timed, when its byte has \
                 arrived.",
        metrics: OF_REQUESTS,
        run: trips::connect,
        ..ROW
    },
    Benchmark {
        id: ids::REQUEST,
        title: "Requests in flight",
        about: "Rate and latency of 64-byte requests over one TCP connection, with a number of requests (depth) in \
                flight. Each gets a 64-byte response.",
        reading: "More is better. Depth 1 is the round trip. The rate grows with depth until a CPU is full \
                  (local_busy, remote_busy); then only latency grows, as rate × latency = depth. If depth 64 is less \
                  than ten times as fast as depth 1, each message costs an interrupt and a wake-up.",
        method: "A response names its request. Both ends read all that has arrived with one call and answer it with \
                 one write, as pipelining servers do. Latency runs from a request's write to its response's read. \
                 Rate and latency come from the same time.",
        metrics: OF_REQUESTS,
        params: &[CONGESTION, DEPTH],
        points: |_| DEPTHS.iter().map(|depth| point(ids::param::DEPTH, *depth)).collect(),
        run: requests::request,
        ..ROW
    },
    Benchmark {
        id: ids::LOADED,
        title: "Round trip under load",
        about: "Round trip of 64-byte TCP messages, idle and while another connection between the same ends sends at \
                full speed. It shows queues (bufferbloat).",
        reading: "Lower is better. With good queue management (fq_codel, BBR) latency_p50 stays below twice \
                  latency_idle_p50 plus 1 ms. Tens of milliseconds are bufferbloat: a queue that fills before \
                  anything is dropped. With one core at an end, or over loopback with two, both share a CPU. The \
                  figure is then mostly the load's time slice.",
        method: "Both round trips have one histogram for each pass. The messages have their own CPU at each end if \
                 there is a core left. Without --to everything goes over loopback.",
        metrics: OF_LOADED,
        params: &[DIRECTION, CONGESTION, STREAMS],
        run: trips::loaded,
        ..ROW
    },
    Benchmark {
        id: ids::BOTTLENECK,
        title: "Bottleneck experiment",
        about: "What limits TCP bandwidth. One pass changes one thing at a time (arm) and measures how the bandwidth \
                follows.",
        reading: "If burning CPU costs bandwidth at one end only, that end's CPU is the limit. If larger buffers \
                  carry more, the window is. If no change matters, the link or a shaper is the limit. Then 90 % of \
                  the rate arrives without loss, and UDP above the rate is lost. A shaper lets the start run faster \
                  (`later`). The finding network-bottleneck names the limit, or the two causes that remain.",
        method: "Fresh connections send in several rounds. The arms are plain, 30 % of CPU burnt at sender or \
                 receiver, and four streams. Socket buffers are four times as large or a quarter; messages are \
                 small. Pacing is half and 90 % of the plain rate; UDP sends at 1.2 times it. `later` compares the \
                 first 50 ms of a connection with the rest. Both ends' counters are recorded for each arm.",
        metrics: OF_BOTTLENECK,
        params: &[DIRECTION, CONGESTION, ARM],
        points: |_| ARMS.iter().map(|arm| point(ids::param::ARM, *arm)).collect(),
        run: bottleneck::run,
        ..ROW
    },
];

const DEPTHS: [u64; 4] = [1, 4, 16, 64];

/// Streams and sizes of one pass: `streams:bytes`, as the input `points` names them.
fn transfer_points(case: &Case) -> Vec<Params> {
    let named = case.inputs.get("points").map_or("1:131072", String::as_str);
    let pair = |text: &str| {
        let (streams, bytes) = text.split_once(':')?;
        let mut at = point(ids::param::STREAMS, streams.parse::<u64>().ok()?);
        at.extend(point(ids::param::BYTES, bytes.parse::<u64>().ok()?));
        Some(at)
    };
    named.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests;
