//! The tables on sweeps over knobs and on differences shared out over many.

use prove::proof::{
    ADVICE_FOUND_LEAST, ADVICE_INVENTED_MOST, AdvisedOf, Advising, Drift, FACTORIAL_COVERAGE_LEAST, Knobs,
    Planted, Rate, STRONG_FALSE_MOST, SWEEP_BEST_LEAST, SWEEP_COVERAGE_LEAST, SWEEP_FALSE_MOST,
    SWEEP_FOUND_LEAST, SWEEP_INVENTED_MOST, SWEEP_KINDS_LEAST, SharedOut, Sweep, Swept, advised, shared_out,
    swept,
};
use stats::noise::Noise;

use super::statistics::{at_least, at_most, row, titled};
use super::{Section, measured};

pub const SECTIONS: &[Section] = &[
    Section { name: "sweep", title: "Simulated sweeps over one or two knobs", run: sweep },
    Section { name: "asked", title: "Simulated sweeps: what is asked of all visits", run: asked },
    Section { name: "advice", title: "Simulated sweeps: what is advised at the end", run: advice },
    Section { name: "factorial", title: "Simulated differences of many knobs", run: factorial },
];

/// Of each row. Nominal rates are checked against bounds near them, which takes more.
const FLAT_CURVES: usize = 2000;
const FLAT_MAPS: usize = 1000;
const CURVES: usize = 1000;
const MAPS: usize = 200;
const STUDIES: usize = 1000;

/// Not the one on which the prices were chosen (7).
const SEED: u64 = 20_261_122;

/// Name, noise, share of observations that take 1.5 times as long.
const NOISES: [(&str, Noise, f64); 6] = [
    ("1 %", Noise::Lognormal { cv: 0.01 }, 0.0),
    ("3 %", Noise::Lognormal { cv: 0.03 }, 0.0),
    ("5 %", Noise::Lognormal { cv: 0.05 }, 0.0),
    ("10 %", Noise::Lognormal { cv: 0.1 }, 0.0),
    ("3 %, 1 in 50 × 1.5", Noise::Lognormal { cv: 0.03 }, 0.02),
    ("Student 3, 3 %", Noise::Student3 { scale: 0.03 }, 0.0),
];

const DRIFTS: [(&str, Drift); 4] = [
    ("none", Drift::None),
    ("slow, 10 %", Drift::Slow),
    ("a step of 8 %", Drift::Step),
    ("wanders by 3 %", Drift::Wander),
];

/// Each drift has noise of its own, so that four of them are four times as many trials.
fn seed(drift: Drift) -> u64 {
    SEED + DRIFTS.iter().position(|(_, own)| *own == drift).unwrap_or(0) as u64
}

const PASSES: [u32; 2] = [4, 8];

const PLANTED: [(&str, Planted); 10] = [
    ("flat curve of 12", Planted::FlatCurve),
    ("flat map of 7 × 7", Planted::FlatMap),
    ("two cells apart by the floor", Planted::Floor),
    ("halves of 12, 20 % apart", Planted::Halves),
    ("fall, ragged, flat: curve", Planted::StoryCurve),
    ("fall, ragged, flat: map of 10 × 7", Planted::StoryMap),
    ("fall to a level band, 6 × 6", Planted::BandMap),
    ("two level halves, 6 × 6", Planted::HalvesMap),
    ("bowl, 7 × 7", Planted::Bowl),
    ("three best, 7 × 7", Planted::Plateau),
];

/// Heavy tails are shown, and no bound but that of the permutation test is stated for them.
fn bounded(noise: &Noise) -> bool {
    !matches!(noise, Noise::Student3 { .. })
}

