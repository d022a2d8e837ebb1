//! What gzip, xz and bzip2 packed, unpacked while it is read, up to a limit.

use std::io::{self, BufReader, Read};

/// Memory that an xz stream may ask for, in KiB: `xz -9` takes 65 MiB.
const XZ_MEMORY: u32 = 128 << 10;

/// Bytes from a file as they were before it was packed. More than `limit` of them are an error.
pub(super) fn unpacked<'a>(mut file: impl Read + 'a, limit: u64) -> io::Result<Box<dyn Read + 'a>> {
    let head = head_of(&mut file, 6)?;
    let whole = BufReader::new(io::Cursor::new(head.clone()).chain(file));
    let plain: Box<dyn Read + 'a> = match head.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::bufread::MultiBzDecoder::new(whole)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_MEMORY))
        }
        _ => Box::new(whole),
    };
    Ok(Box::new(Capped { plain, left: limit }))
}

/// The first bytes, fewer where there are no more.
pub(super) fn head_of(file: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(length);
    file.by_ref().take(length as u64).read_to_end(&mut head)?;
    Ok(head)
}

struct Capped<'a> {
    plain: Box<dyn Read + 'a>,
    left: u64,
}

impl Read for Capped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.plain.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::FileTooLarge, "unpacked it is larger than any archive of support")
        })?;
        Ok(count)
    }
}
