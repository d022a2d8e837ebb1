//! qperf: bandwidth and latency over sockets and RDMA, a block of lines a test. Its MB and GB are
//! powers of ten; its latency is one way, half of a round trip.

use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning};
use super::kit::{Does, Hit, Log, Results, Run, Table, headlines, line, log, said_again};
use super::own::short;
use super::{Format, Imported, Tool, keyed};
use crate::kit::Pattern;
use model::vocabulary::network as ids;
use model::{Better, Value, units};

pub(crate) const TOOL: Tool =
    Tool { files: "results of qperf", json: &[], documented: false, is_one, read: |text| Ok(read(text)) };

const FORMAT: Format = Format("qperf result");
const REMARK: &str =
    "qperf tells three digits, and not where its two ends ran; the size of its messages it tells with -vv";
const HEADLINES: [&str; 3] = ["bandwidth", "latency_mean", "operations"];
/// What the names of tests begin with.
const PROTOCOLS: [&str; 10] = ["tcp", "udp", "sctp", "sdp", "rds", "rc", "uc", "ud", "xrc", "ver"];
const VALUED: [&str; 8] = ["-t", "--time", "-lp", "--listen_port", "-m", "--msg_size", "-to", "--timeout"];
const FLAGS: [&str; 14] = [
    "-u",
    "-uu",
    "-v",
    "-vv",
    "-vvs",
    "-vvu",
    "-vvc",
    "-vvt",
    "-vu",
    "-vs",
    "-vc",
    "-vt",
    "conf",
    "--verbose",
];

pub(crate) const LINES: &[Pattern] = &[
    line(
        "begin",
        Does::Begins,
        r"(?<test>(?:tcp|udp|sctp|sdp|rds)_(?:bw|lat)|(?:rc|uc|ud|xrc|ver)_[a-z_]+):",
    ),
    line("conf", Does::Parts, r"conf:"),
    line("host", Does::Ahead, r"loc_node +=  (?<value>\S+)"),
    line("cpu", Does::Ahead, r"loc_cpu +=  (?<value>\S.*)"),
    line("os", Does::Ahead, r"loc_os +=  (?<value>\S.*)"),
    line("qperf", Does::Ahead, r"loc_qperf +=  (?<value>\S.*)"),
    line("remote", Does::Ahead, r"rem_node +=  (?<value>\S+)"),
    line("rest", Does::Nothing, r"rem_(?:cpu|os|qperf) +=  .*"),
    line(
        "value",
        Does::Within,
        r"(?<name>[a-z_]+) +=  +(?<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?) ?(?<unit>[KMG]?i?(?:B|bytes)/sec|[KMG]?/sec|[nμum]?s|sec|sec/GB|ns/GB|[KMG]?i?B|bytes|% cpus|%)?(?: \((?<exact>\d{1,3}(?:,\d{3})*|\d+)\))?",
    ),
    line("rest", Does::Nothing, r"warning: .*|server: *"),
    line("died", Does::Within, r"(?<value>failed to .*|\S+: failed to connect.*|-\w+: bad .*)"),
];

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(LINES));

fn is_one(text: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?m)^\s*(?:(?:(?:tcp|udp|sctp|sdp|rds)_(?:bw|lat)|(?:rc|uc|ud|xrc|ver)_[a-z_]+):\s*$|(?:loc|rem)_qperf +=  )",
        )
        .expect("a pattern that a test tries")
    });
    const SIGNS: [&str; 4] = ["_bw:", "_lat:", "_qperf", "_mr:"];
    SIGNS.iter().any(|sign| text.contains(sign)) && MARK.is_match(text)
}

/// The results in a text. What it tells of the machine it tells once.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "qperf", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    let mut conf: Vec<(&'static str, String)> = Vec::new();
    for run in &log.runs {
        if run.hit("host").is_some() {
            let own =
                [("host", "host"), ("cpu", "cpu"), ("kernel", "os"), ("qperf", "qperf"), ("to", "remote")];
            let own = own.iter().filter_map(|(label, name)| Some((*label, run.text(name)?.to_string())));
            conf = own.collect();
        }
        let asked = run.asked.clone().unwrap_or_default();
        // Beside its options a command has the host, and the tests.
        let options = asked.without(&VALUED, &FLAGS);
        let is_test = |word: &str| word.split_once('_').is_some_and(|(first, _)| PROTOCOLS.contains(&first));
        let is_word = |word: &&str| word.starts_with(|one: char| one.is_alphanumeric());
        let host = options.split(' ').find(is_word);
        let options = options.split(' ').filter(|word| !is_test(word) && Some(*word) != host);
        let options: Vec<&str> = options.collect();
        let mut facts = conf.clone();
        facts.push(("options", options.join(" ")));
        if let Some((builder, _)) = results.of(run, facts, false) {
            figures(run, builder);
        }
    }
    let mut results = results.finish(&log);
    results.iter_mut().for_each(|one| headlines(one, &HEADLINES));
    results
}

