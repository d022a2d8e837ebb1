//! A tar archive, read once from its start to its end: of its files those that are wanted are kept
//! in memory, and nothing is written.
//!
//! Old tar, POSIX (ustar, pax) and GNU's own long names. Files with holes are left out: no tool of
//! support makes any. The crate `tar` is not used here: it keeps a name of any length in memory,
//! and an archive that ends between two entries is whole to it.

use std::io::{self, Read};

use super::files::{Files, Node};

const BLOCK: usize = 512;

/// A long name or the records of one pax header are no longer.
const LONGEST_NAME: u64 = 1 << 20;

/// What may be read and kept. Tests have smaller ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes after unpacking.
    pub unpacked: u64,
    /// Bytes of one file that is kept: /proc/cpuinfo of 2048 CPUs has 5 MiB.
    pub file: u64,
    /// Bytes of all files that are kept, their names included.
    pub kept: u64,
    /// Entries of any kind.
    pub entries: u64,
}

pub(super) const LIMITS: Limits =
    Limits { unpacked: super::UNPACKED, file: 32 << 20, kept: 256 << 20, entries: 4_000_000 };

/// What a name of an archive's own costs beside its letters.
const NAME_COST: u64 = 128;

/// Whether bytes begin a tar archive: the sum of its first header is right.
pub(super) fn is_tar(head: &[u8]) -> bool {
    head.len() >= BLOCK && sum_is_right(&head[..BLOCK]) && head[0] != 0
}

fn sum_is_right(block: &[u8]) -> bool {
    let told = number(&block[148..156]);
    // The sum's own field counts as blanks.
    let parts = [&block[..148], &[b' '; 8], &block[156..BLOCK]];
    let sum: u64 = parts.iter().map(|part| part.iter().map(|byte| u64::from(*byte)).sum::<u64>()).sum();
    // Some old tars added signed bytes.
    let signed = || -> i64 {
        parts.iter().map(|part| part.iter().map(|byte| i64::from(byte.cast_signed())).sum::<i64>()).sum()
    };
    told.is_some_and(|told| told == sum || i64::try_from(told) == Ok(signed()))
}

/// An octal number, or GNU's base-256 of what is larger.
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let rest = field[1..].iter().try_fold(u64::from(field[0] & 0x7f), |sum, byte| {
            sum.checked_mul(256)?.checked_add(u64::from(*byte))
        });
        return rest;
    }
    let text = text(field);
    let digits = text.trim_matches([' ', '\0']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// What stands before an entry of what it is.
#[derive(Default)]
struct Ahead {
    name: Option<String>,
    link: Option<String>,
    size: Option<u64>,
    is_sparse: bool,
}

impl Ahead {
    /// Records of a pax header: `LENGTH KEY=VALUE\n`.
    fn pax(&mut self, mut records: &[u8]) {
        while let Some(at) = records.iter().position(|byte| *byte == b' ') {
            let length = std::str::from_utf8(&records[..at]).ok().and_then(|text| text.parse::<usize>().ok());
            let Some(record) = length.and_then(|length| records.get(at + 1..length)) else { return };
            records = &records[at + 1 + record.len()..];
            let record = String::from_utf8_lossy(record);
            let Some((key, value)) = record.trim_end_matches('\n').split_once('=') else { continue };
            match key {
                "path" | "GNU.sparse.name" => self.name = Some(value.to_string()),
                "linkpath" => self.link = Some(value.to_string()),
                "size" => self.size = value.parse().ok(),
                _ => {}
            }
            self.is_sparse |= key.starts_with("GNU.sparse.");
        }
    }
}

struct Reader<'a, R> {
    from: R,
    limits: Limits,
    wanted: &'a dyn Fn(&str) -> bool,
    files: Files,
    kept: u64,
}

/// The wanted files of an archive.
pub(super) fn read(from: impl Read, wanted: &dyn Fn(&str) -> bool, limits: Limits) -> io::Result<Files> {
    let mut reader = Reader { from, limits, wanted, files: Files::new(), kept: 0 };
    let mut ahead = Ahead::default();
    for _ in 0..limits.entries {
        let mut block = [0u8; BLOCK];
        match reader.from.read_exact(&mut block) {
            // What the packer wrote behind it shows whether everything before it is complete.
            Ok(()) if block == [0; BLOCK] => {
                return io::copy(&mut reader.from, &mut io::sink()).map(|_| reader.files);
            }
            Ok(()) if sum_is_right(&block) => {}
            Ok(()) => return Err(damaged("a header in it is damaged")),
            Err(error) => return Err(cut_short(error)),
        }
        reader.entry(&block, &mut ahead)?;
    }
    Err(damaged("it has more entries than any support archive"))
}

/// Whether a name is that of an archive in the archive.
pub(super) fn is_archive(name: &str) -> bool {
    let short = [".tar", ".tgz", ".txz", ".tbz", ".tbz2"];
    short.iter().any(|end| name.ends_with(end))
        || name.rsplit('/').next().is_some_and(|own| own.contains(".tar."))
}

