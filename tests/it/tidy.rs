//! The repository's own rules, as tests: which part may import which, where `unsafe` may live, who reads the system,
//! who prints, how files look. Each rule is also shown a planted violation, so that it cannot silently pass.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One source file: its path from the root of the repository, and its text.
struct Source {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, extension: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let path: PathBuf = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                let text = std::fs::read_to_string(&path).expect("text");
                let path = path.strip_prefix(root()).expect("inside").to_string_lossy().into_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "no {extension} files in {folder}");
    found
}

/// The code of a file without comments and without its tests (which may import anything).
fn code(source: &Source) -> String {
    let before_tests = source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let code = |line: &str| line.split("//").next().unwrap_or("").to_string();
    before_tests.lines().map(code).collect::<Vec<_>>().join("\n")
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.contains("/tests/")
        || path.ends_with("published.rs")
        || path.ends_with("run_of.rs")
        || path.ends_with("rehearsal.rs")
}

/// The part of the house that a file belongs to: the folder or file below `src`.
fn part(path: &str) -> &str {
    let below = path.strip_prefix("src/").unwrap_or(path);
    let name = below.split('/').next().unwrap_or(below);
    name.strip_suffix(".rs").unwrap_or(name)
}

/// What each part may import: everything before it on its own side, and what both sides share.
fn may_import(part: &str) -> Option<&'static [&'static str]> {
    Some(match part {
        "model" => &[],
        "run_file" => &["model"],
        // The live side, each on top of the ones before. It may use statistics: the stop rule is one.
        "machine" => &["model"],
        "placement" => &["model", "machine"],
        "sys" => &["model"],
        "knobs" => &["model", "sys"],
        "kernels" => &["model", "sys"],
        "bench" => &["model", "machine", "placement", "sys", "kernels"],
        "plan" => &["model", "machine", "placement", "bench", "stats"],
        "objects" => &["model", "machine", "sys", "knobs", "bench"],
        "measure" => &[
            "model",
            "machine",
            "placement",
            "sys",
            "knobs",
            "kernels",
            "bench",
            "plan",
            "objects",
            "run_file",
            "stats",
        ],
        // The pure side: never the live one.
        "stats" => &["model"],
        "import" => &["model", "machine", "stats"],
        "diagnose" => &["model", "machine", "stats"],
        "compare" => &["model", "machine", "stats", "import", "diagnose"],
        "peers" => &["model", "stats", "diagnose", "compare"],
        "report" => &["model", "machine", "stats", "import", "diagnose", "compare", "peers"],
        "cmd" => &[
            "model",
            "machine",
            "placement",
            "sys",
            "knobs",
            "kernels",
            "bench",
            "plan",
            "objects",
            "measure",
            "run_file",
            "stats",
            "import",
            "diagnose",
            "compare",
            "peers",
            "report",
        ],
        "lib" | "main" => &["cmd"],
        _ => return None,
    })
}

/// Every `crate::part` that a file names.
fn imports(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or("");
                let firsts = list.split(',').map(|item| item.trim().split("::").next().unwrap_or(""));
                names.extend(firsts.filter(|name| !name.is_empty()).map(str::to_string));
            }
            None => names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()),
        }
    }
    names
}

fn wrong_imports(source: &Source) -> Vec<String> {
    let own = part(&source.path);
    let Some(allowed) = may_import(own) else {
        return vec![format!("{}: no rule says what the part {own} may import", source.path)];
    };
    let foreign =
        imports(&code(source)).into_iter().filter(|name| name != own && !allowed.contains(&name.as_str()));
    foreign.map(|name| format!("{}: {own} must not import {name}", source.path)).collect()
}

#[test]
fn imports_go_one_way() {
    let sources = files("src", "rs");
    let wrong: Vec<String> =
        sources.iter().filter(|source| !is_test_file(&source.path)).flat_map(wrong_imports).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let planted =
        Source { path: "src/stats/x.rs".into(), text: "use crate::{model::Run, sys::clock};".into() };
    assert_eq!(wrong_imports(&planted), ["src/stats/x.rs: stats must not import sys"]);
    let planted = Source { path: "src/report/x.rs".into(), text: "fn f() { crate::bench::all(); }".into() };
    assert_eq!(wrong_imports(&planted).len(), 1);
    let planted = Source { path: "src/novel/x.rs".into(), text: String::new() };
    assert_eq!(wrong_imports(&planted).len(), 1);
}

