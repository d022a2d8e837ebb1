//! SMBIOS tables cut into structures. Source: DMTF DSP0134, version 3.7.

/// One structure: its formatted part, and the set of strings after it.
pub struct Structure<'a> {
    pub kind: u8,
    pub handle: u16,
    pub bytes: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Structure<'a> {
    /// The 16-bit number at this byte offset.
    pub fn word(&self, at: usize) -> Option<u64> {
        self.number(at, 2)
    }

    /// The string whose 1-based index is the byte at this offset; bytes beyond ASCII become `?`.
    /// Empty if the index is 0 (no string) or the string is missing.
    pub fn text(&self, at: usize) -> String {
        let index = self.byte(at).unwrap_or(0) as usize;
        let found = index.checked_sub(1).and_then(|index| self.strings().nth(index)).unwrap_or_default();
        let plain = |byte: &u8| if byte.is_ascii() && !byte.is_ascii_control() { *byte as char } else { '?' };
        found.iter().map(plain).collect::<String>().trim().to_string()
    }

    /// The little-endian number of this many bytes at an offset; `None` beyond the structure.
    pub fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let part = self.bytes.get(at..at + bytes)?;
        Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The byte at this offset, as [`Structure::number`] returns it.
    pub fn byte(&self, at: usize) -> Option<u64> {
        self.number(at, 1)
    }

    /// The strings, in the order in which fields count them from 1.
    pub fn strings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.strings.split(|byte| *byte == 0).take_while(|string| !string.is_empty())
    }
}

/// The complete structures of a table; stops at the first truncated one.
pub fn structures(table: &[u8]) -> impl Iterator<Item = Structure<'_>> {
    let mut rest = table;
    std::iter::from_fn(move || {
        let [kind, length, low, high, ..] = *rest else { return None };
        let length = usize::from(length);
        let tail = rest.get(length..).filter(|_| length >= 4)?;
        let end = tail.windows(2).position(|pair| pair == [0, 0])?;
        let (bytes, strings) = (&rest[..length], &tail[..end]);
        rest = &tail[end + 2..];
        Some(Structure { kind, handle: u16::from_le_bytes([low, high]), bytes, strings })
    })
}
