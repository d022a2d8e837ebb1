//! One visit in a process of its own: started, listened to, timed out, cleaned up after.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Signal, WaitId, WaitIdOptions, getrlimit};

use crate::objects::{Keep, MARK};
use bench::{JOB, Line, Order, SET_KEY, find, leaves};
use model::run_file;
use model::{CpuSet, ProcessFacts, Reason, Samples};
use sys::affinity;

/// What a visit's process had to say.
#[derive(Debug, Default)]
pub struct Heard {
    pub samples: Vec<Samples>,
    pub process: ProcessFacts,
    pub reason: Option<Reason>,
    /// The user wants out: nothing was learned of the case.
    pub interrupted: bool,
    /// What was found afterwards and is not as it should be, in sentences.
    pub left: Vec<String>,
}

/// A line longer than this is no sample line.
const LONGEST_LINE: usize = 16 << 20;
/// All lines of one visit together.
const LONGEST_TALK: usize = 56 << 20;
/// As much of its standard error as is worth keeping.
const COMPLAINT: usize = 4096;
/// How often the interrupt flag and the time limit are looked at when the child is silent.
const TICK: Duration = Duration::from_millis(50);
/// A longer break between two looks was ours (stopped by Ctrl-Z, starved): the child is not charged
/// with more of it.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// A child may itself be the task that waits for a CPU, so it is charged with one eighth of such
/// time. Not with none: one that hangs on a busy machine must still end.
const WAITED_PARTS: u32 = 8;
/// How long a child may take to leave after its last line, with all that it has started: twice
/// what it gives a program of others, and a little.
const LEAVE: Duration = Duration::from_secs(12);

/// What a run does while a visit's process is at work.
pub struct Meanwhile<'a> {
    /// Asked often; ends the visit when true.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Called as often, to look at the machine when it is time to.
    pub observe: &'a mut dyn FnMut(),
    /// How long tasks of this machine have waited for a CPU since the visit began. Called when the
    /// visit's limit is over.
    pub waited: &'a mut dyn FnMut() -> Duration,
}

/// The one word of the command that is a visit: for sessions, and no verb for people.
pub const WORD: &str = "case";

/// Runs one visit. `program` is this very binary (a bench: the one beside it), `keep` lends it what
/// would outlive it. It may take `limit`, and up to eight times that while tasks wait for a CPU.
pub fn visit(
    program: &std::path::Path,
    order: &Order,
    limit: Duration,
    keep: &Keep,
    meanwhile: Meanwhile,
) -> anyhow::Result<Heard> {
    let needs = leaves(&order.case).filter(|_| order.pretend.is_none());
    let loan = keep.lend(needs, limit * WAITED_PARTS)?;
    let mut order = order.clone();
    if let Some(key) = &loan.key {
        let text = key.as_ref().map_or_else(String::clone, i32::to_string);
        order.case.inputs.insert(SET_KEY.to_string(), text);
    }
    order.case.inputs.extend(loan.job.clone().map(|job| (JOB.to_string(), job)));
    let mut command = Command::new(program);
    command
        .arg0("assay")
        .arg(WORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: Ctrl-C reaches us, not the child in the middle of a window; and the
        // whole group can be killed together.
        .process_group(0)
        .envs(loan.mark.as_ref().map(|mark| (MARK, mark)));
    let started = match where_it_works(&order) {
        Some(cpu) => affinity::on(cpu, || command.spawn()).unwrap_or_else(|_| command.spawn()),
        None => command.spawn(),
    };
    let mut child = match started {
        Ok(child) => child,
        // No room for one more task or file just now: the next visit may find some.
        Err(error) if is_want(&error) => {
            let why = format!("cannot start a process for this pass: {error}");
            return Ok(Heard { reason: Some(Reason::Failed(why)), left: loan.end(), ..Heard::default() });
        }
        Err(error) => return Err(error).with_context(|| format!("cannot start {}", program.display())),
    };
    let group = Group(Pid::from_child(&child));
    loan.started(child.id());
    // A child that dies before it has read its order shows itself below by what it (did not) say.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = serde_json::to_vec(&order).map(|order| stdin.write_all(&order));
    }
    let mut heard = Heard::default();
    let mut talk = Talk::new(&order);
    let verdict = listen(&mut child, &mut talk, limit, meanwhile);
    if !matches!(verdict, Listened::Done) {
        group.end();
    }
    let status = leave(&mut child, &group)?;
    heard.left = loan.end();
    heard.interrupted = matches!(verdict, Listened::Interrupted);
    heard.reason = match verdict {
        Listened::Refused(error) => return Err(error).context("cannot wait for the process of a pass"),
        Listened::Interrupted => None,
        Listened::TooLong { uncharged } => {
            let waited = match uncharged.as_secs() {
                0 => String::new(),
                seconds => format!(" and {seconds} s in which tasks waited for a CPU"),
            };
            let (limit, lines) = (limit.as_secs_f64(), talk.lines);
            let text = format!("killed after {limit:.0} s{waited}, with {lines} lines sent");
            Some(Reason::TimedOut(text))
        }
        Listened::Nonsense(why) => Some(Reason::Failed(why)),
        Listened::Done => talk.done.take().unwrap_or_else(|| Some(Reason::Failed(talk.death(status)))),
    };
    (heard.samples, heard.process) = talk.said();
    Ok(heard)
}

