//! Whatever is done to a result, what is read of it is a figure of it: cut, with lines gone, with
//! another one's lines in between, twice, every case of the corpus gives only numbers that stand
//! in one section of the text, or follow from those by unit, sum, difference, ratio or mean.

use super::foreign::{Case, cases, files};
use crate::kit::Expression;
use crate::{Imported, read};
use std::collections::BTreeSet;

/// Of this many lines a section has at most.
const SECTION: usize = 160;

/// Key and value.
type Value = (String, f64);

fn values(results: &[Imported]) -> Vec<Value> {
    let figures = results.iter().flat_map(|one| &one.figures);
    let of = |figure: &crate::Figure| {
        let series = &figure.judged.series;
        series
            .processes
            .iter()
            .flat_map(|one| one.values.clone())
            .map(|value| (series.key.clone(), value))
            .collect::<Vec<_>>()
    };
    figures.flat_map(of).collect()
}

/// What is read of a text; nothing of one that is refused.
fn read_of(text: &[u8]) -> Vec<Value> {
    read(text).map(|results| values(&results)).unwrap_or_default()
}

/// The numbers of a text, each with its line.
fn numbers(text: &str) -> Vec<(usize, f64)> {
    static NUMBER: Expression = Expression::new(r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?");
    let lines = text.lines().enumerate();
    let of = |(at, line): (usize, &str)| {
        let found = NUMBER.find_iter(line).filter_map(|one| one.as_str().parse().ok());
        found.map(move |value| (at, value)).collect::<Vec<(usize, f64)>>()
    };
    lines.flat_map(of).filter(|(_, value)| value.is_finite() && *value > 0.0).collect()
}

/// Whether a number is what lies between two units: powers of ten, of 1024, of eight bits, and the
/// two halves of a round trip.
fn is_unit(ratio: f64) -> bool {
    let even = |value: f64| (value.log10() - value.log10().round()).abs() < 1e-10;
    let binary = (-4..=4).map(|power| 1024f64.powi(power));
    ratio.is_finite()
        && ratio > 0.0
        && binary.flat_map(|scale| [1.0, 2.0, 0.5, 8.0, 0.125].map(|more| ratio * scale * more)).any(even)
}

/// Whether a value follows from numbers of one section.
fn follows(value: f64, numbers: &[(usize, f64)]) -> bool {
    if value == 0.0 || numbers.iter().any(|(_, number)| is_unit(value / number) || is_unit(value * number)) {
        return true;
    }
    numbers.iter().enumerate().any(|(at, (line, one))| {
        let near = numbers[at + 1..].iter().take_while(|(other, _)| *other <= line + SECTION);
        near.clone().any(|(_, other)| {
            let of = [one + other, (one - other).abs(), one / other, other / one];
            of.iter().any(|found| *found > 0.0 && is_unit(value / found))
        })
    })
}

/// The same of a bandwidth that is I/Os of a size over a time, and of a sum with values of one or
/// two others that are known to follow.
fn is_founded((key, value): &Value, of_metric: &[f64], numbers: &[(usize, f64)]) -> bool {
    let block: Option<f64> =
        key.split_once("block=").and_then(|(_, rest)| rest.split('&').next()?.parse().ok());
    let block = block.filter(|_| key.ends_with("#bandwidth"));
    let one =
        |value: f64| follows(value, numbers) || block.is_some_and(|block| follows(value / block, numbers));
    let rests = |value: f64| of_metric.iter().map(move |known| value - known).filter(|rest| *rest > 0.0);
    let is_sum = key.starts_with("disk.") || key.starts_with("fio.");
    one(*value) || rests(*value).any(|rest| one(rest) || is_sum && rests(rest).any(one))
}

/// What was done to a text.
#[derive(Clone, Copy, Debug)]
enum Change {
    CutEnd,
    CutBegin,
    LinesGone,
    LinesOfAnother,
    InTurn,
    Behind,
}

const CHANGES: [Change; 6] = [
    Change::CutEnd,
    Change::CutBegin,
    Change::LinesGone,
    Change::LinesOfAnother,
    Change::InTurn,
    Change::Behind,
];

fn changed(change: Change, text: &str, other: &str, random: &mut fastrand::Rng) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let others: Vec<&str> = other.split_inclusive('\n').collect();
    let at = random.usize(0..=lines.len());
    let part = |lines: &[&str]| lines.concat();
    match change {
        Change::CutEnd => {
            let end = random.usize(0..=text.len());
            text[..(0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0)].to_string()
        }
        Change::CutBegin => part(&lines[at..]),
        Change::LinesGone => {
            let end = (at + random.usize(1..12)).min(lines.len());
            part(&lines[..at]) + &part(&lines[end..])
        }
        Change::LinesOfAnother => {
            let from = random.usize(0..=others.len());
            let end = (from + random.usize(1..12)).min(others.len());
            part(&lines[..at]) + "\n" + &part(&others[from..end]) + "\n" + &part(&lines[at..])
        }
        Change::InTurn => {
            let mut mixed = String::new();
            let (mut own, mut others) = (lines.as_slice(), others.as_slice());
            while !own.is_empty() || !others.is_empty() {
                for rest in [&mut own, &mut others] {
                    let (now, later) = rest.split_at(random.usize(1..20).min(rest.len()));
                    mixed += &part(now);
                    *rest = later;
                }
            }
            mixed
        }
        Change::Behind => format!("{text}\n{other}"),
    }
}

/// A case as a text, with what is read of it.
struct Known {
    name: String,
    text: String,
    values: Vec<Value>,
}

