//! The experiment that finds what limits a transfer, and its result.

use std::collections::BTreeMap;

use super::transfers::{self, at_ends, direction, over_loopback, path};
use crate::words::{capital, figure, percent, shell};
use crate::{Evidence, Rule};
use model::vocabulary::MetricId;
use model::vocabulary::network as ids;
use model::{Case, Fact, Finding, Params, Severity, Value};
use stats::analysis::Judged;
use stats::network::{Arm, Decision, End, Experiment, Limit, MIN_ROUNDS, RatioToPlain, decide};

pub const BOTTLENECK: Rule = Rule {
    id: ids::rule::NETWORK_BOTTLENECK,
    title: "What limits the bandwidth",
    topic: "network",
    meaning: "A bandwidth is often sold as a link's speed although a CPU, a TCP window or a shaper limits \
        it. The experiment changes one thing at a time, and the limit is what the bandwidth follows.",
    action: "Change what the finding names, then measure again. See it: assay run --only network.bottleneck \
        --to HOST --new",
    when: "A note or a warning for every network.bottleneck with at least 6 rounds. CPUs always limit \
        loopback, so that is not reported.",
    how: "Each variant is compared with the plain transfer of the same round (median of the ratios). An end \
        that burns 30 % of its time limits by its CPU if the ratio is below 0.86 (0.7 is the full effect). \
        If both ends react, the lower one must be lower by 0.09. Such an end is starved if it waits for a \
        CPU or is throttled for more than 15 % of its time. More than 1.15 with larger buffers means a \
        window. More than 1.15 with four streams means losses if 2 segments in 1000 are sent again. It means \
        a window if TCP reports one for 30 % of the time and a quarter of the buffers leaves less than 0.6. \
        Otherwise it is one connection's own limit, unless the bandwidth still rises: the second half of the \
        plain transfers carries 1.15 times the first. If nothing changes the bandwidth, it is the link from \
        93 % of its known speed on, headers included. Otherwise any of these means a shaper: a queueing \
        discipline with a known rate; UDP at 1.2 times the rate, of which the rate arrives within 15 % and \
        over 5 % is lost; a fresh connection that is 15 % faster in its first 50 ms; a flat line (scatter \
        below 3 %) and a queue that doubles the round trip. docs/method/bottleneck.md has simulated and \
        planted limits.",
    calm: "loopback limited by CPUs only",
    looked_at: "six experiments",
    source: file!(),
    check: bottleneck,
};

/// One experiment of a run, decided.
pub struct Concluded<'a> {
    pub case: &'a Case,
    pub decision: Decision,
    pub experiment: Experiment,
    /// The plain arm's bandwidth, Gbit/s.
    pub rate: f64,
    /// The key of its bandwidth.
    pub key: String,
}

/// All experiments that had enough rounds.
pub fn concluded<'a>(evidence: &Evidence<'a>) -> Vec<Concluded<'a>> {
    let cases = evidence.cases().filter(|(_, planned)| planned.case.bench == ids::BOTTLENECK);
    cases
        .filter_map(|(index, planned)| {
            let series: Vec<&Judged> = evidence.series_of(index).collect();
            let experiment = experiment(evidence, &planned.case, &series);
            let plain = &experiment.plain.bandwidth;
            let rounds = plain.iter().filter(|value| value.is_finite() && **value > 0.0).count();
            let rate = stats::order::median(plain).filter(|rate| *rate > 0.0)?;
            (rounds >= MIN_ROUNDS).then(|| Concluded {
                case: &planned.case,
                decision: decide(&experiment),
                rate,
                key: key(&planned.case, "plain", ids::metric::BANDWIDTH),
                experiment,
            })
        })
        .collect()
}

fn arm_point(arm: &str) -> Params {
    Params::from([(ids::param::ARM, Value::from(arm))])
}

fn key(case: &Case, arm: &str, metric: MetricId) -> String {
    case.series_key(&arm_point(arm), &metric)
}

