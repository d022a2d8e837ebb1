//! netperf: classic tables and omni output as recorded, and what their passes report about
//! themselves.

/// The medians of a key's figures, in the text's order of results.
fn values(text: &str, key: &str) -> Vec<f64> {
    let all = crate::read(text.as_bytes()).expect("a result");
    let figures = all.iter().flat_map(|one| &one.figures).filter(|one| one.judged.series.key == key);
    figures.filter_map(|one| Some(rounded(one.judged.analysis.estimate.as_ref()?.median))).collect()
}

/// Without what binary fractions add.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

fn file(name: &str) -> String {
    std::fs::read_to_string(testkit::root().join("tests/foreign").join(name)).expect("a file of the corpus")
}

fn findings(text: &str) -> Vec<String> {
    let all = crate::read(text.as_bytes()).expect("a result");
    all.iter().flat_map(|one| &one.findings).map(|finding| finding.rule.clone()).collect()
}

/// Each number as its line has it, found without a pattern: the first line that begins so behind
/// the one that has this text.
#[test]
fn numbers_are_those_of_the_files() {
    const STREAM: &str = "network.tcp@free?direction=send/bytes=16384&streams=1#";
    const DATAGRAMS: &str = "network.udp@free?direction=send/bytes=65507&streams=1#";
    let rows: [(&str, &str, &str, usize, f64, String); 12] = [
        ("classic", "TCP STREAM TEST", "131072", 4, 1e-3, format!("{STREAM}bandwidth")),
        ("classic", "TCP MAERTS", "131072", 4, 1e-3, format!("{STREAM}bandwidth").replace("send", "receive")),
        ("classic", "UDP STREAM TEST", "212992   65507", 5, 1e-3, format!("{DATAGRAMS}sent")),
        ("classic", "UDP STREAM TEST", "212992         ", 3, 1e-3, format!("{DATAGRAMS}bandwidth")),
        ("classic", "TCP REQUEST", "16384", 5, 1.0, "network.request@free/bytes=1&depth=1#rate".into()),
        ("classic", "Connect/Request", "16384", 5, 1.0, "network.connect@free#rate".into()),
        ("cpu", "TCP STREAM TEST", "131072", 7, 1.0, format!("{STREAM}local_service_demand")),
        ("cpu", "UDP STREAM TEST", "212992         ", 5, 1.0, format!("{DATAGRAMS}remote_service_demand")),
        (
            "cpu",
            "UDP REQUEST",
            "212992",
            6,
            0.01,
            "network.request@free?protocol=udp/bytes=1&depth=1#local_cpu".into(),
        ),
        (
            "units",
            "-m 131072",
            "2097152",
            4,
            1.0,
            "network.tcp@free?direction=send/bytes=131072&streams=1#bandwidth".into(),
        ),
        (
            "units",
            "first burst 4",
            "16384",
            5,
            1.0,
            "network.request@free/bytes=64&depth=5&response=1024#rate".into(),
        ),
        ("confidence", "UDP STREAM TEST", "212992         ", 3, 1e-3, format!("{DATAGRAMS}bandwidth")),
    ];
    for (name, behind, begin, word, factor, key) in rows {
        let text = file(&format!("netperf-debian-{name}.txt"));
        let mut lines = text.lines().skip_while(|line| !line.contains(behind)).skip(1);
        let line = lines.find(|line| line.starts_with(begin)).expect(behind);
        crate::tests::found::stands(&text, line, word, factor, &key);
    }
}

