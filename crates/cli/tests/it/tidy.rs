//! The repository's own rules, as tests: which crates forbid `unsafe`, who reads the system, who
//! prints, how files look. Each rule is also shown a planted violation, so that it cannot silently
//! pass. Which crate may use which is said by their manifests, and checked by the compiler.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// One source file: its path from the root of the repository, and its text.
pub struct Source {
    pub path: String,
    pub text: String,
}

fn files(folder: &str, extension: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![testkit::root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let path: PathBuf = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                let text = std::fs::read_to_string(&path).expect("text");
                let path = path.strip_prefix(testkit::root()).expect("inside").to_string_lossy().into_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "no {extension} files in {folder}");
    found
}

/// The code of a file without comments and without its tests (which may import anything).
pub fn code(source: &Source) -> String {
    let before_tests = source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let code = |line: &str| line.split("//").next().unwrap_or("").to_string();
    before_tests.lines().map(code).collect::<Vec<_>>().join("\n")
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.contains("/tests/")
        || path.ends_with("_tests.rs")
        || path.ends_with("rehearsal.rs")
}

/// The crate that a file belongs to.
pub fn crate_of(path: &str) -> &str {
    path.strip_prefix("crates/").and_then(|below| below.split('/').next()).unwrap_or(path)
}

/// Source files of the product: neither what only tests need, nor tests.
pub fn product() -> Vec<Source> {
    let ours = |source: &Source| {
        let (path, name) = (&source.path, crate_of(&source.path));
        path.contains("/src/") && !["testkit", "prove"].contains(&name) && !is_test_file(path)
    };
    files("crates", "rs").into_iter().filter(ours).collect()
}

#[test]
fn unsafe_lives_in_two_crates() {
    let roots = files("crates", "rs").into_iter().filter(|source| source.path.ends_with("/src/lib.rs"));
    for root in roots {
        let allowed = ["sys", "kernels"].contains(&crate_of(&root.path));
        let forbidden = root.text.contains("#![forbid(unsafe_code)]");
        assert_ne!(allowed, forbidden, "{}", root.path);
    }
}

/// Files that open files at all, and those of them that may name /proc or /sys.
const READERS: [&str; 7] = [
    "crates/snapshot/",
    "crates/sys/src/counters.rs",
    "crates/sys/src/counters/",
    "crates/sys/src/observer",
    "crates/knobs/",
    "crates/session/src/objects.rs",
    "crates/session/src/objects/",
];
const OPENERS: [&str; 2] = ["crates/model/src/run_file", "crates/cli/"];

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
    // The planted faults write into a pipe that they inherited, hackbench into its own: that opens
    // nothing.
    let pipes = |path: &str| {
        path == "crates/bench/src/selftest.rs" || path.starts_with("crates/bench/src/hackbench/")
    };
    let sources = product().into_iter().filter(|source| !pipes(&source.path));
    let wrong: Vec<String> = sources.filter_map(|source| wrong_opening(&source)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let planted = Source { path: "crates/stats/src/x.rs".into(), text: "std::fs::read(\"a\")".into() };
    assert!(wrong_opening(&planted).is_some());
    let planted = Source { path: "crates/cli/src/x.rs".into(), text: "std::fs::read(\"/proc/stat\")".into() };
    assert!(wrong_opening(&planted).is_some());
}

#[test]
fn only_verbs_print() {
    let prints = |code: &str| {
        ["println!", "print!", "eprint!", "eprintln!", "dbg!"].iter().any(|word| code.contains(word))
    };
    // What a build script prints is for Cargo.
    for source in product().into_iter().filter(|source| !source.path.ends_with("/build.rs")) {
        assert!(crate_of(&source.path) == "cli" || !prints(&code(&source)), "{} prints", source.path);
    }
    assert!(prints("fn f() { eprintln!(\"x\") }"));
}

#[test]
fn every_thread_may_be_refused() {
    // Both end the process where one more task is refused. `sys/thread.rs` has the ways that do
    // not.
    let ends = |code: &str| code.contains("thread::spawn(") || code.contains("scope.spawn(");
    for source in product() {
        assert!(!ends(&code(&source)), "{} starts a thread", source.path);
    }
    assert!(ends("fn f() { std::thread::spawn(|| ()); }"));
}

