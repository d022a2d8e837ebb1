//! Results of fio: recordings of our own, made-up ones, and the collected ones where they are. The
//! figures were read by eye.

use crate::faults::{FAILED_IO, FIGURES_DISAGREE, INTERRUPTED};
use crate::tests::{figure, only, recorded, rules, skipped, values};
use crate::{Imported, read};

mod apart;
mod engines;
mod kinds;
mod terse;
mod told;

fn value(one: &Imported, key: &str) -> f64 {
    let values = values(one, key);
    assert_eq!(values.len(), 1, "{key}: {values:?}");
    values[0]
}

fn note(one: &Imported, key: &str) -> String {
    figure(one, key).note.clone()
}

fn one(text: &str) -> Imported {
    only(text, super::FORMAT)
}

fn near(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() < 1e-9
}

#[test]
fn several_jobs_of_one_file_have_keys_of_their_own() {
    let found = one(&recorded("fio-jobs.json"));
    assert_eq!(rules(&found), [""; 0]);
    let write = "disk.sequential@one-cpu?cache=direct&engine=psync&op=write/block=1048576&depth=1#";
    assert!(near(value(&found, &format!("{write}bandwidth")), 2.008112079));
    assert!(near(value(&found, &format!("{write}iops")), 1915.084915));
    assert!(near(value(&found, &format!("{write}latency_p99")), 7176.192));
    assert!(skipped(&found, &format!("{write}latency_p999")).contains("(1.9 of 1917)"));
    // (2.2 % + 16.5 %) of 1 s over 1917 I/Os.
    assert!(near(value(&found, &format!("{write}cpu_per_io")), 0.187e6 / 1917.0));
    // Two jobs at once: their rates are summed, and each has its own percentiles.
    let both = "disk.random@free?cache=direct&jobs=2&op=read/block=4096&depth=4#";
    assert!(near(value(&found, &format!("{both}iops")), 23615.384615 + 24124.875125));
    assert_eq!(values(&found, &format!("{both}iops_each")), [23615.384615, 24124.875125]);
    assert_eq!(values(&found, &format!("{both}latency_p99")), [1286.144, 1908.736]);
    assert!(note(&found, &format!("{both}latency_p99")).contains("of each of 2 jobs at once"));
    // Mixed, with syncs between: not what a job without is, and both directions.
    let mixed = "disk.random@one-cpu?cache=direct&direction=read&fdatasync=8&op=mixed/block=4096&depth=8#";
    assert!(near(value(&found, &format!("{mixed}iops")), 25811.188811));
    let total = "disk.random@one-cpu?cache=direct&fdatasync=8&op=mixed/block=4096&depth=8#iops";
    assert!(near(value(&found, total), 25811.188811 + 11364.635365));
    let sync = "disk.sync@one-cpu?cache=direct&every=8&op=fdatasync/block=4096&depth=8#";
    assert!(near(value(&found, &format!("{sync}latency_p50")), 209.92));
    assert!(near(value(&found, &format!("{sync}latency_mean")), 246.161780663));
    let headlines: Vec<&str> = found
        .figures
        .iter()
        .filter(|figure| figure.judged.series.metric.headline)
        .map(|figure| figure.judged.series.metric.name.as_ref())
        .collect();
    assert_eq!(headlines, ["bandwidth", "iops", "iops", "iops", "iops", "latency_p50"]);
}

