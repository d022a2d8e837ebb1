//! Blocks, depths, jobs, an engine, a time and a rate that the user wants instead of the profile's.

use super::cases::{
    BYTES, FILL_RATE, MAX_BUFFERS, PACED_LEAST, PACED_S, POINTS, SPREAD, Shape, file_bytes, grid, is_raw,
    points_input, pollable, shapes, usual_file,
};
use super::way::{ASKING, Engines, with_time};
use crate::{Benchmark, Candidate, Scope};
use model::Case;
use model::vocabulary::disk as ids;
use model::vocabulary::{BenchId, ParamId};
use sys::uring;

/// What the user sets for disk benchmarks; what is empty is left to the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Bytes of an I/O of `disk.sequential` and `disk.random`.
    pub blocks: Vec<u64>,
    /// I/Os in flight of each of their jobs.
    pub depths: Vec<u32>,
    /// How many jobs they have at once.
    pub jobs: Option<usize>,
    /// I/Os of `disk.paced` that fall due a second.
    pub rate: Option<u64>,
    /// How I/O is asked for: `uring`, `polled` or `psync`.
    pub engine: Option<&'static str>,
    /// How long each point counts, s.
    pub seconds: Option<u64>,
}

/// Rows whose points and jobs can be chosen.
const CHOSEN: [BenchId; 2] = [ids::SEQUENTIAL, ids::RANDOM];

impl Overrides {
    /// What of it none of these rows could do, in words that say what to do instead.
    pub fn refused(&self, benches: &[&Benchmark]) -> Option<String> {
        let measured = |ids: &[BenchId]| benches.iter().any(|bench| ids.contains(&bench.id));
        let points = !self.blocks.is_empty() || !self.depths.is_empty() || self.jobs.is_some();
        let other = self.rate.is_some() || self.engine.is_some() || self.seconds.is_some();
        if (points || other) && !benches.iter().any(|bench| bench.group() == "disk") {
            return Some(
                "--block, --depth, --jobs, --engine, --io-time and --io-rate are for disk benchmarks: add --only disk".into(),
            );
        }
        if (self.engine.is_some() || self.seconds.is_some()) && !measured(&ASKING) {
            return Some(format!(
                "--engine and --io-time are for {}, none of which is selected: add --only disk.random",
                ASKING.map(BenchId::as_str).join(", ")
            ));
        }
        if points && !measured(&CHOSEN) {
            return Some(
                "--block, --depth and --jobs are for disk.sequential and disk.random, which are not selected: add --only disk.random"
                    .into(),
            );
        }
        if self.rate.is_some() && !measured(&[ids::PACED]) {
            return Some("--io-rate is for disk.paced, which is not selected: add --only disk.paced".into());
        }
        grid(&self.blocks, &self.depths).into_iter().find_map(too_large)
    }
}

/// Why a job cannot have the buffers of a point.
fn too_large(shape: Shape) -> Option<String> {
    let bytes = shape.block * u64::from(shape.depth);
    (bytes > MAX_BUFFERS).then(|| {
        format!(
            "blocks of {} at depth {} need {} MiB of buffers for each job; the limit is {} MiB: choose a smaller block or depth",
            in_words(shape.block),
            shape.depth,
            bytes >> 20,
            MAX_BUFFERS >> 20
        )
    })
}

/// As it is written behind `--block`.
fn in_words(block: u64) -> String {
    match (block >> 20, block >> 10) {
        (mib, _) if mib > 0 && block.is_multiple_of(1 << 20) => format!("{mib}M"),
        (_, kib) if kib > 0 && block.is_multiple_of(1 << 10) => format!("{kib}k"),
        _ => block.to_string(),
    }
}

