//! What figures of one file say against each other, whatever tool printed them: a rate is its
//! amount over its time, and a higher percentile is never less than a lower one.

use super::{recorded, rules};
use crate::{Imported, faults, read};

fn accused(all: &[Imported]) -> bool {
    all.iter().any(|one| rules(one).contains(&faults::FIGURES_DISAGREE))
}

/// Each file is calm, and accused with another number in one place.
#[track_caller]
fn each(cases: &[(&str, &str, &str)]) {
    for (name, part, instead) in cases {
        let text = recorded(name);
        let edited = text.replacen(part, instead, 1);
        assert!(text != edited, "{name} has no {part}");
        assert!(!accused(&read(text.as_bytes()).expect(name)), "{name}");
        let all = read(edited.as_bytes()).expect(name);
        assert!(accused(&all), "{name}: {instead} for {part}");
        let findings = || all.iter().flat_map(|one| &one.findings);
        assert_eq!(
            findings().filter(|one| one.rule == faults::FIGURES_DISAGREE).count(),
            1,
            "{name}: {part}"
        );
    }
}

#[test]
fn rates_are_amounts_over_times() {
    each(&[
        ("iperf2-client.txt", "15.9 Gbits/sec", "19.5 Gbits/sec"),
        ("iperf2-client.txt", "31.4 Gbits/sec", "34.1 Gbits/sec"),
        ("iperf2-client.txt", "2490 MBytes", "2940 MBytes"),
        ("iperf2-client.txt", "0.0000-2.0075 sec", "0.0000-20.0075 sec"),
        ("iperf2-server.txt", "7.31 GBytes", "73.1 GBytes"),
        ("iperf2-2.2.1.txt", "3.93 Gbits/sec", "3.93 Mbits/sec"),
        ("iperf2-2.2.1.txt", "3.91 KBytes  15.9 Kbits/sec", "3.91 KBytes  51.9 Kbits/sec"),
        ("iperf2-udp.txt", "24.9 MBytes", "29.4 MBytes"),
        ("iperf2.csv", "0.0-3.0,6435635260", "0.0-3.0,9435635260"),
        ("iperf2.csv", "17043824616", "71043824616"),
        ("netperf-debian-classic.txt", "21472.76", "24172.76"),
        ("netperf-debian-classic.txt", "2640.94", "6240.94"),
        ("netperf-debian-classic.txt", "5041 ", "5401 "),
        ("netperf-debian-verbose.txt", "1719.97", "7119.97"),
        ("netperf-debian-verbose.txt", "215433216", "251433216"),
        ("netperf-debian-omni-stream.txt", "\nTHROUGHPUT=3328.31", "\nTHROUGHPUT=4326.00"),
        ("netperf-debian-omni-stream.txt", "REMOTE_BYTES_RECVD=425505472", "REMOTE_BYTES_RECVD=553157113"),
        ("netperf-debian-omni-stream.txt", "LOCAL_BYTES_RECVD=407349244", "LOCAL_BYTES_RECVD=529554017"),
        (
            "netperf-debian-omni-stream.txt",
            "LOCAL_SEND_THROUGHPUT=24770.18",
            "LOCAL_SEND_THROUGHPUT=32201.00",
        ),
        ("nuttcp-debian.txt", "7769.6024", "7976.6024"),
        ("ntttcp-sender.txt", "15.48Gbps", "18.45Gbps"),
        ("wrk.txt", "1397.74", "1937.74"),
        (
            "sysbench-debian-cpu.txt",
            "total number of events:              ",
            "total number of events:              1",
        ),
    ]);
}

#[test]
fn percentiles_rise() {
    each(&[
        ("schbench-2021.txt", "50.0th: 3  ", "50.0th: 30 "),
        ("schbench-2016.txt", "*99.0000th: 21024", "*99.0000th: 2102"),
        ("schbench-2016.txt", "max=21031", "max=2103"),
        ("wrk.txt", "90%    4.11ms", "90%    4.11us"),
        ("wrk.txt", "50%    2.72ms", "50%    2.72s"),
        ("wrk.txt", "8.43ms", "5.43ms"),
        ("fio-terse-pair.txt", "50.000000%=", "50.000000%=9"),
        ("fio-jobs.json", "\"90.000000\" : 358400", "\"90.000000\" : 179200"),
        ("fio-jobs.txt", "90.00th=[  318]", "90.00th=[  218]"),
        ("netperf-debian-omni-all.txt", "P90_LATENCY=50", "P90_LATENCY=250"),
        ("sockperf.txt", "percentile 50.000 =   30.880", "percentile 50.000 =   38.080"),
    ]);
}

/// Each of many runs is compared with itself; if one lacks a percentile, all with all.
#[test]
fn percentiles_of_several_runs_are_each_runs_own() {
    let run = |low: &str, high: &str| {
        format!(
            "Running 2s test @ http://h/\n  1 threads and 2 connections\n{low}{high}  28000 requests in 2.00s, 27.24MB read\nRequests/sec:  14000.00\nTransfer/sec:     13.60MB\n"
        )
    };
    let p50 = |us: u32| format!("     50%  {us}.00us\n");
    let p90 = |us: u32| format!("     90%  {us}.00us\n");
    let of = |runs: &[String]| accused(&read(runs.concat().as_bytes()).expect("a result"));
    assert!(!of(&[run(&p50(20), &p90(30)), run(&p50(40), &p90(50))]));
    assert!(of(&[run(&p50(20), &p90(30)), run(&p50(40), &p90(35))]));
    assert!(!of(&[run(&p50(20), &p90(30)), run(&p50(40), "")]));
    assert!(of(&[run(&p50(32), &p90(30)), run(&p50(40), "")]));
}
