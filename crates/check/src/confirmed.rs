//! Runs of one host at different times: what chance made of one run, the others do not repeat.
//!
//! A daily check compares a host with its spec hundreds of times a year, and no limit
//! is wide enough for all of them. So a figure rejects a host only if it was missed in each of
//! several runs. How often a healthy host is rejected so, and how soon a slow one, is simulated by
//! `prove daily` (docs/results/fleets.md).

use super::demand::Demand;
use super::judge::{MACHINE, Outcome, Verdict, counted};
use super::limit::DemandStatus;
use super::nfd::time;

/// Runs in which a figure must be missed.
pub const LOOKS: usize = 3;

/// Their begins are at least this far apart, s: what disturbs a host often lasts for minutes.
pub const APART_S: f64 = 25.0 * 60.0;

/// Runs that are older than the newest by more than this, s, do not count: hosts are repaired.
pub const WITHIN_S: f64 = 7.0 * 86400.0;

/// What earlier runs show about a demand that the newest run misses.
struct Missed {
    /// Its place among the newest run's.
    at: usize,
    /// When the runs of different times began that missed it, s, the newest first.
    begins_s: Vec<f64>,
    /// Runs that missed it and began too soon after one of those.
    too_near: usize,
    /// Enough runs missed it, or one met it.
    settled: bool,
}

impl Missed {
    fn is_confirmed(&self) -> bool {
        self.begins_s.len() == LOOKS
    }

    fn hears(&mut self, demand: &Demand, started_s: f64) {
        let last_s = self.begins_s.last().copied().unwrap_or(f64::INFINITY);
        match demand.standing {
            DemandStatus::Met => self.settled = true,
            DemandStatus::Missed if last_s - started_s >= APART_S => {
                self.begins_s.push(started_s);
                self.settled = self.is_confirmed();
            }
            DemandStatus::Missed => self.too_near += 1,
            _ => {}
        }
    }
}

/// The outcome of a host's newest run, in which a figure, a finding or its peers count as missed
/// only where [`LOOKS`] runs missed them, [`APART_S`] apart and within [`WITHIN_S`], and none
/// between met them; what is else missed is undecided. Facts of the host are no chance, and are
/// missed at once. `earlier` are outcomes of the host's other runs, the newest first; no more are
/// asked for than are needed.
pub fn confirmed(newest: Outcome, earlier: impl Iterator<Item = Outcome>) -> Outcome {
    let started_s = newest.background.started_s;
    let is_open = |demand: &Demand| demand.standing == DemandStatus::Missed && demand.group != MACHINE;
    let places = newest.demands.iter().enumerate().filter(|(_, demand)| is_open(demand)).map(|(at, _)| at);
    let begins_s: Vec<f64> = vec![started_s.unwrap_or_default()];
    let mut missed: Vec<Missed> =
        places.map(|at| Missed { at, begins_s: begins_s.clone(), too_near: 0, settled: false }).collect();
    if newest.verdict != Verdict::Reject || missed.is_empty() {
        return newest;
    }
    if let Some(started_s) = started_s {
        for before in earlier {
            let Some(before_s) = before.background.started_s else { continue };
            if started_s - before_s > WITHIN_S {
                break;
            }
            if before_s >= started_s || before.verdict == Verdict::NotUsable {
                continue;
            }
            for one in missed.iter_mut().filter(|one| !one.settled) {
                let own = &newest.demands[one.at];
                let same = |demand: &&Demand| (&demand.again, &demand.asked) == (&own.again, &own.asked);
                if let Some(demand) = before.demands.iter().find(same) {
                    one.hears(demand, before_s);
                }
            }
            if missed.iter().all(|one| one.settled) {
                break;
            }
        }
    }
    outcome(newest, &missed)
}

/// The newest run's outcome with what its earlier ones confirm, and without what they do not.
fn outcome(mut newest: Outcome, missed: &[Missed]) -> Outcome {
    let again = again(&newest);
    for one in missed {
        let demand = &mut newest.demands[one.at];
        let begins: Vec<String> = one.begins_s.iter().rev().map(|own| when(*own)).collect();
        let mut missed_in = format!("missed in {} of {LOOKS} runs: {}", begins.len(), begins.join(", "));
        if one.too_near > 0 && !one.is_confirmed() {
            missed_in += &format!("; {} more started too soon after one of them", one.too_near);
        }
        demand.why = if demand.why.is_empty() { missed_in } else { format!("{}; {missed_in}", demand.why) };
        demand.missed_in = Some(begins.len());
        if !one.is_confirmed() {
            demand.standing = DemandStatus::Undecided;
            demand.confirm.clone_from(&again);
        }
    }
    let first_s = missed.iter().find(|one| one.is_confirmed()).and_then(|one| one.begins_s.last());
    let counts = counted(&newest.demands);
    match first_s {
        Some(first_s) => {
            newest.sentences[0] = format!("{counts} Confirmed by {LOOKS} runs since {}.", when(*first_s));
        }
        None if newest.count(DemandStatus::Missed) > 0 => newest.sentences[0] = counts,
        None => {
            newest.verdict = Verdict::CannotTell;
            newest.sentences.splice(..1, waiting(&newest, missed));
        }
    }
    newest
}

