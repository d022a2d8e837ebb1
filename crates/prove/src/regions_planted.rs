//! The tables on slow memory of this host: maps with causes planted in regions, and walks against
//! chains of another kind.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use kernels::{Chain, LINE_BYTES, Visits};
use model::{CpuSet, Pages};
use prove::proof::{Named, REGION_FALSE_MOST, REGION_NAMED_LEAST, Rate};
use serde_json::Value;
use stats::order::{median, median_interval};
use stats::regions::Cause;
use sys::mapping::Mapping;

use super::held_back::HeldBack;
use super::statistics::{at_least, at_most, row};
use super::{Section, option, table};

pub const SECTIONS: &[Section] = &[
    Section { name: "regions-planted", title: "Causes of slow memory, planted", run: planted },
    Section { name: "regions-clean", title: "Causes of slow memory where none is planted", run: clean },
    Section { name: "walks-beside", title: "What a translation costs, beside chains", run: beside_chains },
];

/// Trials of each planted cause; of nothing there are several times as many.
const TRIALS: usize = 100;
const CLEAN_TIMES: usize = 3;

pub fn trials() -> usize {
    option("--trials").and_then(|trials| trials.parse().ok()).unwrap_or(TRIALS)
}

/// What is planted, its cause, and how large it is in words.
const PLANTS: [(&str, Option<Cause>, &str); 4] = [
    ("base:25%", Some(Cause::Translation), "a quarter on base pages among huge ones"),
    ("huge:25%", Some(Cause::Translation), "a quarter on huge pages among base ones"),
    ("slow:25%@1.33", Some(Cause::Transfer), "a quarter read 1.33 times"),
    ("slow:25%@1.08", None, "a quarter read 1.08 times: below the limit"),
];

/// Maps of this host's own memory with something planted, kinds alternately.
fn planted() -> String {
    let held_back = HeldBack::new();
    let own = own_causes();
    let trials = trials();
    let mut named = [Named::default(); PLANTS.len()];
    for trial in 0..trials {
        for ((plant, cause, _), count) in PLANTS.iter().zip(&mut named) {
            try_once(plant, *cause, &own, count);
        }
        progress(trial, trials);
    }
    let right: Vec<Rate> = PLANTS
        .iter()
        .zip(&named)
        .filter(|((_, cause, _), _)| cause.is_some())
        .map(|(_, named)| named.right)
        .collect();
    let rows: Vec<Vec<String>> =
        PLANTS.iter().zip(&named).map(|((_, cause, words), named)| row(words, *cause, named)).collect();
    [
        of_host(&held_back, &own),
        table(&COLUMNS, &rows),
        at_least("Planted causes named", &right, REGION_NAMED_LEAST),
        at_most("Causes named that were not planted", &named.map(|named| named.wrong), REGION_FALSE_MOST),
    ]
    .concat()
}

/// Maps of it as it is.
fn clean() -> String {
    let held_back = HeldBack::new();
    let own = own_causes();
    let trials = CLEAN_TIMES * trials();
    let mut named = Named::default();
    for trial in 0..trials {
        try_once("", None, &own, &mut named);
        progress(trial, trials);
    }
    [
        of_host(&held_back, &own),
        table(&COLUMNS, &[row("nothing", None, &named)]),
        at_most("Causes named without one", &[named.wrong], REGION_FALSE_MOST),
        at_least("Maps without a cause reported so", &[named.none], CLEAN_LEAST),
    ]
    .concat()
}

/// Maps without a plant of which that must be said.
const CLEAN_LEAST: f64 = 0.9;

const COLUMNS: [&str; 5] =
    ["planted in 12 regions of 64 MiB", "trials", "named", "another named", "none named"];

fn row(words: &str, cause: Option<Cause>, named: &Named) -> Vec<String> {
    let right = if cause.is_some() { named.right.to_string() } else { "–".to_string() };
    row![words, named.none.of, right, named.wrong, named.none]
}

/// Twelve regions.
const TWELVE: &str = "768M";

/// One map; causes that are the host's own count neither way.
fn try_once(plant: &str, cause: Option<Cause>, own: &[Cause], count: &mut Named) {
    let Some(seen) = map(TWELVE, plant) else { return };
    let causes = causes(&seen);
    let others = causes.iter().filter(|found| Some(**found) != cause);
    // What lies farther by pages was held back: none of it is the host's own.
    let is_wrong = seen["far_times"].is_number() || others.clone().any(|found| !own.contains(found));
    let is_right = !is_wrong && cause.is_some_and(|cause| causes.contains(&cause));
    if is_wrong || is_right != cause.is_some() {
        eprintln!("{plant:?}: {} {} {}", seen["differences"], seen["far_share"], seen["far_times"]);
    }
    count.right.count(is_right);
    count.wrong.count(is_wrong);
    count.none.count(!is_wrong && others.count() == causes.len());
}

