//! `assay list`: the benchmarks.

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use super::output;
use bench::Benchmark;
use model::unit_words;
use session::plan;

/// List the benchmarks, by group
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Commands that measure benchmarks of no profile, with the groups of these.
const COMMANDS: [(&str, &str); 4] =
    [("host", "host"), ("memmap", "memory"), ("guard", "guard"), ("unixbench", "unixbench")];

/// One benchmark of `list --json`.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    pub id: &'static str,
    pub title: &'static str,
    /// Metric names with their units.
    pub metrics: Vec<(String, String)>,
    /// Parameters with their ranges.
    pub params: Vec<(String, String)>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.json {
        output::print_json(&plan::shown().map(listed).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = plan::shown().map(|bench| bench.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for bench in plan::shown() {
        let metrics: Vec<String> =
            bench.metrics.iter().map(|metric| metric_words(&metric.name, &metric.unit)).collect();
        text.push_str(&format!("{:width$}  {}: {}\n", bench.id, bench.title, metrics.join(", ")));
    }
    text.push_str("\nMeasured by commands of their own:\n");
    for (command, group) in COMMANDS {
        let own = bench::all().filter(|bench| bench.hidden && bench.group() == group);
        let ids: Vec<&str> = own.map(|bench| bench.id.as_str()).collect();
        text.push_str(&format!("  assay {command}: {}\n", ids.join(", ")));
    }
    text.push_str(
        "\n`assay explain ID` says how each is measured, `assay run --dry-run` which this host can run.\n",
    );
    output::print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn metric_words(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_string() } else { format!("{name} ({})", unit_words(unit)) }
}

fn listed(bench: &Benchmark) -> Listed {
    Listed {
        id: bench.id.as_str(),
        title: bench.title,
        metrics: bench.metrics.iter().map(|m| (m.name.to_string(), m.unit.to_string())).collect(),
        params: bench.params.iter().map(|p| (p.name.to_string(), p.range.to_string())).collect(),
    }
}
