//! What fio 3.33 wrote for jobs of many kinds, cut down to what matters: reports of a run that goes
//! on, groups in one report, jobs that verify, texts without their begin.

use serde_json::{Value, json};

use super::{near, note, one, value};
use crate::faults::{FAILED_IO, FIGURES_DISAGREE};
use crate::fio::tests::{rules, skipped, values};
use crate::{Imported, read};

/// One direction of a job: I/Os, bytes, ms.
pub fn side(ios: u64, bytes: u64, ms: u64) -> Value {
    let per_second = |amount: u64| if ms == 0 { 0.0 } else { amount as f64 * 1e3 / ms as f64 };
    json!({"io_bytes": bytes, "io_kbytes": bytes / 1024, "bw_bytes": per_second(bytes), "iops": per_second(ios), "runtime": ms,
           "total_ios": ios, "clat_ns": {"mean": 1000.5, "max": 9000, "N": ios, "percentile": {"50.000000": 900}}})
}

/// A job that ran for `ran` ms in all.
pub fn job(options: Value, ran: u64, read: Value, write: Value) -> Value {
    json!({"jobname": "a", "groupid": 0, "error": 0, "elapsed": ran / 1000 + 1, "job options": options, "job_runtime": ran,
           "usr_cpu": 10.0, "sys_cpu": 20.0, "read": read, "write": write})
}

pub fn document(at_ms: u64, job: Value) -> String {
    json!({"fio version": "fio-3.33", "timestamp_ms": 1_795_556_558_000u64 + at_ms, "global options": {"ioengine": "psync"},
           "jobs": [job], "disk_util": [{"name": "vda", "util": 64.6}]})
    .to_string()
        + "\n"
}

/// One document with one job.
pub fn alone(options: Value, ran: u64, read: Value, write: Value) -> Imported {
    one(&document(0, job(options, ran, read, write)))
}

pub fn none() -> Value {
    side(0, 0, 0)
}

pub fn keys(one: &Imported) -> Vec<&str> {
    one.figures.iter().map(|figure| figure.judged.series.key.as_str()).collect()
}

/// A job in words as fio 3 announces it.
pub fn announced(name: &str, group: u32, rw: &str, block: &str) -> String {
    let sizes = ["(R)", "(W)", "(T)"].map(|way| format!("{way} {block}-{block}")).join(", ");
    format!("{name}: (g={group}): rw={rw}, bs={sizes}, ioengine=psync, iodepth=1\n")
}

/// Its result: process, and the lines of its directions.
pub fn result(name: &str, jobs: u32, pid: u32, sides: &str, totals: &str) -> String {
    format!(
        "{name}: (groupid=0, jobs={jobs}): err= 0: pid={pid}: Tue Nov 24 21:42:36 2026\n{sides}  cpu          : usr=2.00%, sys=46.00%, ctx=1, \
         majf=0, minf=1\n     issued rwts: total={totals} short=0,0,0,0 dropped=0,0,0,0\n"
    )
}

pub const SUMS: &str = "\nRun status group 0 (all jobs):\n   READ: bw=60.6MiB/s (63.5MB/s)\n\nDisk stats (read/write):\n  vda: ios=9/0, \
                    merge=0/0, util=64.60%\n\n";
const READ_4K: &str = "disk.random@one-cpu?cache=buffered&engine=psync&op=read/block=4096&depth=1#";
const TEXT_4K: &str = "disk.random@one-cpu?cache=untold&engine=psync&op=read/block=4096&depth=1#";

