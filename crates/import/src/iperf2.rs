//! iperf 2, text and CSV, from either end. What a client says is what it sent; what a server says,
//! or a client of its server's report, is what arrived.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning};
use super::kit::{Above, Does, Hit, Log, Number, Results, Run, Table, line, log};
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
const VALUED: [&str; 12] =
    ["-c", "-p", "-t", "-i", "-P", "-f", "-y", "-b", "-L", "--port", "--time", "--interval"];
const FLAGS: [&str; 8] = ["-s", "-u", "-e", "-r", "-d", "-R", "--enhanced", "--server"];

pub(crate) const LINES: &[Pattern] = &[
    line(
        "begin",
        Does::Begins,
        r"Client connecting to (?<to>\S+), (?<protocol>TCP|UDP) port (?<port>\d+)(?: .*)?",
    ),
    line("begin", Does::Begins, r"Server listening on (?<protocol>TCP|UDP) port (?<port>\d+)(?: .*)?"),
    line(
        "connected",
        Does::Adds,
        r"\[ *(?<id>\d+)\] local (?<local>[^\s%]+)\S* port (?<port>\d+) connected with (?<remote>\S+) port (?<to>\d+)(?<how>(?: .*)?)",
    ),
    line("report", Does::Adds, r"\[ *\d+\] Server Report:"),
    line(
        "bounce",
        Does::Adds,
        r"\[ *(?<id>\d+)\] +(?<from>\d+\.\d+)- *(?<to>\d+\.\d+) sec +(?<amount>[\d.]+) (?<amount_unit>[KMGT]?)Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGT]?)bits/sec +(?<count>\d+)=(?<mean>[\d.]+)/(?<least>[\d.]+)/(?<most>[\d.]+)/[\d.]+ ms .*RPS=(?<rps>\d+)",
    ),
    line("bounce-rest", Does::Nothing, r"\[ *\d+\] +\d+\.\d+- *\d+\.\d+ sec +BB8\(f\)-PDF: .*"),
    line(
        "row",
        Does::Adds,
        r"\[ *(?<id>\*?\d+|SUM(?:-\d+)?)\] +(?<from>\d+\.\d+)- *(?<to>\d+\.\d+) sec +(?<amount>[\d.]+) (?<amount_unit>[KMGT]?)Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGT]?)bits/sec(?: +(?<jitter>[\d.]+) ms +(?<lost>\d+)/ *(?<total>\d+) \(.*| +.*)?",
    ),
    line(
        "csv",
        Does::Adds,
        r"(?<time>\d{14})[\d.+:-]*,(?<local>[\da-fA-F.:]+),(?<port>\d+),(?<remote>[\da-fA-F.:]+),\d+,(?<id>-?\d+),(?<from>\d+\.\d+)-(?<to>\d+\.\d+),(?<amount>\d+),(?<rate>\d+)(?:,[\d.,-]*)?",
    ),
    line("mixed", Does::Adds, r"\[ *(?:\*\d+\] local .*|FD\d+\] .*)"),
    line("congestion", Does::Adds, r"TCP congestion control (?:using|default|set to) (?<value>\S+)"),
    line(
        "error",
        Does::Adds,
        r"(?<value>(?:(?:tcp )?connect|write\d?|read) failed: .*|(?:listener )?bind failed: .*)",
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
    line(
        "rest",
        Does::Nothing,
        r"Binding to local .*|\[ *\d+\] WARNING: .*|WARN: .*|Warn: .*|TOS defaults to .*|\[ *CT\] final .*",
    ),
    line(
        "rest",
        Does::Nothing,
        r"\[ *SUM-cnt\] .*|Waiting for server threads .*|read tcp flags .*|shutdown failed: .*|(?:Bounceback test|Bursting request) .*",
    ),
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
fn again(runs: &[Run], hit: &Hit, _: Above) -> Option<usize> {
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
    let mut log: Log = log(text, "iperf", &TABLE, again);
    log.runs = whole_tests(std::mem::take(&mut log.runs));
    let mut results = Results::new(FORMAT, REMARK);
    // What listens says once which protocol it takes, and at which port.
    let (mut protocol, mut ports) = ("TCP", Ports::default());
    for run in &log.runs {
        if run.hit("begin").is_some() {
            ports = Ports::default();
        }
        for begin in run.all("begin") {
            protocol = begin.text("protocol").unwrap_or("TCP");
            let port = if begin.text("to").is_some() { &mut ports.client } else { &mut ports.server };
            *port = begin.text("port").map(str::to_string);
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
            ("congestion", run.text("congestion").unwrap_or_default().to_string()),
        ];
        if let Some((builder, against)) = results.of(run, facts, run.hit("connected").is_some()) {
            let udp = protocol == "UDP" || asked.has(&["-u"]);
            figures(run, udp, &ports, builder, against);
        }
    }
    results.finish(&log)
}

/// Runs with what belongs to them: a client that tests both ways listens, too, before it connects
/// or when it has, and a connection may be told before the first line of its test.
fn whole_tests<'t>(runs: Vec<Run<'t>>) -> Vec<Run<'t>> {
    let begins =
        |run: &Run, as_client: bool| run.all("begin").any(|begin| begin.text("to").is_some() == as_client);
    let mut tests: Vec<Run> = Vec::new();
    for mut run in runs {
        let has_more =
            |last: &Run| match last.hits.iter().all(|hit| ["begin", "connected"].contains(&hit.name)) {
                true if begins(last, true) => begins(&run, false) && run.hit("row").is_some(),
                true => begins(&run, true) || run.hit("begin").is_some() && !begins(last, false),
                false => false,
            };
        match tests.last_mut().filter(|last| has_more(last)) {
            Some(last) => last.hits.append(&mut run.hits),
            None => tests.push(run),
        }
    }
    tests
}

