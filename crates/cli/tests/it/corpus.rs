//! The fuzzers' corpus, replayed: what once broke a reader does not break it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flate2::read::MultiGzDecoder;

use model::Snapshot;
use sys::clock::thread_time;

#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

fn folder(inner: &str) -> PathBuf {
    testkit::root().join(inner)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// CPU time that no input of the corpus may take more of: the fuzzers call ten seconds of optimised
/// code a hang, and tests are not optimised, on hosts that are slow and busy.
const LONGEST: Duration = Duration::from_secs(30);

fn replay(name: &str) {
    let (_, target) = targets::TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
    let mut files = files(&folder("fuzz/corpus").join(name));
    assert!(!files.is_empty(), "no corpus for {name}");
    if name == "import" {
        // A small result of each format, which the fuzzer begins with, too.
        files.extend(self::files(&folder("tests/foreign")).into_iter().filter(|file| file.is_file()));
    }
    for file in files {
        let data = fs::read(&file).expect("readable");
        assert!(data.len() < 64 << 10, "{} is too large to be committed", file.display());
        let begin = thread_time();
        // Which file it was stands in the test's output only where it failed.
        println!("{}", file.display());
        target(&data);
        let took = thread_time() - begin;
        println!("  {took:?}");
        assert!(took < LONGEST, "{} took {took:?}", file.display());
    }
}

macro_rules! replayed {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })+

        #[test]
        fn every_target_is_replayed_and_known() {
            let replayed = [$(stringify!($name)),+];
            let known: Vec<&str> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(known, replayed);
            let manifest = fs::read_to_string(folder("fuzz/Cargo.toml")).expect("readable");
            let folders: Vec<PathBuf> = files(&folder("fuzz/corpus"));
            assert_eq!(folders.len(), known.len(), "{folders:?}");
            for name in known {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is no program of fuzz/Cargo.toml");
            }
        }
    };
}

replayed! {
    archive
    cpuid
    cpuset
    dmidecode_text
    import
    machine_tree
    network
    run_file
    sample_line
    smbios
    snapshot
    visits
}

/// Larger material than the corpus may hold, made for the long run: `ASSAY_SEEDS=DIR cargo
/// test -- --ignored seeds` writes a folder a target into DIR, from this repository's
/// recordings and, where they are, from the shared fixtures.
#[test]
#[ignore = "makes seeds for fuzz/run"]
fn seeds() {
    let Some(target) = std::env::var_os("ASSAY_SEEDS").map(PathBuf::from) else { return };
    let write = |kind: &str, name: &str, data: &[u8]| {
        // What is longer is cut by the fuzzers, and what is cut is no JSON any more.
        if data.len() <= 64 << 10 {
            fs::create_dir_all(target.join(kind)).expect("creates");
            fs::write(target.join(kind).join(name), data).expect("writes");
        }
    };
    for (name, snapshot) in recordings().into_iter().chain(fixtures()) {
        let json = serde_json::to_vec(&snapshot).expect("every snapshot can be written");
        write("snapshot", &name, &json);
        write("machine_tree", &name, &targets::tree::written(&snapshot));
        let dumps = snapshot.below("probe:cpuid").filter_map(|(path, _)| snapshot.text(path));
        let dumps: Vec<&str> = dumps.take(4).collect();
        if !dumps.is_empty() {
            write("cpuid", &name, dumps.join("\n=\n").as_bytes());
        }
    }
    for name in ["cpu.clock", "ipc", "memory.latency"] {
        write("run_file", name, &pretended(name));
    }
}

fn recordings() -> Vec<(String, Snapshot)> {
    let snapshot = |file: PathBuf| {
        let name = file.file_name().expect("a name").to_string_lossy().to_string();
        let data = fs::read(&file).expect("readable");
        let snapshot = match data.starts_with(&[0x1f, 0x8b]) {
            true => serde_json::from_reader(MultiGzDecoder::new(data.as_slice())),
            false => serde_json::from_slice(&data),
        };
        (name, snapshot.expect("a snapshot"))
    };
    files(&folder("tests/machines")).into_iter().map(snapshot).collect()
}

/// Machines that are not part of this project; none in a clone without them.
fn fixtures() -> Vec<(String, Snapshot)> {
    let machines = folder("../shared/fixtures/topology");
    if !machines.is_dir() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for archive in files(&machines).into_iter().chain(files(&machines.join("x86-cpuid"))) {
        let name = archive.file_name().expect("a name").to_string_lossy().to_string();
        if !name.contains(".tar") {
            continue;
        }
        let unpacked = crate::synthetic::folder();
        let status = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(unpacked.path()).status();
        assert!(status.expect("tar runs").success(), "{name}");
        for inner in files(unpacked.path()).into_iter().filter(|inner| inner.is_dir()) {
            let tree = snapshot::read(&inner);
            let dump = snapshot::read_cpuid(&inner);
            found.extend([tree, dump].map(|snapshot| (name.clone(), snapshot)));
        }
    }
    found.retain(|(_, snapshot)| !snapshot.entries.is_empty());
    found
}

/// The head and some visits of a run whose samples are invented.
fn pretended(only: &str) -> Vec<u8> {
    let out = tempfile::tempdir().expect("a temporary folder");
    let machine = folder("tests/machines/firecracker-guest-2cpu.json");
    let args = ["run", "--quick", "--force", "--pretend", "7", "--only", only];
    let output = crate::assay().args(args).arg("--from").arg(machine).arg("--out").arg(out.path()).output();
    assert!(output.expect("assay runs").status.success());
    let run_file = files(out.path()).into_iter().find(|file| file.to_string_lossy().ends_with(".jsonl"));
    // What a fuzzer changes in a line with a checksum is damage, whatever it is.
    let text = crate::runs::unsealed(&run_file.expect("a run file"));
    let lines: Vec<&str> = text.lines().collect();
    let kept = [&lines[..lines.len().min(14)], &lines[lines.len() - 2..]].concat();
    kept.join("\n").into_bytes()
}
