//! `assay hackbench` beside the one of rt-tests: its options, its lines.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::host::skipped;
use crate::runs::{Ended, end, read, run_file, series};

const ORIGINAL: &str = "/usr/bin/hackbench";

fn hackbench(words: &str) -> Ended {
    let mut command = crate::assay();
    end(command.arg("hackbench").args(words.split_whitespace()))
}

/// The two lines before the time.
fn head(mode: &str, groups: u32, fds: u32, loops: u32, bytes: u32) -> String {
    format!(
        "Running in {mode} mode with {groups} groups using {} file descriptors each (== {} tasks)\n\
         Each sender will pass {loops} messages of {bytes} bytes\n",
        2 * fds,
        2 * fds * groups
    )
}

/// Its last line is the time, with three digits behind the point.
#[track_caller]
fn is_time(line: &str) {
    let number = line.strip_prefix("Time: ").expect("the time").strip_suffix('\n').expect("a whole line");
    let (seconds, parts) = number.split_once('.').expect("a point");
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    assert!(digits(seconds) && digits(parts) && parts.len() == 3, "{line:?}");
}

const OPTIONS: [(&str, &str, [u32; 4]); 8] = [
    ("-l 5", "process", [10, 20, 5, 100]),
    ("-g 1 -f 2 -l 5", "process", [1, 2, 5, 100]),
    ("-pTg 2 -l 5", "threaded", [2, 20, 5, 100]),
    ("-P -g2 -l5", "process", [2, 20, 5, 100]),
    ("-s 200 -g 1 -l 3", "process", [1, 20, 3, 200]),
    ("-i -g 1 -f 3 -l 2", "process", [1, 3, 2, 100]),
    ("--pipe --threads --groups=2 --fds=4 --loops=6", "threaded", [2, 4, 6, 100]),
    ("--process --groups 1 --loops 1 -T", "threaded", [1, 20, 1, 100]),
];

#[test]
fn its_three_lines_are_those_of_rt_tests() {
    for (words, mode, [groups, fds, loops, bytes]) in OPTIONS {
        let ended = hackbench(words);
        ended.expect(0).sane();
        let rest = ended.out.strip_prefix(&head(mode, groups, fds, loops, bytes));
        is_time(rest.unwrap_or_else(|| panic!("{words}: {}", ended.out)));
        for told in ["voluntary and ", " involuntary switches", " s user and ", " s system time"] {
            assert!(ended.err.contains(told), "{words}: {}", ended.err);
        }
    }
}

#[test]
fn the_original_prints_the_same_for_the_same_options() {
    let test = "the_original_prints_the_same_for_the_same_options";
    if !Path::new(ORIGINAL).exists() {
        return skipped(test, format!("there is no {ORIGINAL}"));
    }
    for (words, ..) in OPTIONS {
        let original = end(Command::new(ORIGINAL).args(words.split_whitespace()));
        let (theirs, ours) = (original.expect(0).out.clone(), hackbench(words).expect(0).out.clone());
        let split = |text: &str| {
            let at = text.find("Time: ").unwrap_or_else(|| panic!("{words}: {text}"));
            (text[..at].to_string(), text[at..].to_string())
        };
        let ((their_head, their_time), (our_head, our_time)) = (split(&theirs), split(&ours));
        assert_eq!(our_head, their_head, "{words}");
        is_time(&their_time);
        is_time(&our_time);
    }
}

#[test]
fn what_it_does_not_take_is_a_mistake_of_usage() {
    for (words, said) in [
        ("-g 0", "0 is not in 1..=1000"),
        ("-g many", "invalid digit"),
        ("-f 1001", "1001 is not in"),
        ("-l 0", "0 is not in"),
        ("-s 16777217", "is not in"),
        ("-p -i", "cannot be used with"),
        ("-x", "unexpected argument '-x'"),
        ("--runs 0", "0 is not in"),
        ("--runs 2 --only sched", "--only and --drop-caches are for `assay run`"),
        ("--runs 2 --drop-caches", "--only and --drop-caches are for `assay run`"),
    ] {
        let ended = hackbench(words);
        ended.expect(2).says(&[said]);
        assert_eq!(ended.out, "", "{words}");
    }
}

#[test]
fn runs_are_visits_with_the_kernels_counts() {
    let dir = tempfile::tempdir().expect("a folder");
    let words =
        format!("--runs 3 --json --quick --force -pg 2 -f 3 -l 40 -s 50 --out {}", dir.path().display());
    let ended = hackbench(&words);
    ended.sane();
    let results: Value = serde_json::from_str(&ended.out).expect("JSON on standard output");
    assert!(crate::validator("results").is_valid(&results));
    let key = "sched.hackbench@free?bytes=50&fds=3&groups=2&loops=40&tasks=process&transport=pipe";
    let of = |metric: &str| series(&results, &format!("{key}#{metric}"));
    assert_eq!((of("time")["n"].as_u64(), of("time")["unit"].as_str()), (Some(3), Some("s")));
    // Groups × senders × receivers × loops, and nothing lost.
    assert_eq!(of("messages")["median"].as_f64(), Some(720.0));
    assert_eq!(of("tasks")["median"].as_f64(), Some(12.0));
    // Every task was woken at least once by the signal to begin.
    assert!(of("voluntary")["median"].as_f64() >= Some(12.0), "{}", of("voluntary"));
    assert!(of("switches")["median"].as_f64() >= of("voluntary")["median"].as_f64());
    let run = read(&run_file(dir.path()));
    assert_eq!(run.visits.len(), 3);
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits);
}

#[test]
fn latencies_come_as_percentiles() {
    let dir = tempfile::tempdir().expect("a folder");
    let ended = hackbench(&format!(
        "--latency --runs 2 --json --quick --force -Tg 1 -f 2 -l 50 --out {}",
        dir.path().display()
    ));
    ended.sane();
    let results: Value = serde_json::from_str(&ended.out).expect("JSON");
    let of = |metric: &str| {
        let key = "sched.messaging@free?bytes=100&fds=2&groups=1&loops=50&tasks=thread&transport=socket";
        series(&results, &format!("{key}#{metric}"))["median"].as_f64().expect("a number")
    };
    let quantiles = ["latency_p50", "latency_p99", "latency_p999", "latency_max"].map(of);
    assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{quantiles:?}");
}
