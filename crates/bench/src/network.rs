//! The network: bandwidth and latency between two ends, over TCP and UDP, and by experiment what
//! limits it.
//!
//! Every visit is a client. Its other end is `assay serve` on another host (`--to`), or a process
//! that the visit forks on its second seat: the same code, reached over loopback. Both ends account
//! for their CPU time, their waits and their drops, and the client gets the other's account when a
//! transfer is over.

use super::{Benchmark, Depth, Param, View, point};
use crate::row::per_second;
use model::vocabulary::network as ids;
use model::{Case, Metric, Params};

mod beat;
mod bottleneck;
mod client;
mod conduct;
mod door;
mod link;
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
pub mod wire;
pub mod words;
mod workers;

pub use client::remote_description;
pub use conduct::Place;
use metrics::*;
use offer::cases;
pub use offer::{Wish, network_cases};

pub const GROUP: &str = "network";

const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";
const MESSAGES: &str = "messages";

const RATE: Metric = per_second(ids::metric::RATE, "completed");

const DIRECTION: Param =
    Param::choice(ids::param::DIRECTION, "who sends, as this end sees it", &["send", "receive", "both"]);
const CONGESTION: Param =
    Param::word(ids::param::CONGESTION, "congestion control that was asked for (else the system's)");
const PACED: Param =
    Param::int(ids::param::RATE, "rate at which each direction was paced, Mbit/s", 1..=10_000_000);
const STREAMS: Param = Param::int(
    ids::param::STREAMS,
    "connections at once; over TCP those of a CPU share a task, over UDP each has its own, at both ends",
    1..=128,
);
const BYTES: Param = Param::int(ids::param::BYTES, "size of a message, bytes", 16..=1 << 20);
const DEPTH: Param = Param::int(ids::param::DEPTH, "requests on their way at once", 1..=1024);
const PROTOCOL: Param = Param::choice(ids::param::PROTOCOL, "what carries the messages", &["tcp", "udp"]);
const ARM: Param = Param::choice(ids::param::ARM, "what is changed in the experiment", &ARMS);

