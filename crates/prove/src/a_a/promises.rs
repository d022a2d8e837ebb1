//! Results of comparisons of real runs against their promises.

use std::collections::BTreeMap;

use compare::{Comparison, Relation};
use prove::proof::Rate;
use stats::order::{median, quantile};

use super::measured::Measured;
use super::tally::{ByKey, Counts, Pairs, Said, family, half, is_different};
use crate::statistics::{row, titled};

/// Shares that are promised, at least: same within 10 % of equal runs, of all headlines and of the
/// core-bound ones; with three runs a side, or with history; and found of what was slowed,
/// core-bound, by 10 and by 5 %.
const SAME: [f64; 2] = [0.60, 0.85];
const SAME_OF_MORE: [f64; 2] = [0.65, 0.90];
const FOUND: [(f64, f64); 2] = [(0.10, 0.90), (0.05, 0.60)];
/// At most.
const DIFFERENT_MOST: f64 = 0.05;

#[derive(Default)]
pub struct Found {
    pub pairs: Pairs,
    pub with_history: Pairs,
    pub three_a_side: Pairs,
    /// By percent.
    planted: BTreeMap<u32, Planted>,
    hogs: Hogs,
}

#[derive(Default)]
struct Planted {
    core: Rate,
    other: Rate,
    families: BTreeMap<String, Misses>,
}

#[derive(Default)]
struct Misses {
    found: Rate,
    causes: BTreeMap<String, usize>,
    /// What nine of ten such pairs would show.
    would_show: Vec<f64>,
}

#[derive(Default)]
struct Hogs {
    pairs: usize,
    compared: usize,
    refused: BTreeMap<String, usize>,
    /// Of metrics that moved, or whose conditions did: refused for a condition, or said to be
    /// disturbed.
    named: Rate,
}

impl Found {
    /// B is a run that was slowed.
    pub fn planted(&mut self, comparison: &Comparison, a: &Measured, b: &Measured) {
        let Some(share) = b.share else { return };
        let by_key = ByKey::of(comparison);
        let planted = self.planted.entry((100.0 * share).round() as u32).or_default();
        for (key, core) in a.headlines.iter().filter(|(key, _)| b.slowed.contains(*key)) {
            let said = by_key.said(key);
            let found = matches!(&said, Said::Compared(one) if one.word == Relation::Slower);
            if *core { &mut planted.core } else { &mut planted.other }.count(found);
            let family = planted.families.entry(family(key)).or_default();
            family.found.count(found);
            if !found {
                *family.causes.entry(cause(&said, share)).or_default() += 1;
                if let Said::Compared(one) = said {
                    family.would_show.extend(one.would_show);
                }
            }
        }
    }

    /// B ran next to busy loops: what moved must be refused by what names them, or be said to be
    /// disturbed by them.
    pub fn beside_hogs(&mut self, comparison: &Comparison) {
        let hogs = &mut self.hogs;
        hogs.pairs += 1;
        hogs.compared += comparison.metrics.len();
        for one in &comparison.metrics {
            let disturbed = [&one.words, &one.note].iter().any(|text| text.contains("disturbed"));
            // What is neither was not found to have moved.
            if disturbed || is_different(one.word) {
                hogs.named.count(disturbed);
            }
        }
        for one in &comparison.refused {
            *hogs.refused.entry(one.factor.clone()).or_default() += 1;
            if one.conditions {
                hogs.named.count(true);
            }
        }
    }
}

/// Why a planted difference was not found.
fn cause(said: &Said, share: f64) -> String {
    let one = match said {
        Said::Nothing => return "no figure".to_string(),
        Said::Refused(factor) => return format!("refused: {factor}"),
        Said::Compared(one) => one,
    };
    let cause = match one.word {
        Relation::Same => "called the same",
        Relation::Faster | Relation::Higher | Relation::Lower => "called something else",
        _ if one.words.contains("disturbed") => "disturbed",
        _ if one.words.contains("core clock differed") => "clocks differed",
        _ if one.would_show.is_none() => "too few processes",
        _ if one.would_show.is_some_and(|least| least <= share) => "not seen this time",
        _ if half(one).is_some_and(|half| one.shared_half.powi(2) > half.powi(2) / 2.0) => {
            "levels of runs unknown"
        }
        _ => "own spread",
    };
    cause.to_string()
}

