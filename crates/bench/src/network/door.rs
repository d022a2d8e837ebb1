//! Accepts the data connections of a test. Many connections from the client's address may come at
//! once; only those that send the session's cookie count. The port serves no other session.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

use super::link::{Link, canonical};
use super::messages::{Reply, Transport};
use super::wire::{COOKIE_BYTES, Keys};

/// Data connections of a test are all there by then.
const CONNECT: Duration = Duration::from_secs(5);
/// One of them has said its cookie by then.
const COOKIE: Duration = Duration::from_secs(2);
/// Tasks of a session that has just ended may hold a port this long.
const TAKEN: Duration = Duration::from_millis(100);
const QUEUE: i32 = 128;
/// Connections that have not yet said a cookie; the oldest makes room.
const GUESTS: usize = 64;
/// Connections accepted in one go before they are read.
const AT_ONCE: usize = 32;

/// What is set on a socket before it is bound.
type Tune<'t> = dyn Fn(&OwnedFd) -> anyhow::Result<()> + 't;

/// A port for data, opened for one test.
pub struct DataPort<'a> {
    socket: OwnedFd,
    address: SocketAddr,
    peer: IpAddr,
    protocol: Transport,
    test: u32,
    keys: Keys,
    tune: &'a Tune<'a>,
    end: Instant,
}

/// A connection that has not yet authenticated.
struct PendingConnection {
    socket: OwnedFd,
    since: Instant,
    heard: Vec<u8>,
}

impl<'a> DataPort<'a> {
    /// Opens it, at this port if that is free, and sends the client the port.
    pub fn open(
        link: &mut Link,
        port: u16,
        protocol: Transport,
        test: u32,
        tune: &'a Tune<'a>,
    ) -> anyhow::Result<DataPort<'a>> {
        // With its scope, without which a link-local address is none.
        let mut here = link.local()?;
        here.set_port(port);
        let socket = match bound(protocol, here, tune) {
            Err(_) if port != 0 => {
                here.set_port(0);
                bound(protocol, here, tune)
            }
            bound => bound,
        }
        .with_context(|| format!("cannot open a port on {}", here.ip()))?;
        let address = rustix::net::getsockname(&socket).context("a socket without a name")?;
        let address: SocketAddr = address.try_into().context("a socket without a name")?;
        link.send(&Reply::Port(address.port()))?;
        let (peer, keys) = (link.peer()?.ip(), link.keys.clone());
        Ok(DataPort { socket, address, peer, protocol, test, keys, tune, end: Instant::now() + CONNECT })
    }

    /// The data connections of this many streams, in their order.
    pub fn streams(self, link: &mut Link, count: u32) -> anyhow::Result<Vec<OwnedFd>> {
        match self.protocol {
            Transport::Tcp => self.accepted(link, count),
            Transport::Udp => self.greeted(link, count),
        }
    }

    /// Waits for one that comes from the client's address, without asking for a proof.
    pub fn anybody(&self) -> Result<OwnedFd, Errno> {
        loop {
            if let Some(socket) = self.accept()? {
                return Ok(socket);
            }
        }
    }

    /// `None`: a foreign connection, or one already closed.
    fn accept(&self) -> Result<Option<OwnedFd>, Errno> {
        match rustix::net::acceptfrom_with(&self.socket, SocketFlags::CLOEXEC) {
            Ok((socket, from)) => {
                let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                let ours = from.is_some_and(|from| canonical(from).ip() == self.peer);
                Ok(ours.then_some(socket))
            }
            Err(Errno::CONNABORTED | Errno::INTR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for a new connection or for data of a pending one.
    fn wait(&self, link: &Link, door: &OwnedFd, guests: &VecDeque<PendingConnection>) -> anyhow::Result<()> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!(
                    "not all data connections arrived within {CONNECT:?}: open port {} in the firewall",
                    self.address.port()
                );
            }
            link.pause(Duration::ZERO)?;
            let mut polled = vec![PollFd::new(door, PollFlags::IN)];
            polled.extend(guests.iter().map(|guest| PollFd::new(&guest.socket, PollFlags::IN)));
            let tick = left.min(Duration::from_millis(50));
            let time = Timespec { tv_sec: tick.as_secs() as _, tv_nsec: tick.subsec_nanos() as _ };
            match poll(&mut polled, Some(&time)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error).context("cannot wait for data connections"),
            }
        }
    }

    fn accepted(self, link: &Link, count: u32) -> anyhow::Result<Vec<OwnedFd>> {
        rustix::io::ioctl_fionbio(&self.socket, true)
            .context("cannot make a listening socket non-blocking")?;
        let mut guests = VecDeque::new();
        let mut proved = BTreeMap::new();
        while proved.len() < count as usize {
            self.wait(link, &self.socket, &guests)?;
            self.let_in(&mut guests)?;
            for mut guest in std::mem::take(&mut guests) {
                match guest.go_on(&self.keys, self.test) {
                    Received::Nothing if guest.since.elapsed() < COOKIE => guests.push_back(guest),
                    Received::Stream(stream) if stream < count => {
                        proved.entry(stream).or_insert(guest.socket);
                    }
                    Received::Stream(_) | Received::Nothing | Received::Wrong => {}
                }
            }
        }
        Ok(proved.into_values().collect())
    }

    fn let_in(&self, guests: &mut VecDeque<PendingConnection>) -> anyhow::Result<()> {
        for _ in 0..AT_ONCE {
            match self.accept() {
                Ok(None) => {}
                Ok(Some(socket)) => {
                    if guests.len() >= GUESTS {
                        guests.pop_front();
                    }
                    guests.push_back(PendingConnection { socket, since: Instant::now(), heard: Vec::new() });
                }
                Err(Errno::AGAIN) => return Ok(()),
                // Without a free descriptor the kernel returns this error even if no connection
                // waits.
                Err(_) if !knocks(&self.socket) => return Ok(()),
                // The client that has waited longest is dropped, and the next one gets its
                // descriptor.
                Err(error) => {
                    guests.pop_front().map(drop).ok_or(error).context("cannot accept a connection")?
                }
            }
        }
        Ok(())
    }

    /// Waits for each stream's datagram with the cookie, confirms it over the link, and connects
    /// the socket to its sender. Repeated cookies come later, among the data.
    fn greeted(self, link: &mut Link, count: u32) -> anyhow::Result<Vec<OwnedFd>> {
        let mut sockets = Vec::new();
        let mut socket = self.socket.try_clone().context("cannot copy a socket")?;
        for stream in 0..count {
            let from = self.greeting(link, &socket, stream)?;
            // The next stream's socket is there before this one hears its own peer only.
            let next = if stream + 1 < count { Some(self.beside(&sockets, &socket)?) } else { None };
            rustix::net::connect(&socket, &from).context("cannot connect a socket")?;
            // Data that any sender sent before does not count.
            while rustix::net::recv(&socket, &mut [0u8; 1], RecvFlags::DONTWAIT).is_ok() {}
            link.send(&Reply::FirstDatagram(stream))?;
            sockets.push(socket);
            match next {
                Some(next) => socket = next,
                None => break,
            }
        }
        Ok(sockets)
    }

    /// Who said this stream's cookie.
    fn greeting(&self, link: &Link, socket: &OwnedFd, stream: u32) -> anyhow::Result<SocketAddr> {
        // Longer ones are none.
        let mut cookie = [0u8; 2 * COOKIE_BYTES];
        loop {
            self.wait(link, socket, &VecDeque::new())?;
            let heard = rustix::net::recvfrom(socket, cookie.as_mut_slice(), RecvFlags::DONTWAIT);
            let Ok((_, count, Some(from))) = heard else { continue };
            let Ok(from) = SocketAddr::try_from(from) else { continue };
            if canonical(from).ip() == self.peer
                && self.keys.stream_of(&cookie[..count], self.test) == Some(stream)
            {
                return Ok(from);
            }
        }
    }

    /// One more socket on the same port. Each lets others in only while this one is bound, and only
    /// sockets of its own user: with SO_REUSEADDR any user's socket that sets it could be bound.
    fn beside(&self, sockets: &[OwnedFd], last: &OwnedFd) -> anyhow::Result<OwnedFd> {
        let next = fresh(self.protocol, self.address, self.tune)?;
        let share = |value| {
            let mut all = sockets.iter().chain([last, &next]);
            all.try_for_each(|socket| sockopt::set_socket_reuseport(socket, value))
        };
        share(true)
            .and_then(|()| rustix::net::bind(&next, &self.address))
            .and_then(|()| share(false))
            .context("cannot open a port twice")?;
        Ok(next)
    }
}

