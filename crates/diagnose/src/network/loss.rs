//! Messages that never arrived, or arrived out of order, and where they were lost.

use super::transfers::{self, Transfer, at_ends, described_ends, over_loopback, path, transfers};
use crate::words::{figure, percent};
use crate::{Evidence, Rule};
use model::vocabulary::network as ids;
use model::{Fact, Finding, FindingDraft, Severity};

pub const LOSS: Rule = Rule {
    id: ids::rule::NETWORK_LOSS,
    title: "Messages or packets were lost or arrived out of order",
    topic: "packet loss",
    meaning: "Nothing slows UDP down: a sender that is faster than the receiver loses what the socket cannot \
        keep. That is no fault of the network. Loss on the path, at a rate that both ends can handle, is.",
    action: "Measure at half the rate (--rate); loss that stays is the path's. Then look for drops with \
        ethtool -S and tc -s qdisc. See it: assay run --only network.udp --to HOST --new",
    when: "1 UDP message in 1000 was lost or overtaken, or TCP sent more than 2 segments in 1000 again.",
    how: "The receiver lost messages where its own drops (sockets, queues of its CPUs, interface) make up at \
        least half of what is missing. So it did over loopback, where nothing else is. Then a figure without \
        --rate is a note. The path lost them otherwise. TCP segments that had arrived before (the receiver's \
        duplicate SACKs) do not count. A netem discipline that loses on purpose is named.",
    calm: "packet loss: at most traces",
    looked_at: "packet counters",
    source: file!(),
    check: loss,
};

const MIN_LOST: f64 = 0.001;
const MIN_OVERTAKEN: f64 = 0.001;
const MIN_RESENT: f64 = 0.002;
/// The receiver's own drops explain the loss from here on.
const MIN_EXPLAINED: f64 = 0.5;

fn loss(evidence: &Evidence) -> Option<Vec<Finding>> {
    let udp: Vec<Transfer> = transfers(evidence, ids::UDP)
        .into_iter()
        .filter(|udp| udp.median_of(ids::metric::LOSS).is_some())
        .collect();
    let tcp: Vec<Transfer> = transfers(evidence, ids::TCP)
        .into_iter()
        .filter(|tcp| tcp.median_of(ids::metric::RETRANSMITS).is_some() && !over_loopback(tcp.case()))
        .collect();
    if udp.is_empty() && tcp.is_empty() {
        return None;
    }
    let mut findings: Vec<Finding> = udp.iter().filter_map(|udp| of_udp(evidence, udp)).collect();
    findings.extend(tcp.iter().filter_map(|tcp| of_tcp(evidence, tcp)));
    Some(findings)
}

fn of_udp(evidence: &Evidence, udp: &Transfer) -> Option<Finding> {
    let lost = udp.median_of(ids::metric::LOSS)?.clamp(0.0, 1.0);
    let overtaken = udp.median_of(ids::metric::REORDERED).unwrap_or(0.0);
    if lost < MIN_LOST && overtaken < MIN_OVERTAKEN {
        return None;
    }
    let sent = udp
        .median_of(ids::metric::SENT)
        .unwrap_or_else(|| udp.rate().unwrap_or(0.0) / (1.0 - lost).max(1e-9));
    let missing = missing_messages(udp, lost * sent);
    let [_, receiver] = at_ends(udp.case(), transfers::DROPS);
    let dropped = udp.median_of(receiver);
    let counted = dropped.is_some_and(|dropped| missing > 0.0 && dropped >= MIN_EXPLAINED * missing);
    let reordered = udp.fact("overtaken by a later one", ids::metric::REORDERED, percent);
    let (draft, advice) = if lost < MIN_LOST {
        (
            Finding::note(LOSS.id, format!("{} of the UDP messages came out of order", percent(overtaken)))
                .cause("They took different paths: several queues, links or CPUs of the receiver."),
            "Look at bonding, at multipath routes and at RPS; programs over UDP must handle it.",
        )
    } else if counted || over_loopback(udp.case()) {
        // Over loopback there is no path that could lose anything.
        at_receiver(udp, lost, counted)
    } else {
        let lost = percent(lost);
        let headline = format!("The path lost {lost} of the UDP messages. The receiver dropped almost none.");
        (
            Finding::warning(LOSS.id, headline)
                .cause("An interface's queue, a switch, a shaper or the cable dropped them."),
            "Measure at half the rate (`--rate`): loss that stays is a cable's or a hop's. See `ethtool -S` \
             and `tc -s qdisc`.",
        )
    };
    Some(
        draft
            .fact("sent", figure(sent, "Gbit/s"), udp.key_of(ids::metric::SENT))
            .fact("never arrived", percent(lost), udp.key_of(ids::metric::LOSS))
            .facts(udp.rate_fact("arrived"))
            .facts(udp.fact("dropped at the receiver", receiver, |dropped| {
                format!("{} of {} missing", figure(dropped, "1/s"), figure(missing, "1/s"))
            }))
            .facts(reordered.filter(|_| overtaken >= MIN_OVERTAKEN))
            .facts(on_purpose(evidence))
            .confirm(format!("{} --rate {:.0}", udp.again(), (500.0 * sent).max(1.0)))
            .advice(advice)
            .explains([udp.key()]),
    )
}

