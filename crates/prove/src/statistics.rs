//! The tables of docs/results/statistics.md: coverage, false alarms, power, what stopping
//! early costs.

use fastrand::Rng;
use prove::proof::{
    ANY_PRECISION, COVERAGE_LEAST, DRIFT_FALSE_MOST, EXPLAINED_FALSE_MOST, HOPELESS_FALSE_MOST,
    ICC_BOUND_LEAST, MODES_FALSE_MOST, MODES_SUSPECTED_FALSE_MOST, OTHER_FALSE_MOST, PERIOD_FALSE_MOST, Rate,
    STOPPED_COVERAGE_LEAST, STOPPED_FALSE_MOST, Shape, TRUSTED_LEAST, TRUSTED_LEAST_SLOW_TAIL, Trouble,
    Verdicts, WINDOWS_WRONG_MOST, coverage, coverage_while_wandering, explained_by_luck, pooled_coverage,
    rate, stopping, stopping_greedily, true_icc_below_bound, verdicts,
};
use stats::behaviour::DRIFT_P;
use stats::change::{Sensitivity, changes};
use stats::dependence::{neighbours_p, period};
use stats::drift::{inside, trend};
use stats::modes::{Modality, modality};
use stats::noise::{Inside, Noise};
use stats::ranks::{kruskal_wallis, spearman};
use stats::stop::Target;

use crate::{Section, few, measured, table};

pub const SECTIONS: &[Section] = &[
    Section { name: "coverage", title: "Coverage by correlation", run: coverage_by_icc },
    Section { name: "coverage-shapes", title: "Coverage by shape of the noise", run: coverage_by_shape },
    Section { name: "guarded", title: "The interval of few processes", run: few::guarded },
    Section { name: "sequential", title: "A look after every visit", run: few::sequential },
    Section { name: "limits", title: "At a limit", run: few::limits },
    Section { name: "stand-in", title: "Windows in place of processes", run: windows_for_processes },
    Section { name: "clock", title: "The clock as a covariate", run: few::clock },
    Section { name: "alone", title: "Windows alone on their core", run: few::alone },
    Section { name: "dependence", title: "Values that follow each other", run: dependence },
    Section { name: "clean", title: "Verdicts on clean series", run: clean_series },
    Section { name: "troubled", title: "Verdicts on troubled series", run: troubled_series },
    Section { name: "levels", title: "False positives of each test", run: levels },
    Section { name: "modes", title: "The mode rule", run: modes },
    Section { name: "stopping", title: "What stopping early costs", run: stopping_early },
];

/// Simulated series a cell.
pub const TRIALS: usize = 2000;

const LOGNORMAL: Noise = Noise::Lognormal { cv: 0.03 };
pub const FLOOR: Noise = Noise::FloorExponential { share: 0.03 };
const SLOW_TAIL: Noise = Noise::SlowTail { cv: 0.01, slow: 0.1 };

pub fn named(noise: Noise) -> String {
    let percent = |share: f64| format!("{} %", (1e4 * share).round() / 100.0);
    match noise {
        Noise::Lognormal { cv } => format!("log-normal {}", percent(cv)),
        Noise::FloorExponential { share } => format!("floor + exponential {}", percent(share)),
        Noise::CeilingExponential { share } => format!("ceiling - exponential {}", percent(share)),
        Noise::Student3 { scale } => format!("Student t3 {}", percent(scale)),
        Noise::SlowTail { cv, slow } => format!("{} and 1 in 10 slower by {}", percent(cv), percent(slow)),
        Noise::TwoModes { cv, ratio, minority } => {
            format!("{}, {ratio} for {}", percent(cv), percent(minority))
        }
        Noise::ThreeModes { cv, ratio } => format!("{}, three modes {ratio} apart", percent(cv)),
    }
}

/// A row of a table: what is in it, as text.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => { vec![$($cell.to_string()),+] };
}
pub(crate) use row;

