//! Writing a run file: a line at a time, under a lock, through a descriptor that is held until the end.

use std::io::{BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use super::line::sealed;
use super::place::{Place, Refused, open_folder};
use super::reader::unpack;
use crate::model::{Header, Record, Run};

/// A pass may be long: what was appended is brought to the disk so often at least.
const SYNC_EVERY: Duration = Duration::from_secs(10);

/// Appends records to a run file, which is locked meanwhile: two runs never write into one file.
pub struct Writer {
    place: Place,
    /// The last line is torn: what is written next must not become a part of it.
    torn: bool,
    synced: Instant,
}

impl Writer {
    /// Creates `DIR/HOST-TIME.assay.jsonl` and writes the header, which is on the disk when this returns. Never overwrites: a
    /// name that is taken gets `-2`.
    pub fn create(dir: &Path, header: &Header) -> anyhow::Result<Writer> {
        let folder = std::fs::create_dir_all(dir).and_then(|()| open_folder(dir)).with_context(|| {
            format!("cannot create the folder {}; choose another one with --out", dir.display())
        })?;
        let stem = format!("{}-{}", file_name_part(&header.host), file_name_part(&header.started));
        let place = Place::create(&Arc::new(folder), dir, &stem).with_context(|| {
            format!("cannot create a run file in {}; choose another folder with --out", dir.display())
        })?;
        let place = place
            .with_context(|| format!("a thousand run files of the name {stem} exist in {}", dir.display()))?;
        let mut writer = Writer { place, torn: false, synced: Instant::now() };
        if let Err(error) = writer.write_line(&Record::Header(Box::new(header.clone()))) {
            // Half a header is of no use to anybody. If it cannot be removed either, it does no harm.
            writer.place.remove();
            return Err(error).with_context(|| {
                format!(
                    "cannot write {}, and nothing was measured: make room, or choose another folder with --out",
                    writer.path().display()
                )
            });
        }
        writer.sync();
        writer.place.sync_name();
        Ok(writer)
    }

    /// Goes on with a run file; an error where another process is writing it, or where it is not safe to.
    pub(super) fn open(folder: &Arc<std::os::fd::OwnedFd>, path: &Path) -> Result<Writer, Refused> {
        let place = Place::open(folder, path)?;
        let mut last = [b'\n'];
        if let Some(end) = place.file().metadata()?.len().checked_sub(1) {
            place.file().read_exact_at(&mut last, end)?;
        }
        Ok(Writer { place, torn: last != *b"\n", synced: Instant::now() })
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Where it stands, for whoever looks whether it still does.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Reads the run back as everybody else would, but through the file that is held.
    pub fn read(&self) -> anyhow::Result<Run> {
        unpack(BufReader::new(self.place.from_begin()))
            .with_context(|| format!("{} is not a run file that can be used", self.path().display()))
    }

    /// Where the path no longer leads to the file, saves all of it in the run's folder `own` or, where that cannot be, in one of
    /// `others`, and goes on there. An error: it could be saved nowhere.
    pub fn save_elsewhere(&mut self, own: &Path, others: &[PathBuf]) -> anyhow::Result<Option<Moved>> {
        let Some(why) = self.place.lost() else { return Ok(None) };
        let from = self.path().to_path_buf();
        self.place = self.place.copy(own, others).map_err(|places| {
            anyhow!(
                "{} is no longer in its place ({why}), and could be saved nowhere else ({places})",
                from.display()
            )
        })?;
        Ok(Some(Moved { from, why }))
    }

    /// Adds one record.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        self.write_line(record).with_context(|| {
            format!(
                "cannot append to {}; what it holds already is safe: make room and run the same command again to go on",
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
        let mut line = if self.torn { b"\n".to_vec() } else { Vec::new() };
        line.extend(sealed(record).context("cannot serialise a record")?);
        self.torn = true;
        self.place.file().write_all(&line)?;
        self.torn = false;
        Ok(())
    }

    /// Brings everything to the disk. It is there when this returns: nothing is written while something is measured.
    pub fn sync(&mut self) {
        self.place.sync();
        self.synced = Instant::now();
    }
}

/// A run file that was saved elsewhere.
pub struct Moved {
    pub from: PathBuf,
    pub why: String,
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
