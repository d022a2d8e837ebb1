//! The book: its reference pages are those of this program, every page is in its order, and mdBook
//! builds it where it is installed.

use std::collections::BTreeSet;
use std::process::Command;

/// `make pages` writes them.
#[test]
fn reference_pages_are_those_of_this_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = crate::assay().args(["man", "--markdown"]).arg(folder.path()).status().expect("assay runs");
    assert!(status.success());
    let kept = testkit::root().join("docs/book/reference");
    let names = |folder: &std::path::Path| -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).expect("a folder of pages").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(&kept), names(folder.path()));
    for name in names(&kept) {
        let read = |folder: &std::path::Path| std::fs::read_to_string(folder.join(&name)).expect("a page");
        let (old, new) = (read(&kept), read(folder.path()));
        let differs = old.lines().zip(new.lines()).find(|(old, new)| old != new);
        assert!(old == new, "docs/book/reference/{name} is not current (make pages): {differs:?}");
    }
}

/// SUMMARY.md links to each page below docs exactly once.
#[test]
fn the_order_names_every_page() {
    let docs = testkit::root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the order");
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let mut named = BTreeSet::new();
    for (link, _) in links {
        assert!(named.insert(link.to_string()), "SUMMARY.md names {link} twice");
    }
    let files = Command::new("git").args(["ls-files", "--", "docs"]).current_dir(testkit::root()).output();
    let Some(files) = files.ok().filter(|output| output.status.success() && !output.stdout.is_empty()) else {
        println!("book::the_order_names_every_page is skipped: git does not list the files");
        return;
    };
    let files = String::from_utf8_lossy(&files.stdout).into_owned();
    let pages =
        files.lines().filter_map(|file| file.strip_prefix("docs/")).filter(|file| file.ends_with(".md"));
    let pages: BTreeSet<String> = pages.filter(|page| *page != "SUMMARY.md").map(str::to_string).collect();
    assert_eq!(named, pages);
}

#[test]
fn mdbook_builds_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = Command::new("mdbook")
        .arg("build")
        .arg(testkit::root().join("docs/book"))
        .arg("--dest-dir")
        .arg(folder.path())
        .output();
    let Ok(output) = built else {
        println!("book::mdbook_builds_it is skipped: mdbook is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("WARN") && !text.contains("ERROR"), "{text}");
    assert!(folder.path().join("book/first-run.html").is_file());
}
