//! Any program, unmodified, watched while it runs: one pass is one run of it.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

use super::sampler::core_clock_ghz;
use super::{Benchmark, Candidate, Depth, Param, Sampler, View, point};
use crate::placement::Placements;
use crate::row::note;
use model::vocabulary::MetricId;
use model::vocabulary::guard as ids;
use model::{Better, Case, Covariates, CpuSet, Form, Metric, Packed, Params};
use sys::clock::{self, Usage};
use sys::counters::{self, Tasks};
use sys::events::Events;
use sys::{affinity, process};

mod duet;
mod extract;
mod formats;
mod output;
mod watch;

use extract::Found;
pub use extract::Wanted;
pub use formats::{FORMATS, format_of};
use output::OutputTail;
use watch::Watch;

/// Names of a case's inputs: its words as a JSON list, the metric as JSON, the time limit in
/// seconds, and the CPUs with where each belongs. Of a duet also the second command's words, and
/// the names of both with a comma between them.
pub const WORDS: &str = "words";
pub const WANTED: &str = "wanted";
pub const TIMEOUT: &str = "timeout_s";
pub const FLOOR: &str = "placements";
pub const RIVAL: &str = "rival";
pub const NAMES: &str = "points";

const fn value(name: MetricId, title: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric::new(name, title, unit, better, Form::Value)
}

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::COMMAND,
    title: "Guarded command",
    about: "Wall time of a program, or a figure from its output, for each placement. The program runs unmodified \
            while Assay watches its tasks through /proc.",
    reading: "Every run is one value: compare runs, not samples. If the free placement varies and the pinned ones do \
              not, the scheduler's choice moves the result. occupancy is how often two busy tasks shared a CPU. \
              watch_cpu is the share of one CPU that watching took.",
    method: "Each run is a pass. Tasks are read up to a hundred times a second. Many tasks are read less often, \
             within 2 % of a CPU; at most 256 are watched. CPU time, switches and faults are the kernel's, of all \
             processes that were waited for. Migrations and waiting are as last seen, so the last hundredth of a \
             second is missing. Occupancy is the share of pairs of busy tasks on one CPU, or at each distance. \
             `spread` pins tasks round-robin as they become busy and releases those that rest. A task that lives for \
             less than the interval is not pinned. `same-cpu` starts the program with one allowed CPU. `duet` starts \
             two programs on two like CPUs and swaps them every other round.",
    source: file!(),
    metrics: &[
        value(ids::metric::RESULT, "wall time", "s", Better::Lower),
        value(ids::metric::WALL, "wall time of each run", "s", Better::Lower).aside(),
        note(ids::metric::CPU_USER, "CPU time in the program", "s").aside(),
        note(ids::metric::CPU_SYSTEM, "CPU time in the kernel", "s").aside(),
        note(ids::metric::VOLUNTARY, "voluntary switches", "").aside(),
        note(ids::metric::INVOLUNTARY, "involuntary switches", "").aside(),
        note(ids::metric::MIGRATIONS, "migrations observed", "").aside(),
        note(ids::metric::FAULTS, "page faults", "").aside(),
        note(ids::metric::WAIT, "time that tasks waited for a CPU", "s").aside(),
        note(ids::metric::TASKS, "tasks watched", "").aside(),
        note(ids::metric::OCCUPANCY, "share of busy pairs", "").aside(),
        note(ids::metric::LOOKS, "observations with two busy tasks", "").aside(),
        note(ids::metric::PINNED, "pinned tasks", "").aside(),
        note(ids::metric::LEFT, "processes left behind", "").aside(),
        note(ids::metric::WATCH_CPU, "CPU share of the observer", "").aside(),
        note(ids::metric::OVERLAP, "share of the longer run with both running", "").aside(),
    ],
    params: &[
        Param::word(ids::param::COMMAND, "program and fingerprint of its arguments"),
        Param::word(ids::param::CLASS, "distance of the two CPUs"),
    ],
    view: &View::Table,
    from: Depth::Quick,
    hidden: true,
    budget_s: None,
    cases: |bench, _| {
        let why = "needs a command: run `assay guard -- COMMAND`";
        vec![Candidate::unmet(bench.id, "free", why.to_string())]
    },
    points: commands,
    run,
}];

