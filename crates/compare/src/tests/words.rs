//! What a comparison says, and what it needs to say it.

use super::*;

#[test]
fn words_have_bounds_and_what_more_would_tell() {
    let of = |host: &str, level: f64, spread: f64| {
        let values: Vec<f64> = (0..8).map(|at| level * (1.0 + spread * (f64::from(at) - 3.5))).collect();
        arm(host, false, vec![member("a.time@one-cpu#latency", "ns", Better::Lower, &values)])
    };
    let one = |a: ComparisonSide, b: ComparisonSide| compare(&a, &b, &Options::default()).metrics.remove(0);
    let slower = one(of("a", 5.0, 0.001), of("b", 6.0, 0.001));
    assert!(slower.words.starts_with("slower by 17–2"), "{}", slower.words);
    assert_eq!((slower.more_runs, slower.grade), (None, Grade::A));
    let unsure = one(of("a", 5.0, 0.02), of("b", 5.2, 0.02));
    assert!(unsure.words.starts_with("cannot tell: at most "), "{}", unsure.words);
    assert!(
        unsure.more_runs.is_some_and(|runs| runs > 0) && unsure.would_show.is_some_and(|share| share > 0.1)
    );
    // Below 2 % nothing is called different.
    assert_eq!(one(of("a", 5.0, 1e-5), of("b", 5.09, 1e-5)).words, "same within 5 %");
}

#[test]
fn what_is_not_known_is_no_difference_and_no_part() {
    let of = |host: &str, level: f64, kind: VerdictKind, grade: Grade| {
        let mut one = member("cpu.x@one-cpu#time", "ns", Better::Lower, &around(level));
        one.verdict = Verdict { grade, ..Verdict::new(kind, "so") };
        arm(host, false, vec![one])
    };
    let a = of("a", 5.0, VerdictKind::Trusted, Grade::A);
    let drifting = compare(&a, &of("b", 7.0, VerdictKind::Drifting, Grade::U), &Options::default());
    assert_eq!(drifting.metrics[0].words, "cannot tell: B is drifting");
    assert!(drifting.components.is_empty() && drifting.index.is_none());
    // A factor of three is one, however wide its figure.
    let wide = compare(&a, &of("b", 15.0, VerdictKind::Imprecise, Grade::C), &Options::default());
    assert_eq!((wide.metrics[0].word, wide.components.len()), (Relation::Slower, 0));
    let rough = compare(&a, &of("b", 7.0, VerdictKind::Imprecise, Grade::B), &Options::default());
    assert_eq!((rough.metrics[0].word, rough.components.len()), (Relation::Slower, 1));
}

#[test]
fn history_says_how_far_equal_runs_lie_apart() {
    let run = |at: usize, level: f64| {
        let file = format!("r{at}");
        let members = vec![member("a.time@one-cpu#latency", "ns", Better::Lower, &around(level))];
        ComparisonSide { identities: arm::identity("x", &file, &file), file, ..arm("x", false, members) }
    };
    let (a, b) = (run(100, 5.0), run(101, 5.3));
    assert_eq!(compare(&a, &b, &Options::default()).metrics[0].word, Relation::Slower);
    let levels = [5.0, 5.4, 5.0, 5.5, 4.9, 5.3];
    let history = levels.into_iter().enumerate().map(|(at, level)| run(at, level)).collect();
    let history = Some(ComparisonSide::of_runs(history, "folder").expect("one host"));
    let found = compare(&a, &b, &Options { history, ..Options::default() });
    assert_eq!(found.metrics[0].word, Relation::Inconclusive, "{}", found.metrics[0].words);
}

/// Two runs of one host at 3 and 2 GHz, of ten metrics that both say are at a clock; `time` is
/// what the second run's are as it ran, `inside` how far the clocks of a run's processes lie apart.
fn two_clocks(time: f64, inside: f64) -> Comparison {
    let of = |ghz: f64, time: f64| {
        let one = |at: usize| {
            let medians = around(time);
            let clocks = (0..8).map(|process| ghz * (1.0 + inside * f64::from(process % 2))).collect();
            let at_clock = Some(AtOneClock::new(ghz, medians.clone()));
            let key = format!("syscall.x{at}@one-cpu#latency");
            Member { clocks, at_clock, ..member(&key, "ns", Better::Lower, &medians) }
        };
        let mut arm = arm("one", false, (0..10).map(one).collect());
        arm.environment = [("cpu_model", "X"), ("cpus", "2")].map(|(a, b)| (a.into(), b.into())).to_vec();
        arm
    };
    compare(&of(3.0, 10.0), &of(2.0, time), &Options::default())
}

#[test]
fn runs_that_lie_farther_apart_at_one_clock_are_left_as_they_ran() {
    // Time goes with the clock, and so it does where a tenth of the cycles was saved.
    for (time, word) in [(15.0, Relation::Same), (13.5, Relation::Faster)] {
        let found = two_clocks(time, 0.0);
        assert!(found.metrics.iter().all(|one| one.scaled && one.word == word), "{:?}", words(&found));
    }
    // It does not.
    let found = two_clocks(10.0, 0.0);
    assert!(found.metrics.iter().all(|one| !one.scaled) && found.common_clock_ghz.is_none());
    let said = |text: &String| text.starts_with("times were not scaled to one clock");
    assert!(found.warnings.iter().any(said), "{:?}", found.warnings);
    // In runs whose own clocks moved it went with the clock, or they would have nothing at one.
    assert!(two_clocks(10.0, 0.1).metrics.iter().all(|one| one.scaled && one.word == Relation::Faster));
}

#[test]
fn runs_are_told_apart_where_some_processes_do_not_count_at_the_clock() {
    let of = |started: usize, at_clock: &[f64]| {
        let at_clock = Some(AtOneClock::new(3.0, at_clock.to_vec()));
        let whole = member("syscall.x@one-cpu#latency", "ns", Better::Lower, &around(5.0));
        let run = arm("one", false, vec![Member { at_clock, ..whole }]);
        let file = format!("r{started}");
        ComparisonSide { identities: arm::identity("one", &file, &file), file, ..run }
    };
    let runs = vec![of(0, &[4.0; 6]), of(1, &[4.1; 8]), of(2, &[4.2; 5])];
    let whole = ComparisonSide::of_runs(runs, "all").expect("three runs");
    let at_clock = whole.runs_of(&whole.members[0], true);
    assert_eq!(at_clock, [vec![4.0; 6], vec![4.1; 8], vec![4.2; 5]]);
    let as_they_ran: Vec<usize> = whole.runs_of(&whole.members[0], false).iter().map(Vec::len).collect();
    assert_eq!(as_they_ran, [8; 3]);
}
