//! The rows of latency: messages that come back, alone or during a load, and connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::client::Peer;
use super::conduct::Place;
use super::messages::{CpuCosts, Transfer, Transport};
use super::transfers::wanted;
use super::window_schedule::{MIN_TRIPS, WindowSchedule};
use crate::{Sampler, backed, check_answer, histogram, median};
use model::vocabulary::ParamId;
use model::vocabulary::network as ids;
use model::{Case, Params};
use sys::affinity;
use sys::clock::Clock;
use sys::counters::{NetworkCounters, NetworkTotals};
use sys::ticks::Ticks;

/// Size of a message, bytes.
pub(super) const MESSAGE: usize = 64;
/// Ends every wait. This many without an answer are a loss over UDP and an error over TCP.
pub(super) const TICK: Duration = Duration::from_millis(250);
const LOST_TICKS: u32 = 2;
const PATIENCE_TICKS: u32 = 40;
/// Successive losses after which a pass gives up.
const LOST_AT_ONCE: u64 = 20;

/// Messages that go to and fro, one at a time.
struct Trips<'s> {
    socket: &'s OwnedFd,
    protocol: Transport,
    clock: Clock,
    number: u64,
    /// ns, in their order, and when each began, by the clock.
    latencies: Vec<u64>,
    begins: Vec<f64>,
    lost: u64,
    _ticks: Ticks,
}

impl<'s> Trips<'s> {
    fn new(socket: &'s OwnedFd, protocol: Transport, clock: Clock) -> anyhow::Result<Trips<'s>> {
        let _ticks = Ticks::start(TICK).context("cannot start a timer")?;
        let (latencies, begins) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
        Ok(Trips { socket, protocol, clock, number: 0, latencies, begins, lost: 0, _ticks })
    }

    fn run_for(&mut self, duration: Duration) -> anyhow::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < duration {
            self.one()?;
        }
        Ok(())
    }

    /// Forgets what was measured so far: a start.
    fn forget(&mut self) {
        self.latencies.clear();
        self.begins.clear();
        self.lost = 0;
    }

    /// Keeps only those that began and ended in a span of the clock; where each is too long for
    /// that, those that were on their way in it.
    fn keep_within(&mut self, from: f64, to: f64) {
        let kept = |fits: &dyn Fn(f64, f64) -> bool| -> (Vec<f64>, Vec<u64>) {
            let both = self.begins.iter().copied().zip(self.latencies.iter().copied());
            both.filter(|(begin, ns)| fits(*begin, begin + *ns as f64)).unzip()
        };
        let mut within = kept(&|begin, end| begin >= from && end <= to);
        if within.0.is_empty() {
            within = kept(&|begin, end| begin < to && end > from);
        }
        (self.begins, self.latencies) = within;
    }

    /// The same, and on a long way for as many as a median needs.
    fn run_counted(&mut self, duration: Duration) -> anyhow::Result<()> {
        self.run_for(duration)?;
        while self.latencies.len() < MIN_TRIPS {
            self.one()?;
        }
        Ok(())
    }

    fn one(&mut self) -> anyhow::Result<()> {
        let mut lost_at_once = 0;
        loop {
            self.number += 1;
            let message = message(self.number);
            let begin = self.clock.now();
            self.send(&message)?;
            if self.answered(&message)? {
                self.latencies.push((self.clock.now() - begin).max(1.0) as u64);
                self.begins.push(begin);
                return Ok(());
            }
            self.lost += 1;
            lost_at_once += 1;
            if lost_at_once >= LOST_AT_ONCE {
                bail!("{LOST_AT_ONCE} messages in a row got no answer");
            }
        }
    }

    fn send(&self, message: &[u8]) -> anyhow::Result<()> {
        loop {
            match rustix::net::send(self.socket, message, SendFlags::NOSIGNAL) {
                Ok(count) if count == message.len() => return Ok(()),
                Ok(count) => bail!("{count} bytes of a message of {} were sent", message.len()),
                Err(Errno::INTR) => {}
                Err(Errno::CONNREFUSED | Errno::NOBUFS) if self.protocol == Transport::Udp => return Ok(()),
                Err(error) => return Err(error).context("the other end closed the connection"),
            }
        }
    }

