//! What a component of the rate suite is bound by, as experiments show it: never by its name alone.
//!
//! N copies are compared with one: what each of them loses is the cost of sharing. A component in
//! caches shows that cost without memory (clock, siblings, other guests). The rest is memory, if
//! the data do not fit in caches. Components that wait for single lines scale although memory
//! decides: one copy with streams on the other CPUs shows them.

use super::suite::{Experiment, Part, Suite};
use machine::Machine;
use model::percent;
use stats::analysis::Judged;

/// What each of many copies keeps of a copy alone, over what one in caches keeps: below, memory
/// decides; above, it does not.
const MEMORY_BELOW: f64 = 0.85;
const FREE_ABOVE: f64 = 0.95;
/// Only data this many times larger than the last-level caches show memory.
const MIN_DATA_RATIO: f64 = 2.0;

#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// Memory decides: in words, by which experiment.
    Memory(String),
    /// It does not.
    Free(String),
    /// Its data fit in caches, or nearly: whatever it shares need not be memory.
    Caches(String),
    /// Not known: why, and the command that settles it.
    Unknown { why: String, settles: String },
}

impl Bound {
    pub fn is_memory(&self) -> bool {
        matches!(self, Bound::Memory(_))
    }

    /// `memory: each of 8 copies runs at 43 % of one alone`.
    pub fn words(&self) -> String {
        match self {
            Bound::Memory(words) => format!("memory: {words}"),
            Bound::Free(words) => format!("not memory: {words}"),
            Bound::Caches(words) => format!("caches: {words}"),
            Bound::Unknown { why, settles } => format!("unknown: {why} (`{settles}`)"),
        }
    }
}

/// A share with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    low: f64,
    middle: f64,
    high: f64,
}

impl Share {
    fn over(one: &Judged, other: &Judged, times: f64) -> Option<Share> {
        let ends = |judged: &Judged| {
            let found = judged.analysis.estimate.as_ref()?;
            let between = found.interval.map_or([found.least, found.most], |found| [found.low, found.high]);
            Some((between[0], found.median, between[1]))
        };
        let ((a_low, a, a_high), (b_low, b, b_high)) = (ends(one)?, ends(other)?);
        let share =
            Share { low: a_low / b_high * times, middle: a / b * times, high: a_high / b_low * times };
        (share.middle.is_finite() && share.middle > 0.0).then_some(share)
    }

    /// Over what a component in caches keeps.
    fn against(self, control: Share) -> Share {
        Share {
            low: self.low / control.high,
            middle: self.middle / control.middle,
            high: self.high / control.low,
        }
    }
}

impl Suite<'_> {
    fn experiment(&self, kind: Experiment, part: &Part) -> Option<&Judged> {
        let bench = &part.rate.series.case.bench;
        let own = |(of, judged): &&(Experiment, &Judged)| *of == kind && judged.series.case.bench == *bench;
        self.experiments.iter().find(own).map(|(_, judged)| *judged)
    }

    /// What each of many copies keeps of one alone.
    fn kept(&self, part: &Part) -> Option<Share> {
        let alone = self.experiment(Experiment::Alone, part)?;
        Share::over(part.rate, alone, 1.0 / part.copies() as f64)
    }

    /// Share of its rate alone that one copy keeps while streams run.
    fn kept_beside(&self, part: &Part) -> Option<Share> {
        let (alone, beside) =
            (self.experiment(Experiment::Alone, part)?, self.experiment(Experiment::BesideStreams, part)?);
        Share::over(beside, alone, 1.0)
    }

    /// What a component is bound by, as far as this run shows it.
    pub fn bound(&self, part: &Part, machine: &Machine) -> Bound {
        if !part.is_memory() {
            return Bound::Free("its data fit in caches".to_string());
        }
        if let Some(words) = fits(part, machine) {
            return Bound::Caches(words);
        }
        let settles = |also: &str| {
            format!(
                "assay rate --component {},{also} --footprint {}M --budget 15m",
                part.name(),
                part.node_mib()
            )
        };
        let unknown = |why: &str| Bound::Unknown { why: why.to_string(), settles: settles("molecules") };
        if part.copies() < 2 {
            return unknown("one copy shares memory with no other");
        }
        let controls = || self.parts.iter().filter(|part| !part.is_memory());
        let (Some(kept), Some(control)) = (self.kept(part), controls().find_map(|part| self.kept(part)))
        else {
            return unknown("not tested");
        };
        let copies = part.copies();
        let share = kept.against(control);
        let words = format!(
            "each of {copies} copies runs at {} of one alone, {} in caches",
            percent(kept.middle),
            percent(control.middle)
        );
        if share.high < MEMORY_BELOW {
            return Bound::Memory(words);
        }
        let free = share.low > FREE_ABOVE;
        if !part.waits_for_lines() {
            return if free { Bound::Free(words) } else { unknown(&format!("{words}: too close to decide")) };
        }
        let beside = self.kept_beside(part).zip(controls().find_map(|part| self.kept_beside(part)));
        let Some((kept, control)) = beside else { return unknown("not tested with streams on other CPUs") };
        let share = kept.against(control);
        let words = format!(
            "one copy with streams on other CPUs keeps {}, {} in caches",
            percent(kept.middle),
            percent(control.middle)
        );
        match () {
            () if share.high < MEMORY_BELOW => Bound::Memory(words),
            () if free && share.low > FREE_ABOVE => Bound::Free(words),
            () => unknown(&format!("{words}: too close to decide")),
        }
    }
}

/// Whether the data of all copies lie below twice the last-level caches of their CPUs, in words.
pub fn fits(part: &Part, machine: &Machine) -> Option<String> {
    let data = (part.mib() << 20) * part.copies();
    let (level, cache) = last_level(part, machine)?;
    ((data as f64) < MIN_DATA_RATIO * cache as f64)
        .then(|| format!("{} MiB of data for {} MiB of L{level}", data >> 20, cache >> 20))
}

/// The level and the bytes of the last-level caches of a component's CPUs; `None` where the kernel
/// reports none.
pub fn last_level(part: &Part, machine: &Machine) -> Option<(u32, u64)> {
    let cpus = part.rate.series.case.placement.cpus();
    let last = machine.caches.iter().map(|cache| cache.level).max()?;
    let own = machine.caches.iter().filter(|cache| cache.level == last && !cache.cpus.is_disjoint(&cpus));
    let bytes = own.map(|cache| cache.size_bytes).sum::<Option<u64>>().filter(|bytes| *bytes > 0)?;
    Some((last, bytes))
}
