//! Runs of the real program, and what they leave: run files, results, findings.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use model::Run;
use model::run_file;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;
use serde_json::Value;
use tempfile::TempDir;

use crate::host::{is_root, skipped, wrapped};
use crate::synthetic::Tree;

/// No test waits longer than this for a program: a hang is a failure, not a wait.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; 128 and more: the signal that ended it.
    pub code: i32,
    pub out: String,
    pub err: String,
    /// CPU time of it and of those that it waited for: the same however busy the host is.
    pub cpu: Duration,
}

impl Ended {
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Ended {
        assert_eq!(self.code, code, "standard error: {}\nstandard output: {}", self.err, self.out);
        self
    }

    /// It measured; whether its numbers can be used (else 3) depends on what others do here.
    #[track_caller]
    pub fn measured(&self) -> &Ended {
        assert!(matches!(self.code, 0 | 3), "ended with {}: {}", self.code, self.err);
        self.sane()
    }

    /// Neither stream reports a panic, and errors contain all these words.
    #[track_caller]
    pub fn says(&self, words: &[&str]) -> &Ended {
        self.sane();
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing in: {}", self.err);
        }
        self
    }

    #[track_caller]
    pub fn sane(&self) -> &Ended {
        assert!(!self.err.contains("panicked") && !self.out.contains("panicked"), "{}", self.err);
        assert!(self.code != 101 && self.code < 134, "ended with {}: {}", self.code, self.err);
        self
    }
}

/// A program that runs.
pub struct Running {
    pub child: Child,
    begin: Instant,
    texts: TempDir,
}

pub fn start(command: &mut Command) -> Running {
    let texts = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| File::create(texts.path().join(name)).expect("a file");
    let child = command
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("err"))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Running { child, begin: Instant::now(), texts }
}

impl Running {
    #[track_caller]
    pub fn end(mut self) -> Ended {
        self.wait_for_end();
        // Its times can be read until the wait below reaps it.
        let cpu = cpu_time(self.child.id());
        let status = self.child.wait().expect("it has ended");
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ended { code, out: self.text("out"), err: self.text("err"), cpu }
    }