    /// Waits for this very message; false when it is lost.
    fn answered(&self, message: &[u8; MESSAGE]) -> anyhow::Result<bool> {
        let mut buffer = [0u8; MESSAGE];
        let (mut have, mut ticks) = (0, 0);
        loop {
            match rustix::net::recv(self.socket, &mut buffer[have..], RecvFlags::empty()) {
                Ok((_, 0)) if self.protocol == Transport::Tcp => bail!("the other end closed the connection"),
                Ok((_, count)) => have += count,
                Err(Errno::INTR) => {
                    ticks += 1;
                    match self.protocol {
                        Transport::Udp if ticks > LOST_TICKS => return Ok(false),
                        Transport::Tcp if ticks > PATIENCE_TICKS => {
                            bail!("the other end no longer answers")
                        }
                        _ => {}
                    }
                }
                Err(Errno::CONNREFUSED) if self.protocol == Transport::Udp => {}
                Err(error) => return Err(error).context("the other end closed the connection"),
            }
            if have < MESSAGE && (self.protocol == Transport::Tcp || have == 0) {
                continue;
            }
            if buffer == *message {
                return Ok(true);
            }
            // An answer that was given up comes late; anything else was never sent.
            let number = u64::from_be_bytes([
                buffer[0], buffer[1], buffer[2], buffer[3], buffer[4], buffer[5], buffer[6], buffer[7],
            ]);
            let late =
                self.protocol == Transport::Udp && number < self.number && buffer == self::message(number);
            check_answer(late, || format!("the answer is not message {}", self.number))?;
            have = 0;
        }
    }

    /// Mean difference of neighbours, us.
    fn jitter(&self) -> f64 {
        let differences = self.latencies.windows(2).map(|pair| pair[0].abs_diff(pair[1]) as f64);
        differences.sum::<f64>() / 1e3 / (self.latencies.len().max(2) - 1) as f64
    }

    fn median_us(&self) -> f64 {
        median(self.latencies.iter().map(|ns| *ns as f64 / 1e3).collect())
    }

    /// Emits them as one histogram, and their jitter.
    fn emit(&self, sampler: &mut Sampler) -> anyhow::Result<()> {
        let ns = self.latencies.iter().sum::<u64>() as f64;
        emit_latencies(sampler, Params::new(), &self.latencies, ns)?;
        sampler.value(Params::new(), ids::metric::JITTER, self.jitter(), ns)
    }
}

