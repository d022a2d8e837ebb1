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
    meaning: "Modules that fill the channels of a socket unevenly make firmware interleave them in several sets. A region then has the \
            bandwidth of its set, and a process that of the region that it got: runs swing by their luck after boot, low, low, high, \
            high, and in between, and nothing but the memory explains it.",
    action: "",
    when: "assay memmap: bandwidth of every chunk of a node's free memory, all cores on one chunk, rounds in random order, what a \
             round has in common taken out. The mode rule on the medians of at least 32 chunks: separation D > 3, BIC gain against one \
             Gaussian and one skewed distribution, a valley, ratio above 1.05, 5 % and two chunks on each side; and three \
             quarters of the chunks of each side on it again in the odd and in the even rounds. Uniform is called only what is at most as blind as was \
             asked (--limit): steps are planted into this map's own noise, and the same rule must find 95 % of them. Populations are two \
             sets of channels with ratio w1 / w2 and share w2 / (w1 + w2); none is named by its ratio alone. docs/method/memory-maps.md has the measured error rates.",
    how: "",
    calm: "memory has one speed",
    looked_at: "memory map",
    source: file!(),
    check: several_speeds,
};

/// From this ratio on the machine is faulty, below it its numbers need care.
const GRAVE: f64 = 1.15;

fn several_speeds(evidence: &Evidence) -> Option<Vec<Finding>> {
    let maps = maps(evidence.run, evidence.machine);
    let regions = evaluated_regions(evidence);
    let of = |map: &NodeMap| regions.iter().find(|own| own.case == map.case);
    let findings: Vec<Finding> = maps.iter().filter_map(|map| finding(map, of(map))).collect();
    // What is inconclusive is not called clean.
    let told = !maps.is_empty() && maps.iter().all(|map| !matches!(map.map.answer, Answer::Inconclusive(_)));
    (told || !findings.is_empty()).then_some(findings)
}

fn finding(found: &NodeMap, regions: Option<&EvaluatedRegions>) -> Option<Finding> {
    let speeds = found.speeds()?;
    // Translation is asked first: what it explains is no population of modules.
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
            "The host gives this guest memory of several speeds. Loads take as long in all of it, so that neither its pages nor its \
             nodes explain them; which channels the host has there a guest cannot tell."
                .to_string()
        }
        ([], true) => "Regions of the memory hang on unequally many channels, or on different nodes of the host: a guest cannot \
                       tell which."
            .to_string(),
        ([], false) => "Regions of the memory hang on unequally many channels. No population is named: the ratio alone fits \
                        several, and nothing else that is known here fits one of them."
            .to_string(),
        (names, _) => format!(
            "Regions of the memory hang on unequally many channels, as modules in {} channels would make it.",
            names.join(" or ")
        ),
    };
    Some(
        Finding::of(
            SPEEDS.id,
            if speeds.ratio >= GRAVE { Severity::Problem } else { Severity::Warning },
            found.headline()?,
        )
        .cause(cause)
        .facts(found.facts())
        .confirm(confirm(found))
        .advice(if found.guest { GUEST } else { METAL }),
    )
}

const GUEST: &str = "Trust no single run of anything that needs bandwidth: a restarted program gets other memory. Operator: \
                     compare the modules and channels of the host's sockets, and pin the guest to one node.";
const METAL: &str = "Compare the slots with the board's manual (`assay machine` lists them): equal modules, as many on each controller \
                     and channel. Until then trust no single run of anything that needs bandwidth.";

fn confirm(found: &NodeMap) -> String {
    match found.node {
        Some(node) => format!("assay memmap --node {node} --rounds 25 --new"),
        None => "assay memmap --rounds 25 --new".to_string(),
    }
}

const NODES: Rule = Rule {
    id: ids::rule::MEMORY_NODES_UNEVEN,
    title: "Nodes whose memory is not equally fast",
    topic: "memory speed",
    meaning: "Sockets of one machine are populated alike, so their memory is equally fast. A node that is slower has fewer channels, \
            slower modules, or lost one.",
    action: "",
    when: "assay memmap: the bandwidth of the median chunk of each node, read by its own cores; a ratio above 1.03 between nodes \
             with equally many cores, of maps that are not inconclusive. Nodes without CPUs (CXL, HBM) are another kind of memory and \
             left out.",
    how: "",
    calm: "nodes have equally fast memory",
    looked_at: "memory map",
    source: file!(),
    check: uneven_nodes,
};

/// Nodes further apart than this are not alike (methods: 3 %).
const NODES_APART: f64 = 1.03;

fn uneven_nodes(evidence: &Evidence) -> Option<Vec<Finding>> {
    let maps = maps(evidence.run, evidence.machine);
    let cores = |map: &NodeMap| {
        let node = evidence.machine.nodes.iter().find(|node| Some(node.id) == map.node)?;
        (!node.cpus.is_empty()).then_some(node.cpus.len())
    };
    let most = maps.iter().filter_map(cores).max()?;
    let compared: Vec<&NodeMap> = maps.iter().filter(|map| cores(map) == Some(most)).collect();
    let is_told = |map: &&NodeMap| !matches!(map.map.answer, Answer::Inconclusive(_));
    let mut alike: Vec<&NodeMap> = compared.iter().copied().filter(is_told).collect();
    alike.sort_by(|one, other| one.typical.total_cmp(&other.typical));
    let [slowest, .., fastest] = alike.as_slice() else { return None };
    let ratio = fastest.typical / slowest.typical;
    if ratio <= NODES_APART {
        // What is inconclusive is not called clean.
        return (alike.len() == compared.len()).then(Vec::new);
    }
    let guest = slowest.guest;
    Some(vec![Finding::warning(NODES.id, format!(
        "Memory of {} runs at {} instead of {} as on {}.{}",
        slowest.name(),
        figure(slowest.typical, "GB/s"),
        figure(fastest.typical, "GB/s"),
        fastest.name(),
        if guest { "" } else { " Compare their modules." }
    ))
        .cause(if guest {
            "The host's memory behind the nodes is not equally fast, or lies on other nodes of the host; or one of them was busy."
        } else {
            "The nodes have unequally many populated channels, or modules of unequal speed; or one of them was busy."
        })
        .facts(alike
            .iter()
            .map(|map| Fact::new(map.name(), figure(map.typical, "GB/s"), &map.case)))
        .confirm("assay memmap --new")
        .advice(if guest {
            GUEST
        } else {
            "Compare the modules of the sockets and their configured speeds (`assay machine`)."
        })])
}
