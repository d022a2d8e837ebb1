//! Whether the host is quiet enough to measure, from differences over one second. Load averages
//! would include the minute before.

use std::time::{Duration, Instant};

use bench::sampler::{core_clock_ghz, fetch_cycles};
use model::{Conditions, CpuSet, Event, TimeLine};
use stats::core_sharing::core_sharing;
use sys::affinity;
use sys::clock::{self, Clock};
use sys::counters::Counters;

/// How long to wait for quiet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Patience {
    /// Up to this long, then start with a note.
    Bounded(Duration),
    /// As long as it takes (`--wait-idle`).
    UntilIdle,
    /// Not at all (`--force`): check once, then start.
    None,
}

/// CPU time that other processes may use: of one CPU, or of the whole host if that is more.
const BUSY_ONE_CPU: f64 = 0.05;
const BUSY_MACHINE: f64 = 0.005;
/// Share of time in which some task waited for a CPU.
const PSI_CPU: f64 = 0.02;
const STEAL: f64 = 0.005;
/// Share of probes with another thread on the core. Quick runs with 8 % kept nearly all figures,
/// with 13 % half, with 65 % none.
const SHARED_CORE: f64 = 0.10;
/// Time between two probes of a core; each takes about 20 µs.
const BETWEEN_PROBES: Duration = Duration::from_millis(10);

