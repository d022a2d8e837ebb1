//! Which test it was: by the banner, by its values, or by the command.

use super::Values;
use crate::kit::{Command, Number, Run};
use crate::{Keyed, keyed};
use model::Value;
use model::vocabulary::network as ids;

/// How near to each other its passes were to be: the width of an interval and its confidence. A
/// banner prints half of the width, `+/-0.500% @ 99% conf.`, and an omni test all of it.
pub fn confidence(run: &Run, values: &Values) -> Option<String> {
    let banner = || {
        let more = run.hit("begin")?.text("more")?.split(" : ");
        let printed = more.filter_map(|part| part.trim().strip_prefix("+/-")?.split_once("% @ ")).next()?;
        let level = printed.1.trim_end_matches([' ', ':']).strip_suffix("% conf.")?;
        Some((2.0 * Number::read(printed.0)?.value, Number::read(level)?.value))
    };
    let printed = |name: &str| Number::read(values.get(name)?).map(|number| number.value);
    let omni = printed("confidence_interval").zip(printed("confidence_level"));
    let (width, level) = banner().or(omni).filter(|(width, _)| *width > 0.0)?;
    Some(format!("an interval of {width} % at {level} %"))
}

/// What a test does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Stream,
    Requests,
    /// A connection for each request.
    Connections,
    /// Others, and such of which nothing is known.
    Other,
}

impl Kind {
    /// By the words behind its protocol.
    fn of(words: &str) -> Kind {
        match words {
            "STREAM" | "MAERTS" | "SENDFILE" | "UNIDIRECTIONAL SEND" => Kind::Stream,
            "SEND" | "RECEIVE" | "RECV" => Kind::Stream,
            "REQUEST/RESPONSE" | "RR" | "SEND|RECV" => Kind::Requests,
            "CONNECT/REQUEST/RESPONSE" | "CRR" | "CONNECT|SEND|RECV" => Kind::Connections,
            _ => Kind::Other,
        }
    }
}

/// The unit in which a test is printed that an option `-f` asks for.
fn unit_of(letter: Option<&str>, kind: Kind) -> &'static str {
    match letter {
        Some("k") => "10^3bits/s",
        Some("g") => "10^9bits/s",
        Some("K") => "KBytes/s",
        Some("M") => "MBytes/s",
        Some("G") => "GBytes/s",
        None | Some("x") if matches!(kind, Kind::Requests | Kind::Connections) => "Trans/s",
        _ => "10^6bits/s",
    }
}

/// How near to each other the passes of a test were to be, and how near they were.
fn passes(run: &Run, values: &Values) -> String {
    let width = values.get("throughput_confid").copied().filter(|width| !width.starts_with('-'));
    let width = width.or(run.text("width").map(|width| width.trim_end_matches('%')));
    let asked_for = confidence(run, values).map(|interval| format!("requested {interval}"));
    let reached = width.map(|width| format!("it reached {width} %"));
    asked_for.into_iter().chain(reached).collect::<Vec<_>>().join(", ")
}

pub struct Test {
    pub kind: Kind,
    /// Of what Assay measures, `tcp` and `udp`; else empty.
    pub protocol: &'static str,
    /// As it is called; empty where it is unknown.
    pub name: String,
    /// This end receives.
    pub receives: bool,
    /// Other settings in the banner.
    with: String,
    burst: i64,
    /// The unit of its throughput; `None` where the file does not print it.
    pub unit: Option<String>,
    /// It is the mean of several passes.
    pub averaged: bool,
    /// How near to each other these were to be and, if printed, how near they were.
    pub passes: String,
}

