//! What identifies an owner's hosts or other users is blanked where a snapshot is made, and again
//! where one is read, so that nothing of it leaves and no old file shows it: serial numbers, UUIDs
//! and asset tags, container ids, hardware addresses, the values of kernel parameters that no one
//! here looks at, names of users and servers in mounts. The host's name, its boot's number and what
//! the user typed stay.

mod command_line;
mod lines;
mod printed;
mod tables;
mod words;

use crate::vocabulary as ids;
use std::collections::BTreeMap;

use super::{Entry, Snapshot};
use words::{Ids, Secrets};

pub use words::without_ids;

/// Where a printout of dmidecode stands in a snapshot.
pub const PRINTOUT: &str = ids::host::probe::DMIDECODE;

/// Where the kernel shows the tables as the firmware left them (readable by root).
pub const TABLES: &str = "/sys/firmware/dmi/tables/DMI";

/// Stands in a snapshot of which something had to be blanked when it was read: its file still holds
/// that.
pub const BLANKED: &str = ids::host::probe::BLANKED;

/// Files (by their last name) that say who a thing is, wherever they stand. None is read; a saved
/// snapshot may hold some.
const IDENTITIES: [&str; 12] = [
    "smbios_entry_point",
    "product_serial",
    "product_uuid",
    "product_sku",
    "board_serial",
    "board_asset_tag",
    "chassis_serial",
    "chassis_asset_tag",
    "serial",
    "wwid",
    "address",
    "machine-id",
];

/// Whose lines name control groups; they share the names of their ids with the paths of the groups'
/// files.
const GROUPS: [&str; 5] =
    ["/proc/self/cgroup", "/proc/self/cpuset", "/proc/self/mountinfo", "/proc/self/mounts", "/proc/mounts"];

impl Snapshot {
    /// Blanks what the module says. A snapshot that is blanked already stays as it is.
    pub fn blank(&mut self) {
        self.entries.retain(|path, _| !IDENTITIES.contains(&path.rsplit('/').next().unwrap_or(path)));
        let secrets = self.tables();
        for (path, entry) in &mut self.entries {
            let text = match entry {
                Entry::Text(text) => text.clone(),
                Entry::Bytes(bytes) if path != TABLES => String::from_utf8_lossy(bytes).into_owned(),
                _ => continue,
            };
            if let Some(blanked) = of_file(path, &text, &secrets).filter(|blanked| *blanked != text) {
                *entry = Entry::Text(blanked);
            }
        }
        self.groups();
    }

    /// Blanks tables and printouts, and returns what they hold that may stand elsewhere, too.
    fn tables(&mut self) -> Secrets {
        let mut secrets = Secrets::default();
        let table = match self.entries.get(TABLES) {
            Some(Entry::Bytes(bytes)) => Some(bytes.clone()),
            Some(Entry::Text(text)) => Some(text.clone().into_bytes()),
            _ => None,
        };
        if let Some(table) = &table {
            tables::secrets(table, &mut secrets);
        }
        let printout = self.lossy(PRINTOUT);
        if let Some(text) = &printout {
            printed::secrets(text, &mut secrets);
        }
        if let Some(table) = table {
            let blanked = settled(table.clone(), |table| tables::blanked(table, &secrets));
            if blanked != table {
                self.entries.insert(TABLES.to_string(), Entry::Bytes(blanked));
            }
        }
        if let Some(text) = printout {
            let text = settled(text, |text| printed::blanked(text, &secrets));
            self.entries.insert(PRINTOUT.to_string(), Entry::Text(text));
        }
        secrets
    }

    /// Ids in the names of control groups and interfaces, and in what names them.
    fn groups(&mut self) {
        let mut ids = Ids::default();
        for (path, entry) in &self.entries {
            ids.keep_apart(path);
            if let Entry::Text(text) | Entry::Link(text) = entry {
                ids.keep_apart(text);
            }
        }
        let entries = std::mem::take(&mut self.entries).into_iter().map(|(path, entry)| {
            let entry = match entry {
                Entry::Text(text) if GROUPS.contains(&path.as_str()) => Entry::Text(ids.blanked(&text)),
                Entry::Text(text) if path.starts_with(ids::network::probe::NETWORK) => {
                    // A boot's number says whether both ends are one host.
                    let line = |line: &str| {
                        if line.starts_with("boot ") { line.to_string() } else { ids.blanked(line) }
                    };
                    Entry::Text(text.split_inclusive('\n').map(line).collect())
                }
                Entry::Link(text) => Entry::Link(ids.blanked(&text)),
                other => other,
            };
            (ids.blanked(&path), entry)
        });
        self.entries = entries.collect::<BTreeMap<String, Entry>>();
    }
}

/// What stays as it is when it is blanked once more: what was left may look odd without what is
/// gone.
fn settled<T: PartialEq>(mut one: T, blanked: impl Fn(&T) -> T) -> T {
    loop {
        let next = blanked(&one);
        if next == one {
            return one;
        }
        one = next;
    }
}

/// What a file's text becomes; `None`: nothing in it is anyone's.
fn of_file(path: &str, text: &str, secrets: &Secrets) -> Option<String> {
    let name = path.strip_prefix("/proc/").unwrap_or(path);
    Some(match name {
        "cmdline" => secrets.covered(&command_line::blanked(text)),
        "cpuinfo" => lines::cpuinfo(text),
        "sysinfo" => lines::sysinfo(text),
        "swaps" => words::without_ids(&lines::without_homes(text)),
        ids::disk::probe::DISK => lines::disk(text),
        ids::host::probe::DIRECTORY => words::without_ids(text),
        _ if path.starts_with(ids::network::probe::NETWORK) => lines::without_hardware_addresses(text),
        _ if path.starts_with("probe:cpuid/") => lines::cpuid(text),
        _ if path.contains("/dmi/id/") || path.starts_with("/proc/device-tree/") => {
            secrets.covered(&words::without_uuids(text))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
