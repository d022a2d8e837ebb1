//! Who keeps CPUs from running: tasks of this system or the host; and which CPUs stop in turn, or
//! together.
//!
//! Spinning clocks on all CPUs note their pauses on one time line. A pause in which the clock's
//! process waited for its CPU is a task's. A long one without waiting is no tick: in a guest the
//! host ran somebody else. CPUs that share one of the host's pause when the other goes on; where
//! that is by chance, as on hosts that switch at ticks of their own, as many begin with the other.

use super::order::{Interval, mean, variance};
use super::tails::{sign_test, t_quantile};

/// A time in which a CPU did not run what was to run there, ns from the begin of the visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    pub begin: f64,
    pub length: f64,
    /// Of it, the process waited for its CPU; `None` where the kernel does not tell.
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
    /// Fewer visits than [`LEAST_VISITS`].
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
    /// Of the pauses of the one that pauses less, those that begin when the other's end or end when
    /// it begins, and those that begin and end with one of the other's; shares.
    pub turns: f64,
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
pub const LEAST_VISITS: usize = 4;
/// A pause is a task's where the process waited at least this part of it.
const WAITED: f64 = 0.5;
/// A pause is long above so many times a usual gap, and within these bounds, ns: a tick of a slow
/// guest takes as long, and no tick takes longer.
const USUAL_TIMES: f64 = 5.0;
const LONG_LEAST: f64 = 100e3;
const LONG_MOST: f64 = 1e6;
/// Two events further apart than this are not one, ns: what it takes to switch vCPUs and to deliver
/// what came meanwhile.
const ONE_EVENT: f64 = 60e3;
/// Pauses that each of a pair must have for anything to be said of it.
const LEAST_PAUSES: usize = 8;
/// Share of the pauses that must take turns, or stop together.
const TURNS_LEAST: f64 = 0.4;
const TOGETHER_LEAST: f64 = 0.5;
/// The overlap of a pair that takes turns against chance, and of one that stops together, at most
/// and at least. Where somebody else has a third of the CPU, too, both pause while he runs: 0.75.
const TURNS_OVERLAP: f64 = 0.85;
const TOGETHER_OVERLAP: f64 = 2.0;
/// Or this part of the time of the one that pauses less, where both pause most of the time.
const TOGETHER_PART: f64 = 0.8;
/// Chance that handovers outnumber joint begins and ends so much without a cause.
const P_MOST: f64 = 1e-4;
/// Pairs looked at: those of the 64 CPUs with the most pauses.
const CPUS_MOST: usize = 64;
/// A slice of a host's scheduler, ns, in which limits are told.
pub const SLICE: f64 = 4e6;
const CONFIDENCE: f64 = 0.95;

