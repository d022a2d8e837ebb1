//! `perf bench` without its scheduler tests: memory functions, system calls, futexes and epoll. Its
//! KB, MB and GB are powers of 1024 (perf's `tools/perf/bench/mem-functions.c`).

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, param, point, tool};
use crate::kit::lines::{adds, begins, ignored, once, separates};

pub(crate) const FORM: Form = Form {
    format: Format("perf bench result"),
    program: "perf",
    remark: "perf bench does not report where its threads ran",
    documented: false,
    signs: &["# Running "],
    marks: &["begin"],
    lines: &[
        begins("begin", r"# Running '?(?<value>(?:mem|syscall|futex|epoll)/[\w-]+)'? benchmark(?::|\.\.\.)"),
        // What other readers read, or none.
        separates("other", r"# Running '?\w+/[\w-]+'? benchmark(?::|\.\.\.)"),
        adds("function", r"# function '(?<value>[^']+)'.*"),
        adds("size", r"# Copying (?<value>\d+)(?<value_unit>[KMG]?)B bytes \.\.\."),
        adds("moved", r"(?<value>\d+\.\d+)d? (?<value_unit>[KMG]?)(?:B|bytes)/[Ss]ec"),
        once(
            "threads",
            r"Run summary \[PID \d+\]: (?<value>\d+) threads?,? .*?(?:for (?<seconds>\d+) secs\.)?",
        ),
        once("threads", r"Run summary \[PID \d+\]: (?:blocking on|Requeuing) (?<value>\d+) threads .*"),
        adds("latency", r"(?<value>\d+\.\d+) (?<value_unit>u)secs/op"),
        adds("calls", r"(?<value>\d+) ops/sec"),
        adds("average", r"Averaged (?<value>\d+) operations/sec \(\+- +[\d.]+%\), total secs = \d+"),
        adds("done", r"Averaged (?<value>\d+) (?<kind>ADD|MOD|DEL) operations \(\+- +[\d.]+%\)"),
        adds(
            "woken",
            r"(?:Wokeup|Requeued) \d+ of \d+ threads in (?<value>[\d.]+) (?<value_unit>ms) \(\+- ?[\d.]+%\)",
        ),
        adds(
            "woken",
            r"Avg per-thread latency \(waking \d+/\d+ threads\) in (?<value>[\d.]+) (?<value_unit>ms) \(\+- ?[\d.]+%\)",
        ),
        adds("time", r"Total time: +(?<value>[\d.]+) \[sec\]"),
        adds("executed", r"# Executed (?<value>[\d,]+) \w+\(\) calls"),
        adds("died", r"Error: (?<value>.*)|Unknown benchmark: .*"),
        ignored(r"Usage: perf bench .*|-\w, --[\w-]+.*|\[thread +\d+\] .*|\[Run \d+\]: .*"),
    ],
    facts: &[],
    printed: &["-r", "--runtime", "-t", "--threads", "-s", "--size", "-l", "--nr_loops", "--loop"],
    flags: &["bench", "mem", "syscall", "futex", "epoll", "basic"],
    settings: &[param("function", "function"), point("threads", "threads")],
    figures: &[
        Row {
            wording: "perf bench {begin}",
            unit: "GB/s",
            scale: Scale::Letter(1024.0, 1e-9),
            settings: &[point("bytes", "size")],
            ..Row::rate("moved", "memory.perf-{begin}", "bandwidth")
        },
        Row {
            wording: "perf bench {begin}",
            unit: "us",
            better: model::Better::Lower,
            ..Row::rate("latency", "perf.{begin}", "latency")
        },
        Row { wording: "perf bench {begin}", ..Row::rate("average", "perf.{begin}", "operations") },
        Row { wording: "perf bench {begin}", ..Row::time("woken", "perf.{begin}", "latency") },
    ],
    headlines: &["bandwidth", "latency", "operations"],
    check,
};

tool!(FORM, "perf bench: mem, syscall, futex and epoll");

fn check(run: &Run, notes: &mut Notes) {
    if run.hit("done").is_some() {
        notes.remark("its counts of epoll_ctl operations were left out: it prints no time for them");
    }
    let calls = run.number("calls").zip(run.number("latency"));
    if let Some((calls, latency)) = calls {
        let one = crate::kit::Number { value: 1.0, rounding: 0.0 };
        notes.rate("ops/sec", Some(calls), Some(one), Some(latency.times(1e-6)));
    }
}
