//! What sockperf's client prints: ping-pong and under-load (latencies), and throughput (what was
//! sent).
//!
//! Its "latency" is half of a round trip, us, unless it ran with `--full-rtt`; here it is doubled,
//! which makes its percentiles those of the round trip. Its "MBps" are 2^20 bytes a second, and its
//! "Mbps" eight times that (`--giga-size`: thousands of them). Its text does not give the mode, and
//! the size of messages only in places: what is not given stays out of the key.

mod figures;
mod lines;
#[cfg(test)]
mod tests;

use lines::{Line, command};

use super::above::{folder, marked, prompt};
use super::builder::{Builder, number};
use super::faults::Faults;
use super::kit::commands::{ShellLine, Step, place};
use super::kit::context::{APART, ContextTracker, RunContext, is_time, says};
use super::kit::headlines;
use super::{Format, Imported, Tool, keyed};
use figures::meaning;
use model::Better;

pub(crate) const TOOL: Tool = Tool::of("sockperf", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("sockperf result");

/// More runs in one file are a mistake or an attack.
const MAX_RUNS: usize = 200;
/// Remarks of one kind that are quoted.
const QUOTED: usize = 10;

/// Whether a text is what sockperf printed.
fn is_one(text: &str) -> bool {
    text.lines().any(lines::begins)
}

/// The figures of one server's messages.
#[derive(Clone, Debug, Default)]
struct Section {
    server: u32,
    sent: Option<f64>,
    received: Option<f64>,
    /// The whole round trip and not half of it.
    round: bool,
    mean: Option<f64>,
    deviation: Option<f64>,
    observations: Option<f64>,
    /// `99.999` and us; `<MAX>`, `<MIN>`.
    marks: Vec<(String, Option<f64>)>,
    lost: [Option<f64>; 3],
}

/// One run of the client.
#[derive(Clone, Debug, Default)]
struct Run {
    preamble: Preamble,
    command: Option<lines::Options>,
    version: String,
    /// The server's address.
    peer: String,
    tcp: Option<bool>,
    loopback: bool,
    size: Option<u32>,
    sections: Vec<Section>,
    rate: Option<f64>,
    /// MBps, or thousands of them.
    bandwidth: Option<f64>,
    giga: bool,
    /// The pace in its text.
    mps: Option<f64>,
    /// It printed that it could not, in these words.
    failed: Option<String>,
    interrupted: bool,
    server: bool,
    throughput: bool,
    /// Percentiles were promised and have not come.
    begun: bool,
}

/// The text above a run: its host and what it is of.
#[derive(Clone, Debug, Default)]
struct Preamble {
    heading: String,
    context: RunContext,
}

/// What is said of all that was read.
#[derive(Default)]
struct Leftovers {
    warnings: Vec<String>,
    others: usize,
    left_out: usize,
}

/// The results in a text, one for each host and heading, and for what else distinguishes runs that
/// would be of one series.
fn read(text: &str) -> Vec<Imported> {
    let (runs, said) = runs(text);
    let mut results: Vec<Vec<Run>> = Vec::new();
    for run in runs {
        let fits = |own: &[Run]| own.iter().all(|other| other.is_under(&run) && !other.is_apart(&run));
        let place = |alike: bool| {
            let is_alike = |own: &[Run]| !alike || own.iter().any(|other| other.is_told_as(&run));
            results.iter().position(|own| fits(own) && is_alike(own))
        };
        match place(true).or_else(|| place(false)).and_then(|place| results.get_mut(place)) {
            Some(own) => own.push(run),
            None => results.push(vec![run]),
        }
    }
    let several = results.len() > 1;
    let mut all: Vec<Imported> = Vec::new();
    for runs in &results {
        let first = all.is_empty().then_some(&said);
        let again = results.iter().map(|own| &own[0]).filter(|own| own.is_under(&runs[0]));
        let again: Vec<&RunContext> = again.map(|own| &own.preamble.context).collect();
        all.push(result(runs, several, &again, first));
    }
    all
}

/// The runs in a text. An unknown line behind a run that is through heads what follows.
fn runs(text: &str) -> (Vec<Run>, Leftovers) {
    let mut runs: Vec<Run> = Vec::new();
    let mut pending: Option<lines::Options> = None;
    let mut is_loop = false;
    let (mut preamble, mut said, mut tracker) =
        (Preamble::default(), Leftovers::default(), ContextTracker::default());
    for line in text.lines() {
        let found = command(line);
        let shown = prompt(line);
        if shown.is_some() || found.is_some() {
            let (host, text) = shown.unwrap_or((None, line));
            let typed = ShellLine::new(host, folder(line), text, &|words| place(words, "sockperf"));
            is_loop = matches!(typed.steps.first(), Some(Step::Loop(_)));
            tracker.typed(typed, line);
        }
        if let Some(found) = found {
            pending = Some(found);
            continue;
        }
        let parsed = lines::line(line);
        let mut head = |version: String| {
            preamble.context = tracker.begin();
            // Each turn of a loop has a command of its own.
            let shown = preamble.context.command.as_ref().filter(|_| is_loop);
            let turn = shown.and_then(|shown| command(&format!("sockperf {}", shown.words.join(" "))));
            let command = turn.or(pending.take());
            Run { version, command, preamble: preamble.clone(), ..Run::default() }
        };
        if let Line::Version(version) = &parsed {
            if runs.len() >= MAX_RUNS {
                said.left_out += 1;
                continue;
            }
            runs.push(head(version.clone()));
            continue;
        }
        if said.left_out > 0 || parsed == Line::Nothing {
            continue;
        }
        let begins = match runs.last() {
            Some(run) => run.has(&parsed),
            None => !matches!(parsed, Line::Other(_)),
        };
        if begins && runs.len() < MAX_RUNS {
            // The head is not there: it was pasted without.
            runs.push(head(String::new()));
        }
        match parsed {
            Line::Other(text) => {
                let title = marked(&text).or_else(|| {
                    let behind = runs.last().is_some_and(Run::is_through) && prompt(&text).is_none();
                    (behind && text.contains(char::is_alphabetic))
                        .then(|| text.trim_start_matches('#').trim().to_string())
                });
                match title.filter(|title| says(title) && !is_time(title)) {
                    Some(title) => preamble.heading = title,
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

/// One result, of `several`, `again` of its host and heading; the first has the remarks on the
/// whole text (`said`).
fn result(runs: &[Run], several: bool, again: &[&RunContext], said: Option<&Leftovers>) -> Imported {
    let (first, preamble) = (&runs[0], &runs[0].preamble);
    let mut builder = Builder::new(FORMAT, &preamble.context.host);
    let mut faults = Faults::default();
    if several {
        builder.fact("heading", &preamble.heading);
    }
    if again.len() > 1 {
        let server = if first.peer.is_empty() { String::new() } else { format!("server {}", first.peer) };
        let parts = [preamble.context.apart(again), server];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        builder.fact(APART, &parts.join("; "));
    }
    let halved = runs.iter().flat_map(|run| &run.sections).any(|section| !section.round);
    builder.remarks.push(if halved { "sockperf prints half of a round trip, which Assay doubles; it reports neither where its tasks ran nor all of its settings"
            .to_string() } else { "sockperf reports neither where its tasks ran nor all of its settings".to_string() });
    let servers = runs.iter().filter(|run| run.server).count();
    for run in runs.iter().filter(|run| !run.server) {
        builder.fact("sockperf", &run.version);
        run.figures(&mut builder, &mut faults);
    }
    let none = Leftovers::default();
    let Leftovers { warnings, others, left_out } = said.unwrap_or(&none);
    let more = warnings.len().saturating_sub(QUOTED);
    builder.remarks.extend(warnings.iter().take(QUOTED).map(|text| format!("it says {text:?}")));
    for (count, words) in [
        (more, "more such lines"),
        (servers, "logs of servers have no results"),
        (
            *others,
            number(
                *others,
                "line is not part of sockperf's results",
                "lines are not part of sockperf's results",
            ),
        ),
        (*left_out, "runs were left out: the file has too many"),
    ] {
        if count > 0 {
            builder.remarks.push(format!("{count} {words}"));
        }
    }
    if builder.is_empty() {
        let why =
            "it has only a server's log, or the beginning of a client's: import the client's whole output";
        if let Some(keyed) = keyed("network.round-trip@free#latency_p50") {
            builder.missing(meaning(keyed, "latency", "us", Better::Lower, &[]), why.to_string());
        }
    }
    let mut imported = Imported { findings: faults.findings(), ..builder.finish() };
    headlines(&mut imported, &["latency_p50", "sent", "bandwidth"]);
    imported
}

impl Run {
    /// Whether its figures are there, so that what follows is none of it.
    fn is_through(&self) -> bool {
        self.bandwidth.is_some()
            || self.failed.is_some()
            || self.sections.iter().any(|section| !section.marks.is_empty())
    }

    /// Whether it is of the same host, under the same heading.
    fn is_under(&self, other: &Run) -> bool {
        self.preamble.context.host == other.preamble.context.host
            && self.preamble.heading == other.preamble.heading
    }

    /// Whether both may be of one series, and their contexts differ.
    fn is_apart(&self, other: &Run) -> bool {
        let has_figures =
            |run: &Run| !run.sections.is_empty() || run.rate.is_some() || run.bandwidth.is_some();
        let special = |run: &Run| run.command.as_ref().map_or(Vec::new(), |command| command.special.clone());
        let mode = self.mode().zip(other.mode()).is_none_or(|(own, other)| own == other);
        let same = mode
            && (self.protocol(), self.bytes(), self.throughput)
                == (other.protocol(), other.bytes(), other.throughput)
            && special(self) == special(other);
        same && has_figures(self) && has_figures(other) && !self.is_told_as(other)
    }

    /// Whether both have the same context, or one has none.
    fn is_told_as(&self, other: &Run) -> bool {
        let agree = |own: &str, other: &str| own.is_empty() || other.is_empty() || own == other;
        !self.preamble.context.is_apart(&other.preamble.context, true)
            && agree(&self.version, &other.version)
            && agree(&self.peer, &other.peer)
    }

    /// Whether it has what a line says, which so is of another run.
    fn has(&self, line: &Line) -> bool {
        match line {
            Line::Server(server) => self.sections.iter().any(|section| section.server == *server),
            Line::Rate(_) => self.rate.is_some() && self.bandwidth.is_some(),
            _ => false,
        }
    }

    fn take(&mut self, line: Line) {
        if let Line::Server(server) = line {
            return self.sections.push(Section { server, ..Section::default() });
        }
        let section = self.sections.last_mut();
        match line {
            Line::Client => self.server = false,
            Line::Listens => self.server = true,
            Line::Peer { address, tcp, loopback } => {
                if self.peer.is_empty() {
                    self.peer = address;
                }
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
        self.size.or(self.command.as_ref().and_then(|command| command.size))
    }
}
