//! Samples clocks, idle states, temperatures, voltages and memory traffic at a low rate while a
//! visit measures; runs in the parent process.
//!
//! Sampling must not disturb the measurement. A sample is taken at most twice a second, from a CPU
//! outside the visit's placement; if there is none, only between visits. Most files cost no more
//! than a read of the kernel's memory. For others (a core's thermometer and registers, the current
//! frequency before Linux 5.19) the kernel interrupts that CPU for some microseconds. Each sample
//! reads one of those, round-robin, so the measured CPU is interrupted at most twice a second: 1 of
//! 100 samples of 2 ms, which does not change the median.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::affinity;
use model::{CpuSet, Event, TimeLine};

mod controllers;
mod sensors;
mod traffic;

use sensors::{IdleStates, PerfStatus, ReadCost, Registers, Sensor, SysfsFile, sensors};
use traffic::Traffic;

/// Initial time between samples.
const PERIOD: Duration = Duration::from_millis(500);
/// After each this many points the period doubles, so a run of a day has only some thousand points.
const POINTS_PER_PERIOD: usize = 1000;
/// Idle states are summed over at most this many CPUs, spread evenly, because each needs an open
/// file per state.
const MAX_IDLE_CPUS: usize = 32;
/// The same for the CPUs of a visit.
const MAX_MEASURED_CPUS: usize = 8;

// Model-specific registers.
const PERF_STATUS: u64 = 0x198;
const MPERF: u64 = 0xe7;
const APERF: u64 = 0xe8;

/// Facts about the host that the observer needs.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// The reported base clock, GHz; MPERF counts at this rate.
    pub base_ghz: Option<f64>,
    /// The hypervisor emulates the registers: their content means nothing.
    pub guest: bool,
}

/// The observer of one run.
pub struct Observer {
    root: PathBuf,
    host: HostFacts,
    sensors: Vec<Sensor>,
    /// Idle states of the host.
    all_cpus: Residency,
    /// Idle states of the visit's CPUs.
    measured_cpus: Residency,
    core: Option<Core>,
    /// Memory traffic, or why it is not counted.
    traffic: Result<Traffic, String>,
    /// The CPU that takes samples during this visit.
    sampling_cpu: Option<u32>,
    /// Selects the next of the readings that interrupt a CPU.
    turn: usize,
    last_sample: Option<Instant>,
    period: Duration,
    points: usize,
    /// The last governor of each CPU.
    governors: BTreeMap<u32, String>,
    lines: Vec<TimeLine>,
    events: Vec<Event>,
}

/// Files and registers of the visit's first CPU.
struct Core {
    cpu: u32,
    frequency: Option<SysfsFile>,
    limit: Option<SysfsFile>,
    governor: Option<SysfsFile>,
    registers: Option<Registers>,
    /// APERF and MPERF as last read.
    cycles: Option<(u64, u64)>,
}

