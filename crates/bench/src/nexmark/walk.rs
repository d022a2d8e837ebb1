//! The steps that a job walks, and the windows that lie in them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::gauge::Snapshot;

/// Percent of the greatest rate; `FULL` is as fast as it can.
pub const LOADS: [u64; 7] = [10, 20, 35, 50, 65, 80, FULL];
pub const FULL: u64 = 100;

/// The beginning of a step that does not count: a new rate fills caches and queues anew.
pub const SETTLING_S: f64 = 1.5;
/// A source this far behind is catching up, ns: a third of a percent of a window.
const BEHIND_NS: f64 = 10e6;
/// But a window begins by then, s: a source that cannot keep up stays behind.
const LATEST_S: f64 = 2.5;
/// A shorter window would err by more than 2 % where CPU time comes in ticks of 10 ms.
const SHORTEST_S: f64 = 0.6;
/// Others and the hypervisor together: what they take of the TaskManager's CPUs, the saturated rate
/// loses, and a twentieth is a third of the way from one step to the next.
pub const CONTAMINATED: f64 = 0.05;

/// A stretch of time at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub load: u64,
    pub seconds: f64,
    /// False for the first, which warms up and gives the full rate.
    pub counted: bool,
}

/// How much is walked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    pub rounds: u32,
    pub step_s: f64,
    pub warm_up_s: f64,
}

impl Length {
    /// Time of the whole walk, s.
    pub fn seconds(&self) -> f64 {
        self.warm_up_s + f64::from(self.rounds) * LOADS.len() as f64 * self.step_s
    }

    /// With steps in which two readings have room although they come this far apart, s.
    pub fn for_readings_apart(mut self, apart_s: f64) -> Length {
        self.step_s = self.step_s.max(SETTLING_S + 2.0 * apart_s + 0.5);
        self.warm_up_s = self.warm_up_s.max(apart_s);
        self
    }

    pub fn warm_up(&self) -> Step {
        Step { load: FULL, seconds: self.warm_up_s, counted: false }
    }

    /// The counted steps: round after round all of them, in an order drawn anew.
    pub fn steps(&self, seed: u64) -> Vec<Step> {
        let mut random = fastrand::Rng::with_seed(seed);
        let round = |_| {
            let mut loads = LOADS;
            random.shuffle(&mut loads);
            loads.map(|load| Step { load, seconds: self.step_s, counted: true })
        };
        (0..self.rounds).flat_map(round).collect()
    }
}

/// The job's own words for these steps.
pub fn schedule(steps: &[Step]) -> String {
    let word = |step: &Step| match step.load {
        FULL => format!("max@{}", step.seconds),
        load => format!("{load}%@{}", step.seconds),
    };
    steps.iter().map(word).collect::<Vec<String>>().join(";")
}

/// What happened in a part of a step, of all subtasks together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    pub ns: f64,
    /// Events in it.
    pub events: f64,
    /// Events a second that were to be; none where it went as fast as it could.
    pub target: Option<f64>,
    pub late_ms: f64,
    /// Busy share of the TaskManagers' CPUs, and what others and the hypervisor had of them; CPUs
    /// that their processes used.
    pub cpu: Option<f64>,
    /// The same as `top` adds it up.
    pub cpu_ticks: Option<f64>,
    pub others: Option<f64>,
    pub steal: Option<f64>,
    pub process_cpus: Option<f64>,
    /// Share of the time in which the processes stood still for their garbage collectors.
    pub gc: Option<f64>,
}

impl Window {
    pub fn rate(&self) -> f64 {
        self.events * 1e9 / self.ns
    }
}

/// Why a window is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejected {
    /// There were no two readings far enough apart.
    NotAdvanced,
    /// The readings are not of one step of one process.
    Torn,
    /// Other work used the CPUs, percent.
    Contaminated(u32),
}

impl Rejected {
    pub fn words(self) -> String {
        match self {
            Rejected::NotAdvanced => "its readings did not advance".to_string(),
            Rejected::Torn => "its readings are not of one step of one process".to_string(),
            Rejected::Contaminated(percent) => {
                format!("other work used {percent} % or more of the TaskManager's CPUs")
            }
        }
    }
}

/// The readings of one job.
#[derive(Debug, Default)]
pub struct Readings {
    /// By step and subtask: the first that had settled, and the last.
    ends: BTreeMap<(i64, u32), (Snapshot, Snapshot)>,
    /// By subtask, the last of all.
    last: BTreeMap<u32, Snapshot>,
}

