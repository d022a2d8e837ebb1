//! Where copies sit, what every component promises, and a copy that is wrong.

use super::*;
use crate::placement::Placements;
use crate::{Candidate, find, rehearsal};
use ::machine::{Core, Machine, Node};
use model::vocabulary::rate as ids;
use model::{Reason, SUSPECT};

fn set(text: &str) -> CpuSet {
    CpuSet::parse_list(text).expect("a list")
}

/// Two nodes of four cores with two threads each.
fn two_nodes() -> Machine {
    let mut machine = Machine::default();
    machine.cpus.online = set("0-15");
    machine.cpus.allowed = set("0-15");
    let core = |first: u32| Core { cpus: [first, first + 8].into_iter().collect(), ..Core::default() };
    machine.cpus.cores = Some((0..8).map(core).collect());
    let node = |id: u32, cpus: &str| Node { id, cpus: set(cpus), ..Node::default() };
    machine.nodes = vec![node(0, "0-3,8-11"), node(1, "4-7,12-15")];
    machine
}

fn planned(machine: &Machine, suite: &Suite) -> Candidate {
    let placements = Placements::of(machine);
    let windows = Depth::Quick.windows();
    let (memory_bytes, depth) = (1 << 40, Depth::Full);
    let scope = Scope { machine, placements: &placements, depth, memory_bytes, windows, all: false };
    let row = find(&ids::BWAVES).expect("a row");
    cases(row, &scope, suite).remove(0)
}

const SUITE: Suite = Suite {
    mib: 256,
    allocations: 2,
    iterations: 3,
    threads: false,
    cpus: None,
    node: None,
    experiments: false,
    plant: None,
};

#[test]
fn copies_sit_on_cores_with_memory_of_their_own_node() {
    let machine = two_nodes();
    let all = planned(&machine, &SUITE).case;
    assert_eq!(all.placement.cpus(), set("0-7"));
    let node_of = |cpu: u32| {
        all.placement
            .seats
            .iter()
            .find(|seat| seat.cpus.contains(cpu))
            .and_then(|seat| seat.mem_nodes.first())
    };
    assert_eq!([node_of(0), node_of(3), node_of(4), node_of(7)], [Some(0), Some(0), Some(1), Some(1)]);
    let shown: Vec<Params> =
        vec![Params::new(), crate::point(ids::param::NODE, 0u64), crate::point(ids::param::NODE, 1u64)];
    assert_eq!(points(&all), shown);
    assert_eq!(planned(&machine, &SUITE).memory_bytes, 8 << 28);

    let one = planned(&machine, &Suite { node: Some(1), ..SUITE.clone() }).case;
    assert_eq!(one.placement.cpus(), set("4-7"));
    assert_eq!(points(&one), [Params::new()]);
    assert!(one.key().contains("node=1"), "{}", one.key());

    let threads = planned(&machine, &Suite { threads: true, ..SUITE.clone() }).case;
    assert_eq!(threads.placement.seats.len(), 16);
    let some = planned(&machine, &Suite { cpus: Some(set("2,12,99")), ..SUITE.clone() }).case;
    assert_eq!(some.placement.cpus(), set("2,12"));
}

#[test]
fn who_asks_for_no_cpu_that_is_there_is_told() {
    let machine = two_nodes();
    let none = planned(&machine, &Suite { cpus: Some(set("99")), ..SUITE.clone() });
    assert!(none.unmet.is_some_and(|why| why.contains("none of the requested CPUs")));
    let nowhere = planned(&machine, &Suite { node: Some(7), ..SUITE.clone() });
    assert!(nowhere.unmet.is_some_and(|why| why.contains("NUMA node 7")));
}

#[test]
fn components_are_told_apart_and_explained() {
    assert!(COMPONENTS.len() >= 12, "{} components", COMPONENTS.len());
    for component in COMPONENTS {
        let name = component.name();
        assert!(component.reference > 0.0 && component.expected_checksum != 0, "{name}");
        for text in [component.about, component.reading, component.method] {
            assert!(text.len() > 80, "{name}: {text}");
        }
        assert!(component.source.ends_with(&format!("rate/{name}.rs")), "{name}: {}", component.source);
        assert!(find(&component.id).is_some_and(|row| row.title == component.title), "{name}");
    }
    let characters: std::collections::BTreeSet<&str> =
        COMPONENTS.iter().map(|component| component.character.name()).collect();
    assert_eq!(characters.len(), 5, "{characters:?}");
}

/// A component of each character as copies, in the room whose answers are stored; that these hold
/// of every component is for its own tests.
#[test]
fn copies_work_and_their_answers_are_the_stored_ones() {
    for id in [ids::TRIAD, ids::JOIN, ids::MOLECULES, ids::DIGEST, ids::PARSE] {
        let mut case = rehearsal::cases(id, Depth::Quick).pop().expect("the most copies");
        case.inputs.insert(ITERATIONS.to_string(), "1".to_string());
        let samples = rehearsal::visit_all(&case);
        let rates = samples.iter().filter(|one| one.metrics == [ids::metric::RATE]).count();
        assert_eq!(rates, points(&case).len(), "{id}");
    }
}

