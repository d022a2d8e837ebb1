//! Files that are larger than anything needs to be, or no files at all: each is refused, or read in
//! bounded memory, in a sentence.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use model::run_file::{self, Limits};
use model::{Packed, Record, Run, Visit};
use tempfile::TempDir;

use crate::host::{skipped, wrapped};
use crate::runs::{Ended, end, pretended, run_file as file_of, run_into, unsealed};

/// A real small run, of whose visits there can be any number.
struct Many {
    dir: TempDir,
    header: String,
    visits: Vec<Visit>,
}

impl Many {
    fn of(only: &str) -> Many {
        let dir = tempfile::tempdir().expect("a folder");
        end(&mut run_into(dir.path(), &pretended(only))).expect(0);
        let text = unsealed(&file_of(dir.path()));
        let header = text.lines().next().expect("a line").to_string();
        Many { dir, header, visits: run_file::parse(text.as_bytes()).expect("a run").visits }
    }

    /// The visits again and again, each in its own place; every seventh window of them is a little
    /// slower.
    fn visit(&self, order: u32) -> Visit {
        let mut visit = self.visits[order as usize % self.visits.len()].clone();
        let cases = self.visits.iter().map(|visit| visit.case).max().map_or(1, |last| last + 1);
        (visit.order, visit.pass, visit.at_ms) = (order, order / cases, f64::from(order) * 10.0);
        for samples in &mut visit.samples {
            let windows = samples.ns.len();
            samples.ns[order as usize % windows] *= 1.0 + 0.001 * f64::from(order % 7);
        }
        visit
    }

    fn write(&self, out: impl Write, visits: u32, mut change: impl FnMut(&mut Visit)) {
        let mut out = BufWriter::new(out);
        writeln!(out, "{}", self.header).expect("written");
        for order in 0..visits {
            let mut visit = self.visit(order);
            change(&mut visit);
            serde_json::to_writer(&mut out, &Record::Visit(Box::new(visit))).expect("written");
            out.write_all(b"\n").expect("written");
        }
        out.flush().expect("written");
    }

