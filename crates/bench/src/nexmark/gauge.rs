//! What the job's reporter says, taken at one instant inside a TaskManager. All of it is checked.

use serde::Deserialize;

use model::CpuSet;

/// A reading of one subtask of the source, on the clock of the host where it runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Snapshot {
    pub v: u32,
    /// Where it runs, and in which process.
    pub host: String,
    pub pid: u64,
    pub subtask: u32,
    /// The step of the schedule that goes on, from 0 (less: not yet begun; `steps`: all are over),
    /// and how many there are.
    pub step: i64,
    pub steps: i64,
    /// Events a second that this subtask is to emit; negative: as many as it can.
    pub target: f64,
    /// The instant, on a clock that only goes forward, and how long the step then went on.
    pub nanos: i64,
    pub step_nanos: i64,
    /// Events that it has emitted.
    pub count: u64,
    /// How far behind its schedule it is.
    #[serde(default)]
    pub late_ns: i64,
    /// CPU time of the process so far, and how many ticks a second has; less than 0 where it cannot
    /// be read.
    #[serde(default = "unknown")]
    pub process_ticks: i64,
    pub hz: i64,
    /// The CPUs that the process may use, as a list.
    #[serde(default)]
    pub allowed: String,
    /// CPUs, once read those that it may use: number, and ticks busy, idle and stolen.
    #[serde(default)]
    pub cpus: Vec<[i64; 4]>,
    /// Its garbage collectors, and versions.
    #[serde(default)]
    pub gc: Vec<String>,
    /// Time in which they stopped the process so far; below 0 if it is not reported.
    #[serde(default = "unknown")]
    pub gc_ms: i64,
    #[serde(default)]
    pub java: String,
    #[serde(default)]
    pub flink: String,
    /// CPU time so far, when this was read, of JobManager and driver where they share these CPUs,
    /// ms.
    #[serde(skip)]
    pub beside_ms: Option<f64>,
}

fn unknown() -> i64 {
    -1
}

/// What this version of the reporter calls itself.
const VERSION: u32 = 1;
/// A report of thousands of CPUs is shorter.
const LONGEST: usize = 1 << 20;
/// More CPUs, steps or ticks a second than any.
const MAX_COUNT: i64 = 1 << 20;
/// Beyond this a count is not exact as a float.
const EXACT: u64 = 1 << 53;

impl Snapshot {
    /// What the gauge's text says, or why it says nothing.
    pub fn parse(text: &str) -> Result<Snapshot, String> {
        if text.len() > LONGEST {
            return Err(format!("the reporter's text has {} bytes", text.len()));
        }
        let mut snapshot: Snapshot = serde_json::from_str(text)
            .map_err(|error| format!("the reporter's text is not valid: {error}"))?;
        let sane = snapshot.steps > 0
            && snapshot.steps <= MAX_COUNT
            && (-1..=snapshot.steps).contains(&snapshot.step)
            && snapshot.target.is_finite()
            && (1..=MAX_COUNT).contains(&snapshot.hz)
            && snapshot.count < EXACT
            && snapshot.cpus.len() as i64 <= MAX_COUNT
            && snapshot.nanos.checked_sub(snapshot.step_nanos).is_some();
        // A process that does not report its CPUs is not charged with all.
        let own = CpuSet::parse_list(&snapshot.allowed).unwrap_or_default();
        snapshot.cpus.retain(|cpu| u32::try_from(cpu[0]).is_ok_and(|cpu| own.contains(cpu)));
        match (snapshot.v == VERSION, sane) {
            (false, _) => Err(format!("the reporter has version {}, not {VERSION}", snapshot.v)),
            (true, false) => Err("the reporter's numbers are impossible".to_string()),
            (true, true) => Ok(snapshot),
        }
    }

    /// Time since its step began, s; nothing outside of all steps.
    pub fn step_s(&self) -> Option<f64> {
        (0..self.steps).contains(&self.step).then_some(self.step_nanos as f64 / 1e9)
    }

