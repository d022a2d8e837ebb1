//! How late a sleeping task wakes up.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use anyhow::{Context, bail};
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};

use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, View, check_answer, histogram};
use crate::row::{quantile_us, value};
use model::vocabulary::kernel as ids;
use model::{Better, Case, Params, Value};
use sys::sched::{self, Policy};

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::TIMER_NANOSLEEP,
        title: "Sleep",
        about: "How much later than asked a sleeping task runs again, for each scheduling policy. cyclictest \
                measures the same.",
        reading: "Lower is better. `other` takes 50 µs of timer slack plus 2–10 µs. `fifo`, and `other` with 1 ns of \
                  slack, take 2–10 µs, in guests 10–60. Deep idle states add up to hundreds of µs. A busy CPU adds \
                  up to a time slice, but nothing for `fifo`. The minimum is the bare path, the median what a \
                  program sees. p99 and the longest are interrupts, firmware or the hypervisor.",
        method: "The task sleeps until a moment of CLOCK_MONOTONIC (clock_nanosleep, absolute), reads the clock, and \
                 takes the next moment 250 µs later. It does so at least 100 times in a sample, and the CPU idles in \
                 between. `fifo` has priority 80. Other policies get the timer slack, 50 µs by default or \
                 `slack_ns`, which lets the kernel join timers. The longest of a sample is the median over all \
                 samples. `worst` is the longest of a pass, nearer to cyclictest's max. No wake-up may come early.",
        run: nanosleep,
        ..ROW
    },
    Benchmark {
        id: ids::TIMER_TIMERFD,
        title: "timerfd",
        about: "How much later than its expiry a task wakes from reading a timerfd. Event loops wait like this.",
        reading: "Lower is better: 2–10 µs, in guests 10–60, as the Sleep benchmark with `fifo`. Timer descriptors \
                  have no timer slack under any policy. The read itself adds a little.",
        method: "The timer expires every 250 µs. read returns how often it has expired, and the delay is that of the \
                 first expiry. The expirations read must match the time that has passed.",
        run: timerfd,
        ..ROW
    },
];

const ROW: Benchmark = Benchmark {
    metrics: &[
        quantile_us(ids::metric::LATENESS_P50, "wake-up delay, median", 0.5),
        quantile_us(ids::metric::LATENESS_MIN, "wake-up delay, shortest", 0.0).aside(),
        quantile_us(ids::metric::LATENESS_P99, "wake-up delay, 99th percentile", 0.99).aside(),
        quantile_us(ids::metric::LATENESS_MAX, "longest in a sample", 1.0).aside(),
        value(ids::metric::LATENESS_WORST, "longest in a pass", "us", Better::Lower),
    ],
    params: &[
        Param::choice(ids::param::POLICY, "scheduling policy of the sleeper", Policy::NAMES),
        Param::int(ids::param::SLACK_NS, "timer slack, ns (default 50 µs)", 1..=1_000_000_000),
    ],
    view: &View::Wide,
    cases,
    source: file!(),
    ..Benchmark::PINNED
};

const PERIOD_NS: u64 = 250_000;
/// What the kernel gives every task that does not ask for another one.
const DEFAULT_SLACK_NS: u64 = 50_000;
/// Wake-ups of a sample: a hundred have a 99th percentile.
const WAKE_UPS: u64 = 100;
/// A sample that takes this many times as long as it should ends early: other work has the CPU.
const PATIENCE: u64 = 8;

/// Quick: what there is without asking, and what real-time tasks get; the rest is for deeper
/// profiles.
fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let by_slack = bench.id == ids::TIMER_NANOSLEEP;
    let wanted = [
        ("other", None, 70, Depth::Quick),
        ("fifo", None, 55, if by_slack { Depth::Quick } else { Depth::Standard }),
        ("other", Some(1u64), 45, Depth::Standard),
        ("batch", None, 40, Depth::Standard),
        ("idle", None, 40, Depth::Standard),
    ];
    let wanted = wanted.into_iter().filter(|(policy, slack, _, from)| {
        *from <= scope.depth && (by_slack || slack.is_none() && ["other", "fifo"].contains(policy))
    });
    let windows = (scope.windows.count + scope.windows.warm_up) as f64;
    let seconds = windows * (wake_ups(scope.windows.window_ns) * PERIOD_NS) as f64 / 1e9;
    let candidate = |(name, slack, priority, _): (&str, Option<u64>, u32, Depth)| {
        let refused = Policy::named(name).and_then(sched::why_refused);
        let candidate = match (scope.placements.one_cpu("task"), refused) {
            (Err(why), _) | (Ok(_), Some(why)) => Candidate::unmet(bench.id, "one-cpu", why),
            (Ok(placement), None) => {
                Candidate::new(bench.id, placement, priority, scope.seconds(0, 1.0, seconds))
            }
        };
        let candidate = candidate.param(ids::param::POLICY, name);
        match slack {
            Some(ns) => candidate.param(ids::param::SLACK_NS, ns),
            None => candidate,
        }
    };
    wanted.map(candidate).collect()
}

