//! The run file: written a line at a time, read whole, tolerant of a torn tail and of what newer versions add.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use flate2::read::MultiGzDecoder;

use crate::model::{Header, Packed, Record, Run, SCHEMA, Samples, Visit};

/// A compressed file may not unpack to more than this: a run of a 512-CPU host's full profile takes a tenth of it.
const LARGEST: u64 = 2 << 30;

/// What a run file's name ends in.
pub const EXTENSION: &str = ".assay.jsonl";

/// Appends records to a run file.
pub struct Writer {
    file: File,
    path: PathBuf,
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
                    let mut writer = Writer { file, path };
                    writer.append(&Record::Header(Box::new(header.clone())))?;
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

    /// Opens an incomplete run file for more. A torn last line is closed, so that what is written next stands alone.
    pub fn resume(path: &Path) -> anyhow::Result<Writer> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot append to {}", path.display()))?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            io::Seek::seek(&mut file, io::SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let mut writer = Writer { file, path: path.to_path_buf() };
        if last != *b"\n" {
            writer.write(b"\n")?;
        }
        Ok(writer)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one record as one line, in one write, so that a crash tears one line at most.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(record).context("cannot serialise a record")?;
        line.push(b'\n');
        self.write(&line)
    }

    /// Asks the kernel to bring everything to the disk.
    pub fn sync(&self) {
        // A file system that cannot sync (a pipe, some FUSE mounts) keeps its lines as safe as it can.
        let _ = self.file.sync_data();
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| {
            format!(
                "cannot append to {}; what it holds already is safe: make room and run the same command again to go on",
                self.path.display()
            )
        })
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

/// Reads a run file, plain or gzip-compressed.
pub fn read(path: &Path) -> anyhow::Result<Run> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    unpack(BufReader::new(file))
        .with_context(|| format!("{} is not a run file that can be used", path.display()))
}

/// Reads a run from bytes that may be gzip-compressed.
pub fn unpack(mut reader: impl BufRead) -> anyhow::Result<Run> {
    let compressed = reader.fill_buf().context("cannot read it")?.starts_with(&[0x1f, 0x8b]);
    match compressed {
        true => parse(BufReader::new(MultiGzDecoder::new(reader).take(LARGEST))),
        false => parse(reader.take(LARGEST)),
    }
}

/// Reads a run from any text. Fails only where there is no usable header; everything else is noted as damage.
pub fn parse(mut text: impl BufRead) -> anyhow::Result<Run> {
    let mut run: Option<(Run, Known)> = None;
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        match text.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // A damaged gzip stream ends here; what came before is good.
            Err(error) => match &mut run {
                Some((run, _)) => {
                    run.damage.push(format!("line {number} and all after it cannot be read: {error}"));
                    break;
                }
                None => return Err(error).context("cannot read the first line"),
            },
        }
        let whole = line.last() == Some(&b'\n');
        let content = line.trim_ascii();
        if content.is_empty() {
            continue;
        }
        match &mut run {
            None => {
                let first = first_line(content)?;
                let known = Known::of(&first);
                run = Some((first, known));
            }
            Some((run, known)) => {
                if let Err(why) = next_line(run, known, content) {
                    let torn = if whole { "" } else { " (the file ends in the middle of it)" };
                    run.damage.push(format!("line {number} was left out{torn}: {why}"));
                }
            }
        }
    }
    run.map(|(run, _)| run).context("it is empty")
}

/// What visits are held against, so that each costs the same however many there are.
struct Known {
    /// The metrics of each benchmark of the catalogue.
    metrics: HashMap<String, HashSet<String>>,
    orders: HashSet<u32>,
}

impl Known {
    fn of(run: &Run) -> Known {
        let mut metrics: HashMap<String, HashSet<String>> = HashMap::new();
        for title in &run.header.catalogue {
            let names = || title.metrics.iter().map(|metric| metric.name.to_string()).collect();
            metrics.entry(title.id.to_string()).or_insert_with(names);
        }
        Known { metrics, orders: HashSet::new() }
    }
}

