//! What limits a transfer, decided from an experiment that changes one thing at a time.
//!
//! Every arm is compared with the plain one of the same round
//! ([`paired_ratio`](super::compare::paired_ratio)). A CPU that burns a share of its time does the
//! work of the rest only, so a transfer that it limits falls to that rest, and one that it does not
//! limit stays. Larger buffers carry more where a window was the limit; more connections where each
//! had a limit of its own (a window, losses, its congestion control) and the CPUs had time left.
//! Where nothing of that moves it, the path has a rate: the link's own, or a shaper's, which UDP
//! above it, the queue before it and the burst of a fresh connection give away.

use super::compare::paired_ratio;
use super::order::{Interval, median, quantile, robust_coefficient_of_variation};

/// The share of its time that a slowed end burns.
pub const SLOWED_BUSY_SHARE: f64 = 0.3;
/// Confidence of each ratio's interval. Of six rounds one may lie anywhere: how often whole
/// decisions are wrong is measured (`stats::proof::paths`), not this.
pub const CONFIDENCE: f64 = 0.75;
/// Fewer rounds decide nothing.
pub const MIN_ROUNDS: usize = 6;

/// What an end was busy with, shares of time; `None` where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct End {
    /// The transfer's tasks ran.
    pub busy: Option<f64>,
    /// Its CPUs handled interrupts of the network.
    pub softirq: Option<f64>,
    /// The tasks could have run and had no CPU.
    pub wait: Option<f64>,
    /// Its control group had used up its CPU time.
    pub throttled: Option<f64>,
}

/// One arm: a bandwidth per round, and the medians of what stood beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arm {
    /// Gbit/s of payload, a value per round, in the same order in all arms; NaN where a round has
    /// none.
    pub bandwidth: Vec<f64>,
    pub sender: End,
    pub receiver: End,
    /// Segments sent again, 1/s; of them those that had arrived before, where the receiver reports.
    pub retransmits: Option<f64>,
    pub duplicates: Option<f64>,
    /// Shares of the time that TCP was limited by the receiver's window, by its own send buffer.
    pub rwnd_limited: Option<f64>,
    pub sndbuf_limited: Option<f64>,
    /// Smoothed round trip, us.
    pub rtt: Option<f64>,
    /// Over UDP: what was sent, Gbit/s, and the share that never arrived.
    pub sent: Option<f64>,
    pub loss: Option<f64>,
    /// Of a fresh connection: Gbit/s after its first 50 ms, a value per round.
    pub later: Vec<f64>,
    /// What the second half of the counted time carried over the first, a value per round.
    pub growth: Vec<f64>,
}

/// All arms; those that were not measured are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    pub plain: Arm,
    pub slowed_sender: Arm,
    pub slowed_receiver: Arm,
    pub more_streams: Arm,
    pub large_window: Arm,
    pub small_window: Arm,
    pub half_rate: Arm,
    pub nine_tenths: Arm,
    pub udp_over: Arm,
    pub start: Arm,
    /// The slower link of both ends, Gbit/s on the wire, where hardware reports it.
    pub link_gbits: Option<f64>,
    /// A rate that a queueing discipline of an end is known to let through, Gbit/s.
    pub shaped_gbits: Option<f64>,
    /// The path's MTU, bytes: how much of the wire's rate is payload.
    pub mtu: Option<f64>,
}

/// Who or what limits a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    SenderCpu,
    ReceiverCpu,
    /// Either one: each waits for the other alternately, or both share one CPU.
    BothCpus,
    /// Its CPU is the limit because it does not have all of it.
    SenderStarved,
    ReceiverStarved,
    Window,
    Loss,
    /// What one connection takes, for a reason that shows neither in a window nor in losses.
    OneStream,
    Link,
    /// A rate below the link's, or of a link whose speed no one reports.
    Shaper,
    NotSeparable,
}

