//! What tables list beside modules of memory, and what they say of modules and no module can mean.

use std::collections::BTreeSet;

use super::balance::{gib, listed};
use super::{Dimm, Tables};

/// Kinds of devices that hold firmware, whatever slot they claim.
const FIRMWARE: [&str; 5] = ["ROM", "FLASH", "EEPROM", "FEPROM", "EPROM"];

/// MT/s that modules of a kind never reach, overclocked ones included (JEDEC's fastest are 400,
/// 1066, 2133, 3200, 8800, and 12800 of multiplexed ranks).
const BEYOND: [(&str, u32); 5] =
    [("DDR", 800), ("DDR2", 1600), ("DDR3", 3400), ("DDR4", 5600), ("DDR5", 14_400)];
const BEYOND_ALL: u32 = 14_400;

/// Takes out of the modules what is none, and of their words what cannot be, with a remark of each.
pub(super) fn sort_out(tables: &mut Tables) {
    let mut remarks = Vec::new();
    let all = tables.dimms.len();
    tables.dimms.retain(|dimm| !is_firmware(dimm));
    let firmware = all - tables.dimms.len();
    if firmware > 0 {
        remarks.push(match firmware {
            1 => "a device of ROM or flash is no memory module and was left out".to_string(),
            many => format!("{many} devices of ROM or flash are no memory modules and were left out"),
        });
    }
    let (cxl, dimms): (Vec<Dimm>, Vec<Dimm>) = tables.dimms.drain(..).partition(is_cxl);
    tables.dimms = dimms;
    if !cxl.is_empty() {
        let bytes = cxl.iter().filter_map(|device| device.size_bytes).sum();
        let names = listed(cxl.iter().take(6).map(|device| device.name().chars().take(40).collect()));
        remarks.push(format!(
            "memory behind CXL is no part of the modules and stands apart: {} devices, {} ({names})",
            cxl.len(),
            gib(bytes)
        ));
    }
    let (mut impossible, mut beyond_rated) = (BTreeSet::new(), BTreeSet::new());
    for dimm in &mut tables.dimms {
        if says_empty(dimm) {
            dimm.size_bytes = Some(0);
        }
        let beyond = beyond(dimm.kind.as_deref());
        for speed in [&mut dimm.speed_mts, &mut dimm.configured_mts] {
            impossible.extend(speed.take_if(|mts| *mts > beyond));
        }
        let above = dimm.speed_mts.zip(dimm.configured_mts).filter(|(rated, runs)| *runs > rated + 1);
        beyond_rated.extend(above);
    }
    if !impossible.is_empty() {
        let speeds = listed(impossible.iter().map(|mts| format!("{mts} MT/s")));
        remarks.push(format!("no module runs at what the firmware says ({speeds}): not used"));
    }
    if let Some((rated, runs)) = beyond_rated.first() {
        remarks.push(format!(
            "modules rated {rated} MT/s are said to run at {runs} MT/s: overclocked, or the firmware tells one of both wrongly"
        ));
    }
    tables.remarks.extend(remarks);
}

fn is_firmware(dimm: &Dimm) -> bool {
    dimm.kind.as_ref().is_some_and(|kind| FIRMWARE.contains(&kind.to_ascii_uppercase().as_str()))
}

fn is_cxl(dimm: &Dimm) -> bool {
    [&dimm.form, &dimm.locator, &dimm.bank]
        .into_iter()
        .any(|text| text.to_ascii_uppercase().starts_with("CXL"))
}

/// Some firmware writes so where others write a size of nothing.
fn says_empty(dimm: &Dimm) -> bool {
    let says = |text: &str| ["NO DIMM", "NODIMM"].contains(&text.trim().to_ascii_uppercase().as_str());
    dimm.size_bytes.is_none() && (says(&dimm.locator) || says(&dimm.bank))
}

fn beyond(kind: Option<&str>) -> u32 {
    let own = kind.and_then(|kind| BEYOND.iter().find(|(known, _)| *known == kind));
    own.map_or(BEYOND_ALL, |(_, mts)| *mts)
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
        let flexible = Dimm { form: "CXL FLEXBUS 1.0".to_string(), ..dimm("SLOT9", "DDR5", 4800, 4800) };
        let tables =
            sorted_out(vec![dimm("A1", "DDR5", 4800, 4800), flexible, dimm("CXL1", "DDR5", 4800, 4800)]);
        assert_eq!(tables.dimms.len(), 1);
        assert!(tables.remarks[0].contains("2 devices, 32 GiB (SLOT9, CXL1)"), "{:?}", tables.remarks);
    }

    #[test]
    fn speeds_that_cannot_be_are_said_and_not_used() {
        for (kind, rated, runs) in
            [("DDR4", 2400, 32768), ("DDR3", 1600, 65535), ("DDR5", 4800, 48000), ("LPDDR5", 6400, 64000)]
        {
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
    fn a_slot_that_is_called_empty_is_empty() {
        let unsized_slot = |locator: &str| Dimm { size_bytes: None, ..dimm(locator, "DDR4", 2400, 2400) };
        let tables = sorted_out(vec![unsized_slot("NO DIMM"), unsized_slot("No Dimm "), unsized_slot("A1")]);
        let sizes: Vec<Option<u64>> = tables.dimms.iter().map(|dimm| dimm.size_bytes).collect();
        assert_eq!(sizes, [Some(0), Some(0), None]);
    }
}
