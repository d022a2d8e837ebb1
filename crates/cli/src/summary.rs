//! `assay summary`: what runs come to, a line each, for those who read results of many hosts.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use super::results::{self, Held};
use super::{files, naming, output};
use model::run_file::{self, SummaryLine};

/// Print the summaries of runs, one line of JSON each
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay summary runs/ > fleet.ndjson       all runs below a folder
  assay summary RUN | gzip > db1.json.gz   one run, small enough to send
  assay peers fleet.ndjson                 hosts beside their peers, as by the runs themselves
  assay compare 'fleet.ndjson#1' RUN       the first of them against a run
Each line is {\"summary\": …, \"file\": …, \"sha256\": …}: host, labels, make-up, figures with intervals, findings, and \
the run file with the checksum of its bytes. Lines of several such files may be put together.
Exit codes: 0 printed, 2 usage, 3 no run has a summary")]
pub struct Args {
    /// Run files (.assay.jsonl, .gz), folders of them, and files of summaries
    #[arg(value_name = "RUN", required = true, value_parser = naming::results())]
    runs: Vec<PathBuf>,
    /// File for the lines [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    for path in results::files(&args.runs)? {
        let all = lines_of(&path).unwrap_or_else(|error| vec![Err(error)]);
        for line in all {
            match line {
                Ok(line) => lines.push(serde_json::to_string(&line)? + "\n"),
                Err(error) => output::tell(&format!("assay: {}: {error:#}", path.display())),
            }
        }
    }
    if lines.is_empty() {
        output::tell("assay: no run has a summary");
        return Ok(ExitCode::from(3));
    }
    match &args.out {
        None => output::print(&lines.concat())?,
        Some(path) => {
            files::write_named(path, |out| Ok(out.write_all(lines.concat().as_bytes())?))?;
            output::tell(&format!("  saved {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The summary of a run file; of a file of summaries all, each with the run file and the checksum
/// that it names.
fn lines_of(path: &Path) -> anyhow::Result<Vec<anyhow::Result<SummaryLine>>> {
    if !results::is_summaries(path)? {
        return Ok(vec![summarised(path)]);
    }
    let all = run_file::summaries(BufReader::new(run_file::open(path)?))?;
    Ok(all.into_iter().map(|(number, line)| line.with_context(|| format!("line {number}"))).collect())
}

fn summarised(path: &Path) -> anyhow::Result<SummaryLine> {
    let Held::Summaries(all) = results::held(path)? else { bail!("it is no run file") };
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
