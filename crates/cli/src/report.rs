//! `assay report`: render a saved run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use ::compare::{Comparison, ComparisonSide};

use super::output::{self, eprint_line, misuse};
use super::report_file::{Form, ReportFile};
use super::screen::{self, Page, ScreenArgs};
use super::{compare, files, naming, reports, results};
use diagnose::{self, Diagnosis};
use report::block::Report;
use report::{csv, html, json, lmbench, markdown, sections, svg};

/// Write a saved run as a page, JSON, Markdown, CSV or for lmbench
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay report assay-out/HOST-TIME.assay.jsonl   a page next to the run file
  assay report RUN --format markdown > note.md   for an issue or a pull request
  assay report RUN --format csv > samples.csv    every sample, for R or pandas
  assay report RUN --beside old.out              with an older result next to the new one
  assay report RUN --map map.svg                 the map of a sweep as a picture")]
pub struct Args {
    /// Run file (.assay.jsonl, .gz), or @NAME
    #[arg(value_name = "RUN", value_parser = naming::run())]
    run: PathBuf,
    /// Form of the report [default: from the ending of --out, or html]
    #[arg(long, value_name = "FORMAT", value_parser = ["html", "json", "markdown", "csv", "lmbench"])]
    format: Option<String>,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// File for the map of a sweep (SVG), written alone
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "json", "out", "beside"])]
    map: Option<PathBuf>,
    /// Older run or result of another tool to show next to it
    #[arg(long, value_name = "OLD")]
    beside: Vec<PathBuf>,
    #[command(flatten)]
    screen: ScreenArgs,
    /// File: .html, .md, .json or .csv [default: RUN.report.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let format = args.form().map_err(|why| misuse(format!("--out: {why}")))?;
    let diagnosis = diagnose::diagnose(results::run(&args.run)?);
    if let Some(file) = &args.map {
        return write_map(&sections::compose(&diagnosis)?, file);
    }
    let references = args.screen.reference.references(&diagnosis)?;
    let older = beside(&args, &diagnosis)?;
    // All other forms have it inside.
    if let Some(thinned) = diagnosis.run.thinned.as_ref().filter(|_| matches!(format, "csv" | "lmbench")) {
        eprint_line(&format!("assay: {}", thinned.words()));
    }
    let text = match format {
        "json" => json::pretty(&json::output_beside(&diagnosis, &older, &references))?,
        "markdown" => {
            markdown::render(&sections::compose_with(&diagnosis, &older, &references, &args.screen.unit)?)
        }
        "lmbench" => lmbench::render(&diagnosis),
        "csv" => {
            let mut text = Vec::new();
            csv::write(&diagnosis, &mut text)?;
            String::from_utf8(text).context("a CSV that is no text")?
        }
        _ => {
            let mut page = Vec::new();
            html::write(
                &sections::compose_with(&diagnosis, &older, &references, &args.screen.unit)?,
                &mut page,
            )?;
            String::from_utf8(page).context("a page that is no text")?
        }
    };
    if args.out.is_none() && format != "html" {
        output::print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = |file: &Path| -> anyhow::Result<ExitCode> {
        if format == "html" {
            let page = Page::At { page: file, run: None };
            screen::show(&diagnosis, &references, &args.screen, false, false, &page)?;
        }
        eprint_line(&format!("  saved {}", file.display()));
        Ok(ExitCode::SUCCESS)
    };
    if let Some(file) = args.out.as_ref().filter(|path| !is_folder(path)) {
        files::write_named(file, |out| Ok(out.write_all(text.as_bytes())?))?;
        return shown(file);
    }
    let dir = output::beside(&args.run, &args.out);
    std::fs::create_dir_all(&dir).with_context(|| {
        format!("cannot create the folder {}; choose another one with --out", dir.display())
    })?;
    let extension = match format {
        "markdown" => "md",
        "lmbench" => "lmbench.txt",
        other => other,
    };
    if args.out.is_some() {
        let file = reports::general(&dir, extension);
        eprint_line(&format!(
            "assay: --out takes a file; a folder still works in this version only: write --out {}",
            file.display()
        ));
    }
    shown(&reports::write(&dir, &args.run, extension, |out| Ok(out.write_all(text.as_bytes())?))?)
}

/// What `--out` named before it named a file.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || (path.extension().is_none() && !path.exists())
}

impl Args {
    /// The form that an option names, else the ending of the file.
    fn form(&self) -> Result<&str, String> {
        match (&self.format, &self.out) {
            _ if self.json => Ok("json"),
            (Some(format), _) => Ok(format),
            (None, Some(file)) if !is_folder(file) => Ok(match ReportFile::parse(file.as_os_str())?.form {
                Form::Page => "html",
                Form::Markdown => "markdown",
                Form::Json => "json",
                Form::Csv => "csv",
            }),
            _ => Ok("html"),
        }
    }
}

fn write_map(report: &Report, file: &Path) -> anyhow::Result<ExitCode> {
    let Some(map) = svg::first_map(report) else {
        bail!("this run has no map: only a sweep over one or two settings has one");
    };
    let picture = svg::map(map, svg::Theme::Alone);
    files::write_named(file, |out| Ok(out.write_all(picture.as_bytes())?))?;
    eprint_line(&format!("  saved {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// The older results, each compared with the run.
fn beside(args: &Args, diagnosis: &Diagnosis) -> anyhow::Result<Vec<Comparison>> {
    let new = ComparisonSide::measured(diagnosis, &args.run.display().to_string());
    args.beside.iter().map(|old| compare::beside(old, &new)).collect()
}
