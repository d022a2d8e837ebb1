//! The options of network rows: the other host, its token, and what is wanted of the rows.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use anyhow::{Context, bail};

use crate::bench::{
    Candidate, NetworkWish as Wish, Scope, Secret, network_cases, network_path, remote_description,
};
use crate::machine::{End, Machine, network};
use crate::model::{CpuSet, Entry, Snapshot};
use crate::placement::Floor;

#[derive(clap::Args, Default)]
pub struct NetworkArgs {
    /// Other end of the network rows: a host where `assay serve` runs (without it they go over loopback)
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<String>,
    /// Token that `assay serve` printed; better in the environment as ASSAY_TOKEN, where nobody else sees it
    #[arg(long, value_name = "TOKEN", requires = "to")]
    token: Option<String>,
    /// Pace the network's transfers at this rate, Mbit/s, instead of as fast as they go
    #[arg(long, value_name = "MBIT/S", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: Option<u64>,
    /// Congestion control of the network rows, like bbr or cubic (else the system's)
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Connections at once in the network rows, instead of the profile's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=128))]
    streams: Option<u64>,
    /// Only transfers in this direction, as this end sees it
    #[arg(long, value_name = "WHICH", requires = "to", value_parser = ["send", "receive", "both"])]
    direction: Option<String>,
}

/// Where `assay serve` listens; not registered for anything else that servers run.
pub const PORT: u16 = 4711;

/// The variable that holds the token where no argument does.
pub const TOKEN: &str = "ASSAY_TOKEN";

/// What was settled: how network rows are to be measured, and what both ends tell of themselves.
#[derive(Clone, Debug)]
pub struct Network {
    pub wish: Wish,
    pub secret: Option<Secret>,
    local: String,
    remote: Option<String>,
}

impl NetworkArgs {
    pub fn any(&self) -> bool {
        self.to.is_some() || self.rate.is_some() || self.congestion.is_some() || self.streams.is_some()
    }

    /// Asks the other host what it is, unless nothing is going to be done. An error says why it cannot be the other end.
    pub fn settle(&self, dry_run: bool) -> anyhow::Result<Network> {
        let to = self.to.as_deref().map(with_port).transpose()?;
        let token =
            self.token.clone().or_else(|| std::env::var(TOKEN).ok()).filter(|token| !token.is_empty());
        let wish = Wish {
            to: to.clone(),
            rate: self.rate,
            congestion: self.congestion.clone(),
            streams: self.streams,
            direction: self.direction.clone(),
            near: Vec::new(),
        };
        let Some(to) = to else {
            let local = network_path::describe(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            return Ok(Network { wish, secret: None, local, remote: None });
        };
        if dry_run {
            let address =
                to.to_socket_addrs().ok().and_then(|mut all| all.next()).map(|address| address.ip());
            return Ok(Network { wish, secret: None, local: network_path::describe(address), remote: None });
        }
        let token = token.with_context(|| {
            format!("--to needs the token that `assay serve` printed: --token, or {TOKEN}")
        })?;
        let (remote, address) = remote_description(&to, &token)?;
        let local = network_path::describe(Some(address));
        Ok(Network { wish, secret: Some(Secret(token)), local, remote: Some(remote) })
    }
}

impl Network {
    /// Puts what both ends tell into a snapshot.
    pub fn store(&self, snapshot: &mut Snapshot) {
        snapshot.entries.insert(network::PROBE.to_string(), Entry::Text(self.local.clone()));
        if let Some(remote) = &self.remote {
            snapshot.entries.insert(network::PROBE_REMOTE.to_string(), Entry::Text(remote.clone()));
        }
    }