/// The input that holds the other end's address, `HOST:PORT`; without it the visit forks its own
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
        about: "Connections carry messages one way (or both ways) as fast as they go, writing from and \
                reading into buffers that stay in the cache, as iperf3 does: at each end on one CPU a connection, nearest to the card \
                first, as far as there are cores; those that share a CPU share a task. Time and bytes are the receiver's own, in \
                windows after the start is over; every byte sent must have arrived, and what arrives is compared with the \
                pattern sent at one place a read. Without --to the other end is a process on this machine and everything goes over \
                loopback, all connections on one CPU an end: a figure of the kernel's stack and of copying, in which no network card takes part. With --to it is \
                `assay serve` on the other host. Both ends' CPU time, softirq share, waits for a CPU and drops stand beside, \
                and what TCP itself says of the sender.",
        reading: "Over a link: 94 to 97 % of its speed with an MTU of 1500 (headers take the rest). Below that, see \
                  network.bottleneck for who is the limit: where local_busy or remote_busy is near 1, a CPU is, and the figure \
                  says nothing of the link; one stream is one CPU an end, so more streams go faster \
                  then where both ends have more cores; over loopback they share the two CPUs. Over loopback 20 to 80 \
                  Gbit/s on two CPUs, half on one; virtual machines and security patches move it.",
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
        about: "A task a stream sends numbered messages as fast as it can, or at --rate, by sendmmsg with segmentation offload \
                where the kernel has it; a task a stream receives them by recvmmsg. From the numbers follow how many never \
                arrived, how many came after a later one and how many came twice. The bandwidth is what arrived; what was \
                sent stands beside. The server sends only to an address that has proved itself in the session. Without --to \
                over loopback: a figure of the kernel's stack, no network card takes part.",
        reading: "Nothing holds UDP back: a sender that is faster than the receiver or the link loses what is too much, and the \
                  loss is no fault of the link until it stays with --rate well below its speed. The usual message fills one packet of the \
                  path (its MTU less headers: 1472 bytes of 1500 over IPv4, 1452 over IPv6); longer ones are sent in pieces, and one \
                  piece that is lost loses all. Reordering over one link comes from several queues or paths. Messages lost at \
                  the receiver's socket are counted in remote_drops (or local_drops).",
        metrics: OF_UDP,
        params: &[DIRECTION, PACED, STREAMS, BYTES],
        points: transfer_points,
        run: transfers::run,
        ..ROW
    },
    Benchmark {
        id: ids::ROUND_TRIP,
        title: "Round trip",
        about: "One message of 64 bytes goes to the other end and comes back before the next is sent (ping-pong, as sockperf's and \
                netperf's): blocking calls, no coalescing (TCP_NODELAY), a task pinned at each end. Each round trip is timed by \
                itself and all of a visit go into one histogram; a percentile is told only where at least ten lie beyond it. \
                Each answer must be the very message that was sent. A UDP message that does not come back within half a second \
                is counted as lost. Without --to over loopback: the kernel's stack and wake-ups, no network card takes part.",
        reading: "Over loopback on two CPUs 8 to 30 µs, mostly the wake-up of two idle CPUs; on one CPU less. Over a \
                  switch in one room 20 to 60 µs; each 100 km of fibre adds one ms. A p99 far above the median: interrupts \
                  that are moderated, deep idle states, other load on the receiver's CPU. Jitter is the mean difference of \
                  neighbouring round trips.",
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
        about: "Connections are made one after another: each is connected, accepted at the other end, gets one byte from there \
                and is closed by a reset, so that none stays in TIME_WAIT and no port is used up. A connection counts when its \
                byte is there, and is timed until then. Without --to over loopback.",
        reading: "Over loopback 20,000 to 60,000 a second. Over a network two round trips each: 1 / (2 x round trip) is the most \
                  that one task can have. Connection tracking, firewall rules and security modules add to every connection, \
                  and a rate far below the round trips' is theirs.",
        metrics: OF_REQUESTS,
        run: trips::connect,
        ..ROW
    },
    Benchmark {
        id: ids::REQUEST,
        title: "Request and response at depth",
        about: "Requests of 64 bytes go over one TCP connection, so many on their way at once (depth); each is answered by one of \
                64 bytes that names it. Both ends take what has arrived with one read and answer it with one write, as servers \
                with pipelining do. Rate and latency, from a request's write to its answer's read, are of the same time.",
        reading: "Depth 1 is the round trip. The rate grows with the depth until a CPU is full (local_busy, remote_busy) and from \
                  there only the latency does: rate x latency = depth. Where the rate at depth 64 is no tenfold of that at 1, \
                  each message costs an interrupt and a wake-up of its own.",
        metrics: OF_REQUESTS,
        params: &[CONGESTION, DEPTH],
        points: |_| DEPTHS.iter().map(|depth| point(ids::param::DEPTH, *depth)).collect(),
        run: requests::request,
        ..ROW
    },
    Benchmark {
        id: ids::LOADED,
        title: "Round trip under load",
        about: "The round trip of 64-byte messages over TCP, first on an idle path, then while another connection between the same two \
                ends sends as fast as it can: what queues in buffers on the way, in the card and in the kernel add. One \
                histogram a visit of each. The messages have a CPU of their own at each end, beside the load's, where there is a core \
                left for it. Without --to over loopback.",
        reading: "latency_p50 beside latency_idle_p50: over a link with good queue management (fq_codel, BBR) under twice the idle \
                  one plus a millisecond; tens of milliseconds are bufferbloat: a queue that is filled before anything is \
                  dropped. An end with one core (over loopback, a machine with two) lets messages and load share a CPU: then it is \
                  mostly a time slice of the load's, not a queue's.",
        metrics: OF_LOADED,
        params: &[DIRECTION, CONGESTION, STREAMS],
        run: trips::loaded,
        ..ROW
    },
    Benchmark {
        id: ids::BOTTLENECK,
        title: "What limits the bandwidth: the experiment",
        about: "One visit sends over fresh connections again and again, and changes one thing at a time (arm), in several rounds: \
                plain; the sender, or the receiver, burning CPU for 30 % of its time; four streams; socket buffers four \
                times as large, and a quarter; small messages; paced at half and at nine tenths of the plain rate; UDP at 1.2 times \
                it; and the first 50 ms of a connection beside the rest (`later`). The limit is what the bandwidth follows when it is \
                changed. All that both ends account for stands beside each arm.",
        reading: "A sender's CPU: burning there costs bandwidth and nowhere else does. The same for a receiver's. A window: larger \
                  buffers carry more. A link or a shaper: nothing of that matters, nine tenths arrive whole and UDP loses what \
                  is too much; a shaper lets the start go faster than the rest. `network-bottleneck` among the findings draws the \
                  conclusion and says where the arms do not tell two apart.",
        metrics: OF_BOTTLENECK,
        params: &[DIRECTION, CONGESTION, ARM],
        points: |_| ARMS.iter().map(|arm| point(ids::param::ARM, *arm)).collect(),
        run: bottleneck::run,
        ..ROW
    },
];

const DEPTHS: [u64; 4] = [1, 4, 16, 64];

/// Streams and sizes of one visit: `streams:bytes`, as the input `points` names them.
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
