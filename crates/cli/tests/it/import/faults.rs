//! Texts on which importing was wrong once (`../shared/fixtures/faults`), a kind each, with
//! variants.

use std::fs;
use std::path::PathBuf;

use import::{Imported, read};

use super::median;
use crate::host::skipped;

/// What a text of the collection holds; `None`, with a message, in a clone without it.
fn text(test: &str, name: &str) -> Option<String> {
    let path: PathBuf = testkit::root().join("../shared/fixtures/faults").join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(_) => {
            skipped(test, format!("{} is missing", path.display()));
            None
        }
    }
}

fn told<'a>(one: &'a Imported, label: &str) -> &'a str {
    one.make_up.iter().find(|(known, _)| known == label).map_or("", |(_, value)| value.as_str())
}

fn values(text: &str, key: &str) -> Vec<f64> {
    let all = read(text.as_bytes()).expect("a result");
    all.iter().map(|one| median(one, key)).collect()
}

const GETPID: &str = "syscall.getpid@one-cpu#latency";

#[test]
fn a_host_of_another_length_moves_no_column() {
    let test = "a_host_of_another_length_moves_no_column";
    let Some(text) = text(test, "lmbench-renamed-host.txt") else { return };
    for name in ["myserver1", "h", "abc", "a-very-long-name.of.a.host"] {
        let text = text.replace("myserver1", name);
        let all = read(text.as_bytes()).expect("a summary");
        assert_eq!((all.len(), all[0].host.as_str()), (1, name));
        assert_eq!((told(&all[0], "mhz"), told(&all[0], "kernel")), ("2200", "4.18.0"), "{name}");
        assert_eq!(median(&all[0], GETPID), 0.23, "{name}");
        let l1 = all[0].figures.iter().find(|figure| figure.wording.contains("L1"));
        let l1 = l1.and_then(|figure| figure.judged.analysis.estimate.as_ref()).expect("L1");
        assert_eq!(l1.median, 1.819, "{name}");
    }
    // A cell is gone: what stands there is no row of this table.
    let shifted = text.replace("2200 0.23", "x22y 0.23");
    let all = read(shifted.as_bytes()).expect("a summary");
    let remarks: Vec<&String> = all.iter().flat_map(|one| &one.remarks).collect();
    assert!(
        remarks.iter().any(|text| text.contains("myserver1") && text.contains("left out")),
        "{remarks:?}"
    );
}

#[test]
fn columns_are_as_wide_as_their_dashes() {
    let Some(text) = text("columns_are_as_wide_as_their_dashes", "lmbench-wide-os-column.txt") else {
        return;
    };
    let all = read(text.as_bytes()).expect("a summary");
    assert_eq!(told(&all[0], "kernel"), "2.6.12-rc1-bk3");
    assert_eq!(all[0].host, "bighost");
    let pipe = all[0].figures.iter().find(|figure| figure.wording.to_lowercase().contains("pipe"));
    let pipe = pipe.and_then(|figure| figure.judged.analysis.estimate.as_ref()).expect("a bandwidth");
    assert!((pipe.median - 1.172).abs() < 0.06, "{pipe:?}");
}

#[test]
fn before_and_after_are_two_results() {
    let test = "before_and_after_are_two_results";
    let Some(raw) = text(test, "lmbench-raw-before-after.txt") else { return };
    for (before, after) in
        [("Before:", "After:"), ("# 5.10", "# 6.1"), ("mitigations=off:", "mitigations=auto:")]
    {
        let text = raw.replace("Before:", before).replace("After:", after);
        assert_eq!(values(&text, GETPID), [0.2354, 0.2255], "{before}");
        let all = read(text.as_bytes()).expect("two results");
        let clean = |text: &str| text.trim_end_matches(':').to_string();
        assert_eq!([told(&all[0], "heading"), told(&all[1], "heading")], [clean(before), clean(after)]);
    }
    // Repetitions without anything between them are of one run.
    let one = raw.replace("After:\n", "").replace("\n\n", "\n");
    assert_eq!(values(&one, GETPID).len(), 1);
    let Some(mail) = text(test, "unixbench-before-after-in-mail.txt") else { return };
    let all = read(mail.as_bytes()).expect("two results");
    let scores: Vec<f64> = all
        .iter()
        .map(|one| {
            one.index.first().and_then(|index| index.tests.first()).map_or(f64::NAN, |test| test.result)
        })
        .collect();
    assert_eq!(scores, [5_611_223.7, 7_567_076.6]);
    assert_eq!([told(&all[0], "heading"), told(&all[1], "heading")], ["Without patch", "With patch"]);
}

