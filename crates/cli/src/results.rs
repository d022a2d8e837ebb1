//! Results to compare: run files, saved reports, foreign result files, compressed or not, folders
//! of runs and bundles. The kind of a file is recognised by its first bytes, never by its name, and
//! its size is limited.

use super::output::eprint_line;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use compare::ComparisonSide;
use model::run_file::{self, Limits, SUMMARY, SummaryLines};
use model::{Run, Summary, Title};

/// A saved report is no larger: that of a 512-CPU host's full profile takes a tenth of it.
const LARGEST_REPORT: u64 = 512 << 20;

/// Bytes of a file that show its kind.
const BEGIN: u64 = 4096;

/// At most this many damages of one file are shown; the others are counted.
const MAX_WARNINGS: usize = 3;

/// At most this many runs of a bundle are named.
const NAMED: usize = 4;

/// More runs than this in a folder are not one result.
const MAX_RUNS: usize = 200;

/// A run file, a saved report or a foreign result; `FILE#2` is the second host's result in a file
/// of several. A folder is all runs in it.
pub fn load(path: &Path) -> anyhow::Result<ComparisonSide> {
    let (path, number) = numbered(path);
    if path.is_dir() {
        return folder(&path);
    }
    if run_file::is_bundle(&path) {
        return combined(&path, &run_file::runs_in(&path)?);
    }
    let shown = path.display().to_string();
    arm(run_file::open(&path)?, &shown, number).with_context(|| format!("cannot compare {shown}"))
}

/// A run's summary and file, or the file and why it has none.
type Summarised = Result<(Summary, String), (String, String)>;

/// The summaries in a file: that of a run, or all results in any other file.
pub enum Contents {
    /// Each with its file, or the file and why it has none.
    Summaries(Vec<Summarised>),
    Arms(Vec<ComparisonSide>),
}

/// Whether a file begins as a run file does.
pub fn is_run(path: &Path) -> anyhow::Result<bool> {
    Ok(begins_run(&begin(run_file::open(path)?)?.0))
}

fn begins_run(begun: &[u8]) -> bool {
    let marks = begun.iter().filter(|byte| !byte.is_ascii_whitespace()).take(9);
    marks.copied().eq(*b"{\"header\"")
}

/// What is in a file.
pub fn contents(path: &Path) -> anyhow::Result<Contents> {
    Opened::of(path)?.contents()
}

/// An open file, with its first bytes.
pub struct Opened {
    path: PathBuf,
    is_file: bool,
    begun: Vec<u8>,
    rest: Box<dyn BufRead + Send>,
}

/// A file of summaries is read line by line, so that it may be as large as a fleet is.
const STREAMED: Limits = Limits { size: u64::MAX, ..Limits::DEFAULT };

impl Opened {
    pub fn of(path: &Path) -> anyhow::Result<Opened> {
        let source = run_file::open(path)?;
        let is_file = source.is_file();
        let (begun, rest) = begin_within(source, &STREAMED)?;
        Ok(Opened { path: path.to_path_buf(), is_file, begun, rest: Box::new(rest) })
    }

    /// Whether it has summaries, one per line.
    pub fn is_summaries(&self) -> bool {
        self.begun.trim_ascii_start().starts_with(SUMMARY)
    }

    /// The lines of a file of summaries.
    pub fn lines(self) -> SummaryLines<Box<dyn BufRead + Send>> {
        SummaryLines::new(self.rest)
    }

    pub fn contents(self) -> anyhow::Result<Contents> {
        let Opened { path, is_file, begun, rest } = self;
        let shown = path.display().to_string();
        if begins_run(&begun) {
            // Of a regular file only the end is read, of a stream all.
            let summary = if is_file {
                run_file::summary(&mut run_file::open(&path)?)
            } else {
                run_file::unpacked(rest, &Limits::default())
                    .context("cannot read it")
                    .and_then(run_file::last_summary)
            };
            return Ok(Contents::Summaries(vec![Ok((summary?, shown))]));
        }
        if begun.trim_ascii_start().starts_with(SUMMARY) {
            return Ok(Contents::Summaries(summarised(rest, &shown)?));
        }
        if begun.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') && !import::is_json(&begun) {
            return Ok(Contents::Arms(vec![saved(rest, &shown)?]));
        }
        let all = import::read(&foreign(rest)?)?;
        Ok(Contents::Arms(all.iter().map(|one| ComparisonSide::imported(one, &shown)).collect()))
    }
}

/// The summaries in a file of them, each with the run file that it names.
fn summarised(rest: impl BufRead, shown: &str) -> anyhow::Result<Vec<Summarised>> {
    let all = run_file::summaries(rest)?.into_iter().map(|(number, line)| match line {
        Ok(line) => Ok((*line.summary, line.file.unwrap_or_else(|| format!("{shown}#{number}")))),
        Err(error) => Err((format!("{shown}, line {number}"), format!("{error:#}"))),
    });
    Ok(all.collect())
}

/// Depth of folders that are searched.
const DEEPEST: usize = 8;

