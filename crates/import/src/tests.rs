//! Files of other tools, read from texts.

use super::*;
use model::VerdictKind;

mod apart;
mod contradictions;
pub mod foreign;
mod forms;
pub mod found;
mod geekbench;
mod logs;
mod memory_tools;
mod mutated;
mod recorded;
mod refused;
mod tools;

const SUMMARY: &str = "make[1]: Entering directory '/x'

                 L M B E N C H  3 . 0   S U M M A R Y

Processor, Processes - times in microseconds - smaller is better
------------------------------------------------------------------------------
Host                 OS  Mhz null null      open slct sig  sig  fork exec sh
                             call  I/O stat clos TCP  inst hndl proc proc proc
--------- ------------- ---- ---- ---- ---- ---- ---- ---- ---- ---- ---- ----
one       Linux 6.1.0-1 2998 0.28 0.32      1.82 2.61 0.31 1.19 341. 857. 16.K
one       Linux 6.1.0-1 2998 0.30 0.32 0.92 1.82 2.61 0.31 1.19 341. 857. 16.K
two         Linux 5.4.0 3100 0.19 0.20 0.21 bad  0.23 0.24 0.25 0.26
make[1]: Leaving directory '/x'

Memory latencies in nanoseconds - smaller is better
    (WARNING - may not be correct, check graphs)
------------------------------------------------------------------------------
Host                 OS   Mhz   L1 $   L2 $    Main mem    Rand mem    Guesses
--------- -------------   ---   ----   ----    --------    --------    -------
one       Linux 6.1.0-1  2998 1.3350 2.2060    9.256000       132.0
two         Linux 5.4.0   985 3.0750   45.4  109.5       254.9    No L2 cache?
";

const RAW: &str = "[lmbench3.0 results for Linux kylin 10.0.0 10.0.0 x86_64 Linux]
[MHZ: 2500 MHz, 0.4 nanosec clock]
[RELEASE: 10.0.0-generic]
netstat: unrecognized option: i
Simple syscall: 0.6737 microseconds
Select on 10 tcp fd's: 20.1737 microseconds
bind: Address in use
bind: Address in use
Signal handler installation: 0.7541 microseconds
Pagefaults on /tmp/x: 160.6221 microseconds
Pipe bandwidth: 6830.16 MB/sec

\"File system latency
0k\t2\t124\t1425

\"read bandwidth
0.000512 196.68
1.05 8.44

\"size=16k ovr=2.43
2 2.50

Memory load latency
\"stride=128
0.00098 0.905
64.00000 23.9
";

/// A recording of our own.
pub fn recorded(name: &str) -> String {
    let path = testkit::root().join("tests/foreign").join(name);
    std::fs::read_to_string(path).expect("a recording")
}

/// The only result of a text, of this format.
pub fn only(text: &str, format: Format) -> Imported {
    let mut all = read(text.as_bytes()).expect("a result");
    assert_eq!((all.len(), all[0].format), (1, format));
    all.remove(0)
}

pub fn figure<'a>(imported: &'a Imported, key: &str) -> &'a Figure {
    let found = imported.figures.iter().find(|figure| figure.judged.series.key == key);
    found.unwrap_or_else(|| {
        let keys: Vec<&str> = imported.figures.iter().map(|one| one.judged.series.key.as_str()).collect();
        panic!("no {key} in {keys:#?}")
    })
}

pub fn values(imported: &Imported, key: &str) -> Vec<f64> {
    figure(imported, key).judged.series.processes.iter().flat_map(|process| process.values.clone()).collect()
}

/// Of the verdict.
pub fn reason(imported: &Imported, key: &str) -> (VerdictKind, String) {
    let verdict = &figure(imported, key).judged.analysis.verdict;
    (verdict.kind, verdict.reason.clone())
}

