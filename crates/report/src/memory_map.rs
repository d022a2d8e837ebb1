//! Maps of memory as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use diagnose::Diagnosis;
use diagnose::memory_map::NodeMap;
use stats::memory_map::{Answer, Candidate, Support};

/// The map of one NUMA node's memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputMap {
    /// Null if the kernel reports no nodes.
    pub node: Option<u32>,
    pub answer: OutputAnswer,
    /// The answer as a sentence.
    pub words: String,
    pub chunks: usize,
    pub chunk_bytes: u64,
    /// Counted rounds.
    pub rounds: usize,
    /// Bandwidth of the median chunk, GB/s.
    pub typical_gb_s: f64,
    /// Robust relative standard deviation of the chunks; null where there are too few.
    pub sigma: Option<f64>,
    /// Spearman's rho between odd and even rounds; null if it is unknown.
    pub repeatability: Option<f64>,
    /// The smallest ratio of two speeds that the test had to find.
    pub asked_ratio: f64,
    /// Which second speeds would have been seen; empty where there are several, or too little was
    /// measured.
    pub seen: Vec<OutputSeen>,
    /// The fastest speed over the slowest; null where there is one, as are the next five.
    pub ratio: Option<f64>,
    /// Share of the chunks that are not of the fastest speed, 0..1, and their bytes.
    pub slow_share: Option<f64>,
    pub slow_bytes: Option<f64>,
    /// Losses against fast memory, 0..1: of a process wholly in the slowest part, of one spread
    /// over all of it.
    pub loss_in_slow: Option<f64>,
    pub loss_spread: Option<f64>,
    /// A letter a chunk, F fast, S slow, M between, in the order of allocation.
    pub map: Option<String>,
    /// The same in physical order; null where addresses are hidden, too.
    pub physical_map: Option<String>,
    /// Sets of channels that could make it, with what speaks for each.
    pub candidates: Vec<OutputCandidate>,
    /// Each chunk's bandwidth relative to the median chunk; null of a chunk without values.
    pub relative: Vec<Option<f64>>,
    /// Middle of the physical addresses of each chunk, GiB; null where addresses are hidden.
    pub physical_gib: Option<Vec<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputAnswer {
    SeveralSpeeds,
    Uniform,
    Inconclusive,
}

/// A second speed in this share of the memory would have been seen if it were this ratio apart or
/// more.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputSeen {
    pub share: f64,
    /// Null: none that was planted.
    pub ratio: Option<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputCandidate {
    /// Channels of the wide and of the narrow set.
    pub sets: [usize; 2],
    pub expected_ratio: f64,
    pub expected_slow_share: f64,
    /// Nothing is against it, and more than the ratio for it.
    pub stands: bool,
    /// What each kind of evidence says: `for`, `open`, `against`; null where it is not known.
    pub by_ratio: Option<&'static str>,
    pub by_share: Option<&'static str>,
    pub by_channels: Option<&'static str>,
}

/// All maps of a run.
pub fn output(diagnosis: &Diagnosis) -> Vec<OutputMap> {
    diagnosis.memory_maps().iter().map(of_node).collect()
}

fn known(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn of_node(found: &NodeMap) -> OutputMap {
    let order = found.physical_order();
    OutputMap {
        node: found.node,
        answer: match found.map.answer {
            Answer::Speeds(_) => OutputAnswer::SeveralSpeeds,
            Answer::Uniform => OutputAnswer::Uniform,
            Answer::Inconclusive(_) => OutputAnswer::Inconclusive,
        },
        words: found.words(),
        chunks: found.chunks(),
        chunk_bytes: found.chunk_bytes,
        rounds: found.map.rounds,
        typical_gb_s: found.typical,
        sigma: known(found.map.sigma),
        repeatability: found.map.repeatability,
        asked_ratio: found.asked,
        seen: found
            .map
            .limits
            .iter()
            .map(|limit| OutputSeen { share: limit.share, ratio: limit.ratio })
            .collect(),
        ratio: found.speeds().map(|speeds| speeds.ratio),
        slow_share: found.speeds().map(|speeds| speeds.slow_share()),
        slow_bytes: found.slow_bytes(),
        loss_in_slow: found.losses().map(|[whole, _]| whole),
        loss_spread: found.losses().map(|[_, spread]| spread),
        map: found.letters(None),
        physical_map: order.as_deref().and_then(|order| found.letters(Some(order))),
        candidates: found.candidates().iter().map(candidate).collect(),
        relative: found.map.medians.iter().map(|median| known(*median)).collect(),
        physical_gib: found.physical.as_ref().map(|places| places.iter().map(|[place, _]| *place).collect()),
    }
}

fn candidate(candidate: &Candidate) -> OutputCandidate {
    let word = |says: Support| match says {
        Support::For => "for",
        Support::Open => "open",
        Support::Against => "against",
    };
    let [ratio, share] = candidate.expected();
    OutputCandidate {
        sets: candidate.sets,
        expected_ratio: ratio,
        expected_slow_share: share,
        stands: candidate.stands(),
        by_ratio: Some(word(candidate.ratio)),
        by_share: candidate.share.map(word),
        by_channels: candidate.channels.map(word),
    }
}
