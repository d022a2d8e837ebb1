//! Specs written from runs: of one run with a margin on the worse side, or of a fleet of good ones.

use super::subject::Subject;
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use model::{Better, VerdictKind, counted};
use stats::order::{MAD_TO_SIGMA, mad, median};
use std::fmt::Write;

/// Runs that a spec is derived from, at least.
pub const MIN_RUNS: usize = 8;

/// How many half-widths of the interval a figure's limit is away from the middle, at least: the
/// rule of peers.
const HALF_WIDTHS: f64 = 3.0;

/// How many spreads of the good runs (1.4826 MAD of their medians) it is away, at least: with less,
/// a healthy host that is checked every day is rejected by chance several times a year (`prove
/// daily`).
const SPREADS: f64 = 4.0;

/// A limit that is further away than this share of the middle would accept anything.
const FURTHEST: f64 = 0.5;

/// The comment at the top of a written spec.
const RULE: &str = "Uncertain figures have a larger margin: 3 times their ±, or 4 times the spread of several runs. \
                    Above 50 % there is no limit.";

/// What of a host is asked for as it is.
const FACTS: [&str; 4] = ["cpu_model", "cpus", "memory_gib", "hypervisor"];

/// Of a key figure its median, half its interval, and whether more is better.
struct KnownFigure {
    figure: &'static KeyFigure,
    median: f64,
    half: f64,
    higher: bool,
}

fn known(subject: &Subject) -> Vec<KnownFigure> {
    let of = |figure: &'static KeyFigure| {
        let (_, own) = subject.key_figures.iter().find(|(name, _)| *name == figure.name)?;
        let series = subject.figures.iter().find(|one| one.key == own.key);
        let usable = !matches!(own.verdict, VerdictKind::Rejected | VerdictKind::Skipped);
        let [low, high] = own.low_high.filter(|ends| usable && ends.iter().all(|end| end.is_finite()))?;
        // The one size is better the larger it is.
        let higher = series.map_or(figure.is_size(), |one| one.better == Some(Better::Higher));
        Some(KnownFigure { figure, median: own.value?, half: (high - low) / 2.0, higher })
    };
    KEY_FIGURES.iter().filter_map(of).collect()
}

/// A number with four significant digits.
pub(super) fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn head(name: &str, what: &str, subject: &Subject) -> String {
    let mut out = format!("# {}\n# {RULE}\nschema = 1\nname = {}\n\n[machine]\n", tame(what), quoted(name));
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
    toml::Value::from(tame(text)).to_string()
}

