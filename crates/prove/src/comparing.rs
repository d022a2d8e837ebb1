//! The tables on comparisons: equal arms on noise whose truth is known, and pairs of simulated
//! runs.

use prove::proof::{
    AT_ONCE_COVERAGE_LEAST, AT_ONCE_DIFFERENT_MOST, AT_ONCE_FOUND_LEAST, CONTRAST_COVERAGE_LEAST, Contrasted,
    EQUAL_RUNS_DIFFERENT_MOST, EqualArms, FLICKER_DIFFERENT_MOST, IN_TURN_DIFFERENT_MOST,
    IN_TURN_FOUND_LEAST, InTurn, Levels, Rate, Runs, SELF_DIFFERENT_MOST, Shape, contrasted,
    different_by_processes, disturbed, equal_arms, equal_arms_while_drifting, in_turn,
};
use stats::contrast::Family;

use crate::statistics::{FLOOR, TRIALS, at_least, at_most, pairs, row, titled};
use crate::{Section, measured};

pub const SECTIONS: &[Section] = &[
    Section { name: "comparison", title: "Equal arms", run: comparisons },
    Section { name: "runs", title: "Two simulated runs", run: runs },
    Section { name: "in-turn", title: "Two commands, alternating", run: commands_in_turn },
    Section { name: "at-once", title: "Two commands at once", run: commands_at_once },
];

fn commands_in_turn() -> String {
    let cells = pairs(&[-1.0, 0.0], &[0.0, 0.01, 0.02, 0.05]);
    let found = measured(&cells, |&(slope, planted)| in_turn(planted, slope, TRIALS, 17));
    let row = |((slope, planted), found): (&(f64, f64), &InTurn)| {
        told_row(if *slope == 0.0 { "does not" } else { "as cycles do" }, *planted, found)
    };
    let rows = cells.iter().zip(&found).map(row);
    let of = |wanted: f64, slope: Option<f64>| -> Vec<Rate> {
        let own = |(own, planted): &(f64, f64)| *planted == wanted && slope.is_none_or(|slope| slope == *own);
        cells.iter().zip(&found).filter(|(cell, _)| own(cell)).map(|(_, found)| found.different).collect()
    };
    titled(
        "time follows the clock | B takes longer by | found different | the same within 2 % | covers | quads",
        rows,
    ) + &at_most("Equal commands found different", &of(0.0, None), IN_TURN_DIFFERENT_MOST)
        + &at_least("2 % found where time follows the clock", &of(0.02, Some(-1.0)), IN_TURN_FOUND_LEAST)
}

/// A row of the tables of two commands: how they ran, what was planted, what was found.
fn told_row(ran: &str, planted: f64, found: &InTurn) -> Vec<String> {
    row![
        ran,
        format!("{} %", 100.0 * planted),
        found.different,
        found.same,
        found.covered,
        format!("{:.1}", found.mean_quads)
    ]
}

fn commands_at_once() -> String {
    let cells: Vec<(bool, f64)> = [false, true]
        .into_iter()
        .flat_map(|once| [0.0, 0.01, 0.02, 0.05].map(|planted| (once, planted)))
        .collect();
    let found = measured(&cells, |&(at_once, planted)| disturbed(planted, at_once, TRIALS, 19));
    let row = |((at_once, planted), found): (&(bool, f64), &InTurn)| {
        told_row(if *at_once { "at once" } else { "alternating" }, *planted, found)
    };
    let rows = cells.iter().zip(&found).map(row);
    let of = |wanted: &dyn Fn(f64) -> bool, rate: &dyn Fn(&InTurn) -> Rate| -> Vec<Rate> {
        let own = |((at_once, planted), _): &(&(bool, f64), &InTurn)| *at_once && wanted(*planted);
        cells.iter().zip(&found).filter(own).map(|(_, found)| rate(found)).collect()
    };
    titled("both run | B takes longer by | found different | the same within 2 % | covers | quads", rows)
        + &at_most(
            "Equal commands at once found different",
            &of(&|planted| planted == 0.0, &|found| found.different),
            AT_ONCE_DIFFERENT_MOST,
        )
        + &at_least(
            "2 % found at once",
            &of(&|planted| planted == 0.02, &|found| found.different),
            AT_ONCE_FOUND_LEAST,
        )
        + &at_least("Covered at once", &of(&|_| true, &|found| found.covered), AT_ONCE_COVERAGE_LEAST)
}

