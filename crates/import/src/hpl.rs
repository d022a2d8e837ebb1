//! HPL, the High-Performance Linpack: floating-point operations per second of a dense solver.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, param, point, tool};
use crate::kit::lines::{adds, begins, ends, ignored, once};

pub(crate) const FORM: Form = Form {
    format: Format("HPL result"),
    program: "xhpl",
    remark: "HPL depends on its parameters and its linear algebra library: compare results with the same of both",
    documented: false,
    signs: &["HPLinpack", "WR", "WC"],
    marks: &["begin", "row"],
    lines: &[
        begins("begin", r"HPLinpack (?<value>[\d.]+) +-- .*"),
        adds(
            "row",
            r"(?<variant>W[A-Z]\d\d[A-Z]\d[A-Z]\d+) +(?<n>\d+) +(?<nb>\d+) +(?<p>\d+) +(?<q>\d+) +(?<time>[\d.]+) +(?<value>[\d.]+(?:e[+-]\d\d)?)",
        ),
        adds("passed", r"\|\|Ax-b\|\|.*\.{3,} PASSED"),
        adds("failed", r"(?<value>\|\|Ax-b\|\|.*\.{3,} FAILED)"),
        once("count", r"(?<value>\d+) tests completed and failed residual checks,"),
        ends("end", r"End of Tests\."),
        ignored(
            r"={20,}|-{20,}|[A-Z/0-9]+ +: .*|Written by .*|Modified by .*|An explanation of .*|The following parameter .*",
        ),
        ignored(
            r"- The (?:matrix|following|relative) .*|- Computational tests .*|\|\|Ax-b\|\|_oo / .*|T/V +N +NB .*",
        ),
        ignored(
            r"HPL_pdgesv\(\) .*|Finished +\d+ tests .*|\d+ tests? (?:completed|skipped) .*|\S+ : Column=\d+ .*",
        ),
    ],
    facts: &[("hpl", "begin")],
    printed: &[],
    flags: &[],
    settings: &[
        param("variant", "variant"),
        param("nb", "nb"),
        param("p", "p"),
        param("q", "q"),
        point("n", "n"),
    ],
    figures: &[Row { wording: "HPL", unit: "Gflop/s", ..Row::rate("row", "cpu.hpl", "flops") }],
    headlines: &["flops"],
    check,
};

tool!(FORM, "HPL (Linpack)");

fn check(run: &Run, notes: &mut Notes) {
    run.texts("failed").for_each(|text| notes.faults.invalid(text));
    let rows = run.all("row").count();
    let judged = run.all("passed").count() + run.all("failed").count();
    if judged < rows {
        notes.faults.interrupted("no line says whether the residual check of a test passed");
    }
    for hit in run.all("row") {
        // The operations that HPL counts: 2/3 n³ + 3/2 n².
        let work = hit.number("n").map(|n| {
            let value = (2.0 / 3.0 * n.value.powi(3) + 1.5 * n.value.powi(2)) / 1e9;
            crate::kit::Number { value, rounding: 0.0 }
        });
        notes.rate("Gflops", hit.number("value"), work, hit.number("time"));
    }
}
