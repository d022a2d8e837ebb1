//! Demands of figures: a key figure or a series and the limits that a spec gives it.

use anyhow::Context;
use diagnose::key_figures::{Group, named};
use model::{Better, VerdictKind};

use super::demand::{
    Demand, absent, decided, demand, doubt, is_series, left_out, of_series, undecided, usable,
};
use super::limit::{Limit, Pick, Quantity};
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

fn held(own: Demand, figure: &Figure, limit: &Limit, [min, max]: [Option<f64>; 2]) -> Demand {
    let own = Demand {
        value: figure.value,
        low_high: figure.low_high.filter(|ends| ends.iter().all(|end| end.is_finite())),
        unit: figure.unit.replace("us", "µs"),
        series: usable(figure),
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
    let again = limit.series.clone();
    Ok(rest(vec![Demand { again, ..one(picked.unwrap_or(found[0]))? }]))
}
