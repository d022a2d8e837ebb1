//! A redacted bundle contains no names, and is judged as before.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use model::{Entry, Snapshot};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runs::{Ended, end, on_file, pretended, run_file, run_into, unsealed};

mod planted;
mod support;

/// Files of a bundle by name, packed ones unpacked.
fn unpacked(bundle: &Path) -> BTreeMap<String, Vec<u8>> {
    let packed = fs::File::open(bundle).expect("a bundle");
    let mut archive = tar::Archive::new(MultiGzDecoder::new(packed));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a name").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("bytes");
        if name.ends_with(".gz") {
            let mut plain = Vec::new();
            MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).expect("unpacks");
            bytes = plain;
        }
        files.insert(name, bytes);
    }
    files
}

/// `assay bundle --redact` of these runs, into a folder.
fn bundle(runs: &[&Path], folder: &Path) -> (PathBuf, Ended) {
    let out = folder.join("case.tar.gz");
    let mut command = crate::assay();
    command.arg("bundle").args(runs).args(["--redact", "--out"]).arg(&out);
    (out, end(&mut command))
}

/// What became what in the bundle of a folder: replacement to original.
fn mapping(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join("case.map.json")).expect("a mapping");
    let mapping: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(mapping["mapping"].clone()).expect("a map")
}

/// A run with invented samples, by a name and labels of an owner.
fn named_run(folder: &Path, host: &str, rack: &str) -> PathBuf {
    let words = pretended("cpu.clock,memory.latency,ipc.pipe-pingpong");
    let mut command = run_into(folder, &words);
    end(command.args(["--host", host, "--label", &format!("rack={rack}")])).measured();
    run_file(folder)
}

/// Numbers and words that a redacted run must have as its original.
fn differences(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    const SAME: [&str; 7] = ["rule", "severity", "verdict", "grade", "unit", "kind", "effect"];
    let last = path.rsplit('.').next().unwrap_or(path).trim_end_matches(|c: char| !c.is_alphabetic());
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for ((name, one), other) in a.iter().zip(b.values()) {
                differences(&format!("{path}.{name}"), one, other, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (one, other) in a.iter().zip(b) {
                differences(path, one, other, found);
            }
        }
        (Value::String(_), Value::String(_)) if !SAME.contains(&last) => {}
        _ if one == other => {}
        _ => found.push(format!("{path}: {one} is {other}").chars().take(300).collect()),
    }
}

fn diagnosed(file: &Path) -> Value {
    let ended = on_file("diagnose", file, "--json");
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.err))
}

#[test]
fn a_redacted_run_is_judged_as_its_original() {
    let archive = testkit::root().join("tests/archive");
    let folder = tempfile::tempdir().expect("a folder");
    let mut runs: Vec<PathBuf> = ["quick", "smt", "sweep", "unixbench", "memory-map"]
        .map(|name| archive.join(format!("{name}.assay.jsonl.gz")))
        .to_vec();
    runs.push(named_run(&folder.path().join("named"), "prod-ledger-7", "r7-zurich"));
    for run in runs {
        let own = tempfile::tempdir().expect("a folder");
        let (out, ended) = bundle(&[&run], own.path());
        ended.expect(0);
        let mut found = Vec::new();
        differences("", &diagnosed(&run), &diagnosed(&out), &mut found);
        assert!(found.is_empty(), "{}: {} differences: {found:#?}", run.display(), found.len());
    }
}

