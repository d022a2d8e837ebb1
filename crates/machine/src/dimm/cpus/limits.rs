//! The fastest memory that a processor drives: data.

use super::Cpu;
use super::Family::{
    self, Altra, AmpereOne, AmpereOneM, BroadwellEp, CascadeLake, ClearwaterForest, CooperLake, CoreX,
    EmeraldRapids, Epyc4000, Genoa, HaswellEp, IceLake, IvyBridgeEn, IvyBridgeEp, Milan, Naples, Nehalem,
    NehalemEx, Rome, Ryzen7000, SandyBridgeEn, SandyBridgeEp, SapphireRapids, Siena, Skylake, Threadripper,
    ThreadripperPro, Turin, Xeon6Large, Xeon6Small, XeonD1500, XeonD1700, XeonD2000, XeonE, XeonW2000,
    XeonW3000,
};
use crate::dimm::Dimm;

/// Where the speeds below come from; those of Intel's and AMD's until 2023 were checked against a
/// copy of their product pages (felixsteinke/cpu-spec-dataset, July 2023).
pub const SPEED_SOURCE: &str = "Intel's, AMD's and Ampere's product pages, maximum memory speed";

/// Only multiplexed modules (MRDIMM) of DDR5 are rated at this speed or above, MT/s.
const MIN_MULTIPLEXED: u32 = 8000;

