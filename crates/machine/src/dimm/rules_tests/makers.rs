//! Boards of which only the slot's number shows the processor, and those that came later.

use super::*;

/// Slots of a rule's numbers in the order in which a document fills them, by places.
fn filled(
    vendor: &str,
    product: &str,
    cpus: &[&str],
    names: &[String],
    order: &[u32],
) -> Vec<(u32, u32, u32)> {
    let places = placed(vendor, product, cpus, &with_bank(names, "Bank 1"));
    order.iter().map(|number| places[*number as usize - 1]).collect()
}

#[test]
fn system_x_counts_on_over_its_processors() {
    // x3750 M4 guide, independent mode with four processors: one module a channel, all processors
    // in turns.
    let names = numbered("DIMM #", 1..=48);
    let cpus = ["Intel(R) Xeon(R) CPU E5-4650 0 @ 2.70GHz"; 4];
    let order = [1, 13, 12, 24, 4, 16, 9, 21, 25, 37, 36, 48, 28, 40, 33, 45];
    let mut places = filled("IBM", "System x3750 M4 -[8722AC1]-", &cpus, &names, &order);
    places.sort_unstable();
    let firsts: Vec<_> = (0..4).flat_map(|cpu| (0..4).map(move |channel| (cpu, channel, 0))).collect();
    assert_eq!(places, firsts);
    let third = [3, 15, 10, 22, 6, 18, 7, 19, 27, 39, 34, 46, 30, 42, 31, 43];
    let places = filled("IBM", "System x3750 M4 -[8722AC1]-", &cpus, &names, &third);
    assert!(places.iter().all(|place| place.2 == 2), "{places:?}");
    // A board with another number of slots is another one.
    let names = numbered("DIMM #", 1..=32);
    let places = filled("IBM", "System x3550 M4", &cpus[..2], &names, &[1, 32]);
    assert_eq!(places, [(99, 99, 99); 2]);
    // x3550 M3 guide (type 4254), memory online-spare mode: channels 0, 1 and 2 in turns.
    let names: Vec<String> = (1..=18).map(|number| format!("DIMM{number:02}")).collect();
    let order = [3, 6, 9, 2, 5, 8, 1, 4, 7, 12, 15, 18, 11, 14, 17, 10, 13, 16];
    let places = filled("IBM", "System x3550 M3 -[7944AC1]-", &[X5660; 2], &names, &order);
    let expected: Vec<_> = (0..2)
        .flat_map(|cpu| (0..3).flat_map(move |slot| (0..3).map(move |channel| (cpu, channel, slot))))
        .collect();
    assert_eq!(places, expected);
    // x3500 M2 has eight slots per processor, and no document here.
    let places = filled("IBM", "System x3500 M2 -[783922V]-", &[X5660; 2], &names[..16], &[1, 9]);
    assert_eq!(places, [(99, 99, 99); 2]);
    // x3550 M5 guide, table 28: two processors, sets of a channel's first slots.
    let names = numbered("Dimm #", 1..=24);
    let mut slots = with_bank(&names[..12], "CPU 1");
    slots.extend(with_bank(&names[12..], "CPU 2"));
    let places = placed("LENOVO", "System x3550 M5: -[5463AC1]-", &[E5; 2], &slots);
    let pairs: Vec<_> = [1, 4, 13, 16, 9, 12, 21, 24].iter().map(|number| places[number - 1]).collect();
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)];
    assert_eq!(pairs, expected.map(|(cpu, channel)| (cpu, channel, 0)));
}

