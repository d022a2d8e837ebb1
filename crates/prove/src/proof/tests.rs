//! The claims, checked against the bounds. Seeds are fixed, so a failure is a change of the code
//! and never bad luck.

use super::*;
use stats::change::{Sensitivity, changes};
use stats::contrast::Family;
use stats::dependence::{neighbours_p, period};
use stats::drift::{inside, trend};
use stats::modes::{Modality, modality};
use stats::ranks::{kruskal_wallis, spearman};
use stats::stop::Target;

const SKEWED_AND_HEAVY: [Noise; 4] = [
    Noise::FloorExponential { share: 0.03 },
    Noise::CeilingExponential { share: 0.1 },
    Noise::Student3 { scale: 0.02 },
    Noise::SlowTail { cv: 0.01, slow: 0.1 },
];

const UNIMODAL: [Noise; 4] = [
    Noise::Lognormal { cv: 0.03 },
    Noise::FloorExponential { share: 0.1 },
    Noise::CeilingExponential { share: 0.1 },
    Noise::Student3 { scale: 0.03 },
];

/// A changed bound is a changed promise.
#[test]
fn the_texts_state_these_bounds() {
    crate::texts_state(BOUNDS);
}

#[test]
fn intervals_cover_whatever_the_correlation() {
    for icc in [0.0, 0.05, 0.1, 0.3, 0.5, 0.8] {
        for processes in [6, 10, 20, 40] {
            for windows in [1, 3, 20] {
                let shape = Shape::shared(0.03, icc, processes, windows);
                let found = coverage(shape, 800, processes as u64);
                assert_eq!(found.given.share(), 1.0, "{shape:?}");
                assert!(found.covered.share() >= COVERAGE_LEAST, "{shape:?}: {}", found.covered);
            }
        }
    }
}

#[test]
fn intervals_cover_skewed_heavy_and_autocorrelated_windows() {
    let mut shapes: Vec<Shape> = Vec::new();
    for processes in [6, 14, 20, 40] {
        shapes.extend(SKEWED_AND_HEAVY.iter().flat_map(|&n| [1, 3].map(|w| Shape::plain(n, processes, w))));
        let noise = Noise::Lognormal { cv: 0.03 };
        let inside = Inside::Autoregressive { phi: 0.9 };
        shapes.push(Shape { noise, inside, processes, windows: 10 });
    }
    for shape in shapes {
        let found = coverage(shape, 800, 1).covered;
        assert!(found.share() >= COVERAGE_LEAST, "{shape:?}: {found}");
    }
}

/// Why processes are counted: all samples as if independent cover far less than they promise.
#[test]
fn pooled_windows_do_not_cover() {
    let pooled = pooled_coverage(Shape::shared(0.03, 0.5, 10, 10), 500, 1);
    assert!(pooled.share() < 0.8, "{pooled}");
}

#[test]
fn windows_stand_in_rarely_where_they_must_not() {
    let mut gained = 0;
    for icc in [0.0, 0.05, 0.1, 0.3, 0.5, 0.8] {
        for (processes, windows) in [(1, 100), (2, 100), (3, 100), (4, 50)] {
            let found = coverage(Shape::shared(0.03, icc, processes, windows), 400, 2);
            assert!(
                found.wrong.share() <= WINDOWS_WRONG_MOST,
                "{icc} {processes}x{windows}: {}",
                found.wrong
            );
            gained += if icc == 0.0 { found.by_windows.hits } else { 0 };
        }
    }
    assert!(gained > 200, "it never helps: {gained}");
    let five = coverage(Shape::shared(0.03, 0.0, 5, 100), 400, 2);
    assert!(five.given.share() == 1.0 && five.by_windows.hits == 0, "five have an interval: {five:?}");
}

/// Log-normal, skewed, heavy, one in ten slower, two modes: five samples a process, which share
/// `icc`.
fn few_processes_of(icc: f64) -> [Shape; 5] {
    let two_modes = |minority| Noise::TwoModes { cv: 0.01, ratio: 1.1, minority };
    let skewed = Noise::FloorExponential { share: 0.03 };
    let heavy = Noise::Student3 { scale: 0.02 };
    [Noise::Lognormal { cv: 0.03 }, skewed, heavy, two_modes(0.1), two_modes(0.3)].map(|noise| Shape {
        noise,
        inside: Inside::Shared { icc },
        processes: 1,
        windows: 5,
    })
}

