//! Processor families: memory channels and controllers of a socket, which populations one
//! interleave set covers, and how fast a processor drives its memory. Data, with its sources; what
//! is not in the tables is not known.

use Family::{
    Altra, AmpereOne, AmpereOneM, BroadwellEp, CascadeLake, ClearwaterForest, CooperLake, Core,
    EmeraldRapids, Epyc3000, Epyc3300, Epyc4000, Genoa, HaswellEp, IceLake, IvyBridgeEn, IvyBridgeEp,
    Kunpeng, Milan, Naples, Nehalem, Opteron4000, Opteron6000, Rome, Ryzen, SandyBridgeEn, SandyBridgeEp,
    SapphireRapids, Siena, Skylake, ThreadripperPro, Turin, Xeon6Large, Xeon6Small, XeonD1500, XeonD2000,
    XeonE, XeonW2000, XeonW3000,
};

use super::Dimm;
pub use super::models::cpu;

/// A family of server processors that differs from others in its memory controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Nehalem,
    SandyBridgeEn,
    SandyBridgeEp,
    IvyBridgeEn,
    IvyBridgeEp,
    HaswellEp,
    BroadwellEp,
    XeonE,
    Skylake,
    CascadeLake,
    CooperLake,
    IceLake,
    SapphireRapids,
    EmeraldRapids,
    Xeon6Small,
    Xeon6Large,
    ClearwaterForest,
    Naples,
    Rome,
    Milan,
    Siena,
    Genoa,
    Turin,
    Kunpeng,
    Altra,
    AmpereOne,
    AmpereOneM,
    /// And D-1600.
    XeonD1500,
    /// D-2100 and D-2700.
    XeonD2000,
    XeonW2000,
    XeonW3000,
    /// Desktop's, and the Xeon 3400 of that kind.
    Core,
    Ryzen,
    ThreadripperPro,
    Epyc3000,
    /// From 3301 on: two dies.
    Epyc3300,
    Epyc4000,
    Opteron4000,
    Opteron6000,
}

impl Family {
    pub fn is_epyc(self) -> bool {
        matches!(self, Naples | Rome | Milan | Siena | Genoa | Turin)
    }

    /// Of boards with one socket.
    pub fn is_alone(self) -> bool {
        matches!(
            self,
            XeonE
                | XeonD1500
                | XeonD2000
                | XeonW2000
                | XeonW3000
                | Core
                | Ryzen
                | ThreadripperPro
                | Epyc3000
                | Epyc3300
                | Epyc4000
        )
    }

    pub fn has_ddr5(self) -> bool {
        matches!(
            self,
            SapphireRapids
                | EmeraldRapids
                | Xeon6Small
                | Xeon6Large
                | ClearwaterForest
                | Siena
                | Genoa
                | Turin
        )
    }
}

/// What a family's sockets have.
#[derive(Debug, PartialEq)]
pub struct Facts {
    pub family: Family,
    pub name: &'static str,
    /// Channels of a socket.
    pub channels: u32,
    /// Controllers that share them evenly; `None`: one, or it depends on the die and does not
    /// matter.
    pub controllers: Option<u32>,
    /// How many channels, filled alike, one interleave set covers.
    pub even: &'static [u32],
    /// Numbers of alike modules that one set covers though the channels are not filled alike.
    pub even_modules: &'static [u32],
    pub source: &'static str,
}

/// A processor whose family is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpu {
    pub facts: &'static Facts,
    /// Its number in the family's list (6132, 2695, 7452); 0 where the name has none.
    pub number: u32,
}

impl Facts {
    /// Channels of one controller.
    pub fn channels_each(&self) -> u32 {
        self.channels / self.controllers.unwrap_or(1)
    }

    /// Who says that other numbers of channels than `even` make regions of different speed.
    pub fn regions_source(&self) -> Option<&'static str> {
        REGIONS.iter().find(|(family, _)| *family == self.family).map(|(_, source)| *source)
    }

    /// Who says that modules on controllers unlike each other make regions of different speed.
    pub fn controllers_source(&self) -> Option<&'static str> {
        match self.family {
            Skylake | CascadeLake | CooperLake => Some(INTEL_SP),
            _ => self.regions_source(),
        }
    }

    pub fn controller_of(&self, channel: u32) -> Option<u32> {
        self.controllers.map(|_| channel / self.channels_each())
    }
}

