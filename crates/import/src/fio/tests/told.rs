//! What texts show of a job, and what they leave out: announcements, blocks, shares, carries,
//! several systems in one text, and where data were.

use serde_json::json;

use super::kinds::{SUMS, alone, announced, document, job, keys, none, result, side};
use super::{near, note, one, value};
use crate::faults::{FAILED_IO, FIGURES_DISAGREE};
use crate::fio::tests::{rules, skipped};
use crate::{Imported, read};

pub fn all(text: &str) -> Vec<Imported> {
    read(text.as_bytes()).expect("results")
}

pub fn told<'a>(one: &'a Imported, label: &str) -> &'a str {
    one.make_up.iter().find(|(known, _)| known == label).map_or("", |(_, value)| value.as_str())
}

pub fn iops_of(found: &[Imported]) -> Vec<&str> {
    found.iter().flat_map(keys).filter(|key| key.ends_with("#iops")).collect()
}

/// Reads of 4 KiB at `ios` per second.
pub fn reads(name: &str, pid: u32, ios: u32) -> String {
    let mib = f64::from(ios) / 256.0;
    let line =
        format!("  read: IOPS={ios}, BW={mib:.1}MiB/s ({:.1}MB/s)({mib:.1}MiB/1000msec)\n", mib * 1.048_576);
    result(name, 1, pid, &line, &format!("{ios},0,0,0"))
}

pub const RANDOM: &str = "disk.random@one-cpu?cache=untold&engine=psync&op=read/block=4096&depth=1#";

#[test]
fn a_result_belongs_to_the_nearest_announcement_that_fits_it() {
    let big = announced("t", 0, "write", "4096KiB");
    let small = announced("t", 0, "randread", "4096B");
    for between in ["", "fio-3.33\n", "$ fio --name=t --rw=randread\n", "Jobs: 1 (f=1): [w(1)]\n"] {
        let found = one(&(big.clone() + between + &small + "fio-3.33\n" + &reads("t", 1, 20_000)));
        // Without a word between them they may have run at once.
        let key = if between.is_empty() { RANDOM.replace("&op", "&job=t&op") } else { RANDOM.to_string() };
        assert_eq!(value(&found, &format!("{key}iops")), 20_000.0, "{between}");
        assert!(rules(&found).is_empty(), "{between}: {:?}", found.findings);
        assert_eq!(iops_of(&[found]).len(), 2, "the other one has no result");
    }
    // The nearest one is another one's by its blocks.
    let found = one(&(small.clone() + &big + &reads("t", 1, 20_000)));
    assert_eq!(value(&found, &format!("{}iops", RANDOM.replace("&op", "&job=t&op"))), 20_000.0);
    // None is its own: its work is unknown.
    for other in [&big, &announced("t", 0, "randread", "64.0KiB")] {
        let found = one(&(other.clone() + &reads("t", 1, 20_000)));
        let key = iops_of(std::slice::from_ref(&found))[0].to_string();
        assert!(key.starts_with("fio.job@one-cpu") && key.contains("rw=untold/block=untold"), "{key}");
        assert!(note(&found, &key).contains("has other directions"), "{}", note(&found, &key));
        assert!(rules(&found).is_empty(), "{:?}", found.findings);
    }
    // Two of one name and kind of their own in one run come in their order.
    let found =
        one(&(small + &announced("t", 0, "read", "4096B") + &reads("t", 1, 20_000) + &reads("t", 2, 30_000)));
    let sequential = RANDOM.replace("random", "sequential");
    let beside = |key: &str| key.replace("&op", "&job=t&op");
    assert_eq!(value(&found, &format!("{}iops", beside(RANDOM))), 20_000.0);
    assert_eq!(value(&found, &format!("{}iops", beside(&sequential))), 30_000.0);
}

