//! Queries to the kernel's routing socket (rtnetlink(7)): the route to an address, interfaces and
//! their queueing disciplines. Read-only, and no packet leaves the host.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

// Types of messages, and flags (linux/rtnetlink.h, linux/netlink.h).
const DONE: u16 = 3;
const ERROR: u16 = 2;
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const GET_ROUTE: u16 = 26;
const NEW_ROUTE: u16 = 24;
const GET_QDISC: u16 = 38;
const NEW_QDISC: u16 = 36;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;

/// The route to an address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// The interface's number.
    pub interface: u32,
    /// The source address of packets.
    pub source: Option<IpAddr>,
    pub gateway: Option<IpAddr>,
}

/// The route of packets to this address, looked up by the kernel. Ignores the port; for a
/// link-local address the scope selects the interface.
pub fn route(to: SocketAddr) -> io::Result<Route> {
    let (family, bytes) = match to.ip() {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    };
    let mut body = vec![0; 12];
    (body[0], body[1]) = (family, 8 * bytes.len() as u8);
    push(&mut body, 1, &bytes);
    if let SocketAddr::V6(scoped) = to
        && scoped.scope_id() > 0
    {
        push(&mut body, 4, &scoped.scope_id().to_ne_bytes());
    }
    query_one(GET_ROUTE, &body, NEW_ROUTE, read_route)
}

fn read_route(message: &[u8]) -> Option<Route> {
    let mut route = Route::default();
    for (kind, value) in attributes(message.get(12..)?) {
        match kind {
            4 => route.interface = number(value)?,
            5 => route.gateway = address(value),
            7 => route.source = address(value),
            _ => {}
        }
    }
    (route.interface > 0).then_some(route)
}

/// The number of the interface with this name.
pub fn number_of(name: &str) -> io::Result<u32> {
    // Any socket serves.
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}

/// A network interface: its name and kind (`veth`, `bridge`, `bond`, …; `None` for hardware).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    pub name: String,
    pub kind: Option<String>,
}

pub fn interface(number: u32) -> io::Result<Interface> {
    let mut body = vec![0; 16];
    body[4..8].copy_from_slice(&number.to_ne_bytes());
    query_one(GET_LINK, &body, NEW_LINK, read_interface)
}

fn query_one<T>(kind: u16, body: &[u8], wanted: u16, read: impl Fn(&[u8]) -> Option<T>) -> io::Result<T> {
    let messages = query(kind, 0, body, wanted)?;
    let found = messages.first().and_then(|message| read(message));
    found.ok_or_else(|| io::Error::other("the kernel's answer names no interface"))
}

fn read_interface(message: &[u8]) -> Option<Interface> {
    let mut found = Interface::default();
    for (kind, value) in attributes(message.get(16..)?) {
        match kind {
            3 => found.name = text(value),
            18 => found.kind = attribute(value, 1).map(text),
            _ => {}
        }
    }
    (!found.name.is_empty()).then_some(found)
}

/// A queueing discipline: its kind and the parameters that apply to all packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Qdisc {
    pub kind: String,
    /// Limit of the rate, bits per second (tbf, cake, netem; fq: per connection).
    pub rate_bits: Option<f64>,
    /// Added delay (netem), µs.
    pub delay_us: Option<f64>,
    /// Share of the packets that netem drops, 0..1.
    pub loss: Option<f64>,
}

/// The distinct queueing disciplines of an interface.
pub fn qdiscs(interface: u32) -> io::Result<Vec<Qdisc>> {
    let mut body = vec![0; 20];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    let mut found: Vec<Qdisc> = Vec::new();
    for message in query(GET_QDISC, DUMP, &body, NEW_QDISC)? {
        let matches = message.get(4..8).and_then(number) == Some(interface);
        if let Some(qdisc) = message.get(20..).filter(|_| matches).and_then(read_qdisc)
            && !found.contains(&qdisc)
        {
            found.push(qdisc);
        }
    }
    Ok(found)
}

fn read_qdisc(message: &[u8]) -> Option<Qdisc> {
    let mut qdisc = Qdisc { kind: text(attribute(message, 1)?), ..Qdisc::default() };
    let options = attribute(message, 2).unwrap_or_default();
    let option = |wanted: u16| attribute(options, wanted);
    let bits = |bytes: u64| (bytes > 0).then_some(8.0 * bytes as f64);
    let short = |value: &[u8]| number(value).filter(|rate| *rate != u32::MAX).map(u64::from);
    match qdisc.kind.as_str() {
        "tbf" => {
            let plain = option(1).and_then(|parameters| short(parameters.get(8..)?));
            qdisc.rate_bits = option(4).and_then(long).or(plain).and_then(bits);
        }
        "fq" => qdisc.rate_bits = option(7).and_then(short).and_then(bits),
        "cake" => qdisc.rate_bits = option(2).and_then(long).and_then(bits),
        "netem" => {
            // A structure of six numbers precedes the attributes.
            let lost = options.get(8..).and_then(number).filter(|lost| *lost > 0);
            qdisc.loss = lost.map(|lost| f64::from(lost) / f64::from(u32::MAX));
            let option = |wanted: u16| attribute(options.get(24..).unwrap_or_default(), wanted);
            qdisc.delay_us = option(10).and_then(long).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e3);
            qdisc.rate_bits = option(6).and_then(short).and_then(bits);
        }
        _ => {}
    }
    Some(qdisc)
}

