//! The options of network benchmarks: the other host, its token, and how to measure.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use anyhow::{Context, bail};

use bench::network_path::{self, Probe};
use bench::placement::Placements;
use bench::{
    Candidate, NetworkOverrides as Wish, Scope, Secret, network_cases, network_seats as seats,
    remote_description,
};
use machine::Machine;
use model::vocabulary::network::probe;
use model::{Entry, Snapshot};
use sys::netlink;

#[derive(clap::Args, Default)]
#[command(next_help_heading = "Network")]
pub struct NetworkArgs {
    /// Host where `assay serve` runs [default: loopback]
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<String>,
    /// Token of `assay serve` [default: $ASSAY_TOKEN, hidden from ps]
    #[arg(long, value_name = "TOKEN", requires = "to")]
    token: Option<String>,
    /// Accept a token of fewer than 22 characters (can be guessed)
    #[arg(long, requires = "to")]
    weak_token: bool,
    /// Rate of transfers in Mbit/s [default: as fast as possible]
    #[arg(long, value_name = "MBIT/S", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: Option<u64>,
    /// Congestion control, such as bbr or cubic [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Connections at once [default: the profile's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=128))]
    streams: Option<u64>,
    /// Direction of transfers, as seen from here [default: both]
    #[arg(long, value_name = "WHICH", requires = "to", value_parser = ["send", "receive", "both"])]
    direction: Option<String>,
}

/// Where `assay serve` listens; not registered for anything else that servers run.
pub const PORT: u16 = 4711;

/// The variable with the token, if no argument is given.
pub const TOKEN: &str = "ASSAY_TOKEN";

/// Shortest token: at random, more than 128 bits of letters and digits.
const MIN_TOKEN_CHARS: usize = 22;
/// Random tokens have more different characters than this.
const DIFFERENT: usize = 8;

/// The token that the user named, as an argument or in the environment.
pub fn given(argument: Option<String>) -> Option<String> {
    argument.or_else(|| std::env::var(TOKEN).ok()).filter(|token| !token.is_empty())
}

/// Why this token is refused, unless weak ones are allowed.
pub fn weakness(token: &str, weak: bool) -> Option<String> {
    let count = token.chars().count();
    let different = token.chars().collect::<BTreeSet<char>>().len();
    ((count < MIN_TOKEN_CHARS || different < DIFFERENT) && !weak).then(|| {
        format!(
            "a token of {count} characters ({different} different ones) can be guessed from a recorded \
              session: use the one that `assay serve` makes, or at least {MIN_TOKEN_CHARS} random characters \
              (`openssl rand -hex 16`); on a private link, add --weak-token at both ends"
        )
    })
}

/// The connection to the other host: how to measure, and the descriptions of both ends.
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

    /// Why these options are refused before anything is done.
    pub fn refused(&self) -> Option<String> {
        let token = self.to.as_ref().and_then(|_| given(self.token.clone()))?;
        weakness(&token, self.weak_token)
    }

    /// Asks the other host for its description, unless this is a dry run. An error says why it
    /// cannot be the other end.
    pub fn settle(&self, dry_run: bool) -> anyhow::Result<Network> {
        let to = self.to.as_deref().map(with_port).transpose()?;
        let wish = Wish {
            to: to.clone(),
            rate: self.rate,
            congestion: self.congestion.clone(),
            streams: self.streams,
            direction: self.direction.clone(),
            near: Vec::new(),
            cores: Vec::new(),
        };
        let Some(to) = to else {
            let localhost = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
            let local = network_path::describe(Some(localhost), Probe::Nothing);
            return Ok(Network { wish, secret: None, local, remote: None });
        };
        if dry_run {
            let address = to.to_socket_addrs().ok().and_then(|mut all| all.next());
            let local = network_path::describe(address, Probe::Nothing);
            return Ok(Network { wish, secret: None, local, remote: None });
        }
        let token = given(self.token.clone()).with_context(|| {
            format!("--to needs the token that `assay serve` printed: set {TOKEN} or add --token")
        })?;
        let (remote, address) = remote_description(&to, &token)?;
        let local = network_path::describe(Some(address), Probe::Datagram);
        Ok(Network { wish, secret: Some(Secret(token)), local, remote: Some(remote) })
    }
}