#[test]
fn a_block_is_the_bytes_of_an_io() {
    let read_of =
        |options: serde_json::Value, bytes: u64| alone(options, 1000, side(1000, bytes, 1000), none());
    // As asked for.
    for options in [json!({"rw": "randread", "bs": "64k"}), json!({"rw": "randread", "blocksize": "65536"})] {
        let found = read_of(options, 65_536_000);
        assert!(rules(&found).is_empty() && keys(&found)[0].contains("block=65536"), "{:?}", keys(&found));
    }
    // In fio's own units `Ki` is 1000.
    let found = read_of(json!({"rw": "randread", "bs": "64KiB"}), 64_000_000);
    assert!(rules(&found).is_empty() && keys(&found)[0].contains("block=64000"), "{:?}", keys(&found));
    let found = read_of(json!({"rw": "randread", "bs": "64KiB", "kb_base": "1000"}), 65_536_000);
    assert!(rules(&found).is_empty() && keys(&found)[0].contains("block=65536"), "{:?}", keys(&found));
    // `kb_base` holds for the options after it, and their order is unknown.
    for (options, bytes) in [
        (json!({"rw": "randread", "bs": "64KiB", "kb_base": "1000"}), 64_000),
        (json!({"rw": "randread", "bs": "64k", "kb_base": "1000"}), 65_536),
        (json!({"rw": "randread", "bs": "64k", "kb_base": "1000"}), 64_000),
        (json!({"rw": "randread", "bs": "64ki"}), 65_536),
    ] {
        let found = read_of(options, bytes * 1000);
        assert!(rules(&found).is_empty(), "{bytes}: {:?}", found.findings);
        assert!(keys(&found)[0].contains(&format!("block={bytes}")), "{:?}", keys(&found));
    }
    // If it is missing, the bytes show it.
    let found = read_of(json!({"rw": "randread"}), 131_072_000);
    assert!(rules(&found).is_empty() && keys(&found)[0].contains("block=131072"), "{:?}", keys(&found));
    // Of several sizes there is none.
    for name in ["bssplit", "bsrange"] {
        let found = read_of(json!({"rw": "randread", name: "4k-64k"}), 30_000_000);
        assert!(rules(&found).is_empty() && keys(&found)[0].contains("block=4k-64k"), "{:?}", keys(&found));
    }
    // Contradicted.
    for bytes in [4_096_000, 70_000_000, 655_360_000] {
        assert_eq!(
            rules(&read_of(json!({"rw": "randread", "bs": "64k"}), bytes)),
            [FIGURES_DISAGREE],
            "{bytes}"
        );
    }
    // What was in flight at the ends belongs to neither.
    let found =
        read_of(json!({"rw": "randread", "bs": "64k", "ioengine": "libaio", "iodepth": "64"}), 62_000_000);
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
}

#[test]
fn the_share_of_reads_is_what_is_told_or_what_was_done() {
    let mixed = |options: serde_json::Value, reads: u64, writes: u64| {
        let found = alone(options, 1000, side(reads, reads * 4096, 1000), side(writes, writes * 4096, 1000));
        keys(&found).into_iter().find(|key| key.ends_with("#iops")).unwrap_or_default().to_string()
    };
    let of = |name: &str, share: &str| json!({"rw": "randrw", "bs": "4k", name: share});
    assert!(!mixed(of("rwmixread", "70"), 7010, 2990).contains("read_share"));
    assert!(!mixed(of("rwmixwrite", "30"), 7010, 2990).contains("read_share"));
    assert!(mixed(of("rwmixwrite", "10"), 9010, 990).contains("read_share=90/"));
    assert!(mixed(json!({"rw": "randrw", "bs": "4k"}), 5010, 4990).contains("read_share=50/"));
    // A rate of each direction gives another mix than the one asked for.
    assert!(mixed(of("rate_iops", "100,900"), 1000, 9000).contains("read_share=10"));

    let words = |reads: u32, writes: u32| {
        let line = |way: &str, ios: u32| {
            let kib = ios * 4;
            format!(
                "  {way}: IOPS={ios}, BW={kib}KiB/s ({:.0}kB/s)({kib}KiB/1000msec)\n",
                f64::from(kib) * 1.024
            )
        };
        let sides = line("read", reads) + &line("write", writes);
        let text = announced("m", 0, "randrw", "4096B")
            + "fio-3.33\n"
            + &result("m", 1, 1, &sides, &format!("{reads},{writes},0,0"));
        let found = one(&text);
        assert!(rules(&found).is_empty(), "{:?}", found.findings);
        iops_of(&[found])[0].to_string()
    };
    for (reads, writes, share) in [
        (700, 300, ""),
        (706, 294, ""),
        (500, 500, "&read_share=50"),
        (902, 98, "&read_share=90"),
        (333, 667, "&read_share=35"),
    ] {
        let key = words(reads, writes);
        assert!(key.contains(&format!("op=mixed{share}/")), "{reads}: {key}");
    }
    assert!(words(33_330, 66_670).contains("read_share=33/"));
    // Of a job without a result it is unknown.
    let found = one(&(announced("m", 0, "randrw", "4096B") + "fio-3.33\n"));
    assert!(keys(&found)[0].contains("read_share=untold/"), "{:?}", keys(&found));
}

