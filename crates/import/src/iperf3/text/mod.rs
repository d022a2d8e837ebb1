//! iperf3's text, from either end, as the JSON that it would have written of the same test: what is
//! missing stays missing, and figures have the three digits that are printed.

pub mod lines;
mod parts;
mod rows;

use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::Imported;
use crate::kit::Expression;
use crate::kit::Role::Ahead;
use crate::kit::{Command, Hit, Log, Results, Run, Table, log, options, scale};
use lines::{FLAGS, VALUED};
use model::units;
use rows::{Row, TestKind, rows};

const REMARK: &str = "iperf3 does not report where its tasks ran; its intervals are of one connection, and so not \
                      independent; its text has three digits of a rate";
/// What iperf3 writes at once over TCP unless an option says otherwise, in all its versions.
const BLOCK: u64 = 128 << 10;
/// Its rate over UDP unless an option says otherwise, bit/s.
const UDP_RATE: f64 = 1_048_576.0;

/// Whether a text is what iperf3 printed, and not its elder, whose lines are similar.
pub fn is_one(text: &str) -> bool {
    static MARK: Expression = Expression::new(
        r"(?m)^\s*(?:Connecting to host \S+, port \d+|Accepted connection from \S+, port \d+|iperf Done\.|(?:\^C)?iperf3: (?:error|interrupt) - |\[ ID\](?:\[Role\])? Interval +Transfer +Bitrate)",
    );
    MARK.is_match(text) || has_sums(text)
}

/// Whether a text has the sums of a test.
pub fn has_sums(text: &str) -> bool {
    static SUM: Expression = Expression::new(
        r"(?m)^\s*\[ *(?:\d+|SUM)\](?:\[[RT]X-[CS]\])? +\d+\.\d\d-\d+\.\d\d +sec .*/sec .*(?:sender|receiver)\s*$",
    );
    SUM.is_match(text)
}

/// The results in a text.
pub fn read(text: &str) -> Vec<Imported> {
    static TABLE: Table = Table::new(lines::LINES);
    let (text, of_servers) = parts::without_servers(text);
    let text = parts::rejoined(&text, &TABLE);
    let mut log: Log = log(&text, "iperf3", &TABLE, parts::again);
    settle(&mut log.runs);
    let mixed = parts::mixed(&log.runs);
    let locals = locals(&log.runs);
    let mut results = Results::new(super::FORMAT, REMARK);
    // A server says once what it is.
    let mut server: [Option<&str>; 2] = [None; 2];
    for (at, run) in log.runs.iter().enumerate() {
        let printed = ["version", "system"].map(|name| run.text(name));
        let serves = run.hit("from").is_some();
        if printed.iter().any(Option::is_some) || !serves {
            server = if serves { printed } else { [None; 2] };
        }
        let [version, system] = if serves { server } else { printed };
        // No two tests have the same ports.
        let ports = run.hit("connected").is_some();
        let mut remarks = Vec::new();
        let mut test = test(run, version, system, &mut remarks);
        let (host, kernel) = super::system(&test);
        let command = run.command.as_ref();
        let peer = peer(run);
        let version = version.unwrap_or_default().to_string();
        let day = run.text("time").and_then(|time| time.split_once(':')).map_or("", |(day, _)| day);
        // Its last word is an hour.
        let day = day.rsplit_once(' ').map_or("", |(day, _)| day).to_string();
        let further =
            command.map_or(String::new(), |command| command.without(&options(VALUED), &options(FLAGS)));
        let mut facts = vec![("kernel", kernel), ("options", further), ("", peer.to_string()), ("", version)];
        facts.extend([("?local", locals[at].clone()), ("?day", day)]);
        if !host.is_empty() {
            facts.push(("host", host));
        }
        let Some((builder, faults)) = results.of(run, facts, ports) else { continue };
        for remark in remarks {
            if !builder.remarks.contains(&remark) {
                builder.remarks.push(remark);
            }
        }
        if mixed[at] {
            test["unread"] =
                "the lines of two tests that ran at once are mixed: write each test to its own file".into();
        } else if test["end"].as_object().is_some_and(|end| end.is_empty()) && test.get("error").is_none() {
            faults.interrupted("the text ends before the sums of a test");
        }
        super::figures::figures(&test, builder, faults);
    }
    let mut results = results.finish_with(&log, &["bandwidth"]);
    if let Some(first) = results.first_mut().filter(|_| of_servers) {
        first.remarks.push("the servers' output of the same tests (Server output) was not read again".into());
    }
    results
}

/// Where a test goes to, or comes from.
fn peer<'a>(run: &'a Run) -> &'a str {
    let to = || run.command.as_ref().and_then(|command| command.value(&["-c", "--client"]));
    run.text("to").or(run.text("from")).or_else(to).unwrap_or_default()
}

