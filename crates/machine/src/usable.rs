//! What of a machine's CPUs, memory and task numbers this process may really use, and which of the
//! limits is the tightest.

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

use super::limits::Limits;
use super::memory::Memory;
use super::topology::Cpus;

/// What may really be used here; null if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Usable {
    pub cpus: Option<UsableCpus>,
    pub memory: Option<UsableMemory>,
    pub tasks: Option<UsableTasks>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UsableCpus {
    /// CPUs' worth of time per unit of time.
    pub cpus: f64,
    /// Online CPUs.
    pub of: usize,
    pub bound_by: Bound,
    /// The control group whose limit it is.
    pub at: Option<String>,
    /// Length of the quota's period, µs.
    pub period_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UsableMemory {
    pub bytes: u64,
    /// The whole machine's, where that is known.
    pub of_bytes: Option<u64>,
    pub bound_by: Bound,
    pub at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UsableTasks {
    /// Processes and threads.
    pub tasks: u64,
    pub bound_by: Bound,
    pub at: Option<String>,
}

/// The tightest of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The machine itself: no limit is below what it has.
    Machine,
    Affinity,
    Cpuset,
    Quota,
    /// `memory.max`, `memory.limit_in_bytes`.
    MemoryLimit,
    /// `memory.high`: tasks above it are held back.
    MemoryHigh,
    PidsMax,
    /// `kernel.pid_max`.
    PidMax,
    /// `kernel.threads-max`.
    ThreadsMax,
}

impl Bound {
    /// As a line names it.
    pub fn words(self) -> &'static str {
        match self {
            Bound::Machine => "the machine",
            Bound::Affinity => "affinity",
            Bound::Cpuset => "cpuset",
            Bound::Quota => "quota",
            Bound::MemoryLimit => "limit",
            Bound::MemoryHigh => "memory.high",
            Bound::PidsMax => "pids.max",
            Bound::PidMax => "kernel.pid_max",
            Bound::ThreadsMax => "kernel.threads-max",
        }
    }
}

pub(super) fn of(snapshot: &Snapshot, cpus: &Cpus, memory: &Memory, limits: &Limits) -> Usable {
    Usable {
        cpus: usable_cpus(cpus, limits),
        memory: usable_memory(memory, limits),
        tasks: tasks(snapshot, limits),
    }
}

fn usable_cpus(cpus: &Cpus, limits: &Limits) -> Option<UsableCpus> {
    let (of, allowed) = (cpus.online.len(), cpus.allowed.len());
    if of == 0 {
        return None;
    }
    let whole = allowed as f64;
    if let Some(quota) = limits.cpu_quota.filter(|quota| *quota < whole) {
        let at = limits.cpu_quota_at.clone();
        return Some(UsableCpus {
            cpus: quota,
            of,
            bound_by: Bound::Quota,
            at,
            period_us: limits.cpu_period_us,
        });
    }
    // The kernel keeps affinity inside of the cpuset: where both are equal the cpuset binds.
    let is_cpuset = limits.cpuset.as_ref().is_some_and(|set| cpus.online.intersection(set) == cpus.allowed);
    let (bound_by, at) = match allowed == of {
        true => (Bound::Machine, None),
        false if is_cpuset => (Bound::Cpuset, limits.cpuset_at.clone()),
        false => (Bound::Affinity, None),
    };
    Some(UsableCpus { cpus: whole, of, bound_by, at, period_us: None })
}

fn usable_memory(memory: &Memory, limits: &Limits) -> Option<UsableMemory> {
    let of_bytes = memory.total_bytes;
    let bounds = [
        (of_bytes, Bound::Machine, None),
        (limits.memory_bytes, Bound::MemoryLimit, limits.memory_at.as_ref()),
        (limits.memory_high_bytes, Bound::MemoryHigh, limits.memory_high_at.as_ref()),
    ];
    let known = bounds.into_iter().filter_map(|(bytes, bound, at)| Some((bytes?, bound, at)));
    // The first of equals: a limit as high as the machine binds nothing.
    let (bytes, bound_by, at) = known.min_by_key(|(bytes, ..)| *bytes)?;
    Some(UsableMemory { bytes, of_bytes, bound_by, at: at.cloned() })
}

