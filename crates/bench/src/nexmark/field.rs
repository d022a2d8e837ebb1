//! Where a job runs, and its walk through the steps: submitted, read twice a second, begun again
//! after a crash.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::cluster::{COLLECTORS, Cluster, Lost};
use super::gauge::Snapshot;
use super::rest::{DROPPED, ENDED, GAUGE, JobManager};
use super::waiter::Waiter;
use super::walk::{Length, Readings, Rejected, Step, Window, schedule};
use super::{JobSpec, Target};

/// The job's main class.
const CLASS: &str = "assay.nexmark.Job";

/// How often the job is read.
const READ: Duration = Duration::from_millis(500);
/// A job that has not begun its first step by then never will; and how much longer than its
/// schedule a walk may take.
const BEGIN: Duration = Duration::from_secs(120);
const SLACK: f64 = 1.3;
/// Questions that may go unanswered in a row.
const UNANSWERED: u32 = 6;
/// How long a cancelled job may take to end.
const CANCEL: Duration = Duration::from_secs(5);

/// The steps that were walked.
#[derive(Debug, Default)]
pub struct Walked {
    pub windows: Vec<(Step, Result<Window, Rejected>)>,
    /// The steps in which the TaskManager was lost.
    pub restarts: Vec<Step>,
}

impl Walked {
    /// Why windows were not used, and how many for each reason.
    pub fn rejections(&self) -> String {
        let mut why: Vec<Rejected> =
            self.windows.iter().filter_map(|(_, window)| window.clone().err()).collect();
        why.sort_unstable();
        // Sorted, the least of a kind stands first.
        let kind = std::mem::discriminant::<Rejected>;
        let groups = why.chunk_by(|one, other| kind(one) == kind(other));
        let words: Vec<String> =
            groups.map(|group| format!("of {} {}", group.len(), group[0].words())).collect();
        if words.is_empty() { "no load was measured".to_string() } else { words.join(", ") }
    }
}

pub struct Field {
    rest: JobManager,
    own: Option<Cluster>,
    jar: String,
    /// The number of a job on another's cluster, which the session knows, too, and ends it by.
    named: Option<String>,
    job: Option<String>,
    query: String,
    windows: bool,
    parallelism: u64,
    seed: u64,
    length: Length,
}

/// How a job's walk ended: at the schedule's end, or with its TaskManager.
enum Ended {
    Walked,
    Crashed(String),
}

impl Field {
    /// Starts a cluster or uses the named one, and uploads the program.
    pub fn enter(told: JobSpec, seed: u64, waiter: &mut Waiter) -> anyhow::Result<Field> {
        let jar = content(&told.jar)?;
        let (rest, own, named) = match told.on {
            Target::Own(plan) => {
                let cluster = Cluster::start(plan, waiter)?;
                (cluster.rest.clone(), Some(cluster), None)
            }
            Target::Running { address, job } => {
                let rest = JobManager::at(&address);
                let overview = rest.overview()?;
                ensure!(
                    overview.free_slots >= told.parallelism,
                    "only {} of the {} slots at {address} are free, {} are needed: stop other jobs there",
                    overview.free_slots,
                    overview.slots,
                    told.parallelism
                );
                (rest, None, Some(job))
            }
        };
        let jar = rest.upload(&jar, named.as_deref().unwrap_or(""));
        let jar = jar.context("cannot upload the program to the JobManager")?;
        let JobSpec { query, windows, parallelism, length, .. } = told;
        // A seed that a Java program reads as a number, too.
        let seed = seed >> 1;
        Ok(Field { rest, own, jar, named, job: None, query, windows, parallelism, seed, length })
    }

