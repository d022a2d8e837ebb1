//! First screens of comparisons on terminals of several widths, with UTF-8 and without.

use std::path::Path;

use serde_json::{Value, json};

use super::{Bench, scale};
use crate::assay;

/// Widths that people have.
const WIDTHS: [usize; 4] = [60, 80, 100, 140];

/// Lines of a first screen at most.
const LINES: usize = 40;

fn shown(args: &[&str], files: &[&Path], width: usize, locale: &str) -> String {
    let mut command = assay();
    command.arg("compare").args(args).args(files).env("COLUMNS", width.to_string()).env("LANG", locale);
    let output = command.output().expect("assay runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The screen at all widths, in UTF-8 and ASCII, each checked against the rules of all screens.
fn screens(args: &[&str], files: &[&Path]) -> String {
    let mut all = String::new();
    for width in WIDTHS {
        let [whole, ascii] = ["C.UTF-8", "C"].map(|locale| shown(args, files, width, locale));
        for text in [&whole, &ascii] {
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width, "{widest} of {width} columns:\n{text}");
            assert!(text.lines().count() <= LINES, "{} lines:\n{text}", text.lines().count());
            assert!(!text.contains('…'), "something is cut:\n{text}");
        }
        // Every sign of ours has one in ASCII, and nothing moves.
        let unknown = |text: &str| text.matches('?').count();
        assert!(ascii.is_ascii() && unknown(&ascii) == unknown(&whole), "{ascii}");
        assert_eq!(ascii.lines().count(), whole.lines().count(), "{ascii}");
        all.push_str(&format!("== {width} columns\n{whole}\n== {width} columns, ASCII\n{ascii}\n"));
    }
    all
}

/// A copy that is slower in memory's latency, faster in one bandwidth and on another host.
fn other(bench: &Bench, name: &str, factor: f64) -> std::path::PathBuf {
    bench.copy(name, |record, of| {
        if record["header"].is_object() {
            record["header"]["host"] = json!("other");
        }
        match of {
            "memory.latency" => scale(record, 0.8 * factor),
            "ipc.pipe-pingpong" => scale(record, factor),
            _ => {}
        }
    })
}

#[test]
fn two_hosts_fit_every_terminal() {
    let bench = Bench::new();
    let slower = other(&bench, "slower.assay.jsonl", 0.9);
    insta::assert_snapshot!("two_hosts", screens(&[], &[&bench.run, &slower]));
    let quiet = shown(&["--quiet"], &[&bench.run, &slower], 100, "C.UTF-8");
    assert!(quiet.starts_with("  B is ") && quiet.lines().count() <= 6, "{quiet}");
}

/// The numbers of a line, in their order.
fn numbers(line: &str) -> Vec<usize> {
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_counts_of_a_screen_add_up() {
    let bench = Bench::new();
    let disturbed = bench.copy("disturbed.assay.jsonl", |record, of| {
        if record["header"].is_object() {
            record["header"]["host"] = json!("other");
        }
        if of == "memory.latency" {
            scale(record, 0.8);
        }
        if of == "ipc.pipe-pingpong" && record["visit"].is_object() {
            let cpus = record["visit"]["conditions"]["cpus"].clone();
            record["visit"]["conditions"] = json!({
                "wall_ms": 1000.0, "cpus": cpus, "own_ms": 1000.0, "busy_ms": 1500.0, "others_on_seats_ms": 500.0
            });
        }
    });
    let files = [bench.run.as_path(), &disturbed];
    let shown = |args: &[&str]| {
        let mut command = assay();
        command.arg("compare").args(args).args(files).env("COLUMNS", "140").env("LANG", "C.UTF-8");
        String::from_utf8(command.output().expect("assay runs").stdout).expect("UTF-8")
    };
    let text = shown(&[]);
    let line = |with: &str| {
        let found = text.lines().flat_map(|line| line.split("      ")).find(|part| part.contains(with));
        numbers(found.unwrap_or_else(|| panic!("no {with:?} in {text}")))
    };
    let json: Value = serde_json::from_str(&shown(&["--json"])).expect("JSON");
    let count = |name: &str| json[name].as_array().map_or(0, Vec::len);
    // All figures, those in sight and those that are left out.
    let [all, of_them, here] = line("shown: --all")[..] else { panic!("{text}") };
    let [left_out, of] = line("left out, with reasons")[..] else { panic!("{text}") };
    assert_eq!((all, of), (count("metrics") + count("refused"), all), "{text}");
    assert_eq!((here, left_out), (count("key_figures"), count("refused")), "{text}");
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains(&format!(" of {of_them} figures")), "{text}");
    let main = json["metrics"].as_array().into_iter().flatten().filter(|one| one["headline"] == true).count();
    assert!(main <= of_them && of_them <= all, "{main} {of_them} {all}: {text}");
    let listed = shown(&["--left-out"]);
    let headed = listed.lines().filter(|line| line.contains(" values (") || line.contains("1 value ("));
    let listed: usize = headed.filter(|line| !line.contains("Only in")).map(|line| numbers(line)[0]).sum();
    assert_eq!(listed, left_out, "{text}");
}

#[test]
fn a_run_against_itself_says_what_could_not_have_been_seen() {
    let bench = Bench::new();
    let text = shown(&[], &[&bench.run, &bench.run], 100, "C.UTF-8");
    assert!(text.contains("Two such runs can detect "), "{text}");
    let said: Vec<&str> = text.lines().take_while(|line| !line.contains("unit")).collect();
    let whole = said.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("A and B are the same run: equal figures prove nothing."), "{text}");
    screens(&[], &[&bench.run, &bench.run]);
}

