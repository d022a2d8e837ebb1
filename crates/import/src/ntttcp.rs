//! ntttcp for Linux, from either end: what a sender says is what it sent, what a receiver says is
//! what arrived.

use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning};
use super::kit::{Does, Log, Results, Run, Table, headlines, line, log, said_again, scale};
use super::own::{Against, short};
use super::{Format, Imported, Tool, keyed};
use crate::kit::Pattern;
use model::{Better, Value};

pub(crate) const TOOL: Tool = Tool {
    files: "results of ntttcp for Linux",
    json: &[],
    documented: false,
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("ntttcp result");
const REMARK: &str = "ntttcp does not tell where its threads ran; its CPU figures are of the whole host";
const VALUED: [&str; 14] =
    ["-m", "-t", "-W", "-C", "-P", "-n", "-l", "-p", "-f", "-b", "-O", "-x", "-j", "-a"];
const FLAGS: [&str; 8] = ["-r", "-s", "-V", "-Q", "-u", "-6", "-N", "--show-tcp-retrans"];

pub(crate) const LINES: &[Pattern] = &[
    line("begin", Does::Begins, r"NTTTCP for Linux (?<value>[\d.]+)"),
    line("role", Does::Once, r"\*\*\* (?<value>sender|receiver) role"),
    line("protocol", Does::Once, r"protocol:\s+(?<value>TCP|UDP)"),
    line("bytes", Does::Once, r"(?:sender|receiver) socket buffer \(bytes\):\s+(?<value>\d+)"),
    line("to", Does::Once, r"server address:\s+(?<value>\S+)"),
    line(
        "created",
        Does::Adds,
        r"(?:[\d:]{8} )?INFO: (?<value>\d+) connections (?:created in \d+ microseconds|tested)",
    ),
    line("moment", Does::Adds, r"Real-time throughput: (?<value>[\d.]+)(?<value_unit>[KMGT]?)bps"),
    line(
        "thread",
        Does::Adds,
        r"(?:[\d:]{8} )?INFO: \t\d+\t *[\d.]+\t *(?<value>[\d.]+)(?<value_unit>[KMGT]?)bps",
    ),
    line("time", Does::Once, r"(?:[\d:]{8} )?INFO: test duration\s*:(?<value>[\d.]+) seconds"),
    line("amount", Does::Once, r"(?:[\d:]{8} )?INFO: total bytes\s*:(?<value>\d+)"),
    line(
        "rate",
        Does::Once,
        r"(?:[\d:]{8} )?INFO: \s*throughput\s*:(?<value>[\d.]+)(?<value_unit>[KMGT]?)bps",
    ),
    line("retrans", Does::Once, r"(?:[\d:]{8} )?INFO: \s*retrans segs\s*:(?<value>\d+)"),
    line("cycles", Does::Once, r"(?:[\d:]{8} )?INFO: \s*cycles/byte\s*:(?<value>[\d.]+)"),
    line("cpus", Does::Once, r"(?:[\d:]{8} )?INFO: cpu cores\s*:(?<value>\d+)"),
    line("clock", Does::Once, r"(?:[\d:]{8} )?INFO: \s*cpu speed\s*:(?<value>[\d.]+MHz)"),
    line("idle", Does::Once, r"(?:[\d:]{8} )?INFO: \s*idle\s*:(?<value>[\d.]+)%"),
    line("rtt", Does::Once, r"(?:[\d:]{8} )?INFO: tcpi rtt\s*:(?<value>\d+) us"),
    line("died", Does::Adds, r"(?:[\d:]{8} )?(?:INFO|ERR ?): (?<value>failed to .*|cannot .*)"),
    line("rest", Does::Nothing, r"(?:[\d:]{8} )?(?:INFO|DBG ?|ERR ?): .*|-{20,}"),
    line(
        "rest",
        Does::Nothing,
        r"(?:ports|connections|cpu affinity|client address|domain|tcp nodelay|quiet mode|verbose mode|show system tcp retransmit|server port starting at|test (?:warm-up|duration|cool-down) \(sec\)):\s+.*",
    ),
];

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(LINES));

fn is_one(text: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^\s*(?:NTTTCP for Linux [\d.]+|(?:[\d:]{8} )?INFO: #####  Totals:  #####)\s*$")
            .expect("a pattern that a test tries")
    });
    (text.contains("NTTTCP for Linux") || text.contains("#####  Totals:")) && MARK.is_match(text)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "ntttcp", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    for run in &log.runs {
        let own = |name: &str| run.text(name).unwrap_or_default().to_string();
        let asked = run.asked.clone().unwrap_or_default();
        let facts = vec![
            ("ntttcp", own("begin")),
            ("options", asked.without(&VALUED, &FLAGS)),
            ("to", own("to")),
            ("cpus", own("cpus")),
            ("?clock", own("clock")),
        ];
        if let Some((builder, against)) = results.of(run, facts, false) {
            figures(run, builder, against);
        }
    }
    let mut results = results.finish(&log);
    results.iter_mut().for_each(|one| headlines(one, &["bandwidth", "sent"]));
    results
}

