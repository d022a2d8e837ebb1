//! Single decisions; how often they are right is measured by `stats::proof::paths`.

use super::*;

/// Rounds around a value, never twice the same.
fn rounds(value: f64) -> Vec<f64> {
    (0..9).map(|round| value * (1.0 + 0.004 * f64::from(round % 5) - 0.008)).collect()
}

fn arm(value: f64) -> Arm {
    Arm { bandwidth: rounds(value), ..Arm::default() }
}

/// A transfer of 10 Gbit/s that nothing but this changes.
fn unmoved() -> Experiment {
    let mut all = Experiment {
        plain: arm(10.0),
        slowed_sender: arm(10.0),
        slowed_receiver: arm(10.0),
        more_streams: arm(10.0),
        large_window: arm(10.0),
        small_window: arm(10.0),
        nine_tenths: arm(9.0),
        mtu: Some(1500.0),
        ..Experiment::default()
    };
    all.plain.sender.busy = Some(0.5);
    all.plain.receiver.busy = Some(0.5);
    all
}

fn limit_of(change: impl Fn(&mut Experiment)) -> Limit {
    let mut experiment = unmoved();
    change(&mut experiment);
    decide(&experiment).limit
}

#[test]
fn the_cpu_that_it_follows_is_the_limit() {
    assert_eq!(limit_of(|all| all.slowed_sender = arm(7.0)), Limit::SenderCpu);
    assert_eq!(limit_of(|all| all.slowed_receiver = arm(7.1)), Limit::ReceiverCpu);
    let both = |all: &mut Experiment| (all.slowed_sender, all.slowed_receiver) = (arm(7.2), arm(7.3));
    assert_eq!(limit_of(both), Limit::BothCpus);
    // The other end is close behind: it moves too, but less.
    let close = |all: &mut Experiment| (all.slowed_sender, all.slowed_receiver) = (arm(8.3), arm(7.0));
    assert_eq!(limit_of(close), Limit::ReceiverCpu);
    // A quota that burning alone uses up leaves nothing.
    let nothing = |all: &mut Experiment| all.slowed_receiver.bandwidth = vec![0.0; 9];
    assert_eq!(limit_of(nothing), Limit::ReceiverCpu);
    assert_eq!(limit_of(|all| all.plain.receiver.softirq = Some(0.97)), Limit::ReceiverCpu);
}

#[test]
fn an_end_without_its_cpu_is_starved() {
    let starved = |change: fn(&mut End)| {
        limit_of(|all| {
            all.slowed_receiver = arm(7.0);
            change(&mut all.plain.receiver);
        })
    };
    assert_eq!(starved(|end| end.wait = Some(0.5)), Limit::ReceiverStarved);
    assert_eq!(starved(|end| end.throttled = Some(0.7)), Limit::ReceiverStarved);
    assert_eq!(starved(|end| end.wait = Some(0.05)), Limit::ReceiverCpu);
    // Beside a hog four tasks get four fifths of the CPU, one gets half.
    let beside_a_hog = |all: &mut Experiment| {
        (all.slowed_receiver, all.more_streams) = (arm(6.0), arm(16.0));
        all.plain.receiver.wait = Some(0.5);
    };
    assert_eq!(limit_of(beside_a_hog), Limit::ReceiverStarved);
    // It waits for its CPU, but nothing follows it.
    assert_ne!(limit_of(|all| all.plain.receiver.wait = Some(0.5)), Limit::ReceiverStarved);
}

#[test]
fn windows_and_losses_are_told_apart() {
    assert_eq!(limit_of(|all| (all.large_window, all.more_streams) = (arm(35.0), arm(38.0))), Limit::Window);
    // No larger buffer is allowed here.
    let capped = |all: &mut Experiment| {
        (all.small_window, all.more_streams) = (arm(2.6), arm(38.0));
        all.plain.rwnd_limited = Some(0.9);
    };
    assert_eq!(limit_of(capped), Limit::Window);
    let lossy = |all: &mut Experiment| {
        all.more_streams = arm(30.0);
        // Two in a hundred of 863 thousand segments a second.
        all.plain.retransmits = Some(17_000.0);
    };
    assert_eq!(limit_of(lossy), Limit::Loss);
    // All but one in a thousand had arrived.
    let overtaken = |all: &mut Experiment| {
        lossy(all);
        all.plain.duplicates = Some(16_000.0);
    };
    assert_eq!(limit_of(overtaken), Limit::OneStream);
    assert_eq!(limit_of(|all| all.more_streams = arm(20.0)), Limit::OneStream);
}

