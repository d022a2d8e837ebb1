//! Google's multichase, and its two small programs pingpong and fairness.

use super::builder::{Builder, Meaning};
use super::faults::Faults;
use super::kit::{Hit, Log, Number, Pattern, Results, Run, Table, commands, log, said_again};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, begins, ignored, once};
use model::{Better, units};

pub(crate) const TOOL: Tool = Tool::of("multichase, pingpong and fairness", is_one, |text| Ok(read(text)));

const CHASE: Format = Format("multichase result");
const PINGPONG: Format = Format("pingpong matrix (multichase)");
const FAIRNESS: Format = Format("fairness result (multichase)");

const CHASE_REMARK: &str = "multichase pins its threads to the first CPUs that it may use (unless -X), and reports neither these CPUs nor the order of its chase";
const PINGPONG_REMARK: &str = "pingpong prints the best of its samples, so no spread is known";
const FAIRNESS_REMARK: &str =
    "fairness starts a thread on each CPU that it may use, and each of its rows is one sample";

/// Options of multichase that figures' keys have, and such that change nothing.
const VALUED: [&str; 7] = ["-c", "-m", "-n", "-s", "-T", "-t", "-p"];
const FLAGS: [&str; 7] = ["-v", "-a", "-y", "-N", "-H", "-o", "-vv"];
/// What multichase takes where nothing else is asked for, bytes.
const MEMORY: u64 = 256 << 20;
const STRIDE: u64 = 256;

pub(crate) const LINES: &[Pattern] = &[
    begins("chased", r"nr_mixer_indices = \d+"),
    once("threads", r"nr_threads = (?<value>\d+)"),
    once("page", r"page_size = (?<value>\d+) bytes(?<huge> .*)?"),
    once("memory", r"total_memory = (?<value>\d+) \(.*\)"),
    once("stride", r"stride = (?<value>\d+)"),
    once("locality", r"tlb_locality = (?<value>\d+)"),
    once("chase", r"chase = (?<value>\S+)"),
    once("samples", r"samples \(one column per thread, one row per sample\):"),
    adds("sample", r"(?:\d{10}\.\d{6} +)?[\d.]+(?: +[\d.]+)* +avg=(?<value>[\d.]+)"),
    once("number", r"(?:\d{10}\.\d{6} +)?(?<value>\d+\.\d+)"),
    begins("pingpong", r"avg latency to communicate a modified line from one core to another"),
    begins("fairness", r"results are avg latency per locked increment in ns, one column per thread"),
    once("heads", r"(?<value>\d+(?: +\d+)*)"),
    adds("pairs", r"(?<cpu>\d+):(?<value>(?: +(?:[\d.]+|inf))+)"),
    once("cpus", r"cpu:(?<value>(?: +\d+)+)"),
    adds("relaxed", r"(?<value>(?:un)?relaxed):"),
    adds(
        "times",
        r"(?<value>[\d.]+(?: +[\d.]+)*) : avg +(?<mean>[\d.]+) +sdev +\S+ +min +[\d.]+ +max +[\d.]+",
    ),
    ignored(r"times are in ns|base_object_size = \d+|malloc allocation|timed out: .*"),
];

static TABLE: Table = Table::new(LINES);

/// Whether a text has lines of its own, or a command above a bare number.
fn is_one(text: &str) -> bool {
    const SIGNS: [&str; 3] = [
        "nr_mixer_indices = ",
        "avg latency to communicate a modified line",
        "avg latency per locked increment",
    ];
    let is_command =
        |line: &str| line.contains("multichase") && commands::command(line, "multichase").is_some();
    SIGNS.iter().any(|sign| text.contains(sign))
        || text.contains("multichase") && text.lines().any(is_command)
}

