//! `assay guard`: any program, watched as our own benchmarks are.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use rustix::fs::Access;

use super::measure_args::MeasureArgs;
use super::measuring::{Host, measure_study_of};
use super::output;
use bench::{self, Candidate, FORMATS, Scope, Wanted};
use model::units::duration;
use model::vocabulary::guard as ids;
use model::{Better, Header, Title};
use session::measure::Patience;
use session::plan::Until;
use session::plan::guard::{Guarded, PLACEMENTS, cases, duet};
use stats::quads::{LEAST_QUADS, MOST_QUADS};

/// Run any program several times under watch: is its result stable, and what moves it
#[derive(clap::Args)]
#[command(
    mut_arg("only", |arg| arg.hide(true)),
    mut_arg("drop_caches", |arg| arg.hide(true)),
    mut_arg("dir", |arg| arg.hide(true)),
    mut_arg("every_pair", |arg| arg.hide(true)),
    after_help = help()
)]
pub struct Args {
    /// Another command, in one word quoted for a shell: the two run in turn on one CPU (A B B A, B
    /// A A B), until their difference is known within 1 % or 80 runs of each are done
    #[arg(long, value_name = "COMMAND", conflicts_with = "runs")]
    vs: Option<String>,
    /// Both at once instead, each on one of two like CPUs that they swap for every other round:
    /// what disturbs the machine disturbs both. Tells how they compare, and not how long they take
    #[arg(long, requires = "vs", conflicts_with = "placements")]
    duet: bool,
    /// Runs of each placement (default: 10; with --quick 6)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Where its tasks may run: free (with --vs: same-cpu), same-cpu, spread; several with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PLACEMENTS)]
    placements: Vec<String>,
    /// A run that takes longer is ended and has failed, like 30s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    timeout: Duration,
    /// The number it is judged by, with an optional unit: NAME[UNIT]=REGEX (the first group of the
    /// last match) or NAME[UNIT]=json:PATH (like results.0.value)
    #[arg(long, value_name = "METRIC", conflicts_with = "format")]
    metric: Option<String>,
    /// The output is that of a tool whose figure is known
    #[arg(long, value_name = "TOOL", value_parser = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>())]
    format: Option<String>,
    /// Which side of the number is better, where its name does not tell: times are taken to be
    /// better low
    #[arg(long, value_name = "SIDE", value_parser = ["higher", "lower"])]
    better: Option<String>,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    #[command(flatten)]
    measure: MeasureArgs,
}

const HELP: &str = "\
The program runs unmodified, with nothing on its standard input, each time anew; its output is read and, but for the metric, \
thrown away. It is judged by its wall time, or by a number from its output. Around each run Assay notes CPU time, switches, \
migrations, faults, where its tasks were together, the clock, stolen time and what others did; verdicts and findings follow the \
same rules as for Assay's own benchmarks.
The words of the command are stored in the run file and the report: don't put a password there.
Placements: free leaves the program alone; same-cpu starts it with one CPU allowed; spread pins its tasks to the CPUs in turn as \
they are seen at work (and moves a busy one that shares its CPU while another is free). Tasks that live shorter than a look, \
about a hundredth of a second, are not pinned: they run where the one that started them may. At most 256 tasks are watched.
A program that fails three times is not run again. Whatever it leaves running is killed at the end of each run, and by a watchdog \
process where Assay is killed itself, even together with the run's own process; where that is killed, too, by the next measurement or \
`assay restore`. Three things tell what belongs to a run: a process that keeps it, below which all stay that the program has \
started; a control group of its own, which sets no limit and has no controllers, so \
that nobody in it gets away (as root or where the group is delegated, in version 2, or by version 1's freezer); and the variable \
ASSAY_GUARD in its environment, which its children inherit. Where no group can be made (read-only, not ours, or with a CPU or memory \
limit that the program would no longer see) a child that has lost the variable and its parent is not found if the run's own two \
processes are killed at once. What a program asks a service to run for it (systemd-run, docker, at) is not its own.
Examples:
  assay guard -- ./bench --threads 4                          by its wall time
  assay guard --placements free,same-cpu,spread -- ./bench    is it the scheduler?
  assay guard --vs './bench --new' -- ./bench --old           which of the two is faster, run in turn
  assay guard --duet --vs './bench --new' -- ./bench --old    both at once, where others disturb
  assay guard --format hackbench -- hackbench -g 2 -l 500
  assay guard --metric 'rate[1/s]=rate: ([0-9.]+)' -- ./bench the last match counts
  assay guard --metric 'p99[us]=json:latency.p99' -- ./bench --json";

const CODES: &str = "\
Exit codes: 0 measured, 1 finding at or above --fail-on, 2 usage or no such command, 3 an error or nothing valid measured, 130 \
interrupted";

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
    format!("{HELP}\nWhat --format takes, of several results in one output the last:\n{figures}{CODES}")
}

