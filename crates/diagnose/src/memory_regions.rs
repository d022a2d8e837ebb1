//! Regions of memory that differ and why, and neighbours of the memory.

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
    title: "Regions of memory that cost more than others",
    topic: "memory parts",
    meaning: "Some memory of a machine is slower than the rest for good, and a process is as fast as the regions that it got. Three \
            causes are told apart: translations that cost more (smaller pages, in a guest also the host's behind huge ones), loads \
            that take longer (another node, in a guest the host's), and loads that take as long of which less comes through at once \
            (fewer channels).",
    action: "",
    when: "Looks at regions (memory.regions, assay memmap) in rounds of random order, with flushed lines: hopping loads less loads \
             that come back to pages as far apart (translation), loads on few pages (distance), bandwidth of all CPUs (transfer). What \
             a round has in common is taken out. The slow set is learnt from every other pair of rounds and tried in the others, both ways \
             round; both sets must be the same in most, and the rounds' differences lie above nothing with their whole 95 % \
             interval. A cause is named from 10 ns of translation, 1.2 times the latency, 1.2 times less bandwidth on; bandwidth \
             that goes with translation or distance is theirs. Smaller differences have no cause. Huge pages are also compared one by one: 5 % that \
             take 1.2 times as long lie farther, wherever they are. docs/method/slow-memory.md has the error rates.",
    how: "",
    calm: "regions of memory cost the same",
    looked_at: "memory regions",
    source: file!(),
    check: differ,
};

fn differ(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = evaluated_regions(evidence);
    let maps = maps(evidence.run, evidence.machine);
    // A map that has several speeds says so itself.
    let is_told = |own: &EvaluatedRegions, found: &Difference| {
        found.cause == Cause::Transfer
            && maps.iter().any(|map| map.case == own.case && map.speeds().is_some())
    };
    let untold = |own: &'_ EvaluatedRegions| -> Vec<Finding> {
        let named = own.found.named().filter(|found| !is_told(own, found));
        let regions = named.map(|found| finding(own, found.cause, headline(own, found)));
        // Where whole regions lie farther their pages do.
        let are_regions = own.found.named().any(|found| found.cause == Cause::Distance);
        let far = own.far.filter(|far| !are_regions && far.matters());
        let pages = far.and_then(|_| own.far_size()).map(|size| finding(own, Cause::Distance, size));
        regions.chain(pages).collect()
    };
    (!all.is_empty()).then(|| all.iter().flat_map(untold).collect())
}

fn headline(own: &EvaluatedRegions, found: &Difference) -> String {
    let share = percent(found.slow_share());
    let of = own.node.map_or(String::new(), |node| format!(" of node {node}"));
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

fn finding(own: &EvaluatedRegions, cause: Cause, headline: String) -> Finding {
    let advice = match (cause, own.guest) {
        (Cause::Translation, true) => {
            "Ask for huge pages (transparent_hugepage=madvise or always, hugetlbfs), or restart what runs long: it gets \
             other memory. Operator: back guests by huge pages (hugetlbfs, or memory aligned to 2 MiB)."
        }
        (Cause::Translation, false) => {
            "Ask for huge pages (transparent_hugepage, hugetlbfs), and compact memory before large programs start."
        }
        (Cause::Distance, true) => {
            "Inside nothing tells which memory is near: trust no single run. Operator: pin the guest's CPUs and memory to one node."
        }
        (Cause::Distance, false) => {
            "Bind memory to the node of its CPUs (numactl), and look for memory of another kind (`assay machine`)."
        }
        (Cause::Transfer, true) => {
            "Trust no single run of anything that needs bandwidth. Operator: compare the populated channels of the sockets."
        }
        (Cause::Transfer, false) => {
            "Compare the slots with the board's manual (`assay machine` lists them): equal modules on each channel."
        }
    };
    // A region that moved is not one region: what differs may be less, and elsewhere.
    let moved = own.moved.as_ref().filter(|moved| moved.moved == Some(true));
    let remark = moved.map_or(String::new(), |moved| format!(" {}", moved.sentence()));
    Finding::warning(DIFFER.id, headline)
        .cause(format!("{}.{remark}", capital(own.cause_words(cause))))
        .facts(own.facts())
        .confirm(match own.node {
            Some(node) => format!("assay memmap --node {node} --new"),
            None => "assay memmap --new".to_string(),
        })
        .advice(advice)
}

const NEIGHBOUR: Rule = Rule {
    id: ids::rule::MEMORY_NEIGHBOUR,
    title: "Memory that is slower now and then",
    topic: "neighbour",
    meaning: "Who shares the memory, another task or another guest of the host, slows every load while it works. Regions do not differ \
            then, moments do.",
    action: "",
    when: "Loads of the looks at regions, or of those at rest (host.neighbours), in the order of time, less what regions differ by; \
             sixteen half seconds or more. A look is slow where the median of five (with those next to it) lies above the quietest \
             15 % of half seconds by three standard errors and by 12 %. Named where 20 % of the time or more is slow and loads take \
             1.2 times as long or more in it; below 10 % nobody is there. docs/method/slow-memory.md has the error rates.",
    how: "",
    calm: "no neighbour slowed memory",
    looked_at: "memory regions",
    source: file!(),
    check: neighbours,
};

/// What moments tell, and on what that rests.
struct Told {
    found: Neighbour,
    facts: Vec<Fact>,
    bench: BenchId,
}

fn neighbours(evidence: &Evidence) -> Option<Vec<Finding>> {
    let of_regions = evaluated_regions(evidence).into_iter().filter_map(|own| {
        let facts = own.facts();
        Some(Told { found: own.neighbour?, facts, bench: ids::REGIONS })
    });
    let at_rest = at_rest::of_evidence(evidence).and_then(|rest| {
        let facts = rest.facts();
        Some(Told { found: rest.neighbour?, facts, bench: NEIGHBOURS })
    });
    let is_told = |told: &Told| told.found.is_named() || told.found.is_quiet();
    let told: Vec<Told> = of_regions.chain(at_rest).filter(is_told).collect();
    let named = told.iter().filter(|told| told.found.is_named());
    let findings = named.map(|Told { found, facts, bench }| Finding::note(NEIGHBOUR.id, format!("Memory was {:.2} times slower in {} of the time", found.slower, percent(found.share)))
        .cause("Another task of this machine, or another tenant of its host, used the same memory or cache.")
        .facts(facts.clone())
        .confirm(format!("assay run --only {bench} --profile full --new"))
        .advice("See who works here (top); where nobody does, it is the host's other tenants. Measure at another time, and compare."));
    let findings: Vec<Finding> = findings.collect();
    (!told.is_empty()).then_some(findings)
}