/// Why a figure has no value.
pub fn skipped(imported: &Imported, key: &str) -> String {
    assert_eq!(values(imported, key), [0.0; 0], "{key}");
    let (kind, reason) = reason(imported, key);
    assert_eq!(kind, VerdictKind::Skipped, "{key}");
    reason
}

pub fn rules(imported: &Imported) -> Vec<&str> {
    imported.findings.iter().map(|finding| finding.rule.as_str()).collect()
}

fn median(imported: &Imported, key: &str) -> Option<f64> {
    figure(imported, key).judged.analysis.estimate.as_ref().map(|estimate| estimate.median)
}

#[test]
fn a_summary_of_two_hosts() {
    let read = read(SUMMARY.as_bytes()).expect("a summary");
    let hosts: Vec<&str> = read.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(hosts, ["one", "two"]);
    let (one, two) = (&read[0], &read[1]);
    assert_eq!(
        one.make_up,
        [("kernel", "6.1.0-1…"), ("mhz", "2998")].map(|(a, b)| (a.to_string(), b.to_string()))
    );
    assert_eq!(two.make_up[0].1, "5.4.0");
    // Two rows of one host are two runs of it.
    assert_eq!(median(one, "syscall.getpid@one-cpu#latency"), Some((0.28 + 0.30) / 2.0));
    assert_eq!(median(one, "process.shell@free/program=true#latency"), Some(16000.0));
    assert_eq!(median(one, "syscall.stat@one-cpu#latency"), Some(0.92), "one of two rows has it");
    let latency = |point: &str| format!("memory.latency@one-cpu?order={point}#latency");
    assert_eq!(median(one, &latency("stride&stride=128/bytes=largest")), Some(9.256));
    assert_eq!(median(two, &latency("stride&stride=128/bytes=131072")), Some(45.4));
    assert_eq!(median(two, &latency("random/bytes=largest")), Some(254.9));
    assert_eq!(
        reason(two, "syscall.open-close@one-cpu#latency"),
        (VerdictKind::Skipped, "the cell has \"bad\", which is not a number".to_string())
    );
    let (kind, why) = reason(two, "process.exec@free/program=true#latency");
    assert!(kind == VerdictKind::Skipped && why.contains("empty"), "{why}");
    assert_eq!(reason(one, "process.exec@free/program=true#latency").0, VerdictKind::Unverified);
    assert!(
        one.remarks.iter().any(|remark| remark.contains("no table") && remark.contains("Context switching"))
    );
}

#[test]
fn raw_results_with_errors_between() {
    let read = read(RAW.as_bytes()).expect("raw results");
    assert_eq!(read.len(), 1);
    let raw = &read[0];
    assert_eq!((raw.format, raw.host.as_str()), (crate::lmbench::RAW, "kylin"));
    assert!(raw.make_up.contains(&("kernel".to_string(), "10.0.0-generic".to_string())), "{:?}", raw.make_up);
    for (key, value) in [
        ("syscall.getpid@one-cpu#latency", 0.6737),
        ("lmbench.select-tcp@one-cpu/fds=10#latency", 20.1737),
        ("vm.file-fault@one-cpu#page", 160.6221),
        ("ipc.pipe-bandwidth@free/message=65536#bandwidth", 6.83016),
        ("file.create@one-cpu/bytes=0#create", 124.0),
        ("file.create@one-cpu/bytes=0#delete", 1425.0),
        ("file.read@one-cpu?cache=warm/bytes=512#io", 0.19668),
        ("file.read@one-cpu?cache=warm/bytes=1048576#io", 0.00844),
        ("sched.context-switch@free?processes=2/kb=16#switch", 2.5),
        ("sched.context-switch@free?processes=2/kb=16#latency", 4.93),
        ("memory.latency@one-cpu?order=stride&stride=128/bytes=67108864#latency", 23.9),
    ] {
        let found = median(raw, key).expect(key);
        assert!((found / value - 1.0).abs() < 1e-12, "{key}: {found}");
    }
    // What stands where the figure should be is why it is missing.
    let missing = reason(raw, "lmbench.select-tcp@one-cpu/fds=100#latency");
    assert_eq!(missing, (VerdictKind::Skipped, "bind: Address in use".to_string()));
    assert!(raw.remarks.iter().any(|remark| remark.contains("netstat: unrecognized option: i")));
}