impl Limit {
    pub const ALL: [Limit; 11] = [
        Limit::SenderCpu,
        Limit::ReceiverCpu,
        Limit::BothCpus,
        Limit::SenderStarved,
        Limit::ReceiverStarved,
        Limit::Window,
        Limit::Loss,
        Limit::OneStream,
        Limit::Link,
        Limit::Shaper,
        Limit::NotSeparable,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Limit::SenderCpu => "the sender's CPU",
            Limit::ReceiverCpu => "the receiver's CPU",
            Limit::BothCpus => "the CPUs of both ends",
            Limit::SenderStarved => "the sender, short of CPU time",
            Limit::ReceiverStarved => "the receiver, short of CPU time",
            Limit::Window => "a window (buffers too small for rate × round trip)",
            Limit::Loss => "packet loss",
            Limit::OneStream => "the limit of one connection",
            Limit::Link => "the link",
            Limit::Shaper => "a shaper",
            Limit::NotSeparable => "not separable",
        }
    }

    /// The end whose CPU it is, where it is one's.
    pub fn end(self) -> &'static str {
        match self {
            Limit::SenderCpu | Limit::SenderStarved => "the sender",
            Limit::ReceiverCpu | Limit::ReceiverStarved => "the receiver",
            _ => "both ends",
        }
    }

    /// Whether an end lacks the CPU that it should have.
    pub fn is_starved(self) -> bool {
        matches!(self, Limit::SenderStarved | Limit::ReceiverStarved)
    }
}

/// An arm over the plain one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioToPlain {
    pub ratio: f64,
    /// `None` where the rounds are too few for one.
    pub interval: Option<Interval>,
    pub rounds: usize,
}

/// The ratios that a decision rests on, and what else speaks for a rate on the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signs {
    pub slowed_sender: Option<RatioToPlain>,
    pub slowed_receiver: Option<RatioToPlain>,
    pub more_streams: Option<RatioToPlain>,
    pub large_window: Option<RatioToPlain>,
    pub small_window: Option<RatioToPlain>,
    /// What a fresh connection gets at first, over what it gets later.
    pub burst: Option<RatioToPlain>,
    /// Share of the segments that were sent again, less those that had arrived.
    pub lost: Option<f64>,
    /// What of the link's speed the transfer takes, headers included.
    pub of_link: Option<f64>,
    /// The same of a shaper that is known.
    pub of_shaped: Option<f64>,
    /// UDP at more than the plain rate: what arrived over the plain rate, and the share that was
    /// lost.
    pub udp: Option<(f64, f64)>,
    /// The round trip of the plain arm over that at nine tenths of its rate.
    pub queue: Option<f64>,
    /// Relative scatter of the plain arm over rounds.
    pub scatter: Option<f64>,
    /// Of the plain arm: the counted time's second half over the first.
    pub growth: Option<RatioToPlain>,
}

/// What limits, and what it was decided from.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub limit: Limit,
    pub signs: Signs,
}

