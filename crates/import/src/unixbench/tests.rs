//! Reports of UnixBench, whole and damaged.

use crate::{Imported, read};
use model::VerdictKind;

/// Two sections of an invented host: every test at twenty, then at forty times its baseline.
fn report() -> String {
    let mut text = String::from(
        "   BYTE UNIX Benchmarks (Version 5.1.3)\n\n   System: old: GNU/Linux\n   OS: GNU/Linux -- 5.4.0 -- #1 SMP\n   \
         Machine: x86_64 (x86_64)\n   Language: de_DE (charmap=, collate=)\n   CPU 0: A Processor (100.0 bogomips)\n          x86-64, MMX\n   \
         10:00:00 up 1 min,  0 user,  load average: 0.54; runlevel 5\n\n",
    );
    for (copies, times, hour) in [("1 parallel copy", 20.0, 10), ("4 parallel copies", 40.0, 11)] {
        text.push_str(&format!(
            "{}\nBenchmark Run: So M\u{e4}r 01 2020 {hour}:00:00 - {hour}:28:00\n",
            "-".repeat(72)
        ));
        text.push_str(&format!("4 CPUs in system; running {copies} of tests\n\n"));
        for test in &super::TESTS {
            let score = test.baseline * times;
            text.push_str(&format!("{:<40} {score:12.1} {:<5} (10.0 s, 7 samples)\n", test.title, test.unit));
        }
        text.push_str("\nSystem Benchmarks Index Values               BASELINE       RESULT    INDEX\n");
        for test in &super::TESTS {
            let (base, score) = (test.baseline, test.baseline * times);
            text.push_str(&format!("{:<40} {base:12.1} {score:12.1} {:8.1}\n", test.title, times * 10.0));
        }
        text.push_str(&format!(
            "{:>75}\n{:<66} {:8.1}\n\n",
            "========",
            "System Benchmarks Index Score",
            times * 10.0
        ));
    }
    text
}

