//! iperf 2, text and CSV, from either end. What a client says is what it sent; what a server says,
//! or a client of its server's report, is what arrived.

use std::collections::BTreeSet;

use super::builder::Builder;
use super::faults::Faults;
use super::kit::{
    Expression, Figures, Hit, LinesAbove, Log, Metric, Number, Pattern, Results, Run, Table, log, metric,
};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, begins, ignored};
use model::Better;
use model::vocabulary::network as ids;

pub(crate) const TOOL: Tool = Tool::of("iperf 2 (text and CSV)", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("iperf 2 result");
const REMARK: &str = "iperf 2 does not report where its threads ran";
/// Options that say how long and how to print, or that the text prints.
const VALUED: [&str; 12] =
    ["-c", "-p", "-t", "-i", "-P", "-f", "-y", "-b", "-L", "--port", "--time", "--interval"];
const FLAGS: [&str; 8] = ["-s", "-u", "-e", "-r", "-d", "-R", "--enhanced", "--server"];

pub(crate) const LINES: &[Pattern] = &[
    begins("begin", r"Client connecting to (?<to>\S+), (?<protocol>TCP|UDP) port (?<port>\d+)(?: .*)?"),
    begins("begin", r"Server listening on (?<protocol>TCP|UDP) port (?<port>\d+)(?: .*)?"),
    adds(
        "connected",
        r"\[ *(?<id>\d+)\] local (?<local>[^\s%]+)\S* port (?<port>\d+) connected with (?<remote>\S+) port (?<to>\d+)(?<how>(?: .*)?)",
    ),
    adds("report", r"\[ *\d+\] Server Report:"),
    adds(
        "bounce",
        r"\[ *(?<id>\d+)\] +(?<from>\d+\.\d+)- *(?<to>\d+\.\d+) sec +(?<amount>[\d.]+) (?<amount_unit>[KMGT]?)Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGT]?)bits/sec +(?<count>\d+)=(?<mean>[\d.]+)/(?<least>[\d.]+)/(?<most>[\d.]+)/[\d.]+ ms .*RPS=(?<rps>\d+)",
    ),
    ignored(r"\[ *\d+\] +\d+\.\d+- *\d+\.\d+ sec +BB8\(f\)-PDF: .*"),
    adds(
        "row",
        r"\[ *(?<id>\*?\d+|SUM(?:-\d+)?)\] +(?<from>\d+\.\d+)- *(?<to>\d+\.\d+) sec +(?<amount>[\d.]+) (?<amount_unit>[KMGT]?)Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGT]?)bits/sec(?: +(?<jitter>[\d.]+) ms +(?<lost>\d+)/ *(?<total>\d+) \(.*| +.*)?",
    ),
    adds(
        "csv",
        r"(?<time>\d{14})[\d.+:-]*,(?<local>[\da-fA-F.:]+),(?<port>\d+),(?<remote>[\da-fA-F.:]+),\d+,(?<id>-?\d+),(?<from>\d+\.\d+)-(?<to>\d+\.\d+),(?<amount>\d+),(?<rate>\d+)(?:,[\d.,-]*)?",
    ),
    adds("mixed", r"\[ *(?:\*\d+\] local .*|FD\d+\] .*)"),
    adds("congestion", r"TCP congestion control (?:using|default|set to) (?<value>\S+)"),
    adds("error", r"(?<value>(?:(?:tcp )?connect|write\d?|read) failed: .*|(?:listener )?bind failed: .*)"),
    ignored(r"-{20,}|\[ ID\] Interval .*|(?:TCP window|UDP buffer) size: .*|Sending \d+ byte datagrams.*"),
    ignored(
        r"\[ *\d+\] Sent \d+ datagrams|Write buffer size: .*|Read buffer size: .*|TOS set to .*|WARNING: .*",
    ),
    ignored(
        r"Binding to local .*|\[ *\d+\] WARNING: .*|WARN: .*|Warn: .*|TOS defaults to .*|\[ *CT\] final .*",
    ),
    ignored(
        r"\[ *SUM-cnt\] .*|Waiting for server threads .*|read tcp flags .*|shutdown failed: .*|(?:Bounceback test|Bursting request) .*",
    ),
];

static TABLE: Table = Table::new(LINES);

/// Whether a text is what iperf 2 printed: its later namesake has other first lines.
fn is_one(text: &str) -> bool {
    static MARK: Expression = Expression::new(
        r"(?m)^\s*(?:Client connecting to \S+, (?:TCP|UDP) port \d+|Server listening on (?:TCP|UDP) port \d+|\d{14}[\d.+:-]*,[\da-fA-F.:]+,\d+,[\da-fA-F.:]+,\d+,-?\d+,\d+\.\d+-\d+\.\d+,\d+,)",
    );
    let is_row =
        |line: &str| line.starts_with(|one: char| one.is_ascii_digit()) && line.matches(',').count() > 7;
    let has_sign = text.contains("Client connecting to ") || text.contains("Server listening on ");
    (has_sign || text.lines().any(is_row)) && MARK.is_match(text)
}

/// A connection behind the rows of others is another test's; so is a line of CSV of a connection
/// that another had before, or that ended before.
fn again(runs: &[Run], hit: &Hit, _: LinesAbove) -> Option<usize> {
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
        let command = run.command.clone().unwrap_or_default();
        let own = |name: &str| {
            let hit = run.hit("connected").or(run.hit("csv"));
            hit.and_then(|hit| hit.text(name)).unwrap_or_default().to_string()
        };
        let facts = vec![
            ("options", command.without(&VALUED, &FLAGS)),
            ("?local", own("local")),
            ("to", own("remote")),
            ("congestion", run.text("congestion").unwrap_or_default().to_string()),
        ];
        if let Some((builder, faults)) = results.of(run, facts, run.hit("connected").is_some()) {
            let udp = protocol == "UDP" || command.has(&["-u"]);
            figures(run, udp, &ports, builder, faults);
        }
    }
    results.finish(&log)
}

