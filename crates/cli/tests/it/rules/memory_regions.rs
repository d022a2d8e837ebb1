//! Regions of memory that were looked at: with a cause, without one, with a neighbour.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::{findings, recorded};

const REGIONS: u64 = 32;

/// Invented looks at regions of this host, 18 each: latencies in ns (hopping, scattered,
/// near) and bandwidth in GB/s by the region and the look, and how much slower by the moment, s.
fn looked(machine: &str, of: impl Fn(u64, usize) -> [f64; 4], at: impl Fn(f64) -> f64) -> Value {
    edited(machine, of, at, json!(null), None).diagnosed()
}

/// The same while the kernel's counters rose by `counted`, and the share `moved` of each region's
/// pages had moved at the end.
fn looked_while(
    machine: &str,
    of: impl Fn(u64, usize) -> [f64; 4],
    at: impl Fn(f64) -> f64,
    counted: Value,
    moved: Option<f64>,
) -> Value {
    edited(machine, of, at, counted, moved).diagnosed()
}

fn edited(
    machine: &str,
    of: impl Fn(u64, usize) -> [f64; 4],
    at: impl Fn(f64) -> f64,
    counted: Value,
    moved: Option<f64>,
) -> Edit {
    const LOOKS: usize = 18;
    let mut run = Edit::of(&format!("--only memory.regions --pretend 7 {machine}"));
    run.each(|_, visit| {
        let samples = visit["samples"].as_array_mut().expect("a list");
        samples.clear();
        let column = |point: Value, metric: &str, work: Vec<f64>, ns: Vec<f64>| {
            json!({ "point": point, "metrics": [metric], "warm_up": 0, "work": work, "ns": ns })
        };
        let moment = |region: u64, look: usize| (look * REGIONS as usize + region as usize) as f64 * 0.05;
        for region in 0..REGIONS {
            let values: Vec<[f64; 4]> = (0..LOOKS).map(|look| of(region, look)).collect();
            for (kind, metric) in ["hopping", "scattered", "near"].into_iter().enumerate() {
                let slower = |look: usize| at(moment(region, look));
                let ns = values.iter().enumerate().map(|(look, own)| own[kind] * slower(look)).collect();
                samples.push(column(json!({ "chunk": region }), metric, vec![1.0; LOOKS], ns));
            }
            let work = values.iter().map(|own| own[3]).collect();
            samples.push(column(json!({ "chunk": region }), "bandwidth", work, vec![1.0; LOOKS]));
        }
        let looks: Vec<(u64, usize)> =
            (0..LOOKS).flat_map(|look| (0..REGIONS).map(move |region| (region, look))).collect();
        let ones = vec![1.0; looks.len()];
        let regions = looks.iter().map(|(region, _)| *region as f64).collect();
        let moments = looks.iter().map(|(region, look)| 1e3 * moment(*region, *look)).collect();
        samples.push(column(json!({}), "chunk_in_time", regions, ones.clone()));
        samples.push(column(json!({}), "moment", moments, ones));
        // Root sees where regions lie; the first ones in the middle.
        let places = (0..REGIONS).map(|region| ((region * 3 + 5) % REGIONS) as f64).collect();
        samples.push(column(json!({}), "physical", places, vec![1.0; REGIONS as usize]));
        let moved = moved.map(|share| vec![share; REGIONS as usize]);
        samples.extend(
            moved.map(|shares| column(json!({}), "moved", shares, vec![1.0; REGIONS as usize])),
        );
        let moves = &mut visit["process"]["moves"];
        *moves = if counted.is_null() { json!(null) } else { json!({ "taking": {}, "looking": counted }) };
    });
    run
}

/// Readings that scatter by a few per cent, the same in each run.
fn noise(region: u64, look: usize) -> f64 {
    1.0 + 0.02 * (((region as usize * 7 + look * 5) % 11) as f64 - 5.0) / 5.0
}

fn alike(region: u64, look: usize) -> [f64; 4] {
    let noise = noise(region, look);
    [128.0 * noise, 118.0 * noise, 110.0 * noise, 20.0 / noise]
}

fn guest() -> String {
    format!("--from {}", recorded())
}

