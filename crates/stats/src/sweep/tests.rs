//! Sweeps whose answer is known.

use fastrand::Rng;

use super::*;
use crate::noise::normal;
use crate::ranks::shuffled;

/// Observations at a curve of levels (as logarithms), in random order with the control between.
fn observations(levels: &[f64], control: usize, passes: u32, noise: f64, seed: u64) -> Vec<Observation> {
    let mut rng = Rng::with_seed(seed);
    let mut observations = Vec::new();
    for pass in 0..passes {
        let mut order = shuffled(levels.len(), &mut rng);
        order.insert(0, control);
        for cell in order {
            let level = levels.get(cell).copied().unwrap_or(0.0);
            let value = 3.0 * (level + noise * normal(&mut rng)).exp();
            observations.push(Observation { cell, pass, at: 100.0 * observations.len() as f64, value });
        }
    }
    observations
}

fn curve(columns: usize) -> Shape {
    Shape { columns, rows: 1 }
}

fn asked(shape: Shape, control: usize, observations: &[Observation]) -> Option<Surface> {
    surface(&Question {
        shape,
        knobs: [Knob::default(); 2],
        control,
        observations,
        better: Better::Lower,
        seed: 1,
    })
}

fn exact(levels: &[f64]) -> Vec<Option<Level>> {
    let interval = |ln| Interval { low: ln, high: ln };
    levels.iter().map(|ln| Some(Level { ln: *ln, interval: interval(*ln), error: 0.01, n: 4 })).collect()
}

/// min_granularity over 1 to 30 ms as the published investigation reports it: steep fall, ragged,
/// flat.
#[test]
fn the_published_regions() {
    let levels = [0.6, 0.42, 0.25, 0.08, -0.02, 0.09, -0.03, 0.08, -0.04, 0.07, 0.0, 0.0, 0.0, 0.0, 0.0];
    let shown = asked(curve(15), 15, &observations(&levels, 15, 5, 0.01, 3)).expect("five passes");
    assert!(shown.matters.yes && shown.matters.p < 0.01, "{:?}", shown.matters);
    let kinds: Vec<Kind> = shown.regions.iter().map(|region| region.kind).collect();
    assert_eq!(kinds, [Kind::Fall, Kind::Ragged, Kind::Flat], "{:?}", shown.regions);
    assert_eq!(shown.regions[0].direction, Some(Direction { axis: 0, rises: false }));
    let sizes: Vec<usize> = shown.regions.iter().map(|region| region.cells.len()).collect();
    assert!((4..=5).contains(&sizes[0]) && (4..=5).contains(&sizes[2]), "{sizes:?}");
    assert_eq!(shown.best.first(), Some(&8));
    assert!(shown.best.contains(&6) && !shown.best.contains(&0));
    assert!((shown.control_level / 3.0 - 1.0).abs() < 0.02 && (0.006..0.015).contains(&shown.noise));
    assert_eq!((shown.drift, shown.aside, shown.levels.len()), (0.0, 0, 16));
}

#[test]
fn a_step_of_the_machine_is_taken_out() {
    let levels = [0.0, 0.05, 0.1, 0.1];
    let mut with = observations(&levels, 1, 6, 0.005, 5);
    let half = with.len() / 2 + 2;
    with[half..].iter_mut().for_each(|one| one.value *= 1.2);
    with[7].value *= 1.5;
    let shown = asked(curve(4), 1, &with).expect("six passes");
    assert!((shown.drift - 0.2).abs() < 0.02 && shown.aside == 1, "{} {}", shown.drift, shown.aside);
    let ln = |cell: usize| shown.levels[cell].expect("observations").ln;
    assert!((ln(0) + 0.05).abs() < 0.012 && ln(1) == 0.0 && (ln(3) - 0.05).abs() < 0.012);
    assert_eq!(shown.best, [0]);
}

