//! Bandwidths that somebody could take for the link's, and whose they are: a CPU's, one
//! connection's, a window's, a shaper's.

use super::experiment::{concluded, confirm};
use super::transfers::{self, Transfer, all, at_ends, direction, over_loopback, path, told_ends, transfers};
use crate::words::{bytes, figure, percent, shell};
use crate::{Evidence, Rule};
use model::vocabulary::network as ids;
use model::vocabulary::{MetricId, ParamId};
use model::{Effect, Fact, Finding, Severity};
use stats::network::Limit;

pub const CPU_BOUND: Rule = Rule {
    id: ids::rule::NETWORK_CPU_BOUND,
    title: "A CPU's bandwidth, not the link's",
    topic: "network CPU",
    about: "Half of all published network figures are a CPU's: one task that is full at the sender or the receiver, while the link \
            has room. Such a figure moves with the clock, the mitigations and the kernel, and says nothing of the network.",
    method: "Fires for TCP and UDP to another end where the tasks of an end ran for 90 % of their CPUs' time, or the network's interrupts took 90 % of \
             it (on the CPUs of its tasks, or on one that handles the card's packets), and less than 90 % of the link's known speed arrived one \
             way (or no speed is known); of both ways at once it is half of their sum. Loopback figures are CPUs' by their nature; \
             `network-loopback` says so.",
    calm: "no CPU full during transfers",
    looked_at: "CPU time of ends",
    source: file!(),
    check: cpu_bound,
};

const FULL: f64 = 0.9;
const FILLED: f64 = 0.9;

fn cpu_bound(evidence: &Evidence) -> Option<Vec<Finding>> {
    let link = path(evidence).and_then(|path| path.link_gbits());
    let all: Vec<Transfer> =
        all(evidence).into_iter().filter(|transfer| !over_loopback(transfer.case())).collect();
    let mut judged = false;
    let mut findings = Vec::new();
    for transfer in &all {
        let shares: Vec<(&str, &str, MetricId, f64)> =
            [("busy", transfers::BUSY), ("softirq", transfers::SOFTIRQ)]
                .into_iter()
                .flat_map(|(what, ends)| {
                    let [sender, receiver] = at_ends(transfer.case(), ends);
                    [("sender", what, sender), ("receiver", what, receiver)]
                })
                .filter_map(|(whose, what, metric)| {
                    let share = transfer.beside(metric)?;
                    Some((whose, what, metric, share))
                })
                .collect();
        judged |= !shares.is_empty();
        let (Some(rate), Some(one_way)) = (transfer.rate(), transfer.one_way()) else { continue };
        if link.is_some_and(|(link, _)| one_way > FILLED * link) {
            continue;
        }
        let Some((whose, what, metric, share)) = shares.into_iter().find(|(.., share)| *share > FULL) else {
            continue;
        };
        let doing = if what == "busy" { "its tasks ran" } else { "the network's interrupts took" };
        let mut facts = vec![
            Fact::new("bandwidth", figure(rate, "Gbit/s"), transfer.key()),
            Fact::new(format!("the {whose}: {doing}"), percent(share), transfer.key_of(metric)),
        ];
        facts.extend(link.map(|(link, end)| {
            Fact::new(
                format!("link of {end}"),
                figure(link, "Gbit/s"),
                if end == "this end" { ids::probe::NETWORK } else { ids::probe::NETWORK_REMOTE },
            )
        }));
        findings.push(Finding {
            rule: CPU_BOUND.id.into(),
            severity: Severity::Warning,
            headline: format!(
                "The {whose}'s CPU limits the transfer to {}. This is not the link's speed.",
                figure(rate, "Gbit/s")
            ),
            cause: format!("The {whose} had no CPU time left while the link had room."),
            facts,
            confirm: confirm(evidence, transfer.case()),
            advice: "Do not quote it as the network's speed. More streams (`--streams`: to another host they are spread over the CPUs that each end may \
                     use), larger messages, offloads and jumbo frames bring it nearer to the link; network.bottleneck shows by experiment which end it is."
                .into(),
            series: vec![transfer.key().to_string()],
            effect: Effect::Explains,
        });
    }
    judged.then_some(findings)
}