impl Network {
    /// Stores the descriptions of both ends in a snapshot.
    pub fn store(&self, snapshot: &mut Snapshot) {
        snapshot.entries.insert(probe::NETWORK.to_string(), Entry::Text(self.local.clone()));
        if let Some(remote) = &self.remote {
            snapshot.entries.insert(probe::NETWORK_REMOTE.to_string(), Entry::Text(remote.clone()));
        }
    }

    /// The candidates of a plan, those of the network with these options.
    pub fn supply(&self, candidates: Vec<Candidate>, scope: &Scope) -> Vec<Candidate> {
        let mut wish = self.wish.clone();
        if wish.to.is_some() {
            wish.near = near(scope.machine, scope.placements);
            let end = scope.machine.network.as_ref().map(|path| &path.local);
            wish.cores =
                end.map(|end| seats::by_nearness(scope.machine, scope.placements, end)).unwrap_or_default();
        }
        network_cases(candidates, scope, &wish)
    }
}

/// Usable CPUs by their position relative to the network card, as far as known: on the card's node
/// but not the CPU of its interrupts, that CPU itself, another node.
fn near(machine: &Machine, placements: &Placements) -> Vec<(&'static str, u32)> {
    let Some(path) = &machine.network else { return Vec::new() };
    let usable = placements.cpus();
    let irq = seats::busiest(&path.local, &usable);
    let node = seats::node_of(machine, placements, &path.local);
    let first = |fits: &dyn Fn(u32) -> bool| {
        // Not CPU 0, if there is another: most unpinned work runs there.
        usable
            .iter()
            .filter(|cpu| Some(*cpu) != irq && fits(*cpu))
            .max_by_key(|cpu| (*cpu != 0, std::cmp::Reverse(*cpu)))
    };
    let beside = node.as_ref().and_then(|node| first(&|cpu| node.contains(cpu)));
    let far = node.as_ref().and_then(|node| first(&|cpu| !node.contains(cpu)));
    [("nic-node", beside), ("nic-irq", irq), ("other-node", far)]
        .into_iter()
        .filter_map(|(name, cpu)| Some((name, cpu?)))
        .collect()
}

/// Whether an address is one of a single link only: several interfaces may have the same.
pub fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// An address, with an interface after % if it is link-local (`fe80::1%eth0` or an interface
/// number); its port is 0.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let (ip, interface) = match text.split_once('%') {
        None => (text, None),
        Some((ip, interface)) => (ip, Some(interface)),
    };
    let ip: IpAddr = ip.parse().map_err(|_| format!("{ip:?} is not an address"))?;
    match (ip, interface) {
        (IpAddr::V6(ip), Some(interface)) if is_link_local(ip.into()) => {
            let number = interface.parse::<u32>().ok().filter(|number| *number > 0);
            let number = number.map_or_else(|| netlink::number_of(interface), Ok);
            let number = number.map_err(|error| {
                format!("no interface {interface:?} ({error}): `ip link` lists the interfaces of this host")
            })?;
            Ok(SocketAddrV6::new(ip, 0, 0, number).into())
        }
        (ip, Some(_)) => Err(format!("{ip} is not link-local (fe80::…) and takes no interface")),
        (ip, None) if is_link_local(ip) => {
            Err(format!("{ip} is link-local: add the interface of this host, such as {ip}%eth0"))
        }
        (ip, None) => Ok(SocketAddr::new(ip, 0)),
    }
}

