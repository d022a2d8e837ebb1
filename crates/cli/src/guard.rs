//! `assay guard`: any program, watched as our own benchmarks are.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use rustix::fs::Access;

use super::measure_args::{CHOICES, MeasureArgs, hide};
use super::measuring::{Host, Prepared, Study};
use super::output::misuse;
use bench::{self, FORMATS, Wanted};
use model::units::duration;
use model::vocabulary::guard as ids;
use model::{Better, Title};
use session::measure::Patience;
use session::plan::guard::{Guarded, PLACEMENTS, cases, duet};
use session::plan::{Profile, Until};
use stats::quads::{MAX_QUADS, MIN_QUADS};

/// Run a program several times: is its result stable, and why
#[derive(clap::Args)]
#[command(
    mut_args(hide(&CHOICES)),
    after_help = help()
)]
pub struct Args {
    /// Second command, quoted, to alternate with on one CPU
    #[arg(long, value_name = "COMMAND", conflicts_with = "runs")]
    vs: Option<String>,
    /// Both at once on two like CPUs: a comparison without times
    #[arg(long, requires = "vs", conflicts_with = "placements")]
    duet: bool,
    /// Runs per placement [default: 10, with --quick 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Placements of its tasks, with commas [default: free]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PLACEMENTS)]
    placements: Vec<String>,
    /// Time limit of a run, such as 30s (a longer run fails)
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    timeout: Duration,
    /// Figure from its output: NAME[UNIT]=REGEX or NAME[UNIT]=json:PATH
    #[arg(long, value_name = "METRIC", conflicts_with = "format")]
    metric: Option<String>,
    /// Tool that wrote the output
    #[arg(long, value_name = "TOOL", value_parser = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>())]
    format: Option<String>,
    /// Better side of --metric [default: lower for times, by its name]
    #[arg(long, value_name = "SIDE", value_parser = ["higher", "lower"])]
    better: Option<String>,
    /// Program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    #[command(flatten)]
    measure: MeasureArgs,
}

const HELP: &str = "\
The program runs unmodified and without standard input. Its output is read and dropped. It is judged by its wall \
time, or by --metric or --format.
Around each run Assay records CPU time, switches, migrations, faults, placement of tasks, core clock, steal and \
other work. Verdicts and findings follow the rules of Assay's own benchmarks.
The command line is stored in the run file and the report: do not put a password there.
--metric takes the first group of the last match, or a path such as json:results.0.value; the unit is optional.
--vs alternates A B B A, B A A B, until the difference is known within 1 % or each has run 80 times. --duet runs \
both at once and swaps their CPUs every other round, so that disturbances hit both.
Placements: free leaves the program alone; same-cpu allows it one CPU (the default of --vs); spread pins its running \
tasks round-robin over the CPUs. Tasks that live for less than about 10 ms are not pinned. At most 256 tasks are \
watched.
A program that fails three times is not run again. At the end of each run Assay kills what the program left running. \
A watchdog process does it if Assay itself is killed, else the next run or `assay restore`.
Processes of a run are found by their parent, by a control group that sets no limit (as root, or where it is \
delegated), and by the variable ASSAY_GUARD. Without a control group, a child that lost both its parent and the \
variable is not found after kill -9. Work that a service runs for the program (systemd-run, docker, at) is not \
followed.
Examples:
  assay guard -- ./bench --threads 4                          by its wall time
  assay guard --placements free,same-cpu,spread -- ./bench    is it the scheduler?
  assay guard --vs './bench --new' -- ./bench --old           which is faster, run alternately
  assay guard --duet --vs './bench --new' -- ./bench --old    both at once, on a busy host
  assay guard --metric 'rate[1/s]=rate: ([0-9.]+)' -- ./bench
  assay guard --metric 'p99[us]=json:latency.p99' -- ./bench --json";