    fn text(&self, visits: u32, change: impl FnMut(&mut Visit)) -> Vec<u8> {
        let mut text = Vec::new();
        self.write(&mut text, visits, change);
        text
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn within(text: &[u8], limits: Limits) -> anyhow::Result<Run> {
    run_file::parse_within(run_file::unpacked(text, &limits)?, &limits)
}

fn refusal(text: &[u8], limits: Limits) -> String {
    format!("{:#}", within(text, limits).expect_err("more than may be"))
}

#[test]
fn what_a_file_may_hold_is_bounded_and_told() {
    let many = Many::of("selftest.steady");
    let text = many.text(40, |_| {});
    let with = |more: &str| [text.as_slice(), more.as_bytes()].concat();
    let last = |text: &[u8], limits: Limits| {
        let run = within(text, limits).expect("a run");
        (run.visits.len(), run.damage.first().cloned().unwrap_or_default())
    };
    let usual = Limits::default;
    assert_eq!(last(&text, usual()), (40, String::new()));

    assert!(refusal(&text, Limits { size: 9000, ..usual() }).contains("has more than 8 KiB"));
    assert!(refusal(&text, Limits { visits: 39, ..usual() }).contains("more than 39 passes"));
    assert!(
        refusal(&text, Limits { cases: 0, ..usual() })
            .contains("plan has 1 benchmarks by placement, the limit is 0")
    );
    assert!(refusal(&text, Limits { planned_series: 0, ..usual() }).contains("plan has 1 figures"));
    assert!(refusal(&text, Limits { titles: 0, ..usual() }).contains("has 1 benchmarks"));
    assert!(refusal(&text, Limits { metrics: 0, ..usual() }).contains("figures, the limit is 0"));
    assert!(refusal(&text, Limits { header: 100, ..usual() }).contains("a line of more than 100 bytes"));
    let memory = [(1, 8), (2, 8)];
    assert!(refusal(&text, Limits { memory, ..usual() }).contains("of memory, with at most 8 kept of each"));

    let long = with(&format!("{{\"event\":\"{}\"}}\n{}", "x".repeat(9000), "{}\n"));
    let (visits, said) = last(&long, Limits { line: 8192, ..usual() });
    assert!(visits == 40 && said.contains("a line of more than 8 KiB"), "{said}");
    let blank = with(&" ".repeat(200_000));
    let (visits, said) = last(&blank, Limits { unreadable_bytes: 1 << 16, ..usual() });
    assert!(visits == 40 && said.contains("more than 64 KiB of blank lines"), "{said}");
    assert_eq!(last(&blank, usual()), (40, String::new()));
    let nonsense = with(&"x\n".repeat(1000));
    let (visits, said) = last(&nonsense, Limits { unreadable_lines: 20, ..usual() });
    assert!(visits == 40 && said.contains("everything after line 61 was left out: 20 lines"), "{said}");
    let (visits, said) = last(&nonsense, Limits { unreadable_bytes: 19, ..usual() });
    assert!(visits == 40 && said.contains("the limit is 10000 or 19 bytes"), "{said}");
    let events = with(&"{\"event\":{\"at_ms\":1,\"kind\":\"k\",\"text\":\"t\"}}\n".repeat(30));
    let (visits, said) = last(&events, Limits { others: 20, ..usual() });
    assert!(visits == 40 && said.contains("20 lines before it are not passes"), "{said}");
    let newer = with(&"{\"dream\":[]}\n".repeat(30));
    assert!(last(&newer, Limits { other_bytes: 99, ..usual() }).1.contains("or 99 bytes"));

    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&with(&" ".repeat(1 << 20))).expect("packed");
    let packed = packed.finish().expect("packed");
    assert_eq!(last(&packed, usual()), (40, String::new()));
    let said = refusal(&packed, Limits { expansion: 30, expansion_from: 1 << 16, ..usual() });
    assert!(said.contains("unpack to more than 30 times their size"), "{said}");
}

/// Visits are thinned evenly over the run and for each outcome, and what is said counts all of
/// them.
#[test]
fn of_too_many_visits_some_are_used_and_that_is_said() {
    const VISITS: u32 = 6000;
    let many = Many::of("selftest.steady");
    let wrong = |visit: &mut Visit| {
        if visit.order == 4321 {
            visit.reason = Some(model::Reason::WrongAnswer("21 is not 42".to_string()));
        }
    };
    let text = many.text(VISITS, wrong);
    let few = Limits { visits_each: 100, ..Limits::default() };
    let run = within(&text, few.clone()).expect("a run");
    assert_eq!(run.visit_count(), VISITS as usize);
    assert!((40..=101).contains(&run.visits.len()), "{}", run.visits.len());
    assert_eq!(run, within(&text, few).expect("a run"), "the same file gave another run");
    let left_out = run.left_out(0);
    assert_eq!((left_out.good + run.visits.len(), left_out.failed), (VISITS as usize, 0));
    for third in 0..3 {
        let own = |visit: &&Visit| visit.order / (VISITS / 3) == third;
        assert!(run.visits.iter().filter(own).count() >= run.visits.len() / 5, "not evenly");
    }
    let odd = run.visits.iter().filter(|visit| visit.order % 2 == 1).count();
    assert!(odd > run.visits.len() / 5 && odd < run.visits.len() * 4 / 5, "of every two always the same");
    let whole = within(&text, Limits::default()).expect("a run");
    assert_eq!(run.measured_ms(), whole.measured_ms());
    let place = |run: &Run| {
        let series = stats::series::series(run).remove(0);
        let process = series.processes.iter().find(|process| process.order == run.visits[20].order).cloned();
        process.map(|process| (process.position, process.predecessor))
    };
    assert_eq!(
        place(&run).map(|(_, before)| before),
        Some(Some(0)),
        "the visit before was not kept, and there was one"
    );

    let kept = run.visits.len();
    let diagnosis = diagnose::diagnose(run);
    let said = format!("{kept} of {VISITS} passes were used, drawn evenly over the run");
    let report = report::text::render(
        &report::sections::compose(&diagnosis).expect("a report"),
        report::text::Style { color: false, unicode: true, width: 100 },
    );
    assert!(report.split_whitespace().collect::<Vec<_>>().join(" ").contains(&said), "{report}");
    assert!(
        report::json::output(&diagnosis, &diagnose::reference::References::published())
            .thinned
            .is_some_and(|thinned| thinned.starts_with(&said))
    );
    // The one wrong answer of all is found, and counted among all.
    let wrong = diagnosis.findings.iter().find(|finding| finding.rule == "wrong-answer").expect("found");
    assert!(
        wrong.headline.contains(&format!("in 1 of {VISITS}"))
            || wrong.headline.contains(&format!("1 of {VISITS} visits")),
        "{}",
        wrong.headline
    );
}

/// Where memory is what ends first, the longest cases are thinned first, and short ones not at all.
#[test]
fn memory_for_visits_is_bounded() {
    let many = Many::of("selftest.steady,selftest.drift");
    let rare = |visit: &mut Visit| {
        if visit.case == 1 && visit.order > 100 {
            visit.case = 0;
            visit.samples.clear();
        }
    };
    let text = many.text(2000, rare);
    let memory = [(1 << 20, 60), (2 << 20, 8)];
    let run = within(&text, Limits { memory, ..Limits::default() }).expect("a run");
    let whole = within(&text, Limits::default()).expect("a run");
    let of = |run: &Run, case: u32| run.visits.iter().filter(|visit| visit.case == case).count();
    assert!(run.visits.len() < 1000 && of(&run, 0) > 30, "{}", run.visits.len());
    assert_eq!((of(&run, 1), whole.visits.len()), (of(&whole, 1), 2000));
}

#[test]
fn columns_are_read_as_they_are_written() {
    for (text, expected) in [
        ("1", Packed::Same(1.0)),
        ("-2", Packed::Same(-2.0)),
        ("1.5", Packed::Same(1.5)),
        ("[]", Packed::Each(vec![])),
        ("[1,2.5,-3]", Packed::Each(vec![1.0, 2.5, -3.0])),
    ] {
        assert_eq!(serde_json::from_str::<Packed>(text).expect("a column"), expected);
    }
    for wrong in ["null", "\"1\"", "[null]", "{}", "[[1]]", "true"] {
        assert!(serde_json::from_str::<Packed>(wrong).is_err(), "{wrong}");
    }
}

/// Brackets that never close behind a real result: each is a document's begin, and none is looked
/// at to the file's end for ever.
#[test]
fn brackets_without_end_are_given_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("result.json");
    for (name, line) in [("iperf3-tcp.json", "{ nan\n"), ("fio-jobs.json", "{\"a\":1,\n")] {
        let real = testkit::root().join("tests/foreign").join(name);
        let text = fs::read_to_string(real).expect("readable");
        fs::write(&file, format!("{text}\n{}", line.repeat(60_000))).expect("written");
        let ended = end(crate::assay().args(["import", "--all"]).arg(&file));
        ended.expect(0).sane();
        assert!(ended.out.contains("were left out: the file has too many"), "{name}: {}", ended.out);
    }
}

