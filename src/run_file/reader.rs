//! Reading a run file whole: what cannot be understood is left out and noted as damage.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use flate2::read::MultiGzDecoder;

use super::line::Seal;
use crate::model::{Header, Packed, RUN_FILE_SCHEMA, Record, Run, Samples, Summary, Visit};

/// A compressed file may not unpack to more than this: a run of a 512-CPU host's full profile takes a tenth of it.
const LARGEST: u64 = 2 << 30;

/// A longer line is none of ours: a visit's process may say half as much in all, a snapshot holds an eighth.
const LONGEST_LINE: u64 = 512 << 20;

/// Unreadable lines that are told one by one; the others are counted.
const DAMAGE_TOLD: usize = 100;

/// So much of a run file's end holds its last line, with room for what newer versions may add.
const TAIL: u64 = 256 << 10;

/// Reads a run file, plain or gzip-compressed.
pub fn read(path: &Path) -> anyhow::Result<Run> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    unpack(BufReader::new(file))
        .with_context(|| format!("{} is not a run file that can be used", path.display()))
}

/// The summary that closes a run file, and nothing else of it: of a plain file only its end is read, of a compressed one no
/// more than a line is kept. An error says why there is none.
pub fn summary(file: &mut File) -> anyhow::Result<Summary> {
    let mut begin = [0; 2];
    let packed = file.read_exact(&mut begin).is_ok() && begin == [0x1f, 0x8b];
    let mut tail = Vec::new();
    match packed {
        true => {
            io::Seek::rewind(file)?;
            keep_tail(MultiGzDecoder::new(BufReader::new(file)).take(LARGEST), &mut tail)
                .context("it is damaged: it cannot be unpacked to its end")?;
        }
        false => {
            let length = file.metadata()?.len();
            io::Seek::seek(file, io::SeekFrom::Start(length.saturating_sub(TAIL)))?;
            file.take(TAIL).read_to_end(&mut tail).context("cannot read its end")?;
        }
    }
    summary_in(&tail)
}

/// Keeps the last bytes of a stream.
fn keep_tail(mut stream: impl Read, tail: &mut Vec<u8>) -> io::Result<()> {
    let mut part = vec![0; 64 << 10];
    loop {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            length => tail.extend_from_slice(&part[..length]),
        }
        if tail.len() as u64 > 4 * TAIL {
            tail.drain(..tail.len() - TAIL as usize);
        }
    }
}

/// What tells whether a summary can be understood.
#[derive(serde::Deserialize)]
struct Begun {
    summary: Schema,
}

#[derive(serde::Deserialize)]
struct Schema {
    schema: Option<u64>,
}

