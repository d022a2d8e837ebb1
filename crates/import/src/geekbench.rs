//! Geekbench 4, 5 and 6 by Primate Labs, of processors: what its licensed editions print and export
//! as text, and the two scores that yabs.sh fetches from the page of a result.

use std::collections::BTreeMap;

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, Setting, param, tool};
use crate::kit::lines::{adds, ahead, begins, ignored, once};
use model::Better;

pub(crate) const FORM: Form = Form {
    format: Format("Geekbench result"),
    program: "geekbench6",
    remark: "Geekbench does not report CPUs, clock or spread; scores of two major versions cannot be compared, since each is calibrated on another host",
    documented: false,
    signs: &["Geekbench", "Running GB"],
    marks: &["major"],
    lines: &[
        begins(
            "major",
            r"Geekbench (?<version>(?<value>[456])\.\d[\w.-]*)(?: (?<edition>\w+))? : https?://www\.geekbench\.com/",
        ),
        begins("major", r"(?:Running GB\d benchmark test.*\s)?Geekbench (?<value>[456]) Benchmark Test:"),
        begins(
            "major",
            r"(?:Running GB\d benchmark test.*\s)?Geekbench (?<value>[456]) test failed\. Run manually .*",
        ),
        // A terminal overwrites it; a copy may have it above one of the lines before, or instead.
        ahead("major", r"Running GB(?<value>[456]) benchmark test\.\.\. \*cue elevator music\*"),
        once("died", r"(?<value>Geekbench \d requires an active internet connection.*)"),
        once("os", r"Operating System {3,}(?<value>[A-Za-z].*)"),
        once("kernel", r"Kernel {3,}(?<value>.+)"),
        once("model", r"Model {3,}(?<value>.+)"),
        once("cpu", r"Name {3,}(?<value>.+)"),
        once("topology", r"Topology {3,}(?<value>\d+ Processors?, .+)"),
        once("memory", r"(?:Size|Memory) {3,}(?<value>[\d.]+ [KMGT]B)"),
        once("single", r"(?<value>Single)-Core"),
        once("multi", r"(?<value>Multi)-Core"),
        adds(
            "test",
            r"(?<test>[A-Z][\w -]*?) {2,}(?<score>\d+) +(?:(?<bytes>[\d.]+) (?<bytes_unit>[KMG]?)B/sec|(?<flops>[\d.]+) (?<flops_unit>[KMG]?)flops|(?<frames>[\d.]+) FPS|(?<latency>[\d.]+) ns|(?<items>[\d.]+) (?<items_unit>[KMG]?)(?<of>[A-Za-z]{2,})/sec)",
        ),
        once("single-score", r"(?<cores>Single)-Core Score +(?<value>\d+)"),
        once("multi-score", r"(?<cores>Multi)-Core Score +(?<value>\d+)"),
        once("single-score", r"(?<cores>Single) Core +\| +(?<value>\d+)"),
        once("multi-score", r"(?<cores>Multi) Core +\| +(?<value>\d+)"),
        adds("section", r"(?<section>Crypto|Integer|Floating Point|Memory) Score +(?<value>\d+)"),
        once("page", r"(?:Full Test +\| +)?(?<value>https://browser\.geekbench\.com/v\d/cpu/\d+)"),
        ignored(r"(?:System|Processor|CPU|Memory) Information|Benchmark Summary|Test +\| Value|\|"),
        ignored(
            r"(?:Operating System|Model ID|Motherboard|Northbridge|Southbridge|BIOS|Governor|Identifier|Cluster \d|Processor Package|Processor Codename|(?:Base|Maximum) Frequency|L\d(?: Instruction| Data)? Cache|Instruction Sets|Type|Latency) {3,}.*",
        ),
        ignored(r"Running (?:Gathering system information|[A-Z][\w -]+)|-{20,}"),
        ignored(r"(?:Single|Multi) Core +\||YABS completed in .*"),
        ignored(
            r"benchmark results to the Geekbench Browser\.|Upgrade to Geekbench \d Pro .*|https://store\.primatelabs\.com/v\d|Enter your Geekbench \d Pro license .*|\S+ --unlock <email> <key>",
        ),
        ignored(
            r"Uploading results to the Geekbench Browser\..*|depending on the speed of your .*|Upload succeeded\. .*|Upload results to the Geekbench Browser\?.*|Visit the following link and add .*|https://browser\.geekbench\.com/v\d/cpu/\d+/claim\S*",
        ),
    ],
    facts: &[
        ("geekbench", "major.version"),
        ("edition", "major.edition"),
        ("os", "os"),
        ("kernel", "kernel"),
        ("model", "model"),
        ("cpu", "cpu"),
        ("topology", "topology"),
        ("memory", "memory"),
    ],
    printed: &[],
    flags: &["--no-upload", "--upload", "--cpu", "--export-text"],
    settings: &[],
    figures: &[
        Row {
            wording: "Geekbench {major}, one core",
            settings: &[param("cores", "cores")],
            ..score("single-score", "geekbench.{major}", "score")
        },
        Row {
            wording: "Geekbench {major}, all cores",
            settings: &[param("cores", "cores")],
            ..score("multi-score", "geekbench.{major}", "score")
        },
        section("single-score", "multi-score", ONE_SUM),
        section("multi-score", "single-score", ALL_SUM),
        single(TEST),
        multi(TEST),
        single(BYTES),
        multi(BYTES),
        single(FLOPS),
        multi(FLOPS),
        single(FRAMES),
        multi(FRAMES),
        single(LATENCY),
        multi(LATENCY),
        single(ITEMS),
        multi(ITEMS),
    ],
    headlines: &["score"],
    check,
};

