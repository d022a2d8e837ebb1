//! N copies of one test at once, as the suite's `-c N` runs them: a common start, a common sample,
//! and the sum of the rates of all.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use anyhow::{bail, ensure};

use super::super::process::no_child_left;
use super::super::{Point, Sampler};
use super::COPIES;
use model::vocabulary::unixbench as ids;
use model::{Case, CpuSet, Params, Placement, Value};
use sys::clock::Clock;
use sys::crew::{Body, Lap, Lines, Notice, Team, wall_ns};

/// The most copies of a case: as many as the suite's own newer versions allow.
pub const MAX_COPIES: i64 = 1024;

/// What one copy does.
pub trait Test {
    /// Does this many loops, or returns why their result is wrong.
    fn work(&mut self, loops: u64) -> anyhow::Result<()>;
    /// What can only be checked when all copies are done.
    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(u64) -> anyhow::Result<()>> Test for F {
    fn work(&mut self, loops: u64) -> anyhow::Result<()> {
        self(loops)
    }
}

pub type Loops = Box<dyn Test>;

/// How many copies a case asks for, 1 where it does not say.
pub fn of(case: &Case) -> anyhow::Result<usize> {
    let copies = case.params.get(COPIES.name).map_or(Some(1), Value::int);
    match copies {
        Some(copies) if (1..=MAX_COPIES).contains(&copies) => Ok(copies as usize),
        _ => bail!("copies must be a number from 1 to {MAX_COPIES}"),
    }
}

/// The same case with this many copies, and seats for them. The seats of one copy are repeated.
pub fn with_copies(case: &Case, copies: u64) -> Case {
    let now = of(case).unwrap_or(1);
    let each = (case.placement.seats.len() / now).max(1);
    let seats = case.placement.seats.iter().cycle().take(each * copies as usize).cloned().collect();
    let params: Params =
        case.params.clone().into_iter().chain([(COPIES.name.to_string(), copies.into())]).collect();
    Case { placement: Placement { seats, ..case.placement.clone() }, params, ..case.clone() }
}

/// The seats of one copy, which has `each` tasks: those that it is given, or the first ones again
/// where a placement has fewer than there are copies.
pub fn seats(placement: &Placement, copy: usize, each: usize) -> Placement {
    let own = placement.seats.iter().cycle().skip(copy * each % placement.seats.len().max(1)).take(each);
    Placement { seats: own.cloned().collect(), ..placement.clone() }
}

/// A copy that has done its part goes on so that the others are not left to work undisturbed: in
/// pieces of this share of it,
const PIECES: u64 = 64;
/// and not for ever if another one has died, ns.
const PATIENCE_NS: f64 = 20e9;

/// How the copies of a test are timed.
pub struct Timing {
    /// Sample length in units of the usual one.
    pub stretch: f64,
    /// Work of one loop, in the score's unit of work.
    pub work: f64,
    /// Tasks of a copy, which have a seat each; the first one's is the copy's own.
    pub tasks: usize,
}

/// Times `score`: `build` makes each copy's loops, in the copy's own process.
pub fn measure(
    case: &Case,
    sampler: &mut Sampler,
    timing: Timing,
    build: impl Fn(usize) -> anyhow::Result<Loops>,
) -> anyhow::Result<()> {
    let copies = of(case)?;
    ensure!(!case.placement.seats.is_empty(), "the case has no CPU for a copy");
    let clock = sampler.clock();
    let own_seat = |copy| seats(&case.placement, copy, timing.tasks).seats.swap_remove(0).cpus;
    let cpus: Vec<CpuSet> = (0..copies).map(own_seat).collect();
    let board = Rc::new(Board { lines: Lines::new(1)?, notice: Notice::new()?, copies: copies as u64 });
    let build = |copy| -> anyhow::Result<Body> { Ok(copy_of(board.clone(), clock, build(copy)?)) };
    let mut team = Team::start(&cpus, clock, build)?;
    sampler.time_counted(Point::new(ids::metric::SCORE, timing.work).stretch(timing.stretch), |loops| {
        board.lines[DONE].store(0, Ordering::Release);
        let laps = team.round(loops);
        board.notice.check()?;
        let (window, done) = together(&laps?);
        Ok((window, done * timing.work))
    })?;
    let laps = team.round(FINISH);
    board.notice.check()?;
    laps?;
    drop(team);
    no_child_left()
}

/// The sample of a round, ns, and the loops that all copies did in it: each copy by its own clock,
/// as the suite adds up the rates that its copies print.
fn together(laps: &[Lap]) -> (f64, f64) {
    let window = wall_ns(laps);
    let done = laps.iter().map(|lap| lap.answer as f64 * window / (lap.end_ns - lap.start_ns));
    (window, done.sum())
}

/// The round that has no loops.
const FINISH: u64 = 0;

/// A copy's part in a round: `loops` loops, then as many more as the slowest copy gives it time
/// for. It answers how many it has done.
fn copy_of(board: Rc<Board>, clock: Clock, mut work: Loops) -> Body {
    Box::new(move |loops| {
        if loops == FINISH {
            if let Err(error) = work.finish() {
                board.notice.leave(&error);
            }
            return 0;
        }
        let mut worked = work.work(loops);
        board.lines[DONE].fetch_add(1, Ordering::AcqRel);
        let (mut done, end) = (loops, clock.now() + PATIENCE_NS);
        let piece = (loops / PIECES).max(1);
        while worked.is_ok() && board.lines[DONE].load(Ordering::Acquire) < board.copies && clock.now() < end
        {
            worked = work.work(piece);
            done += piece;
        }
        if let Err(error) = worked {
            board.notice.leave(&error);
        }
        done
    })
}

/// What the copies share.
struct Board {
    lines: Lines,
    /// Why one of them cannot go on.
    notice: Notice,
    copies: u64,
}

/// The line that counts the copies that have done their part of a round.
const DONE: usize = 0;

#[cfg(test)]
mod tests {
    use super::super::super::rehearsal;
    use super::*;
    use crate::{Depth, check_answer};
    use model::Reason;

