//! What `assay explain` says on a server that has the program and nothing else.

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
        ("interval", "With 5–14 passes the interval is Student's t on the logarithms"),
        ("placements", "same-llc"),
        ("visit", "wrong-answer"),
        ("waiting", "quiet second"),
        ("timed-out", "15 s, or 8 times its estimate"),
        ("failed", "After 3 failed passes"),
        ("wrong-answer", "faulty core, memory or kernel"),
        ("invalid", "An older version marked the pass as disturbed"),
        ("interrupted", "the same command resumes there"),
        ("one-per-core", "SMT siblings stay idle"),
        ("methodology", "docs/method"),
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
    assert!(
        skipped.contains("Verdict skipped") && skipped.contains("the benchmark was not run"),
        "{skipped}"
    );
}

/// Every word on a first screen can be explained.
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
        ("usable with caution", "`assay run`"),
        ("undecided", "`assay check`"),
        ("met", "`assay check`"),
        ("missed", "`assay check`"),
        ("confirmed", "`assay check`"),
        ("one speed", "`assay memmap`"),
        ("no second threads", "`assay smt`"),
        ("host", "host.pauses: "),
    ] {
        let (code, text) = explained(&[word], "100");
        assert!(code == 0 && text.contains(said), "{word}: {text}");
    }
}

/// A symptom leads to what explains it, in whatever words it is asked for.
#[test]
fn words_of_symptoms_are_answered() {
    for (word, said) in [
        ("context switch", "sched.context-switch: "),
        ("page fault", "vm.page-fault: "),
        ("free placement", "free-placement: "),
        ("slow disk", "  disk."),
        ("hyperthreading", "  smt.load: "),
        ("swap", "  swapping: "),
    ] {
        let (code, text) = explained(&[word], "100");
        assert!(code == 0 && text.contains(said), "{word}: {text}");
    }
    assert_eq!(explained(&["xyzzy"], "100").0, 2);
}

#[test]
fn the_chapter_on_measuring_has_the_same_texts() {
    let chapter = std::fs::read_to_string(testkit::root().join("docs/method/measuring.md"));
    let chapter = words_of(&chapter.expect("the chapter").replace("**", ""));
    for word in ["harness", "calibration"] {
        let text = explained(&[word], "100").1;
        let sections = text.split("\n\n").skip(1).filter(|section| section.contains("\n  "));
        for section in sections {
            let (title, text) = section.split_once('\n').expect("a title and a text");
            let section = words_of(&format!("{title}. {text}"));
            assert!(chapter.contains(&section), "docs/method/measuring.md has another text than:\n{section}");
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
        let texts = [rule.meaning, rule.action, rule.when, rule.how];
        assert!(!texts.into_iter().any(is_us), "{}", rule.id);
    }
    for id in ["timer.nanosleep", "process.exec", "network.round-trip", "disk.sync", "signal.handler"] {
        let (code, text) = explained(&[id], "100");
        assert!(code == 0 && text.contains(" µs") && !is_us(&text), "{text}");
    }
}

/// Texts in the product's code between two marks, of a file from one mark on.
fn literals(file: &str, from: &str, before: &str, after: &str) -> Vec<String> {
    let source = std::fs::read_to_string(testkit::root().join(file)).expect("a source file");
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let (_, part) = source.split_once(from).expect("where the labels begin");
    let found = part.split(before).skip(1).filter_map(|rest| rest.split_once(after));
    let found = found.map(|(word, _)| word.to_string()).filter(|word| !word.contains(['"', '\n', '{']));
    found.collect()
}

/// Topics that a file's code gives to findings of a severity.
fn topics(file: &str) -> Vec<String> {
    let source = std::fs::read_to_string(testkit::root().join(file)).expect("a source file");
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let source = source.replace("line(severity, ", "line(Severity::Any, ");
    let behind = source.split("Severity::").filter_map(|rest| rest.split_once(", \""));
    let topics = behind.filter(|(severity, _)| severity.chars().all(char::is_alphabetic));
    topics.filter_map(|(_, rest)| Some(rest.split_once('"')?.0.to_string())).collect()
}

/// Topics, verdicts and heads of columns as the goldens of first screens have them.
fn of_goldens(folder: &str, prefix: &str) -> Vec<String> {
    let folder = testkit::root().join("crates/cli/tests/it").join(folder);
    let files = std::fs::read_dir(folder).expect("a folder of goldens").flatten().map(|entry| entry.path());
    let files =
        files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    let mut words = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a golden");
        for line in text.lines().filter_map(|line| line.strip_prefix("  ")) {
            let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
            if let Some(rest) = ["✗ ", "! ", "· "].iter().find_map(|mark| line.strip_prefix(mark)) {
                // A topic as wide as its column has one space behind it.
                let topic = rest.split("  ").next().filter(|topic| topic.chars().count() <= 13);
                words.push(topic.or(rest.split(' ').next()).unwrap_or_default().to_string());
            } else if ["figure", "result", "command", "host", "that host"]
                .contains(&cells.first().copied().unwrap_or_default())
            {
                let heads = cells.iter().filter(|cell| !cell.starts_with("as "));
                words.extend(heads.map(|cell| cell.to_string()));
            } else if let [word, _, ..] = cells.as_slice()
                && word.chars().any(|c| c.is_ascii_uppercase())
                && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || " ,.%".contains(c))
                && word.split(' ').count() > 1
            {
                words.push(word.to_string());
            }
        }
    }
    assert!(!words.is_empty(), "no golden of {prefix}");
    words
}

