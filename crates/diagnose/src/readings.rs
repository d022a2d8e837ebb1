//! What curves show of a host, compared with what the kernel reports: sizes of caches, reach of
//! address translation, cache line, loads in flight.

use super::Evidence;
use super::ladder::{Curve, Ladder, LastCache, curves, ladder};
use super::words::{bytes, figure, sizes};
use model::vocabulary::memory as ids;
use stats::analysis::Judged;
use stats::steps::{Step, steps};

/// One property, measured and claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveReading {
    pub name: String,
    pub measured: String,
    /// `None`: nothing is reported.
    pub claimed: Option<String>,
    /// `None` where there is nothing to compare, or too little was measured.
    pub agrees: Option<bool>,
    /// Key of the case whose curve it was read off.
    pub source: String,
}

/// All properties that the curves of a run show.
pub fn readings(evidence: &Evidence) -> Vec<CurveReading> {
    let mut readings = Vec::new();
    if let Some(ladder) = ladder(evidence) {
        caches(&ladder, by_source(evidence), &mut readings);
    }
    translation(evidence, &mut readings);
    readings.extend(line(evidence));
    readings.extend(parallelism(evidence));
    readings
}

fn size_words(step: &Step) -> String {
    format!("{}, {}", sizes(step.at, step.low, step.high), figure(step.before, "ns"))
}

/// Whether the table of latencies by source has memory's: one quantity has one row.
fn by_source(evidence: &Evidence) -> bool {
    let dram = |judged: &&Judged| {
        let case = &judged.series.case;
        case.bench == ids::DATA_SOURCE
            && case.params.get(ids::param::SOURCE).and_then(|source| source.text()) == Some("dram")
    };
    let usable = |judged: &Judged| judged.analysis.estimate.is_some() && judged.analysis.verdict.usable();
    evidence.series.iter().filter(dram).any(usable)
}

fn caches(ladder: &Ladder, memory_by_source: bool, readings: &mut Vec<CurveReading>) {
    let source = ladder.curve.key.clone();
    let mut told = Vec::new();
    for (index, (name, claimed)) in ladder.claimed.iter().enumerate() {
        let is_last = index + 1 == ladder.claimed.len();
        let (measured, agrees) = match (ladder.step_of(index), ladder.last_cache()) {
            (Some(step), _) => {
                told.push(step);
                (size_words(step), Some(step.agrees(*claimed)))
            }
            (None, Some(LastCache::AtLeast(end))) if is_last => {
                (format!("{} or more", bytes(end)), Some(false))
            }
            _ => ("no end seen".to_string(), None),
        };
        let name = format!("{name} size, latency");
        readings.push(CurveReading {
            name,
            measured,
            claimed: Some(bytes(*claimed)),
            agrees,
            source: source.clone(),
        });
    }
    for step in ladder.steps.steps.iter().filter(|step| !told.contains(step)) {
        let name = "size of a further level, latency".to_string();
        readings.push(CurveReading {
            name,
            measured: size_words(step),
            claimed: None,
            agrees: None,
            source: source.clone(),
        });
    }
    let measured = match ladder.memory_ns() {
        Some(_) if memory_by_source => return,
        Some(latency) => figure(latency, "ns"),
        None => format!("not reached with blocks up to {}", bytes(ladder.steps.end)),
    };
    readings.push(CurveReading {
        name: "memory latency".into(),
        measured,
        claimed: None,
        agrees: None,
        source,
    });
}

/// Where a load costs more because its page's address is no longer at hand: the price over as many
/// packed lines.
fn translation(evidence: &Evidence, readings: &mut Vec<CurveReading>) {
    let layout = |wanted: &'static str| {
        let curve = curves(evidence, ids::TLB, ids::metric::LATENCY, ids::param::PAGES, |case| {
            case.params.get(ids::param::LAYOUT).and_then(|layout| layout.text()) == Some(wanted)
        });
        curve.into_iter().next()
    };
    let (Some(spread), Some(packed)) = (layout("spread"), layout("packed")) else { return };
    let Some(price) = price(&spread, &packed).and_then(|price| steps(&price)) else { return };
    let page = evidence.machine.memory.page_bytes;
    const NAMES: [&str; 2] = ["address translation, first level", "address translation, second level"];
    for (name, step) in NAMES.into_iter().zip(&price.steps) {
        let reach = page.map_or(String::new(), |page| format!(", {}", bytes(step.at * page as f64)));
        let measured = format!(
            "{:.0} pages ({:.0}–{:.0}){reach}; then {} more per load",
            step.at,
            step.low,
            step.high,
            figure(step.after - price.first, "ns")
        );
        readings.push(CurveReading {
            name: name.into(),
            measured,
            claimed: None,
            agrees: None,
            source: spread.key.clone(),
        });
    }
}

