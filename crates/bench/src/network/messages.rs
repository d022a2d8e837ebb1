//! Requests and replies on the control connection of a session, and the limits that a server
//! enforces for every client. Serialized names are part of the protocol
//! ([`VERSION`](super::wire::VERSION)) and stay; where the code has a better one, serde renames it.

use serde::{Deserialize, Serialize};

use super::window_schedule::WindowSchedule;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    Tcp,
    Udp,
}

/// Who sends, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Send,
    Receive,
    Both,
}

impl Direction {
    /// Reads a case's parameter; a case without one sends.
    pub fn parse(text: Option<&str>) -> Result<Direction, String> {
        match text {
            None | Some("send") => Ok(Direction::Send),
            Some("receive") => Ok(Direction::Receive),
            Some("both") => Ok(Direction::Both),
            Some(other) => Err(format!("unknown direction {other:?}: send, receive or both")),
        }
    }
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A test that transfers data for a while over new connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Number of the test in its session, so that data of an earlier test is rejected.
    pub test: u32,
    pub protocol: Transport,
    pub direction: Direction,
    pub streams: u32,
    /// Size of a message, bytes.
    pub bytes: u32,
    #[serde(rename = "beat")]
    pub schedule: WindowSchedule,
    /// Bits per second in each direction, all streams together.
    pub rate: Option<f64>,
    pub congestion: Option<String>,
    /// Requested socket buffers, bytes: `[sender, receiver]`, whichever end sends.
    pub buffers: Option<[u32; 2]>,
    /// Share of time (0 to 0.9) for which an end burns CPU, to simulate load: `[client, server]`.
    pub burn: [f64; 2],
    /// CPUs of the server's tasks, round-robin; empty: the server chooses.
    pub cpus: Vec<u32>,
    /// Whether a TCP ping-pong connection runs during the transfer.
    #[serde(rename = "echo")]
    pub ping_pong: bool,
}

impl Transfer {
    /// One stream of large messages without any bound or disturbance.
    pub fn new(protocol: Transport, direction: Direction, schedule: WindowSchedule) -> Transfer {
        Transfer {
            test: 0,
            protocol,
            direction,
            streams: 1,
            bytes: 128 << 10,
            schedule,
            rate: None,
            congestion: None,
            buffers: None,
            burn: [0.0; 2],
            cpus: Vec::new(),
            ping_pong: false,
        }
    }
}

/// A test of ping-pong messages or of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallTest {
    pub test: u32,
    pub protocol: Transport,
    pub congestion: Option<String>,
    pub cpus: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    Describe,
    Transfer(Transfer),
    /// Each message is answered before the next is sent.
    #[serde(rename = "echo")]
    PingPong(SmallTest),
    /// A test of connections: each is accepted, gets one byte and is closed.
    #[serde(rename = "greet")]
    Connect(SmallTest),
    /// Starts the test that was prepared.
    Go,
    /// Ends the running test.
    Stop,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    Description(String),
    /// Data goes to this port.
    Port(u16),
    /// The server has the first datagram of this stream, so the client may stop resending it. Goes
    /// over the control connection, which loses nothing.
    #[serde(rename = "heard")]
    FirstDatagram(u32),
    Ready,
    Report(Box<Report>),
    Refused(String),
}

/// Bytes so far at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByteCount {
    /// Since the start of the test, ns.
    pub ns: f64,
    pub sent: u64,
    pub received: u64,
}

/// The results of a test at one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// At the edges of all windows, the warm-up included.
    pub marks: Vec<ByteCount>,
    /// Totals at the end of the test, bytes.
    pub sent: u64,
    pub received: u64,
    pub sent_messages: u64,
    pub received_messages: u64,
    pub reordered: u64,
    pub duplicated: u64,
    /// Whether all data was read to its end; otherwise data in flight was dropped.
    pub drained: bool,
    /// The first error in the data that arrived.
    pub wrong: Option<String>,
    #[serde(rename = "account")]
    pub cpu_costs: CpuCosts,
    /// TCP state of the connections that this end sends over.
    pub tcp: Option<SenderState>,
    /// Receive buffer of the connections that it receives over, bytes.
    pub receive_buffer: Option<f64>,
    pub congestion: Option<String>,
    /// CPUs on which its tasks ran, in the order of tasks.
    pub cpus: Vec<u32>,
}

/// CPU costs of the counted windows, as shares (0 to 1) of their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuCosts {
    /// CPU time of the tasks, of the time of all their CPUs.
    pub busy: Option<f64>,
    /// Soft interrupts on these CPUs, or on the busiest CPU that handles packets if that is more.
    pub softirq: Option<f64>,
    /// Time that tasks waited for a CPU, the mean of all tasks.
    pub wait: Option<f64>,
    /// Time for which a CPU quota stopped the tasks.
    pub throttled: Option<f64>,
    /// Dropped packets and messages per second.
    pub drops: Option<f64>,
}

