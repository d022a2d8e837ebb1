//! Disks with real faults, and whole devices: on loop devices, which only root can make.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::run_file;
use serde_json::Value;
use tempfile::TempDir;

use crate::host::{Group, is_root, skipped, wrapped};
use crate::runs::{
    Ended, end, findings, folder_of_nobody, is_tidy, results, run_files, run_into, start, unprivileged,
    visits_so_far,
};

mod medium;
mod sharing;

const MIB: u64 = 1 << 20;

/// A loop device over a sparse file.
pub struct Loop {
    folder: TempDir,
    device: PathBuf,
}

impl Loop {
    pub fn new(bytes: u64) -> Result<Loop, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("image");
        fs::File::create(&image).expect("a file").set_len(bytes).expect("sparse");
        Loop::over(folder, &image, &[])
    }

    /// Over any file or device; the folder is its own.
    fn over(folder: TempDir, image: &Path, options: &[&str]) -> Result<Loop, String> {
        if !is_root() {
            return Err("loop devices need root".into());
        }
        let made = Command::new("losetup").args(["--find", "--show"]).args(options).arg(image).output();
        match made {
            Ok(output) if output.status.success() => {
                let device = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
                Ok(Loop { folder, device })
            }
            Ok(output) => Err(format!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("losetup: {error}")),
        }
    }

    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn cut(&self, bytes: u64) {
        let image = OpenOptions::new().write(true).open(self.image()).expect("the image");
        image.set_len(bytes).expect("cut");
    }

    /// The kernel's name of it.
    pub fn name(&self) -> String {
        self.device.file_name().expect("a name").to_string_lossy().into_owned()
    }

    pub fn path(&self) -> &str {
        self.device.to_str().expect("text")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

/// A file system on a loop device.
struct Small {
    point: TempDir,
    on: Loop,
}

impl Small {
    fn new(bytes: u64) -> Result<Small, String> {
        let on = Loop::new(bytes)?;
        let point = tempfile::tempdir().expect("a folder");
        let ran = |command: &mut Command| match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
            Err(error) => Err(format!("{command:?}: {error}")),
        };
        // No block is kept for root: all that is free may be used.
        ran(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&on.device))?;
        ran(Command::new("mount").arg(&on.device).arg(point.path()))?;
        Ok(Small { point, on })
    }

    fn path(&self) -> &str {
        self.point.path().to_str().expect("text")
    }

    /// Allocates a file of `bytes` bytes.
    fn filled(&self, bytes: u64) {
        let file = fs::File::create(self.point.path().join("filler")).expect("a file");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).expect("room");
    }

    fn free(&self) -> u64 {
        let room = rustix::fs::statvfs(self.point.path()).expect("a file system");
        room.f_bavail * room.f_frsize
    }

    /// What is there besides what was before.
    fn left(&self) -> Vec<String> {
        left_in(self.point.path())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.point.path()).status();
    }
}

fn left_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "lost+found" && name != "filler").collect()
}

/// A quick run into a folder, whatever others do here meanwhile: then nothing may be valid.
fn quick(dir: &Path, words: &str) -> Ended {
    let ended = end(&mut run_into(dir, &format!("--quick --force {words}")));
    ended.sane();
    assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
    ended
}

fn finding(results: &Value, rule: &str) -> String {
    let found = findings(results, rule);
    assert!(!found.is_empty(), "{rule} is silent: {}", results["findings"]);
    found.iter().map(|finding| finding.to_string()).collect()
}

