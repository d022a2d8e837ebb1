//! Disk rows with given figures, on disks with given descriptions.

use serde_json::{Value, json};

use super::edited::{Edit, server_of};
use super::{Case, case};
use crate::runs::{findings, pretended};

mod rows;

use rows::{Figures, Row, at, direct, row, run_of};

fn measured(disk: &str, rows: &[Row]) -> Value {
    run_of(Edit::of(&pretended("selftest.steady")), disk, rows).diagnosed()
}

/// An NVMe drive below a partition, with room and a timer.
const NVME: &str = "path /srv\ntotal_bytes 1000000000000\nfree_bytes 600000000000\navailable_bytes 550000000000\nmount /srv\n\
    filesystem ext4\nsource /dev/nvme0n1p1\noptions rw,relatime\ntrim_timer /etc/systemd/system/timers.target.wants/fstrim.timer\n\
    block nvme0n1p1\nnumber 259:1\npartition 1\nbelow nvme0n1\nblock nvme0n1\n\
    sysfs /sys/devices/pci0000:00/0000:3d:00.0/nvme/nvme0/nvme0n1\nnumber 259:0\nsize 2000000000\nqueue/rotational 0\n\
    queue/write_cache write back\nqueue/discard_max_bytes 2199023255040\ncurrent_link_speed 8.0 GT/s PCIe\ncurrent_link_width 4\n";

const TURNING: &str = "path /srv\nmount /srv\nfilesystem xfs\noptions rw\nblock sda\nnumber 8:0\n\
    sysfs /sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda\nqueue/rotational 1\nqueue/write_cache write back\n";

const PLAYED: &str = "path /srv\nmount /srv\nfilesystem ext4\noptions rw,relatime\nblock vda\nnumber 254:0\n\
    sysfs /sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda\nqueue/rotational 1\nqueue/write_cache write back\n\
    queue/discard_max_bytes 1073741824\n";

/// Everything as it should be.
const FINE: Figures = &[
    ("iops", &[10_000.0]),
    ("bandwidth", &[0.04096]),
    ("latency_p50", &[95.0]),
    ("latency_p99", &[160.0]),
    ("latency_p999", &[400.0]),
    ("latency_max", &[2500.0]),
    ("generator_busy", &[0.2]),
    ("device_share", &[1.0]),
    ("in_flight", &[0.9]),
];

fn fine() -> Row<'static> {
    row("disk.random", direct("read"), vec![(at(4096, 1), FINE)])
}

fn with(change: &str, to: &str) -> String {
    assert!(NVME.contains(change), "{change}");
    NVME.replace(change, to)
}

/// All visits to a row failed with these words.
fn failing(bench: &str, kind: &str, words: &str) -> Case {
    let rows = [row(bench, direct("read"), vec![(at(4096, 1), FINE)]), fine_elsewhere()];
    let mut run = run_of(Edit::of(&pretended("selftest.steady")), NVME, &rows);
    run.each(|number, visit| {
        if number % 2 == 0 {
            visit["samples"] = json!([]);
            visit["reason"] = json!({"kind": kind, "why": words});
        }
    });
    case(words, run.diagnosed())
}

fn fine_elsewhere() -> Row<'static> {
    row("disk.sequential", direct("write"), vec![(at(1 << 20, 8), FINE)])
}

pub fn io_that_failed() -> Vec<Case> {
    let read = failing(
        "disk.random",
        "failed",
        "read of 4096 bytes at offset 1048576 failed: Input/output error (os error 5)",
    );
    let finding = findings(&read.results, "disk-failed-io")[0].to_string();
    for word in ["1048576", "/dev/nvme0n1p1", "nvme0n1p1|nvme0n1", "10 of 10"] {
        assert!(finding.contains(word), "{word}: {finding}");
    }
    let room = "cannot fill the test file in /srv: write of 4096 bytes at offset 0 failed: No space left on device (os error 28)";
    vec![
        read,
        failing("disk.random", "failed", room),
        failing("disk.random", "failed", "read of 4096 bytes at offset 8192 came back with 512 bytes"),
        failing(
            "disk.random",
            "failed",
            "write of 4096 bytes at offset 0 failed: Connection timed out (os error 110)",
        ),
        failing("disk.sync", "failed", "cannot make the test file: Read-only file system (os error 30)"),
        failing("disk.verify", "wrong-answer", "the block at offset 8192 holds generation 1 instead of 2"),
    ]
}

