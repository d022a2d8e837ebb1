//! Rules against a document of another board, or another row of the same one.

use super::*;

const E7: &str = "Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz";
const XEON_6: &str = "Intel(R) Xeon(R) 6740P";
const OPTERON: &str = "AMD Opteron(tm) Processor 6172";
const GOLD_5: &str = "INTEL(R) XEON(R) GOLD 6526Y";

/// Eight cards of eight slots, card by card.
fn cards(name: impl Fn(u32, u32) -> (String, String)) -> Vec<(String, String)> {
    let name = &name;
    (1..=8).flat_map(|card| (1..=8).map(move |slot| name(card, slot))).collect()
}

fn borrowed(slots: &[(String, String)]) -> Vec<(&str, &str)> {
    slots.iter().map(|(locator, bank)| (locator.as_str(), bank.as_str())).collect()
}

#[test]
fn cards_behind_buffers() {
    // IBM eX5 Implementation Guide: sockets 1, 3, 6 and 8 of a card are the ends of its channels,
    // which are filled before others; cards 7 and 8 are processor 4's.
    let slots = cards(|card, slot| {
        (format!("DIMM {slot}"), format!("Node 1 Bank {} MemCard {card}", card * 4 - 3 + slot % 4))
    });
    let places = placed("IBM", "System x3850 X5 -[7143Y61]-", &[E7; 4], &borrowed(&slots));
    let of_card = |card: usize| &places[8 * card - 8..8 * card];
    let ends: Vec<usize> = (1..=8).filter(|slot| of_card(1)[slot - 1].2 < 2).collect();
    assert_eq!(ends, [1, 3, 6, 8]);
    assert!(of_card(7).iter().chain(of_card(8)).all(|place| place.0 == 3));
    // Its pairs stand on both interfaces of one controller.
    for card in 1..=8 {
        for (one, other) in [(1, 8), (3, 6), (2, 7), (4, 5)] {
            let (one, other) = (of_card(card)[one - 1], of_card(card)[other - 1]);
            assert_eq!((one.0, one.1 / 2, one.2), (other.0, other.1 / 2, other.2));
            assert_ne!(one.1, other.1);
        }
    }
    // HP DL580 G7, which has the same pairs by letters: to balance them by letters over all
    // cartridges gives the most performance.
    let letters = ["A", "C", "B", "D", "D", "B", "C", "A"];
    let slots = cards(|card, slot| {
        (format!("Board {card}, DIMM {slot}{}", letters[slot as usize - 1]), "Not Specified".to_string())
    });
    let not_of_a = slots.iter().filter(|(name, _)| !name.ends_with('A'));
    let empty: Vec<&str> = not_of_a.map(|(name, _)| name.as_str()).collect();
    let (dimms, judged) = board("HP", "ProLiant DL580 G7", &[E7; 4], &borrowed(&slots), &empty);
    assert_eq!(judged.dimm_verdict, Some(Balance::Balanced));
    assert!(dimms.iter().filter(|dimm| dimm.is_memory()).all(|dimm| dimm.slot_in_channel == Some(0)));
    // One cartridge of each processor is one controller alone.
    let of_even = slots.iter().filter(|(name, _)| ["2", "4", "6", "8"].contains(&&name[6..7]));
    let empty: Vec<&str> = of_even.map(|(name, _)| name.as_str()).collect();
    let (_, judged) = board("HP", "ProLiant DL580 G7", &[E7; 4], &borrowed(&slots), &empty);
    assert_eq!(judged.dimm_verdict, Some(Balance::Unbalanced));
    // There is no cartridge 0.
    let places =
        placed("HP", "ProLiant DL580 G7", &[E7], &[("Board 0, DIMM 1A", ""), ("Board 1, DIMM 8A", "")]);
    assert_eq!(places, [(99, 99, 99); 2]);
}

#[test]
fn pairs_of_fully_buffered_modules() {
    // IBM System x3550 (type 7978) installation guide: pairs 1 and 3, 5 and 7, 2 and 4, 6 and 8.
    let names: Vec<String> =
        ["1A", "2C", "3A", "4C", "5B", "6D", "7B", "8D"].iter().map(|name| format!("DIMM {name}")).collect();
    let xeons = ["Intel(R) Xeon(R) CPU           E5345  @ 2.33GHz"; 2];
    let places = placed("HP", "ProLiant DL360 G5", &xeons, &with_bank(&names, ""));
    let filled: Vec<(u32, u32)> = [1, 3, 5, 7, 2, 4, 6, 8]
        .iter()
        .map(|slot: &usize| (places[slot - 1].1, places[slot - 1].2))
        .collect();
    let expected: Vec<(u32, u32)> =
        (0..2).flat_map(|slot| (0..4).map(move |channel| (channel, slot))).collect();
    assert_eq!(filled, expected);
    // ML350 G5 has other pairs (1 and 5), and no document here.
    let places = placed("HP", "ProLiant ML350 G5", &xeons, &with_bank(&names, ""));
    assert!(places.iter().all(|place| *place == (99, 99, 99)));
}

