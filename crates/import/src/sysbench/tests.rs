//! Results of sysbench: recordings of our own, and made-up ones of old versions.

use super::{FORMAT, is_one, lines};
use crate::faults::{FIGURES_DISAGREE, INTERRUPTED};
use crate::kit::Table;
use crate::tests::{figure, only, recorded, rules, skipped, values};
use crate::{Imported, read};

fn one(text: &str) -> Imported {
    only(text, FORMAT)
}

fn near(imported: &Imported, key: &str, wanted: f64) {
    let found = values(imported, key);
    let is_near = found.len() == 1 && (found[0] / wanted - 1.0).abs() < 1e-9;
    assert!(is_near, "{key}: {found:?}, not {wanted}");
}

#[test]
fn all_tests_of_an_old_version_are_read_from_one_text() {
    let found = one(&recorded("sysbench-old.txt"));
    assert_eq!(found.host, "box");
    assert!(found.make_up.contains(&("sysbench".to_string(), "0.4.12".to_string())), "{:?}", found.make_up);
    let cpu = |metric: &str| format!("sysbench.cpu@free?primes=20000/threads=2#{metric}");
    near(&found, &cpu("events"), 800.0);
    near(&found, &cpu("latency_mean"), 2500.0);
    near(&found, &cpu("latency_p95"), 2730.0);
    near(&found, &cpu("unfairness"), 0.005);
    let memory = |metric: &str| {
        format!("sysbench.memory@free?operation=read&scope=global/block=8192&threads=1#{metric}")
    };
    near(&found, &memory("bandwidth"), 8000.0 * 1_048_576.0 / 1e9);
    near(&found, &memory("operations"), 1_024_000.0);
    assert!(skipped(&found, &memory("latency_mean")).contains("less than its last digit"));
    near(&found, "sysbench.threads@free?locks=2&yields=100/threads=64#events", 12_500.0);
    near(&found, "sysbench.mutex@free/threads=16#time", 0.5);
    assert!(skipped(&found, "sysbench.mutex@free/threads=16#latency_p95").contains("fewer than 10"));
    let files = |metric: &str| {
        format!(
            "sysbench.fileio@free?fsync=100&mode=rndrw&ratio=1.50&size=2147483648/block=16384&threads=1#{metric}"
        )
    };
    near(&found, &files("requests"), 1000.0);
    near(&found, &files("reads"), 600.0);
    near(&found, &files("fsyncs"), 1280.0);
    near(&found, &files("bandwidth"), 15.625 * 1_048_576.0 / 1e9);
    assert!(figure(&found, &files("reads")).note.contains("page cache"));
    assert_eq!(rules(&found), [""; 0], "{:?}", found.findings);
    assert!(!found.remarks.iter().any(|remark| remark.contains("not read")), "{:?}", found.remarks);
}

#[test]
fn all_tests_of_a_new_version_are_read_from_one_text() {
    let all = read(recorded("sysbench.txt").as_bytes()).expect("results");
    // One ran with files that each write waits for: all else is of the same options.
    assert_eq!(all.len(), 1, "{:?}", all.iter().map(|one| &one.make_up).collect::<Vec<_>>());
    let found = &all[0];
    let cpu = |metric: &str| format!("sysbench.cpu@free?primes=5000/threads=2#{metric}");
    assert_eq!(values(found, &cpu("events")), [3170.57, 3281.8]);
    assert_eq!(values(found, &cpu("interval_events")), [3067.01, 3285.43]);
    let more = |metric: &str| format!("sysbench.cpu@free?primes=10000/threads=4#{metric}");
    near(found, &more("events"), 1196.95);
    near(found, &more("latency_p99"), 36_240.0);
    // Of the histogram: 605 of 1210 are reached in its second line, 1089 in that of 24.384 ms.
    near(found, &more("latency_p50"), 395.0);
    assert!(skipped(found, &more("latency_p999")).contains("fewer than 10"));
    let memory = |key: &str| format!("sysbench.memory@free?{key}&threads=1#bandwidth");
    near(found, &memory("operation=read&scope=global/block=4096"), 9130.79 * 1_048_576.0 / 1e9);
    near(found, &memory("access=rnd&operation=write&scope=global/block=1024"), 1039.15 * 1_048_576.0 / 1e9);
    near(found, "sysbench.threads@free/threads=8#events", 756.0 / 1.0073);
    near(found, "sysbench.mutex@free?loops=1000&mutexes=16/threads=4#time", 0.1422);
    let files = |params: &str, metric: &str| {
        format!("sysbench.fileio@free?{params}&size=33554432/block=16384&threads=1#{metric}")
    };
    near(found, &files("fsync=100&mode=rndrw&ratio=1.50", "reads"), 3224.79);
    let direct = "engine=asynchronous&flags=directio&fsync=100&mode=seqrd";
    near(found, &files(direct, "read_bandwidth"), 887.73 * 1_048_576.0 / 1e9);
    assert!(figure(found, &files(direct, "reads")).note.is_empty());
    near(found, &files("fsync=each&mode=rndwr", "fsyncs"), 228.22);
    let key = files("fsync=100&mode=rndrw&ratio=1.50", "events");
    assert!(skipped(found, &key).contains("Cannot open file 'test_file.0'"));
    assert_eq!(rules(found), [INTERRUPTED]);
    assert!(!found.remarks.iter().any(|remark| remark.contains("not read")), "{:?}", found.remarks);
    assert!(
        found.remarks.iter().any(|remark| remark.contains("forget to run the prepare step")),
        "{:?}",
        found.remarks
    );
}

