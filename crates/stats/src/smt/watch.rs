//! From successive looks at the CPUs' counters to what each core did.

use std::collections::{BTreeMap, BTreeSet};

use model::CpuSet;

use super::ticks::{Grown, StatReading, Step, grown};
use super::usage::{CoreUse, Counting, Window};

/// Windows are kept until there are this many, and are then one figure: a recording may last for
/// days.
const BLOCK: usize = 3000;
/// Windows of all cores together: with thousands of cores blocks are shorter, to save memory.
const MAX_WINDOWS: usize = 4 << 20;
const MIN_BLOCK: usize = 50;

/// Takes looks, and knows what happened between the first and the last.
pub struct Watch {
    cores: Vec<Core>,
    /// Whether siblings are known at all: else CPUs are not called strange.
    told: bool,
    /// Seconds that a unit of the counters stands for.
    tick_s: f64,
    /// Seconds between looks without a time; else the counters say how many passed.
    every_s: Option<f64>,
    last: Option<StatReading>,
    tally: Tally,
}

/// What is not a core's own.
#[derive(Clone, Debug, Default)]
struct Tally {
    looks: usize,
    seconds: f64,
    /// Time by the counters of a CPU, and of it stolen and guests' time, over all CPUs.
    counted_s: f64,
    all_s: f64,
    stolen_s: f64,
    guest_s: f64,
    /// Pairs of looks whose time did not go forward.
    unordered: usize,
    /// By CPU: windows in which its counters ran backwards, and grew by more than the time that
    /// passed.
    backwards: BTreeMap<u32, usize>,
    jumped: BTreeMap<u32, usize>,
    /// Windows of each CPU, and of all.
    windows: usize,
    present: BTreeMap<u32, usize>,
    /// By CPU: windows with a time of their own in which its counters must have moved, and did.
    due: BTreeMap<u32, (f64, f64)>,
    strangers: BTreeSet<u32>,
}

struct Core {
    cpus: Vec<u32>,
    package: Option<i64>,
    windows: Vec<Raw>,
    blocks: Vec<(f64, CoreUse)>,
}

/// A window before it is known how long windows without a time are.
struct Raw {
    seconds: Option<f64>,
    /// By the counters, mean of its CPUs.
    counted_s: f64,
    busy_s: Vec<f64>,
}

/// A core that was watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Those that were online at some time.
    pub cpus: Vec<u32>,
    pub package: Option<i64>,
    pub seconds: f64,
    pub used: CoreUse,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedUse {
    pub cores: Vec<Watched>,
    pub looks: usize,
    /// Between the first and the last look, without what was left out.
    pub seconds: f64,
    /// The same by the counters, mean of all CPUs.
    pub counted_s: f64,
    /// Shares of all CPUs' time: taken by the hypervisor, and of it guests'.
    pub stolen: f64,
    pub guest: f64,
    /// What was left out, and why.
    pub remarks: Vec<String>,
}

impl Watch {
    /// `cores`: CPUs that share a core, with their package; CPUs that are in none are cores of
    /// their own, without a remark where `cores` is empty.
    pub fn new(cores: Vec<(Vec<u32>, Option<i64>)>, tick_s: f64, every_s: Option<f64>) -> Watch {
        let told = !cores.is_empty();
        let core = |(cpus, package)| Core { cpus, package, windows: Vec::new(), blocks: Vec::new() };
        let cores = cores.into_iter().map(core).collect();
        Watch { cores, told, tick_s, every_s, last: None, tally: Tally::default() }
    }

    /// Takes in the next look.
    pub fn look(&mut self, look: StatReading) {
        self.tally.looks += 1;
        if let Some(last) = self.last.replace(look) {
            self.between(&last);
        }
    }

