//! Processors by their names.

use super::cpus::Family::{
    self, Altra, AmpereOne, AmpereOneM, BroadwellEp, CascadeLake, ClearwaterForest, CooperLake, Core, CoreX,
    EmeraldRapids, Epyc3000, Epyc3300, Epyc4000, Genoa, Graviton, Graviton4, HaswellEp, IceLake, IvyBridgeEn,
    IvyBridgeEp, Kunpeng, Milan, Naples, Nehalem, NehalemEx, Opteron4000, Opteron6000, Rome, Ryzen,
    Ryzen7000, SandyBridgeEn, SandyBridgeEp, SapphireRapids, Siena, Skylake, Threadripper, ThreadripperPro,
    Turin, Xeon6Large, Xeon6Small, XeonD1500, XeonD1700, XeonD2000, XeonE, XeonW2000, XeonW3000,
};
use super::cpus::{Cpu, FACTS};

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
        .or_else(|| after("opteron").and_then(|_| words.iter().find_map(|word| opteron(word))))
        .or_else(|| xeon_e(&words))
        .or_else(|| xeon_e7(&words))
        .or_else(|| words.iter().find_map(|word| series(word)))
        .or_else(|| after("xeon").and_then(|_| words.iter().find_map(|word| nehalem(word))))
        .or_else(|| core(&name, &words))
        .or_else(|| graviton(&name))
        .or_else(|| name.contains("kunpeng").then_some((Kunpeng, 920)))
        .or_else(|| name.contains("altra").then_some((Altra, 0)))
        .or_else(|| after("ampereone").and_then(ampereone))?;
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
    let at =
        words.iter().position(|word| matches!(*word, "bronze" | "silver" | "gold" | "platinum" | "max"))?;
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

/// The ending of the model gives how many channels there are.
fn ampereone(word: &str) -> Option<(Family, u32)> {
    match word.chars().last()? {
        'x' => Some((AmpereOne, 0)),
        'm' => Some((AmpereOneM, 0)),
        _ => None,
    }
}

/// `6746E`, `6960P`, `6990E+`: the number is followed by the kind of its cores; those for embedding
/// (`-B`) have four or eight channels.
fn xeon_6(word: &str) -> Option<(Family, u32)> {
    let (number, rest) =
        number(word).filter(|(_, rest)| rest.starts_with(['e', 'p']) && !rest.ends_with("-b"))?;
    let family = match number / 100 {
        69 if rest == "e+" => ClearwaterForest,
        _ if rest.ends_with('+') => return None,
        63 => XeonE,
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
        ('4', '4' | '5') => Epyc4000,
        ('3', '1' | '5') if number(word)?.0 < 3300 => Epyc3000,
        ('3', '1') => Epyc3300,
        _ => return None,
    };
    Some((family, number(word).map_or(0, |(number, _)| number)))
}

/// The version of a processor whose name is the word before.
fn version(words: &[&str], at: usize) -> Option<u32> {
    match words.get(at + 1).and_then(|next| next.strip_prefix('v')) {
        Some(version) => version.parse().ok(),
        None => Some(1),
    }
}

/// `E5-2670 0`, `E5-2650 v2`, `E3-1230 v5`, `E-2288G`.
fn xeon_e(words: &[&str]) -> Option<(Family, u32)> {
    for (at, word) in words.iter().enumerate() {
        if let Some((number, _)) = word.strip_prefix("e5-").and_then(number) {
            let version = version(words, at)?;
            let narrow = matches!(number / 100, 14 | 24);
            let family = match (version, narrow) {
                (1, true) => SandyBridgeEn,
                (1, false) => SandyBridgeEp,
                (2, true) => IvyBridgeEn,
                (2, false) => IvyBridgeEp,
                // Three channels: another machine.
                (3, true) => return None,
                (3, false) => HaswellEp,
                (4, _) => BroadwellEp,
                _ => return None,
            };
            return Some((family, number));
        }
        let small = ["e3-", "e3"].iter().find_map(|begin| word.strip_prefix(begin));
        if let Some((number, _)) = small.and_then(number) {
            return Some((XeonE, VERSION * version(words, at)?.min(9) + number));
        }
        if let Some((number, _)) = word.strip_prefix("e-").and_then(number) {
            return Some((XeonE, number));
        }
    }
    None
}

