//! Results of iperf3 from either end: its JSON (`-J`, and the lines of `--json-stream`), and its
//! text.
//!
//! Bits are bits of payload, 10^9 in a Gbit; `cpu_utilization_percent` is iperf3's own CPU time in
//! per cent of one CPU. What arrived (`sum_received`) is the bandwidth, what was sent stands beside
//! it.

mod figures;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::above::{command, heading};
use super::builder::Builder;
use super::embedded::{Embedded, embedded};
use super::own::{Against, short};
use super::{Format, Imported, Tool};

pub(crate) const TOOL: Tool = Tool {
    files: "results of iperf3 (JSON and text)",
    json: &["{\"start\":", "{\"event\":", "{\"title\":", "{\"end\":", "{\"intervals\":"],
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("iperf3 result");

/// Remarks of one kind that are quoted.
const QUOTED: usize = 5;

/// More tests than this in one file are a mistake or an attack.
const MOST_TESTS: usize = 500;

/// Whether a text has a result of iperf3.
fn is_one(text: &str) -> bool {
    is_json(text) || text::is_one(text)
}

fn is_json(text: &str) -> bool {
    text.contains("\"iperf 3") || (text.contains("\"sum_sent\"") && text.contains("\"bits_per_second\""))
}

/// One test of a text.
struct Test {
    data: Value,
    /// It came to an end of its own.
    whole: bool,
    /// It is of a stream of events.
    streamed: bool,
    /// The heading under which it stands.
    heading: String,
}

impl Test {
    /// What no other test has: its cookie, and the end that wrote it.
    fn own(&self) -> String {
        let start = &self.data["start"];
        match start["cookie"].as_str() {
            Some(cookie) => {
                format!("{cookie} {} {}", start.get("accepted_connection").is_some(), start["system_info"])
            }
            None => self.data.to_string(),
        }
    }

    /// What is the same of two tests that are measurements of one system.
    fn system(&self) -> String {
        let start = &self.data["start"];
        let told = [
            &start["system_info"],
            &start["version"],
            &start["connecting_to"]["host"],
            &start["accepted_connection"]["host"],
            &start["sock_bufsize"],
            &start["test_start"]["tos"],
        ];
        told.iter()
            .map(|value| value.to_string())
            .chain([self.heading.clone()])
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The system of each test. How a sender answers to congestion stands at the end, which a stopped
/// test does not have: it tells systems apart only where two are told.
fn systems(tests: &[Test]) -> Vec<String> {
    let congestion = |test: &Test| test.data["end"]["sender_tcp_congestion"].as_str().map(str::to_string);
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for test in tests {
        known.entry(test.system()).or_default().extend(congestion(test));
    }
    let named = |test: &Test| {
        let system = test.system();
        let several = known.get(&system).is_some_and(|known| known.len() > 1);
        let more = congestion(test).filter(|_| several).unwrap_or_default();
        format!("{system}\n{more}")
    };
    tests.iter().map(named).collect()
}

/// The results in a text, of its JSON and of what else iperf3 printed.
fn read(text: &str) -> Vec<Imported> {
    if !is_json(text) {
        return text::read(text);
    }
    let mut found = embedded(text);
    let beside = found.lines.join("\n");
    let mut further = Vec::new();
    if text::has_sums(&beside) {
        further = text::read(&beside);
        found.lines.clear();
    }
    let mut results = read_json(found);
    results.append(&mut further);
    results
}

/// The results in JSON: one for each system that was tested.
fn read_json(found: Embedded) -> Vec<Imported> {
    let Embedded { documents, above, lines, cut, left_out } = found;
    let (tests, repeated) = each_once(tests_of(documents, above));
    let more = tests.len().saturating_sub(MOST_TESTS);
    let mut builders: BTreeMap<String, (Builder, Against)> = BTreeMap::new();
    let mut order = Vec::new();
    let last = tests.len().saturating_sub(1);
    let systems = systems(&tests);
    let several = systems.windows(2).any(|two| two[0] != two[1]);
    for (at, (test, own)) in tests.iter().zip(systems).take(MOST_TESTS).enumerate() {
        let (host, kernel) = system(&test.data);
        let (builder, against) = builders.entry(own.clone()).or_insert_with(|| {
            order.push(own);
            let mut builder = Builder::new(FORMAT, &host);
            builder.remarks.push(
                "iperf3 does not report where its tasks ran; its intervals are of one connection, and so not independent"
                    .to_string(),
            );
            (builder, Against::default())
        });
        builder.fact("kernel", &kernel);
        if several {
            builder.fact("heading", &test.heading);
        }
        if test.data["end"].is_null() && test.data["error"].is_null() {
            builder.remarks.push("started, no test finished: it has no \"end\"".to_string());
        }
        if cut && at == last {
            against.interrupted("the file ends in the midst of its JSON");
        } else if !test.whole {
            against.interrupted("the stream of events has neither an end nor an error");
        }
        figures::figures(&test.data, builder, against);
    }
    let mut results: Vec<Imported> = Vec::new();
    for system in order {
        let Some((mut builder, against)) = builders.remove(&system) else { continue };
        if results.is_empty() {
            builder.remarks.extend(
                lines.iter().take(QUOTED).map(|line| format!("beside the JSON it says {:?}", short(line))),
            );
            if let Some(more @ 1..) = lines.len().checked_sub(QUOTED) {
                builder.remarks.push(format!("and {more} more lines"));
            }
            if left_out + more > 0 {
                builder
                    .remarks
                    .push(format!("{} tests were left out: the file has too many", left_out + more));
            }
            match repeated {
                0 => {}
                1 => builder.remarks.push("a test stands in it once more and counts once".to_string()),
                _ => builder.remarks.push(format!("{repeated} tests stand in it once more and count once")),
            }
        }
        let mut imported = Imported { findings: against.findings(), ..builder.finish() };
        figures::headlines(&mut imported);
        results.push(imported);
    }
    results
}

/// Each test once: whole ones rather than their events, which some versions print before.
fn each_once(tests: Vec<Test>) -> (Vec<Test>, usize) {
    let (mut places, mut once, mut repeated) = (BTreeMap::new(), Vec::<Test>::new(), 0);
    for test in tests {
        match places.get(&test.own()).and_then(|at: &usize| once.get_mut(*at)) {
            None => {
                places.insert(test.own(), once.len());
                once.push(test);
            }
            Some(known) => {
                repeated += 1;
                if known.streamed && !test.streamed || !known.whole && test.whole {
                    let heading = std::mem::take(&mut known.heading);
                    *known = Test { heading, ..test };
                }
            }
        }
    }
    (once, repeated)
}

/// Documents as tests: whole ones as they are, the events of a stream put together; and under which
/// heading each stands.
fn tests_of(documents: Vec<Value>, above: Vec<&str>) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut heading = String::new();
    let put = |test: Map<String, Value>, heading: &str| {
        let whole = test.contains_key("end") || test.contains_key("error");
        Test { data: Value::Object(test), whole, streamed: true, heading: heading.to_string() }
    };
    let mut streamed: Option<(Map<String, Value>, String)> = None;
    for (document, above) in documents.into_iter().zip(above) {
        if let Some(said) = said(above) {
            heading = said;
        }
        let Some(event) = document["event"].as_str().map(str::to_string) else {
            let parts = ["start", "end", "error"];
            if parts.iter().any(|part| document.get(part).is_some()) {
                tests.extend(streamed.take().map(|(test, heading)| put(test, &heading)));
                let heading = heading.clone();
                tests.push(Test { data: document, whole: true, streamed: false, heading });
            }
            continue;
        };
        if event == "start" {
            tests.extend(streamed.take().map(|(test, heading)| put(test, &heading)));
        }
        let (test, _) = streamed.get_or_insert_with(|| (Map::new(), heading.clone()));
        let data = document["data"].clone();
        match event.as_str() {
            "interval" => {
                let intervals = test.entry("intervals").or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(intervals) = intervals {
                    intervals.push(data);
                }
            }
            "start" | "end" | "error" => _ = test.insert(event, data),
            _ => {}
        }
    }
    tests.extend(streamed.take().map(|(test, heading)| put(test, &heading)));
    tests
}

/// What a line above a test says, where it is a heading: no command, and none of iperf3's own.
fn said(line: &str) -> Option<String> {
    let is_own =
        line.starts_with("iperf") || line.starts_with("Server listening") || line.contains("arning:");
    heading(line).filter(|_| !is_own && command(line, "iperf3").is_none())
}

/// Host and kernel, as `uname -a` begins: `Linux HOST 6.1.0 ...`.
fn system(test: &Value) -> (String, String) {
    let told = test["start"]["system_info"].as_str().unwrap_or_default();
    let mut words = told.split_whitespace().skip(1).map(|word| word.chars().take(80).collect::<String>());
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}
