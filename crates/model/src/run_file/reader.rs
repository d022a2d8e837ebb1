//! Reading a run file whole: what cannot be understood is left out and noted as damage.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};

use super::keep::{Keep, NoRoom};
use super::limits::Limits;
use super::line::Seal;
use super::source::{Exceeded, GZIP, Source, open, unpacked, words};
use super::summaries::{LONGEST_SUMMARY, SUMMARY, Schema, summary_line};
use crate::{Header, Packed, RUN_FILE_SCHEMA, Record, Run, Samples, Summary, Visit};

/// Unreadable lines that are reported one by one; the others are counted.
const MAX_DAMAGE_LINES: usize = 100;

/// This much of a run file's end holds its last line: nearly always, and always.
const TAILS: [u64; 2] = [256 << 10, LONGEST_SUMMARY as u64];

/// Reads a run file, plain or gzip-compressed.
pub fn read(path: &Path) -> anyhow::Result<Run> {
    unpack(open(path)?).with_context(|| format!("{} is not a run file that can be used", path.display()))
}

/// The summary that closes a run file, and nothing else of it: of a plain file only its end is
/// read, of a compressed one at most a line is kept. An error says why there is none.
pub fn summary(source: &mut Source) -> anyhow::Result<Summary> {
    if let Some(file) = source.file() {
        let mut begin = [0; 2];
        let packed = file.read_exact(&mut begin).is_ok() && begin == GZIP;
        io::Seek::rewind(file)?;
        if !packed {
            let (length, mut tail) = (file.metadata()?.len(), Vec::new());
            for most in TAILS {
                tail.clear();
                io::Seek::seek(file, io::SeekFrom::Start(length.saturating_sub(most)))?;
                file.take(most).read_to_end(&mut tail).context("cannot read its end")?;
                if length <= most || last_line(&tail).is_some() {
                    break;
                }
            }
            return summary_in(&tail);
        }
    }
    last_summary(unpacked(source, &Limits::default())?)
}

/// The summary that closes what is read once.
pub fn last_summary(text: impl Read) -> anyhow::Result<Summary> {
    let mut tail = Vec::new();
    keep_tail(text, &mut tail).map_err(|error| match Exceeded::of(&error) {
        Some(exceeded) => anyhow::anyhow!("{exceeded}"),
        None => anyhow::Error::new(error).context("it is damaged: it cannot be unpacked to its end"),
    })?;
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
        if tail.len() > 2 * LONGEST_SUMMARY {
            tail.drain(..tail.len() - LONGEST_SUMMARY);
        }
    }
}

/// The last summary among the lines of a file's end. What follows it (a line of a newer version)
/// does not hide it; a torn one is none.
fn summary_in(tail: &[u8]) -> anyhow::Result<Summary> {
    let line = last_line(tail).context("it has no summary: the run did not finish, or the file was cut")?;
    summary_line(line)?;
    // A run file's own line has no other field: what looks like one is a seal that lost its name.
    let mut line = line.to_vec();
    let line = Seal::default().content(&mut line).map_err(|why| anyhow!("its summary is damaged: {why}"))?;
    match serde_json::from_slice(line).context("its summary is damaged")? {
        Record::Summary(summary) => Ok(*summary),
        _ => bail!("its last line is not a summary"),
    }
}

/// The last line of a file's end that begins as a summary does.
fn last_line(tail: &[u8]) -> Option<&[u8]> {
    let mut lines = tail.rsplit(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| line.starts_with(SUMMARY))
}

/// Reads a run from bytes that may be gzip-compressed.
pub fn unpack(reader: impl Read + Send) -> anyhow::Result<Run> {
    unpack_within(reader, &Limits::default())
}

fn unpack_within(reader: impl Read + Send, limits: &Limits) -> anyhow::Result<Run> {
    parse_within(unpacked(reader, limits).context("cannot read it")?, limits)
}

/// Reads a run from any text. Fails only where there is no usable header, or more than is ever
/// read; everything else is noted as damage.
pub fn parse(text: impl BufRead) -> anyhow::Result<Run> {
    parse_within(text, &Limits::default())
}

