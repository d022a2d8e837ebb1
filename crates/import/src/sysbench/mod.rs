//! What sysbench prints, from 0.4 to 1.1: its tests of CPU, memory, threads, mutexes and files, and
//! those of databases as far as all of them print alike.
//!
//! Its "MB", "Mb" and "MiB" are 2^20 bytes each. From 1.0 on the text does not separate threads and
//! mutexes apart: the command does, where it is there; else the test is called `untold`.

mod lines;
#[cfg(test)]
mod tests;

use super::builder::Builder;
use super::faults::{Faults, short};
use super::kit::{
    Expression, Figures, Hit, Log, MAX_EACH, Metric, Number, Results, Run, Table, log, metric, options,
    said_again,
};
use super::percentiles::{percentile_name, too_few_beyond};
use super::{Format, Imported, Tool};
use model::{Better, Value};

pub(crate) const TOOL: Tool = Tool::of("sysbench", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("sysbench result");
const REMARK: &str = "sysbench does not report where its threads ran, and prints latencies to 10 µs";

const MIB: f64 = 1_048_576.0;
const METRICS: &[Metric] = &[
    metric("events", "1/s", Better::Higher),
    metric("interval_events", "1/s", Better::Higher),
    metric("time", "s", Better::Lower),
    metric("bandwidth", "GB/s", Better::Higher),
    metric("interval_bandwidth", "GB/s", Better::Higher),
    metric("operations", "1/s", Better::Higher),
    metric("requests", "1/s", Better::Higher),
    metric("reads", "1/s", Better::Higher),
    metric("writes", "1/s", Better::Higher),
    metric("fsyncs", "1/s", Better::Higher),
    metric("read_bandwidth", "GB/s", Better::Higher),
    metric("write_bandwidth", "GB/s", Better::Higher),
    metric("transactions", "1/s", Better::Higher),
    metric("queries", "1/s", Better::Higher),
    metric("errors", "1/s", Better::Lower),
    metric("latency", "us", Better::Lower),
    metric("latency_min", "us", Better::Lower),
    metric("latency_mean", "us", Better::Lower),
    metric("latency_max", "us", Better::Lower),
    metric("unfairness", "", Better::Lower),
];

/// What is printed as it is meant: line and metric. Bandwidths are in MiB a second.
const PRINTED: [(&str, &str); 11] = [
    ("moved", "bandwidth"),
    ("operations", "operations"),
    ("requests", "requests"),
    ("reads", "reads"),
    ("writes", "writes"),
    ("fsyncs", "fsyncs"),
    ("read_rate", "read_bandwidth"),
    ("write_rate", "write_bandwidth"),
    ("transactions", "transactions"),
    ("queries", "queries"),
    ("errors", "errors"),
];
/// What says most of a test.
const HEADLINES: [&str; 7] = ["events", "bandwidth", "time", "reads", "writes", "requests", "transactions"];
/// Work that a test of files may leave out.
const EITHER: [&str; 5] = ["reads", "writes", "fsyncs", "read_rate", "write_rate"];
const LATENCIES: [(&str, &str); 3] =
    [("min", "latency_min"), ("mean", "latency_mean"), ("max", "latency_max")];
/// Options that change what is measured and that the text does not print: name, as what it stands
/// in a key, and its default.
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
/// Options that the text gives, or that say how long and how loudly to run.
const TOLD: &str = "--test --threads --num-threads --time --max-time --events --max-requests \
    --cpu-max-prime --memory-block-size --memory-total-size --memory-oper --memory-scope \
    --file-num --file-test-mode --file-block-size --file-total-size --file-extra-flags \
    --file-io-mode --file-rw-ratio --file-fsync-all --file-fsync-freq --rate --percentile \
    --histogram --report-interval --verbosity";
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
    static MARK: Expression = Expression::new(
        r"(?m)^\s*(?:sysbench \d[\w.+-]*(?:: | \()|events per second: +\d|(?:events|execution time) \(avg/stddev\): +\d)",
    );
    MARK.is_match(text)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    static TABLE: Table = Table::new(lines::LINES);
    let log: Log = log(text, "sysbench", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    // Unknown tests can be of two kinds.
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
        // Databases are asked for with names and passwords, which must not be shown.
        let shown = further.split(' ').filter(|word| !DATABASES.iter().any(|one| word.starts_with(one)));
        let shown = shown.collect::<Vec<_>>().join(" ");
        let work = is_of_one_event(run).filter(|one| *one && several);
        let work = work.map_or(String::new(), |_| "one event of each thread".to_string());
        let facts = vec![("sysbench", version), ("options", shown), ("", further), ("work", work)];
        if let Some((builder, faults)) = results.of(run, facts, whole) {
            figures(run, builder, faults);
        }
    }
    results.finish_with(&log, &HEADLINES)
}