#[test]
fn curves_alone() {
    let read =
        read(b"\"stride=64\n0.00049 1.186\n0.00098 1.2\n\n\"stride=128\n8.00000 7.5\n").expect("curves");
    assert_eq!(
        (read[0].format, read[0].host.as_str(), read[0].figures.len()),
        (crate::lmbench::LAT_MEM_RD, "unknown", 3)
    );
    assert_eq!(
        median(&read[0], "memory.latency@one-cpu?order=stride&stride=64/bytes=512#latency"),
        Some(1.186)
    );
}

#[test]
fn the_same_table_twice_is_one_measurement() {
    let twice = format!("{SUMMARY}{SUMMARY}");
    let read = read(twice.as_bytes()).expect("a summary");
    let getpid = &read[0].figures[0].judged;
    assert_eq!((getpid.series.metric.title.as_ref(), getpid.series.processes.len()), ("Simple syscall", 2));
    assert!(read[0].remarks.iter().any(|remark| remark.contains("twice")), "{:?}", read[0].remarks);
}

#[test]
fn what_is_none_is_refused() {
    let error = |bytes: &[u8]| read(bytes).expect_err("refused").to_string();
    assert_eq!(error(b" \n\t"), "it is empty");
    for foreign in [
        &b"hello\n"[..],
        b"{\"header\": 1}\n",
        b"\"quoted\"\n",
        b"PK\x03\x04\0\0",
        &[0xff; 100],
        b"1 2\n3 4\n",
    ] {
        let error = error(foreign);
        assert!(error.contains("not a format that Assay knows; `assay import --help` lists"), "{error}");
    }
    assert!(error(&vec![b'1'; MAX_BYTES + 1]).contains("larger than 16 MB"));
}

/// Cut anywhere: refused or read, never a panic, and never a value that the whole file does not
/// have.
#[test]
fn cut_at_every_byte() {
    for whole in [SUMMARY, RAW] {
        let all = read(whole.as_bytes()).expect("whole");
        let known: Vec<(&str, &Vec<f64>)> = all
            .iter()
            .flat_map(|one| &one.figures)
            .flat_map(|figure| figure.judged.series.processes.iter().map(move |p| (figure, p)))
            .map(|(figure, process)| (figure.judged.series.key.as_str(), &process.values))
            .collect();
        for end in 0..whole.len() {
            let Ok(cut) = read(&whole.as_bytes()[..end]) else { continue };
            for figure in cut.iter().flat_map(|one| &one.figures) {
                for process in &figure.judged.series.processes {
                    let key = figure.judged.series.key.as_str();
                    assert!(known.contains(&(key, &process.values)), "{end}: {key} {:?}", process.values);
                }
            }
        }
    }
}

#[test]
fn more_figures_than_anybody_can_read_are_left_out() {
    let mut text = String::from("\"read bandwidth\n");
    (1..=30_000u32).for_each(|size| text.push_str(&format!("0.{size:06} 5\n")));
    let read = read(text.as_bytes()).expect("curves");
    assert_eq!(read[0].figures.len(), MAX_FIGURES);
    assert!(
        read[0].remarks.iter().any(|remark| remark.contains("10000 figures were left out")),
        "{:?}",
        read[0].remarks
    );
}

