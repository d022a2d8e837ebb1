//! How each tool repeats the work, what its figure is, and when it calls two figures different.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use model::RunClock;
use stats::Interval;
use stats::bootstrap::{Resampling, bca};
use stats::clock::{Brought, ProcessMedians, brought};
use stats::contrast::{Clocks, Family, Side, contrast, level};
use stats::estimate::interval_of_logarithms;
use stats::order::{mean, median, variance};
use stats::tails::{t_quantile, t_two_sided};

use super::super::system::on_path;
use super::super::{Bench, said_by};
use super::{Figure, WORKER, Work};

/// The lines of each process, two numbers each: ns per unit, then the layout's own.
pub type Values = Vec<Vec<[f64; 2]>>;

pub struct Layout {
    pub name: &'static str,
    /// Another tool's own program: only by its name.
    pub real: bool,
    pub how: How,
}

#[derive(Clone, Copy)]
pub enum How {
    /// Arms one after the other.
    Single {
        /// The work, slower by this many percent.
        arm: fn(&Bench, Work, u32) -> Result<Values, String>,
        figure: fn(&Values) -> Option<Figure>,
        /// 1 where the second is called slower, -1 faster, 0 neither.
        told: fn(&Values, &Values) -> i32,
    },
    /// Both at once.
    Pair(fn(&Bench, Work, [u32; 2]) -> Result<i32, String>),
}

#[rustfmt::skip]
pub const LAYOUTS: &[Layout] = &[
    Layout { name: "Assay: visits", real: false, how: How::Single { arm: visits, figure: at_a_clock, told: told_by_runs } },
    Layout { name: "Assay: `guard --vs`, alternating", real: false, how: How::Pair(in_turn) },
    Layout { name: "layout of pyperf", real: false, how: How::Single { arm: pyperf, figure: of_mean, told: told_by_pyperf } },
    Layout { name: "layout of hyperfine", real: false, how: How::Single { arm: hyperfine, figure: of_mean, told: told_by_welch } },
    Layout { name: "layout of criterion", real: false, how: How::Single { arm: criterion, figure: of_slope, told: told_by_bootstrap } },
    Layout { name: "real hyperfine", real: true, how: How::Pair(real_hyperfine) },
    Layout { name: "real pyperf", real: true, how: How::Pair(real_pyperf) },
];

/// Smaller differences are not reported: 1 % for pyperf and criterion; Assay reports none below 2
/// %.
const NOISE: f64 = 0.01;
const MIN_DIFFERENCE: f64 = 0.02;

fn words(bench: &Bench, work: Work, slower: u32, more: &str) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let all = format!("{} {WORKER} {} {} {slower} {more}", program.display(), bench.first_cpu(), work.word);
    Ok(all.split_whitespace().map(str::to_string).collect())
}

/// One process, and what it printed.
fn worker(bench: &Bench, work: Work, slower: u32, more: &str) -> Result<Vec<[f64; 2]>, String> {
    let text = said_by(&words(bench, work, slower, more)?).map_err(|error| error.to_string())?;
    let line = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        let first = numbers.next()?.ok()?;
        Some([first, numbers.next().and_then(Result::ok).unwrap_or(0.0)])
    };
    let lines: Option<Vec<[f64; 2]>> = text.lines().map(line).collect();
    lines.filter(|lines| !lines.is_empty()).ok_or_else(|| format!("a worker ({more}) said {text:?}"))
}

/// Units that take this long.
fn units(bench: &Bench, work: Work, slower: u32, ns: f64) -> Result<u64, String> {
    worker(bench, work, slower, &format!("find {ns}")).map(|lines| lines[0][0] as u64)
}

// Assay's: passes of 9 samples of 2 ms after one to warm up, as a quick run has them of core-bound
// rows; five at least, until the guarded interval is within ±3 %, thirty at most.

const MIN_VISITS: usize = 5;
const MAX_VISITS: usize = 30;

