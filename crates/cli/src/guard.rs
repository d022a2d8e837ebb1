//! `assay guard`: any program, watched as our own benchmarks are.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use rustix::fs::Access;

use super::measure_args::{CHOICES, MeasureArgs, hide};
use super::measuring::{Host, Settled, Study};
use super::output::misuse;
use bench::{self, FORMATS, Wanted};
use model::units::duration;
use model::vocabulary::guard as ids;
use model::{Better, Title};
use session::measure::Patience;
use session::plan::guard::{Guarded, PLACEMENTS, cases, duet};
use session::plan::{Profile, Until};
use stats::quads::{LEAST_QUADS, MOST_QUADS};

/// Run any program several times under watch: is its result stable, and what moves it
#[derive(clap::Args)]
#[command(
    mut_args(hide(&CHOICES)),
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
    // All of it is a mistake of usage.
    let asked = understood(&args).map_err(misuse)?;
    let result = asked.commands.first().and_then(|command| command.wanted.clone());
    let bench = bench::find(&ids::COMMAND).context("the row of guarded commands is missing")?;
    let study = Study::of(asked.profile, vec![bench])
        .choosing(|_, scope, _| match asked.commands.as_slice() {
            [a, b] if args.duet => vec![duet(scope, a, b)],
            commands => cases(scope, commands, &asked.placements),
        })
        .amending(|header| {
            header.catalogue.iter_mut().for_each(|title| judged_by(title, result.as_ref()));
        })
        .settled(Settled { visit_limit: Some(args.timeout + AROUND), ..Settled::default() });
    Ok(study.measure(&args.measure)?.code)
}

/// What the arguments ask for.
struct Asked {
    placements: Vec<String>,
    commands: Vec<Guarded>,
    profile: Profile,
}

fn understood(args: &Args) -> anyhow::Result<Asked> {
    let measure = &args.measure;
    ensure!(measure.only.is_empty(), "--only names benchmarks; `assay guard` measures the command behind --");
    ensure!(!measure.drop_caches, "--drop-caches is for Assay's own file benchmarks");
    let wanted = wanted(args)?;
    executable(args.command.first().context("no command")?)?;
    let other = args.vs.as_deref().map(words_of).transpose()?;
    let placements = placements(args)?;
    let guarded = |words: Vec<String>| Guarded { words, wanted: wanted.clone(), timeout: args.timeout };
    let commands: Vec<Guarded> = std::iter::once(args.command.clone()).chain(other).map(guarded).collect();
    if let [a, b] = commands.as_slice() {
        ensure!(a.words != b.words, "both commands are the same words: there is nothing to tell apart");
    }
    if args.duet {
        let host = Host::look(measure, &Settled::default())?;
        host.placements.like_pair("command", &host.machine).map_err(|why| {
            anyhow!(
                "--duet needs two like CPUs (on cores of their own, of one kind, below one last-level cache), and {why}. Leave it \
                 out: --vs then runs the two in turn on one CPU"
            )
        })?;
    }
    Ok(Asked { profile: profile(args, placements.len())?, placements, commands })
}

/// The number that a command is judged by, where it is not its wall time.
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
    ensure!(
        args.vs.is_none() || named.len() <= 1,
        "--vs runs both commands at one placement, not at several"
    );
    Ok(match (named.is_empty(), args.vs.is_some()) {
        (false, _) => named,
        (true, true) => vec!["same-cpu".to_string()],
        (true, false) => vec!["free".to_string()],
    })
}

/// As many runs as are asked for, with a budget in which all of them fit: each at its time limit,
/// and the wait for a quiet host.
fn profile(args: &Args, placements: usize) -> anyhow::Result<Profile> {
    let waiting = match args.measure.patience() {
        Patience::Bounded(limit) => limit,
        Patience::None | Patience::UntilIdle => Duration::ZERO,
    };
    let mut profile = args.measure.profile_within(|usual| {
        let visits = match args.vs {
            Some(_) if args.duet => 2 * MOST_QUADS as u32,
            Some(_) => 4 * MOST_QUADS as u32,
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
        (profile.passes_min, profile.passes_max) = (2 * LEAST_QUADS as u32, 2 * MOST_QUADS as u32);
    }
    Ok(profile)
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
            understood(&line.args).expect("understood").profile.budget_s
        };
        assert_eq!(budget("--force"), 4.0 * 16.0);
        assert_eq!(budget(""), 4.0 * 16.0 + 20.0);
        assert_eq!(budget("--budget 90s"), 90.0);
    }
}
