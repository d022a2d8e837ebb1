//! What both ends may report, and what they may not.

use super::*;
use model::Entry;

const TOLD: &str = "to 10.1.0.2\naddress 10.1.0.1\ninterface ens1f0\ndriver ice\ntso on\ngso on\ngro off\nlro off\n\
    rx_checksum on\ntx_checksum on\nqdisc mq\nqdisc tbf rate_bits=1000000000\nqdisc netem delay_us=20000 loss=0.02\n\
    mtu 9000\nspeed_mbps 25000\nduplex full\ntype 1\nvirtual no\nnuma_node 1\nirqs 2\n\
    irq 41 ens1f0-TxRx-0 cpus=0 counts=0:16228,1:7\nirq 42 ens1f0-admin cpus=0-3 counts=\nrx_queues 2\ntx_queues 2\n\
    rps rx-0 0\nrps rx-1 00000000,0000000c\npath_mtu 1500\ncongestion bbr\ncongestion_available reno cubic bbr\n\
    tcp_rmem 4096 131072 6291456\nrmem_max 212992\nkernel 6.1.0\nboot abc\ncpus 0-3\ncpu_model A CPU\n";

fn of(local: &str, remote: Option<&str>) -> Option<NetworkPath> {
    let mut snapshot = Snapshot::default();
    snapshot.entries.insert(ids::probe::NETWORK.into(), Entry::Text(local.into()));
    let remote = remote.map(|text| (ids::probe::NETWORK_REMOTE.to_string(), Entry::Text(text.into())));
    snapshot.entries.extend(remote);
    parse(&snapshot)
}

#[test]
fn an_end_as_it_tells_itself() {
    let path = of(TOLD, None).expect("told");
    let end = &path.local;
    assert_eq!((end.mtu, end.path_mtu, end.numa_node), (Some(9000), Some(1500), Some(1)));
    assert_eq!((end.link_gbits(), end.shaped_gbits(4.0)), (Some(25.0), Some((1.0, "tbf"))));
    assert_eq!((end.offload("gro"), end.offload("tso"), end.offload("ufo")), (Some(false), Some(true), None));
    assert_eq!(
        end.qdiscs[2],
        Qdisc { kind: "netem".into(), delay_us: Some(20000.0), loss: Some(0.02), ..Qdisc::default() }
    );
    let names: Vec<&str> = end.packet_irqs().iter().map(|irq| irq.name.as_str()).collect();
    assert_eq!(names, ["ens1f0-TxRx-0"]);
    assert_eq!(end.irqs[0].counts, BTreeMap::from([(0, 16228), (1, 7)]));
    assert_eq!(end.rps_cpus.to_string(), "2-3");
    assert!(end.seats.is_empty());
    let server = of(TOLD, Some("interface lo\nseats 3,1,x,0\n")).and_then(|path| path.remote);
    assert_eq!(server.expect("told").seats, [3, 1, 0]);
    assert_eq!(end.tcp_rmem, [4096, 131072, 6291456]);
    assert_eq!(path.link_gbits(), Some((25.0, "this end")));
    assert!(path.remote.is_none() && !path.one_machine());
}

#[test]
fn the_slower_end_counts_and_inventions_do_not() {
    let slower = TOLD.replace("speed_mbps 25000", "speed_mbps 10000").replace("boot abc", "boot def");
    let path = of(TOLD, Some(&slower)).expect("told");
    assert_eq!(path.link_gbits(), Some((10.0, "the other end")));
    assert!(!path.one_machine());
    let veth = TOLD.replace("driver ice", "driver veth\nkind veth").replace("virtual no", "virtual yes");
    let path = of(&veth, Some(&veth)).expect("told");
    assert_eq!(path.link_gbits(), None, "veth says 10 Gbit/s whatever it carries");
    assert!(path.one_machine(), "two namespaces of one kernel");
    let guest = TOLD.replace("driver ice", "driver virtio_net");
    assert_eq!(of(&guest, None).and_then(|path| path.link_gbits()), None);
    let loopback = "interface lo\ntype 772\nvirtual yes\nmtu 65536\n";
    assert!(of(loopback, None).is_some_and(|path| path.one_machine() && path.local.loopback));
}

