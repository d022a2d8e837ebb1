//! Boards whose firmware gives the places, or that a relative's document describes: modules of
//! their inventories must stand as such channels are filled.

use super::*;

const SILVER_4: &str = "Intel(R) Xeon(R) Silver 4309Y CPU @ 2.80GHz";
const GOLD_5: &str = "INTEL(R) XEON(R) GOLD 6526Y";
const X3470: &str = "Intel(R) Xeon(R) CPU           X3470  @ 2.93GHz";
const OPTERON: &str = "AMD Opteron(TM) Processor 6276";

/// Names of two processors' slots by a pattern with `@` for the processor, `#` for the slot.
fn of_two(pattern: &str, first: u32, numbers: std::ops::RangeInclusive<u32>) -> Vec<String> {
    (first..first + 2)
        .flat_map(|cpu| numbered(&pattern.replace('@', &cpu.to_string()), numbers.clone()))
        .collect()
}

/// Channels of slots by their places in the list from 1, each filled first in its channel.
fn firsts(places: &[(u32, u32, u32)], slots: &[usize]) -> Vec<u32> {
    let of = |slot: &usize| {
        assert_eq!(places[slot - 1].2, 0, "{slot}");
        places[slot - 1].1
    };
    slots.iter().map(of).collect()
}

/// Whether these channels stand evenly on the controllers, `each` of their channels.
fn is_even(mut channels: Vec<u32>, each: u32, controllers: u32) -> bool {
    let modules = channels.len();
    channels.sort_unstable();
    channels.dedup();
    let on = |controller: u32| channels.iter().filter(|channel| **channel / each == controller).count();
    channels.len() == modules && (1..controllers).all(|controller| on(controller) == on(0))
}

#[test]
fn redfish_of_hpe() {
    // The same processor's row in Oracle X9-2L's manual: D13 and D12 are of channel 0, D4 and D5 of
    // 7.
    let names = of_two("PROC @ DIMM #", 1, 1..=16);
    let places = placed("HPE", "ProLiant DL360 Gen10 Plus", &[SILVER_4; 2], &with_bank(&names, ""));
    let oracle: Vec<String> = (0..16).map(|number| format!("D{number}")).collect();
    let mut slots = with_bank(&oracle, "/SYS/MB/P0");
    slots.extend(with_bank(&oracle, "/SYS/MB/P1"));
    assert_eq!(placed("Oracle Corporation", "ORACLE SERVER X9-2L", &[SILVER_4; 2], &slots), places);
    assert_eq!((places[13], places[12], places[4], places[5]), ((0, 0, 0), (0, 0, 1), (0, 7, 0), (0, 7, 1)));
    // HPE's iLO 5 guide, memory resources of an example: DIMM 12, 13 and 16 are of channels 4, 1
    // and 2.
    assert_eq!([places[11].1, places[12].1, places[15].1], [3, 0, 1]);
    // An inventory of two modules: 3 and 14.
    assert!(is_even(firsts(&places, &[3, 14]), 4, 2));
    // DL380 Gen10 Plus has no resource here.
    let places = placed("HPE", "ProLiant DL380 Gen10 Plus", &[SILVER_4; 2], &with_bank(&names, ""));
    assert!(places.iter().all(|place| *place == (99, 99, 99)));
    // Synergy 480 Gen10: the same list of channels, from the other end on the other processor.
    let names = of_two("PROC @ DIMM #", 1, 1..=12);
    let places = placed("HPE", "Synergy 480 Gen10", &[GOLD; 2], &with_bank(&names, ""));
    let rack = placed("HPE", "ProLiant DL380 Gen10", &[GOLD; 2], &with_bank(&names, ""));
    // A resource of that generation: PROC 1 DIMM 12 is of channel 3, controller 1.
    assert_eq!(rack[11], (0, 2, 0));
    assert_eq!(places[..12], rack[..12]);
    let turned = |at: usize| (1, places[11 - at].1, places[11 - at].2);
    assert!((0..12).all(|at| places[12 + at] == turned(at)));
    assert_eq!([places[12], places[18], places[23]], [(1, 2, 0), (1, 3, 1), (1, 5, 0)]);
}

#[test]
fn dell_of_two_channels() {
    // T310: 8 GB in A1 and A2, 4 GB in A3 and A4.
    let names = numbered("DIMM_A#", 1..=6);
    let places = placed("Dell Inc.", "PowerEdge T310", &[X3470], &with_bank(&names, ""));
    assert_eq!(places, [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (0, 0, 2), (0, 1, 2)]);
    let places = placed("Dell Inc.", "PowerEdge R210", &[X3470], &with_bank(&names[..4], ""));
    assert_eq!(places, [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]);
}