pub fn progress(trial: usize, trials: usize) {
    if trial % 10 == 9 {
        eprintln!("{} of {trials} trials of each kind", trial + 1);
    }
}

/// What the host itself does to this guest's memory is there in every trial, and neither right nor
/// wrong: causes that two of three large maps name.
pub fn own_causes() -> Vec<Cause> {
    let maps: Vec<Vec<Cause>> = (0..3).filter_map(|_| map("8G", "")).map(|seen| causes(&seen)).collect();
    let is_own = |cause: &Cause| maps.iter().filter(|own| own.contains(cause)).count() >= 2;
    Cause::ALL.into_iter().filter(is_own).collect()
}

pub fn of_host(held_back: &HeldBack, own: &[Cause]) -> String {
    let named = match own {
        [] => "Maps of 8 GiB of the rest name no cause.\n\n".to_string(),
        own => format!("Maps of 8 GiB of the rest name {own:?}.\n\n"),
    };
    format!("{}{named}", held_back.words())
}

/// Where the results of the last command lie.
pub fn folder() -> PathBuf {
    testkit::root().join("target/tmp/planted")
}

/// Results of a command of this program; `None` where there are none.
pub fn results(words: &[&str]) -> Option<Value> {
    let folder = folder();
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = Command::new(testkit::program());
    command.args(words).args(["--new", "--force", "--json", "--out"]).arg(&folder);
    let output = command.stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// The result of a map of this much memory on its regions of 64 MiB, with this planted; `None`
/// where it was not valid.
pub fn map(most: &str, plant: &str) -> Option<Value> {
    regions_of("64M", most, plant)
}

fn regions_of(chunk: &str, most: &str, plant: &str) -> Option<Value> {
    let mut words = vec!["memmap", "--chunk", chunk, "--max", most];
    if !plant.is_empty() {
        words.extend(["--plant", plant]);
    }
    let seen = results(&words)?["memory_regions"][0].take();
    seen.is_object().then_some(seen)
}

/// The causes that it names.
pub fn causes(seen: &Value) -> Vec<Cause> {
    let cause = |found: &Value| match found["cause"].as_str() {
        Some("translation") => Some(Cause::Translation),
        Some("distance") => Some(Cause::Distance),
        Some("transfer") => Some(Cause::Transfer),
        _ => None,
    };
    let all = seen["differences"].as_array();
    all.into_iter().flatten().filter(|found| found["named"] == true).filter_map(cause).collect()
}

/// Memory that chains lead through, and pages of a group of the chain that stays near.
const CHAINED: usize = 512 << 20;
const CHAINED_CHUNK: &str = "512M";
const NEAR_PAGES: usize = 64;
const STEPS: u64 = 1 << 20;
const ROUNDS: usize = 15;

/// What hopping over pages adds to a load by chains that are not flushed and walk through all
/// memory, as multichase does: any line next, against lines of 64 pages first. Compared with the
/// walks of `memory.regions`, alternately.
fn beside_chains() -> String {
    let mut memory = Mapping::private(CHAINED, Pages::Huge, &CpuSet::default()).expect("512 MiB of memory");
    let page = rustix::param::page_size();
    let timed = |memory: &mut Mapping, visits: Visits| {
        let mut chain = Chain::linked(memory.words_mut(), LINE_BYTES, visits, 1);
        chain.walk(STEPS);
        let begin = Instant::now();
        chain.walk(STEPS);
        begin.elapsed().as_secs_f64() * 1e9 / STEPS as f64
    };
    let (mut chains, mut walks) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let near = timed(&mut memory, Visits::RandomInPages(NEAR_PAGES * page));
        chains.push(timed(&mut memory, Visits::Random) - near);
        let Some(seen) = regions_of(CHAINED_CHUNK, "2G", "") else { continue };
        let price = &seen["price_ns"];
        walks.extend(price[0].as_f64().zip(price[1].as_f64()).map(|(low, high)| (low + high) / 2.0));
    }
    let row = |what: &str, ns: &[f64]| {
        let interval = median_interval(ns, 0.95)
            .map_or("–".to_string(), |own| format!("{:.1} to {:.1}", own.low, own.high));
        let middle = median(ns).map_or("–".to_string(), |ns| format!("{ns:.1}"));
        row![what, ns.len(), middle, interval]
    };
    table(
        &["what hopping adds to a load", "rounds", "median, ns", "95 % interval, ns"],
        &[
            row("chains through 512 MiB: any line against lines of 64 pages", &chains),
            row("`memory_regions` of regions as large: hopping against near walks", &walks),
        ],
    )
}
