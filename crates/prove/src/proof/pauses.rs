//! Are pauses of CPUs put down to who made them, on hosts that never were?
//!
//! Every machine has ticks, soft interrupts and a host's housekeeping; one kind of trouble is
//! planted. Hosts switch guests at ticks of their own, all CPUs at once, or at any time.

use fastrand::Rng;

use super::{Rate, over};
use stats::noise::{exponential, normal};
use stats::pauses::{Answer, Found, PairAnswer, Pause, Watched, judge};

/// What is wrong with a simulated host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Quiet,
    /// Tasks of the guest take some CPUs: 2 to 40 % in slices of 0.5 to 8 ms.
    Tasks,
    /// The host runs others on some CPUs, each by itself: 2 to 40 % in slices of 1 to 8 ms.
    Preempted,
    /// Two CPUs are given one of the host's, in slices of 1–8 ms; on every other host another guest
    /// has a part of it, too.
    Shared,
    /// The host stops the guest whole for 5 to 60 ms, by a period or at any time.
    Stopped,
    /// Firmware stops all CPUs for 0.15 to 0.4 ms, up to ten times a second.
    Firmware,
    /// Soft interrupts of the guest take 1 to 10 % in pieces of 0.2 to 2 ms; the kernel counts
    /// them.
    Interrupts,
    /// As `Preempted`, under a kernel that keeps no run-queue delay.
    Untold,
}

pub const TROUBLES: [Trouble; 8] = [
    Trouble::Quiet,
    Trouble::Tasks,
    Trouble::Preempted,
    Trouble::Shared,
    Trouble::Stopped,
    Trouble::Firmware,
    Trouble::Interrupts,
    Trouble::Untold,
];

impl Trouble {
    pub fn words(self) -> &'static str {
        match self {
            Trouble::Quiet => "nothing",
            Trouble::Tasks => "tasks of the guest, 2 to 40 %",
            Trouble::Preempted => "other guests, 2 to 40 %, each CPU by itself",
            Trouble::Shared => "two CPUs on one of the host's",
            Trouble::Stopped => "the guest stopped whole, 2 to 40 %",
            Trouble::Firmware => "firmware, all CPUs",
            Trouble::Interrupts => "soft interrupts of the guest, 1 to 10 %",
            Trouble::Untold => "other guests, no run-queue delay",
        }
    }
}

/// What was said of the CPUs and pairs of many hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributed {
    /// CPUs that were judged right: withheld, whole, or unknown.
    pub right: Rate,
    /// CPUs and pairs of which something wrong was said.
    pub wrong: Rate,
    /// Pairs that take turns or stop together, and are said to.
    pub pairs: Rate,
    /// Machines of which any wrong was said.
    pub machines_wrong: Rate,
}

const MS: f64 = 1e6;
const VISITS: usize = 8;
const VISIT: f64 = 2.5e9;
/// A pass's clocks are asked again after a pause, and hosts switch back as late.
const LATE: f64 = 8e3;

/// A host's CPUs in one pass: pauses as begin, length and whether a task waits.
type Plan = Vec<Vec<(f64, f64, bool)>>;

struct Simulated {
    cpus: usize,
    hz: f64,
    tick: f64,
    /// The grid on which the host switches; 0: none.
    grid: f64,
    trouble: Trouble,
    /// Share of the time and length of a slice of the trouble.
    share: f64,
    slice: f64,
    /// CPUs that have it; of `Shared` two.
    hit: usize,
    other_guest: bool,
    period: bool,
    counts_interrupts: bool,
}

impl Simulated {
    fn draw(trouble: Trouble, rng: &mut Rng) -> Simulated {
        let between = |rng: &mut Rng, low: f64, high: f64| low * (high / low).powf(rng.f64());
        let cpus = if trouble == Trouble::Shared { rng.usize(2..=8) } else { rng.usize(1..=8) };
        let (share, slice) = match trouble {
            Trouble::Tasks => (between(rng, 0.02, 0.4), between(rng, 0.5, 8.0) * MS),
            Trouble::Stopped => (between(rng, 0.02, 0.4), between(rng, 5.0, 60.0) * MS),
            Trouble::Firmware => (0.0, between(rng, 0.15, 0.4) * MS),
            Trouble::Interrupts => (between(rng, 0.01, 0.1), between(rng, 0.2, 2.0) * MS),
            _ => (between(rng, 0.02, 0.4), between(rng, 1.0, 8.0) * MS),
        };
        Simulated {
            cpus,
            hz: *rng.choice(&[100.0, 250.0, 1000.0]).unwrap_or(&250.0),
            tick: between(rng, 4e3, 50e3),
            grid: if rng.bool() { *rng.choice(&[1.0, 4.0, 10.0]).unwrap_or(&4.0) * MS } else { 0.0 },
            trouble,
            share: if trouble == Trouble::Firmware { between(rng, 0.5, 10.0) * slice / 1e9 } else { share },
            slice,
            hit: rng.usize(1..=cpus),
            other_guest: rng.bool(),
            period: rng.bool(),
            counts_interrupts: rng.bool(),
        }
    }