/// A bandwidth that a CPU limits falls to 1 − [`SLOWED_BUSY_SHARE`] = 0.7; halfway (and a margin
/// for noise) it is called moved.
const MOVED: f64 = 0.86;
/// An end whose slowing leaves this much is no limit, whatever else is.
const UNCHANGED_FROM: f64 = 0.93;
/// Two ends that both move are distinguished where one's ratio is this much lower.
const APART: f64 = 0.09;
/// A task that waits for a CPU, or is throttled, for more of its time than this does not have its
/// CPU.
const STARVED: f64 = 0.15;
/// More streams, or larger windows, that carry this much more show that no CPU and no rate on the
/// path was the limit.
const GAIN_FROM: f64 = 1.15;
/// Less than this is no gain: of rounds that differ by some percent one arm is always the best.
const NO_MORE: f64 = 1.12;
/// Where UDP shows a rate on the path, more than this was carried. A little more can be seen of
/// what stood in a queue, or behind a lost segment, when the window began (four streams: 1.1 to 1.2
/// behind a shaper of 200 Mbit/s here).
const MORE_THAN_QUEUED: f64 = 1.3;
/// A quarter of the window that leaves less than this was near the limit before.
const FOLLOWS_WINDOW: f64 = 0.6;
/// TCP was limited by windows for this share of the time.
const WINDOW_LIMITED: f64 = 0.3;
/// Segments sent again: one in five hundred halves the congestion window more often than a long
/// transfer bears.
const LOSSY: f64 = 0.002;
/// A transfer that takes this share of the link is limited by it.
const FILLS: f64 = 0.93;
/// A CPU that handles interrupts of the network for this share of the time has no time left.
const SATURATED_FROM: f64 = 0.9;
/// A fresh connection that gets this much more at first had a bucket full of tokens.
const BURST: f64 = 1.15;
/// The queue before a rate makes the round trip this much longer than at nine tenths of it.
const QUEUED: f64 = 2.0;
/// A connection whose second half carries this much more had not come to what it can carry: a start
/// doubles with each round trip.
const RISES: f64 = 1.15;
/// UDP that arrives above the plain rate with less lost than this had room on the path.
const ROOM_LOSS: f64 = 0.01;
/// Rounds that scatter less are a flat line.
const FLAT: f64 = 0.03;

/// Wire bytes around each packet on Ethernet: header, check sum, preamble, gap. And IP's and TCP's
/// headers inside it.
const AROUND: f64 = 38.0;
const INSIDE: f64 = 52.0;
/// A shaper counts the packet and its Ethernet header.
const SHAPED_AROUND: f64 = 14.0;

/// What limits the transfer; [`Limit::NotSeparable`] where the arms do not say.
pub fn decide(experiment: &Experiment) -> Decision {
    let signs = signs(experiment);
    let limit = limit(experiment, &signs).unwrap_or(Limit::NotSeparable);
    Decision { limit, signs }
}

fn signs(experiment: &Experiment) -> Signs {
    let plain = &experiment.plain;
    let held = |arm: &Arm| held(&plain.bandwidth, &arm.bandwidth);
    let rate = median(&plain.bandwidth).filter(|rate| *rate > 0.0);
    let mtu = experiment.mtu.filter(|mtu| *mtu > 2.0 * INSIDE);
    // Payload bits of a segment, for the share of segments.
    let segment = 8.0 * (mtu.unwrap_or(1500.0) - INSIDE);
    // What was sent again though it had arrived was late or overtaken, not lost.
    let missing = |again: f64| (again - plain.duplicates.unwrap_or(0.0)).max(0.0);
    let lost = plain.retransmits.zip(rate).map(|(again, rate)| missing(again) * segment / (rate * 1e9));
    // Rounds that something disturbed lie below what the path carries.
    let best = quantile(&plain.bandwidth, 0.75);
    let of = |limit: Option<f64>, around: f64| {
        let (limit, rate) = (limit.filter(|limit| *limit > 0.0)?, best?);
        let wire = mtu.map_or(1.0, |mtu| (mtu + around) / (mtu - INSIDE));
        Some(rate * wire / limit)
    };
    let udp = &experiment.udp_over;
    let over = |sent: f64| rate.is_some_and(|rate| sent > 1.08 * rate);
    let arrived = median(&udp.bandwidth).filter(|_| udp.sent.is_some_and(over));
    Signs {
        slowed_sender: held(&experiment.slowed_sender),
        slowed_receiver: held(&experiment.slowed_receiver),
        more_streams: held(&experiment.more_streams),
        large_window: held(&experiment.large_window),
        small_window: held(&experiment.small_window),
        burst: self::held(&experiment.start.later, &experiment.start.bandwidth),
        lost: lost.filter(|share| share.is_finite()).map(|share| share.clamp(0.0, 1.0)),
        of_link: of(experiment.link_gbits, AROUND),
        of_shaped: of(experiment.shaped_gbits, SHAPED_AROUND),
        udp: arrived.zip(rate).zip(udp.loss).map(|((arrived, rate), loss)| (arrived / rate, loss)),
        queue: plain.rtt.zip(experiment.nine_tenths.rtt).and_then(|(full, below)| {
            (below > 0.0).then_some(full / below).filter(|queue| queue.is_finite())
        }),
        scatter: robust_coefficient_of_variation(&plain.bandwidth),
        growth: self::held(&vec![1.0; plain.growth.len()], &plain.growth),
    }
}