    /// The candidates of a plan, those of the network as they are wanted.
    pub fn supply(&self, candidates: Vec<Candidate>, scope: &Scope) -> Vec<Candidate> {
        let mut wish = self.wish.clone();
        if wish.to.is_some() {
            wish.near = near(scope.machine, scope.floor);
        }
        network_cases(candidates, scope, &wish)
    }
}

/// Usable CPUs by their place relative to the network card, as far as this machine tells: on the card's node beside the
/// CPU that takes its interrupts, that CPU itself, another node.
fn near(machine: &Machine, floor: &Floor) -> Vec<(&'static str, u32)> {
    let Some(path) = &machine.network else { return Vec::new() };
    let usable = floor.cpus();
    let irq = busiest(&path.local, &usable);
    let node = path.local.numa_node.and_then(|id| machine.nodes.iter().find(|node| node.id == id));
    let first = |fits: &dyn Fn(u32) -> bool| {
        // Not CPU 0, if there is another: it serves most of what is not pinned.
        usable
            .iter()
            .filter(|cpu| Some(*cpu) != irq && fits(*cpu))
            .max_by_key(|cpu| (*cpu != 0, std::cmp::Reverse(*cpu)))
    };
    let beside = node.and_then(|node| first(&|cpu| node.cpus.contains(cpu)));
    let far = node.and_then(|node| first(&|cpu| !node.cpus.contains(cpu)));
    [("nic-node", beside), ("nic-irq", irq), ("other-node", far)]
        .into_iter()
        .filter_map(|(name, cpu)| Some((name, cpu?)))
        .collect()
}

/// The usable CPU that took most of the card's interrupts.
fn busiest(end: &End, usable: &CpuSet) -> Option<u32> {
    let taken = |cpu: u32| end.irqs.iter().filter_map(|irq| irq.counts.get(&cpu)).sum::<u64>();
    usable.iter().filter(|cpu| taken(*cpu) > 0).max_by_key(|cpu| taken(*cpu))
}

/// With our own port where none is named.
fn with_port(to: &str) -> anyhow::Result<String> {
    if to.is_empty() || to.contains(char::is_whitespace) || to.contains('/') {
        bail!("--to takes a host or an address, with a port if it is not {PORT}: {to:?} is none");
    }
    let named = match to.rsplit_once(':') {
        // Several colons: an address of version 6, whose port stands after a bracket.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => port.parse::<u16>().is_ok(),
        _ => false,
    };
    Ok(match named {
        true => to.to_string(),
        false if to.contains(':') && !to.starts_with('[') => format!("[{to}]:{PORT}"),
        false => format!("{to}:{PORT}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_added_where_none_is_named() {
        let told = |to: &str| with_port(to).expect("a host");
        assert_eq!(told("db1"), "db1:4711");
        assert_eq!(told("db1:99"), "db1:99");
        assert_eq!(told("fe80::1"), "[fe80::1]:4711");
        assert_eq!(told("[fe80::1]"), "[fe80::1]:4711");
        assert_eq!(told("[fe80::1]:99"), "[fe80::1]:99");
        assert!(with_port("").is_err() && with_port("a b").is_err() && with_port("http://x").is_err());
    }

    #[test]
    fn cpus_near_the_card_are_those_that_are_told() {
        let mut snapshot = Snapshot::default();
        let list = |text: &str| Entry::Text(text.to_string());
        snapshot.entries.insert("/sys/devices/system/cpu/online".into(), list("0-3"));
        let machine = Machine::from(&snapshot);
        assert!(near(&machine, &Floor::of(&machine)).is_empty(), "nothing is told");
        let mut machine = machine;
        let mut path = crate::machine::NetworkPath::default();
        path.local.irqs.push(crate::machine::Irq { counts: [(1, 50), (2, 7)].into(), ..Default::default() });
        machine.network = Some(path.clone());
        assert_eq!(near(&machine, &Floor::of(&machine)), [("nic-irq", 1)]);
        path.local.numa_node = Some(1);
        machine.network = Some(path);
        for (id, cpus) in [(0, 2..4), (1, 0..2)] {
            machine.nodes.push(crate::machine::Node { id, cpus: cpus.collect(), ..Default::default() });
        }
        assert_eq!(
            near(&machine, &Floor::of(&machine)),
            [("nic-node", 0), ("nic-irq", 1), ("other-node", 2)]
        );
    }
}
