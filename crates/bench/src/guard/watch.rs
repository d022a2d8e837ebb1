//! Observes the tasks of a running program: on which CPUs they are together; for a spread placement
//! it pins them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::placement::{Distance, Placements};
use model::CpuSet;
use sys::affinity;
use sys::clock;
use sys::counters::{TaskSample, Tasks};

pub struct Watch {
    tasks: Tasks,
    placements: Placements,
    spread: Option<RoundRobinPins>,
    together: PairOccupancy,
    looks: u32,
    last: Instant,
    /// Time of the next observation.
    pub next: Instant,
    random: fastrand::Rng,
}

/// Mean time between observations. They are random, because work at each tick of a clock would else
/// be seen always or never. The first ones are closer: tasks appear then.
const APART: Duration = Duration::from_millis(10);
const APART_AT_FIRST: Duration = Duration::from_millis(2);
const FIRST: u32 = 16;
/// Watching takes at most one part in this many of a CPU's time.
const SHARE: u32 = 50;
/// Migrations are read at one of this many observations.
const COUNTING: u32 = 8;
/// A task is busy if it ran for this share of the time since the last observation. If tasks
/// outnumber the CPUs, half of an equal part is enough.
const BUSY: f64 = 0.02;

fn least_share(cpus: usize, tasks: usize) -> f64 {
    BUSY.min(0.5 * cpus as f64 / tasks.max(1) as f64)
}

impl Watch {
    pub fn new(tasks: Tasks, placements: Placements, spread: bool, seed: u64) -> Watch {
        let spread = spread.then(|| RoundRobinPins::over(placements.cpus()));
        let now = Instant::now();
        Watch {
            tasks,
            placements,
            spread,
            together: PairOccupancy::default(),
            looks: 0,
            last: now,
            next: now,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Observes once, if it is time.
    pub fn look_if_due(&mut self) {
        if Instant::now() >= self.next {
            self.look(self.looks.is_multiple_of(COUNTING));
        }
    }

    /// The last observation, when the program has ended but is not yet reaped.
    pub fn look_last(&mut self) {
        self.tasks.sample(true);
    }

    fn look(&mut self, counting: bool) {
        let used = clock::thread_time();
        let looks = self.tasks.sample(counting);
        let past = self.last.elapsed();
        self.last = Instant::now();
        self.looks += 1;
        let least = least_share(self.placements.cpus().len(), looks.len());
        let is_busy = |look: &TaskSample| !look.new && look.ran_ns >= least * past.as_nanos() as f64;
        let busy: Vec<TaskSample> = looks.iter().copied().filter(is_busy).collect();
        let cpus: Vec<u32> = busy.iter().map(|look| look.cpu).collect();
        self.together.note(&cpus, &self.placements);
        if let Some(spread) = &mut self.spread {
            spread.place(&looks, &busy);
        }
        let took = clock::thread_time().saturating_sub(used);
        let apart = if self.looks < FIRST { APART_AT_FIRST } else { APART };
        let random = apart.mul_f64(0.5 + self.random.f64());
        self.next = Instant::now() + random.max(took * SHARE);
    }

    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The share of pairs of busy tasks in each class that two CPUs of this host can be in,
    /// 0..1: over all observations with two or more; empty without any.
    pub fn occupancy(&self) -> Vec<(&'static str, f64)> {
        self.together.shares(&self.placements)
    }

    /// Observations that found two or more busy tasks.
    pub fn looks(&self) -> u32 {
        self.together.looks
    }

    /// Tasks that were pinned; `None` where none is to be.
    pub fn pinned(&self) -> Option<usize> {
        self.spread.as_ref().map(|spread| spread.pinned.len())
    }
}

/// Where pairs of tasks were.
#[derive(Debug, Default)]
struct PairOccupancy {
    /// The sum over observations of the share of pairs at each distance.
    shares: BTreeMap<Distance, f64>,
    looks: u32,
}

impl PairOccupancy {
    fn note(&mut self, cpus: &[u32], placements: &Placements) {
        if cpus.len() < 2 {
            return;
        }
        let mut on: BTreeMap<u32, f64> = BTreeMap::new();
        cpus.iter().for_each(|cpu| *on.entry(*cpu).or_default() += 1.0);
        let all = (cpus.len() * (cpus.len() - 1)) as f64 / 2.0;
        let on: Vec<(u32, f64)> = on.into_iter().collect();
        for (index, (cpu, tasks)) in on.iter().enumerate() {
            *self.shares.entry(Distance::SameCpu).or_default() += tasks * (tasks - 1.0) / 2.0 / all;
            for (other, others) in &on[index + 1..] {
                let distance = placements.distance(*cpu, *other);
                *self.shares.entry(distance).or_default() += tasks * others / all;
            }
        }
        self.looks += 1;
    }

    fn shares(&self, placements: &Placements) -> Vec<(&'static str, f64)> {
        if self.looks == 0 {
            return Vec::new();
        }
        let known = placements.distances();
        let share = |distance: &Distance| self.shares.get(distance).copied().unwrap_or(0.0);
        known.iter().map(|distance| (distance.name(), share(distance) / f64::from(self.looks))).collect()
    }
}

/// Pins tasks round-robin as they are seen at work; later, a busy one that shares its CPU with
/// another goes to a CPU where none is. One that rests is let go: what it starts would else begin
/// on its CPU, and short tasks would pile up there.
struct RoundRobinPins {
    cpus: Vec<u32>,
    seats: HashMap<u32, Seat>,
    /// All that ever were.
    pinned: HashSet<u32>,
}

/// The CPU of a task, and for how many observations it has been idle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seat {
    cpu: u32,
    rests: u32,
}

/// A task that rested for this many observations is released.
const RESTS: u32 = 8;

impl RoundRobinPins {
    fn over(cpus: CpuSet) -> RoundRobinPins {
        RoundRobinPins { cpus: cpus.iter().collect(), seats: HashMap::new(), pinned: HashSet::new() }
    }