/// A table whose header is written as it is printed, with ` | ` between the titles.
pub fn titled(header: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    table(&header.split(" | ").collect::<Vec<_>>(), &rows)
}

/// A sentence that says whether the worst of the rates keeps its bound.
pub fn at_least(what: &str, rates: &[Rate], bound: f64) -> String {
    let worst = lowest(rates.iter().copied());
    kept(what, "at least", bound, worst, worst.share() >= bound)
}

pub fn at_most(what: &str, rates: &[Rate], bound: f64) -> String {
    let worst = highest(rates.iter().copied());
    kept(what, "at most", bound, worst, worst.share() <= bound)
}

fn kept(what: &str, side: &str, bound: f64, worst: Rate, kept: bool) -> String {
    let kept = if kept { "kept" } else { "**broken**" };
    format!("\n{what}: stated {side} {:.1} %, worst here {worst}: {kept}.\n", 100.0 * bound)
}

fn highest(rates: impl Iterator<Item = Rate>) -> Rate {
    rates.filter(|rate| rate.of > 0).max_by(|a, b| a.share().total_cmp(&b.share())).unwrap_or_default()
}

pub fn lowest(rates: impl Iterator<Item = Rate>) -> Rate {
    rates.filter(|rate| rate.of > 0).min_by(|a, b| a.share().total_cmp(&b.share())).unwrap_or_default()
}

/// Another seed for every cell.
pub fn seed(parameter: f64, size: usize) -> u64 {
    (parameter * 1e4) as u64 + size as u64
}

/// Every pair, the second changing faster.
pub fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b))).collect()
}

fn coverage_by_icc() -> String {
    const ICC: [f64; 7] = [0.0, 0.02, 0.05, 0.1, 0.3, 0.5, 0.8];
    const PROCESSES: [usize; 6] = [6, 8, 10, 14, 20, 40];
    const WINDOWS: [usize; 4] = [1, 3, 10, 20];
    let cells = pairs(&ICC, &PROCESSES);
    let worst = measured(&cells, |&(icc, processes)| {
        let of = |windows: usize| {
            coverage(Shape::shared(0.03, icc, processes, windows), TRIALS, seed(icc, processes + windows))
                .covered
        };
        WINDOWS.map(of).into_iter().min_by(|a, b| a.share().total_cmp(&b.share())).unwrap_or_default()
    });
    let pooled = measured(&ICC, |&icc| pooled_coverage(Shape::shared(0.03, icc, 10, 10), TRIALS, 1));
    let rows = ICC.iter().zip(worst.chunks(PROCESSES.len()).zip(&pooled)).map(|(icc, (row, pooled))| {
        let cells = row.iter().map(|rate| rate.to_string());
        [format!("{icc}")].into_iter().chain(cells).chain([pooled.to_string()]).collect()
    });
    let header = "true ICC | 6 processes | 8 | 10 | 14 | 20 | 40 | 10 × 10 windows pooled (not used)";
    titled(header, rows) + &at_least("Coverage", &worst, COVERAGE_LEAST)
}

fn coverage_by_shape() -> String {
    let noises =
        [FLOOR, Noise::CeilingExponential { share: 0.1 }, Noise::Student3 { scale: 0.02 }, SLOW_TAIL];
    let mut kinds: Vec<(String, Noise, Inside, usize)> = Vec::new();
    for (noise, windows) in pairs(&noises, &[1, 3]) {
        kinds.push((format!("{}, windows {windows}", named(noise)), noise, Inside::Independent, windows));
    }
    for phi in [0.6, 0.9] {
        let name = format!("{}, 10 windows autoregressive {phi}", named(LOGNORMAL));
        kinds.push((name, LOGNORMAL, Inside::Autoregressive { phi }, 10));
    }
    const PROCESSES: [usize; 5] = [6, 10, 14, 20, 40];
    let cells: Vec<(usize, usize)> = pairs(&(0..kinds.len()).collect::<Vec<usize>>(), &PROCESSES);
    let found = measured(&cells, |&(kind, processes)| {
        let (_, noise, inside, windows) = kinds[kind];
        coverage(Shape { noise, inside, processes, windows }, TRIALS, processes as u64).covered
    });
    let rows = kinds.iter().zip(found.chunks(PROCESSES.len())).map(|(kind, row)| {
        [kind.0.clone()].into_iter().chain(row.iter().map(|rate| rate.to_string())).collect()
    });
    titled("noise | 6 processes | 10 | 14 | 20 | 40", rows) + &at_least("Coverage", &found, COVERAGE_LEAST)
}

