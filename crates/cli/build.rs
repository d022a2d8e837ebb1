//! Links the program to a fixed address, packs the sources that `assay explain ID --code` prints,
//! and lists the words that the program's texts are made of: `assay bundle --redact` takes out all
//! others.
//!
//! The address: each visit is a process that begins as this program, and without link-time
//! optimisation it has relocations whose processing took longer than the rest of `assay --version`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The crates whose sources measure: rows and harness, timed loops, wrappers of the kernel's calls.
const PACKED: [&str; 3] = ["bench", "kernels", "sys"];

/// The crates that make a run and judge it: a word that none of them has decides nothing.
const JUDGING: [&str; 11] = [
    "bench", "compare", "diagnose", "kernels", "knobs", "machine", "model", "session", "snapshot", "stats",
    "sys",
];

/// Those that show it.
const SHOWING: [&str; 2] = ["cli", "report"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let has = |name: &str, value: &str| {
        std::env::var(name).is_ok_and(|found| found.split(',').any(|one| one == value))
    };
    // .cargo/config.toml does the same for the static program: it would crash with `-no-pie` alone.
    let is_static = has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if has("CARGO_CFG_TARGET_OS", "linux") && has("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    pack_sources().expect("the sources of bench, kernels and sys can be read and packed");
    pack_words("judging", &JUDGING).expect("the sources of crates that judge can be read");
    pack_words("showing", &SHOWING).expect("the sources of crates that show can be read");
}

/// Writes `NAME.words`: the words of all texts in these crates, one a line.
fn pack_words(name: &str, crates: &[&str]) -> std::io::Result<()> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let mut words = BTreeSet::new();
    for one in crates {
        let folder = variable("CARGO_MANIFEST_DIR").join("..").join(one);
        println!("cargo:rerun-if-changed={}", folder.join("src").display());
        for file in files_in(&folder.join("src"), "rs")? {
            let shown = file.to_string_lossy().into_owned();
            // Texts that copies of the rate suite work on are made of names.
            let is_made_up = shown.contains("kernels/src/rate/");
            let is_test =
                shown.ends_with("tests.rs") || shown.contains("/tests/") || shown.ends_with("rehearsal.rs");
            if is_made_up || is_test {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            let text = text.split("\n#[cfg(test)]\nmod tests {\n").next().unwrap_or(&text);
            words.extend(literals(text).iter().flat_map(|literal| words_of(literal)));
        }
        let templates = folder.join("templates");
        if templates.is_dir() {
            println!("cargo:rerun-if-changed={}", templates.display());
            for ending in ["html", "css", "js"] {
                for file in files_in(&templates, ending)? {
                    words.extend(words_of(&std::fs::read_to_string(&file)?));
                }
            }
        }
    }
    let text: String = words.into_iter().map(|word| word + "\n").collect();
    std::fs::write(variable("OUT_DIR").join(format!("{name}.words")), text)
}

/// Words in small letters, but for names of hosts, of which examples are made.
fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !"._-".contains(c));
    let words = words.map(|word| word.trim_matches(['.', '_', '-']).to_lowercase());
    let is_host = |word: &str| {
        let last = word.rsplit_once('.').map_or("", |(_, last)| last);
        ["com", "org", "net", "io", "example", "local"].contains(&last)
    };
    let is_word =
        |word: &String| word.chars().any(char::is_alphabetic) && word.chars().count() <= 48 && !is_host(word);
    words.filter(is_word).collect()
}

/// The texts between quotation marks in a source file, with blanks for what is escaped.
fn literals(source: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, found) = rest.split_at(at);
        if found.starts_with("//") {
            rest = found.split_once('\n').map_or("", |(_, next)| next);
            continue;
        }
        if !found.starts_with('"') {
            // `'"'` is a letter and begins nothing.
            let letter = ["'\"'", "'\\\"'"].iter().find(|letter| found.starts_with(**letter));
            rest = &found[letter.map_or(1, |letter| letter.len())..];
            continue;
        }
        let marks = before.len() - before.trim_end_matches('#').len();
        let is_raw = before[..before.len() - marks].ends_with('r');
        let end = format!("\"{}", "#".repeat(if is_raw { marks } else { 0 }));
        let body = &found[1..];
        let (mut literal, mut letters) = (String::new(), body.char_indices());
        rest = "";
        while let Some((at, letter)) = letters.next() {
            if body[at..].starts_with(&end) {
                rest = &body[at + end.len()..];
                break;
            }
            if letter == '\\' && !is_raw {
                letters.next();
                literal.push(' ');
            } else {
                literal.push(letter);
            }
        }
        all.push(literal);
    }
    all
}

/// Writes `sources.deflate`: for each file a line `PATH BYTES`, then its text without tests.
fn pack_sources() -> std::io::Result<()> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let crates = variable("CARGO_MANIFEST_DIR").join("..");
    let other = match variable("CARGO_CFG_TARGET_ARCH").to_str() {
        Some("x86_64") => "aarch64",
        _ => "x86_64",
    };
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    for name in PACKED {
        let folder = crates.join(name).join("src");
        println!("cargo:rerun-if-changed={}", folder.display());
        for file in files_in(&folder, "rs")? {
            let inside = file.strip_prefix(&crates).unwrap_or(&file).to_string_lossy().into_owned();
            let is_test =
                file.ends_with("tests.rs") || file.ends_with("rehearsal.rs") || inside.contains("/tests/");
            if is_test || inside.contains(other) {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            let text = text.split("\n#[cfg(test)]\nmod tests {\n").next().unwrap_or(&text);
            write!(packed, "crates/{inside} {}\n{text}", text.len())?;
        }
    }
    std::fs::write(variable("OUT_DIR").join("sources.deflate"), packed.finish()?)
}

/// All files of this ending below a folder, sorted by path.
fn files_in(folder: &Path, ending: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(files_in(&path, ending)?),
            false if path.extension().is_some_and(|kind| kind == ending) => files.push(path),
            false => {}
        }
    }
    files.sort();
    Ok(files)
}
