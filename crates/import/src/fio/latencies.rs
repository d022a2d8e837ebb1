//! Latencies of a job to series, and whether its figures fit each other.

use super::{Direction, DirectionStats, Spread, numbers};
use crate::builder::{Builder, Meaning};
use crate::faults::{Faults, short};
use crate::percentiles::{percentile_name, too_few_beyond};

/// The latencies of one direction: percentiles, and what is printed of the whole.
pub fn latencies(
    name: &str,
    synchronous: bool,
    side: &DirectionStats,
    notes: &[String],
    us: &dyn Fn(&str, &[String]) -> Meaning,
    builder: &mut Builder,
    faults: &mut Faults,
) {
    // Printed percentiles of the total latency are those that Assay measures.
    let whole = !side.lat.percentiles.is_empty();
    let main = if whole { &side.lat } else { &side.clat };
    let mut own = notes.to_vec();
    if !whole && !synchronous {
        own.push("completion latency: from the submission on".to_string());
    }
    let observations = main.n.or(side.ios);
    percentiles(main, "latency", observations, &|metric| us(metric, &own), builder);
    let longest = side.runtime_ms.filter(|time| *time > 0.0);
    let mut put = |metric: &str, value: Option<f64>, times: f64, notes: &[String]| {
        let Some(value) = value else { return };
        let (us, limit) = (us(metric, notes), longest.map(|ms| ms * 1e6 * times + 1e8));
        match limit.filter(|limit| value > *limit) {
            Some(_) => {
                let why = format!(
                    "{:.3} s is longer than the run of {:.3} s",
                    value / 1e9,
                    longest.unwrap_or(0.0) / 1e3
                );
                faults.disagree(&short(name), format!("{metric}: {why}"), "the job");
                builder.missing(us, why);
            }
            None => builder.value(us, value / 1e3),
        }
    };
    let taken = |spread: &Spread| spread.n != Some(0.0);
    if taken(main) {
        put("latency_mean", main.mean, 1.05, &own);
        put("latency_max", main.max, 2.0, &own);
    }
    put("submission_mean", side.slat.mean.filter(|mean| *mean > 0.0), 1.05, notes);
    put("total_mean", side.lat.mean.filter(|_| taken(&side.lat)), 1.05, notes);
    if !taken(main) {
        for metric in ["latency_mean", "latency_max"] {
            let why = "no latency was measured: the printed one is of no I/O";
            builder.missing(us(metric, &own), why.to_string());
        }
    }
}

/// The highest percentile that counts if the number of I/Os is unknown.
const UNTOLD_MOST: f64 = 99.0;

/// The percentiles of a latency; one that too few lie beyond is none.
pub fn percentiles(
    spread: &Spread,
    stem: &str,
    observations: Option<f64>,
    us: &dyn Fn(&str) -> Meaning,
    builder: &mut Builder,
) {
    for (percent, value) in &spread.percentiles {
        let (Some(metric), Some(at)) = (percentile_name(stem, percent), numbers::plain(percent)) else {
            continue;
        };
        let Some(value) = value else {
            builder.missing(us(&metric), "it prints no valid number".to_string());
            continue;
        };
        // A cut text lacks its number of I/Os.
        let untold = (observations.is_none() && at > UNTOLD_MOST)
            .then(|| "its number of I/Os, and so whether ten lie beyond it, is unknown".to_string());
        let why = untold.or_else(|| too_few_beyond(at, observations, &format!("{} µs", value / 1e3)));
        match why.or_else(|| at_ceiling(*value, spread.max)) {
            Some(why) => builder.missing(us(&metric), why),
            None => builder.value(us(&metric), value / 1e3),
        }
    }
}

/// The last bucket of fio's histograms: its start, its middle, which is printed, and where it would
/// end, ns. What is longer is counted in it. Of version 3, and of version 2, which counted in us.
const LAST_BUCKETS: [[f64; 3]; 2] = [
    [17_045_651_456.0, 17_112_760_320.0, 17_179_869_184.0],
    [16_646_144_000.0, 16_711_680_000.0, 16_777_216_000.0],
];

/// Why a percentile is one only from below: it is in the last bucket, and longer ones are, too.
fn at_ceiling(value: f64, max: Option<f64>) -> Option<String> {
    let is_last = |[_, middle, end]: &&[f64; 3]| {
        (value / middle - 1.0).abs() < 5e-5 && max.is_none_or(|max| max > *end)
    };
    let [begin, ..] = LAST_BUCKETS.iter().find(is_last)?;
    Some(format!(
        "at least {:.2} s: it prints {:.0} µs, the last step of its histogram, which counts everything longer",
        begin / 1e9,
        value / 1e3
    ))
}

/// Whether rates are amounts over the time: 2 %, and the last digit of the time and of what is
/// printed with few.
pub fn check(name: &str, way: Direction, side: &DirectionStats, faults: &mut Faults) {
    let Some(ms) = side.runtime_ms.filter(|ms| *ms > 0.0) else { return };
    let tolerance = 0.02 + 1.0 / ms;
    let carried = side.bytes_carry * 1e3 / ms;
    let rates = [
        ("iops", side.iops, side.ios, 1.0, (0.0, side.iops_carry)),
        ("bandwidth", side.bandwidth, side.bytes, 1e6, (carried, 0.0)),
    ];
    for (what, printed, amount, scale, (missing, lost)) in rates {
        let (Some(printed), Some(amount)) = (printed, amount) else { continue };
        let found = amount * 1e3 / ms;
        // Either may lack what a carry lost.
        if printed > found && printed < found + missing || found > printed && found < printed + lost {
            continue;
        }
        if (printed - found).abs() > tolerance * printed.max(found) + 1.0 {
            let unit = if scale > 1.0 { " MB/s" } else { " 1/s" };
            faults.disagree(
                &format!("{} {}", short(name), way.word()),
                format!(
                    "{what} says {:.1}{unit}; its amount over its {ms:.0} ms is {:.1}{unit}",
                    printed / scale,
                    found / scale
                ),
                "the job",
            );
        }
    }
}
