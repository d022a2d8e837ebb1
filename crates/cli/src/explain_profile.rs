//! `assay explain-profile`: which settings of a profile cause its effect, and how much of it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::measure_args::{MeasureArgs, hide};
use super::measuring::{Host, Prepared, Study, lock_sweeps};
use super::output::{eprint_line, misuse};
use super::results;
use super::sweep::{base, headline, named_benchmark};
use bench::Benchmark;
use knobs::Knobs;
use knobs::profile::{self, Profile as Settings, Setting};
use knobs::table::Named;
use model::factors::{Factor, Factors, LeftOut};
use model::{Planned, Run, sweep::set_param};
use report::plain::plain;
use session::plan::Profile;
use session::plan::factors::{ALL_PAIRS, MAX_FACTORS, cases, masks};
use session::plan::sweep::{named, param_values};

/// Find which settings of a profile change a benchmark
#[derive(clap::Args)]
#[command(
    mut_args(hide(&["only", "drop_caches", "all_pairs"])),
    after_help = "\
A profile is a folder of tuned (with all that its tuned.conf includes), or lines NAME=VALUE as in sysctl.conf or \
from `sysctl -a`. Names of `assay knobs` work, too.
Assay measures the settings that differ and exist on this kernel: none changed, all changed, each alone, and pairs \
of the strong ones. With more than four settings, the pairs are a second run. The rest is listed with the reason. \
All settings are restored at the end.
Examples:
  assay explain-profile --after /usr/lib/tuned/throughput-performance --bench hackbench --dry-run
  assay explain-profile --before off.conf --after on.conf --bench hackbench --param groups=4
Exit codes: as of `assay sweep`"
)]
pub struct Args {
    /// Settings before [default: the present ones]
    #[arg(long, value_name = "PROFILE")]
    before: Option<PathBuf>,
    /// Settings after
    #[arg(long, value_name = "PROFILE")]
    after: PathBuf,
    /// Benchmark: hackbench, or one of `assay list`
    #[arg(long, value_name = "BENCH")]
    bench: String,
    /// Parameter of the benchmark, with its value
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Placement of the tasks [default: free, if there is one]
    #[arg(long, value_name = "PLACEMENT")]
    placement: Option<String>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Passes of each setting, by profile.
const PASSES: [(&str, u32); 3] = [("quick", 6), ("standard", 12), ("full", 24)];

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let knobs = Knobs::of(&args.measure.tests.root).watched();
    let lock = match args.measure.dry_run || args.measure.tests.pretends() {
        true => None,
        // The present settings are valid only after a killed session's are restored.
        false => Some(lock_sweeps(&knobs, "cannot start the experiment")?),
    };
    let (bench, factors) = understood(&args, &knobs).map_err(misuse)?;
    tell_left_out(&factors);
    if factors.factors.is_empty() {
        eprint_line("assay: no setting differs that can be changed here: nothing to measure");
        return Ok(ExitCode::from(3));
    }
    let count = factors.factors.len();
    let everything: Vec<usize> = (0..count).collect();
    if let Some(strong) = interrupted_pairs(&args, &factors) {
        eprint_line("resuming the pairs of the strong settings");
        return measured(&args, bench, &factors, &masks(count, &strong));
    }
    let pairs: &[usize] = if count <= ALL_PAIRS { &everything } else { &[] };
    let code = measured(&args, bench, &factors, &masks(count, pairs))?;
    if count <= ALL_PAIRS || code != ExitCode::SUCCESS || lock.is_none() {
        return Ok(code);
    }
    let strong = strong(&args)?;
    if strong.len() < 2 {
        eprint_line("fewer than two settings are strong: no pairs to measure");
        return Ok(code);
    }
    eprint_line(&format!("{} strong settings: a second run measures their pairs", strong.len()));
    measured(&args, bench, &factors, &masks(count, &strong))
}

