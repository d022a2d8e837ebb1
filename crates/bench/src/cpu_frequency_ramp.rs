//! The core clock from idle to loaded: what idle states and turbo do to the first milliseconds
//! after a wake-up.

use std::time::Duration;

use anyhow::ensure;

use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, check_answer, median, point};
use crate::row::{ghz, log_curve, note};
use kernels::{CHAIN_UNROLL, add_chain, add_chain_answer};
use model::vocabulary::MetricId;
use model::vocabulary::cpu as ids;
use model::{Case, Params};
use sys::clock::Clock;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::FREQUENCY_RAMP,
    title: "Core clock after idling",
    about: "How the core clock changes in the first 100 ms of work after a CPU was idle. Each length of idling has \
            its own curve.",
    reading: "A flat line is best: waking up costs no clock. A rising line means that the core wakes at a low clock \
              and short work runs at that clock. The governor, the energy bias and deep idle states cause this. A \
              falling line shows how long turbo lasts. In a guest the host sets the clock.",
    method: "A pinned task sleeps and then runs dependent 64-bit additions, one a cycle, for 100 ms. They are timed \
             in pieces of 16,384. The clock of a step is that of its median piece, so an interrupt changes nothing. \
             Steps last 0.05 ms at first and 50 ms at the end. Lengths of idling alternate, and each pass wakes up \
             many times. No MSR and no performance counter is read.",
    source: file!(),
    metrics: &[
        ghz(ids::metric::CLOCK, "core clock"),
        note(ids::metric::FIRST_CLOCK, "clock at the first step", "GHz"),
        note(ids::metric::STEADY_CLOCK, "steady clock", "GHz"),
        note(ids::metric::SETTLING, "time to within 2 % of the steady clock", "ms"),
    ],
    params: &[
        Param::int(ids::param::IDLE_MS, "idle time before, ms", 1..=10_000),
        Param::int(ids::param::AT_US, "end of a step, µs after the wake-up", 1..=1 << 30),
    ],
    view: &log_curve(ids::param::AT_US),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

/// Shorter and longer than the target residency of usual deep idle states (0.1 to 2 ms), and long
/// enough for a governor to let the clock fall.
const IDLE_MS: [u64; 3] = [1, 10, 100];
/// Ends of steps, µs since the wake-up; governors decide every 1–20 ms.
const STEPS_US: [u64; 11] = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];
/// Wake-ups of a pass.
const WAKE_UPS: usize = 5;
/// Rounds of a piece: 16,384 additions, 4 to 12 us, of which reading the clock is under 1 %.
const PIECE: u64 = 16_384 / CHAIN_UNROLL;
/// Pieces that are judged together as steady or not: about 50 us.
const GROUP: usize = 9;
/// A clock this near to the steady one is steady.
const NEAR: f64 = 0.02;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let of = |idle_ms: &u64| {
        let wake_up_s = (*idle_ms as f64 + LAST_US as f64 / 1e3) / 1e3;
        let seconds = 0.005 + (WAKE_UPS + 1) as f64 * wake_up_s;
        Candidate::new(bench.id, placement.clone(), 46, seconds).param(ids::param::IDLE_MS, *idle_ms)
    };
    IDLE_MS.iter().map(of).collect()
}

const LAST_US: u64 = STEPS_US[STEPS_US.len() - 1];

