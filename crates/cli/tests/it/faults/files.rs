//! Run files that are damaged, foreign, huge, doubled or from the future: a clear word about each,
//! never an invention.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runs::{diagnosed, end, on_file, pretended, read, run_file, run_into, unsealed};

/// The lines of a finished run with invented samples.
struct Lines {
    dir: TempDir,
    lines: Vec<Value>,
}

fn lines() -> Lines {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(dir.path(), &pretended("selftest.steady"))).expect(0);
    let text = unsealed(&run_file(dir.path()));
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    Lines { dir, lines }
}

impl Lines {
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).expect("written");
        path
    }

    fn text(lines: &[Value]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Indices of the lines that are visits.
    fn visits(&self) -> Vec<usize> {
        (0..self.lines.len()).filter(|index| self.lines[*index]["visit"].is_object()).collect()
    }
}

/// Every verb that reads a run file refuses it with these words, and leaves it as it is.
fn refused(path: &Path, words: &[&str]) {
    let before = fs::metadata(path).map(|file| file.len()).ok();
    let out = tempfile::tempdir().expect("a folder");
    for (verb, more) in [("diagnose", String::new()), ("report", format!("--out {}", out.path().display()))] {
        let ended = on_file(verb, path, &more);
        ended.expect(3).says(words).says(&[path.file_name().expect("a name").to_str().expect("UTF-8")]);
        assert!(ended.out.is_empty(), "{}", ended.out);
        assert!(ended.cpu.as_secs() < 30, "{verb} took {:?} of CPU time", ended.cpu);
    }
    assert_eq!(fs::read_dir(out.path()).expect("a folder").count(), 0, "half a report was left");
    assert_eq!(fs::metadata(path).map(|file| file.len()).ok(), before);
}