/// What one of a unit is in Gbit/s, in 1/s, in µs, in bytes, in s/GB or in CPUs.
fn scale(unit: &str) -> f64 {
    let step = if unit.contains('i') { 1024.0 } else { 1000.0 };
    if let Some(ns) = units::nanoseconds(unit) {
        return ns / 1e3;
    }
    let letter = match unit {
        "sec/GB" => return 1.0,
        "ns/GB" => return 1e-9,
        "% cpus" | "%" => return 0.01,
        unit => crate::kit::scale(unit, step),
    };
    if unit.contains("B/") || unit.contains("bytes/") { letter * 8e-9 } else { letter }
}

/// A number of a line, in the unit of a figure.
fn number(hit: &Hit) -> Option<f64> {
    let plain = |text: &str| text.replace(',', "").parse::<f64>().ok();
    match hit.text("exact") {
        Some(exact) => plain(exact),
        None => Some(plain(hit.text("value")?)? * scale(hit.text("unit").unwrap_or_default())),
    }
}

/// A size as an option has it: `64K` is 1024s, `64k` is 1000s.
fn size(text: &str) -> Option<i64> {
    let (number, word) = units::split(text)?;
    let step = if word.starts_with(['K', 'M']) { 1024.0 } else { 1000.0 };
    units::binary(word).map(|_| (number * crate::kit::scale(word, step)) as i64)
}

fn figures(run: &Run, builder: &mut Builder) {
    let Some(test) = run.hit("begin").and_then(|hit| hit.text("test")) else { return };
    let (protocol, what) = test.split_once('_').unwrap_or((test, ""));
    let is_socket = ["tcp", "udp"].contains(&protocol);
    let (bench, main) = match what {
        "bw" if is_socket => (format!("network.{protocol}"), "bandwidth"),
        "lat" if is_socket => (ids::ROUND_TRIP.to_string(), "latency_mean"),
        _ => (
            format!("qperf.{}", test.replace('_', "-")),
            if what.ends_with("lat") { "latency_mean" } else { "bandwidth" },
        ),
    };
    let told = |name: &str| run.all("value").find(|hit| hit.text("name") == Some(name)).and_then(number);
    let asked = run.asked.as_ref();
    let asked_size = asked.and_then(|asked| size(asked.value(&["--msg_size", "-m"])?));
    let bytes = told("msg_size").map(|bytes| bytes as i64).or(asked_size);
    // A loop prints the same line for each of its turns.
    let is_loop =
        asked.is_some_and(|asked| asked.words.iter().any(|word| ["-oo", "--loop"].contains(&word.as_str())));
    let untold = is_loop && told("msg_size").is_none();
    let mut put = |metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
        let Some(mut keyed) = keyed(&format!("{bench}@free#{metric}")) else { return };
        match what {
            "bw" if is_socket => {
                keyed.case.params.set("direction", Value::Text("send".into()));
                keyed.point.set("streams", Value::Int(1));
            }
            "lat" if is_socket => keyed.case.params.set("protocol", Value::Text(protocol.into())),
            _ => {}
        }
        if let Some(bytes) = bytes {
            keyed.point.set("bytes", Value::Int(bytes));
        }
        let note = match metric {
            "latency_mean" if is_socket => "printed as half of it",
            _ => "",
        };
        let wording = format!("qperf {test} {}", metric.replace('_', " "));
        let meaning = Meaning { keyed, wording, unit: unit.into(), better, note: note.to_string() };
        match value {
            _ if untold => {
                let why = "its command varies something from test to test, which the text does not tell";
                builder.missing(meaning, why.to_string());
            }
            Ok(value) => builder.value(meaning, value),
            Err(why) => builder.missing(meaning, why),
        }
    };
    let mut found = false;
    for hit in run.all("value") {
        let (Some(name), Some(value)) = (hit.text("name"), number(hit)) else { continue };
        let times = if is_socket { 2.0 } else { 1.0 };
        let (metric, unit, better, value) = match name {
            "bw" | "recv_bw" => ("bandwidth", "Gbit/s", Better::Higher, value),
            "send_bw" => ("sent", "Gbit/s", Better::Neither, value),
            "latency" => ("latency_mean", "us", Better::Lower, value * times),
            "msg_rate" => ("messages", "1/s", Better::Higher, value),
            "send_cost" | "recv_cost" => (name, "s/GB", Better::Lower, value),
            "send_cpus_used" | "recv_cpus_used" | "loc_cpus_used" | "rem_cpus_used" => {
                (name, "CPUs", Better::Neither, value)
            }
            _ => continue,
        };
        found |= metric == main;
        put(metric, unit, better, Ok(value));
    }
    if !found {
        let why = run.text("died").unwrap_or("the run, or the text, ended before a result");
        let (unit, better) = match main {
            "bandwidth" => ("Gbit/s", Better::Higher),
            _ => ("us", Better::Lower),
        };
        put(main, unit, better, Err(format!("started, no test finished: {}", short(why))));
    }
}
