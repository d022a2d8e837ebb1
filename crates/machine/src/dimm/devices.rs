//! What tables list beside modules of memory, and what they say about modules and no module can
//! mean.

use std::collections::{BTreeMap, BTreeSet};

use super::balance::{gib, listed};
use super::{DeviceUse, Dimm, Tables};

/// Kinds of devices that hold firmware, whatever slot they claim.
const FIRMWARE: [&str; 5] = ["ROM", "FLASH", "EEPROM", "FEPROM", "EPROM"];

/// Kinds of memory of a graphics chip or a cache.
const OF_CHIPS: [&str; 6] = ["VRAM", "SGRAM", "EDRAM", "CDRAM", "SRAM", "3DRAM"];

/// MT/s below and above which no module of a kind runs, overclocked ones included. JEDEC's slowest
/// are 200, 400, 800, 1600 and 3200, its fastest 400, 1066, 2133, 3200, 8800, and 12800 of
/// multiplexed ranks; Dell's R730 can slow DDR4 to 1333.
const POSSIBLE: [(&str, u32, u32); 5] = [
    ("DDR", 200, 800),
    ("DDR2", 400, 1600),
    ("DDR3", 800, 3400),
    ("DDR4", 1333, 5600),
    ("DDR5", 3200, 14_400),
];
/// Of a module whose kind is unknown: SDRAM before DDR ran at 66.
const POSSIBLE_OF_ALL: (u32, u32) = (66, 14_400);

/// Bits that a module of a DDR kind moves at once; what is reported beyond is error correction.
const DATA_BITS: u16 = 64;

/// Takes out of the modules what is none, and of their words what cannot be, with a remark of each.
pub(super) fn sort_out(tables: &mut Tables) {
    let mut remarks = Vec::new();
    let count = |taken: Vec<Dimm>, one: &str, many: &str| match taken.len() {
        0 => None,
        1 => Some(one.to_string()),
        count => Some(format!("{count} {many}")),
    };
    remarks.extend(count(
        taken(tables, is_firmware),
        "one ROM or flash device was left out",
        "ROM or flash devices were left out",
    ));
    remarks.extend(count(
        taken(tables, |dimm| dimm.holds == DeviceUse::Others || is_of_chip(dimm)),
        "one device that is not system memory (video, cache, flash) was left out",
        "devices that are not system memory (video, cache, flash) were left out",
    ));
    let mut apart = |what: &str, taken: Vec<Dimm>| {
        if taken.is_empty() {
            return;
        }
        let bytes = taken.iter().filter_map(|device| device.size_bytes).sum();
        let names = listed(taken.iter().take(6).map(|device| device.name().chars().take(40).collect()));
        remarks.push(format!(
            "{what} counts separately from the modules: {} devices, {} ({names})",
            taken.len(),
            gib(bytes)
        ));
    };
    apart("memory behind CXL", taken(tables, is_cxl));
    apart("memory on a PCIe card", taken(tables, is_on_card));
    apart("memory on the processor's package (HBM)", taken(tables, is_on_package));
    // Where all memory is on dies, those are what the channels hold.
    if tables.dimms.iter().any(|dimm| dimm.is_memory() && dimm.holds == DeviceUse::Modules) {
        apart("memory on dies", taken(tables, |dimm| dimm.holds == DeviceUse::Dies));
    }
    tables.dmi.is_virtual |= tables.dimms.iter().any(is_invented);
    remarks.extend(impossible_speeds(&mut tables.dimms));
    remarks.extend(contradicting_speeds(&mut tables.dimms));
    remarks.extend(too_wide(&mut tables.dimms));
    tables.remarks.extend(remarks);
}

/// The devices of a kind, which are no longer among the modules.
fn taken(tables: &mut Tables, is_of: impl Fn(&Dimm) -> bool) -> Vec<Dimm> {
    let (taken, dimms) = tables.dimms.drain(..).partition(|dimm| is_of(dimm));
    tables.dimms = dimms;
    taken
}

fn is_firmware(dimm: &Dimm) -> bool {
    dimm.kind.as_ref().is_some_and(|kind| FIRMWARE.contains(&kind.to_ascii_uppercase().as_str()))
}

fn is_of_chip(dimm: &Dimm) -> bool {
    dimm.kind.as_ref().is_some_and(|kind| OF_CHIPS.contains(&kind.to_ascii_uppercase().as_str()))
}

/// Whether a device is one of ordinary memory by its own words.
pub(super) fn is_module(dimm: &Dimm) -> bool {
    let is_other = [is_firmware, is_of_chip, is_cxl, is_on_card, is_on_package].iter().any(|is| is(dimm));
    !is_other && matches!(dimm.holds, DeviceUse::Modules | DeviceUse::Dies)
}