#[test]
fn words_say_the_same_with_fewer_digits() {
    let found = one(&recorded("fio-jobs.txt"));
    let write = "disk.sequential@one-cpu?cache=untold&engine=psync&op=write/block=1048576&depth=1#";
    // 3453 MiB in 1001 ms; printed are 3450MiB/s.
    assert!(near(value(&found, &format!("{write}bandwidth")), 3453.0 * 1.048576 / 1.001 / 1e3));
    assert!(note(&found, &format!("{write}bandwidth")).contains("IOPS=3449, BW=3450MiB/s"));
    assert!(near(value(&found, &format!("{write}latency_p99")), 363.0));
    let both = "disk.random@free?cache=untold&jobs=2&op=read/block=4096&depth=4#";
    assert!(near(value(&found, &format!("{both}iops")), 62382.0 / 1.001));
    assert!(near(value(&found, &format!("{both}latency_max")), 4216.0));
    // Of 2 s of CPU time 24.9 %.
    assert!(near(value(&found, &format!("{both}cpu_per_io")), 0.249 * 2.002e6 / 62382.0));
    let mixed = "disk.random@one-cpu?cache=untold&direction=write&op=mixed/block=4096&depth=8#";
    assert!(near(value(&found, &format!("{mixed}iops")), 20027.0 / 1.001));
    // `max=3508.1k` ns, and percentiles in us.
    assert!(near(value(&found, &format!("{mixed}latency_max")), 3508.1));
    assert!(near(value(&found, &format!("{mixed}latency_p99")), 180.0));
    assert!(skipped(&found, &format!("{mixed}latency_p9999")).contains("2.0 of 20027"));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
    assert!(!found.remarks.iter().any(|remark| remark.contains("of its lines")), "{:?}", found.remarks);
}

#[test]
fn a_full_file_system_is_a_finding() {
    let found = one(&recorded("fio-full.txt"));
    assert_eq!(rules(&found), [FAILED_IO]);
    let told = format!("{:?}", found.findings[0].facts);
    assert!(
        told.contains("No space left on device: write offset=1048576") && told.contains("error 28"),
        "{told}"
    );
    let key = "disk.sequential@one-cpu?cache=buffered&engine=psync&op=write/block=65536&depth=1#";
    assert!(note(&found, &format!("{key}iops")).contains("error 28"));
    assert!(skipped(&found, &format!("{key}latency_p99")).contains("of 16)"));
}

/// A job of fio 3 that reads.
fn job(name: &str, more: &str, rate: f64, ios: f64) -> String {
    format!(
        "{{\"jobname\": \"{name}\", \"groupid\": 0, \"error\": 0, \"job options\": {{\"rw\": \"randread\", \"bs\": \"4k\", \
         \"direct\": \"1\", \"ioengine\": \"io_uring\", \"iodepth\": \"32\"{more}}}, \"read\": {{\"io_bytes\": {}, \"io_kbytes\": 1, \
         \"bw_bytes\": {}, \"iops\": {rate}, \"runtime\": 1000, \"total_ios\": {ios}, \"clat_ns\": {{\"max\": 9e8, \"mean\": 1000.5, \
         \"percentile\": {{\"99.000000\": 5000, \"100.00\": 1, \"x\": 1}}}}}}}}",
        ios * 4096.0,
        rate * 4096.0
    )
}

fn document(version: &str, jobs: &[String]) -> String {
    format!("{{\n\"fio version\" : \"fio-{version}\",\n\"jobs\" : [{}]\n}}\n", jobs.join(","))
}

const PLAIN: &str = "disk.random@one-cpu?cache=direct&op=read/block=4096&depth=32#";

#[test]
fn jobs_alike_are_what_our_rows_are() {
    let found = one(&document("3.38", &[job("a", "", 5000.0, 5000.0)]));
    assert_eq!(value(&found, &format!("{PLAIN}iops")), 5000.0);
    assert_eq!(value(&found, &format!("{PLAIN}latency_p99")), 5.0);
    assert_eq!(value(&found, &format!("{PLAIN}latency_mean")), 1.0005);
    assert!(rules(&found).is_empty());
    // In groups of their own (stonewall) two of one kind are measured twice.
    let again = job("a2", "", 5100.0, 5100.0).replace("\"groupid\": 0", "\"groupid\": 1");
    let found = one(&document("3.38", &[job("a", "", 5000.0, 5000.0), again]));
    assert_eq!(values(&found, &format!("{PLAIN}iops")), [5000.0, 5100.0]);
    // At the same time as another one it is another measurement.
    let found = one(&document(
        "3.38",
        &[job("a", "", 5000.0, 5000.0), job("b", ", \"verify\": \"crc32c\"", 10.0, 10.0)],
    ));
    let key = PLAIN.replace("&op", "&job=a&op");
    assert!(note(&found, &format!("{key}iops")).contains("at the same time as b"));
    values(&found, &format!("{}iops", PLAIN.replace("&op=read", "&job=b&op=read&verify=crc32c")));
    // One of four that ran is not the whole.
    let found = one(&document("3.38", &[job("a", ", \"numjobs\": \"4\"", 5000.0, 5000.0)]));
    let key = PLAIN.replace("one-cpu", "free").replace("&op", "&jobs=4&op");
    assert_eq!(skipped(&found, &format!("{key}iops")), "1 of 4 jobs have a figure in the file");
}

