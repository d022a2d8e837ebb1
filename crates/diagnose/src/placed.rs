//! The physical memory of a rate suite's runs, and the rates that a memory map of the same run
//! predicts for them.

use super::memory_map::{NodeMap, maps};
use super::suite::{Part, Suite};
use machine::Machine;
use model::{PagePlaces, Run, percent};
use stats::memory_map::Answer;
use stats::places::{BlockSpeeds, Follows, Joined, MIN_RUNS, PagePlacement, join};
use stats::repeat::Shape;

/// Seed of the permutations: the same run gives the same answer.
const SEED: u64 = 1;

/// A component of the suite joined with the map, or the reason why it could not be joined.
pub struct Placed<'a> {
    pub part: &'a Part<'a>,
    pub joined: Result<Joined, String>,
}

/// The speed of each physical block by the maps of the run, or why it is unknown.
fn speeds(maps: &[NodeMap]) -> Result<BlockSpeeds, String> {
    if maps.is_empty() {
        return Err("no map of memory: assay rate --with-map makes one".to_string());
    }
    if maps.iter().any(|map| matches!(map.map.answer, Answer::Inconclusive(_))) {
        return Err("the map of memory is inconclusive".to_string());
    }
    let fastest = |map: &NodeMap| {
        map.typical * map.speeds().and_then(|speeds| speeds.speeds.last()).map_or(1.0, |speed| speed.median)
    };
    let best = maps.iter().map(fastest).fold(0.0, f64::max);
    // A node with one speed, a little below another node's, has no slow memory.
    let time = |map: &NodeMap, chunk: usize| {
        let own = map.speeds().and_then(|speeds| {
            let speed = speeds.membership.get(chunk).copied().flatten()?;
            speeds.speeds.get(speed)
        });
        let rate = own.map_or(fastest(map), |speed| map.typical * speed.median);
        if best / rate < NOT_SLOW_RATIO { 1.0 } else { best / rate }
    };
    let chunks = maps.iter().flat_map(|map| {
        map.visit.process.places.iter().enumerate().map(move |(chunk, places)| (time(map, chunk), places))
    });
    let speeds = BlockSpeeds::of(chunks);
    match speeds.is_empty() {
        true => Err(hidden(maps.iter().flat_map(|map| &map.visit.process.notes))),
        false => Ok(speeds),
    }
}

/// Memory within 5 % of the fastest is not slow.
const NOT_SLOW_RATIO: f64 = 1.05;

fn hidden<'a>(notes: impl Iterator<Item = &'a String>) -> String {
    let found = notes.into_iter().find(|note| note.contains("root"));
    found.cloned().unwrap_or_else(|| "this run has no physical addresses of its pages".to_string())
}

/// The processes of a component that its sequence counts, with their histograms.
fn places_of<'a>(run: &'a Run, part: &Part) -> Result<Vec<&'a [PagePlaces]>, String> {
    let planned = part.rate.series.planned;
    let own: Vec<_> =
        run.visits.iter().filter(|visit| visit.case as usize == planned && visit.reason.is_none()).collect();
    if own.iter().any(|visit| visit.process.places.is_empty()) {
        return Err(hidden(own.iter().flat_map(|visit| &visit.process.notes)));
    }
    Ok(own.iter().map(|visit| visit.process.places.as_slice()).collect())
}

/// Every component whose data fill memory, joined with the maps of the run; `None` where the run
/// has no map.
pub fn placed<'a>(run: &Run, machine: &Machine, suite: &'a Suite<'a>) -> Option<Vec<Placed<'a>>> {
    let maps = maps(run, machine);
    if maps.is_empty() {
        return None;
    }
    let speeds = speeds(&maps);
    let joined = |part: &Part| -> Result<Joined, String> {
        let speeds = speeds.as_ref().map_err(Clone::clone)?;
        let places = places_of(run, part)?;
        let rates: &[f64] = part.runs.as_ref().map_or(&[], |runs| &runs.values);
        if rates.len() < MIN_RUNS {
            return Err(format!("{} runs, {MIN_RUNS} are needed", rates.len()));
        }
        if rates.len() != places.len() {
            return Err("some of its runs gave no figure".to_string());
        }
        let lay: Option<Vec<PagePlacement>> = places.iter().map(|own| speeds.lay(own)).collect();
        let lay = lay.ok_or("the map covers less than half of a run's pages: allow it more memory")?;
        let runs: Vec<(f64, PagePlacement)> = rates.iter().copied().zip(lay).collect();
        join(&runs, part.scatter, SEED).ok_or_else(|| "its rates are not numbers".to_string())
    };
    let memory = suite.parts.iter().filter(|part| part.is_memory());
    Some(memory.map(|part| Placed { part, joined: joined(part) }).collect())
}

