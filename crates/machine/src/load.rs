//! What the machine is doing: uptime, load, pressure.

use schemars::JsonSchema;
use serde::Serialize;

use model::{CpuSet, Snapshot};

/// How busy the machine was when it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    pub uptime_s: Option<f64>,
    pub boot_id: Option<String>,
    /// Load averages over 1, 5 and 15 minutes: tasks running or in uninterruptible sleep.
    pub average: Option<[f64; 3]>,
    /// Share of the last 10 s in which some task waited for the resource, percent.
    pub psi_cpu: Option<f64>,
    pub psi_memory: Option<f64>,
    pub psi_io: Option<f64>,
    /// Whether the busy and idle time of all CPUs since the start is about their number times the
    /// uptime: where it is not, a sandbox serves counters that stand still, and that no one works
    /// is not trusted.
    pub counters_keep_time: Option<bool>,
}

/// CPUs that were offline and ticks that a guest lost leave more than this share.
const MIN_COUNTED: f64 = 0.1;
/// So soon after the start counters have few ticks, s.
const JUDGED_S: f64 = 10.0;

pub(super) fn parse(snapshot: &Snapshot, online: &CpuSet) -> Load {
    // A word that is no amount ends the list: those behind it must not move into its place.
    let numbers = |path: &str| -> Vec<f64> {
        let words = snapshot.text(path).unwrap_or("").split_whitespace();
        let amount = |word: &str| word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        words.map_while(amount).collect()
    };
    let average = numbers("/proc/loadavg");
    let uptime_s = numbers("/proc/uptime").first().copied();
    Load {
        uptime_s,
        boot_id: snapshot.text("/proc/sys/kernel/random/boot_id").map(str::to_string),
        average: average
            .get(..3)
            .and_then(|three| three.try_into().ok())
            .filter(|_| !is_invented(snapshot.text("/proc/loadavg"))),
        counters_keep_time: keep_time(snapshot, online, uptime_s),
        psi_cpu: pressure(snapshot, "cpu"),
        psi_memory: pressure(snapshot, "memory"),
        psi_io: pressure(snapshot, "io"),
    }
}

/// `0.00 0.00 0.00 0/0 0`: the reader itself runs, so a load without any running task is invented.
fn is_invented(load: Option<&str>) -> bool {
    load.and_then(|text| text.split_whitespace().nth(3)) == Some("0/0")
}

/// By the line of all CPUs in /proc/stat: user nice system idle iowait irq softirq steal.
fn keep_time(snapshot: &Snapshot, online: &CpuSet, uptime_s: Option<f64>) -> Option<bool> {
    let line = snapshot.text("/proc/stat")?.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Option<Vec<f64>> = line.split_whitespace().take(8).map(|word| word.parse().ok()).collect();
    let counted_s = ticks.filter(|ticks| ticks.len() >= 4)?.iter().sum::<f64>() / TICKS_PER_SECOND;
    let uptime_s = uptime_s.filter(|seconds| *seconds >= JUDGED_S)?;
    (!online.is_empty()).then(|| counted_s >= MIN_COUNTED * uptime_s * online.len() as f64)
}

/// As Linux counts on all machines that it runs on today.
const TICKS_PER_SECOND: f64 = 100.0;

/// `some avg10=1.23 ...` of a pressure file.
fn pressure(snapshot: &Snapshot, resource: &str) -> Option<f64> {
    let text = snapshot.text(&format!("/proc/pressure/{resource}"))?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let share: f64 = some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    (0.0..=100.0).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn load_and_pressure() {
        let snapshot = tree(&[
            ("/proc/loadavg", "0.71 0.70 0.61 1/164 17884"),
            ("/proc/uptime", "1798.81 3211.10"),
            ("/proc/pressure/cpu", "some avg10=2.50 avg60=0 avg300=0 total=1\nfull avg10=0.00 total=0"),
            ("/proc/pressure/io", "some avg10=nan"),
        ]);
        let load = parse(&snapshot, &CpuSet::default());
        assert_eq!(load.average, Some([0.71, 0.70, 0.61]));
        assert_eq!(load.uptime_s, Some(1798.81));
        assert_eq!((load.psi_cpu, load.psi_io, load.psi_memory), (Some(2.5), None, None));
        for damaged in ["1 2", "1 nan 3 4", "-1 2 3", "1 2 inf"] {
            let snapshot = tree(&[("/proc/loadavg", damaged)]);
            assert_eq!(parse(&snapshot, &CpuSet::default()), Load::default(), "{damaged}");
        }
    }

    #[test]
    fn counters_that_a_sandbox_invents() {
        let of = |load: &str, uptime: &str, stat: &str| {
            let stat = format!("cpu {stat}\nbtime 1700000000\n");
            let files = [("/proc/loadavg", load), ("/proc/uptime", uptime), ("/proc/stat", stat.as_str())];
            let load = parse(&tree(&files), &(0..4).collect());
            (load.average.is_some(), load.counters_keep_time)
        };
        let real = "0.00 0.01 0.05 1/164 17884";
        assert_eq!(of(real, "1000.00 3900.00", "5000 0 5000 390000 0 0 0 0"), (true, Some(true)));
        // gVisor.
        assert_eq!(of("0.00 0.00 0.00 0/0 0", "1000.00 0.00", "0 0 0 0 0 0 0 0 0 0"), (false, Some(false)));
        assert_eq!(of(real, "1000.00 0", "9 0 9 0 0 0 0 0"), (true, Some(false)), "no idle time");
        assert_eq!(of(real, "90000000 0", "5000 0 5000 390000 0 0 0 0"), (true, Some(false)), "an old copy");
        // Three of four CPUs were offline for nearly all the time.
        assert_eq!(of(real, "1000.00 0", "50000 0 0 50000 0 0 0 0"), (true, Some(true)));
        assert_eq!(of(real, "3.00 0", "0 0 0 0"), (true, None), "just started");
        assert_eq!(of(real, "1000.00 0", "x y"), (true, None));
        assert_eq!(of("0.00 0.00 0.00 0/164 9", "", "1 2 3 4"), (true, None), "tasks that all wait");
    }
}
