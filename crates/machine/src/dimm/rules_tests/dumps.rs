//! Of each rule, how many real inventories it places; rules of which none was seen are named.

use std::collections::BTreeSet;

use super::super::cpus::{FACTS, UNSEEN as UNSEEN_FAMILIES};
use super::super::place::rules;
use super::super::platforms::UNSEEN;
use super::*;

/// Slot rules and the inventories among linuxhw/DMI's 2,049 servers (January 2025) that they place
/// (those of Huawei's digits are placed by their banks, which say the same). A new rule is added
/// here with its number, or to `platforms::UNSEEN`.
const PLACED: &[(&str, u32)] = &[
    ("CPU_CD (Inspur)", 5),
    ("Channel, letter and slot, going on over the processors", 29),
    ("Controller, Channel and DIMM of one processor", 25),
    ("DDR, channel's letter and slot of one processor", 1),
    ("Dell PowerEdge R220 (Xeon E3)", 5),
    ("Dell PowerEdge of two channels (Xeon 3400)", 22),
    ("Dell PowerEdge, 14th generation (Xeon Scalable)", 50),
    ("Dell PowerEdge, 15th and 16th generation (Xeon Scalable)", 10),
    ("Dell PowerEdge, 16th generation (EPYC)", 7),
    ("Dell PowerEdge, EPYC", 24),
    ("Dell PowerEdge, Opteron", 11),
    ("Dell PowerEdge, Xeon E", 26),
    ("Dell PowerEdge, Xeon E's boards with a desktop's processor", 2),
    ("Dell PowerEdge, Xeon E5", 126),
    ("Dell PowerEdge, bank and channel of a chipset", 7),
    ("Dell PowerEdge, fully buffered memory", 7),
    ("Dell PowerEdge, three channels", 119),
    ("HP ProLiant DL165 G7 (Opteron 6000)", 3),
    ("HP ProLiant DL360 G5 and DL380 G5, fully buffered memory", 14),
    ("HP ProLiant DL580 G7 (Xeon 7500 and E7)", 3),
    ("HP ProLiant, 6th and 7th generation (Xeon 5500/5600)", 51),
    ("HP ProLiant, 7th and 8th generation (Opteron 6000)", 5),
    ("HP ProLiant, 8th and 9th generation (Xeon E5)", 153),
    ("HP ProLiant, 8th generation (Xeon E5-2400)", 20),
    ("HPE ProLiant DL360 Gen10 Plus (Xeon Scalable)", 1),
    ("HPE ProLiant MicroServer Gen10", 3),
    ("HPE ProLiant, 10th generation (Xeon Scalable)", 14),
    ("Huawei, DIMM and three digits", 18),
    ("IBM System x M2 and x3400 M3 (Xeon 5500/5600)", 5),
    ("IBM System x M3 (Xeon 5500/5600)", 12),
    ("IBM System x M4 (Xeon E5)", 8),
    ("IBM System x M4 (Xeon E5-2400)", 3),
    ("IBM System x3650 (type 7979), fully buffered memory", 3),
    ("IBM System x3850 X5 (Xeon 7500 and E7)", 1),
    ("IBM and Lenovo System x M5 (Xeon E5)", 6),
    ("IBM and Lenovo System x3250 (Xeon E3)", 1),
    ("IBM iDataPlex dx360 M4 (Xeon E5)", 1),
    ("Lenovo ThinkStation P720 (Xeon Scalable)", 4),
    ("Lenovo ThinkStation P920 (Xeon Scalable)", 9),
    ("Lenovo ThinkStation PX (Xeon Scalable)", 1),
    ("Lenovo ThinkSystem (Xeon Scalable)", 5),
    ("Lenovo ThinkSystem SN550 (Xeon Scalable)", 1),
    ("Lenovo ThinkSystem SR530 (Xeon Scalable)", 2),
    ("Lenovo ThinkSystem ST50 V3 (Xeon E)", 2),
    ("Lenovo ThinkSystem V2 (Xeon Scalable)", 3),
    ("Lenovo ThinkSystem with eight slots per processor (Xeon Scalable)", 9),
    ("ONBOARD, channel's letter and slot of a chipset", 10),
    ("P-DIMM and a channel's letter (Supermicro)", 10),
    ("Sun Fire (Xeon 5500/5600)", 3),
    ("bank CHANNEL, locator DIMM of one processor", 8),
    ("bank CHANNEL, locator with letter and slot, going on over the processors", 4),
    ("bank Channel or CHAN, locator with letter and slot of one processor", 6),
    ("bank P CHANNEL, locator DIMM (AMD firmware)", 51),
    ("bank SOCKET CHANNEL DIMM, modules counted over all channels", 1),
    ("bank strings P_Node_Channel_Dimm (AMI firmware)", 487),
    ("bank strings P_Node_Channel_Dimm, nodes of half a socket (AMI firmware)", 5),
    ("bank strings with node or socket, channel and slot", 107),
    ("bank strings with the slot's name, node, channel and slot", 2),
    ("channel and slot's letter of one processor (DIMM2A)", 5),
    ("channel's letter and a number over all (CHA3)", 3),
    ("channel's letter and slot of one processor", 55),
    ("channel's letter and slot, bank CPU", 1),
    ("channel's letter and slot, bank with processor and channel", 1),
    ("channel's letter and slot, going on over the processors", 75),
    ("locator SOCKET CHANNEL DIMM", 7),
    ("node, channel and slot's letter (NODE0-2A)", 1),
    ("processor and channel's letter (CPU0_DIMM_A)", 1),
    ("processor, Ch and DIMM (P0-ChD-DIMM0)", 5),
    ("processor, channel and slot's letter (P0-DIMM2A)", 1),
    ("processor, channel and slot's letter (P1-DIMM2A)", 132),
    ("processor, channel's letter and slot, processors from 0", 53),
    ("processor, channel's letter and slot, processors from 1", 39),
    ("processor, controller, CH and slot (P0_MC1_DIM_CH_D0)", 2),
];

