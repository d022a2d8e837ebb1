//! HPCG: conjugate gradients, bound by memory.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, point, tool};
use crate::kit::lines::{adds, begins, ignored, once};

pub(crate) const FORM: Form = Form {
    format: Format("HPCG result"),
    program: "xhpcg",
    remark: "an official HPCG result takes at least half an hour and a quarter of the memory",
    documented: false,
    signs: &["HPCG-Benchmark"],
    marks: &["begin"],
    lines: &[
        begins("begin", r"HPCG-Benchmark"),
        once("version", r"version=(?<value>\S+)"),
        once("processes", r"Machine Summary::Distributed Processes=(?<value>\d+)"),
        once("threads", r"Machine Summary::Threads per processes=(?<value>\d+)"),
        once("equations", r"Linear System Information::Number of Equations=(?<value>\d+)"),
        once("gigabytes", r"Memory Use Information::Total memory used for data \(Gbytes\)=(?<value>[\d.]+)"),
        once("time", r"Benchmark Time Summary::Total=(?<value>[\d.]+)"),
        once("operations", r"Floating Point Operations Summary::Total=(?<value>[\d.e+]+)"),
        once("raw", r"GFLOP/s Summary::Raw Total=(?<value>[\d.]+)"),
        once("bandwidth", r"GB/s Summary::Raw Total B/W=(?<value>[\d.]+)"),
        once("rating", r"Final Summary::HPCG result is VALID with a GFLOP/s rating of=(?<value>[\d.]+)"),
        adds("invalid", r"(?<value>.*::Result=FAILED|Final Summary::HPCG result is INVALID.*)"),
        once("short", r"Final Summary::Results are valid but execution time \(sec\) is=(?<value>[\d.]+)"),
        ignored(r"[^=]+=.*"),
    ],
    facts: &[("hpcg", "version")],
    printed: &[],
    flags: &[],
    settings: &[
        point("equations", "equations"),
        point("processes", "processes"),
        point("threads", "threads"),
    ],
    figures: &[
        Row { wording: "HPCG rating", unit: "Gflop/s", ..Row::rate("rating", "memory.hpcg", "flops") },
        Row {
            wording: "HPCG memory traffic",
            unit: "GB/s",
            ..Row::rate("bandwidth", "memory.hpcg", "bandwidth")
        },
    ],
    headlines: &["flops"],
    check,
};

tool!(FORM, "HPCG");

fn check(run: &Run, notes: &mut Notes) {
    run.texts("invalid").for_each(|text| notes.faults.invalid(text));
    if let Some(time) = run.at("short") {
        notes.remark(&format!("it ran for {time} s; an official result takes half an hour"));
    }
    let work = run.number("operations").map(|count| count.times(1e-9));
    notes.rate("GFLOP/s", run.number("raw"), work, run.number("time"));
}
