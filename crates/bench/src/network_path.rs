//! The path of a network test, described at one end: the address, the interface that leads to it,
//! and what its driver, the kernel's files and the routing socket report. Both ends give the same
//! lines; `machine::network` reads them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::sockopt;

use snapshot::network;
use sys::{ethtool, netlink};

/// A text longer than this is cut at the end of a line.
const LONGEST: usize = 64 << 10;

/// Where no other end is named: the way to the world. The address is one of those set aside for
/// documentation (RFC 5737), and nothing is sent to it.
const WORLD: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 0);

/// Whether the way may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Nothing is sent.
    Nothing,
    /// To an address that is not this host's own, one datagram of the interface's size is sent
    /// (to the port for throwing away, RFC 863): a hop that carries less says so, and the kernel
    /// then knows the path's MTU.
    Datagram,
}

/// Lines of a name and a value of the way to this address; `None`: of the way to the world. What
/// cannot be found out is left out, or a line `NAME_unknown` says why; it never fails. The
/// address's port is of no matter.
pub fn describe(to: Option<SocketAddr>, probe: Probe) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&format!("{name} {value}\n"));
    if let Some(to) = to {
        line("to", &to.ip().to_string());
    }
    let way = netlink::route(to.unwrap_or(WORLD));
    let interface = way.as_ref().ok().and_then(|way| netlink::interface(way.interface).ok());
    match &way {
        Err(why) => line("interface_unknown", &why.to_string()),
        // A description of a host alone does not show its addresses.
        Ok(_) if to.is_none() => {}
        Ok(way) => {
            let source = way.source.map(|source| source.to_string());
            source.iter().for_each(|source| line("address", source));
            way.gateway.iter().for_each(|gateway| line("gateway", &gateway.to_string()));
        }
    }
    let mut mtu = None;
    if let (Ok(way), Some(interface)) = (&way, &interface) {
        line("interface", &interface.name);
        interface.kind.iter().for_each(|kind| line("kind", kind));
        for (name, value) in ethtool::settings(&interface.name) {
            line(name, &value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        match netlink::qdiscs(way.interface) {
            Err(why) => line("qdisc_unknown", &why.to_string()),
            Ok(qdiscs) => qdiscs.iter().for_each(|qdisc| line("qdisc", &words(qdisc))),
        }
        let files = network::of_interface(&interface.name);
        mtu = files.lines().find_map(|line| line.strip_prefix("mtu ")?.parse().ok());
        text.push_str(&files);
    }
    if let Some(path_mtu) = to.and_then(|to| path_mtu(to, mtu.filter(|_| probe == Probe::Datagram))) {
        text.push_str(&format!("path_mtu {path_mtu}\n"));
    }
    text.push_str(&network::of_kernel());
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        let end = text[..end].rfind('\n').map_or(0, |end| end + 1);
        text.truncate(end);
    }
    text
}

fn words(qdisc: &netlink::Qdisc) -> String {
    let mut words = qdisc.kind.clone();
    let parts = [("rate_bits", qdisc.rate_bits), ("delay_us", qdisc.delay_us), ("loss", qdisc.loss)];
    for (name, value) in parts {
        value.iter().for_each(|value| words.push_str(&format!(" {name}={value}")));
    }
    words
}

/// What a hop answers takes a round trip; beyond this we do not wait.
const LOOKS: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(50);
/// RFC 863.
const DISCARD: u16 = 9;
/// Headers of IP (version 4, version 6) and of UDP.
const HEADERS: [usize; 2] = [28, 48];

/// The MTU that the kernel knows for the way to this address; where the interface's is given, after
/// one datagram that fills it.
fn path_mtu(mut to: SocketAddr, interface: Option<usize>) -> Option<u32> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).ok()?;
    to.set_port(DISCARD);
    socket.connect(to).ok()?;
    let known = || match to {
        SocketAddr::V4(_) => sockopt::ip_mtu(&socket).ok(),
        SocketAddr::V6(_) => sockopt::ipv6_mtu(&socket).ok(),
    };
    let own = socket.local_addr().is_ok_and(|own| own.ip() == to.ip()) || to.ip().is_loopback();
    if let Some(mtu) = interface.filter(|mtu| !own && (576..=9600).contains(mtu)) {
        let discover = match to {
            SocketAddr::V4(_) => sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::DO),
            SocketAddr::V6(_) => sockopt::set_ipv6_mtu_discover(&socket, sockopt::Ipv6PathMtuDiscovery::DO),
        };
        let payload = vec![0; mtu - HEADERS[usize::from(to.is_ipv6())]];
        if discover.is_ok() && socket.send(&payload).is_ok() {
            for _ in 0..LOOKS {
                std::thread::sleep(BETWEEN);
                if known().is_some_and(|known| (known as usize) < mtu) {
                    break;
                }
            }
        }
    }
    known()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_ourselves_is_the_loopback() {
        let text = describe(Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)), Probe::Datagram);
        assert!(text.starts_with("to 127.0.0.1\n") && text.contains("\ninterface lo\n"), "{text}");
        assert!(text.contains("\npath_mtu ") && text.contains("\nkernel "), "{text}");
        assert!(text.lines().all(|line| line.split_once(' ').is_some_and(|(_, value)| !value.is_empty())));
        assert!(text.len() <= LONGEST);
        // A host without a way to the world says so, or names the interface.
        let world = describe(None, Probe::Nothing);
        assert!(world.contains("interface"), "{world}");
    }
}