/// What is kept of each stream at its beginning, and at least at its end, bytes.
const KEPT_OUT: usize = 8 << 20;
const KEPT_ERR: usize = 1 << 20;
/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_secs(1);
/// How long what a program started may go on printing after its end, and how long a silence ends
/// that before.
const LAST_WORDS: Duration = Duration::from_millis(200);
const SILENCE: Duration = Duration::from_millis(20);
/// How long killed processes may take to leave.
const LEAVE: Duration = Duration::from_secs(5);

/// One command, without a name, or both of a duet.
fn commands(case: &Case) -> Vec<Params> {
    match case.inputs.get(NAMES) {
        Some(names) => names.split(',').map(|name| point(ids::param::COMMAND, name)).collect(),
        None => vec![Params::new()],
    }
}

/// One command as the case describes it, and the CPUs where it runs.
struct CommandSpec {
    words: Vec<String>,
    wanted: Option<Wanted>,
    timeout: Duration,
    placements: Placements,
    seats: CpuSet,
    /// CPUs of its observer, apart from the program's; empty if none are left.
    beside: CpuSet,
    spread: bool,
}

impl CommandSpec {
    fn of(case: &Case) -> anyhow::Result<CommandSpec> {
        let input = |name: &str| case.inputs.get(name);
        let words = words(case, WORDS)?.context("no command: run `assay guard -- COMMAND`")?;
        let wanted = input(WANTED).map(|text| serde_json::from_str(text)).transpose();
        let seconds = input(TIMEOUT).and_then(|text| text.parse().ok()).filter(|s: &f64| *s > 0.0);
        let placements = input(FLOOR).context("the case names no CPUs")?;
        let placements =
            Placements::from_chart(placements).context("the case's list of CPUs is not valid")?;
        let (all, seats) = (placements.cpus(), case.placement.cpus());
        let pinned = seats.len() == 1 || case.inputs.contains_key(RIVAL);
        let beside = if pinned { all.difference(&seats) } else { all };
        Ok(CommandSpec {
            words,
            wanted: wanted.context("the case's metric is not valid")?,
            timeout: Duration::try_from_secs_f64(seconds.context("the case has no time limit")?)?,
            placements,
            beside,
            seats,
            spread: case.placement.name == "spread",
        })
    }
}

/// The words of a command that this input holds; none where it is not there.
fn words(case: &Case, input: &str) -> anyhow::Result<Option<Vec<String>>> {
    let Some(text) = case.inputs.get(input) else { return Ok(None) };
    let words: Vec<String> =
        serde_json::from_str(text).context("the case's command is not a list of words")?;
    ensure!(!words.is_empty(), "the command is empty: name a program after `--`");
    Ok(Some(words))
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    match words(case, RIVAL)? {
        None => {
            once(CommandSpec::of(case)?, sampler, &mut own_all()?, |_| Ok(()))?.emit(&Params::new(), sampler)
        }
        Some(rival) => duet::both(case, &rival, sampler),
    }
}

/// Makes this process adopt all that it starts, so that nothing outlives it. Returns the signals
/// that it receives from now on.
fn own_all() -> anyhow::Result<Events> {
    // Whatever the program starts comes to this process when its parent ends: nothing gets away,
    // and nothing is left.
    process::adopt_orphans().context("cannot adopt the program's orphaned processes")?;
    process::terminate_with_parent()?;
    counters::die_as_the_parent_does();
    Events::catch().context("cannot catch signals")
}

