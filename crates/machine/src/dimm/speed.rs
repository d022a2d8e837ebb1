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
    /// `cpu_limit`, `slowest_module`, a limit of modules per channel in words, or null: not known
    /// or nothing to explain.
    pub likely_cause: Option<String>,
    /// Where a limit of modules per channel was read.
    #[serde(skip)]
    pub limit_source: Option<&'static str>,
}

/// What modules of a channel run at, at most.
struct Limit {
    family: Family,
    modules: u32,
    buffer: Buffer,
    mts: u32,
    source: &'static str,
}

/// Modules that a row is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Buffer {
    Any,
    /// Registered, of one or two ranks.
    Registered,
    /// Registered, of four ranks.
    Quad,
    LoadReduced,
}

const fn limit(family: Family, modules: u32, buffer: Buffer, mts: u32, source: &'static str) -> Limit {
    Limit { family, modules, buffer, mts, source }
}

const ANY: Buffer = Buffer::Any;
const RDIMM: Buffer = Buffer::Registered;
const QUAD: Buffer = Buffer::Quad;
const LRDIMM: Buffer = Buffer::LoadReduced;

impl Buffer {
    /// `None`: unknown.
    fn of(dimm: &Dimm) -> Option<Buffer> {
        match dimm.load_reduced? {
            true => Some(LRDIMM),
            false if dimm.ranks.is_some_and(|ranks| ranks > 2) => Some(QUAD),
            false => Some(RDIMM),
        }
    }

    fn words(own: Option<Buffer>) -> &'static str {
        match own {
            Some(Buffer::LoadReduced) => " for LRDIMM",
            Some(Buffer::Registered) => " for RDIMM",
            Some(Buffer::Quad) => " for RDIMM of four ranks",
            _ => "",
        }
    }
}

const MATRICES: &str = "supported memory matrices of Dell's PowerEdge and Supermicro's board manuals";
const X3650_M3: &str = "IBM System x3650 M3 installation guide, DDR3 speed by DIMMs in a channel";
const T410: &str = "Dell PowerEdge T410 hardware owner's manual, memory speed of quad-rank modules";
const NX3300: &str = "Dell PowerVault NX3300 owner's manual, memory populations and operating frequencies";
const M820: &str = "Dell PowerEdge M820 owner's manual, memory populations and operating frequencies";
const X240_M5: &str = "Lenovo Flex System x240 M5 product guide, maximum memory speeds";
const R7910: &str = "Dell Precision Rack 7910 owner's manual, memory population";
const M830: &str = "Dell PowerEdge M830 and NX3230 owner's manuals, supported configurations";
const S2600CW: &str = "Intel S2600CW technical product specification, DDR4 support with Xeon E5-2600 v4";
const SR630_V3: &str = "Lenovo SR630 V3 maintenance manual and Dell R860 supported memory matrix";
const XC750XA: &str = "Dell XC750xa manual, supported memory matrix";
const CH225_V5: &str = "Huawei CH225 V5, 2488 V5 and 5288 V5 white papers, DDR4 memory specifications";
const X3650_M5: &str = "Lenovo System x3650 M5 guide, DDR4 LRDIMM speed by DIMMs in a channel";
const AM5: &str =
    "AMD's specification of Ryzen 7000: DDR5-5200 with one module per channel, DDR5-3600 with two";
const X410C_M8: &str = "Cisco UCS X410c M8 spec sheet and EnGenius EAS2210 user guide, memory (Xeon 6: 6400 with one, 5200 with two)";

