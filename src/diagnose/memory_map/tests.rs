//! Machines that were made up, and what their maps come to.

use super::*;
use crate::diagnose::diagnose;
use crate::model::{Better, Case, CpuSet, Metric, Packed, Params, Placement, Samples, Seat, Title, View};
use crate::stats::run_of::{run, visit};

const CHUNKS: usize = 32;
const ROUNDS: usize = 9;

/// A machine with a node for each of these ratios: a quarter of its chunks is so many times slower (1: none). Chunks were taken
/// from the top of the physical memory downwards, the slow ones from its beginning.
pub fn made(ratios: &[f64], as_root: bool) -> Run {
    let mut plan = Vec::new();
    let mut visits = Vec::new();
    for (node, ratio) in ratios.iter().enumerate() {
        plan.push(Planned { case: case(node), priority: 1, seconds: 1.0, memory_bytes: 0, unmet: None });
        let mut samples: Vec<Samples> = (0..CHUNKS).map(|chunk| bandwidth(chunk, *ratio)).collect();
        samples.push(column(Params::new(), "typical", 1, vec![1.0; ROUNDS + 1]));
        if as_root {
            let place = |chunk: usize| if (8..16).contains(&chunk) { chunk - 8 } else { 100 - chunk };
            let places = (0..CHUNKS).map(|chunk| place(chunk) as f64 / 4.0).collect();
            samples.push(column(Params::new(), "physical", 0, places));
            samples.push(column(Params::new(), "spread", 0, vec![0.25; CHUNKS]));
        }
        visits.push(visit(node as u32, node as u32, 0, samples));
    }
    let mut made = run(ratios.len(), visits);
    made.header.plan = plan;
    made.header.catalogue = vec![title()];
    made
}

fn case(node: usize) -> Case {
    let seat = Seat {
        role: "reader".into(),
        host: None,
        cpus: CpuSet::one(node as u32),
        mem_nodes: CpuSet::one(node as u32),
    };
    let inputs = [("chunk_bytes", 268_435_456.0), ("limit", 10.0)];
    Case {
        bench: MAP.into(),
        placement: Placement {
            name: "per-node".into(),
            seats: vec![seat],
            pages: Default::default(),
            beside: Default::default(),
            neighbours: Vec::new(),
        },
        params: Params::from([("node".to_string(), (node as u64).into())]),
        knobs: Default::default(),
        inputs: inputs.map(|(name, value)| (name.to_string(), value.to_string())).into(),
    }
}

fn column(point: Params, metric: &str, warm_up: usize, work: Vec<f64>) -> Samples {
    let ns = vec![1.0; work.len()];
    Samples {
        point,
        metrics: vec![metric.to_string()],
        warm_up,
        work: Packed::pack(work),
        ns,
        beside: Default::default(),
        histograms: Vec::new(),
        linearity: None,
    }
}

/// Around 40 GB/s, each chunk and round a little off; the first round is not counted.
fn bandwidth(chunk: usize, ratio: f64) -> Samples {
    let slower = if (8..16).contains(&chunk) { ratio } else { 1.0 };
    let off = |round: usize| 1.0 + 0.002 * (((chunk * 7 + round * 5) % 11) as f64 - 5.0) / 5.0;
    let work = (0..=ROUNDS).map(|round| if round == 0 { 1.0 } else { 40.0 / slower * off(round) }).collect();
    column(Params::from([("chunk".to_string(), (chunk as u64).into())]), "bandwidth", 1, work)
}

fn title() -> Title {
    let rate = Form::WorkPerTime { scale: 1.0 };
    Title {
        id: MAP.into(),
        title: "Map of a node's memory".into(),
        about: "".into(),
        reading: "".into(),
        metrics: vec![
            Metric::new("bandwidth", "bandwidth", "GB/s", Better::Higher, rate).aside(),
            Metric::new("typical", "typical", "GB/s", Better::Higher, rate),
            Metric::new("physical", "physical", "GiB", Better::Neither, Form::Value).aside(),
            Metric::new("spread", "spread", "GiB", Better::Neither, Form::Value).aside(),
        ],
        view: View::Table,
    }
}

#[test]
fn a_slow_region_with_its_share_place_and_losses() {
    let made = made(&[3.0], true);
    let mut machine = Machine::default();
    machine.memory.total_bytes = Some(9 << 30);
    machine.hypervisor = Hypervisor::None;
    let maps = maps(&made, &machine);
    let found = &maps[0];
    let speeds = found.speeds().expect("two speeds");
    assert!((speeds.ratio - 3.0).abs() < 0.02 && speeds.slow_share() == 0.25);
    assert_eq!(found.slow_bytes(), Some(2.0 * f64::from(1 << 30)));
    let order = found.physical_order().expect("as root");
    assert_eq!(found.letters(Some(&order)), Some("S".repeat(8) + &"F".repeat(24)));
    assert!(
        [None, Some(order.as_slice())].iter().all(|order| found.together(*order).is_some_and(|p| p < 0.01))
    );
    let [whole, spread] = found.losses().expect("losses");
    assert!((whole - 0.667).abs() < 0.01 && (spread - 0.333).abs() < 0.01, "{whole} {spread}");
    assert!(found.candidates().is_empty() || found.known.slow_share.is_none(), "node 0 is not known");
}

#[test]
fn a_population_is_named_with_its_share_and_never_in_a_guest() {
    let made = made(&[3.0], false);
    let mut machine = Machine::default();
    machine.nodes =
        vec![crate::machine::Node { id: 0, total_bytes: Some(8 << 30), ..crate::machine::Node::default() }];
    machine.hypervisor = Hypervisor::None;
    let named = |machine: &Machine| {
        let maps = maps(&made, machine);
        let stands = maps[0].candidates().into_iter().filter(|candidate| candidate.stands());
        stands.map(|candidate| candidate.sets).collect::<Vec<_>>()
    };
    assert_eq!(named(&machine), [[3, 1]]);
    machine.hypervisor = Hypervisor::Guest("kvm".into());
    assert!(named(&machine).is_empty());
}

#[test]
fn three_answers_and_nodes_that_are_not_alike() {
    let fired = |run: Run| {
        let diagnosis = diagnose(run);
        let findings: Vec<String> = diagnosis.findings.iter().map(|finding| finding.rule.clone()).collect();
        let clean = diagnosis.clean.iter().any(|rule| rule.id == "memory-two-speeds");
        (findings.iter().any(|rule| rule == "memory-two-speeds"), clean)
    };
    assert_eq!(fired(made(&[1.5], false)), (true, false));
    assert_eq!(fired(made(&[1.0], false)), (false, true));
    // Too few chunks: neither found nor called clean.
    let mut short = made(&[1.0], false);
    short.visits[0].samples.drain(..10);
    assert_eq!(fired(short), (false, false));
}
