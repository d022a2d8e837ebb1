//! The table on SMT capacity.

use prove::proof::{
    CHARGING, Charging, Cores, GAP_COVERAGE_LEAST, Rate, SENTENCE_COVERAGE_LEAST, TASKS, Tasks,
    USED_COVERAGE_LEAST, YIELD_NEAR_LEAST, cores,
};
use stats::order::{mean, quantile};

use super::statistics::{at_least, titled};
use super::{Section, measured};

pub const SECTIONS: &[Section] =
    &[Section { name: "smt", title: "Yield of second threads and used cores", run: capacity }];

/// Of each kind; 1500 in all.
const MACHINES: usize = 100;

fn capacity() -> String {
    let kinds: Vec<(Charging, Tasks)> =
        CHARGING.iter().flat_map(|charging| TASKS.map(|tasks| (*charging, tasks))).collect();
    let seeds: Vec<(usize, &(Charging, Tasks))> = kinds.iter().enumerate().collect();
    let found =
        measured(&seeds, |(seed, (charging, tasks))| cores(*tasks, *charging, MACHINES, *seed as u64));
    let mut rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(&found)
        .map(|((charging, tasks), seen)| row(words(*charging, *tasks), seen))
        .collect();
    let all = found.iter().cloned().fold(Cores::default(), Cores::and);
    rows.push(row("all".to_string(), &all));
    let header = "time charged; tasks | error of s: median, 95 %, most | s within 5 % | interval of s holds | \
         U holds: clocks measured | highest clock known | turbo unknown | one share a CPU | windows \
         taken as exact | half-width of U: windows, one share | error of U's middle, CPU% for U | \
         interval of gap holds | sentences hold: study, recording";
    let used: Vec<Rate> = found.iter().flat_map(|seen| [seen.used_held, seen.turbo_held]).collect();
    let said: Vec<Rate> = found.iter().map(|seen| seen.recording_said).chain([all.study_said]).collect();
    [
        titled(header, rows),
        at_least("s within 5 %, of all machines", &[all.within], YIELD_NEAR_LEAST),
        at_least("U's interval holds the truth, of each kind", &used, USED_COVERAGE_LEAST),
        at_least("The gap's interval holds the truth, of all", &[all.gap_held], GAP_COVERAGE_LEAST),
        at_least(
            "Printed sentences hold the truth, of recordings of each kind, and of studies",
            &said,
            SENTENCE_COVERAGE_LEAST,
        ),
    ]
    .concat()
}

fn words(charging: Charging, tasks: Tasks) -> String {
    let charging = match charging {
        Charging::Exactly => "exactly".to_string(),
        Charging::EveryMs(ms) => format!("ticks of {ms} ms"),
    };
    let tasks = match tasks {
        Tasks::SpreadFirst => "spread first",
        Tasks::PackFirst => "packed first",
        Tasks::Pinned => "pinned, independent",
        Tasks::Together => "siblings always together",
        Tasks::Turns => "siblings never together",
    };
    format!("{charging}; {tasks}")
}

fn row(name: String, seen: &Cores) -> Vec<String> {
    let percent =
        |share: Option<f64>| share.map_or("-".to_string(), |share| format!("{:.1} %", 100.0 * share));
    let sizes: Vec<f64> = seen.errors.iter().map(|error| error.abs()).collect();
    let errors = [0.5, 0.95, 1.0].map(|q| percent(quantile(&sizes, q)));
    let pair = |one: &[f64], other: &[f64]| format!("{}, {}", percent(mean(one)), percent(mean(other)));
    let rates = [
        seen.within,
        seen.yield_held,
        seen.used_held,
        seen.turbo_held,
        seen.unclocked_held,
        seen.whole_held,
        seen.naive_held,
    ];
    let mut row = vec![name, errors.join(", ")];
    row.extend(rates.iter().map(Rate::to_string));
    row.push(pair(&seen.widths, &seen.whole_widths));
    row.push(pair(&seen.middles, &seen.cpu_percent));
    row.push(seen.gap_held.to_string());
    row.push(format!("{}, {}", seen.study_said, seen.recording_said));
    row
}
