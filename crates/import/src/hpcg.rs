//! HPCG: conjugate gradients, bound by memory.

use crate::Format;
use crate::kit::form::{Form, Row, Said, point, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("HPCG result"),
    program: "xhpcg",
    remark: "an official HPCG result takes at least half an hour and a quarter of the memory",
    documented: false,
    signs: &["HPCG-Benchmark"],
    marks: &["begin"],
    lines: &[
        line("begin", Does::Begins, r"HPCG-Benchmark"),
        line("version", Does::Once, r"version=(?<value>\S+)"),
        line("processes", Does::Once, r"Machine Summary::Distributed Processes=(?<value>\d+)"),
        line("threads", Does::Once, r"Machine Summary::Threads per processes=(?<value>\d+)"),
        line("equations", Does::Once, r"Linear System Information::Number of Equations=(?<value>\d+)"),
        line(
            "gigabytes",
            Does::Once,
            r"Memory Use Information::Total memory used for data \(Gbytes\)=(?<value>[\d.]+)",
        ),
        line("time", Does::Once, r"Benchmark Time Summary::Total=(?<value>[\d.]+)"),
        line("operations", Does::Once, r"Floating Point Operations Summary::Total=(?<value>[\d.e+]+)"),
        line("raw", Does::Once, r"GFLOP/s Summary::Raw Total=(?<value>[\d.]+)"),
        line("bandwidth", Does::Once, r"GB/s Summary::Raw Total B/W=(?<value>[\d.]+)"),
        line(
            "rating",
            Does::Once,
            r"Final Summary::HPCG result is VALID with a GFLOP/s rating of=(?<value>[\d.]+)",
        ),
        line("invalid", Does::Adds, r"(?<value>.*::Result=FAILED|Final Summary::HPCG result is INVALID.*)"),
        line(
            "short",
            Does::Once,
            r"Final Summary::Results are valid but execution time \(sec\) is=(?<value>[\d.]+)",
        ),
        line("rest", Does::Nothing, r"[^=]+=.*"),
    ],
    facts: &[("hpcg", "version")],
    told: &[],
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

tool!(FORM, "results of HPCG");

fn check(run: &Run, said: &mut Said) {
    run.texts("invalid").for_each(|text| said.against.invalid(text));
    if let Some(time) = run.at("short") {
        said.remark(&format!("it ran for {time} s; an official result takes half an hour"));
    }
    let work = run.number("operations").map(|count| count.times(1e-9));
    said.rate("GFLOP/s", run.number("raw"), work, run.number("time"));
}
