//! The way that a network test takes, from `probe:network` (this end) and `probe:network-remote`
//! (what the server reported about its end), and the interfaces that /sys/class/net lists.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::text;
use model::vocabulary::network as ids;
use model::{CpuSet, Snapshot};

/// Both ends of the way, each as reported by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NetworkPath {
    pub local: End,
    /// What the other end reported; `None` where there was none (loopback, or only described).
    pub remote: Option<End>,
}

/// One end: its interface, its driver, its kernel. What was unknown is null or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct End {
    /// The other end's address, as this end knows it.
    pub to: Option<String>,
    pub interface: Option<String>,
    /// This end's address.
    pub address: Option<String>,
    pub gateway: Option<String>,
    /// `veth`, `bridge`, `bond`, `vlan`, …; null for plain hardware and the loopback.
    pub kind: Option<String>,
    /// Whether the interface is the kernel's loopback.
    pub loopback: bool,
    /// Whether no hardware stands behind the interface (by its place in /sys); null where it is not
    /// reported.
    pub software: Option<bool>,
    pub mtu: Option<u32>,
    /// What the path is known to carry, headers of IP included.
    pub path_mtu: Option<u32>,
    /// As the driver reports it: virtual ones may report anything.
    pub speed_mbps: Option<f64>,
    pub duplex: Option<String>,
    pub driver: Option<String>,
    /// Whether it is on, by name: `tso`, `gso`, `gro`, `lro`, `rx_checksum`, `tx_checksum`,
    /// `scatter_gather`.
    pub offloads: BTreeMap<String, bool>,
    pub numa_node: Option<u32>,
    pub irqs: Vec<Irq>,
    pub rx_queues: Option<u32>,
    pub tx_queues: Option<u32>,
    /// CPUs that received packets are handed on to by software (RPS), all queues together.
    pub rps_cpus: CpuSet,
    pub qdiscs: Vec<Qdisc>,
    /// Why queueing disciplines are unknown.
    pub qdisc_unknown: Option<String>,
    pub congestion: Option<String>,
    pub congestion_available: Vec<String>,
    /// Least, first and greatest size of a connection's buffers, bytes.
    pub tcp_rmem: Vec<u64>,
    pub tcp_wmem: Vec<u64>,
    /// The greatest that a program may ask for, bytes.
    pub rmem_max: Option<u64>,
    pub wmem_max: Option<u64>,
    pub kernel: Option<String>,
    pub cpus: CpuSet,
    /// CPUs that a server's tasks sit on, the nearest to its card first; empty where it does not
    /// report.
    pub seats: Vec<u32>,
    pub cpu_model: Option<String>,
    /// Shortest round trip of the connection over which this end reported this, us; null of
    /// this end itself.
    pub round_trip_us: Option<f64>,
    /// Equal at both ends where they are one machine (network namespaces, containers).
    pub boot: Option<String>,
}

/// An interrupt of the interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Irq {
    pub number: u32,
    pub name: String,
    /// Who takes it.
    pub cpus: CpuSet,
    /// Taken since the machine started, by CPU.
    pub counts: BTreeMap<u32, u64>,
}

/// A queueing discipline with what limits all packets alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Qdisc {
    pub kind: String,
    pub rate_bits: Option<f64>,
    pub delay_us: Option<f64>,
    pub loss: Option<f64>,
}

/// An interface as /sys/class/net has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Interface {
    pub name: String,
    pub mtu: Option<u32>,
    /// As the driver reports it: virtual ones may report anything.
    pub speed_mbps: Option<f64>,
    pub duplex: Option<String>,
    /// `up`, `down`, `unknown`, …
    pub state: Option<String>,
    pub numa_node: Option<u32>,
}

/// More lines of a kind than any machine has interrupts or queues are damage.
const MAX_LINES: usize = 4096;
/// No link is faster (Mbit/s), and none that a driver reports is slower.
const SPEEDS: std::ops::RangeInclusive<f64> = 1.0..=10e6;

pub fn parse(snapshot: &Snapshot) -> Option<NetworkPath> {
    let local = end(snapshot.text(ids::probe::NETWORK)?)?;
    Some(NetworkPath { local, remote: snapshot.text(ids::probe::NETWORK_REMOTE).and_then(end) })
}

