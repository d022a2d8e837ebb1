//! What is printed for people: every text of the program in plain words of bounded length, as
//! CONTRIBUTING.md asks.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// Phrases that read as translated or make a host a person, with what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("told", "known, reported, detected"),
    ("tell", "reports, shows"),
    ("tells", "reports, shows"),
    ("by the kernel", "as the kernel reports"),
    ("nobody", "who or what does not"),
    ("somebody", "who or what does"),
    ("anybody", "who or what does"),
    ("whom", "a sentence of its own"),
    ("may have moved", "may be too slow"),
    ("that which", "what"),
    ("so many", "the number"),
    ("so much", "the amount"),
    ("so long", "the time"),
    ("says of", "reports"),
    ("of ours", "Assay's"),
    ("believed", "reported"),
    ("in turn", "alternately, one after the other"),
];

/// Where a banned phrase is right: the verdict CANNOT TELL of comparisons and checks.
const ALLOWED: &[&str] = &["cannot tell"];

/// At most this many words stand in a sentence of an explanation.
const SENTENCE_WORDS: usize = 22;
/// Lines of an explanation before its last section, which says how it is computed.
const LINES_BEFORE_HOW: usize = 8;

/// The Rust files of the product: no tests, and nothing that is only for developers.
fn product_files() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of the source").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !name.ends_with("tests") {
                collect(&path, files);
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(testkit::root().join("crates")).expect("the crates").flatten() {
        if entry.file_name() != "testkit" && entry.file_name() != "prove" {
            collect(&entry.path().join("src"), &mut files);
        }
    }
    files
}

/// Adds the texts of a file's code with their lines, without doc comments and test modules.
fn add_texts(tokens: TokenStream, texts: &mut Vec<(usize, String)>) {
    let mut is_attribute = false;
    let mut is_for_tests = false;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) => {
                is_attribute = punct.as_char() == '#' || (is_attribute && punct.as_char() == '!');
                is_for_tests &= punct.as_char() != ';';
            }
            TokenTree::Group(group) if is_attribute => {
                let text = group.stream().to_string().replace(' ', "");
                is_for_tests |= text == "cfg(test)" || text == "test";
                is_attribute = false;
            }
            TokenTree::Group(group) => {
                if !is_for_tests {
                    add_texts(group.stream(), texts);
                }
                is_for_tests &= group.delimiter() != proc_macro2::Delimiter::Brace;
            }
            TokenTree::Literal(literal) => {
                let code = literal.to_string();
                let text = code.strip_suffix('"').and_then(|code| code.split_once('"')).map(|(_, text)| text);
                if let Some(text) = text.filter(|text| text.contains(' ')) {
                    texts.push((literal.span().start().line, joined(text)));
                }
            }
            TokenTree::Ident(_) => {}
        }
    }
}

/// A literal that is continued on further lines, as one line.
fn joined(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |whole, part| whole + part.trim_start())
}

/// The banned phrase that stands in a text as whole words, and what to write instead.
fn banned(text: &str) -> Option<(&'static str, &'static str)> {
    let lower = text.to_lowercase();
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '\'').map(str::to_string).collect()
    };
    let without = ALLOWED.iter().fold(lower, |text, allowed| text.replace(allowed, ""));
    let text = format!(" {} ", words(&without).join(" "));
    BANNED.iter().find(|(phrase, _)| text.contains(&format!(" {phrase} "))).copied()
}

#[test]
fn no_text_has_a_banned_phrase() {
    assert!(banned("Nobody knows").is_some() && banned("in turn, we read").is_some());
    assert!(banned("B cannot tell: retold").is_none());
    let mut count = 0;
    let mut faults = Vec::new();
    let labels = testkit::root().join("crates/cli/src/explain/labels.txt");
    for file in product_files().into_iter().chain([labels]) {
        let code = std::fs::read_to_string(&file).expect("a source file");
        let mut texts = Vec::new();
        if file.extension().is_some_and(|kind| kind == "rs") {
            add_texts(code.parse().expect("Rust"), &mut texts);
        } else {
            texts.extend(code.lines().enumerate().map(|(line, text)| (line + 1, text.to_string())));
        }
        count += texts.len();
        let name = file.strip_prefix(testkit::root()).unwrap_or(&file).display().to_string();
        for (line, text) in texts {
            if let Some((phrase, better)) = banned(&text) {
                faults.push(format!("{name}:{line}: {phrase:?} (write: {better}) in {text:?}"));
            }
        }
    }
    assert!(count > 4_000, "only {count} texts were found");
    assert!(faults.is_empty(), "{} texts:\n{}", faults.len(), faults.join("\n"));
}

