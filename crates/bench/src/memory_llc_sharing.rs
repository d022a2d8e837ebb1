//! Sharing of the last-level cache: whether what one CPU reads drives another's data out of the
//! cache.

use crate::row::latency_ns;
use anyhow::Context;
use model::vocabulary::memory as ids;

use super::memory::{cache_bytes, note_memory, resident};
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, check_answer};
use crate::placement::Distance;
use kernels::{Chain, Op, streams};
use model::{Case, CpuSet, Pages, Params, Placement};
use sys::crew::{Partner, Wait};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::LLC_SHARING,
    title: "Last-level cache sharing",
    about: "Whether two CPUs share a last-level cache. One CPU walks a cached block again after another CPU has read \
            a block of the same size.",
    reading: "after=other like after=nothing: the CPUs do not share the cache. after=other like after=itself: they \
              do. In between, the cache protects used data or is partitioned. If after=itself is hardly above \
              after=nothing, the block was never in the cache, and the result is open.",
    method: "Blocks are 65 % of the reported last-level cache, half and a quarter of that. Without a report they are \
             8 and 32 MiB. The other CPU reads its block three times and then rests. The first continues along an \
             eighth of its chain. Two controls belong to each pass: no reads at all, and reads by the first CPU \
             itself, which evict its lines. Both CPUs never work at once, so clock and memory bandwidth have no \
             influence. The chain and the sums are checked.",
    source: file!(),
    metrics: &[latency_ns(ids::metric::LATENCY, "latency")],
    params: &[
        Param::bytes(ids::param::BYTES, "block size, bytes", 1 << 20..=1 << 46),
        Param::choice(ids::param::AFTER, "CPU that read another block before", &AFTER),
    ],
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

/// No CPU, the other CPU, the first one itself.
const AFTER: [&str; 3] = ["nothing", "other", "itself"];

const LINE_BYTES: usize = 64;
/// Of the claimed cache: two such blocks do not fit, one does although others use the cache as
/// well.
const SHARE: f64 = 0.65;
/// And these parts of it: a guest may have much less of the cache than is reported, and only a
/// block that fits shows it.
const PARTS_OF_CLAIM: [u64; 3] = [1, 2, 4];
/// Where no cache is claimed that cores could share.
const UNTOLD: [u64; 2] = [8 << 20, 32 << 20];
/// Passes over the other block: caches that keep what is in use give in.
const PASSES: u64 = 3;
/// Part of the chain that is timed: the lines come in random order, so a part stands for all.
const PART: u64 = 8;
/// Rounds of a pass, the first not counted.
const ROUNDS: usize = 4;
/// For estimates: a load from memory and a byte read, ns.
const LOAD_NS: f64 = 110.0;
const BYTE_NS: f64 = 0.15;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let near = [Distance::SameCpu, Distance::SmtSibling, Distance::SameCluster];
    let pairs = scope
        .placements
        .pairs(["task", "other"])
        .into_iter()
        .filter(|(distance, _)| !near.contains(distance));
    let candidates = pairs.map(|(distance, pair)| match pair {
        Ok(placement) => candidate(bench, scope, placement, distance),
        Err(why) => Candidate::unmet(bench.id, distance.name(), why),
    });
    candidates.collect()
}

fn candidate(bench: &Benchmark, scope: &Scope, placement: Placement, distance: Distance) -> Candidate {
    let cpu = placement.seats.first().and_then(|seat| seat.cpus.first()).unwrap_or(0);
    let claimed = (3..=4).rev().find_map(|level| cache_bytes(scope.machine, cpu, level));
    let sizes: Vec<u64> = match claimed {
        Some(bytes) => {
            let inner = cache_bytes(scope.machine, cpu, 2).unwrap_or(0);
            let whole = (bytes as f64 * SHARE) as u64;
            let sizes = PARTS_OF_CLAIM.map(|part| (whole / part) >> 20 << 20);
            // A smaller block would fit into the nearer cache.
            sizes
                .into_iter()
                .enumerate()
                .filter(|(at, size)| *at == 0 || *size > 2 * inner)
                .map(|(_, size)| size)
                .collect()
        }
        None => UNTOLD.to_vec(),
    };
    let largest = sizes.iter().copied().max().unwrap_or(0);
    // The chain, its linking, and a block to read for each of the two.
    let memory = largest.saturating_mul(3) + largest / 16;
    if largest < 1 << 20 {
        return Candidate::unmet(
            bench.id,
            distance.name(),
            "the kernel reports a last-level cache below 2 MiB".into(),
        );
    }
    if memory > scope.memory_bytes {
        let why = format!(
            "needs three blocks of {} MiB (65 % of the reported cache); {} MiB may be used",
            largest >> 20,
            scope.memory_bytes >> 20
        );
        return Candidate::unmet(bench.id, distance.name(), why);
    }
    let of = |bytes: &u64| {
        let lines = *bytes as f64 / LINE_BYTES as f64;
        let walks = (1.0 + ROUNDS as f64 * (2.0 + 3.0 / PART as f64)) * lines * LOAD_NS;
        let reads = (3.0 + ROUNDS as f64 * 2.0 * PASSES as f64) * *bytes as f64 * BYTE_NS;
        // Linking and touching; and the walk that checks the chain.
        (walks + reads + 2.0 * lines * LOAD_NS) / 1e9
    };
    let seconds = 0.01 + sizes.iter().map(of).sum::<f64>();
    let mut candidate = Candidate::new(bench.id, placement.pages(Pages::Huge), 45, seconds).memory(memory);
    candidate.case.inputs.insert(ids::param::BYTES.into(), super::memory::sizes_input(&sizes));
    candidate
}