fn one(text: &str) -> Imported {
    let mut all = read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn median(imported: &Imported, name: &str) -> Option<f64> {
    let key = format!("unixbench.{name}#score");
    let found = imported.figures.iter().find(|figure| figure.judged.series.key == key);
    found.unwrap_or_else(|| panic!("no {key}")).judged.analysis.estimate.as_ref().map(|found| found.median)
}

fn reason(imported: &Imported, name: &str) -> String {
    let key = format!("unixbench.{name}#score");
    let found = imported.figures.iter().find(|figure| figure.judged.series.key == key).expect("a figure");
    assert_eq!(found.judged.analysis.verdict.kind, VerdictKind::Skipped);
    found.judged.analysis.verdict.reason.clone()
}

fn says(imported: &Imported, words: &str) -> bool {
    imported.remarks.iter().any(|remark| remark.contains(words))
}

#[test]
fn a_whole_report() {
    let found = one(&report());
    assert_eq!((found.format, found.host.as_str(), found.figures.len()), (super::FORMAT, "old", 26));
    let expected = [
        ("unixbench", "5.1.3"),
        ("kernel", "5.4.0"),
        ("architecture", "x86_64"),
        ("language", "de_DE"),
        ("cpu_model", "A Processor"),
        ("cpus", "4"),
    ];
    assert_eq!(found.make_up, expected.map(|(a, b)| (a.to_string(), b.to_string())));
    assert_eq!(median(&found, "context1@free?copies=1"), Some(80_000.0));
    assert_eq!(median(&found, "shell8@free?copies=4"), Some(240.0));
    assert_eq!(median(&found, "index@free?copies=4"), Some(400.0));
    let indices: Vec<_> =
        found.index.iter().map(|one| (one.copies, one.score, one.remark.as_str())).collect();
    assert_eq!(indices, [(Some(1), Some(200.0), ""), (Some(4), Some(400.0), "")]);
    assert!(
        found
            .index
            .iter()
            .all(|one| one.recomputed.is_some_and(|score| (score - one.score.unwrap_or(0.0)).abs() < 0.06))
    );
    // What every report has, and nothing else.
    assert_eq!(found.remarks, [super::GENERAL]);
    assert!(
        found.figures.iter().all(|figure| figure.judged.analysis.verdict.kind == VerdictKind::Unverified)
    );
    let context =
        found.figures.iter().find(|figure| figure.judged.series.key.contains("context1")).expect("one");
    assert_eq!(
        (context.judged.series.metric.unit.as_ref(), context.wording.as_str()),
        ("lps", "Pipe-based Context Switching")
    );
}

#[test]
fn parts_that_were_pasted_alone_are_results_of_their_own() {
    let index = |result: &str, index: &str| {
        format!(
            "System Benchmarks Partial Index              BASELINE       RESULT    INDEX\n\
             Dhrystone 2 using register variables         116700.0   {result}   {index}\n\
             System Benchmarks Index Score (Partial Only)                         {index}\n"
        )
    };
    let test =
        |score: &str| format!("Dhrystone 2 using register variables    {score} lps   (10.0 s, 7 samples)\n");
    let score = |score: &str| format!("System Benchmarks Index Score      {score}\n");
    let each = |text: &str, name: &str| -> Vec<Vec<f64>> {
        let key = format!("unixbench.{name}@free#score");
        let of = |one: &Imported| {
            let found = one.figures.iter().find(|figure| figure.judged.series.key == key);
            found.map_or(Vec::new(), |figure| figure.judged.series.values().concat())
        };
        read(text.as_bytes()).expect("a report").iter().map(of).collect()
    };
    let (before, after) = (index("15100000.0", "1293.9"), index("31000000.0", "2656.4"));
    for (first, second) in [("Before:\n", "\nAfter:\n"), ("", ""), ("## 6.1\n", "## 6.6\n")] {
        let text = format!("{first}{before}{second}{after}");
        assert_eq!(each(&text, "dhry2reg"), [[15_100_000.0], [31_000_000.0]], "{text}");
    }
    let scores = format!("Before:\n{}After:\n{}", score("1293.9"), score("2656.4"));
    let printed = |one: &Imported| one.index.iter().map(|index| index.score).collect::<Vec<_>>();
    let found: Vec<_> = read(scores.as_bytes()).expect("a report").iter().map(printed).collect();
    assert_eq!(found, [[Some(1293.9)], [Some(2656.4)]]);
    // A test's line and its row in the table are of one run.
    let both = format!("{}{before}", test("15100000.0"));
    assert_eq!(each(&both, "dhry2reg"), [[15_100_000.0]]);
}

/// UnixBench writes each cell of its page on a line of its own.
#[test]
fn its_own_page() {
    let page = |end: &str| {
        let row = |cells: &[&str]| {
            let cells: String =
                cells.iter().map(|cell| format!("   <td><tt>{cell}</tt></td>{end}")).collect();
            format!("<tr>{end}{cells}</tr>{end}")
        };
        let run = |copies: &str, score: &str| {
            let test =
                ["Dhrystone 2 using register variables", score, "lps", "10.0 s", "7", "116700.0", "3963.4"];
            format!("<h3>Benchmark Run: 8 CPUs; {copies}</h3><table>{end}{}</table>", row(&test))
        };
        format!(
            "<html><body><p><b>BYTE UNIX Benchmarks (Version 5.1.3)</b></p>{end}<table>{end}{}{}</table>{}{}</body></html>",
            row(&["System:", "box: GNU/Linux"]),
            row(&["CPUs:", "0:", "A Processor (4000.3 bogomips)<br/>\n Hyper-Threading"]),
            run("1 parallel process", "46252386.2"),
            run("8 parallel processes", "231261931.0")
        )
    };
    for end in ["\n", "\r\n", "", "\n\n  "] {
        let found = one(&page(end));
        assert_eq!(found.host, "box", "{end:?}");
        assert!(found.make_up.contains(&("cpu_model".to_string(), "A Processor".to_string())), "{end:?}");
        assert_eq!(median(&found, "dhry2reg@free?copies=1"), Some(46_252_386.2));
        assert_eq!(median(&found, "dhry2reg@free?copies=8"), Some(231_261_931.0));
    }
}

#[test]
fn the_ends_of_lines_marks_and_languages_do_not_matter() {
    let mut whole = one(&report());
    let windows = report().replace('\n', "\r\n");
    assert_eq!(one(&windows), whole);
    let marked = [&b"\xef\xbb\xbf"[..], report().as_bytes()].concat();
    assert_eq!(read(&marked).expect("a report")[0], whole);
    // In Latin-1 the date's letter is no UTF-8.
    let latin: Vec<u8> = report().chars().map(|c| c as u8).collect();
    assert_eq!(read(&latin).expect("a report")[0], whole);
    // A comma instead of the point, as some languages have it.
    let plain = report();
    let comma = plain.lines().map(|line| {
        if line.contains("samples") || line.contains("Index Score") {
            line.replace('.', ",") + "\n"
        } else {
            line.to_string() + "\n"
        }
    });
    let comma: String = comma.collect();
    let mut found = one(&comma);
    [&mut found, &mut whole]
        .into_iter()
        .for_each(|one| one.figures.iter_mut().for_each(|figure| figure.note.clear()));
    assert_eq!(found, whole);
    // Twice the same section is one measurement, and another run of it another result.
    let twice = one(&(report() + &report()));
    assert!(says(&twice, "twice") && twice.index.len() == 2, "{:?}", twice.remarks);
    assert_eq!(median(&twice, "pipe@free?copies=1"), Some(248_800.0));
    let again = report() + &report().replace("10:28:00", "10:28:01");
    assert_eq!(read(again.as_bytes()).expect("two results").len(), 2);
    // Another host in the same file is another result.
    let two = read((report() + &report().replace("System: old", "System: new")).as_bytes()).expect("reports");
    assert_eq!(two.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), ["old", "new"]);
}

