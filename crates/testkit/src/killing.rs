//! kill -9 at random moments of a sweep over real kernel settings of this host: the experiment of
//! the tests and of `make prove`.

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

/// The kernel settings that the sweep changes: their files and the arguments of a sweep. None
/// belongs to the scheduler, because other tests run at the same time.
pub const KNOBS: [(&str, &str); 2] = [
    ("/sys/kernel/mm/transparent_hugepage/enabled", "thp=always,madvise,never"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "thp_defrag=defer,never"),
];
/// The journal of changed settings of root's sessions.
const ROOTS_JOURNAL: &str = "/var/lib/assay/knobs.json";
/// Limit of every wait.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A lock against other tests, in this or another process, that change real kernel settings.
pub fn only_one() -> Result<File, String> {
    let path = std::env::temp_dir().join("assay-real-knobs.lock");
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(|error| format!("{}: {error}", path.display()))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    Ok(file)
}

/// Files of kernel settings; dropping this value restores them.
pub struct RestoredFiles {
    files: Vec<(PathBuf, String)>,
    _lock: File,
}

impl RestoredFiles {
    /// Waits for the lock; the error says why these files cannot be changed.
    pub fn files(paths: &[&str]) -> Result<RestoredFiles, String> {
        let lock = only_one()?;
        let mut files = Vec::new();
        for path in paths {
            File::options().write(true).open(path).map_err(|error| format!("{path}: {error}"))?;
            files.push((PathBuf::from(path), value(Path::new(path))));
        }
        Ok(RestoredFiles { files, _lock: lock })
    }

    /// The files whose values have changed.
    pub fn changed(&self) -> Vec<&Path> {
        let changed = self.files.iter().filter(|(path, before)| value(path) != *before);
        changed.map(|(path, _)| path.as_path()).collect()
    }
}

impl Drop for RestoredFiles {
    fn drop(&mut self) {
        for (path, before) in &self.files {
            if value(path) != *before {
                let _ = fs::write(path, before);
            }
        }
    }
}

/// The value of a kernel setting's file: its text, or the word in brackets.
fn value(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word).to_string()
}

/// Children of a process whose command line contains this word.
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

/// What is killed, and what then restores the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillTarget {
    /// The session alone; its watchdog restores.
    Session,
    /// The session's whole process group; its watchdog restores.
    Group,
    /// The session and its watchdog; `assay restore` restores.
    Restore,
    /// The session and its watchdog; the next start of the same command restores.
    NextStart,
}

impl KillTarget {
    /// Ten kills: five of the group, three of the session, one that `assay restore` and one that
    /// the next start must repair.
    pub const TEN: [KillTarget; 10] = [
        KillTarget::Session,
        KillTarget::Group,
        KillTarget::Restore,
        KillTarget::Group,
        KillTarget::Session,
        KillTarget::Group,
        KillTarget::NextStart,
        KillTarget::Group,
        KillTarget::Session,
        KillTarget::Group,
    ];
}

/// The outcome of one kill.
#[derive(Debug)]
pub struct Kill {
    pub target: KillTarget,
    /// Settings that were changed at the time of the kill.
    pub turned: usize,
    /// Visits that were finished by then.
    pub visits: usize,
    /// Time until all settings were restored and the journal removed.
    pub back: Duration,
    /// Errors found afterwards.
    pub faults: Vec<String>,
}

/// A sweep that is killed repeatedly and continues each time.
pub struct KilledSweep {
    program: PathBuf,
    folder: TempDir,
    knobs: RestoredFiles,
    /// Sweeps that were completed.
    pub completed: usize,
    /// The session of the current sweep, if it runs.
    running: Option<Child>,
    /// Visits of the current sweep so far.
    kept: Vec<Visit>,
}

