//! Sweeping removes folders that Assay made, with their content, and nothing else.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

use rustix::fs::FileType;

use super::*;

const HOLDS: &[&str] = &["one", "two", "f#", "data", "log", "fifo|", "link@", "tmp/", "tmp/a*"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn own(parent: &Path) -> Scratch {
    Scratch::new(parent, HOLDS).expect("a directory")
}

fn touch(scratch: &Scratch, name: &str) {
    scratch.put(name, b"x").expect("a file");
}

/// A scratch directory as a killed owner leaves it: unlocked, not removed.
fn left(parent: &Path, fill: impl FnOnce(&Scratch)) -> PathBuf {
    let scratch = own(parent);
    fill(&scratch);
    let path = scratch.path().to_path_buf();
    rustix::fs::flock(scratch.folder(), FlockOperation::Unlock).expect("unlocked");
    std::mem::forget(scratch);
    path
}

/// Every path below a folder with the file's content.
fn all_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if entry.file_type().expect("a type").is_dir() {
            found.extend(all_below(&path));
        }
        let content = if path.is_file() { fs::read(&path).expect("readable") } else { Vec::new() };
        found.push((path, content));
    }
    found.sort();
    found
}

/// Why the leftover `path` stays: `leftovers` and `sweep` report the same and change nothing.
fn why_it_stays(parent: &Path, path: &Path) -> String {
    let before = all_below(parent);
    let listed = leftovers(parent);
    let swept = sweep(parent);
    assert_eq!(listed, swept, "the list shows what a sweep does");
    assert_eq!(all_below(parent), before, "nothing is removed");
    let leftover = swept.into_iter().find(|leftover| leftover.path == path).expect("it is reported");
    leftover.stays.expect("it stays")
}

#[test]
fn a_directory_is_removed_with_its_owner_and_not_before() {
    let parent = folder();
    let scratch = own(parent.path());
    touch(&scratch, "one");
    touch(&scratch, "two");
    assert_eq!(scratch.count().expect("readable"), 2, "its marker is not counted");
    assert_eq!((leftovers(parent.path()), sweep(parent.path())), (Vec::new(), Vec::new()));
    assert_eq!(scratch.count().expect("readable"), 2, "its owner lives");
    assert!(scratch.free_bytes().expect("known") > 0);
    let path = scratch.path().to_path_buf();
    drop(scratch);
    assert!(!path.exists());
    assert!(Scratch::new(&parent.path().join("missing"), HOLDS).is_err());
}

#[test]
fn a_file_can_be_taken_once() {
    let parent = folder();
    let scratch = own(parent.path());
    let content: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    scratch.put("one", &content).expect("room");
    assert!(scratch.put("one", b"again").is_err(), "there is one of this name");
    assert_eq!(scratch.take("one").expect("it is there"), content);
    assert!(scratch.take("one").is_err());
    assert_eq!(scratch.count().expect("readable"), 0);
}

#[test]
fn what_killed_owners_left_is_removed_completely() {
    let parent = folder();
    let fill = |scratch: &Scratch| {
        touch(scratch, "one");
        touch(scratch, "f000017");
        let fifo = FileType::Fifo;
        rustix::fs::mknodat(scratch.folder(), "fifo", fifo, Mode::RUSR, 0).expect("a FIFO");
        symlink("/etc/passwd", scratch.path().join("link")).expect("a link");
        scratch.make_folder("tmp").expect("a folder");
        fs::create_dir_all(scratch.path().join("tmp/a/b")).expect("folders");
        fs::write(scratch.path().join("tmp/a/b/c"), "x").expect("a file");
        for text in ["first ", "second"] {
            rustix::io::write(scratch.log("log").expect("a log"), text.as_bytes()).expect("written");
        }
        assert_eq!((scratch.tail("log", 6), scratch.tail("none", 6)), (b"second".to_vec(), Vec::new()));
    };
    let path = left(parent.path(), fill);
    // Killed between making the folder, its marker's file and that file's content.
    let without_marker = [1, 2].map(|nonce| parent.path().join(Name { process: 1, nonce }.text()));
    without_marker.iter().for_each(|path| fs::create_dir(path).expect("a folder"));
    fs::write(without_marker[1].join(".assay-owner"), "").expect("a file");
    let mut all: Vec<PathBuf> = without_marker.into_iter().chain([path]).collect();
    all.sort();
    let removed = |path: &PathBuf| Leftover { path: path.clone(), stays: None };
    let expected: Vec<Leftover> = all.iter().map(removed).collect();
    assert_eq!(leftovers(parent.path()), expected);
    assert!(all.iter().all(|path| path.exists()), "listing removes nothing");
    drop(own(parent.path()));
    assert_eq!(all_below(parent.path()), []);
}