/// Longer samples have more wake-ups.
fn wake_ups(window_ns: f64) -> u64 {
    WAKE_UPS.max((10.0 * window_ns) as u64 / PERIOD_NS)
}

/// Becomes the sleeper that the case asks for.
fn become_sleeper(case: &Case) -> anyhow::Result<()> {
    let slack =
        case.params.get(ids::param::SLACK_NS).and_then(Value::int).and_then(|ns| u64::try_from(ns).ok());
    let slack = NonZeroU64::new(slack.unwrap_or(DEFAULT_SLACK_NS))
        .context("the timer slack must be at least 1 ns")?;
    sched::set_timer_slack(slack).context("cannot set the timer slack")?;
    let name = case.params.get(ids::param::POLICY).and_then(Value::text).unwrap_or("other");
    let policy = Policy::named(name).with_context(|| format!("unknown policy {name:?}"))?;
    sched::set_policy(policy).with_context(|| format!("cannot set the scheduling policy {name}"))
}

fn now_ns() -> u64 {
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

fn nanosleep(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    become_sleeper(case)?;
    measure(sampler, |wanted| {
        let mut latenesses = Vec::with_capacity(wanted as usize);
        let begin = now_ns();
        let mut moment = begin + PERIOD_NS;
        while (latenesses.len() as u64) < wanted && moment < begin + wanted * PERIOD_NS * PATIENCE {
            match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(moment)) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).context("cannot sleep"),
            }
            let now = now_ns();
            latenesses.push(late(moment, now)?);
            // Moments that have already passed are skipped, as no sleep ended there.
            moment = next_moment(moment, now);
        }
        Ok(latenesses)
    })
}

/// The first moment of the grid that lies at least half a period ahead: nearer ones are no sleep.
fn next_moment(last: u64, now: u64) -> u64 {
    let passed = (now + PERIOD_NS / 2).saturating_sub(last) / PERIOD_NS;
    last + (passed + 1).max(1) * PERIOD_NS
}

fn timerfd(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    become_sleeper(case)?;
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).context("cannot make a timerfd")?;
    measure(sampler, |wanted| {
        let mut latenesses = Vec::with_capacity(wanted as usize);
        let begin = now_ns();
        let every = Itimerspec { it_interval: timespec(PERIOD_NS), it_value: timespec(begin + PERIOD_NS) };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &every).context("cannot set a timerfd")?;
        let mut expired = 0;
        while (latenesses.len() as u64) < wanted && expired < wanted * PATIENCE {
            let before = now_ns();
            let more = expirations(&timer)?;
            let now = now_ns();
            latenesses.push(late(begin + (expired + 1) * PERIOD_NS, now)?);
            expired += more;
            let due = |at: u64| (at - begin) / PERIOD_NS;
            check_answer(more > 0 && (due(before)..=due(now)).contains(&expired), || {
                let (least, most) = (due(before), due(now));
                format!("the timer counts {expired} expirations, the clock {least}–{most}")
            })?;
        }
        let off = Itimerspec { it_interval: timespec(0), it_value: timespec(0) };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &off).context("cannot stop a timerfd")?;
        Ok(latenesses)
    })
}

/// Sleeps until the timer has expired; returns how often it has since it was read last.
fn expirations(timer: &OwnedFd) -> anyhow::Result<u64> {
    let mut count = [0u8; 8];
    loop {
        match rustix::io::read(timer, &mut count) {
            Ok(8) => return Ok(u64::from_ne_bytes(count)),
            Ok(bytes) => bail!("a timerfd returned {bytes} of 8 bytes"),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).context("cannot read a timerfd"),
        }
    }
}

/// How late it is, ns; a wake-up before its moment is a wrong answer.
fn late(moment: u64, now: u64) -> anyhow::Result<u64> {
    check_answer(now >= moment, || format!("woken {} ns too early", moment.abs_diff(now)))?;
    Ok(now - moment)
}