pub fn io_that_came_back() -> Vec<Case> {
    vec![
        case("rows that work", measured(NVME, &[fine()])),
        failing("disk.random", "failed", "cannot start a process: Cannot allocate memory (os error 12)"),
    ]
}

fn moved(disk: &str, params: Value, share: f64, p50: f64) -> Value {
    let figures: Figures =
        &[("iops", &[10_000.0]), ("bandwidth", &[0.04]), ("device_share", &[share]), ("latency_p50", &[p50])];
    measured(disk, &[row("disk.random", params, vec![(at(4096, 1), figures)])])
}

const LOOP: &str = "path /mnt\nmount /mnt\nfilesystem ext4\nblock loop0\nnumber 7:0\nloop/backing_file /srv/image\nloop/dio 0\nbelow sda\n\
    block sda\nnumber 8:0\nqueue/rotational 0\n";

pub fn what_the_device_did_not_move() -> Vec<Case> {
    let buffered = json!({"op": "read", "cache": "buffered"});
    let cached = moved(NVME, direct("read"), 0.3, 90.0);
    let finding = findings(&cached, "disk-page-cache")[0];
    assert_eq!((&finding["effect"], &finding["severity"]), (&json!("rejects"), &json!("problem")));
    vec![
        case("direct, and not moved", cached),
        case("buffered", moved(NVME, buffered, 0.0, 2.0)),
        case("faster than it turns", moved(TURNING, direct("read"), 1.0, 300.0)),
        case("a file behind the page cache", moved(LOOP, direct("read"), 1.0, 60.0)),
    ]
}

pub fn what_the_device_moved() -> Vec<Case> {
    vec![
        case("all of it", moved(NVME, direct("read"), 1.0, 90.0)),
        case("nearly all", moved(NVME, direct("write"), 0.91, 90.0)),
        case("a disk that turns", moved(TURNING, direct("read"), 1.0, 8000.0)),
        case(
            "a loop device past the cache",
            moved(&LOOP.replace("dio 0", "dio 1"), direct("read"), 1.0, 60.0),
        ),
    ]
}

/// Reads at these points: block, depth, operations a second.
fn reads(run: Edit, disk: &str, points: &[(u64, u64, f64)]) -> Edit {
    let values: Vec<[(f64, f64); 1]> =
        points.iter().map(|(block, _, iops)| [(*iops, iops * *block as f64 / 1e9)]).collect();
    let figures: Vec<Vec<(&str, &[f64])>> = values
        .iter()
        .map(|value| {
            vec![
                ("iops", std::slice::from_ref(&value[0].0)),
                ("bandwidth", std::slice::from_ref(&value[0].1)),
                ("device_share", &[1.0][..]),
            ]
        })
        .collect();
    let points = points
        .iter()
        .zip(&figures)
        .map(|((block, depth, _), figures)| (at(*block, *depth), figures.as_slice()));
    run_of(run, disk, &[row("disk.random", direct("read"), points.collect())])
}

fn reading(points: &[(u64, u64, f64)]) -> Value {
    reads(Edit::of(&pretended("selftest.steady")), NVME, points).diagnosed()
}