impl Readings {
    /// Takes a reading; false where it is an old one.
    pub fn take(&mut self, reading: Snapshot) -> bool {
        let last = self.last.get(&reading.subtask);
        if last.is_some_and(|last| last.nanos >= reading.nanos && last.pid == reading.pid) {
            return false;
        }
        let place = (reading.step, reading.subtask);
        // A source that is catching up does more than its target: it is waited for, for a while.
        let settled = |seconds: f64| {
            let behind = reading.late_ns as f64 > BEHIND_NS && !self.ends.contains_key(&place);
            seconds >= if behind { LATEST_S } else { SETTLING_S }
        };
        if reading.step_s().is_some_and(settled) {
            let ends = self.ends.entry(place).or_insert_with(|| (reading.clone(), reading.clone()));
            ends.1 = reading.clone();
        }
        self.last.insert(reading.subtask, reading);
        true
    }

    /// The step that all subtasks have reached.
    pub fn step(&self) -> Option<i64> {
        self.last.values().map(|last| last.step).min()
    }

    /// The last reading of each subtask.
    pub fn last(&self) -> impl Iterator<Item = &Snapshot> {
        self.last.values()
    }

    /// The window in a step that all subtasks have left or will never leave.
    pub fn window(&self, step: i64) -> Result<Window, Rejected> {
        let ends = |subtask: &u32| self.ends.get(&(step, *subtask)).ok_or(Rejected::NotAdvanced);
        let all: Vec<&(Snapshot, Snapshot)> = self.last.keys().map(ends).collect::<Result<_, _>>()?;
        window(&all)
    }
}

/// Between the two readings of each subtask.
fn window(ends: &[&(Snapshot, Snapshot)]) -> Result<Window, Rejected> {
    let of_one = |(first, last): &(Snapshot, Snapshot)| {
        first.step == last.step
            && first.step_began() == last.step_began()
            && first.target == last.target
            && (&first.host, first.pid) == (&last.host, last.pid)
            && first.count <= last.count
    };
    let length = |(first, last): &(Snapshot, Snapshot)| last.ns_since(first);
    if ends.is_empty() || ends.iter().any(|ends| length(ends) < SHORTEST_S * 1e9) {
        return Err(Rejected::NotAdvanced);
    }
    if !ends.iter().all(|ends| of_one(ends)) {
        return Err(Rejected::Torn);
    }
    let ns = ends.iter().map(|ends| length(ends)).sum::<f64>() / ends.len() as f64;
    // Each on its own clock, over its own time.
    let per_ns: f64 = ends.iter().map(|ends| (ends.1.count - ends.0.count) as f64 / length(ends)).sum();
    let target: f64 = ends.iter().map(|ends| ends.1.target).sum();
    let late = ends.iter().map(|ends| ends.1.late_ns).max().unwrap_or(0);
    let used = used(ends);
    let window = Window {
        ns,
        events: per_ns * ns,
        target: ends.iter().all(|ends| ends.1.target >= 0.0).then_some(target),
        late_ms: late as f64 / 1e6,
        ..used
    };
    let foreign = [window.others, window.steal].into_iter().flatten().sum::<f64>();
    if foreign > CONTAMINATED {
        return Err(Rejected::Contaminated((foreign * 100.0) as u32));
    }
    Ok(window)
}

/// What was used of the CPUs: each CPU of each host once, and each process once.
fn used(ends: &[&(Snapshot, Snapshot)]) -> Window {
    let mut cpus: BTreeMap<(&str, i64), [f64; 3]> = BTreeMap::new();
    let (mut processes, mut process_cpus, mut gc) = (BTreeSet::new(), Some(0.0), Some(0.0));
    for (first, last) in ends {
        for now in &last.cpus {
            let Some(then) = first.cpus.iter().find(|then| then[0] == now[0]) else { continue };
            let [busy, idle, steal] = [1, 2, 3].map(|of| now[of].saturating_sub(then[of]).max(0) as f64);
            let (all, ticks) = (busy + idle + steal, last.ns_since(first) / 1e9 * last.hz as f64);
            if all > 0.0 && ticks > 0.0 {
                // Busy is what idle leaves: idle time is counted to the microsecond. Busy time may
                // be sampled at each tick, which misses or favours a source that wakes by timers.
                let left = (1.0 - (idle + steal) / ticks).clamp(0.0, 1.0);
                cpus.entry((&last.host, now[0])).or_insert([left, busy / all, steal / ticks]);
            }
        }
        if processes.insert((&last.host, last.pid)) {
            let known = first.process_ticks >= 0 && last.process_ticks >= first.process_ticks;
            let ticks = (last.process_ticks - first.process_ticks) as f64;
            let seconds = last.ns_since(first) / 1e9;
            process_cpus = process_cpus.filter(|_| known).map(|all| all + ticks / last.hz as f64 / seconds);
            let known = first.gc_ms >= 0 && last.gc_ms >= first.gc_ms;
            let stopped_s = last.gc_ms.saturating_sub(first.gc_ms) as f64 / 1e3;
            gc = gc.filter(|_| known).map(|all| all + stopped_s / seconds);
        }
    }
    let number = cpus.len() as f64;
    let share =
        |of: usize| (!cpus.is_empty()).then(|| cpus.values().map(|shares| shares[of]).sum::<f64>() / number);
    let [cpu, cpu_ticks, steal] = [0, 1, 2].map(share);
    // Ticks err to both sides: what is a little less than nothing stays so.
    let others = cpu.and_then(|cpu| Some(cpu - (process_cpus? + beside(ends)) / number));
    let gc = gc.map(|all: f64| all / processes.len() as f64);
    Window { cpu, cpu_ticks, steal, others, process_cpus, gc, ..Window::default() }
}