/// The candidates of a plan, those of the disk rows with the points that are wanted.
pub fn wished(candidates: Vec<Candidate>, overrides: &Overrides, scope: &Scope) -> Vec<Candidate> {
    let engines = Engines { refused: uring::why_unavailable(), pollable: pollable(scope) };
    let mut all: Vec<Candidate> = Vec::new();
    for mut candidate in candidates {
        let bench = candidate.case.id();
        let asks = bench.is_some_and(|bench| ASKING.contains(&bench));
        if asks && !engines.give(&mut candidate, overrides.engine) {
            continue;
        }
        let mut impossible = Vec::new();
        match bench {
            Some(bench) if CHOSEN.contains(&bench) => {
                with_jobs(&mut candidate, overrides, scope);
                impossible = with_points(&mut candidate, overrides, scope);
            }
            Some(ids::PACED) => with_rate(&mut candidate, overrides),
            _ => {}
        }
        if let Some(seconds) = overrides.seconds.filter(|_| asks) {
            with_time(&mut candidate, seconds, scope);
        }
        // Two rates of the profile are one where the user named one, and so are its numbers of
        // jobs.
        for candidate in [candidate].into_iter().chain(impossible) {
            let twice = candidate.case.bench.starts_with("disk.")
                && all.iter().any(|other| other.case.key() == candidate.case.key());
            if !twice {
                all.push(candidate);
            }
        }
    }
    all
}

fn with_jobs(candidate: &mut Candidate, overrides: &Overrides, scope: &Scope) {
    let Some(jobs) = overrides.jobs else { return };
    let before = candidate.case.placement.seats.len().max(1) as u64;
    candidate.case.params.remove(ids::param::JOBS);
    candidate.case.placement = match jobs {
        1 => match scope.placements.one_cpu("job") {
            Ok(one) => one,
            Err(_) => return,
        },
        _ => scope.placements.spread("job", jobs),
    };
    if candidate.case.placement.name == SPREAD {
        candidate.case.params.insert(ids::param::JOBS, jobs as u64);
    }
    let bytes_of = |case: &Case| case.inputs.get(BYTES).and_then(|text| text.parse::<u64>().ok());
    let Some(bytes) = bytes_of(&candidate.case).filter(|_| candidate.unmet.is_none()) else { return };
    let jobs = jobs as u64;
    candidate.memory_bytes = candidate.memory_bytes / before * jobs;
    if is_raw(scope) {
        return;
    }
    match file_bytes(scope, jobs, usual_file(scope.depth)) {
        Ok(own) => {
            candidate.seconds += ((own * jobs) as f64 - (bytes * before) as f64) / FILL_RATE;
            candidate.case.inputs.insert(BYTES.into(), own.to_string());
        }
        Err(why) => candidate.unmet = Some(why),
    }
}

/// Gives a candidate the points that are wanted; those of them that cannot be are returned, each
/// with the reason.
fn with_points(candidate: &mut Candidate, overrides: &Overrides, scope: &Scope) -> Vec<Candidate> {
    let usual = shapes(&candidate.case);
    if (overrides.blocks.is_empty() && overrides.depths.is_empty())
        || usual.is_empty()
        || candidate.unmet.is_some()
    {
        return Vec::new();
    }
    let kept = |mut own: Vec<u64>| {
        own.sort_unstable();
        own.dedup();
        own
    };
    let blocks = match overrides.blocks.as_slice() {
        [] => kept(usual.iter().map(|shape| shape.block).collect()),
        blocks => blocks.to_vec(),
    };
    let text = |name: ParamId| candidate.case.params.get(name).and_then(|value| value.text());
    let direct = text(ids::param::CACHE) != Some("buffered");
    // What blocks, and what goes through the page cache with readahead, has one I/O in flight.
    let alone =
        text(ids::param::ENGINE) == Some("psync") || (candidate.case.bench == ids::SEQUENTIAL && !direct);
    let depths: Vec<u32> = match overrides.depths.as_slice() {
        _ if alone => vec![1],
        [] => kept(usual.iter().map(|shape| u64::from(shape.depth)).collect())
            .into_iter()
            .map(|depth| depth as u32)
            .collect(),
        depths => depths.to_vec(),
    };
    let why_not = |shape: Shape| too_large(shape).or_else(|| uneven(shape, scope).filter(|_| direct));
    let (wanted, impossible): (Vec<Shape>, Vec<Shape>) =
        grid(&blocks, &depths).into_iter().partition(|shape| why_not(*shape).is_none());
    let refused = |shape: &Shape| Candidate {
        case: with_shapes(&candidate.case, &[*shape]),
        unmet: why_not(*shape),
        ..*candidate
    };
    let refused: Vec<Candidate> = impossible.iter().map(refused).collect();
    let refused = refused.into_iter().map(|one| {
        let shape = shapes(&one.case)[0];
        one.param(ids::param::BLOCK, shape.block).param(ids::param::DEPTH, u64::from(shape.depth))
    });
    let refused: Vec<Candidate> = refused.collect();
    if wanted.is_empty() {
        candidate.unmet = impossible.first().and_then(|shape| why_not(*shape));
        return refused.into_iter().skip(1).collect();
    }
    let buffers =
        |shapes: &[Shape]| shapes.iter().map(|one| one.block * u64::from(one.depth)).max().unwrap_or(0);
    let jobs = candidate.case.placement.seats.len().max(1) as u64;
    let more = buffers(&wanted).saturating_sub(buffers(&usual));
    candidate.memory_bytes += more * jobs;
    candidate.seconds *= (wanted.len() as f64 / usual.len() as f64).max(1.0);
    candidate.case = with_shapes(&candidate.case, &wanted);
    refused
}

