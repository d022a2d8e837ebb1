//! A sweep in words: settings, regions, and their explanation by counts of context switches.

use super::{Covariate, MIN_RHO, MetricGrid};
use model::sweep::Axis;
use model::vocabulary::hackbench::metric as ids;
use model::{Sweep, percent};
use stats::sweep::fit::Contrast;
use stats::sweep::{Hypothesis, Kind, Region, TestResult};

/// A value of an axis as people say it: nanoseconds in µs, ms or s.
pub fn value(axis: &Axis, value: &str) -> String {
    let ns = axis.name.ends_with("_ns").then(|| value.parse::<f64>().ok()).flatten();
    let plain = |number: f64, unit: &str| {
        let text = format!("{number:.3}");
        format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match ns {
        Some(ns) if ns >= 1e9 => plain(ns / 1e9, "s"),
        Some(ns) if ns >= 1e6 => plain(ns / 1e6, "ms"),
        Some(ns) if ns >= 1e3 => plain(ns / 1e3, "µs"),
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

/// The setting before the sweep.
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

/// A cell against the setting before the sweep, with its interval: `18 % less (16 % less to 20 %
/// less)`.
pub fn against_before(charted: &MetricGrid, cell: usize) -> String {
    let Some(ratio) = charted.ratio(cell) else { return "not measured".to_string() };
    if cell == charted.control {
        return "the setting before".to_string();
    }
    match charted.interval(cell) {
        Some([low, high]) => format!("{} ({} to {})", change(ratio), change(low), change(high)),
        None => change(ratio),
    }
}

/// A question that all passes together answer.
pub fn asked(sweep: &Sweep, asked: Hypothesis) -> String {
    let of = |axis: usize| sweep.axes.get(axis).map_or("", name);
    match asked {
        Hypothesis::Main { axis } => of(axis).to_string(),
        Hypothesis::Trend { axis } => format!("trend along {}", of(axis)),
        Hypothesis::Interaction => format!("{} depending on {}", of(1), of(0)),
        Hypothesis::Any => "any two cells".to_string(),
    }
}

/// The answer to it: `batch 4.1 % less than other (6.0 % less to 2.2 % less)`, or the effect that
/// would have been seen.
pub fn answer(sweep: &Sweep, answer: &TestResult) -> String {
    let seen = || answer.floor.map(|floor| percent(floor.exp() - 1.0));
    match (answer.is_yes(), answer.hypothesis) {
        (false, Hypothesis::Interaction | Hypothesis::Any) => "no effect seen".to_string(),
        (false, _) => match seen() {
            Some(seen) => format!("no effect; {seen} would have been seen"),
            None => "no effect seen".to_string(),
        },
        (true, Hypothesis::Interaction) => "what one does depends on the other".to_string(),
        (true, Hypothesis::Any) => "they differ".to_string(),
        (true, Hypothesis::Main { axis }) => main(sweep, axis, answer),
        (true, Hypothesis::Trend { axis }) => trend(sweep, axis, answer),
    }
}

/// A significant answer in short: `batch 4.1 % less than other`.
pub fn brief(sweep: &Sweep, answer: &TestResult) -> Option<String> {
    let change_of = |effect: &Contrast| change(effect.value.exp());
    match answer.hypothesis {
        _ if !answer.is_yes() => None,
        Hypothesis::Trend { axis } => {
            let effect = answer.effects.first()?.as_ref()?;
            Some(format!("{} towards a larger {}", change_of(effect), name(sweep.axes.get(axis)?)))
        }
        Hypothesis::Main { axis } => {
            let axis = sweep.axes.get(axis)?;
            let known = || {
                let all = answer.effects.iter().zip(&axis.values);
                all.filter_map(|(effect, own)| Some((effect.as_ref()?, value(axis, own))))
            };
            let (_, before) = known().find(|(effect, _)| effect.error == 0.0)?;
            let (most, at) =
                known().max_by(|(one, _), (other, _)| one.value.abs().total_cmp(&other.value.abs()))?;
            Some(format!("{at} {} than {before}", change_of(most)))
        }
        Hypothesis::Interaction | Hypothesis::Any => None,
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
fn main(sweep: &Sweep, axis: usize, answer: &TestResult) -> String {
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

fn trend(sweep: &Sweep, axis: usize, answer: &TestResult) -> String {
    let Some((axis, own)) = sweep.axes.get(axis).zip(answer.effects.first().and_then(Option::as_ref)) else {
        return "rises or falls".to_string();
    };
    let word = if own.value < 0.0 { "falls" } else { "rises" };
    format!("{word} towards a larger {}: end to end {}", name(axis), effect(own))
}

/// The smallest effects that would have been seen: `policy 8.3 %, trend along slice 10 %, any two
/// cells 28 %`.
pub fn seen(sweep: &Sweep, charted: &MetricGrid) -> String {
    let each = charted.surface.test_results.iter().filter_map(|answer| {
        let floor = percent(answer.floor?.exp() - 1.0);
        Some(format!("{} {floor}", asked(sweep, answer.hypothesis)))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What a region spans on each axis: `slice 1 ms to 4 ms`; an axis that it covers whole is left
/// out.
pub fn span(sweep: &Sweep, cells: &[usize]) -> String {
    let [columns, _] = sweep.shape();
    let at =
        |index: usize, cell: usize| if index == 0 { cell % columns.max(1) } else { cell / columns.max(1) };
    let each = sweep.axes.iter().enumerate().filter_map(|(index, axis)| {
        let places = cells.iter().map(|cell| at(index, *cell));
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

/// The knob whose values all are among these cells, of two.
pub fn left_open(sweep: &Sweep, cells: &[usize]) -> Option<String> {
    let [columns, rows] = sweep.shape();
    let place = |index: usize, cell: usize| if index == 0 { cell % columns } else { cell / columns };
    let is_open = |index: usize| {
        let places: std::collections::BTreeSet<usize> =
            cells.iter().map(|cell| place(index, *cell)).collect();
        places.len() == [columns, rows][index]
    };
    let open: Vec<usize> = (0..sweep.axes.len()).filter(|index| is_open(*index)).collect();
    match open.as_slice() {
        [only] if sweep.axes.len() > 1 => Some(name(&sweep.axes[*only]).to_string()),
        _ => None,
    }
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

/// Explains the metric in these cells by the counted switches; empty if none were counted. A
/// relation is named only if it holds pass by pass.
pub fn why(charted: &MetricGrid, kind: Kind, cells: &[usize]) -> String {
    let Some(involuntary) = charted.covariate(ids::INVOLUNTARY) else {
        return String::new();
    };
    let voluntary = charted.covariate(ids::VOLUNTARY);
    let at = |covariate: &Covariate, cell: usize| covariate.medians.get(cell).copied().flatten();
    let by_level = |cell: &&usize| charted.ratio(**cell).unwrap_or(1.0);
    let lowest = cells.iter().min_by(|one, other| by_level(one).total_cmp(&by_level(other)));
    let highest = cells.iter().max_by(|one, other| by_level(one).total_cmp(&by_level(other)));
    let (Some(lowest), Some(highest)) = (lowest, highest) else { return String::new() };
    let (Some(few), Some(many)) = (at(involuntary, *lowest), at(involuntary, *highest)) else {
        return String::new();
    };
    let title = &charted.metric.title;
    let follows = involuntary.correlation_within(charted, cells);
    let counts: Vec<f64> = cells.iter().filter_map(|cell| at(involuntary, *cell)).collect();
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = counts.iter().copied().fold(0.0, f64::max);
    let span = match count(least) == count(most) {
        true => count(most),
        false => format!("{} to {}", count(least), count(most)),
    };
    let tasks =
        charted.covariate(ids::TASKS).and_then(|tasks| tasks.over(cells)).filter(|tasks| *tasks > 0.0);
    match kind {
        Kind::Flat => match tasks.map(|tasks| most / tasks) {
            Some(each) if each < HARDLY => {
                format!("hardly any preemption is left to save, {span} involuntary switches per run")
            }
            _ => format!("{span} involuntary switches per run make no difference"),
        },
        Kind::Fall if many > few * MORE => match follows.as_ref().filter(|found| found.rho >= MIN_RHO) {
            Some(found) => {
                let both = voluntary.and_then(|voluntary| {
                    let (many, few) = (at(voluntary, *highest)?, at(voluntary, *lowest)?);
                    (many > few * MORE)
                        .then(|| format!(", voluntary ones from {} to {}", count(many), count(few)))
                });
                format!(
                    "preemption is too frequent; involuntary switches fall from {} to {}{} and the {title} with them ({})",
                    count(many),
                    count(few),
                    both.unwrap_or_default(),
                    found.words()
                )
            }
            None => format!(
                "involuntary switches fall from {} to {}, but pass by pass the {title} does not follow them{}",
                count(many),
                count(few),
                follows.as_ref().map_or(String::new(), |found| format!(" ({})", found.words()))
            ),
        },
        Kind::Fall => format!(
            "preemption does not explain it, with {} involuntary switches per run where it is highest and {} where it is \
             lowest",
            count(many),
            count(few)
        ),
        Kind::Ragged => {
            let said = match &follows {
                Some(found) if found.rho.abs() >= MIN_RHO => {
                    format!(", and the {title} follows them ({})", found.words())
                }
                Some(found) => format!(", which do not explain them ({})", found.words()),
                None => String::new(),
            };
            format!("ups and downs with {span} involuntary switches per run{said}")
        }
    }
}

/// A number of switches: `12,300`, three digits.
fn count(number: f64) -> String {
    let unit = 10f64.powf((number.abs().max(1.0).log10().floor() - 2.0).max(0.0));
    let digits = format!("{:.0}", (number / unit).round() * unit);
    let grouped = digits.as_bytes().rchunks(3).rev().map(|part| String::from_utf8_lossy(part).into_owned());
    grouped.collect::<Vec<String>>().join(",")
}

/// Below this number of involuntary switches per task there is practically no preemption.
const HARDLY: f64 = 10.0;
/// Counts that differ by this factor differ beyond their noise.
const MORE: f64 = 1.3;

/// The counted covariates with their rank correlations over the whole map.
fn correlations<'a>(charted: &'a MetricGrid<'a>) -> impl Iterator<Item = (&'a str, f64)> {
    [ids::INVOLUNTARY, ids::VOLUNTARY, ids::WAIT, ids::MIGRATIONS].into_iter().filter_map(|name| {
        let covariate = charted.covariate(name)?;
        Some((&*covariate.metric.title, covariate.correlation?))
    })
}

/// What correlates with the target over the whole map; empty if nothing does.
pub fn together(charted: &MetricGrid) -> String {
    let close = correlations(charted).filter(|(_, rho)| rho.abs() >= MIN_RHO);
    close.map(|(title, rho)| format!("{title} (rank correlation {rho:.2})")).collect::<Vec<_>>().join(", ")
}

/// The closest of them, where none is close: ` (involuntary switches most: rank correlation 0.66)`.
pub fn closest(charted: &MetricGrid) -> String {
    let most = correlations(charted).max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()));
    most.map_or(String::new(), |(title, rho)| format!(" ({title} most: rank correlation {rho:.2})"))
}

/// The best cell and those that cannot be separated from it, as the end of a sentence.
pub fn best(sweep: &Sweep, charted: &MetricGrid) -> Option<String> {
    let (first, others) = charted.surface.best.split_first()?;
    let mut text = setting(sweep, *first);
    if charted.surface.best.contains(&charted.control) {
        text.push_str(", not separable from the setting before");
    }
    match others.len() {
        0 => {}
        n if n <= 4 => {
            let list: Vec<String> = others.iter().map(|cell| setting(sweep, *cell)).collect();
            text.push_str(&format!(
                "; the best {} cells cannot be separated (the others: {})",
                n + 1,
                list.join("; ")
            ));
        }
        n => text.push_str(&format!("; the best {} cells cannot be separated", n + 1)),
    }
    Some(text)
}
