//! The tables of few processes: the guarded interval, a check after every pass, limits, and the
//! clock as a covariate.

use prove::proof::{
    ALONE_COVERAGE_LEAST, CLOCK_COVERAGE_LEAST, CLOCK_FALSE_MOST_5, CLOCK_FALSE_MOST_7,
    CLOCK_WRONG_COVERAGE_LEAST, ClockRead, Clocked, Decided, FewProcesses, GATE_OPEN_LEAST, GATE_WRONG_MOST,
    GUARDED_COVERAGE_LEAST, LIMIT_WRONG_MOST, LOOKED_COVERAGE_LEAST, Neighbour, Rate, Shape, Stop, at_limit,
    beside, clocked, few_processes, gate_opens, looking_after_every_visit,
};
use stats::guarded::GUARDED;
use stats::noise::{Inside, Noise};

use crate::statistics::{at_least, at_most, lowest, named, pairs, row, seed, titled};
use crate::{measured, table};

/// Simulated series a cell: more than elsewhere, because the worst of many cells is compared with a
/// tight bound.
const TRIALS: usize = 10_000;

const fn lognormal(cv: f64) -> Noise {
    Noise::Lognormal { cv }
}

const fn floor(share: f64) -> Noise {
    Noise::FloorExponential { share }
}

const fn student(scale: f64) -> Noise {
    Noise::Student3 { scale }
}

const fn two_modes(minority: f64) -> Noise {
    Noise::TwoModes { cv: 0.01, ratio: 1.1, minority }
}

const fn shape(noise: Noise, icc: f64, processes: usize) -> Shape {
    Shape { noise, inside: Inside::Shared { icc }, processes, windows: 5 }
}

/// The guarded interval, five samples a process.
pub fn guarded() -> String {
    const NOISES: [Noise; 5] = [lognormal(0.03), floor(0.03), student(0.02), two_modes(0.1), two_modes(0.3)];
    const ICC: [f64; 4] = [0.0, 0.3, 0.6, 0.9];
    let processes: Vec<usize> = GUARDED.collect();
    let kinds = pairs(&NOISES, &ICC);
    let truths = measured(&kinds, |&(noise, icc)| shape(noise, icc, 1).true_median());
    let kinds: Vec<((Noise, f64), f64)> = kinds.into_iter().zip(truths).collect();
    let found = measured(&pairs(&kinds, &processes), |&(((noise, icc), truth), processes)| {
        few_processes(shape(noise, icc, processes), truth, TRIALS, seed(icc, processes))
    });
    // One row a noise: its cells are those of all correlations with the same number of processes.
    let columns = |found: &[FewProcesses]| -> Vec<Vec<FewProcesses>> {
        let column = |at: usize| found.iter().skip(at).step_by(processes.len()).copied().collect();
        (0..processes.len()).map(column).collect()
    };
    let covered = |cells: &Vec<FewProcesses>| lowest(cells.iter().map(|cell| cell.covered)).to_string();
    let exact = |cells: &Vec<FewProcesses>| {
        let lowest = lowest(cells.iter().map(|cell| cell.exact));
        if lowest.of == 0 { String::new() } else { lowest.to_string() }
    };
    let widths = |cells: &Vec<FewProcesses>| {
        let ratio = |cell: &FewProcesses| cell.half_width / cell.exact_half_width;
        let mean = cells.iter().map(ratio).sum::<f64>() / cells.len() as f64;
        if mean.is_nan() { String::new() } else { format!("{mean:.2}") }
    };
    let row = |name: &str, cells: Vec<String>| -> Vec<String> {
        [name.to_string()].into_iter().chain(cells).collect()
    };
    let all = columns(&found);
    let each = found.chunks(ICC.len() * processes.len());
    let mut rows: Vec<Vec<String>> = NOISES
        .iter()
        .zip(each)
        .map(|(noise, cells)| row(&named(*noise), columns(cells).iter().map(covered).collect()))
        .collect();
    rows.push(row("least of all", all.iter().map(covered).collect()));
    rows.push(row("least of the exact interval", all.iter().map(exact).collect()));
    let (one_mode, several) = found.split_at(3 * ICC.len() * processes.len());
    let of_one_mode = columns(one_mode).iter().map(widths).collect();
    rows.push(row("half-width, times the exact interval's: three noises of one mode", of_one_mode));
    rows.push(row("... two noises of two modes", columns(several).iter().map(widths).collect()));
    let numbers: Vec<String> = processes.iter().map(usize::to_string).collect();
    let header: Vec<&str> =
        ["least of ICC 0, 0.3, 0.6, 0.9"].into_iter().chain(numbers.iter().map(String::as_str)).collect();
    let coverage: Vec<Rate> = found.iter().map(|cell| cell.covered).collect();
    table(&header, &rows) + &at_least("Coverage", &coverage, GUARDED_COVERAGE_LEAST)
}

