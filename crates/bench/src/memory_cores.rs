//! All cores at once, each by itself: which core is slower than its neighbours?

use super::memory::cache_ladder;
use super::stream_crew::Crew;
use super::{Benchmark, Candidate, Param, Point, Sampler, Scope, point};
use crate::row::{curve, gb_per_s};
use kernels::{BLOCK_BYTES, Op};
use model::vocabulary::memory as ids;
use model::{Case, Params};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::CORES,
    title: "L1 bandwidth of each core",
    about: "L1 read bandwidth of each core while all cores work. It shows cores that are slower than the others, and \
            computing errors.",
    reading: "A flat line is good. A core reads 60–95 % of its clock times its load width (128 bytes with AVX-512, \
              64 with AVX2, 32–64 on ARM). One low CPU is throttled, or other work uses it or its SMT sibling. Two \
              levels are two kinds of cores or packages with different clocks. A wrong sum is a faulty core: take \
              the host out of service.",
    method: "One task on one CPU of every core reads half of its L1 data cache with the widest vectors. Each is \
             timed from its own start to its own end. Only power and clock are shared. Every task adds up all that \
             it reads, and a wrong sum names its CPU.",
    source: file!(),
    metrics: &[gb_per_s(ids::metric::BANDWIDTH, "bandwidth of a core")],
    params: &[Param::cpu(ids::param::CPU, "CPU that reads")],
    view: &curve(ids::param::CPU),
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

/// The block is worked through within a microsecond: samples need not be longer than this, ns.
const LONG_ENOUGH_NS: f64 = 2e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placement = scope.placements.one_per_core("reader");
    match placement.seats.len() {
        0 => {
            return vec![Candidate::unmet(bench.id, "one-per-core", "no usable CPU found".to_string())];
        }
        1 => {
            let why = "needs two usable cores".to_string();
            return vec![Candidate::unmet(bench.id, "one-per-core", why)];
        }
        _ => {}
    }
    let cores = placement.seats.len() as u64;
    // The smallest of all: big and little cores read the same block.
    let smallest = scope.machine.data_caches(1).filter_map(|cache| cache.size_bytes).min();
    let smallest = smallest.unwrap_or(cache_ladder(scope.machine, &placement)[0]);
    let bytes = (smallest / 2 / BLOCK_BYTES as u64 * BLOCK_BYTES as u64).max(BLOCK_BYTES as u64);
    // All points share their samples; forking and waking takes its time on each core.
    let seconds = scope.seconds(1, scope.windows.no_longer_than(LONG_ENOUGH_NS), cores as f64 * 2e-3);
    let mut candidate = Candidate::new(bench.id, placement, 80, seconds).memory(bytes * cores);
    candidate.case.inputs.insert(ids::param::BYTES.into(), bytes.to_string());
    vec![candidate]
}

/// The CPU of each seat.
fn cpus(case: &Case) -> impl Iterator<Item = u32> + '_ {
    case.placement.seats.iter().filter_map(|seat| seat.cpus.first())
}

fn points(case: &Case) -> Vec<Params> {
    cpus(case).map(|cpu| point(ids::param::CPU, u64::from(cpu))).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let bytes = super::memory::sizes_of(case).first().copied().unwrap_or(BLOCK_BYTES as u64);
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS);
    let mut crew = Crew::start(case, Op::Read, bytes, sampler)?;
    let at = |params| Point::new(ids::metric::BANDWIDTH, bytes as f64).at(params).stretch(stretch);
    sampler.time_each(points(case).into_iter().map(at).collect(), |passes| crew.work_each(bytes, passes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Depth;
    use crate::placement::Placements;
    use machine::{Cache, CacheKind, Core, Machine};
    use model::CpuSet;

    fn planned(machine: &Machine) -> Candidate {
        let placements = Placements::of(machine);
        let windows = Depth::Quick.windows();
        let (memory_bytes, depth) = (1 << 28, Depth::Quick);
        let scope = Scope { machine, placements: &placements, depth, memory_bytes, windows, all: false };
        cases(&BENCHMARKS[0], &scope).remove(0)
    }

    #[test]
    fn a_point_a_core_and_the_block_of_the_smallest_l1() {
        let mut machine = Machine::default();
        machine.cpus.online = (0..8).collect();
        let siblings = |core: u32| [core, core + 4].into_iter().collect();
        machine.cpus.cores =
            Some((0..4).map(|core| Core { cpus: siblings(core), ..Core::default() }).collect());
        machine.caches = (0..4)
            .map(|core| Cache {
                size_bytes: Some(if core == 2 { 32 << 10 } else { 48 << 10 }),
                ..Cache::new(1, CacheKind::Data, siblings(core))
            })
            .collect();
        let planned = planned(&machine);
        let cpus: Vec<i64> =
            points(&planned.case).iter().filter_map(|point| point[ids::param::CPU].int()).collect();
        assert_eq!(cpus, [0, 1, 2, 3]);
        assert_eq!(planned.case.inputs["bytes"], (16u32 << 10).to_string());
        assert_eq!(planned.memory_bytes, 4 * (16 << 10));
    }

    #[test]
    fn one_core_has_nothing_to_be_compared_with() {
        let mut machine = Machine::default();
        machine.cpus.online = CpuSet::one(0);
        assert!(planned(&machine).unmet.is_some_and(|why| why.contains("two usable cores")));
        assert!(planned(&Machine::default()).unmet.is_some());
    }
}