fn known() -> Vec<Known> {
    let of = |Case { name, bytes }: Case| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Known { name, values: read_of(&bytes), text }
    };
    cases().into_iter().map(of).collect()
}

/// What of one changed text does not follow from it.
fn unfounded(known: &[Known], seed: u64) -> Option<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let own = &known[seed as usize % known.len()];
    let other = &known[random.usize(0..known.len())];
    let change = CHANGES[(seed as usize / known.len()) % CHANGES.len()];
    let text = changed(change, &own.text, &other.text, &mut random);
    // A cut may remove a part of a key, and leave the figure.
    // What one job of several did may be what all did that are left.
    let metric = |key: &str| key.rsplit('#').next().unwrap_or_default().trim_end_matches("_each").to_string();
    let of_metric = |key: &str| -> Vec<f64> {
        let all = own.values.iter().chain(&other.values);
        all.filter(|(known, _)| metric(known) == metric(key)).map(|(_, value)| *value).collect()
    };
    let is_known = |(key, value): &Value| of_metric(key).contains(value);
    let strange: Vec<Value> = read_of(text.as_bytes()).into_iter().filter(|found| !is_known(found)).collect();
    if strange.is_empty() {
        return None;
    }
    let all = numbers(&text);
    // That of fio is a share of a time over an amount, three figures that no pair gives, and the
    // headline of SPEC CPU the geometric mean of all rows.
    let is_of_many = |key: &str| key.ends_with("#cpu_per_io") || key.starts_with("speccpu.SPEC");
    let mut pairs = strange.into_iter().filter(|(key, _)| !is_of_many(key));
    let (key, value) = pairs.find(|found| !is_founded(found, &of_metric(&found.0), &all))?;
    if let Some(folder) = std::env::var_os("SOAK_KEEP") {
        std::fs::write(std::path::Path::new(&folder).join(format!("{seed}.txt")), &text).expect("written");
    }
    Some(format!("seed {seed}: {change:?} of {} with {}: {key} = {value}", own.name, other.name))
}

#[track_caller]
fn all_follow(seeds: impl Iterator<Item = u64>) {
    let known = known();
    let wrong: Vec<String> = seeds.filter_map(|seed| unfounded(&known, seed)).collect();
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_figure_comes_from_nowhere() {
    all_follow(0..500);
}

#[test]
#[ignore = "ten thousand changed texts: make soak"]
fn soak() {
    let count = std::env::var("SOAK_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    all_follow(0..count);
    println!("{count} changed texts: every figure follows from its text");
}

/// A copy behind the original adds no value to any series.
#[test]
fn what_stands_there_twice_counts_once() {
    let of = |results: &[Imported]| -> BTreeSet<String> {
        let figures = results.iter().flat_map(|one| &one.figures);
        let all = figures.map(|figure| {
            let values: Vec<f64> =
                figure.judged.series.processes.iter().flat_map(|one| one.values.clone()).collect();
            format!("{} {values:?}", figure.judged.series.key)
        });
        all.collect()
    };
    for Known { name, text, .. } in known() {
        // One line alone may be what was printed twice.
        if text.lines().filter(|line| !line.trim().is_empty()).count() < 6 {
            continue;
        }
        for between in ["", "\n", "\n\n"] {
            let twice = read(format!("{text}{between}{text}").as_bytes());
            let (once, twice) = (read(text.as_bytes()).unwrap_or_default(), twice.unwrap_or_default());
            assert_eq!(of(&twice), of(&once), "{name}");
        }
    }
}

#[test]
fn what_follows_is_told_from_what_does_not() {
    let text = "a: 1.5 GiB in 3 s\nb: 40 usec\n";
    let all = numbers(text);
    for value in [1.5, 1.5e9, 1.5 * 1024.0 * 1024.0, 80.0, 4.5, 0.5, 43.0, 40e-6] {
        assert!(follows(value, &all), "{value}");
    }
    for value in [1.7, 7.3, 41.0] {
        assert!(!follows(value, &all), "{value}");
    }
    let of =
        |key: &str, value: f64| is_founded(&(key.to_string(), value), &[7.25], &numbers("8 ios in 2 ms\n"));
    assert!(of("a/block=512&depth=1#bandwidth", 2048.0) && !of("a/block=512&depth=1#iops", 2049.0));
    assert!(of("a#iops", 11.25) && !of("a#iops", 11.75));
    let far = format!("12.5\n{}81.25\n", "\n".repeat(SECTION + 1));
    assert!(!follows(93.75, &numbers(&far)), "a sum over sections");
}

/// Examples of another project's tests whose numbers that project has changed.
const EDITED: [&str; 4] = ["vc_fiotest", "vc_randwrite", "vc_readwrite", "StreamExampleWindows"];

/// Files of real hosts (not part of this project: a clone without them skips this and says so) are
/// read without an accusation, but for the few that have something against themselves.
#[test]
fn no_real_file_is_accused() {
    let folder = testkit::root().join("../shared/fixtures");
    if !folder.is_dir() {
        return eprintln!("SKIPPED: {} is not beside this clone", folder.display());
    }
    for path in ["results", "faults"].into_iter().flat_map(|kind| files(&folder.join(kind))) {
        let name = path.file_name().expect("a name").to_string_lossy();
        if EDITED.iter().any(|edited| name.starts_with(edited)) {
            continue;
        }
        let Ok(results) = read(&std::fs::read(&path).expect("readable")) else { continue };
        let rules: Vec<&str> =
            results.iter().flat_map(|one| &one.findings).map(|finding| finding.rule.as_str()).collect();
        let accused = rules.contains(&crate::faults::FIGURES_DISAGREE);
        assert!(!accused, "{}: {rules:?}", path.display());
    }
}