#[test]
fn reports_of_a_run_that_goes_on_are_no_jobs_of_their_own() {
    let options = json!({"rw": "randread", "bs": "4k", "runtime": "3"});
    let at = |at: u64, ms: u64, ios: u64| {
        document(at, job(options.clone(), ms, side(ios, ios * 4096, ms), none()))
    };
    // As --status-interval=1 wrote them.
    let going =
        at(1333, 894, 13_882) + &at(2332, 1893, 29_105) + &at(3333, 2894, 46_037) + &at(3453, 3000, 47_763);
    let found = one(&going);
    assert!(near(value(&found, &format!("{READ_4K}iops")), 47_763.0 / 3.0));
    assert!(
        found.remarks.iter().any(|remark| remark.starts_with("3 interim reports were left out")),
        "{:?}",
        found.remarks
    );
    // The same job begun again is another measurement, also where it did more.
    let twice = at(0, 3000, 47_000) + &at(3300, 3001, 47_763);
    assert_eq!(read(twice.as_bytes()).expect("results").len(), 2);

    let text = |sums: &str, processes: u32| {
        let part = |iops: &str, ms: u32, ios: u32| {
            let mib = f64::from(ios) / 256.0;
            let rate = mib * 1e3 / f64::from(ms);
            let line = format!(
                "  read: IOPS={iops}, BW={rate:.1}MiB/s ({:.1}MB/s)({mib:.1}MiB/{ms}msec)\n",
                rate * 1.048_576
            );
            let process = if processes == 1 { 10_792 } else { 10_792 + ms };
            result("s", 1, process, &line, &format!("{ios},0,0,0")) + sums
        };
        let several = if processes == 1 { "" } else { "...\n" };
        announced("s", 0, "randread", "4096B")
            + &format!("{several}fio-3.33\nStarting {processes} processes\n")
            + &part("15.5k", 869, 13_477)
            + &part("14.4k", 1869, 27_005)
            + &part("14.4k", 3001, 43_195)
    };
    // Without the sums between it is one process all the same.
    for sums in [SUMS, ""] {
        let found = one(&text(sums, 1));
        assert!(near(value(&found, &format!("{TEXT_4K}iops")), 43_195.0 / 3.001));
        let passed = if sums.is_empty() { "1 interim report was" } else { "2 interim reports were" };
        assert!(found.remarks.iter().any(|remark| remark.starts_with(passed)), "{:?}", found.remarks);
    }
    // Processes of their own are jobs that ran at once.
    let found = one(&text("", 3));
    assert_eq!(
        values(
            &found,
            &format!("{}iops_each", TEXT_4K.replace("one-cpu", "free").replace("&op", "&jobs=3&op"))
        )
        .len(),
        3
    );
}

#[test]
fn a_group_without_a_word_of_it_is_one_by_its_time() {
    // fio leaves group_reporting without a value out of its options.
    let found = alone(
        json!({"rw": "randread", "bs": "4k", "numjobs": "4"}),
        4000,
        side(39_944, 163_610_624, 1001),
        none(),
    );
    let key = READ_4K.replace("one-cpu", "free").replace("&op", "&jobs=4&op");
    assert!(near(value(&found, &format!("{key}iops")), 39_944.0 / 1.001));
    assert!(near(value(&found, &format!("{key}cpu_per_io")), 0.3 * 4e6 / 39_944.0));
    // More jobs than this one asks for: they are of several kinds, and what it does not do is
    // another's.
    let told = json!({"rw": "write", "bs": "64k", "numjobs": "2"});
    let found = alone(told, 4000, side(8077, 33_083_392, 1001), side(243_968, 15_988_686_848, 1001));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
    let key = "disk.sequential@free?cache=buffered&engine=psync&jobs=4&of=several-kinds&op=";
    assert!(near(value(&found, &format!("{key}write/block=65536&depth=1#iops")), 243_968.0 / 1.001));
    assert!(near(value(&found, &format!("{key}read/block=untold&depth=untold#iops")), 8077.0 / 1.001));
    // Jobs that end one by one take less than all of the time.
    let found = alone(
        json!({"rw": "read", "bs": "64k", "numjobs": "4", "group_reporting": "1"}),
        760,
        side(4096, 268_435_456, 225),
        none(),
    );
    let key = "disk.sequential@free?cache=buffered&engine=psync&jobs=4&op=read/block=65536&depth=1#";
    assert!(near(value(&found, &format!("{key}iops")), 4096e3 / 225.0), "{:?}", keys(&found));
}

#[test]
fn a_group_in_words_takes_all_that_were_announced() {
    let sides = "  read: IOPS=9747, BW=38.1MiB/s (39.9MB/s)(38.1MiB/1001msec)\n  write: IOPS=224k, BW=13.7GiB/s \
                 (14.7GB/s)(13.7GiB/1001msec); 0 zone resets\n";
    let result = result("r", 4, 16467, sides, "9757,224171,0,0");
    let head = announced("r", 0, "randread", "4096B") + "...\n";
    let found = one(&(head.clone()
        + &announced("w", 0, "write", "64.0KiB")
        + "...\nfio-3.33\nStarting 4 processes\n"
        + &result));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
    let key = "disk.random@free?cache=untold&engine=psync&jobs=4&of=several-kinds&op=";
    assert!(near(value(&found, &format!("{key}read/block=4096&depth=1#iops")), 9757.0 / 1.001));
    assert!(near(value(&found, &format!("{key}write/block=untold&depth=untold#iops")), 224_171.0 / 1.001));
    assert!(found.figures.iter().all(|figure| !figure.wording.starts_with("w ")), "{:?}", keys(&found));
    // Those of one kind are of one kind.
    let found = one(&(head + "fio-3.33\nStarting 4 processes\n" + &result.replace("224171", "0")));
    assert!(!keys(&found).iter().any(|key| key.contains("several-kinds")), "{:?}", keys(&found));
}

