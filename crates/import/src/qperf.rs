//! qperf: bandwidth and latency over sockets and RDMA, a block of lines a test. Its MB and GB are
//! powers of ten; its latency is one way, half of a round trip.

use super::builder::Builder;
use super::kit::{
    Expression, Figures, Hit, Log, Metric, Pattern, Results, Run, Table, log, metric, options, said_again,
    unfinished,
};
use super::{Format, Imported, Tool};
use crate::kit::lines::{ahead, begins, ignored, separates, within};
use model::vocabulary::network as ids;
use model::{Better, units};

pub(crate) const TOOL: Tool = Tool::of("qperf", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("qperf result");
const REMARK: &str = "qperf prints three digits and does not report where its two ends ran; it prints the message size only with -vv";
const HEADLINES: [&str; 3] = ["bandwidth", "latency_mean", "operations"];
/// What the names of tests begin with.
const PROTOCOLS: [&str; 10] = ["tcp", "udp", "sctp", "sdp", "rds", "rc", "uc", "ud", "xrc", "ver"];
const VALUED: [&str; 8] = ["-t", "--time", "-lp", "--listen_port", "-m", "--msg_size", "-to", "--timeout"];
const FLAGS: &str = "-u -uu -v -vv -vvs -vvu -vvc -vvt -vu -vs -vc -vt conf --verbose";

pub(crate) const LINES: &[Pattern] = &[
    begins("begin", r"(?<test>(?:tcp|udp|sctp|sdp|rds)_(?:bw|lat)|(?:rc|uc|ud|xrc|ver)_[a-z_]+):"),
    separates("conf", r"conf:"),
    ahead("host", r"loc_node +=  (?<value>\S+)"),
    ahead("cpu", r"loc_cpu +=  (?<value>\S.*)"),
    ahead("os", r"loc_os +=  (?<value>\S.*)"),
    ahead("qperf", r"loc_qperf +=  (?<value>\S.*)"),
    ahead("remote", r"rem_node +=  (?<value>\S+)"),
    ignored(r"rem_(?:cpu|os|qperf) +=  .*"),
    within(
        "value",
        r"(?<name>[a-z_]+) +=  +(?<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?) ?(?<unit>[KMG]?i?(?:B|bytes)/sec|[KMG]?/sec|[nμum]?s|sec|sec/GB|ns/GB|[KMG]?i?B|bytes|% cpus|%)?(?: \((?<exact>\d{1,3}(?:,\d{3})*|\d+)\))?",
    ),
    ignored(r"warning: .*|server: *"),
    within("died", r"(?<value>failed to .*|\S+: failed to connect.*|-\w+: bad .*)"),
];

static TABLE: Table = Table::new(LINES);

fn is_one(text: &str) -> bool {
    static MARK: Expression = Expression::new(
        r"(?m)^\s*(?:(?:(?:tcp|udp|sctp|sdp|rds)_(?:bw|lat)|(?:rc|uc|ud|xrc|ver)_[a-z_]+):\s*$|(?:loc|rem)_qperf +=  )",
    );
    const SIGNS: [&str; 4] = ["_bw:", "_lat:", "_qperf", "_mr:"];
    SIGNS.iter().any(|sign| text.contains(sign)) && MARK.is_match(text)
}

/// The results in a text. It prints the facts of the host once.
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
        let command = run.command.clone().unwrap_or_default();
        // After its options a command has the host and the tests.
        let options = command.without(&VALUED, &options(FLAGS));
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
    results.finish_with(&log, &HEADLINES)
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

const METRICS: &[Metric] = &[
    metric("bandwidth", "Gbit/s", Better::Higher),
    metric("sent", "Gbit/s", Better::Neither),
    metric("latency_mean", "us", Better::Lower),
    metric("messages", "1/s", Better::Higher),
    metric("send_cost", "s/GB", Better::Lower),
    metric("recv_cost", "s/GB", Better::Lower),
    metric("send_cpus_used", "CPUs", Better::Neither),
    metric("recv_cpus_used", "CPUs", Better::Neither),
    metric("loc_cpus_used", "CPUs", Better::Neither),
    metric("rem_cpus_used", "CPUs", Better::Neither),
];
/// Values whose metric has another name here.
const NAMES: [(&str, &str); 5] = [
    ("bw", "bandwidth"),
    ("recv_bw", "bandwidth"),
    ("send_bw", "sent"),
    ("latency", "latency_mean"),
    ("msg_rate", "messages"),
];

fn figures(run: &Run, builder: &mut Builder) {
    let Some(test) = run.hit("begin").and_then(|hit| hit.text("test")) else { return };
    let (protocol, what) = test.split_once('_').unwrap_or((test, ""));
    let is_socket = ["tcp", "udp"].contains(&protocol);
    let main = if what.ends_with("lat") { "latency_mean" } else { "bandwidth" };
    let mut figures = Figures::new(builder, METRICS, format!("qperf {test}"), "");
    figures.bench = match what {
        "bw" if is_socket => {
            figures.params.set("direction", "send".into());
            figures.point("streams", Some(1));
            format!("network.{protocol}")
        }
        "lat" if is_socket => {
            figures.params.set("protocol", protocol.into());
            ids::ROUND_TRIP.to_string()
        }
        _ => format!("qperf.{}", test.replace('_', "-")),
    };
    let command = run.command.as_ref();
    let printed = run.all("value").find(|hit| hit.text("name") == Some("msg_size")).and_then(number);
    let asked_size = command.and_then(|command| size(command.value(&["--msg_size", "-m"])?));
    figures.point("bytes", printed.map(|bytes| bytes as i64).or(asked_size));
    // A loop prints the same line for each of its turns.
    let untold = printed.is_none() && command.is_some_and(|command| command.has(&["-oo", "--loop"]));
    let mut put = |name: &str, value: Result<f64, String>| {
        let is_half = is_socket && name == "latency_mean";
        figures.note = if is_half { "half of it is printed" } else { "" }.to_string();
        let why = "its command varies a setting from test to test, which the text does not print";
        figures.put(name, if untold { Err(why.to_string()) } else { value });
    };
    let mut found = false;
    for hit in run.all("value") {
        let (Some(own), Some(value)) = (hit.text("name"), number(hit)) else { continue };
        let name = NAMES.iter().find(|(known, _)| *known == own).map_or(own, |(_, name)| name);
        let is_half = is_socket && name == "latency_mean";
        found |= name == main;
        put(name, Ok(if is_half { 2.0 * value } else { value }));
    }
    if !found {
        put(main, Err(unfinished(run.text("died"))));
    }
}
