//! `assay sweep`: a benchmark over one or two knobs.

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};

use super::measure_args::{MeasureArgs, hide};
use super::measuring::{Host, Settled, Study, alone};
use super::output::misuse;
use bench::{self, Benchmark, Candidate, Depth, Hackbench, Scope};
use knobs::table::{Named, nanoseconds};
use knobs::{Knobs, task};
use model::sweep::{Axis, AxisOf, Measure};
use model::vocabulary as ids;
use model::{Case, Sweep, did_you_mean};
use session::plan::sweep::{EVERY, Grid, named, param_before, param_values, values};
use session::plan::{self, Profile, Until};

/// Measure a benchmark over one or two knobs: what they do to it, where it is best, and whether
/// they matter at all
#[derive(clap::Args)]
#[command(
    mut_args(hide(&["only", "drop_caches", "every_pair"])),
    after_help = "\
VALUES: a list (1ms,2ms,4ms), a range of so many values evenly apart (1ms..30ms:8) or evenly by their logarithms (0.1ms..100ms:log7).
The first knob goes from left to right in the map, the second from below. Every pass visits all cells in a fresh random order, and the setting \
that is there now before every eighth: what that one does meanwhile is drift, and taken out. Passes go on until --effect would be seen of each \
knob, or the time is over: --budget, or what the profile has (quick 90 s, else ten minutes; longer where the fewest passes take longer). What it \
ends with comes first in the report: what to set for throughput, for response and for both, or that nothing is worth a change, which effect would \
have been seen, and what more time buys.
hackbench is measured together with sched.wake-up, the response of a full machine at the same setting: a sweep shows both, and which settings \
no other beats in both.
Kernel knobs need root; slice_ns (kernels from 6.12) and policy belong to the benchmark's own tasks and need none. What is turned is noted in a journal first and \
put back at the end, by Ctrl-C, and by a watchdog after kill -9 (see `assay restore`). The same command goes on with an interrupted sweep.
Examples:
  assay sweep hackbench --knob slice_ns=0.1ms..100ms:log7 --knob policy=other,batch
  assay sweep hackbench --knob min_granularity_ns=1ms..30ms:7 --knob wakeup_granularity_ns=1ms..30ms:7
  assay sweep hackbench --knob slice_ns=1ms,3ms,10ms --param groups=2,10 --param transport=pipe
  assay sweep ipc.pipe-pingpong --knob autogroup=0,1
  assay knobs                             what can be turned here
Exit codes as those of `assay run`; 2 also where a knob or a value is none that this kernel has, 3 where another sweep runs"
)]
pub struct Args {
    /// What is measured: hackbench, or a benchmark of `assay list`
    #[arg(value_name = "BENCH")]
    bench: String,
    /// A knob of `assay knobs` and its values; at most two
    #[arg(long = "knob", value_name = "NAME=VALUES")]
    knobs: Vec<String>,
    /// A parameter of the benchmark: with one value fixed, with several a map for each (or an axis,
    /// where knobs leave one)
    #[arg(long = "param", value_name = "NAME=VALUES")]
    params: Vec<String>,
    /// Measured at each setting for its response: a benchmark, or none (default: sched.wake-up with
    /// hackbench)
    #[arg(long, value_name = "BENCH")]
    response: Option<String>,
    /// The smallest effect of a knob that is to be seen: measuring ends when it would be
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = effect)]
    effect: f64,
    /// Where the benchmark's tasks run, by the names of placements (default: free, else the first
    /// there is)
    #[arg(long, value_name = "PLACEMENT")]
    placement: Option<String>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// What was asked for, understood.
struct Wish {
    bench: &'static Benchmark,
    response: Option<&'static Benchmark>,
    placement: Option<String>,
    knobs: Vec<Axis>,
    params: Vec<(String, Vec<String>)>,
}

/// `5` or `5%`: 0.05.
fn effect(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percent = number.filter(|percent| (0.1..=1000.0).contains(percent));
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "an effect is 0.1 to 1000 per cent, like 5 or 5%".to_string())
}

