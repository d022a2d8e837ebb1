//! Bandwidths that are not limited by the link but by something else: a CPU, one connection, a
//! window, a shaper.

use super::experiment::{Concluded, ENLARGE_BUFFERS, concluded, confirm};
use super::transfers::{
    self, Transfer, all, at_ends, described_ends, direction, over_loopback, path, probe_of, transfers,
};
use crate::words::{bytes, figure, percent, shell};
use crate::{Evidence, Rule};
use machine::{End, NetworkPath};
use model::vocabulary::network as ids;
use model::vocabulary::{MetricId, ParamId};
use model::{Fact, Finding, FindingDraft};
use stats::network::Limit;

pub const CPU_BOUND: Rule = Rule {
    id: ids::rule::NETWORK_CPU_BOUND,
    title: "A CPU limits the bandwidth, not the link",
    topic: "network CPU",
    meaning: "One CPU is fully busy at the sender or the receiver, and the link could carry more. Such a \
        figure changes with the clock, the mitigations and the kernel. It shows nothing about the network.",
    action: "Do not quote it as the network's speed. Use more streams (--streams), larger messages, offloads \
        or jumbo frames. See it: assay run --only network.bottleneck --to HOST --new",
    when: "An end's tasks ran for more than 90 % of their CPUs' time, or network interrupts took as much. \
        Less than 90 % of the link's known speed arrived one way, or no speed is known.",
    how: "For TCP and UDP to another host. Interrupts count on the CPUs of the tasks and on those that \
        handle the card's packets. With both directions at once, one way is half of their sum. Loopback \
        figures are CPUs' by nature; network-loopback reports them.",
    calm: "no CPU full during transfers",
    looked_at: "CPU time of ends",
    source: file!(),
    check: cpu_bound,
};

const MIN_FULL: f64 = 0.9;
const MIN_FILLED: f64 = 0.9;

fn cpu_bound(evidence: &Evidence) -> Option<Vec<Finding>> {
    let link = path(evidence).and_then(|path| path.link_gbits());
    let mut judged = false;
    let mut findings = Vec::new();
    for transfer in over_network(evidence) {
        let shares = cpu_shares(&transfer);
        judged |= !shares.is_empty();
        let (Some(rate), Some(one_way)) = (transfer.rate(), transfer.one_way()) else { continue };
        if link.is_some_and(|(link, _)| one_way > MIN_FILLED * link) {
            continue;
        }
        let Some(full) = shares.into_iter().find(|one| one.share > MIN_FULL) else { continue };
        let CpuShare { whose, doing, metric, share } = full;
        let headline = format!(
            "The {whose}'s CPU limits the transfer to {}. This is not the link's speed.",
            figure(rate, "Gbit/s")
        );
        findings.push(
            Finding::warning(CPU_BOUND.id, headline)
                .cause(format!("The {whose} had no CPU time left while the link could carry more."))
                .facts(transfer.rate_fact("bandwidth"))
                .fact(format!("the {whose}: {doing}"), percent(share), transfer.key_of(metric))
                .facts(link.map(|(link, end)| {
                    Fact::new(format!("link of {end}"), figure(link, "Gbit/s"), probe_of(end))
                }))
                .confirm(confirm(evidence, transfer.case()))
                .advice(
                    "Do not quote it as the network's speed. Use more streams (`--streams`), larger messages \
                     or offloads.",
                )
                .explains([transfer.key()]),
        );
    }
    judged.then_some(findings)
}

/// How much of its time an end's CPU worked for a transfer.
struct CpuShare {
    whose: &'static str,
    doing: &'static str,
    metric: MetricId,
    share: f64,
}

fn cpu_shares(transfer: &Transfer) -> Vec<CpuShare> {
    let mut shares = Vec::new();
    for (doing, ends) in
        [("its tasks ran", transfers::BUSY), ("the network's interrupts took", transfers::SOFTIRQ)]
    {
        let ends = ["sender", "receiver"].into_iter().zip(at_ends(transfer.case(), ends));
        shares.extend(ends.filter_map(|(whose, metric)| {
            Some(CpuShare { whose, doing, metric, share: transfer.median_of(metric)? })
        }));
    }
    shares
}