/// One file is compared with itself where it holds before and after.
#[test]
fn before_and_after_in_one_file_are_compared() {
    let test = "before_and_after_in_one_file_are_compared";
    for (name, faster) in
        [("unixbench-before-after-in-mail.txt", "1.35"), ("lmbench-raw-before-after.txt", "1.04")]
    {
        let path = testkit::root().join("../shared/fixtures/faults").join(name);
        if !path.exists() {
            return skipped(test, format!("{} is missing", path.display()));
        }
        let shown = super::verb(&["compare"], &[&path]);
        let text = String::from_utf8_lossy(&shown.stdout);
        assert!(text.contains("#1") && text.contains("#2") && text.contains(faster), "{name}: {text}");
    }
}

#[test]
fn machines_of_one_name_are_two() {
    let test = "machines_of_one_name_are_two";
    let Some(text) = text(test, "unixbench-two-machines-one-name.txt") else { return };
    let all = read(text.as_bytes()).expect("two results");
    let models: Vec<&str> = all.iter().map(|one| told(one, "cpu_model")).collect();
    assert_eq!(models, ["Intel(R) Xeon(R) CPU @ 2.00GHz", "Intel(R) Xeon(R) CPU @ 2.30GHz"]);
    let headings: Vec<&str> = all.iter().map(|one| told(one, "heading")).collect();
    assert_eq!(headings, ["small machine", "big machine"]);
    // The same report twice is one.
    let again = format!("{text}\n{text}");
    assert_eq!(read(again.as_bytes()).expect("two results").len(), 2);
}

#[test]
fn unixbench_writes_pages_too() {
    let Some(text) = text("unixbench_writes_pages_too", "unixbench-report.html") else { return };
    for page in
        [text.clone(), text.replace("<tt>", "").replace("</tt>", ""), text.replace("</tr>", "</tr>\n\n")]
    {
        let all = read(page.as_bytes()).expect("a report");
        assert_eq!((all.len(), all[0].host.as_str(), told(&all[0], "cpus")), (1, "box", "8"));
        assert_eq!(all[0].index[0].tests[0].result, 46_252_386.2);
        assert_eq!(all[0].index[0].copies, Some(1));
    }
}

#[test]
fn counters_that_wrapped_around_are_no_figures() {
    let name = "iperf3-negative/retransmits-u32.json";
    let Some(text) = text("counters_that_wrapped_around_are_no_figures", name) else { return };
    for count in ["4294967294", "-2", "18446744073709551614", "99999999"] {
        let all = read(text.replace("4294967294", count).as_bytes()).expect("a result");
        let retransmits = |one: &&import::Figure| one.judged.series.metric.name == "retransmits";
        let figure = all[0].figures.iter().find(retransmits).expect("retransmits");
        assert!(figure.judged.analysis.estimate.is_none(), "{count}");
        assert!(figure.judged.analysis.verdict.reason.contains("wrapped"), "{count}");
    }
    let all = read(text.replace("4294967294", "7").as_bytes()).expect("a result");
    assert!(median(&all[0], "network.tcp@free?direction=send/bytes=131072&streams=1#retransmits") > 3.0);
}

