//! The connection over which the two ends of a session agree on what is done: frames, with a time
//! limit for each wait.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::Side;
use super::wire::{FrameDirection, Framer, Keys, Unframer};
use sys::tcp::{TcpInfo, tcp_info};

pub struct Link {
    stream: TcpStream,
    framer: Framer,
    unframer: Unframer,
    pub keys: Keys,
}

/// Longest time to write a frame.
const WRITE: Duration = Duration::from_secs(5);
/// Data unacknowledged for this long ends a connection, ms.
const UNHEARD_MS: u32 = 10_000;

impl Link {
    /// Over a connection on which both have proved themselves.
    pub fn new(stream: TcpStream, keys: Keys, side: Side) -> anyhow::Result<Link> {
        stream.set_nonblocking(false).context("cannot make a socket blocking")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        stream.set_write_timeout(Some(WRITE)).context("cannot set SO_SNDTIMEO")?;
        sockopt::set_tcp_user_timeout(&stream, UNHEARD_MS).context("cannot set TCP_USER_TIMEOUT")?;
        // A host that went away without a word is noticed within ten seconds as well while nothing
        // is sent.
        let alive = sockopt::set_socket_keepalive(&stream, true)
            .and_then(|()| sockopt::set_tcp_keepidle(&stream, Duration::from_secs(4)))
            .and_then(|()| sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(2)))
            .and_then(|()| sockopt::set_tcp_keepcnt(&stream, 3));
        alive.context("cannot set SO_KEEPALIVE")?;
        let (ours, theirs) = match side {
            Side::Client => (FrameDirection::ToServer, FrameDirection::ToClient),
            Side::Server => (FrameDirection::ToClient, FrameDirection::ToServer),
        };
        let (framer, unframer) = (Framer::new(&keys, ours), Unframer::new(&keys, theirs));
        Ok(Link { stream, framer, unframer, keys })
    }

    /// The other end's address, a link-local one with its interface.
    pub fn peer(&self) -> anyhow::Result<SocketAddr> {
        self.stream.peer_addr().map(canonical).context("the other end closed the connection")
    }

    pub fn local(&self) -> anyhow::Result<SocketAddr> {
        self.stream.local_addr().map(canonical).context("the other end closed the connection")
    }

    /// What TCP reports about the path to the other end.
    pub fn told(&self) -> Option<TcpInfo> {
        tcp_info(self.stream.as_fd()).ok()
    }

    pub fn send(&mut self, message: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_vec(message).context("cannot write a message")?;
        self.stream
            .write_all(&self.framer.frame(&text))
            .context("the other end closed the connection or does not read")
    }

    /// Waits for a message up to this limit; `None` if the other end closed between two.
    pub fn receive<Message: DeserializeOwned>(&mut self, limit: Duration) -> anyhow::Result<Option<Message>> {
        let end = Instant::now() + limit;
        let mut piece = [0u8; 4096];
        let mut first = true;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("the other end sent no complete message for {limit:?}");
            }
            self.stream.set_read_timeout(Some(left)).context("cannot set SO_RCVTIMEO")?;
            let wanted = self.unframer.wants().min(piece.len());
            let count = match self.stream.read(&mut piece[..wanted]) {
                Ok(0) if first => return Ok(None),
                Ok(0) => bail!("the other end closed the connection within a message"),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error).context("the other end closed the connection"),
            };
            first = false;
            if let Some(text) = self.unframer.take(&piece[..count]).map_err(anyhow::Error::msg)? {
                let message = serde_json::from_slice(&text);
                return message.map(Some).context("the other end's message is not valid");
            }
        }
    }

    /// Whether something to receive has come, or an end, within this time.
    pub fn has_news(&self, limit: Duration) -> anyhow::Result<bool> {
        let time = Timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
        let mut polled = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&time)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error).context("cannot wait"),
        }
    }

    /// Waits this long; an error as soon as the other end closes.
    pub fn pause(&self, duration: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + duration;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let time = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
            let mut polled = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::RDHUP)];
            match poll(&mut polled, Some(&time)) {
                Ok(0) => return Ok(()),
                Ok(_) => bail!("the other end closed the connection"),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait"),
            }
        }
    }
}

/// The same with an address of version 4 as such, where a socket of version 6 calls it
/// `::ffff:10.0.0.5`: the kernel's routes to that one are others, or none.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        // With its scope.
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_version_4_are_called_so_and_others_keep_their_scope() {
        let told = |text: &str| canonical(text.parse().expect("an address")).to_string();
        assert_eq!(told("[::ffff:10.0.0.5]:7"), "10.0.0.5:7");
        assert_eq!(told("10.0.0.5:7"), "10.0.0.5:7");
        assert_eq!(told("[fe80::1%3]:7"), "[fe80::1%3]:7");
    }
    use crate::network::messages::Request;
    use std::net::TcpListener;

    fn pair() -> (Link, Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        let keys = Keys::of("t", &[0; 32], &[1; 32]);
        let raw = client.try_clone().expect("a copy");
        let client = Link::new(client, keys.clone(), Side::Client).expect("a link");
        (client, Link::new(server, keys, Side::Server).expect("a link"), raw)
    }

    #[test]
    fn messages_arrive_and_an_end_is_noticed() {
        let (mut client, mut server, _raw) = pair();
        client.send(&Request::Describe).expect("sent");
        client.send(&Request::Go).expect("sent");
        let limit = Duration::from_secs(5);
        assert_eq!(server.receive::<Request>(limit).expect("heard"), Some(Request::Describe));
        server.pause(Duration::from_millis(5)).expect("still there");
        assert_eq!(server.receive::<Request>(limit).expect("heard"), Some(Request::Go));
        drop((client, _raw));
        assert!(server.pause(limit).is_err_and(|error| error.to_string().contains("closed the connection")));
        assert_eq!(server.receive::<Request>(limit).expect("an end"), None);
    }

    #[test]
    fn silence_drops_and_forgeries_are_errors() {
        let (_client, mut server, mut raw) = pair();
        raw.write_all(&[0, 0, 0, 9, 1]).expect("the begin of a frame");
        let error = server.receive::<Request>(Duration::from_millis(60)).expect_err("no whole frame");
        assert!(error.to_string().contains("no complete message"), "{error:#}");
        raw.write_all(&[7; 40]).expect("a forgery");
        let error = server.receive::<Request>(Duration::from_secs(5)).expect_err("forged");
        assert!(error.to_string().contains("did not sign"), "{error:#}");
    }
}
