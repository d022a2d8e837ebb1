//! What sockperf's client prints: ping-pong and under-load (latencies), and throughput (what was
//! sent).
//!
//! Its "latency" is half of a round trip, us, unless it ran with `--full-rtt`; here it is doubled,
//! which makes its percentiles those of the round trip. Its "MBps" are 2^20 bytes a second, and its
//! "Mbps" eight times that (`--giga-size`: thousands of them). Its text does not tell the mode, and
//! the size of messages only in places: what is not told stays out of the key.

use model::vocabulary::network as ids;
mod lines;
#[cfg(test)]
mod tests;

use lines::{Line, Number, command};

use super::above::{marked, prompt};
use super::builder::{Builder, Meaning};
use super::kit::headlines;
use super::own::{Against, percentile_name, short, too_few_beyond};
use super::{Format, Imported, Keyed, Tool, keyed};
use model::{Better, Value};

pub(crate) const TOOL: Tool =
    Tool { files: "results of sockperf", json: &[], is_one, read: |text| Ok(read(text)) };

const FORMAT: Format = Format("sockperf result");

/// More runs in one file are a mistake or an attack.
const MOST_RUNS: usize = 200;
/// Remarks of one kind that are quoted.
const QUOTED: usize = 10;

/// Whether a text is what sockperf printed.
fn is_one(text: &str) -> bool {
    text.lines().any(lines::begins)
}

/// What is told of the messages of one server.
#[derive(Clone, Debug, Default)]
struct Section {
    server: u32,
    sent: Option<Number>,
    received: Option<Number>,
    /// The whole round trip and not half of it.
    round: bool,
    mean: Option<Number>,
    deviation: Option<Number>,
    observations: Option<Number>,
    /// `99.999` and us; `<MAX>`, `<MIN>`.
    marks: Vec<(String, Option<Number>)>,
    lost: [Option<Number>; 3],
}

/// One run of the client.
#[derive(Clone, Debug, Default)]
struct Run {
    around: Around,
    command: Option<lines::Command>,
    version: String,
    tcp: Option<bool>,
    loopback: bool,
    size: Option<u32>,
    sections: Vec<Section>,
    rate: Option<Number>,
    /// MBps, or thousands of them.
    bandwidth: Option<Number>,
    giga: bool,
    /// A pace that its text tells.
    mps: Option<Number>,
    /// It printed that it could not, in these words.
    failed: Option<String>,
    interrupted: bool,
    server: bool,
    throughput: bool,
    /// Percentiles were promised and have not come.
    begun: bool,
}

/// What a text tells of where a run was and what it is of.
#[derive(Clone, Debug, Default, PartialEq)]
struct Around {
    host: String,
    heading: String,
}

/// What is said of all that was read.
#[derive(Default)]
struct Said {
    warnings: Vec<String>,
    others: usize,
    left_out: usize,
}

/// The results in a text, one for each host and heading.
fn read(text: &str) -> Vec<Imported> {
    let (runs, said) = runs(text);
    let mut results: Vec<(Around, Vec<Run>)> = Vec::new();
    for run in runs {
        match results.iter_mut().find(|(around, _)| *around == run.around) {
            Some((_, own)) => own.push(run),
            None => results.push((run.around.clone(), vec![run])),
        }
    }
    let several = results.len() > 1;
    let mut all: Vec<Imported> = Vec::new();
    for (around, runs) in results {
        let first = all.is_empty().then_some(&said);
        all.push(result(&around, &runs, several, first));
    }
    all
}

