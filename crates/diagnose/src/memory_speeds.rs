//! Memory of several speeds, and nodes whose memory is not equally fast.

use super::memory_map::{NodeMap, maps};
use super::regions::{EvaluatedRegions, evaluated_regions};
use super::words::capital;
use super::{Evidence, Rule};
use model::vocabulary::memory_map as ids;
use model::{Fact, Finding, Severity, figure};
use stats::memory_map::Answer;
use stats::regions::Cause;

pub const RULES: &[Rule] = &[SPEEDS, NODES];

const SPEEDS: Rule = Rule {
    id: ids::rule::MEMORY_TWO_SPEEDS,
    title: "Memory has several speeds",
    topic: "memory speed",
    meaning: "Modules that fill a socket's channels unevenly make firmware interleave them in several sets. \
        A region has the bandwidth of its set, and a process that of its region. Runs vary by chance, and \
        only the memory explains it.",
    action: "Compare the slots with the board's manual (assay machine lists them) and put equal modules on \
        each channel. In a guest compare several runs. See it: assay memmap --rounds 25 --new",
    when: "A map of a node's memory has speeds more than 1.05 times apart. It is a problem from 1.15 times \
        on, and a warning below or where translation or distance explains it.",
    how: "All cores measure the bandwidth of one chunk of a node's free memory after another, in rounds of \
        random order. What a round has in common is subtracted. The medians of at least 32 chunks must show \
        modes. That needs separation D > 3, BIC gain against one Gaussian and one skewed distribution, a \
        valley, and 5 % and two chunks on each side. Three quarters of the chunks of each side must be on it \
        again in the odd and in the even rounds. Memory is called uniform only if the rule finds 95 % of the \
        steps (--limit) that are planted into the map's own noise. A population is two sets of channels with \
        ratio w1 / w2 and share w2 / (w1 + w2). The ratio alone names none. docs/method/memory-maps.md has \
        the measured error rates.",
    calm: "memory has one speed",
    looked_at: "memory map",
    source: file!(),
    check: several_speeds,
};

/// From this ratio on the host is faulty, below it its figures need care.
const MIN_PROBLEM_RATIO: f64 = 1.15;

fn several_speeds(evidence: &Evidence) -> Option<Vec<Finding>> {
    let maps = maps(evidence.run, evidence.machine);
    let regions = evaluated_regions(evidence);
    let regions_of = |map: &NodeMap| regions.iter().find(|own| own.case == map.case);
    let findings: Vec<Finding> = maps.iter().filter_map(|map| finding(map, regions_of(map))).collect();
    // What is inconclusive is not called clean.
    let conclusive =
        !maps.is_empty() && maps.iter().all(|map| !matches!(map.map.answer, Answer::Inconclusive(_)));
    (conclusive || !findings.is_empty()).then_some(findings)
}

fn finding(found: &NodeMap, regions: Option<&EvaluatedRegions>) -> Option<Finding> {
    let speeds = found.speeds()?;
    // Translation and distance come first: what they explain is no population of modules.
    let named =
        regions.and_then(|own| Some((own, own.found.named().find(|other| other.cause != Cause::Transfer)?)));
    if let Some((own, why)) = named {
        let mut facts = found.facts();
        facts.extend(own.facts());
        return Some(
            Finding::warning(SPEEDS.id, found.headline()?)
                .cause(format!("{}.", capital(own.cause_words(why.cause))))
                .facts(facts)
                .confirm(confirm(found))
                .advice("The finding on these regions says what to do."),
        );
    }
    let named: Vec<String> = found
        .candidates()
        .iter()
        .filter(|candidate| candidate.stands())
        .map(|candidate| format!("{}+{}", candidate.sets[0], candidate.sets[1]))
        .collect();
    let cause = match (named.as_slice(), found.guest) {
        ([], true) if regions.is_some_and(|own| own.found.differences.is_empty()) => {
            "The host gives this guest memory of several speeds. Loads take equally long everywhere, so \
             neither pages nor nodes explain it."
                .to_string()
        }
        ([], true) => "Regions of the memory have unequally many channels, or lie on different nodes of the \
                       host."
            .to_string(),
        ([], false) => "Regions of the memory have unequally many channels; the ratio alone names no \
                        modules."
            .to_string(),
        (names, _) => format!(
            "Regions of the memory have unequally many channels, as with modules in {} channels.",
            names.join(" or ")
        ),
    };
    Some(
        Finding::of(
            SPEEDS.id,
            if speeds.ratio >= MIN_PROBLEM_RATIO { Severity::Problem } else { Severity::Warning },
            found.headline()?,
        )
        .cause(cause)
        .facts(found.facts())
        .confirm(confirm(found))
        .advice(if found.guest { GUEST } else { METAL }),
    )
}

