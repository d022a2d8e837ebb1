//! The clock that times samples: the CPU's time counter if it is steady, else
//! `CLOCK_MONOTONIC_RAW`. And CPU times of processes and threads.

use std::io;
use std::time::{Duration, Instant};

use model::RunClock;

/// Time for comparing the counter with the raw clock. With reading errors of about 50 ns at both
/// ends, 100 ms give 1 ppm.
const CALIBRATION: Duration = Duration::from_millis(100);

/// Largest relative difference between the rates of both halves of the calibration; a steady
/// counter stays below.
const MAX_RATE_DIFFERENCE: f64 = 2e-4;

/// A clock in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    Counter { ns_per_tick: f64 },
    Raw,
}

impl Clock {
    /// The clock named in a run's header.
    pub fn from_run(clock: &RunClock) -> Clock {
        match clock.source.as_str() {
            "tsc" | "cntvct" if clock.ticks_per_ns > 0.0 => {
                Clock::Counter { ns_per_tick: 1.0 / clock.ticks_per_ns }
            }
            _ => Clock::Raw,
        }
    }

    /// Nanoseconds since a fixed but unknown moment. All earlier instructions have finished when
    /// the clock is read.
    #[inline]
    pub fn now(self) -> f64 {
        match self {
            Clock::Counter { ns_per_tick } => counter::read() as f64 * ns_per_tick,
            Clock::Raw => raw_ns(),
        }
    }
}

/// Chooses and calibrates the clock; takes about 0.1 s. `kernel_uses_counter`: the kernel's
/// clocksource is the counter (`tsc`, `arch_sys_counter`), so its watchdog found the counter steady
/// and synchronised.
pub fn calibrate(kernel_uses_counter: bool) -> RunClock {
    let mut clock = match counter_rate(kernel_uses_counter) {
        Ok(ticks_per_ns) => RunClock {
            source: counter::NAME.to_string(),
            ticks_per_ns,
            resolution_ns: 0.0,
            cost_ns: 0.0,
            why: None,
        },
        Err(why) => RunClock {
            source: "monotonic-raw".to_string(),
            ticks_per_ns: 1.0,
            resolution_ns: 0.0,
            cost_ns: 0.0,
            why: Some(why),
        },
    };
    (clock.resolution_ns, clock.cost_ns) = step_and_cost(Clock::from_run(&clock));
    clock
}

/// Ticks per nanosecond, or why the counter cannot be used.
fn counter_rate(kernel_uses_counter: bool) -> Result<f64, String> {
    if !kernel_uses_counter {
        return Err(format!("the kernel's clocksource is not {}", counter::NAME));
    }
    counter::usable()?;
    let rate_of_half = || {
        let (tick0, ns0) = (counter::read(), raw_ns());
        let end = Instant::now() + CALIBRATION / 2;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let (tick1, ns1) = (counter::read(), raw_ns());
        (tick1.wrapping_sub(tick0)) as f64 / (ns1 - ns0)
    };
    // A preemption between the two reads of a pair spoils one half, so this tries a few times.
    for _ in 0..5 {
        let (first, second) = (rate_of_half(), rate_of_half());
        if first > 0.0 && (first / second - 1.0).abs() < MAX_RATE_DIFFERENCE {
            return Ok((first + second) / 2.0);
        }
    }
    Err(format!("the rate of {} changed within {CALIBRATION:?}", counter::NAME))
}

/// The smallest step between two different readings, and the mean cost of one reading; both in ns.
fn step_and_cost(clock: Clock) -> (f64, f64) {
    let mut steps = Vec::with_capacity(1000);
    for _ in 0..1000 {
        let first = clock.now();
        let mut next = clock.now();
        // Bounded: a clock that never moves (a broken paravirtual clock) must not hang this
        // process.
        for _ in 0..1_000_000 {
            if next > first {
                break;
            }
            next = clock.now();
        }
        steps.push(next - first);
    }
    steps.sort_by(f64::total_cmp);
    let begin = clock.now();
    for _ in 0..1000 {
        std::hint::black_box(clock.now());
    }
    let cost = (clock.now() - begin) / 1001.0;
    // Readings cannot show a tick that is shorter than the cost of one: the smaller bound counts.
    let tick = match clock {
        Clock::Counter { ns_per_tick } => ns_per_tick,
        Clock::Raw => 1.0,
    };
    (steps.first().copied().unwrap_or(tick).min(cost).max(tick), cost)
}

fn raw_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The monotonic clock as programs read it, ns: through the C library, which uses the vDSO (code
/// that the kernel maps into every process) if the clocksource permits it.
#[inline]
pub fn monotonic_by_library() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for a write of one timespec; CLOCK_MONOTONIC exists on every
    // Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock by a system call, ns.
#[inline]
pub fn monotonic_by_kernel() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `monotonic_by_library`.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process and of its children that have ended and were waited for, ms.
pub fn cpu_ms() -> io::Result<f64> {
    let mut total = 0.0;
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        let usage = usage(who)?;
        for time in [usage.ru_utime, usage.ru_stime] {
            total += ms(time);
        }
    }
    Ok(total)
}

