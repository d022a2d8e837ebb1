//! The totals of all soaks of one commit: kept in target/soak/COMMIT.json, printed as a table, and
//! written to docs/results/soak.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::bout::{BETWEEN, CONCLUDING, Kind, Outcome, STARTING, VISIT};
use super::scenes::FAMILIES;

/// Kills that the soaks of a commit are to come to, in all and in each family.
const GOAL: u64 = 1000;
const GOAL_OF_A_FAMILY: u64 = 30;
const GOAL_OF_FLINK: u64 = 10;

/// One soak.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Soak {
    pub date: String,
    pub seed: u64,
    pub seconds: u64,
    pub kills: u64,
}

/// All soaks of a commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    pub commit: String,
    pub machine: String,
    pub soaks: Vec<Soak>,
    /// Kills by family, phase, signal and target, separated by |.
    pub kills: BTreeMap<String, u64>,
    /// Kills in bouts at whose end nothing was wrong with the run file.
    pub gone_on_with: u64,
    pub lost: u64,
    pub left: u64,
    pub not_gone_on_with: u64,
    pub ended_wrongly: u64,
    pub faults: Vec<String>,
    /// Families, or parts of them, that this host cannot have.
    pub skipped: Vec<String>,
}

impl Tally {
    pub fn load(path: &Path) -> Tally {
        let text = fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_else(|_| Tally {
            commit: commit(),
            machine: machine(),
            ..Tally::default()
        })
    }

    pub fn save(&self, path: &Path) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for results");
        fs::write(path, serde_json::to_vec_pretty(self).expect("JSON")).expect("results are kept");
    }

    /// Adds what a bout came to; its faults as lines.
    pub fn add(&mut self, family: &str, seed: u64, outcome: &Outcome) -> Vec<String> {
        for kill in &outcome.kills {
            *self.kills.entry([family, kill.phase, kill.signal, kill.target].join("|")).or_default() += 1;
        }
        let is = |kind: Kind| u64::from(outcome.faults.iter().any(|(one, _)| *one == kind));
        self.lost += is(Kind::Lost);
        self.left += is(Kind::Left);
        self.not_gone_on_with += is(Kind::NotGoneOn);
        self.ended_wrongly += is(Kind::Crashed);
        let on = outcome.faults.iter().all(|(kind, _)| *kind == Kind::Left);
        self.gone_on_with += if on { outcome.kills.len() as u64 } else { 0 };
        if outcome.faults.is_empty() {
            return Vec::new();
        }
        let folder =
            outcome.folder.as_ref().map_or(String::new(), |folder| format!("; kept in {}", folder.display()));
        let kills: Vec<String> = outcome
            .kills
            .iter()
            .map(|kill| format!("{} to the {} {}", kill.signal, kill.target, kill.phase))
            .collect();
        let head = format!(
            "SOAK_SEED={seed} SOAK_FAMILY={family} SOAK_KILLS={}: {}{folder}\n    after {}",
            kills.len(),
            outcome.shown,
            kills.join(", ")
        );
        let whats = outcome.faults.iter().take(12).map(|(kind, what)| format!("    {kind}: {what}"));
        let lines: Vec<String> = std::iter::once(head).chain(whats).collect();
        self.faults.push(lines.join("\n"));
        lines
    }

    pub fn total(&self) -> u64 {
        self.kills.values().sum()
    }

    /// Kills whose words at this place (family, phase, signal, target) are these.
    pub fn with(&self, place: usize, word: &str) -> u64 {
        self.kills
            .iter()
            .filter(|(key, _)| key.split('|').nth(place) == Some(word))
            .map(|(_, count)| count)
            .sum()
    }

    /// What is missing of the goals.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let total = self.total();
        if total < GOAL {
            missing.push(format!("{total} of {GOAL} kills"));
        }
        for (family, _) in FAMILIES {
            let (kills, goal) =
                (self.with(0, family), if family == "nexmark" { GOAL_OF_FLINK } else { GOAL_OF_A_FAMILY });
            if kills < goal && !self.skipped.iter().any(|skipped| skipped.starts_with(&format!("{family}:")))
            {
                missing.push(format!("{kills} of {goal} kills of {family}"));
            }
        }
        if 2 * self.with(1, VISIT) < total {
            missing.push(format!("{} of {} kills inside a visit", self.with(1, VISIT), total.div_ceil(2)));
        }
        missing
    }

    /// The tables, in Markdown.
    pub fn tables(&self) -> String {
        let total = self.total();
        let row = |words: &[String]| format!("| {} |\n", words.join(" | "));
        let rule = |count: usize| format!("|{}\n", " --- |".repeat(count));
        let mut text = format!(
            "{} kills in {} of one commit, {} of them inside a visit; lost: {}, left: {}, not gone on with: {}, ended \
             wrongly: {}; gone on with after {} kills.\n\n",
            total,
            match self.soaks.len() {
                1 => "one soak".to_string(),
                soaks => format!("{soaks} soaks"),
            },
            self.with(1, VISIT),
            self.lost,
            self.left,
            self.not_gone_on_with,
            self.ended_wrongly,
            self.gone_on_with
        );
        let missing = self.missing();
        if !missing.is_empty() {
            text.push_str(&format!("Not reached yet: {}.\n\n", missing.join("; ")));
        }
        for skipped in &self.skipped {
            text.push_str(&format!("Skipped: {skipped}.\n\n"));
        }
        let phases = [STARTING, VISIT, BETWEEN, CONCLUDING];
        let head = ["family", "kills"].iter().chain(&phases).map(|word| word.to_string());
        text.push_str(&row(&head.collect::<Vec<_>>()));
        text.push_str(&rule(6));
        for (family, _) in FAMILIES {
            let of = |phase: &str| {
                let begin = format!("{family}|{phase}|");
                let kills = self.kills.iter().filter(|(key, _)| key.starts_with(&begin));
                kills.map(|(_, count)| count).sum::<u64>().to_string()
            };
            let counts = phases.iter().map(|phase| of(phase));
            let words: Vec<String> =
                [family.to_string(), self.with(0, family).to_string()].into_iter().chain(counts).collect();
            text.push_str(&row(&words));
        }
        text.push('\n');
        text.push_str(&row(&["family", "phase", "signal", "who was killed", "kills"].map(str::to_string)));
        text.push_str(&rule(5));
        for (key, count) in &self.kills {
            let words: Vec<String> = key.split('|').map(str::to_string).chain([count.to_string()]).collect();
            text.push_str(&row(&words));
        }
        text
    }

    /// Writes what everybody may read.
    pub fn publish(&self) {
        let soaks = self.soaks.iter().map(|soak| {
            format!("- {}: {} s, {} kills, seed {}\n", soak.date, soak.seconds, soak.kills, soak.seed)
        });
        let mut text = format!(
            "# Kills\n\n`make soak` kills Assay at random moments, has it gone on with, and looks whether anything of a user's \
             was lost or anything of ours was left (crates/cli/tests/it/soak).\n\nCommit {}, {}.\n\n{}\n{}",
            self.commit,
            self.machine,
            soaks.collect::<String>(),
            self.tables()
        );
        if !self.faults.is_empty() {
            text.push_str(&format!("\nWhat was wrong:\n\n```\n{}\n```\n", self.faults.join("\n")));
        }
        result("soak.md", &text);
    }
}