    /// Goes through the steps, after one that warms up. If the TaskManager is lost once, another
    /// continues from the current step.
    pub fn walk(&mut self, steps: Vec<Step>, waiter: &mut Waiter) -> anyhow::Result<Walked> {
        let mut walked = Walked::default();
        let mut left = steps;
        while !left.is_empty() {
            let all: Vec<Step> = [self.length.warm_up()].into_iter().chain(left.iter().copied()).collect();
            let mut readings = Readings::default();
            let ended = self.run_job(&all, &mut readings, waiter)?;
            // Those after the first, as far as it came.
            let over = match ended {
                Ended::Walked => left.len(),
                Ended::Crashed(_) => (readings.step().unwrap_or(0) - 1).clamp(0, left.len() as i64) as usize,
            };
            for (index, step) in left.drain(..over).enumerate() {
                walked.windows.push((step, readings.window(index as i64 + 1)));
            }
            let (Ended::Crashed(how), Some(step)) = (ended, left.first()) else { continue };
            ensure!(
                walked.restarts.is_empty(),
                "the TaskManager was restarted once, and failed again: {how}"
            );
            walked.restarts.push(*step);
            self.cancel();
            let own = self.own.as_mut().context("Assay does not restart a foreign TaskManager")?;
            own.restart_taskmanager(waiter).with_context(|| format!("{how}, and cannot be restarted"))?;
        }
        Ok(walked)
    }

    /// Submits a job of these steps and reads it until its schedule is over.
    fn run_job(
        &mut self,
        steps: &[Step],
        readings: &mut Readings,
        waiter: &mut Waiter,
    ) -> anyhow::Result<Ended> {
        if let Some(how) = self.crashed()? {
            return Ok(Ended::Crashed(how));
        }
        self.submit(steps, waiter)?;
        let job = self.job.clone().context("no job was submitted")?;
        let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
        let end = Instant::now() + BEGIN + Duration::from_secs_f64(seconds * SLACK);
        let (mut unanswered, mut vertices) = (0, Vec::new());
        loop {
            let begin = Instant::now();
            if let Some(how) = self.crashed()? {
                return Ok(Ended::Crashed(how));
            }
            match self.look(&job, &mut vertices, readings) {
                Ok(()) => unanswered = 0,
                Err(error) => {
                    unanswered += 1;
                    if unanswered >= UNANSWERED {
                        return match self.crashed()? {
                            Some(how) => Ok(Ended::Crashed(how)),
                            None => Err(error),
                        };
                    }
                }
            }
            if readings.step().is_some_and(|step| step >= steps.len() as i64) {
                self.check_collector(readings)?;
                self.check_nothing_dropped(&job, &vertices)?;
                self.cancel();
                return Ok(Ended::Walked);
            }
            if Instant::now() > end {
                let came = readings
                    .step()
                    .map_or("it was never read".to_string(), |step| format!("it reached step {step}"));
                bail!("the job did not finish its {} steps in time: {came}", steps.len());
            }
            waiter.pause(READ.saturating_sub(begin.elapsed()))?;
        }
    }

    fn submit(&mut self, steps: &[Step], waiter: &mut Waiter) -> anyhow::Result<()> {
        // Named before it is there: whatever comes between, it can be cancelled.
        let job = self.named.clone().unwrap_or_else(any_number);
        let words = |word: &str, value: String| [format!("--{word}"), value];
        let arguments: Vec<String> = [
            words("query", self.query.clone()),
            words("schedule", schedule(steps)),
            words("seed", self.seed.to_string()),
            words("parallelism", self.parallelism.to_string()),
        ]
        .concat();
        self.job = Some(job.clone());
        let (rest, jar) = (self.rest.clone(), self.jar.clone());
        let own = &mut self.own;
        let answer = waiter.call(
            move || rest.submit(&jar, CLASS, &arguments, &job),
            || match own.as_mut().and_then(Cluster::lost) {
                Some(Lost::JobManager(how)) => bail!("{how}"),
                _ => Ok(()),
            },
        )?;
        if answer.is_err() {
            // Its connections break a moment before a process that was killed can be waited for.
            std::thread::sleep(Duration::from_millis(200));
            self.crashed()?;
        }
        self.job = Some(answer.context("cannot start the job")?);
        Ok(())
    }

