//! `assay diagnose`: judge a saved run again, anywhere, with this version's rules.

use std::path::PathBuf;
use std::process::ExitCode;

use super::screen::{self, Page, ScreenArgs};
use super::{naming, output, results};
use model::Severity;
use report::json;

/// Read a saved run again with this version's rules
#[derive(clap::Args)]
pub struct Args {
    /// A run file (.assay.jsonl, may be gzip-compressed), or @NAME
    #[arg(value_name = "RUN", value_parser = naming::run())]
    run: PathBuf,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Exit 1 on findings from this severity on: note, warning, problem
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<Severity>,
    #[command(flatten)]
    screen: ScreenArgs,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let diagnosis = diagnose::diagnose(results::run(&args.run)?);
    let references = args.screen.reference.references(&diagnosis)?;
    if args.json {
        output::print_json(&json::output(&diagnosis, &references))?;
    } else {
        let page = Page::By("assay report RUN");
        screen::show(&diagnosis, &references, &args.screen, false, false, &page)?;
    }
    Ok(output::exit_code(&diagnosis, args.fail_on))
}
