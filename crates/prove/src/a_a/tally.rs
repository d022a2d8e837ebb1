//! Results of comparisons, counted over headline metrics: all of A's, also those that were refused
//! or have no figure.

use std::collections::BTreeMap;

use compare::{Compared, Comparison, Relation};
use prove::proof::Rate;

use super::measured::Measured;

/// Metrics of some kind, by result.
#[derive(Clone, Default)]
pub struct Counts {
    pub of: usize,
    pub same: usize,
    pub different: usize,
    pub cannot_tell: usize,
    pub refused: usize,
    pub without: usize,
}

impl Counts {
    pub fn rate(&self, hits: usize) -> Rate {
        Rate { hits, of: self.of }
    }

    fn take(&mut self, said: &Said) {
        self.of += 1;
        let count = match said {
            Said::Compared(one) if one.word == Relation::Same => &mut self.same,
            Said::Compared(one) if is_different(one.word) => &mut self.different,
            Said::Compared(_) => &mut self.cannot_tell,
            Said::Refused(_) => &mut self.refused,
            Said::Nothing => &mut self.without,
        };
        *count += 1;
    }
}

pub fn is_different(word: Relation) -> bool {
    matches!(word, Relation::Faster | Relation::Slower | Relation::Higher | Relation::Lower)
}

/// The result of a comparison for one of A's metrics.
pub enum Said<'c> {
    Compared(&'c Compared),
    /// Because of this.
    Refused(&'c str),
    Nothing,
}

/// What a comparison says, by A's keys.
pub struct ByKey<'c> {
    compared: BTreeMap<&'c str, &'c Compared>,
    refused: BTreeMap<&'c str, &'c str>,
}

impl<'c> ByKey<'c> {
    pub fn of(comparison: &'c Comparison) -> ByKey<'c> {
        ByKey {
            compared: comparison.metrics.iter().map(|one| (one.key_a.as_str(), one)).collect(),
            refused: comparison.refused.iter().map(|one| (one.key.as_str(), one.factor.as_str())).collect(),
        }
    }

    pub fn said(&self, key: &str) -> Said<'c> {
        match (self.compared.get(key), self.refused.get(key)) {
            (Some(one), _) => Said::Compared(one),
            (None, Some(factor)) => Said::Refused(factor),
            (None, None) => Said::Nothing,
        }
    }
}

/// Pairs of equal sides.
#[derive(Default)]
pub struct Pairs {
    pub pairs: usize,
    pub all: Counts,
    pub core: Counts,
    pub families: BTreeMap<String, Family>,
    /// Of all metrics, headlines or not: how many were called different, in all pairs and by pair.
    pub different: Rate,
    pub worst: f64,
    /// |ln| of the ratios of core clocks.
    pub clocks: Vec<f64>,
}

#[derive(Default)]
pub struct Family {
    pub counts: Counts,
    /// |ln ratio|, and the half-width of its interval.
    pub apart: Vec<f64>,
    pub halves: Vec<f64>,
}

impl Pairs {
    pub fn take(&mut self, comparison: &Comparison, a: &Measured) {
        self.pairs += 1;
        let by_key = ByKey::of(comparison);
        for (key, core) in &a.headlines {
            let said = by_key.said(key);
            self.all.take(&said);
            if *core {
                self.core.take(&said);
            }
            let family = self.families.entry(family(key)).or_default();
            family.counts.take(&said);
            if let Said::Compared(one) = said {
                family.apart.push(one.ratio.ln().abs());
                family.halves.extend(half(one));
            }
        }
        let mut own = Rate::default();
        comparison.metrics.iter().for_each(|one| own.count(is_different(one.word)));
        for one in comparison.metrics.iter().filter(|one| is_different(one.word)) {
            eprintln!("equal, and called different: {} {} {}", one.key, one.words, one.note);
        }
        self.different = Rate { hits: self.different.hits + own.hits, of: self.different.of + own.of };
        self.worst = if own.of > 0 { self.worst.max(own.share()) } else { self.worst };
        self.clocks.push(clock_apart(comparison));
    }
}

/// Half of its interval, a logarithm.
pub fn half(one: &Compared) -> Option<f64> {
    one.ci95.map(|[low, high]| (high / low).ln() / 2.0)
}

/// By how much the clocks of two runs differ, a logarithm; 0 where that is too little to be listed.
fn clock_apart(comparison: &Comparison) -> f64 {
    let mhz = |text: &str| text.split(' ').next()?.parse::<f64>().ok();
    let clock = comparison.environment.iter().find(|one| one.label == "core_clock");
    clock.and_then(|one| Some((mhz(&one.b)? / mhz(&one.a)?).ln().abs())).unwrap_or(0.0)
}

/// The group of a benchmark, by a series' key; of memory the benchmark.
pub fn family(key: &str) -> String {
    let bench = key.split(['@', '?', '/', '#']).next().unwrap_or_default();
    match bench.split_once('.') {
        Some(("memory", _)) | None => bench.to_string(),
        Some((group, _)) => group.to_string(),
    }
}