#[test]
fn the_same_values_are_read_of_each_form() {
    let banner = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to h () port 0 AF_INET : first burst 0\n";
    let keys = "THROUGHPUT=20000.50\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=10.00\nREQUEST_SIZE=1\nRESPONSE_SIZE=1\nP99_LATENCY=70\n";
    let csv = "Throughput,Throughput Units,Elapsed Time (sec),Request Size Bytes,Response Size Bytes,99th Percentile Latency Microseconds\n20000.50,Trans/s,10.00,1,1,70\n";
    let columns = "\
Throughput Throughput Elapsed Request Response 99th
           Units      Time    Size    Size     Percentile
                      (sec)   Bytes   Bytes    Latency
                                               Microseconds

20000.50   Trans/s    10.00   1       1        70
";
    for form in [keys, csv, columns] {
        let text = format!("{banner}{form}");
        assert_eq!(values(&text, "network.request@free/bytes=1&depth=1#rate"), [20_000.5], "{text}");
        let p99 = "network.round-trip@free?protocol=tcp/bytes=1#latency_p99";
        assert_eq!(values(&text, p99), [70.0], "{text}");
        // Too few requests for a percentile.
        let few = text.replace("20000.50", "00020.50");
        assert!(values(&few, p99).is_empty(), "{few}");
        assert_eq!(values(&few, "network.request@free/bytes=1&depth=1#rate"), [20.5]);
    }
}

#[test]
fn what_nothing_tells_is_no_figure() {
    let row = "131072  16384  16384    10.00     9414.25\n";
    let key = "network.tcp@free?direction=send/bytes=16384&streams=1#bandwidth";
    let asked = format!("$ netperf -H h -t TCP_STREAM -P 0\n{row}");
    assert_eq!(values(&asked, key), [9.41425]);
    let megabytes = format!("$ netperf -H h -f M -P 0\n{row}");
    assert_eq!(values(&megabytes, key), [rounded(9414.25 * 8.0 * 1_048_576.0 / 1e9)]);
    // Another program's row, below a command that would have printed a banner.
    let others = crate::read(format!("$ netperf -H h\n$ other\n{row}").as_bytes());
    assert!(
        others.iter().flatten().flat_map(|one| &one.figures).all(|one| one
            .judged
            .analysis
            .estimate
            .is_none())
    );
    // Neither the test nor the unit is printed.
    let bare = format!("of netperf\nnetperf said\n{row}");
    let all = crate::read(bare.as_bytes()).map(|all| all.len());
    assert!(all.is_err() || values(&bare, key).is_empty(), "{bare}");
    let banner = "TCP STREAM TEST to h\n";
    assert!(values(&format!("{banner}{row}"), key).is_empty());
    let unit = "bytes  bytes   bytes    secs.    10^6bits/sec\n";
    assert_eq!(values(&format!("{banner}{unit}{row}"), key), [9.41425]);
    // An omni test does not say over what it is.
    let omni = "OMNI Send TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to h () port 0 AF_INET\n";
    let keys = "LOCAL_SEND_SIZE=16384\nTHROUGHPUT=9414.25\nTHROUGHPUT_UNITS=10^6bits/s\n";
    assert!(values(&format!("{omni}{keys}"), key).is_empty());
    assert_eq!(values(&format!("{omni}PROTOCOL=TCP\n{keys}"), key), [9.41425]);
    assert_eq!(values(&format!("$ netperf -H h -t omni -- -k\n{omni}{keys}"), key), [9.41425]);
}

#[test]
fn passes_too_far_apart_are_a_finding() {
    let unsure = file("netperf-debian-confidence.txt");
    assert_eq!(findings(&unsure), ["confidence-not-reached"; 3]);
    assert!(findings(&file("netperf-debian-classic.txt")).is_empty());
    let keys = "THROUGHPUT=100.00\nTHROUGHPUT_UNITS=10^6bits/s\nPROTOCOL=TCP\nDIRECTION=Send\nCONFIDENCE_LEVEL=99\nCONFIDENCE_INTERVAL=5.000000\nTHROUGHPUT_CONFID=";
    assert_eq!(findings(&format!("{keys}5.100\n")), ["confidence-not-reached"]);
    assert!(findings(&format!("{keys}4.900\n")).is_empty());
    let edited = file("netperf-debian-classic.txt").replace("21472.76", "31472.76");
    assert_eq!(findings(&edited), ["figures-disagree"]);
}

