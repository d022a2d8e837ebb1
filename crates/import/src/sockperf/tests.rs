//! Results of sockperf: a recording of our own. The figures were read by eye.

use crate::Imported;
use crate::faults::INTERRUPTED;
use crate::tests::{only, recorded, skipped, values};

/// The run whose command begins so.
fn run(command: &str) -> String {
    let text = recorded("sockperf.txt");
    let at = text.find(&format!("$ {command}")).expect("a command");
    let end = text[at + 1..].find("\n$ ").map_or(text.len(), |end| at + 2 + end);
    text[at..end].to_string()
}

fn one(text: &str) -> Imported {
    only(text, super::FORMAT)
}

fn near(found: &[f64], wanted: f64) -> bool {
    found.len() == 1 && (found[0] / wanted - 1.0).abs() < 1e-9
}

#[test]
fn a_latency_is_half_of_a_round_trip() {
    let found = one(&run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n"));
    let key = |metric: &str| format!("network.round-trip@free?protocol=udp/bytes=14#{metric}");
    assert!(near(&values(&found, &key("latency_p50")), 61.760));
    assert!(near(&values(&found, &key("latency_p99")), 88.480));
    assert!(near(&values(&found, &key("latency_mean")), 63.136));
    assert!(near(&values(&found, &key("latency_max")), 828.292));
    assert!(found.figures[0].note.contains("half of it is printed"));
    // The whole one is taken as it is, and TCP is another key; so is another size.
    let found = one(&run("sockperf ping-pong --tcp"));
    let key = |metric: &str| format!("network.round-trip@free?protocol=tcp/bytes=64#{metric}");
    assert!(near(&values(&found, &key("latency_p50")), 52.788));
    assert!(!found.figures[0].note.contains("half"));
    assert!(found.findings.is_empty());
}

#[test]
fn percentiles_that_nothing_lies_beyond_are_none() {
    let found = one(&run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n"));
    let key = |metric: &str| format!("network.round-trip@free?protocol=udp/bytes=14#{metric}");
    let why = skipped(&found, &key("latency_p99999"));
    assert_eq!(
        why,
        "fewer than 10 observations beyond the percentile (0.1 of 8711): the printed 828.292 µs is an extreme value"
    );
    // 8.7 of 8711: just too few.
    assert!(skipped(&found, &key("latency_p999")).contains("(8.7 of 8711)"));
    // Of two messages there is no median.
    let few = one(&run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1 --mps 5"));
    assert!(
        skipped(&few, "network.round-trip@free?mps=5&protocol=udp/bytes=14#latency_p50")
            .contains("(1.0 of 2)")
    );
}

#[test]
fn throughput_is_what_was_sent_in_mebibytes() {
    let found = one(&run("cat throughput.log"));
    let key = |metric: &str| format!("network.udp@free?direction=send/bytes=1472&streams=1#{metric}");
    // 388.114 MBps of 2^20 bytes are 276472 messages of 1472.
    assert!(near(&values(&found, &key("sent")), 388.114 * 8.388608 / 1e3));
    assert_eq!(values(&found, &key("message_rate")), [276_472.0]);
    assert!(found.figures[0].note.contains("counted at the sender"));
}

#[test]
fn what_did_not_answer_is_said() {
    let found = one(&run("sockperf pp -i 127.0.0.1 -p 11112"));
    let key = "network.round-trip@free?protocol=udp/bytes=14#latency_p50";
    assert_eq!(skipped(&found, key), "No messages were received from the server. Is the server down?");
    let text = run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n");
    let cut = one(&text[..text.find("sockperf: ---> ").expect("percentiles")]);
    assert!(skipped(&cut, key).contains("percentiles are missing"));
    let stopped = one(
        "sockperf: == version #3.7 ==\nsockperf: Test end (interrupted by user)\nsockperf: No messages were sent\n",
    );
    assert_eq!(stopped.findings[0].rule, INTERRUPTED);
    // Without its command the size is unknown, and a remark says that the mode is a guess.
    let bare: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let bare = one(&bare);
    assert_eq!(values(&bare, "network.round-trip@free?protocol=udp#latency_p50").len(), 1);
    assert!(bare.figures[0].note.contains("the mode is unknown"), "{}", bare.figures[0].note);
    let load = one(&text
        .lines()
        .skip(1)
        .map(|line| format!("{line}\n").replace("ReceivedMessages=8711", "ReceivedMessages=87"))
        .collect::<String>());
    assert_eq!(values(&load, "sockperf.under-load@free?protocol=udp#latency_p50").len(), 1);
}

#[test]
fn all_runs_of_a_file_are_one_result() {
    let found = one(&recorded("sockperf.txt"));
    let udp = "network.round-trip@free?protocol=udp/bytes=14#latency_p50";
    assert!(near(&values(&found, udp), 61.760), "the last run of that kind had no answer");
    assert_eq!(values(&found, "network.round-trip@free?protocol=tcp/bytes=64#latency_p50").len(), 1);
}

/// What a run of throughput prints at its end.
fn sent(size: &str, bandwidth: &str) -> String {
    format!(
        "sockperf: == version #3.7-no.git ==\n[ 0] IP = 127.0.0.1       PORT = 11333 # UDP\nsockperf: Total of 166218 messages sent in 1.000 \
         sec\n\nsockperf: NOTE: test was performed, using msg-size={size}. For getting maximum throughput consider using \
         --msg-size=1472\nsockperf: Summary: Message Rate is 166139 [msg/sec]\nsockperf: Summary: BandWidth is {bandwidth}\n"
    )
}

#[test]
fn gigabytes_are_counted_by_their_messages() {
    let found = one(&sent("1400", "0.222 GBps (1.775 Gbps)"));
    let key = |more: &str| format!("network.udp@free?direction=send{more}/bytes=1400&streams=1#sent");
    // Printed are thousands of 2^20 bytes, with three digits.
    assert!(near(&values(&found, &key("")), 166_139.0 * 1400.0 * 8.0 / 1e9));
    assert!(!found.remarks.iter().any(|remark| remark.contains("doubles")), "{:?}", found.remarks);
    let paced = one(&sent("1400, mps=1000", "1.336 MBps (10.692 Mbps)"));
    assert!(near(&values(&paced, &key("&mps=1000")), 1.336 * 8.388608 / 1e3));
}

#[test]
fn only_what_was_doubled_is_said_to_be() {
    let doubled = |command: &str| one(&run(command)).remarks.iter().any(|remark| remark.contains("doubles"));
    assert!(doubled("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n"));
    assert!(!doubled("sockperf ping-pong --tcp") && !doubled("cat throughput.log"));
}

#[test]
fn dummies_between_the_messages_are_another_work() {
    let text = run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n");
    let found = one(&text.replacen(" -t 1\n", " -t 1 --dummy-send\n", 1));
    let key = "network.round-trip@free?dummy_send=1&protocol=udp/bytes=14#latency_p50";
    assert!(near(&values(&found, key), 61.760));
}

#[test]
fn what_the_text_tells_apart_is_never_one_series() {
    let text = run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n");
    let (command, output) = text.split_once('\n').expect("a command");
    let p50 = |found: &Imported| {
        let of = |figure: &&crate::Figure| figure.judged.series.key.ends_with("#latency_p50");
        let found = found.figures.iter().find(of).expect("a median");
        found.judged.series.values().concat().len()
    };
    let each = |first: &str, second: &str| -> Vec<usize> {
        let all = crate::read(format!("{first}{second}").as_bytes()).expect("results");
        all.iter().map(p50).collect()
    };
    let with = |before: &str| format!("{before}\n{output}");
    let plain = with(command);
    let program = command.trim_start_matches("$ ");
    for (first, second) in [
        (plain.clone(), with(&format!("$ LD_PRELOAD=libvma.so {program}"))),
        (with(&format!("# taskset -c 1 {program}")), with(&format!("# taskset -c 33 {program}"))),
        (with(&format!("$ ./old/{program}")), with(&format!("$ ./new/{program}"))),
        (
            with(&format!("# ethtool -C a rx-usecs 0\n{command}")),
            with(&format!("# ethtool -C a rx-usecs 50\n{command}")),
        ),
        (plain.clone(), plain.replace("IP = 127.0.0.1", "IP = 127.0.0.2")),
        (plain.clone(), plain.replace("version #3.", "version #4.")),
        (with("Before:"), with("After:")),
    ] {
        assert_eq!(each(&first, &second), [1, 1], "{first}{second}");
    }
    let headless = |heading: &str| {
        let from = output.find("sockperf: [Total Run]").expect("a run");
        format!("{heading}\n{}", &output[from..])
    };
    assert_eq!(each(&headless("Before:"), &headless("After:")), [1, 1]);
    for (first, second) in [
        (plain.clone(), plain.clone()),
        (with(&format!("run 1\n{command}")), with(&format!("run 2\n{command}"))),
        (plain.clone(), with(&format!("real 0m1.1s\nuser 0m0.2s\n{command}"))),
        (plain.clone(), with(&format!("$ sleep 5\n{command}"))),
        (headless(""), headless("")),
    ] {
        assert_eq!(each(&first, &second.replace("30.880", "29.880")), [2], "{first}{second}");
    }
}

#[test]
fn each_turn_of_a_loop_has_a_command_of_its_own() {
    let text = run("sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1\n");
    let (_, output) = text.split_once('\n').expect("a command");
    let bytes = |command: &str| -> Vec<String> {
        let found = one(&format!("{command}\n{output}{output}"));
        let keys = found.figures.iter().map(|figure| figure.judged.series.key.clone());
        keys.filter_map(|key| key.strip_suffix("#latency_p50").map(str::to_string)).collect()
    };
    let key = |point: &str| format!("network.round-trip@free?protocol=udp{point}");
    let loops = |values: &str| format!("$ for m in {values}; do sockperf pp -i 127.0.0.1 -m $m; done");
    assert_eq!(bytes(&loops("64 128")), [key("/bytes=64"), key("/bytes=128")]);
    assert_eq!(bytes(&loops("$(cat sizes)")), [key("")]);
    assert_eq!(bytes("$ for i in 1 2; do sockperf pp -i 127.0.0.1; done"), [key("/bytes=14")]);
}