pub fn text(found: &Found, clean: &[Measured]) -> String {
    let grades = |place: usize| {
        let mut counts: Vec<usize> = clean.iter().map(|run| run.grades[place]).collect();
        counts.sort_unstable();
        let list: Vec<String> = counts.iter().map(usize::to_string).collect();
        list.join(", ")
    };
    let middle = |of: &dyn Fn(&Measured) -> f64| {
        median(&clean.iter().map(of).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    };
    let headlines = clean.iter().map(|run| run.headlines.len()).max().unwrap_or(0);
    let loud = clean.iter().filter(|run| !run.quiet).count();
    let parts = [
        format!(
            "{} quick runs, begun {} to {} ({loud} of them with a finding of load or stolen time), of {headlines} headline series: \
             trusted {}; trusted or rough {}; {:.0} trusted a minute in the middle, of {:.0} s a run.\n",
            clean.len(),
            clean.first().map_or("", |run| &run.started),
            clean.last().map_or("", |run| &run.started),
            grades(0),
            grades(1),
            middle(&|run| 60.0 * run.grades[0] as f64 / run.seconds),
            middle(&|run| run.seconds)
        ),
        of_pairs(found),
        of_planted(found),
        promised(found),
        of_hogs(&found.hogs),
        of_families(&found.pairs),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn of_pairs(found: &Found) -> String {
    let mut rows = Vec::new();
    let kinds = [
        ("one run a side", &found.pairs),
        ("one, with `--history` of the others", &found.with_history),
        ("three runs a side", &found.three_a_side),
    ];
    for (name, pairs) in kinds.into_iter().filter(|(_, pairs)| pairs.pairs > 0) {
        for (of, counts) in [("all headlines", &pairs.all), ("core-bound", &pairs.core)] {
            let rate = |hits: usize| counts.rate(hits).to_string();
            let Counts { same, different, cannot_tell, refused, without, .. } = *counts;
            let said = [same, different, cannot_tell, refused, without].map(rate);
            let head = [name.to_string(), pairs.pairs.to_string(), of.to_string(), counts.of.to_string()];
            rows.push(head.into_iter().chain(said).collect());
        }
    }
    let header = "equal runs | pairs | metrics | compared | same within 10 % | called different | cannot tell \
         | refused | without a figure";
    titled(header, rows)
}

fn of_planted(found: &Found) -> String {
    let mut rows = Vec::new();
    for (percent, planted) in &found.planted {
        for (name, misses) in &planted.families {
            let mut causes: Vec<(&String, &usize)> = misses.causes.iter().collect();
            causes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let causes: Vec<String> =
                causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
            rows.push(row![
                format!("{percent} %"),
                name.clone(),
                misses.found.of,
                misses.found,
                if causes.is_empty() { "–".to_string() } else { causes.join(", ") },
                median(&misses.would_show).map_or("–".to_string(), percent_of)
            ]);
        }
    }
    if rows.is_empty() {
        return "There were no slowed runs, so planted differences are not tested.\n".to_string();
    }
    let header = "planted | slowed headlines of | pairs of figures | found | missed because | of the missed, \
         would show";
    titled(header, rows)
}

/// Each promise with what was seen.
fn promised(found: &Found) -> String {
    let mut lines = Vec::new();
    let of = |pairs: &Pairs| [pairs.all.rate(pairs.all.same), pairs.core.rate(pairs.core.same)];
    let kinds = [
        ("one run a side", &found.pairs, SAME),
        ("with history", &found.with_history, SAME_OF_MORE),
        ("three runs a side", &found.three_a_side, SAME_OF_MORE),
    ];
    for (name, pairs, promises) in kinds {
        for ((seen, promise), metrics) in of(pairs).into_iter().zip(promises).zip(["all", "core-bound"]) {
            lines.extend(at_least(format!("Same within 10 %, {name}, {metrics}"), promise, seen));
        }
    }
    for (share, promise) in FOUND {
        let percent = (100.0 * share).round() as u32;
        if let Some(planted) = found.planted.get(&percent) {
            lines.extend(at_least(format!("Planted {percent} % found, core-bound"), promise, planted.core));
            lines.push(format!(
                "- Planted {percent} % found, all others: {} (nothing promised).",
                planted.other
            ));
        }
    }
    let different = found.pairs.different;
    lines.push(format!(
        "- Called different of equal runs, of all metrics: at most {:.0} % promised, {different} seen ({} in the worst pair): {}.",
        100.0 * DIFFERENT_MOST,
        percent_of(found.pairs.worst),
        kept(different.share() <= DIFFERENT_MOST)
    ));
    let clocks = &found.pairs.clocks;
    lines.push(format!(
        "- Core clocks of two runs differed by {} in the median pair, {} at most.",
        percent_of(median(clocks).unwrap_or(f64::NAN)),
        percent_of(clocks.iter().copied().fold(0.0, f64::max))
    ));
    lines.join("\n") + "\n"
}

fn at_least(what: String, promise: f64, seen: Rate) -> Option<String> {
    let word = kept(seen.share() >= promise);
    (seen.of > 0)
        .then(|| format!("- {what}: at least {:.0} % promised, {seen} seen: {word}.", 100.0 * promise))
}

fn kept(is: bool) -> &'static str {
    if is { "kept" } else { "**broken**" }
}

fn of_hogs(hogs: &Hogs) -> String {
    if hogs.pairs == 0 {
        return String::new();
    }
    let refused: Vec<String> =
        hogs.refused.iter().map(|(factor, count)| format!("{factor} {count}")).collect();
    format!(
        "A quiet run against one beside a busy loop on every CPU ({} pairs): {} metrics were compared and others refused ({}); {} of \
         those that moved, or whose conditions did, were refused for a condition or name what disturbed them.\n",
        hogs.pairs,
        hogs.compared,
        if refused.is_empty() { "none".to_string() } else { refused.join(", ") },
        hogs.named
    )
}

/// What whole runs of this host differ by, by family.
fn of_families(pairs: &Pairs) -> String {
    let middle = |values: &[f64]| median(values).map_or("–".to_string(), percent_of);
    let rows = pairs.families.iter().map(|(name, family)| {
        let counts = &family.counts;
        row![
            name.clone(),
            counts.of,
            counts.rate(counts.same),
            counts.rate(counts.different),
            middle(&family.apart),
            quantile(&family.apart, 0.95).map_or("–".to_string(), percent_of),
            middle(&family.halves)
        ]
    });
    let header = "headlines of | compared | same within 10 % | different | two runs differ by, median | 95th \
         percentile | half-width of the interval, median";
    titled(header, rows)
}

fn percent_of(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