/// What a version counts for in the number of a Xeon E3.
const VERSION: u32 = 10_000;

/// `E7- 4850`, `E7-L8867`: the first ones, without a version.
fn xeon_e7(words: &[&str]) -> Option<(Family, u32)> {
    let at = words.iter().position(|word| word.starts_with("e7-"))?;
    let own = words[at]["e7-".len()..].trim_start_matches('l');
    let (own, at) = if own.is_empty() { (*words.get(at + 1)?, at + 1) } else { (own, at) };
    let (number, _) = number(own).filter(|_| version(words, at) == Some(1))?;
    Some((NehalemEx, number))
}

/// `AWS Graviton3`.
fn graviton(name: &str) -> Option<(Family, u32)> {
    let after = name.split_once("graviton")?.1;
    match after.chars().next()? {
        '2' => Some((Graviton, 2)),
        '3' => Some((Graviton, 3)),
        '4' => Some((Graviton4, 4)),
        '5' => Some((Graviton4, 5)),
        _ => None,
    }
}

/// `6128`, `4334`, `3280`.
fn opteron(word: &str) -> Option<(Family, u32)> {
    let (number, _) = number(word)?;
    match number / 100 {
        61..=63 => Some((Opteron6000, number)),
        32 | 33 | 41..=43 => Some((Opteron4000, number)),
        _ => None,
    }
}

/// `D-1541`, `D-1622`, `D-2146NT`, `W-2145`, `W-3245`.
fn series(word: &str) -> Option<(Family, u32)> {
    let (number, rest) = word.strip_prefix(['d', 'w'])?.strip_prefix('-').and_then(number)?;
    let family = match (word.starts_with('d'), number / 100) {
        (true, 15 | 16) => XeonD1500,
        (true, 17) if matches!(number, 1713 | 1722 | 1733 | 1734 | 1748 | 1749) => XeonD1700,
        (true, 17) if number == 1736 && rest.starts_with("nt") => XeonD1700,
        (true, 21 | 27) => XeonD2000,
        (false, 21 | 22) => XeonW2000,
        (false, 31 | 32) => XeonW3000,
        _ => return None,
    };
    Some((family, number))
}

/// Desktop's processors and those with their controller: `i7-6700TE`, `Pentium G4400`, `X3430`,
/// `Ryzen 7 5800X`; of four channels `i9-7900X`, `i7-3820`.
fn core(name: &str, words: &[&str]) -> Option<(Family, u32)> {
    let of_four = |number: u32, rest: &str| match rest {
        "" | "k" => matches!(number, 3820 | 3930 | 4820 | 4930 | 5820 | 5930 | 6800 | 6850 | 6900),
        _ => rest.starts_with('x') && !matches!(number, 7640 | 7740),
    };
    for word in words {
        let own = ["i3-", "i5-", "i7-", "i9-"].iter().find_map(|begin| word.strip_prefix(begin));
        if let Some(own) = own {
            let digits = own.bytes().take_while(u8::is_ascii_digit).count();
            let number: u32 = own[..digits].parse().ok()?;
            let family = if of_four(number, &own[digits..]) { CoreX } else { Core };
            return (digits >= 4).then_some((family, number));
        }
        if let Some((number, _)) = word.strip_prefix(['x', 'l']).and_then(number)
            && number / 100 == 34
        {
            return Some((Core, number));
        }
    }
    if let Some(number) = first_core(words) {
        return Some((Core, number));
    }
    let is_small =
        |begin: &str| words.iter().any(|word| number(word.strip_prefix(begin).unwrap_or("")).is_some());
    if (name.contains("pentium") || name.contains("celeron")) && is_small("g") {
        return Some((Core, 0));
    }
    // `Pentium D1508`.
    let is_d1500 =
        |word: &&str| word.strip_prefix('d').and_then(number).is_some_and(|(own, _)| own / 100 == 15);
    if name.contains("pentium") && words.iter().any(is_d1500) {
        return Some((XeonD1500, 0));
    }
    words.contains(&"ryzen").then(|| ryzen(words))?
}