/// The same in a control group that has these files.
fn held(files: &[(&str, &str)], iops: f64) -> Value {
    let mut run = reads(Edit::of(&pretended("selftest.steady")), NVME, &[(4096, 32, iops)]);
    let snapshot = &mut run.header()["snapshot"];
    for (path, text) in files {
        let mut folder = &mut *snapshot;
        for name in path.split('/') {
            folder = &mut folder[name];
        }
        *folder = json!(text);
    }
    run.diagnosed()
}

const GROUP_2: [(&str, &str); 3] = [
    ("/proc/self/cgroup", "0::/a"),
    ("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
    ("/sys/fs/cgroup/a/io.max", "259:0 rbps=max wbps=max riops=2000 wiops=max"),
];

const GROUP_1: [(&str, &str); 3] = [
    ("/proc/self/cgroup", "7:blkio:/a"),
    ("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio"),
    ("/sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device", "259:0 8192000"),
];

pub fn speeds_that_somebody_set() -> Vec<Case> {
    let cap = reading(&[(4096, 1, 1900.0), (4096, 16, 3002.0), (4096, 64, 2999.0), (65536, 16, 3001.0)]);
    let told = findings(&cap, "disk-throttled")[0]["headline"].to_string();
    assert!(told.contains("3000 operations per second") && told.contains("cap"), "{told}");
    let bytes =
        reading(&[(4096, 64, 20_000.0), (262_144, 8, 476.9), (1 << 20, 4, 119.2), (1 << 20, 16, 119.25)]);
    let told = findings(&bytes, "disk-throttled")[0]["headline"].to_string();
    assert!(told.contains("125 MB/s"), "{told}");
    vec![
        case("io.max", held(&GROUP_2, 1990.0)),
        case("blkio.throttle", held(&GROUP_1, 2000.0)),
        case("a cap of operations", cap),
        case("a cap of bytes", bytes),
    ]
}

pub fn speeds_that_nobody_set() -> Vec<Case> {
    vec![
        case("a limit far above", held(&GROUP_2, 1500.0)),
        case("no round number", reading(&[(4096, 16, 3370.0), (4096, 64, 3368.0), (65536, 16, 3369.0)])),
        case(
            "one more with every depth",
            reading(&[(4096, 1, 3000.0), (4096, 16, 40_000.0), (65536, 16, 30_000.0)]),
        ),
        case("the device's end at one block size", reading(&[(4096, 16, 3000.0), (4096, 64, 3001.0)])),
    ]
}

fn asked(busy: f64, jobs: Option<f64>) -> Value {
    let one: Figures = &[("iops", &[100_000.0]), ("generator_busy", &[busy]), ("cpu_per_io", &[9.7])];
    let rate = [jobs.unwrap_or(100_000.0)];
    let many: Figures = &[("iops", &rate), ("generator_busy", &[0.6])];
    let mut rows = vec![row("disk.random", direct("read"), vec![(at(4096, 32), one)])];
    if jobs.is_some() {
        rows.push(Row { jobs: 2, ..row("disk.random", direct("read"), vec![(at(4096, 32), many)]) });
    }
    measured(NVME, &rows)
}

pub fn generators_without_time() -> Vec<Case> {
    let proven = asked(0.97, Some(190_000.0));
    let cause = findings(&proven, "disk-generator-bound")[0]["cause"].to_string();
    assert!(cause.contains("2 jobs did 1.9 times as much"), "{cause}");
    vec![case("more jobs do more", proven), case("one job alone", asked(0.92, None))]
}

pub fn generators_with_time() -> Vec<Case> {
    vec![case("half of it", asked(0.5, None)), case("nearly all", asked(0.89, Some(120_000.0)))]
}

fn beside(disk: &str, op: &str, share: f64) -> Row<'static> {
    let figures: &'static [(&str, &[f64])] = match (share * 10.0) as u32 {
        15 => &[("bandwidth", &[0.2]), ("device_share", &[1.5])],
        10 => &[("bandwidth", &[0.2]), ("device_share", &[1.05])],
        _ => &[("bandwidth", &[0.2]), ("device_share", &[2.0])],
    };
    assert!(!disk.is_empty());
    row("disk.sequential", direct(op), vec![(at(1 << 20, 8), figures)])
}

