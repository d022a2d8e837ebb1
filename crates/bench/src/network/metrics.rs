//! The metrics of the network rows. What both ends have is named after the end: `local` is the one that asks.

use model::{Better, Form, Metric};

/// From bytes to bits, and from ns to seconds in billions: `Gbit/s`, 10^9 bits of payload.
pub const GIGABITS: f64 = 8.0;

/// What arrived, over the time in which it did.
pub const BANDWIDTH: Metric =
    Metric::new("bandwidth", "arrived", "Gbit/s", Better::Higher, Form::WorkPerTime { scale: GIGABITS });

const fn aside(name: &'static str, title: &'static str, unit: &'static str) -> Metric {
    Metric::new(name, title, unit, Better::Neither, Form::Value).aside()
}

/// What rules look at, and whoever asks.
const fn detail(name: &'static str, title: &'static str, unit: &'static str) -> Metric {
    aside(name, title, unit).detail()
}

pub const LOCAL_BUSY: Metric = aside("local_busy", "CPU busy here", "");
pub const REMOTE_BUSY: Metric = aside("remote_busy", "CPU busy there", "");
/// Of the CPUs that tasks use, or of the one CPU of those that handle the interface's packets that is busiest, whichever is more.
pub const LOCAL_SOFTIRQ: Metric =
    detail("local_softirq", "softirq share of the CPUs used here, or of the busiest at the card", "");
pub const REMOTE_SOFTIRQ: Metric =
    detail("remote_softirq", "softirq share of the CPUs used there, or of the busiest at the card", "");
pub const LOCAL_WAIT: Metric = detail("local_wait", "share of time our tasks waited for a CPU", "");
pub const REMOTE_WAIT: Metric =
    detail("remote_wait", "share of time the other end's tasks waited for a CPU", "");
pub const LOCAL_THROTTLED: Metric =
    detail("local_throttled", "share of time our control group was throttled", "");
pub const REMOTE_THROTTLED: Metric =
    detail("remote_throttled", "share of time the other end's control group was throttled", "");
pub const LOCAL_DROPS: Metric = detail("local_drops", "packets and messages dropped here", "1/s");
pub const REMOTE_DROPS: Metric = detail("remote_drops", "packets and messages dropped there", "1/s");
pub const RETRANSMITS: Metric = aside("retransmits", "sent again", "1/s");
pub const DUPLICATES: Metric = detail("duplicates", "sent again though it had arrived", "1/s");
pub const RWND_LIMITED: Metric =
    detail("rwnd_limited", "share of time the receiver's window was the limit", "");
pub const SNDBUF_LIMITED: Metric =
    detail("sndbuf_limited", "share of time the send buffer was the limit", "");
pub const SENDER_BUSY: Metric =
    detail("sender_limited_busy", "share of time the sender had something on its way", "");
pub const CWND: Metric = detail("cwnd", "congestion window", "segments");
pub const RTT: Metric = aside("rtt", "round trip", "us");
pub const RTT_MIN: Metric = detail("rtt_min", "shortest round trip that TCP saw", "us");
pub const DELIVERY_RATE: Metric = detail("delivery_rate", "delivery rate as TCP measures it", "Gbit/s");
pub const SEND_BUFFER: Metric = detail("send_buffer", "send buffer, as the kernel counts it", "bytes");
pub const RECEIVE_BUFFER: Metric =
    detail("receive_buffer", "receive buffer, as the kernel counts it", "bytes");

/// Own metrics, then those beside every transfer over TCP.
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
pub const SENT: Metric = aside("sent", "bandwidth that was sent", "Gbit/s");
pub const LOSS: Metric = aside("loss", "share of the messages that never arrived", "");
pub const REORDERED: Metric = detail("reordered", "share of the messages that came after a later one", "");
pub const DUPLICATED: Metric = detail("duplicated", "share of the messages that came twice", "");
/// Of a fresh connection: what it carries once its first 50 ms are over.
pub const LATER: Metric = aside("later", "bandwidth after the first 50 ms", "Gbit/s");
/// Above 1 the connection had not reached what it can carry.
pub const GROWTH: Metric =
    detail("growth", "bandwidth of the counted time's second half over the first's", "");

const fn quantile(name: &'static str, title: &'static str, q: f64) -> Metric {
    Metric::new(name, title, "us", Better::Lower, Form::Quantile { q, scale: 1e-3 })
}

pub const P50: Metric = quantile("latency_p50", "latency, median", 0.5);
/// The median where something else is the headline.
pub const ASIDE_P50: Metric = quantile("latency_p50", "latency, median", 0.5).aside();
pub const P90: Metric = quantile("latency_p90", "latency, 90th percentile", 0.9).detail();
pub const P99: Metric = quantile("latency_p99", "latency, 99th percentile", 0.99).aside();
pub const P999: Metric = quantile("latency_p999", "latency, 99.9th percentile", 0.999).aside();
pub const P9999: Metric = quantile("latency_p9999", "latency, 99.99th percentile", 0.9999).detail();
pub const MAX: Metric = quantile("latency_max", "latency, longest", 1.0).aside();
pub const JITTER: Metric = aside("jitter", "mean difference of neighbouring latencies", "us");
pub const LOAD: Metric = aside("load", "bandwidth of the load beside", "Gbit/s");
pub const IDLE_P50: Metric = aside("latency_idle_p50", "latency without load, median", "us");
