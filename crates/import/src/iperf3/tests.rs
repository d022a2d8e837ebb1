//! Results of iperf3: recordings of our own, and made-up ones. The figures were read by eye.

mod datagrams;
mod parts;
mod text;

use serde_json::{Value, json};

use crate::Imported;
use crate::faults::{FIGURES_DISAGREE, GENERATOR_BOUND, INTERRUPTED};
use crate::tests::{figure, only, recorded, rules, skipped, values};

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
    assert_eq!(skipped(&found, &key("remote_busy")), "not in the file");
    let cut = one(&text[..text.find("\"end\":\t{\n").expect("an end")]);
    assert!(rules(&cut).contains(&INTERRUPTED));
    assert!(cut.remarks.iter().any(|remark| remark.contains("no test finished")), "{:?}", cut.remarks);
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
    // The same test twice counts once; another one of the same is another measurement.
    let other = with_cookie(&text, "another");
    let twice = one(&format!("$ iperf3 -c server -J\n{text}{text}{other}"));
    assert_eq!(values(&twice, key).len(), 2);
    assert!(twice.remarks.iter().any(|remark| remark.contains("appears twice")), "{:?}", twice.remarks);
    assert!(twice.remarks.iter().any(|remark| remark.contains("iperf3 -c server")), "{:?}", twice.remarks);
    let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = [("start", &whole["start"]), ("interval", &whole["intervals"][0]), ("end", &whole["end"])];
    let lines = events.map(|(event, data)| serde_json::json!({"event": event, "data": data}).to_string());
    assert_eq!(values(&one(&lines.join("\n")), key), values(&one(&text), key));
}

/// The same as of another test.
fn with_cookie(text: &str, cookie: &str) -> String {
    edited(text, |test| test["start"]["cookie"] = cookie.into())
}

/// A test with something else in it.
fn edited(text: &str, change: impl Fn(&mut Value)) -> String {
    let mut test: Value = serde_json::from_str(text).expect("JSON");
    change(&mut test);
    test.to_string() + "\n"
}

/// The lines of a stream of events.
fn streamed(text: &str) -> String {
    let whole: Value = serde_json::from_str(text).expect("JSON");
    let events = [("start", &whole["start"]), ("interval", &whole["intervals"][0]), ("end", &whole["end"])];
    events.map(|(event, data)| json!({"event": event, "data": data}).to_string() + "\n").concat()
}

#[test]
fn events_before_their_whole_are_the_same_test() {
    let text = recorded("iperf3-tcp.json");
    let key = "network.tcp@free?direction=send/bytes=131072&streams=2#bandwidth";
    let other = with_cookie(&text, "another");
    for (file, count) in [
        (streamed(&text) + &text, 1),
        (text.clone() + &streamed(&text), 1),
        (streamed(&text) + &streamed(&text), 1),
        (streamed(&text) + &text + &streamed(&other) + &other, 2),
        (streamed(&text) + &other, 2),
    ] {
        assert_eq!(values(&one(&file), key).len(), count);
    }
    // Both ends of a test are not the same.
    let server = edited(&text, |test| {
        test["start"]["accepted_connection"] = json!({"host": "127.0.0.1"});
        test["start"]["connecting_to"] = Value::Null;
    });
    let all = crate::read((text + &server).as_bytes()).expect("results");
    assert_eq!(all.len(), 2);
}

