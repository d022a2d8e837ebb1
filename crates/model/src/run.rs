//! A run: header, visits, time lines, events and a summary, a JSON line each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    Better, Case, CpuSet, Factors, LeftOut, ProcessFacts, Samples, Severity, Snapshot, Sweep, Thinned, Title,
    VerdictKind, without_ids,
};

/// Version of the JSON contract. Readers refuse a higher one and accept unknown fields.
pub const SCHEMA: u32 = 1;

/// Version of the run file, likewise. From 2 on every line carries its checksum.
pub const RUN_FILE_SCHEMA: u32 = 2;

/// Why a visit has no (usable) samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "why")]
pub enum Reason {
    /// It ran and failed, or its own check of the answer did.
    Failed(String),
    /// The answer that the benchmark computed was wrong: a faulty core, memory or kernel, or a bug
    /// of ours.
    WrongAnswer(String),
    TimedOut(String),
    /// Not run: this host or this user lacks something, or the budget ended.
    Skipped(String),
    /// It ran in an environment that made it worthless.
    Invalid(String),
}

impl Reason {
    pub fn text(&self) -> &str {
        match self {
            Reason::Failed(text)
            | Reason::WrongAnswer(text)
            | Reason::TimedOut(text)
            | Reason::Skipped(text)
            | Reason::Invalid(text) => text,
        }
    }
}

/// What the whole host did while one visit ran: differences of kernel counters over `wall_ms`.
/// A counter that this kernel or container does not show is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    pub wall_ms: f64,
    /// CPUs that were online.
    #[serde(default)]
    pub cpus: u32,
    /// Busy CPU time of all CPUs together, ms (user, nice, system, irq, softirq).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ms: Option<f64>,
    /// Of that, our own: the visit's processes and this one, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<f64>,
    /// Busy time of others on the CPUs that this visit was placed on, ms. Ticks are coarse: a
    /// single visit may show less than none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_on_seats_ms: Option<f64>,
    /// Time the hypervisor gave to someone else, all CPUs, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_ms: Option<f64>,
    /// Pressure stall totals ("some"), ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_cpu_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_memory_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi_io_ms: Option<f64>,
    /// Time our cgroup was throttled by its CPU quota, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ms: Option<f64>,
    /// Pages swapped in and out, host-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_pages: Option<f64>,
    /// Pages that automatic NUMA balancing moved, host-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_migrated_pages: Option<f64>,
    /// Thermal throttle events of the packages and cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal_throttles: Option<f64>,
    /// Times that a task, host-wide, had to free memory itself before it was given any (direct
    /// reclaim).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_stalls: Option<f64>,
    /// Pages read again soon after they were evicted, host-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted_pages: Option<f64>,
    /// Tasks that the kernel's OOM killer ended, host-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<f64>,
    /// Times that any process hit a memory limit of our cgroup or of one above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_hits: Option<f64>,
    /// As `psi_memory_ms`, of the tasks in our cgroup alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_psi_memory_ms: Option<f64>,
    /// The other processes that used most CPU time, where they were looked at after this visit:
    /// that is done now and then, and only where others used a notable part. Empty: others did, and
    /// none is seen from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Vec<Neighbour>>,
}

/// Another process that used CPUs while we measured; of a process with several threads, those that
/// go first stand for themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbour {
    /// As the kernel calls it: 15 characters.
    #[serde(deserialize_with = "program")]
    pub name: String,
    /// Number of the process or the thread.
    pub pid: u32,
    /// CPU time over the time since processes were last looked at: 1 is all of one CPU.
    pub cpus: f64,
    /// The CPU that it was last on (a process: its first thread).
    #[serde(default)]
    pub cpu: Option<u32>,
    /// Scheduling policy, in the kernel's words: `SCHED_OTHER`, `SCHED_FIFO`, ...
    #[serde(default)]
    pub policy: Cow<'static, str>,
    /// Real-time priority, 1..99; 0 under the other policies.
    #[serde(default)]
    pub priority: u32,
    #[serde(default)]
    pub nice: i32,
}

/// A program's name, in which older versions left ids of containers.
fn program<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|name| without_ids(&name))
}

impl Neighbour {
    /// Whether the scheduler prefers it to a task of the usual priority.
    pub fn goes_first(&self) -> bool {
        self.priority > 0 || self.policy == "SCHED_DEADLINE" || self.nice < 0
    }
}

impl Conditions {
    /// Share of the host's CPU time that neither we nor idleness used, 0..1.
    pub fn background(&self) -> Option<f64> {
        let total = self.wall_ms * f64::from(self.cpus);
        let others = self.busy_ms? - self.own_ms?;
        share(others, total)
    }