const GUEST: &str = "Compare several runs. Operator: compare the channels of the host's sockets, and pin the \
                     guest to one node.";
const METAL: &str = "Put equal modules on each controller and channel (`assay machine` lists them). Until \
                     then compare several runs.";

fn confirm(found: &NodeMap) -> String {
    match found.node {
        Some(node) => format!("assay memmap --node {node} --rounds 25 --new"),
        None => "assay memmap --rounds 25 --new".to_string(),
    }
}

const NODES: Rule = Rule {
    id: ids::rule::MEMORY_NODES_UNEVEN,
    title: "NUMA nodes have memory of different speed",
    topic: "memory speed",
    meaning: "Sockets of one host have the same modules, so their memory is equally fast. A slower node has \
        fewer channels, slower modules, or lost one.",
    action: "Compare the modules of the sockets and their configured speeds (assay machine). See it: assay \
        memmap --new",
    when: "The bandwidth of the median chunk differs by more than 1.03 times between nodes with equally many \
        cores.",
    how: "assay memmap reads each node by its own cores. Inconclusive maps do not count. Nodes without CPUs \
        (CXL, HBM) are another kind of memory and are left out.",
    calm: "nodes have equally fast memory",
    looked_at: "memory map",
    source: file!(),
    check: uneven_nodes,
};

/// Nodes further apart than this are not alike (methods: 3 %).
const MIN_NODE_RATIO: f64 = 1.03;

fn uneven_nodes(evidence: &Evidence) -> Option<Vec<Finding>> {
    let maps = maps(evidence.run, evidence.machine);
    let cores = |map: &NodeMap| {
        let node = evidence.machine.nodes.iter().find(|node| Some(node.id) == map.node)?;
        (!node.cpus.is_empty()).then_some(node.cpus.len())
    };
    let most = maps.iter().filter_map(cores).max()?;
    let compared: Vec<&NodeMap> = maps.iter().filter(|map| cores(map) == Some(most)).collect();
    let is_conclusive = |map: &&NodeMap| !matches!(map.map.answer, Answer::Inconclusive(_));
    let mut alike: Vec<&NodeMap> = compared.iter().copied().filter(is_conclusive).collect();
    alike.sort_by(|one, other| one.typical.total_cmp(&other.typical));
    let [slowest, .., fastest] = alike.as_slice() else { return None };
    let ratio = fastest.typical / slowest.typical;
    if ratio <= MIN_NODE_RATIO {
        // What is inconclusive is not called clean.
        return (alike.len() == compared.len()).then(Vec::new);
    }
    let guest = slowest.guest;
    let [slow, fast] = [slowest, fastest].map(|map| figure(map.typical, "GB/s"));
    let (node, other, advice) =
        (slowest.name(), fastest.name(), if guest { "" } else { " Compare their modules." });
    let headline = format!("Memory of {node} runs at {slow} instead of {fast} as on {other}.{advice}");
    Some(vec![
        Finding::warning(NODES.id, headline)
            .cause(if guest {
                "The host's memory behind the nodes differs, or one of them was busy."
            } else {
                "The nodes have unequal channels or modules, or one of them was busy."
            })
            .facts(alike.iter().map(|map| Fact::new(map.name(), figure(map.typical, "GB/s"), &map.case)))
            .confirm("assay memmap --new")
            .advice(if guest {
                GUEST
            } else {
                "Compare the modules of the sockets and their configured speeds (`assay machine`)."
            }),
    ])
}