/// Processor families and the inventories of the same servers with such a processor; Xeon 6700 is
/// that of ../shared/fixtures/faults/dmi-xeon6.
const FAMILIES: &[(&str, u32)] = &[
    ("Xeon 5500/5600 (Nehalem, Westmere)", 316),
    ("Xeon 6500/7500 and E7 (Nehalem-EX, Westmere-EX)", 12),
    ("Xeon E5-2400 (Sandy Bridge-EN)", 37),
    ("Xeon E5-2600 (Sandy Bridge-EP)", 111),
    ("Xeon E5-2400 v2 (Ivy Bridge-EN)", 23),
    ("Xeon E5-2600 v2 (Ivy Bridge-EP)", 157),
    ("Xeon E5-2600 v3 (Haswell-EP)", 127),
    ("Xeon E5-2600 v4 (Broadwell-EP)", 207),
    ("Xeon E3/E-2000", 192),
    ("Xeon Scalable (Skylake-SP)", 128),
    ("Xeon Scalable, 2nd generation (Cascade Lake-SP)", 175),
    ("Xeon Scalable, 3rd generation (Cooper Lake-SP)", 1),
    ("Xeon Scalable, 3rd generation (Ice Lake-SP)", 50),
    ("Xeon Scalable, 4th generation (Sapphire Rapids)", 13),
    ("Xeon Scalable, 5th generation (Emerald Rapids)", 1),
    ("Xeon 6500/6700 (Xeon 6)", 1),
    ("Xeon 6900 (Xeon 6)", 1),
    ("EPYC 7001 (Naples)", 13),
    ("EPYC 7002 (Rome)", 65),
    ("EPYC 7003 (Milan)", 27),
    ("EPYC 9004 (Genoa)", 15),
    ("Kunpeng 920", 6),
    ("Ampere Altra", 7),
    ("Xeon D-1500 or D-1600", 21),
    ("Xeon D-1700 of two channels", 1),
    ("Xeon D-2100 or D-2700", 8),
    ("Xeon W-2100 or W-2200", 5),
    ("Xeon W-3100 or W-3200", 1),
    ("Core, Pentium, Celeron or Xeon 3400 of two channels", 95),
    ("Core of four channels (X)", 3),
    ("Ryzen", 16),
    ("Ryzen 7000 (desktop)", 15),
    ("Ryzen Threadripper PRO", 5),
    ("EPYC 3101 to 3255", 5),
    ("EPYC 4004 or 4005", 4),
    ("Opteron 3000 or 4000", 8),
    ("Opteron 6000", 41),
];

#[test]
fn rules_without_an_inventory_are_named() {
    let own: Vec<&str> = rules().map(|rule| rule.family).collect();
    let names: BTreeSet<&str> = own.iter().copied().collect();
    assert_eq!(names.len(), own.len(), "two rules have one name");
    let seen: BTreeSet<&str> = PLACED.iter().map(|(name, _)| *name).collect();
    let unseen: BTreeSet<&str> = UNSEEN.iter().copied().collect();
    assert_eq!(seen.union(&unseen).copied().collect::<BTreeSet<&str>>(), names);
    assert_eq!(seen.intersection(&unseen).count(), 0);
    assert!(rules().all(|rule| rule.is_seen() == seen.contains(rule.family)));
    let families: BTreeSet<&str> = FACTS.iter().map(|facts| facts.name).collect();
    let seen: BTreeSet<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
    let is_unseen = |facts: &&crate::dimm::cpus::Facts| UNSEEN_FAMILIES.contains(&facts.family);
    let unseen: BTreeSet<&str> = FACTS.iter().filter(is_unseen).map(|facts| facts.name).collect();
    assert_eq!(seen.union(&unseen).copied().collect::<BTreeSet<&str>>(), families);
    assert_eq!((seen.intersection(&unseen).count(), unseen.len()), (0, UNSEEN_FAMILIES.len()));
    assert!(PLACED.iter().chain(FAMILIES).all(|(_, count)| *count > 0));
}

#[test]
fn who_has_a_board_that_was_not_seen_is_told() {
    let names = numbered("DIMM #", 1..=32);
    let remarks = |product: &str, cpu: &str, each: usize| {
        let mut slots = with_bank(&names[..each], "CPU 1");
        slots.extend(with_bank(&names[each..2 * each], "CPU 2"));
        board("Lenovo", product, &[cpu; 2], &slots, &[]).1.dimm_remarks.concat()
    };
    let found = remarks("ThinkSystem SR650 V4", "Intel(R) Xeon(R) 6740P", 16);
    assert!(found.contains("(Lenovo ThinkSystem V4 (Xeon 6)) comes from a document only"), "{found}");
    let found = remarks("ThinkSystem SR685a V3", "AMD EPYC 9755 128-Core Processor", 12);
    assert!(found.contains("processor (EPYC 9005 (Turin)) comes from a document only"), "{found}");
    let found = remarks("ThinkSystem SR650 V2", "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", 16);
    assert!(!found.contains("comes from a document only"), "{found}");
}
