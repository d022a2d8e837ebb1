//! The metrics of the network rows. What both ends have is named after the end: `local` is the one
//! that asks.

use crate::row::{note, quantile_us};
use model::vocabulary::MetricId;
use model::vocabulary::network as ids;
use model::{Better, Form, Metric};

/// From bytes to bits, and from ns to seconds in billions: `Gbit/s`, 10^9 bits of payload.
pub const GIGABITS: f64 = 8.0;

/// What arrived, over the time in which it did.
pub const BANDWIDTH: Metric = Metric::new(
    ids::metric::BANDWIDTH,
    "arrived",
    "Gbit/s",
    Better::Higher,
    Form::WorkPerTime { scale: GIGABITS },
);

/// Figures for rules and for readers who ask for more.
const fn fact(name: MetricId, title: &'static str, unit: &'static str) -> Metric {
    note(name, title, unit).detail()
}

pub const LOCAL_BUSY: Metric = note(ids::metric::LOCAL_BUSY, "share of CPU time busy at this end", "");
pub const REMOTE_BUSY: Metric = note(ids::metric::REMOTE_BUSY, "share of CPU time busy at the other end", "");
/// Of the CPUs that tasks use, or of the one CPU of those that handle the interface's packets that
/// is busiest, whichever is more.
pub const LOCAL_SOFTIRQ: Metric =
    fact(ids::metric::LOCAL_SOFTIRQ, "softirq share at this end, or of its busiest CPU", "");
pub const REMOTE_SOFTIRQ: Metric =
    fact(ids::metric::REMOTE_SOFTIRQ, "softirq share at the other end, or of its busiest CPU", "");
pub const LOCAL_WAIT: Metric =
    fact(ids::metric::LOCAL_WAIT, "share of time waiting for a CPU at this end", "");
pub const REMOTE_WAIT: Metric =
    fact(ids::metric::REMOTE_WAIT, "share of time waiting for a CPU at the other end", "");
pub const LOCAL_THROTTLED: Metric =
    fact(ids::metric::LOCAL_THROTTLED, "share of time throttled by the control group at this end", "");
pub const REMOTE_THROTTLED: Metric =
    fact(ids::metric::REMOTE_THROTTLED, "share of time throttled by the control group at the other end", "");
pub const LOCAL_DROPS: Metric =
    fact(ids::metric::LOCAL_DROPS, "packets and messages dropped at this end", "1/s");
pub const REMOTE_DROPS: Metric =
    fact(ids::metric::REMOTE_DROPS, "packets and messages dropped at the other end", "1/s");
pub const RETRANSMITS: Metric = note(ids::metric::RETRANSMITS, "packets retransmitted", "1/s");
pub const DUPLICATES: Metric = fact(ids::metric::DUPLICATES, "packets retransmitted needlessly", "1/s");
pub const RWND_LIMITED: Metric =
    fact(ids::metric::RWND_LIMITED, "share of time limited by the receiver's window", "");
pub const SNDBUF_LIMITED: Metric =
    fact(ids::metric::SNDBUF_LIMITED, "share of time limited by the send buffer", "");
pub const SENDER_BUSY: Metric =
    fact(ids::metric::SENDER_LIMITED_BUSY, "share of time with data in flight", "");
pub const CWND: Metric = fact(ids::metric::CWND, "congestion window", "segments");
pub const RTT: Metric = note(ids::metric::RTT, "round trip", "us");
pub const RTT_MIN: Metric = fact(ids::metric::RTT_MIN, "shortest round trip of TCP", "us");
pub const DELIVERY_RATE: Metric = fact(ids::metric::DELIVERY_RATE, "delivery rate of TCP", "Gbit/s");
pub const SEND_BUFFER: Metric =
    fact(ids::metric::SEND_BUFFER, "send buffer, as the kernel reports it", "bytes");
pub const RECEIVE_BUFFER: Metric =
    fact(ids::metric::RECEIVE_BUFFER, "receive buffer, as the kernel reports it", "bytes");

/// Own metrics, then those of every transfer over TCP.
macro_rules! beside_transfer {
    ($($own:expr),+) => {
        &[
            $($own,)+
            LOCAL_BUSY,
            REMOTE_BUSY,
            LOCAL_SOFTIRQ,
            REMOTE_SOFTIRQ,
            LOCAL_WAIT,
            REMOTE_WAIT,
            LOCAL_THROTTLED,
            REMOTE_THROTTLED,
            LOCAL_DROPS,
            REMOTE_DROPS,
            RETRANSMITS,
            DUPLICATES,
            RWND_LIMITED,
            SNDBUF_LIMITED,
            SENDER_BUSY,
            CWND,
            RTT,
            RTT_MIN,
            DELIVERY_RATE,
            SEND_BUFFER,
            RECEIVE_BUFFER,
        ]
    };
}
pub(super) use beside_transfer;

/// Of what was sent over UDP.
pub const SENT: Metric = note(ids::metric::SENT, "bandwidth sent", "Gbit/s");
pub const LOSS: Metric = note(ids::metric::LOSS, "share of messages lost", "");
pub const REORDERED: Metric = fact(ids::metric::REORDERED, "share of messages reordered", "");
pub const DUPLICATED: Metric = fact(ids::metric::DUPLICATED, "share of messages duplicated", "");
/// Of a fresh connection: what it carries once its first 50 ms are over.
pub const LATER: Metric = note(ids::metric::LATER, "bandwidth after the first 50 ms", "Gbit/s");
/// Above 1 the connection had not reached what it can carry.
pub const GROWTH: Metric = fact(ids::metric::GROWTH, "bandwidth of the second half over the first", "");

pub const P50: Metric = quantile_us(ids::metric::LATENCY_P50, "latency, median", 0.5);
/// The median where something else is the headline.
pub const ASIDE_P50: Metric = quantile_us(ids::metric::LATENCY_P50, "latency, median", 0.5).aside();
pub const P90: Metric = quantile_us(ids::metric::LATENCY_P90, "latency, 90th percentile", 0.9).detail();
pub const P99: Metric = quantile_us(ids::metric::LATENCY_P99, "latency, 99th percentile", 0.99).aside();
pub const P999: Metric = quantile_us(ids::metric::LATENCY_P999, "latency, 99.9th percentile", 0.999).aside();
pub const P9999: Metric =
    quantile_us(ids::metric::LATENCY_P9999, "latency, 99.99th percentile", 0.9999).detail();
pub const MAX: Metric = quantile_us(ids::metric::LATENCY_MAX, "latency, longest", 1.0).aside();
pub const JITTER: Metric = note(ids::metric::JITTER, "mean difference of successive latencies", "us");
pub const LOAD: Metric = note(ids::metric::LOAD, "bandwidth of the load", "Gbit/s");
pub const IDLE_P50: Metric = note(ids::metric::LATENCY_IDLE_P50, "latency when idle, median", "us");
