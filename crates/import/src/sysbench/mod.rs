//! What sysbench prints, from 0.4 to 1.1: its tests of CPU, memory, threads, mutexes and files, and
//! those of databases as far as all of them print alike.
//!
//! Its "MB", "Mb" and "MiB" are 2^20 bytes each. From 1.0 on the text does not tell threads and
//! mutexes apart: the command does, where it is there; else the test is called `untold`.

mod lines;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning};
use super::kit::{Log, Number, Results, Run, Table, headlines, log, said_again};
use super::own::{Against, percentile_name, short, too_few_beyond};
use super::{Format, Imported, Keyed, Tool, keyed};
use model::{Better, Value};

pub(crate) const TOOL: Tool =
    Tool { files: "results of sysbench", json: &[], documented: false, is_one, read: |text| Ok(read(text)) };

const FORMAT: Format = Format("sysbench result");
const REMARK: &str = "sysbench does not tell where its threads ran, and its latencies are printed to 10 µs";

const MIB: f64 = 1_048_576.0;
/// The statistics of one series take time that grows with the square of its values.
const MOST_INTERVALS: usize = 200;

/// What is printed as it is meant: line, metric, unit, what one of it is in that unit.
const FIGURES: [(&str, &str, &str, f64); 11] = [
    ("moved", "bandwidth", "GB/s", MIB / 1e9),
    ("operations", "operations", "1/s", 1.0),
    ("requests", "requests", "1/s", 1.0),
    ("reads", "reads", "1/s", 1.0),
    ("writes", "writes", "1/s", 1.0),
    ("fsyncs", "fsyncs", "1/s", 1.0),
    ("read_rate", "read_bandwidth", "GB/s", MIB / 1e9),
    ("write_rate", "write_bandwidth", "GB/s", MIB / 1e9),
    ("transactions", "transactions", "1/s", 1.0),
    ("queries", "queries", "1/s", 1.0),
    ("errors", "errors", "1/s", 1.0),
];
/// What says most of a test.
const HEADLINES: [&str; 7] = ["events", "bandwidth", "time", "reads", "writes", "requests", "transactions"];
/// Work that a test of files may leave out.
const EITHER: [&str; 5] = ["reads", "writes", "fsyncs", "read_rate", "write_rate"];
const LATENCIES: [(&str, &str); 3] =
    [("min", "latency_min"), ("mean", "latency_mean"), ("max", "latency_max")];
/// Options that change what is measured and that the text does not tell: name, as what it stands in
/// a key, and its default.
const OPTIONS: [(&str, &str, &str); 12] = [
    ("--memory-access-mode", "access", "seq"),
    ("--memory-hugetlb", "hugetlb", "off"),
    ("--thread-yields", "yields", "1000"),
    ("--thread-locks", "locks", "8"),
    ("--mutex-num", "mutexes", "4096"),
    ("--mutex-locks", "locks", "50000"),
    ("--mutex-loops", "loops", "10000"),
    ("--rand-type", "rand", "special"),
    ("--tables", "tables", "1"),
    ("--oltp-tables-count", "tables", "1"),
    ("--table-size", "rows", "10000"),
    ("--oltp-table-size", "rows", "10000"),
];
/// Options that the text tells, or that say how long and how loudly to run.
const TOLD: [&str; 26] = [
    "--test",
    "--threads",
    "--num-threads",
    "--time",
    "--max-time",
    "--events",
    "--max-requests",
    "--cpu-max-prime",
    "--memory-block-size",
    "--memory-total-size",
    "--memory-oper",
    "--memory-scope",
    "--file-num",
    "--file-test-mode",
    "--file-block-size",
    "--file-total-size",
    "--file-extra-flags",
    "--file-io-mode",
    "--file-rw-ratio",
    "--file-fsync-all",
    "--file-fsync-freq",
    "--rate",
    "--percentile",
    "--histogram",
    "--report-interval",
    "--verbosity",
];
const DATABASES: [&str; 3] = ["--mysql", "--pgsql", "--db"];
/// sysbench's own words for what it calls otherwise in its text.
const MODES: [(&str, &str); 6] = [
    ("sequential read", "seqrd"),
    ("sequential rewrite", "seqrewr"),
    ("sequential write", "seqwr"),
    ("random read", "rndrd"),
    ("random write", "rndwr"),
    ("r/w", "rndrw"),
];