fn read(text: &str) -> Vec<Imported> {
    [(CHASE, "multichase"), (PINGPONG, "pingpong"), (FAIRNESS, "fairness")]
        .into_iter()
        .flat_map(|(format, program)| {
            let log: Log = log(text, program, &TABLE, said_again);
            let remark = match program {
                "pingpong" => PINGPONG_REMARK,
                "fairness" => FAIRNESS_REMARK,
                _ => CHASE_REMARK,
            };
            let mut results = Results::new(format, remark);
            for run in log.runs.iter().filter(|run| is_of(run, program)) {
                let command = run.command.clone().unwrap_or_default();
                let left =
                    if program == "multichase" { command.without(&VALUED, &FLAGS) } else { String::new() };
                let facts = vec![("", left), ("page size", run.text("page").unwrap_or_default().to_string())];
                let is_told = run.hit("sample").is_some();
                let Some((builder, faults)) = results.of(run, facts, is_told) else { continue };
                match program {
                    "multichase" => chase(run, builder, faults),
                    "pingpong" => pingpong(run, builder, faults),
                    _ => fairness(run, builder),
                }
            }
            results.finish(&log)
        })
        .collect()
}

/// Whether a run is this program's: its first line says so, or its command.
fn is_of(run: &Run, program: &str) -> bool {
    let begins = ["chased", "pingpong", "fairness"].map(|name| run.hit(name).is_some());
    match (begins, program) {
        ([chased, false, false], "multichase") => {
            chased || run.command.is_some() && run.hit("number").is_some()
        }
        ([_, true, false], "pingpong") | ([_, false, true], "fairness") => true,
        _ => false,
    }
}

fn chase(run: &Run, builder: &mut Builder, faults: &mut Faults) {
    let command = run.command.as_ref();
    let option = |name: &str| command.and_then(|command| command.value(&[name]));
    let printed = |line: &str| run.text(line).and_then(|text| text.parse::<u64>().ok());
    // Its own messages say what it rounds.
    let size = |line: &str, name: &str, usual: u64| {
        printed(line).or_else(|| option(name).map_or(Some(usual), units::bytes).filter(|_| command.is_some()))
    };
    // The default is a number of the host's pages, whose size only -v prints.
    let locality = printed("locality").or_else(|| option("-T").and_then(units::bytes));
    let (Some(stride), Some(memory)) = (size("stride", "-s", STRIDE), size("memory", "-m", MEMORY)) else {
        return;
    };
    let threads = size("threads", "-t", 1).unwrap_or(1);
    let kind = run.text("chase").or(option("-c")).unwrap_or("simple");
    let kind = kind.replace(|one: char| !one.is_ascii_alphanumeric() && !".-:".contains(one), "-");
    let mut params = format!("chase={kind}&stride={stride}");
    if let Some(locality) = locality {
        params.push_str(&format!("&tlb={locality}"));
    }
    let has = |flag: &str| command.is_some_and(|command| command.has(&[flag]));
    if has("-o") {
        params.push_str("&order=ordered");
    }
    if has("-H") || run.hit("page").is_some_and(|page| page.text("huge").is_some()) {
        params.push_str("&pages=huge");
    } else if let Some(pages) = option("-p").and_then(units::bytes) {
        params.push_str(&format!("&pages={pages}"));
    }
    let samples: Vec<f64> = run.all("sample").filter_map(|hit| Some(hit.number("value")?.value)).collect();
    let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let number = run.hit("number").and_then(|hit| hit.number("value"));
    let is_mean = match number {
        // Of one sample both are the same.
        Some(number) if !samples.is_empty() && command.is_none() => (number.value - least).abs() > 1e-9,
        _ => has("-a"),
    };
    let metric = if is_mean { "latency_mean" } else { "latency_min" };
    let place = if threads == 1 { "one-cpu" } else { "free" };
    let key = format!("memory.multichase@{place}?{params}/bytes={memory}&threads={threads}#{metric}");
    let wording = format!("multichase {kind}, {}", if is_mean { "mean of samples" } else { "best sample" });
    let Some(meaning) = Meaning::of(&key, &wording, "ns", Better::Lower) else { return };
    match number {
        Some(number) => {
            builder.value(meaning, number.value);
            if !is_mean && !samples.is_empty() && (number.value - least).abs() > 1e-9 {
                let text = format!("it says {}; the least of its samples is {least}", number.value);
                faults.disagree("best sample", text, "the file");
            }
        }
        None => builder.missing(
            meaning,
            "started, no test finished: the run, or the text, ended before a result".into(),
        ),
    }
}

