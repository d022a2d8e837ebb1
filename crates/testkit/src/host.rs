//! Changes of this host by tests: dropping a guard undoes its change. What a killed earlier test
//! left behind is undone before the first change of this one.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::CpuSet;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Prefix of every name that tests make; the process id and a number follow.
const MARK: &str = "assay-test-";

/// Reports that this host cannot run a test.
pub fn skipped(test: &str, why: impl Display) {
    eprintln!("skipped {test}: {why}");
}

/// A command with the tools of target/fleet (Ansible, ReFrame, nfpm, DuckDB): `python3`, or the
/// program of this name in their `bin`.
pub fn fleet_tool(test: &str, name: &str) -> Option<Command> {
    let tools = crate::root().join("target/fleet");
    if !tools.join("bin/nfpm").is_file() {
        skipped(test, "no target/fleet: run tests/install-needs");
        return None;
    }
    let mut command = Command::new("python3");
    match name {
        "python3" => (),
        // A binary, not a Python script.
        "nfpm" => command = Command::new(tools.join("bin/nfpm")),
        name => _ = command.arg(tools.join("bin").join(name)),
    }
    command.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn allowed_cpus() -> CpuSet {
    sys::affinity::allowed().expect("affinity can be read")
}

/// A name that no other test and no other process uses.
pub fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{MARK}{}-{number}", std::process::id())
}

/// Whether a name was made by a test whose process has ended.
fn is_left_over(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(MARK) else { return false };
    let process = rest.split('-').next().unwrap_or(rest);
    process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists()
}

fn clean_up_once() {
    static CLEANED: Once = Once::new();
    CLEANED.call_once(|| {
        for (source, point) in mounts() {
            if is_left_over(&source) {
                unmount(Path::new(&point));
                let _ = fs::remove_dir(&point);
            }
        }
        for controller in ["cpu", "cpuset", "memory", "pids"] {
            let Some(own) = own_group(controller) else { continue };
            for entry in fs::read_dir(own).into_iter().flatten().flatten() {
                if is_left_over(&entry.file_name().to_string_lossy()) {
                    remove_group(&entry.path());
                }
            }
        }
    });
}

/// Source and mount point of all mounts.
fn mounts() -> Vec<(String, String)> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_string(), words.next()?.to_string()))
    };
    text.lines().filter_map(line).collect()
}

fn unmount(point: &Path) {
    let _ = Command::new("umount").arg("-l").arg(point).stderr(Stdio::null()).status();
}

/// A small file system for a test.
pub struct Mount {
    folder: TempDir,
}

impl Mount {
    /// Mounts a tmpfs with these options; the error says why it cannot.
    pub fn tmpfs(options: &str) -> Result<Mount, String> {
        if !is_root() {
            return Err("mounting needs root".to_string());
        }
        clean_up_once();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = ["-t", "tmpfs", "-o", options, &unique()];
        let mounted = Command::new("mount").args(arguments).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Mount { folder }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
            Err(error) => Err(format!("mount: {error}")),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let status = Command::new("mount").args(["-o", &options]).arg(self.path()).status();
        assert!(status.expect("mount runs").success(), "{options}");
    }

    /// Fills the file system up to about `left` free bytes with a file that [`Mount::make_room`]
    /// removes.
    pub fn fill(&self, left: u64) {
        let stat = rustix::fs::statvfs(self.path()).expect("a file system");
        let free = stat.f_bavail * stat.f_frsize;
        let filler = vec![0u8; free.saturating_sub(left) as usize];
        fs::write(self.path().join("filler"), filler).expect("room for the filler");
    }

    pub fn make_room(&self) {
        fs::remove_file(self.path().join("filler")).expect("the filler is there");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        unmount(self.path());
    }
}

/// The folder of this process's control group (version 1) of a controller.
fn own_group(controller: &str) -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers.split(',').any(|name| name == controller).then_some(parts.next()?)
    })?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let point = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let controls = words.get(3)?.split(',').any(|option| option == controller);
        (*words.get(2)? == "cgroup" && controls).then_some(words[1])
    })?;
    let folder = Path::new(point).join(path.trim_start_matches('/'));
    folder.is_dir().then_some(folder)
}

/// A control group (version 1) below this process's own, so that the limits of the test also apply
/// inside.
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// A new group of a controller, with these files set.
    pub fn new(controller: &str, settings: &[(&str, &dyn Display)]) -> Result<Group, String> {
        if !is_root() {
            return Err("control groups need root".to_string());
        }
        clean_up_once();
        let own = own_group(controller)
            .ok_or_else(|| format!("no version 1 hierarchy of {controller} is mounted here"))?;
        let folder = own.join(unique());
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let group = Group { folder };
        settings.iter().try_for_each(|(file, value)| group.set(file, value))?;
        Ok(group)
    }

    pub fn set(&self, file: &str, value: impl Display) -> Result<(), String> {
        let path = self.folder.join(file);
        fs::write(&path, value.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub fn get(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).expect("a file of the group").trim().to_string()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The command, started as a member of the group.
    pub fn inside(&self, command: &Command) -> Command {
        inside(self.folder(), command)
    }
}

/// The command, started as a member of the group with this folder.
pub fn inside(group: &Path, command: &Command) -> Command {
    let join = "echo $$ > \"$0\" && exec \"$@\"";
    let mut inside = Command::new("sh");
    inside.args(["-c", join]).arg(group.join("cgroup.procs"));
    inside.arg(command.get_program()).args(command.get_args());
    copy_environment(&mut inside, command);
    inside
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_group(&self.folder);
    }
}

