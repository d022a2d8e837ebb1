//! `assay machine --root ARCHIVE`: archives made at test time of recorded machines, against the
//! same hosts as they were before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{json as machine, run, shown};
use crate::host::skipped;

/// A folder of the fixtures; `None`, with a message, in a clone without it.
fn fixtures(inner: &str, test: &str) -> Option<PathBuf> {
    let folder = testkit::root().join("../shared/fixtures").join(inner);
    if !folder.is_dir() {
        skipped(test, format!("{} is missing", folder.display()));
        return None;
    }
    Some(folder)
}

/// Files of a folder whose names have this in them, in order.
fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().contains(part)).collect();
    files.sort();
    files
}

/// Packs what is in a folder by the suffix of the archive's name.
fn packed(folder: &Path, archive: &str) -> PathBuf {
    let target = folder.parent().expect("a folder above").join(archive);
    let name = folder.file_name().expect("a name");
    let mut tar = Command::new("tar");
    tar.arg("-caf").arg(&target).arg("-C").arg(folder.parent().expect("a folder above")).arg(name);
    assert!(tar.status().expect("tar runs").success(), "{archive}");
    target
}

fn without_archive(mut machine: Value) -> Value {
    machine.as_object_mut().expect("an object").remove("archive");
    machine
}

#[test]
fn recorded_trees_are_the_same_in_their_archives() {
    let test = "recorded_trees_are_the_same_in_their_archives";
    let Some(folder) = fixtures("topology", test) else { return };
    let archives = files(&folder, ".tar.");
    assert!(archives.len() >= 21, "{} archives", archives.len());
    for archive in archives {
        let unpacked = crate::synthetic::folder();
        let tar = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(unpacked.path()).status();
        assert!(tar.expect("tar runs").success(), "{}", archive.display());
        let (inside, outside) = (machine("--root", &archive), machine("--root", unpacked.path()));
        assert_eq!(inside, outside, "{}", archive.display());
        assert!(inside["cpus"]["online"].as_str().is_some_and(|list| !list.is_empty()), "{inside}");
    }
}

#[test]
fn printouts_of_real_boards_in_a_sosreport_and_a_supportconfig() {
    let test = "printouts_of_real_boards_in_a_sosreport_and_a_supportconfig";
    let Some(folder) = fixtures("dmi", test) else { return };
    let printouts = files(&folder, ".txt");
    assert!(printouts.len() >= 19, "{} printouts", printouts.len());
    for (at, printout) in printouts.iter().enumerate() {
        let name = printout.display();
        let alone = machine("--dmi", printout);
        let made = tempfile::tempdir().expect("a folder");
        let report = made.path().join("sosreport-db7");
        fs::create_dir_all(report.join("sos_commands/hardware")).expect("creates");
        fs::copy(printout, report.join("sos_commands/hardware/dmidecode")).expect("copies");
        std::os::unix::fs::symlink("sos_commands/hardware/dmidecode", report.join("dmidecode"))
            .expect("links");
        let suffix = ["tar", "tar.gz", "tar.xz", "tar.bz2"][at % 4];
        let support = made.path().join("scc_db7");
        fs::create_dir_all(&support).expect("creates");
        fs::write(support.join("basic-environment.txt"), "").expect("writes");
        let text = fs::read(printout).expect("readable");
        let head = b"#==[ Command ]======================================#\n# /usr/sbin/dmidecode\n";
        fs::write(support.join("hardware.txt"), [head, text.as_slice(), b"\n"].concat()).expect("writes");
        for archive in [
            packed(&report, &format!("sosreport-db7.{suffix}")),
            packed(&support, "scc_db7.txz"),
            report,
            printout.clone(),
        ] {
            let found = machine("--root", &archive);
            for field in ["dimm_verdict", "dimm_findings", "dimms", "dmi"] {
                assert_eq!(found[field], alone[field], "{name} {}: {field}", archive.display());
            }
            assert!(found["archive"]["kind"].is_string(), "{name}");
        }
    }
}

#[test]
fn the_same_host_by_hwloc_and_by_its_files() {
    let Some(folder) = fixtures("topology", "the_same_host_by_hwloc_and_by_its_files") else { return };
    // hwloc's own XML of a host with CPUs that are off, and the host's files.
    let by_xml = machine("--root", &folder.join("16em64t-4s2c2t-offlines-xml.xml"));
    let by_files = machine("--root", &folder.join("16em64t-4s2c2t-offlines.tar.bz2"));
    for field in ["packages", "cores", "cpus", "threads_per_core"] {
        assert_eq!(by_xml["summary"][field], by_files["summary"][field], "{field}");
    }
    assert_eq!(by_xml["cpus"]["online"], by_files["cpus"]["online"]);
}

