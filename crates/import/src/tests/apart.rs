//! What one text distinguishes is never one series: before and after, hosts, kernels, compilers,
//! labels, sides of a comparison; and what is the same stays one.

use super::recorded;
use crate::above::prompt;
use crate::{Imported, read};

fn all(text: &str) -> Vec<Imported> {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{error:#}: {text}"))
}

/// The values of a series in each result.
fn each(text: &str, key: &str) -> Vec<Vec<f64>> {
    let of = |one: &Imported| {
        let figure = one.figures.iter().find(|figure| figure.judged.series.key == key);
        figure.map_or(Vec::new(), |figure| figure.judged.series.values().concat())
    };
    all(text).iter().map(of).collect()
}

fn told<'a>(one: &'a Imported, label: &str) -> &'a str {
    one.make_up.iter().find(|(known, _)| known == label).map_or("", |(_, value)| value.as_str())
}

fn says(all: &[Imported], words: &str) -> bool {
    all.iter().flat_map(|one| &one.remarks).any(|remark| remark.contains(words))
}

const GETPID: &str = "syscall.getpid@one-cpu#latency";

#[test]
fn summaries_behind_each_other_are_results() {
    let text = recorded("lmbench-two-summaries.txt");
    for (before, after) in [
        ("Without the patch:", "With the patch:"),
        ("# 6.1", "# 6.2"),
        ("what the box did last week", "and today"),
        ("", ""),
    ] {
        let text = text.replace("Without the patch:", before).replace("With the patch:", after);
        assert_eq!(each(&text, GETPID), [[0.23], [0.19]], "{before}");
        let headings: Vec<String> = all(&text).iter().map(|one| told(one, "heading").to_string()).collect();
        let plain = |text: &str| text.trim_start_matches("# ").trim_end_matches(':').to_string();
        assert_eq!(headings, [before, after].map(plain));
    }
    // A row that is the same in both is of both.
    let memory = "memory.latency@one-cpu?order=random/bytes=largest#latency";
    assert_eq!(each(&text, memory), [[132.0], [132.0]]);
    // The same one with other words around is one.
    let one = text.split("With the patch:").next().expect("a summary");
    let again = format!("{one}sent once more:\n{}", one.replace("Without the patch:", ""));
    assert_eq!(each(&again, GETPID), [[0.23]]);
    assert!(says(&all(&again), "twice"));
    // Rows below each other are repetitions, unless their clocks say otherwise.
    let row = "box       Linux 6.1.0-1 2400 0.23 0.30 0.91 1.82 2.61 0.26 1.19 98.2 341. 857.\n";
    for (mhz, warned) in [("2400", false), ("2398", false), ("3100", true), ("1200", true)] {
        let repeated = row.to_string() + &row.replace("0.23", "0.25").replace("2400", mhz);
        let found = all(&one.replace(row, &repeated));
        assert_eq!(
            (found.len(), says(&found, "one series may have figures of two hosts")),
            (1, warned),
            "{mhz}"
        );
    }
}

#[test]
fn curves_before_and_after_are_results() {
    let text = recorded("lmbench-curves-before-after.txt");
    let key = "memory.latency@one-cpu?order=stride&stride=128/bytes=8388608#latency";
    for (before, after) in [("huge pages off:", "huge pages on:"), ("# one", "# two"), ("a", "b")] {
        let text = text.replace("huge pages off:", before).replace("huge pages on:", after);
        assert_eq!(each(&text, key), [[21.34], [14.87]], "{before}");
    }
    let together = text.replace("huge pages on:\n", "");
    assert_eq!(each(&together, key), [[21.34, 14.87]]);
}