/// What one end reports, line by line; `None` where not a single one can be read.
pub fn end(told: &str) -> Option<End> {
    let mut end = End::default();
    let mut any = false;
    for (name, value) in told.lines().take(MAX_LINES).filter_map(|line| line.split_once(' ')) {
        let text = || Some(value.trim().to_string()).filter(|text| !text.is_empty());
        any = true;
        match name {
            "to" => end.to = text(),
            "interface" => end.interface = text(),
            "address" => end.address = text(),
            "gateway" => end.gateway = text(),
            "kind" => end.kind = text(),
            // ARPHRD_LOOPBACK.
            "type" => end.loopback = value.trim() == "772",
            "virtual" => end.software = Some(value.trim() == "yes"),
            "mtu" => end.mtu = number(value),
            "path_mtu" => end.path_mtu = number(value),
            "speed_mbps" => end.speed_mbps = speed(value),
            "duplex" => end.duplex = text(),
            // The bus knows it where ethtool has no answer.
            "driver" => end.driver = text(),
            "device_driver" if end.driver.is_none() => end.driver = text(),
            "numa_node" => end.numa_node = number(value),
            "irq" => end.irqs.extend(irq(value)),
            "rx_queues" => end.rx_queues = number(value),
            "tx_queues" => end.tx_queues = number(value),
            "rps" => {
                let mask = value.rsplit(' ').next().and_then(CpuSet::parse_mask).unwrap_or_default();
                end.rps_cpus = end.rps_cpus.union(&mask);
            }
            "qdisc" => end.qdiscs.extend(qdisc(value)),
            "qdisc_unknown" => end.qdisc_unknown = text(),
            "congestion" => end.congestion = text(),
            "congestion_available" => {
                end.congestion_available = value.split_whitespace().map(str::to_string).collect();
            }
            "tcp_rmem" => end.tcp_rmem = numbers(value),
            "tcp_wmem" => end.tcp_wmem = numbers(value),
            "rmem_max" => end.rmem_max = number(value),
            "wmem_max" => end.wmem_max = number(value),
            "kernel" => end.kernel = text(),
            "cpus" => end.cpus = CpuSet::parse_list(value.trim()).unwrap_or_default(),
            "seats" => end.seats = value.split(',').take(MAX_LINES).filter_map(number).collect(),
            "cpu_model" => end.cpu_model = text(),
            "boot" => end.boot = text(),
            "round_trip_us" => {
                end.round_trip_us = number(value).filter(|us: &f64| us.is_finite() && *us > 0.0);
            }
            offload if OFFLOADS.contains(&offload) => {
                end.offloads.insert(offload.to_string(), value.trim() == "on");
            }
            _ => {}
        }
    }
    any.then_some(end)
}

const OFFLOADS: [&str; 7] = ["tso", "gso", "gro", "lro", "rx_checksum", "tx_checksum", "scatter_gather"];

fn number<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.trim().parse().ok()
}

fn numbers(value: &str) -> Vec<u64> {
    value.split_whitespace().take(3).map_while(|word| word.parse().ok()).collect()
}

fn speed(value: &str) -> Option<f64> {
    number::<f64>(value).filter(|speed| SPEEDS.contains(speed))
}

/// `41 virtio3-rx cpus=0 counts=0:16228,1:7`
fn irq(value: &str) -> Option<Irq> {
    let (own, rest) = value.split_once(' ')?;
    let (name, rest) = rest.split_once(" cpus=")?;
    let (cpus, counts) = rest.split_once(" counts=").unwrap_or((rest, ""));
    let counts = counts.split(',').filter_map(|pair| pair.split_once(':'));
    Some(Irq {
        number: number(own)?,
        name: name.trim().to_string(),
        cpus: CpuSet::parse_list(cpus.trim()).unwrap_or_default(),
        counts: counts.filter_map(|(cpu, count)| Some((number(cpu)?, number(count)?))).collect(),
    })
}

/// `tbf rate_bits=1000000000`
fn qdisc(value: &str) -> Option<Qdisc> {
    let mut words = value.split_whitespace();
    let mut qdisc = Qdisc { kind: words.next()?.to_string(), ..Qdisc::default() };
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        let value = number::<f64>(value).filter(|value| value.is_finite() && *value > 0.0);
        match name {
            "rate_bits" => qdisc.rate_bits = value,
            "delay_us" => qdisc.delay_us = value,
            "loss" => qdisc.loss = value.filter(|share| *share <= 1.0),
            _ => {}
        }
    }
    Some(qdisc)
}

/// Drivers and kinds whose speed is an invention: no wire stands behind them, or one that they know
/// nothing of.
const INVENT: [&str; 18] = [
    "veth",
    "virtio_net",
    "virtio-net",
    "tun",
    "tap",
    "bridge",
    "dummy",
    "ifb",
    "vmxnet3",
    "xen_netfront",
    "vif",
    "hv_netvsc",
    "wireguard",
    "vxlan",
    "geneve",
    "macvlan",
    "ipvlan",
    "netkit",
];