/// Runs with what belongs to them: a client that tests both ways listens, too, before it connects
/// or when it has, and a connection may stand before the first line of its test.
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

/// The port that a client asks for, and the one that a server listens at.
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
        if self.is_both() {
            self.is_client != has_star
        } else {
            self.is_client != self.how.contains("(reverse)")
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

const METRICS: &[Metric] = &[
    metric("bandwidth", "Gbit/s", Better::Higher),
    metric("sent", "Gbit/s", Better::Higher),
    metric("stream_bandwidth", "Gbit/s", Better::Higher),
    metric("stream_sent", "Gbit/s", Better::Higher),
    metric("loss", "", Better::Lower),
    metric("jitter", "us", Better::Lower),
    metric("latency_mean", "us", Better::Lower),
    metric("latency_min", "us", Better::Lower),
    metric("latency_max", "us", Better::Lower),
    metric("round_trips", "1/s", Better::Higher),
];

/// The rows of one test, by what they are of.
struct Rows<'r, 't> {
    connections: Vec<Connection<'r>>,
    own: Vec<&'r Hit<'t>>,
    sent: Vec<&'r Hit<'t>>,
    received: Vec<&'r Hit<'t>>,
    /// What its server says to a client.
    reported: Vec<&'r Hit<'t>>,
    ids: BTreeSet<&'r str>,
    /// The client tested both directions at once.
    both: bool,
}

impl<'r, 't> Rows<'r, 't> {
    fn of(run: &'r Run<'t>, ports: &Ports) -> Rows<'r, 't> {
        let place = run.hits.iter().position(|hit| hit.name == "report").unwrap_or(run.hits.len());
        let (own, reported) = run.hits.split_at(place);
        let rows = |hits: &'r [Hit<'t>]| {
            hits.iter().filter(|hit| ["row", "csv"].contains(&hit.name)).collect::<Vec<&Hit>>()
        };
        let own = rows(own);
        let connections: Vec<Connection> =
            run.all("connected").map(|hit| Connection::of(hit, ports)).collect();
        let sends = |row: &Hit| {
            let id = row.text("id").unwrap_or_default();
            let bare = id.trim_start_matches('*');
            let own = connections.iter().rev().find(|one| one.id == bare).or(connections.first());
            own.map_or(!ports.serves(), |one| one.sends(id.len() > bare.len()))
        };
        let single: Vec<&Hit> = own.iter().copied().filter(|row| !is_sum(row)).collect();
        let ids = single.iter().filter_map(|row| row.text("id")).collect();
        let (sent, received): (Vec<&Hit>, Vec<&Hit>) = single.into_iter().partition(|row| sends(row));
        // Both ends of one connection may have written into one text.
        let is_mirrored = |one: &Connection| {
            let [own, other] = one.ports;
            own != other && connections.iter().any(|mirror| mirror.ports == [other, own])
        };
        let both = !sent.is_empty() && !received.is_empty() && !connections.iter().any(is_mirrored);
        Rows { connections, own, sent, received, reported: rows(reported), ids, both }
    }

    /// Version 2.0.14 prints one row for both ways.
    fn is_untold(&self) -> bool {
        self.connections.iter().any(Connection::is_both) && !self.both && !self.own.is_empty()
    }

    fn streams(&self) -> usize {
        if self.both { self.ids.len().div_ceil(2) } else { self.ids.len().max(1) }
    }
}