#[test]
fn what_is_no_run_file() {
    let lines = lines();
    let header = Lines::text(&lines.lines[..1]);
    refused(&lines.write("empty", ""), &["it is empty"]);
    refused(&lines.write("blank", "\n \n\n"), &["it is empty"]);
    refused(&lines.write("text", "processor : 0\n"), &["not the header of a run"]);
    refused(&lines.write("binary", [0u8, 159, 146, 150]), &["not the header of a run"]);
    refused(&lines.write("list", "[1, 2]\n"), &["not the header of a run"]);
    refused(&lines.write("object", "{\"a\": 1}\n"), &["not the header of a run"]);
    refused(&lines.write("half", &header[..header.len() / 2]), &["not a complete JSON object"]);
    refused(&lines.write("headless", Lines::text(&lines.lines[1..])), &["not the header of a run"]);
    refused(&lines.write("packed", b"\x1f\x8b\x08\0\0\0\0\0\0\0\xff\xff\xff"), &["cannot read it"]);
    refused(&lines.write("utf16", b"\xff\xfe{\0\"\0"), &["not the header of a run"]);
    refused(&lines.dir.path().join("missing"), &["cannot open", "No such file"]);
    refused(lines.dir.path(), &["is a folder"]);
    refused(Path::new(&crate::runs::recorded()), &["not a complete JSON object"]);
    let deep = format!("{{\"header\":{}1{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    refused(&lines.write("deep", deep), &["its header has no schema"]);
}

#[test]
fn files_without_an_end_are_not_read_to_it() {
    let lines = lines();
    let zeros = lines.dir.path().join("zeros");
    // Sparse: nothing on the disk, a terabyte to read.
    fs::File::create(&zeros).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    refused(&zeros, &["not the header of a run"]);
    on_file("diagnose", Path::new("/dev/zero"), "").expect(3).says(&["is a device"]);
    // A crash of the host may leave zeros behind good lines.
    let mut good = Lines::text(&lines.lines[..5]).into_bytes();
    good.extend([0; 4096]);
    let run = read(&lines.write("tail", good));
    assert_eq!(run.damage.len(), 1, "{:?}", run.damage);
}

#[test]
fn files_of_the_future() {
    let mut lines = lines();
    // Fields and kinds of lines that a later version added within the same schema.
    lines.lines[0]["header"]["colour"] = json!("blue");
    lines.lines[2]["visit"]["mood"] = json!({"good": true});
    lines.lines.insert(3, json!({"weather": {"sun": true}}));
    let run = read(&lines.write("fields", Lines::text(&lines.lines)));
    assert!(run.damage.is_empty() && run.summary.is_some(), "{:?}", run.damage);
    // A schema of which nothing is known here.
    lines.lines[0]["header"] = json!({"schema": 3, "everything": "else"});
    refused(
        &lines.write("schema", Lines::text(&lines.lines)),
        &["newer Assay", "schema 3", "use that version"],
    );
    lines.lines[0]["header"] = json!({"schema": "two"});
    refused(&lines.write("words", Lines::text(&lines.lines)), &["no schema"]);
    lines.lines[0]["header"] = json!({"schema": 1});
    refused(
        &lines.write("hollow", Lines::text(&lines.lines)),
        &["header has unknown content", "missing field"],
    );
}

#[test]
fn two_runs_in_one_file_are_not_mixed() {
    let lines = lines();
    let text = Lines::text(&lines.lines);
    let alone = read(&run_file(lines.dir.path()));
    // The same run again, and a longer one of the same plan behind a short one.
    let short = Lines::text(&lines.lines[..4]);
    for (name, first, visits) in [("same", &text, alone.visits.len()), ("longer", &short, 3)] {
        let run = read(&lines.write(name, format!("{first}{text}")));
        assert_eq!(run.visits.len(), visits, "{name}");
        assert!(run.damage.len() == 1 && run.damage[0].contains("another run starts"), "{:?}", run.damage);
    }
    // A visit that stands there twice counts once.
    let visit = lines.visits()[1];
    let mut twice = lines.lines.clone();
    twice.insert(visit, lines.lines[visit].clone());
    let run = read(&lines.write("twice", Lines::text(&twice)));
    assert_eq!(run.visits, alone.visits);
    assert!(run.damage[0].contains("is in the file twice"), "{:?}", run.damage);
}

#[test]
fn visits_that_make_no_sense_are_left_out_and_named() {
    type Change = fn(&mut Value);
    let changes: &[(&str, Change)] = &[
        ("not in the plan", |visit| visit["case"] = json!(77)),
        ("not in the catalogue", |visit| visit["samples"][0]["metrics"] = json!(["wishes"])),
        ("differ in length", |visit| visit["samples"][0]["work"] = json!([1.0, 2.0])),
        ("no samples or no figures", |visit| visit["samples"][0]["ns"] = json!([])),
        ("are warm-up", |visit| visit["samples"][0]["warm_up"] = json!(6)),
        ("histograms", |visit| visit["samples"][0]["histograms"] = json!([{"ns": [1], "count": [1]}])),
        ("invalid type", |visit| visit["samples"][0]["ns"] = json!(["soon"])),
        ("invalid type", |visit| visit["samples"][0]["ns"] = json!([null, 1.0])),
        ("missing field", |visit| *visit = json!({"order": 3})),
        ("invalid", |visit| visit["order"] = json!(-1)),
        ("unknown variant", |visit| visit["reason"] = json!({"kind": "tired", "why": "late"})),
    ];
    let lines = lines();
    let victim = lines.visits()[2];
    for (words, change) in changes {
        let mut changed = lines.lines.clone();
        change(&mut changed[victim]["visit"]);
        let path = lines.write("changed", Lines::text(&changed));
        let run = read(&path);
        assert_eq!(run.visits.len(), lines.visits().len() - 1, "{words}");
        assert!(run.damage.len() == 1 && run.damage[0].contains(words), "{words}: {:?}", run.damage);
        assert_eq!(diagnosed(&path)["damage"][0].as_str(), Some(run.damage[0].as_str()));
        // What is wrong with the file stands beside the results for people, too.
        assert!(on_file("diagnose", &path, "").out.contains("was left out"), "{words}");
    }
}

#[test]
fn numbers_that_no_measurement_gives_are_not_believed() {
    let lines = lines();
    for ns in [json!(0.0), json!(-5.0), json!(1e308), json!(5e-324)] {
        let mut changed = lines.lines.clone();
        for visit in lines.visits() {
            let windows = changed[visit]["visit"]["samples"][0]["ns"].as_array().map_or(0, Vec::len);
            changed[visit]["visit"]["samples"][0]["ns"] = json!(vec![ns.clone(); windows]);
        }
        let results = diagnosed(&lines.write("numbers", Lines::text(&changed)));
        let verdict = &results["series"][0]["verdict"];
        assert!(verdict != "trusted" && verdict != "trusted_with_cause", "{ns}: {}", results["series"][0]);
    }
}

#[test]
fn many_bad_lines_and_many_visits_are_read_in_time() {
    let lines = lines();
    let begin = std::time::Instant::now();
    // Of a million lines of nonsense some are listed, some counted, and the rest is not read.
    let mut text = Lines::text(&lines.lines[..5]).into_bytes();
    text.extend(b"x\n".repeat(1_000_000));
    let run = read(&lines.write("nonsense", text));
    assert!(run.damage.len() < 200, "{}", run.damage.len());
    let [unread, .., counted] = run.damage.as_slice() else { panic!("{:?}", run.damage) };
    assert!(counted.contains("9900 more") && unread.contains("everything after line"), "{counted} {unread}");
    // Visits are many in a long run: twice as many must not take four times as long.
    let mut file = std::io::BufWriter::new(fs::File::create(lines.dir.path().join("long")).expect("a file"));
    file.write_all(Lines::text(&lines.lines[..1]).as_bytes()).expect("written");
    for order in 0..60_000 {
        let visit = json!({"order": order, "case": 0, "pass": order, "at_ms": order});
        writeln!(file, "{}", json!({ "visit": visit })).expect("written");
    }
    file.into_inner().expect("flushed");
    assert_eq!(read(&lines.dir.path().join("long")).visit_count(), 60_000);
    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
}

#[test]
fn packed_files_are_read_as_far_as_they_go() {
    let lines = lines();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(Lines::text(&lines.lines).as_bytes()).expect("packed");
    let packed = packed.finish().expect("packed");
    let whole = read(&lines.write("whole.gz", &packed));
    assert_eq!(whole.visits.len(), lines.visits().len());
    let cut = read(&lines.write("cut.gz", &packed[..packed.len() - 40]));
    assert!(cut.visits.len() < whole.visits.len() || cut.summary.is_none());
    assert!(cut.damage.len() == 1, "{:?}", cut.damage);
}
