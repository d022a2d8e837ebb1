//! What the flags are worth, on fleets whose truth is known: how often a healthy host is flagged,
//! how often a slow one is found.
//!
//! A host has eight benchmarks in each of six parts. Healthy hosts differ by 1 % (standard
//! deviation) in each benchmark and by 0.5 % in all together; a measured value has an interval of
//! ±0.5 %.

use fastrand::Rng;

use crate::proof::{Rate, bounds};
use compare::peers::fleet::{Fleet, HostResult, Series};
use compare::peers::judge;
use model::Better;
use stats::noise::normal;

bounds! {
    /// Most healthy hosts that are flagged in anything, of hosts in healthy fleets.
    PEERS_FALSE_MOST = 0.002;
    /// Least hosts found that are 10 % slow in one part of the machine, among 50 hosts or more ...
    PEERS_TENTH_LEAST = 0.99;
    /// ... and that are 5 % slow.
    PEERS_TWENTIETH_LEAST = 0.95;
}

const PARTS: [&str; 6] = ["cpu", "memory", "syscall", "ipc", "process", "disk"];
const BENCHMARKS: usize = 8;
const SPREAD: f64 = 0.01;
const LEVEL: f64 = 0.005;
const HALF: f64 = 0.005;

/// What is wrong with one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// All benchmarks of memory are slower by this share.
    Part(f64),
    /// One benchmark of it is.
    Single(f64),
}

/// What was seen in simulated fleets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Healthy hosts that were flagged.
    pub false_hosts: Rate,
    /// Fleets in which a healthy host was.
    pub false_fleets: Rate,
    /// Faulty hosts that were flagged in memory.
    pub found: Rate,
}

/// Fleets of this many hosts, the first of which has the fault.
pub fn fleets(hosts: usize, fault: Fault, trials: usize, seed: u64) -> Seen {
    let mut rng = Rng::with_seed(seed);
    let mut seen = Seen::default();
    for _ in 0..trials {
        let mut fleet = Fleet::default();
        for number in 0..hosts {
            fleet.add(host(number, if number == 0 { fault } else { Fault::None }, &mut rng));
        }
        let peers = judge(fleet);
        let mut any = false;
        for (number, standing) in peers.standings.iter().enumerate() {
            let in_memory = |metric: usize| peers.fleet.metrics[metric].component.starts_with("memory");
            if number == 0 && fault != Fault::None {
                let part =
                    standing.scores.iter().any(|one| one.flagged && one.component.starts_with("memory"));
                seen.found.count(part || standing.flags.iter().any(|flag| in_memory(flag.metric)));
                continue;
            }
            let flagged = standing.worst().is_some() || !standing.flags.is_empty();
            seen.false_hosts.count(flagged);
            any |= flagged;
        }
        seen.false_fleets.count(any);
    }
    seen
}

/// What was seen in a large fleet, in which of each thousand hosts six are slow: in a part or in
/// one benchmark, by each of [`SLOWER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Large {
    pub false_hosts: Rate,
    pub parts: [Rate; 3],
    pub singles: [Rate; 3],
}

pub const SLOWER: [f64; 3] = [0.05, 0.1, 0.2];

pub fn large(hosts: usize, seed: u64) -> Large {
    let mut rng = Rng::with_seed(seed);
    let (mut fleet, mut seen) = (Fleet::default(), Large::default());
    let fault = |number: usize| match number % 1000 {
        at @ 0..3 => Fault::Part(SLOWER[at]),
        at @ 3..6 => Fault::Single(SLOWER[at - 3]),
        _ => Fault::None,
    };
    (0..hosts).for_each(|number| fleet.add(host(number, fault(number), &mut rng)));
    for (number, standing) in judge(fleet).standings.iter().enumerate() {
        let rate = match number % 1000 {
            at @ 0..3 => &mut seen.parts[at],
            at @ 3..6 => &mut seen.singles[at - 3],
            _ => &mut seen.false_hosts,
        };
        rate.count(standing.is_behind());
    }
    seen
}

fn host(number: usize, fault: Fault, rng: &mut Rng) -> HostResult {
    let level = LEVEL * normal(rng);
    let mut series = Vec::with_capacity(PARTS.len() * BENCHMARKS);
    for part in PARTS {
        for bench in 0..BENCHMARKS {
            let slow = match fault {
                Fault::Part(share) if part == "memory" => 1.0 - share,
                Fault::Single(share) if part == "memory" && bench == 0 => 1.0 - share,
                _ => 1.0,
            };
            let median = 100.0 * slow * (level + SPREAD * normal(rng)).exp();
            series.push(Series {
                key: format!("{part}.test{bench}@one-cpu#rate"),
                unit: "1/s".to_string(),
                better: Some(Better::Higher),
                headline: true,
                median,
                ci95: Some([median * (1.0 - HALF), median * (1.0 + HALF)]),
            });
        }
    }
    HostResult { host: format!("h{number}"), file: format!("h{number}"), series, ..HostResult::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed bound is a changed promise.
    #[test]
    fn the_texts_state_these_bounds() {
        crate::texts_state(BOUNDS);
    }

    #[test]
    fn healthy_hosts_are_rarely_flagged() {
        for (hosts, trials) in [(10, 300), (50, 60), (200, 15)] {
            let seen = fleets(hosts, Fault::None, trials, 1);
            assert!(seen.false_hosts.share() <= PEERS_FALSE_MOST, "{hosts}: {:?}", seen.false_hosts);
        }
    }

    #[test]
    fn slow_parts_are_found_and_more_surely_among_more() {
        for hosts in [50, 200] {
            let tenth = fleets(hosts, Fault::Part(0.1), 30, 2).found;
            assert!(tenth.share() >= PEERS_TENTH_LEAST, "{hosts}: {tenth}");
            let twentieth = fleets(hosts, Fault::Part(0.05), 30, 3).found;
            assert!(twentieth.share() >= PEERS_TWENTIETH_LEAST, "{hosts}: {twentieth}");
        }
        let (few, many) =
            (fleets(10, Fault::Part(0.05), 100, 4).found, fleets(50, Fault::Part(0.05), 100, 4).found);
        assert!(few.share() < many.share(), "{few} {many}");
    }
}
