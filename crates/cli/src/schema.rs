//! `assay schema`: the JSON Schemas of what Assay reads and writes.

use std::process::ExitCode;

use schemars::schema_for;

use super::{bundle, check, dry_run, list, machine, output, utilization};
use model::Line;
use model::run_file::SummaryLine;
use report::json::Output;
use report::{comparison, imported, peers, trending};

/// Print the JSON Schema of a format
#[derive(clap::Args)]
pub struct Args {
    /// results (run --json, report.json), run-file (one line of it), machine, list, dry-run,
    /// import, compare, check, maas (check --maas), peers, trend, summary (a line of it), bundle
    /// (its MANIFEST.json) or utilization
    #[arg(value_name = "FORMAT", default_value = "results",
          value_parser = ["results", "run-file", "machine", "list", "dry-run", "import", "compare", "check", "maas", "peers", "trend", "summary", "bundle", "utilization"])]
    format: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let schema = match args.format.as_str() {
        "run-file" => schema_for!(Line),
        "machine" => schema_for!(machine::Report),
        "list" => schema_for!(Vec<list::Listed>),
        "compare" => schema_for!(comparison::Output),
        "check" => schema_for!(check::Report),
        "maas" => schema_for!(::check::MaasResult),
        "peers" => schema_for!(peers::Output),
        "trend" => schema_for!(trending::Output),
        "summary" => schema_for!(SummaryLine),
        "bundle" => schema_for!(bundle::Manifest),
        "import" => schema_for!(imported::Output),
        "utilization" => schema_for!(utilization::Report),
        "dry-run" => schema_for!(dry_run::DryRun),
        _ => schema_for!(Output),
    };
    output::print_json(&schema)?;
    Ok(ExitCode::SUCCESS)
}
