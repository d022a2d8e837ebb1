//! CPUs next to the seats of a placement, for measurements with busy siblings.

use std::collections::BTreeMap;

use super::Placements;
use machine::Machine;
use model::{Beside, CpuSet, Placement};

/// Online CPUs that share a core with one of a lower number: those that go when SMT is switched
/// off.
pub fn second_threads(machine: &Machine) -> CpuSet {
    let cores = machine.cpus.cores.iter().flatten();
    cores.flat_map(|core| core.cpus.iter().skip(1).collect::<Vec<u32>>()).collect()
}

/// Whether two online CPUs share a core.
pub fn has_smt(machine: &Machine) -> bool {
    machine.cpus.cores.iter().flatten().any(|core| core.cpus.len() > 1)
}

/// The same seats with their CPUs kept from sleeping: what waking a CPU from idle costs is then not
/// part of a wake-up.
pub fn awake(placement: &Placement) -> Placement {
    let neighbours = placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
    Placement { beside: Beside::Awake, neighbours, ..placement.clone() }
}

impl Placements {
    /// The same seats with `beside` going on on the SMT siblings of their CPUs; on a host without
    /// SMT on the nearest CPUs without a seat. An error says why there are none.
    pub fn beside(
        &self,
        machine: &Machine,
        placement: &Placement,
        beside: Beside,
    ) -> Result<Placement, String> {
        let seats = placement.cpus();
        let mut found: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for seat in &placement.seats {
            let cpu = match seat.cpus.first() {
                Some(cpu) if seat.cpus.len() == 1 && seat.host.is_none() => cpu,
                _ => return Err("its tasks are not each pinned to one CPU".to_string()),
            };
            if found.contains_key(&cpu) {
                continue;
            }
            let beside = match has_smt(machine) {
                true => self.siblings(machine, cpu, &seats)?,
                false => self.nearest(cpu, |other| {
                    !seats.contains(other) && !found.values().any(|taken| taken.contains(other))
                })?,
            };
            found.insert(cpu, beside);
        }
        let own = |cpus: &CpuSet| cpus.first().and_then(|cpu| found.get(&cpu)).cloned().unwrap_or_default();
        let neighbours = placement.seats.iter().map(|seat| own(&seat.cpus)).collect();
        Ok(Placement { beside, neighbours, ..placement.clone() })
    }

    /// The usable siblings of a CPU that have no seat.
    fn siblings(&self, machine: &Machine, cpu: u32, seats: &CpuSet) -> Result<CpuSet, String> {
        let core = machine.cpus.cores.iter().flatten().find(|core| core.cpus.contains(cpu));
        let others = core.map(|core| core.cpus.difference(&CpuSet::one(cpu))).unwrap_or_default();
        if others.is_empty() {
            return Err(format!("needs an SMT sibling of CPU {cpu}"));
        }
        let usable = others.intersection(&self.cpus());
        if usable.is_empty() {
            return Err(format!("the SMT sibling of CPU {cpu} may not be used here (affinity or cpuset)"));
        }
        let idle = usable.difference(seats);
        if idle.is_empty() {
            return Err(format!("the SMT sibling of CPU {cpu} runs a task of the benchmark"));
        }
        Ok(idle)
    }

    /// The nearest CPU that is free; of equally near ones not the first of all, which serves most
    /// interrupts.
    fn nearest(&self, cpu: u32, free: impl Fn(u32) -> bool) -> Result<CpuSet, String> {
        let first = self.addresses.keys().next().copied();
        let others = self.addresses.keys().copied().filter(|other| *other != cpu && free(*other));
        let near = others.min_by_key(|other| (self.distance(cpu, *other), Some(*other) == first, *other));
        near.map(CpuSet::one).ok_or_else(|| format!("needs a free CPU for a task next to CPU {cpu}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Core;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse_list(text).expect("a list")
    }

    fn machine(cores: &[&str]) -> Machine {
        let mut machine = Machine::default();
        let cores = cores.iter().map(|cpus| Core { cpus: set(cpus), ..Core::default() });
        machine.cpus.cores = Some(cores.collect());
        let all = machine.cpus.cores.iter().flatten().flat_map(|core| core.cpus.iter().collect::<Vec<u32>>());
        machine.cpus.online = all.collect();
        machine.cpus.allowed = machine.cpus.online.clone();
        machine
    }

    fn beside(machine: &Machine, name: &str) -> Result<String, String> {
        let placements = Placements::of(machine);
        let pairs = placements.pairs(["ping", "pong"]).into_iter().filter_map(|(_, pair)| pair.ok());
        let mut all = pairs.chain(placements.one_cpu("task")).chain(placements.free(&["task"]));
        let placement = all.find(|placement| placement.name == name).expect("such a placement");
        let placement = placements.beside(machine, &placement, Beside::Spinner)?;
        assert_eq!(placement.neighbours.len(), placement.seats.len());
        Ok(placement.neighbours.iter().map(|cpus| cpus.to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn siblings_where_there_is_smt() {
        let machine = machine(&["0-1", "2-3", "4-5"]);
        assert_eq!(beside(&machine, "one-cpu").as_deref(), Ok("3"));
        assert_eq!(beside(&machine, "same-cpu").as_deref(), Ok("3 3"));
        assert_eq!(beside(&machine, "other-cpu").as_deref(), Ok("3 1"));
        assert!(
            beside(&machine, "smt-sibling").is_err_and(|why| why.contains("runs a task of the benchmark"))
        );
        assert!(beside(&machine, "free").is_err_and(|why| why.contains("not each pinned")));
        assert_eq!(second_threads(&machine).to_string(), "1,3,5");
    }

    #[test]
    fn four_threads_a_core_are_three_neighbours() {
        let machine = machine(&["0-3", "4-7"]);
        assert_eq!(beside(&machine, "one-cpu").as_deref(), Ok("5-7"));
        assert_eq!(second_threads(&machine).to_string(), "1-3,5-7");
    }

    #[test]
    fn a_sibling_that_may_not_be_used_is_said() {
        let mut machine = machine(&["0-1", "2-3"]);
        machine.cpus.allowed = set("0,2");
        assert!(beside(&machine, "one-cpu").is_err_and(|why| why.contains("may not be used")));
    }

    #[test]
    fn neighbour_cores_where_there_is_none() {
        let two = machine(&["0", "1"]);
        assert_eq!(beside(&two, "one-cpu").as_deref(), Ok("0"));
        assert!(beside(&two, "other-cpu").is_err_and(|why| why.contains("needs a free CPU")));
        let four = machine(&["0", "1", "2", "3"]);
        assert_eq!(beside(&four, "one-cpu").as_deref(), Ok("2"), "not the first CPU of all");
        assert_eq!(beside(&four, "other-cpu").as_deref(), Ok("2 3"), "each its own");
        assert!(second_threads(&four).is_empty());
    }
}
