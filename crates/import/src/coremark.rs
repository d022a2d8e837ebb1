//! CoreMark: iterations of its list, matrix and state work on one core or several.

use crate::Format;
use crate::kit::form::{Form, Row, Said, point, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("CoreMark result"),
    program: "coremark.exe",
    remark: "CoreMark fits the L1 cache, and its score depends on the compiler as much as on the processor",
    documented: false,
    signs: &["for coremark", "CoreMark 1.0", "Iterations/Sec"],
    marks: &["begin", "score", "rate"],
    lines: &[
        line("begin", Does::Begins, r"2K (?:performance|validation) run parameters for coremark\."),
        line("size", Does::Once, r"CoreMark Size +: (?<value>\d+)"),
        line("time", Does::Once, r"Total time \(secs\): (?<value>[\d.]+)"),
        line("rate", Does::Once, r"Iterations/Sec +: (?<value>[\d.]+)"),
        line("iterations", Does::Once, r"Iterations +: (?<value>\d+)"),
        line("compiler", Does::Once, r"Compiler version : (?<value>.+)"),
        line("flags", Does::Once, r"Compiler flags +: (?<value>.+)"),
        line("threads", Does::Once, r"Parallel \w+ : (?<value>\d+)"),
        line("valid", Does::Once, r"Correct operation validated\..*"),
        line("score", Does::Ends, r"CoreMark 1\.0 : (?<value>[\d.]+) / .*"),
        line(
            "invalid",
            Does::Adds,
            r"(?<value>Errors detected|ERROR! .*|\[\d+\]ERROR! .*|Cannot validate operation.*)",
        ),
        line(
            "rest",
            Does::Nothing,
            r"Total ticks +: \d+|Memory location +: .*|\(e\.g\. code in flash.*|(?:\[\d+\])?(?:seedcrc|crc\w+) +: .*",
        ),
    ],
    facts: &[("compiler", "compiler"), ("compiler flags", "flags")],
    told: &[],
    flags: &[],
    settings: &[point("threads", "threads")],
    figures: &[Row { wording: "CoreMark", ..Row::rate("rate", "cpu.coremark", "iterations") }],
    headlines: &["iterations"],
    check,
};

tool!(FORM, "results of CoreMark");

/// Its own rules ask for a run of ten seconds.
const LEAST_SECONDS: f64 = 10.0;

fn check(run: &Run, said: &mut Said) {
    run.texts("invalid").for_each(|text| said.against.invalid(text));
    let time = run.number("time");
    if time.is_some_and(|time| time.value < LEAST_SECONDS) {
        said.against.invalid("it ran for less than the 10 s that its rules require");
    }
    if run.hit("rate").is_some() && run.hit("valid").is_none() && run.hit("invalid").is_none() {
        said.against.interrupted("no line says whether its operation was correct");
    }
    said.rate("Iterations/Sec", run.number("rate"), run.number("iterations"), time);
}
