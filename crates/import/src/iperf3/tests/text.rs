//! iperf3's text: recordings of our own, made-up ones, and the text that recorded JSON would be.

use super::*;
use crate::read;
use serde_json::Value;

/// As iperf3 prints amounts: three digits or more, in steps of 1024 or 1000.
fn printed(value: &Value, step: f64, unit: &str) -> String {
    let mut value = value.as_f64().expect("a number");
    let mut letter = "";
    for next in ["K", "M", "G", "T"] {
        if value >= step {
            (value, letter) = (value / step, next);
        }
    }
    let digits = if value >= 99.995 {
        0
    } else if value >= 9.9995 {
        1
    } else {
        2
    };
    format!("{value:4.digits$} {letter}{unit}")
}

fn row(id: &str, role: &str, sum: &Value, end: &str) -> String {
    let time = |name: &str| sum[name].as_f64().expect("a time");
    let bytes = printed(&sum["bytes"], 1024.0, "Bytes");
    let bits = printed(&sum["bits_per_second"], 1e3, "bits/sec");
    let more = match (sum["jitter_ms"].as_f64(), sum["retransmits"].as_i64()) {
        (Some(jitter), _) => format!("{jitter:5.3} ms  {}/{} (0%)", sum["lost_packets"], sum["packets"]),
        (None, Some(count)) => format!("{count:3}"),
        (None, None) => String::new(),
    };
    let window = &sum["snd_cwnd"];
    let window =
        if window.is_null() { String::new() } else { format!("   {}", printed(window, 1024.0, "Bytes")) };
    format!(
        "[{id:>3}]{role} {:6.2}-{:<6.2} sec  {bytes}  {bits}  {more}{window}             {end}\n",
        time("start"),
        time("end")
    )
}

/// What iperf3 would have printed of a test whose JSON there is, with `-V`.
fn text_of(json: &str) -> String {
    let test: Value = serde_json::from_str(json).expect("JSON");
    let (start, end) = (&test["start"], &test["end"]);
    let setup = &start["test_start"];
    let word = |value: &Value| value.as_str().expect("a text").to_string();
    let both = end.get("sum_sent_bidir_reverse").is_some();
    let mut text = format!(
        "{}\n{}\nTime: {}\nConnecting to host {}, port 5201\n",
        word(&start["version"]),
        word(&start["system_info"]),
        word(&start["timestamp"]["time"]),
        word(&start["connecting_to"]["host"])
    );
    if setup["reverse"] == 1 {
        text.push_str("Reverse mode, remote host 127.0.0.1 is sending\n");
    }
    if setup["target_bitrate"].as_f64() > Some(0.0) {
        text.push_str(&format!("      Target Bitrate: {}\n", setup["target_bitrate"]));
    }
    for one in start["connected"].as_array().expect("streams") {
        let hosts = [word(&one["local_host"]), word(&one["remote_host"])];
        text.push_str(&format!(
            "[{:>3}] local {} port 1 connected to {} port 2\n",
            one["socket"], hosts[0], hosts[1]
        ));
    }
    text.push_str(&format!(
        "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting 0 seconds, {} second test, tos 0\n",
        word(&setup["protocol"]),
        setup["num_streams"],
        setup["blksize"],
        setup["duration"]
    ));
    let header = if both { "[ ID][Role]" } else { "[ ID]" };
    let header = format!("{header} Interval           Transfer     Bitrate         Retr  Cwnd\n");
    text.push_str(&header);
    let many = setup["num_streams"].as_i64() > Some(1);
    let ways: &[(&str, &str)] =
        if both { &[("", "[TX-C]"), ("_bidir_reverse", "[RX-C]")] } else { &[("", "")] };
    let role = |one: &Value| {
        if !both {
            ""
        } else if one["sender"] == true {
            "[TX-C]"
        } else {
            "[RX-C]"
        }
    };
    for interval in test["intervals"].as_array().expect("intervals") {
        for one in interval["streams"].as_array().expect("streams") {
            text.push_str(&row(&one["socket"].to_string(), role(one), one, ""));
        }
        if many {
            text.push_str(&row("SUM", "", &interval["sum"], ""));
        }
        text.push_str("- - - - - - - - - -\n");
    }
    text.push_str("Test Complete. Summary Results:\n");
    text.push_str(&header);
    for one in end["streams"].as_array().expect("streams") {
        for (name, end) in
            [("sender", "sender"), ("receiver", "receiver"), ("udp", "sender"), ("udp", "receiver")]
        {
            if one[name].is_object() {
                text.push_str(&row(&one[name]["socket"].to_string(), role(&one[name]), &one[name], end));
            }
        }
    }
    for (suffix, role) in ways.iter().filter(|_| many) {
        for (name, word) in [("sum_sent", "sender"), ("sum_received", "receiver")] {
            text.push_str(&row("SUM", role, &end[format!("{name}{suffix}")], word));
        }
    }
    let cpu = &end["cpu_utilization_percent"];
    let percent = |name: &str| cpu[name].as_f64().expect("a share");
    text.push_str(&format!(
        "CPU Utilization: local/sender {:.1}% (0.1%u/1.0%s), remote/receiver {:.1}% (1.0%u/1.0%s)\n",
        percent("host_total"),
        percent("remote_total")
    ));
    if let Some(congestion) = end["sender_tcp_congestion"].as_str() {
        text.push_str(&format!("snd_tcp_congestion {congestion}\nrcv_tcp_congestion {congestion}\n"));
    }
    text + "\niperf Done.\n"
}