#[test]
fn whose_packets_are_shaped_and_who_handles_them() {
    let fq = TOLD.replace("boot abc", "boot def") + "qdisc fq rate_bits=500000000\n";
    let path = of(TOLD, Some(&fq)).expect("told");
    let senders = |direction: &str| path.senders(direction).map(|(words, _)| words).collect::<Vec<_>>();
    assert_eq!(senders("send"), ["this end"]);
    assert_eq!(senders("receive"), ["the other end"]);
    assert_eq!(senders("both").len(), 2);
    let remote = path.remote.as_ref().expect("told");
    assert_eq!(remote.shaped_gbits(1.0), Some((0.5, "fq")));
    assert_eq!(remote.shaped_gbits(4.0), Some((1.0, "tbf")), "fq's rate is one for each stream");
    assert_eq!((path.least_mtu(), remote.round_trip_us), (Some(1500), None));
    let irqs =
        "interface e\nirq 7 e-rx-0 cpus=0-3 counts=2:9,5:1\nirq 8 e-rx-1 cpus=1 counts=\nrps rx-0 80\n";
    let end = end(&format!("{irqs}round_trip_us 80123\n")).expect("told");
    assert_eq!(end.packet_cpus().to_string(), "1-2,7", "of those that may, the ones that did");
    assert_eq!(end.round_trip_us, Some(80_123.0));
    assert_eq!(super::end("round_trip_us inf\n").and_then(|end| end.round_trip_us), None);
}

#[test]
fn what_is_not_told_is_not_known() {
    assert_eq!(of("", None), None);
    assert_eq!(of("nothing\n", None), None);
    let odd = "mtu many\nspeed_mbps -1\nirq\nirq x y\nqdisc \nrps\ntype 1\nspeed_mbps 1e300\nqdisc tbf rate_bits=NaN\n";
    let path = of(odd, Some("kernel_only\n")).expect("a line is enough");
    assert_eq!((path.local.mtu, path.local.speed_mbps, path.remote), (None, None, None));
    assert!(path.local.irqs.is_empty() && path.local.shaped_gbits(1.0).is_none());
}

#[test]
fn any_text_is_read_or_left() {
    let words = [
        "irq",
        "1",
        "cpus=0-3",
        "counts=0:1",
        "qdisc",
        "tbf",
        "rate_bits=",
        "rps",
        "ffffffff",
        " ",
        "\n",
        "mtu",
        "ü",
    ];
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..3000 {
        let text: String = (0..random.usize(..40))
            .map(|_| {
                format!("{}{}", words[random.usize(..words.len())], if random.bool() { " " } else { "\n" })
            })
            .collect();
        if let Some(path) = of(&text, Some(&text)) {
            let _ = (path.one_machine(), path.link_gbits(), path.local.packet_irqs().len());
        }
    }
}

#[test]
fn interfaces_of_a_machine() {
    let mut snapshot = Snapshot::default();
    for (file, text) in [
        ("eth0/mtu", "1400"),
        ("eth0/operstate", "up"),
        ("eth0/speed", "-1"),
        ("eth1/mtu", "9000"),
        ("eth1/speed", "25000"),
        ("eth1/device/numa_node", "-1"),
    ] {
        snapshot.entries.insert(format!("/sys/class/net/{file}"), Entry::Text(text.into()));
    }
    let found = interfaces(&snapshot);
    let words: Vec<(&str, Option<u32>, Option<f64>)> =
        found.iter().map(|one| (one.name.as_str(), one.mtu, one.speed_mbps)).collect();
    assert_eq!(words, [("eth0", Some(1400), None), ("eth1", Some(9000), Some(25000.0))]);
    assert_eq!((found[0].state.as_deref(), found[1].numa_node), (Some("up"), None));
}
