//! `assay sweep`: a benchmark over one or two knobs.

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};

use super::measure_args::{MeasureArgs, hide};
use super::measuring::{Host, Prepared, Study, lock_sweeps};
use super::output::misuse;
use bench::{self, Benchmark, Candidate, Depth, Hackbench, Scope};
use knobs::table::{Named, nanoseconds};
use knobs::{Knobs, task};
use model::sweep::{Axis, AxisOf, Measure};
use model::vocabulary as ids;
use model::{Case, Sweep, did_you_mean};
use session::plan::sweep::{EVERY, Grid, named, param_before, param_values, values};
use session::plan::{self, Profile, Until};

/// Measure a benchmark over one or two settings: what is best
#[derive(clap::Args)]
#[command(
    mut_args(hide(&["only", "drop_caches", "all_pairs"])),
    after_help = "\
VALUES: a list (1ms,2ms,4ms), a linear range (1ms..30ms:8 for 8 values) or a logarithmic one (0.1ms..100ms:log7).
Each pass measures all settings in random order, and the present setting before every eighth; drift of the host is \
subtracted. The sweep ends when it would have seen an effect of --effect, or with --budget or the profile (quick: 90 \
s, else ten minutes; longer if two passes take longer).
The report begins with what to set for throughput, for response and for both, or says that no change is worth it, \
with the effect that would have been seen. The first setting is the x axis of the map, the second the y axis.
hackbench is measured together with sched.wake-up, the response of a full host. The report shows both, and the \
settings that no other beats in both.
Kernel settings need root. slice_ns (kernels from 6.12) and policy concern the benchmark's own tasks and need none. \
Each change is journalled first and restored at the end, by Ctrl-C, or by a watchdog after kill -9 (see `assay \
restore`). The same command resumes an interrupted sweep.
Examples:
  assay sweep hackbench --knob slice_ns=0.1ms..100ms:log7 --knob policy=other,batch
  assay sweep hackbench --knob slice_ns=1ms,3ms,10ms --param groups=2,10 --param transport=pipe
  assay knobs                             settings that can be changed here
Exit codes: as of `assay run`; 2 also for a setting or value that this kernel lacks, 3 also if another sweep runs"
)]
pub struct Args {
    /// Benchmark: hackbench, or one of `assay list`
    #[arg(value_name = "BENCH")]
    bench: String,
    /// Setting of `assay knobs` with its values (at most two)
    #[arg(long = "knob", value_name = "NAME=VALUES")]
    knobs: Vec<String>,
    /// Parameter of the benchmark: one value, or several for more maps
    #[arg(long = "param", value_name = "NAME=VALUES")]
    params: Vec<String>,
    /// Second benchmark for response, or none [hackbench: sched.wake-up]
    #[arg(long, value_name = "BENCH")]
    response: Option<String>,
    /// Smallest effect to detect, in % (ends the sweep)
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = effect)]
    effect: f64,
    /// Placement of the tasks [default: free, if there is one]
    #[arg(long, value_name = "PLACEMENT")]
    placement: Option<String>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// The parsed arguments.
struct SweepRequest {
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
        .ok_or_else(|| "an effect is 0.1–1000 percent, such as 5 or 5%".to_string())
}

