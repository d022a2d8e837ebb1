//! Processor families: memory channels and controllers of a socket, which populations one
//! interleave set covers, and how fast a processor drives its memory. Data, with its sources; what
//! is not in the tables is not known.

mod limits;

use Family::{
    Altra, AmpereOne, AmpereOneM, BroadwellEp, CascadeLake, ClearwaterForest, CooperLake, Core, CoreX,
    EmeraldRapids, Epyc3000, Epyc3300, Epyc4000, Genoa, Graviton, Graviton4, HaswellEp, IceLake, IvyBridgeEn,
    IvyBridgeEp, Kunpeng, Milan, Naples, Nehalem, NehalemEx, Opteron4000, Opteron6000, Rome, Ryzen,
    Ryzen7000, SandyBridgeEn, SandyBridgeEp, SapphireRapids, Siena, Skylake, Threadripper, ThreadripperPro,
    Turin, Xeon6Large, Xeon6Small, XeonD1500, XeonD1700, XeonD2000, XeonE, XeonW2000, XeonW3000,
};

pub use limits::SPEED_SOURCE;

/// A family of server processors that differs from others in its memory controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Nehalem,
    /// Xeon 6500, 7500 and E7 without a version.
    NehalemEx,
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
    /// 2 and 3.
    Graviton,
    /// And 5.
    Graviton4,
    Altra,
    AmpereOne,
    AmpereOneM,
    /// And D-1600.
    XeonD1500,
    /// Those of two channels.
    XeonD1700,
    /// D-2100 and D-2700.
    XeonD2000,
    XeonW2000,
    XeonW3000,
    /// Desktop's, and the Xeon 3400 of that kind.
    Core,
    /// Desktop's of four channels.
    CoreX,
    Ryzen,
    /// Desktop's, of socket AM5.
    Ryzen7000,
    /// Without PRO, until 3990X.
    Threadripper,
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
                | XeonD1700
                | XeonD2000
                | XeonW2000
                | XeonW3000
                | Core
                | CoreX
                | Ryzen
                | Ryzen7000
                | Threadripper
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
                | Ryzen7000
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
    /// Its number in the family's list (6132, 2695, 7452; of Xeon E3 with the version before it:
    /// 51230); 0 where the name has none.
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

    /// Whether an inventory with such a processor was seen: of the fixtures or of linuxhw/DMI's
    /// servers.
    pub fn is_seen(&self) -> bool {
        !UNSEEN.contains(&self.family)
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
const NEHALEM_EX: &str = "HP ProLiant DL580 G7 and BL620c G7 user guides, memory subsystem architecture: two \
                          controllers of two memory interfaces each, filled in pairs; behind the buffer of each \
                          stand two channels of DDR3, which this table does not separate";
const GRAVITON: &str = "AWS Graviton technical guide (aws/aws-graviton-getting-started): DRAM 8x DDR4, 8x DDR5, 12x DDR5; Intel PerfSpect, MemoryChannelCount of Graviton5: 12";
const OTHERS: &str = "the maker's product pages: memory channels";

/// Numbers of channels that interleave evenly, of six, eight and twelve.
const SIX: &[u32] = &[1, 2, 3, 4, 6];
const EIGHT: &[u32] = &[1, 2, 4, 6, 8];
const TWELVE: &[u32] = &[1, 2, 4, 6, 8, 10, 12];

pub(super) const FACTS: &[Facts] = &[
    facts(
        Nehalem,
        "Xeon 5500/5600 (Nehalem, Westmere)",
        3,
        None,
        &[1, 2, 3],
        "Intel Xeon 5500/5600 datasheets, volume 2",
    ),
    facts(NehalemEx, "Xeon 6500/7500 and E7 (Nehalem-EX, Westmere-EX)", 4, Some(2), &[2, 4], NEHALEM_EX),
    facts(SandyBridgeEn, "Xeon E5-2400 (Sandy Bridge-EN)", 3, None, &[1, 2, 3], INTEL_E5),
    facts(SandyBridgeEp, "Xeon E5-2600 (Sandy Bridge-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(IvyBridgeEn, "Xeon E5-2400 v2 (Ivy Bridge-EN)", 3, None, &[1, 2, 3], INTEL_E5),
    facts(IvyBridgeEp, "Xeon E5-2600 v2 (Ivy Bridge-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(HaswellEp, "Xeon E5-2600 v3 (Haswell-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(BroadwellEp, "Xeon E5-2600 v4 (Broadwell-EP)", 4, None, &[1, 2, 3, 4], INTEL_E5),
    facts(XeonE, "Xeon E3/E-2000", 2, None, &[1, 2], OTHERS),
    facts(Skylake, "Xeon Scalable (Skylake-SP)", 6, Some(2), SIX, INTEL_SP),
    facts(CascadeLake, "Xeon Scalable, 2nd generation (Cascade Lake-SP)", 6, Some(2), SIX, INTEL_SP),
    facts(CooperLake, "Xeon Scalable, 3rd generation (Cooper Lake-SP)", 6, Some(2), SIX, INTEL_SP),
    facts(IceLake, "Xeon Scalable, 3rd generation (Ice Lake-SP)", 8, Some(4), EIGHT, INTEL_8),
    facts(SapphireRapids, "Xeon Scalable, 4th generation (Sapphire Rapids)", 8, Some(4), EIGHT, INTEL_8),
    facts(EmeraldRapids, "Xeon Scalable, 5th generation (Emerald Rapids)", 8, Some(4), EIGHT, INTEL_8),
    facts(Xeon6Small, "Xeon 6500/6700 (Xeon 6)", 8, Some(4), EIGHT, INTEL_6),
    facts(Xeon6Large, "Xeon 6900 (Xeon 6)", 12, Some(6), TWELVE, INTEL_6),
    facts(
        ClearwaterForest,
        "Xeon 6+ (Clearwater Forest)",
        12,
        None,
        TWELVE,
        "Intel at Hot Chips 2025: twelve channels of DDR5-8000",
    ),
    facts(Naples, "EPYC 7001 (Naples)", 8, None, &[1, 4, 8], AMD_8),
    facts(Rome, "EPYC 7002 (Rome)", 8, None, &[1, 4, 8], AMD_8),
    facts(Milan, "EPYC 7003 (Milan)", 8, None, EIGHT, AMD_MILAN),
    facts(Siena, "EPYC 8004 (Siena)", 6, None, &[1, 2, 4, 6], AMD_12),
    facts(Genoa, "EPYC 9004 (Genoa)", 12, None, TWELVE, AMD_12),
    facts(Turin, "EPYC 9005 (Turin)", 12, None, TWELVE, AMD_12),
    facts(Kunpeng, "Kunpeng 920", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(Graviton, "AWS Graviton2 or Graviton3", 8, None, &[1, 2, 4, 8], GRAVITON),
    facts(Graviton4, "AWS Graviton4 or Graviton5", 12, None, &[1, 2, 4, 6, 12], GRAVITON),
    facts(Altra, "Ampere Altra", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(AmpereOne, "AmpereOne (eight channels)", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(AmpereOneM, "AmpereOne M", 12, None, &[1, 2, 4, 6, 12], OTHERS),
    facts(XeonD1500, "Xeon D-1500 or D-1600", 2, None, &[1, 2], OTHERS),
    facts(XeonD1700, "Xeon D-1700 of two channels", 2, None, &[1, 2], OTHERS),
    facts(XeonD2000, "Xeon D-2100 or D-2700", 4, None, &[1, 2, 4], OTHERS),
    facts(XeonW2000, "Xeon W-2100 or W-2200", 4, None, &[1, 2, 4], OTHERS),
    facts(XeonW3000, "Xeon W-3100 or W-3200", 6, Some(2), SIX, INTEL_SP),
    facts(Core, "Core, Pentium, Celeron or Xeon 3400 of two channels", 2, None, &[1, 2], OTHERS),
    facts(CoreX, "Core of four channels (X)", 4, None, &[1, 2, 4], OTHERS),
    facts(Ryzen, "Ryzen", 2, None, &[1, 2], OTHERS),
    facts(Ryzen7000, "Ryzen 7000 (desktop)", 2, None, &[1, 2], OTHERS),
    facts(Threadripper, "Ryzen Threadripper", 4, None, &[1, 2, 4], OTHERS),
    facts(ThreadripperPro, "Ryzen Threadripper PRO", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(Epyc3000, "EPYC 3101 to 3255", 2, None, &[1, 2], OTHERS),
    facts(Epyc3300, "EPYC 3301 to 3451", 4, None, &[1, 2, 4], OTHERS),
    facts(Epyc4000, "EPYC 4004 or 4005", 2, None, &[1, 2], OTHERS),
    facts(Opteron4000, "Opteron 3000 or 4000", 2, None, &[1, 2], OTHERS),
    facts(Opteron6000, "Opteron 6000", 4, None, &[1, 2, 4], OTHERS),
];

/// Families that rest on their documents alone.
pub(super) const UNSEEN: &[Family] =
    &[ClearwaterForest, Siena, Turin, Graviton, Graviton4, AmpereOne, AmpereOneM, Threadripper, Epyc3300];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_facts() {
        for facts in FACTS {
            assert!(facts.even.contains(&facts.channels) && !facts.source.is_empty(), "{facts:?}");
            assert_eq!(facts.channels % facts.controllers.unwrap_or(1), 0, "{facts:?}");
        }
        assert!(REGIONS.iter().all(|(family, _)| FACTS.iter().any(|facts| facts.family == *family)));
        for (family, first, last, mts) in limits::LIMITS {
            assert!(FACTS.iter().any(|facts| facts.family == *family) && first <= last && *mts > 0);
        }
    }
}
