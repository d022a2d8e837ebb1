//! kill -9 at random moments of a sweep over real knobs of this machine: the experiment of the
//! tests, and of `make prove`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::run_file;
use model::vocabulary::selftest as ids;
use model::{Run, Visit};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

/// The knobs that are turned: their files, and what stands in a sweep's words. None is the
/// scheduler's: other tests run meanwhile.
pub const KNOBS: [(&str, &str); 2] = [
    ("/sys/kernel/mm/transparent_hugepage/enabled", "thp=always,madvise,never"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "thp_defrag=defer,never"),
];
/// Where root's own sessions note what they turned.
const ROOTS_JOURNAL: &str = "/var/lib/assay/knobs.json";
/// No wait is longer: what has not happened by then does not.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(1);

/// Real knobs are turned by one at a time, in this process or another.
pub fn only_one() -> Result<File, String> {
    let path = std::env::temp_dir().join("assay-real-knobs.lock");
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(|error| format!("{}: {error}", path.display()))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    Ok(file)
}

/// Files of this machine's kernel, put back as they were when this goes, however the test ends.
pub struct Guarded {
    files: Vec<(PathBuf, String)>,
    _lock: File,
}

impl Guarded {
    /// Waits for its turn; or says why these files cannot be turned here.
    pub fn files(paths: &[&str]) -> Result<Guarded, String> {
        let lock = only_one()?;
        let mut files = Vec::new();
        for path in paths {
            File::options().write(true).open(path).map_err(|error| format!("{path}: {error}"))?;
            files.push((PathBuf::from(path), value(Path::new(path))));
        }
        Ok(Guarded { files, _lock: lock })
    }

    /// The files that hold something else than before.
    pub fn turned(&self) -> Vec<&Path> {
        let turned = self.files.iter().filter(|(path, before)| value(path) != *before);
        turned.map(|(path, _)| path.as_path()).collect()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        for (path, before) in &self.files {
            if value(path) != *before {
                let _ = fs::write(path, before);
            }
        }
    }
}

/// What a kernel's file is set to: its text, or the word in brackets.
fn value(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word).to_string()
}

/// Children of a process whose command line has this word.
pub fn children_of(parent: u32, word: &str) -> Vec<Pid> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let of: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let has = command.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes());
        (of == parent && has).then(|| Pid::from_raw(pid)).flatten()
    });
    found.collect()
}

/// What is killed, and who puts the knobs back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The session alone; its watchdog puts back.
    Session,
    /// The session's whole process group; its watchdog puts back.
    Group,
    /// The session and its watchdog; `assay restore` puts back.
    Restore,
    /// The session and its watchdog; the next start of the same command puts back.
    NextStart,
}

impl Way {
    /// Ten in a row: half of the kills take the group, one in ten leaves the work to `assay
    /// restore`, and one to the next start.
    pub const TEN: [Way; 10] = [
        Way::Session,
        Way::Group,
        Way::Restore,
        Way::Group,
        Way::Session,
        Way::Group,
        Way::NextStart,
        Way::Group,
        Way::Session,
        Way::Group,
    ];
}

/// What came of one kill.
#[derive(Debug)]
pub struct Kill {
    pub way: Way,
    /// Knobs that were not at their value at that moment.
    pub turned: usize,
    /// Visits that were finished then.
    pub visits: usize,
    /// How long it took until every knob was back and the journal gone.
    pub back: Duration,
    /// What should not have happened.
    pub faults: Vec<String>,
}

/// A sweep that is killed over and over, and goes on each time.
pub struct Bout {
    program: PathBuf,
    folder: TempDir,
    knobs: Guarded,
    /// Sweeps that came to their end.
    pub completed: usize,
    /// Of the present one: the session that runs, and its visits so far.
    running: Option<Child>,
    kept: Vec<Visit>,
}

impl Bout {
    /// Or why there can be none on this machine.
    pub fn new(program: &Path) -> Result<Bout, String> {
        let knobs = Guarded::files(&KNOBS.map(|(file, _)| file))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = program.to_path_buf();
        Ok(Bout { program, folder, knobs, completed: 0, running: None, kept: Vec::new() })
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join(format!("out-{}", self.completed))
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("state/knobs.json")
    }

    fn assay(&self, words: &[&str]) -> Command {
        let said = File::create(self.folder.path().join("said")).expect("a file");
        let mut command = Command::new(&self.program);
        command.args(words).env("ASSAY_STATE", self.folder.path().join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).process_group(0);
        command
    }

    fn start(&self) -> Child {
        // A session of root's own would have us refused.
        wait_for(|| !Path::new(ROOTS_JOURNAL).exists());
        let knobs = KNOBS.map(|(_, words)| words);
        let words = [
            "sweep",
            &ids::STEADY,
            "--quick",
            "--force",
            "--visit-limit",
            "5m",
            // As soon as the fewest passes are made.
            "--effect",
            "1000",
            "--knob",
            knobs[0],
            "--knob",
            knobs[1],
            "--out",
        ];
        self.assay(&words).arg(self.out()).spawn().expect("the program starts")
    }

