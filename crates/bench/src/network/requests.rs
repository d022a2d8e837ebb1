//! Requests of which several are on their way together: `network.request`.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use anyhow::{Context, bail};
use rustix::net::{RecvFlags, SendFlags};

use super::DEPTHS;
use super::client::Peer;
use super::messages::Transport;
use super::trips::{
    MESSAGE, ProcessCost, TICK, control_of, emit_accounts, emit_latencies, message, patiently, text,
};
use super::window_schedule::WindowSchedule;
use crate::{Sampler, check_answer, point};
use model::Case;
use model::vocabulary::network as ids;
use sys::clock::Clock;
use sys::ticks::Ticks;

pub fn request(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut peer = Peer::of(case, sampler.secret())?;
    let schedule = WindowSchedule::of(sampler.windows(), case);
    for depth in DEPTHS {
        let socket = peer.echo(Transport::Tcp, text(case, ids::param::CONGESTION))?;
        sampler.facts().variant = control_of(&socket);
        let own = ProcessCost::start(&peer.place);
        let mut flight = Flight::begin(&socket, depth, sampler.clock())?;
        let (mut work, mut ns) = (Vec::new(), Vec::new());
        for window in 0..=schedule.count {
            let (answered, took) = flight.window(schedule.window_ms as f64 * 1e6)?;
            work.push(answered as f64);
            ns.push(took);
            if window == 0 {
                flight.latencies.clear();
            }
        }
        let local = own.account();
        let at = point(ids::param::DEPTH, depth);
        let all = ns[1..].iter().sum();
        sampler.windows_timed(at.clone(), ids::metric::RATE, (work, ns), 1)?;
        emit_latencies(sampler, at.clone(), &flight.latencies, all)?;
        drop(flight);
        let remote = peer.stop()?;
        emit_accounts(sampler, &at, local, remote, all)?;
    }
    sampler.facts().notes.extend(peer.seats_there());
    Ok(())
}

/// Requests on their way, in their order.
struct Flight<'s> {
    socket: &'s OwnedFd,
    clock: Clock,
    /// When those on their way were written.
    written: VecDeque<f64>,
    /// The next to be written, and the next to be answered.
    next: u64,
    due: u64,
    pending: Vec<u8>,
    latencies: Vec<u64>,
    _ticks: Ticks,
}

impl<'s> Flight<'s> {
    fn begin(socket: &'s OwnedFd, depth: u64, clock: Clock) -> anyhow::Result<Flight<'s>> {
        let _ticks = Ticks::start(TICK).context("cannot start a timer")?;
        let (written, pending, latencies) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut flight = Flight { socket, clock, written, next: 0, due: 0, pending, latencies, _ticks };
        flight.write(depth)?;
        Ok(flight)
    }

    /// Writes this many requests at once.
    fn write(&mut self, count: u64) -> anyhow::Result<()> {
        let bytes: Vec<u8> = (0..count).flat_map(|index| message(self.next + index)).collect();
        let now = self.clock.now();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let sent = patiently(|| rustix::net::send(self.socket, rest, SendFlags::NOSIGNAL));
            rest = &rest[sent.context("the other end closed the connection")?..];
        }
        self.written.extend((0..count).map(|_| now));
        self.next += count;
        Ok(())
    }

    /// Runs for this long; returns the number of answers and the time, ns.
    fn window(&mut self, length_ns: f64) -> anyhow::Result<(u64, f64)> {
        let (begin, mut answered) = (self.clock.now(), 0);
        let mut buffer = [0u8; 64 << 10];
        loop {
            let read =
                patiently(
                    || Ok(rustix::net::recv(self.socket, buffer.as_mut_slice(), RecvFlags::empty())?.1),
                );
            let count = read.context("the other end no longer answers")?;
            if count == 0 {
                bail!("the other end closed the connection");
            }
            let now = self.clock.now();
            self.pending.extend_from_slice(&buffer[..count]);
            let whole = self.pending.len() / MESSAGE;
            for answer in self.pending.chunks_exact(MESSAGE) {
                check_answer(answer == message(self.due), || {
                    format!("request {} got another one's answer", self.due)
                })?;
                let written = self.written.pop_front().context("an answer arrived without a request")?;
                self.latencies.push((now - written).max(1.0) as u64);
                self.due += 1;
            }
            self.pending.drain(..whole * MESSAGE);
            answered += whole as u64;
            self.write(whole as u64)?;
            if now - begin >= length_ns && answered > 0 {
                return Ok((answered, now - begin));
            }
        }
    }
}
