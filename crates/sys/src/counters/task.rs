//! The scheduler's counters of one task: wake-ups, migrations, waiting.

use std::path::Path;

use super::{CounterFile, wait_ns_of};

/// Counters of one task, kept open.
pub struct TaskCounters {
    sched: CounterFile,
    status: CounterFile,
    schedstat: CounterFile,
    buffer: Vec<u8>,
}

/// Running totals of one task, or sums over several; `None` if the kernel's configuration or its
/// settings do not provide them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskTotals {
    /// Moves to another CPU.
    pub migrations: Option<f64>,
    /// Voluntary context switches.
    pub voluntary: Option<f64>,
    /// Involuntary context switches.
    pub involuntary: Option<f64>,
    /// Wake-ups; this and the next count only while `kernel.sched_schedstats` is 1.
    pub wakeups: Option<f64>,
    /// Wake-ups for which the waker's CPU was considered (`wake_affine`).
    pub affine_attempts: Option<f64>,
    /// Time that it was runnable and had no CPU, ns.
    pub wait_ns: Option<f64>,
}

impl TaskCounters {
    /// Opens the counters of the first thread of process `pid`.
    pub fn of(pid: u32) -> TaskCounters {
        let open = |name: &str| CounterFile::open(Path::new(&format!("/proc/{pid}/{name}")));
        TaskCounters {
            sched: open("sched"),
            status: open("status"),
            schedstat: open("schedstat"),
            buffer: Vec::new(),
        }
    }

    pub fn read(&mut self) -> TaskTotals {
        let mut totals = self.sched.read(&mut self.buffer).map(parse).unwrap_or_default();
        if totals.voluntary.is_none() {
            // Kernels without CONFIG_SCHED_DEBUG report the switches here.
            let switches = self.status.read(&mut self.buffer).map(parse).unwrap_or_default();
            (totals.voluntary, totals.involuntary) = (switches.voluntary, switches.involuntary);
        }
        totals.wait_ns = self.wait_ns();
        totals
    }

    /// Time that it was runnable and had no CPU so far, ns.
    pub fn wait_ns(&mut self) -> Option<f64> {
        self.schedstat.read(&mut self.buffer).and_then(wait_ns_of)
    }
}

impl TaskTotals {
    fn combine(self, other: TaskTotals, operation: impl Fn(f64, f64) -> f64) -> TaskTotals {
        let both = |one: Option<f64>, other: Option<f64>| Some(operation(one?, other?));
        TaskTotals {
            migrations: both(self.migrations, other.migrations),
            voluntary: both(self.voluntary, other.voluntary),
            involuntary: both(self.involuntary, other.involuntary),
            wakeups: both(self.wakeups, other.wakeups),
            affine_attempts: both(self.affine_attempts, other.affine_attempts),
            wait_ns: both(self.wait_ns, other.wait_ns),
        }
    }

    pub fn plus(self, other: TaskTotals) -> TaskTotals {
        self.combine(other, |one, other| one + other)
    }

    pub fn since(self, earlier: TaskTotals) -> TaskTotals {
        self.combine(earlier, |now, then| now - then)
    }
}

/// Parses lines `name : value` of `/proc/PID/sched` or `status`; until 5.16 statistics were named
/// `se.statistics.NAME`.
fn parse(text: &str) -> TaskTotals {
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (label, value) = line.split_once(':')?;
            let label = label.trim();
            let matches = label == name || label.strip_prefix("se.statistics.") == Some(name);
            matches.then(|| value.trim().parse().ok()).flatten()
        })
    };
    TaskTotals {
        migrations: value("se.nr_migrations"),
        voluntary: value("nr_voluntary_switches").or_else(|| value("voluntary_ctxt_switches")),
        involuntary: value("nr_involuntary_switches").or_else(|| value("nonvoluntary_ctxt_switches")),
        wakeups: value("nr_wakeups"),
        affine_attempts: value("nr_wakeups_affine_attempts"),
        wait_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_kernels_name_their_statistics_differently() {
        let new = "bash (1, #threads: 1)\n-----\nse.nr_migrations       :    7\nnr_switches : 9\n\
                   nr_voluntary_switches : 8\nnr_involuntary_switches : 1\nnr_wakeups   :    20\n\
                   nr_wakeups_affine : 3\nnr_wakeups_affine_attempts : 5\n";
        let old = new.replace("nr_wakeups", "se.statistics.nr_wakeups");
        let expected = TaskTotals {
            migrations: Some(7.0),
            voluntary: Some(8.0),
            involuntary: Some(1.0),
            wakeups: Some(20.0),
            affine_attempts: Some(5.0),
            wait_ns: None,
        };
        assert_eq!((parse(new), parse(&old)), (expected, expected));
        let status = parse("Name:\tbash\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n");
        assert_eq!((status.voluntary, status.involuntary), (Some(150.0), Some(545.0)));
        let without = parse("se.nr_migrations : 7\n");
        assert_eq!((without.migrations, without.wakeups), (Some(7.0), None));
        assert_eq!(parse(new).since(without).migrations, Some(0.0));
        assert_eq!(parse(new).plus(without).wakeups, None, "unknown of one is unknown of both");
    }

    #[test]
    fn this_process_has_counters() {
        let mut own = TaskCounters::of(std::process::id());
        let before = own.read();
        std::thread::sleep(std::time::Duration::from_millis(2));
        // A kernel without CONFIG_SCHED_DEBUG has no such file.
        if let Some(slept) = own.read().since(before).voluntary {
            assert!(slept >= 0.0);
        }
        assert_eq!(TaskCounters::of(u32::MAX).read(), TaskTotals::default());
    }
}
