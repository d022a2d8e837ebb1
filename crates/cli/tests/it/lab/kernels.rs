//! `make lab`: where a free pair sits on four machines under three kernels, with a clock that
//! counts instructions.
//!
//! QEMU's `-icount` lets one nanosecond of the guest pass with each instruction, whatever the host
//! is doing: round trips repeat within a few parts in a thousand. Its caches are still no caches,
//! so the rates compare placements and kernels with each other, never with hardware. Needs QEMU 10
//! (`lab/fetch qemu10`).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::placement::{DESCRIBE, HIDDEN_L3, SHARED_L3, SMT, SOCKETS, Truth, pairs_run};
use super::{in_guest_with, runs};

const KERNELS: [&str; 3] = ["5.10", "6.1", "6.12"];

/// One row for each kernel.
struct Room {
    title: &'static str,
    truth: &'static Truth,
    isolated: bool,
    /// Whether waking considers the waker's CPU (nearly always, or never); `None` where it does not
    /// matter.
    affine: Option<bool>,
}

const ROOMS: [Room; 5] = [
    Room { title: "1 × 4, shared L3", truth: &SHARED_L3, isolated: false, affine: Some(true) },
    Room { title: "1 × 4, L3 hidden", truth: &HIDDEN_L3, isolated: false, affine: Some(false) },
    Room { title: "4 sockets × 1", truth: &SOCKETS, isolated: false, affine: Some(false) },
    Room { title: "2 cores × 2 threads, shared L3", truth: &SMT, isolated: false, affine: Some(true) },
    Room { title: "1 × 4, shared L3, isolcpus=1-3", truth: &SHARED_L3, isolated: true, affine: None },
];

/// A clock of instructions: one thread runs all CPUs alternately.
pub const INSTRUCTIONS: [&str; 4] = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"];

/// Emulated at a sixth of a quiet host's speed or less.
pub const LIMIT_S: &str = "1800";

#[test]
#[ignore = "three kernels, 15 to 25 minutes: make lab"]
fn placements_by_kernel() {
    let mut table = String::from(
        "| machine | kernel | free | same CPU | two CPUs | free, both on one CPU | affine wake-ups | finding |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut causes: Vec<String> = Vec::new();
    let mut whole = true;
    for room in &ROOMS {
        for kernel in KERNELS {
            match room.row(kernel, &mut causes) {
                Some(row) => {
                    println!("{row}");
                    writeln!(table, "{row}").expect("memory");
                }
                None => whole = false,
            }
        }
    }
    for cause in causes {
        writeln!(table, "\n{cause}").expect("memory");
    }
    if whole {
        write_results("placements", &table);
    }
}

impl Room {
    /// Boots, checks and describes; `None`, with a message, where nothing can be booted.
    fn row(&self, kernel: &str, causes: &mut Vec<String>) -> Option<String> {
        // A process has the CPUs that are not isolated, until it asks for others.
        let (words, mask) =
            if self.isolated { ("isolcpus=1-3", "taskset -p f $$ >/dev/null") } else { ("", "") };
        let script = format!(
            "{mask}\n{DESCRIBE}\nassay run --quick --force --only ipc.pipe-pingpong --budget 10s --out out >said 2>&1"
        );
        let assay = static_build();
        let image = format!("{kernel}-cloud-amd64");
        let options = [
            "--qemu",
            "qemu10",
            "--kernel",
            &image,
            "--limit",
            LIMIT_S,
            "--cmdline",
            words,
            "--assay",
            &assay,
        ];
        let folder = in_guest_with(
            &format!("{} with kernel {kernel}", self.title),
            &options,
            self.truth.machine,
            &INSTRUCTIONS,
            &script,
        )?;
        self.truth.check(&folder);
        pairs_run(&folder, &self.truth.placements());
        let results = runs::diagnosed(&runs::run_file(&folder.path().join("out")));
        let median = |series: &str| {
            let key = format!("ipc.pipe-pingpong@{series}");
            runs::series(&results, &key)["median"].as_f64().unwrap_or_else(|| panic!("no median of {key}"))
        };
        let (together, affine) = (median("free/class=same-cpu#occupancy"), median("free#affine"));
        let expected = if self.isolated { 1.0 } else { 0.0 };
        assert!(
            (together - expected).abs() < 0.05,
            "{}, {kernel}: {together} of the rounds on one CPU",
            self.title
        );
        if let Some(often) = self.affine {
            let right = if often { affine > 0.9 } else { affine < 0.05 };
            assert!(right, "{}, {kernel}: {affine} of the wake-ups were affine", self.title);
        }
        let apart = self.truth.placements().into_iter().filter(|name| !["free", "same-cpu"].contains(name));
        let apart: Vec<String> = apart.map(|name| format!("{name} {}", rate(&results, name))).collect();
        Some(format!(
            "| {} | {kernel} | {} | {} | {} | {:.1} % | {:.1} % | {} |",
            self.title,
            rate(&results, "free"),
            rate(&results, "same-cpu"),
            apart.join(", "),
            together * 100.0,
            affine * 100.0,
            found(&results, causes),
        ))
    }
}

/// Round trips a second with half the width of their 95 % interval.
fn rate(results: &Value, placement: &str) -> String {
    let series = runs::series(results, &format!("ipc.pipe-pingpong@{placement}#round_trips"));
    let median = series["median"].as_f64().expect("a median");
    let bound = |at: usize| series["ci95"][at].as_f64();
    match (bound(0), bound(1)) {
        (Some(low), Some(high)) => {
            format!("{:.1}k ±{:.1} %", median / 1e3, (high - low) / 2.0 / median * 100.0)
        }
        _ => format!("{:.1}k", median / 1e3),
    }
}

/// What the rule says, as a number of the list below the table.
fn found(results: &Value, causes: &mut Vec<String>) -> String {
    let findings = runs::findings(results, "free-placement");
    let Some(finding) = findings.first() else { return "none: less than 1.5 times apart".to_string() };
    let text = |field: &str| finding[field].as_str().expect("text").to_string();
    causes.push(format!("({}) {}. {}", causes.len() + 1, text("headline"), text("cause")));
    format!("({})", causes.len())
}

/// The binary that is handed to users. Kernels of all ages must run it.
pub fn static_build() -> String {
    let target = std::env::var("CARGO_TARGET_DIR");
    let target = target.unwrap_or_else(|_| testkit::root().join("target").display().to_string());
    let file = format!("{target}/x86_64-unknown-linux-gnu/release/assay");
    assert!(Path::new(&file).is_file(), "{file} is missing: make static builds it");
    file
}

/// Puts a table into `lab/RESULTS.md` where its name stands, with the day and the commit.
pub fn write_results(name: &str, table: &str) {
    let root = testkit::root();
    let line = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(root).output().expect("a program");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    };
    let (day, commit) = (line("date", &["-u", "+%F"]), line("git", &["rev-parse", "--short", "HEAD"]));
    let file = root.join("lab/RESULTS.md");
    let text = fs::read_to_string(&file).expect("lab/RESULTS.md");
    let (begin, end) = (format!("<!-- lab:{name} -->"), format!("<!-- /lab:{name} -->"));
    let (before, rest) = text.split_once(&begin).expect("where the table begins");
    let (_, after) = rest.split_once(&end).expect("where the table ends");
    let text = format!("{before}{begin}\nMeasured on {day} with commit {commit}.\n\n{table}{end}{after}");
    fs::write(&file, text).expect("lab/RESULTS.md");
}
