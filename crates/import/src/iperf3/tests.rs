//! Results of iperf3: recordings of our own, and made-up ones. The figures were read by eye.

use crate::Imported;
use crate::own::{FIGURES_DISAGREE, GENERATOR_BOUND, INTERRUPTED};
use crate::tests::{only, recorded, rules, skipped, values};

fn one(text: &str) -> Imported {
    only(text, super::FORMAT)
}

fn near(found: &[f64], wanted: &[f64]) -> bool {
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs())
}

#[test]
fn two_streams_over_loopback() {
    let found = one(&recorded("iperf3-tcp.json"));
    assert_eq!(found.host, "testhost");
    let key = |metric: &str| format!("network.tcp@free?direction=send/bytes=131072&streams=2#{metric}");
    assert!(near(&values(&found, &key("bandwidth")), &[26.03999491810336]));
    assert!(near(&values(&found, &key("sent")), &[26.113917503304226]));
    assert!(near(&values(&found, &key("stream_bandwidth")), &[13.025496091194475, 13.014498826908882]));
    assert_eq!(values(&found, &key("rtt_min")), [117.0]);
    assert_eq!(values(&found, &key("cwnd_bytes")), [1_702_558.0]);
    assert_eq!(values(&found, &key("retransmits")), [0.0]);
    assert!(near(&values(&found, &key("local_busy")), &[0.991364264761436]));
    // iperf3 3.12 has one thread, and that had all that a CPU gives.
    assert_eq!(rules(&found), [GENERATOR_BOUND]);
    assert!(found.findings[0].facts[0].label.contains("the sender"), "{:?}", found.findings);
    let note = |found: &Imported| found.figures[0].note.clone();
    assert!(note(&found).contains("loopback"));
    assert!(found.make_up.contains(&("congestion".to_string(), "bbr".to_string())));
    // Threads of later versions have a CPU each; and another host is another host.
    let later = recorded("iperf3-tcp.json")
        .replace("iperf 3.12", "iperf 3.17")
        .replacen("127.0.0.1", "10.0.0.1", 1)
        .replace("\"local_host\":\t\"127.0.0.1\"", "\"local_host\":\t\"10.0.0.1\"");
    let later = one(&later);
    assert!(rules(&later).is_empty() && note(&later).is_empty(), "{}", note(&later));
}

#[test]
fn both_directions_are_told_apart() {
    let found = one(&recorded("iperf3-both.json"));
    let key = |way: &str, metric: &str| {
        format!("network.tcp@free?direction=both&way={way}/bytes=131072&streams=1#{metric}")
    };
    assert!(near(&values(&found, &key("send", "bandwidth")), &[20.218_498_833_492_27]));
    assert!(near(&values(&found, &key("receive", "bandwidth")), &[2.0962673751676793]));
    assert_eq!(
        (values(&found, &key("send", "rtt_min")), values(&found, &key("receive", "rtt_min"))),
        (vec![68.0], vec![9.0])
    );
    // 5 in 1.000228 s.
    assert!(near(&values(&found, &key("send", "retransmits")), &[5.0 / 1.000228]));
}

#[test]
fn datagrams_that_arrive_here() {
    let found = one(&recorded("iperf3-udp.json"));
    // 100 Mbit/s a stream, two streams.
    let key =
        |metric: &str| format!("network.udp@free?direction=receive&rate=200/bytes=32768&streams=2#{metric}");
    assert!(near(&values(&found, &key("bandwidth")), &[0.20027140704356757]));
    assert_eq!((values(&found, &key("loss")), values(&found, &key("reordered"))), (vec![0.0], vec![0.0]));
    assert!(near(&values(&found, &key("jitter")), &[11.326471281871732]));
    assert!(rules(&found).is_empty());
    let lossy = recorded("iperf3-udp.json").replace("\"lost_packets\":\t0", "\"lost_packets\":\t191");
    assert!(near(&values(&one(&lossy), &key("loss")), &[0.25]));
}

#[test]
fn an_end_before_its_time_is_said() {
    let text = recorded("iperf3-interrupted.json");
    let found = one(&text);
    let key = |metric: &str| format!("network.tcp@free?direction=send/bytes=131072&streams=1#{metric}");
    assert!(rules(&found).contains(&INTERRUPTED));
    assert!(skipped(&found, &key("bandwidth")).contains("23.031 Gbit/s were sent"));
    assert!(near(
        &values(&found, &key("interval_bandwidth")),
        &[23.653_556_747_122_57, 22.406_279_292_208_49]
    ));
    assert_eq!(skipped(&found, &key("remote_busy")), "it is not told");
    let cut = one(&text[..text.find("\"end\":\t{\n").expect("an end")]);
    assert!(rules(&cut).contains(&INTERRUPTED));
    assert!(skipped(&cut, &key("bandwidth")).contains("no sum"));
    let refused = one(
        "{\"start\": {\"connected\": [], \"version\": \"iperf 3.12\", \"system_info\": \"Linux a 6.1\"}, \"intervals\": [], \
                       \"end\": {}, \"error\": \"unable to connect to server: Connection refused\"}",
    );
    assert_eq!(
        skipped(&refused, "iperf3.test@free#bandwidth"),
        "unable to connect to server: Connection refused"
    );
}