fn visits(bench: &Bench, work: Work, slower: u32) -> Result<Values, String> {
    // Without its reason, which has spaces.
    let clock = RunClock { why: None, ..bench.clock.clone() };
    let clock = serde_json::to_string(&clock).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    loop {
        all.push(worker(bench, work, slower, &format!("visit 2e6 1 9 {clock}"))?);
        let near = |figure: Figure| figure.interval.half_width() <= super::NEAR;
        if all.len() >= MIN_VISITS && (all.len() >= MAX_VISITS || at_a_clock(&all).is_some_and(near)) {
            return Ok(all);
        }
    }
}

fn seen(values: &Values) -> Option<Vec<ProcessMedians>> {
    values
        .iter()
        .map(|visit| ProcessMedians::of(&visit.iter().map(|[ns, ghz]| (*ns, *ghz)).collect::<Vec<_>>()))
        .collect()
}

/// The clock of the first arm, GHz, to which all are brought.
static REFERENCE_GHZ: OnceLock<f64> = OnceLock::new();

/// ln(ns) of each pass at the reference clock, and what that rests on; as they ran where it is
/// vetoed.
fn at_reference(values: &Values) -> Option<(Vec<f64>, Option<Brought>)> {
    let seen = seen(values)?;
    let clocks: Vec<f64> = seen.iter().map(|one| one.clock.exp()).collect();
    let ghz = *REFERENCE_GHZ.get_or_init(|| median(&clocks).unwrap_or(1.0));
    match brought(&seen, ghz)? {
        Ok(brought) => Some((seen.iter().map(|one| one.cycles - ghz.ln()).collect(), Some(brought))),
        Err(_) => Some((seen.iter().map(|one| one.time).collect(), None)),
    }
}

fn at_a_clock(values: &Values) -> Option<Figure> {
    let (times, brought) = at_reference(values)?;
    let found = interval_of_logarithms(&times)?;
    let wider = brought.map_or(0.0, |brought| brought.wider);
    let interval = Interval { low: found.low - wider, high: found.high + wider };
    Some(Figure { middle: median(&times)?, interval })
}

/// Whether `assay compare` finds a difference between two runs of one host.
fn told_by_runs(first: &Values, second: &Values) -> i32 {
    let found = || {
        let ([first_seen, second_seen], sides) =
            ([seen(first)?, seen(second)?], [at_reference(first)?, at_reference(second)?]);
        let clock = |seen: &[ProcessMedians]| mean(&seen.iter().map(|one| one.clock).collect::<Vec<f64>>());
        let apart = clock(&second_seen)? - clock(&first_seen)?;
        let at_clock = sides.iter().all(|(_, brought)| brought.is_some());
        let of = |seen: &[ProcessMedians], at: &[f64]| {
            let values = |one: (&ProcessMedians, &f64)| if at_clock { *one.1 } else { one.0.time }.exp();
            Side::of(&seen.iter().zip(at).map(values).collect::<Vec<f64>>(), 1)
        };
        let (a, b) = (of(&first_seen, &sides[0].0)?, of(&second_seen, &sides[1].0)?);
        let (family, clocks) = if at_clock {
            (Family::AtOneClock, Clocks { slack: 0.10 * apart.abs(), ..Clocks::default() })
        } else {
            (Family::Other, Clocks { below: (-apart).max(0.0), above: apart.max(0.0), slack: 0.0 })
        };
        let found = contrast(&a, &b, level(family, [&a, &b], &[]), clocks);
        let differs = found.p <= 0.05
            && !found.interval.contains(0.0)
            && found.difference.abs() >= MIN_DIFFERENCE.ln_1p();
        Some(sign(found.difference, differs))
    };
    found().unwrap_or(0)
}

fn sign(difference: f64, differs: bool) -> i32 {
    if differs { difference.signum() as i32 } else { 0 }
}

