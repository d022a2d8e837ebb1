//! The server's side of one session: does what its client asks for, within bounds, until the client leaves.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::conduct::{Place, conduct, tune, tune_connected};
use super::link::{Link, canonical};
use super::wire::{COOKIE_BYTES, Keys};
use super::words::{Account, Echo, Protocol, Reply, Report, Request, Side, Transfer};
use crate::model::CpuSet;
use crate::sys::affinity;
use crate::sys::counters::NetworkCounters;
use crate::sys::netlink;
use crate::sys::process;

/// A client that asks for nothing for so long is sent away.
const IDLE: Duration = Duration::from_secs(15);
/// Data connections of a test are all there by then.
const CONNECT: Duration = Duration::from_secs(5);
/// One of them has said its cookie by then.
const COOKIE: Duration = Duration::from_millis(500);
/// Echoes go on for so long at most.
const ECHO: Duration = Duration::from_secs(120);
const QUEUE: i32 = 128;

/// What a session needs to know.
pub struct Host<'a> {
    pub place: Place,
    /// Data goes here if it is free; 0: anywhere.
    pub port: u16,
    pub describe: &'a dyn Fn(SocketAddr) -> String,
}

/// Serves until the client leaves.
pub fn attend(mut link: Link, host: &Host) -> anyhow::Result<()> {
    while let Some(request) = link.receive::<Request>(IDLE)? {
        let done = match request {
            Request::Describe => {
                let text = (host.describe)(link.peer()?);
                link.send(&Reply::Description(text.chars().take(64 << 10).collect()))
            }
            Request::Transfer(spec) => transfer(&mut link, host, &spec),
            Request::Echo(spec) => echo(&mut link, host, &spec),
            Request::Greet(spec) => greet(&mut link, host, &spec),
            Request::Go | Request::Stop => Err(anyhow::anyhow!("nothing was prepared")),
        };
        if let Err(error) = done {
            // The client may be gone itself.
            let _ = link.send(&Reply::Refused(format!("{error:#}")));
            return Err(error);
        }
    }
    Ok(())
}

/// The interface that packets to this address leave by.
pub fn interface_to(address: SocketAddr) -> Option<String> {
    let way = netlink::way(address).ok()?;
    Some(netlink::interface(way.interface).ok()?.name)
}

impl Host<'_> {
    /// With the CPUs that the client names, where it may name them: its own machine's.
    fn placed(&self, cpus: &[u32]) -> Place {
        match cpus {
            [] => self.place.clone(),
            cpus => Place {
                seats: cpus.iter().map(|cpu| CpuSet::one(*cpu)).collect(),
                messages: self.place.messages.clone(),
                interface: None,
            },
        }
    }
}

fn transfer(link: &mut Link, host: &Host, spec: &Transfer) -> anyhow::Result<()> {
    spec.check().map_err(anyhow::Error::msg)?;
    let place = host.placed(&spec.cpus);
    let tuned = |socket: &OwnedFd| tune(spec, socket);
    let mut door = Door::open(link, host.port, spec.protocol, spec.test, &tuned)?;
    let mut sockets = Vec::new();
    for stream in 0..spec.streams {
        sockets.push(door.next(link, stream)?);
    }
    let echo = if spec.echo { Some(door.next(link, spec.streams)?) } else { None };
    drop(door);
    for socket in &sockets {
        tune_connected(spec, socket)?;
    }
    let _echo = match &echo {
        None => None,
        Some(socket) => {
            sockopt::set_tcp_nodelay(socket, true).context("cannot set TCP_NODELAY")?;
            // Beside the load where there is a CPU for it: else what is timed is a time slice of the load's.
            let own = place.messages.as_ref().or(place.seats.get(spec.streams as usize));
            let seat = own.or(place.seat(0));
            let work = || match seat.is_some_and(|cpus| affinity::pin(cpus).is_err()) {
                true => 1,
                false => send_back(socket, None),
            };
            Some(process::fork(work).context("cannot fork a task")?)
        }
    };
    link.send(&Reply::Ready)?;
    match link.receive::<Request>(IDLE)? {
        Some(Request::Go) => {}
        _ => bail!("the client did not begin what it had asked for"),
    }
    let report = conduct(spec, Side::Server, &sockets, &place, &mut |duration| link.pause(duration))?;
    link.send(&Reply::Report(Box::new(report)))
}

/// What is set on a socket before it is bound.
type Tune<'t> = dyn Fn(&OwnedFd) -> anyhow::Result<()> + 't;

/// Where data connections of a test come in.
struct Door<'a> {
    socket: OwnedFd,
    address: SocketAddr,
    peer: IpAddr,
    protocol: Protocol,
    test: u32,
    keys: Keys,
    tune: &'a Tune<'a>,
    end: Instant,
}

