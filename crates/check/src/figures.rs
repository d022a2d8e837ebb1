//! Demands of figures: a key figure or a series held against the limits that a spec gives it.

use anyhow::Context;
use diagnose::key_figures::{Group, named};
use model::pattern::KeyParts;
use model::{Better, VerdictKind};
use stats::spend::firm;

use super::judge::{Demand, Standing, demand};
use super::limit::{Limit, Pick, Quantity, standing};
use super::spec::is_like;
use super::subject::{Figure, Subject};

/// The limit as it is shown, and its ends in a unit.
fn asked(limit: &Limit, unit: &str) -> anyhow::Result<(String, [Option<f64>; 2])> {
    let [min, max] = limit.ends()?;
    let within = |end: &Option<Quantity>| end.as_ref().map(|end| end.in_unit(unit)).transpose();
    let words = match (&min, &max) {
        (Some(min), Some(max)) => format!("{}–{} {}", min.value, max.value, max.unit),
        (Some(min), None) => format!("≥ {} {}", min.value, min.unit),
        (None, Some(max)) => format!("≤ {} {}", max.value, max.unit),
        (None, None) => String::new(),
    };
    Ok((words, [within(&min)?, within(&max)?]))
}

pub fn key_figure(name: &str, limit: &Limit, subject: &Subject) -> anyhow::Result<Demand> {
    let (group, label, unit) =
        named(name).map_or((Group::Os.word(), name, ""), |own| (own.group.word(), own.label, own.unit));
    let found = subject.key_figures.iter().find(|(own, _)| *own == name).map(|(_, figure)| figure);
    if let Some(share) = limit.share()? {
        let own = demand(group, label, name, share.words());
        return Ok(match found {
            Some(figure) => share.held(own, figure, limit, subject),
            None => absent(own, limit, subject),
        });
    }
    let (words, ends) = asked(limit, unit)?;
    let own = demand(group, label, name, words);
    Ok(match found {
        Some(figure) => held(own, figure, limit, ends),
        None => absent(own, limit, subject),
    })
}

/// A figure that a run does not have: open, if it is not optional, with what would measure it; of a
/// summary that had no room it is not known.
pub fn absent(own: Demand, limit: &Limit, subject: &Subject) -> Demand {
    let figure = named(&own.key);
    let is_series = figure.is_none_or(|figure| !figure.is_size() && !figure.between_hosts);
    let untold = subject.left_out > 0 || (subject.readings.is_none() && !is_series);
    if untold && !limit.optional {
        return Demand { why: TOLD_BY_RUN_FILES.into(), standing: Standing::Undecided, ..own };
    }
    let why = match (subject.unfinished, beside_pages(&limit.series, subject)) {
        (_, Some(glob)) => format!("not measured so; {glob} was"),
        (true, None) => "not measured: the run is incomplete".to_string(),
        (false, None) => "not measured".to_string(),
    };
    if limit.optional {
        return Demand { standing: Standing::NotAsked, why, ..own };
    }
    let key = figure.map_or(own.key.as_str(), |figure| figure.patterns().first().unwrap_or(&""));
    let bench = KeyParts::of(key).bench;
    Demand {
        standing: Standing::Undecided,
        why,
        confirm: measure(if bench.contains('*') { "" } else { bench }),
        ..own
    }
}

const TOLD_BY_RUN_FILES: &str = "a summary does not hold it; check the run file";

/// The glob that finds something with kinds of pages behind its placement, where it does not
/// without.
fn beside_pages(glob: &str, subject: &Subject) -> Option<String> {
    let (place, rest) = glob.split_at(glob.find(['?', '#', '/']).unwrap_or(glob.len()));
    let wider = format!("{place}+*{rest}");
    let found = || subject.figures.iter().any(|figure| is_series(&wider, figure));
    (place.contains('@') && !place.contains(['+', '*']) && found()).then_some(wider)
}

fn held(own: Demand, figure: &Figure, limit: &Limit, [min, max]: [Option<f64>; 2]) -> Demand {
    let own = Demand {
        value: figure.value,
        low_high: figure.low_high.filter(|ends| ends.iter().all(|end| end.is_finite())),
        unit: figure.unit.replace("us", "µs"),
        ..own
    };
    match (doubt(figure, limit), figure.low_high) {
        (Some(why), _) => undecided(own, figure, why),
        (None, None) => {
            let open = figure.key.clone();
            let why = "measured too few times for an interval".to_string();
            Demand { open, ..undecided(own, figure, why) }
        }
        (None, Some(ends)) => decided(own, figure, ends, [min, max]),
    }
}

/// Why a figure decides nothing, whatever its value is.
pub fn doubt(figure: &Figure, limit: &Limit) -> Option<String> {
    let counts = match limit.verdict.as_slice() {
        [] => figure.verdict != VerdictKind::Rejected,
        some => some.contains(&figure.verdict),
    };
    let because = if figure.reason.is_empty() { String::new() } else { format!(": {}", figure.reason) };
    match figure.verdict {
        VerdictKind::Skipped => Some(format!("skipped{because}")),
        VerdictKind::Rejected => Some(format!("rejected{because}")),
        _ if !counts => Some(format!("its verdict is not one that the spec counts{because}")),
        _ => None,
    }
}

