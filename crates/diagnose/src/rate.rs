//! What changes the figures of a rate suite from run to run.

use super::bound::{fits, last_level};
use super::suite::{MovingComponents, Part, Suite, VarianceShares, suite};
use super::words::{at_most, figure};
use super::{Evidence, Rule};
use model::vocabulary::rate as ids;
use model::{Fact, Finding, Severity, percent};
use stats::order::median;
use stats::repeat::{APART, STILL, Sequence, Shape};

pub const RULES: &[Rule] = &[RUNS_APART, SETTLED, MEMORY_MOVES, IN_CACHE];

const RUNS_APART: Rule = Rule {
    id: ids::rule::RATE_RUNS_APART,
    title: "Two runs of a component lie more than 5 % apart",
    topic: "rate runs",
    meaning: "A suite of real programs is useful because it repeats. If two runs of a component are far apart, their mean says \
             little. Compared are the passes of this run, and the medians of earlier runs in the same folder.",
    action: "Repeat with a larger footprint, which mixes fast and slow memory. Then look for the slow part with assay memmap and \
             assay machine. See it: assay rate --escalate",
    when: "The highest pass median is more than 1.05 times the lowest, or the same holds over earlier runs at the same footprint. \
             It is a note if pieces of one pass lie a third as far apart.",
    how: "A run is low or high within a quarter of the range from that end. All slow runs together, all fast runs together, \
             middle ones last: so memory of two speeds fills after a boot. Assay names it if noise gives this order to at most 2 \
             % of simulated runs, and no component with small data moves. The coefficient of variation is the population's, with \
             the 95 % interval of normal runs (SPEC's bwaves on a host with wrong slots: 7.94 %, after the move 0.23 %).",
    calm: "components repeat within 5 %",
    looked_at: "runs of the suite",
    source: file!(),
    check: runs_apart,
};

fn runs_apart(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    if !suite.parts.iter().any(|part| part.runs.is_some() || part.history.is_some()) {
        return None;
    }
    let is_apart = |runs: &&Sequence| runs.apart > APART;
    let (mut facts, mut moving, mut severity) = (Vec::new(), Vec::new(), Severity::Note);
    for part in &suite.parts {
        let runs = part.runs.as_ref().filter(is_apart);
        let history = part.history.as_ref().filter(is_apart);
        if history.is_some() || runs.is_some_and(|runs| runs.shape != Shape::Flat) {
            severity = Severity::Warning;
        }
        facts.extend(runs.map(|runs| {
            let what = format!("runs of {} in their order", part.name());
            Fact::new(what, words(runs, part.scatter), part.key())
        }));
        facts.extend(history.map(|history| {
            let boots = suite.boots(evidence.run);
            let what = format!("runs of {} in this folder, {boots} boots, the last is this one", part.name());
            Fact::new(what, words(history, 0.0), ids::probe::RATE_HISTORY)
        }));
        if runs.or(history).is_some() {
            moving.push(part);
        }
    }
    if moving.is_empty() {
        return Some(Vec::new());
    }
    let names: Vec<&str> = moving.iter().map(|part| part.name()).collect();
    let most = suite.parts.iter().flat_map(|part| [&part.runs, &part.history]).flatten();
    let most = percent(most.map(|runs| runs.apart).fold(0.0, f64::max));
    let headline = format!("Runs of {} are up to {most} apart. Their mean says little.", at_most(3, &names));
    Some(vec![Finding::of(RUNS_APART.id, severity, headline)
        .cause(match severity {
            Severity::Note => "Pieces of work inside one pass scatter nearly as much: the host was not quiet.",
            _ => "Something differs between runs and stays while a run lasts, or it changed between runs.",
        })
        .facts(facts)
        .confirm(format!("assay rate --component {} --footprint {}", names.join(","), larger(&suite)))
        .advice("Run the same components with a larger footprint (assay rate --escalate). If memory of two speeds is the \
                 cause, the pattern changes. Then assay memmap and assay machine show the slow part.")
        .concerns(moving.iter().map(|part| part.key()))])
}

/// Four times the footprint per node of this run, as an argument (`4096M`).
fn larger(suite: &Suite) -> String {
    let part = suite.parts.iter().max_by_key(|part| part.mib());
    let copies = part.map_or(1, |part| part.rate.series.case.placement.seats.len() as u64);
    let nodes = part.map_or(1, |part| {
        let seats = &part.rate.series.case.placement.seats;
        let nodes: std::collections::BTreeSet<u32> =
            seats.iter().filter_map(|seat| seat.mem_nodes.first()).collect();
        nodes.len().max(1) as u64
    });
    format!("{}M", 4 * part.map_or(64, Part::mib) * copies / nodes)
}

