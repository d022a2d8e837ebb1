//! Faults of a disk that a guest's kernel can make and few development machines can: a device that
//! is slow (dm-delay) or fails in the midst of a run (dm-flakey), a limit of the control group
//! (io.max), a file system that becomes read-only.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{in_guest_with, read_json, runs};

/// The medians of a metric, by series key.
fn medians(found: &Value, metric: &str) -> Vec<(String, f64)> {
    let end = format!("#{metric}");
    let series = found["series"].as_array().expect("series").iter();
    let of = |one: &Value| Some((one["key"].as_str()?.to_string(), one["median"].as_f64()?));
    series.filter_map(of).filter(|(key, _)| key.ends_with(&end)).collect()
}

/// What a rule said.
fn headlines(found: &Value, rule: &str) -> Vec<String> {
    let findings = found["findings"].as_array().expect("findings").iter();
    findings
        .filter(|one| one["rule"] == rule)
        .filter_map(|one| one["headline"].as_str().map(str::to_string))
        .collect()
}

/// Visits that counted, and the reasons of those that did not.
fn visits(folder: &TempDir, name: &str) -> (usize, Vec<String>) {
    let run = runs::read(&runs::run_file(&folder.path().join(format!("out-{name}"))));
    let failed: Vec<String> = run
        .visits
        .iter()
        .filter_map(|visit| visit.reason.as_ref().map(|reason| format!("{reason:?}")))
        .collect();
    (run.visits.len() - failed.len(), failed)
}

#[test]
#[ignore = "four minutes of one guest: make lab"]
fn planted_faults_of_a_disk_are_told() {
    let image = tempfile::tempdir().expect("a temporary folder").path().with_extension("img");
    let options = [
        "--cmdline",
        "nvme.poll_queues=1",
        "--modules",
        "dm-delay,dm-flakey",
        "--tools",
        "dmsetup",
        "--disk",
        image.to_str().expect("UTF-8"),
        "--disk-size",
        "512M",
    ];
    let script = include_str!("disk.sh");
    let brought = in_guest_with("planted_faults_of_a_disk_are_told", &options, "uma", &[], script);
    // The sparse file is no longer needed.
    _ = fs::remove_file(&image);
    let Some(folder) = brought else { return };
    let text = |file: String| fs::read_to_string(folder.path().join(file)).expect("the guest wrote it");
    for name in ["polled", "psync", "delay", "limit", "after"] {
        assert_eq!(text(format!("{name}.left")), "", "files that {name} left");
    }
    // In the midst of a visit a disk may end with a folder on it, which cannot be removed then.
    for name in ["readonly", "flakey"] {
        let said = text(format!("{name}.said"));
        for left in text(format!("{name}.left")).lines() {
            assert!(said.contains(&format!("left as it is: /mnt/{left}, because")), "{name} {left}: {said}");
        }
    }
    // What lies under a directory is seen to the device.
    let stack = &read_json(&folder, "machine.json")["disk"]["stack"];
    assert_eq!((stack[0]["name"].as_str(), stack[1]["name"].as_str()), (Some("dm-0"), Some("nvme0n1")));

    // Polled, at both depths; pread knows only one, whatever was asked for.
    for (name, depths) in [("polled", vec!["1", "8"]), ("psync", vec!["1"])] {
        let found = read_json(&folder, &format!("{name}.json"));
        let rates = medians(&found, "iops");
        assert_eq!(rates.len(), depths.len(), "{name}: {rates:?}");
        for ((key, iops), depth) in rates.iter().zip(depths) {
            let engine = format!("engine={name}&op=read/block=4096&depth={depth}#");
            assert!(key.contains(&engine) && *iops > 0.0, "{key}: {iops}");
        }
    }

    // A read at depth 1 takes 10 ms and more, so there are not more than a hundred a second.
    let found = read_json(&folder, "delay.json");
    let alone = |metric: &str| -> Vec<f64> {
        medians(&found, metric)
            .into_iter()
            .filter(|(key, _)| key.contains("depth=1#"))
            .map(|(_, value)| value)
            .collect()
    };
    let (iops, longest) = (alone("iops"), alone("latency_max"));
    assert!(!iops.is_empty() && iops.iter().all(|iops| *iops < 105.0), "{iops:?}");
    assert!(!longest.is_empty() && longest.iter().all(|us| *us > 9_000.0), "{longest:?}");
    assert_eq!(headlines(&found, "disk-throttled"), [""; 0]);

    let found = read_json(&folder, "limit.json");
    let told = headlines(&found, "disk-throttled");
    assert!(
        told.len() == 1 && told[0].contains("A control group limits reads to 100 operations per second"),
        "{told:?}"
    );
    // The rate itself proves nothing: after a stall of the host, saved-up reads pass at once.
    assert!(!medians(&found, "iops").is_empty());

    for (name, words) in [("readonly", "Read-only file system"), ("flakey", "Input/output error")] {
        let (counted, failed) = visits(&folder, name);
        assert!(counted >= 1, "{name}: what was measured before is kept");
        assert!(failed.iter().any(|why| why.contains(words)), "{name}: {failed:?}");
        let told = headlines(&read_json(&folder, &format!("{name}.json")), "disk-failed-io");
        assert!(told.iter().any(|told| told.contains(words)), "{name}: {told:?}");
    }
}
