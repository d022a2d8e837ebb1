//! Maps of memory: invented ones of one speed, with a slow region, with a node that is slower.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::{Case, case};
use crate::golden::three_one;
use crate::runs::findings;
use crate::synthetic::Tree;

/// The invented map of a server with two nodes, 40 chunks each; the bandwidth of a chunk of a node
/// is multiplied.
fn mapped(factor: impl Fn(u64, u64, usize) -> f64) -> Value {
    mapped_on(&server(), |metric, node, chunk, window| match metric {
        "bandwidth" => factor(node, chunk, window),
        _ => 1.0,
    })
}

/// The same of another server, and of the work of any metric.
fn mapped_on(tree: &Tree, factor: impl Fn(&str, u64, u64, usize) -> f64) -> Value {
    let words = format!("--max 10G --pretend 7 --root {}", tree.root().display());
    let mut run = Edit::of_verb(&["memmap"], &words);
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let planned = visit["case"].as_u64().expect("a case") as usize;
        let node = plan[planned]["case"]["params"]["node"].as_u64().expect("a node");
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            let metric = samples["metrics"][0].as_str().expect("a metric").to_string();
            let Some(chunk) = samples["point"]["chunk"].as_u64() else { continue };
            let windows = samples["ns"].as_array().expect("a column").len();
            let work = |window: usize| match &samples["work"] {
                Value::Array(works) => works[window].as_f64(),
                same => same.as_f64(),
            };
            let changed: Vec<f64> = (0..windows)
                .map(|window| work(window).expect("a number") * factor(&metric, node, chunk, window))
                .collect();
            samples["work"] = json!(changed);
        }
    });
    run.diagnosed()
}

pub fn regions_that_differ() -> Vec<Case> {
    let slow = mapped(|node, chunk, _| if node == 1 && (10..20).contains(&chunk) { 0.75 } else { 1.0 });
    let found = findings(&slow, "memory-two-speeds");
    assert_eq!(found.len(), 1);
    let headline = found[0]["headline"].as_str().expect("a text");
    assert!(headline.contains("on node 1 run at ") && headline.contains(" instead of "), "{headline}");
    let ratio = slow["memory_maps"][1]["ratio"].as_f64().expect("a ratio");
    assert!((ratio - 4.0 / 3.0).abs() < 0.02, "{ratio}");
    assert!(headline.starts_with("2.5 GiB of 10 GiB of memory"), "{headline}");
    assert_eq!(slow["memory_maps"][0]["answer"], "uniform");
    let map = slow["memory_maps"][1]["map"].as_str().expect("letters");
    assert_eq!(map, "F".repeat(10) + &"S".repeat(10) + &"F".repeat(20));
    vec![case("a quarter of a node is slow", slow)]
}

pub fn memory_of_one_speed() -> Vec<Case> {
    // Slow rounds and single slow readings are no speeds of the memory.
    let rough = mapped(|_, chunk, window| {
        let round = if window % 3 == 0 { 0.7 } else { 1.0 };
        if (chunk as usize + window).is_multiple_of(20) { round * 0.6 } else { round }
    });
    assert_eq!(rough["memory_maps"][0]["answer"], "uniform", "{}", rough["memory_maps"][0]["words"]);
    vec![case("one speed", mapped(|_, _, _| 1.0)), case("rounds and readings that are slow", rough)]
}

pub fn nodes_that_differ() -> Vec<Case> {
    let uneven = mapped(|node, _, _| if node == 1 { 0.8 } else { 1.0 });
    let headline = findings(&uneven, "memory-nodes-uneven")[0]["headline"].to_string();
    assert!(
        headline.contains("Memory of node 1 runs at ") && headline.contains("as on node 0"),
        "{headline}"
    );
    vec![case("a node with slower memory", uneven)]
}

pub fn nodes_that_are_alike() -> Vec<Case> {
    vec![
        case("two nodes", mapped(|_, _, _| 1.0)),
        case("2 % apart", mapped(|node, _, _| 1.0 - 0.02 * node as f64)),
    ]
}

/// Modules are candidates on metal, unless regions that cost more translation say why.
#[test]
fn translation_is_asked_before_modules() {
    let tree = three_one();
    let is_slow = |node: u64, chunk: u64| node == 0 && (10..20).contains(&chunk);
    let map = |times: f64| {
        mapped_on(&tree, |metric, node, chunk, _| match metric {
            "bandwidth" if is_slow(node, chunk) => 1.0 / 3.0,
            "hopping" if is_slow(node, chunk) => 1.0 / times,
            _ => 1.0,
        })
    };
    let modules = map(1.0);
    assert_eq!(modules["machine"]["hypervisor"], "none", "metal");
    let found = findings(&modules, "memory-two-speeds")[0];
    assert!(found.to_string().contains("3+1 channels") && found.to_string().contains("Check the modules"));
    assert!(found["cause"].as_str().is_some_and(|cause| cause.contains("modules in 3+1")), "{found}");
    let pages = map(1.5);
    let found = findings(&pages, "memory-two-speeds")[0];
    assert!(found["cause"].as_str().is_some_and(|cause| cause.starts_with("Address translation")), "{found}");
    let text = found.to_string();
    assert!(!text.contains("3+1") && !text.contains("odules"), "{text}");
    assert_eq!(findings(&pages, "memory-regions-differ").len(), 1);
    assert_eq!(pages["memory_maps"][0]["candidates"], json!([]), "{}", pages["memory_maps"][0]);
    let causes = pages["memory_regions"][0]["differences"].clone();
    assert_eq!(causes[0]["cause"], "translation", "{causes}");
}

/// What noise could hide is neither found nor called clean.
#[test]
fn noise_is_not_called_uniform() {
    let mut random = fastrand::Rng::with_seed(5);
    let random = std::cell::RefCell::new(&mut random);
    let loud = mapped(|_, _, _| 0.5 + random.borrow_mut().f64());
    for map in loud["memory_maps"].as_array().expect("maps") {
        assert_eq!(map["answer"], "inconclusive");
        assert!(map["words"].as_str().is_some_and(|words| words.contains("--rounds 25")), "{}", map["words"]);
    }
    let rules = loud["rules_not_applicable"].as_array().expect("a list");
    assert!(rules.contains(&json!("memory-two-speeds")), "{rules:?}");
    assert!(findings(&loud, "memory-two-speeds").is_empty());
    let loud = mapped(|node, _, _| (1.0 - 0.3 * node as f64) * (0.5 + random.borrow_mut().f64()));
    let rules = loud["rules_not_applicable"].as_array().expect("a list");
    assert!(rules.contains(&json!("memory-nodes-uneven")), "{rules:?}");
}