// Limits of an answer: messages, bytes of a message, waiting time (the kernel answers at once).
const MAX_MESSAGES: usize = 4096;
const MAX_MESSAGE_BYTES: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a query and returns the bodies of all messages of the wanted type.
fn query(kind: u16, flags: u16, body: &[u8], wanted: u16) -> io::Result<Vec<Vec<u8>>> {
    // Protocol 0 is NETLINK_ROUTE.
    let socket: OwnedFd =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![MaybeUninit::uninit(); MAX_MESSAGE_BYTES];
    for _ in 0..MAX_MESSAGES {
        let ((bytes, _), _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        match collect(bytes, wanted, &mut found)? {
            Progress::Ended => return Ok(found),
            // Without DUMP the answer is a single message.
            Progress::Continues if flags & DUMP == 0 || bytes.is_empty() => return Ok(found),
            Progress::Continues => {}
        }
    }
    Ok(found)
}

#[derive(Debug, PartialEq)]
enum Progress {
    Continues,
    Ended,
}

/// Extracts the wanted messages from one piece of an answer.
fn collect(bytes: &[u8], wanted: u16, found: &mut Vec<Vec<u8>>) -> io::Result<Progress> {
    let mut rest = bytes;
    while let Some(length) = number(rest).map(|length| length as usize) {
        let Some(message) = rest.get(..length).filter(|message| message.len() >= 16) else { break };
        let kind = u16::from_ne_bytes([message[4], message[5]]);
        match kind {
            DONE => return Ok(Progress::Ended),
            ERROR => {
                let code = message.get(16..).and_then(number).unwrap_or(0) as i32;
                return match code {
                    0 => Ok(Progress::Ended),
                    code => Err(io::Error::from_raw_os_error(code.checked_neg().unwrap_or(libc::EIO))),
                };
            }
            kind if kind == wanted => found.push(message[16..].to_vec()),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Progress::Continues)
}

fn push(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend((4 + value.len() as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The value of the first attribute of a kind.
fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// Kinds and values of the attributes in these bytes, up to the first truncated one.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The two highest bits are flags.
        Some((kind & 0x3fff, value))
    })
}

fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?))
}

fn long(value: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?))
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?))),
        16 => Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?))),
        _ => None,
    }
}

fn text(value: &[u8]) -> String {
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_by_its_address() {
        let localhost = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let route = route(localhost).expect("every kernel has a route to itself");
        assert_eq!(number_of("lo").expect("its number"), route.interface);
        assert!(number_of("no-such-interface").is_err());
        let found = interface(route.interface).expect("it has a name");
        assert_eq!(found.name, "lo");
        assert_eq!(route.gateway, None);
        assert!(qdiscs(route.interface).is_ok());
        assert!(interface(u32::MAX / 2).is_err());
    }

    fn qdisc(kind: &str, options: &[u8]) -> Qdisc {
        let mut rest = Vec::new();
        push(&mut rest, 1, format!("{kind}\0").as_bytes());
        push(&mut rest, 2, options);
        read_qdisc(&rest).expect("it has a kind")
    }

    #[test]
    fn rates_of_disciplines_are_read() {
        let mut parameters = vec![0; 36];
        parameters[8..12].copy_from_slice(&12_500_000u32.to_ne_bytes());
        let mut options = Vec::new();
        push(&mut options, 1, &parameters);
        assert_eq!(qdisc("tbf", &options).rate_bits, Some(1e8));
        // A rate above 32 bits has an attribute of its own.
        push(&mut options, 4, &1_250_000_000u64.to_ne_bytes());
        assert_eq!(qdisc("tbf", &options).rate_bits, Some(1e10));
        let mut options = Vec::new();
        push(&mut options, 7, &u32::MAX.to_ne_bytes());
        assert_eq!(qdisc("fq", &options).rate_bits, None, "fq limits nothing");
        let mut options = vec![0; 24];
        options[8..12].copy_from_slice(&(u32::MAX / 50).to_ne_bytes());
        push(&mut options, 10, &20_000_000u64.to_ne_bytes());
        let netem = qdisc("netem", &options);
        assert!((netem.loss.unwrap_or(0.0) - 0.02).abs() < 1e-6, "{netem:?}");
        assert_eq!((netem.delay_us, netem.rate_bits), (Some(20_000.0), None));
        assert_eq!(qdisc("pfifo_fast", &[1, 2, 3]), Qdisc { kind: "pfifo_fast".into(), ..Qdisc::default() });
    }

    #[test]
    fn any_bytes_are_read_or_skipped() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..20_000 {
            let bytes: Vec<u8> =
                (0..random.usize(..80)).map(|_| if random.bool() { random.u8(..) } else { 0 }).collect();
            let mut found = Vec::new();
            let _ = collect(&bytes, NEW_QDISC, &mut found);
            let _ = (read_route(&bytes), read_interface(&bytes), read_qdisc(&bytes));
            assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
