//! A parent that holds more and more memory, and what each further GB adds to what it does.

use anyhow::{Context, bail};
use model::vocabulary::kernel as ids;

use super::memory::note_memory;
use super::{Candidate, Depth, Param, Sampler, Scope};
use model::{Better, Case, CpuSet, Form, Metric, Pages, Params};
use sys::mapping::Mapping;

pub const PARAM: Param = Param::int(
    ids::param::RESIDENT_MB,
    "written memory of the parent, MiB, besides Assay's own",
    0..=1 << 20,
);

pub const PER_GB: Metric =
    Metric::new(ids::metric::PER_GB, "each further GB of memory", "ms/GB", Better::Lower, Form::Value);

/// What a plan reckons with, s a GiB: writing memory, and copying its page tables.
const WRITE_S: f64 = 0.5;
const FORK_S: f64 = 0.03;

/// A share of whole pages, as a number.
const ROUNDING: f64 = 1e-9;

/// Gives a case the sizes that belong to this depth and fit, with their time and memory.
pub fn plan(candidate: &mut Candidate, scope: &Scope, sizes: &[(u64, Depth)], stretch: f64) {
    let fits = |(mb, from): &&(u64, Depth)| *from <= scope.depth && *mb << 20 <= scope.memory_bytes;
    let sizes: Vec<u64> = sizes.iter().filter(fits).map(|(mb, _)| *mb).collect();
    let Some(largest) = sizes.last().copied() else { return };
    candidate.case.inputs.insert(PARAM.name.into(), super::memory::sizes_input(&sizes));
    candidate.memory_bytes = candidate.memory_bytes.max(largest << 20);
    if candidate.unmet.is_none() {
        // Slow forks fill a sample one by one.
        let forks = (scope.windows.count + scope.windows.warm_up + 5) as f64;
        let gib = |mb: u64| mb as f64 / 1024.0;
        let slow: f64 = sizes.iter().map(|mb| gib(*mb) * FORK_S * forks).sum();
        candidate.seconds += scope.seconds(sizes.len(), stretch, gib(largest) * WRITE_S + slow);
    }
}

/// MiB of a case's parent, one after the other.
pub fn sizes(case: &Case) -> Vec<u64> {
    let list = case.inputs.get(&*PARAM.name).map_or("", String::as_str);
    list.split(',').filter_map(|size| size.parse().ok()).collect()
}

/// The memory of the parent, which is this process.
pub struct Resident {
    memory: Mapping,
    nodes: CpuSet,
    /// Words that were written.
    written: usize,
    /// Bytes held, and what an operation took with them, ns.
    took: Vec<(f64, f64)>,
}

impl Resident {
    /// Maps what the largest of a case's sizes needs, and writes nothing yet.
    pub fn of(case: &Case, pages: Pages) -> anyhow::Result<Resident> {
        let largest = sizes(case).into_iter().max().unwrap_or(0) << 20;
        let largest = usize::try_from(largest).context("more memory than addresses")?;
        let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
        let memory = Mapping::private(largest, pages, &nodes)
            .with_context(|| format!("cannot map {largest} bytes"))?;
        Ok(Resident { memory, nodes, written: 0, took: Vec::new() })
    }

    /// Writes what is not written yet, and checks that the parent holds it.
    pub fn grow(&mut self, mb: u64) -> anyhow::Result<()> {
        let words = ((mb << 20) as usize / 8).max(self.written);
        for (index, word) in self.memory.words_mut()[self.written..words].iter_mut().enumerate() {
            *word = index as u64;
        }
        self.written = words;
        let held = self.memory.resident_share().context("cannot check that memory is resident")?;
        let held = held * self.memory.len() as f64;
        let wanted = (words * 8) as f64;
        if held < wanted * (1.0 - ROUNDING) {
            bail!("only {held:.0} of {wanted:.0} bytes stayed in memory: free some memory");
        }
        Ok(())
    }

    /// Notes the time of an operation, ns, for this size of the parent.
    pub fn took(&mut self, mb: u64, ns: f64) {
        self.took.push(((mb << 20) as f64, ns));
    }

    /// Notes the memory in the pass's facts.
    pub fn note(&self, sampler: &mut Sampler) {
        note_memory(sampler, &self.memory, &self.nodes);
    }

    /// Emits [`PER_GB`], the slope through all that was noted.
    pub fn per_gb(&self, sampler: &mut Sampler) -> anyhow::Result<()> {
        let Some(slope) = slope(&self.took) else { return Ok(()) };
        let spent = self.took.iter().map(|(_, ns)| ns).sum();
        // ns a byte are s a GB.
        sampler.value(Params::new(), ids::metric::PER_GB, slope * 1e3, spent)
    }
}

/// The slope of the straight line of least squares through these points; `None` of fewer than two.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 0.0).then(|| together / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_least_squares() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(2.0));
        let noisy = slope(&[(0.0, 0.0), (1.0, 1.5), (2.0, 1.5), (3.0, 3.0)]).expect("a slope");
        assert!((noisy - 0.9).abs() < 1e-12, "{noisy}");
        assert_eq!(slope(&[(1.0, 5.0)]), None);
        assert_eq!(slope(&[(1.0, 5.0), (1.0, 6.0)]), None);
    }
}
