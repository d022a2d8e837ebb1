//! Network interfaces in a line, and the ends of a network test's way.

use crate::plain::plain;
use diagnose::words::bytes;
use machine::{End, Interface, Machine};

/// More are counted.
const SHOWN: usize = 8;
/// Length limit of a foreign name, characters.
const NAME: usize = 40;

/// Interfaces that are up or could be; nothing if none is reported.
pub(super) fn interfaces(machine: &Machine) -> Option<String> {
    let (down, others): (Vec<&Interface>, Vec<&Interface>) =
        machine.interfaces.iter().partition(|one| one.state.as_deref() == Some("down"));
    let others: Vec<&Interface> = others.into_iter().filter(|one| one.name != "lo").collect();
    let mut words: Vec<String> = others.iter().take(SHOWN).map(|one| interface(one)).collect();
    if others.len() > SHOWN {
        words.push(format!("and {} more", others.len() - SHOWN));
    }
    if !down.is_empty() {
        words.push(format!("{} down", down.len()));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

fn interface(one: &Interface) -> String {
    let mut words = vec![plain(&one.name, NAME)];
    words.extend(one.speed_mbps.map(speed));
    words.extend(one.mtu.map(|mtu| format!("MTU {mtu}")));
    words.extend(one.numa_node.map(|node| format!("node {node}")));
    words.join(", ")
}

fn speed(mbps: f64) -> String {
    match mbps {
        mbps if mbps >= 1000.0 => format!("{} Gbit/s", mbps / 1000.0),
        mbps => format!("{mbps} Mbit/s"),
    }
}

/// The ends of the way, each with its name: `network` alone where there is one.
pub(super) fn ends(machine: &Machine) -> Vec<(&'static str, String)> {
    let Some(path) = &machine.network else { return Vec::new() };
    let mut ends = vec![("network", end(&path.local))];
    ends.extend(path.remote.as_ref().map(|remote| ("other end", end(remote))));
    ends
}

fn end(told: &End) -> String {
    let text = |text: &Option<String>| text.as_deref().map(|text| plain(text, NAME));
    let mut words = Vec::new();
    words.extend(text(&told.interface));
    words.extend(text(&told.driver).map(|driver| format!("driver {driver}")));
    words.extend(text(&told.kind).filter(|kind| Some(kind) != text(&told.driver).as_ref()));
    if told.software == Some(true) {
        words.push("no hardware behind it".to_string());
    }
    let duplex = text(&told.duplex).map(|duplex| format!(" {duplex} duplex")).unwrap_or_default();
    words.extend(told.speed_mbps.map(|mbps| format!("{}{duplex}", speed(mbps))));
    words.extend(told.mtu.map(|mtu| format!("MTU {mtu}")));
    words.extend(told.path_mtu.filter(|path| told.mtu != Some(*path)).map(|path| format!("path MTU {path}")));
    words.extend(told.numa_node.map(|node| format!("node {node}")));
    for (on, word) in [(true, "on"), (false, "off")] {
        let names: Vec<String> =
            told.offloads.iter().filter(|(_, is)| **is == on).map(|(name, _)| plain(name, NAME)).collect();
        if !names.is_empty() {
            words.push(format!("{} {word}", names.join(" ")));
        }
    }
    let queues = told.rx_queues.zip(told.tx_queues).filter(|_| told.software != Some(true));
    words.extend(queues.map(|(rx, tx)| format!("{rx} receive and {tx} send queues")));
    let irqs = told.packet_irqs();
    if !irqs.is_empty() {
        let cpus = model::CpuSet::union_of(irqs.iter().map(|irq| &irq.cpus));
        words.push(format!("{} interrupts on CPUs {}", irqs.len(), plain(&cpus.to_string(), NAME)));
    }
    if !told.seats.is_empty() {
        let seats: Vec<String> = told.seats.iter().take(SHOWN).map(|cpu| cpu.to_string()).collect();
        let more = if told.seats.len() > SHOWN { ", …" } else { "" };
        words.push(format!("its tasks on CPUs {}{more}", seats.join(", ")));
    }
    let qdiscs: Vec<String> = told.qdiscs.iter().take(SHOWN).map(qdisc).collect();
    if !qdiscs.is_empty() {
        words.push(format!("queueing {}", qdiscs.join(" and ")));
    }
    words.extend(text(&told.congestion).map(|name| format!("congestion control {name}")));
    for (name, sizes) in [("tcp_rmem", &told.tcp_rmem), ("tcp_wmem", &told.tcp_wmem)] {
        words.extend(sizes.get(2).map(|most| format!("{name} up to {}", bytes(*most as f64))));
    }
    words.join(", ")
}

fn qdisc(one: &machine::Qdisc) -> String {
    let mut words = plain(&one.kind, NAME);
    let rate = one.rate_bits.map(|bits| format!(" at {}", speed(bits / 1e6)));
    let delay = one.delay_us.map(|us| format!(" delaying by {us} µs"));
    let loss = one.loss.map(|share| format!(" losing {}", diagnose::words::percent(share)));
    [rate, delay, loss].into_iter().flatten().for_each(|part| words.push_str(&part));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{NetworkPath, Qdisc};

    #[test]
    fn what_is_told_is_said_and_nothing_else() {
        let mut machine = Machine::default();
        assert!(interfaces(&machine).is_none() && ends(&machine).is_empty());
        let one = |name: &str, state: &str, speed_mbps| Interface {
            name: name.into(),
            state: Some(state.into()),
            mtu: Some(1500),
            speed_mbps,
            ..Interface::default()
        };
        machine.interfaces =
            vec![one("ens1", "up", Some(25000.0)), one("ens2", "down", None), one("lo", "unknown", None)];
        assert_eq!(interfaces(&machine).as_deref(), Some("ens1, 25 Gbit/s, MTU 1500; 1 down"));
        let local = End {
            interface: Some("ens1\u{1b}[2J".into()),
            mtu: Some(9000),
            path_mtu: Some(1500),
            offloads: [("tso".to_string(), true), ("gro".to_string(), false)].into(),
            qdiscs: vec![Qdisc { kind: "tbf".into(), rate_bits: Some(1e9), ..Qdisc::default() }],
            ..End::default()
        };
        machine.network = Some(NetworkPath { local, remote: None });
        let ends = ends(&machine);
        assert_eq!(ends.len(), 1);
        assert!(
            ends[0].1.ends_with("MTU 9000, path MTU 1500, tso on, gro off, queueing tbf at 1 Gbit/s"),
            "{ends:?}"
        );
        assert!(!ends[0].1.contains('\u{1b}'));
    }
}