/// The same with limits of one's own.
pub fn parse_within(mut text: impl BufRead, limits: &Limits) -> anyhow::Result<Run> {
    let mut seal = Seal::default();
    let mut run = first_line_within(&mut text, &mut seal, limits)?;
    let mut known = VisitChecks::of(&run, limits);
    let (mut damage, mut unread) = (Damage::default(), None);
    let (mut number, mut line) = (1, Vec::new());
    loop {
        number += 1;
        let refused = match next_line(&mut text, &mut line, limits) {
            Ok(Next { length: 0, .. }) => break,
            Ok(next) => {
                number += next.blank_lines;
                damage.bytes += next.blank;
                let content = seal.content(&mut line).map_err(Refused::Line);
                content.and_then(|content| take(&mut run, &mut known, content)).err()
            }
            Err(error) => match Exceeded::of(&error) {
                Some(exceeded) => bail!("{exceeded}"),
                // A damaged gzip stream ends here; what came before is good.
                None => Some(Refused::Rest(error.to_string())),
            },
        };
        match refused {
            None => {}
            Some(Refused::Line(why)) => {
                let torn =
                    if line.last() == Some(&b'\n') { "" } else { " (the file ends in the middle of it)" };
                damage.bytes += line.len() as u64;
                damage.add(format!("line {number} was left out{torn}: {why}"));
            }
            Some(Refused::Rest(why)) => {
                damage.add(format!("line {number} and everything after it were left out: {why}"));
                break;
            }
            Some(Refused::Whole(why)) => bail!(why),
        }
        if let Some(why) = damage.too_much(limits) {
            unread = Some(format!("everything after line {number} was left out: {why}"));
            break;
        }
    }
    run.damage = damage.into_sentences(unread);
    known.keep.give(&mut run);
    Ok(run)
}

/// What was left out, in sentences.
#[derive(Default)]
struct Damage {
    sentences: Vec<String>,
    lines: usize,
    /// Of lines that were left out, and of blanks.
    bytes: u64,
}

impl Damage {
    fn add(&mut self, sentence: String) {
        self.lines += 1;
        if self.sentences.len() < MAX_DAMAGE_LINES {
            self.sentences.push(sentence);
        }
    }

    /// Why nothing more is read after this much of it.
    fn too_much(&self, limits: &Limits) -> Option<String> {
        let (lines, bytes) = (self.lines >= limits.unreadable_lines, self.bytes > limits.unreadable_bytes);
        (lines || bytes).then(|| {
            format!(
                "{} lines before it are unreadable ({} with blanks); the limit is {} or {}",
                self.lines,
                words(self.bytes),
                limits.unreadable_lines,
                words(limits.unreadable_bytes)
            )
        })
    }

    fn into_sentences(mut self, unread: Option<String>) -> Vec<String> {
        let left_out = self.lines - self.sentences.len();
        if left_out > 0 {
            self.sentences.push(format!("{left_out} more lines were left out"));
        }
        // Reports show the first few.
        unread.into_iter().chain(self.sentences).collect()
    }
}

/// What visits are checked against; each check costs the same in any file.
struct VisitChecks<'l> {
    /// The metrics of each benchmark of the catalogue.
    metrics: HashMap<String, HashSet<String>>,
    orders: HashSet<u32>,
    keep: Keep,
    /// Lines that are no visits, and their bytes.
    others: usize,
    other_bytes: u64,
    limits: &'l Limits,
}

