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

/// Compare runs, reports or result files of other tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay compare A B                      B against A: what is faster, what is slower
  assay compare @before                  the newest run against those of `assay run --name before`
  assay compare runs-of-a/ runs-of-b/    folders of runs
  assay compare A B --all                every figure, and how the hosts differ
  assay compare A B --left-out           the figures that do not count, with reasons
  assay compare A B --out compare.html   a page with plots
  assay compare A B --again A2           A2 is a second result of A
  assay compare A B --history of-a/      how much equal runs differ, from earlier ones
  assay compare A B --fail-on slower:5%  exit 1 if a key figure is slower by 5 %
  assay compare summary.out RUN          an old lmbench summary against a run
Ratios are B ÷ A, turned so that above 1 is better for B. The screen shows the key figures that both have; if there \
are more than twelve, those that differ come first.
Faster or slower: the 95 % interval excludes equality, p holds after Benjamini and Hochberg's correction, nothing \
disturbed A or B, and the difference is at least 2 %. The interval includes how much whole runs differ.
Same within 2, 5 or 10 %: two one-sided tests at 5 % show it. Between runs of one host, figures that the core \
decides are compared at A's clock.
Exit codes: 0 compared; 1 a key figure reached --fail-on; 2 usage; 3 a file cannot be used; 4 nothing could be \
compared, or a key figure that both measured was left out because conditions differ. --allow-refused turns the last \
case into 0. An imported figure that is left out counts only if --only names it.")]
pub struct Args {
    /// Baseline, or @NAME: all runs of `run --name NAME`
    #[arg(value_name = "A", value_parser = naming::results())]
    a: PathBuf,
    /// Results to compare with A [default: the newest run in assay-out]
    #[arg(value_name = "B", num_args = 1.., value_parser = naming::results())]
    others: Vec<PathBuf>,
    /// Largest difference that counts as the same, in %
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN * 100.0, value_parser = margin)]
    margin: f64,
    /// Folder of 3 or more earlier runs of A, for its usual spread
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Exit 1 if a key figure is slower: slower, or slower:5%
    #[arg(long, value_name = "CHANGE", value_parser = FailOn::parse)]
    fail_on: Option<FailOn>,
    /// Groups, benchmarks or figures, with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Compare core-bound figures at A's core clock
    #[arg(long)]
    common_clock: bool,
    /// Second result of A: up to twice their difference is the same
    #[arg(long, value_name = "A2")]
    again: Option<PathBuf>,
    /// Exit 0 even if figures were left out
    #[arg(long)]
    allow_refused: bool,
    /// Show every figure, not only the key figures
    #[arg(long, conflicts_with_all = ["left_out", "quiet"])]
    all: bool,
    /// Show the figures left out, with both values and the reason
    #[arg(long, conflicts_with = "quiet")]
    left_out: bool,
    /// Print the verdict only
    #[arg(long)]
    quiet: bool,
    /// JSON output, always with all figures
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
        let newest = results::newest(Path::new(naming::OUT)).map_err(|_| {
            let missing = || misuse(format!("compare needs a second result: {} has no run", naming::OUT));
            load(&args.a).err().unwrap_or_else(missing)
        })?;
        eprint_line(&format!("assay: only one result is named; the other is {}", newest.display()));
        args.others.push(newest);
    }
    let all = std::iter::once(&args.a).chain(&args.others);
    let all = if within.is_empty() {
        all.map(|path| load(path)).collect::<anyhow::Result<Vec<ComparisonSide>>>()?
    } else {
        within
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

/// The exit code; if no screen gives the reason for a failure, standard error does.
fn exit(args: &Args, found: &[Comparison]) -> u8 {
    let is_shown = !args.json && args.out.is_none();
    let eprint_unless_shown = |text: String| {
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
            (true, _) => eprint_unless_shown(format!(
                "assay: {file} and {} have no figure in common that can be compared",
                one.names[0][1]
            )),
            (false, true) => eprint_unless_shown(format!(
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

/// What makes a comparison exit with 1: key figures that are slower by at least this share.
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
        "{} has runs of {}, but A is of {}: --history takes runs of one host",
        folder.display(),
        history.host,
        a.host
    );
    Ok(history)
}

fn present(args: &Args, found: &[Comparison], code: u8) -> anyhow::Result<()> {
    let output_of = || comparison::outputs(found);
    let Some(file) = &args.out else {
        return if args.json {
            output::print_json(&output_of())
        } else {
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
    // Names that Assay can measure are no mistake, even if no arm has them.
    let known = session::plan::select(&[name.to_string()], bench::Depth::Full).is_ok();
    if known || keys().any(|key| chooses(name, key)) {
        return None;
    }
    let benches = keys().filter_map(|key| key.split(['@', '#']).next());
    let groups = benches.clone().filter_map(|bench| bench.split('.').next());
    let meant = did_you_mean(name, groups.chain(benches).chain(keys()));
    Some(format!("--only {name}: no result has a group, benchmark or figure of this name{meant}"))
}

/// Whether a name is a key, its group, its benchmark or how it begins, up to a mark.
fn chooses(name: &str, key: &str) -> bool {
    let rest = key.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
}

/// The part of an arm that the names select: groups, benchmarks, keys and prefixes of keys.
fn only(mut arm: ComparisonSide, names: &[String]) -> ComparisonSide {
    let chosen = |key: &str| names.iter().any(|name| chooses(name, key));
    // The placement of tasks is looked up for the rest.
    if !names.is_empty() {
        arm.members.retain(|member| chosen(&member.key) || member.tells_occupancy());
    }
    arm
}

fn margin(text: &str) -> Result<f64, String> {
    let margin: f64 =
        text.trim_end_matches('%').parse().map_err(|_| format!("{text:?} is not a number of percent"))?;
    if (0.01..=100.0).contains(&margin) {
        Ok(margin)
    } else {
        Err("a margin is between 0.01 and 100 percent".to_string())
    }
}

/// For `report --beside`: one older result against the run.
pub fn beside(old: &Path, new: &ComparisonSide) -> anyhow::Result<Comparison> {
    Ok(compare(&load(old)?, new, &Options::default()))
}
