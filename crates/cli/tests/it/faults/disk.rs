//! Disks that are full, read-only or not there, and folders with every name that a folder can have.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::host::{Mount, skipped, works, wrapped};
use crate::runs::{
    end, is_tidy, on_file, page_is_whole, pretended, read, results, run_file, run_files, run_into,
};

/// A small file system; enough for a report and little more.
fn small(test: &str) -> Option<Mount> {
    match Mount::tmpfs("size=16m") {
        Ok(mount) => Some(mount),
        Err(why) => {
            skipped(test, why);
            None
        }
    }
}

#[test]
fn the_disk_fills_while_measuring() {
    let Some(mount) = small("the_disk_fills_while_measuring") else { return };
    let words = pretended("selftest.steady");
    // How it goes where there is room.
    let elsewhere = tempfile::tempdir().expect("a folder");
    end(&mut run_into(elsewhere.path(), &words)).expect(0);
    let whole = read(&run_file(elsewhere.path()));
    let header = fs::read_to_string(run_file(elsewhere.path())).expect("readable");
    let header = header.lines().next().map_or(0, str::len) as u64;

    mount.fill(header + 6000);
    let ended = end(&mut run_into(mount.path(), &words));
    let file = run_file(mount.path());
    let name = file.display().to_string();
    ended.expect(3).says(&[&name, "No space left", "are safe", "free space and run the same command again"]);
    let left = read(&file);
    assert!(!left.visits.is_empty() && left.visits.len() < whole.visits.len(), "{}", left.visits.len());
    assert_eq!(left.visits, whole.visits[..left.visits.len()]);
    assert!(!mount.path().join("report.html").exists());
    // Again without room: nothing changes.
    let bytes = fs::read(&file).expect("readable");
    end(&mut run_into(mount.path(), &words)).expect(3).says(&["No space left", "free space"]);
    assert!(fs::read(&file).expect("readable").starts_with(&bytes));

    mount.make_room();
    end(&mut run_into(mount.path(), &words)).expect(0).says(&["resuming ", &name]);
    let finished = read(&file);
    assert_eq!(finished.visits, whole.visits);
    assert_eq!(finished.summary, whole.summary);
    assert_eq!(results(mount.path())["complete"], true);
    page_is_whole(mount.path());
    is_tidy(mount.path());
}

#[test]
fn the_disk_has_room_for_the_run_but_not_for_its_report() {
    let Some(mount) = small("the_disk_has_room_for_the_run_but_not_for_its_report") else { return };
    let old = "<meta name=\"generator\" content=\"assay 0.1.0\"> the old report</html>";
    fs::write(mount.path().join("report.html"), old).expect("written");
    mount.fill(60_000);
    let ended = end(&mut run_into(mount.path(), &pretended("selftest.steady")));
    ended.expect(3).says(&["report.html", "No space left", "the run file is safe", "`assay report`"]);
    let kept = fs::read_to_string(mount.path().join("report.html"));
    assert_eq!(kept.ok().as_deref(), Some(old), "a report is replaced by a whole one or not at all");
    mount.make_room();
    is_tidy(mount.path());
    let file = run_file(mount.path());
    assert!(read(&file).summary.is_some());
    on_file("report", &file, "").expect(0).sane();
    page_is_whole(mount.path());
}

#[test]
fn the_disk_is_full_before_anything_is_measured() {
    let Some(mount) = small("the_disk_is_full_before_anything_is_measured") else { return };
    mount.fill(8192);
    let ended = end(&mut run_into(mount.path(), &pretended("selftest.steady")));
    ended.expect(3).says(&["nothing was measured", "No space left", "free space"]);
    mount.make_room();
    assert_eq!(fs::read_dir(mount.path()).expect("a folder").count(), 0, "half a header was left");
}