    fn between(&mut self, before: &StatReading) {
        let Some(now) = &self.last else { return };
        let passed = match before.at_s.zip(now.at_s) {
            Some((then, now)) => Some(now - then),
            None => self.every_s,
        };
        let is_ordered = passed.is_none_or(|seconds| seconds > 0.0 && seconds.is_finite());
        let grown = grown(before, now, self.tick_s);
        let known: BTreeSet<u32> = self.cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
        let unknown = now.cpus.iter().map(|(cpu, _)| *cpu).filter(|cpu| is_ordered && !known.contains(cpu));
        for cpu in unknown {
            self.tally.strangers.extend(Some(cpu).filter(|_| self.told));
            self.cores.push(Core { cpus: vec![cpu], package: None, windows: Vec::new(), blocks: Vec::new() });
        }
        let counted_s = grown.values().map(Grown::counted_s).sum::<f64>() / grown.len().max(1) as f64;
        let step = Step { passed, counted_s, grown, tick_s: self.tick_s };
        if !is_ordered || step.grown.is_empty() || step.seconds() <= 0.0 {
            self.tally.unordered += 1;
            return;
        }
        self.tally.add(&step);
        let block = BLOCK.min(MAX_WINDOWS / self.cores.len().max(1)).max(MIN_BLOCK);
        for core in &mut self.cores {
            core.add(&step, &mut self.tally);
            if core.windows.len() >= block {
                core.close(self.tick_s);
            }
        }
    }

    /// What was seen until now; the next look begins anew, at the last of these.
    pub fn seen(&mut self) -> ObservedUse {
        let tick_s = self.tick_s;
        let tally = std::mem::take(&mut self.tally);
        self.tally.looks = usize::from(self.last.is_some());
        let online = |cpu: &u32| tally.present.contains_key(cpu);
        let still = tally.still();
        let mut cores = Vec::new();
        for core in &mut self.cores {
            core.close(tick_s);
            let cpus: Vec<u32> = core.cpus.iter().copied().filter(online).collect();
            let blocks = std::mem::take(&mut core.blocks);
            let seconds = blocks.iter().map(|(seconds, _)| seconds).sum();
            let is_told = !cpus.is_empty() && !cpus.iter().any(|cpu| still.contains(*cpu));
            if let Some(used) = CoreUse::joined(&blocks).filter(|_| is_told) {
                // Siblings that never were online cannot work.
                let used = CoreUse { threads: cpus.len(), ..used };
                cores.push(Watched { cpus, package: core.package, seconds, used });
            }
        }
        cores.sort_by(|one, other| one.cpus.cmp(&other.cpus));
        let share = |part: f64| if tally.all_s > 0.0 { part / tally.all_s } else { 0.0 };
        ObservedUse {
            cores,
            looks: tally.looks,
            seconds: tally.seconds,
            counted_s: tally.counted_s,
            stolen: share(tally.stolen_s),
            guest: share(tally.guest_s),
            remarks: tally.remarks(),
        }
    }
}

impl Core {
    /// Takes in a window, where the counters of its CPUs can be trusted.
    fn add(&mut self, step: &Step, tally: &mut Tally) {
        let mut busy_s = Vec::with_capacity(self.cpus.len());
        let mut sound = self.cpus.iter().any(|cpu| step.grown.contains_key(cpu));
        for cpu in &self.cpus {
            // Offline, or on its way: it did nothing that is known.
            let Some(grown) = step.grown.get(cpu) else {
                busy_s.push(0.0);
                continue;
            };
            if grown.is_backwards {
                *tally.backwards.entry(*cpu).or_default() += 1;
                sound = false;
            }
            // A look may come late, and a tick be charged late: more than that is another host
            // or boot.
            if grown.busy_s > 2.0 * step.seconds() + 3.0 * step.tick_s {
                *tally.jumped.entry(*cpu).or_default() += 1;
                sound = false;
            }
            busy_s.push(grown.busy_s);
        }
        if sound {
            self.windows.push(Raw { seconds: step.passed, counted_s: step.counted_s, busy_s });
        }
    }

