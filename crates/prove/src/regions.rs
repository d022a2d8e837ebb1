//! The tables on causes of slow memory, by simulated hosts.

use prove::proof::{
    Host, Named, REGION_FALSE_MOST, REGION_NAMED_LEAST, Rate, alike, farther, heard, planted,
};
use stats::regions::Cause;

use super::statistics::{at_least, at_most, row, titled};
use super::{Section, measured};

pub const SECTIONS: &[Section] =
    &[Section { name: "regions", title: "Causes of slow memory, simulated", run: simulated }];

/// Simulated hosts a cell, and without a cause.
const HOSTS: usize = 1_000;
const ALIKE: usize = 10_000;

fn sizes(cause: Cause) -> [f64; 5] {
    match cause {
        Cause::Translation => [5.0, 10.0, 14.0, 20.0, 40.0],
        Cause::Distance | Cause::Transfer => [1.1, 1.2, 1.25, 1.33, 1.5],
    }
}

fn simulated() -> String {
    [causes(), "\n".to_string(), neighbours(), "\n".to_string(), pages()].concat()
}

fn causes() -> String {
    let cells: Vec<(Cause, f64)> =
        Cause::ALL.iter().flat_map(|cause| sizes(*cause).map(|size| (*cause, size))).collect();
    let found = measured(&cells, |(cause, size)| planted(Host::USUAL, *cause, *size, HOSTS, 7));
    let parts: Vec<u64> = (0..4).collect();
    let none =
        measured(&parts, |part| alike(ALIKE / 4, 100 + part)).into_iter().fold(Named::default(), Named::and);
    let above = cells.iter().zip(&found).filter(|((cause, size), _)| sizes(*cause)[2..].contains(size));
    let above: Vec<Rate> = above.map(|(_, named)| named.right).collect();
    let wrong: Vec<Rate> = found.iter().map(|named| named.wrong).chain([none.wrong]).collect();
    [
        titled(
            "cause, in a quarter of 16 regions, 18 looks each | named | another named | none named",
            cells.iter().zip(&found).map(|((cause, size), named)| of_cause(*cause, *size, named)),
        ),
        format!("\nOf {ALIKE} hosts of any kind without a cause {} have none named.\n\n", none.none),
        at_least("Causes right above their limits named", &above, REGION_NAMED_LEAST),
        at_most("Causes named that are not there", &wrong, REGION_FALSE_MOST),
    ]
    .concat()
}

fn neighbours() -> String {
    let cells = [(0.0, 1.0, 1.0), (0.3, 1.1, 1.0), (0.3, 1.3, 0.5), (0.35, 1.3, 1.0), (0.5, 1.3, 3.0)];
    let found = measured(&cells, |(share, slower, lasts)| heard(*share, *slower, *lasts, HOSTS, 9));
    let rows = cells.iter().zip(&found).map(|((share, slower, lasts), heard)| {
        let what = format!("{:.0} % of the time, {slower} times, for {lasts} s", share * 100.0);
        row![what, heard.named, heard.quiet]
    });
    let above: Vec<Rate> = found[2..].iter().map(|heard| heard.named).collect();
    [
        titled("other guest, in half a minute | named | reported as absent", rows),
        at_least("Neighbours of more than 20 % named", &above, REGION_NAMED_LEAST),
        at_most("Neighbours named that are not there", &[found[0].named], REGION_FALSE_MOST),
    ]
    .concat()
}

/// Huge pages that lie farther than others of their region.
fn pages() -> String {
    let cells = [
        (0.0, 1.0, 0.02),
        (0.0, 1.0, 0.06),
        (0.1, 1.1, 0.02),
        (0.02, 1.45, 0.02),
        (0.3, 1.3, 0.02),
        (0.6, 1.45, 0.04),
    ];
    let found = measured(&cells, |(share, times, noise)| farther(*share, *times, *noise, HOSTS, 13));
    let rows = cells.iter().zip(&found).map(|((share, times, noise), told)| {
        let what = if *share > 0.0 {
            format!("{:.0} % of the pages, {times} times", share * 100.0)
        } else {
            "none".to_string()
        };
        // A share below the limit is not reported.
        let covered = if *share > 0.0 && *times < 1.2 { "–".to_string() } else { told.covered.to_string() };
        row![format!("{what}; noise {:.0} %", noise * 100.0), told.named, covered]
    });
    let named: Vec<Rate> = found.iter().map(|told| told.named).collect();
    let above = "Huge pages more than 1.2 times as distant reported";
    [
        titled("distant huge pages, of 64 regions | reported | share inside the reported range", rows),
        at_least(above, &named[3..6], REGION_NAMED_LEAST),
        at_most("Reported where there are none, or for less", &named[..3], REGION_FALSE_MOST),
    ]
    .concat()
}

fn of_cause(cause: Cause, size: f64, named: &Named) -> Vec<String> {
    let words = match cause {
        Cause::Translation => format!("translation, {size} ns"),
        Cause::Distance => format!("distance, {size} times"),
        Cause::Transfer => format!("transfer, {size} times"),
    };
    row![words, named.right, named.wrong, named.none]
}