/// Whether a word of either of its names begins so.
fn is_named(dimm: &Dimm, begin: &str) -> bool {
    let names = |text: &String| {
        let text = text.to_ascii_uppercase();
        text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.starts_with(begin))
    };
    [&dimm.locator, &dimm.bank].into_iter().any(names)
}

fn is_cxl(dimm: &Dimm) -> bool {
    dimm.holds == DeviceUse::Cxl || is_named(dimm, "CXL")
}

fn is_on_card(dimm: &Dimm) -> bool {
    is_named(dimm, "PCIE")
}

fn is_on_package(dimm: &Dimm) -> bool {
    dimm.kind.as_deref().is_some_and(|kind| kind.starts_with("HBM"))
}

/// Makers that hypervisors write into the modules that they invent.
fn is_invented(dimm: &Dimm) -> bool {
    let says = |text: &Option<String>| {
        text.as_deref()
            .is_some_and(|text| ["QEMU", "VMware", "Bochs"].iter().any(|own| text.starts_with(own)))
    };
    says(&dimm.manufacturer) || says(&dimm.part)
}

/// Speeds that no module of the kind has are not used.
fn impossible_speeds(dimms: &mut [Dimm]) -> Vec<String> {
    let (mut impossible, mut beyond_rated) = (BTreeSet::new(), BTreeSet::new());
    for dimm in dimms {
        let own = POSSIBLE.iter().find(|(kind, ..)| dimm.kind.as_deref() == Some(*kind));
        let (least, most) = own.map_or(POSSIBLE_OF_ALL, |(_, least, most)| (*least, *most));
        for speed in [&mut dimm.speed_mts, &mut dimm.configured_mts] {
            impossible.extend(speed.take_if(|mts| !(least..=most).contains(mts)));
        }
        let above = dimm.speed_mts.zip(dimm.configured_mts).filter(|(rated, runs)| *runs > rated + 1);
        beyond_rated.extend(above);
    }
    let mut remarks = Vec::new();
    if !impossible.is_empty() {
        let speeds = listed(impossible.iter().map(|mts| format!("{mts} MT/s")));
        remarks.push(format!("the firmware reports impossible module speeds ({speeds}): not used"));
    }
    if let Some((rated, runs)) = beyond_rated.first() {
        remarks.push(format!(
            "the firmware reports modules rated {rated} MT/s as running at {runs} MT/s: overclocked, or one \
             number is wrong"
        ));
    }
    remarks
}

/// Widths that count the bits of error correction as data.
fn too_wide(dimms: &mut [Dimm]) -> Option<String> {
    let is_ddr = |dimm: &&mut Dimm| dimm.kind.as_ref().is_none_or(|kind| kind.starts_with("DDR"));
    let mut wide = BTreeSet::new();
    for dimm in dimms.iter_mut().filter(is_ddr) {
        wide.extend(dimm.data_width_bits.filter(|bits| *bits > DATA_BITS && *bits < 2 * DATA_BITS));
        dimm.data_width_bits =
            dimm.data_width_bits.map(|bits| if bits < 2 * DATA_BITS { bits.min(DATA_BITS) } else { bits });
    }
    let widths = listed(wide.iter().map(u16::to_string));
    (!wide.is_empty()).then(|| {
        format!(
            "the firmware reports a data width of {widths} bits, error correction included: {DATA_BITS} are \
                 used"
        )
    })
}

/// Bounds the speeds from which bandwidths are reckoned by what the processor drives and modules
/// are rated, and says where the firmware claims more.
pub(super) fn bound_speeds(dimms: &mut [Dimm], limit: Option<u32>) -> Option<String> {
    let mut beyond = BTreeSet::new();
    for dimm in dimms.iter_mut() {
        let is_clock = dimm
            .speed_mts
            .zip(dimm.configured_mts)
            .is_some_and(|(rated, runs)| rated.abs_diff(2 * runs) <= 2);
        let reported = if is_clock { dimm.speed_mts } else { dimm.configured_mts.or(dimm.speed_mts) };
        // Some boards drive a step more than the processor's page says.
        let runs = dimm.configured_mts.zip(limit);
        let is_step = runs.is_some_and(|(runs, limit)| runs <= limit + limit / 10);
        beyond.extend(runs.filter(|_| !is_step));
        dimm.most_mts =
            reported.map(|mts| limit.filter(|_| !is_step || is_clock).map_or(mts, |limit| mts.min(limit)));
    }
    beyond.first().map(|(runs, limit)| {
        format!(
            "the firmware reports modules at {runs} MT/s, but the processor drives {limit} MT/s: bandwidths use \
             the latter"
        )
    })
}

