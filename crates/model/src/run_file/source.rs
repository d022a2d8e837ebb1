//! Opening what someone named as a file, and unpacking it: no one waits forever, and nothing
//! grows without bound.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::bundle;
use super::limits::Limits;

/// Seconds to wait for the next bytes of a pipe.
const PATIENCE_S: i64 = 60;

/// How gzip begins.
pub const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file that is open for reading: a regular one, or a pipe that this process was started with
/// (`<(zcat FILE)`).
pub struct Source {
    file: File,
    path: PathBuf,
    regular: bool,
}

/// Device, inode and birth, where the file system reports it, of a file. The inode of one that is
/// gone is given to others.
type Identity = (u64, u64, Option<SystemTime>);

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino(), file.created().ok())
}

/// All files that were opened here: none of them is written over.
static READ: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

/// Whether this process has read that file as what someone named.
pub fn was_read(file: &Metadata) -> bool {
    READ.lock().is_ok_and(|read| read.contains(&identity(file)))
}

/// Opens a file without waiting for anyone: a folder, a named pipe, a device and a socket are
/// refused. `BUNDLE/FILE` is a file of a bundle.
pub fn open(path: &Path) -> anyhow::Result<Source> {
    if let Some((bundle, file)) = bundle::inside(path) {
        let file = bundle::extract(bundle, file)?;
        return Ok(Source { file, path: path.to_path_buf(), regular: true });
    }
    let shown = path.display();
    let cannot = || format!("cannot open {shown}");
    refuse(path, &std::fs::metadata(path).with_context(cannot)?)?;
    // What became a named pipe in between is not waited for either.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file =
        File::options().read(true).custom_flags(flags.bits() as i32).open(path).with_context(cannot)?;
    let metadata = file.metadata().with_context(cannot)?;
    refuse(path, &metadata)?;
    if let Ok(mut read) = READ.lock() {
        read.insert(identity(&metadata));
    }
    Ok(Source { file, path: path.to_path_buf(), regular: metadata.is_file() })
}

fn refuse(path: &Path, metadata: &Metadata) -> anyhow::Result<()> {
    let (shown, kind) = (path.display(), metadata.file_type());
    match () {
        () if kind.is_file() || (kind.is_fifo() && is_inherited(path)) => Ok(()),
        () if kind.is_dir() => bail!("{shown} is a folder: name a file in it"),
        () if kind.is_fifo() => {
            bail!("{shown} is a named pipe: write its output to a file and name that file")
        }
        () if kind.is_socket() => {
            bail!("{shown} is a socket: write its output to a file and name that file")
        }
        () => bail!("{shown} is a device: copy its content to a file and name that file"),
    }
}

/// Whether a path means what is open already, as a shell's `<(...)` does.
fn is_inherited(path: &Path) -> bool {
    ["/dev/fd/", "/dev/stdin", "/proc/self/fd/"]
        .iter()
        .any(|begin| path.as_os_str().as_encoded_bytes().starts_with(begin.as_bytes()))
}

impl Source {
    /// Whether it is a regular file and no pipe: it can be read again, and from any place.
    pub fn is_file(&self) -> bool {
        self.regular
    }

    pub(super) fn file(&mut self) -> Option<&mut File> {
        self.regular.then_some(&mut self.file)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            let limit = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&limit)) {
                Ok(0) => {
                    return Err(io::Error::other(Exceeded(format!(
                        "{} sent nothing for {PATIENCE_S} s: write its output to a file and name that file",
                        self.path.display()
                    ))));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Why the whole of a file is refused, wherever reading it had come to.
#[derive(Debug)]
pub struct Exceeded(String);

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Exceeded {}

impl Exceeded {
    /// What an error says about a limit; none where it is about something else.
    pub fn of(error: &io::Error) -> Option<&Exceeded> {
        error.get_ref()?.downcast_ref()
    }
}

/// What a file holds, unpacked where it is gzip, within the limits.
pub fn unpacked<'r>(
    reader: impl Read + Send + 'r,
    limits: &Limits,
) -> io::Result<Box<dyn BufRead + Send + 'r>> {
    let taken = Arc::new(AtomicU64::new(0));
    let mut reader = BufReader::new(Counted { inner: reader, taken: Arc::clone(&taken) });
    let mut first = Vec::new();
    reader.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
    let packed = first == GZIP;
    let reader = Cursor::new(first).chain(reader);
    let bounds = |packed| Bounds {
        given: 0,
        taken,
        packed,
        size: limits.size,
        expansion: limits.expansion,
        from: limits.expansion_from,
    };
    Ok(if packed {
        Box::new(BufReader::new(Bounded { inner: MultiGzDecoder::new(reader), bounds: bounds(true) }))
    } else {
        Box::new(BufReader::new(Bounded { inner: reader, bounds: bounds(false) }))
    })
}

struct Counted<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.taken.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

struct Bounds {
    given: u64,
    taken: Arc<AtomicU64>,
    packed: bool,
    size: u64,
    expansion: u64,
    from: u64,
}

struct Bounded<R> {
    inner: R,
    bounds: Bounds,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        let bounds = &mut self.bounds;
        bounds.given += length as u64;
        let (given, taken) = (bounds.given, bounds.taken.load(Ordering::Relaxed));
        if bounds.packed && given > bounds.from && given / bounds.expansion > taken {
            return Err(io::Error::other(Exceeded(format!(
                "its first {} unpack to more than {} times their size: it is damaged or malicious; unpack it \
                 yourself (gzip -d) and look at it",
                words(taken),
                bounds.expansion
            ))));
        }
        if given > bounds.size {
            let unpacked = if bounds.packed { " unpacked" } else { "" };
            return Err(io::Error::other(Exceeded(format!(
                "it has more than {}{unpacked}, the limit of a file: split it into several files",
                words(bounds.size)
            ))));
        }
        Ok(length)
    }
}

/// A number of bytes as people say it.
pub fn words(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: &[u8], limits: &Limits) -> io::Result<usize> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes)?;
        let packed = packer.finish()?;
        unpacked(packed.as_slice(), limits)?.read_to_end(&mut Vec::new())
    }

    #[test]
    fn a_packed_file_may_be_long_and_not_much_longer_than_its_size() {
        let limits = Limits { expansion_from: 1000, expansion: 20, ..Limits::DEFAULT };
        let noise: Vec<u8> =
            (0..100_000u32).map(|n| (n.wrapping_mul(n).wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        assert!(matches!(read(&noise, &limits), Ok(100_000)));
        let error = read(&[0; 100_000], &limits).expect_err("it unpacks to a thousand times its size");
        let why = Exceeded::of(&error).expect("a limit").to_string();
        assert!(why.contains("more than 20 times their size"), "{why}");
        // A short one may be of any shape.
        assert!(matches!(read(&[0; 1000], &limits), Ok(1000)));
        let error = read(&noise, &Limits { size: 99_999, ..limits }).expect_err("longer than a file may be");
        assert!(Exceeded::of(&error).expect("a limit").to_string().contains("97 KiB unpacked"), "{error}");
    }
}
