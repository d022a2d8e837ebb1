//! schbench by Chris Mason: how long workers wait until they run, and since 2023 how long requests
//! take and how many there are a second. A run may report on its way; its last report is of all of
//! it.

use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning, number};
use super::kit::{Does, Hit, Log, Number, Results, Run, Table, line, log, said_again};
use super::own::{Against, percentile_name, too_few_beyond};
use super::{Format, Imported, Tool, keyed};
use crate::kit::Pattern;
use model::{Better, Value};

pub(crate) const TOOL: Tool = Tool {
    files: "results of schbench (2016 to 2025)",
    json: &[],
    documented: false,
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("schbench result");
const REMARK: &str = "schbench tells its times by buckets, which grow with the time, and of its settings what its command says";
const HEADLINES: [&str; 4] = ["latency_p50", "latency_p99", "rate", "worker_operations"];

/// Options of the command that make up keys: what they are called, whether they are a count, and
/// their names.
const SETTINGS: [(&str, bool, [&str; 2]); 7] = [
    ("message_threads", true, ["-m", "--message-threads"]),
    ("threads", true, ["-t", "--threads"]),
    ("pipe", false, ["-p", "--pipe"]),
    ("rps", false, ["-R", "--rps"]),
    ("auto", false, ["-A", "--auto-rps"]),
    ("operations", false, ["-n", "--operations"]),
    ("footprint_kb", false, ["-F", "--cache_footprint"]),
];
const VALUED: [&str; 26] = [
    "-m",
    "--message-threads",
    "-t",
    "--threads",
    "-p",
    "--pipe",
    "-R",
    "--rps",
    "-A",
    "--auto-rps",
    "-n",
    "--operations",
    "-F",
    "--cache_footprint",
    "-r",
    "--runtime",
    "-i",
    "--intervaltime",
    "-w",
    "--warmuptime",
    "-j",
    "--json",
    "-J",
    "--jobname",
    "-z",
    "--zerotime",
];

pub(crate) const LINES: &[Pattern] = &[
    line(
        "begin",
        Does::Begins,
        r"(?<kind>Wakeup Latencies|Latency) percentiles \(usec\)(?: runtime (?<runtime>\d+) \(s\) \((?<samples>\d+) total samples\))?",
    ),
    line(
        "head",
        Does::Adds,
        r"(?<kind>Request Latencies|RPS) percentiles \((?:usec|requests)\) runtime (?<runtime>\d+) \(s\) \((?<samples>\d+) total samples\)",
    ),
    line("percentile", Does::Within, r"\*? *(?<percent>\d+\.\d+)th: (?<value>\d+)(?: +\(\d+ samples\))?"),
    line("ends", Does::Within, r"min=(?<min>\d+), max=(?<max>\d+)"),
    line("current", Does::Within, r"current rps: [\d.]+"),
    line("average", Does::Within, r"average rps: (?<rate>[\d.]+)"),
    line("average", Does::Within, r"rps: (?<rate>[\d.]+) p95 \(usec\) \d+ p99 \(usec\) \d+ .*"),
    line(
        "transfer",
        Does::Within,
        r"avg worker transfer: (?<operations>[\d.]+) ops/sec (?<bytes>[\d.]+)(?<bytes_unit>[KMGT]?)B/s",
    ),
    line("goal", Does::Within, r"final rps goal was \d+"),
    line("threads", Does::Ahead, r"setting worker threads to (?<value>\d+)"),
    line("delay", Does::Within, r"sched delay: message \d+ \(usec\) worker \d+ \(usec\)"),
    line("rest", Does::Nothing, r"warmup done, zeroing stats|final rps was \d+"),
];

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(LINES));

fn is_one(text: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?m)^\s*(?:(?:(?:Wakeup|Request) Latencies|Latency) percentiles \(usec\)|RPS percentiles \(requests\))(?: runtime .*)?\s*$",
        )
        .expect("a pattern that a test tries")
    });
    text.contains(" percentiles (") && MARK.is_match(text)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "schbench", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    let mut before = 0;
    for (at, run) in log.runs.iter().enumerate() {
        if log.runs.get(at + 1).is_some_and(|next| goes_on(run, next)) {
            before += 1;
            continue;
        }
        let asked = run.asked.clone().unwrap_or_default();
        let facts = vec![("options", asked.without(&VALUED, &["-C", "--calibrate", "-L", "--no-locking"]))];
        if let Some((builder, against)) = results.of(run, facts, false) {
            // What a run says before its first report is of all of them.
            figures(run, log.runs[at - before].text("threads"), builder, against);
            if before > 0 {
                builder.remarks.push(format!(
                    "{before} of its reports {} on the way, and left out",
                    number(before, "was", "were")
                ));
            }
        }
        before = 0;
    }
    let mut results = results.finish(&log);
    results.iter_mut().for_each(|one| super::kit::headlines(one, &HEADLINES));
    results
}

