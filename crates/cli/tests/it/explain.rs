//! What `assay explain` says on a server that has the program and nothing else.

use std::path::Path;
use std::process::Command;

/// What it prints on such a server: another folder, no environment but this width.
fn explained(words: &[&str], columns: &str) -> (i32, String) {
    let mut command = Command::new(testkit::program());
    command.env_clear().env("LANG", "C.UTF-8").env("COLUMNS", columns).current_dir("/");
    let output = command.arg("explain").args(words).output().expect("assay runs");
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stdout).expect("UTF-8"))
}

fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[test]
fn code_is_printed_as_it_stands_in_the_sources() {
    let (code, text) = explained(&["cpu.clock", "--code"], "60");
    assert_eq!(code, 0);
    for part in ["title: \"Core clock\"", "fn run(_: &Case", "pub fn add_chain(", "asm!("] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    // Every printed line is a line of a source file, whatever the width of the screen.
    let mut source = String::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("// ==== ").and_then(|rest| rest.strip_suffix(" ====")) {
            source = std::fs::read_to_string(testkit::root().join(path)).expect("a source file");
        } else if let Some(number) = line.strip_prefix("// line ") {
            let number: usize = number.parse().expect("a number");
            assert!(source.lines().count() >= number, "{line}");
        } else if !source.is_empty() {
            assert!(source.lines().any(|own| own == line), "{line:?} is in no source");
        }
    }
    let (code, harness) = explained(&["harness", "--code"], "60");
    assert!(code == 0 && harness.contains("pub fn calibrate("), "{harness}");
    assert_eq!(explained(&["background-load", "--code"], "60").0, 2, "a rule has no code here");
    assert_eq!(explained(&["--code"], "60").0, 2, "code of what?");
}

#[test]
fn topics_states_and_placements_are_found_by_their_words() {
    let topics = [
        ("harness", "A parent controls, and a child measures"),
        ("calibration", "After 24 tries"),
        ("interval", "With 5 to 14 visits the interval is the guarded one"),
        ("placements", "same-llc"),
        ("visit", "wrong-answer"),
        ("waiting", "quiet second"),
        ("timed-out", "15 s, or 8 times its estimate"),
        ("failed", "After 3 visits"),
        ("wrong-answer", "faulty core, memory or kernel"),
        ("invalid", "No visit of this version ends so"),
        ("interrupted", "the same command goes on from there"),
        ("one-per-core", "SMT siblings stay idle"),
        ("methodology", "METHODOLOGY.md"),
    ];
    for (word, part) in topics {
        for columns in ["80", "50"] {
            let (code, text) = explained(&[word], columns);
            assert_eq!(code, 0, "{word}");
            assert!(words_of(&text).contains(part), "{word}: {part:?} is missing:\n{text}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= columns.parse().expect("a number"), "{word}: {widest} of {columns}:\n{text}");
        }
    }
    // The last part of a benchmark's id finds it, and names all where several have it.
    assert!(explained(&["hackbench"], "80").1.starts_with("sched.hackbench: "));
    let several = explained(&["mmap"], "80").1;
    assert!(several.starts_with("Benchmarks called mmap\n") && several.lines().count() > 2, "{several}");
    // A verdict and a visit share this word.
    let skipped = explained(&["skipped"], "80").1;
    assert!(skipped.contains("Verdict skipped") && skipped.contains("the case was not run"), "{skipped}");
}

/// Topics that METHODOLOGY.md has, too: the program's text is the only one.
/// Whoever reads a word on a first screen can ask what it means.
#[test]
fn words_of_first_screens_are_explained() {
    for (word, said) in [
        ("dram-latency", "memory.data-source: "),
        ("memory latency", "memory.data-source: "),
        ("context switch, one CPU", "sched.context-switch: "),
        ("l3-size", "llc-differs: "),
        ("fdatasync", "disk.sync: "),
        ("wake-up of another CPU", "ipc.pipe-pingpong: "),
        ("other work", "background-load: "),
        ("shared core", "shared-core: "),
        ("l3 cache", "llc-differs"),
        ("too good", "references: "),
        ("a cache?", "references: "),
        ("unsteady", "references: "),
    ] {
        let (code, text) = explained(&[word], "100");
        assert!(code == 0 && text.contains(said), "{word}: {text}");
    }
}

#[test]
fn the_methodology_has_the_same_texts() {
    let book = std::fs::read_to_string(testkit::root().join(Path::new("METHODOLOGY.md"))).expect("the book");
    let book = words_of(&book.replace("**", ""));
    for word in ["harness", "calibration"] {
        let text = explained(&[word], "100").1;
        let sections = text.split("\n\n").skip(1).filter(|section| section.contains("\n  "));
        for section in sections {
            let (title, text) = section.split_once('\n').expect("a title and a text");
            let section = words_of(&format!("{title}. {text}"));
            assert!(
                book.contains(&section),
                "METHODOLOGY.md, \"Measuring\", has another text than:\n{section}"
            );
        }
    }
}

#[test]
fn microseconds_are_said_as_people_write_them() {
    let is_us = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &str| word.ends_with(|c: char| c.is_ascii_digit());
        let unit = |word: &str| word.trim_end_matches([',', '.', ';', ':', ')']) == "us";
        words.windows(2).any(|pair| number(pair[0]) && unit(pair[1]))
    };
    assert!(is_us("takes 20 us, no more"));
    for rule in diagnose::rules() {
        assert!(!is_us(rule.about) && !is_us(rule.method), "{}", rule.id);
    }
    for id in ["timer.nanosleep", "process.exec", "network.round-trip", "disk.sync", "signal.handler"] {
        let (code, text) = explained(&[id], "100");
        assert!(code == 0 && text.contains(" µs") && !is_us(&text), "{text}");
    }
}
