//! bw_mem of lmbench, as people run it by itself: a size and a rate a line, where the command above
//! alone names the operation.

use super::builder::Meaning;
use super::kit::{Hit, LinesAbove, Log, Pattern, Results, Run, Table, log};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, begins, ignored};
use model::{Better, units};

pub(crate) const TOOL: Tool =
    Tool::of("bw_mem of lmbench: pairs of numbers below their commands", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("bw_mem pairs");
const REMARK: &str = "lmbench keeps the median of its measurements, so no spread is known; bw_mem does not pin its processes, and does not count the lines that a store fetches first";

pub(crate) const LINES: &[Pattern] = &[
    begins("curve", r#""?stride=\d+|".*"#),
    adds("pair", r"(?<size>\d+\.\d+) (?<value>\d+\.\d+)"),
    ignored(r"Usage: \S*bw_mem .*|what: rd wr .*|<size> must be .*"),
];

static TABLE: Table = Table::new(LINES);

/// What bw_mem is asked to do, and the curve of a whole run of lmbench that is made by it.
#[rustfmt::skip]
const OPS: [(&str, &str, &str); 9] = [
    ("rd", "Memory partial read", "lmbench.memory-partial-read-bandwidth@one-cpu"),
    ("frd", "Memory read", "memory.bandwidth@one-cpu?op=read"),
    ("wr", "Memory partial write", "lmbench.memory-partial-write-bandwidth@one-cpu"),
    ("fwr", "Memory write", "memory.bandwidth@one-cpu?op=write"),
    ("rdwr", "Memory partial read/write", "lmbench.memory-partial-read-write-bandwidth@one-cpu"),
    ("cp", "unrolled partial bcopy unaligned", "lmbench.unrolled-partial-bcopy-unaligned@one-cpu"),
    ("fcp", "unrolled bcopy unaligned", "lmbench.unrolled-bcopy-unaligned@one-cpu"),
    ("bzero", "Memory bzero", "lmbench.memory-bzero-bandwidth@one-cpu"),
    ("bcopy", "libc bcopy unaligned", "lmbench.libc-bcopy-unaligned@one-cpu"),
];

/// Whether it names the program, and has a pair.
fn is_one(text: &str) -> bool {
    let is_pair = |line: &str| TABLE.hit(line).is_some_and(|hit| hit.name == "pair");
    text.contains("bw_mem") && text.lines().any(is_pair)
}

/// Each pair is a run's; those of a curve are all one's.
fn again(runs: &[Run], hit: &Hit, _: LinesAbove) -> Option<usize> {
    let last = runs.last()?;
    (hit.name == "pair" && last.hit("curve").is_none() && last.hit("pair").is_some()).then_some(0)
}

fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "bw_mem", &TABLE, again);
    let mut results = Results::new(FORMAT, REMARK);
    for run in log.runs.iter().filter(|run| run.hit("curve").is_none()) {
        let Some(pair) = run.hit("pair") else { continue };
        let command = run.command.clone().unwrap_or_default();
        let copies: u32 = command.value(&["-P"]).and_then(|copies| copies.parse().ok()).unwrap_or(1);
        let rest = command.without(&["-P", "-W", "-N"], &[]);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let op = words.get(1).and_then(|word| OPS.iter().find(|(op, _, _)| op == word));
        let size = words.first().and_then(|word| bytes(word));
        let printed = op.zip(size).filter(|_| run.command.is_some());
        let wording = |op: &str| format!("bw_mem {op}");
        let meaning = printed.and_then(|((op, title, key), size)| {
            let conflict = words.get(2).is_some_and(|word| *word == "conflict");
            let key = match (copies, conflict) {
                (1, false) => format!("{key}/bytes={size}#bandwidth"),
                (1, true) if *op == "bcopy" => {
                    format!("lmbench.libc-bcopy-aligned@one-cpu/bytes={size}#bandwidth")
                }
                (_, conflict) => {
                    let conflict = if conflict { "&layout=conflict" } else { "" };
                    format!("lmbench.bw-mem@free?op={op}{conflict}/bytes={size}&processes={copies}#bandwidth")
                }
            };
            Some(Meaning::of(&key, title, "GB/s", Better::Higher)?.noted(note(op, copies)))
        });
        let Some((builder, _)) = results.of(run, Vec::new(), false) else { continue };
        match (meaning, pair.number("value")) {
            (Some(meaning), Some(rate)) => builder.value(meaning, rate.value / 1e3),
            _ => {
                let key = "lmbench.bw-mem@free#bandwidth";
                let why = "its operation is unknown: no command stands above it";
                if let Some(meaning) = Meaning::of(key, &wording("pair"), "GB/s", Better::Higher) {
                    builder.missing(meaning, why.to_string());
                }
            }
        }
    }
    results.finish(&log)
}

/// How the meanings differ.
fn note(op: &str, copies: u32) -> &'static str {
    match op {
        _ if copies > 1 => "of all processes together",
        "frd" | "fwr" => "lmbench reads words of four bytes, which is slower than a core can load",
        "rd" | "wr" | "rdwr" | "cp" => "touches one word in four, and counts all bytes",
        _ => "",
    }
}

/// A size as lmbench reads it: `512`, `64k` in powers of two, `256M` in powers of ten.
fn bytes(text: &str) -> Option<u64> {
    const WORDS: &units::Words = &[
        ("", 1.0),
        ("k", 1024.0),
        ("m", 1048576.0),
        ("g", 1073741824.0),
        ("K", 1e3),
        ("M", 1e6),
        ("G", 1e9),
    ];
    units::amount(text, WORDS).map(|bytes| bytes as u64)
}