/// Lines of code with the keyword, not in comments, and not in texts like a page's policy.
fn unsafe_words(source: &Source) -> usize {
    let code = source.text.lines().map(|line| line.split("//").next().unwrap_or(""));
    let keyword = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait", "unsafe("];
    code.filter(|line| keyword.iter().any(|form| line.contains(form))).count()
}

#[test]
fn unsafe_lives_in_two_folders_and_says_why() {
    for source in files("src", "rs") {
        let allowed = source.path.starts_with("src/sys/") || source.path.starts_with("src/kernels/");
        assert!(
            allowed || unsafe_words(&source) == 0,
            "{}: unsafe outside src/sys and src/kernels",
            source.path
        );
        if allowed && unsafe_words(&source) > 0 {
            assert!(source.text.contains("SAFETY") || source.text.contains("# Safety"), "{}", source.path);
        }
    }
    let planted = Source { path: String::new(), text: "let x = unsafe { f() }; // unsafe".into() };
    assert_eq!(unsafe_words(&planted), 1);
    let planted = Source { path: String::new(), text: "// unsafe\nunsafe_op();".into() };
    assert_eq!(unsafe_words(&planted), 0);
}

/// Files that open files at all, and those of them that may name /proc or /sys.
const READERS: [&str; 9] = [
    "src/machine/snapshot.rs",
    "src/machine/snapshot/",
    "src/sys/counters.rs",
    "src/sys/observer",
    "src/sys/counters/",
    "src/knobs.rs",
    "src/knobs/",
    "src/objects.rs",
    "src/objects/",
];
const OPENERS: [&str; 4] = ["src/run_file.rs", "src/run_file/", "src/cmd/", "src/main.rs"];

fn opens_files(code: &str) -> bool {
    ["std::fs", "File::open", "File::create", "OpenOptions", "read_dir(", "read_to_string("]
        .iter()
        .any(|word| code.contains(word))
}

fn wrong_opening(source: &Source) -> Option<String> {
    let code = code(source);
    let is = |list: &[&str]| list.iter().any(|allowed| source.path.starts_with(allowed));
    if !opens_files(&code) || is(&READERS) {
        return None;
    }
    if !is(&OPENERS) {
        return Some(format!("{} opens files; only {READERS:?} and {OPENERS:?} may", source.path));
    }
    // What this process has open itself is none of the system's.
    let code = code.replace("\"/proc/self/fd/\"", "");
    let names_system = code.contains("\"/proc") || code.contains("\"/sys");
    names_system.then(|| format!("{} opens files and names /proc or /sys", source.path))
}

#[test]
fn only_three_places_read_the_system() {
    // The planted faults write into a pipe that they inherited, hackbench into its own: that opens nothing.
    let sources = files("src", "rs");
    let pipes = |path: &str| path == "src/bench/selftest.rs" || path.starts_with("src/bench/hackbench/");
    let real = sources.iter().filter(|source| !is_test_file(&source.path) && !pipes(&source.path));
    let wrong: Vec<String> = real.filter_map(wrong_opening).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let planted = Source { path: "src/stats/x.rs".into(), text: "std::fs::read(\"a\")".into() };
    assert!(wrong_opening(&planted).is_some());
    let planted = Source { path: "src/cmd/x.rs".into(), text: "std::fs::read(\"/proc/stat\")".into() };
    assert!(wrong_opening(&planted).is_some());
}

#[test]
fn only_verbs_print() {
    let prints = |code: &str| {
        ["println!", "print!", "eprint!", "eprintln!", "dbg!"].iter().any(|word| code.contains(word))
    };
    for source in files("src", "rs") {
        let allowed = source.path.starts_with("src/cmd/") || source.path == "src/main.rs";
        let skipping_test = is_test_file(&source.path);
        assert!(allowed || skipping_test || !prints(&code(&source)), "{} prints", source.path);
    }
    assert!(prints("fn f() { eprintln!(\"x\") }"));
}

#[test]
fn every_thread_may_be_refused() {
    // Both end the process where one more task is refused. `sys/thread.rs` has the ways that do not.
    let ends = |code: &str| code.contains("thread::spawn(") || code.contains("scope.spawn(");
    for source in files("src", "rs") {
        assert!(is_test_file(&source.path) || !ends(&code(&source)), "{} starts a thread", source.path);
    }
    assert!(ends("fn f() { std::thread::spawn(|| ()); }"));
}

#[test]
fn files_stay_readable() {
    for source in files("src", "rs").into_iter().chain(files("tests", "rs")).chain(files("benches", "rs")) {
        let lines = source.text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines: is it still one subject?", source.path);
        assert!(
            source.text.starts_with("//!") || source.path == "src/main.rs",
            "{} does not say what it is",
            source.path
        );
    }
}

#[test]
fn nothing_is_left_open_and_no_machine_of_ours_is_named() {
    let words = ["TO", "FIX", "XX"].map(|half| match half {
        "TO" => "TODO".to_string(),
        "FIX" => "FIXME".to_string(),
        other => format!("{other}X"),
    });
    let our_paths =
        ["/wor", "/tmp/stu"].map(|half| format!("{half}{}", if half == "/wor" { "k/" } else { "dio" }));
    for folder in ["src", "tests", "benches"] {
        for source in files(folder, "rs") {
            for word in words.iter().chain(&our_paths) {
                let own = source.path == "tests/it/tidy.rs";
                assert!(own || !source.text.contains(word.as_str()), "{} contains {word}", source.path);
            }
        }
    }
}

#[test]
fn code_is_formatted() {
    let sources: Vec<String> = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .map(|source| source.path)
        .collect();
    let formatted = Command::new("rustfmt").arg("--check").args(&sources).current_dir(root()).output();
    match formatted {
        Err(error) => println!("skipped code_is_formatted: rustfmt cannot be run ({error})"),
        Ok(output) if !output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let error = String::from_utf8_lossy(&output.stderr);
            // rustup's stand-in for a component that is not installed.
            match error.contains("not installed") || error.contains("is not applicable") {
                true => println!("skipped code_is_formatted: {error}"),
                false => {
                    panic!("run rustfmt: {}\n{error}", text.lines().take(20).collect::<Vec<_>>().join("\n"))
                }
            }
        }
        Ok(_) => {}
    }
}

#[test]
fn documents_name_what_exists() {
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for entry in std::fs::read_dir(root().join("src")).expect("src").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = name.strip_suffix(".rs").unwrap_or(&name).to_string();
        assert!(architecture.contains(&format!("`{name}")), "ARCHITECTURE.md does not name src/{name}");
    }
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    for word in ["make run", "make test"] {
        assert!(readme.contains(word), "README.md does not name {word}");
    }
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    assert!(ci.contains("make test"), ".ci/run does not call make test");
}