/// TCP's and UDP's transfers to another end.
fn over_network<'a>(evidence: &Evidence<'a>) -> Vec<Transfer<'a>> {
    all(evidence).into_iter().filter(|transfer| !over_loopback(transfer.case())).collect()
}

pub const ONE_STREAM: Rule = Rule {
    id: ids::rule::NETWORK_ONE_STREAM,
    title: "Several streams carry more than one",
    topic: "TCP streams",
    meaning: "One connection is one task and one CPU at each end, one window, and one queue of the card. \
        What it carries is often mistaken for the network's bandwidth.",
    action: "Quote the number of streams with the bandwidth. Programs that use one connection get the \
        smaller figure. See it: assay run --only network.tcp --to HOST --new",
    when: "A transfer with more streams carries over 1.15 times as much as with one, and the 95 % intervals \
        do not touch.",
    how: "",
    calm: "one TCP stream fills the path",
    looked_at: "stream counts",
    source: file!(),
    check: one_stream,
};

const MIN_STREAM_GAIN: f64 = 1.15;

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
        let interval = |transfer: &Transfer| transfer.judged.interval();
        let apart = interval(one).zip(interval(best)).is_some_and(|(one, best)| best.low > one.high);
        if most <= MIN_STREAM_GAIN * single || !apart {
            continue;
        }
        let streams = best.streams();
        let times = format!("{:.2}", most / single);
        let [single, most] = [single, most].map(|rate| figure(rate, "Gbit/s"));
        let headline =
            format!("One stream carries {single}, {streams} streams {most}. Quote the number of streams.");
        findings.push(
            Finding::note(ONE_STREAM.id, headline)
                .cause("One connection carries less than the path can.")
                .fact("one stream", single, one.key())
                .fact(format!("{streams} streams"), most, best.key())
                .fact("times as much", times, best.key())
                .confirm(confirm(evidence, one.case()))
                .advice("Quote the number of streams. Programs with one connection get the smaller figure.")
                .explains([one.key()]),
        );
    }
    compared.then_some(findings)
}

pub const SHAPER: Rule = Rule {
    id: ids::rule::NETWORK_SHAPER,
    title: "A shaper limits traffic below the link's speed",
    topic: "shaper",
    meaning: "Clouds, containers and switches limit a host's rate by a token bucket, so a burst passes, then \
        a flat line. The figure is a contract, not hardware. The same hardware may give another one \
        tomorrow.",
    action: "Ask the provider for the limit of this kind of host, and look at the queueing disciplines of \
        both ends. See it: tc -s qdisc show",
    when: "network.bottleneck finds a shaper. Or an end sent within 10 % of the rate of its own queueing \
        discipline (tbf, cake, fq, netem).",
    how: "Rates include headers. fq's rate is one for each stream.",
    calm: "no traffic shaper found",
    looked_at: "qdiscs and rates",
    source: file!(),
    check: shaper,
};

fn shaper(evidence: &Evidence) -> Option<Vec<Finding>> {
    let path = path(evidence);
    let shaped = concluded(evidence);
    let all = over_network(evidence);
    if shaped.is_empty() && (all.is_empty() || path.is_none()) {
        return None;
    }
    let concluded = shaped.iter().filter(|found| found.decision.limit == Limit::Shaper);
    let mut findings: Vec<Finding> = concluded.map(|found| concluded_shaper(evidence, found, &all)).collect();
    if let Some(path) = path {
        findings.extend(
            described_ends(path)
                .filter_map(|(words, end, source)| known_discipline(path, words, end, source, &all)),
        );
    }
    Some(findings)
}