/// `assay guard --vs` itself, over two commands of 50 ms.
fn in_turn(bench: &Bench, work: Work, slower: [u32; 2]) -> Result<i32, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let once = format!("once {}", units(bench, work, 0, 50e6)?);
    // Equal commands must not be the same words.
    let [a, b] =
        [words(bench, work, slower[0], &once)?, words(bench, work, slower[1], &format!("{once} b"))?];
    let mut command = Command::new(testkit::program());
    command.args(["guard", "--force", "--json", "--new", "--quick", "--vs", &b.join(" "), "--out"]);
    let output = command.arg(folder.path()).arg("--").args(a).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let ratio = said["versus"]["ratio"].as_f64().ok_or("`assay guard --vs` printed no ratio")?;
    Ok(sign(ratio.ln(), said["versus"]["differs"] == true))
}

// pyperf: a process finds how many loops take 100 ms; then 20 processes, of each one value to warm
// up and three that count.

fn pyperf(bench: &Bench, work: Work, slower: u32) -> Result<Values, String> {
    let units = units(bench, work, slower, 105e6)?;
    (0..20).map(|_| worker(bench, work, slower, &format!("windows {units} 1 3"))).collect()
}

fn flat(values: &Values) -> Vec<f64> {
    values.iter().flatten().map(|[ns, _]| *ns).collect()
}

/// Mean and its interval by t, every value for itself: these tools print mean ± standard deviation
/// and no interval.
fn of_mean(values: &Values) -> Option<Figure> {
    let all = flat(values);
    let (count, middle) = (all.len() as f64, mean(&all)?);
    let half = t_quantile(0.95, count - 1.0)? * (variance(&all)? / count).sqrt();
    let interval = Interval { low: (middle - half).max(f64::MIN_POSITIVE).ln(), high: (middle + half).ln() };
    Some(Figure { middle: middle.ln(), interval })
}