/// Emits the histograms of samples of wake-ups.
fn measure(
    sampler: &mut Sampler,
    mut window: impl FnMut(u64) -> anyhow::Result<Vec<u64>>,
) -> anyhow::Result<()> {
    let wanted = wake_ups(sampler.windows().window_ns);
    let clock = sampler.clock();
    let metrics = [
        ids::metric::LATENESS_P50,
        ids::metric::LATENESS_MIN,
        ids::metric::LATENESS_P99,
        ids::metric::LATENESS_MAX,
    ];
    let (mut to_warm_up, mut worst_ns) = (sampler.windows().warm_up, 0);
    sampler.histograms(Params::new(), &metrics, &[], || {
        let begin = clock.now();
        let latenesses = window(wanted)?;
        match to_warm_up {
            0 => worst_ns = latenesses.iter().copied().fold(worst_ns, u64::max),
            _ => to_warm_up -= 1,
        }
        Ok((histogram(latenesses), clock.now() - begin, Vec::new()))
    })?;
    sampler.value(Params::new(), ids::metric::LATENESS_WORST, worst_ns as f64 / 1e3, 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::{WrongAnswer, rehearsal};
    use super::*;
    use model::Form;

    #[test]
    fn every_policy_that_is_allowed_is_measured() {
        for id in [ids::TIMER_NANOSLEEP, ids::TIMER_TIMERFD] {
            for case in rehearsal::cases(id, Depth::Standard) {
                let samples = rehearsal::visit_all(&case);
                let [samples, worst] = samples.as_slice() else {
                    panic!("{}: {}", case.key(), samples.len())
                };
                let counts: Vec<u64> = samples.histograms.iter().map(|one| one.total()).collect();
                // A sample ends early when others keep the CPU, never with more than was asked.
                assert!(counts.iter().all(|count| (1..=WAKE_UPS).contains(count)), "{counts:?}");
                let quantile = |q| samples.values(Form::Quantile { q, scale: 1.0 })[1];
                assert!(quantile(0.0) <= quantile(0.5) && quantile(0.5) <= quantile(1.0));
                let most = samples.values(Form::Quantile { q: 1.0, scale: 1e-3 });
                let most = most[samples.warm_up..].iter().copied().fold(0.0, f64::max);
                // Histograms round up, by a thousandth at most.
                assert!((worst.values(Form::Value)[0] / most - 1.0).abs() < 2e-3, "{worst:?} {most}");
            }
        }
    }

    #[test]
    fn a_case_sets_its_slack() {
        for slack in [None, Some(1u64), Some(70_000)] {
            let mut case = rehearsal::cases(ids::TIMER_NANOSLEEP, Depth::Quick).remove(0);
            if let Some(ns) = slack {
                case.params.insert(ids::param::SLACK_NS, ns);
            }
            become_sleeper(&case).expect("everybody may");
            let now = rustix::thread::current_timer_slack().expect("known");
            assert_eq!(now, slack.unwrap_or(DEFAULT_SLACK_NS));
        }
    }

    #[test]
    fn policies_that_are_refused_are_said_to_be() {
        let candidates = rehearsal::candidates(ids::TIMER_NANOSLEEP, Depth::Quick);
        let keys: Vec<String> = candidates.iter().map(|one| one.case.key()).collect();
        assert_eq!(keys, ["timer.nanosleep@one-cpu?policy=other", "timer.nanosleep@one-cpu?policy=fifo"]);
        assert!(candidates[0].unmet.is_none());
        let refused = sched::why_refused(Policy::Fifo);
        assert_eq!(candidates[1].unmet.is_some(), refused.is_some());
    }

    #[test]
    fn moments_stay_on_their_grid_and_ahead() {
        let p = PERIOD_NS;
        assert_eq!(next_moment(10 * p, 10 * p + 1), 11 * p);
        assert_eq!(next_moment(10 * p, 10 * p + p / 2 - 1), 11 * p);
        assert_eq!(next_moment(10 * p, 10 * p + p / 2), 12 * p, "a quarter of a period would be left");
        assert_eq!(next_moment(10 * p, 15 * p + 1), 16 * p);
    }

    #[test]
    fn a_wake_up_before_its_moment_is_a_wrong_answer() {
        assert_eq!(late(1000, 1700).expect("late"), 700);
        let error = late(1000, 999).expect_err("early");
        assert!(error.is::<WrongAnswer>() && error.to_string().contains("1 ns too early"), "{error}");
    }
}
