//! Cache and memory that others use while Assay is idle.

use schemars::JsonSchema;
use serde::Serialize;

use super::backing::{cache_kept, interference, of_neighbour};
use super::{HostRow, RowGrade};
use crate::regions::OutputNeighbour;
use diagnose::Diagnosis;
use diagnose::at_rest::{AtRest, cache_words};
use model::figure;
use model::vocabulary::host;
use stats::cache_share::CacheShare;
use stats::order::Interval;

/// What others used while Assay was idle.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputAtRest {
    /// Time that was watched, and looks in it.
    pub seconds: f64,
    pub looks: usize,
    /// Null where there were too few turns.
    pub cache: Option<OutputCacheShare>,
    /// The last-level cache that the kernel reports for the CPU that watched, MiB.
    pub reported_cache_mib: Option<f64>,
    /// Null where too little time was seen.
    pub neighbour: Option<OutputNeighbour>,
    /// GB/s of one CPU: the median look.
    pub bandwidth: Option<f64>,
    /// The 5th and the 95th percentile of the looks.
    pub bandwidth_range90: Option<[f64; 2]>,
    /// Half seconds in the order of time.
    pub time_line: Vec<OutputBlock>,
}

/// How much of a cache one CPU gets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputCacheShare {
    /// The median turn.
    pub mib: f64,
    /// The 5th and the 95th percentile of the turns.
    pub range90: [f64; 2],
    pub turns: usize,
    /// Whether the largest working set stayed nearly whole: it may be any amount more.
    pub at_least: bool,
    /// Whether its range spans more than a factor of two: others come and go.
    pub moves: bool,
}

/// Half a second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputBlock {
    /// Since the run began, s.
    pub at_s: f64,
    /// How many times as long loads took as in the quietest half seconds.
    pub slower: f64,
    pub slow: bool,
}

pub fn output(diagnosis: &Diagnosis) -> Option<OutputAtRest> {
    let rest = diagnosis.at_rest()?;
    let ends = |range: &Interval| [range.low, range.high];
    let cache = |share: CacheShare| OutputCacheShare {
        mib: share.mib,
        range90: ends(&share.range),
        turns: share.rounds,
        at_least: share.is_more,
        moves: share.moves(),
    };
    let blocks = rest.neighbour.iter().flat_map(|found| &found.blocks);
    Some(OutputAtRest {
        seconds: rest.seconds,
        looks: rest.looks,
        cache: rest.cache.map(cache),
        reported_cache_mib: rest.reported_mib,
        neighbour: rest.neighbour.as_ref().map(OutputNeighbour::of),
        bandwidth: rest.bandwidth.map(|(gb_per_s, _)| gb_per_s),
        bandwidth_range90: rest.bandwidth.map(|(_, range)| ends(&range)),
        time_line: blocks
            .map(|block| OutputBlock { at_s: block.at_s, slower: block.slower, slow: block.is_slow })
            .collect(),
    })
}

/// The rows of the cache, of bandwidth and of interference. If the host was not measured at rest,
/// the looks at memory regions supply the first and the last.
pub fn rows(diagnosis: &Diagnosis) -> [HostRow; 3] {
    let not_measured = |what| HostRow::missing(what, diagnosis, host::NEIGHBOURS);
    let Some(rest) = diagnosis.at_rest() else {
        let regions = diagnosis.regions();
        let own = regions.first();
        return [
            own.map_or_else(|| not_measured("cache share"), |own| cache_kept(diagnosis, own)),
            not_measured(host::metric::BANDWIDTH.as_str()),
            own.map_or_else(|| not_measured("interference"), interference),
        ];
    };
    let few = |what| HostRow::cannot_tell(what, few_words(&rest));
    let others = rest.neighbour.as_ref().map(|found| of_neighbour(found, rest.seconds));
    [cache(&rest), bandwidth(&rest), others.unwrap_or_else(|| few("interference"))]
}

fn few_words(rest: &AtRest) -> String {
    format!("watched too briefly ({:.0} s)", rest.seconds)
}