fn figures(run: &Run, udp: bool, ports: &Ports, builder: &mut Builder, faults: &mut Faults) {
    let rows = Rows::of(run, ports);
    let client = !ports.serves();
    let is_mixed = run.hit("mixed").is_some() || rows.is_untold();
    if !is_mixed && rows.connections.iter().any(Connection::bounces) {
        return bounced(run, &rows.connections, builder, faults);
    }
    let bench = if udp { ids::UDP } else { ids::TCP };
    let mut figures = Figures::new(builder, METRICS, "iperf 2", bench.as_str());
    figures.note = "its write size is unknown".to_string();
    figures.point("streams", Some(rows.streams() as i64));
    if rows.both {
        figures.params.set("direction", "both".into());
    }
    let way = if rows.both { "way" } else { "direction" };
    let turn = |figures: &mut Figures, sends: bool| {
        figures.params.set(way, if sends { "send" } else { "receive" }.into());
    };
    if is_mixed {
        let why = "two directions ran at once and their lines are mixed: use the client's output";
        turn(&mut figures, client);
        return figures.put("bandwidth", Err(why.to_string()));
    }
    let mut found = false;
    for (sends, metric, own) in [(true, "sent", &rows.sent), (false, "bandwidth", &rows.received)] {
        // A sum of one row is one of several tests; one of both ways is none of either.
        let has_sums = !rows.both && rows.ids.len() != 1 && sends == client;
        let sums = rows.own.iter().filter(|row| is_sum(row) && has_sums);
        let own: Vec<&Hit> = own.iter().chain(sums).copied().collect();
        turn(&mut figures, sends);
        found |= bandwidth(&own, metric, faults, &mut figures);
    }
    // What the server reports has arrived there.
    turn(&mut figures, client);
    found |= bandwidth(&rows.reported, "bandwidth", faults, &mut figures);
    let errors: Vec<&str> = run.texts("error").collect();
    if !found {
        turn(&mut figures, true);
        figures.unfinished("sent", errors.first().copied());
    } else if let Some(error) = errors.first().filter(|error| !error.contains("bind failed")) {
        faults.interrupted(error);
    }
}

/// The bandwidth of rows of one way and what UDP lost; whether there was one.
fn bandwidth(rows: &[&Hit], metric: &str, faults: &mut Faults, figures: &mut Figures) -> bool {
    let rate = |hit: &Hit| hit.scaled("rate", 1000.0).map(|rate| rate.value / 1e9);
    let whole = whole(rows);
    whole.iter().for_each(|row| check(row, faults));
    let sum = whole.iter().find(|row| is_sum(row));
    let one = sum.or(whole.first().filter(|_| whole.len() == 1)).copied();
    if let Some(rate) = one.and_then(rate) {
        figures.moved(metric, rate);
    } else {
        let each = whole.iter().filter_map(|row| rate(row));
        each.for_each(|rate| figures.put(&format!("stream_{metric}"), Ok(rate)));
    }
    for row in whole.iter().filter(|row| !is_sum(row) || whole.len() == 1) {
        let count = |name: &str| row.number(name).map(|count| count.value);
        if let (Some(lost), Some(total)) = (count("lost"), count("total").filter(|total| *total > 0.0)) {
            figures.put("loss", Ok(lost / total));
            figures.put("jitter", Ok(count("jitter").unwrap_or_default() * 1e3));
        }
    }
    !whole.is_empty()
}

/// Checks whether the rate of a row is its bytes over its time.
fn check(row: &Hit, faults: &mut Faults) {
    let time = row
        .number("to")
        .zip(row.number("from"))
        .map(|(to, from)| Number { value: to.value - from.value, rounding: to.rounding + from.rounding });
    let (rate, bytes) = (row.scaled("rate", 1000.0), row.scaled("amount", 1024.0));
    faults.rate("bandwidth", [rate, bytes.map(|bytes| bytes.times(8.0)), time], |rate, bits, time| {
        format!("it says {} Gbit/s; {:.0} bytes in {time:.4} s is another rate", rate / 1e9, bits / 8.0)
    });
}

/// Messages that went to and fro, a few each second: no bandwidth.
fn bounced(run: &Run, connections: &[Connection], builder: &mut Builder, faults: &mut Faults) {
    let mut figures = Figures::new(builder, METRICS, "iperf 2 bounceback", "network.iperf2-bounceback");
    let how = connections.iter().find_map(|one| one.how.split_once("req/reply/hold="));
    let sizes = how.and_then(|(_, rest)| rest.split([')', ' ']).next()).unwrap_or_default();
    for (name, text) in ["request", "reply", "hold"].iter().zip(sizes.split('/')) {
        figures.point(name, text.parse().ok());
    }
    let rows: Vec<&Hit> = run.all("bounce").collect();
    let whole = whole(&rows);
    let Some(row) = whole.first().filter(|_| whole.len() == 1) else {
        let why = "its client ran a bounceback test: use the client's output";
        return figures.put("latency_mean", Err(why.to_string()));
    };
    check(row, faults);
    let number = |name: &str| row.number(name).map(|number| number.value);
    for (metric, field) in [("latency_mean", "mean"), ("latency_min", "least"), ("latency_max", "most")] {
        figures.some(metric, number(field).map(|ms| ms * 1e3));
    }
    figures.some("round_trips", number("rps"));
}
