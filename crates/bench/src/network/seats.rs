//! Which CPUs are near a network card: pure, from an end's description of its interface.

use std::cmp::Reverse;
use std::net::SocketAddr;

use super::conduct::Place;
use super::session::interface_to;
use crate::placement::Placements;
use machine::{End, Machine, network};
use model::CpuSet;

/// Usable CPUs of the card's node. If no node is reported (guests) and the host has one, all CPUs;
/// `None`: there is no card, or its node is unknown.
pub fn node_of(machine: &Machine, placements: &Placements, end: &End) -> Option<CpuSet> {
    let card = end.software == Some(false) || !end.irqs.is_empty() || end.numa_node.is_some();
    let usable = placements.cpus();
    match end.numa_node {
        Some(id) => {
            let node = machine.nodes.iter().find(|node| node.id == id)?;
            Some(usable.intersection(&node.cpus))
        }
        None if card && machine.nodes.len() <= 1 => Some(usable),
        None => None,
    }
}

/// The usable CPU that took most of the card's interrupts.
pub fn busiest(end: &End, usable: &CpuSet) -> Option<u32> {
    let taken = |cpu: u32| end.irqs.iter().filter_map(|irq| irq.counts.get(&cpu)).sum::<u64>();
    usable.iter().filter(|cpu| taken(*cpu) > 0).max_by_key(|cpu| taken(*cpu))
}

/// One CPU of each core, the nearest to the card first: those of its node, of them the one that
/// takes its interrupts last, and CPU 0, which serves most of what is not pinned, before that.
pub fn by_nearness(machine: &Machine, placements: &Placements, end: &End) -> Vec<u32> {
    let (node, busiest) = (node_of(machine, placements, end), busiest(end, &placements.cpus()));
    let quiet = placements.one_cpu("task").ok().and_then(|placement| placement.cpus().first());
    let firsts = placements.one_per_core("task").seats.into_iter().filter_map(|seat| seat.cpus.first());
    let mut cpus: Vec<u32> = firsts.collect();
    cpus.sort_by_key(|cpu| {
        let far = node.as_ref().is_some_and(|node| !node.contains(*cpu));
        (far, Some(*cpu) == busiest, *cpu == 0, Reverse(Some(*cpu) == quiet), *cpu)
    });
    cpus
}

/// Where an end's tasks sit whose other end is at this address.
pub fn towards(machine: &Machine, placements: &Placements, address: SocketAddr) -> Place {
    let interface = interface_to(address);
    let told = interface.as_deref().map(snapshot::network::of_interface);
    let end = told.as_deref().and_then(network::end).unwrap_or_default();
    let seats = by_nearness(machine, placements, &end).into_iter().map(CpuSet::one).collect();
    Place { seats, messages: None, interface }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Irq, Node};

    fn machine(nodes: &[std::ops::Range<u32>]) -> Machine {
        let mut machine = Machine::default();
        machine.cpus.online = nodes.iter().cloned().flatten().collect();
        for (id, cpus) in nodes.iter().enumerate() {
            machine.nodes.push(Node { id: id as u32, cpus: cpus.clone().collect(), ..Node::default() });
        }
        machine
    }

    #[test]
    fn seats_begin_on_the_cards_node_and_away_from_its_interrupts() {
        let machine = machine(&[0..3, 3..6]);
        let placements = Placements::of(&machine);
        let irq = Irq { counts: [(4, 50), (5, 7)].into(), ..Irq::default() };
        let mut end = End { numa_node: Some(1), irqs: vec![irq], ..End::default() };
        assert_eq!(by_nearness(&machine, &placements, &end), [3, 5, 4, 1, 2, 0]);
        end.numa_node = Some(0);
        assert_eq!(by_nearness(&machine, &placements, &end)[..3], [1, 2, 0]);
        // With two nodes it is unknown which one it is.
        end.numa_node = None;
        assert_eq!(node_of(&machine, &placements, &end), None);
        assert_eq!(by_nearness(&machine, &placements, &end), [1, 2, 3, 5, 0, 4]);
    }

    #[test]
    fn a_card_without_a_node_is_near_all_cpus_of_the_only_one() {
        let mut machine = machine(&[0..1, 1..2]);
        machine.nodes.truncate(1);
        let placements = Placements::of(&machine);
        let irq = Irq { counts: [(0, 50)].into(), ..Irq::default() };
        let end = End { irqs: vec![irq], ..End::default() };
        assert_eq!(node_of(&machine, &placements, &end), Some((0..2).collect()));
        assert_eq!(by_nearness(&machine, &placements, &end), [1, 0]);
        let bridge = End { software: Some(true), ..End::default() };
        assert_eq!(node_of(&machine, &placements, &bridge), None, "no card");
    }
}