/// The numbers of a line's field.
fn columns<'t>(hit: &Hit<'t>, field: &str) -> Vec<&'t str> {
    hit.text(field).map(|text| text.split_whitespace().collect()).unwrap_or_default()
}

fn pingpong(run: &Run, builder: &mut Builder, faults: &mut Faults) {
    let heads = run.hit("heads").map(|hit| columns(hit, "value")).unwrap_or_default();
    let command = run.command.clone().unwrap_or_default();
    let options = [("-r", "pause"), ("-s", "dirty")];
    let more = options.iter().filter_map(|(option, name)| {
        let value = command.value(&[option])?.parse::<u32>().ok()?;
        Some(format!("{name}={value}"))
    });
    let more: Vec<String> = more.collect();
    let by = [("-u", "store"), ("-l", "compare-and-swap"), ("-x", "add")];
    let by = by.iter().find(|(option, _)| command.has(&[option])).map(|(_, name)| *name);
    let (bench, note) = match by {
        // Plain loads and stores on one line: what is measured here, too.
        Some("store") if more.is_empty() => {
            ("memory.core-to-core@all".to_string(), "the best of its samples; Assay gives the mean")
        }
        _ => {
            let by = by.map(|by| format!("by={by}"));
            let params: Vec<String> = by.into_iter().chain(more).collect();
            (format!("memory.multichase-pingpong@all?{}", params.join("&")), "")
        }
    };
    let mut rows = 0;
    for hit in run.all("pairs") {
        let Some(cpu) = hit.text("cpu") else { continue };
        let values = columns(hit, "value");
        // The first CPU has no column.
        let from = heads.iter().position(|head| *head == cpu).map_or(0, |place| place + 1);
        let to = heads.get(from..).unwrap_or_default();
        let is_number = |value: &&str| *value == "inf" || Number::read(value).is_some();
        if to.len() != values.len() || !values.iter().all(is_number) {
            hit.refuse();
            continue;
        }
        rows += 1;
        for (to, value) in to.iter().zip(values) {
            let key = format!("{bench}/from={cpu}&to={to}#latency");
            let Some(meaning) = Meaning::of(&key, &format!("pingpong {cpu} to {to}"), "ns", Better::Lower)
            else {
                continue;
            };
            match value.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) => builder.value(meaning.noted(note), value),
                None => builder.missing(meaning, "no line went from one to the other in time".to_string()),
            }
        }
    }
    if rows < heads.len() && command.value(&["-c"]).is_none() {
        faults.interrupted(&format!("the table has {rows} rows, but columns of {} CPUs", heads.len()));
    }
}

fn fairness(run: &Run, builder: &mut Builder) {
    let cpus = run.hit("cpus").map(|hit| columns(hit, "value")).unwrap_or_default();
    let mut kind = None;
    for hit in &run.hits {
        if hit.name == "relaxed" {
            kind = hit.text("value");
        }
        let (Some(kind), true) = (kind, hit.name == "times") else { continue };
        let values = columns(hit, "value");
        if values.len() != cpus.len() || !values.iter().all(|value| Number::read(value).is_some()) {
            hit.refuse();
            continue;
        }
        let of_cpus = cpus.iter().zip(values).map(|(cpu, value)| (format!("/cpu={cpu}#time"), Some(value)));
        let mean = (format!("/threads={}#time_mean", cpus.len()), hit.text("mean"));
        for (point, value) in of_cpus.chain([mean]) {
            let key = format!("memory.multichase-fairness@all?wait={kind}{point}");
            let meaning = Meaning::of(&key, "time of a locked increment", "ns", Better::Lower);
            if let (Some(meaning), Some(value)) = (meaning, value.and_then(|value| value.parse().ok())) {
                builder.value(meaning, value);
            }
        }
    }
}
