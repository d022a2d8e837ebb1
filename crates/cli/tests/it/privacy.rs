//! What identifies an owner or other users reaches no file and no report, and comes out of no old
//! file again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use model::Record;
use serde_json::{Value, json};

use crate::runs::{end, on_file, quiet_tree, read, run_file, run_files};
use crate::smbios::{Board, structure};
use crate::synthetic::Tree;

const SERIAL: &str = "ZQSYSTEM07";
const MODULE: &str = "ZQMODULE31";
const TAG: &str = "ZQTAGGED55";
const UUID: &str = "ZQUUIDSIXTEENBYT";
const TOKEN: &str = "ZQTOKEN-9";
const OEM: &str = "ZQOEMSTRING";
const CONTAINER: &str = "c5cbea2ff78eea580bdaf3cd6f381dafc5cbea2ff78eea580bdaf3cd6f381daf";
const POD: &str = "0b9c4f0e-6d54-4a43-9d6a-1c1f1c9a2a77";
const PLANTED: [&str; 8] = [SERIAL, MODULE, TAG, UUID, TOKEN, OEM, CONTAINER, POD];

/// A board whose modules lie evenly, with serial numbers in it.
fn table() -> Vec<u8> {
    let mut board = Board::even(1);
    let fields = [(4, 1), (5, 2), (6, 3), (7, 4)];
    let strings = ["Dell Inc.", "PowerEdge R740", &format!("sold as {SERIAL}"), SERIAL];
    board.structures[0] = structure(1, 0x1b, &fields, &strings);
    board.structures[0][8..24].copy_from_slice(UUID.as_bytes());
    let modules = board.structures.iter_mut().filter(|one| one[0] == 17 && one[0x17] > 0);
    for module in modules {
        (module[0x18], module[0x19]) = (4, 5);
        module.pop();
        module.extend(format!("{MODULE}\0{TAG}\0\0").bytes());
    }
    board.structures.push(structure(11, 5, &[(4, 1)], &[OEM]));
    board.table()
}

fn command_line() -> String {
    format!("quiet mitigations=off token={TOKEN} root=UUID={POD}")
}

fn group() -> String {
    format!("/kubepods/pod{POD}/{CONTAINER}")
}

fn tree() -> Tree {
    let tree = quiet_tree();
    tree.bytes("/sys/firmware/dmi/tables/DMI", &table());
    tree.file("/sys/class/dmi/id/product_version", &format!("sold as {SERIAL}"));
    tree.file("/proc/cmdline", &command_line());
    tree.file("/proc/self/cgroup", &format!("0::{}", group()));
    tree.file("/proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw");
    tree.file(&format!("/cg{}/cpu.max", group()), "max 100000");
    tree.file(&format!("/cg{}/memory.max", group()), "8589934592");
    tree
}

/// Fails where a planted text stands in these bytes, as it is or in hexadecimal digits, in small
/// letters or large.
#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    for planted in PLANTED {
        let small = planted.to_ascii_lowercase();
        for form in [small.clone(), hex(&small), hex(planted)] {
            let at = text.find(&form);
            let around = at.map(|at| &text[at.saturating_sub(60)..(at + 80).min(text.len())]);
            assert!(at.is_none(), "{planted} in {what}: {}", around.unwrap_or_default());
        }
    }
}

#[track_caller]
fn clean_file(path: &Path) {
    let mut bytes = fs::read(path).expect("readable");
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut bytes);
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("unpacks");
    }
    clean(&path.display().to_string(), &bytes);
}