/// A name without what ends a comment or moves a terminal's cursor.
fn tame(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// A limit's line; of what is known too badly for one, why there is none.
fn line(own: &KnownFigure, room: f64) -> String {
    if room > FURTHEST * own.median {
        let wide = 100.0 * room / own.median;
        return format!("# {}: no limit (the margin would be {wide:.0} %)\n", own.figure.name);
    }
    let (end, value) = if own.higher { ("min", own.median - room) } else { ("max", own.median + room) };
    format!("{} = {{ {end} = \"{} {}\" }}\n", own.figure.name, short(value), own.figure.unit)
}

/// The spec of one run: its key figures with `margin` on the worse side, or with what its
/// own interval needs where that is more.
pub fn initial(subject: &Subject, margin: f64) -> String {
    let what = format!(
        "Written by assay check --init from a run of {} with a margin of {:.0} %.",
        subject.host,
        100.0 * margin
    );
    let mut out = head(&subject.host, &what, subject);
    for own in known(subject) {
        out += &line(&own, (margin * own.median).max(HALF_WIDTHS * own.half));
    }
    out
}

/// Runs without those that are there twice, all of which can stand for the fleet.
fn of_fleet(subjects: &[Subject]) -> anyhow::Result<Vec<&Subject>> {
    let mut all: Vec<&Subject> = Vec::new();
    for own in subjects {
        if !all.iter().any(|other| is_same(own, other)) {
            all.push(own);
        }
        let file = &own.file;
        anyhow::ensure!(!own.unfinished, "{file} is an incomplete run: leave it out, or measure again");
        anyhow::ensure!(!own.nothing_valid, "{file} has no valid figure: leave it out, or measure again");
        let first = &subjects[0];
        anyhow::ensure!(
            own.invented == first.invented,
            "one of {} and {file} has invented samples (--pretend), the other was measured: leave one of them out",
            first.file
        );
        let [make, of_first] = [own, first].map(|one| one.fact("cpu_model").unwrap_or("an unknown CPU"));
        anyhow::ensure!(
            make == of_first,
            "{file} is of {make}, {} of {of_first}: derive one spec per make",
            first.file
        );
    }
    Ok(all)
}

/// Whether both are one run, as two files of it are. Invented ones all begin at once.
fn is_same(own: &Subject, other: &Subject) -> bool {
    let begun = |one: &Subject| (one.host.clone(), one.started.clone());
    let medians = |one: &Subject| known(one).iter().map(|one| one.median).collect::<Vec<_>>();
    begun(own) == begun(other) && (!own.invented || medians(own) == medians(other))
}

/// The spec of a fleet: of each key figure that most runs have the median of medians, less or more
/// by `margin`, three usual half-widths or four spreads of the medians, whichever is most. An error
/// names how many runs there must be.
pub fn derived(subjects: &[Subject], margin: f64) -> anyhow::Result<String> {
    let given = subjects.len();
    let subjects = of_fleet(subjects)?;
    let (Some(first), true) = (subjects.first(), subjects.len() >= MIN_RUNS) else {
        let twice = given - subjects.len();
        let more = if twice > 0 { format!(" ({})", counted(twice, "duplicate")) } else { String::new() };
        anyhow::bail!("--derive needs at least {MIN_RUNS} good runs, not {}{more}", subjects.len());
    };
    let what = format!(
        "Written by assay check --derive from {} runs with a margin of at least {:.0} %.",
        subjects.len(),
        100.0 * margin
    );
    let mut out = head("fleet", &what, first);
    let all: Vec<Vec<KnownFigure>> = subjects.iter().map(|one| known(one)).collect();
    for figure in KEY_FIGURES {
        let own: Vec<&KnownFigure> =
            all.iter().flatten().filter(|own| own.figure.name == figure.name).collect();
        let (Some(one), true) = (own.first(), 2 * own.len() > subjects.len()) else { continue };
        let middle = |of: fn(&KnownFigure) -> f64| median(&own.iter().map(|one| of(one)).collect::<Vec<_>>());
        let (Some(median), Some(half)) = (middle(|one| one.median), middle(|one| one.half)) else {
            continue;
        };
        let medians: Vec<f64> = own.iter().map(|one| one.median).collect();
        let spread = MAD_TO_SIGMA * mad(&medians).unwrap_or_default();
        let room = (margin * median).max(HALF_WIDTHS * half).max(SPREADS * spread);
        out += &line(&KnownFigure { figure, median, half, higher: one.higher }, room);
    }
    out += "\n# Compare hosts of one make with each other (eight or more, checked together):\n\
            # [peers]\n# not_slower = true\n";
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::subject::Figure;

    fn run(number: usize) -> Subject {
        let figure = Figure {
            key: "cpu.clock@one-cpu#clock".to_string(),
            label: String::new(),
            unit: "GHz".to_string(),
            value: Some(3.0),
            low_high: Some([2.9, 3.1]),
            verdict: VerdictKind::Trusted,
            reason: String::new(),
            better: Some(Better::Higher),
            headline: true,
        };
        Subject {
            host: format!("db-{number}"),
            file: format!("{number}.assay.jsonl"),
            facts: vec![("cpu_model".to_string(), "EPYC".to_string())],
            key_figures: vec![("core-clock", figure.clone())],
            figures: vec![figure],
            ..Subject::default()
        }
    }

    #[test]
    fn a_fleet_is_of_eight_runs_of_one_make_each_of_which_counts_once() {
        let fleet: Vec<Subject> = (0..8).map(run).collect();
        let told = |change: fn(&mut Vec<Subject>)| {
            let mut all = fleet.clone();
            change(&mut all);
            derived(&all, 0.05).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(told(|_| {}), "");
        for (change, why) in [
            ((|all| all[7] = all[0].clone()) as fn(&mut Vec<Subject>), "not 7 (1 duplicate)"),
            (|all| all[3].invented = true, "invented samples"),
            (|all| all[3].unfinished = true, "incomplete run"),
            (|all| all[3].nothing_valid = true, "no valid figure"),
            (|all| all[3].facts.clear(), "one spec per make"),
        ] {
            let error = told(change);
            assert!(error.contains(why), "{why}: {error}");
        }
    }

    #[test]
    fn good_runs_that_lie_apart_have_room_for_it() {
        let limit = |apart: f64| {
            let mut fleet: Vec<Subject> = (0..8).map(run).collect();
            for (number, own) in fleet.iter_mut().enumerate() {
                let value = 3.0 + apart * (number as f64 - 3.5);
                let figure = Figure {
                    value: Some(value),
                    low_high: Some([value - 0.01, value + 0.01]),
                    ..own.figures[0].clone()
                };
                (own.key_figures[0].1, own.figures[0]) = (figure.clone(), figure);
            }
            let text = derived(&fleet, 0.05).expect("a spec");
            text.lines().find_map(|line| line.split_once("core-clock")).map(|(_, rest)| rest.to_string())
        };
        assert_eq!(limit(0.0).as_deref(), Some(" = { min = \"2.85 GHz\" }"));
        // The middle of the distances from the median is two steps: a margin of 4 × 1.4826 × 0.2.
        assert_eq!(limit(0.1).as_deref(), Some(" = { min = \"1.814 GHz\" }"));
        assert_eq!(limit(0.3).as_deref(), Some(": no limit (the margin would be 119 %)"));
    }

    #[test]
    fn a_hosts_name_stays_in_its_comment() {
        let named = |host: &str| Subject { host: host.to_string(), ..run(1) };
        let text = initial(&named("db\n[findings]\nallow = []\u{1b}[2J"), 0.1);
        assert!(!text.contains('\u{1b}') && Spec::read(&text).is_ok(), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("[findings]")).count(), 1, "{text}");
        assert!(text.contains("3 times their ±"), "{text}");
    }
}
