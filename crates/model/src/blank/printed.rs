//! Printouts of dmidecode: the fields that someone looks at, in the printout's own form; nothing
//! of what stood around.

use super::super::dmidecode_text::{TITLES, structures, unquoted};
use super::words::{Secrets, without_uuids};

/// Fields that stay, by structure.
const FIELDS: [(u32, &[&str]); 9] = [
    (0, &["Vendor", "Version", "Release Date", "System is a virtual machine"]),
    (1, &["Manufacturer", "Product Name", "Version"]),
    (2, &["Manufacturer", "Product Name", "Version", "Type"]),
    (3, &["Manufacturer", "Type"]),
    (
        4,
        &[
            "Socket Designation",
            "Type",
            "Family",
            "Manufacturer",
            "Version",
            "Max Speed",
            "Current Speed",
            "Status",
            "Core Count",
            "Core Enabled",
            "Thread Count",
        ],
    ),
    (16, &["Location", "Use", "Error Correction Type", "Maximum Capacity", "Number Of Devices"]),
    (
        17,
        &[
            "Array Handle",
            "Total Width",
            "Data Width",
            "Size",
            "Form Factor",
            "Set",
            "Locator",
            "Bank Locator",
            "Type",
            "Type Detail",
            "Speed",
            "Manufacturer",
            "Part Number",
            "Rank",
            "Configured Memory Speed",
            "Configured Clock Speed",
            "Memory Technology",
        ],
    ),
    (19, &["Starting Address", "Ending Address", "Range Size", "Partition Width"]),
    (
        20,
        &[
            "Starting Address",
            "Ending Address",
            "Range Size",
            "Physical Device Handle",
            "Partition Row Position",
            "Interleave Position",
            "Interleaved Data Depth",
        ],
    ),
];

/// Adds what a printout holds that must stand nowhere.
pub(super) fn secrets(text: &str, secrets: &mut Secrets) {
    let secret = |name: &str| matches!(name, "Serial Number" | "Asset Tag" | "UUID" | "SBDS Serial Number");
    // Of any structure: whatever stands behind such a name is one.
    for line in text.lines().map(unquoted) {
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| secret(name.trim())) {
            secrets.add(value.as_bytes());
        }
    }
}

pub(super) fn blanked(text: &str, secrets: &Secrets) -> String {
    let mut whole = String::new();
    for one in structures(text) {
        let title = TITLES.iter().find(|(kind, _)| Some(*kind) == one.kind);
        let stay = FIELDS.iter().find(|(kind, _)| Some(*kind) == one.kind);
        let (Some((kind, title)), Some((_, stay))) = (title, stay) else { continue };
        let plain = |handle: &&str| handle.len() <= 10 && handle[2..].bytes().all(|b| b.is_ascii_hexdigit());
        if let Some(handle) = one.handle.filter(plain) {
            whole.push_str(&format!("Handle {handle}, DMI type {kind}\n"));
        }
        whole.push_str(&format!("{title}\n"));
        for (name, value) in one.fields.iter().filter(|(name, _)| stay.contains(name)) {
            whole.push_str(&format!("\t{name}: {}\n", secrets.covered(&without_uuids(value))));
        }
        whole.push('\n');
    }
    whole
}
