//! What is not ours stays, whatever its name; what is ours goes, however its maker ended; and what
//! we write is as private as the user wants it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::host::{is_root, processes_marked, skipped, unique, wrapped};
use crate::runs::{end, is_result, is_tidy, on_file, page_is_whole, pretended, run_file, run_into, start};
use testkit::killing::children_of;

mod reports;

/// Every file, link and folder below one, with what is in it.
fn all_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        let content = match kind {
            kind if kind.is_file() => fs::read(&path).expect("readable"),
            kind if kind.is_symlink() => {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            }
            kind if kind.is_dir() => {
                found.extend(all_below(&path));
                Vec::new()
            }
            _ => Vec::new(),
        };
        found.insert(path, content);
    }
    found
}

fn put(path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    fs::write(path, format!("mine: {}", path.display())).expect("written");
}

/// Folders of a user whose names look like ours; how many of them a run has to name.
fn plant(folder: &Path, behind: &Path) -> usize {
    for name in ["assay-tree-src/.git/config", "assay-files-results/r.csv", "assay-files-1-0/data", "x/y"] {
        put(&folder.join(name));
    }
    put(&folder.join("assay-files-2-0123456789abcdef"));
    put(&behind.join("data"));
    symlink(behind, folder.join("assay-files-3-0123456789abcdef")).expect("a link");
    symlink(behind.join("data"), folder.join("assay-tree-3-01234567")).expect("a link");
    // These could have been of version 0.1.0, or lost their marker.
    for name in
        ["assay-files-1-01234567/f000001", "assay-tree-1-01234567/tmp/a", "assay-files-1-0123456789abcdef/f1"]
    {
        put(&folder.join(name));
    }
    3
}

/// Runs one benchmark whose temporary files lie in a folder.
fn run_in(folder: &Path, out: &Path, only: &str) -> Command {
    let mut command = run_into(out, &format!("--quick --force --budget 4s --only {only}"));
    command.env("TMPDIR", folder);
    command
}

/// The new-style folders of ours in one.
fn scratches(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.join(".assay-owner").is_file()).collect()
}

