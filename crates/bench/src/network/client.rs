//! The client's side: finds the other end, or forks one, and runs tests with it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use super::TO;
use super::conduct::{Place, run_transfer, tune, tune_connected};
use super::link::Link;
use super::messages::{CpuCosts, Reply, Report, Request, Side, SmallTest, Transfer, Transport};
use super::session::{self, Host};
use super::way::Route;
use super::wire::{HELLO_BYTES, Hello, Keys, VERDICT_BYTES, VERSION, Verdict};
use crate::check_answer;
use model::{Case, CpuSet, Seat};
use sys::affinity;
use sys::process::{self, Child};
use sys::random::random;

/// The other end, ready for one test after another.
pub struct Peer {
    link: Link,
    /// Of this end.
    pub place: Place,
    /// CPUs that the other end must use, if it is on this host.
    cpus: Vec<u32>,
    /// CPUs that the other end reported as used.
    used: CpuSet,
    test: u32,
    /// Lives as long as this one.
    _forked: Option<Child>,
}

/// How long connecting and each step of proving oneself may take.
const CONNECT: Duration = Duration::from_secs(5);
/// A server may be busy with the previous pass or with another client's.
const BUSY: Duration = Duration::from_secs(15);
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// Longest time that the other end takes to prepare or to answer.
const ANSWER: Duration = Duration::from_secs(20);
/// A lost datagram is sent again after this, and for this long: a little less than the other end
/// waits.
const AGAIN: Duration = Duration::from_millis(100);
const GREETING: Duration = Duration::from_secs(4);

impl Peer {
    /// The other end of a case: the host that it names, or a process on its second seat. Further
    /// seats are this end's; over loopback the second one of messages is the other end's.
    pub fn of(case: &Case, token: Option<&str>) -> anyhow::Result<Peer> {
        let seats = &case.placement.seats;
        let [first, second, ..] = seats.as_slice() else {
            bail!("a network test needs two CPUs, not {}", seats.len());
        };
        let (messages, loads): (Vec<&Seat>, Vec<&Seat>) =
            seats.iter().filter(|seat| seat.host.is_none()).partition(|seat| seat.role == super::MESSAGES);
        let of = |seat: &&Seat| seat.cpus.clone();
        let mut place = Place { messages: messages.first().map(of), ..Place::default() };
        let (link, forked, cpus) = match case.inputs.get(TO) {
            Some(to) => {
                let token = token.context("add --token with the token that the other host shows")?;
                let link = dial(to, token)?;
                place.interface = session::interface_to(link.peer()?);
                place.seats = loads.iter().map(of).collect();
                (link, None, Vec::new())
            }
            None => {
                let theirs = messages.get(1).map(of);
                let (link, child) = forked(&second.cpus, theirs)?;
                place.seats = vec![first.cpus.clone()];
                (link, Some(child), second.cpus.iter().collect())
            }
        };
        Ok(Peer { link, place, cpus, used: CpuSet::default(), test: 0, _forked: forked })
    }

    /// CPUs of another host's tasks, in words; those of a process on this host are in the
    /// placement.
    pub fn seats_there(&self) -> Option<String> {
        let told = self._forked.is_none() && !self.used.is_empty();
        told.then(|| format!("the other end's tasks ran on its CPUs {}", self.used))
    }

    /// What is known by now of the way to another host; over loopback nothing depends on it.
    pub fn way(&self) -> Route {
        let told = self.link.told().filter(|_| self._forked.is_none());
        told.zip(self.link.peer().ok()).map(|(told, to)| Route::of(&told, to.ip())).unwrap_or_default()
    }

    /// The other host's description of itself and of its route to this one.
    pub fn describe(&mut self) -> anyhow::Result<String> {
        self.link.send(&Request::Describe)?;
        match self.answer()? {
            Reply::Description(text) => Ok(text),
            other => bail!("the other end answered {other:?}"),
        }
    }

    fn answer(&mut self) -> anyhow::Result<Reply> {
        match self.link.receive(ANSWER)?.context("the other end closed the connection")? {
            Reply::Refused(why) => Err(Refusal(why).into()),
            reply => Ok(reply),
        }
    }

    fn port(&mut self) -> anyhow::Result<SocketAddr> {
        match self.answer()? {
            Reply::Port(port) => {
                // With its scope, without which a link-local address is none.
                let mut to = self.link.peer()?;
                to.set_port(port);
                Ok(to)
            }
            other => bail!("the other end answered {other:?} instead of a port"),
        }
    }

