//! Two CPUs on which two tasks have the same to run on.

use super::{Distance, LOOKS, Placements, placement, seat};
use machine::Machine;
use model::{CpuSet, Placement};

impl Placements {
    /// Two tasks on two like CPUs: on cores of their own, of one kind, of one node and below one
    /// last-level cache. Where there is a choice, cores that share nothing nearer than that cache,
    /// and not that of the first CPU, which serves most interrupts.
    pub fn like_pair(&self, role: &'static str, machine: &Machine) -> Result<Placement, String> {
        if let Some(quota) = machine.limits.cpu_quota.filter(|quota| *quota < 2.0) {
            return Err(format!("the control group's quota is only {quota:.2} CPUs"));
        }
        let kind = |cpu: u32| machine.cpus.kinds.values().position(|cpus| cpus.contains(cpu));
        let first = self.addresses.values().next().and_then(|address| address.core);
        let pairs = self.addresses.keys().flat_map(|cpu| self.beyond(*cpu).map(move |there| (*cpu, there)));
        let near: Vec<(u32, u32, Distance)> = pairs
            .take(LOOKS)
            .map(|(one, (other, distance))| (one, other, distance))
            .filter(|(one, other, distance)| {
                let [one, other] = [one, other].map(|cpu| self.addresses[cpu]);
                let cores = one.core.is_some() && other.core.is_some();
                cores
                    && one.node == other.node
                    && matches!(distance, Distance::SameCluster | Distance::SameLlc)
            })
            .collect();
        let like = near.iter().filter(|(one, other, _)| kind(*one) == kind(*other));
        let best = like.min_by_key(|(one, _, distance)| {
            (*distance == Distance::SameCluster, self.addresses[one].core == first)
        });
        match best {
            Some((one, other, _)) => {
                let seats = [*one, *other].map(|cpu| seat(role, CpuSet::one(cpu)));
                Ok(placement("duet", seats.to_vec()))
            }
            None if !near.is_empty() => Err("needs two cores of one kind with a shared L3".to_string()),
            None if self.addresses.len() > 1 && first.is_none() => Err(self.lack(Distance::SmtSibling)),
            None => Err(self.lack(Distance::SameLlc)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::big;
    use super::*;
    use machine::Core;

    fn found(machine: &Machine) -> Result<String, String> {
        Placements::of(machine).like_pair("task", machine).map(|pair| pair.cpus().to_string())
    }

    fn cores(cpus: &[&str]) -> Machine {
        let mut machine = Machine::default();
        let sets: Vec<CpuSet> = cpus.iter().filter_map(|text| CpuSet::parse_list(text)).collect();
        machine.cpus.online = CpuSet::union_of(&sets);
        machine.cpus.allowed = machine.cpus.online.clone();
        machine.cpus.cores = Some(sets.into_iter().map(|cpus| Core { cpus, ..Core::default() }).collect());
        machine.caches = big().caches[..1].to_vec();
        machine.caches[0].cpus = machine.cpus.online.clone();
        machine
    }

    #[test]
    fn cores_of_their_own_below_one_cache_and_not_the_first() {
        assert_eq!(found(&big()), Ok("2,4".to_string()));
        assert_eq!(found(&cores(&["0-1", "2-3"])), Ok("0,2".to_string()));
        assert_eq!(found(&cores(&["0", "1", "2"])), Ok("1-2".to_string()));
    }

    #[test]
    fn what_is_missing_is_said() {
        let says = |machine: &Machine, text: &str| {
            let why = found(machine).expect_err("no such pair");
            assert!(why.contains(text), "{why}");
        };
        says(&cores(&["0"]), "a second CPU");
        says(&cores(&["0-1"]), "two cores with a shared L3");
        let mut machine = cores(&["0", "1"]);
        machine.limits.cpu_quota = Some(1.5);
        says(&machine, "only 1.50 CPUs");
        machine.limits.cpu_quota = Some(2.0);
        assert!(found(&machine).is_ok());
        machine.cpus.allowed = CpuSet::one(1);
        says(&machine, "only CPU 1 may be used here");
        machine.cpus.allowed = machine.cpus.online.clone();
        machine.cpus.kinds =
            [("P", 0), ("E", 1)].map(|(kind, cpu)| (kind.to_string(), CpuSet::one(cpu))).into();
        says(&machine, "two cores of one kind");
        machine.cpus.kinds.clear();
        machine.caches.clear();
        says(&machine, "two cores with a shared L3");
        machine.cpus.cores = None;
        says(&machine, "which CPUs share a core");
    }
}