/// The first row that holds counts. Where a row has the processor's own limit, a document says that
/// more modules do not slow it.
const BY_MODULES: &[Limit] = &[
    limit(Family::Nehalem, 1, QUAD, 1066, T410),
    limit(Family::Nehalem, 2, QUAD, 800, T410),
    limit(Family::Nehalem, 2, ANY, 1066, X3650_M3),
    limit(Family::Nehalem, 3, ANY, 800, X3650_M3),
    limit(Family::SandyBridgeEp, 1, LRDIMM, 1333, NX3300),
    limit(Family::SandyBridgeEp, 2, LRDIMM, 1333, NX3300),
    limit(Family::SandyBridgeEp, 3, LRDIMM, 1066, NX3300),
    limit(Family::SandyBridgeEp, 1, QUAD, 1066, NX3300),
    limit(Family::SandyBridgeEp, 2, QUAD, 800, NX3300),
    limit(Family::SandyBridgeEp, 1, QUAD, 1333, M820),
    limit(Family::SandyBridgeEp, 2, QUAD, 1066, M820),
    limit(Family::SandyBridgeEp, 3, RDIMM, 1066, NX3300),
    limit(Family::SandyBridgeEp, 3, RDIMM, 1333, M820),
    limit(Family::IvyBridgeEp, 3, RDIMM, 1066, MATRICES),
    limit(Family::HaswellEp, 2, RDIMM, 1866, MATRICES),
    limit(Family::HaswellEp, 3, RDIMM, 1600, X240_M5),
    limit(Family::HaswellEp, 3, RDIMM, 1866, R7910),
    limit(Family::HaswellEp, 3, LRDIMM, 1866, X240_M5),
    limit(Family::BroadwellEp, 2, RDIMM, 2133, S2600CW),
    limit(Family::BroadwellEp, 2, LRDIMM, 2400, X3650_M5),
    limit(Family::BroadwellEp, 3, RDIMM, 1866, M830),
    limit(Family::BroadwellEp, 3, LRDIMM, 2133, M830),
    limit(Family::Skylake, 2, ANY, 2666, CH225_V5),
    limit(Family::CascadeLake, 2, ANY, 2666, CH225_V5),
    limit(Family::IceLake, 2, RDIMM, 3200, XC750XA),
    limit(Family::IceLake, 2, LRDIMM, 3200, XC750XA),
    limit(Family::Naples, 2, ANY, 2400, MATRICES),
    limit(Family::Rome, 2, ANY, 2933, MATRICES),
    limit(Family::Milan, 2, ANY, 2933, MATRICES),
    limit(Family::SapphireRapids, 2, ANY, 4400, SR630_V3),
    limit(Family::EmeraldRapids, 2, RDIMM, 4400, MATRICES),
    limit(Family::Genoa, 2, RDIMM, 3600, MATRICES),
    limit(Family::Xeon6Small, 2, RDIMM, 5200, X410C_M8),
    limit(Family::Ryzen7000, 2, ANY, 3600, AM5),
];

/// Modules that run slower than they can: rated and running at the same speeds.
pub(super) struct Slow {
    pub rated: u32,
    pub runs: u32,
    pub cause: Cause,
}

/// Why modules run slower than they can.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    /// The processor drives no faster.
    Processor,
    SlowestModule,
    /// Modules per channel and the source of the limit.
    Modules(String, &'static str),
    /// What would explain it is not known.
    Unknown(String),
    /// All that is known says that they could run faster.
    Unexplained,
}