/// Every report that there is of a run file, and a host's of a saved one.
#[track_caller]
fn clean_reports(file: &Path) {
    for words in ["--format json", "--format markdown", "--format csv", "--format html"] {
        let out = tempfile::tempdir().expect("a folder");
        let mut command = crate::assay();
        command.args(["report"]).arg(file).args(words.split(' ')).arg("--out").arg(out.path().join("r"));
        end(&mut command).expect(0);
        let written: Vec<PathBuf> = files_below(out.path());
        assert!(!written.is_empty(), "{words}");
        written.iter().for_each(|path| clean_file(path));
    }
    for (verb, words) in [("diagnose", ""), ("diagnose", "--json"), ("peers", "")] {
        let ended = on_file(verb, file, words);
        clean(&format!("{verb} {words}"), format!("{}{}", ended.out, ended.err).as_bytes());
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The snapshot's tree as versions before wrote it.
fn as_of_old(mut snapshot: Value) -> Value {
    let hex: String = table().iter().map(|byte| format!("{byte:02x}")).collect();
    let root = &mut snapshot[""];
    root["sys"]["firmware"]["dmi"]["tables"]["DMI"] = json!(["bytes", hex]);
    root["proc"]["cmdline"] = json!(command_line());
    root["proc"]["self"]["cgroup"] = json!(format!("0::{}\n", group()));
    root["proc"]["self"]["mountinfo"] = json!("31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    root["cg"]["kubepods"] = json!({ format!("pod{POD}"): { CONTAINER: { "memory.max": "8589934592\n" } } });
    snapshot
}

#[test]
fn a_machine_is_saved_and_shown_without_what_identifies_it() {
    let (tree, out) = (tree(), tempfile::tempdir().expect("a folder"));
    let machine = |words: &[&Path]| {
        let ended = end(crate::assay().arg("machine").args(words));
        ended.expect(0);
        clean(&format!("{words:?}"), format!("{}{}", ended.out, ended.err).as_bytes());
        ended.out
    };
    let p = Path::new;
    let (plain, packed) = (out.path().join("m.json"), out.path().join("m.json.gz"));
    machine(&[p("--root"), tree.root(), p("--save"), &plain]);
    let told = machine(&[p("--root"), tree.root(), p("--json"), p("--save"), &packed]);
    // What was looked for is found all the same.
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(
        (&told["dimm_verdict"], &told["limits"]["memory_bytes"]),
        (&json!("balanced"), &json!(8u64 << 30))
    );
    assert_eq!(told["kernel"]["command_line"], "quiet mitigations=off token=*** root=***");
    assert_eq!(told["dmi"]["product"], "PowerEdge R740");
    clean_file(&plain);
    clean_file(&packed);
    // A file of old is blanked when it is read, and judged the same.
    let old = out.path().join("old.json");
    let saved: Value = serde_json::from_slice(&fs::read(&plain).expect("saved")).expect("JSON");
    fs::write(&old, as_of_old(saved).to_string()).expect("written");
    let again = out.path().join("again.json");
    let shown = machine(&[p("--from"), &old, p("--json"), p("--save"), &again]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    for field in ["dimms", "dimm_verdict", "dimm_sockets", "limits", "kernel", "dmi"] {
        assert_eq!(shown[field], told[field], "{field}");
    }
    clean_file(&again);
    // Tables and printouts by themselves.
    let dump = out.path().join("dump.bin");
    fs::write(&dump, table()).expect("written");
    machine(&[p("--dmi"), &dump, p("--save"), &again]);
    clean_file(&again);
    let printout = out.path().join("printout.txt");
    let text = format!(
        "root@{SERIAL}:~# dmidecode\nSystem Information\n\tManufacturer: Dell Inc.\n\tSerial Number: {SERIAL}\n\
         \tUUID: {POD}\n\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\tSerial Number: {MODULE}\n\
         \tPart Number: M393 {MODULE}\n\tAsset Tag: {TAG}\n\nOEM Strings\n\tString 1: {OEM}\n"
    );
    fs::write(&printout, text).expect("written");
    let told = machine(&[p("--dmi"), &printout, p("--json"), p("--save"), &again]);
    assert!(told.contains("M393 xxxxxxxxxx"), "{told}");
    clean_file(&again);
}

#[test]
fn runs_and_reports_show_nothing_of_it() {
    let (tree, out) = (tree(), tempfile::tempdir().expect("a folder"));
    let mut run = crate::assay();
    run.args("run --quick --force --only selftest.steady,memory.latency --budget 4s --root".split(' '));
    let ended = end(run.arg(tree.root()).arg("--out").arg(out.path()));
    ended.sane();
    clean("the screen", format!("{}{}", ended.out, ended.err).as_bytes());
    files_below(out.path()).iter().for_each(|path| clean_file(path));
    let file = run_file(out.path());
    clean_reports(&file);

    // The same run as an older version would have written it.
    let run = read(&file);
    let mut header = serde_json::to_value(&run.header).expect("JSON");
    header["snapshot"] = as_of_old(header["snapshot"].take());
    header["plan"][0]["case"]["inputs"] = json!({ "groups": format!("/cg{}", group()) });
    let mut lines = vec![json!({ "header": header }).to_string()];
    let records = run.visits.iter().cloned().map(|visit| Record::Visit(Box::new(visit)));
    let records = records.chain(run.summary.clone().map(|summary| Record::Summary(Box::new(summary))));
    lines.extend(records.map(|record| serde_json::to_string(&record).expect("JSON")));
    let folder = tempfile::tempdir().expect("a folder");
    let old = folder.path().join("old.assay.jsonl");
    fs::write(&old, lines.join("\n") + "\n").expect("written");
    assert!(fs::read_to_string(&old).expect("written").contains(TOKEN));
    clean_reports(&old);
    let judged = |file: &Path| {
        let told: Value = serde_json::from_str(&on_file("diagnose", file, "--json").out).expect("JSON");
        (told["findings"].clone(), told["machine"]["dimm_verdict"].clone())
    };
    assert_eq!(judged(&old), judged(&file));
}

#[test]
fn a_run_of_old_that_holds_it_is_not_gone_on_with() {
    let (tree, out) = (tree(), tempfile::tempdir().expect("a folder"));
    let saved = out.path().join("m.json");
    end(crate::assay().args(["machine", "--root"]).arg(tree.root()).arg("--save").arg(&saved)).expect(0);
    let runs = out.path().join("runs");
    let words = "run --quick --only selftest.steady --pretend 7 --from";
    let run = || end(crate::assay().args(words.split(' ')).arg(&saved).arg("--out").arg(&runs));
    run().sane();
    let begun = run_file(&runs);
    let header = read(&begun).header;
    let mut of_old = serde_json::to_value(&header).expect("JSON");
    // A clean one of which the end is missing is gone on with.
    let line = |header: &Value| json!({ "header": header }).to_string() + "\n";
    fs::write(&begun, line(&of_old)).expect("written");
    run().sane();
    assert_eq!(run_files(&runs).len(), 1);
    of_old["snapshot"] = as_of_old(of_old["snapshot"].take());
    fs::write(&begun, line(&of_old)).expect("written");
    let ended = run();
    ended.says(&["is not resumed: its file contains serial numbers or ids"]);
    let files = run_files(&runs);
    assert_eq!(files.len(), 2, "{files:?}");
    files.iter().filter(|file| **file != begun).for_each(|file| clean_file(file));
}