/// What spread lines cost more than packed ones, on top of what a packed line costs in the nearest
/// cache.
fn price(spread: &Curve, packed: &Curve) -> Option<Vec<(f64, f64)>> {
    let nearest = packed.points.first()?.1;
    let both = spread.points.iter().filter_map(|(pages, latency)| {
        let control = packed.points.iter().find(|(other, _)| other == pages)?.1;
        Some((*pages, nearest + (latency - control).max(0.0)))
    });
    Some(both.collect())
}

/// Shares of the whole rise at which a second load counts as half a miss (its line was on its way),
/// and as one.
const PARTLY: f64 = 0.15;
const MISSED: f64 = 0.75;

/// The smallest distance of two loads that costs like two misses, and whether a smaller one costs
/// in between: `None` for a curve that does not rise by half.
fn line_of(points: &[(f64, f64)]) -> Option<(f64, Option<f64>)> {
    let (low, high) = (points.first()?.1, points.last()?.1);
    if points.len() < 4 || high < 1.3 * low {
        return None;
    }
    let first_from = |share: f64| points.iter().find(|(_, value)| *value >= low + share * (high - low));
    let (missed, partly) = (first_from(MISSED)?.0, first_from(PARTLY)?.0);
    Some((missed, (partly < missed).then_some(partly)))
}

fn line(evidence: &Evidence) -> Option<CurveReading> {
    let curve =
        curves(evidence, ids::LINE, ids::metric::LATENCY, ids::param::OFFSET, |_| true).into_iter().next()?;
    let (missed, partly) = line_of(&curve.points)?;
    let cpu = curve.case.placement.cpus().first()?;
    let claimed = evidence.machine.last_level_cache(cpu).and_then(|cache| cache.line_bytes).map(f64::from);
    // If the neighbour line arrives so early that it costs nothing, the pair reads as one line.
    let pair = partly.or(claimed.filter(|claimed| 2.0 * claimed == missed));
    let (measured, size) = match pair {
        Some(line) => (format!("{line:.0} B, fetched in pairs ({missed:.0} B)"), line),
        None => (format!("{missed:.0} B"), missed),
    };
    Some(CurveReading {
        name: "cache line".into(),
        measured,
        claimed: claimed.map(|claimed| format!("{claimed:.0} B")),
        agrees: claimed.map(|claimed| claimed == size),
        source: curve.key,
    })
}

fn parallelism(evidence: &Evidence) -> Option<CurveReading> {
    let curve = curves(evidence, ids::PARALLELISM, ids::metric::LATENCY, ids::param::CHAINS, |_| true)
        .into_iter()
        .next()?;
    let alone = curve.points.iter().find(|(chains, _)| *chains == 1.0)?.1;
    let (chains, best) = curve.points.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let measured = format!(
        "{} of {chains:.0} ({} each, {} alone)",
        figure(alone / best, ""),
        figure(best, "ns"),
        figure(alone, "ns")
    );
    Some(CurveReading {
        name: "loads from memory at once".into(),
        measured,
        claimed: None,
        agrees: None,
        source: curve.key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(values: [f64; 7]) -> Vec<(f64, f64)> {
        [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0].into_iter().zip(values).collect()
    }

    #[test]
    fn lines_of_64_and_128_bytes_and_pairs() {
        assert_eq!(line_of(&pairs([65.0, 64.0, 65.5, 127.0, 128.0, 127.0, 129.0])), Some((64.0, None)));
        assert_eq!(line_of(&pairs([65.0, 64.0, 65.5, 66.0, 128.0, 127.0, 129.0])), Some((128.0, None)));
        assert_eq!(line_of(&pairs([65.0, 64.0, 65.5, 80.0, 128.0, 127.0, 129.0])), Some((128.0, Some(64.0))));
        // The latency of the second load alone.
        assert_eq!(line_of(&pairs([2.0, 2.0, 2.1, 127.0, 128.0, 127.0, 129.0])), Some((64.0, None)));
        assert_eq!(line_of(&pairs([65.0; 7])), None);
        assert_eq!(line_of(&[(8.0, 1.0), (512.0, 9.0)]), None);
    }
}
