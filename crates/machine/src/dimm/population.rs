//! What a judged population of DIMMs consists of.

use std::collections::BTreeMap;

use model::Severity;
use schemars::JsonSchema;
use serde::Serialize;

use super::speed::DimmSpeed;
use super::{MappedRange, MemoryArray};

/// How evenly modules are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    Balanced,
    NearBalanced,
    Unbalanced,
    BalancedWithDifferences,
}

impl Balance {
    pub fn words(self) -> &'static str {
        match self {
            Balance::Balanced => "balanced",
            Balance::NearBalanced => "near balanced",
            Balance::Unbalanced => "unbalanced",
            Balance::BalancedWithDifferences => "balanced, with different modules",
        }
    }
}

/// How sure the tables and the rules make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// Something that the population shows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DimmFinding {
    /// `socket_without_memory`, `socket_capacity_differs`, `socket_dimm_count_differs`,
    /// `socket_layout_differs`, `controller_imbalance`, `channel_capacity_differs`,
    /// `channel_dimm_count_differs`, `channels_empty`, `mixed_sizes`, `mixed_ranks`, `mixed_parts`,
    /// `mixed_manufacturers`, `mixed_speeds` or `below_rated_speed`.
    pub kind: &'static str,
    pub severity: Severity,
    pub confidence: Confidence,
    pub text: String,
    /// What to move or add, in the board's own names; null where another finding says it, or
    /// nothing helps.
    #[serde(rename = "move")]
    pub remedy: Option<String>,
}

/// One processor's memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SocketMemory {
    pub socket: u32,
    /// The processor's name; null where the tables do not report it.
    pub cpu: Option<String>,
    pub dimms: usize,
    pub bytes: u64,
    /// Slots, empty ones included; null where empty slots have lost their names.
    pub slots: Option<usize>,
    pub channels_populated: usize,
    pub channels_total: Option<u32>,
    pub dimms_per_channel: BTreeMap<u32, usize>,
    pub bytes_per_channel: BTreeMap<u32, u64>,
    /// Null where the processor's family has one controller or does not report it.
    pub dimms_per_controller: Option<BTreeMap<u32, usize>>,
    pub controllers_total: Option<u32>,
    /// What the filled channels move at most together, GB/s; null where a speed is unknown.
    pub gb_per_s: Option<f64>,
    /// The same with every channel filled.
    pub gb_per_s_all_channels: Option<f64>,
}

/// A judged population.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Population {
    /// Null where no modules are reported, or where no rule says which channel a slot belongs
    /// to.
    pub dimm_verdict: Option<Balance>,
    pub dimm_confidence: Option<Confidence>,
    /// The gravest first.
    pub dimm_findings: Vec<DimmFinding>,
    /// What to do about the verdict; null where there is nothing to do or nothing known.
    pub dimm_move: Option<String>,
    /// The family of boards whose names these are; null where none is known.
    pub dimm_platform: Option<String>,
    /// Where that rule was read.
    pub dimm_source: Option<String>,
    /// The processors' family, and where its channels and interleaving were read.
    pub dimm_cpu_family: Option<String>,
    pub dimm_cpu_source: Option<String>,
    /// What limits this judgement, as sentences.
    pub dimm_remarks: Vec<String>,
    /// Sockets with a processor; empty where slots could not be placed.
    pub dimm_sockets: Vec<SocketMemory>,
    /// Null where no modules are reported.
    pub dimm_speed: Option<DimmSpeed>,
    pub dimm_arrays: Vec<MemoryArray>,
    pub dimm_ranges: Vec<MappedRange>,
}