/// A number, and bytes that follow from it.
pub(super) fn message(number: u64) -> [u8; MESSAGE] {
    let mut bytes = [number as u8 ^ 0x5a; MESSAGE];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

pub(super) fn emit_latencies(
    sampler: &mut Sampler,
    at: Params,
    latencies: &[u64],
    ns: f64,
) -> anyhow::Result<()> {
    let told = backed(latencies.len() as u64);
    sampler.histogram_at(at, &told, histogram(latencies.iter().copied()), ns)
}

/// CPU cost of this process.
pub(super) struct ProcessCost {
    counters: NetworkCounters,
    before: NetworkTotals,
    begin: Instant,
}

impl ProcessCost {
    pub(super) fn start(place: &Place) -> ProcessCost {
        let mut counters = NetworkCounters::open(&[std::process::id()], &place.cpus(1), None);
        ProcessCost { before: counters.read(), counters, begin: Instant::now() }
    }

    pub(super) fn account(mut self) -> CpuCosts {
        let (used, elapsed) = (self.counters.read().since(self.before), self.begin.elapsed().as_secs_f64());
        let share = |ns: Option<f64>| ns.map(|ns| ns / 1e9 / elapsed);
        CpuCosts { busy: share(used.run_ns), wait: share(used.wait_ns), ..CpuCosts::default() }
    }
}

/// The congestion control that a connection has, in words.
pub(super) fn control_of(socket: &OwnedFd) -> Option<String> {
    sockopt::tcp_congestion(socket).ok().map(|name| format!("congestion control {name}"))
}

pub(super) fn emit_accounts(
    sampler: &mut Sampler,
    at: &Params,
    local: CpuCosts,
    remote: CpuCosts,
    ns: f64,
) -> anyhow::Result<()> {
    let told = [
        (ids::metric::LOCAL_BUSY, local.busy),
        (ids::metric::REMOTE_BUSY, remote.busy),
        (ids::metric::LOCAL_WAIT, local.wait),
        (ids::metric::REMOTE_WAIT, remote.wait),
    ];
    for (metric, value) in told {
        if let Some(value) = value {
            sampler.value(at.clone(), metric, value, ns)?;
        }
    }
    Ok(())
}

/// How long the counted part of a pass lasts, and what comes before.
fn spans(schedule: WindowSchedule) -> (Duration, Duration) {
    let windows = |count: usize| Duration::from_millis(schedule.window_ms * count as u64);
    (windows(1), windows(schedule.count))
}

pub(super) fn text(case: &Case, name: ParamId) -> Option<&str> {
    case.params.get(name).and_then(|value| value.text())
}

pub fn round_trip(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut peer = Peer::of(case, sampler.secret())?;
    let protocol =
        if text(case, ids::param::PROTOCOL) == Some("udp") { Transport::Udp } else { Transport::Tcp };
    let (warm_up, counted) = spans(WindowSchedule::of(sampler.windows(), case));
    let socket = peer.echo(protocol, text(case, ids::param::CONGESTION))?;
    // None over UDP.
    sampler.facts().variant = (protocol == Transport::Tcp).then(|| control_of(&socket)).flatten();
    let mut trips = Trips::new(&socket, protocol, sampler.clock())?;
    trips.run_for(warm_up)?;
    trips.forget();
    let own = ProcessCost::start(&peer.place);
    trips.run_counted(counted)?;
    let local = own.account();
    trips.emit(sampler)?;
    let ns = counted.as_nanos() as f64;
    if protocol == Transport::Udp {
        let all = trips.lost + trips.latencies.len() as u64;
        sampler.value(Params::new(), ids::metric::LOSS, trips.lost as f64 / all as f64, ns)?;
    }
    drop(trips);
    let remote = peer.stop()?;
    sampler.facts().notes.extend(peer.seats_there());
    emit_accounts(sampler, &Params::new(), local, remote, ns)
}

pub fn connect(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut peer = Peer::of(case, sampler.secret())?;
    let schedule = WindowSchedule::of(sampler.windows(), case);
    let to = peer.greeter()?;
    let _ticks = Ticks::start(TICK).context("cannot start a timer")?;
    let own = ProcessCost::start(&peer.place);
    let (mut work, mut ns, mut latencies) = (Vec::new(), Vec::new(), Vec::new());
    let clock = sampler.clock();
    for window in 0..=schedule.count {
        let (begin, mut count) = (clock.now(), 0u64);
        let mut now = begin;
        while now - begin < schedule.window_ms as f64 * 1e6 || count == 0 {
            once(&to)?;
            let end = clock.now();
            if window > 0 {
                latencies.push((end - now).max(1.0) as u64);
            }
            now = end;
            count += 1;
        }
        work.push(count as f64);
        ns.push(now - begin);
    }
    let local = own.account();
    let all = ns[1..].iter().sum();
    sampler.windows_timed(Params::new(), ids::metric::RATE, (work, ns), 1)?;
    emit_latencies(sampler, Params::new(), &latencies, all)?;
    let remote = peer.stop()?;
    sampler.facts().notes.extend(peer.seats_there());
    emit_accounts(sampler, &Params::new(), local, remote, all)
}

/// One connection: made, its byte read, closed by a reset.
fn once(to: &SocketAddr) -> anyhow::Result<()> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .context("cannot make a socket")?;
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).context("cannot set SO_LINGER")?;
    patiently(|| match rustix::net::connect(&socket, to) {
        // An interrupted one was completed, or still is on its way.
        Err(Errno::ISCONN) => Ok(()),
        Err(Errno::ALREADY) => Err(Errno::INTR),
        connected => connected,
    })
    .context("cannot connect")?;
    let mut byte = [0u8; 1];
    let count = patiently(|| Ok(rustix::net::recv(&socket, byte.as_mut_slice(), RecvFlags::empty())?.1))
        .context("a connection was not accepted")?;
    check_answer(count == 1 && byte == [1], || {
        format!("a connection started with {count} bytes ({byte:?}), not one")
    })
}

