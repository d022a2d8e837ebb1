//! The table on who keeps CPUs from running.

use prove::proof::{Attributed, PAUSES_RIGHT_LEAST, PAUSES_WRONG_MOST, Rate, TROUBLES, attributed};

use super::statistics::{at_least, at_most};
use super::{Section, measured, table};

pub const SECTIONS: &[Section] = &[Section { name: "pauses", title: "Who pauses CPUs", run: tables }];

/// Machines of each kind.
const MACHINES: usize = 500;

fn tables() -> String {
    let told = measured(&TROUBLES, |trouble| attributed(*trouble, MACHINES, 11));
    let rate = |rate: Rate| if rate.of > 0 { rate.to_string() } else { "–".to_string() };
    let row = |(trouble, told): (&prove::proof::PauseTrouble, &Attributed)| {
        vec![
            trouble.words().to_string(),
            rate(told.right),
            rate(told.pairs),
            rate(told.wrong),
            rate(told.machines_wrong),
        ]
    };
    let rows: Vec<Vec<String>> = TROUBLES.iter().zip(&told).map(row).collect();
    let all = |of: fn(&Attributed) -> Rate| -> Vec<Rate> { told.iter().map(of).collect() };
    [
        table(
            &["machine", "CPUs named right", "pairs named right", "wrong claims", "machines with one"],
            &rows,
        ),
        at_least("CPUs named right", &all(|told| told.right), PAUSES_RIGHT_LEAST),
        at_least("Pairs named right", &all(|told| told.pairs), PAUSES_RIGHT_LEAST),
        at_most("Machines with a wrong claim", &all(|told| told.machines_wrong), PAUSES_WRONG_MOST),
    ]
    .concat()
}
