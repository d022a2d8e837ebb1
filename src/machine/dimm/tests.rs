//! Printouts of real boards against what their builders' manuals say of them, where the fixtures are; and boards made up
//! for the purpose, everywhere.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;

/// The dumps with a known truth; none in a clone without them.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures/dmi");
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let truths = files.flatten().map(|file| file.path());
    let mut truths: Vec<PathBuf> =
        truths.filter(|path| path.to_string_lossy().ends_with(".truth.json")).collect();
    truths.sort();
    truths
}

fn judged(text: &str) -> (Vec<Dimm>, Population) {
    judge(printout::parse(text), None, &Hypervisor::Unknown)
}

fn sorted(mut values: Vec<String>) -> Vec<String> {
    values.sort();
    values
}

#[test]
fn real_boards_are_what_their_truth_says() {
    for path in fixtures() {
        let truth: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        let name = truth["name"].as_str().expect("a name");
        let dump = path.with_file_name(truth["file"].as_str().expect("a file"));
        let text = String::from_utf8_lossy(&std::fs::read(dump).expect("readable")).to_string();
        let (dimms, population) = judged(&text);
        assert_eq!(json!(dimms.len()), truth["slots_total"], "{name}");
        let tables = printout::parse(&text);
        let populated = tables.processors.iter().filter(|one| one.populated == Some(true)).count();
        assert_eq!(json!(populated), truth["sockets_populated"], "{name}");
        assert_eq!(json!(tables.arrays.len()), json!(truth["memory_arrays"].as_array().map(Vec::len)), "{name}");

        let filled: Vec<&Dimm> = dimms.iter().filter(|dimm| dimm.size_bytes != Some(0)).collect();
        let expected = truth["populated"].as_array().expect("a list");
        assert_eq!(filled.len(), expected.len(), "{name}");
        for (dimm, expected) in filled.iter().zip(expected) {
            let slot = &dimm.locator;
            assert_eq!(json!(slot), expected["locator"], "{name}");
            assert_eq!(json!(dimm.bank), expected["bank_locator"], "{name} {slot}");
            assert_eq!(json!(dimm.size_bytes.map(|bytes| bytes >> 20)), expected["size_mib"], "{name} {slot}");
            assert_eq!(json!(dimm.speed_mts), expected["speed"], "{name} {slot}");
            assert_eq!(json!(dimm.configured_mts), expected["configured"], "{name} {slot}");
            assert_eq!(json!(dimm.ranks), expected["rank"], "{name} {slot}");
            assert_eq!(json!(dimm.persistent), expected["persistent"], "{name} {slot}");
            for (is, should) in [
                (dimm.socket, "socket"),
                (dimm.controller, "controller"),
                (dimm.channel, "channel"),
                (dimm.slot_in_channel, "slot_in_channel"),
            ] {
                assert_eq!(json!(is), expected[should], "{name} {slot}: {should}");
            }
        }

        let expected = truth["per_socket"].as_array().expect("a list");
        assert_eq!(population.dimm_sockets.len(), expected.len(), "{name}");
        for (socket, expected) in population.dimm_sockets.iter().zip(expected) {
            let socket = serde_json::to_value(socket).expect("JSON");
            for field in [
                "socket",
                "dimms",
                "slots",
                "channels_populated",
                "channels_total",
                "dimms_per_channel",
                "dimms_per_controller",
                "controllers_total",
            ] {
                assert_eq!(socket[field], expected[field], "{name}: {field} of socket {}", expected["socket"]);
            }
            assert_eq!(json!(socket["bytes"].as_u64().map(|bytes| bytes as f64 / (1u64 << 30) as f64)), expected["gib"]);
        }

        assert_eq!(json!(population.dimm_verdict), truth["judgement"]["verdict"], "{name}");
        assert_eq!(json!(population.dimm_confidence), truth["judgement"]["confidence"], "{name}");
        let kinds = population.dimm_findings.iter().map(|finding| finding.kind.to_string()).collect();
        let expected: Vec<String> =
            serde_json::from_value(truth["findings_mechanical"].clone()).expect("a list");
        assert_eq!(sorted(kinds), sorted(expected), "{name}");
        let speed = population.dimm_speed.as_ref().expect("modules have speeds");
        assert_eq!(json!(speed.rated), truth["speed"]["rated"], "{name}");
        assert_eq!(json!(speed.configured), truth["speed"]["configured"], "{name}");
        assert_eq!(json!(speed.cpu_limit), truth["speed"]["cpu_limit_from_memory"], "{name}");
        assert_eq!(json!(speed.below_rated), truth["speed"]["below_rated"], "{name}");
        assert_eq!(json!(speed.likely_cause), truth["speed"]["likely_cause"], "{name}");
        println!("{name}: {:?} {:?}", population.dimm_verdict, population.dimm_move);
    }
}
