//! Real runs of this machine against each other: what `assay compare` says of a machine and itself, and of a machine and
//! itself with a busy loop on every CPU.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::run_file;
use prove::proof::Rate;
use serde_json::Value;
use stats::order::{median, quantile};

use super::{Section, option, table};
use testkit::host::{self, Hog};

pub const SECTIONS: &[Section] =
    &[Section { name: "a-a", title: "Real runs of one machine against each other", run: against_itself }];

/// Pairs of runs; `--pairs` asks for another number.
const PAIRS: usize = 20;

/// One run beside hogs after so many pairs.
const PAIRS_A_HOG: usize = 4;

/// Most metrics of two runs of one machine that may be called different.
const DIFFERENT_MOST: f64 = 0.05;

/// What was said of metrics, of some kind of pair or part of the machine.
#[derive(Default)]
struct Said {
    words: BTreeMap<String, usize>,
    refused: BTreeMap<String, usize>,
    /// Per pair.
    different: Vec<f64>,
    /// |ln ratio|, and the half-width of its interval.
    apart: Vec<f64>,
    halves: Vec<f64>,
}

impl Said {
    fn of(&self, words: &[&str]) -> usize {
        words.iter().filter_map(|word| self.words.get(*word)).sum()
    }

    fn rate(&self, words: &[&str]) -> Rate {
        Rate { hits: self.of(words), of: self.words.values().sum() }
    }

    fn take(&mut self, metric: &Value) {
        *self.words.entry(metric["verdict"].as_str().unwrap_or("").to_string()).or_default() += 1;
        self.apart.extend(metric["ratio"].as_f64().map(|ratio| ratio.ln().abs()));
        let (low, high) = (metric["ci95"][0].as_f64(), metric["ci95"][1].as_f64());
        self.halves.extend(low.zip(high).map(|(low, high)| (high / low).ln() / 2.0));
    }
}

const DIFFERENT: [&str; 4] = ["faster", "slower", "higher", "lower"];

fn against_itself() -> String {
    let pairs = option("--pairs").and_then(|pairs| pairs.parse().ok()).unwrap_or(PAIRS);
    let (mut all, mut headlines, mut loaded) = (Said::default(), Said::default(), Said::default());
    let mut parts: BTreeMap<String, Said> = BTreeMap::new();
    let (mut named, mut clocks, mut failed) = (Rate::default(), Vec::new(), Vec::new());
    for round in 0..pairs {
        let Ok(folder) = tempfile::tempdir() else { return "There is no room for runs.\n".to_string() };
        match pair(folder.path()) {
            Ok((a, b)) => match compared(&a, &b) {
                Ok(found) => {
                    eprintln!("pair {}: {}", round + 1, counted(&found));
                    take(&found, &mut all, &mut headlines, &mut parts);
                    clocks.push(clock_apart(&found));
                    if round % PAIRS_A_HOG == 0 {
                        match beside_hogs(&a, folder.path()) {
                            Ok(found) => of_loaded(&found, &mut loaded, &mut named),
                            Err(why) => failed.push(format!("beside hogs: {why}")),
                        }
                    }
                }
                Err(why) => failed.push(why),
            },
            Err(why) => failed.push(why),
        }
    }
    let failed = match failed.as_slice() {
        [] => String::new(),
        some => format!("\n{} runs or comparisons failed: {}.\n", some.len(), some.join("; ")),
    };
    let different = all.rate(&DIFFERENT);
    let refused =
        Rate { hits: all.refused.values().sum(), of: all.refused.values().sum::<usize>() + different.of };
    let kept = match different.share() <= DIFFERENT_MOST {
        // A machine that is busy all the time proves nothing.
        true if refused.share() > 0.5 => "kept, but most were refused",
        true => "kept",
        false => "**broken**",
    };
    let most = all.different.iter().copied().fold(0.0, f64::max);
    format!(
        "{}\n{}\nCalled different: stated at most {} %, here {different} of all metrics of {} pairs ({:.1} % in the worst pair): \
         {kept}; {refused} of what both had was refused. Core clocks of two runs differed by {} in the median pair, {} at most.\n{failed}",
        of_kinds(
            &[("all metrics", &all), ("headlines", &headlines), ("beside a busy loop on every CPU", &loaded)],
            named
        ),
        of_parts(&parts),
        100.0 * DIFFERENT_MOST,
        all.different.len(),
        100.0 * most,
        percent(median(&clocks).unwrap_or(f64::NAN)),
        percent(clocks.iter().copied().fold(0.0, f64::max)),
    )
}

/// Two runs, one after the other.
fn pair(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    Ok((measured(&folder.join("a"))?, measured(&folder.join("b"))?))
}

