//! `assay schema`: the JSON Schemas of what Assay reads and writes.

use std::process::ExitCode;

use schemars::{Schema, schema_for};

use super::{bundle, check, dry_run, list, machine, output, utilization};
use model::Line;
use model::run_file::SummaryLine;
use report::json::Output;
use report::{comparison, imported, peers, trending};

/// A format with what its schema describes.
pub struct Format {
    pub name: &'static str,
    pub about: &'static str,
    schema: fn() -> Schema,
}

const fn format(name: &'static str, about: &'static str, schema: fn() -> Schema) -> Format {
    Format { name, about, schema }
}

pub const FORMATS: &[Format] = &[
    format("results", "report.json, `assay run --json`", || schema_for!(Output)),
    format("run-file", "a line of a run file", || schema_for!(Line)),
    format("summary", "a line of `assay summary`", || schema_for!(SummaryLine)),
    format("machine", "`assay machine --json`", || schema_for!(machine::Report)),
    format("list", "`assay list --json`", || schema_for!(Vec<list::Listed>)),
    format("dry-run", "`assay run --dry-run --json`", || schema_for!(dry_run::DryRun)),
    format("import", "`assay import --json`", || schema_for!(imported::Output)),
    format("compare", "`assay compare --json`", || schema_for!(comparison::Output)),
    format("check", "`assay check --json`", || schema_for!(check::Report)),
    format("maas", "`assay check --maas`", || schema_for!(::check::MaasResult)),
    format("peers", "`assay peers --json`", || schema_for!(peers::Output)),
    format("trend", "`assay trend --json`", || schema_for!(trending::Output)),
    format("bundle", "MANIFEST.json of a bundle", || schema_for!(bundle::Manifest)),
    format("utilization", "`assay utilization --json`", || schema_for!(utilization::Report)),
];

/// Print the JSON Schema of a format
#[derive(clap::Args)]
pub struct Args {
    /// Format, such as results (report.json) or run-file
    #[arg(value_name = "FORMAT", default_value = "results",
          value_parser = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>())]
    format: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(format) = FORMATS.iter().find(|format| format.name == args.format) {
        output::print_json(&(format.schema)())?;
    }
    Ok(ExitCode::SUCCESS)
}
