//! Is the limit of a transfer found? On paths that never were, whose truth is known.

use fastrand::Rng;

use super::{Rate, over};
use stats::network::{Arm, End, Experiment, Limit, SLOWED_BUSY_SHARE, decide};
use stats::noise::normal;

/// What was planted, and what was concluded of it.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The planted one was named (a shaper for a link of unknown speed).
    pub right: Rate,
    /// Another one was.
    pub wrong: Rate,
}

/// The limits that are planted.
pub const PLANTED: [Limit; 9] = [
    Limit::SenderCpu,
    Limit::ReceiverCpu,
    Limit::SenderStarved,
    Limit::ReceiverStarved,
    Limit::Window,
    Limit::Loss,
    Limit::OneStream,
    Limit::Link,
    Limit::Shaper,
];

/// `count` experiments of this many rounds, whose every bandwidth scatters by `noise`, with this
/// limit.
pub fn paths(planted: Limit, rounds: usize, noise: f64, count: usize, seed: u64) -> Found {
    over(count, seed, |_, rng, found: &mut Found| {
        let concluded = decide(&Path::draw(rng, planted).measured(rng, rounds, noise)).limit;
        found.right.count(concluded == planted);
        found.wrong.count(concluded != planted && concluded != Limit::NotSeparable);
    })
}

/// What each part could carry by itself, Gbit/s.
struct Path {
    planted: Limit,
    sender: f64,
    receiver: f64,
    rate: f64,
    /// One connection, by its window, and by its losses or its congestion control.
    window: f64,
    stream: f64,
    larger_windows: bool,
    link: Option<f64>,
    lost: f64,
    burst: f64,
    queue: f64,
    udp_is_lost: bool,
}

/// What is no limit could carry this much more.
const MARGIN: (f64, f64) = (1.25, 6.0);
/// An MTU of 1500: wire bits for each bit of payload.
const WIRE: f64 = 1538.0 / 1448.0;

fn between(rng: &mut Rng, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * rng.f64()
}

impl Path {
    fn draw(rng: &mut Rng, planted: Limit) -> Path {
        let rate = (between(rng, (0.05f64.ln(), 50f64.ln()))).exp();
        let mut part = |limits: bool| if limits { rate } else { rate * between(rng, MARGIN) };
        let [sender, receiver] = [
            part(matches!(planted, Limit::SenderCpu | Limit::SenderStarved)),
            part(matches!(planted, Limit::ReceiverCpu | Limit::ReceiverStarved)),
        ];
        let on_path = matches!(planted, Limit::Link | Limit::Shaper);
        let way = part(on_path);
        let window = part(planted == Limit::Window);
        let stream = part(matches!(planted, Limit::Loss | Limit::OneStream));
        let lossy = planted == Limit::Loss;
        let shaped = planted == Limit::Shaper;
        Path {
            planted,
            sender,
            receiver,
            rate: way,
            window,
            stream,
            larger_windows: rng.bool() || planted != Limit::Window,
            link: match planted {
                Limit::Link => Some(way * WIRE * between(rng, (1.0, 1.03))),
                // A shaper stands before a faster link, or one of which nothing is known.
                _ if rng.bool() => Some(way * between(rng, (1.5, 10.0))),
                _ => None,
            },
            lost: match () {
                () if lossy => between(rng, (0.004, 0.03)),
                () if shaped => between(rng, (0.0, 0.01)),
                () => between(rng, (0.0, 0.0005)),
            },
            // Some shapers have next to no bucket, and some congestion controls leave no queue.
            burst: if shaped && rng.bool() { between(rng, (1.3, 4.0)) } else { 1.0 },
            queue: if on_path { between(rng, (1.0, 30.0)) } else { between(rng, (0.8, 1.5)) },
            udp_is_lost: rng.u8(..10) > 0,
        }
    }

    fn starved(&self, limit: Limit, rng: &mut Rng) -> End {
        let mut end = End { softirq: Some(0.3 * rng.f64()), wait: Some(0.05 * rng.f64()), ..End::default() };
        if self.planted == limit {
            let share = Some(between(rng, (0.3, 0.9)));
            if rng.bool() { end.wait = share } else { end.throttled = share }
        }
        end
    }