/// Hundreds of megabytes of nonsense in a few megabytes, read with little memory.
#[test]
fn a_bomb_is_refused() {
    let many = Many::of("selftest.steady");
    let bomb = many.path("bomb.assay.jsonl.gz");
    let mut packed = GzEncoder::new(File::create(&bomb).expect("a file"), Compression::fast());
    packed.write_all(&many.text(9, |_| {})).expect("packed");
    let part = vec![b'x'; 1 << 20];
    for _ in 0..300 {
        packed.write_all(&part).expect("packed");
        packed.write_all(b"\n").expect("packed");
    }
    packed.finish().expect("packed");
    for (verb, code) in [("diagnose", 3), ("report", 3), ("peers", 3)] {
        let ended = in_little_memory(crate::assay().arg(verb).arg(&bomb));
        ended.expect(code).says(&["bomb.assay.jsonl.gz", "unpack to more than 200 times their size"]);
    }
    for words in [[&bomb, &bomb].map(|file| file.as_os_str()), ["--from".as_ref(), bomb.as_os_str()]] {
        let verb = if words[0] == "--from" { "utilization" } else { "compare" };
        let ended = in_little_memory(crate::assay().arg(verb).args(words));
        ended.expect(3).says(&["bomb.assay.jsonl.gz", "unpack to more than 200 times their size"]);
    }
}