    /// How the TaskManager ended, where it has; a JobManager that ended is an error.
    fn crashed(&mut self) -> anyhow::Result<Option<String>> {
        match self.own.as_mut().and_then(Cluster::lost) {
            None => Ok(None),
            Some(Lost::TaskManager(how)) => Ok(Some(how)),
            Some(Lost::JobManager(how)) => bail!("{how}"),
        }
    }

    /// Reads all subtasks once.
    fn look(
        &mut self,
        job: &str,
        vertices: &mut Vec<(String, Vec<String>)>,
        readings: &mut Readings,
    ) -> anyhow::Result<()> {
        let seen = self.rest.job(job)?;
        if matches!(
            seen.state.as_str(),
            "FAILED" | "FAILING" | "CANCELED" | "CANCELLING" | "FINISHED" | "SUSPENDED"
        ) {
            // Its TaskManager may be gone, which shows itself a moment later.
            std::thread::sleep(Duration::from_millis(200));
            ensure!(self.crashed()?.is_some(), "the job is {}: {}", seen.state, self.rest.failure(job));
            return Ok(());
        }
        let known: usize = vertices.iter().map(|(_, gauges)| gauges.len()).sum();
        if (known as u64) < self.parallelism {
            vertices.clear();
            for vertex in seen.vertices {
                let gauges = self.rest.metrics(job, &vertex, &[GAUGE])?;
                vertices.push((vertex, gauges));
            }
        }
        for (vertex, gauges) in vertices.iter().filter(|(_, gauges)| !gauges.is_empty()) {
            for text in self.rest.read(job, vertex, gauges)? {
                let mut reading = Snapshot::parse(&text).map_err(anyhow::Error::msg)?;
                reading.beside_ms = self.own.as_ref().and_then(Cluster::beside_ms);
                readings.take(reading);
            }
        }
        Ok(())
    }

    /// Checks that Assay's own cluster ran as configured.
    fn check_collector(&self, readings: &Readings) -> anyhow::Result<()> {
        let other = readings.last().find(|last| last.gc != COLLECTORS);
        match other.filter(|_| self.own.is_some()) {
            Some(other) => bail!(
                "the TaskManager uses the garbage collector {}, not {}: its figures do not compare",
                other.gc.join(" and "),
                COLLECTORS.join(" and ")
            ),
            None => Ok(()),
        }
    }

    /// Of a query with windows: that no event came when its window was over, and was left out of
    /// the answer.
    fn check_nothing_dropped(&self, job: &str, vertices: &[(String, Vec<String>)]) -> anyhow::Result<()> {
        if !self.windows {
            return Ok(());
        }
        let (mut told, mut dropped) = (false, 0.0);
        for (vertex, _) in vertices {
            let metrics = self.rest.metrics(job, vertex, &DROPPED)?;
            for value in self.rest.read(job, vertex, &metrics)? {
                told = true;
                dropped += value
                    .parse::<f64>()
                    .with_context(|| format!("invalid count of dropped events: {value:?}"))?;
            }
        }
        ensure!(told, "the job reports no count of dropped events ({})", DROPPED[0]);
        ensure!(dropped == 0.0, "{dropped} events arrived after their window, so the answer is incomplete");
        Ok(())
    }

    /// Cancels the job and waits until it has ended.
    fn cancel(&mut self) {
        let Some(job) = self.job.take() else { return };
        if self.rest.cancel(&job).is_err() {
            return;
        }
        let end = Instant::now() + CANCEL;
        while Instant::now() < end {
            match self.rest.job(&job) {
                Ok(seen) if !ENDED.contains(&seen.state.as_str()) => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                _ => return,
            }
        }
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // Assay's own JobManager ends with all its jobs.
        if let Some(job) = &self.named {
            let _ = self.rest.withdraw(job);
        }
    }
}

/// A number for a job.
pub fn any_number() -> String {
    format!("{:032x}", u128::from(fastrand::u64(..)) << 64 | u128::from(fastrand::u64(..)))
}

/// The program's bytes.
fn content(jar: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    sys::scratch::content(jar).with_context(|| format!("cannot read {}", jar.display()))
}