    /// When its step began, on its clock.
    pub fn step_began(&self) -> i64 {
        self.nanos.saturating_sub(self.step_nanos)
    }

    /// Time since an earlier reading, ns.
    pub fn ns_since(&self, earlier: &Snapshot) -> f64 {
        self.nanos.saturating_sub(earlier.nanos) as f64
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A reading of subtask 0 in a process that is alone on CPU 1: `at` and `began` in seconds.
    pub fn reading(step: i64, began: f64, at: f64, count: u64) -> Snapshot {
        let ticks = (at * 100.0).round() as i64;
        Snapshot {
            v: VERSION,
            host: "here".into(),
            pid: 7,
            step,
            steps: 9,
            target: 1000.0,
            nanos: (at * 1e9).round() as i64,
            step_nanos: (at * 1e9).round() as i64 - (began * 1e9).round() as i64,
            count,
            process_ticks: ticks / 2,
            gc_ms: ticks,
            hz: 100,
            cpus: vec![[1, ticks / 2, ticks - ticks / 2, 0]],
            ..Snapshot::default()
        }
    }

    const TEXT: &str = r#"{"v":1,"host":"h","pid":12,"subtask":1,"step":3,"steps":15,"target":1234.5,"nanos":5000000000,
        "millis":1700000000000,"step_nanos":1000000000,"count":98765,"late_ns":12,"process_ticks":321,"hz":100,
        "allowed":"1","cpus":[[0,10,20,0],[1,11,21,1]],"gc":["Copy","MarkSweepCompact"],"gc_ms":40,"java":"17","flink":"2.3.0"}"#;

    #[test]
    fn a_report_is_read_whole() {
        let snapshot = Snapshot::parse(TEXT).expect("a report");
        assert_eq!((snapshot.pid, snapshot.step, snapshot.count), (12, 3, 98765));
        assert_eq!((snapshot.step_s(), snapshot.cpus), (Some(1.0), vec![[1, 11, 21, 1]]));
        assert_eq!((snapshot.gc.join(" ").as_str(), snapshot.gc_ms), ("Copy MarkSweepCompact", 40));
        // An older program does not report it.
        assert_eq!(Snapshot::parse(&TEXT.replace("\"gc_ms\":40,", "")).map(|old| old.gc_ms), Ok(-1));
        let at = |step: &str| Snapshot::parse(&TEXT.replace("\"step\":3", step)).expect("a report");
        assert_eq!(at("\"step\":-1").step_s(), None, "not yet begun");
        assert_eq!(at("\"step\":15").step_s(), None, "all are over");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |from: &str, to: &str| Snapshot::parse(&TEXT.replace(from, to)).expect_err(to);
        assert!(refused("\"v\":1", "\"v\":2").contains("version 2"));
        for (from, to) in [
            ("\"steps\":15", "\"steps\":2"),
            ("\"step\":3", "\"step\":-2"),
            ("\"steps\":15", "\"steps\":4000000000"),
            ("\"hz\":100", "\"hz\":0"),
            ("98765", "18446744073709551615"),
            ("1234.5", "1e400"),
            ("\"step_nanos\":1000000000", "\"step_nanos\":-9223372036854775807"),
            ("[[0,10,20,0]", "[[0,10,20]"),
        ] {
            refused(from, to);
        }
        assert!(Snapshot::parse(&"x".repeat(LONGEST + 1)).is_err());
    }

    #[test]
    fn damaged_reports_never_panic() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let mut bytes = TEXT.as_bytes().to_vec();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..bytes.len());
                match random.u8(..3) {
                    0 => bytes[at] = random.u8(32..127),
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, *random.choice(b"0123456789-e\",[]{}".iter()).expect("one")),
                }
            }
            if let Ok(snapshot) = Snapshot::parse(&String::from_utf8_lossy(&bytes)) {
                assert!(snapshot.step_s().is_none_or(f64::is_finite) && snapshot.ns_since(&snapshot) == 0.0);
            }
        }
    }
}
