//! The corpus `tests/foreign`: a small file of each kind, and in `NAME.expected` what is read of
//! it. A new case is two files; with `ASSAY_ACCEPT=1` the test writes the second, which is then
//! compared by hand with the first.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::{Figure, Imported, read};

/// Ending of the files with what is read of a case.
const EXPECTED: &str = "expected";
/// More figures without a value are counted.
const MAX_OF_ONE_REASON: usize = 5;

pub struct Case {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The files of a folder and of those in it, by their names.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

pub fn cases() -> Vec<Case> {
    let own = files(&testkit::root().join("tests/foreign")).into_iter();
    let cases = own.filter(|path| path.extension().is_none_or(|own| own != EXPECTED));
    cases
        .map(|path| Case {
            name: path.file_name().expect("a name").to_string_lossy().into_owned(),
            bytes: std::fs::read(&path).expect("readable"),
        })
        .collect()
}

fn figure(figure: &Figure) -> String {
    let (series, analysis) = (&figure.judged.series, &figure.judged.analysis);
    let values: Vec<f64> = series.processes.iter().flat_map(|process| process.values.clone()).collect();
    let unit = match series.metric.unit.as_ref() {
        "" => String::new(),
        unit => format!(" [{unit}]"),
    };
    match analysis.estimate.is_some() {
        // Digits beyond the twelfth are those of the arithmetic.
        true => {
            let values: Vec<String> = values
                .iter()
                .map(|value| format!("{}", format!("{value:.11e}").parse().unwrap_or(*value)))
                .collect();
            format!("{}{unit} = {}", series.key, values.join(" "))
        }
        false => format!("{}{unit}: none: {}", series.key, analysis.verdict.reason),
    }
}

/// What was read, a line each.
pub fn told(results: &anyhow::Result<Vec<Imported>>) -> String {
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{words}").expect("memory");
    let results = match results {
        Err(error) => return format!("refused: {error:#}\n"),
        Ok(results) => results,
    };
    for one in results {
        line(format!("{} of {}", one.format, one.host));
        one.make_up.iter().for_each(|(label, value)| line(format!("  {label}: {value}")));
        let (with, without): (Vec<&Figure>, Vec<&Figure>) =
            one.figures.iter().partition(|figure| figure.judged.analysis.estimate.is_some());
        with.iter().for_each(|one| line(format!("  {}", figure(one))));
        let reason = |figure: &Figure| figure.judged.analysis.verdict.reason.clone();
        let reasons: BTreeSet<String> = without.iter().map(|figure| reason(figure)).collect();
        for why in reasons {
            let own: Vec<&&Figure> = without.iter().filter(|figure| reason(figure) == why).collect();
            if own.len() > MAX_OF_ONE_REASON {
                line(format!("  {} figures: none: {why}", own.len()))
            } else {
                own.iter().for_each(|one| line(format!("  {}", figure(one))))
            }
        }
        for index in &one.index {
            let number = |value: Option<f64>| value.map_or("none".to_string(), |value| format!("{value:.1}"));
            let copies = index.copies.map_or(String::new(), |copies| format!(" at {copies} copies"));
            let (printed, again) = (number(index.score), number(index.recomputed));
            line(format!("  index {}{copies}: printed {printed}, by its rows {again}", index.title));
        }
        one.remarks.iter().for_each(|remark| line(format!("  remark: {remark}")));
        if one.refused > 0 {
            line(format!("  refused: {}", one.refused));
        }
        one.findings
            .iter()
            .for_each(|finding| line(format!("  finding {}: {}", finding.rule, finding.headline)));
    }
    text
}

#[test]
fn every_case_reads_as_is_expected() {
    let accept = std::env::var_os("ASSAY_ACCEPT").is_some();
    let (mut wrong, all) = (Vec::new(), cases());
    assert!(all.len() > 20, "{} cases", all.len());
    for Case { name, bytes } in &all {
        let beside = testkit::root().join("tests/foreign").join(format!("{name}.{EXPECTED}"));
        let (found, expected) = (told(&read(bytes)), std::fs::read_to_string(&beside).unwrap_or_default());
        if found == expected {
            continue;
        }
        if accept {
            std::fs::write(&beside, &found).expect("written");
            continue;
        }
        let lines = found.lines().chain(std::iter::repeat("(nothing)"));
        let expected = expected.lines().chain(std::iter::repeat("(nothing)"));
        let first = lines.zip(expected).take(10_000).find(|(found, expected)| found != expected);
        wrong.push(format!("{name}: found, then expected: {first:#?}"));
    }
    assert!(
        wrong.is_empty(),
        "{}\nif what is found is right, `ASSAY_ACCEPT=1 cargo test -p import --lib foreign` writes it",
        wrong.join("\n")
    );
}

/// What is expected of a file that is gone is expected of nothing.
#[test]
fn every_expectation_has_its_case() {
    for path in files(&testkit::root().join("tests/foreign")) {
        if path.extension().is_some_and(|own| own == EXPECTED) {
            assert!(path.with_extension("").is_file(), "{} stands alone", path.display());
        }
    }
}

#[test]
fn each_tool_has_a_case_with_figures() {
    let cases = cases();
    for tool in crate::TOOLS {
        let read = |case: &Case| {
            let text = std::str::from_utf8(&case.bytes).ok().filter(|text| (tool.is_one)(text));
            let found = text.and_then(|text| (tool.read)(text).ok()).unwrap_or_default();
            found.iter().any(Imported::has_figures)
        };
        assert!(cases.iter().any(read), "no file of tests/foreign has {}", tool.files);
    }
}