#[test]
fn a_rate_on_the_path_is_the_links_or_a_shapers() {
    // 10 Gbit/s of payload take 10.6 of the wire at an MTU of 1500.
    assert_eq!(limit_of(|all| all.link_gbits = Some(10.7)), Limit::Link);
    assert_eq!(
        limit_of(|all| all.link_gbits = Some(25.0)),
        Limit::NotSeparable,
        "nothing speaks for a shaper"
    );
    let shaped = |change: fn(&mut Experiment)| {
        limit_of(|all| {
            all.link_gbits = Some(25.0);
            change(all);
        })
    };
    let udp = |all: &mut Experiment| {
        all.udp_over = arm(10.1);
        (all.udp_over.sent, all.udp_over.loss) = (Some(12.0), Some(0.16));
    };
    assert_eq!(shaped(udp), Limit::Shaper);
    assert_eq!(
        shaped(|all| (all.start.bandwidth, all.start.later) = (rounds(20.0), rounds(10.0))),
        Limit::Shaper
    );
    let queue = |all: &mut Experiment| (all.plain.rtt, all.nine_tenths.rtt) = (Some(5000.0), Some(300.0));
    assert_eq!(shaped(queue), Limit::Shaper);
    assert_eq!(shaped(|all| all.shaped_gbits = Some(10.4)), Limit::Shaper);
    // UDP lost as much, but the receiver had no time for it.
    let busy = |all: &mut Experiment| {
        udp(all);
        all.slowed_receiver = arm(7.0);
    };
    assert_eq!(limit_of(busy), Limit::ReceiverCpu);
}

#[test]
fn what_comes_out_of_queues_is_no_gain() {
    let queued = |streams: f64| {
        move |all: &mut Experiment| {
            all.more_streams = arm(10.0 * streams);
            all.udp_over = Arm { sent: Some(12.0), loss: Some(0.09), ..arm(10.2) };
        }
    };
    assert_eq!(limit_of(queued(1.18)), Limit::Shaper);
    assert_eq!(limit_of(queued(1.9)), Limit::OneStream);
    assert_eq!(limit_of(|all| all.more_streams = arm(11.8)), Limit::OneStream, "nothing speaks for a rate");
}

#[test]
fn a_connection_that_still_rises_has_no_limit_of_its_own() {
    let long_way = |growth: f64| {
        move |all: &mut Experiment| {
            all.more_streams = arm(24.0);
            all.plain.growth = rounds(growth);
            all.udp_over = Arm { sent: Some(11.8), loss: Some(0.0), ..arm(11.8) };
        }
    };
    assert_eq!(limit_of(long_way(1.6)), Limit::NotSeparable);
    assert_eq!(limit_of(long_way(1.02)), Limit::OneStream);
    let lost = |all: &mut Experiment| {
        long_way(1.6)(all);
        all.plain.retransmits = Some(17_000.0);
    };
    assert_eq!(limit_of(lost), Limit::Loss, "losses are seen whether it rises or not");
    let mut experiment = unmoved();
    long_way(1.6)(&mut experiment);
    let signs = decide(&experiment).signs;
    assert!(signs.rises() && signs.room_by_udp(), "{signs:?}");
    experiment.udp_over.loss = Some(0.16);
    assert!(!decide(&experiment).signs.room_by_udp());
    // One round of nine that rises is chance.
    experiment.plain.growth = rounds(1.0);
    experiment.plain.growth[4] = 3.0;
    assert!(!decide(&experiment).signs.rises());
}

#[test]
fn too_little_decides_nothing() {
    assert_eq!(decide(&Experiment::default()).limit, Limit::NotSeparable);
    let few = |all: &mut Experiment| {
        all.slowed_sender = arm(7.0);
        all.slowed_sender.bandwidth.truncate(MIN_ROUNDS - 1);
    };
    assert_eq!(limit_of(few), Limit::NotSeparable);
    let names: std::collections::BTreeSet<&str> = Limit::ALL.iter().map(|limit| limit.words()).collect();
    assert_eq!(names.len(), Limit::ALL.len());
}

#[test]
fn any_numbers_are_decided_upon() {
    let mut random = fastrand::Rng::with_seed(9);
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 5e-324, 1.0, 1e9];
    for _ in 0..5000 {
        let mut value = || odd[random.usize(..odd.len())];
        let mut arm = || Arm {
            bandwidth: (0..8).map(|_| value()).collect(),
            later: (0..7).map(|_| value()).collect(),
            retransmits: Some(value()),
            rtt: Some(value()),
            growth: (0..8).map(|_| value()).collect(),
            sent: Some(value()),
            loss: Some(value()),
            sender: End { busy: Some(value()), softirq: None, wait: Some(value()), throttled: None },
            ..Arm::default()
        };
        let experiment = Experiment {
            plain: arm(),
            slowed_sender: arm(),
            slowed_receiver: arm(),
            more_streams: arm(),
            udp_over: arm(),
            start: arm(),
            nine_tenths: arm(),
            link_gbits: arm().rtt,
            mtu: arm().rtt,
            ..Experiment::default()
        };
        let decision = decide(&experiment);
        assert!(decision.signs.lost.is_none_or(|lost| (0.0..=1.0).contains(&lost)));
    }
}