#[test]
fn several_tests_and_streams_of_events_are_read() {
    let text = recorded("iperf3-tcp.json");
    let key = "network.tcp@free?direction=send/bytes=131072&streams=2#bandwidth";
    let again = text.replace("\"cookie\":\t\"", "\"cookie\":\t\"x");
    assert_ne!(again, text);
    let twice = one(&format!("$ iperf3 -c server -J\n{text}{again}"));
    assert_eq!(values(&twice, key).len(), 2);
    assert!(twice.remarks.iter().any(|remark| remark.contains("iperf3 -c server")), "{:?}", twice.remarks);
    let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = [("start", &whole["start"]), ("interval", &whole["intervals"][0]), ("end", &whole["end"])];
    let lines = events.map(|(event, data)| serde_json::json!({"event": event, "data": data}).to_string());
    assert_eq!(values(&one(&lines.join("\n")), key), values(&one(&text), key));
    // `--json-stream-full-output` prints all of it once more, and a copy is no second test.
    for more in [text.clone(), format!("{text}{text}"), format!("\n\n{text}")] {
        let found = one(&format!("{}\n{more}", lines.join("\n")));
        assert_eq!(values(&found, key), values(&one(&text), key));
        assert!(found.remarks.iter().any(|remark| remark.contains("twice")), "{:?}", found.remarks);
    }
}

#[test]
fn what_the_text_tells_apart_is_apart() {
    let text = recorded("iperf3-tcp.json");
    let key = "network.tcp@free?direction=send/bytes=131072&streams=2#bandwidth";
    let other = text.replace("\"cookie\":\t\"", "\"cookie\":\t\"x");
    for both in [
        format!("{text}{}", other.replace(" 6.18.44 ", " 6.19.1 ")),
        format!("{text}{}", other.replace("iperf 3.12", "iperf 3.17")),
        format!("{text}{}", other.replace("testhost", "another")),
        format!("Before:\n{text}After:\n{other}"),
        format!("{text}with the patch\n{other}"),
        format!("$ iperf3 -c a -J\n{text}$ iperf3 -c a -C bbr -J\n{other}"),
    ] {
        let found = crate::read(both.as_bytes()).expect("results");
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| values(one, key).len() == 1));
    }
}

#[test]
fn a_rate_that_is_not_its_bytes_over_its_time_is_found() {
    let text = recorded("iperf3-tcp.json");
    let edited =
        text.replace("\"bits_per_second\":\t26039994918.103359", "\"bits_per_second\":\t36039994918.1");
    assert!(rules(&one(&edited)).contains(&FIGURES_DISAGREE));
}

/// What the server of a test wrote: intervals with their end and bytes, and what it sums up.
fn of_server(intervals: &[(f64, f64, u64)], sum: (f64, u64), error: Option<&str>) -> String {
    let part = |(start, end, bytes): (f64, f64, u64)| {
        let seconds = end - start;
        serde_json::json!({"start": start, "end": end, "seconds": seconds, "bytes": bytes, "bits_per_second": bytes as f64 * 8.0 / seconds,
                           "omitted": false, "sender": false})
    };
    let mut test = serde_json::json!({
        "start": {"version": "iperf 3.12", "system_info": "Linux testhost 6.1", "accepted_connection": {"host": "10.0.0.2"},
                  "test_start": {"protocol": "TCP", "num_streams": 1, "blksize": 131072, "reverse": 0}},
        "intervals": intervals.iter().map(|one| serde_json::json!({"streams": [], "sum": part(*one)})).collect::<Vec<_>>(),
        "end": {"sum_received": part((0.0, sum.0, sum.1))},
    });
    if let Some(error) = error {
        test["error"] = error.into();
    }
    test.to_string()
}

const RECEIVED: &str = "network.tcp@free?direction=receive/bytes=131072&streams=1#";

#[test]
fn the_sum_of_a_server_whose_client_went_away_is_none() {
    // The client's own sum was 22.17 Gbit/s: bytes of 1.5 s over the time of one, whose interval
    // stands there twice.
    let second = (0.0, 1.000958, 2_605_711_360);
    let text = of_server(&[second, second], (1.000958, 4_146_724_864), Some("the client has terminated"));
    let found = one(&text);
    assert!(rules(&found).contains(&INTERRUPTED));
    let why = skipped(&found, &format!("{RECEIVED}bandwidth"));
    assert!(why.contains("33.142 Gbit/s, is of more bytes than of its time"), "{why}");
    let keys: Vec<&str> = found.figures.iter().map(|one| one.judged.series.key.as_str()).collect();
    assert!(
        !keys.iter().any(|key| key.contains("interval_bandwidth")),
        "one interval has no spread: {keys:?}"
    );
}

#[test]
fn what_is_left_over_at_the_end_is_no_interval() {
    let whole = [(0.0, 1.0, 1_000_000_000), (1.0, 2.0, 1_200_000_000)];
    let found =
        one(&of_server(&[whole[0], whole[1], (2.0, 2.003042, 3_145_728)], (2.003042, 2_203_145_728), None));
    assert!(near(&values(&found, &format!("{RECEIVED}interval_bandwidth")), &[8.0, 9.6]));
    let found = one(&of_server(&[whole[0], whole[1], (2.0, 2.75, 600_000_000)], (2.75, 2_800_000_000), None));
    assert_eq!(values(&found, &format!("{RECEIVED}interval_bandwidth")).len(), 3);
}

#[test]
fn a_stream_of_events_without_an_end_was_stopped() {
    let whole: serde_json::Value = serde_json::from_str(&recorded("iperf3-tcp.json")).expect("JSON");
    let line = |event: &str, data: &serde_json::Value| {
        serde_json::json!({"event": event, "data": data}).to_string() + "\n"
    };
    let begun = line("start", &whole["start"]) + &line("interval", &whole["intervals"][0]);
    assert!(rules(&one(&begun)).contains(&INTERRUPTED));
    for end in [line("end", &whole["end"]), line("error", &"unable to send".into())] {
        assert!(!rules(&one(&(begun.clone() + &end))).contains(&INTERRUPTED));
    }
}