    fn measured(&self, rng: &mut Rng, rounds: usize, noise: f64) -> Experiment {
        // A round is disturbed as a whole by half of the noise, each arm by the rest; one value in
        // twenty is caught by something else and halved.
        let common: Vec<f64> = (0..rounds).map(|_| 0.5 * noise * normal(rng)).collect();
        let values = |rng: &mut Rng, value: f64| -> Vec<f64> {
            let one = |shift: &f64| {
                let hit = if rng.u8(..20) == 0 { 0.5 } else { 1.0 };
                value * hit * (shift + noise * normal(rng)).exp()
            };
            common.iter().map(one).collect()
        };
        let carried = |sender: f64, receiver: f64, streams: f64, window: f64| {
            let each = (self.window * window).min(self.stream) * streams;
            sender.min(receiver).min(self.rate).min(each)
        };
        let (one, rest) = (1.0, 1.0 - SLOWED_BUSY_SHARE);
        let plain = carried(self.sender, self.receiver, one, one);
        // Several tasks get more of a CPU that they share with others.
        let starved = matches!(self.planted, Limit::SenderStarved | Limit::ReceiverStarved);
        let crowd = if starved { between(rng, (1.0, 1.6)) } else { 1.0 };
        // What four streams left in a shaper's queue is counted with what they carry.
        let shaped = self.planted == Limit::Shaper && self.udp_is_lost && rng.bool();
        let queued = if shaped { between(rng, (1.0, 1.2)) } else { 1.0 };
        let mut arm = |value: f64| Arm { bandwidth: values(rng, value), ..Arm::default() };
        let larger = if self.larger_windows { 4.0 } else { 1.0 };
        let mut all = Experiment {
            plain: arm(plain),
            slowed_sender: arm(carried(self.sender * rest, self.receiver, one, one)),
            slowed_receiver: arm(carried(self.sender, self.receiver * rest, one, one)),
            more_streams: arm(carried(self.sender * crowd, self.receiver * crowd, 4.0, one) * queued),
            large_window: arm(carried(self.sender, self.receiver, one, larger)),
            small_window: arm(carried(self.sender, self.receiver, one, 0.25)),
            half_rate: arm(0.5 * plain),
            nine_tenths: arm(0.9 * plain),
            udp_over: arm((1.2 * plain).min(self.rate).min(self.receiver).min(self.sender)),
            start: arm(plain * self.burst),
            link_gbits: self.link,
            shaped_gbits: None,
            mtu: Some(1500.0),
        };
        all.start.later = values(rng, plain);
        // Flat but for noise. Its own numbers: those of the other figures stay what they were.
        let mut own = Rng::with_seed(rng.clone().u64(..) ^ 0x6772_6f77);
        all.plain.growth = (0..rounds).map(|_| (noise * normal(&mut own)).exp()).collect();
        let sent = if self.udp_is_lost { (1.2 * plain).min(self.sender) } else { plain };
        all.udp_over.sent = Some(sent);
        let arrived = stats::order::median(&all.udp_over.bandwidth).unwrap_or(sent);
        all.udp_over.loss = Some((1.0 - arrived / sent).clamp(0.0, 1.0));
        let base = between(rng, (50.0, 5000.0));
        (all.plain.rtt, all.nine_tenths.rtt) = (Some(base * self.queue), Some(base));
        all.plain.sender = self.starved(Limit::SenderStarved, rng);
        all.plain.receiver = self.starved(Limit::ReceiverStarved, rng);
        all.plain.sender.busy = Some((plain / self.sender).min(1.0));
        all.plain.receiver.busy = Some((plain / self.receiver).min(1.0));
        all.plain.retransmits = Some(self.lost * plain * 1e9 / (8.0 * 1448.0));
        // A receiver without time closes its window, too.
        let closed = matches!(self.planted, Limit::Window | Limit::ReceiverCpu | Limit::ReceiverStarved);
        all.plain.rwnd_limited = Some(between(rng, if closed { (0.4, 1.0) } else { (0.0, 0.2) }));
        all
    }
}
