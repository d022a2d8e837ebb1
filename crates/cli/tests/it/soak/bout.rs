//! One command, killed a few times at random moments and resumed each time, and the faults that
//! this shows.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ground::{Ground, went_wrong};
use super::left::Before;
use super::scenes::{Scene, Server};
use crate::host::processes_marked;

/// A look at what a run is at.
const LOOK: Duration = Duration::from_micros(500);

/// What one kill was: the words of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    pub phase: &'static str,
    pub signal: &'static str,
    pub target: &'static str,
}

pub const STARTING: &str = "before the first visit";
pub const VISIT: &str = "in a visit";
pub const BETWEEN: &str = "between visits";
pub const CONCLUDING: &str = "while it reports";

/// What should not have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Lost,
    Left,
    NotGoneOn,
    Crashed,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Kind::Lost => "lost",
            Kind::Left => "left",
            Kind::NotGoneOn => "not gone on with",
            Kind::Crashed => "ended wrongly",
        })
    }
}

/// What a bout came to.
pub struct Outcome {
    pub kills: Vec<Kill>,
    pub faults: Vec<(Kind, String)>,
    /// The command, to be repeated by hand.
    pub shown: String,
    /// Its folder, kept where something is wrong.
    pub folder: Option<PathBuf>,
}

/// Who is to be killed.
#[derive(Clone, Copy, Debug)]
struct Target {
    parent: bool,
    visit: bool,
    watchdog: bool,
    server: bool,
}

impl Target {
    /// Any of those who are there; more often the session itself.
    fn any(random: &mut fastrand::Rng, server: bool) -> Target {
        let none = Target { parent: false, visit: false, watchdog: false, server: false };
        let parent = Target { parent: true, ..none };
        match random.u8(0..16) {
            0..4 => parent,
            4..7 => Target { visit: true, ..none },
            7 => Target { watchdog: true, ..none },
            8..11 => Target { visit: true, ..parent },
            11..13 => Target { watchdog: true, ..parent },
            13 if server => Target { server: true, ..none },
            _ => Target { visit: true, watchdog: true, ..parent },
        }
    }

    fn name(self) -> &'static str {
        match (self.parent, self.visit, self.watchdog) {
            _ if self.server => "server",
            (true, true, true) => "all three",
            (true, true, false) => "session and visit",
            (true, false, true) => "session and watchdog",
            (true, false, false) => "session",
            (false, true, _) => "visit",
            (false, false, _) => "watchdog",
        }
    }
}

fn any_signal(random: &mut fastrand::Rng) -> (Signal, &'static str) {
    match random.u8(0..8) {
        0..4 => (Signal::KILL, "-9"),
        4 | 5 => (Signal::TERM, "-15"),
        6 => (Signal::INT, "-2"),
        _ => (Signal::HUP, "-1"),
    }
}

/// A session that runs.
struct Session<'a> {
    child: Child,
    ground: &'a Ground,
    /// Its visits that were seen to begin.
    seen: Vec<u32>,
}

impl Session<'_> {
    fn start<'a>(scene: &mut Scene, ground: &'a Ground) -> Session<'a> {
        let said = || File::options().create(true).append(true).open(ground.path("said")).expect("a file");
        let mut command = scene.command(ground);
        let child = command.stdin(Stdio::null()).stdout(said()).stderr(said()).spawn().expect("assay starts");
        Session { child, ground, seen: Vec::new() }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The visit that is under way, and whether it has begun to work.
    fn visit(&mut self) -> Option<(Pid, bool)> {
        let mut visits = children(self.child.id()).into_iter().filter(|pid| has_word(*pid, "case"));
        let pid = visits.next_back()?;
        if !self.seen.contains(&pid) {
            self.seen.push(pid);
        }
        Some((Pid::from_raw(pid as i32)?, age(pid)? >= 0.02))
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }

    /// Waits until so; not where it ends before, or where that takes too long.
    fn until(&mut self, limit: Duration, mut so: impl FnMut(&mut Self) -> bool) -> bool {
        let begin = Instant::now();
        while self.ended().is_none() && begin.elapsed() < limit {
            if so(self) {
                return true;
            }
            std::thread::sleep(LOOK);
        }
        false
    }

    /// Its end; `None` where there is none.
    fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < limit {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(4 * LOOK);
        }
        None
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a random moment of a phase; not where the session ends before.
fn aim(session: &mut Session, scene: &Scene, phase: &str, random: &mut fastrand::Rng) -> bool {
    let limit = Duration::from_millis(5000 + 6 * scene.visit_ms);
    let visits = if scene.family == "nexmark" { 1 } else { random.usize(1..4) };
    let wait = |most: u64, random: &mut fastrand::Rng| {
        std::thread::sleep(Duration::from_micros(random.u64(0..1000 * most)));
        true
    };
    // Its number may be another's by now.
    if session.ended().is_some() {
        return false;
    }
    let last = |session: &mut Session| session.visit().is_some() && session.seen.len() >= visits;
    match phase {
        STARTING => wait(1200, random),
        VISIT => {
            session.until(limit, |session| last(session) && session.visit().is_some_and(|(_, begun)| begun))
                && wait(scene.visit_ms * 3 / 4, random)
        }
        BETWEEN => session.until(limit, last) && session.until(limit, |session| session.visit().is_none()),
        _ => session.until(2 * limit, |session| session.ground.concluded()) && wait(120, random),
    }
}

