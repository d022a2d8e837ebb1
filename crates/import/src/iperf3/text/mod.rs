//! iperf3's text, from either end, as the JSON that it would have written of the same test: what is
//! not told is not there, and figures have the three digits that are printed.

pub mod lines;
mod parts;
mod rows;

use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::Imported;
use crate::kit::Does::Ahead;
use crate::kit::Expression;
use crate::kit::{Asked, Log, Number, Results, Run, Table, log, scale};
use lines::{FLAGS, VALUED};
use rows::{Shape, rows};

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
        let told = ["version", "system"].map(|name| run.text(name));
        let serves = run.hit("from").is_some();
        if told.iter().any(Option::is_some) || !serves {
            server = if serves { told } else { [None; 2] };
        }
        let [version, system] = if serves { server } else { told };
        // No two tests have the same ports.
        let ports = run.hit("connected").is_some();
        let mut remarks = Vec::new();
        let mut test = test(run, version, system, &mut remarks);
        let (host, kernel) = super::system(&test);
        let asked = run.asked.as_ref();
        let peer = peer(run);
        let version = version.unwrap_or_default().to_string();
        let day = run.text("time").and_then(|time| time.split_once(':')).map_or("", |(day, _)| day);
        // Its last word is an hour.
        let day = day.rsplit_once(' ').map_or("", |(day, _)| day).to_string();
        let further = asked.map_or(String::new(), |asked| asked.without(&VALUED, &FLAGS));
        let mut facts = vec![("kernel", kernel), ("options", further), ("", peer.to_string()), ("", version)];
        facts.extend([("?local", locals[at].clone()), ("?day", day)]);
        if !host.is_empty() {
            facts.push(("host", host));
        }
        let Some((builder, against)) = results.of(run, facts, ports) else { continue };
        for remark in remarks {
            if !builder.remarks.contains(&remark) {
                builder.remarks.push(remark);
            }
        }
        if mixed[at] {
            test["unread"] = "the lines of two tests that ran at once are mixed, and do not tell which is of which: ask for a file of each".into();
        } else if test["end"].as_object().is_some_and(|end| end.is_empty()) && test.get("error").is_none() {
            against.interrupted("the text ends before the sums of a test");
        }
        super::figures::figures(&test, builder, against);
    }
    let mut results = results.finish(&log);
    if let Some(first) = results.first_mut().filter(|_| of_servers) {
        first.remarks.push(
            "what servers said of the same tests stands in it (Server output) and was not read again".into(),
        );
    }
    results.iter_mut().for_each(super::figures::headlines);
    results
}

/// Where a test goes to, or comes from.
fn peer<'a>(run: &'a Run) -> &'a str {
    let to = || run.asked.as_ref().and_then(|asked| asked.value(&["-c", "--client"]));
    run.text("to").or(run.text("from")).or_else(to).unwrap_or_default()
}

/// The own address of each test. One that was refused does not tell it and has that of the test
/// before it, or behind it, with the same other end.
fn locals(runs: &[Run]) -> Vec<String> {
    let told: Vec<Option<&str>> =
        runs.iter().map(|run| run.hit("connected").and_then(|hit| hit.text("local"))).collect();
    let near = |at: usize| {
        let is_same =
            |other: &usize| peer(&runs[*other]) == peer(&runs[at]) && runs[*other].host == runs[at].host;
        let before = (0..at).rev().take(10).filter(is_same).find_map(|other| told[other]);
        before.or_else(|| (at + 1..runs.len()).take(10).filter(is_same).find_map(|other| told[other]))
    };
    (0..runs.len()).map(|at| told[at].or_else(|| near(at)).unwrap_or_default().to_string()).collect()
}

