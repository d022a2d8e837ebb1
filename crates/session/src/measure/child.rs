//! One visit in its own process: started, read, timed out, cleaned up.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Signal, WaitId, WaitIdOptions, getrlimit};

use crate::objects::{MARK, ObjectKeeper};
use bench::{JOB, Line, Order, SET_KEY, find, leaves};
use model::run_file;
use model::{CpuSet, ProcessFacts, Reason, Samples};
use sys::affinity;

/// The result of a visit's process.
#[derive(Debug, Default)]
pub struct Outcome {
    pub samples: Vec<Samples>,
    pub process: ProcessFacts,
    pub reason: Option<Reason>,
    /// The user interrupted it: there is no result for the case.
    pub interrupted: bool,
    /// What could not be cleaned up afterwards, in sentences.
    pub left: Vec<String>,
}

/// Longest sample line.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Longest output of a visit.
const MAX_OUTPUT_BYTES: usize = 56 << 20;
/// Bytes of its standard error that are kept.
const MAX_STDERR_BYTES: usize = 4096;
/// Interval for checking the interrupt flag and the time limit.
const TICK: Duration = Duration::from_millis(50);
/// Longest interval that is charged to the child: a longer one means that Assay itself was stopped
/// or starved.
const MAX_POLL_GAP: Duration = Duration::from_secs(1);
/// Time in which tasks waited for a CPU is charged to the child by this fraction: the child may be
/// the one that waits, and one that hangs on a busy host must still end.
const WAITING_DIVISOR: u32 = 8;
/// How long a child and its processes may take to end after its last line.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(12);

/// Callbacks while a visit's process runs.
pub struct Callbacks<'a> {
    /// Polled often; ends the visit when true.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Polled as often, to observe the host when due.
    pub observe: &'a mut dyn FnMut(),
    /// How long tasks of this host have waited for a CPU since the visit began. Called at the
    /// visit's time limit.
    pub waited: &'a mut dyn FnMut() -> Duration,
}

/// The hidden command that runs one visit.
pub const CASE_COMMAND: &str = "case";

/// Runs one visit. `program` is this executable (for prove's peers: the one next to it), `keep`
/// owns what would outlive the visit. It may take `limit`, and up to eight times that while tasks
/// wait for a CPU.
pub fn visit(
    program: &std::path::Path,
    order: &Order,
    limit: Duration,
    keep: &ObjectKeeper,
    callbacks: Callbacks,
) -> anyhow::Result<Outcome> {
    let needs = leaves(&order.case).filter(|_| order.pretend.is_none());
    let loan = keep.lend(needs, limit * WAITING_DIVISOR)?;
    let mut order = order.clone();
    if let Some(key) = &loan.key {
        let text = key.as_ref().map_or_else(String::clone, i32::to_string);
        order.case.inputs.insert(SET_KEY.to_string(), text);
    }
    order.case.inputs.extend(loan.job.clone().map(|job| (JOB.to_string(), job)));
    let mut command = Command::new(program);
    command
        .arg0("assay")
        .arg(CASE_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own process group: Ctrl-C reaches the parent only, and the group can be killed as a
        // whole.
        .process_group(0)
        .envs(loan.mark.as_ref().map(|mark| (MARK, mark)));
    let started = match where_it_works(&order) {
        Some(cpu) => affinity::on(cpu, || command.spawn()).unwrap_or_else(|_| command.spawn()),
        None => command.spawn(),
    };
    let mut child = match started {
        Ok(child) => child,
        // A temporary shortage of tasks or files: the next visit may succeed.
        Err(error) if is_shortage(&error) => {
            let why = format!("cannot start a process for this pass: {error}");
            return Ok(Outcome { reason: Some(Reason::Failed(why)), left: loan.end(), ..Outcome::default() });
        }
        Err(error) => return Err(error).with_context(|| format!("cannot start {}", program.display())),
    };
    let group = Group(Pid::from_child(&child));
    loan.started(child.id());
    // If the child died before it read its order, its output shows that below.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = serde_json::to_vec(&order).map(|order| stdin.write_all(&order));
    }
    let mut outcome = Outcome::default();
    let mut output = ChildOutput::new(&order);
    let verdict = listen(&mut child, &mut output, limit, callbacks);
    if !matches!(verdict, ListenEnd::Done) {
        group.end();
    }
    let status = leave(&mut child, &group)?;
    outcome.left = loan.end();
    outcome.interrupted = matches!(verdict, ListenEnd::Interrupted);
    outcome.reason = match verdict {
        ListenEnd::Refused(error) => return Err(error).context("cannot wait for the process of a pass"),
        ListenEnd::Interrupted => None,
        ListenEnd::TooLong { uncharged } => {
            let waited = match uncharged.as_secs() {
                0 => String::new(),
                seconds => format!(" and {seconds} s in which tasks waited for a CPU"),
            };
            let (limit, lines) = (limit.as_secs_f64(), output.lines);
            let text = format!("killed after {limit:.0} s{waited}, with {lines} lines sent");
            Some(Reason::TimedOut(text))
        }
        ListenEnd::Nonsense(why) => Some(Reason::Failed(why)),
        ListenEnd::Done => output.done.take().unwrap_or_else(|| Some(Reason::Failed(output.death(status)))),
    };
    (outcome.samples, outcome.process) = output.into_samples();
    Ok(outcome)
}