/// The port that a client asks for, and the one that somebody listens at.
#[derive(Default)]
struct Ports {
    client: Option<String>,
    server: Option<String>,
}

impl Ports {
    fn serves(&self) -> bool {
        self.client.is_none() && self.server.is_some()
    }
}

/// A connection as its first line describes it.
struct Connection<'r> {
    id: &'r str,
    /// Of this end and of the other.
    ports: [Option<&'r str>; 2],
    is_client: bool,
    /// `(reverse)`, `(full-duplex)`, `(bb ...)` and more.
    how: &'r str,
}

impl<'r> Connection<'r> {
    fn of(hit: &'r Hit, ports: &Ports) -> Connection<'r> {
        let is = |name: &str, port: &Option<String>| port.is_some() && hit.text(name) == port.as_deref();
        let is_client = is("to", &ports.client) || !is("port", &ports.server) && !ports.serves();
        Connection {
            id: hit.text("id").unwrap_or_default(),
            ports: [hit.text("port"), hit.text("to")],
            is_client,
            how: hit.text("how").unwrap_or_default(),
        }
    }

    fn is_both(&self) -> bool {
        self.how.contains("(full-duplex)")
    }

    fn bounces(&self) -> bool {
        self.how.contains("(bb ")
    }

    /// Whether a row of it is of what this end sent; a star stands before the other way.
    fn sends(&self, has_star: bool) -> bool {
        match self.is_both() {
            true => self.is_client != has_star,
            false => self.is_client != self.how.contains("(reverse)"),
        }
    }
}

fn is_sum(row: &Hit) -> bool {
    row.text("id").is_some_and(|id| id.starts_with("SUM") || id == "-1")
}

/// The rows of a whole test among these: of each connection the one that is as long as the longest.
fn whole<'r, 't>(rows: &[&'r Hit<'t>]) -> Vec<&'r Hit<'t>> {
    let end = |hit: &Hit| hit.number("to").map_or(0.0, |to| to.value);
    let longest = rows.iter().map(|row| end(row)).fold(0.0, f64::max);
    let begins = |hit: &Hit| hit.number("from").is_some_and(|from| from.value < 0.05);
    rows.iter().filter(|row| begins(row) && end(row) > 0.97 * longest).copied().collect()
}

/// One figure's name, unit, better side, and its value or why there is none.
type Put<'p> = dyn FnMut(&str, &'static str, Better, Result<f64, String>) + 'p;