fn points(case: &Case) -> Vec<Params> {
    let sizes = super::memory::sizes_of(case);
    sizes.into_iter().flat_map(|bytes| AFTER.map(|after| at(bytes, after))).collect()
}

fn at(bytes: u64, after: &str) -> Params {
    Params::from([(ids::param::BYTES, bytes.into()), (ids::param::AFTER, after.into())])
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let [_, other] = &case.placement.seats[..] else { anyhow::bail!("the case needs two CPUs") };
    for bytes in super::memory::sizes_of(case) {
        size(case, &other.cpus, bytes, sampler)?;
    }
    Ok(())
}

fn size(case: &Case, other: &CpuSet, bytes: u64, sampler: &mut Sampler) -> anyhow::Result<()> {
    let pages = case.placement.pages;
    let nodes = CpuSet::default();
    let block = || resident(bytes, pages, &nodes, |_| 1);
    let mut reader = Partner::start(other, Wait::Sleep, || {
        let mut own = block()?;
        let read = streams(Op::Read).into_iter().next().context("no read loop for this CPU")?;
        Ok(move |passes: u64| Ok(read.run(own.words_mut(), passes, 0)))
    })?;
    let mut memory = resident(bytes, pages, &nodes, |_| 0)?;
    note_memory(sampler, &memory, &nodes);
    let mut own = block()?;
    let read = streams(Op::Read).into_iter().next().context("no read loop for this CPU")?;
    let mut chain = Chain::random(memory.words_mut(), LINE_BYTES, sampler.seed());
    let (clock, lines) = (sampler.clock(), chain.lines() as u64);
    let part = (lines / PART).next_multiple_of(Chain::UNROLL);
    let right = PASSES * (bytes / 8);
    let mut took: [Vec<f64>; 3] = Default::default();
    // In the cache, as far as it holds it.
    chain.walk(lines);
    for _ in 0..ROUNDS {
        for (after, times) in AFTER.into_iter().zip(&mut took) {
            let sum = match after {
                "other" => reader.ask(PASSES)?,
                "itself" => read.run(own.words_mut(), PASSES, 0),
                _ => right,
            };
            check_answer(sum == right, || {
                format!("{PASSES} reads of {bytes} bytes gave the sum {sum}, not {right}")
            })?;
            let begin = clock.now();
            chain.walk(part);
            times.push(clock.now() - begin);
            if after != "nothing" {
                chain.walk(lines);
            }
        }
    }
    check_answer(chain.visits_every_line(), || format!("the chain through {bytes} bytes does not close"))?;
    for (after, ns) in AFTER.into_iter().zip(took) {
        sampler.windows_timed(
            at(bytes, after),
            ids::metric::LATENCY,
            (vec![part as f64; ns.len()], ns),
            1,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;
    use crate::placement::Placements;
    use machine::{Cache, CacheKind, Core, Machine};

    fn planned(llc: Option<u64>, memory_bytes: u64) -> Vec<Candidate> {
        let mut machine = Machine::default();
        machine.cpus.online = (0..2).collect();
        machine.cpus.allowed = (0..2).collect();
        machine.cpus.cores =
            Some((0..2).map(|cpu| Core { cpus: CpuSet::one(cpu), ..Core::default() }).collect());
        machine.caches = llc
            .map(|size| Cache {
                size_bytes: Some(size),
                ..Cache::new(3, CacheKind::Unified, (0..2).collect())
            })
            .into_iter()
            .collect();
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Standard, memory_bytes);
        cases(&BENCHMARKS[0], &scope)
    }

    #[test]
    fn blocks_follow_the_claim_and_what_does_not_fit_says_so() {
        let possible = |all: Vec<Candidate>| -> Vec<Candidate> {
            all.into_iter().filter(|candidate| candidate.unmet.is_none()).collect()
        };
        let shared = possible(planned(Some(100 << 20), 1 << 30));
        assert_eq!((shared.len(), shared[0].case.placement.name.as_ref()), (1, "same-llc"));
        assert_eq!(super::super::memory::sizes_of(&shared[0].case), [65 << 20, 32 << 20, 16 << 20]);
        let hidden = possible(planned(None, 1 << 30));
        assert_eq!((hidden.len(), points(&hidden[0].case).len()), (1, 6));
        let small = planned(Some(1 << 30), 1 << 30);
        assert!(
            small
                .iter()
                .any(|one| one.unmet.as_ref().is_some_and(|why| why.contains("three blocks of 665 MiB")))
        );
    }

    #[test]
    fn every_pair_is_measured_after_nobody_another_and_itself() {
        for mut case in rehearsal::cases(ids::LLC_SHARING, Depth::Standard) {
            case.inputs.insert(ids::param::BYTES.into(), (1u64 << 20).to_string());
            let samples = rehearsal::visit_all(&case);
            assert_eq!(samples.len(), 3);
            assert!(samples.iter().all(|one| one.len() == ROUNDS && one.warm_up == 1));
        }
    }
}