impl Core {
    fn open(root: &Path, cpu: u32, guest: bool) -> Core {
        let file = |name: &str| {
            SysfsFile::open(&root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")))
        };
        Core {
            cpu,
            // The newer file is a mean over the last tick; reading it interrupts no CPU.
            frequency: file("cpuinfo_avg_freq").or_else(|| file("scaling_cur_freq")),
            limit: file("scaling_max_freq"),
            governor: file("scaling_governor"),
            registers: Registers::open(root, cpu).ok().filter(|_| cfg!(target_arch = "x86_64") && !guest),
            cycles: None,
        }
    }

    /// Executed cycles per cycle of the base clock since the last reading.
    fn ratio(&mut self) -> Option<f64> {
        let registers = self.registers.as_ref()?;
        // The time between these two readings is short compared with that between samples.
        let now = (registers.read(APERF)?, registers.read(MPERF)?);
        sensors::cycles_per_base(self.cycles.replace(now)?, now)
    }
}

/// Time in each state of each CPU, µs.
type Totals = BTreeMap<(u32, String), f64>;

/// Time that some CPUs spent in their idle states.
struct Residency {
    cpus: Vec<(u32, IdleStates)>,
    before: Option<(Instant, Totals)>,
    /// CPU time by state, µs.
    states: BTreeMap<String, f64>,
    /// CPU time in all states, µs.
    cpu_us: f64,
}

impl Residency {
    fn open(root: &Path, cpus: &CpuSet, max_cpus: usize) -> Residency {
        let step = cpus.len().div_ceil(max_cpus).max(1);
        let cpus = cpus.iter().step_by(step).map(|cpu| (cpu, IdleStates::open(root, cpu)));
        let cpus = cpus.filter(|(_, states)| !states.is_empty()).collect();
        Residency { cpus, before: None, states: BTreeMap::new(), cpu_us: 0.0 }
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

    /// Adds the time since [`Self::begin`].
    fn end(&mut self) {
        let Some((at, before)) = self.before.take() else { return };
        let us = at.elapsed().as_secs_f64() * 1e6;
        for (key, total) in self.totals() {
            let passed = before.get(&key).map_or(0.0, |before| total - before);
            // The kernel adds an idle period when it ends; it may have started before `begin`.
            *self.states.entry(key.1).or_default() += passed.clamp(0.0, us);
        }
        self.cpu_us += us * self.cpus.len() as f64;
    }

    /// The share of each idle state, and of running (C0), in the summed time; then resets the sums.
    /// Empty while the sum is less than `min_time` per CPU.
    fn take_shares(&mut self, min_time: Duration) -> Vec<(String, f64)> {
        let min_us = self.cpus.len() as f64 * min_time.as_secs_f64() * 1e6;
        if self.cpu_us <= 0.0 || self.cpu_us < min_us {
            return Vec::new();
        }
        let total_us = std::mem::take(&mut self.cpu_us);
        let states = std::mem::take(&mut self.states);
        let mut shares: Vec<(String, f64)> =
            states.into_iter().map(|(name, us)| (name, (us / total_us).min(1.0))).collect();
        let idle: f64 = shares.iter().map(|(_, share)| share).sum();
        shares.push(("C0, running".to_string(), (1.0 - idle).max(0.0)));
        shares
    }
}

impl Observer {
    /// Opens the files that exist below `root`; each missing source becomes a line without points.
    /// `cpus`: the CPUs that may be used.
    pub fn open(root: &Path, cpus: &CpuSet, host: HostFacts) -> Observer {
        let mut observer = Observer {
            root: root.to_path_buf(),
            sensors: sensors(root),
            all_cpus: Residency::open(root, cpus, MAX_IDLE_CPUS),
            measured_cpus: Residency::open(root, &CpuSet::default(), MAX_MEASURED_CPUS),
            core: None,
            traffic: Traffic::open(root),
            sampling_cpu: None,
            turn: 0,
            last_sample: None,
            period: PERIOD,
            points: 0,
            governors: BTreeMap::new(),
            lines: Vec::new(),
            events: Vec::new(),
            host,
        };
        observer.add_missing_lines(cpus.first().unwrap_or(0));
        observer.all_cpus.begin();
        observer
    }

