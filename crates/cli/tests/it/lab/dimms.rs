//! A board's memory slots, passed to a guest a structure a file, as its firmware would.

use std::fs;

use serde_json::json;

use super::{in_guest_with, read_json};
use crate::smbios::Board;

#[test]
fn a_full_board_with_modules_in_the_wrong_slots() {
    let board = Board::dell(2, &["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut words: Vec<String> = Vec::new();
    for (number, structure) in board.structures.iter().enumerate() {
        let path = folder.path().join(format!("{number}.bin"));
        fs::write(&path, structure).expect("written");
        words.extend(["-smbios".to_string(), format!("file={}", path.display())]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let test = "a_full_board_with_modules_in_the_wrong_slots";
    let script = "assay machine --json >machine.json; assay machine >machine.txt";
    let Some(brought) = in_guest_with(test, &[], "two-nodes", &words, script) else { return };
    let machine = read_json(&brought, "machine.json");
    assert_eq!(machine["dimms"].as_array().map(Vec::len), Some(24));
    assert_eq!(machine["dimm_verdict"], "unbalanced", "{:#}", machine["dimm_remarks"]);
    for socket in machine["dimm_sockets"].as_array().expect("a list") {
        assert_eq!(socket["dimms_per_controller"], json!({"0": 3, "1": 1}));
    }
    let remedy = machine["dimm_move"].as_str().expect("a move");
    assert!(remedy.contains("A3 to A5") && remedy.contains("B3 to B5"), "{remedy}");
    // The tables are judged as they are asked for, and whose invention they are is said.
    let remarks = machine["dimm_remarks"].to_string();
    assert!(remarks.contains("hypervisor"), "{remarks}");
    let shown = fs::read_to_string(brought.path().join("machine.txt")).expect("the guest wrote it");
    assert!(shown.contains("memory modules: unbalanced; 8 of 24 slots filled"), "{shown}");
}
