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

use super::above::command;
use super::builder::Builder;
use super::embedded::{Embedded, embedded};
use super::kit::{Asked, Heads, shown};
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
    place: Place,
}

/// What stands above a test.
#[derive(Clone, Debug, Default, PartialEq)]
struct Place {
    heading: Vec<String>,
    host: String,
    /// What started it, and where its program is.
    under: String,
    program: String,
}

impl Place {
    fn of(heads: &Heads) -> Place {
        let Asked { under, program, .. } = heads.asked.clone().unwrap_or_default();
        Place { heading: heads.heading.clone(), host: heads.host.clone(), under, program }
    }
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
        let told: Vec<String> = told.iter().map(|value| value.to_string()).collect();
        format!("{}\n{:?}", told.join("\n"), self.place)
    }

    /// What tells systems apart only where two are told: a test that was stopped does not have it.
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

/// The system of each test.
fn systems(tests: &[Test]) -> Vec<String> {
    let mut known: BTreeMap<String, [BTreeSet<String>; 3]> = BTreeMap::new();
    for test in tests {
        let own = known.entry(test.system()).or_default();
        own.iter_mut().zip(test.apart()).for_each(|(all, one)| all.extend(one));
    }
    let named = |test: &Test| {
        let system = test.system();
        let several = known.get(&system).map(|all| all.each_ref().map(|one| one.len() > 1));
        let told = test.apart().into_iter().zip(several.unwrap_or_default());
        let told = told.map(|(one, several)| one.filter(|_| several).unwrap_or_default());
        format!("{system}\n{}", told.collect::<Vec<_>>().join("\n"))
    };
    tests.iter().map(named).collect()
}

/// The results in a text, of its JSON and of what else iperf3 printed.
fn read(text: &str) -> Vec<Imported> {
    if !is_json(text) {
        return text::read(text);
    }
    let mut found = embedded(text);
    let above = between(&found);
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

/// The lines above each document, up to the one before.
fn between<'t>(found: &Embedded<'t>) -> Vec<Vec<&'t str>> {
    let mut lines = found.lines.iter().map(|line| line.trim());
    let up_to = |last: &&'t str| {
        let mut own = Vec::new();
        let mut is_last = last.is_empty();
        while !is_last && let Some(line) = lines.next() {
            own.push(line);
            // The same place of the text.
            is_last = std::ptr::eq(line, *last);
        }
        own
    };
    found.above.iter().map(up_to).collect()
}

/// The results in JSON: one for each system that was tested.
fn read_json(found: Embedded, above: Vec<Vec<&str>>) -> Vec<Imported> {
    let Embedded { documents, lines, cut, left_out, .. } = found;
    let (tests, repeated) = each_once(tests_of(documents, above));
    let more = tests.len().saturating_sub(MOST_TESTS);
    let mut builders: BTreeMap<String, (Builder, Against)> = BTreeMap::new();
    let mut order = Vec::new();
    let last = tests.len().saturating_sub(1);
    let systems = systems(&tests);
    let several = systems.windows(2).any(|two| two[0] != two[1]);
    for (at, (test, own)) in tests.iter().zip(systems).take(MOST_TESTS).enumerate() {
        let (host, kernel) = system(&test.data);
        let host = if host.is_empty() { test.place.host.clone() } else { host };
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
            builder.fact("heading", &shown(&test.place.heading).1);
            builder.fact("started by", &test.place.under);
            builder.fact("program", &test.place.program);
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
                    let place = std::mem::take(&mut known.place);
                    *known = Test { place, ..test };
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
    let mut heads = Heads::new(above.iter().flatten().copied());
    let put = |(test, place): (Map<String, Value>, Place)| {
        let whole = test.contains_key("end") || test.contains_key("error");
        Test { data: Value::Object(test), whole, streamed: true, place }
    };
    let mut streamed: Option<(Map<String, Value>, Place)> = None;
    for (document, above) in documents.into_iter().zip(above) {
        for line in above.into_iter().filter(|line| !is_own(line)) {
            heads.line(line, "iperf3");
        }
        let Some(event) = document["event"].as_str().map(str::to_string) else {
            let parts = ["start", "end", "error"];
            if parts.iter().any(|part| document.get(part).is_some()) {
                tests.extend(streamed.take().map(put));
                heads.settle();
                let place = Place::of(&heads);
                tests.push(Test { data: document, whole: true, streamed: false, place });
            }
            continue;
        };
        if event == "start" {
            tests.extend(streamed.take().map(put));
        }
        if streamed.is_none() {
            heads.settle();
        }
        let (test, _) = streamed.get_or_insert_with(|| (Map::new(), Place::of(&heads)));
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

/// Whether a line beside the JSON is iperf3's own.
fn is_own(line: &str) -> bool {
    line.starts_with("iperf") && command(line, "iperf3").is_none()
        || line.starts_with("Server listening")
        || line.contains("arning:")
}

/// Host and kernel, as `uname -a` begins: `Linux HOST 6.1.0 ...`.
fn system(test: &Value) -> (String, String) {
    let told = test["start"]["system_info"].as_str().unwrap_or_default();
    let mut words = told.split_whitespace().skip(1).map(|word| word.chars().take(80).collect::<String>());
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}
