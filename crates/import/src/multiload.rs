//! multiload of Google's multichase: what memory carries, how long a load takes, and both at once.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, Setting, param, point, tool};
use crate::kit::lines::{adds, begins, ignored, once};
use model::Better;

pub(crate) const FORM: Form = Form {
    format: Format("multiload result"),
    program: "multiload",
    remark: "multiload does not report the CPUs of its threads nor, in its table, the page size",
    documented: false,
    signs: &["ChaseThds"],
    marks: &["head"],
    lines: &[
        begins("begin", r"(?:Memory Bandwidth|Loaded Latency|Chase) test selected\..*"),
        once("head", r"Samples\s*, Byte/thd\s*, ChaseThds\s*, ChaseNS\s*, .*MemLdArg"),
        once("page", r"page_size = (?<value>\d+) bytes.*"),
        once("stride", r"stride = (?<value>\d+)"),
        once(
            "load",
            r"(?<samples>\d+)\s*, (?<bytes>\d+)\s*, 0\s*, 0\.000\s*, 0\s*, 0\.000\s*, (?<threads>\d+)\s*, (?<most>\d+)\s*, (?<mean>\d+)\s*, [\d.]+\s*, -+\s*, (?<load>\S+)",
        ),
        once(
            "chase",
            r"(?<samples>\d+)\s*, (?<bytes>\d+)\s*, (?<threads>\d+)\s*, (?<mean>[\d.]+)\s*, \d+\s*, [\d.]+\s*, 0\s*, 0\s*, 0\s*, 0\.000\s*, (?<chase>\S+)\s*, -+",
        ),
        once(
            "both",
            r"(?<samples>\d+)\s*, (?<bytes>\d+)\s*, (?<threads>\d+)\s*, (?<chased>[\d.]+)\s*, \d+\s*, [\d.]+\s*, (?<loads>[1-9]\d*)\s*, (?<most>\d+)\s*, (?<mean>\d+)\s*, [\d.]+\s*, (?<chase>\S+)\s*, (?<load>\S+)",
        ),
        adds("died", r"(?<value>Error: .*|error: more threads than cpus available)"),
        ignored(r"nr_threads = \d+|(?:total_memory|tlb_locality|chase|memload|run_test_type) = .*"),
        ignored(r"main: sample_no=.*|(?:Ld|Chase)(?:Avg|Max|Min|Dev)\w+=.*"),
    ],
    facts: &[("samples", "load.samples"), ("page size", "page"), ("stride", "stride")],
    printed: &["-t", "-m", "-l", "-c", "-n", "-d", "-s"],
    flags: &["-v"],
    settings: &[param("delay", "-d"), param("stride", "-s")],
    figures: &[
        Row { wording: "multiload {load}, mean of samples", ..bandwidth("load.mean", "bandwidth") },
        Row { wording: "multiload {load}, best sample", ..bandwidth("load.most", "bandwidth_max") },
        Row {
            wording: "multiload chase {chase}",
            settings: &[param("chase", "chase"), point("bytes", "bytes"), point("threads", "threads")],
            ..latency("chase.mean")
        },
        Row { wording: "multiload chase {chase} with {load}", settings: BOTH, ..latency("both.chased") },
        Row {
            wording: "multiload {load} with chase {chase}, mean of samples",
            settings: BOTH,
            ..bandwidth("both.mean", "bandwidth")
        },
        Row {
            wording: "multiload {load} with chase {chase}, best sample",
            settings: BOTH,
            ..bandwidth("both.most", "bandwidth_max")
        },
    ],
    headlines: &["bandwidth", "latency"],
    check,
};

tool!(FORM, "multiload");

const BENCH: &str = "memory.multiload";

const LOAD: &[Setting] = &[param("load", "load"), point("bytes", "bytes"), point("threads", "threads")];

const BOTH: &[Setting] = &[
    param("chase", "chase"),
    param("load", "load"),
    point("bytes", "bytes"),
    point("threads", "threads"),
    point("loads", "loads"),
];

/// Of a whole number of MiB a second, over all threads.
const fn bandwidth(place: &'static str, metric: &'static str) -> Row {
    Row { unit: "GB/s", scale: Scale::By(1_048_576e-9), settings: LOAD, ..Row::rate(place, BENCH, metric) }
}

const fn latency(place: &'static str) -> Row {
    Row { unit: "ns", better: Better::Lower, ..Row::rate(place, BENCH, "latency") }
}

fn check(run: &Run, notes: &mut Notes) {
    // Its own threads divide the bytes by nothing: each has as many.
    if run.hit("both").is_some() {
        notes.remark(
            "the latency is of one thread's chase while the others load memory; they may share a CPU",
        );
    }
}
