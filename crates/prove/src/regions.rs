//! The tables on causes of slow memory: simulated hosts, and what is planted on this one.

use std::path::Path;
use std::process::{Command, Stdio};

use prove::proof::{Host, Named, REGION_FALSE_MOST, REGION_NAMED_LEAST, Rate, alike, heard, planted};
use stats::regions::Cause;

use super::statistics::{at_least, at_most};
use super::{Section, measured, option, table};

pub const SECTIONS: &[Section] = &[
    Section { name: "regions", title: "Causes of slow memory, simulated", run: simulated },
    Section { name: "regions-planted", title: "Causes of slow memory, planted", run: on_this_host },
];

/// Simulated hosts a cell, and without a cause.
const HOSTS: usize = 1_000;
const ALIKE: usize = 10_000;

fn sizes(cause: Cause) -> [f64; 5] {
    match cause {
        Cause::Translation => [5.0, 10.0, 14.0, 20.0, 40.0],
        Cause::Distance | Cause::Transfer => [1.1, 1.2, 1.25, 1.33, 1.5],
    }
}

fn simulated() -> String {
    let cells: Vec<(Cause, f64)> =
        Cause::ALL.iter().flat_map(|cause| sizes(*cause).map(|size| (*cause, size))).collect();
    let found = measured(&cells, |(cause, size)| planted(Host::USUAL, *cause, *size, HOSTS, 7));
    let rows: Vec<Vec<String>> =
        cells.iter().zip(&found).map(|((cause, size), named)| row(*cause, *size, named)).collect();
    let parts: Vec<u64> = (0..4).collect();
    let none =
        measured(&parts, |part| alike(ALIKE / 4, 100 + part)).into_iter().fold(Named::default(), Named::and);
    let above: Vec<Rate> = cells
        .iter()
        .zip(&found)
        .filter(|((cause, size), _)| sizes(*cause)[2..].contains(size))
        .map(|(_, named)| named.right)
        .collect();
    let wrong: Vec<Rate> = found.iter().map(|named| named.wrong).chain([none.wrong]).collect();
    let neighbours = [(0.0, 1.0, 1.0), (0.3, 1.1, 1.0), (0.3, 1.3, 0.5), (0.35, 1.3, 1.0), (0.5, 1.3, 3.0)];
    let heard = measured(&neighbours, |(share, slower, lasts)| heard(*share, *slower, *lasts, HOSTS, 9));
    let told: Vec<Vec<String>> = neighbours
        .iter()
        .zip(&heard)
        .map(|((share, slower, lasts), heard)| {
            vec![
                format!("{:.0} % of the time, {slower} times, for {lasts} s", share * 100.0),
                heard.named.to_string(),
                heard.quiet.to_string(),
            ]
        })
        .collect();
    [
        table(
            &["cause, in a quarter of 16 regions, 18 looks each", "named", "another named", "none named"],
            &rows,
        ),
        format!("\nOf {ALIKE} hosts of any kind without a cause {} have none named.\n\n", none.none),
        at_least("Causes right above their limits named", &above, REGION_NAMED_LEAST),
        at_most("Causes named that are not there", &wrong, REGION_FALSE_MOST),
        "\n".to_string(),
        table(&["neighbour, in half a minute", "named", "said not to be there"], &told),
        at_least(
            "Neighbours of more than 20 % named",
            &heard[2..].iter().map(|heard| heard.named).collect::<Vec<_>>(),
            REGION_NAMED_LEAST,
        ),
        at_most("Neighbours named that are not there", &[heard[0].named], REGION_FALSE_MOST),
    ]
    .concat()
}

fn row(cause: Cause, size: f64, named: &Named) -> Vec<String> {
    let words = match cause {
        Cause::Translation => format!("translation, {size} ns"),
        Cause::Distance => format!("distance, {size} times"),
        Cause::Transfer => format!("transfer, {size} times"),
    };
    vec![words, named.right.to_string(), named.wrong.to_string(), named.none.to_string()]
}

/// Trials of each planted cause, and of nothing.
const TRIALS: usize = 100;
const CLEAN: usize = 300;

