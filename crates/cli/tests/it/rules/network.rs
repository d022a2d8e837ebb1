//! Networks: transfers and experiments whose figures are given, between ends with given properties,
//! and what must be found in them.

use serde_json::{Value, json};

use super::edited::Edit;
use super::{Case, case};
use crate::runs::{findings, series};

/// The report of one end about itself: a card of 10 Gbit/s with two queues, everything on.
const CARD: &str = "to 10.1.0.2\naddress 10.1.0.1\ninterface ens1\ndriver ice\ntso on\ngso on\ngro on\nlro off\n\
    rx_checksum on\ntx_checksum on\nqdisc fq_codel\nmtu 1500\nspeed_mbps 10000\ntype 1\nvirtual no\n\
    irq 41 ens1-TxRx-0 cpus=0 counts=0:5000\nirq 42 ens1-TxRx-1 cpus=1 counts=1:4000\nrx_queues 2\ntx_queues 2\n\
    path_mtu 1500\ntcp_rmem 4096 131072 6291456\ntcp_wmem 4096 16384 4194304\nkernel 6.1.0\nboot here\ncpus 0-3\n";

fn there(card: &str) -> String {
    card.replace("boot here", "boot there")
}

/// A figure: the point where it was measured, its metric, its value.
type Row = (Value, &'static str, f64);

/// A run of ten visits to one network case, whose every figure scatters by half a percent.
struct Net {
    bench: &'static str,
    params: Value,
    rows: Vec<Row>,
    local: String,
    remote: Option<String>,
    apart: bool,
}

impl Net {
    /// Between two hosts with such cards.
    fn of(bench: &'static str, rows: Vec<Row>) -> Net {
        let params = json!({"direction": "send"});
        Net { bench, params, rows, local: CARD.into(), remote: Some(there(CARD)), apart: true }
    }

    /// The same with a change to both ends' text.
    fn on(mut self, from: &str, to: &str) -> Net {
        assert!(self.local.contains(from), "{from}");
        self.local = self.local.replace(from, to);
        self.remote = self.remote.map(|remote| remote.replace(from, to));
        self
    }

    fn here(mut self, from: &str, to: &str) -> Net {
        assert!(self.local.contains(from), "{from}");
        self.local = self.local.replace(from, to);
        self
    }

    /// Without another host.
    fn alone(mut self) -> Net {
        (self.apart, self.remote) = (false, None);
        self
    }

    fn diagnosed(&self) -> Value {
        let mut run = Edit::invented("selftest.steady");
        run.repeated(10, 0.0, |_| 1.0);
        let mut names: Vec<&str> = self.rows.iter().map(|(_, metric, _)| *metric).collect();
        names.sort_unstable();
        names.dedup();
        let metrics = names.iter().map(|name| {
            let (unit, form) = match *name {
                "bandwidth" => ("Gbit/s", json!({"work-per-time": {"scale": 8.0}})),
                _ => ("", json!("value")),
            };
            json!({"name": name, "title": name, "unit": unit, "better": "neither", "form": form, "headline": *name == "bandwidth"})
        });
        let metrics: Vec<Value> = metrics.collect();
        let header = run.header();
        let case = &mut header["plan"][0]["case"];
        (case["bench"], case["params"]) = (json!(self.bench), self.params.clone());
        if self.apart {
            case["inputs"] = json!({"to": "10.1.0.2:7777"});
        }
        let title = &mut header["catalogue"][0];
        (title["id"], title["metrics"]) = (json!(self.bench), json!(metrics));
        header["snapshot"]["probe:network"] = json!(self.local);
        if let Some(remote) = &self.remote {
            header["snapshot"]["probe:network-remote"] = json!(remote);
        }
        run.each(|visit, line| {
            let samples = self.rows.iter().enumerate().map(|(row, (point, metric, value))| {
                // Each in its own order, none twice the same.
                let shift = 1.0 + 0.0025 * (((visit * 7 + row * 3) % 5) as f64 - 2.0);
                let work = match *metric {
                    "bandwidth" => value * shift * 2e6 / 8.0,
                    _ => value * shift,
                };
                json!({"point": point, "metrics": [metric], "warm_up": 0, "work": [work], "ns": [2e6]})
            });
            line["samples"] = samples.collect();
        });
        run.diagnosed()
    }

    fn case(&self, what: &str) -> Case {
        case(what, self.diagnosed())
    }
}

/// The arms of an experiment at 5 Gbit/s that nothing moves, with these ones instead.
fn arms(changed: &[(&str, f64)], beside: &[Row]) -> Vec<Row> {
    let usual = [
        ("plain", 5.0),
        ("slowed-sender", 5.0),
        ("slowed-receiver", 5.0),
        ("more-streams", 5.0),
        ("large-window", 5.0),
        ("small-window", 5.0),
        ("nine-tenths", 4.5),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for (arm, value) in usual {
        let found = changed.iter().find(|(name, _)| *name == arm);
        rows.push((json!({"arm": arm}), "bandwidth", found.map_or(value, |(_, value)| *value)));
    }
    rows.extend([
        (json!({"arm": "plain"}), "local_busy", 0.5),
        (json!({"arm": "plain"}), "remote_busy", 0.5),
    ]);
    rows.extend(beside.iter().cloned());
    rows
}

fn plain(metric: &'static str, value: f64) -> Row {
    (json!({"arm": "plain"}), metric, value)
}

fn experiment(changed: &[(&str, f64)], beside: &[Row]) -> Net {
    Net::of("network.bottleneck", arms(changed, beside))
}

/// What the rule's finding says the limit is.
fn limit(results: &Value) -> String {
    let found = findings(results, "network-bottleneck");
    let facts = found.first().and_then(|finding| finding["facts"].as_array()).cloned().unwrap_or_default();
    let fact = facts.iter().find(|fact| fact["label"] == "limit").cloned().unwrap_or_default();
    fact["value"].as_str().unwrap_or("none").to_string()
}

fn shaped() -> Net {
    let udp = json!({"arm": "udp-over"});
    experiment(&[], &[(udp.clone(), "bandwidth", 5.02), (udp.clone(), "sent", 6.0), (udp, "loss", 0.16)])
}

pub fn limits_of_all_kinds() -> Vec<Case> {
    let cases = [
        ("sender-cpu", experiment(&[("slowed-sender", 3.5)], &[])),
        ("receiver-cpu", experiment(&[("slowed-receiver", 3.5)], &[])),
        ("both-cpus", experiment(&[("slowed-receiver", 3.6), ("slowed-sender", 3.6)], &[])),
        ("receiver-starved", experiment(&[("slowed-receiver", 3.5)], &[plain("remote_throttled", 0.6)])),
        ("sender-starved", experiment(&[("slowed-sender", 3.5)], &[plain("local_wait", 0.5)])),
        ("window", experiment(&[("large-window", 9.0), ("more-streams", 9.0)], &[])),
        ("loss", experiment(&[("more-streams", 9.0)], &[plain("retransmits", 9000.0)])),
        ("one-stream", experiment(&[("more-streams", 9.0)], &[plain("growth", 1.02)])),
        ("shaper", shaped()),
        ("link", filled()),
        ("not-separable", experiment(&[], &[])),
    ];
    let rising = still_rising();
    assert_eq!(limit(&rising), "not-separable", "one that still rises shows no limit of its own");
    let found = findings(&rising, "network-bottleneck")[0].to_string();
    assert!(found.contains("--budget 4m"), "a visit takes 46 s over 80 ms: {found}");
    assert!(found.contains("still rose") && found.contains("the path has room for it"), "{found}");
    let found = experiment(&[("slowed-sender", 3.5)], &[]).diagnosed();
    let advice = &findings(&found, "network-bottleneck")[0]["advice"];
    assert!(advice.as_str().is_some_and(|text| text.contains("--streams")), "{advice}");
    let received = experiment(&[("slowed-sender", 3.5)], &[plain("remote_wait", 0.5)]);
    let received = Net { params: json!({"direction": "receive"}), ..received };
    assert_eq!(limit(&received.diagnosed()), "sender-starved", "the other end sends");
    let judged = cases.map(|(word, net)| {
        let case = net.case(word);
        assert_eq!(limit(&case.results), word);
        case
    });
    judged.into()
}

/// A long way on which one connection was still in its start when it was counted.
fn still_rising() -> Value {
    let udp = json!({"arm": "udp-over"});
    let beside = [
        plain("growth", 1.6),
        (udp.clone(), "bandwidth", 5.9),
        (udp.clone(), "sent", 5.9),
        (udp, "loss", 0.0),
    ];
    let net = experiment(&[("more-streams", 9.0)], &beside);
    let remote = net.remote.as_deref().map(|remote| format!("{remote}round_trip_us 80000\n"));
    Net { remote, ..net }.diagnosed()
}

/// 94 % of 10 Gbit/s, headers take the rest.
fn filled() -> Net {
    let full = [
        ("plain", 9.41),
        ("slowed-sender", 9.41),
        ("slowed-receiver", 9.40),
        ("more-streams", 9.41),
        ("large-window", 9.41),
        ("small-window", 9.3),
    ];
    experiment(&full, &[])
}

pub fn cpus_over_loopback() -> Vec<Case> {
    vec![
        experiment(&[("slowed-receiver", 3.5)], &[]).alone().case("the receiver's"),
        experiment(&[("slowed-receiver", 3.6), ("slowed-sender", 3.6)], &[]).alone().case("both on one CPU"),
    ]
}

pub fn rates_that_are_enforced() -> Vec<Case> {
    let tbf = tcp(&[("bandwidth", 0.957)]).here("qdisc fq_codel", "qdisc tbf rate_bits=1000000000");
    let case = tbf.case("tbf at this end");
    let found = findings(&case.results, "network-shaper")[0];
    assert!(found["headline"].as_str().is_some_and(|text| text.contains("discipline tbf on ")), "{found:#}");
    let both = Net { params: json!({"direction": "both"}), ..tcp(&[("bandwidth", 1.914)]) };
    vec![
        shaped().case("UDP above the rate is lost"),
        case,
        both.here(CODEL, TBF).case("one way's rate, both ways at once"),
        four(3.83).here(CODEL, "qdisc fq rate_bits=1000000000").case("four streams, each at fq's rate"),
    ]
}

const CODEL: &str = "qdisc fq_codel";
const TBF: &str = "qdisc tbf rate_bits=1000000000";

/// Four streams that carry this together.
fn four(bandwidth: f64) -> Net {
    Net::of("network.tcp", vec![(json!({"streams": 4, "bytes": 131072}), "bandwidth", bandwidth)])
}

pub fn rates_that_nobody_enforces() -> Vec<Case> {
    vec![
        experiment(&[("slowed-sender", 3.5)], &[]).case("a CPU"),
        tcp(&[("bandwidth", 0.5)])
            .on("qdisc fq_codel", "qdisc tbf rate_bits=1000000000")
            .case("far below the shaper"),
        Net { params: json!({"direction": "receive"}), ..tcp(&[("bandwidth", 0.957)]) }
            .here(CODEL, TBF)
            .case("it shapes the other direction"),
        four(0.957).here(CODEL, "qdisc fq rate_bits=1000000000").case("fq's rate is each stream's"),
        receiver_shapes().case("the receiver's discipline shapes what it sends"),
    ]
}

/// Nothing moves the experiment, and the receiving end's own discipline has just that rate.
fn receiver_shapes() -> Net {
    let remote = there(CARD).replace(CODEL, "qdisc tbf rate_bits=5228000000");
    let net = Net { remote: Some(remote), ..experiment(&[], &[]) };
    assert_eq!(limit(&net.diagnosed()), "not-separable");
    net
}

/// One stream of messages of 128 KiB.
fn tcp(metrics: &[(&'static str, f64)]) -> Net {
    let point = json!({"streams": 1, "bytes": 131072});
    Net::of("network.tcp", metrics.iter().map(|(name, value)| (point.clone(), *name, *value)).collect())
}

fn long_way(limited: f64, busy: f64, buffer: f64) -> Net {
    // 100 ms at 0.5 Gbit/s: 6.25 MB on the way.
    tcp(&[
        ("bandwidth", 0.5),
        ("rtt", 100_000.0),
        ("rwnd_limited", limited),
        ("local_busy", 0.1),
        ("remote_busy", busy),
        ("send_buffer", 4_194_304.0),
        ("receive_buffer", buffer),
    ])
}

pub fn windows_that_hold_back() -> Vec<Case> {
    let larger = experiment(&[("large-window", 15.0), ("more-streams", 15.0)], &[]);
    vec![
        larger.on("speed_mbps 10000", "speed_mbps 25000").case("larger buffers carry more"),
        long_way(0.9, 0.2, 12_582_912.0).case("a long way"),
    ]
}

pub fn windows_that_do_not() -> Vec<Case> {
    vec![
        long_way(0.1, 0.2, 12_582_912.0).case("the window is open"),
        long_way(0.9, 0.99, 12_582_912.0).case("a receiver without time closes its window"),
        long_way(0.9, 0.2, 100e6).case("buffers for much more"),
        // Half of it each way: 3.1 MB are on the way, and half of the buffer is 6.3.
        Net { params: json!({"direction": "both"}), ..long_way(0.9, 0.2, 12_582_912.0) }
            .case("buffers for what goes each way"),
        experiment(&[("slowed-sender", 3.5)], &[]).case("a CPU"),
    ]
}

pub fn figures_of_a_cpu() -> Vec<Case> {
    vec![
        tcp(&[("bandwidth", 4.0), ("local_busy", 0.5), ("remote_busy", 0.98)]).case("a full receiver"),
        tcp(&[("bandwidth", 4.0), ("local_busy", 0.5), ("remote_busy", 0.4), ("remote_softirq", 0.97)])
            .case("a CPU full of interrupts"),
        tcp(&[("bandwidth", 4.0), ("local_busy", 0.99)])
            .on("driver ice", "driver virtio_net")
            .case("no speed is told"),
        Net { params: json!({"direction": "both"}), ..tcp(&[("bandwidth", 9.4), ("local_busy", 0.99)]) }
            .case("half of the link each way"),
    ]
}

pub fn figures_of_a_link() -> Vec<Case> {
    vec![
        tcp(&[("bandwidth", 9.4), ("local_busy", 0.99), ("remote_busy", 0.6)])
            .case("full, and so is the link"),
        Net { params: json!({"direction": "both"}), ..tcp(&[("bandwidth", 18.8), ("local_busy", 0.99)]) }
            .case("full, and so is the link each way"),
        tcp(&[("bandwidth", 4.0), ("local_busy", 0.5), ("remote_busy", 0.6)]).case("time left"),
    ]
}

fn streams(several: f64) -> Net {
    let point = |streams: u64| json!({"streams": streams, "bytes": 131072});
    Net::of("network.tcp", vec![(point(1), "bandwidth", 4.0), (point(4), "bandwidth", several)])
}

pub fn several_streams_that_carry_more() -> Vec<Case> {
    let case = streams(9.3).case("four carry twice as much");
    let found = findings(&case.results, "network-one-stream")[0];
    assert!(found["series"][0].as_str().is_some_and(|key| key.contains("streams=1")), "{found:#}");
    vec![case]
}

pub fn streams_that_carry_the_same() -> Vec<Case> {
    vec![streams(4.1).case("four as much as one"), streams(3.0).case("four less than one")]
}

fn udp(metrics: &[(&'static str, f64)]) -> Net {
    let point = json!({"streams": 1, "bytes": 1472});
    Net::of("network.udp", metrics.iter().map(|(name, value)| (point.clone(), *name, *value)).collect())
}

pub fn messages_that_never_arrived() -> Vec<Case> {
    // 5 Gbit/s are 424,592 messages a second; a tenth is missing.
    let at_receiver = [("bandwidth", 4.5), ("sent", 5.0), ("loss", 0.1), ("remote_drops", 42_000.0)];
    let at_receiver = udp(&at_receiver).case("a receiver that cannot keep up");
    let found = findings(&at_receiver.results, "network-loss")[0];
    assert_eq!(found["severity"], "note", "{found:#}");
    assert!(found.to_string().contains("dropped at the receiver"), "{found:#}");
    let on_the_way = udp(&[("bandwidth", 0.98), ("sent", 1.0), ("loss", 0.02), ("remote_drops", 3.0)]);
    let on_the_way = on_the_way.here("qdisc fq_codel", "qdisc netem loss=0.02").case("a hop that loses");
    let found = findings(&on_the_way.results, "network-loss")[0];
    assert_eq!(found["severity"], "warning", "{found:#}");
    assert!(found.to_string().contains("loses on purpose"), "{found:#}");
    // A kernel that counts buffers, each of which held 44 messages, and nothing else is there.
    let loopback = udp(&[("bandwidth", 4.5), ("sent", 5.0), ("loss", 0.1), ("remote_drops", 960.0)]);
    let loopback = loopback.alone().case("over loopback");
    let found = findings(&loopback.results, "network-loss")[0];
    assert_eq!(found["severity"], "note", "{found:#}");
    assert!(found.to_string().contains("dropped at the receiver"), "{found:#}");
    assert!(!found.to_string().contains("on the way"), "{found:#}");
    vec![
        at_receiver,
        on_the_way,
        loopback,
        udp(&[("bandwidth", 5.0), ("sent", 5.0), ("loss", 0.0), ("reordered", 0.01)]).case("overtaken"),
        tcp(&[("bandwidth", 1.0), ("retransmits", 1700.0)]).case("segments sent again"),
    ]
}

pub fn messages_that_arrived() -> Vec<Case> {
    vec![
        udp(&[("bandwidth", 5.0), ("sent", 5.0), ("loss", 0.0001), ("reordered", 0.0)])
            .case("one in ten thousand"),
        tcp(&[("bandwidth", 1.0), ("retransmits", 10.0)]).case("a few segments sent again"),
        tcp(&[("bandwidth", 1.0), ("retransmits", 1700.0), ("duplicates", 1650.0)])
            .case("segments overtaken"),
    ]
}

pub fn offloads_that_are_off() -> Vec<Case> {
    vec![
        tcp(&[("bandwidth", 4.0)]).on("tso on", "tso off").case("on a fast link"),
        tcp(&[("bandwidth", 0.9), ("local_busy", 0.95)])
            .on("speed_mbps 10000", "speed_mbps 1000")
            .here("gro on", "gro off")
            .case("with a full CPU"),
    ]
}

pub fn offloads_that_are_on() -> Vec<Case> {
    let slow = tcp(&[("bandwidth", 0.9), ("local_busy", 0.2)]).on("speed_mbps 10000", "speed_mbps 1000");
    let veth = tcp(&[("bandwidth", 20.0), ("local_busy", 0.99)]).on("driver ice", "driver veth");
    vec![
        tcp(&[("bandwidth", 9.0), ("local_busy", 0.95)]).case("on"),
        slow.on("tso on", "tso off").case("off, on a slow link with time left"),
        veth.on("gro on", "gro off").case("veth"),
    ]
}

pub fn interrupts_on_one_cpu() -> Vec<Case> {
    let single = "rx_queues 1";
    let busy = [("bandwidth", 9.0), ("local_softirq", 0.8)];
    vec![
        tcp(&[("bandwidth", 9.0)]).here("TxRx-1 cpus=1", "TxRx-1 cpus=0").case("two on one"),
        tcp(&busy)
            .here("rx_queues 2", single)
            .here("irq 42 ens1-TxRx-1 cpus=1 counts=1:4000\n", "")
            .case("one queue"),
    ]
}

pub fn interrupts_on_several() -> Vec<Case> {
    let by_hand = "tx_queues 2\nrps rx-0 f\n";
    vec![
        tcp(&[("bandwidth", 9.0)]).case("one each"),
        tcp(&[("bandwidth", 9.0)])
            .on("TxRx-1 cpus=1", "TxRx-1 cpus=0")
            .on("tx_queues 2\n", by_hand)
            .case("handed on by software"),
    ]
}

pub fn paths_of_another_size() -> Vec<Case> {
    let mut jumbo = tcp(&[("bandwidth", 9.0)]).here("mtu 1500\nspeed", "mtu 9000\nspeed");
    jumbo = jumbo.here("path_mtu 1500", "path_mtu 9000");
    let case = jumbo.case("jumbo at one end");
    let found = findings(&case.results, "network-path-mtu")[0];
    assert!(found["headline"].as_str().is_some_and(|text| text.contains("9000")), "{found:#}");
    vec![case, tcp(&[("bandwidth", 9.0)]).on("path_mtu 1500", "path_mtu 1400").case("a tunnel in between")]
}

pub fn paths_of_one_size() -> Vec<Case> {
    vec![tcp(&[("bandwidth", 9.0)]).case("1500 everywhere")]
}

pub fn networks_that_are_none() -> Vec<Case> {
    let namespaces = tcp(&[("bandwidth", 9.0)]);
    let remote = Some(namespaces.local.clone());
    vec![
        tcp(&[("bandwidth", 30.0)]).alone().case("loopback"),
        Net { remote, ..namespaces }.case("two namespaces of one kernel"),
    ]
}

pub fn networks_between_machines() -> Vec<Case> {
    vec![tcp(&[("bandwidth", 9.0)]).case("two machines")]
}

#[test]
fn nothing_is_faster_than_its_link() {
    let above = |net: Net| findings(&net.diagnosed(), "above-ceiling").len();
    let fast = tcp(&[("bandwidth", 11.0)]).diagnosed();
    assert_eq!(findings(&fast, "above-ceiling").len(), 1);
    assert_eq!(series(&fast, "network.tcp")["verdict"], "rejected");
    assert_eq!(above(tcp(&[("bandwidth", 9.4)])), 0);
    let both = Net { params: json!({"direction": "both"}), ..tcp(&[("bandwidth", 18.0)]) };
    assert_eq!(above(both), 0, "each direction has all of the link");
    assert_eq!(above(tcp(&[("bandwidth", 30.0)]).alone()), 0, "loopback has no link");
    assert_eq!(
        above(tcp(&[("bandwidth", 30.0)]).on("driver ice", "driver veth")),
        0,
        "veth invents its speed"
    );
}

#[test]
fn too_few_rounds_conclude_nothing() {
    let mut few = experiment(&[("slowed-sender", 3.5)], &[]);
    few.rows.retain(|(point, ..)| point["arm"] != "plain");
    let results = few.diagnosed();
    assert!(findings(&results, "network-bottleneck").is_empty());
    let clean = results["rules_clean"].as_array().expect("a list");
    assert!(!clean.contains(&"network-bottleneck".into()), "it could not look");
}