#[test]
fn a_name_proves_nothing() {
    let parent = folder();
    let name = Name { process: 1, nonce: 2 }.text();
    for folder in ["assay-tree-src/.git", "assay-files-results", "assay-files-1-0", "assay-files-", "other-1"]
    {
        fs::create_dir_all(parent.path().join(folder)).expect("a folder");
        fs::write(parent.path().join(folder).join("data"), "x").expect("a file");
    }
    fs::write(parent.path().join(Name { process: 1, nonce: 1 }.text()), "x").expect("a file");
    let target = folder();
    fs::write(target.path().join("data"), "x").expect("a file");
    symlink(target.path(), parent.path().join(Name { process: 1, nonce: 3 }.text())).expect("a link");
    let before = all_below(parent.path());
    assert_eq!(sweep(parent.path()), []);
    assert_eq!((all_below(parent.path()), target.path().join("data").exists()), (before, true));
    // Names of version 0.1.0, and of today without a marker, are reported.
    for (name, word) in [
        ("assay-files-1-0123abcd", "0.1.0"),
        ("assay-tree-1-0123abcd", "0.1.0"),
        (name.as_str(), "no marker of assay"),
    ] {
        let path = parent.path().join(name);
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("one"), "x").expect("a file");
        let why = why_it_stays(parent.path(), &path);
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn a_marker_proves_only_its_own_folder() {
    let parent = folder();
    let real = left(parent.path(), |scratch| touch(scratch, "one"));
    let copied = |to: &Path| {
        let status = Command::new("cp").arg("-a").args([&real, to]).status();
        assert!(status.expect("cp runs").success());
    };
    let elsewhere = folder();
    let same_name = elsewhere.path().join(real.file_name().expect("a name"));
    copied(&same_name);
    let why = why_it_stays(elsewhere.path(), &same_name);
    assert!(why.contains("written for another folder"), "{why}");
    let other_nonce = elsewhere.path().join(Name { process: 1, nonce: 5 }.text());
    copied(&other_nonce);
    let why = why_it_stays(elsewhere.path(), &other_nonce);
    assert!(why.contains("written for another folder"), "{why}");
    // A renamed folder.
    let renamed = parent.path().join(Name { process: 1, nonce: 6 }.text());
    fs::rename(&real, &renamed).expect("renamed");
    assert!(why_it_stays(parent.path(), &renamed).contains("another folder"));
    fs::rename(&renamed, &real).expect("renamed");
    // A truncated marker in a folder that contains a file.
    let marker = real.join(".assay-owner");
    let text = fs::read(&marker).expect("a marker");
    for cut in [0, 20, text.len() - 1] {
        fs::write(&marker, &text[..cut]).expect("written");
        assert!(why_it_stays(parent.path(), &real).contains("not in assay's format"), "{cut}");
    }
    fs::remove_file(&marker).expect("removed");
    symlink(same_name.join(".assay-owner"), &marker).expect("a link");
    assert!(why_it_stays(parent.path(), &real).contains("cannot be read"));
}

/// A foreign file in a folder of Assay's, and a word of the reason why the folder stays.
#[test]
fn a_folder_with_a_foreign_file_stays_complete() {
    type Plant = fn(&Path);
    let plants: [(Plant, &str); 10] = [
        (
            |path| {
                fs::create_dir_all(path.join("tmp/a")).expect("made");
                fs::write(path.join("tmp/notes.txt"), "mine").expect("written");
            },
            "notes.txt in it is no file",
        ),
        (|path| fs::write(path.join("notes.txt"), "mine").expect("written"), "notes.txt in it is no file"),
        (|path| fs::create_dir(path.join("one")).expect("made"), "one in it is no file"),
        (|path| fs::write(path.join("tmp"), "mine").expect("written"), "tmp in it is no file"),
        (|path| fs::write(path.join("f1 (copy)"), "mine").expect("written"), "f1 (copy)"),
        (|path| fs::write(path.join("fifo"), "mine").expect("written"), "fifo in it is no file"),
        (|path| symlink("/etc/passwd", path.join("one")).expect("linked"), "one in it is no file that"),
        (|path| fs::hard_link(path.join("data"), path.join("f1")).expect("linked"), "hard links"),
        (
            |path| {
                fs::create_dir_all(path.join("tmp/a")).expect("made");
                symlink("/etc", path.join("tmp/a/link")).expect("linked");
            },
            "link in it is not a regular file",
        ),
        (
            |path| fs::create_dir_all(path.join(format!("tmp/{}", "a/".repeat(40)))).expect("made"),
            "deeper than assay",
        ),
    ];
    for (plant, word) in plants {
        // Left by a kill.
        let parent = folder();
        let path = left(parent.path(), |scratch| touch(scratch, "data"));
        plant(&path);
        let why = why_it_stays(parent.path(), &path);
        assert!(why.contains(word), "{why}");
        // In a folder whose owner ends.
        let scratch = own(parent.path());
        touch(&scratch, "data");
        let path = scratch.path().to_path_buf();
        plant(&path);
        let before = all_below(&path);
        drop(scratch);
        assert_eq!(all_below(&path), before);
        assert!(why_it_stays(parent.path(), &path).contains(word), "{word}");
    }
}

/// A mount that is removed when the test ends, even by a panic.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_mounted_folder_stays_with_its_content() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let behind = folder();
    fs::write(behind.path().join("data"), "mine").expect("a file");
    fs::create_dir(behind.path().join("deep")).expect("a folder");
    let file = behind.path().join("data");
    // The folder itself, a folder inside (of the same device, or another), and a file with a
    // declared name.
    let bind = |from: &Path, to: PathBuf| -> Vec<PathBuf> { vec!["--bind".into(), from.into(), to] };
    let cases: [fn(&Path) -> PathBuf; 4] = [
        |path| path.to_path_buf(),
        |path| path.join("tmp"),
        |path| path.join("tmp/at"),
        |path| path.join("f1"),
    ];
    for (index, place) in cases.into_iter().enumerate() {
        let parent = folder();
        let path = left(parent.path(), |scratch| touch(scratch, "one"));
        let at = place(&path);
        let words = match index {
            2 => vec!["-t".into(), "tmpfs".into(), "none".into(), at.clone()],
            3 => bind(&file, at.clone()),
            _ => bind(behind.path(), at.clone()),
        };
        match index {
            3 => fs::write(&at, "").expect("a file"),
            _ => fs::create_dir_all(&at).expect("a folder"),
        }
        match Command::new("mount").args(words).output() {
            Ok(output) if output.status.success() => {}
            // A container may not mount.
            _ => return,
        }
        let mount = Mounted(at);
        let why = why_it_stays(parent.path(), &path);
        drop(mount);
        assert!(why.contains("mount"), "{why}");
        assert_eq!(fs::read(&file).expect("it is there"), b"mine");
        assert_eq!(sweep(parent.path()), [Leftover { path, stays: None }], "without the mount it removed");
        assert_eq!(all_below(parent.path()), []);
    }
}

#[test]
fn what_belongs_to_another_user_stays() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let parent = folder();
    let path = left(parent.path(), |scratch| touch(scratch, "one"));
    std::os::unix::fs::chown(path.join("one"), Some(12345), None).expect("given away");
    let why = why_it_stays(parent.path(), &path);
    assert!(why.contains("one in it belongs to user 12345"), "{why}");
    // Another user's folder is not even reported.
    std::os::unix::fs::chown(&path, Some(12345), None).expect("given away");
    assert_eq!(sweep(parent.path()), []);
    assert_eq!(fs::metadata(path.join("one")).expect("it is there").uid(), 12345);
}

#[test]
fn a_directory_is_described() {
    let parent = folder();
    let text = probe(parent.path()).expect("described");
    for word in ["path ", "magic 0x", "device ", "free_bytes "] {
        assert!(text.lines().any(|line| line.starts_with(word)), "{text}");
    }
    assert!(probe(Path::new("/nonexistent")).is_err());
}