fn sweep() -> String {
    let (mut rows, mut false_alarms, mut covered, mut best, mut kinds) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, planted) in PLANTED {
        let flat = matches!(planted, Planted::FlatCurve | Planted::FlatMap);
        let trials = match planted {
            Planted::FlatCurve => FLAT_CURVES,
            Planted::FlatMap => FLAT_MAPS,
            Planted::Floor | Planted::Halves | Planted::StoryCurve => CURVES,
            _ => MAPS,
        };
        for (noise_name, noise, outliers) in NOISES {
            let cells: Vec<Sweep> = PASSES
                .iter()
                .flat_map(|passes| {
                    DRIFTS.map(|(_, drift)| Sweep { planted, noise, outliers, drift, passes: *passes })
                })
                .collect();
            let found = measured(&cells, |sweep| swept(*sweep, trials / DRIFTS.len(), seed(sweep.drift)));
            for (passes, found) in PASSES.iter().zip(found.chunks(DRIFTS.len())) {
                let sum = found.iter().copied().fold(Swept::default(), Swept::and);
                if flat {
                    false_alarms.push(sum.matter);
                }
                if bounded(&noise) {
                    covered.push(sum.covered);
                    best.push(sum.best);
                    // A planted effect is detected if it is well above the error of a cell.
                    let told = matches!(noise_name, "1 %") || (noise_name == "3 %" && *passes == 8);
                    kinds.extend((told && sum.kinds.of > 0).then_some(sum.kinds));
                }
                rows.push(row(name, noise_name, *passes, sum));
            }
        }
    }
    let header = "planted | noise | passes | reported to matter | levels covered | interval over ideal | kinds \
         right | bounds within a cell | true best among the best | cells called best";
    [
        titled(header, rows),
        at_most("Flat, but reported to matter", &false_alarms, SWEEP_FALSE_MOST),
        at_least("Levels covered", &covered, SWEEP_COVERAGE_LEAST),
        at_least("True best among the best", &best, SWEEP_BEST_LEAST),
        at_least("Kinds right, noise 1 %, or 3 % and 8 passes", &kinds, SWEEP_KINDS_LEAST),
    ]
    .concat()
}

/// Two knobs, 7 × 2: six passes a cell are what a minute has time for where one takes a second,
/// twelve where it takes 0.3 s.
fn asked() -> String {
    const PASSES: [u32; 3] = [6, 12, 20];
    let planted = [
        ("nothing", Planted::FlatPair, 4000),
        ("a main effect of 5 %", Planted::MainEffect, CURVES),
        ("a trend of 8 %", Planted::Trend, CURVES),
        ("cross-over of 5 %", Planted::CrossOver, CURVES),
    ];
    let noises = [
        ("8 %", Noise::Lognormal { cv: 0.08 }, 0.0),
        ("8 %, 1 in 50 × 1.5", Noise::Lognormal { cv: 0.08 }, 0.02),
        ("Student 3, 5 %", Noise::Student3 { scale: 0.05 }, 0.0),
    ];
    let (mut rows, mut invented, mut found): (Vec<Vec<String>>, Vec<Rate>, Vec<Rate>) = Default::default();
    for (name, planted, trials) in planted {
        for (noise_name, noise, outliers) in noises {
            let sweeps = PASSES
                .map(|passes| DRIFTS.map(|(_, drift)| Sweep { planted, noise, outliers, drift, passes }));
            let cells = sweeps.concat();
            let all = measured(&cells, |sweep| swept(*sweep, trials / DRIFTS.len(), seed(sweep.drift)));
            for (passes, own) in PASSES.iter().zip(all.chunks(DRIFTS.len())) {
                let sum = own.iter().copied().fold(Swept::default(), Swept::and);
                invented.push(sum.invented);
                found.extend((noise_name == "8 %" && *passes == 12 && sum.found.of > 0).then_some(sum.found));
                let shown = [sum.found, sum.matter, sum.invented].map(|rate| rate.to_string());
                let words = [name.to_string(), noise_name.to_string(), passes.to_string()];
                rows.push([words, shown].concat());
            }
        }
    }
    let header = "planted | noise | passes a cell | found by its own test | reported to matter | found but not planted";
    [
        titled(header, rows),
        at_least("Found, 8 % of noise, 12 passes a cell", &found, SWEEP_FOUND_LEAST),
        at_most("Found but not planted", &invented, SWEEP_INVENTED_MOST),
    ]
    .concat()
}