#[test]
fn sides_and_labels_are_results() {
    for (name, sources) in [
        ("lmbench-unified.diff", ["results/box.5.10", "results/box.6.1"]),
        ("lmbench-plain.diff", ["before", "after"]),
        ("lmbench-side-by-side.txt", ["before", "after"]),
    ] {
        let text = recorded(name);
        assert_eq!(each(&text, GETPID), [[0.2354], [0.2255]], "{name}");
        let found = all(&text);
        assert_eq!([told(&found[0], "source"), told(&found[1], "source")], sources, "{name}");
    }
    let text = recorded("lmbench-labels.txt");
    for (before, after) in [("mitigations=off", "mitigations=auto"), ("gcc 12", "gcc 13"), ("5.10", "6.1")] {
        let text = text.replace("mitigations=off", before).replace("mitigations=auto", after);
        assert_eq!(each(&text, GETPID), [[0.0841], [0.2255]], "{before}");
        let colon = text.replace(['[', ']'], "").replace(" Simple", ": Simple").replace(" Pipe", ": Pipe");
        match before.contains('=') {
            // It may be an option of anything.
            true => assert!(read(colon.as_bytes()).is_ok()),
            false => assert_eq!(each(&colon, GETPID), [[0.0841], [0.2255]], "{colon}"),
        }
    }
    let hackbench = "old: Running with 10*40 (== 400) tasks.\nold: Time: 5.484\nnew: Running with 10*40 (== 400) tasks.\nnew: Time: 4.039\n";
    assert_eq!(each(hackbench, "sched.hackbench@free?fds=20&groups=10#time"), [[5.484], [4.039]]);
}

#[test]
fn prose_between_runs_parts_them() {
    let key = "sched.hackbench@free?bytes=100&fds=20&groups=10&loops=100&tasks=process#time";
    let text = recorded("hackbench-prose-between.txt");
    let prose = "and now the same kernel with the series applied";
    for line in [prose, "6.1-rc3+", "With this change:", "--- patched ---"] {
        assert_eq!(each(&text.replace(prose, line), key), [[4.905, 4.871], [4.434, 4.402]], "{line}");
    }
    assert_eq!(each(&text.replace(&format!("{prose}\n"), ""), key), [[4.905, 4.871, 4.434, 4.402]]);
    // What a program prints behind each run parts nothing.
    assert_eq!(each(&recorded("hackbench-with-time.txt"), key), [[4.905, 4.871]]);

    let key = "network.round-trip@free?protocol=udp#latency_p50";
    let text = recorded("sockperf-before-after.txt");
    let headings = ["busy poll off:", "busy poll on:"];
    for (before, after) in
        [headings.into(), ("## 1", "## 2"), ("me@a:~$ ls", "me@b:~$ ls"), ("", "with busy polling")]
    {
        let text = text.replace(headings[0], before).replace(headings[1], after);
        assert_eq!(each(&text, key), [[2.0 * 30.88], [2.0 * 20.441]], "{after}");
    }
    let together = text.replace(headings[0], "").replace(headings[1], "");
    assert_eq!(each(&together, key), [[2.0 * 30.88, 2.0 * 20.441]]);
}

#[test]
fn reports_behind_each_other_are_results() {
    let text = recorded("speccpu-two-compilers.csv");
    let found = all(&text);
    assert_eq!(found.len(), 2);
    assert_eq!([told(&found[0], "compiler"), told(&found[1], "compiler")], ["GCC 12.2.0", "GCC 13.1.0"]);
    let report = recorded("speccpu.txt");
    for (from, to) in
        [("12.4", "12.9"), ("Invented Processor", "Another Processor"), ("Server 1", "Server 2")]
    {
        assert_eq!(all(&format!("{report}\n{}", report.replace(from, to))).len(), 2, "{to}");
    }
    assert_eq!(all(&format!("before\n{report}\nthe same again\n{report}")).len(), 1);

    let section = |cpus: u32, copies: &str| {
        format!(
            "{cpus} CPUs in system; running {copies} of tests\nPipe Throughput   5.0 lps   (10.0 s, 7 samples)\n"
        )
    };
    for (one, other, results) in [
        ((4, "1 parallel copy"), (8, "8 parallel copies"), 2),
        ((4, "4 parallel copies"), (8, "8 parallel copies"), 2),
        ((4, "1 parallel copy"), (4, "4 parallel copies"), 1),
        ((4, "1 parallel copy"), (8, "1 parallel copy"), 2),
    ] {
        let text = section(one.0, one.1) + &section(other.0, other.1) + "System Benchmarks Index Score\n";
        assert_eq!(all(&text).len(), results, "{text}");
    }
}

