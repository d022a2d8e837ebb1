//! What modules could run at, what they run at, and what holds them back.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::Dimm;
use super::cpus::{Cpu, Family};

/// Speeds of all modules, MT/s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DimmSpeed {
    /// What the modules can do, each speed once.
    pub rated: Vec<u32>,
    /// What they run at, each speed once.
    pub configured: Vec<u32>,
    /// The fastest that the processor drives; null where it is not in the table.
    pub cpu_limit: Option<u32>,
    /// Whether a module runs slower than it can.
    pub below_rated: bool,
    /// `cpu_limit`, `slowest_module`, a limit of modules a channel in words, or null: not known or
    /// nothing to explain.
    pub likely_cause: Option<String>,
}

/// Limits by modules a channel: family, modules, load-reduced or not, MT/s.
const BY_MODULES: &[(Family, u32, bool, u32)] = &[
    (Family::SandyBridgeEp, 3, false, 1066),
    (Family::IvyBridgeEp, 3, false, 1066),
    (Family::HaswellEp, 2, false, 1866),
    (Family::HaswellEp, 3, false, 1600),
    (Family::HaswellEp, 3, true, 1866),
    (Family::BroadwellEp, 3, false, 1866),
    (Family::BroadwellEp, 3, true, 2133),
    (Family::CascadeLake, 2, false, 2666),
    (Family::CascadeLake, 2, true, 2666),
    (Family::Naples, 2, false, 2400),
    (Family::Naples, 2, true, 2400),
    (Family::Rome, 2, false, 2933),
    (Family::Rome, 2, true, 2933),
    (Family::Milan, 2, false, 2933),
    (Family::Milan, 2, true, 2933),
    (Family::SapphireRapids, 2, false, 4400),
    (Family::EmeraldRapids, 2, false, 4400),
    (Family::Genoa, 2, false, 3600),
];

/// Where these come from.
pub(super) const BY_MODULES_SOURCE: &str =
    "supported memory matrices of Dell's PowerEdge and Supermicro's board manuals";

pub(super) fn speed(dimms: &[Dimm], cpu: Option<Cpu>) -> DimmSpeed {
    let memory: Vec<&Dimm> = dimms.iter().filter(|dimm| dimm.is_memory()).collect();
    let all = |value: fn(&Dimm) -> Option<u32>| -> Vec<u32> {
        memory.iter().filter_map(|dimm| value(dimm)).collect::<BTreeSet<u32>>().into_iter().collect()
    };
    let (rated, configured) = (all(|dimm| dimm.speed_mts), all(|dimm| dimm.configured_mts));
    let slower: Vec<&&Dimm> = memory.iter().filter(|dimm| is_slower(dimm)).collect();
    let limit = cpu.and_then(|cpu| cpu.limit_mts());
    let cause = slower.iter().filter_map(|dimm| dimm.configured_mts).min().and_then(|runs| {
        if limit.is_some_and(|limit| same(runs, limit)) {
            return Some("cpu_limit".to_string());
        }
        if rated.first().is_some_and(|slowest| same(*slowest, runs)) {
            return Some("slowest_module".to_string());
        }
        by_modules(&memory, cpu?, runs)
    });
    DimmSpeed { rated, configured, cpu_limit: limit, below_rated: !slower.is_empty(), likely_cause: cause }
}

/// A module that runs slower than it can.
pub(super) fn is_slower(dimm: &Dimm) -> bool {
    dimm.speed_mts.zip(dimm.configured_mts).is_some_and(|(rated, runs)| runs < rated && !same(rated, runs))
}

/// Firmware rounds: 2666 and 2667, 1066 and 1067, 2133 and 2134 are one speed.
fn same(one: u32, other: u32) -> bool {
    one.abs_diff(other) <= 1
}

/// The limit that the fullest channel of a slow module brings with it.
fn by_modules(memory: &[&Dimm], cpu: Cpu, runs: u32) -> Option<String> {
    let place = |dimm: &Dimm| dimm.socket.zip(dimm.channel);
    let beside = |dimm: &Dimm| memory.iter().filter(|other| place(other) == place(dimm)).count() as u32;
    let fullest = memory.iter().filter(|dimm| place(dimm).is_some()).max_by_key(|dimm| beside(dimm))?;
    let count = beside(fullest);
    let reduced = fullest.load_reduced?;
    let row = BY_MODULES.iter().find(|(family, modules, load_reduced, mts)| {
        *family == cpu.facts.family && *modules == count && *load_reduced == reduced && same(*mts, runs)
    })?;
    let kind = if reduced { "LRDIMM" } else { "RDIMM" };
    Some(format!("{count} DPC limit for {kind} ({})", row.3))
}
