//! Writing a run file: a line at a time, under a lock, through a descriptor that is held until the
//! end.

use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::Limits;
use super::line::sealed;
use super::place::{NotResumable, Place, open_folder};
use super::reader::unpack;
use super::written::Written;
use crate::{Header, Record, Run};

/// A pass may be long: what was appended is synced to the disk at least this often.
const SYNC_EVERY: Duration = Duration::from_secs(10);

/// Appends records to a run file, which is locked meanwhile: two runs never write into one file.
pub struct Writer {
    place: Place,
    /// Also what was there already.
    written: Written,
    synced: Instant,
}

impl Writer {
    /// Creates `DIR/HOST-TIME.assay.jsonl` and writes the header, which is on the disk when this
    /// returns. Never overwrites: a name that is taken gets `-2`.
    pub fn create(dir: &Path, header: &Header) -> anyhow::Result<Writer> {
        let folder = std::fs::create_dir_all(dir).and_then(|()| open_folder(dir)).with_context(|| {
            format!("cannot create the folder {}; choose another with --out", dir.display())
        })?;
        let stem = stem(&header.host, &header.started);
        let place = Place::create(&Arc::new(folder), dir, &stem).with_context(|| {
            format!("cannot create a run file in {}; choose another folder with --out", dir.display())
        })?;
        let place =
            place.with_context(|| format!("a thousand run files named {stem} exist in {}", dir.display()))?;
        let mut writer = Writer { place, written: Written::default(), synced: Instant::now() };
        if let Err(error) = writer.write_line(&Record::Header(Box::new(header.clone()))) {
            // Half a header is of no use to anyone. If it cannot be removed either, it does no
            // harm.
            writer.place.remove();
            return Err(error).with_context(|| {
                format!(
                    "cannot write {}, so nothing was measured: free space, or choose another folder with --out",
                    writer.path().display()
                )
            });
        }
        writer.sync();
        writer.place.sync_name();
        Ok(writer)
    }

    /// Goes on with a run file; an error where another process is writing it, or where it is not
    /// safe to.
    pub(super) fn open(folder: &Arc<std::os::fd::OwnedFd>, path: &Path) -> Result<Writer, NotResumable> {
        let place = Place::open(folder, path)?;
        // A file one byte longer than the limit is refused by every reader.
        let written = Written::of(place.whole().take(Limits::DEFAULT.size + 1))?;
        Ok(Writer { place, written, synced: Instant::now() })
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Reads the run back as everyone else would, from what was written into its file.
    pub fn read(&self) -> anyhow::Result<Run> {
        unpack(BufReader::new(self.written.whole()))
            .with_context(|| format!("{} is not a run file that can be used", self.path().display()))
    }

    /// What someone did to the file, as far as its metadata show; `None`: nothing.
    pub fn lost(&self) -> Option<String> {
        self.place.lost(self.written.length())
    }

    /// The same of all that it holds, which is read again.
    pub fn lost_or_changed(&self) -> Option<String> {
        let changed = || match self.written.is_held_by(self.place.whole()) {
            Ok(true) => None,
            Ok(false) => Some("was changed by another program".to_string()),
            Err(error) => Some(format!("is no longer readable ({error})")),
        };
        self.lost().or_else(changed)
    }

    /// Saves all that was written as a new file in the run's folder `own` or, where that cannot be,
    /// in one of `others`, and goes on there; the path that it had. An error: it could be saved
    /// nowhere.
    pub fn save_elsewhere(&mut self, own: &Path, others: &[PathBuf]) -> Result<PathBuf, String> {
        let from = self.path().to_path_buf();
        self.place = self.place.again(&self.written, own, others)?;
        Ok(from)
    }

    /// Adds one record.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        self.write_line(record).with_context(|| {
            format!(
                "cannot append to {}; its lines so far are safe: free space and run the same command again to \
                 resume",
                self.path().display()
            )
        })?;
        if self.synced.elapsed() > SYNC_EVERY {
            self.sync();
        }
        Ok(())
    }

    /// One record as one line, in one write, so that a crash tears one line at most.
    fn write_line(&mut self, record: &Record) -> anyhow::Result<()> {
        let mut line = if self.written.is_torn() { b"\n".to_vec() } else { Vec::new() };
        line.extend(sealed(record).context("cannot serialise a record")?);
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            let length = match self.place.file().write(rest) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.written.add(&rest[..length]).context("cannot pack a record")?;
            rest = &rest[length..];
        }
        Ok(())
    }

    /// Brings everything to the disk. It is there when this returns: nothing is written while
    /// something is measured.
    pub fn sync(&mut self) {
        self.place.sync();
        self.synced = Instant::now();
    }
}

/// How the run file of this host and time is called, without its ending.
pub fn stem(host: &str, started: &str) -> String {
    format!("{}-{}", file_name_part(host), file_name_part(started))
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