const CODES: &str = "Exit codes: 0 measured, 1 finding at or above --fail-on, 2 usage or no such command, 3 \
  error or nothing valid measured, 130 interrupted";

/// How it works, which number of each tool it takes, and how it ends.
fn help() -> String {
    let width = FORMATS.iter().map(|format| format.name.len()).max().unwrap_or(0);
    let figures = FORMATS.iter().map(|format| {
        let unit = if format.unit.is_empty() { "" } else { " in " };
        let better = if format.better == Better::Lower { ", lower is better" } else { "" };
        let unit = format!("{unit}{}", format.unit.replace("us", "µs"));
        format!("  {:width$}  {}{unit}{better}\n", format.name, format.title)
    });
    let figures: String = figures.collect();
    format!("{HELP}\nFigure of each --format (the last result in the output):\n{figures}{CODES}")
}

/// Time of a visit besides the program's, and for ending it.
const AROUND: Duration = Duration::from_secs(15);

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // All of it is a mistake of usage.
    let request = parse_request(&args).map_err(misuse)?;
    let result = request.commands.first().and_then(|command| command.wanted.clone());
    let bench = bench::find(&ids::COMMAND).context("the row of guarded commands is missing")?;
    let study = Study::of(request.profile, vec![bench])
        .choosing(|_, scope, _| match request.commands.as_slice() {
            [a, b] if args.duet => vec![duet(scope, a, b)],
            commands => cases(scope, commands, &request.placements),
        })
        .amending(|header| {
            header.catalogue.iter_mut().for_each(|title| judged_by(title, result.as_ref()));
        })
        .prepared(Prepared { visit_limit: Some(args.timeout + AROUND), ..Prepared::default() });
    Ok(study.measure(&args.measure)?.code)
}

/// The parsed arguments.
struct GuardRequest {
    placements: Vec<String>,
    commands: Vec<Guarded>,
    profile: Profile,
}

fn parse_request(args: &Args) -> anyhow::Result<GuardRequest> {
    let measure = &args.measure;
    ensure!(measure.only.is_empty(), "--only names benchmarks; `assay guard` measures the command behind --");
    ensure!(!measure.drop_caches, "--drop-caches is for Assay's own file benchmarks");
    let wanted = wanted(args)?;
    executable(args.command.first().context("no command is given")?)?;
    let other = args.vs.as_deref().map(words_of).transpose()?;
    let placements = placements(args)?;
    let guarded = |words: Vec<String>| Guarded { words, wanted: wanted.clone(), timeout: args.timeout };
    let commands: Vec<Guarded> = std::iter::once(args.command.clone()).chain(other).map(guarded).collect();
    if let [a, b] = commands.as_slice() {
        ensure!(a.words != b.words, "both commands are the same: nothing to compare");
    }
    if args.duet {
        let host = Host::describe(measure, &Prepared::default())?;
        host.placements.like_pair("command", &host.machine).map_err(|why| {
            anyhow!(
                "--duet needs two CPUs on cores of one kind with a shared last-level cache, and {why}. \
                  Without --duet the two alternate on one CPU"
            )
        })?;
    }
    Ok(GuardRequest { profile: profile(args, placements.len())?, placements, commands })
}

/// The figure of a command, if it is not its wall time.
fn wanted(args: &Args) -> anyhow::Result<Option<Wanted>> {
    let better =
        args.better.as_deref().map(|side| if side == "lower" { Better::Lower } else { Better::Higher });
    Ok(match (&args.metric, &args.format) {
        (Some(metric), _) => {
            Some(Wanted::parse(metric, better).with_context(|| format!("--metric {metric}"))?)
        }
        (_, Some(name)) => {
            let format = bench::format_of(name).with_context(|| format!("no format is called {name:?}"))?;
            Some(Wanted::format(format, better))
        }
        (None, None) if better.is_some() => bail!("--better belongs to --metric or --format"),
        (None, None) => None,
    })
}

