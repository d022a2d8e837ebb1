//! The NAS Parallel Benchmarks: kernels and applications of computational fluid dynamics.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, param, point, tool};
use crate::kit::lines::{begins, ends, ignored, once};

pub(crate) const FORM: Form = Form {
    format: Format("NAS Parallel Benchmarks result"),
    program: "npb",
    remark: "NPB does not report where its threads ran",
    documented: false,
    signs: &["NAS Parallel Benchmarks", "Benchmark Completed"],
    marks: &["begin", "completed"],
    lines: &[
        begins("begin", r"NAS Parallel Benchmarks .*- (?<value>[A-Z]{2})(?:-MZ)? Benchmark"),
        once("completed", r"(?<value>[A-Z]{2})(?:-MZ)? Benchmark Completed\.?"),
        once("class", r"Class += +(?<value>[A-Z])"),
        once("time", r"Time in seconds += +(?<value>[\d.]+)"),
        once("threads", r"Total (?:threads|processes) += +(?<value>\d+)"),
        once("rate", r"Mop/s total += +(?<value>[\d.]+)"),
        once("verified", r"Verification += +(?<value>[A-Z ]+)"),
        once("version", r"Version += +(?<value>\S+)"),
        once("flags", r"FFLAGS += (?<value>.+)"),
        ends("end", r"Please send all errors/feedbacks to:"),
        ignored(
            r"No input file .*|Using compiled defaults.*|Initialization time .*|T = .*|Result verification .*",
        ),
        ignored(
            r"(?:Size|Iterations|Number of [\w ]+|Processor array|Layout type) *[:=] .*|(?:Avail threads|Mop/s/thread|Operation type|Compile date) += .*",
        ),
        ignored(
            r"Compile options:|(?:FC|CC|FLINK|F_LIB|F_INC|FLINKFLAGS|RAND|CLINK|C_LIB|C_INC|CFLAGS|CLINKFLAGS) += .*",
        ),
        ignored(r"NPB Development Team|npb@nas\.nasa\.gov"),
    ],
    facts: &[("npb", "version"), ("compiler flags", "flags")],
    printed: &[],
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

tool!(FORM, "NAS Parallel Benchmarks");

fn check(run: &Run, notes: &mut Notes) {
    let verified = run.at("verified").unwrap_or_default();
    if verified.contains("UNSUCCESSFUL") {
        notes.faults.invalid("Verification = UNSUCCESSFUL");
    }
    if run.hit("rate").is_some() && verified.is_empty() {
        notes.faults.interrupted("no line says whether its result was verified");
    }
}