/// What nothing of that is confirmed says: how often it was missed, when to measure again, and why.
fn waiting(newest: &Outcome, missed: &[Missed]) -> [String; 2] {
    let met = newest.count(DemandStatus::Met);
    let others = newest.count(DemandStatus::Undecided) - missed.len();
    let looks = || missed.iter().map(|one| one.begins_s.len());
    let most = looks().max().unwrap_or_default();
    let at_most = if looks().all(|own| own == most) { "" } else { "at most " };
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    let first = format!(
        "{} of {} demands {} missed in {at_most}{most} of {LOOKS} runs, {met} {} met{}: measure again after {}.",
        missed.len(),
        missed.len() + met + others,
        is(missed.len()),
        is(met),
        if others == 0 { String::new() } else { format!(", {others} {} undecided", is(others)) },
        when(newest.background.started_s.unwrap_or_default() + APART_S),
    );
    let rule = format!(
        "{LOOKS} runs within a week must miss a demand to reject a host. They start {:.0} minutes or more apart, \
         and none between meets it.",
        APART_S / 60.0
    );
    [first, rule]
}

/// `3 Nov 09:30 UTC`.
fn when(seconds: f64) -> String {
    time(seconds).strftime("%-d %b %H:%M UTC").to_string()
}

/// What measures once more, into the folder where the run lies.
fn again(newest: &Outcome) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let folder = std::path::Path::new(&newest.file).parent().and_then(|own| own.to_str()).unwrap_or_default();
    let is_run = newest.file.contains(".assay.jsonl") && !folder.is_empty() && folder.chars().all(is_plain);
    let out = if is_run { format!(" --out {folder}") } else { String::new() };
    format!("assay run --profile {}{out}", newest.profile)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{Figure, Spec, Subject, check};
    use model::{Better, VerdictKind};

    const SPEC: &str = "
        [machine]
        cpus = { min = 2 }
        [limits]
        dram-latency = { max = \"100 ns\" }
        core-clock = { min = \"3 GHz\" }";

    const MINUTE: i64 = 60;
    const DAY: i64 = 86400;
    const NOW: i64 = 1_790_000_000;

    fn figure(name: &'static str, unit: &str, ends: [f64; 2]) -> (&'static str, Figure) {
        let own = Figure {
            key: format!("{name}@one-cpu#value"),
            label: name.to_string(),
            unit: unit.to_string(),
            value: Some((ends[0] + ends[1]) / 2.0),
            low_high: Some(ends),
            verdict: VerdictKind::Trusted,
            reason: String::new(),
            better: Some(Better::Lower),
            headline: true,
        };
        (name, own)
    }

    /// A run that began `ago_s` before now. `+` is a latency that meets its limit, `-` one that
    /// misses it, `?` one whose interval lies on both sides; C is a clock that misses its limit, F
    /// a fact that does.
    fn run(ago_s: i64, kind: &str) -> Outcome {
        let latency = match kind.as_bytes()[0] {
            b'+' => [80.0, 90.0],
            b'-' => [110.0, 120.0],
            _ => [90.0, 110.0],
        };
        let clock = if kind.ends_with('C') { [2.0, 2.1] } else { [3.1, 3.2] };
        let started = jiff::Timestamp::from_second(NOW - ago_s).expect("a time").to_string();
        let subject = Subject {
            host: "db1".to_string(),
            file: "runs/db1/1.assay.jsonl".to_string(),
            started,
            profile: "quick".to_string(),
            key_figures: vec![figure("dram-latency", "ns", latency), figure("core-clock", "GHz", clock)],
            facts: vec![("cpus".to_string(), if kind.contains('F') { "1" } else { "2" }.to_string())],
            ..Subject::default()
        };
        check(&Spec::read(SPEC).expect("a spec"), &subject, 0.0).expect("an outcome")
    }

    fn of(newest: &str, earlier: &[(i64, &str)]) -> Outcome {
        confirmed(run(0, newest), earlier.iter().map(|(ago_s, kind)| run(*ago_s, kind)))
    }

    #[test]
    fn only_what_three_runs_of_different_times_miss_rejects() {
        let half = 30 * MINUTE;
        for (newest, earlier, verdict) in [
            ("+", &[][..], Verdict::Accept),
            ("?", &[(half, "-"), (2 * half, "-")], Verdict::CannotTell),
            ("-", &[], Verdict::CannotTell),
            ("-", &[(half, "-")], Verdict::CannotTell),
            ("-", &[(half, "-"), (2 * half, "-")], Verdict::Reject),
            ("-", &[(DAY, "-"), (6 * DAY, "-")], Verdict::Reject),
            // Runs of one time are one.
            ("-", &[(5 * MINUTE, "-"), (10 * MINUTE, "-"), (24 * MINUTE, "-")], Verdict::CannotTell),
            ("-", &[(5 * MINUTE, "-"), (half, "-"), (half + MINUTE, "-"), (2 * half, "-")], Verdict::Reject),
            // A run between that met it clears it, at whatever time; an undecided one does not.
            ("-", &[(5 * MINUTE, "+"), (half, "-"), (2 * half, "-")], Verdict::CannotTell),
            ("-", &[(half, "-"), (2 * half, "+"), (3 * half, "-")], Verdict::CannotTell),
            ("-", &[(half, "?"), (2 * half, "-"), (3 * half, "?"), (4 * half, "-")], Verdict::Reject),
            // What was a week ago may have been repaired.
            ("-", &[(DAY, "-"), (8 * DAY, "-")], Verdict::CannotTell),
            // Chance misses this and that; what is wrong is missed again.
            ("-", &[(half, "+C"), (2 * half, "-")], Verdict::CannotTell),
            ("-C", &[(half, "+C"), (2 * half, "-C")], Verdict::Reject),
            // What the host has is no chance.
            ("+F", &[(half, "+")], Verdict::Reject),
        ] {
            let found = of(newest, earlier);
            assert_eq!(found.verdict, verdict, "{newest} {earlier:?} {:?}", found.sentences);
            assert_eq!(
                found.count(DemandStatus::Missed) > 0,
                verdict == Verdict::Reject,
                "{newest} {earlier:?}"
            );
        }
    }

    #[test]
    fn what_is_not_confirmed_says_how_often_it_was_missed_and_what_to_do() {
        let found = of("-C", &[(30 * MINUTE, "-")]);
        assert_eq!(
            found.sentences[..2],
            [
                "2 of 3 demands are missed in at most 2 of 3 runs, 1 is met: measure again after 21 Sep 14:38 UTC.",
                "3 runs within a week must miss a demand to reject a host. They start 25 minutes or more apart, \
                 and none between meets it."
            ]
        );
        let why: Vec<&str> = found.demands.iter().map(|demand| demand.why.as_str()).collect();
        assert_eq!(
            why,
            [
                "",
                "missed in 2 of 3 runs: 21 Sep 13:43 UTC, 21 Sep 14:13 UTC",
                "missed in 1 of 3 runs: 21 Sep 14:13 UTC"
            ]
        );
        assert_eq!(found.demands[1].confirm, "assay run --profile quick --out runs/db1");
        // What began too soon is counted.
        let found = of("-", &[(5 * MINUTE, "-")]);
        assert!(found.demands[1].why.ends_with("; 1 more started too soon after one of them"));
        // Of what three runs confirm the rest stays open.
        let found = of("-C", &[(30 * MINUTE, "-"), (DAY, "-")]);
        assert_eq!(
            found.sentences,
            [
                "1 of 3 demands is missed, 1 is met, 1 is undecided. Confirmed by 3 runs since 20 Sep 14:13 UTC."
            ]
        );
    }

    #[test]
    fn no_more_runs_are_read_than_are_needed() {
        let asked = Cell::new(0);
        let earlier = |kind: &'static str| {
            let of = |number: i64| {
                asked.set(asked.get() + 1);
                run(number * 12 * 60 * MINUTE, kind)
            };
            (1..100).map(of)
        };
        for (newest, kind, expected) in [("+", "-", 0), ("-", "-", 2), ("-", "+", 1), ("-", "?", 15)] {
            asked.set(0);
            confirmed(run(0, newest), earlier(kind));
            assert_eq!(asked.get(), expected, "{newest} {kind}");
        }
    }
}
