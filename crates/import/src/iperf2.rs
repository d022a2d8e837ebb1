//! iperf 2, text and CSV, from either end. What a client says is what it sent; what a server says,
//! or a client of its server's report, is what arrived.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning};
use super::kit::{Does, Hit, Log, Results, Run, Table, line, log};
use super::own::Against;
use super::{Format, Imported, Tool, keyed};
use crate::kit::Pattern;
use model::{Better, Value};

pub(crate) const TOOL: Tool = Tool {
    files: "results of iperf 2 (text and CSV)",
    json: &[],
    documented: false,
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("iperf 2 result");
const REMARK: &str = "iperf 2 does not tell where its threads ran";
/// Options that say how long and how to print, or that the text tells.
const VALUED: [&str; 11] = ["-c", "-p", "-t", "-i", "-P", "-f", "-y", "-b", "--port", "--time", "--interval"];
const FLAGS: [&str; 8] = ["-s", "-u", "-e", "-r", "-d", "-R", "--enhanced", "--server"];

pub(crate) const LINES: &[Pattern] = &[
    line("begin", Does::Begins, r"Client connecting to (?<to>\S+), (?<protocol>TCP|UDP) port \d+(?: .*)?"),
    line("begin", Does::Begins, r"Server listening on (?<protocol>TCP|UDP) port \d+(?: .*)?"),
    line(
        "connected",
        Does::Adds,
        r"\[ *(?<id>\d+)\] local (?<local>[^\s%]+)\S* port \d+ connected with (?<remote>\S+) port \d+(?: .*)?",
    ),
    line("report", Does::Adds, r"\[ *\d+\] Server Report:"),
    line(
        "row",
        Does::Adds,
        r"\[ *(?<id>\d+|SUM)\] +(?<from>\d+\.\d+)- *(?<to>\d+\.\d+) sec +[\d.]+ [KMGT]?Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGT]?)bits/sec(?: +(?<jitter>[\d.]+) ms +(?<lost>\d+)/ *(?<total>\d+) \(.*| +.*)?",
    ),
    line(
        "csv",
        Does::Adds,
        r"(?<time>\d{14})[\d.+:-]*,(?<local>[\da-fA-F.:]+),(?<port>\d+),(?<remote>[\da-fA-F.:]+),\d+,(?<id>-?\d+),(?<from>\d+\.\d+)-(?<to>\d+\.\d+),(?<bytes>\d+),(?<rate>\d+)(?:,[\d.,-]*)?",
    ),
    line("mixed", Does::Adds, r"\[ *(?:\*|FD)\d+\] .*"),
    line(
        "error",
        Does::Adds,
        r"(?<value>(?:(?:tcp )?connect|write\d?|read) failed: .*|listener bind failed: .*)",
    ),
    line(
        "rest",
        Does::Nothing,
        r"-{20,}|\[ ID\] Interval .*|(?:TCP window|UDP buffer) size: .*|Sending \d+ byte datagrams.*",
    ),
    line(
        "rest",
        Does::Nothing,
        r"\[ *\d+\] Sent \d+ datagrams|Write buffer size: .*|Read buffer size: .*|TOS set to .*|WARNING: .*",
    ),
    line("rest", Does::Nothing, r"Binding to local .*|\[ *\d+\] WARNING: .*"),
];

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(LINES));

/// Whether a text is what iperf 2 printed: its later namesake has other first lines.
fn is_one(text: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?m)^\s*(?:Client connecting to \S+, (?:TCP|UDP) port \d+|Server listening on (?:TCP|UDP) port \d+|\d{14}[\d.+:-]*,[\da-fA-F.:]+,\d+,[\da-fA-F.:]+,\d+,-?\d+,\d+\.\d+-\d+\.\d+,\d+,)",
        )
        .expect("a pattern that a test tries")
    });
    let is_row =
        |line: &str| line.starts_with(|one: char| one.is_ascii_digit()) && line.matches(',').count() > 7;
    let has_sign = text.contains("Client connecting to ") || text.contains("Server listening on ");
    (has_sign || text.lines().any(is_row)) && MARK.is_match(text)
}

/// A connection behind the rows of others is another test's; so is a line of CSV of a connection
/// that another had before, or that ended before.
fn again(runs: &[Run], hit: &Hit, _: bool) -> Option<usize> {
    let last = runs.last()?;
    let is_next = match hit.name {
        "connected" => last.hit("row").is_some(),
        "csv" => last.all("csv").any(|other| {
            let same = |names: &[&str]| names.iter().all(|name| other.text(name) == hit.text(name));
            same(&["id", "from", "to"]) || same(&["id"]) && !same(&["remote", "port"])
        }),
        _ => false,
    };
    is_next.then_some(0)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "iperf", &TABLE, again);
    let mut results = Results::new(FORMAT, REMARK);
    // What listens says once which protocol it takes.
    let (mut protocol, mut serves) = ("TCP", false);
    for run in &log.runs {
        if let Some(begin) = run.hit("begin") {
            (protocol, serves) = (begin.text("protocol").unwrap_or("TCP"), begin.text("to").is_none());
        }
        let asked = run.asked.clone().unwrap_or_default();
        let own = |name: &str| {
            let hit = run.hit("connected").or(run.hit("csv"));
            hit.and_then(|hit| hit.text(name)).unwrap_or_default().to_string()
        };
        let facts = vec![
            ("options", asked.without(&VALUED, &FLAGS)),
            ("?local", own("local")),
            ("to", own("remote")),
        ];
        if let Some((builder, against)) = results.of(run, facts, run.hit("connected").is_some()) {
            let udp = protocol == "UDP" || asked.has(&["-u"]);
            figures(run, udp, serves, builder, against);
        }
    }
    results.finish(&log)
}