    fn ready(&mut self) -> anyhow::Result<()> {
        match self.answer()? {
            Reply::Ready => Ok(()),
            other => bail!("the other end answered {other:?} and is not ready"),
        }
    }

    fn report(&mut self) -> anyhow::Result<Report> {
        match self.answer()? {
            Reply::Report(report) => {
                self.used = self.used.union(&report.cpus.iter().copied().collect());
                Ok(*report)
            }
            other => bail!("the other end answered {other:?} instead of a report"),
        }
    }

    /// Connects the streams of a transfer, and the one that echoes if there is to be one.
    pub fn prepare(&mut self, mut spec: Transfer) -> anyhow::Result<Prepared<'_>> {
        self.test += 1;
        (spec.test, spec.cpus) = (self.test, self.cpus.clone());
        self.link.send(&Request::Transfer(spec.clone()))?;
        let to = self.port()?;
        let mut sockets = Vec::new();
        for stream in 0..spec.streams + u32::from(spec.ping_pong) {
            let connected = self.data(spec.protocol, to, stream, &|socket| tune(&spec, socket));
            let socket = match connected {
                Ok(socket) => socket,
                Err(error) if error.is::<Refusal>() => return Err(error),
                // The other end's error is nearer to the cause.
                Err(error) => return Err(self.answer().err().unwrap_or(error)),
            };
            sockets.push(socket);
        }
        let echo = if spec.ping_pong { sockets.pop() } else { None };
        for socket in &sockets {
            tune_connected(&spec, socket)?;
        }
        self.ready()?;
        Ok(Prepared { peer: self, spec, sockets, echo })
    }

    /// One data connection.
    fn data(
        &mut self,
        protocol: Transport,
        to: SocketAddr,
        stream: u32,
        tune: &dyn Fn(&OwnedFd) -> anyhow::Result<()>,
    ) -> anyhow::Result<OwnedFd> {
        let cookie = self.link.keys.cookie(self.test, stream);
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let kind = if protocol == Transport::Tcp { SocketType::STREAM } else { SocketType::DGRAM };
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)
            .context("cannot make a socket")?;
        tune(&socket)?;
        let limit = |which, time| {
            sockopt::set_socket_timeout(&socket, which, time).context("cannot set a socket's time limit")
        };
        limit(sockopt::Timeout::Send, Some(CONNECT))?;
        rustix::net::connect(&socket, &to).with_context(|| {
            format!("cannot connect to port {} of the other host: open it in the firewall", to.port())
        })?;
        limit(sockopt::Timeout::Send, None)?;
        match protocol {
            Transport::Tcp => {
                rustix::net::send(&socket, &cookie, SendFlags::NOSIGNAL)
                    .context("the other end closed the connection")?;
            }
            Transport::Udp => self.greet(&socket, &cookie, stream, to.port())?,
        }
        Ok(socket)
    }

    /// Sends the cookie again until the other end confirms it over the link.
    fn greet(&mut self, socket: &OwnedFd, cookie: &[u8], stream: u32, port: u16) -> anyhow::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < GREETING {
            match rustix::net::send(socket, cookie, SendFlags::empty()) {
                Ok(_) | Err(Errno::CONNREFUSED | Errno::NOBUFS) => {}
                Err(error) => return Err(error).context("cannot send over UDP"),
            }
            if !self.link.has_news(AGAIN)? {
                continue;
            }
            match self.answer()? {
                Reply::FirstDatagram(heard) if heard == stream => return Ok(()),
                other => bail!("the other end answered {other:?} to a datagram of stream {stream}"),
            }
        }
        bail!("no UDP arrives at port {port} of the other host: open it in the firewall")
    }

    /// A connection whose messages come back.
    pub fn echo(&mut self, protocol: Transport, congestion: Option<&str>) -> anyhow::Result<OwnedFd> {
        self.test += 1;
        let spec = self.small(protocol, congestion);
        self.link.send(&Request::PingPong(spec))?;
        let to = self.port()?;
        let socket = self.data(protocol, to, 0, &|_| Ok(()))?;
        if protocol == Transport::Tcp {
            sockopt::set_tcp_nodelay(&socket, true).context("cannot set TCP_NODELAY")?;
            if let Some(name) = congestion {
                sockopt::set_tcp_congestion(&socket, name).with_context(|| {
                    format!("this kernel does not allow congestion control {name:?}: see net.ipv4.tcp_allowed_congestion_control")
                })?;
            }
        }
        self.ready()?;
        Ok(socket)
    }

    /// Where connections are accepted, given a byte and forgotten.
    pub fn greeter(&mut self) -> anyhow::Result<SocketAddr> {
        self.test += 1;
        let spec = self.small(Transport::Tcp, None);
        self.link.send(&Request::Connect(spec))?;
        let to = self.port()?;
        self.ready()?;
        Ok(to)
    }

    fn small(&self, protocol: Transport, congestion: Option<&str>) -> SmallTest {
        SmallTest {
            test: self.test,
            protocol,
            congestion: congestion.map(str::to_string),
            cpus: self.cpus.clone(),
        }
    }

    /// Ends an echo, or greeting, and returns what it cost the other end.
    pub fn stop(&mut self) -> anyhow::Result<CpuCosts> {
        self.link.send(&Request::Stop)?;
        Ok(self.report()?.cpu_costs)
    }

    /// Waits for this long; ends early if the other end closes.
    pub fn pause(&self, duration: Duration) -> anyhow::Result<()> {
        self.link.pause(duration)
    }
}