/// Whatever stands on a first screen beside figures can be asked for: the words are those of the
/// screens' own code and goldens.
#[test]
fn labels_of_first_screens_are_explained() {
    let report = "crates/report/src";
    let imports = format!("{report}/imported/screen.rs");
    let machine = format!("{report}/text_machine/screen.rs");
    let comparing = format!("{report}/comparing/screen.rs");
    let mut words = [
        of_goldens("import/snapshots", "it__import__first_screen__"),
        of_goldens("machine/snapshots", "it__machine__recorded__first_"),
        of_goldens("snapshots", "it__studies__guard"),
        literals(&imports, "let (word, tone)", "(\"", "\", Tone::"),
        literals(&format!("{report}/imported/several.rs"), "", "column(\"", "\","),
        literals(&format!("{report}/imported/notes.rs"), "", "note(\"", "\","),
        literals("crates/import/src/faults.rs", "pub fn topic(", "=> \"", "\",\n"),
        topics("crates/diagnose/src/readiness.rs"),
        literals("crates/diagnose/src/readiness.rs", "fn words", "=> \"", "\",\n"),
        literals(&machine, "let facts = [", "        (\"", "\", "),
        literals(&machine, "", "\"DESC", "\""),
        literals(&format!("{report}/sections/study/guarded.rs"), "", "(\"", "\".to_string()"),
        literals(&comparing, "fn heading", "unit: \"", "\","),
    ]
    .concat();
    for word in words.iter_mut().filter(|word| *word == "RIBED") {
        word.insert_str(0, "DESC");
    }
    words.extend(compare::Relation::ALL.map(|word| word.word().to_string()));
    words.extend(["B ÷ A", "B is", "not counted", "No conclusion"].map(str::to_string));
    // What ends with a full stop is a sentence beside them.
    words.retain(|word| !word.ends_with('.') && word.chars().any(char::is_alphabetic) || word == "±");
    words.sort();
    words.dedup();
    for known in [
        "left out",
        "tool",
        "READ IN PART",
        "DESCRIBED",
        "confidence",
        "sources",
        "processor",
        "runs scatter",
    ] {
        assert!(words.iter().any(|word| word == known), "{known}: {words:?}");
    }
    let unknown: Vec<&String> =
        words.iter().filter(|word| explained(&[word.as_str()], "80").0 != 0).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {words:?}");
}