/// Whether a text is what sysbench printed, or a part of it.
fn is_one(text: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?m)^\s*(?:sysbench \d[\w.+-]*(?:: | \()|events per second: +\d|(?:events|execution time) \(avg/stddev\): +\d)",
        )
        .expect("a pattern that a test tries")
    });
    MARK.is_match(text)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(lines::LINES));
    let log: Log = log(text, "sysbench", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    // Tests of which nothing tells what they are can be of two kinds.
    let several =
        [false, true].iter().all(|kind| log.runs.iter().any(|run| is_of_one_event(run) == Some(*kind)));
    for run in &log.runs {
        // It made files, or took them away.
        if run.hit("options").is_none() && run.hit("prepared").is_some() && run.hit("fatal").is_none() {
            continue;
        }
        let whole = ["time", "events", "end"].iter().all(|name| run.hit(name).is_some());
        let version = run.text("version").unwrap_or_default().to_string();
        let further = further(run);
        // Databases are asked for with names and passwords, which nobody wants to see again.
        let shown = further.split(' ').filter(|word| !DATABASES.iter().any(|one| word.starts_with(one)));
        let shown = shown.collect::<Vec<_>>().join(" ");
        let work = is_of_one_event(run).filter(|one| *one && several);
        let work = work.map_or(String::new(), |_| "one event of each thread".to_string());
        let facts = vec![("sysbench", version), ("options", shown), ("", further), ("work", work)];
        if let Some((builder, against)) = results.of(run, facts, whole) {
            figures(run, builder, against);
        }
    }
    let mut results = results.finish(&log);
    results.iter_mut().for_each(|result| headlines(result, &HEADLINES));
    results
}

/// What a command asks for beside what is known of it; all of it where the text is cut before it
/// repeats the options.
fn further(run: &Run) -> String {
    let is_cut = run.hit("options").is_none();
    let told = TOLD.into_iter().chain(OPTIONS.map(|(option, _, _)| option));
    let known: Vec<&str> = told.filter(|_| !is_cut).collect();
    let left = run.asked.as_ref().map_or(String::new(), |asked| asked.without(&[], &known));
    left.split(' ').filter(|word| word.starts_with("--")).collect::<Vec<_>>().join(" ")
}

/// The names of tests and scripts that a command may mean.
fn asked_tests<'a>(run: &'a Run) -> impl Iterator<Item = &'a str> {
    let words = run.asked.iter().flat_map(|asked| &asked.words);
    words.filter_map(|word| {
        let name =
            word.strip_prefix("--test=").or(Some(word.as_str()).filter(|word| !word.starts_with('-')))?;
        Some(name.rsplit('/').next()?.trim_end_matches(".lua"))
    })
}

/// What a test of databases runs.
fn script<'a>(run: &'a Run) -> Option<&'a str> {
    asked_tests(run).find(|name| !["run", "prepare", "cleanup"].contains(name))
}

/// Which of its tests it was.
fn test_of(run: &Run) -> &'static str {
    let has = |name: &str| run.hit(name).is_some();
    match run.text("doing") {
        Some("CPU") => "cpu",
        Some("thread") => "threads",
        Some("mutex") => "mutex",
        Some("memory") => "memory",
        Some("OLTP") => "sql",
        _ if has("primes") => "cpu",
        _ if has("moved") || has("operations") => "memory",
        _ if has("mode") || has("reads") || has("done") => "fileio",
        _ if has("transactions") => "sql",
        _ => {
            let known = ["cpu", "memory", "threads", "mutex", "fileio"];
            let asked = asked_tests(run).find_map(|name| known.into_iter().find(|test| *test == name));
            asked.unwrap_or(if has("eps") { "cpu" } else { "untold" })
        }
    }
}

