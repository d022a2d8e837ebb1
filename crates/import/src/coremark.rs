//! CoreMark: iterations of its list, matrix and state work on one core or several.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, point, tool};
use crate::kit::lines::{adds, begins, ends, ignored, once};

pub(crate) const FORM: Form = Form {
    format: Format("CoreMark result"),
    program: "coremark.exe",
    remark: "CoreMark fits the L1 cache, and its score depends on the compiler as much as on the processor",
    documented: false,
    signs: &["for coremark", "CoreMark 1.0", "Iterations/Sec"],
    marks: &["begin", "score", "rate"],
    lines: &[
        begins("begin", r"2K (?:performance|validation) run parameters for coremark\."),
        once("size", r"CoreMark Size +: (?<value>\d+)"),
        once("time", r"Total time \(secs\): (?<value>[\d.]+)"),
        once("rate", r"Iterations/Sec +: (?<value>[\d.]+)"),
        once("iterations", r"Iterations +: (?<value>\d+)"),
        once("compiler", r"Compiler version : (?<value>.+)"),
        once("flags", r"Compiler flags +: (?<value>.+)"),
        once("threads", r"Parallel \w+ : (?<value>\d+)"),
        once("valid", r"Correct operation validated\..*"),
        ends("score", r"CoreMark 1\.0 : (?<value>[\d.]+) / .*"),
        adds("invalid", r"(?<value>Errors detected|ERROR! .*|\[\d+\]ERROR! .*|Cannot validate operation.*)"),
        ignored(
            r"Total ticks +: \d+|Memory location +: .*|\(e\.g\. code in flash.*|(?:\[\d+\])?(?:seedcrc|crc\w+) +: .*",
        ),
    ],
    facts: &[("compiler", "compiler"), ("compiler flags", "flags")],
    printed: &[],
    flags: &[],
    settings: &[point("threads", "threads")],
    figures: &[Row { wording: "CoreMark", ..Row::rate("rate", "cpu.coremark", "iterations") }],
    headlines: &["iterations"],
    check,
};

tool!(FORM, "CoreMark");

/// Its own rules ask for a run of ten seconds.
const MIN_SECONDS: f64 = 10.0;

fn check(run: &Run, notes: &mut Notes) {
    run.texts("invalid").for_each(|text| notes.faults.invalid(text));
    let time = run.number("time");
    if time.is_some_and(|time| time.value < MIN_SECONDS) {
        notes.faults.invalid("it ran for less than the 10 s that its rules require");
    }
    if run.hit("rate").is_some() && run.hit("valid").is_none() && run.hit("invalid").is_none() {
        notes.faults.interrupted("no line says whether its operation was correct");
    }
    notes.rate("Iterations/Sec", run.number("rate"), run.number("iterations"), time);
}
