//! The table on groups of CPUs and siblings.

use prove::proof::{Guest, Kind, Outcomes, Rate, TOPOLOGY_WRONG_MOST, grouped, paired};

use super::statistics::{at_most, row, titled};
use super::{Section, measured};

pub const SECTIONS: &[Section] = &[Section {
    name: "topology",
    title: "Groups of CPUs and siblings on simulated machines",
    run: topology,
}];

const TRIALS: usize = 400;
/// Of many CPUs a few stand for all: 512 have 130 thousand pairs.
const LARGE_TRIALS: usize = 20;
const LARGEST_TRIALS: usize = 2;

/// Not the one on which the thresholds were chosen (7).
const SEED: u64 = 20_261_121;

const NOISES: [f64; 4] = [0.01, 0.05, 0.1, 0.2];
const CPUS: [usize; 7] = [2, 4, 6, 8, 16, 64, 512];

type Judge = fn(Guest, usize, u64) -> Outcomes;

fn topology() -> String {
    let by_distance: (&str, Judge, &[Kind]) = ("line transfer", grouped, &Kind::BY_DISTANCE);
    let by_slowdown: (&str, Judge, &[Kind]) = ("slowdown", paired, &Kind::BY_SLOWDOWN);
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for (what, judge, kinds) in [by_distance, by_slowdown] {
        for kind in kinds {
            for (name, guests) in groups(*kind) {
                let told = measured(&guests, |guest| {
                    let trials = match guest.cpus {
                        0..=16 => TRIALS,
                        17..=64 => LARGE_TRIALS,
                        _ => LARGEST_TRIALS,
                    };
                    judge(*guest, trials, SEED)
                });
                let sum = told.into_iter().fold(Outcomes::default(), Outcomes::and);
                let mut row = row![what, kind.name(), name, sum.right.of];
                row.extend([sum.right, sum.part, sum.cannot_tell, sum.wrong].iter().map(Rate::to_string));
                wrong.push(sum.wrong);
                rows.push(row);
            }
        }
    }
    let header = "measured | truth | CPUs, noise, stolen values | machines | right | part of it | cannot tell \
         | wrong";
    [titled(header, rows), at_most("Machines with a wrong report", &wrong, TOPOLOGY_WRONG_MOST)].concat()
}

/// What stands in one row each: 2 CPUs; few and many of them at each noise; with stolen values.
fn groups(kind: Kind) -> Vec<(String, Vec<Guest>)> {
    let guest = |cpus: usize, noise: f64, stolen: f64| Guest { kind, cpus, noise, stolen, visits: 10 };
    let of = |cpus: &[usize], noise: f64, stolen: f64| -> Vec<Guest> {
        let enough =
            |cpus: &&usize| **cpus >= 8 || !matches!(kind, Kind::SmtTwoPackages | Kind::TwoPackagesOfTwo);
        cpus.iter().filter(enough).map(|cpus| guest(*cpus, noise, stolen)).collect()
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut rows: Vec<(String, Vec<Guest>)> = Vec::new();
    rows.push((
        "2, 1 to 20 %, 10 %".into(),
        NOISES.iter().flat_map(|noise| of(&CPUS[..1], *noise, 0.1)).collect(),
    ));
    for noise in NOISES {
        for (stolen, words) in [(0.0, "none"), (0.1, "10 %")] {
            let guests = of(&CPUS[1..], noise, stolen);
            let least = guests.first().map_or(0, |guest| guest.cpus);
            rows.push((format!("{least} to 512, {}, {words}", percent(noise)), guests));
        }
    }
    rows.retain(|(_, guests)| !guests.is_empty());
    rows
}
