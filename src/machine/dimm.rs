//! Memory modules, by SMBIOS.

use dmidecode::{EntryPoint, Structure, structures::memory_device::MemoryDevice};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Entry, Snapshot};

/// One memory slot as SMBIOS tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Dimm {
    /// The slot's name on the board.
    pub locator: String,
    pub bank: String,
    /// 0: an empty slot. `None`: the module's size is unknown.
    pub size_bytes: Option<u64>,
    /// What the module can do, in millions of transfers per second.
    pub speed_mts: Option<u32>,
    /// What it runs at.
    pub configured_mts: Option<u32>,
    pub data_width_bits: Option<u16>,
}

/// Slots in table order, empty ones included; empty where the tables are not readable (they need root).
pub(super) fn parse(snapshot: &Snapshot) -> Vec<Dimm> {
    let bytes = |name: &str| match snapshot.get(&format!("/sys/firmware/dmi/tables/{name}"))? {
        Entry::Bytes(bytes) => Some(bytes.as_slice()),
        Entry::Text(text) => Some(text.as_bytes()),
        _ => None,
    };
    match (bytes("smbios_entry_point"), bytes("DMI")) {
        (Some(entry), Some(table)) => decode(entry, table),
        _ => Vec::new(),
    }
}

fn decode(entry: &[u8], table: &[u8]) -> Vec<Dimm> {
    let table = memory_devices(table);
    // The crate reads past the end where the entry point claims more than the table holds; so it is told what it gets.
    let Some(entry) = checked(entry) else { return Vec::new() };
    let entry = match (entry, u32::try_from(table.len()), u16::try_from(table.len())) {
        (EntryPoint::V3(mut point), Ok(length), _) => {
            point.smbios_len_max = length;
            EntryPoint::V3(point)
        }
        (EntryPoint::V2(mut point), _, Ok(length)) => {
            point.smbios_len = length;
            EntryPoint::V2(point)
        }
        _ => return Vec::new(),
    };
    let devices = entry.structures(&table).filter_map(|structure| match structure {
        Ok(Structure::MemoryDevice(device)) => Some(dimm(&device)),
        _ => None,
    });
    devices.collect()
}

/// The entry point, padded: the crate compares lengths in eight bits and slices before it compares.
fn checked(entry: &[u8]) -> Option<EntryPoint> {
    if entry.len() > 64 {
        return None;
    }
    let length = match entry {
        [b'_', b'S', b'M', b'_', _, length, ..] => *length,
        [b'_', b'S', b'M', b'3', b'_', _, length, ..] => *length,
        _ => return None,
    };
    (usize::from(length) <= entry.len()).then(|| EntryPoint::search(entry).ok()).flatten()
}

const MEMORY_DEVICE: u8 = 17;

/// Length of a memory device in the newest specification (3.7), which the shorter ones of old tables are padded to
/// (zero is "unknown" in every field that was added since), and longer ones of future tables cut to.
const DEVICE_BYTES: usize = 0x5c;

/// Where a memory device has the numbers of its strings.
const STRING_NUMBERS: [usize; 7] = [0x10, 0x11, 0x17, 0x18, 0x19, 0x1a, 0x2b];

/// The well-formed memory devices of a table as a new table: the crate panics on structures shorter than their own
/// header, refuses devices of SMBIOS before 2.7, and loses a device whose strings are not UTF-8 or not all there.
fn memory_devices(table: &[u8]) -> Vec<u8> {
    let mut clean = Vec::new();
    let mut rest = table;
    while let [kind, length, ..] = *rest {
        let length = usize::from(length);
        let Some(strings) = rest.get(length..).filter(|_| length >= 4) else { break };
        let Some(end) = strings.windows(2).position(|pair| pair == [0, 0]) else { break };
        if kind == MEMORY_DEVICE && length >= 0x15 {
            let mut head = rest[..length.min(DEVICE_BYTES)].to_vec();
            head.resize(DEVICE_BYTES, 0);
            head[1] = DEVICE_BYTES as u8;
            let named = strings[..end].split(|byte| *byte == 0).take_while(|name| !name.is_empty()).count();
            for at in STRING_NUMBERS {
                // A string that is not there is as good as none; the slot is there all the same.
                head[at] = if usize::from(head[at]) > named { 0 } else { head[at] };
            }
            clean.extend(head);
            clean.extend(strings[..end].iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }));
            clean.extend([0, 0]);
        }
        rest = &strings[end + 2..];
    }
    clean
}