#[test]
fn figures_that_do_not_fit_are_found() {
    let found = one(&document("3.38", &[job("a", "", 5000.0, 6000.0)]));
    assert_eq!(rules(&found), [FIGURES_DISAGREE]);
    // A latency of 90 s in a run of one.
    let found = one(&document("3.38", &[job("a", "", 5000.0, 5000.0).replace("9e8", "9e10")]));
    assert_eq!(rules(&found), [FIGURES_DISAGREE]);
    assert!(
        skipped(&found, &format!("{PLAIN}latency_max"))
            .contains("90.000 s is longer than the run of 1.000 s")
    );
}

#[test]
fn version_2_counts_in_kib_and_us() {
    let old = job("a", "", 5000.0, 5000.0)
        .replace(
            "\"io_bytes\": 20480000, \"io_kbytes\": 1, \"bw_bytes\": 20480000",
            "\"io_bytes\": 20000, \"bw\": 20000",
        )
        .replace("clat_ns", "clat")
        .replace("9e8", "900000");
    let found = one(&document("2.16", &[old]));
    assert!(near(value(&found, &format!("{PLAIN}bandwidth")), 20000.0 * 1024.0 / 1e9));
    assert!(near(value(&found, &format!("{PLAIN}latency_p99")), 5000.0));
    assert!(near(value(&found, &format!("{PLAIN}latency_max")), 900_000.0));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);
}

#[test]
fn what_is_cut_off_is_read_as_far_as_it_goes() {
    let whole = document("3.38", &[job("a", "", 5000.0, 5000.0)]);
    let cut = &whole[..whole.find("\"clat_ns\"").expect("latencies")];
    let found = one(cut);
    assert_eq!(rules(&found), [INTERRUPTED]);
    assert_eq!(value(&found, &format!("{PLAIN}iops")), 5000.0);
    let nothing = one("{\n\"fio version\" : \"fio-3.38\",\n\"jobs\" : [\n");
    assert!(skipped(&nothing, "fio.job@free#iops").contains("no job"));
    let words = one(
        "a: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32\nfio-2.2.10\nStarting 1 process\n",
    );
    assert!(
        skipped(&words, "disk.random@one-cpu?cache=untold&op=read/block=4096&depth=32#iops")
            .contains("before a result")
    );
}

/// The collected results (not part of this project); `None`, with a message, in a clone without
/// them.
fn collected(name: &str) -> Option<Imported> {
    let path = testkit::root().join("../shared/fixtures/results/fio").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")).remove(0)),
        Err(_) => {
            eprintln!("SKIPPED collected results of fio: {} is not here", path.display());
            None
        }
    }
}

