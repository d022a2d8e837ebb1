//! The ends of a network path: offloads, interrupts, MTU, loopback.

use super::transfers::{BUSY, Ends, SOFTIRQ, Transfer, all, described_ends, is_network, over_loopback, path};
use crate::words::{figure, percent, shell};
use crate::{Evidence, Rule};
use machine::{End, NetworkPath};
use model::vocabulary::network as ids;
use model::{CpuSet, Fact, Finding, FindingDraft};

pub const OFFLOADS: Rule = Rule {
    id: ids::rule::NETWORK_OFFLOAD_OFF,
    title: "Segmentation offloads are off",
    topic: "offloads",
    meaning: "With TSO, GSO and GRO the kernel handles up to 64 KiB at once. Without them every packet of \
        1500 bytes passes through the whole stack. On fast links that alone makes a CPU the limit.",
    action: "Turn them on (ethtool -K IF tso on gso on gro on), unless captures or routers must see single \
        packets. See it: ethtool -k IF",
    when: "tso, gso, gro or a checksum offload is off at an end. That end's link has 10 Gbit/s or more, or \
        its tasks ran for more than 80 % of a transfer.",
    how: "gro of veth does not count: it is off by default, and veth gets whole segments anyway.",
    calm: "segmentation offloads on where needed",
    looked_at: "ethtool features",
    source: file!(),
    check: offloads,
};

const MIN_BUSY: f64 = 0.8;
const MIN_FAST_GBITS: f64 = 10.0;

/// The run's path, where it had a transfer over it.
fn used_path<'a>(evidence: &Evidence<'a>) -> Option<&'a NetworkPath> {
    let path = path(evidence)?;
    evidence.cases().any(|(_, planned)| is_network(&planned.case)).then_some(path)
}

/// The greatest share of a metric at an end, with its series' key.
fn greatest(evidence: &Evidence, [local, remote]: Ends, words: &str) -> Option<(f64, String)> {
    let metric = if words == "this end" { local } else { remote };
    let shares = all(evidence)
        .into_iter()
        .filter_map(|transfer| Some((transfer.median_of(metric)?, transfer.key_of(metric))));
    shares.max_by(|one, other| one.0.total_cmp(&other.0))
}

fn offloads(evidence: &Evidence) -> Option<Vec<Finding>> {
    let path = used_path(evidence)?;
    if path.ends().all(|(_, end)| end.offloads.is_empty()) {
        return None;
    }
    let mut findings = Vec::new();
    for (words, end, source) in described_ends(path) {
        let veth = end.kind.as_deref() == Some("veth") || end.driver.as_deref() == Some("veth");
        let off: Vec<&str> = ["tso", "gso", "gro", "rx_checksum", "tx_checksum"]
            .into_iter()
            .filter(|name| end.offload(name) == Some(false) && !(veth && *name == "gro"))
            .collect();
        let busy = greatest(evidence, BUSY, words);
        let fast = end.link_gbits().filter(|link| *link >= MIN_FAST_GBITS);
        let matters = fast.is_some() || busy.as_ref().is_some_and(|(share, _)| *share > MIN_BUSY);
        if off.is_empty() || !matters {
            continue;
        }
        let interface = end.interface.as_deref().unwrap_or("eth0");
        let headline = format!(
            "Offloads of {interface} at {words} are off: {}. Each packet costs CPU time.",
            off.iter().map(|name| name.replace('_', " ")).collect::<Vec<_>>().join(", ")
        );
        findings.push(
            Finding::warning(OFFLOADS.id, headline)
                .cause("Every packet goes through the stack by itself, which costs CPU time.")
                .facts(
                    off.iter()
                        .map(|name| Fact::new(format!("{name} of {interface}, {words}"), "off", source)),
                )
                .facts(
                    busy.map(|(share, key)| Fact::new(format!("tasks of {words} ran"), percent(share), key)),
                )
                .facts(fast.map(|link| Fact::new("link", figure(link, "Gbit/s"), source)))
                .confirm(format!("ethtool -k {}", shell(interface)))
                .advice(format!(
                    "Turn them on, unless captures or routers forbid it: `ethtool -K {} {}`.",
                    shell(interface),
                    off.iter().map(|name| format!("{} on", switch(name))).collect::<Vec<_>>().join(" ")
                )),
        );
    }
    Some(findings)
}

/// What ethtool calls it.
fn switch(name: &str) -> &str {
    match name {
        "rx_checksum" => "rx",
        "tx_checksum" => "tx",
        other => other,
    }
}