#[test]
fn a_read_error_of_a_device_is_named_by_its_offset() {
    let device = match Loop::new(256 * MIB) {
        Ok(device) => device,
        Err(why) => return skipped("a_read_error_of_a_device_is_named_by_its_offset", why),
    };
    device.cut(64 * MIB);
    let out = tempfile::tempdir().expect("a folder");
    let words = format!("--only disk.random --device {} --confirm {}", device.path(), device.name());
    // Nothing else was asked for, and nothing of it could be measured.
    quick(out.path(), &words);
    let results = results(out.path());
    let told = finding(&results, "disk-failed-io");
    assert!(told.contains("Input/output error") && told.contains(device.path()), "{told}");
    let offsets = told.split("at offset ").skip(1).filter_map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    });
    let offsets: Vec<u64> = offsets.collect();
    assert!(!offsets.is_empty() && offsets.iter().all(|offset| *offset >= 64 * MIB - 4096), "{offsets:?}");
    is_tidy(out.path());
}

#[test]
fn a_file_that_is_cut_below_a_mounted_filesystem_costs_what_it_touches() {
    let small = match Small::new(1024 * MIB) {
        Ok(small) => small,
        Err(why) => {
            return skipped("a_file_that_is_cut_below_a_mounted_filesystem_costs_what_it_touches", why);
        }
    };
    let out = tempfile::tempdir().expect("a folder");
    let done = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        // What is written makes the image grow again, so it is cut again and again.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                small.on.cut(60 * MIB);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        quick(out.path(), &format!("--only disk.random,selftest.steady --dir {}", small.path()));
        done.store(true, Ordering::Relaxed);
        results(out.path())
    });
    let told = finding(&results, "disk-failed-io");
    assert!(told.contains("Input/output error") && told.contains(&small.on.name()), "{told}");
    let steady = crate::runs::series(&results, "selftest.steady");
    assert!(steady["n"].as_u64().is_some_and(|n| n > 0), "the others go on: {steady}");
    assert_eq!(small.left(), Vec::<String>::new());
}

#[test]
fn a_throttle_of_our_group_is_named() {
    let name = "a_throttle_of_our_group_is_named";
    let folder = tempfile::tempdir().expect("a folder");
    let device = folder.path().metadata().expect("a folder").dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let throttle = format!("{number} 16777216");
    let group = match Group::new("blkio", &[("blkio.throttle.read_bps_device", &throttle)]) {
        Ok(group) => group,
        Err(why) => return skipped(name, why),
    };
    let out = tempfile::tempdir().expect("a folder");
    let words = format!("--quick --force --only disk.sequential --dir {}", folder.path().display());
    let ended = end(&mut group.inside(&run_into(out.path(), &words)));
    ended.sane();
    let results = results(out.path());
    let told = finding(&results, "disk-throttled");
    assert!(told.contains("blkio.throttle.read_bps_device") && told.contains("16.8 MB/s"), "{told}");
    let reads = crate::runs::series(&results, "disk.sequential@one-cpu?cache=direct&op=read");
    let ratio = reads["median"].as_f64().expect("a number") / 0.016_777_216;
    assert!((0.95..1.05).contains(&ratio), "{reads}");
    assert_eq!(left_in(folder.path()), Vec::<String>::new());
}

#[test]
fn a_full_filesystem_is_said_to_be() {
    let name = "a_full_filesystem_is_said_to_be";
    let small = match Small::new(32 * MIB) {
        Ok(small) => small,
        Err(why) => return skipped(name, why),
    };
    small.filled(small.free());
    let out = tempfile::tempdir().expect("a folder");
    let words = format!("--quick --force --only disk --dir {}", small.path());
    let ended = end(&mut run_into(out.path(), &words));
    ended.expect(3).sane();
    let said = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Nothing could be measured") && said.contains("free space"), "{}", ended.out);
    assert_eq!(small.left(), Vec::<String>::new());
}

#[test]
fn a_nearly_full_filesystem_is_said_to_be() {
    let small = match Small::new(4096 * MIB) {
        Ok(small) => small,
        Err(why) => return skipped("a_nearly_full_filesystem_is_said_to_be", why),
    };
    small.filled(small.free() - 360 * MIB);
    let out = tempfile::tempdir().expect("a folder");
    quick(out.path(), &format!("--only disk.sequential --dir {}", small.path()));
    let results = results(out.path());
    assert!(finding(&results, "disk-nearly-full").contains(small.path()));
    // A loop device without direct I/O is a file behind the page cache.
    assert!(finding(&results, "disk-page-cache").contains(&small.on.name()));
    assert_eq!(small.left(), Vec::<String>::new());
}

