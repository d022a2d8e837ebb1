//! The commands that are killed: every family of benchmarks that leaves objects.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ground::{Enough, Ground};
use crate::disk::Loop;
use crate::host::is_root;
use crate::runs::quiet_tree;
use crate::synthetic::Tree;
use testkit::killing::{self, RestoredFiles};

/// In the order of the table, and how often each is chosen.
pub const FAMILIES: [(&str, u32); 7] =
    [("ipc", 10), ("file", 10), ("disk", 10), ("sweep", 10), ("guard", 10), ("network", 8), ("nexmark", 1)];

/// One command, and what it needs around it.
pub struct Scene {
    pub family: &'static str,
    words: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
    /// Whether the program runs under a filter that refuses it namespaces of its own, as
    /// containers' do.
    filtered: bool,
    pub resumes: bool,
    pub enough: Enough,
    /// How long a visit takes, about.
    pub visit_ms: u64,
    pub server: Option<Server>,
    device: Option<Device>,
    tree: Option<(Tree, BTreeMap<PathBuf, Vec<u8>>)>,
    knobs: Option<RestoredFiles>,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// Kernel knobs and a Flink cluster are one lane's at a time.
static KNOBS: Mutex<()> = Mutex::new(());
static FLINK: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;

/// A loop device and what is on it.
struct Device {
    on: Loop,
    content: Vec<u8>,
    written: bool,
}

const GUARDED: &str =
    "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 100; :\" &); sleep 0.25; echo rate: 7";

/// Whether a family can be had here, and why not.
pub fn possible(family: &str) -> Result<(), String> {
    match family {
        "nexmark" => {
            crate::nexmark::flink("soak").map(drop).ok_or_else(|| "Flink and a JDK are not set up".into())
        }
        _ => Ok(()),
    }
}

impl Scene {
    fn new(family: &'static str, words: &str, enough: Enough, visit_ms: u64) -> Scene {
        let words = words.split_whitespace().map(str::to_string).collect();
        Scene {
            family,
            words,
            environment: Vec::new(),
            filtered: false,
            resumes: true,
            enough,
            visit_ms,
            server: None,
            device: None,
            tree: None,
            knobs: None,
            _alone: None,
        }
    }

    /// A scene of a family that lasts for this number of kills; `None` where another lane has what
    /// it needs.
    pub fn of(family: &str, kills: u32, random: &mut fastrand::Rng, ground: &Ground) -> Option<Scene> {
        let seconds = 2.4 + 1.5 * f64::from(kills);
        let run = |family, only: &str, visit_ms| {
            let enough = Enough::Either(20, 1000.0 * seconds);
            Scene::new(
                family,
                &format!("run --quick --force --budget {seconds}s --only {only}"),
                enough,
                visit_ms,
            )
        };
        let dir = ground.path("dir");
        let mut scene = match family {
            "ipc" => Scene { filtered: random.u8(0..4) > 0, ..run("ipc", "ipc.sysv-semaphore", 60) },
            "file" => {
                run("file", ["file.create", "file.read", "file.create,file.read"][random.usize(0..3)], 100)
            }
            "disk" => match random.u8(0..4) {
                0 => run("disk", "disk.metadata", 150).with("--dir", &dir),
                1 => run("disk", "disk.random", 380).with("--dir", &dir),
                way => {
                    return run("disk", "disk.random,disk.sequential", 300).on_device(way == 3, random, &dir);
                }
            },
            "sweep" => return Scene::sweep(random),
            "guard" => {
                let mut scene = Scene::new(
                    "guard",
                    "guard --runs 7 --force --metric rate=rate:(.*)",
                    Enough::Visits(7),
                    300,
                );
                scene.words.extend(["--out".into(), text(&ground.path("out")), "--".into()]);
                scene.words.extend(["/bin/sh", "-c", GUARDED].map(str::to_string));
                return Some(scene);
            }
            "network" => {
                let rows = ["network.round-trip", "network.tcp", "network.connect"];
                let scene = run("network", rows[random.usize(0..3)], 170);
                if random.bool() { scene.with_server(&ground.nonce) } else { scene }
            }
            _ => return Scene::nexmark(),
        };
        if scene.family == "file" && random.bool() {
            scene = scene.with("--dir", &dir);
        }
        Some(scene)
    }