/// What a visit needs beside the program's own time, and how long it may take to end it.
const AROUND: Duration = Duration::from_secs(15);

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Understood { placements, commands, at_once, measure, runs } = match understood(args) {
        Ok(understood) => understood,
        // All of it is a mistake of usage.
        Err(error) => {
            output::tell(&format!("assay: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    };
    let result = commands.first().and_then(|command| command.wanted.clone());
    let benches = [bench::find(&ids::COMMAND).context("the row of guarded commands is missing")?];
    let variants = |_: Vec<Candidate>, scope: &Scope, _: &Host| match commands.as_slice() {
        [a, b] if at_once => vec![duet(scope, a, b)],
        commands => cases(scope, commands, &placements),
    };
    let amend = |header: &mut Header| {
        header.catalogue.iter_mut().for_each(|title| judged_by(title, result.as_ref()));
    };
    let mut profile = measure.profile()?;
    if let Some(runs) = runs {
        profile.passes_min = runs;
    }
    profile.passes_max = profile.passes_min;
    if commands.len() > 1 {
        profile.until = Until::Quads;
        (profile.passes_min, profile.passes_max) = (2 * LEAST_QUADS as u32, 2 * MOST_QUADS as u32);
    }
    measure_study_of(&measure, profile, &benches, &variants, &amend)
}

struct Understood {
    placements: Vec<String>,
    commands: Vec<Guarded>,
    /// Both commands at a time.
    at_once: bool,
    measure: MeasureArgs,
    runs: Option<u32>,
}

fn understood(args: Args) -> anyhow::Result<Understood> {
    let mut measure = args.measure;
    ensure!(measure.only.is_empty(), "--only names benchmarks; `assay guard` measures the command behind --");
    ensure!(!measure.drop_caches, "--drop-caches is for Assay's own file benchmarks");
    let better =
        args.better.as_deref().map(|side| if side == "lower" { Better::Lower } else { Better::Higher });
    let wanted = match (&args.metric, &args.format) {
        (Some(metric), _) => {
            Some(Wanted::parse(metric, better).with_context(|| format!("--metric {metric}"))?)
        }
        (_, Some(name)) => {
            let format = bench::format_of(name).with_context(|| format!("no format is called {name:?}"))?;
            Some(Wanted::format(format, better))
        }
        (None, None) if better.is_some() => bail!("--better belongs to --metric or --format"),
        (None, None) => None,
    };
    let program = args.command.first().context("no command")?;
    executable(program)?;
    let other = args.vs.as_deref().map(words_of).transpose()?;
    let mut placements: Vec<String> = Vec::new();
    for placement in args.placements {
        if !placements.contains(&placement) {
            placements.push(placement);
        }
    }
    if placements.is_empty() {
        placements.push(if other.is_some() { "same-cpu" } else { "free" }.to_string());
    }
    ensure!(
        other.is_none() || placements.len() == 1,
        "--vs runs both commands at one placement, not at several"
    );
    if measure.budget.is_none() {
        let runs = args.runs.unwrap_or(measure.profile()?.passes_min);
        // Nobody has said how long it may take but by its time limit. Waiting for others at the
        // gate comes on top.
        let waiting = match measure.patience() {
            Patience::Bounded(limit) => limit,
            Patience::None | Patience::UntilIdle => Duration::ZERO,
        };
        let visits = match &other {
            Some(_) if args.duet => 2 * MOST_QUADS as u32,
            Some(_) => 4 * MOST_QUADS as u32,
            None => runs.saturating_mul(placements.len() as u32),
        };
        measure.budget = Some((args.timeout + AROUND).saturating_mul(visits).saturating_add(waiting));
    }
    measure.visit_limit = measure.visit_limit.or(Some(args.timeout + AROUND));
    let timeout = args.timeout;
    let guarded = |words: Vec<String>| Guarded { words, wanted: wanted.clone(), timeout };
    let commands: Vec<Guarded> = std::iter::once(args.command).chain(other).map(guarded).collect();
    if let [a, b] = commands.as_slice() {
        ensure!(a.words != b.words, "both commands are the same words: there is nothing to tell apart");
    }
    if args.duet {
        let host = Host::look(&measure)?;
        host.floor.like_pair("command", &host.machine).map_err(|why| {
            anyhow!(
                "--duet needs two like CPUs (on cores of their own, of one kind, below one last-level cache), and {why}. Leave it \
                 out: --vs then runs the two in turn on one CPU"
            )
        })?;
    }
    Ok(Understood { placements, commands, at_once: args.duet, measure, runs: args.runs })
}

/// The words of the command that `--vs` names, which can be started.
fn words_of(text: &str) -> anyhow::Result<Vec<String>> {
    let words = shlex::split(text).with_context(|| format!("--vs {text:?}: a quote is not closed"))?;
    executable(words.first().context("--vs names no command")?)?;
    Ok(words)
}

/// Whether the program can be started, looked for as a shell does; else why not.
fn executable(program: &str) -> anyhow::Result<()> {
    let is_file = |path: &Path| path.metadata().is_ok_and(|found| found.is_file());
    let may_run = |path: &Path| rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        let path = Path::new(program);
        ensure!(path.exists(), "there is no {program:?}");
        ensure!(is_file(path), "{program:?} is no file");
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

/// The catalogue's entry says what this run's result is.
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
            understood(line.args).expect("understood").measure.budget.map(|budget| budget.as_secs())
        };
        assert_eq!(budget("--force"), Some(4 * 16));
        assert_eq!(budget(""), Some(4 * 16 + 20));
        assert_eq!(budget("--budget 90s"), Some(90));
    }
}