fn first_line(content: &[u8]) -> anyhow::Result<Run> {
    let value: serde_json::Value =
        serde_json::from_slice(content).context("its first line is not a whole JSON object")?;
    let header = value.get("header").context("its first line is not the header of a run")?;
    let schema =
        header.get("schema").and_then(serde_json::Value::as_u64).context("its header has no schema")?;
    ensure!(
        schema <= u64::from(SCHEMA),
        "it was written by a newer Assay (schema {schema}, this one reads up to {SCHEMA}): use that version"
    );
    let header: Header =
        serde::Deserialize::deserialize(header).context("its header cannot be understood")?;
    Ok(Run {
        header,
        visits: Vec::new(),
        time_lines: Vec::new(),
        events: Vec::new(),
        summary: None,
        damage: Vec::new(),
    })
}

fn next_line(run: &mut Run, known: &mut Known, content: &[u8]) -> Result<(), String> {
    match serde_json::from_slice(content) {
        Ok(Record::Header(_)) => Err("it is a second header".to_string()),
        Ok(Record::Visit(visit)) => {
            check_visit(run, known, &visit)?;
            known.orders.insert(visit.order);
            run.visits.push(*visit);
            Ok(())
        }
        Ok(Record::TimeLine(line)) => {
            run.time_lines.push(line);
            Ok(())
        }
        Ok(Record::Event(event)) => {
            run.events.push(event);
            Ok(())
        }
        Ok(Record::Summary(summary)) => {
            run.summary = Some(*summary);
            Ok(())
        }
        Err(error) if is_unknown_record(content) => {
            // A record kind that a newer version added: not ours to complain about.
            let _ = error;
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn is_unknown_record(content: &[u8]) -> bool {
    const KNOWN: [&str; 5] = ["header", "visit", "time_line", "event", "summary"];
    let object: Option<serde_json::Map<_, _>> = serde_json::from_slice(content).ok();
    object.is_some_and(|object| object.len() == 1 && object.keys().all(|key| !KNOWN.contains(&key.as_str())))
}

/// Everything that later steps rely on without looking.
fn check_visit(run: &Run, known: &Known, visit: &Visit) -> Result<(), String> {
    let Some(planned) = run.header.plan.get(visit.case as usize) else {
        return Err(format!("its case {} is not in the plan", visit.case));
    };
    if known.orders.contains(&visit.order) {
        return Err(format!("visit {} stands in the file twice", visit.order));
    }
    let Some(metrics) = known.metrics.get(planned.case.bench.as_ref()) else {
        return Err(format!("its benchmark {} is not in the catalogue", planned.case.bench));
    };
    for samples in &visit.samples {
        if let Some(metric) = samples.metrics.iter().find(|name| !metrics.contains(*name)) {
            return Err(format!("its metric {metric:?} is not in the catalogue"));
        }
        check_columns(samples)?;
    }
    Ok(())
}

/// Every column is as long as the windows are many.
pub fn check_columns(samples: &Samples) -> Result<(), String> {
    let windows = samples.len();
    let fits = |column: &Packed| match column {
        Packed::Same(_) => true,
        Packed::Each(values) => values.len() == windows,
    };
    if windows == 0 || samples.metrics.is_empty() {
        return Err("it holds samples without windows or metrics".to_string());
    }
    if samples.warm_up >= windows {
        return Err(format!("all of its {windows} windows are warm-up"));
    }
    if !fits(&samples.work) || samples.beside.columns().any(|(_, column)| !fits(column)) {
        return Err("its columns differ in length".to_string());
    }
    if !samples.histograms.is_empty() && samples.histograms.len() != windows {
        return Err("its histograms and windows differ in number".to_string());
    }
    match samples.histograms.iter().all(|histogram| histogram.ns.len() == histogram.count.len()) {
        true => Ok(()),
        false => Err("a histogram's values and counts differ in number".to_string()),
    }
}

/// The newest incomplete run file of a folder that `agrees` says may be gone on with, and its content.
pub fn resumable(dir: &Path, agrees: impl Fn(&Header) -> bool) -> Option<(PathBuf, Run)> {
    let entries = std::fs::read_dir(dir).ok()?;
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let ours = name.to_str().is_some_and(|name| name.ends_with(EXTENSION));
            Some((entry.metadata().ok().filter(|_| ours)?.modified().ok()?, entry.path()))
        })
        .collect();
    files.sort();
    // A file that cannot be read (cut inside its header, foreign) is left where it is.
    let runs = files.into_iter().rev().filter_map(|(_, path)| Some((read(&path).ok()?, path)));
    let mut open = runs.filter(|(run, _)| run.summary.is_none() && agrees(&run.header));
    open.next().map(|(run, path)| (path, run))
}
