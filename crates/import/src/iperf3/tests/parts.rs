//! Which lines of iperf3's text are of one test, and which tests repeat each other.

use super::text::approx;
use super::*;
use crate::read;

const SENT: &str = "network.tcp@free?direction=send/bytes=131072&streams=1#bandwidth";

/// What a client printed of two seconds at `gbit` Gbit/s, without its first lines.
fn rows_of(gbit: f64) -> String {
    let row = |from: u32, to: u32, end: &str| {
        let bytes = gbit * f64::from(to - from) / 8.0 / 1.073741824;
        format!("[  5]   {from}.00-{to}.00   sec  {bytes:.2} GBytes  {gbit:.2} Gbits/sec    0  {end}\n")
    };
    let header = "[ ID] Interval           Transfer     Bitrate         Retr";
    let sums = row(0, 2, "sender") + &row(0, 2, "receiver").replace("    0  receiver", "  receiver");
    format!(
        "{header}  Cwnd\n{}{}- - - - -\n{header}\n{sums}",
        row(0, 1, "3.00 MBytes"),
        row(1, 2, "3.00 MBytes")
    )
}

/// The bandwidths of each result of a text.
fn each(text: &str) -> Vec<Vec<f64>> {
    let all = read(text.as_bytes()).unwrap_or_else(|error| panic!("{error:#}: {text}"));
    all.iter().map(|one| values(one, SENT)).collect()
}

#[test]
fn tests_without_their_first_lines_are_told_apart() {
    let sums = |gbit: f64| {
        rows_of(gbit)
            .lines()
            .rev()
            .take(2)
            .map(|line| format!("{line}\n"))
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<String>()
    };
    let looks =
        |gbit: f64| rows_of(gbit).lines().skip(1).take(2).map(|line| format!("{line}\n")).collect::<String>();
    let (a, b) = (4.0, 9.0);
    for part in [
        rows_of as fn(f64) -> String,
        |gbit| rows_of(gbit).replace("- - - - -\n", ""),
        |gbit| rows_of(gbit) + "\niperf Done.\n",
    ] {
        assert_eq!(each(&format!("Before:\n{}After:\n{}", part(a), part(b))), [[a], [b]]);
        assert_eq!(each(&format!("{}{}", part(a), part(b))), [[a, b]]);
    }
    assert_eq!(each(&format!("Before:\n{}\nAfter:\n{}", sums(a), sums(b))), [[a], [b]]);
    assert_eq!(each(&format!("{}{}{}", sums(a), sums(b), sums(a))), [[a, b, a]]);
    assert_eq!(each(&format!("## x\n{}{}## y\n{}", sums(a), sums(b), sums(a))), [vec![a, b], vec![a]]);
    // Intervals alone have no sum, and each test has its own.
    let found =
        read(format!("Before:\n{}After:\n{}{}", looks(a), looks(b), rows_of(b)).as_bytes()).expect("results");
    let of = |one: &Imported| values(one, &SENT.replace("#", "#interval_"));
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), [vec![a, a], vec![b; 4]]);
    let udp = |gbit: &str| {
        rows_of(a)
            .lines()
            .rev()
            .take(2)
            .map(|line| {
                line.replace("4.00 Gbits/sec    0", &format!("{gbit} Gbits/sec  0.010 ms  2/148000 (0%)"))
                    .replace("4.00 Gbits/sec  r", &format!("{gbit} Gbits/sec  0.010 ms  2/148000 (0%)  r"))
                    + "\n"
            })
            .collect::<String>()
    };
    let found = read(format!("Before:\n{}After:\n{}", udp("1.00"), udp("0.90")).as_bytes()).expect("results");
    let key = "network.udp@free?direction=send/streams=1#bandwidth";
    assert_eq!(found.iter().map(|one| values(one, key)).collect::<Vec<_>>(), [[1.0], [0.9]]);
}

#[test]
fn sums_of_streams_that_are_not_told_are_read() {
    let found = read(recorded("iperf3-sums-alone.txt").as_bytes()).expect("results");
    let key = "network.tcp@free?direction=send/bytes=131072#bandwidth";
    assert_eq!(found.iter().map(|one| values(one, key)).collect::<Vec<_>>(), [[9.4], [18.9]]);
    assert!(found.iter().all(|one| one.remarks.iter().any(|remark| remark.contains("number of streams"))));
    assert!(found.iter().all(|one| rules(one).is_empty()));
    let with = |lines: &str| {
        one(&(recorded("iperf3-sums-alone.txt").split("After").next().expect("a part").to_string() + lines))
    };
    let stream = "[  5]   0.00-10.00  sec  5.50 GBytes  4.70 Gbits/sec                  receiver\n";
    approx(&with(stream), key, &[9.4]);
    let two = stream.to_string() + &stream.replace("  5]", "  7]");
    approx(&with(&two), &key.replace("131072#", "131072&streams=2#"), &[9.4]);
}

