//! ntttcp for Linux, from either end: what a sender says is what it sent, what a receiver says is
//! what arrived.

use super::builder::Builder;
use super::faults::Faults;
use super::kit::{
    Expression, Figures, Hit, Log, Metric, Pattern, Results, Run, Table, log, metric, said_again,
};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, begins, ignored, once};
use model::Better;
use model::vocabulary::network as ids;

pub(crate) const TOOL: Tool = Tool::of("ntttcp for Linux", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("ntttcp result");
const REMARK: &str = "ntttcp does not report where its threads ran; its CPU figures are of the whole host";
const VALUED: [&str; 14] =
    ["-m", "-t", "-W", "-C", "-P", "-n", "-l", "-p", "-f", "-b", "-O", "-x", "-j", "-a"];
const FLAGS: [&str; 8] = ["-r", "-s", "-V", "-Q", "-u", "-6", "-N", "--show-tcp-retrans"];

pub(crate) const LINES: &[Pattern] = &[
    begins("begin", r"NTTTCP for Linux (?<value>[\d.]+)"),
    once("role", r"\*\*\* (?<value>sender|receiver) role"),
    once("protocol", r"protocol:\s+(?<value>TCP|UDP)"),
    once("bytes", r"(?:sender|receiver) socket buffer \(bytes\):\s+(?<value>\d+)"),
    once("to", r"server address:\s+(?<value>\S+)"),
    adds("created", r"(?:[\d:]{8} )?INFO: (?<value>\d+) connections (?:created in \d+ microseconds|tested)"),
    adds("moment", r"Real-time throughput: (?<value>[\d.]+)(?<value_unit>[KMGT]?)bps"),
    adds("thread", r"(?:[\d:]{8} )?INFO: \t\d+\t *[\d.]+\t *(?<value>[\d.]+)(?<value_unit>[KMGT]?)bps"),
    once("time", r"(?:[\d:]{8} )?INFO: test duration\s*:(?<value>[\d.]+) seconds"),
    once("amount", r"(?:[\d:]{8} )?INFO: total bytes\s*:(?<value>\d+)"),
    once("rate", r"(?:[\d:]{8} )?INFO: \s*throughput\s*:(?<value>[\d.]+)(?<value_unit>[KMGT]?)bps"),
    once("retrans", r"(?:[\d:]{8} )?INFO: \s*retrans segs\s*:(?<value>\d+)"),
    once("cycles", r"(?:[\d:]{8} )?INFO: \s*cycles/byte\s*:(?<value>[\d.]+)"),
    once("cpus", r"(?:[\d:]{8} )?INFO: cpu cores\s*:(?<value>\d+)"),
    once("clock", r"(?:[\d:]{8} )?INFO: \s*cpu speed\s*:(?<value>[\d.]+MHz)"),
    once("idle", r"(?:[\d:]{8} )?INFO: \s*idle\s*:(?<value>[\d.]+)%"),
    once("rtt", r"(?:[\d:]{8} )?INFO: tcpi rtt\s*:(?<value>\d+) us"),
    adds("died", r"(?:[\d:]{8} )?(?:INFO|ERR ?): (?<value>failed to .*|cannot .*)"),
    ignored(r"(?:[\d:]{8} )?(?:INFO|DBG ?|ERR ?): .*|-{20,}"),
    ignored(
        r"(?:ports|connections|cpu affinity|client address|domain|tcp nodelay|quiet mode|verbose mode|show system tcp retransmit|server port starting at|test (?:warm-up|duration|cool-down) \(sec\)):\s+.*",
    ),
];

static TABLE: Table = Table::new(LINES);

fn is_one(text: &str) -> bool {
    static MARK: Expression =
        Expression::new(r"(?m)^\s*(?:NTTTCP for Linux [\d.]+|(?:[\d:]{8} )?INFO: #####  Totals:  #####)\s*$");
    (text.contains("NTTTCP for Linux") || text.contains("#####  Totals:")) && MARK.is_match(text)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "ntttcp", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    for run in &log.runs {
        let own = |name: &str| run.text(name).unwrap_or_default().to_string();
        let command = run.command.clone().unwrap_or_default();
        let facts = vec![
            ("ntttcp", own("begin")),
            ("options", command.without(&VALUED, &FLAGS)),
            ("to", own("to")),
            ("cpus", own("cpus")),
            ("?clock", own("clock")),
        ];
        if let Some((builder, faults)) = results.of(run, facts, false) {
            figures(run, builder, faults);
        }
    }
    results.finish_with(&log, &["bandwidth", "sent"])
}

const METRICS: &[Metric] = &[
    metric("bandwidth", "Gbit/s", Better::Higher),
    metric("sent", "Gbit/s", Better::Neither),
    metric("stream_bandwidth", "Gbit/s", Better::Neither),
    metric("stream_sent", "Gbit/s", Better::Neither),
    metric("interval_bandwidth", "Gbit/s", Better::Higher),
    metric("interval_sent", "Gbit/s", Better::Neither),
    metric("system_retransmits", "1/s", Better::Lower).noted("of the whole host, all senders"),
    metric("rtt_mean", "us", Better::Lower),
    metric("cycles_per_byte", "", Better::Lower).noted("of the whole host"),
    metric("cpu_busy", "", Better::Neither).noted("of the whole host"),
];

fn number(run: &Run, name: &str) -> Option<f64> {
    run.hit(name)?.number("value").map(|number| number.value)
}

/// Whether the text is a sender's, which lists its connections.
fn is_sender(run: &Run) -> bool {
    match run.text("role") {
        Some(role) => role == "sender",
        None => run.hit("created").is_some() || is_asked(run, "-s"),
    }
}

fn is_asked(run: &Run, option: &str) -> bool {
    run.command.as_ref().is_some_and(|command| command.words.iter().any(|word| word.starts_with(option)))
}

/// What stands in the keys of a run's figures.
fn keys<'b>(run: &Run, builder: &'b mut Builder) -> Figures<'b> {
    // Retransmitted segments are printed for TCP alone, by versions since 2020.
    let bench = match run.text("protocol") {
        Some("UDP") => ids::UDP.as_str(),
        Some(_) => ids::TCP.as_str(),
        None if is_asked(run, "-u") => ids::UDP.as_str(),
        None if run.hit("retrans").is_some() || run.command.is_some() => ids::TCP.as_str(),
        None => "ntttcp.untold",
    };
    let mut figures = Figures::new(builder, METRICS, "ntttcp", bench);
    figures.params.set("direction", if is_sender(run) { "send" } else { "receive" }.into());
    for (name, line) in [("streams", "created"), ("bytes", "bytes")] {
        figures.point(name, number(run, line).map(|value| value as i64));
    }
    if run.hit("bytes").is_none() {
        figures.note = "its write size is unknown".to_string();
    }
    figures
}

