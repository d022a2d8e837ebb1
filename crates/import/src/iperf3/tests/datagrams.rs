//! What was sent by UDP and what of it arrived, in JSON and in text; what a server says behind its
//! client; and in what tests of one system differ.

use super::text::approx;
use super::*;
use crate::read;

fn keys(one: &Imported) -> Vec<&str> {
    one.figures.iter().map(|figure| figure.judged.series.key.as_str()).collect()
}

/// Two streams at 100 Mbit/s, of which this share was lost.
fn text(lost: u32, ends: &[&str]) -> String {
    let row = |id: &str, end: &str, mbit: f64, tail: &str| {
        let bytes = mbit / 8.0 * 2.0 / 1.048576;
        format!("[{id:>3}]   0.00-2.00   sec  {bytes:.2} MBytes  {mbit:.1} Mbits/sec  {tail}  {end}\n")
    };
    let rows = |end: &&str| {
        let (jitter, share) = if *end == "sender" { ("0.000 ms  0", 0) } else { ("0.010 ms  ", lost) };
        let tail = |packets: u32| match share {
            0 => format!(
                "{}/{packets} (0%)",
                if *end == "sender" { jitter.to_string() } else { format!("{jitter}0") }
            ),
            _ => format!("{jitter}{}/{packets} ({share}%)", packets * share / 100),
        };
        let mbit = 100.0 * f64::from(100 - share) / 100.0;
        row("5", end, mbit, &tail(800))
            + &row("7", end, mbit, &tail(800))
            + &row("SUM", end, 2.0 * mbit, &tail(1600))
    };
    "Connecting to host 10.0.0.2, port 5201\n[ ID] Interval           Transfer     Bitrate         Total Datagrams\n\
     [SUM]   0.00-1.00   sec  23.8 MBytes  200 Mbits/sec  800\n[SUM]   1.00-2.00   sec  23.8 MBytes  200 Mbits/sec  800\n- - - -\n\
     [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n"
        .to_string()
        + &ends.iter().map(rows).collect::<String>()
        + "\niperf Done.\n"
}

#[test]
fn what_was_sent_is_told_from_what_arrived() {
    let key = |metric: &str| format!("network.udp@free?direction=send/streams=2#{metric}");
    for lost in [0, 10, 25, 50] {
        let found = one(&text(lost, &["sender", "receiver"]));
        let arrived = f64::from(100 - lost) / 1000.0;
        approx(&found, &key("sent"), &[0.2]);
        approx(&found, &key("bandwidth"), &[2.0 * arrived]);
        approx(&found, &key("stream_sent"), &[0.1, 0.1]);
        approx(&found, &key("stream_bandwidth"), &[arrived, arrived]);
        approx(&found, &key("interval_sent"), &[0.2, 0.2]);
        approx(&found, &key("loss"), &[f64::from(lost) / 100.0]);
        assert!(!keys(&found).contains(&key("interval_bandwidth").as_str()));
    }
    // A server that sent does not know what arrived.
    let found = one(&text(25, &["sender"]).replace("Connecting to host", "Accepted connection from"));
    approx(&found, &key("stream_sent"), &[0.1, 0.1]);
    assert!(!keys(&found).contains(&key("stream_bandwidth").as_str()), "{:?}", keys(&found));
    // One that received does not know what was sent.
    let rows = text(25, &["receiver"])
        .replace("Total Datagrams\n[SUM]   0", "Jitter    Lost/Total Datagrams\n[SUM]   0");
    let rows = rows.replace("Mbits/sec  800", "Mbits/sec  0.010 ms  0/800 (0%)");
    let found = one(&rows.replace("Connecting to host", "Accepted connection from"));
    let key = key("").replace("send", "receive");
    approx(&found, &format!("{key}stream_bandwidth"), &[0.075, 0.075]);
    approx(&found, &format!("{key}interval_bandwidth"), &[0.2, 0.2]);
    assert!(!keys(&found).iter().any(|key| key.contains("sent")), "{:?}", keys(&found));
}

#[test]
fn json_says_the_same_of_streams() {
    let json = recorded("iperf3-udp.json");
    for (lost, left) in [(0, 1.0), (38, 344.0 / 382.0), (191, 0.5)] {
        let found = one(&json.replace("\"lost_packets\":\t0", &format!("\"lost_packets\":\t{lost}")));
        let key = |metric: &str| {
            format!("network.udp@free?direction=receive&rate=200/bytes=32768&streams=2#{metric}")
        };
        let each = 0.1001260917341663;
        assert!(near(&values(&found, &key("stream_sent")), &[each, each]));
        assert!(near(&values(&found, &key("stream_bandwidth")), &[each * left, each * left]), "{lost}");
    }
    // As a client that sends writes it: what of a stream was lost says the server.
    let sends = json.replace("\"reverse\":\t1", "\"reverse\":\t0");
    let found = one(&sends);
    assert!(
        keys(&found)
            .iter()
            .any(|key| key.ends_with("direction=send&rate=200/bytes=32768&streams=2#stream_sent"))
    );
    assert!(!keys(&found).iter().any(|key| key.ends_with("interval_bandwidth")), "{:?}", keys(&found));
}

#[test]
fn a_server_behind_its_client_is_no_second_test() {
    let shown = recorded("iperf3-debian-get-server.txt");
    let plain = shown.split("\nServer output:").next().expect("a client").to_string();
    let figures = |text: &str| {
        let all = read(text.as_bytes()).expect("a result");
        all.into_iter().map(|one| one.figures).collect::<Vec<_>>()
    };
    let alone = figures(&(plain.clone() + "\niperf Done.\n"));
    for text in [
        shown.clone(),
        shown.replace("iperf Done.\n", ""),
        format!("{shown}{}", shown.replace("$ iperf3", "$  iperf3")),
        shown.replace("Server output:", "  Server output:  "),
        shown.replace('\n', "\r\n"),
    ] {
        assert_eq!(figures(&text)[0].len(), alone[0].len(), "{text}");
        assert!(
            !keys(&read(text.as_bytes()).expect("a result")[0]).iter().any(|key| key.contains("receive"))
        );
    }
    assert_eq!(figures(&shown), alone);
    let said = |text: &str| {
        let all = read(text.as_bytes()).expect("a result");
        all[0].remarks.iter().any(|remark| remark.contains("Server output"))
    };
    assert!(said(&shown) && !said(&plain));
}

#[test]
fn what_tests_differ_in_is_told_of_all() {
    let plain = recorded("iperf3-debian-modes.txt");
    let tests: Vec<String> = plain.split("$ ").skip(1).map(|test| format!("$ {test}")).collect();
    let longer = tests[0].replace("-t 2", "-t 10").replace("18.4", "18.3");
    let omits = tests[3].clone();
    let told = |tests: &[&str], label: &str| {
        let found = one(&tests.concat());
        let fact = found.make_up.iter().find(|(known, _)| known == label);
        fact.map_or(String::new(), |(_, value)| value.clone())
    };
    for (tests, durations, omitted) in [
        (vec![tests[0].as_str(), &longer], "2 s, 10 s", ""),
        (vec![&longer, &tests[0], &tests[0]], "10 s, 2 s", ""),
        (vec![&tests[0], &omits], "2 s", "0 s, 1 s"),
        (vec![&omits, &longer], "2 s, 10 s", "1 s, 0 s"),
        (vec![&omits], "2 s", "1 s"),
    ] {
        assert_eq!(
            (told(&tests, "duration").as_str(), told(&tests, "omitted").as_str()),
            (durations, omitted)
        );
    }
}