#[test]
fn tests_that_ran_at_once_are_not_mixed_up() {
    let text = recorded("iperf3-two-at-once.txt");
    let other = text
        .replace("10.0.0.9 port 5202", "10.0.0.8 port 5202")
        .replace("10.0.0.9, port 5202", "10.0.0.8, port 5202");
    let late = {
        let (first, second) = (rows_of(4.0), rows_of(9.0));
        let (first, second): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
        let begin = "Connecting to host 10.0.0.9, port 5201\n";
        format!(
            "{begin}{}\n{}\n{begin}{}\n{}\n{}\n{}",
            first[0],
            first[1],
            second[0],
            first[2],
            second[1..].join("\n"),
            first[3..].join("\n")
        )
    };
    let lines: Vec<&str> = text.lines().collect();
    let begun = [&[lines[0], lines[2], lines[1], lines[3]], &lines[4..]].concat().join("\n");
    for text in [text.clone(), other, late, begun] {
        for one in read(text.as_bytes()).expect("results") {
            assert!(
                skipped(&one, "iperf3.test@free#bandwidth").contains("two tests that ran at once"),
                "{text}"
            );
            assert_eq!((one.figures.len(), rules(&one)), (1, vec![]), "{text}");
        }
    }
    // One that died before another began is mixed with nothing.
    let begin = "Connecting to host 10.0.0.9, port 5201\n";
    let found = one(&format!(
        "{begin}[  5] local 10.0.0.1 port 1 connected to 10.0.0.9 port 5201\n{begin}{}",
        rows_of(4.0)
    ));
    approx(&found, SENT, &[4.0]);
    let found = read(recorded("iperf3-two-processes.log").as_bytes()).expect("results");
    assert_eq!(found.iter().map(|one| values(one, SENT)).collect::<Vec<_>>(), [[3.99], [8.99]]);
}

#[test]
fn rows_that_a_mail_wrapped_are_whole() {
    let plain = one(&recorded("iperf3-verbose.txt"));
    for width in [60, 66, 72, 78] {
        let wrap = |line: &str| match line.char_indices().rfind(|(at, one)| *one == ' ' && *at <= width) {
            Some((at, _)) if line.trim_end().len() > width && line.starts_with('[') => {
                format!("{}\n{}\n", line[..at].trim_end(), line[at..].trim_start())
            }
            _ => format!("{line}\n"),
        };
        let wrapped = one(&recorded("iperf3-verbose.txt").lines().map(wrap).collect::<String>());
        assert_eq!(wrapped.figures, plain.figures, "{width}");
    }
}

#[test]
fn other_clients_and_days_are_other_results() {
    let text = format!(
        "Connecting to host 10.0.0.9, port 5201\n[  5] local 10.0.0.1 port 40000 connected to 10.0.0.9 port 5201\n{}\niperf Done.\n",
        rows_of(4.0)
    );
    let of =
        |change: &dyn Fn(&str) -> String| each(&format!("{text}{}", change(&text.replace("40000", "40002"))));
    let apart = [[4.0], [4.0]];
    assert_eq!(of(&|text| text.replace("10.0.0.1 ", "10.0.0.2 ")), apart);
    assert_eq!(of(&|text| format!("NIC 82:00.1\n{text}")), apart);
    assert_eq!(of(&|text| format!("### 9000\n{text}")), apart);
    assert_eq!(of(&|text| format!("# tc qdisc add dev eth0 root fq; iperf3 -c 10.0.0.9\n{text}")), apart);
    assert_eq!(of(&|text| text.to_string()), [[4.0, 4.0]]);
    assert_eq!(of(&|text| format!("12:30:01\n{text}")), [[4.0, 4.0]]);
    let at = |time: &str, port: &str| format!("Time: {time} GMT\n{}", text.replace("40000", port));
    let days = |one: &str, other: &str| each(&(at(one, "40000") + &at(other, "40002"))).len();
    assert_eq!(days("Sun, 29 Nov 2026 07:46:32", "Mon, 30 Nov 2026 07:46:32"), 2);
    assert_eq!(days("Sun, 29 Nov 2026 07:46:32", "Sun, 29 Nov 2026 09:46:32"), 1);
}
