//! Counters read around each sample, and the samples in columns.

use model::{Covariates, Packed, Params, ProcessFacts, Samples};
use sys::clock::{self, Clock};

use super::look::{core_clock_ghz, fetch_cycles};

/// Counters read around a sample.
pub struct Gauge {
    pub at_ns: f64,
    pub cpu: Option<u32>,
    pub usage: clock::Usage,
    pub wait_ns: Option<f64>,
    pub steal_ms: Option<f64>,
}

impl Gauge {
    /// Adds the sample since `before`, if this process never slept in it, to the time that it was
    /// awake, and to that without a CPU.
    pub fn add_pauses(&self, before: &Gauge, facts: &mut ProcessFacts) {
        let spent = self.usage.since(before.usage);
        if spent.voluntary != 0 {
            return;
        }
        let wall_ms = (self.at_ns - before.at_ns) / 1e6;
        facts.awake_ms = Some(facts.awake_ms.unwrap_or(0.0) + wall_ms);
        // Several threads may use more than one CPU's time.
        facts.off_cpu_ms = Some(facts.off_cpu_ms.unwrap_or(0.0) + (wall_ms - spent.cpu_ms).max(0.0));
        if let (Some(now), Some(then)) = (self.wait_ns, before.wait_ns) {
            facts.queued_ms = Some(facts.queued_ms.unwrap_or(0.0) + (now - then).max(0.0) / 1e6);
        }
    }
}

/// Samples in columns.
#[derive(Default)]
pub struct Columns {
    pub work: Vec<f64>,
    pub ns: Vec<f64>,
    pub cpu_start: Vec<Option<f64>>,
    pub cpu_end: Vec<Option<f64>>,
    pub voluntary: Vec<Option<f64>>,
    pub involuntary: Vec<Option<f64>>,
    pub faults: Vec<Option<f64>>,
    pub wait_ns: Vec<Option<f64>>,
    pub steal_ms: Vec<Option<f64>>,
    pub clock_ghz: Vec<Option<f64>>,
    pub fetch_cycles: Vec<Option<f64>>,
}

impl Columns {
    pub fn push(&mut self, before: &Gauge, after: &Gauge, work: f64, ns: f64) {
        let minus = |now: Option<f64>, then: Option<f64>| Some(now? - then?);
        self.work.push(work);
        self.ns.push(ns);
        self.cpu_start.push(before.cpu.map(f64::from));
        self.cpu_end.push(after.cpu.map(f64::from));
        self.voluntary.push(Some((after.usage.voluntary - before.usage.voluntary) as f64));
        self.involuntary.push(Some((after.usage.involuntary - before.usage.involuntary) as f64));
        self.faults.push(Some((after.usage.faults - before.usage.faults) as f64));
        self.wait_ns.push(minus(after.wait_ns, before.wait_ns));
        // Stolen time belongs to a CPU: a sample that changed CPUs has none that is known.
        let stayed = before.cpu == after.cpu;
        self.steal_ms.push(minus(after.steal_ms, before.steal_ms).filter(|_| stayed));
    }

    /// Measures the clock of the core and its cycles per taken branch, right after a sample: these
    /// show at which clock it ran, and whether an SMT sibling shared the core.
    pub fn probe_core(&mut self, clock: Clock) {
        let ghz = core_clock_ghz(clock);
        self.clock_ghz.push(Some(ghz));
        self.fetch_cycles.push(Some(fetch_cycles(clock, ghz)));
    }

    pub fn samples(
        self,
        point: Params,
        metrics: Vec<String>,
        warm_up: usize,
        linearity: Option<f64>,
    ) -> Samples {
        // A column with a hole in it is left out: unknown is better than misplaced.
        let pack = |column: Vec<Option<f64>>| {
            let values: Option<Vec<f64>> = column.into_iter().collect();
            values.filter(|values| !values.is_empty()).map(Packed::pack)
        };
        Samples {
            point,
            metrics,
            warm_up,
            work: Packed::pack(self.work),
            ns: self.ns,
            beside: Covariates {
                cpu_start: pack(self.cpu_start),
                cpu_end: pack(self.cpu_end),
                voluntary: pack(self.voluntary),
                involuntary: pack(self.involuntary),
                faults: pack(self.faults),
                wait_ns: pack(self.wait_ns),
                steal_ms: pack(self.steal_ms),
                clock_ghz: pack(self.clock_ghz),
                fetch_cycles: pack(self.fetch_cycles),
            },
            histograms: Vec::new(),
            linearity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_awake_is_looked_at_for_pauses() {
        let at = |ms: f64, cpu_ms: f64, voluntary: i64| Gauge {
            at_ns: ms * 1e6,
            cpu: Some(0),
            usage: clock::Usage { voluntary, cpu_ms, ..clock::Usage::default() },
            wait_ns: Some(ms * 1e5),
            steal_ms: None,
        };
        let mut facts = ProcessFacts::default();
        at(10.0, 1.0, 1).add_pauses(&at(0.0, 0.0, 0), &mut facts);
        assert_eq!((facts.awake_ms, facts.off_cpu_ms), (None, None), "it slept");
        at(30.0, 5.0, 1).add_pauses(&at(10.0, 1.0, 1), &mut facts);
        assert_eq!((facts.awake_ms, facts.off_cpu_ms, facts.queued_ms), (Some(20.0), Some(16.0), Some(2.0)));
        // Two threads.
        at(40.0, 25.0, 1).add_pauses(&at(30.0, 5.0, 1), &mut facts);
        assert_eq!((facts.awake_ms, facts.off_cpu_ms), (Some(30.0), Some(16.0)));
    }
}