impl Signs {
    /// What UDP sent above the plain rate was lost, and that rate arrived: the path has one.
    fn rate_by_udp(&self) -> bool {
        self.udp.is_some_and(|(arrived, lost)| (0.85..1.15).contains(&arrived) && lost > 0.05)
    }

    /// UDP above the plain rate arrived whole: the path has room for it.
    pub fn room_by_udp(&self) -> bool {
        self.udp.is_some_and(|(arrived, lost)| arrived > 1.08 && lost < ROOM_LOSS)
    }

    /// The plain transfers were not yet at what they can carry when they were counted.
    pub fn rises(&self) -> bool {
        self.growth.is_some_and(|held| held.above(RISES))
    }

    /// The path has a rate, so that what more streams seem to carry above it came out of queues.
    fn queued(&self) -> bool {
        self.rate_by_udp() && self.more_streams.is_none_or(|held| held.ratio < MORE_THAN_QUEUED)
    }
}

/// An arm in which nothing arrived carried next to nothing, and the round counts.
const NO_BANDWIDTH: f64 = 1e-3;

/// An arm over another one, round by round; `None` without a round that both have.
fn held(first: &[f64], second: &[f64]) -> Option<RatioToPlain> {
    let second: Vec<f64> = first
        .iter()
        .zip(second)
        .map(|(first, second)| if *second == 0.0 { first * NO_BANDWIDTH } else { *second })
        .collect();
    let ratio = paired_ratio(first, &second, CONFIDENCE)?;
    Some(RatioToPlain { ratio: ratio.ratio, interval: ratio.interval, rounds: ratio.n })
}

impl RatioToPlain {
    /// Whether it is surely above, by its value and by the end of its interval that lies nearest.
    fn above(self, value: f64) -> bool {
        self.ratio > value && self.interval.is_some_and(|interval| interval.low > 1.0 + (value - 1.0) / 3.0)
    }

    /// Whether it fell as it does where a CPU is the limit.
    fn moved(self) -> bool {
        self.ratio < MOVED && self.interval.is_some_and(|interval| interval.high < UNCHANGED_FROM + 0.03)
    }

    /// Whether it stayed, if known.
    fn still(self) -> bool {
        self.ratio > UNCHANGED_FROM
    }
}

fn limit(experiment: &Experiment, signs: &Signs) -> Option<Limit> {
    let (sender, receiver) = (signs.slowed_sender?, signs.slowed_receiver?);
    if sender.rounds < MIN_ROUNDS || receiver.rounds < MIN_ROUNDS {
        return None;
    }
    let gains = |held: Option<RatioToPlain>| held.is_some_and(|held| held.above(GAIN_FROM));
    let (more, large) = (gains(signs.more_streams) && !signs.queued(), gains(signs.large_window));
    let plain = &experiment.plain;
    match by_cpu(sender, receiver, plain) {
        // More tasks get more of a CPU that they share with someone else.
        Some(found) if found.is_starved() => return Some(found),
        // Of a CPU of its own an end cannot have more by asking for more at once.
        Some(found) if !more && !large => return Some(found),
        _ => {}
    }
    let windowed = plain.rwnd_limited.unwrap_or(0.0) + plain.sndbuf_limited.unwrap_or(0.0) > WINDOW_LIMITED;
    let follows = signs.small_window.is_some_and(|held| held.ratio < FOLLOWS_WINDOW);
    let lossy = signs.lost.is_some_and(|share| share > LOSSY);
    match (more, large) {
        (_, true) if !lossy || windowed => return Some(Limit::Window),
        // Buffers that the system lets no one enlarge: a quarter of them carries less, four times
        // as many carry more.
        (true, _) if windowed && follows && !lossy => return Some(Limit::Window),
        (true, _) if lossy => return Some(Limit::Loss),
        (true, _) if windowed && follows => return Some(Limit::Window),
        // Several connections are through their start sooner than one: what that one can carry was
        // not seen.
        (true, _) if signs.rises() => return None,
        (true, _) => return Some(Limit::OneStream),
        _ => {}
    }
    by_rate(sender, receiver, experiment, signs)
}

