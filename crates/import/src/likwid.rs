//! likwid-bench: loops over vectors in work groups of threads that it pins.

use crate::Format;
use crate::kit::form::{Form, Row, Said, Scale, param, point, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("likwid-bench result"),
    program: "likwid-bench",
    remark: "likwid-bench does not count the lines that a store fetches first",
    documented: false,
    signs: &["LIKWID MICRO BENCHMARK"],
    marks: &["begin"],
    lines: &[
        line("begin", Does::Begins, r"LIKWID MICRO BENCHMARK"),
        line("test", Does::Once, r"Test: (?<value>\S+)"),
        line("threads", Does::Once, r"Using (?<value>\d+) threads"),
        line(
            "placed",
            Does::Adds,
            r"Group: \d+ Thread \d+ Global Thread \d+ running on (?:hwthread|core) (?<value>\d+) .*",
        ),
        line("clock", Does::Once, r"CPU Clock:\s+(?<value>\d+)"),
        line("time", Does::Once, r"Time:\s+(?<value>[\d.e+-]+) sec"),
        line("size", Does::Once, r"Size \(Byte\):\s+(?<value>\d+)"),
        line("flops", Does::Once, r"MFlops/s:\s+(?<value>[\d.]+)"),
        line("volume", Does::Once, r"Data volume \(Byte\):\s+(?<value>\d+)"),
        line("bandwidth", Does::Once, r"MByte/s:\s+(?<value>[\d.]+)"),
        line("update", Does::Once, r"Cycles per update:\s+(?<value>[\d.]+)"),
        line("end", Does::Adds, r"UOPs:\s+\d+"),
        line(
            "rest",
            Does::Nothing,
            r"Running without Marker API.*|Warning: Sanitizing .*|Allocate: .*|Initialization: .*|-{20,}",
        ),
        line(
            "rest",
            Does::Nothing,
            r"Using \d+ work groups|(?:Cycles|Cycle Clock|Iterations|Iterations per thread|Instructions):\s+\d+",
        ),
        line(
            "rest",
            Does::Nothing,
            r"(?:Inner loop executions|Size per thread|Number of Flops|Cycles per cacheline):\s+[\d.]+",
        ),
        line(
            "rest",
            Does::Nothing,
            r"(?:Loads per update|Stores per update|Load bytes per element|Store bytes per elem\.|Load/store ratio):\s+[\d.]+",
        ),
    ],
    facts: &[],
    told: &["-t", "-w", "-W", "-i"],
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

tool!(FORM, "results of likwid-bench");

fn check(run: &Run, said: &mut Said) {
    let volume = run.number("volume").map(|bytes| bytes.times(1e-6));
    said.rate("MByte/s", run.number("bandwidth"), volume, run.number("time"));
    let mut cpus: Vec<&str> = run.texts("placed").collect();
    let threads = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < threads {
        said.remark("several of its threads ran on one CPU");
    }
}