#[test]
fn one_original_has_one_name_in_all_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    // The second one is called as the first one will be.
    let runs =
        [named_run(&path("a"), "prod-ledger-7", "r7-zurich"), named_run(&path("b"), "host-1", "r7-zurich")];
    let (out, ended) = bundle(&[&runs[0], &runs[1]], folder.path());
    ended.expect(0);
    for said in ["2 runs and 2 pages", "3 hosts", "1 label", "case.map.json", "--verify"] {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    let mode = fs::metadata(path("case.map.json")).expect("a mapping").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mapping = mapping(folder.path());
    assert_eq!(mapping["host-2"], "prod-ledger-7");
    assert!(mapping.iter().any(|(name, host)| name != "host-1" && host == "host-1"), "{mapping:?}");
    assert_eq!(mapping["label-1"], "r7-zurich");
    let files = unpacked(&out);
    assert_eq!(files.len(), 5, "{:?}", files.keys());
    let manifest: Value = serde_json::from_slice(&files["assay-bundle/MANIFEST.json"]).expect("JSON");
    // The kernel calls both by a third name.
    assert_eq!(manifest["replaced"]["host"], 3);
    assert_eq!(manifest["files"].as_array().map(Vec::len), Some(4));
    let summaries = end(crate::assay().arg("summary").arg(&out));
    let hosts: Vec<String> = summaries
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["summary"]["labels"]["rack"].to_string()
        })
        .collect();
    assert_eq!(hosts, ["\"label-1\"", "\"label-1\""], "{}", summaries.err);

    // Verbs take it as a folder of runs.
    let ended = on_file("diagnose", &out, "");
    ended.says(&["has 2 runs; name one of them"]).expect(3);
    let member = files.keys().find(|name| name.ends_with(".jsonl.gz")).expect("a run");
    let member = out.join(Path::new(member).file_name().expect("a name"));
    let host = diagnosed(&member)["host"].to_string();
    assert!(host.contains("host-") && host != "\"host-1\"", "{host}");
    end(crate::assay().arg("peers").arg(&out).arg("--json")).expect(4);
    end(crate::assay().arg("compare").arg(&runs[0]).arg(&member)).sane();
    end(crate::assay().arg("report").arg(&member)).expect(0);
    assert!(folder.path().join("report.html").exists());
}

#[test]
fn what_is_left_is_named_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = named_run(&folder.path().join("a"), "prod-ledger-7", "r7-zurich");
    let (out, ended) = bundle(&[&run], folder.path());
    ended.expect(0);
    let verify = |words: &[&str]| end(crate::assay().args(["bundle", "--verify"]).arg(&out).args(words));
    let ended = verify(&[]);
    assert!(ended.expect(0).out.contains("no name is left"), "{}", ended.out);
    // A file with names is added to the bundle.
    let mut files = unpacked(&out);
    let hex: String = b"PROD-LEDGER-7".iter().map(|byte| format!("{byte:02x}")).collect();
    files.insert("assay-bundle/notes.txt".into(), format!("seen {hex} at 52:54:00:12:34:56").into_bytes());
    let packed = flate2::write::GzEncoder::new(fs::File::create(&out).expect("a file"), Default::default());
    let mut tar = tar::Builder::new(packed);
    for (name, bytes) in &files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_groupname("prod-ledger-7").expect("a short name");
        tar.append_data(&mut header, name, bytes.as_slice()).expect("added");
    }
    tar.into_inner().and_then(|packed| packed.finish()).expect("written");
    let ended = verify(&[]);
    ended.expect(1).says(&["notes.txt", "host \"prod-ledger-7\" in hexadecimal digits", "52:54:00:12:34:56"]);
    ended.says(&["in headers of the archive"]);
    assert!(ended.out.contains("notes.txt was added"), "{}", ended.out);
    // Without the mapping shapes alone are known.
    fs::rename(folder.path().join("case.map.json"), folder.path().join("mine.json")).expect("moved");
    let ended = verify(&[]);
    assert!(!ended.expect(1).err.contains("prod-ledger-7"), "{}", ended.err);
    let map = folder.path().join("mine.json");
    verify(&["--map", &map.display().to_string()]).expect(1).says(&["prod-ledger-7"]);
    // A mapping that does not name what this bundle replaced finds nothing in it.
    let other = folder.path().join("other.json");
    let text = fs::read_to_string(&map).expect("a mapping").replace("\"host-1\"", "\"label-9\"");
    fs::write(&other, text).expect("written");
    verify(&["--map", &other.display().to_string()]).expect(3).says(&["mapping of another bundle"]);
    end(crate::assay().args(["bundle", "--verify"]).arg(&run)).expect(3).says(&["is not a bundle"]);
    end(crate::assay().arg("bundle").arg(&run)).expect(2).says(&["--redact"]);
}