#[test]
fn intervals_of_few_processes_cover() {
    for shape in [0.0, 0.9].into_iter().flat_map(few_processes_of) {
        let truth = shape.true_median();
        for processes in [5, 7, 10, 14] {
            let found = few_processes(Shape { processes, ..shape }, truth, 1500, 23);
            assert!(
                found.covered.share() >= GUARDED_COVERAGE_LEAST,
                "{shape:?} {processes}: {}",
                found.covered
            );
        }
    }
}

#[test]
fn a_look_after_every_visit_costs_little() {
    for shape in few_processes_of(0.9) {
        let found = looking_after_every_visit(shape, 0.03, 1500, 24);
        assert!(found.covered.share() >= LOOKED_COVERAGE_LEAST, "{shape:?}: {found:?}");
        assert!(found.narrow.share() > 0.2 && found.mean_n < 20.0, "it never stops: {shape:?} {found:?}");
    }
}

#[test]
fn figures_at_a_clock_cover() {
    let noises = [
        Noise::Lognormal { cv: 0.003 },
        Noise::FloorExponential { share: 0.01 },
        Noise::TwoModes { cv: 0.01, ratio: 1.1, minority: 0.1 },
    ];
    for noise in noises {
        for processes in [5, 7] {
            for slope in [-1.0, -1.15, -0.5] {
                let right = slope < -0.8;
                let least = if right { CLOCK_COVERAGE_LEAST } else { CLOCK_WRONG_COVERAGE_LEAST };
                let found = clocked(noise, slope, processes, 2000, 25);
                assert!(found.covered.share() >= least, "{noise:?} {slope} {processes}: {found:?}");
                assert!(!right || found.adjusted.share() > 0.9, "{noise:?} {slope} {processes}: {found:?}");
            }
            let most = if processes == 5 { CLOCK_FALSE_MOST_5 } else { CLOCK_FALSE_MOST_7 };
            let found = clocked(noise, 0.0, processes, 2000, 26);
            assert!(found.adjusted.share() <= most, "{noise:?} {processes}: {found:?}");
        }
    }
    // What it is for: the clock explains what made the interval wide.
    let found = clocked(Noise::Lognormal { cv: 0.01 }, -1.0, 7, 400, 27);
    assert!(found.half_at_clock < found.half_as_it_ran / 2.0, "{found:?}");
}

#[test]
fn the_gate_of_a_run_tells_its_clock_from_others() {
    assert!(gate_opens(ClockRead::Own, 300, 28).share() >= GATE_OPEN_LEAST);
    for other in [ClockRead::OwnHalfOfTheTime, ClockRead::AnotherCpus] {
        assert!(gate_opens(other, 300, 29).share() <= GATE_WRONG_MOST, "{other:?}");
    }
}

#[test]
fn the_bound_of_the_correlation_is_one() {
    for (icc, processes, windows) in [(0.0, 6, 10), (0.3, 6, 10), (0.3, 20, 3), (0.8, 10, 5)] {
        let found = true_icc_below_bound(icc, processes, windows, 1000, 3);
        assert!(found.share() >= ICC_BOUND_LEAST, "{icc} {processes}x{windows}: {found}");
    }
}

#[test]
fn clean_series_are_trusted() {
    let lognormal = Noise::Lognormal { cv: 0.03 };
    let shared = |icc: f64| (lognormal, Inside::Shared { icc });
    let kinds = [
        (lognormal, Inside::Independent),
        (Noise::FloorExponential { share: 0.1 }, Inside::Independent),
        (lognormal, Inside::Autoregressive { phi: 0.9 }),
        shared(0.3),
        shared(0.5),
        shared(0.8),
    ];
    for (noise, inside) in kinds {
        for (processes, windows) in [(6, 10), (10, 1), (14, 5), (20, 1), (40, 1)] {
            let shape = Shape { noise, inside, processes, windows };
            let found = verdicts(|rng| shape.draw(rng), noise.median(), ANY_PRECISION, 500, 4).trusted;
            assert!(found.share() >= TRUSTED_LEAST, "{shape:?}: {found}");
        }
    }
}