/// The experiment found a rate that no change of the experiment moves.
fn concluded_shaper(evidence: &Evidence, found: &Concluded, all: &[Transfer]) -> Finding {
    let near = |transfer: &&Transfer| {
        let same = |name: ParamId| transfer.case().params.get(name) == found.case.params.get(name);
        let rate = transfer.rate().unwrap_or(0.0);
        same(ids::param::DIRECTION) && rate > 0.85 * found.rate && rate < 1.15 * found.rate
    };
    let near: Vec<&Transfer> = all.iter().filter(near).collect();
    let rate = figure(found.rate, "Gbit/s");
    let headline = format!("A shaper on the path limits traffic to {rate}. Ask the provider.");
    Finding::warning(SHAPER.id, headline)
        .cause("No CPU, window or number of streams changes it: the path has a rate of its own.")
        .fact("rate that nothing changes", rate, &found.key)
        .facts(near.iter().filter_map(|transfer| transfer.rate_fact(&transfer.case().bench)))
        .confirm(confirm(evidence, found.case))
        .advice("Ask the provider for its limit, and look at `tc -s qdisc show` between the ends.")
        .explains(near.iter().map(|transfer| transfer.key()))
}

/// A queueing discipline lets through what its own end sent.
fn known_discipline(
    path: &NetworkPath,
    words: &str,
    end: &End,
    source: &str,
    all: &[Transfer],
) -> Option<Finding> {
    let mtu = f64::from(end.mtu.unwrap_or(1500).max(200));
    let wire = (mtu + 14.0) / (mtu - 52.0);
    let shaped = |transfer: &&Transfer| {
        let sends = path.senders(direction(transfer.case())).any(|(sender, _)| sender == words);
        let limit = end.shaped_gbits(transfer.streams()).filter(|_| sends);
        let rate = transfer.one_way().unwrap_or(0.0) * wire;
        limit.is_some_and(|(limit, _)| rate > 0.9 * limit && rate < 1.1 * limit)
    };
    let hit: Vec<&Transfer> = all.iter().filter(shaped).collect();
    let (limit, kind) = end.shaped_gbits(hit.first()?.streams())?;
    let limit = figure(limit, "Gbit/s");
    let interface = end.interface.as_deref().unwrap_or("eth0");
    let headline = format!("Queueing discipline {kind} on {interface} ({words}) limits traffic to {limit}");
    let finding = Finding::warning(SHAPER.id, headline)
        .cause("The bandwidth is what this queueing discipline allows.")
        .fact(format!("{kind} of {words}"), limit, source)
        .facts(hit.iter().filter_map(|transfer| transfer.rate_fact(&transfer.case().bench)))
        .confirm(format!("tc -s qdisc show dev {}", shell(interface)))
        .advice("Remove it to measure the network, or quote its rate with the figure.")
        .explains(hit.iter().map(|transfer| transfer.key()));
    Some(finding)
}

pub const WINDOW: Rule = Rule {
    id: ids::rule::NETWORK_WINDOW,
    title: "TCP windows limit a transfer",
    topic: "TCP window",
    meaning: "TCP cannot have more data in flight than the smaller of both ends' buffers. Over a long path \
        that is the limit, whatever the link. Default buffers of 6 MB carry 0.5 Gbit/s over 100 ms.",
    action: "Raise the third number of net.ipv4.tcp_rmem (receiver) and tcp_wmem (sender) to twice rate × \
        round trip. See it: assay run --only network.bottleneck --to HOST --new",
    when: "network.bottleneck finds a window. Or TCP reports windows as its limit for more than half of the \
        time, with small buffers and no nearly full CPU.",
    how: "TCP reports rwnd_limited and sndbuf_limited, added here. A CPU counts as nearly full here if an \
        end's tasks ran for more than 85 % of the time. Small: even half of the larger of the two buffers is \
        below 1.5 times what is in flight (rate × round trip). The kernel needs the other half.",
    calm: "TCP buffers large enough",
    looked_at: "tcp_info",
    source: file!(),
    check: window,
};

const MIN_WINDOW_SHARE: f64 = 0.5;
const MAX_BUSY: f64 = 0.85;

fn window(evidence: &Evidence) -> Option<Vec<Finding>> {
    let experiments = concluded(evidence);
    let windows = experiments.iter().filter(|found| found.decision.limit == Limit::Window);
    let mut findings: Vec<Finding> = windows.map(|found| concluded_window(evidence, found)).collect();
    let tcp = transfers(evidence, ids::TCP).into_iter().filter(|tcp| !over_loopback(tcp.case()));
    let limited: Vec<WindowLimited> = tcp.filter_map(WindowLimited::of).collect();
    let looked = !experiments.is_empty() || !limited.is_empty();
    findings.extend(limited.iter().filter_map(|limited| limited.finding(evidence)));
    looked.then_some(findings)
}