impl KilledSweep {
    /// The error says why this host cannot run the experiment.
    pub fn new(program: &Path) -> Result<KilledSweep, String> {
        let knobs = RestoredFiles::files(&KNOBS.map(|(file, _)| file))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = program.to_path_buf();
        Ok(KilledSweep { program, folder, knobs, completed: 0, running: None, kept: Vec::new() })
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

    /// Kills the sweep after this time; `None` if it had ended before.
    pub fn kill(&mut self, target: KillTarget, after: Duration) -> Option<Kill> {
        let mut child = self.running.take().unwrap_or_else(|| self.start());
        let end = Instant::now() + after;
        while Instant::now() < end {
            if let Some(status) = child.try_wait().expect("a child") {
                self.ended(status);
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let finished = self.visits().map_or(0, |visits| visits.len());
        let turned = self.knobs.changed().len();
        let pid = Pid::from_child(&child);
        let both = matches!(target, KillTarget::Restore | KillTarget::NextStart);
        if both {
            // Stopped first, so that it starts no other watchdog between the two kills.
            kill_process(pid, Signal::STOP).expect("it is ours");
            children_of(child.id(), "--watch").into_iter().for_each(|dog| {
                kill_process(dog, Signal::KILL).expect("it is ours");
            });
        }
        let kill = if target == KillTarget::Session { kill_process } else { kill_process_group };
        // It was not waited for yet, so its id exists even if it has just ended.
        kill(pid, Signal::KILL).expect("it is ours");
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
            // Killed while it printed its results: the same command starts another run.
            self.completed += 1;
            self.kept.clear();
        }
        if both {
            let left = self.knobs.changed().len();
            if left > 0 && !self.journal().exists() {
                faults.push("a setting is changed, but there is no journal".to_string());
            }
            self.restore(target, left, &mut faults);
        }
        // The next start changes settings again; `restore` has checked what it reported.
        let is_restored = || self.knobs.changed().is_empty() && !self.journal().exists();
        if target != KillTarget::NextStart && !wait_for(is_restored) {
            let journal = if self.journal().exists() { "exists" } else { "is removed" };
            faults.push(format!("{:?} stayed changed, the journal {journal}", self.knobs.changed()));
        }
        let back = begin.elapsed();
        Some(Kill { target, turned, visits: finished, back, faults })
    }

    /// Restores the `left` settings that a killed session and watchdog left changed.
    fn restore(&mut self, target: KillTarget, left: usize, faults: &mut Vec<String>) {
        if target == KillTarget::Restore {
            let status = self.assay(&["restore"]).status().expect("the program starts");
            if !status.success() {
                faults.push(format!("assay restore ended with {status}: {}", self.said()));
            }
            return;
        }
        let mut child = self.start();
        let started = wait_for(|| {
            self.said().contains("measuring") || child.try_wait().is_ok_and(|status| status.is_some())
        });
        let said = self.said();
        if !started || (left > 0 && said.matches(" again (was ").count() != left) {
            faults.push(format!("the next start had {left} settings to restore: {said}"));
        }
        self.running = Some(child);
    }

    /// The visits of the run file; only the line that was being written may be damaged.
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

    /// Checks that a sweep which ended by itself is complete.
    fn ended(&mut self, status: ExitStatus) {
        let said = self.said();
        // 3: all was measured, but other work disturbed it.
        assert!(matches!(status.code(), Some(0 | 3)), "{status}: {said}");
        assert!(self.knobs.changed().is_empty() && !self.journal().exists(), "{said}");
        let run = self.run().expect("a whole run");
        assert!(run.summary.is_some() && run.damage.is_empty(), "{:?}", run.damage);
        let (visits, plan) = (run.visits, run.header.plan);
        assert!(visits.starts_with(&self.kept), "{} visits were kept", self.kept.len());
        assert!(visits.iter().all(|visit| visit.reason.is_none()), "{visits:?}");
        let cells: std::collections::BTreeSet<u32> = visits.iter().map(|visit| visit.case).collect();
        // One more if none of the values is the original one.
        assert!(cells.len() == plan.len() && plan.len() >= 6, "{} of {} cells", cells.len(), plan.len());
        self.completed += 1;
        self.kept.clear();
    }

    /// Lets the sweep run to its end.
    pub fn finish(&mut self) {
        let mut child = self.running.take().unwrap_or_else(|| self.start());
        let begin = Instant::now();
        while begin.elapsed() < 2 * PATIENCE {
            if let Some(status) = child.try_wait().expect("a child") {
                return self.ended(status);
            }
            std::thread::sleep(10 * POLL_INTERVAL);
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("no end of the sweep: {}", self.said());
    }
}

impl Drop for KilledSweep {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
            // The watchdog restores first, then dropping `knobs` does.
            wait_for(|| !self.journal().exists());
        }
    }
}

/// Waits for a condition; returns whether it became true within [`PATIENCE`].
fn wait_for(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !what() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    true
}
