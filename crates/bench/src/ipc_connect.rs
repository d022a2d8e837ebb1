//! Connections to a partner that listens: made, accepted, closed.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Context;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType};

use super::occupancy::{CLASS, CpuNote, OCCUPANCY};
use super::pair::{self, Watch, again, channel};
use super::{Benchmark, Candidate, Depth, LATENCY_US, Point, Sampler, Scope, check_answer};
use model::vocabulary::ipc as ids;
use model::{Case, Params, Placement};
use sys::token;

const CONNECT: Benchmark = Benchmark {
    source: file!(),
    metrics: &[LATENCY_US, OCCUPANCY],
    params: &[CLASS],
    cases,
    ..Benchmark::PINNED
};

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::TCP_CONNECT,
        title: "TCP connection over loopback",
        about: "Time to open a TCP connection to a process on 127.0.0.1 and close it, with accept and close at the \
                other end.",
        reading: "Lower is better: 10–30 µs for three packets and a reset, two sockets and part of a wake-up. On two \
                  CPUs accepting overlaps with connecting, so the figure is the longer side. Conntrack, firewall \
                  rules and security modules add to every connection.",
        method: "As lmbench's lat_connect. After every 16 connections both processes compare their counts, so the \
                 partner's work is in the figure. The caller closes by reset (SO_LINGER of 0), so no connection \
                 stays in TIME_WAIT and no port is used up.",
        run: |case, sampler| run(case, sampler, tcp),
        ..CONNECT
    },
    Benchmark {
        id: ids::UNIX_CONNECT,
        title: "Unix stream socket connection",
        about: "Time to open a Unix stream socket connection and close it, with accept and close at the other end.",
        reading: "Lower is better: 4–12 µs for two sockets and part of a wake-up, without packets. That is well \
                  below ipc.tcp-connect. Local services pay it for each new client. Security modules add to it.",
        method: "As ipc.tcp-connect, under an abstract name that needs no file. After every 16 connections both \
                 processes compare their counts.",
        run: |case, sampler| run(case, sampler, unix),
        ..CONNECT
    },
];

/// One CPU for the quick profile.
fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let wanted = |candidate: &Candidate| {
        scope.depth > Depth::Quick || candidate.unmet.is_some() || pair::on_one_cpu(&candidate.case.placement)
    };
    pair::candidates(bench, scope, 1, pair::WINDOW_NS).into_iter().filter(wanted).collect()
}

/// Connections between two checks of the counts, fewer than a listener's queue holds: a full one
/// drops packets, and TCP waits for a second.
const BATCH: u64 = 16;
const QUEUE: i32 = 64;

/// A bound socket and its address.
type Door = (OwnedFd, SocketAddrAny);

fn tcp() -> anyhow::Result<Door> {
    channel::on_loopback(SocketType::STREAM)
}

fn unix() -> anyhow::Result<Door> {
    let make = || -> rustix::io::Result<Door> {
        let kind = SocketType::STREAM;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        // Without a name the kernel chooses a free abstract one.
        rustix::net::bind(&socket, &SocketAddrUnix::new_unnamed())?;
        let address = rustix::net::getsockname(&socket)?;
        Ok((socket, address))
    };
    make().context("cannot make a Unix socket")
}

fn run(case: &Case, sampler: &mut Sampler, open: fn() -> anyhow::Result<Door>) -> anyhow::Result<()> {
    let clock = sampler.clock();
    let mut caller = Caller::start(&case.placement, open()?, u64::MAX)?;
    let stretch = pair::stretch(sampler.windows(), &case.placement, pair::WINDOW_NS);
    caller.spot.watch(case);
    let notes = caller.spot.notes(&Params::new());
    sampler.time_noting(
        Point::new(ids::metric::LATENCY, BATCH as f64).stretch(stretch),
        &notes,
        |batches| {
            let begin = clock.now();
            for _ in 0..batches {
                caller.batch()?;
                caller.spot.look();
            }
            Ok((clock.now() - begin, caller.spot.take()))
        },
    )?;
    Ok(())
}

/// Who connects; the partner dies with it.
struct Caller {
    address: SocketAddrAny,
    counts: OwnedFd,
    partner: Watch,
    connected: u64,
    spot: CpuNote,
}

impl Caller {
    /// The partner leaves after `guests` connections.
    fn start(placement: &Placement, (listener, address): Door, guests: u64) -> anyhow::Result<Caller> {
        rustix::net::listen(&listener, QUEUE).context("cannot listen")?;
        let (counts, tells) = rustix::pipe::pipe().context("cannot make a pipe")?;
        let ends = (counts, (listener, tells));
        let spot = CpuNote::new().context("cannot map shared memory")?;
        let (counts, partner) =
            pair::fork_beside(placement, ends, |(listener, tells)| accept(&listener, &tells, guests, &spot))?;
        Ok(Caller { address, counts, partner, connected: 0, spot })
    }

    /// Connects [`BATCH`] times, then waits until all have been accepted and closed.
    fn batch(&mut self) -> anyhow::Result<()> {
        for _ in 0..BATCH {
            self.connect()?;
        }
        let Caller { counts, partner, connected, .. } = self;
        let accepted = partner.patiently("hear from", || token::receive_once(counts.as_fd()))?;
        match accepted == *connected {
            true => Ok(()),
            false => {
                check_answer(false, || format!("{connected} connections were opened but {accepted} accepted"))
            }
        }
    }

    fn connect(&mut self) -> anyhow::Result<()> {
        let family = self.address.address_family();
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .context("cannot make a socket")?;
        if family == AddressFamily::INET {
            set_socket_linger(&socket, Some(Duration::ZERO)).context("cannot set SO_LINGER")?;
        }
        let address = &self.address;
        let connected =
            self.partner.patiently("connect to", || match rustix::net::connect(&socket, address) {
                // An interrupted one was completed in the meantime.
                Ok(()) | Err(Errno::ISCONN) => Ok(()),
                Err(error) => Err(error.into()),
            });
        self.connected += 1;
        match family {
            AddressFamily::INET => connected.context(channel::LOOPBACK),
            _ => connected,
        }
    }
}

/// The partner's side.
fn accept(listener: &OwnedFd, tells: &OwnedFd, guests: u64, spot: &CpuNote) -> anyhow::Result<()> {
    for accepted in 1..=guests {
        drop(again(|| Ok(rustix::net::accept_with(listener, SocketFlags::CLOEXEC)?))?);
        if accepted.is_multiple_of(BATCH) {
            spot.note();
            token::send(tells.as_fd(), accepted)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::tests::free;

    #[test]
    fn as_many_are_accepted_as_connect() {
        for open in [tcp, unix] {
            let mut caller = Caller::start(&free(), open().expect("a door"), u64::MAX).expect("a partner");
            (0..100).try_for_each(|_| caller.batch()).expect("all are accepted");
            assert_eq!(caller.connected, 100 * BATCH);
        }
    }

    #[test]
    fn a_wrong_count_is_a_wrong_answer() {
        let mut caller = Caller::start(&free(), unix().expect("a door"), u64::MAX).expect("a partner");
        caller.connected = 1;
        let error = caller.batch().expect_err("one more than there were").to_string();
        assert_eq!(error, "17 connections were opened but 16 accepted");
    }

    #[test]
    fn a_partner_that_leaves_is_an_error() {
        for open in [tcp, unix] {
            let mut caller = Caller::start(&free(), open().expect("a door"), BATCH + 3).expect("a partner");
            caller.batch().expect("the first are accepted");
            assert!(caller.batch().is_err());
        }
    }
}