/// Runs the command, of a process that owns all that it starts; `begins` returns when it is to
/// begin.
fn once(
    spec: CommandSpec,
    sampler: &Sampler,
    events: &mut Events,
    begins: impl FnOnce(&mut Events) -> anyhow::Result<()>,
) -> anyhow::Result<FinishedRun> {
    let tree = Tree;
    let tasks = Tasks::of(std::path::Path::new("/"), std::process::id());
    let mut watch = Watch::new(tasks, spec.placements, spec.spread, sampler.seed());

    // A child inherits the mask of its parent; tasks of `spread` are pinned by the observer.
    affinity::pin(&spec.seats).with_context(|| format!("cannot pin to CPUs {}", spec.seats))?;
    begins(events)?;
    let clock = sampler.clock();
    let begin = clock.now();
    let mut child = Command::new(&spec.words[0])
        .args(&spec.words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Whatever it does to its process group does not reach this process.
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {:?}", spec.words[0]))?;
    affinity::pin(if spec.beside.is_empty() { &spec.seats } else { &spec.beside })?;
    let own_before = clock::own_usage().unwrap_or_default();
    let mut streams = Streams::of(child.stdout.take().map(Into::into), child.stderr.take().map(Into::into))?;
    let main = Pid::from_child(&child);
    let deadline = Instant::now() + spec.timeout;
    let (status, end) = loop {
        streams.wait(events, watch.next.min(deadline))?;
        let now = clock.now();
        if has_ended(main) {
            watch.look_last();
        }
        if let Some(status) = reap(main) {
            break (status, now);
        }
        if events.asked_to_end() {
            stop(main, &mut streams, events);
            bail!("this run was interrupted");
        }
        if Instant::now() >= deadline {
            stop(main, &mut streams, events);
            bail!("killed after {} s (--timeout). {}", spec.timeout.as_secs_f64(), streams.last_words());
        }
        streams.drain();
        watch.look_if_due();
    };
    let core_clock = core_clock_ghz(clock);
    let own = clock::own_usage().unwrap_or_default();
    streams.drain_rest(events)?;
    let left = counters::descendants(std::process::id()).len();
    drop(tree);
    streams.drain();
    if !status.success() {
        bail!("{} {}. {}", spec.words[0], how(status), streams.last_words());
    }
    let result = spec.wanted.map(|wanted| wanted.find(&streams.out, &streams.err)).transpose()?;
    Ok(FinishedRun { begin, end, own: own.cpu_ms - own_before.cpu_ms, left, core_clock, result, watch })
}

/// How a program ended that did not end well.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => format!("ended with {status}"),
    }
}

/// A run of a program that ended well.
struct FinishedRun {
    /// Readings of the clock, ns.
    begin: f64,
    end: f64,
    /// CPU time of the watching, ms.
    own: f64,
    left: usize,
    core_clock: f64,
    result: Option<Found>,
    watch: Watch,
}

impl FinishedRun {
    /// By the process that ran it: what it used is read here.
    fn emit(&self, params: &Params, sampler: &mut Sampler) -> anyhow::Result<()> {
        let (ns, watch) = (self.end - self.begin, &self.watch);
        let wall = ns / 1e9;
        let all: Usage = clock::children_usage().context("cannot read the program's resource usage")?;
        let used = watch.tasks().used();
        let one = |value: f64| Some(Packed::Same(value));
        let beside = Covariates {
            voluntary: one(all.voluntary as f64),
            involuntary: one(all.involuntary as f64),
            faults: one(all.faults as f64),
            wait_ns: used.wait_ns.map(Packed::Same),
            clock_ghz: one(self.core_clock),
            ..Covariates::default()
        };
        let result = self.result.map_or(wall, |found| found.value);
        sampler.value_beside(params.clone(), ids::metric::RESULT, result, ns, beside)?;
        if let Some(Found { of: several @ 2.., .. }) = self.result {
            let note = format!("the output holds {several} results; the last one counts");
            sampler.facts().notes.push(note);
        }
        let values = [
            (ids::metric::WALL, Some(wall)),
            (ids::metric::CPU_USER, Some(all.user_ms / 1e3)),
            (ids::metric::CPU_SYSTEM, Some((all.cpu_ms - all.user_ms) / 1e3)),
            (ids::metric::VOLUNTARY, Some(all.voluntary as f64)),
            (ids::metric::INVOLUNTARY, Some(all.involuntary as f64)),
            (ids::metric::MIGRATIONS, used.migrations),
            (ids::metric::FAULTS, Some(all.faults as f64)),
            (ids::metric::WAIT, used.wait_ns.map(|ns| ns / 1e9)),
            (ids::metric::TASKS, Some(watch.tasks().seen as f64)),
            (ids::metric::LOOKS, Some(f64::from(watch.looks()))),
            (ids::metric::PINNED, watch.pinned().map(|tasks| tasks as f64)),
            (ids::metric::LEFT, Some(self.left as f64)),
            (ids::metric::WATCH_CPU, Some(self.own * 1e6 / ns)),
        ];
        for (metric, value) in values.into_iter().filter_map(|(metric, value)| Some((metric, value?))) {
            sampler.value(params.clone(), metric, value, ns)?;
        }
        for (class, share) in watch.occupancy() {
            let mut params = params.clone();
            params.insert(ids::param::CLASS, class);
            sampler.value(params, ids::metric::OCCUPANCY, share, ns)?;
        }
        Ok(())
    }
}

