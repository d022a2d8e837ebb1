//! A sweep in words: settings, regions and why they are what they are, as far as the switch counts tell.

use super::{Charted, Facet, TOGETHER};
use crate::words::figure;
use model::sweep::Axis;
use model::vocabulary::hackbench::metric as ids;
use model::{Better, Sweep, percent};
use stats::sweep::fit::Contrast;
use stats::sweep::{Answer, Asked, Kind, Region};

/// A value of an axis as people say it: nanoseconds in us, ms or s.
pub fn value(axis: &Axis, value: &str) -> String {
    let ns = axis.name.ends_with("_ns").then(|| value.parse::<f64>().ok()).flatten();
    let plain = |number: f64, unit: &str| {
        let text = format!("{number:.3}");
        format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match ns {
        Some(ns) if ns >= 1e9 => plain(ns / 1e9, "s"),
        Some(ns) if ns >= 1e6 => plain(ns / 1e6, "ms"),
        Some(ns) if ns >= 1e3 => plain(ns / 1e3, "us"),
        Some(ns) => plain(ns, "ns"),
        None => value.to_string(),
    }
}

/// An axis's name without the unit that its values have.
pub fn name(axis: &Axis) -> &str {
    axis.name.strip_suffix("_ns").unwrap_or(&axis.name)
}

/// A cell's setting: `slice 10 ms, policy batch`.
pub fn setting(sweep: &Sweep, cell: usize) -> String {
    let [columns, _] = sweep.shape();
    let at = [cell % columns.max(1), cell / columns.max(1)];
    let each = sweep.axes.iter().zip(at).map(|(axis, index)| {
        let own = axis.values.get(index).map_or("", String::as_str);
        format!("{} {}", name(axis), value(axis, own))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The setting that was there before.
pub fn before(sweep: &Sweep) -> String {
    let each = sweep.axes.iter().map(|axis| {
        let own = axis.before.as_deref().map_or("unknown".to_string(), |own| value(axis, own));
        format!("{} {own}", name(axis))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The knobs' names: `min_granularity and wakeup_granularity`.
pub fn knobs(sweep: &Sweep) -> String {
    sweep.axes.iter().map(name).collect::<Vec<_>>().join(" and ")
}

/// A ratio as a change: `18 % less`.
pub fn change(ratio: f64) -> String {
    match ratio {
        ratio if (0.9995..1.0005).contains(&ratio) => "the same".to_string(),
        ratio if ratio < 1.0 => format!("{} less", percent(1.0 - ratio)),
        ratio if ratio >= 3.0 => format!("{ratio:.1} times as much"),
        ratio => format!("{} more", percent(ratio - 1.0)),
    }
}

/// A cell beside the setting that was there before, with its interval: `18 % less (16 % less to 20 % less)`.
pub fn beside(charted: &Charted, cell: usize) -> String {
    let Some(ratio) = charted.ratio(cell) else { return "not measured".to_string() };
    if cell == charted.control {
        return "the setting that was there".to_string();
    }
    match charted.interval(cell) {
        Some([low, high]) => format!("{} ({} to {})", change(ratio), change(low), change(high)),
        None => change(ratio),
    }
}

/// What was asked of all visits together.
pub fn asked(sweep: &Sweep, asked: Asked) -> String {
    let of = |axis: usize| sweep.axes.get(axis).map_or("", name);
    match asked {
        Asked::Main { axis } => of(axis).to_string(),
        Asked::Trend { axis } => format!("trend along {}", of(axis)),
        Asked::Together => format!("{} depending on {}", of(1), of(0)),
        Asked::Any => "any two cells".to_string(),
    }
}

/// What the visits say to it: `batch 4.1 % less than other (6.0 % less to 2.2 % less)`, or what
/// would have been seen.
pub fn answer(sweep: &Sweep, answer: &Answer) -> String {
    let seen = || answer.floor.map(|floor| percent(floor.exp() - 1.0));
    match (answer.is_yes(), answer.asked) {
        (false, Asked::Together | Asked::Any) => "nothing told".to_string(),
        (false, _) => match seen() {
            Some(seen) => format!("nothing told; {seen} would have been seen"),
            None => "nothing told".to_string(),
        },
        (true, Asked::Together) => "what one does depends on the other".to_string(),
        (true, Asked::Any) => "they differ".to_string(),
        (true, Asked::Main { axis }) => main(sweep, axis, answer),
        (true, Asked::Trend { axis }) => trend(sweep, axis, answer),
    }
}

/// An effect with its interval: `4.1 % less (6.0 % less to 2.2 % less)`.
fn effect(effect: &Contrast) -> String {
    let interval = effect.interval();
    let [at, low, high] = [effect.value, interval.low, interval.high].map(|ln| change(ln.exp()));
    format!("{at} ({low} to {high})")
}

/// The value of a knob that differs most from the one that was there before, of several also the
/// one on the other side.
fn main(sweep: &Sweep, axis: usize, answer: &Answer) -> String {
    let known = answer.effects.iter().enumerate();
    let known: Vec<(usize, &Contrast)> =
        known.filter_map(|(place, effect)| Some((place, effect.as_ref()?))).collect();
    let value = |place: usize| {
        let axis = sweep.axes.get(axis)?;
        axis.values.get(place).map(|own| value(axis, own))
    };
    let Some(before) =
        known.iter().find(|(_, effect)| effect.error == 0.0).and_then(|(place, _)| value(*place))
    else {
        return "its values differ".to_string();
    };
    let low = known.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value)).filter(|(_, low)| low.value < 0.0);
    let high =
        known.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value)).filter(|(_, high)| high.value > 0.0);
    let side = |end: Option<&(usize, &Contrast)>| {
        end.and_then(|(place, own)| Some(format!("{} {}", value(*place)?, effect(own))))
    };
    let sides: Vec<String> = [side(low), side(high)].into_iter().flatten().collect();
    format!("{}; than {before}", sides.join(", "))
}

fn trend(sweep: &Sweep, axis: usize, answer: &Answer) -> String {
    let Some((axis, own)) = sweep.axes.get(axis).zip(answer.effects.first().and_then(Option::as_ref)) else {
        return "rises or falls".to_string();
    };
    let word = if own.value < 0.0 { "falls" } else { "rises" };
    format!("{word} towards a larger {}: end to end {}", name(axis), effect(own))
}

/// The smallest effects that would have been seen: `policy 8.3 %, trend along slice 10 %, any two
/// cells 28 %`.
pub fn seen(sweep: &Sweep, charted: &Charted) -> String {
    let each = charted.surface.answers.iter().filter_map(|answer| {
        let floor = percent(answer.floor?.exp() - 1.0);
        Some(format!("{} {floor}", asked(sweep, answer.asked)))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What a region spans on each axis: `slice 1 ms to 4 ms`; an axis that it covers whole is left out.
pub fn span(sweep: &Sweep, region: &Region) -> String {
    let [columns, _] = sweep.shape();
    let at =
        |index: usize, cell: usize| if index == 0 { cell % columns.max(1) } else { cell / columns.max(1) };
    let each = sweep.axes.iter().enumerate().filter_map(|(index, axis)| {
        let places = region.cells.iter().map(|cell| at(index, *cell));
        let (low, high) = (places.clone().min()?, places.max()?);
        if low == 0 && high + 1 == axis.values.len() && sweep.axes.len() > 1 {
            return None;
        }
        let ends = [low, high].map(|place| value(axis, &axis.values[place]));
        Some(match low == high {
            true => format!("{} {}", name(axis), ends[0]),
            false => format!("{} {} to {}", name(axis), ends[0], ends[1]),
        })
    });
    let words: Vec<String> = each.collect();
    if words.is_empty() { "everywhere".to_string() } else { words.join(", ") }
}

/// What the response does in a region: `fall: lower towards a larger slice`.
pub fn kind(sweep: &Sweep, region: &Region) -> String {
    match (region.kind, region.direction) {
        (Kind::Flat, _) => "flat".to_string(),
        (Kind::Ragged, _) => "ragged".to_string(),
        (Kind::Fall, None) => "fall".to_string(),
        (Kind::Fall, Some(direction)) => {
            let axis = sweep.axes.get(usize::from(direction.axis)).map_or("", name);
            let word = if direction.rises { "rises" } else { "falls" };
            format!("{word} towards a larger {axis}")
        }
    }
}

/// The same where there is little room: towards the right of the map (→) or its top (↑).
pub fn short_kind(region: &Region) -> String {
    match (region.kind, region.direction) {
        (Kind::Flat, _) => "flat".to_string(),
        (Kind::Ragged, _) => "ragged".to_string(),
        (Kind::Fall, None) => "fall".to_string(),
        (Kind::Fall, Some(direction)) => {
            let word = if direction.rises { "rises" } else { "falls" };
            format!("{word} {}", if direction.axis == 0 { '→' } else { '↑' })
        }
    }
}

/// The letter of a region.
pub fn letter(index: usize) -> String {
    model::letters(index)
}

/// Why a region is what it is, by the switches that were counted; empty where none were.
pub fn why(charted: &Charted, region: &Region) -> String {
    let Some(involuntary) = charted.beside(ids::INVOLUNTARY) else {
        return String::new();
    };
    let voluntary = charted.beside(ids::VOLUNTARY);
    let at = |medians: &[Option<f64>], cell: usize| medians.get(cell).copied().flatten();
    let by_level = |cell: &&usize| charted.ratio(**cell).unwrap_or(1.0);
    let lowest = region.cells.iter().min_by(|one, other| by_level(one).total_cmp(&by_level(other)));
    let highest = region.cells.iter().max_by(|one, other| by_level(one).total_cmp(&by_level(other)));
    let (Some(lowest), Some(highest)) = (lowest, highest) else { return String::new() };
    let counts = |cell: usize| {
        let one = at(&involuntary.medians, cell);
        let other = voluntary.and_then(|voluntary| at(&voluntary.medians, cell));
        one.map(|one| (one, other))
    };
    let (Some((few, few_voluntary)), Some((many, many_voluntary))) = (counts(*lowest), counts(*highest))
    else {
        return String::new();
    };
    let words = |count: f64| figure(count, "");
    let tasks = charted.beside(ids::TASKS).and_then(|tasks| tasks.over(region)).filter(|tasks| *tasks > 0.0);
    let each = |count: f64| tasks.map(|tasks| count / tasks);
    let over = involuntary.over(region).unwrap_or(few);
    match region.kind {
        Kind::Flat => match each(over) {
            Some(each) if each < HARDLY => format!(
                "hardly any preemption is left to save: {} involuntary switches a run, {} a task",
                words(over),
                figure(each, "")
            ),
            _ => format!("{} involuntary switches a run, and more or fewer make no difference", words(over)),
        },
        // What goes with the time is said; what does not, too.
        Kind::Fall if many > few * MORE => {
            let mut text = format!(
                "tasks are preempted {} times a run where it is highest and {} times where it is lowest",
                words(many),
                words(few)
            );
            if let (Some(few), Some(many)) = (few_voluntary, many_voluntary) {
                text.push_str(&format!("; they sleep {} and {} times", words(many), words(few)));
                if many > few * MORE {
                    text.push_str(
                        ": a preemption whose winner finds nothing to read buys a voluntary switch besides",
                    );
                }
            }
            text
        }
        Kind::Fall => format!(
            "preemptions do not explain it: {} a run where it is highest, {} where it is lowest",
            words(many),
            words(few)
        ),
        Kind::Ragged => {
            let counts: Vec<f64> =
                region.cells.iter().filter_map(|cell| at(&involuntary.medians, *cell)).collect();
            let low = counts.iter().copied().fold(f64::INFINITY, f64::min);
            let high = counts.iter().copied().fold(0.0, f64::max);
            format!(
                "ups and downs beyond the noise, with {} to {} involuntary switches a run",
                words(low),
                words(high)
            )
        }
    }
}

/// Involuntary switches a task below which preemption is as good as gone.
const HARDLY: f64 = 10.0;
/// As many times as many are more, whatever the noise of counts.
const MORE: f64 = 1.3;

/// What the time goes with, over the whole map; empty where nothing does.
pub fn together(charted: &Charted) -> String {
    let each =
        [ids::INVOLUNTARY, ids::VOLUNTARY, ids::WAIT, ids::MIGRATIONS].into_iter().filter_map(|name| {
            let beside = charted.beside(name)?;
            let rho = beside.correlation?;
            (rho.abs() >= TOGETHER).then(|| format!("{} (rank correlation {rho:.2})", beside.metric.title))
        });
    each.collect::<Vec<_>>().join(", ")
}

/// The best cell and those that cannot be told apart from it, in a sentence's end.
pub fn best(sweep: &Sweep, charted: &Charted) -> Option<String> {
    let (first, others) = charted.surface.best.split_first()?;
    let mut text = setting(sweep, *first);
    if charted.surface.best.contains(&charted.control) {
        text.push_str(", from which the setting that was there cannot be told apart");
    }
    match others.len() {
        0 => {}
        n if n <= 4 => {
            let list: Vec<String> = others.iter().map(|cell| setting(sweep, *cell)).collect();
            text.push_str(&format!(
                "; the best {} cells cannot be told apart (the others: {})",
                n + 1,
                list.join("; ")
            ));
        }
        n => text.push_str(&format!("; the best {} cells cannot be told apart", n + 1)),
    }
    Some(text)
}

/// What is best for whom, a sentence each.
pub fn advice(sweep: &Sweep, facet: &Facet) -> Vec<String> {
    [Some(&facet.target), facet.response.as_ref()]
        .into_iter()
        .flatten()
        .filter_map(|charted| advice_by(sweep, facet, charted))
        .collect()
}

/// The worst cell, with what it costs.
fn worst(sweep: &Sweep, charted: &Charted) -> Option<String> {
    let by_level = |cell: &usize| charted.ratio(*cell).filter(|_| *cell < charted.cells);
    let known = (0..charted.cells).filter(|cell| by_level(cell).is_some());
    let order = |one: &usize, other: &usize| {
        let (one, other) = (by_level(one).unwrap_or(1.0), by_level(other).unwrap_or(1.0));
        if charted.metric.better == Better::Higher { other.total_cmp(&one) } else { one.total_cmp(&other) }
    };
    let cell = known.max_by(order)?;
    Some(format!("{}, {}", setting(sweep, cell), beside(charted, cell)))
}

/// Values of knobs that are told to be better than those that were there, where no single cell is.
fn by_value(sweep: &Sweep, charted: &Charted) -> Option<String> {
    let each = charted.told().filter_map(|answer| {
        let (axis, place, own) = charted.better_value(answer)?;
        let axis = sweep.axes.get(axis)?;
        Some(format!(
            "{} {}; {} {}",
            name(axis),
            value(axis, axis.values.get(place)?),
            charted.title,
            effect(&own)
        ))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

/// What one metric advises; `None` where it has no better side.
pub fn advice_by(sweep: &Sweep, facet: &Facet, charted: &Charted) -> Option<String> {
    if charted.metric.better == Better::Neither {
        return None;
    }
    let purpose = match (&facet.response, charted.measure == &sweep.target) {
        (None, _) => "this benchmark",
        (_, true) => "throughput",
        (_, false) => "response (interactive use)",
    };
    let title = &charted.title;
    Some(match (charted.surface.matters.yes, charted.surface.best.first()) {
        (false, _) if charted.is_fine() => {
            format!("For {purpose} leave them as they are: {title} does not depend on them here")
        }
        (false, _) => {
            format!("For {purpose} nothing can be advised: no effect on {title} can be told from the noise")
        }
        (true, Some(first)) if !charted.beats(*first) && by_value(sweep, charted).is_some() => {
            format!("For {purpose}: {}", by_value(sweep, charted).unwrap_or_default())
        }
        (true, Some(first)) if !charted.beats(*first) => {
            let worst = worst(sweep, charted).map_or(String::new(), |worst| format!("; worst: {worst}"));
            format!("For {purpose} leave them as they are: nothing is told to give a better {title}{worst}")
        }
        (true, Some(first)) => {
            format!("For {purpose}: {}; {title} {}", setting(sweep, *first), beside(charted, *first))
        }
        (true, None) => return None,
    })
}