fn windows_for_processes() -> String {
    let shapes = [(2, 100), (3, 100), (4, 100)];
    let cells = pairs(&[0.0, 0.02, 0.05, 0.1, 0.3, 0.5, 0.8], &shapes);
    let found = measured(&cells, |&(icc, (processes, windows))| {
        coverage(Shape::shared(0.03, icc, processes, windows), TRIALS, 2)
    });
    let cell = |index: usize| {
        let one = found[index];
        format!("{}, {} wrong", one.given, one.wrong)
    };
    let rows = cells.chunks(shapes.len()).enumerate().map(|(row, cells)| {
        let texts = (0..cells.len()).map(|column| cell(row * shapes.len() + column));
        [format!("{}", cells[0].0)].into_iter().chain(texts).collect()
    });
    let wrong: Vec<Rate> = found.iter().map(|one| one.wrong).collect();
    let bounds = measured(&pairs(&[0.0, 0.3, 0.8], &[(6, 10), (20, 3)]), |&(icc, (processes, windows))| {
        true_icc_below_bound(icc, processes, windows, TRIALS, 3)
    });
    let header = "true ICC | 2 × 100: interval given | 3 × 100 | 4 × 100";
    let upper = at_least("True ICC at or below its upper bound", &bounds, ICC_BOUND_LEAST);
    titled(header, rows) + &at_most("Given and wrong", &wrong, WINDOWS_WRONG_MOST) + &upper
}

fn dependence() -> String {
    let cells = pairs(&[0.0, 0.3, 0.6, 0.9], &[20, 40, 80, 200]);
    let found = measured(&cells, |&(phi, n)| coverage_while_wandering(phi, n, TRIALS, n as u64));
    let rows = cells
        .iter()
        .zip(&found)
        .map(|((phi, n), (plain, widened, given))| row![format!("{phi}"), n, plain, widened, given]);
    titled("lag-1 correlation | n | interval for independent values | widened interval | given", rows)
}

fn clean_series() -> String {
    let shared = |icc: f64| (format!("log-normal 3 %, ICC {icc}"), LOGNORMAL, Inside::Shared { icc });
    let plain = |noise: Noise| (named(noise), noise, Inside::Independent);
    let kinds = [
        plain(LOGNORMAL),
        plain(FLOOR),
        plain(Noise::FloorExponential { share: 0.1 }),
        plain(Noise::Student3 { scale: 0.02 }),
        shared(0.3),
        shared(0.5),
        shared(0.8),
        ("log-normal 3 %, windows autoregressive 0.9".into(), LOGNORMAL, Inside::Autoregressive { phi: 0.9 }),
        plain(SLOW_TAIL),
    ];
    let shapes = [(6, 10), (8, 1), (10, 5), (14, 1), (14, 10), (20, 1), (20, 10), (28, 1), (40, 3), (80, 1)];
    let cells = pairs(&(0..kinds.len()).collect::<Vec<usize>>(), &shapes);
    let found = measured(&cells, |&(kind, (processes, windows))| {
        let (_, noise, inside) = kinds[kind];
        let shape = Shape { noise, inside, processes, windows };
        verdicts(|rng| shape.draw(rng), noise.median(), ANY_PRECISION, TRIALS, (processes * windows) as u64)
    });
    let rows = kinds.iter().zip(found.chunks(shapes.len())).map(|(kind, row)| {
        let worst = |pick: fn(&Verdicts) -> Rate| highest(row.iter().map(pick)).to_string();
        let trusted = row.iter().map(|v| v.trusted).min_by(|a, b| a.share().total_cmp(&b.share()));
        let trusted = trusted.unwrap_or_default().to_string();
        vec![kind.0.clone(), trusted, worst(|v| v.drifting), worst(|v| v.multimodal), worst(|v| v.imprecise)]
    });
    let split = found.len() - shapes.len();
    let trusted = |found: &[Verdicts]| -> Vec<Rate> { found.iter().map(|v| v.trusted).collect() };
    let listed: Vec<String> =
        shapes.iter().map(|(processes, windows)| format!("{processes} × {windows}")).collect();
    format!(
        "Processes × windows: {}; the worst of these is shown.\n\n{}{}{}",
        listed.join(", "),
        titled("noise | trusted, at least | drifting, at most | multimodal | modes suspected", rows),
        at_least("Trusted", &trusted(&found[..split]), TRUSTED_LEAST),
        at_least("Trusted with the slow tail", &trusted(&found[split..]), TRUSTED_LEAST_SLOW_TAIL),
    )
}