    fn close(&mut self, tick_s: f64) {
        let windows = std::mem::take(&mut self.windows);
        // Looks without a time are taken to be evenly apart: one window's own count is too coarse.
        let untimed = windows.iter().filter(|window| window.seconds.is_none());
        let mean_s =
            untimed.clone().map(|window| window.counted_s).sum::<f64>() / untimed.count().max(1) as f64;
        let window = |raw: Raw| {
            let seconds = raw.seconds.unwrap_or(mean_s);
            Window { seconds, busy: raw.busy_s.iter().map(|busy| busy / seconds).collect() }
        };
        let windows: Vec<Window> = windows.into_iter().map(window).collect();
        let seconds = windows.iter().map(|window| window.seconds).sum();
        if let Some(used) = CoreUse::of_windows(&windows, Counting::Ticks(tick_s)) {
            self.blocks.push((seconds, used));
        }
    }
}

/// Counters that moved in a smaller part of the windows in which a tick must have passed stand
/// still.
const MIN_MOVED: f64 = 0.1;

impl Tally {
    fn add(&mut self, step: &Step) {
        self.windows += 1;
        self.seconds += step.seconds();
        self.counted_s += step.counted_s;
        for (cpu, grown) in &step.grown {
            *self.present.entry(*cpu).or_default() += 1;
            self.all_s += grown.counted_s();
            self.stolen_s += grown.steal_s;
            self.guest_s += grown.guest_s;
            if let Some(seconds) = step.passed {
                let (due, moved) = self.due.entry(*cpu).or_default();
                *due += (seconds / step.tick_s).min(1.0);
                *moved += f64::from(u8::from(grown.has_moved));
            }
        }
    }