impl End {
    /// What the link carries, Gbit/s, where a driver of hardware reports it.
    pub fn link_gbits(&self) -> Option<f64> {
        let invents = |name: &Option<String>| name.as_deref().is_some_and(|name| INVENT.contains(&name));
        let real = !self.loopback && self.software == Some(false);
        let real = real && !invents(&self.driver) && !invents(&self.kind);
        self.speed_mbps.filter(|_| real).map(|speed| speed / 1e3)
    }

    pub fn offload(&self, name: &str) -> Option<bool> {
        self.offloads.get(name).copied()
    }

    /// The least rate that a queueing discipline of this end lets this many streams have together,
    /// Gbit/s, and its kind. fq's is a rate for each of them.
    pub fn shaped_gbits(&self, streams: f64) -> Option<(f64, &str)> {
        let rates = self.qdiscs.iter().filter_map(|qdisc| {
            let flows = if qdisc.kind == "fq" { streams.max(1.0) } else { 1.0 };
            Some((flows * qdisc.rate_bits? / 1e9, qdisc.kind.as_str()))
        });
        rates.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// CPUs that handle this interface's packets: those that took its interrupts (of them that
    /// may), and those to which software hands packets on.
    pub fn packet_cpus(&self) -> CpuSet {
        let took = |irq: &&Irq| -> CpuSet {
            let some = |cpu: &u32| irq.counts.get(cpu).is_some_and(|count| *count > 0);
            let took: CpuSet = irq.cpus.iter().filter(some).collect();
            if took.is_empty() { irq.cpus.clone() } else { took }
        };
        let of_irqs: Vec<CpuSet> = self.packet_irqs().iter().map(took).collect();
        CpuSet::union_of(of_irqs.iter()).union(&self.rps_cpus)
    }

    /// Interrupts that carry packets: those of queues, where names show it (`…-rx-0`, `…-TxRx-3`,
    /// `…-input.0`), else all.
    pub fn packet_irqs(&self) -> Vec<&Irq> {
        let carries = |irq: &&Irq| {
            let name = irq.name.to_ascii_lowercase();
            ["rx", "tx", "input", "output", "queue", "comp", "que"].iter().any(|word| name.contains(word))
        };
        let named: Vec<&Irq> = self.irqs.iter().filter(carries).collect();
        if named.is_empty() { self.irqs.iter().collect() } else { named }
    }
}

impl NetworkPath {
    /// Whether both ends are one machine: its loopback, or two namespaces of one kernel.
    pub fn one_machine(&self) -> bool {
        let both =
            self.remote.as_ref().and_then(|remote| Some((remote.boot.as_ref()?, self.local.boot.as_ref()?)));
        self.local.loopback || both.is_some_and(|(remote, local)| remote == local)
    }

    /// Both ends with the words for each.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, &End)> {
        [("this end", Some(&self.local)), ("the other end", self.remote.as_ref())]
            .into_iter()
            .filter_map(|(words, end)| Some((words, end?)))
    }

    /// Both ends with the words for each, and whether it sends in this direction (`send`,
    /// `receive`, `both`: this end's view).
    pub fn senders(&self, direction: &str) -> impl Iterator<Item = (&'static str, &End)> {
        let sends = move |words: &str| match direction {
            "both" => true,
            "receive" => words != "this end",
            _ => words == "this end",
        };
        self.ends().filter(move |(words, _)| sends(words))
    }

    /// The least MTU of the path that either end reports, bytes.
    pub fn least_mtu(&self) -> Option<u32> {
        self.ends().flat_map(|(_, end)| [end.path_mtu, end.mtu]).flatten().min()
    }

    /// The slower link of those that are reported, Gbit/s, and whose it is.
    pub fn link_gbits(&self) -> Option<(f64, &'static str)> {
        let told = self.ends().filter_map(|(words, end)| Some((end.link_gbits()?, words)));
        told.min_by(|one, other| one.0.total_cmp(&other.0))
    }
}

/// Interfaces by name; empty where nothing is reported of them.
pub fn interfaces(snapshot: &Snapshot) -> Vec<Interface> {
    let folder = "/sys/class/net";
    let of = |name: &str| {
        let file = |file: &str| format!("{folder}/{name}/{file}");
        let words = |path: String| text::words(snapshot, &path);
        Interface {
            name: name.to_string(),
            mtu: snapshot.number(&file("mtu")),
            speed_mbps: snapshot.text(&file("speed")).and_then(speed),
            duplex: words(file("duplex")).filter(|duplex| duplex != "unknown"),
            state: words(file("operstate")),
            numa_node: snapshot.number(&file("device/numa_node")),
        }
    };
    snapshot.children(folder).into_iter().take(MAX_LINES).map(of).collect()
}

#[cfg(test)]
mod tests;