    fn place(&mut self, looks: &[TaskSample], busy: &[TaskSample]) {
        self.seats.retain(|tid, _| looks.iter().any(|look| look.tid == *tid));
        for tid in self.resting(busy) {
            let _ = affinity::pin_task(tid, &self.cpus.iter().copied().collect());
            self.seats.remove(&tid);
        }
        for (tid, cpu) in self.moves(busy) {
            // A task that has just ended, or that is another user's by now, stays where it is.
            if affinity::pin_task(tid, &CpuSet::one(cpu)).is_ok() {
                self.seats.insert(tid, Seat { cpu, rests: 0 });
                self.pinned.insert(tid);
            }
        }
    }

    /// Who is let go.
    fn resting(&mut self, busy: &[TaskSample]) -> Vec<u32> {
        for (tid, seat) in &mut self.seats {
            seat.rests = if busy.iter().any(|look| look.tid == *tid) { 0 } else { seat.rests + 1 };
        }
        self.seats.iter().filter(|(_, seat)| seat.rests >= RESTS).map(|(tid, _)| *tid).collect()
    }

    /// Who goes where.
    fn moves(&self, busy: &[TaskSample]) -> Vec<(u32, u32)> {
        let mut seats: HashMap<u32, u32> = self.seats.iter().map(|(tid, seat)| (*tid, seat.cpu)).collect();
        let mut moves = Vec::new();
        for look in busy.iter().filter(|look| !self.seats.contains_key(&look.tid)) {
            // The next CPU, round-robin, among those with the fewest tasks.
            let on = |cpu: u32| seats.values().filter(|seat| **seat == cpu).count();
            if let Some(cpu) = self.cpus.iter().copied().min_by_key(|cpu| on(*cpu)) {
                seats.insert(look.tid, cpu);
                moves.push((look.tid, cpu));
            }
        }
        let busy_on = |seats: &HashMap<u32, u32>, cpu: u32| -> Vec<u32> {
            let tids = busy.iter().map(|look| look.tid);
            tids.filter(|tid| seats.get(tid) == Some(&cpu)).collect()
        };
        let empty: Vec<u32> =
            self.cpus.iter().copied().filter(|cpu| busy_on(&seats, *cpu).is_empty()).collect();
        for to in empty {
            let crowded = self.cpus.iter().map(|cpu| busy_on(&seats, *cpu)).find(|tids| tids.len() > 1);
            let Some(tid) = crowded.and_then(|tids| tids.last().copied()) else { break };
            seats.insert(tid, to);
            moves.push((tid, to));
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Core, Machine};

    fn floor(cpus: u32) -> Placements {
        let mut machine = Machine::default();
        machine.cpus.online = (0..cpus).collect();
        let core = |first: u32| Core { cpus: (first..first + 2).collect(), ..Core::default() };
        machine.cpus.cores = Some((0..cpus).step_by(2).map(core).collect());
        Placements::of(&machine)
    }

    #[test]
    fn pairs_are_counted_by_their_distance() {
        let placements = floor(4);
        let mut together = PairOccupancy::default();
        assert!(together.shares(&placements).is_empty());
        together.note(&[0], &placements);
        assert!(together.shares(&placements).is_empty(), "one task is no pair");
        // Pairs: 0-0 once, 0-1 twice, 0-2 twice, 1-2 once.
        together.note(&[0, 1, 0, 2], &placements);
        let shares = together.shares(&placements);
        let of = |class: &str| shares.iter().find(|(name, _)| *name == class).map(|(_, share)| *share);
        assert_eq!(of("same-cpu"), Some(1.0 / 6.0));
        assert_eq!(of("smt-sibling"), Some(2.0 / 6.0));
        assert_eq!(of("other-cpu"), Some(3.0 / 6.0));
        together.note(&[3, 3], &placements);
        assert_eq!(together.shares(&placements)[0], ("same-cpu", (1.0 + 1.0 / 6.0) / 2.0));
    }

    fn look(tid: u32, ran_ns: f64) -> TaskSample {
        TaskSample { tid, cpu: 0, ran_ns, new: false }
    }

    #[test]
    fn tasks_are_spread_in_turn_and_busy_ones_apart() {
        let mut spread = RoundRobinPins::over((0..2).collect());
        let all = [look(1, 9.0), look(2, 9.0), look(3, 9.0), look(4, 9.0)];
        assert!(spread.moves(&[]).is_empty(), "who rests needs no seat");
        let moves = spread.moves(&all);
        assert_eq!(moves, [(1, 0), (2, 1), (3, 0), (4, 1)]);
        spread.seats.extend(moves.into_iter().map(|(tid, cpu)| (tid, Seat { cpu, rests: 0 })));
        assert!(spread.moves(&all[..3]).is_empty(), "more than CPUs");
        // The two that work sit on one CPU.
        assert_eq!(spread.moves(&[look(1, 9.0), look(3, 9.0)]), [(3, 1)]);
    }

    #[test]
    fn who_rests_is_let_go_and_who_works_stays() {
        let mut spread = RoundRobinPins::over((0..2).collect());
        spread.seats = HashMap::from([(1, Seat { cpu: 0, rests: 0 }), (2, Seat { cpu: 1, rests: 0 })]);
        let busy = [look(1, 9.0)];
        for _ in 1..RESTS {
            assert!(spread.resting(&busy).is_empty());
        }
        assert_eq!(spread.resting(&busy), [2]);
    }

    #[test]
    fn who_hardly_ran_takes_no_part() {
        assert_eq!(least_share(2, 0), BUSY);
        assert_eq!(least_share(2, 10), BUSY);
        // Of a hundred tasks on two CPUs each has a fiftieth.
        assert_eq!(least_share(2, 100), 0.01);
    }
}