/// The CPU to start the process on, if all its work is on one CPU. Memory touched on another CPU
/// before costs more to change, because the kernel must ask that CPU at each TLB flush (mprotect of
/// a page: 1.41 instead of 1.27 µs).
fn where_it_works(order: &Order) -> Option<&CpuSet> {
    let placement = &order.case.placement;
    let seat = placement.seats.first().filter(|seat| seat.host.is_none())?;
    (order.pretend.is_none() && placement.is_of_one_cpu()).then_some(&seat.cpus)
}

enum ListenEnd {
    Done,
    TooLong {
        uncharged: Duration,
    },
    Interrupted,
    Nonsense(String),
    /// Waiting is impossible.
    Refused(Errno),
}

/// Whether a process could not be started for a temporary shortage.
fn is_shortage(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE))
}

/// The output of a child so far: its lines, parsed and checked.
pub struct ChildOutput {
    known_metrics: Vec<String>,
    pending: Vec<u8>,
    heard_bytes: usize,
    lines: usize,
    samples: Vec<Samples>,
    process: ProcessFacts,
    /// The child's last line, if it was sent.
    done: Option<Option<Reason>>,
    complaint: Vec<u8>,
}

impl ChildOutput {
    pub fn new(order: &Order) -> ChildOutput {
        let bench = find(&order.case.bench);
        let metrics = bench.map_or(&[][..], |bench| bench.metrics);
        ChildOutput {
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

    /// Adds bytes of standard output; an error says what is wrong with a line.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.heard_bytes += bytes.len();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(&rest[..=end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.pending);
            self.line(&line)?;
        }
        self.pending.extend_from_slice(rest);
        if self.pending.len() > MAX_LINE_BYTES || self.heard_bytes > MAX_OUTPUT_BYTES {
            return Err(format!("it sent too much output ({} bytes)", self.heard_bytes));
        }
        Ok(())
    }

    /// Returns the samples and facts of all lines.
    pub fn into_samples(self) -> (Vec<Samples>, ProcessFacts) {
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
                    return Err(format!("its line {} has an unknown figure {metric:?}", self.lines));
                }
                self.samples.push(*samples);
            }
            Line::Process(facts) => self.process = *facts,
            Line::Done(reason) => self.done = Some(reason),
        }
        Ok(())
    }

    /// Why the last line is missing.
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

/// Why a child was killed; `limit` is its limit of CPU time in seconds. The kernel kills without
/// SIGXCPU if the process's clock leaps, as after a pause of the guest.
fn killed(limit: Option<u64>) -> String {
    let limit = limit.map_or(String::new(), |seconds| format!("out of CPU time (ulimit -t {seconds}), "));
    format!("it was killed ({limit}out of memory, or by hand)")
}

