//! The rows, rehearsed over loopback, and what they offer.

use super::offer::POINTS;
use super::*;
use crate::Scope;
use crate::placement::Placements;
use crate::rehearsal;
use machine::{End, Machine, NetworkPath};
use model::vocabulary::{MetricId, network as ids};
use model::{CpuSet, Form, Reason, Samples};

fn values(samples: &[Samples], metric: &str) -> Vec<f64> {
    let of = samples.iter().filter(|one| one.metrics.iter().any(|name| name == metric));
    of.flat_map(|one| one.values(Form::Value)).collect()
}

#[test]
fn every_row_measures_over_loopback() {
    for bench in BENCHMARKS.iter().filter(|bench| bench.id != ids::BOTTLENECK) {
        let samples = rehearsal::visit_row(bench.id);
        for share in [
            ids::metric::LOCAL_BUSY,
            ids::metric::REMOTE_BUSY,
            ids::metric::LOCAL_WAIT,
            ids::metric::REMOTE_WAIT,
        ] {
            let told = values(&samples, &share);
            assert!(told.iter().all(|value| (0.0..=1.05).contains(value)), "{}: {share} {told:?}", bench.id);
        }
    }
}

#[test]
fn the_experiment_has_every_arm_in_every_round() {
    let case = rehearsal::cases(ids::BOTTLENECK, Depth::Standard).into_iter().next().expect("a case");
    let samples = rehearsal::visit_all(&case);
    let arms = samples.iter().filter(|one| one.metrics == [ids::metric::BANDWIDTH]);
    for one in arms.clone() {
        assert_eq!(one.len(), offer::ROUNDS, "{:?}", one.point);
    }
    assert_eq!(arms.count(), ARMS.len());
    assert!(
        !values(&samples, &ids::metric::LATER).is_empty() && !values(&samples, &ids::metric::LOSS).is_empty()
    );
}

#[test]
fn several_streams_both_ways_and_paced() {
    let mut case = rehearsal::cases(ids::TCP, Depth::Quick).into_iter().next().expect("a case");
    case.inputs.insert(POINTS.into(), "3:5000".into());
    for direction in ["receive", "both"] {
        case.params.insert(ids::param::DIRECTION, direction);
        rehearsal::visit_all(&case);
    }
    case.params.insert(ids::param::RATE, 100u64);
    let samples = rehearsal::visit_all(&case);
    assert!(!values(&samples, &ids::metric::BANDWIDTH).is_empty());
}

#[test]
fn messages_lost_at_a_full_socket_are_counted_as_messages() {
    let case = rehearsal::cases(ids::UDP, Depth::Standard).into_iter().next().expect("a case");
    let mut peer = client::Peer::of(&case, None).expect("another end");
    // A receiver that has a tenth of its time, and a buffer of a few segmented ones.
    let schedule = window_schedule::WindowSchedule { window_ms: 100, warm_up: 1, count: 4 };
    let spec = messages::Transfer {
        bytes: 1472,
        buffers: Some([1 << 20, 200_000]),
        burn: [0.0, 0.9],
        ..messages::Transfer::new(messages::Transport::Udp, messages::Direction::Send, schedule)
    };
    let outcome = peer.prepare(spec).and_then(|prepared| prepared.run()).expect("a transfer");
    let told: std::collections::BTreeMap<MetricId, f64> = outcome.beside().into_iter().collect();
    let Some(dropped) = told.get(&ids::metric::REMOTE_DROPS) else {
        return println!("skipped: this kernel tells no drops");
    };
    let missing = told[&ids::metric::LOSS] * told[&ids::metric::SENT] * 1e9 / 8.0 / 1472.0;
    assert!(told[&ids::metric::LOSS] > 0.05, "the receiver kept up: {told:?}");
    // The loss is of the whole transfer, the drops are those of the counted windows.
    assert!((0.5..2.0).contains(&(dropped / missing)), "{dropped} of {missing} missing: {told:?}");
}

