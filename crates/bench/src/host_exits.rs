//! What a guest pays for interrupting another CPU and for setting a timer, compared with one exit
//! to the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::placement::Distance;
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{latency_ns, value};
use model::vocabulary::MetricId;
use model::vocabulary::host as ids;
use model::{Better, Case, CpuSet, Metric, Params, Placement};
use sys::{affinity, cpuid, membarrier, thread};

const fn longer(name: MetricId, title: &'static str) -> Metric {
    value(name, title, "ns", Better::Lower)
}

const EXIT: Metric = latency_ns(ids::metric::EXIT, "cpuid, an exit in a guest").aside();

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::IPI,
        title: "Interrupt of another CPU",
        about: "What interrupting another CPU costs: a memory barrier (membarrier) on a thread that runs there. \
                `interrupt` is that less a barrier while the thread sleeps.",
        reading: "Bare metal takes 0.5–2 µs. A guest with hardware virtualised interrupts (AVIC, APICv) pays about \
                  the same, less than one `exit`. Two exits and more mean that sender and receiver leave the guest. \
                  Values between are posted interrupts or a fast exit; time alone cannot separate them. Threaded \
                  programs pay this at every unmapping, migration and wake-up.",
        method: "The kernel interrupts each CPU that runs a thread of the process and waits for its answer (private \
                 expedited membarrier). Samples alternate between the thread running (state=running) and asleep \
                 (state=away). `interrupt` is their difference, sample by sample. On x86 `exit` times cpuid, which \
                 every hypervisor answers itself.",
        source: file!(),
        metrics: &[
            latency_ns(ids::metric::LATENCY, "membarrier"),
            longer(ids::metric::INTERRUPT, "interrupt and answer"),
            EXIT,
        ],
        params: &[STATE],
        cases: ipi_cases,
        points: states,
        run: ipi,
        ..ROW
    },
    Benchmark {
        id: ids::TIMER,
        title: "Hardware timer",
        about: "What setting the CPU's hardware timer costs. `reprogram` is arming and disarming a near timer less \
                the same for a far timer.",
        reading: "Bare metal takes 0.1–0.3 µs for both writes. In a guest each write of the TSC deadline is an exit, \
                  usually a fast one of 0.5–2 µs. Event loops and network stacks that arm a timer for each request \
                  pay this every time.",
        method: "timerfd_settime is called twice. expiry=near expires in 0.2 ms and is the next timer of this CPU, \
                 so the kernel writes the hardware twice. expiry=far expires in an hour and leaves the hardware \
                 alone. Samples alternate, and `reprogram` is their difference, sample by sample. On x86 `exit` \
                 times cpuid.",
        source: file!(),
        metrics: &[
            latency_ns(ids::metric::LATENCY, "arming and disarming"),
            longer(ids::metric::REPROGRAM, "two hardware writes"),
            EXIT,
        ],
        params: &[EXPIRY],
        points: expiries,
        run: timer,
        ..ROW
    },
];

const ROW: Benchmark =
    Benchmark { from: Depth::Full, hidden: true, budget_s: Some(180.0), ..Benchmark::PINNED };

const STATE: Param = Param::choice(ids::param::STATE, "state of the other thread", &["running", "away"]);
const EXPIRY: Param = Param::choice(ids::param::EXPIRY, "expiry of the timer", &["near", "far"]);

fn states(_: &Case) -> Vec<Params> {
    ["running", "away"].map(|state| point(ids::param::STATE, state)).to_vec()
}

fn expiries(_: &Case) -> Vec<Params> {
    ["near", "far"].map(|expiry| point(ids::param::EXPIRY, expiry)).to_vec()
}

/// The two nearest CPUs that are not threads of one core, else any two.
pub(super) fn nearest_two(scope: &Scope, roles: [&'static str; 2]) -> Result<Placement, String> {
    let pairs = scope.placements.pairs(roles).into_iter();
    let pairs = pairs.filter_map(|(distance, pair)| Some((distance, pair.ok()?)));
    let two = pairs.filter(|(distance, _)| *distance != Distance::SameCpu);
    let nearest = two.min_by_key(|(distance, _)| (*distance == Distance::SmtSibling, *distance));
    nearest.map(|(_, placement)| placement).ok_or_else(|| "needs two usable CPUs".to_string())
}

fn ipi_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    vec![match nearest_two(scope, ["caller", "other"]) {
        Ok(placement) => Candidate::new(bench.id, placement, 60, scope.seconds(3, 2.0, 0.05)),
        Err(why) => Candidate::unmet(bench.id, "same-llc", why),
    }]
}

/// What the other thread is to do.
const SLEEP: u32 = 0;
const RUN: u32 = 1;
const END: u32 = 2;

/// A thread of this process on another CPU, which runs or sleeps as it is asked.
struct Other {
    wanted: Arc<AtomicU32>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<bool>>,
}

/// How long it may take to be there, and to be asleep.
const PATIENCE: Duration = Duration::from_secs(5);
const FALLING_ASLEEP: Duration = Duration::from_micros(300);

impl Other {
    fn start(cpus: &CpuSet) -> anyhow::Result<Other> {
        let (wanted, rounds) = (Arc::new(AtomicU32::new(SLEEP)), Arc::new(AtomicU64::new(0)));
        let (asked, counted, cpus) = (Arc::clone(&wanted), Arc::clone(&rounds), cpus.clone());
        let work = move || {
            if affinity::pin(&cpus).is_err() {
                return false;
            }
            loop {
                match asked.load(Ordering::Acquire) {
                    // No pause instruction: hosts take long loops of it for waiting.
                    RUN => _ = counted.fetch_add(1, Ordering::Relaxed),
                    END => return true,
                    _ => std::thread::park(),
                }
            }
        };
        let thread = thread::try_spawn(work).context("cannot start a second thread")?;
        Ok(Other { wanted, rounds, thread: Some(thread) })
    }

