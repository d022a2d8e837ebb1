//! Regions of memory as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use diagnose::Diagnosis;
use diagnose::moved::Moved;
use diagnose::regions::EvaluatedRegions;
use stats::order::Interval;
use stats::regions::{Cause, Neighbour};

/// What the looks of one case at regions of memory say.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRegions {
    /// Key of the case: of `memory.regions`, or of a map.
    pub case: String,
    /// Null if the kernel reports no nodes.
    pub node: Option<u32>,
    pub region_bytes: u64,
    /// What they say, a sentence each.
    pub words: Vec<String>,
    /// What differs between regions, with its cause if it is large enough to be named.
    pub differences: Vec<OutputDifference>,
    /// What a translation that is in no TLB adds to a load, ns, against pages that lie as far
    /// apart.
    pub translation_ns: Option<[f64; 2]>,
    /// The same against loads on few pages: with what rows of the memory save at most.
    pub price_ns: Option<[f64; 2]>,
    /// Huge pages that behave as backed by small ones, from those that surely do to those that may,
    /// 0..1; null where there are no huge pages.
    pub small_share: Option<[f64; 2]>,
    /// Huge pages that were looked at.
    pub huge_pages: Option<usize>,
    /// Huge pages whose loads take 1.17 times as long as others' of their region or longer, from
    /// those that surely do to those that may, 0..1; null if not tested.
    pub far_share: Option<[f64; 2]>,
    /// How many times as long they take; null where they are so few that it may be chance.
    pub far_times: Option<f64>,
    /// Share of bandwidth that reading whole pages in any order costs.
    pub hopping_loss: Option<[f64; 2]>,
    /// Share of a program's lines that were still in the shared cache after a quarter of a
    /// millisecond, 0..1.
    pub kept_in_cache: Option<[f64; 2]>,
    /// Null where too little time was seen.
    pub neighbour: Option<OutputNeighbour>,
    /// What moved the memory meanwhile, and what touching it first cost; null where the run did not
    /// ask.
    pub moved: Option<Moved>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputDifference {
    pub cause: OutputCause,
    /// Whether it is large enough for the cause to be named.
    pub named: bool,
    /// Slow against fast regions: ns of a translation, a ratio of latencies or of bandwidths.
    pub size: f64,
    pub interval: [f64; 2],
    /// Share of the regions that are slow, 0..1, and the regions in the order of allocation.
    pub slow_share: f64,
    pub slow: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputCause {
    Translation,
    Distance,
    Transfer,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputNeighbour {
    /// `named`, `quiet`, or `cannot_tell`.
    pub says: &'static str,
    /// Share of the time of looks in which loads took longer, 0..1, and how many half seconds were
    /// seen.
    pub share: f64,
    pub half_seconds: usize,
    /// How many times longer.
    pub slower: f64,
}

pub fn output(diagnosis: &Diagnosis) -> Vec<OutputRegions> {
    diagnosis.regions().iter().map(of_case).collect()
}

fn of_case(own: &EvaluatedRegions) -> OutputRegions {
    let pair = |interval: Option<Interval>| interval.map(|interval| [interval.low, interval.high]);
    let difference = |found: &stats::regions::Difference| OutputDifference {
        cause: match found.cause {
            Cause::Translation => OutputCause::Translation,
            Cause::Distance => OutputCause::Distance,
            Cause::Transfer => OutputCause::Transfer,
        },
        named: found.is_named(),
        size: found.size,
        interval: [found.interval.low, found.interval.high],
        slow_share: found.slow_share(),
        slow: found.slow.clone(),
    };
    OutputRegions {
        case: own.case.clone(),
        node: own.node,
        region_bytes: own.region_bytes,
        words: own.sentences(),
        differences: own.found.differences.iter().map(difference).collect(),
        translation_ns: pair(own.found.translation_ns),
        price_ns: pair(own.found.price_ns),
        small_share: pair(own.small.map(|small| small.share())),
        huge_pages: own.small.map(|small| small.of),
        far_share: pair(own.far.map(|far| far.blocks.share())),
        far_times: own.far.filter(|far| far.is_named()).map(|far| far.times),
        hopping_loss: pair(own.hopping_loss),
        kept_in_cache: pair(own.kept),
        neighbour: own.neighbour.as_ref().map(OutputNeighbour::of),
        moved: own.moved.clone(),
    }
}

impl OutputNeighbour {
    pub fn of(found: &Neighbour) -> OutputNeighbour {
        OutputNeighbour {
            says: match (found.is_named(), found.is_quiet()) {
                (true, _) => "named",
                (false, true) => "quiet",
                (false, false) => "cannot_tell",
            },
            share: found.share,
            half_seconds: found.blocks.len(),
            slower: found.slower,
        }
    }
}
