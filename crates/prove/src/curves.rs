//! The table on what is read off curves.

use prove::proof::{CLAIMS, FINE_LADDER_FALSE_MOST, LADDER_FALSE_MOST, LADDER_FOURFOLD_LEAST, Rate, ladders};

use super::statistics::{at_least, at_most};
use super::{Section, measured, table};

pub const SECTIONS: &[Section] =
    &[Section { name: "ladders", title: "Caches read off ladders", run: caches }];

const TRIALS: usize = 2000;

fn caches() -> String {
    let cells: Vec<(u32, f64)> =
        [1, 2, 4].iter().flat_map(|per| [0.01, 0.03].map(|noise| (*per, noise))).collect();
    let found = measured(&cells, |&(per_octave, noise)| ladders(per_octave, noise, TRIALS, 12));
    let rows: Vec<Vec<String>> = cells
        .iter()
        .zip(&found)
        .map(|((per_octave, noise), seen)| {
            let mut row = vec![per_octave.to_string(), format!("{} %", 100.0 * noise)];
            let rates = [seen.counted, seen.found, seen.near, seen.settled, seen.memory, seen.last_wrong];
            row.extend(rates.iter().chain(&seen.claims).map(Rate::to_string));
            row
        })
        .collect();
    let of = |fine: bool| -> Vec<Rate> {
        let chosen = cells.iter().zip(&found).filter(|((per_octave, _), _)| (*per_octave > 1) == fine);
        chosen.map(|(_, seen)| seen.last_wrong).collect()
    };
    let fourfold: Vec<Rate> = found.iter().flat_map(|seen| [seen.claims[0], seen.claims[3]]).collect();
    let claims = CLAIMS.map(|factor| format!("claim × {factor} found wrong"));
    let header = [
        "points an octave",
        "noise",
        "levels counted rightly",
        "caches found",
        "size within 20 %",
        "memory reached",
        "its latency within 10 %",
        "true claim called wrong",
        &claims[0],
        &claims[1],
        &claims[2],
        &claims[3],
    ];
    [
        table(&header, &rows),
        at_most("True claims called wrong, one point an octave", &of(false), LADDER_FALSE_MOST),
        at_most("True claims called wrong, two and four", &of(true), FINE_LADDER_FALSE_MOST),
        at_least("Claims of four times or a quarter found wrong", &fourfold, LADDER_FOURFOLD_LEAST),
    ]
    .concat()
}
