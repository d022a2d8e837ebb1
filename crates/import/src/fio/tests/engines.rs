//! Engines and places of jobs: io_uring and libaio, which have one key where a file has only one of
//! them; memory that is no disk; what the kernel refused.

use super::values;
use crate::read;
use crate::tests::recorded;

/// The keys and values of `iops` in each result of a text.
fn iops(text: &str) -> Vec<Vec<(String, f64)>> {
    let all = read(text.as_bytes()).expect("a result");
    let of = |one: &crate::Imported| {
        let keys = one.figures.iter().map(|figure| figure.judged.series.key.clone());
        let own = keys.filter(|key| key.ends_with("#iops"));
        own.flat_map(|key| values(one, &key).into_iter().map(move |value| (key.clone(), value))).collect()
    };
    all.iter().map(of).collect()
}

#[test]
fn two_engines_are_two_series() {
    let text = recorded("fio-debian-libaio-io-uring.txt");
    let without = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with('$')).map(|line| format!("{line}\n")).collect()
    };
    let (libaio, uring) = text.split_at(text.rfind("$ fio").expect("two"));
    for both in
        [text.clone(), without(&text), format!("{uring}{libaio}"), without(&format!("{uring}{libaio}"))]
    {
        let found: Vec<(String, f64)> = iops(&both).concat();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].0 != found[1].0 && found.iter().any(|(key, _)| key.contains("engine=libaio")),
            "{found:?}"
        );
    }
    // A job without a twin is compared with Assay's.
    for alone in [libaio, uring] {
        let found = iops(alone).concat();
        assert!(found.len() == 1 && !found[0].0.contains("engine="), "{found:?}");
    }
    // Other work is distinguished by that.
    let other = text.replacen("iodepth=4", "iodepth=8", 1).replacen("iodepth=4", "iodepth=8", 1);
    let other = other.replacen("ioengine=libaio, iodepth=4", "ioengine=libaio, iodepth=8", 1);
    assert!(iops(&other).concat().iter().all(|(key, _)| !key.contains("engine=")), "{other}");
}

/// JSON says what its words say: which files are on no disk, and what the page cache had.
#[test]
fn what_is_no_disk_is_said_in_json() {
    let notes = |text: &str| -> Vec<String> {
        let all = read(text.as_bytes()).expect("a result");
        all.into_iter().flat_map(|one| one.figures).map(|figure| figure.note).collect()
    };
    let shm = recorded("fio-shm.json");
    let zero = recorded("fio-dev-zero.json");
    for (text, word) in [
        (shm.clone(), "in memory (tmpfs)"),
        (shm.replace("/dev/shm", "/run/shm"), "in memory (tmpfs)"),
        (shm.replace("/dev/shm", "/srv/data"), "page cache"),
        (shm.replace("\"psync\"", "\"null\""), "the null engine does no I/O"),
        (zero.clone(), "/dev/zero is not a device"),
        (zero.replace("/dev/zero", "/dev/full"), "/dev/full is not a device"),
        (zero.replace("/dev/zero", "/dev/zram0"), "/dev/zram0 is memory"),
        (zero.replace("/dev/zero", "/dev/ram1"), "/dev/ram1 is memory"),
    ] {
        let found = notes(&text);
        assert!(!found.is_empty() && found.iter().all(|note| note.contains(word)), "{word}: {found:?}");
    }
}

#[test]
fn refusals_of_the_kernel_are_no_faulty_device() {
    let text = recorded("fio-trim-refused.json");
    let cause = |text: &str| {
        let all = read(text.as_bytes()).expect("a result");
        all[0].findings.iter().map(|finding| finding.cause.clone()).collect::<Vec<_>>().join("\n")
    };
    for (error, word) in [
        (25, "refused a request"),
        (22, "refused a request"),
        (95, "refused a request"),
        (13, "permission"),
        (30, "permission"),
        (2, "does not exist"),
        (28, "was full"),
        (5, "faulty"),
    ] {
        let told = cause(&text.replace("\"error\" : 25", &format!("\"error\" : {error}")));
        assert!(told.contains(word), "{error}: {told}");
        assert!(error == 5 || !told.contains("faulty"), "{error}: {told}");
    }
}