/// The speeds, and the slow modules by their speeds, the slowest first. `is_whole`: whether all
/// modules are listed.
pub(super) fn speed(dimms: &[Dimm], cpu: Option<Cpu>, is_whole: bool) -> (DimmSpeed, Vec<Slow>) {
    let memory: Vec<&Dimm> = dimms.iter().filter(|dimm| dimm.is_memory()).collect();
    let all = |value: fn(&Dimm) -> Option<u32>| -> Vec<u32> {
        memory.iter().filter_map(|dimm| value(dimm)).collect::<BTreeSet<u32>>().into_iter().collect()
    };
    let (rated, configured) = (all(|dimm| dimm.speed_mts), all(|dimm| dimm.configured_mts));
    let cpu_limit = cpu.and_then(|cpu| cpu.limit_of(dimms));
    let slower = memory.iter().filter(|dimm| is_slower(dimm));
    let groups: BTreeSet<(u32, u32)> =
        slower.filter_map(|dimm| dimm.configured_mts.zip(dimm.speed_mts)).collect();
    let cause = |runs: u32| {
        if cpu_limit.is_some_and(|limit| same(runs, limit)) {
            return Cause::Processor;
        }
        if rated.first().is_some_and(|slowest| same(*slowest, runs)) {
            return Cause::SlowestModule;
        }
        // Sockets that run at one speed run at what the fullest channel of theirs allows.
        let is_own = |dimm: &&Dimm| dimm.configured_mts.is_some_and(|mts| same(mts, runs));
        let sockets: Vec<Option<u32>> =
            memory.iter().copied().filter(is_own).map(|dimm| dimm.socket).collect();
        let beside: Vec<&Dimm> =
            memory.iter().copied().filter(|dimm| sockets.contains(&dimm.socket)).collect();
        by_modules(&beside, cpu, cpu_limit, runs, is_whole)
    };
    let slow: Vec<Slow> =
        groups.into_iter().map(|(runs, rated)| Slow { rated, runs, cause: cause(runs) }).collect();
    let (likely_cause, limit_source) = match slow.first().map(|slow| &slow.cause) {
        Some(Cause::Processor) => (Some("cpu_limit".to_string()), None),
        Some(Cause::SlowestModule) => (Some("slowest_module".to_string()), None),
        Some(Cause::Modules(limit, source)) => (Some(limit.clone()), Some(*source)),
        _ => (None, None),
    };
    let below_rated = !slow.is_empty();
    (DimmSpeed { rated, configured, cpu_limit, below_rated, likely_cause, limit_source }, slow)
}

/// A module that runs slower than it can.
pub(super) fn is_slower(dimm: &Dimm) -> bool {
    dimm.speed_mts.zip(dimm.configured_mts).is_some_and(|(rated, runs)| runs < rated && !same(rated, runs))
}

/// Firmware rounds: 2666 and 2667, 1066 and 1067, 2133 and 2134 are one speed.
fn same(one: u32, other: u32) -> bool {
    one.abs_diff(other) <= 1
}

/// What the fullest channel of slow modules' sockets says: its limit and the source, or what is
/// not known.
fn by_modules(memory: &[&Dimm], cpu: Option<Cpu>, drives: Option<u32>, runs: u32, is_whole: bool) -> Cause {
    let drives_unknown = || Cause::Unknown("the processor's memory limit is unknown".to_string());
    let Some(cpu) = cpu else { return drives_unknown() };
    let place = |dimm: &Dimm| dimm.socket.zip(dimm.channel);
    let beside = |dimm: &Dimm| memory.iter().filter(|other| place(other) == place(dimm)).count() as u32;
    let fullest = memory.iter().filter(|dimm| place(dimm).is_some()).max_by_key(|dimm| beside(dimm));
    let own = fullest.and_then(|dimm| Buffer::of(dimm));
    let count = fullest.map_or(0, |dimm| beside(dimm));
    let rows = || {
        let fits = |row: &&Limit| row.family == cpu.facts.family && row.modules == count;
        BY_MODULES.iter().filter(fits)
    };
    let is_of_kind = |row: &&Limit| row.buffer == ANY || Some(row.buffer) == own;
    let row = rows().filter(is_of_kind).find(|row| same(row.mts, runs));
    if let Some(row) = row {
        let kind = Buffer::words(own);
        return Cause::Modules(format!("{count} DPC limit{kind} ({})", row.mts), row.source);
    }
    if drives.is_none() {
        return drives_unknown();
    }
    if count == 0 || !is_whole {
        return Cause::Unknown("the number of modules per channel is unknown".to_string());
    }
    let is_covered = rows().any(|row| is_of_kind(&row) && row.mts > runs)
        && !rows().any(|row| is_of_kind(&row) && row.mts <= runs);
    if !is_covered && (count > 1 || !is_the_processors(cpu, memory)) {
        let kind = Buffer::words(own);
        let modules = if count == 1 { "one module".to_string() } else { format!("{count} modules") };
        return Cause::Unknown(format!("the processor's limit with {modules} per channel{kind} is unknown"));
    }
    let is_low_voltage =
        memory.iter().any(|dimm| dimm.kind.as_deref() == Some("DDR3")) && runs <= LOW_VOLTAGE;
    if is_low_voltage {
        return Cause::Unknown(format!(
            "DDR3 at 1.35 V runs at {LOW_VOLTAGE} MT/s at most ({NX3300}); the voltage is unknown"
        ));
    }
    Cause::Unexplained
}