/// TCP state of the senders over the counted windows, from the kernel's tcp_info: sums and means
/// of all streams. Shares are 0 to 1 of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderState {
    /// Retransmitted packets per second.
    pub retransmits: f64,
    /// Retransmitted packets per second that had already arrived.
    pub duplicates: Option<f64>,
    /// Share for which the receive window held the sender back.
    pub rwnd_limited: Option<f64>,
    /// Share for which the send buffer did.
    pub sndbuf_limited: Option<f64>,
    /// Share with unacknowledged data (tcpi_busy_time).
    pub busy: Option<f64>,
    /// Congestion window, segments.
    pub cwnd: f64,
    pub rtt_us: f64,
    pub rtt_min_us: Option<f64>,
    /// Bits per second.
    pub delivery_rate: Option<f64>,
    /// Bytes.
    pub send_buffer: Option<f64>,
}

pub const MAX_STREAMS: u32 = 128;
const MAX_WINDOWS: usize = 500;
/// Longest test, ms.
const LONGEST_MS: u64 = 60_000;

impl Transfer {
    /// An error that names the limit which the request exceeds.
    pub fn check(&self) -> Result<(), String> {
        let largest = if self.protocol == Transport::Udp { 65_507 } else { 1 << 20 };
        let WindowSchedule { window_ms, warm_up, count } = self.schedule;
        let windows = warm_up.saturating_add(count);
        let share = |value: f64| (0.0..=0.9).contains(&value);
        let bounds = [
            ((1..=MAX_STREAMS).contains(&self.streams), "1–128 streams"),
            ((16..=largest).contains(&self.bytes), "messages of 16 bytes to 1 MiB, over UDP to 65,507 bytes"),
            // Printed texts call windows samples.
            (window_ms > 0 && count > 0 && windows <= MAX_WINDOWS, "1–500 samples"),
            (window_ms.saturating_mul(windows as u64) <= LONGEST_MS, "a test of 60 s"),
            (self.rate.is_none_or(|rate| (1e3..=1e13).contains(&rate)), "a rate of 1 kbit/s to 10 Tbit/s"),
            (self.burn.into_iter().all(share), "90 % of the time for burning CPU"),
            (!self.ping_pong || self.protocol == Transport::Tcp, "a ping-pong connection with TCP only"),
            (
                self.buffers.is_none_or(|sizes| sizes.into_iter().all(|size| size <= 1 << 30)),
                "buffers of 1 GiB",
            ),
        ];
        if let Some((_, what)) = bounds.into_iter().find(|(holds, _)| !holds) {
            return Err(format!("the other end's limit is {what}"));
        }
        check_name(self.congestion.as_deref())
    }
}

impl SmallTest {
    pub fn check(&self) -> Result<(), String> {
        check_name(self.congestion.as_deref())
    }
}

/// Names of congestion controls are short words.
fn check_name(name: Option<&str>) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_none_or(|name| (1..16).contains(&name.len()) && name.chars().all(plain)) {
        Ok(())
    } else {
        Err("invalid name of a congestion control".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn transfer() -> Transfer {
        let schedule = WindowSchedule { window_ms: 2, warm_up: 1, count: 3 };
        Transfer { test: 1, bytes: 4096, ..Transfer::new(Transport::Tcp, Direction::Send, schedule) }
    }

    #[test]
    fn a_server_has_bounds() {
        assert_eq!(transfer().check(), Ok(()));
        let udp = Transfer { protocol: Transport::Udp, bytes: 65_508, ..transfer() };
        let hour = WindowSchedule { window_ms: u64::MAX, warm_up: usize::MAX, count: 2 };
        for wrong in [
            Transfer { streams: 0, ..transfer() },
            Transfer { streams: 129, ..transfer() },
            Transfer { bytes: 8, ..transfer() },
            udp,
            Transfer { schedule: hour, ..transfer() },
            Transfer { schedule: WindowSchedule { window_ms: 30_001, warm_up: 1, count: 1 }, ..transfer() },
            Transfer { schedule: WindowSchedule { window_ms: 1, warm_up: 0, count: 0 }, ..transfer() },
            Transfer { rate: Some(f64::NAN), ..transfer() },
            Transfer { burn: [0.0, 1.5], ..transfer() },
            Transfer { buffers: Some([1, u32::MAX]), ..transfer() },
            Transfer { congestion: Some("../etc".into()), ..transfer() },
            Transfer { congestion: Some(String::new()), ..transfer() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_unknown_direction_is_an_error() {
        assert_eq!(Direction::parse(None), Ok(Direction::Send));
        assert_eq!(Direction::parse(Some("both")), Ok(Direction::Both));
        assert!(Direction::parse(Some("sideways")).is_err_and(|why| why.contains("sideways")));
    }

    #[test]
    fn requests_read_back_and_nonsense_is_refused() {
        for request in [Request::Describe, Request::Transfer(transfer()), Request::Go, Request::Stop] {
            let text = serde_json::to_string(&request).expect("text");
            assert_eq!(serde_json::from_str::<Request>(&text).expect("read back"), request);
        }
        for text in ["", "{}", "{\"transfer\":{}}", "[1]", "\"dance\"", "{\"transfer\":{\"test\":-1}}"] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
    }
}