fn points(_: &Case) -> Vec<Params> {
    STEPS_US.iter().map(|end| point(ids::param::AT_US, *end)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let idle_ms = case.params.get(ids::param::IDLE_MS).and_then(|idle| idle.int()).unwrap_or(1);
    let idle = Duration::from_millis(idle_ms.max(0) as u64);
    let clock = sampler.clock();
    let mut pieces = Pieces::new();
    // The first has every page of the notes touched, and code in the caches.
    pieces.note(Duration::ZERO, clock)?;
    let mut ramps = Vec::new();
    // Another task may hold the CPU over a whole step: more wake-ups fill the gap, a few times as
    // many at most.
    for _ in 0..3 * WAKE_UPS {
        pieces.note(idle, clock)?;
        ramps.push(Ramp::of(&pieces.ends_ns));
        if (0..STEPS_US.len()).all(|step| step_ns(&ramps, step).len() >= WAKE_UPS) {
            break;
        }
    }
    let is_whole = |ramp: &Ramp| ramp.piece_ns[0].is_finite() && ramp.steady_ns.is_finite();
    ensure!(ramps.iter().any(is_whole), "other tasks or the host used the CPU at every wake-up");
    let work = (PIECE * CHAIN_UNROLL) as f64;
    for (step, end) in STEPS_US.iter().enumerate() {
        let ns = step_ns(&ramps, step);
        // Of a step that others had in every wake-up nothing is known.
        if !ns.is_empty() {
            let at = point(ids::param::AT_US, *end);
            sampler.windows_timed(at, ids::metric::CLOCK, (vec![work; ns.len()], ns), 0)?;
        }
    }
    let mut emit = |metric: MetricId, value: &dyn Fn(&Ramp) -> f64| {
        let values: Vec<f64> = ramps.iter().map(value).filter(|value| value.is_finite()).collect();
        let ns = vec![LAST_US as f64 * 1e3; values.len()];
        sampler.windows_timed(Params::new(), metric, (values, ns), 0)
    };
    emit(ids::metric::FIRST_CLOCK, &|ramp| work / ramp.piece_ns[0])?;
    emit(ids::metric::STEADY_CLOCK, &|ramp| work / ramp.steady_ns)?;
    emit(ids::metric::SETTLING, &|ramp| ramp.settled_ns / 1e6)
}

/// The pieces of a step, one from each wake-up that has it, ns.
fn step_ns(ramps: &[Ramp], step: usize) -> Vec<f64> {
    ramps.iter().map(|ramp| ramp.piece_ns[step]).filter(|ns| ns.is_finite()).collect()
}

/// When each piece of a wake-up ended, ns since the wake-up. The memory is kept from one to the
/// next.
struct Pieces {
    ends_ns: Vec<f64>,
}

impl Pieces {
    fn new() -> Pieces {
        // At 10 GHz, which no core has, a piece takes 1.6 us.
        Pieces { ends_ns: vec![0.0; LAST_US as usize] }
    }

    /// Sleeps, then computes until the last step is over; every sum is checked.
    fn note(&mut self, idle: Duration, clock: Clock) -> anyhow::Result<()> {
        self.ends_ns.clear();
        let mut sum = 1;
        std::thread::sleep(idle);
        let begin = clock.now();
        while self.ends_ns.len() < self.ends_ns.capacity() {
            sum = add_chain(PIECE, sum, 3);
            let since = clock.now() - begin;
            self.ends_ns.push(since);
            if since > LAST_US as f64 * 1e3 {
                break;
            }
        }
        let rounds = self.ends_ns.len() as u64 * PIECE;
        check_answer(sum == add_chain_answer(rounds, 1, 3), || {
            format!("{rounds} rounds of additions gave {sum}")
        })
    }
}

/// Another task had the CPU during a piece of ten times the shortest one's length: no core clock
/// lies that far below its highest.
const HELD: f64 = 10.0;

/// What one wake-up showed; not a number: no piece ended then, because another task had the CPU.
#[derive(Debug)]
struct Ramp {
    /// The median piece of each step, ns.
    piece_ns: Vec<f64>,
    /// The median piece of the second half, ns.
    steady_ns: f64,
    /// When pieces became as long as when steady, and stayed so for three groups; ns since the
    /// wake-up.
    settled_ns: f64,
}

impl Ramp {
    fn of(ends_ns: &[f64]) -> Ramp {
        let begins = std::iter::once(0.0).chain(ends_ns.iter().copied());
        let all = ends_ns.iter().zip(begins).map(|(end, begin)| (*end, end - begin));
        let shortest = all.clone().map(|(_, ns)| ns).fold(f64::INFINITY, f64::min);
        let pieces: Vec<(f64, f64)> = all.filter(|(_, ns)| *ns <= HELD * shortest).collect();
        let between = |from_us: u64, to_us: u64| {
            let inside = |(end, _): &&(f64, f64)| (from_us as f64 * 1e3..to_us as f64 * 1e3).contains(end);
            median(pieces.iter().filter(inside).map(|(_, ns)| *ns).collect())
        };
        let from = std::iter::once(0).chain(STEPS_US);
        let piece_ns: Vec<f64> = STEPS_US.iter().zip(from).map(|(to, from)| between(from, *to)).collect();
        let steady_ns = between(LAST_US / 2, LAST_US);
        let groups: Vec<(f64, bool)> = pieces
            .chunks(GROUP)
            .map(|group| {
                let piece = median(group.iter().map(|(_, ns)| *ns).collect());
                let (end, ns) = group[0];
                (end - ns, (steady_ns / piece - 1.0).abs() <= NEAR)
            })
            .collect();
        let settled = groups.windows(3).find(|three| three.iter().all(|(_, is_near)| *is_near));
        let settled_ns = match (steady_ns.is_finite(), settled) {
            (false, _) => f64::NAN,
            (true, Some(three)) => three[0].0,
            (true, None) => LAST_US as f64 * 1e3,
        };
        Ramp { piece_ns, steady_ns, settled_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;
    use model::Form;

    /// Ends of pieces of a core that runs at `slow` GHz until `until_us`, then at `fast`.
    fn ends(slow: f64, until_us: f64, fast: f64) -> Vec<f64> {
        let mut now = 0.0;
        let piece = |now: f64| (PIECE * CHAIN_UNROLL) as f64 / if now < until_us * 1e3 { slow } else { fast };
        std::iter::from_fn(|| {
            now += piece(now);
            Some(now)
        })
        .take_while(|end| *end < LAST_US as f64 * 1e3)
        .collect()
    }

    #[test]
    fn every_idle_length_gives_clocks_and_what_they_come_to() {
        for case in rehearsal::cases(ids::FREQUENCY_RAMP, Depth::Standard) {
            let (samples, reason) = rehearsal::visit(&case);
            // Other work may hide a step in every wake-up: it is then absent, not invented.
            if let Some(reason) = reason {
                assert!(reason.text().contains("held the CPU"), "{reason:?}");
                continue;
            }
            let clocks = samples.iter().filter(|one| one.metrics == [ids::metric::CLOCK.as_str()]);
            for one in clocks {
                assert!(points(&case).contains(&one.point), "{:?}", one.point);
                let ghz = one.values(Form::WorkPerTime { scale: 1.0 });
                assert!(ghz.iter().all(|ghz| (0.05..10.0).contains(ghz)), "{ghz:?}");
            }
            for metric in [ids::metric::FIRST_CLOCK, ids::metric::STEADY_CLOCK, ids::metric::SETTLING] {
                let own = samples.iter().find(|one| one.metrics == [metric.as_str()]);
                assert!(own.is_some_and(|one| !one.is_empty()), "{metric}");
            }
        }
        assert_eq!(rehearsal::cases(ids::FREQUENCY_RAMP, Depth::Standard).len(), IDLE_MS.len());
    }

    #[test]
    fn a_clock_that_rises_after_two_ms_is_seen_to() {
        let ramp = Ramp::of(&ends(1.37, 2_000.0, 3.02));
        let work = (PIECE * CHAIN_UNROLL) as f64;
        let ghz: Vec<f64> = ramp.piece_ns.iter().map(|ns| (work / ns * 100.0).round() / 100.0).collect();
        assert_eq!(ghz[..6], [1.37; 6]);
        assert_eq!(ghz[6..], [3.02; 5]);
        assert!((1.9e6..2.1e6).contains(&ramp.settled_ns), "{}", ramp.settled_ns);
        assert!((work / ramp.steady_ns - 3.02).abs() < 1e-6);
        let falling = Ramp::of(&ends(3.6, 10_000.0, 3.0));
        assert!((9.9e6..10.2e6).contains(&falling.settled_ns), "{}", falling.settled_ns);
    }

    #[test]
    fn a_flat_clock_is_steady_at_once_and_an_interrupt_moves_nothing() {
        let mut ends = ends(3.0, 0.0, 3.0);
        assert_eq!(Ramp::of(&ends).settled_ns, 0.0);
        // Ten pieces late: one of them lasted longer.
        ends.iter_mut().skip(3).for_each(|end| *end += 8_000.0);
        let ramp = Ramp::of(&ends);
        assert!(ramp.settled_ns == 0.0 && ramp.piece_ns.windows(2).all(|two| (two[0] - two[1]).abs() < 1e-3));
        // A gap over whole steps: this wake-up has no value for them, others do.
        ends.iter_mut().skip(1).for_each(|end| *end += 200_000.0);
        let gap = Ramp::of(&ends);
        assert!(gap.piece_ns[1].is_nan() && gap.piece_ns[4].is_finite(), "{gap:?}");
        assert_eq!(step_ns(&[gap, ramp], 1).len(), 1);
    }
}
