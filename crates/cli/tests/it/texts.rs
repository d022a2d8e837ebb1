//! The texts beside the code: every link leads somewhere, chapters stay short, and each table has
//! one place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use testkit::host::skipped;

/// A chapter of docs/method has at most six pages of 45 lines.
const CHAPTER_LINES: usize = 270;
const CHAPTER_COLUMNS: usize = 110;

/// Committed files whose names end like this, by their paths from the root; without git, none.
fn committed(test: &str, ends: &[&str]) -> Option<BTreeMap<PathBuf, String>> {
    let git = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .current_dir(testkit::root())
        .output()
        .ok()
        .filter(|output| output.status.success());
    let Some(git) = git else {
        skipped(test, "git does not list this folder");
        return None;
    };
    let names = String::from_utf8(git.stdout).expect("names of files are text");
    // What other tools printed is no text of this repository.
    let own = |name: &&str| ends.iter().any(|end| name.ends_with(end)) && !name.starts_with("tests/");
    let read =
        |name: &str| Some((PathBuf::from(name), std::fs::read_to_string(testkit::root().join(name)).ok()?));
    Some(names.split('\0').filter(own).filter_map(read).collect())
}

/// The lines of a Markdown text outside of code blocks, without code spans.
fn prose(text: &str) -> Vec<String> {
    let mut in_block = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            lines.push(line.split('`').step_by(2).collect::<Vec<_>>().join("`"));
        }
    }
    lines
}

/// The targets of all links of a Markdown text.
fn links(text: &str) -> Vec<String> {
    let text = prose(text).join("\n");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.split_whitespace().next().unwrap_or("").to_string()).collect()
}

/// The anchors of all headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if in_block || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let anchor: String = heading.trim().to_lowercase().chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        let next = (1..).map(|number| format!("{anchor}-{number}")).find(|other| !anchors.contains(other));
        let is_new = anchors.insert(anchor);
        anchors.extend(next.filter(|_| !is_new));
    }
    anchors
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => (),
            part => plain.push(part),
        }
    }
    plain
}

/// What is wrong with a link of a file, if anything.
fn wrong_link(from: &Path, link: &str, texts: &BTreeMap<PathBuf, String>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => from.to_path_buf(),
        path => plain(&from.with_file_name("").join(path)),
    };
    let from = from.display();
    if !testkit::root().join(&target).exists() {
        return Some(format!("{from} links to {link}: no such file"));
    }
    let is_there = anchor.is_empty() || texts.get(&target).is_some_and(|text| anchors(text).contains(anchor));
    (!is_there).then(|| format!("{from} links to {link}: no such heading"))
}

#[test]
fn every_link_leads_somewhere() {
    let Some(texts) = committed("every_link_leads_somewhere", &[".md"]) else { return };
    let all = texts.iter().flat_map(|(from, text)| links(text).into_iter().map(move |link| (from, link)));
    let wrong: Vec<String> = all.filter_map(|(from, link)| wrong_link(from, &link, &texts)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let from = Path::new("docs/method/README.md");
    assert_eq!(links("[a](b.md) and `[c](d)` and [e](#f \"g\")\n```\n[h](i)\n```\n"), ["b.md", "#f"]);
    assert!(wrong_link(from, "no-such-chapter.md", &texts).is_some());
    assert!(wrong_link(from, "README.md#no-such-heading", &texts).is_some());
    assert_eq!(wrong_link(from, "../../README.md", &texts), None);
    let headings = anchors("# A host's `x`: y\n## Twice\n## Twice\n");
    assert_eq!(headings.into_iter().collect::<Vec<_>>(), ["a-hosts-x-y", "twice", "twice-1"]);
}

/// Words like `docs/method/NAME.md`, with their anchors.
fn mentions(text: &str) -> BTreeSet<&str> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '#');
    let words = text.split(|c: char| !is_path(c));
    let is_text = |word: &&str| word.starts_with("docs/method/") || word.starts_with("docs/results/");
    words.map(|word| word.trim_end_matches('.')).filter(is_text).collect()
}