/// Why the physical pages of a suite's runs are not known; `None` where they are.
pub fn unplaced(run: &Run, suite: &Suite) -> Option<String> {
    let part = suite.parts.iter().find(|part| part.is_memory())?;
    places_of(run, part).err()
}

fn plus_minus(share: f64) -> String {
    format!("±{:.1} %", 100.0 * share)
}

/// Percent of each, with commas.
pub fn percents(shares: impl Iterator<Item = f64>) -> String {
    shares.map(|share| format!("{:.0}", 100.0 * share)).collect::<Vec<_>>().join(", ")
}

/// A sentence lists at most this many runs.
const MAX_RUNS_IN_SENTENCE: usize = 8;

impl Placed<'_> {
    pub fn follows(&self) -> Option<Follows> {
        self.joined.as_ref().ok().map(|joined| joined.follows)
    }

    /// The result as a sentence without a full stop; `None` if the join failed.
    pub fn words(&self) -> Option<String> {
        let joined = self.joined.as_ref().ok()?;
        let name = self.part.name();
        let runs = self.part.runs.as_ref()?;
        let levels = runs.levels.iter().map(|level| level.word()).collect::<Vec<_>>().join(", ");
        let slow = || percents(joined.lay.iter().map(|lay| lay.slow));
        let short = joined.lay.len() <= MAX_RUNS_IN_SENTENCE && runs.shape != Shape::Flat;
        Some(match joined.follows {
            Follows::Steady => format!("Runs of {name} are alike within {}", plus_minus(joined.swing)),
            Follows::Memory if short => {
                format!("{name}: {levels}, as its shares of slow memory predict ({} %)", slow())
            }
            Follows::Memory => format!(
                "Runs of {name} follow their shares of slow memory: predicted within {:.1} %",
                100.0 * joined.left
            ),
            Follows::Partly => format!(
                "Runs of {name} follow their shares of slow memory in part: {} predicted, {} measured",
                plus_minus(joined.swing_predicted),
                plus_minus(joined.swing)
            ),
            Follows::Not if joined.is_too_little() => format!(
                "Runs of {name} are not explained by where memory lay: {} predicted, {} measured",
                plus_minus(joined.swing_possible),
                plus_minus(joined.swing)
            ),
            Follows::Not => format!(
                "Runs of {name} are not explained by where memory lay: predicted {} off, {} measured",
                percent(joined.left),
                plus_minus(joined.swing)
            ),
        })
    }

    /// The result as the headline of a finding.
    pub fn headline(&self) -> Option<String> {
        let joined = self.joined.as_ref().ok()?;
        let name = self.part.name();
        Some(match joined.follows {
            Follows::Steady => format!("Runs of {name} are alike within {}", plus_minus(joined.swing)),
            Follows::Memory => format!(
                "Runs of {name} follow their share of slow memory within {:.1} %. Find the slow modules.",
                100.0 * joined.left
            ),
            Follows::Partly => format!(
                "Slow memory explains {} of the {} between runs of {name}. Find the slow modules.",
                plus_minus(joined.swing_predicted),
                plus_minus(joined.swing)
            ),
            Follows::Not => format!(
                "Slow memory does not explain the {} between runs of {name}. Look at other work.",
                plus_minus(joined.swing)
            ),
        })
    }
}

/// What the report shows if only root could see the physical pages.
pub const ORDER_SHOWN_INSTEAD: &str = "the order of the runs since boot is shown instead";