impl<'a> Door<'a> {
    /// Opens it and tells the client where it is.
    fn open(
        link: &mut Link,
        port: u16,
        protocol: Protocol,
        test: u32,
        tune: &'a Tune<'a>,
    ) -> anyhow::Result<Door<'a>> {
        // With its scope, without which a link-local address is none.
        let mut here = link.local()?;
        here.set_port(port);
        let bound = bound(protocol, here, tune);
        let socket = match bound {
            Err(_) if port != 0 => {
                here.set_port(0);
                self::bound(protocol, here, tune)
            }
            bound => bound,
        }
        .with_context(|| format!("cannot open a port on {}", here.ip()))?;
        let address = rustix::net::getsockname(&socket).context("a socket without a name")?;
        let address: SocketAddr = address.try_into().context("a socket without a name")?;
        link.send(&Reply::Port(address.port()))?;
        let (peer, keys) = (link.peer()?.ip(), link.keys.clone());
        Ok(Door { socket, address, peer, protocol, test, keys, tune, end: Instant::now() + CONNECT })
    }

    /// The data connection of this stream.
    fn next(&mut self, link: &mut Link, stream: u32) -> anyhow::Result<OwnedFd> {
        match self.protocol {
            Protocol::Tcp => self.accepted(link, stream),
            Protocol::Udp => self.greeted(link, stream),
        }
    }

    fn wait(&self, link: &Link) -> anyhow::Result<()> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!(
                    "the data connections did not all come within {CONNECT:?}: is port {} open?",
                    self.address.port()
                );
            }
            link.pause(Duration::ZERO)?;
            if readable(&self.socket, left.min(Duration::from_millis(50)))? {
                return Ok(());
            }
        }
    }

    /// Whoever else knocks is turned away.
    fn accepted(&self, link: &Link, stream: u32) -> anyhow::Result<OwnedFd> {
        loop {
            self.wait(link)?;
            let (socket, from) = match rustix::net::acceptfrom_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(accepted) => accepted,
                // Gone again before it was looked at.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => continue,
                Err(error) => return Err(error).context("cannot accept a connection"),
            };
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            if from.map(|from| canonical(from).ip()) != Some(self.peer) {
                continue;
            }
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(COOKIE))
                .context("cannot set SO_RCVTIMEO")?;
            let mut cookie = [0u8; COOKIE_BYTES];
            let read = rustix::net::recv(&socket, cookie.as_mut_slice(), RecvFlags::WAITALL);
            if read.is_ok_and(|(_, count)| self.keys.stream_of(&cookie[..count], self.test) == Some(stream)) {
                sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, None)
                    .context("cannot set SO_RCVTIMEO")?;
                return Ok(socket);
            }
        }
    }

    /// Waits for the datagram that proves itself, tells over the link that it came, and hears from nobody else any more. What the
    /// client said again meanwhile comes later, among the data.
    fn greeted(&mut self, link: &mut Link, stream: u32) -> anyhow::Result<OwnedFd> {
        let mut cookie = [0u8; 2 * COOKIE_BYTES];
        loop {
            self.wait(link)?;
            let heard = rustix::net::recvfrom(&self.socket, cookie.as_mut_slice(), RecvFlags::empty());
            let Ok((_, count, Some(from))) = heard else { continue };
            let Ok(from) = SocketAddr::try_from(from) else { continue };
            let ours = self.keys.stream_of(&cookie[..count], self.test) == Some(stream);
            if !ours || canonical(from).ip() != self.peer {
                continue;
            }
            // The next stream's socket is there before this one hears its own peer only.
            let next = bound(self.protocol, self.address, self.tune).context("cannot open a port twice")?;
            rustix::net::connect(&self.socket, &from).context("cannot connect a socket")?;
            link.send(&Reply::Heard(stream))?;
            return Ok(std::mem::replace(&mut self.socket, next));
        }
    }
}

/// A socket on this address; one of TCP listens.
fn bound(protocol: Protocol, address: SocketAddr, tune: &Tune) -> anyhow::Result<OwnedFd> {
    let kind = if protocol == Protocol::Tcp { SocketType::STREAM } else { SocketType::DGRAM };
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    tune(&socket)?;
    rustix::net::bind(&socket, &address)?;
    if protocol == Protocol::Tcp {
        rustix::net::listen(&socket, QUEUE)?;
    }
    Ok(socket)
}

fn untuned(_: &OwnedFd) -> anyhow::Result<()> {
    Ok(())
}

fn readable(socket: impl AsFd, limit: Duration) -> anyhow::Result<bool> {
    let time = Timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
    match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("cannot wait"),
    }
}

