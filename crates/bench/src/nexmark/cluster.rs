//! A standalone Flink cluster of our own on loopback: two Java processes that end with us.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};

use super::rest::JobManager;
use super::waiter::Waiter;
use model::CpuSet;
use sys::scratch::Scratch;
use sys::{affinity, clock, process};

mod memory;

pub use memory::memory;
use memory::{JOBMANAGER_DIRECT, JOBMANAGER_HEAP, METASPACE, OVERHEAD, Sizes};

const LOOPBACK: &str = "127.0.0.1";
/// How long both may take to start: 15 s on two busy CPUs.
const START: Duration = Duration::from_secs(180);
/// How long the JobManager may still list a lost TaskManager: its heartbeats end after
/// `HEARTBEAT_TIMEOUT_MS`.
const FORGET: Duration = Duration::from_secs(60);
const HEARTBEAT_TIMEOUT_MS: u32 = 20_000;
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(3);
/// The room that logs and working files of such a cluster want, bytes: ten times what they take.
const ROOM: u64 = 64 << 20;

/// Packages that Java 17 and later must open to Flink by options.
const OPENED: [&str; 11] = [
    "java.base/java.lang",
    "java.base/java.net",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "java.base/java.lang.reflect",
    "java.base/java.text",
    "java.base/java.time",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
];
const MORE_OPENED: &str = "java.base/java.util.concurrent.locks";
const EXPORTED: [&str; 7] = [
    "java.rmi/sun.rmi.registry",
    "jdk.compiler/com.sun.tools.javac.api",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.compiler/com.sun.tools.javac.parser",
    "jdk.compiler/com.sun.tools.javac.tree",
    "jdk.compiler/com.sun.tools.javac.util",
    "java.security.jgss/sun.security.krb5",
];

/// The collector, whatever the number of CPUs: by itself Java takes another one from two CPUs on.
pub const COLLECTOR: &str = "-XX:+UseSerialGC";
/// What that calls itself.
pub const COLLECTORS: [&str; 2] = ["Copy", "MarkSweepCompact"];

/// The contents of its folder: configuration, logs, crash reports of Java processes, and its
/// working files.
const HOLDS: &[&str] = &[
    "config.yaml",
    "log4j.properties",
    "jobmanager.log",
    "taskmanager-#.log",
    "crash",
    "replay_pid#.log",
    "tmp/",
    "tmp/flink-*",
    "tmp/blobStore-*",
    "tmp/jaas-*",
    "tmp/jm_*",
    "tmp/tm_*",
    // Of ended jobs, in this version of Flink and in earlier ones.
    "tmp/archivedApplicationStore-*",
    "tmp/executionGraphStore-*",
];

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub java: PathBuf,
    /// The folder of the distribution: `lib` is all that is used of it.
    pub flink: PathBuf,
    /// Where the folder for configuration, logs and working files is made.
    pub dir: PathBuf,
    /// The CPUs of the TaskManager, a slot each.
    pub seats: CpuSet,
    /// Those of the JobManager and of this process.
    pub elsewhere: CpuSet,
    /// The REST port; by itself a free one.
    pub port: Option<u16>,
    /// Whether the query keeps windows and exchanges rows between slots.
    pub windows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ports {
    rest: u16,
    rpc: u16,
}

impl Plan {
    fn configuration(&self, ports: Ports, folder: &Path) -> String {
        let working = folder.join("tmp");
        let working = working.display();
        format!(
            "jobmanager.rpc.address: {LOOPBACK}\njobmanager.rpc.port: {rpc}\njobmanager.bind-host: {LOOPBACK}\n\
             rest.address: {LOOPBACK}\nrest.bind-address: {LOOPBACK}\nrest.port: {rest}\nrest.bind-port: '{rest}'\n\
             taskmanager.host: {LOOPBACK}\ntaskmanager.bind-host: {LOOPBACK}\n\
             taskmanager.numberOfTaskSlots: {slots}\n\
             io.tmp.dirs: {working}\nweb.tmpdir: {working}\nweb.upload.dir: {working}\nblob.storage.directory: {working}\n\
             process.working-dir: {working}\n\
             web.refresh-interval: 250\nmetrics.fetcher.update-interval: 250\nrest.flamegraph.enabled: false\n\
             heartbeat.interval: 4000\nheartbeat.timeout: {HEARTBEAT_TIMEOUT_MS}\n",
            rpc = ports.rpc,
            rest = ports.rest,
            slots = self.seats.len(),
        )
    }