#[test]
fn what_a_job_reads_back_of_its_own_is_not_held_against_it() {
    let told = |group: &str| json!({"rw": "write", "bs": "4k", "verify": "md5", "group_reporting": group});
    let both = (side(24_576, 100_663_296, 321), side(24_576, 100_663_296, 260));
    let found = alone(told("1"), 580, both.0.clone(), both.1.clone());
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
    // One job: it wrote for 260 ms and then read for 321.
    let key = "disk.sequential@one-cpu?cache=buffered&engine=psync&op=read&phase=verify&verify=md5/block=4096&depth=1#iops";
    assert!(near(value(&found, key), 24_576e3 / 321.0));
    assert!(note(&found, key).contains("fio's verify phase"));
    let plain = json!({"rw": "write", "bs": "4k"});
    assert_eq!(rules(&alone(plain, 321, both.0, both.1)), [FIGURES_DISAGREE]);

    // The text does not show it; as many reads as writes are no edit.
    let text = |reads: u32| {
        let sides = "  read: IOPS=171k, BW=667MiB/s (699MB/s)(4096KiB/6msec)\n  write: IOPS=171k, BW=667MiB/s (699MB/s)(4096KiB/6msec)\n";
        announced("v", 0, "write", "4096B")
            + "fio-3.33\n"
            + &result("v", 1, 10780, sides, &format!("{reads},1024,0,0"))
    };
    let found = one(&text(1024));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
    assert!(
        note(
            &found,
            "disk.sequential@one-cpu?cache=untold&engine=psync&op=read&phase=verify/block=4096&depth=1#iops"
        )
        .contains("probably")
    );
    assert!(rules(&one(&text(1000))).contains(&FIGURES_DISAGREE));
}

#[test]
fn words_without_their_begin_do_not_say_what_was_done() {
    let line = "  read: IOPS=20.9k, BW=81.7MiB/s (85.6MB/s)(81.7MiB/1001msec)\n";
    let found = one(&result("a", 1, 10726, line, "20924,0,0,0"));
    let key =
        "fio.job@one-cpu?cache=untold&engine=untold&job=a&op=read&rw=untold/block=untold&depth=untold#iops";
    assert!(near(value(&found, key), 20_924.0 / 1.001), "{:?}", keys(&found));
    assert!(note(&found, key).contains("the line that announces the job is missing"));
    // Nor whether reads with writes are a mix or a verification.
    let both = format!("{line}{}", line.replace("read", "write"));
    let found = one(&result("a", 1, 10726, &both, "20924,20924,0,0"));
    assert!(
        rules(&found).is_empty() && !keys(&found).iter().any(|key| key.contains("mixed")),
        "{:?}",
        keys(&found)
    );
    let unfinished = one(&(announced("a", 0, "randread", "4096B") + "...\nfio-3.33\n"));
    skipped(
        &unfinished,
        "disk.random@free?cache=untold&engine=psync&jobs=several&op=read/block=4096&depth=1#iops",
    );
}

#[test]
fn directions_with_blocks_of_their_own_have_a_key_of_their_own() {
    let found = alone(
        json!({"rw": "randrw", "bs": "4k,64k", "rwmixread": "70"}),
        1000,
        side(34_859, 142_782_464, 1000),
        side(15_672, 1_027_080_192, 1000),
    );
    let key =
        "disk.random@one-cpu?bs=4096,65536&cache=buffered&engine=psync&op=mixed/block=4096&depth=1#iops";
    assert!(near(value(&found, key), 34_859.0 + 15_672.0), "{:?}", keys(&found));
    let write = "disk.random@one-cpu?bs=4096,65536&cache=buffered&direction=write&engine=psync&op=mixed/block=65536&depth=1#iops";
    assert!(near(value(&found, write), 15_672.0));
    // What is left out is fio's own 4k; a job of one direction has one size.
    let found = alone(json!({"rw": "randread", "bs": ",64k"}), 1000, side(1000, 4_096_000, 1000), none());
    assert!(near(value(&found, &format!("{READ_4K}iops")), 1000.0), "{:?}", keys(&found));
}

