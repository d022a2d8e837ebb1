//! A run file cut at any byte: read, judged, gone on with.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use model::run_file::parse;
use model::{Record, Run};
use tempfile::TempDir;

use crate::runs::{
    diagnosed, end, is_tidy, on_file, page_is_whole, pretended, quiet_tree, read, results, run_file,
    run_files, run_into,
};

/// A finished run's file, and the words that made it.
struct Whole {
    bytes: Vec<u8>,
    run: Run,
    words: String,
    name: String,
    _dir: TempDir,
}

fn whole(words: String) -> Whole {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(dir.path(), &words)).measured();
    let file = run_file(dir.path());
    let name = file.file_name().expect("a name").to_string_lossy().to_string();
    Whole { bytes: fs::read(&file).expect("readable"), run: read(&file), words, name, _dir: dir }
}

/// A real run, in surroundings that cannot be seen.
fn real() -> Whole {
    let tree = quiet_tree();
    let root = tree.root().display().to_string();
    whole(format!("--quick --only selftest.steady --force --root {root}"))
}

impl Whole {
    /// Offsets right after each line's end.
    fn line_ends(&self) -> Vec<usize> {
        let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        ends.map(|(at, _)| at + 1).collect()
    }

    /// The run that a file cut to `length` bytes must give: whole lines, and a last one that only
    /// lacks its end.
    fn expected(&self, length: usize) -> Option<Run> {
        let mut run = Run::begun(self.run.header.clone());
        let mut begin = 0;
        for (index, end) in self.line_ends().into_iter().enumerate() {
            if length < end - 1 {
                if length > begin && index > 0 {
                    run.damage
                        .push(format!("line {} was left out (the file ends in the middle of it)", index + 1));
                }
                return (index > 0).then_some(run);
            }
            let mut line: serde_json::Value =
                serde_json::from_slice(&self.bytes[begin..end]).expect("a line");
            line.as_object_mut().expect("an object").remove("crc32");
            match serde_json::from_value(line).expect("a record") {
                Record::Header(_) => {}
                Record::Visit(visit) => run.visits.push(*visit),
                Record::TimeLine(line) => run.time_lines.push(line),
                Record::Event(event) => run.events.push(event),
                Record::Summary(summary) => run.summary = Some(*summary),
            }
            begin = end;
        }
        Some(run)
    }

    /// Reading a file cut to `length` bytes gives what stands in it, and nothing else.
    fn check_reading(&self, length: usize) {
        let cut = &self.bytes[..length];
        let read = catch_unwind(|| parse(cut)).unwrap_or_else(|_| panic!("panicked at {length} bytes"));
        match (read, self.expected(length)) {
            (Ok(mut found), Some(expected)) => {
                // How it is said why a line cannot be read is the JSON library's affair.
                let told =
                    found.damage.iter().zip(&expected.damage).all(|(found, start)| found.starts_with(start));
                assert!(told && found.damage.len() == expected.damage.len(), "{length}: {:?}", found.damage);
                found.damage.clone_from(&expected.damage);
                assert!(found == expected, "{length} bytes give another run");
            }
            (Err(error), None) => {
                let words = format!("{error:#}");
                let clear = words.contains("empty") || words.contains("first line");
                assert!(clear, "{length}: {words}");
            }
            (found, expected) => {
                panic!("{length} bytes: readable {}, should be {}", found.is_ok(), expected.is_some())
            }
        }
    }

    /// Where a cut is likely to hurt: around every line's end, in the middle of lines, and here and
    /// there.
    fn places(&self, here_and_there: usize) -> Vec<usize> {
        let mut places: Vec<usize> =
            self.line_ends().iter().flat_map(|end| end.saturating_sub(3)..=(end + 2)).collect();
        places.extend((0..here_and_there).map(|step| step * self.bytes.len() / here_and_there.max(1)));
        places.retain(|place| *place <= self.bytes.len());
        places.sort_unstable();
        places.dedup();
        places
    }

    fn cut_to(&self, length: usize) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(&self.name);
        fs::write(&file, &self.bytes[..length]).expect("written");
        (dir, file)
    }
}

#[test]
fn reading_what_is_left_of_an_invented_run_at_every_byte() {
    // On a host that reports next to nothing: a short header makes ten thousand readings quick.
    let tree = quiet_tree();
    let root = tree.root().display();
    let whole = whole(format!("--quick --only selftest.steady --pretend 7 --root {root}"));
    for length in 0..=whole.bytes.len() {
        whole.check_reading(length);
    }
}

