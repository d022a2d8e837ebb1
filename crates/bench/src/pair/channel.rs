//! What carries a token through the kernel: pipes, FIFOs, sockets, event counters.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use anyhow::Context;
use rustix::event::EventfdFlags;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType};

use super::End;
use sys::scratch::Scratch;
use sys::token;

/// Two descriptors, one for each direction; those of a socket are the same one twice.
pub struct Channel {
    pub reads: OwnedFd,
    pub writes: OwnedFd,
}

impl End for Channel {
    fn send(&mut self, token: u64) -> io::Result<()> {
        token::send_once(self.writes.as_fd(), token)
    }

    fn receive(&mut self) -> io::Result<u64> {
        token::receive_once(self.reads.as_fd())
    }
}

/// Two pipes.
pub fn pipes() -> anyhow::Result<[Channel; 2]> {
    let (pong_reads, ping_writes) = rustix::pipe::pipe().context("cannot make a pipe")?;
    let (ping_reads, pong_writes) = rustix::pipe::pipe().context("cannot make a pipe")?;
    Ok([
        Channel { reads: ping_reads, writes: ping_writes },
        Channel { reads: pong_reads, writes: pong_writes },
    ])
}

/// Two FIFOs, whose names are gone when this returns.
pub fn fifos() -> anyhow::Result<[Channel; 2]> {
    let folder = Scratch::new(&std::env::temp_dir(), &["to-pong|", "to-ping|"]);
    let folder = folder.context("cannot make a directory for FIFOs: make TMPDIR writable")?;
    let make = |name| -> io::Result<(OwnedFd, OwnedFd)> {
        rustix::fs::mknodat(folder.folder(), name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Opening for reading alone waits for a writer, unless it may not wait.
        let open = |flags| {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(folder.folder(), name, flags, Mode::empty())
        };
        let reads = open(OFlags::RDONLY | OFlags::NONBLOCK)?;
        let writes = open(OFlags::WRONLY)?;
        rustix::fs::fcntl_setfl(&reads, OFlags::empty())?;
        Ok((reads, writes))
    };
    let failed = || format!("cannot make a FIFO in {}", folder.path().display());
    let (pong_reads, ping_writes) = make("to-pong").with_context(failed)?;
    let (ping_reads, pong_writes) = make("to-ping").with_context(failed)?;
    Ok([
        Channel { reads: ping_reads, writes: ping_writes },
        Channel { reads: pong_reads, writes: pong_writes },
    ])
}

fn both_ways(sockets: (OwnedFd, OwnedFd)) -> anyhow::Result<[Channel; 2]> {
    let channel = |socket: OwnedFd| -> io::Result<Channel> {
        Ok(Channel { reads: socket.try_clone()?, writes: socket })
    };
    Ok([channel(sockets.0)?, channel(sockets.1)?])
}

pub fn unix_streams() -> anyhow::Result<[Channel; 2]> {
    both_ways(unix_pair(SocketType::STREAM)?)
}

pub fn unix_datagrams() -> anyhow::Result<[Channel; 2]> {
    both_ways(unix_pair(SocketType::DGRAM)?)
}

/// Two connected Unix sockets without a name.
pub fn unix_pair(kind: SocketType) -> anyhow::Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .context("cannot make Unix sockets")
}

/// Why a test of loopback may fail before it begins.
pub const LOOPBACK: &str = "loopback is down or sockets are forbidden: try `ip link set lo up`";

/// A socket of this kind on a free port of the loopback address.
pub fn on_loopback(kind: SocketType) -> anyhow::Result<(OwnedFd, SocketAddrAny)> {
    let make = || -> rustix::io::Result<_> {
        let socket = rustix::net::socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = rustix::net::getsockname(&socket)?;
        Ok((socket, address))
    };
    make().with_context(|| format!("cannot make a socket on {}: {LOOPBACK}", Ipv4Addr::LOCALHOST))
}

/// Two ends of a TCP connection over loopback; `tune` is done to both before they connect.
pub fn tcp_pair(tune: impl Fn(&OwnedFd) -> rustix::io::Result<()>) -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let (listener, address) = on_loopback(SocketType::STREAM)?;
    let connect = || -> rustix::io::Result<_> {
        // The accepted socket inherits.
        tune(&listener)?;
        rustix::net::listen(&listener, 1)?;
        let kind = SocketType::STREAM;
        let client = rustix::net::socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
        tune(&client)?;
        rustix::net::connect(&client, &address)?;
        Ok((client, rustix::net::accept_with(&listener, SocketFlags::CLOEXEC)?))
    };
    connect().with_context(|| format!("cannot connect over loopback: {LOOPBACK}"))
}

/// A TCP connection over loopback that sends every token at once (`TCP_NODELAY`).
pub fn tcp() -> anyhow::Result<[Channel; 2]> {
    let (ping, pong) = tcp_pair(|_| Ok(()))?;
    for socket in [&ping, &pong] {
        set_tcp_nodelay(socket, true).context("cannot set TCP_NODELAY")?;
    }
    both_ways((ping, pong))
}

/// Two UDP sockets over loopback, connected to each other.
pub fn udp() -> anyhow::Result<[Channel; 2]> {
    let (ping, at_ping) = on_loopback(SocketType::DGRAM)?;
    let (pong, at_pong) = on_loopback(SocketType::DGRAM)?;
    let connected =
        rustix::net::connect(&ping, &at_pong).and_then(|()| rustix::net::connect(&pong, &at_ping));
    connected.with_context(|| format!("cannot connect over loopback: {LOOPBACK}"))?;
    both_ways((ping, pong))
}

/// An event counter for each direction: it carries the token plus one, since a counter of 0 has
/// nothing to read.
pub struct Events(Channel);

impl End for Events {
    fn send(&mut self, token: u64) -> io::Result<()> {
        self.0.send(token + 1)
    }

    fn receive(&mut self) -> io::Result<u64> {
        self.0.receive().map(|count| count.wrapping_sub(1))
    }
}

pub fn events() -> anyhow::Result<[Events; 2]> {
    let make = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).context("cannot make an eventfd");
    let (to_pong, to_ping) = (make()?, make()?);
    let copy = |counter: &OwnedFd| counter.try_clone().context("cannot duplicate an eventfd");
    Ok([
        Events(Channel { reads: copy(&to_ping)?, writes: copy(&to_pong)? }),
        Events(Channel { reads: to_pong, writes: to_ping }),
    ])
}
