//! Another medium under the name of the device that was confirmed: it is neither read nor written.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, kill_process};

use super::{Loop, MIB, checksum, cut_off};
use crate::host::skipped;
use crate::runs::{end, run_files, run_into, start, visits_so_far};
use testkit::killing::children_of;

fn sparse(path: &Path) {
    File::create(path).expect("a file").set_len(64 * MIB).expect("sparse");
}

impl Loop {
    /// Puts another file below a loop device that is only read, also while it is open.
    fn change(&self, file: &Path) {
        const LOOP_CHANGE_FD: libc::Ioctl = 0x4C06;
        let device = File::open(&self.device).expect("readable");
        let file = File::open(file).expect("readable");
        // SAFETY: the kernel takes a number, and writes to no memory of ours.
        let changed = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CHANGE_FD, file.as_raw_fd()) };
        assert_eq!(changed, 0, "{}", std::io::Error::last_os_error());
    }

    /// For one that is detached already: its number may be another test's by now.
    fn forget(self) {
        fs::remove_dir_all(self.folder.path()).expect("removed");
        std::mem::forget(self);
    }

    /// Whether a visit has opened it to write; the kernel lets go of it a moment after the visit's
    /// end.
    fn is_written_to(&self) -> bool {
        let alone = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&self.device);
        alone.is_err()
    }
}

#[test]
fn a_confirmed_device_keeps_its_file_as_long_as_the_session_lasts() {
    let name = "a_confirmed_device_keeps_its_file_as_long_as_the_session_lasts";
    let device = match Loop::new(64 * MIB) {
        Ok(device) => device,
        Err(why) => return skipped(name, why),
    };
    let (out, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let other = folder.path().join("other");
    sparse(&other);
    let before = checksum(&other);
    let words = "--quick --force --only disk.sequential,disk.random --budget 10s --device-write";
    let mut command = run_into(out.path(), words);
    let mut running =
        start(command.args(["--device", device.path(), "--confirm", &format!("erase {}", device.name())]));
    running.until("a visit", |_| visits_so_far(out.path()) >= 1);
    running.signal(Signal::STOP);
    running.until("the visit's end", |session| {
        // It may be waiting for the session.
        let visits = children_of(session.child.id(), "case");
        for visit in &visits {
            let _ = kill_process(*visit, Signal::KILL);
        }
        visits.is_empty() && !device.is_written_to()
    });
    let losetup =
        |words: &[&str]| Command::new("losetup").args(words).output().expect("losetup is here").status;
    assert!(losetup(&["--detach", device.path()]).success());
    let set_up = losetup(&[device.path(), other.to_str().expect("text")]).success();
    running.signal(Signal::CONT);
    running.end().sane();
    assert_eq!(checksum(&other), before, "a file was written to that nobody confirmed");
    assert!(!set_up, "the device was given another file while a session had it");
    device.forget();
}

#[test]
fn another_medium_in_the_confirmed_device_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let [image, other] = ["image", "other"].map(|name| folder.path().join(name));
    [&image, &other].iter().for_each(|file| sparse(file));
    let device = match Loop::over(tempfile::tempdir().expect("a folder"), &image, &["--read-only"]) {
        Ok(device) => device,
        Err(why) => return skipped("another_medium_in_the_confirmed_device_is_left_alone", why),
    };
    let out = tempfile::tempdir().expect("a folder");
    let command = || {
        let mut command = run_into(out.path(), "--quick --force --only disk.sequential --budget 10s");
        command.args(["--device", device.path(), "--confirm", &device.name()]);
        command
    };
    let mut running = start(&mut command());
    running.until("a visit", |_| visits_so_far(out.path()) >= 1);
    device.change(&other);
    running.end().sane();
    let told = fs::read_to_string(run_files(out.path()).pop().expect("a run file")).expect("readable");
    for words in ["holds another medium by now", "neither read nor written", "start a new run"] {
        assert!(told.contains(words), "{words:?} is missing");
    }

    // What was confirmed of one medium is not gone on with on another.
    let went_on = || {
        cut_off(out.path());
        let ended = end(&mut command());
        ended.measured();
        ended.err.contains("resuming ")
    };
    assert!(!went_on(), "the medium is another one since");
    assert!(went_on(), "it is the same");
    device.change(&image);
    assert!(!went_on(), "the file is back, and nobody knows what was done to it meanwhile");
}