#[test]
fn without_its_command_threads_and_mutexes_are_not_told_apart() {
    let text = recorded("sysbench.txt");
    let (_, run) = text.split_once("threads --threads=8 --time=1 run\n").expect("a command");
    let found = one(run.split("$ ").next().expect("a result"));
    let key = "sysbench.untold@free/threads=8#events";
    near(&found, key, 756.0 / 1.0073);
    assert!(figure(&found, key).note.contains("is unknown"));
}

/// The first test of the old text.
fn cpu() -> String {
    let text = recorded("sysbench-old.txt");
    let (_, after) = text.split_once('\n').expect("a command");
    after.split("root@box").next().expect("a result").to_string()
}

const CPU: &str = "sysbench.cpu@free?primes=20000/threads=2#events";

#[test]
fn runs_without_anything_between_repeat_each_other_and_others_do_not() {
    let (run, other) = (cpu(), cpu().replace("12.5000s", "10.0000s"));
    assert_eq!(values(&one(&format!("{run}{other}")), CPU), [800.0, 1000.0]);
    let apart = |text: String| {
        let all = read(text.as_bytes()).expect("results");
        all.iter().map(|one| values(one, CPU)).collect::<Vec<_>>()
    };
    for between in ["after the update", "$ echo performance > governor", "Linux box2 6.1.0"] {
        assert_eq!(apart(format!("{run}{between}\n{other}")), [[800.0], [1000.0]], "{between}");
    }
    let newer = other.replace("0.4.12", "0.5");
    assert_eq!(apart(format!("{run}{newer}")).len(), 2, "another version");
    // Threads are part of a series, in one result.
    let more = other.replace("threads: 2", "threads: 4").replace("5000.0000", "2500.0000");
    let both = one(&format!(
        "$ sysbench --test=cpu --num-threads=2 run\n{run}$ sysbench --test=cpu --num-threads=4 run\n{more}"
    ));
    assert_eq!(values(&both, "sysbench.cpu@free?primes=20000/threads=4#events"), [1000.0]);
    assert_eq!(values(&both, CPU), [800.0]);
}

