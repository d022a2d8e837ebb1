//! Processor families: memory channels and controllers of a socket, which populations one
//! interleave set covers, and how fast a processor drives its memory. Data, with its sources; what
//! is not in the tables is not known.

use Family::{
    Altra, BroadwellEp, CascadeLake, CooperLake, EmeraldRapids, Genoa, HaswellEp, IceLake, IvyBridgeEn,
    IvyBridgeEp, Kunpeng, Milan, Naples, Nehalem, Rome, SandyBridgeEn, SandyBridgeEp, SapphireRapids, Siena,
    Skylake, Turin, Xeon6Large, Xeon6Small, XeonE,
};

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
    Naples,
    Rome,
    Milan,
    Siena,
    Genoa,
    Turin,
    Kunpeng,
    Altra,
}

impl Family {
    pub fn is_epyc(self) -> bool {
        matches!(self, Naples | Rome | Milan | Siena | Genoa | Turin)
    }

    pub fn has_ddr5(self) -> bool {
        matches!(self, SapphireRapids | EmeraldRapids | Xeon6Small | Xeon6Large | Siena | Genoa | Turin)
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

const FACTS: &[Facts] = &[
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
    facts(Naples, "EPYC 7001 (Naples)", 8, None, &[1, 4, 8], AMD_8),
    facts(Rome, "EPYC 7002 (Rome)", 8, None, &[1, 4, 8], AMD_8),
    facts(Milan, "EPYC 7003 (Milan)", 8, None, &[1, 2, 4, 6, 8], AMD_MILAN),
    facts(Siena, "EPYC 8004 (Siena)", 6, None, &[1, 2, 4, 6], AMD_12),
    facts(Genoa, "EPYC 9004 (Genoa)", 12, None, &[1, 2, 4, 6, 8, 10, 12], AMD_12),
    facts(Turin, "EPYC 9005 (Turin)", 12, None, &[1, 2, 4, 6, 8, 10, 12], AMD_12),
    facts(Kunpeng, "Kunpeng 920", 8, None, &[1, 2, 4, 8], OTHERS),
    facts(Altra, "Ampere Altra", 8, None, &[1, 2, 4, 8], OTHERS),
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
pub const SPEED_SOURCE: &str = "Intel's and AMD's product pages, maximum memory speed";

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
    (Naples, 0, 9999, 2666),
    (Rome, 0, 9999, 3200),
    (Milan, 0, 9999, 3200),
    (Siena, 0, 9999, 4800),
    (Genoa, 0, 9999, 4800),
    (Turin, 0, 9999, 6000),
];

impl Cpu {
    /// The fastest memory that it drives, MT/s, with one module a channel.
    pub fn limit_mts(&self) -> Option<u32> {
        let holds = |(family, first, last, _): &&(Family, u32, u32, u32)| {
            *family == self.facts.family && (*first..=*last).contains(&self.number)
        };
        LIMITS.iter().find(holds).map(|row| row.3)
    }
}

/// A processor by its name, as `Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz` or `AMD EPYC 7452 32-Core
/// Processor`.
pub fn cpu(name: &str) -> Option<Cpu> {
    let name = name.to_ascii_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let words: Vec<&str> = name.split_whitespace().collect();
    let after =
        |word: &str| words.iter().position(|one| *one == word).and_then(|at| words.get(at + 1)).copied();
    let (family, number) = scalable(&words)
        .or_else(|| after("xeon").and_then(xeon_6))
        .or_else(|| after("epyc").and_then(epyc))
        .or_else(|| xeon_e(&words))
        .or_else(|| words.iter().find_map(|word| nehalem(word)))
        .or_else(|| name.contains("kunpeng").then_some((Kunpeng, 920)))
        .or_else(|| name.contains("altra").then_some((Altra, 0)))?;
    let facts = FACTS.iter().find(|facts| facts.family == family)?;
    Some(Cpu { facts, number })
}

/// The first four digits of a word, and what follows them.
fn number(word: &str) -> Option<(u32, &str)> {
    let digits = word.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let rest = &word[4..];
    (!rest.starts_with(|c: char| c.is_ascii_digit())).then_some((digits.parse().ok()?, rest))
}

/// Bronze, Silver, Gold and Platinum: the second digit is the generation; in the third, H and HL
/// are Cooper Lake.
fn scalable(words: &[&str]) -> Option<(Family, u32)> {
    let at = words.iter().position(|word| matches!(*word, "bronze" | "silver" | "gold" | "platinum"))?;
    let (number, rest) = number(words.get(at + 1)?)?;
    let family = match number / 100 % 10 {
        1 => Skylake,
        // Two dies in a package, 12 channels: another machine.
        2 if number / 100 == 92 => return None,
        2 => CascadeLake,
        3 if rest.starts_with('h') => CooperLake,
        3 => IceLake,
        4 => SapphireRapids,
        5 => EmeraldRapids,
        _ => return None,
    };
    Some((family, number))
}

/// `6746E`, `6960P`: the number is followed by the kind of its cores.
fn xeon_6(word: &str) -> Option<(Family, u32)> {
    let (number, _) = number(word).filter(|(_, rest)| rest.starts_with(['e', 'p']))?;
    let family = match number / 100 {
        65 | 67 => Xeon6Small,
        69 => Xeon6Large,
        _ => return None,
    };
    Some((family, number))
}

/// The last of four characters is the generation, the first one the series; the two between may be
/// letters (7F52).
fn epyc(word: &str) -> Option<(Family, u32)> {
    let name: Vec<char> = word.chars().take(4).collect();
    let [series, _, _, generation] = name.as_slice() else { return None };
    let family = match (series, generation) {
        ('7', '1') => Naples,
        ('7', '2') => Rome,
        ('7', '3') => Milan,
        ('8', '4') => Siena,
        ('9', '4') => Genoa,
        ('9', '5') => Turin,
        _ => return None,
    };
    Some((family, number(word).map_or(0, |(number, _)| number)))
}

/// `E5-2670 0`, `E5-2650 v2`, `E3-1230 v5`, `E-2288G`.
fn xeon_e(words: &[&str]) -> Option<(Family, u32)> {
    for (at, word) in words.iter().enumerate() {
        if let Some((number, _)) = word.strip_prefix("e5-").and_then(number) {
            let version = match words.get(at + 1).and_then(|next| next.strip_prefix('v')) {
                Some(version) => version.parse().ok()?,
                None => 1,
            };
            let narrow = matches!(number / 100, 14 | 24);
            let family = match (version, narrow) {
                (1, true) => SandyBridgeEn,
                (1, false) => SandyBridgeEp,
                (2, true) => IvyBridgeEn,
                (2, false) => IvyBridgeEp,
                (3, _) => HaswellEp,
                (4, _) => BroadwellEp,
                _ => return None,
            };
            return Some((family, number));
        }
        let small = word.strip_prefix("e3-").or_else(|| word.strip_prefix("e-"));
        if let Some((number, _)) = small.and_then(number) {
            return Some((XeonE, number));
        }
    }
    None
}

/// `X5570`, `E5620`, `L5640`, `W5590`.
fn nehalem(word: &str) -> Option<(Family, u32)> {
    let (number, _) = word.strip_prefix(['x', 'e', 'l', 'w']).and_then(number)?;
    matches!(number / 100, 55 | 56).then_some((Nehalem, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processors() {
        for (name, family, limit) in [
            ("Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz", Skylake, Some(2666)),
            ("Intel(R) Xeon(R) Gold 5220R CPU @ 2.20GHz", CascadeLake, Some(2666)),
            ("Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", IceLake, Some(3200)),
            ("Intel(R) Xeon(R) Gold 6348H CPU @ 2.30GHz", CooperLake, None),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", SandyBridgeEp, Some(1600)),
            ("Intel(R) Xeon(R) CPU E5-2620 v4 @ 2.10GHz", BroadwellEp, Some(2133)),
            ("Intel(R) Xeon(R) CPU E5-2420 0 @ 1.90GHz", SandyBridgeEn, None),
            ("Intel(R) Xeon(R) CPU E5-4650 v2 @ 2.4GHz", IvyBridgeEp, None),
            ("Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz", XeonE, None),
            ("Intel(R) Xeon(R) CPU           X5650  @ 2.67GHz", Nehalem, None),
            ("Intel(R) Xeon(R) 6746E", Xeon6Small, None),
            ("INTEL(R) XEON(R) 6520P", Xeon6Small, None),
            ("Intel(R) Xeon(R) 6787P-B", Xeon6Small, None),
            ("Intel(R) Xeon(R) 6980P", Xeon6Large, None),
            ("AMD EPYC 7452 32-Core Processor", Rome, Some(3200)),
            ("AMD EPYC 7F52 16-Core Processor", Rome, Some(3200)),
            ("AMD EPYC 7551P 32-Core Processor", Naples, Some(2666)),
            ("AMD EPYC 9654 96-Core Processor", Genoa, Some(4800)),
        ] {
            let found = cpu(name).unwrap_or_else(|| panic!("{name} is unknown"));
            assert_eq!((found.facts.family, found.limit_mts()), (family, limit), "{name}");
        }
        for name in
            ["", "Intel Core Processor (Skylake, IBRS)", "Xeon Platinum 9242", "EPYC", "Gold 6é32", "pc-q35"]
        {
            assert_eq!(cpu(name), None, "{name}");
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
