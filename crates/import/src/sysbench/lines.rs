//! The lines of sysbench, from 0.4 to 1.1.

use crate::kit::Does::{self, Adds, Begins, Ends, Nothing, Once, Within};
use crate::kit::Pattern;

const fn line(name: &'static str, does: Does, regex: &'static str) -> Pattern {
    Pattern { name, does, regex }
}

pub const LINES: &[Pattern] = &[
    line("version", Begins, r"sysbench (?<value>\d[\w.+-]*)(?:: .*| \(.*)?"),
    line("options", Once, r"Running the test with following options:"),
    line("threads", Once, r"Number of threads: (?<value>\d+)"),
    line("rate", Once, r"Target transaction rate: (?<value>\d+)/sec"),
    line("started", Once, r"Threads started!"),
    // What it does, and with what.
    line("doing", Adds, r"Doing (?<value>CPU|thread|mutex|memory|OLTP)\b.*"),
    line("doing", Adds, r"Running (?<value>memory) speed test with the following options:"),
    line("primes", Once, r"(?:Prime numbers limit|Maximum prime number checked in CPU test): (?<value>\d+)"),
    line("block", Once, r"(?:Memory )?[Bb]lock size:? (?<value>\d+)(?<value_unit>[KMG]?)(?:i?[Bb])?"),
    line("operation", Once, r"(?:Memory operations type|operation): (?<value>\w+)"),
    line("scope", Once, r"(?:Memory scope type|scope): (?<value>\w+)"),
    line("yields", Once, r"Thread yields per test: (?<value>\d+) Locks used: (?<locks>\d+)"),
    line("mode", Once, r"Doing (?<value>(?:sequential|random|combined|mixed) .*) test"),
    line("flags", Once, r"Extra file open flags: (?<value>.*)"),
    line("size", Once, r"(?<value>[\d.]+) ?(?<value_unit>[KMGT]?)i?[Bb] total file size"),
    line("ratio", Once, r"Read/Write ratio for combined random IO test: (?<value>[\d.]+)"),
    line("engine", Once, r"Using (?<value>.*) I/O mode"),
    line("fsync", Adds, r"Periodic FSYNC enabled, calling fsync\(\) each (?<value>\d+) requests\."),
    line("fsync", Adds, r"Calling fsync\(\) after (?<value>each) write operation\."),
    // What it found.
    line("eps", Once, r"events per second: +(?<value>\d+\.\d\d)"),
    line("eps_all", Once, r"events/s \(eps\): +(?<value>\d+\.\d{4})"),
    line(
        "operations",
        Once,
        r"(?:Total operations|Operations performed): (?<count>\d+) \( *(?<value>[\d.]+) (?:per second|ops/sec)\)",
    ),
    line("moved", Once, r"[\d.]+ Mi?B transferred \((?<value>[\d.]+) Mi?B/sec\)"),
    line(
        "done",
        Once,
        r"Operations performed: +(?<reads>\d+) [Rr]eads?, (?<writes>\d+) [Ww]rites?, (?<fsyncs>\d+) Other = \d+ Total",
    ),
    line(
        "transferred",
        Once,
        r"Read \S+ +Written \S+ +Total transferred \S+ +\((?<value>[\d.]+)(?<value_unit>[KMGT]?)i?[bB]/sec\)",
    ),
    line("requests", Once, r"(?<value>[\d.]+) Requests/sec executed"),
    line("reads", Once, r"reads/s: +(?<value>\d+\.\d\d)"),
    line("writes", Once, r"writes/s: +(?<value>\d+\.\d\d)"),
    line("fsyncs", Once, r"fsyncs/s: +(?<value>\d+\.\d\d)"),
    line("read_rate", Once, r"read, MiB/s: +(?<value>\d+\.\d\d)"),
    line("write_rate", Once, r"written, MiB/s: +(?<value>\d+\.\d\d)"),
    line("reads", Once, r"read: +IOPS=(?<value>[\d.]+) (?<rate>[\d.]+) MiB/s \(.*\)"),
    line("writes", Once, r"write: +IOPS=(?<value>[\d.]+) (?<rate>[\d.]+) MiB/s \(.*\)"),
    line("fsyncs", Once, r"fsync: +IOPS=(?<value>\d+\.\d\d)"),
    line("transactions", Once, r"transactions: +\d+ +\((?<value>[\d.]+) per sec\.\)"),
    line("queries", Once, r"(?:queries|read/write requests): +\d+ +\((?<value>[\d.]+) per sec\.\)"),
    line("errors", Once, r"ignored errors: +\d+ +\((?<value>[\d.]+) per sec\.\)"),
    line("time", Once, r"(?:total time|time elapsed): +(?<value>\d+\.\d+)s"),
    line("events", Once, r"total number of events: +(?<value>\d+)"),
    line("min", Once, r"min: +(?<value>\d+\.\d\d(?<seconds>\d\d)?)(?:ms|s)?"),
    line("mean", Once, r"avg: +(?<value>\d+\.\d\d(?<seconds>\d\d)?)(?:ms|s)?"),
    line("max", Once, r"max: +(?<value>\d+\.\d\d(?<seconds>\d\d)?)(?:ms|s)?"),
    line(
        "percentile",
        Once,
        r"(?:approx\. +)?(?<percent>\d+)(?:st|nd|rd|th)? percentile: +(?<value>\d+\.\d\d(?<seconds>\d\d)?)(?:ms|s)?",
    ),
    line("fairness", Once, r"events \(avg/stddev\): +(?<value>\d+\.\d{4})/(?<deviation>\d+\.\d\d)"),
    line("end", Ends, r"execution time \(avg/stddev\): +[\d.]+/[\d.]+"),
    line("bucket", Adds, r"(?<value>\d+\.\d+) \|\**\s+(?<count>\d+)"),
    line("each", Adds, r"\[ *\d+s ?\] (?:thds: \d+ (?:eps|tps)|threads: \d+, tps): (?<value>[\d.]+)\b.*"),
    line("each_moved", Adds, r"\[ *\d+s ?\] (?<value>[\d.]+) Mi?B/sec,?"),
    // How it ended otherwise, and what it did before.
    line("fatal", Adds, r"(?:FATAL|ALERT|sysbench): (?<value>.*)"),
    line("killed", Ends, r"(?<value>Segmentation fault.*|Killed.*|Terminated|Aborted.*|\^C.*)"),
    line("warning", Within, r"WARNING: (?<value>.*)"),
    line(
        "prepared",
        Adds,
        r"\d+ bytes written in .*|Creating files .*|Removing test files.*|Dropping table .*",
    ),
    line("rest", Nothing, r"Initializing (?:random|worker) .*|Creating (?:file|table|a secondary) .*|Done\."),
    line("rest", Nothing, r"Preallocating .*|Inserting \d+ records .*|Report (?:intermediate|checkpoint).*"),
    line("rest", Nothing, r"Forcing shutdown in .*|Debug mode .*|Additional request .*|Using checksums .*"),
    line(
        "rest",
        Nothing,
        r"(?:Memory transfer|total) size: .*|\d+ files, .*|Number of (?:IO|random) requests.*",
    ),
    line(
        "rest",
        Nothing,
        r"Calling fsync.*|\[ *\d+s ?\] (?:reads: .*|Checkpoint report:)|percentile stats: .*",
    ),
    line("rest", Nothing, r"(?:General statistics|Test execution summary|Threads fairness|Throughput):"),
    line(
        "rest",
        Nothing,
        r"(?:File operations|CPU speed|Latency \(ms\)|per-request statistics|response time):",
    ),
    line(
        "rest",
        Nothing,
        r"(?:SQL|OLTP test) statistics:|queries performed:|(?:read|write|other|total): +\d+",
    ),
    line("rest", Nothing, r"(?:other operations|deadlocks|reconnects): .*|sum: +[\d.]+|total time taken .*"),
    line(
        "rest",
        Nothing,
        r"Latency histogram .*|value +-+ distribution -+ count|thread # *\d+: .*|Verbose .*",
    ),
];