fn figures(run: &Run, builder: &mut Builder, faults: &mut Faults) {
    let mut figures = keys(run, builder);
    let metric = if is_sender(run) { "sent" } else { "bandwidth" };
    let bits = |hit: &Hit| hit.scaled("value", 1000.0);
    let rate = run.hit("rate").and_then(bits);
    match rate {
        Some(rate) => figures.moved(metric, rate.value / 1e9),
        None => return figures.unfinished(metric, run.text("died")),
    }
    // The last moment is of what was left.
    for (line, part) in [("thread", "stream"), ("moment", "interval")] {
        let all: Vec<f64> = run.all(line).filter_map(bits).map(|rate| rate.value / 1e9).collect();
        figures.each(&format!("{part}_{metric}"), &all);
    }
    let time = number(run, "time").filter(|time| *time > 0.0);
    figures.some("system_retransmits", number(run, "retrans").zip(time).map(|(count, time)| count / time));
    figures.some("rtt_mean", number(run, "rtt"));
    figures.some("cycles_per_byte", number(run, "cycles"));
    // What it calls busy does not agree with the shares above it.
    if let Some(percent) = number(run, "idle") {
        let is_share = percent <= 100.0;
        let untrue = || format!("it says that {percent} % were idle");
        figures.put("cpu_busy", is_share.then(|| 1.0 - percent / 100.0).ok_or_else(untrue));
    }
    let amount = run.hit("amount").and_then(|hit| hit.number("value"));
    let time = run.hit("time").and_then(|hit| hit.number("value"));
    faults.rate("throughput", [rate, amount.map(|bytes| bytes.times(8.0)), time], |rate, bits, time| {
        format!("it says {:.3} Gbit/s; {} bytes in {time} s is another rate", rate / 1e9, bits / 8.0)
    });
}