/// What ends between two bytes that belong together.
const CUT_SHORT: &str = "it ends early: the archive is cut short; fetch or pack it again";

/// What a packer says about it is more exact.
fn cut_short(error: io::Error) -> io::Error {
    match error.get_ref() {
        None if error.kind() == io::ErrorKind::UnexpectedEof => damaged(CUT_SHORT),
        _ => error,
    }
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

impl<R: Read> Reader<'_, R> {
    fn entry(&mut self, block: &[u8; BLOCK], ahead: &mut Ahead) -> io::Result<()> {
        let size = number(&block[124..136]).ok_or_else(|| damaged("a header in it is damaged"))?;
        match block[156] {
            b'L' => ahead.name = Some(text(&self.small(size)?)),
            b'K' => ahead.link = Some(text(&self.small(size)?)),
            b'x' => {
                let records = self.small(size)?;
                ahead.pax(&records);
            }
            b'g' => self.skip(size)?,
            kind => {
                let ahead = std::mem::take(ahead);
                // GNU's own headers have times where POSIX has the start of a long name.
                let is_posix = &block[257..263] == b"ustar\0";
                let prefix = if is_posix { text(&block[345..500]) } else { String::new() };
                let short = text(&block[..100]);
                let named = if prefix.is_empty() { short } else { format!("{prefix}/{short}") };
                let name = ahead.name.unwrap_or(named);
                let link = ahead.link.unwrap_or_else(|| text(&block[157..257]));
                let size = ahead.size.unwrap_or(size);
                let is_old_sparse = kind == b'S';
                if is_old_sparse {
                    self.skip_map(block)?;
                }
                return self.keep(kind, &name, &link, size, ahead.is_sparse || is_old_sparse);
            }
        }
        Ok(())
    }

    fn keep(&mut self, kind: u8, name: &str, link: &str, size: u64, is_sparse: bool) -> io::Result<()> {
        let is_file = matches!(kind, 0 | b'0' | b'7' | b'S');
        // A folder of old tar is a file whose name ends in a slash.
        let is_folder = kind == b'5' || is_file && name.ends_with('/');
        // Links, folders and devices have no content, whatever their size says.
        let content = if is_file || !matches!(kind, b'1'..=b'6') { size } else { 0 };
        if !(self.wanted)(name) {
            return self.skip(content);
        }
        if is_archive(name) {
            self.skip(content)?;
            return self.put(name, Node::LeftOut, 0);
        }
        if is_folder {
            self.skip(content)?;
            return self.put(name, Node::Folder(Default::default()), 0);
        }
        if is_file && !is_sparse && size <= self.limits.file {
            let bytes = self.content(size)?;
            return self.put(name, Node::File(bytes), size);
        }
        self.skip(content)?;
        match kind {
            b'1' => {
                let target = self.files.plain(link).map(<[u8]>::to_vec);
                target.map_or(Ok(()), |bytes| {
                    let length = bytes.len() as u64;
                    self.put(name, Node::File(bytes), length)
                })
            }
            b'2' => self.put(name, Node::Link(link.to_string()), link.len() as u64),
            _ if is_file => self.put(name, Node::LeftOut, 0),
            _ => Ok(()),
        }
    }

    fn put(&mut self, name: &str, node: Node, size: u64) -> io::Result<()> {
        self.kept += size + name.len() as u64 + NAME_COST;
        if self.kept > self.limits.kept {
            return Err(damaged("its data of a host is larger than any host reports"));
        }
        self.files.insert(name, node);
        Ok(())
    }

    fn small(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size <= LONGEST_NAME { self.content(size) } else { Err(damaged("a name in it is too long")) }
    }

    /// An entry's bytes, with those that fill its last block.
    fn content(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.from.by_ref().take(size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            return Err(damaged(CUT_SHORT));
        }
        self.drop_bytes(size.next_multiple_of(BLOCK as u64) - size)?;
        Ok(bytes)
    }

    fn skip(&mut self, size: u64) -> io::Result<()> {
        let whole = size.checked_next_multiple_of(BLOCK as u64);
        self.drop_bytes(whole.ok_or_else(|| damaged("a header in it is damaged"))?)
    }

    fn drop_bytes(&mut self, count: u64) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        if io::copy(&mut self.from.by_ref().take(count), &mut io::sink())? == count {
            Ok(())
        } else {
            Err(damaged(CUT_SHORT))
        }
    }

    /// The further blocks in which GNU's old form lists holes.
    fn skip_map(&mut self, block: &[u8; BLOCK]) -> io::Result<()> {
        let mut goes_on = block[482] != 0;
        while goes_on {
            let mut more = [0u8; BLOCK];
            self.from.read_exact(&mut more).map_err(cut_short)?;
            goes_on = more[504] != 0;
        }
        Ok(())
    }
}
