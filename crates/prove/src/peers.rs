//! The table on hosts and their peers: simulated fleets whose truth is known.

use prove::daily::{GUEST, OWN, daily};
use prove::fleets::{Fault, Seen, fleets, large};

use crate::statistics::{row, titled};
use crate::{Section, measured};

pub const SECTIONS: &[Section] = &[
    Section { name: "peers", title: "Hosts beside their peers", run: peers },
    Section { name: "large-fleets", title: "Fleets of up to a million hosts", run: large_fleets },
    Section { name: "daily", title: "A host that is checked every day", run: checked_daily },
];

/// Hosts that are simulated for a cell of the table, at least.
const HOSTS: usize = 100_000;

/// Fleets with a slow host that are simulated for a cell.
const FAULTY: usize = 400;

fn peers() -> String {
    let faults = [Fault::None, Fault::Part(0.05), Fault::Part(0.1), Fault::Single(0.05), Fault::Single(0.1)];
    let sizes = [8, 10, 20, 50, 200, 1000];
    let cells: Vec<(usize, Fault)> = sizes.iter().flat_map(|n| faults.map(|fault| (*n, fault))).collect();
    let found = measured(&cells, |&(hosts, fault)| {
        let trials = if fault == Fault::None { HOSTS.div_ceil(hosts) } else { FAULTY };
        fleets(hosts, fault, trials, hosts as u64)
    });
    let rows = sizes.iter().zip(found.chunks(faults.len())).map(|(hosts, seen)| {
        let healthy: Seen = seen[0];
        let mut row =
            row![hosts, format!("{:.3} %", 100.0 * healthy.false_hosts.share()), healthy.false_fleets];
        row.extend(seen[1..].iter().map(|one| one.found.to_string()));
        row
    });
    titled(
        "hosts | healthy hosts flagged | healthy fleets with one | found: a part 5 % slow | a part 10 \
         % slow | one benchmark 5 % slow | one benchmark 10 % slow",
        rows,
    )
}

/// Hosts of a fleet, and fleets of that size.
const LARGE: [(usize, usize); 3] = [(10_000, 20), (100_000, 2), (1_000_000, 1)];

fn large_fleets() -> String {
    let row = |&(hosts, fleets): &(usize, usize)| {
        let all: Vec<_> = (0..fleets).map(|seed| large(hosts, seed as u64)).collect();
        let false_hosts: usize = all.iter().map(|seen| seen.false_hosts.hits).sum();
        let each = false_hosts as f64 / fleets as f64;
        let mut row =
            vec![hosts.to_string(), format!("{each:.1}"), format!("{:.2}", 1e4 * each / hosts as f64)];
        for at in 0..3 {
            let sum = |of: fn(&prove::fleets::Large) -> [prove::proof::Rate; 3]| {
                all.iter().map(|seen| of(seen)[at]).reduce(|one, other| one.and(other)).unwrap_or_default()
            };
            row.push(format!("{}, {}", sum(|seen| seen.parts), sum(|seen| seen.singles)));
        }
        row
    };
    let rows = LARGE.iter().map(row);
    titled(
        "hosts | healthy ones flagged a day | of 10,000 | found 5 % slow: a part, one benchmark | 10 \
         % slow | 20 % slow",
        rows,
    )
}

/// Years of one host each that are simulated for a row, and hosts among which a slow one is
/// searched for a week.
const YEARS: usize = 2_000;
const WEEKS: usize = 500;

fn checked_daily() -> String {
    let faults = [0.0, 0.05, 0.1, 0.2];
    // Cells of a hundred hosts, so that all CPUs have work.
    let cells: Vec<(bool, f64, usize)> = [false, true]
        .into_iter()
        .flat_map(|own| faults.map(|fault| (own, fault)))
        .flat_map(|(own, fault)| {
            let hosts = if fault == 0.0 { YEARS } else { WEEKS };
            (0..hosts / 100).map(move |part| (own, fault, part))
        })
        .collect();
    let found = measured(&cells, |&(own, fault, part)| {
        let days = if fault == 0.0 { 365 } else { 7 };
        daily(if own { OWN } else { GUEST }, fault, 100, days, part as u64)
    });
    let mut rows = Vec::new();
    for own in [false, true] {
        for fault in faults {
            let cells = cells.iter().zip(&found).filter(|(cell, _)| cell.0 == own && cell.1 == fault);
            let Some(seen) = cells.map(|(_, seen)| *seen).reduce(|one, other| one.and(other)) else {
                continue;
            };
            let mut row = vec![if own { OWN } else { GUEST }.name.to_string()];
            row.push(if fault == 0.0 {
                "none, a year".into()
            } else {
                format!("memory {:.0} %, a week", 100.0 * fault)
            });
            row.extend([seen.once, seen.confirmed].map(|rate| format!("{} of {}", rate.hits, rate.of)));
            row.push(seen.undecided.to_string());
            row.push(format!("{:.1}", 100.0 * seen.again as f64 / seen.undecided.of as f64));
            rows.push(row);
        }
    }
    titled(
        "where | slower | rejected by one run | by --confirmed | days undecided | further runs in 100 days",
        rows,
    )
}
