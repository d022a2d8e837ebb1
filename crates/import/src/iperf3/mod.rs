//! Results of iperf3 from either end: its JSON (`-J`, and the lines of `--json-stream`), and its
//! text.
//!
//! Bits are bits of payload, 10^9 in a Gbit; `cpu_utilization_percent` is iperf3's own CPU time in
//! percent of one CPU. What arrived (`sum_received`) is the bandwidth; what was sent is a further
//! figure.

mod figures;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::embedded::{Embedded, embedded};
use super::faults::short;
use super::kit::commands::command;
use super::kit::context::{ContextTracker, RunContext};
use super::kit::{Log, Results, headlines};
use super::{Format, Imported, Tool};

pub(crate) const TOOL: Tool = Tool {
    files: "iperf3 (JSON and text)",
    json: &["{\"start\":", "{\"event\":", "{\"title\":", "{\"end\":", "{\"intervals\":"],
    documented: false,
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("iperf3 result");

const REMARK: &str =
    "iperf3 does not report where its tasks ran; its intervals are of one connection, and so not independent";

/// Remarks of one kind that are quoted.
const QUOTED: usize = 5;

/// More tests than this in one file are a mistake or an attack.
const MAX_TESTS: usize = 500;

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
    context: RunContext,
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
    fn system(&self) -> Vec<(&'static str, String)> {
        let start = &self.data["start"];
        let printed = [
            &start["system_info"],
            &start["version"],
            &start["connecting_to"]["host"],
            &start["accepted_connection"]["host"],
            &start["sock_bufsize"],
            &start["test_start"]["tos"],
        ];
        printed.map(|value| ("", value.to_string())).to_vec()
    }

    /// What distinguishes systems only where both have it: a stopped test does not.
    /// How a sender answers to congestion stands at the end, where it is from when it connects.
    fn apart(&self) -> [Option<String>; 3] {
        let (start, end) = (&self.data["start"], &self.data["end"]);
        let day = |time: &str| time.split(' ').take_while(|word| !word.contains(':')).collect::<String>();
        [
            end["sender_tcp_congestion"].as_str().map(str::to_string),
            start["connected"][0]["local_host"].as_str().map(str::to_string),
            start["timestamp"]["time"].as_str().map(day),
        ]
    }
}

/// What distinguishes the system of each test from others.
fn systems(tests: &[Test]) -> Vec<Vec<(&'static str, String)>> {
    let known: Vec<_> = tests.iter().map(|test| (test, test.system(), test.apart())).collect();
    let of = |(test, system, apart): &(&Test, Vec<_>, [Option<String>; 3])| {
        let is_alike = |(other, own, _): &&(&Test, Vec<_>, _)| {
            own == system && !other.context.is_apart(&test.context, true)
        };
        let alike: Vec<_> = known.iter().filter(is_alike).map(|(_, _, apart)| apart).collect();
        let several =
            |at: usize| alike.iter().filter_map(|one| one[at].as_ref()).collect::<BTreeSet<_>>().len() > 1;
        let printed = apart.iter().enumerate().filter(|(at, _)| several(*at));
        let printed = printed.filter_map(|(_, one)| Some(("", one.clone()?)));
        system.iter().cloned().chain(printed).collect()
    };
    known.iter().map(of).collect()
}

/// The results in a text, of its JSON and of what else iperf3 printed.
fn read(text: &str) -> Vec<Imported> {
    if !is_json(text) {
        return text::read(text);
    }
    let mut found = embedded(text);
    let above = found.headed();
    let beside = found.lines.join("\n");
    let mut further = Vec::new();
    if text::has_sums(&beside) {
        further = text::read(&beside);
        found.lines.clear();
    }
    let mut results = read_json(found, above);
    results.append(&mut further);
    results
}

