//! The figures of a run: what is in its key, and what is said of it.

use super::{Run, Section};
use crate::builder::{Builder, Meaning};
use crate::faults::{Faults, short};
use crate::percentiles::{percentile_name, too_few_beyond};
use crate::{Keyed, keyed};
use model::vocabulary::network as ids;
use model::{Better, Value};

pub fn meaning(keyed: Keyed, wording: &str, unit: &'static str, better: Better, notes: &[String]) -> Meaning {
    Meaning {
        keyed,
        wording: format!("sockperf {wording}"),
        unit: unit.into(),
        better,
        note: notes.join("; "),
    }
}

impl Run {
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.loopback {
            notes.push("over loopback: the kernel's network stack, and no network card".to_string());
        }
        notes
    }

    pub fn figures(&self, builder: &mut Builder, faults: &mut Faults) {
        if self.interrupted {
            faults.interrupted("Test end (interrupted by user)");
        }
        let sends = self.throughput || self.mode() == Some("throughput");
        if sends {
            return self.sent(builder);
        }
        for section in &self.sections {
            self.latencies(section, builder);
        }
        if self.sections.is_empty() {
            let why = self.failed.clone().unwrap_or_else(|| {
                if self.interrupted {
                    "started, no test finished: it was interrupted before there was a result".to_string()
                } else {
                    "started, no test finished: the run, or the text, ended before a result".to_string()
                }
            });
            if let Some(keyed) = self.keyed(self.mode().unwrap_or("ping-pong"), None, "latency_p50") {
                builder.missing(meaning(keyed, "latency", "us", Better::Lower, &self.notes()), why);
            }
        }
    }

    fn keyed(&self, mode: &str, server: Option<u32>, metric: &str) -> Option<Keyed> {
        let protocol = self.protocol();
        let key = match (mode, protocol) {
            ("throughput", "tcp") => format!("network.tcp@free?direction=send#{metric}"),
            ("throughput", _) => format!("network.udp@free?direction=send#{metric}"),
            ("under-load", _) => format!("sockperf.under-load@free?protocol={protocol}#{metric}"),
            (_, _) => format!("network.round-trip@free?protocol={protocol}#{metric}"),
        };
        let mut keyed = keyed(&key)?;
        let mut point = |name: &str, value: u32| keyed.point.set(name, Value::Int(value.into()));
        if mode == "throughput" {
            point(&ids::param::STREAMS, 1);
        }
        if let Some(bytes) = self.bytes() {
            point(&ids::param::BYTES, bytes);
        }
        if let Some(server) = server {
            point("server", server);
        }
        if let Some(mps) = self.mps.filter(|_| mode == "throughput") {
            keyed.case.params.set("mps", Value::Int(mps as i64));
        }
        if let Some(command) = &self.command {
            for (name, value) in &command.special {
                let text = value.parse().map_or_else(|_| Value::Text(value.clone()), Value::Int);
                keyed.case.params.set(name, text);
            }
        }
        Some(keyed)
    }

    /// The mode of a section whose command is not there, and why it can only be guessed.
    fn mode_of(&self, section: &Section) -> (&'static str, Option<&'static str>) {
        let is_answered = section.sent.zip(section.received).is_some_and(|(sent, received)| sent == received);
        match self.mode() {
            Some(mode) => (mode, None),
            None if is_answered => {
                ("ping-pong", Some("the mode is unknown: it may be under-load with every message answered"))
            }
            None => {
                ("under-load", Some("the mode is unknown: not every message was answered, as in under-load"))
            }
        }
    }

    fn latencies(&self, section: &Section, builder: &mut Builder) {
        let (mode, guessed) = self.mode_of(section);
        let untold = self.bytes().is_none();
        let untold = untold.then_some("the message size is unknown: 14 bytes, unless an option changed it");
        let halved = (!section.round).then_some("half of it is printed");
        let mut notes = self.notes();
        notes.extend([guessed, untold, halved].into_iter().flatten().map(str::to_string));
        let times = if section.round { 1.0 } else { 2.0 };
        let server = (self.sections.len() > 1).then_some(section.server);
        let mut put = |metric: &str, value: Option<f64>, missing: Option<String>| {
            let Some(keyed) = self.keyed(mode, server, metric) else { return };
            let meaning = meaning(keyed, metric, "us", Better::Lower, &notes);
            match (value, missing) {
                (Some(value), None) => builder.value(meaning, value * times),
                (_, Some(why)) => builder.missing(meaning, why),
                (None, None) => builder.missing(meaning, "it prints no valid number".to_string()),
            }
        };
        put("latency_mean", section.mean, None);
        if let Some(deviation) = section.deviation {
            put("latency_deviation", Some(deviation), None);
        }
        for (name, value) in &section.marks {
            match name.as_str() {
                "<MAX>" => put("latency_max", *value, None),
                "<MIN>" => put("latency_min", *value, None),
                percent => {
                    let at = percentile_name("latency", percent).zip(percent.parse::<f64>().ok());
                    let Some((metric, at)) = at else { continue };
                    let printed =
                        value.map_or("nothing".to_string(), |value| format!("{} µs", value * times));
                    let why = match section.observations {
                        Some(_) => too_few_beyond(at, section.observations, &printed),
                        None => Some("its number of observations is unknown".to_string()),
                    };
                    put(&metric, *value, why);
                }
            }
        }
        if self.begun && section.marks.is_empty() {
            let why = "its percentiles are missing: the text ended before them";
            put("latency_p50", None, Some(why.to_string()));
        }
        let named = ["dropped", "duplicated", "out of order"].into_iter().zip(section.lost);
        let lost = named.filter_map(|(name, count)| Some((name, count.filter(|count| *count > 0.0)?)));
        let lost: Vec<String> = lost.map(|(name, count)| format!("{count} {name}")).collect();
        if !lost.is_empty() {
            builder.remarks.push(format!("messages with errors: {}", lost.join(", ")));
        }
    }

    /// What throughput sent: what arrived is unknown.
    fn sent(&self, builder: &mut Builder) {
        let mut notes = self.notes();
        notes.push(if self.giga {
            "counted at the sender; its GBps are 1000 times 2^20 bytes".to_string()
        } else {
            "counted at the sender; its MBps are 2^20 bytes".to_string()
        });
        let rate = self.rate.filter(|rate| *rate > 0.0);
        let times = if self.giga { 1e3 } else { 1.0 };
        let bytes_a_second = self.bandwidth.map(|bandwidth| bandwidth * times * f64::from(1u32 << 20));
        // The rate and the bandwidth give the size, where their digits are enough for that.
        let derived = rate.zip(bytes_a_second).map(|(rate, bytes)| bytes / rate).filter(|size| {
            (size - size.round()).abs() < 0.02
                && *size >= 1.0
                && *size < 1e7
                && !self.giga
                && self.bandwidth.is_some_and(|one| one >= 1.0)
        });
        // Gigabytes are printed with few digits: the messages and their size have more.
        let counted = rate.zip(self.bytes()).map(|(rate, bytes)| rate * f64::from(bytes));
        let bytes_a_second = bytes_a_second.map(|printed| counted.filter(|_| self.giga).unwrap_or(printed));
        let sized = Run { size: self.size.or(derived.map(|size| size.round() as u32)), ..self.clone() };
        if self.size.is_none() && self.command.is_none() && derived.is_some() {
            notes.push("the message size follows from rate and bandwidth".to_string());
        }
        let metric = if self.protocol() == "tcp" { "bandwidth" } else { "sent" };
        let failed = || {
            self.failed
                .clone()
                .unwrap_or_else(|| "it printed none: the run, or the text, ended before a result".to_string())
        };
        let put = |metric: &str, unit: &'static str, value: Option<f64>, builder: &mut Builder| {
            let Some(keyed) = sized.keyed("throughput", None, metric) else { return };
            let meaning = meaning(keyed, metric, unit, Better::Higher, &notes);
            match value {
                Some(value) => builder.value(meaning, value),
                None => builder.missing(meaning, short(&failed())),
            }
        };
        put(metric, "Gbit/s", bytes_a_second.map(|bytes| bytes * 8.0 / 1e9), builder);
        put("message_rate", "1/s", rate, builder);
    }
}
