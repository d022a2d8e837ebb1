//! `assay report`: render a saved run.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output;
use crate::diagnose;
use crate::report::{csv, html, json, markdown, sections};
use crate::run_file;

/// Render a saved run as a page, JSON, Markdown or CSV
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay report assay-out/HOST-TIME.assay.jsonl                  report.html beside the run file
  assay report RUN --format markdown > comment.md               for an issue or a pull request
  assay report RUN --format csv > samples.csv                   every sample, for R or pandas")]
pub struct Args {
    /// A run file (.assay.jsonl, may be gzip-compressed)
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// html (a file), json, markdown or csv (standard output)
    #[arg(long, value_name = "FORMAT", default_value = "html", value_parser = ["html", "json", "markdown", "csv"])]
    format: String,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Folder for report.html (default: beside the run file)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let diagnosis = diagnose::diagnose(run_file::read(&args.run)?);
    match if args.json { "json" } else { args.format.as_str() } {
        "json" => output::print_json(&json::output(&diagnosis))?,
        "markdown" => output::print(&markdown::render(&sections::compose(&diagnosis)?))?,
        "csv" => {
            let mut text = Vec::new();
            csv::write(&diagnosis, &mut text)?;
            output::print(&String::from_utf8_lossy(&text))?;
        }
        _ => {
            let dir = output::beside(&args.run, &args.out);
            std::fs::create_dir_all(&dir)?;
            let page = dir.join("report.html");
            let report = sections::compose(&diagnosis)?;
            output::write_file(&page, |file| html::write(&report, file))?;
            output::tell(&format!("  saved {}", page.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
