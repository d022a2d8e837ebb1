//! `assay report`: render a saved run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use ::compare::{Arm, Comparison};

use super::screen::{self, Page, ScreenArgs};
use super::{compare, files, output, results};
use diagnose::{self, Diagnosis};
use report::block::Report;
use report::{csv, html, json, lmbench, markdown, sections, svg};

/// Render a saved run as a page, JSON, Markdown, CSV or in the form of lmbench's summary
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay report assay-out/HOST-TIME.assay.jsonl                  report.html beside the run file
  assay report RUN --format markdown > comment.md               for an issue or a pull request
  assay report RUN --format csv > samples.csv                   every sample, for R or pandas
  assay report RUN --format lmbench                             in the form of lmbench's summary
  assay report RUN --beside old.out --beside OLD-RUN            with older results beside the new ones
  assay report RUN --map map.svg                                the map of a sweep as a picture")]
pub struct Args {
    /// A run file (.assay.jsonl, may be gzip-compressed)
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// html (a file), json, markdown, csv or lmbench (standard output, or a file in --out)
    #[arg(long, value_name = "FORMAT", default_value = "html", 
          value_parser = ["html", "json", "markdown", "csv", "lmbench"])]
    format: String,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the sweep's map as an SVG picture, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "json", "out", "beside"])]
    map: Option<PathBuf>,
    /// An older result to stand beside the new one: a run file or a result file of another tool
    /// (may be given again)
    #[arg(long, value_name = "OLD")]
    beside: Vec<PathBuf>,
    #[command(flatten)]
    screen: ScreenArgs,
    /// Folder for the report (default: html beside the run file, all else on standard output)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let diagnosis = diagnose::diagnose(results::run(&args.run)?);
    if let Some(file) = &args.map {
        return write_map(&sections::compose(&diagnosis)?, file);
    }
    let references = args.screen.reference.references(&diagnosis)?;
    let format = if args.json { "json" } else { args.format.as_str() };
    let older = beside(&args, &diagnosis)?;
    // All other forms have it inside.
    if let Some(thinned) = diagnosis.run.thinned.as_ref().filter(|_| matches!(format, "csv" | "lmbench")) {
        output::tell(&format!("assay: {}", thinned.words()));
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
    let dir = output::beside(&args.run, &args.out);
    std::fs::create_dir_all(&dir).with_context(|| {
        format!("cannot create the folder {}; choose another one with --out", dir.display())
    })?;
    let extension = match format {
        "markdown" => "md",
        "lmbench" => "lmbench.txt",
        other => other,
    };
    let file = dir.join(format!("report.{extension}"));
    files::write_own(&file, |out| Ok(out.write_all(text.as_bytes())?))?;
    if format == "html" {
        screen::show(&diagnosis, &references, &args.screen, false, &Page::At(&file))?;
    }
    output::tell(&format!("  saved {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

fn write_map(report: &Report, file: &Path) -> anyhow::Result<ExitCode> {
    let Some(map) = svg::first_map(report) else {
        bail!("this run has no map to write: only a sweep over one or two knobs gives one");
    };
    let picture = svg::map(map, svg::Theme::Alone);
    files::write_named(file, |out| Ok(out.write_all(picture.as_bytes())?))?;
    output::tell(&format!("  saved {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// The older results, each compared with the run.
fn beside(args: &Args, diagnosis: &Diagnosis) -> anyhow::Result<Vec<Comparison>> {
    let new = Arm::measured(diagnosis, &args.run.display().to_string());
    args.beside.iter().map(|old| compare::beside(old, &new)).collect()
}
