//! Core clocks: what they explain between two runs of one machine, and results scaled to a common one.

use super::environment::{CLOCK, OR};
use super::{Arm, Member};
use model::Value;
use model::vocabulary as ids;
use stats::order::{finite, median};

/// Labels that make two results ones of the same machine, and settings that explain another clock.
const SAME_MACHINE: [&str; 2] = ["cpu_model", "cpus"];
const SETTINGS: [&str; 3] = ["governor", "highest_frequency", "turbo"];

/// Blocks up to this size stay in the first cache of any machine, which goes with the core's clock.
const FIRST_CACHE_BYTES: f64 = 32768.0;

impl Arm {
    fn told(&self, label: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str())
    }

    /// The core clock, GHz: what the benchmark of it gave, or the foreign file tells, or what was seen beside all windows.
    pub fn clock_ghz(&self) -> Option<f64> {
        let number = |text: &str| text.split(' ').next()?.parse::<f64>().ok();
        let mhz =
            self.told(CLOCK).and_then(|text| median(&text.split(OR).filter_map(number).collect::<Vec<_>>()));
        let beside = || median(&self.members.iter().filter_map(Member::clock_ghz).collect::<Vec<f64>>());
        mhz.map(|mhz| mhz / 1e3).or_else(beside).filter(|ghz| *ghz > 0.0)
    }
}

impl Member {
    /// The clock beside its own windows, GHz.
    pub fn clock_ghz(&self) -> Option<f64> {
        median(&finite(&self.clocks)).filter(|ghz| *ghz > 0.0)
    }

    /// Whether its value is a count of core cycles, so that it goes with the core's clock: arithmetic, system calls,
    /// signals, walks within the first cache. Memory, disks, networks, timers and whatever waits for another task do not.
    pub fn is_core_bound(&self) -> bool {
        let group = self.case.bench.split('.').next().unwrap_or_default();
        match (group, self.case.id()) {
            // The clock itself is what is taken out.
            (_, Some(ids::cpu::CLOCK)) => false,
            ("cpu" | "syscall" | "signal", _) => self.scaling().is_some(),
            (_, Some(ids::memory::LATENCY)) => {
                let bytes = self.point.get(ids::memory::param::BYTES).and_then(Value::number);
                bytes.is_some_and(|bytes| bytes <= FIRST_CACHE_BYTES) && self.scaling().is_some()
            }
            _ => false,
        }
    }

    /// How its value goes with the clock: 1 for rates, -1 for times.
    fn scaling(&self) -> Option<i32> {
        match self.metric.unit.as_ref() {
            "ns" | "us" | "ms" | "s" => Some(-1),
            unit if unit.ends_with("/s") => Some(1),
            _ => None,
        }
    }

    /// What each process would have given at a clock of `common` GHz, by the clock beside itself, or by `otherwise` where
    /// that is not known; `None` where it is not bound by the core or no clock is known.
    pub fn at_clock(&self, common: f64, otherwise: Option<f64>) -> Option<Member> {
        let scaling = self.scaling().filter(|_| self.is_core_bound())?;
        let factor = |clock: f64| {
            let clock = Some(clock).filter(|ghz| ghz.is_finite() && *ghz > 0.0).or(otherwise)?;
            Some((common / clock).powi(scaling))
        };
        let values = self.medians.iter().zip(&self.clocks);
        let medians: Option<Vec<f64>> = values.map(|(value, clock)| Some(value * factor(*clock)?)).collect();
        let medians = medians.filter(|medians| !medians.is_empty())?;
        Some(Member { median: median(&medians)?, medians, ..self.clone() })
    }
}

/// ln of the ratio of two clocks of one and the same machine, where no setting explains it: then the machine was in another
/// state, and whatever moved the clock moved the numbers too. 0 for different machines, whose clocks are theirs.
pub fn circumstance(a: &Arm, b: &Arm, of_a: Option<f64>, of_b: Option<f64>) -> f64 {
    let same = |label: &&str| a.told(label).is_some() && a.told(label) == b.told(label);
    let differs = |label: &&str| a.told(label) != b.told(label);
    if a.host != b.host || !SAME_MACHINE.iter().all(same) || SETTINGS.iter().any(differs) {
        return 0.0;
    }
    match (of_a.or_else(|| a.clock_ghz()), of_b.or_else(|| b.clock_ghz())) {
        (Some(a), Some(b)) => (b / a).ln(),
        _ => 0.0,
    }
}