    /// Share of the host's CPU time that the hypervisor took, 0..1.
    pub fn steal(&self) -> Option<f64> {
        let total = self.wall_ms * f64::from(self.cpus);
        let steal = self.steal_ms?;
        share(steal, total)
    }
}

/// `None` where the whole is nothing, or so large that no one can have counted it.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && whole.is_finite()).then(|| (part / whole).clamp(0.0, 1.0))
}

/// One process's work on one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Visit {
    /// Position in the run, from 0: the order in which visits really happened.
    pub order: u32,
    /// Index of the case in the header's plan.
    pub case: u32,
    /// The pass over the plan that this visit belongs to, from 0. Visits of one pass are
    /// interleaved.
    pub pass: u32,
    /// When it began, ms since the run's start.
    pub at_ms: f64,
    #[serde(default)]
    pub conditions: Conditions,
    #[serde(default)]
    pub process: ProcessFacts,
    /// What was measured. Samples of a visit with a `reason` are kept, and not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Samples>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Visit {
    /// A visit of which only its place in the order is known: the only case, in its own pass.
    pub fn unwatched(order: u32) -> Visit {
        Visit {
            order,
            case: 0,
            pass: order,
            at_ms: 0.0,
            conditions: Conditions::default(),
            process: ProcessFacts::default(),
            samples: Vec::new(),
            reason: None,
        }
    }
}

/// A case as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    pub case: Case,
    /// Higher runs first and is cut last.
    pub priority: u32,
    /// Estimated seconds a visit.
    pub seconds: f64,
    /// Memory that one visit touches, bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Why it cannot be measured here; `None`: it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
}

/// The clock that timed the windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunClock {
    /// `tsc`, `cntvct` or `monotonic-raw`.
    pub source: String,
    /// Ticks a nanosecond (1 for the raw clock).
    pub ticks_per_ns: f64,
    /// Smallest step seen between two readings, ns.
    pub resolution_ns: f64,
    /// Cost of one reading, ns.
    pub cost_ns: f64,
    /// Why a faster counter was not used, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// First line of a run file: all that is needed to understand, judge and resume the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    pub schema: u32,
    /// Version of the binary that measured.
    pub assay: String,
    /// As its user named it (`--host`), else as its kernel is called.
    pub host: String,
    /// Of `--label`: distinguishes hosts for their owner, such as a rack.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// UTC, RFC 3339.
    pub started: String,
    #[serde(default)]
    pub boot_id: Option<String>,
    #[serde(default)]
    pub uptime_s: Option<f64>,
    /// Seed of the visiting order (and of pretended samples).
    pub seed: u64,
    pub profile: String,
    /// Seconds that measuring may take.
    pub budget_s: f64,
    /// Relative half-width of the 99 % interval at which a series stops.
    pub precision: f64,
    /// CPUs that this process was allowed to use.
    #[serde(default)]
    pub allowed_cpus: CpuSet,
    pub clock: RunClock,
    /// Samples were invented from this seed (`--pretend`): for tests of the pipeline only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretend: Option<u64>,
    /// Identifies the plan: equal for equal cases in equal order.
    pub plan_id: String,
    pub plan: Vec<Planned>,
    /// What the plan's cases are laid out along, where they are cells of a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Which knobs the plan's cases turn, where they are a factorial experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<Factors>,
    pub catalogue: Vec<Title>,
    pub snapshot: Snapshot,
}

/// Something that happened to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub at_ms: f64,
    /// `gate`, `resumed`, `interrupted`, `budget`, `knob`, ...
    pub kind: Cow<'static, str>,
    pub text: String,
}

/// A quantity over the run's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeLine {
    /// What the observer beside the visits looked at (`clock`, `temperature`, ...); empty: the gate
    /// before measuring.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub subject: Cow<'static, str>,
    /// `background`, `steal`, ...
    pub name: Cow<'static, str>,
    pub unit: Cow<'static, str>,
    pub at_ms: Vec<f64>,
    pub value: Vec<f64>,
    /// Why the host does not report it: such a line has no points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl TimeLine {
    /// Subjects that the observer writes.
    pub const CLOCK: &str = "clock";
    pub const MULTIPLIER: &str = "multiplier";
    pub const IDLE: &str = "idle";
    pub const TRAFFIC: &str = "memory traffic";
    pub const TEMPERATURE: &str = "temperature";
    /// A point each: where the sensor of this name says that the host stops.
    pub const CRITICAL: &str = "critical temperature";
    pub const VOLTAGE: &str = "core voltage";
}