#[test]
fn a_carry_is_lost_before_3_26_only() {
    let text = |version: &str, rates: &str, ios: u32| {
        announced("a", 0, "randread", "4096B")
            + &format!("fio-{version}\n")
            + &result("a", 1, 1, &format!("  read: {rates}\n"), &format!("{ios},0,0,0"))
    };
    // 12.0 MiB/s in 3068 I/Os, ten seconds of it; 11.97 thousand; an amount.
    let bandwidth = "IOPS=3068, BW=11.0MiB/s (12.6MB/s)(120MiB/10000msec)";
    let iops = "IOPS=11.0k, BW=46.8MiB/s (49.0MB/s)(468MiB/10000msec)";
    let amount = "IOPS=1315, BW=5260KiB/s (5386kB/s)(51.0MiB/10100msec)";
    for (rates, ios, mb) in [(bandwidth, 30_680, 12.566), (iops, 119_700, 49.029), (amount, 13_285, 5.388)] {
        for version in ["3.1", "3.19", "3.25"] {
            let found = one(&text(version, rates, ios));
            assert!(rules(&found).is_empty(), "{version} {rates}: {:?}", found.findings);
            let found = value(&found, &format!("{RANDOM}bandwidth")) * 1e3;
            assert!((found / mb - 1.0).abs() < 0.005, "{version} {rates}: {found}");
        }
    }
    for version in ["3.26", "3.33", "4.0"] {
        assert_eq!(rules(&one(&text(version, iops, 119_700))), [FIGURES_DISAGREE], "{version}");
    }
}

#[test]
fn both_directions_in_one_report_are_read_in_words_too() {
    let head = announced("a", 0, "randrw", "4096B") + "fio-3.33\n";
    let unified = "  mixed: IOPS=6141, BW=24.0MiB/s (25.2MB/s)(48.9MiB/2039msec)\n    clat (usec): min=26, max=277429, avg=162.15, stdev=3140.63\n    \
                   clat percentiles (usec):\n     | 50.00th=[   53], 99.00th=[  734]\n";
    let found = one(&(head.clone() + &result("a", 1, 1, unified, "12523,0,0,0")));
    let key = iops_of(std::slice::from_ref(&found))[0].to_string();
    assert!(key.contains("op=mixed&read_share=untold/block=4096"), "{key}");
    assert!(near(value(&found, &key), 12_523.0 / 2.039));
    assert_eq!(value(&found, &key.replace("#iops", "#latency_p99")), 734.0);
    assert!(rules(&found).is_empty() && !found.remarks.iter().any(|one| one.contains("of its lines")));
    // After both of them it is their sum.
    let both = "  read: IOPS=700, BW=2800KiB/s (2867kB/s)(2800KiB/1000msec)\n  write: IOPS=300, BW=1200KiB/s (1229kB/s)(1200KiB/1000msec)\n  \
                mixed: IOPS=1000, BW=4000KiB/s (4096kB/s)(4000KiB/1000msec)\n";
    let found = one(&(head + &result("a", 1, 1, both, "700,300,0,0")));
    let values: Vec<f64> =
        iops_of(std::slice::from_ref(&found)).iter().map(|key| value(&found, key)).collect();
    assert_eq!(values, [700.0, 300.0, 1000.0]);
    let mut document = job(
        json!({"rw": "randrw", "bs": "4k", "rwmixread": "70", "unified_rw_reporting": "both"}),
        1000,
        side(700, 700 * 4096, 1000),
        side(300, 300 * 4096, 1000),
    );
    document["mixed"] = side(1000, 4_096_000, 1000);
    let found = one(&super::kinds::document(0, document));
    let values: Vec<f64> =
        iops_of(std::slice::from_ref(&found)).iter().map(|key| value(&found, key)).collect();
    assert_eq!(values, [700.0, 300.0, 1000.0]);
}

