//! A board's memory slots, passed to a guest a structure a file, as its firmware would.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{read_json, shared};
use crate::smbios::Board;

pub const SCRIPT: &str = "assay machine --json >machine.json; assay machine >machine.txt";

/// QEMU's words for the board, whose structures are written into a folder.
pub fn full_board(folder: &Path) -> Vec<String> {
    let board = Board::dell(2, &["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"]);
    let mut words = Vec::new();
    for (number, structure) in board.structures.iter().enumerate() {
        let path = folder.join(format!("{number}.bin"));
        fs::write(&path, structure).expect("written");
        words.extend(["-smbios".to_string(), format!("file={}", path.display())]);
    }
    words
}

#[test]
#[ignore = "two minutes of one guest: make lab"]
fn a_full_board_with_modules_in_the_wrong_slots() {
    let test = "a_full_board_with_modules_in_the_wrong_slots";
    let Some(brought) = shared::TWO_NODES.part(test, "dimms") else { return };
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