fn understood(args: &Args, knobs: &Knobs) -> anyhow::Result<(&'static Benchmark, Factors)> {
    ensure!(args.measure.only.is_empty(), "--only is for `assay run`; --bench names the benchmark");
    ensure!(!args.measure.drop_caches, "--drop-caches is for `assay run`");
    let bench = named_benchmark(&args.bench)?;
    let before = match &args.before {
        Some(path) => profile::read(path)?,
        None => Settings { name: "now".into(), settings: Vec::new(), remarks: Vec::new() },
    };
    let after = profile::read(&args.after)?;
    let target = headline(bench).with_context(|| format!("{} has no main figure", bench.id))?;
    let (mut factors, mut left_out) = (Vec::new(), Vec::new());
    let invented = args.measure.tests.pretends();
    for difference in profile::differences(&before, &after) {
        // What neither sets, or only the one before, the one after leaves as it finds it.
        let why = match &difference.knob {
            None => why_no_knob(&difference, &before, &after),
            Some(knob) => {
                let values = [difference.before.as_deref(), difference.after.as_deref()];
                match factor(knobs, knob, values, invented) {
                    Ok(Some(factor)) => {
                        factors.push(factor);
                        continue;
                    }
                    // Lists of all sysctls are full of these.
                    Ok(None) => continue,
                    Err(why) => why,
                }
            }
        };
        let name = difference.knob.clone().unwrap_or(difference.name.clone());
        left_out.push(LeftOut { name, before: difference.before, after: difference.after, why });
    }
    ensure!(
        factors.len() <= MAX_FACTORS,
        "{} settings differ; at most {MAX_FACTORS} can be separated",
        factors.len()
    );
    let remarks = before.remarks.iter().chain(&after.remarks).cloned().collect();
    Ok((bench, Factors { before: before.name, after: after.name, target, factors, left_out, remarks }))
}

/// A setting with both values; `None` if they are equal; an error says why it cannot be changed.
fn factor(
    knobs: &Knobs,
    name: &str,
    values: [Option<&str>; 2],
    invented: bool,
) -> Result<Option<Factor>, String> {
    let known = Named::of(name).ok_or_else(|| "is not a setting that Assay can change".to_string())?;
    let now = if invented { None } else { Some(knobs.current(name)?) };
    let value = |wanted: Option<&str>| match (wanted, &now) {
        (Some(wanted), now) => known.values().canonical(name, chosen(wanted, now.as_deref())),
        (None, Some(now)) => Ok(now.clone()),
        (None, None) => Err("its present value is unknown".to_string()),
    };
    let [before, after] = values.map(value);
    let (before, after) = (before?, after?);
    if before == after {
        return Ok(None);
    }
    for value in [&before, &after] {
        if let Some(why) = knobs.unmet(name, value).filter(|_| !invented) {
            return Err(why);
        }
    }
    Ok(Some(Factor { name: name.to_string(), before, after }))
}

/// tuned writes bounds (`>10`: at least) and lists of which the first that there is counts
/// (`schedutil|ondemand`).
fn chosen<'v>(wanted: &'v str, now: Option<&'v str>) -> &'v str {
    let number = |text: &str| text.trim().parse::<i128>().ok();
    if let Some(bound) = wanted.strip_prefix(['>', '<']) {
        let keeps = now.filter(|now| match (number(now), number(bound)) {
            (Some(now), Some(bound)) => now != bound && (now > bound) == wanted.starts_with('>'),
            _ => false,
        });
        return keeps.unwrap_or(bound.trim());
    }
    wanted.split('|').next().unwrap_or(wanted).trim()
}

fn tell_left_out(factors: &Factors) {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not given".to_string());
    for factor in &factors.factors {
        eprint_line(&format!("  {}: {} before, {} after", factor.name, factor.before, factor.after));
    }
    for left in &factors.left_out {
        let text = format!(
            "  left out: {} ({} before, {} after): {}",
            left.name,
            value(&left.before),
            value(&left.after),
            left.why
        );
        eprint_line(&plain(&text, 400));
    }
    for remark in &factors.remarks {
        eprint_line(&format!("  {}", plain(remark, 400)));
    }
}