/// Sweeps of a target and its response until 5 % would be seen of both, or for 30 passes.
fn advice() -> String {
    const EACH: usize = 100;
    let kinds = [
        ("a compromise of 6 %, map of 7 × 7", true, false, [0.08, 0.08]),
        ("a compromise of 6 %, map of 7 × 7", true, false, [0.04, 0.12]),
        ("nothing, map of 7 × 7", false, false, [0.08, 0.08]),
        ("nothing, curve of 12", false, true, [0.08, 0.08]),
        ("nothing, curve of 12", false, true, [0.04, 0.12]),
    ];
    let cells: Vec<(usize, Advising)> = kinds
        .iter()
        .flat_map(|(_, planted, curve, cv)| {
            let trials = if *planted { EACH / 2 } else { 2 * EACH };
            let of = |drift| Advising { planted: *planted, curve: *curve, cv: *cv, drift, most: 30 };
            DRIFTS.map(|(_, drift)| (trials, of(drift)))
        })
        .collect();
    let all = measured(&cells, |(trials, of)| advised(*of, *trials, seed(of.drift)));
    let (mut rows, mut found, mut invented): (Vec<Vec<String>>, Vec<Rate>, Vec<Rate>) = Default::default();
    for ((name, planted, _, [target, response]), own) in kinds.iter().zip(all.chunks(DRIFTS.len())) {
        let sum = own.iter().copied().fold(AdvisedOf::default(), AdvisedOf::and);
        if *planted {
            found.push(sum.region);
        } else {
            invented.push(sum.anything);
        }
        let rates = [sum.anything, sum.region, sum.setting, sum.worse, sum.covered, sum.seen];
        let noise = format!("{:.0} %, {:.0} %", 100.0 * target, 100.0 * response);
        let mut row =
            vec![name.to_string(), noise, format!("{:.0}", sum.passes as f64 / sum.anything.of as f64)];
        row.extend(rates.iter().map(Rate::to_string));
        rows.push(row);
    }
    let header = "planted | noise of target, of response | passes, mean | anything advised | compromise with \
         its region | a planted setting named | compromises whose response is over 10 % worse | gains \
         covered | 5 % would have been seen";
    [
        titled(header, rows),
        at_least("Compromise with its region", &found, ADVICE_FOUND_LEAST),
        at_most("Nothing planted, and anything advised", &invented, ADVICE_INVENTED_MOST),
    ]
    .concat()
}

fn row(name: &str, noise: &str, passes: u32, sum: Swept) -> Vec<String> {
    row![
        name,
        noise,
        passes,
        sum.matter,
        sum.covered,
        format!("{:.2}", sum.widths / sum.covered.of as f64),
        sum.kinds,
        sum.boundaries,
        sum.best,
        format!("{:.1}", sum.best_size())
    ]
}

fn factorial() -> String {
    let (mut rows, mut covered, mut false_strong): (Vec<Vec<String>>, Vec<Rate>, Vec<Rate>) =
        Default::default();
    for (noise_name, noise, outliers) in NOISES {
        for passes in [4, 6, 10] {
            let cells = DRIFTS.map(|(_, drift)| Knobs { noise, outliers, drift, passes });
            let found = measured(&cells, |knobs| shared_out(*knobs, STUDIES, seed(knobs.drift)));
            let sum = found.into_iter().fold(SharedOut::default(), SharedOut::and);
            let rates =
                [sum.total, sum.mains, sum.pairs, sum.remainder, sum.by_pass, sum.false_strong, sum.strong];
            if bounded(&noise) && passes >= 6 {
                covered.extend(&rates[..4]);
                false_strong.push(sum.false_strong);
            }
            let mut row = vec![noise_name.to_string(), passes.to_string()];
            row.extend(rates.iter().map(Rate::to_string));
            row.push(format!("{:.2}", sum.by_pass_width / sum.by_pass.of as f64));
            rows.push(row);
        }
    }
    let header = "noise | passes | total covered | mains | pairs | remainder | mains by each pass's own \
         contrast (not used) | a knob without effect called strong | knobs of 20, 8, 5 % called \
         strong | width of those by pass over ours";
    [
        titled(header, rows),
        at_least("Effects covered, from 6 passes", &covered, FACTORIAL_COVERAGE_LEAST),
        at_most("A knob without effect called strong, from 6 passes", &false_strong, STRONG_FALSE_MOST),
    ]
    .concat()
}
