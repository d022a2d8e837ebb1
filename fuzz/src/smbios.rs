//! SMBIOS tables, which a machine's firmware or a guest's owner wrote.

use std::collections::BTreeSet;

use ::machine::{Balance, Machine};
use model::{Entry, Snapshot};

use super::machine;

const TABLES: &str = "/sys/firmware/dmi/tables";

/// The first byte says what the others are: a table behind an entry point that we make, or both,
/// with or without the entry point's checksum put right.
pub fn smbios(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let (mut entry, table) = match kind % 4 {
        0 => (made_v3(rest.len()), rest),
        1 => (made_v2(rest.len()), rest),
        _ => {
            let Some((length, rest)) = rest.split_first() else { return };
            let (entry, table) = rest.split_at(rest.len().min(usize::from(*length)));
            (entry.to_vec(), table)
        }
    };
    if kind % 4 != 3 {
        put_right(&mut entry);
    }
    let entries = [("smbios_entry_point", entry), ("DMI", table.to_vec())];
    let entry = |(name, bytes): (&str, Vec<u8>)| {
        let entry = match String::from_utf8(bytes) {
            Ok(text) => Entry::Text(text),
            Err(error) => Entry::Bytes(error.into_bytes()),
        };
        (format!("{TABLES}/{name}"), entry)
    };
    let machine = machine::check_all(&Snapshot { entries: entries.into_iter().map(entry).collect() });
    // No slot is lost because its strings or its newer fields are odd.
    if kind % 4 < 2 {
        // ROM, flash and memory behind CXL are none.
        let apart =
            machine.population.dimm_remarks.iter().any(|text| text.contains("ROM") || text.contains("CXL"));
        let (found, all) = (machine.dimms.len(), devices(table));
        assert!(
            found == all || apart && found < all,
            "{found} of {all} memory devices of a table of {}",
            table.len()
        );
    }
    population(&machine);
}

/// What holds of any population, however odd the tables are.
pub fn population(machine: &Machine) {
    let judged = &machine.population;
    for dimm in &machine.dimms {
        assert!(dimm.speed_mts != Some(0) && dimm.configured_mts != Some(0), "unknown is not zero: {dimm:?}");
        assert!(dimm.size_bytes.is_none_or(|bytes| bytes < 1 << 52), "{dimm:?}");
        assert_eq!(dimm.socket.is_some(), dimm.channel.is_some(), "{dimm:?}");
    }
    let mut places = BTreeSet::new();
    for dimm in machine.dimms.iter().filter(|dimm| dimm.socket.is_some()) {
        assert!(
            places.insert((dimm.socket, dimm.channel, dimm.slot_in_channel)),
            "two in one place: {dimm:?}"
        );
    }
    let modules = machine.dimms.iter().filter(|dimm| dimm.is_memory()).count();
    if judged.dimm_verdict.is_some() {
        let sockets = &judged.dimm_sockets;
        assert_eq!(sockets.iter().map(|socket| socket.dimms).sum::<usize>(), modules);
        assert!(sockets.iter().all(|socket| {
            socket.channels_total.is_none_or(|total| socket.channels_populated <= total as usize)
        }));
        assert!(judged.dimm_verdict == Some(Balance::Balanced) || !judged.dimm_findings.is_empty());
    } else {
        assert!(judged.dimm_move.is_none(), "a move without a verdict");
    }
    let names: BTreeSet<&str> = machine.dimms.iter().map(|dimm| dimm.name()).collect();
    let first = judged.dimm_move.as_deref().and_then(|text| text.strip_prefix("move "));
    assert!(first.is_none_or(|text| names.iter().any(|name| text.starts_with(name))), "{first:?}");
}

fn made_v3(length: usize) -> Vec<u8> {
    let mut entry = b"_SM3_\0\x18\x03\x02\0\x01\0".to_vec();
    entry.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    entry.extend([0; 8]);
    entry
}

fn made_v2(length: usize) -> Vec<u8> {
    let mut entry = b"_SM_\0\x1f\x02\x08\xff\0\0\0\0\0\0\0_DMI_\0".to_vec();
    entry.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    entry.extend([0, 0, 0, 0, 1, 0, 0x28]);
    entry
}

/// Makes the checksums right: of the bytes that the length field counts, in the older form of the
/// inner part first.
fn put_right(entry: &mut [u8]) {
    let (length_at, sum_at) = match entry.get(..4) {
        Some(b"_SM3") => (6, 5),
        Some(b"_SM_") => (5, 4),
        _ => return,
    };
    if sum_at == 4 {
        sum_to_zero(entry, 0x10..0x1f, 0x15);
    }
    let length = entry.get(length_at).copied().unwrap_or(0);
    sum_to_zero(entry, 0..usize::from(length), sum_at);
}

fn sum_to_zero(entry: &mut [u8], part: std::ops::Range<usize>, at: usize) {
    if part.contains(&at) && entry.len() >= part.end {
        entry[at] = 0;
        let sum = entry[part].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        entry[at] = 0u8.wrapping_sub(sum);
    }
}

/// Memory devices that are whole, counted by the specification alone.
fn devices(table: &[u8]) -> usize {
    let (mut count, mut rest) = (0, table);
    while let [kind, length, ..] = *rest {
        let length = usize::from(length);
        if length < 4 || length > rest.len() {
            break;
        }
        let Some(end) = rest[length..].windows(2).position(|pair| pair == [0, 0]) else { break };
        count += usize::from(kind == 17 && length >= 0x15);
        rest = &rest[length + end + 2..];
    }
    count
}