    /// Sleeps until it has ended: who looks every few milliseconds takes CPU time from all others.
    #[track_caller]
    fn wait_for_end(&mut self) {
        let child = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).expect("our child");
        loop {
            let left = PATIENCE.saturating_sub(self.begin.elapsed());
            let left = Timespec::try_from(left).expect("some minutes");
            match poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&left)) {
                Ok(0) => {
                    let _ = self.child.kill();
                    panic!("no end after {PATIENCE:?}: {}", self.text("err"));
                }
                Ok(_) => return,
                Err(Errno::INTR) => {}
                Err(error) => panic!("poll: {error}"),
            }
        }
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.texts.path().join(name)).expect("a file")).to_string()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).expect("a process");
        rustix::process::kill_process(pid, signal).expect("the process is there");
    }

    /// Waits until `seen`, or fails.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut seen: impl FnMut(&Running) -> bool) {
        loop {
            let ended = self.child.try_wait().expect("a child");
            let begin = Instant::now();
            if seen(self) {
                return;
            }
            assert!(ended.is_none(), "it ended before {what}: {}", self.text("err"));
            assert!(self.begin.elapsed() < PATIENCE, "no {what}: {}", self.text("err"));
            // Looking takes a fifth of a CPU at most, however much there is to look at.
            std::thread::sleep(Duration::from_millis(1).max(4 * begin.elapsed()));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel counts in hundredths of a second.
fn cpu_time(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace();
    let ticks: u64 = fields.skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

pub fn end(command: &mut Command) -> Ended {
    start(command).end()
}

/// The user ID without any privilege (the kernel's overflow UID) on every Linux.
const NOBODY: u32 = 65534;

/// A command as a user without any privilege; as it is where we are none ourselves.
pub fn unprivileged(command: &Command) -> Command {
    let id = NOBODY.to_string();
    match is_root() {
        true => wrapped(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"], command),
        false => wrapped(&["env"], command),
    }
}

/// A folder that an unprivileged user owns; `None`, with a message, where there can be no such
/// user.
pub fn folder_of_nobody(test: &str) -> Option<TempDir> {
    let program = testkit::program();
    let version = end(&mut unprivileged(Command::new(program).arg("--version")));
    if version.code != 0 {
        skipped(test, format!("no unprivileged user can start {}: {}", program.display(), version.err));
        return None;
    }
    let dir = tempfile::tempdir().expect("a folder");
    if is_root() {
        std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("given away");
    }
    Some(dir)
}

/// `assay run` with these words (split at blanks), into a folder.
pub fn run_into(dir: &Path, words: &str) -> Command {
    let mut command = crate::assay();
    command.arg("run").args(words.split_whitespace()).arg("--out").arg(dir);
    command
}

/// Ends a run into a folder as soon as every case that can be measured was visited, however long
/// that takes on a busy host.
#[track_caller]
pub fn every_case_once(command: &mut Command, dir: &Path) -> Ended {
    let mut running = start(command.args(["--budget", "1h"]));
    let visited = |run: &Run| {
        let plan = run.header.plan.iter().enumerate();
        let mut possible = plan.filter(|(_, planned)| planned.unmet.is_none());
        possible.all(|(case, _)| run.visits.iter().any(|visit| visit.case as usize == case))
    };
    running.until("a visit of every case", |_| {
        std::thread::sleep(Duration::from_millis(50));
        run_so_far(dir).is_some_and(|run| visited(&run))
    });
    running.signal(rustix::process::Signal::TERM);
    let ended = running.end();
    assert!(matches!(ended.sane().code, 0 | 3 | 130), "ended with {}: {}", ended.code, ended.err);
    ended
}

/// `assay VERB FILE` with these words.
pub fn on_file(verb: &str, file: &Path, words: &str) -> Ended {
    end(crate::assay().arg(verb).arg(file).args(words.split_whitespace()))
}

/// The recorded host that pretended runs are made on.
pub fn recorded() -> String {
    testkit::root().join("tests/machines/firecracker-guest-2cpu.json").display().to_string()
}

/// Words of a run with invented samples: the same in every run, in a fraction of a second.
pub fn pretended(only: &str) -> String {
    format!("--quick --only {only} --pretend 7 --from {}", recorded())
}

/// All run files of a folder, oldest name first.
pub fn run_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).expect("a folder").flatten().map(|e| e.path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(run_file::EXTENSION));
    files.sort();
    files
}

/// The only run file of a folder.
#[track_caller]
pub fn run_file(dir: &Path) -> PathBuf {
    let files = run_files(dir);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// The text of a run file without its checksums, as the first versions wrote it: for tests that
/// change it.
#[track_caller]
pub fn unsealed(file: &Path) -> String {
    let text = match file.extension().is_some_and(|ending| ending == "gz") {
        true => std::io::read_to_string(GzDecoder::new(File::open(file).expect("readable"))),
        false => fs::read_to_string(file),
    };
    let text = text.expect("readable");
    let unsealed = |line: &str| match line.rsplit_once(",\"crc32\":\"") {
        Some((record, sum)) if sum.len() == 10 => format!("{record}}}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(unsealed).collect()
}

/// Writes a run with an earlier start, in seconds, for tests that cannot wait.
/// Nothing else differs.
#[track_caller]
pub fn write_earlier(run: &Path, seconds: i64, to: &Path) {
    let text = unsealed(run);
    let started = read(run).header.started;
    let began: jiff::Timestamp = started.parse().expect("a time");
    let earlier = began - jiff::SignedDuration::from_secs(seconds);
    let told = |time: &str| format!("\"started\":\"{time}\"");
    assert!(text.contains(&told(&started)), "{started}");
    fs::write(to, text.replace(&told(&started), &told(&earlier.to_string()))).expect("written");
}

#[track_caller]
pub fn read(file: &Path) -> Run {
    run_file::read(file).unwrap_or_else(|error| panic!("{error:#}"))
}

/// What the run file of a folder holds that a run is just writing.
fn run_so_far(dir: &Path) -> Option<Run> {
    let file = dir.is_dir().then(|| run_files(dir).pop()).flatten()?;
    run_file::read(&file).ok()
}

/// Visits in the run file of a folder that a run is just writing.
pub fn visits_so_far(dir: &Path) -> usize {
    let file = dir.is_dir().then(|| run_files(dir).pop()).flatten();
    // Not parsed: who waits for a visit asks many times a second.
    let text = file.and_then(|file| fs::read(file).ok()).unwrap_or_default();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"{\"visit\"") && line.ends_with(b"\n")).count()
}

/// What a run left in `report.json`.
#[track_caller]
pub fn results(dir: &Path) -> Value {
    let text = fs::read_to_string(dir.join("report.json")).expect("report.json was written");
    serde_json::from_str(&text).expect("JSON")
}

/// The results of `assay diagnose --json` for a run file.
#[track_caller]
pub fn diagnosed(file: &Path) -> Value {
    let ended = on_file("diagnose", file, "--json");
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.err))
}

