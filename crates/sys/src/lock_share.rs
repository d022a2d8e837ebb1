//! The share of CPU time that some tasks spend on locks of the kernel, by sampling whole CPUs: each
//! sample is the address that a CPU executed when a timer fired.
//!
//! CPUs are sampled, not tasks: the kernel switches events that follow tasks with them, which would
//! slow a program that mainly switches. Samples of other tasks are dropped afterwards by task id.
//!
//! The timer is the kernel's CPU clock, which every host has. It is an interrupt: while interrupts
//! are masked it waits, and the sample falls where they are unmasked. Time with interrupts masked
//! (spinning for such a lock, and the work under it) therefore shows up in the function that
//! releases the lock and unmasks; it is counted as a share of its own.

use std::collections::HashSet;
use std::io;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use super::{affinity, counters};

/// CPU time between two samples, ns; not a divisor of the kernel's tick, so samples do not follow
/// it in step.
const PERIOD_NS: u64 = 997_001;
/// Size of the sample buffer of each CPU, bytes: enough for 11 s.
const RING_BYTES: usize = 256 << 10;
/// With 100 samples the standard error of a share of one half is 5 %.
const MIN_SAMPLES: u64 = 100;

/// Samples CPUs between `start` and `stop`, or holds the reason why it cannot.
pub struct LockSampler(Result<Vec<Sampler>, String>);

/// How some tasks spent their CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockShares {
    /// Samples of these tasks.
    pub samples: u64,
    /// Share of them in functions that take a lock, or wait for one.
    pub locks: f64,
    /// Share of them in functions that release a lock and unmask interrupts: time with interrupts
    /// masked, whatever the reason.
    pub masked: f64,
    /// A sample buffer filled up before the end: the shares cover the time until then.
    pub full: bool,
}

impl LockSampler {
    /// Opens an event on each CPU that the caller may use; nothing is sampled yet.
    pub fn open() -> LockSampler {
        LockSampler(open())
    }

    /// A sampler that never samples.
    pub fn none() -> LockSampler {
        LockSampler(Err("sampling was not requested".to_string()))
    }

    /// Why this host cannot sample; `None` if it can.
    pub fn refusal() -> Option<String> {
        open().err()
    }

    pub fn start(&mut self) {
        self.each(|event| event.enable());
    }

    pub fn stop(&mut self) {
        self.each(|event| event.disable());
    }

    fn each(&mut self, act: impl Fn(&mut Sampler) -> io::Result<()>) {
        let failed = match &mut self.0 {
            Ok(events) => events.iter_mut().find_map(|event| act(event).err()),
            Err(_) => None,
        };
        if let Some(error) = failed {
            self.0 = Err(format!("the kernel cannot start or stop sampling ({error})"));
        }
    }

    /// The shares of these tasks, or why they are unknown.
    pub fn shares(self, tasks: &HashSet<u32>) -> Result<LockShares, String> {
        let mut events = self.0?;
        let mut addresses = Vec::new();
        let mut full = false;
        for event in &mut events {
            let mut bytes = 0;
            while let Some(record) = event.next_record() {
                // The record's length excludes its header.
                bytes += record.len() + 8;
                if let Ok(Record::Sample(sample)) = record.parse_record()
                    && sample.tid().is_some_and(|task| tasks.contains(&task))
                {
                    addresses.extend(sample.ip());
                }
            }
            full |= bytes + 64 > RING_BYTES;
        }
        if (addresses.len() as u64) < MIN_SAMPLES {
            return Err(format!(
                "{} samples of the tasks are too few: a share needs {MIN_SAMPLES}",
                addresses.len()
            ));
        }
        let symbols = counters::Symbols::of_kernel(Kind::of)?;
        Ok(LockShares { full, ..shares(addresses.into_iter().map(|address| symbols.kind_at(address))) })
    }
}

fn shares(kinds: impl Iterator<Item = Option<Kind>>) -> LockShares {
    let (mut samples, mut locks, mut masked) = (0u64, 0u64, 0u64);
    for kind in kinds {
        samples += 1;
        locks += u64::from(kind == Some(Kind::Lock));
        masked += u64::from(kind == Some(Kind::Unmask));
    }
    let share = |count: u64| count as f64 / samples.max(1) as f64;
    LockShares { samples, locks: share(locks), masked: share(masked), full: false }
}

fn open() -> Result<Vec<Sampler>, String> {
    if let Some(why) = counters::symbols_hidden() {
        return Err(why);
    }
    let cpus =
        affinity::allowed().map_err(|error| format!("the kernel does not report allowed CPUs ({error})"))?;
    let event = |cpu: u32| {
        let event = Builder::new(Software::CPU_CLOCK)
            .any_pid()
            .one_cpu(cpu as usize)
            .include_kernel()
            .exclude_idle(true)
            .sample_period(PERIOD_NS)
            .sample(SampleFlag::IP | SampleFlag::TID)
            .build()
            .map_err(|error| refused(&error, counters::perf_paranoid()))?;
        event
            .sampled(RING_BYTES)
            .map_err(|error| format!("no memory for samples (kernel.perf_event_mlock_kb): {error}"))
    };
    cpus.iter().map(event).collect()
}

/// Why the kernel refused the events.
fn refused(error: &io::Error, paranoid: Option<i32>) -> String {
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) => format!(
            "sampling CPUs needs CAP_PERFMON (kernel.perf_event_paranoid is {level}), or a sandbox forbids it"
        ),
        (Some(libc::ENOSYS), _) | (Some(libc::EACCES | libc::EPERM), None) => {
            "this kernel or a sandbox provides no perf events".to_string()
        }
        _ => format!("the kernel cannot sample CPUs ({error})"),
    }
}

