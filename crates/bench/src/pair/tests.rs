//! Every carrier carries, and nothing that a partner does makes the other wait forever.

use super::channel::{self, Channel};
use super::*;
use crate::WrongAnswer;
use crate::placement::Placements;
use machine::Machine;
use model::CpuSet;
use sys::clock;

/// A pair that the scheduler may put on any of these CPUs.
fn on(cpus: CpuSet) -> Placement {
    let mut machine = Machine::default();
    machine.cpus.online = cpus;
    Placements::of(&machine).free(&ROLES).expect("a CPU")
}

pub fn free() -> Placement {
    on(affinity::allowed().expect("affinity"))
}

fn own_clock() -> Clock {
    Clock::from_run(&clock::calibrate(true))
}

fn system_v() -> anyhow::Result<[lines::SystemV; 2]> {
    let [a, b, c, d] = sys::random::random()?;
    lines::system_v(&Ok(i32::from_ne_bytes([a, b, c, d | 1])))
}

/// A thousand tokens, on one CPU as well, and some stamps.
fn exchange<E: End>(make: fn() -> anyhow::Result<[E; 2]>, on_one_cpu: bool) {
    let one = affinity::allowed().expect("affinity").last().map(CpuSet::one).expect("a CPU");
    let mut placements = vec![free()];
    placements.extend(on_one_cpu.then(|| on(one)));
    for placement in placements {
        let before = affinity::allowed().expect("affinity");
        let mut pair = Pair::start(&placement, own_clock(), make).expect("a pair");
        assert!(pair.play(1000).expect("1000 round trips") > 0.0);
        assert_eq!(pair.token, 1000);
        let (histogram, _, parts) = pair.wake_ups(100).expect("100 stamps");
        assert_eq!(histogram.total(), 100);
        assert!(parts.len() == 4 && parts[..2].iter().all(|part| *part >= 0.0), "{parts:?}");
        pair.stop().expect("the partner leaves content");
        affinity::pin(&before).expect("all CPUs again");
    }
}

#[test]
fn pipes_and_fifos_carry() {
    exchange(channel::pipes, true);
    exchange(channel::fifos, true);
}

#[test]
fn unix_sockets_carry() {
    exchange(channel::unix_streams, true);
    exchange(channel::unix_datagrams, true);
}

#[test]
fn the_network_carries() {
    exchange(channel::tcp, true);
    exchange(channel::udp, true);
}

#[test]
fn events_and_futexes_carry() {
    exchange(channel::events, true);
    exchange(lines::futexes, true);
}

#[test]
fn semaphores_carry() {
    exchange(system_v, true);
    exchange(lines::posix, true);
}

#[test]
fn record_locks_carry() {
    exchange(lines::records, true);
}

#[test]
fn spinners_carry() {
    if affinity::allowed().expect("affinity").len() > 1 {
        exchange(lines::spinners, false);
    }
}

/// The partner's side goes wrong at a token.
struct Faulty<E> {
    end: E,
    fault: fn(u64) -> u64,
}

impl<E: End> End for Faulty<E> {
    fn enter(&mut self) -> io::Result<()> {
        self.end.enter()
    }
    fn send(&mut self, token: u64) -> io::Result<()> {
        self.end.send((self.fault)(token))
    }
    fn receive(&mut self) -> io::Result<u64> {
        self.end.receive()
    }
}

fn faulty<E: End>(
    make: fn() -> anyhow::Result<[E; 2]>,
    fault: fn(u64) -> u64,
) -> anyhow::Result<[Faulty<E>; 2]> {
    let [ours, theirs] = make()?;
    Ok([Faulty { end: ours, fault: |token| token }, Faulty { end: theirs, fault }])
}

fn error_of<E: End>(make: fn() -> anyhow::Result<[E; 2]>, fault: fn(u64) -> u64) -> anyhow::Error {
    let begin = Instant::now();
    let mut pair = Pair::start(&free(), own_clock(), || faulty(make, fault)).expect("a pair");
    let error = pair.play(1000).expect_err("a token goes wrong");
    assert!(begin.elapsed() < PATIENCE, "found out late: {error:#}");
    error
}

#[test]
fn a_wrong_token_is_a_wrong_answer() {
    let wrong: fn(u64) -> u64 = |token| if token == 500 { 7 } else { token };
    for error in [error_of(channel::pipes, wrong), error_of(lines::futexes, wrong)] {
        assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error:#}");
        assert_eq!(error.to_string(), "token 499 came back as 7");
    }
}

#[test]
fn a_partner_that_dies_is_an_error_whatever_carried() {
    let dies: fn(u64) -> u64 = |token| if token == 500 { std::process::abort() } else { token };
    let mut errors = vec![
        error_of(channel::pipes, dies),
        error_of(channel::fifos, dies),
        error_of(channel::unix_streams, dies),
        error_of(channel::unix_datagrams, dies),
        error_of(channel::tcp, dies),
        error_of(channel::udp, dies),
        error_of(channel::events, dies),
        error_of(lines::futexes, dies),
        error_of(system_v, dies),
        error_of(lines::posix, dies),
    ];
    if affinity::allowed().expect("affinity").len() > 1 {
        // Where both have to share a CPU, each of their round trips takes two time slices.
        let dies_soon: fn(u64) -> u64 = |token| if token == 5 { std::process::abort() } else { token };
        errors.push(error_of(lines::spinners, dies_soon));
    }
    for error in errors {
        assert!(error.downcast_ref::<WrongAnswer>().is_none(), "{error:#}");
    }
    // Its locks go with it, so that the turn passes without a token.
    let error = error_of(lines::records, dies);
    assert!(!format!("{error:#}").is_empty());
}

#[test]
fn a_silent_end_is_the_partners_end() {
    // Pipes that stay open in both directions although the partner is gone: only the tick can
    // notice.
    let make = || {
        let [mut ours, theirs] = channel::pipes()?;
        let (reads, writes) = rustix::pipe::pipe()?;
        // Leaked: they stay open, so no write finds its reader gone and no read its writer.
        std::mem::forget(writes);
        std::mem::forget(theirs.reads.try_clone()?);
        ours.reads = reads;
        Ok([ours, theirs])
    };
    let mut pair: Pair<Channel> = Pair::start(&free(), own_clock(), make).expect("a pair");
    pair.end.send(STOP).expect("it takes the last token");
    let error = pair.play(1).expect_err("nobody answers").to_string();
    assert!(error.contains("the partner ended (exit status: 0)"), "{error}");
}