/// Sends the signal to those processes of the target that exist. The phase of the run is read while
/// it is stopped; `None` where there is no process to kill.
fn strike(
    session: &mut Session,
    scene: &Scene,
    target: Target,
    signal: Signal,
    visits_before: usize,
) -> Option<Kill> {
    if session.ended().is_some() {
        return None;
    }
    let pid = session.pid();
    kill_process(pid, Signal::STOP).ok()?;
    let stopped =
        |session: &mut Session| state(session.child.id()).is_some_and(|state| "TtZ".contains(state));
    let begin = Instant::now();
    while !stopped(session) && begin.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(LOOK);
    }
    if session.ended().is_some() {
        return None;
    }
    let visit = session.visit();
    let watchdogs: Vec<Pid> = processes_marked(&format!("SOAK={}", session.ground.nonce))
        .into_iter()
        .filter(|(_, command)| command.split(' ').any(|word| word == "--watch"))
        .filter_map(|(pid, _)| Pid::from_raw(pid as i32))
        .collect();
    let visits: usize = session.ground.runs().values().flatten().map(|(visits, _)| visits.len()).sum();
    let phase = match visit {
        Some((_, true)) => VISIT,
        _ if session.ground.concluded() => CONCLUDING,
        None if visits == visits_before => STARTING,
        _ => BETWEEN,
    };
    let there = Target {
        visit: target.visit && visit.is_some(),
        watchdog: target.watchdog && !watchdogs.is_empty(),
        ..target
    };
    if there.visit
        && let Some((visit, _)) = visit
    {
        let _ = kill_process(visit, signal);
    }
    if there.watchdog {
        watchdogs.into_iter().for_each(|watchdog| {
            let _ = kill_process(watchdog, signal);
        });
    }
    let server = scene.server.as_ref().filter(|_| there.server).map(|server| server.process());
    if let Some(server) = server.and_then(|server| Pid::from_raw(server as i32)) {
        let _ = kill_process(server, signal);
    }
    if there.parent {
        let _ = kill_process(pid, signal);
    }
    let _ = kill_process(pid, Signal::CONT);
    let anybody = there.parent || there.visit || there.watchdog || there.server;
    anybody.then(|| Kill { phase, signal: "", target: there.name() })
}

