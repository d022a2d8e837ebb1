//! `assay summary`: one line per run, for tools that read results of many hosts.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use super::output::{self, eprint_line};
use super::results::{self, Contents, Opened};
use super::{files, naming};
use model::run_file::{self, SummaryLine};

/// Print the summaries of runs, one JSON line each
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay summary runs/ > fleet.ndjson       all runs below a folder
  assay summary RUN | gzip > db1.json.gz   one run, small enough to send
  assay peers fleet.ndjson                 hosts and their peers
  assay compare 'fleet.ndjson#1' RUN       the first of them against a run
A line is {\"summary\": …, \"file\": …, \"sha256\": …}: host, labels, make, figures with intervals, findings, and \
the name and checksum of the run file. Files of lines can be concatenated.
Exit codes: 0 printed, 2 usage, 3 no run has a summary")]
pub struct Args {
    /// Run files, folders of them, or files of summaries
    #[arg(value_name = "RUN", required = true, value_parser = naming::results())]
    runs: Vec<PathBuf>,
    /// File for the lines [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let files = results::files(&args.runs)?;
    // There may be more lines than fit into memory: each is written as it is made, the first is
    // awaited.
    let mut lines = files.iter().flat_map(|path| lines_of(path)).filter_map(|(path, line)| match line {
        Ok(line) => Some(line),
        Err(error) => {
            let text = results::about(&path.display().to_string(), &format!("{error:#}"));
            eprint_line(&format!("assay: {text}"));
            None
        }
    });
    let Some(first) = lines.next() else {
        eprint_line("assay: no run has a summary");
        return Ok(ExitCode::from(3));
    };
    let mut lines = std::iter::once(first).chain(lines);
    let write = |out: &mut dyn Write| {
        lines.try_for_each(|line| Ok(writeln!(out, "{}", serde_json::to_string(&line)?)?))
    };
    match &args.out {
        None => output::print_with(write)?,
        Some(path) => {
            files::write_named(path, write)?;
            eprint_line(&format!("  saved {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A line of a file, or why there is none.
type Made<'f> = (&'f Path, anyhow::Result<SummaryLine>);

/// The summary of a run file, or all of a file of summaries, with run file and checksum.
fn lines_of(path: &Path) -> Box<dyn Iterator<Item = Made<'_>> + '_> {
    let only = |line| Box::new(std::iter::once((path, line)));
    match Opened::of(path) {
        Err(error) => only(Err(error)),
        Ok(opened) if opened.is_summaries() => Box::new(opened.lines().map(move |line| {
            let of = |(number, line): (usize, Vec<u8>)| {
                run_file::summary_line(line.trim_ascii()).with_context(|| format!("line {number}"))
            };
            (path, line.and_then(of))
        })),
        Ok(opened) => only(summarised(path, opened)),
    }
}

fn summarised(path: &Path, opened: Opened) -> anyhow::Result<SummaryLine> {
    let Contents::Summaries(all) = opened.contents()? else { bail!("it is not a run file") };
    let Some(Ok((summary, file))) = all.into_iter().next() else { bail!("it has no summary") };
    let mut sum = Sha256::new();
    let mut source = run_file::open(path)?;
    let mut part = vec![0; 1 << 16];
    loop {
        match source.read(&mut part).context("cannot read it")? {
            0 => break,
            length => sum.update(&part[..length]),
        }
    }
    let digits = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(SummaryLine { summary: Box::new(summary), file: Some(file), sha256: Some(digits) })
}