/// A quick run's file.
fn measured(out: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new(testkit::program());
    command.args(["run", "--quick", "--force", "--json", "--out"]).arg(out);
    for name in ["--only", "--budget"] {
        if let Some(value) = option(name) {
            command.args([name, &value]);
        }
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let entries = std::fs::read_dir(out).map_err(|error| error.to_string())?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let file = files.find(|path| path.to_string_lossy().ends_with(run_file::EXTENSION));
    file.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What the program says of two runs. That it refuses some is an answer too.
fn compared(a: &Path, b: &Path) -> Result<Value, String> {
    let output = Command::new(testkit::program())
        .args(["compare", "--json"])
        .args([a, b])
        .output()
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The first run against one beside a busy loop on each CPU.
fn beside_hogs(a: &Path, folder: &Path) -> Result<Value, String> {
    if !host::works("taskset", &["-c", "0", "true"]) {
        return Err("needs taskset".to_string());
    }
    let hogs: Vec<Hog> = host::allowed_cpus().iter().map(Hog::on).collect();
    let loaded = measured(&folder.join("hogs"));
    drop(hogs);
    compared(a, &loaded?)
}

fn list<'a>(found: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    found[name].as_array().into_iter().flatten()
}

fn take(found: &Value, all: &mut Said, headlines: &mut Said, parts: &mut BTreeMap<String, Said>) {
    let (mut different, mut of) = (0, 0);
    for metric in list(found, "metrics") {
        all.take(metric);
        of += 1;
        different += usize::from(DIFFERENT.iter().any(|word| metric["verdict"] == *word));
        if DIFFERENT.iter().any(|word| metric["verdict"] == *word) {
            eprintln!("  {} {} {} {}", metric["key"], metric["ratio"], metric["ci95"], metric["note"]);
        }
        if metric["headline"] == true {
            headlines.take(metric);
            parts.entry(metric["component"].as_str().unwrap_or("").to_string()).or_default().take(metric);
        }
    }
    all.different.extend((of > 0).then(|| f64::from(different as u32) / f64::from(of)));
    for refused in list(found, "refused") {
        let factor = refused["factor"].as_str().unwrap_or("").to_string();
        if refused["headline"] == true {
            *headlines.refused.entry(factor.clone()).or_default() += 1;
        }
        *all.refused.entry(factor).or_default() += 1;
    }
}

/// Beside hogs a metric that moved must be refused by what names them, or be said to be disturbed by them.
fn of_loaded(found: &Value, loaded: &mut Said, named: &mut Rate) {
    for metric in list(found, "metrics") {
        loaded.take(metric);
        let disturbed = ["words", "note"]
            .iter()
            .any(|field| metric[*field].as_str().is_some_and(|text| text.contains("disturbed")));
        // What is neither was not found to have moved.
        if disturbed || DIFFERENT.iter().any(|word| metric["verdict"] == *word) {
            named.count(disturbed);
        }
    }
    for refused in list(found, "refused") {
        *loaded.refused.entry(refused["factor"].as_str().unwrap_or("").to_string()).or_default() += 1;
        if refused["conditions"] == true {
            named.count(true);
        }
    }
    eprintln!("beside hogs: {}", counted(found));
}

fn counted(found: &Value) -> String {
    let mut said = Said::default();
    list(found, "metrics").for_each(|metric| said.take(metric));
    format!("{:?}, {} refused", said.words, list(found, "refused").count())
}

/// By how much the clocks of two runs differ, a share; 0 where that is not worth telling.
fn clock_apart(found: &Value) -> f64 {
    let mhz = |value: &Value| value.as_str()?.split(' ').next()?.parse::<f64>().ok();
    let clock = list(found, "environment_differences").find(|one| one["label"] == "core_clock");
    let clocks = clock.and_then(|one| Some((mhz(&one["a"])?, mhz(&one["b"])?)));
    clocks.map_or(0.0, |(a, b)| (b / a - 1.0).abs())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn of_kinds(kinds: &[(&str, &Said)], named: Rate) -> String {
    let row = |(name, said): &(&str, &Said)| {
        let refused: Vec<String> =
            said.refused.iter().map(|(factor, many)| format!("{factor} {many}")).collect();
        vec![
            name.to_string(),
            said.words.values().sum::<usize>().to_string(),
            said.rate(&DIFFERENT).to_string(),
            said.rate(&["inconclusive"]).to_string(),
            said.rate(&["same"]).to_string(),
            if refused.is_empty() { "–".to_string() } else { refused.join(", ") },
        ]
    };
    let rows: Vec<Vec<String>> = kinds.iter().map(row).collect();
    let header = ["what", "compared", "different", "inconclusive", "same", "refused because of"];
    let named = format!(
        "\nBeside busy loops {named} of the metrics that moved, or whose conditions did, were refused for a condition or name what disturbed \
         them.\n"
    );
    table(&header, &rows) + if named.contains("NaN") { "" } else { &named }
}

/// What whole runs of this machine differ by, by part of the machine.
fn of_parts(parts: &BTreeMap<String, Said>) -> String {
    let row = |(name, said): (&String, &Said)| {
        let middle = |values: &[f64]| median(values).map_or("–".to_string(), percent);
        let far = quantile(&said.apart, 0.95).map_or("–".to_string(), percent);
        vec![
            name.clone(),
            said.words.values().sum::<usize>().to_string(),
            said.rate(&DIFFERENT).to_string(),
            middle(&said.apart),
            far,
            middle(&said.halves),
        ]
    };
    let rows: Vec<Vec<String>> = parts.iter().map(row).collect();
    let header = [
        "headlines of",
        "compared",
        "different",
        "two runs differ by, median",
        "95th percentile",
        "half-width of the interval, median",
    ];
    table(&header, &rows)
}
