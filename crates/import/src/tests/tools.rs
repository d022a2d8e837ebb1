//! Tools whose runs are read by code of their own, on what they printed here.

use super::{found, recorded};

/// Each number as its line has it, found without a pattern: in the last line that begins so and
/// stands before the one with this text (or the end), which of its words, what one of it is in the
/// figure's unit.
#[test]
fn numbers_are_those_of_the_files() {
    let rows: [(&str, &str, &str, usize, f64, &str); 14] = [
        (
            "schbench-2016.txt",
            "-p 4096",
            "*99.0000th:",
            1,
            1.0,
            "schbench.latency@free/message_threads=1&threads=2#latency_p99",
        ),
        (
            "schbench-2016.txt",
            "",
            "rps:",
            1,
            1.0,
            "schbench.request@free?rps=50/message_threads=1&threads=2#rate",
        ),
        (
            "schbench-2021.txt",
            "-p 4096",
            "50.0th:",
            1,
            1.0,
            "schbench.latency@free/message_threads=1&threads=2#latency_p50",
        ),
        (
            "schbench-2025-calibrate.txt",
            "RPS",
            "* 99.0th:",
            2,
            1.0,
            "schbench.request@free/threads=2#latency_p99",
        ),
        ("schbench-2025-calibrate.txt", "", "average rps:", 2, 1.0, "schbench.request@free/threads=2#rate"),
        (
            "qperf-debian.txt",
            "-t 1 conf",
            "recv_bw",
            2,
            8e-3,
            "network.udp@free?direction=send/streams=1#bandwidth",
        ),
        (
            "qperf-debian.txt",
            "-t 1 udp_bw",
            "latency",
            2,
            2.0,
            "network.round-trip@free?protocol=tcp#latency_mean",
        ),
        (
            "qperf-debian-more.txt",
            "$ qperf 127.0.0.1 -t 1 conf",
            "latency",
            2,
            2.0,
            "network.round-trip@free?protocol=tcp/bytes=1024#latency_mean",
        ),
        (
            "nuttcp-debian.txt",
            "",
            "989.5561 MB",
            6,
            1e-3,
            "network.tcp@free?direction=send/streams=2#bandwidth",
        ),
        (
            "nuttcp-debian.txt",
            "",
            "megabytes=5.9531",
            2,
            1e-3,
            "network.udp@free?direction=send&rate=50/streams=1#bandwidth",
        ),
        (
            "nuttcp-debian-verbose.txt",
            "",
            "nuttcp-r: 301.5614 MB",
            11,
            1e-3,
            "network.tcp@free?direction=receive/bytes=65536&streams=1#bandwidth",
        ),
        (
            "ntttcp-receiver.txt",
            "-r -u",
            "17:33:30 INFO: \t throughput",
            3,
            1.0,
            "network.tcp@free?direction=receive#bandwidth",
        ),
        (
            "ntttcp-sender.txt",
            "",
            "17:33:48 INFO: \t throughput",
            3,
            1.0,
            "network.udp@free?direction=send/streams=2#sent",
        ),
        (
            "ntttcp-sender.txt",
            "",
            "17:33:52 INFO: tcpi rtt",
            4,
            1.0,
            "network.tcp@free?direction=send/bytes=131072&streams=1#rtt_mean",
        ),
    ];
    for (name, before, begin, word, factor, key) in rows {
        let text = recorded(name);
        let end = if before.is_empty() { text.len() } else { text.rfind(before).expect(before) };
        let line = text[..end].lines().rfind(|line| line.trim_start().starts_with(begin)).expect(begin);
        found::stands(&text, line, word, factor, key);
    }
}

/// Reports of one run on its way are no runs of their own; what does not go on from them is one.
#[test]
fn the_last_report_of_a_run_of_schbench_counts() {
    let report = |runtime: u32, samples: u32, max: u32| {
        format!(
            "Latency percentiles (usec) runtime {runtime} (s) ({samples} total samples)\n\t  50.0th: {runtime}      (5 samples)\n\t  min=1, max={max}\n"
        )
    };
    let medians = |text: &str| {
        let all = crate::read(text.as_bytes()).expect("a result");
        let figures = all.iter().flat_map(|one| &one.figures);
        let medians = figures.filter(|one| one.judged.series.metric.name == "latency_p50");
        medians.map(|one| one.judged.series.values().concat()).collect::<Vec<_>>()
    };
    assert_eq!(medians(&(report(10, 50, 7) + &report(20, 90, 7))), [[20.0]]);
    assert_eq!(medians(&(report(10, 50, 7) + &report(20, 40, 7))), [[10.0, 20.0]]);
    assert_eq!(medians(&(report(10, 50, 7) + &report(20, 90, 6))), [[10.0, 20.0]]);
    assert_eq!(medians(&(report(10, 50, 7) + &report(10, 90, 8))), [[10.0, 10.0]]);
}

/// A comma stands between thousands; a number with one elsewhere is of another language, and is not
/// read.
#[test]
fn a_decimal_comma_is_no_comma_of_thousands() {
    let text = |value: &str| format!("tcp_bw:\n    bw  =  {value} GB/sec\n");
    let bandwidth = |value: &str| {
        let all = crate::read(text(value).as_bytes()).unwrap_or_default();
        let figures = all.iter().flat_map(|one| &one.figures);
        figures.filter_map(|one| Some(one.judged.analysis.estimate.as_ref()?.median)).collect::<Vec<f64>>()
    };
    assert_eq!(bandwidth("1.25"), [10.0]);
    assert_eq!(bandwidth("1,250"), [10_000.0]);
    assert_eq!((bandwidth("1,25"), bandwidth("1250,5")), (vec![], vec![]));
}