/// The fastest memory that a processor drives, MT/s: family, first and last number, speed. The
/// first row that holds counts. Of numbers that letters distinguishes (E5640 and L5640) the row is
/// that of the plain one, or there is none.
pub(super) const LIMITS: &[(Family, u32, u32, u32)] = &[
    (Nehalem, 5502, 5507, 800),
    (Nehalem, 5508, 5540, 1066),
    (Nehalem, 5550, 5590, 1333),
    (Nehalem, 5603, 5609, 1066),
    // E5640 and L5640 differ.
    (Nehalem, 5620, 5630, 1066),
    (Nehalem, 5645, 5645, 1333),
    (Nehalem, 5647, 5647, 1066),
    (Nehalem, 5649, 5690, 1333),
    (NehalemEx, 2803, 2803, 800),
    (NehalemEx, 4807, 4807, 800),
    (NehalemEx, 2820, 2870, 1066),
    (NehalemEx, 4820, 4870, 1066),
    (NehalemEx, 7550, 7550, 1066),
    (NehalemEx, 7560, 7560, 1066),
    (NehalemEx, 8830, 8870, 1066),
    (SandyBridgeEn, 1428, 1428, 1333),
    (SandyBridgeEn, 2403, 2407, 1066),
    (SandyBridgeEn, 2418, 2440, 1333),
    (SandyBridgeEn, 2448, 2470, 1600),
    (SandyBridgeEp, 1600, 1699, 1600),
    (SandyBridgeEp, 2600, 2609, 1066),
    (SandyBridgeEp, 2637, 2637, 1600),
    (SandyBridgeEp, 2643, 2648, 1600),
    (SandyBridgeEp, 2610, 2649, 1333),
    (SandyBridgeEp, 2650, 2699, 1600),
    (SandyBridgeEp, 4603, 4607, 1066),
    (SandyBridgeEp, 4617, 4617, 1600),
    (SandyBridgeEp, 4610, 4620, 1333),
    (SandyBridgeEp, 4640, 4650, 1600),
    (IvyBridgeEn, 1428, 1428, 1600),
    (IvyBridgeEn, 2403, 2418, 1333),
    (IvyBridgeEn, 2420, 2470, 1600),
    (IvyBridgeEp, 1600, 1699, 1866),
    (IvyBridgeEp, 2600, 2609, 1333),
    (IvyBridgeEp, 2618, 2618, 1333),
    (IvyBridgeEp, 2637, 2637, 1866),
    (IvyBridgeEp, 2643, 2648, 1866),
    (IvyBridgeEp, 2610, 2649, 1600),
    (IvyBridgeEp, 2650, 2699, 1866),
    (IvyBridgeEp, 4603, 4607, 1333),
    (IvyBridgeEp, 4610, 4620, 1600),
    (IvyBridgeEp, 4624, 4657, 1866),
    (HaswellEp, 1600, 1699, 2133),
    (HaswellEp, 2600, 2609, 1600),
    (HaswellEp, 2637, 2637, 2133),
    (HaswellEp, 2643, 2648, 2133),
    (HaswellEp, 2610, 2649, 1866),
    (HaswellEp, 2650, 2699, 2133),
    (BroadwellEp, 1600, 1699, 2400),
    (BroadwellEp, 2600, 2609, 1866),
    (BroadwellEp, 2637, 2637, 2400),
    (BroadwellEp, 2643, 2648, 2400),
    (BroadwellEp, 2610, 2649, 2133),
    (BroadwellEp, 2650, 2699, 2400),
    (BroadwellEp, 4627, 4627, 2400),
    // E3: ten thousands are the version.
    (XeonE, 11200, 11299, 1333),
    (XeonE, 21200, 21299, 1600),
    (XeonE, 31200, 31299, 1600),
    (XeonE, 41265, 41265, 1866),
    (XeonE, 41285, 41285, 1866),
    (XeonE, 51200, 51299, 2133),
    (XeonE, 61200, 61299, 2400),
    (XeonE, 2100, 2299, 2666),
    (XeonE, 2300, 2399, 3200),
    (Skylake, 3100, 3199, 2133),
    (Skylake, 4100, 4199, 2400),
    (Skylake, 5122, 5122, 2666),
    (Skylake, 5100, 5199, 2400),
    (Skylake, 6100, 6199, 2666),
    (Skylake, 8100, 8199, 2666),
    (CascadeLake, 3200, 3299, 2133),
    (CascadeLake, 4200, 4299, 2400),
    (CascadeLake, 5222, 5222, 2933),
    (CascadeLake, 5200, 5299, 2666),
    (CascadeLake, 6222, 6222, 2400),
    (CascadeLake, 6262, 6262, 2400),
    (CascadeLake, 6200, 6299, 2933),
    (CascadeLake, 8200, 8299, 2933),
    (CooperLake, 5300, 5399, 2666),
    (CooperLake, 6300, 6399, 2933),
    (CooperLake, 8300, 8399, 3200),
    (IceLake, 4300, 4399, 2666),
    (IceLake, 5300, 5399, 2933),
    (IceLake, 6330, 6330, 2933),
    (IceLake, 6300, 6399, 3200),
    (IceLake, 8351, 8351, 2933),
    (IceLake, 8300, 8399, 3200),
    (SapphireRapids, 3408, 3408, 4000),
    (SapphireRapids, 4400, 4499, 4000),
    (SapphireRapids, 5423, 5433, 4000),
    (SapphireRapids, 5400, 5499, 4400),
    (SapphireRapids, 6421, 6421, 4400),
    (SapphireRapids, 6428, 6428, 4000),
    (SapphireRapids, 6430, 6430, 4400),
    (SapphireRapids, 6400, 6499, 4800),
    (SapphireRapids, 8400, 8499, 4800),
    (SapphireRapids, 9460, 9480, 4800),
    (EmeraldRapids, 4500, 4599, 4400),
    (EmeraldRapids, 5500, 5599, 4800),
    (EmeraldRapids, 6530, 6530, 4800),
    (EmeraldRapids, 8500, 8599, 5600),
    // Cisco UCS X410c M8 spec sheet, EnGenius EAS2210 user guide; Intel at Hot Chips 2024 (6900P:
    // DDR5-6400).
    (Xeon6Small, 6500, 6799, 6400),
    (Xeon6Large, 6900, 6999, 6400),
    // Intel at Hot Chips 2025.
    (ClearwaterForest, 6900, 6999, 8000),
    (Naples, 7251, 7251, 2400),
    (Naples, 0, 9999, 2666),
    (Rome, 0, 9999, 3200),
    (Milan, 0, 9999, 3200),
    (Siena, 0, 9999, 4800),
    (Genoa, 0, 9999, 4800),
    (Turin, 0, 9999, 6000),
    // Those of the 4005 series end in 5.
    (Epyc4000, 4245, 4245, 5600),
    (Epyc4000, 4345, 4345, 5600),
    (Epyc4000, 4465, 4465, 5600),
    (Epyc4000, 4545, 4545, 5600),
    (Epyc4000, 4565, 4565, 5600),
    (Epyc4000, 4585, 4585, 5600),
    (Epyc4000, 4124, 4584, 5200),
    (Altra, 0, 0, 3200),
    (AmpereOne, 0, 0, 5200),
    (AmpereOneM, 0, 0, 5600),
    (XeonD1500, 1518, 1518, 2133),
    (XeonD1500, 1520, 1521, 2133),
    (XeonD1500, 1527, 1528, 2133),
    (XeonD1500, 1529, 1529, 1600),
    (XeonD1500, 1531, 1531, 2133),
    // D-1541 is left out: its page says 2400, inventories run at 2133.
    (XeonD1500, 1537, 1540, 2133),
    (XeonD1500, 1548, 1548, 2400),
    (XeonD1500, 1557, 1567, 2133),
    (XeonD1500, 1571, 1571, 2400),
    (XeonD1500, 1577, 1577, 2133),
    (XeonD1500, 1602, 1622, 2133),
    (XeonD1500, 1623, 1623, 1866),
    (XeonD1500, 1627, 1633, 2133),
    (XeonD1500, 1637, 1637, 2400),
    (XeonD1500, 1649, 1649, 2133),
    (XeonD1500, 1653, 1653, 2400),
    (XeonD1700, 1713, 1733, 2400),
    (XeonD1700, 1734, 1736, 2666),
    (XeonD1700, 1748, 1748, 2400),
    (XeonD1700, 1749, 1749, 2666),
    (XeonD2000, 2123, 2123, 2400),
    (XeonD2000, 2183, 2183, 2400),
    (XeonD2000, 2141, 2173, 2133),
    (XeonD2000, 2177, 2187, 2666),
    (XeonD2000, 2712, 2733, 2666),
    (XeonD2000, 2738, 2738, 2933),
    (XeonD2000, 2745, 2766, 2666),
    (XeonD2000, 2777, 2777, 2666),
    (XeonD2000, 2775, 2776, 2933),
    (XeonD2000, 2779, 2779, 3200),
    (XeonD2000, 2786, 2796, 2933),
    (XeonD2000, 2799, 2799, 3200),
    (XeonW2000, 2223, 2223, 2666),
    (XeonW2000, 2225, 2295, 2933),
    (XeonW2000, 2100, 2199, 2666),
    (XeonW3000, 3175, 3175, 2666),
    (XeonW3000, 3223, 3225, 2666),
    (XeonW3000, 3235, 3275, 2933),
    (CoreX, 3820, 3970, 1600),
    (CoreX, 4820, 4960, 1866),
    (CoreX, 5820, 5960, 2133),
    (CoreX, 6800, 6950, 2400),
    (CoreX, 7800, 7800, 2400),
    (CoreX, 7820, 7999, 2666),
    (CoreX, 9800, 9999, 2666),
    (CoreX, 10900, 10999, 2933),
    (Threadripper, 1900, 1999, 2666),
    (Threadripper, 2900, 2999, 2933),
    (Threadripper, 3900, 3999, 3200),
    (ThreadripperPro, 3900, 5999, 3200),
    (Ryzen7000, 7600, 7950, 5200),
];