/// The arms of one case, round by round.
struct Arms<'a> {
    case: &'a Case,
    series: &'a [&'a Judged],
    /// Rounds of each pass.
    lengths: BTreeMap<u32, usize>,
}

impl<'a> Arms<'a> {
    fn of(case: &'a Case, series: &'a [&'a Judged]) -> Arms<'a> {
        let mut lengths: BTreeMap<u32, usize> = BTreeMap::new();
        for judged in series.iter().filter(|judged| judged.series.metric.name == ids::metric::BANDWIDTH) {
            for process in &judged.series.processes {
                let length = lengths.entry(process.order).or_default();
                *length = (*length).max(process.values.len());
            }
        }
        Arms { case, series, lengths }
    }

    fn find(&self, arm: &str, metric: MetricId) -> Option<&Judged> {
        let point = arm_point(arm);
        let is_it = |judged: &&&Judged| judged.series.point == point && judged.series.metric.name == metric;
        self.series.iter().find(is_it).copied()
    }

    fn median(&self, arm: &str, metric: MetricId) -> Option<f64> {
        self.find(arm, metric)?.median().filter(|value| value.is_finite())
    }

    /// Rounds of one pass belong together; where an arm lacks some, its places stay empty.
    fn rounds(&self, arm: &str, metric: MetricId) -> Vec<f64> {
        let Some(judged) = self.find(arm, metric) else { return Vec::new() };
        let processes = &judged.series.processes;
        let by_visit: BTreeMap<u32, &[f64]> =
            processes.iter().map(|process| (process.order, process.values.as_slice())).collect();
        let padded = |(order, length): (&u32, &usize)| {
            let values = by_visit.get(order).copied().unwrap_or_default();
            // The later bandwidth is recorded once per pass, for all its rounds.
            let rest = match values {
                [only] if metric == ids::metric::LATER => *only,
                _ => f64::NAN,
            };
            (0..*length).map(|at| values.get(at).copied().unwrap_or(rest)).collect::<Vec<f64>>()
        };
        self.lengths.iter().flat_map(padded).collect()
    }

    fn end(&self, arm: &str, which: usize) -> End {
        let median = |ends| self.median(arm, at_ends(self.case, ends)[which]);
        End {
            busy: median(transfers::BUSY),
            softirq: median(transfers::SOFTIRQ),
            wait: median(transfers::WAIT),
            throttled: median(transfers::THROTTLED),
        }
    }

    fn arm(&self, name: &str) -> Arm {
        let median = |metric| self.median(name, metric);
        Arm {
            bandwidth: self.rounds(name, ids::metric::BANDWIDTH),
            sender: self.end(name, 0),
            receiver: self.end(name, 1),
            retransmits: median(ids::metric::RETRANSMITS),
            duplicates: median(ids::metric::DUPLICATES),
            rwnd_limited: median(ids::metric::RWND_LIMITED),
            sndbuf_limited: median(ids::metric::SNDBUF_LIMITED),
            rtt: median(ids::metric::RTT),
            sent: median(ids::metric::SENT),
            loss: median(ids::metric::LOSS),
            later: self.rounds(name, ids::metric::LATER),
            growth: self.rounds(name, ids::metric::GROWTH),
        }
    }
}

fn experiment(evidence: &Evidence, case: &Case, series: &[&Judged]) -> Experiment {
    let arms = Arms::of(case, series);
    let path = path(evidence).filter(|_| !over_loopback(case));
    // A discipline shapes what its own end sends. The plain transfer is one stream.
    let shaped = path.and_then(|path| {
        let reported = path.senders(direction(case)).filter_map(|(_, end)| Some(end.shaped_gbits(1.0)?.0));
        reported.min_by(f64::total_cmp)
    });
    let link = path.filter(|path| !path.one_machine()).and_then(|path| path.link_gbits());
    Experiment {
        plain: arms.arm("plain"),
        slowed_sender: arms.arm("slowed-sender"),
        slowed_receiver: arms.arm("slowed-receiver"),
        more_streams: arms.arm("more-streams"),
        large_window: arms.arm("large-window"),
        small_window: arms.arm("small-window"),
        half_rate: arms.arm("half-rate"),
        nine_tenths: arms.arm("nine-tenths"),
        udp_over: arms.arm("udp-over"),
        start: arms.arm("start"),
        link_gbits: link.map(|(link, _)| link),
        shaped_gbits: shaped,
        mtu: path.and_then(|path| path.least_mtu()).map(f64::from),
    }
}

/// The word that scripts match.
pub fn word(limit: Limit) -> &'static str {
    match limit {
        Limit::SenderCpu => "sender-cpu",
        Limit::ReceiverCpu => "receiver-cpu",
        Limit::BothCpus => "both-cpus",
        Limit::SenderStarved => "sender-starved",
        Limit::ReceiverStarved => "receiver-starved",
        Limit::Window => "window",
        Limit::Loss => "loss",
        Limit::OneStream => "one-stream",
        Limit::Link => "link",
        Limit::Shaper => "shaper",
        Limit::NotSeparable => "not-separable",
    }
}

/// `0.71 times (0.69–0.74, 9 rounds)`
fn ratio_words(response: &RatioToPlain) -> String {
    let interval = response
        .interval
        .map(|interval| format!("{:.2}–{:.2}, ", interval.low, interval.high))
        .unwrap_or_default();
    format!("{:.2} times ({interval}{} rounds)", response.ratio, response.rounds)
}

/// The evidence for one limit and against the others, as far as it was measured.
fn facts(found: &Concluded) -> Vec<Fact> {
    let (case, signs) = (found.case, &found.decision.signs);
    let key = |arm: &str| key(case, arm, ids::metric::BANDWIDTH);
    let mut facts = vec![
        Fact::new("limit", word(found.decision.limit), &found.key),
        Fact::new("bandwidth", figure(found.rate, "Gbit/s"), &found.key),
    ];
    let responses = [
        ("with the sender burning 30 % of its time", signs.slowed_sender, "slowed-sender"),
        ("with the receiver burning 30 % of its time", signs.slowed_receiver, "slowed-receiver"),
        ("with four streams", signs.more_streams, "more-streams"),
        ("with larger buffers", signs.large_window, "large-window"),
        ("with a quarter of the buffers", signs.small_window, "small-window"),
        ("first 50 ms of a connection over the rest", signs.burst, "start"),
    ];
    let known = responses.into_iter().filter_map(|(label, response, arm)| Some((label, response?, arm)));
    facts.extend(known.map(|(label, response, arm)| Fact::new(label, ratio_words(&response), key(arm))));
    let plain = &found.experiment.plain;
    let of_plain = |metric| self::key(case, "plain", metric);
    let above = |share: Option<f64>, least: f64| share.filter(|share| *share > least).map(percent);
    for (whose, end, which) in [("sender", &plain.sender, 0), ("receiver", &plain.receiver, 1)] {
        for (label, share, metric) in [
            ("ran", end.busy.map(percent), transfers::BUSY),
            ("waited for a CPU", end.wait.map(percent), transfers::WAIT),
            ("was throttled by its CPU quota", above(end.throttled, 0.001), transfers::THROTTLED),
        ] {
            let source = of_plain(at_ends(case, metric)[which]);
            facts.extend(share.map(|share| Fact::new(format!("the {whose} {label}"), share, source)));
        }
    }
    let udp = signs.udp.map(|(arrived, lost)| {
        let room = if signs.room_by_udp() { ": the path has room for it" } else { "" };
        format!("{arrived:.2} times the plain rate arrived, {} lost{room}", percent(lost))
    });
    let queue = signs.queue.map(|queue| format!("{queue:.1} times that at nine tenths of the rate"));
    let growth = signs.growth.map(|growth| ratio_words(&growth));
    let (window, buffer) = (above(plain.rwnd_limited, 0.01), above(plain.sndbuf_limited, 0.01));
    let further = [
        ("segments lost", above(signs.lost, 1e-4), of_plain(ids::metric::RETRANSMITS)),
        ("limited by the receiver's window", window, of_plain(ids::metric::RWND_LIMITED)),
        ("limited by the send buffer", buffer, of_plain(ids::metric::SNDBUF_LIMITED)),
        ("UDP above the rate", udp, key("udp-over")),
        ("second half of the plain transfers over the first", growth, of_plain(ids::metric::GROWTH)),
        ("round trip at full rate", queue, of_plain(ids::metric::RTT)),
        ("of the link's speed", signs.of_link.map(percent), ids::probe::NETWORK.to_string()),
        ("of the known shaper's rate", signs.of_shaped.map(percent), ids::probe::NETWORK.to_string()),
    ];
    facts.extend(further.into_iter().filter_map(|(label, value, key)| Some(Fact::new(label, value?, key))));
    facts
}

fn bottleneck(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = concluded(evidence);
    if all.is_empty() {
        return None;
    }
    // Over loopback only CPUs can be the limit, and that is no fault.
    let natural = |found: &Concluded| {
        let cpu = matches!(found.decision.limit, Limit::SenderCpu | Limit::ReceiverCpu | Limit::BothCpus);
        cpu && over_loopback(found.case)
    };
    let reported = all.into_iter().filter(|found| !natural(found));
    Some(reported.map(|found| finding(evidence, &found)).collect())
}

fn finding(evidence: &Evidence, found: &Concluded) -> Finding {
    let limit = found.decision.limit;
    let rate = figure(found.rate, "Gbit/s");
    let severity = match limit {
        Limit::SenderStarved | Limit::ReceiverStarved | Limit::Window | Limit::Loss | Limit::Shaper => {
            Severity::Warning
        }
        _ => Severity::Note,
    };
    let headline = match limit {
        Limit::NotSeparable => {
            format!("Bandwidth is {rate}, for an unknown reason. Repeat it with more rounds.")
        }
        Limit::SenderStarved | Limit::ReceiverStarved => {
            format!("Lack of CPU time at {} limits the bandwidth to {rate}", limit.end())
        }
        Limit::Window => format!("TCP buffers limit the bandwidth to {rate}. Enlarge them."),
        Limit::Loss => format!("Lost packets limit the bandwidth to {rate}. Find where they are dropped."),
        Limit::OneStream => format!("One connection carries only {rate}. Several carry more."),
        Limit::BothCpus => format!("The CPUs of both ends limit the bandwidth to {rate}"),
        limit => format!("{} limits the bandwidth to {rate}", capital(limit.words())),
    };
    let (cause, advice) = words(evidence, found);
    Finding::of(BOTTLENECK.id, severity, headline)
        .cause(cause)
        .facts(facts(found))
        .confirm(confirm(evidence, found.case))
        .advice(advice)
        .concerns([&found.key])
}

/// Round trips that three passes add to their own time; three have enough rounds.
const ROUND_TRIPS_OF_3_PASSES: f64 = 1800.0;

/// The command that repeats the experiment, with time for enough rounds over this path.
pub fn confirm(evidence: &Evidence, case: &Case) -> String {
    let trip_us = path(evidence).and_then(|path| path.remote.as_ref()?.round_trip_us).unwrap_or(0.0);
    let needs_s = 60.0 + ROUND_TRIPS_OF_3_PASSES * (trip_us / 1e6).min(0.5);
    let minutes = (needs_s / 60.0).ceil().max(2.0);
    let to = case.inputs.get("to").map(|to| format!(" --to {}", shell(to))).unwrap_or_default();
    format!("assay run --only network.bottleneck{to} --budget {minutes:.0}m")
}

/// Cause and advice.
fn words(evidence: &Evidence, found: &Concluded) -> (String, String) {
    let fixed = |cause: &str, advice: &str| (cause.to_string(), advice.to_string());
    match found.decision.limit {
        Limit::SenderCpu => cpu_words(found, "the sender", "at the receiver it does not"),
        Limit::ReceiverCpu => cpu_words(found, "the receiver", "at the sender it does not"),
        Limit::BothCpus => cpu_words(found, "either end", "they wait for each other or share a CPU"),
        Limit::SenderStarved => starved_words("the sender"),
        Limit::ReceiverStarved => starved_words("the receiver"),
        Limit::Window => window_words(found),
        Limit::Loss => fixed(
            "Each lost segment shrinks the congestion window, and one connection stays slow.",
            "Find where packets are dropped (`ethtool -S`, switch ports, cable), or use BBR (`--congestion \
             bbr`).",
        ),
        Limit::OneStream => fixed(
            "Four connections carry more, and no CPU, window or loss limits the one.",
            "Use more streams or another congestion control, and look for limits per connection.",
        ),
        Limit::Link => fixed(
            "It fills the link, headers included: this is the network's own figure.",
            "Nothing is wrong. Only a faster link, or jumbo frames, would carry more.",
        ),
        Limit::Shaper => shaper_words(evidence, found),
        Limit::NotSeparable if found.decision.signs.rises() => fixed(
            "The bandwidth still rose while it was measured, so no limit shows.",
            "Measure longer (`--profile full`), or with more streams (`--streams`).",
        ),
        Limit::NotSeparable => fixed(
            "The experiments do not point to one limit. The facts below give the evidence for each.",
            "Repeat it with a larger budget (more rounds) while nothing else runs at either end.",
        ),
    }
}

fn cpu_words(found: &Concluded, whose: &str, also: &str) -> (String, String) {
    let cause = format!("Burning CPU at {whose} costs bandwidth; {also}.");
    let advice = if over_loopback(found.case) {
        "Each end is one process. For a network's figure, measure to another host (`--to`).".to_string()
    } else {
        format!(
            "Use more streams (`--streams`), larger messages and offloads, or give {whose} a faster core."
        )
    };
    (cause, advice)
}

fn starved_words(whose: &str) -> (String, String) {
    (
        format!(
            "The bandwidth follows {whose}'s CPU, which other work, a quota or a hypervisor partly took."
        ),
        format!("Look at other work there (`pidstat -w 1`), at steal, and at {whose}'s CPU quota."),
    )
}

/// What to do where TCP's buffers are the limit.
pub const ENLARGE_BUFFERS: &str = "Raise the third number of net.ipv4.tcp_rmem (receiver) and tcp_wmem \
    (sender) to twice rate × round trip, and net.core.rmem_max and wmem_max for programs with buffers of their own.";

fn window_words(found: &Concluded) -> (String, String) {
    let need = found.experiment.plain.rtt.map(|rtt| found.rate * rtt * 1e3 / 8.0 / 1e6);
    let need = need.map(|mb| format!(" Rate × round trip is {} now.", figure(mb, "MB"))).unwrap_or_default();
    (format!("The buffers limit the data in flight, and no CPU is full.{need}"), ENLARGE_BUFFERS.to_string())
}

fn shaper_words(evidence: &Evidence, found: &Concluded) -> (String, String) {
    let link = path(evidence).and_then(|path| path.link_gbits()).filter(|_| !over_loopback(found.case));
    let below = match link {
        Some((link, _)) => format!("below the link's {}", figure(link, "Gbit/s")),
        None => "a link of unknown speed would look the same".to_string(),
    };
    (
        format!("The path itself has a rate ({below}), which nothing at either end changes."),
        "Ask the provider for its limit. Look at `tc -s qdisc` and at the switch's port.".to_string(),
    )
}