impl Test {
    pub fn of(run: &Run, values: &Values) -> Test {
        let banner = run.hit("begin");
        // Without its banner a run is of the command above only where that asked for none.
        let is_its = |command: &&Command| {
            banner.is_some() || run.hit("died").is_some() || command.value(&["-P"]) == Some("0")
        };
        let command = run.command.as_ref().filter(is_its);
        let printed = |name: &str| values.get(name).copied();
        let asked_test = command.map(|command| command.value(&["-t"]).unwrap_or("TCP_STREAM"));
        let named = banner.and_then(|hit| hit.text("test"));
        let mut name = named.or(asked_test).unwrap_or_default().to_uppercase().replace('_', " ");
        // An omni test is what it does, and over what.
        let is_omni = name.is_empty() || name.starts_with("OMNI");
        if let Some(direction) = printed("direction").filter(|_| is_omni) {
            name = format!("OMNI {}", direction.to_uppercase());
        }
        let behind = command.map(|command| Command {
            words: command.words.iter().skip_while(|word| *word != "--").cloned().collect(),
            ..Command::default()
        });
        let asked_protocol = behind.as_ref().map(|command| command.value(&["-T"]).unwrap_or("TCP"));
        let protocol = printed("protocol").or(asked_protocol.filter(|_| is_omni));
        let first = name.split(' ').next().unwrap_or_default().to_string();
        let protocol = protocol.map_or(first, str::to_uppercase);
        let protocol = ["tcp", "udp"].into_iter().find(|own| protocol.eq_ignore_ascii_case(own));
        let rest = name.split_once(' ').map_or("", |(_, rest)| rest);
        let kind = Kind::of(rest);
        let more: Vec<&str> = banner
            .and_then(|hit| hit.text("more"))
            .map(|more| more.split(" : ").map(|part| part.trim_matches([' ', ':'])).collect())
            .unwrap_or_default();
        let is_set = |part: &&&str| {
            !part.is_empty()
                && !["demo", "histogram"].contains(*part)
                && !part.starts_with("+/-")
                && !part.starts_with("first burst")
        };
        let mut with: Vec<String> = more.iter().filter(is_set).map(|part| part.to_lowercase()).collect();
        if rest == "SENDFILE" {
            with.push("sendfile".to_string());
        }
        let burst = more.iter().find_map(|part| part.strip_prefix("first burst "));
        let burst = burst.or(printed("burst_size")).and_then(|burst| burst.trim().parse().ok());
        let asked_unit = command.map(|command| unit_of(command.value(&["-f"]), kind));
        let unit = printed("throughput_units").or(run.text("unit")).or(asked_unit);
        Test {
            kind: if protocol.is_some() { kind } else { Kind::Other },
            protocol: protocol.unwrap_or_default(),
            receives: ["MAERTS", "RECEIVE", "RECV"].contains(&rest),
            name,
            with: with.join(", "),
            burst: burst.unwrap_or(0),
            unit: unit.map(str::to_string),
            averaged: more.iter().any(|part| part.starts_with("+/-"))
                || printed("confidence_level").is_some_and(|level| level != "0"),
            passes: passes(run, values),
        }
    }

    /// Requests on their way at once.
    pub fn depth(&self) -> i64 {
        self.burst.clamp(0, 1 << 20) + 1
    }

    /// The key of one of its metrics.
    pub fn keyed(&self, metric: &str, values: &Values) -> Option<Keyed> {
        let size = |name: &str| values.get(name).and_then(|text| text.parse::<i64>().ok());
        let times = metric.starts_with("latency") && self.depth() == 1;
        let bench = match self.kind {
            Kind::Stream => format!("network.{}", self.protocol),
            Kind::Requests if times => ids::ROUND_TRIP.to_string(),
            Kind::Requests => ids::REQUEST.to_string(),
            Kind::Connections => ids::CONNECT.to_string(),
            Kind::Other if self.name.is_empty() => "netperf.untold".to_string(),
            Kind::Other => {
                let name = self.name.to_lowercase();
                format!("netperf.{}", name.replace(|one: char| !one.is_ascii_alphanumeric(), "-"))
            }
        };
        let mut keyed = keyed(&format!("{bench}@free#{metric}"))?;
        let (params, point) = (&mut keyed.case.params, &mut keyed.point);
        let text = |text: &str| Value::Text(text.to_string());
        if !self.with.is_empty() {
            params.set("with", text(&self.with));
        }
        match self.kind {
            Kind::Stream => {
                params.set(&*ids::param::DIRECTION, text(if self.receives { "receive" } else { "send" }));
                point.set(&*ids::param::STREAMS, Value::Int(1));
                let sender = if self.receives { "remote_send_size" } else { "local_send_size" };
                // The tables name one size alone.
                let bytes = size(sender).or(size("local_send_size"));
                if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
                    point.set(&*ids::param::BYTES, Value::Int(bytes));
                }
            }
            Kind::Requests | Kind::Connections => {
                // As in Assay's own, a request is one over TCP, and a round trip says over what.
                if times || self.protocol != "tcp" {
                    params.set(&*ids::param::PROTOCOL, text(self.protocol));
                }
                let (request, response) = (size("request_size"), size("response_size"));
                let is_byte = self.kind == Kind::Connections && request == Some(1) && response == Some(1);
                if let Some(bytes) = request.filter(|_| !is_byte) {
                    point.set(&*ids::param::BYTES, Value::Int(bytes));
                }
                if let Some(bytes) = response.filter(|_| response != request) {
                    point.set("response", Value::Int(bytes));
                }
                if self.kind == Kind::Requests && !times {
                    point.set(&*ids::param::DEPTH, Value::Int(self.depth()));
                }
            }
            Kind::Other => {}
        }
        Some(keyed)
    }
}
