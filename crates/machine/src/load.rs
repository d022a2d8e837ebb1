//! What the machine is doing: uptime, load, pressure.

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

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
}

pub(super) fn parse(snapshot: &Snapshot) -> Load {
    // A word that is no amount ends the list: those behind it must not move into its place.
    let numbers = |path: &str| -> Vec<f64> {
        let words = snapshot.text(path).unwrap_or("").split_whitespace();
        let amount = |word: &str| word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        words.map_while(amount).collect()
    };
    let average = numbers("/proc/loadavg");
    Load {
        uptime_s: numbers("/proc/uptime").first().copied(),
        boot_id: snapshot.text("/proc/sys/kernel/random/boot_id").map(str::to_string),
        average: average.get(..3).and_then(|three| three.try_into().ok()),
        psi_cpu: pressure(snapshot, "cpu"),
        psi_memory: pressure(snapshot, "memory"),
        psi_io: pressure(snapshot, "io"),
    }
}

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
        let load = parse(&snapshot);
        assert_eq!(load.average, Some([0.71, 0.70, 0.61]));
        assert_eq!(load.uptime_s, Some(1798.81));
        assert_eq!((load.psi_cpu, load.psi_io, load.psi_memory), (Some(2.5), None, None));
        for damaged in ["1 2", "1 nan 3 4", "-1 2 3", "1 2 inf"] {
            assert_eq!(parse(&tree(&[("/proc/loadavg", damaged)])), Load::default(), "{damaged}");
        }
    }
}