    fn with(mut self, option: &str, value: &Path) -> Scene {
        self.words.extend([option.to_string(), text(value)]);
        self
    }

    /// On a loop device, where one can be had; else in a directory.
    fn on_device(mut self, written: bool, random: &mut fastrand::Rng, dir: &Path) -> Option<Scene> {
        let Ok(on) = Loop::new(64 * MIB as u64) else { return Some(self.with("--dir", dir)) };
        let content: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(4096).collect();
        let content = content.repeat(64 * MIB / 4096);
        fs::write(on.image(), &content).expect("room for the image");
        self.words.extend(["--device".to_string(), on.path().to_string()]);
        let name = on.name();
        if written {
            self.words.push("--device-write".to_string());
            // What is written to is asked for in every run.
            self.resumes = false;
        }
        self.words.extend(["--confirm".to_string(), if written { format!("erase {name}") } else { name }]);
        self.device = Some(Device { on, content, written });
        Some(self)
    }

    /// Over knobs of the tasks, of a made tree, or of this kernel.
    fn sweep(random: &mut fastrand::Rng) -> Option<Scene> {
        let sweep = |knobs: &str| {
            Scene::new(
                "sweep",
                &format!("sweep selftest.steady --quick --force --effect 1000 {knobs}"),
                Enough::Visits(24),
                60,
            )
        };
        match random.u8(0..4) {
            0 => Some(sweep("--knob policy=other,batch")),
            1 | 2 => {
                let tree = quiet_tree();
                tree.file("/proc/sys/kernel/osrelease", "6.18.44-made");
                tree.file("/proc/sys/kernel/random/boot_id", "0-boot");
                tree.file("/proc/sys/kernel/sched_autogroup_enabled", "1")
                    .file("/proc/sys/vm/swappiness", "60");
                let mut scene = sweep("--knob autogroup=0,1 --knob vm.swappiness=10,60");
                scene = scene.with("--root", tree.root());
                let files = contents(tree.root());
                scene.tree = Some((tree, files));
                Some(scene)
            }
            _ => {
                let alone = KNOBS.try_lock().ok()?;
                let knobs =
                    RestoredFiles::files(&killing::KNOBS.map(|(file, _)| file)).ok().filter(|_| is_root());
                let mut scene = match knobs {
                    Some(_) => {
                        let words = killing::KNOBS.map(|(_, words)| format!("--knob {words}"));
                        sweep(&words.join(" "))
                    }
                    None => sweep("--knob policy=other,batch"),
                };
                (scene.knobs, scene._alone) = (knobs, Some(alone));
                Some(scene)
            }
        }
    }

    fn nexmark() -> Option<Scene> {
        let alone = FLINK.try_lock().ok()?;
        let home = crate::nexmark::flink("soak")?;
        let enough = Enough::Either(4, 70_000.0);
        let scene =
            Scene::new("nexmark", "run --only nexmark.q0 --quick --budget 70s --force", enough, 12_000);
        Some(Scene { _alone: Some(alone), ..scene.with("--flink-home", &home) })
    }

    fn with_server(mut self, nonce: &str) -> Scene {
        let server = Server::start(nonce, 0);
        self.words.extend(["--to".to_string(), format!("127.0.0.1:{}", server.port)]);
        self.environment.push(("ASSAY_TOKEN", TOKEN.into()));
        self.server = Some(server);
        self
    }

    /// The command's words, to be repeated by hand.
    pub fn shown(&self, ground: &Ground) -> String {
        let words: Vec<String> = self.all_words(ground).iter().map(|word| shell_word(word)).collect();
        let filtered = if self.filtered { " (under a filter that refuses unshare)" } else { "" };
        format!("TMPDIR={} assay {}{filtered}", ground.path("tmp").display(), words.join(" "))
    }

    fn all_words(&self, ground: &Ground) -> Vec<String> {
        let mut words = self.words.clone();
        if self.family != "guard" {
            words.extend(["--out".to_string(), text(&ground.path("out"))]);
        }
        words
    }