/// Of the cache that the kernel reports this is most of it.
const MOST_OF_CACHE: f64 = 0.5;

fn cache(rest: &AtRest) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("cache share", grade, word, reading);
    let Some(share) = rest.cache else {
        return HostRow::cannot_tell("cache share", few_words(rest));
    };
    let of = rest.reported_mib.map_or(String::new(), |mib| format!(" of {} MiB", figure(mib, "")));
    let reading = format!("{}{of}, {:.0} s", cache_words(&share), rest.seconds);
    match rest.reported_mib {
        _ if share.moves() => row(RowGrade::Poor, "moves", reading),
        // What is larger than all that was tried may be any part of it.
        Some(mib) if rest.largest_mib < MOST_OF_CACHE * mib => row(RowGrade::Fact, "steady", reading),
        Some(mib) if share.range.high < MOST_OF_CACHE * mib => row(RowGrade::Poor, "a part", reading),
        Some(mib) if share.range.low >= MOST_OF_CACHE * mib => row(RowGrade::Good, "ours", reading),
        _ => row(RowGrade::Fact, "steady", reading),
    }
}

fn bandwidth(rest: &AtRest) -> HostRow {
    let row = |grade, word: &str, reading: String| {
        HostRow::new(host::metric::BANDWIDTH.as_str(), grade, word, reading)
    };
    let Some((gb_per_s, Interval { low, high })) = rest.bandwidth else {
        return HostRow::cannot_tell(host::metric::BANDWIDTH.as_str(), few_words(rest));
    };
    let range = format!("{}–{}", figure(low, ""), figure(high, ""));
    row(RowGrade::Fact, "one CPU", format!("{} ({range}) in {} probes", figure(gb_per_s, "GB/s"), rest.looks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(cache: Option<CacheShare>, reported_mib: Option<f64>) -> AtRest {
        let (case, neighbour, bandwidth) = (String::new(), None, None);
        let largest_mib = 64.0;
        AtRest { case, looks: 490, seconds: 36.0, neighbour, cache, reported_mib, largest_mib, bandwidth }
    }

    fn share(mib: f64, low: f64, high: f64, is_more: bool) -> Option<CacheShare> {
        Some(CacheShare { rounds: 70, mib, range: Interval { low, high }, is_more })
    }

    #[test]
    fn a_share_is_ours_a_part_moves_or_cannot_be_told() {
        let told = |share, reported| {
            let row = cache(&rest(share, reported));
            (row.grade, row.word, row.reading)
        };
        let (grade, word, reading) = told(share(13.5, 12.9, 14.2, false), Some(96.0));
        assert_eq!((grade, word.as_str()), (RowGrade::Poor, "a part"));
        assert_eq!(reading, "13.5 MiB (12.9–14.2) of 96.0 MiB, 36 s");
        let words = |share, reported| told(share, reported).1;
        assert_eq!(words(share(13.5, 6.0, 14.2, false), Some(480.0)), "moves");
        assert_eq!(words(share(28.0, 26.0, 29.0, false), Some(32.0)), "ours");
        assert_eq!(words(share(16.0, 15.0, 17.0, false), Some(32.0)), "steady");
        assert_eq!(words(share(16.0, 15.0, 17.0, false), None), "steady");
        // No working set came near half of it: nothing is known of the rest.
        for (mib, is_more) in [(63.0, true), (13.5, false)] {
            let (grade, word, reading) = told(share(mib, mib - 1.0, mib + 1.0, is_more), Some(480.0));
            assert_eq!((grade, word.as_str()), (RowGrade::Fact, "steady"));
            assert_eq!(reading.starts_with("at least"), is_more, "{reading}");
        }
        let more = told(share(63.0, 62.0, 64.0, true), Some(96.0));
        assert!(more.0 == RowGrade::Good && more.2.starts_with("at least 63.0 MiB"), "{more:?}");
        assert_eq!(told(None, Some(480.0)).0, RowGrade::CannotTell);
        assert_eq!(bandwidth(&rest(None, None)).grade, RowGrade::CannotTell);
    }
}