/// Reads until the child closes its output, the time is up, the user interrupts, or a line is
/// invalid.
fn listen(child: &mut Child, output: &mut ChildOutput, limit: Duration, callbacks: Callbacks) -> ListenEnd {
    let Callbacks { interrupted, observe, waited } = callbacks;
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return ListenEnd::Nonsense("it has no output".to_string());
    };
    let (mut last_look, mut spent) = (Instant::now(), Duration::ZERO);
    let (mut out_open, mut err_open) = (true, true);
    let mut buffer = vec![0u8; 64 << 10];
    while out_open {
        if interrupted() {
            return ListenEnd::Interrupted;
        }
        spent += last_look.elapsed().min(MAX_POLL_GAP);
        last_look = Instant::now();
        if spent > limit {
            let uncharged = uncharged(spent, waited());
            if spent - uncharged > limit {
                return ListenEnd::TooLong { uncharged };
            }
        }
        let (out_ready, err_ready) = match ready(stdout.as_fd(), stderr.as_fd(), err_open) {
            Ok(ready) => ready,
            Err(error) => return ListenEnd::Refused(error),
        };
        // After a tick or a line the child is at work.
        observe();
        if err_ready {
            let bytes = read_some(&mut stderr, &mut buffer);
            err_open = bytes > 0;
            let room = MAX_STDERR_BYTES.saturating_sub(output.complaint.len());
            output.complaint.extend_from_slice(&buffer[..bytes.min(room)]);
        }
        if out_ready {
            let bytes = read_some(&mut stdout, &mut buffer);
            out_open = bytes > 0;
            if let Err(why) = output.feed(&buffer[..bytes]) {
                return ListenEnd::Nonsense(why);
            }
        }
    }
    ListenEnd::Done
}

/// The part of `spent` that is not charged to a child, if tasks `waited` for a CPU in that time.
fn uncharged(spent: Duration, waited: Duration) -> Duration {
    let waited = waited.min(spent);
    waited - waited / WAITING_DIVISOR
}

/// Waits up to a tick until one of the two is readable or closed.
fn ready(stdout: BorrowedFd, stderr: BorrowedFd, err_open: bool) -> Result<(bool, bool), Errno> {
    let mut polled = vec![PollFd::from_borrowed_fd(stdout, PollFlags::IN)];
    if err_open {
        polled.push(PollFd::from_borrowed_fd(stderr, PollFlags::IN));
    }
    let tick = rustix::event::Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    match rustix::event::poll(&mut polled, Some(&tick)) {
        Ok(_) => {}
        // A signal ends the wait early: the caller checks its flag.
        Err(Errno::INTR) => return Ok((false, false)),
        // The kernel is out of memory.
        Err(Errno::AGAIN | Errno::NOMEM) => {
            std::thread::sleep(TICK);
            return Ok((false, false));
        }
        Err(error) => return Err(error),
    }
    let is_ready = |fd: &PollFd| !fd.revents().is_empty();
    Ok((is_ready(&polled[0]), polled.get(1).is_some_and(is_ready)))
}

/// Bytes read; 0 at the end or on a permanent error.
fn read_some(from: &mut impl Read, buffer: &mut [u8]) -> usize {
    loop {
        match from.read(buffer) {
            Ok(bytes) => return bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return 0,
        }
    }
}

/// The process group of a visit, with all processes of the child.
struct Group(Pid);

impl Group {
    /// Asks the child to end, waits for processes that have cleanup to do, and kills the group.
    fn end(&self) {
        let _ = rustix::process::kill_process(self.0, Signal::TERM);
        self.wait(MAX_EXIT_WAIT);
        self.kill();
    }

    /// Waits at most this long for the child's end, without reaping it.
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
        // An empty group is fine.
        let _ = rustix::process::kill_process_group(self.0, Signal::KILL);
    }
}

/// Waits for the child to end, kills its remaining processes and reaps it. Until then its process
/// number is not reused.
fn leave(child: &mut Child, group: &Group) -> anyhow::Result<ExitStatus> {
    group.wait(MAX_EXIT_WAIT);
    group.kill();
    child.wait().context("cannot wait for the process of a pass")
}
