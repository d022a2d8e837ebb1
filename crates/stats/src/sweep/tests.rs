//! Sweeps whose answer is known.

use fastrand::Rng;

use super::*;
use crate::noise::normal;
use crate::ranks::shuffled;

/// Looks at a curve of levels (as logarithms), in random order with the control between.
fn looks(levels: &[f64], control: usize, passes: u32, noise: f64, seed: u64) -> Vec<Look> {
    let mut rng = Rng::with_seed(seed);
    let mut looks = Vec::new();
    for pass in 0..passes {
        let mut order = shuffled(levels.len(), &mut rng);
        order.insert(0, control);
        for cell in order {
            let level = levels.get(cell).copied().unwrap_or(0.0);
            let value = 3.0 * (level + noise * normal(&mut rng)).exp();
            looks.push(Look { cell, pass, at: 100.0 * looks.len() as f64, value });
        }
    }
    looks
}

fn curve(columns: usize) -> Shape {
    Shape { columns, rows: 1 }
}

fn asked(shape: Shape, control: usize, looks: &[Look]) -> Option<Surface> {
    surface(&Question { shape, control, looks, better: Better::Lower, seed: 1 })
}

fn exact(levels: &[f64]) -> Vec<Option<Level>> {
    let interval = |ln| Interval { low: ln, high: ln };
    levels.iter().map(|ln| Some(Level { ln: *ln, interval: interval(*ln), error: 0.01, n: 4 })).collect()
}

/// min_granularity over 1 to 30 ms as the published investigation tells it: steep fall, ragged, flat.
#[test]
fn the_published_regions() {
    let levels = [0.6, 0.42, 0.25, 0.08, -0.02, 0.09, -0.03, 0.08, -0.04, 0.07, 0.0, 0.0, 0.0, 0.0, 0.0];
    let shown = asked(curve(15), 15, &looks(&levels, 15, 5, 0.01, 3)).expect("five passes");
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
    let mut with = looks(&levels, 1, 6, 0.005, 5);
    let half = with.len() / 2 + 2;
    with[half..].iter_mut().for_each(|look| look.value *= 1.2);
    with[7].value *= 1.5;
    let shown = asked(curve(4), 1, &with).expect("six passes");
    assert!((shown.drift - 0.2).abs() < 0.02 && shown.aside == 1, "{} {}", shown.drift, shown.aside);
    let ln = |cell: usize| shown.levels[cell].expect("looks").ln;
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

/// As the map of a real 6.1 kernel: a fall over the first rows, then a level band, in every column. Lines alone would take
/// the band for the fall's end.
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
    let good = looks(&[0.0, 0.1, 0.2], 0, 3, 0.01, 1);
    assert!(asked(curve(3), 0, &good).is_some());
    // The control was never visited; there is but one cell; each cell was seen once only.
    assert_eq!(asked(curve(3), 3, &good), None);
    let one: Vec<Look> = good.iter().filter(|look| look.cell == 0).copied().collect();
    assert_eq!(asked(curve(3), 0, &one), None);
    let once: Vec<Look> = good.iter().filter(|look| look.pass == 0).skip(1).copied().collect();
    assert_eq!(asked(curve(3), 0, &once), None);
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        let mut more = good.clone();
        more.push(Look { cell: 1, pass: 9, at: 1e9, value: bad });
        assert_eq!(asked(curve(3), 0, &more), asked(curve(3), 0, &good));
    }
    // Equal values have no noise at all, and differ from nothing.
    let equal: Vec<Look> = good.iter().map(|look| Look { value: 2.0, ..*look }).collect();
    let shown = asked(curve(3), 0, &equal).expect("looks");
    assert!(!shown.matters.yes && shown.noise == 0.0 && shown.regions.len() == 1);
}

#[test]
fn trade_offs() {
    let spot = |cell: usize, a: f64, b: f64| Spot {
        cell,
        values: [a, b],
        intervals: [a, b].map(|value| Interval { low: value - 1.0, high: value + 1.0 }),
    };
    let both = [Better::Lower, Better::Higher];
    // 1 is worse in both; 2 is worse in one and no better in the other than noise explains; 3 trades.
    let spots = [spot(0, 10.0, 50.0), spot(1, 20.0, 40.0), spot(2, 15.0, 50.5), spot(3, 30.0, 90.0)];
    assert_eq!(pareto(&spots, both), [0, 3]);
    // Within the noise nothing is ruled out.
    assert_eq!(pareto(&[spot(0, 10.0, 50.0), spot(1, 10.9, 49.5)], both), [0, 1]);
    assert!(pareto(&[spot(0, 10.0, f64::NAN)], both).is_empty());
    assert_eq!(pareto(&spots, [Better::Neither, Better::Higher]), [3]);
}