/// A check after every pass.
pub fn sequential() -> String {
    let half_modes = Noise::TwoModes { cv: 0.005, ratio: 1.05, minority: 0.3 };
    let kinds = [
        (lognormal(0.006), 0.9),
        (lognormal(0.015), 0.9),
        (lognormal(0.03), 0.3),
        (lognormal(0.03), 0.9),
        (lognormal(0.045), 0.9),
        (lognormal(0.06), 0.9),
        (floor(0.015), 0.9),
        (floor(0.03), 0.3),
        (floor(0.03), 0.9),
        (floor(0.045), 0.9),
        (student(0.02), 0.9),
        (student(0.04), 0.9),
        (two_modes(0.1), 0.3),
        (two_modes(0.1), 0.9),
        (half_modes, 0.9),
        (two_modes(0.3), 0.9),
    ];
    let found = measured(&kinds, |&(noise, icc)| {
        looking_after_every_visit(shape(noise, icc, 1), 0.03, TRIALS, seed(icc, 20))
    });
    let rows = kinds.iter().zip(&found).map(|((noise, icc), looked)| {
        row![
            named(*noise),
            icc,
            looked.covered,
            looked.narrow,
            looked.narrow_and_wrong,
            format!("{:.1}", looked.mean_n)
        ]
    });
    let covered: Vec<Rate> = found.iter().map(|looked| looked.covered).collect();
    let header = "noise | ICC | last interval covers | within ±3 % | within and wrong | mean n";
    titled(header, rows) + &at_least("Coverage", &covered, LOOKED_COVERAGE_LEAST)
}

/// Figures at and beyond their limits.
pub fn limits() -> String {
    const NOISES: [Noise; 5] = [
        lognormal(0.01),
        lognormal(0.03),
        floor(0.03),
        student(0.02),
        Noise::SlowTail { cv: 0.01, slow: 0.1 },
    ];
    const BEYOND: [f64; 7] = [-0.05, -0.02, -0.01, 0.0, 0.01, 0.02, 0.05];
    let of = |noise, beyond, most, stop, trials| {
        at_limit(shape(noise, 0.9, 1), beyond, most, stop, trials, seed(beyond, most))
    };
    let fewest = *GUARDED.start();
    let cells = pairs(&NOISES, &BEYOND);
    let found = measured(&cells, |&(noise, beyond)| {
        [
            of(noise, beyond, fewest, Stop::AtOnce, TRIALS / 5),
            of(noise, beyond, 30, Stop::Firm, if beyond == 0.0 { TRIALS } else { TRIALS / 5 }),
            of(noise, beyond, 30, Stop::Decided, TRIALS / 5),
        ]
    });
    let shares = |one: &Decided| [one.met, one.missed, one.undecided].map(|rate| rate.to_string());
    let row = |((noise, beyond), all): (&(Noise, f64), &[Decided; 3])| {
        let [fewest, firm, decided] = all;
        let mut row = vec![named(*noise), format!("{:+} %", 100.0 * beyond)];
        row.extend(shares(fewest));
        row.extend(shares(firm));
        row.push(format!("{:.1}", firm.mean_n));
        row.extend([decided.met, decided.missed].map(|rate| rate.to_string()));
        row
    };
    let rows = cells.iter().zip(&found).map(row);
    let header = "noise | from the limit | 5 visits: met | missed | undecided | until it is firm, at most 30: \
         met | missed | undecided | mean n | until it is decided (not used): met | missed";
    let long = measured(&NOISES, |&noise| of(noise, 0.0, 80, Stop::Firm, TRIALS / 2));
    let wrong = |all: Vec<Decided>| all.iter().flat_map(|one| [one.met, one.missed]).collect::<Vec<Rate>>();
    let at = cells.iter().zip(&found).filter(|((_, beyond), _)| *beyond == 0.0);
    let at: Vec<Decided> = at.map(|(_, [_, firm, _])| *firm).collect();
    [
        titled(header, rows),
        at_most("At the limit, at most 30", &wrong(at), LIMIT_WRONG_MOST),
        at_most("At most 80", &wrong(long), LIMIT_WRONG_MOST),
    ]
    .concat()
}