#[test]
fn files_stay_readable() {
    for source in files("crates", "rs") {
        let lines = source.text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines: is it still one subject?", source.path);
        assert!(
            source.text.starts_with("//!") || source.path == "crates/cli/src/main.rs",
            "{} does not say what it is",
            source.path
        );
    }
}

/// Columns of a comment.
const COMMENT_COLUMNS: usize = 100;

/// Lines of a file that are comments and longer than that; one word alone may be longer. Help texts
/// and what is printed are strings.
fn long_comments(source: &Source) -> Vec<String> {
    let marks: &[&str] = match source.path.rsplit('.').next() {
        Some("sh") => &["#"],
        Some("java") => &["//", "/*", "*"],
        _ => &["//"],
    };
    let is_comment = |line: &str| marks.iter().any(|mark| line.trim_start().starts_with(mark));
    let can_be_cut = |line: &str| line.split_whitespace().count() > 2;
    let lines = source.text.lines().enumerate();
    let long = lines
        .filter(|(_, line)| line.chars().count() > COMMENT_COLUMNS && is_comment(line) && can_be_cut(line));
    long.map(|(number, _)| format!("{}:{}", source.path, number + 1)).collect()
}

#[test]
fn comments_wrap_at_100_columns() {
    let all = [("crates", "rs"), ("fuzz", "rs"), ("crates", "sh"), ("nexmark", "java")];
    let sources = all.into_iter().flat_map(|(folder, extension)| files(folder, extension));
    let wrong: Vec<String> = sources.flat_map(|source| long_comments(&source)).collect();
    assert!(wrong.is_empty(), "comments beyond {COMMENT_COLUMNS} columns:\n{}", wrong.join("\n"));
    let long = "word ".repeat(20);
    let planted = |path: &str, line: String| Source { path: path.into(), text: format!("one\n{line}\n") };
    for (path, mark) in [("x.rs", "    //! "), ("x.sh", "# "), ("x.java", " * "), ("x.java", "// ")] {
        assert_eq!(long_comments(&planted(path, format!("{mark}{long}"))).len(), 1, "{path} {mark}");
    }
    assert!(long_comments(&planted("x.rs", format!("let text = \"{long}\";"))).is_empty());
    assert!(long_comments(&planted("x.rs", format!("/// <https://{}>", "a/".repeat(60)))).is_empty());
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
    for source in files("crates", "rs") {
        for word in words.iter().chain(&our_paths) {
            let own = source.path == "crates/cli/tests/it/tidy.rs";
            assert!(own || !source.text.contains(word.as_str()), "{} contains {word}", source.path);
        }
    }
}

/// Whether rustfmt comes to this file from the one that declares its module.
fn is_declared(path: &str, texts: &BTreeMap<&str, &str>) -> bool {
    let file = path.strip_suffix(".rs").expect("a source");
    let (folder, name) = file.strip_suffix("/mod").unwrap_or(file).rsplit_once('/').expect("a folder");
    let declared = format!("mod {name};");
    let declares = |line: &str| matches!(line.strip_suffix(&declared), Some("" | "pub " | "pub(crate) "));
    ["", "/mod", "/lib", "/main"]
        .iter()
        .filter_map(|end| texts.get(format!("{folder}{end}.rs").as_str()))
        .any(|text| text.lines().any(declares))
}

#[test]
fn code_is_formatted() {
    let all = files("crates", "rs");
    let texts: BTreeMap<&str, &str> =
        all.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let sources = texts.keys().filter(|path| !is_declared(path, &texts));
    let formatted =
        Command::new("rustfmt").arg("--check").args(sources).current_dir(testkit::root()).output();
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
    let architecture =
        std::fs::read_to_string(testkit::root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for entry in std::fs::read_dir(testkit::root().join("crates")).expect("crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            architecture.contains(&format!("`{name}`")),
            "ARCHITECTURE.md does not name the crate {name}"
        );
    }
    let readme = std::fs::read_to_string(testkit::root().join("README.md")).expect("README.md");
    for word in ["make run", "make test"] {
        assert!(readme.contains(word), "README.md does not name {word}");
    }
    let ci = std::fs::read_to_string(testkit::root().join(".ci/run")).expect(".ci/run");
    assert!(ci.contains("make test"), ".ci/run does not call make test");
}