const MIRROR: &str =
    "path /srv\nfilesystem ext4\nblock md0\nmd/level raid1\nbelow sda\nbelow sdb\nblock sda\nblock sdb\n";

pub fn others_on_the_disk() -> Vec<Case> {
    vec![
        case("others read", measured(NVME, &[beside(NVME, "read", 1.5)])),
        case("others write", measured(NVME, &[beside(NVME, "write", 1.5)])),
    ]
}

pub fn nobody_else_on_the_disk() -> Vec<Case> {
    vec![
        case("a twentieth", measured(NVME, &[beside(NVME, "read", 1.05)])),
        case(
            "a mirror writes twice",
            measured(MIRROR, &[beside(MIRROR, "read", 1.05), beside(MIRROR, "write", 2.0)]),
        ),
    ]
}

fn sustained(level: impl Fn(usize) -> f64) -> Value {
    let mut random = fastrand::Rng::with_seed(11);
    let values: Vec<f64> =
        (0..40).map(|period| level(period) * (1.0 + 0.02 * (random.f64() - 0.5))).collect();
    let figures: Figures = &[("bandwidth", &values)];
    measured(NVME, &[row("disk.sustained", json!({"op": "write"}), vec![(at(1 << 20, 8), figures)])])
}

/// Ten processes at two levels: what it falls to within the one numbered `falls`, and what the
/// others are at.
fn sustained_in_turn(falls: usize, level: impl Fn(usize) -> f64) -> Value {
    let figures: Figures = &[("bandwidth", &[1.0; 40])];
    let rows = [row("disk.sustained", json!({"op": "write"}), vec![(at(1 << 20, 8), figures)])];
    let mut run = run_of(Edit::of(&pretended("selftest.steady")), NVME, &rows);
    let mut random = fastrand::Rng::with_seed(5);
    run.each(|number, visit| {
        let value =
            |period: usize| if number == falls { if period < 30 { 2.0 } else { 0.5 } } else { level(number) };
        let values: Vec<f64> =
            (0..40).map(|period| value(period) * (1.0 + 0.02 * (random.f64() - 0.5))).collect();
        visit["samples"][0]["work"] = json!(values);
    });
    run.diagnosed()
}

pub fn speeds_that_do_not_last() -> Vec<Case> {
    let credits = sustained_in_turn(1, |number| if number == 0 { 2.0 } else { 0.5 });
    let told = findings(&credits, "disk-not-steady")[0].to_string();
    // Forty periods of one second at 2 GB/s, and thirty.
    assert!(told.contains("1 of 10") && told.contains("130 GiB"), "{told}");
    let spent = sustained(|period| if period < 20 { 2.0 } else { 0.5 });
    let told = findings(&spent, "disk-not-steady")[0].to_string();
    // Twenty periods of one second at 2 GB/s.
    assert!(told.contains("37.3 GiB") || told.contains("37.2 GiB"), "{told}");
    assert!(told.contains("SLC"), "{told}");
    vec![
        case("a cache that was full", spent),
        case("credits that the second process spent", credits),
        case("a slow fall", sustained(|period| 2.0 - 0.03 * period as f64)),
    ]
}

pub fn speeds_that_last() -> Vec<Case> {
    vec![
        case("one level", sustained(|_| 1.0)),
        case("one process of ten, and the next is as fast as before", sustained_in_turn(4, |_| 2.0)),
        case("a dip that ends", sustained(|period| if (10..14).contains(&period) { 0.6 } else { 1.0 })),
    ]
}

fn synced(disk: &str, p50: f64) -> Value {
    let figures: Figures = &[("latency_p50", &[p50]), ("iops", &[1e6 / p50])];
    measured(disk, &[row("disk.sync", json!({"op": "fsync"}), vec![(json!({"block": 4096}), figures)])])
}

