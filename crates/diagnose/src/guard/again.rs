//! The line that measures a guarded command again.

use std::collections::BTreeMap;

use crate::words::{clipped, shell};

/// The command that measures what has these inputs again under all placements: with the metric and
/// the time limit it had. Where its words were lost or are too long to print, a line that cannot be
/// taken for one to run.
pub fn again(inputs: &BTreeMap<String, String>, more: &str) -> String {
    let cut = || "assay guard … (the command's words are in the run file)".to_string();
    let input = |name: &str| inputs.get(name);
    let words = input("words").and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let Some(words) = words.filter(|words| !words.is_empty() && words.len() <= MAX_WORDS) else {
        return cut();
    };
    let mut options = Vec::new();
    if let Some(text) = input("wanted") {
        let Some(wanted) = serde_json::from_str(text).ok().and_then(|wanted| judged_by(&wanted)) else {
            return cut();
        };
        options.extend(wanted);
    }
    let seconds = input("timeout_s").and_then(|text| text.parse::<f64>().ok());
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0 && *seconds != DEFAULT_TIMEOUT_S) {
        options.push(("--timeout", format!("{seconds}s")));
    }
    if words.iter().chain(options.iter().map(|(_, value)| value)).any(|word| clipped(word) != *word) {
        return cut();
    }
    let options: String = options.iter().map(|(name, value)| format!("{name}={} ", shell(value))).collect();
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    format!("assay guard --runs 20 --placements free,same-cpu,spread {more}{options}-- {}", words.join(" "))
}

/// A command of more words is too long to print.
const MAX_WORDS: usize = 40;
/// The default of `assay guard --timeout`, s.
const DEFAULT_TIMEOUT_S: f64 = 600.0;

/// The options that give a case's metric again, from its inputs.
fn judged_by(wanted: &serde_json::Value) -> Option<Vec<(&'static str, String)>> {
    let text = |of: &serde_json::Value| of.as_str().map(str::to_string);
    let better = ("--better", text(&wanted["better"])?);
    let source = &wanted["source"];
    if let Some(format) = text(&source["format"]) {
        return Some(vec![("--format", format), better]);
    }
    let (name, unit) = (text(&wanted["name"])?, text(&wanted["unit"])?);
    let unit = if unit.is_empty() { unit } else { format!("[{unit}]") };
    let what = text(&source["regex"]).or_else(|| text(&source["json"]).map(|path| format!("json:{path}")))?;
    Some(vec![("--metric", format!("{name}{unit}={what}")), better])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmed(words: &[&str], inputs: &[(&str, &str)]) -> String {
        let text = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let mut inputs: BTreeMap<String, String> = inputs.iter().map(text).collect();
        inputs.insert("words".into(), serde_json::to_string(words).expect("JSON"));
        again(&inputs, "")
    }

    #[test]
    fn the_same_is_measured_again_with_all_that_was_asked() {
        const BEGIN: &str = "assay guard --runs 20 --placements free,same-cpu,spread ";
        assert_eq!(confirmed(&["./a b", "-c"], &[("timeout_s", "600")]), format!("{BEGIN}-- './a b' -c"));
        let regex = r#"{"name":"rate","unit":"1/s","better":"higher","source":{"regex":"r: (.*)"}}"#;
        assert_eq!(
            confirmed(&["x"], &[("timeout_s", "1.5"), ("wanted", regex)]),
            format!("{BEGIN}--metric='rate[1/s]=r: (.*)' --better=higher --timeout=1.5s -- x")
        );
        let json = r#"{"name":"p99","unit":"","better":"lower","source":{"json":"a.0"}}"#;
        assert_eq!(
            confirmed(&["x"], &[("wanted", json)]),
            format!("{BEGIN}--metric='p99=json:a.0' --better=lower -- x")
        );
        let format =
            r#"{"name":"hackbench time","unit":"s","better":"lower","source":{"format":"hackbench"}}"#;
        assert_eq!(
            confirmed(&["x"], &[("wanted", format)]),
            format!("{BEGIN}--format=hackbench --better=lower -- x")
        );
    }

    #[test]
    fn what_cannot_be_printed_whole_is_no_command() {
        let cut = "assay guard … (the command's words are in the run file)";
        assert_eq!(confirmed(&["sh", "-c", &"x".repeat(201)], &[]), cut);
        assert_eq!(confirmed(&["x"; 41], &[]), cut);
        assert_eq!(confirmed(&[], &[]), cut);
        assert_eq!(confirmed(&["x"], &[("wanted", "{}")]), cut);
        assert!(confirmed(&["sh", "-c", &"x".repeat(200)], &[]).ends_with("xx"));
    }
}
