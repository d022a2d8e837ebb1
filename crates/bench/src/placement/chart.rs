//! The topology of CPUs as a text for a pass: its child needs only the CPUs of tasks, not the
//! host's files again.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::{Address, Distance, Placements};
use model::CpuSet;

impl Placements {
    /// The usable CPUs by where they belong: `core.cluster.inner.llc.node.package=CPUS;…`, `-` for
    /// what is unknown.
    pub fn chart(&self) -> String {
        let mut groups: BTreeMap<Address, CpuSet> = BTreeMap::new();
        for (cpu, address) in &self.addresses {
            groups.entry(*address).or_default().insert(*cpu);
        }
        let told = |part: Option<i64>| part.map_or("-".to_string(), |number| number.to_string());
        let index = |part: Option<usize>| part.map(|number| number as i64);
        let group = |(address, cpus): (&Address, &CpuSet)| {
            let parts = [
                index(address.core),
                index(address.cluster),
                index(address.inner),
                index(address.llc),
                address.node.map(i64::from),
                address.package,
            ];
            format!("{}={cpus}", parts.map(told).join("."))
        };
        groups.iter().map(group).collect::<Vec<_>>().join(";")
    }

    /// The placements of a [`Self::chart`]; `None` where the text is none.
    pub fn from_chart(chart: &str) -> Option<Placements> {
        let mut addresses = BTreeMap::new();
        for group in chart.split(';').filter(|group| !group.is_empty()) {
            let (parts, cpus) = group.split_once('=')?;
            let parts: Vec<Option<i64>> = parts.split('.').map(|part| part.parse().ok()).collect();
            let [core, cluster, inner, llc, node, package] = parts.try_into().ok()?;
            let index = |part: Option<i64>| part.and_then(|number| usize::try_from(number).ok());
            let address = Address {
                core: index(core),
                cluster: index(cluster),
                inner: index(inner),
                llc: index(llc),
                node: node.and_then(|number| u32::try_from(number).ok()),
                package,
            };
            addresses.extend(CpuSet::parse_list(cpus)?.iter().map(|cpu| (cpu, address)));
        }
        let (online, isolated) = (addresses.len(), CpuSet::default());
        Some(Placements { addresses, online, isolated, pairs: OnceCell::new() })
    }

    /// The distances that two tasks on these CPUs can have, nearest first.
    pub fn distances(&self) -> Vec<Distance> {
        let (found, _) = self.pairs.get_or_init(|| self.find_pairs());
        found.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::big;
    use super::*;

    #[test]
    fn a_chart_tells_every_distance_again() {
        let machine = big();
        let placements = Placements::of(&machine);
        let chart = placements.chart();
        let read = Placements::from_chart(&chart).expect("a chart");
        assert_eq!(read.chart(), chart);
        assert_eq!(read.cpus(), placements.cpus());
        for (one, other) in [(0, 0), (0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 32), (63, 0)] {
            assert_eq!(read.distance(one, other), placements.distance(one, other), "{one} {other}");
        }
        assert_eq!(read.distances().len(), 7, "all but other-cpu");
        for wrong in ["0=1", "1.2.3.4.5.6", "1.2.3.4.5.6=x"] {
            assert!(Placements::from_chart(wrong).is_none(), "{wrong}");
        }
    }
}