fn figures(run: &Run, udp: bool, ports: &Ports, builder: &mut Builder, against: &mut Against) {
    let place = run.hits.iter().position(|hit| hit.name == "report").unwrap_or(run.hits.len());
    let (own, reported) = run.hits.split_at(place);
    let is_row = |hit: &&Hit| ["row", "csv"].contains(&hit.name);
    let own_rows: Vec<&Hit> = own.iter().filter(is_row).collect();
    let reported_rows: Vec<&Hit> = reported.iter().filter(is_row).collect();
    let connections: Vec<Connection> = run.all("connected").map(|hit| Connection::of(hit, ports)).collect();
    let sends = |row: &Hit| {
        let id = row.text("id").unwrap_or_default();
        let bare = id.trim_start_matches('*');
        let own = connections.iter().rev().find(|one| one.id == bare).or(connections.first());
        own.map_or(!ports.serves(), |one| one.sends(id.len() > bare.len()))
    };
    let ids: BTreeSet<&str> =
        own_rows.iter().filter(|row| !is_sum(row)).filter_map(|row| row.text("id")).collect();
    let (sent, received): (Vec<&Hit>, Vec<&Hit>) =
        own_rows.iter().filter(|row| !is_sum(row)).partition(|row| sends(row));
    // Both ends of one connection may have written into one text.
    let is_mirrored = |one: &Connection| {
        connections
            .iter()
            .any(|other| other.ports == [one.ports[1], one.ports[0]] && one.ports[0] != one.ports[1])
    };
    let both = !sent.is_empty() && !received.is_empty() && !connections.iter().any(is_mirrored);
    let protocol = if udp { "udp" } else { "tcp" };
    let streams = if both { ids.len().div_ceil(2) } else { ids.len().max(1) };
    let mut put =
        |sends: bool, metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
            let Some(mut keyed) = keyed(&format!("network.{protocol}@free#{metric}")) else { return };
            let way = Value::Text(if sends { "send" } else { "receive" }.into());
            let params = &mut keyed.case.params;
            if both {
                params.set("direction", Value::Text("both".into()));
            }
            params.set(if both { "way" } else { "direction" }, way);
            keyed.point.set("streams", Value::Int(streams as i64));
            let wording = format!("iperf 2 {}", metric.replace('_', " "));
            let note = "how much it wrote at once is not told".to_string();
            let meaning = Meaning { keyed, wording, unit: unit.into(), better, note };
            match value {
                Ok(value) => builder.value(meaning, value),
                Err(why) => builder.missing(meaning, why),
            }
        };
    let client = !ports.serves();
    // Version 2.0.14 prints one row for both ways.
    let untold = connections.iter().any(Connection::is_both) && !both && !own_rows.is_empty();
    if run.hit("mixed").is_some() || untold {
        let why =
            "tests of both directions ran at once, and their lines are mixed: ask for the client's output";
        return put(client, "bandwidth", "Gbit/s", Better::Higher, Err(why.to_string()));
    }
    if connections.iter().any(Connection::bounces) {
        return bounced(run, &connections, builder, against);
    }
    let mut found = false;
    for (sends, rows) in [(true, &sent), (false, &received)] {
        let metric = if sends { "sent" } else { "bandwidth" };
        // A sum of one row is one of several tests; one of both ways is none of either.
        let sums = own_rows.iter().filter(|row| is_sum(row) && !both && ids.len() != 1 && sends == client);
        let rows: Vec<&Hit> = rows.iter().copied().chain(sums.copied()).collect();
        found |= bandwidth(&rows, metric, against, &mut |name, unit, better, value| {
            put(sends, name, unit, better, value);
        });
    }
    // What the server reports has arrived there.
    found |= bandwidth(&reported_rows, "bandwidth", against, &mut |name, unit, better, value| {
        put(client, name, unit, better, value);
    });
    let errors: Vec<&str> = run.all("error").filter_map(|hit| hit.text("value")).collect();
    if !found {
        let why = errors.first().copied().unwrap_or("the run, or the text, ended before a result");
        let why = format!("started, no test finished: {why}");
        put(true, "sent", "Gbit/s", Better::Higher, Err(why));
    } else if let Some(error) = errors.first().filter(|error| !error.contains("bind failed")) {
        against.interrupted(error);
    }
}