pub fn syncs_too_fast_to_be_true() -> Vec<Case> {
    let off = with("options rw,relatime", "options rw,nobarrier");
    vec![
        case("a host that says yes", synced(PLAYED, 8.0)),
        case("a disk that cannot have turned", synced(TURNING, 300.0)),
        case("no barriers", synced(&off, 400.0)),
        case("a volatile cache", synced(NVME, 15.0)),
    ]
}

pub fn syncs_that_take_their_time() -> Vec<Case> {
    let protected = with("write_cache write back", "write_cache write through");
    vec![
        case("flash", synced(NVME, 400.0)),
        case("a cache that survives", synced(&protected, 15.0)),
        case("a disk that turns", synced(TURNING, 8000.0)),
        case(
            "turning disks behind a cache with a battery",
            synced(&TURNING.replace("write back", "write through"), 100.0),
        ),
    ]
}

fn tail(p999: f64, max: f64) -> Value {
    let (p999, max) = ([p999], [max]);
    let figures: Figures = &[
        ("iops", &[9000.0]),
        ("latency_p50", &[100.0]),
        ("latency_p99", &[300.0]),
        ("latency_p999", &p999),
        ("latency_max", &max),
    ];
    measured(NVME, &[row("disk.random", direct("write"), vec![(at(4096, 1), figures)])])
}

pub fn one_in_a_thousand() -> Vec<Case> {
    let stall = findings(&tail(400.0, 800_000.0), "disk-latency-tail")[0]["headline"].to_string();
    assert!(stall.contains("The longest random write of a pass") && !stall.contains("400"), "{stall}");
    vec![case("a flush", tail(22_000.0, 40_000.0)), case("one long stall", tail(400.0, 800_000.0))]
}

pub fn all_of_a_thousand() -> Vec<Case> {
    let figures: Figures = &[("iops", &[9000.0]), ("latency_p50", &[100.0]), ("latency_p999", &[400.0])];
    let rows = [row("disk.random", direct("read"), vec![(at(4096, 1), figures)])];
    let visits = |bad: u64| {
        let mut two = run_of(Edit::of(&pretended("selftest.steady")), NVME, &rows);
        two.keep_visits(|visit| visit["pass"].as_u64() < Some(2));
        two.samples(|number, samples| {
            if samples["metrics"] == json!(["latency_p999"]) && (number as u64) < bad {
                samples["work"] = json!(vec![31_000.0; 8]);
            }
        });
        two.diagnosed()
    };
    assert_eq!(findings(&visits(2), "disk-latency-tail").len(), 1, "both visits are bad");
    vec![
        case("close together", tail(400.0, 3000.0)),
        case("far apart and short", tail(3000.0, 9000.0)),
        case("in one of two visits", visits(1)),
    ]
}

/// Depth, operations a second and median latency, us.
fn deep(points: &[(u64, f64, f64)]) -> Value {
    let figures: Vec<Vec<(&str, &[f64])>> = points
        .iter()
        .map(|(_, iops, p50)| {
            vec![("iops", std::slice::from_ref(iops)), ("latency_p50", std::slice::from_ref(p50))]
        })
        .collect();
    let points =
        points.iter().zip(&figures).map(|((depth, ..), figures)| (at(4096, *depth), figures.as_slice()));
    measured(NVME, &[row("disk.random", direct("read"), points.collect())])
}

pub fn depth_that_only_waits() -> Vec<Case> {
    let flat = deep(&[(1, 10e3, 100.0), (32, 100e3, 320.0), (64, 101e3, 640.0), (128, 100e3, 1280.0)]);
    let told = findings(&flat, "disk-depth-useless")[0]["headline"].to_string();
    assert!(told.contains("A queue of 128 instead of 32 adds no reads"), "{told}");
    vec![case("full at 32", flat)]
}