#[test]
fn a_percentile_at_the_end_of_the_histogram_is_one_from_below() {
    let p99 = format!("{RANDOM}latency_p99").replace("untold", "buffered");
    let of = |p99: u64, max: u64| {
        let mut read = side(2000, 8_192_000, 100_000);
        read["clat_ns"] =
            json!({"mean": 5e9, "max": max, "N": 2000, "percentile": {"50.000000": 1000, "99.000000": p99}});
        alone(json!({"rw": "randread", "bs": "4k"}), 100_000, read, none())
    };
    let found = of(17_112_760_320, 60_000_000_000);
    assert!(skipped(&found, &p99).contains("at least 17.05 s"), "{}", skipped(&found, &p99));
    assert_eq!(value(&found, &p99.replace("p99", "max")), 60e6);
    // Nothing took longer; the step before it.
    assert_eq!(value(&of(17_112_760_320, 17_150_000_000), &p99), 17_112_760.32);
    assert_eq!(value(&of(16_978_542_592, 60_000_000_000), &p99), 16_978_542.592);
    for (unit, last, max) in [("msec", 17_113, "60000"), ("usec", 17_112_761, "60000k")] {
        let latencies = format!(
            "  read: IOPS=20, BW=80.0KiB/s (81.9kB/s)(8000KiB/100000msec)\n    clat ({unit}): min=2, max={max}, avg=5000.00, stdev=1.00\n    \
             clat percentiles ({unit}):\n     | 50.00th=[ 3], 99.00th=[{last}]\n"
        );
        let found = one(&(announced("a", 0, "randread", "4096B")
            + "fio-3.33\n"
            + &result("a", 1, 1, &latencies, "2000,0,0,0")));
        assert!(skipped(&found, &format!("{RANDOM}latency_p99")).contains("at least 17.05 s"), "{unit}");
        assert!(rules(&found).is_empty(), "{:?}", found.findings);
    }
}

#[test]
fn a_steady_state_is_read_where_it_was_reached() {
    let of = |attained: i64| {
        let mut told = job(
            json!({"rw": "randread", "bs": "4k", "steadystate": "iops:5%"}),
            1000,
            side(1000, 4_096_000, 1000),
            none(),
        );
        told["steadystate"] = json!({"ss": "iops:5%", "duration": 2, "attained": attained, "data": {"bw_mean": 4_505_600, "iops_mean": 1100}});
        one(&document(0, told))
    };
    let key = RANDOM.replace("untold", "buffered");
    let found = of(1);
    assert_eq!(value(&found, &format!("{key}steady_iops")), 1100.0);
    assert_eq!(value(&found, &format!("{key}steady_bandwidth")), 0.0045056);
    assert!(note(&found, &format!("{key}iops")).contains("of the whole run"));
    let found = of(0);
    assert!(skipped(&found, &format!("{key}steady_iops")).contains("no steady state"));
    assert!(note(&found, &format!("{key}iops")).contains("reached none"));
    for (attained, words) in [("yes", "of the whole run"), ("no", "reached none")] {
        let line = format!(
            "     steadystate  : attained={attained}, bw=4400KiB/s (4506kB/s), iops=1100, iops mean dev=1.234%\n"
        );
        let text = announced("a", 0, "randread", "4096B") + "fio-3.33\n" + &reads("a", 1, 1000) + &line;
        let found = one(&text);
        assert!(note(&found, &format!("{RANDOM}iops")).contains(words), "{attained}");
        assert!(!found.remarks.iter().any(|one| one.contains("of its lines")), "{:?}", found.remarks);
        match attained {
            "yes" => assert_eq!(value(&found, &format!("{RANDOM}steady_iops")), 1100.0),
            _ => assert!(skipped(&found, &format!("{RANDOM}steady_iops")).contains("no steady state")),
        }
    }
}

