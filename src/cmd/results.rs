//! Results as sides of a comparison: run files, saved reports, foreign result files, compressed or not, and folders of runs.
//! What a file is, is told by how it begins, never by its name, and no more of it is read than such a file can have.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use flate2::read::MultiGzDecoder;

use crate::compare::Arm;
use crate::diagnose;
use crate::import;
use crate::model::Run;
use crate::run_file;

/// A saved report is no larger: that of a 512-CPU host's full profile takes a tenth of it.
const LARGEST_REPORT: u64 = 512 << 20;

/// So much of a file tells what it is.
const BEGIN: u64 = 4096;

/// More runs than this in a folder are not one result.
const MOST_RUNS: usize = 200;

/// A run file, a saved report or a foreign result; `FILE#2` is the second host's result in a file of several. A folder is
/// all runs in it.
pub fn load(path: &Path) -> anyhow::Result<Arm> {
    let (path, number) = numbered(path);
    if path.is_dir() {
        return folder(&path);
    }
    let shown = path.display().to_string();
    let file = File::open(&path).with_context(|| format!("cannot open {shown}"))?;
    arm(file, &shown, number).with_context(|| format!("{shown} cannot be compared"))
}

/// Whether a file is a run, by how it begins.
pub fn is_run(path: &Path) -> anyhow::Result<bool> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let (begun, rest) = begin(file)?;
    let begun = match begun.starts_with(&[0x1f, 0x8b]) {
        true => begin(MultiGzDecoder::new(rest))?.0,
        false => begun,
    };
    let marks = begun.iter().filter(|byte| !byte.is_ascii_whitespace()).take(9);
    Ok(marks.copied().eq(*b"{\"header\""))
}

/// All results in a saved report or a foreign result file.
pub fn arms(path: &Path) -> anyhow::Result<Vec<Arm>> {
    let shown = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let (begun, rest) = begin(file)?;
    let (begun, rest): (Vec<u8>, Box<dyn Read>) = match begun.starts_with(&[0x1f, 0x8b]) {
        true => {
            let (begun, rest) = begin(MultiGzDecoder::new(rest))?;
            (begun, Box::new(rest))
        }
        false => (begun, Box::new(rest)),
    };
    if begun.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') && !import::is_json(&begun) {
        return Ok(vec![saved(rest, &shown)?]);
    }
    let mut bytes = Vec::new();
    rest.take(import::LARGEST as u64 + 1).read_to_end(&mut bytes).context("cannot read it")?;
    let all = import::read(&bytes)?;
    Ok(all.iter().map(|one| Arm::imported(one, &shown)).collect())
}

/// The run in a file; of another tool's result it says what can be done with that.
pub fn run(path: &Path) -> anyhow::Result<Run> {
    run_file::read(path).map_err(|error| {
        let foreign = File::open(path).ok().and_then(|file| begin(file).ok()).is_some_and(|(begun, _)| import::is_json(&begun));
        match foreign {
            true => {
                let file = diagnose::words::shell(&path.display().to_string());
                anyhow::anyhow!(
                    "{} is a result of another tool and no run of Assay; read it with `assay import {file}`, or put it beside a run \
                     with `assay report RUN --beside {file}`",
                    path.display()
                )
            }
            false => error,
        }
    })
}

/// The run of a folder that was written last.
pub fn latest(folder: &Path) -> anyhow::Result<Run> {
    let shown = folder.display().to_string();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read the folder {shown}"))?;
    let runs = entries.flatten().filter_map(|entry| {
        let is_run = entry.file_name().to_str().is_some_and(|name| name.ends_with(".assay.jsonl"));
        Some((entry.metadata().ok()?.modified().ok()?, entry.path())).filter(|_| is_run)
    });
    let (_, newest) = runs.max().with_context(|| format!("there is no run in {shown}"))?;
    run_file::read(&newest)
}

