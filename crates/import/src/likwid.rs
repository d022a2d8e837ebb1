//! likwid-bench: loops over vectors in work groups of threads that it pins.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, param, point, tool};
use crate::kit::lines::{adds, begins, ignored, once};

pub(crate) const FORM: Form = Form {
    format: Format("likwid-bench result"),
    program: "likwid-bench",
    remark: "likwid-bench does not count the lines that a store fetches first",
    documented: false,
    signs: &["LIKWID MICRO BENCHMARK"],
    marks: &["begin"],
    lines: &[
        begins("begin", r"LIKWID MICRO BENCHMARK"),
        once("test", r"Test: (?<value>\S+)"),
        once("threads", r"Using (?<value>\d+) threads"),
        adds(
            "placed",
            r"Group: \d+ Thread \d+ Global Thread \d+ running on (?:hwthread|core) (?<value>\d+) .*",
        ),
        once("clock", r"CPU Clock:\s+(?<value>\d+)"),
        once("time", r"Time:\s+(?<value>[\d.e+-]+) sec"),
        once("size", r"Size \(Byte\):\s+(?<value>\d+)"),
        once("flops", r"MFlops/s:\s+(?<value>[\d.]+)"),
        once("volume", r"Data volume \(Byte\):\s+(?<value>\d+)"),
        once("bandwidth", r"MByte/s:\s+(?<value>[\d.]+)"),
        once("update", r"Cycles per update:\s+(?<value>[\d.]+)"),
        adds("end", r"UOPs:\s+\d+"),
        ignored(
            r"Running without Marker API.*|Warning: Sanitizing .*|Allocate: .*|Initialization: .*|-{20,}",
        ),
        ignored(
            r"Using \d+ work groups|(?:Cycles|Cycle Clock|Iterations|Iterations per thread|Instructions):\s+\d+",
        ),
        ignored(r"(?:Inner loop executions|Size per thread|Number of Flops|Cycles per cacheline):\s+[\d.]+"),
        ignored(
            r"(?:Loads per update|Stores per update|Load bytes per element|Store bytes per elem\.|Load/store ratio):\s+[\d.]+",
        ),
    ],
    facts: &[],
    printed: &["-t", "-w", "-W", "-i"],
    flags: &[],
    settings: &[param("test", "test"), point("bytes", "size"), point("threads", "threads")],
    figures: &[
        Row {
            wording: "likwid-bench {test}",
            unit: "GB/s",
            scale: Scale::By(1e-3),
            ..Row::rate("bandwidth", "memory.likwid-bench", "bandwidth")
        },
        Row {
            wording: "likwid-bench {test} cycles per update",
            unit: "cycles",
            better: model::Better::Lower,
            ..Row::rate("update", "memory.likwid-bench", "cycles_per_update")
        },
    ],
    headlines: &["bandwidth"],
    check,
};

tool!(FORM, "likwid-bench");

fn check(run: &Run, notes: &mut Notes) {
    let volume = run.number("volume").map(|bytes| bytes.times(1e-6));
    notes.rate("MByte/s", run.number("bandwidth"), volume, run.number("time"));
    let mut cpus: Vec<&str> = run.texts("placed").collect();
    let threads = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < threads {
        notes.remark("several of its threads ran on one CPU");
    }
}
