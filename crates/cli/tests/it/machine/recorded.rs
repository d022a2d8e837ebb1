//! Machines recorded with `assay machine --save`, kept here with what is shown of them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{check_consistency, json as machine_of, text};

fn recordings() -> Vec<PathBuf> {
    let folder = testkit::root().join("tests/machines");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.to_string_lossy().contains(".json"));
    paths.sort();
    paths
}

#[test]
fn what_is_shown_of_recorded_machines() {
    let recordings = recordings();
    assert!(!recordings.is_empty());
    for path in recordings {
        let name =
            path.file_name().expect("a name").to_string_lossy().replace(".json", "").replace(".gz", "");
        check_consistency(&name, &machine_of("--from", &path));
        insta::assert_snapshot!(format!("machine_{name}"), text("--from", &path));
    }
}

#[test]
fn json_follows_the_schema() {
    let validator = crate::validator("machine");
    for path in recordings() {
        let machine: Value = machine_of("--from", &path);
        let problems: Vec<String> = validator.iter_errors(&machine).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{}: {problems:?}", path.display());
    }
}
