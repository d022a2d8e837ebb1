//! hwinfo's text (`--all`, `--bios`): the SMBIOS tables that it prints in its BIOS item, the CPUs
//! and the memory.
//!
//! It prints `Name: #HANDLE` for a structure and its fields below, strings in quotes, numbers with
//! their meaning in brackets. What it was written from does not know kinds of memory newer than
//! itself ("Other"): their numbers are read.

use super::Tool;
use super::printout::{Printout, written};
use super::reported::Reported;
use machine::archive::Subject;

pub(super) const TOOL: Tool = Tool { name: "hwinfo", file: "hwinfo", knows, read };

fn knows(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let is_item = |line: &str| line.starts_with("  [Created at ") && line.ends_with(']');
    text.lines().any(is_item) && text.contains("\n  Hardware Class: ")
}

/// Structures that matter: hwinfo's name, SMBIOS's number, dmidecode's title.
const STRUCTURES: [(&str, u32, &str); 6] = [
    ("BIOS Info", 0, "BIOS Information"),
    ("System Info", 1, "System Information"),
    ("Board Info", 2, "Base Board Information"),
    ("Processor Info", 4, "Processor Information"),
    ("Physical Memory Array", 16, "Physical Memory Array"),
    ("Memory Device", 17, "Memory Device"),
];

/// Fields: of which structure, hwinfo's name, dmidecode's.
const FIELDS: [(u32, &str, &str); 27] = [
    (0, "Vendor", "Vendor"),
    (0, "Version", "Version"),
    (0, "Date", "Release Date"),
    (1, "Manufacturer", "Manufacturer"),
    (1, "Product", "Product Name"),
    (1, "Version", "Version"),
    (2, "Manufacturer", "Manufacturer"),
    (2, "Product", "Product Name"),
    (4, "Socket", "Socket Designation"),
    (4, "Manufacturer", "Manufacturer"),
    (4, "Version", "Version"),
    (16, "Slots", "Number Of Devices"),
    (16, "Max. Size", "Maximum Capacity"),
    (17, "Memory Array", "Array Handle"),
    (17, "Location", "Locator"),
    (17, "Bank", "Bank Locator"),
    (17, "Manufacturer", "Manufacturer"),
    (17, "Part Number", "Part Number"),
    (17, "Data Width", "Data Width"),
    (17, "Size", "Size"),
    (17, "Speed", "Speed"),
    (17, "Form Factor", "Form Factor"),
    (17, "Type Detail", "Type Detail"),
    (17, "Type", "Type"),
    (16, "Use", "Use"),
    (16, "Location", "Location"),
    (4, "Type", "Type"),
];

/// Kinds of memory by their numbers in SMBIOS, which hwinfo prints before its word for them.
const KINDS: [(&str, &str); 8] = [
    ("0x12", "DDR"),
    ("0x13", "DDR2"),
    ("0x18", "DDR3"),
    ("0x1a", "DDR4"),
    ("0x1d", "LPDDR3"),
    ("0x1e", "LPDDR4"),
    ("0x22", "DDR5"),
    ("0x23", "LPDDR5"),
];

fn read(bytes: &[u8], told: &mut Reported) {
    let text = String::from_utf8_lossy(bytes);
    let mut printout = Printout::default();
    let mut open: Option<u32> = None;
    let mut class = "";
    let (mut cpus, mut modules) = (0usize, 0usize);
    let (mut vendor, mut memory): (Option<&str>, Option<u64>) = (None, None);
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let Some((name, value)) = line.trim().split_once(':') else {
            open = None;
            continue;
        };
        let value = value.trim();
        if depth <= 2 {
            open = None;
        }
        match (depth, name) {
            (2, "Hardware Class") => {
                class = value;
                cpus += usize::from(class == "cpu");
            }
            (2, "Model") if class == "cpu" => {
                // `25.1.1 "AMD EPYC"`
                let model = value.split('"').nth(1).unwrap_or("");
                if cpus == 1 {
                    told.claim(Subject::Processor, model);
                    told.processor(vendor, model);
                }
            }
            (2, "Vendor") if class == "cpu" => vendor = Some(value.trim_matches('"')),
            (2, "Memory Range") if class == "memory" => {
                // The size below it is rounded to what modules have.
                memory = end_of(value).map(|end| end / 1024).or(memory);
            }
            (0 | 2, _) if value.starts_with('#') => {
                let known = STRUCTURES.iter().find(|(known, ..)| *known == name);
                open = known.map(|(_, kind, title)| {
                    printout.with_handle(handle(value).unwrap_or(0), *kind, title);
                    modules += usize::from(*kind == 17);
                    *kind
                });
            }
            _ => {
                let Some(kind) = open else { continue };
                if kind == 4 && name == "Socket Status" {
                    let status = if value == "Populated" { "Populated, Enabled" } else { "Unpopulated" };
                    printout.field("Status", Some(status));
                }
                let field = FIELDS.iter().find(|(of, theirs, _)| *of == kind && *theirs == name);
                if let Some((_, _, ours)) = field {
                    printout.field(ours, Some(&plain(kind, name, value)));
                }
            }
        }
    }
    if cpus > 0 {
        told.claim(Subject::Cpus, cpus);
    }
    if let Some(kilobytes) = memory {
        told.file("/proc/meminfo", format!("MemTotal: {kilobytes} kB\n"));
    }
    if modules > 0 {
        told.printout(printout.text());
    }
}

/// `0x00000000-0x5e298ffff (rw)`: how many bytes there are up to the last.
fn end_of(range: &str) -> Option<u64> {
    let last = range.strip_prefix("0x00000000-0x")?.split(' ').next()?;
    u64::from_str_radix(last, 16).ok()?.checked_add(1)
}

/// `#4352`
fn handle(text: &str) -> Option<u32> {
    text.strip_prefix('#')?.parse().ok()
}

/// A value in dmidecode's form.
fn plain(kind: u32, name: &str, value: &str) -> String {
    if let Some(handle) = handle(value) {
        return written(handle);
    }
    let words = value.trim_matches('"').trim();
    match (words.split_once(" ("), name) {
        (Some((number, _)), "Type") if kind == 17 && known(number).is_some() => {
            known(number).unwrap_or_default().to_string()
        }
        (Some((number, meaning)), _) if number.starts_with("0x") => {
            in_its_words(meaning.trim_end_matches(')'))
        }
        _ => in_its_words(words),
    }
}

fn known(number: &str) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == number).map(|(_, word)| *word)
}

/// Words that dmidecode writes in another way.
fn in_its_words(words: &str) -> String {
    match words {
        "No Memory Installed" => "No Module Installed".to_string(),
        "System memory" => "System Memory".to_string(),
        "CPU" => "Central Processor".to_string(),
        other => other.to_string(),
    }
}