/// Passes of each profile: the fewest, and the most of invented samples, which no budget ends.
fn passes(depth: Depth) -> (u32, u32) {
    match depth {
        Depth::Quick => (4, 6),
        Depth::Standard => (6, 12),
        Depth::Full => (10, 20),
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let measure = &args.measure;
    let knobs = Knobs::of(&measure.tests.root).watched();
    let mut wish = understood(&args, &knobs).map_err(misuse)?;
    let invented = measure.tests.pretends();
    let mut profile = measure.profile()?;
    (profile.passes_min, profile.passes_max) = passes(profile.depth);
    profile.until = Until::Seen;
    let _alone = match measure.dry_run || invented {
        true => None,
        false => {
            let alone = alone(&knobs, "a sweep cannot begin")?;
            // What was there before is so only now: a session that was killed, or has just ended,
            // may have had it turned.
            for axis in &mut wish.knobs {
                axis.before = Some(knobs.current(&axis.name).map_err(anyhow::Error::msg)?);
            }
            Some(alone)
        }
    };
    let host = Host::look(measure, &Settled::default())?;
    let (grid, cases) = planned(&wish, &host, &profile, &knobs, invented)?;
    let profile = budget(measure, profile, &cases).map_err(misuse)?;
    let target = headline(wish.bench).with_context(|| format!("{} has no headline metric", wish.bench.id))?;
    let response = wish.response.and_then(headline);
    let study = Study::of(profile, [Some(wish.bench), wish.response].into_iter().flatten().collect())
        .choosing(|_, _, _| {
            planned(&wish, &host, &profile, &knobs, invented).map_or(Vec::new(), |(_, cases)| cases)
        })
        .amending(|header| {
            header.sweep = Some(Sweep {
                axes: grid.axes.clone(),
                facets: grid.facets.clone(),
                fixed: grid.fixed.clone(),
                target: target.clone(),
                response: response.clone(),
                control: grid.control(&header.plan),
                every: EVERY,
                effect: Some(args.effect),
            });
        });
    Ok(study.measure(measure)?.code)
}

fn understood(args: &Args, knobs: &Knobs) -> anyhow::Result<Wish> {
    ensure!(args.measure.only.is_empty(), "--only is for `assay run`; a sweep names its one benchmark");
    ensure!(!args.measure.drop_caches, "--drop-caches is for `assay run`");
    let bench = named_benchmark(&args.bench)?;
    let response = match args.response.as_deref() {
        Some("none") => None,
        Some(name) => Some(named_benchmark(name)?),
        None if bench.id == ids::hackbench::HACKBENCH => bench::find(&ids::sched::WAKE_UP),
        None => None,
    };
    ensure!(response.is_none_or(|response| response.id != bench.id), "the response is the benchmark itself");
    let mut axes: Vec<Axis> = Vec::new();
    for word in &args.knobs {
        let (name, words) = named(word)?;
        let Some(known) = Named::of(name) else { bail!(knobs.unmet(name, "").unwrap_or_default()) };
        let is_it =
            |axis: &Axis| axis.name == name || Named::of(&axis.name).is_some_and(|of| of.is_same(&known));
        ensure!(!axes.iter().any(is_it), "the knob {name} is named twice");
        let number = |word: &str| nanoseconds(word).map(|ns| ns as f64);
        let values = values(words, number, |word| known.values().canonical(name, word))
            .with_context(|| format!("--knob {word}"))?;
        let before = match args.measure.tests.pretend {
            Some(_) => values.first().cloned(),
            None => Some(knobs.current(name).map_err(anyhow::Error::msg)?),
        };
        axes.push(Axis { name: name.to_string(), of: AxisOf::Knob, values, before });
    }
    ensure!(axes.len() <= 2, "a map has two knobs; make one of the {} a sweep of its own", axes.len());
    let mut params: Vec<(String, Vec<String>)> = Vec::new();
    for word in &args.params {
        let (name, words) = named(word)?;
        let with = |bench: &&Benchmark| bench.params.iter().any(|param| param.name == name);
        let of = [Some(bench), response].into_iter().flatten().find(with).unwrap_or(bench);
        ensure!(params.iter().all(|(other, _)| other != name), "the parameter {name} is named twice");
        let values = param_values(of, name, words).with_context(|| format!("--param {word}"))?;
        params.push((name.to_string(), values));
    }
    let several = params.iter().filter(|(_, values)| values.len() > 1).count();
    ensure!(
        !axes.is_empty() || several > 0,
        "nothing to sweep: name a knob (--knob slice_ns=1ms,3ms,10ms) or a parameter with several values; `assay knobs` \
         lists knobs"
    );
    let there = |axis: &Axis| axis.values.len() == 1 && axis.before.as_ref() == axis.values.first();
    let all_there = several == 0 && axes.iter().all(there);
    let now = || axes.iter().map(|axis| format!("{} is {}", axis.name, axis.values[0])).collect::<Vec<_>>();
    ensure!(!all_there, "nothing to compare: {} already; name another value", now().join(", "));
    Ok(Wish { bench, response, placement: args.placement.clone(), knobs: axes, params })
}

/// The benchmark of a name on the command line.
pub fn named_benchmark(name: &str) -> anyhow::Result<&'static Benchmark> {
    let id = if name == "hackbench" { &ids::hackbench::HACKBENCH } else { name };
    bench::find(id).filter(|bench| !bench.hidden || bench.group() == "selftest").with_context(|| {
        let names = plan::shown().map(|bench| bench.id.as_str()).chain(["hackbench"]);
        format!("no benchmark is called {name:?}{}; `assay list` shows them", did_you_mean(name, names))
    })
}

