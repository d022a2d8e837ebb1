//! The first screens of studies: what each family prints from invented samples on a recorded
//! host, at the widths of terminals.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::assay;
use crate::golden::screen;

/// Every study that samples can be invented for, with its words.
const STUDIES: [(&str, &str); 10] = [
    ("smt", "smt --quick"),
    ("rate", "rate --quick --budget 5m"),
    ("memmap", "memmap --quick --max 2G"),
    ("host", "host --quick"),
    ("unixbench", "unixbench --quick"),
    ("hackbench", "hackbench --quick --runs 8"),
    ("sweep", "sweep hackbench --quick --knob slice_ns=0.1ms..100ms:log4 --knob policy=other,batch"),
    ("nexmark", "run --quick --only nexmark.q0"),
    ("explain-profile", "explain-profile --quick --bench hackbench --before before.conf --after after.conf"),
    ("guard", "guard --quick --runs 8 -- true"),
];

/// A run of a study with invented samples, into a folder.
fn pretended(words: &str, out: &Path) -> PathBuf {
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    let lists = tempfile::tempdir().expect("a folder");
    for (name, values) in [("before.conf", ["60", "20"]), ("after.conf", ["10", "40"])] {
        let text = format!("[sysctl]\nvm.swappiness={}\nvm.dirty_ratio={}\n", values[0], values[1]);
        std::fs::write(lists.path().join(name), text).expect("a list of settings");
    }
    let (words, guarded) = words.split_once(" -- ").unwrap_or((words, ""));
    let mut command = assay();
    command.current_dir(lists.path()).args(words.split(' '));
    command.args(["--force", "--new", "--pretend", "7", "--quiet", "--from"]).arg(machine);
    command.arg("--out").arg(out);
    if !guarded.is_empty() {
        command.arg("--").args(guarded.split(' '));
    }
    let output = command.output().expect("assay runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}: {error}");
    let mut files = std::fs::read_dir(out).expect("the folder").flatten().map(|entry| entry.path());
    files.find(|path| path.to_string_lossy().ends_with(".assay.jsonl")).expect("a run file")
}

#[test]
fn every_study_begins_with_its_answer() {
    for (name, words) in STUDIES {
        let dir = tempfile::tempdir().expect("a folder");
        let run = pretended(words, dir.path());
        is_a_first_screen(name, |columns, locale| {
            let text = screen(&run, columns, locale, &[]);
            if [80, 100].contains(&columns) && locale == "C.UTF-8" {
                insta::assert_snapshot!(format!("{name}_{columns}"), text);
            }
            text
        });
        said_once(name, &run);
    }
}

/// What holds of every first screen, at all widths and in both character sets.
pub fn is_a_first_screen(name: &str, screen: impl Fn(usize, &str) -> String) {
    for columns in [60, 79, 80, 100, 140] {
        for locale in ["C.UTF-8", "C"] {
            let text = screen(columns, locale);
            assert!(text.lines().count() <= 40, "{name}, {columns} columns:\n{text}");
            let longest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(longest.chars().count() <= columns, "{name}, {columns} columns: {longest}");
            assert!(!text.contains('…'), "{name}:\n{text}");
            assert!(locale == "C.UTF-8" || text.is_ascii(), "{name}:\n{text}");
        }
    }
}

/// Studies whose answer is known, as one case or two of them are made faster or slower by a factor:
/// their words, the cases, the factor, the verdict.
type Known = (&'static str, &'static str, &'static [u64], f64, &'static str);

const KNOWN: [Known; 6] = [
    ("guard-slower", "guard --quick --vs false -- true", &[1], 1.07, "B IS 7.1 % SLOWER"),
    ("guard-faster", "guard --quick --vs false -- true", &[1], 0.90, "B IS 11 % FASTER"),
    ("guard-same", "guard --quick --vs false -- true", &[], 1.0, "THE SAME WITHIN 1.0 %"),
    (
        "sweep-set",
        "sweep hackbench --quick --knob slice_ns=0.1ms..100ms:log4",
        &[4],
        0.8,
        "SET SLICE TO 10 ms",
    ),
    (
        "profile-decides",
        "explain-profile --quick --bench hackbench --before before.conf --after after.conf",
        &[1, 3],
        0.8,
        "VM.DIRTY_RATIO DECIDES",
    ),
    (
        "profile-decide",
        "explain-profile --quick --bench hackbench --before before.conf --after after.conf",
        &[2, 3],
        0.8,
        "VM.SWAPPINESS AND VM.DIRTY_RATIO DECIDE",
    ),
];

/// Changes the samples of a run's visits; what was summed up of them is left out.
fn edited(run: &Path, edit: impl Fn(u64, u64, &mut Value)) {
    let text = std::fs::read_to_string(run).expect("the run");
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line.get("summary").is_some() {
            continue;
        }
        line.as_object_mut().expect("an object").remove("crc32");
        if let Some(visit) = line.get_mut("visit") {
            let number = |name: &str| visit[name].as_u64().expect("a number");
            let (case, pass) = (number("case"), number("pass"));
            for samples in visit["samples"].as_array_mut().expect("samples") {
                edit(case, pass, samples);
            }
        }
        lines.push(line.to_string());
    }
    std::fs::write(run, lines.join("\n") + "\n").expect("the run");
}

