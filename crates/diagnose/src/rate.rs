//! What moves a rate suite from run to run.

use super::bound::{fits, last_level};
use super::suite::{Moving, Part, Suite, suite};
use super::words::figure;
use super::{Evidence, Rule};
use model::vocabulary::rate as ids;
use model::{Effect, Fact, Finding, Severity, percent};
use stats::order::median;
use stats::repeat::{APART, STILL, Sequence, Shape};

pub const RULES: &[Rule] = &[RUNS_APART, SETTLED, MEMORY_MOVES, IN_CACHE];

const RUNS_APART: Rule = Rule {
    id: ids::rule::RATE_RUNS_APART,
    title: "Two runs of a component lie more than 5 % apart",
    topic: "rate runs",
    about: "A suite of real programs is trusted because it repeats: a component whose runs lie more than 5 % apart has met \
            something, and its mean says little. Runs are the processes of one session, each with memory of its own; and the \
            medians of earlier sessions on this host, boots included, that lie in the same folder.",
    method: "Highest over lowest process median above 1.05, and the same over the medians of earlier runs at the same footprint. Where \
             pieces of work inside one process lie a third as far apart or more, it is a note (the machine is noisy), else a warning. The order of the runs is read: low and \
             high are within a quarter of the range from the ends; both extremes in one stretch each and the middle only after both is the order of memory of two speeds after a boot: it is called so where noise gives it to at most 2 % of as many runs, and no component whose data stay small moves. \
             The coefficient of variation, with the 95 % interval of normal runs, is the population's (SPEC's bwaves on a wrongly filled machine: 7.94 %, after the move 0.23 %).",
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
    let mut facts = Vec::new();
    let (mut series, mut names, mut severity) = (Vec::new(), Vec::new(), Severity::Note);
    for part in &suite.parts {
        let key = &part.rate.series.key;
        let mut found = false;
        if let Some(runs) = part.runs.as_ref().filter(|runs| runs.apart > APART) {
            found = true;
            if runs.shape != Shape::Flat {
                severity = Severity::Warning;
            }
            facts.push(Fact::new(
                format!("runs of {} in their order", part.name()),
                words(runs, part.scatter),
                key,
            ));
        }
        if let Some(history) = part.history.as_ref().filter(|history| history.apart > APART) {
            found = true;
            severity = Severity::Warning;
            let what = format!(
                "sessions of {}, {} boots, the last is this one",
                part.name(),
                suite.boots(evidence.run)
            );
            facts.push(Fact::new(what, words(history, 0.0), ids::probe::RATE_HISTORY));
        }
        if found {
            names.push(part.name());
            series.push(key.clone());
        }
    }
    if names.is_empty() {
        return Some(Vec::new());
    }
    let most = suite.parts.iter().flat_map(|part| [&part.runs, &part.history]).flatten();
    let most = most.map(|runs| runs.apart).fold(0.0, f64::max);
    let noisy = severity == Severity::Note;
    Some(vec![Finding {
        rule: RUNS_APART.id.into(),
        severity,
        headline: format!("Runs of {} are up to {} apart. Their mean says little.", list(&names), percent(most)),
        cause: match noisy {
            true => "Pieces of work inside one process scatter nearly as much: the machine was not quiet.".into(),
            false => "Something differs from run to run that a run keeps while it lasts, or that came or went between sessions.".into(),
        },
        facts,
        confirm: format!("assay rate --component {} --footprint {}", names.join(","), larger(&suite)),
        advice: "Run the same components with a larger footprint (`assay rate --escalate` does it by itself): where memory of two \
                 speeds is the cause, runs that cover more of it get mixtures and the pattern changes. Then `assay memmap` and \
                 `assay machine` show where the slow part is."
            .into(),
        series,
        effect: Effect::None,
    }])
}

/// A footprint a node that is four times what each node's copies had, MiB.
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