/// The own address of each test. One that was refused does not give it and has that of the test
/// before it, or behind it, with the same other end.
fn locals(runs: &[Run]) -> Vec<String> {
    let printed: Vec<Option<&str>> =
        runs.iter().map(|run| run.hit("connected").and_then(|hit| hit.text("local"))).collect();
    let near = |at: usize| {
        let is_same =
            |other: &usize| peer(&runs[*other]) == peer(&runs[at]) && runs[*other].host == runs[at].host;
        let before = (0..at).rev().take(10).filter(is_same).find_map(|other| printed[other]);
        before.or_else(|| (at + 1..runs.len()).take(10).filter(is_same).find_map(|other| printed[other]))
    };
    (0..runs.len()).map(|at| printed[at].or_else(|| near(at)).unwrap_or_default().to_string()).collect()
}

/// Makes an error message part of the run that it ended. In a file it may stand before all of it,
/// since output is buffered and error messages are not.
fn settle(runs: &mut Vec<Run>) {
    let alone = |run: &Run| run.hits.iter().all(|hit| hit.name == "error" || hit.role == Ahead);
    // What came to its end has sums, and says once more only of the sums what its columns are.
    let whole = |run: &Run| {
        let rows = rows(run);
        let received = rows.iter().any(|row| row.end == "receiver" && row.bits > 0.0);
        let ended = rows.iter().any(|row| row.last) && run.all("header").count() == 2;
        run.hit("done").is_some() || (ended && (received || run.hit("from").is_some()))
    };
    let of_server =
        |run: &Run| run.text("error").is_some_and(|text| text.ends_with("the server has terminated"));
    for run in runs.iter_mut().filter(|run| whole(run) && of_server(run)) {
        run.hits.retain(|hit| hit.name != "error");
    }
    for at in 0..runs.len().saturating_sub(1) {
        let (before, after) = runs.split_at_mut(at + 1);
        let (Some(own), Some(next)) = (before.last_mut(), after.first_mut()) else { continue };
        let Some(place) = own.hits.iter().position(|hit| hit.name == "error") else { continue };
        let moves =
            next.command == own.command && !whole(next) && (next.hit("error").is_none() || of_server(next));
        if moves && !alone(next) && (alone(own) || whole(own)) {
            next.hits.insert(0, own.hits.remove(place));
        }
    }
    // A server without a test was ended, or an error has found its run.
    let idle = |run: &Run| alone(run) && (run.hit("error").is_none() || of_server(run));
    if runs.iter().any(|run| !idle(run)) {
        runs.retain(|run| !idle(run));
    }
}

/// What a run's command asks for.
fn amount(command: Option<&Command>, names: &[&str], step: f64) -> Option<f64> {
    let text = command?.value(names)?.split('/').next()?;
    let (number, unit) = units::split(text)?;
    Some(number * scale(unit, step))
}

/// What a run is, by its lines and its command.
struct Kind<'r, 't> {
    run: &'r Run<'t>,
    rows: Vec<Row<'r>>,
    /// The server wrote it.
    server: bool,
    udp: bool,
    both: bool,
    reverse: bool,
    protocol: Option<&'r str>,
}

impl<'r, 't> Kind<'r, 't> {
    fn of(run: &'r Run<'t>) -> Kind<'r, 't> {
        let rows = rows(run);
        let has = |names: &[&str]| run.command.as_ref().is_some_and(|command| command.has(names));
        let both = rows.iter().any(|row| row.sends.is_some()) || has(&["--bidir"]);
        let server = run.hit("from").is_some() || run.hit("to").is_none() && has(&["-s", "--server"]);
        let headers: Vec<&str> = run.texts("header").collect();
        let sends_here = |header: &&str| header.starts_with("Retr") || header.starts_with("Total");
        let udp = headers.iter().any(|header| header.contains("Datagrams"))
            || rows.iter().any(|row| row.packets.is_some())
            || has(&["-u", "--udp"]);
        let protocol = match run.hit("starting").and_then(|hit| hit.text("protocol")) {
            Some(protocol) => Some(protocol),
            None if has(&["--sctp"]) => Some("SCTP"),
            None if udp => Some("UDP"),
            None if rows.is_empty() && headers.is_empty() && run.hit("connected").is_none() => None,
            None => Some("TCP"),
        };
        let reverse = match server {
            // Each end shows retransmits, or datagrams without losses, of what it sends.
            true => !both && headers.first().is_some_and(sends_here),
            false => run.hit("reverse").is_some() || has(&["-R", "--reverse"]),
        };
        Kind { run, rows, server, udp, both, reverse, protocol }
    }

    /// A number of the line in which a verbose client says what it starts.
    fn printed(&self, field: &str) -> Option<u64> {
        self.run.hit("starting")?.number(field).map(|number| number.value as u64)
    }