pub fn depth_that_is_worth_it() -> Vec<Case> {
    vec![
        case("more with each", deep(&[(1, 10e3, 100.0), (32, 200e3, 160.0), (64, 300e3, 210.0)])),
        case("a rate that stays without waiting", deep(&[(1, 10e3, 100.0), (32, 10e3, 100.0)])),
    ]
}

pub fn filesystems_without_room() -> Vec<Case> {
    let full = with("free_bytes 600000000000", "free_bytes 70000000000");
    vec![case("93 % used", measured(&full, &[fine(), fine_elsewhere()]))]
}

pub fn filesystems_with_room() -> Vec<Case> {
    let most = with("free_bytes 600000000000", "free_bytes 110000000000");
    vec![case("40 % used", measured(NVME, &[fine()])), case("89 % used", measured(&most, &[fine()]))]
}

pub fn free_blocks_that_nobody_tells() -> Vec<Case> {
    let timer = "trim_timer /etc/systemd/system/timers.target.wants/fstrim.timer";
    let takes = "queue/discard_max_bytes 2199023255040";
    let crypt = "block nvme0n1p1";
    let layered = with(
        crypt,
        "block dm-0\ndm/uuid CRYPT\ndm/name x\nbelow nvme0n1p1\nqueue/discard_max_bytes 0\nblock nvme0n1p1",
    );
    let swallowed = measured(&layered, &[fine()]);
    let told = findings(&swallowed, "disk-no-trim")[0]["headline"].to_string();
    assert!(told.contains("`dm-0` (dm-crypt)"), "{told}");
    vec![
        case("no timer", measured(&with(timer, "trim_timer none"), &[fine()])),
        case("a drive that takes none", measured(&with(takes, "queue/discard_max_bytes 0"), &[fine()])),
        case("a layer that drops them", swallowed),
    ]
}

pub fn free_blocks_that_are_told() -> Vec<Case> {
    let timer = "trim_timer /etc/systemd/system/timers.target.wants/fstrim.timer";
    let option = NVME.replace(timer, "trim_timer none").replace("rw,relatime", "rw,relatime,discard");
    vec![
        case("a timer", measured(NVME, &[fine()])),
        case("an option", measured(&option, &[fine()])),
        case("a played disk", measured(PLAYED, &[fine()])),
    ]
}

#[test]
fn direct_rows_are_no_faster_than_the_link_of_their_disk() {
    // On bare metal: a guest's links are invented. 8 GT/s × 4 carry 3.94 GB/s.
    let fired = |gb_per_s: f64, cache: &str| {
        let tree = server_of(1);
        let words = format!("--quick --only selftest.steady --pretend 7 --root {}", tree.root().display());
        let value = [gb_per_s];
        let figures: Figures = &[("bandwidth", &value), ("device_share", &[1.0])];
        let rows =
            [row("disk.sequential", json!({"op": "read", "cache": cache}), vec![(at(1 << 20, 8), figures)])];
        let mut run = run_of(Edit::of(&words), NVME, &rows);
        let header = run.header();
        for metric in header["catalogue"][0]["metrics"].as_array_mut().expect("metrics") {
            if metric["name"] == "bandwidth" {
                metric["form"] = json!({"work-per-time": {"scale": 1.0}});
            }
        }
        run.samples(|_, samples| {
            if samples["metrics"] == json!(["bandwidth"]) {
                // Bytes in windows of 2 ms.
                let works: Vec<f64> = serde_json::from_value(samples["work"].clone()).expect("a column");
                samples["ns"] = json!(vec![2e6; works.len()]);
                samples["work"] = works.iter().map(|value| value * 2e6).collect();
            }
        });
        let results = run.diagnosed();
        !findings(&results, "above-ceiling").is_empty()
    };
    assert!(fired(4.5, "direct"));
    assert!(!fired(3.5, "direct"));
    assert!(!fired(4.5, "buffered"), "the page cache has no link");
}