/// Lets what it says of an error be part of the run that it ended. In a file it may stand before
/// all of it, since only what is no error waits until there is much to write.
fn settle(runs: &mut Vec<Run>) {
    let alone = |run: &Run| run.hits.iter().all(|hit| hit.name == "error" || hit.does == Ahead);
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
            next.asked == own.asked && !whole(next) && (next.hit("error").is_none() || of_server(next));
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
fn amount(asked: Option<&Asked>, names: &[&str], step: f64) -> Option<f64> {
    let text = asked?.value(names)?.split('/').next()?;
    let end = text.find(|one: char| one.is_ascii_alphabetic()).unwrap_or(text.len());
    Some(Number::read(&text[..end])?.value * scale(&text[end..], step))
}

/// A run as iperf3's JSON has it.
fn test(run: &Run, version: Option<&str>, system: Option<&str>, remarks: &mut Vec<String>) -> Value {
    let rows = rows(run);
    let asked = run.asked.as_ref();
    let has = |names: &[&str]| asked.is_some_and(|asked| asked.has(names));
    let both = rows.iter().any(|row| row.sends.is_some()) || has(&["--bidir"]);
    let server = run.hit("from").is_some() || run.hit("to").is_none() && has(&["-s", "--server"]);
    let headers: Vec<&str> = run.all("header").filter_map(|hit| hit.text("value")).collect();
    let sends_here = |header: &str| header.starts_with("Retr") || header.starts_with("Total");
    let starting = run.hit("starting");
    let udp = headers.iter().any(|header| header.contains("Datagrams"))
        || rows.iter().any(|row| row.packets.is_some())
        || has(&["-u", "--udp"]);
    let protocol = match starting.and_then(|hit| hit.text("protocol")) {
        Some(protocol) => Some(protocol),
        None if has(&["--sctp"]) => Some("SCTP"),
        None if udp => Some("UDP"),
        None if rows.is_empty() && headers.is_empty() && run.hit("connected").is_none() => None,
        None => Some("TCP"),
    };
    let reverse = match server {
        // Each end shows retransmits, or datagrams without losses, of what it sends.
        true => !both && headers.first().is_some_and(|header| sends_here(header)),
        false => run.hit("reverse").is_some() || has(&["-R", "--reverse"]),
    };
    let told = |field: &str| starting.and_then(|hit| hit.number(field)).map(|number| number.value as u64);
    let ids: BTreeSet<&str> = match run.hit("connected") {
        Some(_) => run.all("connected").filter_map(|hit| hit.text("id")).collect(),
        None => rows.iter().filter(|row| row.id != "SUM").map(|row| row.id).collect(),
    };
    let counted = (ids.len() / if both { 2 } else { 1 }).max(1) as u64;
    // A sum alone is of several, and nobody knows of how many.
    let several = counted == 1 && rows.iter().any(|row| row.id == "SUM");
    let streams = told("streams")
        .or(amount(asked, &["-P", "--parallel"], 1.0).map(|streams| streams as u64))
        .unwrap_or(if several { 0 } else { counted });
    if streams == 0 {
        remarks.push("how many streams it had is not told: its sums are of all".into());
    }
    let mut setup = json!({"num_streams": streams, "reverse": u8::from(reverse), "bidir": u8::from(both)});
    if let Some(protocol) = protocol {
        setup["protocol"] = protocol.into();
    }
    let block = told("block")
        .or(run.hit("block").and_then(|hit| hit.number("value")).map(|number| number.value as u64))
        .or(amount(asked, &["-l", "--length"], 1024.0).map(|bytes| bytes as u64));
    match (block, protocol) {
        (Some(block), _) => setup["blksize"] = block.into(),
        (None, Some("TCP")) => {
            setup["blksize"] = BLOCK.into();
            if asked.is_none() {
                remarks.push(
                    "how much it wrote at once is not told: 128 KiB unless an option (-l) said otherwise"
                        .into(),
                );
            }
        }
        (None, Some("UDP")) => remarks.push("the size of its datagrams is not told".into()),
        _ => {}
    }
    let default = Some(UDP_RATE).filter(|_| udp && asked.is_some() && !server);
    let rate = run.hit("target").and_then(|hit| hit.number("value")).map(|number| number.value);
    match rate.or(amount(asked, &["-b", "--bitrate", "--bandwidth"], 1e3)).or(default) {
        Some(rate) => setup["target_bitrate"] = rate.into(),
        None if udp => remarks.push("the rate that it was to send at is not told".into()),
        None => {}
    }
    let omit = told("omit").or(amount(asked, &["-O", "--omit"], 1.0).map(|seconds| seconds as u64));
    // A command without the option omits nothing.
    let omit = omit.or(asked.filter(|_| !server).map(|_| 0));
    let seconds = told("seconds").or(amount(asked, &["-t", "--time"], 1.0).map(|seconds| seconds as u64));
    for (name, value) in [("omit", omit), ("duration", seconds), ("tos", told("tos"))] {
        if let Some(value) = value {
            setup[name] = value.into();
        }
    }
    let connected: Vec<Value> = run
        .all("connected")
        .map(|hit| json!({"local_host": hit.text("local"), "remote_host": hit.text("remote")}))
        .collect();
    let mut start = json!({"connected": connected, "test_start": setup});
    if let Some(version) = version {
        start["version"] = format!("iperf {version}").into();
    }
    if let Some(system) = system {
        start["system_info"] = system.into();
    }
    if let Some(time) = run.text("time") {
        start["timestamp"] = json!({"time": time});
    }
    if let Some(mss) = run.hit("mss").and_then(|hit| hit.number("value")) {
        start["tcp_mss_default"] = (mss.value as u64).into();
    }
    match (server, run.text("from"), run.text("to")) {
        (true, host, _) => start["accepted_connection"] = json!({"host": host}),
        (false, _, Some(host)) => start["connecting_to"] = json!({"host": host}),
        _ => {}
    }
    let shape = Shape { udp, both, server, sends: server == reverse, streams };
    let mut found =
        json!({"start": start, "intervals": shape.intervals(&rows), "end": shape.end(run, &rows)});
    if let Some(error) = run.text("error") {
        found["error"] = error.into();
    }
    found
}
