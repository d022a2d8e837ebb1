//! Tools that measure memory and lines between CPUs: figures as their lines have them, found
//! without a pattern.

use std::collections::BTreeSet;

use super::foreign::cases;
use super::found::{self, values};
use super::recorded;
use crate::kit::{Pattern, Table};
use crate::{bw_mem, core_to_core, mlc, multichase, read};

/// File, the start of a line, which of them, which of its words, what one of it is, key.
#[rustfmt::skip]
const ROWS: &[(&str, &str, usize, usize, f64, &str)] = &[
    ("multichase.txt", "1795971", 0, 1, 1.0, "memory.multichase@one-cpu?chase=parallel4&stride=256/bytes=16777216&threads=1#latency_min"),
    ("multichase-pingpong.txt", " 2:", 0, 2, 1.0, "memory.core-to-core@all/from=2&to=5#latency"),
    ("multichase-pingpong.txt", " 0:", 1, 1, 1.0, "memory.multichase-pingpong@all?by=compare-and-swap/from=0&to=1#latency"),
    ("multiload.txt", "3 ", 0, 7, 1_048_576e-9, "memory.multiload@free?load=memcpy-libc/bytes=67108864&threads=2#bandwidth_max"),
    ("core-to-core.csv", "70.25,", 0, 0, 1.0, "memory.core-to-core-latency@all/from=0&to=3#latency"),
    ("lmbench-bw-mem.txt", "16.78 ", 0, 1, 1e-3, "memory.bandwidth@one-cpu?op=write/bytes=16777216#bandwidth"),
    ("lmbench-bw-mem.txt", "8.00 ", 0, 1, 1e-3, "lmbench.bw-mem@free?op=cp/bytes=8000000&processes=2#bandwidth"),
    ("lmbench-bw-mem.txt", "0.01562 ", 0, 1, 1.0, "memory.latency@one-cpu?order=stride&stride=64/bytes=16384#latency"),
    ("lmbench-bw-mem.txt", "0.01562 ", 1, 1, 1.0, "lmbench.random-load-latency@one-cpu?stride=128/bytes=16384#latency"),
    ("lmbench-bw-mem.txt", "0.01562 ", 2, 1, 1.0, "lmbench.load-latency@free?order=stride&stride=256/bytes=16384&processes=2#latency"),
    ("sbc-bench.md", "  * cpu4", 0, 4, 1e-3, "sbc-bench.tinymembench@free?core=cortex-a76&cpu=cpu4#memcpy"),
    ("sbc-bench.md", "  * cpu4", 1, 12, 1.0, "sbc-bench.ramlat@free?core=cortex-a76&cpu=cpu4/bytes=16777216#latency_8xptr"),
    ("sbc-bench.md", "  * 7-zip", 0, 7, 1.0, "sbc-bench.7-zip@free#mips"),
    ("sbc-bench-one-cluster.txt", "  * 7-zip", 0, 12, 1.0, "sbc-bench.7-zip@free#mips_single_threaded"),
    ("mlc.txt", "       1", 0, 1, 1.0, "memory.mlc-idle-latency@node?access=sequential/from=1&node=0#latency"),
    ("mlc.txt", "       1", 1, 2, 1e-3, "memory.mlc-node-bandwidth@node?traffic=read-only/from=1&node=1#bandwidth"),
    ("mlc.txt", "2:1", 0, 3, 1e-3, "memory.mlc-peak@all?mix=2-1-reads-writes#bandwidth"),
    ("mlc.txt", " 00500", 0, 1, 1.0, "memory.mlc-loaded@all?access=sequential&traffic=read-only/delay=500#latency"),
    ("mlc.txt", "            1", 1, 1, 1.0, "memory.mlc-cache-to-cache@node?home=reader&socket=remote&state=hitm/reader=0&writer=1#latency"),
    ("mlc-single.txt", "Each iteration", 0, 8, 1.0, "memory.mlc-idle@one-cpu/bytes=256000#latency"),
];

#[test]
fn each_figure_is_what_its_line_has() {
    for (name, begin, which, word, factor, key) in ROWS {
        let text = recorded(name);
        let line = text.lines().filter(|line| line.starts_with(begin)).nth(*which).expect(name);
        found::stands(&text, line, *word, *factor, key);
    }
}

/// The CPUs of a table are those of its head, and those of CSV the ones that were asked for.
#[test]
fn pairs_keep_their_cpus() {
    let all = read(recorded("core-to-core-four.txt").as_bytes()).expect("read");
    let of = |from: u32, to: u32| {
        values(
            &all,
            &format!("memory.core-to-core-latency@all?by=compare-and-exchange/from={from}&to={to}#latency"),
        )
    };
    // Of the table of whole numbers, and of another run's below it.
    assert_eq!((of(0, 4), of(4, 8), of(2, 10)), (vec![163.0, 161.0], vec![90.125], vec![143.0]));
    assert_eq!(values(&all, "memory.core-to-core@all/from=0&to=10#latency"), [57.0]);
    assert_eq!(values(&all, "memory.core-to-core-latency@all?by=message/from=10&to=2#latency"), [172.0]);
}