const fn facts(
    family: Family,
    name: &'static str,
    channels: u32,
    controllers: Option<u32>,
    even: &'static [u32],
    source: &'static str,
) -> Facts {
    let even_modules: &[u32] = if matches!(family, Rome | Milan | Naples) { &[12] } else { &[] };
    Facts { family, name, channels, controllers, even, even_modules, source }
}

const INTEL_SP: &str = "Intel Xeon Scalable datasheets, volume 1 (integrated memory controllers); Dell white paper \
                        \"Balanced Memory with 2nd Generation Intel Xeon Scalable Processors\": 1 to 3 modules on one \
                        controller, 4, 6, 8 or 12 give one interleave set";
const INTEL_E5: &str =
    "Intel Xeon E5 datasheets, volume 1: a socket interleaves over 1 to 4 (E5-2400: 3) channels";
const AMD_8: &str = "Dell white paper \"Balanced Memory with 2nd Generation AMD EPYC Processors for PowerEdge \
                     Servers\": 8 or 16 modules balanced, 4 or 12 near balanced, other numbers make several regions";
const AMD_MILAN: &str = "Gigabyte \"Memory Population Guidelines, AMD EPYC 7003 Series Processors\": two, four, six or \
                         eight channels interleave";
const AMD_12: &str =
    "AMD EPYC 9004 memory population guidelines: 1, 2, 4, 6, 8, 10 or 12 channels interleave";
const INTEL_8: &str = "Lenovo Press LP1517 \"Balanced Memory Configurations for 2-Socket Servers with 3rd-Gen Intel \
                       Xeon Scalable Processors\"; four controllers of two channels each";
const INTEL_6: &str =
    "Intel Xeon 6 product briefs: eight channels of 6500 and 6700, twelve of 6900, two of each controller";
const OTHERS: &str = "the maker's product pages: memory channels";