/// One series in a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummarySeries {
    pub key: String,
    pub unit: String,
    pub median: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    pub n: u32,
    pub cv: Option<f64>,
    pub verdict: VerdictKind,
    /// Which side is the better one; summaries of the first versions do not report it.
    #[serde(default)]
    pub better: Option<Better>,
    /// Rides along: it is not what its benchmark is about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryFinding {
    pub rule: String,
    pub severity: Severity,
    pub headline: String,
}

/// Last line of a complete run file: what fleet analysis reads alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub schema: u32,
    pub assay: String,
    pub host: String,
    /// Of `--label`; no part of the make-up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub started: String,
    pub elapsed_s: f64,
    /// The boot that it ran in; hosts that report the same one are one machine, whatever they are
    /// called.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// Since that boot, s.
    #[serde(default)]
    pub uptime_s: Option<f64>,
    #[serde(default)]
    pub profile: String,
    /// Samples were invented (`--pretend`).
    #[serde(default)]
    pub pretended: bool,
    /// The make-up by which hosts are peers: CPU model, counts, memory, kernel.
    #[serde(deserialize_with = "whole")]
    pub make_up: Vec<(String, String)>,
    /// What else moves numbers, and may differ between peers: clocks, huge pages, mitigations,
    /// firmware.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    pub series: Vec<SummarySeries>,
    /// Series that did not fit: of what rides along, beyond 64 KiB the later points of each
    /// benchmark.
    #[serde(default)]
    pub series_left_out: u32,
    /// Those of them that their benchmarks are about.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub headlines_left_out: u32,
    pub findings: Vec<SummaryFinding>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A make-up without a list of memory modules that an older version cut after 200 characters: the
/// host stays among the peers that newer summaries report the whole list of, as one that reports
/// none.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    const MAX_VALUE_CHARS: usize = 200;
    let mut all = Vec::<(String, String)>::deserialize(from)?;
    all.retain(|(label, value)| label != "dimms_mib" || value.len() != MAX_VALUE_CHARS);
    Ok(all)
}

/// A line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Header(Box<Header>),
    Visit(Box<Visit>),
    TimeLine(TimeLine),
    Event(Event),
    Summary(Box<Summary>),
}

/// A line as it stands in a run file.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
pub struct Line {
    #[serde(flatten)]
    pub record: Record,
    /// The last thing in its line: the CRC-32 (gzip's) of every byte before its comma, in eight
    /// hexadecimal digits. Files of schema 1 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{8}$"))]
    pub crc32: Option<String>,
}

/// From the run's start to the end of its last visit, ms; the time between an interruption and the
/// next part of the run is no part of it.
pub fn measured_ms(visits: &[Visit]) -> f64 {
    let ends = visits.iter().map(|visit| visit.at_ms + visit.conditions.wall_ms);
    // Only a damaged file has times that add up to no number.
    ends.filter(|end| end.is_finite()).fold(0.0, f64::max)
}

/// A run file, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub header: Header,
    pub visits: Vec<Visit>,
    pub time_lines: Vec<TimeLine>,
    pub events: Vec<Event>,
    /// Present when the run ended by itself.
    pub summary: Option<Summary>,
    /// Lines that could not be read (a torn tail after a crash, damage), as sentences.
    pub damage: Vec<String>,
    /// Of a run with more visits than are kept, what is known of all of them.
    pub thinned: Option<Thinned>,
}

impl Run {
    /// A run that has measured nothing yet.
    pub fn begun(header: Header) -> Run {
        Run {
            header,
            visits: Vec::new(),
            time_lines: Vec::new(),
            events: Vec::new(),
            summary: None,
            damage: Vec::new(),
            thinned: None,
        }
    }

    /// Visits of the file, whether they are kept or not.
    pub fn visit_count(&self) -> usize {
        self.thinned.as_ref().map_or(self.visits.len(), |thinned| thinned.places.len())
    }

    /// Visits of a case that were counted and not kept.
    pub fn left_out(&self, case: u32) -> LeftOut {
        self.thinned.as_ref().and_then(|thinned| thinned.left_out.get(&case)).copied().unwrap_or_default()
    }

    /// From the run's start to the end of its last visit, ms.
    pub fn measured_ms(&self) -> f64 {
        self.thinned.as_ref().map_or_else(|| measured_ms(&self.visits), |thinned| thinned.measured_ms)
    }
}