#[test]
fn a_slow_tail_is_trusted_or_called_modes() {
    for processes in [10, 20, 28, 40] {
        let shape = Shape::plain(Noise::SlowTail { cv: 0.01, slow: 0.1 }, processes, 1);
        let found = verdicts(|rng| shape.draw(rng), shape.noise.median(), ANY_PRECISION, 500, 5);
        assert!(found.trusted.share() >= TRUSTED_LEAST_SLOW_TAIL, "{processes}: {}", found.trusted);
        assert!(found.drifting.share() <= DRIFT_FALSE_MOST, "{processes}: {}", found.drifting);
    }
}

#[test]
fn troubled_series_are_not_trusted() {
    let found = |trouble: Trouble, processes: usize, precision: f64| {
        verdicts(|rng| trouble.draw(processes, 10, rng), trouble.truth(), precision, 150, 6)
    };
    assert!(found(Trouble::Trend(0.03), 20, ANY_PRECISION).drifting.share() > 0.7);
    assert!(found(Trouble::Step(0.05), 14, ANY_PRECISION).drifting.share() > 0.9);
    assert!(found(Trouble::Inside(0.05), 10, ANY_PRECISION).drifting.share() > 0.9);
    let modes = Trouble::Modes { ratio: 1.1, minority: 0.3 };
    assert!(found(modes, 40, ANY_PRECISION).multimodal.share() > 0.95);
    let few = found(modes, 20, ANY_PRECISION);
    assert!(few.multimodal.hits == 0 && few.imprecise.share() > 0.85);
    assert!(found(Trouble::Wandering { phi: 0.9 }, 40, ANY_PRECISION).drifting.share() > 0.65);
}

#[test]
fn tests_of_drift_keep_their_level() {
    let plain = |noise: Noise, n: usize| move |rng: &mut Rng| noise.series(n, rng);
    for noise in [Noise::Lognormal { cv: 0.05 }, Noise::FloorExponential { share: 0.1 }] {
        for n in [6, 10, 20] {
            let found = rate(1500, 7, plain(noise, n), |v, _| trend(v).is_some_and(|t| t.p < 0.01));
            assert!(found.share() <= DRIFT_FALSE_MOST, "trend {noise:?} {n}: {found}");
            let found = rate(1500, 8, plain(noise, n), |v, _| neighbours_p(v).is_some_and(|p| p < 0.01));
            assert!(found.share() <= DRIFT_FALSE_MOST, "neighbours {noise:?} {n}: {found}");
            let loose = Sensitivity { merge_p: 1.0, least: 0.0, ..Sensitivity::default() };
            let found = rate(800, 9, plain(noise, n), |v, seed| !changes(v, loose, seed).is_empty());
            assert!(found.share() <= DRIFT_FALSE_MOST, "changes {noise:?} {n}: {found}");
        }
    }
    for phi in [0.0, 0.9] {
        for (processes, windows) in [(6, 4), (8, 10), (20, 5)] {
            let noise = Noise::Lognormal { cv: 0.05 };
            let shape = Shape { noise, inside: Inside::Autoregressive { phi }, processes, windows };
            let found = rate(1000, 10, |rng| shape.draw(rng), |v, _| inside(v).is_some_and(|i| i.p < 0.01));
            assert!(found.share() <= DRIFT_FALSE_MOST, "inside {shape:?}: {found}");
        }
    }
}

#[test]
fn one_mode_is_one_mode() {
    for noise in UNIMODAL {
        for n in [14, 20, 28] {
            let found = rate(1000, 11, |rng| noise.series(n, rng), |v, _| modality(v).modes().is_some());
            assert!(found.share() <= MODES_SUSPECTED_FALSE_MOST, "{noise:?} {n}: {found}");
        }
        for n in [40, 80] {
            let several = |v: &Vec<f64>, _| matches!(modality(v), Modality::Several(_));
            let found = rate(600, 12, |rng| noise.series(n, rng), several);
            assert!(found.share() <= MODES_FALSE_MOST, "{noise:?} {n}: {found}");
        }
    }
}