/// Measures these settings and reports.
fn measured(
    args: &Args,
    bench: &'static Benchmark,
    factors: &Factors,
    masks: &[u64],
) -> anyhow::Result<ExitCode> {
    let measure = &args.measure;
    let mut profile: Profile = measure.profile()?;
    let passes = PASSES.iter().find(|(name, _)| *name == profile.name).map_or(12, |(_, passes)| *passes);
    (profile.passes_min, profile.passes_max) = (passes, passes);
    let host = Host::describe(measure, &Prepared::default())?;
    let scope = host.scope(&profile, false);
    let mut base = base(bench, &scope, args.placement.as_deref())?;
    for word in &args.params {
        let (name, words) = named(word)?;
        let values = param_values(bench, name, words).with_context(|| format!("--param {word}"))?;
        ensure!(values.len() == 1, "--param {word}: give one value");
        ensure!(
            base.case.params.named(name).is_some(),
            "{name} is not a parameter that {} can fix",
            bench.id
        );
        set_param(&mut base.case.params, name, &values[0]);
    }
    base.seconds = super::sweep::seconds(&base.case, base.seconds, host.placements.cpus().len());
    if measure.budget.is_none() {
        const AROUND_S: f64 = 0.5;
        const SPARE: f64 = 3.0;
        let needs = masks.len() as f64 * (base.seconds + AROUND_S) * f64::from(passes);
        profile.budget_s = Duration::from_secs_f64(needs * SPARE).as_secs_f64();
    }
    profile.budget_per_group = false;
    let study = Study::of(profile, vec![bench])
        .choosing(|_, _, _| cases(&base, &factors.factors, masks))
        .amending(|header| header.factors = Some(factors.clone()));
    Ok(study.measure(measure)?.code)
}

/// The strong settings of the run that was just measured, in their order, so that a resumed run has
/// the same plan.
fn strong(args: &Args) -> anyhow::Result<Vec<usize>> {
    let run = results::latest(&args.measure.out())?;
    let diagnosis = diagnose::diagnose(run);
    let shared = diagnosis.profile_effects().context("cannot analyse the first run")?;
    let mut strong = shared.shares.strong();
    strong.sort_unstable();
    Ok(strong)
}

/// The settings whose pairs an interrupted second run of this experiment was measuring.
fn interrupted_pairs(args: &Args, factors: &Factors) -> Option<Vec<usize>> {
    if args.measure.new || args.measure.dry_run || factors.factors.len() <= ALL_PAIRS {
        return None;
    }
    let run = results::latest(&args.measure.out()).ok()?;
    let same = run.summary.is_none() && run.header.factors.as_ref() == Some(factors);
    same.then(|| paired(&run, &factors.factors)).filter(|paired| !paired.is_empty())
}

/// The settings that a run's plan changes in pairs, if it changes more in all.
fn paired(run: &Run, factors: &[Factor]) -> Vec<usize> {
    let turned = |planned: &Planned| -> Vec<usize> {
        let own = |factor: &Factor| planned.case.knobs.get(&factor.name) == Some(&factor.after);
        (0..factors.len()).filter(|index| own(&factors[*index])).collect()
    };
    let pairs = run.header.plan.iter().map(turned).filter(|turned| turned.len() == 2);
    let mut all: Vec<usize> = pairs.flatten().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Why a difference is not a setting that can be changed, by its name.
fn why_no_knob(difference: &profile::Difference, before: &Settings, after: &Settings) -> String {
    let same = |setting: &&Setting| setting.name == difference.name && setting.section == difference.section;
    let setting = after.settings.iter().chain(&before.settings).find(same);
    setting.and_then(profile::why_no_knob).unwrap_or_else(|| "is no knob".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::Candidate;
    use session::plan::factors;
    use testkit as run_of;

    #[test]
    fn an_interrupted_second_run_tells_whose_pairs_it_measured() {
        let names = ["a", "b", "c", "d", "e"];
        let factor = |name: &&str| Factor { name: name.to_string(), before: "0".into(), after: "1".into() };
        let own: Vec<Factor> = names.iter().map(factor).collect();
        let planned = |masks: Vec<u64>| {
            let mut run = run_of::run(masks.len(), Vec::new());
            let plan = run.header.plan.clone();
            let base = Candidate {
                case: plan[0].case.clone(),
                priority: 1,
                seconds: 1.0,
                memory_bytes: 0,
                unmet: None,
                with_last: false,
            };
            for (planned, candidate) in run.header.plan.iter_mut().zip(factors::cases(&base, &own, &masks)) {
                planned.case = candidate.case;
            }
            run
        };
        assert_eq!(paired(&planned(masks(5, &[0, 3, 4])), &own), [0, 3, 4]);
        assert!(paired(&planned(masks(5, &[])), &own).is_empty());
    }
}
