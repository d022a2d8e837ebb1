//! Real runs of this host against each other: how often `assay compare` calls equal runs the
//! same, how often it errs, and how often it finds differences that were planted (`assay run
//! --planted`).
//!
//! Runs serve for all pairs: `--from DIR` takes quick runs that were made before, `--planted DIR`
//! slowed ones and `--hogs DIR` ones next to busy loops (each folder's own run files, or those of
//! its folders). Without `--from` all are measured here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;
use model::run_file;

use super::{Section, option};
use testkit::host::{self, Hog};

mod measured;
mod promises;
mod tally;

use measured::Measured;
use promises::Found;

pub const SECTIONS: &[Section] =
    &[Section { name: "a-a", title: "Real runs of one machine against each other", run: against_itself }];

/// Quick runs that are measured, unless `--runs` says otherwise; slowed ones of each share; ones
/// with CPU hogs.
const RUNS: usize = 10;
const PLANTED_RUNS: usize = 3;
const PLANTED: [u32; 2] = [10, 5];
const HOG_RUNS: usize = 2;

/// Runs a side, and how many such pairs are drawn.
const SIDE: usize = 3;
const DRAWN: usize = 20;
const SEED: u64 = 30;

fn against_itself() -> String {
    let made = tempfile::tempdir().map_err(|error| error.to_string());
    let runs = made.and_then(|made| match option("--from") {
        Some(folder) => Runs::given(Path::new(&folder)),
        None => Runs::measured(made.path()),
    });
    match runs {
        Ok(runs) if runs.clean.len() >= 2 => report(&runs),
        Ok(runs) => format!("{} runs make no pair. {}\n", runs.clean.len(), runs.failed.join("; ")),
        Err(why) => format!("There are no runs: {why}.\n"),
    }
}

/// What is compared.
#[derive(Default)]
struct Runs {
    clean: Vec<Measured>,
    planted: Vec<Measured>,
    hogs: Vec<Measured>,
    failed: Vec<String>,
}

impl Runs {
    fn given(folder: &Path) -> Result<Runs, String> {
        let mut runs = Runs::default();
        runs.clean = runs.read(folder);
        for (name, kind) in [("--planted", 0), ("--hogs", 1)] {
            let found = option(name).map(|folder| runs.read(Path::new(&folder))).unwrap_or_default();
            if kind == 0 { runs.planted = found } else { runs.hogs = found }
        }
        Ok(runs)
    }

    /// The runs in a folder and in its folders, in the order in which they were made.
    fn read(&mut self, folder: &Path) -> Vec<Measured> {
        let mut found = Vec::new();
        for file in run_files(folder) {
            match Measured::read(&file) {
                Ok(run) => found.push(run),
                Err(why) => self.failed.push(why),
            }
        }
        found.sort_by(|a: &Measured, b| a.started.cmp(&b.started));
        found
    }

    fn measured(folder: &Path) -> Result<Runs, String> {
        let count = option("--runs").and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
        let [clean, planted, hogs] = ["clean", "planted", "hogs"].map(|name| folder.join(name));
        let mut failed = Vec::new();
        let mut note = |result: Result<(), String>| failed.extend(result.err());
        (0..count).for_each(|run| note(measure(&clean.join(run.to_string()), &[])));
        for share in PLANTED {
            for run in 0..PLANTED_RUNS {
                let out = planted.join(format!("{share}-{run}"));
                note(measure(&out, &["--planted", &share.to_string()]));
            }
        }
        for run in 0..HOG_RUNS {
            if host::works("taskset", &["-c", "0", "true"]) {
                let _hogs: Vec<Hog> = host::allowed_cpus().iter().map(Hog::on).collect();
                note(measure(&hogs.join(run.to_string()), &["--force"]));
            }
        }
        let mut runs = Runs { failed, ..Runs::default() };
        (runs.clean, runs.planted, runs.hogs) = (runs.read(&clean), runs.read(&planted), runs.read(&hogs));
        Ok(runs)
    }
}

pub fn run_files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let is_run = |path: &PathBuf| path.to_string_lossy().ends_with(run_file::EXTENSION) && path.is_file();
    let inside = entries(folder).into_iter().flat_map(|path| entries(&path));
    let mut files: Vec<PathBuf> = entries(folder).into_iter().chain(inside).filter(is_run).collect();
    files.sort();
    files
}

/// Makes a quick run.
fn measure(out: &Path, more: &[&str]) -> Result<(), String> {
    let mut command = Command::new(testkit::program());
    command.args(["run", "--quick", "--new", "--json", "--out"]).arg(out).args(more);
    for name in ["--only", "--budget"] {
        if let Some(value) = option(name) {
            command.args([name, &value]);
        }
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if run_files(out).is_empty() { Err(String::from_utf8_lossy(&output.stderr).into_owned()) } else { Ok(()) }
}

/// All comparisons that these runs give.
fn report(runs: &Runs) -> String {
    let mut found = Found::default();
    let clean = &runs.clean;
    for (first, a) in clean.iter().enumerate() {
        for b in &clean[first + 1..] {
            found.pairs.take(&measured::compared(a, b, None), a);
        }
        for b in &runs.planted {
            found.planted(&measured::compared(a, b, None), a, b);
        }
        for b in &runs.hogs {
            found.beside_hogs(&measured::compared(a, b, None));
        }
    }
    let others = |used: &[usize]| (0..clean.len()).filter(|run| !used.contains(run)).collect::<Vec<_>>();
    let whole = |places: &[usize]| measured::side(places.iter().map(|place| &clean[*place]));
    for first in 0..clean.len() {
        for second in first + 1..clean.len() {
            let history = others(&[first, second]);
            if history.len() >= SIDE
                && let Ok(history) = whole(&history)
            {
                let compared = measured::compared(&clean[first], &clean[second], Some(history));
                found.with_history.take(&compared, &clean[first]);
            }
        }
    }
    let mut rng = Rng::with_seed(SEED);
    for _ in 0..if clean.len() >= 2 * SIDE { DRAWN } else { 0 } {
        let mut places: Vec<usize> = (0..clean.len()).collect();
        rng.shuffle(&mut places);
        if let (Ok(a), Ok(b)) = (whole(&places[..SIDE]), whole(&places[SIDE..2 * SIDE])) {
            found.three_a_side.take(&measured::of_arms(&a, &b, None), &clean[places[0]]);
        }
    }
    let failed = match runs.failed.as_slice() {
        [] => String::new(),
        some => format!("\n{} runs could not be used: {}.\n", some.len(), some.join("; ")),
    };
    promises::text(&found, clean) + &failed
}