#[test]
fn other_tests_keep_their_level() {
    let noise = Noise::FloorExponential { share: 0.1 };
    let pair = |rng: &mut Rng| (noise.series(12, rng), noise.series(12, rng));
    let found = rate(2000, 13, pair, |(x, y), _| spearman(x, y).is_some_and(|c| c.p < 0.05));
    assert!(found.share() <= OTHER_FALSE_MOST, "Spearman: {found}");
    let groups = |rng: &mut Rng| [4, 5, 8].map(|n| noise.series(n, rng));
    let found = rate(1000, 14, groups, |g, seed| kruskal_wallis(g, seed).is_some_and(|p| p < 0.05));
    assert!(found.share() <= OTHER_FALSE_MOST, "Kruskal-Wallis: {found}");
    let found = rate(1000, 15, |rng| noise.series(100, rng), |v, _| period(v).is_some());
    assert!(found.share() <= PERIOD_FALSE_MOST, "period: {found}");
    let found = explained_by_luck(400, 16);
    assert!(found.share() <= EXPLAINED_FALSE_MOST, "explained: {found}");
}

#[test]
fn stopping_early_costs_no_coverage() {
    for noise in [Noise::Lognormal { cv: 0.02 }, Noise::FloorExponential { share: 0.03 }] {
        let found = stopping(noise, Target { precision: 0.01, most: 400 }, 200, 17);
        assert!(found.covered.share() >= STOPPED_COVERAGE_LEAST, "{noise:?}: {}", found.covered);
        assert!(found.false_alarms.share() <= STOPPED_FALSE_MOST, "{noise:?}: {}", found.false_alarms);
        assert!(found.enough.share() > 0.9 && found.too_wide.hits == 0, "{noise:?}: {found:?}");
    }
    // 65 processes would do on average, 80 are allowed.
    let found = stopping(Noise::Lognormal { cv: 0.025 }, Target { precision: 0.01, most: 80 }, 200, 18);
    assert!(found.too_wide.share() <= HOPELESS_FALSE_MOST, "{}", found.too_wide);
    let (greedy, _) = stopping_greedily(Noise::Lognormal { cv: 0.03 }, 0.01, 1000, 19);
    assert!(greedy.share() < COVERAGE_LEAST, "the rule that is not used covers too: {greedy}");
}

#[test]
fn equal_arms_are_equal() {
    let shapes = [
        Shape::shared(0.03, 0.5, 10, 5),
        Shape::shared(0.03, 0.3, 24, 3),
        Shape::plain(Noise::FloorExponential { share: 0.05 }, 12, 1),
    ];
    for shape in shapes {
        let found = equal_arms(shape, 600, 20);
        for rate in [found.paired_interval, found.paired_sign_test, found.mann_whitney, found.means_interval]
        {
            assert!(rate.share() <= SELF_DIFFERENT_MOST, "{shape:?}: {found:?}");
        }
    }
    let (blocks, interleaved) = equal_arms_while_drifting(0.9, 20, 400, 21);
    assert!(blocks.share() > 0.4, "{blocks}");
    assert!(interleaved.share() <= SELF_DIFFERENT_MOST, "{interleaved}");
}

#[test]
fn caches_are_read_off_ladders() {
    for (per_octave, most) in
        [(1, LADDER_FALSE_MOST), (2, FINE_LADDER_FALSE_MOST), (4, FINE_LADDER_FALSE_MOST)]
    {
        let seen = ladders(per_octave, 0.02, 100, u64::from(per_octave));
        assert!(seen.settled.share() >= 0.5 && seen.counted.share() >= 0.88, "{seen:?}");
        assert!(seen.last_wrong.share() <= most && seen.bounded.share() >= 0.98, "{seen:?}");
        let [quarter, _, _, fourfold] = seen.claims;
        assert!(quarter.share().min(fourfold.share()) >= LADDER_FOURFOLD_LEAST, "{seen:?}");
        assert!(seen.memory.share() >= 0.88, "{seen:?}");
    }
}

#[test]
fn groups_and_siblings_are_rarely_claimed_wrongly() {
    type Judge = fn(Guest, usize, u64) -> Outcomes;
    let judges: [(Judge, &[Kind]); 2] = [(grouped, &Kind::BY_DISTANCE), (paired, &Kind::BY_SLOWDOWN)];
    for (judge, kinds) in judges {
        for kind in kinds {
            let guest = |cpus, noise, stolen| Guest { kind: *kind, cpus, noise, stolen, visits: 10 };
            let mut sum = Outcomes::default();
            for cpus in [8, 16] {
                for (noise, stolen) in [(0.01, 0.1), (0.05, 0.0), (0.1, 0.1), (0.2, 0.0)] {
                    sum = sum.and(judge(guest(cpus, noise, stolen), 30, 11));
                }
            }
            assert!(sum.wrong.share() <= TOPOLOGY_WRONG_MOST, "{}: {}", kind.name(), sum.wrong);
            let quiet = judge(guest(8, 0.02, 0.0), 60, 12);
            let enough = if *kind == Kind::Quota { 0.0 } else { 0.9 };
            assert!(quiet.right.share() >= enough, "{}: {}", kind.name(), quiet.right);
        }
    }
}

