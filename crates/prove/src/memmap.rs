//! The tables on maps of memory.

use prove::proof::{
    FOLLOWS_FALSE_MOST, FOLLOWS_FOUND_LEAST, Limits, MAP_FALSE_MOST, MAP_FOUND_LEAST, MAP_LIMIT_LEAST, Maps,
    Memory, PREDICTED_LEAST, PROMISED, Rate, WEATHERS, Weather, following, limits, maps, smooth_maps,
    swinging,
};
use stats::order::quantile;

use super::statistics::{at_least, at_most, row, titled};
use super::{Section, measured, table};

pub const SECTIONS: &[Section] = &[
    Section { name: "memmap", title: "Speeds of memory by chunks", run: tables },
    Section { name: "slow-memory", title: "Runs that follow slow memory", run: following_tables },
];

/// Machines of each kind.
const STUDIES: usize = 2_000;

fn following_tables() -> String {
    let seen = measured(&PROMISED, |study| (following(*study, STUDIES, 7), swinging(*study, STUDIES, 8)));
    let row =
        |(study, (own, other)): (&prove::proof::Study, &(prove::proof::Studied, prove::proof::Studied))| {
            row![
                format!(
                    "{} times, {:.0} % of the time memory's, {} runs, {:.1} % noise",
                    study.ratio,
                    100.0 * study.bound,
                    study.runs,
                    100.0 * study.noise
                ),
                own.within,
                own.follow,
                other.follow
            ]
        };
    let rows = PROMISED.iter().zip(&seen).map(row);
    let all = |of: fn(&(prove::proof::Studied, prove::proof::Studied)) -> Rate| -> Vec<Rate> {
        seen.iter().map(of).collect()
    };
    let other = all(|(_, other)| other.follow).into_iter().reduce(Rate::and).unwrap_or_default();
    [
        titled(
            "slow quarter, runs | predicted within 3 % | reported to follow | reported for runs that vary for another reason",
            rows,
        ),
        at_least("Runs predicted within 3 %", &all(|(own, _)| own.within), PREDICTED_LEAST),
        at_least("Studies reported to follow their memory", &all(|(own, _)| own.follow), FOLLOWS_FOUND_LEAST),
        at_most("Reported where something else moves runs", &[other], FOLLOWS_FALSE_MOST),
    ]
    .concat()
}

/// Machines of one speed in all, and of each kind with two.
const SMOOTH: usize = 10_000;
const MACHINES: usize = 1_000;
const LIMITS: usize = 500;
/// Parts that the CPUs of this host share.
const PARTS: usize = 4;

/// Ratio and share of the slow part.
const SPEEDS: [(f64, f64); 7] =
    [(1.08, 0.25), (1.14, 0.25), (1.33, 0.1), (1.33, 0.25), (1.33, 0.5), (3.0, 0.25), (4.0, 0.2)];

fn tables() -> String {
    let kinds: Vec<Memory> = [32, 64, 128]
        .into_iter()
        .flat_map(|chunks| [6, 9].map(|rounds| Memory { chunks, rounds, ..Memory::USUAL }))
        .chain([0.05, 0.1].map(|noise| Memory { noise, ..Memory::USUAL }))
        .chain(WEATHERS.into_iter().skip(1).map(|weather| Memory { weather, ..Memory::USUAL }))
        .collect();
    let cells: Vec<(Memory, (f64, f64))> =
        kinds.iter().flat_map(|memory| SPEEDS.map(|speeds| (*memory, speeds))).collect();
    let found = measured(&cells, |(memory, (ratio, share))| maps(*memory, *ratio, *share, MACHINES, 7));
    let rows: Vec<Vec<String>> =
        kinds.iter().zip(found.chunks(SPEEDS.len())).map(|(memory, own)| row(memory, own)).collect();
    let mut header = vec!["chunks, rounds, noise".to_string()];
    header.extend(SPEEDS.iter().map(|(ratio, share)| format!("{ratio} in {:.0} %", share * 100.0)));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    // The promise is for 2 % of noise, and a ratio of a third.
    let promised: Vec<_> = cells
        .iter()
        .zip(&found)
        .filter(|((memory, (ratio, _)), _)| {
            memory.noise <= 0.02 && *ratio >= 1.33 && memory.weather != Weather::Bursts
        })
        .map(|(_, seen)| seen)
        .collect();
    let of =
        |rate: fn(&Maps) -> prove::proof::Rate| promised.iter().map(|seen| rate(seen)).collect::<Vec<_>>();
    let parts: Vec<u64> = (0..PARTS as u64).collect();
    let smooth = measured(&parts, |part| smooth_maps(SMOOTH / PARTS, 100 + part))
        .into_iter()
        .fold(Maps::default(), Maps::and);
    let limits = measured(&parts, |part| limits(LIMITS / PARTS, 200 + part));
    let stated = limits.iter().map(|one| one.found).reduce(|one, other| one.and(other)).unwrap_or_default();
    [
        table(&header, &rows),
        format!(
            "\nOf {SMOOTH} machines of one speed (0.5 to 10 % of noise, chunks up to 5 % apart for good, up to 15 % of slow readings, \
             in every weather) {} are said to have several.\n",
            smooth.speeds.hits
        ),
        at_most("Several speeds where there is one", &[smooth.speeds], MAP_FALSE_MOST),
        at_least("A ratio of 1.33 or more found, 2 % noise, no bursts", &of(|seen| seen.speeds), MAP_FOUND_LEAST),
        at_least("of these, ratio within 5 %", &of(|seen| seen.ratio), MAP_FOUND_LEAST),
        at_least("of these, share within 5 points", &of(|seen| seen.share), MAP_FOUND_LEAST),
        words(&limits),
        at_least("A second speed at the stated limit found", &[stated], MAP_LIMIT_LEAST),
    ]
    .concat()
}

fn row(memory: &Memory, own: &[Maps]) -> Vec<String> {
    let weather = match memory.weather {
        Weather::Steady => "",
        Weather::Drifting => ", rounds 2 % slower each",
        Weather::Hopping => ", half of the rounds at 0.7",
        Weather::Bursts => ", bursts at 0.6",
    };
    let name = format!("{}, {}, {:.0} %{weather}", memory.chunks, memory.rounds, memory.noise * 100.0);
    std::iter::once(name).chain(own.iter().map(|seen| seen.speeds.to_string())).collect()
}

fn words(limits: &[Limits]) -> String {
    let steps: Vec<f64> = limits.iter().flat_map(|one| one.steps.iter().copied()).collect();
    let at = |q: f64| quantile(&steps, q).map_or("–".to_string(), |step| format!("{step:.2}"));
    let uniform =
        limits.iter().map(|one| one.uniform).reduce(|one, other| one.and(other)).unwrap_or_default();
    format!(
        "\nOf {} such machines {} stated a limit for a tenth of the memory (median {}, a quarter of them {} or less), and {uniform} \
         were called uniform at 10 %.\n",
        uniform.of,
        steps.len(),
        at(0.5),
        at(0.25)
    )
}