#[test]
fn results_of_several_tools_in_one_text_are_all_read() {
    let formats = |text: &str| all(text).iter().map(|one| one.format.word()).collect::<Vec<_>>();
    assert_eq!(formats(&recorded("two-tools-in-a-mail.txt")), ["UnixBench report", "hackbench log"]);
    for (names, expected) in [
        (["fio-jobs.txt", "hackbench.log"], ["fio result", "hackbench log"]),
        (["iperf3-tcp.json", "sockperf.txt"], ["iperf3 result", "sockperf result"]),
        (["lmbench-raw.txt", "hackbench-with-time.txt"], ["hackbench log", "lmbench raw results"]),
    ] {
        let text = names.map(recorded).join("\n");
        let found = formats(&text);
        assert!(expected.iter().all(|format| found.contains(format)), "{names:?}: {found:?}");
    }
}

#[test]
fn a_run_that_died_is_said_to_have() {
    const STARTED: &str = "started, no test finished";
    for name in ["lmbench-died.txt", "hackbench-died.txt", "sockperf-died.txt", "iperf3-died.json"] {
        let found = all(&recorded(name));
        let reasons =
            found.iter().flat_map(|one| &one.figures).map(|figure| &figure.judged.analysis.verdict.reason);
        let mut words = reasons.chain(found.iter().flat_map(|one| &one.remarks));
        assert!(words.any(|words| words.contains(STARTED)), "{name}: {found:#?}");
        let values = found
            .iter()
            .flat_map(|one| &one.figures)
            .filter(|figure| figure.judged.analysis.estimate.is_some());
        assert_eq!(values.count(), 0, "{name}");
    }
    let report = recorded("unixbench-died.txt");
    let spec: String = recorded("speccpu.txt").lines().take(8).map(|line| format!("{line}\n")).collect();
    let summary: String =
        recorded("lmbench-summary.txt").lines().take(12).map(|line| format!("{line}\n")).collect();
    for text in [&report, &report[..60], &spec, &summary] {
        let error = read(text.as_bytes()).expect_err("nothing finished").to_string();
        assert!(error.contains(STARTED), "{error}");
    }
    let fio = "a: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\nStarting 1 process\n";
    let found = all(fio).remove(0);
    assert!(found.figures[0].judged.analysis.verdict.reason.contains(STARTED), "{found:#?}");
}

/// Of each format a command and what it printed, twice.
fn twice() -> Vec<(&'static str, String, [String; 2])> {
    let first = |name: &str| {
        let text = recorded(name);
        let (command, rest) = text.split_once('\n').expect("a command");
        let output = rest.split("\n$ ").next().unwrap_or_default();
        (command.trim_start_matches("$ ").to_string(), format!("{output}\n"))
    };
    let hackbench = "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\nEach sender will pass 100 messages of 100 bytes\nTime: 4.905\n";
    let fio = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\nStarting 1 process\n\na: (groupid=0, jobs=1): err= 0: pid=7: Wed Nov 25 01:31:31 2026\n  read: IOPS=1000, BW=4000KiB/s (4096kB/s)(4000KiB/1000msec)\n     issued rwts: total=1000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n";
    let json = recorded("iperf3-tcp.json");
    let cookie = json.split("\"cookie\":").nth(1).and_then(|rest| rest.split('"').nth(1)).expect("a cookie");
    let of = |name, (command, output): (String, String), from: &str, to: &str| {
        let other = output.replace(from, to);
        assert_ne!(output, other, "{name}");
        (name, command, [output, other])
    };
    vec![
        of("hackbench", ("hackbench -g 10".into(), hackbench.into()), "4.905", "3.905"),
        of("fio", ("fio --name=a --rw=randread".into(), fio.into()), "pid=7", "pid=8"),
        of("sockperf", first("sockperf.txt"), "30.880", "29.880"),
        of("sysbench", first("sysbench.txt"), "3170.57", "3170.58"),
        of("iperf3", first("iperf3-client.txt"), "port 49034", "port 49035"),
        of("iperf3", ("iperf3 -c a -J".into(), json.clone()), cookie, "another"),
    ]
}