#[test]
fn every_figure_has_a_key_and_every_column_a_figure() {
    for figure in lmbench::FIGURES {
        let keyed = keyed(figure.key).unwrap_or_else(|| panic!("{}", figure.key));
        assert_eq!(keyed.case.series_key(&keyed.point, &keyed.metric), figure.key);
        assert_eq!(
            lmbench::FIGURES.iter().filter(|other| other.name == figure.name).count(),
            1,
            "{}",
            figure.name
        );
        assert_eq!(
            lmbench::FIGURES.iter().filter(|other| other.key == figure.key).count(),
            1,
            "{}",
            figure.key
        );
    }
    for table in lmbench::TABLES {
        for column in table.columns {
            if let lmbench::CellContent::Figure(name) = column.holds {
                assert!(lmbench::find(name).is_some(), "{name}");
            }
        }
        assert!(table.heading.lines().next().is_some_and(|title| table.is_titled(title)));
        let ends = table.ends();
        let dashes = table.dashes().trim_end().len();
        let last = table.columns.last().map_or(0, |column| column.limit.unwrap_or(ends[ends.len() - 1]));
        // The dashes of these two do not stand where their rows do.
        let crooked = ["Memory latencies", "Basic double operations"].contains(&table.title);
        assert!(crooked || last == dashes, "{}: {last} {dashes}", table.title);
    }
}

#[test]
fn recordings_of_disk_and_network_cut_and_damaged_anywhere() {
    let folder = testkit::root().join("tests/foreign");
    for name in [
        "fio-jobs.json",
        "fio-jobs.txt",
        "fio-full.txt",
        "iperf3-tcp.json",
        "iperf3-udp.json",
        "sockperf.txt",
    ] {
        let whole = std::fs::read(folder.join(name)).expect("a recording");
        let figures = read(&whole).expect("a result")[0].figures.len();
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..60 {
            let mut text = whole[..random.usize(1..whole.len())].to_vec();
            for _ in 0..random.usize(0..4) {
                let at = random.usize(0..text.len());
                text[at] = *random.choice(b"0 9-.{}[],:\"\nke=x").expect("a byte");
            }
            let Ok(results) = read(&text) else { continue };
            for one in &results {
                assert!(!one.figures.is_empty() && one.figures.len() <= 3 * figures + 20, "{name}");
                for figure in &one.figures {
                    let analysis = &figure.judged.analysis;
                    assert!(!analysis.verdict.reason.is_empty(), "{name}: {}", figure.judged.series.key);
                    let median = analysis.estimate.as_ref().map_or(0.0, |estimate| estimate.median);
                    assert!(median.is_finite() && median >= 0.0, "{name}: {}", figure.judged.series.key);
                }
            }
        }
    }
}

#[test]
fn json_of_other_tools_is_told_from_our_own() {
    for ours in ["{\"schema\": 1}", "{\"header\":{", "[1]", "", "{\"assay\":\"1\"}"] {
        assert!(!super::is_json(ours.as_bytes()), "{ours}");
    }
    for theirs in
        ["{\n  \"fio version\" : \"fio-3.33\"", "\n{\n\t\"start\":\t{", "{\"event\":\"start\",\"data\":{}}"]
    {
        assert!(super::is_json(theirs.as_bytes()), "{theirs}");
    }
}

/// A file beyond the caches comes no faster than memory; in a cache, or as fast as memory, it may.
#[test]
fn files_read_faster_than_memory_are_told() {
    let text = |file: &str| {
        format!(
            "{}\n\"Mmap read bandwidth\n{file}\n\n\"Memory read bandwidth\n0.016 34999.46\n1024.00 4979.76\n\n",
            RAW.lines().next().expect("a heading")
        )
    };
    let found = |file: &str| read(text(file).as_bytes()).expect("results")[0].findings.clone();
    let told = found("1024.00 7948.87");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].rule, "above-ceiling");
    assert_eq!(
        told[0].headline,
        "Mmap read bandwidth reaches 7.95 GB/s, memory only 4.98 GB/s: the file was in the page cache"
    );
    for calm in ["0.016 20000.00", "1024.00 4900.00", "1024.00 6100.00"] {
        assert!(found(calm).is_empty(), "{calm}");
    }
}
