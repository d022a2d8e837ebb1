//! Mutexes: alone, fought over, and handed from one to the other.

use std::sync::atomic::Ordering;

use super::crowd::{self, COUNT, Crowd, LEAST_SHARE, RATE};
use super::occupancy::{self, CLASS, OCCUPANCY, Occupancy};
use super::{Benchmark, Candidate, Depth, LATENCY_NS, LATENCY_US, Point, Sampler, Scope, check_answer};
use crate::row::note;
use model::vocabulary::kernel as ids;
use model::{Case, CpuSet, Params};
use sys::affinity;
use sys::crew::{Body, Lines, Team, wall_ns};
use sys::mutex::Mutex;
use sys::shared::WORDS_PER_LINE;

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::LOCK_MUTEX,
        title: "Mutex",
        about: "Time to lock a mutex, add one to a number and unlock, for one task and for several that contend.",
        reading: "Lower is better: 10–25 ns alone for two atomic instructions. Under contention it depends on \
                  whether tasks sleep. Either the owner relocks before the woken task runs, so others sleep on \
                  (`handed_over` near 0, unfair shares). Or each turn costs a wake-up of several µs. Several levels \
                  are normal here; lock.handover measures the hand-over alone.",
        method: "The mutex is a three-state futex mutex, like glibc's default. Locking and unlocking take one atomic \
                 instruction each; a locked mutex makes the task sleep at once. The number is raised with a plain \
                 load and store. Two tasks inside at once would lose additions, so it must equal what all tasks \
                 added.",
        metrics: &[
            LATENCY_NS,
            RATE,
            LEAST_SHARE,
            note(ids::metric::HANDED_OVER, "share of turns that follow another task's", ""),
        ],
        cases: |bench, scope| crowd::cases(bench, scope, 1),
        run: fight,
        source: file!(),
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::LOCK_HANDOVER,
        title: "Mutex hand-over",
        about: "Time from one process's unlock to the other's lock when a mutex changes its owner every time.",
        reading: "Lower is better. One CPU takes 1–3 µs: a futex wake, a futex wait and a switch. Two CPUs take 2–5 \
                  µs if the other CPU polls or sleeps lightly. Deep idle states and guests take 10–50 µs. A lock \
                  that changes its owner on each use costs this much each time, however short the section is.",
        method: "Two processes alternate over three mutexes: turn t locks mutex t mod 3, then unlocks t+1 mod 3. \
                 Every unlock therefore finds a sleeper, and every lock waits. The mutex is that of lock.mutex. Each \
                 process checks whose turn it is in a plain number and raises it. Free tasks record every 8 turns \
                 where they run (occupancy).",
        metrics: &[LATENCY_US, OCCUPANCY],
        params: &[CLASS],
        cases: handover_cases,
        run: hand_over,
        source: file!(),
        ..Benchmark::PINNED
    },
];

/// Words after the count: the last owner, and how often the owner changed.
const LAST: usize = 1;
const HANDED: usize = 2;
/// The first of the mutexes' lines, behind the count's.
const MUTEXES: usize = COUNT + 1;

fn mutex(lines: &Lines, index: usize) -> Mutex<'_> {
    Mutex(lines.half(MUTEXES + index))
}

fn fight(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut crowd = Crowd::gather(case, sampler.clock(), 1, |lines, index| -> Body {
        Box::new(move |target| take_turns(&lines, index as u64, target))
    })?;
    crowd.measure(sampler, Params::new())?;
    if case.placement.seats.len() > 1 {
        let handed = crowd.lines().word(COUNT, HANDED).load(Ordering::Acquire);
        sampler.value(
            Params::new(),
            ids::metric::HANDED_OVER,
            handed as f64 / crowd.total().max(1) as f64,
            0.0,
        )?;
    }
    Ok(())
}