/// Adds Assay's port if none is given, and the interface number if one is.
fn with_port(to: &str) -> anyhow::Result<String> {
    if to.is_empty() || to.contains(char::is_whitespace) || to.contains('/') {
        bail!("--to takes a host or an address, with a port if it is not {PORT}, not {to:?}");
    }
    let named = match to.rsplit_once(':') {
        // Several colons: an IPv6 address, whose port follows a bracket.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => port.parse::<u16>().is_ok(),
        _ => false,
    };
    let to = match named {
        true => to.to_string(),
        false if to.contains(':') && !to.starts_with('[') => format!("[{to}]:{PORT}"),
        false => format!("{to}:{PORT}"),
    };
    let Some((text, port)) = to.strip_prefix('[').and_then(|rest| rest.split_once("]:")) else {
        return Ok(to);
    };
    let needs_interface = text.parse().is_ok_and(|ip: Ipv6Addr| is_link_local(ip.into()));
    if !text.contains('%') && !needs_interface {
        return Ok(to);
    }
    let mut address = address(text).map_err(|why| anyhow::anyhow!("--to {text}: {why}"))?;
    address.set_port(port.parse().with_context(|| format!("--to: {port:?} is not a port"))?);
    Ok(address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_added_where_none_is_named() {
        let told = |to: &str| with_port(to).expect("a host");
        assert_eq!(told("db1"), "db1:4711");
        assert_eq!(told("db1:99"), "db1:99");
        assert_eq!(told("2001:db8::1"), "[2001:db8::1]:4711");
        assert_eq!(told("[2001:db8::1]"), "[2001:db8::1]:4711");
        assert_eq!(told("[2001:db8::1]:99"), "[2001:db8::1]:99");
        assert!(with_port("").is_err() && with_port("a b").is_err() && with_port("http://x").is_err());
    }

    #[test]
    fn short_tokens_are_weak() {
        let of = |count: usize| "éabcdefghijklmnopqrstuv".chars().take(count).collect::<String>();
        let told = weakness(&of(21), false).expect("characters count, not bytes");
        assert!(told.contains("21 characters") && told.contains("--weak-token"), "{told}");
        assert_eq!(weakness(&of(22), false), None);
        assert_eq!(weakness(&"x".repeat(40), true), None);
        for few in ["x".repeat(40), "abcdefg".repeat(9)] {
            assert!(weakness(&few, false).is_some_and(|told| told.contains("different")), "{few}");
        }
    }

    #[test]
    fn link_local_addresses_are_of_an_interface() {
        let told = |to: &str| with_port(to).map_err(|error| format!("{error:#}"));
        // The loopback is every namespace's first interface.
        for to in ["fe80::7%lo", "[fe80::7%lo]", "[fe80::7%1]:4711"] {
            assert_eq!(told(to), Ok("[fe80::7%1]:4711".to_string()), "{to}");
        }
        assert!(told("fe80::7").is_err_and(|why| why.contains("fe80::7%eth0")));
        assert!(told("[fe80::7]:99").is_err_and(|why| why.contains("add the interface")));
        assert!(
            told("fe80::7%nosuch").is_err_and(|why| why.contains("\"nosuch\"") && why.contains("ip link"))
        );
        assert!(told("2001:db8::1%lo").is_err_and(|why| why.contains("is not link-local")));
        assert!(address("10.0.0.1%lo").is_err() && address("db1").is_err() && address("::").is_ok());
        let SocketAddr::V6(scoped) = address("fe80::7%lo").expect("an address") else { panic!("version 6") };
        assert_eq!(scoped.scope_id(), 1);
    }

    #[test]
    fn cpus_near_the_card_are_those_that_are_told() {
        let mut snapshot = Snapshot::default();
        let list = |text: &str| Entry::Text(text.to_string());
        snapshot.entries.insert("/sys/devices/system/cpu/online".into(), list("0-3"));
        let machine = Machine::from(&snapshot);
        assert!(near(&machine, &Placements::of(&machine)).is_empty(), "an empty machine has no card");
        let mut machine = machine;
        let mut path = machine::NetworkPath::default();
        path.local.irqs.push(machine::Irq { counts: [(1, 50), (2, 7)].into(), ..Default::default() });
        machine.network = Some(path.clone());
        // A virtual card reports no node, and the host has one.
        assert_eq!(near(&machine, &Placements::of(&machine)), [("nic-node", 2), ("nic-irq", 1)]);
        path.local.numa_node = Some(1);
        machine.network = Some(path);
        for (id, cpus) in [(0, 2..4), (1, 0..2)] {
            machine.nodes.push(machine::Node { id, cpus: cpus.collect(), ..Default::default() });
        }
        assert_eq!(
            near(&machine, &Placements::of(&machine)),
            [("nic-node", 0), ("nic-irq", 1), ("other-node", 2)]
        );
    }
}