/// The results in JSON: one for each system that was tested.
fn read_json(found: Embedded, above: Vec<Vec<&str>>) -> Vec<Imported> {
    let Embedded { documents, lines, cut, left_out, .. } = found;
    let (tests, repeated) = each_once(tests_of(documents, above));
    let more = tests.len().saturating_sub(MAX_TESTS);
    let tests = &tests[..tests.len() - more];
    let mut results = Results::new(FORMAT, REMARK);
    for (at, (test, mut facts)) in tests.iter().zip(systems(tests)).enumerate() {
        let (host, kernel) = system(&test.data);
        facts.extend([("kernel", kernel), ("host", host)]);
        let Some((builder, faults)) = results.of_told(&test.context, facts, None) else { continue };
        if test.data["end"].is_null() && test.data["error"].is_null() {
            builder.remarks.push("started, no test finished: it has no \"end\"".to_string());
        }
        if cut && at + 1 == tests.len() + more {
            faults.interrupted("the file ends in the middle of its JSON");
        } else if !test.whole {
            faults.interrupted("its stream of events has neither an end nor an error");
        }
        figures::figures(&test.data, builder, faults);
    }
    let mut results = results.finish(&Log::default());
    if let Some(first) = results.first_mut() {
        first
            .remarks
            .extend(lines.iter().take(QUOTED).map(|line| format!("not part of the JSON: {:?}", short(line))));
        if let Some(more @ 1..) = lines.len().checked_sub(QUOTED) {
            first.remarks.push(format!("and {more} more lines"));
        }
        if left_out + more > 0 {
            first.remarks.push(format!("{} tests were left out: the file has too many", left_out + more));
        }
        match repeated {
            0 => {}
            1 => first.remarks.push("a test appears twice and counts once".to_string()),
            _ => first.remarks.push(format!("{repeated} tests appear twice and count once")),
        }
    }
    results.iter_mut().for_each(|one| headlines(one, &["bandwidth"]));
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
                    let context = std::mem::take(&mut known.context);
                    *known = Test { context, ..test };
                }
            }
        }
    }
    (once, repeated)
}

/// Documents as tests: whole ones as they are, the events of a stream put together; and under which
/// lines each stands.
fn tests_of(documents: Vec<Value>, above: Vec<Vec<&str>>) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut tracker = ContextTracker::new(above.iter().flatten().copied());
    let put = |(test, context): (Map<String, Value>, RunContext)| {
        let whole = test.contains_key("end") || test.contains_key("error");
        Test { data: Value::Object(test), whole, streamed: true, context }
    };
    let mut streamed: Option<(Map<String, Value>, RunContext)> = None;
    for (document, above) in documents.into_iter().zip(above) {
        for line in above.into_iter().filter(|line| !is_own(line)) {
            tracker.line(line, "iperf3");
        }
        let Some(event) = document["event"].as_str().map(str::to_string) else {
            let parts = ["start", "end", "error"];
            if parts.iter().any(|part| document.get(part).is_some()) {
                tests.extend(streamed.take().map(put));
                let context = tracker.begin();
                tests.push(Test { data: document, whole: true, streamed: false, context });
            }
            continue;
        };
        if event == "start" {
            tests.extend(streamed.take().map(put));
        }
        let (test, _) = streamed.get_or_insert_with(|| (Map::new(), tracker.begin()));
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
    tests.extend(streamed.take().map(put));
    tests
}

/// Whether a line outside of the JSON is iperf3's own.
fn is_own(line: &str) -> bool {
    line.starts_with("iperf") && command(line, "iperf3").is_none()
        || line.starts_with("Server listening")
        || line.contains("arning:")
}

/// Host and kernel, as `uname -a` begins: `Linux HOST 6.1.0 ...`.
fn system(test: &Value) -> (String, String) {
    let printed = test["start"]["system_info"].as_str().unwrap_or_default();
    let mut words = printed.split_whitespace().skip(1).map(|word| word.chars().take(80).collect::<String>());
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}
