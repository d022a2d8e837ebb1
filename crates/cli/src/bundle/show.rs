//! Messages about a bundle.

use std::path::Path;

use super::pack::Bundle;
use super::{Kind, STAYS};
use crate::output::{self, eprint_line};
use model::run_file::words;
use redact::{Left, Searched};

/// Most shown places of names that are left.
const SHOWN: usize = 40;
/// At most this many changed files are named.
const NAMED: usize = 5;

/// After a bundle was made.
pub fn made(out: &Path, map: &Path, bundle: &Bundle, searched: &Searched) -> anyhow::Result<()> {
    let runs = bundle.files.iter().filter(|(name, _)| name.ends_with(".gz")).count();
    let file = out.display();
    let mut text = format!(
        "{file}: {} and {} in {}; no replaced name is left in it\n",
        diagnose::words::counted(runs, "run"),
        diagnose::words::counted(runs, "page"),
        words(bundle.archive.len() as u64)
    );
    let replaced: Vec<String> =
        bundle.manifest.replaced.iter().map(|(kind, count)| counted(*kind, *count)).collect();
    let replaced = if replaced.is_empty() { "nothing".to_string() } else { replaced.join(", ") };
    let dropped = format!(
        "{} about the host, {} that could not be read",
        diagnose::words::counted(bundle.manifest.dropped_entries, "file"),
        diagnose::words::counted(bundle.manifest.dropped_lines, "line")
    );
    for (name, value) in [
        ("replaced", replaced.as_str()),
        ("left out", &dropped),
        ("stays", STAYS),
        ("searched", &of_search(searched)),
        ("mapping", &format!("{} (keep it, do not send it)", map.display())),
        ("read it", &format!("assay diagnose {file}{}", if runs == 1 { "" } else { "/NAME" })),
        ("search again", &format!("assay bundle --verify {file}")),
    ] {
        text.push_str(&format!("  {name:<13}{value}\n"));
    }
    output::print_text(&text)
}

fn counted(kind: Kind, count: usize) -> String {
    let (one, many) = match kind {
        Kind::Host => ("host", "hosts"),
        Kind::Label => ("label", "labels"),
        Kind::Uuid => ("UUID", "UUIDs"),
        Kind::Mac => ("MAC address", "MAC addresses"),
        Kind::Ip => ("IP address", "IP addresses"),
        Kind::Email => ("mail address", "mail addresses"),
        Kind::Path => ("part of paths", "parts of paths"),
        Kind::Group => ("control group", "control groups"),
        Kind::Process => ("process", "processes"),
        Kind::Pid => ("process number", "process numbers"),
        Kind::Program => ("word of commands", "words of commands"),
        Kind::Device => ("device name", "device names"),
        Kind::Redacted => ("other word", "other words"),
    };
    format!("{count} {}", if count == 1 { one } else { many })
}

fn of_search(searched: &Searched) -> String {
    let ordinary = match searched.ordinary.len() {
        0 => String::new(),
        count => format!("; {count} are too common to search"),
    };
    format!(
        "{} in {} of {}, as text, hex and base64{ordinary}",
        diagnose::words::counted(searched.originals, "original"),
        words(searched.bytes as u64),
        diagnose::words::counted(searched.files, "file")
    )
}

/// Where something is left.
pub fn left(all: &[Left]) {
    for one in all.iter().take(SHOWN) {
        eprint_line(&format!("left: {} in {} at byte {}: …{}…", one.what, one.file, one.at, one.around));
    }
    if let Some(more @ 1..) = all.len().checked_sub(SHOWN) {
        eprint_line(&format!("left: {more} more places"));
    }
}

/// What `--verify` searched for, and what differs from the manifest, if there is one.
pub fn searched(
    bundle: &Path,
    map: Option<&Path>,
    searched: &Searched,
    changed: Option<&[String]>,
    left: usize,
) -> anyhow::Result<()> {
    let result = match left {
        0 if map.is_none() => {
            "no address is left; names were not searched, as --map FILE is missing".to_string()
        }
        0 => "no name is left".to_string(),
        1 => "1 name is left".to_string(),
        count => format!("{count} names are left"),
    };
    let mut text = format!("{}: {result}\n", bundle.display());
    let mapping = match map {
        Some(map) => map.display().to_string(),
        None => "none: only addresses and this host's own names were searched".to_string(),
    };
    let not: String =
        if searched.ordinary.is_empty() { "-".to_string() } else { searched.ordinary.join(", ") };
    for (name, value) in [
        ("searched", of_search(searched).as_str()),
        ("shapes", "MAC, IP (except loopback) and mail addresses, UUIDs"),
        ("mapping", &mapping),
        ("not searched", &not),
        ("contents", &contents(changed)),
    ] {
        text.push_str(&format!("  {name:<13}{value}\n"));
    }
    output::print_text(&text)
}

fn contents(changed: Option<&[String]>) -> String {
    match changed {
        None => "without a manifest of Assay".to_string(),
        Some([]) => "as Assay packed them".to_string(),
        Some(changed) => {
            let some = changed.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = match changed.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!("not as Assay packed them: {some}{more}")
        }
    }
}