impl Cpu {
    /// The fastest of these modules that it drives, MT/s, with one module a channel. Modules of
    /// multiplexed ranks have a limit of their own (6900P: Intel at Hot Chips 2024).
    pub fn limit_of(&self, dimms: &[Dimm]) -> Option<u32> {
        let is_xeon_6 = matches!(self.facts.family, Xeon6Small | Xeon6Large);
        let is_multiplexed = |dimm: &Dimm| dimm.is_memory() && dimm.speed_mts >= Some(MIN_MULTIPLEXED);
        if is_xeon_6 && dimms.iter().any(is_multiplexed) {
            (self.facts.family == Xeon6Large).then_some(8800)
        } else {
            self.limit_mts()
        }
    }

    /// The same of registered modules.
    pub fn limit_mts(&self) -> Option<u32> {
        let holds = |(family, first, last, _): &&(Family, u32, u32, u32)| {
            *family == self.facts.family && (*first..=*last).contains(&self.number)
        };
        LIMITS.iter().find(holds).map(|row| row.3)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::models::cpu;
    use super::*;

    #[test]
    fn modules_of_multiplexed_ranks_have_a_limit_of_their_own() {
        let limit = |name: &str, rated: u32, size: u64| {
            let dimm = Dimm { speed_mts: Some(rated), size_bytes: Some(size), ..Dimm::default() };
            cpu(name).and_then(|cpu| cpu.limit_of(&[dimm]))
        };
        for (name, rated, size, expected) in [
            ("Intel(R) Xeon(R) 6980P", 8800, 1 << 36, Some(8800)),
            ("Intel(R) Xeon(R) 6980P", 6400, 1 << 36, Some(6400)),
            ("Intel(R) Xeon(R) 6980P", 8800, 0, Some(6400)),
            ("Intel(R) Xeon(R) 6787P", 8000, 1 << 36, None),
            ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 12_800, 1 << 36, Some(2400)),
        ] {
            assert_eq!(limit(name, rated, size), expected, "{name} {rated} {size}");
        }
    }
}