#[test]
fn damage_is_said() {
    // A headline that its rows do not give.
    let score = report().replacen(
        "Index Score                                         200.0",
        "Index Score                                         230.0",
        1,
    );
    assert_ne!(score, report());
    let found = one(&score);
    assert!(says(&found, "prints the score 230.0, and its rows give 200.0"), "{:?}", found.remarks);
    assert!(reason(&found, "index@free?copies=1").contains("230.0"));
    assert_eq!(median(&found, "index@free?copies=4"), Some(400.0));
    // A row that disagrees with the line of its test, and one whose index is another.
    let row = report().replacen("248800.0 lps", "248900.0 lps", 1);
    assert!(says(&one(&row), "Pipe Throughput has 248900.0 in its own line and 248800.0 in the index"));
    let index = report().replacen("248800.0    200.0", "248800.0    201.0", 1);
    assert!(says(&one(&index), "Pipe Throughput has the index 201.0, but its row gives 200.0"));
    let base = report().replacen("12440.0     248800.0", "12441.0     248800.0", 1);
    assert!(says(&one(&base), "has the baseline 12441.0, not 12440.0"));
    // A test that failed, and one that is not there.
    let broken: String = report()
        .lines()
        .filter(|line| !line.starts_with("Process Creation"))
        .map(|line| {
            if line.starts_with("Execl") && line.contains("samples") {
                "Execl Throughput                         no output\n".to_string()
            } else {
                line.to_string() + "\n"
            }
        })
        .collect();
    let found = one(&broken
        .replace("Index Values ", "Partial Index")
        .replace("Index Score ", "Index Score (Partial Only) "));
    assert_eq!(found.index.iter().map(|one| one.partial).collect::<Vec<_>>(), [true, true]);
    assert!(says(&found, "without Process Creation, so no full index"), "{:?}", found.remarks);
    assert!(
        found.index[0].recomputed.is_some_and(|score| (score - 200.0).abs() < 0.1),
        "{:?}",
        found.index[0]
    );
    assert!(reason(&found, "index@free?copies=1").contains("no row of Process Creation"));
    // The same without the words: what calls itself whole and lacks a row is not computed again.
    let found = one(&broken);
    assert_eq!((found.index[0].recomputed, found.index[0].partial), (None, true));
    let failed = one(
        "Benchmark Run: x\n4 CPUs in system; running 1 parallel copy of tests\nPipe Throughput  nan lps   (10.0 s, 7 samples)\nProcess Creation  no output\nhello\n",
    );
    assert!(reason(&failed, "pipe@free?copies=1").contains("no valid score"));
    assert!(reason(&failed, "spawn@free?copies=1").contains("no output"));
    assert!(says(&failed, "\"hello\"") && failed.index.is_empty());
    // Other tests keep their own names; without the line that gives it there is no number of
    // copies.
    let other = one("Benchmark Run: x\n2D graphics: rectangles   12.5 score (3.0 s, 2 samples)\n");
    assert_eq!(median(&other, "2d-graphics-rectangles@free"), Some(12.5));
    assert!(says(&other, "the number of copies of a section is unknown"));
}

/// Cut anywhere: refused or read, and never a number that the whole file does not have. Every fifth
/// place meets each kind of line in all its columns.
#[test]
fn cut_anywhere() {
    let whole = report();
    let all = one(&whole);
    for end in (0..whole.len()).step_by(5).filter(|end| whole.is_char_boundary(*end)) {
        let Ok(cut) = read(&whole.as_bytes()[..end]) else { continue };
        for figure in cut.iter().flat_map(|one| &one.figures) {
            let series = &figure.judged.series;
            for process in &series.processes {
                let known = all.figures.iter().any(|other| {
                    let other = &other.judged.series;
                    other.processes.iter().any(|known| known.values == process.values)
                        // Before the line with the number of copies is read there is none in the
                        // key.
                        && (other.key == series.key || !series.key.contains("copies"))
                });
                assert!(known, "{end}: {} {:?}", series.key, process.values);
            }
        }
        for index in cut.iter().flat_map(|one| &one.index) {
            assert!(index.score.is_none_or(|score| [200.0, 400.0].contains(&score)), "{end}: {index:?}");
        }
    }
}