#[test]
fn letters_of_a_population_order() {
    // DL165 G7 has the channels of 1 to 3, 4 to 6, 7 to 9, 10 to 12 in its banks: one each.
    let twelve = ["1A", "2I", "3E", "4C", "5K", "6G", "7B", "8J", "9F", "10D", "11L", "12H"];
    let names = |letters: &[&str]| -> Vec<String> {
        (1..=4).flat_map(|cpu| letters.iter().map(move |name| format!("Proc {cpu} DIMM {name}"))).collect()
    };
    let places = placed("HP", "ProLiant DL585 G7", &[OPTERON; 4], &with_bank(&names(&twelve), ""));
    for row in places.chunks(3) {
        assert!(row.iter().all(|place| (place.0, place.1) == (row[0].0, row[0].1)), "{row:?}");
        let mut slots: Vec<u32> = row.iter().map(|place| place.2).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2]);
    }
    // SL210t Gen8, of four channels, too: 1A and 2E are channel 1.
    let eight = ["1A", "2E", "3C", "4G", "5B", "6F", "7D", "8H"];
    let places = placed("HP", "ProLiant BL685c G7", &[OPTERON; 4], &with_bank(&names(&eight), ""));
    assert_eq!(places[..4], [(0, 0, 0), (0, 0, 1), (0, 2, 0), (0, 2, 1)]);
    assert_eq!(places[31], (3, 3, 1));
    // The same guide on the rule of other generations: channels 1 to 4 = 1, 2; 3, 4; 8, 7; 6, 5.
    let names = numbered("PROC 1 DIMM #", 1..=8);
    let places = placed("HP", "ProLiant SL210t Gen8", &[E5], &with_bank(&names, ""));
    for (first, second) in [(1, 2), (3, 4), (8, 7), (6, 5)] {
        let (first, second) = (places[first - 1], places[second - 1]);
        assert_eq!((first.1, first.2, second.2), (second.1, 0, 1));
    }
}

#[test]
fn lenovo_blade_and_fourth_version() {
    // SN550: its firmware lists both processors' slots by controller, channel and slot.
    let names = numbered("DIMM #", 1..=32);
    let mut slots = with_bank(&names[..12], "CPU 1");
    slots.extend(with_bank(&names[12..24], "CPU 2"));
    let places = placed("Lenovo", "ThinkSystem SN550 -[7X16CTO1WW]-", &[GOLD; 2], &slots);
    let in_order: Vec<(u32, u32)> = (0..6).flat_map(|channel| [(channel, 0), (channel, 1)]).collect();
    for listed in [[5, 6, 3, 4, 1, 2, 8, 7, 10, 9, 12, 11], [20, 19, 22, 21, 24, 23, 17, 18, 15, 16, 13, 14]]
    {
        let own: Vec<(u32, u32)> =
            listed.iter().map(|slot: &usize| (places[slot - 1].1, places[slot - 1].2)).collect();
        assert_eq!(own, in_order);
    }
    // SR650 has the other order on its second processor.
    let rack = placed("Lenovo", "ThinkSystem SR650 -[7X06CTO1WW]-", &[GOLD; 2], &slots);
    assert_eq!((rack[16], places[16]), ((1, 0, 0), (1, 3, 0)));
    // SR630 V4, the board with a slot a channel: 16, 14, 12, 10 = channels 7 to 4, 7, 5, 3, 1 = 0
    // to 3.
    let mut slots = with_bank(&names[..16], "CPU 1");
    slots.extend(with_bank(&names[16..], "CPU 2"));
    let places = placed("Lenovo", "ThinkSystem SR630 V4", &[XEON_6; 2], &slots);
    let row: Vec<(u32, u32)> = [16, 14, 12, 10, 7, 5, 3, 1]
        .iter()
        .map(|slot: &usize| (places[slot - 1].1, places[slot - 1].2))
        .collect();
    assert_eq!(row, [(7, 0), (6, 0), (5, 0), (4, 0), (0, 0), (1, 0), (2, 0), (3, 0)]);
    // Its other processor: 32, 30, 28, 26, 23, 21, 19, 17.
    assert!((0..16).all(|at| places[at + 16] == (1, places[at].1, places[at].2)));
}