#[test]
fn lenovo_v2_and_boards_of_one_processor() {
    // SR650 V2, the other processor's row: 32 to 17.
    let names = numbered("DIMM #", 1..=32);
    let mut slots = with_bank(&names[..16], "CPU 1");
    slots.extend(with_bank(&names[16..], "CPU 2"));
    let gold = "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz";
    let places = placed("Lenovo", "ThinkSystem SR650 V2", &[gold; 2], &slots);
    let row: Vec<String> = places[16..]
        .iter()
        .rev()
        .map(|(_, channel, slot)| format!("{}{slot}", char::from(b'A' + *channel as u8)))
        .collect();
    assert_eq!(row.join(" "), "F0 F1 E0 E1 H0 H1 G0 G1 C1 C0 D1 D0 A1 A0 B1 B0");
    assert!(places[16..].iter().all(|place| place.0 == 1));
    // ST650 V2 has its first processor turned round, and no document here.
    let places = placed("Lenovo", "ThinkSystem ST650 V2", &[gold; 2], &slots);
    assert!(places.iter().all(|place| *place == (99, 99, 99)));
    // SD630 V2: a slot a channel, and the second processor's slots from the other end.
    let mut node = with_bank(&names[..8], "CPU 1");
    node.extend(with_bank(&names[8..16], "CPU 2"));
    let places = placed("Lenovo", "ThinkSystem SD630 V2", &[gold; 2], &node);
    let channels = |slots: &[usize]| -> Vec<u32> { slots.iter().map(|slot| places[slot - 1].1).collect() };
    assert_eq!(channels(&[2, 1, 4, 3, 7, 8, 5, 6]), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!((0..8).all(|at| places[at].1 == places[15 - at].1 && places[15 - at].0 == 1));
    // SE455 V3: channels A, B, D on one side of the processor.
    let siena = "AMD EPYC 8324P 32-Core Processor";
    let places = placed("Lenovo", "ThinkEdge SE455 V3", &[siena], &with_bank(&names[..6], "CPU 1"));
    let channels: Vec<u32> = [3, 2, 1, 4, 5, 6].iter().map(|number| places[number - 1].1).collect();
    assert_eq!(channels, [0, 1, 2, 3, 4, 5]);
    // ST50 V3: CHA2, CHA1, CHB2, CHB1 are 4 to 1.
    let xeon = "Intel(R) Xeon(R) E-2434";
    let places = placed("Lenovo", "ThinkSystem ST50 V3", &[xeon], &with_bank(&names[..4], "CPU 1"));
    assert_eq!(places, [(0, 1, 0), (0, 1, 1), (0, 0, 0), (0, 0, 1)]);
}

#[test]
fn a_board_that_is_known_by_its_own_name() {
    // ThinkStation P920, the other processor: MC#1_Chan#2 is DIMM 2, MC#0_Chan#1 is DIMM 5.
    let of_board = |board: &str| {
        let mut text = format!(
            "System Information\n\tManufacturer: LENOVO\n\tProduct Name: 30BC000QGE\n\n\
             Base Board Information\n\tManufacturer: LENOVO\n\tProduct Name: {board}\n\n"
        );
        for _ in 0..2 {
            text.push_str(&format!(
                "Processor Information\n\tType: Central Processor\n\tVersion: {GOLD}\n\n"
            ));
        }
        for (cpu, number) in (1..=2).flat_map(|cpu| (1..=8).map(move |number| (cpu, number))) {
            text.push_str(&format!(
                "Memory Device\n\tSize: 16 GB\n\tLocator: CPU{cpu}_DIMM_{number}\n\tType: DDR4\n\n"
            ));
        }
        judge(printout::parse(&text), None, &Hypervisor::Unknown).0
    };
    let dimms = of_board("1038");
    let place = |dimm: &Dimm| (dimm.socket, dimm.controller, dimm.channel, dimm.slot_in_channel);
    assert_eq!(place(&dimms[8 + 1]), (Some(1), Some(1), Some(5), Some(0)));
    assert_eq!(place(&dimms[8 + 4]), (Some(1), Some(0), Some(1), Some(0)));
    assert_eq!(place(&dimms[8 + 7]), (Some(1), Some(1), Some(3), Some(1)));
    // P720 has a board of its own, of six slots per processor.
    assert!(of_board("1037").iter().all(|dimm| dimm.channel.is_none()));
}

#[test]
fn dell_of_one_processor_and_under_other_names() {
    // R220: sockets 1 and 3 share a channel, in whatever order firmware lists them.
    let xeon = "Intel(R) Xeon(R) CPU E3-1271 v3 @ 3.60GHz";
    let slots = [("DIMM_3", "BANK 0"), ("DIMM_1", "BANK 1"), ("DIMM_4", "BANK 2"), ("DIMM_2", "BANK 3")];
    let places = placed("Dell Inc.", "PowerEdge R220", &[xeon], &slots);
    assert_eq!(places, [(0, 0, 1), (0, 0, 0), (0, 1, 1), (0, 1, 0)]);
    assert_eq!(placed("Dell Inc.", "PowerEdge R210", &[xeon], &slots), [(99, 99, 99); 4]);
    // T330 with a Core: the label of A4 is of channel 1.
    let names = numbered("A#", 1..=4);
    let core = "Intel(R) Core(TM) i3-6100 CPU @ 3.70GHz";
    let places = placed("Dell Inc.", "PowerEdge T330", &[core], &with_bank(&names, ""));
    assert_eq!(places, [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]);
    // T40 has such processors, too, and no document here.
    assert_eq!(placed("Dell Inc.", "PowerEdge T40", &[core], &with_bank(&names, "")), [(99, 99, 99); 4]);
    // FC640, the other processor: B7 is MC 2, channel 0, B8 is MC 3, channel 0.
    let names: Vec<String> = ["A", "B"].iter().flat_map(|cpu| numbered(&format!("{cpu}#"), 1..=8)).collect();
    let places = placed("Dell Inc.", "PowerEdge FC640", &[GOLD; 2], &with_bank(&names, ""));
    let firsts: Vec<u32> = places[8..14].iter().map(|place| place.1).collect();
    assert_eq!((firsts, &places[14..]), (vec![0, 1, 2, 3, 4, 5], &[(1, 0, 1), (1, 3, 1)][..]));
    // A board's part number shows the maker of machines that are sold under another name.
    let sold_as = |board: &str| {
        let text = format!(
            "System Information\n\tManufacturer: SimpliVity\n\tProduct Name: OmniCube\n\n\
             Base Board Information\n\tManufacturer: SimpliVity\n\tProduct Name: {board}\n\n\
             Processor Information\n\tType: Central Processor\n\tVersion: {E5}\n\n\
             Memory Device\n\tSize: 16 GB\n\tLocator: A6\n\n"
        );
        let (dimms, _) = judge(printout::parse(&text), None, &Hypervisor::Unknown);
        (dimms[0].channel, dimms[0].slot_in_channel)
    };
    assert_eq!(sold_as("04N3DF"), (Some(1), Some(1)));
    for other in ["123456", "04N3D", "00D4062", "X4N3DF", "04n3df"] {
        assert_eq!(sold_as(other), (None, None), "{other}");
    }
}

#[test]
fn memory_of_a_chipset_is_no_processors() {
    // PowerEdge 1955 manual: branch 1 has channel 2 (DIMM 3 and 7) and channel 3 (DIMM 4 and 8).
    let cpus = ["Intel(R) Xeon(R) CPU           E5345  @ 2.33GHz"; 2];
    let names = numbered("DIMM#", 1..=8);
    let slots = with_bank(&names, "");
    let half = ["DIMM5", "DIMM6", "DIMM7", "DIMM8"];
    let (dimms, judged) = board("Dell Inc.", "PowerEdge 1955", &cpus, &slots, &half);
    let place = |at: usize| (dimms[at - 1].socket, dimms[at - 1].channel, dimms[at - 1].slot_in_channel);
    assert_eq!([place(3), place(7)], [(Some(0), Some(2), Some(0)), (Some(0), Some(2), Some(1))]);
    assert_eq!([place(4), place(8)], [(Some(0), Some(3), Some(0)), (Some(0), Some(3), Some(1))]);
    assert_eq!((judged.dimm_verdict, judged.dimm_sockets.len()), (Some(Balance::Balanced), 1));
    assert!(judged.dimm_remarks.iter().any(|remark| remark.contains("chipset")), "{:?}", judged.dimm_remarks);
    // PowerEdge R200: two banks on two channels.
    let core = "Intel(R) Core(TM)2 Duo CPU     E7400  @ 2.80GHz";
    let slots_of_banks = [("DIMM1_A", ""), ("DIMM2_A", ""), ("DIMM1_B", ""), ("DIMM2_B", "")];
    let places = placed("Dell Inc.", "PowerEdge R200", &[core], &slots_of_banks);
    assert_eq!(places, [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]);
    // Processors that have controllers of their own contradict the name.
    for cpu in [X5660, "Dual-Core AMD Opteron(tm) Processor 2216"] {
        let places = placed("Dell Inc.", "PowerEdge 2950", &[cpu; 2], &slots);
        assert!(places.iter().all(|place| *place == (99, 99, 99)), "{cpu}");
    }
    let places = placed("Intel", "S5000PSL", &cpus, &[("ONBOARD DIMM_A1", ""), ("ONBOARD DIMM_D2", "")]);
    assert_eq!(places, [(0, 0, 0), (0, 3, 1)]);
}
