//! Writing a run file: a line at a time, under a lock, and going on with one that was cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::EXTENSION;
use super::reader::{first_line, read};
use crate::model::{Header, Record, Run};

/// Appends records to a run file, which is locked meanwhile: two runs never write into one file.
pub struct Writer {
    file: File,
    path: PathBuf,
    /// The last line is torn: what is written next must not become a part of it.
    torn: bool,
}

impl Writer {
    /// Creates `DIR/HOST-TIME.assay.jsonl` and writes the header. Never overwrites: a name that is taken gets `-2`.
    pub fn create(dir: &Path, header: &Header) -> anyhow::Result<Writer> {
        std::fs::create_dir_all(dir).with_context(|| {
            format!("cannot create the folder {}; choose another one with --out", dir.display())
        })?;
        let stem = format!("{}-{}", file_name_part(&header.host), file_name_part(&header.started));
        for attempt in 1..1000 {
            let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let path = dir.join(format!("{stem}{suffix}{EXTENSION}"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    lock(&file)?;
                    let mut writer = Writer { file, path, torn: false };
                    if let Err(error) = writer.write_line(&Record::Header(Box::new(header.clone()))) {
                        // Half a header is of no use to anybody. If it cannot be removed either, it does no harm.
                        let _ = std::fs::remove_file(&writer.path);
                        return Err(error).with_context(|| {
                            format!(
                                "cannot write {}, and nothing was measured: make room, or choose another folder with \
                                 --out",
                                writer.path.display()
                            )
                        });
                    }
                    return Ok(writer);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("cannot create {}; choose another folder with --out", path.display())
                    });
                }
            }
        }
        bail!("a thousand run files of the name {stem} exist in {}", dir.display())
    }

    /// Opens a run file for more; an error where another process is writing it.
    fn open(path: &Path) -> io::Result<Writer> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        lock(&file)?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            io::Seek::seek(&mut file, io::SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Writer { file, path: path.to_path_buf(), torn: last != *b"\n" })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one record.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        self.write_line(record).with_context(|| {
            format!(
                "cannot append to {}; what it holds already is safe: make room and run the same command again to go on",
                self.path.display()
            )
        })
    }

    /// One record as one line, in one write, so that a crash tears one line at most.
    fn write_line(&mut self, record: &Record) -> anyhow::Result<()> {
        let mut line = if self.torn { b"\n".to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut line, record).context("cannot serialise a record")?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.torn = false;
        Ok(())
    }

    /// Asks the kernel to bring everything to the disk.
    pub fn sync(&self) {
        // A file system that cannot sync (a pipe, some FUSE mounts) keeps its lines as safe as it can.
        let _ = self.file.sync_data();
    }
}

/// Takes the lock that says "I am writing this". Children do not inherit it (their copy is closed when they start),
/// and it ends with the process, however that ends.
fn lock(file: &File) -> io::Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(io::Error::other("another process is writing it")),
        // A file system without locks (some network mounts): as safe as it can be.
        _ => Ok(()),
    }
}

/// Letters, digits, dots and dashes of a text, at most 64 of them: a host may call itself anything.
fn file_name_part(text: &str) -> String {
    let part: String = text
        .chars()
        .filter(|c| *c != ':')
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    match part.trim_start_matches('.') {
        "" => "host".to_string(),
        part => part.to_string(),
    }
}

/// The newest incomplete run file of a folder that `agrees` says may be gone on with, opened for more, and its content.
/// Files that cannot be read (cut inside their header, foreign) or written are left where they are.
pub fn resumable(dir: &Path, agrees: impl Fn(&Header) -> bool) -> Option<(Writer, Run)> {
    let entries = std::fs::read_dir(dir).ok()?;
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let ours = path.file_name()?.to_str()?.ends_with(EXTENSION);
            // Only plain files: opening a pipe would wait for its writer.
            let metadata = std::fs::metadata(&path).ok().filter(|metadata| ours && metadata.is_file())?;
            Some((metadata.modified().ok()?, path))
        })
        .collect();
    files.sort();
    files.into_iter().rev().find_map(|(_, path)| {
        // A folder may hold hundreds of complete runs: most are told apart by their header.
        let header = first_line(&mut BufReader::new(File::open(&path).ok()?)).ok()?.header;
        agrees(&header).then_some(())?;
        // Opened, and so locked, before it is read: nobody adds to it in between.
        let writer = Writer::open(&path).ok()?;
        let run = read(&path).ok()?;
        run.summary.is_none().then_some((writer, run))
    })
}