#[test]
fn experiments_follow_their_component() {
    let machine = two_nodes();
    let placements = Placements::of(&machine);
    let windows = Depth::Quick.windows();
    let (memory_bytes, depth) = (1 << 40, Depth::Full);
    let scope =
        Scope { machine: &machine, placements: &placements, depth, memory_bytes, windows, all: false };
    let of = |id: BenchId, suite: &Suite| -> Vec<(String, usize, Beside)> {
        let cases =
            cases(find(&id).expect("a row"), &scope, suite).into_iter().map(|candidate| candidate.case);
        let words = |case: &Case| case.inputs.get(EXPERIMENT).cloned().unwrap_or_default();
        cases.map(|case| (words(&case), case.placement.seats.len(), case.placement.beside)).collect()
    };
    let suite = Suite { experiments: true, ..SUITE.clone() };
    let [all, alone, streams] =
        [("", 8, Beside::Idle), (ALONE, 1, Beside::Idle), (BESIDE_STREAMS, 1, Beside::Stream)]
            .map(|(words, copies, beside)| (words.to_string(), copies, beside));
    assert_eq!(of(ids::BWAVES, &suite), [all.clone(), alone.clone()]);
    assert_eq!(of(ids::GRAPH, &suite), [all.clone(), alone.clone(), streams.clone()]);
    assert_eq!(of(CONTROL, &suite), [all.clone(), alone, streams]);
    assert_eq!(of(ids::DIGEST, &suite), std::slice::from_ref(&all));
    // One copy has no other to be compared with.
    assert_eq!(of(ids::BWAVES, &Suite { cpus: Some(set("2")), ..suite }).len(), 1);
    assert_eq!(of(ids::GRAPH, &SUITE), [all]);
}

/// A pass also keeps where its pages lay, or why that is unknown, and the progress of its work.
#[test]
fn a_visit_keeps_its_places_and_its_progress() {
    let mut case = rehearsal::cases(ids::LBM, Depth::Quick).remove(0);
    case.inputs.insert(ITERATIONS.to_string(), "2".to_string());
    case.inputs.insert(ALLOCATIONS.to_string(), "2".to_string());
    let mut kept = None;
    let work = |sampler: &mut Sampler| {
        run(&case, sampler)?;
        kept = Some(sampler.facts().clone());
        Ok(())
    };
    rehearsal::with_sampler_of(&case, work).expect("right answers");
    let kept = kept.expect("facts");
    match sys::counters::frames_hidden() {
        None => {
            assert_eq!(kept.places.len(), 2, "a histogram for each set of arrays");
            assert!(kept.places.iter().all(|places| places.total() >= 64), "{:?}", kept.places);
        }
        Some(why) => assert!(kept.places.is_empty() && kept.notes.iter().any(|note| note.ends_with(&why))),
    }
    assert_eq!(kept.progress.len(), 4, "one for each piece");
    assert!(kept.progress.windows(2).all(|pair| pair[0].start_s < pair[1].start_s), "{:?}", kept.progress);
    let rates = kept.progress.iter().flat_map(|progress| &progress.rates);
    assert!(rates.clone().count() >= 4 * 5 && rates.clone().all(|rate| *rate > 0.0));
    // Planted: where it says that it lies is made up.
    case.inputs.insert(ITERATIONS.to_string(), "1".to_string());
    case.inputs.insert(planted::PLANT_PLACES.to_string(), "slow:25%@3".to_string());
    let mut places = Vec::new();
    let work = |sampler: &mut Sampler| {
        run(&case, sampler)?;
        places = sampler.facts().places.clone();
        Ok(())
    };
    rehearsal::with_sampler_of(&case, work).expect("right answers");
    assert!(
        places.len() == 2 && places[0] == places[1] && places[0].blocks.last() == Some(&63),
        "{places:?}"
    );
}

#[test]
fn a_flipped_bit_names_its_core() {
    let cases = rehearsal::cases(ids::DIGEST, Depth::Quick);
    // Alone, and as one of the most copies.
    for mut case in [cases.first(), cases.last()].into_iter().flatten().cloned() {
        let copy = case.placement.seats.len() - 1;
        case.inputs.insert(FLIPPED.to_string(), copy.to_string());
        case.inputs.insert(ITERATIONS.to_string(), "1".to_string());
        let (_, reason) = rehearsal::visit(&case);
        let Some(Reason::WrongAnswer(text)) = reason else { panic!("{reason:?}") };
        let cpu = &case.placement.seats[copy].cpus;
        assert!(text.contains(&format!("copy {copy} on CPU {cpu}")), "{text}");
        // One copy alone cannot stand out.
        assert_eq!(text.ends_with(&format!("{SUSPECT}{cpu}")), case.placement.seats.len() > 1, "{text}");
    }
}

/// What bounds a component on a host, only an experiment shows.
#[test]
fn components_that_fill_memory_claim_no_bound() {
    for component in COMPONENTS.iter().filter(|component| component.character.fills_memory()) {
        let (name, reading) = (component.name(), component.reading);
        assert!(reading.contains("built to need") && reading.contains("\"bound by\""), "{name}: {reading}");
        assert!(!reading.contains("decide"), "{name}: {reading}");
    }
}