pub fn regions_with_a_cause() -> Vec<Case> {
    // A quarter, which lies together: the first places.
    let slow = |region: u64| (region * 3 + 5) % REGIONS < REGIONS / 4;
    let translated = looked(
        &guest(),
        |region, look| {
            let [hopping, scattered, near, rate] = alike(region, look);
            [hopping + if slow(region) { 40.0 } else { 0.0 }, scattered, near, rate]
        },
        |_| 1.0,
    );
    let found = findings(&translated, "memory-regions-differ");
    let headline = found[0]["headline"].as_str().expect("a text");
    assert!(
        headline.starts_with("25 % of the memory costs 40") && headline.contains("translation"),
        "{headline}"
    );
    assert!(found[0]["advice"].as_str().is_some_and(|advice| advice.contains("Operator")));
    let far =
        |region: u64, look: usize| alike(region, look).map(|ns| if slow(region) { ns * 1.5 } else { ns });
    let distant = looked(
        &guest(),
        |region, look| {
            [far(region, look)[0], far(region, look)[1], far(region, look)[2], alike(region, look)[3]]
        },
        |_| 1.0,
    );
    let words = distant["memory_regions"][0]["words"][0].as_str().expect("a sentence");
    assert!(
        words.contains("They lie together in guest-physical memory, half of them from 1.8 to 5.2 GiB"),
        "{words}"
    );
    let cause = findings(&distant, "memory-regions-differ")[0]["cause"].to_string();
    assert!(cause.contains("onsistent with memory on another node of the host"), "{cause}");
    // The finding reports pages of these regions that moved, and no others.
    let compacted = json!({ "pgmigrate_success": 312, "compact_success": 2 });
    for (moved, remark) in [(0.25, "25 % of the pages moved while they were measured"), (0.0, "")] {
        let distant = |region, look| {
            let [hopping, scattered, near, rate] = alike(region, look);
            let times = if slow(region) { 1.5 } else { 1.0 };
            [hopping * times, scattered * times, near * times, rate]
        };
        let results = looked_while(&guest(), distant, |_| 1.0, compacted.clone(), Some(moved));
        let cause = findings(&results, "memory-regions-differ")[0]["cause"].to_string();
        assert_eq!(cause.contains("pages moved"), !remark.is_empty(), "{cause}");
        assert!(cause.contains(remark), "{cause}");
        let own = &results["memory_regions"][0];
        assert_eq!(own["moved"]["moved"], json!(moved > 0.0), "{own}");
        assert_eq!(own["moved"]["while_looked_at"]["compact_success"], json!(2.0), "{own}");
        assert!(own["words"].to_string().contains("312 pages moved, by compaction"), "{own}");
    }
    let tree = server();
    let narrow = looked(
        &format!("--root {}", tree.root().display()),
        |region, look| {
            let [hopping, scattered, near, rate] = alike(region, look);
            [hopping, scattered, near, if slow(region) { rate / 1.5 } else { rate }]
        },
        |_| 1.0,
    );
    let differences = narrow["memory_regions"][0]["differences"].as_array().expect("a list");
    assert!(differences.len() == 1 && differences[0]["cause"] == "transfer", "{differences:?}");
    vec![case("translation", translated), case("distance", distant), case("transfer on metal", narrow)]
}

pub fn regions_without_a_cause() -> Vec<Case> {
    let small = looked(
        &guest(),
        |region, look| {
            let [hopping, scattered, near, rate] = alike(region, look);
            [hopping + if region % 4 == 0 { 5.0 } else { 0.0 }, scattered, near, rate]
        },
        |_| 1.0,
    );
    let words = small["memory_regions"][0]["words"].to_string();
    assert!(words.contains("too little to name a cause"), "{words}");
    // A clock whose steps are longer than half a load cannot time one.
    let far = |region: u64, look| alike(region, look).map(|ns| if region < 8 { ns * 1.5 } else { ns });
    let mut coarse = edited(&guest(), far, |_| 1.0, json!(null), None);
    assert!(!findings(&coarse.diagnosed(), "memory-regions-differ").is_empty());
    coarse.header()["clock"]["resolution_ns"] = json!(100.0);
    let coarse = coarse.diagnosed();
    assert!(coarse["memory_regions"].is_null() && findings(&coarse, "memory-regions-differ").is_empty());
    vec![case("alike", looked(&guest(), alike, |_| 1.0)), case("too little", small)]
}

/// The recorded guest at rest for some passes; in every third of them loads take `slower` times as
/// long, and one CPU gets `mib` MiB of the cache.
fn at_rest(slower: f64, mib: f64) -> Value {
    let mut run = Edit::of(&format!("--quick --only host --pretend 7 {}", guest()));
    run.each(|_, visit| {
        let is_slow = visit["pass"].as_u64().expect("a pass").is_multiple_of(3);
        let samples = visit["samples"].as_array_mut().expect("a list");
        if !samples.iter().any(|one| one["metrics"] == json!(["cache"])) {
            return;
        }
        for one in samples {
            let values = match one["metrics"][0].as_str() {
                Some("latency") => ("ns", if is_slow { 110.0 * slower } else { 110.0 }),
                Some("cache") => ("work", if is_slow { mib } else { 24.0 }),
                _ => continue,
            };
            // Work of a load is one.
            let looks = one["ns"].as_array().expect("a list").len();
            if values.0 == "ns" {
                one["work"] = json!(vec![1.0; looks]);
            }
            one[values.0] = json!((0..looks).map(|look| values.1 * noise(0, look)).collect::<Vec<f64>>());
        }
    });
    run.diagnosed()
}

pub fn moments_that_differ() -> Vec<Case> {
    let busy = looked(&guest(), alike, |at| if at % 3.0 < 1.0 { 1.5 } else { 1.0 });
    let found = findings(&busy, "memory-neighbour");
    let headline = found[0]["headline"].as_str().expect("a text");
    assert!(headline.starts_with("Memory was 1.5"), "{headline}");
    assert!(findings(&busy, "memory-regions-differ").is_empty());
    let rest = at_rest(1.5, 6.0);
    let found = findings(&rest, "memory-neighbour");
    let headline = found[0]["headline"].as_str().expect("a text");
    assert!(headline.starts_with("Memory was 1.5"), "{headline}");
    let seen = &rest["guest_share"]["at_rest"];
    assert_eq!(
        (&seen["neighbour"]["says"], &seen["cache"]["moves"]),
        (&json!("named"), &json!(true)),
        "{seen}"
    );
    let slow = |block: &&Value| block["slow"] == true && block["slower"].as_f64() > Some(1.3);
    let line = seen["time_line"].as_array().expect("a time line");
    let share = line.iter().filter(slow).count() as f64 / line.len() as f64;
    assert!((0.25..=0.5).contains(&share), "a third of the passes: {seen}");
    vec![case("a third of the time", busy), case("a third of the time, at rest", rest)]
}

pub fn moments_that_are_alike() -> Vec<Case> {
    vec![
        case("alike", looked(&guest(), alike, |_| 1.0)),
        case("at rest", at_rest(1.0, 24.0)),
        case("a single second", looked(&guest(), alike, |at| if at < 0.5 { 1.5 } else { 1.0 })),
    ]
}