/// The clock as a covariate: whether series are brought to it, and what is then said of them.
pub fn clock() -> String {
    const NOISES: [Noise; 7] = [
        lognormal(0.003),
        lognormal(0.01),
        lognormal(0.03),
        floor(0.01),
        floor(0.03),
        student(0.007),
        two_modes(0.1),
    ];
    const SLOPES: [f64; 6] = [-1.0, -0.9, -1.15, -0.75, -0.5, 0.0];
    const PROCESSES: [usize; 3] = [5, 7, 10];
    let cells = pairs(&SLOPES, &pairs(&PROCESSES, &NOISES));
    let found = measured(&cells, |&(slope, (processes, noise))| {
        clocked(noise, slope, processes, TRIALS, seed(slope.abs(), processes))
    });
    let covered = |cells: &[Clocked]| -> Vec<Rate> { cells.iter().map(|cell| cell.covered).collect() };
    let adjusted = |cells: &[Clocked]| -> Vec<Rate> { cells.iter().map(|cell| cell.adjusted).collect() };
    let a_slope = PROCESSES.len() * NOISES.len();
    let rows = SLOPES.iter().zip(found.chunks(a_slope)).map(|(slope, of_slope)| {
        let each = of_slope.chunks(NOISES.len());
        let adjusted = each.clone().map(|cells| least_to_most(&adjusted(cells)));
        let covers = each.map(|cells| lowest(covered(cells).into_iter()).to_string());
        // Seven processes, log-normal noise of 1 %.
        let typical = of_slope[NOISES.len() + 1];
        let percent = |half: f64| format!("±{:.1} %", 100.0 * half);
        let widths = [percent(typical.half_at_clock), percent(typical.half_as_it_ran)];
        [slope.to_string()].into_iter().chain(adjusted).chain(covers).chain(widths).collect()
    });
    let header = "true slope | brought to the clock, n = 5 | 7 | 10 | covers, n = 5, at least | 7 | 10 | 1 % \
         noise, n = 7: those brought to the clock | all as they ran";
    let (right, others) = found.split_at(3 * a_slope);
    let (wrong, none) = others.split_at(2 * a_slope);
    let (none_of_5, none_of_more) = none.split_at(NOISES.len());
    [
        titled(header, rows),
        at_least("Slopes -1, -0.9, -1.15 cover", &covered(right), CLOCK_COVERAGE_LEAST),
        at_least("Slopes -0.75, -0.5 cover", &covered(wrong), CLOCK_WRONG_COVERAGE_LEAST),
        at_most("Slope 0, brought to the clock of 5", &adjusted(none_of_5), CLOCK_FALSE_MOST_5),
        at_most("Slope 0, of 7 and 10", &adjusted(none_of_more), CLOCK_FALSE_MOST_7),
        gates(),
    ]
    .concat()
}

fn gates() -> String {
    let clocks = [ClockRead::Own, ClockRead::OwnHalfOfTheTime, ClockRead::AnotherCpus];
    let opens = measured(&clocks, |&read| gate_opens(read, 2 * TRIALS, 1));
    [
        at_least("The gate opens for the right clock", &opens[..1], GATE_OPEN_LEAST),
        at_most("For another CPU's, or one that follows half of the time", &opens[1..], GATE_WRONG_MOST),
    ]
    .concat()
}

/// Samples that had their core for themselves, where another thread of it comes and goes.
pub fn alone() -> String {
    const LASTS: [f64; 6] = [1000.0, 100.0, 10.0, 3.0, 1.0, 0.1];
    const SHARES: [f64; 3] = [0.05, 0.15, 0.5];
    const PROCESSES: [usize; 3] = [5, 7, 10];
    let cells = pairs(&LASTS, &pairs(&SHARES, &PROCESSES));
    let found = measured(&cells, |&(lasts, (share, processes))| {
        beside(Neighbour { share, lasts }, processes, TRIALS / 5, seed(share, processes))
    });
    let half = |half: f64| format!("±{:.1} %", 100.0 * half);
    let rows = cells.chunks(PROCESSES.len()).zip(found.chunks(PROCESSES.len())).map(|(cells, found)| {
        let (lasts, (share, _)) = cells[0];
        let given = found.iter().map(|told| told.given.to_string());
        let covered = found.iter().map(|told| told.covered.to_string());
        let widths = [half(found[1].half_alone), half(found[1].half_as_it_ran)];
        [lasts.to_string(), format!("{:.0} %", 100.0 * share)]
            .into_iter()
            .chain(given)
            .chain(covered)
            .chain(widths)
            .collect()
    });
    let header = "it stays for, windows | of the time | a figure alone is given, n = 5 | 7 | 10 | covers the \
         time alone, n = 5 | 7 | 10 | n = 7: alone | as they ran";
    let slow = LASTS.iter().filter(|lasts| **lasts >= 10.0).count() * SHARES.len() * PROCESSES.len();
    let covered: Vec<Rate> =
        found[..slow].iter().map(|told| told.covered).filter(|rate| rate.of >= 200).collect();
    titled(header, rows)
        + &at_least("Covers where it stays for ten windows or more", &covered, ALONE_COVERAGE_LEAST)
}

fn least_to_most(rates: &[Rate]) -> String {
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    let shares = || rates.iter().map(|rate| rate.share());
    let (least, most) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    format!("{} to {} %", percent(least), percent(most))
}
