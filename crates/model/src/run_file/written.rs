//! All that was written of a run, packed in memory: whatever someone does to its file, it can be
//! written again.

use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// The bytes of a run file, as its writer knows them.
#[derive(Default)]
pub(super) struct Written {
    /// A gzip member for everything that was added.
    packed: Vec<u8>,
    length: u64,
    torn: bool,
}

impl Written {
    /// What a file holds already.
    pub(super) fn of(mut file: impl Read) -> io::Result<Written> {
        let (mut written, mut part) = (Written::default(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut part)? {
                0 => return Ok(written),
                length => written.add(&part[..length])?,
            }
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut encoder = GzEncoder::new(&mut self.packed, Compression::fast());
        encoder.write_all(bytes)?;
        encoder.finish()?;
        self.length += bytes.len() as u64;
        self.torn = bytes.last().map_or(self.torn, |last| *last != b'\n');
        Ok(())
    }

    /// Bytes that a file of it has.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether its last line is torn: what is written next must not become a part of it.
    pub(super) fn is_torn(&self) -> bool {
        self.torn
    }

    /// All of it from its start.
    pub(super) fn whole(&self) -> impl Read + '_ {
        MultiGzDecoder::new(self.packed.as_slice())
    }

    /// Whether a file holds this and nothing else.
    pub(super) fn is_held_by(&self, file: impl Read) -> io::Result<bool> {
        let (mut own, mut file) = (BufReader::new(self.whole()), BufReader::new(file));
        loop {
            let (expected, found) = (own.fill_buf()?, file.fill_buf()?);
            let length = expected.len().min(found.len());
            if length == 0 {
                return Ok(expected.len() == found.len());
            }
            if expected[..length] != found[..length] {
                return Ok(false);
            }
            own.consume(length);
            file.consume(length);
        }
    }
}
