//! The experiment: what the bandwidth follows is what limits it.

use std::collections::BTreeMap;

use super::{ARMS, MORE_STREAMS};
use anyhow::ensure;

use super::client::{Outcome, Peer};
use super::messages::{Side, Transfer, Transport};
use super::metrics::GIGABITS;
use super::offer::ROUNDS;
use super::transfers::wanted;
use super::way::USUAL_DATAGRAM;
use super::window_schedule::WindowSchedule;
use crate::{Sampler, WrongAnswer, median, point};
use model::Case;
use model::vocabulary::{MetricId, network as ids};

/// Share of its time that a slowed end burns.
const BURN: f64 = 0.3;
const SMALL_MESSAGE: u32 = 4 << 10;
/// Of the plain bandwidth, what UDP is sent at.
const OVER: f64 = 1.2;
/// Windows of a fresh connection, ms, and how many of them are its start.
const START_WINDOW_MS: u64 = 10;
const START_WINDOWS: usize = 5;

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut peer = Peer::of(case, sampler.secret())?;
    let way = peer.way();
    let usual = wanted(case, sampler, way)?;
    let mut seen = ArmResults { datagram: way.datagram.unwrap_or(USUAL_DATAGRAM), ..ArmResults::default() };
    for round in 0..ROUNDS {
        // To and fro: what drifts meets all arms alike. The first begins with the plain one, from
        // which others follow.
        let mut arms: Vec<&'static str> = ARMS.to_vec();
        if round % 2 == 1 {
            arms.reverse();
        }
        for arm in arms {
            if seen.given_up.contains(&arm) {
                continue;
            }
            let done = peer.prepare(changed(&usual, arm, &seen)).and_then(|prepared| prepared.run());
            let outcome = match done {
                Ok(outcome) => outcome,
                // A path may carry TCP only: that arm has no figures, and the session is begun
                // anew.
                Err(error) if arm == "udp-over" && error.downcast_ref::<WrongAnswer>().is_none() => {
                    seen.give_up(arm);
                    sampler.facts().notes.push(format!("the arm {arm} has no figures: {error:#}"));
                    peer = Peer::of(case, sampler.secret())?;
                    continue;
                }
                Err(error) => return Err(error.context(format!("in the arm {arm}"))),
            };
            seen.note(arm, &outcome)?;
            if arm == "plain" {
                sampler.facts().variant =
                    outcome.congestion().map(|name| format!("congestion control {name}"));
            }
        }
    }
    sampler.facts().notes.extend(peer.seats_there());
    seen.emit(sampler)
}

/// What each arm came to, round by round.
#[derive(Default)]
struct ArmResults {
    /// Bytes and ns.
    windows: BTreeMap<&'static str, (Vec<f64>, Vec<f64>)>,
    beside: BTreeMap<(&'static str, MetricId), Vec<f64>>,
    /// Bits a second of the plain arm, and its buffers.
    plain: Vec<f64>,
    /// Arms that this path cannot have.
    given_up: Vec<&'static str>,
    buffers: Option<[f64; 2]>,
    /// Fills a packet of the path.
    datagram: u32,
}

impl ArmResults {
    fn note(&mut self, arm: &'static str, outcome: &Outcome) -> anyhow::Result<()> {
        let (work, ns) = outcome.windows();
        let from = outcome.spec.schedule.warm_up;
        let counted = if arm == "start" { 0..START_WINDOWS } else { from..work.len() };
        let sum = |values: &[f64]| values[counted.clone()].iter().sum::<f64>();
        let (bytes, time) = (sum(&work), sum(&ns));
        let windows = self.windows.entry(arm).or_default();
        windows.0.push(bytes);
        windows.1.push(time);
        let mut told = outcome.beside();
        if arm == "start" {
            let (work, ns) = (&work[counted.end..], &ns[counted.end..]);
            told.push((ids::metric::LATER, work.iter().sum::<f64>() * GIGABITS / ns.iter().sum::<f64>()));
        }
        if arm != "start" {
            told.push((ids::metric::GROWTH, growth(&work[counted.clone()], &ns[counted])));
        }
        for (metric, value) in told {
            self.beside.entry((arm, metric)).or_default().push(value);
        }
        if arm == "plain" {
            self.plain.push(outcome.bits_per_second());
            self.buffers = outcome.buffers().or(self.buffers);
        }
        Ok(())
    }

    fn give_up(&mut self, arm: &'static str) {
        self.given_up.push(arm);
        self.windows.remove(arm);
        self.beside.retain(|(of, _), _| *of != arm);
    }