#[test]
fn other_work_leaves_no_conclusion() {
    let bench = Bench::new();
    let hog = bench.copy("hog.assay.jsonl", |record, of| {
        if of != "cpu.clock" && record["visit"].is_object() {
            let cpus = record["visit"]["conditions"]["cpus"].clone();
            record["visit"]["conditions"] = json!({
                "wall_ms": 1000.0, "cpus": cpus, "own_ms": 1000.0, "busy_ms": 1500.0, "others_on_seats_ms": 500.0
            });
        }
    });
    insta::assert_snapshot!("no_conclusion", screens(&[], &[&bench.run, &hog]));
    let reasons = shown(&["--left-out"], &[&bench.run, &hog], 100, "C.UTF-8");
    // Both values stand beside the reason.
    let row = reasons.lines().find(|line| line.contains("Memory latency, ")).expect("a row");
    assert!(row.contains("A ") && row.contains("B "), "{row}");
}

#[test]
fn several_results_are_ranked() {
    let bench = Bench::new();
    let (slower, faster) = (
        other(&bench, "slower.assay.jsonl", 0.9),
        bench.faster("faster.assay.jsonl", "memory.bandwidth", 2.0),
    );
    let files = [bench.run.as_path(), &slower, &faster];
    insta::assert_snapshot!("ranked", screens(&[], &files));
    let json: Value = serde_json::from_str(&shown(&["--json"], &files, 100, "C.UTF-8")).expect("JSON");
    let rows = |of: &Value| of["key_figures"].as_array().map_or(0, Vec::len);
    assert!(rows(&json) > 0 && rows(&json["further"][0]) > 0, "{json}");
    assert_eq!(json["verdict"]["sentences"].as_array().map(|said| !said.is_empty()), Some(true));
}

#[test]
fn pages_name_figures_and_tell_runs_of_one_host_apart() {
    let bench = Bench::new();
    let later = bench.faster("later.assay.jsonl", "memory.bandwidth", 2.0);
    let saved = |run: &Path, name: &str| {
        let report = assay().args(["report", "--json"]).arg(run).output().expect("assay runs").stdout;
        bench.file(name, &report)
    };
    let [a, b] = [saved(&bench.run, "a.json"), saved(&later, "b.json")];
    let page = bench.path("page.html");
    let output = super::compare(&["--out", &page.to_string_lossy()], &[&a, &b]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("vm of 1 Jan 00:01 against vm of 1 Jan 00:00"), "one host, two dates");
    assert!(page.contains("Memory bandwidth, read, huge pages, all CPUs, 1 MiB"), "no title of a point");
    assert!(!page.contains("memory.bandwidth: bandwidth"), "ids in the place of titles");
    // The same two as run files say the same.
    let text = |files: [&Path; 2]| shown(&[], &files, 100, "C.UTF-8");
    let table = |text: &str| {
        text.lines().skip_while(|line| !line.contains("unit")).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(table(&text([&a, &b])), table(&text([&bench.run, &later])));
}

/// What has nothing in common has no table, and a sentence that says what each holds.
#[test]
fn results_without_anything_in_common_say_what_they_hold() {
    let folder = testkit::root().join("tests/foreign");
    let files = ["iperf3-tcp.json", "stream-cut.txt", "coremark.txt"].map(|name| folder.join(name));
    let [iperf, stream, coremark] = files.each_ref().map(|file| file.as_path());
    let run = |args: &[&str], files: &[&Path]| {
        let mut command = assay();
        command.arg("compare").args(args).args(files).env("COLUMNS", "80").env("LANG", "C.UTF-8");
        let output = command.output().expect("assay runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for args in [&[][..], &["--allow-refused"]] {
        let (code, text) = run(args, &[iperf, stream]);
        assert_eq!(code, Some(4), "{text}");
        let said = words(&text);
        assert!(said.contains("No conclusion: A and B have no figure in common. A has iperf3"), "{text}");
        assert!(said.contains("B has STREAM Copy, STREAM Scale, STREAM Add and 1 more"), "{text}");
        assert!(said.contains("Compare results of one tool") && said.ends_with("exit 4"), "{text}");
        assert!(!text.contains("÷") && !text.contains("below"), "a table without rows:\n{text}");
    }
    let (_, left_out) = run(&["--left-out"], &[iperf, stream]);
    assert!(words(&left_out).contains("Only in B: 4 values (STREAM Copy; STREAM Scale"), "{left_out}");
    let (code, three) = run(&[], &[iperf, stream, coremark]);
    assert_eq!(code, Some(4), "{three}");
    assert!(words(&three).contains("No conclusion on C: A and C have no figure in common."), "{three}");
    assert_eq!(three.matches("No conclusion").count(), 2, "{three}");
    // A result that has something in common has its rows, wherever it stands.
    let (_, mixed) = run(&[], &[stream, iperf, &folder.join("stream-not-valid.txt")]);
    assert!(mixed.contains("STREAM Copy"), "{mixed}");
    is_a_comparison(&[iperf, stream]);
    is_a_comparison(&[iperf, stream, coremark]);
}

fn is_a_comparison(files: &[&Path]) {
    for width in WIDTHS {
        for locale in ["C.UTF-8", "C"] {
            let text = shown(&[], files, width, locale);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width && text.lines().count() <= LINES, "{width}:\n{text}");
        }
    }
}