/// The runs in a text. A line that nobody knows behind a run that is through heads what follows.
fn runs(text: &str) -> (Vec<Run>, Said) {
    let mut runs: Vec<Run> = Vec::new();
    let mut pending: Option<lines::Command> = None;
    let (mut around, mut said) = (Around::default(), Said::default());
    for line in text.lines() {
        if let Some((host, _)) = prompt(line) {
            around.host = host.unwrap_or(around.host);
        }
        if let Some(found) = command(line) {
            pending = Some(found);
            continue;
        }
        let parsed = lines::line(line);
        let head = |pending: &mut Option<lines::Command>, around: &Around, version: String| Run {
            version,
            command: pending.take(),
            around: around.clone(),
            ..Run::default()
        };
        if let Line::Version(version) = &parsed {
            if runs.len() >= MOST_RUNS {
                said.left_out += 1;
                continue;
            }
            runs.push(head(&mut pending, &around, version.clone()));
            continue;
        }
        if said.left_out > 0 || parsed == Line::Nothing {
            continue;
        }
        if runs.is_empty() && !matches!(parsed, Line::Other(_)) {
            // The head is not there: it was pasted without.
            runs.push(head(&mut pending, &around, String::new()));
        }
        match parsed {
            Line::Other(text) => {
                let title = marked(&text).or_else(|| {
                    let behind = runs.last().is_some_and(Run::is_through) && prompt(&text).is_none();
                    (behind && text.contains(char::is_alphabetic))
                        .then(|| text.trim_start_matches('#').trim().to_string())
                });
                match title {
                    Some(title) => around.heading = title,
                    None => said.others += 1,
                }
            }
            Line::Warning(text) => said.warnings.push(text),
            line => {
                if let Some(run) = runs.last_mut() {
                    run.take(line);
                }
            }
        }
    }
    (runs, said)
}

/// One result; what is `said` of the whole text stands in the first.
fn result(around: &Around, runs: &[Run], several: bool, said: Option<&Said>) -> Imported {
    let mut builder = Builder::new(FORMAT, &around.host);
    let mut against = Against::default();
    if several {
        builder.fact("heading", &around.heading);
    }
    let halved = runs.iter().flat_map(|run| &run.sections).any(|section| !section.round);
    builder.remarks.push(match halved {
        true => "sockperf's latency is half of a round trip and stands here doubled; it tells neither where its tasks ran nor all of its \
                 settings"
            .to_string(),
        false => "sockperf tells neither where its tasks ran nor all of its settings".to_string(),
    });
    let servers = runs.iter().filter(|run| run.server).count();
    for run in runs.iter().filter(|run| !run.server) {
        builder.fact("sockperf", &run.version);
        run.figures(&mut builder, &mut against);
    }
    let none = Said::default();
    let Said { warnings, others, left_out } = said.unwrap_or(&none);
    let more = warnings.len().saturating_sub(QUOTED);
    builder.remarks.extend(warnings.iter().take(QUOTED).map(|text| format!("it says {text:?}")));
    for (count, words) in [
        (more, "more such lines"),
        (servers, "logs of servers have no results"),
        (*others, "lines are none of sockperf's results"),
        (*left_out, "runs were left out: the file has too many"),
    ] {
        if count > 0 {
            builder.remarks.push(format!("{count} {words}"));
        }
    }
    if builder.is_empty() {
        let why = "the file has the log of a server, or the begin of a client's: no result";
        if let Some(keyed) = keyed("network.round-trip@free#latency_p50") {
            builder.missing(meaning(keyed, "latency", "us", Better::Lower, &[]), why.to_string());
        }
    }
    let mut imported = Imported { findings: against.findings(), ..builder.finish() };
    headlines(&mut imported, &["latency_p50", "sent", "bandwidth"]);
    imported
}

fn meaning(keyed: Keyed, wording: &str, unit: &'static str, better: Better, notes: &[String]) -> Meaning {
    Meaning {
        keyed,
        wording: format!("sockperf {wording}"),
        unit: unit.into(),
        better,
        note: notes.join("; "),
    }
}

impl Run {
    /// Whether its figures are there, so that what follows is none of it.
    fn is_through(&self) -> bool {
        self.bandwidth.is_some()
            || self.failed.is_some()
            || self.sections.iter().any(|section| !section.marks.is_empty())
    }