    /// Makes ready what another start needs, and gives it.
    pub fn command(&mut self, ground: &Ground) -> Command {
        if let Some(server) = &mut self.server {
            server.run_again();
        }
        let mut command = crate::assay();
        command.args(self.all_words(ground)).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("SOAK", &ground.nonce).env("TMPDIR", ground.path("tmp"));
        command.env("ASSAY_STATE", ground.path("state"));
        let filtered = self.filtered;
        // SAFETY: only system calls are made between fork and exec, on values of this closure's
        // own.
        unsafe {
            command.pre_exec(move || {
                // As on a terminal, whatever the soak was started by.
                for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                if filtered { refuse_namespaces() } else { Ok(()) }
            });
        }
        command
    }

    /// What of the scene is not as it was before.
    pub fn changed(&self) -> Vec<String> {
        let mut changed = Vec::new();
        if let Some((tree, before)) = &self.tree {
            let now = contents(tree.root());
            let paths = before.keys().chain(now.keys()).filter(|path| before.get(*path) != now.get(*path));
            changed.extend(paths.map(|path| format!("{} is not as it was", path.display())));
        }
        let knobs = self.knobs.iter().flat_map(|knobs| knobs.changed());
        changed.extend(knobs.map(|knob| format!("{} is turned", knob.display())));
        if let Some(device) = self.device.as_ref().filter(|device| !device.written)
            && fs::read(device.on.image()).ok().as_ref() != Some(&device.content)
        {
            changed.push(format!("{} was only to be read, and was written to", device.on.path()));
        }
        changed.dedup();
        changed
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_string()
}

fn shell_word(word: &str) -> String {
    match word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./,=:".contains(c)) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The contents of all files below a folder, but for the empty lock file of kernel settings.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(content) = fs::read(&path)
                && !(content.is_empty() && path.starts_with(root.join("var/lib/assay")))
            {
                all.insert(path, content.trim_ascii().to_vec());
            }
        }
    }
    all
}

/// Has the kernel refuse `unshare` from here on, as the filters of containers do.
fn refuse_namespaces() -> std::io::Result<()> {
    let step = |code, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let errno = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_unshare as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, errno),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program lives until the kernel has copied it.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) == 0
    };
    if set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// `assay serve`, which is started again wherever it is gone.
pub struct Server {
    child: Child,
    pub port: u16,
    nonce: String,
    _said: BufReader<ChildStdout>,
}

const TOKEN: &str = "soak-soak-soak-soak-0123456789";

impl Server {
    /// Names its processes' environment.
    pub const MARK: &str = "SOAK_SERVER";

    fn start(nonce: &str, port: u16) -> Server {
        let mut command = crate::assay();
        command
            .args(["serve", "--port", &port.to_string()])
            .env("ASSAY_TOKEN", TOKEN)
            .env(Server::MARK, nonce);
        let (stdin, stderr) = (Stdio::null(), Stdio::null());
        let mut child =
            command.stdin(stdin).stdout(Stdio::piped()).stderr(stderr).spawn().expect("assay serve starts");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let port = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).expect("readable") > 0, "assay serve ended at once");
            if let Some(rest) = line.strip_prefix("assay serves network tests on ") {
                let address = rest.split([',', ' ']).next().expect("an address");
                break address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
            }
        };
        Server { child, port, nonce: nonce.to_string(), _said: said }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Another one in its place and at its port, where it was killed.
    fn run_again(&mut self) {
        if self.child.try_wait().expect("a child").is_none() {
            return;
        }
        // Sessions of the killed one end with it; until then the port may be theirs.
        for _ in 0..200 {
            if TcpListener::bind(("0.0.0.0", self.port)).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        *self = Server::start(&self.nonce.clone(), self.port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says why where only a part of a family can be had.
pub fn partly() -> Vec<String> {
    let mut said = Vec::new();
    let _alone = KNOBS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(why) = Loop::new(MIB as u64) {
        said.push(format!("disk on a loop device: {why}"));
    }
    if !is_root() {
        said.push("sweep over this kernel's knobs: only root may turn them".to_string());
    }
    said
}