#[test]
fn what_was_measured_before_a_kill_is_kept_and_no_file_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = tempfile::tempdir().expect("a folder");
    let words = format!("--quick --force --only disk.random,disk.sync --dir {}", folder.path().display());
    let mut running = start(&mut run_into(out.path(), &words));
    running.until("three visits", |_| visits_so_far(out.path()) >= 3);
    running.signal(rustix::process::Signal::KILL);
    running.end();
    let before = visits_so_far(out.path());
    assert!(before >= 3);
    // The same command goes on, and clears what was left.
    let ended = end(&mut run_into(out.path(), &words));
    ended.sane();
    assert!(ended.err.contains("resuming "), "{}", ended.err);
    assert_eq!(run_files(out.path()).len(), 1);
    assert!(visits_so_far(out.path()) > before);
    assert_eq!(left_in(folder.path()), Vec::<String>::new());
}

fn checksum(path: &Path) -> u32 {
    crc32fast::hash(&fs::read(path).expect("readable"))
}

#[test]
fn a_device_is_asked_for_and_only_read() {
    let device = match Loop::new(64 * MIB) {
        Ok(device) => device,
        Err(why) => return skipped("a_device_is_asked_for_and_only_read", why),
    };
    let out = tempfile::tempdir().expect("a folder");
    let refused = |words: &str, says: &[&str]| {
        let ended = end(&mut run_into(out.path(), &format!("--quick --force {words}")));
        ended.expect(2).says(says);
        assert!(run_files(out.path()).is_empty(), "something was measured: {words}");
    };
    let (path, name) = (device.path(), device.name());
    refused(&format!("--only disk --device {path}"), &["only read", &format!("--confirm '{name}'")]);
    refused(&format!("--only disk --device {path} --confirm yes"), &["nothing was done"]);
    refused(&format!("--only disk,memory --device {path} --confirm {name}"), &["--only disk"]);
    refused(
        &format!("--only disk --device {path} --device-write --confirm {name}"),
        &["OVERWRITES IT", &format!("erase {name}")],
    );
    refused("--only disk --device /dev/null --confirm null", &["not a block device"]);
    refused("--only disk --device /nowhere --confirm nowhere", &["cannot access"]);
    let before = checksum(&device.image());
    quick(out.path(), &format!("--only disk --device {path} --confirm {name}"));
    let results = results(out.path());
    assert_eq!(checksum(&device.image()), before, "the device was written to");
    let reads = crate::runs::series(&results, "disk.random@one-cpu?cache=direct&op=read");
    assert!(reads["median"].as_f64().is_some_and(|rate| rate > 0.0), "{reads}");
    for kept in ["disk.sequential@one-cpu?cache=direct&op=write", "disk.sync"] {
        let series = crate::runs::series(&results, kept);
        assert_eq!(series["verdict"], "skipped", "{series}");
    }
}

#[test]
fn a_device_that_may_be_written_to_is_and_one_in_use_is_not() {
    let small = match Small::new(64 * MIB) {
        Ok(small) => small,
        Err(why) => return skipped("a_device_that_may_be_written_to_is_and_one_in_use_is_not", why),
    };
    let out = tempfile::tempdir().expect("a folder");
    let erase = |on: &Loop| {
        let mut command = run_into(out.path(), "--quick --force --only disk.sequential --device-write");
        end(command.arg("--device").arg(&on.device).args(["--confirm", &format!("erase {}", on.name())]))
    };
    erase(&small.on).expect(2).says(&["in use", "mounted"]);
    assert!(run_files(out.path()).is_empty());
    let free = Loop::new(64 * MIB).expect("a second one");
    let before = checksum(&free.image());
    let ended = erase(&free);
    ended.sane();
    assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
    assert_ne!(checksum(&free.image()), before, "nothing was written");
    let results = results(out.path());
    let writes = crate::runs::series(&results, "disk.sequential@one-cpu?cache=direct&op=write");
    assert!(writes["median"].as_f64().is_some_and(|rate| rate > 0.0), "{writes}");
}