/// The files that paths name: of folders, the run files in them and below; of bundles, those in
/// them.
pub fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => below(path, DEEPEST, &mut files)?,
            false if run_file::is_bundle(path) => files.extend(run_file::runs_in(path)?),
            false => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// The run files of a folder and of those below it, by name.
fn below(path: &Path, deepest: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(path).with_context(|| format!("cannot read the folder {}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        // A link to a folder may lead back.
        let is_folder = deepest > 0 && entry.is_dir() && !entry.is_symlink();
        match (is_folder, is_run_file(&entry)) {
            (true, _) => below(&entry, deepest - 1, files)?,
            (false, true) => files.push(entry),
            (false, false) => {}
        }
    }
    Ok(())
}

/// Whether a file is called as runs are, compressed or not.
fn is_run_file(path: &Path) -> bool {
    path.to_string_lossy().trim_end_matches(".gz").ends_with(run_file::EXTENSION) && path.is_file()
}

/// The run in a file; for another tool's result an error with advice.
pub fn run(path: &Path) -> anyhow::Result<Run> {
    if run_file::is_bundle(path) {
        return match run_file::runs_in(path)?.as_slice() {
            [one] => run(one),
            all => {
                let names = all.iter().take(NAMED).map(|one| one.display().to_string());
                let more = if all.len() > NAMED { ", …" } else { "" };
                bail!(
                    "{} has {} runs; name one of them: {}{more}",
                    path.display(),
                    all.len(),
                    names.collect::<Vec<_>>().join(", ")
                )
            }
        };
    }
    let shown = path.display();
    let cannot = || format!("{shown} is not a usable run file");
    let (begun, rest) = begin(run_file::open(path)?).with_context(cannot)?;
    if import::is_json(&begun) {
        let file = diagnose::words::shell(&shown.to_string());
        bail!(
            "{shown} is a result of another tool: read it with `assay import {file}`, or show it next to a \
              run with `assay report RUN --beside {file}`"
        );
    }
    Ok(warn_of_damage(run_file::parse(rest).with_context(cannot)?, &shown.to_string()))
}

/// Prints which parts of a run's file are unreadable, and returns the run.
fn warn_of_damage(run: Run, shown: &str) -> Run {
    let damage = &run.damage;
    damage.iter().take(MAX_WARNINGS).for_each(|text| eprint_line(&format!("assay: {shown}: {text}")));
    if let Some(more @ 1..) = damage.len().checked_sub(MAX_WARNINGS) {
        eprint_line(&format!(
            "assay: {shown}: {more} more damaged places (`assay diagnose --json` lists all)"
        ));
    }
    run
}

/// The run of a folder that was written last.
pub fn latest(folder: &Path) -> anyhow::Result<Run> {
    read(&newest(folder)?)
}

/// The run file of a folder that was written last.
pub fn newest(folder: &Path) -> anyhow::Result<PathBuf> {
    let shown = folder.display().to_string();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read the folder {shown}"))?;
    let runs = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        is_run_file(&path).then_some((entry.metadata().ok()?.modified().ok()?, path))
    });
    runs.max().map(|(_, newest)| newest).with_context(|| format!("{shown} has no run"))
}

/// An error with the file that it is about, once.
pub fn about(shown: &str, error: &str) -> String {
    if error.contains(shown) { error.to_string() } else { format!("{shown}: {error}") }
}

/// The run in a file that is known to be one by its name.
pub fn read(path: &Path) -> anyhow::Result<Run> {
    Ok(warn_of_damage(run_file::read(path)?, &path.display().to_string()))
}

/// What a folder's runs come to as one arm.
fn folder(path: &Path) -> anyhow::Result<ComparisonSide> {
    let shown = path.display().to_string();
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read the folder {shown}"))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| is_run_file(path));
    files.sort();
    ensure!(!files.is_empty(), "the folder {shown} has no run ({})", run_file::EXTENSION);
    combined(path, &files)
}

/// What the runs of a folder or a bundle come to as one arm.
fn combined(path: &Path, files: &[PathBuf]) -> anyhow::Result<ComparisonSide> {
    let shown = path.display().to_string();
    ensure!(files.len() <= MAX_RUNS, "{shown} has {} runs, more than {MAX_RUNS}", files.len());
    let runs = files.iter().map(|file| load(file)).collect::<anyhow::Result<Vec<ComparisonSide>>>()?;
    match ComparisonSide::of_runs(runs, &shown) {
        Ok(arm) => Ok(arm),
        Err(why) => bail!("the runs in {shown} are not alike: {why}; name one of them"),
    }
}

fn arm(file: impl Read + Send, shown: &str, number: Option<usize>) -> anyhow::Result<ComparisonSide> {
    let (begin, rest) = begin(file)?;
    plain(&begin, rest, shown, number)
}

/// The results of one file with several: before and after, or several hosts. Errors appear when the
/// file is read as one result.
pub fn within(path: &Path) -> Vec<ComparisonSide> {
    let Some(Contents::Arms(arms)) = path.is_file().then(|| contents(path).ok()).flatten() else {
        return Vec::new();
    };
    let named = |(at, arm): (usize, ComparisonSide)| ComparisonSide {
        file: format!("{}#{}", path.display(), at + 1),
        ..arm
    };
    if arms.len() > 1 { arms.into_iter().enumerate().map(named).collect() } else { Vec::new() }
}