pub const ONE_STREAM: Rule = Rule {
    id: ids::rule::NETWORK_ONE_STREAM,
    title: "Several streams carry more than one",
    topic: "TCP streams",
    about: "One connection is one task and one CPU at each end, one window, and one queue of the card: what it carries is often taken for \
            the network's bandwidth.",
    method: "Fires where the same transfer with more streams carries more than 1.15 times as much as with one, and the 95 % intervals do not touch.",
    calm: "one TCP stream fills the path",
    looked_at: "stream counts",
    source: file!(),
    check: one_stream,
};

const MORE: f64 = 1.15;

fn one_stream(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = transfers(evidence, ids::TCP);
    let same = |one: &Transfer, other: &Transfer| {
        let rest = |transfer: &Transfer| {
            let mut point = transfer.point().clone();
            point.remove(ids::param::STREAMS);
            point
        };
        one.judged.series.planned == other.judged.series.planned && rest(one) == rest(other)
    };
    let mut compared = false;
    let mut findings = Vec::new();
    for one in all.iter().filter(|transfer| transfer.streams() == 1.0) {
        let several = all.iter().filter(|other| other.streams() > 1.0 && same(one, other));
        let Some(best) = several.max_by(|a, b| a.rate().unwrap_or(0.0).total_cmp(&b.rate().unwrap_or(0.0)))
        else {
            continue;
        };
        let (Some(single), Some(most)) = (one.rate(), best.rate()) else { continue };
        compared = true;
        let interval = |transfer: &Transfer| transfer.judged.analysis.estimate.as_ref()?.interval;
        let apart = interval(one).zip(interval(best)).is_some_and(|(one, best)| best.low > one.high);
        if most <= MORE * single || !apart {
            continue;
        }
        let streams = best.streams();
        findings.push(Finding {
            rule: ONE_STREAM.id.into(),
            severity: Severity::Note,
            headline: format!(
                "One stream carries {}, {streams} streams {}. Quote the number of streams.",
                figure(single, "Gbit/s"),
                figure(most, "Gbit/s")
            ),
            cause: "What one connection can have is less than what the path can carry.".into(),
            facts: vec![
                Fact::new("one stream", figure(single, "Gbit/s"), one.key()),
                Fact::new(format!("{streams} streams"), figure(most, "Gbit/s"), best.key()),
                Fact::new("times as much", format!("{:.2}", most / single), best.key()),
            ],
            confirm: confirm(evidence, one.case()),
            advice: "Quote the number of streams with the bandwidth. Programs that move much data over one connection get the smaller figure.".into(),
            series: vec![one.key().to_string()],
            effect: Effect::Explains,
        });
    }
    compared.then_some(findings)
}

pub const SHAPER: Rule = Rule {
    id: ids::rule::NETWORK_SHAPER,
    title: "A rate below the link's is enforced on the way",
    topic: "shaper",
    about: "Clouds, containers and switches limit a machine's rate by a token bucket: a burst passes, then a flat line. The figure is a \
            contract, not hardware, and the same hardware gives another one tomorrow.",
    method: "Fires where network.bottleneck concludes a shaper, or where a queueing discipline of an end that is known to enforce a rate (tbf, cake, fq, netem) \
             lets through what that end sent, within 10 %, headers included (fq's rate is one for each stream).",
    calm: "no traffic shaper found",
    looked_at: "qdiscs and rates",
    source: file!(),
    check: shaper,
};