#[test]
fn a_congestion_control_that_is_not_there_fails_with_its_name() {
    let mut case = rehearsal::cases(ids::TCP, Depth::Quick).into_iter().next().expect("a case");
    case.params.insert(ids::param::CONGESTION, "nosuch");
    match rehearsal::visit(&case).1 {
        Some(Reason::Failed(why)) => assert!(why.contains("nosuch"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn with_another_host_there_are_both_directions_and_its_seat() {
    let mut machine = Machine::default();
    machine.cpus.online = (0..4).collect::<CpuSet>();
    let placements = Placements::of(&machine);
    let scope = |depth| Scope::new(&machine, &placements, depth, 1 << 30);
    let overrides = Overrides {
        to: Some("far:4711".into()),
        rate: Some(90),
        congestion: Some("cubic".into()),
        streams: Some(3),
        direction: None,
        near: vec![("nic-node", 2), ("nic-irq", 1)],
        cores: vec![3, 2, 1, 0],
    };
    let offered = |depth| {
        let scope = scope(depth);
        let usual = BENCHMARKS.iter().flat_map(|bench| (bench.cases)(bench, &scope)).collect();
        network_cases(usual, &scope, &overrides)
    };
    let standard = offered(Depth::Standard);
    let keys: Vec<String> = standard.iter().map(|candidate| candidate.case.key()).collect();
    assert!(
        keys.contains(&"network.tcp@nic-node?congestion=cubic&direction=receive&rate=90".to_string()),
        "{keys:?}"
    );
    assert!(
        keys.contains(&"network.round-trip@nic-node?protocol=udp".to_string()),
        "udp has no congestion control"
    );
    for candidate in &standard {
        assert_eq!(candidate.case.inputs[TO], "far:4711");
        let seats = &candidate.case.placement.seats;
        assert_eq!(seats.iter().position(|seat| seat.host.is_some()), Some(seats.len() - 1), "it comes last");
        assert_eq!(seats[seats.len() - 1].host.as_deref(), Some("far:4711"));
        assert_eq!(seats[0].cpus, CpuSet::one(2));
        // Of three streams each has a CPU, the nearest to the card first.
        let cpus = match candidate.case.id() {
            Some(ids::TCP) if candidate.case.params[ids::param::DIRECTION].text() == Some("both") => {
                vec![2, 3, 1, 0]
            }
            Some(ids::BOTTLENECK | ids::LOADED) => vec![2, 3, 1, 0],
            Some(ids::TCP | ids::UDP) => vec![2, 3, 1],
            _ => vec![2],
        };
        let own = seats.iter().filter_map(|seat| seat.cpus.first()).collect::<Vec<_>>();
        assert_eq!(own, cpus, "{}", candidate.case.key());
        let messages: Vec<_> = seats.iter().filter(|seat| seat.role == MESSAGES).collect();
        assert_eq!(messages.len(), usize::from(candidate.case.bench == ids::LOADED));
        assert!(messages.iter().all(|seat| seat.cpus == CpuSet::one(0)), "{messages:?}");
        assert!(!candidate.case.placement.is_free());
    }
    // Over loopback the streams share one CPU per end, and messages have others.
    for candidate in BENCHMARKS.iter().flat_map(|bench| (bench.cases)(bench, &scope(Depth::Standard))) {
        let placement = &candidate.case.placement;
        let loaded = candidate.case.bench == ids::LOADED && placement.name != "same-cpu";
        assert_eq!(placement.seats.len(), if loaded { 4 } else { 2 }, "{}", candidate.case.key());
        assert!(!loaded || placement.cpus().len() == 4, "{placement:?}");
    }
    let mut alone = Machine::default();
    alone.cpus.online = CpuSet::one(0);
    let alone_floor = Placements::of(&alone);
    let alone_scope = Scope { machine: &alone, placements: &alone_floor, ..scope(Depth::Quick) };
    let usual: Vec<_> = BENCHMARKS.iter().flat_map(|bench| (bench.cases)(bench, &alone_scope)).collect();
    let is_it = |candidate: &&crate::Candidate| candidate.case.bench == ids::BOTTLENECK;
    let why = usual.iter().find(is_it).and_then(|candidate| candidate.unmet.clone()).expect("a reason");
    assert!(why.contains("share one CPU"), "{why}");
    let far: Vec<_> = network_cases(usual, &alone_scope, &overrides);
    assert!(far.iter().filter(is_it).any(|candidate| candidate.unmet.is_none()), "one CPU is enough here");
    assert!(offered(Depth::Full).iter().any(|candidate| candidate.case.placement.name == "nic-irq"));
    // Namespaces of one machine: its other CPUs are the other end's.
    let mut both = Machine::default();
    both.cpus.online = (0..4).collect::<CpuSet>();
    let end = || End { boot: Some("one".into()), ..End::default() };
    both.network = Some(NetworkPath { local: end(), remote: Some(end()) });
    let both_floor = Placements::of(&both);
    let both_scope = Scope { machine: &both, placements: &both_floor, ..scope(Depth::Standard) };
    let usual = BENCHMARKS.iter().flat_map(|bench| (bench.cases)(bench, &both_scope)).collect();
    let shared = network_cases(usual, &both_scope, &overrides);
    assert!(shared.iter().all(|candidate| candidate.case.placement.seats.len() == 2));
    assert_eq!(transfer_points(&standard[0].case).len(), 1, "the user's streams");
}
