//! Which cases of the disk rows fit a profile, a filesystem and its room.

use std::path::Path;

use super::super::file::{in_directory, room};
use crate::{Benchmark, Candidate, Depth, Scope};
use model::vocabulary::disk as ids;
use model::vocabulary::{BenchId, ParamId};
use model::{Case, Params, Placement};
use sys::counters::has_polled_queues;
use sys::scratch;

/// The input that names a raw block device to be used instead of files, and the one that allows
/// writing to it (`yes`).
pub const DEVICE: &str = "device";
pub const DEVICE_WRITE: &str = "device_write";
/// The inputs that identify the device that was confirmed under that path: its number (`8:16`), its
/// size in bytes, and what it held (`sys::medium`).
pub const DEVICE_NUMBER: &str = "device_number";
pub const DEVICE_BYTES: &str = "device_bytes";
pub const DEVICE_MEDIUM: &str = "device_medium";
/// The input that sets how long the counted samples of a point are together, s.
pub const SECONDS: ParamId = ids::param::SECONDS;
/// How long that is for a case: by its parameter where the user named a time, by that input;
/// `None`: as the profile has it.
pub fn seconds_of(case: &Case) -> Option<f64> {
    let wanted = case.params.get(SECONDS).and_then(|value| value.number());
    wanted.or_else(|| case.inputs.get(&*SECONDS)?.parse().ok()).filter(|seconds| *seconds > 0.0)
}

/// The inputs with the bytes of each job's file, and with the points: `BLOCKxDEPTH` by commas.
pub const BYTES: &str = "bytes";
pub const POINTS: &str = "points";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A sample of these rows lasts this many of the profile's: a disk needs tens of milliseconds.
pub const STRETCH: f64 = 5.0;
/// Buffers of a job together take no more than this.
pub const MAX_BUFFERS: u64 = 64 * MIB;
/// The plan assumes that a file is filled at this rate, bytes a second.
pub const FILL_RATE: f64 = 400e6;
/// A smaller file is too small to measure a disk.
const MIN_FILE: u64 = 8 * MIB;

/// A point of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub block: u64,
    pub depth: u32,
}

/// What a case's row does at its points.
pub fn shapes(case: &Case) -> Vec<Shape> {
    let text = case.inputs.get(POINTS).map_or("", String::as_str);
    let shape = |word: &str| {
        let (block, depth) = word.split_once('x')?;
        Some(Shape { block: block.parse().ok()?, depth: depth.parse().ok()? })
    };
    text.split(',').filter_map(shape).collect()
}

pub fn points_input(shapes: &[Shape]) -> String {
    let words: Vec<String> = shapes.iter().map(|shape| format!("{}x{}", shape.block, shape.depth)).collect();
    words.join(",")
}

/// Rows of which a point has a depth.
fn has_depth(bench: Option<BenchId>) -> bool {
    matches!(bench, Some(ids::SEQUENTIAL | ids::RANDOM | ids::SUSTAINED))
}

/// A point's parameters.
pub fn params(bench: Option<BenchId>, shape: Shape) -> Params {
    let mut params = Params::from([(ids::param::BLOCK, shape.block.into())]);
    if has_depth(bench) {
        params.insert(ids::param::DEPTH, u64::from(shape.depth));
    }
    params
}

pub fn points(case: &Case) -> Vec<Params> {
    shapes(case).into_iter().map(|shape| params(case.id(), shape)).collect()
}

/// Why a case cannot be had on a raw device, of which only reading is allowed unless `write`.
pub fn not_on_a_device(case: &Case, write: bool) -> Option<String> {
    let text = |name: ParamId| case.params.get(name).and_then(|value| value.text()).unwrap_or_default();
    match case.id() {
        Some(ids::METADATA) => Some("a raw device has no files: name a directory with --dir".into()),
        Some(ids::SEQUENTIAL | ids::RANDOM | ids::PACED) if text(ids::param::OP) == "read" => None,
        _ if write => None,
        _ => Some("the raw device may only be read (--device without permission to write)".into()),
    }
}

/// Every combination, the depths of a block together.
pub fn grid(blocks: &[u64], depths: &[u32]) -> Vec<Shape> {
    let of = |block: &u64| depths.iter().map(|depth| Shape { block: *block, depth: *depth }).collect();
    blocks.iter().flat_map(|block| -> Vec<Shape> { of(block) }).collect()
}