/// The series whose key begins like this.
#[track_caller]
pub fn series<'a>(results: &'a Value, key: &str) -> &'a Value {
    let mut all = results["series"].as_array().expect("a list").iter();
    let found = all.find(|series| series["key"].as_str().is_some_and(|found| found.starts_with(key)));
    found.unwrap_or_else(|| panic!("no series {key}: {}", results["series"]))
}

/// Findings of one rule.
pub fn findings<'a>(results: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = results["findings"].as_array().expect("a list").iter();
    all.filter(|finding| finding["rule"] == rule).collect()
}

/// The rules that found something, each once.
pub fn fired(results: &Value) -> Vec<String> {
    let all = results["findings"].as_array().expect("a list").iter();
    let mut rules: Vec<String> =
        all.map(|finding| finding["rule"].as_str().expect("a rule").to_string()).collect();
    rules.sort();
    rules.dedup();
    rules
}

/// The report of a folder is whole.
#[track_caller]
pub fn page_is_whole(dir: &Path) {
    let page = fs::read_to_string(dir.join("report.html")).expect("report.html was written");
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{}", &page[..60]);
    let (page, signature) = page.rsplit_once("\n<!-- written by assay, crc32 ").expect("a signature");
    assert!(page.trim_end().ends_with("</html>") && signature.ends_with(" -->\n"), "it ends in the middle");
}

/// Whether a file is a run or a report of one by its name.
pub fn is_result(name: &str) -> bool {
    let reports = ["report.html", "report.json"];
    name.ends_with(run_file::EXTENSION)
        || reports.iter().any(|own| name == *own || name.ends_with(&format!(".{own}")))
}

/// Nothing but run files and reports is in a folder: no half-written file was left behind.
#[track_caller]
pub fn is_tidy(dir: &Path) {
    for entry in fs::read_dir(dir).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().to_string();
        assert!(is_result(&name), "{name} was left in {}", dir.display());
    }
}

/// A tree that stands for this host's counters and has nothing else but its CPUs: other work on
/// this host cannot be seen in it, so runs below it are quiet.
pub fn quiet_tree() -> Tree {
    let tree = Tree::new();
    tree.file("/sys/devices/system/cpu/online", &crate::host::allowed_cpus().to_string());
    tree.file("/proc/stat", &stat(0, 1));
    tree.file("/proc/vmstat", &vmstat(0, 0));
    for kind in ["cpu", "memory"] {
        tree.file(&format!("/proc/pressure/{kind}"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=1");
    }
    tree
}

/// Text of /proc/stat for this host's CPUs: `idle` ticks on each CPU, `stolen` ticks in all.
/// Its length is always the same.
pub fn stat(idle: u64, stolen: u64) -> String {
    let cpus = crate::host::allowed_cpus();
    let all = idle * cpus.len() as u64;
    let mut lines = vec![format!("cpu  100 0 100 {all:010} 0 0 0 {stolen:010} 0 0")];
    lines.extend(cpus.iter().map(|cpu| format!("cpu{cpu} 50 0 50 {idle:010} 0 0 0 0000000000 0 0")));
    lines.join("\n")
}

/// /proc/vmstat with `pages` pages swapped in and as many moved between nodes, and `faults` faults;
/// always of one length.
pub fn vmstat(pages: u64, faults: u64) -> String {
    format!(
        "pgfault {faults:010}\npswpin {pages:010}\npswpout 0000000000\nnuma_pages_migrated {pages:010}\nallocstall_normal 0"
    )
}