/// `92, 92, 111, 107, 98 % of their mean (low low high high mid: both extremes, then what lies
/// between; CV 7.8 % (5.2–25))`.
pub fn words(runs: &Sequence, scatter: f64) -> String {
    const SHOWN: usize = 16;
    let mut shown: Vec<String> =
        runs.percent_of_mean().iter().take(SHOWN).map(|one| format!("{one:.1}")).collect();
    if runs.values.len() > SHOWN {
        shown.push("...".into());
    }
    let order = runs.order_in_words();
    let mut about = vec![runs.cv_in_words()];
    if !order.is_empty() {
        about.insert(0, format!("{order}: {}", runs.shape.words()));
    }
    if scatter > 0.0 {
        about.push(format!("pieces of one run {} apart", percent(scatter)));
    }
    format!("{} % of their mean ({})", shown.join(", "), about.join("; "))
}

const SETTLED: Rule = Rule {
    id: ids::rule::RATE_SETTLED_AT_START,
    title: "A run keeps the speed that it starts with",
    topic: "rate runs",
    meaning: "Pieces of work inside one pass agree, but passes differ. The speed is fixed when the process of a pass starts: by \
             its physical pages, its address layout or its CPU. Memory of two speeds looks like this.",
    action: "Measure more passes: more work inside one does not help. Then look for memory of two speeds. See it: assay memmap",
    when: "More than half of the variance lies between passes or allocations, and two runs are more than 5 % apart. It needs five \
             passes.",
    how: "Variance components by means of means (Kalibera & Jones 2013): iteration in allocation in pass. The share of slow \
             memory of each run inverts 1/B = f/B_slow + (1 − f)/B_fast with the slowest and the fastest run as ends. It is an \
             illustration, no proof (the published figures fit no single model). How memory fills up after a boot decides which \
             run gets which.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: settled,
};

/// Fewer passes give no usable variance components.
const MIN_PROCESSES: usize = 5;

fn settled(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    let known = |part: &&Part| part.runs.as_ref().is_some_and(|runs| runs.values.len() >= MIN_PROCESSES);
    suite.parts.iter().find(known)?;
    let settled: Vec<Settled> = suite.parts.iter().filter(known).filter_map(Settled::of).collect();
    if settled.is_empty() {
        return Some(Vec::new());
    }
    let by_memory = !matches!(suite.moving(evidence.machine), MovingComponents::Others(_));
    let names: Vec<&str> = settled.iter().map(|one| one.part.name()).collect();
    let most = settled.iter().map(|one| one.runs.apart).fold(0.0, f64::max);
    Some(vec![Finding::warning(SETTLED.id, format!(
        "Runs of {} keep the speed they start with, up to {} apart. More passes are needed.",
        at_most(3, &names),
        percent(most)
    ))
        .cause(match settled.iter().any(|one| one.variance.allocations.is_some_and(|share| share > 0.5)) {
            true => "Fresh arrays inside one pass change it: the physical pages decide.",
            false => "The speed is fixed when a pass starts: by its physical pages, address layout or CPU.",
        })
        .facts(settled.iter().flat_map(|one| one.facts(by_memory)))
        .confirm(format!("assay rate --component {} --allocations 4 --iterations 3", names.join(",")))
        .advice("Measure more passes: more work inside one does not help. Look for memory of two speeds (assay memmap) and \
                 for modules in the wrong slots (assay machine).")
        .explains(settled.iter().map(|one| one.part.key()))])
}

/// A component whose speed is fixed when a pass starts or gets its memory.
struct Settled<'a> {
    part: &'a Part<'a>,
    runs: &'a Sequence,
    variance: VarianceShares,
}

impl<'a> Settled<'a> {
    /// `None` if pieces of work inside a pass scatter as far as passes do.
    fn of(part: &'a Part<'a>) -> Option<Settled<'a>> {
        let variance = part.variance.filter(|variance| variance.settled() > 0.5)?;
        Some(Settled { part, runs: part.swings()?, variance })
    }

    fn facts(&self, by_memory: bool) -> Vec<Fact> {
        let Settled { part, runs, variance } = self;
        let (name, key) = (part.name(), part.key());
        let mut shares = vec![format!("{} between passes", percent(variance.processes))];
        let arrays = |share| format!("{} between fresh arrays of one pass", percent(share));
        shares.extend(variance.allocations.map(arrays));
        shares.push(format!("{} between pieces on the same arrays", percent(variance.iterations)));
        let mut facts = vec![
            Fact::new(format!("variance of {name}"), shares.join(", "), key),
            Fact::new(format!("runs of {name}"), words(runs, part.scatter), key),
        ];
        if part.is_memory() && by_memory && runs.handed_out().is_some() {
            let shares: Vec<String> =
                runs.slow_shares().iter().take(16).map(|share| format!("{share:.2}")).collect();
            let what = format!("share of slow memory that each run of {name} would have had");
            facts.push(Fact::new(what, shares.join(", "), key));
        }
        facts.extend(part.places.as_ref().map(|(places, rho)| {
            let places: Vec<String> = places.iter().take(16).map(|gib| format!("{gib:.1}")).collect();
            let value = format!("{} (rank correlation with the rate {rho:.2})", places.join(", "));
            Fact::new(format!("physical address of each run of {name}, GiB, in the middle"), value, key)
        }));
        facts
    }
}