/// One pair has nothing to be compared with: neither groups nor siblings, only that two are none.
#[test]
fn of_two_cpus_nothing_is_claimed() {
    for kind in Kind::BY_DISTANCE {
        let guest = Guest { kind, cpus: 2, noise: 0.03, stolen: 0.1, visits: 10 };
        assert_eq!(grouped(guest, 50, 13).cannot_tell.hits, 50, "{}", kind.name());
        let found = paired(guest, 50, 14);
        let siblings = matches!(kind, Kind::Smt | Kind::SmtTwoPackages);
        assert!(found.wrong.hits == 0 && (!siblings || found.right.hits == 0), "{}", kind.name());
    }
}

/// Whole runs shift: the processes alone call a host different from itself, and with the levels
/// of runs that is rare.
#[test]
fn runs_of_one_machine_are_not_called_different() {
    let kinds = [
        (Family::AtOneClock, 0.01, 0.006),
        (Family::AtOneClock, 0.02, 0.006),
        (Family::Memory, 0.03, 0.02),
        (Family::Other, 0.05, 0.025),
    ];
    for (family, spread, level) in kinds {
        for processes in [5, 7, 10, 20] {
            let of = |levels: Levels, planted: f64| {
                contrasted(Runs { family, spread, levels, processes, planted }, 1500, 14)
            };
            let stated = of(Levels::Apart(level), 0.0);
            let equal = [
                (stated, EQUAL_RUNS_DIFFERENT_MOST),
                (of(Levels::Apart(0.0), 0.0), EQUAL_RUNS_DIFFERENT_MOST),
                (of(Levels::Flicker, 0.0), FLICKER_DIFFERENT_MOST),
            ];
            for (found, most) in equal {
                assert!(found.different.share() <= most, "{family:?} {spread} {processes}: {found:?}");
            }
            assert!(stated.covered.share() >= CONTRAST_COVERAGE_LEAST, "{family:?} {processes}: {stated:?}");
            assert!(of(Levels::Apart(level), 0.10).same.share() <= 0.05, "{family:?} {processes}");
        }
    }
    let core = Runs {
        family: Family::AtOneClock,
        spread: 0.01,
        levels: Levels::Apart(0.006),
        processes: 7,
        planted: 0.0,
    };
    let (equal, planted) = (contrasted(core, 1500, 15), contrasted(Runs { planted: 0.1, ..core }, 1500, 16));
    assert!(equal.same.share() > 0.9 && planted.different.share() > 0.9, "{equal:?} {planted:?}");
    let wide = Runs {
        family: Family::Other,
        spread: 0.05,
        levels: Levels::Apart(0.025),
        processes: 20,
        planted: 0.0,
    };
    let alone = different_by_processes(wide, 300, 17);
    assert!(alone.share() > 0.2, "{alone}");
}

const DRIFTS: [Drift; 4] = [Drift::None, Drift::Slow, Drift::Step, Drift::Wander];

/// Sweeps of one kind under each drift.
fn sweeps(planted: Planted, cv: f64, passes: u32, trials: usize) -> Swept {
    let sweep = |drift| Sweep { planted, noise: Noise::Lognormal { cv }, outliers: 0.0, drift, passes };
    let found = DRIFTS.iter().zip(21..).map(|(drift, seed)| swept(sweep(*drift), trials, seed));
    found.fold(Swept::default(), Swept::and)
}

#[test]
fn flat_sweeps_are_said_not_to_matter() {
    let found = sweeps(Planted::FlatCurve, 0.03, 4, 50);
    assert!(found.matter.share() <= SWEEP_FALSE_MOST, "{}", found.matter);
    assert!(found.covered.share() >= SWEEP_COVERAGE_LEAST, "{}", found.covered);
}

