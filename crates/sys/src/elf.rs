//! Builds executable files of a few hundred bytes, and reads which dynamic linker and C library the
//! system's programs use.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::scratch::content_of;

#[cfg(target_arch = "x86_64")]
const MACHINE: u64 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u64 = 183;

/// Size of the file's header, bytes.
const HEADER_BYTES: u64 = 64;
/// Size of an entry of the segment table, bytes.
const ENTRY_BYTES: u64 = 56;
/// Address of the file's start in memory: a multiple of every page size.
pub const BASE: u64 = 0x40_0000;
/// The largest page size, bytes.
pub const PAGE_BYTES: u64 = 0x1_0000;

pub const LOAD: u64 = 1;
pub const DYNAMIC: u64 = 2;
pub const INTERPRETER: u64 = 3;
const GNU_STACK: u64 = 0x6474_e551;
/// GNU_RELRO: the dynamic linker fills it in, then makes it read-only.
pub const PROTECTED: u64 = 0x6474_e552;

pub const READABLE: u64 = 4;
pub const WRITABLE: u64 = 2;
pub const EXECUTABLE: u64 = 1;

/// An entry of the segment table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub kind: u64,
    pub flags: u64,
    pub offset: u64,
    pub address: u64,
    pub in_file: u64,
    pub in_memory: u64,
    pub alignment: u64,
}

impl Segment {
    /// Asks for a stack that is not executable.
    pub const STACK: Segment = Segment {
        kind: GNU_STACK,
        flags: READABLE | WRITABLE,
        offset: 0,
        address: 0,
        in_file: 0,
        in_memory: 0,
        alignment: 16,
    };

    /// A whole file of this length (bytes), executable.
    pub const fn whole(length: u64) -> Segment {
        Segment {
            kind: LOAD,
            flags: READABLE | EXECUTABLE,
            offset: 0,
            address: BASE,
            in_file: length,
            in_memory: length,
            alignment: PAGE_BYTES,
        }
    }
}

/// Offset of a file's content behind the header and a table of this many segments.
pub const fn code_at(segments: u64) -> u64 {
    HEADER_BYTES + segments * ENTRY_BYTES
}