    fn take(&mut self, line: Line) {
        if let Line::Server(server) = line {
            return self.sections.push(Section { server, ..Section::default() });
        }
        let section = self.sections.last_mut();
        match line {
            Line::Client => self.server = false,
            Line::Listens => self.server = true,
            Line::Peer { tcp, loopback } => {
                self.tcp.get_or_insert(tcp);
                self.loopback |= loopback;
            }
            Line::Size { bytes, mps } => (self.size, self.mps) = (Some(bytes), mps.or(self.mps)),
            Line::Interrupted => self.interrupted = true,
            Line::Failed(text) => _ = self.failed.get_or_insert(text),
            Line::Begun => self.begun = true,
            Line::Throughput => self.throughput = true,
            Line::Rate(rate) => (self.throughput, self.rate) = (true, rate),
            Line::Bandwidth { rate, giga } => {
                (self.throughput, self.bandwidth, self.giga) = (true, rate, giga);
            }
            Line::Valid { sent, received } => {
                if let Some(section) = section {
                    (section.sent, section.received) = (sent, received);
                }
            }
            Line::Mean { round, mean, deviation } => {
                if let Some(section) = section {
                    (section.round, section.mean, section.deviation) = (round, mean, deviation);
                }
            }
            Line::Lost(counts) => {
                if let Some(section) = section {
                    section.lost = counts;
                }
            }
            Line::Observations(count) => {
                if let Some(section) = section {
                    section.observations = count;
                }
            }
            Line::Mark(name, value) => {
                if let Some(section) = section
                    && section.marks.len() < 100
                {
                    section.marks.push((name, value));
                }
            }
            _ => {}
        }
    }