fn comparisons() -> String {
    let shapes = [
        ("log-normal 3 %, ICC 0.5, 10 × 5", Shape::shared(0.03, 0.5, 10, 5)),
        ("log-normal 3 %, ICC 0.3, 24 × 3", Shape::shared(0.03, 0.3, 24, 3)),
        ("log-normal 3 %, ICC 0, 40 × 1", Shape::shared(0.03, 0.0, 40, 1)),
        ("floor + exponential 3 %, 12 × 1", Shape::plain(FLOOR, 12, 1)),
        ("floor + exponential 3 %, 30 × 1", Shape::plain(FLOOR, 30, 1)),
    ];
    let found = measured(&shapes, |&(_, shape)| equal_arms(shape, TRIALS, 12));
    let rates = |arms: &EqualArms| {
        [arms.paired_interval, arms.paired_sign_test, arms.mann_whitney, arms.means_interval]
    };
    let rows = shapes.iter().zip(&found).map(|((name, _), arms)| {
        [name.to_string()].into_iter().chain(rates(arms).iter().map(Rate::to_string)).collect()
    });
    let cells = pairs(&[0.5, 0.9, 0.97], &[10, 20, 30]);
    let drifting = measured(&cells, |&(phi, n)| equal_arms_while_drifting(phi, n, TRIALS, 13));
    let while_drifting = cells
        .iter()
        .zip(&drifting)
        .map(|((phi, n), (blocks, paired))| row![format!("{phi}"), n, blocks, paired]);
    let of_drifting = drifting.iter().map(|(_, paired)| *paired);
    let all: Vec<Rate> = found.iter().flat_map(rates).chain(of_drifting).collect();
    let header = "equal arms called different | paired interval | sign test | Mann-Whitney | means (Fieller)";
    let drifting_header =
        "drift, lag-1 correlation | values an arm | A…AB…B, Mann-Whitney (not used) | ABBA, sign test";
    format!(
        "{}\n{}{}",
        titled(header, rows),
        titled(drifting_header, while_drifting),
        at_most("Equal arms called different", &all, SELF_DIFFERENT_MOST)
    )
}

/// Pairs a cell: more than elsewhere, because the worst of many cells is compared with a tight
/// bound.
const PAIRS: usize = 10_000;

/// Processes a run.
const PROCESSES: [usize; 4] = [5, 7, 10, 20];

/// What is planted into the second run, a share.
const PLANTED: [f64; 3] = [0.0, 0.05, 0.10];

/// How far processes and equal runs lie apart, by what is taken for the family of the metric.
struct Kind {
    name: &'static str,
    family: Family,
    spread: f64,
    level: f64,
}

const fn kind(name: &'static str, family: Family, spread: f64, level: f64) -> Kind {
    Kind { name, family, spread, level }
}

const KINDS: [Kind; 4] = [
    kind("core-bound at a clock: 1 %, 0.6 %", Family::AtOneClock, 0.01, 0.006),
    kind("core-bound at a clock: 2 %, 0.6 %", Family::AtOneClock, 0.02, 0.006),
    kind("memory: 3 %, 2 %", Family::Memory, 0.03, 0.02),
    kind("other: 5 %, 2.5 %", Family::Other, 0.05, 0.025),
];

/// What pairs of runs of a kind come to.
fn of_kind(kind: &Kind, levels: Levels, processes: usize, planted: f64) -> Contrasted {
    let runs = Runs { family: kind.family, spread: kind.spread, levels, processes, planted };
    contrasted(runs, PAIRS, 14 + processes as u64)
}

fn runs() -> String {
    let cells: Vec<(&Kind, usize)> =
        KINDS.iter().flat_map(|kind| PROCESSES.map(|processes| (kind, processes))).collect();
    let as_stated = measured(&cells, |&(kind, processes)| {
        PLANTED.map(|planted| of_kind(kind, Levels::Apart(kind.level), processes, planted))
    });
    let rows = cells.iter().zip(&as_stated).map(|((kind, processes), found)| {
        let different = found.iter().map(|one| one.different.to_string()).collect();
        let same = found.iter().map(|one| one.same.to_string()).collect();
        [row![kind.name, processes, found[0].covered], different, same].concat()
    });
    let rows = titled(
        "process, run | processes a run | covers | equal: called different | 5 %: different | 10 %: different \
         | equal: same within 10 % | 5 %: same | 10 %: same",
        rows,
    );
    let (further, different_without_levels, flicker) = runs_of_other_levels(&cells);
    let covered: Vec<Rate> = as_stated.iter().map(|found| found[0].covered).collect();
    let different = as_stated.iter().map(|found| found[0].different);
    let different: Vec<Rate> = different.chain(different_without_levels).collect();
    [
        rows,
        "\n".to_string(),
        further,
        at_most("Equal runs called different", &different, EQUAL_RUNS_DIFFERENT_MOST),
        at_most("With flicker", &flicker, FLICKER_DIFFERENT_MOST),
        at_least("Coverage, levels as stated", &covered, CONTRAST_COVERAGE_LEAST),
    ]
    .concat()
}

/// Equal runs whose levels are not those that are stated: the table, and how often they are called
/// different without levels and with flicker.
fn runs_of_other_levels(cells: &[(&Kind, usize)]) -> (String, Vec<Rate>, Vec<Rate>) {
    let alone = measured(cells, |&(kind, processes)| {
        let levels = Levels::Apart(kind.level);
        let runs = Runs { family: kind.family, spread: kind.spread, levels, processes, planted: 0.0 };
        different_by_processes(runs, TRIALS, 15)
    });
    let otherwise = measured(cells, |&(kind, processes)| {
        let levels = [Levels::Apart(0.0), Levels::Flicker, Levels::Apart(2.0 * kind.level)];
        levels.map(|levels| of_kind(kind, levels, processes, 0.0))
    });
    let rows = cells.iter().zip(alone.iter().zip(&otherwise)).map(
        |((kind, processes), (alone, [none, flicker, twice]))| {
            let other = row![none.different, none.same, flicker.different, twice.different, twice.covered];
            [row![kind.name, processes, alone], other].concat()
        },
    );
    let rows = titled(
        "process, run | processes a run | as stated, different by processes alone (not used) | no levels: \
         different | same within 10 % | flicker: different | levels twice as wide: different | covers",
        rows,
    );
    let different = |at: usize| otherwise.iter().map(|found| found[at].different).collect();
    (rows, different(0), different(1))
}