#[test]
fn pieces_of_exact_lines() {
    let pieces = |levels: &[f64]| -> Vec<(Kind, usize, usize, Option<bool>)> {
        segments(&exact(levels)).iter().map(|s| (s.kind, s.from, s.to, s.rises)).collect()
    };
    assert_eq!(pieces(&[0.0; 9]), [(Kind::Flat, 0, 8, None)]);
    assert_eq!(pieces(&[0.0, 0.1, 0.2, 0.3, 0.4]), [(Kind::Fall, 0, 4, Some(true))]);
    let halves = [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5];
    assert_eq!(pieces(&halves), [(Kind::Flat, 0, 3, None), (Kind::Flat, 4, 7, None)]);
    // One odd cell belongs to what surrounds it.
    assert_eq!(pieces(&[0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0]), [(Kind::Flat, 0, 7, None)]);
    let ragged = [0.0, 0.2, 0.0, 0.2, 0.0, 0.2];
    assert_eq!(pieces(&ragged), [(Kind::Ragged, 0, 5, None)]);
    assert_eq!(pieces(&[1.0]), [(Kind::Flat, 0, 0, None)]);
    assert!(pieces(&[]).is_empty());
    let mut gaps = exact(&[0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
    (gaps[0], gaps[2]) = (None, None);
    let found = segments(&gaps);
    assert_eq!((found.len(), found[0].kind, found[0].from, found[0].to), (1, Kind::Fall, 1, 5));
}

#[test]
fn regions_of_an_exact_map() {
    // Falls along the rows' knob above, flat below.
    let shape = Shape { columns: 4, rows: 8 };
    let levels: Vec<f64> = (0..32_usize).map(|cell| 0.2 * 4_usize.saturating_sub(cell / 4) as f64).collect();
    let found = regions::regions(shape, &exact(&levels));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].direction, Some(Direction { axis: 1, rises: false }));
    assert!((16..=20).contains(&found[0].cells.len()) && found[1].kind == Kind::Flat);
    assert_eq!(found[0].cells.len() + found[1].cells.len(), 32);
}

/// As the map of a real 6.1 kernel: a fall over the first rows, then a level band, in every column.
/// Lines alone would take the band for the fall's end.
#[test]
fn a_fall_does_not_swallow_what_lies_flat_at_its_end() {
    let shape = Shape { columns: 6, rows: 6 };
    let rows = [0.12, 0.0, -0.1, -0.2, -0.2, -0.2];
    let mut rng = Rng::with_seed(9);
    let noisy: Vec<f64> = (0..36).map(|cell| rows[cell / 6] + 0.01 * normal(&mut rng)).collect();
    let found = regions::regions(shape, &exact(&noisy));
    let fall = Region {
        kind: Kind::Fall,
        direction: Some(Direction { axis: 1, rises: false }),
        cells: (0..18).collect(),
    };
    let flat = Region { kind: Kind::Flat, direction: None, cells: (18..36).collect() };
    assert_eq!(found, [fall, flat]);
}

#[test]
fn level_areas_end_at_a_step() {
    let shape = Shape { columns: 6, rows: 4 };
    let mut rng = Rng::with_seed(4);
    let noisy: Vec<f64> = (0..24)
        .map(|cell| if cell % 6 < 3 { 0.0 } else { 0.2 })
        .map(|level| level + 0.01 * normal(&mut rng))
        .collect();
    let found = regions::regions(shape, &exact(&noisy));
    let half = |first: usize| (0..24).filter(|cell| cell % 6 / 3 == first).collect::<Vec<usize>>();
    let cells: Vec<Vec<usize>> = found.iter().map(|region| region.cells.clone()).collect();
    assert_eq!(cells, [half(0), half(1)], "{found:?}");
    assert!(found.iter().all(|region| region.kind == Kind::Flat));
    // One odd cell is no region, whatever is around it.
    let mut odd = noisy.clone();
    odd[7] = 0.5;
    let found = regions::regions(shape, &exact(&odd));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!(asked(curve(3), 0, &[]), None);
    let good = observations(&[0.0, 0.1, 0.2], 0, 3, 0.01, 1);
    assert!(asked(curve(3), 0, &good).is_some());
    // The control was never visited; there is but one cell; each cell was seen once only.
    assert_eq!(asked(curve(3), 3, &good), None);
    let one: Vec<Observation> = good.iter().filter(|one| one.cell == 0).copied().collect();
    assert_eq!(asked(curve(3), 0, &one), None);
    let once: Vec<Observation> = good.iter().filter(|one| one.pass == 0).skip(1).copied().collect();
    assert_eq!(asked(curve(3), 0, &once), None);
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        let mut more = good.clone();
        more.push(Observation { cell: 1, pass: 9, at: 1e9, value: bad });
        assert_eq!(asked(curve(3), 0, &more), asked(curve(3), 0, &good));
    }
    // Equal values have no noise at all, and differ from nothing.
    let equal: Vec<Observation> = good.iter().map(|one| Observation { value: 2.0, ..*one }).collect();
    let shown = asked(curve(3), 0, &equal).expect("observations");
    assert!(!shown.matters.yes && shown.noise == 0.0 && shown.regions.len() == 1);
}