    /// The same, or else what the command asks for.
    fn told_or_asked(&self, field: &str, names: &[&str], step: f64) -> Option<u64> {
        self.printed(field)
            .or_else(|| amount(self.run.command.as_ref(), names, step).map(|value| value as u64))
    }

    fn number(&self, line: &str) -> Option<f64> {
        self.run.hit(line)?.number("value").map(|number| number.value)
    }

    /// How many streams it had; 0 where that is not known.
    fn streams(&self) -> u64 {
        let ids: BTreeSet<&str> = match self.run.hit("connected") {
            Some(_) => self.run.all("connected").filter_map(|hit| hit.text("id")).collect(),
            None => self.rows.iter().filter(|row| row.id != "SUM").map(|row| row.id).collect(),
        };
        let counted = (ids.len() / if self.both { 2 } else { 1 }).max(1) as u64;
        // A sum alone is of several, and their number is unknown.
        let is_sum = counted == 1 && self.rows.iter().any(|row| row.id == "SUM");
        let known = self.told_or_asked("streams", &["-P", "--parallel"], 1.0);
        known.unwrap_or(if is_sum { 0 } else { counted })
    }

    /// What was asked of the test, in iperf3's words.
    fn setup(&self, streams: u64, remarks: &mut Vec<String>) -> Value {
        let command = self.run.command.as_ref();
        if streams == 0 {
            remarks.push("its number of streams is unknown: its sums are of all".into());
        }
        let (reverse, both) = (u8::from(self.reverse), u8::from(self.both));
        let mut setup = json!({"num_streams": streams, "reverse": reverse, "bidir": both});
        let block = self.printed("block").or(self.number("block").map(|bytes| bytes as u64));
        let block = block.or(amount(command, &["-l", "--length"], 1024.0).map(|bytes| bytes as u64));
        if block.is_none() && self.protocol == Some("TCP") && command.is_none() {
            remarks.push("its write size is unknown: 128 KiB unless an option (-l) changed it".into());
        }
        if block.is_none() && self.protocol == Some("UDP") {
            remarks.push("the size of its datagrams is unknown".into());
        }
        let usual = Some(UDP_RATE).filter(|_| self.udp && command.is_some() && !self.server);
        let rate = self.number("target").or(amount(command, &["-b", "--bitrate", "--bandwidth"], 1e3));
        let rate = rate.or(usual);
        if rate.is_none() && self.udp {
            remarks.push("its target rate is unknown".into());
        }
        // A command without the option omits nothing.
        let omit = self.told_or_asked("omit", &["-O", "--omit"], 1.0);
        let omit = omit.or(command.filter(|_| !self.server).map(|_| 0));
        for (name, value) in [
            ("protocol", self.protocol.map(Value::from)),
            ("blksize", block.or(Some(BLOCK).filter(|_| self.protocol == Some("TCP"))).map(Value::from)),
            ("target_bitrate", rate.map(Value::from)),
            ("omit", omit.map(Value::from)),
            ("duration", self.told_or_asked("seconds", &["-t", "--time"], 1.0).map(Value::from)),
            ("tos", self.printed("tos").map(Value::from)),
        ] {
            value.into_iter().for_each(|value| setup[name] = value);
        }
        setup
    }
}

/// A run as iperf3's JSON has it.
fn test(run: &Run, version: Option<&str>, system: Option<&str>, remarks: &mut Vec<String>) -> Value {
    let kind = Kind::of(run);
    let streams = kind.streams();
    let ends = |hit: &Hit| json!({"local_host": hit.text("local"), "remote_host": hit.text("remote")});
    let connected: Vec<Value> = run.all("connected").map(ends).collect();
    let mut start = json!({"connected": connected, "test_start": kind.setup(streams, remarks)});
    let mss = kind.number("mss").map(|bytes| bytes as u64);
    for (name, value) in [
        ("version", version.map(|version| format!("iperf {version}").into())),
        ("system_info", system.map(Value::from)),
        ("timestamp", run.text("time").map(|time| json!({"time": time}))),
        ("tcp_mss_default", mss.map(Value::from)),
    ] {
        value.into_iter().for_each(|value| start[name] = value);
    }
    match (kind.server, run.text("from"), run.text("to")) {
        (true, host, _) => start["accepted_connection"] = json!({"host": host}),
        (false, _, Some(host)) => start["connecting_to"] = json!({"host": host}),
        _ => {}
    }
    let Kind { rows, udp, both, server, reverse, .. } = kind;
    let shape = TestKind { udp, both, server, sends: server == reverse, streams };
    let mut found =
        json!({"start": start, "intervals": shape.intervals(&rows), "end": shape.end(run, &rows)});
    if let Some(error) = run.text("error") {
        found["error"] = error.into();
    }
    found
}