tool!(FORM, "Geekbench 4, 5 and 6: text, also as printed by yabs.sh");

const ONE: &[Setting] = &[param("cores", "single")];
const ALL: &[Setting] = &[param("cores", "multi")];
const ONE_SUM: &[Setting] = &[param("cores", "single-score.cores")];
const ALL_SUM: &[Setting] = &[param("cores", "multi-score.cores")];

const fn score(place: &'static str, bench: &'static str, metric: &'static str) -> Row {
    Row { unit: "", ..Row::rate(place, bench, metric) }
}

/// The score of a kind of tests; the same lines stand below both scores.
const fn section(behind: &'static str, until: &'static str, settings: &'static [Setting]) -> Row {
    Row {
        wording: "Geekbench {major} {section}",
        settings,
        behind,
        until,
        ..score("section", "geekbench.{major}-{section}", "section_score")
    }
}

const fn test(place: &'static str, metric: &'static str) -> Row {
    Row { wording: "Geekbench {major} {test}", ..Row::rate(place, "geekbench.{major}-{test}", metric) }
}

const TEST: Row = Row { unit: "", ..test("test.score", "test_score") };
/// In steps of 1024, as its scores over its rates show; of all else in steps of 1000.
const BYTES: Row =
    Row { unit: "GB/s", scale: Scale::Letter(1024.0, 1e-9), ..test("test.bytes", "bandwidth") };
const FLOPS: Row = Row { unit: "Gflop/s", scale: Scale::Letter(1e3, 1e-9), ..test("test.flops", "flops") };
const FRAMES: Row = test("test.frames", "frames");
const LATENCY: Row = Row { unit: "ns", better: Better::Lower, ..test("test.latency", "latency") };
const ITEMS: Row = Row {
    wording: "Geekbench {major} {test}, {of}",
    scale: Scale::Letter(1e3, 1.0),
    ..test("test.items", "rate")
};

const fn single(row: Row) -> Row {
    Row { settings: ONE, behind: "single", until: "multi", ..row }
}

const fn multi(row: Row) -> Row {
    Row { settings: ALL, behind: "multi", until: "single", ..row }
}

fn check(run: &Run, notes: &mut Notes) {
    let is_scored = run.hit("single-score").or(run.hit("multi-score")).is_some();
    if let Some(page) = run.text("page") {
        notes.remark(&if is_scored {
            format!("the text says that the whole result is at {page}")
        } else {
            format!("the text has no scores and says that they are at {page}")
        });
    }
    if run.hit("test").is_some() && !is_scored {
        notes.faults.interrupted("it has scores of tests but no summary");
    }
    let parts = run.all("single").chain(run.all("multi")).count();
    let mut tests: BTreeMap<&str, usize> = BTreeMap::new();
    run.all("test").filter_map(|hit| hit.text("test")).for_each(|test| *tests.entry(test).or_default() += 1);
    if let Some((test, count)) = tests.iter().find(|(_, count)| **count > parts) {
        let text = format!("the text has it {count} times below {parts} headings: one heading is missing");
        notes.disagree(test, &text);
    }
    if run.hit("multi-score").is_some() {
        notes.remark(match run.at("major") {
            Some("6") => "on all cores Geekbench 6 divides the work of each test, so its score grows less than the number of cores",
            _ => "on all cores Geekbench 4 and 5 run a copy of each test on each CPU",
        });
    }
}