#[test]
fn reading_what_is_left_of_other_runs() {
    let (several, real) = (whole(pretended("selftest.steady,memory.bandwidth")), real());
    assert!(real.run.visits.len() >= 5 && real.run.damage.is_empty());
    for whole in [several, real] {
        for length in whole.places(500) {
            whole.check_reading(length);
        }
    }
}

/// The file that was cut to `length` is judged, then gone on with by the same command.
fn check_going_on(whole: &Whole, length: usize) {
    let (dir, file) = whole.cut_to(length);
    let expected = whole.expected(length);
    let judged = on_file("diagnose", &file, "--json");
    match &expected {
        None => drop(judged.expect(3).says(&["is not a usable run file"])),
        Some(left) => {
            let results = diagnosed(&file);
            assert_eq!(results["complete"], left.summary.is_some());
            assert_eq!(results["damage"].as_array().map(Vec::len), Some(left.damage.len()));
        }
    }
    let resumes = expected.as_ref().is_some_and(|left| left.summary.is_none());
    let again = end(&mut run_into(dir.path(), &whole.words));
    again.expect(0).sane();
    assert_eq!(again.err.contains("resuming "), resumes, "{length}: {}", again.err);
    // What was there is still there, byte by byte.
    let now = fs::read(&file).expect("readable");
    assert!(now.starts_with(&whole.bytes[..length]), "{length}: the file was overwritten");
    let files = run_files(dir.path());
    assert_eq!(files.len(), if resumes { 1 } else { 2 }, "{length}");
    let result = files.iter().find(|path| resumes || **path != file).expect("a file");
    let finished = read(result);
    assert!(finished.visits == whole.run.visits, "{length}: not the visits of an uncut run");
    assert_eq!(finished.summary, whole.run.summary, "{length}");
    let torn = expected.filter(|_| resumes).map_or(0, |left| left.damage.len());
    assert_eq!(finished.damage.len(), torn, "{:?}", finished.damage);
    assert_eq!(results(dir.path())["complete"], true);
    is_tidy(dir.path());
}

#[test]
fn going_on_after_a_cut_ends_as_if_nothing_had_happened() {
    let whole = whole(pretended("selftest.steady"));
    let ends = whole.line_ends();
    let last = ends.len() - 1;
    // Inside the header, at its end, in the first, a middle and the last visit, in the summary, and
    // no cut at all.
    let mut places = vec![0, 1, ends[0] / 2, ends[0] - 2];
    for line in [0, 1, last / 2, last - 1] {
        places.extend([ends[line] - 1, ends[line], ends[line] + 1]);
    }
    places.extend([ends[last - 1] + 200, ends[last] - 2, ends[last] - 1, ends[last]]);
    for length in places {
        check_going_on(&whole, length);
    }
}