#[test]
fn the_collected_results_are_read() {
    let Some(found) = collected("bensonjohnson_seqread_sigint_prefix_fio-3.33.json") else { return };
    assert_eq!(rules(&found), [INTERRUPTED]);
    // Six jobs in one report (job_runtime 288990 over 48170 ms), whose name and options are one's.
    let key = "disk.sequential@free?cache=direct&direction=write&jobs=6&of=several-kinds&op=mixed&read_share=16/block=4096&depth=16#";
    assert!(near(value(&found, &format!("{key}iops")), 39338.066766));
    assert!(near(value(&found, &format!("{key}latency_p9999")), 95944.704));

    let Some(found) = collected("ceph_randread-4k_fio-2.2.10_human.txt") else { return };
    let key = "disk.random@one-cpu?cache=untold&op=read/block=4096&depth=32#";
    assert!(near(value(&found, &format!("{key}iops")), 967045.0 / 60.003));
    assert!(near(value(&found, &format!("{key}bandwidth")), 967045.0 * 4096.0 / 60.003e9));
    assert!(near(value(&found, &format!("{key}latency_p9999")), 10432.0));
    assert!(near(value(&found, &format!("{key}submission_mean")), 51.87));
    assert!(rules(&found).is_empty(), "{:?}", found.findings);

    let Some(found) = collected("vc_error_prefix_fio-3.13.txt") else { return };
    assert_eq!(rules(&found), [FAILED_IO]);
    assert_eq!(found.findings[0].facts.len(), 3, "two lines and the job: {:?}", found.findings[0].facts);
    let key =
        "disk.sequential@one-cpu?cache=buffered&engine=windowsaio&op=read&verify=md5/block=4096&depth=512#";
    assert!(near(value(&found, &format!("{key}iops")), 49501.318267));

    let Some(found) = collected("vc_fiotest_fio-3.13.json") else { return };
    // A randread that wrote, and a latency of 93 s in a run of seven.
    assert_eq!(rules(&found), [FIGURES_DISAGREE]);
    let told = format!("{:?}", found.findings[0].facts);
    assert!(told.contains("the job is randread and has 1073741824 bytes in direction write"), "{told}");
    let key = "disk.random@one-cpu?cache=direct&engine=untold&op=read/block=4096&depth=512#";
    assert!(near(value(&found, &format!("{key}bandwidth")), 0.145473760));
    assert!(near(value(&found, &format!("{key}latency_p50")), 6717.44));
    assert!(skipped(&found, &format!("{key}total_mean")).contains("longer than the run"));

    let Some(found) = collected("vc_randwrite_fio-3.26.json") else { return };
    let told = format!("{:?}", found.findings[0].facts);
    assert!(rules(&found) == [FIGURES_DISAGREE] && told.contains("iops says 2160.6 1/s"), "{told}");

    let Some(found) = collected("vc_readwrite_fio-3.26-19.json") else { return };
    let key = "disk.sequential@one-cpu?cache=direct&direction=write&op=mixed/block=262144&depth=64#";
    assert!(near(value(&found, &format!("{key}iops")), 256.606819));
    assert!(skipped(&found, &format!("{key}latency_p999")).contains("(1.3 of 1272)"));
    assert!(near(
        value(&found, &key.replace("direction=write&", "").replace('#', "#bandwidth")),
        0.149343283 + 0.067267937
    ));
    assert!(rules(&found).is_empty());

    let Some(found) = collected("vc_verification_error_2.txt") else { return };
    assert_eq!(rules(&found), [FAILED_IO]);
    let facts = &found.findings[0].facts;
    assert!(facts[0].value.starts_with("verify: bad header numberio 3932, wanted 0 at file"), "{facts:?}");
    assert_eq!(facts.last().map(|fact| fact.value.as_str()), Some("123 more such lines"), "{facts:?}");
    let key = "disk.random@free?cache=untold&direction=read&jobs=several&op=mixed&read_share=untold/block=65536&depth=16#iops";
    assert!(skipped(&found, key).contains("before a result"));
}

#[test]
fn of_more_jobs_than_any_run_has_the_first_are_read() {
    let mut text = "fio-3.33\n".to_string();
    for job in 0..6000 {
        text += &format!("j{job}: (g=0): rw=read, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\n");
    }
    for job in 0..6000 {
        text +=
            &format!("j{job}: (groupid=0, jobs=1): err= 0: pid={}: Fri Jun 19 01:20:01 2020\n", 1000 + job);
        text += "  read: IOPS=100, BW=400KiB/s (410kB/s)(400KiB/1000msec)\n";
    }
    let lines: Vec<&str> = text.lines().collect();
    let run = super::text::run(&lines);
    assert_eq!((run.jobs.len(), run.left_out), (5000, 2000));
}
