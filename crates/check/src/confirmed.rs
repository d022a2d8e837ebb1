//! Runs of one host at different times: what chance made of one run, the others do not repeat.
//!
//! A host that is checked every day is held against its spec hundreds of times a year, and no limit
//! is wide enough for all of them. So a figure rejects a host only if it was missed in each of
//! several runs. How often a healthy host is rejected so, and how soon a slow one, is simulated by
//! `prove daily` (docs/results/fleets.md).

use super::demand::Demand;
use super::judge::{MACHINE, Outcome, Verdict, counted};
use super::limit::Standing;

/// Runs in which a figure must be missed.
pub const LOOKS: usize = 3;

/// Their begins are so far apart, s: what disturbs a host often lasts for minutes.
pub const APART_S: f64 = 25.0 * 60.0;

/// Runs that are older than the newest by more, s, say nothing of it: hosts are repaired.
pub const WITHIN_S: f64 = 7.0 * 86400.0;

/// What earlier runs say of a demand that the newest run misses.
struct Missed {
    /// Its place among the newest run's.
    at: usize,
    /// Runs that missed it, of different times.
    looks: usize,
    /// When the last of them began, s.
    last_s: f64,
    /// Enough runs missed it, or one met it.
    settled: bool,
}

impl Missed {
    fn hears(&mut self, demand: &Demand, started_s: f64) {
        match demand.standing {
            Standing::Met => self.settled = true,
            Standing::Missed if self.last_s - started_s >= APART_S => {
                (self.looks, self.last_s) = (self.looks + 1, started_s);
                self.settled = self.looks == LOOKS;
            }
            _ => {}
        }
    }
}

/// The outcome of a host's newest run, in which a figure, a finding or its peers count as missed
/// only where [`LOOKS`] runs missed them, [`APART_S`] apart and within [`WITHIN_S`], and none
/// between met them; what is else missed is undecided. Facts of the machine are no chance, and are
/// missed at once. `earlier` are outcomes of the host's other runs, the newest first; no more are
/// asked for than are needed.
pub fn confirmed(newest: Outcome, earlier: impl Iterator<Item = Outcome>) -> Outcome {
    let started_s = newest.background.started_s;
    let is_open = |demand: &Demand| demand.standing == Standing::Missed && demand.group != MACHINE;
    let mut missed: Vec<Missed> = newest
        .demands
        .iter()
        .enumerate()
        .filter(|(_, demand)| is_open(demand))
        .map(|(at, _)| Missed { at, looks: 1, last_s: started_s.unwrap_or_default(), settled: false })
        .collect();
    if newest.verdict != Verdict::Reject || missed.is_empty() {
        return newest;
    }
    if let Some(started_s) = started_s {
        for before in earlier {
            let Some(age_s) = before.background.started_s.map(|own| started_s - own) else { continue };
            if age_s > WITHIN_S {
                break;
            }
            if age_s <= 0.0 || before.verdict == Verdict::NotUsable {
                continue;
            }
            for one in missed.iter_mut().filter(|one| !one.settled) {
                let own = &newest.demands[one.at];
                let same = |demand: &&Demand| (&demand.again, &demand.asked) == (&own.again, &own.asked);
                if let Some(demand) = before.demands.iter().find(same) {
                    one.hears(demand, started_s - age_s);
                }
            }
            if missed.iter().all(|one| one.settled) {
                break;
            }
        }
    }
    outcome(newest, &missed)
}

/// The newest run's outcome, without what too few runs missed.
fn outcome(mut newest: Outcome, missed: &[Missed]) -> Outcome {
    let open = || missed.iter().filter(|one| one.looks < LOOKS);
    let Some(most) = open().map(|one| one.looks).max() else { return newest };
    let again = format!("assay run --profile {}", newest.profile);
    for one in open() {
        let demand = &mut newest.demands[one.at];
        let own = if demand.why.is_empty() { String::new() } else { format!("{}; ", demand.why) };
        (demand.standing, demand.by) = (Standing::Undecided, None);
        demand.why = format!("{own}missed in {} of {LOOKS} runs", one.looks);
        demand.confirm.clone_from(&again);
    }
    newest.sentences[0] = counted(&newest.demands);
    if newest.count(Standing::Missed) == 0 {
        newest.verdict = Verdict::CannotTell;
        let runs = match most {
            1 => "in this run".to_string(),
            count if open().all(|one| one.looks == count) => format!("in {count} runs so far"),
            count => format!("in at most {count} runs so far"),
        };
        let sentence = format!(
            "{} missed {runs}, and {LOOKS} of different times reject a host: measure again in half an hour.",
            match open().count() {
                1 => "1 was".to_string(),
                count => format!("{count} were"),
            }
        );
        newest.sentences.insert(0, sentence);
    }
    newest
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

    /// A run so many seconds ago; its latency is good, bad or neither by the letter, its clock is
    /// bad where a C follows.
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
            // A run between in which it was met clears it, at whatever time; one that
            // tells nothing does not.
            ("-", &[(5 * MINUTE, "+"), (half, "-"), (2 * half, "-")], Verdict::CannotTell),
            ("-", &[(half, "-"), (2 * half, "+"), (3 * half, "-")], Verdict::CannotTell),
            ("-", &[(half, "?"), (2 * half, "-"), (3 * half, "?"), (4 * half, "-")], Verdict::Reject),
            // What was a week ago may have been repaired.
            ("-", &[(DAY, "-"), (8 * DAY, "-")], Verdict::CannotTell),
            // Chance misses this and that; what is wrong is missed again.
            ("-", &[(half, "+C"), (2 * half, "-")], Verdict::CannotTell),
            ("-C", &[(half, "+C"), (2 * half, "-C")], Verdict::Reject),
            // What the machine has is no chance.
            ("+F", &[(half, "+")], Verdict::Reject),
        ] {
            let found = of(newest, earlier);
            assert_eq!(found.verdict, verdict, "{newest} {earlier:?} {:?}", found.sentences);
            assert_eq!(found.count(Standing::Missed) > 0, verdict == Verdict::Reject, "{newest} {earlier:?}");
        }
    }

    #[test]
    fn what_is_not_confirmed_says_how_often_it_was_missed_and_what_to_do() {
        let found = of("-C", &[(30 * MINUTE, "-")]);
        assert_eq!(
            found.sentences[..2],
            [
                "2 were missed in at most 2 runs so far, and 3 of different times reject a host: measure again in half an hour.",
                "2 of 3 demands are undecided, 1 is met, none is missed."
            ]
        );
        let why: Vec<&str> = found.demands.iter().map(|demand| demand.why.as_str()).collect();
        assert_eq!(why, ["", "missed in 2 of 3 runs", "missed in 1 of 3 runs"]);
        // Of what three runs confirm the rest stays open.
        let found = of("-C", &[(30 * MINUTE, "-"), (DAY, "-")]);
        assert_eq!(found.sentences, ["1 of 3 demands is missed, 1 is met, 1 is undecided."]);
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
