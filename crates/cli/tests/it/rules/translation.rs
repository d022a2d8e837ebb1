//! Huge pages that help address translation, and huge pages that do not.

use serde_json::json;

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::{findings, recorded};

const SOURCE: &str = "memory.data-source";

/// Invented rows on a host, with these prices of translation over 256 KiB and over 4 MiB, ns, by
/// the pass.
fn priced(machine: &str, prices: impl Fn(u64) -> [f64; 2], share: f64) -> Case {
    let mut run = Edit::of(&format!("--quick --only {SOURCE} --pretend 7 {machine}"));
    run.each(|_, visit| {
        let pass = visit["pass"].as_u64().expect("a number");
        visit["process"]["huge_share"] = json!(share);
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["translation"]) {
                let near = samples["point"]["within"] == json!(256 << 10);
                samples["work"] = json!(prices(pass)[if near { 0 } else { 1 }]);
            }
        }
    });
    case(format!("{:?} ns, {share} huge, {machine}", prices(0)), run.diagnosed())
}

fn metal() -> (String, crate::synthetic::Tree) {
    let tree = server();
    (format!("--root {}", tree.root().display()), tree)
}

pub fn huge_pages_that_cost_like_small_ones() -> Vec<Case> {
    let guest = format!("--from {}", recorded());
    let (metal, _tree) = metal();
    // A few visits met a quieter host.
    let uneven = |pass: u64| if pass.is_multiple_of(9) { [12.0, 9.0] } else { [29.0, 26.0] };
    let cases = vec![
        priced(&guest, |_| [29.0, 26.0], 1.0),
        priced(&guest, uneven, 0.97),
        priced(&metal, |_| [29.0, 26.0], 1.0),
    ];
    let said = |case: &Case, text: &str| {
        let found = findings(&case.results, "slow-huge-pages")[0];
        (found[text].as_str().expect("a text").to_string(), found["severity"].clone())
    };
    let (headline, severity) = said(&cases[0], "headline");
    assert!(headline.starts_with("Address translation adds 29.0 ns to a random access"), "{headline}");
    assert_eq!(severity, "note");
    let (headline, _) = said(&cases[2], "headline");
    assert!(headline.contains("despite huge pages") && said(&cases[2], "cause").0.contains("TLB"));
    cases
}

pub fn huge_pages_that_cost_little() -> Vec<Case> {
    let guest = format!("--from {}", recorded());
    let (metal, _tree) = metal();
    // Half of the visits pay for walks: an interval that holds both shows nothing.
    let either = |pass: u64| if pass.is_multiple_of(2) { [1.0, 0.5] } else { [29.0, 26.0] };
    let cases = vec![
        priced(&guest, |_| [2.5, 2.0], 1.0),
        // What neighbouring groups of one row of memory save is no translation.
        priced(&metal, |_| [14.0, 3.0], 1.0),
        priced(&guest, either, 1.0),
        priced(&metal, |pass| if pass.is_multiple_of(2) { [0.3, -0.2] } else { [-0.4, 0.1] }, 1.0),
    ];
    // Small pages are the other rule's.
    let small = priced(&guest, |_| [29.0, 26.0], 0.2).results;
    let blind = small["rules_not_applicable"].as_array().expect("a list");
    assert!(blind.contains(&json!("slow-huge-pages")) && findings(&small, "no-huge-pages").len() == 1);
    cases
}