/// The rows of a whole test among these: of each connection the one that is as long as the longest.
fn whole<'r, 't>(rows: &[&'r Hit<'t>]) -> Vec<&'r Hit<'t>> {
    let end = |hit: &Hit| hit.number("to").map_or(0.0, |to| to.value);
    let longest = rows.iter().map(|row| end(row)).fold(0.0, f64::max);
    let begins = |hit: &Hit| hit.number("from").is_some_and(|from| from.value < 0.05);
    rows.iter().filter(|row| begins(row) && end(row) > 0.97 * longest).copied().collect()
}

fn figures(run: &Run, udp: bool, serves: bool, builder: &mut Builder, against: &mut Against) {
    let place = run.hits.iter().position(|hit| hit.name == "report").unwrap_or(run.hits.len());
    let (own, reported) = run.hits.split_at(place);
    let is_row = |hit: &&Hit| ["row", "csv"].contains(&hit.name);
    let own_rows: Vec<&Hit> = own.iter().filter(is_row).collect();
    let reported_rows: Vec<&Hit> = reported.iter().filter(is_row).collect();
    let ids: BTreeSet<&str> =
        own_rows.iter().filter_map(|row| row.text("id")).filter(|id| !["SUM", "-1"].contains(id)).collect();
    let streams = ids.len().max(1);
    let protocol = if udp { "udp" } else { "tcp" };
    let mut put = |metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
        let Some(mut keyed) = keyed(&format!("network.{protocol}@free#{metric}")) else { return };
        keyed.case.params.set("direction", Value::Text(if serves { "receive" } else { "send" }.into()));
        keyed.point.set("streams", Value::Int(streams as i64));
        let wording = format!("iperf 2 {}", metric.replace('_', " "));
        let note = "how much it wrote at once is not told".to_string();
        let meaning = Meaning { keyed, wording, unit: unit.into(), better, note };
        match value {
            Ok(value) => builder.value(meaning, value),
            Err(why) => builder.missing(meaning, why),
        }
    };
    let rate = |hit: &Hit| hit.scaled("rate", 1000.0).map(|rate| rate.value / 1e9);
    if run.hit("mixed").is_some() {
        let why =
            "tests of both directions ran at once, and their lines are mixed: ask for the client's output";
        return put("bandwidth", "Gbit/s", Better::Higher, Err(why.to_string()));
    }
    let mut found = false;
    for (rows, metric) in
        [(&own_rows, if serves { "bandwidth" } else { "sent" }), (&reported_rows, "bandwidth")]
    {
        let whole = whole(rows);
        let sum = whole.iter().find(|row| row.text("id").is_some_and(|id| ["SUM", "-1"].contains(&id)));
        let one = sum.or(whole.first().filter(|_| whole.len() == 1)).copied();
        if let Some(rate) = one.and_then(rate) {
            found = true;
            match rate > 0.0 {
                true => put(metric, "Gbit/s", Better::Higher, Ok(rate)),
                false => {
                    put(metric, "Gbit/s", Better::Higher, Err("it prints 0: nothing went over".to_string()))
                }
            }
        } else if whole.len() > 1 {
            found = true;
            whole.iter().filter_map(|row| rate(row)).for_each(|rate| {
                put(&format!("stream_{metric}"), "Gbit/s", Better::Higher, Ok(rate));
            });
        }
        for row in whole.iter().filter(|row| row.text("id").is_some_and(|id| id != "SUM" || streams == 1)) {
            let count = |name: &str| row.number(name).map(|count| count.value);
            if let (Some(lost), Some(total)) = (count("lost"), count("total").filter(|total| *total > 0.0)) {
                put("loss", "", Better::Lower, Ok(lost / total));
                put("jitter", "us", Better::Lower, Ok(count("jitter").unwrap_or_default() * 1e3));
            }
        }
    }
    let errors: Vec<&str> = run.all("error").filter_map(|hit| hit.text("value")).collect();
    if !found {
        let why = errors.first().copied().unwrap_or("the run, or the text, ended before a result");
        put("sent", "Gbit/s", Better::Higher, Err(format!("started, no test finished: {why}")));
    } else if let Some(error) = errors.first().filter(|error| !error.starts_with("listener")) {
        against.interrupted(error);
    }
}