#[test]
fn other_documents_of_dell() {
    // "Installing and Upgrading DDR3 Memory", 610 and 710: banks A, B and C of channel 1 are A1, A4
    // and A7.
    let names = numbered("DIMM_A#", 1..=9);
    let places = placed("Dell Inc.", "PowerEdge R710", &[X5660], &with_bank(&names, ""));
    assert_eq!([places[0], places[3], places[6]], [(0, 0, 0), (0, 0, 1), (0, 0, 2)]);
    // NX3230 owner's manual, table 19, processor 2: channel 3 = B4, B8, B12.
    let names: Vec<String> = ["A", "B"].iter().flat_map(|cpu| numbered(&format!("{cpu}#"), 1..=12)).collect();
    let places = placed("Dell Inc.", "PowerVault NX3230", &[E5; 2], &with_bank(&names, ""));
    assert_eq!([places[15], places[19], places[23]], [(1, 3, 0), (1, 3, 1), (1, 3, 2)]);
    // R750xa manual, processor 2: channel B = B5 and B13, G = B4 and B12.
    let names: Vec<String> = ["A", "B"].iter().flat_map(|cpu| numbered(&format!("{cpu}#"), 1..=16)).collect();
    let gold = "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz";
    let places = placed("Dell Inc.", "PowerEdge R750xa", &[gold; 2], &with_bank(&names, ""));
    let of_second = |slot: usize| places[16 + slot - 1];
    assert_eq!(
        [of_second(5), of_second(13), of_second(4), of_second(12)],
        [(1, 1, 0), (1, 1, 1), (1, 6, 0), (1, 6, 1)]
    );
}