/// CPU time of all threads of another process so far, ms; an error if no such process is visible.
pub fn cpu_ms_of(pid: u32) -> io::Result<f64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is valid for a write of one clock's number.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for a write of one timespec.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel's counts for processes or threads (getrusage) so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Voluntary context switches.
    pub voluntary: i64,
    /// Involuntary context switches.
    pub involuntary: i64,
    /// Page faults, minor and major.
    pub faults: i64,
    /// CPU time in user space and in the kernel, ms.
    pub cpu_ms: f64,
    /// CPU time in user space, ms.
    pub user_ms: f64,
}

impl Usage {
    /// Context switches of both kinds.
    pub fn switches(self) -> i64 {
        self.voluntary + self.involuntary
    }

    /// The differences to an earlier reading.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            voluntary: self.voluntary - before.voluntary,
            involuntary: self.involuntary - before.involuntary,
            faults: self.faults - before.faults,
            cpu_ms: self.cpu_ms - before.cpu_ms,
            user_ms: self.user_ms - before.user_ms,
        }
    }
}

/// CPU time of the calling thread so far.
pub fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Usage of the calling process.
pub fn own_usage() -> io::Result<Usage> {
    usage(libc::RUSAGE_SELF).map(counts)
}

/// Usage of the calling thread.
pub fn thread_usage() -> io::Result<Usage> {
    usage(libc::RUSAGE_THREAD).map(counts)
}

/// Usage of all children that have ended and were waited for.
pub fn children_usage() -> io::Result<Usage> {
    usage(libc::RUSAGE_CHILDREN).map(counts)
}

fn ms(time: libc::timeval) -> f64 {
    time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3
}

fn counts(usage: libc::rusage) -> Usage {
    Usage {
        cpu_ms: ms(usage.ru_utime) + ms(usage.ru_stime),
        user_ms: ms(usage.ru_utime),
        voluntary: usage.ru_nvcsw,
        involuntary: usage.ru_nivcsw,
        faults: usage.ru_minflt + usage.ru_majflt,
    }
}

fn usage(who: i32) -> io::Result<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a write of one rusage.
    if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: getrusage succeeded and filled it (and it was zeroed before).
    Ok(unsafe { usage.assume_init() })
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__rdtscp, _mm_lfence};

    use raw_cpuid::native_cpuid::cpuid_count;

    pub const NAME: &str = "tsc";

    /// The counter after all earlier instructions have finished and before any later one starts.
    #[inline]
    pub fn read() -> u64 {
        let mut aux = 0;
        // SAFETY: every x86-64 CPU with an invariant TSC has rdtscp (`usable` checks it before any
        // use that matters), all have lfence; neither touches memory other than `aux`.
        unsafe {
            let ticks = __rdtscp(&mut aux);
            _mm_lfence();
            ticks
        }
    }

    pub fn usable() -> Result<(), String> {
        let highest = cpuid_count(0x8000_0000, 0).eax;
        // Leaf 0x80000007, EDX bit 8: the counter runs at one rate in all power states.
        let invariant = highest >= 0x8000_0007 && cpuid_count(0x8000_0007, 0).edx & (1 << 8) != 0;
        let rdtscp = highest >= 0x8000_0001 && cpuid_count(0x8000_0001, 0).edx & (1 << 27) != 0;
        match (invariant, rdtscp) {
            (true, true) => Ok(()),
            (false, _) => Err("the CPU does not report an invariant TSC".to_string()),
            (_, false) => Err("the CPU has no rdtscp instruction".to_string()),
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    pub const NAME: &str = "cntvct";

    #[inline]
    pub fn read() -> u64 {
        let ticks: u64;
        // SAFETY: the virtual counter is readable from user space on every Linux/arm64 kernel; isb
        // orders it after all earlier instructions.
        unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
        ticks
    }

    /// Always: the architecture defines a fixed frequency for the generic timer.
    pub fn usable() -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_its_own_cpu_time_and_a_dead_one_has_none() {
        let own = std::process::id();
        let before = cpu_ms_of(own).expect("our CPU time");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let idle = cpu_ms_of(child.id()).expect("its CPU time");
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(cpu_ms_of(child.id()).is_err(), "it is gone");
        let begin = thread_time();
        while thread_time() - begin < Duration::from_millis(200) {}
        let after = cpu_ms_of(own).expect("our CPU time");
        assert!(after - before >= 200.0 && idle < after - before, "{before} {after}, asleep {idle}");
    }

    #[test]
    fn the_clock_agrees_with_the_system() {
        for uses_counter in [true, false] {
            let run_clock = calibrate(uses_counter);
            let clock = Clock::from_run(&run_clock);
            let ratio = || {
                let (begin, system) = (clock.now(), Instant::now());
                std::thread::sleep(Duration::from_millis(50));
                let (end, elapsed) = (clock.now(), system.elapsed());
                (end - begin) / elapsed.as_nanos() as f64
            };
            // An interruption between the two clock readings spoils a try.
            let agrees = (0..20).any(|_| (0.99..1.01).contains(&ratio()));
            assert!(agrees, "{run_clock:?}: {}", ratio());
            assert!(run_clock.resolution_ns > 0.0 && run_clock.cost_ns > 0.0);
        }
        assert!(calibrate(false).why.is_some());
    }

    #[test]
    fn time_never_runs_backwards() {
        let clock = Clock::from_run(&calibrate(true));
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
