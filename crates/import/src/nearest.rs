//! What a text that cannot be read is nearest to, and what of that it lacks.

use crate::faults::short;
use crate::kit::Expression;

/// Benchmarks of perf that are named.
const QUOTED: usize = 5;

/// What a result of one tool has, in the order in which it is printed: its name in words, and the
/// letters by which it is known. The first begins it.
struct KnownFormat {
    name: &'static str,
    parts: &'static [(&'static str, &'static str)],
}

const KNOWN_FORMATS: &[KnownFormat] = &[
    KnownFormat {
        name: "iperf3's JSON",
        parts: &[
            ("\"start\"", "\"start\""),
            ("\"intervals\"", "\"intervals\""),
            ("\"end\"", "\"end\""),
            ("\"sum_sent\"", "\"sum_sent\""),
        ],
    },
    KnownFormat {
        name: "iperf3's text",
        parts: &[
            ("where it connects or listens", "Connecting to host"),
            ("the header of its rows ([ ID] Interval)", "[ ID] Interval"),
            ("the rows of the whole test (sender, receiver)", " receiver"),
        ],
    },
    KnownFormat {
        name: "sysbench's text",
        parts: &[
            ("\"Running the test with following options\"", "Running the test with following options"),
            ("\"Threads started!\"", "Threads started!"),
            ("its times (execution time)", "execution time"),
        ],
    },
    KnownFormat {
        name: "fio's JSON",
        parts: &[
            ("\"fio version\"", "\"fio version\""),
            ("\"jobs\"", "\"jobs\""),
            ("\"jobname\"", "\"jobname\""),
            ("\"iops\"", "\"iops\""),
        ],
    },
    KnownFormat {
        name: "fio's text",
        parts: &[
            ("the line that announces a job (ioengine=)", "ioengine="),
            ("\"Starting\"", "\nStarting "),
            ("the header of a result (groupid=)", "(groupid="),
            ("its figures (IOPS=, or iops=)", "BW="),
        ],
    },
    KnownFormat {
        name: "a report of UnixBench",
        parts: &[
            ("its banner", "BYTE UNIX Benchmarks"),
            ("\"Benchmark Run:\"", "Benchmark Run:"),
            ("a test's line (samples)", " samples)"),
            ("the index", "Index Score"),
        ],
    },
    KnownFormat {
        name: "a summary of lmbench",
        parts: &[
            ("its title", "L M B E N C H"),
            ("a table's title", " in microseconds - smaller is better"),
            ("the dashes above rows", "\n--------- ---"),
        ],
    },
    KnownFormat {
        name: "raw results of lmbench",
        parts: &[
            ("the line that begins it", "[lmbench"),
            ("a figure in microseconds", " microseconds"),
            ("a curve (\"stride=)", "\"stride="),
        ],
    },
    KnownFormat {
        name: "a log of hackbench",
        parts: &[
            ("\"Running in ... mode with\"", "mode with"),
            ("\"Each sender will pass\"", "Each sender will pass"),
            ("\"Time:\"", "\nTime:"),
        ],
    },
    KnownFormat {
        name: "`perf bench sched`",
        parts: &[
            ("\"# Running 'sched/...' benchmark\"", "sched/"),
            ("\"Total time:\"", "Total time:"),
            ("\"[sec]\"", "[sec]"),
        ],
    },
    KnownFormat {
        name: "a result of sockperf",
        parts: &[
            ("\"== version #\"", "== version #"),
            ("\"Printing statistics for Server\"", "Printing statistics for Server"),
            ("percentiles", "---> percentile"),
        ],
    },
    KnownFormat {
        name: "a report of SPEC CPU2017",
        parts: &[
            ("its title (SPEC CPU2017 ... Result)", "SPEC CPU2017 "),
            ("rows of components (503.bwaves_r)", "_r "),
            ("its headline", "SPECrate"),
        ],
    },
];

/// The benchmarks of perf in a text, which may be a collection of them.
fn of_perf(text: &str) -> Option<String> {
    static RUNS: Expression =
        Expression::new(r"(?m)^\s*# Running '?([a-z]+/[a-z-]+)'? benchmark(?::|\.\.\.)\s*$");
    let mut names: Vec<&str> =
        RUNS.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    names.dedup();
    let more = names.len().saturating_sub(QUOTED);
    names.truncate(QUOTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("it is output of `perf bench` ({names}{more}), of which Assay reads sched/messaging, sched/pipe, mem, syscall, futex and epoll")
    })
}

/// What a shell or a tool says where the tool did not run at all.
fn not_run(text: &str) -> Option<String> {
    static SAID: Expression = Expression::new(concat!(
        r"(?m)^\s*((?:\S+: )*(?:line )?(?:\d+: )?(?:\S*/)?",
        r"(?:iperf3|fio|sysbench|sockperf|hackbench|perf|lmbench|lat_[a-z_]+|bw_[a-z_]+|runcpu|Run): ",
        r"(?:unrecognized|unknown|invalid|illegal|bad|option|parameter|command not found|not found|",
        r"No such file|Permission denied|cannot)\b.*)$"
    ));
    let said = SAID.captures(text)?;
    Some(format!("nothing was measured: the text says {:?}", short(said[1].trim())))
}