    fn want(&self, what: u32) {
        self.wanted.store(what, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Back when it runs.
    fn run(&self) -> anyhow::Result<()> {
        let (before, begin) = (self.rounds.load(Ordering::Relaxed), Instant::now());
        self.want(RUN);
        while self.rounds.load(Ordering::Relaxed) == before {
            if begin.elapsed() > PATIENCE {
                bail!("the other thread did not run within {PATIENCE:?}");
            }
        }
        Ok(())
    }

    /// Back when it has had the time to fall asleep.
    fn sleep(&self) {
        self.want(SLEEP);
        let begin = Instant::now();
        while begin.elapsed() < FALLING_ASLEEP {
            std::hint::spin_loop();
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.want(END);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn ipi(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let cpus = case.placement.seats.get(1).map(|seat| &seat.cpus).context("the case has only one CPU")?;
    membarrier::register().context("this kernel refuses membarrier")?;
    let other = Other::start(cpus)?;
    let clock = sampler.clock();
    let at = |state: &'static str| {
        Point::new(ids::metric::LATENCY, 1.0).at(point(ids::param::STATE, state)).stretch(STRETCH)
    };
    let mut fastest = 0.0_f64;
    sampler.time_alternating([at("running"), at("away")], ids::metric::INTERRUPT, |which, iterations| {
        for _ in 0..TRIES {
            if which == 0 {
                other.run()?
            } else {
                other.sleep()
            };
            let rounds = other.rounds.load(Ordering::Relaxed);
            let begin = clock.now();
            for _ in 0..iterations {
                membarrier::expedited().context("membarrier failed")?;
            }
            let ns = clock.now() - begin;
            let rate = (other.rounds.load(Ordering::Relaxed) - rounds) as f64 / ns;
            fastest = fastest.max(rate);
            // Where another task had its CPU there was nothing to interrupt.
            if which == 1 || rate > RAN * fastest {
                other.want(SLEEP);
                return Ok(ns);
            }
        }
        bail!("other work used the second CPU in each of {TRIES} samples")
    })?;
    exits(sampler, point(ids::param::STATE, "away"))
}

/// Between interrupts the other thread goes on at this part of its speed at least, if it runs; a
/// sample in which it did not is repeated.
const RAN: f64 = 0.02;
const TRIES: usize = 100;

/// A barrier takes microseconds, and its samples hold some hundreds.
const STRETCH: f64 = 0.5;

/// The yardstick: an exit, where asking cpuid is one.
fn exits(sampler: &mut Sampler, params: Params) -> anyhow::Result<()> {
    if !cpuid::CAUSES_VM_EXIT {
        return Ok(());
    }
    let (first, mut changed) = (cpuid::cause_vm_exit(), 0u64);
    sampler.time(Point::new(ids::metric::EXIT, 1.0).at(params).stretch(STRETCH), |n| {
        for _ in 0..n {
            changed += u64::from(cpuid::cause_vm_exit() != first);
        }
    })?;
    check_answer(changed == 0, || format!("cpuid changed its answer {changed} times"))
}

/// Before the next tick, and long enough not to expire within a call; and what never comes next.
const NEAR: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
const FAR: Timespec = Timespec { tv_sec: 3600, tv_nsec: 0 };
const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

fn timer(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).context("cannot make a timerfd")?;
    let set = |after: Timespec| {
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: NEVER, it_value: after },
        )
        .context("cannot set a timerfd")
    };
    let clock = sampler.clock();
    let mut unarmed = 0u64;
    let at = |expiry: &'static str| {
        Point::new(ids::metric::LATENCY, 1.0).at(point(ids::param::EXPIRY, expiry)).stretch(STRETCH)
    };
    sampler.time_alternating([at("near"), at("far")], ids::metric::REPROGRAM, |which, iterations| {
        let after = if which == 0 { NEAR } else { FAR };
        let begin = clock.now();
        for _ in 0..iterations {
            set(after)?;
            // What was left: nothing of a timer that expired meanwhile.
            let left = set(NEVER)?.it_value;
            unarmed += u64::from(which == 1 && left.tv_sec == 0);
        }
        Ok(clock.now() - begin)
    })?;
    check_answer(unarmed == 0, || format!("{unarmed} one-hour timers expired at once"))?;
    exits(sampler, point(ids::param::EXPIRY, "far"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::{cases, visit_all, visit_row};

    #[test]
    fn barriers_are_timed_with_the_other_thread_running_and_away() {
        let [case] = &cases(ids::IPI, Depth::Full)[..] else { return };
        let samples = visit_all(case);
        let named = |name: MetricId| samples.iter().filter(|one| one.metrics == [name]).count();
        assert_eq!((named(ids::metric::LATENCY), named(ids::metric::INTERRUPT)), (2, 1));
        assert_eq!(named(ids::metric::EXIT), usize::from(cpuid::CAUSES_VM_EXIT));
    }

    #[test]
    fn near_timers_and_far_ones() {
        assert!(visit_row(ids::TIMER).len() >= 3);
    }

    #[test]
    fn the_other_thread_runs_and_sleeps_as_asked() {
        let other = Other::start(&affinity::allowed().expect("affinity")).expect("a thread");
        for _ in 0..3 {
            other.run().expect("it runs");
            other.sleep();
        }
    }
}