#[test]
fn tests_of_different_systems_are_results_of_their_own() {
    let text = recorded("iperf3-tcp.json");
    let read = |text: &str| crate::read(text.as_bytes()).expect("results");
    let changes: [&dyn Fn(&mut Value); 5] = [
        &|test| test["start"]["version"] = "iperf 3.16".into(),
        &|test| test["start"]["connecting_to"]["host"] = "10.0.0.9".into(),
        &|test| test["end"]["sender_tcp_congestion"] = "cubic".into(),
        &|test| test["start"]["sock_bufsize"] = 65_536.into(),
        &|test| test["start"]["system_info"] = "Linux other 6.1.0 x".into(),
    ];
    for change in changes {
        let other = edited(&with_cookie(&text, "another"), change);
        assert_eq!(read(&(text.clone() + &other)).len(), 2, "{other:.300}");
    }
    // A test that was stopped does not give all of it.
    let stopped = edited(&with_cookie(&text, "another"), |test| {
        test["end"] = json!({});
        test["error"] = "interrupt - the client has terminated".into();
    });
    assert_eq!(read(&(text.clone() + &stopped)).len(), 1);
    let found = read(&format!("Before:\n{text}After:\n{}", with_cookie(&text, "another")));
    let headings: Vec<&str> = found
        .iter()
        .flat_map(|one| &one.make_up)
        .filter(|(label, _)| label == "heading")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(headings, ["Before", "After"]);
    for own in ["iperf Done.\n", "warning: UDP block size\n", "$ iperf3 -c a -J\n", "\n"] {
        assert_eq!(read(&format!("{text}{own}{}", with_cookie(&text, "another"))).len(), 1, "{own}");
    }
}

#[test]
fn what_stands_above_json_tells_tests_apart() {
    let text = recorded("iperf3-tcp.json");
    let another = with_cookie(&text, "another");
    let count = |text: String| crate::read(text.as_bytes()).expect("results").len();
    for (before, after) in [
        (
            "### Before\n<details>\n<summary>output</summary>",
            "### After\n<details>\n<summary>output</summary>",
        ),
        ("# tc qdisc add a; iperf3 -c a -J", "# tc qdisc add b; iperf3 -c a -J"),
        ("$ taskset -c 0 iperf3 -c a -J", "$ taskset -c 8 iperf3 -c a -J"),
        ("$ ./old/iperf3 -c a -J", "$ ./new/iperf3 -c a -J"),
        ("me@a:~$ iperf3 -c a -J", "me@b:~$ iperf3 -c a -J"),
        ("$ iperf3 -c a -J", "$ sysctl -w net.core.rmem_max=1\n$ iperf3 -c a -J"),
        ("### 1500", "### 9000"),
    ] {
        assert_eq!(count(format!("{before}\n{text}{after}\n{another}")), 2, "{after}");
    }
    for (before, after) in [("1", "2"), ("run 1", "run 2"), ("12:30:01", "12:40:01"), ("", "$ date")] {
        assert_eq!(count(format!("{before}\n{text}{after}\n{another}")), 1, "{after}");
    }
    let changed = |change: &dyn Fn(&mut Value)| count(text.clone() + &edited(&another, change));
    let time = text.split("\"time\":").nth(1).and_then(|rest| rest.split('"').nth(1)).expect("a time");
    let (day, _) = time.split_once(':').expect("an hour");
    assert_eq!(
        changed(&|test| test["start"]["timestamp"]["time"] = "Mon, 02 Nov 2026 01:02:03 GMT".into()),
        2
    );
    assert_eq!(changed(&|test| test["start"]["timestamp"]["time"] = format!("{day}:59:59 GMT").into()), 1);
    assert_eq!(changed(&|test| test["start"]["connected"][0]["local_host"] = "10.0.0.7".into()), 2);
    assert_eq!(changed(&|test| test["start"]["connected"] = json!([])), 1);
}

#[test]
fn a_transfer_of_a_few_ms_has_no_rate() {
    // `iperf3 -n 64K` over loopback.
    let of = |seconds: f64| {
        edited(&recorded("iperf3-tcp.json"), |test| {
            for sum in ["sum_sent", "sum_received"] {
                let bits = 131_072.0 * 8.0 / seconds;
                test["end"][sum] =
                    json!({"seconds": seconds, "bytes": 131_072, "bits_per_second": bits, "retransmits": 0});
            }
            test["end"]["streams"] = json!([]);
            test["intervals"] = json!([]);
        })
    };
    let key = |metric: &str| format!("network.tcp@free?direction=send/bytes=131072&streams=2#{metric}");
    for ms in [0.061, 0.588, 7.0, 49.0] {
        let found = one(&of(ms / 1e3));
        for metric in ["bandwidth", "sent"] {
            let why = skipped(&found, &key(metric));
            assert!(why.starts_with("131072 bytes in ") && why.contains("are not a rate"), "{why}");
        }
        assert!(!found.figures.iter().any(|one| one.judged.series.key.ends_with("#retransmits")));
        assert!(!rules(&found).contains(&FIGURES_DISAGREE));
    }
    assert_eq!(values(&one(&of(1.0)), &key("bandwidth")).len(), 1);
}