/// Student's t of all values, and nothing below 1 %: what `pyperf compare_to` calls significant.
fn told_by_pyperf(first: &Values, second: &Values) -> i32 {
    let (a, b) = (flat(first), flat(second));
    let pooled = |a: &[f64], b: &[f64]| {
        let freedom = (a.len() + b.len() - 2) as f64;
        let squares = variance(a)? * (a.len() - 1) as f64 + variance(b)? * (b.len() - 1) as f64;
        let error = (squares / freedom * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
        let difference = mean(b)? - mean(a)?;
        let significant = difference.abs() / error >= t_quantile(0.95, freedom)?;
        Some(sign(difference, significant && (difference / mean(a)?).abs() >= NOISE))
    };
    pooled(&a, &b).unwrap_or(0)
}

// hyperfine: the command 3 times to warm up, then 10 times and 3 s at least. The command takes 250
// ms.

const WARM_UPS: usize = 3;
const COMMAND_NS: f64 = 250e6;
const RUNS: usize = 12;

fn hyperfine(bench: &Bench, work: Work, slower: u32) -> Result<Values, String> {
    let units = units(bench, work, 0, COMMAND_NS)?;
    let command = words(bench, work, slower, &format!("once {units}"))?;
    let mut times = Vec::new();
    for run in 0..WARM_UPS + RUNS {
        let begin = Instant::now();
        let mut process = Command::new(&command[0]);
        let status = process.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let ns = begin.elapsed().as_nanos() as f64;
        if !status.is_ok_and(|status| status.success()) {
            return Err("the command failed".to_string());
        }
        if run >= WARM_UPS {
            times.push([ns / units as f64, 0.0]);
        }
    }
    Ok(vec![times])
}

/// Welch's t at 5 %: hyperfine itself concludes nothing, the script that comes with it does so.
fn told_by_welch(first: &Values, second: &Values) -> i32 {
    let (a, b) = (flat(first), flat(second));
    let welch = |a: &[f64], b: &[f64]| {
        let parts = [(variance(a)? / a.len() as f64, a.len()), (variance(b)? / b.len() as f64, b.len())];
        let error: f64 = parts.iter().map(|(part, _)| part).sum();
        let freedom =
            error.powi(2) / parts.iter().map(|(part, n)| part.powi(2) / (*n as f64 - 1.0)).sum::<f64>();
        let difference = mean(b)? - mean(a)?;
        Some(sign(difference, t_two_sided(difference / error.sqrt(), freedom) < 0.05))
    };
    welch(&a, &b).unwrap_or(0)
}

// criterion: one process, 3 s to warm up, then 100 samples of rising length in 5 s.

fn criterion(bench: &Bench, work: Work, slower: u32) -> Result<Values, String> {
    Ok(vec![worker(bench, work, slower, "linear 3e9 5e9 100")?])
}

/// The slope through the origin, bootstrapped over samples.
fn of_slope(values: &Values) -> Option<Figure> {
    let samples = values.first()?;
    let slope = |drawn: &[Vec<usize>]| {
        let pairs = || drawn[0].iter().map(|place| samples[*place]);
        let squares: f64 = pairs().map(|[units, _]| units * units).sum();
        pairs().map(|[units, ns]| units * ns).sum::<f64>() / squares
    };
    let interval = bca(&[samples.len()], Resampling::new(0.95, 1), slope)?;
    let middle = slope(&[(0..samples.len()).collect()]);
    Some(Figure {
        middle: middle.ln(),
        interval: Interval { low: interval.low.ln(), high: interval.high.ln() },
    })
}

/// The bootstrapped change of the mean, all of it beyond the noise threshold of 1 %.
fn told_by_bootstrap(first: &Values, second: &Values) -> i32 {
    let times =
        |values: &Values| -> Vec<f64> { values.iter().flatten().map(|[units, ns]| ns / units).collect() };
    let arms = [times(first), times(second)];
    let change = |drawn: &[Vec<usize>]| {
        let mean = |arm: usize| {
            drawn[arm].iter().map(|place| arms[arm][*place]).sum::<f64>() / drawn[arm].len() as f64
        };
        mean(1) / mean(0) - 1.0
    };
    match bca(&[arms[0].len(), arms[1].len()], Resampling::new(0.95, 1), change) {
        Some(found) if found.low > NOISE => 1,
        Some(found) if found.high < -NOISE => -1,
        _ => 0,
    }
}

/// hyperfine's own program, no shell between; its times by Welch's t.
fn real_hyperfine(bench: &Bench, work: Work, slower: [u32; 2]) -> Result<i32, String> {
    if !on_path("hyperfine") {
        return Err("hyperfine is not installed".to_string());
    }
    let units = units(bench, work, 0, COMMAND_NS)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("times.json");
    let command = |slower| words(bench, work, slower, &format!("once {units}")).map(|words| words.join(" "));
    let fixed = ["hyperfine", "-N", "--warmup", "3", "--export-json"].map(str::to_string);
    let commands = [file.display().to_string(), command(slower[0])?, command(slower[1])?];
    said_by(&[&fixed[..], &commands[..]].concat()).map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let said: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let times = |arm: usize| -> Values {
        let times = said["results"][arm]["times"].as_array().into_iter().flatten();
        vec![times.filter_map(|seconds| Some([seconds.as_f64()?, 0.0])).collect()]
    };
    Ok(told_by_welch(&times(0), &times(1)))
}

/// `pyperf command` and `pyperf compare_to`, over commands of 100 ms.
fn real_pyperf(bench: &Bench, work: Work, slower: [u32; 2]) -> Result<i32, String> {
    let units = units(bench, work, 0, 105e6)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = |arm: usize| folder.path().join(format!("{arm}.json")).display().to_string();
    let pyperf = |more: &[String]| {
        let words = ["python3", "-m", "pyperf"].map(str::to_string);
        said_by(&[&words[..], more].concat()).map_err(|error| error.to_string())
    };
    for (arm, slower) in slower.into_iter().enumerate() {
        let fixed = ["command", "--quiet", "--name", "work", "--output"].map(str::to_string);
        let command = words(bench, work, slower, &format!("once {units}"))?;
        pyperf(&[&fixed[..], &[file(arm), "--".to_string()], &command[..]].concat())?;
    }
    let said = pyperf(&["compare_to".to_string(), file(0), file(1)])?;
    match () {
        () if said.contains("ot significant") => Ok(0),
        () if said.contains("slower") => Ok(1),
        () if said.contains("faster") => Ok(-1),
        () => Err(format!("pyperf is not installed, or said {said:?}")),
    }
}