/// What a benchmark is judged by.
pub fn headline(bench: &Benchmark) -> Option<Measure> {
    let metric = bench.metrics.iter().find(|metric| metric.headline);
    metric.map(|metric| Measure { bench: bench.id.to_string(), metric: metric.name.to_string() })
}

/// Estimated seconds of a visit of a case whose parameters were changed, which before took `usual`.
pub fn seconds(case: &Case, usual: f64, cpus: usize) -> f64 {
    match case.id() {
        Some(ids::hackbench::HACKBENCH | ids::hackbench::MESSAGING) => Hackbench::seconds(&case.params, cpus),
        _ => usual,
    }
}

/// The grid and its cases on this host.
fn planned(
    wish: &Wish,
    host: &Host,
    profile: &Profile,
    knobs: &Knobs,
    invented: bool,
) -> anyhow::Result<(Grid, Vec<Candidate>)> {
    let scope = host.scope(profile, false);
    let mut bases = vec![base(wish.bench, &scope, wish.placement.as_deref())?];
    if let Some(response) = wish.response {
        bases.push(base(response, &scope, None)?);
    }
    let mut grid = Grid { axes: wish.knobs.clone(), facets: Vec::new(), fixed: Vec::new() };
    for (name, values) in &wish.params {
        let of = bases.iter().find_map(|base| param_before(&base.case, name));
        let before = of.with_context(|| {
            format!("{name} is no parameter of a whole visit of {}: it cannot be set", wish.bench.id)
        })?;
        match values.as_slice() {
            [only] => grid.fixed.push((name.clone(), only.clone())),
            several => {
                let before = Some(before);
                let axis = Axis { name: name.clone(), of: AxisOf::Param, values: several.to_vec(), before };
                if grid.axes.len() < 2 { &mut grid.axes } else { &mut grid.facets }.push(axis);
            }
        }
    }
    let unmet = |name: &str, value: &str| if invented { None } else { knobs.unmet(name, value) };
    let cpus = host.placements.cpus().len();
    let seconds = |case: &Case, usual: f64| seconds(case, usual, cpus);
    let cases = grid.cases(&bases, &unmet, &seconds)?;
    Ok((grid, cases))
}

/// The case of a benchmark that is swept: where the scheduler puts its tasks, unless another
/// placement is wanted.
pub fn base(bench: &Benchmark, scope: &Scope, placement: Option<&str>) -> anyhow::Result<Candidate> {
    let candidates = (bench.cases)(bench, scope);
    let why = candidates.iter().find_map(|candidate| candidate.unmet.clone());
    let names: Vec<String> =
        candidates.iter().map(|candidate| candidate.case.placement.name.to_string()).collect();
    let mut possible: Vec<Candidate> =
        candidates.into_iter().filter(|candidate| candidate.unmet.is_none()).collect();
    let wanted = placement.unwrap_or("free");
    let index = possible.iter().position(|candidate| candidate.case.placement.name == wanted);
    match (index, placement) {
        (Some(index), _) => Ok(possible.swap_remove(index)),
        (None, Some(name)) => {
            let meant = did_you_mean(name, names.iter().map(String::as_str));
            bail!(
                "{} cannot be placed {name:?} here{meant}; its placements are {}",
                bench.id,
                names.join(", ")
            )
        }
        (None, None) if possible.is_empty() => {
            bail!("{} cannot be measured here: {}", bench.id, why.unwrap_or_default())
        }
        (None, None) => Ok(possible.swap_remove(0)),
    }
}

/// Passes at most where the time ends them.
const MOST_PASSES: u32 = 100;

/// Gives the profile as long as the fewest passes of all cells may take, where --budget does not
/// say otherwise.
fn budget(measure: &MeasureArgs, mut profile: Profile, cases: &[Candidate]) -> anyhow::Result<Profile> {
    const AROUND_S: f64 = 0.35;
    const SPARE: f64 = 3.0;
    let control = 1.0 + 1.0 / f64::from(EVERY);
    let system = |case: &Case| case.knobs.keys().any(|name| !task::is_one(name));
    let each = |candidate: &Candidate| {
        candidate.seconds + if system(&candidate.case) { AROUND_S } else { AROUND_S / 3.0 }
    };
    let pass: f64 = cases.iter().filter(|case| case.unmet.is_none()).map(each).sum::<f64>() * control;
    let least = pass * f64::from(profile.passes_min);
    match measure.budget {
        Some(given) if given.as_secs_f64() < least => {
            // Fewer passes of all cells tell more than all passes of some.
            let fits = (given.as_secs_f64() / pass).floor() as u32;
            ensure!(
                fits >= 2,
                "--budget is too short: one pass over {} cases takes about {pass:.0} s, and two are the fewest",
                cases.len()
            );
            profile.passes_min = fits;
        }
        Some(_) => {}
        None => profile.budget_s = profile.budget_s.max(least * SPARE),
    }
    if !measure.tests.pretends() {
        profile.passes_max = MOST_PASSES;
    }
    profile.budget_per_group = false;
    Ok(profile)
}