fn remove_group(folder: &Path) {
    let end = Instant::now() + Duration::from_secs(5);
    while fs::remove_dir(folder).is_err() && folder.exists() && Instant::now() < end {
        let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for member in members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
            let _ = kill_process(member, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `command` started through another program: `setpriv ... COMMAND ARGUMENTS`.
pub fn wrapped(wrapper: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(wrapper[0]);
    outer.args(&wrapper[1..]).arg(command.get_program()).args(command.get_args());
    copy_environment(&mut outer, command);
    outer
}

fn copy_environment(to: &mut Command, from: &Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
    if let Some(folder) = from.get_current_dir() {
        to.current_dir(folder);
    }
}

/// Whether a helper program exists and succeeds with these arguments.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    let quiet = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet(Command::new(program).args(arguments)).is_ok_and(|status| status.success())
}

/// A process that uses all of one CPU.
pub struct Hog {
    child: Child,
}

impl Hog {
    pub fn on(cpu: u32) -> Hog {
        // Ends by itself if the test is killed.
        let spin = "while :; do :; done";
        let child = Command::new("timeout")
            .args(["120", "taskset", "-c", &cpu.to_string(), "sh", "-c", spin])
            .spawn()
            .expect("timeout and taskset are here");
        Hog { child }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // `timeout` forwards SIGTERM; SIGKILL would leave the shell running.
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// A thread of this process under SCHED_FIFO that takes one CPU for part of the time.
pub struct RealTime {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RealTime {
    /// Starts the thread, which alternates between `busy` and `idle`; the error says why it cannot.
    pub fn on(cpu: u32, busy: Duration, idle: Duration) -> Result<RealTime, String> {
        let over = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel();
        let flag = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            if sender.send(in_real_time(cpu)).is_err() {
                return;
            }
            while !flag.load(Ordering::Relaxed) {
                let begin = Instant::now();
                while begin.elapsed() < busy {
                    std::hint::spin_loop();
                }
                std::thread::sleep(idle);
            }
        });
        let started = receiver.recv().unwrap_or_else(|_| Err("the thread died".to_string()));
        // After an error it is dropped, which ends the thread.
        let neighbour = RealTime { over, thread: Some(thread) };
        started.map(|()| neighbour)
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Moves the calling thread to this CPU and to SCHED_FIFO, by `chrt`, which needs no unsafe code.
fn in_real_time(cpu: u32) -> Result<(), String> {
    sys::affinity::pin(&CpuSet::one(cpu)).map_err(|error| format!("CPU {cpu}: {error}"))?;
    let thread = rustix::thread::gettid().as_raw_pid().to_string();
    match Command::new("chrt").args(["-f", "-p", "50", &thread]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        Err(error) => Err(format!("chrt: {error}")),
    }
}

/// A control group with too little memory: a process in it repeatedly reads a file larger than the
/// group's limit. The file is a hole, so no disk is involved.
pub struct ShortOfMemory {
    pub group: Group,
    reader: Child,
    _folder: TempDir,
}

impl ShortOfMemory {
    pub fn new() -> Result<ShortOfMemory, String> {
        let group = Group::new("memory", &[("memory.limit_in_bytes", &(48 << 20))])?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = folder.path().join("hole");
        fs::File::create(&file)
            .and_then(|file| file.set_len(256 << 20))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        // Ends by itself if the test is killed.
        let read = "while :; do cat \"$0\" > /dev/null || exit; sleep 0.02; done";
        let mut command = Command::new("timeout");
        command.args(["120", "sh", "-c", read]).arg(&file);
        let reader = group.inside(&command).spawn().map_err(|error| format!("sh: {error}"))?;
        let short = ShortOfMemory { group, reader, _folder: folder };
        let end = Instant::now() + Duration::from_secs(5);
        while short.group.get("memory.failcnt") == "0" {
            if Instant::now() > end {
                return Err("holes in files take no memory here".to_string());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(short)
    }
}

impl Drop for ShortOfMemory {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.reader.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.reader.wait();
    }
}

/// Waits until no process of a marked run is left: processes that die with their parent need some
/// time, on a busy host longer.
#[track_caller]
pub fn nothing_left_running(mark: &str) {
    let end = Instant::now() + Duration::from_secs(300);
    while !processes_marked(mark).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(processes_marked(mark), []);
}

/// Processes whose environment contains this word, without zombies.
pub fn processes_marked(mark: &str) -> Vec<(u32, String)> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let marked = environment.windows(mark.len()).any(|window| window == mark.as_bytes());
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        marked.then(|| (pid, String::from_utf8_lossy(&command).replace('\0', " ")))
    });
    processes.collect()
}