/// The placements that are named, each once.
fn placements(args: &Args) -> anyhow::Result<Vec<String>> {
    let mut seen = BTreeSet::new();
    let named: Vec<String> = args.placements.iter().filter(|name| seen.insert(*name)).cloned().collect();
    ensure!(args.vs.is_none() || named.len() <= 1, "--vs takes one placement");
    Ok(match (named.is_empty(), args.vs.is_some()) {
        (false, _) => named,
        (true, true) => vec!["same-cpu".to_string()],
        (true, false) => vec!["free".to_string()],
    })
}

/// The number of runs request for, with a budget for all of them at their time limit and for the
/// wait for a quiet host.
fn profile(args: &Args, placements: usize) -> anyhow::Result<Profile> {
    let waiting = match args.measure.patience() {
        Patience::Bounded(limit) => limit,
        Patience::None | Patience::UntilIdle => Duration::ZERO,
    };
    let mut profile = args.measure.profile_within(|usual| {
        let visits = match args.vs {
            Some(_) if args.duet => 2 * MAX_QUADS as u32,
            Some(_) => 4 * MAX_QUADS as u32,
            None => args.runs.unwrap_or(usual.passes_min).saturating_mul(placements as u32),
        };
        (args.timeout + AROUND).saturating_mul(visits).saturating_add(waiting).as_secs_f64()
    })?;
    if let Some(runs) = args.runs {
        profile.passes_min = runs;
    }
    profile.passes_max = profile.passes_min;
    if args.vs.is_some() {
        profile.until = Until::Quads;
        (profile.passes_min, profile.passes_max) = (2 * MIN_QUADS as u32, 2 * MAX_QUADS as u32);
    }
    Ok(profile)
}

/// The words of the command of `--vs`, which must exist.
fn words_of(text: &str) -> anyhow::Result<Vec<String>> {
    let words = shlex::split(text).with_context(|| format!("--vs {text:?}: a quote is not closed"))?;
    executable(words.first().context("--vs has no command")?)?;
    Ok(words)
}

/// Checks that the program can be started, found as a shell does.
fn executable(program: &str) -> anyhow::Result<()> {
    let is_file = |path: &Path| path.metadata().is_ok_and(|found| found.is_file());
    let may_run = |path: &Path| rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        let path = Path::new(program);
        ensure!(path.exists(), "{program:?} does not exist");
        ensure!(is_file(path), "{program:?} is not a file");
        ensure!(may_run(path), "{program:?} may not be executed by this user (chmod +x?)");
        return Ok(());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found: Vec<_> = std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .filter(|path| is_file(path))
        .collect();
    match found.iter().any(|path| may_run(path)) {
        true => Ok(()),
        false if found.is_empty() => bail!("no program is called {program:?} in any folder of PATH"),
        false => bail!("{} may not be executed by this user (chmod +x?)", found[0].display()),
    }
}

/// The catalogue's entry names this run's figure.
fn judged_by(title: &mut Title, wanted: Option<&Wanted>) {
    let Some(wanted) = wanted else {
        title.title = "Wall time".into();
        return;
    };
    title.title = wanted.name.clone().into();
    if let Some(result) = title.metrics.iter_mut().find(|metric| metric.name == ids::metric::RESULT) {
        result.title = wanted.name.clone().into();
        result.unit = wanted.unit.clone().into();
        result.better = wanted.better;
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_budget_holds_all_runs_and_the_wait_for_others() {
        let budget = |words: &str| {
            let line = format!("guard --runs 2 --placements free,same-cpu --timeout 1s {words} -- /bin/sh");
            let line = Line::try_parse_from(line.split_whitespace()).expect("a line");
            parse_request(&line.args).expect("parse_request").profile.budget_s
        };
        assert_eq!(budget("--force"), 4.0 * 16.0);
        assert_eq!(budget(""), 4.0 * 16.0 + 20.0);
        assert_eq!(budget("--budget 90s"), 90.0);
    }
}
