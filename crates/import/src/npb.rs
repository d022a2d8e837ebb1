//! The NAS Parallel Benchmarks: kernels and applications of computational fluid dynamics.

use crate::Format;
use crate::kit::form::{Form, Row, Said, param, point, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("NAS Parallel Benchmarks result"),
    program: "npb",
    remark: "NPB does not report where its threads ran",
    documented: false,
    signs: &["NAS Parallel Benchmarks", "Benchmark Completed"],
    marks: &["begin", "completed"],
    lines: &[
        line("begin", Does::Begins, r"NAS Parallel Benchmarks .*- (?<value>[A-Z]{2})(?:-MZ)? Benchmark"),
        line("completed", Does::Once, r"(?<value>[A-Z]{2})(?:-MZ)? Benchmark Completed\.?"),
        line("class", Does::Once, r"Class += +(?<value>[A-Z])"),
        line("time", Does::Once, r"Time in seconds += +(?<value>[\d.]+)"),
        line("threads", Does::Once, r"Total (?:threads|processes) += +(?<value>\d+)"),
        line("rate", Does::Once, r"Mop/s total += +(?<value>[\d.]+)"),
        line("verified", Does::Once, r"Verification += +(?<value>[A-Z ]+)"),
        line("version", Does::Once, r"Version += +(?<value>\S+)"),
        line("flags", Does::Once, r"FFLAGS += (?<value>.+)"),
        line("end", Does::Ends, r"Please send all errors/feedbacks to:"),
        line(
            "rest",
            Does::Nothing,
            r"No input file .*|Using compiled defaults.*|Initialization time .*|T = .*|Result verification .*",
        ),
        line(
            "rest",
            Does::Nothing,
            r"(?:Size|Iterations|Number of [\w ]+|Processor array|Layout type) *[:=] .*|(?:Avail threads|Mop/s/thread|Operation type|Compile date) += .*",
        ),
        line(
            "rest",
            Does::Nothing,
            r"Compile options:|(?:FC|CC|FLINK|F_LIB|F_INC|FLINKFLAGS|RAND|CLINK|C_LIB|C_INC|CFLAGS|CLINKFLAGS) += .*",
        ),
        line("rest", Does::Nothing, r"NPB Development Team|npb@nas\.nasa\.gov"),
    ],
    facts: &[("npb", "version"), ("compiler flags", "flags")],
    told: &[],
    flags: &[],
    settings: &[param("class", "class"), point("threads", "threads")],
    figures: &[
        Row { wording: "NPB {completed}", unit: "Mop/s", ..Row::rate("rate", "cpu.npb-{completed}", "rate") },
        Row {
            wording: "NPB {completed} time",
            unit: "s",
            better: model::Better::Lower,
            ..Row::rate("time", "cpu.npb-{completed}", "time")
        },
    ],
    headlines: &["rate"],
    check,
};

tool!(FORM, "results of the NAS Parallel Benchmarks");

fn check(run: &Run, said: &mut Said) {
    let verified = run.at("verified").unwrap_or_default();
    if verified.contains("UNSUCCESSFUL") {
        said.against.invalid("Verification = UNSUCCESSFUL");
    }
    if run.hit("rate").is_some() && verified.is_empty() {
        said.against.interrupted("no line says whether its result was verified");
    }
}
