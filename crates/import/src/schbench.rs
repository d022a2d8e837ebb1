//! schbench by Chris Mason: how long workers wait until they run, and since 2023 how long requests
//! take and their rate. A run may print interim reports; its last report covers all of it.

use super::builder::{Builder, number};
use super::faults::Faults;
use super::kit::{
    Expression, Figures, Hit, Log, Metric, Pattern, Results, Run, Table, log, metric, said_again, unfinished,
};
use super::percentiles::{percentile_name, too_few_beyond};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, ahead, begins, ignored, within};
use model::{Better, Value};

pub(crate) const TOOL: Tool = Tool::of("schbench (2016–2025)", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("schbench result");
const REMARK: &str =
    "schbench counts times in buckets that widen with the time; only its command shows its settings";
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
/// Further options that have a value.
const VALUED: [&str; 12] = [
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
    begins(
        "begin",
        r"(?<kind>Wakeup Latencies|Latency) percentiles \(usec\)(?: runtime (?<runtime>\d+) \(s\) \((?<samples>\d+) total samples\))?",
    ),
    adds(
        "head",
        r"(?<kind>Request Latencies|RPS) percentiles \((?:usec|requests)\) runtime (?<runtime>\d+) \(s\) \((?<samples>\d+) total samples\)",
    ),
    within("percentile", r"\*? *(?<percent>\d+\.\d+)th: (?<value>\d+)(?: +\(\d+ samples\))?"),
    within("ends", r"min=(?<min>\d+), max=(?<max>\d+)"),
    within("current", r"current rps: [\d.]+"),
    within("average", r"average rps: (?<rate>[\d.]+)"),
    within("average", r"rps: (?<rate>[\d.]+) p95 \(usec\) \d+ p99 \(usec\) \d+ .*"),
    within(
        "transfer",
        r"avg worker transfer: (?<operations>[\d.]+) ops/sec (?<bytes>[\d.]+)(?<bytes_unit>[KMGT]?)B/s",
    ),
    within("goal", r"final rps goal was \d+"),
    ahead("threads", r"setting worker threads to (?<value>\d+)"),
    within("delay", r"sched delay: message \d+ \(usec\) worker \d+ \(usec\)"),
    ignored(r"warmup done, zeroing stats|final rps was \d+"),
];

static TABLE: Table = Table::new(LINES);

fn is_one(text: &str) -> bool {
    static MARK: Expression = Expression::new(
        r"(?m)^\s*(?:(?:(?:Wakeup|Request) Latencies|Latency) percentiles \(usec\)|RPS percentiles \(requests\))(?: runtime .*)?\s*$",
    );
    text.contains(" percentiles (") && MARK.is_match(text)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "schbench", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    let valued = SETTINGS.into_iter().flat_map(|(_, _, options)| options).chain(VALUED);
    let valued: Vec<&str> = valued.collect();
    let mut before = 0;
    for (at, run) in log.runs.iter().enumerate() {
        if log.runs.get(at + 1).is_some_and(|next| goes_on(run, next)) {
            before += 1;
            continue;
        }
        let command = run.command.clone().unwrap_or_default();
        let facts = vec![("options", command.without(&valued, &["-C", "--calibrate", "-L", "--no-locking"]))];
        if let Some((builder, faults)) = results.of(run, facts, false) {
            // What a run says before its first report is of all of them.
            figures(run, log.runs[at - before].text("threads"), builder, faults);
            if before > 0 {
                builder.remarks.push(format!(
                    "{before} interim {} left out",
                    number(before, "report was", "reports were")
                ));
            }
        }
        before = 0;
    }
    results.finish_with(&log, &HEADLINES)
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
    if is_last || next.is_apart(&run.context, true) {
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

const METRICS: &[Metric] = &[
    metric("latency", "us", Better::Lower),
    metric("latency_min", "us", Better::Lower),
    metric("latency_max", "us", Better::Lower),
    metric("rate", "1/s", Better::Higher),
    metric("rate_min", "1/s", Better::Higher),
    metric("rate_max", "1/s", Better::Higher),
    metric("worker_operations", "1/s", Better::Higher),
    metric("worker_bandwidth", "GB/s", Better::Higher),
];

/// What a run's command asks for, in the keys of its figures.
fn keys<'b>(run: &Run, threads: Option<&str>, builder: &'b mut Builder) -> Figures<'b> {
    let mut figures = Figures::new(builder, METRICS, "", "");
    for (name, is_count, options) in SETTINGS {
        let command = run.command.as_ref().and_then(|command| command.value(&options));
        let printed = command.or(threads.filter(|_| name == "threads"));
        let Some(printed) = printed.and_then(|printed| printed.parse().ok()) else { continue };
        let params = if is_count { &mut figures.point } else { &mut figures.params };
        params.set(name, Value::Int(printed));
    }
    if run.command.as_ref().is_some_and(|command| command.has(&["-L", "--no-locking"])) {
        figures.params.set("locking", "no".into());
    }
    figures
}

/// The figures of a run's last report.
fn figures(run: &Run, threads: Option<&str>, builder: &mut Builder, faults: &mut Faults) {
    let is_last = ["average", "goal", "transfer"].iter().any(|name| run.hit(name).is_some());
    if run.hit("current").is_some() && !is_last {
        faults.interrupted("its last report is an interim report");
    }
    if run.hit("delay").is_some() {
        let text = "its scheduler delays were left out: they cover only the last interval";
        if !builder.remarks.iter().any(|known| known == text) {
            builder.remarks.push(text.to_string());
        }
    }
    let mut figures = keys(run, threads, builder);
    let mut head: Option<&Hit> = None;
    let mut found = false;
    for hit in &run.hits {
        let number = |name: &str| hit.number(name).map(|number| number.value);
        match (hit.name, head) {
            ("begin" | "head", _) => head = Some(hit),
            ("percentile" | "ends", Some(head)) => found |= times(head, hit, &mut figures),
            ("average", _) => {
                number("rate").into_iter().for_each(|rate| put(&mut figures, "request", "rate", Ok(rate)));
            }
            ("transfer", _) => {
                let bytes = hit.scaled("bytes", 1024.0).map(|bytes| bytes.value / 1e9);
                if let (Some(operations), Some(bytes)) = (number("operations"), bytes) {
                    put(&mut figures, "pipe", "worker_operations", Ok(operations));
                    put(&mut figures, "pipe", "worker_bandwidth", Ok(bytes));
                }
            }
            _ => {}
        }
    }
    if !found {
        put(&mut figures, "latency", "latency_p50", Err(unfinished(None)));
    }
}

fn put(figures: &mut Figures, bench: &str, name: &str, value: Result<f64, String>) {
    (figures.bench, figures.named) = (format!("schbench.{bench}"), format!("schbench {bench}"));
    figures.put(name, value);
}

/// A line of a block of percentiles; whether it is one of them.
fn times(head: &Hit, hit: &Hit, figures: &mut Figures) -> bool {
    // Since 2023 a wake-up is of another work.
    let (bench, stem, unit) = match head.text("kind") {
        Some("Wakeup Latencies") => ("wakeup", "latency", "us"),
        Some("Request Latencies") => ("request", "latency", "us"),
        Some("RPS") => ("rps", "rate", "1/s"),
        _ => ("latency", "latency", "us"),
    };
    let samples = head.number("samples").map(|samples| samples.value);
    let number = |name: &str| hit.number(name).map(|number| number.value);
    if let Some(percent) = hit.text("percent") {
        let named = percentile_name(stem, percent).zip(number("value"));
        let Some((name, value)) = named else { return false };
        let percent = percent.parse().unwrap_or(100.0);
        put(
            figures,
            bench,
            &name,
            too_few_beyond(percent, samples, &format!("{value} {}", model::unit_words(unit)))
                .map_or(Ok(value), Err),
        );
        return true;
    }
    // The first version, which prints no samples, has no minimum but 0.
    let ends = ["min", "max"].into_iter().filter(|end| samples.is_some() || *end == "max");
    for (end, value) in ends.filter(|_| samples != Some(0.0)).filter_map(|end| Some((end, number(end)?))) {
        put(figures, bench, &format!("{stem}_{end}"), Ok(value));
    }
    false
}