/// A matrix of numbers without any description is read if no other tool writes such a form;
/// anything less is read only where its tool is named.
#[test]
fn csv_alone_is_a_matrix_of_means_of_times_without_an_upper_half() {
    let key = "memory.core-to-core-latency@all/from=1&to=2#latency";
    let found = |text: &str| read(text.as_bytes()).map(|all| values(&all, key)).unwrap_or_default();
    let own = ",,,\n21.419,,,\n68.0421,7.12533,,\n70.25,69.6312,21.907,\n";
    let (typed, three) = (",,,\n21,,,\n68,7.5,,\n70.25,69.6,21.907,\n", ",,\n21.419,,\n68.0421,7.12533,\n");
    for text in [own.to_string(), own.replace('\n', "\r\n"), format!("of last week\n{own}behind it\n")] {
        assert_eq!(found(&text), [7.12533], "{text:?}");
        let all = read(text.as_bytes()).expect("read");
        assert!(all[0].remarks.iter().any(|one| one.contains("only its form")), "{:?}", all[0].remarks);
    }
    // A square that is not as the tool writes it, whatever is said of it.
    let bent = [
        ("68.0421,7.12533,,", "68.0421,,,"),
        (",,,\n21.419", "1,,,\n21.419"),
        ("21.907,\n", "21.907\n"),
        ("70.25,69.6312,21.907,\n", ""),
        ("7.12533", "7.12x33"),
    ];
    let bent: Vec<String> = bent.iter().map(|(part, instead)| own.replace(part, instead)).collect();
    // Shares, distances, typed numbers, and too few CPUs.
    let others = ["7.12533:0.71253", "7.12533:-7.12533", "21.907:21907.125", "7.12533:0.00000"];
    let others = others.iter().map(|one| one.split_once(':').expect("a pair"));
    let others: Vec<String> = others.map(|(part, instead)| own.replace(part, instead)).collect();
    for text in bent.iter().chain(&others).map(String::as_str).chain([typed, three]) {
        assert!(found(text).is_empty(), "{text:?}");
    }
    for text in [typed, three] {
        let error = read(text.as_bytes()).expect_err("refused").to_string();
        assert!(error.contains("if core-to-core-latency printed it, write that name"), "{error}");
        assert_eq!(found(&format!("core-to-core-latency on the new host\n{text}")).len(), 1, "{text:?}");
    }
}

/// A number without its command belongs to no tool; a matrix does not say how it was made.
#[test]
fn what_a_text_does_not_tell_is_in_no_key() {
    assert!(read(b"multichase\n 101.5\n").is_err());
    let text = recorded("multichase-pingpong.txt");
    let bare: String =
        text.lines().filter(|line| !line.starts_with('$')).map(|line| format!("{line}\n")).collect();
    let all = read(bare.as_bytes()).expect("read");
    assert!(values(&all, "memory.core-to-core@all/from=0&to=1#latency").is_empty());
    assert_eq!(values(&all, "memory.multichase-pingpong@all/from=0&to=2#latency"), [21.5, 21.6]);
}

/// A size and a rate without a command are of an unknown operation.
#[test]
fn pairs_without_a_command_have_no_operation() {
    let all = read(b"bw_mem, on the new host:\n8.39 5403.78\n16.78 4000.10\n").expect("read");
    assert!(
        all.iter().flat_map(|one| &one.figures).all(|one| one.judged.analysis.estimate.is_none()),
        "{all:#?}"
    );
    let reason = &all[0].figures[0].judged.analysis.verdict.reason;
    assert!(reason.contains("is unknown"), "{reason}");
}

/// Every pattern is that of a line in the corpus or among these.
#[test]
fn every_pattern_has_an_example() {
    const OTHERS: &str = "malloc allocation\n";
    let texts: Vec<String> = cases()
        .iter()
        .map(|case| String::from_utf8_lossy(&case.bytes).into_owned())
        .chain([OTHERS.into()])
        .collect();
    let all: [&[Pattern]; 4] = [bw_mem::LINES, multichase::LINES, core_to_core::LINES, mlc::LINES];
    for patterns in all {
        let table = Table::new(patterns);
        let plain = |line: &str| {
            line.replace("\u{1b}[1;37m", "").replace("\u{1b}[2;37m", "").replace("\u{1b}[0m", "")
        };
        let lines = texts.iter().flat_map(|text| text.lines()).map(plain);
        let known: BTreeSet<usize> = lines.filter_map(|line| table.place(&line)).collect();
        let unused: Vec<&str> =
            (0..patterns.len()).filter(|at| !known.contains(at)).map(|at| patterns[at].regex).collect();
        assert!(unused.is_empty(), "{unused:#?}");
    }
}