#[test]
fn a_limit_of_file_sizes_is_like_a_full_disk() {
    let test = "a_limit_of_file_sizes_is_like_a_full_disk";
    if !works("prlimit", &["--fsize=30000", "true"]) {
        return skipped(test, "prlimit is not here");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let words = pretended("selftest.steady");
    let run = run_into(dir.path(), &words);
    // How it goes without a limit.
    end(&mut run_into(dir.path(), &words)).expect(0);
    let file = run_file(dir.path());
    let whole = read(&file).visits;
    let text = fs::read_to_string(&file).expect("readable");
    let header = text.lines().next().map_or(0, str::len);
    fs::remove_file(&file).expect("removed");
    let limit = format!("--fsize={}", header + 1500);
    end(&mut wrapped(&["prlimit", &limit], &run)).expect(3).says(&["File too large", "free space"]);
    let left = read(&run_file(dir.path())).visits;
    assert!(!left.is_empty() && left.len() < whole.len(), "{}", left.len());
    assert_eq!(left, whole[..left.len()]);
    end(&mut run_into(dir.path(), &words)).expect(0).says(&["resuming "]);
    let finished = read(&run_file(dir.path()));
    assert!(finished.summary.is_some() && finished.visits == whole);
}

#[test]
fn a_read_only_disk() {
    let Some(mount) = small("a_read_only_disk") else { return };
    mount.remount("ro");
    let words = pretended("selftest.steady");
    end(&mut run_into(mount.path(), &words)).expect(3).says(&["Read-only", "--out"]);
    end(&mut run_into(&mount.path().join("new"), &words)).expect(3).says(&["Read-only", "--out", "new"]);
    // Going on is refused likewise, and says where.
    mount.remount("rw");
    end(&mut run_into(mount.path(), &words)).expect(0);
    let file = run_file(mount.path());
    let text = fs::read_to_string(&file).expect("readable");
    fs::write(&file, &text[..text.rfind("{\"summary\"").expect("a summary")]).expect("written");
    mount.remount("ro");
    end(&mut run_into(mount.path(), &words)).expect(3).says(&["Read-only", "--out"]);
    on_file("diagnose", &file, "").expect(0).sane();
    on_file("report", &file, "").expect(3).says(&["report.html", "Read-only"]);
}

#[test]
fn out_is_no_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = pretended("selftest.steady");
    let file = dir.path().join("file");
    fs::write(&file, "precious").expect("written");
    end(&mut run_into(&file, &words)).expect(3).says(&["cannot create the folder", "file", "--out"]);
    end(&mut run_into(&file.join("below"), &words)).expect(3).says(&["cannot create the folder", "--out"]);
    assert_eq!(fs::read_to_string(&file).expect("readable"), "precious");
    end(&mut run_into(std::path::Path::new("/proc/assay"), &words)).expect(3).says(&["/proc/assay", "--out"]);
    end(&mut run_into(std::path::Path::new("/dev/null"), &words)).expect(3).says(&["/dev/null", "--out"]);
    // A folder in the place of the report is not taken away.
    let taken = dir.path().join("taken");
    fs::create_dir_all(taken.join("report.html/inside")).expect("folders");
    end(&mut run_into(&taken, &words)).expect(3).says(&["report.html", "the run file is safe"]);
    assert!(taken.join("report.html/inside").is_dir());
    assert!(read(&run_file(&taken)).summary.is_some());
}

#[test]
fn folders_of_any_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let long = "x".repeat(255);
    let names: [&[u8]; 11] = [
        b"two words",
        b"line\nbreak",
        b"tab\tand\rreturn",
        "\u{fc}ml\u{e4}ut \u{6f22}\u{5b57} \u{1f600}".as_bytes(),
        b"not \xff UTF-8 \xc3",
        b"quote'\"`$(id)`;&|*?",
        b"-rf",
        b"--out",
        b"%s%n{}\\",
        b"\x1b[31mred",
        long.as_bytes(),
    ];
    let words = pretended("selftest.steady");
    for name in names {
        let name = OsStr::from_bytes(name);
        let mut out = OsStr::from_bytes(b"--out=").to_os_string();
        out.push(name);
        let mut command = crate::assay();
        command.arg("run").args(words.split(' ')).arg(out).current_dir(dir.path());
        let ended = end(&mut command);
        ended.expect(0).sane();
        let folder = dir.path().join(name);
        let file = run_file(&folder);
        page_is_whole(&folder);
        is_tidy(&folder);
        on_file("diagnose", &file, "").expect(0).sane();
        on_file("report", &file, "--format csv").expect(0).sane();
        fs::remove_dir_all(folder).expect("removed");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0, "something was written elsewhere");
}

#[test]
fn nothing_is_ever_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = format!("{} --new", pretended("selftest.steady"));
    let mut before: Vec<(std::path::PathBuf, Vec<u8>)> = Vec::new();
    // Invented runs all begin at the same moment, so all want the same name.
    for count in 1..=3 {
        end(&mut run_into(dir.path(), &words)).expect(0);
        let files = run_files(dir.path());
        assert_eq!(files.len(), count);
        for (path, bytes) in &before {
            assert_eq!(fs::read(path).expect("readable"), *bytes, "{}", path.display());
        }
        before = files.into_iter().map(|path| (path.clone(), fs::read(path).expect("readable"))).collect();
    }
}
