//! `assay compare`: one result against another.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::{import, output};
use crate::compare::{Arm, compare};
use crate::diagnose;
use crate::report::{comparison, text};
use crate::run_file;
use crate::stats::compare::LEAST_MARGIN;

/// Compare two results: runs, or result files of other tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay compare before.assay.jsonl after.assay.jsonl      B against A, environment differences first
  assay compare summary.out RUN                           what lmbench said once against a run of today
  assay compare 'summary.out#2' RUN                       the second host of a file of several

Exits with 4 where nothing can be compared.")]
pub struct Args {
    /// The one to compare with
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The one that is compared
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Per cent within which a metric counts as the same
    #[arg(long, value_name = "PERCENT", default_value_t = LEAST_MARGIN * 100.0, value_parser = margin)]
    margin: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Nothing could be compared.
const NOT_COMPARABLE: u8 = 4;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let found = compare(&a, &b, args.margin / 100.0);
    match args.json {
        true => output::print_json(&comparison::output(&found))?,
        false => {
            let style = output::style(std::io::IsTerminal::is_terminal(&std::io::stdout()));
            output::print_text(&text::render(&comparison::report(&found), style))?;
        }
    }
    if found.metrics.is_empty() {
        output::tell("assay: the two results have nothing that can be compared");
        return Ok(ExitCode::from(NOT_COMPARABLE));
    }
    Ok(ExitCode::SUCCESS)
}

fn margin(text: &str) -> Result<f64, String> {
    let margin: f64 =
        text.trim_end_matches('%').parse().map_err(|_| format!("{text:?} is no number of per cent"))?;
    match (0.01..=100.0).contains(&margin) {
        true => Ok(margin),
        false => Err("a margin lies between 0.01 and 100 per cent".to_string()),
    }
}

/// A run file or a foreign result; `FILE#2` is the second host's result in a file of several.
pub fn load(path: &Path) -> anyhow::Result<Arm> {
    let (path, number) = numbered(path);
    let shown = path.display().to_string();
    if is_run(&path)? {
        return Ok(Arm::measured(&diagnose::diagnose(run_file::read(&path)?), &shown));
    }
    let all = import::read(&path)?;
    match (number, all.as_slice()) {
        (Some(number), all) => {
            let one = number.checked_sub(1).and_then(|place| all.get(place));
            let one =
                one.with_context(|| format!("{shown} holds {} results; there is no #{number}", all.len()))?;
            Ok(Arm::imported(one, &format!("{shown}#{number}")))
        }
        (None, [one]) => Ok(Arm::imported(one, &shown)),
        (None, all) => {
            let hosts: Vec<String> = all
                .iter()
                .take(20)
                .enumerate()
                .map(|(at, one)| format!("#{} {}", at + 1, one.host))
                .collect();
            bail!(
                "{shown} holds results of {} hosts: name one as {shown}#1 ({})",
                all.len(),
                hosts.join(", ")
            )
        }
    }
}

/// The number behind `#`, where no file has the whole name.
fn numbered(path: &Path) -> (PathBuf, Option<usize>) {
    let parts = path.to_str().filter(|_| !path.exists()).and_then(|text| text.rsplit_once('#'));
    match parts.and_then(|(file, number)| Some((PathBuf::from(file), number.parse().ok()?))) {
        Some((file, number)) => (file, Some(number)),
        None => (path.to_path_buf(), None),
    }
}

/// Whether a file begins as run files do: with an object of JSON, or compressed.
fn is_run(path: &Path) -> anyhow::Result<bool> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut begin = Vec::new();
    file.take(2).read_to_end(&mut begin).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(begin.starts_with(b"{") || begin == [0x1f, 0x8b])
}