fn figures(run: &Run, builder: &mut Builder, against: &mut Against) {
    let asked = run.asked.as_ref();
    let is_asked =
        |option: &str| asked.is_some_and(|asked| asked.words.iter().any(|word| word.starts_with(option)));
    // A sender tells its connections.
    let sends = match run.text("role") {
        Some(role) => role == "sender",
        None => run.hit("created").is_some() || is_asked("-s"),
    };
    // Segments that were sent again are told of TCP alone, by versions since 2020.
    let protocol = match run.text("protocol") {
        Some("UDP") => "udp",
        Some(_) => "tcp",
        None if is_asked("-u") => "udp",
        None if run.hit("retrans").is_some() || asked.is_some() => "tcp",
        None => "untold",
    };
    let bench = match protocol {
        "untold" => "ntttcp.untold".to_string(),
        protocol => format!("network.{protocol}"),
    };
    let number = |name: &str| run.hit(name).and_then(|hit| hit.number("value")).map(|number| number.value);
    let mut put = |metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
        let Some(mut keyed) = keyed(&format!("{bench}@free#{metric}")) else { return };
        keyed.case.params.set("direction", Value::Text(if sends { "send" } else { "receive" }.into()));
        for (name, value) in [("streams", number("created")), ("bytes", number("bytes"))] {
            if let Some(value) = value {
                keyed.point.set(name, Value::Int(value as i64));
            }
        }
        let note = match metric {
            "system_retransmits" => "of the host, whoever sent them",
            "cpu_busy" | "cycles_per_byte" => "of the whole host",
            _ if run.hit("bytes").is_none() => "how much it wrote at once is not told",
            _ => "",
        };
        let wording = format!("ntttcp {}", metric.replace('_', " "));
        let meaning = Meaning { keyed, wording, unit: unit.into(), better, note: note.to_string() };
        match value {
            Ok(value) => builder.value(meaning, value),
            Err(why) => builder.missing(meaning, why),
        }
    };
    let (metric, better) = if sends { ("sent", Better::Neither) } else { ("bandwidth", Better::Higher) };
    let rate = run.hit("rate").and_then(|hit| hit.scaled("value", 1000.0));
    match rate {
        Some(rate) if rate.value > 0.0 => put(metric, "Gbit/s", better, Ok(rate.value / 1e9)),
        Some(_) => put(metric, "Gbit/s", better, Err("it prints 0: nothing went over".to_string())),
        None => {
            let why = run.text("died").unwrap_or("the run, or the text, ended before a result");
            let why = format!("started, no test finished: {}", short(why));
            return put(metric, "Gbit/s", better, Err(why));
        }
    }
    let bits = |hit: &crate::kit::Hit| {
        let unit = hit.text("value_unit").unwrap_or_default();
        hit.number("value").map(|value| value.value * scale(unit, 1000.0) / 1e9)
    };
    let threads: Vec<f64> = run.all("thread").filter_map(bits).collect();
    for value in threads.iter().take(200).filter(|_| threads.len() > 1) {
        put(&format!("stream_{metric}"), "Gbit/s", Better::Neither, Ok(*value));
    }
    // The last one is of what was left of a moment.
    let moments: Vec<f64> = run.all("moment").filter_map(bits).collect();
    for value in moments.iter().take(200).filter(|_| moments.len() > 1) {
        put(&format!("interval_{metric}"), "Gbit/s", better, Ok(*value));
    }
    if let Some((count, time)) = number("retrans").zip(number("time").filter(|time| *time > 0.0)) {
        put("system_retransmits", "1/s", Better::Lower, Ok(count / time));
    }
    if let Some(us) = number("rtt") {
        put("rtt_mean", "us", Better::Lower, Ok(us));
    }
    if let Some(cycles) = number("cycles") {
        put("cycles_per_byte", "", Better::Lower, Ok(cycles));
    }
    // What it calls busy does not agree with the shares above it.
    if let Some(percent) = number("idle") {
        match percent <= 100.0 {
            true => put("cpu_busy", "", Better::Neither, Ok(1.0 - percent / 100.0)),
            false => put("cpu_busy", "", Better::Neither, Err(format!("it says that {percent} % were idle"))),
        }
    }
    let amount = run.hit("amount").and_then(|hit| hit.number("value"));
    let time = run.hit("time").and_then(|hit| hit.number("value"));
    against.rate("throughput", [rate, amount.map(|bytes| bytes.times(8.0)), time], |rate, bits, time| {
        format!("it says {:.3} Gbit/s; {} bytes in {time} s is another rate", rate / 1e9, bits / 8.0)
    });
}
