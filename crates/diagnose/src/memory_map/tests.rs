//! Machines that were made up, and what their maps come to.

use super::*;
use crate::diagnose;
use testkit::memory_map::made;

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
    machine.nodes = vec![machine::Node { id: 0, total_bytes: Some(8 << 30), ..machine::Node::default() }];
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