#[test]
fn lenovo_by_the_order_of_its_list() {
    let banks = |names: &'static [String], each: usize| -> Vec<(&'static str, &'static str)> {
        let mut slots = with_bank(&names[..each], "CPU 1");
        slots.extend(with_bank(&names[each..2 * each], "CPU 2"));
        slots
    };
    let names: &'static [String] = Vec::leak(numbered("DIMM #", 1..=32));
    // SR590: six modules of a processor, 1, 2, 3, 6, 7, 8.
    let places = placed("Lenovo", "ThinkSystem SR590 -[7X99CTO1WW]-", &[GOLD; 2], &banks(names, 8));
    assert!(is_even(firsts(&places, &[1, 2, 3, 6, 7, 8]), 3, 2));
    assert!(is_even(firsts(&places, &[9, 10, 11, 14, 15, 16]), 3, 2));
    // SR530: four modules, 2 to 5, and one, 3.
    let places = placed("Lenovo", "ThinkSystem SR530 -[7X08CTO1WW]-", &[GOLD; 2], &banks(names, 6));
    assert!(is_even(firsts(&places, &[2, 3, 4, 5]), 3, 2));
    assert_eq!((firsts(&places, &[3]), firsts(&places, &[9])), (vec![0], vec![0]));
    // SR630 V2: 3 and 7.
    let places = placed("Lenovo", "ThinkSystem SR630 V2", &[SILVER_4; 2], &banks(names, 16));
    assert!(is_even(firsts(&places, &[3, 7]), 2, 2));
    // SR250: two modules, 1 and 3.
    let xeon = "Intel(R) Xeon(R) E-2236 CPU @ 3.40GHz";
    let places = placed("Lenovo", "ThinkSystem SR250", &[xeon], &with_bank(&names[..4], "CPU 1"));
    assert!(is_even(firsts(&places, &[1, 3]), 1, 2));
    // ThinkStation PX: the other processor's nodes 4 to 7 have 12 and 11, 10 and 9, 13 and 14, 15
    // and 16.
    let of_board = |board: &str, cpu: &str, slots: Vec<String>| {
        let mut text = format!("Base Board Information\n\tManufacturer: LENOVO\n\tProduct Name: {board}\n\n");
        let processor = format!("Processor Information\n\tType: Central Processor\n\tVersion: {cpu}\n\n");
        text.push_str(&processor.repeat(2));
        for slot in slots {
            text.push_str(&format!("Memory Device\n\tSize: 16 GB\n\tLocator: {slot}\n\tType: DDR4\n\n"));
        }
        judge(printout::parse(&text), None, &Hypervisor::Unknown).0
    };
    let slots = (0..2).flat_map(|cpu| numbered(&format!("CPU{cpu}_DIMM_#"), cpu * 8 + 1..=cpu * 8 + 8));
    let dimms = of_board("104E", GOLD_5, slots.collect());
    let controllers = |slots: [usize; 8]| slots.map(|slot| dimms[slot - 1].controller);
    let nodes = [0, 0, 1, 1, 2, 2, 3, 3].map(Some);
    assert_eq!(controllers([12, 11, 10, 9, 13, 14, 15, 16]), nodes);
    assert!(dimms[8..].iter().all(|dimm| dimm.socket == Some(1)));
    // ThinkStation P720: two modules, 3 and 5, or four, 3 to 6.
    let dimms = of_board("1037", GOLD, of_two("CPU@_DIMM_#", 1, 1..=6));
    let channels: Vec<u32> = (3..=6).filter_map(|slot: usize| dimms[6 + slot - 1].channel).collect();
    assert_eq!(channels, [0, 3, 1, 4]);
}

#[test]
fn sun_and_oracle() {
    let slots_of = |names: &'static [String]| {
        let mut slots = with_bank(names, "/SYS/MB/P0");
        slots.extend(with_bank(names, "/SYS/MB/P1"));
        slots
    };
    let names: &'static [String] = Vec::leak((0..12).map(|number| format!("D{number}")).collect());
    // X4270 M2: six modules of a processor, D2, D5, D8 and D1, D4, D7 (the first name is D0).
    let nine = slots_of(&names[..9]);
    let places = placed("Oracle Corporation", "SUN FIRE X4270 M2 SERVER", &[X5660; 2], &nine);
    assert_eq!(firsts(&places, &[3, 6, 9]), [0, 1, 2]);
    assert_eq!([places[10], places[13], places[16]], [(1, 0, 1), (1, 1, 1), (1, 2, 1)]);
    // Another number of slots is another board.
    let places = placed("Oracle Corporation", "ORACLE SERVER X5-2L", &[E5; 2], &nine);
    assert!(places.iter().all(|place| *place == (99, 99, 99)));
}