/// A sweep of slice × policy as it was met: batch faster in four of five columns, and no two cells
/// distinguished.
#[test]
fn the_question_that_was_asked_comes_before_single_cells() {
    let per_cent = [1.4, 6.6, 3.1, 2.2, 5.0, -4.9, -6.1, -3.7, 1.2, -7.3];
    let levels = per_cent.map(|change: f64| (1.0 + change / 100.0).ln());
    let mut observations = observations(&levels, 10, 6, 0.09, 11);
    // The cells' means are those that were seen.
    for (cell, level) in levels.iter().enumerate() {
        let own = |one: &&Observation| one.cell == cell;
        let mean = observations.iter().filter(own).map(|one| (one.value / 3.0).ln()).sum::<f64>() / 6.0;
        let to = (level - mean).exp();
        observations.iter_mut().filter(|one| one.cell == cell).for_each(|one| one.value *= to);
    }
    let slices = [0.0, 1.0, 2.0, 3.0, 4.0];
    let knobs = [Knob { before: 0, places: Some(&slices) }, Knob::default()];
    let shape = Shape { columns: 5, rows: 2 };
    let question =
        Question { shape, knobs, control: 10, observations: &observations, better: Better::Lower, seed: 1 };
    let shown = surface(&question).expect("six passes");
    let asked: Vec<(Hypothesis, bool)> =
        shown.test_results.iter().map(|own| (own.hypothesis, own.is_yes())).collect();
    let policy = Hypothesis::Main { axis: 1 };
    let silent = [Hypothesis::Main { axis: 0 }, Hypothesis::Trend { axis: 0 }];
    let expected = [silent[0], silent[1], policy, Hypothesis::Interaction, Hypothesis::Any]
        .map(|own| (own, [policy, Hypothesis::Any].contains(&own)));
    assert_eq!(asked, expected, "{:?}", shown.test_results);
    let batch = shown.test_results[2].effects[1].expect("both rows");
    assert!((batch.value + 0.078).abs() < 0.002 && batch.interval().high < -0.02, "{batch:?}");
    assert_eq!(shown.test_results[2].effects[0].map(|other| other.value), Some(0.0));
    // Of single cells only a huge difference would have been reported, and none is.
    assert!(shown.matters.yes && shown.matters.p > 0.01 && shown.matters.floor > 0.25, "{:?}", shown.matters);
    let seen: Vec<f64> = [1, 2].map(|own| shown.test_results[own].floor.expect("a number")).to_vec();
    assert!(seen.iter().all(|seen| (0.05..0.13).contains(seen)), "{seen:?}");
}

#[test]
fn trends_go_by_the_places_of_values_and_interactions_are_no_main_effects() {
    let shape = Shape { columns: 4, rows: 2 };
    let ask = |levels: &[f64], places: &[f64]| {
        let observations = observations(levels, 8, 6, 0.01, 3);
        let knobs = [Knob { before: 1, places: Some(places) }, Knob::default()];
        let question = Question {
            shape,
            knobs,
            control: 8,
            observations: &observations,
            better: Better::Lower,
            seed: 1,
        };
        surface(&question).expect("six passes").test_results
    };
    let yes =
        |test_results: &[TestResult]| -> Vec<bool> { test_results.iter().map(TestResult::is_yes).collect() };
    // Named out of order: 2, 0, 3, 1.
    let rising = [0.2, 0.0, 0.3, 0.1, 0.2, 0.0, 0.3, 0.1];
    let found = ask(&rising, &[2.0, 0.0, 3.0, 1.0]);
    assert_eq!(yes(&found), [true, true, false, false, true], "{found:?}");
    let trend = found[1].effects[0].expect("a line");
    assert!((trend.value - 0.3).abs() < 0.02, "{trend:?}");
    assert!((found[0].effects[2].expect("a value").value - 0.3).abs() < 0.02, "against the second value");
    // One row rises where the other falls.
    let crossing = [0.15, 0.05, -0.05, -0.15, -0.15, -0.05, 0.05, 0.15];
    let found = ask(&crossing, &[0.0, 1.0, 2.0, 3.0]);
    assert_eq!(yes(&found), [false, false, false, true, true], "{found:?}");
}

#[test]
fn trade_offs() {
    let spot = |cell: usize, a: f64, b: f64| ParetoPoint {
        cell,
        values: [a, b],
        intervals: [a, b].map(|value| Interval { low: value - 1.0, high: value + 1.0 }),
    };
    let both = [Better::Lower, Better::Higher];
    // 1 is worse in both; 2 is worse in one and no better in the other than noise explains; 3
    // trades.
    let spots = [spot(0, 10.0, 50.0), spot(1, 20.0, 40.0), spot(2, 15.0, 50.5), spot(3, 30.0, 90.0)];
    assert_eq!(pareto(&spots, both), [0, 3]);
    // Within the noise nothing is ruled out.
    assert_eq!(pareto(&[spot(0, 10.0, 50.0), spot(1, 10.9, 49.5)], both), [0, 1]);
    assert!(pareto(&[spot(0, 10.0, f64::NAN)], both).is_empty());
    assert_eq!(pareto(&spots, [Better::Neither, Better::Higher]), [3]);
}

