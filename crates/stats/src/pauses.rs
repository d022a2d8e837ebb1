//! Who keeps CPUs from running: tasks of this system or the host; and which CPUs stop alternately,
//! or together.
//!
//! Spinning clocks on all CPUs note their pauses on one time line. A pause in which the clock's
//! process waited for its CPU is a task's. A long one without waiting is no tick: in a guest the
//! host ran someone else. CPUs that share one of the host's pause when the other goes on; where
//! that is by chance, as on hosts that switch at ticks of their own, as many begin with the other.

use super::order::{Interval, mean, variance};
use super::tails::{sign_test, t_quantile};

/// A time in which a CPU did not run what was to run there, ns from the start of the visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    pub begin: f64,
    pub length: f64,
    /// Of it, the process waited for its CPU; `None` where the kernel does not report it.
    pub waited: Option<f64>,
}

/// One CPU in one visit.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    pub cpu: u32,
    pub ns: f64,
    /// In order of their begin.
    pub pauses: Vec<Pause>,
    /// The median of all gaps, short ones among them: a tick's work; 0 where there were none.
    pub usual: f64,
    /// Shares of the time, 0 to 1, as the kernel counts them; `None` where it does not.
    pub stolen: Option<f64>,
    pub interrupts: Option<f64>,
    /// Time in which a CPU quota of this system held CPUs back, as a share of the visit.
    pub throttled: Option<f64>,
}

/// What became of a CPU's time.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTime {
    pub cpu: u32,
    /// Seconds watched.
    pub seconds: f64,
    /// Share of the time without a task in its place and in pauses longer than a tick's, and the 95
    /// % interval.
    pub withheld: f64,
    pub interval: Interval,
    /// How many such pauses there were, and the longest, ns.
    pub count: usize,
    pub longest: f64,
    /// Share of the time that other tasks of this system took.
    pub by_tasks: f64,
    pub stolen: Option<f64>,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Less is withheld than [`FLOOR`].
    Whole,
    Withheld,
    CannotTell(Doubt),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Fewer visits than [`MIN_VISITS`].
    FewVisits,
    /// The kernel keeps neither run-queue delay nor switches.
    NoQueue,
    /// The interval reaches across [`FLOOR`].
    AtFloor,
    /// The kernel counts as much time in interrupts.
    Interrupts,
    /// A quota of this system's own control groups held its tasks back as long: in some kernels
    /// what is throttled waits in no queue.
    Throttled,
}

/// How two CPUs stop.
#[derive(Clone, Debug, PartialEq)]
pub struct PairTime {
    pub cpus: [u32; 2],
    /// Share of the time in which both were paused, and what independent pauses of these shares
    /// would give.
    pub both: f64,
    pub chance: f64,
    /// Share of the paused time of the one that pauses less, in pauses that begin when the other's
    /// end or end when they begin.
    pub turns: f64,
    /// And of the one that pauses more, in pauses that begin and end with the other's.
    pub together: f64,
    pub answer: PairAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairAnswer {
    /// One runs when the other stops: both are given one CPU of the host.
    TakeTurns,
    StopTogether,
    Apart,
    CannotTell,
}

/// Pauses that all CPUs have at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stops {
    pub count: usize,
    /// Share of the time.
    pub share: f64,
    pub longest: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub cpus: Vec<CpuTime>,
    pub pairs: Vec<PairTime>,
    /// `None` of one CPU, and where there were none.
    pub stops: Option<Stops>,
}