#[test]
fn a_device_that_takes_the_place_of_the_confirmed_one_is_left_alone() {
    let name = "a_device_that_takes_the_place_of_the_confirmed_one_is_left_alone";
    let one = match Loop::new(64 * MIB) {
        Ok(device) => device,
        Err(why) => return skipped(name, why),
    };
    let other = Loop::new(64 * MIB).expect("a second one");
    let (out, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let link = folder.path().join("disk");
    std::os::unix::fs::symlink(&one.device, &link).expect("a link");
    let before = checksum(&other.image());
    let mut command = run_into(out.path(), "--quick --force --only disk.sequential --device-write");
    let mut running =
        start(command.arg("--device").arg(&link).args(["--confirm", &format!("erase {}", one.name())]));
    running.until("a visit", |_| visits_so_far(out.path()) >= 1);
    let new = folder.path().join("new");
    std::os::unix::fs::symlink(&other.device, &new).expect("a link");
    fs::rename(&new, &link).expect("the link's place taken");
    let ended = running.end();
    ended.sane();
    assert_eq!(checksum(&other.image()), before, "a device was written to that nobody confirmed");
    let told = fs::read_to_string(run_files(out.path()).pop().expect("a run file")).expect("readable");
    for words in ["another device by now", "was confirmed", "is there"] {
        assert!(told.contains(words), "{words:?} is missing");
    }
}

#[test]
fn trimming_a_device_discards() {
    let device = match Loop::new(64 * MIB) {
        Ok(device) => device,
        Err(why) => return skipped("trimming_a_device_discards", why),
    };
    let told = |file: &str| {
        let path = format!("/sys/block/{}/{file}", device.name());
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    if told("queue/discard_max_bytes").trim() == "0" {
        return skipped("trimming_a_device_discards", "the filesystem of the image knows no holes");
    }
    // A device that was set up before may count nothing.
    let counts = format!("/sys/block/{}/queue/iostats", device.name());
    fs::write(&counts, "1").unwrap_or_else(|error| panic!("{counts}: {error}"));
    let discarded = || -> u64 {
        let stat = told("stat");
        let sectors = stat.split_whitespace().nth(13).expect("since Linux 4.18");
        sectors.parse().expect("a number")
    };
    let before = discarded();
    let out = tempfile::tempdir().expect("a folder");
    let mut command = run_into(out.path(), "--quick --force --only disk.trim --device-write");
    let ended = end(command
        .arg("--device")
        .arg(&device.device)
        .args(["--confirm", &format!("erase {}", device.name())]));
    ended.sane();
    let given_back = (discarded() - before) * 512;
    assert!(given_back >= 64 * MIB, "{given_back} bytes were discarded");
    let results = results(out.path());
    let latency = crate::runs::series(&results, "disk.trim@one-cpu");
    assert!(latency["n"].as_u64().is_some_and(|n| n > 0), "{latency}");
}

/// Cuts the newest run file of a folder off behind its first visits, as a power cut does.
fn cut_off(out: &Path) {
    let file = run_files(out).pop().expect("a run file");
    let text = fs::read_to_string(&file).expect("readable");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let visits = lines.iter().enumerate().filter(|(_, line)| line.starts_with("{\"visit\""));
    let (last, _) = visits.take(2).last().expect("a visit");
    fs::write(&file, lines[..=last].concat()).expect("written");
    assert!(run_file::read(&file).is_ok_and(|run| run.summary.is_none() && run.visits.len() == 2));
}

#[test]
fn what_was_confirmed_for_one_run_is_not_done_by_another() {
    let device = match Loop::new(64 * MIB) {
        Ok(device) => device,
        Err(why) => return skipped("what_was_confirmed_for_one_run_is_not_done_by_another", why),
    };
    let out = tempfile::tempdir().expect("a folder");
    let run = |write: bool| {
        let mut command = run_into(out.path(), "--quick --force --only disk.sequential");
        command.arg("--device").arg(&device.device);
        let ended = match write {
            true => end(command.args(["--device-write", "--confirm", &format!("erase {}", device.name())])),
            false => end(command.args(["--confirm", &device.name()])),
        };
        ended.sane();
        assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
        let files = run_files(out.path()).len();
        cut_off(out.path());
        (files, ended.err.contains("resuming "), checksum(&device.image()))
    };
    let (files, _, written) = run(true);
    assert_eq!(files, 1);
    let (files, went_on, read) = run(false);
    assert_eq!((files, went_on), (2, false), "reading goes on with a run that writes");
    assert_eq!(read, written, "the device was written to by a run that was confirmed for reading");
    let (files, went_on, read) = run(false);
    assert_eq!((files, went_on, read), (2, true, written), "reading goes on with reading");
    let (files, went_on, again) = run(true);
    assert_eq!((files, went_on), (3, false), "writing goes on with something");
    assert_ne!(again, written, "nothing was written");
    let (files, went_on, _) = run(true);
    assert_eq!((files, went_on), (4, false), "what was typed for one run was taken for another");
}

#[test]
fn buffers_that_may_not_be_locked_are_a_note() {
    let name = "buffers_that_may_not_be_locked_are_a_note";
    let Some(folder) = folder_of_nobody(name) else { return };
    let path = folder.path().display();
    let words = format!("--quick --force --only disk.random --dir {path}");
    let command = run_into(folder.path().join("out").as_ref(), &words);
    // Enough for a ring, which counts as well since Linux 6.14, and not for the buffers.
    let limited = wrapped(&["prlimit", "--memlock=65536:65536"], &unprivileged(&command));
    let mut limited = limited;
    let ended = end(&mut limited);
    ended.sane();
    let text = fs::read_to_string(run_files(&folder.path().join("out")).pop().expect("a run")).expect("text");
    if text.contains(r#""engine":"psync""#) {
        return skipped(name, "io_uring is refused here");
    }
    assert!(text.contains("without registered buffers"), "no visit's notes tell of it: {}", ended.err);
}

#[test]
fn the_machine_tells_of_its_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |words: &[&str]| -> Value {
        let ended = end(crate::assay().args(["machine", "--json"]).args(words));
        serde_json::from_str(&ended.expect(0).out).expect("JSON")
    };
    let path = folder.path().canonicalize().expect("there");
    let disk = &told(&["--dir", path.to_str().expect("text")])["disk"];
    assert_eq!(disk["path"], path.to_str().expect("text"));
    assert!(
        disk["filesystem"].is_string() && disk["stack"].is_array() && disk.get("link").is_some(),
        "{disk}"
    );
    let ended = end(crate::assay().args(["machine", "--dir", "/nowhere/at/all"]));
    ended.expect(3).says(&["/nowhere/at/all"]);
    match Loop::new(64 * MIB) {
        Ok(device) => {
            let disk = told(&["--device", device.path()])["disk"].clone();
            assert_eq!((&disk["raw"], &disk["path"]), (&Value::Bool(true), &Value::from(device.path())));
            assert_eq!(disk["stack"][0]["kind"], "loop");
            assert_eq!(disk["stack"][0]["size_bytes"], 64 * MIB);
            let text = end(crate::assay().args(["machine", "--all", "--device", device.path()]));
            assert!(text.expect(0).out.contains(&format!("{}: loop", device.name())), "{}", text.out);
        }
        Err(why) => skipped("the_machine_tells_of_its_disk (a device)", why),
    }
}