/// All series of a result with their values.
fn series(imported: &Imported) -> Vec<(&str, Vec<f64>)> {
    let of = |figure: &'_ crate::Figure| {
        figure.judged.series.processes.iter().flat_map(|process| process.values.clone()).collect()
    };
    imported.figures.iter().map(|figure| (figure.judged.series.key.as_str(), of(figure))).collect()
}

#[test]
fn the_text_of_a_test_reads_as_its_json() {
    for name in ["iperf3-tcp.json", "iperf3-both.json", "iperf3-udp.json"] {
        let json = recorded(name);
        let (of_json, of_text) = (one(&json), one(&text_of(&json)));
        assert_eq!(of_json.host, of_text.host);
        assert_eq!(rules(&of_json), rules(&of_text), "{name}: {:?}", of_text.findings);
        let found = series(&of_text);
        for (key, values) in &found {
            let wanted = of_json.figures.iter().find(|figure| figure.judged.series.key == *key);
            assert!(wanted.is_some(), "{name}: {key} is not in the JSON");
            let wanted = crate::tests::values(&of_json, key);
            assert_eq!(values.len(), wanted.len(), "{name}: {key}");
            for (value, wanted) in values.iter().zip(&wanted) {
                // Three digits of each, jitter to a microsecond, and a time to 10 ms.
                let near = (value - wanted).abs() <= 0.011 * wanted.abs() + 0.0001;
                assert!(
                    near || key.ends_with("#jitter") && (value - wanted).abs() <= 0.5,
                    "{name}: {key} {value} {wanted}"
                );
            }
        }
        // Round trip times are in no text, and windows only in that of the end that sends.
        let missing: Vec<&str> = of_json
            .figures
            .iter()
            .map(|figure| figure.judged.series.key.as_str())
            .filter(|key| !key.contains("#rtt_") && !key.contains("way=receive/bytes=131072&streams=1#cwnd"))
            .filter(|key| !found.iter().any(|(known, _)| known == key))
            .collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

pub fn approx(found: &Imported, key: &str, wanted: &[f64]) {
    let values = values(found, key);
    let near = values.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs());
    assert!(near && values.len() == wanted.len(), "{key}: {values:?}, not {wanted:?}");
}

#[test]
fn the_client_of_many_tests() {
    let found = one(&recorded("iperf3-client.txt"));
    let tcp = |place: &str| format!("network.tcp@free?direction={place}");
    // The third is of `-f M`: MBytes are 2^20 bytes.
    let megabytes = 1255.0 * 8.0 * 1_048_576.0 / 1e9;
    approx(&found, &tcp("send/bytes=131072&streams=1#bandwidth"), &[12.6, 11.0, megabytes]);
    approx(&found, &tcp("send/bytes=131072&streams=1#retransmits"), &[1.5, 4.0, 3.0]);
    // What was omitted is in no interval.
    let intervals =
        [12.9, 12.4, 10.5, 11.6].into_iter().chain([1438.0, 1067.0].map(|rate| rate * megabytes / 1255.0));
    let intervals: Vec<f64> = intervals.collect();
    approx(&found, &tcp("send/bytes=131072&streams=1#interval_bandwidth"), &intervals);
    approx(&found, &tcp("receive/bytes=131072&streams=2#bandwidth"), &[10.9]);
    approx(&found, &tcp("receive/bytes=131072&streams=2#stream_bandwidth"), &[5.51, 5.37]);
    approx(&found, &tcp("both&way=send/bytes=131072&streams=1#bandwidth"), &[7.09]);
    approx(&found, &tcp("both&way=receive/bytes=131072&streams=1#bandwidth"), &[4.36]);
    let udp = |place: &str| format!("network.udp@free?direction={place}");
    approx(&found, &udp("send&rate=200/streams=1#bandwidth"), &[0.2]);
    approx(&found, &udp("send&rate=200/streams=1#loss"), &[1.0 / 763.0]);
    approx(&found, &udp("send&rate=200/streams=1#jitter"), &[9.0]);
    approx(&found, &udp("receive&rate=100/streams=2#bandwidth"), &[0.1]);
    approx(&found, &udp("both&rate=1.048576&way=send/bytes=1400&streams=1#bandwidth"), &[0.001_05]);
    approx(&found, &udp("both&rate=1.048576&way=receive/bytes=1400&streams=1#jitter"), &[14.0]);
    assert_eq!(
        skipped(&found, "iperf3.test@free#bandwidth"),
        "unable to connect to server: Connection refused"
    );
    assert_eq!(rules(&found), [""; 0], "{:?}", found.findings);
    assert!(!found.remarks.iter().any(|remark| remark.contains("not read")), "{:?}", found.remarks);
}

#[test]
fn the_server_of_the_same_tests() {
    let found = one(&recorded("iperf3-server.txt"));
    let key = |metric: &str| format!("network.tcp@free?direction=receive/bytes=131072&streams=1#{metric}");
    approx(&found, &key("bandwidth"), &[12.6, 11.0, 10.5]);
    let sent = "network.tcp@free?direction=send/bytes=131072&streams=2#";
    approx(&found, &format!("{sent}sent"), &[10.9]);
    assert!(skipped(&found, &format!("{sent}bandwidth")).contains("what arrived is unknown"));
    // A server sends where its client says that it does, and the other way is the way back.
    approx(&found, "network.tcp@free?direction=both&way=receive/bytes=131072&streams=1#bandwidth", &[7.09]);
    approx(&found, "network.tcp@free?direction=both&way=send/bytes=131072&streams=1#sent", &[4.39]);
    // The last client went away: its file says so before the test that it ended.
    assert_eq!(rules(&found), [INTERRUPTED]);
    assert!(found.remarks.iter().any(|remark| remark.contains("128 KiB unless")), "{:?}", found.remarks);
}

#[test]
fn what_asks_for_all_tells_all() {
    let found = one(&recorded("iperf3-verbose.txt"));
    assert_eq!(found.host, "testhost");
    for fact in [("iperf3", "3.12"), ("kernel", "6.18.44"), ("congestion", "bbr"), ("mss", "32768 B")] {
        assert!(
            found.make_up.contains(&(fact.0.to_string(), fact.1.to_string())),
            "{fact:?} {:?}",
            found.make_up
        );
    }
    let key = |metric: &str| format!("network.tcp@free?direction=send/bytes=131072&streams=1#{metric}");
    approx(&found, &key("bandwidth"), &[9.74]);
    approx(&found, &key("local_busy"), &[0.366]);
    approx(&found, &key("remote_busy"), &[0.278]);
    approx(&found, &key("cwnd_bytes"), &[1.25 * 1_048_576.0]);
    let both = "network.tcp@free?direction=both&rate=200&way=receive/bytes=131072&streams=2#bandwidth";
    approx(&found, both, &[0.201]);
    approx(&found, "network.udp@free?direction=receive&rate=100/bytes=32768&streams=1#bandwidth", &[0.101]);
}

#[test]
fn a_client_that_was_stopped_says_what_it_sent() {
    let text = recorded("iperf3-interrupted.txt");
    let of_terminal = text.lines().skip(1).chain(text.lines().take(1)).collect::<Vec<_>>().join("\n");
    // In a file the error stands before, on a terminal behind.
    for text in [text, of_terminal] {
        let found = one(&text);
        let key = |metric: &str| format!("network.tcp@free?direction=send/bytes=131072&streams=1#{metric}");
        assert!(skipped(&found, &key("bandwidth")).contains("7.940 Gbit/s were sent"));
        assert_eq!(rules(&found), [INTERRUPTED]);
        assert_eq!(
            found.figures.iter().filter(|figure| figure.judged.series.key.contains("iperf3.test")).count(),
            0
        );
    }
    let begun = "Connecting to host 10.0.0.2, port 5201\n[  5] local 10.0.0.1 port 1 connected to 10.0.0.2 port 5201\n";
    let found = one(&format!("{begun}[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"));
    assert!(
        skipped(&found, "network.tcp@free?direction=send/bytes=131072&streams=1#bandwidth")
            .contains("no sum")
    );
    assert_eq!(rules(&found), [INTERRUPTED]);
}

/// Two seconds of an old version, with these columns of sums.
fn old(header: &str, interval: &str, sums: &[&str]) -> String {
    let sums: String = sums.iter().map(|sum| format!("[  4]   0.00-2.00   sec  {sum}\n")).collect();
    format!(
        "Connecting to host 10.0.0.2, port 5201\n[  4] local 10.0.0.1 port 40000 connected to 10.0.0.2 port 5201\n\
         [ ID] Interval           Transfer     Bandwidth       {header}\n[  4]   0.00-1.00   sec  {interval}\n\
         [  4]   1.00-2.00   sec  {interval}\n- - - - - - - - - - - - -\n\
         [ ID] Interval           Transfer     Bandwidth       {header}\n{sums}\niperf Done.\n"
    )
}

#[test]
fn units_and_columns_of_all_versions() {
    let key = "network.tcp@free?direction=send/bytes=131072&streams=1#bandwidth";
    for (amount, rate, gbit) in [
        ("2.19 GBytes", "9.42 Gbits/sec", 9.42),
        ("22.5 MBytes", "94.2 Mbits/sec", 0.0942),
        ("2.25 MBytes", "9418 Kbits/sec", 0.009418),
        ("230 KBytes", "942000 bits/sec", 0.000942),
        ("2.19 GBytes", "1123 MBytes/sec", 1123.0 * 8.0 * 1_048_576.0 / 1e9),
        ("2.19 GBytes", "1.10 GBytes/sec", 1.1 * 8.0 * 1_073_741_824.0 / 1e9),
        ("22.5 MBytes", "11520 KBytes/sec", 11520.0 * 8.0 * 1024.0 / 1e9),
    ] {
        let row = |end: &str| format!("{amount}  {rate}    0             {end}");
        let text = old(
            "Retr  Cwnd",
            &format!("{amount}  {rate}    0   3.01 MBytes"),
            &[&row("sender"), &row("receiver")],
        );
        let found = one(&text);
        approx(&found, key, &[gbit]);
        assert_eq!(rules(&found), [""; 0], "{amount} in 2 s is {rate}");
    }
    // Of another test, or edited: 4 times what it moved.
    let wrong = old(
        "Retr  Cwnd",
        "2.19 GBytes  9.42 Gbits/sec    0   3.01 MBytes",
        &[
            "2.19 GBytes  37.7 Gbits/sec    0             sender",
            "2.19 GBytes  9.42 Gbits/sec                  receiver",
        ],
    );
    assert_eq!(rules(&one(&wrong)), [FIGURES_DISAGREE]);
    // Before 3.7 a sender of datagrams has one sum: what it sent, and what of it was lost.
    let text = old(
        "Total Datagrams",
        "119 MBytes  998 Mbits/sec  15232",
        &["238 MBytes  998 Mbits/sec  0.012 ms  3046/30464 (10%)"],
    )
    .replace("iperf Done.", "[  4] Sent 30464 datagrams\n\niperf Done.");
    let found = one(&text);
    approx(&found, "network.udp@free?direction=send/streams=1#sent", &[0.998]);
    approx(&found, "network.udp@free?direction=send/streams=1#loss", &[3046.0 / 30464.0]);
    approx(
        &found,
        "network.udp@free?direction=send/streams=1#bandwidth",
        &[0.998 * (1.0 - 3046.0 / 30464.0)],
    );
    assert!(found.remarks.iter().any(|remark| remark.contains("its target rate is unknown")));
}

#[test]
fn its_elder_and_its_json_are_told_from_its_text() {
    let elder = "------------------------------------------------------------\nClient connecting to 10.0.0.2, TCP port 5001\n\
                 TCP window size: 85.0 KByte (default)\n[  3] local 10.0.0.1 port 40000 connected with 10.0.0.2 port 5001\n\
                 [ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  1.10 GBytes   941 Mbits/sec\n\
                 [  3]  0.00-10.01 sec  1.10 GBytes   941 Mbits/sec\n";
    assert!(!super::super::is_one(elder));
    // Both in one log: each test is read once.
    let text = format!("{}\n{}", recorded("iperf3-tcp.json"), recorded("iperf3-client.txt"));
    let all = read(text.as_bytes()).expect("results");
    assert_eq!(all.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), ["testhost", "unknown"]);
    approx(&all[0], "network.tcp@free?direction=send/bytes=131072&streams=2#bandwidth", &[26.03999491810336]);
}