fn echo(link: &mut Link, host: &Host, spec: &Echo) -> anyhow::Result<()> {
    spec.check().map_err(anyhow::Error::msg)?;
    let mut door = Door::open(link, host.port, spec.protocol, spec.test, &untuned)?;
    let socket = door.next(link, 0)?;
    drop(door);
    if spec.protocol == Protocol::Tcp {
        sockopt::set_tcp_nodelay(&socket, true).context("cannot set TCP_NODELAY")?;
        if let Some(name) = &spec.congestion {
            sockopt::set_tcp_congestion(&socket, name)
                .with_context(|| format!("cannot use congestion control {name:?}"))?;
        }
    }
    // Over UDP it may come once more.
    let greeting = (spec.protocol == Protocol::Udp).then(|| link.keys.cookie(spec.test, 0));
    beside(link, &host.placed(&spec.cpus), || send_back(&socket, greeting.as_ref().map(|cookie| &cookie[..])))
}

/// Whatever comes goes back, but this.
fn send_back(socket: &OwnedFd, greeting: Option<&[u8]>) -> i32 {
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let count = match rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
            Ok((_, 0)) => return 0,
            Ok((_, count)) if greeting == Some(&buffer[..count]) => continue,
            Ok((_, count)) => count,
            Err(Errno::INTR | Errno::CONNREFUSED) => continue,
            Err(_) => return 1,
        };
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            match rustix::net::send(socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                // A datagram that cannot be sent is one that is lost.
                Err(Errno::NOBUFS | Errno::AGAIN | Errno::CONNREFUSED) => break,
                Err(_) => return 1,
            }
        }
    }
}

fn greet(link: &mut Link, host: &Host, spec: &Echo) -> anyhow::Result<()> {
    let door = Door::open(link, host.port, Protocol::Tcp, spec.test, &untuned)?;
    let peer = link.peer()?.ip();
    beside(link, &host.placed(&spec.cpus), || {
        loop {
            let Ok((socket, from)) = rustix::net::acceptfrom_with(&door.socket, SocketFlags::CLOEXEC) else {
                continue;
            };
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            if from.map(|from| canonical(from).ip()) == Some(peer) {
                // One that is gone already is the client's to notice.
                let _ = rustix::net::send(&socket, &[1], SendFlags::NOSIGNAL);
            }
        }
    })
}

/// Runs `work` in a process of its own until the client says stop, then tells what it cost.
fn beside(link: &mut Link, place: &Place, work: impl FnOnce() -> i32) -> anyhow::Result<()> {
    let mut child = process::fork(|| {
        if place.seat(0).is_some_and(|cpus| affinity::pin(cpus).is_err()) {
            return 1;
        }
        work()
    })
    .context("cannot fork a task")?;
    let cpus = place.cpus(1);
    let mut counters = NetworkCounters::open(&[child.id()], &cpus, place.interface.as_deref());
    let (begin, before) = (Instant::now(), counters.read());
    link.send(&Reply::Ready)?;
    let asked = link.receive::<Request>(ECHO)?;
    let (used, elapsed) = (counters.read().since(before), begin.elapsed().as_secs_f64());
    child.kill();
    if asked != Some(Request::Stop) {
        bail!("the client left without a stop");
    }
    let share = |value: Option<f64>| value.map(|value| value / elapsed);
    let account = Account {
        busy: share(used.run_ns.map(|ns| ns / 1e9)),
        softirq: share(used.softirq_s.map(|s| s / cpus.len().max(1) as f64)),
        wait: share(used.wait_ns.map(|ns| ns / 1e9)),
        throttled: share(used.throttled_s),
        drops: share(used.drops),
    };
    let cpus = cpus.iter().collect();
    link.send(&Reply::Report(Box::new(Report { account, cpus, drained: true, ..Report::default() })))
}

/// A listener's first guest, waited for so long.
pub fn first_guest(listener: &TcpListener, limit: Duration) -> anyhow::Result<TcpStream> {
    match readable(listener, limit)? {
        true => Ok(listener.accept().context("cannot accept a connection")?.0),
        false => bail!("nobody came within {limit:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_greeting_that_comes_again_does_not_come_back() {
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
        here.connect(there.local_addr().expect("an address")).expect("connected");
        there.connect(here.local_addr().expect("an address")).expect("connected");
        here.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
        for message in [&b"greeting"[..], b"message", b"greeting", b""] {
            here.send(message).expect("sent");
        }
        assert_eq!(send_back(&there.into(), Some(b"greeting")), 0);
        let mut buffer = [0; 100];
        assert_eq!(here.recv(&mut buffer).expect("an answer"), b"message".len());
        here.set_nonblocking(true).expect("set");
        assert!(here.recv(&mut buffer).is_err(), "and nothing else");
    }
}