/// Less than this is withheld from a CPU that is called whole: a host's own housekeeping.
pub const FLOOR: f64 = 0.005;
/// Visits that an interval needs.
pub const MIN_VISITS: usize = 4;
/// A pause is a task's where the process waited at least this part of it.
const WAITED: f64 = 0.5;
/// A pause is long above this many times a usual gap, and within these bounds, ns: a tick of a slow
/// guest takes as long, and no tick takes longer.
const USUAL_TIMES: f64 = 5.0;
const MIN_LONG: f64 = 100e3;
const MAX_LONG: f64 = 1e6;
/// Two events further apart than this are not one, ns: what it takes to switch vCPUs and to deliver
/// what came meanwhile. Or than this part of the pause, up to a limit: the ticks of a slow guest.
const ONE_EVENT: f64 = 60e3;
const ONE_EVENT_PART: f64 = 0.05;
const MAX_ONE_EVENT: f64 = 300e3;
/// Pauses that each of a pair must have for anything to be said about it.
const MIN_PAUSES: usize = 8;
/// Share of the paused time that must be in turns, or together. Time: ticks of a slow guest that
/// pass for pauses may outnumber the host's.
const MIN_TURNS: f64 = 0.4;
const MIN_TOGETHER: f64 = 0.5;
/// The overlap of a pair that takes turns against chance, and of one that stops together, at most
/// and at least. Where someone else has a third of the CPU, too, both pause while he runs: 0.75.
const TURNS_OVERLAP: f64 = 0.85;
const TOGETHER_OVERLAP: f64 = 2.0;
/// Or this part of the time of the one that pauses less, where both pause most of the time.
const TOGETHER_PART: f64 = 0.8;
/// Chance that handovers outnumber joint begins and ends this much without a cause.
const MAX_P: f64 = 1e-4;
/// Pairs looked at: those of the 64 CPUs with the most pauses.
const MAX_CPUS: usize = 64;
/// A slice of a host's scheduler, ns, in which limits are stated.
pub const SLICE: f64 = 4e6;
const CONFIDENCE: f64 = 0.95;

/// The share of time in pauses of [`SLICE`] of which one would have been met in this many seconds
/// with 95 %.
pub fn least_seen(seconds: f64) -> f64 {
    // No event in a time is as likely as 5 % at a rate of three in it.
    if seconds > 0.0 { (3.0 * SLICE / (seconds * 1e9)).min(1.0) } else { 1.0 }
}

/// Judges visits, each with all CPUs that were watched at once.
pub fn judge(visits: &[Vec<Watched>]) -> Found {
    let mut numbers: Vec<u32> = visits.iter().flatten().map(|watched| watched.cpu).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let held: Vec<Vec<Held>> = visits.iter().map(|visit| visit.iter().map(Held::of).collect()).collect();
    let cpus: Vec<CpuTime> = numbers.iter().map(|cpu| cpu_time(*cpu, visits, &held)).collect();
    let mut busiest: Vec<&CpuTime> = cpus.iter().filter(|cpu| cpu.count > 0).collect();
    busiest.sort_by(|one, other| other.withheld.total_cmp(&one.withheld));
    let mut paired: Vec<u32> = busiest.iter().take(MAX_CPUS).map(|cpu| cpu.cpu).collect();
    paired.sort_unstable();
    let mut pairs = Vec::new();
    for (at, one) in paired.iter().enumerate() {
        pairs.extend(paired[at + 1..].iter().map(|other| pair_time([*one, *other], &held)));
    }
    Found { stops: stops(numbers.len(), &held), cpus, pairs }
}

/// The long pauses of a CPU in a visit in which no task waited.
struct Held {
    cpu: u32,
    ns: f64,
    pauses: Vec<[f64; 2]>,
}

impl Held {
    fn of(watched: &Watched) -> Held {
        let long = (USUAL_TIMES * watched.usual).clamp(MIN_LONG, MAX_LONG);
        let alone =
            |pause: &&Pause| pause.length - pause.waited.unwrap_or(0.0) >= long && !is_of_a_task(pause);
        let own = watched.pauses.iter().filter(alone);
        let pauses = own.map(|pause| [pause.begin, pause.begin + pause.length]).collect();
        Held { cpu: watched.cpu, ns: watched.ns, pauses }
    }

    fn time(&self) -> f64 {
        self.pauses.iter().map(|[begin, end]| end - begin).sum()
    }
}

fn is_of_a_task(pause: &Pause) -> bool {
    pause.waited.is_some_and(|waited| waited >= WAITED * pause.length)
}