/// Writes a file of results into the documents.
pub fn result(name: &str, text: &str) {
    let folder = testkit::root().join("docs/results");
    fs::create_dir_all(&folder).expect("a folder for results");
    fs::write(folder.join(name), text).expect("the results are written");
}

/// Where results of this commit are kept.
pub fn kept() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("soak");
    target.join(commit().replace(' ', "-")).with_extension("json")
}

/// The commit that is checked out, marked where the sources differ from it.
pub fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(testkit::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_string());
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "src", "tests", "Cargo.lock"]);
    match changed.is_some_and(|changed| !changed.is_empty()) {
        true => format!("{head} with changes"),
        false => head,
    }
}

/// The host in a line.
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model =
        read("/proc/cpuinfo").lines().find_map(|line| Some(line.split_once("model name")?.1.to_string()));
    let model = model.unwrap_or_default().trim_start_matches([' ', '\t', ':']).to_string();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let user = if crate::host::is_root() { "as root" } else { "as an ordinary user" };
    format!("{cpus} CPUs ({model}), Linux {}, {user}", kernel.trim())
}

#[test]
fn a_tally_tells_what_was_wrong_and_what_is_missing() {
    let kill = super::bout::Kill { phase: VISIT, signal: "-9", target: "session" };
    let faults = vec![(Kind::Lost, "a file is gone".to_string())];
    let good = Outcome {
        kills: vec![kill.clone(), kill],
        faults: Vec::new(),
        shown: "assay run".into(),
        folder: None,
    };
    let bad = Outcome { kills: good.kills.clone(), faults, shown: "assay run".into(), folder: None };
    let mut tally = Tally::default();
    assert!(tally.add("ipc", 1, &good).is_empty());
    let told = tally.add("ipc", 2, &bad).join("\n");
    assert!(told.contains("SOAK_SEED=2") && told.contains("lost: a file is gone"), "{told}");
    assert_eq!((tally.total(), tally.lost, tally.left, tally.gone_on_with), (4, 1, 0, 2));
    let text = tally.tables();
    for words in
        ["| ipc | in a visit | -9 | session | 4 |", "4 of 1000 kills", "4 of 30 kills of ipc", "lost: 1,"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    tally.save(&folder.path().join("a/b.json"));
    assert_eq!(Tally::load(&folder.path().join("a/b.json")).tables(), text);
}