fn enlarge(rate: f64) -> FindingDraft {
    let rate = figure(rate, "Gbit/s");
    Finding::warning(WINDOW.id, format!("TCP buffers limit the connection to {rate}. Enlarge them."))
}

fn concluded_window(evidence: &Evidence, found: &Concluded) -> Finding {
    let larger = found.decision.signs.large_window.map(|held| format!("{:.2} times", held.ratio));
    enlarge(found.rate)
        .cause("Larger buffers carry more, and no CPU is full. The data that may be in flight is the limit.")
        .fact("bandwidth", figure(found.rate, "Gbit/s"), &found.key)
        .facts(larger.map(|times| Fact::new("with larger buffers", times, &found.key)))
        .facts(buffers(evidence))
        .confirm(confirm(evidence, found.case))
        .advice(ENLARGE_BUFFERS)
        .explains([&found.key])
}

/// A transfer for which TCP reports how long windows limited it.
struct WindowLimited<'a> {
    transfer: Transfer<'a>,
    rate: f64,
    rtt_us: f64,
}

impl<'a> WindowLimited<'a> {
    fn of(transfer: Transfer<'a>) -> Option<WindowLimited<'a>> {
        let (rate, rtt_us) = (transfer.rate()?, transfer.median_of(ids::metric::RTT)?);
        transfer.median_of(ids::metric::RWND_LIMITED).or(transfer.median_of(ids::metric::SNDBUF_LIMITED))?;
        Some(WindowLimited { transfer, rate, rtt_us })
    }

    fn finding(&self, evidence: &Evidence) -> Option<Finding> {
        let WindowLimited { transfer, rate, rtt_us } = self;
        let median_of =
            |metrics: [MetricId; 2]| metrics.into_iter().filter_map(|metric| transfer.median_of(metric));
        let limited: f64 = median_of([ids::metric::RWND_LIMITED, ids::metric::SNDBUF_LIMITED]).sum();
        let busy = median_of(at_ends(transfer.case(), transfers::BUSY)).fold(0.0, f64::max);
        let buffer = median_of([ids::metric::SEND_BUFFER, ids::metric::RECEIVE_BUFFER]).reduce(f64::max)?;
        // Gbit/s × us: thousands of bits.
        let one_way = transfer.one_way().unwrap_or(*rate);
        let on_the_way = one_way / transfer.streams() * rtt_us * 1e3 / 8.0;
        if limited <= MIN_WINDOW_SHARE || busy > MAX_BUSY || 0.5 * buffer > 1.5 * on_the_way {
            return None;
        }
        let rtt = transfer.key_of(ids::metric::RTT);
        let finding = enlarge(*rate)
            .cause("The sender waits for buffer space most of the time: the round trip is long.")
            .facts(transfer.rate_fact("bandwidth"))
            .fact("in flight (rate × round trip)", bytes(on_the_way), rtt)
            .fact("larger buffer", bytes(buffer), transfer.key_of(ids::metric::RECEIVE_BUFFER))
            .facts(transfer.fact("limited by the receiver's window", ids::metric::RWND_LIMITED, percent))
            .facts(transfer.fact("limited by the send buffer", ids::metric::SNDBUF_LIMITED, percent))
            .facts(buffers(evidence))
            .confirm(confirm(evidence, transfer.case()))
            .advice(ENLARGE_BUFFERS)
            .explains([transfer.key()]);
        Some(finding)
    }
}

/// What the kernels allow at most.
fn buffers(evidence: &Evidence) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (words, end, source) in path(evidence).into_iter().flat_map(described_ends) {
        for (name, sizes) in [("tcp_rmem", &end.tcp_rmem), ("tcp_wmem", &end.tcp_wmem)] {
            let label = format!("{name} of {words}, at most");
            facts.extend(sizes.get(2).map(|size| Fact::new(label, bytes(*size as f64), source)));
        }
    }
    facts
}