/// Where to start a process: the one CPU on which all its work will be, if it is one. Memory that
/// was on another CPU before costs more to change: the kernel asks for each flush of a translation
/// whether that CPU still knows it (an mprotect of a page took 1.41 us instead of 1.27).
fn where_it_works(order: &Order) -> Option<&CpuSet> {
    let placement = &order.case.placement;
    let seat = placement.seats.first().filter(|seat| seat.host.is_none())?;
    (order.pretend.is_none() && placement.is_of_one_cpu()).then_some(&seat.cpus)
}

enum Listened {
    Done,
    TooLong {
        uncharged: Duration,
    },
    Interrupted,
    Nonsense(String),
    /// The kernel lets us wait for nothing.
    Refused(Errno),
}

/// Whether a process was refused for want of something that others take and give back.
fn is_want(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE))
}

/// What a child said so far: its lines parsed and checked, as nothing that it says is taken on
/// trust.
pub struct Talk {
    known_metrics: Vec<String>,
    pending: Vec<u8>,
    heard_bytes: usize,
    lines: usize,
    samples: Vec<Samples>,
    process: ProcessFacts,
    /// The child's own last word, once said.
    done: Option<Option<Reason>>,
    complaint: Vec<u8>,
}

impl Talk {
    pub fn new(order: &Order) -> Talk {
        let bench = find(&order.case.bench);
        let metrics = bench.map_or(&[][..], |bench| bench.metrics);
        Talk {
            known_metrics: metrics.iter().map(|metric| metric.name.to_string()).collect(),
            pending: Vec::new(),
            heard_bytes: 0,
            lines: 0,
            samples: Vec::new(),
            process: ProcessFacts::default(),
            done: None,
            complaint: Vec::new(),
        }
    }

    /// Takes bytes of standard output; an error says what was wrong with a line.
    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.heard_bytes += bytes.len();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(&rest[..=end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.pending);
            self.line(&line)?;
        }
        self.pending.extend_from_slice(rest);
        if self.pending.len() > LONGEST_LINE || self.heard_bytes > LONGEST_TALK {
            return Err(format!("it sent too much output ({} bytes)", self.heard_bytes));
        }
        Ok(())
    }

    /// The samples and facts of all lines.
    pub fn said(self) -> (Vec<Samples>, ProcessFacts) {
        (self.samples, self.process)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        self.lines += 1;
        let shown = || String::from_utf8_lossy(&line[..line.len().min(80)]).trim_end().to_string();
        let parsed: Line = serde_json::from_slice(line).map_err(|error| {
            format!("its line {} is not a sample line ({error}): {:?}", self.lines, shown())
        })?;
        if self.done.is_some() {
            return Err(format!("it continued after its last line: {:?}", shown()));
        }
        match parsed {
            Line::Samples(samples) => {
                run_file::check_columns(&samples)
                    .map_err(|why| format!("its line {} is damaged: {why}", self.lines))?;
                if let Some(metric) =
                    samples.metrics.iter().find(|metric| !self.known_metrics.contains(metric))
                {
                    return Err(format!("its line {} has an unknown metric {metric:?}", self.lines));
                }
                self.samples.push(*samples);
            }
            Line::Process(facts) => self.process = *facts,
            Line::Done(reason) => self.done = Some(reason),
        }
        Ok(())
    }

    /// Why there was no last line.
    fn death(&self, status: ExitStatus) -> String {
        let how = match status.signal() {
            Some(9) => killed(getrlimit(Resource::Cpu).maximum),
            Some(signal) => format!("it died of signal {signal}"),
            None => format!("it ended with {status} and no last line"),
        };
        let complaint = String::from_utf8_lossy(&self.complaint);
        match complaint.trim() {
            "" => how,
            said => format!("{how}; its output: {said}"),
        }
    }
}

