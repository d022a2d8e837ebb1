//! `assay import`: what foreign result files say, in our own terms.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::output;
use import::{self, Imported};
use model::run_file;
use report::{imported, text};

/// Read result files of other tools (lmbench, UnixBench, hackbench, perf bench sched, SPEC CPU2017,
/// fio, iperf3, sockperf) into series of our own
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay import summary.out                       what lmbench's `make summary` printed
  assay import results/*/host.0 --json           raw result files, as the JSON that `assay run` gives
  assay import results/myhost-2019-05-02-01      what UnixBench's `./Run` wrote
  assay import hackbench.log                     what hackbench or `perf bench sched messaging` printed, once or often
  assay import result/CPU2017.*.csv              SPEC CPU2017, csv or txt: components, spread over the runs, headline
  assay import fio.json iperf3.json sockperf.log what fio (JSON or text), `iperf3 -J` and sockperf printed, with what was said around
  assay compare summary.out RUN                  an old result against a run
  assay report RUN --beside summary.out          and in its report")]
pub struct Args {
    /// Result files: lmbench summaries, raw lmbench results, lat_mem_rd curves, UnixBench reports,
    /// logs of hackbench and perf bench sched, results of SPEC CPU2017 (csv, txt), of fio (JSON,
    /// text), iperf3 (JSON) and sockperf
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut results: Vec<(String, Imported)> = Vec::new();
    for path in &args.files {
        results.extend(read(path)?.into_iter().map(|one| (path.display().to_string(), one)));
    }
    match args.json {
        true => output::print_json(&imported::output(&results))?,
        false => {
            let style = output::style(std::io::IsTerminal::is_terminal(&std::io::stdout()));
            let shown = results.iter().map(|(file, one)| text::render(&imported::report(file, one), style));
            let repeats = imported::repeats_reports(&results);
            let repeats = repeats.iter().map(|report| text::render(report, style));
            // What several runs come to stands before each of them.
            output::print_text(&repeats.chain(shown).collect::<Vec<_>>().join("\n"))?;
        }
    }
    let usable = results
        .iter()
        .flat_map(|(_, one)| &one.figures)
        .any(|figure| figure.judged.analysis.estimate.is_some());
    Ok(if usable { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// The results of all hosts in a file.
pub fn read(path: &Path) -> anyhow::Result<Vec<Imported>> {
    let file = run_file::open(path)?;
    let mut bytes = Vec::new();
    // One byte more than may be tells a larger file apart.
    file.take(import::LARGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    import::read(&bytes).with_context(|| format!("{} cannot be imported", path.display()))
}
