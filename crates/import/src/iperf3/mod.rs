//! Results of iperf3, its JSON (`-J`, and the lines of `--json-stream`), from either end.
//!
//! Bits are bits of payload, 10^9 in a Gbit; `cpu_utilization_percent` is iperf3's own CPU time in
//! per cent of one CPU. What arrived (`sum_received`) is the bandwidth, what was sent stands beside
//! it.

mod figures;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::builder::Builder;
use super::embedded::{Embedded, embedded};
use super::own::{Against, short};
use super::{Format, Imported, Tool};

pub(crate) const TOOL: Tool = Tool {
    files: "results of iperf3 (JSON)",
    json: &["{\"start\":", "{\"event\":", "{\"title\":", "{\"end\":", "{\"intervals\":"],
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("iperf3 result");

/// Remarks of one kind that are quoted.
const QUOTED: usize = 5;

/// Whether a text has a result of iperf3.
fn is_one(text: &str) -> bool {
    text.contains("\"iperf 3") || (text.contains("\"sum_sent\"") && text.contains("\"bits_per_second\""))
}

/// One test, as its file has it.
struct Test {
    document: Value,
    /// It came to an end of its own.
    whole: bool,
    /// The line above it, if that is no part of a result.
    above: String,
}

impl Test {
    /// What the text tells of where it ran and what it is of: tests of which all of it is the same
    /// are of one result.
    fn identity(&self) -> [String; 3] {
        let start = &self.document["start"];
        let told = |name: &str| start[name].as_str().unwrap_or_default().to_string();
        [told("system_info"), told("version"), self.above.clone()]
    }

    /// Whether it is the other one, which came as events, once more.
    fn is_streamed(&self, other: &Value) -> bool {
        let of = |document: &Value| {
            let start = &document["start"];
            (start["cookie"].clone(), start.get("accepted_connection").is_some())
        };
        of(&self.document).0.is_string() && of(&self.document) == of(other)
    }
}

/// The results in a text: one for each host, program and heading.
fn read(text: &str) -> Vec<Imported> {
    let Embedded { documents, above, lines, cut, left_out } = embedded(text);
    let (tests, twice) = tests_of(documents, &above);
    let mut builders: Vec<([String; 3], Builder, Against)> = Vec::new();
    let last = tests.len().saturating_sub(1);
    for (at, test) in tests.iter().enumerate() {
        let (host, kernel) = system(&test.document);
        let identity = test.identity();
        let place = builders.iter().position(|(own, ..)| *own == identity).unwrap_or(builders.len());
        if place == builders.len() {
            let mut builder = Builder::new(FORMAT, &host);
            builder.remarks.push(
                "iperf3 does not report where its tasks ran; its intervals are of one connection, and so not independent"
                    .to_string(),
            );
            builders.push((identity, builder, Against::default()));
        }
        let (_, builder, against) = &mut builders[place];
        builder.fact("kernel", &kernel);
        if test.document["end"].is_null() && test.document["error"].is_null() {
            builder.remarks.push("started, no test finished: it has no \"end\"".to_string());
        }
        if cut && at == last {
            against.interrupted("the file ends in the midst of its JSON");
        } else if !test.whole {
            against.interrupted("the stream of events has neither an end nor an error");
        }
        figures::figures(&test.document, builder, against);
    }
    let several = builders.len() > 1;
    let mut results: Vec<Imported> = Vec::new();
    for ([_, _, above], mut builder, against) in builders {
        if several {
            builder.fact("heading", above.trim_start_matches('#').trim_end_matches(':').trim());
        }
        if results.is_empty() {
            builder.remarks.extend(
                lines.iter().take(QUOTED).map(|line| format!("beside the JSON it says {:?}", short(line))),
            );
            if let Some(more @ 1..) = lines.len().checked_sub(QUOTED) {
                builder.remarks.push(format!("and {more} more lines"));
            }
            if left_out > 0 {
                builder.remarks.push(format!("{left_out} tests were left out: the file has too many"));
            }
            if twice > 0 {
                builder.remarks.push(format!("{twice} tests stand there twice and count once"));
            }
        }
        let mut imported = Imported { findings: against.findings(), ..builder.finish() };
        figures::headlines(&mut imported);
        results.push(imported);
    }
    results
}

/// Documents as tests: whole ones as they are, the events of a stream put together; and how many
/// stand there a second time, as events and as a whole or in the same words.
fn tests_of(documents: Vec<Value>, above: &[&str]) -> (Vec<Test>, usize) {
    let mut tests: Vec<Test> = Vec::new();
    let mut twice = 0;
    let put = |(test, above): (Map<String, Value>, String)| {
        let whole = test.contains_key("end") || test.contains_key("error");
        Test { document: Value::Object(test), whole, above }
    };
    let mut streamed: Option<(Map<String, Value>, String)> = None;
    let mut heading = String::new();
    for (document, above) in documents.into_iter().zip(above) {
        // What follows without a line between belongs under the same one.
        heading = if above.is_empty() { heading } else { short(above) };
        let above = heading.clone();
        let Some(event) = document["event"].as_str().map(str::to_string) else {
            if document.get("start").is_some()
                || document.get("end").is_some()
                || document.get("error").is_some()
            {
                let mut test = Test { document, whole: true, above };
                match streamed.take().map(put) {
                    Some(events) if test.is_streamed(&events.document) => {
                        test.above = events.above;
                        twice += 1;
                    }
                    events => tests.extend(events),
                }
                match tests.iter().any(|known| known.document == test.document) {
                    true => twice += 1,
                    false => tests.push(test),
                }
            }
            continue;
        };
        if event == "start" {
            tests.extend(streamed.take().map(put));
        }
        let (test, _) = streamed.get_or_insert_with(|| (Map::new(), above));
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
    (tests, twice)
}

/// Host and kernel, as `uname -a` begins: `Linux HOST 6.1.0 ...`.
fn system(test: &Value) -> (String, String) {
    let told = test["start"]["system_info"].as_str().unwrap_or_default();
    let mut words = told.split_whitespace().skip(1).map(|word| word.chars().take(80).collect::<String>());
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}
