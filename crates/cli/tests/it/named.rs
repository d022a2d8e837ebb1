//! Names that users give: of the host, its labels, and of files that reports go into.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::assay;
use crate::golden::pretended;
use crate::runs::{Ended, end, run_file, run_into};

fn verb(words: &[&str], paths: &[&Path]) -> Ended {
    end(assay().args(words).args(paths))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_host_and_its_labels_are_called_as_their_owner_calls_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = pretended(7, folder.path(), &["--host", "db1", "--label", "rack=r7", "--label", "tier=gold"]);
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("db1-"), "{name}");
    let report = json(&fs::read_to_string(folder.path().join("report.json")).expect("a report"));
    assert_eq!((report["host"].as_str(), report["labels"]["rack"].as_str()), (Some("db1"), Some("r7")));
    assert!(verb(&["diagnose"], &[&run]).expect(0).out.starts_with("db1 · "));
    let summary = json(&verb(&["summary"], &[&run]).expect(0).out);
    assert_eq!(summary["summary"]["labels"], serde_json::json!({"rack": "r7", "tier": "gold"}));
    assert_eq!(
        summary["summary"]["make_up"].as_array().map(|all| all.iter().any(|one| one[0] == "rack")),
        Some(false)
    );
    // What is another host is no run to go on with.
    let by_environment = |host: &str| {
        let mut command = assay();
        command.args(["run", "--quick", "--pretend", "7", "--only", "cpu.clock", "--out"]).arg(folder.path());
        end(command.env("ASSAY_HOST", host).env("ASSAY_LABELS", "rack=r9"))
    };
    by_environment("pod7").expect(0).says(&["pod7: measuring"]);
    // As `--host` itself would be.
    by_environment("a\u{1b}b").expect(2).says(&["ASSAY_HOST", "characters"]);
    for wrong in ["rack", "rack=", "=r7"] {
        verb(&["run", "--dry-run", "--label", wrong], &[]).expect(2).says(&["KEY=VALUE"]);
    }
}

