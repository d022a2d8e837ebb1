//! Intel Memory Latency Checker, versions 3: latencies and bandwidths of nodes, under load and
//! between caches.

use super::builder::{Builder, Meaning};
use super::kit::{Hit, Log, Pattern, Results, Run, Table, log, said_again};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, begins, ignored, once};
use model::{Better, units};

pub(crate) const TOOL: Tool = Tool::of("Intel Memory Latency Checker (mlc)", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("Intel MLC result");
const REMARK: &str = "mlc prints one figure per test, so no spread is known; it reports neither the CPUs of its threads nor, without -L, the page size";

pub(crate) const LINES: &[Pattern] = &[
    begins("begin", r"Intel\(R\) Memory Latency Checker(?: \(.*\))? - v(?<value>[\w.-]+)"),
    once("parameters", r"Command line parameters:(?<value>.*)"),
    once("buffer", r"Using buffer size of (?<value>[\d.]+)Mi?B(?<each>/thread.*)?"),
    once("bound", r"(?<value>\*\*\* Unable to modify prefetchers.*)"),
    once("random", r"\*\*\* So, enabling random access for latency measurements"),
    once("idle", r"Measuring idle latencies (?:for (?<access>random|sequential) access )?\(in ns\)\.*"),
    once("peak", r"Measuring Peak (?:Injection )?Memory Bandwidths for the system"),
    once("max", r"Measuring Maximum Memory Bandwidths for the system"),
    once("nodes", r"Measuring Memory Bandwidths between nodes within system"),
    once("loaded", r"Measuring Loaded Latencies for the system"),
    once("caches", r"Measuring cache-to-cache transfer latency \(in ns\)\.*"),
    adds("traffic", r"Using (?<value>.*?) traffic type"),
    adds("heads", r"(?:Numa node|Socket|Writer Numa Node|Writer Socket)(?<value>(?:\s+\d+)+)"),
    adds(
        "home",
        r"Remote Socket L2->L2 HITM latency \(data address homed in (?<value>writer|reader) socket\)",
    ),
    adds("local", r"Local Socket (?<from>\w+)->(?<to>\w+) (?<state>HIT|HITM) +latency\s+(?<value>[\d.]+)"),
    adds("load", r"(?<delay>\d{5})\s+(?<latency>\d+\.\d+)\s+(?<bandwidth>\d+\.\d+)"),
    adds("row", r"(?<node>\d{1,4})(?<value>(?:\s+(?:\d+\.\d+|-))+)"),
    adds(
        "mix",
        r"(?<mix>ALL Reads|\d+:\d+ [A-Z][\w -]*?|Stream-triad like|All NT writes) *: *\s*(?<value>\d+\.\d+)",
    ),
    once(
        "each",
        r"Each iteration took (?<clocks>[\d.]+) (?:core|base frequency) clocks \(\s*(?<value>[\d.]+)\s*ns\)",
    ),
    ignored(
        r"Bandwidths are in MB/sec .*|Using all the threads .*|Using traffic with .*|Will take several .*",
    ),
    ignored(
        r"(?:Numa|Memory) node|Reader (?:Numa Node|Socket)|Inject\s+Latency\s+Bandwidth|Delay\s+\(ns\)\s+MB/sec|={10,}",
    ),
];

static TABLE: Table = Table::new(LINES);

fn is_one(text: &str) -> bool {
    const SIGNS: [&str; 9] = [
        "Intel(R) Memory Latency Checker",
        "Measuring idle latencies",
        "Measuring Peak Injection Memory Bandwidths",
        "Measuring Maximum Memory Bandwidths",
        "Measuring Memory Bandwidths between nodes",
        "Measuring Loaded Latencies for the system",
        "Measuring cache-to-cache transfer latency",
        " base frequency clocks (",
        " core clocks (",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "mlc", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    for run in log.runs.iter().filter(|run| run.hits.iter().any(|hit| hit.name != "begin")) {
        let facts = vec![("mlc", run.text("begin").unwrap_or_default().to_string())];
        let is_told = run.hits.iter().any(|hit| ["row", "load", "each", "mix"].contains(&hit.name));
        if let Some((builder, _)) = results.of(run, facts, is_told) {
            Reader::of(run).figures(run, builder);
        }
    }
    results.finish(&log)
}

/// What lines state about those behind them.
#[derive(Default)]
struct Reader {
    /// Options that change what is measured.
    options: String,
    /// How addresses follow each other, if known.
    access: Option<&'static str>,
    section: &'static str,
    traffic: String,
    home: String,
    heads: Vec<String>,
    bytes: Option<u64>,
    /// They were asked for.
    own_bytes: bool,
}

impl Reader {
    fn of(run: &Run) -> Reader {
        let parameters = run.text("parameters").map(str::to_string);
        let parameters =
            parameters.or_else(|| Some(run.command.as_ref()?.words.join(" "))).unwrap_or_default();
        let (bytes, options): (Vec<&str>, Vec<&str>) = parameters
            .split_whitespace()
            .filter(|word| !word.starts_with("--"))
            .partition(|word| word.starts_with("-b"));
        let is_random = run.hit("random").is_some() || options.contains(&"-r");
        let printed = run.hit("idle").and_then(|hit| hit.text("access"));
        let access = match printed {
            Some("sequential") => Some("sequential"),
            Some(_) => Some("random"),
            None => is_random.then_some("random"),
        };
        let asked = bytes.first().and_then(|word| size(word.trim_start_matches("-b")));
        let mib = run.hit("buffer").and_then(|hit| hit.number("value"));
        Reader {
            options: slug(&options.join(" ")),
            access,
            bytes: asked.or(mib.map(|mib| (mib.value * f64::from(1 << 20)).round() as u64)),
            own_bytes: asked.is_some(),
            ..Reader::default()
        }
    }

    fn figures(mut self, run: &Run, builder: &mut Builder) {
        let mut found = false;
        for hit in &run.hits {
            match hit.name {
                "idle" | "peak" | "max" | "nodes" | "loaded" | "caches" => {
                    (self.section, self.home, self.heads) = (hit.name, String::new(), Vec::new());
                    self.traffic.clear();
                }
                "traffic" => self.traffic = slug(hit.text("value").unwrap_or_default()),
                "home" => self.home = hit.text("value").unwrap_or_default().to_string(),
                "heads" => self.heads = words(hit, "value"),
                "bound" => self.remark(builder, hit),
                "mix" | "load" | "local" | "each" | "row" => match self.line(hit, builder) {
                    Some(count) => found |= count > 0,
                    None => hit.refuse(),
                },
                _ => {}
            }
        }
        if !found && let Some(meaning) = self.untold() {
            builder.missing(
                meaning,
                "started, no test finished: the run, or the text, ended before a result".into(),
            );
        }
    }

    fn remark(&self, builder: &mut Builder, hit: &Hit) {
        let text = format!("it says {:?}", hit.line().trim());
        if !builder.remarks.contains(&text) {
            builder.remarks.push(text);
        }
    }

    /// A figure of a section that had begun.
    fn untold(&self) -> Option<Meaning> {
        let (key, unit, better) = match self.section {
            "idle" => ("memory.mlc-idle-latency@node#latency", "ns", Better::Lower),
            "peak" => ("memory.mlc-peak@all#bandwidth", "GB/s", Better::Higher),
            "max" => ("memory.mlc-max@all#bandwidth", "GB/s", Better::Higher),
            "nodes" => ("memory.mlc-node-bandwidth@node#bandwidth", "GB/s", Better::Higher),
            "loaded" => ("memory.mlc-loaded@all#latency", "ns", Better::Lower),
            "caches" => ("memory.mlc-cache-to-cache@free#latency", "ns", Better::Lower),
            _ => return None,
        };
        Meaning::of(key, "mlc", unit, better)
    }

    /// Parts of a key's parameters, those that are known.
    fn params(&self, own: &[(&str, &str)]) -> String {
        let bytes = self.bytes.filter(|_| self.own_bytes).map_or(String::new(), |bytes| bytes.to_string());
        let is_point = self.section.is_empty();
        let more = [("buffer", if is_point { "" } else { &bytes }), ("options", self.options.as_str())];
        let parts = own.iter().chain(&more).filter(|(_, value)| !value.is_empty());
        let parts: Vec<String> = parts.map(|(name, value)| format!("{name}={value}")).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// How many figures a line has; `None` where it cannot be read as one of its section.
    fn line(&self, hit: &Hit, builder: &mut Builder) -> Option<usize> {
        let access = self.access.unwrap_or_default();
        let number = |name: &str| hit.number(name).map(|number| number.value);
        match (hit.name, self.section) {
            ("mix", "peak" | "max") => {
                let mix = hit.text("mix").unwrap_or_default();
                let params = self.params(&[("mix", &slug(mix))]);
                let key = format!("memory.mlc-{}@all{params}#bandwidth", self.section);
                put(builder, key, &format!("{mix}, {}", self.section), number("value"))
            }
            ("load", "loaded") => {
                let delay: u32 = hit.text("delay").and_then(|delay| delay.parse().ok()).unwrap_or_default();
                let params = self.params(&[("access", access), ("traffic", &self.traffic)]);
                let key = format!("memory.mlc-loaded@all{params}/delay={delay}#");
                let (latency, bandwidth) = number("latency").zip(number("bandwidth"))?;
                put(builder, format!("{key}latency"), "loaded latency", Some(latency))?;
                put(builder, format!("{key}bandwidth"), "bandwidth of the load", Some(bandwidth))
            }
            ("local", "caches") => {
                let text = |name: &str| slug(hit.text(name).unwrap_or_default());
                let params = self.params(&[
                    ("from", &text("from")),
                    ("socket", "local"),
                    ("state", &text("state")),
                    ("to", &text("to")),
                ]);
                let key = format!("memory.mlc-cache-to-cache@free{params}#latency");
                put(builder, key, &format!("cache to cache, local {}", text("state")), number("value"))
            }
            ("each", _) => {
                let point = self.bytes.map_or(String::new(), |bytes| format!("/bytes={bytes}"));
                let key =
                    format!("memory.mlc-idle@one-cpu{}{point}#latency", self.params(&[("access", access)]));
                put(builder, key, "idle latency", number("value"))
            }
            ("row", _) => self.row(hit, builder),
            _ => None,
        }
    }

    /// A row of a table of nodes.
    fn row(&self, hit: &Hit, builder: &mut Builder) -> Option<usize> {
        let (values, node) = (words(hit, "value"), hit.text("node").unwrap_or_default());
        if values.len() != self.heads.len() {
            return None;
        }
        let mut found = 0;
        for (head, value) in self.heads.iter().zip(values) {
            let (key, wording) = self.cell(node, head)?;
            found += put(builder, key, &wording, value.parse().ok()).unwrap_or(0);
        }
        Some(found)
    }

    /// The key and the words of what stands in the row of a node, below a head.
    fn cell(&self, node: &str, head: &str) -> Option<(String, String)> {
        let access = self.access.unwrap_or_default();
        let (name, params, what) = match self.section {
            "idle" => ("idle-latency", self.params(&[("access", access)]), "idle latency"),
            "nodes" => ("node-bandwidth", self.params(&[("traffic", &self.traffic)]), "bandwidth"),
            "caches" if !self.home.is_empty() => {
                let remote = [("home", self.home.as_str()), ("socket", "remote"), ("state", "hitm")];
                ("cache-to-cache", self.params(&remote), "cache to cache")
            }
            _ => return None,
        };
        let point = match self.section {
            "caches" => format!("reader={head}&writer={node}"),
            _ => format!("from={node}&node={head}"),
        };
        let metric = if what == "bandwidth" { what } else { "latency" };
        let key = format!("memory.mlc-{name}@node{params}/{point}#{metric}");
        Some((key, format!("{what}, {node} to {head}")))
    }
}

/// Adds a figure, bandwidths of MB/s; how many these were.
fn put(builder: &mut Builder, key: String, wording: &str, value: Option<f64>) -> Option<usize> {
    let is_rate = key.ends_with("#bandwidth");
    let (unit, better) = if is_rate { ("GB/s", Better::Higher) } else { ("ns", Better::Lower) };
    let value = value.map(|value| if is_rate { value / 1e3 } else { value });
    builder.value(Meaning::of(&key, wording, unit, better)?, value?);
    Some(1)
}

fn words(hit: &Hit, field: &str) -> Vec<String> {
    let words = hit.text(field).unwrap_or_default().split_whitespace();
    words.map(str::to_string).collect()
}

/// A size as its options have it: `250` KiB, `10m`.
fn size(text: &str) -> Option<u64> {
    let has_unit = text.ends_with(|one: char| one.is_ascii_alphabetic());
    units::bytes(text)?.checked_mul(if has_unit { 1 } else { 1024 })
}

/// Words as a value in a key.
fn slug(text: &str) -> String {
    let parts = text.split(|one: char| !one.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}