#[test]
fn what_sources_say_against_each_other_is_on_the_screen() {
    let made = tempfile::tempdir().expect("a folder");
    let report = made.path().join("sosreport-db7");
    let write = |path: &str, text: &str| {
        let path = report.join(path);
        fs::create_dir_all(path.parent().expect("a folder above")).expect("creates");
        fs::write(path, text).expect("writes");
    };
    write("proc/version", "Linux version 6.1.0-13-amd64 (x@y) #1 SMP Debian");
    write("proc/sys/kernel/hostname", "db7");
    write("sos_commands/kernel/uname_-a", "Linux db8 6.1.0-13-amd64 #1 SMP Debian x86_64 GNU/Linux\n");
    let lscpu = "Architecture: x86_64\nCPU(s): 4\nOn-line CPU(s) list: 0-3\nThread(s) per core: 2\nCore(s) per socket: 1\n\
                 Socket(s): 2\nModel name: X\n";
    write("sos_commands/processor/lscpu", lscpu);
    let archive = packed(&report, "sosreport-db7.tar.gz");
    let found = machine("--root", &archive);
    let told = "the sources differ in host name: db7 by proc/sys/kernel/hostname, db8 by uname \
                (sos_commands/kernel/uname_-a)";
    assert_eq!(found["archive"]["contradictions"], json!([told]));
    assert_eq!(found["archive"]["in_doubt"], json!(["host name"]));
    assert_eq!(found["summary"]["packages"], Value::Null);
    let absent = found["archive"]["absent"].as_array().expect("a list");
    assert!(absent.contains(&json!("memory modules")), "{absent:?}");
    let validator = crate::validator("machine");
    let errors: Vec<String> = validator.iter_errors(&found).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let screen = shown("--root", &archive, &[]);
    let words: Vec<&str> = screen.split_whitespace().collect();
    let screen = words.join(" ");
    for words in [
        "sources The sources differ in host name: db7 by proc/sys/kernel/hostname, db8 by uname",
        "read from sosreport: its files, lscpu, uname",
        "only counted 2 sockets, 2 cores, 2 threads per core",
        "CANNOT TELL Its sources contradict each other in host name",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    // What was saved of it says the same.
    let saved = made.path().join("db7.json.gz");
    let path = |path: &Path| path.to_str().expect("a plain path").to_string();
    assert!(run(&["--root", &path(&archive), "--save", &path(&saved), "--quiet"]).status.success());
    assert_eq!(machine("--from", &saved), found);
    assert_ne!(without_archive(found.clone()), found);
}

/// What is certain stands first, whatever else is not known; and nothing of two hosts is judged.
#[test]
fn a_certain_problem_is_the_verdict_and_contradictions_deny_one() {
    let made = tempfile::tempdir().expect("a folder");
    let tables = crate::golden::three_one();
    let first = shown("--dmi", &tables.root().join("sys/firmware/dmi/tables/DMI"), &[]);
    let words: Vec<&str> = first.split_whitespace().collect();
    assert!(
        words.join(" ").contains("NOT READY TO MEASURE One thing will disturb measurements: modules"),
        "{first}"
    );
    assert!(words.join(" ").contains("Only its memory modules are described."), "{first}");
    let lscpu = "Architecture: x86_64\nCPU(s): 512\nOn-line CPU(s) list: 0,1\nModel name: X\n";
    let file = made.path().join("lscpu.txt");
    fs::write(&file, lscpu).expect("writes");
    let shown = shown("--root", &file, &[]);
    let words: Vec<&str> = shown.split_whitespace().collect();
    let shown = words.join(" ");
    for words in [
        "CANNOT TELL Its sources contradict each other in CPUs",
        "sources The sources differ in CPUs: 512 by CPU(s) of lscpu, 2 by lscpu.",
        "1 problem",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn what_cannot_be_read_is_told_what_can() {
    let made = tempfile::tempdir().expect("a folder");
    let file = made.path().join("notes.txt");
    fs::write(&file, "no machine").expect("writes");
    let output = run(&["--root", file.to_str().expect("a plain path")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    for word in ["notes.txt", "sosreport", "supportconfig", "insights", "lstopo", "lshw", "hwinfo", "numactl"]
    {
        assert!(errors.contains(word), "{word}: {errors}");
    }
}