/// Where a CPU is the limit, whose.
fn by_cpu(sender: RatioToPlain, receiver: RatioToPlain, plain: &Arm) -> Option<Limit> {
    let starved = |end: &End| {
        end.wait.is_some_and(|share| share > STARVED) || end.throttled.is_some_and(|share| share > STARVED)
    };
    let of_sender = if starved(&plain.sender) { Limit::SenderStarved } else { Limit::SenderCpu };
    let of_receiver = if starved(&plain.receiver) { Limit::ReceiverStarved } else { Limit::ReceiverCpu };
    let full = |end: &End| end.softirq.is_some_and(|share| share > SATURATED_FROM);
    match (sender.moved(), receiver.moved()) {
        (true, false) => Some(of_sender),
        (false, true) => Some(of_receiver),
        // Only one of them lacks its CPU: that is why both wait.
        (true, true) => Some(match (of_sender, of_receiver) {
            (Limit::SenderStarved, Limit::ReceiverCpu) => Limit::SenderStarved,
            (Limit::SenderCpu, Limit::ReceiverStarved) => Limit::ReceiverStarved,
            (sent, _) if sender.ratio < receiver.ratio - APART => sent,
            (_, received) if receiver.ratio < sender.ratio - APART => received,
            _ => Limit::BothCpus,
        }),
        // The tasks have time, the interrupts of the network have none.
        (false, false) => match (full(&plain.sender), full(&plain.receiver)) {
            (true, false) => Some(Limit::SenderCpu),
            (false, true) => Some(Limit::ReceiverCpu),
            (true, true) => Some(Limit::BothCpus),
            (false, false) => None,
        },
    }
}

/// Where nothing at the ends moves it: the link's rate, or a shaper's.
fn by_rate(
    sender: RatioToPlain,
    receiver: RatioToPlain,
    experiment: &Experiment,
    signs: &Signs,
) -> Option<Limit> {
    let idle = |end: &End| end.busy.is_some_and(|share| share < 0.8);
    let plain = &experiment.plain;
    let has_time = |held: RatioToPlain, end: &End| held.still() || (held.ratio > MOVED && idle(end));
    let no_gain = |held: Option<RatioToPlain>| held.is_none_or(|held| held.ratio < NO_MORE);
    let fixed = has_time(sender, &plain.sender)
        && has_time(receiver, &plain.receiver)
        && (no_gain(signs.more_streams) || signs.queued())
        && no_gain(signs.large_window);
    if !fixed {
        return None;
    }
    if signs.of_link.is_some_and(|share| share > FILLS) {
        return Some(Limit::Link);
    }
    let known = signs.of_shaped.is_some_and(|share| (0.9..1.1).contains(&share));
    let burst = signs.burst.is_some_and(|held| held.above(BURST));
    let queue = signs.queue.is_some_and(|queue| queue > QUEUED);
    let flat = signs.scatter.is_some_and(|scatter| scatter < FLAT);
    (known || signs.rate_by_udp() || burst || (queue && flat)).then_some(Limit::Shaper)
}

#[cfg(test)]
mod tests;