fn list(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    match names.len() {
        count if count > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

/// `92, 92, 111, 107, 98 % of their mean (low low high high mid: both extremes, then what lies
/// between; CV 7.8 % (5.2 to 25))`.
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
    title: "A run keeps the speed that it was given when it began",
    topic: "rate runs",
    about: "Where pieces of work inside one process agree and processes differ, the value is settled when the process begins: by \
            the physical pages that it gets, by the layout of its addresses, by its CPU. That is no noise, and more pieces do not help. \
            On a machine with memory of two speeds this is what its runs look like, and which run gets which is decided by how memory fills up after a boot.",
    method: "Variance components by means of means (Kalibera & Jones 2013), iteration in allocation in process: fires where more than half \
             of the variance lies between allocations or processes and two runs lie more than 5 % apart, from five processes on. The share of slow memory of each run is the inversion of \
             1/B = f/B_slow + (1 - f)/B_fast with the slowest and the fastest run as ends: an illustration, no proof (the published figures fit no single model).",
    calm: "",
    looked_at: "",
    source: file!(),
    check: settled,
};

/// Fewer processes have no variance components worth the name.
const PROCESSES: usize = 5;

fn settled(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    let known: Vec<&Part> = suite
        .parts
        .iter()
        .filter(|part| part.runs.as_ref().is_some_and(|runs| runs.values.len() >= PROCESSES))
        .collect();
    if known.is_empty() {
        return None;
    }
    let mut facts = Vec::new();
    let (mut names, mut series, mut fresh_pages) = (Vec::new(), Vec::new(), false);
    let mut most: f64 = 0.0;
    for part in known {
        let (Some(runs), Some(sits)) = (&part.runs, part.sits) else { continue };
        // Where pieces scatter as far as runs do, nothing is settled.
        if runs.apart <= APART || runs.shape == Shape::Flat || sits.settled() <= 0.5 {
            continue;
        }
        let key = &part.rate.series.key;
        let mut shares = vec![format!("{} between processes", percent(sits.processes))];
        if let Some(allocations) = sits.allocations {
            fresh_pages |= allocations > 0.5;
            shares.push(format!("{} between fresh arrays of one process", percent(allocations)));
        }
        shares.push(format!("{} between pieces on the same arrays", percent(sits.iterations)));
        facts.push(Fact::new(format!("variance of {}", part.name()), shares.join(", "), key));
        facts.push(Fact::new(format!("runs of {}", part.name()), words(runs, part.scatter), key));
        let placed =
            runs.handed_out().is_some() && !matches!(suite.moving(evidence.machine), Moving::Others(_));
        most = most.max(runs.apart);
        if part.is_memory() && placed {
            let shares: Vec<String> =
                runs.slow_shares().iter().take(16).map(|share| format!("{share:.2}")).collect();
            let what = format!("share of slow memory that each run of {} would have had", part.name());
            facts.push(Fact::new(what, shares.join(", "), key));
        }
        if let Some((places, rho)) = &part.places {
            let places: Vec<String> = places.iter().take(16).map(|gib| format!("{gib:.1}")).collect();
            let what = format!("physical address of each run of {}, GiB, in the middle", part.name());
            facts.push(Fact::new(
                what,
                format!("{} (rank correlation with the rate {rho:.2})", places.join(", ")),
                key,
            ));
        }
        names.push(part.name());
        series.push(key.clone());
    }
    if names.is_empty() {
        return Some(Vec::new());
    }
    Some(vec![Finding {
        rule: SETTLED.id.into(),
        severity: Severity::Warning,
        headline: format!(
            "Runs of {} keep the speed they begin with, up to {} apart. More processes are needed.",
            list(&names),
            percent(most)
        ),
        cause: match fresh_pages {
            true => "Fresh arrays inside the same process move it: what decides are the physical pages.",
            false => "It is settled when a process begins: physical pages, layout of addresses, or its CPU.",
        }
        .into(),
        facts,
        confirm: format!("assay rate --component {} --allocations 4 --iterations 3", names.join(",")),
        advice: "`assay memmap` looks for memory of two speeds, `assay machine` for memory modules in the wrong slots. More \
                 pieces of work inside a process narrow nothing here; more processes do."
            .into(),
        series,
        effect: Effect::Explains,
    }])
}

const MEMORY_MOVES: Rule = Rule {
    id: ids::rule::RATE_MEMORY_MOVES,
    title: "Components on memory move, those in caches hold still",
    topic: "memory",
    about: "Components whose data fill memory and components whose data fit into caches run in turns in the same session. Clock, stolen \
            time, temperature and other tenants move both; what moves only the former is memory: its population, its \
            pages, its controllers, or somebody else's traffic.",
    method: "Fires with two components on memory and three in caches, five processes each: a component on memory lies more than 5 % apart, none in caches more \
             than 2.5 %, and the median CV of the former is above three times that of the latter.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: memory_moves,
};

const TIMES: f64 = 3.0;

fn memory_moves(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    let of = |memory: bool| -> Vec<(&Part, &Sequence)> {
        let parts = suite.parts.iter().filter(|part| part.is_memory() == memory);
        // Data that fit in caches tell nothing of memory.
        let parts = parts.filter(|part| !memory || fits(part, evidence.machine).is_none());
        parts
            .filter_map(|part| {
                Some((part, part.runs.as_ref().filter(|runs| runs.values.len() >= PROCESSES)?))
            })
            .collect()
    };
    let (memory, caches) = (of(true), of(false));
    if memory.len() < 2 || caches.len() < 3 {
        return None;
    }
    let cv =
        |parts: &[(&Part, &Sequence)]| median(&parts.iter().map(|(_, runs)| runs.cv).collect::<Vec<_>>());
    let (cv_memory, cv_caches) = (cv(&memory)?, cv(&caches)?);
    let most = |parts: &[(&Part, &Sequence)]| parts.iter().map(|(_, runs)| runs.apart).fold(0.0, f64::max);
    if most(&memory) <= APART || most(&caches) > STILL || cv_memory <= TIMES * cv_caches {
        return Some(Vec::new());
    }
    let moved: Vec<&(&Part, &Sequence)> = memory.iter().filter(|(_, runs)| runs.apart > APART).collect();
    let mut facts: Vec<Fact> = moved
        .iter()
        .map(|(part, runs)| {
            let what = format!("runs of {}, whose data fill memory", part.name());
            Fact::new(what, words(runs, part.scatter), &part.rate.series.key)
        })
        .collect();
    facts.push(Fact::new("median CV of components on memory", percent(cv_memory), "rate.*"));
    facts.push(Fact::new("median CV of components in caches", percent(cv_caches), "rate.*"));
    let names: Vec<&str> = moved.iter().map(|(part, _)| part.name()).collect();
    Some(vec![Finding {
        rule: MEMORY_MOVES.id.into(),
        severity: Severity::Warning,
        headline: format!(
            "Runs of {} are up to {} apart, those in caches only {}. Memory is the cause.",
            list(&names),
            percent(most(&memory)),
            percent(most(&caches))
        ),
        cause: "Clock, temperature and stolen time would move components in caches as well.".into(),
        facts,
        confirm: "assay memmap".into(),
        advice: "Look at the memory modules (`assay machine`), at the map (`assay memmap`), and for neighbours that use the \
                 memory's bandwidth."
            .into(),
        series: moved.iter().map(|(part, _)| part.rate.series.key.clone()).collect(),
        effect: Effect::Explains,
    }])
}

const IN_CACHE: Rule = Rule {
    id: ids::rule::RATE_FOOTPRINT_IN_CACHE,
    title: "The copies' data may lie in caches",
    topic: "footprint",
    about: "Components on memory measure memory only where their data are much larger than the last-level caches of their CPUs. In \
            a guest the kernel shows the host's whole cache, of which others use parts: how much is ours changes.",
    method: "Fires where the memory of all copies together is below twice the last-level caches that their CPUs have, by the \
             kernel's sizes.",
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
    Some(vec![Finding {
        rule: IN_CACHE.id.into(),
        severity: Severity::Note,
        headline: format!(
            "All copies have {} of data for {} of L{last}. Scores are partly those of the cache.",
            mib(bytes),
            mib(cache_bytes)
        ),
        cause: "Part of what should come from memory comes from caches.".into(),
        facts: vec![
            Fact::new("memory of all copies", mib(bytes), &part.rate.series.key),
            Fact::new(
                format!("L{last} of their CPUs"),
                mib(cache_bytes),
                "/sys/devices/system/cpu/cpu*/cache",
            ),
        ],
        confirm: format!("assay rate --footprint {}M", (4 * cache_bytes) >> 20),
        advice: "Give --footprint at least twice the caches, where the time allows.".into(),
        series: memory.map(|part| part.rate.series.key.clone()).collect(),
        effect: Effect::None,
    }])
}