#[test]
fn counters_below_zero_or_wrapped_are_no_figures() {
    let key = |metric: &str| format!("network.tcp@free?direction=send/bytes=131072&streams=2#{metric}");
    let text = recorded("iperf3-tcp.json");
    // Of the sum, or of one stream that the sum hides.
    for (at, count) in [(None, -2.0), (None, 4_294_967_290.0), (Some(0), -2.0), (Some(1), 4_294_967_294.0)] {
        let found = one(&edited(&text, |test| match at {
            None => test["end"]["sum_sent"]["retransmits"] = count.into(),
            Some(at) => test["end"]["streams"][at]["sender"]["retransmits"] = count.into(),
        }));
        assert!(skipped(&found, &key("retransmits")).contains("wrapped around"), "{count}");
        assert_eq!(values(&found, &key("bandwidth")).len(), 1);
    }
    let found = one(&edited(&text, |test| {
        for sum in ["sum_sent", "sum_received"] {
            test["end"][sum]["bytes"] = (-1_000_000_000i64).into();
            test["end"][sum]["bits_per_second"] = (-8e9).into();
        }
    }));
    for metric in ["bandwidth", "sent"] {
        assert!(skipped(&found, &key(metric)).contains("it says -1000000000 bytes"));
    }
    let udp = "network.udp@free?direction=receive&rate=200/bytes=32768&streams=2#";
    for (name, count, metric, word) in [
        ("lost_packets", -3.0, "loss", "arrived twice"),
        ("lost_packets", 4_294_967_290.0, "loss", "wrapped around"),
        ("jitter_ms", 4_294_967.3, "jitter", "longer than the test"),
    ] {
        let found = one(&edited(&recorded("iperf3-udp.json"), |test| {
            for sum in ["sum", "sum_received"] {
                test["end"][sum][name] = count.into();
            }
        }));
        assert!(skipped(&found, &format!("{udp}{metric}")).contains(word), "{name} {count}");
        assert_eq!(values(&found, &format!("{udp}bandwidth")).len(), 1);
    }
    let found = one(&edited(&recorded("iperf3-udp.json"), |test| {
        test["end"]["streams"][0]["udp"]["out_of_order"] = 4_294_967_290u64.into();
    }));
    assert!(skipped(&found, &format!("{udp}reordered")).contains("wrapped around"));
}

#[test]
fn a_rate_of_datagrams_has_its_loss_beside_it() {
    let key = "network.udp@free?direction=receive&rate=200/bytes=32768&streams=2#bandwidth";
    let note = |change: &dyn Fn(&mut Value)| {
        let found = one(&edited(&recorded("iperf3-udp.json"), change));
        figure(&found, key).note.clone()
    };
    let lost = |count: i64| {
        note(&|test| {
            for sum in ["sum", "sum_received"] {
                test["end"][sum]["lost_packets"] = count.into();
            }
        })
    };
    assert!(lost(191).contains("25 % of its datagrams were lost"), "{}", lost(191));
    assert!(lost(0).contains("0.00 % of its datagrams were lost"), "{}", lost(0));
    assert!(lost(-1).contains("is unknown"), "{}", lost(-1));
    let untold = note(&|test| {
        for sum in ["sum", "sum_received"] {
            test["end"][sum]["jitter_ms"] = Value::Null;
        }
    });
    assert!(untold.contains("is unknown"), "{untold}");
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
    assert!(why.contains("33.142 Gbit/s, counts more bytes than its time"), "{why}");
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