    /// Kills the sweep after so long, whatever it is at; `None` where it had come to its end
    /// before.
    pub fn kill(&mut self, way: Way, after: Duration) -> Option<Kill> {
        let mut child = self.running.take().unwrap_or_else(|| self.start());
        let end = Instant::now() + after;
        while Instant::now() < end {
            if let Some(status) = child.try_wait().expect("a child") {
                self.ended(status);
                return None;
            }
            std::thread::sleep(LOOK);
        }
        let finished = self.visits().map_or(0, |visits| visits.len());
        let turned = self.knobs.turned().len();
        let pid = Pid::from_child(&child);
        let both = matches!(way, Way::Restore | Way::NextStart);
        if both {
            // Stopped, so that no other watchdog begins between the two kills.
            kill_process(pid, Signal::STOP).expect("it is ours");
            children_of(child.id(), "--watch").into_iter().for_each(|dog| {
                kill_process(dog, Signal::KILL).expect("it is ours");
            });
        }
        let killed = if way == Way::Session { kill_process } else { kill_process_group };
        // Not yet waited for, it is there even where it has just ended.
        killed(pid, Signal::KILL).expect("it is ours");
        let begin = Instant::now();
        let status = child.wait().expect("a child");
        if status.code().is_some() {
            self.ended(status);
            return None;
        }
        let mut faults = Vec::new();
        match self.visits() {
            Ok(visits) if visits.len() < finished || !visits.starts_with(&self.kept) => {
                faults.push(format!("{finished} visits were finished, {} are in the file", visits.len()));
            }
            Ok(visits) => self.kept = visits,
            Err(_) if finished == 0 => {}
            Err(error) => faults.push(error),
        }
        if self.run().is_ok_and(|run| run.summary.is_some()) {
            // Killed while it told what it had measured: the same command begins another run.
            self.completed += 1;
            self.kept.clear();
        }
        if both {
            let left = self.knobs.turned().len();
            if left > 0 && !self.journal().exists() {
                faults.push("a knob is turned and no journal says so".to_string());
            }
            self.put_back(way, left, &mut faults);
        }
        // The next start goes on turning them: what it put back it has said.
        let is_back = || self.knobs.turned().is_empty() && !self.journal().exists();
        if way != Way::NextStart && !wait_for(is_back) {
            let journal = if self.journal().exists() { "there" } else { "gone" };
            faults.push(format!("{:?} stayed turned, the journal is {journal}", self.knobs.turned()));
        }
        let back = begin.elapsed();
        Some(Kill { way, turned, visits: finished, back, faults })
    }

    /// Has the knobs put back that a session and its watchdog left.
    fn put_back(&mut self, way: Way, left: usize, faults: &mut Vec<String>) {
        if way == Way::Restore {
            let status = self.assay(&["restore"]).status().expect("the program starts");
            if !status.success() {
                faults.push(format!("assay restore ended with {status}: {}", self.said()));
            }
            return;
        }
        let mut child = self.start();
        let begun = wait_for(|| {
            self.said().contains("measuring") || child.try_wait().is_ok_and(|status| status.is_some())
        });
        let said = self.said();
        if !begun || (left > 0 && said.matches(" again (was ").count() != left) {
            faults.push(format!("the next start had {left} knobs to put back: {said}"));
        }
        self.running = Some(child);
    }

    /// The visits of the run file, read as anybody would; none of them may be damaged but the line
    /// that was being written.
    fn visits(&self) -> Result<Vec<Visit>, String> {
        let run = self.run()?;
        match run.damage.iter().find(|damage| !damage.contains("the file ends in the middle of it")) {
            Some(damage) => Err(damage.clone()),
            None => Ok(run.visits),
        }
    }

    fn run(&self) -> Result<Run, String> {
        let entries = fs::read_dir(self.out()).map_err(|error| error.to_string())?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.to_string_lossy().ends_with(run_file::EXTENSION));
        if files.len() != 1 {
            return Err(format!("{} run files", files.len()));
        }
        run_file::read(&files[0]).map_err(|error| format!("{error:#}"))
    }

    /// A sweep that ended by itself: it must be whole.
    fn ended(&mut self, status: ExitStatus) {
        let said = self.said();
        // 3: all was measured, and none of it can be used, since others disturb us here.
        assert!(matches!(status.code(), Some(0 | 3)), "{status}: {said}");
        assert!(self.knobs.turned().is_empty() && !self.journal().exists(), "{said}");
        let run = self.run().expect("a whole run");
        assert!(run.summary.is_some() && run.damage.is_empty(), "{:?}", run.damage);
        let (visits, plan) = (run.visits, run.header.plan);
        assert!(visits.starts_with(&self.kept), "{} visits were kept", self.kept.len());
        assert!(visits.iter().all(|visit| visit.reason.is_none()), "{visits:?}");
        let cells: std::collections::BTreeSet<u32> = visits.iter().map(|visit| visit.case).collect();
        // One more than the values make where none of them is what was there.
        assert!(cells.len() == plan.len() && plan.len() >= 6, "{} of {} cells", cells.len(), plan.len());
        self.completed += 1;
        self.kept.clear();
    }

    /// Lets the sweep come to its end.
    pub fn finish(&mut self) {
        let mut child = self.running.take().unwrap_or_else(|| self.start());
        let begin = Instant::now();
        while begin.elapsed() < 2 * PATIENCE {
            if let Some(status) = child.try_wait().expect("a child") {
                return self.ended(status);
            }
            std::thread::sleep(10 * LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("no end of the sweep: {}", self.said());
    }
}

impl Drop for Bout {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
            // Its watchdog first, then the guard's own word.
            wait_for(|| !self.journal().exists());
        }
    }
}

/// Whether it came to be before our patience ended.
fn wait_for(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !what() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}
