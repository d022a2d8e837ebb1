//! A map of every node of a machine with two sockets and memory without CPUs, as root and within
//! what was asked.

use model::CpuSet;

use super::{in_guest, read_json};
use crate::runs;

const SCRIPT: &str = "assay memmap --force --chunk 4M --max 40M --rounds 3 --json --out out >map.json";

#[test]
#[ignore = "two minutes of one guest: make lab"]
fn a_map_of_every_node() {
    let Some(folder) = in_guest("a_map_of_every_node", "memory-only", SCRIPT) else { return };
    let results = read_json(&folder, "map.json");
    let maps = results["memory_maps"].as_array().expect("maps");
    assert_eq!(maps.iter().map(|map| map["node"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    for map in maps {
        let (chunks, bytes) =
            (map["chunks"].as_u64().expect("some"), map["chunk_bytes"].as_u64().expect("some"));
        assert!(chunks * bytes <= 40 << 20 && chunks >= 8, "{chunks} chunks of {bytes}");
        // Root sees where each chunk lies.
        let places = map["physical_gib"].as_array().expect("as root");
        assert_eq!(places.len() as u64, chunks);
        assert!(
            places.iter().all(|place| place.as_f64().is_some_and(|gib| gib > 0.0 && gib < 64.0)),
            "{places:?}"
        );
    }
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    assert_eq!(run.visits.len(), 3);
    for visit in &run.visits {
        let case = &run.header.plan[visit.case as usize].case;
        let node = case.params[model::vocabulary::memory_map::param::NODE].int().expect("a number") as u32;
        assert!(case.placement.seats.iter().all(|seat| seat.mem_nodes == CpuSet::one(node)));
        assert_eq!((&visit.reason, visit.process.remote_share), (&None, Some(0.0)), "node {node}");
    }
    // Nodes lie one behind the other in physical memory.
    let middle = |map: &serde_json::Value| map["physical_gib"][5].as_f64();
    assert!(middle(&maps[0]) < middle(&maps[1]) && middle(&maps[1]) < middle(&maps[2]));
}