#[test]
fn opterons_of_hp() {
    // DL165 G7 names the channels of 1, 4, 7, 10 in its banks.
    let numbers: Vec<String> = of_two("PROC @ DIMM #", 1, 1..=12);
    let banks = ["A", "A", "A", "B", "B", "B", "C", "C", "C", "D", "D", "D"];
    let slots: Vec<(&str, &str)> =
        numbers.iter().zip(banks.iter().cycle()).map(|(name, bank)| (name.as_str(), *bank)).collect();
    let named = placed("HP", "ProLiant DL165 G7", &[OPTERON; 2], &slots);
    assert_eq!(firsts(&named, &[1, 4, 7, 10, 13]), [0, 1, 2, 3, 0]);
}

#[test]
fn a_chipset_by_its_banks() {
    let xeons = ["Intel(R) Xeon(R) CPU           E5345  @ 2.33GHz"; 2];
    // System x3650: 1 and 4, 7 and 10 are the first two pairs, 3 and 6, 9 and 12 the last ones.
    let names = numbered("DIMM #", 1..=12);
    let places = placed("IBM", "IBM System x3650 -[7979AC1]-", &xeons, &with_bank(&names, "Bank 1"));
    assert!(is_even(firsts(&places, &[1, 4, 7, 10]), 1, 4));
    assert!([3, 6, 9, 12].iter().all(|slot: &usize| places[slot - 1].2 == 2));
}

#[test]
fn boards_of_hp_by_their_inventories() {
    // MicroServer Gen10 with banks and without.
    let cpu = "AMD Opteron(tm) X3216 APU";
    let with = [("DIMM 1", "CHANNEL A"), ("DIMM 2", "CHANNEL B")];
    let without = [("DIMM 1", ""), ("DIMM 2", "")];
    let place = |slots: &[(&str, &str)]| placed("HPE", "ProLiant MicroServer Gen10", &[cpu], slots);
    assert_eq!((place(&with), place(&without)), (vec![(0, 0, 0), (0, 1, 0)], vec![(0, 0, 0), (0, 1, 0)]));
}

#[test]
fn boards_of_dell_and_ibm_by_their_inventories() {
    // R815: 8 GB in 1 to 4, 4 GB in 5 to 8 of each processor.
    let names: Vec<String> =
        ["A", "B", "C", "D"].iter().flat_map(|cpu| numbered(&format!("DIMM_{cpu}#"), 1..=8)).collect();
    let places = placed("Dell Inc.", "PowerEdge R815", &[OPTERON; 4], &with_bank(&names, ""));
    assert!(is_even(firsts(&places, &[25, 26, 27, 28]), 1, 4));
    assert!((28..32).all(|at| places[at] == (3, places[at - 4].1, 1)));
    // x3550 M2: one module a channel, 3, 6, 8; x3400 M3: 2, 3, 5, 6, 8 of the other processor.
    let names: Vec<String> = (1..=16).map(|number| format!("DIMM{number:02}")).collect();
    let places = placed("IBM", "System x3550 M2 -[794644M]-", &[X5660; 2], &with_bank(&names, ""));
    assert_eq!(firsts(&places, &[3, 6, 8]), [0, 1, 2]);
    assert_eq!(
        (firsts(&places, &[11, 14, 16]), places[9], places[12]),
        (vec![0, 1, 2], (1, 0, 1), (1, 1, 1))
    );
    // x3300 M4: 8 GB in 1 and 3, 4 GB in 2 and 4; the other processor's 7 to 10.
    let names = numbered("DIMM #", 1..=16);
    let xeon = "Intel(R) Xeon(R) CPU E5-2420 0 @ 1.90GHz";
    let places = placed("IBM", "System x3300 M4 -[7382E4G]-", &[xeon; 2], &with_bank(&names[..12], "Bank 1"));
    assert_eq!(firsts(&places, &[1, 3, 7, 9]), [0, 1, 0, 1]);
    assert_eq!([places[1], places[3], places[7]], [(0, 0, 1), (0, 1, 1), (1, 0, 1)]);
    // dx360 M4: 1, 3, 6, 8, and 9, 11, 14, 16.
    let places = placed("IBM", "IBM System X iDataPlex dx360 M4", &[E5; 2], &with_bank(&names, "Bank 1"));
    assert_eq!(firsts(&places, &[1, 3, 6, 8, 9, 11, 14, 16]), [0, 1, 2, 3, 0, 1, 2, 3]);
    // x3250 M4: pairs are 1 and 3, 2 and 4.
    let xeon = "Intel(R) Xeon(R) CPU E3-1220 V2 @ 3.10GHz";
    let places = placed("IBM", "IBM System x3250 M4 -[2583KCG]-", &[xeon], &with_bank(&names[..4], ""));
    assert!(is_even(firsts(&places, &[1, 3]), 1, 2));
    assert_eq!((places[1].2, places[3].2), (1, 1));
}