    /// What both processes have in common: module doors, the collector, memory, logs, the class
    /// path.
    fn java_words(&self, folder: &Path, heap: usize, direct: usize) -> Vec<String> {
        let mut words: Vec<String> = vec![
            COLLECTOR.into(),
            format!("-Xms{heap}m"),
            format!("-Xmx{heap}m"),
            format!("-XX:MaxMetaspaceSize={METASPACE}m"),
            format!("-XX:MaxDirectMemorySize={direct}m"),
            // Else it maps a file in the system's temporary folder.
            "-XX:-UsePerfData".into(),
            "-XX:+ExitOnOutOfMemoryError".into(),
            format!("-XX:ErrorFile={}", folder.join("crash").display()),
            format!("-Djava.io.tmpdir={}", folder.join("tmp").display()),
            format!("-Dlog4j.configurationFile={}", folder.join("log4j.properties").display()),
        ];
        words.extend(EXPORTED.iter().map(|package| format!("--add-exports={package}=ALL-UNNAMED")));
        let opened = OPENED.iter().chain([&MORE_OPENED]);
        words.extend(opened.map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
        words.extend(["-cp".to_string(), format!("{}/*", self.flink.join("lib").display())]);
        words
    }

    fn jobmanager_words(&self, folder: &Path) -> Vec<String> {
        let mut words = self.java_words(folder, JOBMANAGER_HEAP, JOBMANAGER_DIRECT);
        // It lives for a minute: the better compiler would take longer than it saves, and where
        // CPUs are few takes it from what is measured.
        words.push("-XX:TieredStopAtLevel=1".into());
        words.push("org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint".into());
        words.extend(["--configDir".into(), folder.display().to_string()]);
        let sizes = [
            ("heap.size", JOBMANAGER_HEAP),
            ("off-heap.size", JOBMANAGER_DIRECT),
            ("jvm-metaspace.size", METASPACE),
            ("jvm-overhead.min", OVERHEAD),
            ("jvm-overhead.max", OVERHEAD),
        ];
        for (name, mib) in sizes {
            words.extend(["-D".to_string(), format!("jobmanager.memory.{name}={mib}m")]);
        }
        words
    }

    fn taskmanager_words(&self, folder: &Path) -> Vec<String> {
        let sizes = Sizes::of(self.seats.len(), self.windows);
        let mut words = self.java_words(folder, sizes.heap, sizes.direct());
        words.push("org.apache.flink.runtime.taskexecutor.TaskManagerRunner".into());
        words.extend(["--configDir".into(), folder.display().to_string()]);
        words.extend(["-D".to_string(), format!("taskmanager.cpu.cores={}", self.seats.len())]);
        words.extend(["-D".to_string(), format!("taskmanager.memory.segment-size={}k", sizes.segment_kib)]);
        let sizes = sizes.of_flink();
        for (name, mib) in sizes {
            words.extend(["-D".to_string(), format!("taskmanager.memory.{name}={mib}m")]);
        }
        words
    }
}

/// Logs go to the standard output, which is a file.
const LOG4J: &str = "rootLogger.level=INFO\nrootLogger.appenderRef.out.ref=Out\nappender.out.name=Out\n\
    appender.out.type=CONSOLE\nappender.out.layout.type=PatternLayout\n\
    appender.out.layout.pattern=%d{HH:mm:ss,SSS} %-5p %c{1} %m%n\n";

/// Settings of the environment that would override Assay's.
const FOREIGN: [&str; 3] = ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"];

/// A process of the cluster.
struct Jvm {
    role: &'static str,
    child: Child,
    status: Option<ExitStatus>,
    log: String,
}

impl Jvm {
    fn start(
        role: &'static str,
        plan: &Plan,
        words: &[String],
        scratch: &Scratch,
        log: String,
    ) -> anyhow::Result<Jvm> {
        let out = scratch.log(&log)?;
        let err = out.try_clone().context("cannot share a log")?;
        let mut command = Command::new(&plan.java);
        command.args(words).current_dir(scratch.path());
        FOREIGN.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.stdin(Stdio::null()).stdout(Stdio::from(out)).stderr(Stdio::from(err));
        process::kill_with_parent(&mut command);
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {} as the {role}", plan.java.display()))?;
        Ok(Jvm { role, child, status: None, log })
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
        }
    }
}

