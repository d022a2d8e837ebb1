//! Sequential and random I/O in samples: `disk.sequential`, `disk.random`.

use anyhow::{Context, bail, ensure};
use model::vocabulary::ParamId;
use model::vocabulary::disk as ids;

use super::cases::{STRETCH, Shape, params, seconds_of, shapes};
use super::crew::Crew;
use super::engine::{self, Kind, UNREGISTERED};
use super::job::Work;
use super::pattern::{Op, Walk};
use super::report::{self, Done, Watch};
use super::target::Target;
use crate::sampler::whole::Piece;
use crate::{Point, Sampler, Windows};
use model::Case;

/// A case's parameters understood.
pub struct Plan {
    pub op: Op,
    pub direct: bool,
    pub kind: Kind,
    pub shapes: Vec<Shape>,
}

impl Plan {
    /// The plan of a case. What this host cannot do is left out and noted. (Plans name the engine
    /// where io_uring is refused; this is for cases that were planned elsewhere or by hand.)
    pub fn of(case: &Case, sampler: &mut Sampler) -> anyhow::Result<Plan> {
        let text = |name: ParamId| case.params.get(name).and_then(|value| value.text());
        let op = text(ids::param::OP).and_then(Op::by_name).context("the case has no operation")?;
        let direct = text(ids::param::CACHE) != Some("buffered");
        let (kind, note) = engine::choose(text(ids::param::ENGINE));
        if let Some((note, wanted)) = note.as_ref().zip(text(ids::param::ENGINE)) {
            bail!("not available here: {wanted} was requested, but {note}");
        }
        let mut shapes = shapes(case);
        if let Some(note) = note {
            let deep = shapes.len();
            // Paced I/O has no depth to miss: what falls due waits.
            shapes.retain(|shape| shape.depth == 1 || case.bench == ids::PACED);
            if shapes.is_empty() {
                bail!("not available here: {note}, but all {deep} points are deeper");
            }
            sampler.facts().notes.push(note);
        }
        ensure!(!shapes.is_empty(), "the case has no points");
        Ok(Plan { op, direct, kind, shapes })
    }

    pub fn work(&self, walk: Walk, shape: Shape, seed: u64) -> Work {
        Work { walk, op: self.op, kind: self.kind, direct: self.direct, shape, seed }
    }
}

/// How long a sample of this case is, ns.
pub fn window_ns(case: &Case, windows: Windows) -> f64 {
    seconds_of(case)
        .map_or(windows.window_ns * STRETCH, |seconds| seconds * 1e9 / windows.count.max(1) as f64)
}

/// Number of warm-up and counted samples of a point, and their length, ns.
#[derive(Clone, Copy)]
pub struct Stretch {
    pub warm_up: usize,
    pub count: usize,
    pub ns: f64,
}

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let plan = Plan::of(case, sampler)?;
    let walk = if case.bench == ids::RANDOM { Walk::Random } else { Walk::Sequential };
    let windows = sampler.windows();
    let stretch = Stretch { warm_up: windows.warm_up, count: windows.count, ns: window_ns(case, windows) };
    points(case, &plan, walk, stretch, sampler)
}

/// Prepares the files and measures every point of a case.
pub fn points(
    case: &Case,
    plan: &Plan,
    walk: Walk,
    stretch: Stretch,
    sampler: &mut Sampler,
) -> anyhow::Result<()> {
    let (seed, clock) = (sampler.seed(), sampler.clock());
    let target = Target::prepare(case, case.placement.seats.len(), plan.direct, seed)?;
    sampler.facts().notes.extend(target.words());
    let works: Vec<Work> = plan.shapes.iter().map(|shape| plan.work(walk, *shape, seed)).collect();
    let mut crew = Crew::start(case, &target, &works, clock)?;
    let mut watch = Watch::new(target.counters(), clock);
    for (index, shape) in plan.shapes.iter().enumerate() {
        if !plan.direct {
            // Nothing of what was written before is still to be written, and nothing of it is at
            // hand.
            target.sync()?;
            target.drop_cached()?;
        }
        crew.begin(index)?;
        let notes = &mut sampler.facts().notes;
        if crew.is_unregistered() && !notes.iter().any(|note| note == UNREGISTERED) {
            notes.push(UNREGISTERED.to_string());
        }
        for _ in 0..stretch.warm_up {
            crew.window(stretch.ns)?;
        }
        crew.forget()?;
        let block = shape.block as f64;
        let at = params(case.id(), *shape);
        let point = match walk {
            Walk::Sequential => {
                Point::new(ids::metric::BANDWIDTH, block).times(ids::metric::IOPS, 1.0 / block)
            }
            Walk::Random => Point::new(ids::metric::IOPS, 1.0).times(ids::metric::BANDWIDTH, block),
        };
        // A sustained write has no rate of its own.
        let point =
            if case.bench == ids::SUSTAINED { Point::new(ids::metric::BANDWIDTH, block) } else { point };
        let mut done = Done::default();
        watch.start();
        sampler.whole_pieces(point.at(at.clone()), &[], stretch.count, |_| {
            let windows = crew.window(stretch.ns)?;
            // Each job ends its sample at its own time, so their rates are added up.
            let ns = windows[0].ns;
            let mut work = 0.0;
            for window in windows {
                let (reads, writes) = (window.reads as f64, window.writes as f64);
                work += (reads + writes) / window.ns * ns;
                done.ios += reads + writes;
                done.read_bytes += reads * block;
                done.written_bytes += writes * block;
                done.cpu_ms += window.cpu_ms;
                done.seats_ms += window.ns / 1e6;
            }
            Ok(Piece { work, ns, notes: Vec::new() })
        })?;
        report::beside(sampler, &at, done, &mut watch)?;
        let histogram = crew.report()?;
        report::latencies(sampler, &at, histogram, done.seats_ms * 1e6 / case.placement.seats.len() as f64)?;
    }
    Ok(())
}