/// What a command asks for beyond the options that are repeated; all of it where the text is cut
/// before it repeats the options.
fn further(run: &Run) -> String {
    let is_cut = run.hit("options").is_none();
    let told = options(TOLD).into_iter().chain(OPTIONS.map(|(option, _, _)| option));
    let known: Vec<&str> = told.filter(|_| !is_cut).collect();
    let left = run.command.as_ref().map_or(String::new(), |command| command.without(&[], &known));
    left.split(' ').filter(|word| word.starts_with("--")).collect::<Vec<_>>().join(" ")
}

/// The names of tests and scripts that a command may mean.
fn asked_tests<'a>(run: &'a Run) -> impl Iterator<Item = &'a str> {
    let words = run.command.iter().flat_map(|command| &command.words);
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
            let command = asked_tests(run).find_map(|name| known.into_iter().find(|test| *test == name));
            command.unwrap_or(if has("eps") { "cpu" } else { "untold" })
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

/// What stands in the keys of a run's figures, and what is said of each.
fn keys<'b>(run: &Run, test: &str, builder: &'b mut Builder) -> Figures<'b> {
    let bench = format!("sysbench.{test}");
    let mut figures = Figures::new(builder, METRICS, format!("sysbench {test}"), bench);
    figures.note = match test {
        "untold" => "its test is unknown: the command is missing",
        "fileio" if !run.text("flags").is_some_and(|flags| flags.contains("direct")) => {
            "through the page cache, as far as the file fits: direct I/O was not requested"
        }
        _ => "",
    }
    .to_string();
    settings(run, test, &mut |name, text| {
        let value = text.parse().map_or_else(|_| Value::Text(short(text)), Value::Int);
        figures.params.set(name, value);
    });
    let block = run.hit("block").and_then(|hit| hit.scaled("value", 1024.0));
    for (name, value) in [("block", block), ("threads", number(run, "threads"))] {
        figures.point(name, value.map(|value| value.value as i64));
    }
    figures
}

/// What a run was set to do.
fn settings(run: &Run, test: &str, put: &mut dyn FnMut(&str, &str)) {
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
        let command = run.command.as_ref().and_then(|command| command.value(&[option]));
        if let Some(text) = command.filter(|text| *text != default) {
            put(name, text);
        }
    }
}

/// The series of a run.
fn figures(run: &Run, builder: &mut Builder, faults: &mut Faults) {
    for warning in run.texts("warning") {
        let remark = format!("it warns: {}", short(warning));
        if !builder.remarks.contains(&remark) && builder.remarks.len() < 20 {
            builder.remarks.push(remark);
        }
    }
    let stopped = ["fatal", "killed"].iter().flat_map(|name| run.all(name));
    let stopped: Vec<&str> = stopped.filter_map(|hit| hit.text("value")).collect();
    stopped.iter().for_each(|text| faults.interrupted(text));
    let test = test_of(run);
    let mut figures = keys(run, test, builder);
    let has_rates = rates(run, &mut figures);
    if !whole(run, test, has_rates, &mut figures) {
        let metric = match test {
            "memory" => "bandwidth",
            "mutex" => "time",
            "sql" => "transactions",
            _ => "events",
        };
        return figures.unfinished(metric, stopped.first().copied());
    }
    latencies(run, &mut figures);
    let each = |line: &'static str| run.all(line).filter_map(|hit| hit.number("value")).take(MAX_EACH);
    each("each").for_each(|rate| figures.put("interval_events", Ok(rate.value)));
    each("each_moved").for_each(|rate| figures.put("interval_bandwidth", Ok(rate.value * MIB / 1e9)));
    let fairness = run.hit("fairness").and_then(|hit| Some((hit.number("value")?, hit.number("deviation")?)));
    let has_threads = number(run, "threads").is_some_and(|threads| threads.value > 1.0);
    if let Some((mean, deviation)) = fairness.filter(|(mean, _)| mean.value > 0.0 && has_threads) {
        figures.put("unfairness", Ok(deviation.value / mean.value));
    }
    check(run, faults);
}

