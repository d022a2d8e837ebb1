//! A low-rate look at what the machine tells of its clocks, idle states, temperatures and voltages
//! while somebody else measures on it: the parent's, between its looks at a visit's process.
//!
//! To look must not be to disturb. A look comes at most twice a second and is made from a CPU
//! outside the visit's placement; where there is none, between visits only. Some files cost no more
//! than a read of the kernel's memory; for others (a core's own thermometer and registers, the
//! current frequency before Linux 5.19) the kernel interrupts the CPU that is asked, some
//! microseconds of its time. Of those each look reads one, in turn, so that the measured CPU is
//! interrupted twice a second at most: a window in a hundred of 2 ms, of which the median takes no
//! notice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::affinity;
use model::{CpuSet, Event, TimeLine};

mod controllers;
mod sensors;
mod traffic;

use sensors::{IdleStates, Reach, Registers, Sensor, Word, perf_status, sensors};
use traffic::Traffic;

/// Two looks are at least this far apart.
const PERIOD: Duration = Duration::from_millis(500);
/// After so many points the looks become half as many, so that a day's run has a few thousand
/// points too.
const POINTS: usize = 1000;
/// Idle states are summed over so many CPUs at most, spread evenly: each takes as many open files
/// as it has states.
const IDLE_CPUS: usize = 32;
const MEASURED_CPUS: usize = 8;

const PERF_STATUS: u64 = 0x198;
const MPERF: u64 = 0xe7;
const APERF: u64 = 0xe8;

/// What is known of the machine before anything is looked at.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The clock that the processor claims as its base, GHz: it is MPERF's.
    pub base_ghz: Option<f64>,
    /// A hypervisor answers for the registers, with inventions.
    pub guest: bool,
}

/// The observer of one run.
pub struct Observer {
    root: PathBuf,
    known: Known,
    sensors: Vec<Sensor>,
    /// Idle states of the machine, and of the CPUs of the visit.
    all: Idle,
    measured: Idle,
    core: Option<Core>,
    /// Memory traffic; or why nobody counts it.
    traffic: Result<Traffic, String>,
    /// The CPU from which a look is made during this visit.
    off: Option<u32>,
    /// Which of the readings that interrupt somebody comes next.
    turn: usize,
    last: Option<Instant>,
    period: Duration,
    points: usize,
    /// The governor last seen on each CPU.
    governors: BTreeMap<u32, String>,
    lines: Vec<TimeLine>,
    events: Vec<Event>,
}

/// What belongs to the measuring task's own CPU.
struct Core {
    cpu: u32,
    frequency: Option<Word>,
    limit: Option<Word>,
    governor: Option<Word>,
    registers: Option<Registers>,
    /// APERF and MPERF as last read.
    cycles: Option<(u64, u64)>,
}

impl Core {
    fn open(root: &Path, cpu: u32, guest: bool) -> Core {
        let file =
            |name: &str| Word::open(&root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")));
        Core {
            cpu,
            // The newer file is a mean over the last tick and costs nobody anything.
            frequency: file("cpuinfo_avg_freq").or_else(|| file("scaling_cur_freq")),
            limit: file("scaling_max_freq"),
            governor: file("scaling_governor"),
            registers: Registers::open(root, cpu).ok().filter(|_| cfg!(target_arch = "x86_64") && !guest),
            cycles: None,
        }
    }

    /// Cycles that ran, per cycle of the base clock, since the last reading.
    fn ratio(&mut self) -> Option<f64> {
        let registers = self.registers.as_ref()?;
        // Two registers, one after the other: each interrupts the CPU, and the next look of this
        // kind is far away.
        let now = (registers.read(APERF)?, registers.read(MPERF)?);
        sensors::cycles_per_base(self.cycles.replace(now)?, now)
    }
}

/// Time in each state of each CPU, µs.
type Totals = BTreeMap<(u32, String), f64>;

/// Idle states of some CPUs, and the time that they spent there since a beginning.
struct Idle {
    cpus: Vec<(u32, IdleStates)>,
    before: Option<(Instant, Totals)>,
    /// Summed so far: CPU time by state and in all, µs.
    states: BTreeMap<String, f64>,
    cpu_us: f64,
}

impl Idle {
    fn open(root: &Path, cpus: &CpuSet, most: usize) -> Idle {
        let every = cpus.len().div_ceil(most).max(1);
        let cpus = cpus.iter().step_by(every).map(|cpu| (cpu, IdleStates::open(root, cpu)));
        let cpus = cpus.filter(|(_, states)| !states.is_empty()).collect();
        Idle { cpus, before: None, states: BTreeMap::new(), cpu_us: 0.0 }
    }