#[test]
fn where_data_were_is_said_in_words_and_in_json_alike() {
    let words = |tail: &str, before: &str| {
        let text = format!(
            "{before}{}fio-3.33\n{}{tail}",
            announced("a", 0, "randread", "4096B"),
            reads("a", 1, 20_000)
        );
        note(&one(&text), &format!("{RANDOM}iops"))
    };
    let saw = |ios: u32| {
        format!(
            "\nRun status group 0 (all jobs):\n\nDisk stats (read/write):\n  vda: ios={ios}/0, merge=0/0, util=64.60%\n"
        )
    };
    let document = |disks: serde_json::Value, before: &str| {
        let mut document = json!({"fio version": "fio-3.33", "global options": {"ioengine": "psync"},
            "jobs": [job(json!({"rw": "randread", "bs": "4k"}), 1000, side(20_000, 81_920_000, 1000), none())]});
        if disks.is_array() {
            document["disk_util"] = disks;
        }
        let found = one(&format!("{before}{document}\n"));
        note(&found, &format!("{}iops", RANDOM.replace("untold", "buffered")))
    };
    let disk = |ios: u32| json!([{"name": "vda", "read_ios": ios, "write_ios": 0, "read_merges": 0, "write_merges": 0, "util": 1.0}]);
    // The devices saw less than was done; or as much.
    for few in [0, 12, 9_000] {
        for note in [words(&saw(few), ""), document(disk(few), "")] {
            assert!(note.contains(&format!("of 20000 reads {few} reached the devices")), "{note}");
        }
    }
    for note in [words(&saw(19_900), ""), document(disk(19_900), "")] {
        assert!(!note.contains("reached the devices") && !note.contains("its files is unknown"), "{note}");
    }
    // None is named: tmpfs, an overlay on it.
    for note in
        [words("\nRun status group 0 (all jobs):\n", ""), document(json!(null), ""), document(json!([]), "")]
    {
        assert!(note.contains("its files is unknown"), "{note}");
    }
    assert!(!words("", "").contains("its files is unknown"), "the text ends before");
    // The cache could not be emptied.
    for line in [
        "fio: cache invalidation of /dev/sdb failed: Permission denied\n",
        "fio: only root may flush block devices. Cache flush bypassed!\n",
    ] {
        for note in [words(SUMS, line), document(disk(19_900), line)] {
            assert!(note.contains("page cache") && note.contains("may have had the data"), "{note}");
        }
    }
    // The command says where its files are.
    for (place, word) in [
        ("--directory=/dev/shm", "in memory (tmpfs)"),
        ("--filename=/dev/zero", "/dev/zero is not a device"),
        ("--filename=/dev/ram0", "/dev/ram0 is memory"),
        ("--filename=/dev/nullb0", "/dev/nullb0 is not a device"),
    ] {
        let note = words("", &format!("$ fio --name=a {place}\n"));
        assert!(note.contains(word), "{place}: {note}");
    }
    assert!(!words("", "$ fio --name=a --filename=/dev/sdb\n").contains("/dev/sdb"));
    // An engine that does nothing.
    let null = announced("a", 0, "randread", "4096B").replace("psync", "null");
    let found = one(&(null + "fio-3.33\n" + &reads("a", 1, 20_000)));
    assert!(found.figures.iter().all(|figure| figure.note.contains("the null engine does no I/O")));
}

#[test]
fn errors_after_which_a_job_went_on_are_found() {
    let head = announced("a", 0, "randread", "4096B") + "fio-3.33\n" + &reads("a", 1, 20_000);
    let found = one(&(head.clone() + "     errors    : total=12, first_error=5/<Input/output error>\n"));
    assert_eq!(rules(&found), [FAILED_IO]);
    assert!(found.findings[0].cause.contains("cable"), "{}", found.findings[0].cause);
    assert!(rules(&one(&(head + "     errors    : total=0, first_error=0/<Success>\n"))).is_empty());
    for (error, word) in [(5, "cable"), (28, "full"), (22, "refused"), (16, "Another"), (24, "limit")] {
        let mut told = job(json!({"rw": "randread", "bs": "4k"}), 1000, side(1000, 4_096_000, 1000), none());
        (told["total_err"], told["first_error"]) = (json!(3), json!(error));
        let found = one(&document(0, told));
        assert_eq!(rules(&found), [FAILED_IO]);
        assert!(found.findings[0].cause.contains(word), "{error}: {}", found.findings[0].cause);
    }
}