/// Why a text is none of those that are known: that the tool did not run, or what it is nearest to,
/// if it has anything of one.
pub fn refusal(text: &str) -> String {
    if let Some(said) = not_run(text).or_else(|| of_perf(text)) {
        return said;
    }
    if crate::core_to_core::may_be(text) {
        return "it is a matrix of numbers below a diagonal without the name of a tool: if core-to-core-latency printed it, write that name in a line above it"
            .to_string();
    }
    let split = |shape: &'static KnownFormat| -> [Vec<&'static str>; 2] {
        let (has, lacks): (Vec<_>, Vec<_>) =
            shape.parts.iter().partition(|(_, letters)| text.contains(letters));
        [has, lacks].map(|parts: Vec<&'static (&'static str, &'static str)>| {
            parts.into_iter().map(|(name, _)| *name).collect()
        })
    };
    let all = KNOWN_FORMATS.iter().map(|shape| (shape, split(shape)));
    let begun =
        |shape: &KnownFormat, has: &[&str]| shape.parts.first().is_some_and(|(name, _)| has.contains(name));
    // Of equals that which begins as this does, and then the first.
    let best = all.rev().max_by_key(|(shape, [has, _])| (has.len(), begun(shape, has)));
    let Some((shape, [has, lacks])) = best.filter(|(_, [has, lacks])| !has.is_empty() && !lacks.is_empty())
    else {
        return "it is not a format that Assay knows".to_string();
    };
    let started = if begun(shape, &has) { " (started, no test finished)" } else { "" };
    let (name, has, lacks) = (shape.name, has.join(" and "), lacks.join(" and "));
    format!(
        "it is not a format that Assay knows; the nearest is {name}{started}: it has {has}, but lacks {lacks}"
    )
}

#[cfg(test)]
mod tests {
    use crate::read;

    #[test]
    fn a_refusal_names_what_is_nearest_and_what_is_missing() {
        for (text, words) in [
            (
                "{\n\t\"start\":\t{\n\t\t\"cookie\": 1}}\n",
                "iperf3's JSON (started, no test finished): it has \"start\", but lacks \"intervals\" and \"end\"",
            ),
            ("{\"intervals\": []}\n", "iperf3's JSON: it has \"intervals\", but lacks \"start\" and \"end\""),
            (
                "{\"jobs\": [{\"jobname\": \"a\"}]}\n",
                "fio's JSON: it has \"jobs\" and \"jobname\", but lacks \"fio version\"",
            ),
            (
                "   BYTE UNIX Benchmarks (Version 5.1.3)\n\n   System: a: GNU/Linux\n",
                "UnixBench (started, no test finished): it has its banner, but lacks",
            ),
            ("                 L M B E N C H  3 . 0   S U M M A R Y\n", "a summary of lmbench (started"),
            (
                "Each sender will pass 100 messages of 100 bytes\nTime: 4.905\n",
                "hackbench: it has \"Each sender will pass\" and \"Time:\", but lacks",
            ),
            ("SPEC CPU2017 results were fine\n", "SPEC CPU2017 (started"),
            ("Interval:\n[ ID] Interval\n sender\n", "iperf3's text: it has the header of its rows"),
            ("execution time (avg/stddev)\n", "sysbench's text: it has its times"),
        ] {
            let error = read(text.as_bytes()).expect_err("refused").to_string();
            assert!(
                error.contains(words) && error.contains("; `assay import --help` lists "),
                "{text}: {error}"
            );
        }
        for (text, words) in [
            (
                "iperf3: unrecognized option '--json-stream'\nUsage: iperf3 [-s|-c host] [options]\n -i 1 microseconds\n",
                "nothing was measured: the text says \"iperf3: unrecognized option '--json-stream'\"; `assay import --help` lists",
            ),
            (
                "bash: line 1: sockperf: command not found\n",
                "the text says \"bash: line 1: sockperf: command not found\"",
            ),
            (
                "$ /usr/bin/hackbench -x\n/usr/bin/hackbench: invalid option -- 'x'\n",
                "measured: the text says \"/usr/bin/hackbench: invalid",
            ),
            ("sh: 1: fio: not found\n", "the text says \"sh: 1: fio: not found\""),
            (
                "# Running 'numa/mem' benchmark:\n # Running main, \"perf bench numa mem -a\"\n\n 5.1 secs slowest (max) thread-runtime\n",
                "it is output of `perf bench` (numa/mem), of which Assay reads sched/messaging, sched/pipe, mem, syscall, futex and epoll; `assay",
            ),
            (
                "# Running internals/synthesize benchmark...\n  Average synthesis took: 157.202 usec\n     Total time: 1.285 [sec]\n",
                "(internals/synthesize), of which",
            ),
            (
                "# Running numa/mem benchmark...\n 1.5 GB/sec\n# Running breakpoint/thread benchmark...\n 2.5 GB/sec\n",
                "(numa/mem, breakpoint/thread), of which",
            ),
        ] {
            let error = read(text.as_bytes()).expect_err("refused").to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let error = read(b"hello\n").expect_err("refused").to_string();
        assert!(
            error.starts_with("it is not a format that Assay knows; `assay import --help` lists "),
            "{error}"
        );
    }
}
