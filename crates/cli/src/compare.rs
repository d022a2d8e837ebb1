//! `assay compare`: results against one of them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::naming;
use super::output::{self, eprint_line, misuse, refuse};
use super::report_file::{Form, ReportFile};
use super::results::{self, load};
use anyhow::{Context, ensure};
use compare::{Compared, Comparison, ComparisonSide, MARGIN, Options, Relation, compare};
use model::did_you_mean;
use report::comparing::screen::{self, Shown};
use report::{comparing, comparison, csv, html, json, markdown, text};

/// Compare results: runs, saved reports, or result files of other tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay compare before.assay.jsonl after.assay.jsonl      B against A: what is faster, what is slower
  assay compare base.assay.jsonl b.assay.jsonl c.json     two others, each against the first
  assay compare @before                                   what `assay run --name before` kept against the newest run
  assay compare runs-of-a/ runs-of-b/                     folders of runs: one arm each
  assay compare A B --all                                 every figure, and what the hosts differ in
  assay compare A B --left-out                            what does not count, with the reasons
  assay compare A B --out compare.html                    a page with the forest plot and curves
  assay compare A B --only ipc,memory.bandwidth           these only
  assay compare A B --common-clock                        as if both had run at A's core clock
  assay compare A B --again A2                            A2 is what A is, once more
  assay compare A B --history runs-of-a/                  how far equal runs lie apart, by earlier ones
  assay compare A B --fail-on slower:5%                   exit 1 where something is slower by 5 %
  assay compare summary.out RUN                           what lmbench said once against a run
  assay compare 'summary.out#2' RUN                       the second host of a file of several

The screen names the key figures that both have, those that differ first where there are more than
twelve. Ratios are B ÷ A turned so that above 1 is better for B.

A metric is faster or slower only where its 95 % interval, which includes what whole runs differ by,
excludes no difference, p holds after Benjamini and Hochberg's correction for all metrics, and nothing
from outside disturbed either of the two; below 2 % nothing is. It is the same within 2, 5 or 10 % where
two one-sided tests at 5 % say so. Between runs of one machine what is bound by the core is compared at
the clock of A's run; between machines all stands as it ran.

Exits with 0 where everything that both have was compared, whatever came out, and with 1 where a
headline reached --fail-on. Exits with 4 where nothing could be compared, and where a headline metric
that both measured was refused because their conditions differ (placement, pages, neighbours, knobs,
invented samples, a number that one of the two rejects); --allow-refused makes the latter 0. Imported figures conclude nothing by themselves, so that
a refused one counts only where --only names it. Exits with 3 where a file cannot be used.")]
pub struct Args {
    /// The one to compare with; @NAME: all runs that `run --name NAME` kept
    #[arg(value_name = "A", value_parser = naming::results())]
    a: PathBuf,
    /// The ones that are compared with it [default: the rest of A, or the newest run in assay-out]
    #[arg(value_name = "B", num_args = 1.., value_parser = naming::results())]
    others: Vec<PathBuf>,
    /// Largest difference called the same, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN * 100.0, value_parser = margin)]
    margin: f64,
    /// Folder of 3 or more earlier runs of A: how far equal runs differ
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Exit 1 if a headline figure is slower: slower, or slower:5%
    #[arg(long, value_name = "WORD", value_parser = FailOn::parse)]
    fail_on: Option<FailOn>,
    /// Groups, benchmarks or series, with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Figures that the core clock decides, as if both ran at A's clock
    #[arg(long)]
    common_clock: bool,
    /// A second result of A: the same is within twice what these two differ
    #[arg(long, value_name = "A2")]
    again: Option<PathBuf>,
    /// Exit 0 although figures were left out, if any was compared
    #[arg(long)]
    allow_refused: bool,
    /// Show every figure, not only the key figures
    #[arg(long, conflicts_with_all = ["left_out", "quiet"])]
    all: bool,
    /// Show what is left out, with both values and the reason
    #[arg(long, conflicts_with = "quiet")]
    left_out: bool,
    /// Print the sentences of the verdict only
    #[arg(long)]
    quiet: bool,
    /// JSON, always with all figures
    #[arg(long)]
    json: bool,
    /// File for a page (.html), Markdown (.md), JSON (.json) or CSV (.csv)
    #[arg(long, value_name = "FILE", value_parser = ReportFile::parser())]
    out: Option<ReportFile>,
}

/// Something reached `--fail-on`.
const FAILED: u8 = 1;

pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    let within = if args.others.is_empty() { results::within(&args.a) } else { Vec::new() };
    if args.others.is_empty() && within.is_empty() {
        let newest = results::newest(Path::new(naming::OUT)).map_err(|error| {
            misuse(format!("one result has nothing to be compared with, and {error:#}: name a second one"))
        })?;
        args.others.push(newest);
    }
    let all = std::iter::once(&args.a).chain(&args.others);
    let all = match within.is_empty() {
        true => all.map(|path| load(path)).collect::<anyhow::Result<Vec<ComparisonSide>>>()?,
        false => within,
    };
    refuse(args.only.iter().find_map(|name| unknown(name, &all)))?;
    let chosen = |arm: ComparisonSide| only(arm, &args.only);
    let mut arms = all.into_iter().map(chosen);
    let a = arms.next().context("A is missing")?;
    let others: Vec<ComparisonSide> = arms.collect();
    let options = Options {
        margin: args.margin / 100.0,
        common_clock: args.common_clock,
        again: args.again.as_ref().map(|path| load(path).map(chosen)).transpose()?,
        history: args.history.as_ref().map(|folder| history(folder, &a)).transpose()?,
    };
    let found: Vec<Comparison> = others.iter().map(|b| compare(&a, b, &options)).collect();
    let code = exit(&args, &found);
    present(&args, &found, code)?;
    Ok(ExitCode::from(code))
}