/// The rates of what a test did; whether there were any.
fn rates(run: &Run, figures: &mut Figures) -> bool {
    let mut found = false;
    for (line, metric) in PRINTED {
        let factor = if metric.ends_with("bandwidth") { MIB / 1e9 } else { 1.0 };
        let Some(value) = number(run, line).map(|number| number.times(factor).value) else { continue };
        found = true;
        match value > 0.0 || line == "errors" {
            true => figures.put(metric, Ok(value)),
            false if EITHER.contains(&line) => {}
            false => figures.put(metric, Err("it prints 0: no work was done".to_string())),
        }
    }
    // Version 1.1 has rates of bytes in the same lines.
    for (line, metric) in [("reads", "read_bandwidth"), ("writes", "write_bandwidth")] {
        let rate = run.hit(line).and_then(|hit| hit.number("rate")).filter(|rate| rate.value > 0.0);
        figures.some(metric, rate.map(|rate| rate.value * MIB / 1e9));
    }
    if let Some(rate) = run.hit("transferred").and_then(|hit| hit.scaled("value", 1024.0)) {
        figures.put("bandwidth", Ok(rate.value / 1e9));
        found = true;
    }
    let time = number(run, "time").filter(|time| time.value > 0.0);
    if let Some((done, time)) = run.hit("done").zip(time) {
        for name in ["reads", "writes", "fsyncs"] {
            let count = done.number(name).filter(|count| count.value > 0.0);
            figures.some(name, count.map(|count| count.value / time.value));
        }
    }
    found
}

/// What the test came to, where its rates do not say so; whether it came to anything.
fn whole(run: &Run, test: &str, has_rates: bool, figures: &mut Figures) -> bool {
    let time = number(run, "time");
    if test == "mutex" {
        // Each thread does a given work once.
        figures.some("time", time.map(|time| time.value));
        return has_rates || time.is_some();
    }
    if has_rates {
        return true;
    }
    let printed = number(run, "eps").or(number(run, "eps_all")).map(|rate| rate.value);
    // A number at the end of a text may be cut.
    let is_whole = run.hits.last().is_some_and(|last| last.name != "events");
    let counted = number(run, "events").zip(time).filter(|(_, time)| is_whole && time.value > 0.0);
    let rate = printed.or(counted.map(|(events, time)| events.value / time.value));
    figures.some("events", rate);
    rate.is_some()
}

fn latencies(run: &Run, figures: &mut Figures) {
    let micros = |hit: &Hit| -> Option<f64> {
        let ms = hit.number("value")?.value;
        Some(if hit.text("seconds").is_some() { ms * 1e6 } else { ms * 1e3 })
    };
    let least = |value: f64| {
        if value > 0.0 {
            Ok(value)
        } else {
            Err("it prints 0, which is less than its last digit".to_string())
        }
    };
    for (line, metric) in LATENCIES {
        if let Some(value) = run.hit(line).and_then(micros) {
            figures.put(metric, least(value));
        }
    }
    let mut known = Vec::new();
    let mut percentile = |percent: &str, value: f64, observations: Option<f64>| {
        let (Some(metric), Ok(at)) = (percentile_name("latency", percent), percent.parse()) else { return };
        if !known.contains(&metric) {
            let few = too_few_beyond(at, observations, &format!("{value} µs"));
            figures.put(&metric, few.map_or_else(|| least(value), Err));
            known.push(metric);
        }
    };
    if let Some(hit) = run.hit("percentile")
        && let (Some(percent), Some(value)) = (hit.text("percent"), micros(hit))
    {
        percentile(percent, value, number(run, "events").map(|events| events.value));
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
fn check(run: &Run, faults: &mut Faults) {
    let exact = |number: Number| Number { rounding: 0.0, ..number };
    let (events, time) = (number(run, "events").map(exact), number(run, "time"));
    let rate = number(run, "eps").or(number(run, "eps_all"));
    faults.rate("events per second", [rate, events, time], |rate, events, time| {
        format!("it says {rate}; {events} events in {time} s are another rate")
    });
    let block = run.hit("block").and_then(|hit| hit.scaled("value", 1024.0));
    let moved = number(run, "moved").map(|rate| rate.times(MIB));
    let one = Number { value: 1.0, rounding: 0.0 };
    let bytes = block.zip(number(run, "operations")).map(|(block, count)| count.times(block.value));
    faults.rate("MiB/sec", [moved, bytes, Some(one)], |_, bytes, _| {
        format!("the blocks add up to {bytes} bytes, not to the printed amount")
    });
    let mean = run.hit("fairness").and_then(|hit| hit.number("value"));
    faults.rate("events", [mean, events, number(run, "threads").map(exact)], |mean, events, threads| {
        format!("{threads} threads with {mean} events each are not its {events} events")
    });
}