fn shaper(evidence: &Evidence) -> Option<Vec<Finding>> {
    let path = path(evidence);
    let shaped = concluded(evidence);
    let all: Vec<Transfer> =
        all(evidence).into_iter().filter(|transfer| !over_loopback(transfer.case())).collect();
    if shaped.is_empty() && (all.is_empty() || path.is_none()) {
        return None;
    }
    let mut findings = Vec::new();
    for found in shaped.iter().filter(|found| found.decision.limit == Limit::Shaper) {
        let near = all.iter().filter(|transfer| {
            let same = |name: ParamId| transfer.case().params.get(name) == found.case.params.get(name);
            let rate = transfer.rate().unwrap_or(0.0);
            same(ids::param::DIRECTION) && rate > 0.85 * found.rate && rate < 1.15 * found.rate
        });
        let near: Vec<&Transfer> = near.collect();
        let mut facts = vec![Fact::new("rate that nothing moves", figure(found.rate, "Gbit/s"), &found.key)];
        facts.extend(near.iter().filter_map(|transfer| {
            Some(Fact::new(
                transfer.case().bench.to_string(),
                figure(transfer.rate()?, "Gbit/s"),
                transfer.key(),
            ))
        }));
        findings.push(Finding {
            rule: SHAPER.id.into(),
            severity: Severity::Warning,
            headline: format!("A shaper on the path limits traffic to {}. Ask the provider.", figure(found.rate, "Gbit/s")),
            cause: "Neither end's CPU, windows nor streams move it: the path has a rate of its own.".into(),
            facts,
            confirm: confirm(evidence, found.case),
            advice: "Ask the provider for the limit of this kind of machine, and look at `tc -s qdisc show` on what lies between.".into(),
            series: near.iter().map(|transfer| transfer.key().to_string()).collect(),
            effect: Effect::Explains,
        });
    }
    for (words, end, source) in path.into_iter().flat_map(told_ends) {
        let mtu = f64::from(end.mtu.unwrap_or(1500).max(200));
        let wire = (mtu + 14.0) / (mtu - 52.0);
        // It shapes what its own end sends.
        let shaped = |transfer: &&Transfer| {
            let direction = direction(transfer.case());
            let sends = path.is_some_and(|path| path.senders(direction).any(|(sender, _)| sender == words));
            let limit = end.shaped_gbits(transfer.streams()).filter(|_| sends);
            let rate = transfer.one_way().unwrap_or(0.0) * wire;
            limit.is_some_and(|(limit, _)| rate > 0.9 * limit && rate < 1.1 * limit)
        };
        let hit: Vec<&Transfer> = all.iter().filter(shaped).collect();
        let Some((limit, kind)) = hit.first().and_then(|first| end.shaped_gbits(first.streams())) else {
            continue;
        };
        let mut facts = vec![Fact::new(format!("{kind} of {words}"), figure(limit, "Gbit/s"), source)];
        facts.extend(hit.iter().filter_map(|transfer| {
            Some(Fact::new(
                transfer.case().bench.to_string(),
                figure(transfer.rate()?, "Gbit/s"),
                transfer.key(),
            ))
        }));
        let interface = end.interface.as_deref().unwrap_or("eth0");
        findings.push(Finding {
            rule: SHAPER.id.into(),
            severity: Severity::Warning,
            headline: format!(
                "Queueing discipline {kind} on {interface} ({words}) limits traffic to {}",
                figure(limit, "Gbit/s")
            ),
            cause: "The bandwidth is what this queueing discipline allows.".into(),
            facts,
            confirm: format!("tc -s qdisc show dev {}", shell(interface)),
            advice:
                "Take the queueing discipline away to measure the network, or quote its rate with the figure."
                    .into(),
            series: hit.iter().map(|transfer| transfer.key().to_string()).collect(),
            effect: Effect::Explains,
        });
    }
    Some(findings)
}

pub const WINDOW: Rule = Rule {
    id: ids::rule::NETWORK_WINDOW,
    title: "Windows hold a transfer back",
    topic: "TCP window",
    about: "TCP may have no more on its way than the smaller of both ends' buffers: over a long way that is the limit, whatever \
            the link. Default buffers of 6 MB carry 0.5 Gbit/s over 100 ms.",
    method: "Fires where network.bottleneck concludes a window, or where TCP itself says that windows (rwnd_limited and sndbuf_limited together) \
             held it back for more than half of the time, no end's tasks ran for more than 85 % of it, and half of the larger buffer (the other half is for the kernel's own needs) is below \
             1.5 times what is on the way at this rate (rate × round trip).",
    calm: "TCP buffers large enough",
    looked_at: "tcp_info",
    source: file!(),
    check: window,
};

const LIMITED: f64 = 0.5;
const BUSY: f64 = 0.85;