/// Why a second was not quiet: from the kernel's counters, and from `looks`, probes of cores in
/// cycles per branch ([`stats::looks`]), which may be empty.
pub fn disturbance(second: &Conditions, looks: &[f64]) -> Option<String> {
    let mut reasons = Vec::new();
    let cpus = f64::from(second.cpus.max(1));
    if let Some(background) = second.background()
        && background * cpus > BUSY_ONE_CPU.max(BUSY_MACHINE * cpus)
    {
        reasons.push(format!("other processes use {:.0} % of a CPU", background * cpus * 100.0));
    }
    let share = |ms: Option<f64>| ms.filter(|_| second.wall_ms > 0.0).map(|ms| ms / second.wall_ms);
    if let Some(psi) = share(second.psi_cpu_ms).filter(|psi| *psi > PSI_CPU) {
        reasons.push(format!("tasks wait for a CPU {:.0} % of the time", psi * 100.0));
    }
    if let Some(steal) = second.steal().filter(|steal| *steal > STEAL) {
        reasons.push(format!("steal takes {:.1} % of the CPU time", steal * 100.0));
    }
    if second.swapped_pages.is_some_and(|pages| pages > 0.0) {
        reasons.push("memory is being swapped".to_string());
    }
    if second.throttled_ms.is_some_and(|ms| ms > 0.0) {
        reasons.push("the cgroup's CPU quota throttles Assay".to_string());
    }
    if let Some(found) = core_sharing(looks).filter(|found| found.shared_part > SHARED_CORE) {
        reasons.push(format!(
            "another thread shares the measured cores in {:.0} % of probes (a sibling, or another guest)",
            found.shared_part * 100.0
        ));
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// Probes one CPU after the other from the gate's thread.
pub struct CoreProbe {
    cpus: Vec<u32>,
    clock: Clock,
    next: usize,
}

impl CoreProbe {
    pub fn over(cpus: &CpuSet, clock: Clock) -> CoreProbe {
        CoreProbe { cpus: cpus.iter().collect(), clock, next: 0 }
    }

    /// Moves the calling thread to the next CPU, probes its core, and restores the affinity.
    fn look(&mut self) -> Option<f64> {
        let cpu = *self.cpus.get(self.next % self.cpus.len().max(1))?;
        self.next += 1;
        affinity::on(&CpuSet::one(cpu), || fetch_cycles(self.clock, core_clock_ghz(self.clock))).ok()
    }
}

/// The gate's observations, for the run file.
#[derive(Debug)]
pub struct Report {
    pub event: Event,
    pub lines: Vec<TimeLine>,
    /// Why the host was still disturbed at the start, if it was.
    pub disturbed: Option<String>,
}

/// Waits for a quiet second, until `interrupted`. Without a `probe`, cores are not probed.
pub fn wait(
    counters: &mut Counters,
    mut probe: Option<CoreProbe>,
    patience: Patience,
    since_start_ms: impl Fn() -> f64,
    interrupted: &dyn Fn() -> bool,
    mut waiting: impl FnMut(&str, Duration),
) -> Report {
    let begin = Instant::now();
    let names = [
        ("background", "CPUs"),
        ("steal", "CPUs"),
        ("waiting for a CPU", "share of the time"),
        ("another thread on the core", "share of probes"),
    ];
    let mut lines: Vec<TimeLine> = names
        .into_iter()
        .map(|(name, unit)| TimeLine {
            subject: "".into(),
            name: name.into(),
            unit: unit.into(),
            at_ms: Vec::new(),
            value: Vec::new(),
            missing: None,
        })
        .collect();
    let mut known = false;
    let disturbed = loop {
        let (second, looks) = one_second(counters, probe.as_mut(), interrupted);
        known |= second.background().is_some();
        let cpus = f64::from(second.cpus);
        let values = [
            second.background().map(|share| share * cpus),
            second.steal().map(|share| share * cpus),
            second.psi_cpu_ms.map(|ms| ms / second.wall_ms.max(1.0)),
            core_sharing(&looks).map(|found| found.shared_part),
        ];
        for (line, value) in lines.iter_mut().zip(values) {
            if let Some(value) = value {
                line.at_ms.push(since_start_ms());
                line.value.push(value);
            }
        }
        let Some(why) = disturbance(&second, &looks) else { break None };
        let go_on = match patience {
            Patience::Bounded(limit) => begin.elapsed() >= limit,
            Patience::UntilIdle => false,
            Patience::None => true,
        };
        if go_on || interrupted() {
            break Some(why);
        }
        waiting(&why, begin.elapsed());
    };
    let waited = begin.elapsed().as_secs_f64();
    let text = match &disturbed {
        Some(why) if interrupted() => format!("interrupted after {waited:.0} s of waiting: {why}"),
        None if !known => {
            "started without a check: /proc/stat cannot be read or does not advance, so other work is \
              unknown"
                .into()
        }
        None => format!("quiet after {waited:.0} s"),
        Some(why) => format!("started after {waited:.0} s although {why}"),
    };
    lines.retain(|line| !line.value.is_empty());
    Report { event: Event { at_ms: since_start_ms(), kind: "gate".into(), text }, lines, disturbed }
}

fn one_second(
    counters: &mut Counters,
    mut probe: Option<&mut CoreProbe>,
    interrupted: &dyn Fn() -> bool,
) -> (Conditions, Vec<f64>) {
    let (before, own) = (counters.read(), clock::cpu_ms().unwrap_or(0.0));
    let end = Instant::now() + Duration::from_secs(1);
    let mut looks = Vec::new();
    while Instant::now() < end && !interrupted() {
        std::thread::sleep(BETWEEN_PROBES);
        looks.extend(probe.as_mut().and_then(|probe| probe.look()));
    }
    let own = clock::cpu_ms().unwrap_or(0.0) - own;
    (counters.read().since(&before, own, &CpuSet::default()), looks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Conditions {
        Conditions {
            wall_ms: 1000.0,
            cpus: 2,
            busy_ms: Some(30.0),
            own_ms: Some(10.0),
            steal_ms: Some(0.0),
            psi_cpu_ms: Some(5.0),
            swapped_pages: Some(0.0),
            throttled_ms: Some(0.0),
            ..Conditions::default()
        }
    }

    #[test]
    fn each_disturbance_has_its_words_and_quiet_has_none() {
        assert_eq!(disturbance(&quiet(), &[]), None);
        assert_eq!(disturbance(&Conditions::default(), &[]), None, "nothing known is not a disturbance");
        let check = |conditions: Conditions, word: &str| {
            let why = disturbance(&conditions, &[]).unwrap_or_default();
            assert!(why.contains(word), "{word}: {why}");
        };
        check(Conditions { busy_ms: Some(500.0), ..quiet() }, "other processes use 49 %");
        check(Conditions { steal_ms: Some(40.0), ..quiet() }, "steal takes 2.0 %");
        check(Conditions { psi_cpu_ms: Some(300.0), ..quiet() }, "wait for a CPU 30 %");
        check(Conditions { swapped_pages: Some(1.0), ..quiet() }, "swapped");
        check(Conditions { throttled_ms: Some(1.0), ..quiet() }, "quota");
        let many = Conditions { cpus: 256, busy_ms: Some(700.0), ..quiet() };
        assert_eq!(disturbance(&many, &[]), None, "0.7 of 256 CPUs is a quiet server");
    }

    #[test]
    fn another_thread_on_the_core_is_a_disturbance() {
        let looks =
            |nth: usize| -> Vec<f64> { (0..100).map(|n| if n % nth == 0 { 2.05 } else { 1.0 }).collect() };
        let why = disturbance(&quiet(), &looks(3)).unwrap_or_default();
        assert!(why.contains("shares the measured cores in 34 % of probes"), "{why}");
        assert_eq!(disturbance(&quiet(), &looks(20)), None);
    }

    #[test]
    fn a_lookout_looks_at_each_cpu_and_leaves_the_thread_where_it_was() {
        let before = affinity::allowed().expect("affinity is readable");
        let clock = Clock::from_run(&clock::calibrate(true));
        let mut probe = CoreProbe::over(&before, clock);
        for _ in 0..3 {
            assert!(probe.look().is_some_and(|cycles| cycles > 0.1));
            assert_eq!(affinity::allowed().expect("readable"), before);
        }
        assert_eq!(CoreProbe::over(&CpuSet::default(), clock).look(), None);
    }
}