    fn is_hit(&self, cpu: usize) -> bool {
        match self.trouble {
            Trouble::Quiet => false,
            Trouble::Shared => cpu < 2,
            Trouble::Stopped | Trouble::Firmware => true,
            _ => cpu < self.hit,
        }
    }

    /// The moment at which the host acts; tasks and interrupts of the guest keep no grid.
    fn switched(&self, at: f64) -> f64 {
        let by_host = ![Trouble::Tasks, Trouble::Interrupts].contains(&self.trouble);
        if by_host && self.grid > 0.0 { (at / self.grid).ceil() * self.grid } else { at }
    }

    /// Slices that come by chance and take such a share.
    fn by_chance(&self, rng: &mut Rng) -> Vec<[f64; 2]> {
        let mut at = 0.0;
        let mut all = Vec::new();
        while at < VISIT {
            at += self.slice * (1.0 - self.share) / self.share * exponential(rng);
            let begin = self.switched(at);
            let end = self.switched(begin + self.slice * (0.4 * normal(rng)).exp());
            all.push([begin, end]);
            at = end;
        }
        all
    }

    /// Who has the one CPU of two alternately: the other's time is a pause.
    fn in_turn(&self, rng: &mut Rng) -> [Vec<[f64; 2]>; 2] {
        let mut at = 0.0;
        let mut pauses = [Vec::new(), Vec::new()];
        let mut stopped = [None, Some(0.0)];
        let mut running = 0;
        while at < VISIT {
            at = self.switched(at + self.slice * (0.3 * normal(rng)).exp());
            let guests = if self.other_guest { 3 } else { 2 };
            let next = (running + 1) % guests;
            if running < 2 {
                stopped[running] = Some(at);
            }
            if next < 2
                && let Some(since) = stopped[next].take()
            {
                pauses[next].push([since, at + LATE * rng.f64()]);
            }
            running = next;
        }
        pauses
    }

    fn whole_stops(&self, rng: &mut Rng) -> Vec<[f64; 2]> {
        let every = self.slice / self.share;
        let mut at = every * rng.f64();
        let mut all = Vec::new();
        while at < VISIT {
            all.push([at, at + self.slice * (0.1 * normal(rng)).exp()]);
            at += if self.period { every } else { self.slice + (every - self.slice) * exponential(rng) };
        }
        all
    }

    fn visit(&self, rng: &mut Rng) -> Vec<Watched> {
        let mut plan: Plan = vec![Vec::new(); self.cpus];
        let stops = match self.trouble {
            Trouble::Stopped | Trouble::Firmware => self.whole_stops(rng),
            _ => Vec::new(),
        };
        let turns = (self.trouble == Trouble::Shared).then(|| self.in_turn(rng));
        for (cpu, own) in plan.iter_mut().enumerate() {
            let late = |rng: &mut Rng| LATE * rng.f64();
            let mut add = |pauses: &[[f64; 2]], waits: bool, rng: &mut Rng| {
                own.extend(pauses.iter().map(|[begin, end]| (begin + late(rng), end - begin, waits)));
            };
            add(&stops, false, rng);
            match (&turns, self.trouble) {
                (Some(turns), _) if cpu < 2 => add(&turns[cpu], false, rng),
                (_, Trouble::Tasks) if self.is_hit(cpu) => add(&self.by_chance(rng), true, rng),
                (_, Trouble::Preempted | Trouble::Interrupts | Trouble::Untold) if self.is_hit(cpu) => {
                    add(&self.by_chance(rng), false, rng);
                }
                _ => {}
            }
            // Ticks, soft interrupts with a long tail, and 0.02 % of a host's own.
            let ticks = (VISIT * self.hz / 1e9) as usize;
            let mut short: Vec<[f64; 2]> = (0..ticks)
                .map(|at| [at as f64 * 1e9 / self.hz, self.tick * (0.3 * normal(rng)).exp()])
                .collect();
            short.extend((0..10).map(|_| [VISIT * rng.f64(), 30e3 * (0.8 * normal(rng)).exp()]));
            if rng.f64() < 0.5 {
                short.push([VISIT * rng.f64(), MS * exponential(rng)]);
            }
            add(&short.iter().map(|[at, length]| [*at, at + length]).collect::<Vec<_>>(), false, rng);
        }
        plan.into_iter().enumerate().map(|(cpu, own)| self.watched(cpu, own, rng)).collect()
    }