fn window(evidence: &Evidence) -> Option<Vec<Finding>> {
    let experiments = concluded(evidence);
    let mut told = !experiments.is_empty();
    let mut findings = Vec::new();
    for found in experiments.iter().filter(|found| found.decision.limit == Limit::Window) {
        let label = "with larger buffers";
        let larger = found.decision.signs.large_window.map(|held| format!("{:.2} times", held.ratio));
        let mut facts = vec![Fact::new("bandwidth", figure(found.rate, "Gbit/s"), &found.key)];
        facts.extend(larger.map(|times| Fact::new(label, times, &found.key)));
        facts.extend(buffers(evidence));
        findings.push(Finding {
            rule: WINDOW.id.into(),
            severity: Severity::Warning,
            headline: format!(
                "TCP buffers limit the connection to {}. Enlarge them.",
                figure(found.rate, "Gbit/s")
            ),
            cause:
                "More buffer carries more, and no CPU is full: what may be on its way at once is the limit."
                    .into(),
            facts,
            confirm: confirm(evidence, found.case),
            advice: ADVICE.into(),
            series: vec![found.key.clone()],
            effect: Effect::Explains,
        });
    }
    for transfer in transfers(evidence, ids::TCP) {
        if over_loopback(transfer.case()) {
            continue;
        }
        let shares = [ids::metric::RWND_LIMITED, ids::metric::SNDBUF_LIMITED]
            .map(|metric| (metric, transfer.beside(metric)));
        let known: Vec<(MetricId, f64)> =
            shares.into_iter().filter_map(|(metric, share)| Some((metric, share?))).collect();
        let (Some(rate), Some(rtt)) = (transfer.rate(), transfer.beside(ids::metric::RTT)) else { continue };
        if known.is_empty() {
            continue;
        }
        told = true;
        let limited: f64 = known.iter().map(|(_, share)| share).sum();
        let [sender, receiver] = at_ends(transfer.case(), transfers::BUSY);
        let busy =
            [sender, receiver].iter().filter_map(|metric| transfer.beside(*metric)).fold(0.0, f64::max);
        // Gbit/s × us: thousands of bits.
        let one_way = transfer.one_way().unwrap_or(rate);
        let on_the_way = one_way / transfer.streams() * rtt * 1e3 / 8.0;
        let largest =
            [&transfer.beside(ids::metric::SEND_BUFFER), &transfer.beside(ids::metric::RECEIVE_BUFFER)];
        let Some(buffer) = largest.into_iter().flatten().copied().reduce(f64::max) else { continue };
        if limited <= LIMITED || busy > BUSY || 0.5 * buffer > 1.5 * on_the_way {
            continue;
        }
        let mut facts = vec![
            Fact::new("bandwidth", figure(rate, "Gbit/s"), transfer.key()),
            Fact::new(
                "on its way at once (rate × round trip)",
                bytes(on_the_way),
                transfer.key_of(ids::metric::RTT),
            ),
            Fact::new("larger buffer", bytes(buffer), transfer.key_of(ids::metric::RECEIVE_BUFFER)),
        ];
        facts.extend(known.iter().map(|(metric, share)| {
            let label = if *metric == ids::metric::RWND_LIMITED {
                "limited by the receiver's window"
            } else {
                "limited by the send buffer"
            };
            Fact::new(label, percent(*share), transfer.key_of(*metric))
        }));
        facts.extend(buffers(evidence));
        findings.push(Finding {
            rule: WINDOW.id.into(),
            severity: Severity::Warning,
            headline: format!(
                "TCP buffers limit the connection to {}. Enlarge them.",
                figure(rate, "Gbit/s")
            ),
            cause: "The round trip is long for these buffers: the sender waits for room most of the time."
                .into(),
            facts,
            confirm: confirm(evidence, transfer.case()),
            advice: ADVICE.into(),
            series: vec![transfer.key().to_string()],
            effect: Effect::Explains,
        });
    }
    told.then_some(findings)
}

const ADVICE: &str = "Raise the third number of net.ipv4.tcp_rmem (receiver) and tcp_wmem (sender) to twice the wanted rate × round trip; \
                      net.core.rmem_max and wmem_max bound what programs ask for themselves.";

/// What the kernels allow at most.
fn buffers(evidence: &Evidence) -> Vec<Fact> {
    let of = |(words, end, source): (&'static str, &machine::End, &'static str)| {
        let greatest = |label: &str, sizes: &[u64]| {
            let size = *sizes.get(2)?;
            Some(Fact::new(format!("{label} of {words}, at most"), bytes(size as f64), source))
        };
        [greatest("tcp_rmem", &end.tcp_rmem), greatest("tcp_wmem", &end.tcp_wmem)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    path(evidence).into_iter().flat_map(told_ends).flat_map(of).collect()
}