/// What a folder's runs come to as one arm.
fn folder(path: &Path) -> anyhow::Result<Arm> {
    let shown = path.display().to_string();
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read the folder {shown}"))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is_run = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.trim_end_matches(".gz").ends_with(run_file::EXTENSION) && path.is_file()
    };
    files.retain(is_run);
    files.sort();
    ensure!(!files.is_empty(), "the folder {shown} holds no run ({})", run_file::EXTENSION);
    ensure!(
        files.len() <= MOST_RUNS,
        "the folder {shown} holds {} runs; {MOST_RUNS} are the most",
        files.len()
    );
    let runs = files.iter().map(|file| load(file)).collect::<anyhow::Result<Vec<Arm>>>()?;
    match Arm::of_runs(runs, &shown) {
        Ok(arm) => Ok(arm),
        Err(why) => bail!("the runs in the folder {shown} are not one result: {why}; name one run of it"),
    }
}

fn arm(file: impl Read, shown: &str, number: Option<usize>) -> anyhow::Result<Arm> {
    let (begin, rest) = begin(file)?;
    match begin.starts_with(&[0x1f, 0x8b]) {
        true => {
            let (begin, rest) = self::begin(MultiGzDecoder::new(rest))?;
            plain(&begin, rest, shown, number)
        }
        false => plain(&begin, rest, shown, number),
    }
}

/// How a file begins, and all of it to be read: also of what can be read only once.
fn begin(mut file: impl Read) -> anyhow::Result<(Vec<u8>, impl Read)> {
    let mut begin = Vec::new();
    file.by_ref().take(BEGIN).read_to_end(&mut begin).context("cannot read it")?;
    Ok((begin.clone(), Cursor::new(begin).chain(file)))
}

fn plain(begin: &[u8], rest: impl Read, shown: &str, number: Option<usize>) -> anyhow::Result<Arm> {
    let mut marks = begin.iter().filter(|byte| !byte.is_ascii_whitespace());
    if marks.next() == Some(&b'{') && !import::is_json(begin) {
        let named: Vec<u8> = marks.take(8).copied().collect();
        return match named.as_slice() {
            b"\"header\"" => {
                let run = run_file::unpack(BufReader::new(rest))
                    .context("it is not a run file that can be used")?;
                Ok(Arm::measured(&diagnose::diagnose(run), shown))
            }
            _ => saved(rest, shown),
        };
    }
    let mut bytes = Vec::new();
    // One byte more than may be tells a larger file apart.
    rest.take(import::LARGEST as u64 + 1).read_to_end(&mut bytes).context("cannot read it")?;
    let all = import::read(&bytes)?;
    match (number, all.as_slice()) {
        (Some(number), all) => {
            let one = number.checked_sub(1).and_then(|place| all.get(place));
            let one =
                one.with_context(|| format!("it holds {} results; there is no #{number}", all.len()))?;
            Ok(Arm::imported(one, &format!("{shown}#{number}")))
        }
        (None, [one]) => Ok(Arm::imported(one, shown)),
        (None, all) => {
            let hosts = all.iter().take(20).enumerate();
            let hosts: Vec<String> = hosts.map(|(at, one)| format!("#{} {}", at + 1, one.host)).collect();
            bail!("it holds results of {} hosts: name one as {shown}#1 ({})", all.len(), hosts.join(", "))
        }
    }
}

fn saved(rest: impl Read, shown: &str) -> anyhow::Result<Arm> {
    let mut limited = BufReader::new(rest.take(LARGEST_REPORT));
    let json: serde_json::Value = match serde_json::from_reader(&mut limited) {
        Ok(json) => json,
        Err(_) if limited.get_ref().limit() == 0 => {
            bail!("it has more than {} MB; no report is that large", LARGEST_REPORT >> 20)
        }
        Err(error) if error.is_eof() => bail!("it is cut off: {error}"),
        Err(error) => bail!("it is neither a run nor a report: {error}"),
    };
    Arm::saved(json, shown)
}

/// The number behind `#`, where no file has the whole name.
fn numbered(path: &Path) -> (PathBuf, Option<usize>) {
    let parts = path.to_str().filter(|_| !path.exists()).and_then(|text| text.rsplit_once('#'));
    match parts.and_then(|(file, number)| Some((PathBuf::from(file), number.parse().ok()?))) {
        Some((file, number)) => (file, Some(number)),
        None => (path.to_path_buf(), None),
    }
}