/// How a process ended.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => format!("ended with {status}"),
    }
}

pub struct Cluster {
    // In this order they go: processes first, then their folder.
    jobmanager: Jvm,
    taskmanager: Jvm,
    plan: Plan,
    scratch: Scratch,
    pub rest: JobManager,
    starts: u32,
}

/// A process of the cluster that has ended by itself.
pub enum Lost {
    JobManager(String),
    TaskManager(String),
}

impl Cluster {
    /// Starts both and waits until the TaskManager's slots can be used.
    pub fn start(plan: Plan, waiter: &mut Waiter) -> anyhow::Result<Cluster> {
        let ports = Ports { rest: rest_port(plan.port)?, rpc: free_port()? };
        let scratch = Scratch::new(&plan.dir, HOLDS)?;
        let room = scratch.free_bytes()?;
        if room < ROOM {
            bail!(
                "only {} MiB are free in {}; a Flink cluster needs {} MiB: free some space or name another directory with --dir",
                room >> 20,
                plan.dir.display(),
                ROOM >> 20
            );
        }
        scratch.make_folder("tmp")?;
        scratch.put("config.yaml", plan.configuration(ports, scratch.path()).as_bytes())?;
        scratch.put("log4j.properties", LOG4J.as_bytes())?;
        affinity::pin(&plan.elsewhere).with_context(|| format!("cannot pin to CPUs {}", plan.elsewhere))?;
        let words = plan.jobmanager_words(scratch.path());
        let jobmanager = Jvm::start("JobManager", &plan, &words, &scratch, "jobmanager.log".into())?;
        let taskmanager = taskmanager(&plan, &scratch, 1)?;
        let rest = JobManager::at(&format!("{LOOPBACK}:{}", ports.rest));
        let mut cluster = Cluster { jobmanager, taskmanager, plan, scratch, rest, starts: 1 };
        cluster.wait_for_slots(waiter)?;
        Ok(cluster)
    }

    fn wait_for_slots(&mut self, waiter: &mut Waiter) -> anyhow::Result<()> {
        let end = Instant::now() + START;
        loop {
            waiter.pause(Duration::from_millis(100))?;
            match self.lost() {
                Some(Lost::JobManager(how) | Lost::TaskManager(how)) => bail!("{how}"),
                None => {}
            }
            // It says nothing, or nonsense, before it is up.
            let free = self.rest.overview().map(|overview| overview.free_slots);
            match free {
                Ok(free) if free >= self.plan.seats.len() as u64 => return Ok(()),
                _ if Instant::now() < end => {}
                Ok(_) => bail!(
                    "the TaskManager offered no slots within {} s. {}",
                    START.as_secs(),
                    self.last_lines(&self.taskmanager.log)
                ),
                Err(error) => bail!(
                    "the JobManager did not answer within {} s ({error:#}). {}",
                    START.as_secs(),
                    self.last_lines(&self.jobmanager.log)
                ),
            }
        }
    }

    /// A process that has ended, and how.
    pub fn lost(&mut self) -> Option<Lost> {
        let ended = |jvm: &mut Jvm| jvm.ended();
        if let Some(status) = ended(&mut self.jobmanager) {
            let jvm = &self.jobmanager;
            return Some(Lost::JobManager(format!(
                "the {} {}. {}",
                jvm.role,
                how(status),
                self.last_lines(&jvm.log)
            )));
        }
        let status = ended(&mut self.taskmanager)?;
        let jvm = &self.taskmanager;
        Some(Lost::TaskManager(format!("the {} {}. {}", jvm.role, how(status), self.last_lines(&jvm.log))))
    }