/// Modules of one part number have one rated speed; where the firmware reports several, it is not
/// used.
fn contradicting_speeds(dimms: &mut [Dimm]) -> Vec<String> {
    let mut rated: BTreeMap<(Option<String>, String), BTreeSet<u32>> = BTreeMap::new();
    let part = |dimm: &Dimm| Some((dimm.manufacturer.clone(), dimm.part.clone()?));
    for dimm in dimms.iter() {
        if let Some((part, mts)) = part(dimm).zip(dimm.speed_mts) {
            rated.entry(part).or_default().insert(mts);
        }
    }
    rated.retain(|_, speeds| speeds.last().zip(speeds.first()).is_some_and(|(last, first)| last - first > 1));
    for dimm in dimms.iter_mut().filter(|dimm| part(dimm).is_some_and(|part| rated.contains_key(&part))) {
        dimm.speed_mts = None;
    }
    let words = |((_, part), speeds): (&(Option<String>, String), &BTreeSet<u32>)| {
        let part: String = part.chars().take(40).collect();
        let speeds = speeds.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "the firmware reports several rated speeds ({speeds} MT/s) for one part number ({part}): not used"
        )
    };
    rated.iter().take(3).map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimm(locator: &str, kind: &str, rated: u32, runs: u32) -> Dimm {
        Dimm {
            locator: locator.to_string(),
            kind: Some(kind.to_string()),
            size_bytes: Some(16 << 30),
            speed_mts: Some(rated),
            configured_mts: Some(runs),
            ..Dimm::default()
        }
    }

    fn sorted_out(dimms: Vec<Dimm>) -> Tables {
        let mut tables = Tables { dimms, ..Tables::default() };
        sort_out(&mut tables);
        tables
    }

    #[test]
    fn only_memory_counts_as_a_module() {
        for kind in ["ROM", "Flash", "EEPROM", "FEPROM", "EPROM"] {
            let tables = sorted_out(vec![dimm("A1", "DDR4", 2400, 2400), dimm("BIOS", kind, 33, 33)]);
            assert_eq!((tables.dimms.len(), tables.remarks.len()), (1, 1), "{kind}");
        }
        let flexible = Dimm { holds: DeviceUse::Cxl, ..dimm("SLOT9", "DDR5", 4800, 4800) };
        let tables =
            sorted_out(vec![dimm("A1", "DDR5", 4800, 4800), flexible, dimm("CXL1", "DDR5", 4800, 4800)]);
        assert_eq!(tables.dimms.len(), 1);
        assert!(tables.remarks[0].contains("2 devices, 32 GiB (SLOT9, CXL1)"), "{:?}", tables.remarks);
        for (other, is_left) in [
            (Dimm { bank: "P0_CXL_A".to_string(), ..dimm("X", "DDR5", 4800, 4800) }, false),
            (Dimm { holds: DeviceUse::Others, ..dimm("VGA", "DDR4", 2400, 2400) }, false),
            (dimm("CPU0_HBM1", "HBM2", 3200, 3200), false),
            (dimm("PCIE1", "DDR5", 4800, 4800), false),
            (Dimm { bank: "PCIe Slot 3".to_string(), ..dimm("M0", "DDR5", 4800, 4800) }, false),
            (Dimm { holds: DeviceUse::Dies, ..dimm("U1", "DDR5", 4800, 4800) }, false),
            (dimm("EXCXLENT", "DDR5", 4800, 4800), true),
            (dimm("APCIE", "DDR5", 4800, 4800), true),
        ] {
            let name = other.locator.clone();
            let tables = sorted_out(vec![dimm("A1", "DDR5", 4800, 4800), other]);
            assert_eq!((tables.dimms.len() == 2, tables.remarks.is_empty()), (is_left, is_left), "{name}");
        }
    }

    #[test]
    fn where_all_memory_is_on_dies_it_is_the_memory() {
        let die = |name: &str| Dimm { holds: DeviceUse::Dies, ..dimm(name, "LPDDR5", 6400, 6400) };
        let tables = sorted_out(vec![die("U1"), die("U2")]);
        assert_eq!((tables.dimms.len(), tables.remarks), (2, Vec::new()));
        let empty = Dimm { size_bytes: Some(0), ..dimm("A1", "DDR5", 0, 0) };
        assert_eq!(sorted_out(vec![die("U1"), empty]).dimms.len(), 2);
    }

    #[test]
    fn speeds_that_cannot_be_are_said_and_not_used() {
        for (kind, rated, runs) in [
            ("DDR4", 2400, 32768),
            ("DDR3", 1600, 65535),
            ("DDR5", 4800, 48000),
            ("LPDDR5", 6400, 64000),
            ("DDR4", 2400, 1200),
            ("DDR5", 4800, 2400),
            ("DDR3", 1333, 2),
        ] {
            let tables = sorted_out(vec![dimm("A1", kind, rated, runs)]);
            assert_eq!(
                (tables.dimms[0].speed_mts, tables.dimms[0].configured_mts),
                (Some(rated), None),
                "{kind}"
            );
            assert!(tables.remarks[0].contains(&runs.to_string()), "{:?}", tables.remarks);
        }
        let tables = sorted_out(vec![dimm("A1", "DDR4", 2666, 2667), dimm("A2", "DDR5", 8800, 8800)]);
        assert_eq!(tables.remarks, [""; 0], "firmware rounds");
        let tables = sorted_out(vec![dimm("A1", "DDR4", 2400, 3200)]);
        assert_eq!(tables.dimms[0].configured_mts, Some(3200));
        assert!(tables.remarks[0].contains("2400") && tables.remarks[0].contains("3200"));
    }

    #[test]
    fn modules_that_a_hypervisor_invents() {
        for (maker, is_virtual) in [("QEMU", true), ("VMware Virtual RAM", true), ("Samsung", false)] {
            let tables = sorted_out(vec![Dimm {
                manufacturer: Some(maker.to_string()),
                ..dimm("DIMM 0", "RAM", 0, 0)
            }]);
            assert_eq!(tables.dmi.is_virtual, is_virtual, "{maker}");
        }
    }

    #[test]
    fn a_part_number_has_one_rated_speed() {
        let of = |part: &str, rated| Dimm { part: Some(part.to_string()), ..dimm("A1", "DDR4", rated, 2133) };
        let tables = sorted_out(vec![of("X", 2400), of("X", 2133), of("Y", 2666)]);
        let rated: Vec<Option<u32>> = tables.dimms.iter().map(|dimm| dimm.speed_mts).collect();
        assert_eq!(rated, [None, None, Some(2666)]);
        assert!(
            tables.remarks[0].contains("(2133, 2400 MT/s) for one part number (X)"),
            "{:?}",
            tables.remarks
        );
        for alike in [[of("X", 2666), of("X", 2667)], [of("X", 2400), of("Y", 2133)]] {
            assert_eq!(sorted_out(alike.to_vec()).remarks, [""; 0]);
        }
        let unnamed = Dimm { part: None, ..of("", 2400) };
        assert_eq!(sorted_out(vec![unnamed, of("X", 2133)]).remarks, [""; 0]);
    }

    #[test]
    fn bandwidths_are_reckoned_with_what_can_be() {
        for (kind, rated, runs, limit, most, is_said) in [
            ("DDR4", Some(2133), Some(4800), Some(2400), Some(2400), true),
            ("DDR4", Some(3200), None, Some(2666), Some(2666), false),
            ("DDR4", Some(2933), Some(1466), Some(2666), Some(2666), false),
            ("DDR4", Some(2933), Some(1466), None, Some(2933), false),
            ("Unknown", Some(12_800), Some(12_800), Some(2400), Some(2400), true),
            ("DDR4", Some(2666), Some(2667), Some(2666), Some(2667), false),
            ("DDR5", Some(6400), Some(6400), Some(6000), Some(6400), false),
            ("DDR4", Some(3200), Some(2400), None, Some(2400), false),
            ("Other", Some(1), Some(1), Some(2400), None, false),
            ("Other", Some(2), Some(65), None, None, false),
        ] {
            let one = Dimm { speed_mts: rated, configured_mts: runs, ..dimm("A1", kind, 0, 0) };
            let mut tables = sorted_out(vec![one]);
            let said = bound_speeds(&mut tables.dimms, limit);
            assert_eq!(
                (tables.dimms[0].most_mts, said.is_some()),
                (most, is_said),
                "{kind} {rated:?} {runs:?}"
            );
        }
        for (kind, told, used) in
            [("DDR4", 72, 64), ("DDR5", 80, 64), ("DDR3", 64, 64), ("DDR5", 32, 32), ("HBX", 128, 128)]
        {
            let tables =
                sorted_out(vec![Dimm { data_width_bits: Some(told), ..dimm("A1", kind, 3200, 3200) }]);
            assert_eq!(
                (tables.dimms[0].data_width_bits, tables.remarks.len()),
                (Some(used), usize::from(told != used))
            );
        }
    }
}