    /// Adds a line with the reason for each source that this host lacks, and the critical
    /// temperatures.
    fn add_missing_lines(&mut self, cpu: u32) {
        let core = Core::open(&self.root, cpu, false);
        let registers = match (cfg!(target_arch = "x86_64"), self.host.guest) {
            (false, _) => Err("only x86 has such registers".to_string()),
            (_, true) => Err("the hypervisor emulates a guest's registers".to_string()),
            _ => Registers::open(&self.root, cpu).and_then(|registers| {
                let status = registers.read(PERF_STATUS).map(PerfStatus::from_register);
                status.ok_or_else(|| "only Intel processors have the register IA32_PERF_STATUS".to_string())
            }),
        };
        let has = |subject: &str| self.sensors.iter().any(|sensor| sensor.subject == subject);
        let no_ratio = match &registers {
            Err(why) => Some(why.clone()),
            Ok(PerfStatus { multiplier: None, .. }) => {
                Some("the multiplier in IA32_PERF_STATUS is impossible".to_string())
            }
            Ok(_) => None,
        };
        let no_volts = match &registers {
            _ if has(TimeLine::VOLTAGE) => None,
            Ok(PerfStatus { volts: Some(_), .. }) => None,
            Ok(_) => Some("no sensor Vcore, and the voltage in IA32_PERF_STATUS is impossible".to_string()),
            Err(why) => Some(format!("no sensor Vcore under /sys/class/hwmon; {why}")),
        };
        let reason = |is_missing: bool, text: &str| is_missing.then(|| text.to_string());
        let no_clock = "no cpufreq under /sys: a guest, or no driver for this processor";
        let no_idle = "no cpuidle states under /sys: a guest, or idle=poll";
        let no_temperature = "no processor's sensor under /sys/class/hwmon, and no thermal zone";
        let missing = [
            (TimeLine::CLOCK, "by cpufreq", reason(core.frequency.is_none(), no_clock)),
            (TimeLine::MULTIPLIER, "by IA32_PERF_STATUS", no_ratio),
            (TimeLine::IDLE, "residency", reason(self.all_cpus.cpus.is_empty(), no_idle)),
            (TimeLine::TEMPERATURE, "processor", reason(!has(TimeLine::TEMPERATURE), no_temperature)),
            (TimeLine::VOLTAGE, "core", no_volts),
            (TimeLine::TRAFFIC, "by resctrl or memory controllers", self.traffic.as_ref().err().cloned()),
        ];
        for (subject, name, missing) in missing {
            if missing.is_some() {
                self.lines.push(TimeLine { missing, ..empty(subject, name, "") });
            }
        }
        let limits: Vec<(String, f64)> =
            self.sensors.iter().filter_map(|sensor| Some((sensor.name.clone(), sensor.critical?))).collect();
        for (name, degrees) in limits {
            self.note(TimeLine::CRITICAL, &name, "°C", 0.0, Some(degrees));
        }
    }

    /// To be called before a visit to these CPUs; `sampling_cpu` takes the samples during it.
    pub fn begin(&mut self, seats: &CpuSet, sampling_cpu: Option<u32>) {
        self.sampling_cpu = sampling_cpu;
        let first = seats.first().filter(|_| sampling_cpu.is_some());
        if self.core.as_ref().map(|core| core.cpu) != first {
            self.core = first.map(|cpu| Core::open(&self.root, cpu, self.host.guest));
            let residency = Residency::open(&self.root, seats, MAX_MEASURED_CPUS);
            // Keeps the sums, which are those of earlier measured CPUs.
            let before = std::mem::replace(&mut self.measured_cpus, residency);
            (self.measured_cpus.states, self.measured_cpus.cpu_us) = (before.states, before.cpu_us);
        }
        self.measured_cpus.begin();
    }

    /// To be called often during a visit: takes a sample if one is due and another CPU can take it.
    /// `at_ms`: time of the run, ms.
    pub fn sample_if_due(&mut self, at_ms: f64) {
        let Some(cpu) = self.sampling_cpu.filter(|_| self.is_due()) else { return };
        let _ = affinity::on(&CpuSet::one(cpu), || self.sample(at_ms, true));
    }

    /// To be called after the visit.
    pub fn end(&mut self, at_ms: f64) {
        self.measured_cpus.end();
        for (state, share) in self.measured_cpus.take_shares(self.period) {
            self.add_share(&format!("{state}, measured CPUs"), at_ms, share);
        }
        // No visit runs now, so no reading can disturb one.
        if self.sampling_cpu.is_none() && self.is_due() {
            self.sample(at_ms, false);
        }
    }

    /// The lines and events since the last call.
    pub fn take(&mut self) -> (Vec<TimeLine>, Vec<Event>) {
        (std::mem::take(&mut self.lines), std::mem::take(&mut self.events))
    }

    fn is_due(&self) -> bool {
        self.last_sample.is_none_or(|last| last.elapsed() >= self.period)
    }

