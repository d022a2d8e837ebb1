//! Blocks, depths and a rate that the user wants instead of the profile's.

use super::cases::{PACED_LEAST, PACED_S, Shape, grid, points_input, shapes};
use crate::bench::Candidate;

/// What is wanted of the disk rows; what is empty is left to the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// Bytes of an I/O of `disk.sequential` and `disk.random`.
    pub blocks: Vec<u64>,
    /// I/Os in flight of each of their jobs.
    pub depths: Vec<u32>,
    /// I/Os of `disk.paced` that fall due a second.
    pub rate: Option<u64>,
}

/// The candidates of a plan, those of the disk rows with the points that are wanted.
pub fn wished(candidates: Vec<Candidate>, wish: &Wish) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for mut candidate in candidates {
        match candidate.case.bench.as_ref() {
            "disk.sequential" | "disk.random" => with_points(&mut candidate, wish),
            "disk.paced" => with_rate(&mut candidate, wish),
            _ => {}
        }
        // Two rates of the profile are one where the user named one.
        let twice = all
            .iter()
            .any(|other| other.case.bench == "disk.paced" && other.case.key() == candidate.case.key());
        if !twice {
            all.push(candidate);
        }
    }
    all
}

fn with_points(candidate: &mut Candidate, wish: &Wish) {
    let usual = shapes(&candidate.case);
    if (wish.blocks.is_empty() && wish.depths.is_empty()) || usual.is_empty() {
        return;
    }
    let kept = |mut own: Vec<u64>| {
        own.sort_unstable();
        own.dedup();
        own
    };
    let blocks = match wish.blocks.as_slice() {
        [] => kept(usual.iter().map(|shape| shape.block).collect()),
        blocks => blocks.to_vec(),
    };
    let text = |name: &str| candidate.case.params.get(name).and_then(|value| value.text());
    // What blocks, and what goes through the page cache with readahead, has one I/O in flight.
    let alone = text("engine") == Some("psync")
        || (candidate.case.bench == "disk.sequential" && text("cache") == Some("buffered"));
    let depths: Vec<u32> = match wish.depths.as_slice() {
        _ if alone => vec![1],
        [] => kept(usual.iter().map(|shape| u64::from(shape.depth)).collect())
            .into_iter()
            .map(|depth| depth as u32)
            .collect(),
        depths => depths.to_vec(),
    };
    let wanted = grid(&blocks, &depths);
    if wanted.is_empty() {
        candidate.unmet = Some("blocks times depth are more than 64 MiB: name smaller ones".into());
        return;
    }
    let buffers =
        |shapes: &[Shape]| shapes.iter().map(|one| one.block * u64::from(one.depth)).max().unwrap_or(0);
    let jobs = candidate.case.placement.seats.len().max(1) as u64;
    let more = buffers(&wanted).saturating_sub(buffers(&usual));
    candidate.memory_bytes += more * jobs;
    candidate.seconds *= (wanted.len() as f64 / usual.len() as f64).max(1.0);
    candidate.case.inputs.insert(super::cases::POINTS.into(), points_input(&wanted));
}

fn with_rate(candidate: &mut Candidate, wish: &Wish) {
    let Some(rate) = wish.rate else { return };
    let usual = candidate.case.params.get("rate").and_then(|value| value.number()).unwrap_or(rate as f64);
    let seconds = |rate: f64| (PACED_LEAST as f64 / rate).max(PACED_S);
    candidate.seconds += seconds(rate as f64) - seconds(usual);
    candidate.case.params.insert("rate".into(), rate.into());
}

#[cfg(test)]
mod tests {
    use super::super::BENCHMARKS;
    use super::*;
    use crate::bench::{Depth, Scope, Windows};
    use crate::machine::Machine;
    use crate::placement::Floor;

    fn offered() -> Vec<Candidate> {
        let mut machine = Machine::default();
        machine.cpus.online = (0..1).collect();
        let floor = Floor::of(&machine);
        let scope = Scope {
            machine: &machine,
            floor: &floor,
            depth: Depth::Full,
            memory_bytes: 1 << 30,
            windows: Windows { window_ns: 1e6, count: 3, warm_up: 1, limit_s: 1.0 },
            all: false,
        };
        BENCHMARKS.iter().flat_map(|bench| (bench.cases)(bench, &scope)).collect()
    }

    #[test]
    fn the_users_blocks_and_depths_take_the_profiles_place() {
        let wish = Wish { blocks: vec![8192, 1 << 20], depths: vec![2], rate: Some(300) };
        let (usual, all) = (offered(), wished(offered(), &wish));
        let of = |all: &[Candidate], key: &str| {
            let found = all.iter().find(|one| one.case.key() == key).expect("offered");
            (shapes(&found.case), found.seconds)
        };
        let both = [Shape { block: 8192, depth: 2 }, Shape { block: 1 << 20, depth: 2 }];
        assert_eq!(of(&all, "disk.random@one-cpu?cache=direct&op=read").0, both);
        assert_eq!(of(&all, "disk.sequential@one-cpu?cache=direct&op=write").0, both);
        let blocking = of(&all, "disk.random@one-cpu?cache=direct&engine=psync&op=read").0;
        assert!(blocking.len() == 2 && blocking.iter().all(|shape| shape.depth == 1));
        // Two rates of reads are one now, and it takes longer: a percentile needs its I/Os.
        let paced = |all: &[Candidate]| all.iter().filter(|one| one.case.bench == "disk.paced").count();
        assert_eq!((paced(&usual), paced(&all)), (4, 3));
        let slow = of(&all, "disk.paced@one-cpu?cache=direct&op=write&rate=300").1;
        assert!(slow > of(&usual, "disk.paced@one-cpu?cache=direct&op=write&rate=1000").1 + 2.0, "{slow}");
        // Nothing wished, nothing changed.
        let same = wished(offered(), &Wish::default());
        assert!(same.iter().zip(&usual).all(|(one, other)| one.case == other.case));
        let large = wished(offered(), &Wish { blocks: vec![8 << 20], depths: vec![64], rate: None });
        let refused = large.iter().find(|one| one.case.bench == "disk.random").expect("offered");
        assert!(refused.unmet.as_ref().is_some_and(|why| why.contains("64 MiB")));
    }
}