/// Kills a run with its visit and watchdog until that leaves a folder behind; returns that folder.
fn left_by_a_kill(folder: &Path, only: &str) -> PathBuf {
    let before = scratches(folder);
    // A kill may come before the marker is written. The next run removes such an empty folder, so
    // the test waits for the marker.
    let is_owned =
        |path: &PathBuf| fs::metadata(path.join(".assay-owner")).is_ok_and(|marker| marker.len() > 0);
    let new = || scratches(folder).into_iter().find(|path| !before.contains(path) && is_owned(path));
    for _ in 0..20 {
        let (out, mark) = (tempfile::tempdir().expect("a folder"), unique());
        let mut running = start(run_in(folder, out.path(), only).env("ASSAY_TEST", &mark));
        running.until("a visit's folder", |_| new().is_some());
        running.signal(Signal::STOP);
        for watchdog in children_of(running.child.id(), "--watch") {
            rustix::process::kill_process(watchdog, Signal::KILL).expect("it is there");
        }
        running.signal(Signal::KILL);
        drop(running);
        // A process that is still ending may yet remove it.
        let end = Instant::now() + Duration::from_secs(60);
        while !processes_marked(&mark).is_empty() {
            assert!(Instant::now() < end, "{only}: still there: {:?}", processes_marked(&mark));
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(left) = new() {
            return left;
        }
    }
    panic!("no kill in 20 left a folder of {only}");
}

/// What is there once it no longer changes.
fn settled<T: PartialEq>(look: impl Fn() -> T) -> T {
    let mut last = look();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = look();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// Families whose visits have named files for longer than an instant.
const FAMILIES: [&str; 5] =
    ["file.create", "file.read", "disk.metadata", "unixbench.fstime", "unixbench.shell1"];
/// Those that have some for an instant.
const MOMENTARY: &str = "ipc.fifo,disk.random,vm.file-fault";

#[test]
fn a_users_files_outlive_runs_and_kills_whatever_their_names() {
    let (folder, behind) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let out = tempfile::tempdir().expect("a folder");
    let mut named = plant(folder.path(), behind.path());
    let decoys = [all_below(folder.path()), all_below(behind.path())];
    let ended = end(&mut run_in(folder.path(), out.path(), "file.create"));
    assert_eq!([all_below(folder.path()), all_below(behind.path())], decoys, "{}", ended.err);
    // Folders that killed runs left, each with something of the user's.
    let plants: [fn(&Path); FAMILIES.len()] = [
        |left| put(&left.join("notes.txt")),
        |left| {
            put(&left.join("sub/data"));
        },
        |left| symlink("/etc/hostname", left.join("g999999")).expect("a link"),
        |left| {
            put(&left.with_extension("kept"));
            fs::hard_link(left.with_extension("kept"), left.join("from-7")).expect("a link");
        },
        |left| put(&left.join("script (copy)")),
    ];
    let lefts: Vec<PathBuf> = FAMILIES
        .iter()
        .zip(plants)
        .map(|(family, plant)| {
            let left = left_by_a_kill(folder.path(), family);
            plant(&left);
            left
        })
        .collect();
    // A copy of one under its name elsewhere proves nothing there.
    let copy = behind.path().join(lefts[0].file_name().expect("a name"));
    fs::remove_file(lefts[0].join("notes.txt")).expect("removed");
    let copied = Command::new("cp").arg("-a").args([&lefts[0], &copy]).status().expect("cp runs");
    assert!(copied.success());
    put(&lefts[0].join("notes.txt"));
    // Scripts of a killed visit may still end what they were at.
    let before = settled(|| [all_below(folder.path()), all_below(behind.path())]);
    for (path, content) in decoys.iter().flatten() {
        let now = before.iter().find_map(|all| all.get(path));
        assert_eq!(now, Some(content), "{} outlives the kills", path.display());
    }

    named += lefts.len();
    let everything = format!("{},{MOMENTARY}", FAMILIES.join(","));
    let ended = end(&mut run_in(folder.path(), out.path(), &everything));
    assert!([0, 3].contains(&ended.code), "{}", ended.err);
    let ended_behind = end(run_in(folder.path(), out.path(), "file.create").arg("--dir").arg(behind.path()));
    assert_eq!([all_below(folder.path()), all_below(behind.path())], before, "{}", ended.err);
    assert_eq!(ended.err.matches("not removed: ").count(), named, "{}", ended.err);
    for left in &lefts {
        ended.says(&[left.to_str().expect("UTF-8")]);
    }
    ended_behind.says(&[copy.to_str().expect("UTF-8"), "written for another folder"]);
    is_tidy(out.path());

    // Nothing of ours goes before a dry run has said so, and once nothing foreign is in it, it
    // goes.
    fs::remove_file(lefts[0].join("notes.txt")).expect("removed");
    let dry = end(run_in(folder.path(), out.path(), "file.create").arg("--dry-run"));
    let would = format!("would remove the remains of a killed run: {}", lefts[0].display());
    assert!(dry.code == 0 && dry.out.contains(&would), "{}", dry.out);
    assert_eq!(dry.out.matches("not removed: ").count(), named - 1, "{}", dry.out);
    let json = end(run_in(folder.path(), out.path(), "file.create").args(["--dry-run", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert!(crate::validator("dry-run").is_valid(&json));
    let told = json["leftovers"].as_array().expect("a list");
    assert_eq!(
        (told.len(), told.iter().filter(|one| one["stays"].is_null()).count()),
        (named, 1),
        "{told:?}"
    );
    assert!(lefts[0].join(".assay-owner").exists(), "a dry run removes nothing");
    end(&mut run_in(folder.path(), out.path(), "file.create"));
    assert!(!lefts[0].exists() && lefts[1..].iter().all(|left| left.exists()));
}

#[test]
fn what_is_mounted_into_a_folder_of_ours_outlives_a_run() {
    if !is_root() {
        return skipped("what_is_mounted_into_a_folder_of_ours_outlives_a_run", "mounting needs root");
    }
    let (folder, behind) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let out = tempfile::tempdir().expect("a folder");
    put(&behind.path().join("f000001"));
    put(&behind.path().join("deep/f000001"));
    let decoy = folder.path().join("assay-tree-src");
    fs::create_dir(&decoy).expect("a folder");
    let left = left_by_a_kill(folder.path(), "file.create");
    // Both a folder of a foreign name and a file of one of ours.
    fs::create_dir(left.join("inner")).expect("a folder");
    fs::write(left.join("f7"), "").expect("a file");
    let before = all_below(behind.path());
    let words = "mount --bind \"$1\" \"$2\" && mount --bind \"$1\" \"$3/inner\" && mount --bind \"$1/f000001\" \"$3/f7\"; \
                 shift 3; exec \"$@\"";
    let places = [behind.path(), &decoy, &left].map(|path| path.to_str().expect("UTF-8"));
    let shell = ["unshare", "-m", "--propagation", "private", "sh", "-c", words, "sh"];
    let run = run_in(folder.path(), out.path(), "file.create");
    let ended = end(&mut wrapped(&[&shell[..], &places].concat(), &run));
    if ended.code == 1 || ended.err.contains("mount: ") || ended.err.contains("unshare: ") {
        return skipped("what_is_mounted_into_a_folder_of_ours_outlives_a_run", &ended.err);
    }
    assert_eq!(all_below(behind.path()), before, "{}", ended.err);
    ended.says(&["not removed", left.to_str().expect("UTF-8")]);
    assert!(left.join("f7").exists() && decoy.exists());
}

/// Without another run in the same folder: at once, by `assay restore`, and by a run elsewhere.
#[test]
fn what_a_killed_run_left_goes_wherever_it_worked() {
    let state = tempfile::tempdir().expect("a folder");
    let of_state = |command: &mut Command| end(command.env("ASSAY_STATE", state.path()));
    for way in 0..3 {
        let (folder, mark) = (tempfile::tempdir().expect("a folder"), unique());
        let (out, elsewhere) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let words =
            format!("--quick --force --budget 1h --only file.create --dir {}", folder.path().display());
        let mut command = run_into(out.path(), &words);
        command.env("ASSAY_STATE", state.path()).env("ASSAY_TEST", &mark);
        let mut running = start(&mut command);
        running.until("a visit's folder", |_| !scratches(folder.path()).is_empty());
        running.signal(Signal::STOP);
        if way > 0 {
            for watchdog in children_of(running.child.id(), "--watch") {
                rustix::process::kill_process(watchdog, Signal::KILL).expect("it is there");
            }
        }
        running.signal(Signal::KILL);
        drop(running);
        let ended = match way {
            0 => None,
            1 => Some(of_state(crate::assay().arg("restore"))),
            _ => Some(of_state(&mut run_in(elsewhere.path(), out.path(), "selftest.steady"))),
        };
        let end = Instant::now() + Duration::from_secs(60);
        while !processes_marked(&mark).is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(all_below(folder.path()).is_empty(), "way {way}: {:?} {ended:?}", all_below(folder.path()));
        let journals = fs::read_dir(state.path()).expect("a folder").flatten().map(|entry| entry.path());
        assert_eq!(journals.filter(|path| path.to_string_lossy().contains("objects-")).count(), 0);
    }
}

/// Whatever the umask, no other user can write what root will put back.
#[test]
fn journals_are_for_their_user_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, out) = (folder.path().join("state"), folder.path().join("out"));
    let run = run_in(folder.path(), &out, "file.create");
    let mut running = start(under_umask("000", &run).env("ASSAY_STATE", &state));
    let mut modes = Vec::new();
    running.until("a journal", |_| {
        let entries = fs::read_dir(&state).into_iter().flatten().flatten();
        modes = entries.filter_map(|entry| Some(entry.metadata().ok()?.permissions().mode())).collect();
        !modes.is_empty()
    });
    running.signal(Signal::INT);
    running.end().sane();
    modes.push(state.metadata().expect("a folder").permissions().mode());
    assert!(modes.iter().all(|mode| mode & 0o077 == 0), "{modes:?}");
}

fn under_umask(umask: &str, command: &Command) -> Command {
    wrapped(&["sh", "-c", &format!("umask {umask}; exec \"$0\" \"$@\"")], command)
}

#[test]
fn all_that_is_written_is_as_private_as_the_umask_says() {
    for (umask, mode) in [("077", 0o600), ("027", 0o640), ("000", 0o666)] {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("out");
        end(&mut under_umask(umask, &run_into(&out, &pretended("selftest.steady")))).expect(0);
        let run = run_file(&out);
        let place = |name: &str| dir.path().join(name);
        let file = |command: &mut Command| {
            // Twice: a file that is made, and one that is replaced.
            for _ in 0..2 {
                let ended = end(&mut under_umask(umask, command));
                assert_eq!(ended.code, 0, "{command:?}: {}", ended.err);
            }
        };
        for format in ["html", "json", "markdown", "csv", "lmbench"] {
            file(
                crate::assay()
                    .arg("report")
                    .arg(&run)
                    .args(["--format", format, "--out"])
                    .arg(place("reports")),
            );
        }
        for name in ["compared.html", "compared.json", "compared.md"] {
            file(crate::assay().arg("compare").args([&run, &run]).arg("--out").arg(place(name)));
        }
        file(crate::assay().args(["machine", "--save"]).arg(place("machine.json.gz")));
        file(
            crate::assay().args(["utilization", "--seconds", "0.1", "--prometheus"]).arg(place("assay.prom")),
        );
        let mut recording = crate::assay();
        recording.args(["utilization", "--seconds", "0.1", "--record"]).arg(place("day.stat"));
        end(&mut under_umask(umask, &recording)).expect(0);
        let is_file = |path: &PathBuf| path.is_file() && !path.is_symlink();
        let files: Vec<PathBuf> = all_below(dir.path()).into_keys().filter(is_file).collect();
        assert_eq!(files.len(), 3 + 5 + 3 + 3, "{files:?}");
        for file in files {
            let found = file.metadata().expect("a file").permissions().mode() & 0o7777;
            assert_eq!(found, mode, "{} under umask {umask}", file.display());
        }
    }
}

#[test]
fn a_kill_in_the_report_phase_leaves_whole_files_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(dir.path(), &pretended("selftest.steady"))).expect(0);
    let run = run_file(dir.path());
    let names = || {
        let entries = fs::read_dir(dir.path()).expect("a folder").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| (entry.file_name(), std::os::unix::fs::DirEntryExt::ino(&entry))).collect();
        names.sort();
        names
    };
    let report = || start(crate::assay().arg("report").arg(&run));
    let begin = Instant::now();
    report().end().expect(0);
    let took = begin.elapsed();
    for round in 0..17u32 {
        let before = names();
        let running = report();
        // At some moment before the usual end; later at the first sign of a file that is written.
        let until = Instant::now() + if round < 5 { took * round / 4 } else { took * 10 };
        while Instant::now() < until && names() == before {}
        running.signal(Signal::KILL);
        drop(running);
        page_is_whole(dir.path());
        for (name, _) in names() {
            let name = name.to_string_lossy().into_owned();
            let proven = dir.path().join(&name).join(".assay-owner").exists()
                || fs::read_dir(dir.path().join(&name)).is_ok_and(|mut inside| inside.next().is_none());
            assert!(is_result(&name) || proven, "{name} was left in round {round}");
        }
    }
    // What a kill left in the instant of replacing goes with the next start.
    on_file("report", &run, "").expect(0);
    is_tidy(dir.path());
}