fn troubled_series() -> String {
    let troubles = [
        ("rises by 3 % over the processes", Trouble::Trend(0.03)),
        ("rises by 5 %", Trouble::Trend(0.05)),
        ("first third 3 % higher", Trouble::Step(0.03)),
        ("first third 5 % higher", Trouble::Step(0.05)),
        ("falls by 5 % inside every process (10 windows, 2 % noise)", Trouble::Inside(0.05)),
        ("second value 1.10 for 30 %", Trouble::Modes { ratio: 1.1, minority: 0.3 }),
        ("second value 1.05 for 30 %", Trouble::Modes { ratio: 1.05, minority: 0.3 }),
        ("neighbours correlated 0.6", Trouble::Wandering { phi: 0.6 }),
        ("neighbours correlated 0.9", Trouble::Wandering { phi: 0.9 }),
    ];
    let sizes = [10, 14, 20, 40, 80];
    let cells = pairs(&troubles, &sizes);
    let found = measured(&cells, |&((_, trouble), processes)| {
        verdicts(|rng| trouble.draw(processes, 10, rng), trouble.truth(), 0.01, TRIALS, processes as u64)
    });
    let rows = troubles.iter().zip(found.chunks(sizes.len())).map(|((name, trouble), row)| {
        let caught = row.iter().map(|v| match trouble {
            Trouble::Modes { .. } => {
                format!("{} multimodal, {} imprecise, {} trusted", v.multimodal, v.imprecise, v.trusted)
            }
            _ => format!("{} drifting, {} trusted", v.drifting, v.trusted),
        });
        let wrongly = row.iter().map(|v| v.trusted_wrongly).max_by(|a, b| a.share().total_cmp(&b.share()));
        let wrongly = wrongly.unwrap_or_default().to_string();
        [name.to_string()].into_iter().chain(caught).chain([wrongly]).collect()
    });
    let header = "trouble, 1 % noise, ±1 % asked | 10 processes | 14 | 20 | 40 | 80 | trusted and wrong, at \
         most";
    titled(header, rows)
}

