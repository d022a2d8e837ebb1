//! Specs written from runs: of one run with room on the worse side, or of a fleet of good ones.

use super::subject::Subject;
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use model::{Better, VerdictKind};
use stats::order::median;
use std::fmt::Write;

/// Runs that a spec is derived from, at least.
pub const LEAST_RUNS: usize = 8;

/// How many half-widths of the interval a figure's limit is away from the middle, at least: the
/// rule of peers.
const HALF_WIDTHS: f64 = 3.0;

/// A limit that is further away than this share of the middle would accept anything.
const FURTHEST: f64 = 0.5;

/// What of a machine is asked for as it is.
const FACTS: [&str; 4] = ["cpu_model", "cpus", "memory_gib", "hypervisor"];

/// Of a key figure its median, half its interval, and whether more is better.
struct Known {
    figure: &'static KeyFigure,
    median: f64,
    half: f64,
    higher: bool,
}

fn known(subject: &Subject) -> Vec<Known> {
    let of = |figure: &'static KeyFigure| {
        let (_, own) = subject.key_figures.iter().find(|(name, _)| *name == figure.name)?;
        let series = subject.figures.iter().find(|one| one.key == own.key);
        let usable = !matches!(own.verdict, VerdictKind::Rejected | VerdictKind::Skipped);
        let [low, high] = own.low_high.filter(|ends| usable && ends.iter().all(|end| end.is_finite()))?;
        // The one size is better the larger it is.
        let higher = series.map_or(figure.is_size(), |one| one.better == Some(Better::Higher));
        Some(Known { figure, median: own.value?, half: (high - low) / 2.0, higher })
    };
    KEY_FIGURES.iter().filter_map(of).collect()
}

/// A number as a spec has it: four significant digits.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn head(name: &str, what: &str, subject: &Subject) -> String {
    let mut out = format!("# {what}\nschema = 1\nname = {}\n\n[machine]\n", quoted(name));
    for name in FACTS {
        if let Some(value) = subject.fact(name) {
            let value =
                if value.parse::<u64>().is_ok() { format!("{{ min = {value} }}") } else { quoted(value) };
            let _ = writeln!(out, "{name} = {value}");
        }
    }
    out += "\n[findings]\nfail_at = \"problem\"\n\n[limits]\n";
    out
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A limit's line; of what is known too badly for one, why there is none.
fn line(own: &Known, room: f64) -> String {
    if room > FURTHEST * own.median {
        let wide = 100.0 * own.half / own.median;
        return format!("# {}: no limit, as it is known to ±{wide:.0} % only\n", own.figure.name);
    }
    let (end, value) = match own.higher {
        true => ("min", own.median - room),
        false => ("max", own.median + room),
    };
    format!("{} = {{ {end} = \"{} {}\" }}\n", own.figure.name, short(value), own.figure.unit)
}

/// The spec of one run: its key figures with `margin` of room on the worse side, or with what its
/// own interval needs where that is more.
pub fn initial(subject: &Subject, margin: f64) -> String {
    let what = format!(
        "Written by assay check --init from a run of {}; {:.0} % of room.",
        subject.host,
        100.0 * margin
    );
    let mut out = head(&subject.host, &what, subject);
    for own in known(subject) {
        out += &line(&own, (margin * own.median).max(HALF_WIDTHS * own.half));
    }
    out
}

/// The spec of a fleet: of each key figure that most runs have the median of medians, with room of
/// `margin` or of three usual half-widths, whichever is more. An error names how many runs there
/// must be.
pub fn derived(subjects: &[Subject], margin: f64) -> anyhow::Result<String> {
    let (Some(first), true) = (subjects.first(), subjects.len() >= LEAST_RUNS) else {
        anyhow::bail!("a spec is derived from at least {LEAST_RUNS} good runs; these are {}", subjects.len());
    };
    let what = format!(
        "Written by assay check --derive from {} runs; room of at least {:.0} %.",
        subjects.len(),
        100.0 * margin
    );
    let mut out = head("fleet", &what, first);
    let all: Vec<Vec<Known>> = subjects.iter().map(known).collect();
    for figure in KEY_FIGURES {
        let own: Vec<&Known> = all.iter().flatten().filter(|own| own.figure.name == figure.name).collect();
        let (Some(one), true) = (own.first(), 2 * own.len() > subjects.len()) else { continue };
        let middle = |of: fn(&Known) -> f64| median(&own.iter().map(|one| of(one)).collect::<Vec<_>>());
        let (Some(median), Some(half)) = (middle(|one| one.median), middle(|one| one.half)) else {
            continue;
        };
        let room = (margin * median).max(HALF_WIDTHS * half);
        out += &line(&Known { figure, median, half, higher: one.higher }, room);
    }
    Ok(out)
}
