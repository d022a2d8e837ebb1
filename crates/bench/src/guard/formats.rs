//! Tools whose output is known: the number that each is judged by.

use super::extract::{all, documents, number, regex};
use model::Better::{self, Lower};

/// A tool whose output is known.
pub struct Format {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub better: Better,
    find: Find,
}

/// How its results are found.
enum Find {
    /// The first group of a pattern.
    By(&'static str),
    With(fn(&str) -> anyhow::Result<Vec<f64>>),
}
use Find::{By, With};

/// Tools by name.
pub const FORMATS: &[Format] = &[
    tool(
        "unixbench",
        "UnixBench index",
        "",
        By(r"System Benchmarks Index Score(?: \(Partial Only\))?\s+([0-9.]+)"),
    ),
    Format { better: Lower, ..tool("hackbench", "hackbench time", "s", By(r"^\s*Time:\s+([0-9.]+)")) },
    tool("sysbench", "sysbench events", "1/s", With(sysbench)),
    tool("fio", "fio operations", "1/s", With(fio)),
    tool("iperf3", "iperf3 received", "bit/s", With(iperf3)),
    Format {
        better: Lower,
        ..tool("perf-bench", "perf bench total time", "s", By(r"Total time:\s+([0-9.]+) \[sec\]"))
    },
    tool("stream", "STREAM triad", "MB/s", By(r"^Triad:\s+([0-9.]+)")),
    tool("wrk", "wrk requests", "1/s", By(r"^Requests/sec:\s+([0-9.]+)")),
    tool("coremark", "CoreMark", "1/s", By(r"^Iterations/Sec\s+:\s+([0-9.]+)")),
    tool(
        "stress-ng",
        "stress-ng bogo operations",
        "1/s",
        By(r"^stress-ng: (?:info|metrc): +\[\d+\] [a-z][\w-]* +\d+(?: +[0-9.]+){3} +([0-9.]+) +[0-9.]+"),
    ),
    tool("likwid-bench", "likwid-bench bandwidth", "MB/s", By(r"^MByte/s:\s+([0-9.]+)")),
    tool("hpl", "HPL", "Gflop/s", By(r"^W[A-Z]\d\d\w+(?:\s+\d+){4}\s+[0-9.]+\s+([0-9.e+-]+)")),
    tool("hpcg", "HPCG rating", "Gflop/s", By(r"GFLOP/s rating of=([0-9.]+)")),
    tool("npb", "NPB operations", "Mop/s", By(r"Mop/s total\s+=\s+([0-9.]+)")),
    tool("iperf2", "iperf 2 bandwidth", "bit/s", With(iperf2)),
    // 10^6 bits a second for a stream unless options change it, 1/s for requests.
    tool(
        "netperf",
        "netperf throughput",
        "",
        By(r"^(?:\d+ +\d+ +\d+ +(?:\d+ +)?\d+\.\d+ +|\d+ +\d+\.\d+ +\d+ +|THROUGHPUT=)([0-9.]+)(?:\s|$)"),
    ),
    Format {
        better: Lower,
        ..tool(
            "schbench",
            "schbench wake-up p99",
            "us",
            By(r"(?s)^(?:Wakeup Latencies|Latency) percentiles.*?\* ?99\.0+th: +([0-9]+)"),
        )
    },
    tool("qperf", "qperf bandwidth", "bit/s", With(qperf)),
    tool(
        "nuttcp",
        "nuttcp bandwidth",
        "Mbit/s",
        By(r"(?:= +|rate_Mbps=)([0-9.]+)(?: Mbps \d+ %TX| tx_cpu=)"),
    ),
    tool("ntttcp", "ntttcp throughput", "bit/s", With(ntttcp)),
    tool(
        "openssl",
        "openssl speed, largest block",
        "kB/s",
        By(r"^[A-Za-z][\w()/-]* +(?:[0-9.]+k +)*([0-9.]+)k *$"),
    ),
    tool("bw_mem", "bw_mem bandwidth", "MB/s", By(r"^[0-9]+\.[0-9]+ ([0-9]+\.[0-9]+)\r?$")),
    Format {
        better: Lower,
        ..tool(
            "multichase",
            "multichase latency",
            "ns",
            By(r"^(?:[0-9]{10}\.[0-9]{6})? *([0-9]+\.[0-9]+)\r?$"),
        )
    },
    tool(
        "multiload",
        "multiload bandwidth",
        "MiB/s",
        By(r"^[0-9]+\s*,(?:\s*[0-9.]+\s*,){7}\s*([1-9][0-9]*)\s*,"),
    ),
    Format {
        better: Lower,
        ..tool(
            "core-to-core-latency",
            "core-to-core latency, mean of pairs",
            "ns",
            By(r"^ *Mean latency: (?:\x1b\[[0-9;]*m)*([0-9.]+)"),
        )
    },
    tool("mlc", "MLC bandwidth, all reads", "MB/s", By(r"^ALL Reads *: *\s*([0-9.]+)")),
];

const fn tool(name: &'static str, title: &'static str, unit: &'static str, find: Find) -> Format {
    Format { name, title, unit, better: Better::Higher, find }
}

pub fn format_of(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

impl Format {
    /// The results in what the tool printed, one after the other.
    pub(super) fn find(&self, text: &str) -> anyhow::Result<Vec<f64>> {
        match self.find {
            By(pattern) => all(text, pattern),
            With(find) => find(text),
        }
    }
}

/// Events a second of each test: printed by that of the CPU, else all events over the total time,
/// which all tests print.
fn sysbench(text: &str) -> anyhow::Result<Vec<f64>> {
    let seconds = all(text, r"total time:\s+([0-9.]+)s")?;
    let rates = all(text, r"events per second:\s+([0-9.]+)")?;
    // A test of the CPU prints both: where each test is one, the rates say all.
    if rates.len() >= seconds.len() {
        return Ok(rates);
    }
    let events = all(text, r"total number of events:\s+([0-9.]+)")?;
    let pairs = events.into_iter().zip(seconds).filter(|(_, seconds)| *seconds > 0.0);
    Ok(pairs.map(|(events, seconds)| events / seconds).collect())
}

/// Operations a second of all jobs of each run, reads and writes and trims together: from its JSON,
/// else from its text.
fn fio(text: &str) -> anyhow::Result<Vec<f64>> {
    let of = |job: &serde_json::Value| -> f64 {
        ["read", "write", "trim"].iter().filter_map(|kind| job[kind]["iops"].as_f64()).sum()
    };
    let runs = documents(text, '{').into_iter();
    let runs: Vec<f64> = runs.filter_map(|run| Some(run["jobs"].as_array()?.iter().map(of).sum())).collect();
    if !runs.is_empty() {
        return Ok(runs);
    }
    // Each run says its version, then its results.
    let line = regex(r"^fio-[0-9]|^\s*(?:read|write|trim)\s*: IOPS=([0-9.]+)([kM]?)")?;
    let (mut runs, mut fresh) = (Vec::new(), true);
    for found in line.captures_iter(text.as_bytes()) {
        let part = |group: usize| found.get(group).map(|part| String::from_utf8_lossy(part.as_bytes()));
        let Some(rate) = part(1) else {
            fresh = true;
            continue;
        };
        let rate = number(&rate)? * scale(part(2).as_deref());
        match runs.last_mut().filter(|_| !fresh) {
            Some(sum) => *sum += rate,
            None => runs.push(rate),
        }
        fresh = false;
    }
    Ok(runs)
}

/// What a unit's letter multiplies by.
fn scale(letter: Option<&str>) -> f64 {
    match letter {
        Some("k" | "K") => 1e3,
        Some("M") => 1e6,
        Some("G") => 1e9,
        Some("T") => 1e12,
        _ => 1.0,
    }
}

/// Bits a second that arrived in each test: from its JSON, else from the last line of a test's text
/// that names a receiver.
fn iperf3(text: &str) -> anyhow::Result<Vec<f64>> {
    let rate = |test: &serde_json::Value, name: &str| test["end"][name]["bits_per_second"].as_f64();
    let tests = documents(text, '{').into_iter();
    let tests: Vec<f64> =
        tests.filter_map(|test| rate(&test, "sum_received").or_else(|| rate(&test, "sum"))).collect();
    if !tests.is_empty() {
        return Ok(tests);
    }
    last_of_each(text, r"^Connecting to host|([0-9.]+) ([KMGT]?)bits/sec.*receiver")
}

/// Bits a second of each test, as the last of its lines says: that of all streams, or of the
/// server.
fn iperf2(text: &str) -> anyhow::Result<Vec<f64>> {
    last_of_each(
        text,
        r"^Client connecting to|^Server listening on|^\[ *(?:\d+|SUM)\] .* sec +[0-9.]+ [KMGT]?Bytes +([0-9.]+) ([KMGT]?)bits/sec",
    )
}

/// Bits a second that arrived in each test.
fn qperf(text: &str) -> anyhow::Result<Vec<f64>> {
    let bytes = last_of_each(text, r"^[a-z]+_bw:|^ +(?:bw|recv_bw) +=  +([0-9.]+) ([KMGT]?)(?:B|bytes)/sec")?;
    Ok(bytes.into_iter().map(|bytes| bytes * 8.0).collect())
}

/// Bits a second of all threads, of each run.
fn ntttcp(text: &str) -> anyhow::Result<Vec<f64>> {
    last_of_each(text, r"^NTTTCP for Linux|\sthroughput\s*:([0-9.]+)([KMGT]?)bps")
}

/// Numbers with the letter of their unit: the last behind each line without one, which begins a
/// test.
fn last_of_each(text: &str, pattern: &str) -> anyhow::Result<Vec<f64>> {
    let line = regex(pattern)?;
    let (mut tests, mut fresh) = (Vec::new(), true);
    for found in line.captures_iter(text.as_bytes()) {
        let part = |group: usize| found.get(group).map(|part| String::from_utf8_lossy(part.as_bytes()));
        let Some(rate) = part(1) else {
            fresh = true;
            continue;
        };
        if !fresh {
            tests.pop();
        }
        tests.push(number(&rate)? * scale(part(2).as_deref()));
        fresh = false;
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::super::extract::tests::kept;
    use super::super::extract::{Found, Wanted};
    use super::*;

    #[test]
    fn known_tools_are_read() {
        let read = |name: &str, text: &str| {
            let wanted = Wanted::format(format_of(name).expect("known"), None);
            wanted.find(&kept(text), &kept("")).map(|one| one.value).map_err(|error| error.to_string())
        };
        let index = "\nSystem Benchmarks Index Score                                        1390.9\n";
        assert_eq!(read("unixbench", index), Ok(1390.9));
        let partial = "System Benchmarks Index Score (Partial Only)   12.5\n";
        assert_eq!(read("unixbench", partial), Ok(12.5));
        assert_eq!(read("hackbench", "Running in process mode\nTime: 0.123\n"), Ok(0.123));
        let cpu =
            "CPU speed:\n    events per second:  1234.56\n\nGeneral statistics:\n    total time:  10.0s\n";
        assert_eq!(read("sysbench", cpu), Ok(1234.56));
        let threads = "    total time:                          2.0000s\n    total number of events:   500\n";
        assert_eq!(read("sysbench", threads), Ok(250.0));
        let fio = "  read: IOPS=1.5k, BW=6MiB/s\n  write: IOPS=500, BW=2MiB/s\n";
        assert_eq!(read("fio", fio), Ok(2000.0));
        let fio = "{\"jobs\": [{\"read\": {\"iops\": 10.5}, \"write\": {\"iops\": 1}}]}";
        assert_eq!(read("fio", fio), Ok(11.5));
        let iperf = "[  5]   0.00-1.00   sec  1.1 GBytes  9.42 Gbits/sec    0   sender\n\
                     [  5]   0.00-1.00   sec  1.1 GBytes  9.40 Gbits/sec        receiver\n";
        assert_eq!(read("iperf3", iperf), Ok(9.4e9));
        assert_eq!(read("iperf3", "{\"end\": {\"sum_received\": {\"bits_per_second\": 5e9}}}"), Ok(5e9));
        assert_eq!(read("perf-bench", "     Total time: 5.123 [sec]\n\n   5.1 usecs/op\n"), Ok(5.123));
        for (tool, text, value) in [
            ("stream", "Copy:  1.0  0.1\nTriad:           23314.0     0.291828\n", 23_314.0),
            ("wrk", "Requests/sec:   1397.74\nTransfer/sec:     13.60MB\n", 1397.74),
            ("coremark", "Iterations/Sec   : 42168.886390\nIterations       : 1200000\n", 42_168.886_39),
            (
                "stress-ng",
                "stress-ng: metrc: [7] cpu     3394      2.00      2.01      0.00      1695.51        1687.29        50.24  6580\n",
                1695.51,
            ),
            ("likwid-bench", "MByte/s:\t\t30128.50\n", 30_128.5),
            (
                "hpl",
                "WR11C2R4       10000   192     2     2              20.50             3.2528e+01\n",
                32.528,
            ),
            ("hpcg", "Final Summary::HPCG result is VALID with a GFLOP/s rating of=4.91\n", 4.91),
            ("npb", " Mop/s total     =                  7973.99\n Mop/s/thread    = 1.0\n", 7973.99),
            (
                "iperf2",
                "[  1] 0.0000-1.0000 sec  1.8 GBytes  16.3 Gbits/sec\n[SUM] 0.0000-1.0000 sec  3.7 GBytes  32.5 Gbits/sec\n",
                32.5e9,
            ),
            ("netperf", "131072  16384  16384    1.00     1898.17   \n", 1898.17),
            ("netperf", "16384  131072 1        1       1.00     41162.81   \n16384  131072\n", 41_162.81),
            (
                "netperf",
                "212992   65507   1.00        40987      0    21472.76\n212992           1.00         5041           2640.94\n",
                2640.94,
            ),
            ("netperf", "ELAPSED_TIME=1.00\nTHROUGHPUT=1622.54\nTHROUGHPUT_UNITS=10^6bits/s\n", 1622.54),
            (
                "schbench",
                "Wakeup Latencies percentiles (usec) runtime 4 (s) (58 total samples)\n\t  50.0th: 9 (7 samples)\n\t* 99.0th: 40000      (5 samples)\nRequest Latencies percentiles (usec) runtime 4 (s)\n\t* 99.0th: 7 (5 samples)\n",
                40_000.0,
            ),
            ("schbench", "Latency percentiles (usec)\n\t50.0000th: 37\n\t*99.0000th: 21024\n", 21_024.0),
            ("qperf", "udp_bw:\n    send_bw  =  1.56 GB/sec\n    recv_bw  =   833 MB/sec\n", 833e6 * 8.0),
            ("qperf", "tcp_bw:\n    bw  =  1.25 GB/sec\n", 1e10),
            (
                "nuttcp",
                "  500.5 MB /   0.30 sec = 13959.1453 Mbps     0 retrans\n 1125.5 MB /   1.00 sec = 9401.3661 Mbps 27 %TX 36 %RX 0 retrans 0.10 msRTT\n",
                9401.3661,
            ),
            (
                "nuttcp",
                "megabytes=412.1843 real_seconds=1.01 rate_Mbps=3420.3025 tx_cpu=16 rx_cpu=13 retrans=0 rtt_ms=0.10\n",
                3420.3025,
            ),
            ("ntttcp", "17:33:30 INFO: \t throughput\t:15.39Gbps\n", 15.39e9),
            (
                "openssl",
                "type             16 bytes     64 bytes\nmd5              74114.08k   200160.70k\n",
                200_160.7,
            ),
            ("bw_mem", "8.39 5403.78\n", 5403.78),
            ("multichase", "chase = simple\n  126.3  avg=126.3\n 126.3\n", 126.3),
            ("multichase", "1795971822.097855 19.821\n", 19.821),
            (
                "multiload",
                "Samples\t, Byte/thd\t, LdAvgMibs\n3     \t, 67108864   \t, 0       \t, 0.000   \t, 0       \t, 0.000   \t, 2       \t, 13798   \t, 12809   \t, 0.170   \t, --------\t, memcpy-libc\n",
                12_809.0,
            ),
            ("core-to-core-latency", "    Mean latency: \u{1b}[1;37m125.4\u{1b}[0mns\n", 125.4),
            ("mlc", "ALL Reads        :\t158811.2\n3:1 Reads-Writes :\t150602.4\n", 158_811.2),
        ] {
            assert_eq!(read(tool, text), Ok(value), "{tool}");
        }
        assert!(read("perf-bench", "nothing\n").expect_err("nothing").contains("did not appear"));
    }

    /// The last result counts, and how many there are is known.
    #[test]
    fn several_results_of_a_tool_are_told_apart() {
        let cpu = |rate: f64| {
            format!("events per second:  {rate}\n total time:  10.0s\n total number of events: 9\n")
        };
        let threads = |events: u32| format!(" total time:  2.0000s\n total number of events:   {events}\n");
        let fio = |read: u32| {
            format!(
                "fio-3.33\nStarting 2 processes\n  read: IOPS={read}, BW=6MiB/s\n  write: IOPS=500, BW=2MiB/s\n"
            )
        };
        let iperf = |rate: f64| {
            format!(
                "Connecting to host a, port 5201\n[  5] 0.00-1.00 sec 1 GBytes {rate} Gbits/sec receiver\n[SUM] 0.00-1.00 sec 2 GBytes {rate} Gbits/sec receiver\n"
            )
        };
        let json =
            |rate: f64| format!("{{\"end\": {{\"sum_received\": {{\"bits_per_second\": {rate}}}}}}}\n");
        let ntttcp =
            |rate: f64| format!("NTTTCP for Linux 1.4.3\n01:02:03 INFO: \t throughput\t:{rate}Gbps\n");
        let jobs = |iops: f64| format!("{{\"jobs\": [{{\"read\": {{\"iops\": {iops}}}}}]}}\n");
        for (tool, outputs, expected) in [
            ("sysbench", [cpu(1.5), cpu(2.5)], [1.5, 2.5]),
            ("sysbench", [threads(500), threads(600)], [250.0, 300.0]),
            ("fio", [fio(100), fio(300)], [600.0, 800.0]),
            ("fio", [jobs(7.0), jobs(8.5)], [7.0, 8.5]),
            ("iperf3", [iperf(9.0), iperf(7.0)], [9e9, 7e9]),
            ("iperf3", [json(5e9), json(4e9)], [5e9, 4e9]),
            ("hackbench", ["Time: 0.5\n".into(), "Time: 0.25\n".into()], [0.5, 0.25]),
            ("ntttcp", [ntttcp(9.5), ntttcp(2.5)], [9.5e9, 2.5e9]),
            ("perf-bench", ["Total time: 5.0 [sec]\n".into(), "Total time: 4.0 [sec]\n".into()], [5.0, 4.0]),
        ] {
            let wanted = Wanted::format(format_of(tool).expect("known"), None);
            let find = |text: &str| wanted.find(&kept(text), &kept("")).expect("a number");
            assert_eq!(find(&outputs[0]), Found { value: expected[0], of: 1 }, "{tool}");
            assert_eq!(find(&outputs.concat()), Found { value: expected[1], of: 2 }, "{tool}");
        }
    }
}