fn with_shapes(case: &Case, shapes: &[Shape]) -> Case {
    let mut case = case.clone();
    case.inputs.insert(POINTS.into(), points_input(shapes));
    case
}

/// Why blocks of such a size cannot go past the page cache: the device has larger ones.
fn uneven(shape: Shape, scope: &Scope) -> Option<String> {
    let stack = &scope.machine.disk.as_ref()?.stack;
    // A partition has those of its disk.
    let (name, own) = stack.iter().find_map(|block| Some((&block.name, block.logical_block_bytes?)))?;
    let own = u64::from(own);
    (own > 0 && !shape.block.is_multiple_of(own)).then(|| {
        format!(
            "blocks of {} are no multiple of the {own} bytes of a block of {name}, which O_DIRECT needs: name a multiple of \
             {} by --block",
            in_words(shape.block),
            in_words(own)
        )
    })
}

fn with_rate(candidate: &mut Candidate, overrides: &Overrides) {
    let Some(rate) = overrides.rate else { return };
    let usual =
        candidate.case.params.get(ids::param::RATE).and_then(|value| value.number()).unwrap_or(rate as f64);
    let seconds = |rate: f64| (PACED_LEAST as f64 / rate).max(PACED_S);
    candidate.seconds += seconds(rate as f64) - seconds(usual);
    candidate.case.params.insert(ids::param::RATE, rate);
}

#[cfg(test)]
mod tests {
    use super::super::BENCHMARKS;
    use super::*;
    use crate::placement::Placements;
    use crate::{Depth, Scope};
    use machine::disk::Block;
    use machine::{Directory, Disk, Machine};

