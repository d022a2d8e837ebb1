//! The server's side of one session: does what its client asks for, within bounds, until the client
//! leaves.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use super::conduct::{Place, run_transfer, tune, tune_connected};
use super::door::DataPort;
use super::link::Link;
use super::messages::{CpuCosts, Reply, Report, Request, Side, SmallTest, Transfer, Transport};
use model::CpuSet;
use sys::affinity;
use sys::counters::NetworkCounters;
use sys::netlink;
use sys::process;

/// A client that sends no request for this long is disconnected.
const IDLE: Duration = Duration::from_secs(15);
/// Longest ping-pong test.
const ECHO: Duration = Duration::from_secs(120);
/// After a connection that cannot be accepted: a limit that others reached, perhaps.
const REST: Duration = Duration::from_millis(20);

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
            Request::PingPong(spec) => echo(&mut link, host, &spec),
            Request::Connect(spec) => greet(&mut link, host, &spec),
            Request::Go | Request::Stop => Err(anyhow::anyhow!("the client started without a preparation")),
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
    let way = netlink::route(address).ok()?;
    Some(netlink::interface(way.interface).ok()?.name)
}

impl Host<'_> {
    /// With the CPUs that the client names, where it may name them: its own host's.
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
    let door = DataPort::open(link, host.port, spec.protocol, spec.test, &tuned)?;
    let mut sockets = door.streams(link, spec.streams + u32::from(spec.ping_pong))?;
    let echo = if spec.ping_pong { sockets.pop() } else { None };
    for socket in &sockets {
        tune_connected(spec, socket)?;
    }
    let _echo = match &echo {
        None => None,
        Some(socket) => {
            sockopt::set_tcp_nodelay(socket, true).context("cannot set TCP_NODELAY")?;
            // On a CPU apart from the load if there is one: else a time slice of the load is
            // measured.
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
        _ => bail!("the client did not start the test that it requested"),
    }
    let report = run_transfer(spec, Side::Server, &sockets, &place, &mut |duration| link.pause(duration))?;
    link.send(&Reply::Report(Box::new(report)))
}

fn untuned(_: &OwnedFd) -> anyhow::Result<()> {
    Ok(())
}

fn echo(link: &mut Link, host: &Host, spec: &SmallTest) -> anyhow::Result<()> {
    spec.check().map_err(anyhow::Error::msg)?;
    let door = DataPort::open(link, host.port, spec.protocol, spec.test, &untuned)?;
    let socket = door.streams(link, 1)?.pop().context("no connection arrived")?;
    if spec.protocol == Transport::Tcp {
        sockopt::set_tcp_nodelay(&socket, true).context("cannot set TCP_NODELAY")?;
        if let Some(name) = &spec.congestion {
            sockopt::set_tcp_congestion(&socket, name)
                .with_context(|| format!("cannot use congestion control {name:?}"))?;
        }
    }
    // Over UDP it may come once more.
    let greeting = (spec.protocol == Transport::Udp).then(|| link.keys.cookie(spec.test, 0));
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

fn greet(link: &mut Link, host: &Host, spec: &SmallTest) -> anyhow::Result<()> {
    let door = DataPort::open(link, host.port, Transport::Tcp, spec.test, &untuned)?;
    beside(link, &host.placed(&spec.cpus), || {
        loop {
            match door.anybody() {
                // One that is gone already is the client's to notice.
                Ok(socket) => drop(rustix::net::send(&socket, &[1], SendFlags::NOSIGNAL)),
                Err(_) => std::thread::sleep(REST),
            }
        }
    })
}

/// Runs `work` in a process of its own until the client says stop, then sends what it cost.
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
        bail!("the client closed the connection without a stop");
    }
    let share = |value: Option<f64>| value.map(|value| value / elapsed);
    let cpu_costs = CpuCosts {
        busy: share(used.run_ns.map(|ns| ns / 1e9)),
        softirq: share(used.softirq_s.map(|s| s / cpus.len().max(1) as f64)),
        wait: share(used.wait_ns.map(|ns| ns / 1e9)),
        throttled: share(used.throttled_s),
        drops: share(used.drops),
    };
    let cpus = cpus.iter().collect();
    link.send(&Reply::Report(Box::new(Report { cpu_costs, cpus, drained: true, ..Report::default() })))
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