/// The share of time in pauses of [`SLICE`] of which one would have been met in so many seconds
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
    busiest.sort_by_key(|cpu| std::cmp::Reverse(cpu.count));
    let mut paired: Vec<u32> = busiest.iter().take(CPUS_MOST).map(|cpu| cpu.cpu).collect();
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
        let long = (USUAL_TIMES * watched.usual).clamp(LONG_LEAST, LONG_MOST);
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
    let long = |pause: &Pause| pause.length >= LONG_LEAST;
    let unknown =
        watched.iter().flat_map(|watched| &watched.pauses).any(|pause| long(pause) && pause.waited.is_none());
    match interval {
        _ if watched.len() < LEAST_VISITS => Answer::CannotTell(Doubt::FewVisits),
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

/// How many of these moments have one of the others near.
fn near(moments: impl Iterator<Item = f64>, others: &[f64]) -> usize {
    let is_near = |moment: f64| {
        let next = others.partition_point(|other| *other < moment - ONE_EVENT);
        others.get(next).is_some_and(|other| *other <= moment + ONE_EVENT)
    };
    moments.filter(|moment| is_near(*moment)).count()
}

fn ends(pauses: &[[f64; 2]], end: usize) -> Vec<f64> {
    pauses.iter().map(|pause| pause[end]).collect()
}

/// Whether a pause has one of the others' that begins and ends with it.
fn has_equal(pause: &[f64; 2], others: &[[f64; 2]]) -> bool {
    let from = others.partition_point(|other| other[0] < pause[0] - ONE_EVENT);
    let near = others[from..].iter().take_while(|other| other[0] <= pause[0] + ONE_EVENT);
    near.into_iter().any(|other| (other[1] - pause[1]).abs() <= ONE_EVENT)
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
    let (mut counts, mut times) = ([0, 0], [0.0, 0.0]);
    let (mut handed, mut joint, mut equal) = (0, 0, 0);
    for visit in held {
        let own = |cpu: u32| visit.iter().find(|held| held.cpu == cpu && held.ns > 0.0);
        let (Some(first), Some(second)) = (own(cpus[0]), own(cpus[1])) else { continue };
        let length = first.ns.min(second.ns);
        ns += length;
        both += overlap(&first.pauses, &second.pauses);
        chance += first.time() * second.time() / length;
        counts = [counts[0] + first.pauses.len(), counts[1] + second.pauses.len()];
        times = [times[0] + first.time(), times[1] + second.time()];
        // Of the one with fewer pauses, since each of the other's can be met once.
        let [few, many] = if first.pauses.len() <= second.pauses.len() {
            [&first.pauses, &second.pauses]
        } else {
            [&second.pauses, &first.pauses]
        };
        for end in [0, 1] {
            handed += near(few.iter().map(|pause| pause[end]), &ends(many, 1 - end));
            joint += near(few.iter().map(|pause| pause[end]), &ends(many, end));
        }
        equal += few.iter().filter(|pause| has_equal(pause, many)).count();
    }
    let fewer = counts[0].min(counts[1]);
    let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    let (turns, together) = (share(handed as f64, 2.0 * fewer as f64), share(equal as f64, fewer as f64));
    let outnumber = |more: usize, less: usize| more > less && sign_test(more, more + less) < P_MOST;
    let joined = (TOGETHER_OVERLAP * chance).min(TOGETHER_PART * times[0].min(times[1]));
    let answer = if fewer < LEAST_PAUSES {
        PairAnswer::CannotTell
    } else if turns >= TURNS_LEAST && both < TURNS_OVERLAP * chance && outnumber(handed, joint) {
        PairAnswer::TakeTurns
    } else if together >= TOGETHER_LEAST && both > joined && outnumber(joint, handed) {
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
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;

    fn pause(begin: f64, length: f64, waited: Option<f64>) -> Pause {
        Pause { begin, length, waited }
    }

    fn watched(cpu: u32, pauses: Vec<Pause>) -> Watched {
        Watched { cpu, ns: 2.0 * SECOND, pauses, usual: 20e3, interrupts: Some(0.0), ..Watched::default() }
    }

    /// Six visits in which a CPU pauses every 20 ms for 4 ms, from this moment on.
    fn every(cpu: u32, from: f64, waited: Option<f64>) -> Watched {
        let begins = (0..100).map(|at| from + 20e6 * f64::from(at));
        watched(cpu, begins.map(|begin| pause(begin, 4e6, waited)).collect())
    }

    fn six(visit: &[Watched]) -> Found {
        judge(&vec![visit.to_vec(); 6])
    }

    #[test]
    fn tasks_ticks_and_the_host() {
        let host = six(&[every(0, 1e6, Some(0.0))]);
        assert_eq!(host.cpus[0].answer, Answer::Withheld);
        assert!((host.cpus[0].withheld - 0.2).abs() < 1e-9 && host.cpus[0].count == 600);
        let task = six(&[every(0, 1e6, Some(3.9e6))]);
        assert_eq!((&task.cpus[0].answer, task.cpus[0].count), (&Answer::Whole, 0));
        assert!((task.cpus[0].by_tasks - 0.2).abs() < 1e-9);
        let ticks = (0..500).map(|at| pause(4e6 * f64::from(at), 60e3, Some(0.0))).collect();
        assert_eq!(six(&[watched(0, ticks)]).cpus[0].answer, Answer::Whole);
        let unknown = six(&[every(0, 1e6, None)]);
        assert_eq!(unknown.cpus[0].answer, Answer::CannotTell(Doubt::NoQueue));
        let interrupts = Watched { interrupts: Some(0.19), ..every(0, 1e6, Some(0.0)) };
        assert_eq!(six(&[interrupts]).cpus[0].answer, Answer::CannotTell(Doubt::Interrupts));
        let throttled = Watched { throttled: Some(0.2), ..every(0, 1e6, Some(0.0)) };
        assert_eq!(six(&[throttled]).cpus[0].answer, Answer::CannotTell(Doubt::Throttled));
        let few = judge(&[vec![every(0, 1e6, Some(0.0))]]);
        assert_eq!(few.cpus[0].answer, Answer::CannotTell(Doubt::FewVisits));
    }

    #[test]
    fn slow_ticks_are_ticks() {
        let ticks: Vec<Pause> = (0..500).map(|at| pause(4e6 * f64::from(at), 300e3, Some(0.0))).collect();
        let slow = Watched { usual: 300e3, ..watched(0, ticks.clone()) };
        assert_eq!(six(&[slow]).cpus[0].answer, Answer::Whole);
        assert_eq!(six(&[watched(0, ticks)]).cpus[0].answer, Answer::Withheld);
    }

    #[test]
    fn nothing_seen_is_a_limit_and_not_nothing() {
        let found = six(&[watched(0, Vec::new())]);
        assert_eq!(found.cpus[0].answer, Answer::Whole);
        assert!((found.cpus[0].interval.high - 0.001).abs() < 1e-12, "{:?}", found.cpus[0]);
        let short = Watched { ns: 0.2 * SECOND, ..watched(0, Vec::new()) };
        assert_eq!(six(&[short]).cpus[0].answer, Answer::CannotTell(Doubt::AtFloor));
        assert_eq!(judge(&[]), Found::default());
    }

    #[test]
    fn in_turn_together_and_apart() {
        // Each runs while the other stops, 10 ms each.
        let half = |cpu: u32, from: f64| {
            let begins = (0..99).map(|at| from + 20e6 * f64::from(at));
            watched(cpu, begins.map(|begin| pause(begin, 10e6 - 5e3, Some(0.0))).collect())
        };
        let turns = six(&[half(0, 1e6), half(1, 11e6)]);
        assert_eq!(turns.pairs[0].answer, PairAnswer::TakeTurns);
        assert!(turns.pairs[0].both < 0.01 && turns.pairs[0].chance > 0.2 && turns.stops.is_none());
        let together =
            six(&[every(0, 1e6, Some(0.0)), every(1, 1.02e6, Some(0.0)), every(2, 1.01e6, Some(0.0))]);
        assert!(together.pairs.iter().all(|pair| pair.answer == PairAnswer::StopTogether));
        assert_eq!(together.stops.map(|stops| stops.count), Some(600));
        // A quota that leaves two fifths.
        let most = |cpu: u32| {
            let begins = (0..99).map(|at| 1e6 + 20e6 * f64::from(at));
            watched(cpu, begins.map(|begin| pause(begin, 12e6, Some(0.0))).collect())
        };
        assert_eq!(six(&[most(0), most(1)]).pairs[0].answer, PairAnswer::StopTogether);
        let apart = six(&[every(0, 1e6, Some(0.0)), every(1, 9e6, Some(0.0))]);
        assert_eq!(apart.pairs[0].answer, PairAnswer::Apart);
        let one = pause(1e6, 4e6, Some(0.0));
        let seldom = six(&[watched(0, vec![one]), watched(1, vec![one])]);
        assert_eq!(seldom.pairs[0].answer, PairAnswer::CannotTell);
        assert_eq!(seldom.stops.map(|stops| stops.count), Some(6));
    }
}
