//! Instructions and core cycles of one thread, counted by the CPU's PMU (crate perf-event2) where
//! the host permits it.
//!
//! Only user space is counted. Both events form one group: the kernel counts both or neither, so
//! their ratio covers the same time.

use std::io;
use std::time::Duration;

use perf_event::events::Hardware;
use perf_event::{Builder, Counter, Group, ReadFormat};

use super::counters;

/// Both counters; they count from `open` on.
pub struct CoreCounters {
    instructions: Group,
    cycles: Counter,
}

/// What a thread has executed since its counters were opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub instructions: u64,
    pub cycles: u64,
}

impl CoreCounters {
    /// Opens and starts both counters for the calling thread; the error says why this kernel, user
    /// or CPU does not permit it.
    pub fn open() -> Result<CoreCounters, String> {
        let refused = |error: io::Error, what| {
            let errno = error.raw_os_error();
            let paranoid = counters::perf_paranoid();
            refused(errno, paranoid, what)
                .unwrap_or_else(|| format!("the kernel cannot count {what} ({error})"))
        };
        let mut instructions = match group(Hardware::INSTRUCTIONS) {
            Ok(group) => group,
            // The PMU exists, but counts cycles only.
            Err(_) if group(Hardware::CPU_CYCLES).is_ok() => {
                return Err("the PMU of this CPU counts cycles, but no instructions".to_string());
            }
            Err(error) => return Err(refused(error, "instructions")),
        };
        let cycles = match instructions.add(&Builder::new(Hardware::CPU_CYCLES)) {
            Ok(counter) => counter,
            Err(error) if no_such_event(error.raw_os_error()) => {
                return Err("the PMU of this CPU counts instructions, but no cycles".to_string());
            }
            Err(error) => return Err(refused(error, "cycles")),
        };
        instructions.enable().map_err(|error| format!("the kernel cannot start the counters ({error})"))?;
        Ok(CoreCounters { instructions, cycles })
    }

    /// Running totals since `open`. An error where the kernel counted only part of the time, or
    /// where an event reads 0.
    pub fn read(&mut self) -> Result<Counts, String> {
        let data = self
            .instructions
            .read()
            .map_err(|error| format!("the kernel cannot read the counters ({error})"))?;
        let counts =
            Counts { instructions: data[self.instructions.as_counter()], cycles: data[&self.cycles] };
        match (data.time_enabled(), data.time_running()) {
            (Some(enabled), Some(running)) => counts.over(enabled, running),
            _ => Err("the kernel does not report how long it counted".to_string()),
        }
    }

    /// Why this host cannot count; `None` if it can.
    pub fn refusal() -> Option<String> {
        CoreCounters::open().and_then(|mut counters| counters.read()).err()
    }
}

impl Counts {
    /// The counts, or an error if they cover only part of the time or are 0 (every thread executes
    /// something in user space between start and reading).
    fn over(self, enabled: Duration, running: Duration) -> Result<Counts, String> {
        if running < enabled {
            let share = running.as_secs_f64() / enabled.as_secs_f64() * 100.0;
            return Err(format!(
                "the kernel counted only {share:.1} % of the time: another profiler or kernel.nmi_watchdog uses \
                 the counters, or the thread ran on cores of two kinds"
            ));
        }
        match self {
            Counts { instructions: 0, .. } => {
                Err("the PMU of this CPU counts no instructions: it reads 0".to_string())
            }
            Counts { cycles: 0, .. } => Err("the PMU of this CPU counts no cycles: it reads 0".to_string()),
            counted => Ok(counted),
        }
    }
}

/// The first event of a group, not started. Kernel and hypervisor are excluded: users without
/// privileges may count only user space.
fn group(event: Hardware) -> io::Result<Group> {
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    Builder::new(event)
        .exclude_kernel(true)
        .exclude_hv(true)
        .read_format(ReadFormat::GROUP | ReadFormat::ID | times)
        .build_group()
}

fn no_such_event(errno: Option<i32>) -> bool {
    matches!(errno, Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO))
}

/// Why the kernel refused an event; `None` if only the error number is known.
fn refused(errno: Option<i32>, paranoid: Option<i32>, what: &str) -> Option<String> {
    match (errno, paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => Some(format!(
            "counting {what} needs CAP_PERFMON, or kernel.perf_event_paranoid at 2 or less (it is {level})"
        )),
        (Some(libc::EACCES | libc::EPERM), Some(level)) => Some(format!(
            "a sandbox (seccomp or a security module) forbids perf events; kernel.perf_event_paranoid ({level}) \
             permits them"
        )),
        (Some(libc::ENOSYS), _) | (Some(libc::EACCES | libc::EPERM), None) => {
            Some("this kernel or a sandbox provides no perf events".to_string())
        }
        _ if no_such_event(errno) => Some(format!(
            "no PMU counts {what}: most hypervisors hide it from guests, or the kernel has no driver for this CPU's"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::{CHAIN_UNROLL, add_chain};

    #[test]
    fn refusals_say_what_is_missing() {
        let of = |errno, paranoid| refused(Some(errno), paranoid, "instructions").unwrap_or_default();
        assert!(of(libc::EACCES, Some(4)).contains("perf_event_paranoid at 2 or less (it is 4)"));
        assert!(of(libc::EPERM, Some(2)).contains("sandbox"));
        assert!(of(libc::EPERM, None).contains("provides no perf events"));
        assert!(of(libc::ENOSYS, Some(2)).contains("provides no perf events"));
        for none in [libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP] {
            assert!(of(none, Some(2)).contains("no PMU"));
        }
        assert_eq!(refused(Some(libc::EMFILE), Some(2), "cycles"), None);
    }

    #[test]
    fn what_was_not_counted_all_the_time_is_no_count() {
        let counts = Counts { instructions: 5, cycles: 7 };
        let second = Duration::from_secs(1);
        assert_eq!(counts.over(second, second), Ok(counts));
        let part = counts.over(second, second / 4).expect_err("refused");
        assert!(part.contains("25.0 %"), "{part}");
        assert!(counts.over(second, Duration::ZERO).expect_err("refused").contains("0.0 %"));
        let zero = |counts: Counts| counts.over(second, second).expect_err("refused");
        assert!(zero(Counts { instructions: 0, ..counts }).contains("no instructions"));
        assert!(zero(Counts { cycles: 0, ..counts }).contains("no cycles"));
    }

    #[test]
    fn a_chain_has_as_many_instructions_as_it_should() {
        let mut counters = match CoreCounters::open() {
            Ok(counters) => counters,
            Err(why) => {
                let known = ["PMU", "perf_event_paranoid", "no perf events"];
                assert!(known.iter().any(|word| why.contains(word)), "{why}");
                assert_eq!(CoreCounters::refusal(), Some(why.clone()));
                let words =
                    format!("skipped a_chain_has_as_many_instructions_as_it_should on this machine: {why}\n");
                let _ = rustix::io::write(io::stderr(), words.as_bytes());
                return;
            }
        };
        assert_eq!(CoreCounters::refusal(), None);
        const ROUNDS: u64 = 300_000;
        let before = counters.read().expect("counts");
        std::hint::black_box(add_chain(ROUNDS, 1, 1));
        let after = counters.read().expect("counts");
        // The additions, one that counts the rounds, and a branch.
        let expected = (ROUNDS * (CHAIN_UNROLL + 2)) as f64;
        let counted = (after.instructions - before.instructions) as f64;
        assert!((counted / expected - 1.0).abs() < 0.02, "{counted} instead of {expected}");
        assert!(after.cycles > before.cycles);
    }
}