/// The bytes of each of `jobs` files: as many as the profile wants, at most a tenth of the free
/// room together.
pub fn file_bytes(scope: &Scope, jobs: u64, wanted: u64) -> Result<u64, String> {
    // Not all of it: what is free changes until the file is made, and a folder takes some, too.
    let most = room(scope) / 10 * 9 / jobs.max(1);
    let bytes = wanted.min(most) / MIB * MIB;
    match bytes >= MIN_FILE {
        true => Ok(bytes),
        false => Err(format!(
            "{jobs} test files of {} MiB are more than a tenth of the free space: name another directory with --dir",
            MIN_FILE / MIB
        )),
    }
}

pub fn usual_file(depth: Depth) -> u64 {
    match depth {
        Depth::Quick => 32 * MIB,
        Depth::Standard => 64 * MIB,
        Depth::Full => 512 * MIB,
    }
}

/// What a case is made of.
struct CaseSpec<'a> {
    placement: Placement,
    params: &'a [(ParamId, &'a str)],
    shapes: Vec<Shape>,
    priority: u32,
    /// Bytes of each job's file.
    bytes: u64,
    /// How long a point takes, s; without it, the samples decide.
    point_s: Option<f64>,
}

fn candidate(bench: &Benchmark, scope: &Scope, wish: CaseSpec) -> Candidate {
    let name = static_name(&wish.placement);
    let jobs = wish.placement.seats.len() as u64;
    let with_params = |mut candidate: Candidate| {
        for (name, value) in wish.params {
            candidate = candidate.param(*name, *value);
        }
        candidate
    };
    let unmet = |why| with_params(Candidate::unmet(bench.id, name, why));
    let direct = wish.params.contains(&(ids::param::CACHE, "direct"));
    if let Some(why) = nowhere(scope, direct) {
        return unmet(why);
    }
    let raw = is_raw(scope);
    let bytes = match file_bytes(scope, jobs, wish.bytes) {
        // The device has the size that it has.
        _ if raw => wish.bytes,
        Ok(bytes) => bytes,
        Err(why) => return unmet(why),
    };
    let windows = (scope.windows.count + scope.windows.warm_up) as f64;
    let point_s = wish.point_s.unwrap_or(windows * STRETCH * scope.windows.window_ns / 1e9);
    let fill_s = if raw { 0.0 } else { (bytes * jobs) as f64 / FILL_RATE };
    let seconds = scope.seconds(0, 0.0, fill_s + wish.shapes.len() as f64 * (point_s + 0.002));
    let buffers = wish.shapes.iter().map(|shape| shape.block * u64::from(shape.depth)).max().unwrap_or(0);
    let cached = if direct { 0 } else { bytes };
    let mut candidate = with_params(Candidate::new(bench.id, wish.placement.clone(), wish.priority, seconds));
    if wish.placement.name == SPREAD {
        candidate = candidate.param(ids::param::JOBS, jobs);
    }
    candidate.case.inputs.insert(BYTES.into(), bytes.to_string());
    candidate.case.inputs.insert(POINTS.into(), points_input(&wish.shapes));
    let candidate = if raw { candidate } else { in_directory(scope, candidate) };
    candidate.memory((buffers + cached) * jobs)
}

/// Whether the run is about a raw device that the user named, and no directory.
pub fn is_raw(scope: &Scope) -> bool {
    scope.machine.disk.as_ref().is_some_and(|disk| disk.raw)
}

/// Placement names stand in texts of the program.
fn static_name(placement: &Placement) -> &'static str {
    match placement.name.as_ref() {
        "all" => "all",
        "one-per-core" => "one-per-core",
        SPREAD => SPREAD,
        _ => "one-cpu",
    }
}

/// Why there is no disk behind the directory, or none that can be reached past the page cache.
fn nowhere(scope: &Scope, direct: bool) -> Option<String> {
    let directory = scope.machine.directory.as_ref().filter(|_| !is_raw(scope))?;
    if directory.is_memory() {
        return Some(format!(
            "{} is {}, which is memory: name a directory on a disk with --dir",
            directory.path, directory.filesystem
        ));
    }
    let refused = direct.then(|| scratch::direct_refused(Path::new(&directory.path))).flatten()?;
    Some(format!("{} on {} refuses O_DIRECT ({refused})", directory.path, directory.filesystem))
}

/// The placement of a chosen number of jobs, which it does not name: the parameter `jobs` does.
pub const SPREAD: &str = "spread";

/// One job, and in the full profile one on each core, where there are several, or on as many cores
/// as there may be jobs.
fn placements(scope: &Scope) -> Result<Vec<Placement>, String> {
    let one = scope.placements.one_cpu("job")?;
    let cores = scope.placements.one_per_core("job");
    Ok(match cores.seats.len() {
        _ if scope.depth < Depth::Full => vec![one],
        0 | 1 => vec![one],
        2..=MAX_JOBS => vec![one, cores],
        _ => vec![one, scope.placements.spread("job", MAX_JOBS)],
    })
}