#[test]
fn a_job_that_moved_nothing_has_no_latency() {
    let nothing = json!({"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 4,
                         "clat_ns": {"mean": 0.0, "max": 0, "N": 0, "percentile": {"99.000000": 0}}});
    let mut failed = job(json!({"rw": "randread", "bs": "4k"}), 3, nothing, none());
    failed["error"] = json!(95);
    let found = one(&document(0, failed));
    assert_eq!(rules(&found), [FAILED_IO]);
    assert!(
        found.figures.iter().all(|figure| figure.judged.analysis.estimate.is_none()),
        "{:?}",
        keys(&found)
    );
    assert!(skipped(&found, &format!("{READ_4K}iops")).contains("error 95"));
    // Nor one whose latencies were not taken (gtod_reduce).
    let mut fast = side(1000, 4_096_000, 1000);
    fast["clat_ns"] = json!({"mean": 0.0, "max": 0, "N": 0});
    let found = alone(json!({"rw": "randread", "bs": "4k"}), 1000, fast, none());
    assert!(skipped(&found, &format!("{READ_4K}latency_max")).contains("no latency was measured"));
}

#[test]
fn syncs_are_counted_in_words_too() {
    let sides = "  write: IOPS=606, BW=2427KiB/s (2485kB/s)(2048KiB/844msec); 0 zone resets\n  fsync/fdatasync/sync_file_range:\n    sync \
                 (usec): min=247, max=7979, avg=3276.58, stdev=1376.14\n    sync percentiles (usec):\n     | 50.00th=[ 3130], 99.99th=[ 7979]\n";
    let found = one(&(announced("y", 0, "randwrite", "4096B")
        + "fio-3.33\n"
        + &result("y", 1, 10821, sides, "0,512,0,255")));
    let key = "disk.sync@one-cpu?cache=untold&engine=psync&op=untold/block=4096&depth=1#";
    assert_eq!(values(&found, &format!("{key}latency_p50")), [3130.0]);
    assert!(skipped(&found, &format!("{key}latency_p9999")).contains("(0.0 of 255)"));
}

#[test]
fn how_busy_a_device_was_is_no_other_device() {
    let words =
        announced("s", 0, "randread", "4096B") + "fio-3.33\n" + &result("s", 1, 1, "", "1,0,0,0") + SUMS;
    for text in [document(0, job(json!({"rw": "read"}), 1000, side(1000, 4_096_000, 1000), none())), words] {
        let found = one(&text);
        assert!(found.make_up.contains(&("device".to_string(), "vda".to_string())), "{:?}", found.make_up);
        assert!(
            found.remarks.iter().any(|remark| remark.contains("vda was busy 65 %")),
            "{:?}",
            found.remarks
        );
    }
}

#[test]
fn units_of_thousands_and_of_bits_are_read() {
    // --kb_base=1000: 64 KiB are printed as 65.5kB.
    let sides = "  read: IOPS=20.8k, BW=1362MB/s (1299MiB/s)(1363MB/1001msec)\n";
    let found = one(&(announced("a", 0, "read", "65.5kB")
        + "fio-3.33\n"
        + &result("a", 1, 18470, sides, "20805,0,0,0")));
    let key = "disk.sequential@one-cpu?cache=untold&engine=psync&op=read/block=65536&depth=1#";
    assert!(
        near(value(&found, &format!("{key}bandwidth")), 20_805.0 * 65_536.0 / 1.001 / 1e9),
        "{:?}",
        keys(&found)
    );
    // --unit_base=1.
    let sides = "  read: IOPS=22.5k, BW=11.0Gibit/s (11.8Gbit/s)(1408MiB/1001msec)\n";
    let found = one(&(announced("a", 0, "read", "64.0KiB")
        + "fio-3.33\n"
        + &result("a", 1, 18464, sides, "22529,0,0,0")));
    assert!(near(value(&found, &format!("{key}bandwidth")), 22_529.0 * 65_536.0 / 1.001 / 1e9));
}