fn cpu_time(cpu: u32, visits: &[Vec<Watched>], held: &[Vec<Held>]) -> CpuTime {
    let watched: Vec<&Watched> = visits.iter().flatten().filter(|watched| watched.cpu == cpu).collect();
    let own: Vec<&Held> = held.iter().flatten().filter(|held| held.cpu == cpu && held.ns > 0.0).collect();
    let ns: f64 = own.iter().map(|held| held.ns).sum();
    let lengths: Vec<f64> =
        own.iter().flat_map(|held| &held.pauses).map(|[begin, end]| end - begin).collect();
    let of_tasks = watched.iter().flat_map(|watched| &watched.pauses).filter(|pause| is_of_a_task(pause));
    let by_tasks: f64 = of_tasks.map(|pause| pause.length).sum();
    // The sum of nothing is -0.
    let share = |time: f64| if ns > 0.0 { time / ns + 0.0 } else { 0.0 };
    let withheld = share(lengths.iter().sum());
    let shares: Vec<f64> = own.iter().map(|held| held.time() / held.ns).collect();
    // Pauses that come by chance, and visits that differ for another reason: the wider of both.
    let by_chance = share(lengths.iter().map(|length| length * length).sum::<f64>().sqrt());
    let visits_differ = variance(&shares).map_or(0.0, |variance| (variance / shares.len() as f64).sqrt());
    let t = t_quantile(CONFIDENCE, shares.len() as f64 - 1.0).unwrap_or(f64::INFINITY);
    let half = (1.96 * by_chance).max(t * visits_differ);
    let seconds = ns / 1e9;
    let unseen = if lengths.is_empty() { least_seen(seconds) } else { 0.0 };
    let interval = Interval { low: (withheld - half).max(0.0), high: (withheld + half).max(unseen).min(1.0) };
    let average = |of: fn(&Watched) -> Option<f64>| {
        let known: Option<Vec<f64>> = watched.iter().map(|watched| of(watched)).collect();
        mean(&known?)
    };
    let otherwise = [
        (Doubt::Interrupts, average(|watched| watched.interrupts)),
        (Doubt::Throttled, average(|watched| watched.throttled)),
    ];
    let answer = answer(&watched, withheld, interval, otherwise);
    CpuTime {
        cpu,
        seconds,
        withheld,
        interval,
        count: lengths.len(),
        longest: lengths.into_iter().fold(0.0, f64::max),
        by_tasks: share(by_tasks),
        stolen: average(|watched| watched.stolen),
        answer,
    }
}

/// `otherwise`: what else could have taken the time, and which share of it.
fn answer(
    watched: &[&Watched],
    withheld: f64,
    interval: Interval,
    otherwise: [(Doubt, Option<f64>); 2],
) -> Answer {
    let long = |pause: &Pause| pause.length >= MIN_LONG;
    let unknown =
        watched.iter().flat_map(|watched| &watched.pauses).any(|pause| long(pause) && pause.waited.is_none());
    match interval {
        _ if watched.len() < MIN_VISITS => Answer::CannotTell(Doubt::FewVisits),
        Interval { high, .. } if high < FLOOR => Answer::Whole,
        _ if unknown => Answer::CannotTell(Doubt::NoQueue),
        Interval { low, .. } if low > FLOOR => {
            // Where ticks count interrupts, a host's pauses make some of them late.
            let explains =
                |share: f64| share >= withheld / 2.0 || (withheld - share) * (low / withheld) <= FLOOR;
            let mut causes = otherwise.into_iter();
            let cause = causes.find(|(_, share)| explains(share.unwrap_or(0.0)));
            cause.map_or(Answer::Withheld, |(doubt, _)| Answer::CannotTell(doubt))
        }
        _ => Answer::CannotTell(Doubt::AtFloor),
    }
}

/// How far from a pause's begin or end another event still is the same, ns.
fn one_event([begin, end]: &[f64; 2]) -> f64 {
    (ONE_EVENT_PART * (end - begin)).clamp(ONE_EVENT, MAX_ONE_EVENT)
}

/// How many pauses, and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    count: usize,
    time: f64,
}

impl Met {
    fn add<'a>(&mut self, pauses: impl Iterator<Item = &'a [f64; 2]>) {
        for [begin, end] in pauses {
            self.count += 1;
            self.time += end - begin;
        }
    }
}

/// Whether one of the others' moments is near a pause's begin (0) or end (1).
fn is_near(pause: &[f64; 2], end: usize, others: &[f64]) -> bool {
    let (moment, far) = (pause[end], one_event(pause));
    let next = others.partition_point(|other| *other < moment - far);
    others.get(next).is_some_and(|other| *other <= moment + far)
}

fn ends(pauses: &[[f64; 2]], end: usize) -> Vec<f64> {
    pauses.iter().map(|pause| pause[end]).collect()
}