/// Whether each thread did one event of a test that nothing names, as in those of mutexes.
fn is_of_one_event(run: &Run) -> Option<bool> {
    let (events, threads) = (number(run, "events")?, number(run, "threads")?);
    (test_of(run) == "untold").then_some(events.value == threads.value)
}

fn number(run: &Run, name: &str) -> Option<Number> {
    run.hit(name)?.number("value")
}

fn keyed_of(run: &Run, test: &str, metric: &str) -> Option<Keyed> {
    let mut keyed = keyed(&format!("sysbench.{test}@free#{metric}"))?;
    let params = &mut keyed.case.params;
    let mut put = |name: &str, text: &str| {
        let value = text.parse().map_or_else(|_| Value::Text(short(text)), Value::Int);
        params.set(name, value);
    };
    for name in ["primes", "operation", "scope", "rate", "fsync"] {
        if let Some(text) = run.text(name) {
            put(name, text);
        }
    }
    if let Some(size) = run.hit("size").and_then(|hit| hit.scaled("value", 1024.0)) {
        put("size", &(size.value as i64).to_string());
    }
    if let Some(script) = script(run).filter(|_| test == "sql") {
        put("script", script);
    }
    if let Some(mode) = run.text("mode") {
        let known = MODES.iter().find(|(words, _)| mode.contains(words));
        put("mode", known.map_or(mode, |(_, word)| *word));
        if let Some(ratio) = run.text("ratio").filter(|_| mode.contains("r/w")) {
            put("ratio", ratio);
        }
    }
    if let Some(engine) = run.text("engine").filter(|engine| *engine != "synchronous") {
        put("engine", engine);
    }
    if let Some(flags) = run.text("flags").filter(|flags| !["(none)", "0", "none", ""].contains(flags)) {
        put("flags", flags);
    }
    if let Some(hit) = run.hit("yields") {
        for (name, field, default) in [("yields", "value", "1000"), ("locks", "locks", "8")] {
            if let Some(text) = hit.text(field).filter(|text| *text != default) {
                put(name, text);
            }
        }
    }
    for (option, name, default) in OPTIONS {
        let asked = run.asked.as_ref().and_then(|asked| asked.value(&[option]));
        if let Some(text) = asked.filter(|text| *text != default) {
            put(name, text);
        }
    }
    let mut point = |name: &str, value: Option<Number>| {
        if let Some(value) = value {
            keyed.point.set(name, Value::Int(value.value as i64));
        }
    };
    point("block", run.hit("block").and_then(|hit| hit.scaled("value", 1024.0)));
    point("threads", number(run, "threads"));
    Some(keyed)
}