    fn mode(&self) -> Option<&'static str> {
        self.command.as_ref().map(|command| command.mode)
    }

    fn protocol(&self) -> &'static str {
        match self.tcp.or(self.command.as_ref().map(|command| command.tcp)) {
            Some(true) => "tcp",
            Some(false) => "udp",
            None => "untold",
        }
    }

    fn bytes(&self) -> Option<u32> {
        // The default of all versions that have these modes is 14.
        self.size.or(self.command.as_ref().map(|command| command.size.unwrap_or(14)))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.loopback {
            notes.push("over loopback: what the kernel's stack does, and no network".to_string());
        }
        notes
    }

    fn figures(&self, builder: &mut Builder, against: &mut Against) {
        if self.interrupted {
            against.interrupted("Test end (interrupted by user)");
        }
        let sends = self.throughput || self.mode() == Some("throughput");
        if sends {
            return self.sent(builder);
        }
        for section in &self.sections {
            self.latencies(section, builder);
        }
        if self.sections.is_empty() {
            let why = self.failed.clone().unwrap_or_else(|| match self.interrupted {
                true => "started, no test finished: it was interrupted before there was a result".to_string(),
                false => "started, no test finished: the run, or the text, ended before".to_string(),
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
            keyed.case.params.set("mps", Value::Int(mps.value as i64));
        }
        if let Some(command) = &self.command {
            for (name, value) in &command.special {
                let text = value.parse().map_or_else(|_| Value::Text(value.clone()), Value::Int);
                keyed.case.params.set(name, text);
            }
        }
        Some(keyed)
    }

    fn latencies(&self, section: &Section, builder: &mut Builder) {
        let mut notes = self.notes();
        let all_answered =
            section.sent.zip(section.received).is_some_and(|(sent, received)| sent.value == received.value);
        let mode = match self.mode() {
            Some(mode) => mode,
            None if all_answered => {
                notes.push(
                    "the mode is not told: it may be under-load with every message answered".to_string(),
                );
                "ping-pong"
            }
            None => {
                notes.push(
                    "the mode is not told: not every message was answered, as under-load has it".to_string(),
                );
                "under-load"
            }
        };
        if self.bytes().is_none() {
            notes.push(
                "the size of messages is not told: 14 bytes, unless an option said otherwise".to_string(),
            );
        }
        if !section.round {
            notes.push("printed as half of it".to_string());
        }
        let times = if section.round { 1.0 } else { 2.0 };
        let server = (self.sections.len() > 1).then_some(section.server);
        let mut put = |metric: &str, value: Option<f64>, missing: Option<String>| {
            let Some(keyed) = self.keyed(mode, server, metric) else { return };
            let meaning = meaning(keyed, metric, "us", Better::Lower, &notes);
            match (value, missing) {
                (Some(value), None) => builder.value(meaning, value * times),
                (_, Some(why)) => builder.missing(meaning, why),
                (None, None) => builder.missing(meaning, "what it prints is no number".to_string()),
            }
        };
        put("latency_mean", section.mean.map(|number| number.value), None);
        if let Some(deviation) = section.deviation {
            put("latency_deviation", Some(deviation.value), None);
        }
        let observations = section.observations.map(|count| count.value);
        for (name, value) in &section.marks {
            let number = value.map(|number| number.value);
            match name.as_str() {
                "<MAX>" => put("latency_max", number, None),
                "<MIN>" => put("latency_min", number, None),
                percent => {
                    let (Some(metric), Ok(at)) =
                        (percentile_name("latency", percent), percent.parse::<f64>())
                    else {
                        continue;
                    };
                    let printed =
                        number.map_or("nothing".to_string(), |number| format!("{} µs", number * times));
                    let why = match observations {
                        Some(_) => too_few_beyond(at, observations, &printed),
                        None => Some("how many observations it is of is not told".to_string()),
                    };
                    put(&metric, number, why);
                }
            }
        }
        if self.begun && section.marks.is_empty() {
            put(
                "latency_p50",
                None,
                Some("its percentiles are not there: the text ended before".to_string()),
            );
        }
        let named = ["dropped", "duplicated", "out of order"].into_iter().zip(&section.lost);
        let lost: Vec<String> = named
            .filter_map(|(name, count)| {
                count.filter(|count| count.value > 0.0).map(|count| format!("{} {name}", count.value))
            })
            .collect();
        if !lost.is_empty() {
            builder.remarks.push(format!("of its messages {}", lost.join(", ")));
        }
    }

    /// What throughput sent: nobody knows what arrived.
    fn sent(&self, builder: &mut Builder) {
        let mut notes = self.notes();
        notes.push(match self.giga {
            true => "counted where it was sent; its GBps are 1000 times 2^20 bytes".to_string(),
            false => "counted where it was sent; its MBps are 2^20 bytes".to_string(),
        });
        let rate = self.rate.map(|rate| rate.value).filter(|rate| *rate > 0.0);
        let times = if self.giga { 1e3 } else { 1.0 };
        let bytes_a_second = self.bandwidth.map(|bandwidth| bandwidth.value * times * f64::from(1u32 << 20));
        // The rate and the bandwidth give the size, where their digits are enough for that.
        let derived = rate.zip(bytes_a_second).map(|(rate, bytes)| bytes / rate).filter(|size| {
            (size - size.round()).abs() < 0.02
                && *size >= 1.0
                && *size < 1e7
                && !self.giga
                && self.bandwidth.is_some_and(|one| one.value >= 1.0)
        });
        // Gigabytes are printed with few digits: the messages and their size have more.
        let counted = rate.zip(self.bytes()).map(|(rate, bytes)| rate * f64::from(bytes));
        let bytes_a_second = bytes_a_second.map(|printed| counted.filter(|_| self.giga).unwrap_or(printed));
        let sized = Run { size: self.size.or(derived.map(|size| size.round() as u32)), ..self.clone() };
        if self.size.is_none() && self.command.is_none() && derived.is_some() {
            notes.push("the size of messages is their rate's and bandwidth's".to_string());
        }
        let metric = if self.protocol() == "tcp" { "bandwidth" } else { "sent" };
        let failed = || {
            self.failed
                .clone()
                .unwrap_or_else(|| "it printed none: the run, or the text, ended before".to_string())
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