/// With the passes that a sweep of a minute makes of work that takes a third of a second.
#[test]
fn questions_are_answered_by_all_visits_together() {
    let mut invented = sweeps(Planted::FlatPair, 0.08, 6, 150).invented;
    for (planted, trials) in [(Planted::MainEffect, 60), (Planted::Trend, 60), (Planted::CrossOver, 30)] {
        let found = sweeps(planted, 0.08, 12, trials);
        assert!(found.found.share() >= SWEEP_FOUND_LEAST, "{planted:?}: {}", found.found);
        invented = invented.and(found.invented);
    }
    assert!(invented.share() <= SWEEP_INVENTED_MOST, "{invented}");
}

#[test]
fn planted_regions_are_found() {
    let found = sweeps(Planted::StoryCurve, 0.01, 4, 15);
    assert_eq!(found.matter.share(), 1.0);
    assert!(found.kinds.share() >= SWEEP_KINDS_LEAST, "{}", found.kinds);
    assert!(found.boundaries.share() >= SWEEP_KINDS_LEAST, "{}", found.boundaries);
    for map in [Planted::StoryMap, Planted::BandMap, Planted::HalvesMap] {
        let found = sweeps(map, 0.01, 4, 3);
        assert!(found.kinds.share() >= SWEEP_KINDS_LEAST, "{map:?}: {}", found.kinds);
        assert!(found.boundaries.share() >= SWEEP_KINDS_LEAST, "{map:?}: {}", found.boundaries);
    }
}

#[test]
fn the_true_best_is_among_the_best() {
    let found = sweeps(Planted::StoryCurve, 0.05, 4, 40);
    assert!(found.best.share() >= SWEEP_BEST_LEAST && found.best_size() < 8.0, "{}", found.best);
    let found = sweeps(Planted::Bowl, 0.03, 4, 4);
    assert!(found.best.share() >= SWEEP_BEST_LEAST && found.best_size() < 16.0, "{}", found.best);
}

#[test]
fn differences_are_shared_out_rightly() {
    let knobs = |drift| Knobs { noise: Noise::Lognormal { cv: 0.03 }, outliers: 0.0, drift, passes: 6 };
    let found = DRIFTS.iter().zip(31..).map(|(drift, seed)| shared_out(knobs(*drift), 200, seed));
    let found = found.fold(SharedOut::default(), SharedOut::and);
    for rate in [found.total, found.mains, found.pairs, found.remainder] {
        assert!(rate.share() >= FACTORIAL_COVERAGE_LEAST, "{rate}");
    }
    assert!(found.false_strong.share() <= STRONG_FALSE_MOST, "{}", found.false_strong);
}

#[test]
fn the_planted_limit_of_a_transfer_is_named() {
    for planted in PLANTED {
        for noise in [0.01, 0.03] {
            let found = paths(planted, 9, noise, 600, 3);
            let (right, wrong) = (found.right.share(), found.wrong.share());
            assert!(right >= BOTTLENECK_FOUND_LEAST, "{planted:?} at {noise}: {}", found.right);
            assert!(wrong <= BOTTLENECK_WRONG_MOST, "{planted:?} at {noise}: {}", found.wrong);
        }
    }
    // The claim is not empty: what no round was measured of is not named.
    assert_eq!(paths(PLANTED[0], 5, 0.01, 50, 3).right.hits, 0);
}

#[test]
fn commands_in_turn_are_told_apart_where_they_differ() {
    for slope in [-1.0, 0.0] {
        let equal = in_turn(0.0, slope, 400, 17);
        assert!(equal.different.share() <= IN_TURN_DIFFERENT_MOST, "{slope}: {equal:?}");
    }
    let planted = in_turn(0.02, -1.0, 200, 18);
    assert!(planted.different.share() >= IN_TURN_FOUND_LEAST, "{planted:?}");
}

#[test]
fn commands_at_once_are_told_apart_beside_others() {
    let equal = disturbed(0.0, true, 400, 17);
    assert!(equal.different.share() <= AT_ONCE_DIFFERENT_MOST, "{equal:?}");
    let planted = disturbed(0.02, true, 200, 18);
    assert!(planted.different.share() >= AT_ONCE_FOUND_LEAST, "{planted:?}");
    assert!(planted.covered.share() >= AT_ONCE_COVERAGE_LEAST, "{planted:?}");
}