/// Messages per second that did not arrive, by the bandwidth that did not, Gbit/s.
fn missing_messages(udp: &Transfer, lost_gbits: f64) -> f64 {
    let bytes = udp.judged.series.number(ids::param::BYTES).unwrap_or(1472.0);
    lost_gbits * 1e9 / 8.0 / bytes.max(1.0)
}

/// Messages that the receiver dropped, by its own count or because nothing else can have.
fn at_receiver(udp: &Transfer, lost: f64, counted: bool) -> (FindingDraft, &'static str) {
    let is_paced = udp.case().params.contains_key(ids::param::RATE);
    let severity = if is_paced { Severity::Warning } else { Severity::Note };
    let headline =
        format!("The receiver dropped {} of the UDP messages. It is slower than the sender.", percent(lost));
    let cause = if counted {
        "The receiver's socket buffer or its CPU's queue was full."
    } else {
        "Over loopback only the receiver's buffer or its CPU's queue can be full."
    };
    (
        Finding::of(LOSS.id, severity, headline).cause(cause),
        "Pace the sender (`--rate`), or give the receiver more buffer (net.core.rmem_max), CPU and queues.",
    )
}

fn of_tcp(evidence: &Evidence, tcp: &Transfer) -> Option<Finding> {
    // What the receiver had already was late or overtaken, not lost.
    let duplicates = tcp.median_of(ids::metric::DUPLICATES).unwrap_or(0.0);
    let (again_rate, rate) = ((tcp.median_of(ids::metric::RETRANSMITS)? - duplicates).max(0.0), tcp.rate()?);
    let mtu = path(evidence).and_then(|path| path.local.path_mtu.or(path.local.mtu)).unwrap_or(1500);
    let segment = 8.0 * (f64::from(mtu.max(200)) - 52.0);
    let share = (again_rate * segment / (rate * 1e9)).clamp(0.0, 1.0);
    if share <= MIN_RESENT {
        return None;
    }
    let headline = format!("TCP sent {} of its segments again. The path loses packets.", percent(share));
    Some(
        Finding::warning(LOSS.id, headline)
            .cause("A queue on the path overflows (a shaper's, a switch's), or a link is bad.")
            .fact("segments sent again", figure(again_rate, "1/s"), tcp.key_of(ids::metric::RETRANSMITS))
            .fact("share of all segments", percent(share), tcp.key_of(ids::metric::RETRANSMITS))
            .fact("bandwidth", figure(rate, "Gbit/s"), tcp.key())
            .facts(tcp.fact("congestion window, segments", ids::metric::CWND, |cwnd| figure(cwnd, "")))
            .facts(on_purpose(evidence))
            .confirm(tcp.again())
            .advice("See network.bottleneck, and `ethtool -S` and `tc -s qdisc` for drops.")
            .explains([tcp.key()]),
    )
}

/// Queueing disciplines that lose packets on purpose.
fn on_purpose(evidence: &Evidence) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (words, end, source) in path(evidence).into_iter().flat_map(described_ends) {
        facts.extend(end.qdiscs.iter().filter_map(|qdisc| {
            let label = format!("{} of {words} loses on purpose", qdisc.kind);
            Some(Fact::new(label, percent(qdisc.loss?), source))
        }));
    }
    facts
}
