//! Devices that share their storage with one that is in use: nothing may be written to them, by
//! whatever name.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{Loop, MIB, Small, checksum};
use crate::host::skipped;
use crate::runs::{Ended, end, run_files, run_into};

/// What is asked for, with the right answer to the question.
fn erase(out: &Path, on: &Loop) -> Ended {
    let mut command = run_into(out, "--quick --force --only disk.sequential --budget 5s --device-write");
    end(command.arg("--device").arg(&on.device).args(["--confirm", &format!("erase {}", on.name())]))
}

fn beside(image: &Path, options: &[&str]) -> Loop {
    Loop::over(tempfile::tempdir().expect("a folder"), image, options).expect("one more")
}

#[test]
fn what_shares_its_file_with_a_mounted_device_is_left_alone() {
    let small = match Small::new(64 * MIB) {
        Ok(small) => small,
        Err(why) => return skipped("what_shares_its_file_with_a_mounted_device_is_left_alone", why),
    };
    let out = tempfile::tempdir().expect("a folder");
    fs::write(small.point.path().join("kept"), "of the user").expect("written");
    let image = small.on.image();
    let mounted = small.on.name();
    let refused = |on: &Loop, words: &[&str]| {
        erase(out.path(), on).expect(2).says(&["in use"]).says(words);
        assert!(run_files(out.path()).is_empty());
    };
    let same = format!("{mounted}, which lies on the same file");
    // By the file's name, by another one of the file, by one that leads to it no more, by a part of
    // it, and on top of each other.
    let other = beside(&image, &[]);
    refused(&other, &[&same, "mounted"]);
    let again = small.on.folder.path().join("again");
    fs::hard_link(&image, &again).expect("a link");
    let by_link = beside(&again, &[]);
    fs::remove_file(&again).expect("removed");
    refused(&by_link, &[&same]);
    let part = beside(&image, &["--offset", "33554432"]);
    refused(&part, &[&same]);
    let on_top = beside(&other.device, &[]);
    refused(&on_top, &[&same]);
    refused(&other, &[&format!("carries {}", on_top.name())]);
    assert_eq!(fs::read_to_string(small.point.path().join("kept")).expect("there"), "of the user");
}

/// Something that has the file open until the test ends.
struct Reader(Child);

impl Reader {
    fn of(file: &Path) -> Reader {
        let file = fs::File::open(file).expect("readable");
        let child = Command::new("sleep").arg("60").stdin(Stdio::from(file)).spawn();
        Reader(child.expect("sleep is here"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_process_has_open_is_left_alone_until_it_lets_go() {
    let free = match Loop::new(64 * MIB) {
        Ok(free) => free,
        Err(why) => return skipped("what_a_process_has_open_is_left_alone_until_it_lets_go", why),
    };
    let out = tempfile::tempdir().expect("a folder");
    let image = free.image();
    for open in [&image, &free.device] {
        let reader = Reader::of(open);
        let process = format!("process {} (sleep)", reader.0.id());
        erase(out.path(), &free).expect(2).says(&["in use", &process, &open.to_string_lossy()]);
        assert!(run_files(out.path()).is_empty());
    }
    // Beside it on the same file is not on it.
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("image");
    fs::File::create(&whole).expect("a file").set_len(128 * MIB).expect("sparse");
    let [first, second] =
        ["0", "67108864"].map(|at| beside(&whole, &["--offset", at, "--sizelimit", "67108864"]));
    let _reader = Reader::of(&second.device);
    erase(out.path(), &second).expect(2);
    let before = checksum(&whole);
    let ended = erase(out.path(), &first);
    assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
    assert_ne!(checksum(&whole), before, "nothing was written");
}