/// The run with values of our own in place of those that were invented: steady ones, and of some
/// cases others by a factor.
fn reshaped(run: &Path, cases: &[u64], factor: f64) {
    edited(run, |case, pass, samples| {
        let level = 0.5 * if cases.contains(&case) { factor } else { 1.0 };
        steady(samples, level * (1.0 + 0.001 * ((7 * pass + 3 * case) % 5) as f64));
    });
}

/// Windows that hardly differ from a level.
fn steady(samples: &mut Value, level: f64) {
    let works = samples["work"].as_array_mut().into_iter().flatten().enumerate();
    works.for_each(|(at, work)| *work = (level * (1.0 + 0.0003 * at as f64)).into());
}

/// What is not trusted is no headline without a word of it.
#[test]
fn a_capacity_that_is_not_trusted_says_so_in_its_verdict() {
    for (spread, word, doubt) in
        [(0.001, "EVENTS A SECOND  ", false), (0.08, "ABOUT 23.2k EVENTS A SECOND  ", true)]
    {
        let dir = tempfile::tempdir().expect("a folder");
        let run = pretended("run --quick --only nexmark.q0", dir.path());
        edited(&run, |_, pass, samples| {
            let Some(load) = samples["point"]["load"].as_f64() else { return };
            match samples["metrics"][0].as_str() {
                Some("rate") => steady(samples, 0.4 * load * (1.0 + spread * ((2 * pass) % 5) as f64)),
                Some("cpu" | "cpu_ticks" | "process_cpu") => steady(samples, 0.97 * load),
                _ => {}
            }
        });
        let text = screen(&run, 100, "C.UTF-8", &[]);
        assert!(text.contains(word) && text.contains("ABOUT") == doubt, "{text}");
        assert_eq!(text.contains("That rate is not trusted (imprecise: ±"), doubt, "{text}");
    }
}

#[test]
fn a_component_that_swings_is_named_with_what_to_do_next() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = pretended("rate --quick --budget 5m", dir.path());
    // The first two cases are those of bwaves.
    edited(&run, |case, pass, samples| {
        let factor = if case < 2 && pass >= 3 { 0.9 } else { 1.0 };
        let works = samples["work"].as_array_mut().expect("windows").iter_mut();
        works.for_each(|work| *work = (factor * work.as_f64().expect("a number")).into());
    });
    for columns in [80, 100] {
        let text = screen(&run, columns, "C.UTF-8", &[]);
        assert!(text.contains("17 OF 18 COMPONENTS REPEAT WITHIN 3 %"), "{text}");
        assert!(text.contains("runs within 5.0 % of each other: 17 of 18"), "{text}");
        insta::assert_snapshot!(format!("rate-swings_{columns}"), text);
    }
    let text = screen(&run, 100, "C.UTF-8", &[]);
    assert!(text.contains("once more, larger: assay rate --quick --escalate"), "{text}");
}

#[test]
fn what_to_do_next_names_the_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let machine = testkit::root().join("tests/machines/arm64-smt.json");
    let mut command = assay();
    command.args(["smt", "--quick", "--force", "--new", "--pretend", "7", "--from"]).arg(machine);
    let output = command.arg("--out").arg(dir.path()).output().expect("assay runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let named = format!("now: assay utilization --study {}", dir.path().display());
    assert!(text.contains(&named) && text.contains(".assay.jsonl"), "{text}");
}

#[test]
fn studies_with_a_known_answer_give_it() {
    for (name, words, cases, factor, verdict) in KNOWN {
        let dir = tempfile::tempdir().expect("a folder");
        let run = pretended(words, dir.path());
        reshaped(&run, cases, factor);
        for columns in [80, 100] {
            let text = screen(&run, columns, "C.UTF-8", &[]);
            assert!(text.contains(&format!("  {verdict}  ")), "{name}: {verdict}\n{text}");
            insta::assert_snapshot!(format!("{name}_{columns}"), text);
        }
    }
}

/// `--json` has the same verdict, and `--all` says no sentence of it twice.
fn said_once(name: &str, run: &Path) {
    let json: Value = serde_json::from_str(&screen(run, 100, "C.UTF-8", &["--json"])).expect("JSON");
    let word = json["verdict"]["word"].as_str().expect("a word");
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = plain(&screen(run, 140, "C.UTF-8", &["--all"]));
    assert!(all.contains(word), "{name}: {word:?} is missing in {all}");
    for sentence in json["verdict"]["sentences"].as_array().expect("a list") {
        let sentence = plain(sentence.as_str().expect("a sentence"));
        // A finding stands below in full.
        if json["findings"].as_array().expect("a list").iter().any(|one| one["headline"] == *sentence) {
            continue;
        }
        assert_eq!(all.matches(&sentence).count(), 1, "{name}: {sentence}\n{all}");
    }
}