/// The series of a run.
fn figures(run: &Run, builder: &mut Builder, against: &mut Against) {
    let test = test_of(run);
    let mut notes: Vec<&str> = Vec::new();
    match test {
        "untold" => notes.push("which test it is of is not told: the command tells it, and is not there"),
        "fileio" if !run.text("flags").is_some_and(|flags| flags.contains("direct")) => {
            notes.push("through the page cache, as far as the file fits: no direct I/O was asked for");
        }
        _ => {}
    }
    let note = notes.join("; ");
    let meaning = |metric: &str, unit: &'static str, better: Better| -> Option<Meaning> {
        Some(Meaning {
            keyed: keyed_of(run, test, metric)?,
            wording: format!("sysbench {test} {}", metric.replace('_', " ")),
            unit: unit.into(),
            better,
            note: note.clone(),
        })
    };
    for warning in run.all("warning").filter_map(|hit| hit.text("value")) {
        let remark = format!("it warns: {}", short(warning));
        if !builder.remarks.contains(&remark) && builder.remarks.len() < 20 {
            builder.remarks.push(remark);
        }
    }
    let mut put = |metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| match (
        meaning(metric, unit, better),
        value,
    ) {
        (Some(meaning), Ok(value)) => builder.value(meaning, value),
        (Some(meaning), Err(why)) => builder.missing(meaning, why),
        (None, _) => {}
    };
    let stopped: Vec<&str> = ["fatal", "killed"]
        .iter()
        .flat_map(|name| run.all(name))
        .filter_map(|hit| hit.text("value"))
        .collect();
    stopped.iter().for_each(|text| against.interrupted(text));
    let (events, time) = (number(run, "events"), number(run, "time"));
    let mut found = false;
    for (line, metric, unit, factor) in FIGURES {
        let better = if line == "errors" { Better::Lower } else { Better::Higher };
        let Some(value) = number(run, line).map(|number| number.times(factor).value) else { continue };
        found = true;
        match value > 0.0 || line == "errors" {
            true => put(metric, unit, better, Ok(value)),
            false if EITHER.contains(&line) => {}
            false => put(metric, unit, better, Err("it prints 0: nothing was done".to_string())),
        }
    }
    // Version 1.1 has rates of bytes in the same lines.
    for (line, metric) in [("reads", "read_bandwidth"), ("writes", "write_bandwidth")] {
        let rate = run.hit(line).and_then(|hit| hit.number("rate")).filter(|rate| rate.value > 0.0);
        if let Some(rate) = rate {
            put(metric, "GB/s", Better::Higher, Ok(rate.value * MIB / 1e9));
        }
    }
    if let Some(rate) = run.hit("transferred").and_then(|hit| hit.scaled("value", 1024.0)) {
        put("bandwidth", "GB/s", Better::Higher, Ok(rate.value / 1e9));
        found = true;
    }
    if let (Some(done), Some(time)) = (run.hit("done"), time.filter(|time| time.value > 0.0)) {
        for name in ["reads", "writes", "fsyncs"] {
            if let Some(count) = done.number(name).filter(|count| count.value > 0.0) {
                put(name, "1/s", Better::Higher, Ok(count.value / time.value));
            }
        }
    }
    let printed = number(run, "eps").or(number(run, "eps_all"));
    // Of a number at the end of a text nobody knows whether it is whole.
    let whole = events.filter(|_| run.hits.last().is_some_and(|last| last.name != "events"));
    let counted = whole.zip(time).filter(|(_, time)| time.value > 0.0);
    if test == "mutex" {
        // Each thread does a given work once.
        if let Some(time) = time {
            put("time", "s", Better::Lower, Ok(time.value));
            found = true;
        }
    } else if let Some(rate) = printed.map(|rate| rate.value).filter(|_| !found) {
        put("events", "1/s", Better::Higher, Ok(rate));
        found = true;
    } else if let Some((events, time)) = counted.filter(|_| !found) {
        put("events", "1/s", Better::Higher, Ok(events.value / time.value));
        found = true;
    }
    if !found {
        let (metric, unit, better) = match test {
            "memory" => ("bandwidth", "GB/s", Better::Higher),
            "mutex" => ("time", "s", Better::Lower),
            "sql" => ("transactions", "1/s", Better::Higher),
            _ => ("events", "1/s", Better::Higher),
        };
        let why = match stopped.first() {
            Some(said) => format!("started, no test finished: {}", short(said)),
            None => "started, no test finished: the run, or the text, ended before a result".to_string(),
        };
        return put(metric, unit, better, Err(why));
    }
    latencies(run, events, &mut put);
    let each = |line: &'static str| run.all(line).filter_map(|hit| hit.number("value")).take(MOST_INTERVALS);
    each("each").for_each(|rate| put("interval_events", "1/s", Better::Higher, Ok(rate.value)));
    each("each_moved")
        .for_each(|rate| put("interval_bandwidth", "GB/s", Better::Higher, Ok(rate.value * MIB / 1e9)));
    let fairness = run.hit("fairness").and_then(|hit| Some((hit.number("value")?, hit.number("deviation")?)));
    let threads = number(run, "threads");
    if let Some((mean, deviation)) = fairness.filter(|(mean, _)| mean.value > 0.0)
        && threads.is_some_and(|threads| threads.value > 1.0)
    {
        put("unfairness", "", Better::Lower, Ok(deviation.value / mean.value));
    }
    check(run, against);
}

