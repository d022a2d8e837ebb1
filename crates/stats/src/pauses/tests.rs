//! CPUs whose pauses are known: tasks, ticks, a host; pairs alternately, together and apart.

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
    let together = six(&[every(0, 1e6, Some(0.0)), every(1, 1.02e6, Some(0.0)), every(2, 1.01e6, Some(0.0))]);
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
    // One pause of 4 ms in each visit of 2 s.
    assert_eq!(seldom.stops, Some(Stops { count: 6, share: 0.002, longest: 4e6 }));
}

/// Ticks of an emulated guest last 0.2 ms, and a CPU that goes on does its own first.
#[test]
fn slow_ticks_hide_no_pair() {
    let ticks = || (0..500).map(|at| pause(4e6 * f64::from(at) + 0.5e6, 200e3, Some(0.0)));
    let with_ticks = |cpu: u32, from: f64, length: f64, late: f64| {
        let begins = (0..99).map(|at| from + 20e6 * f64::from(at));
        let mut all: Vec<Pause> = begins.map(|begin| pause(begin, length + late, Some(0.0))).collect();
        let inside = |tick: &Pause| {
            all.iter().any(|own| tick.begin < own.begin + own.length && own.begin < tick.begin + tick.length)
        };
        let own: Vec<Pause> = ticks().filter(|tick| !inside(tick)).collect();
        all.extend(own);
        all.sort_by(|one, other| one.begin.total_cmp(&other.begin));
        watched(cpu, all)
    };
    let turns = six(&[with_ticks(0, 1e6, 10e6, 150e3), with_ticks(1, 11e6, 10e6, 200e3)]);
    assert_eq!(turns.pairs[0].answer, PairAnswer::TakeTurns, "{:?}", turns.pairs);
    let together = six(&[with_ticks(0, 1e6, 8e6, 50e3), with_ticks(1, 1e6, 8e6, 250e3)]);
    assert_eq!(together.pairs[0].answer, PairAnswer::StopTogether, "{:?}", together.pairs);
}

/// One CPU is stopped, and in one of four times the other waits for it.
#[test]
fn who_stops_with_another_is_not_stopped_together() {
    let some = |each: usize| {
        let begins = (0..100).step_by(each).map(|at| 1e6 + 20e6 * at as f64);
        begins.map(|begin| pause(begin, 8e6, Some(0.0))).collect()
    };
    let found = six(&[watched(0, some(4)), watched(1, some(1))]);
    assert_eq!(found.pairs[0].answer, PairAnswer::Apart, "{:?}", found.pairs);
}
