//! Geekbench: every score and rate as its line has it, found by the words of the line. The cases
//! are written for these tests in exactly the shape of published ones, with numbers of their own.

use std::collections::BTreeSet;

use super::found::{has, values};
use super::recorded;
use crate::{Imported, read};

fn all(text: &str) -> Vec<Imported> {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{error:#}: {text}"))
}

fn keys(all: &[Imported]) -> BTreeSet<String> {
    all.iter().flat_map(|one| &one.figures).map(|one| one.judged.series.key.clone()).collect()
}

fn rules(all: &[Imported]) -> Vec<&str> {
    all.iter().flat_map(|one| &one.findings).map(|one| one.rule.as_str()).collect()
}

/// What is printed as this, in the unit of its figure, and which metric that is.
fn rate(number: f64, unit: &str) -> (&'static str, f64) {
    let step = |letter: &str, step: f64| "KMG".find(letter).map_or(1.0, |at| step.powi(at as i32 + 1));
    match unit {
        "KB/sec" | "MB/sec" | "GB/sec" => ("bandwidth", number * step(&unit[..1], 1024.0) / 1e9),
        "Gflops" => ("flops", number),
        "FPS" => ("frames", number),
        "ns" => ("latency", number),
        _ => ("rate", number * step(&unit[..1], 1000.0)),
    }
}

#[test]
fn each_test_is_what_its_line_has() {
    let cases = [
        ("geekbench-4-indented.txt", "4", 50),
        ("geekbench-5-twice.txt", "5", 84),
        ("geekbench-6.txt", "6", 32),
        ("geekbench-died.md", "6", 14),
    ];
    for (name, major, count) in cases {
        let text = recorded(name);
        let found = all(&text);
        let (mut cores, mut rows) = ("", 0);
        for line in text.lines() {
            match line.trim() {
                "Single-Core" => cores = "single",
                "Multi-Core" => cores = "multi",
                _ => {}
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [test @ .., score, number, unit] = words.as_slice() else { continue };
            let (Ok(score), Ok(number)) = (score.parse::<f64>(), number.parse::<f64>()) else { continue };
            rows += 1;
            let bench = format!("geekbench.{major}-{}@free?cores={cores}", test.join("-").to_lowercase());
            let of_tests = values(&found, &format!("{bench}#test_score"));
            assert!(of_tests.contains(&score), "{name}: {bench} is {of_tests:?}, {line:?}");
            let (metric, expected) = rate(number, unit);
            let of_rates = values(&found, &format!("{bench}#{metric}"));
            assert!(has(&of_rates, expected), "{name}: {bench}#{metric} is {of_rates:?}, {line:?}");
        }
        let scores: usize = keys(&found)
            .iter()
            .filter(|key| key.ends_with("#test_score"))
            .map(|key| values(&found, key).len())
            .sum();
        assert_eq!((rows, scores), (count, count), "{name}");
    }
}

#[test]
fn sums_are_of_the_part_above_them() {
    let found = all(&recorded("geekbench-6.txt"));
    for (key, expected) in [
        ("geekbench.6@free?cores=single#score", 1954.0),
        ("geekbench.6-integer@free?cores=single#section_score", 1996.0),
        ("geekbench.6-floating-point@free?cores=single#section_score", 1876.0),
        ("geekbench.6@free?cores=multi#score", 11296.0),
        ("geekbench.6-integer@free?cores=multi#section_score", 11632.0),
        ("geekbench.6-floating-point@free?cores=multi#section_score", 10673.0),
    ] {
        assert_eq!(values(&found, key), [expected], "{key}");
    }
    let headlines = found[0].figures.iter().filter(|one| one.judged.series.metric.headline);
    assert_eq!(headlines.count(), 2);
}

/// What one major version gives is on no line with another's, nor one core with all.
#[test]
fn versions_and_numbers_of_cores_stay_apart() {
    let yabs = all(&recorded("geekbench-yabs.txt"));
    for (major, single, multi) in [(4, 6123.0, 18457.0), (5, 1391.0, 5017.0), (6, 1873.0, 5894.0)] {
        assert_eq!(values(&yabs, &format!("geekbench.{major}@free?cores=single#score")), [single]);
        assert_eq!(values(&yabs, &format!("geekbench.{major}@free?cores=multi#score")), [multi]);
    }
    let of = |name: &str| keys(&all(&recorded(name)));
    let (four, five, six) =
        (of("geekbench-4-indented.txt"), of("geekbench-5-twice.txt"), of("geekbench-6.txt"));
    assert!(four.is_disjoint(&five) && four.is_disjoint(&six) && five.is_disjoint(&six));
}

/// A text without scores has none, whether it is of the free edition, of a page that was not read,
/// or without the line that gives the version.
#[test]
fn what_is_not_told_is_no_figure() {
    for text in [recorded("geekbench-free.txt"), recorded("geekbench-yabs-blank.txt").replace("419", "")] {
        let figures = all(&text).into_iter().flat_map(|one| one.figures);
        let figures: Vec<String> = figures
            .filter(|one| one.judged.analysis.estimate.is_some())
            .map(|one| one.judged.series.key.clone())
            .collect();
        assert!(figures.iter().all(|key| key == "geekbench.6@free?cores=multi#score"), "{figures:?}");
    }
    let text = recorded("geekbench-6.txt");
    let bare: String = text.lines().skip(2).map(|line| format!("{line}\n")).collect();
    assert!(read(bare.as_bytes()).is_err());
}

#[test]
fn what_a_text_has_against_itself_is_found() {
    let text = recorded("geekbench-6.txt");
    assert!(rules(&all(&text)).is_empty());
    assert_eq!(rules(&all(&recorded("geekbench-died.md"))), ["interrupted-result"]);
    let lost = text.replace("Multi-Core\n", "");
    assert_eq!(rules(&all(&lost)), ["figures-disagree"]);
}

/// As a terminal has it, the line that says what runs is overwritten.
#[test]
fn a_line_that_a_terminal_overwrote_is_one_run() {
    let text = recorded("geekbench-yabs.txt").replace(
        "Geekbench 6 Benchmark Test:",
        "Running GB6 benchmark test... *cue elevator music*\r\u{1b}[0KGeekbench 6 Benchmark Test:",
    );
    let (plain, overwritten) = (all(&recorded("geekbench-yabs.txt")), all(&text));
    assert_eq!(keys(&plain), keys(&overwritten));
}