/// Makes a figure: metric, unit, better, and its value or why there is none.
type Put<'a> = dyn FnMut(&str, &'static str, Better, Result<f64, String>) + 'a;

fn latencies(run: &Run, events: Option<Number>, put: &mut Put) {
    let micros = |hit: &super::kit::Hit| -> Option<f64> {
        let ms = hit.number("value")?.value;
        Some(if hit.text("seconds").is_some() { ms * 1e6 } else { ms * 1e3 })
    };
    let least = |value: f64| match value > 0.0 {
        true => Ok(value),
        false => Err("it prints 0, which is less than its last digit".to_string()),
    };
    for (line, metric) in LATENCIES {
        if let Some(value) = run.hit(line).and_then(micros) {
            put(metric, "us", Better::Lower, least(value));
        }
    }
    let mut known = Vec::new();
    let mut percentile = |percent: &str, value: f64, observations: Option<f64>| {
        let (Some(metric), Ok(at)) = (percentile_name("latency", percent), percent.parse()) else { return };
        if !known.contains(&metric) {
            let few = too_few_beyond(at, observations, &format!("{value} µs"));
            put(&metric, "us", Better::Lower, few.map_or_else(|| least(value), Err));
            known.push(metric);
        }
    };
    if let Some(hit) = run.hit("percentile")
        && let (Some(percent), Some(value)) = (hit.text("percent"), micros(hit))
    {
        percentile(percent, value, events.map(|events| events.value));
    }
    let buckets: Vec<(f64, f64)> = run
        .all("bucket")
        .filter_map(|hit| Some((hit.number("value")?.value * 1e3, hit.number("count")?.value)))
        .collect();
    let all: f64 = buckets.iter().map(|(_, count)| count).sum();
    for percent in ["50", "90", "99", "99.9"].into_iter().filter(|_| all > 0.0) {
        let enough = percent.parse::<f64>().unwrap_or(100.0) / 100.0 * all;
        let mut up_to = 0.0;
        let bucket = buckets.iter().find(|(_, count)| {
            up_to += count;
            up_to >= enough
        });
        if let Some((value, _)) = bucket {
            percentile(percent, *value, Some(all));
        }
    }
}

/// Whether its figures are each other's.
fn check(run: &Run, against: &mut Against) {
    let exact = |number: Number| Number { rounding: 0.0, ..number };
    let (events, time) = (number(run, "events").map(exact), number(run, "time"));
    let rate = number(run, "eps").or(number(run, "eps_all"));
    against.rate("events per second", [rate, events, time], |rate, events, time| {
        format!("it says {rate}; {events} events in {time} s are another rate")
    });
    let block = run.hit("block").and_then(|hit| hit.scaled("value", 1024.0));
    let moved = number(run, "moved").map(|rate| rate.times(MIB));
    let one = Number { value: 1.0, rounding: 0.0 };
    let bytes = block.zip(number(run, "operations")).map(|(block, count)| count.times(block.value));
    against.rate("MiB/sec", [moved, bytes, Some(one)], |_, bytes, _| {
        format!("blocks of {bytes} bytes in all are not what it says it moved")
    });
    let mean = run.hit("fairness").and_then(|hit| hit.number("value"));
    against.rate("events", [mean, events, number(run, "threads").map(exact)], |mean, events, threads| {
        format!("{threads} threads of {mean} events are not its {events}")
    });
}