/// The first sentence of a text that is longer than allowed.
fn long_sentence(text: &str) -> Option<&str> {
    let is_long = |sentence: &&str| sentence.split_whitespace().count() > SENTENCE_WORDS;
    text.split(". ").flat_map(|part| part.split([':', ';'])).find(is_long)
}

/// Lines that sections take on a page of 100 columns.
fn lines_of(texts: &[&str]) -> usize {
    texts.iter().map(|text| report::plain::lines(text, 98).len()).sum()
}

#[test]
fn explanations_of_rules_are_whole_and_short() {
    let mut faults = Vec::new();
    for rule in diagnose::rules() {
        let texts = [rule.meaning, rule.action, rule.when];
        let lines = lines_of(&texts);
        if texts.iter().any(|text| text.is_empty()) || lines > LINES_BEFORE_HOW {
            faults.push(format!("{}: {lines} lines before how it is computed, or an empty text", rule.id));
        }
        for sentence in texts.iter().filter_map(|text| long_sentence(text)) {
            faults.push(format!("{}: more than {SENTENCE_WORDS} words: {sentence}", rule.id));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn explanations_of_benchmarks_are_short() {
    let mut faults = Vec::new();
    for bench in bench::all() {
        let texts = [bench.about, bench.reading];
        let lines = lines_of(&texts);
        if lines > LINES_BEFORE_HOW {
            faults.push(format!("{}: {lines} lines of what it measures and how to read it", bench.id));
        }
        for sentence in texts.iter().filter_map(|text| long_sentence(text)) {
            faults.push(format!("{}: more than {SENTENCE_WORDS} words: {sentence}", bench.id));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// A placement's key in a line of prose or a table; series keys and facts name placements by keys.
fn placement_key<'a>(line: &'a str, keys: &[&'a str]) -> Option<&'a str> {
    let is_fact = line.trim_start().starts_with("- ");
    let is_command = line.contains("assay ");
    let mut words = line.split(|c: char| c.is_whitespace() || ",.;:()".contains(c));
    let found = words.find(|word| keys.contains(word));
    found.filter(|_| !is_fact && !is_command)
}

#[test]
fn screens_name_placements_in_words() {
    // `free`, `all`, `spread` and `duet` are English words, too.
    let placements = bench::placement::EXPLAINED.iter().map(|(key, _)| *key);
    let keys: Vec<&str> = placements.filter(|key| key.contains('-')).collect();
    assert_eq!(placement_key("3 passes on same-cpu.", &keys), Some("same-cpu"));
    assert_eq!(placement_key("ipc.pipe-pingpong@same-cpu#round_trips", &keys), None);
    let archive = std::fs::read_dir(testkit::root().join("tests/archive")).expect("kept runs");
    let runs: Vec<PathBuf> = archive.flatten().map(|entry| entry.path()).collect();
    let runs = runs.iter().filter(|path| path.to_string_lossy().ends_with(".assay.jsonl.gz"));
    let mut screens = 0;
    for run in runs {
        for words in ["diagnose", "diagnose --all", "diagnose --checks", "report --format markdown"] {
            let mut command = crate::assay();
            command.args(words.split(' ')).arg(run).env("COLUMNS", "100");
            let text = command.output().expect("assay runs").stdout;
            let text = String::from_utf8(text).expect("UTF-8");
            screens += usize::from(text.lines().count() > 5);
            for line in text.lines() {
                let key = placement_key(line, &keys);
                assert!(key.is_none(), "{words} {}: {key:?} in {line}", run.display());
            }
        }
    }
    assert!(screens >= 20, "only {screens} screens were read");
}
