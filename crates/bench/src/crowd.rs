//! Tasks that all want one thing at once until it has been had often enough, wherever they may sit.

use std::rc::Rc;

use super::{Benchmark, Candidate, Depth, Point, Sampler, Scope, check_answer};
use crate::placement::Distance;
use crate::row::{per_second, value};
use model::vocabulary::kernel as ids;
use model::{Better, Case, CpuSet, Metric, Params, Placement};
use sys::clock::Clock;
use sys::crew::{Body, Lines, Team, wall_ns};

/// Operations a second, all tasks together.
pub const RATE: Metric = per_second(ids::metric::RATE, "all tasks together").aside();
/// Of the task that had least: 1 is a fair share.
pub const LEAST_SHARE: Metric =
    value(ids::metric::LEAST_SHARE, "smallest task's part of a fair share", "", Better::Higher);

/// One task alone; two at each distance, the nearest ones in every profile; two wherever the
/// scheduler puts them; and, where there are more, one on each CPU.
pub fn cases(bench: &Benchmark, scope: &Scope, points: usize) -> Vec<Candidate> {
    let candidate = |name, placement: Result<Placement, String>, priority| match placement {
        Ok(placement) => Candidate::new(bench.id, placement, priority, scope.seconds(points, 1.0, 0.003)),
        Err(why) => Candidate::unmet(bench.id, name, why),
    };
    let mut candidates = vec![candidate("one-cpu", scope.placements.one_cpu("task"), 70)];
    candidates.extend(pairs(scope, false).into_iter().map(|(name, pair)| candidate(name, pair, 60)));
    if scope.depth >= Depth::Standard {
        candidates.push(candidate("free", scope.placements.free(&["task", "task"]), 52));
    }
    let all = scope.placements.all("task");
    if scope.depth >= Depth::Standard && all.seats.len() > 2 {
        candidates.push(candidate("all", Ok(all), 45));
    }
    candidates
}

/// Two tasks at each distance of this host, in the quick profile at the smallest one only, and
/// on one CPU if asked.
pub fn pairs(scope: &Scope, on_one_cpu: bool) -> Vec<(&'static str, Result<Placement, String>)> {
    let pairs = scope.placements.pairs(["task", "task"]);
    // `other-cpu` stands for unknown distances; its absence is not reported.
    let mut wanted: Vec<_> = pairs
        .into_iter()
        .filter(|(distance, pair)| *distance != Distance::OtherCpu || pair.is_ok())
        .collect();
    let on_one = wanted.iter().position(|(distance, _)| *distance == Distance::SameCpu);
    let on_one = on_one.map(|index| wanted.remove(index)).filter(|_| on_one_cpu);
    if scope.depth == Depth::Quick {
        match wanted.iter().position(|(_, pair)| pair.is_ok()) {
            Some(nearest) => wanted = vec![wanted.swap_remove(nearest)],
            None => wanted.truncate(1),
        }
    }
    on_one.into_iter().chain(wanted).map(|(distance, pair)| (distance.name(), pair)).collect()
}

/// What the tasks share: a line that counts what was done, and whatever they need besides.
pub struct Crowd {
    team: Team,
    lines: Rc<Lines>,
    tasks: u64,
    /// What each task says that it did, and what all are known to have done.
    done: Vec<u64>,
}

/// The line that counts. Those behind it are the caller's.
pub const COUNT: usize = 0;

impl Crowd {
    /// Seats the tasks. `body` gets the lines that they share and its own number; what it makes
    /// gets the count at which to stop, and answers how often it has counted.
    pub fn gather(
        case: &Case,
        clock: Clock,
        lines: usize,
        body: impl Fn(Rc<Lines>, usize) -> Body,
    ) -> anyhow::Result<Crowd> {
        let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
        let lines = Rc::new(Lines::new(1 + lines)?);
        let team = Team::start(&seats, clock, |index| Ok(body(lines.clone(), index)))?;
        Ok(Crowd { team, lines, tasks: seats.len() as u64, done: vec![0; seats.len()] })
    }

    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    fn count(&self) -> u64 {
        self.lines[COUNT].load(std::sync::atomic::Ordering::Acquire)
    }

    /// All counted so far, by all tasks' own account.
    pub fn total(&self) -> u64 {
        self.done.iter().sum()
    }

    /// Times `latency` and [`RATE`] of all tasks at once, then emits [`LEAST_SHARE`] if there are
    /// several. Fast tasks continue until all are done, so no task works undisturbed.
    pub fn measure(&mut self, sampler: &mut Sampler, at: Params) -> anyhow::Result<()> {
        let tasks = self.tasks as f64;
        let before = self.done.clone();
        let point = Point::new(ids::metric::LATENCY, 1.0).times(ids::metric::RATE, tasks).at(at.clone());
        sampler.time_by(point, |each| {
            let laps = self.team.round(self.count() + each * self.tasks)?;
            for (done, lap) in self.done.iter_mut().zip(&laps) {
                *done += lap.answer;
            }
            let counted = self.count();
            check_answer(self.total() == counted, || {
                format!("the tasks added {} but the word holds {counted}", self.total())
            })?;
            Ok(wall_ns(&laps))
        })?;
        let own = || self.done.iter().zip(&before).map(|(after, before)| after - before);
        let (all, least) = (own().sum::<u64>(), own().min().unwrap_or(0));
        match self.tasks > 1 && all > 0 {
            true => sampler.value(at, ids::metric::LEAST_SHARE, least as f64 * tasks / all as f64, 0.0),
            false => Ok(()),
        }
    }
}