#[test]
fn summaries_stand_for_their_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str| folder.path().join("runs").join(name);
    let one = pretended(7, &out("a"), &["--host", "db1", "--label", "rack=r7"]);
    let other = pretended(8, &out("b"), &["--host", "db2"]);
    let lines = verb(&["summary"], &[&folder.path().join("runs")]).expect(0).out.clone();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let schema = crate::validator("summary");
    for (line, (run, host)) in lines.iter().zip([(&one, "db1"), (&other, "db2")]) {
        let line = json(line);
        assert!(schema.is_valid(&line), "{line}");
        assert_eq!(line["summary"]["host"], host);
        assert_eq!(line["file"].as_str(), run.to_str());
        use sha2::Digest;
        let sum = sha2::Sha256::digest(fs::read(run).expect("a run"));
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(line["sha256"].as_str(), Some(sum.as_str()));
    }
    let fleet = folder.path().join("fleet.ndjson");
    fs::write(&fleet, lines.join("\n")).expect("written");
    let hosts = |paths: &[&Path]| {
        let found = json(&verb(&["peers", "--json"], paths).expect(4).out);
        let hosts = found["hosts"].as_array().expect("hosts").clone();
        hosts
            .iter()
            .map(|host| (host["host"].clone(), host["file"].clone(), host["labels"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts(&[&fleet]), hosts(&[&one, &other]));
    // A file of summaries goes through as it is: all its lines, each with its run's checksum.
    let through = verb(&["summary"], &[&fleet]).expect(0).out.clone();
    assert_eq!(
        through.lines().map(json).collect::<Vec<_>>(),
        lines.iter().map(|line| json(line)).collect::<Vec<_>>()
    );
    // A run file's own last line is such a line, too.
    let text = fs::read_to_string(&one).expect("a run");
    let tail = folder.path().join("tail.ndjson");
    fs::write(&tail, text.lines().last().expect("a line")).expect("written");
    assert_eq!(hosts(&[&tail])[0].0, "db1");
    // What a summary has compares as the run does.
    let first = format!("{}#1", fleet.display());
    let against = |a: &Path| json(&verb(&["compare", "--json"], &[a, &other]).out);
    let metric = |found: &Value| {
        let all = found["metrics"].as_array().expect("metrics").clone();
        let own =
            all.into_iter().find(|one| one["key"].as_str().is_some_and(|key| key.starts_with("cpu.clock@")));
        own.expect("the clock")["a"].as_f64().expect("a number")
    };
    let (by_summary, by_run) = (metric(&against(Path::new(&first))), metric(&against(&one)));
    assert!((by_summary / by_run - 1.0).abs() < 1e-6, "{by_summary} {by_run}");
    verb(&["compare"], &[&fleet, &other]).expect(3).says(&["its summaries are not alike", "#1"]);
    verb(&["summary"], &[&fleet.with_extension("missing")]).expect(3).says(&["no run has a summary"]);
}

#[test]
fn a_summary_of_thousands_of_figures_is_read_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = pretended(7, &folder.path().join("a"), &["--host", "db1"]);
    let text = fs::read_to_string(&run).expect("a run");
    let (before, last) = text.trim_end().rsplit_once('\n').expect("lines");
    let mut line = json(last);
    let series = line["summary"]["series"].as_array_mut().expect("series");
    let first = series.first().cloned().expect("a figure");
    series.extend((0..6000).map(|number| {
        let mut one = first.clone();
        one["key"] = format!("memory.cores@{number}#time").into();
        one
    }));
    let asked = series.len();
    // A seal holds for the line that it was made for.
    line.as_object_mut().expect("a line").retain(|name, _| name == "summary");
    let text = format!("{before}\n{line}\n");
    assert!(line.to_string().len() > 600 << 10);
    let (plain, packed) = (folder.path().join("long.assay.jsonl"), folder.path().join("long.assay.jsonl.gz"));
    fs::write(&plain, &text).expect("written");
    let mut gz = flate2::write::GzEncoder::new(fs::File::create(&packed).expect("made"), Default::default());
    std::io::Write::write_all(&mut gz, text.as_bytes()).expect("packed");
    gz.finish().expect("packed");
    let lines = folder.path().join("long.ndjson");
    fs::write(&lines, verb(&["summary"], &[&plain]).expect(0).out.as_bytes()).expect("written");
    for file in [&plain, &packed, &lines] {
        let read = json(&verb(&["summary"], &[file]).expect(0).out);
        assert_eq!(read["summary"]["series"].as_array().map(Vec::len), Some(asked), "{}", file.display());
    }
}

#[test]
fn an_ending_that_says_no_form_is_refused_before_any_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = pretended(7, &folder.path().join("out"), &[]);
    let file = |name: &str| folder.path().join(name).display().to_string();
    for (words, runs) in [("compare", 2), ("peers", 1), ("report", 1)] {
        let runs = vec![run.as_path(); runs];
        for name in ["fleet.xlsx", "fleet.txt"] {
            verb(&[words, "--out", &file(name)], &runs)
                .expect(2)
                .says(&["there is no report form", ".csv (CSV)"]);
            assert!(!Path::new(&file(name)).exists(), "{words} {name}");
        }
        verb(&[words, "--out", &file("f.htm")], &runs).expect(2).says(&["did you mean", "f.html?"]);
    }
    verb(&["compare", "--out", &file("metrics.csv")], &[&run, &run]).says(&["saved"]);
    let text = fs::read_to_string(file("metrics.csv")).expect("written");
    assert!(
        text.starts_with(
            "host_a,file_a,host_b,file_b,metric,title,unit,a,b,ratio,low,high,verdict,headline,reason\n"
        ),
        "{text}"
    );
    verb(&["peers", "--out", &file("fleet.csv")], &[&run]).expect(4).says(&["saved"]);
    let text = fs::read_to_string(file("fleet.csv")).expect("written");
    assert!(text.starts_with("host,file,started,group,figure,ratio,z,peers,flagged\nvm,"), "{text}");
    // One file a report, in the form of its ending; a folder as before, in this version.
    verb(&["report", "--out", &file("r.md")], &[&run]).expect(0).says(&["saved"]);
    assert!(fs::read_to_string(file("r.md")).expect("written").starts_with("# vm"));
    let said = verb(&["report", "--format", "csv", "--out", &file("out")], &[&run]);
    said.expect(0).says(&["in this version only", "report.csv"]);
    // None of the files can be used: one message, no report.
    fs::write(file("text"), "hello").expect("written");
    let ended = verb(&["peers", "--out", &file("none.html")], &[Path::new(&file("text"))]);
    ended.expect(3).says(&["none of 1 file can be used"]);
    assert!(!ended.err.contains("saved") && !Path::new(&file("none.html")).exists(), "{}", ended.err);
}