/// Whether a report is a later one of the same run: it counts on from where the other was.
fn goes_on(run: &Run, next: &Run) -> bool {
    let first = |run: &Run, name: &str| {
        let hit = run.hits.iter().find(|hit| ["begin", "head"].contains(&hit.name))?;
        Some(hit.number(name)?.value)
    };
    let end = |run: &Run, name: &str| Some(run.hit("ends")?.number(name)?.value);
    let (Some(before), Some(after)) = (first(run, "runtime"), first(next, "runtime")) else { return false };
    let is_last = ["average", "goal", "transfer"].iter().any(|name| run.hit(name).is_some());
    if is_last || next.is_apart(&run.told, true) {
        return false;
    }
    if run.hit("current").is_some() {
        return after >= before;
    }
    let grows =
        |own: Option<f64>, other: Option<f64>| own.zip(other).is_some_and(|(own, other)| other >= own);
    after > before
        && grows(first(run, "samples"), first(next, "samples"))
        && grows(end(run, "max"), end(next, "max"))
        && grows(end(next, "min"), end(run, "min"))
}

/// The figures of a run's last report.
fn figures(run: &Run, threads: Option<&str>, builder: &mut Builder, against: &mut Against) {
    let is_last = ["average", "goal", "transfer"].iter().any(|name| run.hit(name).is_some());
    if run.hit("current").is_some() && !is_last {
        against.interrupted("its last report is one on its way");
    }
    if run.hit("delay").is_some() {
        let text = "its delays of the scheduler are of its last interval, and are not read";
        if !builder.remarks.iter().any(|known| known == text) {
            builder.remarks.push(text.to_string());
        }
    }
    let mut put =
        |bench: &str, metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
            let Some(mut keyed) = keyed(&format!("schbench.{bench}@free#{metric}")) else { return };
            for (name, is_count, options) in SETTINGS {
                let asked = run.asked.as_ref().and_then(|asked| asked.value(&options));
                let told = asked.or(threads.filter(|_| name == "threads"));
                let Some(told) = told.and_then(|told| told.parse().ok()) else { continue };
                let params = if is_count { &mut keyed.point } else { &mut keyed.case.params };
                params.set(name, Value::Int(told));
            }
            let locks = run.asked.as_ref().is_some_and(|asked| asked.has(&["-L", "--no-locking"]));
            if locks {
                keyed.case.params.set("locking", Value::Text("no".into()));
            }
            let wording = format!("schbench {bench} {}", metric.replace('_', " "));
            let meaning = Meaning { keyed, wording, unit: unit.into(), better, note: String::new() };
            match value {
                Ok(value) => builder.value(meaning, value),
                Err(why) => builder.missing(meaning, why),
            }
        };
    let mut head: Option<&Hit> = None;
    let mut found = false;
    for hit in &run.hits {
        // Since 2023 a wake-up is of another work.
        let bench = match head.and_then(|head| head.text("kind")) {
            Some("Wakeup Latencies") => "wakeup",
            Some("Request Latencies") => "request",
            Some("RPS") => "rps",
            _ => "latency",
        };
        let samples = head.and_then(|head| head.number("samples")).map(|samples| samples.value);
        let (stem, unit, better) = match bench {
            "rps" => ("rate", "1/s", Better::Higher),
            _ => ("latency", "us", Better::Lower),
        };
        let number = |name: &str| hit.number(name).map(|number| number.value);
        match hit.name {
            "begin" | "head" => head = Some(hit),
            "percentile" if head.is_some() => {
                let percent = hit.text("percent").unwrap_or_default();
                let (Some(metric), Some(value)) = (percentile_name(stem, percent), number("value")) else {
                    continue;
                };
                found = true;
                let percent = percent.parse().unwrap_or(100.0);
                let few = too_few_beyond(percent, samples, &format!("{value} {unit}"));
                put(bench, &metric, unit, better, few.map_or(Ok(value), Err));
            }
            "ends" if head.is_some() && samples != Some(0.0) => {
                // The first version, which tells of no samples, has no least but 0.
                for end in ["min", "max"].into_iter().filter(|end| samples.is_some() || *end == "max") {
                    if let Some(value) = number(end) {
                        put(bench, &format!("{stem}_{end}"), unit, better, Ok(value));
                    }
                }
            }
            "average" => {
                if let Some(rate) = number("rate") {
                    put("request", "rate", "1/s", Better::Higher, Ok(rate));
                }
            }
            "transfer" => {
                let bytes = hit.scaled("bytes", 1024.0).map(|bytes: Number| bytes.value / 1e9);
                if let (Some(operations), Some(bytes)) = (number("operations"), bytes) {
                    put("pipe", "worker_operations", "1/s", Better::Higher, Ok(operations));
                    put("pipe", "worker_bandwidth", "GB/s", Better::Higher, Ok(bytes));
                }
            }
            _ => {}
        }
    }
    if !found {
        let why = "started, no test finished: the run, or the text, ended before a result";
        put("latency", "latency_p50", "us", Better::Lower, Err(why.to_string()));
    }
}
