//! Where two tasks sat relative to each other while the scheduler was free to choose: shares of
//! their rounds by distance.

use std::sync::atomic::Ordering;

use super::{Param, point};
use crate::placement::{Distance, Placements};
use crate::row::note;
use model::vocabulary::MetricId;
use model::vocabulary::ipc as ids;
use model::{Case, Metric, Params};
use sys::affinity;
use sys::crew::Lines;

/// At points `class=NAME`: the share of rounds that the two tasks spent at that distance, 0..1.
pub const OCCUPANCY: Metric = note(ids::metric::OCCUPANCY, "share of rounds at this distance", "");

/// The parameter of these points.
pub const CLASS: Param = Param::choice(
    ids::param::CLASS,
    "distance of the two tasks",
    &[
        "same-cpu",
        "smt-sibling",
        "same-cluster",
        "same-llc",
        "other-llc",
        "other-node",
        "other-package",
        "other-cpu",
    ],
);

/// Counts observations of two CPUs by their distance.
pub struct Occupancy {
    placements: Placements,
    classes: Vec<Distance>,
    looks: Vec<u64>,
    /// The pair of CPUs of the last observation, and its class.
    last: Option<((u32, u32), usize)>,
}

/// The name of a case's input that holds [`Placements::chart`].
const CHART: &str = "chart";
/// A longer description is not kept; then only one CPU or two are distinguished.
const LONGEST_CHART: usize = 16 << 10;

/// Notes in a case of a free pair how the CPUs relate.
pub fn tell(case: &mut Case, placements: &Placements) {
    let chart = placements.chart();
    if case.placement.is_free() && chart.len() <= LONGEST_CHART {
        case.inputs.insert(CHART.to_string(), chart);
    }
}

impl Occupancy {
    /// Of a case whose tasks are free; `None` where their place is given.
    pub fn of(case: &Case) -> Option<Occupancy> {
        if !case.placement.is_free() {
            return None;
        }
        let placements = Placements::from_chart(case.inputs.get(CHART).map_or("", String::as_str))?;
        let mut classes = placements.distances();
        for always in [Distance::SameCpu, Distance::OtherCpu] {
            // Without a chart nothing more is known.
            if !classes.contains(&always) && (always == Distance::SameCpu || classes.len() < 2) {
                classes.push(always);
            }
        }
        Some(Occupancy { looks: vec![0; classes.len()], classes, placements, last: None })
    }

    /// Counts `times` observations of the tasks on these CPUs.
    pub fn look(&mut self, one: u32, other: u32, times: u64) {
        let class = match self.last {
            Some((pair, class)) if pair == (one, other) => class,
            _ => {
                let distance = self.placements.distance(one, other);
                let class = self.classes.iter().position(|class| *class == distance);
                class.unwrap_or_else(|| {
                    // CPUs that came online since: an unexpected distance.
                    self.classes.push(distance);
                    self.looks.push(0);
                    self.classes.len() - 1
                })
            }
        };
        self.last = Some(((one, other), class));
        self.looks[class] += times;
    }

    /// Observations since the last [`Self::take`].
    pub fn looks(&self) -> u64 {
        self.looks.iter().sum()
    }

    /// Observations by class since the last [`Self::take`], in the order of [`Self::notes`].
    pub fn counts(&self) -> &[u64] {
        &self.looks
    }

    /// Counts observations of another process with the same chart.
    pub fn add(&mut self, class: usize, times: u64) {
        if let Some(looks) = self.looks.get_mut(class) {
            *looks += times;
        }
    }

    /// The shares of the classes that [`Self::notes`] names, of the observations since the last
    /// call; NaN without any.
    pub fn take(&mut self) -> Vec<f64> {
        let all = self.looks() as f64;
        let shares = self.looks.iter().map(|looks| *looks as f64 / all).collect();
        self.looks.fill(0);
        shares
    }

    /// The series that the shares belong to.
    pub fn notes(&self, at: &Params) -> Vec<(Params, MetricId)> {
        let note = |class: &Distance| {
            let mut at = at.clone();
            at.extend(point(ids::param::CLASS, class.name()));
            (at, ids::metric::OCCUPANCY)
        };
        self.classes.iter().map(note).collect()
    }
}

/// The place where a partner notes its CPU for the caller.
pub struct CpuNote {
    cpu: Lines,
    /// `None` where places are given.
    seen: Option<Occupancy>,
}

impl CpuNote {
    /// To be made before the partner is forked.
    pub fn new() -> anyhow::Result<CpuNote> {
        Ok(CpuNote { cpu: Lines::new(1)?, seen: None })
    }

    /// From now on observations count, if the tasks of this case are free.
    pub fn watch(&mut self, case: &Case) {
        self.seen = Occupancy::of(case);
    }

    /// The partner's part.
    pub fn note(&self) {
        let here = affinity::current_cpu().map_or(0, u64::from);
        self.cpu[0].store(here, Ordering::Relaxed);
    }

    /// The caller's part.
    pub fn look(&mut self) {
        if let (Some(seen), Some(here)) = (&mut self.seen, affinity::current_cpu()) {
            seen.look(here, self.cpu[0].load(Ordering::Relaxed) as u32, 1);
        }
    }

    /// The series of the shares.
    pub fn notes(&self, at: &Params) -> Vec<(Params, MetricId)> {
        self.seen.as_ref().map_or_else(Vec::new, |seen| seen.notes(at))
    }

    /// The shares since the last call; at least of where both are now.
    pub fn take(&mut self) -> Vec<f64> {
        if self.seen.as_ref().is_some_and(|seen| seen.looks() == 0) {
            self.look();
        }
        self.seen.as_mut().map_or_else(Vec::new, Occupancy::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Candidate;
    use machine::{Core, Machine};
    use model::CpuSet;

    fn occupancy(cores: &[&str]) -> Occupancy {
        let mut machine = Machine::default();
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        machine.cpus.online = set("0-3");
        machine.cpus.cores =
            Some(cores.iter().map(|cpus| Core { cpus: set(cpus), ..Core::default() }).collect());
        let placements = Placements::of(&machine);
        let free = placements.free(&["ping", "pong"]).expect("CPUs");
        let mut case = Candidate::new(ids::PIPE, free, 1, 1.0).case;
        tell(&mut case, &placements);
        Occupancy::of(&case).expect("free")
    }

    #[test]
    fn looks_are_shared_out_by_distance() {
        let mut seen = occupancy(&["0-1", "2-3"]);
        seen.look(0, 0, 1);
        seen.look(0, 1, 2);
        seen.look(3, 0, 5);
        let notes = seen.notes(&point(model::vocabulary::sched::param::KB, 16u64));
        let names: Vec<String> = notes
            .iter()
            .map(|(at, _)| format!("{} {}", at[ids::param::CLASS], at[model::vocabulary::sched::param::KB]))
            .collect();
        assert_eq!(names, ["same-cpu 16", "smt-sibling 16", "other-cpu 16"]);
        assert_eq!(seen.take(), [0.125, 0.25, 0.625]);
        assert!(seen.take().iter().all(|share| share.is_nan()), "nobody looked since");
    }

    #[test]
    fn what_is_not_told_is_one_cpu_or_another() {
        let mut seen = occupancy(&[]);
        seen.look(0, 0, 1);
        seen.look(0, 1, 3);
        assert_eq!(seen.take(), [0.25, 0.75]);
        assert_eq!(seen.notes(&Params::new()).len(), 2);
    }
}