    fn begin(&mut self) {
        self.before = (!self.cpus.is_empty()).then(|| (Instant::now(), self.totals()));
    }

    fn totals(&self) -> Totals {
        let of_cpu = |(cpu, states): &(u32, IdleStates)| {
            states.read().map(|(name, us)| ((*cpu, name.to_string()), us)).collect::<Vec<_>>()
        };
        self.cpus.iter().flat_map(of_cpu).collect()
    }

    /// Adds what passed since [`Self::begin`].
    fn end(&mut self) {
        let Some((at, before)) = self.before.take() else { return };
        let us = at.elapsed().as_secs_f64() * 1e6;
        for (key, total) in self.totals() {
            let passed = before.get(&key).map_or(0.0, |before| total - before);
            // The kernel adds an idle time when it ends: a long one may have begun before we
            // looked.
            *self.states.entry(key.1).or_default() += passed.clamp(0.0, us);
        }
        self.cpu_us += us * self.cpus.len() as f64;
    }

    /// Share of each state in the summed time, and of no state at all, once this much was summed;
    /// forgets it then.
    fn shares(&mut self, at_least: Duration) -> Vec<(String, f64)> {
        let enough = self.cpus.len() as f64 * at_least.as_secs_f64() * 1e6;
        if self.cpu_us <= 0.0 || self.cpu_us < enough {
            return Vec::new();
        }
        let whole = std::mem::take(&mut self.cpu_us);
        let states = std::mem::take(&mut self.states);
        let mut shares: Vec<(String, f64)> =
            states.into_iter().map(|(name, us)| (name, (us / whole).min(1.0))).collect();
        let idle: f64 = shares.iter().map(|(_, share)| share).sum();
        shares.push(("C0, running".to_string(), (1.0 - idle).max(0.0)));
        shares
    }
}

impl Observer {
    /// Opens what is there under `root`; what is not says so in a line without points. `cpus`:
    /// those that may be used.
    pub fn open(root: &Path, cpus: &CpuSet, known: Known) -> Observer {
        let mut observer = Observer {
            root: root.to_path_buf(),
            sensors: sensors(root),
            all: Idle::open(root, cpus, IDLE_CPUS),
            measured: Idle::open(root, &CpuSet::default(), MEASURED_CPUS),
            core: None,
            traffic: Traffic::open(root),
            off: None,
            turn: 0,
            last: None,
            period: PERIOD,
            points: 0,
            governors: BTreeMap::new(),
            lines: Vec::new(),
            events: Vec::new(),
            known,
        };
        observer.say_what_is_missing(cpus.first().unwrap_or(0));
        observer.all.begin();
        observer
    }

