//! Regions of memory that differ and why, and other users of the memory.

use super::memory_map::maps;
use super::regions::{EvaluatedRegions, evaluated_regions};
use super::words::capital;
use super::{Evidence, Rule, at_rest};
use model::vocabulary::BenchId;
use model::vocabulary::host::NEIGHBOURS;
use model::vocabulary::memory_map as ids;
use model::{Fact, Finding, figure, percent};
use stats::regions::{Cause, Difference, Neighbour};

pub const RULES: &[Rule] = &[DIFFER, NEIGHBOUR];

const DIFFER: Rule = Rule {
    id: ids::rule::MEMORY_REGIONS_DIFFER,
    title: "Some regions of memory are slower than others",
    topic: "memory parts",
    meaning: "Some memory is slower for good, and a process is as fast as the regions that it got. There are \
        three causes: slower address translation (smaller pages), longer loads (another node), or less \
        bandwidth (fewer channels).",
    action: "Ask for huge pages against translation, bind memory to its node against long loads, and fill \
        channels evenly for bandwidth. See it: assay memmap --new",
    when: "Regions cost 10 ns more for translation, 1.2 times the latency, or have 1.2 times less bandwidth. \
        Or 5 % of the huge pages take 1.2 times as long.",
    how: "memory.regions and assay memmap measure regions in rounds of random order, with flushed lines. \
        Translation is hopping loads less loads that return to pages as far apart. Distance is loads on few \
        pages, transfer is bandwidth of all CPUs. What a round has in common is subtracted. Every other pair \
        of rounds names the slow set, the others test it, and the reverse. Both sets must agree in most \
        regions, and the 95 % interval of the rounds' differences must lie above zero. Bandwidth that goes \
        with translation or distance counts as theirs. Smaller differences have no cause. In a guest the \
        host's small pages behind huge ones, and the host's nodes, act in the same way. \
        docs/method/slow-memory.md has the error rates.",
    calm: "regions of memory cost the same",
    looked_at: "memory regions",
    source: file!(),
    check: differ,
};

fn differ(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = evaluated_regions(evidence);
    let maps = maps(evidence.run, evidence.machine);
    // A map of several speeds has a finding of its own.
    let is_known = |seen_regions: &EvaluatedRegions, found: &Difference| {
        found.cause == Cause::Transfer
            && maps.iter().any(|map| map.case == seen_regions.case && map.speeds().is_some())
    };
    let findings_of = |seen_regions: &'_ EvaluatedRegions| -> Vec<Finding> {
        let named = seen_regions.found.named().filter(|found| !is_known(seen_regions, found));
        let regions = named.map(|found| finding(seen_regions, found.cause, headline(seen_regions, found)));
        // Where whole regions lie farther their pages do.
        let are_regions = seen_regions.found.named().any(|found| found.cause == Cause::Distance);
        let far = seen_regions.far.filter(|far| !are_regions && far.matters());
        let pages = far
            .and_then(|_| seen_regions.far_size())
            .map(|size| finding(seen_regions, Cause::Distance, size));
        regions.chain(pages).collect()
    };
    (!all.is_empty()).then(|| all.iter().flat_map(findings_of).collect())
}

fn headline(seen_regions: &EvaluatedRegions, found: &Difference) -> String {
    let share = percent(found.slow_share());
    let of = seen_regions.node.map_or(String::new(), |node| format!(" of node {node}"));
    match found.cause {
        Cause::Translation => format!(
            "{share} of the memory{of} costs {} more per random access, by address translation",
            figure(found.size, "ns")
        ),
        Cause::Distance => {
            format!("Loads from {share} of the memory{of} take {:.2} times as long", found.size)
        }
        Cause::Transfer => {
            format!("{share} of the memory{of} has {:.2} times less bandwidth at equal latency", found.size)
        }
    }
}