#[test]
fn what_tells_runs_apart_is_told_of_both() {
    let (run, other) = (cpu(), cpu().replace("12.5000s", "10.0000s"));
    for (before, after, label, values) in [
        (
            "## 6.1\na: 1x\nb: 2x\nc: 3x",
            "## 6.6\na: 1x\nb: 2x\nc: 3x",
            "heading",
            ["6.1 / a: 1x / b: 2x / c: 3x", "6.6 / a: 1x / b: 2x / c: 3x"],
        ),
        (
            "# echo on > smt; sysbench cpu run",
            "# echo off > smt; sysbench cpu run",
            "heading",
            ["echo on > smt", "echo off > smt"],
        ),
        (
            "$ /opt/a/sysbench cpu run",
            "$ /opt/b/sysbench cpu run",
            "program",
            ["/opt/a/sysbench", "/opt/b/sysbench"],
        ),
        (
            "$ numactl -m 0 sysbench cpu run",
            "$ numactl -m 1 sysbench cpu run",
            "started by",
            ["numactl -m 0", "numactl -m 1"],
        ),
    ] {
        let all = read(format!("{before}\n{run}{after}\n{other}").as_bytes()).expect("results");
        let told = |one: &Imported| {
            let found = one.make_up.iter().find(|(known, _)| known == label);
            found.map_or(String::new(), |(_, value)| value.clone())
        };
        assert_eq!(all.iter().map(told).collect::<Vec<_>>(), values, "{after}");
        assert_eq!(all.iter().map(values_of).collect::<Vec<_>>(), [[800.0], [1000.0]]);
    }
}

fn values_of(one: &Imported) -> Vec<f64> {
    values(one, CPU)
}

#[test]
fn looks_and_warnings_make_no_results() {
    let run = cpu();
    let (head, rest) = run.split_at(run.find("Done.").expect("an end"));
    for look in [
        "[ 10s ] thds: 2 eps: 800.5 lat (ms,95%): 0.92",
        "[ 10s] threads: 2, tps: 800.5, reads: 0",
        "[10s ] thds: 2 tps: 800.5 qps: 5",
    ] {
        let looks: String = (1..9).map(|at| look.replace("10s", &format!("{at}0s")) + "\n").collect();
        let found = one(&format!("{head}{looks}{rest}"));
        let key = "sysbench.cpu@free?primes=20000/threads=2#interval_events";
        assert_eq!(values(&found, key), [800.5; 8], "{look}");
        // One that died has none but them.
        let died = one(&format!("{head}{looks}"));
        assert!(skipped(&died, &CPU.replace("?primes=20000", "")).contains("no test finished"));
    }
    for warning in [
        "WARNING: the --test option is deprecated.",
        "WARNING: --num-threads is deprecated, use --threads instead\nWARNING: --max-time is deprecated",
        "WARNING: Both event and time limits are disabled",
    ] {
        let all =
            read(format!("Before:\n{warning}\n{run}\nAfter:\n{warning}\n{run}").as_bytes()).expect("results");
        assert_eq!(
            all.iter().map(|one| values(one, CPU)).collect::<Vec<_>>(),
            [[800.0], [800.0]],
            "{warning}"
        );
        assert!(
            all.iter().all(|one| one.figures.iter().all(|figure| figure.judged.analysis.estimate.is_some()))
        );
        assert!(all.iter().all(|one| one.remarks.iter().any(|remark| remark.starts_with("it warns: "))));
    }
}

#[test]
fn work_of_other_kinds_is_never_pooled() {
    let text = recorded("sysbench-untold.txt");
    let end = text.rfind("sysbench 1.0.20").expect("a second");
    let (threads, mutex) = text.split_at(end);
    let count = |text: String| read(text.as_bytes()).expect("results").len();
    let again = |run: &str| run.replace("0005s", "0004s");
    assert_eq!(count(format!("{threads}{mutex}")), 2);
    assert_eq!(count(format!("{threads}{}", again(threads))), 1);
    assert_eq!(count(format!("{mutex}{}{threads}", again(mutex))), 2);
}

#[test]
fn a_run_that_died_has_no_figure() {
    let run = cpu();
    let begun = &run[..run.find("Done.").expect("an end")];
    let found = one(begun);
    assert!(skipped(&found, &CPU.replace("?primes=20000", "")).contains("no test finished"));
    for said in [
        "FATAL: Failed to allocate buffer",
        "ALERT: attempting to exit",
        "Killed",
        "Segmentation fault (core dumped)",
    ] {
        let found = one(&format!("{begun}{said}\n"));
        assert!(
            skipped(&found, &CPU.replace("?primes=20000", ""))
                .contains(said.trim_start_matches("FATAL: ").trim_start_matches("ALERT: "))
        );
        assert_eq!(rules(&found), [INTERRUPTED], "{said}");
    }
    // Another one is complete.
    let found =
        one(&format!("{run}{begun}{}", run.replace("24.9910", "24.9911").replace("9.87ms", "9.88ms")));
    assert_eq!(values(&found, CPU), [800.0, 800.0]);
    // What stands there twice to its last digit is one run.
    let found = one(&format!("{run}{begun}{run}"));
    assert_eq!(values(&found, CPU), [800.0]);
    assert!(found.remarks.iter().any(|remark| remark.contains("twice")), "{:?}", found.remarks);
    // A number that may be cut is none.
    let cut = &run[..run.find("10000\n").expect("events") + 3];
    assert!(skipped(&one(cut), CPU).contains("no test finished"));
    let forced = run.replace("Done.", "FATAL: The --max-time limit has expired, forcing shutdown...");
    assert_eq!((values(&one(&forced), CPU), rules(&one(&forced))), (vec![800.0], vec![INTERRUPTED]));
}

