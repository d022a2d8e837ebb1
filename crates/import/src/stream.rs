//! STREAM by John McCalpin, in C and Fortran, with and without OpenMP: the best of its repetitions
//! for each of four kernels. It counts the bytes that a kernel names, without the lines that a
//! store fetches first.

use crate::Format;
use crate::kit::form::{Form, Row, Said, Scale, param, point, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("STREAM result"),
    program: "stream",
    remark: "STREAM prints the best of its passes, so no spread is known, and does not report where its threads ran",
    documented: false,
    signs: &["STREAM version", "Avg time"],
    marks: &["version", "head"],
    lines: &[
        line("version", Does::Begins, r"STREAM version (?:\$Revision: )?(?<value>[\d.]+)(?: \$)?"),
        line(
            "odd",
            Does::Once,
            r"This system uses (?<value>[1-79]|\d{2,}) bytes per (?:array element|DOUBLE PRECISION word)\.",
        ),
        line(
            "element",
            Does::Once,
            r"This system uses (?<value>\d+) bytes per (?:array element|DOUBLE PRECISION word)\.",
        ),
        line("elements", Does::Once, r"Array size = +(?<value>\d+)(?: \(elements\))?(?:, Offset = .*)?"),
        line(
            "passes",
            Does::Once,
            r"Each (?:kernel|test) (?:will be|is) (?:executed|run) +(?<value>\d+) times.*",
        ),
        line("threads", Does::Once, r"Number of Threads counted = +(?<value>\d+)"),
        line("head", Does::Once, r"Function +(?:Best )?Rate \(?MB/s\)? +Avg time +Min time +Max time"),
        line(
            "kernel",
            Does::Adds,
            r"(?<kernel>Copy|Scale|Add|Triad): +(?<rate>[\d.]+) +(?<mean>\d+\.\d+) +(?<least>\d+\.\d+) +(?<most>\d+\.\d+)",
        ),
        // As some print it in a table of Markdown.
        line(
            "kernel",
            Does::Adds,
            r"\| *(?<kernel>Copy|Scale|Add|Triad) *\| *(?<average>[\d.]+) *\| *(?<rate>[\d.]+) *\| *(?<worst>[\d.]+) *\| *(?<mean>[\d.]+) *\| *(?<least>[\d.]+) *\| *(?<most>[\d.]+) *\|",
        ),
        line("valid", Does::Ends, r"Solution Validates.*"),
        line("invalid", Does::Adds, r"(?<value>Failed Validation on array .*|Solution Does Not Validate.*)"),
        line(
            "rest",
            Does::Nothing,
            r"-{20,}|\|[-|]+\||\| Function \|.*|Memory per array = .*|Total memory required = .*|The \*best\* time .*|will be used to compute .*",
        ),
        line(
            "rest",
            Does::Nothing,
            r"Number of Threads requested = .*|Your clock granularity.*|Each test below .*",
        ),
        line(
            "rest",
            Does::Nothing,
            r"\(= \d+ clock ticks\)|Increase the size .*|you are not getting .*|WARNING -- The above .*",
        ),
        line(
            "rest",
            Does::Nothing,
            r"Expected Value: .*, AvgAbsErr: .*|For array [abc]\[\], \d+ errors were found\.|For best results.*|precision of your system timer\.",
        ),
    ],
    facts: &[("stream", "version"), ("passes", "passes")],
    told: &[],
    flags: &[],
    settings: &[param("element", "odd"), point("elements", "elements"), point("threads", "threads")],
    figures: &[Row {
        wording: "STREAM {kernel}",
        unit: "GB/s",
        scale: Scale::By(1e-3),
        settings: &[param("op", "kernel")],
        ..Row::rate("kernel.rate", "memory.stream", "bandwidth")
    }],
    headlines: &["bandwidth"],
    check,
};

tool!(FORM, "results of STREAM");

/// Arrays that one of its kernels works on.
const ARRAYS: [(&str, f64); 4] = [("Copy", 2.0), ("Scale", 2.0), ("Add", 3.0), ("Triad", 3.0)];

fn check(run: &Run, said: &mut Said) {
    run.texts("invalid").for_each(|text| said.against.invalid(text));
    if run.hit("kernel").is_some() && run.hit("valid").is_none() && run.hit("invalid").is_none() {
        said.against.interrupted("no line says whether the solution validates");
    }
    let element = run.number("odd").or_else(|| run.number("element"));
    let elements = run.number("elements");
    for hit in run.all("kernel") {
        let arrays = ARRAYS.iter().find(|(name, _)| hit.text("kernel") == Some(*name));
        let bytes = element.zip(elements).zip(arrays);
        let amount =
            bytes.map(|((element, elements), (_, arrays))| elements.times(element.value * arrays / 1e6));
        said.rate(hit.text("kernel").unwrap_or_default(), hit.number("rate"), amount, hit.number("least"));
    }
    if let (Some(element), Some(elements)) = (element, elements) {
        let mib = element.value * elements.value / 1_048_576.0;
        said.remark(&format!(
            "each array has {mib:.0} MiB: it measures memory only if that is at least four times all last-level caches, which the text does not list"
        ));
    }
}