#[test]
fn names_that_choose_nothing_of_results_are_told_the_nearest() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = pretended(7, folder.path(), &[]);
    let only = |name: &str| verb(&["compare", "--only", name], &[&run, &run]);
    only("memory.latancy").expect(2).says(&["did you mean memory.latency?"]);
    assert!(!only("memory.latency").err.contains("no result has"));
}

#[test]
fn markdown_is_short_enough_for_a_comment() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = assay();
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    command.args(["run", "--quick", "--pretend", "7", "--new"]).arg("--from").arg(machine);
    end(command.arg("--out").arg(folder.path())).expect(0);
    let run = crate::runs::run_file(folder.path());
    let text = verb(&["report", "--format", "markdown"], &[&run]).expect(0).out.clone();
    assert!(text.len() <= 60_000, "{} bytes", text.len());
    for holds in ["## Findings", "## Results", "Left out here", "All figures"] {
        assert!(text.contains(holds), "{holds}");
    }
    assert!(!text.contains("## All figures") && !text.contains("## Every sample"));
}

/// Runs are kept and found by a name; a name without runs gets a message on how to give one.
#[test]
fn runs_are_kept_and_found_by_a_name() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    let said = |args: &[&str]| {
        let mut command = assay();
        let output = command.args(args).current_dir(folder.path()).output().expect("assay runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    };
    let run = |seed: &str, more: &[&str]| {
        let machine = machine.to_str().expect("a plain path");
        let args = [
            "run",
            "--quick",
            "--new",
            "--pretend",
            seed,
            "--from",
            machine,
            "--only",
            "cpu.clock,ipc.pipe-pingpong",
        ];
        let (code, _, error) = said(&[&args, more].concat());
        assert_eq!(code, 0, "{error}");
    };
    let (code, _, error) = said(&["compare", "@before", "@after"]);
    assert!(code == 2 && error.contains("Name one by `assay run --name NAME`"), "{error}");
    run("1", &["--name", "before"]);
    run("2", &["--name", "before"]);
    let kept = std::fs::read_dir(folder.path().join("assay-out/before")).expect("a folder").flatten();
    let runs = kept.filter(|entry| entry.file_name().to_string_lossy().ends_with(".assay.jsonl"));
    assert_eq!(runs.count(), 2, "a run of a name that is there is another run of it");
    let (code, _, error) = said(&["compare", "@before"]);
    assert!(code == 2 && error.contains("assay-out has no run"), "{error}");
    run("3", &[]);
    let (code, text, error) = said(&["compare", "@before"]);
    assert!([0, 4].contains(&code) && text.contains("2 runs"), "{code} {text} {error}");
    assert!(error.contains("only one result is named; the other is assay-out/"), "{error}");
    let (code, _, error) = said(&["compare", "@befor"]);
    assert!(
        code == 2 && error.contains("did you mean before?") && error.contains("There are @before"),
        "{error}"
    );
    assert_eq!(said(&["diagnose", "@before"]).0, 0);
    // What is packed to save room keeps its name.
    let packed = folder.path().join("assay-out/packed");
    fs::create_dir(&packed).expect("a folder");
    let run = crate::runs::run_file(&folder.path().join("assay-out"));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&fs::read(run).expect("a run")).expect("packed");
    fs::write(packed.join("one.assay.jsonl.gz"), encoder.finish().expect("packed")).expect("written");
    for verb in ["diagnose", "summary"] {
        let (code, text, error) = said(&[verb, "@packed"]);
        assert!(code == 0 && !text.is_empty(), "{verb}: {error}");
    }
    assert_eq!(said(&["summary", "@before"]).1.lines().count(), 2);
    let (code, _, error) = said(&["run", "--name", "../x", "--dry-run"]);
    assert!(code == 2 && error.contains("letters, digits"), "{error}");
}

#[test]
fn a_run_may_keep_its_run_file_alone_and_says_what_makes_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = format!("{} --no-report", crate::runs::pretended("cpu.clock"));
    let plan = end(&mut run_into(folder.path(), &format!("{words} --dry-run")));
    assert!(plan.expect(0).out.contains("would write: a run file into "), "{}", plan.out);
    let ended = end(run_into(folder.path(), &words).env("COLUMNS", "300"));
    let run = run_file(folder.path());
    let names = || fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(names(), 1, "{}", ended.expect(0).err);
    let command = format!("assay report {}", run.display());
    assert!(ended.out.contains(&format!("page: {command} ")), "{command} is missing in: {}", ended.out);
    verb(&["report"], &[&run]).expect(0);
    assert!(folder.path().join("report.html").exists() && names() == 3);
}