/// MT/s of registered DDR3 at 1.35 V.
const LOW_VOLTAGE: u32 = 1333;

/// Whether one module a channel has the processor's own limit: not where modules have more than two
/// ranks before DDR5, nor on EPYC, whose limits fall with ranks and with the slots of a channel,
/// but for EPYC 9004 (Dell R6615 manual, supported memory matrix: 4800 with one to eight ranks).
fn is_the_processors(cpu: Cpu, memory: &[&Dimm]) -> bool {
    let is_plain = |dimm: &&Dimm| dimm.ranks.is_none_or(|ranks| ranks <= 2) || cpu.facts.family.has_ddr5();
    let is_known = cpu.facts.family == Family::Genoa || !cpu.facts.family.is_epyc();
    is_known && memory.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::super::models::cpu;
    use super::*;

    /// What slows two channels with this many modules each.
    fn cause(name: &str, count: u32, buffer: Buffer, rated: u32, runs: u32) -> Option<String> {
        let dimm = |at: u32| Dimm {
            socket: Some(0),
            channel: Some(at % 2),
            size_bytes: Some(16 << 30),
            speed_mts: Some(rated),
            configured_mts: Some(runs),
            load_reduced: (buffer != ANY).then_some(buffer == LRDIMM),
            ranks: (buffer == QUAD).then_some(4),
            ..Dimm::default()
        };
        let (found, _) = speed(&(0..2 * count).map(dimm).collect::<Vec<_>>(), cpu(name), true);
        assert_eq!(
            found.limit_source.is_some(),
            found.likely_cause.as_ref().is_some_and(|one| one.contains("DPC"))
        );
        found.likely_cause
    }

    type Row = (Family, u32, Buffer, u32);

    /// Rows of the table, and the inventories of linuxhw/DMI's servers that run into them; of a new
    /// row it is said here whether one does.
    const SEEN: &[(Row, u32)] = &[
        ((Family::Nehalem, 3, ANY, 800), 17),
        ((Family::SandyBridgeEp, 2, LRDIMM, 1333), 1),
        ((Family::SandyBridgeEp, 1, QUAD, 1066), 1),
        ((Family::SandyBridgeEp, 3, RDIMM, 1066), 8),
        ((Family::SandyBridgeEp, 3, RDIMM, 1333), 1),
        ((Family::IvyBridgeEp, 3, RDIMM, 1066), 2),
        ((Family::HaswellEp, 3, RDIMM, 1600), 1),
        ((Family::HaswellEp, 3, LRDIMM, 1866), 1),
        ((Family::BroadwellEp, 2, RDIMM, 2133), 2),
        ((Family::BroadwellEp, 3, RDIMM, 1866), 1),
        ((Family::CascadeLake, 2, ANY, 2666), 4),
        ((Family::Milan, 2, ANY, 2933), 1),
        ((Family::Ryzen7000, 2, ANY, 3600), 12),
    ];
    const UNSEEN: &[Row] = &[
        (Family::Nehalem, 1, QUAD, 1066),
        (Family::Nehalem, 2, QUAD, 800),
        (Family::Nehalem, 2, ANY, 1066),
        (Family::SandyBridgeEp, 1, LRDIMM, 1333),
        (Family::SandyBridgeEp, 3, LRDIMM, 1066),
        (Family::SandyBridgeEp, 2, QUAD, 800),
        (Family::SandyBridgeEp, 1, QUAD, 1333),
        (Family::SandyBridgeEp, 2, QUAD, 1066),
        (Family::HaswellEp, 2, RDIMM, 1866),
        (Family::HaswellEp, 3, RDIMM, 1866),
        (Family::BroadwellEp, 2, LRDIMM, 2400),
        (Family::BroadwellEp, 3, LRDIMM, 2133),
        (Family::Skylake, 2, ANY, 2666),
        (Family::IceLake, 2, RDIMM, 3200),
        (Family::IceLake, 2, LRDIMM, 3200),
        (Family::Naples, 2, ANY, 2400),
        (Family::Rome, 2, ANY, 2933),
        (Family::SapphireRapids, 2, ANY, 4400),
        (Family::EmeraldRapids, 2, RDIMM, 4400),
        (Family::Genoa, 2, RDIMM, 3600),
        (Family::Xeon6Small, 2, RDIMM, 5200),
    ];

    #[test]
    fn rows_without_an_inventory_are_named() {
        let seen = SEEN.iter().filter(|(_, count)| *count > 0).map(|(row, _)| *row);
        let named: Vec<_> = seen.chain(UNSEEN.iter().copied()).collect();
        let rows = BY_MODULES.iter().map(|row| (row.family, row.modules, row.buffer, row.mts));
        assert_eq!(named.len(), BY_MODULES.len());
        assert!(rows.into_iter().all(|row| named.iter().filter(|one| **one == row).count() == 1));
    }

    #[test]
    fn limits_by_modules_a_channel() {
        for (name, count, reduced, rated, runs, expected) in [
            ("Intel(R) Xeon(R) CPU X5650 @ 2.67GHz", 3, ANY, 1333, 800, Some("3 DPC limit (800)")),
            (
                "Intel(R) Xeon(R) CPU X5650 @ 2.67GHz",
                2,
                RDIMM,
                1333,
                1067,
                Some("2 DPC limit for RDIMM (1066)"),
            ),
            (
                "Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz",
                3,
                RDIMM,
                1600,
                1066,
                Some("3 DPC limit for RDIMM (1066)"),
            ),
            (
                "Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz",
                1,
                LRDIMM,
                1600,
                1333,
                Some("1 DPC limit for LRDIMM (1333)"),
            ),
            (
                "Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz",
                2,
                RDIMM,
                2400,
                2133,
                Some("2 DPC limit for RDIMM (2133)"),
            ),
            ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", 2, ANY, 2400, 2133, None),
            ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", 2, LRDIMM, 2400, 2133, None),
            ("Intel(R) Xeon(R) Gold 6448Y", 2, ANY, 4800, 4400, Some("2 DPC limit (4400)")),
            ("Intel(R) Xeon(R) Gold 6448Y", 1, RDIMM, 4800, 4400, None),
            ("Intel(R) Xeon(R) 6746E", 2, RDIMM, 6400, 5200, Some("2 DPC limit for RDIMM (5200)")),
            ("AMD EPYC 9755 128-Core Processor", 2, RDIMM, 6400, 4400, None),
            ("AMD Ryzen 9 7950X 16-Core Processor", 2, ANY, 5600, 3600, Some("2 DPC limit (3600)")),
            (
                "Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz",
                2,
                QUAD,
                1333,
                800,
                Some("2 DPC limit for RDIMM of four ranks (800)"),
            ),
            (
                "Intel(R) Xeon(R) CPU E5-4650 0 @ 2.70GHz",
                1,
                QUAD,
                1600,
                1333,
                Some("1 DPC limit for RDIMM of four ranks (1333)"),
            ),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", 1, RDIMM, 1600, 1066, None),
        ] {
            assert_eq!(
                cause(name, count, reduced, rated, runs).as_deref(),
                expected,
                "{name} {count} {reduced:?}"
            );
        }
    }

    #[test]
    fn nothing_is_blamed_for_what_is_not_known() {
        let modules = |socket: u32, each: u32, rated: u32, runs: u32| {
            (0..4 * each).map(move |at| Dimm {
                socket: Some(socket),
                channel: Some(at % 4),
                size_bytes: Some(16 << 30),
                speed_mts: Some(rated),
                configured_mts: Some(runs),
                load_reduced: Some(false),
                ..Dimm::default()
            })
        };
        let causes = |name: &str, dimms: Vec<Dimm>, is_whole: bool| -> Vec<(u32, u32, Cause)> {
            let (_, slow) = speed(&dimms, cpu(name), is_whole);
            slow.into_iter().map(|slow| (slow.rated, slow.runs, slow.cause)).collect()
        };
        let gold = "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz";
        for (name, each, rated, runs, is_whole, words) in [
            ("Intel(R) Xeon(R) 6369P", 1, 5600, 4800, true, "memory limit is unknown"),
            ("Intel(R) Xeon(R) CPU E5640 @ 2.67GHz", 1, 1600, 1333, true, "memory limit is unknown"),
            ("AWS Graviton3", 1, 5600, 4800, true, "memory limit is unknown"),
            ("HUAWEI Kunpeng 920 5250", 1, 2933, 2666, true, "memory limit is unknown"),
            ("INTEL(R) XEON(R) GOLD 6538Y+", 1, 5600, 5200, true, "memory limit is unknown"),
            ("AMD EPYC 9755 128-Core Processor", 2, 6400, 4400, true, "2 modules per channel"),
            (gold, 1, 2666, 2133, false, "the number of modules per"),
        ] {
            let found = causes(name, modules(0, each, rated, runs).collect(), is_whole);
            assert!(
                matches!(&found[..], [(_, _, Cause::Unknown(why))] if why.contains(words)),
                "{name}: {found:?}"
            );
        }
        // Limits that fall with ranks, slots or voltage, of which no row is.
        for (name, kind, ranks, rated, runs, words) in [
            ("AMD EPYC 7551 32-Core Processor", "DDR4", 2, 2666, 2400, "one module per channel"),
            ("AMD EPYC 7452 32-Core Processor", "DDR4", 1, 3200, 2933, "one module per channel"),
            ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", "DDR4", 4, 2400, 2133, "of four ranks"),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", "DDR3", 2, 1600, 1333, "1.35 V"),
            ("Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz", "DDR3", 2, 1866, 1066, "1.35 V"),
        ] {
            let with = |dimm| Dimm { kind: Some(kind.to_string()), ranks: Some(ranks), ..dimm };
            let found = causes(name, modules(0, 1, rated, runs).map(with).collect(), true);
            assert!(
                matches!(&found[..], [(_, _, Cause::Unknown(why))] if why.contains(words)),
                "{name}: {found:?}"
            );
        }
        // Sockets that run alike run at the limit of the fullest channel.
        let uneven = modules(0, 1, 3200, 2666).chain(modules(1, 2, 2933, 2666)).collect();
        let found = causes("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", uneven, true);
        let is_limit = |(_, _, cause): &(u32, u32, Cause)| matches!(cause, Cause::Modules(words, _) if words.contains("2 DPC limit"));
        assert!(found.len() == 2 && found.iter().all(is_limit), "{found:?}");
        for (name, rated, runs) in [
            ("Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz", 3200, 2666),
            ("Intel(R) Xeon(R) D-2146NT CPU @ 2.30GHz", 2666, 2133),
            ("Intel(R) Xeon(R) CPU X5650 @ 2.67GHz", 1600, 1333),
            ("Intel(R) Xeon(R) CPU E7- 4870 @ 2.40GHz", 1333, 1066),
        ] {
            let found = causes(name, modules(0, 1, rated, runs).collect(), true);
            assert_eq!(found, [(rated, runs, Cause::Processor)], "{name}");
        }
        // A document says that two modules are as fast as one.
        let ice_lake = "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz";
        let two = causes(ice_lake, modules(0, 2, 3200, 2933).collect(), true);
        assert_eq!(two, [(3200, 2933, Cause::Unexplained)]);
        let one = causes("INTEL(R) XEON(R) GOLD 6530", modules(0, 1, 5600, 4800).collect(), true);
        assert_eq!(one, [(5600, 4800, Cause::Processor)]);
        assert_eq!(
            causes(gold, modules(0, 1, 2666, 2133).collect(), true),
            [(2666, 2133, Cause::Unexplained)]
        );
        // Each socket's modules have their own cause.
        let two = modules(0, 1, 2933, 2666).chain(modules(1, 1, 2400, 1866)).collect();
        assert_eq!(
            causes(gold, two, true),
            [(2400, 1866, Cause::Unexplained), (2933, 2666, Cause::Processor)]
        );
    }
}