/// What is planted, its cause, and how large it is in words.
const PLANTS: [(&str, Option<Cause>, &str); 5] = [
    ("", None, "nothing"),
    ("base:25%", Some(Cause::Translation), "a quarter on base pages among huge ones"),
    ("huge:25%", Some(Cause::Translation), "a quarter on huge pages among base ones"),
    ("slow:25%@1.33", Some(Cause::Transfer), "a quarter read 1.33 times"),
    ("slow:25%@1.08", None, "a quarter read 1.08 times: below the limit"),
];

/// Maps of this host's own memory with something planted, kinds in turn.
fn on_this_host() -> String {
    let trials: usize = option("--trials").and_then(|trials| trials.parse().ok()).unwrap_or(TRIALS);
    let folder = testkit::root().join("target/tmp/regions-planted");
    // What the host itself does to this guest's memory is there in every trial.
    let maps: Vec<Vec<Cause>> = (0..3).filter_map(|_| named_here("", "8G", &[], &folder)).collect();
    let is_own = |cause: &Cause| maps.iter().filter(|own| own.contains(cause)).count() >= 2;
    let own: Vec<Cause> = Cause::ALL.into_iter().filter(is_own).collect();
    let mut named = [Named::default(); PLANTS.len()];
    for trial in 0..trials {
        for (at, (plant, cause, _)) in PLANTS.iter().enumerate() {
            let repeats = if plant.is_empty() { CLEAN / TRIALS } else { 1 };
            for _ in 0..repeats {
                let Some(causes) = named_here(plant, "768M", &["--chunk", "64M"], &folder) else { continue };
                let others = causes.iter().filter(|found| Some(**found) != *cause);
                let is_wrong = others.clone().any(|found| !own.contains(found));
                let count = &mut named[at];
                count.right.count(!is_wrong && cause.is_some_and(|cause| causes.contains(&cause)));
                count.wrong.count(is_wrong);
                count.none.count(!is_wrong && others.count() == causes.len());
            }
        }
        if trial % 10 == 9 {
            eprintln!("{} of {trials} trials of each kind", trial + 1);
        }
    }
    let rows: Vec<Vec<String>> = PLANTS
        .iter()
        .zip(&named)
        .map(|((_, cause, words), named)| {
            let right = if cause.is_some() { named.right.to_string() } else { "–".to_string() };
            vec![
                words.to_string(),
                named.none.of.to_string(),
                right,
                named.wrong.to_string(),
                named.none.to_string(),
            ]
        })
        .collect();
    let right: Vec<Rate> = PLANTS
        .iter()
        .zip(&named)
        .filter(|((_, cause, _), _)| cause.is_some())
        .map(|(_, named)| named.right)
        .collect();
    let of_host = match own.as_slice() {
        [] => "Whole maps of this guest name no cause of its own.\n\n".to_string(),
        own => format!("Whole maps of this guest name {own:?} of its own.\n\n"),
    };
    [
        of_host,
        table(&["planted in 12 regions of 64 MiB", "trials", "named", "another named", "none named"], &rows),
        at_least("Planted causes named", &right, REGION_NAMED_LEAST),
        at_most("Causes named that were not planted", &named.map(|named| named.wrong), REGION_FALSE_MOST),
    ]
    .concat()
}

/// The causes that a map of so much memory with this plant names; `None` where it was not valid.
fn named_here(plant: &str, most: &str, more: &[&str], folder: &Path) -> Option<Vec<Cause>> {
    let _ = std::fs::remove_dir_all(folder);
    let mut command = Command::new(testkit::program());
    command.args(["memmap", "--max", most, "--new", "--force", "--json", "--out"]).arg(folder).args(more);
    if !plant.is_empty() {
        command.args(["--plant", plant]);
    }
    let output = command.stderr(Stdio::null()).output().ok()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let differences = report["memory_regions"][0]["differences"].as_array()?.clone();
    let cause = |found: &serde_json::Value| match found["cause"].as_str() {
        Some("translation") => Some(Cause::Translation),
        Some("distance") => Some(Cause::Distance),
        Some("transfer") => Some(Cause::Transfer),
        _ => None,
    };
    Some(differences.iter().filter(|found| found["named"] == true).filter_map(cause).collect())
}
