//! Experiments on data whose truth is known: what the methods are claimed to do. The tests run them
//! small and hold them against the bounds; `make prove` runs them large and writes the tables of
//! METHODOLOGY.md, which states the same bounds.
//!
//! Invariant: only `make prove` and tests run it; nothing of the product depends on it.

#![forbid(unsafe_code)]

pub mod daily;
pub mod fleets;
pub mod histories;
pub mod likenesses;
pub mod proof;

/// Fails where METHODOLOGY.md does not state one of these bounds by name and value.
#[cfg(test)]
fn methodology_states(bounds: &[(&str, f64)]) {
    let path = testkit::root().join("METHODOLOGY.md");
    let text = std::fs::read_to_string(path).expect("METHODOLOGY.md");
    for (name, bound) in bounds {
        let sign = if name.contains("LEAST") { "≥" } else { "≤" };
        let stated = format!("`{name}` ({sign} {} %)", (1000.0 * bound).round() / 10.0);
        assert!(text.contains(&stated), "METHODOLOGY.md does not say {stated}");
    }
}