fn in_little_memory(command: &mut Command) -> Ended {
    end(&mut wrapped(&["sh", "-c", "ulimit -v 600000; exec \"$@\"", "sh"], command))
}

/// Every verb that reads a file refuses what is none, and does not wait for a writer.
#[test]
fn what_is_no_file_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let pipe = dir.path().join("pipe");
    if let Err(error) = rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    ) {
        return skipped("what_is_no_file_is_refused", error);
    }
    let socket = dir.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let named: [(&Path, &str); 4] = [
        (&pipe, "is a named pipe"),
        (&socket, "is a socket"),
        (Path::new("/dev/zero"), "is a device"),
        (dir.path(), "is a folder"),
    ];
    for (path, words) in named {
        for verb in ["report", "diagnose", "import", "machine --from", "machine --dmi", "utilization --from"]
        {
            let mut command = crate::assay();
            command.args(verb.split_whitespace()).arg(path);
            end(&mut command).expect(3).says(&[words]);
        }
        // Folders hold runs there, specs, or a host.
        if path != dir.path() {
            for verb in ["peers", "trend", "summary", "machine --root"] {
                let mut command = crate::assay();
                command.args(verb.split_whitespace()).arg(path);
                end(&mut command).expect(3).says(&[words]);
            }
            end(crate::assay().args(["check", "RUN", "--spec"]).arg(path)).expect(2).says(&[words]);
            end(crate::assay().arg("compare").args([path, path])).expect(3).says(&[words]);
        }
        let explain = ["explain-profile", "--bench", "hackbench", "--after"];
        end(crate::assay().args(explain).arg(path)).expect(2).sane();
    }
}

/// What a shell hands over is read, also where it can be read only once.
#[test]
fn an_open_pipe_is_read() {
    let many = Many::of("selftest.steady");
    let text = many.text(9, |_| {});
    let summary = fs::read_to_string(file_of(many.dir.path())).expect("readable");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(summary.as_bytes()).expect("packed");
    for content in [text.clone(), packed.finish().expect("packed")] {
        for named in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
            let mut child = crate::assay();
            let child =
                child.args(["diagnose", "--json", named]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = child.spawn().expect("started");
            let mut pipe = child.stdin.take().expect("a pipe");
            // Slowly at first: a reader that asks too early waits.
            pipe.write_all(&content[..1]).expect("written");
            std::thread::sleep(std::time::Duration::from_millis(50));
            pipe.write_all(&content[1..]).expect("written");
            drop(pipe);
            let output = child.wait_with_output().expect("ended");
            assert!(output.status.success() && output.stdout.starts_with(b"{"), "{named}: {output:?}");
        }
    }
}

/// A run of a million visits takes a gigabyte of memory and no more.
#[test]
#[ignore = "writes a gigabyte and reads it four times, minutes in a debug build: make soak"]
fn a_million_visits_are_reported_in_a_gigabyte() {
    let many = Many::of("selftest");
    let path = many.path("million.assay.jsonl");
    many.write(File::create(&path).expect("a file"), 1_000_000, |_| {});
    eprintln!("{} bytes", fs::metadata(&path).expect("a file").len());
    for verb in ["diagnose", "report"] {
        let ended = end(&mut wrapped(
            &["sh", "-c", "ulimit -v 1100000; exec \"$@\"", "sh"],
            crate::assay().arg(verb).arg(&path),
        ));
        eprintln!("{verb}: {:?}", ended.cpu);
        ended.expect(0).sane();
    }
}
