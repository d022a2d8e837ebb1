//! The observer of visits and the CPU from which it may run.

use std::path::Path;
use std::time::Instant;

use machine::{Hypervisor, Machine};
use model::run_file::Writer;
use model::{CpuSet, Header, Placement, Record};
use sys::observer::{HostFacts, Observer};

pub struct Watch {
    /// Not for invented samples.
    observer: Option<Observer>,
    machine: Machine,
    allowed: CpuSet,
    begin: Instant,
    /// `begin` on the run's time line, ms.
    begin_ms: f64,
}

impl Watch {
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Opens the counters below `root`; the run's time is `begin_ms` now.
    pub fn of(header: &Header, root: &Path, begin_ms: f64) -> Watch {
        let machine = Machine::from(&header.snapshot);
        let host = HostFacts {
            base_ghz: machine.frequency.base_khz.map(|khz| khz as f64 / 1e6),
            guest: matches!(machine.hypervisor, Hypervisor::Guest(_)),
        };
        let allowed = header.allowed_cpus.clone();
        let observer = header.pretend.is_none().then(|| Observer::open(root, &allowed, host));
        Watch { observer, machine, allowed, begin: Instant::now(), begin_ms }
    }

    /// A visit with this placement begins.
    pub fn begin(&mut self, placement: &Placement) {
        let off = self.off(&placement.busy_cpus());
        if let Some(observer) = &mut self.observer {
            observer.begin(&placement.cpus(), off);
        }
    }

    /// Polled often during a visit.
    pub fn look(&mut self) {
        let at_ms = self.at_ms();
        if let Some(observer) = &mut self.observer {
            observer.sample_if_due(at_ms);
        }
    }

    /// The visit has ended.
    pub fn end(&mut self) {
        let at_ms = self.at_ms();
        if let Some(observer) = &mut self.observer {
            observer.end(at_ms);
        }
    }

    /// Writes the observations since the last call; a kill loses those after it.
    pub fn note(&mut self, writer: &mut Writer) -> anyhow::Result<()> {
        let (lines, events) = self.observer.as_mut().map(Observer::take).unwrap_or_default();
        let lines = lines.into_iter().map(Record::TimeLine);
        for record in lines.chain(events.into_iter().map(Record::Event)) {
            writer.append(&record)?;
        }
        Ok(())
    }

    fn at_ms(&self) -> f64 {
        self.begin_ms + self.begin.elapsed().as_secs_f64() * 1e3
    }

    /// A CPU for the observer: on a core that does not measure, else another thread of one that
    /// does.
    fn off(&self, seats: &CpuSet) -> Option<u32> {
        let siblings = seats.iter().flat_map(|cpu| {
            let core = self.machine.core_of(cpu).map(|core| core.cpus.iter().collect::<Vec<u32>>());
            core.unwrap_or_default()
        });
        let cores: CpuSet = siblings.chain(seats.iter()).collect();
        let free = |taken: &CpuSet| self.allowed.difference(taken).last();
        free(&cores).or_else(|| free(seats))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Core;

    #[test]
    fn looks_come_from_another_core_where_there_is_one() {
        let mut machine = Machine::default();
        let core = |cpus: [u32; 2]| Core { cpus: cpus.into_iter().collect(), ..Core::default() };
        machine.cpus.cores = Some(vec![core([0, 2]), core([1, 3])]);
        let allowed: CpuSet = (0..4).collect();
        let mut watch = Watch { observer: None, machine, allowed, begin: Instant::now(), begin_ms: 0.0 };
        let off = |watch: &Watch, seats: &[u32]| watch.off(&seats.iter().copied().collect());
        assert_eq!(off(&watch, &[3]), Some(2));
        assert_eq!(off(&watch, &[0, 3]), Some(2), "no core is free: a sibling, never a seat");
        assert_eq!(off(&watch, &[0, 1, 2, 3]), None);
        watch.allowed = CpuSet::one(3);
        assert_eq!(off(&watch, &[3]), None);
        assert_eq!(off(&watch, &[0]), Some(3));
    }
}
