//! Experiments on data whose truth is known: what the methods are claimed to do. The tests run them
//! small and check them against the bounds; `make prove` runs them large and writes the tables of
//! docs/results, which states the same bounds.
//!
//! Invariant: only `make prove` and tests run it; nothing of the product depends on it.

#![forbid(unsafe_code)]

pub mod daily;
pub mod fleets;
pub mod histories;
pub mod likenesses;
pub mod proof;
pub mod results;

/// Fails where neither docs/method nor docs/results states one of these bounds by name and value.
#[cfg(test)]
fn texts_state(bounds: &[(&str, f64)]) {
    let folders = ["docs/method", "docs/results"].map(|folder| testkit::root().join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder")).flatten();
    let texts: String = files.map(|file| std::fs::read_to_string(file.path()).expect("a text")).collect();
    let words: Vec<&str> = texts.split_whitespace().collect();
    let texts = words.join(" ");
    for (name, bound) in bounds {
        let sign = if name.contains("LEAST") { "≥" } else { "≤" };
        let stated = format!("`{name}` ({sign} {} %)", (1000.0 * bound).round() / 10.0);
        assert!(texts.contains(&stated), "neither docs/method nor docs/results says {stated}");
    }
}
