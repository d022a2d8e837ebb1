//! What gzip, bzip2, xz and zstd packed, unpacked while it is read, also nested.
//!
//! Every byte of an archive is summed up in what its packer wrote last: who stops before the end
//! takes half a file for a whole one.

use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::run_file::{Exceeded, words};

/// Memory that an xz stream may ask for, in KiB: `xz -9` takes 65 MiB.
const XZ_MEMORY: u32 = 128 << 10;

/// Packed files nested.
const MAX_DEPTH: usize = 4;

/// The longest sign by which a packer is known.
const HEAD: usize = 6;

/// Bytes from a file as they were before they were packed. More than `most` of them are an error;
/// so is, at its end, a file that is not whole.
pub fn unpacked<'r>(from: impl Read + 'r, most: u64) -> io::Result<Box<dyn Read + 'r>> {
    let mut plain: Box<dyn Read + 'r> = Box::new(Layer { packer: "", inner: from, left: most, most });
    for _ in 0..=MAX_DEPTH {
        let head = head_of(&mut plain, HEAD)?;
        let packed = BufReader::new(Cursor::new(head.clone()).chain(plain));
        let (packer, inner): (_, Box<dyn Read + 'r>) = match head.as_slice() {
            [0x1f, 0x8b, 8, ..] => ("gzip", Box::new(MultiGzDecoder::new(packed))),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => {
                ("bzip2", Box::new(MultiBzDecoder::new(packed)))
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                ("xz", Box::new(XzReader::new_mem_limit(packed, true, XZ_MEMORY)))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", Box::new(Zstd::new(packed))),
            _ => return Ok(Box::new(packed)),
        };
        plain = Box::new(Layer { packer, inner, left: most, most });
    }
    Err(unread(io::ErrorKind::InvalidData, format!("it was compressed more than {MAX_DEPTH} times")))
}

/// The first bytes, fewer where there are no more.
pub fn head_of(from: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(length);
    from.by_ref().take(length as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// What is said about a packed file; the layers around it say no more.
#[derive(Debug)]
struct Unread(String);

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Unread {}

fn unread(kind: io::ErrorKind, why: String) -> io::Error {
    io::Error::new(kind, Unread(why))
}

/// One packer's bytes, with its errors in words.
struct Layer<R> {
    /// Empty for the file itself.
    packer: &'static str,
    inner: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Layer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).map_err(|error| self.said(error))?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            let unpacked = if self.packer.is_empty() { "it is" } else { "unpacked it is" };
            unread(
                io::ErrorKind::FileTooLarge,
                format!("{unpacked} larger than {}, the limit", words(self.most)),
            )
        })?;
        Ok(count)
    }
}

impl<R> Layer<R> {
    fn said(&self, error: io::Error) -> io::Error {
        let is_said = error.get_ref().is_some_and(|inner| inner.is::<Unread>());
        // What went wrong with the file itself is no fault of what is in it.
        let is_of_file = self.packer.is_empty() || error.raw_os_error().is_some();
        let passes = error.kind() == io::ErrorKind::Interrupted || Exceeded::of(&error).is_some();
        match error.kind() {
            _ if is_said || is_of_file || passes => error,
            io::ErrorKind::UnexpectedEof => unread(
                error.kind(),
                format!(
                    "it ends early: the data of {} is incomplete; fetch or compress it again",
                    self.packer
                ),
            ),
            kind => unread(kind, format!("the data of {} is damaged: {error}", self.packer)),
        }
    }
}

/// zstd's frames, one after the other.
struct Zstd<R> {
    source: R,
    frame: FrameDecoder,
    /// Whether a frame has begun and not ended.
    is_open: bool,
}

/// The start of a frame with the smallest window.
const SMALLEST: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 0];

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        let mut frame = FrameDecoder::new();
        // The library bounds the window of all frames but the first: this is the first.
        let _ = frame.init(SMALLEST.as_slice());
        Zstd { source, frame, is_open: false }
    }

    /// Begins the next frame; false where there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(of_zstd(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            if !self.is_open && !self.begin()? {
                break;
            }
            while self.frame.can_collect() < buffer.len() && !self.frame.is_finished() {
                let missing = buffer.len() - self.frame.can_collect();
                let more =
                    self.frame.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBytes(missing));
                more.map_err(of_zstd)?;
            }
            let count = self.frame.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            let written = self.frame.get_checksum_from_data();
            if written.is_some() && written != self.frame.get_calculated_checksum() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a checksum in it is wrong"));
            }
            self.is_open = false;
        }
        Ok(0)
    }
}

/// The library wraps read errors in its own.
fn of_zstd(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        if let Some(told) = one.downcast_ref::<io::Error>() {
            let said = told.get_ref().and_then(|inner| inner.downcast_ref::<Unread>());
            return match (said, told.raw_os_error()) {
                (Some(said), _) => unread(told.kind(), said.0.clone()),
                (_, Some(number)) => io::Error::from_raw_os_error(number),
                _ => io::Error::new(told.kind(), error.to_string()),
            };
        }
        cause = one.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests;