    /// What a clock on this CPU sees: what overlaps is one gap.
    fn watched(&self, cpu: usize, mut plan: Vec<(f64, f64, bool)>, rng: &mut Rng) -> Watched {
        plan.retain(|(begin, _, _)| *begin < VISIT);
        plan.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut gaps: Vec<(f64, f64, f64)> = Vec::new();
        for (begin, length, waits) in plan {
            let end = (begin + length).min(VISIT);
            let waited = if waits { end - begin } else { 0.0 };
            match gaps.last_mut().filter(|last| last.1 >= begin) {
                Some(last) => {
                    last.1 = last.1.max(end);
                    last.2 += waited;
                }
                None => gaps.push((begin, end, waited)),
            }
        }
        let lengths: Vec<f64> = gaps.iter().map(|(begin, end, _)| end - begin).collect();
        let told = self.trouble != Trouble::Untold;
        let kept = gaps.iter().filter(|(begin, end, _)| end - begin >= 20e3);
        let pause = |(begin, end, waited): &(f64, f64, f64)| Pause {
            begin: *begin,
            length: end - begin,
            waited: told.then_some((waited - LATE * rng.f64()).max(0.0)),
        };
        let pauses = kept.map(pause).collect();
        let interrupted = self.trouble == Trouble::Interrupts && self.is_hit(cpu);
        let taken: f64 = lengths.iter().filter(|length| **length >= 100e3).sum();
        let interrupts = if interrupted { taken / VISIT } else { 0.0 };
        // Counted by the ticks that hit one.
        let ticks = VISIT * self.hz / 1e9;
        let counted = interrupts + normal(rng) * (interrupts / ticks).sqrt();
        Watched {
            cpu: cpu as u32,
            ns: VISIT,
            pauses,
            usual: stats::order::median(&lengths).unwrap_or(0.0),
            stolen: None,
            throttled: None,
            interrupts: (self.trouble == Trouble::Interrupts || self.counts_interrupts)
                .then_some(counted.max(0.0)),
        }
    }

    fn is_withheld(&self, cpu: usize) -> bool {
        let by_host = [Trouble::Preempted, Trouble::Shared, Trouble::Stopped, Trouble::Untold];
        by_host.contains(&self.trouble) && self.is_hit(cpu)
    }

    /// Of a pair, what must be said if anything is.
    fn pair(&self, cpus: [u32; 2]) -> PairAnswer {
        match self.trouble {
            Trouble::Shared if cpus == [0, 1] => PairAnswer::TakeTurns,
            Trouble::Stopped | Trouble::Firmware => PairAnswer::StopTogether,
            _ => PairAnswer::Apart,
        }
    }

    fn count(&self, found: &Found, told: &mut Attributed) {
        let mut any_wrong = false;
        for (cpu, own) in found.cpus.iter().enumerate() {
            let withheld = self.is_withheld(cpu);
            let (right, wrong) = match own.answer {
                Answer::Withheld => (withheld, !withheld),
                Answer::Whole => (!withheld, withheld),
                Answer::CannotTell(_) => (self.trouble == Trouble::Untold && withheld, false),
            };
            // What the kernel counts in interrupts is said to be open.
            let open = self.trouble == Trouble::Interrupts && self.is_hit(cpu);
            told.right.count(right || open && !wrong);
            told.wrong.count(wrong);
            any_wrong |= wrong;
        }
        for pair in &found.pairs {
            let truth = self.pair(pair.cpus);
            let claims = [PairAnswer::TakeTurns, PairAnswer::StopTogether].contains(&pair.answer);
            let wrong = claims && pair.answer != truth;
            told.wrong.count(wrong);
            any_wrong |= wrong;
            if [Trouble::Shared, Trouble::Stopped].contains(&self.trouble) && truth != PairAnswer::Apart {
                told.pairs.count(pair.answer == truth);
            }
        }
        told.machines_wrong.count(any_wrong);
    }
}

/// Judges this many hosts with this trouble.
pub fn attributed(trouble: Trouble, machines: usize, seed: u64) -> Attributed {
    over(machines, seed, |_, rng, told: &mut Attributed| {
        let machine = Simulated::draw(trouble, rng);
        let visits: Vec<Vec<Watched>> = (0..VISITS).map(|_| machine.visit(rng)).collect();
        machine.count(&judge(&visits), told);
    })
}

#[cfg(test)]
mod tests {
    use super::super::{PAUSES_RIGHT_LEAST, PAUSES_WRONG_MOST};
    use super::*;

    #[test]
    fn pauses_are_put_down_to_who_made_them() {
        for trouble in TROUBLES {
            let told = attributed(trouble, 60, 7);
            assert!(told.machines_wrong.share() <= PAUSES_WRONG_MOST, "{trouble:?}: {told:?}");
            assert!(told.right.share() >= PAUSES_RIGHT_LEAST, "{trouble:?}: {told:?}");
            assert!(told.pairs.of == 0 || told.pairs.share() >= PAUSES_RIGHT_LEAST, "{trouble:?}: {told:?}");
        }
    }
}