    /// One window per round and arm; further figures that are missing in a round are left out.
    fn emit(self, sampler: &mut Sampler) -> anyhow::Result<()> {
        // An end that gets its CPU now and then may carry nothing in an arm, which is its
        // bandwidth; not in all of the plain ones.
        ensure!(
            self.plain.iter().any(|bits| *bits > 0.0),
            "no data arrived in {} plain transfers: does a firewall block it?",
            self.plain.len()
        );
        for (arm, windows) in self.windows {
            for ((of, metric), values) in &self.beside {
                if *of == arm && values.len() == windows.1.len() {
                    sampler.windows_timed(
                        point(ids::param::ARM, arm),
                        *metric,
                        (values.clone(), windows.1.clone()),
                        0,
                    )?;
                }
            }
            sampler.windows_timed(point(ids::param::ARM, arm), ids::metric::BANDWIDTH, windows, 0)?;
        }
        Ok(())
    }
}

/// Growth that is reported if nothing arrived in the first half, and something in the second.
const FROM_NOTHING: f64 = 100.0;

/// What the second half of these windows carried over the first; 1 where nothing came.
fn growth(work: &[f64], ns: &[f64]) -> f64 {
    let middle = work.len() / 2;
    let rate = |work: &[f64], ns: &[f64]| work.iter().sum::<f64>() / ns.iter().sum::<f64>().max(1.0);
    let (first, second) = (rate(&work[..middle], &ns[..middle]), rate(&work[middle..], &ns[middle..]));
    match (first > 0.0, second > 0.0) {
        (true, _) => (second / first).clamp(1.0 / FROM_NOTHING, FROM_NOTHING),
        (false, true) => FROM_NOTHING,
        (false, false) => 1.0,
    }
}

/// The plain transfer with one thing changed.
fn changed(usual: &Transfer, arm: &str, seen: &ArmResults) -> Transfer {
    let mut spec = usual.clone();
    let plain = median(seen.plain.clone());
    // A rate below the least that a server takes would be refused.
    let share = |of: f64| Some((plain * of).max(1e4)).filter(|rate| rate.is_finite());
    // Asked for, the kernel counts twice as much.
    let buffers = |times: f64| {
        let ask = |bytes: f64| (bytes * times / 2.0).clamp(4096.0, f64::from(1 << 30)) as u32;
        seen.buffers.map(|buffers| buffers.map(ask))
    };
    let sender_is_client = spec.direction != super::messages::Direction::Receive;
    let sender = if sender_is_client { Side::Client } else { Side::Server };
    let place = |side: Side| usize::from(side == Side::Server);
    match arm {
        "slowed-sender" => spec.burn[place(sender)] = BURN,
        "slowed-receiver" => spec.burn[1 - place(sender)] = BURN,
        "more-streams" => spec.streams = MORE_STREAMS * spec.streams.min(32),
        "large-window" => spec.buffers = buffers(4.0),
        "small-window" => spec.buffers = buffers(0.25),
        "small-messages" => spec.bytes = SMALL_MESSAGE,
        "half-rate" => spec.rate = share(0.5),
        "nine-tenths" => spec.rate = share(0.9),
        "udp-over" => {
            (spec.protocol, spec.bytes, spec.rate) = (Transport::Udp, seen.datagram, share(OVER));
            spec.congestion = None;
        }
        "start" => {
            let whole_ms =
                spec.schedule.window_ms * (spec.schedule.warm_up as u64 + spec.schedule.count as u64);
            let count = (whole_ms / START_WINDOW_MS) as usize;
            spec.schedule = WindowSchedule {
                window_ms: START_WINDOW_MS,
                warm_up: 0,
                count: count.clamp(2 * START_WINDOWS, 60),
            };
        }
        _ => {}
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::messages::Direction;

    fn usual() -> Transfer {
        let schedule = WindowSchedule { window_ms: 10, warm_up: 1, count: 1 };
        Transfer::new(Transport::Tcp, Direction::Send, schedule)
    }

    #[test]
    fn every_arm_changes_one_thing_that_a_server_allows() {
        let seen = ArmResults {
            plain: vec![1e9],
            buffers: Some([2e6, 6e6]),
            datagram: 1452,
            ..ArmResults::default()
        };
        assert_eq!(changed(&usual(), "plain", &seen), usual());
        let mut all = vec![usual()];
        for arm in &ARMS[1..] {
            let spec = changed(&usual(), arm, &seen);
            assert!(!all.contains(&spec), "{arm} changes nothing of its own");
            assert_eq!(spec.check(), Ok(()), "{arm}");
            all.push(spec);
        }
        assert_eq!(changed(&usual(), "half-rate", &seen).rate, Some(5e8));
        assert_eq!(changed(&usual(), "udp-over", &seen).bytes, 1452);
        assert_eq!(changed(&usual(), "large-window", &seen).buffers, Some([4_000_000, 12_000_000]));
    }

    #[test]
    fn a_connection_that_still_rises_is_told() {
        assert_eq!(growth(&[4.0, 8.0], &[1.0, 1.0]), 2.0);
        assert_eq!(growth(&[4.0, 8.0], &[1.0, 2.0]), 1.0, "a longer window");
        assert_eq!(growth(&[0.0, 8.0], &[1.0, 1.0]), FROM_NOTHING);
        assert_eq!(growth(&[0.0, 0.0], &[1.0, 1.0]), 1.0);
        assert_eq!(growth(&[8.0, 0.0], &[1.0, 1.0]), 1.0 / FROM_NOTHING);
    }

    #[test]
    fn who_is_slowed_depends_on_the_direction() {
        let burn =
            |direction, arm| changed(&Transfer { direction, ..usual() }, arm, &ArmResults::default()).burn;
        assert_eq!(burn(Direction::Send, "slowed-sender"), [BURN, 0.0]);
        assert_eq!(burn(Direction::Receive, "slowed-sender"), [0.0, BURN]);
        assert_eq!(burn(Direction::Receive, "slowed-receiver"), [BURN, 0.0]);
    }
}