/// The last summary among the lines of a file's end. What follows it (a line of a newer version) does not hide it; a torn
/// one is none.
fn summary_in(tail: &[u8]) -> anyhow::Result<Summary> {
    const BEGIN: &[u8] = b"{\"summary\":";
    let mut lines = tail.rsplit(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let line = lines.find(|line| line.starts_with(BEGIN));
    let line = line.context("it has no summary: the run did not come to its end, or the file was cut")?;
    let mut line = line.to_vec();
    let line = Seal::default().content(&mut line).map_err(|why| anyhow!("its summary is damaged: {why}"))?;
    let begun: Begun = serde_json::from_slice(line).context("its summary is cut off or damaged")?;
    let schema = begun.summary.schema.context("its summary has no schema")?;
    ensure!(
        schema <= u64::from(RUN_FILE_SCHEMA),
        "it was written by a newer Assay (schema {schema}, this one reads up to {RUN_FILE_SCHEMA}): use that version"
    );
    match serde_json::from_slice(line).context("its summary cannot be understood")? {
        Record::Summary(summary) => Ok(*summary),
        _ => bail!("its last line is no summary"),
    }
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
    let mut seal = Seal::default();
    let mut run = first_line(&mut text, &mut seal)?;
    let mut known = Known::of(&run);
    let mut left_out = 0usize;
    let mut line = Vec::new();
    for number in 2.. {
        let refused = match next_line(&mut text, &mut line) {
            Ok(0) => break,
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => {
                let content = seal.content(&mut line).map_err(Refused::Line);
                content.and_then(|content| take(&mut run, &mut known, content)).err()
            }
            // A damaged gzip stream ends here; what came before is good.
            Err(error) => Some(Refused::Rest(error.to_string())),
        };
        let torn = if line.last() == Some(&b'\n') { "" } else { " (the file ends in the middle of it)" };
        let damage = match &refused {
            None => continue,
            Some(Refused::Line(why)) => format!("line {number} was left out{torn}: {why}"),
            Some(Refused::Rest(why)) => format!("line {number} and all after it were left out: {why}"),
        };
        match run.damage.len() < DAMAGE_TOLD {
            true => run.damage.push(damage),
            false => left_out += 1,
        }
        if matches!(refused, Some(Refused::Rest(_))) {
            break;
        }
    }
    if left_out > 0 {
        run.damage.push(format!("{left_out} more lines were left out"));
    }
    Ok(run)
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

/// Reads up to and with the next line's end; no more than a line of ours may be long.
fn next_line(text: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    let length = text.take(LONGEST_LINE).read_until(b'\n', line)?;
    match length as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
        true => Err(io::Error::other("a line without an end")),
        false => Ok(length),
    }
}

/// The header of a run whose other lines are not (yet) of interest.
pub(super) fn first_line(text: &mut impl BufRead, seal: &mut Seal) -> anyhow::Result<Run> {
    const FOREIGN: &str = "its first line is not the header of a run";
    let mut line = Vec::new();
    // Foreign files can be large and without line ends: one look at the first byte spares reading them.
    let first = text.fill_buf().context("cannot read the first line")?.first().copied();
    ensure!(first.is_some(), "it is empty");
    ensure!(first.is_some_and(|byte| byte == b'{' || byte.is_ascii_whitespace()), FOREIGN);
    while line.trim_ascii().is_empty() {
        let length = next_line(text, &mut line).context("cannot read the first line")?;
        ensure!(length > 0, "it is empty");
    }
    let content = seal.content(&mut line).map_err(|why| {
        anyhow!("its header is damaged, without which nothing in it can be understood: {why}; use another copy of it")
    })?;
    let value: serde_json::Value =
        serde_json::from_slice(content).context("its first line is not a whole JSON object")?;
    let header = value.get("header").context(FOREIGN)?;
    ensure!(
        seal.seen() || value.as_object().is_some_and(|object| object.len() == 1),
        "its header is damaged: what follows it is no checksum; use another copy of it"
    );
    let schema =
        header.get("schema").and_then(serde_json::Value::as_u64).context("its header has no schema")?;
    ensure!(
        schema <= u64::from(RUN_FILE_SCHEMA),
        "it was written by a newer Assay (schema {schema}, this one reads up to {RUN_FILE_SCHEMA}): use that version"
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

/// Why a line was left out.
enum Refused {
    Line(String),
    /// It, and nothing after it can belong to this run either.
    Rest(String),
}

/// Adds a line's record to the run; `known` learns the orders of its visits.
fn take(run: &mut Run, known: &mut Known, content: &[u8]) -> Result<(), Refused> {
    match serde_json::from_slice(content) {
        // Two run files in one: the visits of the second were measured by another plan.
        Ok(Record::Header(_)) => return Err(Refused::Rest("another run begins there".to_string())),
        Ok(Record::Visit(visit)) => {
            check_visit(run, known, &visit).map_err(Refused::Line)?;
            known.orders.insert(visit.order);
            run.visits.push(*visit);
        }
        Ok(Record::TimeLine(line)) => run.time_lines.push(line),
        Ok(Record::Event(event)) => run.events.push(event),
        Ok(Record::Summary(summary)) => run.summary = Some(*summary),
        // A record kind that a newer version added: not ours to complain about.
        Err(_) if is_unknown_record(content) => {}
        Err(error) => return Err(Refused::Line(error.to_string())),
    }
    Ok(())
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