/// `Ryzen 9 7900X`, `Ryzen Threadripper 3990X`, `Ryzen Threadripper PRO 5975WX`.
fn ryzen(words: &[&str]) -> Option<(Family, u32)> {
    let numbers = || words.iter().filter_map(|word| number(word));
    if words.contains(&"threadripper") {
        let own = numbers().next().map_or(0, |(number, _)| number);
        let is_first = matches!(own / 1000, 1..=3);
        return if words.contains(&"pro") {
            Some((ThreadripperPro, own))
        } else {
            is_first.then_some((Threadripper, own))
        };
    }
    let is_desktops = |(number, rest): &(u32, &str)| {
        matches!(number, 7600 | 7700 | 7800 | 7900 | 7950) && matches!(*rest, "" | "x" | "x3d")
    };
    let own = numbers().find(is_desktops);
    Some(own.map_or((Ryzen, 0), |(number, _)| (Ryzen7000, number)))
}

/// `i3 CPU 540`, `i5 CPU 750`, `i7 CPU 870`: those before numbers of four digits, two channels
/// each; `i7 CPU 920` and after have three.
fn first_core(words: &[&str]) -> Option<u32> {
    let at = words.iter().position(|word| matches!(*word, "i3" | "i5" | "i7"))?;
    let [kind, "cpu", number] = words.get(at..at + 3)? else { return None };
    let number: u32 = number.parse().ok()?;
    matches!((*kind, number / 100), ("i3", 5) | ("i5", 6 | 7) | ("i7", 8)).then_some(number)
}