pub const IRQS: Rule = Rule {
    id: ids::rule::NETWORK_IRQS_ON_ONE_CPU,
    title: "One CPU takes all interrupts of a network card",
    topic: "interrupts",
    meaning: "All packets pass the CPU that takes the card's interrupts. If several queues share one CPU, \
        that CPU is the limit, and tasks that run on it are slow.",
    action: "Start irqbalance, or spread them by hand (/proc/irq/N/smp_affinity_list). With one queue use \
        RPS (/sys/class/net/IF/queues/rx-0/rps_cpus). See it: cat /proc/interrupts",
    when: "Two or more interrupts that carry packets go to one CPU. Or there is one receive queue, and \
        network interrupts took more than half of a CPU. With RPS to several CPUs neither counts.",
    how: "Only ends with several CPUs count. The half is of a CPU that handles the card's packets, or of the \
        tasks' own.",
    calm: "network interrupts on several CPUs",
    looked_at: "/proc/interrupts",
    source: file!(),
    check: irqs,
};

const MIN_SOFTIRQ: f64 = 0.5;

fn irqs(evidence: &Evidence) -> Option<Vec<Finding>> {
    let path = used_path(evidence)?;
    let known = |end: &End| !end.loopback && end.cpus.len() > 1 && !end.packet_irqs().is_empty();
    if !path.ends().any(|(_, end)| known(end)) {
        return None;
    }
    let mut findings = Vec::new();
    for (words, end, source) in described_ends(path).filter(|(_, end, _)| known(end)) {
        let carrying = end.packet_irqs();
        let cpus = CpuSet::union_of(carrying.iter().map(|irq| &irq.cpus));
        let softirq = greatest(evidence, SOFTIRQ, words);
        let loaded = softirq.as_ref().is_some_and(|(share, _)| *share > MIN_SOFTIRQ);
        let shared = carrying.len() > 1 && cpus.len() == 1;
        let single = end.rx_queues == Some(1) && loaded && cpus.len() <= 2;
        if end.rps_cpus.len() > 1 || !(shared || single) {
            continue;
        }
        let interface = end.interface.as_deref().unwrap_or("eth0");
        let headline = if shared {
            format!(
                "CPU {cpus} takes all {} interrupts of {interface} at {words}. Spread them.",
                carrying.len()
            )
        } else {
            format!("One queue of {interface} at {words} receives all packets, on CPU {cpus}. Use RPS.")
        };
        findings.push(
            Finding::warning(IRQS.id, headline)
                .cause("One CPU handles the packets of all connections, while the others are idle.")
                .facts(carrying.iter().take(8).map(|irq| {
                    let taken: u64 = irq.counts.values().fold(0, |sum, count| sum.saturating_add(*count));
                    let value = format!("CPU {}, {taken} taken since the start", irq.cpus);
                    Fact::new(format!("interrupt {} ({})", irq.number, irq.name), value, source)
                }))
                .facts(
                    softirq
                        .map(|(share, key)| Fact::new("the network's interrupts took", percent(share), key)),
                )
                .confirm(format!("grep -E 'CPU|{}' /proc/interrupts", shell(interface)))
                .advice("Start irqbalance or set smp_affinity_list; with one queue use RPS (rps_cpus)."),
        );
    }
    Some(findings)
}

pub const PATH_MTU: Rule = Rule {
    id: ids::rule::NETWORK_PATH_MTU,
    title: "The path carries smaller packets than its ends send",
    topic: "MTU",
    meaning: "A tunnel, a firewall or an old switch carries smaller packets than the interfaces send. \
        Packets shrink after an error message, or vanish where such messages are filtered. Jumbo frames at \
        one end alone cost and gain nothing.",
    action: "Give all interfaces and hops of the path the same MTU, or give the ends the path's MTU. See it: \
        tracepath -n HOST",
    when: "The kernel knows a path MTU below its interface's, or the interfaces of the ends have different \
        MTUs.",
    how: "",
    calm: "one MTU along the path",
    looked_at: "MTU of both ends",
    source: file!(),
    check: path_mtu,
};