#[test]
fn a_real_run_goes_on_after_a_cut() {
    let tree = quiet_tree();
    let root = tree.root().display().to_string();
    let whole = whole(format!("--quick --only selftest.steady --force --root {root}"));
    let ends = whole.line_ends();
    let length = ends[ends.len() / 2] + 100;
    let left = whole.expected(length).expect("a header");
    let (dir, file) = whole.cut_to(length);
    end(&mut run_into(dir.path(), &whole.words))
        .measured()
        .says(&["resuming ", &left.visits.len().to_string()]);
    let finished = read(&file);
    assert_eq!(finished.visits[..left.visits.len()], left.visits);
    assert!(finished.visits.len() >= 5 && finished.summary.is_some() && finished.damage.len() == 1);
    let orders: Vec<u32> = finished.visits.iter().map(|visit| visit.order).collect();
    assert_eq!(orders, (0..orders.len() as u32).collect::<Vec<_>>());
    let passes: std::collections::BTreeSet<u32> = finished.visits.iter().map(|visit| visit.pass).collect();
    assert_eq!(passes.len(), finished.visits.len(), "a visit was repeated");
    // One time line: what came later is later.
    assert!(finished.visits.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
    assert!(finished.events.iter().any(|event| event.kind == "resumed"));
    page_is_whole(dir.path());
}

/// A file that was cut, with one word of its header changed, is no file to go on with.
fn is_another_run(what: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let whole = whole(pretended("selftest.steady"));
    let length = whole.line_ends()[4];
    let (dir, file) = whole.cut_to(length);
    let text = String::from_utf8(whole.bytes[..length].to_vec()).expect("UTF-8");
    let (header, rest) = text.split_once('\n').expect("lines");
    let mut header: serde_json::Value = serde_json::from_str(header).expect("JSON");
    change(&mut header["header"]);
    header.as_object_mut().expect("an object").remove("crc32");
    let changed = format!("{header}\n{rest}");
    fs::write(&file, &changed).expect("written");
    let again = end(&mut run_into(dir.path(), &whole.words));
    again.expect(0).sane();
    assert!(!again.err.contains("resuming "), "{what}: {}", again.err);
    assert_eq!(fs::read_to_string(&file).expect("readable"), changed, "{what}: it was touched");
    assert_eq!(run_files(dir.path()).len(), 2, "{what}");
    let new = run_files(dir.path()).into_iter().find(|path| *path != file).expect("a new file");
    assert!(read(&new).visits == whole.run.visits, "{what}");
}

#[test]
fn another_version_boot_plan_host_or_set_of_cpus_begins_a_new_run() {
    is_another_run("version", |header| header["assay"] = "0.0.9".into());
    is_another_run("boot", |header| header["boot_id"] = "4c5c1b62-0000-4000-8000-000000000000".into());
    is_another_run("plan", |header| header["plan_id"] = "0123456789abcdef".into());
    is_another_run("host", |header| header["host"] = "db7".into());
    is_another_run("CPUs", |header| header["allowed_cpus"] = "0".into());
    is_another_run("budget", |header| header["budget_s"] = 7.0.into());
}

#[test]
fn other_words_on_the_command_line_begin_a_new_run() {
    let whole = whole(pretended("selftest.steady"));
    let length = whole.line_ends()[4];
    let words = [
        whole.words.replace("selftest.steady", "selftest.drift"),
        whole.words.replace("--quick", "--profile standard"),
        whole.words.replace("--pretend 7", "--pretend 8"),
        format!("{} --budget 30s", whole.words),
        format!("{} --seed 99", whole.words),
        format!("{} --new", whole.words),
    ];
    for words in words {
        let (dir, file) = whole.cut_to(length);
        end(&mut run_into(dir.path(), &words)).sane();
        assert_eq!(run_files(dir.path()).len(), 2, "{words}");
        assert_eq!(fs::read(&file).expect("readable"), whole.bytes[..length], "{words}");
    }
}

#[test]
fn a_file_that_another_run_is_writing_is_left_to_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only selftest.steady --force";
    let mut first = crate::runs::start(&mut run_into(dir.path(), words));
    first.until("a visit", |_| crate::runs::visits_so_far(dir.path()) > 0);
    let second = end(&mut run_into(dir.path(), words));
    first.end().sane();
    assert!(!second.sane().err.contains("resuming "), "{}", second.err);
    let files = run_files(dir.path());
    assert_eq!(files.len(), 2);
    for file in files {
        let run = read(&file);
        assert!(run.summary.is_some() && run.damage.is_empty(), "{:?}", run.damage);
    }
}

#[test]
fn nothing_but_run_files_is_looked_at() {
    let whole = whole(pretended("selftest.steady"));
    let dir = tempfile::tempdir().expect("a folder");
    let name = |name: &str| dir.path().join(format!("{name}.assay.jsonl"));
    // A pipe without a writer would hold us up for ever; the others cannot be read, or lead
    // nowhere.
    assert!(crate::host::works("mkfifo", &[name("pipe").to_str().expect("a path")]));
    fs::create_dir(name("folder")).expect("a folder");
    std::os::unix::fs::symlink("/dev/zero", name("zeros")).expect("a link");
    std::os::unix::fs::symlink(dir.path().join("nowhere"), name("nowhere")).expect("a link");
    fs::write(name("empty"), "").expect("written");
    fs::write(name("text"), "Dear diary,\n").expect("written");
    let before = run_files(dir.path()).len();
    end(&mut run_into(dir.path(), &whole.words)).expect(0).sane();
    assert_eq!(run_files(dir.path()).len(), before + 1);
    assert_eq!(fs::metadata(name("empty")).expect("still there").len(), 0);
    assert!(Path::new(&name("pipe")).exists());
}
