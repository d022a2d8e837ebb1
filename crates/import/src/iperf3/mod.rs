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

use std::collections::BTreeMap;

use serde_json::{Map, Value};

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

/// Whether a text has a result of iperf3.
fn is_one(text: &str) -> bool {
    is_json(text) || text::is_one(text)
}

fn is_json(text: &str) -> bool {
    text.contains("\"iperf 3") || (text.contains("\"sum_sent\"") && text.contains("\"bits_per_second\""))
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

/// The results in JSON: one for each test and host.
fn read_json(found: Embedded) -> Vec<Imported> {
    let Embedded { documents, lines, cut, left_out } = found;
    let tests = tests_of(documents);
    let mut builders: BTreeMap<String, (Builder, Against)> = BTreeMap::new();
    let mut order = Vec::new();
    let last = tests.len().saturating_sub(1);
    for (at, (test, whole)) in tests.iter().enumerate() {
        let (host, kernel) = system(test);
        let (builder, against) = builders.entry(host.clone()).or_insert_with(|| {
            order.push(host.clone());
            let mut builder = Builder::new(FORMAT, &host);
            builder.remarks.push(
                "iperf3 does not report where its tasks ran; its intervals are of one connection, and so not independent"
                    .to_string(),
            );
            (builder, Against::default())
        });
        builder.fact("kernel", &kernel);
        if cut && at == last {
            against.interrupted("the file ends in the midst of its JSON");
        } else if !whole {
            against.interrupted("the stream of events has neither an end nor an error");
        }
        figures::figures(test, builder, against);
    }
    let mut results: Vec<Imported> = Vec::new();
    for host in order {
        let Some((mut builder, against)) = builders.remove(&host) else { continue };
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
        }
        let mut imported = Imported { findings: against.findings(), ..builder.finish() };
        figures::headlines(&mut imported);
        results.push(imported);
    }
    results
}

/// Documents as tests: whole ones as they are, the events of a stream put together; and whether
/// each came to an end of its own.
fn tests_of(documents: Vec<Value>) -> Vec<(Value, bool)> {
    let mut tests = Vec::new();
    let put = |test: Map<String, Value>| {
        let whole = test.contains_key("end") || test.contains_key("error");
        (Value::Object(test), whole)
    };
    let mut streamed: Option<Map<String, Value>> = None;
    for document in documents {
        let Some(event) = document["event"].as_str().map(str::to_string) else {
            if document.get("start").is_some()
                || document.get("end").is_some()
                || document.get("error").is_some()
            {
                tests.push((document, true));
            }
            continue;
        };
        if event == "start" {
            tests.extend(streamed.take().map(put));
        }
        let test = streamed.get_or_insert_default();
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

/// Host and kernel, as `uname -a` begins: `Linux HOST 6.1.0 ...`.
fn system(test: &Value) -> (String, String) {
    let told = test["start"]["system_info"].as_str().unwrap_or_default();
    let mut words = told.split_whitespace().skip(1).map(|word| word.chars().take(80).collect::<String>());
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}