/// One decision says so for all formats.
#[test]
fn every_format_tells_the_same_things_apart() {
    for (name, command, [one, other]) in twice() {
        let results = |before: &str, after: &str| {
            let [before, after] = [before, after].map(|above| above.replace("CMD", &command));
            all(&format!("{before}\n{one}{after}\n{other}")).len()
        };
        for (before, after) in [
            ("kernel 6.1", "kernel 6.6"),
            ("## Before", "## After"),
            ("Before:", "After:"),
            ("### 1:10", "### 1:20"),
            ("<details><summary>old</summary>", "</details>\n<details><summary>new</summary>"),
            ("# sysctl a=1\n# CMD", "# sysctl a=0\n# CMD"),
            ("# echo on > /x; CMD", "# echo off > /x; CMD"),
            ("$ CMD", "$ cpupower frequency-set -g powersave && CMD"),
            ("$ CMD; swapoff -a", "$ CMD"),
            ("$ taskset -c 0 CMD", "$ sudo taskset -c 8 CMD"),
            ("$ timeout 5 CMD", "$ perf stat -- CMD"),
            ("$ ssh a CMD", "$ ssh b CMD"),
            ("$ CMD", "$ LD_PRELOAD=a.so CMD"),
            ("$ ./old/CMD", "$ ./new/CMD"),
            ("$ cd /old\n$ ./CMD", "$ cd /new\n$ ./CMD"),
            ("me@a:~$ CMD", "me@b:~$ CMD"),
            ("me@a:/mnt/old$ CMD", "me@a:/mnt/new$ CMD"),
            ("$ for k in 0 1; do sysctl a=$k; CMD; done", ""),
            ("$ for c in 0 8; do taskset -c $c CMD; done", ""),
        ] {
            assert_eq!(results(before, after), 2, "{name}: {before} / {after}");
        }
        for (before, after) in [
            ("", ""),
            ("run 1", "run 2"),
            ("Iteration 1 of 2:", "Iteration 2 of 2:"),
            ("12:30:01", "12:31:05"),
            ("$ CMD", "$ sleep 5; sudo CMD"),
            ("$ CMD", "$ date\n$ CMD 2>&1 | tee log"),
            ("## Before\n$ CMD", "$ CMD"),
            ("$ sysctl a=1; CMD", "$ sysctl a=1; CMD"),
            ("$ time CMD", "real 0m5.1s\nuser 0m1.0s\n$ time CMD"),
            ("$ for i in 1 2; do echo 3 > /drop; CMD; sleep $i; done", ""),
        ] {
            assert_eq!(results(before, after), 1, "{name}: {before} / {after}");
        }
    }
}

/// Most values that one series of some results has.
fn most_of_one(results: &[Imported]) -> usize {
    let figures = results.iter().flat_map(|one| &one.figures);
    figures.map(|figure| figure.judged.series.values().concat().len()).max().unwrap_or(0)
}

/// Whatever part of a printout is copied, from any line on: two copies below two headings are never
/// repetitions of each other.
#[test]
fn copies_below_two_headings_are_two_results() {
    let mut tried = 0;
    for case in super::foreign::cases() {
        let Ok(text) = std::str::from_utf8(&case.bytes) else { continue };
        let is_prompt = |line: &str| {
            line.split_whitespace().any(|word| ["$", "#", "%"].contains(&word))
                || prompt(line.trim()).is_some()
        };
        if text.len() > 5_000 || text.lines().any(is_prompt) {
            continue;
        }
        // Parts of these have nothing that distinguishes a run from the rest of the one before.
        let is_whole = ["fio", "sockperf", "lmbench-raw", "iperf", "unixbench"]
            .iter()
            .any(|name| case.name.starts_with(name));
        let starts =
            text.match_indices('\n').map(|(at, _)| at + 1).step_by(4).take(if is_whole { 0 } else { 3 });
        for part in std::iter::once(0).chain(starts).map(|start| &text[start..]) {
            // A part that holds a heading of its own is of several runs.
            let Ok(alone) = read(part.as_bytes()) else { continue };
            if alone.len() != 1 || most_of_one(&alone) != 1 || !told(&alone[0], "heading").is_empty() {
                continue;
            }
            let two = format!("2.1 zblock\n\n{part}\n2.2 zsmalloc\n\n{part}");
            let found = read(two.as_bytes()).unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
            assert_eq!(most_of_one(&found), 1, "{}: {} results of\n{two}", case.name, found.len());
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}