/// Kills one command of a family `kills` times, resumes it, and checks whether anything was lost or
/// left behind. `None` where another lane has what it needs.
pub fn fight(family: &str, kills: u32, seed: u64) -> Option<Outcome> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ground = Ground::new();
    let mut scene = Scene::of(family, kills, &mut random, &ground)?;
    let before = Before::now();
    let mut outcome =
        Outcome { kills: Vec::new(), faults: Vec::new(), shown: scene.shown(&ground), folder: None };
    for round in 0..=kills {
        // What happens to the last one that reports leaves nothing to go on with.
        let phase = match random.u8(0..20) {
            0..3 => STARTING,
            3 | 4 => BETWEEN,
            5..8 if round + 1 == kills => CONCLUDING,
            _ => VISIT,
        };
        let (target, (signal, name)) =
            (Target::any(&mut random, scene.server.is_some()), any_signal(&mut random));
        let old = ground.runs();
        let visits = old.values().flatten().map(|(visits, _)| visits.len()).sum();
        let mut session = Session::start(&mut scene, &ground);
        let mut kill = None;
        while round < kills && kill.is_none() && aim(&mut session, &scene, phase, &mut random) {
            kill = strike(&mut session, &scene, target, signal, visits);
        }
        let limit = Duration::from_secs(if family == "nexmark" { 300 } else { 90 });
        let ended = session.end(limit);
        drop(session);
        if ended.is_none() {
            outcome.faults.push((Kind::Crashed, format!("no end {} s after {kill:?}", limit.as_secs())));
        }
        let sent = kill.as_ref().map(|_| signal.as_raw());
        let whole = matches!(ended.and_then(|status| status.code()), Some(0 | 1 | 3));
        if let Some(why) = ended.and_then(|status| wrong_end(status, sent)) {
            outcome
                .faults
                .push((Kind::Crashed, format!("{why} after {kill:?}: {}", tail(&ground.path("said")))));
        }
        let (lost, not_on) = went_wrong(&old, &ground.runs(), whole, scene.resumes, scene.enough);
        let harmed = lost.into_iter().chain(ground.decoys.harmed()).map(|what| (Kind::Lost, what));
        outcome.faults.extend(harmed.chain(not_on.into_iter().map(|what| (Kind::NotGoneOn, what))));
        // A command that was not killed leaves nothing behind, neither of its own nor of the one
        // that was killed before it.
        if ended.is_some_and(|status| status.signal().is_none()) {
            let left = before
                .left(&ground, scene.server.as_ref().map(Server::process))
                .into_iter()
                .chain(scene.changed());
            outcome.faults.extend(left.map(|what| (Kind::Left, what)));
        }
        if let Some(kill) = kill {
            outcome.kills.push(Kill { signal: name, ..kill });
        }
        if !outcome.faults.is_empty() {
            break;
        }
        if round + 1 < kills && random.u8(0..6) == 0 {
            link_to_a_copy(&mut ground);
        }
    }
    scene.server = None;
    if outcome.faults.is_empty() {
        outcome.faults.extend(before.left(&ground, None).into_iter().map(|what| (Kind::Left, what)));
    }
    if !outcome.faults.is_empty() {
        outcome.folder = Some(ground.keep());
    }
    Some(outcome)
}

/// Puts a link to a user's copy of the unfinished run into the results' folder: no command may
/// write into that copy.
fn link_to_a_copy(ground: &mut Ground) {
    let open = ground.runs().into_iter().find(|(_, run)| run.as_ref().is_ok_and(|(_, closed)| !closed));
    let Some((path, _)) = open else { return };
    let (copy, link) = (ground.path("watched/copy.assay.jsonl"), ground.path("out/copy.assay.jsonl"));
    if !copy.exists() && fs::copy(&path, &copy).is_ok() && std::os::unix::fs::symlink(&copy, &link).is_ok() {
        [ground.path("watched"), link].iter().for_each(|path| ground.decoys.adopt(path));
    }
}

/// Whether a session ended in a way that is none of those documented.
fn wrong_end(status: ExitStatus, sent: Option<i32>) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0 | 1 | 3), _) => None,
        (Some(130), _) if sent.is_some() => None,
        (None, signal) if signal.is_some() && signal == sent => None,
        _ => Some(format!("{status}")),
    }
}

fn tail(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}

/// Children of all threads of a process.
fn children(parent: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn has_word(pid: u32, word: &str) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(word.as_bytes())
}

/// What a process's line in /proc says behind its name.
fn fields(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_string).collect())
}

fn state(pid: u32) -> Option<char> {
    fields(pid)?.first()?.chars().next()
}

/// Seconds since a living process was started.
fn age(pid: u32) -> Option<f64> {
    let fields = fields(pid)?;
    let started: f64 = fields.get(19)?.parse().ok()?;
    let uptime: f64 = fs::read_to_string("/proc/uptime").ok()?.split(' ').next()?.parse().ok()?;
    (fields[0] != "Z").then(|| uptime - started / rustix::param::clock_ticks_per_second() as f64)
}

#[test]
fn nobody_aims_at_a_session_that_has_ended() {
    let (ground, mut random) = (Ground::new(), fastrand::Rng::with_seed(1));
    let scene = Scene::of("ipc", 1, &mut random, &ground).expect("nobody else needs what it needs");
    let child = Command::new("true").spawn().expect("true starts");
    let mut session = Session { child, ground: &ground, seen: Vec::new() };
    session.end(Duration::from_secs(60)).expect("it ends");
    for phase in [STARTING, BETWEEN, VISIT, CONCLUDING] {
        assert!(!aim(&mut session, &scene, phase, &mut random), "{phase}");
    }
    let (target, (signal, _)) = (Target::any(&mut random, false), any_signal(&mut random));
    assert!(strike(&mut session, &scene, target, signal, 0).is_none());
}