/// What a pending connection has sent.
enum Received {
    Nothing,
    Wrong,
    Stream(u32),
}

impl PendingConnection {
    fn go_on(&mut self, keys: &Keys, test: u32) -> Received {
        let mut piece = [0u8; COOKIE_BYTES];
        while self.heard.len() < COOKIE_BYTES {
            let rest = &mut piece[self.heard.len()..];
            match rustix::net::recv(&self.socket, &mut *rest, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Received::Wrong,
                Ok((_, count)) => self.heard.extend_from_slice(&rest[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(_) => return Received::Wrong,
            }
        }
        keys.stream_of(&self.heard, test).map_or(Received::Wrong, Received::Stream)
    }
}

/// Whether a connection waits to be accepted.
pub fn knocks(listener: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// A socket that owns this address exclusively; a TCP socket listens.
fn bound(protocol: Transport, address: SocketAddr, tune: &Tune) -> anyhow::Result<OwnedFd> {
    let socket = fresh(protocol, address, tune)?;
    let begin = Instant::now();
    loop {
        match rustix::net::bind(&socket, &address) {
            Ok(()) => break,
            Err(Errno::ADDRINUSE) if begin.elapsed() < TAKEN => std::thread::sleep(TAKEN / 20),
            Err(error) => return Err(error.into()),
        }
    }
    if protocol == Transport::Tcp {
        rustix::net::listen(&socket, QUEUE)?;
    }
    Ok(socket)
}

/// One that is not bound yet.
fn fresh(protocol: Transport, address: SocketAddr, tune: &Tune) -> anyhow::Result<OwnedFd> {
    let kind = if protocol == Transport::Tcp { SocketType::STREAM } else { SocketType::DGRAM };
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    if protocol == Transport::Tcp {
        // Connections of the test before may still be on their way out; no two listen all the same.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    tune(&socket)?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