fn finding(seen_regions: &EvaluatedRegions, cause: Cause, headline: String) -> Finding {
    let advice = match (cause, seen_regions.guest) {
        (Cause::Translation, true) => {
            "Use huge pages, or restart the program to get other memory. Operator: back guests with huge \
             pages."
        }
        (Cause::Translation, false) => {
            "Use huge pages (transparent_hugepage, hugetlbfs), and compact memory first."
        }
        (Cause::Distance, true) => {
            "Compare several runs. Operator: pin the guest's CPUs and memory to one node."
        }
        (Cause::Distance, false) => "Bind memory to the node of its CPUs (numactl), and see `assay machine`.",
        (Cause::Transfer, true) => {
            "Compare several runs. Operator: compare the populated channels of the sockets."
        }
        (Cause::Transfer, false) => {
            "Put equal modules on each channel, as the board's manual says (`assay machine`)."
        }
    };
    // A region that moved is not one region: what differs may be less, and elsewhere.
    let moved = seen_regions.moved.as_ref().filter(|moved| moved.moved == Some(true));
    let remark = moved.map_or(String::new(), |moved| format!(" {}", moved.sentence()));
    Finding::warning(DIFFER.id, headline)
        .cause(format!("{}.{remark}", capital(seen_regions.cause_words(cause))))
        .facts(seen_regions.facts())
        .confirm(match seen_regions.node {
            Some(node) => format!("assay memmap --node {node} --new"),
            None => "assay memmap --new".to_string(),
        })
        .advice(advice)
}

const NEIGHBOUR: Rule = Rule {
    id: ids::rule::MEMORY_NEIGHBOUR,
    title: "Memory is slower now and then",
    topic: "neighbour",
    meaning: "Another task, or another guest of the host, uses the memory and slows every load while it \
        works. The moments differ then, not the regions.",
    action: "Look for other work on this host (top). If there is none, other guests are the cause: measure \
        at another time and compare. See it: assay memmap --new",
    when: "Memory is slow for 20 % of the time or more, and loads then take 1.2 times as long or more.",
    how: "Loads of memory.regions, or of host.neighbours at rest, in the order of time, less what regions \
        differ by. Sixteen half seconds or more are needed. A load is slow where the median of five lies \
        above the quietest 15 % of half seconds, by three standard errors and by 12 %. Below 10 % of the \
        time the check passes. docs/method/slow-memory.md has the error rates.",
    calm: "memory equally fast at all times",
    looked_at: "memory regions",
    source: file!(),
    check: neighbours,
};

/// Other use of memory over time, with its facts.
struct NeighbourEvidence {
    found: Neighbour,
    facts: Vec<Fact>,
    bench: BenchId,
}

fn neighbours(evidence: &Evidence) -> Option<Vec<Finding>> {
    let of_regions = evaluated_regions(evidence).into_iter().filter_map(|seen_regions| {
        let facts = seen_regions.facts();
        Some(NeighbourEvidence { found: seen_regions.neighbour?, facts, bench: ids::REGIONS })
    });
    let at_rest = at_rest::at_rest(evidence).and_then(|rest| {
        let facts = rest.facts();
        Some(NeighbourEvidence { found: rest.neighbour?, facts, bench: NEIGHBOURS })
    });
    let is_known = |known: &NeighbourEvidence| known.found.is_named() || known.found.is_quiet();
    let known: Vec<NeighbourEvidence> = of_regions.chain(at_rest).filter(is_known).collect();
    let named = known.iter().filter(|known| known.found.is_named());
    let findings = named.map(|NeighbourEvidence { found, facts, bench }| {
        let headline =
            format!("Memory was {:.2} times slower in {} of the time", found.slower, percent(found.share));
        Finding::note(NEIGHBOUR.id, headline)
            .cause("Another task of this host, or another guest, used the same memory or cache.")
            .facts(facts.clone())
            .confirm(format!("assay run --only {bench} --profile full --new"))
            .advice("Look for other work (top). Else it is other guests: measure at another time.")
    });
    let findings: Vec<Finding> = findings.collect();
    (!known.is_empty()).then_some(findings)
}