/// The bandwidth of rows of one way and what UDP lost; whether there was one.
fn bandwidth(rows: &[&Hit], metric: &str, against: &mut Against, put: &mut Put) -> bool {
    let rate = |hit: &Hit| hit.scaled("rate", 1000.0).map(|rate| rate.value / 1e9);
    let whole = whole(rows);
    whole.iter().for_each(|row| check(row, against));
    let sum = whole.iter().find(|row| is_sum(row));
    let one = sum.or(whole.first().filter(|_| whole.len() == 1)).copied();
    if let Some(rate) = one.and_then(rate) {
        let value = if rate > 0.0 { Ok(rate) } else { Err("it prints 0: nothing went over".to_string()) };
        put(metric, "Gbit/s", Better::Higher, value);
    } else {
        whole.iter().filter_map(|row| rate(row)).for_each(|rate| {
            put(&format!("stream_{metric}"), "Gbit/s", Better::Higher, Ok(rate));
        });
    }
    for row in whole.iter().filter(|row| !is_sum(row) || whole.len() == 1) {
        let count = |name: &str| row.number(name).map(|count| count.value);
        if let (Some(lost), Some(total)) = (count("lost"), count("total").filter(|total| *total > 0.0)) {
            put("loss", "", Better::Lower, Ok(lost / total));
            put("jitter", "us", Better::Lower, Ok(count("jitter").unwrap_or_default() * 1e3));
        }
    }
    !whole.is_empty()
}

/// Looks whether the rate of a row is its bytes over its time.
fn check(row: &Hit, against: &mut Against) {
    let time = row
        .number("to")
        .zip(row.number("from"))
        .map(|(to, from)| Number { value: to.value - from.value, rounding: to.rounding + from.rounding });
    let (rate, bytes) = (row.scaled("rate", 1000.0), row.scaled("amount", 1024.0));
    against.rate("bandwidth", [rate, bytes.map(|bytes| bytes.times(8.0)), time], |rate, bits, time| {
        format!("it says {} Gbit/s; {:.0} bytes in {time:.4} s is another rate", rate / 1e9, bits / 8.0)
    });
}

/// Messages that went to and fro, a few each second: no bandwidth.
fn bounced(run: &Run, connections: &[Connection], builder: &mut Builder, against: &mut Against) {
    let mut put = |metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
        let Some(mut keyed) = keyed(&format!("network.iperf2-bounceback@free#{metric}")) else { return };
        let how = connections.iter().find_map(|one| one.how.split_once("req/reply/hold="));
        let sizes = how.and_then(|(_, rest)| rest.split([')', ' ']).next()).unwrap_or_default();
        for (name, text) in ["request", "reply", "hold"].iter().zip(sizes.split('/')) {
            if let Ok(number) = text.parse() {
                keyed.point.set(*name, Value::Int(number));
            }
        }
        let wording = format!("iperf 2 bounceback {}", metric.replace('_', " "));
        let meaning = Meaning { keyed, wording, unit: unit.into(), better, note: String::new() };
        match value {
            Ok(value) => builder.value(meaning, value),
            Err(why) => builder.missing(meaning, why),
        }
    };
    let rows: Vec<&Hit> = run.all("bounce").collect();
    let whole = whole(&rows);
    let Some(row) = whole.first().filter(|_| whole.len() == 1) else {
        let why = "a client bounced messages off it: ask for the client's output";
        return put("latency_mean", "us", Better::Lower, Err(why.to_string()));
    };
    check(row, against);
    let number = |name: &str| row.number(name).map(|number| number.value);
    for (metric, field) in [("latency_mean", "mean"), ("latency_min", "least"), ("latency_max", "most")] {
        if let Some(value) = number(field) {
            put(metric, "us", Better::Lower, Ok(value * 1e3));
        }
    }
    if let Some(rate) = number("rps") {
        put("round_trips", "1/s", Better::Higher, Ok(rate));
    }
}