/// Locks, counts and unlocks until the count has reached `target`; returns how often. Everything
/// but the mutex is loaded and stored plainly (two instructions, no atomic one), so that it is the
/// mutex that keeps it right.
fn take_turns(lines: &Lines, own: u64, target: u64) -> u64 {
    let mutex = mutex(lines, 0);
    let (count, last, handed) = (&lines[COUNT], lines.word(COUNT, LAST), lines.word(COUNT, HANDED));
    let mut turns = 0;
    loop {
        mutex.lock();
        turns += 1;
        let reached = count.load(Ordering::Relaxed) + 1;
        count.store(reached, Ordering::Relaxed);
        if last.load(Ordering::Relaxed) != own {
            last.store(own, Ordering::Relaxed);
            handed.store(handed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        mutex.unlock();
        if reached >= target {
            return turns;
        }
    }
}

/// A hand-over takes 1 to 50 us.
const STRETCH: f64 = 3.0;

fn handover_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mut pairs = crowd::pairs(scope, true);
    if scope.depth >= Depth::Standard {
        pairs.push(("free", scope.placements.free(&["task", "task"])));
    }
    let candidate = |(name, pair)| match pair {
        Ok(placement) => {
            let mut candidate = Candidate::new(bench.id, placement, 60, scope.seconds(1, STRETCH, 0.003));
            occupancy::tell(&mut candidate.case, scope.placements);
            candidate
        }
        Err(why) => Candidate::unmet(bench.id, name, why),
    };
    pairs.into_iter().map(candidate).collect()
}

/// Lines behind the mutexes: where each task is, and how often the second found both at which
/// distance.
const PLACES: usize = MUTEXES + 3;
const LOOKS: usize = PLACES + 2;
const LINES: usize = LOOKS + 2;
/// Turns of its own after which a task notes where it is.
const LOOK_EVERY: u64 = 8;

fn hand_over(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
    let lines = std::rc::Rc::new(Lines::new(LINES)?);
    let mut team = Team::start(&seats, sampler.clock(), |index| -> anyhow::Result<Body> {
        // Before turn 0 each holds the mutex that its first turn unlocks.
        mutex(&lines, index + 1).lock();
        let lines = lines.clone();
        let mut turn = index as u64;
        let mut seen = Occupancy::of(case);
        Ok(Box::new(move |turns| {
            let mut wrong = 0;
            for done in 1..=turns {
                wrong += u64::from(!take_next(&lines, &mut turn));
                if let Some(seen) = seen.as_mut().filter(|_| done % LOOK_EVERY == 1) {
                    look(&lines, index, seen);
                }
            }
            if let (Some(seen), 1) = (&mut seen, index) {
                for (class, looks) in seen.counts().iter().enumerate().take(2 * WORDS_PER_LINE) {
                    lines.word(LOOKS, class).store(*looks, Ordering::Release);
                }
                seen.take();
            }
            wrong
        }))
    })?;
    let mut expected = 0;
    let mut seen = Occupancy::of(case);
    let notes = seen.as_ref().map_or_else(Vec::new, |seen| seen.notes(&Params::new()));
    sampler.time_noting(Point::new(ids::metric::LATENCY, 2.0).stretch(STRETCH), &notes, |turns| {
        let laps = team.round(turns)?;
        expected += 2 * turns;
        let wrong: u64 = laps.iter().map(|lap| lap.answer).sum();
        let reached = lines[COUNT].load(Ordering::Acquire);
        check_answer(wrong == 0 && reached == expected, || {
            format!("{wrong} turns were out of order, and {reached} of {expected} were counted")
        })?;
        let shares = seen.as_mut().map_or_else(Vec::new, |seen| {
            for class in 0..notes.len() {
                seen.add(class, lines.word(LOOKS, class).load(Ordering::Acquire));
            }
            seen.take()
        });
        Ok((wall_ns(&laps), shares))
    })?;
    Ok(())
}

/// Notes where this task is; the second counts how far the first one was from it when that noted
/// last.
fn look(lines: &Lines, index: usize, seen: &mut Occupancy) {
    let place = |index: usize| &lines[PLACES + index];
    let Some(here) = affinity::current_cpu() else { return };
    place(index).store(u64::from(here), Ordering::Release);
    if index == 1 {
        seen.look(here, place(0).load(Ordering::Acquire) as u32, 1);
    }
}

/// Waits for its turn, counts it and passes it on; false if it was another's.
fn take_next(lines: &Lines, turn: &mut u64) -> bool {
    let number = |turn: u64| (turn % 3) as usize;
    mutex(lines, number(*turn)).lock();
    let count = &lines[COUNT];
    let right = count.load(Ordering::Relaxed) == *turn;
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    mutex(lines, number(*turn + 1)).unlock();
    *turn += 2;
    right
}

#[cfg(test)]
mod tests {
    use super::super::{WrongAnswer, rehearsal};
    use super::*;

    #[test]
    fn fights_and_hand_overs_by_placement() {
        for id in [ids::LOCK_MUTEX, ids::LOCK_HANDOVER] {
            for case in rehearsal::cases(id, Depth::Standard) {
                rehearsal::visit_all(&case);
            }
        }
        // The shortest profile leaves the mix of placements out; all others put two tasks where the
        // scheduler likes.
        for (depth, free) in [(Depth::Quick, 0), (Depth::Standard, 1), (Depth::Full, 1)] {
            let cases = rehearsal::cases(ids::LOCK_MUTEX, depth);
            let found = cases.iter().filter(|case| case.placement.name == "free");
            let tasks: Vec<usize> = found.map(|case| case.placement.seats.len()).collect();
            assert_eq!(tasks, vec![2; free], "{depth:?}");
        }
        let quick = rehearsal::cases(ids::LOCK_HANDOVER, Depth::Quick);
        assert!(quick.len() <= 2 && quick[0].placement.name == "same-cpu", "{}", quick.len());
    }

    #[test]
    fn two_inside_at_once_are_a_wrong_answer() {
        let case = rehearsal::cases(ids::LOCK_MUTEX, Depth::Quick).remove(0);
        let outcome = rehearsal::with_sampler(|sampler| {
            let mut crowd = Crowd::gather(&case, sampler.clock(), 1, |lines, index| -> Body {
                Box::new(move |target| {
                    // As if another task had overwritten one of this task's stores.
                    let turns = take_turns(&lines, index as u64, target);
                    let count = &lines[COUNT];
                    count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
                    turns
                })
            })?;
            crowd.measure(sampler, Params::new())
        });
        let error = outcome.expect_err("one is missing");
        assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error:#}");
    }

    #[test]
    fn turns_out_of_order_are_seen() {
        let lines = Lines::new(4).expect("lines");
        mutex(&lines, 1).lock();
        let mut turn = 0;
        assert!(take_next(&lines, &mut turn));
        lines[COUNT].store(7, Ordering::Relaxed);
        assert!(!take_next(&lines, &mut turn));
        assert_eq!(turn, 4);
    }
}
