//! Messages to people and programs when something went wrong: no more than is known, all of it, and
//! nothing that a terminal would obey.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runs::{diagnosed, end, on_file, pretended, quiet_tree, run_file, run_into, unsealed};

/// A finished run with invented samples, after `change` to its lines.
fn changed(change: impl FnOnce(&mut Vec<Value>)) -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(dir.path(), &pretended("selftest.steady"))).expect(0);
    let text = unsealed(&run_file(dir.path()));
    let mut lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    change(&mut lines);
    let path = dir.path().join("changed.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).expect("written");
    (dir, path)
}

#[test]
fn where_nothing_was_measured_nothing_is_called_good() {
    let (_dir, file) = changed(|lines| lines.truncate(1));
    let results = diagnosed(&file);
    assert_eq!(results["rules_clean"], json!([]));
    let text = on_file("diagnose", &file, "").expect(3).out.clone();
    assert!(!text.contains('✓'), "{text}");
}

#[test]
fn an_error_that_quotes_a_stranger_is_one_harmless_line() {
    let (_dir, file) = changed(|lines| {
        lines[0]["header"]["plan"][0]["case"]["placement"]["seats"] =
            json!("\u{1b}]0;pwn\u{7}\u{202e}\nassay: all is well");
    });
    for verb in ["diagnose", "report"] {
        let told = on_file(verb, &file, "").expect(3).err.clone();
        assert!(told.contains("its header has unknown content") && told.contains("pwn"), "{told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{told}");
        assert!(!told.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{told:?}");
    }
}

#[test]
fn json_holds_nothing_that_a_terminal_obeys() {
    const HOST: &str = "a\u{9b}31m\u{202e}b\u{7f}";
    let (_dir, file) = changed(|lines| lines[0]["header"]["host"] = json!(HOST));
    let text = on_file("diagnose", &file, "--json").expect(0).out.clone();
    assert!(text.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')));
    let results: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(results["host"], HOST, "escaped, not changed");
}

#[test]
fn all_damage_is_counted() {
    let (_dir, file) = changed(|_| {});
    let mut open = fs::OpenOptions::new().append(true).open(&file).expect("opens");
    open.write_all(&b"damage\n".repeat(40)).expect("written");
    let text = on_file("diagnose", &file, "").expect(0).out.clone();
    assert!(text.contains("40 lines of the file cannot be read"), "{text}");
    assert_eq!(diagnosed(&file)["damage"].as_array().map(Vec::len), Some(40));
}

#[test]
fn results_are_shown_even_where_no_report_can_be_written() {
    let dir = tempfile::tempdir().expect("a folder");
    // A folder of that name: no file can take its place, not even root's.
    fs::create_dir(dir.path().join("report.html")).expect("a folder");
    let ended = end(&mut run_into(dir.path(), &pretended("selftest.steady")));
    ended.expect(3).says(&["report.html", "the run file is safe"]);
    assert!(ended.out.contains("A clean case"), "{}", ended.out);
    assert!(dir.path().join("report.json").exists());
}

#[test]
fn every_format_can_go_into_a_folder() {
    let (dir, file) = changed(|_| {});
    let out = dir.path().join("new/folder");
    for (format, name) in
        [("html", "report.html"), ("json", "report.json"), ("markdown", "report.md"), ("csv", "report.csv")]
    {
        let printed = on_file("report", &file, &format!("--format {format} --out {}", out.display()));
        printed.expect(0).says(&["saved"]);
        assert!(printed.out.is_empty() || format == "html");
        let written = fs::read_to_string(out.join(name)).expect("it was written");
        // The last line of Markdown is a checksum, by which later changes are detected.
        let written = written.split("\n<!-- written by assay, crc32 ").next().unwrap_or_default();
        if format != "html" {
            assert_eq!(written, on_file("report", &file, &format!("--format {format}")).expect(0).out);
        }
    }
}

#[test]
fn a_missing_temporary_directory_is_told_by_the_variable_that_names_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let missing = dir.path().join("missing").display().to_string();
    for (number, named) in ["", missing.as_str()].into_iter().enumerate() {
        let out = dir.path().join(number.to_string());
        let ended = end(run_into(&out, "--quick --only file.create --force").env("TMPDIR", named));
        ended.says(&[&format!("the directory {named:?} that TMPDIR names"), "--dir"]);
    }
}

#[test]
fn what_may_still_be_changed_is_named_where_the_journal_cannot_be_read() {
    let (dir, tree) = (tempfile::tempdir().expect("a folder"), quiet_tree());
    fs::write(dir.path().join("knobs.json"), "{").expect("written");
    let words = format!("--quick --only selftest.steady --force --root {}", tree.root().display());
    let ended = end(run_into(&dir.path().join("out"), &words).env("ASSAY_STATE", dir.path()));
    ended.says(&["cannot be parsed", "kernel settings that a killed run changed"]);
}