/// Whether a pause has one of the others' that begins and ends with it.
fn has_equal(pause: &[f64; 2], others: &[[f64; 2]]) -> bool {
    let far = one_event(pause);
    let from = others.partition_point(|other| other[0] < pause[0] - far);
    let near = others[from..].iter().take_while(|other| other[0] <= pause[0] + far);
    near.into_iter().any(|other| (other[1] - pause[1]).abs() <= far)
}

/// Time in which both pause.
fn overlap(one: &[[f64; 2]], other: &[[f64; 2]]) -> f64 {
    let (mut at, mut time) = (0, 0.0);
    for [begin, end] in one {
        while other.get(at).is_some_and(|other| other[1] <= *begin) {
            at += 1;
        }
        for [from, to] in other[at..].iter().take_while(|other| other[0] < *end) {
            time += to.min(*end) - from.max(*begin);
        }
    }
    time
}

fn pair_time(cpus: [u32; 2], held: &[Vec<Held>]) -> PairTime {
    let (mut ns, mut both, mut chance) = (0.0, 0.0, 0.0);
    let (mut counts, mut times, mut of) = ([0, 0], [0.0, 0.0], 0.0);
    let [mut handed, mut joint, mut equal] = [Met::default(); 3];
    for visit in held {
        let own = |cpu: u32| visit.iter().find(|held| held.cpu == cpu && held.ns > 0.0);
        let (Some(first), Some(second)) = (own(cpus[0]), own(cpus[1])) else { continue };
        let length = first.ns.min(second.ns);
        ns += length;
        both += overlap(&first.pauses, &second.pauses);
        chance += first.time() * second.time() / length;
        counts = [counts[0] + first.pauses.len(), counts[1] + second.pauses.len()];
        times = [times[0] + first.time(), times[1] + second.time()];
        // Of the one that pauses less, since the other may pause for more reasons than both.
        let [less, more] = if first.time() <= second.time() { [first, second] } else { [second, first] };
        of += less.time();
        for end in [0, 1] {
            let [same, opposite] = [end, 1 - end].map(|end| ends(&more.pauses, end));
            handed.add(less.pauses.iter().filter(|pause| is_near(pause, end, &opposite)));
            joint.add(less.pauses.iter().filter(|pause| is_near(pause, end, &same)));
        }
        equal.add(less.pauses.iter().filter(|pause| has_equal(pause, &more.pauses)));
    }
    let fewer = counts[0].min(counts[1]);
    let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    let (turns, together) = (share(handed.time, 2.0 * of), share(equal.time, times[0].max(times[1])));
    let outnumber = |more: Met, less: Met| {
        more.count > less.count && sign_test(more.count, more.count + less.count) < MAX_P
    };
    let joined = (TOGETHER_OVERLAP * chance).min(TOGETHER_PART * times[0].min(times[1]));
    let answer = if fewer < MIN_PAUSES {
        PairAnswer::CannotTell
    } else if turns >= MIN_TURNS && both < TURNS_OVERLAP * chance && outnumber(handed, joint) {
        PairAnswer::TakeTurns
    } else if together >= MIN_TOGETHER && both > joined && outnumber(joint, handed) {
        PairAnswer::StopTogether
    } else {
        PairAnswer::Apart
    };
    PairTime { cpus, both: share(both, ns), chance: share(chance, ns), turns, together, answer }
}

/// Pauses of the first CPU that all others share, begin and end.
fn stops(cpus: usize, held: &[Vec<Held>]) -> Option<Stops> {
    if cpus < 2 {
        return None;
    }
    let (mut ns, mut found) = (0.0, Stops { count: 0, share: 0.0, longest: 0.0 });
    for visit in held {
        let Some((first, others)) = visit.split_first().filter(|(_, others)| others.len() + 1 == cpus) else {
            continue;
        };
        ns += first.ns;
        for pause in &first.pauses {
            if others.iter().all(|other| has_equal(pause, &other.pauses)) {
                let length = pause[1] - pause[0];
                found.count += 1;
                found.share += length;
                found.longest = found.longest.max(length);
            }
        }
    }
    found.share /= if ns > 0.0 { ns } else { 1.0 };
    (found.count > 0).then_some(found)
}

#[cfg(test)]
mod tests;
