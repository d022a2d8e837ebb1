//! The operating system's primitives, against perf bench, stress-ng and (where a user has it on the
//! PATH) lmbench, all on the same pinned CPU.

use std::path::PathBuf;

use super::{Bench, Ours, Peer, Row, Rows, Wanted, number_after, number_before};

/// A comparison before this host's cases are known.
struct Spec {
    name: &'static str,
    id: &'static str,
    placement: &'static str,
    metric: &'static str,
    minus: Option<&'static str>,
    /// Parameters of the case or of its point.
    at: &'static [(&'static str, &'static str)],
    unit: &'static str,
    scale: f64,
    /// The peer's command line.
    command: &'static str,
    value: fn(&str) -> Option<f64>,
    wanted: Wanted,
    note: &'static str,
}

/// One latency on one CPU, in microseconds on both sides; a system call, a signal, a pipe or a
/// process has no faster way: the same is what is wanted.
const SAME: Spec = Spec {
    name: "",
    id: "",
    placement: "one-cpu",
    metric: "latency",
    minus: None,
    at: &[],
    unit: "us",
    scale: 1.0,
    command: "",
    value: microseconds,
    wanted: Wanted::Within(0.05),
    note: "",
};

/// From Assay's ns to µs.
const NS: f64 = 1e-3;

pub fn rows(bench: &Bench) -> Rows {
    let has_lmbench = on_path("lat_syscall");
    let (lmbench, others): (Vec<&Spec>, Vec<&Spec>) = SPECS.iter().partition(|spec| is_lmbench(spec));
    let mut rows: Rows = others.into_iter().map(|spec| spec.row(bench)).collect();
    if has_lmbench {
        rows.extend(lmbench.into_iter().map(|spec| spec.row(bench)))
    } else {
        rows.push(Err(format!("lmbench ({} rows; its programs are not on the PATH)", lmbench.len())))
    }
    rows
}

fn is_lmbench(spec: &Spec) -> bool {
    spec.name.contains("(lmbench")
}

pub fn on_path(program: &str) -> bool {
    place_of(program).is_some()
}

fn place_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The program that lmbench executes, where its scripts would put it (Debian's into /var/tmp); gone
/// again on drop. Without it lat_proc times an execve that fails, and says nothing.
pub struct Hello(Vec<PathBuf>);

impl Hello {
    pub fn put() -> Hello {
        let copied = |there: &PathBuf| {
            let folder = there.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok());
            let own = place_of("hello").filter(|_| folder && !there.exists());
            own.is_some_and(|own| std::fs::copy(own, there).is_ok())
        };
        let places = ["/tmp/hello", "/var/tmp/lmbench/hello"].map(PathBuf::from);
        Hello(places.into_iter().filter(copied).collect())
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        for there in &self.0 {
            // If it is already gone, nothing is left to do.
            let _ = std::fs::remove_file(there);
        }
    }
}

impl Spec {
    fn row(&self, bench: &Bench) -> Result<Row, String> {
        let of_case = |case: &model::Case| {
            let said = |name: &str| case.params.named(name).map(|value| value.to_string());
            case.placement.name == self.placement
                && case.placement.pages != model::Pages::Huge
                && self.at.iter().all(|(name, value)| said(name).is_none_or(|there| there == *value))
        };
        let mut case = bench.case(self.id, of_case).ok_or(self.name.to_string())?;
        // What is no parameter of the case is one of its point, and the only point wanted.
        let at: Vec<_> =
            self.at.iter().copied().filter(|(name, _)| case.params.named(name).is_none()).collect();
        for (name, value) in &at {
            for list in [name.to_string(), format!("{name}s")] {
                case.inputs.entry(list).and_modify(|points| *points = value.to_string());
            }
        }
        // Nor are points by its other parameters.
        let others = bench::find(self.id).map_or(&[][..], |bench| bench.params).iter();
        for param in others.filter(|param| !at.is_empty() && at.iter().all(|(name, _)| *name != param.name)) {
            case.inputs.remove(&*param.name);
        }
        let command = full_command(self.command, bench.first_cpu());
        Ok(Row {
            name: self.name.into(),
            unit: self.unit,
            ours: Ours { minus: self.minus, at, ..Ours::new(bench.on_first_cpu(case), self.metric) },
            scale: self.scale,
            peer: Peer::Program(command, self.value),
            wanted: self.wanted,
            pairs: super::PAIRS_MIN,
            limit: super::ROW_LIMIT,
            note: self.note,
        })
    }
}

/// Pinned, with a limit; lmbench with the settings that its own script would find once (10 ms are
/// enough, no overheads of timing).
pub fn full_command(command: &str, cpu: u32) -> Vec<String> {
    let pinned = format!("timeout -k 1 40 taskset -c {cpu} env ENOUGH=10000 TIMING_O=0 LOOP_O=0 {command}");
    pinned.split_whitespace().map(str::to_string).collect()
}