fn path_mtu(evidence: &Evidence) -> Option<Vec<Finding>> {
    let path = used_path(evidence)?;
    if path.local.loopback {
        return None;
    }
    let described: Vec<(&str, &End, &str)> =
        described_ends(path).filter(|(_, end, _)| end.mtu.is_some()).collect();
    let comparable = described.len() > 1 || described.iter().any(|(_, end, _)| end.path_mtu.is_some());
    if !comparable {
        return None;
    }
    let finish = |draft: FindingDraft, end: &End| {
        draft
            .confirm(format!("tracepath -n {}", shell(end.to.as_deref().unwrap_or("ADDRESS"))))
            .advice("Give all interfaces and hops of the path one MTU.")
    };
    let name = |end: &End| end.interface.clone().unwrap_or_else(|| "the interface".to_string());
    let mut findings = Vec::new();
    for (words, end, source) in &described {
        let (Some(mtu), Some(known)) = (end.mtu, end.path_mtu) else { continue };
        if known >= mtu {
            continue;
        }
        let headline = format!(
            "The path carries packets of {known} bytes, {} at {words} sends {mtu}. Use one MTU.",
            name(end)
        );
        let draft = Finding::warning(PATH_MTU.id, headline)
            .cause("A hop in between carries less, because of a tunnel's headers or of its setting.")
            .fact(format!("MTU of {} at {words}", name(end)), mtu, *source)
            .fact("MTU of the path", known, *source);
        findings.push(finish(draft, end));
    }
    if let [(here, one, of_one), (there, other, of_other)] = described.as_slice()
        && let (Some(mine), Some(theirs)) = (one.mtu, other.mtu)
        && mine != theirs
    {
        let headline = format!(
            "Interface {} has an MTU of {mine}, {} at {there} one of {theirs}. Use one MTU.",
            name(one),
            name(other)
        );
        let draft = Finding::warning(PATH_MTU.id, headline)
            .cause("The smaller one decides: TCP agrees on it, larger UDP packets are fragmented or dropped.")
            .fact(format!("MTU of {} at {here}", name(one)), mine, *of_one)
            .fact(format!("MTU of {} at {there}", name(other)), theirs, *of_other);
        findings.push(finish(draft, one));
    }
    Some(findings)
}

pub const LOOPBACK: Rule = Rule {
    id: ids::rule::NETWORK_LOOPBACK,
    title: "No network card was tested",
    topic: "network",
    meaning: "Over loopback, and between containers of one host, the kernel only copies data. The figure is \
        that of its network stack, and CPUs are the only limit. It is never the speed of a card.",
    action: "Start assay serve on another host, and name that host with its token. See it: assay run --only \
        network --to HOST",
    when: "A note where network benchmarks ran without another host (--to), or where both ends have the same \
        boot id.",
    how: "",
    calm: "both ends are separate hosts",
    looked_at: "boot ids",
    source: file!(),
    check: loopback,
};

fn loopback(evidence: &Evidence) -> Option<Vec<Finding>> {
    let cases: Vec<(u32, bool)> = evidence
        .cases()
        .filter(|(_, planned)| is_network(&planned.case))
        .map(|(index, planned)| (index, over_loopback(&planned.case)))
        .collect();
    if cases.is_empty() {
        return None;
    }
    let one_machine = path(evidence).is_some_and(NetworkPath::one_machine);
    let own: Vec<u32> =
        cases.iter().filter(|(_, own)| *own || one_machine).map(|(index, _)| *index).collect();
    if own.is_empty() {
        // Without a description of the other end it may be this host.
        let described = path(evidence).is_some_and(|path| path.remote.is_some());
        return described.then(Vec::new);
    }
    let transfers: Vec<Transfer> = all(evidence);
    let rates = transfers.iter().filter(|transfer| own.contains(&(transfer.judged.series.planned as u32)));
    let (headline, cause) = if one_machine && !cases.iter().any(|(_, own)| *own) {
        (
            "Both ends are 1 host: its kernel and CPUs were tested, no network",
            "Both ends run the same kernel (namespaces or containers).",
        )
    } else {
        (
            "Network figures are those of loopback (127.0.0.1). No network card was tested.",
            "Without --to the other end is a process on this host.",
        )
    };
    let boot = path(evidence).and_then(|path| path.local.boot.as_ref()).filter(|_| one_machine);
    Some(vec![
        Finding::note(LOOPBACK.id, headline)
            .cause(cause)
            .facts(rates.take(4).filter_map(|transfer| transfer.rate_fact(&transfer.case().bench)))
            .facts(boot.map(|boot| Fact::new("boot id of both ends", boot, ids::probe::NETWORK)))
            .fact("network benchmarks on this host alone", own.len(), "plan")
            .confirm("assay serve --bind ADDRESS")
            .advice(
                "Start `assay serve` on another host, and add `--to ADDRESS` with the token that it shows.",
            ),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::transfers::{BUSY, at_ends, over_loopback, receives};
    use model::vocabulary::network as ids;
    use model::{Case, Params, Placement};

    #[test]
    fn who_sends_is_told_by_the_direction() {
        let case = |direction: &str| Case {
            params: Params::from([(ids::param::DIRECTION, direction.into())]),
            ..Case::new("network.tcp", Placement::named("one-cpu"))
        };
        assert_eq!(at_ends(&case("send"), BUSY), [ids::metric::LOCAL_BUSY, ids::metric::REMOTE_BUSY]);
        assert_eq!(at_ends(&case("receive"), BUSY), [ids::metric::REMOTE_BUSY, ids::metric::LOCAL_BUSY]);
        assert!(receives(&case("receive")) && !receives(&case("both")) && over_loopback(&case("send")));
    }
}