fn tasks(snapshot: &Snapshot, limits: &Limits) -> Option<UsableTasks> {
    let kernel = |name: &str| snapshot.number::<u64>(&format!("/proc/sys/kernel/{name}"));
    let bounds = [
        (kernel("pid_max"), Bound::PidMax, None),
        (kernel("threads-max"), Bound::ThreadsMax, None),
        (limits.tasks, Bound::PidsMax, limits.tasks_at.as_ref()),
    ];
    let known = bounds.into_iter().filter_map(|(tasks, bound, at)| Some((tasks?, bound, at)));
    let (tasks, bound_by, at) = known.min_by_key(|(tasks, ..)| *tasks)?;
    Some(UsableTasks { tasks, bound_by, at: at.cloned() })
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::super::text::tests::tree;
    use super::*;

    const EIGHT: &[(&str, &str)] = &[
        ("/sys/devices/system/cpu/online", "0-7"),
        ("/proc/meminfo", "MemTotal: 8388608 kB\n"),
        ("/proc/sys/kernel/pid_max", "32768"),
        ("/proc/sys/kernel/threads-max", "61000"),
        ("/proc/self/cgroup", "0::/a/b\n"),
        ("/proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n"),
    ];

    fn usable(files: &[(&str, &str)]) -> Usable {
        Machine::from(&tree(&[EIGHT, files].concat())).usable
    }

    fn cpus(files: &[(&str, &str)]) -> (f64, Bound, Option<String>) {
        let cpus = usable(files).cpus.expect("CPUs");
        assert_eq!(cpus.of, 8);
        (cpus.cpus, cpus.bound_by, cpus.at)
    }

    #[test]
    fn the_tightest_of_affinity_cpuset_and_quota() {
        let at = |path: &str| Some(path.to_string());
        let set = ("/cg/a/cpuset.cpus.effective", "0-3");
        let quota = |text: &'static str| ("/cg/a/b/cpu.max", text);
        let mask = |list: &'static str| ("/proc/self/status", list);
        assert_eq!(cpus(&[]), (8.0, Bound::Machine, None));
        assert_eq!(cpus(&[set]), (4.0, Bound::Cpuset, at("/cg/a")));
        // The kernel shows the cpuset in the mask, too.
        assert_eq!(cpus(&[set, mask("Cpus_allowed_list: 0-3\n")]), (4.0, Bound::Cpuset, at("/cg/a")));
        assert_eq!(cpus(&[set, mask("Cpus_allowed_list: 1-2\n")]), (2.0, Bound::Affinity, None));
        assert_eq!(cpus(&[mask("Cpus_allowed_list: 5\n")]), (1.0, Bound::Affinity, None));
        assert_eq!(cpus(&[set, quota("150000 100000")]), (1.5, Bound::Quota, at("/cg/a/b")));
        // As much as the cpuset leaves is no limit.
        assert_eq!(cpus(&[set, quota("400000 100000")]), (4.0, Bound::Cpuset, at("/cg/a")));
        assert_eq!(cpus(&[quota("800000 100000")]), (8.0, Bound::Machine, None));
        let period = usable(&[quota("5000 10000")]).cpus.expect("CPUs").period_us;
        assert_eq!(period, Some(10_000));
    }

    #[test]
    fn the_tightest_of_memory_limits() {
        let memory = |files: &[(&str, &str)]| {
            let memory = usable(files).memory.expect("memory");
            assert_eq!(memory.of_bytes, Some(8 << 30));
            (memory.bytes >> 20, memory.bound_by)
        };
        assert_eq!(memory(&[]), (8192, Bound::Machine));
        let max = ("/cg/a/memory.max", "2147483648");
        assert_eq!(memory(&[max]), (2048, Bound::MemoryLimit));
        assert_eq!(memory(&[max, ("/cg/memory.high", "1073741824")]), (1024, Bound::MemoryHigh));
        assert_eq!(memory(&[("/cg/a/memory.max", "17179869184")]), (8192, Bound::Machine));
    }

    #[test]
    fn the_tightest_of_task_limits() {
        let tasks = |files: &[(&str, &str)]| {
            let tasks = usable(files).tasks.expect("tasks");
            (tasks.tasks, tasks.bound_by)
        };
        assert_eq!(tasks(&[]), (32_768, Bound::PidMax));
        assert_eq!(tasks(&[("/proc/sys/kernel/threads-max", "900")]), (900, Bound::ThreadsMax));
        assert_eq!(tasks(&[("/cg/a/pids.max", "512")]), (512, Bound::PidsMax));
        assert_eq!(tasks(&[("/cg/a/pids.max", "max")]), (32_768, Bound::PidMax));
    }

    #[test]
    fn nothing_is_told_of_what_is_not_known() {
        assert_eq!(Machine::from(&tree(&[])).usable, Usable::default());
    }
}