/// The exit code. Where no screen says why it is not 0, standard error does.
fn exit(args: &Args, found: &[Comparison]) -> u8 {
    let is_shown = !args.json && args.out.is_none();
    let tell = |text: String| {
        if !is_shown {
            eprint_line(&text);
        }
    };
    let names_them = !args.only.is_empty();
    let mut code = 0;
    for one in found {
        let [_, file] = &one.names[1];
        let refused = one.refuses() && (!one.imported || names_them);
        match (one.metrics.is_empty(), refused && !args.allow_refused) {
            (true, _) => {
                tell(format!("assay: {file} has nothing that can be compared with {}", one.names[0][1]))
            }
            (false, true) => tell(format!(
                "assay: {file}: {}; --allow-refused accepts that",
                comparing::refused_words(one)
            )),
            (false, false) => continue,
        }
        code = screen::NOT_COMPARABLE;
    }
    if let Some(limit) = args.fail_on.filter(|_| code == 0) {
        let slower: Vec<&str> = found
            .iter()
            .flat_map(|one| &one.metrics)
            .filter(|one| limit.reached(one))
            .map(|one| one.key.as_str())
            .collect();
        if let Some(first) = slower.first() {
            let more = match slower.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            eprint_line(&format!("assay: {first}{more} reached --fail-on"));
            code = FAILED;
        }
    }
    code
}

/// What ends a comparison with an exit code of its own: headline metrics that are slower, by this
/// share at least.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FailOn {
    least: f64,
}

impl FailOn {
    fn parse(text: &str) -> Result<FailOn, String> {
        let (word, share) = text.split_once(':').unwrap_or((text, "0"));
        let share =
            share.trim_end_matches('%').parse::<f64>().ok().filter(|share| (0.0..1e6).contains(share));
        match (word, share) {
            ("slower", Some(share)) => Ok(FailOn { least: share / 100.0 }),
            _ => Err(format!("{text:?} is neither `slower` nor `slower:5%`")),
        }
    }

    fn reached(self, one: &Compared) -> bool {
        let by = one.ratio.ln().abs().exp_m1();
        one.headline && one.word == Relation::Slower && by >= self.least
    }
}

/// The runs in a folder of A's host and plan, without A itself.
fn history(folder: &Path, a: &ComparisonSide) -> anyhow::Result<ComparisonSide> {
    let history = load(folder)?;
    ensure!(
        history.host == a.host,
        "{} has runs of {}, and A is of {}: history is that of one host",
        folder.display(),
        history.host,
        a.host
    );
    Ok(history)
}

fn present(args: &Args, found: &[Comparison], code: u8) -> anyhow::Result<()> {
    let output_of = || comparison::outputs(found);
    let Some(file) = &args.out else {
        return match args.json {
            true => output::print_json(&output_of()),
            false => {
                let style = output::style(std::io::IsTerminal::is_terminal(&std::io::stdout()));
                let shown = match args {
                    Args { quiet: true, .. } => Shown::Quiet,
                    Args { left_out: true, .. } => Shown::LeftOut,
                    Args { all: true, .. } => Shown::All,
                    _ => Shown::First,
                };
                let mut text = screen::render(found, shown, code, style);
                if shown == Shown::All {
                    text.push_str(&text::details(&comparing::details(found), false, style));
                }
                output::print_text(&text)
            }
        };
    };
    let report = || comparing::report(found);
    file.write(|out| match file.form {
        Form::Json => Ok(out.write_all(json::pretty(&output_of())?.as_bytes())?),
        Form::Markdown => Ok(out.write_all(markdown::render(&report()?).as_bytes())?),
        Form::Csv => csv::comparisons(found, out),
        Form::Page => html::write(&report()?, out),
    })
}

/// Why a name chooses nothing of any arm.
fn unknown(name: &str, arms: &[ComparisonSide]) -> Option<String> {
    let keys = || arms.iter().flat_map(|arm| &arm.members).map(|member| member.key.as_str());
    // What Assay could measure is no mistake, although none of these has it.
    let known = session::plan::select(&[name.to_string()], bench::Depth::Full).is_ok();
    if known || keys().any(|key| chooses(name, key)) {
        return None;
    }
    let benches = keys().filter_map(|key| key.split(['@', '#']).next());
    let groups = benches.clone().filter_map(|bench| bench.split('.').next());
    let meant = did_you_mean(name, groups.chain(benches).chain(keys()));
    Some(format!("--only {name}: no result has a group, benchmark or series of this name{meant}"))
}

/// Whether a name is a key, its group, its benchmark or how it begins, up to a mark.
fn chooses(name: &str, key: &str) -> bool {
    let rest = key.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
}

/// What the names choose of an arm: groups, benchmarks, whole keys and what keys begin with.
fn only(mut arm: ComparisonSide, names: &[String]) -> ComparisonSide {
    let chosen = |key: &str| names.iter().any(|name| chooses(name, key));
    // Where tasks were is looked up for whatever is left.
    if !names.is_empty() {
        arm.members.retain(|member| chosen(&member.key) || member.tells_occupancy());
    }
    arm
}

fn margin(text: &str) -> Result<f64, String> {
    let margin: f64 =
        text.trim_end_matches('%').parse().map_err(|_| format!("{text:?} is no number of per cent"))?;
    match (0.01..=100.0).contains(&margin) {
        true => Ok(margin),
        false => Err("a margin lies between 0.01 and 100 per cent".to_string()),
    }
}

/// For `report --beside`: one older result against the run.
pub fn beside(old: &Path, new: &ComparisonSide) -> anyhow::Result<Comparison> {
    Ok(compare(&load(old)?, new, &Options::default()))
}
