//! STREAM by John McCalpin, in C and Fortran, with and without OpenMP: the best of its repetitions
//! for each of four kernels. It counts the bytes that a kernel names, without the lines that a
//! store fetches first.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, param, point, tool};
use crate::kit::lines::{adds, begins, ends, ignored, once};

pub(crate) const FORM: Form = Form {
    format: Format("STREAM result"),
    program: "stream",
    remark: "STREAM prints the best of its passes, so no spread is known, and does not report where its threads ran",
    documented: false,
    signs: &["STREAM version", "Avg time"],
    marks: &["version", "head"],
    lines: &[
        begins("version", r"STREAM version (?:\$Revision: )?(?<value>[\d.]+)(?: \$)?"),
        once(
            "odd",
            r"This system uses (?<value>[1-79]|\d{2,}) bytes per (?:array element|DOUBLE PRECISION word)\.",
        ),
        once(
            "element",
            r"This system uses (?<value>\d+) bytes per (?:array element|DOUBLE PRECISION word)\.",
        ),
        once("elements", r"Array size = +(?<value>\d+)(?: \(elements\))?(?:, Offset = .*)?"),
        once("passes", r"Each (?:kernel|test) (?:will be|is) (?:executed|run) +(?<value>\d+) times.*"),
        once("threads", r"Number of Threads counted = +(?<value>\d+)"),
        once("head", r"Function +(?:Best )?Rate \(?MB/s\)? +Avg time +Min time +Max time"),
        adds(
            "kernel",
            r"(?<kernel>Copy|Scale|Add|Triad): +(?<rate>[\d.]+) +(?<mean>\d+\.\d+) +(?<least>\d+\.\d+) +(?<most>\d+\.\d+)",
        ),
        // As some print it in a table of Markdown.
        adds(
            "kernel",
            r"\| *(?<kernel>Copy|Scale|Add|Triad) *\| *(?<average>[\d.]+) *\| *(?<rate>[\d.]+) *\| *(?<worst>[\d.]+) *\| *(?<mean>[\d.]+) *\| *(?<least>[\d.]+) *\| *(?<most>[\d.]+) *\|",
        ),
        ends("valid", r"Solution Validates.*"),
        adds("invalid", r"(?<value>Failed Validation on array .*|Solution Does Not Validate.*)"),
        ignored(
            r"-{20,}|\|[-|]+\||\| Function \|.*|Memory per array = .*|Total memory required = .*|The \*best\* time .*|will be used to compute .*",
        ),
        ignored(r"Number of Threads requested = .*|Your clock granularity.*|Each test below .*"),
        ignored(r"\(= \d+ clock ticks\)|Increase the size .*|you are not getting .*|WARNING -- The above .*"),
        ignored(
            r"Expected Value: .*, AvgAbsErr: .*|For array [abc]\[\], \d+ errors were found\.|For best results.*|precision of your system timer\.",
        ),
    ],
    facts: &[("stream", "version"), ("passes", "passes")],
    printed: &[],
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

tool!(FORM, "STREAM");

/// Arrays that one of its kernels works on.
const ARRAYS: [(&str, f64); 4] = [("Copy", 2.0), ("Scale", 2.0), ("Add", 3.0), ("Triad", 3.0)];

fn check(run: &Run, notes: &mut Notes) {
    run.texts("invalid").for_each(|text| notes.faults.invalid(text));
    if run.hit("kernel").is_some() && run.hit("valid").is_none() && run.hit("invalid").is_none() {
        notes.faults.interrupted("no line says whether the solution validates");
    }
    let element = run.number("odd").or_else(|| run.number("element"));
    let elements = run.number("elements");
    for hit in run.all("kernel") {
        let arrays = ARRAYS.iter().find(|(name, _)| hit.text("kernel") == Some(*name));
        let bytes = element.zip(elements).zip(arrays);
        let amount =
            bytes.map(|((element, elements), (_, arrays))| elements.times(element.value * arrays / 1e6));
        notes.rate(hit.text("kernel").unwrap_or_default(), hit.number("rate"), amount, hit.number("least"));
    }
    if let (Some(element), Some(elements)) = (element, elements) {
        let mib = element.value * elements.value / 1_048_576.0;
        notes.remark(&format!(
            "each array has {mib:.0} MiB: it measures memory only if that is at least four times all last-level caches, which the text does not list"
        ));
    }
}
