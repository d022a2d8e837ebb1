//! Requests and replies of a session, with the bounds that a server holds whoever asks.

use serde::{Deserialize, Serialize};

use super::beat::Beat;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
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
    pub fn of(text: Option<&str>) -> Direction {
        match text {
            Some("receive") => Direction::Receive,
            Some("both") => Direction::Both,
            _ => Direction::Send,
        }
    }
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// Data for a while over fresh connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Counts the tests of a session: cookies of an earlier one are of no use.
    pub test: u32,
    pub protocol: Protocol,
    pub direction: Direction,
    pub streams: u32,
    /// Size of a message.
    pub bytes: u32,
    pub beat: Beat,
    /// Bits a second of each direction, all streams together.
    pub rate: Option<f64>,
    pub congestion: Option<String>,
    /// Socket buffers of the sender and of the receiver, as they are asked for.
    pub buffers: Option<[u32; 2]>,
    /// Share of its time that the client, and the server, burns CPU.
    pub burn: [f64; 2],
    /// CPUs of the server's tasks, in turn; none: it chooses.
    pub cpus: Vec<u32>,
    /// One more connection, of TCP, whose messages come back meanwhile.
    pub echo: bool,
}

/// Messages that come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Echo {
    pub test: u32,
    pub protocol: Protocol,
    pub congestion: Option<String>,
    pub cpus: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    Describe,
    Transfer(Transfer),
    Echo(Echo),
    /// Connections to be accepted, given a byte and forgotten.
    Greet(Echo),
    /// What was prepared begins.
    Go,
    /// What goes on ends.
    Stop,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    Description(String),
    /// Data goes to this port.
    Port(u16),
    /// The first datagram of this stream is there: it need not be said again. Told over the link,
    /// where it cannot be lost.
    Heard(u32),
    Ready,
    Report(Box<Report>),
    Refused(String),
}

/// Bytes so far at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// From the test's begin, ns.
    pub ns: f64,
    pub sent: u64,
    pub received: u64,
}

/// What one end saw of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// At the edges of all windows, those of the start included.
    pub marks: Vec<Mark>,
    /// All in all, when it was over.
    pub sent: u64,
    pub received: u64,
    pub sent_messages: u64,
    pub received_messages: u64,
    pub reordered: u64,
    pub duplicated: u64,
    /// Everything was read to its end; else what was still on its way was given up.
    pub drained: bool,
    /// What was found to be wrong with what came.
    pub wrong: Option<String>,
    pub account: Account,
    /// Of the connections that this end sends over.
    pub tcp: Option<Sending>,
    /// Of the connections that it receives over.
    pub receive_buffer: Option<f64>,
    pub congestion: Option<String>,
    /// CPUs that its tasks sat on, one after another.
    pub cpus: Vec<u32>,
}

/// Costs of the counted windows; shares 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub busy: Option<f64>,
    pub softirq: Option<f64>,
    pub wait: Option<f64>,
    pub throttled: Option<f64>,
    /// 1/s.
    pub drops: Option<f64>,
}

/// What TCP says of the senders, over the counted windows: sums and means of all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sending {
    /// 1/s; of them those that had arrived before.
    pub retransmits: f64,
    pub duplicates: Option<f64>,
    pub rwnd_limited: Option<f64>,
    pub sndbuf_limited: Option<f64>,
    pub busy: Option<f64>,
    pub cwnd: f64,
    pub rtt_us: f64,
    pub rtt_min_us: Option<f64>,
    /// Bits a second.
    pub delivery_rate: Option<f64>,
    pub send_buffer: Option<f64>,
}

pub const MOST_STREAMS: u32 = 128;
/// Longest test, ms.
const LONGEST_MS: u64 = 60_000;
const MOST_WINDOWS: usize = 500;

impl Transfer {
    /// Whether a server does that for anybody; why not.
    pub fn check(&self) -> Result<(), String> {
        let largest = if self.protocol == Protocol::Udp { 65_507 } else { 1 << 20 };
        let Beat { window_ms, warm_up, count } = self.beat;
        let windows = warm_up.saturating_add(count);
        let share = |value: f64| (0.0..=0.9).contains(&value);
        let bounds = [
            ((1..=MOST_STREAMS).contains(&self.streams), "1 to 128 streams"),
            ((16..=largest).contains(&self.bytes), "messages of 16 bytes to 1 MiB, of 65507 bytes over UDP"),
            (window_ms > 0 && count > 0 && windows <= MOST_WINDOWS, "1 to 500 windows"),
            (window_ms.saturating_mul(windows as u64) <= LONGEST_MS, "a minute"),
            (self.rate.is_none_or(|rate| (1e3..=1e13).contains(&rate)), "rates of 1 kbit/s to 10 Tbit/s"),
            (self.burn.into_iter().all(share), "burning up to 90 % of its time"),
            (!self.echo || self.protocol == Protocol::Tcp, "echoes with TCP"),
            (
                self.buffers.is_none_or(|sizes| sizes.into_iter().all(|size| size <= 1 << 30)),
                "buffers up to 1 GiB",
            ),
        ];
        if let Some((_, what)) = bounds.into_iter().find(|(holds, _)| !holds) {
            return Err(format!("the other end's limit is {what}"));
        }
        check_name(self.congestion.as_deref())
    }
}

impl Echo {
    pub fn check(&self) -> Result<(), String> {
        check_name(self.congestion.as_deref())
    }
}

/// Names of congestion controls are short words.
fn check_name(name: Option<&str>) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match name.is_none_or(|name| (1..16).contains(&name.len()) && name.chars().all(plain)) {
        true => Ok(()),
        false => Err("invalid name of a congestion control".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn transfer() -> Transfer {
        Transfer {
            test: 1,
            protocol: Protocol::Tcp,
            direction: Direction::Send,
            streams: 1,
            bytes: 4096,
            beat: Beat { window_ms: 2, warm_up: 1, count: 3 },
            rate: None,
            congestion: None,
            buffers: None,
            burn: [0.0; 2],
            cpus: Vec::new(),
            echo: false,
        }
    }

    #[test]
    fn a_server_has_bounds() {
        assert_eq!(transfer().check(), Ok(()));
        let udp = Transfer { protocol: Protocol::Udp, bytes: 65_508, ..transfer() };
        let hour = Beat { window_ms: u64::MAX, warm_up: usize::MAX, count: 2 };
        for wrong in [
            Transfer { streams: 0, ..transfer() },
            Transfer { streams: 129, ..transfer() },
            Transfer { bytes: 8, ..transfer() },
            udp,
            Transfer { beat: hour, ..transfer() },
            Transfer { beat: Beat { window_ms: 30_001, warm_up: 1, count: 1 }, ..transfer() },
            Transfer { beat: Beat { window_ms: 1, warm_up: 0, count: 0 }, ..transfer() },
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
