//! The tables on comparisons: equal arms on noise whose truth is known, and real runs of this machine against each other.

use prove::proof::{Levels, SELF_DIFFERENT_MOST, Shape, equal_arms, equal_arms_while_drifting, equal_runs};

use crate::statistics::{FLOOR, TRIALS, at_most, pairs};
use crate::{Section, measured, table};

pub const SECTIONS: &[Section] = &[Section { name: "comparison", title: "Equal arms", run: comparisons }];

fn comparisons() -> String {
    let shapes = [
        ("log-normal 3 %, ICC 0.5, 10 × 5", Shape::shared(0.03, 0.5, 10, 5)),
        ("log-normal 3 %, ICC 0.3, 24 × 3", Shape::shared(0.03, 0.3, 24, 3)),
        ("log-normal 3 %, ICC 0, 40 × 1", Shape::shared(0.03, 0.0, 40, 1)),
        ("floor + exponential 3 %, 12 × 1", Shape::plain(FLOOR, 12, 1)),
        ("floor + exponential 3 %, 30 × 1", Shape::plain(FLOOR, 30, 1)),
    ];
    let found = measured(&shapes, |&(_, shape)| equal_arms(shape, 999, TRIALS, 12));
    let mut all = Vec::new();
    let rows: Vec<Vec<String>> = shapes
        .iter()
        .zip(&found)
        .map(|((name, _), arms)| {
            let rates = [
                arms.paired_interval,
                arms.paired_sign_test,
                arms.unpaired_interval,
                arms.mann_whitney,
                arms.means_interval,
            ];
            all.extend(rates);
            [name.to_string()].into_iter().chain(rates.iter().map(|rate| rate.to_string())).collect()
        })
        .collect();
    let cells = pairs(&[0.5, 0.9, 0.97], &[10, 20, 30]);
    let drifting = measured(&cells, |&(phi, n)| equal_arms_while_drifting(phi, n, TRIALS, 13));
    let while_drifting: Vec<Vec<String>> = cells
        .iter()
        .zip(&drifting)
        .map(|((phi, n), (blocks, paired))| {
            vec![format!("{phi}"), n.to_string(), blocks.to_string(), paired.to_string()]
        })
        .collect();
    all.extend(drifting.iter().map(|(_, paired)| *paired));
    let levels = [
        ("equal", Levels::Apart { times: 0.0 }),
        ("apart by half a process's spread", Levels::Apart { times: 0.5 }),
        ("by as much", Levels::Apart { times: 1.0 }),
        ("by one and a half (beyond what is claimed)", Levels::Apart { times: 1.5 }),
        ("flicker", Levels::Flicker),
    ];
    let cells = pairs(&levels, &[(0.01, 8), (0.05, 8), (0.05, 20), (0.2, 8)]);
    let runs = measured(&cells, |&((_, levels), (cv, n))| equal_runs(levels, cv, n, TRIALS, 14));
    let of_runs = cells.iter().zip(&runs).map(|(((name, _), (cv, n)), (naive, widened))| {
        vec![
            name.to_string(),
            format!("{} %", 100.0 * cv),
            n.to_string(),
            naive.to_string(),
            widened.to_string(),
        ]
    });
    let of_runs: Vec<Vec<String>> = of_runs.collect();
    let claimed =
        cells.iter().zip(&runs).filter(|(((_, levels), _), _)| *levels != Levels::Apart { times: 1.5 });
    all.extend(claimed.map(|(_, (_, widened))| *widened));
    let runs_header = [
        "levels of two runs",
        "spread",
        "processes",
        "unpaired (not used)",
        "with the levels of runs, 2 % margin",
    ];
    let header = [
        "equal arms called different",
        "paired interval",
        "sign test",
        "unpaired",
        "Mann-Whitney",
        "means (Fieller)",
    ];
    let drifting_header =
        ["drift, lag-1 correlation", "values an arm", "A…AB…B, unpaired (not used)", "ABBA, sign test"];
    format!(
        "{}\n{}\n{}{}",
        table(&header, &rows),
        table(&drifting_header, &while_drifting),
        table(&runs_header, &of_runs),
        at_most("Equal arms called different", &all, SELF_DIFFERENT_MOST)
    )
}