/// The text of a foreign result file; one byte above the limit shows a larger one.
fn foreign(rest: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    rest.take(import::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).context("cannot read it")?;
    Ok(bytes)
}

/// The first unpacked bytes of a file, and a reader of all of it, also for streams.
fn begin<'f, R: Read + Send + 'f>(file: R) -> anyhow::Result<(Vec<u8>, impl BufRead + Send + use<'f, R>)> {
    begin_within(file, &Limits::default())
}

fn begin_within<'f, R: Read + Send + 'f>(
    file: R,
    limits: &Limits,
) -> anyhow::Result<(Vec<u8>, impl BufRead + Send + use<'f, R>)> {
    let mut file = run_file::unpacked(file, limits).context("cannot read it")?;
    let mut begin = Vec::new();
    file.by_ref().take(BEGIN).read_to_end(&mut begin).context("cannot read it")?;
    Ok((begin.clone(), Cursor::new(begin).chain(file)))
}

fn plain(
    begin: &[u8],
    rest: impl BufRead,
    shown: &str,
    number: Option<usize>,
) -> anyhow::Result<ComparisonSide> {
    if begin.trim_ascii_start().starts_with(SUMMARY) {
        return of_summaries(summarised(rest, shown)?, shown, number);
    }
    let mut marks = begin.iter().filter(|byte| !byte.is_ascii_whitespace());
    if marks.next() == Some(&b'{') && !import::is_json(begin) {
        let named: Vec<u8> = marks.take(8).copied().collect();
        return match named.as_slice() {
            b"\"header\"" => {
                let run = run_file::parse(rest).context("it is not a usable run file")?;
                Ok(ComparisonSide::measured(&diagnose::diagnose(warn_of_damage(run, shown)), shown))
            }
            _ => saved(rest, shown),
        };
    }
    let all = import::read(&foreign(rest)?)?;
    match (number, all.as_slice()) {
        (Some(number), all) => {
            let one = number.checked_sub(1).and_then(|place| all.get(place));
            let one = one.with_context(|| format!("it has {} results, and no #{number}", all.len()))?;
            Ok(ComparisonSide::imported(one, &format!("{shown}#{number}")))
        }
        (None, [one]) => Ok(ComparisonSide::imported(one, shown)),
        (None, all) => {
            let hosts = all.iter().take(20).enumerate();
            let hosts: Vec<String> = hosts.map(|(at, one)| format!("#{} {}", at + 1, one.host)).collect();
            bail!("it has results of {} hosts: name one as {shown}#1 ({})", all.len(), hosts.join(", "))
        }
    }
}

/// What the summaries in a file come to as one arm, as the runs of a folder do; or one of them.
fn of_summaries(all: Vec<Summarised>, shown: &str, number: Option<usize>) -> anyhow::Result<ComparisonSide> {
    let all: Result<Vec<(Summary, String)>, (String, String)> = all.into_iter().collect();
    let mut all = all.map_err(|(place, why)| anyhow::anyhow!("{place}: {why}"))?;
    if let Some(number) = number {
        let place = number.checked_sub(1).filter(|place| *place < all.len());
        let place = place.with_context(|| format!("it has {} summaries, and no #{number}", all.len()))?;
        all = vec![all.swap_remove(place)];
    }
    let arms = all.into_iter().map(|(summary, file)| ComparisonSide::summarised(summary, &file)).collect();
    match ComparisonSide::of_runs(arms, shown) {
        Ok(arm) => Ok(arm),
        Err(why) => bail!("its summaries are not alike: {why}; name one of them as {shown}#1"),
    }
}

fn saved(rest: impl Read, shown: &str) -> anyhow::Result<ComparisonSide> {
    let mut limited = BufReader::new(rest.take(LARGEST_REPORT));
    let json: serde_json::Value = match serde_json::from_reader(&mut limited) {
        Ok(json) => json,
        Err(_) if limited.get_ref().limit() == 0 => {
            bail!("it has more than {} MB, too much for a report", LARGEST_REPORT >> 20)
        }
        Err(error) if error.is_eof() => bail!("it is cut off: {error}"),
        Err(error) => bail!("it is neither a run nor a report: {error}"),
    };
    let catalogue: Vec<Title> = bench::all().map(|bench| bench.catalogue()).collect();
    Ok(ComparisonSide::saved(json, shown)?.titled(&catalogue))
}

/// The number after `#`, unless a file has the whole name.
fn numbered(path: &Path) -> (PathBuf, Option<usize>) {
    let parts = path.to_str().filter(|_| !path.exists()).and_then(|text| text.rsplit_once('#'));
    match parts.and_then(|(file, number)| Some((PathBuf::from(file), number.parse().ok()?))) {
        Some((file, number)) => (file, Some(number)),
        None => (path.to_path_buf(), None),
    }
}