    fn case(copies: u64) -> Case {
        with_copies(&rehearsal::cases(ids::SYSCALL, Depth::Quick).remove(0), copies)
    }

    fn timing() -> Timing {
        Timing { stretch: 1.0, work: 1.0, tasks: 1 }
    }

    #[test]
    fn copies_are_given_seats_and_a_name_of_their_own() {
        let one = case(1);
        assert_eq!(one.placement.seats.len(), 1);
        let many = with_copies(&one, 5);
        assert_eq!((of(&many).expect("a number"), many.placement.seats.len()), (5, 5));
        assert!(many.key().ends_with("?copies=5"), "{}", many.key());
        assert_eq!(with_copies(&many, 1), one);
        let pair = rehearsal::cases(ids::CONTEXT1, Depth::Quick).remove(0);
        let pairs = with_copies(&pair, 3);
        assert_eq!(pairs.placement.seats.len(), 6);
        assert_eq!(seats(&pairs.placement, 2, 2).seats[1].role, "pong");
        for wrong in [0, MAX_COPIES as u64 + 1] {
            assert!(of(&with_copies(&one, wrong)).is_err(), "{wrong}");
        }
    }

    /// The second copy starts late and ends last: each has its own time, and their rates are added.
    #[test]
    fn the_rates_of_all_copies_are_added() {
        let lap = |start_ns, end_ns, answer| Lap { start_ns, end_ns, answer };
        assert_eq!(together(&[lap(100.0, 300.0, 50)]), (200.0, 50.0));
        let (window, done) = together(&[lap(100.0, 300.0, 50), lap(200.0, 500.0, 30)]);
        assert_eq!(window, 400.0);
        assert!((done / window - (50.0 / 200.0 + 30.0 / 300.0)).abs() < 1e-12, "{done}");
    }

    #[test]
    fn a_copy_that_goes_wrong_says_why_and_ends_the_visit() {
        for wrong in [0, 2] {
            let build = |copy| -> anyhow::Result<Loops> {
                let mut calls = 0;
                Ok(Box::new(move |loops: u64| {
                    calls += 1;
                    std::thread::sleep(std::time::Duration::from_micros(100 * loops.min(100)));
                    check_answer(copy != wrong || calls < 5, || format!("planted in copy {copy}"))
                }))
            };
            let case = case(3);
            let (_, reason) = rehearsal::sampled(&case, |sampler| measure(&case, sampler, timing(), build));
            assert_eq!(reason, Some(Reason::WrongAnswer(format!("planted in copy {wrong}"))));
        }
    }

    #[test]
    fn a_copy_that_fails_otherwise_is_no_wrong_answer() {
        let build = |_| -> anyhow::Result<Loops> { Ok(Box::new(|_: u64| bail!("the planted reason"))) };
        let case = case(2);
        let (_, reason) = rehearsal::sampled(&case, |sampler| measure(&case, sampler, timing(), build));
        let Some(Reason::Failed(why)) = reason else { panic!("{reason:?}") };
        assert!(why.contains("the planted reason"), "{why}");
    }
}