fn dimm(device: &MemoryDevice) -> Dimm {
    // 0xffff: extended speed beside it; 0 in any: unknown.
    let speed = |short: Option<u16>, extended: Option<u32>| match short {
        Some(0xffff) => extended.map(|speed| speed & 0x7fff_ffff).filter(|speed| *speed > 0),
        Some(speed) => Some(u32::from(speed)).filter(|speed| *speed > 0),
        None => None,
    };
    let size_bytes = match device.size {
        None => None,
        Some(0x7fff) => Some(u64::from(device.extended_size & 0x7fff_ffff) << 20),
        Some(size) if size & 0x8000 != 0 => Some(u64::from(size & 0x7fff) << 10),
        Some(size) => Some(u64::from(size) << 20),
    };
    Dimm {
        locator: device.device_locator.trim().to_string(),
        bank: device.bank_locator.trim().to_string(),
        size_bytes,
        speed_mts: speed(device.speed, device.extended_speed),
        configured_mts: speed(device.configured_memory_speed, device.extended_configured_memory_speed),
        data_width_bits: device.data_width.filter(|bits| *bits > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_v3(length: u32) -> Vec<u8> {
        let mut entry = b"_SM3_\0\x18\x03\x02\0\x01\0".to_vec();
        entry.extend(length.to_le_bytes());
        entry.extend([0u8; 8]);
        let sum = entry.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        entry[5] = 0u8.wrapping_sub(sum);
        entry
    }

    /// A memory device of `length` bytes with size in MiB and both speeds.
    fn device(length: usize, size: u16, speed: u16, strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; 0x28];
        bytes[0] = MEMORY_DEVICE;
        bytes[1] = length as u8;
        bytes[8..10].copy_from_slice(&72u16.to_le_bytes());
        bytes[10..12].copy_from_slice(&64u16.to_le_bytes());
        bytes[12..14].copy_from_slice(&size.to_le_bytes());
        bytes[0x10] = 1;
        bytes[0x11] = 2;
        bytes[0x15..0x17].copy_from_slice(&speed.to_le_bytes());
        bytes[0x1c..0x20].copy_from_slice(&(64u32 << 10).to_le_bytes());
        bytes[0x20..0x22].copy_from_slice(&(speed - 1).to_le_bytes());
        bytes.truncate(length);
        bytes.extend(strings);
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn full_empty_extended_and_old() {
        let mut table = vec![127, 4, 0, 0, 0, 0];
        table.extend(device(0x28, 16384, 2933, b"A1\0BANK 0"));
        table.extend(device(0x28, 0, 1, b"A2\0BANK 0"));
        table.extend(device(0x28, 0x7fff, 4800, b"A3\0B\xff"));
        table.extend(device(0x1b, 2048, 667, b"DIMM 1\0X"));
        let dimms = decode(&entry_v3(10_000_000), &table);
        let seen: Vec<(&str, Option<u64>)> =
            dimms.iter().map(|d| (d.locator.as_str(), d.size_bytes)).collect();
        assert_eq!(
            seen,
            [("A1", Some(16 << 30)), ("A2", Some(0)), ("A3", Some(64 << 30)), ("DIMM 1", Some(2 << 30))]
        );
        assert_eq!((dimms[0].speed_mts, dimms[0].configured_mts), (Some(2933), Some(2932)));
        assert_eq!((dimms[3].speed_mts, dimms[3].configured_mts), (Some(667), None));
        assert_eq!(dimms[2].bank, "B?");
        assert_eq!(dimms[0].data_width_bits, Some(64));
    }

    #[test]
    fn a_slot_without_its_strings_is_still_a_slot() {
        let names = |strings: &[u8], length: usize| {
            let dimms = decode(&entry_v3(0), &device(length, 1024, 667, strings));
            dimms.into_iter().map(|dimm| (dimm.locator, dimm.bank)).collect::<Vec<_>>()
        };
        assert_eq!(names(b"A1", 0x28), [("A1".to_string(), String::new())]);
        assert_eq!(names(b"", 0x28), [(String::new(), String::new())]);
        // As long as no specification knows yet.
        let mut long = device(0x28, 1024, 667, b"A1\0B");
        long[1] = 0x80;
        long.splice(0x28..0x28, [0xff; 0x58]);
        assert_eq!(decode(&entry_v3(0), &long).len(), 1);
    }

    #[test]
    fn damaged_tables_lose_only_what_is_damaged() {
        let whole = device(0x28, 16384, 2933, b"A1\0B");
        for cut in 0..whole.len() {
            assert!(decode(&entry_v3(cut as u32), &whole[..cut]).is_empty());
        }
        let mut short = whole.clone();
        short.extend([17, 2, 0, 0, 0, 0]);
        assert_eq!(decode(&entry_v3(0), &short).len(), 1);
        for entry in [&b""[..], b"_SM_", b"_SM3_", b"_SM3_\0\xff", &[0u8; 65], &entry_v3(4)[..23]] {
            assert!(decode(entry, &whole).is_empty());
        }
    }
}