/// Whether the device below has queues that can be polled.
pub fn pollable(scope: &Scope) -> bool {
    let top = scope.machine.disk.as_ref().and_then(|disk| disk.top()?.number.as_deref());
    let below = scope.machine.directory.as_ref().map(|directory| directory.device.as_str());
    top.or(below).is_some_and(has_polled_queues)
}

/// More jobs than this measure the scheduler of the disk.
pub const MAX_JOBS: usize = 64;

pub fn sequential(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placements = match placements(scope) {
        Ok(placements) => placements,
        Err(why) => return vec![Candidate::unmet(bench.id, "one-cpu", why)],
    };
    let mut candidates = Vec::new();
    for (placement, alone) in placements.into_iter().zip([true, false]) {
        for (op, cache) in
            [("read", "direct"), ("write", "direct"), ("read", "buffered"), ("write", "buffered")]
        {
            let direct = cache == "direct";
            let shapes = match (scope.depth, direct) {
                (Depth::Quick, true) => grid(&[MIB], &[8]),
                (Depth::Quick, false) => continue,
                (Depth::Standard, true) => grid(&[MIB], &[1, 8]),
                (Depth::Standard, false) => grid(&[128 * KIB], &[1]),
                (Depth::Full, true) if alone => {
                    // 4 MiB at depth 32 would be twice the buffers that a job may have.
                    let deep = grid(&[64 * KIB, 256 * KIB, MIB], &[1, 2, 8, 32]);
                    [deep, grid(&[4 * MIB], &[1, 2, 8, 16])].concat()
                }
                (Depth::Full, true) => grid(&[MIB], &[1, 8]),
                (Depth::Full, false) => grid(&[4 * KIB, 128 * KIB, MIB], &[1]),
            };
            candidates.push(candidate(
                bench,
                scope,
                CaseSpec {
                    placement: placement.clone(),
                    params: &[(ids::param::OP, op), (ids::param::CACHE, cache)],
                    shapes,
                    priority: if direct { 78 } else { 60 },
                    bytes: usual_file(scope.depth),
                    point_s: None,
                },
            ));
        }
    }
    candidates
}

pub fn random(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placements = match placements(scope) {
        Ok(placements) => placements,
        Err(why) => return vec![Candidate::unmet(bench.id, "one-cpu", why)],
    };
    let deep = scope.depth == Depth::Full;
    let mut candidates = Vec::new();
    for (placement, alone) in placements.into_iter().zip([true, false]) {
        let shapes = match (scope.depth, alone) {
            (Depth::Full, true) => grid(&[4 * KIB, 16 * KIB, 64 * KIB], &[1, 4, 16, 32, 64, 128]),
            (Depth::Full, false) => grid(&[4 * KIB], &[1, 32, 128]),
            _ => grid(&[4 * KIB], &[1, 32]),
        };
        let mut push = |params: &[(ParamId, &str)], shapes: Vec<Shape>, priority| {
            let bytes = usual_file(scope.depth);
            let placement = placement.clone();
            let wish = CaseSpec { placement, params, shapes, priority, bytes, point_s: None };
            candidates.push(candidate(bench, scope, wish));
        };
        push(&[(ids::param::OP, "read"), (ids::param::CACHE, "direct")], shapes.clone(), 80);
        if scope.depth > Depth::Quick {
            push(&[(ids::param::OP, "write"), (ids::param::CACHE, "direct")], shapes.clone(), 76);
            push(&[(ids::param::OP, "mixed"), (ids::param::CACHE, "direct")], grid(&[4 * KIB], &[32]), 62);
        }
        if deep && alone {
            push(
                &[(ids::param::OP, "read"), (ids::param::CACHE, "buffered")],
                grid(&[4 * KIB], &[1, 32]),
                55,
            );
            push(
                &[(ids::param::OP, "read"), (ids::param::CACHE, "direct"), (ids::param::ENGINE, "psync")],
                grid(&[4 * KIB, 64 * KIB], &[1]),
                52,
            );
            let polled: &[(ParamId, &str)] =
                &[(ids::param::OP, "read"), (ids::param::CACHE, "direct"), (ids::param::ENGINE, "polled")];
            push(polled, grid(&[4 * KIB], &[1, 32]), 54);
        }
    }
    candidates
}

/// A percentile needs ten I/Os beyond it: as many for the 99th.
pub const PACED_LEAST: u64 = 1000;
/// How long they fall due, s, where that gives more.
pub const PACED_S: f64 = 0.6;