/// What the other end says instead of doing what it was asked for; nothing follows.
#[derive(Debug)]
struct Refusal(String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "the other end: {}", self.0)
    }
}

impl std::error::Error for Refusal {}

/// A transfer whose streams are connected.
pub struct Prepared<'p> {
    peer: &'p mut Peer,
    spec: Transfer,
    sockets: Vec<OwnedFd>,
    pub echo: Option<OwnedFd>,
}

/// What both ends saw of a transfer.
pub struct Outcome {
    pub spec: Transfer,
    pub local: Report,
    pub remote: Report,
}

impl Prepared<'_> {
    pub fn run(self) -> anyhow::Result<Outcome> {
        self.run_beside(&mut |peer, duration| peer.pause(duration))
    }

    /// The same, but calls `meanwhile` instead of waiting.
    pub fn run_beside(
        self,
        meanwhile: &mut dyn FnMut(&Peer, Duration) -> anyhow::Result<()>,
    ) -> anyhow::Result<Outcome> {
        let Prepared { peer, spec, sockets, echo } = self;
        peer.link.send(&Request::Go)?;
        let place = peer.place.clone();
        let local =
            run_transfer(&spec, Side::Client, &sockets, &place, &mut |duration| meanwhile(peer, duration))?;
        // Of what was given up, the other end learns by the end of the connections.
        drop((sockets, echo));
        let remote = peer.report()?;
        let outcome = Outcome { spec, local, remote };
        outcome.check()?;
        Ok(outcome)
    }
}

impl Outcome {
    /// What was sent has arrived, and nothing else.
    fn check(&self) -> anyhow::Result<()> {
        let (local, remote) = (&self.local, &self.remote);
        for (end, report) in [("this end", local), ("the other end", remote)] {
            if let Some(wrong) = &report.wrong {
                check_answer(false, || format!("{end}: {wrong}"))?;
            }
        }
        for (sender, receiver) in [(local, remote), (remote, local)] {
            let whole = local.drained && remote.drained;
            let right = match self.spec.protocol {
                Transport::Tcp if whole => sender.sent == receiver.received,
                _ => receiver.received <= sender.sent,
            };
            check_answer(right, || {
                format!("{} bytes were sent, and {} arrived", sender.sent, receiver.received)
            })?;
        }
        let marks = self.spec.schedule.warm_up + self.spec.schedule.count + 1;
        check_answer(local.marks.len() == marks && remote.marks.len() == marks, || {
            format!("the ends counted {} and {} samples of {marks}", local.marks.len(), remote.marks.len())
        })
    }
}