fn levels() -> String {
    let noises = [Noise::Lognormal { cv: 0.05 }, Noise::FloorExponential { share: 0.1 }, SLOW_TAIL];
    let sizes = [6, 10, 14, 20, 40];
    type Test = fn(&Vec<f64>, u64) -> bool;
    let loose = |v: &Vec<f64>, seed: u64| {
        let sensitivity = Sensitivity { split_p: DRIFT_P, merge_p: 1.0, least: 0.0, shortest: 3 };
        !changes(v, sensitivity, seed).is_empty()
    };
    let tests: [(&str, Test); 3] = [
        ("trend (Mann-Kendall), p < 0.01", |v, _| trend(v).is_some_and(|trend| trend.p < DRIFT_P)),
        ("steps (E-divisive), p ≤ 0.01", loose),
        ("neighbours alike, p < 0.01", |v, _| neighbours_p(v).is_some_and(|p| p < DRIFT_P)),
    ];
    let cells = pairs(&tests, &pairs(&noises, &sizes));
    let found = measured(&cells, |&((_, test), (noise, n))| {
        rate(TRIALS, n as u64, |rng| noise.series(n, rng), |v: &Vec<f64>, seed| test(v, seed))
    });
    let mut rows: Vec<Vec<String>> = tests
        .iter()
        .zip(found.chunks(noises.len() * sizes.len()))
        .map(|((name, _), rates)| row![name, "n 6 to 40; 3 noises", highest(rates.iter().copied())])
        .collect();
    let shapes = pairs(&[0.0, 0.9], &[(6, 4), (8, 10), (20, 5)]);
    let inside_rates = measured(&shapes, |&(phi, (processes, windows))| {
        let inside_of = Inside::Autoregressive { phi };
        let shape = Shape { noise: Noise::Lognormal { cv: 0.05 }, inside: inside_of, processes, windows };
        rate(TRIALS, 4, |rng| shape.draw(rng), |v, _| inside(v).is_some_and(|inside| inside.p < DRIFT_P))
    });
    let of = "6 × 4, 8 × 10, 20 × 5; windows autoregressive 0 and 0.9".to_string();
    rows.push(vec![
        "trend inside processes, p < 0.01".into(),
        of,
        highest(inside_rates.iter().copied()).to_string(),
    ]);
    let drift: Vec<Rate> = found.into_iter().chain(inside_rates).collect();
    let noise = Noise::FloorExponential { share: 0.1 };
    let pair = |rng: &mut Rng| (noise.series(12, rng), noise.series(12, rng));
    let spearman = rate(TRIALS, 5, pair, |(x, y), _| spearman(x, y).is_some_and(|c| c.p < 0.05));
    rows.push(vec!["Spearman, p < 0.05".into(), "12 pairs".into(), spearman.to_string()]);
    let groups = |rng: &mut Rng| [4, 5, 8].map(|n| noise.series(n, rng));
    let kruskal = rate(TRIALS, 6, groups, |g, seed| kruskal_wallis(g, seed).is_some_and(|p| p < 0.05));
    rows.push(vec!["Kruskal-Wallis, p < 0.05".into(), "groups of 4, 5, 8".into(), kruskal.to_string()]);
    let periods = rate(TRIALS, 7, |rng| noise.series(100, rng), |v, _| period(v).is_some());
    rows.push(vec!["a period".into(), "100 values".into(), periods.to_string()]);
    let explained = explained_by_luck(TRIALS, 8);
    let of = "10 × 20 windows, 8 unrelated covariates".to_string();
    rows.push(vec!["outliers explained, p < 0.05 after Holm".into(), of, explained.to_string()]);
    [
        titled("test | series without what it looks for | says yes, at most", rows),
        at_most("Each test of drift", &drift, DRIFT_FALSE_MOST),
        at_most("Other tests", &[spearman, kruskal], OTHER_FALSE_MOST),
        at_most("A period", &[periods], PERIOD_FALSE_MOST),
        at_most("Outliers explained", &[explained], EXPLAINED_FALSE_MOST),
    ]
    .concat()
}