/// A map of 6 × 4 with its observations: levels by row and column, the control beside it or in it.
fn map_looks(level: impl Fn(usize, usize) -> f64, control: usize, noise: f64, seed: u64) -> Vec<Observation> {
    let levels: Vec<f64> = (0..24).map(|cell| level(cell / 6, cell % 6)).collect();
    observations(&levels, control, 8, noise, seed)
}

fn advised(control: usize, target: &[Observation], response: &[Observation]) -> Advice {
    let shape = Shape { columns: 6, rows: 4 };
    let question = |observations| Question {
        shape,
        knobs: [Knob::default(); 2],
        control,
        observations,
        better: Better::Lower,
        seed: 1,
    };
    let questions = [question(target), question(response)];
    let [target, response] = questions.each_ref().map(|own| surface(own).expect("eight passes"));
    advice((&questions[0], &target), Some((&questions[1], &response)))
}

#[test]
fn throughput_response_and_a_compromise_each_have_their_area() {
    // The left third is fastest and responds late; two by two cells are faster at no cost; the top
    // row responds sooner.
    let time = |row: usize, column: usize| match (row, column) {
        (_, 0 | 1) => -0.2,
        (1 | 2, 3 | 4) => -0.08,
        _ => 0.0,
    };
    let late = |row: usize, column: usize| match (row, column) {
        (_, 0 | 1) => 0.5,
        (3, _) => -0.15,
        _ => 0.0,
    };
    let found = advised(24, &map_looks(time, 24, 0.02, 3), &map_looks(late, 24, 0.02, 4));
    let of = |advised: Option<Advised>| advised.map(|advised| (advised.area.columns, advised.area.rows));
    // Noise may leave out a row at its edge, and adds nothing.
    let (columns, rows) = of(found.target).expect("an area");
    assert!(columns == [0, 1] && rows[0] < rows[1], "{rows:?}");
    assert_eq!(of(found.response), Some(([2, 5], [3, 3])));
    assert_eq!(of(found.both), Some(([3, 4], [1, 2])));
    let both = found.both.expect("a compromise");
    assert!(both.gain.interval.contains(-0.08) && both.gain.interval.high < 0.0, "{both:?}");
    assert!(both.other.is_some_and(|other| other.interval.contains(0.0)), "{both:?}");
    assert!([9, 10, 15, 16].contains(&both.cell), "{both:?}");
}

#[test]
fn what_is_sure_of_no_gain_is_left_as_it_is() {
    let (flat, noisy) =
        (map_looks(|_, _| 0.0, 24, 0.02, 5), map_looks(|row, _| -0.05 * row as f64, 24, 0.6, 6));
    assert_eq!(advised(24, &flat, &flat), Advice::default());
    assert_eq!(advised(24, &noisy, &flat), Advice::default());
    // All settings are better than the one that was there, which is none of them.
    let all: Vec<Observation> = flat
        .iter()
        .map(|one| Observation { value: one.value * if one.cell == 24 { 1.3 } else { 1.0 }, ..*one })
        .collect();
    let found = advised(24, &all, &flat).target.expect("a gain");
    assert_eq!((found.area.columns, found.area.rows), ([0, 5], [0, 3]));
    // In the grid, the setting that was there is no part of what is advised.
    let inside = map_looks(|_, column| if column > 2 { -0.2 } else { 0.0 }, 4, 0.02, 7);
    let found = advised(4, &inside, &flat);
    assert!(found.target.is_none(), "it is as good as the best: {found:?}");
}

#[test]
fn what_would_be_seen_needs_no_answers_and_falls_with_the_looks() {
    let shape = Shape { columns: 6, rows: 4 };
    let observations = map_looks(|row, _| 0.1 * row as f64, 24, 0.05, 8);
    let ask = |observations| {
        let question = Question {
            shape,
            knobs: [Knob::default(); 2],
            control: 24,
            observations,
            better: Better::Lower,
            seed: 1,
        };
        let quick = detectable_effect(&question).expect("a number");
        assert_eq!(Some(quick), surface(&question).and_then(|shown| shown.detectable_effect()));
        quick
    };
    let all = ask(&observations);
    let half: Vec<Observation> = observations.iter().filter(|one| one.pass < 4).copied().collect();
    assert!((1.2..1.7).contains(&(ask(&half) / all)), "{all}");
    assert!((0.02..0.1).contains(&all), "{all}");
}