/// A demand that its interval decides, or leaves open.
pub fn decided(own: Demand, figure: &Figure, ends: [f64; 2], [min, max]: [Option<f64>; 2]) -> Demand {
    let widened = own.value.map_or(ends, |value| firm(value, ends));
    let is_open = standing(widened, min, max).0 == Standing::Undecided;
    let own = Demand { open: if is_open { figure.key.clone() } else { String::new() }, ..own };
    match standing(ends, min, max) {
        (Standing::Undecided, by) => Demand { by, ..undecided(own, figure, String::new()) },
        (standing, by) => Demand { standing, by, ..own },
    }
}

/// A demand that is open, with what would decide it.
pub fn undecided(own: Demand, figure: &Figure, why: String) -> Demand {
    let confirm = measure(KeyParts::of(&figure.key).bench);
    Demand { standing: Standing::Undecided, why, confirm, ..own }
}

/// What measures a benchmark well; all of them where none is named.
fn measure(bench: &str) -> String {
    match bench.is_empty() {
        true => "assay run --profile full".to_string(),
        false => format!("assay run --only {bench} --profile full"),
    }
}

/// What a glob asks of series that a summary had no room for; nothing where it names one series, or
/// asks for the best and one that is seen will do.
pub fn left_out(limit: &Limit, asked: &str, subject: &Subject, seen: &[Demand]) -> Option<Demand> {
    let is_one = limit.series.contains('#') && !limit.series.contains('*');
    let will_do = limit.pick == Pick::Best && seen.iter().all(|demand| demand.standing == Standing::Met);
    let why = match subject.left_out {
        0 => return None,
        1 => "1 series is left out of the summary; check the run file".to_string(),
        count => format!("{count} series are left out of the summary; check the run file"),
    };
    let own = of_series(&limit.series, &format!("{}, others", limit.series), asked.to_string());
    (!is_one && !will_do).then_some(Demand { why, ..own })
}

/// The demands of a limit over series: one for each series, or one for the best or the worst.
pub fn series(limit: &Limit, subject: &Subject) -> anyhow::Result<Vec<Demand>> {
    let matches = |one: &&Figure| is_series(&limit.series, one);
    let mut found: Vec<&Figure> = subject.figures.iter().filter(matches).collect();
    if let Some(share) = limit.share()? {
        return Ok(share.of_series(found, limit, subject));
    }
    // A limit is of those that are measured in its unit.
    let fits = |one: &&Figure| asked(limit, &one.unit).is_ok();
    if found.iter().any(fits) {
        found.retain(fits);
    }
    let one = |figure: &Figure| -> anyhow::Result<Demand> {
        let (words, ends) = asked(limit, &figure.unit).with_context(|| figure.key.clone())?;
        Ok(held(of_series(&figure.key, &figure.label, words), figure, limit, ends))
    };
    if found.is_empty() {
        let words = limit.ends()?.into_iter().flatten().map(|end| format!("{} {}", end.value, end.unit));
        let own = of_series(&limit.series, &limit.series, words.collect::<Vec<_>>().join("–"));
        return Ok(vec![absent(own, limit, subject)]);
    }
    // Of figures of which one cannot be used, none is known to be the best or the worst.
    let value = |figure: &&Figure| figure.value.filter(|_| figure.verdict != VerdictKind::Rejected);
    let sign = |figure: &Figure| if figure.better == Some(Better::Higher) { 1.0 } else { -1.0 };
    let ranked = |figure: &&Figure| value(figure).map(|value| sign(figure) * value);
    let by_value =
        |a: &&Figure, b: &&Figure| ranked(a).unwrap_or(f64::NAN).total_cmp(&ranked(b).unwrap_or(f64::NAN));
    let usable = || found.iter().copied().filter(|figure| value(figure).is_some());
    let rest = |mut seen: Vec<Demand>| {
        let asked = seen.first().map_or(String::new(), |demand| demand.asked.clone());
        let others = left_out(limit, &asked, subject, &seen);
        // Of a best one that is not good enough a better one may not be seen.
        if others.is_some() && limit.pick == Pick::Best {
            seen.clear();
        }
        seen.extend(others);
        seen
    };
    let picked = match limit.pick {
        Pick::Each => return Ok(rest(found.into_iter().map(one).collect::<anyhow::Result<_>>()?)),
        Pick::Best => usable().max_by(by_value),
        Pick::Worst => {
            found.iter().copied().find(|figure| value(figure).is_none()).or_else(|| usable().min_by(by_value))
        }
    };
    Ok(rest(vec![one(picked.unwrap_or(found[0]))?]))
}

/// A demand of a series, in its group.
pub fn of_series(key: &str, label: &str, asked: String) -> Demand {
    demand(Group::of_bench(KeyParts::of(key).bench).word(), label, key, asked)
}

/// Whether a glob names a series: the whole key, or its beginning up to the metric where the glob
/// names no metric and the series is what its benchmark is about.
fn is_series(glob: &str, figure: &Figure) -> bool {
    let whole = is_like(glob, &figure.key);
    let short = figure.key.split('#').next().unwrap_or_default();
    whole || (!glob.contains('#') && figure.headline && is_like(glob, short))
}
