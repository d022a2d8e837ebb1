//! Logs of hackbench and perf, whole, wrapped, damaged and hostile.

use crate::{Imported, read};
use model::VerdictKind;

const RUN: &str = "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)
Each sender will pass 100 messages of 100 bytes
Time: 4.905
";
const DEFAULT: &str =
    "sched.hackbench@free?bytes=100&fds=20&groups=10&loops=100&tasks=process&transport=socket#time";
/// The same without its command.
const UNTOLD: &str = "sched.hackbench@free?bytes=100&fds=20&groups=10&loops=100&tasks=process#time";
const OLD: &str = "sched.hackbench@free?fds=20&groups=10#time";

fn all(text: &str) -> Vec<Imported> {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn one(text: &str) -> Imported {
    let mut all = all(text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// Key, values and note of every figure.
fn figures(imported: &Imported) -> Vec<(&str, Vec<f64>, &str)> {
    let all = imported.figures.iter().map(|figure| {
        let series = &figure.judged.series;
        (series.key.as_str(), series.values().concat(), figure.note.as_str())
    });
    all.collect()
}

/// The values of the only figure, whose key this is.
fn values(imported: &Imported, key: &str) -> Vec<f64> {
    let found = figures(imported);
    assert!(found.len() == 1 && found[0].0 == key, "no {key} alone: {found:?}");
    found[0].1.clone()
}

fn reason(text: &str) -> String {
    let found = one(text);
    assert_eq!(found.figures.len(), 1, "{found:#?}");
    let verdict = &found.figures[0].judged.analysis.verdict;
    assert_eq!(verdict.kind, VerdictKind::Skipped, "{verdict:?}");
    verdict.reason.clone()
}

fn says(imported: &Imported, words: &str) -> bool {
    imported.remarks.iter().any(|remark| remark.contains(words))
}

#[test]
fn the_command_tells_the_transport() {
    assert_eq!(values(&one(&format!("$ hackbench\n{RUN}")), DEFAULT), [4.905]);
    let untold = one(RUN);
    assert_eq!(values(&untold, UNTOLD), [4.905]);
    assert!(figures(&untold)[0].2.contains("lacks the transport"), "{untold:#?}");
    assert_eq!(untold.figures[0].judged.series.metric.unit, "s");
    assert_eq!((untold.format, untold.host.as_str()), (super::FORMAT, "unknown"));
    assert_eq!(untold.catalogue[0].title, "hackbench");
    for (command, transport) in [("-p", "pipe"), ("--inet", "inet"), ("-g 10 --process", "socket")] {
        let found = one(&format!("$ hackbench {command}\n{RUN}"));
        let key = DEFAULT.replace("socket", transport);
        assert_eq!((values(&found, &key), figures(&found)[0].2), (vec![4.905], ""), "{command}");
    }
    // A command that asks for another run says nothing about this one, and neither does one of
    // another program.
    for command in [
        "hackbench -T",
        "hackbench -g 4",
        "hackbench -p; hackbench",
        "hackbench $how",
        "make",
        "hackbench -p\n$ ls",
    ] {
        let found = one(&format!("$ {command}\n{RUN}"));
        assert_eq!(values(&found, UNTOLD), [4.905], "{command}");
    }
    // Of two, the mode says which one it was.
    let both = one(&format!("$ hackbench; hackbench -T -p\n{RUN}{}", RUN.replace("process", "threaded")));
    let keys: Vec<&str> = figures(&both).iter().map(|figure| figure.0).collect();
    assert_eq!(keys, [DEFAULT, &DEFAULT.replace("process", "thread").replace("socket", "pipe")]);
    let special = one(&format!("$ hackbench -F\n{RUN}"));
    assert!(figures(&special)[0].2.contains("with -F"), "{special:#?}");
}

#[test]
fn runs_of_one_setting_are_values_of_one_series() {
    let times = [4.1, 4.3, 4.2, 4.0, 4.5, 4.4];
    let text: String = times.iter().map(|time| RUN.replace("4.905", &format!("{time:.3}"))).collect();
    let found = one(&text);
    assert_eq!(values(&found, UNTOLD), times);
    let analysis = &found.figures[0].judged.analysis;
    assert_eq!(analysis.verdict.kind, VerdictKind::Unverified);
    let estimate = analysis.estimate.as_ref().expect("an estimate");
    assert!((estimate.median - 4.25).abs() < 1e-9, "{estimate:?}");
    let interval = estimate.interval.expect("six values have one");
    assert!((interval.low - 4.0232).abs() < 1e-3 && (interval.high - 4.4823).abs() < 1e-3, "{interval:?}");
    let four = one(&text[..4 * RUN.len()]);
    assert_eq!(four.figures[0].judged.analysis.estimate.as_ref().and_then(|found| found.interval), None);
}

#[test]
fn headings_hosts_and_movers_are_results_of_their_own() {
    let text = format!(
        "Without this change:\n$ hackbench\n{RUN}With this change:\n$ hackbench\n{RUN}root@b:~# hackbench\n{RUN}\
         root@b:~# taskset -c 0 hackbench\n{RUN}## Last\nme@c:~$ hackbench\n{RUN}Without this change:\n{RUN}"
    );
    let found = all(&text);
    let names: Vec<&str> = found.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(
        names,
        [
            "Without this change",
            "With this change",
            "b, With this change",
            "b, With this change, taskset -c 0",
            "c, Last",
            "c, Without this change",
        ]
    );
    assert!(found[3].make_up.contains(&("started by".to_string(), "taskset -c 0".to_string())));
    assert!(figures(&found[3])[0].2.contains("started by taskset -c 0"));
    assert_eq!(
        all("$ taskset -c 0 hackbench\nRunning with 10*40 (== 400) tasks.\n")[0].host,
        "unknown, taskset -c 0"
    );
    // The command before a heading is not the one below it.
    assert_eq!(values(&found[5], UNTOLD), [4.905]);
}

/// Two runs, each with the text before it: one series or two.
#[test]
fn what_the_text_tells_apart_is_never_one_series() {
    let again = RUN.replace("4.905", "3.905");
    let text = |before: &str, after: &str| format!("{before}\n{RUN}{after}\n{again}");
    for (before, after) in [
        ("kernel 6.1", "kernel 6.6"),
        ("Linux 6.1.0-13-amd64", "Linux 6.6.0-13-amd64"),
        ("node1", "node2"),
        ("1:10 overcommit", "1:20 overcommit"),
        ("## kernel 6.1\ngovernor: performance", "## kernel 6.6\ngovernor: performance"),
        ("# echo 1 > /ksm/run\n# hackbench", "# echo 0 > /ksm/run\n# hackbench"),
        ("# echo on > /smt; hackbench", "# echo off > /smt; hackbench"),
        ("$ ./old/hackbench", "$ ./new/hackbench"),
        ("$ uname -r\n6.1.0-13\n$ hackbench", "$ uname -r\n6.6.0-13\n$ hackbench"),
        ("$ cat /thp\n1\n$ hackbench", "$ cat /thp\n0\n$ hackbench"),
        ("$ hackbench", "$ LD_PRELOAD=/usr/lib/x.so hackbench"),
        ("$ cd old\n$ ./hackbench", "$ cd ../new\n$ ./hackbench"),
        ("me@box:/old$ ./hackbench", "me@box:/new$ ./hackbench"),
        ("$ cat before.log", "$ cat after.log"),
        (
            "+ cpupower frequency-set -g a\nSetting cpu: 0\nSetting cpu: 1\n+ hackbench",
            "+ cpupower frequency-set -g b\nSetting cpu: 0\nSetting cpu: 1\n+ hackbench",
        ),
    ] {
        let found = all(&text(before, after));
        let times: Vec<f64> = found.iter().flat_map(figures).flat_map(|(_, values, _)| values).collect();
        assert_eq!((found.len(), times), (2, vec![4.905, 3.905]), "{before} / {after}");
        let told = found[0].host != found[1].host;
        assert!(told || figures(&found[0])[0].0 != figures(&found[1])[0].0, "{before}: {}", found[0].host);
    }
    for (before, after) in [
        ("", ""),
        ("run 1", "run 2"),
        ("Iteration 1 of 2", "Iteration 2 of 2"),
        ("# sync; echo 3 > /drop; hackbench", "# sync; echo 3 > /drop; hackbench"),
        (
            "$ date\nSun Nov 29 11:00:00 UTC 2026\n$ hackbench",
            "$ date\nSun Nov 29 11:00:09 UTC 2026\n$ hackbench",
        ),
        ("$ cat run1.log", "$ cat run2.log"),
        ("$ time hackbench", "real 0m4.9s\nuser 0m1.0s\n$ time hackbench"),
        ("$ hackbench", "$ sleep 5\n$ sudo hackbench 2>&1 | tee b.log"),
    ] {
        let found = one(&text(before, after));
        assert_eq!(figures(&found)[0].1, [4.905, 3.905], "{before} / {after}");
    }
    // Another command before another setting parts nothing.
    let more = format!("$ hackbench\n{RUN}$ free -m\n$ hackbench -T\n{}", RUN.replace("process", "threaded"));
    assert_eq!(figures(&one(&more)).len(), 2);
}

#[test]
fn runs_of_a_loop_over_a_setting_are_results_of_their_own() {
    let again = RUN.replace("4.905", "3.905");
    for command in [
        "$ for k in 0 1; do sysctl kernel.x=$k; hackbench; done",
        "# for k in 0 1; do sysctl -q kernel.x=$k && hackbench -g 10; done",
        "$ for k in 0 1; do\n>   sysctl kernel.x=$k\n>   hackbench\n> done",
        "for k in $(cat list); do echo $k > /x; hackbench; done",
        "$ for c in 0 1; do taskset -c $c hackbench; done",
        "$ while read k; do echo $k > /x; hackbench; done < list",
    ] {
        let found = all(&format!("{command}\n{RUN}{again}"));
        let times: Vec<f64> = found.iter().flat_map(figures).flat_map(|(_, values, _)| values).collect();
        assert_eq!((found.len(), times), (2, vec![4.905, 3.905]), "{command}");
        assert_ne!(found[0].host, found[1].host, "{command}");
    }
    for command in [
        "$ for i in 1 2; do hackbench; done",
        "$ for i in 1 2; do sync; echo 3 > /drop; hackbench | tee log.$i; sleep 5; done",
        "$ for i in 1 2\n> do\n> hackbench\n> done",
        "$ while true; do hackbench; done",
    ] {
        assert_eq!(figures(&one(&format!("{command}\n{RUN}{again}")))[0].1, [4.905, 3.905], "{command}");
    }
}

#[test]
fn wrapped_indented_and_quoted() {
    let wrapped = "> $ taskset -c 0 \\\n>   hackbench \\\n>   -p\n>  Running in process mode with 10\n>    groups using 40 file descriptors\n\
                   >    each (== 400 tasks)\n> Each sender will pass 100\n> messages of 100 bytes\n> Time: 4.905\n";
    assert_eq!(values(&one(wrapped), &DEFAULT.replace("socket", "pipe")), [4.905]);
    let cut = "Running in process mode with 10 groups using\nEach sender will pass 100\nTime: 4.905\n";
    assert!(reason(cut).contains("banner is damaged"), "{}", reason(cut));
}

#[test]
fn the_old_format() {
    let found = one(
        "Running with 10*40 (== 400) tasks.\nTime: 5.484\nRunning with 10*40 (== 400) tasks.\nTime: 4.039\n",
    );
    assert_eq!(values(&found, OLD), [5.484, 4.039]);
    let note = figures(&found)[0].2;
    for untold in ["size of messages", "number", "processes or threads", "transport"] {
        assert!(note.contains(untold), "{note}");
    }
    let piped = one("$ hackbench -pipe 10 process 100\nRunning with 10*40 (== 400) tasks.\nTime: 5.484\n");
    assert_eq!(values(&piped, "sched.hackbench@free?fds=20&groups=10&transport=pipe#time"), [5.484]);
}

#[test]
fn what_perf_prints() {
    let messaging = "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver threads per group\n\
                     # 8 groups == 320 threads run\n\n     Total time: 7.648 [sec]\n";
    let found = one(&format!("$ perf bench sched messaging -p -t -l 100000 -g 8\n{messaging}"));
    let key = "sched.hackbench@free?bytes=100&fds=20&groups=8&loops=100000&tasks=thread&transport=pipe#time";
    assert_eq!((values(&found, key), found.format), (vec![7.648], super::PERF_MESSAGING));
    let untold = one(messaging);
    assert_eq!(values(&untold, "sched.hackbench@free?bytes=100&fds=20&groups=8&tasks=thread#time"), [7.648]);
    assert!(figures(&untold)[0].2.contains("lacks their number, the transport"), "{untold:#?}");

    let pipe = |total: &str, each: &str, tasks: &str| {
        format!(
            "# Running 'sched/pipe' benchmark:\n# Executed 20000 pipe operations between two {tasks}\n\n     \
             Total time: {total} [sec]\n\n       {each} usecs/op\n         196109 ops/sec\n"
        )
    };
    // The total of perf is cut off: 0.101984 is 0.101.
    let found = one(&pipe("0.101", "5.099200", "processes"));
    let rate = values(&found, "ipc.pipe-pingpong@free#round_trips")[0];
    assert!((rate / 196_109.2 - 1.0).abs() < 1e-6 && found.format == super::PERF_PIPE, "{rate}");
    assert!(figures(&found)[0].2.contains("4 bytes, Assay's 8"), "{found:#?}");
    assert_eq!(found.remarks.len(), 1, "{:?}", found.remarks);
    let loose = one(&pipe("5.1", "257.25", "processes"));
    assert_eq!(values(&loose, "ipc.pipe-pingpong@free#round_trips").len(), 1);
    let threads = one(&pipe("0.101", "5.099200", "threads"));
    assert_eq!(values(&threads, "perf.sched-pipe@free?tasks=thread#round_trips").len(), 1);
    let polled = one(&format!(
        "$ perf bench sched pipe -n\n{}",
        pipe("0.101", "5.099200", "processes").replace("20000", "1000000").replace("0.101", "5.099")
    ));
    assert!(
        figures(&polled)[0].0.starts_with("perf.sched-pipe") && figures(&polled)[0].2.contains("with -n")
    );
    assert!(reason(&pipe("0.103", "5.099200", "processes")).contains("total time"));
    assert!(reason(&pipe("0.000", "0.000000", "processes")).contains("of 0"));
    let without = one(
        "# Running 'sched/pipe' benchmark:\n# Executed 20000 pipe operations between two processes\nTotal time: 0.100 [sec]\n",
    );
    assert_eq!(values(&without, "ipc.pipe-pingpong@free#round_trips"), [200_000.0]);
}

#[test]
fn a_run_without_a_time_says_why() {
    let (banner, _) = RUN.split_once("Time").expect("a time");
    assert_eq!(reason(banner), "it prints no time");
    let failed = format!("{banner}Creating fdpair (error: Too many open files)\n");
    assert_eq!(reason(&failed), "it prints no time, but \"Creating fdpair (error: Too many open files)\"");
    for time in ["4.90", "nan", "-4.905", "99999999999999999999.123", "4.905 s"] {
        assert_eq!(reason(&format!("{banner}Time: {time}\n")), "it prints no time", "{time}");
    }
    assert!(reason(&format!("{banner}Time: 0.000\n")).contains("less than its last digit"));
    // The next one has a time of its own.
    let next = one(&format!("{banner}{RUN}"));
    assert_eq!(values(&next, UNTOLD), [4.905]);
    assert!(says(&next, "1 of 2 runs has no value; the first: it prints no time"), "{next:#?}");
    let orphan = one(&format!("{RUN}Time: 5.000\nreal 0m4.9s\nuser 0m1s\n"));
    assert_eq!(values(&orphan, UNTOLD), [4.905]);
    assert!(
        says(&orphan, "a time was left out: no run") && says(&orphan, "2 of its lines are not read"),
        "{orphan:#?}"
    );
}

#[test]
fn hostile_numbers() {
    for (from, to) in [
        ("10 groups", "99999999999999999999 groups"),
        ("10 groups", "4000000000 groups"),
        ("10 groups", "-10 groups"),
        ("40 file", "41 file"),
        ("40 file", "0 file"),
        ("400", "401"),
        ("400 tasks", "18446744073709551616 tasks"),
    ] {
        assert!(reason(&RUN.replace(from, to)).contains("do not agree"), "{to}");
    }
    assert!(reason("Running with 1*x (== 2) tasks.\nTime: 1.000\n").contains("do not agree"));
    assert!(reason(&RUN.replace("of 100 bytes", "of 1e9 bytes")).contains("no valid number of messages"));
    assert!(reason(&RUN.replace("pass 100", "pass 99999999999")).contains("no valid number of messages"));
    let huge = "Running with 900000000*900000000 (== 810000000000000000) tasks.\nTime: 1.000\n";
    assert!(reason(huge).contains("do not agree"));
    // Names are as long as people write them.
    let long = format!("{}@{}:~# hackbench\n{RUN}", "u".repeat(90), "h".repeat(90));
    assert_eq!(one(&long).host.len(), 64);
}

#[test]
fn more_than_anybody_can_read_is_left_out() {
    let runs = one(&RUN.repeat(3_000));
    assert_eq!(values(&runs, UNTOLD).len(), super::MAX_VALUES);
    assert!(says(&runs, "1800 values were left out"), "{:?}", runs.remarks);
    assert!(says(&runs, "1000 runs were left out"), "{:?}", runs.remarks);
    let heading = |at: usize| format!("Heading {at}:\n{RUN}");
    let results = all(&(0..300).map(heading).collect::<String>());
    assert_eq!(results.len(), super::MAX_RESULTS);
    assert!(
        says(&results[0], "a run was left out") && results[0].remarks.len() < 20,
        "{:?}",
        results[0].remarks
    );
}

/// Cut anywhere, or with a byte of something else: refused or read, never a panic, and cut never a
/// number that the whole file does not have.
#[test]
fn cut_and_damaged_anywhere() {
    let whole = include_str!("../../../../tests/foreign/hackbench.log");
    let known = all(whole);
    let mut all_values: Vec<(String, f64)> = Vec::new();
    for figure in known.iter().flat_map(|one| &one.figures) {
        let series = &figure.judged.series;
        all_values.extend(series.values().concat().into_iter().map(|value| (series.key.clone(), value)));
    }
    assert_eq!(all_values.len(), 19);
    for end in (0..whole.len()).step_by(7) {
        let Ok(cut) = read(&whole.as_bytes()[..end]) else { continue };
        for figure in cut.iter().flat_map(|one| &one.figures) {
            let series = &figure.judged.series;
            for value in series.values().concat() {
                let own = |(key, known): &(String, f64)| *key == series.key && *known == value;
                // Before an operation's time is read there is only the total.
                assert!(
                    all_values.iter().any(own) || series.key.contains("#round_trips"),
                    "{end}: {} {value}",
                    series.key
                );
            }
        }
    }
    let mut state = 1_u64;
    for _ in 0..400 {
        let mut bytes = whole.as_bytes().to_vec();
        for _ in 0..6 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            let with = [b'\n', b'9', b' ', b'#', b'$', b'@', 0xff, b'\\', b'(', b'*', b'>', b':']
                [(state >> 20) as usize % 12];
            if state & 1 == 0 { bytes[at] = with } else { bytes.insert(at, with) }
        }
        for figure in read(&bytes).unwrap_or_default().iter().flat_map(|one| &one.figures) {
            let verdict = &figure.judged.analysis.verdict;
            assert!([VerdictKind::Unverified, VerdictKind::Skipped].contains(&verdict.kind), "{verdict:?}");
        }
    }
}

/// Collected logs, by their key and their values (not part of this project: a clone without them
/// skips this and says so).
#[test]
fn every_collected_log_is_read() {
    let folder = testkit::root().join("../shared/fixtures/results/hackbench");
    if !folder.is_dir() {
        eprintln!("SKIPPED: {} is not beside this clone", folder.display());
        return;
    }
    let big = DEFAULT.replace("bytes=100", "bytes=100000");
    let thread = DEFAULT.replace("process", "thread");
    let pipe = DEFAULT.replace("socket", "pipe");
    let four = "sched.hackbench@free?bytes=100&fds=20&groups=4&loops=500&tasks=thread&transport=pipe#time";
    let zen = "sched.hackbench@free?bytes=100&fds=20&groups=8&loops=100000&tasks=thread&transport=pipe#time";
    type Results<'a> = Vec<(&'a str, Vec<(&'a str, Vec<f64>)>)>;
    let expected: [(&str, Results); 6] = [
        (
            "chip_rt_two_runs.log",
            vec![("chip", vec![(DEFAULT, vec![4.905])]), ("chip-pro", vec![(DEFAULT, vec![4.434])])],
        ),
        (
            "lkml_memcg_wrapped_lines.log",
            vec![
                ("Without this change", vec![(&big, vec![4.401, 4.470])]),
                ("With this change", vec![(&big, vec![3.782, 3.827])]),
            ],
        ),
        (
            "local_rt-tests-2.4_four_modes.log",
            vec![(
                "unknown",
                vec![
                    (DEFAULT, vec![0.708]),
                    (&thread, vec![1.404]),
                    (&pipe, vec![0.234]),
                    (four, vec![0.369]),
                ],
            )],
        ),
        (
            "mips_qemu_old_format_10runs.log",
            vec![(
                "unknown",
                vec![(OLD, vec![5.484, 4.039, 3.908, 3.955, 4.185, 4.497, 3.980, 4.078, 4.219, 4.026])],
            )],
        ),
        (
            "mips_qemu_old_format_10runs_patched.log",
            vec![(
                "unknown",
                vec![(OLD, vec![5.671, 4.282, 4.101, 4.040, 4.683, 4.387, 4.289, 4.027, 4.048, 4.079])],
            )],
        ),
        (
            "perf_bench_zen3_2x64c_per_L3.log",
            vec![("unknown, taskset -c 0-15,64-79,128-143,192-207", vec![(zen, vec![7.648])])],
        ),
    ];
    let files = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(files, expected.len(), "a log without its truth");
    for (file, results) in expected {
        let text = std::fs::read_to_string(folder.join(file)).expect("readable");
        let found = all(&text);
        let found: Results = found
            .iter()
            .map(|one| {
                let figures = figures(one).into_iter().map(|(key, values, _)| (key, values));
                (one.host.as_str(), figures.collect())
            })
            .collect();
        assert_eq!(found, results, "{file}");
    }
    let old = std::fs::read_to_string(folder.join("mips_qemu_old_format_10runs.log")).expect("readable");
    let old = one(&old);
    let mean = values(&old, OLD).iter().sum::<f64>() / 10.0;
    // As its sender says.
    assert!((mean - 4.2371).abs() < 1e-9, "{mean}");
    let estimate = old.figures[0].judged.analysis.estimate.clone().expect("an estimate");
    assert!((estimate.median - 4.0585).abs() < 1e-9 && estimate.interval.is_some(), "{estimate:?}");
}
