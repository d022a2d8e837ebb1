//! The build that is handed to users asks, in a guest of an old kernel with two nodes, what is
//! behind it: every row has an answer or the reason why there is none, and equal nodes are equal.

use serde_json::Value;

use super::kernels::static_build;
use super::{in_guest_with, read_json};
use crate::runs::findings;

/// Emulated memory is slow to fill: looks at regions take a minute or two, a map of both nodes one.
const SCRIPT: &str = "assay host --quick --force --budget 4m --json --out host >host.json 2>said || { cat said >&2; exit 1; }
    assay run --quick --force --only memory.regions --budget 6m --visit-limit 3m --json --out run >regions.json 2>said ||
        { cat said >&2; exit 1; }
    assay memmap --force --chunk 4M --max 160M --rounds 5 --json --out map >map.json 2>said || { cat said >&2; exit 1; }";

#[test]
#[ignore = "twelve minutes of one guest: make lab"]
fn what_is_behind_a_guest_of_two_equal_nodes() {
    let test = "what_is_behind_a_guest_of_two_equal_nodes";
    let assay = static_build();
    let options = ["--kernel", "6.1-cloud-amd64", "--assay", &assay];
    let Some(folder) = in_guest_with(test, &options, "two-nodes", &[], SCRIPT) else { return };
    let host = read_json(&folder, "host.json");
    let rows = host["guest_share"]["rows"].as_array().expect("rows");
    let text = |row: &Value, name: &str| row[name].as_str().expect("a text").to_string();
    for row in rows {
        let (what, grade, reading) = (text(row, "what"), text(row, "grade"), text(row, "reading"));
        println!("{what}: {grade}: {} ({reading})", text(row, "word"));
        assert!(!reading.is_empty(), "{row}");
        assert!(what != "node" || text(row, "word") == "2 nodes", "{row}");
        // No counters, four CPUs: what is missing here is no second CPU.
        assert!(grade != "not_measured" || !reading.contains("two CPUs"), "{row}");
    }
    assert_eq!(host["guest_share"]["guest"], true);
    let regions = read_json(&folder, "regions.json");
    let map = read_json(&folder, "map.json");
    for results in [&host, &regions, &map] {
        // An emulated clock takes as long as a load; all windows are longer.
        assert_eq!(findings(results, "above-ceiling"), Vec::<&Value>::new());
        for found in findings(results, "memory-regions-differ") {
            let cause = text(found, "cause");
            assert!(!cause.contains("another node"), "equal nodes: {found}");
        }
        for found in findings(results, "memory-nodes-uneven") {
            assert!(!found.to_string().contains("modules of the sockets"), "{found}");
        }
    }
    // Where each region lies is said by its node.
    let nodes: Vec<Option<u64>> =
        map["memory_maps"].as_array().expect("maps").iter().map(|map| map["node"].as_u64()).collect();
    assert_eq!(nodes, [Some(0), Some(1)]);
}