    /// What the rows offer with these overrides on a host with this many CPUs and a disk whose
    /// blocks have this many bytes.
    fn offered_on(cpus: u32, logical: u32, overrides: &Overrides) -> Vec<Candidate> {
        let mut machine = Machine::default();
        machine.cpus.online = (0..cpus).collect();
        let blocks = [("vda1", None), ("vda", Some(logical))];
        let block = |(name, logical): (&str, Option<u32>)| Block {
            name: name.into(),
            logical_block_bytes: logical,
            ..Block::default()
        };
        machine.disk = Some(Disk { stack: blocks.map(block).into(), ..Disk::default() });
        machine.directory = Some(Directory { free_bytes: Some(1 << 40), ..Directory::default() });
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Full, 1 << 30);
        let all = BENCHMARKS.iter().flat_map(|bench| (bench.cases)(bench, &scope)).collect();
        wished(all, overrides, &scope)
    }

    fn offered(overrides: &Overrides) -> Vec<Candidate> {
        offered_on(1, 512, overrides)
    }

    fn of<'a>(all: &'a [Candidate], key: &str) -> &'a Candidate {
        let keys = || all.iter().map(|one| one.case.key()).collect::<Vec<_>>();
        all.iter().find(|one| one.case.key() == key).unwrap_or_else(|| panic!("no {key} in {:?}", keys()))
    }

    #[test]
    fn the_users_blocks_and_depths_take_the_profiles_place() {
        let overrides = Overrides {
            blocks: vec![8192, 1 << 20],
            depths: vec![2],
            rate: Some(300),
            ..Overrides::default()
        };
        let (usual, all) = (offered(&Overrides::default()), offered(&overrides));
        let of = |all: &[Candidate], key: &str| {
            let found = of(all, key);
            (shapes(&found.case), found.seconds)
        };
        let both = [Shape { block: 8192, depth: 2 }, Shape { block: 1 << 20, depth: 2 }];
        assert_eq!(of(&all, "disk.random@one-cpu?cache=direct&op=read").0, both);
        assert_eq!(of(&all, "disk.sequential@one-cpu?cache=direct&op=write").0, both);
        let blocking = of(&all, "disk.random@one-cpu?cache=direct&engine=psync&op=read").0;
        assert!(blocking.len() == 2 && blocking.iter().all(|shape| shape.depth == 1));
        // Two rates of reads are one now, and it takes longer: a percentile needs its I/Os.
        let paced = |all: &[Candidate]| all.iter().filter(|one| one.case.bench == ids::PACED).count();
        assert_eq!((paced(&usual), paced(&all)), (4, 3));
        let slow = of(&all, "disk.paced@one-cpu?cache=direct&op=write&rate=300").1;
        assert!(slow > of(&usual, "disk.paced@one-cpu?cache=direct&op=write&rate=1000").1 + 2.0, "{slow}");
    }

    fn rows(ids: &[BenchId]) -> Vec<&'static Benchmark> {
        BENCHMARKS.iter().filter(|bench| ids.contains(&bench.id)).collect()
    }

    #[test]
    fn what_no_row_could_do_is_refused_in_words() {
        let nothing = Overrides::default();
        let (block, rate) = (
            Overrides { blocks: vec![4096], ..nothing.clone() },
            Overrides { rate: Some(500), ..nothing.clone() },
        );
        let jobs = Overrides { jobs: Some(4), ..nothing.clone() };
        let says = |overrides: &Overrides, ids: &[BenchId], words: &str| {
            let why = overrides.refused(&rows(ids)).expect("refused");
            assert!(why.contains(words), "{why}");
        };
        says(&block, &[], "are for disk benchmarks");
        says(&rate, &[ids::RANDOM], "--only disk.paced");
        says(&block, &[ids::SYNC, ids::PACED], "--only disk.random");
        says(&jobs, &[ids::PACED], "--only disk.random");
        let deep = Overrides { blocks: vec![1 << 20, 4 << 20], depths: vec![32], ..nothing.clone() };
        says(&deep, &[ids::RANDOM], "blocks of 4M at depth 32 need 128 MiB");
        let fits = Overrides { blocks: vec![1 << 20, 2 << 20], ..deep };
        for (overrides, ids) in [
            (&nothing, [ids::SYNC].as_slice()),
            (&fits, &[ids::SEQUENTIAL]),
            (&rate, &[ids::SYNC, ids::PACED]),
            (&jobs, &[ids::RANDOM]),
        ] {
            assert_eq!(overrides.refused(&rows(ids)), None);
        }
    }

    #[test]
    fn points_that_cannot_be_are_in_the_plan_with_the_reason() {
        // The profile's depths reach 128, and 64 MiB of buffers are for 8 blocks of 8 MiB.
        let all = offered(&Overrides { blocks: vec![8 << 20], ..Overrides::default() });
        let read = of(&all, "disk.random@one-cpu?cache=direct&op=read");
        assert!(read.unmet.is_none() && shapes(&read.case).iter().all(|shape| shape.depth <= 8));
        let deep = of(&all, "disk.random@one-cpu?block=8388608&cache=direct&depth=128&op=read");
        assert!(deep.unmet.as_ref().is_some_and(|why| why.contains("1024 MiB")), "{:?}", deep.unmet);
        // Sectors of 4096 bytes: what goes past the cache cannot be smaller, what goes through it
        // can.
        let all =
            offered_on(1, 4096, &Overrides { blocks: vec![512], depths: vec![1], ..Overrides::default() });
        let direct = of(&all, "disk.random@one-cpu?cache=direct&op=read");
        let why = direct.unmet.as_ref().expect("impossible");
        assert!(why.contains("blocks of 512") && why.contains("4096 bytes of a block of vda"), "{why}");
        assert!(of(&all, "disk.random@one-cpu?cache=buffered&op=read").unmet.is_none());
        let even =
            offered_on(1, 512, &Overrides { blocks: vec![512], depths: vec![1], ..Overrides::default() });
        assert!(of(&even, "disk.random@one-cpu?cache=direct&op=read").unmet.is_none());
    }

    #[test]
    fn the_profiles_own_points_are_all_measured() {
        for candidate in offered_on(4, 512, &Overrides::default()) {
            for shape in shapes(&candidate.case) {
                // Paced I/O has its depth for the worst case only.
                assert_eq!(too_large(shape), None, "{}", candidate.case.key());
            }
        }
    }

    #[test]
    fn jobs_are_as_many_as_are_wanted_and_named_by_their_number() {
        let cpus = |candidate: &Candidate| -> Vec<u32> {
            candidate.case.placement.seats.iter().flat_map(|seat| seat.cpus.iter()).collect()
        };
        let of_jobs = |jobs| offered_on(4, 512, &Overrides { jobs: Some(jobs), ..Overrides::default() });
        let all = of_jobs(6);
        let six = of(&all, "disk.random@spread?cache=direct&jobs=6&op=read");
        assert_eq!(cpus(six), [0, 1, 2, 3, 0, 1]);
        let both = all.iter().filter(|one| one.case.bench == ids::RANDOM && one.unmet.is_none());
        assert!(both.clone().count() > 2 && both.clone().all(|one| cpus(one).len() == 6));
        let usual = offered_on(4, 512, &Overrides::default());
        let one = of(&usual, "disk.random@one-cpu?cache=direct&op=read");
        assert_eq!(six.memory_bytes, one.memory_bytes * 6);
        assert!(six.seconds > one.seconds, "six files are filled");
        assert_eq!(cpus(of(&of_jobs(2), "disk.sequential@spread?cache=direct&jobs=2&op=read")), [0, 2]);
        let alone = of_jobs(1);
        assert_eq!(cpus(of(&alone, "disk.random@one-cpu?cache=direct&op=read")).len(), 1);
        assert!(alone.iter().all(|one| one.case.placement.name == "one-cpu"));
    }

    #[test]
    fn another_time_is_another_case_and_takes_as_long() {
        let long = offered(&Overrides { seconds: Some(300), ..Overrides::default() });
        let usual = offered(&Overrides::default());
        let sustained = of(&long, "disk.sustained@one-cpu?cache=direct&op=write&seconds=300");
        let before = of(&usual, "disk.sustained@one-cpu?cache=direct&op=write");
        assert!((sustained.seconds - before.seconds - 240.0).abs() < 1e-6);
        assert!(of(&long, "disk.paced@one-cpu?cache=direct&op=read&rate=1000&seconds=300").seconds > 300.0);
        assert!(long.iter().any(|one| one.case.key() == "disk.trim@one-cpu"), "others stay as they are");
    }

    #[test]
    fn more_cores_than_jobs_are_taken_evenly() {
        let all = offered_on(96, 512, &Overrides::default());
        let many = of(&all, "disk.random@spread?cache=direct&jobs=64&op=read");
        let cpus: Vec<u32> = many.case.placement.seats.iter().flat_map(|seat| seat.cpus.iter()).collect();
        assert_eq!((cpus.len(), cpus[0], cpus[63]), (64, 0, 94));
        assert!(cpus.windows(2).all(|pair| pair[1] - pair[0] == 1 || pair[1] - pair[0] == 2), "{cpus:?}");
        let key = "disk.random@one-per-core?cache=direct&op=read";
        assert!(offered_on(64, 512, &Overrides::default()).iter().any(|one| one.case.key() == key));
    }
}