/// What a kernel function does with locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Other,
    Unmask,
    Lock,
}

/// Functions that queue for a lock or spin on it; the kernel calls them only for a contended lock.
const WAITING: [&str; 12] = [
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    // Without paravirtual locks, and on other architectures than x86.
    "queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    // A guest's CPU halts until the lock is free; tasks halt for no other reason.
    "kvm_wait",
    "xen_qlock_wait",
    "hv_qlock_wait",
    "osq_lock",
    "mutex_spin_on_owner",
    "rwsem_spin_on_owner",
    "rwsem_optimistic_spin",
];

/// Prefixes of functions that take a lock: a free one directly, a contended one through the
/// functions above or by sleeping. Left out: unlocking, futexes (locks of programs) and rt_mutexes
/// (they sleep, which samples of CPU time do not see).
const TAKING_PREFIXES: [&str; 15] = [
    "_raw_spin_lock",
    "_raw_spin_trylock",
    "_raw_read_lock",
    "_raw_read_trylock",
    "_raw_write_lock",
    "_raw_write_trylock",
    "_raw_spin_rq_lock",
    "raw_spin_rq_lock",
    "do_raw_spin_lock",
    "mutex_lock",
    "mutex_trylock",
    "__mutex_lock",
    "rwsem_down_",
    "down_read",
    "down_write",
];

impl Kind {
    fn of(name: &str) -> Kind {
        // Compilers add suffixes: `.constprop.0`, `.isra.0`, `.cold`.
        let name = name.split('.').next().unwrap_or(name);
        if WAITING.contains(&name) || TAKING_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            Kind::Lock
        } else if name.starts_with("_raw_") && name.contains("_unlock_irq") {
            Kind::Unmask
        } else {
            Kind::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::clock;
    use testkit::alone;

    #[test]
    fn names_of_locks() {
        for name in [
            "native_queued_spin_lock_slowpath",
            "_raw_spin_lock",
            "_raw_spin_lock_irqsave",
            "_raw_write_lock_bh",
            "_raw_spin_rq_lock_irqsave",
            "mutex_lock",
            "__mutex_lock.constprop.0",
            "mutex_spin_on_owner",
            "rwsem_down_write_slowpath",
            "down_read_trylock",
            "osq_lock",
        ] {
            assert_eq!(Kind::of(name), Kind::Lock, "{name}");
        }
        for name in ["_raw_spin_unlock_irqrestore", "_raw_spin_unlock_irq", "_raw_write_unlock_irq"] {
            assert_eq!(Kind::of(name), Kind::Unmask, "{name}");
        }
        for name in [
            "_raw_spin_unlock",
            "mutex_unlock",
            "__mutex_unlock_slowpath.isra.0",
            "up_read",
            "osq_unlock",
            "rt_mutex_lock",
            "futex_wait",
            "__pfx__raw_spin_lock",
            "__lock_text_start",
            "clockevents_shutdown",
            "schedule",
            "",
        ] {
            assert_eq!(Kind::of(name), Kind::Other, "{name}");
        }
    }

    #[test]
    fn shares_are_of_all_samples() {
        let kinds = [Some(Kind::Lock), None, Some(Kind::Other), Some(Kind::Unmask), None, Some(Kind::Lock)];
        let shares = shares(kinds.into_iter().chain([None, None]));
        assert_eq!((shares.samples, shares.locks, shares.masked), (8, 0.25, 0.125));
    }

    #[test]
    fn refusals_say_what_is_missing() {
        let of = |number, paranoid| refused(&io::Error::from_raw_os_error(number), paranoid);
        assert!(of(libc::EACCES, Some(2)).contains("perf_event_paranoid is 2"));
        assert!(of(libc::EPERM, None).contains("provides no perf events"));
        assert!(of(libc::EMFILE, Some(2)).contains("open files"));
    }

    #[test]
    fn a_task_that_computes_is_sampled_and_has_no_lock() {
        alone(|| {
            let task = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let computed = |millis| {
                let mut sampler = LockSampler::open();
                let (began, before) = (Instant::now(), clock::thread_time());
                sampler.start();
                while (clock::thread_time() - before).as_millis() < millis {
                    (0..10_000u64).for_each(|number| {
                        std::hint::black_box(number);
                    });
                }
                sampler.stop();
                (sampler.shares(&HashSet::from([task])), began.elapsed().as_nanos() as u64 / PERIOD_NS)
            };
            // Ticks that came while the host had the CPU are one sample, so a while may have too
            // few.
            let taken = [300, 1200, 4800].into_iter().map(computed).find(|(shares, _)| {
                !shares.as_ref().is_err_and(|why| why.contains("samples of the tasks are too few"))
            });
            match taken.expect("computing for five seconds is sampled") {
                (Err(why), _) => {
                    let words = format!("skipped a_task_that_computes_is_sampled_and_has_no_lock: {why}\n");
                    let _ = rustix::io::write(io::stderr(), words.as_bytes());
                }
                (Ok(shares), periods) => {
                    // A timer fires once a period at most; the CPU time of the task leaves out what
                    // the host took.
                    assert!(shares.samples <= periods + 2, "{shares:?} in {periods} periods");
                    assert!(shares.locks + shares.masked < 0.5 && !shares.full, "{shares:?}");
                }
            }
            let mut of_nobody = LockSampler::open();
            of_nobody.start();
            of_nobody.stop();
            assert!(of_nobody.shares(&HashSet::new()).is_err());
        });
    }
}
