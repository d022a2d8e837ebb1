//! Formats that are tables, on files of other projects and as tables.

use std::collections::BTreeSet;

use super::found;
use crate::kit::Table;
use crate::kit::form::Form;
use crate::{
    coremark, geekbench, hpcg, hpl, likwid, multiload, npb, openssl, perf_bench, read, sbc_bench, stream,
    stress_ng, wrk,
};

const FORMS: [&Form; 13] = [
    &coremark::FORM,
    &geekbench::FORM,
    &hpcg::FORM,
    &hpl::FORM,
    &likwid::FORM,
    &multiload::FORM,
    &npb::FORM,
    &openssl::FORM,
    &perf_bench::FORM,
    &sbc_bench::FORM,
    &stream::FORM,
    &stress_ng::FORM,
    &wrk::FORM,
];

/// Files of another project's tests (a clone without them skips this and says so): each number as
/// its line has it, found without a pattern.
#[test]
fn what_another_project_collected_is_read() {
    let folder = testkit::root().join("../shared/fixtures/results");
    if !folder.is_dir() {
        return eprintln!("SKIPPED: {} is not beside this clone", folder.display());
    }
    let triad =
        |threads: u32| format!("memory.stream@free?op=triad/elements=268435456&threads={threads}#bandwidth");
    let wrk = |threads: u32, connections: u32, metric: &str| {
        format!("network.wrk@free/connections={connections}&threads={threads}#{metric}")
    };
    // File, the start of a line, which of its words, what one of it is in the figure's unit, key.
    let rows: [(&str, &str, usize, f64, String); 10] = [
        ("stream/StreamExample.txt", "Triad:", 1, 1e-3, triad(4)),
        ("stream/StreamExample.txt", "Copy:", 1, 1e-3, triad(4).replace("triad", "copy")),
        (
            "stream/StreamExampleWindows.txt",
            "| Add ",
            5,
            1e-3,
            "memory.stream@free?op=add/elements=320000000&threads=8#bandwidth".into(),
        ),
        ("wrk/wrkStandardExample1.txt", " 99.000%", 1, 1e6, wrk(2, 20, "latency_p99")),
        ("wrk/wrkStandardExample2.txt", " 50.000%", 1, 1e3, wrk(2, 100, "latency_p50")),
        ("wrk/wrkStandardExample2.txt", "    Latency ", 3, 1e3, wrk(2, 100, "latency_max")),
        ("wrk/wrkStandardExample3.txt", "Requests/sec:", 1, 1.0, wrk(32, 5000, "requests")),
        ("wrk/wrkStandardExample3.txt", "Transfer/sec:", 1, 1_048_576e-9, wrk(32, 5000, "bandwidth")),
        ("wrk/wrkErrorExample1.txt", "Requests/sec:", 1, 1.0, wrk(1, 10_000, "requests")),
        (
            "coremark/CoreMarkExampleMultiThread.txt",
            "Iterations/Sec",
            2,
            1.0,
            "cpu.coremark@free/threads=4#iterations".into(),
        ),
    ];
    for (name, begin, word, factor, key) in rows {
        let bytes = std::fs::read(folder.join(name)).expect("readable");
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().find(|line| line.starts_with(begin)).expect(name);
        assert_eq!(found::stands(&text, line, word, factor, &key), 1, "{name}: {key}");
    }
    let invalid = |name: &str| -> Vec<String> {
        let all = read(&std::fs::read(folder.join(name)).expect("readable")).expect(name);
        all.iter().flat_map(|one| &one.findings).map(|finding| finding.rule.clone()).collect()
    };
    assert_eq!(invalid("wrk/wrkErrorExample1.txt"), ["invalid-result"]);
    assert!(invalid("wrk/wrkStandardExample1.txt").is_empty());
    assert!(read(&std::fs::read(folder.join("stream/StreamInvalidExample.txt")).expect("readable")).is_err());
}

/// Every pattern is that of a line in the corpus or among these.
#[test]
fn every_pattern_of_a_form_has_an_example() {
    const OTHERS: &str = "\
Failed Validation on array a[], AvgRelAbsErr > epsilon (1.000000e-13)
| Copy     | 42156.3    | 42890.7     | 41234.5      | 0.122345 | 0.119876 | 0.124567 |
Parallel PThreads : 4
  Socket errors: connect 0, read 1645610, write 16, timeout 0
       0.175     0.000000            1         1.00
Initialised 2 threads in 0 ms.
 Initialization time =      0.0114
stress-ng: fail:  [71] vm: detected 2 bit errors while stressing memory
stress-ng: info:  [71] skipped: 1: rdrand (1)
ATTENTION: Throttling might have occured on CPUs 4-5. Check the log for details.
  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
";
    let cases = super::foreign::cases();
    let texts: Vec<String> = cases
        .iter()
        .map(|case| String::from_utf8_lossy(&case.bytes).into_owned())
        .chain([OTHERS.to_string()])
        .collect();
    for form in FORMS {
        let table = Table::new(form.lines);
        let known = texts.iter().flat_map(|text| text.lines()).filter_map(|line| table.place(line));
        let known: BTreeSet<usize> = known.collect();
        let unused: Vec<&str> =
            (0..form.lines.len()).filter(|at| !known.contains(at)).map(|at| form.lines[at].regex).collect();
        assert!(unused.is_empty(), "{}: {unused:#?}", form.format);
        // Each line by which a text is known has a sign.
        let marks = texts.iter().flat_map(|text| text.lines()).filter_map(|line| table.hit(line));
        for hit in marks.filter(|hit| form.marks.contains(&hit.name)) {
            assert!(
                form.signs.iter().any(|sign| hit.line().contains(sign)),
                "{}: {}",
                form.format,
                hit.line()
            );
        }
    }
}