/// Snapshots of the hosts that are recorded, and of this one.
fn snapshots() -> Vec<(String, Snapshot)> {
    let folder = tempfile::tempdir().expect("a folder");
    let live = folder.path().join("live.json");
    end(crate::assay().args(["machine", "--save"]).arg(&live)).expect(0);
    let recorded = fs::read_dir(testkit::root().join("tests/machines")).expect("machines").flatten();
    let paths = recorded.map(|entry| entry.path()).chain([live]);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("text");
        (path.display().to_string(), serde_json::from_str(&text).expect("a snapshot"))
    };
    paths.map(read).collect()
}

#[test]
fn every_path_that_is_read_has_a_class() {
    let mut unknown = BTreeSet::new();
    for (file, snapshot) in snapshots() {
        assert!(!snapshot.entries.is_empty(), "{file}");
        unknown.extend(snapshot.entries.keys().filter(|path| redact::class_of(path).is_none()).cloned());
    }
    assert!(unknown.is_empty(), "say in crates/redact/src/snapshot.rs what may leave of: {unknown:#?}");
    assert_eq!(redact::class_of("/etc/machine-info"), None);
    assert_eq!(redact::class_of("/proc/sys/vm/swappiness/x"), None);
}

/// A folder that is kept as long as it is used, with a run file of these lines.
fn of_lines(lines: &[Value]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.assay.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&file, text).expect("written");
    (folder, file)
}

/// The lines of a run file of old, without their checksums.
fn lines_of(name: &str) -> Vec<Value> {
    let packed = fs::File::open(testkit::root().join("tests/archive").join(name)).expect("a run of old");
    let mut text = String::new();
    MultiGzDecoder::new(packed).read_to_string(&mut text).expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.assay.jsonl");
    fs::write(&file, text).expect("written");
    unsealed(&file).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn what_nobody_classified_does_not_leave() {
    let secret = "zqsecret-hallway";
    let mut lines = lines_of("memory-map.assay.jsonl.gz");
    let root = &mut lines[0]["header"]["snapshot"][""];
    root["etc"]["machine-info"] = json!(format!("PRETTY_HOSTNAME={secret}\n"));
    root["proc"]["sys"]["vm"]["tomorrow"] = json!(format!("12 {secret}\n"));
    root["sys"]["class"]["net"]["zqsecret-veth"] = json!({ "mtu": "1500\n" });
    lines.push(json!({ "visit": { "order": secret } }));
    let (folder, file) = of_lines(&lines);
    let (out, ended) = bundle(&[&file], folder.path());
    ended.expect(0);
    let files = unpacked(&out);
    let run = files.iter().find(|(name, _)| name.ends_with(".gz")).expect("a run").1;
    let run = model::run_file::parse(run.as_slice()).expect("a run");
    assert!(run.header.snapshot.get("/etc/machine-info").is_none());
    let text = |path: &str| run.header.snapshot.text(path).map(str::to_string);
    assert!(text("/proc/sys/vm/tomorrow").is_some_and(|text| text.starts_with("12 redacted-")));
    let entries = run.header.snapshot.entries.iter();
    let mtu = entries.filter(|(path, _)| path.starts_with("/sys/class/net/device-")).map(|(_, entry)| entry);
    assert!(mtu.eq([&Entry::Text("1500\n".into())]));
    let manifest: Value = serde_json::from_slice(&files["assay-bundle/MANIFEST.json"]).expect("JSON");
    assert_eq!(manifest["dropped_lines"], 1, "{manifest}");
    assert_eq!(manifest["dropped_entries"].as_u64().map(|count| count >= 1), Some(true));
    for (name, bytes) in &files {
        assert!(!String::from_utf8_lossy(bytes).to_lowercase().contains("zqsecret"), "{name}");
    }
}