/// `X5570`, `E5620`, `L5640`, `W5590`, `X7560`.
fn nehalem(word: &str) -> Option<(Family, u32)> {
    let (number, _) = word.strip_prefix(['x', 'e', 'l', 'w']).and_then(number)?;
    match number / 100 {
        55 | 56 => Some((Nehalem, number)),
        65 | 75 => Some((NehalemEx, number)),
        _ => None,
    }
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
            ("Intel(R) Xeon(R) Gold 6348H CPU @ 2.30GHz", CooperLake, Some(2933)),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", SandyBridgeEp, Some(1600)),
            ("Intel(R) Xeon(R) CPU E5-2620 v4 @ 2.10GHz", BroadwellEp, Some(2133)),
            ("Intel(R) Xeon(R) CPU E5-2420 0 @ 1.90GHz", SandyBridgeEn, Some(1333)),
            ("Intel(R) Xeon(R) CPU E5-4650 v2 @ 2.4GHz", IvyBridgeEp, Some(1866)),
            ("Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz", XeonE, Some(2666)),
            ("Intel(R) Xeon(R) CPU E31240 @ 3.30GHz", XeonE, Some(1333)),
            ("Intel(R) Xeon(R) CPU E3-1230 v5 @ 3.40GHz", XeonE, Some(2133)),
            ("Intel(R) Xeon(R) 6369P", XeonE, None),
            ("Intel(R) Xeon(R) CPU Max 9480", SapphireRapids, Some(4800)),
            ("Intel(R) Xeon(R) CPU D-1541 @ 2.10GHz", XeonD1500, None),
            ("Intel(R) Xeon(R) D-2146NT CPU @ 2.30GHz", XeonD2000, Some(2133)),
            ("Intel(R) Xeon(R) D-1736NT CPU @ 2.70GHz", XeonD1700, Some(2666)),
            ("Intel(R) Xeon(R) W-2145 CPU @ 3.70GHz", XeonW2000, Some(2666)),
            ("Intel(R) Xeon(R) W-3245M CPU @ 3.20GHz", XeonW3000, Some(2933)),
            ("Intel(R) Xeon(R) CPU           X3430  @ 2.40GHz", Core, None),
            ("Intel(R) Core(TM) i7-6700TE CPU @ 2.40GHz", Core, None),
            ("13th Gen Intel(R) Core(TM) i9-13900H", Core, None),
            ("Intel(R) Core(TM) i3 CPU         540  @ 3.07GHz", Core, None),
            ("Intel(R) Core(TM) i7 CPU         870  @ 2.93GHz", Core, None),
            ("Intel(R) Pentium(R) CPU G4400 @ 3.30GHz", Core, None),
            ("AMD Ryzen 9 7900X 12-Core Processor", Ryzen7000, Some(5200)),
            ("AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", Ryzen, None),
            ("AMD Ryzen Threadripper 3990X 64-Core Processor", Threadripper, Some(3200)),
            ("AMD Ryzen Threadripper PRO 5975WX 32-Cores", ThreadripperPro, Some(3200)),
            ("AMD EPYC 4344P 8-Core Processor", Epyc4000, Some(5200)),
            ("AMD EPYC 4565P 16-Core Processor", Epyc4000, Some(5600)),
            ("AMD EPYC 3151 4-Core Processor", Epyc3000, None),
            ("AMD EPYC 3451 16-Core Processor", Epyc3300, None),
            ("AMD Opteron(tm) Processor 6128", Opteron6000, None),
            ("AMD Opteron(tm) Processor 4274 HE", Opteron4000, None),
            ("Ampere(R) Altra(R) Max Processor", Altra, Some(3200)),
            ("AmpereOne(R) A192-32X", AmpereOne, Some(5200)),
            ("AmpereOne(R) M A192-26M", AmpereOneM, Some(5600)),
            ("Intel(R) Xeon(R) CPU D-1622 @ 2.60GHz", XeonD1500, Some(2133)),
            ("Intel(R) Pentium(R) CPU D1508 @ 2.20GHz", XeonD1500, None),
            ("Intel(R) Xeon(R) 6990E+", ClearwaterForest, Some(8000)),
            ("Intel(R) Xeon(R) CPU           X5650  @ 2.67GHz", Nehalem, Some(1333)),
            ("Intel(R) Xeon(R) CPU           X7560  @ 2.27GHz", NehalemEx, Some(1066)),
            ("Intel(R) Xeon(R) CPU E7- 4850  @ 2.00GHz", NehalemEx, Some(1066)),
            ("Intel(R) Xeon(R) CPU E7-L8867  @ 2.13GHz", NehalemEx, Some(1066)),
            ("Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz", CoreX, Some(2666)),
            ("Intel(R) Core(TM) i7-5820K CPU @ 3.30GHz", CoreX, Some(2133)),
            ("Intel(R) Core(TM) i7-3820QM CPU @ 2.70GHz", Core, None),
            ("AWS Graviton3", Graviton, None),
            ("AWS Graviton4", Graviton4, None),
            ("AWS Graviton5", Graviton4, None),
            ("Intel(R) Xeon(R) 6746E", Xeon6Small, Some(6400)),
            ("INTEL(R) XEON(R) 6520P", Xeon6Small, Some(6400)),
            ("Intel(R) Xeon(R) 6787P", Xeon6Small, Some(6400)),
            ("Intel(R) Xeon(R) 6980P", Xeon6Large, Some(6400)),
            ("AMD EPYC 7452 32-Core Processor", Rome, Some(3200)),
            ("AMD EPYC 7F52 16-Core Processor", Rome, Some(3200)),
            ("AMD EPYC 7551P 32-Core Processor", Naples, Some(2666)),
            ("AMD EPYC 9654 96-Core Processor", Genoa, Some(4800)),
        ] {
            let found = cpu(name).unwrap_or_else(|| panic!("{name} is unknown"));
            assert_eq!((found.facts.family, found.limit_mts()), (family, limit), "{name}");
        }
        for name in [
            "",
            "Intel Core Processor (Skylake, IBRS)",
            "Xeon Platinum 9242",
            "EPYC",
            "Gold 6é32",
            "pc-q35",
            "Intel(R) Xeon(R) 6553P-B",
            "Intel(R) Core(TM) i7 CPU 920 @ 2.67GHz",
            "Intel(R) Core(TM) i7 CPU       Q 820  @ 1.73GHz",
            "Intel(R) Core(TM) i5 CPU",
            "AMD Ryzen Threadripper 7980X 64-Cores",
            "AWS Graviton",
            "Intel(R) Xeon(R) CPU E7-4890 v2 @ 2.80GHz",
            "Intel(R) Xeon(R) CPU E5-2428L v3 @ 1.80GHz",
            "Intel(R) Xeon(R) D-1736 CPU @ 2.30GHz",
            "Pentium(R) Dual-Core  CPU      E5500  @ 2.80GHz",
            "AmpereOne(R) A192",
            "Intel(R) Xeon(R) 6787P+",
            "Intel(R) Pentium(R) D CPU 2.80GHz",
            "i9-é",
        ] {
            assert_eq!(cpu(name), None, "{name}");
        }
    }
}