/// The number of `NAME: 0.1234 microseconds`.
pub fn microseconds(text: &str) -> Option<f64> {
    number_before(text, "microseconds")
}

/// From `metrc: [PID] NAME OPS REAL USER SYSTEM OPS/S OPS/S-OF-CPU` to microseconds an operation.
pub fn bogo(text: &str) -> Option<f64> {
    let figures = |line: &str| {
        let mut words = line.split_whitespace().rev();
        let (of_cpu, a_second) = (words.next()?, words.next()?);
        // Other lines, of a stressor's own rates, end with words.
        of_cpu.parse::<f64>().ok()?;
        a_second.parse::<f64>().ok()
    };
    let a_second = text.lines().filter(|line| line.contains("metrc:")).find_map(figures)?;
    (a_second > 0.0).then(|| 1e6 / a_second)
}

/// The second figure of lat_ctx: `2 2.27`.
fn ring(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("2 ")?.trim().parse().ok())
}

/// Compares by the same instruction: the note says how to see that the two differ in kind.
const STRACE: &str = "a bogo op does more than the call: count them with `strace -f -c`";

#[rustfmt::skip]
const SPECS: &[Spec] = &[
    Spec { name: "system call (perf bench syscall basic)", id: "syscall.getpid", unit: "ns",
        command: "perf bench syscall basic -l 2000000", value: |text| Some(number_before(text, "usecs/op")? * 1e3), ..SAME },
    Spec { name: "pipe ping-pong on one CPU, round trips (perf bench sched pipe)", id: "ipc.pipe-pingpong", placement: "same-cpu",
        metric: "round_trips", unit: "1/s", command: "perf bench sched pipe -l 50000", value: |text| number_before(text, "ops/sec"), ..SAME },
    Spec { name: "futex (perf bench futex hash, per call)", id: "ipc.futex", placement: "same-cpu", wanted: Wanted::Beside,
        command: "perf bench futex hash -t 1 -r 1", value: |text| Some(1e6 / number_after(text, "Averaged ")?),
        note: "the peer's waits return at once, as the value never fits; ours is a round trip of two wake-ups and two switches", ..SAME },
    Spec { name: "epoll_wait (perf bench epoll wait, per event)", id: "syscall.epoll", at: &[("fds", "10")], scale: NS, wanted: Wanted::Beside,
        command: "perf bench epoll wait -t 1 -r 1", value: |text| Some(1e6 / number_after(text, "Averaged ")?),
        note: "the peer's events come from a writer thread on the same CPU, with a switch for each batch; ours are ready beforehand", ..SAME },
    Spec { name: "eventfd round trip (stress-ng --eventfd)", id: "ipc.eventfd", placement: "same-cpu", wanted: Wanted::Beside,
        command: "stress-ng --eventfd 1 -t 1 --metrics-brief", value: bogo,
        note: "a bogo op is one round trip and stress-ng's checks of its own flags between the calls", ..SAME },
    Spec { name: "fork+exit (stress-ng --fork)", id: "process.fork", at: &[("resident_mb", "0")], wanted: Wanted::Beside,
        command: "stress-ng --fork 1 -t 1 --metrics-brief", value: bogo, note: STRACE, ..SAME },
    Spec { name: "thread (stress-ng --pthread)", id: "process.thread", wanted: Wanted::Beside,
        command: "stress-ng --pthread 1 -t 1 --metrics-brief", value: bogo, note: STRACE, ..SAME },
    Spec { name: "protection fault (stress-ng --sigsegv)", id: "signal.protection-fault", scale: NS, wanted: Wanted::Beside,
        command: "stress-ng --sigsegv 1 -t 1 --metrics-brief", value: bogo,
        note: "a bogo op also sets two handlers and leaves the fault by siglongjmp: see `strace -f -c`", ..SAME },
    Spec { name: "System V semaphores (stress-ng --sem-sysv)", id: "ipc.sysv-semaphore", placement: "same-cpu", wanted: Wanted::Beside,
        command: "stress-ng --sem-sysv 1 -t 1 --metrics-brief", value: bogo,
        note: "the peer's processes take and give one semaphore and seldom wait; ours is a round trip", ..SAME },

    Spec { name: "system call (lmbench lat_syscall null)", id: "syscall.getpid", scale: NS, command: "lat_syscall -N 5 null", ..SAME },
    Spec { name: "read of /dev/zero (lmbench lat_syscall read)", id: "syscall.read", scale: NS, command: "lat_syscall -N 5 read", ..SAME },
    Spec { name: "write to /dev/null (lmbench lat_syscall write)", id: "syscall.write", scale: NS, command: "lat_syscall -N 5 write", ..SAME },
    Spec { name: "stat (lmbench lat_syscall stat)", id: "syscall.stat", scale: NS, command: "lat_syscall -N 5 stat /tmp", ..SAME },
    Spec { name: "fstat (lmbench lat_syscall fstat)", id: "syscall.fstat", scale: NS, command: "lat_syscall -N 5 fstat /etc/passwd", ..SAME },
    Spec { name: "open and close (lmbench lat_syscall open)", id: "syscall.open-close", scale: NS, command: "lat_syscall -N 5 open /etc/passwd", ..SAME },
    Spec { name: "select on 100 descriptors (lmbench lat_select, of a file)", id: "syscall.select", at: &[("fds", "100")], scale: NS,
        wanted: Wanted::Beside, command: "lat_select -N 5 -n 100 file",
        note: "the peer's are a regular file's, of which the kernel asks nothing (no poll method); ours are event counters, it calls each; sockets: next row", ..SAME },
    Spec { name: "select on 100 descriptors (lmbench lat_select, of a socket)", id: "syscall.select", at: &[("fds", "100")], scale: NS,
        wanted: Wanted::Beside, command: "lat_select -N 5 -n 100 tcp",
        note: "the peer's are a TCP socket's, whose poll method does more than that of our event counters; a file: row before", ..SAME },
    Spec { name: "signal handler installed (lmbench lat_sig install)", id: "signal.handler", metric: "install", scale: NS,
        command: "lat_sig -N 5 install", ..SAME },
    Spec { name: "signal caught, less sent (lmbench lat_sig catch)", id: "signal.handler", metric: "latency", minus: Some("send"), scale: NS,
        command: "lat_sig -N 5 catch", ..SAME },
    Spec { name: "pipe round trip on one CPU (lmbench lat_pipe)", id: "ipc.pipe", placement: "same-cpu", command: "lat_pipe -N 1", ..SAME },
    // Not lat_fifo: Debian's loses its FIFO and complains without end.
    Spec { name: "Unix stream round trip on one CPU (lmbench lat_unix)", id: "ipc.unix-stream", placement: "same-cpu", command: "lat_unix -N 1", ..SAME },
    Spec { name: "fcntl locks, round trip on one CPU (lmbench lat_fcntl)", id: "ipc.fcntl-lock", placement: "same-cpu", command: "lat_fcntl -N 5",
        wanted: Wanted::Beside, note: "the peer's processes take their own lock again and seldom switch: 0.4 times where ours do twice (`perf stat -e context-switches`)", ..SAME },
    Spec { name: "System V semaphores, half a round trip on one CPU (lmbench lat_sem)", id: "ipc.sysv-semaphore", placement: "same-cpu",
        scale: 0.5, command: "lat_sem -N 1",
        note: "the peer takes and gives in one semop, ours in two: count them with `strace -f -c -e semtimedop`", ..SAME },
    Spec { name: "fork+exit (lmbench lat_proc fork)", id: "process.fork", at: &[("resident_mb", "0")], command: "lat_proc -N 5 fork",
        note: "the peer's child runs the C library's exit handlers in copied pages, ours ends at once: 30 page faults a child and 11 (`perf stat -e page-faults,context-switches`)", ..SAME },
    Spec { name: "fork+exec of a dynamic program (lmbench lat_proc exec)", id: "process.exec", at: &[("program", "true")], command: "lat_proc -N 5 exec", ..SAME },
    Spec { name: "fork+shell (lmbench lat_proc shell)", id: "process.shell", at: &[("program", "true")], command: "lat_proc -N 5 shell", ..SAME },
    Spec { name: "context switch, 2 processes, 0 KB (lmbench lat_ctx)", id: "sched.context-switch", placement: "same-cpu",
        at: &[("processes", "2"), ("kb", "0")], minus: Some("pipe"), wanted: Wanted::Beside, command: "lat_ctx -N 5 -s 0 2", value: ring,
        note: "both take the pipe's own cost away; ours also shows it, and what was measured", ..SAME },
    Spec { name: "pipe bandwidth on one CPU (lmbench bw_pipe)", id: "ipc.pipe-bandwidth", placement: "same-cpu", metric: "bandwidth",
        at: &[("message", "65536")], unit: "GB/s", command: "bw_pipe -N 1", value: |text| Some(number_before(text, "MB/sec")? / 1e3),
        wanted: Wanted::AtLeast(1.0), ..SAME },
    Spec { name: "Unix stream bandwidth on one CPU (lmbench bw_unix)", id: "ipc.unix-bandwidth", placement: "same-cpu", metric: "bandwidth",
        at: &[("message", "65536")], unit: "GB/s", command: "bw_unix -N 1", value: |text| Some(number_before(text, "MB/sec")? / 1e3),
        wanted: Wanted::AtLeast(1.0), ..SAME },
];