#[test]
fn more_than_anybody_can_read_is_left_out() {
    let line = "Pipe Throughput   5.0 lps   (10.0 s, 7 samples)\n";
    let found = one(&format!("Benchmark Run: x\n{}", line.repeat(50_000)));
    assert!(says(&found, "the rest was left out"));
    let section = |at: usize| format!("Benchmark Run: {at}\n{line}");
    let found = read((0..5_000).map(section).collect::<String>().as_bytes()).expect("results");
    assert!(found.len() == 200 && found.last().is_some_and(|last| says(last, "the rest was left out")));
}

/// Reports of real hosts, whose recomputed indices are the printed ones (not part of this project:
/// a clone without them skips this and says so).
#[test]
fn six_reports_come_to_what_they_print() {
    let folder = testkit::root().join("../shared/fixtures/results/unixbench");
    let Ok(files) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: {} is not beside this clone", folder.display());
        return;
    };
    let mut scores = Vec::new();
    for file in files.flatten() {
        let found = read(&std::fs::read(file.path()).expect("readable")).expect("a report");
        assert_eq!(found.len(), 1, "{:?}", file.path());
        for index in &found[0].index {
            let (printed, again) = (index.score.expect("printed"), index.recomputed.expect("recomputed"));
            assert!(index.agrees() && (printed - again).abs() < 0.06, "{:?}: {index:?}", file.path());
            scores.push((index.copies.expect("told"), (printed * 10.0).round() as u64));
        }
        let usable =
            found[0].figures.iter().filter(|figure| figure.judged.analysis.estimate.is_some()).count();
        assert_eq!(usable, 13 * found[0].index.len(), "{:?}", file.path());
        assert_eq!(found[0].remarks.len(), 1, "{:?}", found[0].remarks);
    }
    scores.sort_unstable();
    let expected: [(u32, u64); 11] = [
        (1, 1176),
        (1, 5339),
        (1, 9004),
        (1, 15638),
        (1, 24647),
        (1, 25468),
        (4, 17064),
        (4, 37829),
        (8, 60749),
        (24, 208_224),
        (72, 274_300),
    ];
    assert_eq!(scores, expected);
}

/// What is said of a report, by rule, with the values of its facts.
fn doubts(text: &str) -> Vec<(String, Vec<String>)> {
    let facts = |finding: model::Finding| finding.facts.into_iter().map(|fact| fact.value).collect();
    one(text).findings.into_iter().map(|finding| (finding.rule.clone(), facts(finding))).collect()
}

#[test]
fn what_is_read_for_something_else_is_said() {
    use super::doubts::{CAPPED, CPU_TIME, EIGHT, NO_CPUS};
    let of = |text: &str, rule: &str| -> Vec<String> {
        let found = doubts(text).into_iter().filter(|(found, _)| found == rule);
        found.flat_map(|(_, facts)| facts).collect()
    };
    let plain = report();
    // Twice the score on four CPUs is no finding; eight scripts at once are 1.13 times one of
    // the baseline, and here as well.
    assert_eq!(doubts(&plain), []);
    assert_eq!(of(&plain.replace("4 CPUs in", "0 CPUs in"), NO_CPUS), ["0"]);
    // 20 times 6 scripts of eight against 20 times 42.4: from there to twice as many.
    let eight = |score: &str| {
        plain.replace("       120.0 lpm", &format!("{score:>12} lpm")).replace(
            "       120.0    200.0",
            &format!("{score:>12}    {:.1}", score.parse::<f64>().expect("a number") / 0.6),
        )
    };
    assert_eq!(of(&eight("212.0"), EIGHT), ["2.0 ×"]);
    assert_eq!(of(&eight("120.0"), EIGHT), [""; 0]);
    // More copies than CPUs: of Whetstone each has CPU time of its own.
    let one_cpu = plain.replace("4 CPUs in", "1 CPU in");
    assert_eq!(of(&one_cpu, CPU_TIME), ["2.0 × on 1 CPUs"]);
    assert_eq!(of(&plain.replace("4 CPUs in", "2 CPUs in"), CPU_TIME), [""; 0]);
    let sixteen = plain.replace("running 4 parallel", "running 16 parallel").replace("4 CPUs", "96 CPUs");
    assert_eq!(of(&sixteen, CAPPED), ["of 96 CPUs"]);
    assert_eq!(of(&sixteen.replace("96 CPUs", "16 CPUs"), CAPPED), [""; 0]);
    // Before version 6 a part of more copies has no test.
    let many = plain.replace("4 CPUs in", "96 CPUs in");
    let (first, _) = many.split_once("96 CPUs in system; running 4").expect("a second part");
    let empty = format!("{first}96 CPUs in system; running 96 parallel copies of tests\n\n");
    assert_eq!(of(&empty, CAPPED), ["no test ran"]);
}