const MEMORY_MOVES: Rule = Rule {
    id: ids::rule::RATE_MEMORY_MOVES,
    title: "Components in memory vary, those in caches do not",
    topic: "memory",
    meaning: "Components that fill memory vary from run to run; those that fit into caches do not. Clock, steal, temperature and \
             other guests would move both. So memory is the cause: its modules, its pages, its controllers or other traffic.",
    action: "Check the memory modules (assay machine). Then look for slow regions and for other work that uses memory bandwidth. \
             See it: assay memmap",
    when: "Runs in memory are more than 5 % apart, those in caches at most 2.5 %. The median CV in memory is over three times as \
             large. It needs two components on memory, three in caches, five passes each.",
    how: "The CV is the coefficient of variation over the passes of a component. Memory components whose data may lie in caches \
             do not count. Both kinds run alternately in the same run.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: memory_moves,
};

/// The median CV of components in memory is more than this many times that of those in caches.
const MIN_CV_RATIO: f64 = 3.0;

fn memory_moves(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    let components = |memory: bool| -> Vec<(&Part, &Sequence)> {
        let parts = suite.parts.iter().filter(|part| part.is_memory() == memory);
        // Components whose data fit in caches say nothing about memory.
        let parts = parts.filter(|part| !memory || fits(part, evidence.machine).is_none());
        parts
            .filter_map(|part| {
                Some((part, part.runs.as_ref().filter(|runs| runs.values.len() >= MIN_PROCESSES)?))
            })
            .collect()
    };
    let (memory, caches) = (components(true), components(false));
    if memory.len() < 2 || caches.len() < 3 {
        return None;
    }
    let cv =
        |parts: &[(&Part, &Sequence)]| median(&parts.iter().map(|(_, runs)| runs.cv).collect::<Vec<_>>());
    let (cv_memory, cv_caches) = (cv(&memory)?, cv(&caches)?);
    let most = |parts: &[(&Part, &Sequence)]| parts.iter().map(|(_, runs)| runs.apart).fold(0.0, f64::max);
    if most(&memory) <= APART || most(&caches) > STILL || cv_memory <= MIN_CV_RATIO * cv_caches {
        return Some(Vec::new());
    }
    let moved: Vec<&(&Part, &Sequence)> = memory.iter().filter(|(_, runs)| runs.apart > APART).collect();
    let names: Vec<&str> = moved.iter().map(|(part, _)| part.name()).collect();
    Some(vec![Finding::warning(MEMORY_MOVES.id, format!(
        "Runs of {} are up to {} apart, those in caches only {}. Memory is the cause.",
        at_most(3, &names),
        percent(most(&memory)),
        percent(most(&caches))
    ))
        .cause("Clock, temperature and steal would change components in caches as well.")
        .facts(moved.iter().map(|(part, runs)| {
            let what = format!("runs of {}, whose data fill memory", part.name());
            Fact::new(what, words(runs, part.scatter), part.key())
        }))
        .fact("median CV of components on memory", percent(cv_memory), "rate.*")
        .fact("median CV of components in caches", percent(cv_caches), "rate.*")
        .confirm("assay memmap")
        .advice("Check the memory modules (assay machine) and the map (assay memmap). Look for other work that uses memory \
                 bandwidth.")
        .explains(moved.iter().map(|(part, _)| part.key()))])
}

const IN_CACHE: Rule = Rule {
    id: ids::rule::RATE_FOOTPRINT_IN_CACHE,
    title: "Part of the data may lie in caches",
    topic: "footprint",
    meaning: "Memory components measure memory only if their data is much larger than the last-level caches of their CPUs. Here the \
             scores are partly those of the cache. In a guest other guests use part of that cache, and the part changes.",
    action: "Give --footprint at least twice the size of the caches, if time allows. See it: assay rate --footprint SIZE",
    when: "All copies together have less than twice the last-level caches of their CPUs, at the sizes that the kernel reports.",
    how: "",
    calm: "",
    looked_at: "",
    source: file!(),
    check: in_cache,
};

fn in_cache(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    let part = suite.parts.iter().find(|part| part.is_memory())?;
    let (last, cache_bytes) = last_level(part, evidence.machine)?;
    let bytes = (part.mib() << 20) * part.copies();
    if fits(part, evidence.machine).is_none() {
        return Some(Vec::new());
    }
    let mib = |bytes: u64| figure(bytes as f64 / f64::from(1 << 20), "MiB");
    let memory = suite.parts.iter().filter(|part| part.is_memory());
    Some(vec![
        Finding::note(
            IN_CACHE.id,
            format!(
                "All copies have {} of data for {} of L{last}. Scores are partly those of the cache.",
                mib(bytes),
                mib(cache_bytes)
            ),
        )
        .cause("Part of what should come from memory comes from caches.")
        .fact("memory of all copies", mib(bytes), &part.rate.series.key)
        .fact(format!("L{last} of their CPUs"), mib(cache_bytes), "/sys/devices/system/cpu/cpu*/cache")
        .confirm(format!("assay rate --footprint {}M", (4 * cache_bytes) >> 20))
        .advice("Give --footprint at least twice the caches, where the time allows.")
        .concerns(memory.map(Part::key)),
    ])
}