fn only(text: &str) -> Imported {
    let mut all = read(text.as_bytes()).expect("a result");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn keys(one: &Imported, metric: &str) -> Vec<String> {
    let own = one.figures.iter().filter(|figure| figure.judged.series.metric.name == metric);
    own.map(|figure| figure.judged.series.key.clone()).collect()
}

#[test]
fn fio_is_read_as_it_means_it() {
    let test = "fio_is_read_as_it_means_it";
    // A run that was stopped announced a job of the same name.
    let Some(log) = text(test, "fio-log-stopped-then-finished/log.txt") else { return };
    for text in
        [log.clone(), log.replace("^C", "fio: terminating on signal 2\n"), log.replace("[eta 04m:43s]", "")]
    {
        let one = only(&text);
        let finished: Vec<&str> = one
            .figures
            .iter()
            .filter(|figure| {
                figure.judged.series.metric.name == "iops" && figure.judged.analysis.estimate.is_some()
            })
            .map(|figure| figure.judged.series.key.as_str())
            .collect();
        assert_eq!(finished.len(), 1, "{finished:?}");
        assert!(
            finished[0].starts_with("disk.sequential@") && finished[0].contains("block=4194304"),
            "{finished:?}"
        );
        assert!(!one.findings.iter().any(|finding| finding.rule == "figures-disagree"), "{:?}", one.findings);
    }
    // Version 2 records no options.
    let four = only(&text(test, "fio-old-json-without-options/four-jobs.json").expect("there"));
    let found = keys(&four, "iops");
    assert_eq!(found.len(), 4, "{found:?}");
    for (job, block) in
        [("seq-write-1m", 1 << 20), ("rand-write-4k", 4096), ("rand-read-4k", 4096), ("seq-read-1m", 1 << 20)]
    {
        let own = found.iter().find(|key| key.contains(&format!("job={job}"))).expect("a job of its own");
        assert!(own.starts_with("fio.job@") && own.contains(&format!("block={block}")), "{own}");
        assert!(own.contains("cache=untold"), "{own}");
    }
    assert!(four.findings.is_empty(), "{:?}", four.findings);
    // A carry that was lost.
    for (file, gb) in [("fio-3.1.txt", 0.01257), ("fio-3.19-amount.txt", 0.001_289)] {
        let one = only(&text(test, &format!("fio-rounding-accused/{file}")).expect("there"));
        assert!(one.findings.is_empty(), "{file}: {:?}", one.findings);
        let key = keys(&one, "bandwidth").remove(0);
        assert!((median(&one, &key) / gb - 1.0).abs() < 0.01, "{file}: {}", median(&one, &key));
    }
    // Both directions in one report.
    let one = only(&text(test, "fio-unified/unified.json").expect("there"));
    let key = keys(&one, "iops").remove(0);
    assert!(key.contains("op=mixed") && (median(&one, &key) - 6141.736).abs() < 0.01, "{key}");
    // What was refused is no fault of a device.
    for file in ["einval.txt", "enotty-trim.json"] {
        let text = text(test, &format!("fio-einval/{file}")).expect("there");
        let one = only(&text);
        let failed = one.findings.iter().find(|finding| finding.rule == "failed-io").expect("it failed");
        assert!(
            failed.cause.contains("refused") && !failed.cause.contains("cable"),
            "{file}: {}",
            failed.cause
        );
    }
    let text_of = |name: &str| text(test, name).expect("there");
    for (from, to, word) in [
        ("Invalid argument", "Permission denied", "permission"),
        ("Invalid argument", "No such file or directory", "does not exist"),
        ("Invalid argument", "No space left on device", "full"),
        ("Invalid argument", "Input/output error", "cable"),
    ] {
        let text = text_of("fio-einval/einval.txt").replace(from, to).replace("err=22", "err= 99");
        let failed = only(&text).findings.into_iter().find(|finding| finding.rule == "failed-io");
        let cause = failed.expect("it failed").cause;
        assert!(cause.contains(word), "{to}: {cause}");
    }
    // No disk.
    for (file, word) in [("devzero.json", "/dev/zero"), ("shm.json", "tmpfs")] {
        let one = only(&text_of(&format!("fio-buffered-json/{file}")));
        assert!(one.figures.iter().all(|figure| figure.note.contains(word)), "{file}");
    }
    let buffered = text_of("fio-buffered-json/shm.json").replace("/dev/shm", "/srv/data");
    assert!(only(&buffered).figures.iter().all(|figure| figure.note.contains("page cache")));
}