/// Why a child was killed, where a process may use so many seconds of CPU time. The kernel kills
/// without its warning where the clock of a process leaps: a host that kept its guest waiting.
fn killed(limit: Option<u64>) -> String {
    let limit = limit.map_or(String::new(), |seconds| format!("out of CPU time (ulimit -t {seconds}), "));
    format!("it was killed ({limit}out of memory, or by hand)")
}

/// Listens until the child closes its output, the time is up, the user interrupts or it says
/// nonsense.
fn listen(child: &mut Child, talk: &mut Talk, limit: Duration, meanwhile: Meanwhile) -> Listened {
    let Meanwhile { interrupted, observe, waited } = meanwhile;
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Listened::Nonsense("it has no output".to_string());
    };
    let (mut last_look, mut spent) = (Instant::now(), Duration::ZERO);
    let (mut out_open, mut err_open) = (true, true);
    let mut buffer = vec![0u8; 64 << 10];
    while out_open {
        if interrupted() {
            return Listened::Interrupted;
        }
        spent += last_look.elapsed().min(LONGEST_LOOK);
        last_look = Instant::now();
        if spent > limit {
            let uncharged = uncharged(spent, waited());
            if spent - uncharged > limit {
                return Listened::TooLong { uncharged };
            }
        }
        let (out_ready, err_ready) = match ready(stdout.as_fd(), stderr.as_fd(), err_open) {
            Ok(ready) => ready,
            Err(error) => return Listened::Refused(error),
        };
        // A tick or a line later: the child is past its start and at work.
        observe();
        if err_ready {
            let bytes = read_some(&mut stderr, &mut buffer);
            err_open = bytes > 0;
            let room = COMPLAINT.saturating_sub(talk.complaint.len());
            talk.complaint.extend_from_slice(&buffer[..bytes.min(room)]);
        }
        if out_ready {
            let bytes = read_some(&mut stdout, &mut buffer);
            out_open = bytes > 0;
            if let Err(why) = talk.hear(&buffer[..bytes]) {
                return Listened::Nonsense(why);
            }
        }
    }
    Listened::Done
}

/// The part of `spent` that a child is not charged with, if tasks `waited` for a CPU meanwhile.
fn uncharged(spent: Duration, waited: Duration) -> Duration {
    let waited = waited.min(spent);
    waited - waited / WAITED_PARTS
}

/// Waits up to a tick until one of the two can be read (or is closed).
fn ready(stdout: BorrowedFd, stderr: BorrowedFd, err_open: bool) -> Result<(bool, bool), Errno> {
    let mut polled = vec![PollFd::from_borrowed_fd(stdout, PollFlags::IN)];
    if err_open {
        polled.push(PollFd::from_borrowed_fd(stderr, PollFlags::IN));
    }
    let tick = rustix::event::Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    match rustix::event::poll(&mut polled, Some(&tick)) {
        Ok(_) => {}
        // A signal ends the wait early: the caller looks at its flag.
        Err(Errno::INTR) => return Ok((false, false)),
        // The kernel has no memory for the question just now.
        Err(Errno::AGAIN | Errno::NOMEM) => {
            std::thread::sleep(TICK);
            return Ok((false, false));
        }
        Err(error) => return Err(error),
    }
    let is_ready = |fd: &PollFd| !fd.revents().is_empty();
    Ok((is_ready(&polled[0]), polled.get(1).is_some_and(is_ready)))
}

/// Bytes read; 0 at the end or on an error that will not go away.
fn read_some(from: &mut impl Read, buffer: &mut [u8]) -> usize {
    loop {
        match from.read(buffer) {
            Ok(bytes) => return bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return 0,
        }
    }
}

/// The process group of a visit: whatever its child started belongs to it.
struct Group(Pid);

impl Group {
    /// Asks the child to end, which is the end of all but those that have something to put away
    /// first, and kills the group.
    fn end(&self) {
        let _ = rustix::process::kill_process(self.0, Signal::TERM);
        self.wait(LEAVE);
        self.kill();
    }

    /// Waits for the child's end, for so long at most; it is not yet reaped.
    fn wait(&self, limit: Duration) {
        let begin = Instant::now();
        let gone = || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            rustix::process::waitid(WaitId::Pid(self.0), options).is_ok_and(|status| status.is_some())
        };
        while !gone() && begin.elapsed() < limit {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn kill(&self) {
        // Nobody left is what we want.
        let _ = rustix::process::kill_process_group(self.0, Signal::KILL);
    }
}

/// Waits for the child to leave, kills what it left behind and reaps it. While it is not yet reaped
/// its process number cannot be given to another group.
fn leave(child: &mut Child, group: &Group) -> anyhow::Result<ExitStatus> {
    group.wait(LEAVE);
    group.kill();
    child.wait().context("cannot wait for the process of a pass")
}