#[test]
fn code_names_chapters_that_exist() {
    let Some(sources) = committed("code_names_chapters_that_exist", &[".rs", ".md", "Makefile", ".sh"])
    else {
        return;
    };
    // The planted names below stand in this file.
    for (path, text) in sources.iter().filter(|(path, _)| !path.ends_with("it/texts.rs")) {
        for mention in mentions(text) {
            let wrong = wrong_link(Path::new("README.md"), mention, &sources);
            assert_eq!(wrong, None, "{}", path.display());
        }
    }
    let named: Vec<&str> = mentions("see docs/method/a-b.md#c, or docs/results/d.md.").into_iter().collect();
    assert_eq!(named, ["docs/method/a-b.md#c", "docs/results/d.md"]);
}

#[test]
fn chapters_stay_short_and_are_listed() {
    let folder = testkit::root().join("docs/method");
    let index = std::fs::read_to_string(folder.join("README.md")).expect("the index of docs/method");
    let listed: BTreeSet<String> = links(&index).into_iter().collect();
    for file in std::fs::read_dir(&folder).expect("docs/method").flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file.path()).expect("a chapter");
        let lines = text.lines().count();
        assert!(lines <= CHAPTER_LINES, "docs/method/{name} has {lines} lines, more than {CHAPTER_LINES}");
        for (number, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            assert!(columns <= CHAPTER_COLUMNS, "docs/method/{name}:{}: {columns} columns", number + 1);
        }
        assert!(name == "README.md" || listed.contains(&name), "docs/method/README.md does not list {name}");
    }
}

/// The names of the sections in a source of `prove`.
fn sections(source: &str) -> Vec<String> {
    let parts = source.split("Section {").skip(1);
    let named = parts.filter_map(|part| part.trim_start().strip_prefix("name: \""));
    named.filter_map(|rest| Some(rest.split_once('"')?.0.to_string())).collect()
}

/// The rows of `make bench` go into places that stand once each in docs/results.
#[test]
fn each_table_of_bench_has_one_place() {
    let quoted = |text: &str, begin: &str, end: &str| -> Vec<String> {
        text.split(begin).skip(1).filter_map(|rest| Some(rest.split_once(end)?.0.to_string())).collect()
    };
    let sources = std::fs::read_dir(testkit::root().join("crates/prove/peers")).expect("a folder").flatten();
    let sources = sources.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let mut named: Vec<String> = sources.flat_map(|text| quoted(&text, "\"bench:", "\"")).collect();
    let file = testkit::root().join("docs/results/peer-tools.md");
    let mut places = quoted(&std::fs::read_to_string(file).expect("a file"), "<!-- bench:", " -->");
    named.sort();
    places.sort();
    assert!(named.len() > 9, "{named:?}");
    assert_eq!(places, named);
}

#[test]
fn each_table_of_prove_has_one_place() {
    let texts = |folder: &str| -> Vec<String> {
        let files = std::fs::read_dir(testkit::root().join(folder)).expect("a folder").flatten();
        files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
    };
    let mut named: Vec<String> = texts("crates/prove/src").iter().flat_map(|text| sections(text)).collect();
    let mut places = Vec::new();
    for text in texts("docs/results") {
        for part in text.split("<!-- prove:").skip(1) {
            let (name, rest) = part.split_once(" -->").expect("the name of a table");
            let (table, _) = rest.split_once("<!-- /prove -->").expect("the end of a table");
            assert!(table.contains("Measured at commit "), "{name} has no commit");
            places.push(name.to_string());
        }
    }
    named.sort();
    places.sort();
    assert!(named.len() > 40, "{named:?}");
    assert_eq!(places, named);
    assert_eq!(sections("Section {\n    name: \"a\",\n}, Section { name: \"b-c\", x"), ["a", "b-c"]);
}