/// An other end on this machine: the same code as the server's, in a process on these CPUs, reached
/// over loopback.
fn forked(cpus: &CpuSet, messages: Option<CpuSet>) -> anyhow::Result<(Link, Child)> {
    const LOOPBACK: &str = "loopback is down or sockets are forbidden: try `ip link set lo up`";
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(LOOPBACK)?;
    let address = listener.local_addr().context(LOOPBACK)?;
    let stream = TcpStream::connect_timeout(&address, CONNECT).context(LOOPBACK)?;
    let own = stream.local_addr().context(LOOPBACK)?;
    // Another process on this host may have connected first.
    let theirs = loop {
        let (theirs, from) = listener.accept().context(LOOPBACK)?;
        if from == own {
            break theirs;
        }
    };
    let secret: [u8; 32] = random().context("no random numbers")?;
    let keys = Keys::of("", &secret, &random().context("no random numbers")?);
    let (mut ends, for_them) = (Some((stream, theirs)), keys.clone());
    let child = process::fork(|| {
        // It keeps its own end only: by the end of the other it learns that we are gone.
        let theirs = ends.take().map(|(_, theirs)| theirs);
        let served = affinity::pin(cpus).map_err(anyhow::Error::from).and_then(|()| {
            let link = Link::new(theirs.context("the UDP stream is missing")?, for_them, Side::Server)?;
            let place = Place { seats: vec![cpus.clone()], messages: messages.clone(), interface: None };
            session::attend(link, &Host { place, port: 0, describe: &|_| String::new() })
        });
        i32::from(served.is_err())
    })
    .context("cannot fork the other end")?;
    let (stream, _) = ends.take().context("the UDP stream is missing")?;
    Ok((Link::new(stream, keys, Side::Client)?, child))
}

/// Reaches a server, proves to know its token and sees that it does, too.
pub fn dial(to: &str, token: &str) -> anyhow::Result<Link> {
    let addresses: Vec<SocketAddr> =
        to.to_socket_addrs().with_context(|| format!("cannot find the address of {to}"))?.collect();
    let begin = Instant::now();
    loop {
        match knock(to, &addresses, token)? {
            Some(link) => return Ok(link),
            None if begin.elapsed() > BUSY => {
                bail!("{to} is busy with another session: try again when that has ended")
            }
            None => std::thread::sleep(BUSY_PAUSE),
        }
    }
}

/// `None`: busy.
fn knock(to: &str, addresses: &[SocketAddr], token: &str) -> anyhow::Result<Option<Link>> {
    let mut stream = None;
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(error) => failed = Some(error),
        }
    }
    let Some(mut stream) = stream else {
        let why = failed.map_or("the name has no address".to_string(), |error| error.to_string());
        bail!("cannot reach {to} ({why}): start `assay serve` there and open its port");
    };
    stream.set_read_timeout(Some(CONNECT)).context("cannot set SO_RCVTIMEO")?;
    stream.set_write_timeout(Some(CONNECT)).context("cannot set SO_SNDTIMEO")?;
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    let nonce = random().context("no random numbers")?;
    let silent = |error: std::io::Error| match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            anyhow::anyhow!("{to} closed the connection without an answer: is `assay serve` running there?")
        }
        ErrorKind::WouldBlock => anyhow::anyhow!("{to} does not answer: is `assay serve` running there?"),
        _ => anyhow::Error::new(error).context(format!("while talking to {to}")),
    };
    stream.write_all(&Hello { version: VERSION, nonce }.bytes()).map_err(silent)?;
    let mut bytes = [0u8; HELLO_BYTES];
    stream.read_exact(&mut bytes).map_err(silent)?;
    let hello = Hello::parse(&bytes).map_err(anyhow::Error::msg)?.context("the greeting is too short")?;
    hello.agrees().map_err(|why| anyhow::anyhow!("{to}: {why}"))?;
    let keys = Keys::of(token, &nonce, &hello.nonce);
    stream.write_all(&keys.client).map_err(silent)?;
    let mut bytes = [0u8; VERDICT_BYTES];
    stream.read_exact(&mut bytes).map_err(silent)?;
    match Verdict::parse(&bytes, &keys).map_err(|why| anyhow::anyhow!("{to}: {why}"))? {
        Verdict::Welcome => Link::new(stream, keys, Side::Client).map(Some),
        Verdict::Busy => Ok(None),
        Verdict::WrongToken => bail!("{to} refuses this token: use the one that `assay serve` shows there"),
    }
}

/// A server's description of its host and of its route to this one.
pub fn remote_description(to: &str, token: &str) -> anyhow::Result<(String, SocketAddr)> {
    let link = dial(to, token)?;
    let address = link.peer()?;
    let (place, cpus, used) = Default::default();
    let mut peer = Peer { link, place, cpus, used, test: 0, _forked: None };
    let mut text = peer.describe()?;
    // What this end measured of the path, in the format of the description.
    if let Some(trip) = peer.way().round_trip {
        text.push_str(&format!("\nround_trip_us {}\n", trip.as_micros()));
    }
    Ok((text, address))
}
