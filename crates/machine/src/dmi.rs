//! Who made the machine, by DMI.

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

use super::text::words;

/// DMI strings as the firmware has them, not to be trusted as text: vendors leave placeholders,
/// guests choose theirs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Dmi {
    pub vendor: Option<String>,
    pub product: Option<String>,
    pub product_version: Option<String>,
    pub board_vendor: Option<String>,
    pub board: Option<String>,
    pub bios_vendor: Option<String>,
    pub bios_version: Option<String>,
    pub bios_date: Option<String>,
    /// SMBIOS chassis type number (1 other, 3 desktop, 10 notebook, 17 main server chassis, 23 rack
    /// mount, ...).
    pub chassis_type: Option<String>,
    /// The firmware's own word that it is a guest's (SMBIOS type 0).
    #[serde(skip)]
    pub(crate) is_virtual: bool,
}

impl Dmi {
    /// What names the machine, its board and its firmware.
    pub(super) fn strings(&self) -> impl Iterator<Item = &str> {
        let all = [
            &self.product,
            &self.vendor,
            &self.board_vendor,
            &self.board,
            &self.bios_vendor,
            &self.bios_version,
        ];
        all.into_iter().flatten().map(String::as_str)
    }

    /// The same, with what only the other one reports.
    pub(super) fn or(self, other: &Dmi) -> Dmi {
        let or = |one: Option<String>, other: &Option<String>| one.or_else(|| other.clone());
        Dmi {
            vendor: or(self.vendor, &other.vendor),
            product: or(self.product, &other.product),
            product_version: or(self.product_version, &other.product_version),
            board_vendor: or(self.board_vendor, &other.board_vendor),
            board: or(self.board, &other.board),
            bios_vendor: or(self.bios_vendor, &other.bios_vendor),
            bios_version: or(self.bios_version, &other.bios_version),
            bios_date: or(self.bios_date, &other.bios_date),
            chassis_type: or(self.chassis_type, &other.chassis_type),
            is_virtual: self.is_virtual || other.is_virtual,
        }
    }
}

pub(super) fn parse(snapshot: &Snapshot) -> Dmi {
    // sysfs shows one folder under two names; captured trees have either.
    let folders = ["/sys/class/dmi/id", "/sys/devices/virtual/dmi/id"];
    let file = |name: &str| folders.iter().find_map(|folder| words(snapshot, &format!("{folder}/{name}")));
    Dmi {
        vendor: file("sys_vendor"),
        product: file("product_name"),
        product_version: file("product_version"),
        board_vendor: file("board_vendor"),
        board: file("board_name"),
        bios_vendor: file("bios_vendor"),
        bios_version: file("bios_version"),
        bios_date: file("bios_date"),
        chassis_type: file("chassis_type"),
        is_virtual: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;
    use model::Entry;

    #[test]
    fn either_folder_and_bytes_that_are_no_text() {
        let mut snapshot =
            tree(&[("/sys/devices/virtual/dmi/id/sys_vendor", "HP\n"), ("/sys/class/dmi/id/bios_date", " ")]);
        snapshot.entries.insert("/sys/class/dmi/id/product_name".into(), Entry::Bytes(vec![0xff, b'A']));
        let dmi = parse(&snapshot);
        assert_eq!(dmi.vendor.as_deref(), Some("HP"));
        assert_eq!(dmi.product.as_deref(), Some("\u{fffd}A"));
        assert_eq!(dmi.bios_date, None);
    }
}