    /// CPUs whose counters stood still while time passed: busy, idle or stolen, one of them grows
    /// on every real kernel.
    fn still(&self) -> CpuSet {
        let is_still = |(due, moved): &(f64, f64)| *due >= 1.0 && *moved < MIN_MOVED * due;
        self.due.iter().filter(|(_, counted)| is_still(counted)).map(|(cpu, _)| *cpu).collect()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let still = self.still();
        if !still.is_empty() {
            remarks.push(format!(
                "the counters of CPUs {still} in /proc/stat do not advance, as in sandboxes: their cores were \
                 left out"
            ));
        }
        let list = |counts: &BTreeMap<u32, usize>| {
            let each: Vec<String> = counts.iter().take(8).map(|(cpu, n)| format!("CPU {cpu} {n}×")).collect();
            each.join(", ") + if counts.len() > 8 { ", and others" } else { "" }
        };
        if self.unordered > 0 {
            remarks.push(format!(
                "{} of {} readings are not later than the one before: these intervals were left out",
                self.unordered, self.looks
            ));
        }
        if !self.backwards.is_empty() {
            remarks.push(format!(
                "busy-time counters ran backwards ({}), as after a CPU went offline: these intervals of their \
                 cores were left out",
                list(&self.backwards)
            ));
        }
        if !self.jumped.is_empty() {
            remarks.push(format!(
                "busy time grew more than twice as fast as time ({}): two hosts, a reboot or a wrong --every; \
                 these intervals of their cores were left out",
                list(&self.jumped)
            ));
        }
        let partly: Vec<String> = self
            .present
            .iter()
            .filter(|(_, windows)| **windows < self.windows)
            .map(|(cpu, windows)| format!("CPU {cpu} for {} of {}", windows, self.windows))
            .collect();
        if !partly.is_empty() {
            let more = if partly.len() > 8 { ", and others" } else { "" };
            remarks.push(format!(
                "not all CPUs were always online ({}{more} intervals): they count as idle while offline",
                partly.iter().take(8).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.strangers.is_empty() {
            let cpus: Vec<String> = self.strangers.iter().take(8).map(u32::to_string).collect();
            remarks.push(format!(
                "the core of these CPUs is unknown, so each counts as one core: {}{}",
                cpus.join(", "),
                if self.strangers.len() > 8 { ", and others" } else { "" }
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticks::Ticks;
    use super::super::{Yield, used};
    use super::*;

    fn look(at_s: Option<f64>, cpus: &[(u32, u64, u64)]) -> StatReading {
        let ticks = |(cpu, busy, idle): &(u32, u64, u64)| {
            (*cpu, Ticks { busy: *busy, idle: *idle, steal: 0, guest: 0 })
        };
        StatReading { at_s, cpus: cpus.iter().map(ticks).collect() }
    }

    fn pair() -> Watch {
        Watch::new(vec![(vec![0, 1], Some(0))], 0.01, None)
    }

    #[test]
    fn turns_of_a_second_by_time_and_by_counters() {
        for timed in [true, false] {
            let mut watch = pair();
            let (mut a, mut b) = ((0, 0), (0, 0));
            for second in 0..=100u64 {
                watch.look(look(timed.then_some(second as f64), &[(0, a.0, a.1), (1, b.0, b.1)]));
                // Three seconds of each ten on one, three on the other.
                let phase = second % 10;
                let grow = |busy: bool, (old, idle): (u64, u64)| {
                    if busy { (old + 100, idle) } else { (old, idle + 100) }
                };
                a = grow(phase < 3, a);
                b = grow((3..6).contains(&phase), b);
            }
            let seen = watch.seen();
            assert_eq!((seen.looks, seen.seconds.round(), seen.remarks.len()), (101, 100.0, 0), "{seen:?}");
            let told = used(&[seen.cores[0].used], Yield::exactly(1.0)).expect("a core");
            assert!((told.naive - 0.3).abs() < 1e-9 && (told.used.mid - 0.6).abs() < 1e-9, "{told:?}");
            assert!(told.used.lo > 0.55 && told.used.hi < 0.65, "{told:?}");
        }
    }

    #[test]
    fn cpus_that_come_and_go_and_counters_that_run_backwards() {
        let mut watch = pair();
        watch.look(look(Some(0.0), &[(0, 0, 0), (1, 500, 0)]));
        watch.look(look(Some(1.0), &[(0, 50, 50), (1, 600, 0)]));
        // CPU 1 off and on again: its counters begin at 0.
        watch.look(look(Some(2.0), &[(0, 100, 100)]));
        watch.look(look(Some(3.0), &[(0, 150, 150), (1, 10, 0)]));
        watch.look(look(Some(4.0), &[(0, 200, 200), (1, 5, 0)]));
        watch.look(look(Some(4.0), &[(0, 200, 200), (1, 5, 0)]));
        watch.look(look(Some(5.0), &[(0, 250, 250), (1, 5, 100), (9, 0, 0)]));
        watch.look(look(Some(6.0), &[(0, 9000, 300), (1, 5, 200), (9, 0, 100)]));
        let seen = watch.seen();
        let core = &seen.cores[0];
        // Four windows count: what ran backwards, stood still or jumped does not.
        assert_eq!((core.cpus.as_slice(), core.seconds.round()), (&[0, 1][..], 4.0));
        assert!((core.used.busy - (4.0 * 0.5 + 1.0) / 4.0).abs() < 1e-9, "{seen:?}");
        assert_eq!(seen.cores[1].cpus, [9]);
        for words in [
            "not later than the one before",
            "ran backwards (CPU 1 1×)",
            "more than twice",
            "not all CPUs",
            "each counts as one core: 9",
        ] {
            assert!(seen.remarks.iter().any(|remark| remark.contains(words)), "{words}: {:?}", seen.remarks);
        }
        // A sibling that is never online is no sibling.
        let mut watch = pair();
        watch.look(look(Some(0.0), &[(0, 0, 0)]));
        watch.look(look(Some(1.0), &[(0, 40, 60)]));
        let seen = watch.seen();
        assert_eq!((seen.cores[0].used.threads, seen.cores[0].cpus.as_slice()), (1, &[0][..]));
    }

    #[test]
    fn counters_that_stand_still_are_not_idle_cpus() {
        let seen = |moves: &dyn Fn(u32, u64) -> (u64, u64)| {
            let mut watch = Watch::new(vec![(vec![0, 1], None), (vec![2, 3], None)], 0.01, None);
            for look_no in 0..=100 {
                let cpus: Vec<(u32, u64, u64)> = (0..4)
                    .map(|cpu| {
                        let (busy, idle) = moves(cpu, look_no);
                        (cpu, busy, idle)
                    })
                    .collect();
                watch.look(look(Some(0.02 * look_no as f64), &cpus));
            }
            let seen = watch.seen();
            let told: Vec<u32> = seen.cores.iter().flat_map(|core| core.cpus.clone()).collect();
            (told, seen.remarks.join("; "))
        };
        let all = vec![0, 1, 2, 3];
        assert_eq!(seen(&|_, n| (0, 2 * n)), (all.clone(), String::new()), "idle");
        assert_eq!(seen(&|_, n| (2 * n, 7)), (all.clone(), String::new()), "busy");
        // Late ticks come together.
        assert_eq!(seen(&|_, n| (0, 2 * (n / 4) * 4)), (all, String::new()));
        let (told, remarks) = seen(&|_, _| (0, 0));
        assert!(told.is_empty() && remarks.contains("CPUs 0-3 in /proc/stat do not advance"), "{remarks}");
        let (told, remarks) = seen(&|_, _| (500, 900));
        assert!(told.is_empty() && remarks.contains("CPUs 0-3"), "not only zeros: {remarks}");
        let (told, remarks) = seen(&|cpu, n| if cpu == 3 { (5, 5) } else { (n, n) });
        assert!(told == [0, 1] && remarks.contains("CPUs 3 in"), "{told:?}: {remarks}");
    }

    #[test]
    fn blocks_come_to_the_same_and_watching_goes_on() {
        let mut watch = Watch::new(vec![(vec![0, 1], None)], 0.01, Some(0.02));
        for i in 0..=(2 * BLOCK as u64 + 7) {
            watch.look(look(None, &[(0, i, i), (1, 2 * (i / 2), i)]));
        }
        let seen = watch.seen();
        let core = &seen.cores[0];
        assert!((core.seconds - 0.02 * (2.0 * BLOCK as f64 + 7.0)).abs() < 1e-6);
        assert!((core.used.busy - 1.0).abs() < 0.001 && core.used.any.lo <= core.used.any.hi, "{core:?}");
        assert_eq!(watch.seen().cores.len(), 0, "nothing since");
        watch.look(look(None, &[(0, 10_000_000, 0), (1, 0, 0)]));
        watch.look(look(None, &[(0, 10_000_002, 0), (1, 0, 2)]));
        let seen = watch.seen();
        assert_eq!((seen.looks, seen.cores[0].used.busy), (3, 1.0));
    }

    /// Each look takes linear time, and the windows of all cores take bounded memory.
    #[test]
    fn many_cores_are_watched() {
        const CORES: u32 = 49_152;
        let mut watch = Watch::new(Vec::new(), 0.01, Some(1.0));
        for i in 0..=100 {
            watch.look(look(None, &(0..CORES).map(|cpu| (cpu, 50 * i, 50 * i)).collect::<Vec<_>>()));
            let kept: usize = watch.cores.iter().map(|core| core.windows.len()).sum();
            assert!(kept <= MAX_WINDOWS, "{kept}");
        }
        let seen = watch.seen();
        assert_eq!(seen.cores.len(), CORES as usize);
        assert!(seen.cores.iter().all(|core| (core.used.busy - 0.5).abs() < 1e-9 && core.seconds == 100.0));
    }

    #[test]
    fn stolen_and_guests_time_are_shares() {
        let at = |busy, idle, steal, guest| StatReading {
            at_s: None,
            cpus: vec![(0, Ticks { busy, idle, steal, guest })],
        };
        let mut watch = Watch::new(vec![(vec![0], None)], 0.01, None);
        watch.look(at(0, 0, 0, 0));
        watch.look(at(50, 25, 25, 40));
        let seen = watch.seen();
        assert_eq!((seen.stolen, seen.guest, seen.counted_s), (0.25, 0.4, 1.0));
        assert!((seen.cores[0].used.busy - 0.5).abs() < 1e-9);
    }
}