#[test]
fn figures_that_cannot_be_each_others_are_found() {
    let run = cpu();
    let with = |from: &str, to: &str| one(&run.replace(from, to)).findings.len();
    assert_eq!(with("none", "none"), 0);
    assert_eq!(with("5000.0000/25.00", "4000.0000/25.00"), 1);
    let rate = |rate: &str| run.replace("Done.", &format!("CPU speed:\n    events per second:  {rate}\n"));
    assert_eq!(rules(&one(&rate("800.12"))), [""; 0]);
    assert_eq!(rules(&one(&rate("900.12"))), [FIGURES_DISAGREE]);
    let memory = recorded("sysbench-old.txt").replace("(8000.00 MB/sec)", "(9000.00 MB/sec)");
    assert_eq!(rules(&one(&memory)), [FIGURES_DISAGREE]);
}

#[test]
fn results_of_databases_are_read_as_far_as_all_print_alike() {
    let folder = testkit::root().join("../shared/fixtures/results/sysbench");
    let Ok(bytes) = std::fs::read(folder.join("SysbenchExample.txt")) else {
        return eprintln!("skipped: {} is not here", folder.display());
    };
    let found = read(&bytes).expect("a result").remove(0);
    let key = |metric: &str| format!("sysbench.sql@free?rate=143/threads=16#{metric}");
    near(&found, &key("transactions"), 143.01);
    near(&found, &key("queries"), 3657.94);
    near(&found, &key("latency_p95"), 68_050.0);
    assert_eq!(values(&found, &key("errors")), [0.0]);
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
}

#[test]
fn other_tools_texts_are_none_of_sysbench() {
    for text in ["sysbench\n", "we ran sysbench 1.0.20 on it\n", "total time: 5.0s\n", "min: 5\navg: 6\n"] {
        assert!(!is_one(text), "{text}");
    }
    assert!(is_one("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n"));
}

/// Every pattern is that of a line that sysbench printed.
#[test]
fn every_pattern_has_an_example() {
    let examples = [recorded("sysbench-old.txt"), recorded("sysbench.txt"), OTHERS.to_string()];
    let table = Table::new(lines::LINES);
    let known = examples.iter().flat_map(|text| text.lines()).filter_map(|line| table.place(line));
    let known: std::collections::BTreeSet<usize> = known.collect();
    let unused: Vec<&str> =
        (0..lines::LINES.len()).filter(|at| !known.contains(at)).map(|at| lines::LINES[at].regex).collect();
    assert!(unused.is_empty(), "{unused:#?}");
}

/// Lines of other versions and modes.
const OTHERS: &str = "\
Target transaction rate: 143/sec
Doing OLTP test.
    events/s (eps):                      143.0086
    transactions:                        257521 (143.01 per sec.)
    queries:                             6584298 (3657.94 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)
SQL statistics:
Calling fsync() after each write operation.
         read:  IOPS=1200.00 18.75 MiB/s (19.66 MB/s)
         write: IOPS=800.00 12.50 MiB/s (13.11 MB/s)
         fsync: IOPS=2560.00
[ 1s ] reads: 18.75 MiB/s writes: 12.50 MiB/s fsyncs: 2560.00/s latency (ms,95%): 0.019
[ 1s ] 6543.21 MiB/sec
Forcing shutdown in 15 seconds
Preallocating 1 file
FATAL: error 2
WARNING: --num-threads is deprecated, use --threads instead
Killed
";
