//! The table on hosts beside their peers: simulated fleets whose truth is known.

use prove::fleets::{Fault, Seen, fleets};

use crate::{Section, measured, table};

pub const SECTIONS: &[Section] = &[Section { name: "peers", title: "Hosts beside their peers", run: peers }];

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
    let rows: Vec<Vec<String>> = sizes
        .iter()
        .zip(found.chunks(faults.len()))
        .map(|(hosts, seen)| {
            let healthy: Seen = seen[0];
            let mut row = vec![
                hosts.to_string(),
                format!("{:.3} %", 100.0 * healthy.false_hosts.share()),
                healthy.false_fleets.to_string(),
            ];
            row.extend(seen[1..].iter().map(|one| one.found.to_string()));
            row
        })
        .collect();
    table(
        &[
            "hosts",
            "healthy hosts flagged",
            "healthy fleets with one",
            "found: a part 5 % slow",
            "a part 10 % slow",
            "one benchmark 5 % slow",
            "one benchmark 10 % slow",
        ],
        &rows,
    )
}