/// A whole text of one run.
pub fn run(version: &str, name: &str, pid: u32, ios: u32) -> String {
    announced(name, 0, "randread", "4096B")
        + &format!("fio-{version}\nStarting 1 process\n\n")
        + &reads(name, pid, ios)
        + SUMS
}

#[test]
fn runs_of_different_systems_are_results_of_their_own() {
    let (a, b) = (run("3.33", "a", 1, 10_000), run("3.33", "a", 2, 20_000));
    let key = format!("{RANDOM}iops");
    let apart = |text: &str| all(text).iter().map(|one| value(one, &key)).collect::<Vec<f64>>();
    // Another version; another heading; another command; another device.
    let other = run("3.38", "a", 2, 20_000);
    assert_eq!(apart(&(a.clone() + &other)), [10_000.0, 20_000.0]);
    for (before, after) in
        [("Before:\n", "After:\n"), ("", "## with mq-deadline\n"), ("/dev/sda:\n", "\n/dev/sdb:\n\n")]
    {
        let found = all(&format!("{before}{a}{after}{b}"));
        assert_eq!(found.len(), 2, "{after}");
        assert_eq!(told(&found[1], "heading"), after.trim().trim_matches(['#', ' ', ':']));
    }
    let called = |file: &str, text: &str| format!("# fio --name=a --filename={file}\n{text}\n");
    assert_eq!(apart(&(called("/dev/sda", &a) + &called("/dev/sdb", &b))), [10_000.0, 20_000.0]);
    assert_eq!(apart(&(a.clone() + &b.replace("vda", "vdb"))), [10_000.0, 20_000.0]);
    // Another kind of work is another figure of the same one.
    let write = b.replace("rw=randread", "rw=read");
    assert_eq!(all(&(called("/dev/sda", &a) + &called("/dev/sda", &write))).len(), 1);
    // The same again is measured twice; the same text twice is not.
    let twice = one(&(called("/dev/sda", &a) + &called("/dev/sda", &b)));
    assert_eq!(super::values(&twice, &key), [10_000.0, 20_000.0]);
    let copied = one(&(a.clone() + &b + &a));
    assert_eq!(super::values(&copied, &key), [10_000.0, 20_000.0]);
    assert!(copied.remarks.iter().any(|remark| remark.contains("in the file again")), "{:?}", copied.remarks);
}

#[test]
fn hosts_and_copies_in_json_are_told_apart() {
    let on = |host: &str, ios: u64| {
        let mut told = job(json!({"rw": "randread", "bs": "4k"}), 1000, side(ios, ios * 4096, 1000), none());
        told["hostname"] = json!(host);
        told
    };
    let mut sum = on("", 3000);
    sum["jobname"] = json!("All clients");
    let clients = json!({"fio version": "fio-3.33", "client_stats": [on("one", 1000), on("two", 2000), sum]})
        .to_string();
    let found = all(&clients);
    let hosts: Vec<&str> = found.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(hosts, ["one", "two"]);
    for (one, ios) in found.iter().zip([1000.0, 2000.0]) {
        let key = iops_of(std::slice::from_ref(one))[0].to_string();
        assert!(!key.contains("client=") && value(one, &key) == ios, "{key}");
        assert!(note(one, &key).contains("on 1 other host"), "{}", note(one, &key));
    }
    // The same document twice, whatever stands between, is one.
    let once = document(0, on("", 1000));
    for between in ["", "and again:\n", &document(5000, on("", 900))] {
        let found = all(&(once.clone() + between + &once));
        assert_eq!(found.len(), if between.starts_with('{') { 2 } else { 1 }, "{between}");
    }
    // Several have their headings.
    let found = all(&format!("Before:\n{once}After:\n{}", document(90_000, on("", 900))));
    assert_eq!([told(&found[0], "heading"), told(&found[1], "heading")], ["Before", "After"]);
}