/// Repeats interrupted calls for this many ticks.
pub(super) fn patiently<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    for _ in 0..PATIENCE_TICKS {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

pub fn loaded(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut peer = Peer::of(case, sampler.secret())?;
    let spec = Transfer { ping_pong: true, ..wanted(case, sampler, peer.way())? };
    // On a CPU apart from the load if there is one.
    if let Some(seat) = &peer.place.messages {
        affinity::pin(seat).with_context(|| format!("cannot pin to CPUs {seat}"))?;
    }
    let mut prepared = peer.prepare(spec.clone())?;
    let socket = prepared.echo.take().context("the ping-pong connection is missing")?;
    sockopt::set_tcp_nodelay(&socket, true).context("cannot set TCP_NODELAY")?;
    let clock = sampler.clock();
    let (warm_up, _) = spans(WindowSchedule::of(sampler.windows(), case));
    let (_, counted) = spans(spec.schedule);
    let mut idle = Trips::new(&socket, Transport::Tcp, clock)?;
    idle.run_for(warm_up)?;
    idle.forget();
    idle.run_counted(counted)?;
    let mut trips = Trips { number: idle.number, ..Trips::new(&socket, Transport::Tcp, clock)? };
    let idle_us = idle.median_us();
    drop(idle);
    let whole =
        Duration::from_millis(spec.schedule.window_ms * (spec.schedule.warm_up + spec.schedule.count) as u64);
    // By the clock of the trips: when the transfer began. It waits first for its first window to
    // end.
    let mut began = None;
    let outcome = prepared.run_beside(&mut |peer, duration| {
        let window_ns = spec.schedule.window_ms as f64 * 1e6;
        let began = *began.get_or_insert(clock.now() - (window_ns - duration.as_nanos() as f64));
        if clock.now() - began >= whole.as_nanos() as f64 {
            return peer.pause(duration);
        }
        trips.run_for(duration)
    })?;
    let marks = &outcome.local.marks;
    let edges = marks.get(spec.schedule.warm_up).zip(marks.last()).zip(began);
    let ((first, last), began) = edges.context("a transfer without samples")?;
    trips.keep_within(began + first.ns, began + last.ns);
    if trips.latencies.is_empty() {
        bail!("no message came back in {:.0} ms under load", (last.ns - first.ns) / 1e6);
    }
    trips.emit(sampler)?;
    sampler.facts().variant = outcome.congestion().map(|name| format!("congestion control {name}"));
    sampler.facts().notes.extend(peer.seats_there());
    let ns = outcome.counted_ns();
    sampler.value(Params::new(), ids::metric::LATENCY_IDLE_P50, idle_us, ns)?;
    sampler.value(Params::new(), ids::metric::LOAD, outcome.bits_per_second() / 1e9, ns)?;
    for (metric, value) in outcome.beside() {
        sampler.value(Params::new(), metric, value, ns)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_before_or_ended_after_the_counted_time_is_dropped() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let socket = OwnedFd::from(socket);
        let mut trips = Trips::new(&socket, Transport::Tcp, Clock::Raw).expect("trips");
        // A start of 100 ms with long trips, 100 ms that are counted, and what came after.
        for (begin_ms, took_ms) in [(0, 60), (60, 50), (110, 7), (150, 9), (195, 4), (198, 30), (230, 1)] {
            trips.begins.push(f64::from(begin_ms) * 1e6);
            trips.latencies.push(took_ms * 1_000_000);
        }
        trips.keep_within(100e6, 200e6);
        assert_eq!(trips.latencies, [7_000_000, 9_000_000, 4_000_000]);
        assert_eq!(trips.begins.len(), 3);
        assert_eq!(trips.jitter(), 3500.0);
        trips.keep_within(151e6, 158e6);
        assert_eq!(trips.latencies, [9_000_000], "longer than the counted time, and on its way in all of it");
    }
}