#[test]
fn dell_by_what_others_sell_or_write() {
    // Gigamon's appliance (its documentation, system memory): channels 0 to 5 of processor 1 = A1
    // and A7, A2 and A8, A3, A4 and A9, A5 and A10, A6; of processor 2 = B1 to B6.
    let mut names = numbered("A#", 1..=10);
    names.extend(numbered("B#", 1..=6));
    let places = placed("Dell Inc.", "GigaVUE-FM", &[GOLD; 2], &with_bank(&names, ""));
    let of = |channel: u32| -> Vec<usize> {
        (1..=10).filter(|slot: &usize| places[slot - 1].1 == channel).collect()
    };
    assert_eq!(
        (0..6).map(of).collect::<Vec<_>>(),
        [vec![1, 7], vec![2, 8], vec![3], vec![4, 9], vec![5, 10], vec![6]]
    );
    assert_eq!(places[10..].iter().map(|place| place.1).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    // XC Core XC6515 service manual, memory population rules: A1 to A16 alternately.
    let names = numbered("A#", 1..=16);
    let epyc = "AMD EPYC 7452 32-Core Processor";
    let places = placed("Dell Inc.", "XC Core XC6515", &[epyc], &with_bank(&names, ""));
    let in_turn: Vec<_> = (0..2).flat_map(|slot| (0..8).map(move |channel| (0, channel, slot))).collect();
    assert_eq!(places, in_turn);
    // rasdaemon's labels for R230 use the channels of the kernel's EDAC: A1 and A3 are of channel
    // 0.
    let names = numbered("A#", 1..=4);
    let xeon = "Intel(R) Xeon(R) CPU E3-1230 v5 @ 3.40GHz";
    let places = placed("Dell Inc.", "PowerEdge R230", &[xeon], &with_bank(&names, ""));
    assert_eq!(places, [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]);
}

#[test]
fn locators_say_what_banks_say() {
    // Inventories whose banks have words of their own: by locators alone the slots are the same.
    for (vendor, product, cpu, slots) in [
        (
            "Huawei",
            "1288H V5",
            GOLD,
            [
                ("DIMM000", "_Node0_Channel0_Dimm0"),
                ("DIMM011", "_Node0_Channel1_Dimm1"),
                ("DIMM150", "_Node1_Channel5_Dimm0"),
            ],
        ),
        (
            "Huawei",
            "RH1288 V3",
            E5,
            [
                ("DIMM000", "_Node0_Channel0_Dimm0"),
                ("DIMM011", "_Node0_Channel1_Dimm1"),
                ("DIMM131", "_Node1_Channel3_Dimm1"),
            ],
        ),
        (
            "Supermicro",
            "Super Server",
            E5,
            [
                ("P1-DIMMA2", "P0_Node0_Channel0_Dimm1"),
                ("P1-DIMMB1", "P0_Node0_Channel1_Dimm0"),
                ("P2-DIMMH2", "P1_Node1_Channel3_Dimm1"),
            ],
        ),
    ] {
        let by_banks = placed(vendor, product, &[cpu; 2], &slots);
        let by_locators = placed(vendor, product, &[cpu; 2], &slots.map(|(locator, _)| (locator, "")));
        assert!(by_banks[2].0 == 1 && by_banks == by_locators, "{product}: {by_banks:?} {by_locators:?}");
    }
}

#[test]
fn names_as_intels_own_tool_reads_them() {
    // Intel PerfSpect, tests of its table of names: socket and slot of each (locator, bank).
    type Case<'a> = (&'a str, &'a str, [(&'a str, &'a str); 2], [(u32, u32, u32); 2]);
    let ice_lake = "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz";
    let milan = "AMD EPYC 7543 32-Core Processor";
    let core = "13th Gen Intel(R) Core(TM) i9-13900";
    let large = "Intel(R) Xeon(R) 6980P";
    let cases: &[Case] = &[
        ("Inspur", ice_lake, [("CPU0_C0D0", ""), ("CPU1_C2D1", "")], [(0, 0, 0), (1, 2, 1)]),
        ("Nobody", ice_lake, [("CPU0_A0", ""), ("CPU1_B3", "")], [(0, 0, 0), (1, 1, 3)]),
        (
            "Nobody",
            ice_lake,
            [("DIMM0", "NODE 0 CHANNEL 0 DIMM 0"), ("DIMM1", "NODE 1 CHANNEL 3 DIMM 1")],
            [(0, 0, 0), (1, 3, 1)],
        ),
        (
            "Nobody",
            E5,
            [("DIMM0", "P0_Node0_Channel0_Dimm0"), ("DIMM1", "P1_Node1_Channel2_Dimm1")],
            [(0, 0, 0), (1, 2, 1)],
        ),
        (
            "Nobody",
            ice_lake,
            [("DIMM0", "_Node0_Channel0_Dimm0"), ("DIMM1", "_Node1_Channel2_Dimm1")],
            [(0, 0, 0), (1, 2, 1)],
        ),
        ("Intel", GOLD, [("CPU1_DIMM_A1", "NODE 1"), ("CPU2_DIMM_B2", "NODE 2")], [(0, 0, 0), (1, 1, 1)]),
        ("Intel", ice_lake, [("CPU0_DIMM_A1", "NODE 0"), ("CPU0_DIMM_C2", "NODE 0")], [(0, 0, 0), (0, 2, 1)]),
        ("Gigabyte", milan, [("DIMM_P0_A0", "BANK 0"), ("DIMM_P1_B1", "BANK 0")], [(0, 0, 0), (1, 1, 1)]),
        (
            "Nobody",
            core,
            [("Controller0-ChannelA-DIMM0", "BANK 0"), ("Controller1-ChannelA-DIMM1", "BANK 0")],
            [(0, 0, 0), (0, 1, 1)],
        ),
        ("Supermicro", GOLD_5, [("P1-DIMMA1", ""), ("P2-DIMMB2", "")], [(0, 0, 0), (1, 1, 1)]),
        ("Intel", XEON_6, [("CPU0_DIMM_A1", "BANK 0"), ("CPU1_DIMM_H2", "BANK 7")], [(0, 0, 0), (1, 7, 1)]),
        ("Intel", large, [("CPU0_DIMM_A", "BANK 0"), ("CPU1_DIMM_L", "BANK 11")], [(0, 0, 0), (1, 11, 0)]),
        ("Intel", XEON_6, [("CPU0 CH0/D0", "BANK 0"), ("CPU1 CH7/D1", "BANK 7")], [(0, 0, 0), (1, 7, 1)]),
        (
            "Quanta",
            XEON_6,
            [("CPU0_A1", "_Node0_Channel0_Dimm1"), ("CPU1_B2", "_Node1_Channel2_Dimm2")],
            [(0, 0, 0), (1, 2, 1)],
        ),
    ];
    // EC2's, as its comments have them.
    let metal: &[Case] = &[
        (
            "Amazon EC2",
            ice_lake,
            [("CPU0 Channel0 DIMM0", "NODE 0"), ("CPU1 Channel7 DIMM1", "NODE 7")],
            [(0, 0, 0), (1, 7, 1)],
        ),
        ("Amazon EC2", GOLD, [("DIMM_A0", "NODE 1"), ("DIMM_G1", "NODE 2")], [(0, 0, 0), (1, 0, 1)]),
    ];
    for (vendor, cpu, slots, expected) in cases.iter().chain(metal) {
        let cpus = [*cpu; 2];
        let cpus = if *cpu == core { &cpus[..1] } else { &cpus[..] };
        assert_eq!(placed(vendor, "Made Up", cpus, slots), *expected, "{vendor} {slots:?}");
    }
}