/// All that was started here; killed and waited for when this goes.
struct Tree;

impl Drop for Tree {
    fn drop(&mut self) {
        // A process that does not end in this time is stuck in the kernel; our parent tries again.
        let _ = process::end_descendants(LEAVE);
    }
}

/// Whether it has ended; it is not yet waited for.
fn has_ended(main: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(main), options).is_ok_and(|status| status.is_some())
}

/// Waits for all that have ended: the program itself, and what came to us from it.
fn reap(main: Pid) -> Option<ExitStatus> {
    let mut status = None;
    while let Ok(Some((pid, ended))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == main {
            status = Some(ExitStatus::from_raw(ended.as_raw()));
        }
    }
    status
}

/// Asks the program to end; all of it is killed when its tree goes.
fn stop(main: Pid, streams: &mut Streams, events: &mut Events) {
    let _ = rustix::process::kill_process_group(main, Signal::TERM);
    let end = Instant::now() + GRACE;
    while !has_ended(main) && Instant::now() < end {
        if streams.wait(events, end).is_err() {
            break;
        }
        streams.drain();
    }
    streams.drain();
}

/// What the program prints.
struct Streams {
    from: [Option<std::io::PipeReader>; 2],
    out: OutputTail,
    err: OutputTail,
    buffer: Vec<u8>,
}

impl Streams {
    fn of(out: Option<OwnedFd>, err: Option<OwnedFd>) -> anyhow::Result<Streams> {
        for stream in [&out, &err].into_iter().flatten() {
            rustix::io::ioctl_fionbio(stream, true).context("cannot read the program's output")?;
        }
        let from = [out, err].map(|stream| stream.map(Into::into));
        Ok(Streams {
            from,
            out: OutputTail::new(KEPT_OUT),
            err: OutputTail::new(KEPT_ERR),
            buffer: vec![0; 256 << 10],
        })
    }

    /// Waits for output, an event or that time.
    fn wait(&self, events: &mut Events, until: Instant) -> anyhow::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let open =
            self.from.iter().flatten().map(|stream| PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN));
        let event = PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN);
        let mut polled: Vec<PollFd> = std::iter::once(event).chain(open).collect();
        let answer = poll(&mut polled, Some(&timeout));
        drop(polled);
        events.clear();
        match answer {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait for the program"),
        }
    }

    /// Takes what is there.
    fn drain(&mut self) {
        for (from, kept) in self.from.iter_mut().zip([&mut self.out, &mut self.err]) {
            if from.as_mut().is_some_and(|from| !kept.drain(from, &mut self.buffer)) {
                *from = None;
            }
        }
    }

    /// After the program's end: what is still in the pipes, and for a moment what its children
    /// print.
    fn drain_rest(&mut self, events: &mut Events) -> anyhow::Result<()> {
        let end = Instant::now() + LAST_WORDS;
        while self.from.iter().any(Option::is_some) && Instant::now() < end {
            let before = Instant::now();
            self.wait(events, (before + SILENCE).min(end))?;
            self.drain();
            if before.elapsed() >= SILENCE {
                break;
            }
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let said =
            [&self.err, &self.out].map(OutputTail::last_lines).into_iter().find(|said| !said.is_empty());
        said.map_or("It printed nothing".to_string(), |said| format!("Its last lines: {said}"))
    }
}

#[cfg(test)]
mod tests;