#[test]
fn what_a_client_wrote_is_of_its_servers() {
    let text = |names: [&str; 2]| {
        let known = |name: &str| {
            format!("hostname={name}, be=0, 64-bit, os=Linux, arch=x86-64, fio=fio-3.33, flags=1\n")
        };
        let head = |name: &str| {
            format!("<{name}> {}<{name}> Starting 1 process\n", announced("a", 0, "randread", "4096B"))
        };
        let part = |before: &str, name: &str, pid: u32, ios: u32| {
            format!("{before}<{name}> \n{}{SUMS}", reads("a", pid, ios))
        };
        let sum = reads("All clients", 0, 30_000).replace("jobs=1", "jobs=2");
        let [one, two] = names;
        known(one)
            + &known(two)
            + &head(one)
            + &head(two)
            + &part("Jobs: 2 (f=2)", one, 7, 10_000)
            + &part("", two, 8, 20_000)
            + &sum
    };
    for names in [["one", "two"], ["10.0.0.1", "10.0.0.2"], ["a-b.c", "a"]] {
        let found = all(&text(names));
        assert_eq!(found.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), names);
        for (one, ios) in found.iter().zip([10_000.0, 20_000.0]) {
            assert_eq!(value(one, &format!("{RANDOM}iops")), ios);
            assert!(note(one, &format!("{RANDOM}iops")).contains("on 1 other host"));
            assert_eq!(told(one, "fio"), "3.33");
        }
    }
    // Both servers on one host ran at once.
    let found = one(&text(["vm", "vm"]));
    assert!(!keys(&found).iter().any(|key| key.contains("All")), "{:?}", keys(&found));
}

/// What fio 3.33 wrote in several modes, one after the other: the same kind of work under another
/// command is of another result.
#[test]
fn recordings_of_several_modes_are_read() {
    let found = all(include_str!("recorded/modes.txt"));
    assert_eq!(found.len(), 3);
    for one in &found {
        assert!(rules(one).is_empty(), "{:?}", one.findings);
        assert!(!one.remarks.iter().any(|one| one.contains("of its lines")), "{:?}", one.remarks);
    }
    let [unified, disk, memory] = &found[..] else { panic!("three results") };
    let mixed = "disk.random@one-cpu?cache=untold&engine=psync&op=mixed&read_share=";
    let point = "/block=4096&depth=1#";
    assert!(near(value(unified, &format!("{mixed}untold{point}iops")), 14_256.0 / 1.001));
    assert_eq!(value(unified, &format!("{mixed}untold{point}latency_p99")), 131.0);
    assert!(near(value(disk, &format!("{mixed}75{point}iops")), (12_982.0 + 4306.0) / 1.001));
    let write = mixed.replace("&engine", "&direction=write&engine");
    assert!(near(value(disk, &format!("{write}75{point}iops")), 4306.0 / 1.001));
    assert!(near(value(disk, &format!("{RANDOM}iops")), 41_794.0 / 2.868));
    assert_eq!(value(disk, &format!("{RANDOM}steady_iops")), 14_500.0);
    assert!(!note(disk, &format!("{RANDOM}iops")).contains("device"));
    assert!(note(memory, &format!("{RANDOM}iops")).contains("in memory (tmpfs)"));
    assert!(note(memory, &format!("{}iops", RANDOM.replace("psync", "null"))).contains("no I/O"));
    assert!(told(memory, "command").contains("--directory=/dev/shm"), "{:?}", memory.make_up);
}

#[test]
fn a_recording_of_a_client_is_of_its_servers() {
    let found = one(include_str!("recorded/client.txt"));
    assert_eq!((found.host.as_str(), told(&found, "fio")), ("vm", "3.33"));
    // Two servers on one host: both at once, and not their sum a third time.
    let key = RANDOM.replace("one-cpu", "free").replace("&op", "&jobs=2&op");
    assert!(near(value(&found, &format!("{key}iops")), (11_362.0 + 11_062.0) / 1.001), "{:?}", keys(&found));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
}