impl<'l> VisitChecks<'l> {
    fn of(run: &Run, limits: &'l Limits) -> VisitChecks<'l> {
        let mut metrics: HashMap<String, HashSet<String>> = HashMap::new();
        for title in &run.header.catalogue {
            let names = || title.metrics.iter().map(|metric| metric.name.to_string()).collect();
            metrics.entry(title.id.to_string()).or_insert_with(names);
        }
        let keep = Keep::new(run.header.seed, limits);
        VisitChecks { metrics, orders: HashSet::new(), keep, others: 0, other_bytes: 0, limits }
    }

    /// Counts a line that is no visit.
    fn other(&mut self, content: &[u8]) -> Result<(), Refused> {
        self.others += 1;
        self.other_bytes += content.len() as u64;
        let limits = self.limits;
        if self.others > limits.others || self.other_bytes > limits.other_bytes {
            Err(Refused::Rest(format!(
                "{} lines before it are not passes; the limit is {} or {}",
                self.others - 1,
                limits.others,
                words(limits.other_bytes)
            )))
        } else {
            Ok(())
        }
    }
}

/// What was read up to a line's end.
struct Next {
    /// Bytes of blanks before the line, and the line ends among them.
    blank: u64,
    blank_lines: usize,
    /// Of the line with its end; nothing: the text is over.
    length: usize,
}

/// Reads the next line that is not blank, up to the longest that Assay writes.
fn next_line(text: &mut impl BufRead, line: &mut Vec<u8>, limits: &Limits) -> io::Result<Next> {
    let next = skip_blanks(text, limits.unreadable_bytes)?;
    let length = read_line(text, line, limits.line)?;
    Ok(Next { length, ..next })
}

/// What is blank is passed over and not kept.
fn skip_blanks(text: &mut impl BufRead, most: u64) -> io::Result<Next> {
    let mut next = Next { blank: 0, blank_lines: 0, length: 0 };
    loop {
        let part = text.fill_buf()?;
        let (all, blank) = (part.len(), part.iter().take_while(|byte| byte.is_ascii_whitespace()).count());
        next.blank_lines += part[..blank].iter().filter(|byte| **byte == b'\n').count();
        next.blank += blank as u64;
        text.consume(blank);
        if blank < all || all == 0 {
            return Ok(next);
        }
        if next.blank > most {
            return Err(io::Error::other(format!("more than {} of blank lines", words(most))));
        }
    }
}

fn read_line(text: &mut impl BufRead, line: &mut Vec<u8>, longest: u64) -> io::Result<usize> {
    line.clear();
    let length = text.take(longest).read_until(b'\n', line)?;
    if length as u64 == longest && line.last() != Some(&b'\n') {
        Err(io::Error::other(format!("a line of more than {}: Assay writes none that long", words(longest))))
    } else {
        Ok(length)
    }
}

/// The header of a run whose other lines are not (yet) of interest.
pub(super) fn first_line(text: &mut impl BufRead) -> anyhow::Result<Run> {
    first_line_within(text, &mut Seal::default(), &Limits::default())
}

/// The first line, of whose header only the schema is looked at.
#[derive(serde::Deserialize)]
struct FirstLine {
    header: Option<Schema>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    header: Box<Header>,
}

fn first_line_within(text: &mut impl BufRead, seal: &mut Seal, limits: &Limits) -> anyhow::Result<Run> {
    const FOREIGN: &str = "its first line is not the header of a run";
    const CANNOT: &str = "cannot read the first line";
    // Foreign files can be large and without line ends: one look at the first byte spares reading
    // them.
    skip_blanks(text, limits.unreadable_bytes).context(CANNOT)?;
    let first = text.fill_buf().context(CANNOT)?.first().copied();
    ensure!(first.is_some(), "it is empty");
    ensure!(first == Some(b'{'), FOREIGN);
    let mut line = Vec::new();
    read_line(text, &mut line, limits.header).context(CANNOT)?;
    let content = seal.content(&mut line).map_err(|why| {
        anyhow!("its header is damaged, so the rest is unreadable: {why}; use another copy")
    })?;
    let first: FirstLine = serde_json::from_slice(content).map_err(|error| {
        let what = if error.is_data() {
            "its header has no schema"
        } else {
            "its first line is not a complete JSON object"
        };
        anyhow::Error::new(error).context(what)
    })?;
    let schema = first.header.context(FOREIGN)?.schema.context("its header has no schema")?;
    ensure!(
        schema <= u64::from(RUN_FILE_SCHEMA),
        "it was written by a newer Assay (schema {schema}, this one reads up to {RUN_FILE_SCHEMA}): use that version"
    );
    let HeaderLine { header } = serde_json::from_slice(content).context("its header has unknown content")?;
    check_plan(&header, limits)?;
    Ok(Run::begun(*header))
}

/// Every case has a series for each of its headline metrics, measured or not.
fn check_plan(header: &Header, limits: &Limits) -> anyhow::Result<()> {
    let cases = header.plan.len();
    ensure!(
        cases <= limits.cases,
        "its plan has {cases} benchmarks by placement, the limit is {}: measure them in several runs",
        limits.cases
    );
    let titles = header.catalogue.len();
    ensure!(
        titles <= limits.titles,
        "its catalogue has {titles} benchmarks, the limit is {}: no version of Assay has that many",
        limits.titles
    );
    let metrics = header.catalogue.iter().map(|title| title.metrics.len()).max().unwrap_or(0);
    ensure!(
        metrics <= limits.metrics,
        "a benchmark in its catalogue has {metrics} figures, the limit is {}: no version of Assay has that many",
        limits.metrics
    );
    let mut headlines: HashMap<&str, usize> = HashMap::new();
    for title in &header.catalogue {
        headlines
            .entry(&title.id)
            .or_insert_with(|| title.metrics.iter().filter(|metric| metric.headline).count());
    }
    let of = |bench: &str| headlines.get(bench).copied().unwrap_or(0);
    let series: usize = header.plan.iter().map(|planned| of(&planned.case.bench)).sum();
    ensure!(
        series <= limits.planned_series,
        "its plan has {series} figures, the limit is {}: measure them in several runs",
        limits.planned_series
    );
    Ok(())
}

/// Why a line was left out.
enum Refused {
    Line(String),
    /// It, and nothing after it can belong to this run either.
    Rest(String),
    /// With all of the file.
    Whole(String),
}

/// Adds a line's record to the run; `known` learns the orders of its visits.
fn take(run: &mut Run, known: &mut VisitChecks, content: &[u8]) -> Result<(), Refused> {
    match serde_json::from_slice(content) {
        // Two run files in one: the visits of the second were measured by another plan.
        Ok(Record::Header(_)) => return Err(Refused::Rest("another run starts there".to_string())),
        Ok(Record::Visit(visit)) => {
            check_visit(run, known, &visit).map_err(Refused::Line)?;
            known.orders.insert(visit.order);
            return keep(known, *visit);
        }
        Ok(Record::TimeLine(line)) => run.time_lines.push(line),
        Ok(Record::Event(event)) => run.events.push(event),
        Ok(Record::Summary(summary)) => run.summary = Some(*summary),
        // A record kind that a newer version added: not ours to complain about.
        Err(_) if is_unknown_record(content) => {}
        Err(error) => return Err(Refused::Line(error.to_string())),
    }
    known.other(content)
}

fn keep(known: &mut VisitChecks, visit: Visit) -> Result<(), Refused> {
    const ADVICE: &str = "split the measurement into several runs (--new starts another one)";
    let most = known.limits.visits;
    if known.keep.seen() == most {
        return Err(Refused::Whole(format!("it has more than {most} passes, the limit: {ADVICE}")));
    }
    known.keep.add(visit).map_err(|NoRoom| {
        let [.., (bytes, each)] = known.limits.memory;
        Refused::Whole(format!(
            "its passes of {} benchmarks need more than {} of memory, with at most {each} kept of each: {ADVICE}",
            known.keep.cases(),
            words(bytes)
        ))
    })
}

fn is_unknown_record(content: &[u8]) -> bool {
    const KNOWN: [&str; 5] = ["header", "visit", "time_line", "event", "summary"];
    let object: Option<serde_json::Map<_, _>> = serde_json::from_slice(content).ok();
    object.is_some_and(|object| object.len() == 1 && object.keys().all(|key| !KNOWN.contains(&key.as_str())))
}

/// Everything that later steps rely on without looking.
fn check_visit(run: &Run, known: &VisitChecks, visit: &Visit) -> Result<(), String> {
    let Some(planned) = run.header.plan.get(visit.case as usize) else {
        return Err(format!("its benchmark {} is not in the plan", visit.case));
    };
    if known.orders.contains(&visit.order) {
        return Err(format!("pass {} is in the file twice", visit.order));
    }
    let Some(metrics) = known.metrics.get(planned.case.bench.as_ref()) else {
        return Err(format!("its benchmark {} is not in the catalogue", planned.case.bench));
    };
    for samples in &visit.samples {
        if let Some(metric) = samples.metrics.iter().find(|name| !metrics.contains(*name)) {
            return Err(format!("its figure {metric:?} is not in the catalogue"));
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
        return Err("it has no samples or no figures".to_string());
    }
    if samples.warm_up >= windows {
        return Err(format!("all of its {windows} samples are warm-up"));
    }
    if !fits(&samples.work) || samples.beside.columns().any(|(_, column)| !fits(column)) {
        return Err("its columns differ in length".to_string());
    }
    if !samples.histograms.is_empty() && samples.histograms.len() != windows {
        return Err("its histograms and samples differ in number".to_string());
    }
    if samples.histograms.iter().all(|histogram| histogram.ns.len() == histogram.count.len()) {
        Ok(())
    } else {
        Err("a histogram's values and counts differ in number".to_string())
    }
}