fn modes() -> String {
    let unimodal = [
        LOGNORMAL,
        FLOOR,
        Noise::FloorExponential { share: 0.1 },
        Noise::CeilingExponential { share: 0.1 },
        Noise::Student3 { scale: 0.03 },
    ];
    let two = |ratio: f64, minority: f64| Noise::TwoModes { cv: 0.01, ratio, minority };
    let multimodal = [
        SLOW_TAIL,
        two(1.1, 0.3),
        two(1.1, 0.15),
        two(1.05, 0.5),
        two(1.05, 0.3),
        Noise::ThreeModes { cv: 0.01, ratio: 1.1 },
    ];
    let sizes = [14, 20, 28, 40, 56, 80];
    let noises: Vec<Noise> = unimodal.into_iter().chain(multimodal).collect();
    let found = measured(&pairs(&noises, &sizes), |&(noise, n)| {
        rate(TRIALS, n as u64, |rng| noise.series(n, rng), |v, _| modality(v).modes().is_some())
    });
    let rows: Vec<Vec<String>> = noises
        .iter()
        .zip(found.chunks(sizes.len()))
        .map(|(noise, row)| {
            [named(*noise)].into_iter().chain(row.iter().map(|rate| rate.to_string())).collect()
        })
        .collect();
    let of_one = found[..unimodal.len() * sizes.len()].chunks(sizes.len());
    let suspected: Vec<Rate> = of_one.clone().flat_map(|row| row[..3].to_vec()).collect();
    let several: Vec<Rate> = of_one.flat_map(|row| row[3..].to_vec()).collect();
    let three = measured(&[14, 20, 28, 40, 80], |&n| {
        let noise = Noise::ThreeModes { cv: 0.01, ratio: 1.1 };
        let three = |v: &Vec<f64>, _| match modality(v) {
            Modality::Suspected(modes) | Modality::Several(modes) => modes.modes.len() == 3,
            Modality::One | Modality::Unknown => false,
        };
        rate(TRIALS, n as u64, |rng| noise.series(n, rng), three)
    });
    let three: Vec<String> = three.iter().map(Rate::to_string).collect();
    format!(
        "{}\nOf three modes, all three are found in {} (n = 14, 20, 28, 40, 80). The first {} rows have one mode.\n{}{}",
        titled("the rule holds for | n = 14 | 20 | 28 | 40 | 56 | 80", rows),
        three.join(", "),
        unimodal.len(),
        at_most("Suspected below 40", &suspected, MODES_SUSPECTED_FALSE_MOST),
        at_most("Multimodal from 40 on", &several, MODES_FALSE_MOST),
    )
}

fn stopping_early() -> String {
    let cells = pairs(&[Noise::Lognormal { cv: 0.01 }, LOGNORMAL, FLOOR, SLOW_TAIL], &[80, 400]);
    let target = |most: usize| Target { precision: 0.01, most };
    let found = measured(&cells, |&(noise, most)| stopping(noise, target(most), TRIALS, 9));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ((noise, most), stopped) in cells.iter().zip(&found) {
        let greedy = match most {
            80 => String::new(),
            _ => {
                let (covered, mean_n) = stopping_greedily(*noise, 0.01, TRIALS, 10);
                format!("{covered} ({mean_n:.0})")
            }
        };
        rows.push(row![
            named(*noise),
            most,
            format!("{} ({:.0})", stopped.covered, stopped.mean_n),
            stopped.enough,
            stopped.exhausted,
            stopped.too_wide,
            stopped.false_alarms,
            greedy
        ]);
    }
    let covered: Vec<Rate> = found.iter().map(|stopped| stopped.covered).collect();
    let alarms: Vec<Rate> = found.iter().map(|stopped| stopped.false_alarms).collect();
    let hopeless = stopping(Noise::Lognormal { cv: 0.025 }, target(80), TRIALS, 11).too_wide;
    let header = "noise, ±1 % asked | most | 95 % interval covers (mean n) | enough | exhausted | out of reach \
         | drifting or multimodal | looking at every n, 95 % (not used)";
    [
        titled(header, rows),
        at_least("Coverage", &covered, STOPPED_COVERAGE_LEAST),
        at_most("Drifting or multimodal", &alarms, STOPPED_FALSE_MOST),
        at_most("Log-normal 2.5 % (65 processes do) out of reach of 80", &[hopeless], HOPELESS_FALSE_MOST),
    ]
    .concat()
}