/// The requested and the reached interval are noted with the figure and distinguish results.
#[test]
fn the_interval_of_passes_is_told() {
    let note = |text: &str, metric: &str| -> Vec<String> {
        let all = crate::read(text.as_bytes()).expect("a result");
        let figures = all.iter().flat_map(|one| &one.figures);
        figures.filter(|one| one.judged.series.key.ends_with(metric)).map(|one| one.note.clone()).collect()
    };
    let told = |text: &str| -> Vec<String> {
        let all = crate::read(text.as_bytes()).expect("a result");
        let told = all.iter().flat_map(|one| &one.make_up).filter(|(label, _)| label == "confidence");
        told.map(|(_, value)| value.clone()).collect()
    };
    let text = file("netperf-debian-confidence.txt");
    assert_eq!(
        told(&text),
        [(1, 99), (50, 99), (5, 95)].map(|(width, at)| format!("an interval of {width} % at {at} %"))
    );
    let expected = "the mean of several passes; requested an interval of 1 % at 99 %, it reached 254.004 %";
    assert_eq!(note(&text, "#bandwidth")[0], expected);
    let keys = file("netperf-debian-omni-keys.txt");
    let expected = "the mean of several passes; requested an interval of 2 % at 99 %, it reached 82.522 %";
    assert!(note(&keys, "#bandwidth").iter().any(|note| note == expected), "{:?}", note(&keys, "#bandwidth"));
    assert_eq!(told(&keys), ["an interval of 2 % at 99 %"]);
    let calm = file("netperf-debian-no-time.txt");
    assert!(note(&calm, "#sent").iter().any(|note| note.contains("requested an interval of 90 % at 95 %")));
    let banner = |more: &str| {
        format!(
            "TCP STREAM TEST to h : {more}\nbytes  bytes   bytes    secs.    10^6bits/sec\n131072  16384  16384    10.00     9414.25\n"
        )
    };
    let two = banner("+/-2.500% @ 99% conf.") + &banner("+/-0.500% @ 95% conf.") + &banner("demo");
    assert_eq!(crate::read(two.as_bytes()).expect("results").len(), 3);
}

/// What took no time has no rate, whether few requests or an edit caused it.
#[test]
fn a_test_of_no_time_has_no_figures() {
    let all = crate::read(file("netperf-debian-no-time.txt").as_bytes()).expect("a result");
    for key in [
        "network.request@free/bytes=1&depth=1#rate",
        "network.tcp@free?direction=send/bytes=16384&streams=1#bandwidth",
    ] {
        let one = all.iter().find(|one| one.figures.iter().any(|one| one.judged.series.key == key));
        let why = crate::tests::skipped(one.expect(key), key);
        assert!(why.contains("it took 0.00 s, too short to measure anything"), "{key}: {why}");
    }
    let edited = file("netperf-debian-cpu.txt")
        .replace("1.00 ", "0.00 ")
        .replace("1.01 ", "0.00 ")
        .replace("1.02 ", "0.00 ");
    let all = crate::read(edited.as_bytes()).expect("a result");
    let figures = || all.iter().flat_map(|one| &one.figures);
    let with = figures().filter(|one| one.judged.analysis.estimate.is_some());
    let with: Vec<&str> = with.map(|one| one.judged.series.key.as_str()).collect();
    assert!(figures().count() > 10 && with.is_empty(), "{with:?}");
}

#[test]
fn interim_results_are_intervals() {
    let text = file("netperf-debian-interim.txt");
    let told = text.lines().filter_map(|line| line.strip_prefix("Interim result: "));
    let first: f64 =
        told.clone().next().and_then(|line| line.split(' ').next()).expect("one").parse().expect("a number");
    let all = crate::read(text.as_bytes()).expect("a result");
    let rates = all
        .iter()
        .flat_map(|one| &one.figures)
        .filter(|one| one.judged.series.key.ends_with("#interval_rate"));
    let rates: Vec<f64> = rates.flat_map(|one| one.judged.series.values().concat()).collect();
    assert_eq!(rates.first(), Some(&first));
}