/// The header and the segment table of an executable whose code starts at this offset in the file.
pub fn header(code_offset: u64, segments: &[Segment]) -> Vec<u8> {
    let mut image = Vec::new();
    image.extend(b"\x7fELF");
    // 64 bits, little endian, version 1, System V.
    image.extend([2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let count = segments.len() as u64;
    // Executable, host, version 1, entry address, offset of the segment table, no sections, no
    // flags; then sizes and counts.
    let entry_address = BASE + code_offset;
    push(&mut image, &[(2, 2), (MACHINE, 2), (1, 4), (entry_address, 8), (HEADER_BYTES, 8), (0, 8), (0, 4)]);
    push(&mut image, &[(HEADER_BYTES, 2), (ENTRY_BYTES, 2), (count, 2), (0, 2), (0, 2), (0, 2)]);
    for segment in segments {
        push(&mut image, &[(segment.kind, 4), (segment.flags, 4), (segment.offset, 8)]);
        push(&mut image, &[(segment.address, 8), (segment.address, 8)]);
        push(&mut image, &[(segment.in_file, 8), (segment.in_memory, 8), (segment.alignment, 8)]);
    }
    image
}

/// Appends little-endian numbers; each field is a value and its width in bytes.
pub fn push(image: &mut Vec<u8>, fields: &[(u64, usize)]) {
    for (value, width) in fields {
        image.extend(&value.to_le_bytes()[..*width]);
    }
}

/// The dynamic linker and the C library of a program, without terminating zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linkage {
    /// Path of the dynamic linker.
    pub linker: Vec<u8>,
    /// File name of the C library.
    pub library: Vec<u8>,
}

/// Reads the linkage of an executable file; an error if it is static or no ELF file.
pub fn linkage_of(program: &Path) -> io::Result<Linkage> {
    let file = rustix::fs::open(program, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    read_linkage(&content_of(&file)?).ok_or_else(|| {
        io::Error::other(format!("{} is not linked dynamically with a C library", program.display()))
    })
}

fn read_linkage(file: &[u8]) -> Option<Linkage> {
    file.strip_prefix(b"\x7fELF\x02\x01")?;
    let (table, width, count) = (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)?);
    let segment = |index: u64| -> Option<Segment> {
        let at = table.checked_add(index * width)?;
        let field = |offset: u64, width| number(file, at.checked_add(offset)?, width);
        Some(Segment {
            kind: field(0, 4)?,
            flags: field(4, 4)?,
            offset: field(8, 8)?,
            address: field(16, 8)?,
            in_file: field(32, 8)?,
            in_memory: field(40, 8)?,
            alignment: field(48, 8)?,
        })
    };
    let segments: Vec<Segment> = (0..count).map_while(segment).collect();
    let of_kind = |kind| segments.iter().find(|segment| segment.kind == kind);
    let linker = text(file, of_kind(INTERPRETER)?.offset)?;
    let dynamic = of_kind(DYNAMIC)?;
    let entries = (0..dynamic.in_file / 16).map_while(|index| {
        let at = dynamic.offset.checked_add(index * 16)?;
        Some((number(file, at, 8)?, number(file, at.checked_add(8)?, 8)?))
    });
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != 0).collect();
    let strings = entries.iter().find(|(tag, _)| *tag == STRING_TABLE)?.1;
    // Translates the string table's address into an offset in the file.
    let contains_strings = |segment: &&Segment| {
        segment.kind == LOAD
            && strings.checked_sub(segment.address).is_some_and(|into| into < segment.in_file)
    };
    let segment = segments.iter().find(contains_strings)?;
    let strings = strings - segment.address + segment.offset;
    let mut libraries = entries.iter().filter(|(tag, _)| *tag == NEEDED);
    let library = libraries.find_map(|(_, name)| {
        text(file, strings.checked_add(*name)?).filter(|name| name.starts_with(b"libc."))
    })?;
    Some(Linkage { linker: linker.to_vec(), library: library.to_vec() })
}

// Tags of entries of the dynamic table.
pub const NEEDED: u64 = 1;
pub const HASH: u64 = 4;
pub const STRING_TABLE: u64 = 5;
pub const SYMBOL_TABLE: u64 = 6;
pub const STRING_BYTES: u64 = 10;
pub const RELOCATIONS: u64 = 7;
pub const RELOCATIONS_BYTES: u64 = 8;
pub const RELOCATION_BYTES: u64 = 9;
pub const SYMBOL_BYTES: u64 = 11;

fn number(file: &[u8], at: u64, width: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = file.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The bytes before the next zero; `None` if there is no zero within 4096 bytes.
fn text(file: &[u8], at: u64) -> Option<&[u8]> {
    let rest = file.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().take(4096).position(|byte| *byte == 0)?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"#!/bin/sh", b"\x7fELF\x02\x01", &[0xff; 4096]] {
            assert_eq!(read_linkage(bytes), None);
        }
        assert_eq!(read_linkage(&header(0, &[Segment::whole(64)])), None, "it is static");
        assert!(linkage_of(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn torn_programs_never_panic() {
        let Ok(shell) = std::fs::read("/bin/sh") else { return };
        let Some(whole) = read_linkage(&shell) else { return };
        assert!(whole.library.starts_with(b"libc.") && whole.linker.starts_with(b"/"), "{whole:?}");
        for length in (0..shell.len()).step_by(997) {
            if let Some(torn) = read_linkage(&shell[..length]) {
                assert_eq!(torn, whole);
            }
        }
        for at in 0..shell.len().min(4096) {
            let mut bytes = shell.clone();
            bytes[at] ^= 0xff;
            let _ = read_linkage(&bytes);
        }
    }
}
