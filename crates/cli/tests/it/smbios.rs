//! SMBIOS tables made by the tests: a board named as Dell's of the 14th generation, filled as a
//! test wants it.

use crate::synthetic::Tree;

/// The structures of a board's tables, one by one.
pub struct Board {
    pub structures: Vec<Vec<u8>>,
}

/// A processor with six channels on two controllers, which drives 2933 MT/s.
pub const CPU: &str = "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz";

impl Board {
    /// A board with this number of sockets, each with 12 slots and a processor, and modules of 16
    /// GiB in the slots that are named.
    pub fn dell(sockets: u32, filled: &[&str]) -> Board {
        let letters = "ABCDEFGH".chars().take(sockets as usize);
        let names: Vec<String> =
            letters.flat_map(|letter| (1..=12).map(move |number| format!("{letter}{number}"))).collect();
        for name in filled {
            assert!(names.iter().any(|known| known == name), "no slot is called {name}");
        }
        let mut structures = vec![structure(1, 0x1b, &[(4, 1), (5, 2)], &["Dell Inc.", "PowerEdge R740"])];
        for socket in 0..sockets {
            let fields = [(0x04, 1), (0x05, 3), (0x10, 2), (0x18, 0x41)];
            structures.push(structure(4, 0x2a, &fields, &[&format!("CPU{}", socket + 1), CPU]));
        }
        structures.push(structure(
            16,
            0x17,
            &[(4, 3), (5, 3), (6, 6), (0x0a, 0x80), (0x0d, names.len() as u8)],
            &[],
        ));
        for name in &names {
            let module = if filled.contains(&name.as_str()) { 16384 } else { 0 };
            structures.push(slot(name, module));
        }
        for (number, structure) in structures.iter_mut().enumerate() {
            structure[2..4].copy_from_slice(&(0x1000 + number as u16).to_le_bytes());
        }
        Board { structures }
    }

    /// Every first slot of every channel filled.
    pub fn even(sockets: u32) -> Board {
        let letters = "ABCDEFGH".chars().take(sockets as usize);
        let names: Vec<String> =
            letters.flat_map(|letter| (1..=6).map(move |number| format!("{letter}{number}"))).collect();
        Board::dell(sockets, &names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// All structures and the one that ends a table.
    pub fn table(&self) -> Vec<u8> {
        let mut table = self.structures.concat();
        table.extend([127, 4, 0xff, 0xfe, 0, 0]);
        table
    }

    /// As the kernel shows it.
    pub fn write(&self, tree: &Tree) {
        tree.bytes("/sys/firmware/dmi/tables/DMI", &self.table());
    }
}

/// A structure of `length` bytes with these bytes set, and its strings.
pub fn structure(kind: u8, length: u8, fields: &[(usize, u8)], strings: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0u8; usize::from(length)];
    (bytes[0], bytes[1]) = (kind, length);
    fields.iter().for_each(|(at, value)| bytes[*at] = *value);
    strings.iter().for_each(|text| bytes.extend([text.as_bytes(), &[0]].concat()));
    if strings.is_empty() {
        bytes.push(0);
    }
    bytes.push(0);
    bytes
}

/// A slot of SMBIOS 2.8: DDR4, two ranks, 2933 MT/s; 0 MiB is an empty one.
fn slot(name: &str, mebibytes: u16) -> Vec<u8> {
    let fields = [(0x08, 72), (0x0a, 64), (0x0e, 9), (0x10, 1), (0x12, 0x1a), (0x13, 0x80), (0x14, 0x20)];
    let mut bytes = structure(17, 0x28, &fields, &[name, "00AD063200AD", "HMA82GR7CJR8N-WM"]);
    bytes[0x0c..0x0e].copy_from_slice(&mebibytes.to_le_bytes());
    if mebibytes > 0 {
        (bytes[0x17], bytes[0x1a], bytes[0x1b]) = (2, 3, 2);
        bytes[0x15..0x17].copy_from_slice(&2933u16.to_le_bytes());
        bytes[0x20..0x22].copy_from_slice(&2933u16.to_le_bytes());
    }
    bytes
}