#[test]
fn tests_of_other_servers_and_options_are_other_results() {
    let text = old(
        "Retr",
        "1 Bytes  1 bits/sec    0",
        &[
            "2.19 GBytes  9.42 Gbits/sec    0             sender",
            "2.19 GBytes  9.40 Gbits/sec                  receiver",
        ],
    );
    let count = |text: String| read(text.as_bytes()).expect("results").len();
    assert_eq!(count(format!("{text}{text}")), 1);
    let key = "network.tcp@free?direction=send/bytes=131072&streams=1#bandwidth";
    assert_eq!(values(&one(&format!("{text}{text}")), key), [9.4], "the same ports: pasted twice");
    assert_eq!(values(&one(&format!("{text}{}", text.replace("40000", "40002"))), key), [9.4, 9.4]);
    assert_eq!(count(format!("{text}{}", text.replace("10.0.0.2", "10.0.0.3"))), 2);
    assert_eq!(count(format!("{text}with jumbo frames\n{text}")), 2);
    assert_eq!(count(format!("$ iperf3 -c 10.0.0.2 -t 2\n{text}$ iperf3 -c 10.0.0.2 -t 2 -Z\n{text}")), 2);
    assert_eq!(
        count(format!("a@one:~$ iperf3 -c 10.0.0.2 -t 2\n{text}a@two:~$ iperf3 -c 10.0.0.2 -t 2\n{text}")),
        2
    );
}

/// Every pattern is that of a line that iperf3 printed.
#[test]
fn every_pattern_has_an_example() {
    let names =
        ["client", "server", "verbose", "interrupted"].map(|name| recorded(&format!("iperf3-{name}.txt")));
    let other = "[  4] Sent 30464 datagrams\nFinished omit period, starting real test\n\
                 [SUM]  0.0-10.0 sec  12 datagrams received out-of-order\n[  5] (sender statistics not available)\n";
    let lines = crate::iperf3::text::lines::LINES;
    let table = crate::kit::Table::new(lines);
    let known = names.iter().flat_map(|text| text.lines()).chain(other.lines());
    let known: std::collections::BTreeSet<usize> = known.filter_map(|line| table.place(line)).collect();
    let unused: Vec<&str> =
        (0..lines.len()).filter(|at| !known.contains(at)).map(|at| lines[at].regex).collect();
    assert!(unused.is_empty(), "{unused:#?}");
}