    fn say_what_is_missing(&mut self, cpu: u32) {
        let core = Core::open(&self.root, cpu, false);
        let registers = match (cfg!(target_arch = "x86_64"), self.known.guest) {
            (false, _) => Err("such registers are x86's".to_string()),
            (_, true) => Err("a guest's registers are its hypervisor's invention".to_string()),
            _ => Registers::open(&self.root, cpu).and_then(|registers| {
                let read = registers.read(PERF_STATUS).map(perf_status);
                read.ok_or_else(|| {
                    "this processor has no register IA32_PERF_STATUS (Intel's have)".to_string()
                })
            }),
        };
        let has = |subject: &str| self.sensors.iter().any(|sensor| sensor.subject == subject);
        let no_ratio = match &registers {
            Err(why) => Some(why.clone()),
            Ok((None, _)) => Some("its register IA32_PERF_STATUS holds no possible ratio".to_string()),
            Ok(_) => None,
        };
        let no_volts = match &registers {
            _ if has(TimeLine::VOLTAGE) => None,
            Ok((_, Some(_))) => None,
            Ok(_) => {
                Some("no sensor called Vcore, and IA32_PERF_STATUS holds no possible voltage".to_string())
            }
            Err(why) => Some(format!("no sensor called Vcore under /sys/class/hwmon, and {why}")),
        };
        let missing = [
            (
                TimeLine::CLOCK,
                "by cpufreq",
                core.frequency
                    .is_none()
                    .then(|| "no cpufreq under /sys: a guest, or no driver for this processor".to_string()),
            ),
            (TimeLine::MULTIPLIER, "by IA32_PERF_STATUS", no_ratio),
            (
                TimeLine::IDLE,
                "residency",
                self.all
                    .cpus
                    .is_empty()
                    .then(|| "no cpuidle states under /sys: a guest, or idle=poll".to_string()),
            ),
            (
                TimeLine::TEMPERATURE,
                "processor",
                (!has(TimeLine::TEMPERATURE)).then(|| {
                    "no processor's sensor under /sys/class/hwmon and no thermal zone of one".to_string()
                }),
            ),
            (TimeLine::VOLTAGE, "core", no_volts),
            (TimeLine::TRAFFIC, "by resctrl or memory controllers", self.traffic.as_ref().err().cloned()),
        ];
        for (subject, name, missing) in missing {
            if missing.is_some() {
                let line = empty(subject, name, "");
                self.lines.push(TimeLine { missing, ..line });
            }
        }
        let limits: Vec<(String, f64)> =
            self.sensors.iter().filter_map(|sensor| Some((sensor.name.clone(), sensor.critical?))).collect();
        for (name, degrees) in limits {
            self.note(TimeLine::CRITICAL, &name, "°C", 0.0, Some(degrees));
        }
    }

    /// A visit to these CPUs is about to begin; looks during it are made from the CPU `off`.
    pub fn begin(&mut self, seats: &CpuSet, off: Option<u32>) {
        self.off = off;
        let first = seats.first().filter(|_| off.is_some());
        if self.core.as_ref().map(|core| core.cpu) != first {
            self.core = first.map(|cpu| Core::open(&self.root, cpu, self.known.guest));
            let idle = Idle::open(&self.root, seats, MEASURED_CPUS);
            // What was summed belongs to other CPUs, which were measured just as these are.
            let before = std::mem::replace(&mut self.measured, idle);
            (self.measured.states, self.measured.cpu_us) = (before.states, before.cpu_us);
        }
        self.measured.begin();
    }

    /// During a visit: looks when it is time to, and when that can be done from another CPU.
    pub fn look(&mut self, at_ms: f64) {
        let Some(off) = self.off.filter(|_| self.is_due()) else { return };
        let _ = affinity::on(&CpuSet::one(off), || self.sample(at_ms, true));
    }

    /// The visit has ended.
    pub fn end(&mut self, at_ms: f64) {
        self.measured.end();
        for (state, share) in self.measured.shares(self.period) {
            self.note(
                TimeLine::IDLE,
                &format!("{state}, measured CPUs"),
                "share of the time",
                at_ms,
                Some(share),
            );
        }
        // Nobody measures now: whatever is read disturbs nobody.
        if self.off.is_none() && self.is_due() {
            self.sample(at_ms, false);
        }
    }

    /// What was seen since the last time.
    pub fn take(&mut self) -> (Vec<TimeLine>, Vec<Event>) {
        (std::mem::take(&mut self.lines), std::mem::take(&mut self.events))
    }

    fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= self.period)
    }

    /// One look; `working`: the measured CPU is at work, so its own clock means something.
    fn sample(&mut self, at_ms: f64, working: bool) {
        self.last = Some(Instant::now());
        self.all.end();
        for (state, share) in self.all.shares(Duration::ZERO) {
            self.note(TimeLine::IDLE, &format!("{state}, all CPUs"), "share of the time", at_ms, Some(share));
        }
        self.all.begin();
        for index in 0..self.sensors.len() {
            if self.sensors[index].reach == Reach::Quiet || !working {
                self.read_sensor(index, at_ms);
            }
        }
        if !working {
            // Counters tell what was moved since they were last read, the visit included.
            self.read_traffic(at_ms);
            return;
        }
        self.read_policy(at_ms);
        let dear: Vec<usize> =
            (0..self.sensors.len()).filter(|index| self.sensors[*index].reach == Reach::Interrupts).collect();
        self.turn = (self.turn + 1) % (4 + dear.len());
        match self.turn {
            0 => self.read_frequency(at_ms),
            1 => self.read_status(at_ms),
            2 => self.read_cycles(at_ms),
            3 => self.read_traffic(at_ms),
            turn => self.read_sensor(dear[turn - 4], at_ms),
        }
    }

    fn read_sensor(&mut self, index: usize, at_ms: f64) {
        let sensor = &self.sensors[index];
        let (subject, name, unit, value) = (sensor.subject, sensor.name.clone(), sensor.unit, sensor.read());
        self.note(subject, &name, unit, at_ms, value);
    }

    /// The policy's own texts: what it allows, and a governor that somebody changed.
    fn read_policy(&mut self, at_ms: f64) {
        let Some(core) = &self.core else { return };
        let (cpu, limit) = (core.cpu, core.limit.as_ref().and_then(ghz));
        if let Some(now) = core.governor.as_ref().and_then(Word::text).map(|text| sensors::label(&text)) {
            let before = self.governors.insert(cpu, now.clone());
            if let Some(before) = before.filter(|before| *before != now) {
                let text = format!("the governor of CPU {cpu} changed from {before} to {now}");
                self.events.push(Event { at_ms, kind: "governor".into(), text });
            }
        }
        self.note(TimeLine::CLOCK, "highest allowed (scaling_max_freq)", "GHz", at_ms, limit);
    }

    fn read_frequency(&mut self, at_ms: f64) {
        let clock = self.core.as_ref().and_then(|core| core.frequency.as_ref()).and_then(ghz);
        self.note(TimeLine::CLOCK, "by cpufreq, measured CPU", "GHz", at_ms, clock);
    }

    fn read_status(&mut self, at_ms: f64) {
        let registers = self.core.as_ref().and_then(|core| core.registers.as_ref());
        let status = registers.and_then(|registers| registers.read(PERF_STATUS));
        let (multiplier, volts) = status.map(perf_status).unwrap_or_default();
        self.note(TimeLine::MULTIPLIER, "by IA32_PERF_STATUS, measured CPU", "", at_ms, multiplier);
        self.note(TimeLine::VOLTAGE, "by IA32_PERF_STATUS, measured CPU", "V", at_ms, volts);
    }

    fn read_cycles(&mut self, at_ms: f64) {
        let ratio = self.core.as_mut().and_then(Core::ratio);
        let clock = ratio.and_then(|ratio| Some(ratio * self.known.base_ghz?));
        self.note(TimeLine::CLOCK, "by APERF and MPERF, measured CPU", "GHz", at_ms, clock);
    }

    /// The kernel interrupts a CPU of each domain for it.
    fn read_traffic(&mut self, at_ms: f64) {
        let read = self.traffic.as_mut().map(Traffic::read).unwrap_or_default();
        for (name, rate) in read {
            self.note(TimeLine::TRAFFIC, &name, "GB/s", at_ms, Some(rate));
        }
    }

    fn note(
        &mut self,
        subject: &'static str,
        name: &str,
        unit: &'static str,
        at_ms: f64,
        value: Option<f64>,
    ) {
        let Some(value) = value else { return };
        let is_it = |line: &TimeLine| line.subject == subject && line.name == name && line.missing.is_none();
        let at = self.lines.iter().position(is_it).unwrap_or_else(|| {
            self.lines.push(empty(subject, name, unit));
            self.lines.len() - 1
        });
        self.lines[at].at_ms.push(at_ms);
        self.lines[at].value.push(value);
        self.points += 1;
        if self.points.is_multiple_of(POINTS) {
            self.period *= 2;
        }
    }
}

/// Kilohertz as GHz that a core could have.
fn ghz(word: &Word) -> Option<f64> {
    word.number().map(|khz| khz / 1e6).filter(|ghz| (0.01..20.0).contains(ghz))
}

fn empty(subject: &'static str, name: &str, unit: &'static str) -> TimeLine {
    TimeLine {
        subject: subject.into(),
        name: name.to_string().into(),
        unit: unit.into(),
        at_ms: Vec::new(),
        value: Vec::new(),
        missing: None,
    }
}

#[cfg(test)]
mod tests;