/// CPUs that JobManager and driver used of these; 0 where they have others.
fn beside(ends: &[&(Snapshot, Snapshot)]) -> f64 {
    let of = |(first, last): &(Snapshot, Snapshot)| {
        Some((last.beside_ms? - first.beside_ms?) * 1e6 / last.ns_since(first))
    };
    ends.first().and_then(|ends| of(ends)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::gauge::tests::reading;
    use super::*;

    const SHORT: Length = Length { rounds: 2, step_s: 5.0, warm_up_s: 12.0 };

    #[test]
    fn every_round_has_every_step_in_an_order_of_its_own() {
        let steps = SHORT.steps(3);
        assert_eq!(steps.len(), 2 * LOADS.len());
        assert_eq!(SHORT.seconds(), 82.0);
        let (one, other) = steps.split_at(LOADS.len());
        assert_ne!(one, other);
        for round in [one, other] {
            let mut loads: Vec<u64> = round.iter().map(|step| step.load).collect();
            loads.sort_unstable();
            assert_eq!(loads, LOADS);
        }
        assert_eq!(SHORT.steps(3), steps);
        assert_ne!(SHORT.steps(4), steps);
        assert_eq!(schedule(&[SHORT.warm_up(), steps[0]]).split(';').next(), Some("max@12"));
        assert_eq!(schedule(&[Step { load: 35, seconds: 2.5, counted: true }]), "35%@2.5");
        assert_eq!(SHORT.for_readings_apart(10.0).step_s, 22.0);
        assert_eq!(SHORT.for_readings_apart(0.25), SHORT);
    }

    /// A subtask that emits 1000 events a second, read at these seconds of a step that began at 10
    /// s.
    fn read(readings: &mut Readings, seconds: &[f64]) {
        for at in seconds {
            readings.take(reading(3, 10.0, 10.0 + at, (at * 1000.0) as u64));
        }
    }

    #[test]
    fn a_window_is_exact_and_lies_after_settling() {
        let mut readings = Readings::default();
        read(&mut readings, &[0.4, 1.2, 1.7, 2.2, 4.7]);
        let window = readings.window(3).expect("a window");
        assert_eq!((window.ns, window.events, window.rate()), (3e9, 3000.0, 1000.0));
        assert_eq!((window.target, window.cpu, window.steal), (Some(1000.0), Some(0.5), Some(0.0)));
        assert_eq!(window.process_cpus, Some(0.5));
        assert!(window.gc.is_some_and(|gc| (gc - 0.1).abs() < 1e-9));
        assert!(window.others.is_some_and(|others| others.abs() < 1e-12));
        assert_eq!(readings.step(), Some(3));
    }

    #[test]
    fn readings_that_do_not_advance_give_no_window() {
        let mut readings = Readings::default();
        read(&mut readings, &[1.7]);
        assert!(!readings.take(reading(3, 10.0, 11.7, 1700)), "the same once more");
        assert!(!readings.take(reading(3, 10.0, 11.5, 9999)), "an older one");
        assert_eq!(readings.window(3), Err(Rejected::NotAdvanced));
        read(&mut readings, &[2.0]);
        assert_eq!(readings.window(3), Err(Rejected::NotAdvanced), "too short");
        assert_eq!(readings.window(2), Err(Rejected::NotAdvanced), "never seen");
        assert_eq!(Readings::default().window(0), Err(Rejected::NotAdvanced));
    }

    #[test]
    fn a_source_that_catches_up_is_waited_for_a_while() {
        let late = |at: f64, ms: u64| {
            let reading = reading(3, 10.0, 10.0 + at, (at * 1000.0) as u64);
            Snapshot { late_ns: (ms * 1_000_000) as _, ..reading }
        };
        let begin = |readings: &[Snapshot]| {
            let mut all = Readings::default();
            readings.iter().for_each(|one| assert!(all.take(one.clone())));
            all.window(3).expect("a window").ns / 1e9
        };
        let caught_up = [late(1.6, 80), late(2.1, 5), late(4.6, 3)];
        assert!((begin(&caught_up) - 2.5).abs() < 1e-9);
        let never = [late(1.6, 80), late(2.1, 90), late(2.6, 100), late(4.6, 200)];
        assert!((begin(&never) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_change_of_step_or_process_inside_gives_no_window() {
        let (begin, end) = (reading(3, 10.0, 12.0, 2000), reading(3, 10.0, 14.0, 4000));
        assert!(window(&[&(begin.clone(), end.clone())]).is_ok());
        let torn = |change: &dyn Fn(&mut Snapshot)| {
            let mut end = end.clone();
            change(&mut end);
            assert_eq!(window(&[&(begin.clone(), end)]), Err(Rejected::Torn));
        };
        torn(&|end| end.step = 4);
        torn(&|end| end.step_nanos -= 1);
        torn(&|end| end.target = 2000.0);
        torn(&|end| end.pid = 8);
        torn(&|end| end.host = "there".into());
        torn(&|end| end.count = 1);
        // A new process begins its counts anew, whatever its clock says.
        let mut readings = Readings::default();
        assert!(readings.take(end.clone()) && readings.take(Snapshot { pid: 8, ..begin }));
        assert_eq!(readings.window(3).ok(), None);
    }

    #[test]
    fn what_others_or_the_hypervisor_used_is_found() {
        let begin = reading(3, 10.0, 12.0, 2000);
        let with = |cpus: [i64; 4]| {
            let mut end = reading(3, 10.0, 16.0, 6000);
            end.cpus = vec![cpus];
            window(&[&(begin.clone(), end)])
        };
        let [_, busy, idle, _] = begin.cpus[0];
        assert!(with([1, busy + 210, idle + 190, 0]).is_ok_and(|window| window.others > Some(0.02)));
        assert_eq!(with([1, busy + 230, idle + 170, 0]), Err(Rejected::Contaminated(7)));
        assert_eq!(with([1, busy + 200, idle + 170, 30]), Err(Rejected::Contaminated(7)));
        // JobManager and driver, who have no other CPUs, are no others.
        let (mut begin, mut end) = (begin.clone(), reading(3, 10.0, 16.0, 6000));
        end.cpus = vec![[1, busy + 230, idle + 170, 0]];
        (begin.beside_ms, end.beside_ms) = (Some(500.0), Some(700.0));
        assert!(
            window(&[&(begin, end)])
                .is_ok_and(|window| window.others.is_some_and(|x| (x - 0.025).abs() < 1e-9))
        );
        // If the CPUs are not reported, other work is unknown and nothing is invented.
        let unknown = with([5, 0, 0, 0]).expect("a window");
        assert_eq!((unknown.cpu, unknown.others), (None, None));
    }

    #[test]
    fn cpus_and_processes_count_once_and_rates_add_up() {
        let pair = |subtask: u32, host: &str, pid: u64| {
            let (mut begin, mut end) = (reading(3, 10.0, 12.0, 2000), reading(3, 10.0, 14.0, 4000));
            for one in [&mut begin, &mut end] {
                (one.subtask, one.host, one.pid) = (subtask, host.into(), pid);
            }
            (begin, end)
        };
        let (a, b, c) = (pair(0, "here", 7), pair(1, "here", 7), pair(2, "there", 9));
        let two = window(&[&a, &b]).expect("a window");
        assert_eq!((two.rate(), two.cpu, two.process_cpus), (2000.0, Some(0.5), Some(0.5)));
        assert_eq!(two.target, Some(2000.0));
        let three = window(&[&a, &b, &c]).expect("a window");
        assert_eq!((three.rate(), three.cpu, three.process_cpus), (3000.0, Some(0.5), Some(1.0)));
        let mut full = pair(1, "here", 7);
        (full.0.target, full.1.target) = (-1.0, -1.0);
        assert_eq!(window(&[&full]).expect("a window").target, None);
        assert_eq!(three.gc, Some(0.1));
        (full.1.process_ticks, full.0.gc_ms) = (-1, -1);
        let unknown = window(&[&full]).expect("a window");
        assert_eq!((unknown.process_cpus, unknown.gc), (None, None));
    }
}