    /// Starts another TaskManager in the place of one that ended.
    pub fn restart_taskmanager(&mut self, waiter: &mut Waiter) -> anyhow::Result<()> {
        let end = Instant::now() + FORGET;
        while self.rest.overview()?.taskmanagers > 0 {
            waiter.pause(Duration::from_millis(200))?;
            if let Some(Lost::JobManager(how)) = self.lost() {
                bail!("{how}");
            }
            if Instant::now() > end {
                bail!(
                    "the JobManager did not report within {} s that its TaskManager ended",
                    FORGET.as_secs()
                );
            }
        }
        self.starts += 1;
        self.taskmanager = taskmanager(&self.plan, &self.scratch, self.starts)?;
        self.wait_for_slots(waiter)
    }

    /// CPU time so far of what has to share the TaskManager's CPUs, JobManager and driver, ms;
    /// nothing where they have others.
    pub fn beside_ms(&self) -> Option<f64> {
        let shares = self.plan.elsewhere.iter().any(|cpu| self.plan.seats.contains(cpu));
        let jobmanager = || clock::cpu_ms_of(self.jobmanager.child.id()).ok();
        shares.then(|| Some(jobmanager()? + clock::cpu_ms().ok()?)).flatten()
    }

    /// What it said last, and whether it had room to.
    fn last_lines(&self, log: &str) -> String {
        let full = self.scratch.free_bytes().is_ok_and(|room| room < 1 << 20);
        let note = match full {
            true => format!("The disk of its folder is full: {}. ", self.plan.dir.display()),
            false => String::new(),
        };
        format!("{note}{}", last_lines(&self.scratch.tail(log, 16 << 10)))
    }
}

fn taskmanager(plan: &Plan, scratch: &Scratch, number: u32) -> anyhow::Result<Jvm> {
    // A child is born with the mask of its parent.
    affinity::pin(&plan.seats).with_context(|| format!("cannot pin to CPUs {}", plan.seats))?;
    let words = plan.taskmanager_words(scratch.path());
    let started = Jvm::start("TaskManager", plan, &words, scratch, format!("taskmanager-{number}.log"));
    affinity::pin(&plan.elsewhere).with_context(|| format!("cannot pin to CPUs {}", plan.elsewhere))?;
    started
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut both = [&mut self.taskmanager, &mut self.jobmanager];
        both.iter_mut().for_each(|jvm| jvm.signal(Signal::TERM));
        let end = Instant::now() + GRACE;
        while both.iter_mut().any(|jvm| jvm.ended().is_none()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        for jvm in both {
            jvm.signal(Signal::KILL);
            if jvm.status.is_none() {
                jvm.status = jvm.child.wait().ok();
            }
        }
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((LOOPBACK, 0)).context("no port is free on 127.0.0.1")?;
    Ok(listener.local_addr().context("no port is free on 127.0.0.1")?.port())
}

/// The wanted port if it is free, or any free one.
fn rest_port(wanted: Option<u16>) -> anyhow::Result<u16> {
    let Some(port) = wanted else { return free_port() };
    match TcpListener::bind((LOOPBACK, port)) {
        Ok(_) => Ok(port),
        Err(error) => bail!(
            "port {port} on {LOOPBACK} cannot be used for Flink's REST endpoint ({error}): choose another with --flink-port"
        ),
    }
}

/// The last lines of a log that say something, in one.
fn last_lines(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("at ") && !line.starts_with("... "));
    let lines: Vec<String> =
        lines.map(|line| line.chars().filter(|c| !c.is_control()).take(240).collect()).collect();
    match lines.as_slice() {
        [] => "It printed nothing".to_string(),
        lines => format!("Its last lines: {}", lines[lines.len().saturating_sub(4)..].join(" / ")),
    }
}

#[cfg(test)]
mod tests;