pub(super) const FACTS: &[Facts] = &[
    facts(
        Nehalem,
        "Xeon 5500/5600 (Nehalem, Westmere)",
        3,
        None,
        &[1, 2, 3],
        "Intel Xeon 5500/5600 datasheets, volume 2",
    ),
    facts(SandyBridgeEn, "Xeon E5-2400 (Sandy Bridge-EN)", 3, None, &[1, 2, 3], INTEL_E5),
    facts(SandyBridgeEp, "Xeon E5-2600 (Sandy Bridge-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(IvyBridgeEn, "Xeon E5-2400 v2 (Ivy Bridge-EN)", 3, None, &[1, 2, 3], INTEL_E5),
    facts(IvyBridgeEp, "Xeon E5-2600 v2 (Ivy Bridge-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(HaswellEp, "Xeon E5-2600 v3 (Haswell-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(BroadwellEp, "Xeon E5-2600 v4 (Broadwell-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(XeonE, "Xeon E3/E-2000", 2, None, &[1, 2], OTHERS),
    facts(Skylake, "Xeon Scalable (Skylake-SP)", 6, Some(2), &[1, 2, 3, 4, 6], INTEL_SP),
    facts(
        CascadeLake,
        "Xeon Scalable, 2nd generation (Cascade Lake-SP)",
        6,
        Some(2),
        &[1, 2, 3, 4, 6],
        INTEL_SP,
    ),
    facts(
        CooperLake,
        "Xeon Scalable, 3rd generation (Cooper Lake-SP)",
        6,
        Some(2),
        &[1, 2, 3, 4, 6],
        INTEL_SP,
    ),
    facts(IceLake, "Xeon Scalable, 3rd generation (Ice Lake-SP)", 8, Some(4), &[1, 2, 4, 6, 8], INTEL_8),
    facts(
        SapphireRapids,
        "Xeon Scalable, 4th generation (Sapphire Rapids)",
        8,
        Some(4),
        &[1, 2, 4, 6, 8],
        INTEL_8,
    ),
    facts(
        EmeraldRapids,
        "Xeon Scalable, 5th generation (Emerald Rapids)",
        8,
        Some(4),
        &[1, 2, 4, 6, 8],
        INTEL_8,
    ),
    facts(Xeon6Small, "Xeon 6500/6700 (Xeon 6)", 8, Some(4), &[1, 2, 4, 6, 8], INTEL_6),
    facts(Xeon6Large, "Xeon 6900 (Xeon 6)", 12, Some(6), &[1, 2, 4, 6, 8, 10, 12], INTEL_6),
    facts(
        ClearwaterForest,
        "Xeon 6+ (Clearwater Forest)",
        12,
        None,
        &[1, 2, 4, 6, 8, 10, 12],
        "Intel at Hot Chips 2025: twelve channels of DDR5-8000",
    ),
    facts(Naples, "EPYC 7001 (Naples)", 8, None, &[1, 4, 8], AMD_8),
    facts(Rome, "EPYC 7002 (Rome)", 8, None, &[1, 4, 8], AMD_8),
    facts(Milan, "EPYC 7003 (Milan)", 8, None, &[1, 2, 4, 6, 8], AMD_MILAN),
    facts(Siena, "EPYC 8004 (Siena)", 6, None, &[1, 2, 4, 6], AMD_12),
    facts(Genoa, "EPYC 9004 (Genoa)", 12, None, &[1, 2, 4, 6, 8, 10, 12], AMD_12),
    facts(Turin, "EPYC 9005 (Turin)", 12, None, &[1, 2, 4, 6, 8, 10, 12], AMD_12),
    facts(Kunpeng, "Kunpeng 920", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(Altra, "Ampere Altra", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(AmpereOne, "AmpereOne (eight channels)", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(AmpereOneM, "AmpereOne M", 12, None, &[1, 2, 4, 6, 12], OTHERS),
    facts(XeonD1500, "Xeon D-1500 or D-1600", 2, None, &[1, 2], OTHERS),
    facts(XeonD2000, "Xeon D-2100 or D-2700", 4, None, &[1, 2, 4], OTHERS),
    facts(XeonW2000, "Xeon W-2100 or W-2200", 4, None, &[1, 2, 4], OTHERS),
    facts(XeonW3000, "Xeon W-3100 or W-3200", 6, Some(2), &[1, 2, 3, 4, 6], INTEL_SP),
    facts(Core, "Core, Pentium, Celeron or Xeon 3400 of two channels", 2, None, &[1, 2], OTHERS),
    facts(Ryzen, "Ryzen", 2, None, &[1, 2], OTHERS),
    facts(ThreadripperPro, "Ryzen Threadripper PRO", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(Epyc3000, "EPYC 3101 to 3255", 2, None, &[1, 2], OTHERS),
    facts(Epyc3300, "EPYC 3301 to 3451", 4, None, &[1, 2, 4], OTHERS),
    facts(Epyc4000, "EPYC 4004 or 4005", 2, None, &[1, 2], OTHERS),
    facts(Opteron4000, "Opteron 3000 or 4000", 2, None, &[1, 2], OTHERS),
    facts(Opteron6000, "Opteron 6000", 4, None, &[1, 2, 4], OTHERS),
];

/// Who says, of a family, that modules on a number of channels which no interleave set covers make
/// regions of different speed. Of other families that is not known.
const REGIONS: &[(Family, &str)] = &[
    (CascadeLake, "Dell white paper \"Balanced Memory with 2nd Generation Intel Xeon Scalable Processors\""),
    (
        IceLake,
        "Lenovo Press LP1517 \"Balanced Memory Configurations for 2-Socket Servers with 3rd-Gen Intel Xeon Scalable \
         Processors\"",
    ),
    (
        Rome,
        "Dell white paper \"Balanced Memory with 2nd Generation AMD EPYC Processors for PowerEdge Servers\"",
    ),
    (Milan, "Gigabyte \"Memory Population Guidelines, AMD EPYC 7003 Series Processors\""),
];

/// Where the speeds below come from.
pub const SPEED_SOURCE: &str = "Intel's, AMD's and Ampere's product pages, maximum memory speed";

/// No other module of DDR5 is rated so fast, MT/s.
const MULTIPLEXED_LEAST: u32 = 8000;

/// The fastest memory that a processor drives, MT/s: family, first and last number, speed. The
/// first row that holds counts.
const LIMITS: &[(Family, u32, u32, u32)] = &[
    (SandyBridgeEp, 1600, 1699, 1600),
    (SandyBridgeEp, 2600, 2609, 1066),
    (SandyBridgeEp, 2637, 2637, 1600),
    (SandyBridgeEp, 2643, 2643, 1600),
    (SandyBridgeEp, 2610, 2649, 1333),
    (SandyBridgeEp, 2650, 2699, 1600),
    (IvyBridgeEp, 1600, 1699, 1866),
    (IvyBridgeEp, 2600, 2609, 1333),
    (IvyBridgeEp, 2637, 2637, 1866),
    (IvyBridgeEp, 2643, 2643, 1866),
    (IvyBridgeEp, 2610, 2649, 1600),
    (IvyBridgeEp, 2650, 2699, 1866),
    (HaswellEp, 1600, 1699, 2133),
    (HaswellEp, 2600, 2609, 1600),
    (HaswellEp, 2637, 2637, 2133),
    (HaswellEp, 2643, 2643, 2133),
    (HaswellEp, 2610, 2649, 1866),
    (HaswellEp, 2650, 2699, 2133),
    (BroadwellEp, 1600, 1699, 2400),
    (BroadwellEp, 2600, 2609, 1866),
    (BroadwellEp, 2637, 2637, 2400),
    (BroadwellEp, 2643, 2643, 2400),
    (BroadwellEp, 2610, 2649, 2133),
    (BroadwellEp, 2650, 2699, 2400),
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
    (CascadeLake, 6200, 6299, 2933),
    (CascadeLake, 8200, 8299, 2933),
    (IceLake, 4300, 4399, 2666),
    (IceLake, 5300, 5399, 2933),
    (IceLake, 6330, 6330, 2933),
    (IceLake, 6300, 6399, 3200),
    (IceLake, 8300, 8399, 3200),
    (SapphireRapids, 4400, 4499, 4000),
    (SapphireRapids, 5400, 5499, 4400),
    (SapphireRapids, 6400, 6499, 4800),
    (SapphireRapids, 8400, 8499, 4800),
    (EmeraldRapids, 4500, 4599, 4400),
    (EmeraldRapids, 5500, 5599, 4800),
    (EmeraldRapids, 6530, 6530, 4800),
    (EmeraldRapids, 8500, 8599, 5600),
    // EnGenius EAS2210 user guide, memory support; Intel at Hot Chips 2024 (6900P: DDR5-6400).
    (Xeon6Small, 6500, 6799, 6400),
    (Xeon6Large, 6900, 6999, 6400),
    // Intel at Hot Chips 2025.
    (ClearwaterForest, 6900, 6999, 8000),
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
];

impl Cpu {
    /// The fastest of these modules that it drives, MT/s, with one module a channel. Modules of
    /// multiplexed ranks have a limit of their own (6900P: Intel at Hot Chips 2024).
    pub fn limit_of(&self, dimms: &[Dimm]) -> Option<u32> {
        let is_xeon_6 = matches!(self.facts.family, Xeon6Small | Xeon6Large);
        let is_multiplexed = |dimm: &Dimm| dimm.is_memory() && dimm.speed_mts >= Some(MULTIPLEXED_LEAST);
        match is_xeon_6 && dimms.iter().any(is_multiplexed) {
            true => (self.facts.family == Xeon6Large).then_some(8800),
            false => self.limit_mts(),
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

    #[test]
    fn every_family_has_its_facts() {
        for facts in FACTS {
            assert!(facts.even.contains(&facts.channels) && !facts.source.is_empty(), "{facts:?}");
            assert_eq!(facts.channels % facts.controllers.unwrap_or(1), 0, "{facts:?}");
        }
        assert!(REGIONS.iter().all(|(family, _)| FACTS.iter().any(|facts| facts.family == *family)));
        for (family, first, last, mts) in LIMITS {
            assert!(FACTS.iter().any(|facts| facts.family == *family) && first <= last && *mts > 0);
        }
    }
}