/// Fewest passes of each profile, and the most of invented samples, which no budget ends.
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
    let mut request = parse_request(&args, &knobs).map_err(misuse)?;
    let invented = measure.tests.pretends();
    let mut profile = measure.profile()?;
    (profile.passes_min, profile.passes_max) = passes(profile.depth);
    profile.until = Until::Seen;
    let _lock = if measure.dry_run || invented {
        None
    } else {
        let lock = lock_sweeps(&knobs, "cannot start the sweep")?;
        // Read only now: a killed or just ended session may have changed it.
        for axis in &mut request.knobs {
            axis.before = Some(knobs.current(&axis.name).map_err(anyhow::Error::msg)?);
        }
        Some(lock)
    };
    let host = Host::describe(measure, &Prepared::default())?;
    let (grid, cases) = planned(&request, &host, &profile, &knobs, invented)?;
    let profile = budget(measure, profile, &cases).map_err(misuse)?;
    let target =
        headline(request.bench).with_context(|| format!("{} has no main figure", request.bench.id))?;
    let response = request.response.and_then(headline);
    let study = Study::of(profile, [Some(request.bench), request.response].into_iter().flatten().collect())
        .choosing(|_, _, _| {
            planned(&request, &host, &profile, &knobs, invented).map_or(Vec::new(), |(_, cases)| cases)
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

fn parse_request(args: &Args, knobs: &Knobs) -> anyhow::Result<SweepRequest> {
    ensure!(
        args.measure.only.is_empty(),
        "--only is for `assay run`; a sweep has one benchmark, its argument"
    );
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
        ensure!(!axes.iter().any(is_it), "the setting {name} is given twice");
        let number = |word: &str| nanoseconds(word).map(|ns| ns as f64);
        let values = values(words, number, |word| known.values().canonical(name, word))
            .with_context(|| format!("--knob {word}"))?;
        let before = match args.measure.tests.pretend {
            Some(_) => values.first().cloned(),
            None => Some(knobs.current(name).map_err(anyhow::Error::msg)?),
        };
        axes.push(Axis { name: name.to_string(), of: AxisOf::Knob, values, before });
    }
    ensure!(axes.len() <= 2, "a sweep takes two settings, not {}: make it two sweeps", axes.len());
    let mut params: Vec<(String, Vec<String>)> = Vec::new();
    for word in &args.params {
        let (name, words) = named(word)?;
        let with = |bench: &&Benchmark| bench.params.iter().any(|param| param.name == name);
        let of = [Some(bench), response].into_iter().flatten().find(with).unwrap_or(bench);
        ensure!(params.iter().all(|(other, _)| other != name), "the parameter {name} is given twice");
        let values = param_values(of, name, words).with_context(|| format!("--param {word}"))?;
        params.push((name.to_string(), values));
    }
    let several = params.iter().filter(|(_, values)| values.len() > 1).count();
    ensure!(
        !axes.is_empty() || several > 0,
        "nothing to sweep: add --knob, such as --knob slice_ns=1ms,3ms,10ms (`assay knobs` lists them), or \
          --param with several values"
    );
    let there = |axis: &Axis| axis.values.len() == 1 && axis.before.as_ref() == axis.values.first();
    let all_there = several == 0 && axes.iter().all(there);
    let now = || axes.iter().map(|axis| format!("{} is {}", axis.name, axis.values[0])).collect::<Vec<_>>();
    ensure!(!all_there, "nothing to compare: {} already; add another value", now().join(", "));
    Ok(SweepRequest { bench, response, placement: args.placement.clone(), knobs: axes, params })
}

/// The benchmark of a name on the command line.
pub fn named_benchmark(name: &str) -> anyhow::Result<&'static Benchmark> {
    let id = if name == "hackbench" { &ids::hackbench::HACKBENCH } else { name };
    bench::find(id).filter(|bench| !bench.hidden || bench.group() == "selftest").with_context(|| {
        let names = plan::shown().map(|bench| bench.id.as_str()).chain(["hackbench"]);
        format!("no benchmark is called {name:?}{}; `assay list` shows them", did_you_mean(name, names))
    })
}

/// The metric that a benchmark is judged by.
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
    request: &SweepRequest,
    host: &Host,
    profile: &Profile,
    knobs: &Knobs,
    invented: bool,
) -> anyhow::Result<(Grid, Vec<Candidate>)> {
    let scope = host.scope(profile, false);
    let mut bases = vec![base(request.bench, &scope, request.placement.as_deref())?];
    if let Some(response) = request.response {
        bases.push(base(response, &scope, None)?);
    }
    let mut grid = Grid { axes: request.knobs.clone(), facets: Vec::new(), fixed: Vec::new() };
    for (name, values) in &request.params {
        let of = bases.iter().find_map(|base| param_before(&base.case, name));
        let before =
            of.with_context(|| format!("{name} is not a parameter that {} can fix", request.bench.id))?;
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

/// The case of a benchmark to sweep: unpinned, unless a placement is given.
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
                "{} has no placement {name:?} here{meant}; its placements are {}",
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

/// Most passes; the time ends them earlier.
const MAX_PASSES: u32 = 100;

/// Extends the profile to the fewest passes of all cells, unless --budget limits it.
fn budget(measure: &MeasureArgs, mut profile: Profile, cases: &[Candidate]) -> anyhow::Result<Profile> {
    const AROUND_S: f64 = 0.35;
    const SPARE: f64 = 3.0;
    let control = 1.0 + 1.0 / f64::from(EVERY);
    let system = |case: &Case| case.knobs.keys().any(|name| !task::is_task_knob(name));
    let each = |candidate: &Candidate| {
        candidate.seconds + if system(&candidate.case) { AROUND_S } else { AROUND_S / 3.0 }
    };
    let pass: f64 = cases.iter().filter(|case| case.unmet.is_none()).map(each).sum::<f64>() * control;
    let least = pass * f64::from(profile.passes_min);
    match measure.budget {
        Some(given) if given.as_secs_f64() < least => {
            // Fewer passes of all cells are better than all passes of some.
            let fits = (given.as_secs_f64() / pass).floor() as u32;
            ensure!(
                fits >= 2,
                "--budget is too short: a pass over {} settings takes about {pass:.0} s, and a sweep needs two",
                cases.len()
            );
            profile.passes_min = fits;
        }
        Some(_) => {}
        None => profile.budget_s = profile.budget_s.max(least * SPARE),
    }
    if !measure.tests.pretends() {
        profile.passes_max = MAX_PASSES;
    }
    profile.budget_per_group = false;
    Ok(profile)
}
