//! Who limits a transfer, between two network namespaces of a guest whose kernel has netem: a round
//! trip that the window does not fill, losses, and a long way whose rate default windows fill. The
//! guest's clock counts instructions, and what waits costs no time. The experiment is the program's
//! own (`network.bottleneck`), and the finding names what was planted.

use std::fmt::Write as _;

use serde_json::Value;

use super::kernels::{INSTRUCTIONS, static_build, write_results};
use super::{in_guest_with, read_json};

/// What is planted: name, what the script does, the limits that are right to name, and a trial's
/// budget in the guest's time: eight rounds, each of which takes longer where a connection waits
/// for what was lost.
const PLANTS: [(&str, &str, &[&str], &str); 3] = [
    // Windows of 64 KiB, as hosts of old have them.
    ("window", "window 65536; shape delay 20ms", &["window"], "60s"),
    // What a CPU of this clock would carry is far above, and so are the windows.
    ("loss", "window 1048576; shape delay 20ms loss 2%", &["loss"], "120s"),
    // A rate that the default windows fill, once a start of 80 ms a round trip is over: no limit of
    // one connection's.
    ("long", "shape delay 80ms rate 100mbit limit 4000", &["shaper", "link", "not-separable"], "240s"),
];

/// Trials of each; fewer where `ASSAY_TRIALS` says so.
const TRIALS: usize = 20;

/// Twenty trials take a quarter to half an hour, so this is for a host that is busy besides.
const TRIALS_LIMIT_S: &str = "5400";

const OPTIONS: [&str; 4] = ["--modules", "sch_netem,veth", "--tools", "ip,tc"];

/// What the experiment's finding says: label and value of each of its facts.
fn facts(found: &Value) -> Vec<(&str, &str)> {
    let findings = found["findings"].as_array().expect("findings").iter();
    findings
        .filter(|one| one["rule"] == "network-bottleneck")
        .filter_map(|one| one["facts"].as_array())
        .flatten()
        .filter_map(|fact| Some((fact["label"].as_str()?, fact["value"].as_str()?)))
        .collect()
}

/// What the experiment's finding named.
fn named(found: &Value) -> String {
    let facts = facts(found);
    facts.iter().find(|(label, _)| *label == "limit").map_or("none", |(_, value)| value).to_string()
}

#[test]
#[ignore = "sixty experiments in guests: make lab"]
fn planted_limits_of_a_network_by_kernel() {
    let test = "planted_limits_of_a_network_by_kernel";
    let assay = static_build();
    let trials = std::env::var("ASSAY_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(TRIALS);
    let mut table =
        String::from("| planted | trials | named rightly | what else was named |\n|---|---|---|---|\n");
    let mut missed = Vec::new();
    for (plant, how, right, budget) in PLANTS {
        let script = format!(
            "{}\n{how}\nfor number in $(seq 1 {trials}); do\ntrial {plant}-$number network.bottleneck {budget} --direction send\ndone",
            include_str!("network.sh")
        );
        let options = ["--qemu", "qemu10", "--limit", TRIALS_LIMIT_S, "--assay", &assay];
        let options = [&OPTIONS[..], &options].concat();
        let Some(folder) = in_guest_with(test, &options, "uma", &INSTRUCTIONS, &script) else { return };
        let mut others: Vec<String> = Vec::new();
        for number in 1..=trials {
            let found = read_json(&folder, &format!("{plant}-{number}.json"));
            let named = named(&found);
            println!("{plant}, trial {number}: {named}");
            if !right.contains(&named.as_str()) {
                println!("  {:?}", facts(&found));
                others.push(named);
            }
        }
        let rightly = trials - others.len();
        others.sort();
        let what = if others.is_empty() { "nothing".to_string() } else { others.join(", ") };
        writeln!(table, "| {plant} | {trials} | {rightly} | {what} |").expect("text");
        // 19 of 20.
        if others.len() * 20 > trials {
            missed.push(format!("{plant}: {rightly} of {trials}, else {what}"));
        }
    }
    println!("{table}");
    if trials >= TRIALS {
        write_results("network", &table);
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// The kernel can plant what the trials want, and the rows see it: no conclusion yet, which takes
/// minutes.
#[test]
fn a_planted_round_trip_is_measured_between_namespaces() {
    let script =
        format!("{}\nshape delay 20ms\ntrial delay network.round-trip 10s", include_str!("network.sh"));
    let test = "a_planted_round_trip_is_measured_between_namespaces";
    let Some(folder) = in_guest_with(test, &OPTIONS, "uma", &[], &script) else { return };
    let found = read_json(&folder, "delay.json");
    let medians: Vec<f64> = found["series"]
        .as_array()
        .expect("series")
        .iter()
        .filter(|one| one["key"].as_str().is_some_and(|key| key.ends_with("#latency_p50")))
        .filter_map(|one| one["median"].as_f64())
        .collect();
    // One end's way has 20 ms, and nothing of it can be lost.
    assert!(!medians.is_empty() && medians.iter().all(|us| *us >= 19_900.0), "{medians:?}");
}