/// How many I/Os of a paced case fall due, and over how long, s.
pub fn paced_length(case: &Case, rate: f64) -> (u64, f64) {
    let wanted = seconds_of(case).unwrap_or(PACED_S);
    let count = ((rate * wanted) as u64).max(PACED_LEAST);
    (count, count as f64 / rate)
}

pub fn paced(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("job") else { return bench.no_cpu(scope) };
    let cases: &[(&str, u64)] = match scope.depth {
        Depth::Full => &[("read", 1000), ("read", 4000), ("write", 1000), ("mixed", 1000)],
        _ => &[("read", 2000)],
    };
    let case = |(op, rate): &(&str, u64)| {
        let wish = CaseSpec {
            placement: one.clone(),
            params: &[(ids::param::OP, op), (ids::param::CACHE, "direct")],
            shapes: vec![Shape { block: 4 * KIB, depth: 256 }],
            priority: 66,
            bytes: usual_file(scope.depth),
            point_s: Some((PACED_LEAST as f64 / *rate as f64).max(PACED_S)),
        };
        candidate(bench, scope, wish).param(ids::param::RATE, *rate)
    };
    cases.iter().map(case).collect()
}

/// The rows of one job with a file of a few megabytes: its cases by their `op`, where they have
/// one.
fn small(
    bench: &Benchmark,
    scope: &Scope,
    ops: &[&str],
    shape: Shape,
    bytes: u64,
    point_s: Option<f64>,
) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("job") else { return bench.no_cpu(scope) };
    let case = |params: &[(ParamId, &str)]| {
        let (placement, shapes) = (one.clone(), vec![shape]);
        candidate(bench, scope, CaseSpec { placement, params, shapes, priority: 64, bytes, point_s })
    };
    match ops {
        [] => vec![case(&[])],
        ops => ops.iter().map(|op| case(&[(ids::param::OP, op)])).collect(),
    }
}

pub fn sync(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let ops: &[&str] = if scope.depth == Depth::Quick { &["fdatasync"] } else { &["fsync", "fdatasync"] };
    small(bench, scope, ops, Shape { block: 4 * KIB, depth: 1 }, MIN_FILE, None)
}

pub fn metadata(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("job") else { return bench.no_cpu(scope) };
    let case = |op: &&str| {
        let unmet = |why: String| Candidate::unmet(bench.id, "one-cpu", why).param(ids::param::OP, *op);
        if let Some(why) = nowhere(scope, false) {
            return unmet(why);
        }
        if room(scope) < super::metadata::MAX_FILES * 4096 {
            return unmet("less than 1 GB is free for the files: name another directory with --dir".into());
        }
        // What is not timed (making what is unlinked) takes as long as what is.
        let seconds = scope.seconds(2, super::metadata::STRETCH, 0.01);
        in_directory(scope, Candidate::new(bench.id, one.clone(), 63, seconds).param(ids::param::OP, *op))
    };
    ["create", "stat", "rename", "unlink"].iter().map(case).collect()
}

/// Why a raw device cannot be trimmed.
pub const NO_DISCARD: &str =
    "not available here: the device has no discard (queue/discard_max_bytes in /sys is 0)";

pub fn trim(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let disk = scope.machine.disk.as_ref().filter(|disk| disk.raw);
    // A partition's limits are those of its disk.
    if disk.and_then(|disk| disk.stack.iter().find_map(|block| block.discard_max_bytes)) == Some(0) {
        return vec![Candidate::unmet(bench.id, "one-cpu", NO_DISCARD.into())];
    }
    small(bench, scope, &[], Shape { block: MIB, depth: 1 }, 64 * MIB, Some(0.2))
}

pub fn verify(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let bytes = if scope.depth == Depth::Full { 256 * MIB } else { 16 * MIB };
    let generations = (scope.windows.count + scope.windows.warm_up) as f64;
    let seconds = generations * bytes as f64 / FILL_RATE * 2.0;
    small(bench, scope, &[], Shape { block: MIB, depth: 8 }, bytes, Some(seconds))
}

/// How long a pass of sustained writes lasts, s.
pub const SUSTAINED_S: f64 = 60.0;

pub fn sustained(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("job") else { return bench.no_cpu(scope) };
    let wish = CaseSpec {
        placement: one,
        params: &[(ids::param::OP, "write"), (ids::param::CACHE, "direct")],
        shapes: vec![Shape { block: MIB, depth: 8 }],
        priority: 50,
        bytes: 8 << 30,
        point_s: Some(SUSTAINED_S),
    };
    vec![candidate(bench, scope, wish)]
}
