//! The clock that times windows: the CPU's own counter where it can be trusted, else
//! `CLOCK_MONOTONIC_RAW`.

use std::io;
use std::time::{Duration, Instant};

use model::RunClock;

/// How long the counter is compared with the raw clock. The reading error at both ends is about 50
/// ns, so 100 ms gives 1 ppm.
const CALIBRATION: Duration = Duration::from_millis(100);

/// The two halves of the calibration must give the same rate within this, or the counter is not
/// steady.
const STEADY: f64 = 2e-4;

/// A clock in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    Counter { ns_per_tick: f64 },
    Raw,
}

impl Clock {
    /// The clock that a run's header names.
    pub fn from_run(clock: &RunClock) -> Clock {
        match clock.source.as_str() {
            "tsc" | "cntvct" if clock.ticks_per_ns > 0.0 => {
                Clock::Counter { ns_per_tick: 1.0 / clock.ticks_per_ns }
            }
            _ => Clock::Raw,
        }
    }

    /// Nanoseconds since some fixed moment. Earlier loads and instructions have finished when it is
    /// read.
    #[inline]
    pub fn now(self) -> f64 {
        match self {
            Clock::Counter { ns_per_tick } => counter::read() as f64 * ns_per_tick,
            Clock::Raw => raw_ns(),
        }
    }
}

/// Chooses and calibrates the clock; takes about 0.1 s. `kernel_uses_counter`: the kernel's own
/// clocksource is the counter (`tsc`, `arch_sys_counter`), which means that its watchdog holds it
/// for steady and synchronised.
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

/// Ticks a nanosecond, or why the counter is not to be used.
fn counter_rate(kernel_uses_counter: bool) -> Result<f64, String> {
    if !kernel_uses_counter {
        return Err(format!("the kernel itself does not keep time by {}", counter::NAME));
    }
    counter::usable()?;
    let half = |_: u32| {
        let (tick0, ns0) = (counter::read(), raw_ns());
        let end = Instant::now() + CALIBRATION / 2;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let (tick1, ns1) = (counter::read(), raw_ns());
        (tick1.wrapping_sub(tick0)) as f64 / (ns1 - ns0)
    };
    // A preemption between the two reads of a pair spoils one half: a few tries, then the raw
    // clock.
    for _ in 0..5 {
        let (first, second) = (half(0), half(1));
        if first > 0.0 && (first / second - 1.0).abs() < STEADY {
            return Ok((first + second) / 2.0);
        }
    }
    Err(format!("{} ran at two different rates within {:?}", counter::NAME, CALIBRATION))
}

/// Smallest step between two readings that differ, and the median cost of one reading; both in ns.
fn step_and_cost(clock: Clock) -> (f64, f64) {
    let mut steps = Vec::with_capacity(1000);
    for _ in 0..1000 {
        let first = clock.now();
        let mut next = clock.now();
        // Bounded: a clock that never moves (broken paravirtual clock) must not hang us.
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
    // A tick that is shorter than a reading's own cost cannot be seen between readings: the smaller
    // bound holds.
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

/// The monotonic clock as programs read it, ns: by the C library, which goes through the code that
/// the kernel maps into every process (vDSO) where the clock allows it.
#[inline]
pub fn monotonic_by_library() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for a write of one timespec; CLOCK_MONOTONIC exists on every
    // Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The same clock by a system call, ns.
#[inline]
pub fn monotonic_by_kernel() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `monotonic_by_library`.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process and of its finished children, ms.
pub fn cpu_ms() -> io::Result<f64> {
    let mut total = 0.0;
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        let usage = usage(who)?;
        for time in [usage.ru_utime, usage.ru_stime] {
            total += time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
        }
    }
    Ok(total)
}

/// CPU time of another process so far, of all its threads together, in ms.
///
/// # Errors
///
/// Where there is no such process, or it cannot be seen from here.
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

/// What the kernel counted for the calling process so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub voluntary: i64,
    pub involuntary: i64,
    pub faults: i64,
    /// CPU time in all, and of that outside the kernel, ms.
    pub cpu_ms: f64,
    pub user_ms: f64,
}

impl Usage {
    /// How often it was switched out, for whatever reason.
    pub fn switches(self) -> i64 {
        self.voluntary + self.involuntary
    }

    /// What was counted after `before`.
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

pub fn own_usage() -> io::Result<Usage> {
    usage(libc::RUSAGE_SELF).map(counts)
}

/// What the kernel counted for the calling thread.
pub fn thread_usage() -> io::Result<Usage> {
    usage(libc::RUSAGE_THREAD).map(counts)
}

/// What the kernel counted for all children that ended and were waited for.
pub fn children_usage() -> io::Result<Usage> {
    usage(libc::RUSAGE_CHILDREN).map(counts)
}

fn counts(usage: libc::rusage) -> Usage {
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
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

    /// The counter, once all earlier instructions have finished and before any later one starts.
    #[inline]
    pub fn read() -> u64 {
        let mut aux = 0;
        // SAFETY: rdtscp exists on every x86-64 CPU that has an invariant TSC (checked by `usable`
        // before any use that matters), lfence on all of them; neither touches memory but `aux`.
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
            (false, _) => Err("the CPU does not promise an invariant TSC".to_string()),
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

    /// The generic timer runs at a fixed frequency by architecture.
    pub fn usable() -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_a_process_is_its_own_and_of_none_an_error() {
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
            // Whoever is interrupted between the two clocks tries again.
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