    /// Takes a sample. `working`: the measured CPU executes a visit, so its own clock is
    /// meaningful.
    fn sample(&mut self, at_ms: f64, working: bool) {
        self.last_sample = Some(Instant::now());
        self.all_cpus.end();
        for (state, share) in self.all_cpus.take_shares(Duration::ZERO) {
            self.add_share(&format!("{state}, all CPUs"), at_ms, share);
        }
        self.all_cpus.begin();
        for index in 0..self.sensors.len() {
            if self.sensors[index].cost == ReadCost::NoInterrupt || !working {
                self.read_sensor(index, at_ms);
            }
        }
        if !working {
            // The counters cover the time since their last reading, the visit included.
            self.read_traffic(at_ms);
            return;
        }
        self.read_policy(at_ms);
        let interrupts = |index: &usize| self.sensors[*index].cost == ReadCost::InterruptsCpu;
        let interrupting: Vec<usize> = (0..self.sensors.len()).filter(interrupts).collect();
        self.turn = (self.turn + 1) % (4 + interrupting.len());
        match self.turn {
            0 => self.read_frequency(at_ms),
            1 => self.read_status(at_ms),
            2 => self.read_cycles(at_ms),
            3 => self.read_traffic(at_ms),
            turn => self.read_sensor(interrupting[turn - 4], at_ms),
        }
    }

    fn read_sensor(&mut self, index: usize, at_ms: f64) {
        let sensor = &self.sensors[index];
        let (subject, name, unit, value) = (sensor.subject, sensor.name.clone(), sensor.unit, sensor.read());
        self.note(subject, &name, unit, at_ms, value);
    }

    /// The highest clock that the cpufreq policy permits, and changes of the governor.
    fn read_policy(&mut self, at_ms: f64) {
        let Some(core) = &self.core else { return };
        let (cpu, limit) = (core.cpu, core.limit.as_ref().and_then(ghz));
        let governor = core.governor.as_ref().and_then(SysfsFile::text);
        if let Some(now) = governor.map(|text| sensors::label(&text)) {
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
        let PerfStatus { multiplier, volts } = status.map(PerfStatus::from_register).unwrap_or_default();
        self.note(TimeLine::MULTIPLIER, "by IA32_PERF_STATUS, measured CPU", "", at_ms, multiplier);
        self.note(TimeLine::VOLTAGE, "by IA32_PERF_STATUS, measured CPU", "V", at_ms, volts);
    }

    fn read_cycles(&mut self, at_ms: f64) {
        let ratio = self.core.as_mut().and_then(Core::ratio);
        let clock = ratio.and_then(|ratio| Some(ratio * self.host.base_ghz?));
        self.note(TimeLine::CLOCK, "by APERF and MPERF, measured CPU", "GHz", at_ms, clock);
    }

    /// Reading interrupts a CPU of each L3 domain.
    fn read_traffic(&mut self, at_ms: f64) {
        let rates = self.traffic.as_mut().map(Traffic::read).unwrap_or_default();
        for (name, rate) in rates {
            self.note(TimeLine::TRAFFIC, &name, "GB/s", at_ms, Some(rate));
        }
    }

    fn add_share(&mut self, name: &str, at_ms: f64, share: f64) {
        self.note(TimeLine::IDLE, name, "share of the time", at_ms, Some(share));
    }

    /// Adds a point to the line of this subject and name, which it creates if needed.
    fn note(
        &mut self,
        subject: &'static str,
        name: &str,
        unit: &'static str,
        at_ms: f64,
        value: Option<f64>,
    ) {
        let Some(value) = value else { return };
        let matches =
            |line: &TimeLine| line.subject == subject && line.name == name && line.missing.is_none();
        let index = self.lines.iter().position(matches).unwrap_or_else(|| {
            self.lines.push(empty(subject, name, unit));
            self.lines.len() - 1
        });
        self.lines[index].at_ms.push(at_ms);
        self.lines[index].value.push(value);
        self.points += 1;
        if self.points.is_multiple_of(POINTS_PER_PERIOD) {
            self.period *= 2;
        }
    }
}

/// A file's number in kHz as GHz; `None` if no core can have that clock.
fn ghz(file: &SysfsFile) -> Option<f64> {
    file.number().map(|khz| khz / 1e6).filter(|ghz| (0.01..20.0).contains(ghz))
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
